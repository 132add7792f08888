"""Examples are numbered without a gap and end in a check; those that no other test runs are run here."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_numbers_have_no_gap() -> None:
    names = sorted(path.name for path in EXAMPLES.glob("*.py"))
    assert [int(name[:2]) for name in names] == list(range(1, len(names) + 1))


def test_every_example_ends_in_a_check() -> None:
    for path in EXAMPLES.glob("*.py"):
        assert re.search(r"^\s+(assert |raise AssertionError)", path.read_text(), re.MULTILINE), path.name


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        pytest.param("10_river_balance.py", ["--seconds", "2"], "came in", marks=pytest.mark.slow),
        ("11_any_closed_mesh.py", ["--particles", "300", "--steps", "3000"], "refused: "),
        pytest.param("17_smoke_from_a_hook.py", [], "due are", marks=pytest.mark.slow),
        pytest.param("18_press_and_let_go.py", [], "given back", marks=pytest.mark.slow),
        pytest.param("26_an_operation.py", ["--clumsy", "--seconds", "1"], "secured", marks=pytest.mark.slow),
        ("15_barium_under_x_ray.py", ["--seconds", "1"], "seen in the picture"),
        pytest.param("21_sew.py", [], "1 knot", marks=pytest.mark.slow),
        pytest.param("27_training.py", [], "Plateau of time", marks=pytest.mark.slow),
    ],
)
def test_example_runs(
    name: str,
    arguments: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert ended.value.code == 0
    assert says in capsys.readouterr().out
