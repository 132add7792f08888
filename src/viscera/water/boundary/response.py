"""What comes of a wanted way when several walls are met at once: projected Gauss–Seidel over planes.

Each wall is a plane n·y ≥ c for the displacement y (or n·v ≥ n·w for the velocity v, w the wall's). With λ_i ≥ 0 along
each normal and a drag τ_i across it, |τ_i| ≤ µ λ_i,

    y = wanted + Σ (λ_i n_i + τ_i),   n_i·y ≥ c_i + ε max(0, c_i − n_i·wanted),   no slip on i unless |τ_i| = µ λ_i,

found by taking the planes in turn until nothing changes. One plane needs one turn: Grahn's eq. 7.3 to 7.5, corrected as
contacts.py says.
"""

# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportIndexIssue=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import warp as wp

from viscera.water.boundary.nearest import Nearest

wp.set_module_options({"enable_backward": False})

PLANES = wp.constant(4)
"""Walls that one step can meet at once: three make a corner, one to spare."""

SWEEPS = wp.constant(48)
"""Of Gauss–Seidel over the planes, at most. Two planes at angle θ converge by cos²θ per sweep: 1e-6 at 30°."""

SAME = wp.constant(0.9995)
"""Cosine above which two normals (2°) are one plane."""

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
def add_plane(met: Met, near: Nearest, limit: float, bounce: float) -> Met:
    """One plane more; a normal that is there already keeps the stricter limit."""
    now = met
    place = met.count
    for i in range(met.count):
        if wp.dot(plane_normal(met.normals, i), near.normal) > SAME:
            place = i
    if place < PLANES:
        keep = limit
        if place < met.count:
            keep = wp.max(limit, met.normals[place, 3])
        for c in range(3):
            now.normals[place, c] = near.normal[c]
            now.walls[place, c] = near.velocity[c]
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
def obey(wanted: wp.vec3, met: Met, velocity: bool, time: float, friction: float) -> wp.vec3:
    """The displacement [m] that comes of `wanted` in `time` [s]; or the `velocity` [m/s] that comes of `wanted`.

    With one plane the first sweep is exact: restitution, then Coulomb.
    """
    result = wanted
    pressed = wp.vec4(0.0, 0.0, 0.0, 0.0)
    dragged = wp.mat44(0.0)
    shortest = FLAT * wp.length(wanted)
    for _sweep in range(SWEEPS):
        before = result
        for i in range(met.count):
            n = plane_normal(met.normals, i)
            w = plane_normal(met.walls, i)
            limit = wp.dot(n, w)
            meets = limit
            carried = w
            if not velocity:
                limit = met.normals[i, 3]
                meets = wp.min(limit, 0.0)
                carried = time * w
            goal = limit + met.walls[i, 3] * wp.max(meets - wp.dot(n, wanted), 0.0)
            press = wp.max(pressed[i] + goal - wp.dot(n, result), 0.0)
            result += (press - pressed[i]) * n
            pressed[i] = press
            if friction > 0.0:
                # Being pushed out of a wall (limit above 0) presses on nothing.
                most = friction * wp.max(press - (limit - meets), 0.0)
                old = plane_normal(dragged, i)
                slip = result - carried
                drag = old - (slip - wp.dot(n, slip) * n)
                size = wp.length(drag)
                if size > most:
                    drag = drag * (most / size)
                result += drag - old
                for c in range(3):
                    dragged[i, c] = drag[c]
        if wp.length(result - before) <= shortest:
            break
    if velocity and met.count > 1:
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
