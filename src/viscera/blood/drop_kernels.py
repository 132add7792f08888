"""Kernels of the drops; `drops` has the equations and says in which order they run."""

# Warp's stubs know neither its own dtypes nor the fields of a struct.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import warp as wp

from viscera.blood.film_state import LET_GO, STAYS, SUCKED
from viscera.blood.landing import LandingView, meet_surface, outward, point_on
from viscera.blood.views import DROP_BROKEN, DROP_SUCKED, FLYING, LANDED, LOST, DropView, FilmView, QueueView

wp.set_module_options({"enable_backward": False})

JET = 512
"""Most drops that a nozzle lets out in one step."""

LIFT = wp.constant(1.0e-5)
"""How far above the surface a drop begins [m]: nothing beside a drop, and enough for float32 at an organ's size."""


@wp.struct
class DropNumbers:
    """Live numbers; from an array, as scalars are frozen when a program is recorded."""

    dt: float
    exact_dt: wp.float64
    """The same number, for sums over many steps."""
    gravity: wp.vec3
    thickness: float
    """6 / (π h²) · 1 pL: thickness per density and picolitre [m]."""
    hanging: float
    overflow: float
    """Thicknesses above which film lets go [m]."""
    share: float
    """1 − exp(−dt/τ): part of what is too much that lets go in one step."""
    lower: wp.vec3
    upper: wp.vec3
    """Corners of the scene's box [m]."""
    volume: int
    """Of a drop that a nozzle lets out [pL]."""
    rinse: wp.vec4
    """What a nozzle lets out: concentrations."""
    spread: float
    """Of a nozzle's jet: sideways speed over forward speed."""
    seed: int


@wp.struct
class Tools:
    """What the hands do in this step."""

    suction: wp.vec3
    """Where the tip is [m]."""
    suction_reach: float
    """[m]; 0: off."""
    suction_rate: wp.float64
    """[pL/s]"""
    nozzle: wp.vec3
    """[m]"""
    nozzle_velocity: wp.vec3
    """Of the jet [m/s]."""
    nozzle_rate: wp.float64
    """[pL/s]"""


@wp.struct
class Purse:
    """What is owed and what has been moved, one entry each."""

    suck: wp.float64
    """What suction may still take [pL]."""
    rinse: wp.float64
    """What the nozzle still owes [pL]."""
    rinsed: wp.int64
    """What came out of the nozzle so far [pL]."""
    jets: int
    """Drops that it lets out in this step."""
    take: int
    """Particles and drops that suction takes in this step."""
    step: int


@wp.kernel
def begin(
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    all_tools: wp.array(dtype=Tools),
    # in
    drops: DropView,
    # out
    purse_out: wp.array(dtype=Purse),
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
    # A tip that sucks air does not save up for later: at most a tenth of a second's worth.
    purse.suck = wp.min(purse.suck, wp.max(wp.float64(0.1) * tools.suction_rate, volume))
    purse.take = int(wp.floor(wp.max(purse.suck, wp.float64(0.0)) / volume))
    purse.rinse = purse.rinse + tools.nozzle_rate * dt
    due = int(wp.min(wp.floor(purse.rinse / volume), wp.float64(JET)))
    purse.jets = wp.min(due, drops.capacity - drops.count[0])
    purse.rinse = purse.rinse - wp.float64(purse.jets) * volume
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
    """Drops along the stretch that the jet has run in this step."""
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
    drops_out.position[slot] = tools.nozzle + flown * velocity
    drops_out.velocity[slot] = velocity
    drops_out.volume[slot] = numbers.volume
    drops_out.fluid[slot] = numbers.rinse
    drops_out.fate[slot] = FLYING


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


@wp.kernel
def choose_loose(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    tree: LandingView,
    # in
    purse: wp.array(dtype=Purse),
    film: FilmView,
    # out
    flag_out: wp.array(dtype=wp.int32),
):
    """1 for each particle of the film that lets go."""
    i = first + wp.tid()
    flag_out[i] = 0
    if i >= film.count[0]:
        return
    if film.fate[i] != STAYS:
        return
    numbers = all_numbers[0]
    thickness = numbers.thickness * float(film.volume[i]) * (1.0 + film.density[i])
    n = film.normal[i]
    much = 1.0 - numbers.overflow / wp.max(thickness, 1.0e-12)
    pull = wp.dot(numbers.gravity, n) / wp.max(wp.length(numbers.gravity), 1.0e-12)
    much = wp.max(much, 1.0 - numbers.hanging / wp.max(thickness * pull, 1.0e-12))
    if much > 0.0:
        rng = wp.rand_init(numbers.seed + purse[0].step, i)
        if wp.randf(rng) < much * numbers.share:
            # Not where the drop would begin inside the tissue opposite.
            start = film.position[i] + LIFT * n
            if meet_surface(tree, start, film.position[i] + thickness * n).face < 0:
                flag_out[i] = 1


@wp.kernel
def let_go(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    # in
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    film: FilmView,
    # out
    drops_out: DropView,
):
    """What has no place among the drops stays in the film. A clot that lets go is blood again: drops have none."""
    i = first + wp.tid()
    if flag[i] == 0:
        return
    slot = drops_out.count[0] + place[i]
    if slot >= drops_out.capacity:
        return
    numbers = all_numbers[0]
    thickness = numbers.thickness * float(film.volume[i]) * (1.0 + film.density[i])
    drops_out.position[slot] = film.position[i] + thickness * film.normal[i]
    drops_out.velocity[slot] = film.velocity[i]
    drops_out.volume[slot] = film.volume[i]
    drops_out.fluid[slot] = film.fluid[i]
    drops_out.fate[slot] = FLYING
    film.fate[i] = LET_GO


@wp.kernel
def add_count(
    # params
    capacity: int,
    # in
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    # out
    count_out: wp.array(dtype=wp.int32),
):
    """Raises a count by the number of flags, as far as there is room."""
    last = flag.shape[0] - 1
    count_out[0] = wp.min(count_out[0] + place[last] + flag[last], capacity)


@wp.kernel
def fly(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    tree: LandingView,
    # out
    drops_out: DropView,
    landed_out: wp.array(dtype=wp.int32),
):
    """Ballistic: v ← v + g dt, x ← x + v dt, until the surface is met or the scene's box is left."""
    i = first + wp.tid()
    landed_out[i] = 0
    if i >= drops_out.count[0]:
        return
    if drops_out.fate[i] == LANDED:
        landed_out[i] = 1
    if drops_out.fate[i] != FLYING:
        return
    numbers = all_numbers[0]
    x = drops_out.position[i]
    v = drops_out.velocity[i] + numbers.dt * numbers.gravity
    end = x + numbers.dt * v
    if not wp.isfinite(end):
        drops_out.fate[i] = DROP_BROKEN
        return
    hit = meet_surface(tree, x, end)
    drops_out.velocity[i] = v
    drops_out.position[i] = end
    low = wp.min(end - numbers.lower, numbers.upper - end)
    if hit.face >= 0:
        drops_out.fate[i] = LANDED
        drops_out.face[i] = hit.face
        drops_out.barycentric[i] = wp.vec2(hit.second, hit.third)
        drops_out.position[i] = point_on(tree, hit.face, hit.second, hit.third)
        landed_out[i] = 1
    elif wp.min(low[0], wp.min(low[1], low[2])) < 0.0:
        drops_out.fate[i] = LOST


@wp.kernel
def join_film(
    first: int,
    # in
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    tree: LandingView,
    drops: DropView,
    # out
    queue_out: QueueView,
    joined_out: wp.array(dtype=wp.int32),
):
    """A landed drop goes into the film's queue, or lies and waits until there is room."""
    i = first + wp.tid()
    joined_out[i] = 0
    if flag[i] == 0:
        return
    slot = queue_out.count[0] + place[i]
    if slot >= queue_out.capacity:
        drops.position[i] = point_on(tree, drops.face[i], drops.barycentric[i][0], drops.barycentric[i][1])
        return
    n = outward(tree, drops.face[i])
    v = drops.velocity[i]
    queue_out.face[slot] = drops.face[i]
    queue_out.barycentric[slot] = drops.barycentric[i]
    queue_out.velocity[slot] = v - wp.dot(v, n) * n
    queue_out.volume[slot] = drops.volume[i]
    queue_out.fluid[slot] = drops.fluid[i]
    joined_out[i] = 1


@wp.kernel
def choose_sucked_film(
    first: int,
    # params
    all_tools: wp.array(dtype=Tools),
    # in
    film: FilmView,
    # out
    flag_out: wp.array(dtype=wp.int32),
):
    i = first + wp.tid()
    flag_out[i] = 0
    if i < film.count[0] and film.fate[i] == STAYS:
        reach = all_tools[0].suction_reach
        if reach > 0.0 and wp.length_sq(film.position[i] - all_tools[0].suction) < reach * reach:
            flag_out[i] = 1


@wp.kernel
def choose_sucked_drops(
    first: int,
    # params
    all_tools: wp.array(dtype=Tools),
    # in
    drops: DropView,
    # out
    flag_out: wp.array(dtype=wp.int32),
):
    i = first + wp.tid()
    flag_out[i] = 0
    if i < drops.count[0] and (drops.fate[i] == FLYING or drops.fate[i] == LANDED):
        reach = all_tools[0].suction_reach
        if reach > 0.0 and wp.length_sq(drops.position[i] - all_tools[0].suction) < reach * reach:
            flag_out[i] = 1


@wp.kernel
def suck(
    first: int,
    # params
    gone: int,
    # in
    purse: wp.array(dtype=Purse),
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    # out
    fate_out: wp.array(dtype=wp.int32),
):
    """The first `take` of those in reach are gone."""
    i = first + wp.tid()
    if flag[i] != 0 and place[i] < purse[0].take:
        fate_out[i] = gone


@wp.kernel
def book_suck(
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    # in
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    # out
    purse_out: wp.array(dtype=Purse),
):
    last = flag.shape[0] - 1
    purse = purse_out[0]
    taken = wp.min(purse.take, place[last] + flag[last])
    purse.take = purse.take - taken
    purse.suck = purse.suck - wp.float64(taken) * wp.float64(all_numbers[0].volume)
    purse_out[0] = purse


@wp.kernel
def tally(
    # in
    drops: DropView,
    joined: wp.array(dtype=wp.int32),
    # out
    gone_count_out: wp.array(dtype=wp.int64),
    gone_volume_out: wp.array(dtype=wp.int64),
    keep_out: wp.array(dtype=wp.int32),
):
    """Sums of whole numbers: the same in any order. On cpu launched by one core, as atomics there are plain."""
    i = wp.tid()
    keep_out[i] = 0
    if i >= drops.count[0]:
        return
    fate = drops.fate[i]
    if fate == FLYING or (fate == LANDED and joined[i] == 0):
        keep_out[i] = 1
    else:
        wp.atomic_add(gone_count_out, fate, wp.int64(1))
        wp.atomic_add(gone_volume_out, fate, wp.int64(drops.volume[i]))


@wp.kernel
def close_ranks(
    first: int,
    # in
    keep: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    drops: DropView,
    # out
    spare_out: DropView,
):
    i = first + wp.tid()
    if keep[i] != 0:
        k = place[i]
        spare_out.position[k] = drops.position[i]
        spare_out.velocity[k] = drops.velocity[i]
        spare_out.volume[k] = drops.volume[i]
        spare_out.fluid[k] = drops.fluid[i]
        spare_out.fate[k] = drops.fate[i]
        spare_out.face[k] = drops.face[i]
        spare_out.barycentric[k] = drops.barycentric[i]


@wp.kernel
def copy_back(
    first: int,
    # in
    keep: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    spare: DropView,
    # out
    drops_out: DropView,
):
    k = first + wp.tid()
    last = keep.shape[0] - 1
    if k < place[last] + keep[last]:
        drops_out.position[k] = spare.position[k]
        drops_out.velocity[k] = spare.velocity[k]
        drops_out.volume[k] = spare.volume[k]
        drops_out.fluid[k] = spare.fluid[k]
        drops_out.fate[k] = spare.fate[k]
        drops_out.face[k] = spare.face[k]
        drops_out.barycentric[k] = spare.barycentric[k]


@wp.kernel
def set_count(
    # in
    keep: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    # out
    count_out: wp.array(dtype=wp.int32),
):
    last = keep.shape[0] - 1
    count_out[0] = place[last] + keep[last]


FILM_SUCKED, AIR_SUCKED = int(SUCKED), int(DROP_SUCKED)
