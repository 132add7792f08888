"""Walls: what keeps a fluid in its vessel. Triangles in one of three structures, shapes by formula, or both.

All answer one question, `nearest_wall`: how far is the nearest wall from a point, up to a reach, and in which
direction?

Walls may move. A mesh goes from where it was to where the organ's skin is now in equal parts, one per step of the
fluid:

    x(k) = x_from + (k/n) (x_to − x_from),   velocity (x_to − x_from)/frame,

and stands still when its n parts are over until it is aimed again. In a recorded program that needs the hashed grid;
the hierarchy is fitted between programs (see triangles_hierarchy), a field is rigid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import warp as wp

from viscera.device import Device, Port, Stage
from viscera.errors import InputError, StateError
from viscera.geometry.distance import FieldGrid
from viscera.geometry.inspect import require_closed
from viscera.geometry.mesh import TriangleMesh
from viscera.water.boundary.field import WallField, make_field, nearest_in_field
from viscera.water.boundary.nearest import Nearest, nothing_near
from viscera.water.boundary.shapes import Shape, ShapeNow, moved_shape, nearest_shape, shape_now, shape_speed
from viscera.water.boundary.triangles_hashed import (
    SPARE,
    Hashed,
    HashedTriangles,
    make_hashed,
    nearest_hashed,
    place_triangles,
    rebuild_hashed,
)
from viscera.water.boundary.triangles_hierarchy import make_hierarchy, nearest_in_hierarchy

wp.set_module_options({"enable_backward": False})

Structure = Literal["hashed", "hierarchy", "field"]
STRUCTURES: dict[str, int] = {"none": 0, "hashed": 1, "hierarchy": 2, "field": 3}
HASHED, HIERARCHY, FIELD = (wp.constant(STRUCTURES[k]) for k in ("hashed", "hierarchy", "field"))

REACH = 1.5
"""How far walls are seen, over the particles' radius, unless told."""

FAR = 1.0e3
"""Reach where all walls are formulas [m]."""

FIELD_SPACING = 0.5
"""Of a field's nodes, over the particles' radius: what is free for certain is then 0.57 radii at contact."""

MOVING_SIDE = 1.5
"""Side of the cells of a mesh that moves, over the reach: fewer cells to enter each triangle into, for longer lists,
which particles ask for rarely."""

LEAST = 0.25
"""No particle gets nearer to a wall than this part of its radius, so that float32 always knows on which side it is."""


@wp.struct
class WallsView:
    """The walls as kernels take them."""

    structure: int
    reach: float
    corners: wp.array2d(dtype=wp.vec3)
    """Of the triangles, shape (triangles, 3) [m]."""
    table: wp.array(dtype=HashedTriangles)
    """An array of one, as is the grid: functions take structs by value, and a large one would be copied on the way."""
    tree: wp.uint64
    grid: wp.array(dtype=FieldGrid)
    field_side: float
    shapes: wp.array(dtype=ShapeNow)
    shape_count: int
    moved: wp.array(dtype=float)
    """The longest way in this step of any wall, and of triangles alone [m]; shape (2,)."""


@wp.func
def nearest_wall(walls: WallsView, point: wp.vec3) -> Nearest:
    """The nearest wall, at most the reach away."""
    found = nothing_near(walls.reach)
    if walls.structure == HASHED:
        found = nearest_hashed(walls.table[0], point)
    elif walls.structure == HIERARCHY:
        found = nearest_in_hierarchy(walls.tree, walls.reach, point)
    elif walls.structure == FIELD:
        found = nearest_in_field(walls.grid[0], walls.field_side, walls.reach, point)
    if walls.shape_count > 0:
        found = nearest_shape(walls.shapes, walls.shape_count, point, found)
    return found


@dataclass(eq=False)
class Walls:
    """Made by `make_walls`."""

    view: WallsView
    device: Device
    radius: float
    """Of the particles it was made for [m]."""
    reach: float
    """[m]"""
    structure: Structure | None
    """None: formulas alone."""
    mesh: TriangleMesh | None
    """As it was when made."""
    closed: bool
    fluid_inside: bool
    deforming: bool
    """Whether the mesh can be aimed elsewhere."""
    shapes: tuple[Shape, ...]
    hashed: Hashed | None
    tree: wp.Mesh | None
    field: WallField | None
    motion: Port
    """Velocity and spin of each shape, two vec3 per shape; write `motion.host`."""
    vertices: wp.array
    """Where the mesh is now, vec3 [m]."""
    vertices_from: wp.array
    vertices_to: wp.array
    velocity: wp.array
    """Of the vertices, vec3 [m/s]."""
    part: wp.array
    """How many parts of the way the mesh has gone, int32, shape (1,)."""
    fitted: wp.array
    """Longest way of a vertex when a hierarchy was fitted last [m], float, shape (1,)."""


def make_walls(
    mesh: TriangleMesh | None = None,
    shapes: Sequence[Shape] = (),
    *,
    radius: float,
    device: Device,
    structure: Structure = "hashed",
    reach: float | None = None,
    closed: bool = True,
    fluid_inside: bool = True,
    deforming: bool = False,
    room: float = 0.0,
    spare: float = SPARE,
    field_spacing: float | None = None,
) -> Walls:
    """Walls for particles of `radius` [m].

    An open mesh is refused, with the place of its holes, unless `closed` is False (a landscape, a tube whose ends are
    shut by shapes). `reach` [m]: how far walls are seen. `room` [m]: how far a `deforming` mesh may leave its box and
    stay quick.
    """
    _check_radius(radius)
    reach = float(reach if reach is not None else REACH * radius)
    if not (math.isfinite(reach) and reach >= 1.25 * radius):
        raise InputError(f"reach = {reach} m is not possible.", f"It must be at least 1.25 radii, {1.25 * radius:g} m.")
    if mesh is None and not shapes:
        raise InputError("there are no walls.", "Give a mesh, shapes, or both.")
    if mesh is not None:
        mesh = _checked(mesh, structure, closed, deforming)
    vertices = mesh.vertices if mesh is not None else np.zeros((0, 3))
    hashed = tree = field = None
    view = WallsView()
    view.reach = reach if mesh is not None else FAR
    if mesh is not None and structure == "hashed":
        more = {"side": MOVING_SIDE * reach, "room": room, "spare": spare} if deforming else {"room": room}
        hashed = make_hashed(vertices, mesh.triangles, reach, device, **more)
        view.table = wp.array([hashed.table], dtype=HashedTriangles, device=device.warp)
        view.corners = hashed.table.corners
    if mesh is not None and structure == "hierarchy":
        tree = make_hierarchy(vertices, mesh.triangles, device)
        view.tree = wp.uint64(tree.id)
        view.corners = wp.array(vertices[mesh.triangles], dtype=wp.vec3, device=device.warp)
    if mesh is not None and structure == "field":
        spacing = field_spacing or FIELD_SPACING * radius
        if spacing > FIELD_SPACING * radius * (1 + 1e-9):
            raise InputError(
                f"field_spacing = {spacing:g} m is too coarse for particles of {radius:g} m.",
                f"It must be at most {FIELD_SPACING * radius:g} m: the field is wrong by up to 0.87 of it.",
            )
        field = make_field(mesh, spacing, reach, device)
        view.grid = wp.array([field.grid], dtype=FieldGrid, device=device.warp)
    view.structure = STRUCTURES[structure] if mesh is not None else 0
    view.field_side = -1.0 if fluid_inside else 1.0
    view.shapes = wp.array([shape_now(s) for s in shapes], dtype=ShapeNow, device=device.warp)
    view.shape_count = len(shapes)
    view.moved = wp.zeros(2, dtype=float, device=device.warp)
    motion = device.port(max(1, 2 * len(shapes)), wp.vec3)
    for number, shape in enumerate(shapes):
        motion.host[2 * number : 2 * number + 2] = [shape.velocity, shape.spin]
    velocity = hashed.table.velocity if hashed else tree.velocities if tree else None
    if velocity is None:
        velocity = _vectors(vertices * 0.0, device)
    walls = Walls(
        view=view,
        device=device,
        radius=radius,
        reach=view.reach,
        structure=structure if mesh is not None else None,
        mesh=mesh,
        closed=closed,
        fluid_inside=fluid_inside,
        deforming=deforming,
        shapes=tuple(shapes),
        hashed=hashed,
        tree=tree,
        field=field,
        motion=motion,
        vertices=tree.points if tree else _vectors(vertices, device),
        vertices_from=_vectors(vertices, device),
        vertices_to=_vectors(vertices, device),
        velocity=velocity,
        part=wp.full(1, 2**30, dtype=wp.int32, device=device.warp),
        fitted=wp.zeros(1, dtype=float, device=device.warp),
    )
    if hashed is not None:
        rebuild_hashed(Stage(device, 0, 1, None), hashed, walls.vertices)
        check_walls(walls)
    return walls


# --- motion --------------------------------------------------------------------------------------------------------


@wp.kernel
def aim_vertices(
    first: int,
    # in
    wanted: wp.array(dtype=wp.vec3),
    vertices: wp.array(dtype=wp.vec3),
    # out
    from_out: wp.array(dtype=wp.vec3),
    to_out: wp.array(dtype=wp.vec3),
    part_out: wp.array(dtype=wp.int32),
    drift_out: wp.array(dtype=float),
):
    i = first + wp.tid()
    from_out[i] = vertices[i]
    to_out[i] = wanted[i]
    if i == 0:
        part_out[0] = 0
        drift_out[0] = 0.0


@wp.kernel
def find_drift(
    # in
    vertices_from: wp.array(dtype=wp.vec3),
    vertices_to: wp.array(dtype=wp.vec3),
    # out
    drift_out: wp.array(dtype=float),
):
    """A maximum is the same in any order."""
    i = wp.tid()
    wp.atomic_max(drift_out, 0, wp.length(vertices_to[i] - vertices_from[i]))


@wp.kernel
def begin_motion(
    # params
    parts: int,
    shape_count: int,
    # in
    dt: wp.array(dtype=float),
    motion: wp.array(dtype=wp.vec3),
    drift: wp.array(dtype=float),
    fitted: wp.array(dtype=float),
    # out
    shapes_out: wp.array(dtype=ShapeNow),
    part_out: wp.array(dtype=wp.int32),
    moved_out: wp.array(dtype=float),
):
    """One thread: shapes are few."""
    moved = fitted[0]
    if part_out[0] <= parts:
        part_out[0] = part_out[0] + 1
    if part_out[0] <= parts:
        moved = (1.0 + 1.0e-5) * drift[0] / float(parts)
    moved_out[1] = moved
    for s in range(shape_count):
        shape = shapes_out[s]
        shape.velocity = motion[2 * s]
        shape.spin = motion[2 * s + 1]
        moved = wp.max(moved, dt[0] * shape_speed(shape))
        shapes_out[s] = moved_shape(shape, dt[0])
    moved_out[0] = moved


@wp.kernel
def move_vertices(
    first: int,
    # params
    parts: int,
    # in
    dt: wp.array(dtype=float),
    part: wp.array(dtype=wp.int32),
    vertices_from: wp.array(dtype=wp.vec3),
    vertices_to: wp.array(dtype=wp.vec3),
    # out
    vertices_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
):
    i = first + wp.tid()
    way = vertices_to[i] - vertices_from[i]
    if part[0] < parts:
        vertices_out[i] = vertices_from[i] + float(part[0]) / float(parts) * way
        velocity_out[i] = way / (float(parts) * dt[0])
    else:
        vertices_out[i] = vertices_to[i]
        velocity_out[i] = wp.where(part[0] == parts, 1.0 / (float(parts) * dt[0]), 0.0) * way


def aim_walls(stage: Stage, walls: Walls, vertices: wp.array) -> None:
    """From now on the mesh goes to `vertices` (vec3 [m], as many as it has): an organ's skin after its frame."""
    if vertices.dtype is not wp.vec3 or len(vertices) != len(walls.vertices):
        raise InputError(
            f"the wall has {len(walls.vertices)} vertices, but {len(vertices)} are given.",
            "Give one vec3 per vertex of the mesh the walls were made from.",
        )
    hashed = _following(walls)
    drift, ends = hashed.table.drift, [walls.vertices_from, walls.vertices_to]
    stage.launch(aim_vertices, len(vertices), [vertices, walls.vertices, *ends, walls.part, drift])
    stage.once(lambda: wp.launch(find_drift, dim=len(vertices), inputs=[*ends, drift], device=walls.device.warp))
    rebuild_hashed(stage, hashed, walls.vertices)


def _following(walls: Walls) -> Hashed:
    if walls.mesh is None:
        raise InputError("these walls have no mesh.", "Shapes move with their own velocity.")
    if walls.hashed is None:
        raise InputError(
            f"a {walls.structure} cannot follow a moving mesh inside a recorded program.",
            'Make the walls with structure="hashed", or call `refit_walls` between runs of a hierarchy.',
        )
    if not walls.deforming:
        raise InputError("these walls keep their shape.", "Make them with deforming=True.")
    return walls.hashed


def move_walls(stage: Stage, walls: Walls, dt: wp.array, parts: int = 1) -> None:
    """One step of `dt` (float, shape (1,)) [s]: shapes move, a mesh that was aimed goes one of `parts` parts of its
    way."""
    drift = walls.hashed.table.drift if walls.hashed is not None else walls.fitted
    shapes = [walls.view.shapes, walls.part, walls.view.moved]
    begin = [parts, len(walls.shapes), dt, walls.motion.array, drift, walls.fitted, *shapes]
    stage.upload(walls.motion)
    stage.once(lambda: wp.launch(begin_motion, dim=1, inputs=begin, device=walls.device.warp))
    if walls.hashed is not None and walls.deforming:
        ways = [walls.part, walls.vertices_from, walls.vertices_to]
        stage.launch(move_vertices, len(walls.vertices), [parts, dt, *ways, walls.vertices, walls.velocity])
        place_triangles(stage, walls.hashed, walls.vertices)


def refit_walls(walls: Walls, vertices: np.ndarray | wp.array, frame: float) -> None:
    """Put a hierarchy's mesh at `vertices` [m], where it came to within `frame` [s]. Not inside a recorded program."""
    if walls.tree is None or walls.mesh is None:
        raise InputError("only a hierarchy is fitted again.", "A hashed grid follows by itself: see `move_walls`.")
    before = walls.tree.points.numpy().copy()
    after = vertices.numpy() if isinstance(vertices, wp.array) else np.asarray(vertices, dtype=np.float32)
    walls.tree.points.assign(after)
    walls.velocity.assign((after - before) / np.float32(frame))
    walls.view.corners.assign(after[walls.mesh.triangles])
    walls.tree.refit()
    # Stays until it is fitted again, so what particles know is good for less in every step: right, and a little slow.
    way = float(np.linalg.norm(after - before, axis=1).max(initial=0.0))
    walls.fitted.fill_(way)
    walls.view.moved.fill_(way)


def check_walls(walls: Walls, *, parts: int = 1, tick: int = 0) -> None:
    """Raise StateError if a deforming mesh has outgrown its table, or moves so fast that it could pass a particle.

    Waits for the device: once per frame at most.
    """
    if walls.hashed is None:
        return
    missing = int(walls.hashed.table.missing.numpy()[0])
    if missing:
        raise StateError(
            f"walls: {missing} entries found no room in the hashed grid of {walls.hashed.capacity}; "
            "every triangle is looked at, which is slow.",
            "The mesh has grown or moves too far per frame: make the walls with deforming=True and more `spare`.",
            stage="walls",
            tick=tick,
        )
    way = walls.vertices_to.numpy() - walls.vertices_from.numpy()
    farthest = float(np.linalg.norm(way, axis=1).max(initial=0.0)) / parts
    if farthest > LEAST * walls.radius:
        raise StateError(
            f"walls: the mesh moves {1000 * farthest:.3g} mm in one step.",
            f"Above {1000 * LEAST * walls.radius:.3g} mm it could pass through particles: take more parts per frame.",
            stage="walls",
            tick=tick,
        )


# --- making --------------------------------------------------------------------------------------------------------


def _check_radius(radius: float) -> None:
    if not (math.isfinite(radius) and radius > 0.0):
        raise InputError(f"radius = {radius} is not possible.", "It must be a finite length above 0, in metres.")


def _checked(mesh: TriangleMesh, structure: str, closed: bool, deforming: bool) -> TriangleMesh:
    if structure not in ("hashed", "hierarchy", "field"):
        raise InputError(f"structure = {structure!r} is not known.", "Allowed are hashed, hierarchy and field.")
    if structure == "field" and (deforming or not closed):
        raise InputError(
            "a distance field needs a closed mesh that keeps its shape.", "Take hashed or hierarchy for this one."
        )
    return require_closed(mesh) if closed else mesh


def _vectors(values: np.ndarray, device: Device) -> wp.array:
    return wp.array(values, dtype=wp.vec3, device=device.warp)
