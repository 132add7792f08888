"""Volumes: smoke that rises where the pedal is pressed, and a cloud of blood in saline.

    viscera run tests/scenarios/shown/haze.py

Both are formulas of the time, not flows: they are here to be drawn.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sheet import BOUNDS, CAMERA, sheet

from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.timing import FRAME
from viscera.view import Measure, Volume
from viscera.world import Contents, Moment, Show, System, World
from viscera.world.system import Kept

SIDE = 32
SMOKE = Volume("smoke", "smoke", SIDE, SIDE, SIDE, ((-0.05, -0.025, 0.0), (0.0, 0.025, 0.05)), densest=260.0)
SALINE = Volume("saline", "saline", SIDE, SIDE, SIDE, ((0.004, -0.03, -0.004), (0.05, 0.03, 0.022)), densest=300.0)
AMOUNT = Measure("smoke", "Smoke", "%", "How much of the densest there is.", digits=0)
CLEAR = 0.1
"""Of saline without blood, of the densest."""
EVERY = 2
"""Frames from one change to the next."""
GROWTH = 0.04
"""Of the smoke's amount in a change, towards what the pedal asks."""


class Haze:
    def __init__(self) -> None:
        z, y, x = (np.mgrid[0:SIDE, 0:SIDE, 0:SIDE].astype(np.float32) + 0.5) / SIDE
        self._place = x, y, z
        self.state = np.array([0.0, 0.4])
        """Time [s] and amount of smoke, 0 to 1."""
        self.smoke = np.zeros((SIDE * SIDE, SIDE, 4), dtype=np.uint8)
        self.saline = np.zeros_like(self.smoke)
        self.draw()

    def frame(self, now: Moment) -> None:
        pressed = any(tool.pressed for tool in now.tools)
        self.state[0] += EVERY * FRAME
        self.state[1] += GROWTH * ((1.0 if pressed else 0.4) - self.state[1])
        self.draw()

    def draw(self) -> None:
        time, amount = (np.float32(value) for value in self.state)
        x, y, z = self._place
        # A plume that sways, widens and thins as it rises.
        sway = 0.5 + 0.10 * z * np.sin(7.0 * z - 2.2 * time), 0.5 + 0.08 * z * np.cos(6.0 * z - 1.7 * time)
        wide = 0.06 + 0.17 * z
        off = ((x - sway[0]) ** 2 + (y - sway[1]) ** 2) / wide**2
        curl = 0.75 + 0.25 * np.sin(17.0 * x + 9.0 * np.sin(11.0 * z - 3.0 * time)) * np.cos(15.0 * y)
        plume = amount * curl * np.exp(-off) * (0.07 / wide) * np.clip((1.0 - z) / 0.25, 0.0, 1.0)
        self.smoke[..., 0] = _bytes(plume)
        # Clear saline up to its level, with a cloud of blood that spreads.
        spread = 0.10 + 0.10 * (1.0 - np.exp(-0.2 * time))
        cloud = np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2 + 0.6 * (z - 0.3) ** 2) / (2.0 * spread**2))
        cloud *= 0.8 + 0.2 * np.sin(20.0 * x + 8.0 * np.sin(13.0 * y + 0.5 * time))
        level = np.clip((0.9 - z) * SIDE, 0.0, 1.0)
        self.saline[..., 0] = _bytes(level * (CLEAR + (1.0 - CLEAR) * cloud))
        self.saline[..., 1] = _bytes(cloud / (CLEAR + (1.0 - CLEAR) * cloud))


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.rint(255.0 * np.clip(values, 0.0, 1.0)).astype(np.uint8).reshape(SIDE * SIDE, SIDE)


def build(setting: Setting) -> Contents:
    haze = Haze()
    kept = Kept({"state": haze.state}, haze.draw)
    system = System(
        name="haze", frame=haze.frame, every=EVERY, save=kept.save, load=kept.load, holds=haze,
        shows=[Show(SMOKE, {"smoke": haze.smoke}), Show(SALINE, {"saline": haze.saline})],
        measures=lambda: [(AMOUNT, 100.0 * float(haze.state[1]))],
    )  # fmt: skip

    def script(world: World, tick: int) -> Iterable[Input]:
        return [ToolInput(0, (-0.025, 0.0, 0.002), grip=1.0)] if tick == 160 else []

    return Contents(
        tools=kit.hand_out([kit.hook()], (-0.025, 0.0, 0.06), friction=0.05),
        systems=[system],
        scenery=[sheet()],
        camera=CAMERA,
        bounds=BOUNDS,
        script=script,
    )


SCENARIO = Scenario(
    name="haze",
    build=build,
    title="Haze",
    summary="Smoke over tissue, and blood in saline.",
    instructions="Look around with the right button.\nHold the left button for more smoke.",
)
