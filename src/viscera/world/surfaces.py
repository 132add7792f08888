"""What is seen of the organs, brought up to their lattices."""

from __future__ import annotations

from collections.abc import Sequence

from viscera.device import Device, Program, Stage
from viscera.world.organ import Organ


class Surfaces:
    """Of all organs of a world, in one program."""

    def __init__(self, organs: Sequence[Organ], device: Device) -> None:
        self._organs, self._device = organs, device
        self._programs: dict[tuple[int, ...], Program] = {}

    def follow(self) -> None:
        """To where the lattices are now."""
        # Which buffer holds the present alternates with the substeps, so there is a program for each case.
        buffers = tuple(organ.tissue.current for organ in self._organs)
        if buffers not in self._programs:
            work = sum(organ.surface_work() for organ in self._organs)
            self._programs[buffers] = self._device.record(self._record, work=work)
        self._programs[buffers].run()
        self._device.synchronize()

    def _record(self, stage: Stage) -> None:
        for organ in self._organs:
            organ.record_surface(stage)
