"""A volume on the wire: a box of 64³ cells of which all change, from a real server to viewers as the page is one."""

from __future__ import annotations

import asyncio
import functools
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from verify.framework import Measured, figure
from verify.viewers import serve, view

AREA = "smoke"
SCENE = Path(__file__).parent / "scenes" / "full_box.py"
ALSO = ("verify/scenes/full_box.py", "viscera.server.tiles", "viscera.server.client", "viscera.world.systems.smoke")
SETTLE_S, WATCH_S = 2.0, 10.0
SLOW_S = 0.5
"""That the slow viewer takes over each frame [s]; two may be on their way to it, so it gets four in a second."""
CELLS = 64**3


@dataclass(frozen=True)
class Watched:
    """Of a viewer: frames and volumes per second, MB per second."""

    frames: float
    volumes: float
    megabytes: float


@figure(
    area=AREA,
    claim="a volume of 64³ cells that all change crosses to a viewer",
    bound="≥ 20 volumes/s within 20 MB/s",
    needs=("quiet",),
    also=ALSO,
)
def volume_rate() -> Measured:
    fast, _, ticks = _watched()
    whole = fast.megabytes / fast.volumes / (1e-6 * CELLS)
    detail = (
        f"{fast.megabytes:.1f} MB/s, {whole:.2f} bytes for each cell, {fast.frames:.0f} frames/s, {ticks:.0f} ticks/s"
    )
    return Measured(fast.volumes, "volumes/s", fast.volumes >= 20.0 and fast.megabytes <= 20.0, detail)


@figure(
    area=AREA,
    claim=f"beside it, a viewer that takes {SLOW_S:g} s for each frame skips: what it gets of the volumes sent",
    bound="≤ 25 %, and the other gets its 20 volumes/s",
    needs=("quiet",),
    also=ALSO,
)
def slow_viewer_skips() -> Measured:
    fast, slow, _ = _watched()
    share = 100.0 * slow.volumes / fast.volumes
    detail = f"{slow.volumes:.1f} volumes/s, {slow.megabytes:.1f} MB/s; the other {fast.volumes:.1f} volumes/s"
    return Measured(share, "%", 0.0 < share <= 25.0 and fast.volumes >= 20.0, detail)


@functools.cache
def _watched() -> tuple[Watched, Watched, float]:
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder), "--device", "cpu", "--detail", "1", scenario=str(SCENE)) as served,
    ):

        async def watch() -> tuple[Watched, Watched, float]:
            async with view(served) as fast, view(served, ack_delay=SLOW_S) as slow:
                await asyncio.sleep(SETTLE_S)
                since, first = time.monotonic(), served.health()["tick"]
                await asyncio.sleep(WATCH_S)
                ticks = (served.health()["tick"] - first) / (time.monotonic() - since)
                seen = [
                    Watched(one.rate(since), one.tile_rate(since), 1e-6 * one.bytes_per_second(since))
                    for one in (fast, slow)
                ]
                return seen[0], seen[1], ticks

        return asyncio.run(watch())
