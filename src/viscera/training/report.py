"""Reports: of one trainee, or of the cohort; as a page of HTML or as PDF, both with plots.

A report shows how the time of each drill came down and what failed, with CUSUM and LC-CUSUM of passing, the plateau,
and where the trainee stands among the cohort's quartiles.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

from viscera.errors import InputError
from viscera.scores import learning
from viscera.training.store import KeptTrial

ACCEPTABLE, UNACCEPTABLE = 0.1, 0.3
"""Failure rates of CUSUM and of LC-CUSUM; our own choice, as for common procedures."""
FALSE_PROFICIENCY, WITHIN = 0.05, 50
"""Share of learners who stay inadequate and are called proficient, within so many trials."""
INK, TEAL, CORAL, GREY = "#1b2529", "#1b8f86", "#d3543f", "#98a4aa"

STYLE = """body{font:15px/1.5 system-ui,sans-serif;color:#1b2529;max-width:860px;margin:32px auto;padding:0 20px}
h1{font-size:24px}h2{font-size:18px;margin:32px 0 6px;border-top:1px solid #dde3e6;padding-top:20px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:3px 14px 3px 0;text-align:left}
th{color:#5f6d74;font-weight:500}img{width:100%;margin:8px 0}.note{color:#5f6d74;font-size:13px}"""


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


def curves(trials: Sequence[KeptTrial], trainee: str | None) -> list[Curve]:
    """By scenario and level; of the cohort as a whole where no trainee is named."""
    drills = sorted({(trial.scenario, trial.level) for trial in trials})
    found = []
    for scenario, level in drills:
        every = tuple(one for one in trials if (one.scenario, one.level) == (scenario, level))
        own = tuple(one for one in every if trainee is None or one.trainee == trainee)
        if own:
            found.append(Curve(scenario, level, own, every))
    return found


@lru_cache(maxsize=1)
def proficiency_limit() -> float:
    return learning.lc_limit(UNACCEPTABLE, ACCEPTABLE, WITHIN, FALSE_PROFICIENCY)


def facts(curve: Curve) -> list[tuple[str, str]]:
    """The table of a drill."""
    times, cohort = curve.times, [trial.time for trial in curve.cohort if trial.passed]
    told = learning.lc_cusum(curve.passed, UNACCEPTABLE, ACCEPTABLE, proficiency_limit())
    lines = [
        ("Trials", f"{len(times)}, {sum(curve.passed)} passed"),
        ("Time, last", f"{times[-1]:.1f} s"),
        ("Time, best passed", _best(curve.own)),
    ]
    level = learning.plateau(times)
    if level is not None:
        lines.append(("Plateau of time", f"{level.plateau:.1f} s, from {level.first:.1f} s at first"))
    middle = learning.quartiles(cohort)
    if middle is not None:
        lines.append(("Cohort, quartiles of time", ", ".join(f"{value:.1f}" for value in middle) + " s"))
    at = told.proficient_at
    lines.append(("Proficient (LC-CUSUM)", "not yet" if at is None else f"after trial {at}"))
    lines.append(("To do better", curve.own[-1].advice))
    return lines


def _best(trials: Sequence[KeptTrial]) -> str:
    passed = [trial.time for trial in trials if trial.passed]
    return f"{min(passed):.1f} s" if passed else "none passed"


def figure(curve: Curve) -> Any:
    """Time over trials with the cohort's quartiles, and both CUSUMs below each other."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(8.2, 3.1), layout="constrained")
    times, passing, learned = made.subplots(1, 3, width_ratios=(1.5, 1.0, 1.0))
    number = range(1, len(curve.own) + 1)
    colours = [TEAL if trial.passed else CORAL for trial in curve.own]
    middle = learning.quartiles([trial.time for trial in curve.cohort if trial.passed])
    if middle is not None:
        times.axhspan(middle[0], middle[2], color=GREY, alpha=0.25, lw=0, label="cohort, middle half")
        times.axhline(middle[1], color=GREY, lw=1)
    times.plot(number, curve.times, color=INK, lw=0.8)
    times.scatter(number, curve.times, c=colours, zorder=3)
    level = learning.plateau(curve.times)
    if level is not None:
        times.axhline(level.plateau, color=TEAL, lw=1, ls="--", label="plateau")
    times.set(title="Time [s]", xlabel="trial", ylim=(0, None))
    if times.get_legend_handles_labels()[0]:
        times.legend(frameon=False, fontsize=7)
    chart = learning.cusum(curve.passed, ACCEPTABLE, UNACCEPTABLE)
    passing.plot(number, chart.path, color=INK)
    passing.axhline(chart.upper, color=CORAL, ls="--", lw=1)
    passing.axhline(chart.lower, color=TEAL, ls="--", lw=1)
    passing.set(title="CUSUM: failures", xlabel="trial")
    told = learning.lc_cusum(curve.passed, UNACCEPTABLE, ACCEPTABLE, proficiency_limit())
    learned.plot(number, told.path, color=INK)
    learned.axhline(told.limit, color=TEAL, ls="--", lw=1)
    learned.set(title="LC-CUSUM: proficiency", xlabel="trial")
    for axes in (times, passing, learned):
        axes.title.set_fontsize(9)
        axes.tick_params(labelsize=7)
        axes.xaxis.label.set_fontsize(8)
        axes.xaxis.get_major_locator().set_params(integer=True)
    return made


def html(trials: Sequence[KeptTrial], trainee: str | None) -> str:
    """The report as one page without anything from elsewhere."""
    parts = [f"<h1>{escape(_title(trainee))}</h1>", f"<p class=note>{escape(_note(trials, trainee))}</p>"]
    for curve in curves(trials, trainee):
        image = io.BytesIO()
        figure(curve).savefig(image, format="png", dpi=150)
        picture = base64.b64encode(image.getvalue()).decode()
        lines = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in facts(curve))
        parts.append(f"<h2>{escape(curve.scenario)}, {escape(curve.level)}</h2><table>{lines}</table>")
        parts.append(f'<img alt="Learning curve" src="data:image/png;base64,{picture}">')
        if trainee is None:
            parts.append(_people(curve))
    head = f"<meta charset=utf-8><title>{escape(_title(trainee))}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{''.join(parts)}</body></html>"


def _people(curve: Curve) -> str:
    names = sorted({trial.trainee for trial in curve.own})
    lines = []
    for name in names:
        own = [trial for trial in curve.own if trial.trainee == name]
        told = learning.lc_cusum([one.passed for one in own], UNACCEPTABLE, ACCEPTABLE, proficiency_limit())
        state = "not yet" if told.proficient_at is None else f"after {told.proficient_at}"
        cells = (name, str(len(own)), str(sum(one.passed for one in own)), _best(own), state)
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{word}</th>" for word in ("Trainee", "Trials", "Passed", "Best", "Proficient"))
    return f"<table><tr>{head}</tr>{''.join(lines)}</table>"


def write(trials: Sequence[KeptTrial], trainee: str | None, path: Path) -> None:
    """To a file that ends in .html or .pdf."""
    if not curves(trials, trainee):
        raise InputError("there is no trial to report on.", "Finish a drill first, with a trainee's name in the page.")
    try:
        if path.suffix == ".html":
            path.write_text(html(trials, trainee), encoding="utf-8")
        elif path.suffix == ".pdf":
            _write_pdf(trials, trainee, path)
        else:
            raise InputError(f"cannot write a report to {path.name!r}.", "Give a file that ends in .html or .pdf.")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.", "Choose another file.") from error


def _write_pdf(trials: Sequence[KeptTrial], trainee: str | None, path: Path) -> None:
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(path) as pages:
        for curve in curves(trials, trainee):
            page = figure(curve)
            page.set_size_inches(8.27, 11.69)
            page.get_layout_engine().set(rect=(0.04, 0.42, 0.92, 0.26))
            page.text(0.06, 0.95, _title(trainee), fontsize=16, weight="bold", color=INK)
            page.text(0.06, 0.92, f"{curve.scenario}, {curve.level}", fontsize=12, color=INK)
            for line, (key, value) in enumerate(facts(curve)):
                page.text(0.06, 0.885 - 0.02 * line, key, fontsize=8.5, color="#5f6d74")
                page.text(0.32, 0.885 - 0.02 * line, value, fontsize=8.5, color=INK)
            page.text(0.06, 0.05, _note(trials, trainee), fontsize=7, color="#5f6d74", wrap=True)
            pages.savefig(page)


def _title(trainee: str | None) -> str:
    return "Cohort" if trainee is None else f"Trials of {trainee}"


def _note(trials: Sequence[KeptTrial], trainee: str | None) -> str:
    mine = [trial for trial in trials if trainee is None or trial.trainee == trainee]
    days = f"{mine[0].ended:%Y-%m-%d} to {mine[-1].ended:%Y-%m-%d}" if mine else "no trials"
    return (
        f"{len(mine)} trials, {days}. CUSUM with failure rates {ACCEPTABLE:g} and {UNACCEPTABLE:g}; LC-CUSUM calls "
        f"{FALSE_PROFICIENCY:.0%} of those who stay at {UNACCEPTABLE:g} proficient within {WITHIN} trials. "
        "Numbers of a simulator; no rating by a person, and no licence to operate."
    )
