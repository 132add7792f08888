"""Where a trainee stands in each measure: their own values, the cohort's quartiles, the plateau, CUSUM and LC-CUSUM.

For CUSUM a trial has passed *in a measure* when its value is good enough: within the goal or the literature's number
that stands beside it, and where there is none, as good as three quarters of the cohort's passed trials. The last needs
at least `FEWEST` of those, and moves with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viscera.scores import learning
from viscera.training.store import KeptTrial, Words

ACCEPTABLE, UNACCEPTABLE = 0.1, 0.3
"""Failure rates of CUSUM and of LC-CUSUM; our own choice, as for common procedures."""
FALSE_PROFICIENCY, WITHIN = 0.05, 50
"""Share of learners who stay inadequate and are called proficient, within so many trials."""
FEWEST = 8
"""Passed trials of the cohort from which a limit is taken."""
UNKNOWN = Words("", "", 2, "", None)
"""Of a measure of which only the number is known."""

_limits: dict[tuple[float, float, int, float], float] = {}


def proficiency_limit() -> float:
    """Of LC-CUSUM; found once by simulation."""
    key = (UNACCEPTABLE, ACCEPTABLE, WITHIN, FALSE_PROFICIENCY)
    if key not in _limits:
        _limits[key] = learning.lc_limit(*key)
    return _limits[key]


@dataclass(frozen=True)
class Place:
    """Of one trainee in one measure of one drill."""

    name: str
    words: Words
    trials: tuple[KeptTrial, ...]
    """Own ones that have it, in their order."""
    numbers: tuple[int, ...]
    """Which of one's own trials they are, from 1."""
    values: tuple[float, ...]
    quartiles: tuple[float, float, float] | None
    """Of all trials that anybody passed."""
    plateau: learning.Plateau | None
    limit: float | None
    from_cohort: bool
    """Whether the limit is the cohort's."""
    cusum: learning.Cusum | None
    """Of trials that were not good enough; None without a limit."""
    learning: learning.LearningCusum | None

    @property
    def label(self) -> str:
        return self.words.label or self.name.replace(".", ": ").replace("_", " ")

    @property
    def good(self) -> tuple[bool, ...]:
        """Of each trial, whether it was good enough; all true without a limit."""
        return tuple(good_enough(value, self.words.better, self.limit) for value in self.values)

    @property
    def best(self) -> float | None:
        """None where neither more nor less is better."""
        pick = {"less": min, "more": max}.get(self.words.better)
        return None if pick is None else pick(self.values)

    def number(self, value: float) -> str:
        return f"{value:.{self.words.digits}f}".replace("-", "−")

    def said(self, value: float) -> str:
        """A value with its unit."""
        return f"{self.number(value)} {self.words.unit}".rstrip()


def good_enough(value: float, better: str, limit: float | None) -> bool:
    if limit is None or better not in ("less", "more"):
        return True
    return value <= limit if better == "less" else value >= limit


def places(own: Sequence[KeptTrial], every: Sequence[KeptTrial], words: dict[str, Words]) -> list[Place]:
    """Of every measure that any of one's own trials has: time first, then what the world measured, then the hands."""
    names = dict.fromkeys(name for trial in own for name in trial.values)
    order = sorted(names, key=_order)
    return [_place(name, own, every, words.get(name, UNKNOWN)) for name in order]


KINDS = ("path", "ratio", "depth", "smoothness", "idle", "mean_force", "peak_force", "impulse")
"""Of a hand's numbers, in the order of a score; what is above limits comes last."""


def _order(name: str) -> tuple[bool, str, int, str]:
    who, _, kind = name.partition(".")
    if not kind:
        return name != "time", "", 0, ""
    return True, who, KINDS.index(kind) if kind in KINDS else len(KINDS), kind


def _place(name: str, own: Sequence[KeptTrial], every: Sequence[KeptTrial], words: Words) -> Place:
    numbers, mine = [], []
    for number, trial in enumerate(own, 1):
        if name in trial.values:
            numbers.append(number)
            mine.append(trial)
    values = tuple(trial.values[name] for trial in mine)
    cohort = [trial.values[name] for trial in every if trial.passed and name in trial.values]
    middle = learning.quartiles(cohort)
    limit, from_cohort = words.limit, False
    if limit is None and middle is not None and len(cohort) >= FEWEST and words.better in ("less", "more"):
        limit, from_cohort = (middle[2] if words.better == "less" else middle[0]), True
    good = [good_enough(value, words.better, limit) for value in values]
    return Place(
        name=name,
        words=words,
        trials=tuple(mine),
        numbers=tuple(numbers),
        values=values,
        quartiles=middle,
        plateau=learning.plateau(values),
        limit=limit,
        from_cohort=from_cohort,
        cusum=None if limit is None else learning.cusum(good, ACCEPTABLE, UNACCEPTABLE),
        learning=None if limit is None else learning.lc_cusum(good, UNACCEPTABLE, ACCEPTABLE, proficiency_limit()),
    )
