"""Smoke in the page: pictures per second at full screen with few and with the most puffs, drawn in software."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from verify.framework import Measured, figure
from verify.viewers import serve
from viscera.doctor import BROWSER_VARIABLE, find_browser
from viscera.world.systems.puffs import MOST_PUFFS

AREA = "smoke"
HERE = Path(__file__).parent
FEW, SECONDS = 4, 12.0
LEAST_SHARE = 50.0
"""A frame rate has collapsed when less than this is left of it [%]."""


@figure(
    area=AREA,
    claim=f"pictures per second of the page at 1280 × 800 with {MOST_PUFFS} overlapping puffs, of those with {FEW}",
    bound=f"≥ {LEAST_SHARE:g} %",
    needs=("browser", "quiet"),
    also=("verify/scenes/many_puffs.py", "verify/watch_puffs.mjs", "viscera.world.systems.smoke"),
)
def many_puffs() -> Measured:
    few, most = _pictures()
    share = 100.0 * most["rate"] / few["rate"]
    detail = "; ".join(
        f"{one['puffs']} puffs: {one['rate']:.1f} pictures/s, {100 * one['share']:.0f} % of the pixels along a side"
        for one in (few, most)
    )
    assert most["density"] > 4 * few["density"] > 0, "the page did not get them"
    return Measured(share, "%", share >= LEAST_SHARE, f"software Chromium on the same cores; {detail}")


@functools.cache
def _pictures() -> list[dict[str, Any]]:
    from hatch_build import npm_command

    node = str(npm_command()[1] / "node")
    scene = str(HERE / "scenes" / "many_puffs.py")
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder), "--device", "cpu", "--detail", "1", scenario=scene) as at,
    ):
        told = subprocess.run(
            [node, str(HERE / "watch_puffs.mjs"), at.url, str(FEW), str(MOST_PUFFS), str(SECONDS)],
            env={**os.environ, BROWSER_VARIABLE: find_browser() or ""},
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
    return [json.loads(line) for line in told.stdout.splitlines()]
