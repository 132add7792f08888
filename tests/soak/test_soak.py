"""A little of every attack; everything that an attack ever found; and that the harness does find things."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from soak.attack import FOUND, Attack, Finding, load
from soak.attacks import hands
from soak.registry import ATTACKS
from soak.worker import Worker, smaller
from viscera.scenarios import catalogue

CASES = {
    "wire": 3, "crowds": 1, "recordings": 15, "meshes": 4, "hands": 1, "commands": 12, "kills": 1, "disks": 2,
    "clocks": 4,
}  # fmt: skip
"""Small ones, half a minute in all. The seed is fixed: `make soak` is for fresh ones."""


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ATTACKS))
def test_a_little_of_every_attack_finds_nothing(name: str) -> None:
    worker = Worker(ATTACKS[name])
    chance = random.Random(19)
    try:
        for _ in range(CASES[name]):
            case = worker.attack.draw(chance, True)
            problem = worker.attempt(case)
            assert problem == "", f"{problem}\n{case}"
    finally:
        worker.close()


@pytest.mark.parametrize("path", sorted(FOUND.glob("*.json")), ids=lambda path: path.stem)
def test_what_was_found_once_is_mended(path: Path) -> None:
    found = load(path)
    worker = Worker(ATTACKS[found.attack])
    try:
        assert worker.attempt(found.case) == ""
    finally:
        worker.close()


@pytest.mark.parametrize(
    ("step", "words", "left"),
    [("break", "as planted", ["break"]), ("crash", "SIGSEGV", ["crash"]), ("hang", "no end within", None)],
)
def test_the_harness_finds_what_is_broken_crashes_or_hangs_and_makes_it_small(
    step: str, words: str, left: list[str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planted import ATTACK

    monkeypatch.setattr("soak.worker.START_S", 5.0)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    worker = Worker(Attack("planted", "", ATTACK.draw, ATTACK.attempt, ATTACK.patience))
    case = {"steps": ["fine", "fine", step, "fine", "fine"]}
    try:
        assert worker.attempt({"steps": ["fine"]}) == ""
        problem = worker.attempt(case)
        assert words in problem
        found = smaller(worker, case, problem)
        assert found.case["steps"] == (left or case["steps"])
        assert load(found.save(tmp_path)) == found
    finally:
        worker.close()
    assert worker.attempt({"steps": ["fine"]}) == ""  # with a new process
    worker.close()


def test_a_finding_is_kept_under_a_name_of_its_own(tmp_path: Path) -> None:
    one, other = Finding("wire", {"steps": [1]}, "x"), Finding("wire", {"steps": [2]}, "x")
    assert one.save(tmp_path) != other.save(tmp_path)
    assert one.save(tmp_path) == one.save(tmp_path)


def test_hands_come_into_every_scenario_before_they_come_again() -> None:
    chance = random.Random(19)
    names = list(catalogue())
    drawn = [hands.draw(chance, False)["scenario"] for _ in range(hands.STRETCH * len(names))]
    assert {name: drawn.count(name) for name in names} == dict.fromkeys(names, hands.STRETCH)
