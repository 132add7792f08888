"""What keeps a tool from going where its hand is: tissue that is pressed as far as it can be.

The tool that tissue meets, that is drawn and that acts, follows its hand (instruments/tool.py), but goes on into tissue
only as fast as that can bear. Let n be the direction of the force on it in the last tick, and q the least of

    (F_most − F)/F_slow,   (s − s_least)/s_slow,   (1 − d/r)/d_slow,

for the force F, the least stretch s of the tissue beneath it (1 at rest, 0 flat), and the depth d to which points
sprang into its thinnest bar of radius r within a substep. Of its way, what points against n is at most q|q|·v_fastest·Δt:
less and less as a bound comes near, and beyond it the tool is taken back a little. Sliding and leaving are free. So a
hand that goes on pressing, at any speed and in any direction, leaves its tool where the bound is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from viscera.instruments import FASTEST_TOOL, Tool
from viscera.timing import TICK
from viscera.world.organ import Organ

MOST_FORCE, SLOW_FORCE = 10.0, 4.0
"""No tool presses harder than the first; from the difference of both on it slows down [N]."""
LEAST_STRETCH, SLOW_STRETCH = 0.4, 0.3
"""Tissue is not pressed flatter than this share of its thickness; from their sum on the tool slows down. Cells that are
pressed flat turn inside out."""
SLOW_DEPTH = 0.5
"""From this share of a bar's radius on points are about to pass it."""
BACK = 0.2
"""Share of the fastest speed with which a tool beyond its bound is taken back, at most."""


class Holding:
    """Of one tool."""

    def __init__(self, tool: Tool) -> None:
        self._thinnest = float(tool.bars.radii.min()) if tool.bars.count else 1.0
        self.state = np.zeros(4)
        """Direction of the force on it in the last tick, and q; zero where nothing holds it. Part of the state."""

    def allow(self, way: NDArray[np.float64]) -> NDArray[np.float64]:
        """What of this way of a tick it may go [m]."""
        normal, freedom = self.state[:3], float(self.state[3])
        into = -float(way @ normal)
        most = freedom * abs(freedom) * FASTEST_TOOL * TICK
        if into > most and normal.any():
            way = way + (into - most) * normal
        return way

    def feel(self, force: tuple[float, float, float], slot: int, organs: Sequence[Organ]) -> None:
        """After a tick."""
        size = math.sqrt(force[0] ** 2 + force[1] ** 2 + force[2] ** 2)
        if size == 0.0:
            self.state[:] = 0.0
            return
        freedom = min(1.0, (MOST_FORCE - size) / SLOW_FORCE)
        for organ in organs:
            depth, stretch = organ.tissue.tool_gauge(slot)
            freedom = min(
                freedom, (stretch - LEAST_STRETCH) / SLOW_STRETCH, (1.0 - depth / self._thinnest) / SLOW_DEPTH
            )
        self.state[0], self.state[1], self.state[2] = force[0] / size, force[1] / size, force[2] / size
        self.state[3] = max(freedom, -BACK)
