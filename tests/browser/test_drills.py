"""Drills in a real browser, by mouse: done, failed and given up; the result stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_browser import checked, serving

from viscera.inputs import EndDrill, StartDrill
from viscera.scenarios.palpation import CELLS, NODULES, SPACING, middle
from viscera.session.archive import read_recording
from viscera.session.replay import replay_report
from viscera.world import block

pytestmark = pytest.mark.browser

SEED = 3


def drive(folder: Path, *checks: str) -> dict[str, Any]:
    """What `drills.mjs` found in these checks, and the inputs of the drill that were recorded meanwhile."""
    positions = block(CELLS, SPACING).positions
    x, y, _ = middle(SEED, positions, NODULES["Easy"])
    place = json.dumps([float(x), float(y), float(positions[:, 2].max())])
    command = ("-m", "viscera", "serve", "palpation", "--port", "0", "--seed", str(SEED), "--detail", "1")
    with serving(*command, "--out", str(folder / "recordings")) as address:
        found = checked("drills.mjs", address, folder, place, *checks)
    for name, one in found.items():
        assert one["ok"], f"{name}: {one.get('error')}"
        assert one["errors"] == []
    recording = read_recording(next((folder / "recordings").glob("*.h5")))
    said = [one for _, one in recording.inputs if isinstance(one, StartDrill | EndDrill)]
    return found | {"said": said, "recording": recording}


@pytest.mark.slow
def test_a_pin_over_the_nodule_is_found_and_its_result_stays(tmp_path: Path) -> None:
    driven = drive(tmp_path, "found")
    found = driven["found"]
    assert (found["waiting"]["phase"], found["waiting"]["time"]) == ("waiting", 0)
    assert found["running"]["phase"] == "running"
    ended = found["ended"]
    assert (ended["outcome"], ended["certainty"]) == ("found", 0.75)
    assert ended["off"] < 0.01
    assert found["after"] == ended
    assert found["markers"] == 2, "the pin, and what was hidden"
    assert driven["said"] == [StartDrill(0, SEED), EndDrill("found", 0.75)]
    (trial,) = driven["recording"].trials
    assert (trial.outcome, trial.passed, trial.values["time"]) == ("found", True, ended["time"])
    assert any("Marking pin" in row or "path" in row.lower() for row in found["rows"])
    assert any(f"{trial.values['pin.path']:.1f} cm" in row for row in found["rows"])


@pytest.mark.slow
def test_a_run_is_watched_again_and_gone_on_from(tmp_path: Path) -> None:
    driven = drive(tmp_path, "found", "watched")
    assert driven["watched"]["ok"]
    assert "watch=" in driven["watched"]["linked"]
    assert "watch=" not in driven["watched"]["left"], "a reload stays with the run that goes on"
    archives = [read_recording(path) for path in (tmp_path / "recordings").glob("*.h5")]
    assert len(archives) == 2, "the run, and the one that went on from it"
    first, second = sorted(archives, key=lambda one: one.path.stat().st_mtime)
    common = [entry for entry in first.inputs if entry[0] <= 1_500]
    assert second.inputs[: len(common)] == common


@pytest.mark.slow
def test_a_fourth_pin_fails_the_next_trial_and_it_can_be_given_up(tmp_path: Path) -> None:
    driven = drive(tmp_path, "found", "failed", "given_up")
    failed, given_up = driven["failed"], driven["given_up"]
    assert failed["before"] == f"Easy, seed {SEED}"
    assert (failed["ended"]["outcome"], failed["ended"]["failed"]) == ("failed", ["pins"])
    assert "Failed after" in failed["title"]
    assert f"seed {SEED + 1}" in failed["title"]
    assert "No pin is stuck yet" in given_up["told"]
    assert given_up["refused"], "without a pin there is nothing to be sure of"
    assert given_up["closed"], "Escape closes it"
    assert given_up["ended"]["outcome"] == "given_up"
    assert given_up["ended"]["time"] < failed["ended"]["time"], "the clock began anew"
    recording = driven["recording"]
    again = replay_report(recording.path)
    assert again.same
    assert [one.outcome for one in again.scores] == ["found", "failed", "given_up"]
    assert [one.values() for one in again.scores] == [one.values for one in recording.trials], (
        "a replay scores the same"
    )
    assert driven["said"][2:] == [StartDrill(0, SEED + 1), StartDrill(0, SEED + 1), EndDrill("given_up", 0.0)]
