"""A flow's arrays, and how they are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.device import Device, Port, Stage
from viscera.errors import InputError
from viscera.grid.dye import COUNTERS
from viscera.grid.loops import part_count, sum_counts
from viscera.grid.numbers import NUMBERS
from viscera.grid.params import GridParams, Side, Substance
from viscera.grid.shape import Layout
from viscera.grid.solids import BAR_FLOATS, FAR, MOST_BARS
from viscera.grid.sources import MOST_SOURCES, SOURCE_FLOATS

COARSEST = 4
"""A grid of no more cells than this along each axis is not coarsened further."""
COARSE_SWEEPS = 6
"""Over both colours, on the coarsest grid."""

EPSILON, RATE, VISCOSITY, FIRST_SUBSTANCE = 0, 1, 2, 4
"""Places in a flow's live numbers: εΔt of confinement, Δt/h of the dye, νΔt/h², then four for each substance."""
LIFT, SPREAD, STAYS, PER_SUBSTANCE = 0, 1, 2, 4


@dataclass(eq=False)
class Level:
    """One grid of the multigrid; the first is the flow's own."""

    layout: Layout
    shape: Any
    faces: tuple[Any, Any, Any]
    """Open shares of the faces across x, y, z."""
    inverse: Any
    """One over their sum around a cell; 0 where there is no fluid."""
    needed: Any
    """What its pressure is to take away."""
    pressure: Any
    residual: Any


@dataclass(eq=False)
class Carried:
    """A substance in the flow."""

    substance: Substance
    value: Any
    """Amount in a volume [amount/m³], or value, of each cell."""
    other: Any
    """Scratch of the same size."""
    amount: Any = None
    """Whole units in each cell, int32, of a conservative one."""


@dataclass(eq=False)
class Grid:
    """Made by `make`. Arrays are flat, float32 and of one shape unless they say otherwise, as `Layout` has it."""

    params: GridParams
    device: Device
    native: bool
    """Whether loops in C are used."""
    layout: Layout
    spread_sweeps: int
    """Of viscosity and diffusivity, as programs have recorded them."""
    velocity: tuple[Any, Any, Any]
    """Of fluid at the faces across x, y, z [m/s]."""
    other: tuple[Any, Any, Any]
    """Scratch of the same size."""
    third: tuple[Any, Any, Any]
    """More of it."""
    levels: list[Level]
    """Of the multigrid, the finest first."""
    solid: tuple[Any, Any, Any]
    """Velocity of what covers faces [m/s]."""
    still: Any
    """Distance of organs and walls from corners, above 0 in fluid [m]."""
    drift: tuple[Any, Any, Any]
    """Velocity of organs at corners [m/s]; 0 unless they bend (bending.py)."""
    distance: Any
    """As `still`, with bars [m]."""
    box: Any
    """1 in the box and beyond its open sides."""
    cells: Any
    """1 in the box alone."""
    fluid: Any
    """1 in the box and beyond its open sides, where there is no solid."""
    bars: Port
    """Rows of `BAR_FLOATS`, as solids.py has them."""
    bar_count: Port
    """int32, one."""
    sources: Port
    """Rows of `SOURCE_FLOATS`, as sources.py has them."""
    source_count: Port
    """int32, one."""
    source_units: Port
    """Of conservative substances, per source and step, int64."""
    source_values: Port
    """Of the others [value·m³], per source and step."""
    rate: Any
    """What sources bring [1/s]."""
    pressure: Any
    """[m/s]; where the next solve begins."""
    direction: Any
    """Of the solver: the last one, …"""
    image: Any
    """… what the matrix makes of the next one, …"""
    moved: Any
    """… and what it made of the last one."""
    parts: Any
    """Partial sums, vec3d."""
    sums: list[Any]
    """On cuda sums of them, fewer and fewer, vec3d."""
    solve: Any
    """Numbers of the solver, float64."""
    live: Any
    """Numbers that `set` may change."""
    curl: Any
    """Of confinement, vec4."""
    carried: dict[str, Carried]
    counters: Any
    """int64, three for each substance."""
    fluxes: tuple[Any, ...] = ()
    """Of conservative substances through faces, units."""
    wholes: tuple[Any, ...] = ()
    """The same cut to whole units, int32."""
    share: Any = None
    """Of what would leave a cell, the share that it has."""
    brings: list[Callable[[Stage], None]] = field(default_factory=list)
    """Recorded after the sources of a step: what else brings something. Before programs are recorded."""
    begun: dict[str, int] = field(default_factory=dict)
    """Units of conservative substances that were put there by hand."""

    @property
    def closed(self) -> bool:
        return not self.params.open_sides


def make_grid(params: GridParams, distance: ArrayLike | None, device: Device, native: bool | None) -> Grid:
    layout = Layout(params.cells)

    def zeros(dtype: Any = wp.float32, size: int = layout.size) -> Any:
        return wp.zeros(size, dtype=dtype, device=device.warp)

    def three(dtype: Any = wp.float32) -> tuple[Any, Any, Any]:
        return zeros(dtype), zeros(dtype), zeros(dtype)

    conservative = any(one.carried == "conservative" for one in params.substances)
    substances = max(1, len(params.substances))
    grid = Grid(
        params=params,
        device=device,
        native=not device.is_cuda if native is None else native,
        layout=layout,
        spread_sweeps=params.spread_sweeps,
        velocity=three(),
        other=three(),
        third=three(),
        levels=_make_levels(params, device),
        solid=three(),
        still=zeros(),
        drift=three(),
        distance=zeros(),
        box=wp.array(_box(layout, params.open_sides), dtype=wp.float32, device=device.warp),
        cells=wp.array(_box(layout, ()), dtype=wp.float32, device=device.warp),
        fluid=zeros(),
        bars=device.port(MOST_BARS * BAR_FLOATS, wp.float32),
        bar_count=device.port(1, wp.int32),
        sources=device.port(MOST_SOURCES * SOURCE_FLOATS, wp.float32),
        source_count=device.port(1, wp.int32),
        source_units=device.port(MOST_SOURCES * substances, wp.int64),
        source_values=device.port(MOST_SOURCES * substances, wp.float32),
        rate=zeros(),
        pressure=zeros(),
        direction=zeros(),
        image=zeros(),
        moved=zeros(),
        parts=zeros(wp.vec3d, part_count(device, layout)),
        sums=[zeros(wp.vec3d, count) for count in sum_counts(device, layout)],
        solve=zeros(wp.float64, NUMBERS),
        live=zeros(wp.float32, FIRST_SUBSTANCE + PER_SUBSTANCE * substances),
        curl=zeros(wp.vec4) if params.confinement > 0.0 else zeros(wp.vec4, 1),
        carried={one.name: _make_carried(one, zeros) for one in params.substances},
        counters=zeros(wp.int64, COUNTERS * substances),
    )
    if conservative:
        grid.fluxes, grid.wholes, grid.share = three(), three(wp.int32), zeros()
    set_distance(grid, distance)
    set_numbers(grid, params)
    return grid


def _make_carried(one: Substance, zeros: Any) -> Carried:
    return Carried(one, zeros(), zeros(), zeros(wp.int32) if one.carried == "conservative" else None)


def _make_levels(params: GridParams, device: Device) -> list[Level]:
    cells, unit, longer, rim, levels = params.cells, np.ones(3), np.ones(3), np.ones(3), []
    while True:
        layout = Layout(cells)
        arrays = [wp.zeros(layout.size, dtype=wp.float32, device=device.warp) for _ in range(7)]
        shape = layout.struct()
        # Of the finest grid alone, where an open face counts 1 and so no more than six add up to 6.
        shape.whole = 1.0 / 6.0 if not levels else -1.0
        shape.unit, shape.rim = wp.vec3(*unit), wp.vec3(*rim)
        levels.append(Level(layout, shape, (arrays[0], arrays[1], arrays[2]), *arrays[3:]))
        if max(cells) <= COARSEST:
            return levels
        joined = np.where(np.array(cells) > 1, 2.0, 1.0)
        unit = unit * joined.prod() / joined**2  # see `coarsen_faces`
        # From the middle of a cell, n of the finest long, to where the pressure is 0 beyond a side: (n + 1)/2, not n.
        rim = joined * (longer + 1.0) / (joined * longer + 1.0)
        longer = longer * joined
        x, y, z = ((count + 1) // 2 for count in cells)
        cells = (x, y, z)


def _box(layout: Layout, open_sides: tuple[Side, ...]) -> NDArray[np.float32]:
    x, y, z = layout.cells
    box = np.zeros((z + 2, layout.rows, layout.row), dtype=np.float32)
    box[1 : z + 1, 1 : y + 1, 1 : x + 1] = 1.0
    rims = {"-x": (slice(1, z + 1), slice(1, y + 1), 0), "+x": (slice(1, z + 1), slice(1, y + 1), x + 1),
            "-y": (slice(1, z + 1), 0, slice(1, x + 1)), "+y": (slice(1, z + 1), y + 1, slice(1, x + 1)),
            "-z": (0, slice(1, y + 1), slice(1, x + 1)), "+z": (z + 1, slice(1, y + 1), slice(1, x + 1))}  # fmt: skip
    for side in open_sides:
        box[rims[side]] = 1.0
    return np.pad(box.ravel(), (0, layout.size - box.size))


def corners(params: GridParams) -> NDArray[np.float64]:
    """Where the corners of cells are [m], shape (z + 1, y + 1, x + 1, 3)."""
    x, y, z = (params.origin[axis] + params.spacing * np.arange(params.cells[axis] + 1) for axis in range(3))
    grids = np.meshgrid(z, y, x, indexing="ij")
    return np.stack([grids[2], grids[1], grids[0]], axis=-1).astype(np.float64)


def middles(params: GridParams) -> NDArray[np.float64]:
    """Where the middles of cells are [m], shape (z, y, x, 3)."""
    return corners(params)[:-1, :-1, :-1] + 0.5 * params.spacing


def set_distance(grid: Grid, distance: ArrayLike | None) -> None:
    """Of organs and walls from the corners of cells [m]."""
    x, y, z = grid.params.cells
    shape = (z + 1, y + 1, x + 1)
    values = np.full(shape, FAR) if distance is None else np.asarray(distance, dtype=np.float64)
    if values.shape != shape or not np.isfinite(values).all():
        raise InputError(
            f"distances have shape {values.shape}, or are not finite.",
            f"Give one for every corner (`grid.corners`), shape {shape}, above 0 in fluid [m].",
        )
    flat = grid.layout.filled(values.astype(np.float32), (1, 1, 1), FAR)
    grid.still.assign(flat)


def set_numbers(grid: Grid, params: GridParams) -> None:
    """The live numbers of a step."""
    rate = params.dt / params.spacing
    numbers = np.zeros(grid.live.shape[0], dtype=np.float32)
    numbers[EPSILON] = params.confinement * params.dt
    numbers[RATE] = rate / params.dye_steps
    numbers[VISCOSITY] = params.viscosity * rate / params.spacing
    for place, one in enumerate(params.substances):
        first = FIRST_SUBSTANCE + PER_SUBSTANCE * place
        steps = params.dye_steps if one.carried == "conservative" else 1
        numbers[first + LIFT] = one.lift * params.dt
        numbers[first + SPREAD] = one.diffusivity * rate / (params.spacing * steps)
        numbers[first + STAYS] = np.exp(-one.fading * params.dt)
    grid.live.assign(numbers)
