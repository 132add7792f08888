"""A score: a table, and one sentence that says what to do better.

Every row is a measure that a reader can check. There is no sum of them, and none is called by the name of a scale that
human raters fill in (GOALS, OSATS): those see what no formula here does.

Where a task has the form of MISTELS (Fraser 2003), its score is there as well: cut-off time less time less penalties,
not below 0. Proficiency times of FLS stand beside it for tasks that have one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from viscera.scores import motion
from viscera.scores.force import EXPERT_MEAN, EXPERT_PEAK, GENTLE, LIMITS, Force, force
from viscera.scores.hands import ORDINALS, by_hand
from viscera.scores.trial import HandTrace, Trial, Wanted


@dataclass(frozen=True)
class Row:
    """One number of a score."""

    name: str
    label: str
    unit: str
    value: float
    digits: int
    better: str
    """`less`, `more`, or empty where neither is better."""
    note: str = ""
    """What it is compared with, and whose number that is."""
    limit: float | None = None
    """What is good enough, where a goal or the literature says so."""


@dataclass(frozen=True)
class Score:
    """Of one trial."""

    scenario: str
    seed: int
    level: str
    outcome: str
    passed: bool
    time: float
    """[s]"""
    rows: tuple[Row, ...]
    advice: str
    """What to do better."""

    def values(self) -> dict[str, float]:
        """By name; what could not be measured is left out."""
        return {row.name: row.value for row in self.rows if math.isfinite(row.value)}

    def summary(self) -> str:
        """The first numbers of the world besides time, in words."""
        told = [row for row in self.rows if row.name != "time" and "." not in row.name and math.isfinite(row.value)]
        return ", ".join(f"{row.label.lower()} {row.value:.{row.digits}f} {row.unit}".rstrip() for row in told[:SHOWN])

    def as_json(self) -> dict[str, str | float | bool]:
        """Flat: what it is of, its numbers, and what to do better."""
        what = {"seed": self.seed, "level": self.level, "outcome": self.outcome, "passed": self.passed}
        return what | self.values() | {"advice": self.advice}


SHOWN = 4
"""Numbers of a score that stand in a list."""


@dataclass(frozen=True)
class Form:
    """How MISTELS scores a task: `measure` is its error, each unit of which costs `penalty` seconds."""

    cut_off: float
    """[s]"""
    measure: str
    penalty: float
    proficient: float
    """Time of the proficiency that FLS asks for [s]."""
    source: str


FORMS = {
    "pattern": Form(300.0, "off_line", 1.0, 98.0, "FLS: proficient within 98 s and 2 mm"),
    "suture": Form(600.0, "off_target", 10.0, 112.0, "FLS: proficient within 112 s and 1 mm"),
}
"""By scenario; a penalty per mm² off the line and per mm off the mark is our own choice."""


def mistels(time: float, penalty: float, cut_off: float) -> float:
    """Cut-off less time less penalty [s], not below 0."""
    return max(0.0, cut_off - time - penalty)


def score(trial: Trial) -> Score:
    """Of a trial that has ended. Goals' measures come first, then what else the world measured, then the hands."""
    rows = [_time_row(trial)]
    rows += [_goal_row(goal) for goal in trial.goals if goal.measure != "time"]
    rows += [Row(one.name, one.label, one.unit, one.value, one.digits, one.better) for one in trial.others]
    if trial.off is not None:
        rows.append(Row("off", "Off the middle", "mm", 1e3 * trial.off, 1, "less"))
    if trial.certainty is not None:
        rows.append(Row("certainty", "How sure", "%", 100.0 * trial.certainty, 0, ""))
    form = FORMS.get(trial.scenario)
    if form is not None and form.measure in trial.measures:
        points = mistels(trial.time, form.penalty * trial.measures[form.measure], form.cut_off)
        rows.append(Row("mistels", "MISTELS form", "s", points, 0, "more", form.source))
    used = [hand for hand in trial.hands if hand.active.any()]
    several = len(used) > 1
    for number, held in enumerate(by_hand(used) if several else [], 1):
        rows += _rows_of(f"hand_{number}", held, f"{ORDINALS[number - 1]}: ", " and ".join(one.label for one in held))
    for hand in used:
        rows += _rows_of(hand.name, [hand], f"{hand.label}: " if several else "")
    return Score(
        trial.scenario,
        trial.seed,
        trial.level,
        trial.outcome,
        trial.passed,
        trial.time,
        tuple(rows),
        advice(trial, used),
    )


def _goal_row(goal: Wanted) -> Row:
    better = "less" if goal.most is not None else "more"
    limit = f"at most {goal.most:g}" if goal.most is not None else f"at least {goal.least:g}"
    good = goal.most if goal.most is not None else goal.least
    return Row(goal.measure, goal.label, goal.unit, goal.value, goal.digits, better, f"goal: {limit}", good)


def _time_row(trial: Trial) -> Row:
    most = next((goal.most for goal in trial.goals if goal.measure == "time"), None)
    form = FORMS.get(trial.scenario)
    good = most if most is not None else None if form is None else form.proficient
    return Row("time", "Time", "s", trial.time, 1, "less", "" if good is None else f"at most {good:g}", good)


def _rows_of(name: str, traces: Sequence[HandTrace], prefix: str, with_what: str = "") -> list[Row]:
    """Of one instrument, or of one hand and all that it held."""
    dt = traces[0].dt
    felt = _felt(traces)
    along = "along the shaft" if all(one.trocar is not None for one in traces) else "up and down"

    def total(measure: Callable[[HandTrace], float]) -> float:
        return sum(measure(one) for one in traces)

    def mean(measure: Callable[[HandTrace], float]) -> float:
        """Weighed by how long each was in the body."""
        told = [(float(one.active.sum()), measure(one)) for one in traces]
        told = [(rows, value) for rows, value in told if math.isfinite(value)]
        rows = sum(one for one, _ in told)
        return sum(one * value for one, value in told) / rows if rows else math.nan

    def row(
        kind: str, label: str, unit: str, value: float, digits: int, better: str, note: str = "",
        limit: float | None = None,
    ) -> Row:  # fmt: skip
        words = f"{prefix}{label[0].lower()}{label[1:]}" if prefix else label
        return Row(f"{name}.{kind}", words, unit, value, digits, better, note, limit)

    path = total(lambda one: motion.path_length(one.positions, one.active))
    depth = total(lambda one: motion.depth_path(one.positions, one.active, one.trocar))
    over = [
        row(f"above_{limit.newtons:g}", f"Above {limit.newtons:g} N", "s", time, 1, "less", limit.words)
        for limit, time in zip(LIMITS, felt.above, strict=True)
    ]
    mean_note, peak_note = (
        f"experts {one}: Horeman 2010, suturing" for one in ("0.9, novices 2.1", "2.6, novices 4.7")
    )
    return [
        row("path", "Path", "cm", 100.0 * path, 1, "less", with_what),
        row("ratio", "Path over straight", "", mean(_ratio), 2, "less", "from rest to rest"),
        row("depth", "Depth path", "cm", 100.0 * depth, 1, "less", along),
        row("smoothness", "Smoothness", "", mean(_smoothness), 2, "more", "spectral arc length"),
        row("idle", "At rest", "s", total(lambda one: motion.idle_time(one.positions, one.active, dt)), 1, "less"),
        row("mean_force", "Force, mean", "N", felt.mean, 2, "less", mean_note, EXPERT_MEAN),
        row("peak_force", "Force, peak", "N", felt.peak, 2, "less", peak_note, EXPERT_PEAK.newtons),
        row("impulse", "Force over time", "N·s", felt.impulse, 2, "less"),
        *over,
    ]


def _ratio(one: HandTrace) -> float:
    return motion.path_ratio(one.positions, one.active, one.dt)


def _smoothness(one: HandTrace) -> float:
    return motion.smoothness(one.positions, one.active, one.dt)


def _felt(traces: Sequence[HandTrace]) -> Force:
    """Of one or several instruments; outside the body none feels anything."""
    means, peaks = (
        np.concatenate([np.where(one.active, getattr(one, kind), 0.0) for one in traces])
        for kind in ("mean_force", "peak_force")
    )
    return force(means, peaks, traces[0].dt)


def advice(trial: Trial, used: list[HandTrace]) -> str:
    """What to do better, the gravest first."""
    lost = [goal for goal in trial.goals if not goal.met]
    if trial.outcome == "missed" and trial.off is not None:
        return f"The place was {1e3 * trial.off:.0f} mm off: press equally deep all around before you decide."
    if trial.outcome == "given_up" and lost:
        return f"Not reached: {', '.join(goal.label.lower() for goal in lost)}. Stay with it a little longer next time."
    if lost:
        # First what cannot be undone, which made it fail; then what there was too much of; then what is not done yet.
        return _about_goal(min(lost, key=lambda goal: (not (goal.over and goal.grows), not goal.over)))
    felt = [_felt([hand]) for hand in used]
    well = "All goals were met with a light and steady hand"
    return (
        _about_force(felt)
        or _about_motion(used)
        or (f"{well}: go on to a harder level." if trial.harder else f"{well}.")
    )


def _about_goal(goal: Wanted) -> str:
    unit = f" {goal.unit}".rstrip()
    value = f"{goal.label}: {goal.value:.{goal.digits}f}{unit}"
    if goal.over:
        return f"{value}. Keep it at or below {goal.most:g}{unit}."
    return f"{value}. It takes at least {goal.least:g}{unit}."


def _about_force(felt: list[Force]) -> str:
    peak = max((one.peak for one in felt), default=0.0)
    gentle = max((one.above[LIMITS.index(GENTLE)] for one in felt), default=0.0)
    if peak > EXPERT_PEAK.newtons:
        return f"Press less: the strongest push was {peak:.1f} N, experts stay below {EXPERT_PEAK.newtons:g} N."
    if gentle > 1.0:
        return f"Press less: {gentle:.0f} s above {GENTLE.newtons:g} N."
    return ""


def _about_motion(used: list[HandTrace]) -> str:
    for hand in used:
        ratio = motion.path_ratio(hand.positions, hand.active, hand.dt)
        inside = hand.dt * float(hand.active.sum())
        if ratio > MUCH_DETOUR:
            return f"Go straighter with the {hand.label.lower()}: its path was {ratio:.1f} times the straight one."
        # What is held still and works does not wait: suction in a pool, a needle that turns.
        waiting = hand.active if hand.working is None else hand.active & ~hand.working
        rested = motion.idle_time(hand.positions, waiting, hand.dt)
        if rested > max(MUCH_REST * inside, LONG_REST):
            return f"Plan the next move before you stop: the {hand.label.lower()} rested for most of the time."
    return ""


MUCH_DETOUR = 3.0
MUCH_REST = 0.5
LONG_REST = 5.0
"""From where on a sentence is worth saying; our own choice. A pin or a clip that is placed well within seconds rests
too [s]."""
