"""What the haptic process and a session tell each other a thousand times a second: shared memory, no locks.

    hands     haptic process → session    where each hand holds its tool, what it was made to feel
    touches   session → haptic process    what each tool met in the newest tick

Each way is a `Mailbox`: three slots with a number before and after, the newest wins, nobody waits for anybody (the same
as session/snapshot.py, for a few hundred bytes). Beside them stand counters and histograms of times, which their one
writer increments and anyone may look at.

Times are those of `time.perf_counter`, which on Linux and macOS is one clock for all processes.
"""

from __future__ import annotations

import struct
import threading
from dataclasses import dataclass, field

from viscera.inputs import Quaternion, Vector3
from viscera.memory import Segment

TOOLS = 2
"""Devices at once, and so tools they drive."""

SLOTS = 3
READ_ATTEMPTS = 8
NAME_BYTES = 64

BIN_S = 5e-6
"""Width of a histogram's bin [s]."""
BINS = 4001
"""The last one holds everything from 20 ms on."""

ZERO: Vector3 = (0.0, 0.0, 0.0)


@dataclass(slots=True)
class Hand:
    """One device as the haptic process has it, in the theatre's frame."""

    tool: int = 0
    present: bool = False
    position: Vector3 = ZERO
    """Where the tool should be [m]: where the hand is, less what the coupling gives way."""
    orientation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    grip: float = 0.0
    force: Vector3 = ZERO
    """What the hand was last made to feel [N]."""
    mode: int = 0
    """`safety.Mode`"""
    gain: float = 0.0
    """Share of the force that is let through, 0 to 1."""


@dataclass(slots=True)
class Hands:
    time: float = 0.0
    """When the poses were read [s]; 0 before the first."""
    hands: list[Hand] = field(default_factory=lambda: [Hand() for _ in range(TOOLS)])


@dataclass(slots=True)
class Touch:
    """What one tool met in a tick: near `position` its contact is a plane with a spring behind it."""

    active: bool = False
    home: Vector3 = ZERO
    """Where the tool waits when nobody holds it [m]."""
    position: Vector3 = ZERO
    """Of the tool's tip [m]."""
    force: Vector3 = ZERO
    """On the tool [N]."""
    torque: Vector3 = ZERO
    """About the tip [N·m]."""
    normal: Vector3 = ZERO
    """Out of what is touched, unit length; zero while nothing is."""
    stiffness: float = 0.0
    """Of the contact along the normal [N/m]; 0 where it is not known."""


@dataclass(slots=True)
class Touches:
    tick: int = -1
    """-1 before the first."""
    time: float = 0.0
    """When the tick was done [s]."""
    hand_time: float = 0.0
    """`Hands.time` of the poses this tick was made with."""
    tools: list[Touch] = field(default_factory=lambda: [Touch() for _ in range(TOOLS)])


_HAND = 15
_TOUCH = 17
"""Numbers per tool in the two messages."""
_HANDS_STRUCT = struct.Struct(f"{1 + TOOLS * _HAND}d")
_TOUCHES_STRUCT = struct.Struct(f"{3 + TOOLS * _TOUCH}d")


class Mailbox:
    """A few numbers from one writer to any readers."""

    def __init__(self, memory: memoryview, layout: struct.Struct) -> None:
        """`memory` starts at a multiple of eight bytes and has `size_of(layout)`."""
        self._layout = layout
        self._memory = memory
        self._numbers = memory.cast("Q")  # stored and loaded eight bytes at a time, never in part
        self._step = 2 + layout.size // 8
        self._lock = threading.Lock()

    @staticmethod
    def size_of(layout: struct.Struct) -> int:
        return 8 * (1 + SLOTS * (2 + layout.size // 8))

    @property
    def number(self) -> int:
        """Of the newest message; they count from 1."""
        return self._numbers[0]

    def post(self, values: list[float]) -> None:
        numbers = self._numbers
        number = numbers[0] + 1
        slot = 1 + (number % SLOTS) * self._step
        numbers[slot] = number
        self._fence()
        self._layout.pack_into(self._memory, 8 * (slot + 1), *values)
        self._fence()
        numbers[slot + self._step - 1] = number
        self._fence()
        numbers[0] = number

    def read(self) -> tuple[float, ...] | None:
        """The newest message; None while there is none that holds still."""
        numbers = self._numbers
        for _ in range(READ_ATTEMPTS):
            number = numbers[0]
            if number == 0:
                return None
            self._fence()
            slot = 1 + (number % SLOTS) * self._step
            values = self._layout.unpack_from(self._memory, 8 * (slot + 1))
            self._fence()
            if numbers[slot] == number and numbers[slot + self._step - 1] == number:
                return values
        return None

    def _fence(self) -> None:
        """Taking a free lock is the memory barrier Python has; x86 needs none between stores, ARM does."""
        self._lock.acquire()
        self._lock.release()


class Histogram:
    """How often a time fell into each bin of 5 µs. One writer; reading while it writes is a bin off at worst."""

    SIZE = 8 * (BINS + 1)

    def __init__(self, memory: memoryview) -> None:
        self._bins = memory[: 8 * BINS].cast("Q")
        self._longest = memory[8 * BINS : 8 * BINS + 8].cast("d")

    def add(self, seconds: float) -> None:
        index = int(seconds / BIN_S) if seconds > 0.0 else 0
        self._bins[index if index < BINS else BINS - 1] += 1
        if seconds > self._longest[0]:
            self._longest[0] = seconds

    def clear(self) -> None:
        for index in range(BINS):
            self._bins[index] = 0
        self._longest[0] = 0.0

    def counts(self) -> list[int]:
        return self._bins.tolist()

    def summary(self) -> TimeSummary:
        return summarise(self.counts(), self._longest[0])


@dataclass(frozen=True)
class TimeSummary:
    """Percentiles are the upper ends of their bins."""

    count: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    longest_ms: float
    within_2ms: float
    """Share, 0 to 1."""


def summarise(counts: list[int], longest: float) -> TimeSummary:
    total = sum(counts)
    if total == 0:
        return TimeSummary(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    marks = {0.5: 0.0, 0.99: 0.0, 0.999: 0.0}
    seen = 0
    for index, count in enumerate(counts):
        before, seen = seen, seen + count
        for share in marks:
            if before < share * total <= seen:
                marks[share] = min((index + 1) * BIN_S, longest) if index < BINS - 1 else longest
    p50, p99, p999 = (1e3 * value for value in marks.values())
    within = sum(counts[: round(2e-3 / BIN_S)]) / total
    return TimeSummary(total, p50, p99, p999, 1e3 * longest, within)


COUNTERS = ("cycles", "stalls", "fades", "jumps", "breaks", "ticks")
"""What is counted: cycles of the haptic loop; how often its guard stepped in, and why; ticks of the session."""

HISTOGRAMS = ("period", "work", "latency", "tick")
"""What is timed: from cycle to cycle, inside a cycle, from a pose to the force that answers it, from tick to tick."""

_HANDS_AT = 0
_TOUCHES_AT = _HANDS_AT + Mailbox.size_of(_HANDS_STRUCT)
_NAMES_AT = _TOUCHES_AT + Mailbox.size_of(_TOUCHES_STRUCT)
_COUNTERS_AT = _NAMES_AT + TOOLS * NAME_BYTES
_HISTOGRAMS_AT = _COUNTERS_AT + 8 * len(COUNTERS)
SIZE = _HISTOGRAMS_AT + len(HISTOGRAMS) * Histogram.SIZE


class Link:
    """Both ways between a haptic process and whichever session runs. Made by the server; can be handed to a process
    that is being spawned, as often as there are sessions."""

    def __init__(self, segment: Segment | None = None) -> None:
        if segment is None:
            segment = Segment()
            segment.resize(SIZE)
        self._segment = segment
        memory = segment.map(SIZE)
        self._memory = memory
        self._hands = Mailbox(memory[_HANDS_AT:_TOUCHES_AT], _HANDS_STRUCT)
        self._touches = Mailbox(memory[_TOUCHES_AT:_NAMES_AT], _TOUCHES_STRUCT)
        self._counters = memory[_COUNTERS_AT:_HISTOGRAMS_AT].cast("Q")
        starts = [_HISTOGRAMS_AT + index * Histogram.SIZE for index in range(len(HISTOGRAMS))]
        self._histograms = [Histogram(memory[start : start + Histogram.SIZE]) for start in starts]
        self.period, self.work, self.latency, self.tick = self._histograms

    def __reduce__(self) -> tuple[type[Link], tuple[Segment]]:
        return Link, (self._segment,)

    # --- messages ------------------------------------------------------------------------------------------------

    def post_hands(self, hands: Hands) -> None:
        values = [hands.time]
        for hand in hands.hands:
            values += (hand.tool, hand.present, *hand.position, *hand.orientation, hand.grip)
            values += (*hand.force, hand.mode, hand.gain)
        self._hands.post(values)

    def read_hands(self, hands: Hands) -> bool:
        """Fills `hands` with the newest; False, and nothing changed, while there are none."""
        values = self._hands.read()
        if values is None:
            return False
        hands.time = values[0]
        start = 1
        for hand in hands.hands:
            tool, present, x, y, z, qx, qy, qz, qw, hand.grip = values[start : start + 10]
            fx, fy, fz, mode, hand.gain = values[start + 10 : start + _HAND]
            hand.tool, hand.present, hand.mode = int(tool), present != 0.0, int(mode)
            hand.position, hand.orientation, hand.force = (x, y, z), (qx, qy, qz, qw), (fx, fy, fz)
            start += _HAND
        return True

    def post_touches(self, touches: Touches) -> None:
        values: list[float] = [touches.tick, touches.time, touches.hand_time]
        for touch in touches.tools:
            values += (touch.active, *touch.home, *touch.position, *touch.force)
            values += (*touch.torque, *touch.normal, touch.stiffness)
        self._touches.post(values)

    def read_touches(self, touches: Touches) -> bool:
        """Fills `touches` with the newest; False, and nothing changed, while there are none."""
        values = self._touches.read()
        if values is None:
            return False
        touches.tick, touches.time, touches.hand_time = int(values[0]), values[1], values[2]
        start = 3
        for touch in touches.tools:
            active, hx, hy, hz, x, y, z = values[start : start + 7]
            fx, fy, fz, tx, ty, tz, nx, ny, nz, touch.stiffness = values[start + 7 : start + _TOUCH]
            touch.active = active != 0.0
            touch.home, touch.position, touch.force = (hx, hy, hz), (x, y, z), (fx, fy, fz)
            touch.torque, touch.normal = (tx, ty, tz), (nx, ny, nz)
            start += _TOUCH
        return True

    @property
    def touches_number(self) -> int:
        return self._touches.number

    # --- names, counters, times ----------------------------------------------------------------------------------

    def set_name(self, place: int, name: str) -> None:
        """Of the device at this place of `Hands.hands`; written once, before the first message."""
        data = name.encode()[:NAME_BYTES].ljust(NAME_BYTES, b"\0")
        start = _NAMES_AT + place * NAME_BYTES
        self._memory[start : start + NAME_BYTES] = data

    def name(self, place: int) -> str:
        start = _NAMES_AT + place * NAME_BYTES
        return bytes(self._memory[start : start + NAME_BYTES]).rstrip(b"\0").decode(errors="replace")

    def count(self, name: str, more: int = 1) -> None:
        self._counters[COUNTERS.index(name)] += more

    def counters(self) -> dict[str, int]:
        return dict(zip(COUNTERS, self._counters.tolist(), strict=True))

    def times(self) -> dict[str, TimeSummary]:
        return {name: one.summary() for name, one in zip(HISTOGRAMS, self._histograms, strict=True)}

    def forget_times(self) -> None:
        """Begins the histograms and counters anew, as far as their writers are not in between."""
        for one in self._histograms:
            one.clear()
        for index in range(len(COUNTERS)):
            self._counters[index] = 0

    def close(self) -> None:
        self._segment.close()
