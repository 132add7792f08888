"""Gaze by webcam in a real browser: the fake camera shows a rendered face that looks at nine places in turn."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from rendered_face import write_video
from test_browser import ROOT, node, scenario_served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MODEL = ROOT / "src" / "viscera" / "server" / "webcam" / "face_mesh.js"
PLACES = [(x, y) for y in (0.1, 0.5, 0.9) for x in (0.1, 0.5, 0.9)]
SECONDS = 8.0
"""At each place: longer than a slow machine takes to notice it."""


@pytest.mark.skipif(not MODEL.is_file(), reason="the landmark model is fetched by `python hatch_build.py webcam`")
@pytest.mark.timeout(900)
def test_eyes_are_calibrated_and_followed(tmp_path: Path) -> None:
    write_video(tmp_path / "face.y4m", PLACES, SECONDS)
    with scenario_served("waves", tmp_path / "recordings", 0.1) as at:
        command = [node(), ROOT / "tests" / "browser" / "webcam.mjs", at, tmp_path / "face.y4m", tmp_path]
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=800)
    found = json.loads(run.stdout.strip().splitlines()[-1])
    assert found["ok"], found
    assert found["early"] == 0, "nothing of the model is loaded before somebody asks for it"
    told = re.search(r"off by (\d+) %", found["status"])
    assert told is not None, found["status"]
    # The face is drawn by rule, and its irises move by 17 and 9 pixels: measured 2 to 6 % here.
    assert int(told[1]) <= 15
    for number, seen in found["gazes"].items():
        assert np.hypot(*(np.array(seen) - PLACES[int(number)])) < 0.15, (number, seen)
