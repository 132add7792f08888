"""Stains on cloth and instruments, and gauze that takes them up.

    marks = stains.make(spray)                              # `spray` are drops, not yet recorded
    stains.step(stage, marks)                               # 16 ms, after `drops.step`
    stains.volume(marks)                                    # on cloth, on instruments, in gauze [m³]

Equations are in `stains`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.blood.drops.drops import Drops
from viscera.blood.film.params import LITTLE
from viscera.blood.stains import stains as _stains
from viscera.blood.stains.stains import Solid, StainParams, Stains
from viscera.device import Stage
from viscera.errors import InputError, StateError
from viscera.states import Arrays, copy_in, copy_out

__all__ = [
    "Solid",
    "StainParams",
    "Stains",
    "change_gauze",
    "check",
    "load",
    "make",
    "painted",
    "save",
    "step",
    "thickness",
    "volume",
]


def make(
    drops: Drops, params: StainParams | None = None, *, solids: Sequence[Solid] = (), floor: float | None = None
) -> Stains:
    """Clean cloth at height `floor` [m], under the organs without one, and clean instruments; `drops` must not be
    recorded yet, nor pools made on them."""
    return _stains.make_stains(drops, solids, params, floor)


def step(stage: Stage, stains: Stains) -> None:
    """After `drops.step`: gauze wipes, cloth wicks, what changed is painted."""
    _stains.step_stains(stage, stains)


def thickness(stains: Stains, points: ArrayLike) -> NDArray[np.float64]:
    """Of what is in the cloth at these places (x, y, …), shape (n,) [m]. Waits for the device."""
    cloth = stains.view.cloth
    at = np.asarray(points, dtype=np.float64).reshape(-1, np.shape(points)[-1])
    i = np.floor((at[:, 0] - cloth.left) / cloth.side).astype(int)
    j = np.floor((at[:, 1] - cloth.front) / cloth.side).astype(int)
    inside = (i >= 0) & (j >= 0) & (i < cloth.columns) & (j < cloth.rows)
    if not inside.all():
        raise InputError("a place is not on the cloth.", "Ask about places over it.")
    return cloth.cells.content.numpy()[j * cloth.columns + i] * (LITTLE / cloth.side**2)


def volume(stains: Stains) -> tuple[float, float, float]:
    """On cloth, on instruments and in gauze [m³]. Waits for the device."""
    view = stains.view
    sums = (view.cloth.cells.content, view.tools.content, view.soaked)
    cloth, tools, gauze = (LITTLE * float(array.numpy().sum(dtype=np.int64)) for array in sums)
    return cloth, tools, gauze


def change_gauze(stains: Stains, number: int) -> None:
    """Instrument `number` gets a fresh one; what the old one took up stays counted. Waits for the device."""
    view = stains.view
    for now, then in ((view.soaked, view.changed), (view.soaked_red, view.changed_red)):
        values = then.numpy()
        values[number] = now.numpy()[number]
        then.assign(values)
    dirty = view.tools.dirty.numpy()
    dirty[number * (len(dirty) // len(view.soaked))] = 1
    view.tools.dirty.assign(dirty)


def painted(stains: Stains) -> int:
    """Cells painted so far. Waits for the device."""
    return int(stains.painted.numpy().sum(dtype=np.int64))


def check(stains: Stains, tick: int = 0) -> None:
    """Raises StateError if a cell has less than nothing. Waits for the device."""
    if min(int(stains.view.cloth.cells.content.numpy().min()), int(stains.view.tools.content.numpy().min())) < 0:
        raise StateError("stains: a cell has less than nothing.", "Report this.", stage="stains", tick=tick)


def save(stains: Stains) -> Arrays:
    """All stains, what gauze has taken up, and what waits to be painted."""
    return copy_out(_kept(stains))


def load(stains: Stains, arrays: Arrays) -> None:
    """Puts stains into a state that `save` gave. Drops and film are loaded by themselves. Waits for the device."""
    copy_in("stains", _kept(stains), arrays)
    stains.redraw.run()
    stains.device.synchronize()


def _kept(stains: Stains) -> dict[str, object]:
    view = stains.view
    return {
        "cloth": view.cloth.cells.content,
        "cloth_red": view.cloth.cells.red,
        "cloth_dirty": view.cloth.cells.dirty,
        "tools": view.tools.content,
        "tools_red": view.tools.red,
        "tools_dirty": view.tools.dirty,
        "soaked": view.soaked,
        "soaked_red": view.soaked_red,
        "changed": view.changed,
        "changed_red": view.changed_red,
        "wet": stains.wet,
        "painted": stains.painted,
        "bars": stains.bars,
        "bar_count": stains.bar_count,
    }
