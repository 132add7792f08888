"""A second picture: an X-ray from above of a sheet with something hidden in it, and of the instrument in the hand.

    viscera run tests/scenarios/shown/xray.py

Light is what comes through, by Beer and Lambert; contrast medium runs along a duct as time passes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sheet import BOUNDS, CAMERA, SIZE, sheet

from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.timing import FRAME
from viscera.view import Column, Drag, Parameter, Picture, Table
from viscera.world import Contents, Moment, Show, System, World
from viscera.world.system import Kept, LiveParameter, LiveTable

PARAMETERS = [Parameter(name, name, "°", -90.0, 90.0, 0.0, "Does nothing.") for name in ("across", "up")]
PEDAL = Parameter("pedal", "Pedal", "", 0.0, 1.0, 0.0, "Does nothing.", ("up", "down"))
_COLUMNS = tuple(Column(name, name, "", "number", 0.0, 1e9) for name in ("x", "y", "number"))
CLICKS = Table("clicks", "Clicks", "In the picture.", _COLUMNS, ((0.0, 0.0, 0.0),), source="picture")
PICTURE = Picture(
    "xray", "X-ray", 256, 192, help="From above; what is dense is dark.",
    drags=(Drag("what is shown", "across", "up", 60.0),), pedal="pedal", marks="clicks",
)  # fmt: skip
RADIUS = 0.005
"""Of the probe's ball [m]."""
SPEED = 0.02
"""Of the contrast medium along the duct [m/s]."""


class Xray:
    def __init__(self) -> None:
        rows, columns = np.mgrid[0 : PICTURE.height, 0 : PICTURE.width]
        self.x = ((columns + 0.5) / PICTURE.width - 0.5) * SIZE[0]
        self.y = ((rows + 0.5) / PICTURE.height - 0.5) * SIZE[1]
        self.state = np.array([0.0, 0.0, 0.0, 0.0])
        """Time [s]; where the probe is [m], and whether it is there."""
        self.pixels = np.zeros((PICTURE.height, PICTURE.width, 4), dtype=np.uint8)
        x, y = self.x, self.y
        stone = np.clip(1.0 - ((x - 0.022) ** 2 + (y + 0.012) ** 2) / 0.006**2, 0.0, None)
        ribs = sum(np.exp(-(((y - place - 3.0 * x**2) / 0.0035) ** 2)) for place in (-0.028, -0.004, 0.022))
        self._still = 0.75 + 2.2 * np.sqrt(stone) + 0.35 * ribs
        self._duct = np.exp(-(((y - 0.012 * np.sin(60.0 * x)) / 0.0016) ** 2))
        self.draw()

    def frame(self, now: Moment) -> None:
        self.state[0] += FRAME
        tool = now.tools[0]
        self.state[1:] = *tool.tip[:2], float(tool.active)
        self.draw()

    def draw(self) -> None:
        time, px, py, there = self.state
        front = -0.5 * SIZE[0] + SPEED * time
        filled = np.clip((front - self.x) / 0.002, 0.0, 1.0)
        ball = np.sqrt(np.clip(1.0 - ((self.x - px) ** 2 + (self.y - py) ** 2) / RADIUS**2, 0.0, None))
        through = np.exp(-(self._still + 1.4 * filled * self._duct + 3.0 * there * ball))
        grey = np.rint(255.0 * through ** (1.0 / 2.2)).astype(np.uint8)
        self.pixels[..., :3] = grey[..., None]
        self.pixels[..., 3] = 255


def build(setting: Setting) -> Contents:
    xray = Xray()
    kept = Kept({"state": xray.state}, xray.draw)
    system = System(
        name="xray", frame=xray.frame, save=kept.save, load=kept.load, holds=xray,
        shows=[Show(PICTURE, {"xray": xray.pixels})], tables=[LiveTable(CLICKS)],
        parameters=[LiveParameter(one) for one in (*PARAMETERS, PEDAL)],
    )  # fmt: skip

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that takes the probe round in a circle."""
        x, y = 0.02 * np.cos(0.002 * tick), 0.02 * np.sin(0.002 * tick)
        return [ToolInput(0, (float(x), float(y), 0.008))] if tick % 16 == 0 else []

    return Contents(
        tools=kit.hand_out([kit.probe(RADIUS)], (0.0, 0.0, 0.06), friction=0.05),
        systems=[system],
        scenery=[sheet()],
        camera=CAMERA,
        bounds=BOUNDS,
        script=script,
    )


SCENARIO = Scenario(
    name="xray",
    build=build,
    title="X-ray",
    summary="A second picture beside the view.",
    instructions="Move the probe over the tissue and look at the X-ray.\nEnlarge it, and fold it.",
)
