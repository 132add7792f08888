"""The film's arrays, its queue and the drops as kernels read and write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from viscera.blood.film.state import FilmState
from viscera.device import Device

wp.set_module_options({"enable_backward": False})

CHUNK = 64
"""Drops per thread on cpu, in kernels that do little for each."""

FLYING = wp.constant(0)
LANDED = wp.constant(1)
"""Met the surface and joined the film's queue."""
LOST = wp.constant(2)
"""Left the scene's box."""
DROP_SUCKED = wp.constant(3)
DROP_BROKEN = wp.constant(4)
"""Its position is not finite; `check_balance` raises."""
RUN_OFF = wp.constant(5)
"""Landed where the film had no room, and ran off the organ onto the drape."""
SLIDING = wp.constant(6)
"""Has met the surface and slides over it, until it is slow enough to join the film; still a drop."""
MERGED = wp.constant(7)
"""Part of another drop now, with all its volume."""
ON_CLOTH = wp.constant(8)
"""Hit the cloth beside the organs and is a stain there."""
ON_TOOL = wp.constant(9)
"""Hit an instrument: a stain on it, or in its gauze."""
INTO_POOL = wp.constant(10)
"""Fell into a pool and is part of it."""
DROP_FATES = 11


@wp.func
def is_there(fate: int) -> wp.bool:
    """Whether a drop is still one: in the air, or sliding."""
    flies = fate == FLYING
    return flies or fate == SLIDING


@wp.struct
class FilmView:
    """Particles of the film, see `FilmState`."""

    capacity: int
    count: wp.array(dtype=wp.int32)
    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    face: wp.array(dtype=wp.int32)
    normal: wp.array(dtype=wp.vec3)
    volume: wp.array(dtype=wp.int32)
    fluid: wp.array(dtype=wp.vec4)
    clot: wp.array(dtype=wp.float32)
    density: wp.array(dtype=wp.float32)
    fate: wp.array(dtype=wp.int32)


@wp.struct
class QueueView:
    """Particles that wait to be taken into the film, see `SpawnQueue`."""

    capacity: int
    count: wp.array(dtype=wp.int32)
    face: wp.array(dtype=wp.int32)
    barycentric: wp.array(dtype=wp.vec2)
    velocity: wp.array(dtype=wp.vec3)
    volume: wp.array(dtype=wp.int32)
    fluid: wp.array(dtype=wp.vec4)


@wp.struct
class DropView:
    """Drops in the air; entries [0, count) are valid. Arrays have shape (capacity,)."""

    capacity: int
    chunk: int
    """Drops per thread where kernels say so: 1 on cuda; on cpu a thread costs more than what is done for a drop."""
    count: wp.array(dtype=wp.int32)
    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    volume: wp.array(dtype=wp.int32)
    fluid: wp.array(dtype=wp.vec4)
    fate: wp.array(dtype=wp.int32)
    face: wp.array(dtype=wp.int32)
    barycentric: wp.array(dtype=wp.vec2)
    late: wp.array(dtype=wp.float32)
    slid_face: wp.array(dtype=wp.int32)
    slid_from: wp.array(dtype=wp.vec2)
    slid_way: wp.array(dtype=wp.vec3)


@dataclass(eq=False)
class DropArrays:
    """Made by `make_drop_arrays`. Arrays have shape (capacity,); the first `count` entries are there."""

    capacity: int
    """Most drops there can be."""
    chunk: int
    """Drops that one thread takes, see `DropView`."""
    count: Any
    """Drops now, int32, shape (1,)."""
    position: Any
    """vec3 [m]"""
    velocity: Any
    """vec3 [m/s]"""
    volume: Any
    """int32 [pL]"""
    fluid: Any
    """Concentrations, vec4, sum 1."""
    fate: Any
    """int32: `FLYING` …"""
    face: Any
    """Triangle of the film's surface that a sliding or landed drop lies on, int32."""
    barycentric: Any
    """Weights of that triangle's second and third corner, vec2."""
    late: Any
    """How much of the next step has passed before it is born, float32 [s]; below 0 where it owes some of the last."""
    slid_face: Any
    """Scratch: triangle on which a drop that has slid in this step began, int32."""
    slid_from: Any
    """Scratch: where on it, as `barycentric`, vec2."""
    slid_way: Any
    """Scratch: its way in that triangle's plane, vec3 [m]; 0 for one that has not slid."""
    view: Any
    """`DropView`: the same arrays for kernels."""


def film_view(state: FilmState) -> Any:
    return _filled(FilmView, state)


def queue_view(state: FilmState) -> Any:
    return _filled(QueueView, state.queue)


def make_drop_arrays(capacity: int, device: Device) -> DropArrays:
    kinds = {
        "count": wp.int32,
        "position": wp.vec3,
        "velocity": wp.vec3,
        "volume": wp.int32,
        "fluid": wp.vec4,
        "fate": wp.int32,
        "face": wp.int32,
        "barycentric": wp.vec2,
        "late": wp.float32,
        "slid_face": wp.int32,
        "slid_from": wp.vec2,
        "slid_way": wp.vec3,
    }
    made = {n: wp.zeros(1 if n == "count" else capacity, dtype=t, device=device.warp) for n, t in kinds.items()}
    drops = DropArrays(capacity, 1 if device.is_cuda else CHUNK, **made, view=None)
    drops.view = _filled(DropView, drops)
    return drops


def _filled(struct: Any, source: Any) -> Any:
    """An instance of the struct with the arrays of the same names."""
    view = struct()
    for name in struct.vars:
        setattr(view, name, getattr(source, name))
    return view
