"""The whole state of a world as arrays: saved, put back, and hashed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Reset
from viscera.instruments import Tool
from viscera.world.holding import HELD
from viscera.world.system import Saved

if TYPE_CHECKING:
    from viscera.world.world import World

_TOOL_NUMBERS = 76
"""That `_pack` gives."""


def save_ticks(world: World) -> Saved:
    """What ticks change."""
    contents = world.contents
    state: Saved = {
        "tick": np.array([world.tick, world.due], dtype=np.int64),
        "turns": np.array([world.turns.count], dtype=np.int64),
        "seed": np.array([world.seed], dtype=np.int64),
        "parameters": np.array(list(world.settings.values.values()), dtype=np.float64),
        "tools": np.array([_pack(tool) for tool in contents.tools]).reshape(-1),
        "slots": np.array([world.contact.slots.get(tool.number, -1) for tool in contents.tools], dtype=np.int64),
        "holdings": np.array([holding.state for holding in world.contact.holdings]).reshape(-1),
        "passives": np.array([passive.state for passive in world.contact.passives]).reshape(-1),
        "peak_force": np.array([world.peak_force]),
    }
    state |= world.trace.save()
    for name, rows in world.settings.rows.items():
        state[f"tables/{name}"] = np.array(rows, dtype=np.float64)
    for number, motion in enumerate(contents.motions):
        state[f"motions/{number}"] = motion.state.copy()
    for organ in contents.organs:
        state[f"{organ.name}/ticks"] = np.array([organ.tissue.ticks], dtype=np.int64)
        for name, array in organ.tissue.arrays().items():
            state[f"{organ.name}/{name}"] = np.array(array.numpy())
    return state


def save_systems(world: World) -> Saved:
    """What systems change in their turns."""
    systems = world.contents.systems
    return {f"{system.name}/{name}": array for system in systems for name, array in system.save().items()}


def load_state(world: World, state: Saved) -> None:
    world.take(Reset(int(state["seed"][0])))
    put_back(world, state)


def put_back(world: World, state: Saved) -> None:
    """A state into the arrays of a world that was made with its seed."""
    contents, settings = world.contents, world.settings
    world.tick, world.due = state["tick"].tolist()
    world.turns.count = int(state["turns"][0])
    world.peak_force = float(state["peak_force"][0])
    for name, value in zip(list(settings.values), state["parameters"].tolist(), strict=True):
        settings.set(name, value)
    for name in list(settings.rows):
        settings.set_rows(name, tuple(tuple(row) for row in state[f"tables/{name}"].tolist()))
    settings.settle()
    for tool, packed in zip(contents.tools, state["tools"].reshape(-1, _TOOL_NUMBERS), strict=True):
        _unpack(tool, packed)
    slots = zip(contents.tools, state["slots"].tolist(), strict=True)
    world.contact.slots = {tool.number: slot for tool, slot in slots if slot >= 0}
    for passive, saved in zip(world.contact.passives, state["passives"].reshape(-1, 6), strict=True):
        passive.state[:] = saved
    for holding, saved in zip(world.contact.holdings, state["holdings"].reshape(-1, HELD), strict=True):
        holding.state[:] = saved
    for number, motion in enumerate(contents.motions):
        motion.state[:] = state[f"motions/{number}"]
    for organ in contents.organs:
        arrays = {name: state[f"{organ.name}/{name}"] for name in organ.tissue.arrays()}
        organ.tissue.load(arrays, int(state[f"{organ.name}/ticks"][0]))
    world.trace.load(state)
    world.contact.restore()
    world.turns.show_now()
    for system in contents.systems:
        start = f"{system.name}/"
        system.load({name.removeprefix(start): array for name, array in state.items() if name.startswith(start)})


def state_hash(state: Saved) -> str:
    """SHA-256 over every array, names and types included; the strongest force is for people and left out."""
    digest = hashlib.sha256()
    for name, array in sorted(state.items()):
        if name != "peak_force":
            digest.update(f"{name}:{array.dtype.str}:{array.shape};".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _pack(tool: Tool) -> NDArray[np.float64]:
    flags = np.array([float(tool.active), tool.grip, float(tool.direct), tool.jaws])
    return np.concatenate([flags, *(array.ravel() for array in _arrays(tool))])


def _unpack(tool: Tool, packed: NDArray[Any]) -> None:
    tool.active, tool.grip, tool.direct, tool.jaws = (
        bool(packed[0]),
        float(packed[1]),
        bool(packed[2]),
        float(packed[3]),
    )
    begin = 4
    for target in _arrays(tool):
        target.ravel()[:] = packed[begin : begin + target.size]
        begin += target.size


def _arrays(tool: Tool) -> list[NDArray[np.float64]]:
    return [tool.hand, tool.asked, tool.held, tool.orientation, tool.tip, tool.tips, tool.start, tool.end]
