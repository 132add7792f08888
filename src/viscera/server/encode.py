"""From a session's snapshots to messages: positions in 16 bits, the rest as it is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np

from viscera.inputs import Vector3
from viscera.server import messages as m
from viscera.session.snapshot import ArraySpecs, SharedSnapshot
from viscera.view import AnyArray, FloatArray

STEPS = 65535
"""Of a coordinate across the box."""

THINNEST = 1e-6
"""Least side of a box [m]; a flat sheet has none of its own."""


def quantise(points: FloatArray) -> tuple[tuple[Vector3, Vector3], bytes]:
    """Positions in 16 bits per coordinate, and the box they are in [m].

    The box is that of these very points, so nothing is ever clipped, and the error is at most half a 65535th of its
    side per axis: 0.8 µm for 10 cm.
    """
    if len(points) == 0:
        return ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), b""
    low = points.min(axis=0).astype(np.float64)
    high = np.maximum(points.max(axis=0).astype(np.float64), low + THINNEST)
    scaled = (points - low) * (STEPS / (high - low))
    return (_vector(low), _vector(high)), np.rint(scaled).astype("<u2").tobytes()


def dequantise(array: m.ArrayData) -> FloatArray:
    """What a browser makes of an array [m]; the inverse of `quantise` within its error."""
    low, high = (np.array(corner) for corner in array.box)
    steps = np.frombuffer(array.data, "<u2").reshape(array.count, 3)
    return (low + (high - low) * (steps / STEPS)).astype(np.float32)


def _vector(values: np.ndarray) -> Vector3:
    x, y, z = values.tolist()
    return (x, y, z)


def raw(packed: bytes) -> Any:
    """MessagePack that goes into a message as it is; the session has made it of the type that the field states."""
    return cast(Any, msgspec.Raw(packed))


def scene_message(scene: bytes, session: int, device: str, detail: str = "") -> m.SceneDescription:
    return m.SceneDescription(session=session, device=device, detail=detail, scene=raw(scene))


def frame_message(number: int, session: int, shown: SharedSnapshot, specs: ArraySpecs) -> m.FrameMessage:
    """All of a snapshot but its pictures, which travel as `Tiles`, and its triangles, which travel as `Topology`."""
    counts = shown.frame.counts
    there = {name: array[: counts[name]] if name in counts else array for name, array in shown.arrays.items()}
    return m.FrameMessage(
        number=number,
        session=session,
        state=raw(shown.packed),
        arrays=[
            _points(name, array, specs[name].role == "particles")
            for name, array in there.items()
            if specs[name].role in ("points", "particles")
        ],
        values=[exact(name, array) for name, array in there.items() if specs[name].role == "values"],
    )


def topology_messages(session: int, shown: SharedSnapshot) -> dict[str, m.Topology]:
    """Of every surface whose triangles change, as they are now."""
    frame, found = shown.frame, {}
    for surface, version in frame.versions.items():
        parts = [f"{surface}/{part}" for part in ("triangles", "rest", "uv")]
        arrays = [exact(name, shown.arrays[name][: frame.counts.get(name)]) for name in parts]
        found[surface] = m.Topology(session=session, surface=surface, version=version, arrays=arrays)
    return found


def exact_message(session: int, shown: SharedSnapshot) -> m.ExactSnapshot:
    counts = shown.frame.counts
    arrays = [exact(name, array[: counts.get(name)]) for name, array in shown.arrays.items()]
    return m.ExactSnapshot(session=session, state=raw(shown.packed), arrays=arrays)


def _points(name: str, array: AnyArray, shaded: bool) -> m.ArrayData:
    """A surface's vertices, or particles with their shades."""
    box, data = quantise(array[:, :3])
    shades = np.rint(255.0 * np.clip(array[:, 3], 0.0, 1.0)).astype(np.uint8).tobytes() if shaded else b""
    return m.ArrayData(name=name, count=len(array), box=box, data=data, shades=shades)


def exact(name: str, array: AnyArray) -> m.ExactArray:
    """Every bit."""
    flat = array.reshape(-1, array.shape[-1])
    kind = cast(Any, f"{flat.dtype.kind}{flat.dtype.itemsize}")
    data = flat.astype(f"<{kind}").tobytes()
    return m.ExactArray(name=name, count=len(flat), components=flat.shape[1], data=data, kind=kind)


_READABLE = (
    m.Welcome | m.FrameMessage | m.Tiles | m.Topology | m.TrialScore | m.Standing | m.SessionState | m.Problem | m.Pong
)


def read_message(data: bytes) -> Any:
    """What a browser written in Python reads: a message, its scene as plain names and values with arrays as bytes."""
    found = msgspec.msgpack.decode(data)
    if found["type"] != "scene":
        return msgspec.convert(found, cast(Any, _READABLE))
    fields = {name: found[name] for name in ("session", "device", "detail")}
    return m.SceneDescription(**fields, scene=_named(found["scene"]))


def _named(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(**{name: _named(entry) for name, entry in value.items()})
    return [_named(entry) for entry in value] if isinstance(value, list) else value
