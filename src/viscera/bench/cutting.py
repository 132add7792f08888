"""Cutting: what a blade, a grasper and contact cost the ticks, and what following a cut costs the picture.

A block, held below, is cut by a blade that is half as deep as it, at 0.1 m/s. Ticks with a blade that cuts and ticks of
the same block without one take turns, so that a busy machine treats both alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from viscera.bench._contact import contact_rows
from viscera.bench.registry import Row, benchmark, pick, timed
from viscera.device import Device
from viscera.tissue.cut_shadow import CutShadow
from viscera.tissue.cutting import cut_area, let_cut, set_edge
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.shadow import Shadow
from viscera.units import SQUARE_MILLIMETRE
from viscera.world.cut_surface import CutSurface
from viscera.world.organ import Body, block

NAME = "cutting"

FLESH = Material("flesh", 10_000.0, 1_000.0, poisson=0.35, viscous_time=2e-4, toughness=30.0)
SPACING = 0.002
SPEED = 0.1
"""[m/s]"""
FRAME_TICKS = 16
MILLION = (160, 120, 50)
"""Cells of a block of 993 531 masses. Its drawn surface is large and slow to make: only ticks are measured."""


def headline(device: Device) -> Row:
    return pick(_block(device, (24, 16, 6)), "tick that cuts")


@benchmark(NAME, title="Cutting: what blades, a grasper and contact cost, and the surface", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    for cells in ((24, 16, 6), (40, 28, 10)) if quick else ((24, 16, 6), (40, 28, 10), (80, 60, 20)):
        yield from _block(device, cells)
    if device.is_cuda and not quick:
        yield from _block(device, MILLION, drawn=False)
    for cells in ((24, 16, 6),) if quick else ((24, 16, 6), (40, 28, 10)):
        yield from contact_rows(NAME, device, cells, SPACING)


def _make(device: Device, body: Body) -> Tissue:
    below = body.positions[:, 2] < 0.5 * SPACING
    params = LatticeParams(body.nodes, SPACING, body.origin, below, FLESH, stiffest=FLESH.young, drag=10.0)
    return make_lattice(device, params)


def _block(device: Device, cells: tuple[int, int, int], drawn: bool = True) -> Iterator[Row]:
    body = block(cells, SPACING)
    plain, cut = _make(device, body), _make(device, body)
    let_cut(cut)
    surface = CutSurface(body.mesh, cut, room=2 * cells[0] * cells[2]) if drawn else None
    shadow = Shadow(cut, cut.device.beside).cuts
    assert shadow is not None
    ticks: dict[str, list[float]] = {"tick": [], "tick that cuts": []}
    follows: list[float] = []
    size = SPACING * np.array(cells)
    x = -0.5 * float(size[0]) - SPACING
    for tick in range(round((float(size[0]) + 2.0 * SPACING) / (SPEED * 1e-3))):
        ends = [np.array([[at, 0.0, 0.5 * size[2]], [at, 0.0, size[2] + SPACING]]) for at in (x, x + SPEED * 1e-3)]
        x += SPEED * 1e-3
        set_edge(cut, 0, 0, ends[0], ends[1])
        for name, tissue in (("tick", plain), ("tick that cuts", cut)):
            start = time.perf_counter()
            tissue.step()
            ticks[name].append(1e3 * (time.perf_counter() - start))
        if surface is not None and tick % FRAME_TICKS == FRAME_TICKS - 1:
            follows += _follow(surface, shadow)
    masses = len(body.nodes)
    area = cut_area(cut) / SQUARE_MILLIMETRE
    # By medians: a tick in which another program had the core would count for all of them.
    medians = {name: statistics.median(times[5:]) for name, times in ticks.items()}
    dearer = len(ticks["tick"]) * (medians["tick that cuts"] - medians["tick"])
    for name, times in ticks.items():
        extra = {"p99_9_ms": float(np.quantile(times[5:], 0.999)), "p50_ms": medians[name]}
        if name != "tick":
            extra |= {"cut_mm2": area, "us_per_mm2": 1e3 * dearer / area}
        yield timed(NAME, name, masses, device, statistics.median(times[5:]), extra=extra)
    if surface is not None and follows:
        extra = {"frames": len(follows), "triangles": len(surface.linked.shape.triangles)}
        yield timed(NAME, "surface follows", masses, device, statistics.median(follows), extra=extra)


def _follow(surface: CutSurface, shadow: CutShadow) -> list[float]:
    """Once a frame, where there is news."""
    before = shadow.changes
    shadow.take()
    if shadow.changes == before:
        return []
    start = time.perf_counter()
    surface.follow(shadow.springs(), shadow.links())
    return [1e3 * (time.perf_counter() - start)]
