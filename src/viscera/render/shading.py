"""The kernels that need to know all: vertices as the eye sees them, what each pixel shows, and the light in it."""

from __future__ import annotations

import warp as wp

from viscera.imaging.lens import LensView
from viscera.render.flesh import Paint, SurfaceLook, Triangles, triangle_light
from viscera.render.light import (
    GHOST,
    INSULATED_FINISH,
    STEEL_FINISH,
    Rods,
    Surroundings,
    cast_shades,
    cloth_light,
    ghost_share,
    glass_light,
    steel_light,
    to_byte,
    vignette,
)
from viscera.render.raster import NOTHING, BallGroup, ball_radius, depth_of, number_of, ray_of, seen_from, turned

wp.set_module_options({"enable_backward": False})

_STEEL = wp.constant(STEEL_FINISH)
_INSULATED = wp.constant(INSULATED_FINISH)
STEP = wp.constant(0.02)
"""A larger step in depth, as a share of it, is a border."""


@wp.struct
class BarLook:
    colour: wp.vec3
    finish: int
    part: int


@wp.struct
class BarSet:
    """Round bars: instruments, markers, threads; ends in the world [m]."""

    start: wp.array(dtype=wp.vec3)
    end: wp.array(dtype=wp.vec3)
    radius: wp.array(dtype=wp.float32)
    look: wp.array(dtype=BarLook)


@wp.struct
class BallSet:
    """Particles: x, y, z in the world [m] and a shade; and the group of each."""

    ball: wp.array(dtype=wp.vec4)
    group_of: wp.array(dtype=wp.int32)
    group: wp.array(dtype=BallGroup)


@wp.struct
class Shown:
    """All that a picture is made of. Numbers of what is seen: triangles from 0, bars from `bar_first`, balls from
    `ball_first`."""

    bar_first: int
    ball_first: int
    triangles: Triangles
    looks: wp.array(dtype=SurfaceLook)
    paint: Paint
    bars: BarSet
    balls: BallSet
    ghost: wp.array(dtype=wp.vec4)
    """What was hidden and is shown: its middle in the world and its radius [m]."""


@wp.func
def vertex_normal(
    v: int, lens: LensView, position: wp.array(dtype=wp.vec3), corner: wp.array(dtype=wp.vec3i),
    begin: wp.array(dtype=wp.int32), beside: wp.array(dtype=wp.int32),
) -> wp.vec3:  # fmt: skip
    """Mean of the triangles around, weighted by area, in the eye's frame; those of vertex v are `beside[begin[v]]` to
    before `beside[begin[v + 1]]`."""
    total = wp.vec3(0.0, 0.0, 0.0)
    for k in range(begin[v], begin[v + 1]):
        t = corner[beside[k]]
        a = position[t[0]]
        total += wp.cross(position[t[1]] - a, position[t[2]] - a)
    return turned(lens, wp.normalize(total))


@wp.kernel
def see_vertices(
    first: int,
    # in
    eye: wp.array(dtype=LensView),
    around: wp.array(dtype=Surroundings),
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    corner: wp.array(dtype=wp.vec3i),
    begin: wp.array(dtype=wp.int32),
    beside: wp.array(dtype=wp.int32),
    rods: Rods,
    # out
    seen_out: wp.array(dtype=wp.vec3),
    normal_out: wp.array(dtype=wp.vec3),
    shade_out: wp.array(dtype=wp.vec2),
):
    """Vertices in the eye's frame, with their normals and the shadows of instruments."""
    v = first + wp.tid()
    if v >= count[1]:
        return
    lens = eye[0]
    normal = vertex_normal(v, lens, position, corner, begin, beside)
    point = seen_from(lens, position[v])
    seen_out[v] = point
    normal_out[v] = normal
    shade_out[v] = cast_shades(point, normal, around[0].shades, rods)


@wp.func
def bar_normal(start: wp.vec3, end: wp.vec3, point: wp.vec3) -> wp.vec3:
    axis = end - start
    t = wp.clamp(wp.dot(point - start, axis) / wp.max(wp.dot(axis, axis), 1.0e-12), 0.0, 1.0)
    return wp.normalize(point - start - t * axis)


@wp.kernel
def shade_background(
    first: int,
    # in
    eye: wp.array(dtype=LensView),
    around: wp.array(dtype=Surroundings),
    # out
    colour_out: wp.array(dtype=wp.vec3ub),
):
    """What is seen where nothing is; it stays the same as long as the eye does not move."""
    i = first + wp.tid()
    lens = eye[0]
    width = wp.int32(lens.width)
    row = i // width
    column = i - row * width
    light = cloth_light(around[0], ray_of(lens, column, row)) * vignette(lens, column, row)
    colour_out[i] = wp.vec3ub(to_byte(light[0]), to_byte(light[1]), to_byte(light[2]))


@wp.func
def light_at(
    found: wp.int64,
    ray: wp.vec3,
    lens: LensView,
    room: Surroundings,
    shown: Shown,
) -> wp.vec3:
    """Of what a key names, along a ray."""
    number = number_of(found)
    depth = depth_of(found)
    point = depth * ray
    light = wp.vec3(0.0, 0.0, 0.0)
    if number < shown.bar_first:
        look = shown.looks[shown.triangles.surface[number]]
        light = triangle_light(number, ray, depth, lens, room, shown.triangles, look, shown.paint)
    elif number < shown.ball_first:
        b = number - shown.bar_first
        normal = bar_normal(seen_from(lens, shown.bars.start[b]), seen_from(lens, shown.bars.end[b]), point)
        if shown.bars.look[b].finish == _STEEL or shown.bars.look[b].finish == _INSULATED:
            light = steel_light(room, point, normal, shown.bars.look[b].finish)
        else:
            light = glass_light(room, point, normal, shown.bars.look[b].colour)
    else:
        b = number - shown.ball_first
        g = shown.balls.group[shown.balls.group_of[b]]
        at = shown.balls.ball[b]
        centre = seen_from(lens, wp.vec3(at[0], at[1], at[2]))
        normal = (point - centre) / ball_radius(lens, g.radius, centre[2])
        colour = g.fluid
        if g.shaded == 1:
            colour = at[3] * g.fluid + (1.0 - at[3]) * g.clear
        light = glass_light(room, point, normal, colour)
    return light


@wp.kernel
def tell_parts(
    first: int,
    # in
    shown: Shown,
    key: wp.array(dtype=wp.int64),
    # out
    depth_out: wp.array(dtype=wp.float32),
    part_out: wp.array(dtype=wp.int32),
):
    """How far and what is seen. A part of 0 is nothing, or the cloth."""
    i = first + wp.tid()
    found = key[i]
    depth = wp.inf
    part = wp.int32(0)
    if found != NOTHING:
        depth = depth_of(found)
        number = number_of(found)
        if number < shown.bar_first:
            part = shown.looks[shown.triangles.surface[number]].part
        elif number < shown.ball_first:
            part = shown.bars.look[number - shown.bar_first].part
        else:
            part = shown.balls.group[shown.balls.group_of[number - shown.ball_first]].part
    depth_out[i] = depth
    part_out[i] = part


@wp.func
def like(a: int, part: wp.array(dtype=wp.int32), depth: wp.array(dtype=wp.float32), b: int) -> bool:
    """Whether two pixels show one surface without a step."""
    return part[a] == part[b] and wp.abs(depth[a] - depth[b]) < STEP * depth[a]


@wp.func
def surrounded(
    i: int,
    row: int,
    column: int,
    lens: LensView,
    part: wp.array(dtype=wp.int32),
    depth: wp.array(dtype=wp.float32),
) -> bool:
    """Whether all four neighbours show the same surface."""
    width = wp.int32(lens.width)
    if column == 0 or column + 1 == width or row == 0 or row + 1 == wp.int32(lens.height):
        return False
    beside = like(i, part, depth, i - 1) and like(i, part, depth, i + 1)
    return beside and like(i, part, depth, i - width) and like(i, part, depth, i + width)


@wp.func
def mean(a: wp.vec3ub, b: wp.vec3ub, c: wp.vec3ub, d: wp.vec3ub, k: int) -> wp.uint8:
    return wp.uint8((wp.int32(a[k]) + wp.int32(b[k]) + wp.int32(c[k]) + wp.int32(d[k]) + 2) // 4)


@wp.kernel
def shade_pixels(
    first: int,
    # params
    turn: int,
    # in
    eye: wp.array(dtype=LensView),
    around: wp.array(dtype=Surroundings),
    shown: Shown,
    background: wp.array(dtype=wp.vec3ub),
    key: wp.array(dtype=wp.int64),
    depth: wp.array(dtype=wp.float32),
    part: wp.array(dtype=wp.int32),
    # out
    colour_out: wp.array(dtype=wp.vec3ub),
):
    """Pixels as the squares of a chessboard: the white ones (`turn` 0), then the black ones (`turn` 1). A black one
    whose four neighbours show the same surface is their mean; `turn` 2 shades black ones as well."""
    e = first + wp.tid()
    lens = eye[0]
    width = wp.int32(lens.width)
    half = (width + 1) // 2
    row = e // half
    column = 2 * (e - row * half) + (row + wp.min(turn, 1)) % 2
    if column >= width:
        return
    i = row * width + column
    found = key[i]
    if found == NOTHING:
        colour_out[i] = background[i]
        return
    if turn == 1 and surrounded(i, row, column, lens, part, depth):
        a = colour_out[i - 1]
        b = colour_out[i + 1]
        c = colour_out[i - width]
        d = colour_out[i + width]
        colour_out[i] = wp.vec3ub(mean(a, b, c, d, 0), mean(a, b, c, d, 1), mean(a, b, c, d, 2))
        return
    ray = ray_of(lens, column, row)
    light = light_at(found, ray, lens, around[0], shown)
    for k in range(around[0].ghosts):
        share = ghost_share(ray, shown.ghost[k], lens)
        light = (1.0 - share) * light + share * GHOST
    light = light * vignette(lens, column, row)
    colour_out[i] = wp.vec3ub(to_byte(light[0]), to_byte(light[1]), to_byte(light[2]))
