"""The grid's loops in C beside their plain twins."""

from __future__ import annotations

import numpy as np

from viscera import grid as grids
from viscera.device import Device
from viscera.grid.loops import NATIVE, PLAIN
from viscera.grid.params import GridParams, Substance
from viscera.grid.state import Grid
from viscera.grid.step import follow_solids, project, step_grid
from viscera.native import Trial, Twin, register
from viscera.native.twins import Results


def _grid(device: Device, feature: str, native: bool, size: int) -> Grid:
    """Random speeds around a bar that moves, with dye."""
    layers = {"one layer": 1, "a few layers": 3}.get(feature, size)
    if feature in ("semi-Lagrangian", "Gauss–Seidel", "no slip"):
        layers = 1
    substances = (Substance("ink", diffusivity=1e-5, lift=1e-10), Substance("warm", "maccormack", diffusivity=1e-4))
    params = GridParams(
        (size, size - 3, layers), 0.01, dt=0.02, substances=substances, open_sides=("+x",), viscosity=1e-4,
        no_slip=feature == "no slip",
        transport="semi_lagrangian" if feature == "semi-Lagrangian" else "maccormack",
        solver="gauss_seidel" if feature == "Gauss–Seidel" else "multigrid",
    )  # fmt: skip
    flow = grids.make(params, native=native, device=device)
    rng = np.random.default_rng(3)
    x, y, z = params.cells
    grids.set_velocity(flow, *(0.3 * rng.normal(size=s) for s in ((z, y, x + 1), (z, y + 1, x), (z + 1, y, x))))
    grids.fill(flow, "ink", rng.integers(0, 1_000_000, (z, y, x)))
    grids.fill(flow, "warm", rng.random((z, y, x)))
    middle = 0.005 * np.array(params.cells)
    grids.set_bars(flow, [[middle, middle + np.array([0.0, 0.0, 1.0])]], [0.025], [[[0.2, 0.1, 0.0]] * 2])
    device.record(lambda stage: follow_solids(stage, flow)).run()
    return flow


def _speeds(flow: Grid) -> Results:
    """One layer has none across z."""
    return dict(zip("uvw" if flow.params.cells[2] > 1 else "uv", grids.velocity(flow), strict=False))


def _project(device: Device, feature: str, native: bool, size: int) -> Trial:
    flow = _grid(device, feature, native, size)

    def results() -> Results:
        return _speeds(flow)

    return Trial(lambda stage: project(stage, flow), results, flow.layout.count, grids.work(flow))


def _step(device: Device, feature: str, native: bool, size: int) -> Trial:
    flow = _grid(device, feature, native, size)

    def results() -> Results:
        return _speeds(flow) | {name: grids.values(flow, name) for name in ("ink", "warm")}

    return Trial(lambda stage: step_grid(stage, flow), results, flow.layout.count, grids.work(flow))


def _follow(device: Device, feature: str, native: bool, size: int) -> Trial:
    flow = _grid(device, feature, native, size)

    def results() -> Results:
        found = {f"level {n}": one.inverse.numpy() for n, one in enumerate(flow.levels)}
        return found | {f"solid {n}": one.numpy() for n, one in enumerate(flow.solid[:2])}

    return Trial(lambda stage: follow_solids(stage, flow), results, flow.layout.count, flow.layout.count)


_MOVES = ("carry", "correct", "lift", "diffuse", "find_fluxes", "find_share", "cut_fluxes", "move_units")
_FOLLOWS = ("fill_corners", "fill_faces", "find_cells", "close_faces", "invert_diagonal", "coarsen_faces")
_SOLVES = tuple(name for name in PLAIN if name not in (*_MOVES, *_FOLLOWS))

register(Twin(
    "grid.project", tuple(PLAIN[name][0] for name in _SOLVES), {"cpu": tuple(NATIVE[name][0] for name in _SOLVES)},
    ("deep", "one layer", "a few layers", "Gauss–Seidel"),
    1e-4,  # what five cycles leave of the divergence
    _project, small=16, large=64,
))  # fmt: skip
register(Twin(
    "grid.carry", tuple(PLAIN[name][0] for name in _MOVES), {"cpu": tuple(NATIVE[name][0] for name in _MOVES)},
    ("deep", "one layer", "a few layers", "semi-Lagrangian", "no slip"),
    2e-4,  # the same, and where MacCormack's limits begin to act
    _step, small=16, large=64,
))  # fmt: skip
register(Twin(
    "grid.solids", tuple(PLAIN[name][0] for name in _FOLLOWS), {"cpu": tuple(NATIVE[name][0] for name in _FOLLOWS)},
    ("deep", "one layer", "a few layers"),
    1e-4,  # shares of faces that a bar nearly fills
    _follow, small=16, large=64,
))  # fmt: skip
