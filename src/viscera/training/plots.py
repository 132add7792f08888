"""Plots of a report: of one trainee, of each measure, of a cohort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from viscera.scores import learning
from viscera.training.store import KeptTrial

ACCEPTABLE, UNACCEPTABLE = 0.1, 0.3
"""Failure rates of CUSUM and of LC-CUSUM; our own choice, as for common procedures."""
FALSE_PROFICIENCY, WITHIN = 0.05, 50
"""Share of learners who stay inadequate and are called proficient, within so many trials."""
INK, TEAL, CORAL, GREY = "#1b2529", "#1b8f86", "#d3543f", "#98a4aa"
WIDTH = 8.2
"""Of a figure [inch]."""
COLUMNS, MOST_PANELS = 4, 12
"""Of the small plots of measures."""
MOST_NAMED = 8
"""Trainees who are named in a cohort's plot; the table has all."""


@dataclass(frozen=True)
class Curve:
    """All trials of one drill that belong into a report."""

    scenario: str
    level: str
    own: tuple[KeptTrial, ...]
    cohort: tuple[KeptTrial, ...]
    """Everybody's, own ones included."""

    @property
    def passed(self) -> list[bool]:
        return [trial.passed for trial in self.own]

    @property
    def times(self) -> list[float]:
        return [trial.time for trial in self.own]

    @property
    def people(self) -> list[str]:
        return sorted({trial.trainee for trial in self.own})

    def of(self, name: str) -> list[KeptTrial]:
        return [trial for trial in self.own if trial.trainee == name]

    @property
    def measures(self) -> list[str]:
        """All but time that were measured twice at least, those of most trials first."""
        counts: dict[str, int] = {}
        for trial in self.own:
            for name in trial.values:
                counts[name] = counts.get(name, 0) + 1
        often = [name for name, count in counts.items() if count > 1 and name != "time"]
        return sorted(often, key=lambda name: (-counts[name], "." in name))


@lru_cache(maxsize=1)
def proficiency_limit() -> float:
    return learning.lc_limit(UNACCEPTABLE, ACCEPTABLE, WITHIN, FALSE_PROFICIENCY)


def lc_cusum(trials: Sequence[KeptTrial]) -> learning.LearningCusum:
    """Whether one trainee is proficient, from their trials in their order."""
    return learning.lc_cusum([one.passed for one in trials], UNACCEPTABLE, ACCEPTABLE, proficiency_limit())


def _figure(height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def _tidy(*panels: Any) -> None:
    for axes in panels:
        axes.title.set_fontsize(9)
        axes.tick_params(labelsize=7)
        axes.xaxis.label.set_fontsize(8)
        axes.xaxis.get_major_locator().set_params(integer=True)


def _over_trials(axes: Any, trials: Sequence[KeptTrial], values: Sequence[float], cohort: Sequence[float]) -> None:
    """Values of one trainee's trials, the middle half of the cohort's, and the plateau."""
    number = range(1, len(values) + 1)
    middle = learning.quartiles(list(cohort))
    if middle is not None:
        axes.axhspan(middle[0], middle[2], color=GREY, alpha=0.25, lw=0, label="cohort, middle half")
        axes.axhline(middle[1], color=GREY, lw=1)
    axes.plot(number, values, color=INK, lw=0.8)
    axes.scatter(number, values, c=[TEAL if trial.passed else CORAL for trial in trials], zorder=3)
    level = learning.plateau(list(values))
    if level is not None:
        axes.axhline(level.plateau, color=TEAL, lw=1, ls="--", label="plateau")


def learning_figure(curve: Curve) -> Any:
    """Time over trials with the cohort's quartiles, and both CUSUMs beside it."""
    made = _figure(3.1)
    times, passing, learned = made.subplots(1, 3, width_ratios=(1.5, 1.0, 1.0))
    number = range(1, len(curve.own) + 1)
    _over_trials(times, curve.own, curve.times, [trial.time for trial in curve.cohort if trial.passed])
    times.set(title="Time [s]", xlabel="trial", ylim=(0, None))
    if times.get_legend_handles_labels()[0]:
        times.legend(frameon=False, fontsize=7)
    chart = learning.cusum(curve.passed, ACCEPTABLE, UNACCEPTABLE)
    passing.plot(number, chart.path, color=INK)
    passing.axhline(chart.upper, color=CORAL, ls="--", lw=1)
    passing.axhline(chart.lower, color=TEAL, ls="--", lw=1)
    passing.set(title="CUSUM: failures", xlabel="trial")
    told = lc_cusum(curve.own)
    learned.plot(number, told.path, color=INK)
    learned.axhline(told.limit, color=TEAL, ls="--", lw=1)
    learned.set(title="LC-CUSUM: proficiency", xlabel="trial")
    _tidy(times, passing, learned)
    return made


def measures_figure(curve: Curve) -> Any | None:
    """Every measure over the trials that have it; None where there is none."""
    names = curve.measures[:MOST_PANELS]
    if not names:
        return None
    rows = -(-len(names) // COLUMNS)
    made = _figure(1.6 * rows)
    panels = made.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        trials = [trial for trial in curve.own if name in trial.values]
        cohort = [trial.values[name] for trial in curve.cohort if trial.passed and name in trial.values]
        _over_trials(axes, trials, [trial.values[name] for trial in trials], cohort)
        axes.set(title=name.replace(".", ": ").replace("_", " "))
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    _tidy(*panels[: len(names)])
    return made


def cohort_figure(curve: Curve) -> Any:
    """Everybody's time and proficiency over their own trials."""
    made = _figure(3.1)
    times, learned = made.subplots(1, 2)
    for place, name in enumerate(curve.people):
        own = curve.of(name)
        number, label = range(1, len(own) + 1), name if place < MOST_NAMED else None
        times.plot(number, [trial.time for trial in own], lw=1, marker=".", label=label)
        learned.plot(number, lc_cusum(own).path, lw=1)
    learned.axhline(proficiency_limit(), color=TEAL, ls="--", lw=1)
    times.set(title="Time [s]", xlabel="own trial", ylim=(0, None))
    learned.set(title="LC-CUSUM: proficiency", xlabel="own trial")
    times.legend(frameon=False, fontsize=7)
    _tidy(times, learned)
    return made
