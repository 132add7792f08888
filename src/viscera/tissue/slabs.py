"""A lattice cut into slabs, each on a device of its own (Etheredge, Kunst and Sanders 2013 propose it in §7).

A cut lies between two layers of masses of constant z. Memory is ordered by z first, so a slab is one contiguous range
of the whole lattice's places, and so is each layer at a cut:

    nothing | layer below (halo) | own layers | layer above (halo) | nothing

Every slab is a `Tissue` whose halo masses have no weight. After each substep the first and the last own layer of a
slab are copied into its neighbours' halos: p alone, since springs, volume, torsion and creep take nothing else from
another mass; and v where viscous times differ (viscosity.py). Stiffness, masses and substeps are cut out of the whole
lattice, and forces on tools are integers, so the result is that of one lattice bit for bit, on the same device.

To the outside there is one `Tissue`, the whole lattice, that is asked for everything and computes next to nothing:
before a tick its tools and settings go to the slabs, after it their forces are summed. Its arrays follow the slabs once
a frame and whenever one of its methods needs them. Lattices in slabs do not skip rest and do not burn.

Tools touch masses in the slabs. Where the lattice has a surface, its points hang on masses of several slabs: then the
whole lattice is up to date in every substep in which there are tools, they touch it there, and what they moved goes
back. That is the single lattice's contact to the bit, and costs 24 bytes per mass and substep each way; without tools
only the halos cross.

Turn an organ so that z is its longest axis: the halo is a layer of constant z, and its bytes are what slabs cost.

Slabs on one device are one recorded program. On several devices each substep is a program per slab, and the copies in
between wait for all of them: simple and right. Only one device could be measured so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import warp as wp

from viscera.device import Device, Program, Stage
from viscera.errors import InputError
from viscera.geometry.distance import DistanceField
from viscera.tissue import touch_kernels
from viscera.tissue.making import make_whole
from viscera.tissue.params import LatticeParams, check_params
from viscera.tissue.slab_cuts import Cut, Halo, cut_out, halos_at, layers_of, make_slab, mask_weights, share_out
from viscera.tissue.stepping import record_creep, record_end, record_free_substep, record_start, record_substep
from viscera.tissue.tissue import Tissue
from viscera.tissue.touching import record_near, record_touch

TOLD = ("live", "tools", "clock", "drive", "poses")
"""Ports whose host side goes from the whole lattice to its slabs before a tick."""
MOTION = ("position", "velocity")


@dataclass
class Slabs:
    """The parts of a cut lattice; `Tissue.slabs` of the whole. `whole` is that lattice."""

    parts: list[Tissue]
    cuts: list[Cut]
    halos: list[Halo]
    stale: bool = False
    """Whether an array of the whole lattice may be behind the parts'."""
    surface: bool = False
    """Whether tools touch points of a surface, which the whole lattice has."""
    _behind: bool = False
    """Whether its positions and velocities are."""
    _programs: dict[Any, Program] = field(default_factory=dict)

    def halo_bytes(self) -> int:
        """Bytes that cross all cuts per substep, both ways together."""
        return sum(3 * 4 * halo.count for halo in self.halos) * (2 if self.parts[0].viscosity else 1)

    # --- stepping ---

    def step(self, whole: Tissue) -> None:
        """One tick of all slabs."""
        for part in self.parts:
            for name in TOLD:
                getattr(part.state, name).host[...] = getattr(whole.state, name).host
        touches = self.surface and has_tools(whole)
        if touches and self._behind:
            self._gather(whole, MOTION)
        if self._one_device:
            name = "touched" if touches else "tick"
            self._program(name, self.parts[0].device, lambda stage: self._record_tick(stage, whole, touches)).run()
        else:
            self._step_apart(whole, touches)
        for part in self.parts:
            part.current = (part.current + part.substeps) % 2
            part.ticks += 1
        self._wait()
        force = whole.state.force.host
        if not touches:
            force[...] = 0
        for part in self.parts:
            force += part.state.force.host  # nothing, where the whole was touched
            whole.state.broken.host[0] |= part.state.broken.host[0]
        self.stale, self._behind = True, not touches

    def frame(self, whole: Tissue) -> None:
        """What is due once a frame: creep, and positions for whoever draws them."""
        if whole.params.creep.fraction > 0.0:
            for number, part in enumerate(self.parts):
                self._program(("creep", number), part.device, lambda stage, part=part: record_creep(stage, part)).run()
        self._wait()
        self._gather(whole, MOTION)

    @property
    def _one_device(self) -> bool:
        return all(part.device is self.parts[0].device for part in self.parts)

    def _program(self, name: Any, device: Device, record: Callable[..., None]) -> Program:
        key = (name, self.parts[0].current)
        if key not in self._programs:
            work = sum(len(part.params.nodes) for part in self.parts) * self.parts[0].substeps
            self._programs[key] = device.record(record, work=work)
        return self._programs[key]

    def _record_tick(self, stage: Stage, whole: Tissue, touches: bool) -> None:
        """`touches` says whether tools touch the whole lattice, and not the parts."""
        for part in self.parts:
            record_start(stage, part)
            if not touches:
                record_near(stage, part, part.state.position[part.current])
        if touches:
            record_start(stage, whole)
            record_near(stage, whole, whole.state.position[whole.current])
        for substep in range(whole.substeps):
            for part in self.parts:
                self._record_substep(stage, part, substep, touches)
            buffer = self._next(substep)
            if touches:
                stage.once(lambda buffer=buffer: self._gather_motion(whole, buffer))
                record_touch(stage, whole, substep, whole.state.position[buffer])
                stage.once(lambda buffer=buffer: self._scatter_motion(whole, buffer))
            else:
                stage.once(lambda buffer=buffer: self._exchange(buffer))
        for part in self.parts:
            record_end(stage, part)
        if touches:
            record_end(stage, whole)

    def _record_substep(self, stage: Stage, part: Tissue, substep: int, touches: bool) -> None:
        if touches:
            record_free_substep(stage, part, substep, part.current)
        else:
            record_substep(stage, part, substep, part.current)

    def _step_apart(self, whole: Tissue, touches: bool) -> None:
        """The tick for slabs on several devices: a program per slab and substep, copies in between."""

        def start(stage: Stage, one: Tissue, touched: bool) -> None:
            record_start(stage, one)
            if touched:
                record_near(stage, one, one.state.position[one.current])

        def run(name: Any, number: int, part: Tissue, record: Callable[[Stage], None]) -> None:
            self._program((name, number, touches), part.device, record).run()

        for number, part in enumerate(self.parts):
            run("start", number, part, lambda stage, part=part: start(stage, part, not touches))
        if touches:
            run("start", -1, whole, lambda stage: start(stage, whole, True))
        for substep in range(whole.substeps):
            for number, part in enumerate(self.parts):
                run(substep, number, part, lambda stage, p=part, k=substep: self._record_substep(stage, p, k, touches))
            self._wait()
            buffer = self._next(substep)
            if touches:
                self._gather_motion(whole, buffer)
                self._wait()
                there = whole.state.position[buffer]
                run(substep, -1, whole, lambda stage, k=substep, there=there: record_touch(stage, whole, k, there))
                whole.device.synchronize()
                self._scatter_motion(whole, buffer)
            else:
                self._exchange(buffer)
            self._wait()
        for number, part in enumerate([*self.parts, whole] if touches else self.parts):
            run("end", number, part, lambda stage, part=part: record_end(stage, part))
        whole.device.synchronize()

    def _next(self, substep: int) -> int:
        """Which position buffer a substep writes."""
        return (self.parts[0].current + substep + 1) % 2

    def _exchange(self, buffer: int) -> None:
        """Each halo gets what its owner has in this position buffer, and its velocities where they count."""
        for halo in self.halos:
            source, target = self.parts[halo.source], self.parts[halo.target]
            pairs = [(target.state.position[buffer], source.state.position[buffer])]
            if target.viscosity is not None:
                pairs.append((target.state.velocity, source.state.velocity))
            for to, of in pairs:
                for axis in range(3):
                    start = axis * target.layout.slots + halo.target_place
                    wp.copy(to, of, start, axis * source.layout.slots + halo.source_place, halo.count)

    def _wait(self) -> None:
        for part in self.parts:
            part.device.synchronize()

    # --- between the whole lattice and its parts ---

    def gather(self, whole: Tissue) -> None:
        """Brings all arrays of the whole lattice up to the parts."""
        if self.stale:
            self._gather(whole, (*MOTION, "creep"))
            self.stale = False

    def _gather_motion(self, whole: Tissue, buffer: int) -> None:
        """What the parts have in this position buffer, and their velocities, are the whole lattice's too."""
        for cut, part in zip(self.cuts, self.parts, strict=True):
            for to, of in _motion(whole, part, buffer):
                _copy_places(to, of, cut.own.start, int(cut.local(cut.own.start)), cut.own, whole, part)

    def _scatter_motion(self, whole: Tissue, buffer: int) -> None:
        """And back, into the halos too."""
        for cut, part in zip(self.cuts, self.parts, strict=True):
            for to, of in _motion(part, whole, buffer):
                _copy_places(to, of, int(cut.local(cut.places.start)), cut.places.start, cut.places, part, whole)

    def _gather(self, whole: Tissue, names: tuple[str, ...]) -> None:
        self._behind = self._behind and "position" not in names
        for cut, part in zip(self.cuts, self.parts, strict=True):
            to, of = _arrays(whole), _arrays(part)
            for name in names:
                _copy_places(to[name], of[name], cut.own.start, int(cut.local(cut.own.start)), cut.own, whole, part)
        self._wait()

    def scatter(self, whole: Tissue) -> None:
        """Gives the parts, and their halos, what the arrays of the whole lattice have; both position buffers get the
        current one, since anchors are never written."""
        for cut, part in zip(self.cuts, self.parts, strict=True):
            part.ticks, part.current = whole.ticks, whole.current
            part.state.broken.host[0] = 0
            to, of = _arrays(part), _arrays(whole)
            to["other position"], of["other position"] = part.state.position[1 - part.current], of["position"]
            for name in to:
                _copy_places(
                    to[name], of[name], int(cut.local(cut.places.start)), cut.places.start, cut.places, part, whole
                )
            mask_weights(part.constants, cut)
        self._wait()
        self.stale = self._behind = False

    def share_fields(self, whole: Tissue) -> None:
        """The parts get the distance fields of the whole lattice's tools, unless they touch the whole."""
        self._programs.clear()
        if self.surface:
            return
        if not self._one_device and whole.fields:
            raise InputError(
                "slabs on several devices: a distance field is on one of them.",
                "Make one on each device and call `tissue.slabs.set_field` with a list, one per slab.",
            )
        for part in self.parts:
            part.fields = dict(whole.fields)

    def set_field(self, tool: int, shapes: Sequence[DistanceField | Sequence[DistanceField]] | None) -> None:
        """For slabs on several devices: a tool's distance field, or its parts', once per slab."""
        for number, part in enumerate(self.parts):
            part.set_field(tool, None if shapes is None else shapes[number])
        self._programs.clear()


def has_tools(tissue: Tissue) -> bool:
    """Whether a tool is there in the next tick."""
    bars = tissue.state.tools.host[: touch_kernels.TIPS : touch_kernels.PART_FLOATS]
    return bool(bars.any()) or bool(tissue.state.poses.host[:: touch_kernels.POSE_FLOATS].any())


def _motion(to: Tissue, of: Tissue, buffer: int) -> list[tuple[wp.array[Any], wp.array[Any]]]:
    return [(to.state.position[buffer], of.state.position[buffer]), (to.state.velocity, of.state.velocity)]


def _arrays(tissue: Tissue) -> dict[str, wp.array[Any]]:
    """What a cut lattice and its parts have in common, by name."""
    state, constants = tissue.state, tissue.constants
    found = {
        "position": state.position[tissue.current],
        "velocity": state.velocity,
        "stiffness": constants.stiffness,
        "inverse_mass": constants.inverse_mass,
        "creep": constants.creep,
        "bulk": tissue.bulk,
    }
    return found


def _copy_places(
    to: wp.array[Any], of: wp.array[Any], at: int, start: int, places: slice, owner: Tissue, source: Tissue
) -> None:
    """So many places of every component of an array; nothing of the array of a feature that is off."""
    count = places.stop - places.start
    for component in range(to.size // owner.layout.slots):
        wp.copy(to, of, component * owner.layout.slots + at, component * source.layout.slots + start, count)


def make_slabs(devices: Sequence[Device], params: LatticeParams, *, native: bool = True) -> Tissue:
    """The lattice of `params` in one slab per device; a device may be named several times. The whole is on the first
    one."""
    check_params(params)
    if params.rest_skipping is not None:
        raise InputError("slabs: rest skipping is on.", "Leave `rest_skipping` out, or make one lattice.")
    if not devices:
        raise InputError("slabs: no device is given.", "Give one per slab; the same one may be given several times.")
    whole = make_whole(devices[0], params, native=native, bricks=False)
    layers = layers_of(whole.layout)
    if len(devices) > len(layers):
        raise InputError(
            f"slabs: {len(devices)} slabs of a lattice with {len(layers)} layers.",
            f"Give 1 to {len(layers)}; each slab has at least one layer of constant z.",
        )
    firsts = share_out(whole.layout, layers, len(devices))
    cuts = [cut_out(whole, a, b) for a, b in zip(firsts, [*firsts[1:], int(layers[-1]) + 1], strict=True)]
    parts = [make_slab(device, whole, cut) for device, cut in zip(devices, cuts, strict=True)]
    halos = [halo for upper in range(1, len(cuts)) for halo in halos_at(whole.layout, cuts, upper, firsts[upper])]
    whole.slabs = Slabs(parts, cuts, halos)
    return whole
