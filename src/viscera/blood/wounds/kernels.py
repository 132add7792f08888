"""Kernels of the wounds; `wounds` has the equations and says in which order they run."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import math

import warp as wp

from viscera.blood.film.params import LITTLE
from viscera.blood.views import FLYING, DropView, FilmView, QueueView
from viscera.blood.wounds.vessels import outflow

wp.set_module_options({"enable_backward": False})

BURST = 2048
"""Most particles that all wounds together let go in one step; the rest waits in the vessels."""

LIFT = wp.constant(1.0e-5)
"""How far above the surface a spurt begins [m]: nothing beside a drop, and enough for float32 at an organ's size."""

_PI = wp.constant(wp.float64(math.pi))
_LITTLE = wp.constant(wp.float64(LITTLE))


@wp.struct
class WoundNumbers:
    """Live numbers that all wounds share."""

    dt: wp.float64
    volume: wp.int32
    """Of a particle [pL]."""
    clot_time: wp.float64
    torn_off: wp.float64
    discharge: wp.float64
    weber: wp.float64
    """We per (ρ u² 2a): JETTING · σ [N/m]."""
    spread: float
    cone: float
    """Of a spurt: sideways speed over forward speed."""
    room: float
    """Surface that one particle takes at rest [m²]."""
    seal_fraction: float
    seed: int


@wp.struct
class WoundView:
    """Arrays have shape (CAPACITY,)."""

    count: wp.array(dtype=wp.int32)
    face: wp.array(dtype=wp.int32)
    barycentric: wp.array(dtype=wp.vec2)
    opening: wp.array(dtype=wp.float64)
    vessel: wp.array(dtype=wp.vec4d)
    """Systolic and diastolic pressure [Pa], resistance [Pa·s/m³], density [kg/m³]."""
    fluid: wp.array(dtype=wp.vec4)
    """Concentrations of what comes out."""
    is_blood: wp.array(dtype=wp.int32)
    """1 where it is blood: it clots, and counts as lost."""
    sealed: wp.array(dtype=wp.int32)
    clot: wp.array(dtype=wp.float64)
    rate: wp.array(dtype=wp.float64)
    """Q of the last step [m³/s]."""
    owed: wp.array(dtype=wp.float64)
    """[pL]"""
    given: wp.array(dtype=wp.int64)
    """[pL]"""
    held: wp.array(dtype=wp.int64)
    """Owed blood that found no room in the last step [pL]."""
    speed: wp.array(dtype=wp.float32)
    """With which it spurts [m/s]; 0: it wells up."""
    leaving: wp.array(dtype=wp.int32)
    """Particles that leave in this step."""


@wp.func
def _jet_speed(numbers: WoundNumbers, density: wp.float64, rate: wp.float64, radius: wp.float64):
    """u where it jets, else 0 [m/s]."""
    speed = wp.float64(0.0)
    if rate > wp.float64(0.0):
        u = rate / (_PI * radius * radius)
        if density * u * u * wp.float64(2.0) * radius > numbers.weber:
            speed = u
    return speed


@wp.func
def bleed_all(
    numbers: WoundNumbers,
    drive: wp.array(dtype=wp.float64),
    press: wp.array(dtype=wp.float64),
    wounds: WoundView,
    film: FilmView,
    queue: QueueView,
    drops: DropView,
):
    """How much leaves each wound in this step. They share the room, first come first served. The queue takes no more
    than the film can take in: what waits in it lies nowhere, and nobody can see it or suck it off."""
    volume = wp.float64(numbers.volume)
    queue_room = wp.max(wp.min(queue.capacity, film.capacity - film.count[0]) - queue.count[0], 0)
    drop_room = drops.capacity - drops.count[0]
    burst = int(BURST)
    for w in range(wounds.count[0]):
        vessel = wounds.vessel[w]
        radius = wounds.opening[w] * (wp.float64(1.0) - wounds.clot[w])
        pressure = vessel[1] + drive[0] * (vessel[0] - vessel[1])
        rate = wp.float64(0.0)
        if wounds.sealed[w] == 0:
            rate = outflow(pressure - drive[1] - press[w], vessel[2], vessel[3], numbers.discharge, radius)
        if numbers.clot_time > wp.float64(0.0) and radius > wp.float64(0.0) and wounds.is_blood[w] != 0:
            shear = wp.float64(4.0) * rate / (_PI * radius * radius * radius)
            slowed = numbers.clot_time * (wp.float64(1.0) + shear / numbers.torn_off)
            closed = wp.float64(1.0) - wp.exp(-numbers.dt / slowed)
            wounds.clot[w] = wounds.clot[w] + (wp.float64(1.0) - wounds.clot[w]) * closed
        owed = wounds.owed[w] + rate * numbers.dt / _LITTLE
        if wounds.sealed[w] != 0:
            # What found no room is still in the vessel, and behind the clip.
            owed = wp.float64(0.0)
        speed = _jet_speed(numbers, vessel[3], rate, radius)
        room = queue_room
        if speed > wp.float64(0.0):
            room = drop_room
        due = int(wp.min(wp.floor(owed / volume), wp.float64(2147483647.0)))
        leaving = wp.min(wp.min(due, room), burst)
        burst -= leaving
        if speed > wp.float64(0.0):
            drop_room -= leaving
        else:
            queue_room -= leaving
        wounds.rate[w] = rate
        wounds.speed[w] = float(speed)
        wounds.owed[w] = owed - wp.float64(leaving) * volume
        wounds.held[w] = wp.int64(due - leaving) * wp.int64(numbers.volume)
        wounds.leaving[w] = leaving


@wp.kernel
def bleed(
    # params
    all_numbers: wp.array(dtype=WoundNumbers),
    drive: wp.array(dtype=wp.float64),
    press: wp.array(dtype=wp.float64),
    # in
    wounds: WoundView,
    film: FilmView,
    queue: QueueView,
    drops: DropView,
):
    """One thread: there are few wounds."""
    bleed_all(all_numbers[0], drive, press, wounds, film, queue, drops)


@wp.func
def _spread_out(wounds: WoundView, w: int, radius: float, seed: int, number: int, triangle: wp.mat33):
    """A random place in the disc around the wound, kept in its triangle: weights of the second and third corner."""
    rng = wp.rand_init(seed + w, number)
    angle = 6.2831853 * wp.randf(rng)
    far = radius * wp.sqrt(wp.randf(rng))
    a = wp.vec3(triangle[0, 0], triangle[0, 1], triangle[0, 2])
    e = wp.vec3(triangle[1, 0], triangle[1, 1], triangle[1, 2]) - a
    f = wp.vec3(triangle[2, 0], triangle[2, 1], triangle[2, 2]) - a
    n = wp.cross(e, f)
    square = wp.dot(n, n)
    along = wp.normalize(e)
    offset = far * (wp.cos(angle) * along + wp.sin(angle) * wp.cross(n / wp.sqrt(square), along))
    here = wounds.barycentric[w]
    second = here[0] + wp.dot(wp.cross(offset, f), n) / square
    third = here[1] + wp.dot(wp.cross(e, offset), n) / square
    # Mirrored at the sides, as the neighbour's blood would come back.
    second = wp.clamp(wp.abs(second), 0.0, 1.0)
    third = wp.clamp(wp.abs(third), 0.0, 1.0)
    if second + third > 1.0:
        beyond = 0.5 * (second + third - 1.0)
        second = wp.max(second - 2.0 * beyond, 0.0)
        third = wp.clamp(third - 2.0 * beyond, 0.0, 1.0 - second)
    return wp.vec2(second, third)


@wp.func
def emit_one(
    numbers: WoundNumbers,
    vertices: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    wounds: WoundView,
    queue_out: QueueView,
    drops_out: DropView,
    number_in_step: int,
):
    """Makes a particle of this step; they are numbered wound by wound."""
    k = number_in_step
    to_queue = queue_out.count[0]
    to_drops = drops_out.count[0]
    w = int(0)
    while w < wounds.count[0]:
        leaving = wounds.leaving[w]
        if k < leaving:
            break
        k -= leaving
        if wounds.speed[w] > 0.0:
            to_drops += leaving
        else:
            to_queue += leaving
        w += 1
    if w >= wounds.count[0]:
        return
    corner = triangles[wounds.face[w]]
    a = vertices[corner[0]]
    b = vertices[corner[1]]
    c = vertices[corner[2]]
    number = int(wounds.given[w] / wp.int64(numbers.volume)) + k
    if wounds.speed[w] > 0.0:
        rng = wp.rand_init(numbers.seed + w, number)
        here = wounds.barycentric[w]
        n = wp.normalize(wp.cross(b - a, c - a))
        slot = to_drops + k
        # It leaves the hole at its own moment of this step; `fly`, which comes next, sweeps it from there.
        drops_out.late[slot] = float(numbers.dt) * (1.0 - (float(k) + wp.randf(rng)) / float(wounds.leaving[w]))
        aside = wp.sample_unit_sphere(rng)
        aside = numbers.cone * (aside - wp.dot(aside, n) * n)
        drops_out.position[slot] = a + here[0] * (b - a) + here[1] * (c - a) + LIFT * n
        drops_out.velocity[slot] = wounds.speed[w] * (n + aside)
        drops_out.volume[slot] = numbers.volume
        drops_out.fluid[slot] = wounds.fluid[w]
        drops_out.fate[slot] = FLYING
    else:
        # As wide as so many particles need, so that they do not burst apart; but on this triangle.
        wide = wp.sqrt(numbers.room * float(wounds.leaving[w]) / 3.14159265)
        most = 0.5 * wp.sqrt(0.5 * wp.length(wp.cross(b - a, c - a)))
        radius = wp.min(wp.max(wide, wp.max(numbers.spread, float(wounds.opening[w]))), wp.max(most, numbers.spread))
        triangle = wp.matrix_from_rows(a, b, c)
        slot = to_queue + k
        queue_out.face[slot] = wounds.face[w]
        queue_out.barycentric[slot] = _spread_out(wounds, w, radius, numbers.seed, number, triangle)
        queue_out.velocity[slot] = wp.vec3(0.0, 0.0, 0.0)
        queue_out.volume[slot] = numbers.volume
        queue_out.fluid[slot] = wounds.fluid[w]


@wp.kernel
def emit(
    first: int,
    # params
    all_numbers: wp.array(dtype=WoundNumbers),
    vertices: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    # in
    wounds: WoundView,
    # out
    queue_out: QueueView,
    drops_out: DropView,
):
    """Thread k makes the k-th particle of this step."""
    emit_one(all_numbers[0], vertices, triangles, wounds, queue_out, drops_out, first + wp.tid())


@wp.func
def book_all(
    numbers: WoundNumbers,
    wounds: WoundView,
    queue_count_out: wp.array(dtype=wp.int32),
    drop_count_out: wp.array(dtype=wp.int32),
):
    """What has left is in the queue and in the air now, and no longer in the vessels."""
    for w in range(wounds.count[0]):
        leaving = wounds.leaving[w]
        wounds.given[w] = wounds.given[w] + wp.int64(leaving) * wp.int64(numbers.volume)
        if wounds.speed[w] > 0.0:
            drop_count_out[0] = drop_count_out[0] + leaving
        else:
            queue_count_out[0] = queue_count_out[0] + leaving


@wp.kernel
def book(
    # params
    all_numbers: wp.array(dtype=WoundNumbers),
    # in
    wounds: WoundView,
    # out
    queue_count_out: wp.array(dtype=wp.int32),
    drop_count_out: wp.array(dtype=wp.int32),
):
    book_all(all_numbers[0], wounds, queue_count_out, drop_count_out)


@wp.func
def is_burnt_shut(
    seal_fraction: float,
    start: wp.array(dtype=wp.int32),
    texel: wp.array(dtype=wp.int32),
    coagulated: wp.array(dtype=wp.float32),
    w: int,
):
    """Whether the texels around wound w are coagulated so far."""
    total = float(0.0)
    for k in range(start[w], start[w + 1]):
        # Char counts as coagulated, not as more than that.
        total += wp.min(coagulated[texel[k]], 1.0)
    return start[w + 1] > start[w] and total >= seal_fraction * float(start[w + 1] - start[w])


@wp.kernel
def cauterise(
    first: int,
    # params
    all_numbers: wp.array(dtype=WoundNumbers),
    # in
    count: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    texel: wp.array(dtype=wp.int32),
    coagulated: wp.array(dtype=wp.float32),
    # out
    sealed_out: wp.array(dtype=wp.int32),
):
    w = first + wp.tid()
    if w >= count[0]:
        return
    if is_burnt_shut(all_numbers[0].seal_fraction, start, texel, coagulated, w):
        sealed_out[w] = sealed_out[w] | 2
