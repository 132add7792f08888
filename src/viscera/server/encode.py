"""From a world's views to messages: scenes, frames with positions in 16 bits, exact snapshots."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from viscera.server import messages as m
from viscera.session.snapshot import SnapshotHeader
from viscera.view import AnyArray, FloatArray, HapticState, Instrument, Scene, Surface, Table, ToolState

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
        surfaces=[_surface(surface) for surface in scene.surfaces],
        instruments=[_instrument(tool) for tool in scene.instruments],
        parameters=[
            m.ParameterInfo(
                name=parameter.name,
                label=parameter.label,
                unit=parameter.unit,
                minimum=parameter.minimum,
                maximum=parameter.maximum,
                default=parameter.default,
                help=parameter.help,
                choices=list(parameter.choices),
                group=parameter.group,
            )
            for parameter in scene.parameters
        ],
        textures=[
            m.TextureInfo(name=t.name, surface=t.surface, role=t.role, width=t.width, height=t.height)
            for t in scene.textures
        ],
        particles=[m.ParticlesInfo(name=p.name, look=p.look, radius=p.radius, shade=p.shade) for p in scene.particles],
        measures=[
            m.MeasureInfo(name=one.name, label=one.label, unit=one.unit, help=one.help, digits=one.digits)
            for one in scene.measures
        ],
        tables=[_table(table) for table in scene.tables],
        goals=[m.GoalInfo(measure=goal.measure, least=goal.least, most=goal.most) for goal in scene.goals],
    )


def _surface(surface: Surface) -> m.SurfaceInfo:
    return m.SurfaceInfo(
        name=surface.name,
        material=surface.material,
        triangles=np.ascontiguousarray(surface.triangles, dtype="<u4").tobytes(),
        array=surface.array,
        vertex_count=surface.vertex_count,
        rest=_float_bytes(surface.rest),
        uv=_float_bytes(surface.uv),
    )


def _float_bytes(values: FloatArray | None) -> bytes:
    return b"" if values is None else np.ascontiguousarray(values, dtype="<f4").tobytes()


def _instrument(tool: Instrument) -> m.InstrumentInfo:
    return m.InstrumentInfo(
        name=tool.name,
        shape=tool.shape,
        radius=tool.radius,
        length=tool.length,
        home=tool.home,
        label=tool.label or tool.name,
        action=tool.action,
        parts=[m.PartInfo(start=p.start, end=p.end, radius=p.radius, swing=p.swing) for p in tool.parts],
    )


def _table(table: Table) -> m.TableInfo:
    columns = [
        m.ColumnInfo(
            name=column.name,
            label=column.label,
            unit=column.unit,
            kind=column.kind,
            minimum=column.minimum,
            maximum=column.maximum,
            help=column.help,
        )
        for column in table.columns
    ]
    return m.TableInfo(
        name=table.name,
        label=table.label,
        help=table.help,
        columns=columns,
        rows=[list(row) for row in table.rows],
        row_names=list(table.row_names),
        fixed=list(table.fixed),
    )


def _points(name: str, array: AnyArray, header: SnapshotHeader) -> m.ArrayData:
    """A surface's vertices, or as many particles as there are with their shades."""
    if name not in header.counts:
        box, data = quantise(array)
        return m.ArrayData(name=name, count=len(array), box=box, data=data)
    there = array[: header.counts[name]]
    box, data = quantise(there[:, :3])
    shades = np.rint(255.0 * np.clip(there[:, 3], 0.0, 1.0)).astype(np.uint8).tobytes()
    return m.ArrayData(name=name, count=len(there), box=box, data=data, shades=shades)


def frame_message(number: int, session: int, header: SnapshotHeader, arrays: dict[str, AnyArray]) -> m.Frame:
    """All of a snapshot but its textures, which travel as `Tiles`."""
    packed = [_points(name, array, header) for name, array in arrays.items() if array.dtype != np.uint8]
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
        measures=header.measures,
        tables={name: [list(row) for row in rows] for name, rows in header.tables.items()},
    )


def exact_message(session: int, header: SnapshotHeader, arrays: dict[str, AnyArray]) -> m.ExactSnapshot:
    return m.ExactSnapshot(
        session=session,
        tick=header.tick,
        time=header.time,
        tools=[_tool(tool) for tool in header.tools],
        parameters=header.parameters,
        arrays=[
            _exact(name, array[: header.counts[name]] if name in header.counts else array)
            for name, array in arrays.items()
        ],
        measures=header.measures,
    )


def _exact(name: str, array: AnyArray) -> m.ExactArray:
    flat = array.reshape(-1, array.shape[-1])
    kind = "u1" if flat.dtype == np.uint8 else "f4"
    data = flat.astype(f"<{kind}").tobytes()
    return m.ExactArray(name=name, count=len(flat), components=flat.shape[1], data=data, kind=kind)


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
        grip=tool.grip,
    )
