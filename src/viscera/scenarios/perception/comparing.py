"""Regular and adaptive water one after the other, blind: which of both is finer? (Elmasdotter §6.4 asks for it.)

Two fluids fill the same pool, one of small particles alone, one that splits where the viewer looks. A trial shows each
from its beginning for some seconds, in an order that the world's seed gives and nobody sees, then asks. Both are drawn
as the same liquid, with balls of one size; no count, disc or setting says which is which. `gaze.perception` has the
order, the answers and the test.

    waiting → first → dark → second → asking → (the next trial) … → done

An answer counts while it is asked for. Where the environment names a folder (`VISCERA_STUDY`), answers are written
there after each trial; the file of a viewer whom the world's seed numbers is never written over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from viscera import water
from viscera.gaze.perception import Study
from viscera.inputs import SetParameter
from viscera.timing import FRAME
from viscera.view import Measure, Parameter, Particles
from viscera.water.state import Fluid
from viscera.world.system import LiveParameter, Moment, Saved, Show, System
from viscera.world.systems.adaptive_water import DISC, DRAWN, SOURCE, Refined, adapting, full_volume

TRIALS = 24
SHOWN, DARK = 6.0, 0.7
"""How long each water is shown, and nothing between them [s]."""
FOLDER = "VISCERA_STUDY"
WAITING, FIRST, BETWEEN, SECOND, ASKING, DONE = range(6)

ANSWER = Parameter(
    "finer", "Which was finer?", "", 0.0, 2.0, 0.0, "Watch begins; then say it after both were shown.",
    choices=("watch", "first", "second"),
)  # fmt: skip
ANSWERS = Measure("answers", "Answers", "", f"Of {TRIALS}.", digits=0)


@dataclass(eq=False)
class Pair:
    """The two waters of a study, as a scenario has made them."""

    regular: Fluid
    adaptive: Refined
    study: Study
    seed: int
    """The number of the viewer."""
    shown: float = SHOWN
    """How long each is shown [s]."""
    phase: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    """Phase, frames in it, and the trial."""


def model_viewer(pair: Pair, sees: float) -> Callable[[], list[SetParameter]]:
    """What a viewer who sees the difference with this probability, and else guesses, says in each frame."""
    rng = np.random.default_rng([1831, pair.seed])

    def say() -> list[SetParameter]:
        if pair.phase[0] == WAITING:
            return [SetParameter(ANSWER.name, 0.0)]
        if pair.phase[0] != ASKING:
            return []
        truth = pair.study.trials[int(pair.phase[2])].first == "regular"
        first = truth if rng.random() < sees else bool(rng.random() < 0.5)
        return [SetParameter(ANSWER.name, 1.0 if first else 2.0)]

    return say


def comparing(pair: Pair) -> System[Pair]:
    return _Comparing(pair).system()


class _Comparing:
    def __init__(self, pair: Pair) -> None:
        self._pair, self._study = pair, pair.study
        self._inner = adapting(pair.adaptive, pair.seed)
        for one in self._inner.parameters:
            if one.parameter is DISC:
                one.change(0.0)
        fluid = pair.regular
        self._step = fluid.device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
        self._begins = {"regular": water.save(fluid), "adaptive": self._inner.save()}
        self._phase = pair.phase
        self._lasts = {FIRST: pair.shown, BETWEEN: DARK, SECOND: pair.shown}
        self._answers = np.zeros(len(self._study.trials), dtype=np.int64)
        """1 for the first, 2 for the second, 0 where there is none yet."""
        self._said = 0
        self._drawn = np.zeros((max(fluid.capacity, pair.adaptive.fluid.capacity), 4), dtype=np.float32)
        self._count = 0
        self._file: Path | None = None

    def system(self) -> System[Pair]:
        radius = DRAWN * self._pair.regular.params.spacing
        full = full_volume(self._pair.adaptive.fluid)
        look = Particles("water", "water", radius, len(self._drawn), "volume", volume=full)
        source = [one for one in self._inner.parameters if one.parameter is SOURCE]
        return System(
            name="study",
            frame=self.frame,
            save=self._save,
            load=self._load,
            shows=[Show(look, {"water": self._drawn}, lambda: {"water": self._count})],
            measures=lambda: [(ANSWERS, float(np.count_nonzero(self._answers)))],
            warns=self._says,
            parameters=[LiveParameter(ANSWER, self._answer), *source],
            tables=self._inner.tables,
            holds=self._pair,
        )

    def _answer(self, value: float) -> None:
        self._said = int(value) + 1

    def frame(self, now: Moment) -> None:
        said, self._said = self._said - 1, 0
        phase = int(self._phase[0])
        if phase == WAITING and said == 0:
            self._go(FIRST)
        elif phase == ASKING and said > 0:
            self._take(said)
        elif phase in self._lasts and self._phase[1] * FRAME >= self._lasts[phase]:
            self._go(phase + 1)
        self._phase[1] += 1
        self._show(now)

    def _go(self, phase: int) -> None:
        self._phase[:2] = phase, 0
        if phase in (FIRST, SECOND):
            self._inner.load(self._begins["adaptive"])
            water.load(self._pair.regular, self._begins["regular"])

    def _take(self, said: int) -> None:
        number = int(self._phase[2])
        self._answers[number] = said
        self._study.answer(number, first_is_finer=said == 1)
        self._write()
        self._phase[2] = number + 1
        self._go(FIRST if number + 1 < len(self._answers) else DONE)

    def _write(self) -> None:
        folder = os.environ.get(FOLDER)
        if not folder:
            return
        if self._file is None:
            self._file = _unused(Path(folder).expanduser(), self._pair.seed)
        self._study.save(self._file)

    def _show(self, now: Moment) -> None:
        phase = int(self._phase[0])
        self._count = 0
        if phase not in (FIRST, SECOND):
            return
        trial = self._study.trials[int(self._phase[2])]
        places = self._adaptive(now) if (trial.first, trial.second)[phase == SECOND] == "adaptive" else self._regular()
        self._count = len(places)
        self._drawn[: self._count] = places

    def _adaptive(self, now: Moment) -> np.ndarray:
        self._inner.frame(now)
        return self._inner.shows[0].arrays["water"][: self._inner.shows[0].counts()["water"]]

    def _regular(self) -> np.ndarray:
        fluid = self._pair.regular
        self._step.run(self._pair.adaptive.steps)
        fluid.device.synchronize()
        count = int(fluid.count.numpy()[0])
        share = full_volume(fluid) / full_volume(self._pair.adaptive.fluid)
        return np.column_stack([fluid.position.numpy()[:count], np.full(count, share, dtype=np.float32)])

    def _says(self) -> str:
        phase, number, all_of_them = int(self._phase[0]), int(self._phase[2]) + 1, len(self._answers)
        if phase == WAITING:
            return f"{all_of_them} times you see two waters, one after the other. Choose Watch to begin."
        if phase == ASKING:
            return f"Trial {number} of {all_of_them}: which was finer? Choose First or Second."
        if phase == DONE:
            chance = f"By chance so unequal a result has a likelihood of {self._study.likelihood:.3g}."
            return f"Thank you. {self._study.right} of {all_of_them} right. {chance}"
        return f"Trial {number} of {all_of_them}: {('first', 'nothing', 'second')[phase - FIRST]}."

    # --- saving: the study follows from the answers ---

    def _save(self) -> Saved:
        found = {"phase": self._phase.copy(), "answers": self._answers.copy()}
        for name, one in (("regular", water.save(self._pair.regular)), ("adaptive", self._inner.save())):
            found |= {f"{name}_{key}": value for key, value in one.items()}
        return found

    def _load(self, saved: Saved) -> None:
        self._phase[:], self._answers[:] = saved["phase"], saved["answers"]
        self._study.restore(self._answers.tolist())
        water.load(self._pair.regular, _without(saved, "regular_"))
        self._inner.load(_without(saved, "adaptive_"))
        self._said = self._count = 0


def _without(saved: Saved, prefix: str) -> Saved:
    return {key.removeprefix(prefix): value for key, value in saved.items() if key.startswith(prefix)}


def _unused(folder: Path, seed: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    taken: Sequence[str] = [one.name for one in folder.glob("perception-*.csv")]
    names = (f"perception-{seed}{'' if k == 1 else f'-{k}'}.csv" for k in range(1, len(taken) + 2))
    return folder / next(name for name in names if name not in taken)
