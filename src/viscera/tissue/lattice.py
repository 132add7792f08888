"""Soft tissue as a volumetric lattice of masses and springs that one can push.

`make_lattice` turns integer mass positions into arrays; `Tissue` owns them together with the recorded step. The
physics is in `kernels.py`, the places in memory in `layout.py`, the stiffnesses in `springs.py`.

Source: Etheredge, Kunst and Sanders, "Harnessing the GPU for Real-Time Haptic Tissue Simulation", JCGT 2(2), 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Port, Program, Stage
from viscera.errors import InputError, StateError
from viscera.geometry.distance import DistanceField
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.tissue import field_contact, kernels, native, volume
from viscera.tissue.creep import creep_on
from viscera.tissue.driven import drive_anchors
from viscera.tissue.layout import TILE, Layout, make_layout
from viscera.tissue.params import LatticeParams, bulk_step, check_params, checked_substeps
from viscera.tissue.remedies import stiffness_factor, torsion_forces
from viscera.tissue.springs import (
    DIRECTIONS,
    NodeIndex,
    axis_stiffness,
    cells_around,
    length_ratio,
    mass_share,
    spring_share,
)

NATIVE_BLOCK = 1024 // TILE
"""Tiles per block when a launch is over tiles."""

PROBE_ROUNDS = 60
"""Of power iteration for the highest frequency."""
PROBE_SIZE = 1e-3
"""Largest displacement in it, in spacings: small enough to be linear, large enough for float32."""
PROBE_MARGIN = 1.04
"""It nears ω² from below and is a few percent short after these rounds."""
PROBE_MOST = 200_000
"""Masses up to which it is done; it takes seconds there. Larger lattices take the endless lattice's step over
`RAGGED`."""
RAGGED = 1.4
"""How much faster than the bulk the most ragged lattices made of whole cells ring: 1.29, and 1.35 at ν = 0.49."""


@dataclass
class LatticeState:
    """What changes. In arrays of vectors three components follow each other: all x, all y, all z; `layout` says where
    in them a mass is."""

    position: tuple[wp.array[Any], wp.array[Any]]
    """p = u + τ·v [m], float32, shape (3·slots,) each: this step's and the next one's; which is which alternates with
    every substep."""
    velocity: wp.array[Any]
    """v [m/s], float32, shape (3·slots,)."""
    live: Port
    """Numbers that may change while programs run, float32, shape (LIVE_FLOATS,): gravity [m/s²], stiffness [N/m],
    τ [s] …, see kernels.LIVE_*."""
    tools: Port
    """Where tools are, float32, shape (TOOLS·TOOL_FLOATS,): of each tool on, radius [m], friction, and its ends [m]
    from the origin, as the tick starts and ends; see kernels.TOOL_*."""
    force: Port
    """Reaction on each tool, summed over the substeps of a tick, int64, shape (TOOLS·FORCE_PARTS,): force in 2⁻³⁰ N,
    then torque in 2⁻³⁶ N·m."""
    broken: Port
    """1 where a velocity is no longer finite, int32, shape (1,)."""
    clock: Port
    """Ticks so far, int32, shape (1,)."""
    drive: Port
    """Of the driven anchors, as the tick starts and ends, float32, shape (2,); see `set_drive`."""
    poses: Port
    """Of tools that are distance fields, float32, shape (TOOLS·PARTS·POSE_FLOATS,): on, friction, position [m] and
    quaternion of each part as the tick starts and ends, and the tip [m]."""
    push: wp.array[Any]
    """Of each cell, float32, shape (9·slots,) [N] (volume.py); one element where ν = 0.25."""


@dataclass
class Tissue:
    """A lattice that can be stepped. Owns its arrays and its recorded tick."""

    device: Device
    params: LatticeParams
    layout: Layout
    constants: Any
    """`Lattice` of kernels.py: places in memory, springs, masses."""
    state: LatticeState
    substeps: int
    """Per tick."""
    mass: NDArray[np.float64]
    """Of each mass [kg]; anchors have theirs too."""
    young: float
    """As set now [Pa]."""
    viscous_time: float
    """As set now [s]."""
    bulk: wp.array[Any]
    """Of each cell, relative to LIVE_BULK (volume.py), float16, shape (slots,); one element where ν = 0.25."""
    driven_places: wp.array[Any]
    """Slots of the driven anchors, int32, shape (driven,)."""
    driven_direction: wp.array[Any]
    """Their displacement for a drive of 1, vec3, shape (driven,) [m]."""
    current: int = 0
    """Which of the two position buffers is this tick's."""
    ticks: int = 0
    """So far, as the host has counted; see `sync_ticks`."""
    native: bool = True
    """False for the plain kernels."""
    fields: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """Distance fields of the tools that have some, one for each part."""
    _programs: dict[Any, Program] = field(default_factory=dict)

    # --- stepping ---

    def step(self) -> None:
        """One tick: all substeps with the tools as they are in `state.tools`. Waits for the device, and raises if it
        broke.

        This is the fast way for a host that acts after every tick, as a world does: it replays one of two programs, for
        either buffer, so nothing is copied. `tissue.step` records ticks into a program of one's own.
        """
        self.state.clock.host[0] = self.sync_ticks()
        self._program("tick", self._record_tick).run()
        self.current = (self.current + self.substeps) % 2
        self.ticks += 1
        if self.params.creep.fraction > 0.0 and self.ticks % TICKS_PER_FRAME == 0:
            self._program("creep", self._record_creep).run()
        self.device.synchronize()
        check_finite(self, self.ticks)

    def sync_ticks(self) -> int:
        """Ticks so far, also those of programs that counted on the device."""
        self.ticks = max(self.ticks, int(self.state.clock.host[0]))
        return self.ticks

    def _program(self, name: str, record: Any) -> Program:
        """The recorded program for the buffer that is current now."""
        program = self._programs.get((name, self.current))
        if program is None:
            work = len(self.params.nodes) * self.substeps
            program = self.device.record(record, work=work)
            self._programs[name, self.current] = program
        return program

    def _record_tick(self, stage: Stage) -> None:
        state = self.state
        for port in (state.live, state.tools, state.clock, state.drive, state.poses):
            stage.upload(port)
        self.record_substeps(stage, self.current)
        stage.download(state.force)
        stage.download(state.broken)

    def record_substeps(self, stage: Stage, current: int) -> None:
        """A tick from the buffer `current`, between what goes in and what comes out."""
        state = self.state
        stage.clear(state.force)
        here, there = state.position[current], state.position[1 - current]
        for substep in range(self.substeps):
            self._record_drive(stage, substep, here, there)
            self._record_extra(stage, here)
            self._record_step(stage, substep, here, there)
            self.record_fields(stage, substep, there)
            here, there = there, here

    def record_fields(self, stage: Stage, substep: int, there: wp.array[Any]) -> None:
        """Contact with the tools that are distance fields."""
        state = self.state
        for tool, grids in self.fields.items():
            for part, grid in enumerate(grids):
                args = [self.constants, grid, tool, part, substep, state.live.array, state.poses.array]
                args += [state.velocity, there, state.force.array]
                stage.launch(field_contact.touch_field, len(self.layout.tile_slot) * TILE, args)

    def _record_step(self, stage: Stage, substep: int, here: wp.array[Any], there: wp.array[Any]) -> None:
        state, tiles = self.state, len(self.layout.tile_slot)
        args = [self.constants, substep, state.live.array, state.tools.array, here]
        args += [state.velocity, there, state.force.array, state.broken.array]
        features = self.constants.features != 0
        if not self.native:
            stage.launch(kernels.lattice_step, tiles * TILE, args)
        elif self.device.is_cuda and features:
            stage.launch(native.lattice_features_cuda, tiles * TILE, args)
        elif self.device.is_cuda:
            stage.launch(native.lattice_pair_cuda, tiles * TILE // 2, args)
        else:
            kernel = native.lattice_features_cpu if features else native.lattice_step_cpu
            stage.launch(kernel, tiles, args, block=NATIVE_BLOCK)

    def _record_extra(self, stage: Stage, here: wp.array[Any]) -> None:
        """Forces besides the springs, into `constants.extra`."""
        state, tiles, constants = self.state, len(self.layout.tile_slot), self.constants
        if self.params.poisson > 0.25:
            args = [constants, self.bulk, state.live.array, here, state.push]
            if self.native and not self.device.is_cuda:
                stage.launch(volume.cell_pressure_cpu, tiles, args, block=NATIVE_BLOCK)
                stage.launch(
                    volume.gather_pressure_cpu, tiles, [constants, state.push, constants.extra], block=NATIVE_BLOCK
                )
            else:
                stage.launch(volume.cell_pressure, tiles * TILE, args)
                stage.launch(volume.gather_pressure, tiles * TILE, [constants, state.push, constants.extra])
        if self.params.remedies.torsion > 0.0:
            adds = int(self.params.poisson > 0.25)
            args = [constants, adds, state.live.array, here, constants.extra]
            stage.launch(torsion_forces, tiles * TILE, args)

    def _record_drive(self, stage: Stage, substep: int, here: wp.array[Any], there: wp.array[Any]) -> None:
        if self.driven_places.size:
            share = (substep + 1) / self.substeps
            args = [self.layout.slots, share, self.driven_places, self.driven_direction, self.state.drive.array]
            stage.launch(drive_anchors, self.driven_places.size, [*args, here, there])

    def record_probe(self, stage: Stage) -> None:
        """One substep without tools, from the first position buffer; see `_settle_substeps`."""
        stage.upload(self.state.live)
        self._record_extra(stage, self.state.position[0])
        self._record_step(stage, 0, self.state.position[0], self.state.position[1])

    def _record_creep(self, stage: Stage) -> None:
        self.record_creep(stage, self.current)

    def record_creep(self, stage: Stage, current: int) -> None:
        """A frame's worth of creep, with the positions in the buffer `current`."""
        creep = self.params.creep
        approach = 1.0 - float(np.exp(-TICKS_PER_FRAME * TICK / creep.time))
        args = [self.constants, creep.fraction, approach, self.state.position[current], self.constants.creep]
        stage.launch(creep_on, len(self.layout.tile_slot) * TILE, args)

    # --- what a world asks for ---

    def set_tool(self, tool: int, *, start: NDArray[Any], end: NDArray[Any], radius: float, friction: float) -> None:
        """Where a tool is in the next tick: ends of its axis (two points, world frame [m]) as the tick starts and
        ends."""
        row = self.state.tools.host[tool * kernels.TOOL_FLOATS : (tool + 1) * kernels.TOOL_FLOATS]
        row[0], row[1], row[2] = 1.0, radius, friction
        origin = self._origin2
        row[4:10] = start.ravel() - origin
        row[10:16] = end.ravel() - origin

    def remove_tool(self, tool: int) -> None:
        self.state.tools.host[tool * kernels.TOOL_FLOATS] = 0.0
        self._field_rows(tool)[:, 0] = 0.0

    def set_field(self, tool: int, shape: DistanceField | Sequence[DistanceField] | None) -> None:
        """Gives a tool the shape of a distance field, or of one for each of its parts, in their own frames; None takes
        it away."""
        shapes = [shape] if isinstance(shape, DistanceField) else shape or []
        if len(shapes) > field_contact.PARTS:
            raise InputError(f"a tool of {len(shapes)} parts.", f"At most {field_contact.PARTS} are possible.")
        self.fields.pop(tool, None)
        if shapes:
            self.fields[tool] = tuple(one.grid for one in shapes)
        self._programs.clear()

    def set_field_tool(
        self, tool: int, start: NDArray[Any], end: NDArray[Any], friction: float, tip: NDArray[Any] | None = None
    ) -> None:
        """Pose of a tool with a distance field as the next tick starts and ends: position [m], then quaternion
        (x, y, z, w), seven numbers each, or a row of them for each part. `tip`, as it starts and ends, is the point
        that torque is about; the first part's position unless told."""
        starts, ends = np.reshape(start, (-1, 7)), np.reshape(end, (-1, 7))
        tips = np.concatenate([starts[0, :3], ends[0, :3]]) if tip is None else np.ravel(tip)
        rows = self._field_rows(tool)[: len(starts)]
        rows[:, 0], rows[:, 1] = 1.0, friction
        rows[:, 2:9], rows[:, 9:16], rows[:, 16:22] = starts, ends, tips - self._origin2
        rows[:, 2:5] -= self._origin2[:3]
        rows[:, 9:12] -= self._origin2[:3]

    def _field_rows(self, tool: int) -> NDArray[Any]:
        """Poses of a tool's parts, shape (parts, POSE_FLOATS)."""
        rows = self.state.poses.host.reshape(-1, field_contact.PARTS, field_contact.POSE_FLOATS)
        return rows[tool]

    def set_drive(self, start: float, end: float) -> None:
        """How far the driven anchors are displaced as the next tick starts and ends, times `drive_direction`."""
        self.state.drive.host[0] = start
        self.state.drive.host[1] = end

    def tool_force(self, tool: int) -> tuple[list[float], list[float]]:
        """Mean force [N] and torque about the tool's first point [N·m] on a tool over the last tick."""
        raw = self.state.force.host[tool * kernels.FORCE_PARTS : (tool + 1) * kernels.FORCE_PARTS].tolist()
        return (
            [part / (2.0**30 * self.substeps) for part in raw[:3]],
            [part / (2.0**36 * self.substeps) for part in raw[3:]],
        )

    def wake(self) -> None:
        """Whatever slept is looked at again in the next substep."""
        self.constants.awake.fill_(self.sync_ticks() * self.substeps)

    def set_gravity(self, gravity: tuple[float, float, float]) -> None:
        """[m/s²]"""
        self.state.live.host[0:3] = gravity
        self.wake()

    def set_young(self, young: float) -> None:
        """Young's modulus [Pa] of the whole lattice, up to `params.stiffest`."""
        if not 0.0 < young <= self.params.stiffest:
            raise InputError(
                f"Young's modulus {young:g} Pa cannot be carried by {self.substeps} substeps per tick.",
                f"Stay above 0 and at most {self.params.stiffest:g} Pa, or make the lattice with a larger `stiffest`.",
            )
        self.young = young
        poisson, spacing = self.params.poisson, self.params.spacing
        stiffness = axis_stiffness(young * volume.spring_share_of_young(poisson), spacing)
        self.state.live.host[3] = stiffness
        self.state.live.host[6] = young * volume.bulk_share_of_young(poisson)
        self.state.live.host[10] = self.params.remedies.torsion * stiffness * spacing**2
        self.wake()

    def set_viscous_time(self, viscous_time: float) -> None:
        """τ [s], up to `params.longest_viscous_time`."""
        if not 0.0 <= viscous_time <= self.params.longest_viscous_time:
            raise InputError(
                f"viscous time {viscous_time:g} s cannot be carried by {self.substeps} substeps per tick.",
                f"Stay between 0 and {self.params.longest_viscous_time:g} s.",
            )
        change = wp.array([viscous_time - self.viscous_time], dtype=wp.float32, device=self.device.warp)
        here = self.state.position[self.current]
        count = 3 * self.layout.slots
        args = [0, self.layout.slots, change, self.state.velocity, here]
        wp.launch(kernels.retune, dim=count, inputs=args, device=self.device.warp)
        self.viscous_time = viscous_time
        self.state.live.host[4] = viscous_time

    def set_drag(self, drag: float) -> None:
        """α against the surroundings [1/s]; any value above 0 is stable."""
        if not (np.isfinite(drag) and drag >= 0.0):
            raise InputError(f"drag = {drag} is not allowed.", "It must be finite and at least 0.")
        self.state.live.host[5] = 1.0 / (1.0 + drag * TICK / self.substeps)

    def displacement(self) -> NDArray[np.float32]:
        """u of every mass [m], shape (masses, 3); a copy."""
        slots = self.layout.slots
        p = self.state.position[self.current].numpy().reshape(3, slots)[:, self.layout.slot_of_node]
        v = self.state.velocity.numpy().reshape(3, slots)[:, self.layout.slot_of_node]
        return np.ascontiguousarray((p - np.float32(self.viscous_time) * v).T, dtype=np.float32)

    def velocities(self) -> NDArray[np.float32]:
        """v of every mass [m/s], shape (masses, 3); a copy."""
        v = self.state.velocity.numpy().reshape(3, self.layout.slots)[:, self.layout.slot_of_node]
        return np.ascontiguousarray(v.T, dtype=np.float32)

    def set_motion(self, displacement: NDArray[Any], velocity: NDArray[Any]) -> None:
        """Puts every mass at this displacement [m] with this velocity [m/s], both of shape (masses, 3)."""
        slots, places = self.layout.slots, self.layout.slot_of_node
        p = np.zeros((3, slots), dtype=np.float32)
        v = np.zeros((3, slots), dtype=np.float32)
        p[:, places] = (displacement + self.viscous_time * velocity).T
        v[:, places] = np.asarray(velocity).T
        self.state.velocity.assign(v.ravel())
        for buffer in self.state.position:
            buffer.assign(p.ravel())
        self.wake()

    def rest_positions(self) -> NDArray[np.float64]:
        """World rest position of every mass [m], shape (masses, 3)."""
        return np.asarray(self.params.origin) + self.params.nodes.astype(np.float64) * self.params.spacing

    def arrays(self) -> dict[str, wp.array[Any]]:
        """Every array of the state, by name; the other position buffer is scratch."""
        found = {
            "position": self.state.position[self.current],
            "velocity": self.state.velocity,
            "stiffness": self.constants.stiffness,
            "inverse_mass": self.constants.inverse_mass,
        }
        if self.constants.features & kernels.CREEP:
            found["creep"] = self.constants.creep
        if self.constants.features & kernels.SKIP_REST:
            found["awake"] = self.constants.awake
        return found

    def load(self, arrays: dict[str, NDArray[Any]], ticks: int) -> None:
        """Back to a state that `arrays` gave after so many of its ticks."""
        self.ticks = ticks
        for name, array in self.arrays().items():
            array.assign(arrays[name])
        # Anchors are never written, so the scratch buffer needs their places too.
        self.state.position[1 - self.current].assign(arrays["position"])
        self.state.broken.host[0] = 0
        self.state.clock.host[0] = ticks

    def __post_init__(self) -> None:
        self._origin2 = np.tile(np.asarray(self.params.origin, dtype=np.float64), 2)


def check_finite(tissue: Tissue, tick: int) -> None:
    """Raises StateError if a velocity was no longer finite, as of the last tick that the host has waited for."""
    if tissue.state.broken.host[0]:
        raise StateError(
            f"the tissue's state is no longer finite at tick {tick}.",
            "The recording is kept. Reset the scenario; if it happens again, lower the stiffness or the damping.",
            stage="tissue",
            tick=tick,
        )


def make_lattice(device: Device, params: LatticeParams, *, native: bool = True) -> Tissue:
    """Builds the lattice at rest. `native=False` takes the plain kernels, which know no rest skipping."""
    check_params(params)
    if params.rest_skipping is not None and not native:
        raise InputError("the plain lattice knows no rest skipping.", "Leave native out, or rest_skipping.")
    layout = make_layout(params.nodes, bricks=device.is_cuda)
    index = NodeIndex(params.nodes)
    cells = cells_around(params.nodes, index)
    mass = mass_share(cells) * params.density_of() * params.spacing**3
    constants = _constants(device, params, layout, index, cells, mass)
    slots, warp = layout.slots, device.warp
    moved = np.zeros(0, dtype=np.int64) if params.driven is None else np.nonzero(params.driven)[0]
    direction = np.zeros((len(params.nodes), 3)) if params.drive_direction is None else params.drive_direction
    has_volume = params.poisson > 0.25
    bulk = _cell_table(params, layout, index) if has_volume else np.zeros(1, dtype=np.float16)

    def zeros(count: int) -> wp.array[Any]:
        return wp.zeros(count, dtype=wp.float32, device=warp)

    tissue = Tissue(
        device=device,
        params=params,
        layout=layout,
        constants=constants,
        state=LatticeState(
            position=(zeros(3 * slots), zeros(3 * slots)),
            velocity=zeros(3 * slots),
            live=device.port(kernels.LIVE_FLOATS, wp.float32),
            tools=device.port(kernels.TOOLS * kernels.TOOL_FLOATS, wp.float32),
            force=device.port(kernels.TOOLS * kernels.FORCE_PARTS, wp.int64),
            broken=device.port(1, wp.int32),
            clock=device.port(1, wp.int32),
            drive=device.port(2, wp.float32),
            poses=device.port(kernels.TOOLS * field_contact.PARTS * field_contact.POSE_FLOATS, wp.float32),
            push=zeros(9 * slots if has_volume else 1),
        ),
        substeps=constants.substeps,
        mass=mass,
        young=params.material.young,
        viscous_time=params.viscous_time,
        bulk=wp.array(bulk, dtype=wp.float16, device=warp),
        driven_places=wp.array(layout.slot_of_node[moved], dtype=wp.int32, device=warp),
        driven_direction=wp.array(direction[moved].astype(np.float32), dtype=wp.vec3, device=warp),
        native=native,
    )
    constants.clock = tissue.state.clock.array
    _settle_substeps(tissue)
    tissue.set_young(params.material.young)
    tissue.set_drag(params.drag)
    live = tissue.state.live.host
    live[4] = params.viscous_time
    live[7] = params.remedies.shape**2
    if params.rest_skipping is not None:
        live[8:10] = params.rest_skipping.force, params.rest_skipping.speed
    return tissue


def _constants(
    device: Device,
    params: LatticeParams,
    layout: Layout,
    index: NodeIndex,
    cells: NDArray[np.bool_],
    mass: NDArray[np.float64],
) -> Any:
    """The struct that the kernels read."""
    warp, slots = device.warp, layout.slots
    checked_substeps(params, bulk_step(params))  # refuses what cannot be meant before anything is built
    features = 0
    if params.poisson > 0.25 or params.remedies.torsion > 0.0:
        features |= kernels.EXTRA
    if params.creep.fraction > 0.0:
        features |= kernels.CREEP
    if params.rest_skipping is not None:
        features |= kernels.SKIP_REST
    inverse_mass = np.zeros(slots, dtype=np.float32)
    inverse_mass[layout.slot_of_node] = np.where(params.anchored, 0.0, 1.0 / mass)
    made = kernels.Lattice()
    made.slots = slots
    made.spacing = params.spacing
    made.dt = TICK
    made.substeps = 1
    made.tile_slot = wp.array(layout.tile_slot, dtype=wp.int32, device=warp)
    made.rows = wp.array(layout.rows.ravel(), dtype=wp.int32, device=warp)
    made.tile_origin = wp.array((layout.tile_cell * params.spacing).astype(np.float32), dtype=wp.vec3, device=warp)
    made.stiffness = wp.array(_stiffness_table(params, layout, index, cells), dtype=wp.float16, device=warp)
    made.inverse_mass = wp.array(inverse_mass, dtype=wp.float32, device=warp)
    made.keep = wp.ones(slots, dtype=wp.float32, device=warp)
    made.features = features
    made.extra = wp.zeros(3 * slots if features & kernels.EXTRA else 1, dtype=wp.float32, device=warp)
    made.creep = wp.zeros(13 * slots if features & kernels.CREEP else 1, dtype=wp.float32, device=warp)
    made.awake = wp.zeros(2 * slots // TILE if features & kernels.SKIP_REST else 1, dtype=wp.int32, device=warp)
    return made


def _settle_substeps(tissue: Tissue) -> None:
    """Finds the number of substeps that this very lattice needs at its stiffest, and sets it.

    Ragged surfaces, mixed materials and remedies ring faster than the bulk, so the highest frequency is measured: power
    iteration with the kernel itself. From rest, one substep gives a = −ω²·u for the modes in u; the fastest outgrows
    the others.
    """
    params, constants = tissue.params, tissue.constants
    if len(params.nodes) > PROBE_MOST:
        _set_substeps(tissue, checked_substeps(params, bulk_step(params) / RAGGED))
        return
    tissue.set_young(params.stiffest)
    live = tissue.state.live.host
    live[4], live[5] = 0.0, 1.0
    live[7] = params.remedies.shape**2
    features, constants.features = constants.features, constants.features & ~kernels.SKIP_REST
    probe = tissue.device.record(tissue.record_probe, work=len(params.nodes))
    free = tissue.mass * ~params.anchored
    u = np.random.default_rng(0).normal(size=(len(params.nodes), 3)) * (free > 0)[:, None]
    omega2 = 0.0
    for _ in range(PROBE_ROUNDS if free.any() else 0):
        size = float(np.sqrt(free @ (u * u).sum(axis=1)))
        if size == 0.0:
            break
        u *= PROBE_SIZE * params.spacing / np.abs(u).max()
        size = float(np.sqrt(free @ (u * u).sum(axis=1)))
        tissue.set_motion(u, np.zeros_like(u))
        probe.run()
        tissue.device.synchronize()
        u = -tissue.velocities().astype(np.float64) / constants.dt
        omega2 = float(np.sqrt(free @ (u * u).sum(axis=1))) / size
    tau = params.longest_viscous_time
    step = np.inf if omega2 == 0.0 else np.sqrt(tau**2 + 4.0 / (PROBE_MARGIN * omega2)) - tau
    constants.features = features
    _set_substeps(tissue, checked_substeps(params, step))
    tissue.set_motion(np.zeros_like(u), np.zeros_like(u))
    tissue.state.broken.host[0] = 0


def _set_substeps(tissue: Tissue, substeps: int) -> None:
    constants = tissue.constants
    tissue.substeps = constants.substeps = substeps
    constants.dt = TICK / substeps
    keep = np.ones(tissue.layout.slots, dtype=np.float32)
    keep[tissue.layout.slot_of_node] = 1.0 / (1.0 + tissue.params.drag_of() * constants.dt)
    constants.keep.assign(keep)


def _stiffness_table(
    params: LatticeParams, layout: Layout, index: NodeIndex, cells: NDArray[np.bool_]
) -> NDArray[np.float16]:
    """Relative stiffness of every spring at the mass it looks up from; shape (13·slots,)."""
    table = np.zeros((len(DIRECTIONS), layout.slots), dtype=np.float16)
    young = params.young_of()
    for row, direction in enumerate(DIRECTIONS):
        other = index.find(params.nodes + np.array(direction, dtype=np.int32))
        value = length_ratio(direction, params.equal_springs) * spring_share(cells, direction, other)
        value *= 0.5 * (young + young[other])
        if params.remedies.surface_stiffness > 1.0:
            value *= stiffness_factor(cells, other, params.remedies.surface_stiffness)
        table[row, layout.slot_of_node] = np.where(other >= 0, value, 0.0)
    return table.ravel()


def _cell_table(params: LatticeParams, layout: Layout, index: NodeIndex) -> NDArray[np.float16]:
    """Relative bulk modulus of the cell whose low corner each place is: the mean of its masses; 0 if it lacks one."""
    young = params.young_of()
    total = np.zeros(len(params.nodes))
    whole = index.look_up(index.whole_cells(), params.nodes)
    for corner in np.ndindex(2, 2, 2):
        total += young[index.find(params.nodes + np.array(corner, dtype=np.int32))] / 8.0
    table = np.zeros(layout.slots, dtype=np.float16)
    table[layout.slot_of_node] = np.where(whole, total, 0.0)
    return table
