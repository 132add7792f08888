"""Hands and tools of many worlds: one thread moves the tools of one world for a tick, and feels for them after it.

The same laws as in one world, in float64: a tool follows its hand (instruments/tool.py), as far as tissue and what
holds fast let it (keeping.py). All arrays have a row for each world and tool.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.batch.keeping import BACK, FAR, STEP, TURN, allowed, allowed_turn, bound3, keep_out
from viscera.batch.kit import Ends, Hands, Kit
from viscera.batch.passive import felt_share
from viscera.batch.turns import ONE, TINY, ZERO, between, kept_in_trocar, placed, through_trocar, turned_by
from viscera.instruments.bars import MOST_BARS
from viscera.instruments.tool import AS_HELD, JAW_TIME
from viscera.timing import TICK
from viscera.tissue.kernels import FORCE_PARTS, FORCE_UNITS, TORQUE_UNITS
from viscera.tissue.touch_kernels import PART_END, PART_FLOATS, PART_START, PARTS, TIPS
from viscera.tissue.touching import NOTHING_NEAR
from viscera.world import holding

wp.set_module_options({"enable_backward": False})

_AS_HELD = wp.constant(wp.float64(AS_HELD))
_JAWS = wp.constant(wp.float64(TICK / JAW_TIME))
"""That jaws move in a tick at most."""
_MOST_FORCE, _SLOW_FORCE = wp.constant(wp.float64(holding.MOST_FORCE)), wp.constant(wp.float64(holding.SLOW_FORCE))
_LEAST_STRETCH = wp.constant(wp.float64(holding.LEAST_STRETCH))
_SLOW_STRETCH = wp.constant(wp.float64(holding.SLOW_STRETCH))
_LEAST_FREE = wp.constant(wp.float64(holding.LEAST_FREE))
_SLOW_DEPTH, _DEEPEST = wp.constant(wp.float64(holding.SLOW_DEPTH)), wp.constant(wp.float64(holding.DEEPEST))
_RECOVERY, _STEADY = wp.constant(wp.float64(holding.RECOVERY)), wp.constant(wp.float64(holding.STEADY))
_NOTHING_NEAR = wp.constant(wp.float64(NOTHING_NEAR))
_NANO = wp.constant(wp.float64(1.0e-9))
_BARS = wp.constant(MOST_BARS)
_PARTS = wp.constant(PARTS)
_TIPS = wp.constant(TIPS)


@wp.func
def bar_end(kit: Kit, tool: int, jaws: wp.float64, end: int):
    """In the tool's own frame [m]: `Bars._bend`."""
    x = kit.local[tool, end]
    swing = kit.swing[tool, end // 2]
    if swing != ZERO and end % 2 == 1:
        start = kit.local[tool, end - 1]
        way = x - start
        c = wp.cos(swing * (ONE - jaws))
        s = wp.sin(swing * (ONE - jaws))
        x = start + wp.vec3d(c * way[0] + s * way[2], way[1], c * way[2] - s * way[0])
    return x


@wp.func
def bars_at(kit: Kit, tool: int, tip: wp.vec3d, turn: wp.vec4d, jaws: wp.float64):
    """Both ends of each bar's axis [m]."""
    found = Ends()
    for end in range(2 * kit.bars[tool]):
        x = placed(tip, turn, bar_end(kit, tool, jaws, end))
        found[end, 0] = x[0]
        found[end, 1] = x[1]
        found[end, 2] = x[2]
    return found


@wp.func
def lowest_of(kit: Kit, tool: int, ends: Ends):
    """Height of the lowest point of a tool's bars [m]."""
    found = wp.float64(FAR)
    for bar in range(kit.bars[tool]):
        found = wp.min(found, wp.min(ends[2 * bar, 2], ends[2 * bar + 1, 2]) - kit.radius[tool, bar])
    return found


@wp.func
def in_room(kit: Kit, tool: int, tip: wp.vec3d):
    """The walls of the theatre, and the trocar."""
    x = wp.vec3d(
        wp.min(wp.max(tip[0], kit.low[0]), kit.high[0]),
        wp.min(wp.max(tip[1], kit.low[1]), kit.high[1]),
        wp.min(wp.max(tip[2], kit.low[2]), kit.high[2]),
    )
    if kit.through[tool] != 0:
        x = kept_in_trocar(x, kit.trocar[tool], kit.length[tool])
    return x


@wp.func
def as_held(kit: Kit, tool: int, held: wp.vec4d, tip: wp.vec3d):
    turn = held
    if kit.through[tool] != 0:
        turn = through_trocar(held, tip, kit.trocar[tool])
    return turn


@wp.func
def turn_tool(kit: Kit, hands: Hands, world: int, tool: int, share: wp.float64, asked: wp.vec4d, enters: int):
    """Turns a tool with its hand about its tip, but not in under the table; where its bars are then [m]."""
    tip = hands.tip[world, tool]
    held = hands.held[world, tool]
    ends = hands.ends[world, tool]
    way = wp.vec3d()
    turns = int(0)
    if wp.length_sq(held - asked) > ZERO:
        way = between(held, asked)
        angle = wp.length(way)
        if angle < _AS_HELD:
            hands.held[world, tool] = asked
            hands.turn[world, tool] = as_held(kit, tool, asked, tip)
            held = asked
        else:
            turns = 1
            way = way * (wp.min(angle * share, TURN) / angle)
    if turns == 0 and enters == 0:
        return ends
    before = held
    if enters != 0:
        before = wp.vec4d(ZERO, ZERO, ZERO, ONE)
        way = wp.vec3d()
    else:
        way = allowed_turn(hands, world, tool, way)
    held = turned_by(held, way)
    jaws = hands.jaws[world, tool]
    placed_now = bars_at(kit, tool, tip, as_held(kit, tool, held, tip), jaws)
    lowest = lowest_of(kit, tool, placed_now)
    if lowest < kit.table and (enters != 0 or lowest < lowest_of(kit, tool, ends)):
        held = before
        placed_now = bars_at(kit, tool, tip, as_held(kit, tool, held, tip), jaws)
    hands.held[world, tool] = held
    hands.turn[world, tool] = as_held(kit, tool, held, tip)
    return placed_now


@wp.func
def write_bars(
    kit: Kit, hands: Hands, world: int, tool: int, start: Ends, end: Ends, from_tip: wp.vec3d, to_tip: wp.vec3d,
    tools_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    """`Tissue.set_bars`: where the bars are as the tick starts and ends, organ frame."""
    for bar in range(_BARS):
        base = (tool * _PARTS + bar) * PART_FLOATS
        tools_out[base] = 0.0
        if bar < kit.bars[tool]:
            tools_out[base] = 1.0
            tools_out[base + 1] = float(kit.radius[tool, bar])
            tools_out[base + 2] = float(kit.friction[tool] * hands.friction[world])
            for number in range(6):
                row = 2 * bar + number // 3
                axis = number % 3
                tools_out[base + PART_START + number] = float(start[row, axis] - kit.origin[axis])
                tools_out[base + PART_END + number] = float(end[row, axis] - kit.origin[axis])
    for axis in range(3):
        tools_out[_TIPS + 6 * tool + axis] = float(from_tip[axis] - kit.origin[axis])
        tools_out[_TIPS + 6 * tool + 3 + axis] = float(to_tip[axis] - kit.origin[axis])


@wp.func
def hand_of(kit: Kit, hands: Hands, world: int, tool: int):
    """What the hand asks for: position [m], unit quaternion. What is not finite asks for nothing new."""
    x = wp.vec3d(hands.asked[world, tool, 0], hands.asked[world, tool, 1], hands.asked[world, tool, 2])
    q = wp.vec4d(
        hands.asked[world, tool, 3], hands.asked[world, tool, 4], hands.asked[world, tool, 5],
        hands.asked[world, tool, 6],
    )  # fmt: skip
    size = wp.length(q)
    if not (wp.isfinite(x) and wp.isfinite(q)) or size < TINY:
        x = hands.tip[world, tool]
        q = hands.turn[world, tool]
        size = ONE
    return x, q / size


@wp.func
def move_tool(kit: Kit, hands: Hands, world: int, tool: int, tools_out: wp.array(dtype=wp.float32)):
    """A tool follows its hand for one tick: `Contact.move`."""
    if hands.active[world, tool] == 0:
        hands.inside[world, tool] = 0
        for bar in range(_BARS):
            tools_out[(tool * _PARTS + bar) * PART_FLOATS] = 0.0
        for number in range(9):
            hands.bound[world, tool, number] = ZERO
        for number in range(6):
            hands.work[world, tool, number] = ZERO
        return
    wanted, asked = hand_of(kit, hands, world, tool)
    enters = int(1) - hands.inside[world, tool]
    if enters != 0:
        # One that comes in stands at its home, turned like its hand.
        hands.tip[world, tool] = in_room(kit, tool, kit.home[tool])
        hands.held[world, tool] = asked
        hands.turn[world, tool] = as_held(kit, tool, asked, hands.tip[world, tool])
        hands.jaws[world, tool] = hands.grip[world, tool]
        hands.ends[world, tool] = bars_at(
            kit, tool, hands.tip[world, tool], hands.turn[world, tool], hands.jaws[world, tool]
        )
    hands.inside[world, tool] = 1
    share = kit.follow[tool]
    if hands.direct[0] != 0:
        share = ONE
    start = hands.ends[world, tool]
    ends = turn_tool(kit, hands, world, tool, share, asked, enters)
    tip = hands.tip[world, tool]
    way = (wanted - tip) * share
    length = wp.length(way)
    if length > STEP:
        way = way * (STEP / length)
    way = keep_out(kit, tool, ends, allowed(kit, hands, world, tool, way))
    below = kit.table - lowest_of(kit, tool, ends) - way[2]
    if below > ZERO:
        way = way + wp.vec3d(ZERO, ZERO, below)
    after = in_room(kit, tool, tip + way)
    turn = as_held(kit, tool, hands.turn[world, tool], after)
    jaws = hands.jaws[world, tool]
    jaws = jaws + wp.min(_JAWS, wp.max(-_JAWS, hands.grip[world, tool] - jaws))
    hands.jaws[world, tool] = jaws
    end = bars_at(kit, tool, after, turn, jaws)
    hands.way[world, tool] = after - tip
    hands.tip[world, tool] = after
    hands.turn[world, tool] = turn
    hands.ends[world, tool] = end
    write_bars(kit, hands, world, tool, start, end, tip, after, tools_out)


@wp.func
def steady(hands: Hands, world: int, tool: int, at: int, felt: wp.vec3d):
    """Brings a direction up to what is felt."""
    size = wp.length(felt)
    if size > ZERO:
        direction = bound3(hands, world, tool, at)
        share = ONE
        if wp.length_sq(direction) > ZERO:
            share = _STEADY
        mean = (ONE - share) * direction + (share / size) * felt
        mean = mean / wp.max(wp.length(mean), TINY)
        for axis in range(3):
            hands.bound[world, tool, at + axis] = mean[axis]


@wp.func
def tell_hand(hands: Hands, world: int, tool: int, ticks: int, f: wp.vec3d, t: wp.vec3d):
    """Where the tool is, and what is felt of it: last, mean and largest."""
    tip = hands.tip[world, tool]
    turn = hands.turn[world, tool]
    for axis in range(3):
        hands.pose[world, tool, axis] = float(tip[axis])
        hands.last[world, tool, axis] = float(f[axis])
        hands.last[world, tool, 3 + axis] = float(t[axis])
        hands.mean[world, tool, axis] = hands.mean[world, tool, axis] + float(f[axis] / wp.float64(ticks))
        hands.mean[world, tool, 3 + axis] = hands.mean[world, tool, 3 + axis] + float(t[axis] / wp.float64(ticks))
    for number in range(4):
        hands.pose[world, tool, 3 + number] = float(turn[number])
    size = float(wp.length(f))
    if size > hands.peak[world, tool, 0]:
        hands.peak[world, tool, 0] = size
        for axis in range(3):
            hands.strongest[world, tool, axis] = float(f[axis])
            hands.strongest[world, tool, 3 + axis] = float(t[axis])
    hands.peak[world, tool, 1] = wp.max(hands.peak[world, tool, 1], float(wp.length(t)))


@wp.func
def feel_tool(
    kit: Kit, hands: Hands, world: int, tool: int, ticks: int, force: wp.array(dtype=wp.int64),
    gauge: wp.array(dtype=wp.int32),
):  # fmt: skip
    """What a hand feels of a tick, and what keeps its tool from it in the next: `Holding.feel`. `ticks` is how many an
    action has: the mean is over all of them."""
    base = FORCE_PARTS * tool
    per = wp.float64(kit.substeps)
    units = wp.float64(FORCE_UNITS) * per
    turns = wp.float64(TORQUE_UNITS) * per
    f = wp.vec3d(
        wp.float64(force[base]) / units, wp.float64(force[base + 1]) / units, wp.float64(force[base + 2]) / units
    )
    t = wp.vec3d(
        wp.float64(force[base + 3]) / turns, wp.float64(force[base + 4]) / turns, wp.float64(force[base + 5]) / turns
    )
    size = wp.length(f)
    share = wp.float64(1.0)
    if hands.active[world, tool] != 0:
        share = felt_share(hands, world, tool, f, t)
    tell_hand(hands, world, tool, ticks, share * f, share * t)
    if hands.active[world, tool] == 0:
        return
    depth = wp.float64(gauge[2 * tool]) * _NANO
    stretch = wp.float64(gauge[2 * tool + 1]) * _NANO
    passing = ONE - depth / wp.min(kit.thinnest[tool], _DEEPEST)
    freedom = wp.min(ONE, (_MOST_FORCE - size) / _SLOW_FORCE)
    by_force = wp.max(freedom, _LEAST_FREE)
    slides = wp.float64(1.0)
    if size > ZERO:  # tissue that it does not press may lie flat
        slides = wp.min(ONE, wp.max(ONE + passing, ZERO))
        freedom = wp.min(freedom, wp.min((stretch - _LEAST_STRETCH) / _SLOW_STRETCH, passing / _SLOW_DEPTH))
    if stretch < _NOTHING_NEAR:
        if size > ZERO:
            steady(hands, world, tool, 0, f)
            steady(hands, world, tool, 5, t)
        # Tissue that springs to and fro is no freer for it.
        held = wp.max(ONE - wp.max(freedom, -BACK), hands.bound[world, tool, 3] - _RECOVERY)
        hands.bound[world, tool, 3] = held
        hands.bound[world, tool, 4] = by_force
        hands.bound[world, tool, 8] = ONE - slides
    else:
        for number in range(9):
            hands.bound[world, tool, number] = ZERO


@wp.func
def begin_action(kit: Kit, hands: Hands, world: int):
    """Means and peaks begin anew."""
    for tool in range(kit.tools):
        for number in range(6):
            hands.mean[world, tool, number] = 0.0
            hands.strongest[world, tool, number] = 0.0
        for number in range(2):
            hands.peak[world, tool, number] = 0.0
