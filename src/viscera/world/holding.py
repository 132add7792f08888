"""What keeps a tool from going where its hand is: tissue that is pressed as far as it can be.

The tool that tissue meets, that is drawn and that acts, follows its hand (instruments/tool.py), but goes on into tissue
only as fast as that can bear. Let n be the direction of the force on it, smoothed over some ticks, and q the least of

    (F_most − F)/F_slow,   (s − s_least)/s_slow,   (1 − d/r)/d_slow,

for the force F, the least stretch s of the tissue beneath it (1 at rest, 0 flat), and the depth d to which points
sprang into its thinnest bar of radius r within a substep. Of its way, what points against n is at most
q²·v_fastest·Δt: less and less as a bound comes near, and beyond it the tool is taken back a little. Sliding and leaving
are free. Where d is more than r, sliding is only 2 − d/r of what was wished: a bar between two lobes is pushed by both,
and ploughs through what it slides along. That is not asked of tissue that can be cut: a blade or a hook lies deep in
what it has opened, and has to come along it. So a hand that goes on pressing, at any speed and in any direction,
leaves its tool where the bound is. q falls at once and rises slowly, as tissue that is hit springs to and fro. Turning
about the tip is bounded in the same way: of its turn, what goes against the direction of the torque on it is at most
q²·ω_fastest·Δt, and what goes across it is q² of what was wished: a long shaft that turns sideways ploughs.

A tool that is drawn out along its own bars presses nothing flatter: where they go they were. Of a way outwards along
the shaft, 1 − sin θ is such a part, for the greatest angle θ between shaft and bars; force alone bounds it. Without
this, scissors that have closed in gauze stay caught with next to no force on them: what they stand in lies flat, and
rubs on them against any way that they go.

Near tissue a tool is also no faster than half the radius of its thinnest bar per substep, so that it passes no point of
the surface unseen, and into it no faster than `INTO` times that radius.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Vector3
from viscera.instruments import FASTEST_TOOL, Tool
from viscera.instruments.tool import FASTEST_TURN
from viscera.instruments.turning import dot
from viscera.timing import TICK
from viscera.tissue.touching import NOTHING_NEAR
from viscera.world.organ import Organ

MOST_FORCE, SLOW_FORCE = 10.0, 4.0
"""No tool presses harder than the first; from the difference of both on it slows down [N]."""
LEAST_STRETCH, SLOW_STRETCH = 0.4, 0.3
"""Tissue is not pressed flatter than this share of its thickness; from their sum on the tool slows down. Cells that are
pressed flat turn inside out."""
SLOW_DEPTH = 0.5
"""From this share of a bar's radius on points are about to pass it."""
DEEPEST = 1.0e-3
"""For thick bars, what r is at most in the third bound [m]."""
PAST, INTO = 0.5, 0.15
"""Radii of its thinnest bar that a tool may go in a substep near tissue, and into it."""
RECOVERY = 0.02
"""By so much q may rise in a tick."""
STEADY = 0.1
"""Share of the last tick's direction in n: a force that trembles must not let a tool slip down its slope."""
LEAST_FREE = 1.0e-9
"""Of what force alone leaves of q, so that it still says that tissue is near."""
BACK = 0.4
"""Least q, and how fast a tool is taken back then: q·BACK times the fastest speed."""


class Holding:
    """Of one tool."""

    def __init__(self, tool: Tool, organs: Sequence[Organ]) -> None:
        self._tool, self._organs = tool, organs
        self._thinnest = float(tool.bars.radii.min()) if tool.bars.count else DEEPEST
        self._substeps = min((organ.tissue.substeps for organ in organs), default=1)
        self.state = np.zeros(9)
        """Direction of the force that last was on it, and 1 − q; zero where nothing holds it. Then, above 0 where
        tissue is near, what q would be by force alone; the direction of the torque; and what of its sliding is not
        free. Part of the world's state."""

    def allow(self, way: NDArray[np.float64]) -> NDArray[np.float64]:
        """What of this way of a tick it may go [m]."""
        radii = self._thinnest * self._substeps
        length = math.sqrt(dot(way, way))
        if self.state[4] > 0.0 and length > PAST * radii:
            way = way * (PAST * radii / length)
        normal, freedom = self.state[:3], 1.0 - float(self.state[3])
        out = self._drawn_out(way)
        way = way - out
        into = -dot(way, normal)
        most = min(_eased(freedom) * FASTEST_TOOL * TICK, INTO * radii)
        if into > most and normal.any():
            way = way + (into - most) * normal
        slides = 1.0 - float(self.state[8])
        if slides < 1.0:
            along = dot(way, normal) * normal
            way = along + slides * (way - along)
        return way + out

    def _drawn_out(self, way: NDArray[np.float64]) -> NDArray[np.float64]:
        """What of a way draws the tool out along its own bars, where something holds it [m]."""
        if self.state[3] <= 0.0:
            return np.zeros(3)
        shaft = np.array(self._tool.shaft)
        outwards = dot(way, shaft)
        if outwards <= 0.0:
            return np.zeros(3)
        bars = self._tool.end[: self._tool.bars.count]
        axes = bars[:, 1] - bars[:, 0]
        along = (abs(dot(axis, shaft)) / max(math.sqrt(dot(axis, axis)), 1e-12) for axis in axes)
        least = min(1.0, *along)
        aside = math.sqrt(max(1.0 - least * least, 0.0))
        by_force = float(self.state[4])
        return outwards * (1.0 - aside) * by_force * by_force * shaft

    def allow_turn(self, way: NDArray[np.float64]) -> NDArray[np.float64]:
        """What of this turn of a tick it may make: axis times angle [rad]."""
        normal, freedom = self.state[5:8], 1.0 - float(self.state[3])
        if not normal.any():
            return way
        leaves = dot(way, normal)
        aside = max(freedom, 0.0) ** 2 * (way - leaves * normal)
        return aside + max(leaves, -_eased(freedom) * FASTEST_TURN * TICK) * normal

    def feel(self, force: Vector3, torque: Vector3, slot: int) -> None:
        """After a tick."""
        size = math.sqrt(force[0] ** 2 + force[1] ** 2 + force[2] ** 2)
        freedom, near, slides = min(1.0, (MOST_FORCE - size) / SLOW_FORCE), False, 1.0
        by_force = max(freedom, LEAST_FREE)
        for organ in self._organs:
            depth, stretch = organ.tissue.tool_gauge(slot)
            passing = 1.0 - depth / min(self._thinnest, DEEPEST)
            if size > 0.0:  # tissue that it does not press may lie flat after cuts, and holds nothing
                freedom = min(freedom, (stretch - LEAST_STRETCH) / SLOW_STRETCH, passing / SLOW_DEPTH)
                if organ.tissue.cutting is None:
                    slides = min(slides, max(1.0 + passing, 0.0))
            near = near or stretch < NOTHING_NEAR
        if not near:
            self.state[:] = 0.0
            return
        if size > 0.0:
            _steady(self.state[:3], force)
            _steady(self.state[5:8], torque)
        # Tissue that springs to and fro is no freer for it.
        self.state[3] = max(1.0 - max(freedom, -BACK), float(self.state[3]) - RECOVERY)
        self.state[4], self.state[8] = by_force, 1.0 - slides


def _eased(freedom: float) -> float:
    """Of the fastest speed, what is left for this q."""
    return freedom * min(1.0, max(freedom, BACK))


def _steady(direction: NDArray[np.float64], felt: Vector3) -> None:
    """Brings a direction up to what is felt."""
    x, y, z = felt
    size = math.sqrt(x * x + y * y + z * z)
    if size == 0.0:
        return
    share = STEADY if direction.any() else 1.0
    mean = (1.0 - share) * direction + (share / size) * np.array(felt)
    direction[:] = mean / max(math.sqrt(dot(mean, mean)), 1e-9)
