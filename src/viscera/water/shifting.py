"""Shifting: particles keep an even distance, so that a flow without a surface keeps its energy.

Particles follow the flow into strings along its streams. There the sums are wrong, pressure makes noise of it, and
viscosity eats the noise: Taylor–Green vortices at Re 100 lose energy twice as fast as they should. A particle is
therefore moved a little to where there are fewer others, and takes the velocity that the fluid has there (Lind et al.
2012, doi:10.1016/j.jcp.2011.10.027; how far: Skillen et al. 2013, doi:10.1016/j.cma.2013.05.017):

    δ = −A R |v| dt ∇C,      ∇C = Σ_j V_j (1 + 0.2 (W_ij/W(s))⁴) ∇W_ij,      v ← v + (δ·∇)v

with A = 4 and at most a tenth of a spacing per step. With it their energy falls 0.3 % too slowly at 50 × 50 particles,
0.2 % too fast at 32 × 32; with A = 2, 2 % and 8 % too fast; without, 2.06 times as fast. Momentum is not kept to the
last bit any more: the mean velocity grew to 4·10⁻⁴ of the peak. A surface would be eaten away, so this is for boxes
with a period along every axis.
"""

from __future__ import annotations

import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.water.periodic import front, image, image_count, near_row, reaches, read4, wrapped
from viscera.water.smoothing import Smoothing, slope, weight
from viscera.water.state import Fluid, Images, Live

wp.set_module_options({"enable_backward": False})

STRENGTH = 4.0
"""A."""
PAIRING = wp.constant(0.2)
"""Of the part that keeps particles from pairing (Monaghan 2000)."""
FARTHEST = wp.constant(0.1)
"""Part of a spacing that a particle is shifted by at most in a step."""


@wp.kernel
def shift(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    spacing: float,
    strength: float,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    # out
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
):
    """By the neighbours that the step began with."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = front(read4(place, s))
    v = front(read4(motion, s))
    apart = 1.0 / weight(smoothing, spacing * spacing)
    crowd = wp.vec3(0.0, 0.0, 0.0)
    # Gradients of the velocity's components.
    along_x = wp.vec3(0.0, 0.0, 0.0)
    along_y = wp.vec3(0.0, 0.0, 0.0)
    along_z = wp.vec3(0.0, 0.0, 0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                if not near_row(grid, there, cell, row, smoothing.radius2):
                    end = begin
                for t in range(begin, end):
                    offset = there - front(read4(place, t))
                    r2 = wp.dot(offset, offset)
                    if r2 < smoothing.radius2 and r2 > 0.0:
                        r = wp.sqrt(r2)
                        near = weight(smoothing, r2) * apart
                        other = read4(motion, t)
                        towards = live[0].mass * other[3] * slope(smoothing, r) * offset
                        crowd += (1.0 + PAIRING * near * near * near * near) * towards
                        faster = front(other) - v
                        along_x += faster[0] * towards
                        along_y += faster[1] * towards
                        along_z += faster[2] * towards
    way = -strength * smoothing.radius * wp.length(v) * live[0].dt * crowd
    far = wp.length(way)
    if far > FARTHEST * spacing:
        way = FARTHEST * spacing / far * way
    position_out[s] = wrapped(images, position_out[s] + way)
    velocity_out[s] = velocity_out[s] + wp.vec3(wp.dot(along_x, way), wp.dot(along_y, way), wp.dot(along_z, way))


class Shifting:
    """As one of a fluid's `boundaries`."""

    adds_density = False
    adds_force = False

    def __init__(self, fluid: Fluid, strength: float = STRENGTH) -> None:
        p = fluid.params
        if not all(p.periodic[: p.dimension]) or p.sizes is not None:
            raise InputError(
                "shifting needs a period along every axis, and particles of one size.",
                "It is for flows without a surface or walls: leave it out here.",
            )
        self._strength = strength

    def before_step(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def contact(self, stage: Stage, fluid: Fluid) -> None:
        f = fluid
        around = [f.grid.view, f.smoothing, f.images, f.params.spacing, self._strength, f.live]
        stage.launch(shift, f.capacity, [*around, f.place, f.motion, f.position, f.velocity])
