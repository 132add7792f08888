"""Incompressible water: pressures that keep the density, for steps far longer than sound allows.

Implicit incompressible SPH (Ihmsen, Cornelis, Solenthaler, Horvath and Teschner 2014, doi:10.1109/TVCG.2013.105), which
is the projection of Andersson's eq. 2.5 on particles (which must read P(∇p) = 0, as 2.11: it is the gradient that the
projection takes away): the least pressures ≥ 0 after which no particle is denser than
ρ₀. With k = p/ρ² and velocities v* after all other forces:

    ρ_i^adv = ρ_i + dt Σ_j m (v*_i − v*_j)·∇W
    a_i     = − Σ_j m (k_i + k_j) ∇W                                 0 for walls
    ρ_i*    = ρ_i^adv + dt² Σ_j m (a_i − a_j)·∇W
    k_i     ← max(0, k_i + ω (ρ_i* − ρ₀)/(dt² D_i)),     D_i = |Σ_j m ∇W|² + Σ_j m² |∇W|²

Walls are particles whose density is kept like any other's, but that do not give way: the first part of D is 0 for them,
and the second counts moving neighbours alone. So forces come from constraints, which take energy and never give it.

A fixed number of iterations, each two passes over neighbours, begins with half the pressures of the step before. Fixed,
so that a step can be recorded and costs the same every time; what it leaves is measured by `density_error`, not
assumed.

Differs from the source in the walls (there, particles that mirror the pressure: a tank at rest gained energy so), and
in that there is no test for convergence inside the loop.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import math
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.water import native_solver
from viscera.water.native import launch
from viscera.water.native_solver import WARM_START
from viscera.water.params import FluidParams
from viscera.water.periodic import front, image, image_count, reaches, read4
from viscera.water.smoothing import Smoothing, make_smoothing, slope
from viscera.water.state import SLOTS, Fluid, Images, Live

wp.set_module_options({"enable_backward": False})

RELAXATION = 0.5
"""Largest ω of Jacobi's iteration (Ihmsen et al. §3.3)."""
STABLE = 1.1
"""ω times the largest eigenvalue λ of D⁻¹A on a lattice. 2 would just be stable there; in disorder and beside walls λ
is larger (in 3D with R = 2.2 spacings λ is 3.3: ω = 0.35 holds, 0.5 diverges)."""
WAVES = 13
"""Waves along each axis at which eigenvalues are looked at, from 0 to the shortest."""
ALONE = wp.constant(1.0e-12)
"""D over (ρ₀/R)² below which a particle has no neighbours that could push it."""


@wp.kernel
def begin(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    live: wp.array(dtype=Live),
    # in
    original: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    held: wp.array(dtype=wp.vec4),
    rate: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    density: wp.array(dtype=float),
    warm: wp.array(dtype=float),
    # out
    system_out: wp.array(dtype=wp.vec2),
    own_out: wp.array(dtype=wp.vec4),
    place_out: wp.array(dtype=wp.vec4),
):
    """ρ^adv and 1/(dt² D), Σ m ∇W and Σ m² |∇W|², and the first k."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = position[s]
    dt = live[0].dt
    m = live[0].mass
    v = front(held[s]) + dt * front(rate[s])
    own = wp.vec3(0.0, 0.0, 0.0)
    squares = float(0.0)
    growth = float(0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                start, end = row_range(grid, cell, row)
                for t in range(start, end):
                    offset = there - position[t]
                    r2 = wp.dot(offset, offset)
                    if r2 < smoothing.radius2:
                        gradient = m * slope(smoothing, wp.sqrt(r2)) * offset
                        growth += wp.dot(v - front(held[t]) - dt * front(rate[t]), gradient)
                        own += gradient
                        if tag[t] >= 0:
                            squares += wp.dot(gradient, gradient)
    diagonal = squares
    if tag[s] >= 0:
        diagonal += wp.dot(own, own)
    scale = live[0].rest_density * smoothing.per_radius
    per = float(0.0)
    if diagonal > ALONE * scale * scale and dt > 0.0:
        per = 1.0 / (dt * dt * diagonal)
    system_out[s] = wp.vec2(density[s] + dt * growth, per)
    own_out[s] = wp.vec4(own[0], own[1], own[2], squares)
    guess = float(0.0)
    if per > 0.0:
        guess = WARM_START * warm[original[s]]
    place_out[s] = wp.vec4(here[0], here[1], here[2], guess)


@wp.kernel
def push(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    live: wp.array(dtype=Live),
    # in
    place: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    push_out: wp.array(dtype=wp.vec4),
):
    """Acceleration by the pressures k."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    own = read4(place, s)
    total = wp.vec3(0.0, 0.0, 0.0)
    if tag[s] >= 0:
        here = front(own)
        for k in range(image_count(images)):
            there = image(images, here, k)
            if reaches(images, there, smoothing.radius):
                cell = cell_of(grid, there)
                for row in range(grid.rows):
                    start, end = row_range(grid, cell, row)
                    for t in range(start, end):
                        other = read4(place, t)
                        offset = there - front(other)
                        r2 = wp.dot(offset, offset)
                        if r2 < smoothing.radius2:
                            total -= ((own[3] + other[3]) * slope(smoothing, wp.sqrt(r2))) * offset
    total *= live[0].mass
    push_out[s] = wp.vec4(total[0], total[1], total[2], 0.0)


@wp.kernel
def relax(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    images: Images,
    relaxation: float,
    live: wp.array(dtype=Live),
    # in
    push_by: wp.array(dtype=wp.vec4),
    system: wp.array(dtype=wp.vec2),
    # out
    place_out: wp.array(dtype=wp.vec4),
):
    """Only the own k is written, and only positions of others are read."""
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    own = place_out[s]
    here = front(own)
    a = front(push_by[s])
    growth = float(0.0)
    for k in range(image_count(images)):
        there = image(images, here, k)
        if reaches(images, there, smoothing.radius):
            cell = cell_of(grid, there)
            for row in range(grid.rows):
                start, end = row_range(grid, cell, row)
                for t in range(start, end):
                    other = place_out[t]
                    offset = there - front(other)
                    r2 = wp.dot(offset, offset)
                    if r2 < smoothing.radius2:
                        growth += slope(smoothing, wp.sqrt(r2)) * wp.dot(a - front(push_by[t]), offset)
    dt = live[0].dt
    expected = system[s][0] + dt * dt * live[0].mass * growth
    change = relaxation * (expected - live[0].rest_density) * system[s][1]
    place_out[s] = wp.vec4(own[0], own[1], own[2], wp.max(own[3] + change, 0.0))


@wp.kernel
def finish(
    first: int,
    # params
    grid: GridView,
    # in
    place: wp.array(dtype=wp.vec4),
    push_by: wp.array(dtype=wp.vec4),
    density: wp.array(dtype=float),
    # out
    rate_out: wp.array(dtype=wp.vec4),
    pressure_out: wp.array(dtype=float),
    warm_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    k = place[s][3]
    warm_out[s] = k
    pressure_out[s] = k * density[s] * density[s]
    rate_out[s] = rate_out[s] + push_by[s]


def relaxation(params: FluidParams) -> float:
    """ω. On a lattice D⁻¹A has the eigenvalues |Σ_j ∇W_j sin(κ·x_j)|² / Σ_j |∇W_j|² for waves κ."""
    d, radius, spacing = params.dimension, params.radius, params.spacing
    k = make_smoothing(params.kernels, radius, d)
    reach = math.ceil(radius / spacing)
    axis = np.arange(-reach, reach + 1)
    x = np.stack([g.ravel() for g in np.meshgrid(*[axis] * d, indexing="ij")], axis=1).astype(float)
    r = np.sqrt((x**2).sum(axis=1)) * spacing
    x, r = x[(r > 0) & (r < radius)], r[(r > 0) & (r < radius)]
    a, b = 1.0 - r / radius, np.maximum(0.5 - r / radius, 0.0)
    gradient = (k.gradient * (a**2 - k.kappa * b**2) / r)[:, None] * x
    waves = np.linspace(0.0, math.pi, WAVES)
    kappa = np.stack([g.ravel() for g in np.meshgrid(*[waves] * d, indexing="ij")], axis=1)
    response = ((np.sin(kappa @ x.T) @ gradient) ** 2).sum(axis=1) / (gradient**2).sum()
    return min(RELAXATION, STABLE / float(response.max()))


def solve_pressure(stage: Stage, fluid: Fluid) -> None:
    """Adds to `fluid.rate` what keeps the density at rest, and writes `fluid.pressure`."""
    f, n, x = fluid, fluid.capacity, fluid.extra
    begin_solving(stage, f)
    if f.native:
        iterate_natively(stage, f)
    else:
        iterate(stage, f)
    stage.launch(finish, n, [f.grid.view, f.place, x["push"], f.density, f.rate, f.pressure, x["warm"]])


def begin_solving(stage: Stage, fluid: Fluid) -> None:
    """The equations, and the first k in `place`."""
    f, x = fluid, fluid.extra
    if f.native:
        _begin_natively(stage, f)
    else:
        around = [f.grid.view, f.smoothing, f.images, f.live]
        other = [f.grid.original, f.grid.position, f.held, f.rate, f.sorted_tag, f.density, x["warm"]]
        stage.launch(begin, f.capacity, [*around, *other, x["system"], x["own"], f.place])
    for wall in solid_walls(f):
        wall.begin_solving(stage, f)


def _begin_natively(stage: Stage, fluid: Fluid) -> None:
    """The same, in C for cpu."""
    f, n, x = fluid, fluid.capacity, fluid.extra
    stage.launch(native_solver.split_advected, n, [f.grid.view, f.live, f.held, f.rate, f.sorted_tag, *f.axes[4:]])
    seen = [f.sorted_tag, f.density, *f.axes[:3], *f.axes[4:], x["hits"]]
    out = [x["slopes"], x["system"], x["own"]]
    launch(stage, native_solver.begin, n, [f.grid.view, f.smoothing, kept_slots(f), f.live, *seen, *out])
    stage.launch(native_solver.guess, n, [f.grid.view, f.grid.original, x["system"], x["warm"], f.place])


def kept_slots(fluid: Fluid) -> int:
    """Blocks of neighbours per particle whose slopes the native loops keep."""
    return SLOTS if len(fluid.extra["slopes"]) > 0 else 0


def solid_walls(fluid: Fluid) -> list[Any]:
    """Boundaries with a share in the density: they take part in every iteration."""
    return [one for one in fluid.boundaries if hasattr(one, "begin_solving")]


def iterate(stage: Stage, fluid: Fluid) -> None:
    """k in `place`, and the push that belongs to it; plain kernels."""
    f, n, x, omega = fluid, fluid.capacity, fluid.extra, relaxation(fluid.params)
    around = [f.grid.view, f.smoothing, f.images]
    for _ in range(f.params.iterations):
        stage.launch(push, n, [*around, f.live, f.place, f.sorted_tag, x["push"]])
        _iterate_at_walls(stage, f, omega)
        stage.launch(relax, n, [*around, omega, f.live, x["push"], x["system"], f.place])
    stage.launch(push, n, [*around, f.live, f.place, f.sorted_tag, x["push"]])
    _iterate_at_walls(stage, f, 0.0)


def _iterate_at_walls(stage: Stage, fluid: Fluid, omega: float) -> None:
    for wall in solid_walls(fluid):
        wall.iterate(stage, fluid, omega)


def iterate_natively(stage: Stage, fluid: Fluid) -> None:
    """As `iterate`, in C for cpu."""
    f, n, omega = fluid, fluid.capacity, relaxation(fluid.params)
    places, k, pushes = f.axes[:3], f.axes[3], f.axes[4:7]
    around, listed = [f.grid.view, f.smoothing, kept_slots(f)], [f.extra["hits"], f.extra["slopes"]]
    push = [*around, f.live, f.sorted_tag, *places, k, *listed, *pushes]
    relax = [*around, omega, f.live, f.extra["system"], *places, *pushes, *listed, k]
    stage.launch(native_solver.take_guess, n, [f.grid.view, f.place, k])
    for _ in range(f.params.iterations):
        launch(stage, native_solver.push, n, push)
        _iterate_at_walls(stage, f, omega)
        launch(stage, native_solver.relax, n, relax)
    launch(stage, native_solver.push, n, push)
    _iterate_at_walls(stage, f, 0.0)
    stage.launch(native_solver.give_back, n, [f.grid.view, k, *pushes, f.place, f.extra["push"]])


def density_error(fluid: Fluid) -> tuple[float, float]:
    """Mean and largest part by which fluid particles were denser than ρ₀ at the last sort."""
    count = int(fluid.count.numpy()[0])
    inside = fluid.tag.numpy()[:count] >= 0
    denser = np.maximum(fluid.density.numpy()[:count][inside] / fluid.params.rest_density - 1.0, 0.0)
    return float(denser.mean()), float(denser.max())
