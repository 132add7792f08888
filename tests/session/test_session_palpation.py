"""The real world behind a real server: recorded live, killed, resumed, replayed, and the same without a window."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from server_browser import Browser, health, running_server

import viscera
from viscera.server import messages as m
from viscera.session.logfile import read_log
from viscera.session.replay import DEFAULT_FACTORY, replay_report


def test_palpation_lives_dies_resumes_and_replays_bit_for_bit(tmp_path: Path) -> None:
    options = {"factory": DEFAULT_FACTORY, "device": "cpu", "seed": 4}
    with running_server(tmp_path, "palpation", **options) as server, Browser(server) as browser:
        scene = browser.wait(m.SceneDescription, seconds=120.0).scene
        browser.wait(m.FrameMessage)
        low, high = scene.bounds
        x, y = 0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1])
        for sequence in range(1, 60):
            browser.move(sequence, position=(x, y, high[2] - 0.001 * sequence))
            browser.watch(0.02)
        stiffness = next(one for one in scene.parameters if one.name == "stiffness")
        browser.send(m.SetParameter(name="stiffness", value=0.5 * (stiffness.minimum + stiffness.default)))
        (log,) = tmp_path.glob("*.log")
        end = time.monotonic() + 60.0
        while len(read_log(log).inputs) <= 30:  # written with each heartbeat
            assert time.monotonic() < end, "the inputs do not come into the log"
            browser.watch(0.2)
        os.kill(health(server)["session_pid"], signal.SIGKILL)
        browser.wait_state("crashed")
        browser.send(m.Restart())
        browser.wait_state("running", 60.0)
        browser.move(100, position=(x, y, high[2]))
        browser.wait(m.FrameMessage, lambda frame: (browser.number, 100) in frame.state.applied)
    (archive,) = tmp_path.glob("*.h5")
    done = replay_report(archive)
    done.world.close()
    assert done.same is True
    assert len(done.recording.inputs) > 30
    # Without a window, tick by tick, and on one core: the same bits.
    world = viscera.make("palpation", device="cpu", seed=4, cores=1)
    inputs = list(done.recording.inputs)
    while world.tick < done.recording.tick:
        while inputs and inputs[0][0] == world.tick:
            world.apply(inputs.pop(0)[1])
        world.step()
    assert world.state_hash() == done.recording.state_hash
    world.close()
