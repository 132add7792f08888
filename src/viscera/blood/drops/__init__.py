"""Drops in the air: what a film lets go, what spurts and what a nozzle lets out, until it lands or is lost.

    spray = drops.make(blood)                               # `blood` is a film
    drops.set_tools(spray, suction=tip)
    drops.step(stage, spray)                                # 16 ms, between steps of the film

Equations are in `drops`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.blood.drops import drops as _drops
from viscera.blood.drops.drops import DropParams, Drops
from viscera.blood.film.film import Film
from viscera.blood.film.params import LITTLE
from viscera.blood.views import DROP_BROKEN, DropArrays
from viscera.device import Stage
from viscera.errors import InputError, StateError
from viscera.states import Arrays, copy_in, copy_out
from viscera.timing import FRAME

__all__ = [
    "DropArrays",
    "DropParams",
    "Drops",
    "check",
    "count",
    "load",
    "make",
    "save",
    "set",
    "set_tools",
    "step",
    "volume",
]


def make(film: Film, params: DropParams | None = None, *, capacity: int = 8192, dt: float = FRAME) -> Drops:
    """No drops yet; room for `capacity` over the surface of `film`, one step is `dt` [s]."""
    if film.surface is None:
        raise InputError("a film on a sheet has no drops.", "Make it on a skin or a mesh.")
    return _drops.make_drops(film.surface, film.params, film.state, params, dt, capacity)


def set(drops: Drops, params: DropParams) -> None:
    """Changes parameters while programs run."""
    _drops.set_drops(drops, params)


def step(stage: Stage, drops: Drops) -> None:
    """One step of `drops.dt`: tools, what lets go, flight, landing. Between two steps of the film; where the tissue
    moves, after `film.follow`."""
    _drops.step_drops(stage, drops)


def set_tools(
    drops: Drops,
    *,
    suction: ArrayLike | None = None,
    reach: float = 4.0e-3,
    suction_rate: float = 20.0e-6,
    nozzle: ArrayLike | None = None,
    nozzle_velocity: ArrayLike = (0.0, 0.0, 0.0),
    nozzle_rate: float = 5.0e-6,
) -> None:
    """Where suction and nozzle are from the next step on, None where there is none; lengths [m], rates [m³/s].

    Suction takes what lies within `reach`. `nozzle` is the outlet, where drops begin: outside tissue.
    """
    _drops.set_tools(drops, suction, reach, suction_rate, nozzle, nozzle_velocity, nozzle_rate)


def count(drops: Drops) -> int:
    """Drops in the air now. Waits for the device."""
    return int(drops.state.count.numpy()[0])


def volume(drops: Drops) -> float:
    """Of the drops in the air [m³]. Waits for the device."""
    return LITTLE * float(drops.state.volume.numpy()[: count(drops)].sum(dtype=np.int64))


def check(drops: Drops, tick: int = 0) -> None:
    """Raises StateError if a drop's place was no longer finite. Waits for the device: once per frame."""
    broken = int(drops.gone_count.numpy()[int(DROP_BROKEN)])
    if broken:
        raise StateError(
            f"drops: {broken} had a place that is not finite.",
            "Look at the nozzle's velocity and at the film first: `film.check`.",
            stage="drops",
            tick=tick,
        )


def save(drops: Drops) -> Arrays:
    """All drops, what has left, what the tools do and are owed, and where the corners of the surface's triangles were
    one step ago: points of a surface that was cut have other numbers once it is made anew."""
    return copy_out(_kept(drops)) | {"before": drops.tree.before.numpy()[_corners(drops)]}


def load(drops: Drops, arrays: Arrays) -> None:
    """Puts drops into a state that `save` gave. The film is loaded by itself, and the surface before."""
    corners = _corners(drops)
    shape, found = (*corners.shape, 3), arrays.get("before")
    if found is None or found.shape != shape:
        raise InputError(
            f"drops: before needs shape {shape}, {'nothing' if found is None else f'shape {found.shape}'} was saved.",
            "Load it into drops around a surface that was made in the same way.",
        )
    copy_in("drops", _kept(drops), arrays)
    before = drops.tree.vertices.numpy().copy()
    before[corners] = found
    drops.tree.before.assign(before)


def _corners(drops: Drops) -> NDArray[np.int32]:
    """Of the surface's triangles, shape (triangles, 3)."""
    return drops.tree.view.triangles.numpy()


def _kept(drops: Drops) -> dict[str, object]:
    found: dict[str, object] = {name: getattr(drops.state, name) for name in _drops.DROP_ARRAYS}
    found |= {"gone_count": drops.gone_count, "gone_volume": drops.gone_volume}
    return found | {"tools": drops.tools, "purse": drops.purse}
