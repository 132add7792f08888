"""The shadow of a lattice: what work beside the ticks may see and change of it.

At the end of a frame the shadow takes the displacements; while the next ticks run, a surface may follow them, and
springs may stiffen or tear, in the shadow alone. `land` puts the changed springs in force between two ticks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import warp as wp

from viscera.device import Device, Program, Stage
from viscera.tissue.cut_shadow import CutShadow, record_drop
from viscera.tissue.kernels import LIVE_VISCOUS_TIME, Lattice
from viscera.tissue.tissue import Tissue

wp.set_module_options({"enable_backward": False})


@wp.kernel
def see_lattice(
    first: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    displacement_out: wp.array(dtype=wp.float32),
):
    """u = p − τ·v (see kernels.py)."""
    i = first + wp.tid()
    displacement_out[i] = position[i] - live[LIVE_VISCOUS_TIME] * velocity[i]


class Glance:
    """Where the masses are, kept: u of every place [m], shape (3·slots,)."""

    def __init__(self, tissue: Tissue) -> None:
        self._tissue = tissue
        self.displacement: wp.array[Any] = wp.zeros_like(tissue.state.velocity)
        # Which buffer holds the present alternates with the substeps, so there is a program for each.
        self._programs: list[Program] = [self._record(buffer) for buffer in (0, 1)]

    def take(self) -> None:
        """Of this moment, between two ticks."""
        if self._tissue.slabs is not None:
            self._tissue.slabs.gather(self._tissue)
        self._programs[self._tissue.current].run()
        self._tissue.device.synchronize()

    def _record(self, buffer: int) -> Program:
        state = self._tissue.state
        args = [state.live.array, state.position[buffer], state.velocity, self.displacement]

        def record(stage: Stage) -> None:
            stage.upload(state.live)
            stage.launch(see_lattice, self.displacement.size, args)

        return self._tissue.device.record(record, work=self.displacement.size)


class Shadow:
    """Of one lattice. `tissue` is the shadow itself: ask it what you would ask a lattice between ticks, but never step
    it. Its positions are displacements, its velocities 0."""

    def __init__(self, tissue: Tissue, device: Device) -> None:
        self._real = tissue
        self._glance = Glance(tissue)
        still = wp.zeros_like(tissue.state.velocity)
        live = device.port(len(tissue.state.live.host), wp.float32)
        seen = self._glance.displacement
        self.tissue = replace(
            tissue,
            device=device,
            constants=_copied(tissue.constants),
            bulk=wp.clone(tissue.bulk),
            state=replace(tissue.state, position=(seen, seen), velocity=still, live=live),
            current=0,
            slabs=None,
            cutting=None,
            sewing=None,
            clamps=None,
            fields={},
            _programs={},
        )
        self.cuts = None if tissue.cutting is None else CutShadow(tissue, self.tissue)
        """What blades have cut, as of the last `take`."""
        self._landing = tissue.device.record(self._record_landing, work=1)
        self.take()

    @property
    def displacement(self) -> wp.array[Any]:
        """u of every place as of the last `take` [m], shape (3·slots,)."""
        return self._glance.displacement

    def take(self) -> None:
        """The lattice as it is now, between two ticks."""
        self._glance.take()
        if self.cuts is not None:
            self.cuts.take()
        self.tissue.state.live.host[:] = self._real.state.live.host

    def land(self) -> None:
        """Springs and cells of the shadow are in force from the next tick on."""
        self._landing.run()
        self._real.device.synchronize()
        self._real.wake()

    def _record_landing(self, stage: Stage) -> None:
        stage.once(lambda: wp.copy(self._real.constants.stiffness, self.tissue.constants.stiffness))
        stage.once(lambda: wp.copy(self._real.bulk, self.tissue.bulk))
        if self._real.cutting is not None:
            # What was cut while the systems were at work stays cut.
            record_drop(stage, self._real, self._real.cutting.blades.cut)


def _copied(lattice: Any) -> Any:
    """The same lattice with springs of its own."""
    copy: Any = Lattice()
    copy.assign(lattice)
    copy.stiffness = wp.clone(lattice.stiffness)
    return copy
