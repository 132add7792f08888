"""Wet tissue: a clear film of fluid over flesh that scatters light, with burns, ink and blood on it.

The film mirrors the lamp like water; light that enters comes out nearby, red the farthest, so each colour has its own
soft edge of the light. Blood absorbs and scatters as it lies thick. It is what the page draws
(`web/src/look/tissue_material.ts`) with less grain: colour and bumps come with the vertices. Numbers without a source
are tuned for appearance, as they are there.
"""

from __future__ import annotations

import warp as wp

from viscera.imaging.lens import LensView
from viscera.render.light import LAMP, STEEL_FINISH, Surroundings, bent, glossy, mirrored, power5, steel_light, step
from viscera.render.raster import turned

wp.set_module_options({"enable_backward": False})

FILM_MIRRORS = wp.constant(0.025)
"""Share of light that a film of water mirrors when looked at straight (refractive index 1.37)."""
FILM_GAIN = wp.constant(2.6)
THICKEST = wp.constant(0.002)
"""Of a film's picture, at its red 255 [m]."""
STAGES = wp.constant(256)
"""Steps of the strip that says how a burn looks."""
HIGHEST_LEVEL = wp.constant(2.0)
BLOOD = wp.constant(wp.vec3(1400.0, 23000.0, 33000.0))
"""Absorption of red, green and blue light [1/m]."""
CLOT = wp.constant(wp.vec3(5200.0, 26000.0, 33000.0))
BLOOD_BODY = wp.constant(wp.vec3(0.120, 0.0035, 0.0030))
"""Light that deep blood scatters back."""
CLOT_BODY = wp.constant(wp.vec3(0.055, 0.0060, 0.0050))
BODY_DEPTH = wp.constant(2000.0)
SCATTER = wp.constant(900.0)
BRIM = wp.constant(0.000022)
"""Thinner fluid is a stain [m]."""
BULGE = wp.constant(2.4)
"""How much steeper a meniscus is than the picture's soft border."""
REACH = wp.constant(0.9)
"""How far to each corner its slope is looked for [texel]."""
LEVEL = wp.constant(0.05)
"""Slope below which it lies level: a byte of the picture is about 0.015."""
VIOLET = wp.constant(wp.vec3(0.045, 0.010, 0.14))
"""Of a skin marker."""
_STEEL = wp.constant(STEEL_FINISH)


@wp.struct
class SurfaceLook:
    """How one surface looks; colours are linear."""

    base: wp.vec3
    pale: wp.vec3
    deep: wp.vec3
    inner: wp.vec3
    """Of what a cut opens."""
    coat: float
    dry: float
    finish: int
    part: int
    painted: int
    """1 where triangles have places in textures."""
    burn: wp.vec3i
    """Where its texture begins, its width and height [texel]; width 0 where there is none."""
    film: wp.vec3i
    ink: wp.vec3i
    dye: wp.vec3
    dye_body: wp.vec3


@wp.struct
class Triangles:
    """Triangles of all surfaces, with what their vertices are."""

    corner: wp.array(dtype=wp.vec3i)
    surface: wp.array(dtype=wp.int32)
    uv: wp.array(dtype=wp.vec2)
    """Three per triangle."""
    seen: wp.array(dtype=wp.vec3)
    normal: wp.array(dtype=wp.vec3)
    shade: wp.array(dtype=wp.vec2)
    """Shares of the lamp and of the light from all around that instruments leave."""
    grain: wp.array(dtype=wp.vec4)
    """Slope of the film's waves, in the world, and how pale the flesh is, −1 to 1."""


@wp.struct
class Paint:
    """Textures of all surfaces, one after the other, and how a burn looks by its level: colour and cover; roughness and
    wetness."""

    pixels: wp.array(dtype=wp.vec4ub)
    stage: wp.array(dtype=wp.vec4)
    coat: wp.array(dtype=wp.vec2)


@wp.struct
class Flesh:
    """What a place on tissue looks like, before light falls on it."""

    colour: wp.vec3
    covered: float
    """0 the organ's own colour, 1 burnt."""
    dull: float
    coat: float
    wet: float
    """1 where there is fluid."""
    slope: wp.vec3
    """Of the fluid's surface against the tissue's, in the eye's frame."""


@wp.func
def texel(pixels: wp.array(dtype=wp.vec4ub), number: int) -> wp.vec4:
    p = pixels[number]
    return wp.vec4(float(p[0]), float(p[1]), float(p[2]), float(p[3]))


@wp.func
def sample(pixels: wp.array(dtype=wp.vec4ub), place: wp.vec3i, uv: wp.vec2) -> wp.vec4:
    """Linear between texels, 0 to 1; the border goes on for ever."""
    x = wp.clamp(uv[0] * float(place[1]) - 0.5, 0.0, float(place[1]) - 1.001)
    y = wp.clamp(uv[1] * float(place[2]) - 0.5, 0.0, float(place[2]) - 1.001)
    i = wp.int32(x)
    j = wp.int32(y)
    u = x - float(i)
    v = (y - float(j)) / 255.0
    number = place[0] + j * place[1] + i
    low = (1.0 - u) * texel(pixels, number) + u * texel(pixels, number + 1)
    high = (1.0 - u) * texel(pixels, number + place[1]) + u * texel(pixels, number + place[1] + 1)
    return (1.0 / 255.0 - v) * low + v * high


@wp.func
def fluid_through(flesh: wp.vec3, here: wp.vec4, height: float, cosine: float, look: SurfaceLook) -> wp.vec3:
    """What is seen of tissue through fluid that lies on it."""
    fresh = wp.max(here[1] - here[3], 0.0)
    told = fresh + here[2] + here[3]
    absorbs = fresh * BLOOD + here[3] * CLOT + here[2] * look.dye
    stands = step(0.6 * BRIM, 1.4 * BRIM, height)
    deep = height * (0.5 + 0.5 * stands)
    way = deep * (1.0 + 1.0 / (0.7 + 0.3 * cosine))
    body = (fresh * BLOOD_BODY + here[3] * CLOT_BODY + here[2] * look.dye_body) / wp.max(told, 1.0e-3)
    body = body * (1.0 - 0.7 * step(0.0001, 0.0006, deep))
    some = wp.min(told, 1.0)
    filled = 1.0 - wp.exp(-BODY_DEPTH * deep * some)
    lost = SCATTER * some
    seen = wp.vec3(
        flesh[0] * wp.exp(-(absorbs[0] + lost) * way),
        flesh[1] * wp.exp(-(absorbs[1] + lost) * way),
        flesh[2] * wp.exp(-(absorbs[2] + lost) * way),
    )
    return seen + filled * body


@wp.func
def fluid_slope(
    pixels: wp.array(dtype=wp.vec4ub), place: wp.vec3i, uv: wp.vec2, height: float, edges: wp.mat33, across: wp.mat22
) -> wp.vec3:
    """How steep the surface of fluid so high is against the tissue's: `edges` has two edges of the triangle in the
    eye's frame and its unit normal as rows, `across` the same two edges in the texture."""
    det = across[0, 0] * across[1, 1] - across[0, 1] * across[1, 0]
    slope = wp.vec3(0.0, 0.0, 0.0)
    if wp.abs(det) > 1.0e-14:
        du = REACH / float(place[1])
        dv = REACH / float(place[2])
        ne = sample(pixels, place, uv + wp.vec2(du, dv))[0]
        nw = sample(pixels, place, uv + wp.vec2(-du, dv))[0]
        sw = sample(pixels, place, uv + wp.vec2(-du, -dv))[0]
        se = sample(pixels, place, uv + wp.vec2(du, -dv))[0]
        rise_u = THICKEST * (ne * ne + se * se - nw * nw - sw * sw) / (4.0 * du)
        rise_v = THICKEST * (ne * ne + nw * nw - se * se - sw * sw) / (4.0 * dv)
        p = wp.vec3(edges[0, 0], edges[0, 1], edges[0, 2])
        q = wp.vec3(edges[1, 0], edges[1, 1], edges[1, 2])
        n = wp.vec3(edges[2, 0], edges[2, 1], edges[2, 2])
        along_p = rise_u * across[0, 0] + rise_v * across[0, 1]
        along_q = rise_u * across[1, 0] + rise_v * across[1, 1]
        rx = wp.cross(q, n)
        ry = wp.cross(n, p)
        area = wp.dot(p, rx)
        if wp.abs(area) > 1.0e-20:
            slope = (along_p * rx + along_q * ry) / area
    bulge = BULGE + (1.0 - BULGE) * step(0.00003, 0.00016, height)
    slope = wp.min(wp.length(slope) / LEVEL, 1.0) * bulge * step(0.8 * BRIM, 2.4 * BRIM, height) * slope
    return slope / wp.sqrt(1.0 + 1.5 * wp.dot(slope, slope))


@wp.func
def burn_flesh(flesh: Flesh, burn: wp.vec4, paint: Paint) -> Flesh:
    level = wp.clamp((burn[1] + burn[2]) / HIGHEST_LEVEL, 0.0, 1.0)
    if level > 0.0:
        at = wp.min(wp.int32(level * float(STAGES)), STAGES - 1)
        look = paint.stage[at]
        cover = look[3]
        flesh.colour = (1.0 - cover) * flesh.colour + cover * wp.vec3(look[0], look[1], look[2])
        flesh.covered = cover
        flesh.dull = wp.max(flesh.dull, wp.clamp((paint.coat[at][0] - 0.35) / 0.65, 0.0, 1.0))
        flesh.coat *= paint.coat[at][1] * (1.0 - cover + cover * burn[3])
    return flesh


@wp.func
def ink_flesh(flesh: Flesh, ink: wp.vec4) -> Flesh:
    if ink[3] > 0.0:
        colour = VIOLET
        cover = 0.85 * step(0.15, 0.75, ink[3])
        if ink[0] + ink[1] + ink[2] > 0.02 * ink[3]:
            told = wp.vec3(ink[0], ink[1], ink[2]) / ink[3]
            colour = wp.cw_mul(told, told)  # the screen's gamma, about
            cover = 0.96 * step(0.15, 0.75, ink[3])
            flesh.coat *= 1.0 - 0.85 * cover * step(0.03, 0.12, colour[0])
        flesh.colour = (1.0 - cover) * flesh.colour + cover * colour
    return flesh


@wp.func
def flesh_light(
    room: Surroundings, flesh: Flesh, point: wp.vec3, normal: wp.vec3, wave: wp.vec3, shade: wp.vec2, dry: float
) -> wp.vec3:
    eye = wp.normalize(-point)
    to_lamp = LAMP - point
    lamp = room.power / wp.dot(to_lamp, to_lamp)
    around = room.power / wp.dot(point, point)
    to_lamp = wp.normalize(to_lamp)
    rough = bent(normal, wave)
    red = wp.dot(normal, to_lamp)
    other = wp.dot(rough, to_lamp)
    cover = flesh.covered
    s = shade[0]
    lit_red = wp.max((red + 0.42 - 0.28 * cover) / (1.42 - 0.28 * cover), 0.0)
    lit_green = wp.max((other + 0.20 - 0.08 * cover) / (1.20 - 0.08 * cover), 0.0)
    lit_blue = wp.max((other + 0.14 - 0.03 * cover) / (1.14 - 0.03 * cover), 0.0)
    light = (
        wp.vec3(
            flesh.colour[0] * lit_red * lit_red * (s * (2.0 - s) * (1.0 - cover) + s * cover),
            flesh.colour[1] * lit_green * lit_green * s,
            flesh.colour[2] * lit_blue * lit_blue * s,
        )
        * lamp
    )
    sky = 0.5 + 0.5 * wp.dot(rough, room.up)
    below = (1.0 - dry) * wp.vec3(0.050, 0.022, 0.018) + dry * wp.vec3(0.026, 0.026, 0.026)
    ambient = (1.0 - sky) * below + sky * wp.vec3(0.026, 0.032, 0.038)
    light += shade[1] * around * wp.cw_mul(flesh.colour, ambient)
    film = bent(normal, (1.0 - 0.6 * flesh.wet) * wave + flesh.slope)
    nv = wp.max(wp.dot(film, eye), 0.05)
    dull = wp.max(flesh.dull, dry) * (1.0 - flesh.wet)
    if wp.dot(film, to_lamp) > 0.0:
        nh = wp.max(wp.dot(film, wp.normalize(to_lamp + eye)), 0.0)
        spot = 0.20 * (1.0 - 0.8 * dull) * mirrored(nh, 0.004 + 0.086 * dull) + 0.30 * glossy(nh, 0.30 + 0.2 * dull)
        shine = FILM_MIRRORS * spot / (2.0 * nv + 2.0) * s * lamp * FILM_GAIN * flesh.coat
        light += shine * wp.vec3(1.0, 0.97, 0.93)
    fresnel = FILM_MIRRORS + (1.0 - FILM_MIRRORS) * power5(1.0 - nv)
    away = 2.0 * wp.dot(film, eye) * film - eye
    nt = wp.max(wp.dot(film, wp.normalize(room.theatre_lamp + eye)), 0.0)
    lights = 0.50 * mirrored(nt, 0.006 + 0.15 * dull) + 0.22 * step(-0.3, 0.9, wp.dot(away, room.up))
    gleam = fresnel * lights * shade[1] * around * 0.30 * (1.0 + 0.5 * flesh.wet) * flesh.coat
    light += gleam * wp.vec3(0.86, 0.95, 1.0)
    return light


@wp.func
def triangle_light(
    number: int,
    ray: wp.vec3,
    depth: float,
    lens: LensView,
    room: Surroundings,
    triangles: Triangles,
    look: SurfaceLook,
    paint: Paint,
) -> wp.vec3:
    corner = triangles.corner[number]
    a = triangles.seen[corner[0]]
    b = triangles.seen[corner[1]]
    c = triangles.seen[corner[2]]
    ea = wp.dot(ray, wp.cross(b, c))
    eb = wp.dot(ray, wp.cross(c, a))
    ec = wp.dot(ray, wp.cross(a, b))
    total = ea + eb + ec
    ea = ea / total
    eb = eb / total
    ec = ec / total
    point = depth * ray
    normal = wp.normalize(
        ea * triangles.normal[corner[0]] + eb * triangles.normal[corner[1]] + ec * triangles.normal[corner[2]]
    )
    if wp.dot(normal, ray) > 0.0:
        normal = -normal
    if look.finish == _STEEL:
        return steel_light(room, point, normal, look.finish)
    shade = ea * triangles.shade[corner[0]] + eb * triangles.shade[corner[1]] + ec * triangles.shade[corner[2]]
    grain = ea * triangles.grain[corner[0]] + eb * triangles.grain[corner[1]] + ec * triangles.grain[corner[2]]
    wave = 0.26 * turned(lens, wp.vec3(grain[0], grain[1], grain[2]))
    flesh = Flesh()
    pale = step(0.0, 1.0, 0.30 + 0.5 * grain[3])
    dark = 0.45 * step(0.0, 0.8, -0.55 * grain[3])
    flesh.colour = (1.0 - dark) * ((1.0 - pale) * look.base + pale * look.pale) + dark * look.deep
    flesh.covered = look.dry
    flesh.dull = look.dry
    flesh.coat = look.coat
    if look.painted == 1:
        ta = triangles.uv[3 * number]
        tb = triangles.uv[3 * number + 1]
        tc = triangles.uv[3 * number + 2]
        uv = ea * ta + eb * tb + ec * tc
        bare = uv[0] < -2.5
        if uv[0] < -0.5:  # faces that a cut opened have their places less 2, or -3 where they have none
            flesh.colour = (1.0 + 0.3 * grain[3]) * look.inner
            uv = uv + wp.vec2(2.0, 2.0)
        elif look.ink[1] > 0:
            flesh = ink_flesh(flesh, sample(paint.pixels, look.ink, uv))
        if look.burn[1] > 0 and not bare:
            flesh = burn_flesh(flesh, sample(paint.pixels, look.burn, uv), paint)
        if look.film[1] > 0 and not bare:
            here = sample(paint.pixels, look.film, uv)
            height = here[0] * here[0] * THICKEST
            if height > 0.0:
                flesh.wet = step(0.000002, 0.00002, height)
                flesh.coat = (1.0 - flesh.wet) * flesh.coat + flesh.wet
                cosine = wp.max(-wp.dot(normal, ray) / wp.length(ray), 0.0)
                flesh.colour = fluid_through(flesh.colour, here, height, cosine, look)
                edges = wp.matrix_from_rows(b - a, c - a, normal)
                across = wp.matrix_from_rows(tb - ta, tc - ta)
                flesh.slope = fluid_slope(paint.pixels, look.film, uv, height, edges, across)
    return flesh_light(room, flesh, point, normal, wave, shade, look.dry)
