"""Smoke as the document has it (Andersson §3.4): puffs that rise, slow down sideways, grow, fade and tremble.

    x ← x + Δt (v + rise),   v ← v e^(−Δt/T),   size = SMALL + growth · age,   share seen = 1 − age / LIFE,

each seen a little aside of where it is, by waves of its own, for small turbulence. Nothing else moves them: no organ,
no tool, no evacuator; the walls of the box hold them. Differs from the document in how they are drawn: not as
billboards, of which a few hundred at full screen take all the time there is, but as density in the cells of the box,
whose drawing costs the same for any number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.grid import Grid
from viscera.grid.shape import GridShape

wp.set_module_options({"enable_backward": False})

MOST_PUFFS = 256
LIFE = 4.0
"""[s]; tuned for appearance, as all below."""
RISE = 0.045
"""[m/s]; towards the camera's up, against gravity."""
SLOWING = 0.6
"""T of the motion sideways [s]."""
SCATTER = 0.012
"""Of the first velocity [m/s]."""
SMALL, GROWTH = 3.0e-3, 3.5e-3
"""Radius of a new puff [m], and how fast it grows [m/s]."""
TREMBLE = 1.5e-3
"""Of the waves [m], times age over a second."""
PER_STEP = 2
"""Puffs that are let go in a step while something burns."""

PLACE, SPEED, AGE, UNITS, PHASE, FLOATS = 0, 3, 6, 7, 8, 12
"""Of each puff: where it is [m], its velocity [m/s], age [s], units of smoke, phases of its waves."""


@wp.kernel
def splat(
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    # in
    count: wp.array[wp.int32],
    puffs: wp.array2d[wp.float32],
    # out
    amount_out: wp.array[wp.int32],
):
    """Puffs as units in cells: a ball that is densest in its middle. One thread, as they overlap."""
    for p in range(count[0]):
        age = puffs[p, AGE]
        sway = TREMBLE * wp.min(age, 2.0)
        x = puffs[p, PLACE] + sway * wp.sin(puffs[p, PHASE] + 5.0 * age)
        y = puffs[p, PLACE + 1] + sway * wp.sin(puffs[p, PHASE + 1] + 7.0 * age)
        z = puffs[p, PLACE + 2] + sway * wp.sin(puffs[p, PHASE + 2] + 4.0 * age)
        radius = (SMALL + GROWTH * age) / spacing
        gx = (x - origin[0]) / spacing
        gy = (y - origin[1]) / spacing
        gz = (z - origin[2]) / spacing
        # ∫ (1 − r²/R²)² over the ball is 32π R³/105.
        seen = puffs[p, UNITS] * wp.max(1.0 - age / LIFE, 0.0) / (0.957 * radius * radius * radius)
        reach = int(radius) + 1
        for n in range((2 * reach + 1) * (2 * reach + 1) * (2 * reach + 1)):
            i = int(gx) + 1 + n % (2 * reach + 1) - reach
            j = int(gy) + 1 + (n // (2 * reach + 1)) % (2 * reach + 1) - reach
            k = int(gz) + 1 + n // ((2 * reach + 1) * (2 * reach + 1)) - reach
            if i >= 1 and j >= 1 and k >= 1 and i <= shape.nx and j <= shape.ny and k <= shape.nz:
                dx = float(i) - 0.5 - gx
                dy = float(j) - 0.5 - gy
                dz = float(k) - 0.5 - gz
                near = 1.0 - (dx * dx + dy * dy + dz * dz) / (radius * radius)
                if near > 0.0:
                    c = k * shape.layer + j * shape.row + i
                    amount_out[c] = amount_out[c] + int(seen * near * near)


class Puffs:
    """In the cells of a flow that stands still."""

    def __init__(self, flow: Grid) -> None:
        self._flow = flow
        self.rows = flow.device.port(MOST_PUFFS * FLOATS, wp.float32)
        self.count = flow.device.port(1, wp.int32)
        p = flow.params
        self._low = np.asarray(p.origin, dtype=np.float32)
        self._high = (self._low + p.spacing * np.asarray(p.cells)).astype(np.float32)
        self.let_go = np.zeros(1, dtype=np.int64)
        """Puffs so far: the seed of the next one."""

    def record(self, stage: Stage) -> None:
        flow = self._flow
        amount, p = flow.carried["smoke"].amount, flow.params
        puffs: Any = self.rows.array.reshape((MOST_PUFFS, FLOATS))
        args = [flow.levels[0].shape, wp.vec3(*p.origin), p.spacing, self.count.array, puffs, amount]
        stage.upload(self.rows)
        stage.upload(self.count)
        stage.once(amount.zero_)
        stage.once(lambda: wp.launch(splat, dim=1, inputs=args, device=flow.device.warp))

    def step(self, dt: float, place: np.ndarray | None, units: int) -> None:
        """All grow older; `units` of smoke are let go at a place [m], if there are any."""
        rows = self.rows.host.reshape(MOST_PUFFS, FLOATS)
        live = rows[: self.count.host[0]]
        live[:, PLACE : PLACE + 3] += dt * live[:, SPEED : SPEED + 3]
        live[:, PLACE + 2] += dt * RISE
        np.clip(live[:, PLACE : PLACE + 3], self._low, self._high, out=live[:, PLACE : PLACE + 3])
        live[:, SPEED : SPEED + 3] *= np.float32(np.exp(-dt / SLOWING))
        live[:, AGE] += dt
        kept = live[live[:, AGE] < LIFE]
        rows[: len(kept)] = kept
        count = len(kept)
        if place is not None and units > 0:
            for _ in range(min(PER_STEP, MOST_PUFFS - count)):
                rng = np.random.default_rng(int(self.let_go[0]))
                rows[count, PLACE : PLACE + 3] = place
                rows[count, SPEED : SPEED + 3] = SCATTER * rng.normal(size=3)
                rows[count, AGE], rows[count, UNITS] = 0.0, units / PER_STEP
                rows[count, PHASE : PHASE + 3] = rng.uniform(0.0, 6.28, 3)
                count += 1
                self.let_go[0] += 1
        self.count.host[0] = count
