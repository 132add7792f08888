"""What stands in a particle's way: the obstacle map, drains, and the sides of a sheet.

The document only leaves blood out of the picture where an obstacle is (§6.2.6). Here particles flow around it as well:
a move that ends on a texel whose obstacle is higher than the film's own blood value (density over that of a film at
rest) loses its part uphill, and is not made if that does not help. So a thick film runs over what a thin one runs
around. Negative texels are drains (§6.2.5).
"""

from __future__ import annotations

import warp as wp

from viscera.blood.film.pairs import FilmView
from viscera.blood.film.state import DRAINED, STAYS
from viscera.blood.film.walk import Walked, WalkView, face_normal, into_plane, walk

wp.set_module_options({"enable_backward": False})

ATTEMPTS = wp.constant(3)
"""Ways around an obstacle that are tried in a step."""

STEEP = wp.constant(4.0)
"""Obstacles above this count as this when their slope is asked for, so that a mask does not drown its neighbours."""


@wp.struct
class Sheeted:
    """Maps of a sheet, or of a surface's parts."""

    has_tangents: int
    tangent_u: wp.array(dtype=wp.vec3)
    tangent_v: wp.array(dtype=wp.vec3)
    """∂x/∂column and ∂x/∂row [m]."""
    obstacle: wp.array(dtype=float)
    has_obstacles: int


@wp.struct
class Slid:
    position: wp.vec3
    moved: wp.vec3
    fate: int


@wp.func
def value_at(obstacle: wp.array(dtype=float), start: int, width: int, height: int, column: int, row: int) -> float:
    return obstacle[start + wp.clamp(row, 0, height - 1) * width + wp.clamp(column, 0, width - 1)]


@wp.func
def slope_at(obstacle: wp.array(dtype=float), start: int, width: int, height: int, column: int, row: int) -> wp.vec2:
    """Where the obstacle rises, by Sobel's weights, per texel."""
    total = wp.vec2(0.0, 0.0)
    for k in range(9):
        i = k % 3 - 1
        j = k // 3 - 1
        value = wp.min(value_at(obstacle, start, width, height, column + i, row + j), STEEP)
        total += wp.vec2(float(i * (2 - j * j)), float(j * (2 - i * i))) * (value / 8.0)
    return total


@wp.func
def down_only(d: wp.vec3, slope: wp.vec3, attempt: int) -> wp.vec3:
    """`d` without its part up the slope; at further attempts some way back down: texels are stairs, and the one beside
    may be in the way as well."""
    size = wp.length(slope)
    result = d
    if size > 0.0:
        up = slope / size
        result = d - up * (wp.max(wp.dot(d, up), 0.0) + float(attempt) * wp.length(d))
    return result


@wp.func
def blocked(there: float, here: float, thickness: float) -> wp.bool:
    """A film that already stands on an obstacle may move on it."""
    return there > thickness and there > here


# --- on a surface ----------------------------------------------------------------------------------------------------


@wp.func
def texel_there(surface: WalkView, face: int, w: wp.vec3) -> wp.vec2i:
    """Column and row of a place in its part's texture."""
    shape = surface.map[face]
    uv = (
        surface.corner_uv[3 * face] * w[0]
        + surface.corner_uv[3 * face + 1] * w[1]
        + surface.corner_uv[3 * face + 2] * w[2]
    )
    return wp.vec2i(int(wp.floor(uv[0] * float(shape[1]))), int(wp.floor(uv[1] * float(shape[2]))))


@wp.func
def obstacle_there(surface: WalkView, sheet: Sheeted, face: int, w: wp.vec3) -> float:
    shape = surface.map[face]
    result = float(0.0)
    if sheet.has_obstacles != 0 and shape[1] > 0:
        texel = texel_there(surface, face, w)
        result = value_at(sheet.obstacle, shape[0], shape[1], shape[2], texel[0], texel[1])
    return result


@wp.func
def slope_there(surface: WalkView, sheet: Sheeted, face: int, w: wp.vec3) -> wp.vec3:
    """The obstacle's slope in space [1/m]: what it rises along the triangle's edges, through their dual basis."""
    shape = surface.map[face]
    texel = texel_there(surface, face, w)
    g = slope_at(sheet.obstacle, shape[0], shape[1], shape[2], texel[0], texel[1])
    size = wp.vec2(float(shape[1]), float(shape[2]))
    t = surface.triangles[face]
    a = surface.vertices[t[0]]
    e = surface.vertices[t[1]] - a
    f = surface.vertices[t[2]] - a
    along_e = wp.cw_mul(surface.corner_uv[3 * face + 1] - surface.corner_uv[3 * face], size)
    along_f = wp.cw_mul(surface.corner_uv[3 * face + 2] - surface.corner_uv[3 * face], size)
    n = wp.cross(e, f)
    area = wp.dot(n, n)
    result = wp.vec3(0.0, 0.0, 0.0)
    if area > 0.0:
        result = (wp.cross(f, n) * wp.dot(g, along_e) + wp.cross(n, e) * wp.dot(g, along_f)) / area
    return result


@wp.func
def go_on_surface(
    surface: WalkView, sheet: Sheeted, face: int, weights: wp.vec3, d: wp.vec3, thickness: float
) -> Walked:
    n = face_normal(surface, face)
    flat = into_plane(n, d)
    went = walk(surface, face, weights, flat)
    here = obstacle_there(surface, sheet, face, weights)
    there = obstacle_there(surface, sheet, went.face, went.weights)
    if blocked(there, here, thickness):
        slope = into_plane(n, slope_there(surface, sheet, went.face, went.weights))
        for attempt in range(ATTEMPTS):
            if blocked(there, here, thickness):
                went = walk(surface, face, weights, down_only(flat, slope, attempt))
                there = obstacle_there(surface, sheet, went.face, went.weights)
        if blocked(there, here, thickness):
            went.face = face
            went.weights = weights
            went.moved = wp.vec3(0.0, 0.0, 0.0)
            there = here
    if there < 0.0:
        went.fate = DRAINED
    return went


# --- on a sheet ------------------------------------------------------------------------------------------------------


@wp.func
def wrapped(x: float, size: float) -> float:
    y = x - size * wp.floor(x / size)
    # Just below zero, rounding gives the size itself.
    if y >= size:
        y = float(0.0)
    return y


@wp.func
def texel_of(view: FilmView, point: wp.vec3) -> int:
    column = wp.clamp(int(wp.floor(point[0])), 0, view.columns - 1)
    row = wp.clamp(int(wp.floor(point[1])), 0, view.rows - 1)
    return row * view.columns + column


@wp.func
def on_sheet(view: FilmView, point: wp.vec3) -> wp.vec3:
    result = point
    if view.wrap != 0:
        result = wp.vec3(wrapped(point[0], view.width), wrapped(point[1], view.height), 0.0)
    return result


@wp.func
def go_on_sheet(view: FilmView, sheet: Sheeted, start: wp.vec3, d: wp.vec3, thickness: float) -> Slid:
    went = Slid()
    went.moved = d
    went.fate = STAYS
    went.position = on_sheet(view, start + d)
    if sheet.has_obstacles != 0:
        here = sheet.obstacle[texel_of(view, start)]
        there = sheet.obstacle[texel_of(view, went.position)]
        if blocked(there, here, thickness):
            column = int(wp.floor(went.position[0]))
            row = int(wp.floor(went.position[1]))
            g = slope_at(sheet.obstacle, 0, view.columns, view.rows, column, row)
            for attempt in range(ATTEMPTS):
                if blocked(there, here, thickness):
                    went.moved = down_only(d, wp.vec3(g[0], g[1], 0.0), attempt)
                    went.position = on_sheet(view, start + went.moved)
                    there = sheet.obstacle[texel_of(view, went.position)]
            if blocked(there, here, thickness):
                went.moved = wp.vec3(0.0, 0.0, 0.0)
                went.position = start
                there = here
        if there < 0.0:
            went.fate = DRAINED
    return went
