"""Two hands that go anywhere and act most of the time: what they can do to a world that can be cut.

`python -m verify.wild_hands incision --seed 1 --seconds 60` plays one world and prints what it found as one line of
JSON; its exit status is 1 where something broke. One process per scenario and seed: they share nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

import viscera
from verify.passing import Passing
from viscera.inputs import ToolInput
from viscera.instruments import Grasps
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.world.world import World

SCENARIOS = ("incision", "artery", "pattern", "suture", "cholecystectomy")
STRONGEST = 30.0
"""No hand feels more than this [N]."""
FASTEST = 30.0
"""No mass is faster than this [m/s]: hands go with 1 to 2 m/s, and what tears springs back faster."""
NEW_AIM = 200
"""Ticks after which each hand goes somewhere else."""
INPUTS_EACH = 8
"""Ticks between two inputs of a hand."""
LOOK_EACH = 10
"""Frames between two looks at everything."""


@dataclass
class Hand:
    """One of the two. It holds one of its tools at a time."""

    tools: list[int]
    place: tuple[float, float, float] = (0.0, 0.0, 0.1)
    turn: float = 0.0
    grip: float = 0.0
    at: int = 0

    def aim(self, rng: np.random.Generator, low: NDArray[np.float64], high: NDArray[np.float64]) -> ToolInput | None:
        """Somewhere else, with another tool at times; says what lays the old one down."""
        x, y, z = rng.uniform(low, high).tolist()
        new = int(rng.integers(0, len(self.tools))) if rng.random() < 0.3 else self.at
        down = None if new == self.at else ToolInput(self.tools[self.at], self.place, active=False)
        self.place, self.at = (x, y, z), new
        self.turn, self.grip = float(rng.uniform(-np.pi, np.pi)) * (rng.random() < 0.5), float(rng.random() < 0.75)
        return down

    def input(self) -> ToolInput:
        spin = (0.0, 0.0, float(np.sin(0.5 * self.turn)), float(np.cos(0.5 * self.turn)))
        return ToolInput(self.tools[self.at], self.place, spin, grip=self.grip)


@dataclass
class Found:
    """What a world went through."""

    scenario: str
    seed: int
    seconds: float
    strongest: float = 0.0
    """[N]"""
    fastest: float = 0.0
    """[m/s]"""
    finite: bool = True
    mass_kept: bool = True
    closed: bool = True
    """The drawn surface."""
    deepest: float = 0.0
    """By which tissue was in tissue, in cells, where it can meet: of all looks the worst."""
    passed: float = 0.0
    """Share of the looks at masses near a cut in which one was deeper than half a cell."""
    pieces: float = 1.0
    cut_area: float = 0.0
    """[mm²]"""
    fluids: dict[str, float] = field(default_factory=dict)
    """Where there are any: blood, bile and saline that have left vessels, organs and nozzles [mL]. Their ledger is
    exact in every frame, else the world stops."""
    digest: str = ""
    """Of all that is saved as it ends: the same for every run of this seed."""
    warning: str = ""

    @property
    def good(self) -> bool:
        kept = self.finite and self.mass_kept and self.closed
        return kept and self.strongest <= STRONGEST and self.fastest <= FASTEST


def play(world: World, seconds: float) -> Found:
    """Both hands at once, from the world's own seed."""
    rng, found = np.random.default_rng(world.seed), Found(world.scenario, world.seed, seconds)
    low, high = world.organs[0].body.mesh.bounds
    hands = _hands(world)
    mass = [organ.tissue.constants.inverse_mass.numpy().copy() for organ in world.organs]
    looks, passing = [], Passing(world.organs[0].tissue)
    for tick in range(round(seconds / TICK)):
        if tick % NEW_AIM == 0:
            for hand in hands:
                down = hand.aim(rng, low - 0.01, high + 0.01)
                if down is not None:
                    world.apply(down)
        if tick % INPUTS_EACH == 0:
            for hand in hands:
                world.apply(hand.input())
        world.advance()
        found.strongest = max(found.strongest, *(float(np.linalg.norm(tool.force)) for tool in world.tools))
        if (tick + 1) % (LOOK_EACH * TICKS_PER_FRAME) == 0:
            world.wait()
            _look(world, found)
            if not found.finite:
                break
            looks.append(passing.look(_cut(world)))
    world.wait()
    for organ, before in zip(world.organs, mass, strict=True):
        found.mass_kept &= bool(np.array_equal(before, organ.tissue.constants.inverse_mass.numpy()))
    deep = np.concatenate(looks) if looks else np.zeros(0)
    if len(deep):
        found.deepest, found.passed = float(deep.max()), float((deep > 0.5).mean())
    if any(system.name == "ledger" for system in world.systems):
        now = world.system("ledger").holds.balance
        found.mass_kept &= now.missing == 0
        found.fluids = {"blood": 1e6 * now.given, "bile": 1e6 * now.leaked, "saline": 1e6 * now.rinsed}
    found.digest = world.state_hash()
    values = world.measure_values()
    found.pieces, found.cut_area, found.warning = values["pieces"], values["cut_area"], world.warning
    return found


def _hands(world: World) -> list[Hand]:
    """One has the grasper, or where there is none the last tool; the other takes the rest in turn."""
    numbers = [tool.number for tool in world.hands]
    grasps = [tool.number for tool in world.hands if tool.instrument.effect(Grasps) is not None]
    second = (grasps or numbers)[-1]
    return [Hand([number for number in numbers if number != second]), Hand([second])]


def _cut(world: World) -> NDArray[np.bool_]:
    cuts = world.organs[0].shadow.cuts
    assert cuts is not None
    return cuts.springs()


def _look(world: World, found: Found) -> None:
    for organ in world.organs:
        speed = organ.tissue.velocities()
        found.finite &= bool(np.isfinite(organ.tissue.displacement()).all() and np.isfinite(speed).all())
        found.fastest = max(found.fastest, float(np.linalg.norm(speed, axis=1).max()))
        assert organ.cuts is not None
        shape = organ.cuts.linked.shape
        found.closed &= is_closed(shape.key[shape.triangles])


def is_closed(corners: NDArray[np.int64]) -> bool:
    """Each edge is there as often in one direction as in the other."""
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    count = int(corners.max()) + 1
    return bool(np.array_equal(np.sort(edges @ [count, 1]), np.sort(edges @ [1, count])))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.wild_hands", description=__doc__)
    parser.add_argument("scenario", choices=SCENARIOS)
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
