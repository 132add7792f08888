"""Light on simple things, and what all materials share: the lamp, the shadows of instruments, steel, glass, cloth.

One lamp beside the lens, falling off with the square of the distance. All is in the eye's frame (`raster.py`). Numbers
without a source are tuned for appearance, as the page has them (`web/src/look`).
"""

from __future__ import annotations

import warp as wp

from viscera.imaging.lens import LensView
from viscera.render.raster import seen_from

wp.set_module_options({"enable_backward": False})

LAMP = wp.constant(wp.vec3(-0.016, 0.03, 0.0))
"""Beside the lens [m]; farther out than on a real scope, so that shadows show depth."""
CLOTH = wp.constant(wp.vec3(0.011, 0.070, 0.086))
STEEL = wp.constant(wp.vec3(0.60, 0.59, 0.57))
GHOST = wp.constant(wp.vec3(0.205, 1.0, 0.323))
"""Of what was hidden and is shown through the tissue."""

FLESH_FINISH, STEEL_FINISH, INSULATED_FINISH, GLASS_FINISH = 0, 1, 2, 3
_STEEL = wp.constant(STEEL_FINISH)
_INSULATED = wp.constant(INSULATED_FINISH)


@wp.struct
class Surroundings:
    """What else the picture needs; in the eye's frame."""

    power: float
    """Light of a white surface one metre away."""
    up: wp.vec3
    theatre_lamp: wp.vec3
    """Direction to the dim lamps above the table."""
    ground: wp.vec3
    """What a mirror turned down shows."""
    shades: int
    """Bars that cast a shadow."""
    ghosts: int
    cloth: int
    """1 where a cloth lies below all."""
    floor: wp.vec3
    """The middle of the cloth [m]."""
    across: wp.vec3
    along: wp.vec3
    half: wp.vec2
    """Half sides of what lies on it [m]."""


@wp.struct
class Rods:
    """Bars that cast a shadow: a ball at the tip, and the shaft to the other end; x, y, z and the radius [m]."""

    tip: wp.array(dtype=wp.vec4)
    end: wp.array(dtype=wp.vec4)


@wp.func
def step(low: float, high: float, x: float) -> float:
    t = wp.clamp((x - low) / (high - low), 0.0, 1.0)
    return t * t * (3.0 - 2.0 * t)


@wp.func
def power5(x: float) -> float:
    x2 = x * x
    return x2 * x2 * x


@wp.func
def to_screen(x: float) -> float:
    """The film curve of Hejl and Burgess-Dawson (2010), gamma included."""
    y = wp.max(x - 0.004, 0.0)
    return (y * (6.2 * y + 0.5)) / (y * (6.2 * y + 1.7) + 0.06)


@wp.func
def to_byte(x: float) -> wp.uint8:
    return wp.uint8(255.0 * to_screen(x) + 0.5)


@wp.func
def vignette(lens: LensView, column: int, row: int) -> float:
    x = float(column) + 0.5 - 0.5 * lens.width
    y = float(row) + 0.5 - 0.5 * lens.height
    r2 = (x * x + y * y) / (0.3844 * (lens.width * lens.width + lens.height * lens.height))
    falls = 1.0 + 0.75 * r2
    return (1.0 - step(0.62, 1.35, r2)) / (falls * falls)


@wp.func
def mirrored(nh: float, a2: float) -> float:
    """Beckmann's lobe, pressed into the disc that a lamp is."""
    lobe = 1.0 / (1.0 + 0.125 * (1.0 - nh * nh) / a2)
    lobe = lobe * lobe
    lobe = lobe * lobe
    lobe = lobe * lobe
    return (0.6 * lobe + 0.4 * wp.clamp(2.5 * lobe - 1.0, 0.0, 1.0)) / (a2 * 3.14159265)


@wp.func
def glossy(nh: float, alpha: float) -> float:
    a2 = alpha * alpha
    d = nh * nh * (a2 - 1.0) + 1.0
    return a2 / (3.14159265 * d * d)


@wp.func
def bent(normal: wp.vec3, slope: wp.vec3) -> wp.vec3:
    return wp.normalize(normal - (slope - wp.dot(slope, normal) * normal))


@wp.func
def cast_shades(
    point: wp.vec3,
    normal: wp.vec3,
    count: int,
    rods: Rods,
) -> wp.vec2:
    """Share of the lamp that instruments leave here, and of the light from all around."""
    lamp = float(1.0)
    around = float(1.0)
    to_lamp = LAMP - point
    far2 = wp.dot(to_lamp, to_lamp)
    far = wp.sqrt(far2)
    for k in range(count):
        p = wp.vec3(rods.tip[k][0], rods.tip[k][1], rods.tip[k][2])
        r = rods.tip[k][3]
        s = wp.clamp(wp.dot(p - point, to_lamp) / far2, 0.0, 1.0)
        soft = 0.0006 + 0.09 * s * far
        lamp *= step(r - soft, r + soft, wp.length(point + s * to_lamp - p))
        v = wp.vec3(rods.end[k][0], rods.end[k][1], rods.end[k][2]) - p
        w = point - p
        b = wp.dot(to_lamp, v)
        c = wp.max(wp.dot(v, v), 1.0e-12)
        d = wp.dot(to_lamp, w)
        e = wp.dot(v, w)
        s = wp.clamp((b * e - c * d) / wp.max(far2 * c - b * b, 1.0e-12), 0.0, 1.0)
        t = wp.clamp((b * s + e) / c, 0.0, 1.0)
        s = wp.clamp((b * t - d) / far2, 0.0, 1.0)
        soft = 0.0006 + 0.09 * s * far
        shaft = step(-soft, rods.end[k][3] + soft, wp.length(w + s * to_lamp - t * v))
        lamp *= 0.08 + 0.92 * shaft
        d2 = wp.max(wp.dot(w, w), 1.0e-9)
        facing = wp.max(0.0, 0.25 - 0.75 * wp.dot(normal, w) / wp.sqrt(d2))
        around *= 1.0 - 0.9 * facing * wp.min(1.0, 1.7 * r * r / d2)
    return wp.vec2(lamp, around)


@wp.func
def cloth_light(room: Surroundings, ray: wp.vec3) -> wp.vec3:
    """Of the cloth below all, dark where something lies on it."""
    colour = wp.vec3(0.0006, 0.0008, 0.001)
    falls = wp.dot(room.up, ray)
    if room.cloth == 1 and falls < 0.0:
        depth = wp.dot(room.up, room.floor) / falls
        if depth > 0.0:
            point = depth * ray
            way = point - room.floor
            x = wp.dot(room.across, way) / wp.max(room.half[0], 1.0e-4)
            y = wp.dot(room.along, way) / wp.max(room.half[1], 1.0e-4)
            # An ellipse that fades: organs are round, and the box around one would show as a square shadow.
            gap = wp.max(wp.sqrt(x * x + y * y) - 0.7, 0.0)
            contact = 1.0 - 0.9 * wp.exp(-6.0 * gap * gap)
            to_lamp = LAMP - point
            d2 = wp.dot(to_lamp, to_lamp)
            facing = wp.max(wp.dot(room.up, to_lamp), 0.0) / wp.sqrt(d2)
            lamp = room.power / d2
            colour += CLOTH * lamp * (0.95 * facing * facing * (0.2 + 0.8 * contact) + 0.025 * contact)
    return colour


@wp.func
def steel_light(room: Surroundings, point: wp.vec3, normal: wp.vec3, finish: int) -> wp.vec3:
    """Polished metal, or the black insulation of an electric instrument."""
    eye = wp.normalize(-point)
    to_lamp = LAMP - point
    lamp = room.power / wp.dot(to_lamp, to_lamp)
    around = room.power / wp.dot(point, point)
    to_lamp = wp.normalize(to_lamp)
    metal = STEEL
    body = float(0.0)
    if finish == _INSULATED:
        metal = wp.vec3(0.04, 0.04, 0.04)
        body = float(0.0062)
    nv = wp.max(wp.dot(normal, eye), 0.0)
    grazing = power5(1.0 - nv)
    mirror = metal + grazing * (wp.vec3(1.0, 1.0, 1.0) - metal)
    away = 2.0 * wp.dot(normal, eye) * normal - eye
    height = wp.dot(away, room.up)
    grey = wp.dot(room.ground, wp.vec3(0.3, 0.6, 0.1))
    below = 0.55 * (0.6 * wp.vec3(grey, grey, grey) + 0.4 * room.ground)
    rises = step(-0.35, 0.15, height)
    shown = (1.0 - rises) * below + rises * wp.vec3(0.05, 0.055, 0.065)
    shown += step(0.45, 0.62, height) * (1.0 - step(0.80, 0.95, height)) * wp.vec3(0.42, 0.46, 0.50)
    shown += 0.16 * step(0.25, 0.9, -away[2]) * wp.vec3(1.0, 1.0, 1.0)
    nh = wp.max(wp.dot(normal, wp.normalize(to_lamp + eye)), 0.0)
    glint = 3.14159265 * (0.35 * glossy(nh, 0.10) + 0.65 * glossy(nh, 0.34))
    light = 0.55 * around * shown
    facing = wp.dot(normal, to_lamp)
    if facing > 0.0:
        light += wp.vec3(1.0, 1.0, 1.0) * (0.30 * glint * lamp)
    return wp.cw_mul(mirror, light) + wp.vec3(1.0, 1.0, 1.0) * (body * wp.max(facing, 0.0) * lamp)


@wp.func
def glass_light(room: Surroundings, point: wp.vec3, normal: wp.vec3, colour: wp.vec3) -> wp.vec3:
    """Smooth things of one colour: heads of pins, sutures, drops."""
    eye = wp.normalize(-point)
    to_lamp = LAMP - point
    lamp = room.power / wp.dot(to_lamp, to_lamp)
    around = room.power / wp.dot(point, point)
    to_lamp = wp.normalize(to_lamp)
    facing = wp.max((wp.dot(normal, to_lamp) + 0.15) / 1.15, 0.0)
    nh = wp.max(wp.dot(normal, wp.normalize(to_lamp + eye)), 0.0)
    rim = power5(1.0 - wp.max(wp.dot(normal, eye), 0.0))
    light = colour * (0.30 * lamp * facing + 0.07 * around * (0.6 + 0.4 * wp.dot(normal, room.up)))
    return light + wp.vec3(1.0, 1.0, 1.0) * (0.22 * wp.pow(nh, 120.0) * lamp + 0.10 * rim * around)


@wp.func
def ghost_share(ray: wp.vec3, ghost: wp.vec4, lens: LensView) -> float:
    """How much of what is hidden is seen here, through all that is before it."""
    centre = seen_from(lens, wp.vec3(ghost[0], ghost[1], ghost[2]))
    rest = centre - (wp.dot(centre, ray) / wp.dot(ray, ray)) * ray
    return 0.55 * (1.0 - step(0.9 * ghost[3], ghost[3], wp.length(rest)))
