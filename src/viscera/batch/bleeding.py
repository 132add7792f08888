"""Open vessels of many worlds: the functions of `viscera.blood.wounds`, over rows. One thread takes a world."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import math

import warp as wp

from viscera.batch.film_rows import Resting
from viscera.batch.kit import Hands
from viscera.blood.views import DropView, FilmView, QueueView
from viscera.blood.wounds.kernels import (
    BURST,
    WoundNumbers,
    WoundView,
    bleed_all,
    book_all,
    emit_one,
    is_burnt_shut,
)
from viscera.tissue.heartbeat import HIGHEST, LOWEST, WAVES
from viscera.world.systems.wounds import PRESSES_BESIDE

wp.set_module_options({"enable_backward": False})

_TURN = wp.constant(wp.float64(2.0 * math.pi))
_PI = wp.constant(wp.float64(math.pi))
_LOW, _SPAN = wp.constant(wp.float64(LOWEST)), wp.constant(wp.float64(HIGHEST - LOWEST))
_BESIDE = wp.constant(wp.float64(PRESSES_BESIDE))
_BURNT = wp.constant(2)
(_A, _B, _C) = (tuple(wp.constant(wp.float64(number)) for number in wave) for wave in WAVES)
_A0, _A1, _A2 = _A
_B0, _B1, _B2 = _B
_C0, _C1, _C2 = _C


@wp.struct
class Open:
    """`WoundView` of blood/wounds/kernels.py, a row for each world; and what a step needs besides."""

    room: int
    """Particles that a film has, at most."""
    queue: int
    """Particles that can wait."""
    tools: int
    count: wp.array2d(dtype=wp.int32)
    face: wp.array2d(dtype=wp.int32)
    barycentric: wp.array2d(dtype=wp.vec2)
    opening: wp.array2d(dtype=wp.float64)
    vessel: wp.array2d(dtype=wp.vec4d)
    fluid: wp.array2d(dtype=wp.vec4)
    is_blood: wp.array2d(dtype=wp.int32)
    sealed: wp.array2d(dtype=wp.int32)
    clot: wp.array2d(dtype=wp.float64)
    rate: wp.array2d(dtype=wp.float64)
    owed: wp.array2d(dtype=wp.float64)
    given: wp.array2d(dtype=wp.int64)
    held: wp.array2d(dtype=wp.int64)
    speed: wp.array2d(dtype=wp.float32)
    leaving: wp.array2d(dtype=wp.int32)
    place: wp.array2d(dtype=wp.vec3)
    """As of the last step [m]."""
    drive: wp.array2d(dtype=wp.float64)
    """Height of the pulse, 0 to 1, and pressure in the cavity [Pa]."""
    press: wp.array2d(dtype=wp.float64)
    """On each wound from outside [Pa]."""
    beat: wp.array2d(dtype=wp.float64)
    """Phase of the heart, 0 to 1, and its rate [1/s]."""
    start: wp.array2d(dtype=wp.int32)
    """Where each wound's texels begin in `texel`."""
    texel: wp.array2d(dtype=wp.int32)
    no_drops: wp.array(dtype=wp.int32)
    """One zero: nothing flies."""
    tip_radius: wp.array(dtype=wp.float64)
    """Of each tool, with which it presses [m]."""


@wp.func
def wounds_of(bare: Open, world: int):
    mine = WoundView()
    mine.count = bare.count[world]
    mine.face = bare.face[world]
    mine.barycentric = bare.barycentric[world]
    mine.opening = bare.opening[world]
    mine.vessel = bare.vessel[world]
    mine.fluid = bare.fluid[world]
    mine.is_blood = bare.is_blood[world]
    mine.sealed = bare.sealed[world]
    mine.clot = bare.clot[world]
    mine.rate = bare.rate[world]
    mine.owed = bare.owed[world]
    mine.given = bare.given[world]
    mine.held = bare.held[world]
    mine.speed = bare.speed[world]
    mine.leaving = bare.leaving[world]
    return mine


@wp.func
def wave(height: wp.float64, place: wp.float64, sharpness: wp.float64, phase: wp.float64):
    return height * wp.exp(sharpness * (wp.cos(_TURN * (phase - place)) - wp.float64(1.0)))


@wp.func
def pulse(phase: wp.float64):
    """`heartbeat.pulse`."""
    total = wave(_A0, _A1, _A2, phase) + wave(_B0, _B1, _B2, phase)
    return (total + wave(_C0, _C1, _C2, phase) - _LOW) / _SPAN


@wp.func
def press_on(bare: Open, hands: Hands, world: int):
    """A tool that presses on a wound holds back its pressure: `Vessels._press`."""
    for w in range(bare.count[world, 0]):
        most = wp.float64(0.0)
        for tool in range(bare.tools):
            f = wp.vec3d(
                wp.float64(hands.last[world, tool, 0]), wp.float64(hands.last[world, tool, 1]),
                wp.float64(hands.last[world, tool, 2]),
            )  # fmt: skip
            radius = bare.tip_radius[tool]
            at = bare.place[world, w]
            away = hands.tip[world, tool] - wp.vec3d(wp.float64(at[0]), wp.float64(at[1]), wp.float64(at[2]))
            if hands.active[world, tool] != 0 and wp.length(away) <= radius + _BESIDE:
                most = wp.max(most, wp.length(f) / (_PI * radius * radius))
        bare.press[world, w] = most


@wp.func
def show(bare: Open, rest: Resting, triangles: wp.array(dtype=wp.vec3i), world: int):
    """Where the wounds are now."""
    for w in range(bare.count[world, 0]):
        corner = triangles[bare.face[world, w]]
        a = rest.vertex[world, corner[0]]
        here = bare.barycentric[world, w]
        e = rest.vertex[world, corner[1]] - a
        f = rest.vertex[world, corner[2]] - a
        bare.place[world, w] = a + here[0] * e + here[1] * f


@wp.kernel
def bleed_worlds(
    first: int,
    # params
    all_numbers: wp.array(dtype=WoundNumbers),
    triangles: wp.array(dtype=wp.vec3i),
    # in
    hands: Hands,
    level: wp.array2d(dtype=wp.float32),
    # out
    bare: Open,
    rest: Resting,
):
    """A step: `Vessels.frame`. `level` has one element where nothing burns."""
    world = first + wp.tid()
    numbers = all_numbers[0]
    wounds = wounds_of(bare, world)
    beat = bare.beat[world, 0] + bare.beat[world, 1] * numbers.dt
    bare.beat[world, 0] = beat - wp.floor(beat)
    bare.drive[world, 0] = pulse(bare.beat[world, 0])
    press_on(bare, hands, world)
    if level.shape[1] > 1:
        for w in range(bare.count[world, 0]):
            if is_burnt_shut(numbers.seal_fraction, bare.start[world], bare.texel[world], level[world], w):
                wounds.sealed[w] = wounds.sealed[w] | _BURNT
    film = FilmView()
    film.capacity = bare.room
    film.count = rest.count[world]
    queue = QueueView()
    queue.capacity = bare.queue
    queue.count = rest.queue_count[world]
    queue.face = rest.queue_face[world]
    queue.barycentric = rest.queue_barycentric[world]
    queue.velocity = rest.queue_velocity[world]
    queue.volume = rest.queue_volume[world]
    queue.fluid = rest.queue_fluid[world]
    drops = DropView()
    drops.capacity = 0
    drops.count = bare.no_drops
    bleed_all(numbers, bare.drive[world], bare.press[world], wounds, film, queue, drops)
    total = int(0)
    for w in range(bare.count[world, 0]):
        total += wounds.leaving[w]
    for k in range(wp.min(total, BURST)):
        emit_one(numbers, rest.vertex[world], triangles, wounds, queue, drops, k)
    book_all(numbers, wounds, rest.queue_count[world], bare.no_drops)
    show(bare, rest, triangles, world)


@wp.kernel
def reopen_wounds(first: int, mask: wp.array(dtype=wp.int32), bare: Open):
    """Wounds of the worlds in the mask are as they were opened."""
    world = first + wp.tid()
    if mask[world] != 0:
        bare.beat[world, 0] = wp.float64(0.0)
        for w in range(bare.sealed.shape[1]):
            bare.sealed[world, w] = 0
            bare.clot[world, w] = wp.float64(0.0)
            bare.rate[world, w] = wp.float64(0.0)
            bare.owed[world, w] = wp.float64(0.0)
            bare.given[world, w] = wp.int64(0)
            bare.held[world, w] = wp.int64(0)
            bare.speed[world, w] = 0.0
            bare.leaving[world, w] = 0
