"""Kernels of the film's picture; `image.py` has the equations and says in which order they run."""

from __future__ import annotations

import warp as wp

from viscera.blood.columns import PoolView, fluid_over, is_near
from viscera.blood.film.state import STAYS
from viscera.blood.views import FilmView
from viscera.neighbors.cells import GridView, cell_index, cell_of, row_range, sorted_count

wp.set_module_options({"enable_backward": False})

TILE = 16
"""Texels along a side of a tile: what is skipped, and what is sent, as one."""

LEVEL = wp.constant(0.5)
"""What faces up less than this is a wall."""

SELDOM = 4
"""Frames from one look at a trail that nothing lies on to the next; tiles take turns. A trail lasts for seconds."""

AROUND = wp.constant(8)
"""Neighbours of a texel."""


@wp.struct
class Look:
    """Live numbers of a picture; from an array, as scalars are frozen when a program is recorded."""

    radius: float
    """Of a splat [m]."""
    scale: float
    """4 / (π radius²): thickness in the middle of a particle, per volume [1/m²]."""
    edge_low: float
    edge_high: float
    """Between these thicknesses the border rises from nothing to its full height [m]."""
    facing: float
    """Least cosine between the normals of a texel and of a particle that it shows."""
    keep: float
    """k, part of a texel's thickness that is left after one frame."""
    trail_keep: float
    trail: float
    """Part of a trail's thickness that is left after one frame; thickness that a trail begins with [m]."""
    drying: float
    """Part of what is still fluid in a trail that dries in one frame."""
    seldom_keep: float
    seldom_drying: float
    """The same of `SELDOM` frames, for a trail that nothing lies on."""
    thinnest: float
    """Below this nothing is shown [m]."""
    thickest: float
    """What 255 means [m]."""
    document: int
    """Not 0: what is kept is the blurred value, as in the document."""
    little: float
    """Volume of a picolitre [m³]."""
    blood: int
    dye: int
    """Which fluid is blood, and which is the other one that has a colour; -1: none."""
    first_face: int
    faces: int
    """The organ's triangles among the film's."""


@wp.struct
class Sources:
    """Particles in the order of the picture's grid, one array per number: an inner loop on cpu takes 16 at once. Shape
    (capacity + 16,)."""

    x: wp.array(dtype=wp.float32)
    y: wp.array(dtype=wp.float32)
    z: wp.array(dtype=wp.float32)
    """[m]"""
    nx: wp.array(dtype=wp.float32)
    ny: wp.array(dtype=wp.float32)
    nz: wp.array(dtype=wp.float32)
    """Normal of the surface there."""
    volume: wp.array(dtype=wp.float32)
    blood: wp.array(dtype=wp.float32)
    dye: wp.array(dtype=wp.float32)
    clot: wp.array(dtype=wp.float32)
    """Volume of the particle, and of the blood, the dye and the clot in it [m³]."""


@wp.struct
class Texels:
    """What the kernels know about the skin."""

    width: int
    columns: int
    """log₂ of the width: sides of a skin are powers of two, and a shift is ten times as fast as a division."""
    tiles_x: int
    texels: wp.array(dtype=wp.int32)
    position: wp.array(dtype=wp.vec3)
    face: wp.array(dtype=wp.int32)
    triangles: wp.array(dtype=wp.vec3i)
    vertices: wp.array(dtype=wp.vec3)
    normal: wp.array(dtype=wp.vec3)
    """Of each triangle, as `find_normals` leaves it."""
    around: wp.array2d(dtype=wp.int32)
    """Neighbours of covered texel i, its own number where there is none; shape (count, AROUND)."""
    one_tile: wp.array(dtype=wp.int32)
    """1 where covered texel i and all its neighbours lie in one tile."""
    row_of_sixteen: wp.array(dtype=wp.int32)
    """1 where covered texels i to i + 15 stand side by side in a row, with all their neighbours around them."""
    pool: PoolView
    """Fluid that stands on it; without columns where there is none."""
    obstacle: wp.array(dtype=wp.float32)
    """How far a detail of the surface sticks out, per texel [m]; infinite: blood is never seen there."""


@wp.func
def tile_of(view: Texels, texel: int):
    row = texel >> view.columns
    return (row // TILE) * view.tiles_x + (texel & (view.width - 1)) // TILE


@wp.kernel
def find_normals(
    first: int,
    # params
    chunk: int,
    # in
    triangles: wp.array(dtype=wp.vec3i),
    vertices: wp.array(dtype=wp.vec3),
    # out
    normal_out: wp.array(dtype=wp.vec3),
):
    """Of all triangles: a texel then reads one vector, not nine numbers by way of three."""
    begin = (first + wp.tid()) * chunk
    for f in range(begin, wp.min(begin + chunk, triangles.shape[0])):
        corner = triangles[f]
        a = vertices[corner[0]]
        normal_out[f] = wp.normalize(wp.cross(vertices[corner[1]] - a, vertices[corner[2]] - a))


@wp.func
def texel_normal(view: Texels, texel: int):
    return view.normal[view.face[texel]]


@wp.kernel
def stamp_cells(
    first: int,
    # params
    grid: GridView,
    chunk: int,
    # in
    position: wp.array(dtype=wp.vec3),
    frame: wp.array(dtype=wp.int32),
    # out
    near_out: wp.array(dtype=wp.int32),
):
    """Marks the cells around each particle with this frame's number. Several threads may write the same number."""
    begin = (first + wp.tid()) * chunk
    for s in range(begin, wp.min(begin + chunk, sorted_count(grid))):
        cell = cell_of(grid, position[s])
        for z in range(wp.max(cell[2] - 1, 0), wp.min(cell[2] + 2, grid.cells_z)):
            for y in range(wp.max(cell[1] - 1, 0), wp.min(cell[1] + 2, grid.cells_y)):
                for x in range(wp.max(cell[0] - 1, 0), wp.min(cell[0] + 2, grid.cells_x)):
                    near_out[cell_index(grid, wp.vec3i(x, y, z))] = frame[0]


@wp.kernel
def take_content(
    first: int,
    # params
    grid: GridView,
    looks: wp.array(dtype=Look),
    chunk: int,
    # in
    original: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    film: FilmView,
    # out
    sources_out: Sources,
):
    """Sorted particles; nothing of one that is on another organ or leaves."""
    begin = (first + wp.tid()) * chunk
    look = looks[0]
    for s in range(begin, wp.min(begin + chunk, sorted_count(grid))):
        i = original[s]
        content = wp.vec4(0.0, 0.0, 0.0, 0.0)
        own = film.face[i] - look.first_face
        if film.fate[i] == STAYS and own >= 0 and own < look.faces:
            mixture = film.fluid[i]
            parts = wp.vec4(1.0, 0.0, 0.0, film.clot[i])
            if look.blood >= 0:
                parts[1] = mixture[look.blood]
            if look.dye >= 0:
                parts[2] = mixture[look.dye]
            content = (look.little * float(film.volume[i])) * parts
        sources_out.x[s] = position[s][0]
        sources_out.y[s] = position[s][1]
        sources_out.z[s] = position[s][2]
        sources_out.nx[s] = film.normal[i][0]
        sources_out.ny[s] = film.normal[i][1]
        sources_out.nz[s] = film.normal[i][2]
        sources_out.volume[s] = content[0]
        sources_out.blood[s] = content[1]
        sources_out.dye[s] = content[2]
        sources_out.clot[s] = content[3]


@wp.func
def _smooth(low: float, high: float, x: float):
    """0 below `low`, 1 above `high`, smooth between."""
    part = float(1.0)
    if x < high:
        part = wp.clamp((x - low) / (high - low), 0.0, 1.0)
    return part * part * (3.0 - 2.0 * part)


@wp.func
def thickness_at(
    grid: GridView,
    look: Look,
    here: wp.vec3,
    normal: wp.vec3,
    sources: Sources,
):
    """Σ V W: thickness of all fluid, and of the blood, the dye and the clot in it [m]."""
    total = wp.vec4(0.0, 0.0, 0.0, 0.0)
    square = look.radius * look.radius
    cell = cell_of(grid, here)
    for row in range(grid.rows):
        begin, end = row_range(grid, cell, row)
        for t in range(begin, end):
            offset = wp.vec3(sources.x[t], sources.y[t], sources.z[t]) - here
            q = 1.0 - wp.dot(offset, offset) / square
            if q > 0.0 and wp.dot(wp.vec3(sources.nx[t], sources.ny[t], sources.nz[t]), normal) > look.facing:
                content = wp.vec4(sources.volume[t], sources.blood[t], sources.dye[t], sources.clot[t])
                total += (look.scale * q * q * q) * content
    return total


@wp.func
def pooled_at(view: Texels, look: Look, here: wp.vec3, normal: wp.vec3) -> wp.vec4:
    """The same of what stands in a pool over a texel that faces up."""
    found = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if normal[2] > 0.0:
        above = fluid_over(view.pool, here)
        # Below a rim there is a wall that fluid runs down, and no pool.
        if above.depth > 0.0 and (above.at_rim == 0 or normal[2] > LEVEL):
            found[0] = above.depth
            if look.blood >= 0:
                found[1] = above.depth * above.parts[look.blood]
            if look.dye >= 0:
                found[2] = above.depth * above.parts[look.dye]
    return found


@wp.struct
class Painting:
    """What a picture keeps from one to the next."""

    frame: wp.array(dtype=wp.int32)
    near: wp.array(dtype=wp.int32)
    """Frame in which a cell last had a particle around it."""
    soft: wp.array(dtype=wp.float32)
    kept: wp.array(dtype=wp.vec4)
    trail: wp.array(dtype=wp.float32)
    tile: wp.array(dtype=wp.int32)
    pixel: wp.array(dtype=wp.uint32)


@wp.func
def paint(view: Texels, look: Look, picture: Painting, i: int, seen: wp.vec4):
    """What is kept of the frame before, under what is there now: `seen` as `thickness_at` gives it."""
    t = view.texels[i]
    fresh = seen * _smooth(look.edge_low, look.edge_high, seen[0])
    above = wp.max(fresh[0] - view.obstacle[t], 0.0)
    fresh = fresh * (above / wp.max(fresh[0], 1.0e-20))
    old = picture.kept[t]
    trail = picture.trail[t]
    before = old[0]
    if look.document != 0:
        before = picture.soft[t]
    keep = look.trail_keep
    drying = look.drying
    if fresh[0] == 0.0 and before == 0.0:
        # Tiles with nothing but trails on them take turns.
        if trail == 0.0 or (tile_of(view, t) + picture.frame[0]) % SELDOM != 0:
            return
        keep = look.seldom_keep
        drying = look.seldom_drying
    height = wp.max(fresh[0], look.keep * before)
    trail = wp.max(wp.min(fresh[0], look.trail), keep * trail)
    # What is left of the frame before keeps its mixture; a trail that nothing flows over dries.
    parts = wp.vec3(old[1], old[2], old[3])
    if height > 0.0:
        rest = height - fresh[0]
        parts = (wp.vec3(fresh[1], fresh[2], fresh[3]) + rest * parts) / height
    if fresh[0] == 0.0:
        parts = wp.vec3(parts[0], parts[1], parts[2] + drying * (parts[0] - parts[2]))
    if height < look.thinnest:
        height = 0.0
    if trail < look.thinnest:
        trail = 0.0
    picture.kept[t] = wp.vec4(height, parts[0], parts[1], parts[2])
    picture.trail[t] = trail
    picture.tile[tile_of(view, t)] = picture.frame[0]
    if view.one_tile[i] != 0:
        return
    for k in range(AROUND):
        picture.tile[tile_of(view, view.around[i, k])] = picture.frame[0]


@wp.kernel
def splat(
    first: int,
    # params
    grid: GridView,
    view: Texels,
    looks: wp.array(dtype=Look),
    chunk: int,
    # in
    sources: Sources,
    # out
    picture_out: Painting,
):
    """A thread takes `chunk` texels: on cpu Warp copies a kernel's arguments for every thread, which costs more than a
    dry texel does."""
    begin = (first + wp.tid()) * chunk
    look = looks[0]
    for i in range(begin, wp.min(begin + chunk, view.texels.shape[0])):
        t = view.texels[i]
        here = view.position[t]
        seen = wp.vec4(0.0, 0.0, 0.0, 0.0)
        if picture_out.near[cell_index(grid, cell_of(grid, here))] == picture_out.frame[0]:
            seen = thickness_at(grid, look, here, texel_normal(view, t), sources)
        if is_near(view.pool, here):
            seen += pooled_at(view, look, here, texel_normal(view, t))
        paint(view, look, picture_out, i, seen)
