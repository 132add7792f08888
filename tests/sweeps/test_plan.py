"""What a sweep runs, and how it is written on the command line."""

from __future__ import annotations

import pytest

from viscera.errors import InputError
from viscera.sweeps import Plan, parse_seeds, parse_values


def test_every_combination_is_run_with_every_seed() -> None:
    plan = Plan("palpation", 1.0, {"stiffness": (1.0, 2.0), "viscosity": (0.1, 0.2, 0.3)}, (4, 5))
    runs = plan.runs()
    assert plan.count == len(runs) == 12
    assert [run.number for run in runs] == list(range(12))
    assert len({(run.seed, *run.settings.values()) for run in runs}) == 12


def test_values_from_to_and_how_many() -> None:
    assert parse_values("stiffness=1:7:5") == ("stiffness", (1.0, 2.5, 4.0, 5.5, 7.0))
    assert parse_values("stiffness=2,4.5") == ("stiffness", (2.0, 4.5))
    assert parse_values(" stiffness =3") == ("stiffness", (3.0,))
    assert parse_seeds("0:20") == tuple(range(20))
    assert parse_seeds("1,4,9") == (1, 4, 9)


@pytest.mark.parametrize(
    "text", ["stiffness", "=1", "a=1:2", "a=1:2:1", "a=2:1:3", "a=x", "a=1,1", "a=nan", "a=1:2:2.5"]
)
def test_what_is_no_list_of_values_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="For example"):
        parse_values(text)


@pytest.mark.parametrize("text", ["", "a", "3:3", "1,1", "1:2:3"])
def test_what_is_no_list_of_seeds_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="For example"):
        parse_seeds(text)


def test_another_plan_has_another_fingerprint() -> None:
    first = Plan("palpation", 1.0, {"stiffness": (1.0, 2.0)})
    assert first.fingerprint() == Plan("palpation", 1.0, {"stiffness": (1.0, 2.0)}).fingerprint()
    assert first.fingerprint() != Plan("palpation", 1.0, {"stiffness": (1.0, 2.5)}).fingerprint()
