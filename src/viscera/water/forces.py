"""Forces between particles, and how they move.

    dv_i/dt = − Σ_j m (p_i/ρ_i² + p_j/ρ_j² + Π_ij) ∇W            pressure: Grahn eq. 3.12, Andersson eq. 3.4
              + Σ_j m μ/(ρ_i ρ_j) (v_j − v_i) ∇²W_viscosity      Müller's viscosity: Grahn eq. 3.15
              + g
    Π_ij = (−α c μ_ij + β μ_ij²)/ρ̄_ij   if v_ij·x_ij < 0          Monaghan's viscosity: Andersson eq. 3.5
    μ_ij = h v_ij·x_ij / (x_ij² + 0.01 h²)                       eq. 3.6, h = R/2
    dρ_i/dt = Σ_j m v_ij·∇W                                      continuity: Andersson eq. 3.3

Each pair's force is computed at both ends from the same numbers in the same way, so both ends get the same but for the
sign, to the last bit; only the sums round.

    v ← v + dt a,  x ← x + dt v

is symplectic Euler; with velocities half a step behind and forces from predicted ones it is leap-frog (eq. 3.8, 3.9).

Differs from the sources in that Grahn's eq. 3.10 divides a force by density; eq. 3.12 and 3.15 are forces on a
particle, so a = f/m. In eq. 3.14 the velocity in the sum must be v_j; 3.15 has both. With the spline, viscosity is
Morris' form: −2W'/r for ∇²W (smoothing.py).
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.neighbors.cells import GridView, cell_of, particle_count, row_range, sorted_count
from viscera.water.density import THINNEST
from viscera.water.periodic import front, image, image_count, near_row, reaches, read4, wrapped
from viscera.water.smoothing import Smoothing, diffusion, slope
from viscera.water.state import Images, Live

wp.set_module_options({"enable_backward": False})

SOFTENING = wp.constant(0.01)
"""Of Monaghan's viscosity: keeps μ_ij finite where particles meet (Andersson eq. 3.6)."""


@wp.func
def artificial(live: Live, closing: float, r2: float, inverse_i: float, inverse_j: float) -> float:
    """Π_ij; `closing` is v_ij·x_ij."""
    push = float(0.0)
    if closing < 0.0:
        mu = live.length * closing / (r2 + SOFTENING * live.length * live.length)
        per_density = 2.0 * inverse_i * inverse_j / (inverse_i + inverse_j)
        push = (live.beta * mu - live.alpha * live.sound_speed) * mu * per_density
    return push


@wp.kernel
def sum_forces(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    numbers = live[0]
    if tag[s] < 0 and numbers.continuity == 0.0:
        rate_out[s] = wp.vec4(0.0, 0.0, 0.0, 0.0)
        return
    own_place = read4(place, s)
    own_motion = read4(motion, s)
    here = front(own_place)
    v = front(own_motion)
    pull = wp.vec3(0.0, 0.0, 0.0)
    growth = float(0.0)
    monaghan = numbers.alpha + numbers.beta > 0.0
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                begin, end = row_range(grid, cell, row)
                if not near_row(grid, there, cell, row, smoothing.radius2):
                    end = begin
                for t in range(begin, end):
                    other = read4(place, t)
                    offset = there - front(other)
                    r2 = wp.dot(offset, offset)
                    if r2 < smoothing.radius2:
                        moving = read4(motion, t)
                        dv = v - front(moving)
                        r = wp.sqrt(r2)
                        steep = slope(smoothing, r)
                        closing = wp.dot(dv, offset)
                        press = own_place[3] + other[3]
                        if monaghan:
                            press += artificial(numbers, closing, r2, own_motion[3], moving[3])
                        drag = numbers.viscosity * (own_motion[3] * moving[3]) * diffusion(smoothing, r, steep)
                        pull -= (press * steep) * offset + drag * dv
                        growth += steep * closing
    pull = numbers.mass * pull + numbers.gravity
    if tag[s] < 0:
        pull = wp.vec3(0.0, 0.0, 0.0)
    rate_out[s] = wp.vec4(pull[0], pull[1], pull[2], numbers.mass * growth)


@wp.kernel
def integrate(
    first: int,
    # params
    grid: GridView,
    images: Images,
    live: wp.array(dtype=Live),
    # in
    before: wp.array(dtype=wp.vec3),
    held: wp.array(dtype=wp.vec4),
    sorted_tag: wp.array(dtype=wp.int32),
    rate: wp.array(dtype=wp.vec4),
    # out
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
    tag_out: wp.array(dtype=wp.int32),
    kept_density_out: wp.array(dtype=float),
    clock_out: wp.array(dtype=wp.float64),
):
    """Walls are not accelerated, so they go on with their own velocity. The clock has no launch of its own."""
    s = first + wp.tid()
    dt = live[0].dt
    if s == 0:
        clock_out[0] = clock_out[0] + wp.float64(dt)
    if s >= sorted_count(grid):
        if s < particle_count(grid):
            # Not finite: it stays so and keeps its tag, or its place would show someone else from an earlier step.
            position_out[s] = before[s]
            velocity_out[s] = wp.vec3(0.0, 0.0, 0.0)
            tag_out[s] = sorted_tag[s]
        return
    change = rate[s]
    kept = held[s]
    v = front(kept) + dt * front(change)
    position_out[s] = wrapped(images, before[s] + dt * v)
    velocity_out[s] = v
    tag_out[s] = sorted_tag[s]
    if live[0].continuity > 0.0:
        kept_density_out[s] = wp.max(kept[3] + dt * change[3], THINNEST * live[0].rest_density)
