"""Slips of somebody who writes a first scenario, and what they are told."""

from __future__ import annotations

import inspect
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from viscera import cli
from viscera.cli.doing import print_result
from viscera.tissue.params import LatticeParams
from viscera.view import Goal, Measure, Parameter
from viscera.world import Contents, LiveParameter, Moment, System

ROOM = """\
import numpy as np
from viscera import Contents, Scenario, System, ToolInput, kit
from viscera.view import Camera

def script(world, tick):
    SCRIPT

def frame(now):
    FRAME

def build(setting):
    camera = Camera((0.0, -0.2, 0.1), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0)
    return Contents(
        tools=kit.hand_out([kit.probe(0.005)], (0.0, 0.0, 0.02)), camera=camera, script=script,
        systems=[System(name="mine", frame=frame)], bounds=((-0.05, -0.05, 0.0), (0.05, 0.05, 0.05)),
    )

SCENARIO = Scenario("room", build)
"""


@pytest.mark.parametrize(
    ("script", "frame", "told"),
    [
        ("return [ToolInput(0, world.midle)]", "pass", "line 6: AttributeError: 'World' object has no attribute"),
        ("return []", "np.zeros(2) @ np.zeros(3)", "line 9: ValueError: matmul"),
        ("return []", "now.using(3)", "line 9: TypeError: isinstance"),
        ("return ToolInput(0, (0.0, 0.0, 0.02))", "pass", "the script of 'room' gave ToolInput(tool=0"),
        ("pass", "pass", "the script of 'room' gave None before tick 0."),
    ],
)
def test_a_slip_in_a_script_or_a_system_is_told_with_its_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    script: str,
    frame: str,
    told: str,
) -> None:
    """Also where it shows inside a library, or inside viscera; and it is not called our mistake."""
    file = tmp_path / "mine.py"
    file.write_text(ROOM.replace("SCRIPT", script).replace("FRAME", frame))
    monkeypatch.delenv("VISCERA_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    words = ["run", str(file), "--headless", "--seconds", "0.04", "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["viscera", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr().err
    assert ended.value.code == 2, printed
    assert told in printed
    assert "mistake of ours" not in printed
    if "line 9" in told:
        assert f"{file}, line 9" in printed
        assert "in system 'mine', in the frame after tick 16" in printed


def test_a_plain_result_has_a_number_a_line_with_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    measures = {"bleeding": 7.051683210355067, "pins": 2.0}
    print_result(
        {
            "steps": 500,
            "seconds": 0.5,
            "measures": measures,
            "goals": {"bleeding": False},
            "score": None,
            "units": {"seconds": "s", "measures": {"bleeding": "mL/min", "pins": ""}},
        }
    )
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "steps 500", "seconds 0.5 s", "measure bleeding 7.052 mL/min (goal not met)", "measure pins 2", "score –",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [Contents, Goal, LatticeParams, LiveParameter, Measure, Moment, Parameter, System])
def test_help_explains_every_field(kind: type) -> None:
    text = inspect.getdoc(kind) or ""
    missing = [field.name for field in fields(kind) if f"\n{field.name}: " not in text]
    assert missing == []
    assert "<lambda>" not in str(inspect.signature(kind))
