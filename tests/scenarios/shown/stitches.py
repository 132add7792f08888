"""Markers and threads: pins and clips on a sheet, a suture that grows stitch by stitch, a wire that bends.

viscera run tests/scenarios/shown/stitches.py
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from sheet import BOUNDS, CAMERA, height, sheet

from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.timing import FRAME
from viscera.view import Markers, Measure, Threads
from viscera.world import Contents, Moment, Show, System, World
from viscera.world.system import Kept

PINS = Markers("pins", "pin", 0.006, 4)
CLIPS = Markers("clips", "clip", 0.003, 3)
SUTURE = Threads("suture", "suture", 0.0005, 160)
WIRE = Threads("wire", "wire", 0.0006, 24)
STITCH = 16
"""Points of one stitch."""
PACE = 0.25
"""Seconds per stitch."""
KNOT = 60
"""Points of the first thread; the second begins after a gap."""

SEWN = Measure("stitches", "Stitches", "", "Made so far.", digits=0)


def _normal(x: float, y: float) -> NDArray[np.float64]:
    h = 1e-4
    slope = [
        float(height(np.array(x + dx), np.array(y + dy)) - height(np.array(x - dx), np.array(y - dy))) / (2 * h)
        for dx, dy in ((h, 0.0), (0.0, h))
    ]
    normal = np.array([-slope[0], -slope[1], 1.0])
    return normal / np.linalg.norm(normal)


def _pose(x: float, y: float) -> NDArray[np.float64]:
    """A row of `Markers`: on the sheet, its z axis along the normal there."""
    normal = _normal(x, y)
    # The shortest turn from +z: half way between the two.
    half = normal + np.array([0.0, 0.0, 1.0])
    half /= np.linalg.norm(half)
    turn = [-half[1], half[0], 0.0, half[2]]
    return np.array([x, y, float(height(np.array(x), np.array(y))), *turn, 1.0])


def _seam() -> NDArray[np.float64]:
    """A running stitch along y = 0: over the sheet on one side, through it to the other."""
    way = np.arange(SUTURE.capacity) / STITCH
    x = -0.032 + 0.0066 * way
    y = 0.0055 * np.cos(2.0 * np.pi * way)
    z = height(x, y) + np.where(np.sin(2.0 * np.pi * way) > 0.0, 0.0018, -0.0035) * np.abs(np.sin(2.0 * np.pi * way))
    goes_on = np.ones_like(x)
    goes_on[KNOT - 1] = 0.0
    return np.stack([x, y, z + 0.0004, goes_on], axis=1)


class Stitches:
    def __init__(self) -> None:
        self.state = np.array([0.0, 0.0])
        """Time [s] and whether the clips are there."""
        self.seam = _seam().astype(np.float32)
        self.pins = np.zeros((PINS.capacity, 8), dtype=np.float32)
        self.clips = np.zeros((CLIPS.capacity, 8), dtype=np.float32)
        self.suture = np.zeros((SUTURE.capacity, 4), dtype=np.float32)
        self.wire = np.zeros((WIRE.capacity, 4), dtype=np.float32)
        self.points = 0
        self.pins[:] = [_pose(x, y) for x in (-0.038, 0.038) for y in (-0.026, 0.026)]
        self.draw()

    def frame(self, now: Moment) -> None:
        self.state[0] += FRAME
        if any(tool.pressed for tool in now.tools):
            self.state[1] = 1.0
        self.draw()

    def draw(self) -> None:
        time, clipped = self.state
        self.points = min(SUTURE.capacity, int(STITCH * time / PACE))
        self.suture[:] = self.seam
        self.suture[max(self.points - 1, 0), 3] = 0.0
        self.clips[:] = [_pose(x, 0.024) for x in (-0.012, 0.0, 0.012)]
        self.clips[:, 7] = clipped
        along = np.linspace(0.0, 1.0, WIRE.capacity)
        x, y = -0.03 + 0.06 * along, -0.022 + 0.004 * np.sin(9.0 * along + time)
        z = height(x, y) + 0.002 + 0.012 * np.sin(np.pi * along) ** 2
        self.wire[:] = np.stack([x, y, z, np.ones_like(x)], axis=1)
        self.wire[-1, 3] = 0.0


def build(setting: Setting) -> Contents:
    sewing = Stitches()
    kept = Kept({"state": sewing.state}, sewing.draw)
    system = System(
        name="stitches", frame=sewing.frame, save=kept.save, load=kept.load, holds=sewing,
        shows=[
            Show(PINS, {"pins": sewing.pins}),
            Show(CLIPS, {"clips": sewing.clips}),
            Show(SUTURE, {"suture": sewing.suture}, lambda: {"suture": sewing.points}),
            Show(WIRE, {"wire": sewing.wire}),
        ],
        measures=lambda: [(SEWN, sewing.points // STITCH)],
    )  # fmt: skip

    def script(world: World, tick: int) -> Iterable[Input]:
        return [ToolInput(0, (0.0, 0.024, 0.004), grip=1.0)] if tick == 480 else []

    return Contents(
        tools=kit.hand_out([kit.clip_applier()], (0.0, 0.0, 0.06), friction=0.05),
        systems=[system],
        scenery=[sheet("tissue")],
        camera=CAMERA,
        bounds=BOUNDS,
        script=script,
    )


SCENARIO = Scenario(
    name="stitches",
    build=build,
    title="Stitches",
    summary="Pins, clips, a suture and a wire.",
    instructions="Watch the suture grow.\nHold the left button to set the clips.",
)
