"""Water in meshes at full size: as high and as heavy as it should be, at rest, and as fast as in a box.

The pools of pool_cases.py: a box, a ball, two colons by rule, and a real one, where its mesh is there (VISCERA_ANATOMY
names the folder).
"""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from verify import pool_cases as cases
from verify.framework import Measured, Skip, figure
from viscera import water
from viscera.anatomy.colon import colon
from viscera.device import Device, open_device
from viscera.geometry.mesh import TriangleMesh, load_mesh
from viscera.geometry.primitives import box, icosphere

AREA = "vessels"
BOUND = (
    "p within 2 % of ρ g H in the middle and 5 % in the two layers at the wall, both rms over places; level within "
    "2 %; speed ≤ 0.5 % of √(gH), creeping ≤ 2 mm/s"
)
SETTLES = 3.0
"""[s] until the levels of a pool's arms are alike."""
SETTLES_TAIT = 6.0
"""[s] of Tait's water, which falls together at first and bounces: in a box by 6 % of ρ g H after 1 s, 4 % after 2 and
2.3 % after 3; then it stays at 1.4 to 1.8 % in the middle."""
CREEPS = 0.002
"""[m/s]"""


@cache
def _device() -> Device:
    return open_device()


def _still(
    mesh: TriangleMesh,
    spacing: float,
    depth: float,
    seconds: float,
    **more: Any,
) -> Measured:
    found = cases.still_in(_device(), mesh, spacing, depth, seconds, **more)
    pressed = found["middle_rms"] <= 0.02 and max(found["wall_rms"], found["next_rms"]) <= 0.05
    still = found["speed"] <= 0.005 * math.sqrt(cases.GRAVITY * found["depth"]) and found["creep"] <= CREEPS
    passed = pressed and still and abs(found["level"]) <= 0.02 and found["outside"] == 0
    return Measured(
        round(100 * found["middle_rms"], 2), "%", passed,
        f"{found['count']} particles of {1000 * spacing:g} mm, {1000 * found['depth']:.0f} mm deep; rms over "
        f"{found['probes']} places in the middle (mean {100 * found['middle']:+.1f} %); at the wall "
        f"{100 * found['wall_rms']:.1f} % (mean {100 * found['wall']:+.1f} %), next layer "
        f"{100 * found['next_rms']:.1f} % (mean {100 * found['next']:+.1f} %), single particles of both "
        f"{100 * found['single_rms']:.1f} %; level "
        f"{100 * found['level']:+.1f} % of the depth; speed {1000 * found['speed']:.1f} mm/s, creeping "
        f"{1000 * found['creep']:.2f} mm/s (rms)",
    )  # fmt: skip


def _settles(more: dict[str, Any]) -> float:
    return SETTLES_TAIT if more.get("solver") == "tait" else SETTLES


def _still_box(**more: Any) -> Measured:
    """Ten particles of 10 mm across, twenty layers deep."""
    mesh = box((0.1, 0.3, 0.1)).moved((0.05, 0.15, 0.05))
    places = water.block((0.0,) * 3, (0.1, 0.2, 0.1), 0.01)
    return _still(mesh, 0.01, 0.2, _settles(more), places=places, **more)


def _still_ball(**more: Any) -> Measured:
    """Twenty particles of 6 mm across, 70 mm deep."""
    return _still(icosphere(0.06, 4), 0.006, 0.07, _settles(more), **more)


@figure(area=AREA, claim="still water in a box of triangles with density, incompressible", bound=BOUND)
def still_box() -> Measured:
    return _still_box()


@figure(area=AREA, claim="still water in a box of triangles with density, Tait", bound=BOUND)
def still_box_tait() -> Measured:
    return _still_box(solver="tait")


@figure(area=AREA, claim="still water in a ball of triangles with density, incompressible", bound=BOUND)
def still_ball() -> Measured:
    return _still_ball()


@figure(area=AREA, claim="still water in a ball of triangles with density, Tait", bound=BOUND)
def still_ball_tait() -> Measured:
    return _still_ball(solver="tait")


@figure(area=AREA, claim="still water in a box of triangles that may move", bound=BOUND)
def still_box_moving() -> Measured:
    return _still_box(deforming=True)


@figure(area=AREA, claim="still water in a box of triangles carried along at 20 mm/s, seen from it", bound=BOUND)
def still_box_carried() -> Measured:
    return _still_box(carried=0.02)


@figure(area=AREA, claim="still water in a box of triangles that may move, Tait", bound=BOUND)
def still_box_moving_tait() -> Measured:
    return _still_box(deforming=True, solver="tait")


@figure(area=AREA, claim="still water in a ball whose wall may move", bound=BOUND)
def still_ball_moving() -> Measured:
    return _still_ball(deforming=True)


@figure(area=AREA, claim="still water in a colon, seed 1, as deep as it presses", bound=BOUND)
def still_colon() -> Measured:
    return _still(colon(1), 0.004, 0.13, SETTLES)


@figure(area=AREA, claim="still water in a colon, seed 2, as deep as it presses", bound=BOUND)
def still_colon_2() -> Measured:
    # Filled to 0.18 m it would settle below a fold of the lumen, into two pools with a level each.
    return _still(colon(2), 0.004, 0.13, SETTLES)


@figure(area=AREA, claim="still water in a colon, seed 1, whose wall may move", bound=BOUND)
def still_colon_moving() -> Measured:
    return _still(colon(1), 0.004, 0.13, SETTLES, deforming=True)


@figure(area=AREA, claim="still water in a colon, seed 1, carried along at 20 mm/s, seen from it", bound=BOUND)
def still_colon_carried() -> Measured:
    return _still(colon(1), 0.004, 0.13, SETTLES, carried=0.02)


@figure(area=AREA, claim="still water in a colon, seed 2, whose wall may move", bound=BOUND)
def still_colon_2_moving() -> Measured:
    return _still(colon(2), 0.004, 0.13, SETTLES, deforming=True)


@figure(area=AREA, claim="still water in a real colon, as deep as it presses", bound=BOUND)
def still_real_colon() -> Measured:
    return _still_real(0.12)


@figure(area=AREA, claim="still water in a real colon, 70 mm deep", bound=BOUND)
def still_real_colon_shallow() -> Measured:
    """The offset in the middle is one of the surface, not of the depth: of less depth it is a larger share."""
    return _still_real(0.1)


@figure(area=AREA, claim="still water in a real colon whose wall may move", bound=BOUND)
def still_real_colon_moving() -> Measured:
    return _still_real(0.12, deforming=True)


def _still_real(filled: float, **more: Any) -> Measured:
    mesh = real_colon()
    if mesh is None:
        raise Skip("VISCERA_ANATOMY names no folder with colon.stl")
    return _still(mesh, 0.0025, filled, SETTLES, **more)


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
