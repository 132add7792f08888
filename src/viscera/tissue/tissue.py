"""A lattice of masses and springs that can be stepped and pushed.

`Tissue` owns the arrays together with the recorded tick. The physics is in `kernels.py` and the files beside it, one
force each; `lattice.py` makes one. A tissue in slabs (slabs.py) is asked for the same things in the same way.

Source: Etheredge, Kunst and Sanders, "Harnessing the GPU for Real-Time Haptic Tissue Simulation", JCGT 2(2), 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Port, Program, Stage
from viscera.errors import InputError, StateError
from viscera.geometry.distance import DistanceField
from viscera.geometry.parts import field_ball, rotated
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.tissue import kernels, stepping, touch_kernels
from viscera.tissue.layout import Layout
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import axis_stiffness
from viscera.tissue.touching import Touching
from viscera.tissue.viscosity import Viscosity
from viscera.tissue.volume import spring_share_of_young

if TYPE_CHECKING:
    from viscera.tissue.cutting import Cutting
    from viscera.tissue.grasping import Grasping
    from viscera.tissue.sewing import Sewing
    from viscera.tissue.slabs import Slabs


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
    """Where tools are, float32, shape (TOOL_FLOATS,): of each part of each tool on, radius [m], friction, and its ends
    [m] from the origin, as the tick starts and ends; then the tools' tips; see touch_kernels.py."""
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
    """Of tools that are distance fields, float32, shape (ROWS·POSE_FLOATS,): on, friction, position [m] and quaternion
    of each part as the tick starts and ends, the tip [m], and a ball around it [m]."""
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
    """τ of `params.material` as set now [s]."""
    bulk: wp.array[Any]
    """Of each cell, relative to LIVE_BULK (volume.py), float16, shape (slots,); one element where ν = 0.25."""
    driven_places: wp.array[Any]
    """Slots of the driven anchors, int32, shape (driven,)."""
    driven_direction: wp.array[Any]
    """Their displacement for a drive of 1, vec3, shape (driven,) [m]."""
    viscosity: Viscosity | None = None
    """Where τ is another; None where it is the same everywhere."""
    slabs: Slabs | None = None
    """The parts that are computed instead, where it was cut; the arrays here then follow them (slabs.py)."""
    current: int = 0
    """Which of the two position buffers is this tick's."""
    ticks: int = 0
    """So far, as the host has counted; see `sync_ticks`."""
    native: bool = True
    """False for the plain kernels."""
    fields: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    """Distance fields of the tools that have some, one for each part."""
    touching: Touching | None = None
    """The points that tools touch; the masses unless someone gave it a surface (`touching.touch_surface`)."""
    cutting: Cutting | None = None
    """What blades do to it, where they can cut it (`cutting.let_cut`)."""
    grasping: Grasping | None = None
    """What jaws hold of it, where they can (`grasping.let_grasp`)."""
    sewing: Sewing | None = None
    """Threads through it, where it can be sewn (`sewing.let_sew`)."""
    clamps: Sewing | None = None
    """Clips and staples on it, where it can have some (`clamping.let_clamp`)."""
    _balls: dict[int, list[Any]] = field(default_factory=dict)
    """Around each of them: middle in its own frame and radius [m]."""
    shape_count: int = 0
    """Grows whenever what a tick does has changed, so that it must be recorded again."""
    _programs: dict[Any, Program] = field(default_factory=dict)

    # --- stepping ---

    def step(self) -> None:
        """One tick: all substeps with the tools as they are in `state.tools`. Waits for the device, and raises if it
        broke.

        This is the fast way for a host that acts after every tick, as a world does: it replays one of two programs, for
        either buffer, so nothing is copied. `tissue.step` records ticks into a program of one's own.
        """
        self.begin_tick()
        if self.slabs is not None:
            self.slabs.step(self)
        else:
            self._program("tick", stepping.record_tick).run()
        self.end_tick()

    def begin_tick(self) -> None:
        """What the host has to say before a tick."""
        self.state.clock.host[0] = self.sync_ticks()
        if self.slabs is None or self.slabs.surface:
            touching = self.need_touching()
            touching.gauge.host[:] = touching.clean

    def end_tick(self) -> None:
        """After its substeps were launched."""
        self.current = (self.current + self.substeps) % 2
        self.ticks += 1
        if self.ticks % TICKS_PER_FRAME == 0:
            if self.slabs is not None:
                self.slabs.frame(self)
            elif self.params.creep.fraction > 0.0:
                self._program("creep", stepping.record_creep).run()
        self.device.synchronize()
        check_finite(self, self.ticks)

    def sync_ticks(self) -> int:
        """Ticks so far, also those of programs that counted on the device."""
        self.ticks = max(self.ticks, int(self.state.clock.host[0]))
        return self.ticks

    def _program(self, name: str, record: Callable[[Stage, Tissue], None]) -> Program:
        """The recorded program for the buffer that is current now."""
        program = self._programs.get((name, self.current))
        if program is None:
            work = len(self.params.nodes) * self.substeps
            program = self.device.record(lambda stage: record(stage, self), work=work)
            self._programs[name, self.current] = program
        return program

    def forget_programs(self) -> None:
        """What a tick does has changed: it is recorded again."""
        self._programs.clear()
        self.shape_count += 1

    # --- what a world asks for ---

    def set_tool(self, tool: int, *, start: NDArray[Any], end: NDArray[Any], radius: float, friction: float) -> None:
        """Where a tool that is one round bar is in the next tick: ends of its axis (two points, world frame [m]) as the
        tick starts and ends. Torque is about the first."""
        tip = np.array([start[0], end[0]])
        self.set_bars(tool, start[None], end[None], np.array([radius]), friction, tip)

    def set_bars(
        self, tool: int, start: NDArray[Any], end: NDArray[Any], radii: NDArray[Any], friction: float, tip: NDArray[Any]
    ) -> None:
        """The same for a tool of several round bars: ends of their axes, shape (bars, 2, 3), their radii, and the
        tip that torque is about as the tick starts and ends, shape (2, 3) [m]."""
        rows = self._bar_rows(tool)
        rows[:, 0] = 0.0
        rows = rows[: len(radii)]
        rows[:, 0], rows[:, 1], rows[:, 2] = 1.0, radii, friction
        rows[:, 4:10] = start.reshape(-1, 6) - self._origin2
        rows[:, 10:16] = end.reshape(-1, 6) - self._origin2
        at = touch_kernels.TIPS + 6 * tool
        self.state.tools.host[at : at + 6] = tip.ravel() - self._origin2

    def remove_tool(self, tool: int) -> None:
        self._bar_rows(tool)[:, 0] = 0.0
        self._field_rows(tool)[:, 0] = 0.0

    def _bar_rows(self, tool: int) -> NDArray[Any]:
        """The round parts of a tool, shape (PARTS, PART_FLOATS)."""
        rows = self.state.tools.host[: touch_kernels.TIPS].reshape(-1, touch_kernels.PARTS, touch_kernels.PART_FLOATS)
        return rows[tool]

    def need_touching(self) -> Touching:
        """The points that tools touch; made with the lattice, as nothing can be made while a program is recorded."""
        if self.touching is None:
            raise RuntimeError("the lattice has no points to touch yet")
        return self.touching

    def tool_gauge(self, tool: int) -> tuple[float, float]:
        """How deep a tool was in the points it touched, at most over the last tick [m]; and the least stretch of the
        tissue beneath what is near it, 1 at rest, as that tick began."""
        depth, stretch = self.need_touching().gauge.host[2 * tool : 2 * tool + 2].tolist()
        return depth * 1e-9, stretch * 1e-9

    def set_field(self, tool: int, shape: DistanceField | Sequence[DistanceField] | None) -> None:
        """Gives a tool the shape of a distance field, or of one for each of its parts, in their own frames; None takes
        it away."""
        shapes = [shape] if isinstance(shape, DistanceField) else shape or []
        if len(shapes) > touch_kernels.PARTS:
            raise InputError(f"a tool of {len(shapes)} parts.", f"At most {touch_kernels.PARTS} are possible.")
        for one in shapes:
            if one.device.name != self.device.name:
                raise InputError(
                    f"the distance field of {one.name} lives on {one.device.name}, the tissue on {self.device.name}.",
                    "Make the field with the tissue's device.",
                )
        self.fields.pop(tool, None)
        if shapes:
            self.fields[tool] = tuple(one.grid for one in shapes)
            self._balls[tool] = [field_ball(one) for one in shapes]
        self.forget_programs()
        if self.slabs is not None:
            self.slabs.share_fields(self)

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
        for row, (middle, radius) in zip(rows, self._balls[tool], strict=True):
            row[22:25] = row[2:5] + rotated(row[5:9], middle)
            row[25:28] = row[9:12] + rotated(row[12:16], middle)
            row[28] = radius

    def _field_rows(self, tool: int) -> NDArray[Any]:
        """Poses of a tool's parts, shape (parts, POSE_FLOATS)."""
        rows = self.state.poses.host.reshape(-1, touch_kernels.PARTS, touch_kernels.POSE_FLOATS)
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
        """Young's modulus [Pa] of `params.material`, up to `params.stiffest`; others keep their ratio to it."""
        if not 0.0 < young <= self.params.stiffest:
            raise InputError(
                f"Young's modulus {young:g} Pa cannot be carried by {self.substeps} substeps per tick.",
                f"Stay above 0 and at most {self.params.stiffest:g} Pa, or make the lattice with a larger `stiffest`.",
            )
        self.young = young
        spacing = self.params.spacing
        stiffness = axis_stiffness(young * spring_share_of_young(self.params.first_poisson), spacing)
        self.state.live.host[3] = stiffness
        self.state.live.host[6] = young * self.params.bulk_reference
        self.state.live.host[10] = self.params.remedies.torsion * stiffness * spacing**2
        self.wake()

    def set_viscous_time(self, viscous_time: float) -> None:
        """τ [s] of `params.material`, up to `params.longest_viscous_time`; other materials keep their ratio to it."""
        most = self.params.most_viscous_time
        if not 0.0 <= viscous_time <= most:
            raise InputError(
                f"viscous time {viscous_time:g} s cannot be carried by {self.substeps} substeps per tick.",
                f"Stay between 0 and {most:g} s, or make the lattice with a larger `longest_viscous_time`.",
            )
        self._refresh()
        change = wp.array([viscous_time - self.viscous_time], dtype=wp.float32, device=self.device.warp)
        here = self.state.position[self.current]
        count = 3 * self.layout.slots
        args = [0, self.layout.slots, change, self.state.velocity, here]
        wp.launch(kernels.retune, dim=count, inputs=args, device=self.device.warp)
        self.viscous_time = viscous_time
        self.state.live.host[4] = viscous_time
        self._hand_on()

    def set_drag(self, drag: float) -> None:
        """α against the surroundings [1/s]; any value above 0 is stable."""
        if not (np.isfinite(drag) and drag >= 0.0):
            raise InputError(f"drag = {drag} is not allowed.", "It must be finite and at least 0.")
        self.state.live.host[5] = 1.0 / (1.0 + drag * TICK / self.substeps)

    def displacement(self) -> NDArray[np.float32]:
        """u of every mass [m], shape (masses, 3); a copy."""
        self._refresh()
        slots = self.layout.slots
        p = self.state.position[self.current].numpy().reshape(3, slots)[:, self.layout.slot_of_node]
        v = self.state.velocity.numpy().reshape(3, slots)[:, self.layout.slot_of_node]
        return np.ascontiguousarray((p - np.float32(self.viscous_time) * v).T, dtype=np.float32)

    def velocities(self) -> NDArray[np.float32]:
        """v of every mass [m/s], shape (masses, 3); a copy."""
        self._refresh()
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
        self._hand_on()
        self.wake()

    def rest_positions(self) -> NDArray[np.float64]:
        """World rest position of every mass [m], shape (masses, 3)."""
        return np.asarray(self.params.origin) + self.params.nodes.astype(np.float64) * self.params.spacing

    def arrays(self) -> dict[str, wp.array[Any]]:
        """Every array of the state, by name; the other position buffer is scratch."""
        self._refresh()
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
        if self.cutting is not None:
            found |= self.cutting.arrays()
            if self.params.has_volume:
                found["bulk"] = self.bulk
        if self.grasping is not None:
            found |= self.grasping.arrays()
        if self.sewing is not None:
            found |= self.sewing.arrays()
        if self.clamps is not None:
            found |= self.clamps.arrays("clamps")
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
        if self.cutting is not None:
            self.cutting.news.host[0] = 1
            self.cutting.edges.host[:] = arrays["cutting/edges"]
        if self.grasping is not None:
            self.grasping.loaded(arrays)
        if self.sewing is not None:
            self.sewing.hand.host[:] = arrays["sewing/hand"]
        self._hand_on()

    def _refresh(self) -> None:
        """Brings the arrays up to the slabs that were computed instead."""
        if self.slabs is not None:
            self.slabs.gather(self)

    def _hand_on(self) -> None:
        """Tells the slabs what was written into the arrays."""
        if self.slabs is not None:
            self.slabs.scatter(self)

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
