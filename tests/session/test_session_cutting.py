"""A cut behind a real server: killed in the middle of it, resumed, seen by who joins later, replayed bit for bit."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from server_browser import Browser, health, running_server

from viscera.server import messages as m
from viscera.session.logfile import read_log
from viscera.session.replay import DEFAULT_FACTORY, replay_report


def draw(browser: Browser, sequence: int, area: float, seconds: float = 120.0) -> int:
    """Draws the scalpel on through the skin until so much is cut [mm²]; the next sequence number."""
    end = time.monotonic() + seconds
    while browser.newest is None or browser.newest.state.measures["cut_area"] < area:
        assert time.monotonic() < end, "nothing is cut"
        x = min(-0.028 + 0.0004 * sequence, 0.02)
        browser.move(sequence, position=(x, 0.0, 0.004), grip=1.0)
        browser.watch(0.05)
        sequence += 1
    return sequence


@pytest.mark.slow
def test_a_cut_survives_a_kill_is_seen_by_who_joins_later_and_replays_bit_for_bit(tmp_path: Path) -> None:
    options = {"factory": DEFAULT_FACTORY, "device": "cpu", "seed": 4}
    with running_server(tmp_path, "incision", **options) as server, Browser(server) as browser:
        scene = browser.wait(m.SceneDescription, seconds=240.0).scene
        first = len(scene.surfaces[0].triangles) // 12
        sequence = draw(browser, 1, area=20.0)
        (log,) = tmp_path.glob("*.log")
        assert browser.newest is not None
        seen, end = browser.newest.state.tick, time.monotonic() + 60.0
        while read_log(log).tick < seen:  # written with each heartbeat
            assert time.monotonic() < end, "the cut does not come into the log"
            browser.watch(0.2)
        os.kill(health(server)["session_pid"], signal.SIGKILL)
        browser.wait_state("crashed")
        browser.newest = None
        browser.send(m.Restart())
        browser.wait_state("running", 120.0)
        resumed = browser.wait(m.FrameMessage, seconds=60.0)
        # It goes on with the cut as it was at the last heartbeat.
        assert resumed.state.measures["cut_area"] > 0.0
        assert resumed.state.versions["skin"] > 1
        draw(browser, sequence, area=resumed.state.measures["cut_area"] + 15.0)
        with Browser(server) as late:
            late.wait(m.SceneDescription, seconds=60.0)
            topology = late.wait(m.Topology, seconds=60.0)
            frame = late.wait(m.FrameMessage, seconds=60.0)
            assert topology.surface == "skin"
            assert frame.state.versions["skin"] >= topology.version > resumed.state.versions["skin"]
            triangles = next(array for array in topology.arrays if array.name == "skin/triangles")
            count = len(triangles.data) // 12
            assert count > first
            assert frame.state.counts["skin/triangles"] >= count
    (archive,) = tmp_path.glob("*.h5")
    done = replay_report(archive)
    done.world.close()
    assert done.same is True
