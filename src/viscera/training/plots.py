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
"""Of the small plots of measures, and the most of them (the table has all); a title's line has so many letters."""
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
        axes.tick_params(labelsize=7, color=GREY)
        axes.xaxis.label.set_fontsize(8)
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GREY)
        axes.set_xlim(0.5, max(1.5, axes.get_xlim()[1]))


def _line(axes: Any, height: float, words: str, colour: str) -> None:
    """A limit, with its meaning written on it."""
    axes.axhline(height, color=colour, ls="--", lw=1)
    across = axes.get_yaxis_transform()
    axes.annotate(words, (0.02, height), (0, 3), xycoords=across, textcoords="offset points", fontsize=7, color=colour)


def _dots(axes: Any, place: Place, good: Sequence[bool], words: tuple[str, str]) -> None:
    """Circles for what was good enough, crosses for what was not: told apart without colour too."""
    for wanted, colour, marker, label in ((True, TEAL, "o", words[0]), (False, CORAL, "x", words[1])):
        chosen = [at for at, there in enumerate(good) if there == wanted]
        if chosen:
            across, up = ([row[at] for at in chosen] for row in (place.numbers, place.values))
            axes.scatter(across, up, color=colour, marker=marker, s=16, lw=1.2, zorder=3, label=label)


def _over_trials(axes: Any, place: Place, passed: Sequence[bool], words: tuple[str, str]) -> None:
    """Values of one trainee's trials, the middle half of the cohort's, what is good enough, and the plateau."""
    middle = place.quartiles
    if middle is not None:
        axes.axhspan(middle[0], middle[2], color=GREY, alpha=0.25, lw=0, label="middle half of all who passed")
        axes.axhline(middle[1], color=GREY, lw=1)
    axes.plot(place.numbers, place.values, color=INK, lw=0.8)
    _dots(axes, place, passed, words)
    if place.plateau is not None:
        axes.axhline(place.plateau.plateau, color=TEAL, lw=1, ls="--", label="where practice leads (plateau)")
    if max(place.values) - min(place.values) < 1e-9:  # else the axis magnifies rounding
        axes.set_ylim(place.values[0] - 1.0, place.values[0] + 1.0)
    if place.limit is not None and not place.from_cohort:
        axes.axhline(place.limit, color=CORAL, lw=1, ls=":", label="goal, or number of the literature")


def _legend(made: Any, panels: Sequence[Any], columns: int = 5) -> None:
    """Below a figure: each kind of mark once, whichever of its plots has it, in as many columns as fit."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    marks = {label: mark for axes in panels for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if not marks:
        return
    renderer = FigureCanvasAgg(made).get_renderer()
    for count in range(min(columns, len(marks)), 0, -1):
        legend = made.legend(
            list(marks.values()), list(marks), loc="outside lower left", ncols=count, frameon=False, fontsize=7
        )
        if count == 1 or legend.get_window_extent(renderer).width <= made.bbox.width:
            return
        legend.remove()


def learning_figure(curve: Curve) -> Any:
    """Time over trials with the cohort's quartiles, and both CUSUMs beside it."""
    made = _figure(3.3)
    times, passing, learned = made.subplots(1, 3, width_ratios=(1.5, 1.0, 1.0))
    number = range(1, len(curve.own) + 1)
    _over_trials(times, curve.places()[0], curve.passed, ("passed", "not passed"))
    times.set(title="Time [s]", xlabel="trial", ylim=(0, 1.1 * times.get_ylim()[1]))
    chart = learning.cusum(curve.passed, ACCEPTABLE, UNACCEPTABLE)
    passing.plot(number, chart.path, color=INK, lw=1, marker=".")
    _line(passing, chart.upper, "fails too often", CORAL)
    _line(passing, chart.lower, "fails seldom enough", TEAL)
    passing.set(title="Failures, added up (CUSUM)", xlabel="trial")
    reached = lc_cusum(curve.own)
    learned.plot(number, reached.path, color=INK, lw=1, marker=".")
    _line(learned, reached.limit, "proficient", TEAL)
    learned.set(title="Proficiency (LC-CUSUM)", xlabel="trial")
    for axes in (passing, learned):
        axes.margins(y=0.12)
    _legend(made, [times])
    _tidy(times, passing, learned)
    return made


def _panels(shown: Sequence[Place], row_height: float, **options: Any) -> tuple[Any, list[Any]]:
    """One small plot for each measure, with its name."""
    rows = -(-len(shown) // COLUMNS)
    made = _figure(row_height * rows + 0.2)
    every = made.subplots(rows, COLUMNS, squeeze=False, **options).ravel()
    for axes in every[len(shown) :]:
        axes.set_visible(False)
    return made, list(every[: len(shown)])


def measures_figure(curve: Curve) -> Any | None:
    """Every measure over the trials that have it; None where there is none."""
    shown = curve.measures[:MOST_PANELS]
    if not shown:
        return None
    made, panels = _panels(shown, 1.6)
    for axes, place in zip(panels, shown, strict=True):
        _over_trials(axes, place, place.good, ("good enough", "not good enough"))
        unit = f" [{place.words.unit}]" if place.words.unit else ""
        axes.set(title="\n".join(textwrap.wrap(f"{place.label}{unit}", TITLE_WIDTH)))
    _legend(made, panels)
    _tidy(*panels)
    for axes in panels:
        axes.title.set_fontsize(7.5)
    return made


def proficiency_figure(curve: Curve) -> Any | None:
    """CUSUM and LC-CUSUM of each measure that has a limit; None where none has."""
    shown = [one for one in curve.measures if one.cusum is not None][:MOST_PANELS]
    if not shown:
        return None
    made, panels = _panels(shown, 1.5, sharex=True, sharey=True)
    for axes, place in zip(panels, shown, strict=True):
        assert place.cusum is not None
        assert place.learning is not None
        path, learned = place.cusum.path, place.learning
        axes.plot(place.numbers, path, color=INK, lw=1, marker=".", ms=3, label="not good enough, added up (CUSUM)")
        axes.axhline(place.cusum.upper, color=CORAL, ls="--", lw=0.8, label="too often")
        axes.axhline(place.cusum.lower, color=TEAL, ls=":", lw=0.8, label="seldom enough")
        axes.plot(place.numbers, learned.path, color=TEAL, lw=1.4, label="proficiency (LC-CUSUM)")
        axes.axhline(learned.limit, color=TEAL, ls="--", lw=0.8, label="proficient")
        axes.set(title="\n".join(textwrap.wrap(place.label, TITLE_WIDTH)))
    _legend(made, panels)
    _tidy(*panels)
    for axes in panels:
        axes.title.set_fontsize(7.5)
    return made


def cohort_figure(curve: Curve) -> Any:
    """Everybody's time and proficiency over their own trials."""
    made = _figure(3.3)
    times, learned = made.subplots(1, 2)
    for place, name in enumerate(curve.people):
        own = curve.of(name)
        number, label = range(1, len(own) + 1), name if place < MOST_NAMED else None
        times.plot(number, [trial.time for trial in own], lw=1, marker=".", label=label)
        learned.plot(number, lc_cusum(own).path, lw=1, marker=".")
    _line(learned, proficiency_limit(), "proficient", TEAL)
    learned.margins(y=0.12)
    times.set(title="Time [s]", xlabel="own trial", ylim=(0, 1.1 * times.get_ylim()[1]))
    learned.set(title="Proficiency (LC-CUSUM)", xlabel="own trial")
    _legend(made, [times], MOST_NAMED)
    _tidy(times, learned)
    return made
