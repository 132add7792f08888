"""Water in organs of triangles at full size: as high and as heavy as it should be, and as fast as in a box.

The pools of pool_cases.py, in two colons by rule and in a real one, where its mesh is there (VISCERA_ANATOMY names the
folder).
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np

from verify import pool_cases as cases
from verify.framework import Measured, figure
from viscera.anatomy.colon import colon
from viscera.device import Device, open_device
from viscera.geometry.mesh import TriangleMesh, load_mesh

AREA = "vessels"
BOUND = "p within 2 % of ρ g H in the middle, 5 % in the two layers at the wall; level within 2 %"
SETTLES = 3.0
"""[s] until the levels of a pool's arms are alike."""


@cache
def _device() -> Device:
    return open_device()


def _still(mesh: TriangleMesh, spacing: float, depth: float, seconds: float) -> Measured:
    found = cases.still_in(_device(), mesh, spacing, depth, seconds)
    walls = max(abs(found["wall"]), abs(found["next"]))
    passed = abs(found["middle"]) <= 0.02 and walls <= 0.05 and abs(found["level"]) <= 0.02 and found["outside"] == 0
    return Measured(
        round(100 * found["middle"], 2), "%", passed,
        f"{found['count']} particles of {1000 * spacing:g} mm, {1000 * found['depth']:.0f} mm deep; in the mean over "
        f"{found['probes']} places (rms {100 * found['middle_rms']:.1f} %); at the wall {100 * found['wall']:+.1f} %, "
        f"next layer {100 * found['next']:+.1f} %; level {100 * found['level']:+.1f} % of the depth; at rest "
        f"{1000 * found['speed']:.1f} mm/s (rms)",
    )  # fmt: skip


@figure(area=AREA, claim="still water in a colon, seed 1, as deep as it presses", bound=BOUND)
def still_colon() -> Measured:
    return _still(colon(1), 0.0045, 0.13, SETTLES)


@figure(area=AREA, claim="still water in a colon, seed 2, as deep as it presses", bound=BOUND)
def still_colon_2() -> Measured:
    # Filled to 0.18 m it would settle below a fold of the lumen, into two pools with a level each.
    return _still(colon(2), 0.0045, 0.13, SETTLES)


@figure(area=AREA, claim="still water in a real colon, as deep as it presses", bound=BOUND)
def still_real_colon() -> Measured:
    mesh = real_colon()
    if mesh is None:
        return Measured(float("nan"), "%", True, "not measured: VISCERA_ANATOMY names no folder with colon.stl")
    return _still(mesh, 0.0025, 0.1, SETTLES)


def real_colon() -> TriangleMesh | None:
    """With the head along y and its middle at the origin; None where there is none."""
    path = Path(os.environ.get("VISCERA_ANATOMY", "")) / "colon.stl"
    if not path.is_file():
        return None
    mesh = load_mesh(path)
    turned = mesh.vertices[:, [0, 2, 1]] * np.array([1.0, 1.0, -1.0])
    return TriangleMesh(turned, mesh.triangles, mesh.name).moved(-turned.mean(axis=0))


@figure(area=AREA, claim="a dam breaks in a mesh as in a box of wall particles", bound="front within 3 % in the mean")
def dam_in_a_mesh() -> Measured:
    found = cases.dam_in_a_mesh(_device(), 16)
    return Measured(
        round(100 * found["apart"], 2), "%", found["apart"] <= 0.03,
        f"{found['count']} particles, incompressible, 16 across, to T = {found['until']:.1f} √(W/2g); at worst "
        f"{100 * found['worst']:.1f} %; the front came to {found['front']:.2f} W",
    )  # fmt: skip
