"""`viscera haptics`: what is felt of known walls, and the commands that find, check and record devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from viscera import cli
from viscera.haptics import check as checking
from viscera.haptics.check import CheckResult, check, feel, live, poke, rests, save, to_markdown
from viscera.haptics.coupling import CouplingParams
from viscera.haptics.devices.hand import HandParams
from viscera.haptics.devices.trace import load_trace
from viscera.haptics.link import TimeSummary

LIMIT = CouplingParams().stiffest


@pytest.mark.parametrize("stiffness", [50.0, 500.0, 2000.0, 1e6])
def test_walls_are_felt_as_they_are_up_to_the_limit(stiffness: float) -> None:
    """Within 5 %, as we promise; the hand is exact and the run is the same on every machine, so what remains is the
    loop's own: the first ticks of a contact and the damper."""
    one = feel(stiffness)
    assert one.expected == min(stiffness, LIMIT)
    assert abs(one.error) <= 0.05
    assert one.given_back <= one.put_in
    assert one.quick_ratio <= 1.0
    assert one.noise < 1e-3
    assert one.oscillation < 1e-9
    assert 0.0 < one.noise_coarse <= one.hum  # coarse encoders hum, by one step and no more
    assert 0.0 < one.oscillation_coarse <= 1e-7
    assert one.passed


def test_the_same_poke_gives_the_same_numbers() -> None:
    first, second = poke(300.0), poke(300.0)
    assert (first.force == second.force).all()
    assert (first.work == second.work).all()


def test_a_check_can_fail() -> None:
    """Ten times the limit is more than a hand that damps with 6 N·s/m can hold: 30 are needed."""
    params = CouplingParams(stiffest=10 * LIMIT)
    assert params.damping_needed > HandParams().damping
    assert not feel(1e6, params).passed


def test_encoders_hum_unless_friction_holds_the_hand() -> None:
    """A reading that goes to and fro by one step moves the force by `HUM_STEPS` steps either way; friction that holds
    against that ends it, a quarter of a step does not."""
    wall, step = 1000.0, 1000.0 * checking.COARSE
    held, _ = rests(wall, HandParams(resolution=checking.COARSE, friction=checking.HUM_STEPS * step))
    hums, _ = rests(wall, HandParams(resolution=checking.COARSE, friction=0.25 * step))
    assert held < 1e-6
    assert hums > 0.3 * step


def test_the_live_loop_is_timed() -> None:
    """That it runs and is counted, not how fast: that is measured in verify."""
    times, counters, bins = live(0.3)
    assert counters["cycles"] > 20
    assert counters["ticks"] > 20
    assert times["latency"].count == sum(bins) > 10
    assert times["period"].p50_ms >= 0.9


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "STIFFNESSES", (200.0, 1e4))
    slow = TimeSummary(10, 1.0, 1.1, 1.2, 1.3, 1.0)
    monkeypatch.setattr(checking, "live", lambda seconds: ({"period": slow, "latency": slow}, {"stalls": 0}, [0, 5, 5]))


def test_a_headless_run_has_no_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["viscera", "run", "palpation", "--headless", "--haptics", "hand"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2


@pytest.mark.slow
def test_without_the_device_the_page_is_served_with_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "viscera", "serve", "palpation", "--device", "cpu", "--port", "0", "--detail", "1"]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path), "--haptics", "haply"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = process.stdout.readline()
    process.terminate()
    _, complained = process.communicate(timeout=60)
    assert "http://" in said
    assert "No haptic device haply" in complained
    assert "pointer" in complained


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["viscera", "haptics", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_check_says_and_saves_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "check", "--seconds", "1", "--out", str(tmp_path), "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    result = json.loads(line)
    assert result == json.loads((tmp_path / "check.json").read_text())
    assert result["passed"] is True
    assert [one["stiffness"] for one in result["feels"]] == [200.0, 1e4]
    assert result["limit"] == LIMIT
    assert set(result["times"]["latency"]) == {
        "count", "p50_ms", "p99_ms", "p999_ms", "longest_ms", "within_2ms",
    }  # fmt: skip
    assert "limited to 2000 N/m" in (tmp_path / "check.md").read_text()
    assert (tmp_path / "check.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.usefixtures("quickly")
def test_a_check_that_fails_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checking, "TOLERANCE", 1e-9)
    assert call(monkeypatch, "check", "--seconds", "1") == 1
    result = check(1.0)
    assert "✗" in to_markdown(result)
    monkeypatch.setattr(checking, "plot", lambda *_: False)
    assert [path.name for path in save(result, tmp_path, print)] == ["check.json", "check.md"]


def test_check_refuses_what_cannot_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert call(monkeypatch, "check", "--seconds", "nan") == 2
    (tmp_path / "file").write_text("")
    with pytest.raises(checking.RecordingError, match="cannot write"):
        save(CheckResult(LIMIT, 3.0, []), tmp_path / "file" / "below", print)


def test_list_names_what_is_there_and_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "list", "--json") == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["hand"]["present"]
    assert not found["haply"]["present"]
    assert found["haply"]["sentence"]
    assert call(monkeypatch, "list") == 0
    assert "not there" in capsys.readouterr().out


def test_a_hand_is_recorded_and_can_be_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "poke.csv"
    assert call(monkeypatch, "trace", "hand", str(file), "--seconds", "0.2") == 0
    trace = load_trace(file)
    assert trace.duration == pytest.approx(0.2, abs=0.15)
    assert len(trace.time) > 5
    home = 0.072  # of palpation's probe
    assert trace.position[0, 2] == pytest.approx(home, abs=0.01)
    assert call(monkeypatch, "trace", "theremin", str(file)) == 2
