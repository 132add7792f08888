"""A score: a table, and one sentence that says what to do better.

Every row is a measure that a reader can check. There is no sum of them, and none is called by the name of a scale that
human raters fill in (GOALS, OSATS): those see what no formula here does.

Where a task has the form of MISTELS (Fraser 2003), its score is there as well: cut-off time less time less penalties,
not below 0. Proficiency times of FLS stand beside it for tasks that have one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from viscera.scores import motion
from viscera.scores.force import EXPERT_PEAK, GENTLE, LIMITS, Force, force
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

    def as_json(self) -> dict[str, str | float | bool]:
        """Flat: what it is of, its numbers, and what to do better."""
        what = {"seed": self.seed, "level": self.level, "outcome": self.outcome, "passed": self.passed}
        return what | self.values() | {"advice": self.advice}


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
    "pattern": Form(300.0, "off_line", 1.0, 98.0, "MISTELS form; FLS: 98 s, within 2 mm"),
    "suture": Form(600.0, "off_target", 10.0, 112.0, "MISTELS form; FLS: 112 s, within 1 mm"),
}
"""By scenario; a penalty per mm² off the line and per mm off the mark is our own choice."""


def mistels(time: float, penalty: float, cut_off: float) -> float:
    """Cut-off less time less penalty [s], not below 0."""
    return max(0.0, cut_off - time - penalty)


def score(trial: Trial) -> Score:
    """Of a trial that has ended. Goals' measures come first, then the hands."""
    rows = [Row("time", "Time", "s", trial.time, 1, "less")]
    rows += [_goal_row(goal) for goal in trial.goals if goal.measure != "time"]
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
    for hand in used:
        rows += _hand_rows(hand, f"{hand.label}: " if several else "")
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
    return Row(goal.measure, goal.label, goal.unit, goal.value, goal.digits, better, f"goal: {limit}")


def _hand_rows(hand: HandTrace, prefix: str) -> list[Row]:
    where, inside, dt = hand.positions, hand.active, hand.dt
    felt = force(hand.mean_force, hand.peak_force, dt)
    along = "along the shaft" if hand.trocar is not None else "up and down"

    def row(name: str, label: str, unit: str, value: float, digits: int, better: str, note: str = "") -> Row:
        words = f"{prefix}{label[0].lower()}{label[1:]}" if prefix else label
        return Row(f"{hand.name}.{name}", words, unit, value, digits, better, note)

    over = [
        row(f"above_{limit.newtons:g}", f"Above {limit.newtons:g} N", "s", time, 1, "less", limit.words)
        for limit, time in zip(LIMITS, felt.above, strict=True)
    ]
    return [
        row("path", "Path", "cm", 100.0 * motion.path_length(where, inside), 1, "less"),
        row("ratio", "Path over straight", "", motion.path_ratio(where, inside, dt), 2, "less", "from rest to rest"),
        row("depth", "Depth path", "cm", 100.0 * motion.depth_path(where, inside, hand.trocar), 1, "less", along),
        row("smoothness", "Smoothness", "", motion.smoothness(where, inside, dt), 2, "more", "spectral arc length"),
        row("idle", "At rest", "s", motion.idle_time(where, inside, dt), 1, "less"),
        row("mean_force", "Force, mean", "N", felt.mean, 2, "less", "experts 0.9, novices 2.1: Horeman 2010, suturing"),
        row("peak_force", "Force, peak", "N", felt.peak, 2, "less", "experts 2.6, novices 4.7: Horeman 2010, suturing"),
        row("impulse", "Force over time", "N·s", felt.impulse, 2, "less"),
        *over,
    ]


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
    felt = [force(hand.mean_force, hand.peak_force, hand.dt) for hand in used]
    well = "All goals were met with a light and steady hand"
    return (
        _about_force(felt)
        or _about_motion(used)
        or (f"{well}: go on to a harder level." if trial.harder else f"{well}.")
    )


def _about_goal(goal: Wanted) -> str:
    value = f"{goal.label} was {goal.value:.{goal.digits}f} {goal.unit}".rstrip()
    if goal.over:
        return f"{value}: keep it at or below {goal.most:g}."
    return f"{value}: it takes at least {goal.least:g}."


def _about_force(felt: list[Force]) -> str:
    peak = max((one.peak for one in felt), default=0.0)
    gentle = max((one.above[0] for one in felt), default=0.0)
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
        if motion.idle_time(hand.positions, hand.active, hand.dt) > MUCH_REST * inside:
            return f"Plan the next move before you stop: the {hand.label.lower()} rested for most of the time."
    return ""


MUCH_DETOUR = 3.0
MUCH_REST = 0.5
"""From where on a sentence is worth saying; our own choice."""
