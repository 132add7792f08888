"""Do people see the difference? A blind comparison of regular and adaptive water (Elmasdotter §6.4 asks for one).

In each trial both are shown one after the other, in an order that nobody knows; the viewer says which was finer. Who
sees no difference is right half of the time: the exact binomial test says how likely so many right answers, or more
unequal ones, are then.

    study = Study(trials=24, seed=7)
    for trial in study.trials:
        study.answer(trial.number, first_is_finer=…)
    study.save("answers.csv")
    print(study.right, study.likelihood)

    python -m viscera.gaze.perception FILE…      what several viewers saw, each and together

The scenario `perception` shows it in the page.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from viscera.errors import InputError

Shown = Literal["regular", "adaptive"]
COLUMNS = ("trial", "scenario", "first", "second", "answer", "right")


@dataclass(frozen=True)
class Trial:
    number: int
    scenario: str
    first: Shown
    second: Shown


class Study:
    """One viewer's trials: as often the one first as the other, in a seeded order."""

    def __init__(self, trials: int, seed: int, scenarios: tuple[str, ...] = ("dambreak", "waves")) -> None:
        if trials < 2 or trials % 2 or not scenarios:
            raise InputError(f"{trials} trials of {len(scenarios)} scenarios are not possible.", "Give an even number.")
        rng = np.random.default_rng([2020, seed])
        regular_first = rng.permutation(np.arange(trials) % 2 == 0)
        self.trials = [
            Trial(k, scenarios[k % len(scenarios)], *(("regular", "adaptive") if one else ("adaptive", "regular")))
            for k, one in enumerate(regular_first)
        ]
        self._answers: dict[int, bool] = {}

    def answer(self, number: int, *, first_is_finer: bool) -> None:
        """What the viewer says about a trial; the first answer counts."""
        if not 0 <= number < len(self.trials) or number in self._answers:
            raise InputError(f"trial {number} is not open.", "Answer each trial once.")
        self._answers[number] = first_is_finer

    def restore(self, said: Sequence[int]) -> None:
        """All answers anew: 1 where the first was called finer, 2 for the second, 0 where nothing was said yet."""
        self._answers = {number: one == 1 for number, one in enumerate(said) if one}

    def _is_right(self, number: int) -> bool:
        return self._answers[number] == (self.trials[number].first == "regular")

    @property
    def right(self) -> int:
        """Answers that name the regular water, which is fine everywhere."""
        return sum(self._is_right(number) for number in self._answers)

    @property
    def likelihood(self) -> float:
        """Of a result so unequal or more, if nobody saw a difference."""
        return two_sided(self.right, len(self._answers))

    def save(self, path: str | Path) -> None:
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(COLUMNS)
            for number, first_is_finer in sorted(self._answers.items()):
                one = self.trials[number]
                said = one.first if first_is_finer else one.second
                out.writerow((number, one.scenario, one.first, one.second, said, int(self._is_right(number))))


def two_sided(right: int, answers: int) -> float:
    """Exact binomial test against one half: the sum of all outcomes no more likely than this one."""
    if not 0 <= right <= answers:
        raise InputError(f"{right} right of {answers} is not possible.", "Count again.")
    ways = [math.comb(answers, k) for k in range(answers + 1)]
    return sum(way for way in ways if way <= ways[right]) / 2**answers


def model_viewer(study: Study, sees: float, seed: int) -> None:
    """Answers all trials as someone who sees the difference with this probability, and guesses otherwise."""
    rng = np.random.default_rng([1831, seed])
    for trial in study.trials:
        truth = trial.first == "regular"
        study.answer(trial.number, first_is_finer=truth if rng.random() < sees else bool(rng.random() < 0.5))


def read_answers(path: str | Path) -> tuple[int, int]:
    """Right answers, and all, of a file that `Study.save` wrote."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or not set(COLUMNS) <= rows[0].keys() or any(row["right"] not in ("0", "1") for row in rows):
        raise InputError(f"{path} has no answers of a study.", f"It needs the columns {', '.join(COLUMNS)}.")
    return sum(row["right"] == "1" for row in rows), len(rows)


def report(paths: Sequence[str]) -> str:
    """One line per viewer, and one for all of them together."""
    found = [read_answers(path) for path in paths]
    right, answers = (sum(one[k] for one in found) for k in range(2))
    lines = [*zip(paths, found, strict=True), ("together", (right, answers))]
    return "\n".join(f"{name}: {a} of {n} right, likelihood by chance {two_sided(a, n):.3g}" for name, (a, n) in lines)


if __name__ == "__main__":
    print(report(sys.argv[1:]))
