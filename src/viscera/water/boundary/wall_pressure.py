"""What a liquid presses with on places of its wall: for walls that give way.

At a place x of the wall, over the particles within a kernel's radius,

    p(x) = Σ_j W_j max(p_j + ρ₀ g·(x − x_j), 0) / Σ_j W_j,      W = (1 − r²/R²)²

which is exact for liquid at rest, wherever its particles are. Where less than a `WET` share of the particles of a full
half space is there, p is less by as much: the last drops of a stream press little.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, cell_of, row_range
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

WET = 0.4


@wp.kernel
def press(
    first: int,
    # params
    grid: GridView,
    radius: float,
    full: float,
    keeps: float,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec3),
    position: wp.array(dtype=wp.vec3),
    pressure: wp.array(dtype=float),
    tag: wp.array(dtype=wp.int32),
    # out
    pressure_out: wp.array(dtype=float),
):
    """At each place; it keeps a share of what was there before, as pressures of single steps are rough."""
    n = first + wp.tid()
    here = place[n]
    cell = cell_of(grid, here)
    total = float(0.0)
    weights = float(0.0)
    for row in range(grid.rows):
        start, end = row_range(grid, cell, row)
        for t in range(start, end):
            offset = here - position[t]
            q2 = wp.dot(offset, offset) / (radius * radius)
            if q2 < 1.0 and tag[t] >= 0:
                w = (1.0 - q2) * (1.0 - q2)
                deep = live[0].rest_density * wp.dot(live[0].gravity, offset)
                total += w * wp.max(pressure[t] + deep, 0.0)
                weights += w
    found = float(0.0)
    if weights > 0.0:
        found = total / wp.max(weights, full)
    pressure_out[n] = keeps * pressure_out[n] + (1.0 - keeps) * found


def step_pressure(stage: Stage, fluid: Fluid, place: Any, pressure: Any, keeps: float = 0.0) -> None:
    """Records p [Pa] at places of the wall (vec3 [m], float each), after a step of the fluid. With `keeps` it is a mean
    over time: so much is left of what was there."""
    p, f = fluid.params, fluid
    args = [f.grid.view, p.radius, wet_weight(p.radius, p.spacing), keeps, f.live, place]
    stage.launch(press, len(place), [*args, f.grid.position, f.pressure, f.sorted_tag, pressure])


def wet_weight(radius: float, spacing: float) -> float:
    """Σ W of a `WET` share of a half space full of particles, seen from its rim."""
    reach = int(np.ceil(radius / spacing))
    axis = spacing * np.arange(-reach, reach + 1)
    x, y, z = np.meshgrid(axis, axis, spacing * (np.arange(reach) + 0.5), indexing="ij")
    q2 = (x**2 + y**2 + z**2) / radius**2
    return WET * float((np.maximum(1.0 - q2, 0.0) ** 2).sum())
