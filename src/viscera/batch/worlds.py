"""Ticks of many worlds: the physics of one (tissue/), with an offset for each world.

Every array that changes has a row for each world; a kernel takes its world's rows as views and hands them to the very
functions that step one world, so each world has the single world's bits. What is the same in all of them (places in
memory, masses, points that tools touch) is stored once and stays in the caches.

Here are the arrays and the phases of a tick. kernels.py does all ticks of an action in one launch, a thread per world;
blocks.py the same with a block of threads per world, or with a launch for each phase, for cuda.
"""

from __future__ import annotations

import warp as wp

from viscera.batch.hands import feel_tool, move_tool
from viscera.batch.kit import Hands, Kit
from viscera.tissue.kernels import FORCE_PARTS, LIVE_KEEP, LIVE_VISCOUS_TIME, Lattice
from viscera.tissue.native import step_pair, step_tile
from viscera.tissue.touch_kernels import (
    TOOLS,
    Contacts,
    Samples,
    count_share,
    list_near,
    list_near_alone,
    list_points,
    meet_bars,
    move_corner,
    push_corner,
    touch_points,
)
from viscera.tissue.volume import gather_cells, press_cells

wp.set_module_options({"enable_backward": False})

LANES = 16
"""Threads that list the points of a bundle together, on cuda."""
_LANES = wp.constant(LANES)
_TOOLS = wp.constant(TOOLS)
_NO_STRETCH = wp.constant(2**31 - 1)


@wp.struct
class Worlds:
    """What changes, a row for each world; what is the same in all of them is in `Lattice`, `Samples` and `Kit`."""

    tiles: int
    bundles: int
    cells: int
    """Elements of the volume force: tiles on cpu, places on cuda; 0 where ν = ¼."""
    steps: int
    """Elements of a step: tiles on cpu, pairs of places on cuda."""
    position: wp.array3d(dtype=wp.float32)
    """p = u + τ·v [m], shape (worlds, 2, 3·slots): this substep's and the next one's."""
    velocity: wp.array2d(dtype=wp.float32)
    """[m/s], shape (worlds, 3·slots)."""
    extra: wp.array2d(dtype=wp.float32)
    """Forces besides the springs [N]."""
    push: wp.array2d(dtype=wp.float32)
    """Of each cell (tissue/volume.py) [N]."""
    live: wp.array2d(dtype=wp.float32)
    """Gravity, stiffness, τ … of each world; see tissue/kernels.py."""
    tools: wp.array2d(dtype=wp.float32)
    """Where tools are; see tissue/touch_kernels.py."""
    poses: wp.array(dtype=wp.float32)
    """Of tools that are distance fields: none is there."""
    force: wp.array2d(dtype=wp.int64)
    broken: wp.array2d(dtype=wp.int32)
    clock: wp.array2d(dtype=wp.int32)
    """Ticks so far, shape (worlds, 1); goes on over resets."""
    anatomy: wp.array(dtype=wp.int32)
    """Which of the first rows of the next two is each world's own."""
    springs: wp.array(dtype=wp.int32)
    """Which row it has now: that, or one of its own after them, where its tissue has been burnt."""
    stiffness: wp.array2d(dtype=wp.float16)
    bulk: wp.array2d(dtype=wp.float16)
    near: wp.array2d(dtype=wp.int32)
    """This and all below: `Contacts` of tissue/touch_kernels.py."""
    counts: wp.array2d(dtype=wp.int32)
    listed: wp.array2d(dtype=wp.int32)
    owner: wp.array2d(dtype=wp.int32)
    bars: wp.array2d(dtype=wp.int32)
    fields: wp.array2d(dtype=wp.int32)
    turn: wp.array2d(dtype=wp.quat)
    met: wp.array2d(dtype=wp.int32)
    row: wp.array2d(dtype=wp.int32)
    depth: wp.array2d(dtype=wp.float32)
    part: wp.array2d(dtype=wp.float32)
    change: wp.array2d(dtype=wp.vec3)
    move: wp.array2d(dtype=wp.vec3)
    arm: wp.array2d(dtype=wp.vec3)
    share: wp.array2d(dtype=wp.int64)
    pushed: wp.array2d(dtype=wp.int64)
    shift: wp.array2d(dtype=wp.int64)
    touched: wp.array2d(dtype=wp.int32)
    gauge: wp.array2d(dtype=wp.int32)


@wp.func
def lattice_of(lattice: Lattice, worlds: Worlds, world: int):
    """The lattice with what is this world's own."""
    mine = lattice
    mine.stiffness = worlds.stiffness[worlds.springs[world]]
    mine.extra = worlds.extra[world]
    mine.clock = worlds.clock[world]
    return mine


@wp.func
def contacts_of(worlds: Worlds, world: int):
    mine = Contacts()
    mine.near = worlds.near[world]
    mine.counts = worlds.counts[world]
    mine.listed = worlds.listed[world]
    mine.owner = worlds.owner[world]
    mine.bars = worlds.bars[world]
    mine.fields = worlds.fields[world]
    mine.turn = worlds.turn[world]
    mine.met = worlds.met[world]
    mine.row = worlds.row[world]
    mine.depth = worlds.depth[world]
    mine.part = worlds.part[world]
    mine.change = worlds.change[world]
    mine.move = worlds.move[world]
    mine.arm = worlds.arm[world]
    mine.share = worlds.share[world]
    mine.push = worlds.pushed[world]
    mine.shift = worlds.shift[world]
    mine.touched = worlds.touched[world]
    mine.gauge = worlds.gauge[world]
    return mine


@wp.func
def buffer_of(lattice: Lattice, worlds: Worlds, world: int, substep: int):
    """Which of the two position buffers a substep of this tick reads."""
    return (worlds.clock[world, 0] * lattice.substeps + substep) % 2


# --- phases: of one world, by one of its threads; most of them have nothing to do with contact, so what it needs is
# looked up inside the loops ---


@wp.func
def start_tick(worlds: Worlds, kit: Kit, hands: Hands, world: int, thread: int, threads: int):
    """Tools follow their hands; what they feel, and what is near them, begins anew."""
    for tool in range(thread, kit.tools, threads):
        move_tool(kit, hands, world, tool, worlds.tools[world])
    for number in range(thread, _TOOLS * FORCE_PARTS, threads):
        worlds.force[world, number] = wp.int64(0)
    for tool in range(thread, _TOOLS, threads):
        worlds.gauge[world, 2 * tool] = 0
        worlds.gauge[world, 2 * tool + 1] = _NO_STRETCH
    for number in range(thread, 3, threads):
        worlds.counts[world, number] = 0


@wp.func
def end_tick(worlds: Worlds, kit: Kit, hands: Hands, world: int, ticks: int, thread: int, threads: int):
    """Tools feel the reaction."""
    for tool in range(thread, kit.tools, threads):
        feel_tool(kit, hands, world, tool, ticks, worlds.force[world], worlds.gauge[world])
    if thread == 0:
        worlds.clock[world, 0] = worlds.clock[world, 0] + 1


@wp.func
def look_near(lattice: Lattice, samples: Samples, worlds: Worlds, world: int, thread: int, threads: int):
    here = worlds.position[world, buffer_of(lattice, worlds, world, 0)]
    contacts = contacts_of(worlds, world)
    tools = worlds.tools[world]
    list_near(lattice, samples, worlds.bundles, tools, worlds.poses, here, contacts, thread, threads)


@wp.func
def list_near_points(lattice: Lattice, samples: Samples, worlds: Worlds, world: int, thread: int, threads: int):
    """Of the bundles that are near, the points that tools may reach in this tick."""
    here = worlds.position[world, buffer_of(lattice, worlds, world, 0)]
    tools = worlds.tools[world]
    for n in range(thread // _LANES, worlds.counts[world, 0], wp.max(threads // _LANES, 1)):
        contacts = contacts_of(worlds, world)
        list_points(
            samples, tools, here, contacts, lattice.slots, contacts.near[n], thread % _LANES, wp.min(threads, _LANES)
        )


@wp.func
def look_near_alone(lattice: Lattice, samples: Samples, worlds: Worlds, world: int):
    here = worlds.position[world, buffer_of(lattice, worlds, world, 0)]
    contacts = contacts_of(worlds, world)
    list_near_alone(lattice, samples, worlds.bundles, worlds.tools[world], worlds.poses, here, contacts)


@wp.func
def press(lattice: Lattice, worlds: Worlds, world: int, substep: int, thread: int, threads: int):
    here = worlds.position[world, buffer_of(lattice, worlds, world, substep)]
    bulk = worlds.bulk[worlds.springs[world]]
    live = worlds.live[world]
    push = worlds.push[world]
    for element in range(thread, worlds.cells, threads):
        press_cells(lattice, element, bulk, live, here, push)


@wp.func
def gather(lattice: Lattice, worlds: Worlds, world: int, thread: int, threads: int):
    push = worlds.push[world]
    extra = worlds.extra[world]
    for element in range(thread, worlds.cells, threads):
        gather_cells(lattice, element, push, extra)


@wp.func
def step(lattice: Lattice, worlds: Worlds, world: int, substep: int, thread: int, threads: int):
    """Springs and Verlet. The first of the two is nothing on cuda, the second nothing on cpu."""
    now = buffer_of(lattice, worlds, world, substep)
    here = worlds.position[world, now]
    there = worlds.position[world, 1 - now]
    mine = lattice_of(lattice, worlds, world)
    live = worlds.live[world]
    velocity = worlds.velocity[world]
    broken = worlds.broken[world]
    for element in range(thread, worlds.steps, threads):
        step_tile(mine, element, substep, live, here, velocity, there, broken)
        step_pair(mine, element, substep, live, here, velocity, there, broken)


@wp.func
def touch_alone(lattice: Lattice, samples: Samples, worlds: Worlds, world: int, substep: int):
    """A whole substep of contact by one thread."""
    there = worlds.position[world, 1 - buffer_of(lattice, worlds, world, substep)]
    mine = lattice_of(lattice, worlds, world)
    contacts = contacts_of(worlds, world)
    touch_points(
        mine, samples, worlds.tiles, substep, worlds.live[world], worlds.tools[world], contacts,
        worlds.velocity[world], there, worlds.force[world],
    )  # fmt: skip


@wp.func
def touch_meet(
    lattice: Lattice, samples: Samples, worlds: Worlds, world: int, substep: int, thread: int, threads: int
):  # fmt: skip
    """Which part each near point is in."""
    there = worlds.position[world, 1 - buffer_of(lattice, worlds, world, substep)]
    tau = worlds.live[world, LIVE_VISCOUS_TIME]
    for n in range(thread, worlds.counts[world, 2], threads):
        mine = lattice_of(lattice, worlds, world)
        contacts = contacts_of(worlds, world)
        bundle = contacts.owner[n]
        meet_bars(
            mine, samples, substep, tau, worlds.tools[world], there, worlds.velocity[world], contacts,
            bundle, contacts.bars[bundle], contacts.listed[n],
        )  # fmt: skip


@wp.func
def touch_count(samples: Samples, worlds: Worlds, world: int, thread: int, threads: int):
    for place in range(thread, worlds.counts[world, 1] * samples.corners, threads):
        contacts = contacts_of(worlds, world)
        count_share(samples, contacts, contacts.met[place // samples.corners], place % samples.corners)


@wp.func
def touch_push(
    lattice: Lattice, samples: Samples, worlds: Worlds, world: int, substep: int, thread: int, threads: int
):  # fmt: skip
    keep = worlds.live[world, LIVE_KEEP]
    for place in range(thread, worlds.counts[world, 1] * samples.corners, threads):
        mine = lattice_of(lattice, worlds, world)
        contacts = contacts_of(worlds, world)
        s = contacts.met[place // samples.corners]
        push_corner(mine, samples, substep, keep, contacts, s, place % samples.corners, worlds.force[world])


@wp.func
def touch_move(
    lattice: Lattice, samples: Samples, worlds: Worlds, world: int, substep: int, thread: int, threads: int
):  # fmt: skip
    """Masses take what their points asked for."""
    there = worlds.position[world, 1 - buffer_of(lattice, worlds, world, substep)]
    mine = lattice_of(lattice, worlds, world)
    contacts = contacts_of(worlds, world)
    tau = worlds.live[world, LIVE_VISCOUS_TIME]
    velocity = worlds.velocity[world]
    for place in range(thread, worlds.counts[world, 1] * samples.corners, threads):
        s = contacts.met[place // samples.corners]
        move_corner(mine, samples, tau, contacts, s, place % samples.corners, velocity, there)
