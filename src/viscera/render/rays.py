"""Light through what fills space: smoke, blood in saline. The same sums as the page's (web/src/look/volume_shaders.ts).

Along a ray light is lost by Beer and Lambert, and what is scattered towards the eye is added:

    T(s) = exp(−∫₀ˢ σ ds'),     L = T(S) L_behind + ∫₀ˢ T σ a (k_lamp E_lamp T + k_room E_room) ds,

with σ the density in the box [1/m] and a the share that is scattered. The lamp sits beside the lens, so its light comes
through the same smoke as it goes back through. A ray is cut into steps of about one and a half cells, in each of which
σ is constant and the integral exact; it ends at the nearest solid. Smoke is smooth: rays go through every sixth pixel
of every sixth row, and through the last ones. A pixel between them lies between the four around linearly; at a border,
those that ended at its own depth count the most, and where none did, the pixel has a ray of its own.
"""

from __future__ import annotations

import warp as wp

from viscera.imaging.lens import LensView
from viscera.render.light import LAMP, Surroundings, step, to_byte, vignette
from viscera.render.raster import ray_of

wp.set_module_options({"enable_backward": False})

LAMP_LIGHT = wp.constant(0.30)
ROOM_LIGHT = wp.constant(0.075)
"""Shares of the lamp and of the room that a white cloud gives back; tuned for appearance, as the page has them."""
DARKEST = wp.constant(0.01)
"""Less light than this is none."""
SOFT = wp.constant(0.12)
"""Share of the box along which it fades towards its sides, which nobody should see."""
FARTHEST = wp.constant(60.0)
"""[m]"""
LEAST_STEPS, MOST_STEPS = wp.constant(4), wp.constant(96)
STEP = wp.constant(1.5)
"""Cells in a step: smoke between two of them is linear, so no finer than that."""
BORDER = wp.constant(1000.0)
"""How little a ray counts that ended at another depth, per share of that depth."""
APART = wp.constant(6)
"""Pixels between two rays, along rows and columns."""
OTHER = wp.constant(0.01)
"""A pixel that is farther than this from all four rays around it, as a share of its depth, has a ray of its own."""
FARTHER = wp.constant(0.02)
"""What a ray counts at least of one through the pixel itself, if it ended at its depth and the others did not."""


@wp.struct
class VolumeView:
    """A volume as kernels read it."""

    first: int
    """Of its texels."""
    cells: wp.vec3i
    low: wp.vec3
    """Lowest corner of the box [m]."""
    size: wp.vec3
    """Its sides [m]."""
    filled_low: wp.vec3
    """What of it is not empty, 0 to 1 along each side."""
    filled_high: wp.vec3
    densest: float
    """[1/m]"""
    extinction: wp.vec3
    albedo: wp.vec3
    dye_extinction: wp.vec3
    dye_albedo: wp.vec3


@wp.struct
class Filling:
    """All volumes of a scene."""

    count: wp.array(dtype=wp.int32)
    volume: wp.array(dtype=VolumeView)
    texels: wp.array(dtype=wp.uint8)
    corners: wp.array(dtype=wp.vec4)
    """Of each texel, as `gather_corners` has it."""


@wp.kernel
def gather_corners(
    first: int,
    # params
    turn: int,
    # in
    filling: Filling,
    # out
    corners_out: wp.array(dtype=wp.vec4),
):
    """Each texel's density with those to its right, above and both, 0 to 1: a ray reads two rows of numbers where it
    would read eight bytes far from each other."""
    if turn >= filling.count[0]:
        return
    volume = filling.volume[turn]
    nx = volume.cells[0]
    ny = volume.cells[1]
    t = first + wp.tid()
    if t >= nx * ny * volume.cells[2]:
        return
    i = t % nx
    j = (t // nx) % ny
    right = 4 * wp.min(1, nx - 1 - i)
    above = 4 * nx * wp.min(1, ny - 1 - j)
    c = volume.first + 4 * t
    bytes = wp.vec4(
        float(filling.texels[c]),
        float(filling.texels[c + right]),
        float(filling.texels[c + above]),
        float(filling.texels[c + above + right]),
    )
    corners_out[volume.first // 4 + t] = bytes / 255.0


@wp.func
def density_at(volume: VolumeView, corners: wp.array(dtype=wp.vec4), place: wp.vec3) -> float:
    """0 to 1, between the middles of the texels around linearly, beyond the outermost as theirs."""
    nx = volume.cells[0]
    ny = volume.cells[1]
    nz = volume.cells[2]
    x = wp.clamp(place[0] * float(nx) - 0.5, 0.0, float(nx - 1))
    y = wp.clamp(place[1] * float(ny) - 0.5, 0.0, float(ny - 1))
    z = wp.clamp(place[2] * float(nz) - 0.5, 0.0, float(nz - 1))
    i = int(x)
    j = int(y)
    k = int(z)
    c = volume.first // 4 + (k * ny + j) * nx + i
    near = corners[c]
    far = corners[c + nx * ny * wp.min(1, nz - 1 - k)]
    middle = near + (z - float(k)) * (far - near)
    fx = x - float(i)
    low = middle[0] + fx * (middle[1] - middle[0])
    high = middle[2] + fx * (middle[3] - middle[2])
    return low + (y - float(j)) * (high - low)


@wp.func
def dye_at(volume: VolumeView, texels: wp.array(dtype=wp.uint8), place: wp.vec3) -> float:
    """How much of it is blood, 0 to 1, as the nearest texel has it."""
    i = wp.clamp(int(place[0] * float(volume.cells[0])), 0, volume.cells[0] - 1)
    j = wp.clamp(int(place[1] * float(volume.cells[1])), 0, volume.cells[1] - 1)
    k = wp.clamp(int(place[2] * float(volume.cells[2])), 0, volume.cells[2] - 1)
    at = volume.first + 4 * ((k * volume.cells[1] + j) * volume.cells[0] + i) + 1
    return float(texels[at]) / 255.0


@wp.func
def soft_at(place: wp.vec3) -> float:
    x = step(0.0, SOFT, wp.min(place[0], 1.0 - place[0]))
    return x * step(0.0, SOFT, wp.min(place[1], 1.0 - place[1]))


@wp.func
def rays_along(pixels: int) -> int:
    """In a row or column of so many pixels."""
    return (pixels + APART - 2) // APART + 1


@wp.func
def solid_depth(room: Surroundings, ray: wp.vec3, depth: float) -> float:
    """Of what is seen, the cloth included."""
    found = wp.min(depth, FARTHEST)
    falls = wp.dot(room.up, ray)
    if room.cloth == 1 and falls < 0.0:
        cloth = wp.dot(room.up, room.floor) / falls
        if cloth > 0.0:
            found = wp.min(found, cloth)
    return found


@wp.func
def over_sides(low: float, high: float, eye: float, way: float) -> wp.vec2:
    """Where a ray is between two planes across one axis, as depths."""
    found = wp.vec2(-1.0e9, 1.0e9)
    if wp.abs(way) > 1.0e-9:
        one = (low - eye) / way
        other = (high - eye) / way
        found = wp.vec2(wp.min(one, other), wp.max(one, other))
    elif eye < low or eye > high:
        found = wp.vec2(1.0e9, -1.0e9)
    return found


@wp.struct
class Passed:
    """What a ray has met in a volume."""

    scattered: wp.vec3
    """Light towards the eye."""
    kept: wp.vec3
    """Share of the light from behind that comes through."""


@wp.func
def pass_through(
    lens: LensView,
    room: Surroundings,
    filling: Filling,
    turn: int,
    column: int,
    row: int,
    solid: float,
) -> Passed:
    """Through volume number `turn` along the ray of a pixel, to the depth of what is solid."""
    volume = filling.volume[turn]
    found = Passed()
    found.scattered = wp.vec3(0.0, 0.0, 0.0)
    found.kept = wp.vec3(1.0, 1.0, 1.0)
    ray = ray_of(lens, column, row)
    start = wp.cw_div(lens.eye - volume.low, volume.size)
    way = wp.cw_div(ray[0] * lens.right + ray[1] * lens.up - lens.back, volume.size)
    x = over_sides(volume.filled_low[0], volume.filled_high[0], start[0], way[0])
    y = over_sides(volume.filled_low[1], volume.filled_high[1], start[1], way[1])
    z = over_sides(volume.filled_low[2], volume.filled_high[2], start[2], way[2])
    begin = wp.max(wp.max(wp.max(x[0], y[0]), z[0]), 0.0)
    end = wp.min(wp.min(wp.min(x[1], y[1]), z[1]), solid)
    if end > begin:
        cell = wp.min(volume.size[0] / float(volume.cells[0]), volume.size[1] / float(volume.cells[1]))
        cell = wp.min(cell, volume.size[2] / float(volume.cells[2]))
        long = (end - begin) * wp.length(ray)
        steps = wp.clamp(int(long / (STEP * cell)) + 1, LEAST_STEPS, MOST_STEPS)
        metres = long / float(steps)
        lit = vignette(lens, column, row)
        for k in range(steps):
            at = begin + (float(k) + 0.5) / float(steps) * (end - begin)
            place = start + at * way
            dense = density_at(volume, filling.corners, place)
            if dense > 0.0:
                dense = dense * soft_at(place)
                dye = dye_at(volume, filling.texels, place)
                loss = (1.0 - dye) * volume.extinction + dye * volume.dye_extinction
                albedo = (1.0 - dye) * volume.albedo + dye * volume.dye_albedo
                thick = -volume.densest * dense * metres
                through = wp.vec3(wp.exp(thick * loss[0]), wp.exp(thick * loss[1]), wp.exp(thick * loss[2]))
                point = at * ray
                to_lamp = LAMP - point
                lamp = LAMP_LIGHT * room.power / wp.dot(to_lamp, to_lamp)
                dim = ROOM_LIGHT * room.power / wp.dot(point, point)
                # ∫ T² σ ds over a step is its ∫ T σ ds times the mean of T at both ends.
                light = 0.5 * lamp * wp.cw_mul(found.kept, wp.vec3(1.0, 1.0, 1.0) + through) + wp.vec3(dim, dim, dim)
                lost = wp.cw_mul(found.kept, wp.vec3(1.0, 1.0, 1.0) - through)
                found.scattered += lit * wp.cw_mul(wp.cw_mul(lost, albedo), light)
                found.kept = wp.cw_mul(found.kept, through)
                if wp.max(found.kept[0], wp.max(found.kept[1], found.kept[2])) < DARKEST:
                    break
    return found


@wp.kernel
def follow_rays(
    first: int,
    # params
    turn: int,
    # in
    eye: wp.array(dtype=LensView),
    around: wp.array(dtype=Surroundings),
    filling: Filling,
    depth: wp.array(dtype=wp.float32),
    # out
    scattered_out: wp.array(dtype=wp.vec4),
    kept_out: wp.array(dtype=wp.vec3),
):
    """Through volume number `turn`: light that is scattered, with the depth where the ray ends, and the share of light
    that comes through."""
    if turn >= filling.count[0]:
        return
    e = first + wp.tid()
    lens = eye[0]
    width = wp.int32(lens.width)
    across = rays_along(width)
    row = wp.min(APART * (e // across), wp.int32(lens.height) - 1)
    column = wp.min(APART * (e % across), width - 1)
    solid = solid_depth(around[0], ray_of(lens, column, row), depth[row * width + column])
    found = pass_through(lens, around[0], filling, turn, column, row, solid)
    scattered_out[e] = wp.vec4(found.scattered[0], found.scattered[1], found.scattered[2], solid)
    kept_out[e] = found.kept


@wp.func
def counts(share: float, end: float, own: float) -> float:
    """What a ray counts in a pixel: `share` by its place, less where it ended at another depth than the pixel's own."""
    return (share + FARTHER) * own / (own + BORDER * wp.abs(end - own))


@wp.func
def is_apart(end: float, own: float) -> wp.bool:
    return wp.abs(end - own) > OTHER * own


@wp.kernel
def lay_over(
    first: int,
    # params
    turn: int,
    # in
    eye: wp.array(dtype=LensView),
    around: wp.array(dtype=Surroundings),
    filling: Filling,
    light_of: wp.array(dtype=wp.float32),
    depth: wp.array(dtype=wp.float32),
    scattered: wp.array(dtype=wp.vec4),
    kept: wp.array(dtype=wp.vec3),
    # out
    colour_out: wp.array(dtype=wp.vec3ub),
):
    """Over the square of pixels between four rays. `light_of` is `from_screen` of each byte. What is too thin for a ray
    of its own, as an instrument or a drop, has its pixels' own rays."""
    if turn >= filling.count[0]:
        return
    e = first + wp.tid()
    lens = eye[0]
    width = wp.int32(lens.width)
    height = wp.int32(lens.height)
    across = rays_along(width)
    row = e // across
    column = e - row * across
    left = APART * column
    right = wp.min(left + APART, width - 1)
    top = APART * row
    bottom = wp.min(top + APART, height - 1)
    if left > right or top > bottom:
        return  # rays of the last row and column have no square of their own
    beside = wp.min(1, across - 1 - column)
    below = across * wp.min(1, rays_along(height) - 1 - row)
    a = scattered[e]
    b = scattered[e + beside]
    c = scattered[e + below]
    d = scattered[e + below + beside]
    ka = kept[e]
    kb = kept[e + beside]
    kc = kept[e + below]
    kd = kept[e + below + beside]
    least = wp.min(wp.min(wp.min(ka), wp.min(kb)), wp.min(wp.min(kc), wp.min(kd)))
    most = wp.max(a[0] + a[1] + a[2], b[0] + b[1] + b[2])
    most = wp.max(most, wp.max(c[0] + c[1] + c[2], d[0] + d[1] + d[2]))
    if most < 1.0e-5 and least > 0.9995:
        return
    nearest = wp.min(wp.min(a[3], b[3]), wp.min(c[3], d[3]))
    farthest = wp.max(wp.max(a[3], b[3]), wp.max(c[3], d[3]))
    is_even = farthest - nearest < OTHER * nearest
    room = around[0]
    for y in range(top, wp.min(top + APART, height)):
        down = float(y - top) / float(wp.max(bottom - top, 1))
        for x in range(left, wp.min(left + APART, width)):
            i = y * width + x
            aside = float(x - left) / float(wp.max(right - left, 1))
            own = solid_depth(room, ray_of(lens, x, y), depth[i])
            wa = (1.0 - aside) * (1.0 - down)
            wb = aside * (1.0 - down)
            wc = (1.0 - aside) * down
            wd = aside * down
            if is_even and own > (1.0 - OTHER) * nearest and own < (1.0 + OTHER) * farthest:
                mixed = wa * a + wb * b + wc * c + wd * d
                added = wp.vec3(mixed[0], mixed[1], mixed[2])
                through = wa * ka + wb * kb + wc * kc + wd * kd
            elif is_apart(a[3], own) and is_apart(b[3], own) and is_apart(c[3], own) and is_apart(d[3], own):
                alone = pass_through(lens, room, filling, turn, x, y, own)
                added = alone.scattered
                through = alone.kept
            else:
                wa = counts(wa, a[3], own)
                wb = counts(wb, b[3], own)
                wc = counts(wc, c[3], own)
                wd = counts(wd, d[3], own)
                share = 1.0 / (wa + wb + wc + wd)
                mixed = share * (wa * a + wb * b + wc * c + wd * d)
                added = wp.vec3(mixed[0], mixed[1], mixed[2])
                through = share * (wa * ka + wb * kb + wc * kc + wd * kd)
            under = colour_out[i]
            colour_out[i] = wp.vec3ub(
                to_byte(light_of[wp.int32(under[0])] * through[0] + added[0]),
                to_byte(light_of[wp.int32(under[1])] * through[1] + added[1]),
                to_byte(light_of[wp.int32(under[2])] * through[2] + added[2]),
            )
