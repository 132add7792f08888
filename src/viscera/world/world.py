"""One coupled world: what happens in a tick and in a frame, in order. Read this first.

A tick is 1 ms: inputs take effect, tools follow their hands, tissue moves, tools feel it. A frame is 16 ticks: the
surfaces are brought up to the state of the tick that has just ended, and the systems (heat, blood, fluids; see
`system.py`) advance by 16 ms, in the order in which the scenario lists them. A scenario (viscera/scenarios) says what
is in the world; doors (Python, session, command line) only ever see this class.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Program, Stage
from viscera.errors import InputError
from viscera.inputs import Input, Reset, SetParameter, SetTable, ToolInput
from viscera.instruments import Tool, check_tool_input
from viscera.skin import Skin, rebuild_skin
from viscera.tissue.kernels import TOOLS
from viscera.tissue.lattice import Tissue
from viscera.tissue.params import TICK
from viscera.tissue.surface import follow_lattice
from viscera.view import AnyArray, ArraySpec, Camera, Goal, Instrument, Parameter, Scene, Snapshot, Surface, ToolState
from viscera.world.drill import Drill
from viscera.world.system import LiveTable, Rows, System, check_rows

if TYPE_CHECKING:
    from viscera.scenarios import Scenario

TICKS_PER_FRAME = 16


@dataclass
class Organ:
    """Tissue and the surface that is seen of it."""

    name: str
    look: str
    tissue: Tissue
    triangles: NDArray[np.int32]
    rest: wp.array[Any]
    """Rest positions of the surface's vertices, world frame [m]."""
    places: wp.array[Any]
    """Lattice places each vertex hangs on, shape (vertices, 8)."""
    weights: wp.array[Any]
    vertices: wp.array[Any]
    """As of the last frame [m]."""
    skin: Skin | None = None
    """What is painted on it: heat, burns, blood. Its `vertices` are these very ones."""
    notes: tuple[str, ...] = ()
    """What was guessed or mended when it was made of a user's mesh."""


@dataclass
class LiveParameter:
    """A parameter and what changing it does to the world."""

    parameter: Parameter
    change: Callable[[World, float], None]


class Motion(Protocol):
    """What moves by itself as time passes: a heart. `state` is all of it that changes."""

    state: NDArray[np.float64]

    def advance(self, dt: float) -> None:
        """Gets ready for the next tick of dt [s]."""


@dataclass
class Contents:
    """What a scenario puts into a world."""

    organs: list[Organ]
    tools: list[Tool]
    parameters: list[LiveParameter]
    camera: Camera
    bounds: tuple[tuple[float, float, float], tuple[float, float, float]]
    motions: list[Motion] = field(default_factory=list)
    systems: list[System] = field(default_factory=list)
    """What advances once a frame, in this order."""
    tables: list[LiveTable] = field(default_factory=list)
    scenery: list[Surface] = field(default_factory=list)
    """Surfaces that are seen and never move, with their `rest` given."""
    goals: Sequence[Goal] = ()
    """What a drill asks of measures; with it comes a clock."""


@dataclass
class Stopwatch:
    """Wall time per stage, mean per frame [ms]."""

    total: dict[str, float]
    ticks: int = 0

    def mean_ms(self) -> dict[str, float]:
        frames = max(self.ticks / TICKS_PER_FRAME, 1e-9)
        return {name: 1e3 * seconds / frames for name, seconds in self.total.items()}


class World:
    """A scenario that runs. Make one with `viscera.make`."""

    def __init__(self, scenario: Scenario, device: Device, seed: int, build: Callable[[int], Contents]) -> None:
        self.scenario = scenario.name
        self.device = device
        self.seed = seed
        self.tick = 0
        self.peak_force = 0.0
        self.tools: list[ToolState] = []
        self._entry = scenario
        self._build = build
        self._pending: list[Input] = []
        self._fill(build(seed))

    # --- time ---

    @property
    def time(self) -> float:
        """Simulated [s]."""
        return self.tick * TICK

    def step(self, ticks: int = 1) -> None:
        """Advance by so many ticks of 1 ms."""
        for _ in range(ticks):
            self._tick()
            if self.tick % TICKS_PER_FRAME == 0:
                self._frame()

    def _tick(self) -> None:
        if self._pending:
            for one in self._pending:
                self._take(one)
            self._pending.clear()
        start = time.perf_counter()
        for tool in self._tools:
            self._move_tool(tool)
        for motion in self._contents.motions:
            motion.advance(TICK)
        for organ in self._organs:
            organ.tissue.step()
        for tool, state in zip(self._tools, self.tools, strict=True):
            self._feel(tool, state)
        self.tick += 1
        if self._organs:
            self._stopwatch.total["tissue"] += time.perf_counter() - start
        self._stopwatch.ticks += 1

    def _move_tool(self, tool: Tool) -> None:
        if not tool.active:
            self._let_slot_go(tool)
            return
        tool.follow(TICK)
        slot = self._slot_of(tool)
        if slot is None:
            return
        for organ in self._organs:
            organ.tissue.set_tool(
                slot, start=tool.start, end=tool.end, radius=tool.instrument.radius, friction=tool.friction
            )

    def _slot_of(self, tool: Tool) -> int | None:
        """A lattice feels `TOOLS` instruments at once; one that comes in beyond that touches nothing until another has
        left."""
        if tool.number not in self._slots:
            free = [slot for slot in range(TOOLS) if slot not in self._slots.values()]
            if not free:
                return None
            self._slots[tool.number] = free[0]
        return self._slots[tool.number]

    def _let_slot_go(self, tool: Tool) -> None:
        slot = self._slots.pop(tool.number, None)
        if slot is not None:
            for organ in self._organs:
                organ.tissue.remove_tool(slot)

    def _feel(self, tool: Tool, state: ToolState) -> None:
        """What the hand feels is the sum over all organs."""
        fx = fy = fz = tx = ty = tz = 0.0
        slot = self._slots.get(tool.number)
        if slot is not None:
            for organ in self._organs:
                force, torque = organ.tissue.tool_force(slot)
                fx, fy, fz = fx + force[0], fy + force[1], fz + force[2]
                tx, ty, tz = tx + torque[0], ty + torque[1], tz + torque[2]
            self.peak_force = max(self.peak_force, math.sqrt(fx * fx + fy * fy + fz * fz))
        state.active = tool.active
        state.force = (fx, fy, fz)
        state.torque = (tx, ty, tz)
        state.position = tuple(tool.tip.tolist())
        state.orientation = tuple(tool.orientation.tolist())
        state.grip = tool.grip

    def _frame(self) -> None:
        self._show_organs()
        for system in self._contents.systems:
            start = time.perf_counter()
            system.frame(self)
            self._stopwatch.total[system.name] += time.perf_counter() - start

    def _show_organs(self) -> None:
        """Brings the organs' surfaces up to their lattices."""
        if not self._organs:
            return
        start = time.perf_counter()
        # Which buffer holds the present alternates with the substeps, so there is a program for each case.
        buffers = tuple(organ.tissue.current for organ in self._organs)
        if buffers not in self._skins:
            self._skins[buffers] = self.device.record(self._record_skin, work=sum(map(_surface_work, self._organs)))
        self._skins[buffers].run()
        self.device.synchronize()
        self._stopwatch.total["skin"] += time.perf_counter() - start

    def _record_skin(self, stage: Stage) -> None:
        for organ in self._organs:
            tissue = organ.tissue
            args = [
                organ.rest, organ.places, organ.weights, tissue.layout.slots, tissue.state.live.array,
                tissue.state.position[tissue.current], tissue.state.velocity, organ.vertices,
            ]  # fmt: skip
            stage.launch(follow_lattice, len(organ.vertices), args)
            if organ.skin is not None:
                rebuild_skin(stage, organ.skin)

    # --- inputs ---

    def apply(self, one: Input) -> None:
        """Takes effect at the start of the next tick; refused at once when it is not possible."""
        if isinstance(one, ToolInput):
            one = check_tool_input(one, len(self._tools))
        elif isinstance(one, SetParameter):
            self._check_parameter(one)
        elif isinstance(one, SetTable):
            self._check_table(one)
        elif not isinstance(one, Reset):
            raise InputError(f"{one!r} is not an input.", "Use ToolInput, SetParameter, SetTable or Reset.")
        self._pending.append(one)

    def set_now(self, one: SetParameter) -> None:
        """Sets a parameter at once, between ticks: for making a world, not for a running one."""
        self._check_parameter(one)
        self._take(one)

    def _take(self, one: Input) -> None:
        if isinstance(one, ToolInput):
            self._tools[one.tool].take(one)
        elif isinstance(one, SetParameter):
            self._values[one.name] = one.value
            self._parameters[one.name].change(self, one.value)
        elif isinstance(one, SetTable):
            self._rows[one.name] = one.rows
            self._tables[one.name].change(self, one.rows)
        else:
            self.seed = one.seed
            self.peak_force = 0.0
            values, tables = self._values, self._rows
            self._fill(self._build(one.seed))
            for name, value in values.items():
                self._take(SetParameter(name, value))
            for name, rows in tables.items():
                self._take(SetTable(name, rows))

    def _check_table(self, one: SetTable) -> None:
        from viscera.scenarios import closest_names

        live = self._tables.get(one.name)
        if live is None:
            raise InputError(
                f"table {one.name!r} is not known in {self.scenario!r}.", closest_names(one.name, self._tables)
            )
        check_rows(live.table, one.rows)
        live.check(one.rows)

    def _check_parameter(self, one: SetParameter) -> None:
        from viscera.scenarios import closest_names

        live = self._parameters.get(one.name)
        if live is None:
            raise InputError(
                f"parameter {one.name!r} is not known in {self.scenario!r}.", closest_names(one.name, self._parameters)
            )
        p = live.parameter
        if not (math.isfinite(one.value) and p.minimum <= one.value <= p.maximum):
            raise InputError(
                f"{p.name} = {one.value:g} {p.unit} is not allowed.",
                f"Allowed are {p.minimum:g} to {p.maximum:g} {p.unit}.",
            )
        if p.choices and not float(one.value).is_integer():
            named = ", ".join(f"{number} ({choice})" for number, choice in enumerate(p.choices))
            raise InputError(f"{p.name} = {one.value:g} is none of its choices.", f"Allowed are {named}.")

    def parameter_values(self) -> dict[str, float]:
        return dict(self._values)

    def table_rows(self) -> dict[str, Rows]:
        return dict(self._rows)

    def measure_values(self) -> dict[str, float]:
        """What people watch, in the units that the scene states."""
        return {measure.name: value for system in self._contents.systems for measure, value in system.measures()}

    def particle_counts(self) -> dict[str, int]:
        return {what.name: count for system in self._contents.systems for what, _, count in system.particles()}

    # --- what is seen ---

    def scene(self) -> Scene:
        entry = self._entry
        systems = self._contents.systems
        return Scene(
            scenario=self.scenario,
            title=entry.title,
            summary=entry.summary,
            instructions=entry.instructions,
            seed=self.seed,
            bounds=self._contents.bounds,
            camera=self._contents.camera,
            surfaces=(*(_surface(organ) for organ in self._organs), *self._contents.scenery),
            instruments=tuple(tool.instrument for tool in self._tools),
            parameters=tuple(live.parameter for live in self._parameters.values()),
            textures=tuple(texture for system in systems for texture, _ in system.textures()),
            particles=tuple(what for system in systems for what, _, _ in system.particles()),
            measures=tuple(measure for system in systems for measure, _ in system.measures()),
            tables=tuple(live.table for live in self._tables.values()),
            goals=tuple(self._contents.goals),
        )

    def array_specs(self) -> dict[str, ArraySpec]:
        """Shape and type of every array that a snapshot holds."""
        specs: dict[str, ArraySpec] = {organ.name: ((len(organ.vertices), 3), "f4") for organ in self._organs}
        for still in self._contents.scenery:
            specs[still.array] = ((still.vertex_count, 3), "f4")
        for system in self._contents.systems:
            specs |= {what.name: ((what.height, what.width, 4), "u1") for what, _ in system.textures()}
            specs |= {what.name: ((what.capacity, 4), "f4") for what, _, _ in system.particles()}
        return specs

    def write_arrays(self, out: dict[str, AnyArray]) -> None:
        """Fills the caller's arrays with what the last frame shows; of particles only as many as there are."""
        for organ in self._organs:
            np.copyto(out[organ.name], organ.vertices.numpy())
        for still in self._contents.scenery:
            np.copyto(out[still.array], np.asarray(still.rest))
        for system in self._contents.systems:
            for texture, array in system.textures():
                np.copyto(out[texture.name], array.numpy().reshape(out[texture.name].shape))
            for what, array, count in system.particles():
                if count:  # Warp makes no slices of nothing
                    np.copyto(out[what.name][:count], array[:count].numpy())

    def snapshot(self) -> Snapshot:
        """The world as it is now, its surfaces brought up to date; the caller owns the copies."""
        self._show_organs()
        arrays = {name: np.zeros(shape, dtype=kind) for name, (shape, kind) in self.array_specs().items()}
        self.write_arrays(arrays)
        return Snapshot(
            tick=self.tick,
            time=self.time,
            tools=[replace(tool) for tool in self.tools],
            parameters=self.parameter_values(),
            arrays=arrays,
            counts=self.particle_counts(),
            measures=self.measure_values(),
            tables=self.table_rows(),
        )

    @property
    def stages(self) -> dict[str, float]:
        """Mean wall time of each stage per frame of 16 ticks [ms]."""
        return self._stopwatch.mean_ms()

    # --- state ---

    def save_state(self) -> dict[str, NDArray[Any]]:
        """Everything that changes, as arrays; `load_state` continues from it bit for bit."""
        state: dict[str, NDArray[Any]] = {
            "tick": np.array([self.tick], dtype=np.int64),
            "seed": np.array([self.seed], dtype=np.int64),
            "parameters": np.array(list(self._values.values()), dtype=np.float64),
            "tools": np.concatenate([_pack(tool) for tool in self._tools]),
            "slots": np.array([self._slots.get(tool.number, -1) for tool in self._tools], dtype=np.int64),
            "peak_force": np.array([self.peak_force]),
        }
        for name, rows in self._rows.items():
            state[f"tables/{name}"] = np.array(rows, dtype=np.float64)
        for number, motion in enumerate(self._contents.motions):
            state[f"motions/{number}"] = motion.state.copy()
        for organ in self._organs:
            state[f"{organ.name}/ticks"] = np.array([organ.tissue.ticks], dtype=np.int64)
            for name, array in organ.tissue.arrays().items():
                state[f"{organ.name}/{name}"] = np.array(array.numpy())
        for system in self._contents.systems:
            for name, array in system.arrays().items():
                state[f"{system.name}/{name}"] = np.array(array if isinstance(array, np.ndarray) else array.numpy())
        return state

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        self._pending.clear()
        self._take(Reset(int(state["seed"][0])))
        self.tick = int(state["tick"][0])
        self.peak_force = float(state["peak_force"][0])
        for name, value in zip(self._values, state["parameters"].tolist(), strict=True):
            self._take(SetParameter(name, value))
        for name in self._rows:
            self._take(SetTable(name, tuple(tuple(row) for row in state[f"tables/{name}"].tolist())))
        for tool, packed in zip(self._tools, state["tools"].reshape(len(self._tools), -1), strict=True):
            _unpack(tool, packed)
        slots = state["slots"].tolist()
        self._slots = {tool.number: slot for tool, slot in zip(self._tools, slots, strict=True) if slot >= 0}
        for number, motion in enumerate(self._contents.motions):
            motion.state[:] = state[f"motions/{number}"]
        for organ in self._organs:
            arrays = {name: state[f"{organ.name}/{name}"] for name in organ.tissue.arrays()}
            organ.tissue.load(arrays, int(state[f"{organ.name}/ticks"][0]))
        self._show_organs()
        for system in self._contents.systems:
            system.load({name: state[f"{system.name}/{name}"] for name in system.arrays()})

    def state_hash(self) -> str:
        """SHA-256 over every array of `save_state`, names and types included."""
        digest = hashlib.sha256()
        for name, array in sorted(self.save_state().items()):
            if name != "peak_force":
                digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def close(self) -> None:
        """Lets go of the device's worker threads."""
        self.device.close()

    # --- making ---

    def _fill(self, contents: Contents) -> None:
        if contents.goals:
            contents.systems.append(Drill(contents.goals, TICKS_PER_FRAME))
        self._contents = contents
        self._organs = contents.organs
        self._tools = contents.tools
        self._slots: dict[int, int] = {}
        self.tools = [ToolState(t.number, position=t.instrument.home) for t in self._tools]
        self._parameters = {live.parameter.name: live for live in contents.parameters}
        self._values = {name: live.parameter.default for name, live in self._parameters.items()}
        self._tables = {live.table.name: live for live in contents.tables}
        self._rows = {name: live.table.rows for name, live in self._tables.items()}
        stages = [*(("tissue", "skin") if self._organs else ()), *(system.name for system in contents.systems)]
        self._stopwatch = Stopwatch(dict.fromkeys(stages, 0.0))
        for name, value in self._values.items():
            self._parameters[name].change(self, value)
        for name, rows in self._rows.items():
            self._tables[name].change(self, rows)
        self._skins: dict[tuple[int, ...], Program] = {}
        self._show_organs()

    @property
    def organs(self) -> list[Organ]:
        return self._organs

    @property
    def notes(self) -> list[str]:
        """What was guessed or mended when organs were made of meshes; a user who gave one wants to know."""
        return [f"{organ.name}: {note}." for organ in self._organs for note in organ.notes]

    @property
    def systems(self) -> list[System]:
        """What advances once a frame beside the tissue."""
        return self._contents.systems

    @property
    def hands(self) -> list[Tool]:
        """The tools in their hands, as the last tick left them."""
        return self._tools


def _surface(organ: Organ) -> Surface:
    rest = np.array(organ.rest.numpy(), dtype=np.float32)
    uv = None if organ.skin is None else organ.skin.atlas.corners.astype(np.float32)
    return Surface(organ.name, organ.look, organ.triangles, organ.name, len(organ.vertices), rest, uv)


def _surface_work(organ: Organ) -> int:
    return len(organ.vertices) + (0 if organ.skin is None else organ.skin.count)


def _pack(tool: Tool) -> NDArray[np.float64]:
    flags = np.array([float(tool.active), tool.grip, float(tool.direct)])
    return np.concatenate([flags, tool.hand, tool.orientation, tool.tip, tool.start.ravel(), tool.end.ravel()])


def _unpack(tool: Tool, packed: NDArray[np.float64]) -> None:
    tool.active, tool.grip, tool.direct = bool(packed[0]), float(packed[1]), bool(packed[2])
    for target, begin in ((tool.hand, 3), (tool.orientation, 6), (tool.tip, 10), (tool.start, 13), (tool.end, 19)):
        target.ravel()[:] = packed[begin : begin + target.size]


__all__ = ["TICK", "TICKS_PER_FRAME", "Camera", "Contents", "Instrument", "LiveParameter", "Motion", "Organ", "World"]
