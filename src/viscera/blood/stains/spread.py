"""How a drop that hit cloth or an instrument spreads there; `stains` has the equations."""

# ruff: noqa: RUF046 SIM109

from __future__ import annotations

import warp as wp

from viscera.blood.drops.around import RUN, TOOL_COLUMNS, TOOL_ROWS, TOOL_STEP, Around, Bar, Cells, from_axis, tool_cell
from viscera.blood.drops.impact import diameter_of, weber_of
from viscera.blood.views import ON_CLOTH, ON_TOOL, DropView

wp.set_module_options({"enable_backward": False})

LONGEST = wp.constant(6.0)
"""Most of a stain's length over its width: 1/sin of 10°."""

WIDEST = wp.constant(12)
"""Cells that a stain reaches from its middle, at most."""


@wp.struct
class Splat:
    """An ellipse in cells: x around or along x, y along y."""

    first: int
    """Number of the cells' first one."""
    columns: int
    rows: int
    around: int
    """Not 0: the last column lies beside the first."""
    x: float
    y: float
    """Its middle, in cells."""
    size: wp.vec2
    """Of a cell [m]."""
    along: wp.vec2
    """Unit vector of its longer half axis."""
    half: wp.vec2
    """Longer and shorter half axis [m]."""


@wp.func
def _covers(splat: Splat, i: int, j: int) -> wp.bool:
    """Whether a cell's middle lies in it; the cell of its own middle always does."""
    offset = wp.vec2((float(i) + 0.5 - splat.x) * splat.size[0], (float(j) + 0.5 - splat.y) * splat.size[1])
    a = wp.dot(offset, splat.along) / splat.half[0]
    b = (offset[1] * splat.along[0] - offset[0] * splat.along[1]) / splat.half[1]
    own = i == int(wp.floor(splat.x)) and j == int(wp.floor(splat.y))
    return a * a + b * b <= 1.0 or own


@wp.func
def spread(cells: Cells, splat: Splat, volume: int, red: int):
    """Whole picolitres, as many to each cell that it covers; what division leaves is the middle one's."""
    reach_x = wp.min(int(splat.half[0] / splat.size[0]) + 1, WIDEST)
    reach_y = wp.min(int(splat.half[0] / splat.size[1]) + 1, WIDEST)
    middle_x = int(wp.floor(splat.x))
    middle_y = int(wp.floor(splat.y))
    front = wp.max(middle_y - reach_y, 0)
    back = wp.min(middle_y + reach_y + 1, splat.rows)
    covered = int(0)
    for j in range(front, back):
        for i in range(middle_x - reach_x, middle_x + reach_x + 1):
            there = splat.around != 0 or (i >= 0 and i < splat.columns)
            if there and _covers(splat, i, j):
                covered += 1
    each = volume // wp.max(covered, 1)
    each_red = red // wp.max(covered, 1)
    for j in range(front, back):
        for i in range(middle_x - reach_x, middle_x + reach_x + 1):
            there = splat.around != 0 or (i >= 0 and i < splat.columns)
            if there and _covers(splat, i, j):
                column = (i + splat.columns) % splat.columns
                n = splat.first + j * splat.columns + column
                more = each
                more_red = each_red
                if i == middle_x and j == middle_y:
                    more = volume - (covered - 1) * each
                    more_red = red - (covered - 1) * each_red
                wp.atomic_add(cells.content, n, more)
                wp.atomic_add(cells.red, n, more_red)
                cells.dirty[n // RUN] = 1


@wp.func
def _half_axes(volume: int, v: wp.vec3, n: wp.vec3) -> wp.vec2:
    """Longer and shorter half axis of the stain of a drop that comes with v onto a surface with normal n [m]."""
    against = wp.max(-wp.dot(v, n), 0.0)
    wide = wp.max(wp.pow(weber_of(volume, against), 0.25), 1.0)
    short = 0.5 * wide * diameter_of(volume)
    slant = wp.clamp(against / wp.max(wp.length(v), 1.0e-6), 1.0 / LONGEST, 1.0)
    return wp.vec2(short / slant, short)


@wp.func
def _on_cloth(around: Around, x: wp.vec3, v: wp.vec3, volume: int, red: int):
    cloth = around.cloth
    splat = Splat()
    splat.columns = cloth.columns
    splat.rows = cloth.rows
    splat.x = (x[0] - cloth.left) / cloth.side
    splat.y = (x[1] - cloth.front) / cloth.side
    splat.size = wp.vec2(cloth.side, cloth.side)
    flat = wp.vec2(v[0], v[1])
    splat.along = wp.vec2(1.0, 0.0)
    if wp.length(flat) > 1.0e-6:
        splat.along = wp.normalize(flat)
    splat.half = _half_axes(volume, v, wp.vec3(0.0, 0.0, 1.0))
    spread(cloth.cells, splat, volume, red)


@wp.func
def _on_tool(around: Around, bar: Bar, x: wp.vec3, v: wp.vec3, volume: int, red: int):
    if bar.gauze != 0:
        wp.atomic_add(around.soaked, bar.tool, wp.int64(volume))
        wp.atomic_add(around.soaked_red, bar.tool, wp.int64(red))
        around.tools.dirty[bar.tool * TOOL_ROWS * TOOL_COLUMNS // RUN] = 1
        return
    place = tool_cell(bar, x)
    splat = Splat()
    splat.first = bar.tool * TOOL_ROWS * TOOL_COLUMNS
    splat.columns = TOOL_COLUMNS
    splat.rows = TOOL_ROWS
    splat.around = 1
    splat.x = place[1]
    splat.y = place[0]
    splat.size = wp.vec2(6.2831853 * bar.radius / float(TOOL_COLUMNS), TOOL_STEP)
    splat.along = wp.vec2(0.0, 1.0)
    half = _half_axes(volume, v, wp.normalize(from_axis(bar, x)))
    splat.half = wp.vec2(half[1], half[1])
    spread(around.tools, splat, volume, red)


@wp.kernel
def catch_drops(
    # in
    drops: DropView,
    # out
    around_out: Around,
):
    """What has hit cloth or instruments in this step. Sums of whole numbers: the same in any order. On cpu launched by
    one core, as atomics there are plain."""
    begin = wp.tid() * drops.chunk
    for i in range(begin, wp.min(begin + drops.chunk, drops.count[0])):
        fate = drops.fate[i]
        if fate == ON_CLOTH or fate == ON_TOOL:
            volume = drops.volume[i]
            red = wp.clamp(int(float(volume) * drops.fluid[i][around_out.blood]), 0, volume)
            if fate == ON_CLOTH:
                _on_cloth(around_out, drops.position[i], drops.velocity[i], volume, red)
            else:
                bar = around_out.bars[drops.face[i]]
                _on_tool(around_out, bar, drops.position[i], drops.velocity[i], volume, red)
