"""Needle and thread: what they cost the ticks.

A block with a slit takes a bite, has its thread drawn through and a knot tied. Ticks of the same block without thread
take turns with it, so that a busy machine treats both alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from viscera.bench.registry import Row, benchmark, pick, timed
from viscera.device import Device
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.sewing import let_sew, remove_needle, set_needle, set_tyer
from viscera.tissue.slits import open_slit
from viscera.tissue.touching import touch_surface
from viscera.world.organ import block

NAME = "sewing"

SKIN = Material("skin", 60_000.0, 1_000.0, poisson=0.35, viscous_time=1e-4, toughness=600.0)
SPACING, CELLS = 0.0025, (20, 16, 4)
TOP = CELLS[2] * SPACING
RADIUS, HEIGHT = 0.006, 0.0025
"""Of the needle's circle, and of its middle over the surface [m]."""


def headline(device: Device) -> Row:
    return pick(_stitch(device), "tick with needle and thread")


@benchmark(NAME, title="Sewing: ticks with and without needle and thread", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    yield from _stitch(device)


def _make(device: Device) -> Tissue:
    body = block(CELLS, SPACING)
    below = body.positions[:, 2] < 0.5 * SPACING
    tissue = make_lattice(
        device, LatticeParams(body.nodes, SPACING, body.origin, below, SKIN, stiffest=SKIN.young, drag=20.0)
    )
    touch_surface(tissue, body.mesh)
    first, last = (np.array([[0.0007, y, TOP - 0.006], [0.0007, y, TOP + 0.002]]) for y in (-0.01, 0.01))
    open_slit(tissue, first, last)
    return tissue


def _stitch(device: Device) -> Iterator[Row]:
    plain, sewn = _make(device), _make(device)
    let_sew(sewn)
    times: dict[str, tuple[list[float], list[float]]] = {}
    """Of each part, without and with thread [ms]."""

    def turn(name: str, ticks: int, act: Callable[[], None]) -> None:
        times[name] = ([], [])
        for _ in range(ticks):
            act()
            for found, tissue in zip(times[name], (plain, sewn), strict=True):
                start = time.perf_counter()
                tissue.step()
                found.append(1e3 * (time.perf_counter() - start))

    turn("tick with needle and thread", 1200, lambda: _hold(sewn, pressed=True))
    turn("tick that draws thread", 600, lambda: _hold(sewn, pressed=False))
    remove_needle(sewn)
    turn("tick that draws a knot", 400, lambda: _tie(sewn, pressed=True))
    turn("tick with a stitch", 400, lambda: _tie(sewn, pressed=False))
    masses = len(plain.params.nodes)
    for name, (without, found) in times.items():
        extra = {"p99_9_ms": float(np.quantile(found[5:], 0.999)), "without_ms": statistics.median(without[5:])}
        yield timed(NAME, name, masses, device, statistics.median(found[5:]), extra=extra)


def _hold(tissue: Tissue, *, pressed: bool) -> None:
    middle = np.array([0.0, 0.0, TOP + HEIGHT])
    set_needle(
        tissue, 0, np.array([middle, middle]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0]), radius=RADIUS,
        pierce=0.1, friction=0.02, pressed=pressed,
    )  # fmt: skip


def _tie(tissue: Tissue, *, pressed: bool) -> None:
    set_tyer(tissue, np.array([0.0, 0.0, TOP]), reach=0.01, pull=0.35, pressed=pressed)
