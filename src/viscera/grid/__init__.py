"""Flows on a grid: stable fluids in a box of cells, in two dimensions, a few layers or three.

    air = grid.make(GridParams((48, 48, 48), spacing=3e-3, dt=0.016, substances=(Substance("smoke"),)), device=device)
    grid.put(air, 0, place, units={"smoke": 1000})          # a source, for every step until it is put anew
    grid.follow(stage, air)                                 # solids as they are now
    grid.step(stage, air)                                   # params.dt
    grid.amount(air, "smoke")

The order of a step is in `step.py`; docs/grid.md shows the use and what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.grid import numbers as _numbers
from viscera.grid.dye import COUNTERS
from viscera.grid.params import GridParams, Substance
from viscera.grid.solids import BAR_FLOATS, MOST_BARS
from viscera.grid.sources import JET, MOST_SOURCES, PLACE, PULL, RATE, SOURCE_FLOATS
from viscera.grid.state import Grid, corners, make_grid, middles, set_distance, set_numbers
from viscera.grid.step import follow_solids, project, step_flow, step_grid, step_substances
from viscera.states import Arrays, copy_in, copy_out, require_finite

__all__ = [
    "MOST_SOURCES", "Grid", "GridParams", "Substance", "amount", "check", "clear", "corners", "counted", "divergence",
    "fill", "follow", "load", "make", "middles", "missing", "put", "save", "set", "set_bars", "set_distance",
    "set_velocity", "step", "step_part", "values", "velocity", "work",
]  # fmt: skip


def make(params: GridParams, distance: ArrayLike | None = None, *, native: bool | None = None, device: Device) -> Grid:
    """Fluid at rest in a box. `distance` says how far each corner of the cells is from organs and walls, above 0 in
    fluid [m], shape (z + 1, y + 1, x + 1), as `corners` has them; without, the box is free. `native` chooses between
    twins of the inner loops, for tests and benchmarks."""
    return make_grid(params, distance, device, native)


def set(grid: Grid, params: GridParams) -> None:
    """Changes viscosity, confinement and the numbers of substances while programs run; refuses what they have
    frozen: all else, and whether one of these is 0."""
    frozen = replace(
        params, viscosity=grid.params.viscosity, confinement=grid.params.confinement, substances=grid.params.substances
    )
    if frozen != grid.params or _kinds(params) != _kinds(grid.params):
        raise InputError(
            "these parameters are frozen in recorded programs.",
            "Change viscosity, confinement and numbers of substances alone, not from or to 0; else make it anew.",
        )
    if params.spread_sweeps > grid.spread_sweeps:
        raise InputError(
            f"viscosity or diffusivity needs {params.spread_sweeps} sweeps; {grid.spread_sweeps} are recorded.",
            "Make the flow with the largest that it will have, or give `diffusion_sweeps`.",
        )
    grid.params = params
    set_numbers(grid, params)


def _kinds(params: GridParams) -> list[object]:
    kinds: list[object] = [params.viscosity > 0.0, params.confinement > 0.0]
    for one in params.substances:
        kinds.append(
            (one.name, one.carried, one.unit, one.keeps_total, one.diffusivity > 0.0, one.lift != 0.0, one.fading > 0.0)
        )
    return kinds


def follow(stage: Stage, grid: Grid) -> None:
    """Solids as they are now: `set_distance`, `set_bars`. Before the first step, and whenever they have moved."""
    follow_solids(stage, grid)


def step(stage: Stage, grid: Grid) -> None:
    """One step of `params.dt`."""
    step_grid(stage, grid)


def step_part(stage: Stage, grid: Grid, part: int, *, confines: bool = True) -> None:
    """A third of a step, 0, 1, 2 in this order: the flow, its pressure, what it carries. For those who take turns.
    Without `confines` the first leaves confinement out: for a setting that is 0 as a rule and costs nothing then."""
    if part == 0:
        step_flow(stage, grid, confines)
    else:
        (project, step_substances)[part - 1](stage, grid)


def work(grid: Grid) -> int:
    """What to give to `Device.record` as `work` for one step: a second core pays from about 300² or 48³ cells on, as a
    step has a hundred launches, after each of which cores wait for each other."""
    return grid.layout.count // 2


def set_bars(grid: Grid, ends: ArrayLike, radii: ArrayLike, velocities: ArrayLike | None = None) -> None:
    """Round bars in the fluid: both ends of their axes [m], shape (n, 2, 3), radii [m], and the velocities of the ends
    [m/s], as `ends`. In force with the next `follow`."""
    places = np.asarray(ends, dtype=np.float64).reshape(-1, 2, 3)
    moving = np.zeros_like(places) if velocities is None else np.asarray(velocities, dtype=np.float64)
    thick = np.asarray(radii, dtype=np.float64).reshape(-1)
    if len(places) > MOST_BARS:
        raise InputError(f"{len(places)} bars are too many.", f"Allowed are {MOST_BARS}.")
    if thick.shape != (len(places),) or moving.shape != places.shape:
        raise InputError(f"{len(places)} bars have {len(thick)} radii.", "Give one radius and two velocities for each.")
    if not (np.isfinite(places).all() and np.isfinite(moving).all() and np.isfinite(thick).all()):
        raise InputError("a bar is not finite.", "Give finite places [m], radii [m] and velocities [m/s].")
    _wait(grid)
    rows = grid.bars.host.reshape(MOST_BARS, BAR_FLOATS)
    rows[: len(places), :6] = places.reshape(-1, 6)
    rows[: len(places), 6] = thick
    rows[: len(places), 7:13] = moving.reshape(-1, 6)
    grid.bar_count.host[0] = len(places)


def put(
    grid: Grid,
    number: int,
    place: Sequence[float],
    *,
    rate: float = 0.0,
    jet: Sequence[float] = (0.0, 0.0, 0.0),
    pull: float = 0.0,
    units: Mapping[str, int] | None = None,
    values: Mapping[str, float] | None = None,
) -> None:
    """Source `number` (0 to `MOST_SOURCES` − 1; those below count, too) at a place [m], for every step until it is put
    anew: volume per second, below 0 for a sink [m³/s]; a `jet` [m/s] that takes the fluid along by `pull`, 0 to 1;
    whole units of conservative substances per step; of others so many values times m³."""
    if not 0 <= number < MOST_SOURCES:
        raise InputError(f"source {number} is not possible.", f"Allowed are 0 to {MOST_SOURCES - 1}.")
    numbers = [*place, rate, *jet, pull]
    if len(numbers) != SOURCE_FLOATS or not all(map(math.isfinite, numbers)):
        raise InputError(f"source {number} is not finite: {numbers}.", "Give three finite numbers each [m], [m/s].")
    _wait(grid)
    row = grid.sources.host[SOURCE_FLOATS * number : SOURCE_FLOATS * (number + 1)]
    row[PLACE:RATE], row[RATE], row[JET:PULL], row[PULL] = place, rate, jet, pull
    first = number * len(grid.carried)
    for at, name in enumerate(grid.carried):
        grid.source_units.host[first + at] = (units or {}).get(name, 0)
        grid.source_values.host[first + at] = (values or {}).get(name, 0.0)
    grid.source_count.host[0] = max(int(grid.source_count.host[0]), number + 1)


def clear(grid: Grid) -> None:
    """No sources."""
    _wait(grid)
    grid.source_count.host[0] = 0


def _wait(grid: Grid) -> None:
    """On cuda steps that were launched before may still have to read what is about to be replaced."""
    grid.device.synchronize()


def fill(grid: Grid, name: str, values: ArrayLike) -> None:
    """Sets a substance in every cell, shape (z, y, x): whole units of a conservative one, values of another."""
    carried = grid.carried[name]
    if carried.amount is None:
        carried.value.assign(grid.layout.filled(np.asarray(values, dtype=np.float32)))
        return
    units = np.asarray(values)
    if units.min() < 0 or units.max() > 2**31 - 1:
        raise InputError(f"{name}: {units.min()} to {units.max()} units in a cell.", "Allowed are 0 to 2147483647.")
    before = amount(grid, name)
    carried.amount.assign(grid.layout.filled(units.astype(np.int32)))
    per_volume = carried.substance.unit / grid.params.cell_volume
    carried.value.assign(grid.layout.filled((per_volume * units).astype(np.float32)))
    grid.begun[name] = grid.begun.get(name, 0) + amount(grid, name) - before


def set_velocity(grid: Grid, x: ArrayLike, y: ArrayLike, z: ArrayLike | float = 0.0) -> None:
    """At the faces across x, shape (z, y, x + 1), across y, (z, y + 1, x), and z, (z + 1, y, x) [m/s]."""
    for axis, given in enumerate((x, y, z)):
        beyond = (int(axis == 0), int(axis == 1), int(axis == 2))
        flat = np.zeros(grid.layout.size, dtype=np.float32)
        grid.layout.box(flat, beyond)[...] = np.asarray(given)
        grid.velocity[axis].assign(flat)


def velocity(grid: Grid) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """As `set_velocity` takes it, copies. Waits for the device."""
    x, y, z = (
        grid.layout.box(grid.velocity[axis].numpy(), (int(axis == 0), int(axis == 1), int(axis == 2))).copy()
        for axis in range(3)
    )
    return x, y, z


def values(grid: Grid, name: str) -> NDArray[np.float32]:
    """Of a substance in every cell, shape (z, y, x), a copy: amount in a volume [amount/m³], or value. Waits for the
    device."""
    return grid.layout.box(grid.carried[name].value.numpy()).copy()


def amount(grid: Grid, name: str) -> int:
    """Units of a conservative substance in the box. Waits for the device."""
    return int(grid.layout.box(grid.carried[name].amount.numpy()).sum(dtype=np.int64))


def counted(grid: Grid, name: str) -> tuple[int, int, int]:
    """Units of a conservative substance that sources gave, sinks took, and that left through open sides. Waits for the
    device."""
    first = COUNTERS * list(grid.carried).index(name)
    given, taken, left = grid.counters.numpy()[first : first + COUNTERS].tolist()
    return given, taken, left


def missing(grid: Grid, name: str) -> int:
    """Units that were given and are nowhere: 0. Waits for the device."""
    given, taken, left = counted(grid, name)
    return grid.begun.get(name, 0) + given - taken - left - amount(grid, name)


def divergence(grid: Grid) -> tuple[float, float]:
    """L2 norm over all cells before and after the last projection, h∇·u less sources [m/s]. Waits for the device."""
    numbers = grid.solve.numpy()
    return math.sqrt(max(numbers[_numbers.BEFORE], 0.0)), math.sqrt(max(numbers[_numbers.AFTER], 0.0))


def check(grid: Grid, tick: int = 0) -> None:
    """Raises StateError if velocities or substances are no longer finite. Waits for the device."""
    arrays = dict(zip("uvw", grid.velocity, strict=True))
    arrays |= {name: carried.value for name, carried in grid.carried.items()}
    require_finite("grid", arrays, tick, "Give smaller forces and rates, or a shorter step.")


def _kept(grid: Grid) -> dict[str, object]:
    """All that changes."""
    kept: dict[str, object] = dict(zip(("u", "v", "w"), grid.velocity, strict=True))
    # A step may be saved between its parts, of which the first finds the rates.
    kept |= {"pressure": grid.pressure, "rate": grid.rate, "counters": grid.counters, "solve": grid.solve}
    kept |= {"bars": grid.bars.host, "bar_count": grid.bar_count.host}
    for name, carried in grid.carried.items():
        kept[f"{name}.value"] = carried.value
        if carried.amount is not None:
            kept[f"{name}.amount"] = carried.amount
    return kept


def save(grid: Grid) -> Arrays:
    """Velocity, pressure, substances, counters, bars and what sources bring in the step at hand. Sources themselves are
    not state: who puts them puts them again."""
    begun = np.array([grid.begun.get(name, 0) for name in grid.carried], dtype=np.int64)
    return copy_out(_kept(grid)) | {"begun": begun}


def load(grid: Grid, arrays: Arrays) -> None:
    """Puts a flow into a state that `save` gave; solids follow with the next `follow`."""
    copy_in("grid", _kept(grid), arrays)
    grid.begun = dict(zip(grid.carried, arrays["begun"].tolist(), strict=True))
