"""Points that tools touch: how they hang on the masses, where they are, and how hard their masses are to move.

A point hangs on up to eight masses with weights w: x = X + Σ w·u, and its velocity is Σ w·v. These sums are in C: all
of a point's masses are read at once, where a plain loop would wait for each before it asks for the next. The order is
the same on every device; a mass of weight 0 does not count, whatever it holds.
"""

from __future__ import annotations

import warp as wp

from viscera.native import fill, on_both
from viscera.tissue.kernels import Lattice

wp.set_module_options({"enable_backward": False})

SHARE_UNITS = wp.constant(float(2**32))
"""Integer steps of a weight of 1."""

Moving = wp.types.vector(length=6, dtype=wp.float32)
"""A place [m] and a velocity [m/s]."""


@wp.struct
class Samples:
    """Points that tools touch, and how they hang on the masses."""

    corners: int
    """Masses that each point hangs on, at most."""
    gauged: int
    """Whether each bundle has a point beneath it."""
    soft: float
    """How deep a point is before it is touched in full [m]: else each that comes or goes is a step in the force."""
    stray: float
    """1/m that an anchor counts with [1/kg]: it takes nothing, but a point beside it must not fly off."""
    rest: wp.array(dtype=wp.vec3)
    """Organ frame [m]."""
    normal: wp.array(dtype=wp.vec3)
    """Outward at rest; one element where they are masses."""
    thickest: wp.array(dtype=wp.float32)
    """Only parts thinner than this touch the point [m]: a thick one is felt by fewer points."""
    places: wp.array(dtype=wp.int32)
    weights: wp.array(dtype=wp.float32)
    """Of each point and corner."""
    begin: wp.array(dtype=wp.int32)
    """First point of each bundle, and behind the last one."""
    middle: wp.array(dtype=wp.int32)
    """The point in the middle of each bundle."""
    radius: wp.array(dtype=wp.float32)
    """From there to its farthest point at rest [m]."""
    group_radius: wp.array(dtype=wp.float32)
    """From the middle of a group's middle bundle to the farthest point of the group at rest [m]."""
    under: wp.array(dtype=wp.vec3)
    """From the middle to a point beneath it, at rest [m]."""
    under_places: wp.array(dtype=wp.int32)
    under_weights: wp.array(dtype=wp.float32)
    parted: wp.array(dtype=wp.int32)
    """1 for a bundle near a cut: its tissue may have turned as a whole."""


_EACH_MASS = """
const float* weight = weights.data + (Place)row * corners;
const int* place = places.data + (Place)row * corners;
$begin
const auto add = [&](int c) {
    const float w = weight[c];
    const Place i = place[c];
    $add
};
if (corners == 8) {
    UNROLL
    for (int c = 0; c < 8; ++c) add(c);
} else {
    for (int c = 0; c < corners; ++c) add(c);
}
$end
"""
"""Points of surfaces hang on eight masses."""

_BEGIN_WAY = """
const float* px = position.data;
const float* py = px + slots;
const float* pz = py + slots;
float x = start[0], y = start[1], z = start[2];
"""

_ADD_WAY = """
    const float ux = x + w * px[i], uy = y + w * py[i], uz = z + w * pz[i];
    if (w != 0.0f) { x = ux; y = uy; z = uz; }
"""

_BEGIN_MOVING = """
const float* px = position.data;
const float* py = px + slots;
const float* pz = py + slots;
const float* qx = velocity.data;
const float* qy = qx + slots;
const float* qz = qy + slots;
float x = start[0], y = start[1], z = start[2], vx = 0.0f, vy = 0.0f, vz = 0.0f;
"""

_ADD_MOVING = """
    const float sx = qx[i], sy = qy[i], sz = qz[i];
    const float ux = x + w * (px[i] - tau * sx), uy = y + w * (py[i] - tau * sy), uz = z + w * (pz[i] - tau * sz);
    const float tx = vx + w * sx, ty = vy + w * sy, tz = vz + w * sz;
    if (w != 0.0f) { x = ux; y = uy; z = uz; vx = tx; vy = ty; vz = tz; }
"""

_END_MOVING = """
wp::vec_t<6, wp::float32> found;
found[0] = x; found[1] = y; found[2] = z; found[3] = vx; found[4] = vy; found[5] = vz;
return found;
"""

_BEGIN_YIELDING = "float yields = 0.0f, free = 0.0f, whole = 0.0f, kept = 0.0f;"

_ADD_YIELDING = """
    const float size = w < 0.0f ? -w : w;
    const float inverse = inverse_mass.data[i];
    const float taken = (float)share.data[i] / $units + (1.0f - part) * size;
    const float more = yields + size * taken * (inverse > 0.0f ? inverse : stray);
    const float held = kept + size * keep.data[i];
    if (w != 0.0f) { yields = more; free += inverse > 0.0f ? size : 0.0f; whole += size; kept = held; }
"""


def _source(begin: str, add: str, end: str) -> str:
    return on_both(fill(_EACH_MASS, begin=begin, add=add, end=end), fused=False)


# start + Σ w·u of the masses in this row.
@wp.func_native(_source(_BEGIN_WAY, _ADD_WAY, "return wp::vec3(x, y, z);"))
def hung_at(
    corners: int, weights: wp.array(dtype=wp.float32), places: wp.array(dtype=wp.int32), row: int, slots: int,
    position: wp.array(dtype=wp.float32), start: wp.vec3,
) -> wp.vec3: ...  # fmt: skip


# start + Σ w·(p − τ·v) and Σ w·v of the masses in this row.
@wp.func_native(_source(_BEGIN_MOVING, _ADD_MOVING, _END_MOVING))
def hung_moving(
    corners: int, weights: wp.array(dtype=wp.float32), places: wp.array(dtype=wp.int32), row: int, slots: int,
    tau: float, position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), start: wp.vec3,
) -> Moving: ...  # fmt: skip


# Of a touched point: Σ |w|·c/m, Σ |w| of what is no anchor, Σ |w|, Σ |w|·keep.
@wp.func_native(
    _source(
        _BEGIN_YIELDING, fill(_ADD_YIELDING, units=float(2**32)), "return wp::vec4(yields, free, whole, kept);"
    )
)  # fmt: skip
def yielding(
    corners: int, weights: wp.array(dtype=wp.float32), places: wp.array(dtype=wp.int32), row: int, part: float,
    stray: float, share: wp.array(dtype=wp.int64), inverse_mass: wp.array(dtype=wp.float32),
    keep: wp.array(dtype=wp.float32),
) -> wp.vec4: ...  # fmt: skip


@wp.func
def hanging(
    samples: Samples, slots: int, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), s: int,
):  # fmt: skip
    """Where a point is and how fast."""
    found = hung_moving(
        samples.corners, samples.weights, samples.places, s, slots, tau, position, velocity, samples.rest[s]
    )
    return wp.vec3(found[0], found[1], found[2]), wp.vec3(found[3], found[4], found[5])


@wp.func
def hanging_at(samples: Samples, slots: int, position: wp.array(dtype=wp.float32), s: int):
    """Where a point is, about: p stands for u; they differ by τ·v, for which there is slack."""
    return hung_at(samples.corners, samples.weights, samples.places, s, slots, position, samples.rest[s])


@wp.func
def middle_of(samples: Samples, slots: int, position: wp.array(dtype=wp.float32), bundle: int):
    """Where the middle of a bundle is, about."""
    return hanging_at(samples, slots, position, samples.middle[bundle])


@wp.func
def way_under(samples: Samples, slots: int, position: wp.array(dtype=wp.float32), bundle: int, x: wp.vec3):
    """From a bundle's middle, at x, to the point beneath it. The springs' positions p stand for u: they differ by
    τ·v."""
    start = samples.rest[samples.middle[bundle]] + samples.under[bundle]
    below = hung_at(
        samples.corners, samples.under_weights, samples.under_places, bundle, slots, position, start
    )  # fmt: skip
    return below - x


@wp.func
def yielding_of(lattice: Lattice, samples: Samples, share: wp.array(dtype=wp.int64), part: float, s: int):
    return yielding(
        samples.corners, samples.weights, samples.places, s, part, samples.stray, share, lattice.inverse_mass,
        lattice.keep,
    )  # fmt: skip
