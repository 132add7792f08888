"""Kernels of the nozzle and the suction; `drops` says in which order they run.

Suction takes the nearest first, film and drops alike, by their own volumes: what is in reach is counted in `RINGS`
rings of equal area around the tip, whole rings are taken from the inside while the rate allows, and of the next one
the part that is left, drawn by lot. What a lot takes too much is taken less in the next step.
"""

# ruff: noqa: SIM102 RUF046

from __future__ import annotations

import warp as wp

from viscera.blood.drops.numbers import DropNumbers, Purse, Tools
from viscera.blood.film.state import STAYS, SUCKED
from viscera.blood.views import DROP_SUCKED, FLYING, DropView, FilmView, is_there

wp.set_module_options({"enable_backward": False})

JET = 512
"""Most drops that a nozzle lets out in one step."""

LEFT_TO_DRIP = 4
"""The nozzle leaves this part of the places in the air, one over it."""

SAVED = wp.constant(wp.float64(0.1))
"""How long a tool saves up what it could not move [s]."""

RINGS = 64
"""On 4 mm of reach, 0.8 mm² each: about one particle of a film at rest."""


@wp.kernel
def begin(
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    all_tools: wp.array(dtype=Tools),
    # in
    drops: DropView,
    # out
    purse_out: wp.array(dtype=Purse),
    ring_out: wp.array(dtype=wp.int64),
    taken_out: wp.array(dtype=wp.int64),
):
    """One thread: what the tools may move in this step."""
    numbers = all_numbers[0]
    tools = all_tools[0]
    purse = purse_out[0]
    volume = wp.float64(numbers.volume)
    dt = numbers.exact_dt
    purse.suck = purse.suck + tools.suction_rate * dt
    if tools.suction_reach <= 0.0:
        purse.suck = wp.float64(0.0)
    # A tip that sucks air, or a nozzle that finds no room, does not save up for later.
    purse.suck = wp.min(purse.suck, wp.max(SAVED * tools.suction_rate, volume))
    purse.rinse = purse.rinse + tools.nozzle_rate * dt
    if tools.nozzle_rate <= wp.float64(0.0):
        purse.rinse = wp.float64(0.0)
    purse.rinse = wp.min(purse.rinse, wp.max(SAVED * tools.nozzle_rate, volume))
    due = int(wp.min(wp.floor(purse.rinse / volume), wp.float64(JET)))
    # Some places in the air are left to what drips: a film that cannot drip cannot clear.
    purse.jets = wp.max(wp.min(due, drops.capacity - drops.capacity // LEFT_TO_DRIP - drops.count[0]), 0)
    purse.rinse = purse.rinse - wp.float64(purse.jets) * volume
    for ring in range(RINGS):
        ring_out[ring] = wp.int64(0)
    taken_out[0] = wp.int64(0)
    purse.step = purse.step + 1
    purse_out[0] = purse


@wp.kernel
def spray(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    all_tools: wp.array(dtype=Tools),
    # in
    purse: wp.array(dtype=Purse),
    # out
    drops_out: DropView,
):
    """Drops at the outlet, each at its own moment of this step; `move`, which comes next, sweeps every one of them from
    there to where it is at the step's end: nothing passes tissue that is nearer than that."""
    k = first + wp.tid()
    jets = purse[0].jets
    if k >= jets:
        return
    numbers = all_numbers[0]
    tools = all_tools[0]
    rng = wp.rand_init(numbers.seed, int(purse[0].rinsed / wp.int64(numbers.volume)) + k)
    speed = wp.length(tools.nozzle_velocity)
    velocity = tools.nozzle_velocity + numbers.spread * speed * wp.sample_unit_sphere(rng)
    flown = numbers.dt * (float(k) + wp.randf(rng)) / float(jets)
    slot = drops_out.count[0] + k
    drops_out.position[slot] = tools.nozzle
    drops_out.velocity[slot] = velocity
    drops_out.volume[slot] = numbers.volume
    drops_out.fluid[slot] = numbers.rinse
    drops_out.fate[slot] = FLYING
    drops_out.late[slot] = numbers.dt - flown


@wp.kernel
def book_spray(
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    # out
    purse_out: wp.array(dtype=Purse),
    drop_count_out: wp.array(dtype=wp.int32),
):
    purse = purse_out[0]
    purse.rinsed = purse.rinsed + wp.int64(purse.jets) * wp.int64(all_numbers[0].volume)
    drop_count_out[0] = drop_count_out[0] + purse.jets
    purse.jets = 0
    purse_out[0] = purse


@wp.func
def ring_of(tools: Tools, point: wp.vec3) -> int:
    """Number of the ring a point is in; RINGS where it is out of reach, or suction is off."""
    ring = RINGS
    square = tools.suction_reach * tools.suction_reach
    away = wp.length_sq(point - tools.suction)
    if away < square:
        ring = wp.min(int(float(RINGS) * (away / square)), RINGS - 1)
    return ring


@wp.kernel
def measure_film(
    # params
    all_tools: wp.array(dtype=Tools),
    # in
    film: FilmView,
    # out
    ring_out: wp.array(dtype=wp.int64),
):
    """Sums of whole numbers: the same in any order. On cpu launched by one core, as atomics there are plain."""
    i = wp.tid()
    if all_tools[0].suction_reach > 0.0 and i < film.count[0] and film.fate[i] == STAYS:
        ring = ring_of(all_tools[0], film.position[i])
        if ring < RINGS:
            wp.atomic_add(ring_out, ring, wp.int64(film.volume[i]))


@wp.kernel
def measure_drops(
    # params
    all_tools: wp.array(dtype=Tools),
    # in
    drops: DropView,
    # out
    ring_out: wp.array(dtype=wp.int64),
):
    begin = wp.tid() * drops.chunk
    if all_tools[0].suction_reach > 0.0:
        for i in range(begin, wp.min(begin + drops.chunk, drops.count[0])):
            if is_there(drops.fate[i]):
                ring = ring_of(all_tools[0], drops.position[i])
                if ring < RINGS:
                    wp.atomic_add(ring_out, ring, wp.int64(drops.volume[i]))


@wp.kernel
def aim(
    # in
    ring: wp.array(dtype=wp.int64),
    # out
    purse_out: wp.array(dtype=Purse),
):
    """One thread: how many rings the rate allows."""
    purse = purse_out[0]
    left = wp.max(purse.suck, wp.float64(0.0))
    k = int(0)
    while k < RINGS:
        if wp.float64(ring[k]) > left:
            break
        left -= wp.float64(ring[k])
        k += 1
    purse.ring = k
    purse.part = float(0.0)
    if k < RINGS:
        purse.part = float(left / wp.float64(ring[k]))
    purse_out[0] = purse


@wp.func
def is_taken(purse: Purse, tools: Tools, seed: int, point: wp.vec3, i: int) -> wp.bool:
    ring = ring_of(tools, point)
    taken = ring < purse.ring and ring < RINGS
    if ring == purse.ring and ring < RINGS:
        rng = wp.rand_init(seed + purse.step, i)
        taken = wp.randf(rng) < purse.part
    return taken


@wp.kernel
def suck_film(
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    all_tools: wp.array(dtype=Tools),
    # in
    purse: wp.array(dtype=Purse),
    # out
    film_out: FilmView,
    taken_out: wp.array(dtype=wp.int64),
):
    i = wp.tid()
    if all_tools[0].suction_reach > 0.0 and i < film_out.count[0] and film_out.fate[i] == STAYS:
        if is_taken(purse[0], all_tools[0], all_numbers[0].seed, film_out.position[i], i):
            film_out.fate[i] = SUCKED
            wp.atomic_add(taken_out, 0, wp.int64(film_out.volume[i]))


@wp.kernel
def suck_drops(
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    all_tools: wp.array(dtype=Tools),
    # in
    purse: wp.array(dtype=Purse),
    # out
    drops_out: DropView,
    taken_out: wp.array(dtype=wp.int64),
):
    begin = wp.tid() * drops_out.chunk
    if all_tools[0].suction_reach > 0.0:
        for i in range(begin, wp.min(begin + drops_out.chunk, drops_out.count[0])):
            if is_there(drops_out.fate[i]):
                if is_taken(purse[0], all_tools[0], all_numbers[0].seed, drops_out.position[i], i):
                    drops_out.fate[i] = DROP_SUCKED
                    wp.atomic_add(taken_out, 0, wp.int64(drops_out.volume[i]))


@wp.kernel
def book_suck(
    # in
    taken: wp.array(dtype=wp.int64),
    # out
    purse_out: wp.array(dtype=Purse),
):
    purse = purse_out[0]
    purse.suck = purse.suck - wp.float64(taken[0])
    purse_out[0] = purse
