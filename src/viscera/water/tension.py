"""Surface tension, in three forms; `curvature`, which has the right strength, is in curvature.py.

Colour field (Grahn eq. 3.16–3.19, after Morris 2000 and Müller et al. 2003), W being poly6:

    c = Σ_j (m/ρ_j) W,   n = ∇c,   a_i = −(σ/ρ_i) ∇²c n/|n|     where |n| R > 0.4

It acts on single particles, so momentum is not kept: nothing makes the sum over particles vanish (verify/sph.py
measures what is left). And as particles lie only inside, ∇²c is not 0 at a flat surface: everything is pressed inward,
several times as strongly as by σ times curvature.

Pairwise (after Tartakovsky and Meakin 2005, doi:10.1103/PhysRevE.72.026301; Tartakovsky and Panchenko 2016,
doi:10.1016/j.jcp.2015.08.037): every pair attracts from afar and repels when near, with equal and opposite forces,

    F(q) = A q (1 − q)² (q − q₀),   q = r/R < 1             toward each other where positive

so momentum is kept to the last bits of the sums. The tension is half the work of pulling two half-spaces apart, per
area; with n particles per volume, evenly spread,

    3D   σ = (π/8) n² ∫ F r⁴ dr         2D   σ = (n²/3) ∫ F r³ dr

and q₀ is such that these forces add no pressure inside: ∫ F r³ dr = 0 in 3D, ∫ F r² dr = 0 in 2D, so q₀ = 5/8 or 4/7.
Particles are not evenly spread: they keep their distance, and cold drops freeze. In 3D, at two spacings, four drops
of 1 000 to 2 700 particles had 0.86 to 1.10 times 2σ/r inside (1.08 and 1.10 while still fluid, 0.86 and 1.00 when
viscosity had stilled them); at 2.6 spacings it was 0.3. In 2D drops become crystals, and it was 0.6 to 1.1. And pairs
press inside too: the equation of state's pressure alone is several times Laplace's. Walls neither pull nor are pulled.

Differs from the sources in: a threshold that does not depend on the unit of length; F is a polynomial that ends at R,
the others use cosines or Gaussians. Two forms with a tension known beforehand were tried and left: a stress along the
surface (Hu and Adams 2006) made particles clump, and the slope of the area (Akinci et al. 2013 without cohesion) blew
drops apart.
"""

from __future__ import annotations

import math

import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.water.curvature import find_normals, layer_factor, pull_by_curvature
from viscera.water.params import FluidParams
from viscera.water.periodic import front, image, image_count, reaches, read4
from viscera.water.smoothing import Smoothing, colour_laplacian, colour_slope
from viscera.water.state import Fluid, Images, Live

wp.set_module_options({"enable_backward": False})

SURFACE = wp.constant(0.4)
"""|n| R above which a particle is at the surface. On a lattice's flat face it is about 1.5, inside below 0.2."""

NO_PRESSURE = {2: 4.0 / 7.0, 3: 5.0 / 8.0}
"""q₀"""


@wp.kernel
def pull_by_colour(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    dimension: int,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid) or tag[s] < 0:
        return
    here = front(read4(place, s))
    normal = wp.vec3(0.0, 0.0, 0.0)
    curve = float(0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                for t in range(begin, end):
                    offset = there - front(read4(place, t))
                    r2 = wp.dot(offset, offset)
                    if r2 < smoothing.radius2:
                        volume = live[0].mass * read4(motion, t)[3]
                        q2 = r2 * smoothing.per_radius * smoothing.per_radius
                        normal += (volume * colour_slope(smoothing, q2)) * offset
                        curve += volume * colour_laplacian(smoothing, q2, dimension)
    steep = wp.length(normal)
    if steep * smoothing.radius > SURFACE:
        pull = (-live[0].tension * read4(motion, s)[3] * curve / steep) * normal
        rate_out[s] = rate_out[s] + wp.vec4(pull[0], pull[1], pull[2], 0.0)


@wp.kernel
def pull_in_pairs(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    strength: float,
    no_pressure: float,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    """`strength` is A/(m σ): acceleration per tension."""
    s = first + wp.tid()
    if s >= sorted_count(grid) or tag[s] < 0:
        return
    here = front(read4(place, s))
    total = wp.vec3(0.0, 0.0, 0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                for t in range(begin, end):
                    offset = there - front(read4(place, t))
                    r2 = wp.dot(offset, offset)
                    if r2 < smoothing.radius2 and tag[t] >= 0:
                        q = wp.sqrt(r2) * smoothing.per_radius
                        # F(q)/r: the q before the brackets cancels.
                        total -= ((1.0 - q) * (1.0 - q) * (q - no_pressure)) * offset
    total *= live[0].tension * strength * smoothing.per_radius
    rate_out[s] = rate_out[s] + wp.vec4(total[0], total[1], total[2], 0.0)


def pair_strength(params: FluidParams) -> float:
    """A/(m σ)."""
    d, radius, q0 = params.dimension, params.radius, NO_PRESSURE[params.dimension]

    def moment(power: int) -> float:
        """∫ q^power (1 − q)² dq from 0 to 1."""
        return 2.0 * math.gamma(power + 1) / math.gamma(power + 4)

    number = params.rest_density / params.mass
    # ∫ F r⁴ dr in 3D and ∫ F r³ dr in 2D, over A.
    integral = radius ** (d + 2) * (moment(d + 3) - q0 * moment(d + 2))
    per_tension = number**2 * integral * (math.pi / 8.0 if d == 3 else 1.0 / 3.0)
    return 1.0 / (per_tension * params.mass)


def add_tension(stage: Stage, fluid: Fluid) -> None:
    """Adds to `fluid.rate`."""
    f, n = fluid, fluid.capacity
    around = [f.grid.view, f.smoothing, f.images]
    if f.params.tension == "colour":
        stage.launch(pull_by_colour, n, [*around, f.params.dimension, f.live, f.place, f.motion, f.sorted_tag, f.rate])
    elif f.params.tension == "curvature":
        how, normal = [f.params.dimension, layer_factor(f.params)], f.extra["normal"]
        stage.launch(find_normals, n, [*around, f.live, f.place, normal])
        stage.launch(pull_by_curvature, n, [*around, *how, f.live, f.place, f.motion, normal, f.sorted_tag, f.rate])
    elif f.params.tension == "pairwise":
        how = [pair_strength(f.params), NO_PRESSURE[f.params.dimension]]
        stage.launch(pull_in_pairs, n, [*around, *how, f.live, f.place, f.sorted_tag, f.rate])
