"""What blades have cut, for work beside the ticks: a copy as of a frame's end, taken only when there is news."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.tissue.cutting import need_cutting
from viscera.tissue.kernels import Lattice
from viscera.tissue.layout import TILE

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

wp.set_module_options({"enable_backward": False, "max_unroll": 0})

_TILE = wp.constant(TILE)


@wp.kernel
def drop_springs(
    first: int,
    # in
    cut: wp.array(dtype=wp.uint8),
    # out
    stiffness_out: wp.array(dtype=wp.float16),
):
    i = first + wp.tid()
    if cut[i] != wp.uint8(0):
        stiffness_out[i] = wp.float16(0.0)


@wp.kernel
def drop_cells(
    first: int,
    # params
    lattice: Lattice,
    # in
    cut: wp.array(dtype=wp.uint8),
    # out
    bulk_out: wp.array(dtype=wp.float16),
):
    """A cell that lost an edge no longer keeps its volume; named by its low corner."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    lost = wp.bool(False)
    for corner in range(8):
        x = corner % 2
        y = corner // 2 % 2
        z = corner // 4
        i = lattice.rows[9 * tile + 4 + y + 3 * z] + lane + x
        # Edges along x, y and z start at the corners with that coordinate 0; see springs.DIRECTIONS.
        lost = lost or (x == 0 and cut[i] != wp.uint8(0))
        lost = lost or (y == 0 and cut[2 * lattice.slots + i] != wp.uint8(0))
        lost = lost or (z == 0 and cut[8 * lattice.slots + i] != wp.uint8(0))
    if lost:
        bulk_out[lattice.tile_slot[tile] + lane] = wp.float16(0.0)


@wp.kernel
def merge_cuts(
    first: int,
    # in
    cut: wp.array(dtype=wp.uint8),
    crossing: wp.array(dtype=wp.int64),
    # out
    cut_out: wp.array(dtype=wp.uint8),
    crossing_out: wp.array(dtype=wp.int64),
):
    """What is cut in either is cut; where a blade has been since, its place counts."""
    i = first + wp.tid()
    if cut[i] != wp.uint8(0):
        cut_out[i] = wp.uint8(1)
    if i < crossing.shape[0] and crossing_out[i] == wp.int64(0):
        crossing_out[i] = crossing[i]


def record_drop(stage: Stage, tissue: Tissue, cut: wp.array[Any]) -> None:
    """Springs and cells that are cut are gone from this lattice, whatever was written into it."""
    stage.launch(drop_springs, cut.size, [cut, tissue.constants.stiffness])
    if tissue.params.has_volume:
        stage.launch(drop_cells, len(tissue.layout.tile_slot) * TILE, [tissue.constants, cut, tissue.bulk])


class CutShadow:
    """Of one lattice."""

    def __init__(self, real: Tissue, shadow: Tissue) -> None:
        self._real = real
        blades = need_cutting(real).blades
        self.cut: wp.array[Any] = wp.clone(blades.cut)
        """1 where a spring is cut, uint8, per direction and place."""
        self.crossing: wp.array[Any] = wp.clone(blades.crossing)
        """Where axis springs are cut, int64, per axis and place."""

        def record(stage: Stage) -> None:
            stage.once(lambda: wp.copy(self.cut, blades.cut))
            stage.once(lambda: wp.copy(self.crossing, blades.crossing))
            record_drop(stage, shadow, self.cut)

        def record_landing(stage: Stage) -> None:
            stage.launch(merge_cuts, self.cut.size, [self.cut, self.crossing, blades.cut, blades.crossing])
            record_drop(stage, real, blades.cut)

        self._program = real.device.record(record, work=1)
        self._landing = real.device.record(record_landing, work=1)
        self.changes = 0
        """Grows with every `take` that had news, and whenever something tore here."""

    def take(self) -> None:
        """As of now, between two ticks."""
        news = need_cutting(self._real).news
        if news.host[0] != 0:
            self._program.run()
            self._real.device.synchronize()
            news.host[0] = 0
            self.changes += 1

    def land(self) -> None:
        """What was torn here is cut in the lattice from the next tick on; between two ticks."""
        self._landing.run()
        self._real.device.synchronize()

    def springs(self) -> NDArray[np.bool_]:
        """Which springs are cut, per direction and mass, shape (13, masses)."""
        return self.cut.numpy().reshape(13, -1)[:, self._real.layout.slot_of_node] != 0

    def links(self) -> NDArray[np.int64]:
        """Where axis springs are cut (`unpack_crossings`), 0 where they are whole, per axis and mass, (3, masses)."""
        return self.crossing.numpy().reshape(3, -1)[:, self._real.layout.slot_of_node]
