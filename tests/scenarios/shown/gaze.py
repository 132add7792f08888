"""Overlays in screen space: a ring where somebody looks, and dots where they looked before.

viscera run tests/scenarios/shown/gaze.py
"""

from __future__ import annotations

import numpy as np
from sheet import BOUNDS, CAMERA, sheet

from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.timing import FRAME
from viscera.view import Overlay
from viscera.world import Contents, Moment, Show, System
from viscera.world.system import Kept

RING = Overlay("gaze", "ring", 1, label="Gaze")
TRAIL = Overlay("trail", "dot", 12)
EVERY = 5
"""Frames from one dot to the next."""


def looked_at(time: np.ndarray) -> np.ndarray:
    """x and y, 0 to 1, as time passes [s]: an eye that wanders and rests."""
    rest = np.sin(2.0 * np.pi * time / 4.0)
    return np.stack([0.5 + 0.3 * rest, 0.5 + 0.25 * np.sin(2.0 * np.pi * time / 3.0 + 0.7)], axis=-1)


class Gaze:
    def __init__(self) -> None:
        self.state = np.array([0.0])
        """Time [s]."""
        self.ring = np.zeros((1, 4), dtype=np.float32)
        self.trail = np.zeros((TRAIL.capacity, 4), dtype=np.float32)
        self.dots = 0
        self.draw()

    def frame(self, now: Moment) -> None:
        self.state[0] += FRAME
        self.draw()

    def draw(self) -> None:
        time = float(self.state[0])
        self.ring[0] = [*looked_at(np.array(time)), 0.06, 1.0]
        ago = FRAME * EVERY * np.arange(1, TRAIL.capacity + 1)
        self.dots = int((ago < time).sum())
        strength = np.linspace(0.8, 0.1, TRAIL.capacity)
        radius = np.full(TRAIL.capacity, 0.008)
        self.trail[:] = np.column_stack([looked_at(time - ago), radius, strength])


def build(setting: Setting) -> Contents:
    gaze = Gaze()
    kept = Kept({"state": gaze.state}, gaze.draw)
    system = System(
        name="gaze", frame=gaze.frame, save=kept.save, load=kept.load, holds=gaze,
        shows=[Show(TRAIL, {"trail": gaze.trail}, lambda: {"trail": gaze.dots}), Show(RING, {"gaze": gaze.ring})],
    )  # fmt: skip
    return Contents(
        tools=kit.hand_out([kit.probe(0.005)], (0.0, 0.0, 0.06), friction=0.05),
        systems=[system],
        scenery=[sheet()],
        camera=CAMERA,
        bounds=BOUNDS,
    )


SCENARIO = Scenario(
    name="gaze",
    build=build,
    title="Gaze",
    summary="A ring over the view where somebody looks.",
    instructions="Watch the ring.\nMove the probe below it: the ring is in nobody's way.",
)
