"""From a world's views to messages: scenes, frames with positions in 16 bits, exact snapshots."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from viscera.server import messages as m
from viscera.session.snapshot import SnapshotHeader
from viscera.view import FloatArray, HapticState, Scene, ToolState

STEPS = 65535
"""Of a coordinate across the box."""

THINNEST = 1e-6
"""Least side of a box [m]; a flat sheet has none of its own."""


def quantise(points: FloatArray) -> tuple[tuple[m.Vec3, m.Vec3], bytes]:
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


def _vector(values: np.ndarray) -> m.Vec3:
    x, y, z = values.tolist()
    return (x, y, z)


def scene_message(scene: Scene, session: int, device: str) -> m.SceneDescription:
    return m.SceneDescription(
        scenario=scene.scenario,
        title=scene.title,
        summary=scene.summary,
        instructions=scene.instructions,
        seed=scene.seed,
        session=session,
        device=device,
        bounds=scene.bounds,
        camera=m.CameraInfo(
            position=scene.camera.position,
            target=scene.camera.target,
            up=scene.camera.up,
            field_of_view=scene.camera.field_of_view,
        ),
        surfaces=[
            m.SurfaceInfo(
                name=surface.name,
                material=surface.material,
                triangles=np.ascontiguousarray(surface.triangles, dtype="<u4").tobytes(),
                array=surface.array,
                vertex_count=surface.vertex_count,
                rest=b"" if surface.rest is None else np.ascontiguousarray(surface.rest, dtype="<f4").tobytes(),
            )
            for surface in scene.surfaces
        ],
        instruments=[
            m.InstrumentInfo(name=tool.name, shape=tool.shape, radius=tool.radius, length=tool.length, home=tool.home)
            for tool in scene.instruments
        ],
        parameters=[
            m.ParameterInfo(
                name=parameter.name,
                label=parameter.label,
                unit=parameter.unit,
                minimum=parameter.minimum,
                maximum=parameter.maximum,
                default=parameter.default,
                help=parameter.help,
            )
            for parameter in scene.parameters
        ],
    )


def frame_message(number: int, session: int, header: SnapshotHeader, arrays: dict[str, FloatArray]) -> m.Frame:
    packed = []
    for name, points in arrays.items():
        box, data = quantise(points)
        packed.append(m.ArrayData(name=name, count=len(points), box=box, data=data))
    return m.Frame(
        number=number,
        session=session,
        tick=header.tick,
        time=header.time,
        real_time_factor=header.real_time_factor,
        arrays=packed,
        tools=[_tool(tool) for tool in header.tools],
        parameters=header.parameters,
        stages=[m.StageInfo(name=name, ms=ms) for name, ms in header.stages.items()],
        applied=header.applied,
        haptics=[_haptic(one) for one in header.haptics],
    )


def exact_message(session: int, header: SnapshotHeader, arrays: dict[str, FloatArray]) -> m.ExactSnapshot:
    return m.ExactSnapshot(
        session=session,
        tick=header.tick,
        time=header.time,
        tools=[_tool(tool) for tool in header.tools],
        parameters=header.parameters,
        arrays=[
            m.ExactArray(name=name, count=len(points), components=points.shape[1], data=points.astype("<f4").tobytes())
            for name, points in arrays.items()
        ],
    )


def _haptic(one: HapticState) -> m.HapticInfo:
    return m.HapticInfo(
        tool=one.tool,
        device=one.device,
        present=one.present,
        force=one.force,
        mode=cast(Any, one.mode),
        gain=one.gain,
    )


def _tool(tool: ToolState) -> m.ToolInfo:
    return m.ToolInfo(
        tool=tool.tool,
        active=tool.active,
        position=tool.position,
        orientation=tool.orientation,
        force=tool.force,
        torque=tool.torque,
    )
