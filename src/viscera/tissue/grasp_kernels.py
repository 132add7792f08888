"""Jaws hold masses: the kernels of grasping.py, where the equations are.

On cuda each of them is a launch of its own, on cpu one core does all of a substep. Sums are integers, and the masses of
a jaw stand in the order of their numbers, so that every device and any number of cores does the same.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import (
    FORCE_PARTS,
    FORCE_UNITS,
    LIVE_KEEP,
    LIVE_VISCOUS_TIME,
    TORQUE_UNITS,
    Lattice,
    add_integer,
    load3,
    store3,
)

# Loops stay loops: unrolled they take long to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

JAWS = 4
"""Pairs of jaws that may hold a lattice at once."""
HELD = 512
"""Masses that a pair holds, at most; of more, every second or third is held."""

JAW_FLOATS = 32
"""Of each pair: whether it holds, whether it takes, its tool's place, the force of its grip [N], friction, how far it
is closed as the tick starts and ends, length and half width of its mouth [m], half its gap when closed [m] and how far
each jaw swings open [rad]; then, as the tick starts and ends, the tip [m] and the unit vectors from jaw to jaw and from
the tip to the hinge."""
JAW_TIP, JAW_ACROSS, JAW_UP = wp.constant(12), wp.constant(18), wp.constant(24)

REPORT = 3
"""Of each pair: masses held; what its jaws press with, summed over the substeps of a tick [2⁻³⁰ N]; how far what it
holds is squeezed [2⁻³⁰]."""

CLOSED_GAP = wp.constant(0.1)
"""Share of their way that closed jaws stay apart, for what they hold."""

_JAWS, _HELD, _ROW = wp.constant(JAWS), wp.constant(HELD), wp.constant(JAW_FLOATS)
_FORCE_PARTS, _REPORT = wp.constant(FORCE_PARTS), wp.constant(REPORT)


@wp.struct
class Grasp:
    """What can be held, and what is."""

    masses: int
    """That are free: anchors are not taken."""
    place: wp.array(dtype=wp.int32)
    rest: wp.array(dtype=wp.vec3)
    """Of each free mass, organ frame [m]."""
    jaws: wp.array(dtype=wp.float32)
    owner: wp.array(dtype=wp.int32)
    """Of each place: the pair that holds it, counted from 1, or 0."""
    seen: wp.array(dtype=wp.int32)
    """Of each pair: masses in its mouth as it takes them; then, of each pair, those taken so far."""
    listed: wp.array(dtype=wp.int32)
    """Of each pair: how many stand in its list; some may have slipped out since the tick began."""
    mass: wp.array(dtype=wp.int32)
    """Numbers of the masses that each pair holds, HELD each; -1 for one that slipped out."""
    anchor: wp.array(dtype=wp.vec3)
    """Where each of them is held, in the mouth's frame and as wide as it was taken [m]."""
    taken: wp.array(dtype=wp.float32)
    """Of each pair: how far it was closed when it took."""
    report: wp.array(dtype=wp.int64)


@wp.func
def lerp3(jaws: wp.array(dtype=wp.float32), at: int, share: float):
    start = wp.vec3(jaws[at], jaws[at + 1], jaws[at + 2])
    return start + share * (wp.vec3(jaws[at + 3], jaws[at + 4], jaws[at + 5]) - start)


@wp.func
def squeeze_of(grasp: Grasp, jaw: int, share: float):
    """How much narrower what is held is than when it was taken."""
    row = jaw * _ROW
    closed = grasp.jaws[row + 5] + share * (grasp.jaws[row + 6] - grasp.jaws[row + 5])
    return wp.min(1.0, (1.0 - closed + CLOSED_GAP) / (1.0 - grasp.taken[jaw] + CLOSED_GAP))


@wp.func
def into_mouth(grasp: Grasp, jaw: int, share: float, x: wp.vec3):
    """A point of the organ's frame in that of the mouth: across the jaws, along their width, from the tip up [m]."""
    row = jaw * _ROW
    across = lerp3(grasp.jaws, row + JAW_ACROSS, share)
    up = lerp3(grasp.jaws, row + JAW_UP, share)
    way = x - lerp3(grasp.jaws, row + JAW_TIP, share)
    return wp.vec3(wp.dot(way, across), wp.dot(way, wp.cross(up, across)), wp.dot(way, up))


@wp.func
def out_of_mouth(grasp: Grasp, jaw: int, share: float, local: wp.vec3):
    """The other way round."""
    row = jaw * _ROW
    across = lerp3(grasp.jaws, row + JAW_ACROSS, share)
    up = lerp3(grasp.jaws, row + JAW_UP, share)
    turned = local[0] * across + local[1] * wp.cross(up, across) + local[2] * up
    return lerp3(grasp.jaws, row + JAW_TIP, share) + turned


@wp.func
def within_mouth(grasp: Grasp, jaw: int, closed: float, local: wp.vec3, slack: float):
    """Whether a point is between jaws that are closed this far, or no farther outside than `slack` [m]."""
    row = jaw * _ROW
    long = grasp.jaws[row + 7]
    open = wp.tan(grasp.jaws[row + 10] * (1.0 - closed))
    gap = grasp.jaws[row + 9] + wp.max(long - local[2], 0.0) * open
    beside = wp.abs(local[0]) <= gap + slack and wp.abs(local[1]) <= grasp.jaws[row + 8] + slack
    return beside and local[2] >= -slack and local[2] <= long + slack


@wp.func
def takes(grasp: Grasp, jaw: int):
    """Whether a pair takes what is between its jaws as this tick begins."""
    row = jaw * _ROW
    return grasp.jaws[row] > 0.0 and grasp.jaws[row + 1] > 0.0 and grasp.listed[jaw] == 0


@wp.func
def in_reach(
    lattice: Lattice, grasp: Grasp, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), jaw: int, m: int,
):  # fmt: skip
    """Whether a free mass is between the jaws now, and where."""
    i = grasp.place[m]
    x = grasp.rest[m] + load3(position, lattice.slots, i) - tau * load3(velocity, lattice.slots, i)
    local = into_mouth(grasp, jaw, 0.0, x)
    inside = grasp.owner[i] == 0 and within_mouth(grasp, jaw, grasp.jaws[jaw * _ROW + 5], local, 0.5 * lattice.spacing)
    return inside, local


@wp.func
def thinning(seen: int):
    """Every how-many-th mass is held, so that the list is long enough."""
    return 1 + seen // (_HELD // 2)


@wp.func
def drop_slipped(grasp: Grasp, jaw: int):
    """The list without those that slipped out; none where the jaws are open."""
    row = jaw * _HELD
    count = int(0)
    holds = grasp.jaws[jaw * _ROW] > 0.0
    for n in range(grasp.listed[jaw]):
        m = grasp.mass[row + n]
        if m >= 0 and holds:
            grasp.mass[row + count] = m
            grasp.anchor[row + count] = grasp.anchor[row + n]
            count += 1
        elif m >= 0:
            grasp.owner[grasp.place[m]] = 0
    grasp.listed[jaw] = count


@wp.func
def add_taken(grasp: Grasp, jaw: int, n: int, m: int, local: wp.vec3):
    grasp.mass[jaw * _HELD + n] = m
    grasp.anchor[jaw * _HELD + n] = local
    grasp.owner[grasp.place[m]] = jaw + 1


@wp.func
def sort_taken(grasp: Grasp, jaw: int):
    """By number."""
    row = jaw * _HELD
    for n in range(1, grasp.listed[jaw]):
        m = grasp.mass[row + n]
        local = grasp.anchor[row + n]
        k = n
        while k > 0 and grasp.mass[row + k - 1] > m:
            grasp.mass[row + k] = grasp.mass[row + k - 1]
            grasp.anchor[row + k] = grasp.anchor[row + k - 1]
            k -= 1
        grasp.mass[row + k] = m
        grasp.anchor[row + k] = local


@wp.func
def begin_report(grasp: Grasp, jaw: int):
    grasp.report[jaw * _REPORT] = wp.int64(grasp.listed[jaw])
    grasp.report[jaw * _REPORT + 1] = wp.int64(0)
    grasp.report[jaw * _REPORT + 2] = wp.int64(wp.rint(squeeze_of(grasp, jaw, 1.0) * FORCE_UNITS))


@wp.kernel
def take_serial(
    # params
    lattice: Lattice,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    grasp: Grasp,
):
    """As a tick begins: what slipped out is forgotten, and jaws that close take what is between them."""
    tau = live[LIVE_VISCOUS_TIME]
    for jaw in range(_JAWS):
        drop_slipped(grasp, jaw)
        if takes(grasp, jaw):
            seen = int(0)
            for m in range(grasp.masses):
                inside, _local = in_reach(lattice, grasp, tau, position, velocity, jaw, m)
                if inside:
                    seen += 1
            if seen > 0:
                every = thinning(seen)
                count = int(0)
                for m in range(grasp.masses):
                    inside, local = in_reach(lattice, grasp, tau, position, velocity, jaw, m)
                    if inside and m % every == 0 and count < _HELD:
                        add_taken(grasp, jaw, count, m, local)
                        count += 1
                grasp.listed[jaw] = count
                grasp.taken[jaw] = grasp.jaws[jaw * _ROW + 5]
        begin_report(grasp, jaw)


@wp.kernel
def forget_slipped(
    # out
    grasp: Grasp,
):
    """Each thread a pair of jaws."""
    jaw = wp.tid()
    drop_slipped(grasp, jaw)
    grasp.seen[jaw] = 0


@wp.kernel
def count_in_reach(
    # params
    lattice: Lattice,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    grasp: Grasp,
):
    """Each thread a mass."""
    for jaw in range(_JAWS):
        if takes(grasp, jaw):
            inside, _local = in_reach(lattice, grasp, live[LIVE_VISCOUS_TIME], position, velocity, jaw, wp.tid())
            if inside:
                wp.atomic_add(grasp.seen, jaw, 1)


@wp.kernel
def take_in_reach(
    # params
    lattice: Lattice,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    grasp: Grasp,
):
    """Each thread a mass; they come in any order, and are sorted afterwards."""
    m = wp.tid()
    for jaw in range(_JAWS):
        if takes(grasp, jaw) and grasp.seen[jaw] > 0:
            inside, local = in_reach(lattice, grasp, live[LIVE_VISCOUS_TIME], position, velocity, jaw, m)
            if inside and m % thinning(grasp.seen[jaw]) == 0:
                n = wp.atomic_add(grasp.seen, _JAWS + jaw, 1)
                if n < _HELD:
                    add_taken(grasp, jaw, n, m, local)


@wp.kernel
def end_taking(
    # out
    grasp: Grasp,
):
    """Each thread a pair of jaws."""
    jaw = wp.tid()
    if takes(grasp, jaw) and grasp.seen[_JAWS + jaw] > 0:
        grasp.listed[jaw] = wp.min(grasp.seen[_JAWS + jaw], _HELD)
        grasp.taken[jaw] = grasp.jaws[jaw * _ROW + 5]
        sort_taken(grasp, jaw)
    grasp.seen[_JAWS + jaw] = 0
    begin_report(grasp, jaw)


@wp.func
def hold_mass(
    lattice: Lattice, grasp: Grasp, substep: int, tau: float, live_keep: float, jaw: int, n: int,
    velocity: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32), force_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """A mass goes with the jaws as far as their force reaches, and slips where it does not."""
    entry = jaw * _HELD + n
    m = grasp.mass[entry]
    if m < 0:
        return
    row, slots, i = jaw * _ROW, lattice.slots, grasp.place[m]
    share = float(substep + 1) / float(lattice.substeps)
    squeeze = squeeze_of(grasp, jaw, share)
    v = load3(velocity, slots, i)
    p = load3(position, slots, i)
    local = into_mouth(grasp, jaw, share, grasp.rest[m] + p - tau * v)
    held = grasp.anchor[entry]
    # The force that takes the mass to where it is held within this substep; see the equations.
    step = lattice.dt * lattice.dt * live_keep * lattice.keep[i] * lattice.inverse_mass[i]
    wanted = (wp.vec3(held[0] * squeeze, held[1], held[2]) - local) / step
    each = 2.0 * grasp.jaws[row + 3] / float(grasp.listed[jaw])
    press = wp.clamp(wanted[0], -each, each)
    along = wp.vec2(wanted[1], wanted[2])
    size = wp.length(along)
    rub = grasp.jaws[row + 4] * each
    if size > rub:
        along = along * (rub / size)
    force = wp.vec3(press, along[0], along[1])
    moved = local + step * force
    slipped = wp.vec3(moved[0] / squeeze, moved[1], moved[2])
    if size > rub or wp.abs(wanted[0]) > each:
        grasp.anchor[entry] = slipped
    change = (out_of_mouth(grasp, jaw, share, moved) - out_of_mouth(grasp, jaw, share, local)) / lattice.dt
    store3(velocity, slots, i, v + change)
    store3(position, slots, i, p + (lattice.dt + tau) * change)
    if not within_mouth(grasp, jaw, grasp.taken[jaw], slipped, lattice.spacing):
        grasp.mass[entry] = -1
        grasp.owner[i] = 0
    felt = -(out_of_mouth(grasp, jaw, share, force) - lerp3(grasp.jaws, row + JAW_TIP, share))
    arm = out_of_mouth(grasp, jaw, share, moved) - lerp3(grasp.jaws, row + JAW_TIP, share)
    torque = wp.cross(arm, felt)
    tool = int(grasp.jaws[row + 2])
    for axis in range(3):
        f = _FORCE_PARTS * tool + axis
        add_integer(force_out, f, wp.int64(wp.rint(felt[axis] * FORCE_UNITS)))
        add_integer(force_out, f + 3, wp.int64(wp.rint(torque[axis] * TORQUE_UNITS)))
    add_integer(grasp.report, jaw * _REPORT + 1, wp.int64(wp.rint(0.5 * wp.abs(press) * FORCE_UNITS)))


@wp.kernel
def hold_masses(
    # params
    lattice: Lattice,
    substep: int,
    serial: int,
    # in
    live: wp.array(dtype=wp.float32),
    # out
    grasp: Grasp,
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
):
    """After a substep. Each thread a place in the lists, or all of them one."""
    tau = live[LIVE_VISCOUS_TIME]
    if serial == 0:
        jaw = wp.tid() // _HELD
        n = wp.tid() % _HELD
        if n < grasp.listed[jaw]:
            hold_mass(lattice, grasp, substep, tau, live[LIVE_KEEP], jaw, n, velocity_out, position_out, force_out)
        return
    for jaw in range(_JAWS):
        for n in range(grasp.listed[jaw]):
            hold_mass(lattice, grasp, substep, tau, live[LIVE_KEEP], jaw, n, velocity_out, position_out, force_out)
