"""Springs between particles, and their plasticity (Clavet et al. 2005, §5, Algorithms 3 and 4; Kvick drops them).

A pair that comes within the radius h gets a spring of rest length L = h. With r its length,

    r > L + γL:  L ← L + dt α (r − L − γL)        r < L − γL:  L ← L − dt α (L − γL − r)
    L > h: the spring is gone                      D = dt² k (1 − L/h)(L − r) r̂,   x_i ← x_i − D/2,  x_j ← x_j + D/2

Across a gap a spring is as weak as `pooling` says, and gone at 0; see `film.pairs.touch`.

Each particle keeps a list of its own springs, so a pair's spring stands in both lists; both ends compute the same bits,
so the lists agree. Lists move with the particles when these are sorted. A list that is full says so in
`FilmState.status`.

Differs from the source: all springs see the same positions, so their order does not matter; and what springs and
velocity move a particle together is no more than `FilmView.reach`, by which cells are wider than the radius.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046
# Kernels compute both sides of `and`, so tests that guard each other are nested.
# ruff: noqa: SIM102

from __future__ import annotations

import warp as wp

from viscera.blood.film.buckets import Search, onward, particle, start_at
from viscera.blood.film.pairs import FilmView, Rates, Sorted, apart, image_shift, place, predicted, touch
from viscera.blood.film.state import SPRING_OVERFLOW
from viscera.neighbors.cells import cell_of

wp.set_module_options({"enable_backward": False})


@wp.struct
class Springs:
    """Lists of springs; spring k of particle i is entry k · capacity + i."""

    most: int
    """Springs per particle."""
    count: wp.array(dtype=wp.int32)
    partner: wp.array(dtype=wp.int32)
    rest: wp.array(dtype=float)
    """[m]"""


@wp.kernel
def arrange_springs(
    first: int,
    # params
    view: FilmView,
    # in
    original: wp.array(dtype=wp.int32),
    slot: wp.array(dtype=wp.int32),
    film: Sorted,
    springs: Springs,
    # out
    sorted_out: Springs,
):
    """Brings lists into sorted order. Springs to particles that have gone end here."""
    s = first + wp.tid()
    if s >= film.count[0]:
        return
    i = original[s]
    kept = int(0)
    for k in range(springs.count[i]):
        t = slot[springs.partner[k * view.capacity + i]]
        if t < film.count[0]:
            sorted_out.partner[kept * view.capacity + s] = t
            sorted_out.rest[kept * view.capacity + s] = springs.rest[k * view.capacity + i]
            kept += 1
    sorted_out.count[s] = kept


@wp.func
def is_linked(springs: Springs, capacity: int, s: int, t: int, count: int) -> wp.bool:
    found = bool(False)
    for k in range(count):
        if springs.partner[k * capacity + s] == t:
            found = bool(True)
    return found


@wp.kernel
def link_springs(
    first: int,
    # params
    view: FilmView,
    # in
    search: Search,
    rates: wp.array(dtype=Rates),
    film: Sorted,
    # out
    springs_out: Springs,
    status_out: wp.array(dtype=wp.int32),
):
    """New springs for pairs within the radius that have none."""
    s = first + wp.tid()
    if s >= film.count[0]:
        return
    begun = place(film, s)
    here = predicted(film, s)
    old = springs_out.count[s]
    count = int(old)
    for k in range(view.images):
        shift, near = image_shift(view, k, begun, view.radius + 2.0 * view.reach)
        if near:
            cell = cell_of(search.grid, begun + shift)
            for c in range(search.parts):
                cursor, end = start_at(search, cell, c)
                while cursor != end:
                    t = particle(search, cursor)
                    offset = predicted(film, t) - (here + shift)
                    if t != s and wp.dot(offset, offset) < view.radius * view.radius:
                        if touch(view, film, s, t, offset, rates[0].pooling) > 0.0:
                            if not is_linked(springs_out, view.capacity, s, t, old):
                                if count < springs_out.most:
                                    springs_out.partner[count * view.capacity + s] = t
                                    springs_out.rest[count * view.capacity + s] = view.radius
                                    count += 1
                                else:
                                    status_out[SPRING_OVERFLOW] = 1
                    cursor = onward(search, cursor)
    springs_out.count[s] = count


@wp.func
def nearest_image(view: FilmView, offset: wp.vec3) -> wp.vec3:
    result = offset
    if view.wrap != 0:
        result = wp.vec3(
            offset[0] - view.width * wp.round(offset[0] / view.width),
            offset[1] - view.height * wp.round(offset[1] / view.height),
            0.0,
        )
    return result


@wp.func
def yielded(rate: Rates, rest: float, length: float) -> float:
    """The rest length after plastic flow."""
    bears = rate.yield_ratio * rest
    result = rest
    if length > rest + bears:
        result = rest + rate.dt * rate.plasticity * (length - rest - bears)
    elif length < rest - bears:
        result = rest - rate.dt * rate.plasticity * (rest - bears - length)
    return result


@wp.kernel
def pull_springs(
    first: int,
    # params
    view: FilmView,
    # in
    rates: wp.array(dtype=Rates),
    sorted_springs: Springs,
    # in and out
    film_out: Sorted,
    # out
    springs_out: Springs,
):
    """Plastic flow, then the pull. Springs that are left are written back in the order of the lists."""
    s = first + wp.tid()
    if s >= film_out.count[0]:
        return
    rate = rates[0]
    here = predicted(film_out, s)
    pull = wp.vec3(0.0, 0.0, 0.0)
    kept = int(0)
    for k in range(sorted_springs.count[s]):
        t = sorted_springs.partner[k * view.capacity + s]
        offset = apart(view, nearest_image(view, predicted(film_out, t) - here), s, t)
        length = wp.length(offset)
        rest = yielded(rate, sorted_springs.rest[k * view.capacity + s], length)
        part = touch(view, film_out, s, t, offset, rate.pooling)
        if rest <= view.radius and part > 0.0:
            size = part * rate.spring_stiffness * (1.0 - rest / view.radius) * (rest - length)
            pull -= offset * (0.5 * size / length)
            springs_out.partner[kept * view.capacity + s] = t
            springs_out.rest[kept * view.capacity + s] = rest
            kept += 1
    springs_out.count[s] = kept
    d = wp.vec3(film_out.dx[s], film_out.dy[s], film_out.dz[s]) + pull * (rate.dt * rate.dt)
    d = d * wp.min(1.0, view.reach / wp.max(wp.length(d), 1.0e-30))
    film_out.dx[s] = d[0]
    film_out.dy[s] = d[1]
    film_out.dz[s] = d[2]


@wp.kernel
def follow_springs(
    first: int,
    # in and out
    film_out: Sorted,
):
    """After all have pulled: the positions that density is measured at."""
    s = first + wp.tid()
    if s < film_out.count[0]:
        film_out.px[s] = film_out.x[s] + film_out.dx[s]
        film_out.py[s] = film_out.y[s] + film_out.dy[s]
        film_out.pz[s] = film_out.z[s] + film_out.dz[s]
