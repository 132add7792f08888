"""What comes of a wanted way when several walls are met at once: projected Gauss–Seidel over planes.

Each wall is a plane n·y ≥ c for the displacement y (or n·v ≥ n·w for the velocity v, w the wall's). With λ_i ≥ 0 along
each normal and a drag τ_i across it, |τ_i| ≤ µ λ_i,

    y = wanted + Σ (λ_i n_i + τ_i),   n_i·y ≥ c_i + ε max(0, c_i − n_i·wanted),   no slip on i unless |τ_i| = µ λ_i,

found by taking the planes in turn until nothing changes. One plane needs one turn: Grahn's eq. 7.3 to 7.5, corrected as
contacts.py says. Two planes, as along a fold, would need many turns where the fold is shallow, so their λ are solved
together and only the drags are taken in turn.
"""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})

PLANES = wp.constant(4)
"""Walls that one step can meet at once: three make a corner, one to spare."""

SWEEPS = wp.constant(48)
"""Of Gauss–Seidel over the planes, at most. Two planes at angle θ converge by cos²θ per sweep: 1e-6 at 30°."""

SAME = wp.constant(0.9995)
"""Cosine above which two normals (2°) are one plane."""

OPPOSITE = wp.constant(-0.9995)
"""Cosine below which two normals point at each other: a cleft, where both cannot always be kept."""

FLAT = wp.constant(1.0e-6)
"""Part of the wanted way below which a sweep's change ends the iteration."""


@wp.struct
class Met:
    """Planes n·y ≥ limit that a displacement y must keep."""

    count: int
    normals: wp.mat44
    """Rows n; the last column is the limit [m]."""
    walls: wp.mat44
    """Rows: velocity of the wall [m/s]; the last column is its restitution now."""


@wp.func
def plane_normal(rows: wp.mat44, i: int) -> wp.vec3:
    return wp.vec3(rows[i, 0], rows[i, 1], rows[i, 2])


@wp.func
def add_plane(met: Met, normal: wp.vec3, carried: wp.vec3, limit: float, bounce: float) -> Met:
    """One plane more, of a wall with velocity `carried`; a normal that is there already keeps the stricter limit."""
    now = met
    place = met.count
    for i in range(met.count):
        if wp.dot(plane_normal(met.normals, i), normal) > SAME:
            place = i
    if place < PLANES:
        keep = limit
        if place < met.count:
            keep = wp.max(limit, met.normals[place, 3])
        for c in range(3):
            now.normals[place, c] = normal[c]
            now.walls[place, c] = carried[c]
        now.normals[place, 3] = keep
        now.walls[place, 3] = bounce
        now.count = wp.max(met.count, place + 1)
    return now


@wp.func
def shorter(way: wp.vec3, most: float) -> wp.vec3:
    length = wp.length(way)
    cut = way
    if length > most:
        cut = way * (most / length)
    return cut


@wp.func
def plane_goal(met: Met, i: int, wanted: wp.vec3, velocity: bool) -> float:
    """What n·y must be at least, with the bounce."""
    n = plane_normal(met.normals, i)
    limit = met.normals[i, 3]
    meets = wp.min(limit, 0.0)
    if velocity:
        limit = wp.dot(n, plane_normal(met.walls, i))
        meets = limit
    return limit + met.walls[i, 3] * wp.max(meets - wp.dot(n, wanted), 0.0)


@wp.func
def drag_of(
    met: Met, i: int, result: wp.vec3, old: wp.vec3, press: float, velocity: bool, time: float, friction: float
) -> wp.vec3:
    """The drag of plane i that stops slip, or as much as friction allows."""
    n = plane_normal(met.normals, i)
    slip = result - wp.where(velocity, 1.0, time) * plane_normal(met.walls, i)
    # Being pushed out of a wall (limit above 0) presses on nothing.
    most = friction * wp.max(press - wp.where(velocity, 0.0, wp.max(met.normals[i, 3], 0.0)), 0.0)
    drag = old - (slip - wp.dot(n, slip) * n)
    size = wp.length(drag)
    if size > most:
        drag = drag * (most / size)
    return drag


@wp.func
def press_pair(a: float, b: float, cosine: float) -> wp.vec2:
    """λ of two planes that lack a and b along their normals: as little as fills both, and none below 0."""
    across = 1.0 - cosine * cosine
    first = (a - cosine * b) / across
    second = (b - cosine * a) / across
    if first < 0.0 or second < 0.0:
        # One is enough: the other is kept by it, or was not needed.
        first = wp.max(a, 0.0)
        second = float(0.0)
        if b - cosine * first > 0.0:
            first = 0.0
            second = wp.max(b, 0.0)
    return wp.vec2(first, second)


@wp.func
def obey_pair(wanted: wp.vec3, met: Met, velocity: bool, time: float, friction: float) -> wp.vec3:
    """Two planes that are neither one nor opposite: λ in closed form, then drags, in turn."""
    n = plane_normal(met.normals, 0)
    m = plane_normal(met.normals, 1)
    cosine = wp.dot(n, m)
    goal_n = plane_goal(met, 0, wanted, velocity)
    goal_m = plane_goal(met, 1, wanted, velocity)
    drag_n = wp.vec3(0.0, 0.0, 0.0)
    drag_m = wp.vec3(0.0, 0.0, 0.0)
    result = wanted
    shortest = FLAT * wp.length(wanted)
    for _sweep in range(SWEEPS):
        before = result
        pulled = wanted + drag_n + drag_m
        press = press_pair(goal_n - wp.dot(n, pulled), goal_m - wp.dot(m, pulled), cosine)
        result = pulled + press[0] * n + press[1] * m
        if friction == 0.0:
            break
        drag = drag_of(met, 0, result, drag_n, press[0], velocity, time, friction)
        result += drag - drag_n
        drag_n = drag
        drag = drag_of(met, 1, result, drag_m, press[1], velocity, time, friction)
        result += drag - drag_m
        drag_m = drag
        if wp.length(result - before) <= shortest:
            break
    return result


@wp.func
def obey_all(wanted: wp.vec3, met: Met, velocity: bool, time: float, friction: float) -> wp.vec3:
    """Any number of planes, in turn."""
    result = wanted
    pressed = wp.vec4(0.0, 0.0, 0.0, 0.0)
    dragged = wp.mat44(0.0)
    shortest = FLAT * wp.length(wanted)
    for _sweep in range(SWEEPS):
        before = result
        for i in range(met.count):
            n = plane_normal(met.normals, i)
            press = wp.max(pressed[i] + plane_goal(met, i, wanted, velocity) - wp.dot(n, result), 0.0)
            result += (press - pressed[i]) * n
            pressed[i] = press
            if friction > 0.0:
                old = plane_normal(dragged, i)
                drag = drag_of(met, i, result, old, press, velocity, time, friction)
                result += drag - old
                for c in range(3):
                    dragged[i, c] = drag[c]
        if wp.length(result - before) <= shortest:
            break
    return result


@wp.func
def obey(wanted: wp.vec3, met: Met, velocity: bool, time: float, friction: float) -> wp.vec3:
    """The displacement [m] that comes of `wanted` in `time` [s]; or the `velocity` [m/s] that comes of `wanted`."""
    result = wanted
    if met.count == 1:
        n = plane_normal(met.normals, 0)
        press = wp.max(plane_goal(met, 0, wanted, velocity) - wp.dot(n, wanted), 0.0)
        result += press * n
        if friction > 0.0:
            result += drag_of(met, 0, result, wp.vec3(0.0, 0.0, 0.0), press, velocity, time, friction)
    if met.count > 1:
        if met.count == 2 and wp.dot(plane_normal(met.normals, 0), plane_normal(met.normals, 1)) > OPPOSITE:
            result = obey_pair(wanted, met, velocity, time, friction)
        else:
            result = obey_all(wanted, met, velocity, time, friction)
        if velocity:
            # Bouncing off two still walls at once must not add energy.
            moving = float(0.0)
            for i in range(met.count):
                moving += wp.length(plane_normal(met.walls, i))
            if moving == 0.0:
                result = shorter(result, wp.length(wanted))
    return result


@wp.func
def touched(met: Met, wanted: wp.vec3, way: wp.vec3, near_enough: float) -> Met:
    """Only the planes that held the particle back or that it has reached: the others were looked at in advance."""
    now = Met()
    for i in range(met.count):
        n = plane_normal(met.normals, i)
        limit = met.normals[i, 3]
        if wp.dot(n, wanted) < limit or wp.dot(n, way) <= limit + near_enough:
            for c in range(4):
                now.normals[now.count, c] = met.normals[i, c]
                now.walls[now.count, c] = met.walls[i, c]
            now.count += 1
    return now


@wp.func
def reached(met: Met) -> Met:
    """The same planes where the particle is now: none may be crossed any more."""
    now = met
    for i in range(met.count):
        now.normals[i, 3] = 0.0
    return now
