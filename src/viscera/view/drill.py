"""What is measured, and what a drill asks of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from viscera.explaining import explained
from viscera.instruments.instrument import OFF_THE_WIRE


@explained
@dataclass(frozen=True)
class Measure:
    """A number about how it goes, which people watch: charred area, blood lost."""

    name: str
    """What goals, `--json` and Python call it; one of a kind in a world."""
    label: str
    """What people call it: `Blood lost`."""
    unit: str
    """As people say it: mm², mL; empty where it has none. The system converts from SI."""
    help: str
    """One sentence: what it counts."""
    digits: int = 1
    """After the point."""
    yes_no: bool = False
    """Whether it is 1 for yes and 0 for no; people are told these words."""
    grows: bool = False
    """Whether it never falls: then a goal that it has overstepped cannot be met any more."""
    better: str = field(default="", metadata={OFF_THE_WIRE: True})
    """`less` or `more` where a trial is scored by it, goal or not; `as it is` where it is told and neither is better.
    Empty: it is part of a score where a goal asks for it, or where it `grows`, and then less is better."""
    side: bool = field(default=False, metadata={OFF_THE_WIRE: True})
    """For Python and `--json`: the page, and what a drill keeps, have it only where a goal asks for it."""


@explained
@dataclass(frozen=True)
class Goal:
    """What a drill asks of a measure: at least, or at most, so much."""

    measure: str
    """Name of a `Measure` of one of the world's systems, or `time` [s]."""
    least: float | None = None
    """In the measure's unit, as `most`; None: no lower limit."""
    most: float | None = None
    """None: no upper limit. Of a measure that only grows, more than this fails the drill."""

    def met(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


@dataclass(frozen=True)
class Level:
    """A drill as hard as this: its goals, and the parameters that make it so."""

    name: str
    goals: tuple[Goal, ...]
    settings: dict[str, float] = field(default_factory=dict)
    """Values of parameters, by name; all others stay as they are."""


Phase = Literal["waiting", "running", "ended"]
Outcome = Literal["", "met", "failed", "given_up", "found", "missed"]


@dataclass(frozen=True)
class DrillState:
    """How far a drill is. Once it has ended, nothing here changes until it is started again."""

    phase: Phase
    outcome: Outcome
    """How it ended; empty before. `failed`: a goal cannot be met any more."""
    level: int
    time: float
    """Since the start, or from there to the end [s]."""
    failed: tuple[str, ...] = ()
    """Measures whose goals cannot be met any more."""
    result: dict[str, float] = field(default_factory=dict)
    """All measures as it ended, in their units; empty before."""
    certainty: float | None = None
    """How sure the hand was that said "here it is", 0 to 1."""
    off: float | None = None
    """How far that was from what is hidden [m]."""
