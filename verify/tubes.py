"""Water in tubes of triangles at full size: walls that drag, and walls with density that move."""

from __future__ import annotations

from functools import cache

import numpy as np

from verify import tube_cases as cases
from verify.framework import Measured, figure
from viscera.device import Device, open_device

AREA = "vessels"
HEAD = 0.58
"""ρgλ over 8μcλ/a²: a wave of φ = 0.4 carries half as much against it (`uphill_flow`)."""


@cache
def _device() -> Device:
    return open_device()


@figure(area=AREA, claim="flow through a tube of triangles is Poiseuille's", bound="flow within 3 %")
def tube_poiseuille() -> Measured:
    found = cases.poiseuille_tube(_device(), 16)
    off = found["flow"] - 1.0
    return Measured(
        round(100 * off, 2), "%", abs(off) <= 0.03,
        f"16 particles across, from rest; velocities {100 * found['rms']:.1f} % of the peak off in the mean (rms), "
        f"{100 * found['error']:.1f} % at worst",
    )  # fmt: skip


PERIOD = 10.0
"""λ/c over a/c: a wave passes once."""


def _wave(phi: float, *, head: float = 0.0, lattice: bool = False) -> Measured:
    """How far off the flow is, over what theory says at that amplitude and head; a whole period from rest, the mean of
    its last third."""
    found = cases.peristalsis(_device(), phi, 10, turns=PERIOD, head=head, lattice=lattice)
    off, flows = found["flow"] / found["truth"] - 1.0, found["flows"]
    thirds = [float(part.mean()) for part in np.array_split(flows, 3)]
    return Measured(
        round(100 * off, 1), "%", abs(off) <= 0.15 and found["outside"] == 0 and found["flow"] > 0.0,
        f"10 particles across, λ = 10 a, Re 0.1, φ = {found['phi']:.3f}; {found['flow']:.3f} of πa²c, theory "
        f"{found['truth']:.3f}; thirds of the period {', '.join(f'{one:.3f}' for one in thirds)}; density within "
        f"{100 * found['denser']:.1f} %, {found['outside']} of {found['count']} particles outside",
    )  # fmt: skip


@figure(area=AREA, claim="a wave of the wall carries Shapiro's flow, φ = 0.2", bound="within 15 %")
def peristalsis_smallest() -> Measured:
    return _wave(0.2)


@figure(area=AREA, claim="a wave of the wall carries Shapiro's flow, φ = 0.3", bound="within 15 %")
def peristalsis_small() -> Measured:
    return _wave(0.3)


@figure(area=AREA, claim="a wave of the wall carries Shapiro's flow, φ = 0.4", bound="within 15 %")
def peristalsis_middle() -> Measured:
    return _wave(0.4)


@figure(area=AREA, claim="a wave of the wall carries Shapiro's flow, φ = 0.6", bound="within 15 %")
def peristalsis_large() -> Measured:
    return _wave(0.6)


@figure(area=AREA, claim="a wave of the wall carries water uphill: a body force that takes half of the flow, φ = 0.4",
        bound="within 15 % of theory at that head, and upward")  # fmt: skip
def peristalsis_uphill() -> Measured:
    return _wave(0.4, head=HEAD)


@figure(area=AREA, claim="the same wave of a lattice with muscle instead, no rise of pressure",
        bound="within 15 % of Shapiro's at its amplitude")  # fmt: skip
def peristalsis_lattice() -> Measured:
    return _wave(0.4, lattice=True)


@figure(area=AREA, claim="the lattice carries water uphill: a body force that takes half of the flow",
        bound="within 15 % of theory at that head, and upward")  # fmt: skip
def peristalsis_lattice_uphill() -> Measured:
    return _wave(0.4, head=HEAD, lattice=True)
