"""Pools: fluid that stands in hollows, level and millimetres deep.

    deep = pools.make(blood, spray)                         # `blood` is a film, `spray` its drops, not yet recorded
    pools.step(stage, deep)                                 # 16 ms, after `drops.step`, before the steps of the film
    pools.depth(deep, points)                               # [m]

Equations are in `pools`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.blood.drops.drops import Drops
from viscera.blood.film.film import Film
from viscera.blood.film.params import FLUIDS, LITTLE
from viscera.blood.pools import pools as _pools
from viscera.blood.pools.pools import PoolParams, Pools
from viscera.device import Stage
from viscera.errors import InputError, StateError
from viscera.states import Arrays, copy_in, copy_out

__all__ = ["PoolParams", "Pools", "check", "depth", "load", "make", "pour", "save", "set", "step", "volume"]


def make(film: Film, drops: Drops, params: PoolParams | None = None) -> Pools:
    """No pool yet, over the surface of `film`; suction is that of `drops`, which must not be recorded yet."""
    return _pools.make_pools(film, drops, params)


def set(pools: Pools, params: PoolParams) -> None:
    """Changes parameters while programs run, all but the side of a column."""
    _pools.set_pools(pools, params)


def step(stage: Stage, pools: Pools) -> None:
    """One step of `pools.dt`, between `drops.step` and the steps of the film; where the tissue moves, after
    `film.follow`."""
    _pools.step_pools(stage, pools)


def pour(pools: Pools, point: ArrayLike, volume: float, fluid: str = "blood") -> None:
    """Puts so much of a fluid [m³] into the column over a point; it runs from then on. Waits for the device."""
    x, y = (float(value) for value in np.asarray(point, dtype=np.float64)[:2])
    view = pools.view
    i, j = int((x - view.left) // view.side), int((y - view.front) // view.side)
    if not (0 <= i < view.columns and 0 <= j < view.rows and pools.view.face.numpy()[j * view.columns + i] >= 0):
        raise InputError(f"({1e3 * x:.1f}, {1e3 * y:.1f}) mm is not over the surface.", "Pour where there is ground.")
    content, place = view.content.numpy(), FLUIDS * (j * view.columns + i) + pools.film.fluid(fluid)
    total = int(content[place]) + round(volume / LITTLE)
    if not (np.isfinite(volume) and volume >= 0.0 and total < 2**31):
        raise InputError(f"volume = {volume} m³ is not possible.", "Pour up to 2 mL into one column.")
    content[place] = total
    view.content.assign(content)
    view.wet.fill_(1)
    pools.added += round(volume / LITTLE)


def depth(pools: Pools, points: ArrayLike) -> NDArray[np.float64]:
    """Of the fluid in the columns over these points, shape (n,) [m]. Waits for the device."""
    view = pools.view
    at = np.asarray(points, dtype=np.float64).reshape(-1, np.shape(points)[-1])
    i = np.clip(np.floor((at[:, 0] - view.left) / view.side).astype(int), 0, view.columns - 1)
    j = np.clip(np.floor((at[:, 1] - view.front) / view.side).astype(int), 0, view.rows - 1)
    held = view.content.numpy().reshape(-1, FLUIDS).sum(axis=1, dtype=np.int64)[j * view.columns + i]
    return held * (LITTLE / view.side**2)


def volume(pools: Pools) -> float:
    """What stands in all of them [m³]. Waits for the device."""
    return LITTLE * float(pools.view.content.numpy().sum(dtype=np.int64))


def check(pools: Pools, tick: int = 0) -> None:
    """Raises StateError if a column has less than nothing. Waits for the device: once per frame."""
    if int(pools.view.content.numpy().min(initial=0)) < 0:
        raise StateError("pools: a column has less than nothing.", "Report this.", stage="pools", tick=tick)


def save(pools: Pools) -> Arrays:
    """All columns, what runs between them, and what has gone."""
    return copy_out(_kept(pools))


def load(pools: Pools, arrays: Arrays) -> None:
    """Puts pools into a state that `save` gave. Film and drops are loaded by themselves."""
    copy_in("pools", _kept(pools), arrays)


def _kept(pools: Pools) -> dict[str, object]:
    found: dict[str, object] = {name: getattr(pools.view, name) for name in _pools.POOL_ARRAYS}
    return found | {
        "right": pools.pipes.right,
        "back": pools.pipes.back,
        "gone": pools.gone,
        "seen": pools.seen,
        "fill": pools.fill[0],
        "progress": pools.progress,
    }
