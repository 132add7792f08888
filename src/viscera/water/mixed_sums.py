"""Which loops sum density and forces among several sizes: in C on cpu, by teams on cuda, plain elsewhere."""

from __future__ import annotations

from viscera.device import Stage
from viscera.water import mixed, native, native_mixed, team_mixed
from viscera.water.state import Fluid


def find_density(stage: Stage, fluid: Fluid) -> None:
    f, n, e = fluid, fluid.capacity, fluid.extra
    if f.team:
        team_mixed.find_density(stage, f)
    elif f.native:
        inverse, load, _ = e["size_axes"]
        arrays = [*f.axes[:3], inverse, load, f.density, e["hits"]]
        native.launch(stage, native_mixed.sum_density, n, [f.grid.view, e["unit"], *arrays])
    else:
        stage.launch(mixed.sum_density, n, [f.grid.view, e["unit"], f.place, e["load"], f.density])


def find_pressure(stage: Stage, fluid: Fluid) -> None:
    f, sizes = fluid, fluid.params.sizes
    how = [f.grid.view, 1.0 if sizes is None else sizes.thickening, f.extra["evening"], f.live]
    out = [f.density, f.extra["sorted_fresh"], f.pressure, f.extra["load"], f.motion]
    stage.launch(mixed.find_pressure, f.capacity, [*how, f.extra["sorted_level"], *out])


def find_forces(stage: Stage, fluid: Fluid, *, then_move: bool) -> None:
    f, n, e = fluid, fluid.capacity, fluid.extra
    if f.team:
        team_mixed.find_forces(stage, f, then_move=then_move)
    elif f.native:
        inverse, _, pull = e["size_axes"]
        arrays = [*f.axes, inverse, pull, e["hits"], f.rate]
        native.launch(stage, native_mixed.sum_forces, n, [f.grid.view, e["unit"], f.live, *arrays])
    else:
        arrays = [f.place, f.motion, e["load"], f.rate]
        stage.launch(mixed.sum_forces, n, [f.grid.view, e["unit"], f.live, *arrays])
