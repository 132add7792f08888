"""X-ray videos play in a real browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_browser import checked

from viscera.xray import files

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_a_video_plays_to_its_end(tmp_path: Path) -> None:
    pytest.importorskip("av")
    cine = files.Cine(7.5, 80.0)
    x = np.arange(128)
    for k in range(9):
        cine.frames.append(np.tile((128.0 + 100.0 * np.sin(0.1 * x + k)).astype(np.uint8), (128, 1)))
    paths = [tmp_path / "run.webm", tmp_path / "run.mp4"]
    for path in paths:
        files.write_video(path, cine)
    found = checked("video.mjs", "", tmp_path, *map(str, paths))
    for kind in ("webm", "mp4"):
        assert found[kind]["error"] == ""
        assert found[kind]["ended"]
        assert found[kind]["width"] == 128
        assert found[kind]["time"] == pytest.approx(9 / 7.5, abs=0.2)
