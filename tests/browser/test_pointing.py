"""What the cursor points at is where the working end acts, in a real browser with a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_browser import checked, passed, scenario_served

import viscera

pytestmark = pytest.mark.browser

PIXELS = 2.0
"""Less than anyone sees of a cursor; a pixel is about 0.2 mm there."""


WINDOWS = 3
ON_A_PAD = ("cautery", "bleeding", "smoke")
"""Scenarios whose organ is called so; the others' hands are those of tests/browser/test_every_drill.py."""


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ON_A_PAD)
def test_an_instrument_acts_at_the_cursor_in_every_window(scenario: str, tmp_path: Path) -> None:
    world = viscera.make(scenario, device="cpu", detail=0.1)
    names = [tool.instrument.name for tool in world.hands]
    world.close()
    with scenario_served(scenario, tmp_path / "recordings") as at:
        found = passed(checked("pointing.mjs", at, tmp_path), "pointing")
    assert found["errors"] == []
    assert [one["name"] for one in found["found"]] == WINDOWS * names, "every instrument that there is"
    for one in found["found"]:
        assert one["pixels"] <= PIXELS, one
