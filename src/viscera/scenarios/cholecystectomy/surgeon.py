"""Scripted surgeons for runs without a window: strokes one after the other, each chosen when the one before is over.

They look where the tissue is and which springs are left (eyes.py), and then move their hands. What they do, and in
which order, is in steps.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Input, Quaternion, ToolInput, Vector3
from viscera.instruments import Instrument, Tool, tip_for
from viscera.instruments.trocar import shaft_of, through_trocar, turned
from viscera.timing import TICK
from viscera.world import World

GRASPER, HOOK, CLIPS, SCISSORS, BIPOLAR, SUCTION, IRRIGATOR, EVACUATOR = range(8)
"""What keys 1 to 8 choose."""

EACH = 8
"""Ticks between two inputs of a hand."""
COMES, LEAVES = 0.12, 0.12
"""In which an instrument comes to before where it begins, and goes away from where it ended [s]; jaws that have closed
open again only then: opened in tissue they would drag it along."""
CLOSES = 0.16
"""That jaws are given to close [s]."""
PULLS = 0.6
"""In which the hand that holds pulls as the next stroke wants it [s]."""
PATIENCE = 0.6
"""How long a hand waits, in all of a stroke, for an instrument that tissue holds back [s]."""
THERE, LAGS = 0.001, 0.003
"""An instrument that is so near to its hand has come; one that is farther than the second is held back: no pedal is
pressed then, and the hand waits [m]."""
ENTERS = 0.05
"""How long a hook from above waits for tissue to let it in before its pedal is pressed, where it is straight above its
place: the foot burns its way. One that tissue keeps aside would burn what lies there [s]."""
HANGS, RETRIES, ON = 0.2, 4, 0.0015
"""One that hangs for so long on its way is lifted out and goes in again, at most so often in a stroke, so far on
[s, -, m]."""
TURNED = 0.998
"""Cosine of half the angle that may be left to turn before an instrument goes in."""
BACK, LIFT = 0.020, 0.012
"""How far back along its shaft an instrument comes from and goes to, and how far above for one that goes in from above
[m]."""
DOWN, ACROSS = (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)
"""Where a hook's foot points to, or to which sides jaws open."""
TAKES_AT = (0.016, 0.0, 0.0270)
"""Where it takes the gall bladder, at rest [m]."""


@dataclass(frozen=True, eq=False)
class Stroke:
    """One movement of one instrument."""

    tool: int
    path: NDArray[np.float64]
    """Places that what acts of it passes [m], shape (points, 3)."""
    seconds: float
    """From the first to the last place."""
    side: Vector3 = ACROSS
    """Where the instrument's x axis is turned to, as far as its shaft lets it."""
    pressed: bool = True
    """From the first place on; else it is pressed at the last one."""
    pull: Vector3 = (0.0, 0.0, 0.0)
    """How far the grasper is by the end of it from where it took hold [m]."""


class Surgeon:
    """Does these strokes, one after the other.

    Each is: come, go in, work along its path, close, leave. Hands look at their instrument: the pedal is pressed once
    it is where it is to begin, or where tissue does not let a foot in from above; one that tissue holds back is waited
    for, lifted out and put in again where its foot points down, and given up after `PATIENCE`.
    """

    def __init__(self, strokes: Iterator[Stroke], pull: Vector3 | None = None) -> None:
        """`pull` is how far a grasper that holds already has pulled [m]."""
        self._strokes = strokes
        self.now: Stroke | None = None
        self.count = 0
        """Strokes so far."""
        self.done = False
        self._begun, self._pulled, self._holds = 0, pull or (0.0, 0.0, 0.0), pull is not None
        self._stages: list[str] = []
        """Those that are left of this stroke, the one that it is in first."""
        self._spent, self._waited, self._share, self._again = 0.0, 0.0, 0.0, 0
        """In this stage, and waiting in this stroke [s]; how far along its path it is; how often it went in again."""

    def script(self, world: World, tick: int) -> list[Input]:
        if tick % EACH or self.done:
            return []
        found: list[Input] = []
        if self.now is not None:
            self._go_on(world, self.now, EACH * TICK)
        if not self._stages:
            found += self._next(world, tick)
        if self.now is None:
            return found
        return [*found, *self._held(world, tick - self._begun), self._input(world, self.now)]

    def _next(self, world: World, tick: int) -> list[Input]:
        world.wait()  # for what eyes see of the systems, as which clips hold
        before, self.now = self.now, next(self._strokes, None)
        self._begun, self.count = tick, self.count + 1
        self.done = self.now is None
        self._spent, self._waited, self._share, self._again = 0.0, 0.0, 0.0, 0
        if self.now is not None:
            self._stages = _stages(self.now)
        if before is None:
            return []
        self._pulled, self._holds = before.pull, self._holds or before.tool == GRASPER
        if before.tool == GRASPER or (self.now is not None and self.now.tool == before.tool):
            return []
        return [ToolInput(before.tool, world.hands[before.tool].instrument.home, active=False)]

    def _go_on(self, world: World, stroke: Stroke, dt: float) -> None:
        """What an instrument does next, `dt` later [s]."""
        tool = world.hands[stroke.tool]
        behind = _behind(tool)
        stage = self._stages[0]
        self._spent += dt
        if stage == "go in":
            if behind > THERE and self._waited < PATIENCE:
                self._waited += dt
            else:
                self._end_stage(given_up=stroke.pressed and behind > LAGS)
        elif stage == "work":
            again = stroke.side == DOWN and self._again < RETRIES
            if behind > LAGS and self._waited < (HANGS if again else PATIENCE):
                self._waited += dt
            elif behind > LAGS and again:
                self._go_in_again(stroke)
            else:
                self._share = min(self._share + dt / stroke.seconds, 1.0)
                if self._share >= 1.0 or behind > LAGS:
                    self._end_stage()
        elif stage == "come":
            turned = abs(float(tool.held @ tool.asked)) > TURNED
            if self._spent >= COMES and (turned or self._spent >= PATIENCE):
                self._end_stage()
        elif self._spent >= (CLOSES if stage == "close" else LEAVES):
            self._end_stage()

    def _go_in_again(self, stroke: Stroke) -> None:
        """Up, and down a little farther on."""
        long = float(np.linalg.norm(np.diff(stroke.path, axis=0), axis=1).sum())
        self._share = min(self._share + ON / max(long, ON), 1.0)
        self._stages = ["leave", "come", "go in", "work", "leave"]
        self._again, self._spent, self._waited = self._again + 1, 0.0, 0.0

    def _end_stage(self, *, given_up: bool = False) -> None:
        self._stages = ["leave"] if given_up else self._stages[1:]
        self._spent = 0.0

    def _input(self, world: World, stroke: Stroke) -> ToolInput:
        """What the working hand does now."""
        stage = self._stages[0]
        place = along_path(stroke.path, self._share)
        instrument = world.hands[stroke.tool].instrument
        if stroke.tool == GRASPER:
            place = place + self._share * np.array(stroke.pull)
        if stage in ("come", "leave"):
            place = place + _away(stroke, place, instrument, self._share if stage == "leave" else 0.0)
        pressed = stage in ("work", "close") if stroke.pressed else stage in ("close", "leave")
        tool = world.hands[stroke.tool]
        if stroke.tool == HOOK and stage == "go in":
            above = float(np.linalg.norm((tool.hand - tool.tip)[:2])) < LAGS
            pressed = stroke.side == DOWN and self._waited > ENTERS and above
        elif stroke.tool == HOOK and _behind(tool) > LAGS:
            pressed = False
        x, y, z = place.tolist()
        turn = turned_to(stroke.side, (x, y, z), instrument)
        return ToolInput(stroke.tool, tip_for((x, y, z), instrument, turn), turn, grip=1.0 if pressed else 0.0)

    def _held(self, world: World, t: int) -> list[ToolInput]:
        """The grasper stays clamped, turned as it took hold, and goes on pulling as the strokes say."""
        assert self.now is not None
        if not self._holds:
            return []
        share = min(t * TICK / PULLS, 1.0)
        pull = (1.0 - share) * np.array(self._pulled) + share * np.array(self.now.pull)
        x, y, z = (np.array(TAKES_AT) + pull).tolist()
        instrument = world.hands[GRASPER].instrument
        turn = turned_to(ACROSS, (x, y, z), instrument)
        return [ToolInput(GRASPER, tip_for((x, y, z), instrument, turn), turn, grip=1.0)]


def _behind(tool: Tool) -> float:
    """How far an instrument is from its hand [m]."""
    return float(np.linalg.norm(tool.hand - tool.tip))


def _stages(stroke: Stroke) -> list[str]:
    """Of a stroke; a grasper takes hold before it pulls, and stays."""
    if stroke.tool == GRASPER:
        return ["come", "go in", "close", "work"]
    return ["come", "go in", "work", "leave"] if stroke.pressed else ["come", "go in", "work", "close", "leave"]


def _away(stroke: Stroke, place: NDArray[np.float64], instrument: Instrument, share: float) -> NDArray[np.float64]:
    """From a place in tissue to outside of it [m]: up for a foot that points down, else back along the shaft, out of
    all that the stroke has gone through."""
    if stroke.side == DOWN:
        return np.array([0.0, 0.0, LIFT])
    if instrument.trocar is None:
        return np.zeros(3)
    gone = share * float(np.linalg.norm(np.diff(stroke.path, axis=0), axis=1).sum())
    return (BACK + gone) * np.array(shaft_of(place, instrument.trocar))


def turned_to(side: Vector3, place: Vector3, instrument: Instrument) -> Quaternion:
    """How to hold an instrument at a place so that its x axis looks to that side, as far as its trocar allows."""
    held = np.array([0.0, 0.0, 0.0, 1.0])
    if instrument.trocar is not None:
        through_trocar(held, np.array(place), instrument.trocar)
    ahead, beside = (float(turned(held, axis) @ np.array(side)) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)))
    spin = math.atan2(beside, ahead)
    return (0.0, 0.0, math.sin(0.5 * spin), math.cos(0.5 * spin))


def along_path(path: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """The place at this share of a path's length [m]."""
    if len(path) == 1:
        return path[0]
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
    return np.array([np.interp(share * lengths[-1], lengths, path[:, a]) for a in range(3)])
