"""The bar of a drill and its result, in windows from a laptop's to a phone's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_browser import checked, passed, serving

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    along = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return across > 0.5 and along > 0.5


@pytest.mark.slow
def test_bar_and_result_stick_out_nowhere_and_cover_no_title(tmp_path: Path) -> None:
    command = ["-m", "viscera", "serve", "palpation", "--port", "0", "--detail", "0.3", "--device", "cpu"]
    command += ["--out", str(tmp_path / "recordings"), "--database", f"sqlite:///{tmp_path / 'trials.sqlite'}"]
    with serving(*command) as address:
        found = passed(checked("drill_layout.mjs", address, tmp_path, longest=600.0), "layouts")
    assert found["errors"] == []
    assert len(found["told"]) == 12
    for where, told in found["told"].items():
        width, height = told["window"]
        assert told["overflow"] <= width, where
        assert told["cut"] == [], where
        assert told["blocked"] == [], where
        assert told["menu"]["left"] >= 0.0, where
        assert told["menu"]["right"] <= width, where
        assert told["menu"]["covered"] == [], where
        for tool in told.get("crowd", {"tools": []})["tools"]:
            assert tool["left"] >= 0.0, (where, tool)
            assert tool["right"] <= width, (where, tool)
            assert not overlap(tool, told["crowd"]["side"]), (where, tool)
        drill = [box for box in told["found"] if box["part"] in ("bar", "card")]
        assert {box["part"] for box in drill} >= ({"card"} if where.startswith("ended") else {"bar"}), where
        for box in drill:
            assert box["left"] >= 0.0, (where, box)
            assert box["top"] >= 0.0, (where, box)
            assert box["right"] <= width + 0.5, (where, box)
            assert box["bottom"] <= height + 0.5, (where, box)
        for place, one in enumerate(told["found"]):
            for other in told["found"][place + 1 :]:
                # In narrow windows the result lies over the instruments, which nobody uses then.
                lies_over = width < 900 and {one["part"], other["part"]} in ({"card", "tools"}, {"card", "transport"})
                if one["part"] != other["part"] and not lies_over:
                    assert not overlap(one, other), (where, one, other)
