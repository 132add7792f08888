"""Which particles wish to split and which to merge: where somebody looks, and how near the surface is.

Gaze. A place is seen at (u, v), 0 to 1 from the top left of the view. With the camera's axes right, up and ahead, its
distance z ahead, the tangent t of half the vertical angle of view, and a = width/height:

    u = ½ + (x·right)/(2 a t z),   v = ½ − (x·up)/(2 t z)
    e = |(a (u − u_gaze), v − v_gaze)| / (R + r/(2 t z))                            all in heights of the view

R is the radius of the gaze disc and r that of the particle. With L sizes, rings of width w about the disc are refined
less and less: the size wanted at e is L − 1 inside the disc, one less per ring. Someone who is too large splits; who is
too small even at e/k merges, k > 1 being the hysteresis.

Surface. The character field c of character.py: size l splits where c < T/(l + 1), and merges where c ≥ 2T/l.

Pace. When the eye jumps, a whole disc wishes to split at once. Each new particle pushes a little, and all together
they set the water ringing: it swells by 3 % and swings with a period of 4 depth/c. So at most a share `pace` of all
particles splits in one go, and as many merge; who, follows from chance, that of its tag, or of its place for those who
need another to merge with:

    wish ← 0 where random(tag, time) ≥ pace · particles / wishes

Gaze and surface. Splits where both wish it and the surface is no deeper than `depth`, merges where one of both does.

After Elmasdotter eq. 3.46–3.48, which compares a radius in metres with a distance on the screen and has no hysteresis.
"""

from __future__ import annotations

import warp as wp

from viscera.water.adaptive.matching import Merging

wp.set_module_options({"enable_backward": False})

GAZE, SURFACE, BOTH = 0, 1, 2
CRITERIA = {"gaze": GAZE, "surface": SURFACE, "gaze and surface": BOTH}
_GAZE, _SURFACE, _BOTH = wp.constant(GAZE), wp.constant(SURFACE), wp.constant(BOTH)

UNSEEN = wp.constant(1.0e6)
"""e of what is behind the camera."""


@wp.struct
class Eye:
    """Where somebody looks, and from where."""

    position: wp.vec3
    right: wp.vec3
    up: wp.vec3
    ahead: wp.vec3
    """Unit vectors."""
    tangent: float
    """Of half the vertical angle of view."""
    aspect: float
    """Width over height."""
    gaze: wp.vec2
    """0 to 1 from the top left."""
    radius: float
    """Of the gaze disc, in heights of the view."""


@wp.struct
class Rules:
    """How wishes follow from what is seen; frozen when a program is recorded."""

    sizes: int
    ring: float
    """Width of a ring, in radii of the disc."""
    hysteresis: float
    threshold: float
    """T"""
    depth: float
    """Deepest that gaze and surface refine [m]."""


@wp.func
def eccentricity(eye: Eye, x: wp.vec3, radius: float) -> float:
    """Distance on the screen from where the eye looks, 1 at the rim of the disc."""
    away = x - eye.position
    z = wp.dot(away, eye.ahead)
    e = UNSEEN
    if z > 1.0e-6:
        per_height = 1.0 / (2.0 * eye.tangent * z)
        across = wp.dot(away, eye.right) * per_height - eye.aspect * (eye.gaze[0] - 0.5)
        down = -wp.dot(away, eye.up) * per_height - (eye.gaze[1] - 0.5)
        e = wp.sqrt(across * across + down * down) / (eye.radius + radius * per_height)
    return e


@wp.func
def wanted_size(rules: Rules, e: float) -> int:
    """The finest inside the disc, one less per ring."""
    ring = wp.int32(0)
    if e >= 1.0:
        ring = 1 + int(wp.min((e - 1.0) / rules.ring, 100.0))
    return wp.max(rules.sizes - 1 - ring, 0)


@wp.func
def gaze_wish(rules: Rules, e: float, level: int) -> int:
    wish = wp.int32(0)
    if level < wanted_size(rules, e):
        wish = 1
    elif level > wanted_size(rules, e / rules.hysteresis):
        wish = -1
    return wish


@wp.func
def surface_wish(rules: Rules, character: float, level: int) -> int:
    wish = wp.int32(0)
    if level < rules.sizes - 1 and character < rules.threshold / float(level + 1):
        wish = 1
    elif level > 0 and character >= 2.0 * rules.threshold / float(level):
        wish = -1
    return wish


@wp.func
def wish_of(
    criterion: int, rules: Rules, eye: Eye, radius: float, x: wp.vec3, level: int, character: float, depth: float
) -> int:
    wish = wp.int32(0)
    if criterion != _SURFACE:
        wish = gaze_wish(rules, eccentricity(eye, x, radius), level)
    if criterion == _SURFACE:
        wish = surface_wish(rules, character, level)
    elif criterion == _BOTH:
        other = surface_wish(rules, character, level)
        if wish == 1 and (other != 1 or depth > rules.depth):
            wish = 0
        if other == -1 and wish == 0:
            wish = -1
    return wish


@wp.kernel
def find_wishes(
    first: int,
    # params
    group: int,
    criterion: int,
    rules: Rules,
    eye: wp.array(dtype=Eye),
    radii: wp.array(dtype=float),
    # in
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    level: wp.array(dtype=wp.int32),
    character: wp.array(dtype=float),
    depth: wp.array(dtype=float),
    # out
    merging_out: Merging,
):
    """Also frees everybody from the groups of before. `radii` are those of the particles of each size [m]."""
    start = (first + wp.tid()) * group
    seen_from = eye[0]
    for s in range(start, wp.min(start + group, count[0])):
        mine = level[s]
        merging_out.wish[s] = wish_of(
            criterion, rules, seen_from, radii[mine], position[s], mine, character[s], depth[s]
        )  # fmt: skip
        merging_out.leader[s] = -1
        merging_out.follower[s] = -1


@wp.kernel
def clear_asked(
    # out
    asked_out: wp.array(dtype=wp.int32),
):
    asked_out[wp.tid()] = 0


@wp.kernel
def count_wishes(
    first: int,
    # params
    group: int,
    # in
    count: wp.array(dtype=wp.int32),
    merging: Merging,
    # out
    asked_out: wp.array(dtype=wp.int32),
):
    """How many wish to split, and how many to merge; whole numbers, so their order does not matter."""
    start = (first + wp.tid()) * group
    splits = wp.int32(0)
    merges = wp.int32(0)
    for s in range(start, wp.min(start + group, count[0])):
        if merging.wish[s] > 0:
            splits += 1
        elif merging.wish[s] < 0:
            merges += 1
    if splits > 0:
        wp.atomic_add(asked_out, 0, splits)
    if merges > 0:
        wp.atomic_add(asked_out, 1, merges)


@wp.kernel
def thin_wishes(
    first: int,
    # params
    group: int,
    pace: float,
    per_side: float,
    # in
    count: wp.array(dtype=wp.int32),
    clock: wp.array(dtype=wp.float64),
    tag: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    asked: wp.array(dtype=wp.int32),
    # out
    merging_out: Merging,
):
    """`per_side` is one over the side of the cubes that merge in one go [1/m]."""
    start = (first + wp.tid()) * group
    allowed = pace * float(count[0])
    moment = int(wp.mod(clock[0] * wp.float64(1.0e6), wp.float64(2147483647.0)))
    for s in range(start, wp.min(start + group, count[0])):
        wish = merging_out.wish[s]
        if wish > 0:
            if wp.randf(wp.rand_init(moment, tag[s])) * float(asked[0]) >= allowed:
                merging_out.wish[s] = 0
        elif wish < 0:
            x = per_side * position[s]
            cube = int(wp.floor(x[0])) + 4096 * (int(wp.floor(x[1])) + 4096 * int(wp.floor(x[2])))
            if wp.randf(wp.rand_init(moment, cube)) * float(asked[1]) >= allowed:
                merging_out.wish[s] = 0
