"""Turns and trocars in float64 inside kernels: what instruments/turning.py, bars.py and trocar.py do for one tool.

The order of every sum is theirs, and nothing is fused there nor, on cpu, here: the same bits. On cuda the compiler may
fuse: then both differ by a unit in the last place of a float64, which a tool's float32 place in a lattice does not see
as a rule.
"""

from __future__ import annotations

import warp as wp

from viscera.instruments.trocar import SHALLOWEST, SHORTEST_HANDLE

wp.set_module_options({"enable_backward": False})

ZERO, ONE, TWO = wp.constant(wp.float64(0.0)), wp.constant(wp.float64(1.0)), wp.constant(wp.float64(2.0))
HALF = wp.constant(wp.float64(0.5))
TINY = wp.constant(wp.float64(1.0e-9))
_SHALLOWEST = wp.constant(wp.float64(SHALLOWEST))
_SHORTEST_HANDLE = wp.constant(wp.float64(SHORTEST_HANDLE))


@wp.func
def product(a: wp.vec4d, b: wp.vec4d):
    """The turn b followed by the turn a, quaternions x, y, z, w."""
    return wp.vec4d(
        a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
        a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
        a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
        a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
    )


@wp.func
def between(held: wp.vec4d, asked: wp.vec4d):
    """The shortest turn from one to the other: axis times angle [rad]."""
    q = product(asked, wp.vec4d(-held[0], -held[1], -held[2], held[3]))
    way = wp.vec3d(q[0], q[1], q[2])
    if q[3] < ZERO:
        way = -way
    sine = wp.length(way)
    if sine > ZERO:
        way = way * (TWO * wp.atan2(sine, wp.abs(q[3])) / sine)
    return way


@wp.func
def turned_by(held: wp.vec4d, way: wp.vec3d):
    """A unit quaternion after a turn of axis times angle [rad]."""
    angle = wp.length(way)
    turned = held
    if angle > ZERO:
        part = way * (wp.sin(HALF * angle) / angle)
        turned = product(wp.vec4d(part[0], part[1], part[2], wp.cos(HALF * angle)), held)
        turned = turned / wp.length(turned)
    return turned


@wp.func
def placed(tip: wp.vec3d, turn: wp.vec4d, local: wp.vec3d):
    """Where a point of an instrument's own frame is."""
    x = turn[0]
    y = turn[1]
    z = turn[2]
    w = turn[3]
    along_x = wp.vec3d(ONE - TWO * (y * y + z * z), TWO * (x * y + w * z), TWO * (x * z - w * y))
    along_y = wp.vec3d(TWO * (x * y - w * z), ONE - TWO * (x * x + z * z), TWO * (y * z + w * x))
    along_z = wp.vec3d(TWO * (x * z + w * y), TWO * (y * z - w * x), ONE - TWO * (x * x + y * y))
    return tip + (local[0] * along_x + local[1] * along_y + local[2] * along_z)


@wp.func
def kept_in_trocar(tip: wp.vec3d, trocar: wp.vec3d, length: wp.float64):
    """A tip that is too near to its trocar, or too deep, back along the shaft [m]."""
    way = tip - trocar
    depth = wp.length(way)
    deepest = length - _SHORTEST_HANDLE
    found = tip
    if depth < _SHALLOWEST or depth > deepest:
        if depth < TINY:
            way = wp.vec3d(ZERO, ZERO, -TINY)
            depth = TINY
        found = trocar + way * (wp.min(wp.max(depth, _SHALLOWEST), deepest) / depth)
    return found


@wp.func
def through_trocar(turn: wp.vec4d, tip: wp.vec3d, trocar: wp.vec3d):
    """The turn whose shaft, +z, runs from the tip to the trocar, with the spin about it that the hand has."""
    z = turn[2]
    w = turn[3]
    spin = wp.sqrt(z * z + w * w)
    if spin < TINY:
        z = ZERO
        w = ONE
    else:
        z = z / spin
        w = w / spin
    shaft = trocar - tip
    length = wp.length(shaft)
    if length < TINY:
        shaft = wp.vec3d(ZERO, ZERO, ONE)
    else:
        shaft = shaft / length
    a = ONE
    b = ZERO
    c = ZERO
    if ONE + shaft[2] >= TINY:
        scale = wp.sqrt(TWO * (ONE + shaft[2]))
        a = -shaft[1] / scale
        b = shaft[0] / scale
        c = (ONE + shaft[2]) / scale
    return wp.vec4d(a * w + b * z, b * w - a * z, c * z, c * w)
