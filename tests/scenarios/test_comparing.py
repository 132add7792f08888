"""The blind comparison in the page: two waters in turn, answers that count once, a file, and nothing given away."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from viscera.device import Device
from viscera.gaze.perception import Study, read_answers, report
from viscera.scenarios._adaptive.pools import CRITERIA, fill_pool, find_pool
from viscera.scenarios.perception.comparing import ANSWER, ASKING, DARK, DONE, FOLDER, Pair, comparing, model_viewer
from viscera.timing import FRAME
from viscera.water import adaptive
from viscera.world.system import Moment, System
from viscera.world.systems.adaptive_water import Refined

TRIALS, BASE, SHOWN = 6, 120, 3 * FRAME
LONGEST = round(TRIALS * (2 * SHOWN + DARK) / FRAME) + 5 * TRIALS
"""Frames that a study may take."""
NOW = Moment(0, (), dict)


@pytest.fixture(scope="module")
def waters(cpu: Device) -> tuple[Pair, System]:
    pool = find_pool("dambreak")
    regular, other = (fill_pool(pool, cpu, "stiff", regular=one, base=BASE) for one in (True, False))
    refined = Refined(other.fluid, adaptive.make(other.fluid, CRITERIA), 1, pool.camera, 0.25)
    pair = Pair(regular.fluid, refined, Study(TRIALS, 5, ("dambreak",)), 5, SHOWN)
    return pair, comparing(pair)


@pytest.fixture
def study(waters: tuple[Pair, System]) -> Iterator[tuple[Pair, System]]:
    """As it begins."""
    pair, system = waters
    begin = system.save()
    yield waters
    system.load(begin)
    assert pair.study.right == 0


def watch(pair: Pair, system: System, sees: float) -> list[tuple[int, int, str]]:
    """To the end: phase, particles and the text of each frame."""
    say, seen = model_viewer(pair, sees), []
    change = next(one.change for one in system.parameters if one.parameter is ANSWER)
    for _ in range(LONGEST):
        for said in say():
            change(said.value)
        system.frame(NOW)
        seen.append((int(pair.phase[0]), system.shows[0].counts()["water"], system.warns()))
        if pair.phase[0] == DONE:
            break
    return seen


def test_who_sees_the_difference_is_found_out_and_the_answers_are_kept(
    study: tuple[Pair, System], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, system = study
    monkeypatch.setenv(FOLDER, str(tmp_path))
    (tmp_path / "perception-5.csv").write_text("of somebody else\n")
    seen = watch(pair, system, sees=1.0)
    assert seen[-1][0] == DONE
    assert seen[-1][2] == f"Thank you. 6 of 6 right. By chance so unequal a result has a likelihood of {2 / 64:.3g}."
    assert (tmp_path / "perception-5.csv").read_text() == "of somebody else\n"
    path = tmp_path / "perception-5-2.csv"
    with path.open() as file:
        assert [row["answer"] for row in csv.DictReader(file)] == ["regular"] * TRIALS
    assert read_answers(path) == (6, 6)
    assert report([str(path)]).endswith("together: 6 of 6 right, likelihood by chance 0.0312")


def test_both_waters_are_shown_and_nothing_says_which(study: tuple[Pair, System]) -> None:
    """Counts differ, which no panel shows; text, measures and settings are the same whatever the order is."""
    pair, system = study
    seen = watch(pair, system, sees=0.0)
    shown = [count for _, count, _ in seen if count]
    assert shown.count(2 * BASE) >= TRIALS, "regular"
    assert min(shown) < 2 * BASE, "adaptive"
    orders = [one.first for one in pair.study.trials]
    texts = {
        order: {text.replace(f"Trial {k + 1} ", "") for k, one in enumerate(orders) if one == order
                for _, _, text in seen if text.startswith(f"Trial {k + 1} ")}
        for order in ("regular", "adaptive")
    }  # fmt: skip
    assert texts["regular"] == texts["adaptive"]
    assert [one.parameter.name for one in system.parameters] == ["finer", "gaze_source"]
    assert [measure.name for measure, _ in system.measures()] == ["answers"]


def test_each_water_begins_anew_and_an_answer_counts_only_when_asked(study: tuple[Pair, System]) -> None:
    pair, system = study
    change = next(one.change for one in system.parameters if one.parameter is ANSWER)
    change(0.0)
    system.frame(NOW)
    places = {int(pair.phase[0]): system.shows[0].arrays["water"][:, 2].max()}
    for _ in range(round((2 * SHOWN + DARK) / FRAME) + 6):
        change(2.0)  # too early, except in the last frames
        system.frame(NOW)
        if system.shows[0].counts()["water"] and pair.phase[1] == 1:
            places[int(pair.phase[0])] = system.shows[0].arrays["water"][:, 2].max()
        if pair.phase[2] == 1:
            break
    assert pair.phase[2] == 1
    assert system.measures()[0][1] == 1.0
    assert len(places) >= 2
    assert np.ptp(list(places.values())) < 0.1, "both dams stand as the trial begins"


def test_a_saved_study_goes_on(study: tuple[Pair, System]) -> None:
    pair, system = study
    change = next(one.change for one in system.parameters if one.parameter is ANSWER)
    change(0.0)
    while pair.phase[0] != ASKING:
        system.frame(NOW)
    change(1.0)
    system.frame(NOW)
    saved, said = system.save(), pair.study.right
    watch(pair, system, sees=1.0)
    system.load(saved)
    assert pair.phase[2] == 1
    assert pair.study.right == said
    assert system.measures()[0][1] == 1.0
