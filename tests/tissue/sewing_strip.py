"""A strip of skin in two halves, and hands that sew it: for tests of needle, thread, clips and staples."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

import viscera
from viscera.device import Device
from viscera.tissue import thread_kernels
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.sewing import let_sew, need_sewing, remove_needle, set_needle, set_tyer, tensions, thread_count
from viscera.tissue.slits import open_slit

SKIN = Material("skin", 129_000.0, 1_000.0, poisson=0.35, viscous_time=5e-5, toughness=600.0)
"""Diridollou et al. 2000: 129 kPa."""
SPACING, CELLS = 0.0025, (10, 6, 4)
TOP = CELLS[2] * SPACING
RADIUS, PIERCE = 0.006, 0.1
APART = 0.004
"""How far the ends are drawn apart [m]."""
ACROSS, UP = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])


@dataclass
class Strip:
    """Two halves of a strip, parted in the middle. The left one is held at its end."""

    tissue: Tissue
    holes: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))
    """At rest [m]."""

    def take(self, ticks: int, *, pressed: bool, height: float = 0.0025) -> None:
        """The needle stands across the middle."""
        for _ in range(ticks):
            middle = np.array([0.0, 0.0, TOP + height])
            set_needle(
                self.tissue, 0, np.array([middle, middle]), ACROSS, UP, radius=RADIUS, pierce=PIERCE, friction=0.02,
                pressed=pressed,
            )  # fmt: skip
            self.tissue.step()

    def tie(self, ticks: int, pull: float, *, pressed: bool) -> None:
        remove_needle(self.tissue)
        for _ in range(ticks):
            set_tyer(self.tissue, np.array([0.0, 0.0, TOP]), reach=0.01, pull=pull, pressed=pressed)
            self.tissue.step()

    def gap(self) -> float:
        """Between the lips at the stitch, uppermost layer [m]: farther apart than at rest."""
        nodes = self.tissue.params.nodes
        left, right = (
            np.flatnonzero((nodes == (CELLS[0] // 2 + side, CELLS[1] // 2, CELLS[2])).all(axis=1))[0] for side in (0, 1)
        )
        moved = self.tissue.displacement()[:, 0]
        return float(moved[right] - moved[left])

    def across(self) -> float:
        """Force with which the thread draws the halves together [N]."""
        threads, count = need_sewing(self.tissue).threads, thread_count(self.tissue, thread_kernels.COUNT)
        at, tension, start = threads.at.numpy(), tensions(self.tissue), threads.start.numpy()
        closing = threads.kind.numpy() == int(thread_kernels.CLOSING)
        slit, total = (0.5 * CELLS[0] + 0.5) * SPACING, 0.0
        for hole in range(count):
            one, other = at[hole], at[start[hole] if closing[hole] else hole + 1]
            if (one[0] > slit) != (other[0] > slit):
                total += float(tension[hole] * abs(other[0] - one[0]) / np.linalg.norm(other - one))
        return total

    def count(self, which: object) -> int:
        return thread_count(self.tissue, which)


def make_strip(device: Device, *, length: float = 0.15) -> Strip:
    body = viscera.block(CELLS, SPACING)
    ends = np.abs(body.positions[:, 0]) > 0.5 * CELLS[0] * SPACING - 1e-9
    apart = np.zeros_like(body.positions)
    apart[body.positions[:, 0] > 0.0, 0] = 1.0
    params = LatticeParams(
        nodes=body.nodes, spacing=SPACING, origin=body.origin, anchored=ends, material=SKIN, stiffest=SKIN.young,
        drag=40.0, driven=ends, drive_direction=apart,
    )  # fmt: skip
    organ = viscera.cuttable("strip", body, make_lattice(device, params))
    x, y = 0.5 * SPACING, 0.02
    open_slit(
        organ.tissue, np.array([[x, -y, -0.002], [x, -y, TOP + 0.002]]), np.array([[x, y, -0.002], [x, y, TOP + 0.002]])
    )
    let_sew(organ.tissue, length)
    return Strip(organ.tissue)
