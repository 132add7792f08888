"""A film step around its neighbour loops: taking particles in, putting them in order, and moving them on.

    gravity      v ← v + dt g_tangential
    velocity     v ← clamp(I Δx / dt),    I = exp(−traction dt), clamped by magnitude (§3.5.2 multiplies by dt,
                 and compares a displacement with a speed)

On a surface gravity loses its part along the interpolated normal. On a sheet it comes through the tangents u and v of
the texel, with the inverse metric: g' = G⁻¹ (u·g, v·g), G = [[u·u, u·v], [u·v, v·v]]; §3.8.3 leaves G⁻¹ out, and speeds
are then wrong by the stretch squared. Δx is the displacement itself, never the difference of two positions, so it keeps
its digits far from the origin.

Clotting (§6.2.10, whose rate 1/speed has no bound): K is the clotted part, B the concentration of what clots,

    dK/dt = clot_rate (B − K) / (1 + (speed/clot_speed)²) − dissolve_rate · solvent · K,

and its traction is 1 + clot_hold K³ times as large: fibrin holds once it is a network, not before (the exponent is
tuned for appearance). So strong a drag stops a particle within a step; what it moves in a step is the exact integral,
Δx (1 − e^−x)/x with x = clot_hold K³ traction dt.

Where a film ends, its contact line holds it. A lone particle is held as a drop is that slides, one with others all
around it not at all, and between them by how many are missing (this interpolation is ours):

    f = (24/π³) σ D (cos θ_r − cos θ_a)/(ρV) · max(0, 1 − (ρ_i/ρ_settled)/INNER),    Δx ← Δx max(0, 1 − f dt²/|Δx|)

against any way that it would go, as Coulomb's friction: it stops and never turns round. Particles that are alone or few
stay where they are. Those that draw together soon are as dense as a film at rest and count as inner: a cluster of six
runs, which the law would hold; `blood.patches` judges patches as a whole.
"""

# ruff: noqa: SIM102 PLR0913

from __future__ import annotations

import warp as wp

from viscera.blood.film.obstacles import Sheeted, go_on_sheet, go_on_surface, texel_of
from viscera.blood.film.pairs import Carried, FilmView, Rates, Sorted
from viscera.blood.film.params import SETTLING
from viscera.blood.film.state import BROKEN, BROKEN_NOW, EXPIRED, STAYS, WAITING
from viscera.blood.film.walk import (
    WalkView,
    face_normal,
    into_plane,
    normal_at,
    position_at,
    slope_normal,
    weights_of,
)

wp.set_module_options({"enable_backward": False})


SETTLED = wp.constant(SETTLING)

INNER = wp.constant(0.8)
"""Part of the density of a film at rest from which on a particle has no border; a straight one has about a half."""

SMALL_DRAG = wp.constant(1.0e-3)
"""Below this, the series of (1 − e^−x)/x is more exact in float32 than the quotient."""


@wp.struct
class Home:
    """`FilmState` as kernels see it."""

    count: wp.array(dtype=wp.int32)
    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    face: wp.array(dtype=wp.int32)
    barycentric: wp.array(dtype=wp.vec2)
    normal: wp.array(dtype=wp.vec3)
    volume: wp.array(dtype=wp.int32)
    fluid: wp.array(dtype=wp.vec4)
    clot: wp.array(dtype=float)
    age: wp.array(dtype=float)
    fate: wp.array(dtype=wp.int32)
    density: wp.array(dtype=float)
    gone_count: wp.array(dtype=wp.int64)
    gone_volume: wp.array(dtype=wp.int64)
    status: wp.array(dtype=wp.int32)


@wp.struct
class Waiting:
    """`SpawnQueue` as kernels see it."""

    count: wp.array(dtype=wp.int32)
    face: wp.array(dtype=wp.int32)
    barycentric: wp.array(dtype=wp.vec2)
    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    volume: wp.array(dtype=wp.int32)
    fluid: wp.array(dtype=wp.vec4)


@wp.func
def receive(queue: Waiting, home: Home, i: int, q: int):
    """Particle i comes from place q of the queue. The latest come first: who is left stays where it is, and nothing
    has to move up."""
    home.face[i] = queue.face[q]
    home.barycentric[i] = queue.barycentric[q]
    home.position[i] = queue.position[q]
    home.velocity[i] = queue.velocity[q]
    home.volume[i] = queue.volume[q]
    home.fluid[i] = queue.fluid[q]
    home.clot[i] = 0.0
    home.age[i] = 0.0
    home.fate[i] = STAYS


@wp.func
def place_of(view: FilmView, surface: WalkView, home: Home, i: int) -> wp.vec3:
    """Where a particle is, now that the tissue has moved; its fate is BROKEN where that is not finite."""
    point = home.position[i]
    if view.on_surface != 0:
        weights = weights_of(home.barycentric[i])
        point = position_at(surface, home.face[i], weights)
        home.position[i] = point
        home.normal[i] = normal_at(surface, home.face[i], weights)
    if not (wp.isfinite(point) and wp.isfinite(home.velocity[i])):
        if home.fate[i] == STAYS:
            home.fate[i] = BROKEN
            home.status[BROKEN_NOW] = 1
    return point


@wp.kernel
def take_in(
    first: int,
    # params
    view: FilmView,
    # in
    surface: WalkView,
    queue: Waiting,
    # out
    home_out: Home,
    staged_out: wp.array(dtype=wp.int32),
    key2_out: wp.array(dtype=wp.vec2),
    key3_out: wp.array(dtype=wp.vec3),
):
    """Particles that wait get places after the others; everyone gets the position it is sorted by, NaN for who goes.
    `film.order.take_in_and_draw` does the same and begins the sort."""
    begin = (first + wp.tid()) * view.chunk
    held = home_out.count[0]
    staged = wp.min(held + queue.count[0], view.capacity)
    if begin == 0:
        staged_out[0] = staged
    for i in range(begin, wp.min(begin + view.chunk, staged)):
        if i >= held:
            receive(queue, home_out, i, queue.count[0] - (staged - held) + (i - held))
        point = place_of(view, surface, home_out, i)
        if home_out.fate[i] != STAYS:
            point = wp.vec3(wp.nan, wp.nan, wp.nan)
        if view.on_surface != 0:
            key3_out[i] = point
        else:
            key2_out[i] = wp.vec2(point[0], point[1])


@wp.func
def settle(
    view: FilmView,
    original: wp.array(dtype=wp.int32),
    staged: int,
    live: int,
    queue: Waiting,
    home: Home,
):
    """What one thread does at the end of the sort: counts who has gone and who is left in the queue."""
    if view.atomic == 0:
        for s in range(live, staged):
            i = original[s]
            fate = home.fate[i]
            home.gone_count[fate] = home.gone_count[fate] + wp.int64(1)
            home.gone_volume[fate] = home.gone_volume[fate] + wp.int64(home.volume[i])
    left = queue.count[0] - (staged - home.count[0])
    queue.count[0] = left
    home.status[WAITING] = left
    home.count[0] = live


@wp.func
def sheet_pull(view: FilmView, sheet: Sheeted, point: wp.vec3, g: wp.vec3) -> wp.vec3:
    """Gravity in texels; without tangents it acts as it is."""
    result = wp.vec3(g[0], g[1], 0.0)
    if sheet.has_tangents != 0:
        texel = texel_of(view, point)
        u = sheet.tangent_u[texel]
        v = sheet.tangent_v[texel]
        uu = wp.dot(u, u)
        uv = wp.dot(u, v)
        vv = wp.dot(v, v)
        size = uu * vv - uv * uv
        result = wp.vec3(0.0, 0.0, 0.0)
        if size > 0.0:
            gu = wp.dot(u, g)
            gv = wp.dot(v, g)
            result = wp.vec3((vv * gu - uv * gv) / size, (uu * gv - uv * gu) / size, 0.0)
    return result


@wp.func
def put_in_order(
    view: FilmView,
    rate: Rates,
    surface: WalkView,
    sheet: Sheeted,
    home: Home,
    i: int,
    film: Sorted,
    cargo: Carried,
    s: int,
):
    """Particle i goes to sorted place s, with gravity and its fluid's constants."""
    point = home.position[i]
    v = home.velocity[i]
    if view.on_surface != 0:
        face = home.face[i]
        n = face_normal(surface, face)
        pull = into_plane(slope_normal(surface, face, n, home.normal[i]), rate.gravity)
        v = into_plane(n, v + pull * rate.dt)
        film.nx[s] = n[0]
        film.ny[s] = n[1]
        film.nz[s] = n[2]
        film.z[s] = point[2]
        film.vz[s] = v[2]
        cargo.face[s] = face
        cargo.barycentric[s] = home.barycentric[i]
    else:
        v = v + sheet_pull(view, sheet, point, rate.gravity) * rate.dt
    film.x[s] = point[0]
    film.y[s] = point[1]
    film.vx[s] = v[0]
    film.vy[s] = v[1]
    fluid = home.fluid[i]
    film.linear[s] = wp.dot(fluid, rate.linear)
    film.quadratic[s] = wp.dot(fluid, rate.quadratic)
    film.phase[s] = wp.dot(fluid, rate.phase)
    film.stiff[s] = wp.vec3(wp.dot(fluid, rate.stiffness), wp.dot(fluid, rate.near), wp.dot(fluid, rate.rest))
    cargo.volume[s] = home.volume[i]
    cargo.fluid[s] = fluid
    cargo.clot[s] = home.clot[i]
    cargo.age[s] = home.age[i]


@wp.kernel
def arrange(
    first: int,
    # params
    view: FilmView,
    # in
    rates: wp.array(dtype=Rates),
    surface: WalkView,
    sheet: Sheeted,
    original: wp.array(dtype=wp.int32),
    lives: wp.array(dtype=wp.int32),
    live_at: int,
    staged: wp.array(dtype=wp.int32),
    # out
    queue_out: Waiting,
    home_out: Home,
    film_out: Sorted,
    cargo_out: Carried,
):
    """Brings particles into sorted order, with gravity and their fluid's constants."""
    begin = (first + wp.tid()) * view.chunk
    live = lives[live_at]
    if begin == 0:
        film_out.count[0] = live
        settle(view, original, staged[0], live, queue_out, home_out)
    if view.atomic != 0 and begin >= live:
        for s in range(begin, wp.min(begin + view.chunk, staged[0])):
            gone = original[s]
            wp.atomic_add(home_out.gone_count, home_out.fate[gone], wp.int64(1))
            wp.atomic_add(home_out.gone_volume, home_out.fate[gone], wp.int64(home_out.volume[gone]))
    for s in range(begin, wp.min(begin + view.chunk, live)):
        put_in_order(view, rates[0], surface, sheet, home_out, original[s], film_out, cargo_out, s)


@wp.func
def clotted(rate: Rates, time: float, clot: float, fluid: wp.vec4, solvent: float, moved: float) -> float:
    """K after so much time."""
    able = wp.dot(fluid, rate.clots)
    swift = moved / rate.clot_speed
    grown = able - (able - clot) * wp.exp(-time * rate.clot_rate / (1.0 + swift * swift))
    left = grown * wp.exp(-time * rate.dissolve_rate * solvent)
    return wp.clamp(left, 0.0, wp.max(able, 0.0))


EVERY = wp.constant(-1000)
"""No fate."""


@wp.func
def move_particles(
    view: FilmView,
    mixes: int,
    alone: int,
    rate: Rates,
    surface: WalkView,
    sheet: Sheeted,
    film: Sorted,
    cargo: Carried,
    begin: int,
    end: int,
    home: Home,
):
    """Moves the particles at sorted places begin to end over the surface and takes their velocity from how far they
    came: those whose fate is `alone`, or `EVERY` one. A loop in here, as what is passed is copied."""
    for s in range(begin, end):
        if alone == EVERY or home.fate[s] == alone:
            fluid = cargo.fluid[s]
            clot = cargo.clot[s]
            drag = rate.dt * wp.dot(fluid, rate.traction)
            held = drag * rate.clot_hold * clot * clot * clot
            part = (1.0 - wp.exp(-held)) / held if held > SMALL_DRAG else 1.0 - 0.5 * held
            d = wp.vec3(film.dx[s], film.dy[s], film.dz[s]) * part
            stiff = film.stiff[s]
            settled = stiff[2] * stiff[0] / wp.max(stiff[0] + SETTLED * stiff[1], 1.0e-30)
            thickness = film.density[s] / wp.max(settled, 1.0e-30)
            line = rate.dt * rate.dt * rate.line_hold * wp.max(1.0 - thickness / INNER, 0.0)
            way = wp.length(d)
            d = d * (wp.min(wp.max(way - line, 0.0), view.radius) / wp.max(way, 1.0e-30))
            fate = STAYS
            moved = d
            if view.on_surface != 0:
                went = go_on_surface(surface, sheet, cargo.face[s], weights_of(cargo.barycentric[s]), d, thickness)
                moved = went.moved
                fate = went.fate
                home.face[s] = went.face
                home.barycentric[s] = wp.vec2(went.weights[1], went.weights[2])
                home.position[s] = position_at(surface, went.face, went.weights)
                home.normal[s] = normal_at(surface, went.face, went.weights)
            else:
                gone = go_on_sheet(view, sheet, wp.vec3(film.x[s], film.y[s], 0.0), d, thickness)
                moved = gone.moved
                fate = gone.fate
                home.position[s] = gone.position
            v = wp.vec3(film.vx[s], film.vy[s], film.vz[s])
            if rate.dt > 0.0:
                v = moved * (wp.exp(-drag - held) / (part * rate.dt))
            v = v * wp.min(1.0, rate.max_speed / wp.max(wp.length(v), 1.0e-30))
            age = cargo.age[s] + rate.dt
            if rate.lifetime > 0.0 and age >= rate.lifetime and fate == STAYS:
                fate = EXPIRED
            if mixes != 0:
                fluid = cargo.mixed[s]
                clot = clotted(rate, rate.dt * float(mixes), clot, fluid, cargo.solvent[s], wp.length(v))
            home.velocity[s] = v
            home.volume[s] = cargo.volume[s]
            home.fluid[s] = fluid
            home.clot[s] = clot
            home.age[s] = age
            home.fate[s] = fate
            home.density[s] = film.density[s]


@wp.kernel
def move_on(
    first: int,
    # params
    view: FilmView,
    mixes: int,
    # in
    rates: wp.array(dtype=Rates),
    surface: WalkView,
    sheet: Sheeted,
    film: Sorted,
    cargo: Carried,
    # out
    home_out: Home,
):
    """Moves particles over the surface and takes their velocity from how far they came."""
    begin = (first + wp.tid()) * view.chunk
    end = wp.min(begin + view.chunk, film.count[0])
    move_particles(view, mixes, EVERY, rates[0], surface, sheet, film, cargo, begin, end, home_out)
