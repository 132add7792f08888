"""What is scored: a trial of a drill, as its world has it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class HandTrace:
    """What one instrument did, a row every `dt` seconds, from the start of the trial to its end."""

    name: str
    label: str
    dt: float
    """[s]"""
    positions: FloatArray
    """Of the tip [m], shape (rows, 3)."""
    mean_force: FloatArray
    """That it felt, mean over the row [N], shape (rows,)."""
    peak_force: FloatArray
    """Strongest of the row [N]."""
    active: NDArray[np.bool_]
    """Whether it was in the body."""
    trocar: tuple[float, float, float] | None = None
    """Where it goes through the body wall [m]; None: a free hand holds it."""
    working: NDArray[np.bool_] | None = None
    """Whether its pedal or handle was pressed in the body; None: never."""


@dataclass(frozen=True)
class Wanted:
    """A goal with the words for its measure."""

    measure: str
    label: str
    unit: str
    digits: int
    least: float | None
    most: float | None
    value: float
    """As the trial ended."""
    grows: bool = False
    """Whether the measure never falls: too much of it cannot be undone."""

    @property
    def met(self) -> bool:
        return (self.least is None or self.value >= self.least) and not self.over

    @property
    def over(self) -> bool:
        """Whether there was too much of it."""
        return self.most is not None and self.value > self.most


@dataclass(frozen=True)
class Measured:
    """A number of the world that counts though no goal asks for it."""

    name: str
    label: str
    unit: str
    digits: int
    value: float
    """As the trial ended."""
    better: str
    """`less`, `more`, or empty where neither is better."""


@dataclass(frozen=True)
class Trial:
    """A trial that has ended."""

    scenario: str
    seed: int
    level: str
    outcome: str
    """As `view.DrillState` has it."""
    time: float
    """[s]"""
    goals: tuple[Wanted, ...] = ()
    measures: dict[str, float] = field(default_factory=dict)
    """All measures as it ended, in their units."""
    off: float | None = None
    """Where something was hidden: how far off it was said to be [m]."""
    certainty: float | None = None
    """How sure the hand was, 0 to 1."""
    hands: tuple[HandTrace, ...] = ()
    harder: bool = False
    """Whether the drill has a harder level than this one."""
    others: tuple[Measured, ...] = ()
    """Of the measures, what counts though no goal asks for it: blood lost, burnt area, …"""

    @property
    def passed(self) -> bool:
        return self.outcome in ("met", "found")
