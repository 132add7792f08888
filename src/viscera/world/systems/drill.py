"""A drill: it waits until somebody starts it, runs until its end, and keeps its result. The world adds it where a
scenario has goals.

    waiting → running → ended: met, failed, given up, found or missed

It is *met* when all goals are met at once, and has *failed* when one of them cannot be met any more, because its
measure is over its limit and only ever grows. Where something is hidden, whoever says "here it is" ends it: *found*
when all goals are met then, else *missed*. What was measured as it ended stays as it was, whatever happens afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

import numpy as np

from viscera.errors import InputError, need_number
from viscera.inputs import EndDrill, StartDrill
from viscera.scores.trial import HandTrace, Measured, Trial, Wanted
from viscera.timing import FRAME, TICK
from viscera.view import DrillState, Goal, Level, Measure, Outcome, Phase
from viscera.world.system import Hidden, Kept, Moment, Saved, System

LOOK = 8
"""Frames between two looks at the measures."""
BLEEDS = 0.05
"""Less than this is shown as 0.0 and counts as none [mL/min]."""
CLEAR = 80.0
"""With less of the view than this it is obscured [%]; as in haze."""
AS_IT_IS = "as it is"
"""`Measure.better` where neither more nor less is."""

TIME = Measure("time", "Time", "s", "From the start of the drill to its end.", digits=1, grows=True)

BLEEDING_TIME = Measure(
    "bleeding_time", "Bled for", "s", "How long anything has bled since the drill began.", digits=1, grows=True
)
OBSCURED = Measure(
    "obscured", "View obscured", "s", "How long less than 80 % of the view was left since the drill began.", digits=1,
    grows=True,
)  # fmt: skip
DRY = Measure("dry", "Dry for", "s", "How long every vessel has been closed and nothing has bled.", digits=1, side=True)

PHASES: tuple[Phase, ...] = ("waiting", "running", "ended")
OUTCOMES: tuple[Outcome, ...] = ("", "met", "failed", "given_up", "found", "missed")
NO_WISH, GIVE_UP, DECLARE = range(3)
WAITING, RUNNING, ENDED = range(3)
LARGEST_SEED = 2**63 - 1


class Drill:
    """Of one filling of a world; a reset makes another, which waits."""

    def __init__(self, levels: Sequence[Level], systems: Sequence[System]) -> None:
        """`systems` are all others of the world; their measures are what it looks at."""
        self.levels = tuple(levels)
        asked = {goal.measure for level in levels for goal in level.goals}
        measures = [measure for system in systems for measure, _ in system.measures()]
        there = {measure.name for measure in measures}
        self._lasting = [one for one in lasting(there) if not one.side or one.name in asked]
        """What is added up while it lasts."""
        self._seconds = np.zeros(2)
        """Of bleeding, and of an obscured view, since it began [s]."""
        self._dry = np.zeros(1)
        """Since anything bled [s]."""
        measures += [TIME, *self._lasting]
        measures = [measure for measure in measures if not measure.side or measure.name in asked]
        self._names = [measure.name for measure in measures]
        self._growing = {measure.name for measure in measures if measure.grows}
        self._hidden: list[Hidden] = [system.hides for system in systems if system.hides is not None]
        self._phase = np.zeros(4, dtype=np.int64)
        """Phase, outcome, level, and what a hand wishes."""
        self._ticks = np.zeros(3, dtype=np.int64)
        """At which it began, which it has reached or ended at, and frames since it began."""
        self._declared = np.zeros(3)
        """How sure a hand is, whether it has said so, and how far off it was [m]."""
        self._values = np.zeros(len(self._names))
        """All measures as it ended."""
        self._measures = {measure.name: measure for measure in measures}
        self.when_over: Callable[[], None] = lambda: None
        """Called between two ticks, once it has ended."""

    # --- what a hand wants ---

    def start(self, level: int, tick: int) -> None:
        """It begins at this tick."""
        self._phase[:] = (RUNNING, 0, level, NO_WISH)
        self._ticks[:] = (tick, tick, 0)
        self._declared[:] = 0.0
        self._values[:] = 0.0
        self._seconds[:] = 0.0
        self._dry[:] = 0.0

    def give_up(self) -> None:
        self._phase[3] = GIVE_UP

    def declare(self, certainty: float) -> None:
        """Here it is, and so sure is the hand, 0 to 1."""
        self._phase[3] = DECLARE
        self._declared[0] = certainty

    @property
    def hides(self) -> bool:
        """Whether there is something to be found."""
        return bool(self._hidden)

    @property
    def running(self) -> bool:
        return int(self._phase[0]) == RUNNING

    @property
    def goals(self) -> tuple[Goal, ...]:
        return self.levels[int(self._phase[2])].goals

    # --- once a frame ---

    def frame(self, now: Moment) -> None:
        wish, self._phase[3] = int(self._phase[3]), NO_WISH
        if not self.running:
            return
        self._ticks[1] = now.tick
        self._ticks[2] += 1
        if wish == GIVE_UP:
            self._end("given_up", now.measures())
        elif wish == DECLARE:
            self._judge_declared(now)
        elif self._ticks[2] % LOOK == 0:
            values = now.measures()
            self._add_up(values)
            self._judge({**values, **{one.name: value for one, value in self._told()}})

    def _add_up(self, values: Mapping[str, float]) -> None:
        """What lasts, since the last look."""
        bleeds = values.get("bleeding", 0.0) >= BLEEDS
        self._seconds += np.where((bleeds, values.get("view", 100.0) < CLEAR), LOOK * FRAME, 0.0)
        if DRY in self._lasting:
            # A vessel that somebody presses on does not bleed, and is not closed.
            dry = not bleeds and values.get("open_vessels", 0.0) == 0.0
            self._dry[0] = self._dry[0] + LOOK * FRAME if dry else 0.0

    def _judge(self, values: Mapping[str, float]) -> None:
        if self._failed(values):
            self._end("failed", values)
        elif all(goal.met(values[goal.measure]) for goal in self.goals):
            self._end("met", values)

    def _judge_declared(self, now: Moment) -> None:
        """Where nothing is marked yet there is nothing to judge: it goes on."""
        off = [one.declare() for one in self._hidden]
        told = [one for one in off if one is not None]
        if not told:
            return
        self._declared[1:] = (1.0, max(told))
        values = now.measures()
        self._end("found" if all(goal.met(values[goal.measure]) for goal in self.goals) else "missed", values)

    def _end(self, outcome: Outcome, values: Mapping[str, float]) -> None:
        self._phase[:2] = (ENDED, OUTCOMES.index(outcome))
        self._values[:] = [values[name] for name in self._names]
        for one in self._hidden:
            one.reveal()

    def _failed(self, values: Mapping[str, float]) -> tuple[str, ...]:
        """Measures of goals that cannot be met any more."""
        lost = [goal for goal in self.goals if goal.most is not None and values[goal.measure] > goal.most]
        return tuple(goal.measure for goal in lost if goal.measure in self._growing)

    # --- what is seen ---

    @property
    def time(self) -> float:
        """Since it began, or from there to its end [s]."""
        return TICK * float(self._ticks[1] - self._ticks[0])

    def state(self) -> DrillState:
        phase, told = int(self._phase[0]), bool(self._declared[1])
        result = dict(zip(self._names, self._values.tolist(), strict=True)) if phase == ENDED else {}
        return DrillState(
            phase=PHASES[phase],
            outcome=OUTCOMES[int(self._phase[1])],
            level=int(self._phase[2]),
            time=self.time,
            failed=self._failed(result) if phase == ENDED else (),
            result=result,
            certainty=float(self._declared[0]) if told else None,
            off=float(self._declared[2]) if told else None,
        )

    def trial(self, scenario: str, seed: int, hands: Callable[[float], tuple[HandTrace, ...]]) -> Trial | None:
        """What there is to score, once it has ended; `hands` gives what they did in so many seconds of it."""
        state = self.state()
        if state.phase != "ended":
            return None
        return Trial(
            scenario=scenario,
            seed=seed,
            level=self.levels[state.level].name,
            outcome=state.outcome,
            time=state.time,
            goals=tuple(self._wanted(goal, state.result[goal.measure]) for goal in self.goals),
            measures=state.result,
            others=self._others(state.result),
            off=state.off,
            certainty=state.certainty,
            hands=hands(state.time),
            harder=state.level + 1 < len(self.levels),
        )

    def _wanted(self, goal: Goal, value: float) -> Wanted:
        one = self._measures[goal.measure]
        return Wanted(one.name, one.label, one.unit, one.digits, goal.least, goal.most, value, one.grows)

    def _others(self, result: Mapping[str, float]) -> tuple[Measured, ...]:
        """What is scored though no goal of this level asks for it."""
        asked = {goal.measure for goal in self.goals} | {TIME.name}
        told = [(one, _better(one)) for one in self._measures.values() if _better(one) and one.name not in asked]
        return tuple(
            Measured(one.name, one.label, one.unit, one.digits, result[one.name], "" if better == AS_IT_IS else better)
            for one, better in told
        )

    def _told(self) -> list[tuple[Measure, float]]:
        lasting = dict(zip((BLEEDING_TIME, OBSCURED, DRY), [*self._seconds.tolist(), float(self._dry[0])], strict=True))
        return [(TIME, self.time), *((one, lasting[one]) for one in self._lasting)]

    def _load(self, saved: Saved) -> None:
        """States of before it added up what lasts have none of it."""
        self._kept.load({"seconds": np.zeros(2), "dry": np.zeros(1)} | saved)

    def _lands(self) -> None:
        if int(self._phase[0]) == ENDED:
            self.when_over()

    def system(self) -> System[Drill]:
        arrays = {
            "phase": self._phase, "ticks": self._ticks, "declared": self._declared, "values": self._values,
            "seconds": self._seconds,
        }  # fmt: skip
        if DRY in self._lasting:
            arrays["dry"] = self._dry
        self._kept = Kept(arrays)
        return System(
            name="goals",
            frame=self.frame,
            lands=self._lands,
            save=self._kept.save,
            load=self._load,
            measures=self._told,
            holds=self,
        )


def lasting(there: Container[str]) -> list[Measure]:
    """What a drill adds up itself, in a world that has these measures; smoke has its own clock of haze."""
    found = [BLEEDING_TIME, DRY] if "bleeding" in there else []
    return [*found, OBSCURED] if "view" in there and "hazy" not in there else found


def _better(measure: Measure) -> str:
    """As `Measure.better`; what never falls is something lost, spent or harmed, and less of it is better."""
    return measure.better or ("less" if measure.grows else "")


def check_seed(seed: object) -> None:
    """Refuses what is no seed."""
    if not (isinstance(seed, int) and 0 <= seed <= LARGEST_SEED):
        raise InputError(f"seed = {seed!r} is not allowed.", f"It is a whole number from 0 to {LARGEST_SEED}.")


def check_drill_input(one: StartDrill | EndDrill, scenario: str, drill: Drill | None) -> None:
    """Refuses what cannot be said of a drill, or where there is none."""
    if drill is None:
        raise InputError(f"{scenario} is no drill: it has no goals.", "Use it freely, or choose a scenario with goals.")
    if isinstance(one, StartDrill):
        if not (isinstance(one.level, int) and 0 <= one.level < len(drill.levels)):
            names = ", ".join(f"{number} ({level.name})" for number, level in enumerate(drill.levels))
            raise InputError(f"level = {one.level!r} is not there.", f"There are: {names}.")
        if one.seed is not None:
            check_seed(one.seed)
        return
    if one.how not in ("given_up", "found"):
        raise InputError(f"a drill cannot end as {one.how!r}.", "Use given_up or found.")
    if one.how == "found" and not drill.hides:
        raise InputError(f"nothing is hidden in {scenario}.", "The drill ends when its goals are met; or give up.")
    if not 0.0 <= need_number("certainty", one.certainty) <= 1.0:
        raise InputError(f"certainty = {one.certainty!r} is not allowed.", "It goes from 0 to 1.")
