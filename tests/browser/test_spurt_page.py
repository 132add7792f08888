"""Spurt in a real browser, by mouse: frame by frame, pressed on, sucked, clipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_browser import checked, serving

from viscera.anatomy import sheet
from viscera.scenarios.spurt import MASSES, on_a_hill
from viscera.world import fill

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

SEED = 3


def test_a_spurt_is_pressed_on_sucked_and_clipped_by_mouse(tmp_path: Path) -> None:
    place = on_a_hill(fill(sheet(seed=SEED).mesh, MASSES))
    command = ("-m", "viscera", "serve", "spurt", "--port", "0", "--seed", str(SEED), "--detail", "0.5")
    with serving(*command, "--out", str(tmp_path / "recordings")) as address:
        found = checked("spurt.mjs", address, tmp_path, json.dumps(place))
    for name, one in found.items():
        assert one["ok"], f"{name}: {one.get('error')}"
        assert one["errors"] == []
    assert found["press"]["pressed"] < 0.7 * found["press"]["free"]
    assert found["press"]["soaked"] > 0.0
    assert found["suck"]["sucked"] > 0.0
    assert found["clip"]["bleeding"] == 0.0
