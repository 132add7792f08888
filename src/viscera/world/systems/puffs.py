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
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.grid import Grid, GridParams
from viscera.grid.shape import GridShape

wp.set_module_options({"enable_backward": False})

MOST_PUFFS = 512
MOST_PLACES = 3
"""That let puffs go in one step: as many as there is room for while all live. What burns at a fourth place waits, and
is the first as soon as most has gathered there."""
APART = 0.006
"""What burns within this of a place belongs to it [m]: a hook's burn is narrower."""
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
"""Puffs that a place lets go in a step while it burns."""
MOST_AT_ONCE = PER_STEP * MOST_PLACES

PLACE, SPEED, AGE, UNITS, PHASE, FLOATS = 0, 3, 6, 7, 8, 12
"""Of each puff: where it is [m], its velocity [m/s], age [s], units of smoke, phases of its waves."""
BALL = 0.957
"""32π/105"""
ROWS_AT_ONCE = 16
"""That one core takes."""


@wp.kernel
def show_puffs(
    first: int,
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
    """Puffs as units in cells: a ball that is densest in its middle. Each row of cells along x gathers what all puffs
    have in it, so rows may be done side by side, in any order, with the same units."""
    line = first + wp.tid()
    j = 1 + line % shape.ny
    k = 1 + line // shape.ny
    row = k * shape.layer + j * shape.row
    for i in range(shape.nx):
        amount_out[row + 1 + i] = 0
    for p in range(count[0]):
        age = puffs[p, AGE]
        sway = TREMBLE * wp.min(age, 2.0)
        radius = (SMALL + GROWTH * age) / spacing
        z = puffs[p, PLACE + 2] + sway * wp.sin(puffs[p, PHASE + 2] + 4.0 * age)
        dz = float(k) - 0.5 - (z - origin[2]) / spacing
        y = puffs[p, PLACE + 1] + sway * wp.sin(puffs[p, PHASE + 1] + 7.0 * age)
        dy = float(j) - 0.5 - (y - origin[1]) / spacing
        rest = radius * radius - dz * dz - dy * dy
        if rest > 0.0:
            x = puffs[p, PLACE] + sway * wp.sin(puffs[p, PHASE] + 5.0 * age)
            gx = (x - origin[0]) / spacing
            half = wp.sqrt(rest)
            # ∫ (1 − r²/R²)² over the ball is 32π R³/105.
            seen = puffs[p, UNITS] * wp.max(1.0 - age / LIFE, 0.0) / (BALL * radius * radius * radius)
            for i in range(wp.max(int(gx - half), 1), wp.min(int(gx + half) + 1, shape.nx) + 1):
                dx = float(i) - 0.5 - gx
                near = (rest - dx * dx) / (radius * radius)
                if near > 0.0:
                    amount_out[row + i] = amount_out[row + i] + int(seen * near * near)


def burning_places(units: NDArray[np.int32], params: GridParams) -> list[tuple[NDArray[np.float64], int]]:
    """Where smoke was released, shape (z, y, x): the middle of each place [m] and its units, heaviest first, at most
    `MOST_PLACES`; what they have is taken out of `units`. Each is around the heaviest cell that is left (of equal ones
    the first), and once more around the middle of what was found there."""
    found: list[tuple[NDArray[np.float64], int]] = []
    cells = np.argwhere(units > 0)
    middles = np.asarray(params.origin) + params.spacing * (cells[:, ::-1] + 0.5)
    amounts = units[tuple(cells.T)].astype(np.int64)
    while len(found) < MOST_PLACES and amounts.any():
        near = np.linalg.norm(middles - middles[np.argmax(amounts)], axis=1) <= APART
        centre = (amounts[near, None] * middles[near]).sum(axis=0) / amounts[near].sum()
        # The heaviest cell is near again: a mean is no farther from it than what it is of.
        near = np.linalg.norm(middles - centre, axis=1) <= APART
        total = int(amounts[near].sum())
        centre = (amounts[near, None] * middles[near]).sum(axis=0) / total
        found.append((centre, total))
        units[tuple(cells[near].T)] = 0
        amounts[near] = 0
    return found


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
        stage.launch(show_puffs, p.cells[1] * p.cells[2], args, block=ROWS_AT_ONCE)

    @property
    def room(self) -> int:
        """For so many more."""
        return MOST_PUFFS - int(self.count.host[0])

    def age(self, dt: float) -> None:
        """All rise and grow older; the oldest are gone."""
        rows = self.rows.host.reshape(MOST_PUFFS, FLOATS)
        live = rows[: self.count.host[0]]
        live[:, PLACE : PLACE + 3] += dt * live[:, SPEED : SPEED + 3]
        live[:, PLACE + 2] += dt * RISE
        np.clip(live[:, PLACE : PLACE + 3], self._low, self._high, out=live[:, PLACE : PLACE + 3])
        live[:, SPEED : SPEED + 3] *= np.float32(np.exp(-dt / SLOWING))
        live[:, AGE] += dt
        kept = live[live[:, AGE] < LIFE]
        rows[: len(kept)] = kept
        self.count.host[0] = len(kept)

    def let_puffs_go(self, place: NDArray[np.float64], units: int) -> None:
        """`units` of smoke as `PER_STEP` puffs at a place [m]; there must be room."""
        rows = self.rows.host.reshape(MOST_PUFFS, FLOATS)
        for number in range(int(self.count.host[0]), int(self.count.host[0]) + PER_STEP):
            rng = np.random.default_rng(int(self.let_go[0]))
            rows[number, PLACE : PLACE + 3] = place
            rows[number, SPEED : SPEED + 3] = SCATTER * rng.normal(size=3)
            rows[number, AGE], rows[number, UNITS] = 0.0, units / PER_STEP
            rows[number, PHASE : PHASE + 3] = rng.uniform(0.0, 6.28, 3)
            self.let_go[0] += 1
        self.count.host[0] += PER_STEP
