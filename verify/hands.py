"""Hands that press, drag, flick and cut anything anywhere, for a minute in any scenario with tissue: what stays of it.

    python -m verify.hands cautery --seed 1 --seconds 60          one hand, any instrument, turned in any way
    python -m verify.hands incision --seed 1 --two-hands          two at once that act most of the time
    python -m verify.hands incision --two-hands --again 60        and its first minute once more, from its inputs

plays one world and prints what it found as one line of JSON. Its exit status is 1 where a mass was not finite or not
kept, a picolitre was missing, a surface was open, a tool got below the table, a force or a speed was beyond its bound,
tissue was in tissue by more than half a cell, a world that was fed with the same inputs, on another number of cores,
was not the same bit for bit, or, with one hand, something stayed once it had left: a tool that does not come free, a
force.
One process per scenario and seed: they share nothing.
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
from viscera.inputs import ToolInput, Vector3
from viscera.instruments import Grasps
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.world.holding import MOST_FORCE
from viscera.world.organ import Organ
from viscera.world.world import World

CUTTABLE = ("incision", "artery", "pattern", "suture", "cholecystectomy")
"""Scenarios in which two hands cut."""
STRONGEST = 2.0 * MOST_FORCE
"""Of any force [N]: no tool presses harder than `MOST_FORCE`, but threads and jaws pull besides."""
FASTEST = 30.0
"""No mass is faster than this [m/s]: hands go with 1 to 2 m/s, and what tears springs back faster."""
LOWEST = -1.0e-4
"""No tool is lower over the table than this [m]."""
DEEPEST = 0.5
"""By which tissue may be in tissue, in cells."""
LOOK_EACH = 10
"""Frames between two looks at everything."""
DIGEST_EACH = 10_000
"""Ticks between two digests, by which a world that is played again is compared."""

SHORTEST, LONGEST = 20, 480
"""Ticks until one hand alone goes somewhere else."""
BESIDE, ABOVE = 0.02, 0.03
"""How far around the organs it goes [m]."""
LEAVING = 1_500
"""Ticks in which it leaves and tissue comes to rest."""
FREE = 1.0e-3
"""A tool that came free is as near to its hand [m]."""

NEW_AIM = 200
"""Ticks after which each of two hands goes somewhere else."""
INPUTS_EACH = 8
"""Ticks between two inputs of it."""
AROUND = 0.01
"""How far around the organ they go [m]."""

Place = NDArray[np.float64]


@dataclass
class Found:
    """What a world went through."""

    scenario: str
    seed: int
    seconds: float
    hands: int
    strongest: float = 0.0
    """[N]"""
    fastest: float = 0.0
    """[m/s]"""
    lowest: float = 0.0
    """Of any tool over the table, where organs lie on one [m]."""
    finite: bool = True
    mass_kept: bool = True
    closed: bool = True
    """The drawn surface."""
    deepest: float = 0.0
    """By which tissue was in tissue, in cells, where it can meet: of all looks the worst."""
    passed: float = 0.0
    """Share of the looks at masses near a cut in which one was deeper than `DEEPEST`."""
    passed_off_folds: float = 0.0
    """The same without those where tissue is folded through itself (passing.py): there no cut let them through."""
    pieces: float = 1.0
    cut_area: float = 0.0
    """[mm²]"""
    stuck: int = 0
    """Tools that did not come free."""
    force_after: float = 0.0
    """The strongest that stayed [N]."""
    fluids: dict[str, float] = field(default_factory=dict)
    """Where there are any: blood, bile and saline that have left vessels, organs and nozzles [mL]. Their ledger is
    exact in every frame, else the world stops."""
    digest: str = ""
    """Of all that is saved as it ends: the same for every run of this seed."""
    again: float = 0.0
    """How much of it was played again from its inputs, in another world on another number of cores [s]."""
    same: bool = True
    """Whether all digests were the same then."""
    warning: str = ""

    @property
    def sound(self) -> bool:
        """All but what tissue does in tissue: finite, nothing lost, closed, bounded, the same again."""
        kept = self.finite and self.mass_kept and self.closed
        left = self.stuck == 0 and self.force_after == 0.0
        bounded = self.strongest <= STRONGEST and self.fastest <= FASTEST and self.lowest > LOWEST
        return kept and left and bounded and self.same

    @property
    def good(self) -> bool:
        return self.sound and self.passed == 0.0


@dataclass
class Played:
    """What hands did, and what became of it."""

    inputs: dict[int, list[ToolInput]] = field(default_factory=dict)
    """By their tick."""
    digests: dict[int, str] = field(default_factory=dict)
    """Of the world, by the tick."""
    each: int = DIGEST_EACH
    """Ticks between two digests."""


def play(world: World, seconds: float, two_hands: bool = False, kept: Played | None = None) -> Found:
    """From the world's own seed; `kept` gets what is needed to play it again."""
    rng = np.random.default_rng(world.seed)
    hands = TwoHands(world, rng) if two_hands else OneHand(world, rng)
    found = Found(world.scenario, world.seed, seconds, 2 if two_hands else 1)
    watch = Watch(world, found)
    for tick in range(round(seconds / TICK)):
        given = hands.inputs(tick)
        for one in given:
            world.apply(one)
        world.advance()
        watch.tick()
        if kept is not None:
            _keep(kept, world, tick, given)
        if (tick + 1) % (LOOK_EACH * TICKS_PER_FRAME) == 0:
            watch.look()
            if not found.finite:
                break
    world.wait()
    watch.end()
    if not two_hands:
        leave(world, found)
    return found


def _keep(kept: Played, world: World, tick: int, given: list[ToolInput]) -> None:
    if given:
        kept.inputs[tick] = given
    if world.tick % kept.each == 0:
        world.wait()
        kept.digests[world.tick] = world.state_hash()


def play_again(world: World, kept: Played, seconds: float) -> bool:
    """Feeds a new world with the inputs of the first so many seconds. Whether it was the same, digest by digest."""
    for tick in range(round(seconds / TICK)):
        for one in kept.inputs.get(tick, []):
            world.apply(one)
        world.advance()
        if world.tick in kept.digests:
            world.wait()
            if world.state_hash() != kept.digests[world.tick]:
                return False
    return True


class OneHand:
    """Any instrument, anywhere around the organs, turned in any way; the others stay where they were left."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self._rng, self._tools, self._until = rng, len(world.hands), 0
        self._low, self._high = bounds_of(world)

    def inputs(self, tick: int) -> list[ToolInput]:
        if tick < self._until:
            return []
        rng = self._rng
        tool = int(rng.integers(self._tools))
        place = rng.uniform(self._low - BESIDE, self._high + np.array((BESIDE, BESIDE, ABOVE)))
        a, b, c, d = (turn := rng.normal(size=4)) / np.linalg.norm(turn)
        grip = float(rng.random() < 0.6)
        self._until = tick + int(rng.integers(SHORTEST, LONGEST))
        return [ToolInput(tool, _three(place), (float(a), float(b), float(c), float(d)), grip=grip)]


@dataclass
class Hand:
    """One of two. It holds one of its tools at a time."""

    tools: list[int]
    place: Vector3 = (0.0, 0.0, 0.1)
    turn: float = 0.0
    grip: float = 0.0
    at: int = 0

    def aim(self, rng: np.random.Generator, low: Place, high: Place) -> list[ToolInput]:
        """Somewhere else, with another tool at times; says what lays the old one down."""
        place = rng.uniform(low, high)
        new = int(rng.integers(0, len(self.tools))) if rng.random() < 0.3 else self.at
        down = [] if new == self.at else [ToolInput(self.tools[self.at], self.place, active=False)]
        self.place, self.at = _three(place), new
        self.turn, self.grip = float(rng.uniform(-np.pi, np.pi)) * (rng.random() < 0.5), float(rng.random() < 0.75)
        return down

    def input(self) -> ToolInput:
        spin = (0.0, 0.0, float(np.sin(0.5 * self.turn)), float(np.cos(0.5 * self.turn)))
        return ToolInput(self.tools[self.at], self.place, spin, grip=self.grip)


class TwoHands:
    """One has the grasper, or where there is none the last tool; the other takes the rest in turn."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self._rng = rng
        self._low, self._high = world.organs[0].body.mesh.bounds
        numbers = [tool.number for tool in world.hands]
        grasps = [tool.number for tool in world.hands if tool.instrument.effect(Grasps) is not None]
        second = (grasps or numbers)[-1]
        self._hands = [Hand([number for number in numbers if number != second]), Hand([second])]

    def inputs(self, tick: int) -> list[ToolInput]:
        given = []
        if tick % NEW_AIM == 0:
            for hand in self._hands:
                given += hand.aim(self._rng, self._low - AROUND, self._high + AROUND)
        if tick % INPUTS_EACH == 0:
            given += [hand.input() for hand in self._hands]
        return given


class Watch:
    """Looks at a world and writes down the worst of it."""

    def __init__(self, world: World, found: Found) -> None:
        self._world, self._found = world, found
        self._on_table = abs(float(bounds_of(world)[0][2])) < 1.0e-3
        self._mass = [organ.tissue.constants.inverse_mass.numpy().copy() for organ in world.organs]
        self._passing = [(organ, Passing(organ.tissue)) for organ in world.organs if organ.cuts is not None]
        self._deep: list[NDArray[np.float64]] = []
        self._off_folds: list[NDArray[np.float64]] = []

    def tick(self) -> None:
        found = self._found
        found.strongest = max(found.strongest, *(float(np.linalg.norm(tool.force)) for tool in self._world.tools))
        if self._on_table:
            for hand in self._world.hands:
                low = hand.end[: hand.bars.count, :, 2].min(axis=1) - hand.bars.radii
                found.lowest = min(found.lowest, float(low.min()))

    def look(self) -> None:
        self._world.wait()
        found = self._found
        for organ in self._world.organs:
            speed = organ.tissue.velocities()
            found.finite &= bool(np.isfinite(organ.tissue.displacement()).all() and np.isfinite(speed).all())
            found.fastest = max(found.fastest, float(np.linalg.norm(speed, axis=1).max()))
        for organ, passing in self._passing:
            if found.finite:
                found.closed &= is_closed(_corners(organ))
                self._deep.append(passing.look(_cut_springs(organ)))
                self._off_folds.append(passing.off_folds)

    def end(self) -> None:
        found = self._found
        for organ, before in zip(self._world.organs, self._mass, strict=True):
            found.mass_kept &= bool(np.array_equal(before, organ.tissue.constants.inverse_mass.numpy()))
        deep = np.concatenate(self._deep) if self._deep else np.zeros(0)
        if len(deep):
            found.deepest, found.passed = float(deep.max()), float((deep > DEEPEST).mean())
            found.passed_off_folds = float((np.concatenate(self._off_folds) > DEEPEST).mean())
        values = self._world.measure_values()
        found.pieces, found.cut_area = values.get("pieces", 1.0), values.get("cut_area", 0.0)
        if any(system.name == "ledger" for system in self._world.systems):
            now = self._world.system("ledger").holds.balance
            found.mass_kept &= now.missing == 0
            found.fluids = {"blood": 1e6 * now.given, "bile": 1e6 * now.leaked, "saline": 1e6 * now.rinsed}
        found.digest, found.warning = self._world.state_hash(), self._world.warning


def leave(world: World, found: Found) -> None:
    """All hands go up, side by side, and let go."""
    middle, high = (len(world.hands) - 1) / 2.0, bounds_of(world)[1]
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


def bounds_of(world: World) -> tuple[Place, Place]:
    """Of all organs [m]."""
    bounds = np.array([organ.body.mesh.bounds for organ in world.organs])
    return bounds[:, 0].min(axis=0), bounds[:, 1].max(axis=0)


def is_closed(corners: NDArray[np.int64]) -> bool:
    """Each edge is there as often in one direction as in the other."""
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    count = int(corners.max()) + 1
    return bool(np.array_equal(np.sort(edges @ [count, 1]), np.sort(edges @ [1, count])))


def _corners(organ: Organ) -> NDArray[np.int64]:
    assert organ.cuts is not None
    shape = organ.cuts.linked.shape
    return shape.key[shape.triangles]


def _cut_springs(organ: Organ) -> NDArray[np.bool_]:
    assert organ.shadow.cuts is not None
    return organ.shadow.cuts.springs()


def _may_go(world: World, place: Place) -> bool:
    """Whether the theatre reaches so far."""
    kept = place.copy()
    world.room.keep(kept)
    return bool(np.allclose(kept, place, atol=1e-6))


def _three(place: Place) -> Vector3:
    x, y, z = place.tolist()
    return (x, y, z)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.hands", description=__doc__)
    parser.add_argument("scenario")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--two-hands", action="store_true")
    parser.add_argument("--again", type=float, default=0.0, help="seconds of it that are played again; whole tens")
    chosen = parser.parse_args()
    world = viscera.make(chosen.scenario, device="cpu", seed=chosen.seed, cores=chosen.cores)
    kept = Played() if chosen.again else None
    found = play(world, chosen.seconds, chosen.two_hands, kept)
    if kept is not None:
        other = viscera.make(chosen.scenario, device="cpu", seed=chosen.seed, cores=3 - min(chosen.cores, 2))
        found.again = min(chosen.again, chosen.seconds)
        found.same = bool(kept.digests) and play_again(other, kept, found.again)
    print(json.dumps(asdict(found) | {"sound": found.sound, "good": found.good}))
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
