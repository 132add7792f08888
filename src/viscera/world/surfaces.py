"""What is seen of the organs, brought up to their lattices: for the systems, and for the eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from viscera.device import Device, Stage
from viscera.tissue.shadow import Glance
from viscera.tissue.surface import follow_lattice
from viscera.world.organ import Organ


class Surfaces:
    """Of all organs of a world, in one program, as their shadows have them."""

    def __init__(self, organs: Sequence[Organ], device: Device) -> None:
        self._organs, self._device = organs, device
        self._program = device.record(self._record, work=sum(organ.surface_work() for organ in organs))

    def take(self) -> None:
        """The lattices' shadows are of this moment."""
        for organ in self._organs:
            organ.shadow.take()

    def follow(self) -> None:
        """To where the shadows are."""
        self._program.run()
        self._device.synchronize()

    def _record(self, stage: Stage) -> None:
        for organ in self._organs:
            organ.record_surface(stage)


class Drawn:
    """The organs' vertices for the eye, which must not wait until the systems are done with theirs."""

    def __init__(self, organs: Sequence[Organ], device: Device) -> None:
        self._device = device.sibling(1)
        self._organs = organs
        self._glances = [Glance(organ.tissue) for organ in organs]
        self._hung = [_Hung(organ) for organ in organs]
        self.arrays: dict[str, wp.array[Any]] = {organ.name: wp.zeros_like(organ.vertices) for organ in organs}
        self._program = self._device.record(self._record)

    def take(self) -> None:
        """The lattices as they are now; between two ticks."""
        for glance in self._glances:
            glance.take()

    def follow(self) -> None:
        """To where they were when they were taken."""
        self._program.run()
        self._device.synchronize()

    def adopt(self) -> None:
        """Surfaces that were cut are drawn as they are now: as a turn ends, while nothing is drawn."""
        for hung in self._hung:
            hung.adopt()

    def _record(self, stage: Stage) -> None:
        for organ, hung, glance in zip(self._organs, self._hung, self._glances, strict=True):
            args = [hung.rest, hung.places, hung.weights, organ.tissue.layout.slots, glance.displacement]
            stage.launch(follow_lattice, len(hung.rest), [*args, self.arrays[organ.name]])


class _Hung:
    """What an organ's surface hangs on; of one that is cut a copy, as the systems change theirs meanwhile."""

    def __init__(self, organ: Organ) -> None:
        self._organ, self._version = organ, 0
        changes = organ.cuts is not None
        arrays = (organ.rest, organ.places, organ.weights)
        self.rest, self.places, self.weights = (wp.clone(one) if changes else one for one in arrays)

    def adopt(self) -> None:
        organ = self._organ
        if organ.cuts is not None and organ.cuts.version != self._version:
            self._version = organ.cuts.version
            for mine, its in ((self.rest, organ.rest), (self.places, organ.places), (self.weights, organ.weights)):
                wp.copy(mine, its)
