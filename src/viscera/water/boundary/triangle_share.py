"""How much of a kernel lies behind a mesh, from the triangles around a point: exact, and nothing is made beforehand.

A point x of the fluid sees the wall around it. A cone of directions dΩ that meets the wall at a distance r has behind
it M(r) dΩ of the kernel, with M(r) = ∫_r^R W t² dt. So over all triangles T, with the normal n out of the fluid,

    λ(x) = Σ ∫_T M(r) h/r³ dA,      ∇λ(x) = Σ n ∫_T W(r) dA,      h = (y − x)·n

(the divergence theorem; for other kernels and forms: Ferrand et al. 2013, doi:10.1002/fld.3666). Around the foot of x
in the plane of T both are sums over its edges of ∫ f(r(θ)) dθ, as dA = r dr dθ there and M/t² and W t have integrals in
closed form:

    f = |h| ∫_|h|^r M/t² dt   and   f = ∫_|h|^r W t dt,      r² = h² + (ρ cos θ/cos θ')²

of a corner at the distance ρ from the foot, seen at the angle θ from the nearest point of the edge's line, p away. The
integral over θ' from 0 to θ is a table by h, ρ and θ. Beyond R nothing is added but angle: f(R) is the flat wall's,
over 2π. The first f has a part M(0)(1 − |h|/r), the solid angle, that no table can hold where h and p are small at
once: a point in a triangle's plane, on the line of its edge. It is added in closed form, its integral being M(0)(θ −
asin(|h| sin θ/√(h² + p²))). (In the table, λ was up to 0.03 off there, and jumped when the point went through the
plane: in a real colon, which has many small triangles, particles at the wall were thrown about at 0.4 m/s.)

Of small triangles that are not near, both integrals are taken from three points, exact to the second degree.

Sums are in whole numbers, so the order of triangles in a list does not matter, and neither does which list it is.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import warp as wp
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from viscera.device import Device
from viscera.water.boundary.known import PLANE_ROOM, Known, distance_to, good_for, wall_velocity
from viscera.water.boundary.triangles_hashed import ROUNDING, bucket_of, cell_at, cell_middle, cell_number
from viscera.water.boundary.walls import HASHED, WallsView
from viscera.water.periodic import front

wp.set_module_options({"enable_backward": False})

FloatArray = NDArray[np.float64]

SIDE = 32
"""Entries of the table along each axis."""
NODES = 24
"""Of Gauss and Legendre, for an entry."""
UNIT = wp.constant(1.0 / float(2**32))
"""Of the whole numbers that shares are summed in; less than float32 knows of them."""
POINTS = 128
"""Entries of the table for points."""
SMALL = wp.constant(0.36)
"""Square of the longest edge, over R, of a triangle that three points may stand for,"""
NOT_NEAR = wp.constant(0.35)
"""and how far it has to be, over R: then they differ from the whole by less than 0.2 % of the kernel."""
FLAT = wp.constant(1.0e-12)
"""Squares below it are no length: of an edge or a normal, over that of the kernel."""


WHOLE = wp.constant(1.0 / (4.0 * np.pi))
"""M(0): all of the kernel, over all directions."""


@wp.struct
class EdgeTable:
    """By h, ρ and t/(t + p), lengths over R."""

    edge: wp.array3d(dtype=wp.vec2)
    """∫ f dθ of both, of the first without its solid angle."""
    whole: wp.array(dtype=wp.vec2)
    """f(R) of both, by h."""
    point: wp.array(dtype=wp.vec2)
    """M/r³ and W, by r."""


@cache
def _integrals() -> tuple[list[Polynomial], list[Polynomial]]:
    """r N(r), with N = −∫_r^1 M/t² dt, and B(r) = ∫_0^r W t dt, each below and above R/2, with R = 1."""
    q = Polynomial([0.0, 1.0])
    kernel = [8.0 / np.pi * (1.0 - 6.0 * q**2 + 6.0 * q**3), 16.0 / np.pi * (1.0 - q) ** 3]
    outer = (kernel[1] * q**2).integ()
    inner = (kernel[0] * q**2).integ()
    beyond = outer(1.0) - outer(0.5)
    m = [beyond + inner(0.5) - inner, outer(1.0) - outer]

    def without_pole(one: Polynomial) -> tuple[Polynomial, float]:
        """The integral of M/t² is this one less pole/t; M has no term in t, so there is no logarithm."""
        return Polynomial(one.coef[2:]).integ(), float(one.coef[0])

    rest = [without_pole(one) for one in m]
    upper = q * (rest[1][0] - rest[1][0](1.0) + rest[1][1]) - rest[1][1]
    middle = float(upper(0.5)) / 0.5
    lower = q * (rest[0][0] - rest[0][0](0.5) + rest[0][1] / 0.5 + middle) - rest[0][1]
    b = [(one * q).integ() for one in kernel]
    b[1] = b[1] - b[1](0.5) + b[0](0.5)
    return [lower, upper], b


def _two(parts: list[Polynomial], r: FloatArray) -> FloatArray:
    return np.where(r < 0.5, parts[0](r), parts[1](r))


def along_rays(h: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
    """f of both at the distance r, in a plane at h; lengths over R."""
    n, b = _integrals()
    h = np.clip(h, 1e-9, 1.0)
    r = np.clip(r, h, 1.0)
    return h * _two(n, r) / r - _two(n, h), _two(b, r) - _two(b, h)


@cache
def edge_tables() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """What `EdgeTable` has."""
    axis = np.linspace(0.0, 1.0, SIDE)
    h, rho, w = np.meshgrid(axis, axis, axis, indexing="ij")
    end = np.arctan2(w, 1.0 - w)
    place, weight = np.polynomial.legendre.leggauss(NODES)
    total = [np.zeros_like(h), np.zeros_like(h)]
    for p, g in zip(0.5 * (place + 1.0), 0.5 * weight, strict=True):
        # Nodes are denser at the far end, where r rises fast: θ' = θ (1 − (1 − p)²).
        angle = end * (1.0 - (1.0 - p) ** 2)
        near = rho * np.cos(end) / np.maximum(np.cos(angle), 1e-12)
        r = np.sqrt(np.maximum(h, 1e-9) ** 2 + near**2)
        share, slope = along_rays(h, r)
        for one, value in zip(total, (share - float(WHOLE) * (1.0 - np.maximum(h, 1e-9) / r), slope), strict=True):
            one += 2.0 * (1.0 - p) * g * end * value
    whole = along_rays(axis, np.ones_like(axis))
    return np.stack(total, axis=-1).astype(np.float32), np.stack(whole, axis=-1).astype(np.float32)


@cache
def point_table() -> NDArray[np.float32]:
    """M/r³ and W by r, with R = 1."""
    r = np.linspace(0.0, 1.0, POINTS)
    n, b = _integrals()
    # N = (rN)/r and N' = M/r²; B' = W r.
    m = [r**2 * ((one.deriv()(r) - one(r) / np.maximum(r, 1e-9)) / np.maximum(r, 1e-9)) for one in n]
    w = [one.deriv()(r) / np.maximum(r, 1e-9) for one in b]
    both = [np.where(r < 0.5, *one) for one in (m, w)]
    both[0] = both[0] / np.maximum(r, 0.1) ** 3
    return np.stack(both, axis=-1).astype(np.float32)


def make_edge_table(device: Device) -> Any:
    table: Any = EdgeTable()
    edge, whole = edge_tables()
    table.edge = wp.array(edge, dtype=wp.vec2, device=device.warp)
    table.whole = wp.array(whole, dtype=wp.vec2, device=device.warp)
    table.point = wp.array(point_table(), dtype=wp.vec2, device=device.warp)
    return table


@wp.func
def in_table(table: EdgeTable, h: float, rho: float, w: float) -> wp.vec2:
    side = float(SIDE - 1)
    a = wp.min(h, 1.0) * side
    b = wp.min(rho, 1.0) * side
    c = w * side
    i = wp.min(wp.int32(a), SIDE - 2)
    j = wp.min(wp.int32(b), SIDE - 2)
    k = wp.min(wp.int32(c), SIDE - 2)
    a = a - float(i)
    b = b - float(j)
    c = c - float(k)
    e = table.edge
    low = wp.lerp(wp.lerp(e[i, j, k], e[i, j, k + 1], c), wp.lerp(e[i, j + 1, k], e[i, j + 1, k + 1], c), b)
    high = wp.lerp(
        wp.lerp(e[i + 1, j, k], e[i + 1, j, k + 1], c), wp.lerp(e[i + 1, j + 1, k], e[i + 1, j + 1, k + 1], c), b
    )
    return wp.lerp(low, high, a)


@wp.func
def to_corner(table: EdgeTable, h: float, p: float, t: float) -> wp.vec2:
    """From the table: from the nearest point of an edge's line, at p ≥ 0 from the foot, to a corner at t along it."""
    far = wp.abs(t)
    found = in_table(table, h, wp.sqrt(p * p + far * far), far / wp.max(far + p, 1.0e-9))
    return wp.where(t < 0.0, -found, found)


@wp.func
def angle_between(p: float, a: float, b: float) -> float:
    """Between two places along a line, seen from p beside it."""
    return wp.atan2(p * (b - a), p * p + a * b)


@wp.func
def solid_angle(h: float, p: float, a: float, b: float) -> float:
    """∫ (1 − h/r) dθ between two places along an edge's line."""
    # asin(h sin θ/√(h² + p²)) at each end as sine and cosine, over the same √(h² + p²); then the angle between them.
    per_a = 1.0 / wp.max(wp.sqrt(p * p + a * a), 1.0e-9)
    per_b = 1.0 / wp.max(wp.sqrt(p * p + b * b), 1.0e-9)
    sin_a = h * a * per_a
    sin_b = h * b * per_b
    cos_a = p * wp.sqrt(h * h + p * p + a * a) * per_a
    cos_b = p * wp.sqrt(h * h + p * p + b * b) * per_b
    return angle_between(p, a, b) - wp.atan2(sin_b * cos_a - cos_b * sin_a, cos_b * cos_a + sin_b * sin_a)


@wp.func
def of_edge(table: EdgeTable, whole: wp.vec2, h: float, a: wp.vec3, b: wp.vec3, n: wp.vec3) -> wp.vec2:
    """∫ f dθ along an edge of a triangle with the normal n; corners from x, over R."""
    e = b - a
    square = wp.dot(e, e)
    if square < FLAT:
        return wp.vec2(0.0, 0.0)
    e = e / wp.sqrt(square)
    p = wp.dot(a, wp.cross(e, n))
    far = wp.abs(p)
    ta = wp.dot(a, e)
    tb = wp.dot(b, e)
    # The part of it within R, and the angle of what is beyond.
    rim = wp.sqrt(wp.max(1.0 - far * far, 0.0))
    begin = wp.clamp(ta, -rim, rim)
    end = wp.clamp(tb, -rim, rim)
    found = wp.vec2(0.0, 0.0)
    beyond = float(0.0)
    if begin != ta or end != tb:
        beyond = angle_between(far, ta, tb)
        if far < 1.0:
            beyond -= angle_between(far, begin, end)
    if begin < end:
        found = to_corner(table, h, far, end) - to_corner(table, h, far, begin)
        found[0] = found[0] + WHOLE * solid_angle(h, far, begin, end)
    found += beyond * whole
    return wp.where(p < 0.0, -found, found)


@wp.func
def of_triangle(table: EdgeTable, a: wp.vec3, b: wp.vec3, c: wp.vec3) -> wp.vec4:
    """R ∇λ and λ of a triangle whose corners, from x, are given over R; counter-clockwise from behind the wall."""
    n = wp.cross(b - a, c - a)
    square = wp.dot(n, n)
    total = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if square > FLAT * FLAT:
        n = n / wp.sqrt(square)
        height = wp.dot(a, n)
        h = wp.abs(height)
        if h < 1.0:
            place = h * float(SIDE - 1)
            k = wp.min(wp.int32(place), SIDE - 2)
            whole = wp.lerp(table.whole[k], table.whole[k + 1], place - float(k))
            sum = of_edge(table, whole, h, a, b, n)
            sum = sum + of_edge(table, whole, h, b, c, n)
            sum = sum + of_edge(table, whole, h, c, a, n)
            total = wp.vec4(sum[1] * n[0], sum[1] * n[1], sum[1] * n[2], wp.where(height < 0.0, -sum[0], sum[0]))
    return total


@wp.func
def at_point(table: EdgeTable, y: wp.vec3, n: wp.vec3) -> wp.vec2:
    """M h/r³ and W at a point of a triangle; n is as long as its area."""
    place = wp.min(wp.length(y), 1.0) * float(POINTS - 1)
    k = wp.min(wp.int32(place), POINTS - 2)
    found = wp.lerp(table.point[k], table.point[k + 1], place - float(k))
    return wp.vec2(found[0] * wp.dot(y, n), found[1])


@wp.func
def of_points(table: EdgeTable, a: wp.vec3, b: wp.vec3, c: wp.vec3) -> wp.vec4:
    """As `of_triangle`, from three points."""
    n = 0.5 * wp.cross(b - a, c - a)
    middle = (a + b + c) / 6.0
    sum = at_point(table, middle + 0.5 * a, n) + at_point(table, middle + 0.5 * b, n)
    sum = (sum + at_point(table, middle + 0.5 * c, n)) / 3.0
    return wp.vec4(sum[1] * n[0], sum[1] * n[1], sum[1] * n[2], sum[0])


@wp.func
def is_small(a: wp.vec3, b: wp.vec3, c: wp.vec3) -> bool:
    longest = wp.max(wp.length_sq(b - a), wp.max(wp.length_sq(c - b), wp.length_sq(a - c)))
    return longest < SMALL


@wp.struct
class ShareSum:
    """Of what triangles give, in `UNIT`s."""

    x: wp.int64
    y: wp.int64
    z: wp.int64
    share: wp.int64
    growth: wp.int64
    """Σ R ∇λ_T·u_T of triangles that move with u_T."""


@wp.func
def in_units(value: float) -> wp.int64:
    return wp.int64(value / UNIT)


@wp.func
def added(total: ShareSum, one: wp.vec4, growth: float) -> ShareSum:
    result = total
    result.x = total.x + in_units(one[0])
    result.y = total.y + in_units(one[1])
    result.z = total.z + in_units(one[2])
    result.share = total.share + in_units(one[3])
    result.growth = total.growth + in_units(growth)
    return result


@wp.func
def of_sum(total: ShareSum) -> wp.vec4:
    """R ∇λ and λ."""
    share = wp.clamp(float(total.share) * UNIT, 0.0, 1.0)
    return wp.vec4(float(total.x) * UNIT, float(total.y) * UNIT, float(total.z) * UNIT, share)


@wp.struct
class Around:
    """The triangles around a particle, as far as they count."""

    table: EdgeTable
    behind: wp.array2d(dtype=wp.vec3)
    """Corners of what counts as wall [m]."""
    radius: float
    """R [m]."""
    seen: float
    """How far a triangle may be to count [m]."""
    inside: wp.bool
    """Whether normals point out of the fluid."""


@wp.func
def with_triangle(around: Around, walls: WallsView, point: wp.vec3, t: int, sum: ShareSum) -> ShareSum:
    """The sum with triangle t, if that is near enough."""
    p0 = walls.corners[t, 0]
    p1 = walls.corners[t, 1]
    p2 = walls.corners[t, 2]
    # Its plane is no farther than it is, which says no to most.
    normal = wp.cross(p1 - p0, p2 - p0)
    above = wp.dot(normal, point - p0)
    if above * above > PLANE_ROOM * around.seen * around.seen * wp.dot(normal, normal):
        return sum
    distance = distance_to(point, p0, p1, p2)
    if distance >= around.seen:
        return sum
    per = 1.0 / around.radius
    a = per * (around.behind[t, 0] - point)
    b = per * (around.behind[t, 1] - point)
    c = per * (around.behind[t, 2] - point)
    share = wp.vec4()
    if distance > NOT_NEAR * around.radius and is_small(a, b, c):
        share = of_points(around.table, a, b, c)
    else:
        share = of_triangle(around.table, a, b, c)
    if not around.inside:
        share = -share
    growth = float(0.0)
    if walls.moved[1] > 0.0:
        third = 1.0 / 3.0
        growth = wp.dot(front(share), wall_velocity(walls, t, wp.vec3(third, third, third)))
    return added(sum, share, growth)


@wp.func
def sum_hashed(around: Around, walls: WallsView, point: wp.vec3) -> ShareSum:
    """Over the list of the point's cell."""
    table = walls.table[0]
    sum = ShareSum()
    cell = cell_at(table, point)
    own = cell_number(table, cell[0], cell[1], cell[2])
    bucket = bucket_of(table, cell[0], cell[1], cell[2])
    # No triangle is nearer than its distance from the cell's middle was, less ours and the drift; with rounding.
    most = around.seen + table.reach * ROUNDING + table.drift[0]
    most += wp.length(point - cell_middle(table, cell[0], cell[1], cell[2]))
    begin = table.bucket_start[bucket]
    end = table.bucket_start[bucket + 1]
    all_of_them = table.missing[0] > 0
    if all_of_them:
        begin = 0
        end = table.corners.shape[0]
    for e in range(begin, end):
        t = e
        if not all_of_them:
            entry = table.entries[e]
            t = wp.where(entry[1] == own and table.away[e] <= most, entry[0], -1)
        if t >= 0:
            sum = with_triangle(around, walls, point, t, sum)
    return sum


@wp.func
def sum_in_hierarchy(around: Around, walls: WallsView, point: wp.vec3) -> ShareSum:
    sum = ShareSum()
    half = wp.vec3(around.seen, around.seen, around.seen)
    query = wp.mesh_query_aabb(walls.tree, point - half, point + half)
    t = wp.int32(0)
    while wp.mesh_query_aabb_next(query, t):
        sum = with_triangle(around, walls, point, t, sum)
    return sum


@wp.func
def share_around(around: Around, walls: WallsView, point: wp.vec3) -> ShareSum:
    """Over all triangles that count."""
    if walls.structure == HASHED:
        return sum_hashed(around, walls, point)
    return sum_in_hierarchy(around, walls, point)


@wp.func
def share_of_known(around: Around, walls: WallsView, known: wp.array(dtype=Known), i: int, point: wp.vec3) -> ShareSum:
    """The same from the list that particle i keeps, where that is long enough."""
    if good_for(known, i, point) < around.seen:
        return share_around(around, walls, point)
    sum = ShareSum()
    for k in range(known[i].count):
        sum = with_triangle(around, walls, point, known[i].faces[k], sum)
    return sum
