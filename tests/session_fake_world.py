"""A world without kernels, with the methods of the real one: a few hundred points that swing and follow the tool.

Sessions and servers are tested against it, so that their tests take milliseconds and need no compiler. Its parameters
make it misbehave: `work` slows it down, `break_at` makes its state break. Scenario names choose how it starts.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import resource
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from viscera.errors import InputError, StateError
from viscera.inputs import Input, Reset, SetParameter, SetTable, ToolInput
from viscera.instruments import Pushes
from viscera.view import (
    ArraySpec,
    Camera,
    Column,
    Frame,
    Instrument,
    Measure,
    Parameter,
    Particles,
    Scene,
    Snapshot,
    Surface,
    Table,
    Texture,
    ToolState,
)

FACTORY = "session_fake_world:make"
WALL = 1.0
SIDE = 20
BIG_SIDE = 140
PARAMETERS = (
    Parameter("pull", "Pull", "N", 0.0, 10.0, 1.0, "How hard the tool pulls."),
    Parameter("work", "Work", "ms", 0.0, 50.0, 0.0, "Time a tick takes."),
    Parameter("break_at", "Break at", "tick", 0.0, 1e9, 0.0, "When the state breaks; 0 is never."),
)
STAGES = Table(
    "stages", "Stages", "Of nothing.", (Column("from", "From", "K", "number", 0.0, 10.0),), rows=((1.0,), (2.0,))
)
PAINTED = 64
"""Side of its texture [texels]; texel (0, 0) counts ticks, the rest rests."""
CARRIED = 0.35
"""The detail that it has when it is to have as much as the machine carries."""
DROPS = 50
"""Most drops; as many are there as ticks have passed."""


@dataclass
class FakeDevice:
    name: str = "fake"
    description: str = "a fake device"


def make(
    scenario: str, *, device=None, seed=0, mesh=None, parameters=None, detail=1.0, cores=None, progress=None
) -> FakeWorld:
    if progress is not None:
        progress("compiling kernels", 0.5)
    if scenario == "slow_start":
        for step in range(40):
            time.sleep(0.05)
            if progress is not None:
                progress(f"compiled part {step}", step / 40)
    if scenario == "never":
        raise InputError("size = -1 is not allowed.", "Use a positive size.")
    if scenario == "bug":
        raise ZeroDivisionError("a mistake of ours")
    if scenario == "full_disk" and multiprocessing.parent_process() is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, 12_000))
    return FakeWorld(scenario, seed, parameters or {}, CARRIED if detail == "auto" else detail)


class FakeWorld:
    def __init__(self, scenario: str, seed: int, parameters: dict[str, float], detail: float = 1.0) -> None:
        self.detail = detail
        self.scenario = scenario
        self.seed = seed
        self.device = FakeDevice()
        self.notes: list[str] = []
        self.warning = ""
        self.tick = 0
        self.peak_force = 0.0
        self.stages = {"swing": 0.01, "surface": 0.002}
        self.tools = [ToolState(0)]
        self.behind = False
        self._values = {parameter.name: parameter.default for parameter in PARAMETERS}
        self._waiting: list[Input] = []
        self._rows = STAGES.rows
        for name, value in parameters.items():
            self.apply(SetParameter(name, value))
        self.side = BIG_SIDE if scenario == "big" else SIDE
        self._begin(seed)

    def _begin(self, seed: int) -> None:
        self.seed = seed
        grid = np.stack(np.meshgrid(np.arange(self.side), np.arange(self.side), [0.0]), -1).reshape(-1, 3)
        noise = np.random.default_rng(seed).normal(0.0, 1e-4, grid.shape)
        self.position = (grid * 0.005 + noise).astype(np.float32)
        self.velocity = np.zeros_like(self.position)
        self.rest = self.position.copy()

    @property
    def time(self) -> float:
        return self.tick * 0.001

    def apply(self, given: Input) -> None:
        if isinstance(given, ToolInput):
            if given.tool != 0:
                raise InputError(f"tool = {given.tool} is not there.", "There is tool 0.")
            if not all(math.isfinite(value) for value in given.position):
                raise InputError(f"position = {given.position} is not finite.", "Send metres.")
        elif isinstance(given, SetParameter):
            known = {parameter.name: parameter for parameter in PARAMETERS}
            if given.name not in known:
                raise InputError(f"parameter {given.name!r} is not known.", f"There are: {', '.join(known)}.")
            low, high = known[given.name].minimum, known[given.name].maximum
            if not low <= given.value <= high:
                raise InputError(f"{given.name} = {given.value} is out of range.", f"Allowed is {low} to {high}.")
            self._values[given.name] = given.value
            return
        elif isinstance(given, SetTable):
            if given.name != STAGES.name or len(given.rows) != len(STAGES.rows):
                raise InputError(f"table {given.name!r} with {len(given.rows)} rows is not there.", "See the scene.")
            self._rows = given.rows
            return
        self._waiting.append(given)

    def within(self, given: ToolInput) -> ToolInput:
        """A theatre that ends `WALL` above its floor [m]."""
        x, y, z = given.position
        return replace(given, position=(x, y, min(z, WALL)))

    def step(self, ticks: int = 1) -> None:
        for _ in range(ticks):
            self._step()

    def advance(self) -> None:
        self._step()

    def wait(self) -> None:
        pass

    def go_live(self) -> FakeLive:
        return FakeLive(self)

    def _step(self) -> None:
        for given in self._waiting:
            if isinstance(given, ToolInput):
                tool = ToolState(
                    0, given.position, given.orientation, 0.0, given.active,
                    force=(0.0, 0.0, self._values["pull"] if given.active else 0.0),
                )  # fmt: skip
                self.tools = [tool]
            elif isinstance(given, Reset):
                self._begin(given.seed)
        self._waiting.clear()
        pull = np.float32(0.0)
        if self.tools[0].active:
            pull = np.float32(self._values["pull"] * self.tools[0].position[2])
        self.velocity += np.float32(0.001) * ((self.rest - self.position) * np.float32(400.0) + pull)
        self.position += np.float32(0.001) * self.velocity
        self.tick += 1
        if self._values["work"]:
            time.sleep(self._values["work"] * 0.001)
        if self._values["break_at"] and self.tick >= self._values["break_at"]:
            raise StateError("velocity is not finite.", "Use a softer pull.", stage="swing", tick=self.tick)

    def array_specs(self) -> dict[str, ArraySpec]:
        return {
            "points": ArraySpec((self.side**2, 3), "f4", "points"),
            "paint": ArraySpec((PAINTED, PAINTED, 4), "u1", "tiles"),
            "drops": ArraySpec((DROPS, 4), "f4", "particles"),
        }

    def write_arrays(self, out: dict[str, np.ndarray]) -> None:
        out["points"][:] = self.position
        out["paint"][:] = 0
        out["paint"][0, 0] = self.tick % 256
        out["paint"][-1, -1, 0] = 255
        for number in range(min(self.tick, DROPS)):
            out["drops"][number] = (0.001 * number, 0.0, 0.1, 0.5)

    def show_now(self) -> None:
        """It always is as it is now."""

    def snapshot(self) -> Snapshot:
        arrays = {name: np.zeros(spec.shape, spec.kind) for name, spec in self.array_specs().items()}
        self.write_arrays(arrays)
        return Snapshot(**vars(self.frame()), arrays=arrays)

    def frame(self) -> Frame:
        return Frame(
            tick=self.tick,
            time=self.time,
            tools=self.tools,
            parameters=dict(self._values),
            counts={"drops": min(self.tick, DROPS)},
            measures={"height": float(self.position[0, 2])},
            tables={"stages": self._rows},
            stages=self.stages,
        )

    def trial(self) -> None:
        """There is no drill."""

    def scene(self) -> Scene:
        corner = np.arange(self.side**2).reshape(self.side, self.side)
        quads = np.stack([corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:]], -1)
        triangles = quads.reshape(-1, 3).astype(np.int32)
        return Scene(
            scenario=self.scenario,
            title="Fake",
            summary="Points that swing.",
            instructions="Move the tool.",
            seed=self.seed,
            detail=self.detail,
            bounds=((0.0, 0.0, -0.05), (0.1, 0.1, 0.05)),
            camera=Camera((0.05, -0.2, 0.1), (0.05, 0.05, 0.0), (0.0, 0.0, 1.0), 40.0),
            surfaces=(Surface("sheet", "tissue", triangles, "points", self.side**2),),
            instruments=(Instrument("probe", (Pushes(0.005),), (0.05, 0.05, 0.05)),),
            parameters=PARAMETERS,
            textures=(Texture("paint", "sheet", "burn", PAINTED, PAINTED),),
            particles=(Particles("drops", "blood", 0.001, DROPS),),
            measures=(Measure("height", "Height", "m", "Of the first point."),),
            tables=(STAGES,),
        )

    def state_hash(self) -> str:
        digest = hashlib.sha256()
        for name, array in sorted(self.save_state().items()):
            digest.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def save_state(self) -> dict[str, np.ndarray]:
        tool = self.tools[0]
        return {
            "tick": np.array(self.tick),
            "seed": np.array(self.seed),
            "organ/position": self.position.copy(),
            "organ/velocity": self.velocity.copy(),
            "rest": self.rest.copy(),
            "values": np.array(list(self._values.values())),
            "tool": np.array([float(tool.active), *tool.position, *tool.orientation, *tool.force]),
        }

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        self.tick, self.seed = int(state["tick"]), int(state["seed"])
        self.position, self.velocity = state["organ/position"].copy(), state["organ/velocity"].copy()
        self.rest = state["rest"].copy()
        self._values = dict(zip(self._values, state["values"].tolist(), strict=True))
        row: Any = state["tool"].tolist()
        self.tools = [ToolState(0, tuple(row[1:4]), tuple(row[4:8]), 0.0, bool(row[0]), force=tuple(row[8:11]))]

    def close(self) -> None:
        pass


class FakeLive:
    """Draws and saves at once."""

    def __init__(self, world: FakeWorld) -> None:
        self._world = world
        self.saved: tuple[int, dict[str, np.ndarray]] | None = None
        self.saving = False

    @property
    def begun(self) -> int:
        return self._world.tick // 16

    def draw(self, publish: Any, *, must: bool = False) -> bool:
        publish(self._world.write_arrays)
        return True

    def label(self, frame: Frame) -> None:
        pass

    def settle(self) -> None:
        pass

    def save(self) -> None:
        self.saved = (self._world.tick, self._world.save_state())
