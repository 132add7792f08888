"""A lattice cut into slabs, each on a device of its own (Etheredge, Kunst and Sanders 2013 propose it in §7).

A cut lies between two layers of masses of constant z. Memory is ordered by z first, so a slab is one contiguous range
of the whole lattice's places, and so is each layer at a cut:

    nothing | layer below (halo) | own layers | layer above (halo) | nothing

Every slab is a `Tissue` whose halo masses have no weight. After each substep the first and the last own layer of a
slab are copied into its neighbours' halos: p alone, since springs, volume, torsion and creep take nothing else from
another mass. Stiffness, masses and substeps are cut out of the whole lattice, and forces on tools are integers, so the
result is that of one lattice bit for bit, on the same device.

Turn an organ so that z is its longest axis: the halo is a layer of constant z, and its bytes are what slabs cost.

Slabs on one device are one recorded program. On several devices each substep is a program per slab, and the copies in
between wait for all of them: simple and right. Only one device could be measured so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Program, Stage, open_device
from viscera.errors import InputError, StateError
from viscera.geometry.distance import DistanceField
from viscera.timing import TICKS_PER_FRAME
from viscera.tissue import kernels
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.params import LatticeParams
from viscera.tissue.slab_cuts import Cut, Halo, cut_out, halos_at, layers_of, make_slab, share_out


@dataclass
class Slabs:
    """A cut lattice that can be stepped like a `Tissue`."""

    params: LatticeParams
    parts: list[Tissue]
    cuts: list[Cut]
    halos: list[Halo]
    mass: NDArray[np.float64]
    """Of each mass of the whole lattice [kg]."""
    _programs: dict[Any, Program] = field(default_factory=dict)

    @property
    def substeps(self) -> int:
        return self.parts[0].substeps

    @property
    def ticks(self) -> int:
        return self.parts[0].ticks

    def halo_bytes(self) -> int:
        """Bytes that cross all cuts per substep, both ways together."""
        return sum(3 * 4 * halo.count for halo in self.halos)

    # --- stepping ---

    def step(self) -> None:
        """One tick of all slabs."""
        for part in self.parts:
            part.state.clock.host[0] = part.ticks
        if self._one_device:
            self._program("tick", self.parts[0].device, self._record_tick).run()
        else:
            self._step_apart()
        for part in self.parts:
            part.current = (part.current + part.substeps) % 2
            part.ticks += 1
        if self.params.creep.fraction > 0.0 and self.ticks % TICKS_PER_FRAME == 0:
            for number, part in enumerate(self.parts):
                self._program(("creep", number), part.device, part._record_creep).run()
        self._wait()
        if any(part.state.broken.host[0] for part in self.parts):
            raise StateError(
                f"the tissue's state is no longer finite at tick {self.ticks}.",
                "The recording is kept. Reset the scenario; if it happens again, lower the stiffness or the damping.",
                stage="tissue",
                tick=self.ticks,
            )

    @property
    def _one_device(self) -> bool:
        return all(part.device is self.parts[0].device for part in self.parts)

    def _program(self, name: Any, device: Device, record: Callable[..., None], *arguments: Any) -> Program:
        key = (name, self.parts[0].current)
        if key not in self._programs:
            work = len(self.params.nodes) * self.substeps
            self._programs[key] = device.record(record, work=work, arguments=arguments)
        return self._programs[key]

    def _record_tick(self, stage: Stage) -> None:
        for part in self.parts:
            _record_start(part, stage)
        for substep in range(self.substeps):
            for part in self.parts:
                _record_substep(part, stage, substep)
            stage.once(lambda substep=substep: self._exchange(self._next(substep)))
        for part in self.parts:
            _record_end(part, stage)

    def _step_apart(self) -> None:
        """The tick for slabs on several devices: a program per slab and substep, copies in between."""
        for number, part in enumerate(self.parts):
            self._program(("start", number), part.device, lambda stage, part=part: _record_start(part, stage)).run()
        for substep in range(self.substeps):
            for number, part in enumerate(self.parts):

                def record(stage: Stage, part: Tissue = part, substep: int = substep) -> None:
                    _record_substep(part, stage, substep)

                self._program((substep, number), part.device, record).run()
            self._wait()
            self._exchange(self._next(substep))
            self._wait()
        for number, part in enumerate(self.parts):
            self._program(("end", number), part.device, lambda stage, part=part: _record_end(part, stage)).run()

    def _next(self, substep: int) -> int:
        """Which position buffer a substep writes."""
        return (self.parts[0].current + substep + 1) % 2

    def _exchange(self, buffer: int) -> None:
        """Each halo gets what its owner has in this position buffer."""
        for halo in self.halos:
            source, target = self.parts[halo.source], self.parts[halo.target]
            for axis in range(3):
                wp.copy(
                    target.state.position[buffer],
                    source.state.position[buffer],
                    axis * target.layout.slots + halo.target_place,
                    axis * source.layout.slots + halo.source_place,
                    halo.count,
                )

    def _wait(self) -> None:
        for part in self.parts:
            part.device.synchronize()

    # --- what a world asks for, as of a Tissue ---

    def set_tool(self, tool: int, *, start: NDArray[Any], end: NDArray[Any], radius: float, friction: float) -> None:
        for part in self.parts:
            part.set_tool(tool, start=start, end=end, radius=radius, friction=friction)

    def remove_tool(self, tool: int) -> None:
        for part in self.parts:
            part.remove_tool(tool)

    def set_field(self, tool: int, shapes: Sequence[DistanceField | Sequence[DistanceField]] | None) -> None:
        """Gives a tool the shape of a distance field, or of its parts: one per slab, each on that slab's device."""
        for number, part in enumerate(self.parts):
            part.set_field(tool, None if shapes is None else shapes[number])
        self._programs.clear()

    def set_field_tool(
        self, tool: int, start: NDArray[Any], end: NDArray[Any], friction: float, tip: NDArray[Any] | None = None
    ) -> None:
        for part in self.parts:
            part.set_field_tool(tool, start, end, friction, tip)

    def set_drive(self, start: float, end: float) -> None:
        for part in self.parts:
            part.set_drive(start, end)

    def tool_force(self, tool: int) -> tuple[list[float], list[float]]:
        """Mean force [N] and torque about the tool's first point [N·m] over the last tick, summed over the slabs."""
        row = slice(tool * kernels.FORCE_PARTS, (tool + 1) * kernels.FORCE_PARTS)
        raw = np.asarray(sum(part.state.force.host[row] for part in self.parts)).tolist()
        return (
            [value / (kernels.FORCE_UNITS * self.substeps) for value in raw[:3]],
            [value / (kernels.TORQUE_UNITS * self.substeps) for value in raw[3:]],
        )

    def set_gravity(self, gravity: tuple[float, float, float]) -> None:
        for part in self.parts:
            part.set_gravity(gravity)

    def set_young(self, young: float) -> None:
        for part in self.parts:
            part.set_young(young)

    def set_viscous_time(self, viscous_time: float) -> None:
        for part in self.parts:
            part.set_viscous_time(viscous_time)
        # A halo has no velocities, so what p = u + τ·v became there is fetched from its owner.
        self._wait()
        self._exchange(self.parts[0].current)

    def set_drag(self, drag: float) -> None:
        for part in self.parts:
            part.set_drag(drag)

    def displacement(self) -> NDArray[np.float32]:
        """u of every mass of the whole lattice [m], shape (masses, 3)."""
        return self._gather(Tissue.displacement)

    def velocities(self) -> NDArray[np.float32]:
        """v of every mass of the whole lattice [m/s], shape (masses, 3)."""
        return self._gather(Tissue.velocities)

    def _gather(self, read: Callable[[Tissue], NDArray[np.float32]]) -> NDArray[np.float32]:
        found = np.empty((len(self.params.nodes), 3), dtype=np.float32)
        for cut, part in zip(self.cuts, self.parts, strict=True):
            found[cut.masses] = read(part)
        return found

    def set_motion(self, displacement: NDArray[Any], velocity: NDArray[Any]) -> None:
        """Puts every mass at this displacement [m] with this velocity [m/s], both of shape (masses, 3)."""
        for cut, part in zip(self.cuts, self.parts, strict=True):
            part.set_motion(displacement[cut.masses], velocity[cut.masses])
        self._wait()
        for buffer in (0, 1):
            self._exchange(buffer)

    def rest_positions(self) -> NDArray[np.float64]:
        """World rest position of every mass of the whole lattice [m], shape (masses, 3)."""
        return np.asarray(self.params.origin) + self.params.nodes.astype(np.float64) * self.params.spacing


def _record_start(part: Tissue, stage: Stage) -> None:
    state = part.state
    for port in (state.live, state.tools, state.clock, state.drive, state.poses):
        stage.upload(port)
    stage.clear(state.force)


def _record_substep(part: Tissue, stage: Stage, substep: int) -> None:
    """One turn of the loop in `Tissue._record_tick`."""
    state, now = part.state, (part.current + substep) % 2
    here, there = state.position[now], state.position[1 - now]
    part._record_drive(stage, substep, here, there)
    part._record_extra(stage, here)
    part._record_step(stage, substep, here, there)
    part.record_fields(stage, substep, there)


def _record_end(part: Tissue, stage: Stage) -> None:
    stage.download(part.state.force)
    stage.download(part.state.broken)


def make_slabs(devices: Sequence[Device], params: LatticeParams, *, native: bool = True) -> Slabs:
    """The lattice of `params` in one slab per device; a device may be named several times."""
    if params.rest_skipping is not None:
        raise InputError("slabs: rest skipping is on.", "Leave `rest_skipping` out, or make one lattice.")
    whole = make_lattice(open_device("cpu", cores=1), params, native=native)
    layers = layers_of(whole.layout)
    if not 1 <= len(devices) <= len(layers):
        raise InputError(
            f"slabs: {len(devices)} slabs of a lattice with {len(layers)} layers.",
            f"Give 1 to {len(layers)} devices; each slab has at least one layer of constant z.",
        )
    firsts = share_out(whole.layout, layers, len(devices))
    cuts = [cut_out(whole, a, b) for a, b in zip(firsts, [*firsts[1:], int(layers[-1]) + 1], strict=True)]
    parts = [make_slab(device, whole, cut) for device, cut in zip(devices, cuts, strict=True)]
    halos = [halo for upper in range(1, len(cuts)) for halo in halos_at(whole.layout, cuts, upper, firsts[upper])]
    return Slabs(params, parts, cuts, halos, whole.mass)
