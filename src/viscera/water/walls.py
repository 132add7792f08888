"""Walls made of particles: two or three layers at rest spacing that move only as they are told.

A wall particle has density and pressure like any other and pushes what comes near (Crespo, Gómez-Gesteira and Dalrymple
2007, doi:10.3970/cmc.2007.005.173): forces still come from one potential, so walls add no energy. Where they should
drag, viscosity sees a velocity that mirrors the fluid's at the wall (Adami, Hu and Adams 2012,
doi:10.1016/j.jcp.2012.05.005), W over fluid particles f alone:

    v_seen = 2 v_wall − Σ v_f W / Σ W

Adami's extrapolated wall pressure was tried and left: a tank of water at rest gained energy until it boiled over.
The documents have no such walls: Andersson's are Lennard-Jones particles, Grahn's are triangles with contacts; see
`boundary` for those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import warp as wp

from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.water.periodic import front, image, image_count, reaches
from viscera.water.smoothing import Smoothing, weight
from viscera.water.state import Images

wp.set_module_options({"enable_backward": False})


@wp.kernel
def mirror_velocity(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    # in
    tag: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    held: wp.array(dtype=wp.vec4),
    # out
    motion_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid) or tag[s] >= 0:
        return
    here = position[s]
    total = float(0.0)
    flow = wp.vec3(0.0, 0.0, 0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                for t in range(begin, end):
                    if tag[t] >= 0:
                        offset = there - position[t]
                        w = weight(smoothing, wp.dot(offset, offset))
                        total += w
                        flow += w * front(held[t])
    if total > 0.0:
        seen = 2.0 * front(held[s]) - flow / total
        motion_out[s] = wp.vec4(seen[0], seen[1], seen[2], motion_out[s][3])


def block(lower: Sequence[float], upper: Sequence[float], spacing: float) -> np.ndarray:
    """Particles on a lattice that fills a box: half a spacing from its sides, so that boxes side by side fit."""
    axes = [
        a + spacing * (0.5 + np.arange(max(1, round((b - a) / spacing)))) for a, b in zip(lower, upper, strict=True)
    ]
    return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)


def box_walls(
    lower: Sequence[float],
    upper: Sequence[float],
    spacing: float,
    radius: float,
    *,
    open_sides: Sequence[str] = (),
) -> np.ndarray:
    """Wall particles around a box, as deep as the kernels reach. `open_sides` are named `-x`, `+y` …: no wall there,
    nor beyond it."""
    depth = spacing * math.ceil(radius / spacing - 1e-9)
    names = "xyz"[: len(lower)]
    outer_low = [a - (0.0 if f"-{n}" in open_sides else depth) for a, n in zip(lower, names, strict=True)]
    outer_high = [b + (0.0 if f"+{n}" in open_sides else depth) for b, n in zip(upper, names, strict=True)]
    points = block(outer_low, outer_high, spacing)
    inside = ((points > np.asarray(lower)) & (points < np.asarray(upper))).all(axis=1)
    return points[~inside]
