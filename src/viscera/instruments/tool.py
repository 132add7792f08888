"""An instrument in a hand: how a commanded pose becomes the tool that touches tissue.

A hand sends poses when it moves, a browser some 60 to 120 times a second. The tool follows its hand each tick,

    x ← x + (1 − e^(−Δt/T)) (hand − x),   no faster than `FASTEST_TOOL`,

so that a pose that jumps does not become a blow, and turns with it in the same way, no faster than `FASTEST_TURN`. For
a hand that tells every tick where it is (`ToolInput.direct`), T is 0. A tool that is taken out and brought back enters
from its home, outside the body. It never leaves the theatre's room, and one through a trocar turns about it and neither
slips out of it nor goes deeper than it is long: at these limits it stops, as at a wall, wherever the hand goes.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError, need_number, need_numbers
from viscera.inputs import ToolInput, Vector3
from viscera.instruments.bars import MOST_BARS, Bars
from viscera.instruments.effects import PRESSED, Effect
from viscera.instruments.instrument import Instrument
from viscera.instruments.room import Room
from viscera.instruments.trocar import keep_depth, through_trocar
from viscera.instruments.turning import between, dot, turned_by

FASTEST_TOOL = 0.6
"""[m/s]; hands in laparoscopy move at up to about 0.5 m/s."""

FASTEST_TURN = 12.0
"""[rad/s]; of a wrist. The working end, 5 cm of it, is then as fast as `FASTEST_TOOL`."""
AS_HELD = 1.0e-6
"""A tool that is turned like its hand but for this is turned like it [rad]."""

FARTHEST = 2.0
"""A hand farther outside the theatre's room than this is a mistake, most likely of units [m]."""

POINTER_FOLLOW_TIME = 0.012
"""T for a pointer in a browser [s]: two frames of lag, no audible steps in the force."""

MOST_TOOLS = 16
"""In one world: systems keep a row for each."""

JAW_TIME = 0.06
"""In which jaws open or close all the way [s], at the soonest; as the page shows it."""


@dataclass
class Tool:
    """One instrument and the hand that holds it. Arrays are float64: they are part of the recorded state."""

    number: int
    instrument: Instrument
    follow_time: float = POINTER_FOLLOW_TIME
    active: bool = False
    grip: float = 0.0
    room: Room | None = None
    """Where its tip may be; None: anywhere."""
    direct: bool = False
    """Whether the hand that holds it tells every tick where it is."""
    hand: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """Where the hand wants the tip [m]."""
    asked: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))
    """How the hand wants it turned, a quaternion."""
    held: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))
    """How far it has followed that."""
    orientation: NDArray[np.float64] = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))
    """How it is turned: as it is held, or with that spin through its trocar."""
    tip: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """Where the tip is [m]."""
    start: NDArray[np.float64] = field(default_factory=lambda: np.zeros((MOST_BARS, 2, 3)))
    """Both ends of each of its bars as this tick starts [m]; see bars.py."""
    end: NDArray[np.float64] = field(default_factory=lambda: np.zeros((MOST_BARS, 2, 3)))
    """The same as this tick ends [m]."""
    tips: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 3)))
    """Where the tip is as this tick starts and ends [m]."""
    jaws: float = 0.0
    """How far its jaws are closed: they follow the grip."""
    blocked: bool = False
    """Whether what is between its jaws keeps them from closing further."""
    fixed: dict[type, Effect | None] = field(default_factory=dict)
    """Effects that a system has made ready for when the world was made: each can be taken away and given back, another
    one of its type cannot be given (None: none of that type)."""

    @property
    def pressed(self) -> bool:
        """Whether it is in the body with its handle or pedal pressed."""
        return self.active and self.grip >= PRESSED

    @property
    def jaws_close(self) -> bool:
        """Whether its jaws are on their way to where the grip wants them."""
        return self.jaws < self.grip

    @property
    def shaft(self) -> Vector3:
        """Unit vector from the tip along the shaft."""
        x, y, z, w = self.orientation
        return (2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y))

    def __post_init__(self) -> None:
        self.bars = Bars(self.instrument)
        self.hand[:] = self.instrument.home
        self._stand_at_home()

    def copy(self) -> Tool:
        """As it is now; the hand may move on."""
        arrays = {name: getattr(self, name).copy() for name in _ARRAYS}
        other = object.__new__(Tool)  # copy.copy takes three times as long, in a tick
        vars(other).update(vars(self) | arrays)
        return other

    def does(self, *effects: Effect) -> None:
        """From now on the instrument has these effects: what a switch on it chooses, as in
        `LiveParameter(parameter, tissue=…)`, which a recording keeps."""
        for effect in effects:
            if self.fixed.get(type(effect), effect) != effect:
                was = self.fixed[type(effect)]
                raise InputError(
                    f"{self.instrument.name} cannot come to do {effect}: {was or 'nothing of its kind'} was made ready "
                    "when the world was made.",
                    "Make the instrument with that effect; `does` may take it away and give it back.",
                )
        self.instrument = replace(self.instrument, effects=effects)

    def take(self, command: ToolInput) -> None:
        """The hand moves."""
        came = command.active and not self.active
        self.active = command.active
        self.grip = command.grip
        self.direct = command.direct
        self.hand[:] = command.position
        self.asked[:] = command.orientation
        if came:
            self.held[:] = self.orientation[:] = command.orientation
            self.jaws = command.grip
            self._stand_at_home()

    def _share(self, dt: float) -> float:
        """Of the way to its hand, what the tool goes in a tick of dt [s]."""
        lags = self.follow_time > 0.0 and not self.direct
        return 1.0 - math.exp(-dt / self.follow_time) if lags else 1.0

    def wish(self, dt: float) -> NDArray[np.float64]:
        """How far the tip would go in a tick of dt [s] to follow its hand [m]."""
        way = (self.hand - self.tip) * self._share(dt)
        length = math.sqrt(dot(way, way))
        if length > FASTEST_TOOL * dt:
            way *= FASTEST_TOOL * dt / length
        return way

    def wish_turn(self, dt: float) -> NDArray[np.float64] | None:
        """By what it would turn in a tick of dt [s] to follow its hand: axis times angle [rad]; None when it has."""
        if (self.held == self.asked).all():
            return None
        way = between(self.held, self.asked)
        angle = math.sqrt(dot(way, way))
        if angle < AS_HELD:
            self.held[:] = self.asked
            self._stand_as_held()
            return None
        return way * (min(angle * self._share(dt), FASTEST_TURN * dt) / angle)

    def turn(self, way: NDArray[np.float64]) -> None:
        """Turns about its tip, by axis times angle [rad]."""
        self.held[:] = turned_by(self.held, way)
        self._stand_as_held()

    def _stand_as_held(self) -> None:
        self.orientation[:] = self.held
        if self.instrument.trocar is not None:
            through_trocar(self.orientation, self.tip, self.instrument.trocar)

    def go(self, way: NDArray[np.float64], dt: float) -> None:
        """The tip goes this way in a tick, as far as trocar and walls let it, and the jaws follow the grip."""
        self.start[:] = self.end
        self.tips[0] = self.tip
        self.tip += way
        self._hold_back()
        self.tips[1] = self.tip
        most = dt / JAW_TIME
        self.jaws += min(0.0 if self.blocked else most, max(-most, self.grip - self.jaws))
        self.bars.place(self.tip, self.orientation, self.jaws, self.end)

    def follow(self, dt: float) -> None:
        """The tool follows its hand for one tick, wherever that takes it."""
        self.go(self.wish(dt), dt)

    def _hold_back(self) -> None:
        """The walls of the theatre, and the trocar."""
        if self.room is not None:
            self.room.keep(self.tip)
        trocar = self.instrument.trocar
        if trocar is not None:
            keep_depth(self.tip, trocar, self.instrument.length)
            through_trocar(self.orientation, self.tip, trocar)

    def _stand_at_home(self) -> None:
        self.tip[:] = self.instrument.home
        self._hold_back()
        self.tips[:] = self.tip
        self.bars.place(self.tip, self.orientation, self.jaws, self.end)
        self.start[:] = self.end


_ARRAYS = ("hand", "asked", "held", "orientation", "tip", "tips", "start", "end")


def check_tool_input(command: ToolInput, tools: int, room: Room) -> ToolInput:
    """Refuses what no hand can do; brings the orientation to unit length."""
    try:
        return _checked(command, tools, room)
    except (TypeError, ValueError):
        _name_fault(command)
        raise


def _name_fault(command: ToolInput) -> None:
    """Which field has a list, a word or too few numbers: asked only of what went wrong, as hands come 1000 times a
    second."""
    if not isinstance(command.tool, int):
        raise InputError(f"tool = {command.tool!r} is not a whole number.", "Tools are counted from 0.")
    need_numbers("position", command.position, 3)
    need_numbers("orientation", command.orientation, 4)
    need_number("grip", command.grip)


def _checked(command: ToolInput, tools: int, room: Room) -> ToolInput:
    if not 0 <= operator.index(command.tool) < tools:
        raise InputError(f"tool = {command.tool} is not there.", f"This scenario has {tools}, counted from 0.")
    numbers = (*command.position, *command.orientation, command.grip)
    if not all(map(math.isfinite, numbers)):
        raise InputError("the tool's pose is not finite.", "Send finite positions [m] and a unit quaternion.")
    if room.distance(command.position) > FARTHEST:
        box = " to ".join(str(tuple(round(value, 3) for value in corner)) for corner in (room.low, room.high))
        raise InputError(
            f"the tool's position {command.position} is outside the theatre.",
            f"Stay within {box}; the unit is metres.",
        )
    if not 0.0 <= command.grip <= 1.0:
        raise InputError(f"grip = {command.grip} is not allowed.", "It goes from 0 to 1.")
    length = math.sqrt(sum(part * part for part in command.orientation))
    if not 0.5 < length < 2.0:
        raise InputError(f"orientation {command.orientation} is not a unit quaternion.", "Send x, y, z, w of length 1.")
    x, y, z, w = command.orientation
    unit = (x / length, y / length, z / length, w / length)
    return replace(command, orientation=unit)
