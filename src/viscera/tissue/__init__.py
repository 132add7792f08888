"""Soft tissue as a lattice of masses and springs that one can push.

    block = tissue.make(LatticeParams(...), device=device)
    tissue.push(block, 0, (0.0, 0.0, 0.03), radius=0.006)
    tissue.step(stage, block)                               # a tick: 1 ms
    tissue.force(block, 0)                                  # [N], [N·m]

The physics is in `kernels`, what it is made of in `params` and `materials`. A `Tissue` also has methods: a world steps
it a thousand times a second and acts after each tick, for which `Tissue.step` replays programs of its own.
"""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.states import Arrays
from viscera.tissue import recorded
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import LIVER, MATERIALS, SOFT_TISSUE, TUMOUR, Material
from viscera.tissue.params import Creep, LatticeParams, Remedies, RestSkipping
from viscera.tissue.tissue import LatticeState, Tissue, check_finite

__all__ = [
    "LIVER",
    "MATERIALS",
    "SOFT_TISSUE",
    "TUMOUR",
    "Creep",
    "LatticeParams",
    "LatticeState",
    "Material",
    "Remedies",
    "RestSkipping",
    "Tissue",
    "check",
    "displacement",
    "drive",
    "force",
    "load",
    "make",
    "positions",
    "push",
    "release",
    "save",
    "set",
    "set_gravity",
    "step",
]

LIVE_PARAMS = ("material", "viscous_time", "drag")
"""What `set` can change; of the material Young's modulus alone."""


def make(params: LatticeParams, *, native: bool = True, device: Device) -> Tissue:
    """The lattice at rest, without gravity. `native` False runs the plain kernels."""
    return make_lattice(device, params, native=native)


def set(tissue: Tissue, params: LatticeParams) -> None:
    """Changes Young's modulus of `material` (with it that of the whole lattice), `viscous_time` and `drag` while
    programs run; all else must be as it was made. `tissue.young` and `tissue.viscous_time` say what holds now, and
    `tissue.params` what it was made with."""
    for field in fields(params):
        if field.name not in LIVE_PARAMS and not _same(getattr(params, field.name), getattr(tissue.params, field.name)):
            raise InputError(f"{field.name} cannot change while tissue runs.", "Make a new lattice.")
    if replace(params.material, young=1.0) != replace(tissue.params.material, young=1.0):
        raise InputError("of the material, only Young's modulus can change while tissue runs.", "Make a new lattice.")
    tissue.device.synchronize()
    if params.material.young != tissue.young:
        tissue.set_young(params.material.young)
    if params.viscous_time is not None and params.viscous_time != tissue.viscous_time:
        tissue.set_viscous_time(params.viscous_time)
    tissue.set_drag(params.drag)


def set_gravity(tissue: Tissue, gravity: tuple[float, float, float]) -> None:
    """[m/s²], from the next tick on."""
    tissue.device.synchronize()
    tissue.set_gravity(gravity)


def step(stage: Stage, tissue: Tissue, *, ticks: int = 1) -> None:
    """`ticks` ticks of 1 ms, with the tools as they were last pushed. The state ends in the buffer where it began, at
    the price of one copy if the number of substeps is odd.

    Creep takes effect every 16 ticks: tissue that creeps wants `ticks` to be a multiple of that. Step a lattice either
    by programs or by `Tissue.step`, not by both in turn.
    """
    recorded.record_ticks(stage, tissue, ticks)


def push(
    tissue: Tissue,
    tool: int,
    start: ArrayLike,
    end: ArrayLike | None = None,
    *,
    radius: float,
    friction: float = 0.0,
) -> None:
    """Where tool number `tool` is in the next tick: a ball at a point [m], or a capsule between two, of `radius` [m],
    as the tick starts and as it ends; without `end` it rests."""
    first = _ends(start)
    tissue.set_tool(tool, start=first, end=first if end is None else _ends(end), radius=radius, friction=friction)


def release(tissue: Tissue, tool: int) -> None:
    """Takes a tool away."""
    tissue.remove_tool(tool)


def force(tissue: Tissue, tool: int) -> tuple[list[float], list[float]]:
    """Mean force [N], and torque about the tool's first point [N·m], on a tool over the last tick. Waits for the
    device."""
    tissue.device.synchronize()
    return tissue.tool_force(tool)


def drive(tissue: Tissue, start: float, end: float) -> None:
    """How far driven anchors are displaced as the next tick starts and ends, times `params.drive_direction`."""
    tissue.set_drive(start, end)


def displacement(tissue: Tissue) -> NDArray[np.float32]:
    """Of every mass from rest [m], shape (masses, 3). Waits for the device."""
    return tissue.displacement()


def positions(tissue: Tissue) -> NDArray[np.float64]:
    """Of every mass in the world [m], shape (masses, 3). Waits for the device."""
    return tissue.rest_positions() + tissue.displacement()


def check(tissue: Tissue, tick: int = 0) -> None:
    """Raises StateError if a velocity is no longer finite. Waits for the device: once per frame."""
    tissue.device.synchronize()
    check_finite(tissue, tick)


def save(tissue: Tissue) -> Arrays:
    """Motion, springs (they burn and tear), creep, tools, and what was set since it was made."""
    return recorded.save(tissue)


def load(tissue: Tissue, arrays: Arrays) -> None:
    """Puts a lattice into a state that `save` gave."""
    recorded.load(tissue, arrays)


def _ends(points: ArrayLike) -> NDArray[np.float64]:
    """Both ends of a tool's axis; a ball has one point twice."""
    ends = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    if len(ends) not in (1, 2) or not np.isfinite(ends).all():
        raise InputError(f"a tool at {points} is not possible.", "Give one or two points [m], all numbers finite.")
    return np.broadcast_to(ends, (2, 3))


def _same(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(np.asarray(one), np.asarray(other))
    return one == other
