"""Hands that press, drag and flick anything anywhere, for a minute in any scenario with tissue: what stays of it.

    python -m verify.fuzz_hands cautery --seed 1 --seconds 60

plays one world and prints what it found as one line of JSON. Its exit status is 1 where a tool got below the table, a
force was more than a tool may press with, or something stayed once the hands had left: a tool that does not come free,
a force. One process per scenario and seed: they share nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

import viscera
from viscera.inputs import ToolInput
from viscera.timing import TICK
from viscera.world.holding import MOST_FORCE
from viscera.world.world import World

SHORTEST, LONGEST = 20, 480
"""Ticks until a hand goes somewhere else."""
BESIDE, ABOVE = 0.02, 0.03
"""How far around the organs hands go [m]."""
LEAVING = 1_500
"""Ticks in which hands leave and tissue comes to rest."""
STRONGEST = 2.0 * MOST_FORCE
"""Of any force [N]: no tool presses harder than `MOST_FORCE`, but threads and jaws pull besides."""
FREE = 1.0e-3
"""A tool that came free is as near to its hand [m]."""


@dataclass
class Found:
    """What a world went through."""

    scenario: str
    seed: int
    seconds: float
    strongest: float = 0.0
    """[N]"""
    lowest: float = 0.0
    """Of any tool over the table, where organs lie on one [m]."""
    finite: bool = True
    stuck: int = 0
    """Tools that did not come free."""
    force_after: float = 0.0
    """The strongest that stayed [N]."""

    @property
    def good(self) -> bool:
        left = self.stuck == 0 and self.force_after == 0.0
        return self.finite and left and self.strongest <= STRONGEST and self.lowest > -1.0e-4


def play(world: World, seconds: float) -> Found:
    rng, found = np.random.default_rng(world.seed), Found(world.scenario, world.seed, seconds)
    bounds = np.array([organ.body.mesh.bounds for organ in world.organs])
    low, high = bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)
    on_table = abs(float(low[2])) < 1.0e-3
    until, now = 0, 0
    ticks = round(seconds / TICK)
    for tick in range(ticks):
        if tick >= until:
            tool = int(rng.integers(len(world.hands)))
            place = rng.uniform(low - BESIDE, high + np.array((BESIDE, BESIDE, ABOVE)))
            turn = rng.normal(size=4)
            world.apply(
                ToolInput(tool, _three(place), _four(turn / np.linalg.norm(turn)), grip=float(rng.random() < 0.6))
            )
            until, now = tick + int(rng.integers(SHORTEST, LONGEST)), tool
        world.advance()
        found.strongest = max(found.strongest, float(np.linalg.norm(world.tools[now].force)))
        if on_table:
            hand = world.hands[now]
            count = hand.bars.count
            found.lowest = min(found.lowest, float((hand.end[:count, :, 2].min(axis=1) - hand.bars.radii).min()))
    _leave(world, found, high)
    return found


def _leave(world: World, found: Found, high: NDArray[np.float64]) -> None:
    """All hands go up, side by side, and let go."""
    middle = (len(world.hands) - 1) / 2.0
    for hand in world.hands:
        place = np.array([0.02 * (hand.number - middle), 0.0, high[2] + ABOVE])
        world.apply(ToolInput(hand.number, _three(place), grip=0.0))
    for _ in range(LEAVING):
        world.advance()
    world.wait()
    for organ in world.organs:
        found.finite &= bool(np.isfinite(organ.tissue.displacement()).all())
    for hand, state in zip(world.hands, world.tools, strict=True):
        found.stuck += int(np.linalg.norm(hand.tip - hand.hand) > FREE and _may_go(world, hand.hand))
        found.force_after = max(found.force_after, float(np.linalg.norm(state.force)))


def _may_go(world: World, place: NDArray[np.float64]) -> bool:
    """Whether the theatre reaches so far."""
    kept = place.copy()
    world.room.keep(kept)
    return bool(np.allclose(kept, place, atol=1e-6))


def _three(place: NDArray[np.float64]) -> tuple[float, float, float]:
    x, y, z = place.tolist()
    return (x, y, z)


def _four(turn: NDArray[np.float64]) -> tuple[float, float, float, float]:
    x, y, z, w = turn.tolist()
    return (x, y, z, w)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.fuzz_hands", description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cores", type=int, default=1)
    chosen = parser.parse_args()
    world = viscera.make(chosen.scenario, device="cpu", seed=chosen.seed, cores=chosen.cores)
    found = play(world, chosen.seconds)
    print(json.dumps(asdict(found) | {"good": found.good}))
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
