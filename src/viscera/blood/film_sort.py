"""Sorting on cpu: the counting sort of `neighbors.ordering` in C, on one core, in the order of ids.

A film's grid spans a whole organ or sheet, and has many more cells than the film has particles: what costs is going
through the cells, three times in the plain kernel. Here they are cleared in vectors and summed once, since places are
drawn one entry above: counts of cell c stand at c + 2, after the sum entry c + 1 is where cell c begins, and after
drawing, where it ends. Same result, entry by entry.
"""

# Warp's types speak of values; inside kernels the same names are declarations.
# pyright: reportCallIssue=false, reportArgumentType=false, reportIndexIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.neighbors import grid as ng
from viscera.neighbors import ordering
from viscera.neighbors.cells import GridView

wp.set_module_options({"enable_backward": False})

_SORT = """
#if !defined(__CUDA_ARCH__)
const int cells = grid.lost;
const int* cell_of = cell.data;
int* at = cell_start.data;
int* order = original.data;
int staged = grid.count.data[0];
if (staged > grid.capacity) staged = grid.capacity;
for (int k = 0; k < cells + 2; ++k) at[k] = 0;
int lost = 0;
for (int i = 0; i < staged; ++i) {
    const int c = cell_of[i];
    if (c < cells) ++at[c + 2]; else ++lost;
}
int sum = 0;
for (int k = 2; k < cells + 2; ++k) { sum += at[k]; at[k] = sum; }
int after = staged - lost;
for (int i = 0; i < staged; ++i) {
    const int c = cell_of[i];
    if (c < cells) order[at[c + 1]++] = i; else order[after++] = i;
}
at[cells + 1] = staged;
#endif
"""


@wp.func_native(_SORT)
def sort_by_cell(
    grid: GridView,
    cell: wp.array(dtype=wp.int32),
    cell_start: wp.array(dtype=wp.int32),
    original: wp.array(dtype=wp.int32),
): ...


@wp.kernel
def sort_places(
    # params
    grid: GridView,
    # in
    cell: wp.array(dtype=wp.int32),
    # out
    cell_start_out: wp.array(dtype=wp.int32),
    original_out: wp.array(dtype=wp.int32),
):
    """Launched once, as one thread."""
    sort_by_cell(grid, cell, cell_start_out, original_out)


def build_order(stage: Stage, params: ng.GridParams, state: ng.GridState, key: Any, slots: bool) -> None:
    """`cell_start` and `original` of the grid; `slot` too where `slots` says so, and always on cuda."""
    if params.ordering != "serial":
        ng.build(stage, params, state, key)
        return
    view, n = state.view, params.capacity
    sort = [view, state.cell, state.cell_start, state.original]
    stage.launch(ordering.find_cells, n, [view, key, state.cell])
    stage.once(lambda: wp.launch(sort_places, dim=1, inputs=sort, device=params.device.warp))
    if slots:
        stage.launch(ordering.copy_sorted, n, [view, state.original, key, state.slot, state.position])
