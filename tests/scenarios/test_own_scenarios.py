"""Scenarios of one's own: files outside the package, mistakes in them, and a script that ends in `show`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, cast

import pytest

import viscera
from viscera.device import Device
from viscera.errors import InputError
from viscera.headless import record_headless
from viscera.instruments import Instrument, Rinses, Sucks, kit
from viscera.scenarios import Scenario, Setting
from viscera.session import recorder
from viscera.session.archive import read_recording
from viscera.tissue.materials import SOFT_TISSUE
from viscera.view import Camera, Goal, Measure
from viscera.world import Contents, Moment, System, block, organ

CAMERA = Camera((0.0, -0.2, 0.1), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0)
BOUNDS = ((-0.05, -0.05, 0.0), (0.05, 0.05, 0.05))
EMPTY = """\
import viscera
from viscera import Contents, Scenario
from viscera.view import Camera

def build(setting):
    camera = Camera((0.0, -0.2, 0.1), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0)
    return Contents(camera=camera, bounds=((-0.05, -0.05, 0.0), (0.05, 0.05, 0.05)))

SCENARIO = Scenario("empty_room", build)
"""


def test_a_mistake_in_a_file_of_ones_own_is_told_with_its_line(tmp_path: Path, cpu: Device) -> None:
    file = tmp_path / "slip.py"
    file.write_text(EMPTY.replace("camera=camera", "camra=camera"))
    with pytest.raises(InputError, match=r"slip\.py, line 7: TypeError.*camra"):
        viscera.make(str(file), device=cpu)
    file.write_text(EMPTY + "\nviscera.mke\n")
    with pytest.raises(InputError, match=r"slip\.py does not load \(line 11\): AttributeError.*mke"):
        viscera.make(str(file), device=cpu)
    file.write_text("import viscera\n")
    with pytest.raises(InputError, match=r"slip\.py has no SCENARIO\. End it with"):
        viscera.make(str(file), device=cpu)


def test_a_system_that_fails_is_named(cpu: Device) -> None:
    """In the note of whatever it raised."""

    def frame(now: Moment) -> None:
        raise KeyError("mine")

    def build(setting: Setting) -> Contents:
        return Contents(systems=[System(name="fragile", frame=frame)], camera=CAMERA, bounds=BOUNDS)

    world = viscera.make(Scenario("fails", build), device=cpu)
    with pytest.raises(KeyError) as caught:
        world.step(40)
    assert "in system 'fragile'" in caught.value.__notes__[0]


def test_what_cannot_suck_and_what_numbers_no_material_are_refused(cpu: Device) -> None:
    with pytest.raises(InputError, match="rate = -1"):
        Sucks(rate=-1.0)
    with pytest.raises(
        InputError, match=r"Rinses: rate = 2\.0 is not possible\. Allowed is more than 0 to 0\.001 m³/s; 2 mL/s"
    ):
        Rinses(rate=2.0)
    body = block((4, 4, 4), 0.004)
    low = body.positions[:, 2] < 0.002
    with pytest.raises(InputError, match=r"astype\(np\.uint8\)"):
        organ("block", body, cpu, material=SOFT_TISSUE, further=(SOFT_TISSUE,), material_of=~low, anchored=low)


def test_slips_in_words_are_answered_with_the_nearest(cpu: Device) -> None:
    body = block((4, 4, 4), 0.004)
    low = body.positions[:, 2] < 0.002
    with pytest.raises(InputError, match=r"organ 'block' has no 'poison'\. Did you mean 'poisson'\?"):
        organ("block", body, cpu, material=SOFT_TISSUE, anchored=low, poison=0.4)
    with pytest.raises(InputError, match="spacing comes from its body"):
        organ("block", body, cpu, material=SOFT_TISSUE, anchored=low, spacing=0.004)
    with pytest.raises(InputError, match=r"instrument 'spoon': there is no icon 'spoon'\. There are: tool, probe"):
        Instrument("spoon", (), icon=cast(Any, "spoon"))


def test_what_a_file_prints_is_no_result(tmp_path: Path) -> None:
    """Neither while it is loaded nor while its world is built."""
    file = tmp_path / "chatty.py"
    file.write_text("print('hello')\n" + EMPTY.replace("    camera =", "    print('building')\n    camera ="))
    words = ["run", str(file), "--headless", "--seconds", "0.016", "--device", "cpu", "--json"]
    ran = subprocess.run([sys.executable, "-m", "viscera", *words], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["scenario"] == "empty_room"
    assert "hello" in ran.stderr
    assert "building" in ran.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path, cpu: Device) -> None:
    with pytest.raises(InputError, match=r"nowhere\.py is not there"):
        viscera.make(str(tmp_path / "nowhere.py"), device=cpu)


def test_an_effect_that_nothing_acts_on_is_warned_about(cpu: Device) -> None:
    def build(setting: Setting) -> Contents:
        tools = kit.hand_out([kit.suction()], (0.0, 0.0, 0.05))
        return Contents(tools=tools, camera=CAMERA, bounds=BOUNDS)

    with pytest.warns(UserWarning, match="suction: no system of this world acts on Sucks") as warned:
        viscera.make(Scenario("dry", build), device=cpu)
    assert [(one.filename, one.lineno) for one in warned] == [(__file__, build.__code__.co_firstlineno)]


def test_a_headless_result_has_measures_and_goals(cpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its recording has the trial, and states to jump to."""
    monkeypatch.setattr(recorder, "CHECKPOINT_S", 0.064)
    height = Measure("height", "Height", "mm", "Of nothing.")

    def build(setting: Setting) -> Contents:
        system = System(name="tower", measures=lambda: [(height, 3.0)])
        goals = [Goal("height", least=2.0)]
        return Contents(systems=[system], goals=goals, camera=CAMERA, bounds=BOUNDS)

    world = viscera.make(Scenario("tower", build), device=cpu)
    found, file = record_headless(world, 0.16, world.script, tmp_path, {}, None)
    result = found.as_json()
    assert result["measures"] == pytest.approx({"height": 3.0, "time": result["measures"]["time"]})
    assert 0.0 < result["measures"]["time"] <= 0.16
    assert result["goals"] == {"height": True}
    assert (result["drill"]["outcome"], result["drill"]["result"]) == ("met", result["measures"])
    assert result["units"]["measures"] == {"height": "mm", "time": "s"}
    assert set(result["units"]["score"]) == set(result["score"]) - {"seed", "level", "outcome", "passed", "advice"}
    recording = read_recording(file)
    (trial,) = recording.trials
    assert (trial.outcome, trial.values["height"]) == ("met", 3.0)
    assert sorted(recording.checkpoints) == [64, 128]


@pytest.mark.slow
def test_a_script_may_end_in_show(tmp_path: Path) -> None:
    """Without a guard: the session neither runs the script again nor serves a second time."""
    script = tmp_path / "my_room.py"
    script.write_text(
        EMPTY
        + "\nprint('made', flush=True)\nworld = viscera.make(SCENARIO, device='cpu')\nworld.step(32)\n"
        + "viscera.show(world, port=0, open_browser=False)\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        address = next(line.split()[-1] for line in lines if line.startswith("viscera is at"))
        end = time.monotonic() + 60.0
        health = {"state": "starting", "tick": 0}
        # It runs before its first frame has come.
        while health["state"] in ("starting", "running") and int(health["tick"]) < 32 and time.monotonic() < end:
            with urllib.request.urlopen(f"{address}api/health", timeout=10.0) as answer:
                health = json.loads(answer.read())
            time.sleep(0.1)
        assert health["state"] == "running"
        assert int(health["tick"]) >= 32
    finally:
        process.terminate()
        process.wait(20.0)
