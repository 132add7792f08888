"""Slips of somebody who writes a first scenario, and what they are told."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

import viscera
from viscera import cli, drops, film, kit, materials, systems
from viscera.cli.doing import print_result
from viscera.device import Device
from viscera.errors import InputError
from viscera.headless import tick_count
from viscera.inputs import Input, Reset, SetParameter, ToolInput
from viscera.render.looks import MATERIALS
from viscera.scenarios import Scenario, Setting
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.view import LOOKS, Camera, Goal, Measure, Parameter
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


def told_of(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Runs a file of somebody's own for a moment; the exit code."""
    file = folder / "mine.py"
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["viscera", "run", str(file), "--headless", "--seconds", "0.05", *arguments])
    with pytest.raises(SystemExit) as over:
        cli.main()
    return int(over.value.code or 0)


def test_a_build_that_gives_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ROOM.replace("SCRIPT", "return []").replace("FRAME", "pass").replace("return Contents(", "made = Contents(")
    assert told_of(text, tmp_path, monkeypatch) == 2
    assert "build of 'room' gave None." in capsys.readouterr().err


def test_a_look_that_nothing_has_is_refused(cpu: Device) -> None:
    body = viscera.block((4, 4, 3), 0.004)
    with pytest.raises(InputError, match=r"organ 'block' cannot look like 'livr'\. Did you mean 'liver'"):
        viscera.organ("block", body, cpu, look="livr", material=materials.FAT, anchored=body.positions[:, 2] < 0.001)


def test_a_mesh_that_nobody_uses_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mesh = tmp_path / "organ.stl"
    mesh.write_text("x")
    text = ROOM.replace("SCRIPT", "return []").replace("FRAME", "pass")
    assert told_of(text, tmp_path, monkeypatch, "--mesh", str(mesh)) == 2
    assert "room does not use the mesh." in capsys.readouterr().err


def test_a_part_that_is_not_there_is_named_with_those_that_are() -> None:
    world = viscera.make("palpation", device="cpu", detail=0.25)
    with pytest.raises(InputError, match=r"no organ 'tisue'\. Did you mean 'tissue'"):
        world.organ("tisue")
    with pytest.raises(InputError, match="the world has no system 'fim'"):
        world.system("fim")


def test_whoever_rinses_needs_saline_and_is_told() -> None:
    """It came out as the film's first fluid: a jet of blood."""

    def build(setting: Setting) -> Contents:
        body = viscera.block((6, 6, 3), 0.004)
        made = viscera.organ(
            "block", body, setting.device, texels=64, material=materials.FAT, anchored=body.positions[:, 2] < 0.001
        )
        pus = film.FilmFluid("pus", density=1_050.0)
        wet = systems.make_film_on(made, film.FilmParams(fluids=(pus, film.BLOOD)), capacity=500)
        camera, bounds = viscera.looking_down([made], (0.1, -0.9, 0.9))
        tools = kit.hand_out([kit.irrigator()], (0.0, 0.0, 0.03))
        spray = drops.make(wet)
        return Contents(
            organs=[made], tools=tools, camera=camera, bounds=bounds,
            systems=[systems.flying("block", spray), systems.flowing(wet)],
        )  # fmt: skip

    with pytest.warns(UserWarning, match="to rinse, a film needs saline"):
        world = viscera.make(Scenario("dry", build), device="cpu")
    world.apply(ToolInput(0, (0.0, 0.0, 0.02), grip=1.0))
    world.step(160)
    assert film.count(world.system("film").holds) == 0
    assert int(world.system("drops").holds.state.count.numpy()[0]) == 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"density": 1.09}, r"kg/m³, 100 to 20000"),
        ({"density": 1_050.0, "absorption": (1.0, 2.0, 3.0), "body": (200.0, 180.0, 50.0)}, "from 0 to 1"),
    ],
)
def test_a_fluid_in_other_units_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        film.FilmFluid("pus", **given)


def test_every_look_can_be_drawn() -> None:
    assert {*MATERIALS, "steel"} == set(LOOKS)


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


@pytest.fixture(scope="module")
def room() -> Iterator[viscera.World]:
    """Nothing but a probe and a setting."""
    setting = LiveParameter(Parameter("warmth", "Warmth", "K", 0.0, 2.0, 1.0, "How warm."), lambda value: None)
    camera = Camera((0.0, -0.2, 0.1), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0)
    bounds = ((-0.05, -0.05, 0.0), (0.05, 0.05, 0.05))

    def build(_: Setting) -> Contents:
        tools = kit.hand_out([kit.probe(0.005)], (0.0, 0.0, 0.02))
        mine = System(name="mine", frame=lambda now: None, parameters=[setting])
        return Contents(tools=tools, camera=camera, systems=[mine], bounds=bounds)

    world = viscera.make(Scenario("room", build), device="cpu")
    yield world
    world.close()


A_LIST: Any = [0.5]
A_WORD: Any = "0.5"
HERE = (0.0, 0.0, 0.05)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (ToolInput(0, (A_LIST, 0.0, 0.05)), r"position\[0\] = \[0\.5\] is not a number"),
        (ToolInput(0, cast(Any, (0.0, 0.0))), r"position = \(0\.0, 0\.0\) is not possible\. It needs 3 numbers"),
        (ToolInput(0, cast(Any, 0.5)), r"position = 0\.5 is not possible"),
        (ToolInput(0, (60.0, 0.0, 0.0)), r"position \(60\.0, 0\.0, 0\.0\) is outside the theatre.*unit is metres"),
        (ToolInput(0, HERE, cast(Any, (0.0, 0.0, 1.0))), r"orientation = .* needs 4 numbers"),
        (ToolInput(0, HERE, grip=A_LIST), r"grip = \[0\.5\] is not a number"),
        (ToolInput(cast(Any, 0.5), HERE), r"tool = 0\.5 is not a whole number"),
        (SetParameter("warmth", A_LIST), r"warmth = \[0\.5\] is not a number"),
        (SetParameter("warmth", A_WORD), r"warmth = '0\.5' is not a number"),
        (SetParameter(cast(Any, ["warmth"]), 0.5), r"parameter \['warmth'\] is not known"),
        (Reset(A_LIST), r"seed = \[0\.5\] is not allowed"),
        (Reset(-1), "seed = -1 is not allowed"),
    ],
)
def test_a_list_where_a_number_belongs_is_told_with_its_field(room: viscera.World, wrong: Input, told: str) -> None:
    with pytest.raises(InputError, match=told):
        room.apply(wrong)
    room.step()  # and nothing of it is left


def test_ticks_and_seconds_are_numbers(room: viscera.World) -> None:
    with pytest.raises(InputError, match=r"ticks = \[1\] is not a whole number"):
        room.step(cast(Any, [1]))
    with pytest.raises(InputError, match=r"seconds = \[0\.5\] is not a number"):
        tick_count(A_LIST)


def test_a_setting_of_a_new_world_is_a_number() -> None:
    with pytest.raises(InputError, match=r"stiffness = \[1\] is not a number"):
        viscera.make("palpation", device="cpu", detail=0.25, parameters={"stiffness": cast(Any, [1])})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"young": 5.0}, r"young = 5 is not allowed\. The unit is Pa.*5 kPa are 5000"),
        ({"young": A_LIST}, r"material 'mine': young = \[0\.5\] is not a number"),
        ({"density": 1.06}, r"density = 1\.06 is not allowed\. The unit is kg/m³"),
    ],
)
def test_an_organ_in_other_units_is_refused(given: dict[str, Any], told: str, cpu: Device) -> None:
    body = viscera.block((3, 3, 3), 0.004)
    mine = Material(**{"name": "mine", "young": 3_000.0, "density": 1_060.0} | given)
    with pytest.raises(InputError, match=told):
        viscera.organ("block", body, cpu, material=mine, anchored=body.positions[:, 2] < 0.001)


def test_a_tool_that_waits_sixty_metres_away_is_refused() -> None:
    camera = Camera((0.0, -0.2, 0.1), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0)

    def build(_: Setting) -> Contents:
        tools = kit.hand_out([kit.probe(0.005)], (0.0, 0.0, 60.0))  # millimetres were meant
        return Contents(tools=tools, camera=camera, bounds=((-0.05, -0.05, 0.0), (0.05, 0.05, 0.05)))

    with pytest.raises(InputError, match=r"its home \(0\.0, 0\.0, 60\.0\) is 60 m from all there is to see.*metres"):
        viscera.make(Scenario("far", build), device="cpu")


def test_seconds_of_a_page_are_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["viscera", "run", "palpation", "--seconds", "5"])
    with pytest.raises(SystemExit) as over:
        cli.main()
    assert over.value.code == InputError.exit_code
    assert "a page runs until you close it" in capsys.readouterr().err
