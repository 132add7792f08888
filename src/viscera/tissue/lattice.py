"""Soft tissue as a volumetric lattice of masses and springs that one can push (SPEC T1, T2, T5).

`make_lattice` turns integer mass positions into arrays; `Tissue` owns them together with the recorded step. The
physics is in `kernels.py`, the places in memory in `layout.py`, the stiffnesses in `springs.py`.

Source: Etheredge, Kunst and Sanders, "Harnessing the GPU for Real-Time Haptic Tissue Simulation", JCGT 2(2), 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Port, Stage
from viscera.errors import InputError, StateError
from viscera.tissue import kernels
from viscera.tissue.layout import TILE, Layout, make_layout
from viscera.tissue.materials import Material
from viscera.tissue.native import lattice_step_cpu, lattice_step_cuda
from viscera.tissue.springs import (
    DIRECTIONS,
    STABLE_STEP,
    NodeIndex,
    axis_stiffness,
    cells_around,
    length_ratio,
    mass_share,
    spring_share,
)

TICK = 1.0e-3
"""[s]"""

SAFETY = 0.8
"""A substep is at most this share of the largest stable one."""

MOST_SUBSTEPS = 256
"""Stiffer than this asks for is a mistake in units more often than a wish."""

NATIVE_BLOCK = 1024 // TILE
"""Tiles per block when a launch is over tiles."""


@dataclass(frozen=True)
class LatticeParams:
    """What a lattice is made of."""

    nodes: NDArray[np.int32]
    """Integer positions of the masses, shape (masses, 3)."""
    spacing: float
    """[m]"""
    origin: tuple[float, float, float]
    """World position of node (0, 0, 0) [m]."""
    anchored: NDArray[np.bool_]
    """Masses that do not move, shape (masses,)."""
    material: Material
    stiffest: float
    """Largest Young's modulus that may be set while it runs [Pa]; fixes the number of substeps."""
    viscous_time: float = 0.0
    """τ of the Kelvin–Voigt solid [s]."""
    longest_viscous_time: float = 0.0
    """Largest τ that may be set while it runs [s]; fixes the number of substeps too."""
    drag: float = 0.0
    """α against the surroundings [1/s]."""
    relative_young: NDArray[np.float64] | None = None
    """Young's modulus of each mass over the material's, shape (masses,); a spring takes the mean of its two ends."""
    equal_springs: bool = False
    """All springs alike, as in the source, instead of the isotropic rule."""


def largest_step(spacing: float, young: float, density: float, viscous_time: float) -> float:
    """Largest stable Δt [s]: Δt² + 2·τ·Δt < 4/ω² with ω the highest frequency of the lattice."""
    undamped = STABLE_STEP * spacing * math.sqrt(density / young)
    return math.sqrt(viscous_time**2 + undamped**2) - viscous_time


def substeps_needed(params: LatticeParams) -> int:
    """Substeps per tick that the stiffest setting needs; refuses what cannot be meant."""
    stiffest = params.stiffest * (1.0 if params.relative_young is None else float(np.max(params.relative_young)))
    step = largest_step(params.spacing, stiffest, params.material.density, params.longest_viscous_time)
    count = math.ceil(TICK / (SAFETY * step))
    if count > MOST_SUBSTEPS:
        raise InputError(
            f"Young's modulus {stiffest:g} Pa on a lattice of {params.spacing * 1e3:g} mm needs {count} substeps per "
            f"millisecond (at most {MOST_SUBSTEPS}).",
            f"Use a spacing of {params.spacing * 1e3 * count / MOST_SUBSTEPS:.2g} mm or more, a softer material "
            "or less damping.",
        )
    return count


def check_params(params: LatticeParams) -> None:
    params.material.check()
    for name in ("spacing", "stiffest", "viscous_time", "longest_viscous_time", "drag"):
        value = getattr(params, name)
        least = 0.0 if "viscous" in name or name == "drag" else np.finfo(np.float32).tiny
        if not (math.isfinite(value) and value >= least):
            raise InputError(f"lattice: {name} = {value} is not allowed.", f"It must be finite and at least {least:g}.")
    if params.viscous_time > params.longest_viscous_time or params.material.young > params.stiffest:
        raise InputError(
            "lattice: the first setting is beyond the largest allowed one.",
            "Raise `stiffest` and `longest_viscous_time` to the settings that the run may reach.",
        )
    relative = params.relative_young
    if relative is not None and not (
        relative.shape == (len(params.nodes),) and np.isfinite(relative).all() and (relative > 0).all()
    ):
        raise InputError("lattice: relative_young is not one finite number above 0 per mass.", "Correct the array.")
    if params.anchored.shape != (len(params.nodes),):
        raise InputError(f"lattice: anchored has shape {params.anchored.shape}.", f"It must be ({len(params.nodes)},).")


@dataclass
class LatticeState:
    """What changes. Three components follow each other in each array: all x, all y, all z."""

    position: tuple[wp.array[Any], wp.array[Any]]
    """p = u + τ·v [m], this step's and the next one's; which is which alternates with every substep."""
    velocity: wp.array[Any]
    """[m/s]"""
    live: Port
    """kernels.LIVE_*"""
    tools: Port
    """kernels.TOOL_* of each tool"""
    force: Port
    """Reaction on each tool, summed over the substeps of a tick, in integer units."""
    broken: Port
    """1 where a velocity is no longer finite."""


@dataclass
class Tissue:
    """A lattice that can be stepped. Owns its arrays and its recorded tick."""

    device: Device
    params: LatticeParams
    layout: Layout
    constants: Any
    """kernels.Lattice"""
    state: LatticeState
    substeps: int
    mass: NDArray[np.float64]
    """Of each mass [kg]; anchors have theirs too."""
    young: float
    """As set now [Pa]."""
    viscous_time: float
    """As set now [s]."""
    current: int = 0
    """Which of the two position buffers is this tick's."""
    ticks: int = 0
    native: bool = True
    _programs: dict[str, Any] = field(default_factory=dict)

    # --- stepping ---

    def step(self) -> None:
        """One tick: all substeps with the tools as they are in `state.tools`."""
        program = self._programs.get("tick")
        if program is None:
            variants = 2 if self.substeps % 2 else 1
            work = len(self.params.nodes) * self.substeps
            program = self.device.record(self._record_tick, variants=variants, work=work)
            program.turn = self.current % variants
            self._programs["tick"] = program
        program.run()
        self.device.synchronize()
        self.current = (self.current + self.substeps) % 2
        self.ticks += 1
        if self.state.broken.host[0]:
            raise StateError(
                f"the tissue's state is no longer finite at tick {self.ticks}.",
                "The recording is kept. Reset the scenario; if it happens again, lower the stiffness or the damping.",
                stage="tissue",
                tick=self.ticks,
            )

    def _record_tick(self, stage: Stage, variant: int = 0) -> None:
        state, tiles = self.state, len(self.layout.tile_slot)
        stage.upload(state.live)
        stage.upload(state.tools)
        stage.clear(state.force)
        here, there = state.position if variant == 0 else state.position[::-1]
        for substep in range(self.substeps):
            args = [self.constants, substep, state.live.array, state.tools.array, here]
            outputs = [state.velocity, there, state.force.array, state.broken.array]
            if not self.native:
                stage.launch(kernels.lattice_step, tiles * TILE, args + outputs)
            elif self.device.is_cuda:
                stage.launch(lattice_step_cuda, tiles * TILE, args + outputs)
            else:
                stage.launch(lattice_step_cpu, tiles, args + outputs, block=NATIVE_BLOCK)
            here, there = there, here
        stage.download(state.force)
        stage.download(state.broken)

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

    def tool_force(self, tool: int) -> tuple[list[float], list[float]]:
        """Mean force [N] and torque about the tool's first point [N·m] on a tool over the last tick."""
        raw = self.state.force.host[tool * kernels.FORCE_PARTS : (tool + 1) * kernels.FORCE_PARTS].tolist()
        return (
            [part / (2.0**30 * self.substeps) for part in raw[:3]],
            [part / (2.0**36 * self.substeps) for part in raw[3:]],
        )

    def set_gravity(self, gravity: tuple[float, float, float]) -> None:
        """[m/s²]"""
        self.state.live.host[0:3] = gravity

    def set_young(self, young: float) -> None:
        """Young's modulus [Pa] of the whole lattice, up to `params.stiffest`."""
        if not 0.0 < young <= self.params.stiffest:
            raise InputError(
                f"Young's modulus {young:g} Pa cannot be carried by {self.substeps} substeps per tick.",
                f"Stay above 0 and at most {self.params.stiffest:g} Pa, or make the lattice with a larger `stiffest`.",
            )
        self.young = young
        self.state.live.host[3] = axis_stiffness(young, self.params.spacing)

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
        if not (math.isfinite(drag) and drag >= 0.0):
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

    def rest_positions(self) -> NDArray[np.float64]:
        """World rest position of every mass [m], shape (masses, 3)."""
        return np.asarray(self.params.origin) + self.params.nodes.astype(np.float64) * self.params.spacing

    def arrays(self) -> dict[str, wp.array[Any]]:
        """Every array of the state, by name; the other position buffer is scratch."""
        return {
            "position": self.state.position[self.current],
            "velocity": self.state.velocity,
            "stiffness": self.constants.stiffness,
            "inverse_mass": self.constants.inverse_mass,
        }

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Back to a state that `arrays` gave."""
        for name, array in self.arrays().items():
            array.assign(arrays[name])
        # Anchors are never written, so the scratch buffer needs their places too.
        self.state.position[1 - self.current].assign(arrays["position"])
        self.state.broken.host[0] = 0

    def __post_init__(self) -> None:
        self._origin2 = np.tile(np.asarray(self.params.origin, dtype=np.float64), 2)


def make_lattice(device: Device, params: LatticeParams, *, native: bool = True) -> Tissue:
    """Builds the lattice at rest."""
    check_params(params)
    layout = make_layout(params.nodes)
    cells = cells_around(params.nodes, NodeIndex(params.nodes))
    mass = mass_share(cells) * params.material.density * params.spacing**3
    substeps = substeps_needed(params)
    constants = kernels.Lattice()
    constants.slots = layout.slots
    constants.spacing = params.spacing
    constants.dt = TICK / substeps
    constants.substeps = substeps
    constants.tile_slot = wp.array(layout.tile_slot, dtype=wp.int32, device=device.warp)
    constants.rows = wp.array(layout.rows.ravel(), dtype=wp.int32, device=device.warp)
    constants.tile_origin = wp.array(
        (layout.tile_cell * params.spacing).astype(np.float32), dtype=wp.vec3, device=device.warp
    )
    constants.stiffness = wp.array(_stiffness_table(params, layout, cells), dtype=wp.float16, device=device.warp)
    inverse_mass = np.zeros(layout.slots, dtype=np.float32)
    inverse_mass[layout.slot_of_node] = np.where(params.anchored, 0.0, 1.0 / mass)
    constants.inverse_mass = wp.array(inverse_mass, dtype=wp.float32, device=device.warp)

    def zeros() -> wp.array[Any]:
        return wp.zeros(3 * layout.slots, dtype=wp.float32, device=device.warp)

    state = LatticeState(
        position=(zeros(), zeros()),
        velocity=zeros(),
        live=device.port(kernels.LIVE_FLOATS, wp.float32),
        tools=device.port(kernels.TOOLS * kernels.TOOL_FLOATS, wp.float32),
        force=device.port(kernels.TOOLS * kernels.FORCE_PARTS, wp.int64),
        broken=device.port(1, wp.int32),
    )
    tissue = Tissue(
        device,
        params,
        layout,
        constants,
        state,
        substeps,
        mass,
        params.material.young,
        params.viscous_time,
        native=native,
    )
    tissue.set_young(params.material.young)
    tissue.set_drag(params.drag)
    state.live.host[4] = params.viscous_time
    return tissue


def _stiffness_table(params: LatticeParams, layout: Layout, cells: NDArray[np.bool_]) -> NDArray[np.float16]:
    """Relative stiffness of every spring at the mass it looks up from; shape (13·slots,)."""
    table = np.zeros((len(DIRECTIONS), layout.slots), dtype=np.float16)
    index = NodeIndex(params.nodes)
    young = np.ones(len(params.nodes)) if params.relative_young is None else params.relative_young
    for row, direction in enumerate(DIRECTIONS):
        other = index.find(params.nodes + np.array(direction, dtype=np.int32))
        mean = 0.5 * (young + young[other])
        value = length_ratio(direction, params.equal_springs) * spring_share(cells, direction) * mean
        table[row, layout.slot_of_node] = np.where(other >= 0, value, 0.0)
    return table.ravel()
