"""Contact of tools with points that hang on the lattice: the kernels of touching.py, where the equations are.

On cuda each of them is a launch of its own. On cpu one core does all of a substep in one go (`touch_serial`): few
points are touched at a time, and every launch costs a barrier. Sums are integers, exact in any order.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.geometry.distance import FieldGrid, sample_field
from viscera.geometry.parts import pose_position, pose_rotation
from viscera.tissue.kernels import (
    FORCE_PARTS,
    FORCE_UNITS,
    LIVE_KEEP,
    LIVE_VISCOUS_TIME,
    SKIP_REST,
    TORQUE_UNITS,
    Lattice,
    load3,
    store3,
)
from viscera.tissue.layout import TILE
from viscera.tissue.samples import SHARE_UNITS, Samples, hanging, hanging_at, middle_of, way_under, yielding_of

wp.set_module_options({"enable_backward": False})

TOOLS = 8
"""Instruments that may touch a lattice at once."""
PARTS = 4
"""Rigid parts that an instrument may have."""
ROWS = TOOLS * PARTS

PART_FLOATS = 16
"""Of each part of each tool, a round bar: on, radius [m], friction, one of padding; then both ends of its axis as the
tick starts and as it ends, six floats each [m], organ frame."""
PART_START, PART_END = wp.constant(4), wp.constant(10)
TIPS = ROWS * PART_FLOATS
"""Behind the parts: the tip of each tool, about which torque is, as the tick starts and ends, six floats each [m]."""
TOOL_FLOATS = TIPS + 6 * TOOLS

POSE_FLOATS = 32
"""Of each part that is a distance field: on, friction, position and quaternion as the tick starts and as it ends, the
tool's tip at both times, the middle of its grid at both times, and the radius of a ball around that. The rest is
padding."""
POSE_MIDDLE, POSE_RADIUS = wp.constant(22), wp.constant(28)

PUSH_UNITS = wp.constant(float(2**54))
"""Integer steps per kg·m/s."""
SHIFT_UNITS = wp.constant(float(2**58))
"""Integer steps per kg·m."""
DEPTH_UNITS = wp.constant(1.0e9)
"""Integer steps per metre of depth, and per unit of stretch."""

GROUP = 16
"""Bundles that follow each other and are near together: on cpu what is far from all of them is far from each."""
_GROUP = wp.constant(GROUP)

LOOSE = wp.constant(1.6)
"""How much farther than at rest a bundle's points may lie from its middle: tissue stretches."""
BENT = wp.constant(0.8)
"""How far a point may be from where its bundle's middle and turn would have it, over its distance from the middle."""
STEEPEST = wp.constant(2.0)
"""How much farther than straight out a point may go in a substep: else one that a bar meets with its side jumps."""
NEARLY = wp.constant(1.001)
"""Of a bar's radius squared: farther from its axis no rounding makes a point lie inside."""
STEPS = wp.constant(6)
"""In which a point finds its way out of a thin bar; more would find the last percent."""
SLACK = wp.constant(1.0e-3)
"""How far tissue may move by itself in a tick [m]."""

LISTED = wp.constant(-2)
"""In `Contacts.row`, of a point that is on this tick's list."""

_TILE = wp.constant(TILE)
_ROWS = wp.constant(ROWS)
_PARTS = wp.constant(PARTS)
_TIPS = wp.constant(TIPS)

MOST_STRETCH = wp.constant(1.9)
"""That a gauge tells: more does not fit into its integer."""


@wp.struct
class Contacts:
    """What is near, what is touched, and what it does to the masses; all of it scratch of one tick."""

    near: wp.array(dtype=wp.int32)
    """Bundles that a tool may reach in this tick, in any order."""
    counts: wp.array(dtype=wp.int32)
    """How many they are; how many points are inside a part in this substep; how many are listed."""
    listed: wp.array(dtype=wp.int32)
    """On cpu: points of the bundles that are near which a part may reach in this tick."""
    owner: wp.array(dtype=wp.int32)
    """The bundle of each of them."""
    bars: wp.array(dtype=wp.int32)
    """Of each bundle, bit by bit: round parts that may reach it."""
    fields: wp.array(dtype=wp.int32)
    """The same for parts that are distance fields."""
    turn: wp.array(dtype=wp.quat)
    """How far each bundle that is near has turned since rest."""
    met: wp.array(dtype=wp.int32)
    """The points that are inside a part, in any order."""
    row: wp.array(dtype=wp.int32)
    """Of each point of the bundles that are near: the part that it is inside of, or below 0."""
    depth: wp.array(dtype=wp.float32)
    """How deep [m]."""
    part: wp.array(dtype=wp.float32)
    """How much of what it asks for it gets: 1 from `soft` on."""
    change: wp.array(dtype=wp.vec3)
    """By how much its velocity must change [m/s]."""
    move: wp.array(dtype=wp.vec3)
    """How far it must move [m]."""
    arm: wp.array(dtype=wp.vec3)
    """From the tool's tip to where it is touched [m]."""
    share: wp.array(dtype=wp.int64)
    """c of each mass."""
    push: wp.array(dtype=wp.int64)
    """Momentum for each mass, three components."""
    shift: wp.array(dtype=wp.int64)
    """Mass times displacement for each mass, three components."""
    touched: wp.array(dtype=wp.int32)
    """Substep in which a mass of these 16 places was last touched, counted from 1."""
    gauge: wp.array(dtype=wp.int32)
    """Of each tool: its greatest depth in this tick, and the least stretch beneath what it is near to."""


@wp.func
def point3(values: wp.array(dtype=wp.float32), at: int):
    return wp.vec3(values[at], values[at + 1], values[at + 2])


@wp.func
def way_to_segment(x: wp.vec3, a: wp.vec3, b: wp.vec3):
    """From x to the nearest point between a and b."""
    axis = b - a
    along = wp.clamp(wp.dot(x - a, axis) / wp.max(wp.dot(axis, axis), 1.0e-20), 0.0, 1.0)
    return wp.length(a + along * axis - x)


@wp.func
def rows_on(values: wp.array(dtype=wp.float32), floats: int):
    """Bit by bit, which parts are there."""
    found = int(0)
    for row in range(_ROWS):
        if values[row * floats] > 0.0:
            found = found | (1 << row)
    return found


@wp.func
def parts_near(
    tools: wp.array(dtype=wp.float32), poses: wp.array(dtype=wp.float32), bars_on: int, fields_on: int, x: wp.vec3,
    reach: float,
):  # fmt: skip
    """Bit by bit, round parts and distance fields that come within reach of x in this tick."""
    bars = int(0)
    fields = int(0)
    for row in range(_ROWS):
        if ((bars_on | fields_on) >> row) == 0:
            break
        if ((bars_on >> row) & 1) != 0:
            at = row * PART_FLOATS + PART_START
            to = row * PART_FLOATS + PART_END
            a = point3(tools, at)
            b = point3(tools, at + 3)
            way = wp.max(wp.length(point3(tools, to) - a), wp.length(point3(tools, to + 3) - b))
            if way_to_segment(x, a, b) < reach + way + tools[row * PART_FLOATS + 1]:
                bars = bars | (1 << row)
        if ((fields_on >> row) & 1) != 0:
            ball = row * POSE_FLOATS + POSE_MIDDLE
            far = way_to_segment(x, point3(poses, ball), point3(poses, ball + 3))
            if far < reach + poses[row * POSE_FLOATS + POSE_RADIUS]:
                fields = fields | (1 << row)
    return bars, fields


@wp.func
def look_at_bundle(
    lattice: Lattice, samples: Samples, tools: wp.array(dtype=wp.float32), poses: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32), contacts: Contacts, bars_on: int, fields_on: int, bundle: int,
):  # fmt: skip
    """Lists a bundle that a part may reach in this tick, with these parts."""
    x = middle_of(samples, lattice.slots, position, bundle)
    bars, fields = parts_near(tools, poses, bars_on, fields_on, x, LOOSE * samples.radius[bundle] + SLACK)
    contacts.bars[bundle] = bars
    contacts.fields[bundle] = fields
    if (bars | fields) != 0:
        contacts.near[wp.atomic_add(contacts.counts, 0, 1)] = bundle
        if samples.gauged != 0:
            rest = samples.under[bundle]
            under = way_under(samples, lattice.slots, position, bundle, x)
            stretch = wp.dot(under, rest) / wp.dot(rest, rest)
            if samples.parted[bundle] != 0:
                # A flap that has turned over is not pressed flat.
                stretch = wp.length(under) / wp.length(rest)
            stretch = wp.min(stretch, MOST_STRETCH)
            contacts.turn[bundle] = wp.quat_between_vectors(rest, under)
            for tool in range(TOOLS):
                if (((bars | fields) >> (tool * _PARTS)) & ((1 << _PARTS) - 1)) != 0:
                    wp.atomic_min(contacts.gauge, 2 * tool + 1, int(stretch * DEPTH_UNITS))


@wp.func
def thinnest_of(tools: wp.array(dtype=wp.float32), bars: int):
    """The least radius of these parts [m]."""
    found = float(1.0e9)
    for row in range(_ROWS):
        if (bars >> row) == 0:
            break
        if ((bars >> row) & 1) != 0:
            found = wp.min(found, tools[row * PART_FLOATS + 1])
    return found


@wp.func
def list_points(
    samples: Samples, tools: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32), contacts: Contacts,
    slots: int, bundle: int, thread: int, threads: int,
):  # fmt: skip
    """Of a bundle that is near, the points that a round part may reach in this tick: most are too far away. Where they
    are follows from the bundle's middle and its turn, up to what they stretched; so parts are taken back to rest, and
    only the points near them there are looked at where they are. Of `threads` each looks at points of its own."""
    bars = contacts.bars[bundle]
    thinnest = thinnest_of(tools, bars)
    x = middle_of(samples, slots, position, bundle)
    turn = wp.quat_identity()
    if samples.gauged != 0:
        turn = contacts.turn[bundle]
    home = samples.rest[samples.middle[bundle]]
    for s in range(samples.begin[bundle] + thread, samples.begin[bundle + 1], threads):
        if samples.thickest[s] <= thinnest:
            break
        contacts.row[s] = -1
    for row in range(_ROWS):
        if (bars >> row) == 0:
            break
        if ((bars >> row) & 1) != 0:
            start = row * PART_FLOATS + PART_START
            end = row * PART_FLOATS + PART_END
            a = point3(tools, start)
            b = point3(tools, start + 3)
            way = wp.max(wp.length(point3(tools, end) - a), wp.length(point3(tools, end + 3) - b))
            reach = SLACK + way + tools[row * PART_FLOATS + 1]
            rest_a = home + wp.quat_rotate_inv(turn, a - x)
            axis = wp.quat_rotate_inv(turn, b - a)
            inverse = 1.0 / wp.max(wp.dot(axis, axis), 1.0e-20)
            for s in range(samples.begin[bundle] + thread, samples.begin[bundle + 1], threads):
                if samples.thickest[s] <= thinnest:
                    break
                rest = samples.rest[s]
                offset = rest - rest_a
                off = offset - wp.clamp(wp.dot(offset, axis) * inverse, 0.0, 1.0) * axis
                loose = reach + BENT * wp.length(rest - home)
                if wp.length_sq(off) < loose * loose and contacts.row[s] != LISTED:
                    there = hanging_at(samples, slots, position, s)
                    if way_to_segment(there, a, b) < reach + way:
                        contacts.row[s] = LISTED
                        n = wp.atomic_add(contacts.counts, 2, 1)
                        contacts.listed[n] = s
                        contacts.owner[n] = bundle


@wp.func
def list_near(
    lattice: Lattice, samples: Samples, bundles: int, tools: wp.array(dtype=wp.float32),
    poses: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32), contacts: Contacts, thread: int,
    threads: int,
):  # fmt: skip
    """One of `threads` lists the bundles that tools may reach in this tick."""
    bars_on = rows_on(tools, PART_FLOATS)
    fields_on = rows_on(poses, POSE_FLOATS)
    if (bars_on | fields_on) != 0:
        for bundle in range(thread, bundles, threads):
            look_at_bundle(lattice, samples, tools, poses, position, contacts, bars_on, fields_on, bundle)


@wp.func
def list_near_alone(
    lattice: Lattice, samples: Samples, bundles: int, tools: wp.array(dtype=wp.float32),
    poses: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32), contacts: Contacts,
):  # fmt: skip
    """The same by one thread, which lists their points too. It asks once which tools are there, and looks at groups of
    bundles first."""
    bars_on = rows_on(tools, PART_FLOATS)
    fields_on = rows_on(poses, POSE_FLOATS)
    if (bars_on | fields_on) == 0:
        return
    for group in range((bundles + _GROUP - 1) // _GROUP):
        first = _GROUP * group
        last = wp.min(first + _GROUP, bundles)
        x = middle_of(samples, lattice.slots, position, (first + last) // 2)
        reach = LOOSE * samples.group_radius[group] + SLACK
        bars, fields = parts_near(tools, poses, bars_on, fields_on, x, reach)
        if (bars | fields) != 0:
            for bundle in range(first, last):
                look_at_bundle(lattice, samples, tools, poses, position, contacts, bars_on, fields_on, bundle)
    for n in range(contacts.counts[0]):
        list_points(samples, tools, position, contacts, lattice.slots, contacts.near[n], 0, 1)


@wp.kernel
def find_near(
    # params
    lattice: Lattice,
    samples: Samples,
    bundles: int,
    threads: int,
    # in
    tools: wp.array(dtype=wp.float32),
    poses: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    contacts: Contacts,
):
    """Lists what tools may reach in this tick. On cpu one thread does all."""
    if threads > 1:
        list_near(lattice, samples, bundles, tools, poses, position, contacts, wp.tid(), threads)
    else:
        list_near_alone(lattice, samples, bundles, tools, poses, position, contacts)


@wp.func
def respond_to(
    contacts: Contacts, s: int, row: int, depth: float, normal: wp.vec3, x: wp.vec3, v: wp.vec3,
    tool_velocity: wp.vec3, friction: float, dt: float, tip: wp.vec3, soft: float,
):  # fmt: skip
    """A point inside a part goes to the nearest point of its surface. Its velocity loses what points into the tool, and
    of the sliding at most friction times that (Coulomb). What sliding it loses it has not moved by either, else it
    would creep under static friction. Less than `soft` deep it asks for its share of this alone."""
    relative = v - tool_velocity
    approach = wp.min(wp.dot(relative, normal), 0.0)
    sliding = relative - wp.dot(relative, normal) * normal
    grip = wp.min(-friction * approach / wp.max(wp.length(sliding), 1.0e-12), 1.0)
    if contacts.row[s] < 0:
        contacts.met[wp.atomic_add(contacts.counts, 1, 1)] = s
    contacts.row[s] = row
    contacts.depth[s] = depth
    part = wp.min(depth / soft, 1.0)
    contacts.part[s] = part
    contacts.change[s] = part * (-approach * normal - grip * sliding)
    contacts.move[s] = part * (depth * normal - dt * grip * sliding)
    contacts.arm[s] = x + depth * normal - tip


@wp.func
def from_axis(tools: wp.array(dtype=wp.float32), base: int, share: float, x: wp.vec3):
    """The way from a part's axis to x when `share` of the tick has passed, and where along the axis it begins."""
    a0 = point3(tools, base + PART_START)
    b0 = point3(tools, base + PART_START + 3)
    a = a0 + share * (point3(tools, base + PART_END) - a0)
    axis = b0 + share * (point3(tools, base + PART_END + 3) - b0) - a
    along = wp.clamp(wp.dot(x - a, axis) / wp.max(wp.dot(axis, axis), 1.0e-20), 0.0, 1.0)
    return x - a - along * axis, along


@wp.func
def out_of_thin_bar(
    tools: wp.array(dtype=wp.float32), base: int, share: float, radius: float, before: wp.vec3, away: wp.vec3,
    x: wp.vec3, inward: wp.vec3,
):  # fmt: skip
    """How far a point must go along `inward`, into its body, to leave a bar; 0 outside.

    The way is found step by step, each as long as the point is deep, which is never too far. Tissue can spring farther
    in a substep than a thin bar is thick: a point that came from below and is above now, past the bar, goes back.
    `before` and `away` are the ways to it from the axis as the substep starts and ends."""
    depth = float(0.0)
    height = -wp.dot(away, inward)
    inside = wp.length_sq(away) < radius * radius
    if not inside and height > 0.0 and wp.dot(before, inward) > 0.0:
        path = away - before
        t = wp.clamp(-wp.dot(before, path) / wp.max(wp.dot(path, path), 1.0e-20), 0.0, 1.0)
        if wp.length_sq(before + t * path) < radius * radius:
            inside = True
            depth = height
    if inside:
        most = wp.where(depth > 0.0, 2.0 * radius, STEEPEST * (radius - wp.length(away)))
        for _ in range(STEPS):
            way, _along = from_axis(tools, base, share, x + depth * inward)
            depth += wp.max(radius - wp.length(way), 0.0)
        depth = wp.min(depth, most)
    return depth


@wp.func
def meet_bars(
    lattice: Lattice, samples: Samples, substep: int, tau: float, tools: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), contacts: Contacts,
    bundle: int, bars: int, s: int,
):  # fmt: skip
    """The round part that a point is deepest in, of those in `bars`."""
    contacts.row[s] = -1
    contacts.depth[s] = 0.0
    x, v = hanging(samples, lattice.slots, tau, position, velocity, s)
    start = float(substep) / float(lattice.substeps)
    end = float(substep + 1) / float(lattice.substeps)
    thickest = samples.thickest[s]
    found = int(-1)
    along = float(0.0)
    deepest = float(0.0)
    normal = wp.vec3()
    for row in range(_ROWS):
        if (bars >> row) == 0:
            break
        base = row * PART_FLOATS
        radius = tools[base + 1]
        if ((bars >> row) & 1) != 0 and radius < thickest:
            away, here = from_axis(tools, base, end, x)
            thin = samples.gauged != 0 and radius < lattice.spacing
            if thin or wp.length_sq(away) < NEARLY * radius * radius:
                distance = wp.length(away)
                depth = radius - distance
                out = wp.vec3(0.0, 0.0, 1.0)
                if distance > 1.0e-9:
                    out = away / distance
                if thin:
                    # The surface cannot wrap around a bar thinner than its cells: it gives way along its own normal.
                    out = -wp.quat_rotate(contacts.turn[bundle], samples.normal[s])
                    before, _there = from_axis(tools, base, start, x - lattice.dt * v)
                    depth = out_of_thin_bar(tools, base, end, radius, before, away, x, out)
                if depth > deepest:
                    deepest = depth
                    normal = out
                    found = row
                    along = here
    if found >= 0:
        base = found * PART_FLOATS
        tick = lattice.dt * float(lattice.substeps)
        da = point3(tools, base + PART_END) - point3(tools, base + PART_START)
        db = point3(tools, base + PART_END + 3) - point3(tools, base + PART_START + 3)
        tips = _TIPS + 6 * (found // _PARTS)
        tip = point3(tools, tips) + end * (point3(tools, tips + 3) - point3(tools, tips))
        respond_to(
            contacts, s, found, deepest, normal, x, v,
            ((1.0 - along) * da + along * db) / tick, tools[base + 2], lattice.dt, tip, samples.soft,
        )  # fmt: skip


@wp.func
def meet_field(
    lattice: Lattice, samples: Samples, field: FieldGrid, row: int, substep: int, tau: float,
    poses: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32),
    contacts: Contacts, s: int,
):  # fmt: skip
    """A part that is a distance field: its depth there, its gradient the normal."""
    base = row * POSE_FLOATS
    share = float(substep + 1) / float(lattice.substeps)
    start = base + 2
    end = base + 9
    from_place = pose_position(poses, start)
    to_place = pose_position(poses, end)
    from_turn = pose_rotation(poses, start)
    to_turn = pose_rotation(poses, end)
    place = from_place + share * (to_place - from_place)
    turn = wp.normalize(from_turn * (1.0 - share) + to_turn * share)
    x, v = hanging(samples, lattice.slots, tau, position, velocity, s)
    local = wp.quat_rotate_inv(turn, x - place)
    sampled = sample_field(field, local)
    if -sampled[3] > contacts.depth[s]:
        normal = wp.normalize(wp.quat_rotate(turn, wp.vec3(sampled[0], sampled[1], sampled[2])))
        tick = lattice.dt * float(lattice.substeps)
        # How fast the instrument's material at this point moves.
        speed = (wp.quat_rotate(to_turn, local) + to_place - wp.quat_rotate(from_turn, local) - from_place) / tick
        from_tip = pose_position(poses, base + 16)
        tip = from_tip + share * (pose_position(poses, base + 19) - from_tip)
        respond_to(contacts, s, row, -sampled[3], normal, x, v, speed, poses[base + 1], lattice.dt, tip, samples.soft)


@wp.func
def count_share(samples: Samples, contacts: Contacts, s: int, c: int):
    """One of a point's masses learns how much of it is touched: c_i = Σ a|w|."""
    weight = contacts.part[s] * wp.abs(samples.weights[s * samples.corners + c])
    if weight != 0.0:
        i = samples.places[s * samples.corners + c]
        wp.atomic_add(contacts.share, i, wp.int64(wp.rint(weight * SHARE_UNITS)))


@wp.func
def count_shares(samples: Samples, contacts: Contacts, s: int):
    """Each mass of a point learns it."""
    for c in range(samples.corners):
        count_share(samples, contacts, s, c)


@wp.func
def push_mass(
    lattice: Lattice, samples: Samples, substep: int, contacts: Contacts, s: int, c: int, push: wp.vec3, shift: wp.vec3
):
    """What a touched point asks of one of its masses."""
    slots = lattice.slots
    weight = samples.weights[s * samples.corners + c]
    if weight != 0.0:
        i = samples.places[s * samples.corners + c]
        # Whoever writes it writes the same.
        contacts.touched[i // _TILE] = lattice.clock[0] * lattice.substeps + substep + 1
        if lattice.inverse_mass[i] > 0.0:
            for k in range(3):
                wp.atomic_add(contacts.push, k * slots + i, wp.int64(wp.rint(weight * push[k] * PUSH_UNITS)))
                wp.atomic_add(contacts.shift, k * slots + i, wp.int64(wp.rint(weight * shift[k] * SHIFT_UNITS)))


@wp.func
def feel_point(
    lattice: Lattice, live_keep: float, contacts: Contacts, s: int, push: wp.vec3, found: wp.vec4,
    force_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """What a tool feels of a touched point, of which this was `found` (`yielding`)."""
    tool = contacts.row[s] // _PARTS
    # A force f changes v by keep·Δt·f/m, so momentum p took p/(keep·Δt).
    felt = -push / (lattice.dt * live_keep * found[3] / found[2])
    torque = wp.cross(contacts.arm[s], felt)
    for k in range(3):
        wp.atomic_add(force_out, FORCE_PARTS * tool + k, wp.int64(wp.rint(felt[k] * FORCE_UNITS)))
        wp.atomic_add(force_out, FORCE_PARTS * tool + 3 + k, wp.int64(wp.rint(torque[k] * TORQUE_UNITS)))


@wp.func
def push_masses(
    lattice: Lattice, samples: Samples, substep: int, live_keep: float, contacts: Contacts, s: int,
    force_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """What a touched point asks of its masses, and what its tool feels of it."""
    found = yielding_of(lattice, samples, contacts.share, contacts.part[s], s)
    wp.atomic_max(contacts.gauge, 2 * (contacts.row[s] // _PARTS), int(contacts.depth[s] * DEPTH_UNITS))
    push = wp.vec3()
    shift = wp.vec3()
    if found[1] > 0.0:
        push = contacts.change[s] / found[0]
        shift = contacts.move[s] / found[0]
        feel_point(lattice, live_keep, contacts, s, push, found, force_out)
    for c in range(samples.corners):
        push_mass(lattice, samples, substep, contacts, s, c, push, shift)


@wp.func
def push_corner(
    lattice: Lattice, samples: Samples, substep: int, live_keep: float, contacts: Contacts, s: int, corner: int,
    force_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """The same by one of as many threads as a point has masses, for one of them. The first does what is done once."""
    found = yielding_of(lattice, samples, contacts.share, contacts.part[s], s)
    push = wp.vec3()
    shift = wp.vec3()
    if found[1] > 0.0:
        push = contacts.change[s] / found[0]
        shift = contacts.move[s] / found[0]
    if corner == 0:
        wp.atomic_max(contacts.gauge, 2 * (contacts.row[s] // _PARTS), int(contacts.depth[s] * DEPTH_UNITS))
        if found[1] > 0.0:
            feel_point(lattice, live_keep, contacts, s, push, found, force_out)
    push_mass(lattice, samples, substep, contacts, s, corner, push, shift)


@wp.func
def move_mass(
    lattice: Lattice, tau: float, contacts: Contacts, i: int, velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    """A mass takes what its points asked for, and its sums are empty again. Of several threads one finds its share."""
    if wp.atomic_exch(contacts.share, i, wp.int64(0)) != wp.int64(0):
        slots = lattice.slots
        weight = lattice.inverse_mass[i]
        push = wp.vec3()
        shift = wp.vec3()
        for k in range(3):
            push[k] = weight * float(contacts.push[k * slots + i]) / PUSH_UNITS
            shift[k] = weight * float(contacts.shift[k * slots + i]) / SHIFT_UNITS
            contacts.push[k * slots + i] = wp.int64(0)
            contacts.shift[k * slots + i] = wp.int64(0)
        if weight > 0.0:
            # p = u + τ·v, where u moves by `shift` and v changes by `push`.
            store3(velocity_out, slots, i, load3(velocity_out, slots, i) + push)
            store3(position_out, slots, i, load3(position_out, slots, i) + shift + tau * push)


@wp.func
def wake_around(lattice: Lattice, substep: int, tile: int):
    """What was moved, and what is around it, is looked at in the next substep."""
    now = lattice.clock[0] * lattice.substeps + substep + 1
    tiles = lattice.slots // _TILE
    for r in range(9):
        for step in range(3):
            near = lattice.rows[9 * tile + r] // _TILE + step - 1
            lattice.awake[(now % 2) * tiles + near] = now


@wp.func
def move_corner(
    lattice: Lattice, samples: Samples, tau: float, contacts: Contacts, s: int, c: int,
    velocity_out: wp.array(dtype=wp.float32), position_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    """One of the masses of a point that is inside a part."""
    if samples.weights[s * samples.corners + c] != 0.0:
        move_mass(lattice, tau, contacts, samples.places[s * samples.corners + c], velocity_out, position_out)


@wp.func
def meet_bundle(
    lattice: Lattice, samples: Samples, substep: int, tau: float, tools: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), contacts: Contacts, bundle: int,
    thread: int, threads: int,
):  # fmt: skip
    """Points of a bundle, coarse ones first, as far as its parts are thin enough to need them."""
    bars = contacts.bars[bundle]
    thinnest = thinnest_of(tools, bars)
    whole = contacts.fields[bundle] != 0
    for s in range(samples.begin[bundle] + thread, samples.begin[bundle + 1], threads):
        if samples.thickest[s] <= thinnest and not whole:
            break
        meet_bars(lattice, samples, substep, tau, tools, position, velocity, contacts, bundle, bars, s)


@wp.func
def touch_points(
    lattice: Lattice, samples: Samples, tiles: int, substep: int, live: wp.array(dtype=wp.float32),
    tools: wp.array(dtype=wp.float32), contacts: Contacts, velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32), force_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """Of the points that are listed, what round parts do to them and feel of them."""
    contacts.counts[1] = 0
    tau = live[LIVE_VISCOUS_TIME]
    for n in range(contacts.counts[2]):
        bundle = contacts.owner[n]
        meet_bars(
            lattice, samples, substep, tau, tools, position_out, velocity_out, contacts,
            bundle, contacts.bars[bundle], contacts.listed[n],
        )  # fmt: skip
    count = contacts.counts[1]
    if count == 0:
        return
    for n in range(count):
        count_shares(samples, contacts, contacts.met[n])
    for n in range(count):
        push_masses(lattice, samples, substep, live[LIVE_KEEP], contacts, contacts.met[n], force_out)
    for n in range(count):
        for c in range(samples.corners):
            move_corner(lattice, samples, tau, contacts, contacts.met[n], c, velocity_out, position_out)
    if (lattice.features & SKIP_REST) != 0:
        now = lattice.clock[0] * lattice.substeps + substep + 1
        for tile in range(tiles):
            if contacts.touched[lattice.tile_slot[tile] // _TILE] == now:
                wake_around(lattice, substep, tile)


@wp.kernel
def touch_serial(
    # params
    lattice: Lattice,
    samples: Samples,
    tiles: int,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    tools: wp.array(dtype=wp.float32),
    # out
    contacts: Contacts,
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
):
    """A whole substep of contact with round parts, on one core."""
    touch_points(
        lattice, samples, tiles, substep, live, tools, contacts, velocity_out, position_out, force_out
    )  # fmt: skip


@wp.kernel
def touch_bars(
    # params
    lattice: Lattice,
    samples: Samples,
    threads: int,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    tools: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    contacts: Contacts,
):
    """Which round part each near point is in; `threads` of them look at a bundle together."""
    place = wp.tid() // threads
    if place < contacts.counts[0]:
        tau = live[LIVE_VISCOUS_TIME]
        meet_bundle(
            lattice, samples, substep, tau, tools, position, velocity, contacts, contacts.near[place],
            wp.tid() % threads, threads,
        )  # fmt: skip


@wp.kernel
def touch_field(
    # params
    lattice: Lattice,
    samples: Samples,
    field: FieldGrid,
    row: int,
    threads: int,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    poses: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    contacts: Contacts,
):
    """The same for one part that is a distance field."""
    place = wp.tid() // threads
    if place < contacts.counts[0]:
        bundle = contacts.near[place]
        if ((contacts.fields[bundle] >> row) & 1) != 0:
            tau = live[LIVE_VISCOUS_TIME]
            for s in range(samples.begin[bundle] + wp.tid() % threads, samples.begin[bundle + 1], threads):
                meet_field(lattice, samples, field, row, substep, tau, poses, position, velocity, contacts, s)


@wp.kernel
def touch_shares(
    # params
    samples: Samples,
    threads: int,
    # out
    contacts: Contacts,
):
    for n in range(wp.tid(), contacts.counts[1], threads):
        count_shares(samples, contacts, contacts.met[n])


@wp.kernel
def touch_push(
    # params
    lattice: Lattice,
    samples: Samples,
    threads: int,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    # out
    contacts: Contacts,
    force_out: wp.array(dtype=wp.int64),
):
    for n in range(wp.tid(), contacts.counts[1], threads):
        push_masses(lattice, samples, substep, live[LIVE_KEEP], contacts, contacts.met[n], force_out)


@wp.kernel
def touch_move(
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    # out
    contacts: Contacts,
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
):
    """Each thread a place; the first of all gets the list of met points ready for the next substep."""
    if wp.tid() == 0:
        contacts.counts[1] = 0
    tile = wp.tid() // _TILE
    now = lattice.clock[0] * lattice.substeps + substep + 1
    if contacts.touched[lattice.tile_slot[tile] // _TILE] == now:
        lane = wp.tid() % _TILE
        i = lattice.tile_slot[tile] + lane
        move_mass(lattice, live[LIVE_VISCOUS_TIME], contacts, i, velocity_out, position_out)
        if lane == 0 and (lattice.features & SKIP_REST) != 0:
            wake_around(lattice, substep, tile)
