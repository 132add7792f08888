"""Pictures of many worlds: the functions of `viscera.render`, with an offset for each world."""

from __future__ import annotations

import warp as wp

from viscera.batch.kit import Hands, Kit
from viscera.batch.worlds import Worlds
from viscera.imaging.lens import LensView
from viscera.render.light import Rods, Surroundings, cast_shades, to_byte, vignette
from viscera.render.raster import NOTHING, depth_of, draw_bar, draw_triangle, number_of, ray_of, seen_from
from viscera.render.shading import Shown, light_at, vertex_normal
from viscera.tissue.kernels import LIVE_VISCOUS_TIME, load3
from viscera.tissue.surface import GRAIN

wp.set_module_options({"enable_backward": False})

_GRAINS = wp.constant(1.0 / GRAIN)
_GRAIN = wp.constant(GRAIN)


@wp.struct
class Drawn:
    """A row for each world."""

    vertex: wp.array2d(dtype=wp.vec3)
    """Of the surface [m]."""
    seen: wp.array2d(dtype=wp.vec3)
    normal: wp.array2d(dtype=wp.vec3)
    shade: wp.array2d(dtype=wp.vec2)
    start: wp.array2d(dtype=wp.vec3)
    end: wp.array2d(dtype=wp.vec3)
    """Of each bar of each tool [m]."""
    there: wp.array2d(dtype=wp.int32)
    """Whether it is in the body."""
    tip: wp.array2d(dtype=wp.vec4)
    tail: wp.array2d(dtype=wp.vec4)
    """Its ends in the eye's frame and its radius, for shadows [m]."""
    key: wp.array2d(dtype=wp.int64)
    colour: wp.array2d(dtype=wp.vec3ub)
    depth: wp.array2d(dtype=wp.float32)
    part: wp.array2d(dtype=wp.int32)


@wp.kernel
def follow_worlds(
    first: int,
    # params
    slots: int,
    substeps: int,
    rest: wp.array(dtype=wp.vec3),
    places: wp.array2d(dtype=wp.int32),
    weights: wp.array2d(dtype=wp.float32),
    # in
    worlds: Worlds,
    # out
    drawn: Drawn,
):
    """x = X + Σ w·u, as tissue/surface.py has it."""
    index = first + wp.tid()
    world = index // rest.shape[0]
    vertex = index % rest.shape[0]
    position = worlds.position[world, (worlds.clock[world, 0] * substeps) % 2]
    velocity = worlds.velocity[world]
    tau = worlds.live[world, LIVE_VISCOUS_TIME]
    u = wp.vec3()
    for corner in range(8):
        i = places[vertex, corner]
        u += weights[vertex, corner] * (load3(position, slots, i) - tau * load3(velocity, slots, i))
    for c in range(3):
        u[c] = _GRAIN * wp.rint(_GRAINS * u[c])
    drawn.vertex[world, vertex] = rest[vertex] + u


@wp.kernel
def follow_tools(
    first: int,
    # params
    kit: Kit,
    most: int,
    # in
    eye: wp.array(dtype=LensView),
    hands: Hands,
    # out
    drawn: Drawn,
):
    """Where the bars of a world's tools are; `most` is the room for bars of a tool."""
    index = first + wp.tid()
    bars = kit.tools * most
    world = index // bars
    row = index % bars
    tool = row // most
    bar = row % most
    drawn.there[world, row] = 0
    if bar < kit.bars[tool] and hands.active[world, tool] != 0 and hands.inside[world, tool] != 0:
        drawn.there[world, row] = 1
        ends = hands.ends[world, tool]
        a = wp.vec3(float(ends[2 * bar, 0]), float(ends[2 * bar, 1]), float(ends[2 * bar, 2]))
        b = wp.vec3(float(ends[2 * bar + 1, 0]), float(ends[2 * bar + 1, 1]), float(ends[2 * bar + 1, 2]))
        radius = float(kit.radius[tool, bar])
        drawn.start[world, row] = a
        drawn.end[world, row] = b
        a = seen_from(eye[0], a)
        b = seen_from(eye[0], b)
        drawn.tip[world, row] = wp.vec4(a[0], a[1], a[2], radius)
        drawn.tail[world, row] = wp.vec4(b[0], b[1], b[2], radius)


@wp.kernel
def see_worlds(
    first: int,
    # params
    corner: wp.array(dtype=wp.vec3i),
    begin: wp.array(dtype=wp.int32),
    beside: wp.array(dtype=wp.int32),
    # in
    eye: wp.array(dtype=LensView),
    # out
    drawn: Drawn,
):
    """Vertices in the eye's frame, with their normals and the shadows of tools. Bars that are there come first."""
    index = first + wp.tid()
    vertices = drawn.vertex.shape[1]
    world = index // vertices
    v = index % vertices
    lens = eye[0]
    position = drawn.vertex[world]
    normal = vertex_normal(v, lens, position, corner, begin, beside)
    point = seen_from(lens, position[v])
    rods = Rods()
    shade = wp.vec2(1.0, 1.0)
    for row in range(drawn.there.shape[1]):
        if drawn.there[world, row] != 0:
            rods.tip = drawn.tip[world, row:]
            rods.end = drawn.tail[world, row:]
            shade = wp.cw_mul(shade, cast_shades(point, normal, 1, rods))
    drawn.seen[world, v] = point
    drawn.normal[world, v] = normal
    drawn.shade[world, v] = shade


@wp.kernel
def clear_worlds(
    first: int,
    # out
    drawn: Drawn,
):
    index = first + wp.tid()
    drawn.key[index // drawn.key.shape[1], index % drawn.key.shape[1]] = NOTHING


@wp.kernel
def draw_worlds(
    first: int,
    # params
    triangles: int,
    bar_first: int,
    corner: wp.array(dtype=wp.vec3i),
    # in
    eye: wp.array(dtype=LensView),
    # out
    drawn: Drawn,
):
    """A triangle, or a bar, of a world."""
    index = first + wp.tid()
    each = triangles + drawn.there.shape[1]
    world = index // each
    number = index % each
    lens = eye[0]
    rows = wp.int32(lens.height)
    key = drawn.key[world]
    if number < triangles:
        draw_triangle(number, lens, 0, rows, corner[number], drawn.seen[world], key)
    elif drawn.there[world, number - triangles] != 0:
        bar = number - triangles
        p = drawn.tip[world, bar]
        q = drawn.tail[world, bar]
        a = wp.vec3(p[0], p[1], p[2])
        draw_bar(bar_first + bar, lens, 0, rows, a, wp.vec3(q[0], q[1], q[2]), p[3], key)


@wp.kernel
def shade_worlds(
    first: int,
    # params
    shown: Shown,
    background: wp.array(dtype=wp.vec3ub),
    # in
    eye: wp.array(dtype=LensView),
    around: wp.array(dtype=Surroundings),
    # out
    drawn: Drawn,
):
    """What each pixel of each world shows, how far it is, and the light in it."""
    index = first + wp.tid()
    pixels = drawn.key.shape[1]
    world = index // pixels
    i = index % pixels
    found = drawn.key[world, i]
    if found == NOTHING:
        drawn.colour[world, i] = background[i]
        drawn.depth[world, i] = wp.inf
        drawn.part[world, i] = 0
        return
    mine = shown
    mine.triangles.seen = drawn.seen[world]
    mine.triangles.normal = drawn.normal[world]
    mine.triangles.shade = drawn.shade[world]
    mine.bars.start = drawn.start[world]
    mine.bars.end = drawn.end[world]
    lens = eye[0]
    width = wp.int32(lens.width)
    row = i // width
    column = i - row * width
    light = light_at(found, ray_of(lens, column, row), lens, around[0], mine) * vignette(lens, column, row)
    drawn.colour[world, i] = wp.vec3ub(to_byte(light[0]), to_byte(light[1]), to_byte(light[2]))
    drawn.depth[world, i] = depth_of(found)
    number = number_of(found)
    if number < shown.bar_first:
        drawn.part[world, i] = shown.looks[shown.triangles.surface[number]].part
    else:
        drawn.part[world, i] = shown.bars.look[number - shown.bar_first].part
