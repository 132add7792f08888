"""What the cursor points at is where the working end acts, in a real browser with a real server."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_browser import checked, passed, scenario_served

pytestmark = pytest.mark.browser

PIXELS = 2.0
"""Less than anyone sees of a cursor; a pixel is about 0.2 mm there."""


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "instruments"), [("cautery", 2), ("bleeding", 4)])
def test_an_instrument_acts_at_the_cursor_in_every_window(scenario: str, instruments: int, tmp_path: Path) -> None:
    with scenario_served(scenario, tmp_path / "recordings") as at:
        found = passed(checked("pointing.mjs", at, tmp_path), "pointing")
    assert found["errors"] == []
    assert len(found["found"]) == 3 * instruments
    for one in found["found"]:
        assert one["pixels"] <= PIXELS, one
