"""Spring inversion and its remedies (Etheredge §4.2), rest skipping (§4.8): the tables of docs/tissue.md.

`python -m verify.remedies` prints both tables; the figures of `make verify` take their numbers from the same functions.
"""

from __future__ import annotations

import itertools
import json
import time
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.framework import Measured, figure
from viscera.device import Device, open_device
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import SOFT_TISSUE
from viscera.tissue.params import LatticeParams, Remedies, RestSkipping
from viscera.tissue.springs import NodeIndex
from viscera.tissue.tissue import Tissue

BLOCK = (0.064, 0.064, 0.032)
"""[m]"""
POKE_SPEED = 1.0
"""A blow, not a push [m/s]."""
POKE_DEPTH = 0.022
"""[m]"""
POKE_RADIUS = 0.005
"""[m]"""
VISCOUS_TIME = 0.25e-3
"""Half a substep or more: without it, crushed cells buzz and some shake themselves free [s]."""


def block(device: Device, spacing: float, **more: Any) -> Tissue:
    counts = [round(side / spacing) + 1 for side in BLOCK]
    axes = [np.arange(count, dtype=np.int32) for count in counts]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    options: dict[str, Any] = {"material": SOFT_TISSUE, "stiffest": SOFT_TISSUE.young, "drag": 30.0, "poisson": 0.25}
    options |= {"viscous_time": VISCOUS_TIME, "longest_viscous_time": VISCOUS_TIME} | more
    return make_lattice(device, LatticeParams(nodes, spacing, (0.0, 0.0, 0.0), nodes[:, 2] == 0, **options))


def inverted_cells(tissue: Tissue) -> tuple[int, int]:
    """Cells that are inside out at one corner at least, and cells in all: det of the three edges there is negative."""
    nodes = tissue.params.nodes
    index = NodeIndex(nodes)
    x = tissue.rest_positions() + tissue.displacement()
    corners = np.array([[c % 2, c // 2 % 2, c // 4] for c in range(8)], dtype=np.int32)
    found = np.stack([index.find(nodes + corner) for corner in corners], axis=1)
    found = found[(found >= 0).all(axis=1)]
    worst = np.full(len(found), np.inf)
    for corner in corners:
        here = found[:, int(corner @ [1, 2, 4])]
        edges = []
        for axis in range(3):
            other = corner.copy()
            other[axis] = 1 - other[axis]
            edge = x[found[:, int(other @ [1, 2, 4])]] - x[here]
            edges.append(edge * (1 - 2 * int(corner[axis])))
        worst = np.minimum(worst, np.linalg.det(np.stack(edges, axis=1)))
    return int((worst < 0).sum()), len(found)


def violent_poke(tissue: Tissue) -> None:
    """Down and out again at `POKE_SPEED`, five times side by side, then a second of rest."""
    for place in range(5):
        x, y = 0.0223 + 0.004 * place, 0.0317 + 0.001 * place
        high, low = BLOCK[2] + POKE_RADIUS, BLOCK[2] + POKE_RADIUS - POKE_DEPTH
        way = np.concatenate([np.arange(high, low, -POKE_SPEED * 1e-3), np.arange(low, high, POKE_SPEED * 1e-3)])
        for start, end in itertools.pairwise(way):
            ends = [np.tile(np.array([[x, y, z]]), (2, 1)) for z in (start, end)]
            tissue.set_tool(0, start=ends[0], end=ends[1], radius=POKE_RADIUS, friction=0.1)
            tissue.step()
        tissue.remove_tool(0)
    for _ in range(1_000):
        tissue.step()


REMEDIES: dict[str, tuple[float, dict[str, Any]]] = {
    "none, as in the document": (0.002, {"equal_springs": True}),
    "none, isotropic springs": (0.002, {}),
    "surface stiffness ×2": (0.002, {"remedies": Remedies(surface_stiffness=2.0)}),
    "shape springs, 30 rad/s": (0.002, {"remedies": Remedies(shape=30.0)}),
    "torsion springs, 0.05": (0.002, {"remedies": Remedies(torsion=0.05)}),
    "twice the resolution": (0.001, {}),
    "volume force, ν = 0.4": (0.002, {"poisson": 0.4}),
    "surface ×2 and volume": (0.002, {"remedies": Remedies(surface_stiffness=2.0), "poisson": 0.4}),
}
"""Spacing [m] and settings of each row."""
WITHOUT = "none, isotropic springs"
FEWER = "a smaller share of cells inside out than without"


def inversion_table() -> list[dict[str, Any]]:
    device = open_device("cpu", cores=1)
    rows = []
    for name, (spacing, settings) in REMEDIES.items():
        tissue = block(device, spacing, **settings)
        violent_poke(tissue)
        inverted, cells = inverted_cells(tissue)
        left = float(np.abs(tissue.displacement()).max())
        rows.append(
            {"remedy": name, "cells": cells, "inverted": inverted, "share_%": 100 * inverted / cells,
             "left_over_mm": 1e3 * left, "substeps": tissue.substeps}
        )  # fmt: skip
    return rows


@cache
def _inversion() -> list[dict[str, Any]]:
    return inversion_table()


def rest_table() -> list[dict[str, Any]]:
    """A steady push on one end of a long block: time per tick and error against the full computation, by threshold."""
    device = open_device("cpu", cores=1)
    axes = [np.arange(count, dtype=np.int32) for count in (97, 25, 9)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)

    def made(rest: RestSkipping | None) -> tuple[float, NDArray[np.float32]]:
        params = LatticeParams(
            nodes, 0.004, (0.0, 0.0, 0.0), nodes[:, 2] == 0, SOFT_TISSUE, SOFT_TISSUE.young,
            drag=30.0, rest_skipping=rest, poisson=0.25, viscous_time=0.0,
        )  # fmt: skip
        tissue = make_lattice(device, params)
        tip = np.tile(np.array([[0.0403, 0.0497, 0.0355]]), (2, 1))
        times = []
        for _ in range(1_000):
            start = time.perf_counter()
            tissue.set_tool(0, start=tip, end=tip, radius=0.008, friction=0.1)
            tissue.step()
            times.append(time.perf_counter() - start)
        return 1e3 * float(np.median(times[200:])), tissue.displacement()

    full_ms, full = made(None)
    rows = [{"force_N": None, "speed_m_s": None, "ms": full_ms, "gain": 1.0, "error_%": 0.0}]
    for force, speed in ((1e-8, 1e-6), (1e-7, 1e-5), (1e-6, 1e-4), (1e-5, 1e-3)):
        ms, shown = made(RestSkipping(force, speed))
        error = 100 * float(np.abs(shown - full).max() / np.abs(full).max())
        rows.append({"force_N": force, "speed_m_s": speed, "ms": ms, "gain": full_ms / ms, "error_%": error})
    return rows


def _after_the_poke(name: str) -> dict[str, Any]:
    return next(row for row in _inversion() if row["remedy"] == name)


@figure(
    area="lattice", claim="a violent poke turns cells of springs alone inside out", bound="> 0 of either spring set"
)
def inversion_reproduced() -> Measured:
    rows = [_after_the_poke(name) for name in ("none, as in the document", WITHOUT)]
    detail = "; ".join(f"{row['remedy']}: {row['inverted']} of {row['cells']} cells" for row in rows)
    return Measured(rows[1]["share_%"], "% of cells", all(row["inverted"] > 0 for row in rows), detail)


def _against_none(name: str) -> Measured:
    """A remedy is one only if fewer cells are left inside out than without it."""
    plain, helped = _after_the_poke(WITHOUT), _after_the_poke(name)
    before, after = plain["share_%"], helped["share_%"]
    detail = (
        f"{helped['inverted']} of {helped['cells']} cells, without it {plain['inverted']} of {plain['cells']}; at rest "
        f"the farthest mass is {helped['left_over_mm']:.2g} mm off, without it {plain['left_over_mm']:.2g} mm; "
        f"{helped['substeps']} substeps"
    )
    return Measured(after, f"% of cells, {before:.2f} without", after < before, detail)


@figure(area="lattice", claim="the document's remedy: a surface twice as stiff lessens inversion", bound=FEWER)
def remedy_surface() -> Measured:
    return _against_none("surface stiffness ×2")


@figure(area="lattice", claim="the document's remedy: springs that hold the shape lessen inversion", bound=FEWER)
def remedy_shape() -> Measured:
    return _against_none("shape springs, 30 rad/s")


@figure(area="lattice", claim="the document's remedy: torsion springs lessen inversion", bound=FEWER)
def remedy_torsion() -> Measured:
    return _against_none("torsion springs, 0.05")


@figure(area="lattice", claim="the document's remedy: twice the resolution lessens inversion", bound=FEWER)
def remedy_resolution() -> Measured:
    return _against_none("twice the resolution")


@figure(area="lattice", claim="ours: a volume force, ν = 0.4, leaves no cell inside out", bound="0 cells")
def remedy_volume() -> Measured:
    alone, both = _after_the_poke("volume force, ν = 0.4"), _after_the_poke("surface ×2 and volume")
    left = alone["inverted"] + both["inverted"]
    detail = f"alone {alone['inverted']} of {alone['cells']}, with the stiff surface {both['inverted']}"
    return Measured(left, "cells", left == 0, detail)


@figure(
    area="lattice", claim="rest skipping gains speed and its error is known", bound="error ≤ 1 % at 1e-7 N, gain > 1"
)
def rest_skipping_pays() -> Measured:
    rows = rest_table()
    row = rows[2]
    return Measured(row["gain"], "× faster", row["gain"] > 1.0 and row["error_%"] <= 1.0, json.dumps(rows))


if __name__ == "__main__":
    for table in (inversion_table(), rest_table()):
        print("| " + " | ".join(table[0]) + " |\n|" + " --- |" * len(table[0]))
        for row in table:
            print("| " + " | ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()) + " |")
        print()
