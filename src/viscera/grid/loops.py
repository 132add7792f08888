"""Which kernel does which loop of a step: the plain one, or on cpu its twin in C."""

from __future__ import annotations

from typing import Any

from viscera.device import BLOCK, Device, Stage
from viscera.grid import dye, flow, pressure, solids
from viscera.grid import native_dye as dye_in_c
from viscera.grid import native_flow as flow_in_c
from viscera.grid import native_pressure as pressure_in_c
from viscera.grid import native_solids as solids_in_c
from viscera.grid.shape import Layout

ROWS_AT_ONCE = 8
"""That one core takes from a launch over rows."""

PLAIN: dict[str, tuple[Any, str]] = {
    "fill_corners": (solids.fill_corners, "faces"),
    "fill_faces": (solids.fill_faces, "faces"),
    "find_cells": (solids.find_cells, "cells"),
    "close_faces": (solids.close_faces, "faces"),
    "invert_diagonal": (solids.invert_diagonal, "cells"),
    "coarsen_faces": (solids.coarsen_faces, "faces"),
    "find_divergence": (pressure.find_divergence, "cells"),
    "take_mean": (pressure.take_mean, "cells"),
    "take_pressure": (pressure.take_pressure, "cells"),
    "relax": (pressure.relax, "half"),
    "relax_first": (pressure.relax_first, "half"),
    "find_residual": (pressure.find_residual, "half"),
    "gather_residual": (pressure.gather_residual, "cells"),
    "spread_coarse": (pressure.spread_coarse, "half"),
    "subtract_gradient": (pressure.subtract_gradient, "faces"),
    "sum_needed": (pressure.sum_needed, "parts"),
    "apply_matrix": (pressure.apply_matrix, "parts"),
    "take_direction": (pressure.take_direction, "parts"),
    "carry": (flow.carry, "faces"),
    "correct": (flow.correct, "faces"),
    "lift": (flow.lift, "faces"),
    "diffuse": (flow.diffuse, "half faces"),
    "find_fluxes": (dye.find_fluxes, "faces"),
    "find_share": (dye.find_share, "cells"),
    "cut_fluxes": (dye.cut_fluxes, "faces"),
    "move_units": (dye.move_units, "cells"),
}
"""Kernel, and what its elements are."""

NATIVE: dict[str, tuple[Any, str]] = {
    "fill_corners": (solids_in_c.fill_corners_rows, "face rows"),
    "fill_faces": (solids_in_c.fill_faces_blocks, "face blocks"),
    "find_cells": (solids_in_c.find_cells_blocks, "blocks"),
    "close_faces": (solids_in_c.close_faces_blocks, "face blocks"),
    "invert_diagonal": (solids_in_c.invert_diagonal_blocks, "blocks"),
    "coarsen_faces": (solids_in_c.coarsen_faces_rows, "face rows"),
    "find_divergence": (pressure_in_c.find_divergence_blocks, "blocks"),
    "take_mean": (pressure_in_c.take_mean_blocks, "blocks"),
    "take_pressure": (pressure_in_c.take_pressure_blocks, "blocks"),
    "relax": (pressure_in_c.relax_blocks, "blocks"),
    "relax_first": (pressure_in_c.relax_first_blocks, "blocks"),
    "find_residual": (pressure_in_c.find_residual_blocks, "blocks"),
    "gather_residual": (pressure_in_c.gather_residual_lines, "rows"),
    "spread_coarse": (pressure_in_c.spread_coarse_lines, "rows"),
    "subtract_gradient": (pressure_in_c.subtract_gradient_blocks, "face blocks"),
    "sum_needed": (pressure_in_c.sum_needed_blocks, "blocks"),
    "apply_matrix": (pressure_in_c.apply_matrix_blocks, "blocks"),
    "take_direction": (pressure_in_c.take_direction_blocks, "blocks"),
    "carry": (flow_in_c.carry_rows, "face rows"),
    "correct": (flow_in_c.correct_rows, "face rows"),
    "lift": (flow_in_c.lift_blocks, "face blocks"),
    "diffuse": (flow_in_c.diffuse_blocks, "face blocks"),
    "find_fluxes": (dye_in_c.find_fluxes_blocks, "face blocks"),
    "find_share": (dye_in_c.find_share_blocks, "blocks"),
    "cut_fluxes": (dye_in_c.cut_fluxes_blocks, "face blocks"),
    "move_units": (dye_in_c.move_units_blocks, "blocks"),
}

CPU_BLOCK = 1024
"""Entries that one element of a loop over blocks covers, and one partial sum on cpu."""
CUDA_PARTS = 262_144
"""Partial sums on cuda: threads enough for a large device."""
ADDED_BY_ONE = 16
"""Partial sums that one thread adds, on cuda: it waits for memory."""


def part_count(device: Device, layout: Layout) -> int:
    """Partial sums over a grid."""
    return min(CUDA_PARTS, layout.count) if device.is_cuda else -(-layout.count // CPU_BLOCK)


def sum_counts(device: Device, layout: Layout) -> list[int]:
    """How many sums of partial sums there are, sums of those, and so on until one thread adds the rest."""
    counts, left = [], part_count(device, layout)
    while device.is_cuda and left > ADDED_BY_ONE:
        left = -(-left // ADDED_BY_ONE)
        counts.append(left)
    return counts


def run(stage: Stage, native: bool, name: str, layout: Layout, args: list[Any]) -> None:
    """Launches a loop over a grid of this layout."""
    kernel, unit = (NATIVE if native else PLAIN)[name]
    _, y, z = layout.cells
    faces = layout.count + layout.layer
    if unit == "cells":
        stage.launch(kernel, layout.count, args)
    elif unit == "faces":
        stage.launch(kernel, faces, args)
    elif unit == "half":
        stage.launch(kernel, (layout.count + 1) // 2, args)
    elif unit == "half faces":
        stage.launch(kernel, (faces + 1) // 2, args)
    elif unit == "parts":
        stage.launch(kernel, part_count(stage.device, layout), args, block=BLOCK if stage.device.is_cuda else 1)
    elif unit == "blocks":
        stage.launch(kernel, -(-layout.count // CPU_BLOCK), args, block=1)
    elif unit == "face blocks":
        stage.launch(kernel, -(-faces // CPU_BLOCK), args, block=1)
    elif unit == "rows":
        stage.launch(kernel, y * z, args, block=ROWS_AT_ONCE)
    else:
        stage.launch(kernel, (y + 1) * (z + 1), args, block=ROWS_AT_ONCE)
