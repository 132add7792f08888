"""A slit that is there from the start: tissue is cut at rest, before anything moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from viscera.tissue.cutting import let_cut, remove_edge, set_edge

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

STEP = 2.0
"""How far an edge goes in a tick [cells]: less than a blade may (blade_cut_kernels.LONGEST_SWEEP)."""


def open_slit(tissue: Tissue, first: NDArray[np.float64], last: NDArray[np.float64]) -> None:
    """Cuts what an edge sweeps on its way from `first` to `last`, two ends each, shape (2, 3) [m]; takes a few ticks of
    the tissue, which must be at rest."""
    let_cut(tissue)
    way = float(np.linalg.norm(last - first, axis=1).max())
    steps = max(1, int(np.ceil(way / (STEP * tissue.params.spacing))))
    before = first
    for number in range(steps + 1):
        now = first + (last - first) * (number / steps)
        set_edge(tissue, 0, 0, before, now, need=0.0)
        tissue.step()
        before = now
    remove_edge(tissue, 0)
    tissue.step()
