"""Walls made of particles: two or three layers at rest spacing that move only as they are told.

A wall particle takes part in density, pressure and viscosity like any other, with values taken over from the fluid
around it (Adami, Hu and Adams 2012, doi:10.1016/j.jcp.2012.05.005), W over fluid particles f alone:

    p_w = Σ (p_f + ρ_f (g − a_w)·(x_w − x_f)) W / Σ W          balances gravity, so water at rest stays at rest
    v_w = 2 v_wall − Σ v_f W / Σ W                             no slip; smooth walls keep v_wall

The sources have no such walls: Andersson's are Lennard-Jones particles, Grahn's are triangles with contacts; see the
boundaries for those. Differs from Adami in that a_w = 0.
"""

# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportIndexIssue=false

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import warp as wp

from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.water.density import state_density
from viscera.water.periodic import front, image, image_count, reaches
from viscera.water.smoothing import Smoothing, weight
from viscera.water.state import Images, Live

wp.set_module_options({"enable_backward": False})


@wp.kernel
def fill_walls(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    no_slip: int,
    live: wp.array(dtype=Live),
    # in
    tag: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    held: wp.array(dtype=wp.vec4),
    # out
    density_out: wp.array(dtype=float),
    pressure_out: wp.array(dtype=float),
    place_out: wp.array(dtype=wp.vec4),
    motion_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid) or tag[s] >= 0:
        return
    here = position[s]
    total = float(0.0)
    pressure = float(0.0)
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
                        pressure += w * (pressure_out[t] + density_out[t] * wp.dot(live[0].gravity, offset))
                        flow += w * front(held[t])
    own = front(held[s])
    p = live[0].background
    seen = own
    if total > 0.0:
        p = wp.max(pressure / total, live[0].lowest + live[0].background)
        if no_slip != 0:
            seen = 2.0 * own - flow / total
    density = state_density(live[0], p)
    pressure_out[s] = p
    density_out[s] = density
    place_out[s] = wp.vec4(here[0], here[1], here[2], p / (density * density))
    motion_out[s] = wp.vec4(seen[0], seen[1], seen[2], 1.0 / density)


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
