"""A pool as kernels see it: columns of fluid over the ground, and what they say about a place."""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.blood.film.params import FLUIDS, LITTLE
from viscera.device import Device

wp.set_module_options({"enable_backward": False})

PARTS = wp.constant(FLUIDS)
_LITTLE = wp.constant(LITTLE)

NO_GROUND = wp.constant(-1.0e3)
"""Height of the ground where there is none [m]: what gets there falls onto the drape."""

DRY = wp.constant(-2.0e3)
"""Level of a column without fluid [m]."""

FLAT = wp.constant(0.5e-3)
"""Levels of four columns that differ by less are one still surface; more is fluid that runs down a slope [m]."""


@wp.struct
class PoolView:
    """Columns stand on a grid in x and y, number row · columns + column. Arrays have one entry per column."""

    columns: int
    """0: there is no pool."""
    rows: int
    chunk: int
    """Columns per thread: 1 on cuda."""
    side: float
    """Of a column [m]."""
    per_metre: float
    """Columns in a metre: a product is ten times as fast as a quotient."""
    left: float
    front: float
    """x and y of the first column's corner [m]."""
    ground: wp.array(dtype=wp.float32)
    """Height of the highest surface over its middle [m]; `NO_GROUND`."""
    face: wp.array(dtype=wp.int32)
    """Triangle that is highest there, −1."""
    content: wp.array(dtype=wp.int32)
    """Of each fluid, shape (PARTS · columns,) [pL]."""
    level: wp.array(dtype=wp.float32)
    """Height of the fluid's surface, for who draws it or asks [m]; `DRY`."""
    hollow: wp.array(dtype=wp.float32)
    """How deep it can fill before it runs over the lowest rim [m]."""
    near: wp.array(dtype=wp.int32)
    """1 where it or one of the eight around it has fluid: who is elsewhere need not ask."""
    wet: wp.array(dtype=wp.int32)
    """Columns that have fluid, shape (1,)."""


POOL_KINDS: dict[str, Any] = {
    "ground": wp.float32,
    "face": wp.int32,
    "content": wp.int32,
    "level": wp.float32,
    "hollow": wp.float32,
    "near": wp.int32,
    "wet": wp.int32,
}


def no_pool(device: Device) -> Any:
    """A view without columns, where no fluid stands."""
    view: Any = PoolView()
    view.side = view.per_metre = 1.0
    for name, kind in POOL_KINDS.items():
        setattr(view, name, wp.zeros(1, dtype=kind, device=device.warp))
    return view


@wp.func
def volume_in(pool: PoolView, i: int) -> int:
    """[pL]"""
    total = 0
    for k in range(PARTS):
        total += pool.content[PARTS * i + k]
    return total


@wp.func
def depth_of(pool: PoolView, volume: int) -> float:
    """Of so many picolitres in one column [m]."""
    return float(volume) * (_LITTLE / (pool.side * pool.side))


@wp.func
def column_at(pool: PoolView, x: wp.vec3) -> int:
    """Number of the column over a place, −1 outside the grid."""
    i = int(wp.floor((x[0] - pool.left) * pool.per_metre))
    j = int(wp.floor((x[1] - pool.front) * pool.per_metre))
    result = -1
    if i >= 0 and j >= 0 and i < pool.columns and j < pool.rows:
        result = j * pool.columns + i
    return result


@wp.func
def is_near(pool: PoolView, x: wp.vec3) -> wp.bool:
    """Whether there is fluid in or beside the column over a place."""
    n = column_at(pool, x)
    result = bool(False)
    if n >= 0:
        result = pool.near[n] != 0
    return result


@wp.struct
class Above:
    depth: float
    """Of the fluid over a place [m]; 0 where it is dry."""
    at_rim: int
    """1 where the ground ends beside it."""
    parts: wp.vec4
    """Of each fluid in it."""


@wp.func
def fluid_over(pool: PoolView, x: wp.vec3) -> Above:
    """What stands over a place of the ground. Between the four columns around it levels are blended; a still surface
    ends where it meets the ground, fluid on a slope is as deep as its columns. Nothing over a place that lies below the
    ground: it is under an overhang."""
    found = Above()
    found.depth = 0.0
    found.at_rim = 0
    found.parts = wp.vec4(0.0, 0.0, 0.0, 0.0)
    u = (x[0] - pool.left) / pool.side - 0.5
    v = (x[1] - pool.front) / pool.side - 0.5
    i = int(wp.floor(u))
    j = int(wp.floor(v))
    if i < 0 or j < 0 or i + 1 >= pool.columns or j + 1 >= pool.rows:
        return found
    weight = float(0.0)
    level = float(0.0)
    deep = float(0.0)
    lowest = float(1.0e30)
    highest = float(-1.0e30)
    ground = float(-1.0e30)
    for k in range(4):
        a = k % 2
        b = k // 2
        n = (j + b) * pool.columns + i + a
        share = wp.abs(float(1 - a) - (u - float(i))) * wp.abs(float(1 - b) - (v - float(j)))
        ground = wp.max(ground, pool.ground[n])
        if pool.ground[n] == NO_GROUND:
            found.at_rim = 1
        here = pool.level[n]
        if here > DRY:
            share = wp.max(share, 1.0e-6)
            weight += share
            level += share * here
            deep += share * (here - pool.ground[n])
            lowest = wp.min(lowest, here)
            highest = wp.max(highest, here)
            for part in range(PARTS):
                found.parts[part] = found.parts[part] + share * float(pool.content[PARTS * n + part])
    if weight > 0.0 and x[2] > ground - OVERHANG * pool.side:
        still = wp.clamp(1.0 - (highest - lowest) / FLAT, 0.0, 1.0)
        found.depth = wp.max(
            still * (level / weight - x[2]) + (1.0 - still) * wp.min(weight, 1.0) * (deep / weight), 0.0
        )
        total = found.parts[0] + found.parts[1] + found.parts[2] + found.parts[3]
        found.parts = found.parts / wp.max(total, 1.0e-20)
    return found


OVERHANG = wp.constant(4.0)
"""A place lower than the ground around by so many sides of a column is under an overhang: steeper than any slope that
fluid stands on."""
