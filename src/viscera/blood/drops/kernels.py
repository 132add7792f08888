"""Kernels of the drops: letting go, joining the film, closing ranks; `drops` has the equations and says in which order
they run, `flight` moves them."""

from __future__ import annotations

import warp as wp

from viscera.blood.drops.flight import LIFT
from viscera.blood.drops.landing import LandingView, meet_surface, outward
from viscera.blood.drops.numbers import DropNumbers, Purse
from viscera.blood.film.state import LET_GO, STAYS
from viscera.blood.views import FLYING, RUN_OFF, DropView, FilmView, QueueView, is_there

wp.set_module_options({"enable_backward": False})

LEAST_HANGING = wp.constant(0.05)
"""Part of `hanging` that a full film still holds. Tuned."""


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
    # What crowds pushes: from `crowded` on, less and less hangs on.
    spare = (numbers.fullest - float(film.count[0]) / float(film.capacity)) / (numbers.fullest - numbers.crowded)
    hanging = numbers.hanging * wp.clamp(spare, LEAST_HANGING, 1.0)
    much = wp.max(much, 1.0 - hanging / wp.max(thickness * pull, 1.0e-12))
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
    drops_out.late[slot] = 0.0
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


@wp.func
def room_for_landing(numbers: DropNumbers, film: FilmView, queue: QueueView) -> int:
    """Length that the queue may have: the film takes all of it in, up to its `fullest`. The rest of its room is for
    wounds, so that saline cannot stop the bleeding."""
    return wp.min(queue.capacity, int(numbers.fullest * float(film.capacity)) - film.count[0])


@wp.kernel
def join_film(
    first: int,
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    # in
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    tree: LandingView,
    film: FilmView,
    # out
    drops: DropView,
    queue_out: QueueView,
):
    """A landed drop goes into the film's queue; what finds no room runs off the organ."""
    i = first + wp.tid()
    if flag[i] == 0:
        return
    slot = queue_out.count[0] + place[i]
    if slot >= room_for_landing(all_numbers[0], film, queue_out):
        drops.fate[i] = RUN_OFF
        return
    n = outward(tree, drops.face[i])
    v = drops.velocity[i]
    queue_out.face[slot] = drops.face[i]
    queue_out.barycentric[slot] = drops.barycentric[i]
    queue_out.velocity[slot] = v - wp.dot(v, n) * n
    queue_out.volume[slot] = drops.volume[i]
    queue_out.fluid[slot] = drops.fluid[i]


@wp.kernel
def book_landing(
    # params
    all_numbers: wp.array(dtype=DropNumbers),
    # in
    flag: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.int32),
    film: FilmView,
    # out
    queue_out: QueueView,
):
    last = flag.shape[0] - 1
    room = room_for_landing(all_numbers[0], film, queue_out)
    after = wp.min(queue_out.count[0] + place[last] + flag[last], room)
    queue_out.count[0] = wp.max(queue_out.count[0], after)


@wp.kernel
def tally(
    # in
    drops: DropView,
    # out
    gone_count_out: wp.array(dtype=wp.int64),
    gone_volume_out: wp.array(dtype=wp.int64),
    keep_out: wp.array(dtype=wp.int32),
):
    """Sums of whole numbers: the same in any order. On cpu launched by one core, as atomics there are plain."""
    begin = wp.tid() * drops.chunk
    for i in range(begin, wp.min(begin + drops.chunk, drops.capacity)):
        keep_out[i] = 0
        if i < drops.count[0]:
            fate = drops.fate[i]
            if is_there(fate):
                keep_out[i] = 1
            else:
                wp.atomic_add(gone_count_out, fate, wp.int64(1))
                wp.atomic_add(gone_volume_out, fate, wp.int64(drops.volume[i]))


@wp.func
def move_up(drops: DropView, i: int, others: DropView, k: int):
    """Drop i becomes number k of the others."""
    others.position[k] = drops.position[i]
    others.velocity[k] = drops.velocity[i]
    others.volume[k] = drops.volume[i]
    others.fluid[k] = drops.fluid[i]
    others.fate[k] = drops.fate[i]
    others.face[k] = drops.face[i]
    others.barycentric[k] = drops.barycentric[i]
    others.late[k] = drops.late[i]


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
    begin = (first + wp.tid()) * drops.chunk
    for i in range(begin, wp.min(begin + drops.chunk, drops.count[0])):
        if keep[i] != 0:
            move_up(drops, i, spare_out, place[i])


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
    begin = (first + wp.tid()) * spare.chunk
    last = keep.shape[0] - 1
    for k in range(begin, wp.min(begin + spare.chunk, place[last] + keep[last])):
        move_up(spare, k, drops_out, k)


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
