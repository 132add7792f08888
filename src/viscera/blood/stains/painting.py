"""Cloth that has more than it holds gives to the cells beside, and what has changed is painted."""

# ruff: noqa: RUF046 SIM102

from __future__ import annotations

import warp as wp

from viscera.blood.drops.around import RUN, TOOL_COLUMNS, TOOL_ROWS, TOOL_STEP, Around, Cells, Cloth
from viscera.blood.film.params import LITTLE

wp.set_module_options({"enable_backward": False})

WICK = wp.constant(4)
"""One over the part of a difference that passes between two cells in one turn; below 2 it would swing."""

STILL = wp.constant(100)
"""Cells that differ by less than this part of what they hold, one over it, leave each other alone: wicking ends."""

_LITTLE = wp.constant(LITTLE)


@wp.func
def _exchange(cells: Cells, i: int, j: int, holds: int) -> wp.bool:
    """Of two cells the one that has more than cloth holds gives; whether anything passed."""
    here = cells.content[i]
    there = cells.content[j]
    more = wp.max(here, holds) - wp.max(there, holds)
    if wp.abs(more) * STILL <= holds:
        return False
    passes = more / WICK
    source = wp.where(passes > 0, i, j)
    red = int(wp.int64(cells.red[source]) * wp.int64(wp.abs(passes)) / wp.int64(wp.max(cells.content[source], 1)))
    red = wp.where(passes > 0, red, -red)
    cells.content[i] = here - passes
    cells.content[j] = there + passes
    cells.red[i] = cells.red[i] - red
    cells.red[j] = cells.red[j] + red
    return True


@wp.kernel
def wick(
    first: int,
    # params
    cloth: Cloth,
    holds: int,
    step: int,
    odd: int,
    chunk: int,
    # in
    wet: wp.array(dtype=wp.int32),
    # out
    cells_out: Cells,
):
    """Pairs of neighbours along a row (`step` 1) or across rows (`step` the columns), every other one: no cell is in
    two pairs. A thread takes `chunk` runs; those that are not wet, and not beside one that is, have nothing to give."""
    begin = (first + wp.tid()) * chunk
    across = cloth.columns // RUN
    for run in range(begin, wp.min(begin + chunk, wet.shape[0])):
        near = wet[run]
        if run + 1 < wet.shape[0]:
            near = wp.max(near, wet[run + 1])
        if run + across < wet.shape[0]:
            near = wp.max(near, wet[run + across])
        row = run // across
        end = (run + 1) * RUN
        if step == 1:
            if end == (row + 1) * cloth.columns:
                end -= 1  # the row's last cell has none beside it
        elif row % 2 != odd or row + 1 >= cloth.rows:
            near = 0
        if near != 0:
            changed = bool(False)
            # Runs and rows begin at even cells.
            for i in range(run * RUN + wp.where(step == 1, odd, 0), end, wp.where(step == 1, 2, 1)):
                # Most cells have less than cloth holds, and a call costs more than this look at them.
                if cells_out.content[i] > holds or cells_out.content[i + step] > holds:
                    if _exchange(cells_out, i, i + step, holds):
                        changed = True
                        cells_out.dirty[(i + step) // RUN] = 1
            if changed:
                cells_out.dirty[run] = 1


@wp.func
def _pixel(volume: float, red: float, area: float, thickest: float) -> wp.uint32:
    """R = 255 √(t/thickest), G the part of blood."""
    thick = wp.sqrt(wp.clamp(volume * _LITTLE / area / thickest, 0.0, 1.0))
    share = wp.clamp(red / wp.max(volume, 1.0), 0.0, 1.0)
    pixel = wp.uint32(thick * 255.0 + 0.5)
    return pixel | (wp.uint32(share * 255.0 + 0.5) << wp.uint32(8))


@wp.kernel
def paint_cloth(
    first: int,
    # params
    cloth: Cloth,
    thickest: float,
    holds: int,
    all_of_it: int,
    chunk: int,
    # out
    wet_out: wp.array(dtype=wp.int32),
    total_out: wp.array(dtype=wp.int64),
    pixel_out: wp.array(dtype=wp.uint32),
    painted_out: wp.array(dtype=wp.int32),
    busy_out: wp.array(dtype=wp.int32),
):
    """Bytes of the runs that have changed, what they hold, and whether more than cloth holds. `all_of_it`: of all runs,
    which stay as they are. A thread takes `chunk` runs."""
    begin = (first + wp.tid()) * chunk
    for run in range(begin, wp.min(begin + chunk, wet_out.shape[0])):
        wet = int(0)
        if cloth.cells.dirty[run] != 0 or all_of_it != 0:
            total = wp.int64(0)
            for i in range(run * RUN, (run + 1) * RUN):
                volume = cloth.cells.content[i]
                total += wp.int64(volume)
                if volume > holds:
                    wet = 1
                pixel_out[i] = _pixel(float(volume), float(cloth.cells.red[i]), cloth.side * cloth.side, thickest)
            total_out[run] = total
            if all_of_it == 0:
                cloth.cells.dirty[run] = 0
                painted_out[run] = painted_out[run] + RUN
                busy_out[0] = 1
        if all_of_it == 0:
            wet_out[run] = wet


@wp.kernel
def paint_tools(
    first: int,
    # params
    around: Around,
    thickest: float,
    radius: wp.array(dtype=wp.float32),
    all_of_it: int,
    # out
    total_out: wp.array(dtype=wp.int64),
    pixel_out: wp.array(dtype=wp.uint32),
    painted_out: wp.array(dtype=wp.int32),
):
    """The same of instruments; gauze is evenly as red as it is full. The first run of an instrument is marked where its
    gauze has changed, so it stays marked until `clean`."""
    run = first + wp.tid()
    each = TOOL_ROWS * TOOL_COLUMNS // RUN
    tool = run // each
    gauze = around.head[tool] > -1.0
    changed = around.tools.dirty[run] != 0 or (gauze and around.tools.dirty[tool * each] != 0)
    if not changed and all_of_it == 0:
        return
    total = wp.int64(0)
    area = 6.2831853 * radius[tool] / float(TOOL_COLUMNS) * TOOL_STEP
    has = float(around.soaked[tool] - around.changed[tool])
    full = has / wp.max(float(around.holds[tool]), 1.0)
    share = float(around.soaked_red[tool] - around.changed_red[tool]) / wp.max(has, 1.0)
    for i in range(run * RUN, (run + 1) * RUN):
        row = (i // TOOL_COLUMNS) % TOOL_ROWS
        volume = float(around.tools.content[i])
        total += wp.int64(around.tools.content[i])
        pixel_out[i] = _pixel(volume, float(around.tools.red[i]), area, thickest)
        if gauze and float(row) * TOOL_STEP < around.head[tool]:
            thick = wp.uint32(wp.clamp(wp.sqrt(full), 0.0, 1.0) * 255.0 + 0.5)
            pixel_out[i] = thick | (wp.uint32(wp.clamp(share, 0.0, 1.0) * 255.0 + 0.5) << wp.uint32(8))
    total_out[run] = total
    if all_of_it == 0:
        painted_out[run] = painted_out[run] + RUN


@wp.kernel
def clean(
    first: int,
    # out
    dirty_out: wp.array(dtype=wp.int32),
    busy_out: wp.array(dtype=wp.int32),
):
    i = first + wp.tid()
    if dirty_out[i] != 0:
        dirty_out[i] = 0
        busy_out[0] = 1
