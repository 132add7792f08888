"""What lies around the organs and is hit by drops, as kernels see it: a cloth under them, and instruments.

A cloth is a level rectangle of square cells at one height. An instrument is its round bars (`instruments/bars.py`),
with cells around its axis and along it, in its own frame; gauze has an account instead. Cells hold whole picolitres.
"""

# A kernel's `and` looks at both sides.
# ruff: noqa: SIM102

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.blood.columns import DRY, PoolView, column_at, fluid_over, no_pool
from viscera.device import Device

wp.set_module_options({"enable_backward": False})

RUN = 64
"""Cells of a run: what is marked, painted and counted as one. Rows of a cloth are whole runs."""

TOOL_COLUMNS, TOOL_ROWS = 32, 128
"""Cells of an instrument around its axis and along it."""

TOOL_STEP = wp.constant(1.0e-3)
"""Length of a cell along an instrument [m]; farther up than TOOL_ROWS of them all is one row."""

OUTSIDE = wp.constant(2.0)
"""Part of a way at which nothing is met: more than all of it."""


@wp.struct
class Cells:
    """Stains in cells. `content` and `red` are all fluid, and the blood in it [pL]."""

    content: wp.array(dtype=wp.int32)
    red: wp.array(dtype=wp.int32)
    dirty: wp.array(dtype=wp.int32)
    """1 for each run that has changed since it was painted."""


@wp.struct
class Cloth:
    columns: int
    """0: there is no cloth."""
    rows: int
    side: float
    """Of a cell [m]."""
    left: float
    front: float
    """x and y of the first cell's corner [m]."""
    height: float
    """z [m]"""
    cells: Cells


@wp.struct
class Bar:
    """One round bar of an instrument that is in the body, where it is now."""

    start: wp.vec3
    end: wp.vec3
    """Of its axis [m]."""
    moved: wp.vec3
    """How far it has come in the last frame [m]."""
    radius: float
    """[m]"""
    tool: int
    turn: wp.quat
    """From the instrument's frame to the world."""
    low: float
    high: float
    """Where start and end are along the instrument while its jaws are closed [m]."""
    gauze: int
    """Not 0: it is of gauze."""


@wp.struct
class Around:
    """Everything that drops may hit besides tissue."""

    blood: int
    """Which of the fluids is blood."""
    cloth: Cloth
    bars: wp.array(dtype=Bar)
    bar_count: wp.array(dtype=wp.int32)
    """How many of them there are now, shape (1,)."""
    tools: Cells
    """TOOL_ROWS × TOOL_COLUMNS of each instrument."""
    most: float
    """Thickest layer that steel keeps [m]: what comes on top bounces off."""
    soaked: wp.array(dtype=wp.int64)
    soaked_red: wp.array(dtype=wp.int64)
    """What each instrument's gauze has taken up, and the blood in it, shape (tools,) [pL]."""
    changed: wp.array(dtype=wp.int64)
    changed_red: wp.array(dtype=wp.int64)
    """The same as it was last changed for a fresh one, shape (tools,) [pL]."""
    holds: wp.array(dtype=wp.int64)
    """What it can, shape (tools,) [pL]; 0 for one without gauze."""
    pool: PoolView
    """Fluid that stands on the tissue; without columns where there is none."""
    head: wp.array(dtype=wp.float32)
    """Up to here along its axis an instrument is gauze, shape (tools,) [m]; below −1 for one without."""


@wp.struct
class Met:
    """What a drop met on its way."""

    along: float
    """Part of the way; `OUTSIDE` where nothing was met."""
    bar: int
    """−1: the cloth."""


@wp.func
def cloth_cell(cloth: Cloth, x: float, y: float) -> int:
    """Number of the cell at a place, −1 beside the cloth."""
    i = int(wp.floor((x - cloth.left) / cloth.side))
    j = int(wp.floor((y - cloth.front) / cloth.side))
    result = -1
    if i >= 0 and j >= 0 and i < cloth.columns and j < cloth.rows:
        result = j * cloth.columns + i
    return result


@wp.func
def _meet_ball(middle: wp.vec3, radius: float, start: wp.vec3, way: wp.vec3) -> float:
    from_middle = start - middle
    a = wp.max(wp.length_sq(way), 1.0e-20)
    b = wp.dot(way, from_middle)
    inside = b * b - a * (wp.length_sq(from_middle) - radius * radius)
    result = float(OUTSIDE)
    if inside >= 0.0:
        result = (-b - wp.sqrt(inside)) / a
    if result < 0.0:
        result = float(OUTSIDE)
    return result


@wp.func
def from_axis(bar: Bar, x: wp.vec3) -> wp.vec3:
    """From the nearest place of a bar's axis to x [m]."""
    axis = bar.end - bar.start
    share = wp.clamp(wp.dot(x - bar.start, axis) / wp.max(wp.length_sq(axis), 1.0e-20), 0.0, 1.0)
    return x - bar.start - share * axis


@wp.func
def meet_bar(bar: Bar, start: wp.vec3, end: wp.vec3) -> float:
    """Part of the way after which it enters a bar: its round wall, or the balls at its ends. `OUTSIDE` for what begins
    inside it, as it leaves."""
    if wp.length(from_axis(bar, start)) < bar.radius:
        return OUTSIDE
    axis = bar.end - bar.start
    way = end - start
    off = start - bar.start
    square = wp.length_sq(axis)
    # Across the axis: of the way and of where it begins.
    across = way - axis * (wp.dot(way, axis) / wp.max(square, 1.0e-20))
    aside = off - axis * (wp.dot(off, axis) / wp.max(square, 1.0e-20))
    first = float(OUTSIDE)
    a = wp.length_sq(across)
    b = wp.dot(across, aside)
    inside = b * b - a * (wp.length_sq(aside) - bar.radius * bar.radius)
    if square > 1.0e-14 and a > 1.0e-18 and inside >= 0.0:
        along = (-b - wp.sqrt(inside)) / a
        up = wp.dot(off + along * way, axis)
        if along >= 0.0 and up >= 0.0 and up <= square:
            first = along
    first = wp.min(first, _meet_ball(bar.start, bar.radius, start, way))
    first = wp.min(first, _meet_ball(bar.end, bar.radius, start, way))
    if first > 1.0:
        first = float(OUTSIDE)
    return first


@wp.func
def soaks(around: Around, bar: Bar) -> wp.bool:
    """Whether a bar is of gauze that is not full."""
    result = bool(False)
    if bar.gauze != 0:
        result = around.soaked[bar.tool] - around.changed[bar.tool] < around.holds[bar.tool]
    return result


@wp.func
def meet_around(around: Around, start: wp.vec3, end: wp.vec3, moving: float, before: float) -> Met:
    """The first of cloth and bars on a drop's way, if it comes before this part of it. Gauze takes what begins inside
    it; what begins under the cloth's level lies on it."""
    best = Met()
    best.along = OUTSIDE
    best.bar = -1
    for k in range(around.bar_count[0]):
        bar = around.bars[k]
        from_where = start + moving * bar.moved
        along = meet_bar(bar, from_where, end)
        if along > 1.0 and soaks(around, bar) and wp.length(from_axis(bar, from_where)) < bar.radius:
            along = float(0.0)
        if along < best.along:
            best.along = along
            best.bar = k
    cloth = around.cloth
    if cloth.columns > 0 and end[2] <= cloth.height:
        along = wp.clamp((start[2] - cloth.height) / wp.max(start[2] - end[2], 1.0e-12), 0.0, 1.0)
        at = start + along * (end - start)
        if along < best.along and cloth_cell(cloth, at[0], at[1]) >= 0:
            best.along = along
            best.bar = -1
    if best.along >= before:
        best.along = OUTSIDE
    return best


@wp.struct
class Plunge:
    """Where a drop that would hit the ground enters the pool over it."""

    column: int
    """−1: it is dry there."""
    along: float
    """Part of the way."""


@wp.func
def meet_pool(around: Around, start: wp.vec3, end: wp.vec3, ground: wp.vec3, before: float) -> Plunge:
    """`ground` is where the way from start to end, after the part `before`, meets tissue."""
    found = Plunge()
    found.column = -1
    found.along = before
    pool = around.pool
    if pool.columns > 0:
        n = column_at(pool, ground)
        if n >= 0:
            if pool.near[n] != 0:
                level = ground[2] + fluid_over(pool, ground).depth
                if level > ground[2] and start[2] > level:
                    found.along = before * (start[2] - level) / (start[2] - ground[2])
                    found.column = n
                    # Where it goes in, unless that is a dry shore.
                    there = column_at(pool, start + found.along * (end - start))
                    if there >= 0:
                        if pool.level[there] > DRY:
                            found.column = there
                elif level > ground[2]:
                    # It began under the surface.
                    found.along = 0.0
                    found.column = n
    return found


@wp.func
def tool_cell(bar: Bar, at: wp.vec3) -> wp.vec2:
    """Row and column of an instrument's cells at a place on a bar, as they lie while its jaws are closed."""
    axis = bar.end - bar.start
    share = wp.clamp(wp.dot(at - bar.start, axis) / wp.max(wp.length_sq(axis), 1.0e-20), 0.0, 1.0)
    out = wp.quat_rotate_inv(bar.turn, from_axis(bar, at))
    row = (bar.low + share * (bar.high - bar.low) + out[2]) / TOOL_STEP
    turn = wp.atan2(out[1], out[0]) / 6.2831853
    column = (turn - wp.floor(turn)) * float(TOOL_COLUMNS)
    return wp.vec2(wp.clamp(row, 0.0, float(TOOL_ROWS) - 0.5), wp.min(column, float(TOOL_COLUMNS) - 1.0e-3))


@wp.func
def cell_of_tool(bar: Bar, at: wp.vec3) -> int:
    """Number of the cell of an instrument at a place on a bar."""
    place = tool_cell(bar, at)
    return (bar.tool * TOOL_ROWS + int(place[0])) * TOOL_COLUMNS + int(place[1])


@wp.func
def is_full(around: Around, bar: Bar, at: wp.vec3) -> wp.bool:
    """Whether what hits a bar there finds no hold: gauze that is full, steel under as much as it keeps."""
    full = not soaks(around, bar)
    if bar.gauze == 0:
        arc = 6.2831853 * bar.radius / float(TOOL_COLUMNS)
        full = float(around.tools.content[cell_of_tool(bar, at)]) * 1.0e-15 > around.most * arc * TOOL_STEP
    return full


def make_cells(count: int, device: Device) -> Any:
    """Clean ones."""
    cells: Any = Cells()
    cells.content, cells.red = (wp.zeros(count, dtype=wp.int32, device=device.warp) for _ in range(2))
    cells.dirty = wp.zeros(-(-count // RUN), dtype=wp.int32, device=device.warp)
    return cells


def nothing_around(device: Device) -> Any:
    """No cloth and no instrument."""
    cloth: Any = Cloth()
    cloth.side, cloth.cells = 1.0, make_cells(1, device)
    view: Any = Around()
    view.cloth, view.tools, view.pool = cloth, make_cells(1, device), no_pool(device)
    view.bars = wp.zeros(1, dtype=Bar, device=device.warp)
    view.bar_count = wp.zeros(1, dtype=wp.int32, device=device.warp)
    view.head = wp.zeros(1, dtype=wp.float32, device=device.warp)
    for name in ("soaked", "soaked_red", "changed", "changed_red", "holds"):
        setattr(view, name, wp.zeros(1, dtype=wp.int64, device=device.warp))
    return view
