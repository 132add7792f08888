"""Every drill in a real browser, by mouse: started, given up, failed; a headless replay scores the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_browser import checked, serving

from viscera.session.archive import read_recording
from viscera.session.replay import replay_report

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

DRILLS = {
    "liver": ("given_up",),
    "artery": ("given_up",),
    "barium": ("given_up",),
    "bleeding": ("given_up",),
    "cautery": ("given_up", "failed"),
    "hysteroscopy": ("given_up",),
    "incision": ("given_up", "failed"),
    "pattern": ("given_up",),
    "suture": ("given_up",),
}


@pytest.mark.parametrize("scenario", DRILLS)
def test_a_drill_is_given_up_and_failed_by_mouse(scenario: str, tmp_path: Path) -> None:
    command = ("-m", "viscera", "serve", scenario, "--port", "0", "--seed", "3", "--detail", "1")
    with serving(*command, "--out", str(tmp_path / "recordings")) as address:
        found = checked("every_drill.mjs", address, tmp_path, *DRILLS[scenario])
    for name, one in found.items():
        assert one["ok"], f"{name}: {one.get('error')}"
        assert one["errors"] == []
        assert one["ended"]["outcome"] == name
    assert found["given_up"]["before"] == 0, "no goal is ticked before the start"
    assert "Given up after" in found["given_up"]["title"]
    if "failed" in found:
        assert "Failed after" in found["failed"]["title"]
        assert found["failed"]["ended"]["failed"], "it says what failed"
    recording = read_recording(next((tmp_path / "recordings").glob("*.h5")))
    again = replay_report(recording.path)
    assert again.same
    assert [one.values() for one in again.scores] == [one.values for one in recording.trials]
