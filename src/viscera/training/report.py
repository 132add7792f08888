"""Reports: of one trainee, or of the cohort; as a page of HTML or as PDF, both with plots.

A report shows how time and every other measure of each drill came down and what failed, with CUSUM and LC-CUSUM of
passing, the plateau, and where the trainee stands among the cohort's quartiles; that of a cohort, everybody's curves.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from viscera.errors import InputError
from viscera.scores import learning
from viscera.training.places import ACCEPTABLE, FALSE_PROFICIENCY, UNACCEPTABLE, WITHIN, Place, places
from viscera.training.plots import (
    INK,
    Curve,
    cohort_figure,
    lc_cusum,
    learning_figure,
    measures_figure,
    proficiency_figure,
)
from viscera.training.store import KeptTrial, Words

STYLE = """body{font:15px/1.5 system-ui,sans-serif;color:#1b2529;max-width:860px;margin:32px auto;padding:0 20px}
h1{font-size:24px}h2{font-size:18px;margin:32px 0 6px;border-top:1px solid #dde3e6;padding-top:20px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:3px 14px 3px 0;text-align:left}
th{color:#5f6d74;font-weight:500}img{width:100%;margin:8px 0}.note{color:#5f6d74;font-size:13px}
.plot,.wide{overflow-x:auto}.wide td,.wide th{white-space:nowrap}
.plot img{min-width:640px}a{color:#14756d}
.how p{margin:6px 0}summary{cursor:pointer;color:#5f6d74}details{margin:6px 0}nav{font-size:14px}
.measures{font-size:13px}
.button{font-size:14px;padding:6px 14px;border-radius:8px;border:1px solid #b9c4ca;color:#1b2529;text-decoration:none;
display:inline-block}"""

Vocabulary = dict[tuple[str, str], dict[str, Words]]
"""What measures are called, by scenario and level, then by name (`Store.every_word`)."""

Address = Callable[[KeptTrial], str]
"""Where a trial can be watched, or where a trainee's report is; empty: nowhere."""


def nowhere(trial: KeptTrial) -> str:
    return ""


def curves(trials: Sequence[KeptTrial], trainee: str | None, words: Vocabulary | None = None) -> list[Curve]:
    """By scenario and level; of the cohort as a whole where no trainee is named."""
    drills = sorted({(trial.scenario, trial.level) for trial in trials})
    found = []
    for scenario, level in drills:
        every = tuple(one for one in trials if (one.scenario, one.level) == (scenario, level))
        own = tuple(one for one in every if trainee is None or one.trainee == trainee)
        if own:
            found.append(Curve(scenario, level, own, every, (words or {}).get((scenario, level), {})))
    return found


def facts(curve: Curve) -> list[tuple[str, str]]:
    """The table of a trainee's drill."""
    times = curve.times
    lines = [
        ("Trials", f"{len(times)}, {sum(curve.passed)} passed"),
        ("Time, last", f"{times[-1]:.1f} s"),
        ("Time, best passed", _best(curve.own)),
    ]
    level = learning.plateau(times)
    if level is not None:
        lines.append(("Where practice leads", f"{level.plateau:.1f} s (plateau), from {level.first:.1f} s at first"))
    lines += _quartiles(curve)
    lines.append(("Proficient (LC-CUSUM)", _proficient(curve.own)))
    lines.append(("To do better", curve.own[-1].advice))
    return lines


def cohort_facts(curve: Curve) -> list[tuple[str, str]]:
    """The table of a cohort's drill."""
    proficient = sum(lc_cusum(curve.of(name)).proficient_at is not None for name in curve.people)
    return [
        ("Trainees", f"{len(curve.people)}, {proficient} proficient (LC-CUSUM)"),
        ("Trials", f"{len(curve.own)}, {sum(curve.passed)} passed"),
        *_quartiles(curve),
    ]


def _quartiles(curve: Curve) -> list[tuple[str, str]]:
    middle = learning.quartiles([trial.time for trial in curve.cohort if trial.passed])
    if middle is None:
        return []
    low, half, high = middle
    return [("All who passed", f"half took {low:.1f} to {high:.1f} s, the middle one {half:.1f} s")]


def _proficient(trials: Sequence[KeptTrial]) -> str:
    at = lc_cusum(trials).proficient_at
    return "not yet" if at is None else f"after trial {at}"


def _best(trials: Sequence[KeptTrial]) -> str:
    passed = [trial.time for trial in trials if trial.passed]
    return f"{min(passed):.1f} s" if passed else "none passed"


def _figures(curve: Curve, trainee: str | None) -> list[Any]:
    found = [cohort_figure(curve)] if trainee is None else [
        learning_figure(curve), measures_figure(curve), proficiency_figure(curve)
    ]  # fmt: skip
    return [one for one in found if one is not None]


# --- a page ---


def html(
    trials: Sequence[KeptTrial],
    trainee: str | None,
    watch: Address = nowhere,
    person: Address = nowhere,
    words: Vocabulary | None = None,
    titles: Mapping[str, str] | None = None,
    above: str = "",
) -> str:
    """The report as one page without anything from elsewhere. `watch` is where a trial is seen again, `person` where
    the report of its trainee is; `titles` are what people call scenarios; `above` is HTML that comes first."""
    parts = [above, f"<h1>{escape(_title(trainee))}</h1>", f"<p class=note>{escape(_note(trials, trainee))}</p>"]
    found = curves(trials, trainee, words)
    parts.append(_HOW if found else "<p>No trial has ended yet: finish a drill, with a name under “Who are you?”.</p>")
    for curve in found:
        lines = facts(curve) if trainee is not None else cohort_facts(curve)
        told = "".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in lines)
        parts.append(f"<h2>{escape(_drill(curve, titles or {}))}</h2><table>{told}</table>")
        parts += [_picture(one) for one in _figures(curve, trainee)]
        if trainee is None:
            parts += [_people(curve, person), _cohort_measures(curve)]
        else:
            parts += [_measures(curve), _trials(curve.own, watch)]
    head = "<meta charset=utf-8><meta name=viewport content='width=device-width'>"
    head += f"<title>{escape(_title(trainee))}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body>{''.join(parts)}</body></html>"


def _picture(figure: Any) -> str:
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=150)
    data = base64.b64encode(image.getvalue()).decode()
    return f'<div class=plot><img alt="Learning curve" src="data:image/png;base64,{data}"></div>'


_HOW = (
    "<details class=how><summary>How to read this</summary>"
    "<p>A dot is a trial that passed, a cross one that did not. The grey band is the middle half of all who passed.</p>"
    "<p><b>Failures, added up (CUSUM)</b>: a failure goes up, a success a little down. Above the red line failures "
    f"come too often (nearer {UNACCEPTABLE:.0%} than {ACCEPTABLE:.0%}); below the green one, seldom enough.</p>"
    "<p><b>Proficiency (LC-CUSUM)</b>: a success goes up, a failure far down, never below 0. Who reaches the line "
    f"counts as proficient; of those who keep failing {UNACCEPTABLE:.0%} of their trials, {FALSE_PROFICIENCY:.0%} "
    f"reach it by luck within {WITHIN} trials.</p>"
    "<p><b>Where practice leads (plateau)</b>: what a curve through all trials comes to with many more of them.</p>"
    "<p>In the plots of each measure a trial is good enough within the goal or the number of the literature; where "
    "there is none, when it is as good as three quarters of all trials that passed.</p></details>"
)


def _drill(curve: Curve, titles: Mapping[str, str]) -> str:
    return f"{titles.get(curve.scenario, curve.scenario)}, {curve.level}"


def _linked(words: str, address: str) -> str:
    return f'<a href="{escape(address)}">{escape(words)}</a>' if address else escape(words)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML."""
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    titles = "".join(f"<th>{word}</th>" for word in head)
    return f"<div class=wide><table><tr>{titles}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table></div>"


def _trials(trials: Sequence[KeptTrial], watch: Address) -> str:
    rows = []
    for number, one in enumerate(trials, 1):
        address = watch(one)
        told = (str(number), f"{one.ended:%Y-%m-%d %H:%M}", one.outcome.replace("_", " "), f"{one.time:.1f} s")
        rows.append([*map(escape, told), _linked("watch", address) if address else ""])
    return f"<details><summary>All trials</summary>{_table(('', 'Ended (UTC)', 'Outcome', 'Time', ''), rows)}</details>"


MEASURE_HEAD = ("Measure", "Last", "Best", "All who passed", "Plateau", "Good enough", "Failures", "Proficient")


def measure_row(place: Place) -> list[str]:
    """Of the table of all measures: words for each column of `MEASURE_HEAD`."""
    best = place.best
    state = "–"
    if place.cusum is not None:
        last = place.cusum.path[-1]
        state = "too often" if last >= place.cusum.upper else "seldom" if last <= place.cusum.lower else "open"
    return [
        place.label,
        place.said(place.values[-1]),
        "–" if best is None else place.said(best),
        _middle(place),
        "–" if place.plateau is None else place.number(place.plateau.plateau),
        _good_enough(place),
        state,
        "–" if place.learning is None else "not yet" if place.learning.proficient_at is None
        else f"after {place.learning.proficient_at}",
    ]  # fmt: skip


def _middle(place: Place) -> str:
    """The middle half of all trials that passed."""
    if place.quartiles is None:
        return "–"
    low, _, high = map(place.number, place.quartiles)
    return low if low == high else f"{low} to {high}"


def _good_enough(place: Place) -> str:
    if place.limit is None:
        return "–"
    sign = {"less": "≤", "more": "≥"}.get(place.words.better, "")
    return f"{sign} {place.number(place.limit)}{' (cohort)' if place.from_cohort else ''}"


def _measures(curve: Curve) -> str:
    rows = [list(map(escape, measure_row(place))) for place in curve.places()]
    table = _table(MEASURE_HEAD, rows).replace("<table>", "<table class=measures>", 1)
    return f"<details open><summary>Every measure</summary>{table}</details>"


def _people(curve: Curve, person: Address) -> str:
    rows = []
    for name in curve.people:
        own = curve.of(name)
        told = (
            str(len(own)),
            str(sum(one.passed for one in own)),
            f"{own[-1].time:.1f} s",
            _best(own),
            _proficient(own),
            weakest(places(own, curve.cohort, curve.words)),
        )
        rows.append([_linked(name, person(own[-1])), *map(escape, told)])
    return _table(("Trainee", "Trials", "Passed", "Last", "Best passed", "Proficient", "Needs work"), rows)


def weakest(measures: Sequence[Place]) -> str:
    """The measure that was least often good enough in the newest trials; empty where all were."""
    rated = [one for one in measures if one.limit is not None and one.words.better in ("less", "more")]
    shares = {one.label: sum(one.good[-NEWEST:]) / len(one.good[-NEWEST:]) for one in rated}
    label = min(shares, key=shares.__getitem__, default="")
    return label if label and shares[label] < 1.0 else ""


NEWEST = 5
"""Trials that say what somebody needs work on."""


def _cohort_measures(curve: Curve) -> str:
    """What everybody reaches in each measure, and in how many trials it was good enough."""
    rows = []
    for place in places(curve.own, curve.cohort, curve.words):
        share = "–" if place.limit is None else f"{sum(place.good) / len(place.good):.0%}"
        unit = f" [{place.words.unit}]" if place.words.unit else ""
        rows.append([escape(word) for word in (place.label + unit, _middle(place), _good_enough(place), share)])
    table = _table(("Measure", "All who passed", "Good enough", "In so many trials"), rows)
    return f"<details><summary>Every measure</summary>{table}</details>"


# --- files ---


def write(
    trials: Sequence[KeptTrial],
    trainee: str | None,
    path: Path,
    words: Vocabulary | None = None,
    titles: Mapping[str, str] | None = None,
) -> None:
    """To a file that ends in .html or .pdf."""
    if not curves(trials, trainee):
        raise InputError("there is no trial to report on.", "Finish a drill first, with a trainee's name in the page.")
    try:
        if path.suffix == ".html":
            path.write_text(html(trials, trainee, words=words, titles=titles), encoding="utf-8")
        elif path.suffix == ".pdf":
            _write_pdf(trials, trainee, path, words, titles or {})
        else:
            raise InputError(f"cannot write a report to {path.name!r}.", "Give a file that ends in .html or .pdf.")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}.", "Choose another file.") from error


def _write_pdf(
    trials: Sequence[KeptTrial],
    trainee: str | None,
    path: Path,
    words: Vocabulary | None,
    titles: Mapping[str, str],
) -> None:
    """Some pages a drill: its curves with the facts, then every measure, then their CUSUMs."""
    from matplotlib.backends.backend_pdf import PdfPages

    with PdfPages(path) as pages:
        for curve in curves(trials, trainee, words):
            lines = facts(curve) if trainee is not None else cohort_facts(curve)
            for number, page in enumerate(_figures(curve, trainee)):
                first = lines if number == 0 else []
                top = TOP - LINE * len(first)
                height = min(page.get_size_inches()[1] / PAPER[1], top - BOTTOM)
                page.set_size_inches(*PAPER)
                page.get_layout_engine().set(rect=(0.04, top - height, 0.92, height))
                page.text(0.06, 0.95, _title(trainee), fontsize=16, weight="bold", color=INK)
                page.text(0.06, 0.92, _drill(curve, titles), fontsize=12, color=INK)
                for line, (key, value) in enumerate(first):
                    page.text(0.06, 0.885 - LINE * line, key, fontsize=8.5, color="#5f6d74")
                    page.text(0.32, 0.885 - LINE * line, value, fontsize=8.5, color=INK)
                page.text(0.06, 0.04, _note(trials, trainee), fontsize=7, color="#5f6d74", wrap=True)
                pages.savefig(page)


PAPER = (8.27, 11.69)
"""A4, upright [inch]."""
TOP, BOTTOM, LINE = 0.89, 0.08, 0.02
"""Where plots begin and end on a page, and how high a line of text is, as shares of its height."""


def _title(trainee: str | None) -> str:
    return "Cohort" if trainee is None else f"Trials of {trainee}"


def _note(trials: Sequence[KeptTrial], trainee: str | None) -> str:
    mine = [trial for trial in trials if trainee is None or trial.trainee == trainee]
    first, last = (f"{mine[place].ended:%Y-%m-%d}" if mine else "" for place in (0, -1))
    days = first if first == last else f"{first} to {last}"
    count = "1 trial" if len(mine) == 1 else f"{len(mine)} trials"
    return (
        f"{', '.join(filter(None, (count, days)))}. CUSUM with failure rates {ACCEPTABLE:g} and {UNACCEPTABLE:g}; "
        f"LC-CUSUM calls "
        f"{FALSE_PROFICIENCY:.0%} of those who stay at {UNACCEPTABLE:g} proficient within {WITHIN} trials. "
        "Numbers of a simulator; no rating by a person, and no licence to operate."
    )
