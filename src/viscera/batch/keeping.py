"""What keeps tools from going where their hands ask them to: tissue that can bear no more (world/holding.py), and what
holds fast (world/floor.py). The same laws as in one world, in float64, for one tool of one world."""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.batch.kit import Ends, Hands, Kit
from viscera.batch.turns import ONE, TINY, ZERO, placed
from viscera.instruments.tool import FASTEST_TOOL, FASTEST_TURN
from viscera.timing import TICK
from viscera.world import floor, holding

wp.set_module_options({"enable_backward": False})

STEP = wp.constant(wp.float64(FASTEST_TOOL * TICK))
TURN = wp.constant(wp.float64(FASTEST_TURN * TICK))
"""What a tool goes, and turns, in a tick at most [m], [rad]."""
BACK = wp.constant(wp.float64(holding.BACK))
FAR = wp.constant(wp.float64(1.0e30))
_PAST, _INTO = wp.constant(wp.float64(holding.PAST)), wp.constant(wp.float64(holding.INTO))
_WORKING = wp.constant(wp.float64(floor.WORKING))
_PLACES = wp.constant(len(floor.PLACES))


@wp.func
def clearance(kit: Kit, x: wp.vec3d):
    """Distance from what holds fast [m] and the direction away from it; far outside the grid."""
    local = (x - kit.held_origin) / kit.held_spacing
    found = wp.float64(FAR)
    slope = wp.vec3d()
    inside = int(1)
    for axis in range(3):
        if local[axis] < ZERO or local[axis] > wp.float64(kit.held.shape[axis] - 1):
            inside = 0
    if inside != 0:
        i = wp.min(int(local[0]), kit.held.shape[0] - 2)
        j = wp.min(int(local[1]), kit.held.shape[1] - 2)
        k = wp.min(int(local[2]), kit.held.shape[2] - 2)
        fx = wp.clamp(local[0] - wp.float64(i), ZERO, ONE)
        fy = wp.clamp(local[1] - wp.float64(j), ZERO, ONE)
        fz = wp.clamp(local[2] - wp.float64(k), ZERO, ONE)
        # Values at the corners, and what is left of them axis by axis.
        z00 = kit.held[i, j, k + 1] - kit.held[i, j, k]
        z01 = kit.held[i, j + 1, k + 1] - kit.held[i, j + 1, k]
        z10 = kit.held[i + 1, j, k + 1] - kit.held[i + 1, j, k]
        z11 = kit.held[i + 1, j + 1, k + 1] - kit.held[i + 1, j + 1, k]
        at00 = kit.held[i, j, k] + fz * z00
        at01 = kit.held[i, j + 1, k] + fz * z01
        at10 = kit.held[i + 1, j, k] + fz * z10
        at11 = kit.held[i + 1, j + 1, k] + fz * z11
        at0 = at00 + fy * (at01 - at00)
        at1 = at10 + fy * (at11 - at10)
        found = at0 + fx * (at1 - at0)
        slope_y = (at01 - at00) + fx * ((at11 - at10) - (at01 - at00))
        by_0 = z00 + fy * (z01 - z00)
        by_1 = z10 + fy * (z11 - z10)
        slope = wp.vec3d(at1 - at0, slope_y, by_0 + fx * (by_1 - by_0))
        slope = slope / wp.max(wp.length(slope), wp.float64(1.0e-12))
    return found, slope


@wp.func
def keep_out(kit: Kit, tool: int, ends: Ends, way: wp.vec3d):
    """The way that a tool may go which wants to go `way` [m], but for the table: `Floor.keep_out`."""
    lowest = wp.float64(FAR)
    thickest = wp.float64(0.0)
    for bar in range(kit.bars[tool]):
        lowest = wp.min(lowest, wp.min(ends[2 * bar, 2], ends[2 * bar + 1, 2]))
        thickest = wp.max(thickest, kit.radius[tool, bar])
    if kit.held.shape[0] < 2 or lowest + way[2] - thickest > kit.held_top:
        return way
    for _ in range(2):
        worst = wp.float64(0.0)
        aside = wp.vec3d()
        for bar in range(kit.bars[tool]):
            start = wp.vec3d(ends[2 * bar, 0], ends[2 * bar, 1], ends[2 * bar, 2])
            axis = wp.vec3d(ends[2 * bar + 1, 0], ends[2 * bar + 1, 1], ends[2 * bar + 1, 2]) - start
            part = axis * wp.min(ONE, _WORKING / wp.max(wp.length(axis), TINY))
            for place in range(_PLACES):
                share = wp.float64(place) / wp.float64(_PLACES - 1)
                clear, slope = clearance(kit, start + share * part + way)
                short = kit.radius[tool, bar] - clear
                if short > worst:
                    worst = short
                    aside = slope
        way = way + worst * aside
    return way


@wp.func
def eased(freedom: wp.float64):
    """Of the fastest speed, what is left for this q."""
    return freedom * wp.min(ONE, wp.max(freedom, BACK))


@wp.func
def bound3(hands: Hands, world: int, tool: int, at: int):
    return wp.vec3d(hands.bound[world, tool, at], hands.bound[world, tool, at + 1], hands.bound[world, tool, at + 2])


@wp.func
def drawn_out(kit: Kit, hands: Hands, world: int, tool: int, way: wp.vec3d):
    """What of a way draws a tool out along its own bars, where something holds it [m]: `Holding._drawn_out`."""
    shaft = placed(wp.vec3d(), hands.turn[world, tool], wp.vec3d(ZERO, ZERO, ONE))
    outwards = wp.dot(way, shaft)
    if hands.bound[world, tool, 3] <= ZERO or outwards <= ZERO:
        return wp.vec3d()
    ends = hands.ends[world, tool]
    least = wp.float64(1.0)
    for bar in range(kit.bars[tool]):
        axis = wp.vec3d(
            ends[2 * bar + 1, 0] - ends[2 * bar, 0],
            ends[2 * bar + 1, 1] - ends[2 * bar, 1],
            ends[2 * bar + 1, 2] - ends[2 * bar, 2],
        )
        least = wp.min(least, wp.abs(wp.dot(axis, shaft)) / wp.max(wp.length(axis), TINY))
    aside = wp.sqrt(wp.max(ONE - least * least, ZERO))
    by_force = hands.bound[world, tool, 4]
    return outwards * (ONE - aside) * by_force * by_force * shaft


@wp.func
def allowed(kit: Kit, hands: Hands, world: int, tool: int, way: wp.vec3d):
    """What of this way of a tick a tool may go [m]: `Holding.allow`."""
    radii = kit.thinnest[tool] * wp.float64(kit.substeps)
    length = wp.length(way)
    if hands.bound[world, tool, 4] > ZERO and length > _PAST * radii:
        way = way * (_PAST * radii / length)
    out = drawn_out(kit, hands, world, tool, way)
    way = way - out
    normal = bound3(hands, world, tool, 0)
    into = -wp.dot(way, normal)
    most = wp.min(eased(ONE - hands.bound[world, tool, 3]) * STEP, _INTO * radii)
    if into > most and wp.length_sq(normal) > ZERO:
        way = way + (into - most) * normal
    slides = ONE - hands.bound[world, tool, 8]
    if slides < ONE:
        along = wp.dot(way, normal) * normal
        way = along + slides * (way - along)
    return way + out


@wp.func
def allowed_turn(hands: Hands, world: int, tool: int, way: wp.vec3d):
    """What of this turn of a tick a tool may make, axis times angle [rad]: `Holding.allow_turn`."""
    normal = bound3(hands, world, tool, 5)
    freedom = ONE - hands.bound[world, tool, 3]
    if wp.length_sq(normal) > ZERO:
        leaves = wp.dot(way, normal)
        free = wp.max(freedom, ZERO)
        way = free * free * (way - leaves * normal) + wp.max(leaves, -eased(freedom) * TURN) * normal
    return way
