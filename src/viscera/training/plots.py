"""Plots of a report: of one trainee, of each measure, of a cohort."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from viscera.scores import learning
from viscera.training.places import ACCEPTABLE, UNACCEPTABLE, Place, places, proficiency_limit
from viscera.training.store import KeptTrial, Words

INK, TEAL, CORAL, GREY = "#1b2529", "#1b8f86", "#d3543f", "#98a4aa"
WIDTH = 8.2
"""Of a figure [inch]."""
COLUMNS, MOST_PANELS, TITLE_WIDTH = 4, 24, 26
"""Of the small plots of measures; a title's line has so many letters."""
MOST_LINES = 9
"""Measures whose CUSUMs are drawn; the table has all."""
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
    words: dict[str, Words] = field(default_factory=dict)
    """What measures are called."""

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

    def places(self) -> list[Place]:
        """Of each measure, time first."""
        return places(self.own, self.cohort, self.words)

    @property
    def measures(self) -> list[Place]:
        """All but time that were measured twice at least: what the world measured first, then the hands."""
        return [one for one in self.places() if one.name != "time" and len(one.values) > 1]


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
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        left, right = axes.get_xlim()
        if right - left < 1.0:  # a single trial
            axes.set_xlim(0.5, 1.5)


def _over_trials(axes: Any, place: Place, passed: Sequence[bool]) -> None:
    """Values of one trainee's trials, the middle half of the cohort's, what is good enough, and the plateau."""
    number = range(1, len(place.values) + 1)
    middle = place.quartiles
    if middle is not None:
        axes.axhspan(middle[0], middle[2], color=GREY, alpha=0.25, lw=0, label="cohort, middle half")
        axes.axhline(middle[1], color=GREY, lw=1)
    axes.plot(number, place.values, color=INK, lw=0.8)
    axes.scatter(number, place.values, c=[TEAL if one else CORAL for one in passed], s=14, zorder=3)
    if place.plateau is not None:
        axes.axhline(place.plateau.plateau, color=TEAL, lw=1, ls="--", label="plateau")
    if max(place.values) - min(place.values) < 1e-9:  # else the axis magnifies rounding
        axes.set_ylim(place.values[0] - 1.0, place.values[0] + 1.0)
    if place.limit is not None and not place.from_cohort:
        axes.axhline(place.limit, color=CORAL, lw=1, ls=":", label="good enough")


def learning_figure(curve: Curve) -> Any:
    """Time over trials with the cohort's quartiles, and both CUSUMs beside it."""
    made = _figure(3.1)
    times, passing, learned = made.subplots(1, 3, width_ratios=(1.5, 1.0, 1.0))
    number = range(1, len(curve.own) + 1)
    _over_trials(times, curve.places()[0], curve.passed)
    times.set(title="Time [s]", xlabel="trial", ylim=(0, 1.1 * times.get_ylim()[1]))
    if times.get_legend_handles_labels()[0]:
        times.legend(frameon=False, fontsize=7)
    chart = learning.cusum(curve.passed, ACCEPTABLE, UNACCEPTABLE)
    passing.plot(number, chart.path, color=INK, lw=1, marker=".")
    passing.axhline(chart.upper, color=CORAL, ls="--", lw=1)
    passing.axhline(chart.lower, color=TEAL, ls="--", lw=1)
    passing.set(title="CUSUM: failures", xlabel="trial")
    told = lc_cusum(curve.own)
    learned.plot(number, told.path, color=INK, lw=1, marker=".")
    learned.axhline(told.limit, color=TEAL, ls="--", lw=1)
    learned.set(title="LC-CUSUM: proficiency", xlabel="trial")
    _tidy(times, passing, learned)
    return made


def measures_figure(curve: Curve) -> Any | None:
    """Every measure over the trials that have it; None where there is none."""
    shown = curve.measures[:MOST_PANELS]
    if not shown:
        return None
    rows = -(-len(shown) // COLUMNS)
    made = _figure(1.6 * rows)
    panels = made.subplots(rows, COLUMNS, squeeze=False).ravel()
    for axes, place in zip(panels, shown, strict=False):
        _over_trials(axes, place, place.good)
        unit = f" [{place.words.unit}]" if place.words.unit else ""
        axes.set(title="\n".join(textwrap.wrap(f"{place.label}{unit}", TITLE_WIDTH)))
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    _tidy(*panels[: len(shown)])
    for axes in panels[: len(shown)]:
        axes.title.set_fontsize(7.5)
    return made


def proficiency_figure(curve: Curve) -> Any | None:
    """CUSUM and LC-CUSUM of each measure that has a limit; None where none has."""
    shown = [one for one in curve.measures if one.cusum is not None][:MOST_LINES]
    if not shown:
        return None
    made = _figure(3.2)
    passing, learned = made.subplots(1, 2)
    for place in shown:
        number = range(1, len(place.values) + 1)
        assert place.cusum is not None
        assert place.learning is not None
        passing.plot(number, place.cusum.path, lw=1, marker=".", ms=3, label=place.label)
        learned.plot(number, place.learning.path, lw=1, marker=".", ms=3)
    chart = shown[0].cusum
    assert chart is not None
    passing.axhline(chart.upper, color=CORAL, ls="--", lw=1)
    passing.axhline(chart.lower, color=TEAL, ls="--", lw=1)
    learned.axhline(proficiency_limit(), color=TEAL, ls="--", lw=1)
    passing.set(title="CUSUM of each measure: not good enough", xlabel="trial")
    learned.set(title="LC-CUSUM of each measure: proficiency", xlabel="trial")
    made.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=6.5)
    _tidy(passing, learned)
    return made


def cohort_figure(curve: Curve) -> Any:
    """Everybody's time and proficiency over their own trials."""
    made = _figure(3.1)
    times, learned = made.subplots(1, 2)
    for place, name in enumerate(curve.people):
        own = curve.of(name)
        number, label = range(1, len(own) + 1), name if place < MOST_NAMED else None
        times.plot(number, [trial.time for trial in own], lw=1, marker=".", label=label)
        learned.plot(number, lc_cusum(own).path, lw=1, marker=".")
    learned.axhline(proficiency_limit(), color=TEAL, ls="--", lw=1)
    times.set(title="Time [s]", xlabel="own trial", ylim=(0, 1.1 * times.get_ylim()[1]))
    learned.set(title="LC-CUSUM: proficiency", xlabel="own trial")
    times.legend(frameon=False, fontsize=7)
    _tidy(times, learned)
    return made
