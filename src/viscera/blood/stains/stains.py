"""Stains: blood that has hit cloth and instruments stays there, and gauze takes it up.

A drop that meets the cloth under the organs, or a bar of an instrument, before it meets tissue ends there. With D its
diameter, u_n its speed against the surface and v its velocity, its stain is an ellipse

    2b = β D,  β = max(We^¼, 1),  We = ρ u_n² D/σ          C. Clanet et al., J. Fluid Mech. 517 (2004) 199
    a/b = |v|/u_n,  at most 6                              V. Balthazard et al. 1939: width over length is the sine of
                                                           the angle of impact, as in forensic pattern analysis

over whose cells its picolitres are shared evenly. Cloth holds a layer c; what is more wicks to the cells beside,

    V_i ← V_i − (max(V_i, c) − max(V_j, c))/4      pair by pair, in whole picolitres,

until no two cells beside each other differ by more than a hundredth of c (rate and end are tuned for appearance). Film
that comes down to the cloth, and pools that run over where an organ ends, are taken up. Steel keeps a layer of `steel`;
what comes on top bounces off. Gauze on an instrument (`Soaks`) takes up all drops, film, pools and stains that it
touches until it holds as much as it can.

Stains are in the one ledger: cloth, instruments, gauze (`balance`). Only runs of cells that changed are painted.

The cloth is flat here; the page draws it with folds and projects stains onto them from above. Instruments do not drip.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import warp as wp

from viscera.blood.drops.around import RUN, TOOL_COLUMNS, TOOL_ROWS, Bar, Cloth, make_cells
from viscera.blood.drops.drops import Drops
from viscera.blood.film.params import LITTLE
from viscera.blood.picture.image import FilmImage
from viscera.blood.stains import painting, spread, wiping
from viscera.device import BLOCK, Device, Port, Stage
from viscera.errors import InputError

MOST_CELLS = 2**22
"""Of a cloth."""

NO_GAUZE = -2.0
"""`Around.head` of an instrument without gauze."""

WIPERS = 16
"""Threads that wipe."""

FILM_CHUNK, RUN_CHUNK = 64, 16
"""Particles of the film, and runs of cells, per thread on cpu, where arguments are copied for every thread."""


@dataclass(frozen=True)
class StainParams:
    side: float = 1.0e-3
    """Of a cell of the cloth [m]; fixed."""
    margin: float = 0.15
    """How far the cloth goes on beside the organs [m]; fixed. Drops that fall farther off are lost."""
    holds: float = 0.2e-3
    """c: what cloth holds [m]. Tuned for appearance."""
    steel: float = 0.1e-3
    """What steel keeps [m]. Tuned for appearance."""
    reach: float = 0.5e-3
    """Gauze takes up what is nearer than this [m]."""
    touch: float = 0.5e-3
    """Film nearer to the cloth than this runs into it [m]: twice its thickness at rest."""
    thickest: float = 0.25e-3
    """What 255 means in the pictures [m]."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"{f.name} = {value} is not possible.", "It must be a finite number above 0.")


@dataclass(frozen=True)
class Solid:
    """An instrument as stains see it."""

    bars: int
    """How many it has."""
    radius: float
    """Of the thickest [m]."""
    head: float = NO_GAUZE
    """Up to here along its axis it is gauze [m]."""
    holds: float = 0.0
    """What that can take up [m³]."""


@dataclass(eq=False)
class Stains:
    """Made by `make_stains`."""

    params: StainParams
    device: Device
    drops: Drops
    view: Any
    """`Around`: cloth, bars, cells."""
    bars: Port
    """`Bar`, shape (most bars,); the host writes those that are in the body, `bar_count` of them."""
    bar_count: Port
    """How many of them there are, int32, shape (1,)."""
    radius: Any
    """Of each instrument, float32, shape (tools,) [m]."""
    wet: Any
    """1 for each run of the cloth that has more than it holds, int32, shape (runs,)."""
    cloth_total: Any
    tool_total: Any
    """What each run holds, int64, shape (runs,) each [pL]."""
    cloth_pixels: Any
    tool_pixels: Any
    """As `view.Stains` has them, uint32, shape (cells,) each."""
    painted: Any
    """Cells painted so far, by run, cloth first, int32, shape (runs,)."""
    busy: Port
    """Whether anything was painted in the last step, int32, shape (1,)."""
    redraw: Any = None
    """`Program` that makes pictures and sums from the cells."""

    @property
    def sums(self) -> tuple[Any, Any, Any]:
        """What runs of cells of cloth and of instruments, and what gauze holds, int64 [pL]."""
        return self.cloth_total, self.tool_total, self.view.soaked

    def begin(self, stage: Stage) -> None:
        """Where the bars are now."""
        stage.upload(self.bars)
        stage.upload(self.bar_count)

    def catch(self, stage: Stage) -> None:
        """What has hit something in this step of the drops."""
        air, device = self.drops.state, stage.device.warp
        threads, args = -(-air.capacity // air.chunk), [air.view, self.view]
        stage.once(lambda: wp.launch(spread.catch_drops, dim=threads, inputs=args, device=device))


def make_stains(
    drops: Drops, solids: Sequence[Solid] = (), params: StainParams | None = None, floor: float | None = None
) -> Stains:
    """Clean cloth at height `floor` [m] (under the organs without one) and clean instruments; before anything of
    `drops` is recorded."""
    params, device = params or StainParams(), drops.device
    cloth, count = _cloth(drops, params, floor)
    tools = max(len(solids), 1)
    tool_cells = tools * TOOL_ROWS * TOOL_COLUMNS
    most = max(sum(solid.bars for solid in solids), 1)
    bars, bar_count, busy = device.port(most, Bar), device.port(1, wp.int32), device.port(1, wp.int32)

    def numbers(values: list[float], kind: Any) -> Any:
        return wp.array(values or [0.0], dtype=kind, device=device.warp)

    view = drops.around
    view.blood = drops.film.fluid("blood")
    view.cloth, view.tools, view.most = cloth, make_cells(tool_cells, device), params.steel
    view.bars, view.bar_count = bars.array, bar_count.array
    for name in ("soaked", "soaked_red", "changed", "changed_red"):
        setattr(view, name, wp.zeros(tools, dtype=wp.int64, device=device.warp))
    view.holds = numbers([round(solid.holds / LITTLE) for solid in solids], wp.int64)
    view.head = numbers([solid.head for solid in solids], wp.float32)
    stains = Stains(
        params,
        device,
        drops,
        view,
        bars,
        bar_count,
        numbers([solid.radius for solid in solids], wp.float32),
        wp.zeros(count // RUN, dtype=wp.int32, device=device.warp),
        wp.zeros(count // RUN, dtype=wp.int64, device=device.warp),
        wp.zeros(tool_cells // RUN, dtype=wp.int64, device=device.warp),
        wp.zeros(count, dtype=wp.uint32, device=device.warp),
        wp.zeros(tool_cells, dtype=wp.uint32, device=device.warp),
        wp.zeros((count + tool_cells) // RUN, dtype=wp.int32, device=device.warp),
        busy,
    )
    drops.stains = stains
    stains.redraw = device.record(lambda stage: paint(stage, stains, all_of_it=True), work=count)
    return stains


def _cloth(drops: Drops, params: StainParams, floor: float | None) -> tuple[Any, int]:
    low, high = np.asarray(drops.surface.lower, dtype=np.float64), np.asarray(drops.surface.upper, dtype=np.float64)
    size = (high - low)[:2] + 2.0 * params.margin
    columns = RUN * math.ceil(size[0] / params.side / RUN)
    rows = 32 * math.ceil(size[1] / params.side / 32)
    if columns * rows > MOST_CELLS:
        raise InputError(
            f"side = {params.side:g} m makes {columns} × {rows} cells of cloth.", f"Allowed are {MOST_CELLS}: widen it."
        )
    cloth: Any = Cloth()
    cloth.columns, cloth.rows, cloth.side = columns, rows, params.side
    corner = 0.5 * (low + high)[:2] - 0.5 * params.side * np.array([columns, rows])
    cloth.left, cloth.front = float(corner[0]), float(corner[1])
    cloth.height = float(low[2]) if floor is None else float(floor)
    cloth.cells = make_cells(columns * rows, drops.device)
    return cloth, columns * rows


def step_stains(stage: Stage, stains: Stains) -> None:
    """After a step of the drops: gauze wipes, cloth wicks, what changed is painted."""
    stains.begin(stage)
    stage.clear(stains.busy)
    _wipe(stage, stains)
    view = stains.view
    cloth, holds = view.cloth, _held_by_cell(stains.params)
    chunk = 1 if stage.device.is_cuda else RUN_CHUNK
    threads, block = -(-len(stains.wet) // chunk), max(BLOCK // (RUN * chunk), 1)
    for step, odd in ((1, 0), (1, 1), (cloth.columns, 0), (cloth.columns, 1)):
        stage.launch(painting.wick, threads, [cloth, holds, step, odd, chunk, stains.wet, cloth.cells], block)
    paint(stage, stains, all_of_it=False)
    dirty = view.tools.dirty
    stage.launch(painting.clean, len(dirty), [dirty, stains.busy.array])
    stage.download(stains.busy)


def paint(stage: Stage, stains: Stains, all_of_it: bool) -> None:
    """Pictures and sums of what has changed; or of all, without a change to the state."""
    view, params, painted, runs = stains.view, stains.params, stains.painted, len(stains.wet)
    chunk, block = 1 if stage.device.is_cuda else RUN_CHUNK, max(BLOCK // RUN, 1)
    look = [view.cloth, params.thickest, _held_by_cell(params), int(all_of_it), chunk]
    kept = [stains.wet, stains.cloth_total, stains.cloth_pixels, painted, stains.busy.array]
    stage.launch(painting.paint_cloth, -(-runs // chunk), [*look, *kept], max(block // chunk, 1))
    tools = [view, params.thickest, stains.radius, int(all_of_it)]
    shown = [stains.tool_total, stains.tool_pixels, painted[runs:]]
    stage.launch(painting.paint_tools, len(view.tools.dirty), [*tools, *shown], block)


def _held_by_cell(params: StainParams) -> int:
    """[pL]"""
    return round(params.holds * params.side**2 / LITTLE)


def wipe_picture(stage: Stage, stains: Stains, image: FilmImage) -> None:
    """A film's picture is clean where gauze is; `step_film_image` calls it."""
    texels, block = -(-image.skin.count // image.chunk), max(1, BLOCK // image.chunk)
    args = [stains.view, stains.params.reach, image.view, image.chunk, image.painting]
    stage.launch(wiping.wipe_picture, texels, args, block)


def _wipe(stage: Stage, stains: Stains) -> None:
    view, reach, device = stains.view, stains.params.reach, stage.device.warp
    film = stains.drops.film_view
    chunk = 1 if stage.device.is_cuda else FILM_CHUNK
    jobs = [
        (wiping.wipe, WIPERS, [view, reach, WIPERS, view]),
        (wiping.wipe_film, -(-film.capacity // chunk), [view, reach, chunk, film]),
        (wiping.run_onto_cloth, -(-film.capacity // chunk), [view, stains.params.touch, chunk, film]),
    ]
    pools = stains.drops.pools
    if pools is not None:
        columns = -(-pools.count // pools.view.chunk)
        jobs.append((wiping.wipe_pool, columns, [view, reach, pools.view, pools.view]))
    for kernel, dim, args in jobs:
        stage.once(lambda k=kernel, d=dim, a=args: wp.launch(k, dim=d, inputs=a, device=device))
