"""The film's state: what each particle is, what waits to become one, and what has left.

Particles lie in the first `count` places of the arrays, without gaps. A step sorts them (by cell, then by place
before), so a particle's place changes from step to step: nobody may keep one. Consumers run between steps and skip
particles whose `fate` is not `STAYS`; those are counted into `gone_volume` and taken out by the next step's sort.

To add particles, write them into `queue` (arrays, then its `count`); the next step takes as many as there is room for,
the latest first, and leaves the others waiting. To remove one, set its `fate`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import warp as wp

from viscera.device import Device

wp.set_module_options({"enable_backward": False})

Array = Any
"""A `wp.array`; what its stubs say about `numpy()` fits no index."""

STAYS = wp.constant(0)
EXPIRED = wp.constant(1)
"""Older than the lifetime."""
DRAINED = wp.constant(2)
"""Ran into an incision's drain."""
LEFT = wp.constant(3)
"""Went over the rim of an open surface that drains there."""
LET_GO = wp.constant(4)
"""Became a drop in the air."""
SUCKED = wp.constant(5)
"""Taken by an instrument."""
BROKEN = wp.constant(6)
"""Its position or velocity is not finite; `check_film` raises."""
DISSOLVED = wp.constant(7)
"""Taken by saline around it."""
POOLED = wp.constant(8)
"""Ran into a pool."""
SOAKED = wp.constant(9)
"""Taken up by gauze."""
FATES = 10
"""Length of `gone_count` and `gone_volume`, one entry per fate."""

WAITING, SPRING_OVERFLOW, BUCKET_OVERFLOW, BROKEN_NOW = 0, 1, 2, 3
"""Entries of `FilmState.status`."""
STATUS = 4


@dataclass(eq=False)
class SpawnQueue:
    """Particles that wait to be taken in. Entries [0, count) are valid; arrays have shape (capacity,)."""

    capacity: int
    """Most that can wait."""
    count: Array
    """int32, shape (1,). Whoever writes entries raises it; the step takes from the end."""
    face: Array
    """Triangle of the surface (of `Film.surface`), int32; unused on a sheet."""
    barycentric: Array
    """Weights of the triangle's second and third corner, vec2; unused on a sheet."""
    position: Array
    """On a sheet (column, row, 0), vec3 [texel]; on a surface the step computes it."""
    velocity: Array
    """vec3 [m/s]; the part along the surface is used."""
    volume: Array
    """int32 [pL]"""
    fluid: Array
    """Concentrations, vec4, sum 1; component n belongs to `FilmParams.fluids[n]`."""


@dataclass(eq=False)
class FilmState:
    """Arrays have shape (capacity,) unless it says otherwise."""

    capacity: int
    """Most particles there can be."""
    device: Device
    count: Array
    """Particles now, int32, shape (1,)."""
    position: Array
    """In the world, vec3 [m]; on a sheet (column, row, 0) [texel]."""
    velocity: Array
    """Along the surface, vec3 [m/s]."""
    face: Array
    """Triangle it lies on (numbering of `Film.surface`, see `FilmSurface.first_face`), int32; 0 on a sheet."""
    barycentric: Array
    """Weights of that triangle's second and third corner, vec2; zero on a sheet."""
    normal: Array
    """Of the surface there, interpolated between vertices, vec3; (0, 0, 1) on a sheet."""
    volume: Array
    """int32 [pL], 1 pL = 1e-15 m³. Set when it is made and never changed by a step."""
    fluid: Array
    """Concentrations, vec4, sum 1."""
    clot: Array
    """Clotted blood as a part of the whole particle, float32: 0 … concentration of what clots."""
    age: Array
    """Since it came, float32 [s]."""
    fate: Array
    """`STAYS`, or why it leaves at the next step, int32."""
    density: Array
    """Σ (1 − r/h)² over its neighbours in the last step, float32, without unit; `FilmFluid.settled_density` at rest."""
    gone_count: Array
    """Particles taken out so far by fate, int64, shape (FATES,)."""
    gone_volume: Array
    """Their volume by fate, int64, shape (FATES,) [pL]."""
    status: Array
    """int32, shape (STATUS,): queue entries left waiting, springs and bucket places that were missing, broken ones."""
    queue: SpawnQueue
    added: int = 0
    """What `film.add` has put in since it was made [pL]; a ledger counts it."""


KEPT = ("count", "position", "velocity", "face", "barycentric", "normal", "volume", "fluid", "clot", "age", "fate")
KEPT_MORE = ("density", "gone_count", "gone_volume", "status")
"""What saving a film saves, beside the queue and springs."""

_TYPES: dict[str, Any] = {
    "count": (wp.int32, 1),
    "position": (wp.vec3, 0),
    "velocity": (wp.vec3, 0),
    "face": (wp.int32, 0),
    "barycentric": (wp.vec2, 0),
    "normal": (wp.vec3, 0),
    "volume": (wp.int32, 0),
    "fluid": (wp.vec4, 0),
    "clot": (wp.float32, 0),
    "age": (wp.float32, 0),
    "fate": (wp.int32, 0),
    "density": (wp.float32, 0),
    "gone_count": (wp.int64, FATES),
    "gone_volume": (wp.int64, FATES),
    "status": (wp.int32, STATUS),
}


def allocate_state(capacity: int, queue_capacity: int, device: Device) -> FilmState:
    """All zeros: no particles, an empty queue."""

    def made(names: list[str], size: int) -> dict[str, Array]:
        return {n: wp.zeros(_TYPES[n][1] or size, dtype=_TYPES[n][0], device=device.warp) for n in names}

    queue = SpawnQueue(queue_capacity, **made([f.name for f in fields(SpawnQueue)][1:], queue_capacity))
    return FilmState(capacity, device, **made(list(_TYPES), capacity), queue=queue)
