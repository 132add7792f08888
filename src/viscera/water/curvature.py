"""Surface tension by the curvature of the surface: a drop has the pressure that Laplace's law says.

    c = (m/ρ₀) Σ_j W,   n = ∇c,   e = −n/|n|                   colour, its slope (inward) and the surface's normal
    κ_i = (d − 1) Σ_j w (e_i − e_j)·x_ij / Σ_j w |x_ij − (x_ij·e_i) e_i|²,   w = (1 − q²)²,   where |n_i|, |n_j| > 0.4/R
    a_i = (σ/ρ₀) N κ_i n_i + Σ_j m μ_s/(ρ_i ρ_j)(v_j − v_i)∇²W,   j as in κ       |κ| at most (d − 1)/2R
    μ_s = max(0, 0.2 √(ρ₀ σ R/2) − μ)

W is poly6, as in the colour field of Grahn eq. 3.16–3.19 and Morris 2000 (doi:10.1002/1097-0363(20000615)33:3<333::
AID-FLD11>3.0.CO;2-7). The fraction for κ is a fit: on a sphere e_i − e_j = (x_i − x_j)/r along the surface, so it gives
(d − 1)/r whichever neighbours there are, where a divergence of normals (Morris) or ∇²c (Grahn) needs them all round and
has none outside. Without a limit on κ, corners and single particles are thrown off; with it, drops of less than 2R are
pressed too little. No force pulls on the inside, so the pressure there is the equation of state's alone.

The force per area is σ κ N ∫|∇c| over the layers of particles below the surface. N is `SHARE` over that integral for a
lattice's face. SHARE is measured, on drops of 12, 16 and 20 particles across in 3D at two spacings. It stands for two
things that a lattice does not show, taken apart in a drop of 12 across: the outermost layer draws together, so that
∫|∇c| is 25 % larger; and its own pressure acts along the surface, against tension. So it is no law: drops of 10 across
have 1.13 times 2σ/r, and other supports are off (12 across, 2.6 spacings: 1.45).

The force on a particle comes from the places of a few others and from no potential, so it feeds motion from particle to
particle, which only viscosity takes away again. Without μ_s, a cube of 12 across with blood's constants (3.5 mPa·s,
0.056 N/m) threw off 290 of 1 728 particles, at any time step; 15 mPa·s threw off 7. So particles at the surface, and
they alone, are at least as viscous as 0.2 √(ρ₀ σ R/2), 31 mPa·s there, which is less the finer they are. It keeps
momentum. Steps that are short enough for tension are short enough for it: 0.125 s²ρ₀/μ_s is 6 times their limit.

The force acts on single particles: momentum is kept only as well as the surface is closed, ∮ κ e dA = 0; verify/sph.py
measures what is left. Wall particles count as colour, so a wetted wall is no surface.
"""

from __future__ import annotations

import math

import numpy as np
import warp as wp

from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.water.params import FluidParams
from viscera.water.periodic import front, image, image_count, reaches, read4
from viscera.water.smoothing import Smoothing, colour_slope, diffusion, slope
from viscera.water.state import Images, Live

wp.set_module_options({"enable_backward": False})

SURFACE = 0.4
"""|n| R above which a particle is at the surface. On a lattice's flat face it is about 1.5, inside below 0.2."""
_SURFACE = wp.constant(SURFACE)
SHARE = 0.875
"""One over 1.14, measured; see above."""
TIGHTEST = wp.constant(0.5)
"""Largest curvature over 1/R: with 1, corners threw off a hundred particles of a cube of 16 across."""
SETTLING = wp.constant(0.2)
"""Least viscosity of the surface over √(ρ₀ σ R/2), the Ohnesorge number of a particle: drops at which SHARE was
measured have 0.21 and more, and need nothing added."""
FLAT = wp.constant(1.0e-6)
"""Of R²: neighbours that all lie along the normal say nothing about curvature."""


@wp.kernel
def find_normals(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    # out
    normal_out: wp.array(dtype=wp.vec4),
):
    """Outward, with |∇c| [1/m] behind it; all 0 where there is no surface."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = front(read4(place, s))
    outward = wp.vec3(0.0, 0.0, 0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                for t in range(begin, end):
                    offset = there - front(read4(place, t))
                    q2 = wp.dot(offset, offset) * smoothing.per_radius * smoothing.per_radius
                    if q2 < 1.0:
                        outward -= colour_slope(smoothing, q2) * offset
    outward *= live[0].mass / live[0].rest_density
    steep = wp.length(outward)
    normal = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if steep * smoothing.radius > _SURFACE:
        normal = wp.vec4(outward[0] / steep, outward[1] / steep, outward[2] / steep, steep)
    normal_out[s] = normal


@wp.kernel
def pull_by_curvature(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    dimension: int,
    layer: float,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    normal: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    """`layer` is N."""
    s = first + wp.tid()
    if s >= sorted_count(grid) or tag[s] < 0:
        return
    own = read4(normal, s)
    if own[3] == 0.0:
        return
    here = front(read4(place, s))
    moving = read4(motion, s)
    e = front(own)
    turned = float(0.0)
    along = float(0.0)
    drag = wp.vec3(0.0, 0.0, 0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                for t in range(begin, end):
                    offset = there - front(read4(place, t))
                    r2 = wp.dot(offset, offset)
                    inside = 1.0 - r2 * smoothing.per_radius * smoothing.per_radius
                    if inside > 0.0:
                        other = read4(normal, t)
                        if other[3] > 0.0:
                            up = wp.dot(offset, e)
                            turned += inside * inside * wp.dot(e - front(other), offset)
                            along += inside * inside * (r2 - up * up)
                            r = wp.sqrt(r2)
                            seen = read4(motion, t)
                            drag += (diffusion(smoothing, r, slope(smoothing, r)) * seen[3]) * front(seen - moving)
    needed = SETTLING * wp.sqrt(live[0].rest_density * live[0].tension * live[0].length)
    # In `motion` the fourth is 1/ρ.
    pull = (wp.max(needed - live[0].viscosity, 0.0) * live[0].mass * moving[3]) * drag
    if along > FLAT * smoothing.radius2:
        most = TIGHTEST * smoothing.per_radius
        bent = float(dimension - 1) * wp.clamp(turned / along, -most, most)
        pull -= (live[0].tension * layer * bent * own[3] / live[0].rest_density) * e
    rate_out[s] = rate_out[s] + wp.vec4(pull[0], pull[1], pull[2], 0.0)


def layer_factor(params: FluidParams) -> float:
    """N: one over ∫|∇c| below a flat face of a lattice, where |∇c| R > 0.4. The face is half a spacing outside the
    first layer; of a particle in layer k, what is farther down than k layers has no match above."""
    s, radius, d = params.spacing, params.radius, params.dimension
    reach = math.ceil(radius / s)
    axis = s * np.arange(-reach, reach + 1)
    grids = np.meshgrid(*[axis] * d, indexing="ij")
    r2 = sum(g**2 for g in grids)
    top = {2: 4.0 / math.pi, 3: 315.0 / (64.0 * math.pi)}[d] / radius**d
    slope = 6.0 * top / radius**2 * np.maximum(1.0 - r2 / radius**2, 0.0) ** 2 * grids[0]
    volume = params.mass / params.rest_density
    steep = np.array([volume * slope[grids[0] > (k + 0.5) * s].sum() for k in range(reach + 1)])
    return SHARE / float(s * steep[steep * radius > SURFACE].sum())
