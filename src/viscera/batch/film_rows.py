"""Films of many worlds in memory: a row for each world, and views of it as the functions of one film want them."""

from __future__ import annotations

import warp as wp

from viscera.blood.film.kernels import Home, Waiting
from viscera.blood.film.pairs import Carried, Sorted
from viscera.blood.film.walk import WalkView
from viscera.neighbors.cells import GridView

wp.set_module_options({"enable_backward": False})


@wp.struct
class Resting:
    """`Home` and `Waiting` of blood/film/kernels.py: particles between steps, and those that wait to be taken in."""

    count: wp.array2d(dtype=wp.int32)
    position: wp.array2d(dtype=wp.vec3)
    velocity: wp.array2d(dtype=wp.vec3)
    face: wp.array2d(dtype=wp.int32)
    barycentric: wp.array2d(dtype=wp.vec2)
    normal: wp.array2d(dtype=wp.vec3)
    volume: wp.array2d(dtype=wp.int32)
    fluid: wp.array2d(dtype=wp.vec4)
    clot: wp.array2d(dtype=float)
    age: wp.array2d(dtype=float)
    fate: wp.array2d(dtype=wp.int32)
    density: wp.array2d(dtype=float)
    gone_count: wp.array2d(dtype=wp.int64)
    gone_volume: wp.array2d(dtype=wp.int64)
    status: wp.array2d(dtype=wp.int32)
    queue_count: wp.array2d(dtype=wp.int32)
    queue_face: wp.array2d(dtype=wp.int32)
    queue_barycentric: wp.array2d(dtype=wp.vec2)
    queue_position: wp.array2d(dtype=wp.vec3)
    queue_velocity: wp.array2d(dtype=wp.vec3)
    queue_volume: wp.array2d(dtype=wp.int32)
    queue_fluid: wp.array2d(dtype=wp.vec4)
    vertex: wp.array2d(dtype=wp.vec3)
    """Of each world's surface [m]."""
    vertex_normal: wp.array2d(dtype=wp.vec3)


@wp.struct
class Moving:
    """`Sorted` and `Carried` of blood/film/pairs.py, and the sort: what a step has in between."""

    cell: wp.array2d(dtype=wp.int32)
    """Of each particle."""
    ticket: wp.array2d(dtype=wp.int32)
    """How many came into its cell before it."""
    listed: wp.array2d(dtype=wp.int32)
    """Particles by cell, in any order within it; on cuda."""
    cell_start: wp.array2d(dtype=wp.int32)
    """Particles in each cell, then where it begins."""
    count: wp.array2d(dtype=wp.int32)
    x: wp.array2d(dtype=float)
    y: wp.array2d(dtype=float)
    z: wp.array2d(dtype=float)
    vx: wp.array2d(dtype=float)
    vy: wp.array2d(dtype=float)
    vz: wp.array2d(dtype=float)
    px: wp.array2d(dtype=float)
    py: wp.array2d(dtype=float)
    pz: wp.array2d(dtype=float)
    dx: wp.array2d(dtype=float)
    dy: wp.array2d(dtype=float)
    dz: wp.array2d(dtype=float)
    nx: wp.array2d(dtype=float)
    ny: wp.array2d(dtype=float)
    nz: wp.array2d(dtype=float)
    linear: wp.array2d(dtype=float)
    quadratic: wp.array2d(dtype=float)
    pressure: wp.array2d(dtype=float)
    near_pressure: wp.array2d(dtype=float)
    phase: wp.array2d(dtype=float)
    density: wp.array2d(dtype=float)
    stiff: wp.array2d(dtype=wp.vec3)
    hits: wp.array2d(dtype=wp.uint64)
    face: wp.array2d(dtype=wp.int32)
    barycentric: wp.array2d(dtype=wp.vec2)
    volume: wp.array2d(dtype=wp.int32)
    fluid: wp.array2d(dtype=wp.vec4)
    mixed: wp.array2d(dtype=wp.vec4)
    solvent: wp.array2d(dtype=float)
    clot: wp.array2d(dtype=float)
    age: wp.array2d(dtype=float)


@wp.func
def home_of(rest: Resting, world: int):
    mine = Home()
    mine.count = rest.count[world]
    mine.position = rest.position[world]
    mine.velocity = rest.velocity[world]
    mine.face = rest.face[world]
    mine.barycentric = rest.barycentric[world]
    mine.normal = rest.normal[world]
    mine.volume = rest.volume[world]
    mine.fluid = rest.fluid[world]
    mine.clot = rest.clot[world]
    mine.age = rest.age[world]
    mine.fate = rest.fate[world]
    mine.density = rest.density[world]
    mine.gone_count = rest.gone_count[world]
    mine.gone_volume = rest.gone_volume[world]
    mine.status = rest.status[world]
    return mine


@wp.func
def waiting_of(rest: Resting, world: int):
    mine = Waiting()
    mine.count = rest.queue_count[world]
    mine.face = rest.queue_face[world]
    mine.barycentric = rest.queue_barycentric[world]
    mine.position = rest.queue_position[world]
    mine.velocity = rest.queue_velocity[world]
    mine.volume = rest.queue_volume[world]
    mine.fluid = rest.queue_fluid[world]
    return mine


@wp.func
def surface_of(walk: WalkView, rest: Resting, world: int):
    """The surface that all share, where this world's tissue is."""
    mine = walk
    mine.vertices = rest.vertex[world]
    mine.vertex_normal = rest.vertex_normal[world]
    return mine


@wp.func
def grid_of(grid: GridView, moving: Moving, world: int):
    mine = grid
    mine.cell_start = moving.cell_start[world]
    return mine


@wp.func
def sorted_of(moving: Moving, world: int):
    mine = Sorted()
    mine.count = moving.count[world]
    mine.x = moving.x[world]
    mine.y = moving.y[world]
    mine.z = moving.z[world]
    mine.vx = moving.vx[world]
    mine.vy = moving.vy[world]
    mine.vz = moving.vz[world]
    mine.px = moving.px[world]
    mine.py = moving.py[world]
    mine.pz = moving.pz[world]
    mine.dx = moving.dx[world]
    mine.dy = moving.dy[world]
    mine.dz = moving.dz[world]
    mine.nx = moving.nx[world]
    mine.ny = moving.ny[world]
    mine.nz = moving.nz[world]
    mine.linear = moving.linear[world]
    mine.quadratic = moving.quadratic[world]
    mine.pressure = moving.pressure[world]
    mine.near_pressure = moving.near_pressure[world]
    mine.phase = moving.phase[world]
    mine.density = moving.density[world]
    mine.stiff = moving.stiff[world]
    mine.hits = moving.hits[world]
    return mine


@wp.func
def cargo_of(moving: Moving, world: int):
    mine = Carried()
    mine.face = moving.face[world]
    mine.barycentric = moving.barycentric[world]
    mine.volume = moving.volume[world]
    mine.fluid = moving.fluid[world]
    mine.mixed = moving.mixed[world]
    mine.solvent = moving.solvent[world]
    mine.clot = moving.clot[world]
    mine.age = moving.age[world]
    return mine
