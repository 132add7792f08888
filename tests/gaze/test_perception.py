"""The blind comparison: balanced, seeded, saved, and judged by an exact test."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from viscera.errors import InputError
from viscera.gaze.perception import Study, model_viewer, two_sided


def test_the_order_is_balanced_blind_and_seeded() -> None:
    study, again, other = Study(24, 7), Study(24, 7), Study(24, 8)
    assert sum(one.first == "regular" for one in study.trials) == 12
    assert study.trials == again.trials
    assert study.trials != other.trials


def test_the_binomial_test_is_exact() -> None:
    assert two_sided(8, 10) == pytest.approx(0.109375)  # 2 (45 + 10 + 1)/1024
    assert two_sided(5, 10) == 1.0
    assert two_sided(0, 10) == pytest.approx(2 / 1024)


def test_who_sees_nothing_is_found_to_see_nothing_and_who_sees_is_found_out() -> None:
    """Of guessing viewers one in twenty is called seeing, at most; of those who see in four of five trials most."""
    blind, keen = [], []
    for seed in range(200):
        for sees, out in ((0.0, blind), (0.8, keen)):
            study = Study(24, seed)
            model_viewer(study, sees, seed)
            out.append(study.likelihood < 0.05)
    assert np.mean(blind) < 0.08
    assert np.mean(keen) > 0.95


def test_answers_are_saved_with_what_was_shown(tmp_path: Path) -> None:
    study = Study(4, 1)
    for trial in study.trials:
        study.answer(trial.number, first_is_finer=True)
    study.save(tmp_path / "answers.csv")
    with (tmp_path / "answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["answer"] for row in rows] == [trial.first for trial in study.trials]
    assert sum(int(row["right"]) for row in rows) == study.right == 2
    with pytest.raises(InputError):
        study.answer(0, first_is_finer=False)
    with pytest.raises(InputError):
        Study(3, 1)
