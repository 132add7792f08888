"""The film's neighbour loops in plain Warp: viscosity, density, displacement. native.py has the same in C.

`film.pairs` has the equations. A loop visits what `buckets.Search` finds: ranges of the sorted grid,
linked lists or bins.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.film.buckets import Search, onward, particle, start_at
from viscera.blood.film.pairs import (
    FilmView,
    Rates,
    Sorted,
    apart,
    closeness,
    image_shift,
    most_viscous,
    place,
    predicted,
    pressure_push,
    speed,
    touch,
    viscous_push,
)
from viscera.neighbors.cells import cell_of

wp.set_module_options({"enable_backward": False})


# --- one pair --------------------------------------------------------------------------------------------------------


@wp.func
def viscosity_of(view: FilmView, rate: Rates, film: Sorted, s: int, t: int, here: wp.vec3) -> wp.vec3:
    push = wp.vec3(0.0, 0.0, 0.0)
    offset = place(film, t) - here
    if s != t and wp.dot(offset, offset) < view.radius * view.radius:
        offset = apart(view, offset, s, t)
        part = touch(view, film, s, t, offset, rate.pooling)
        if part > 0.0:
            linear = 0.5 * (film.linear[s] + film.linear[t])
            quadratic = 0.5 * (film.quadratic[s] + film.quadratic[t])
            approach = speed(film, s) - speed(film, t)
            most = most_viscous(view, rate.dt)
            push = viscous_push(offset, approach, view.radius, linear, quadratic, most) * part
    return push


@wp.func
def density_of(view: FilmView, rate: Rates, film: Sorted, s: int, t: int, here: wp.vec3) -> wp.vec2:
    """(1 − q)² and (1 − q)³"""
    both = wp.vec2(0.0, 0.0)
    offset = predicted(film, t) - here
    if s != t and wp.dot(offset, offset) < view.radius * view.radius:
        offset = apart(view, offset, s, t)
        w = closeness(offset, view.radius) * touch(view, film, s, t, offset, rate.pooling)
        both = wp.vec2(w * w, w * w * w)
    return both


@wp.func
def displacement_of(view: FilmView, rate: Rates, film: Sorted, s: int, t: int, here: wp.vec3) -> wp.vec3:
    push = wp.vec3(0.0, 0.0, 0.0)
    offset = predicted(film, t) - here
    if s != t and wp.dot(offset, offset) < view.radius * view.radius:
        offset = apart(view, offset, s, t)
        w = closeness(offset, view.radius) * touch(view, film, s, t, offset, rate.pooling)
        if w > 0.0:
            pressure = view.own * film.pressure[s] + view.other * film.pressure[t]
            pressure += rate.separation * wp.abs(film.phase[s] - film.phase[t])
            near = view.own * film.near_pressure[s] + view.other * film.near_pressure[t]
            push = pressure_push(offset, w, pressure, near)
    return push


# --- what a sum becomes ----------------------------------------------------------------------------------------------


@wp.func
def advance(view: FilmView, rate: Rates, film: Sorted, s: int, push: wp.vec3):
    """Velocity with viscosity, and where it would lead; no farther than cells are wider than the radius."""
    u = speed(film, s) + push * (rate.dt * view.half)
    if view.on_surface != 0:
        n = wp.vec3(film.nx[s], film.ny[s], film.nz[s])
        u = u - n * wp.dot(n, u)
    d = u * rate.dt
    d = d * wp.min(1.0, view.reach / wp.max(wp.length(d), 1.0e-30))
    here = place(film, s)
    film.dx[s] = d[0]
    film.dy[s] = d[1]
    film.px[s] = here[0] + d[0]
    film.py[s] = here[1] + d[1]
    if view.on_surface != 0:
        film.dz[s] = d[2]
        film.pz[s] = here[2] + d[2]


@wp.func
def press(film: Sorted, s: int, both: wp.vec2):
    stiff = film.stiff[s]
    film.density[s] = both[0]
    film.pressure[s] = stiff[0] * (both[0] - stiff[2])
    film.near_pressure[s] = stiff[1] * both[1]


@wp.func
def displace(view: FilmView, rate: Rates, film: Sorted, s: int, push: wp.vec3):
    film.dx[s] = film.dx[s] + push[0] * (rate.dt * rate.dt)
    film.dy[s] = film.dy[s] + push[1] * (rate.dt * rate.dt)
    if view.on_surface != 0:
        film.dz[s] = film.dz[s] + push[2] * (rate.dt * rate.dt)


# --- loops -----------------------------------------------------------------------------------------------------------


@wp.kernel
def viscosity(
    first: int,
    # params
    view: FilmView,
    # in
    search: Search,
    rates: wp.array(dtype=Rates),
    # in and out
    film_out: Sorted,
):
    begin = (first + wp.tid()) * view.chunk
    rate = rates[0]
    for s in range(begin, wp.min(begin + view.chunk, film_out.count[0])):
        begun = place(film_out, s)
        total = wp.vec3(0.0, 0.0, 0.0)
        for k in range(view.images):
            shift, near = image_shift(view, k, begun, view.radius + 2.0 * view.reach)
            if near:
                cell = cell_of(search.grid, begun + shift)
                for c in range(search.parts):
                    cursor, end = start_at(search, cell, c)
                    while cursor != end:
                        total += viscosity_of(view, rate, film_out, s, particle(search, cursor), begun + shift)
                        cursor = onward(search, cursor)
        advance(view, rate, film_out, s, total)


@wp.kernel
def density(
    first: int,
    # params
    view: FilmView,
    # in
    search: Search,
    rates: wp.array(dtype=Rates),
    # in and out
    film_out: Sorted,
):
    begin = (first + wp.tid()) * view.chunk
    rate = rates[0]
    for s in range(begin, wp.min(begin + view.chunk, film_out.count[0])):
        # Cells are those of where the step began, and wide enough for two particles that have come toward each other.
        begun = place(film_out, s)
        here = predicted(film_out, s)
        total = wp.vec2(0.0, 0.0)
        for k in range(view.images):
            shift, near = image_shift(view, k, begun, view.radius + 2.0 * view.reach)
            if near:
                cell = cell_of(search.grid, begun + shift)
                for c in range(search.parts):
                    cursor, end = start_at(search, cell, c)
                    while cursor != end:
                        total += density_of(view, rate, film_out, s, particle(search, cursor), here + shift)
                        cursor = onward(search, cursor)
        press(film_out, s, total)


@wp.kernel
def displacement(
    first: int,
    # params
    view: FilmView,
    # in
    search: Search,
    rates: wp.array(dtype=Rates),
    # in and out
    film_out: Sorted,
):
    begin = (first + wp.tid()) * view.chunk
    rate = rates[0]
    for s in range(begin, wp.min(begin + view.chunk, film_out.count[0])):
        begun = place(film_out, s)
        here = predicted(film_out, s)
        total = wp.vec3(0.0, 0.0, 0.0)
        for k in range(view.images):
            shift, near = image_shift(view, k, begun, view.radius + 2.0 * view.reach)
            if near:
                cell = cell_of(search.grid, begun + shift)
                for c in range(search.parts):
                    cursor, end = start_at(search, cell, c)
                    while cursor != end:
                        total += displacement_of(view, rate, film_out, s, particle(search, cursor), here + shift)
                        cursor = onward(search, cursor)
        displace(view, rate, film_out, s, total)
