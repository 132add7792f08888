"""How many pairs a step of water sums over: a cost that no other program disturbs, and that every machine counts alike.

Two loops over neighbours, density and forces, are most of a step. A pair is a particle and one that is within reach of
it, itself among them, or an image of one behind a wall (water/mirrors.py).
"""

from __future__ import annotations

import numpy as np
import warp as wp

from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.water.basin import Basin
from viscera.water.mirrors import Mirrors, Planes, chosen, mirrored, size_at
from viscera.water.state import Fluid

wp.set_module_options({"enable_backward": False})


@wp.kernel
def count_near(
    # params
    grid: GridView,
    planes: Planes,
    table: wp.array(dtype=wp.vec2),
    # in
    wall: wp.array(dtype=wp.vec2),
    level: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    # out
    pairs_out: wp.array(dtype=wp.int32),
):
    s = wp.tid()
    pairs_out[s] = 0
    if s >= sorted_count(grid):
        return
    here = position[s]
    own = size_at(level, table, s)[0]
    image = mirrored(planes, wall[0], here, wp.vec3(0.0, 0.0, 0.0), own)
    cell = cell_of(grid, here)
    found = wp.int32(0)
    mask = image.axes
    for _ in range(8):
        there = chosen(mask, image.place, here)
        for row in range(grid.rows):
            begin, end = row_range(grid, cell, row)
            for t in range(begin, end):
                offset = there - position[t]
                if wp.dot(offset, offset) * (own * size_at(level, table, t)[0]) < 1.0:
                    found += 1
        if mask == 0:
            break
        mask = (mask - 1) & image.axes
    pairs_out[s] = found


class PairCounter:
    """Of a fluid in a basin whose walls are mirrors, after any step."""

    def __init__(self, fluid: Fluid, basin: Basin) -> None:
        self._fluid, self._mirrors = fluid, Mirrors(fluid, basin)
        self._pairs = wp.zeros(fluid.capacity, dtype=wp.int32, device=fluid.device.warp)

    def count(self) -> int:
        """In one step."""
        f, m = self._fluid, self._mirrors
        args = [f.grid.view, m.planes, m.table, m.wall.array, m.level, f.grid.position, self._pairs]
        wp.launch(count_near, dim=f.capacity, inputs=args, device=f.device.warp)
        return int(self._pairs.numpy().sum(dtype=np.int64))
