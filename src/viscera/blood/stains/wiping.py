"""Gauze takes up what it touches: stains of cloth and instruments, film, pools; cloth takes up film that reaches it."""

from __future__ import annotations

import warp as wp

from viscera.blood.columns import DRY, PARTS, PoolView, volume_in
from viscera.blood.drops.around import (
    RUN,
    TOOL_COLUMNS,
    TOOL_ROWS,
    TOOL_STEP,
    Around,
    Cells,
    cloth_cell,
    from_axis,
    soaks,
)
from viscera.blood.film.params import LITTLE
from viscera.blood.film.state import SOAKED, STAYS
from viscera.blood.picture.kernels import AROUND, Painting, Texels, tile_of
from viscera.blood.pools.flow import parts_of
from viscera.blood.views import FilmView

wp.set_module_options({"enable_backward": False})

_LITTLE = wp.constant(LITTLE)


@wp.func
def _take(around: Around, cells: Cells, n: int, tool: int):
    """A cell's fluid goes into a gauze."""
    if cells.content[n] > 0:
        wp.atomic_add(around.soaked, tool, wp.int64(cells.content[n]))
        wp.atomic_add(around.soaked_red, tool, wp.int64(cells.red[n]))
        cells.content[n] = 0
        cells.red[n] = 0
        cells.dirty[n // RUN] = 1
        around.tools.dirty[tool * TOOL_ROWS * TOOL_COLUMNS // RUN] = 1


@wp.kernel
def wipe(
    # params
    around: Around,
    reach: float,
    # in
    threads: int,
    # out
    around_out: Around,
):
    """Stains of cloth and instruments within reach of a gauze. On cpu launched by one core. A thread takes rows of the
    cloth, then cells along the bars of other instruments."""
    t = wp.tid()
    for k in range(around.bar_count[0]):
        swab = around.bars[k]
        if soaks(around, swab):
            cloth = around.cloth
            low = wp.min(swab.start[2], swab.end[2]) - swab.radius - reach
            if cloth.columns > 0 and low < cloth.height:
                middle = wp.where(swab.start[2] < swab.end[2], swab.start, swab.end)
                far = swab.radius + reach
                j = int(wp.floor((middle[1] - far - cloth.front) / cloth.side)) + t
                while j <= int(wp.floor((middle[1] + far - cloth.front) / cloth.side)):
                    for i in range(
                        wp.max(int(wp.floor((middle[0] - far - cloth.left) / cloth.side)), 0),
                        wp.min(int(wp.floor((middle[0] + far - cloth.left) / cloth.side)) + 1, cloth.columns),
                    ):
                        x = cloth.left + (float(i) + 0.5) * cloth.side - middle[0]
                        y = cloth.front + (float(j) + 0.5) * cloth.side - middle[1]
                        if j >= 0 and j < cloth.rows and x * x + y * y < far * far:
                            _take(around_out, cloth.cells, j * cloth.columns + i, swab.tool)
                    j += threads
            for other in range(around.bar_count[0]):
                bar = around.bars[other]
                if bar.tool != swab.tool and bar.gauze == 0:
                    row = t
                    while row < TOOL_ROWS:
                        share = ((float(row) + 0.5) * TOOL_STEP - bar.low) / wp.max(bar.high - bar.low, 1.0e-9)
                        if share >= -0.05 and share <= 1.05:
                            at = bar.start + share * (bar.end - bar.start)
                            if wp.length(from_axis(swab, at)) < swab.radius + bar.radius + reach:
                                for column in range(TOOL_COLUMNS):
                                    n = (bar.tool * TOOL_ROWS + row) * TOOL_COLUMNS + column
                                    _take(around_out, around.tools, n, swab.tool)
                        row += threads


@wp.kernel
def wipe_film(
    # params
    around: Around,
    reach: float,
    chunk: int,
    # out
    film_out: FilmView,
):
    """Film within reach of a gauze is taken up. On cpu launched by one core, as atomics there are plain."""
    begin = wp.tid() * chunk
    for k in range(around.bar_count[0]):
        swab = around.bars[k]
        if soaks(around, swab):
            for i in range(begin, wp.min(begin + chunk, film_out.count[0])):
                near = wp.length(from_axis(swab, film_out.position[i])) < swab.radius + reach
                if near and film_out.fate[i] == STAYS:
                    film_out.fate[i] = SOAKED
                    volume = film_out.volume[i]
                    red = wp.clamp(int(float(volume) * film_out.fluid[i][around.blood]), 0, volume)
                    wp.atomic_add(around.soaked, swab.tool, wp.int64(volume))
                    wp.atomic_add(around.soaked_red, swab.tool, wp.int64(red))
                    around.tools.dirty[swab.tool * TOOL_ROWS * TOOL_COLUMNS // RUN] = 1


@wp.kernel
def wipe_picture(
    first: int,
    # params
    around: Around,
    reach: float,
    view: Texels,
    chunk: int,
    # out
    picture_out: Painting,
):
    """Of the film's picture, trails and all: texels within reach of a gauze are clean. Between `splat` and `soften`."""
    begin = (first + wp.tid()) * chunk
    for k in range(around.bar_count[0]):
        swab = around.bars[k]
        if soaks(around, swab):
            for i in range(begin, wp.min(begin + chunk, view.texels.shape[0])):
                t = view.texels[i]
                shown = wp.max(picture_out.kept[t][0], picture_out.trail[t])
                if shown > 0.0 and wp.length(from_axis(swab, view.position[t])) < swab.radius + reach:
                    picture_out.kept[t] = wp.vec4(0.0, 0.0, 0.0, 0.0)
                    picture_out.trail[t] = 0.0
                    picture_out.tile[tile_of(view, t)] = picture_out.frame[0]
                    for n in range(AROUND):
                        picture_out.tile[tile_of(view, view.around[i, n])] = picture_out.frame[0]


@wp.kernel
def run_onto_cloth(
    # params
    around: Around,
    touch: float,
    chunk: int,
    # out
    film_out: FilmView,
):
    """Film that has come down to the cloth is in it. On cpu launched by one core, as atomics there are plain."""
    begin = wp.tid() * chunk
    cloth = around.cloth
    for i in range(begin, wp.min(begin + chunk, film_out.count[0])):
        x = film_out.position[i]
        if x[2] < cloth.height + touch and film_out.fate[i] == STAYS:
            # Beside the organ, where it lies on it.
            out = film_out.normal[i]
            n = cloth_cell(cloth, x[0] + cloth.side * out[0], x[1] + cloth.side * out[1])
            if n >= 0:
                film_out.fate[i] = SOAKED
                volume = film_out.volume[i]
                wp.atomic_add(cloth.cells.content, n, volume)
                red = wp.clamp(int(float(volume) * film_out.fluid[i][around.blood]), 0, volume)
                wp.atomic_add(cloth.cells.red, n, red)
                cloth.cells.dirty[n // RUN] = 1


@wp.kernel
def wipe_pool(
    # params
    around: Around,
    reach: float,
    pool: PoolView,
    # out
    pool_out: PoolView,
):
    """What stands higher than a gauze's lowest place in the columns under it. On cpu launched by one core."""
    begin = wp.tid() * pool.chunk
    if pool.wet[0] == 0:
        return
    for k in range(around.bar_count[0]):
        swab = around.bars[k]
        if soaks(around, swab):
            middle = wp.where(swab.start[2] < swab.end[2], swab.start, swab.end)
            low = middle[2] - swab.radius - reach
            for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
                x = pool.left + (float(i % pool.columns) + 0.5) * pool.side - middle[0]
                y = pool.front + (float(i // pool.columns) + 0.5) * pool.side - middle[1]
                if pool.level[i] > DRY and x * x + y * y < swab.radius * swab.radius and pool.level[i] > low:
                    volume = volume_in(pool, i)
                    above = (pool.level[i] - low) * pool.side * pool.side / _LITTLE
                    amount = int(wp.min(above, float(volume)))
                    if amount >= volume - 64:
                        amount = volume
                    parts = parts_of(pool, i, amount)
                    for part in range(PARTS):
                        pool_out.content[PARTS * i + part] = pool.content[PARTS * i + part] - parts[part]
                    wp.atomic_add(around.soaked, swab.tool, wp.int64(amount))
                    wp.atomic_add(around.soaked_red, swab.tool, wp.int64(parts[around.blood]))
                    around.tools.dirty[swab.tool * TOOL_ROWS * TOOL_COLUMNS // RUN] = 1
