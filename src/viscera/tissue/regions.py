"""Regions of a lattice that become stiffer or softer while a world runs: a nodule that another setting makes harder."""

from __future__ import annotations

import dataclasses

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.tissue.tables import Tables
from viscera.tissue.tissue import Tissue


def set_relative_young(tissue: Tissue, relative: NDArray[np.float64]) -> None:
    """Another factor on each mass's Young's modulus, shape (masses,), in the place of `LatticeParams.relative_young`.
    No factor may be larger than the largest with which the lattice was made: it has its substeps for that."""
    params = tissue.params
    most = 1.0 if params.relative_young is None else float(params.relative_young.max())
    if relative.shape != (len(params.nodes),) or not (np.isfinite(relative).all() and relative.min() > 0.0):
        raise InputError(
            "relative_young is not finite and above 0 for every mass.", f"Give {len(params.nodes)} factors."
        )
    if relative.max() > most * (1.0 + 1e-9):
        raise InputError(
            f"relative_young = {relative.max():g} cannot be carried by {tissue.substeps} substeps per tick.",
            f"Stay at or below {most:g}, or make the lattice with more.",
        )
    if tissue.slabs is not None:
        tissue.slabs.gather(tissue)
    changed = dataclasses.replace(params, relative_young=relative)
    tables, device = Tables(params, tissue.layout), tissue.device.warp
    table = tables.stiffness(changed.spring_young_of())
    wp.copy(tissue.constants.stiffness, wp.array(table, dtype=wp.float16, device=device))
    if params.has_volume:
        wp.copy(tissue.bulk, wp.array(tables.bulk(changed.bulk_young_of()), dtype=wp.float16, device=device))
    if tissue.slabs is not None:
        tissue.slabs.scatter(tissue)
    tissue.wake()
