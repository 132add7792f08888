"""What a particle knows about the triangles around it: the nearest few by number, good for many steps.

A particle that touches a wall asks for the nearest triangle several times in a step, and moves by a hundredth of its
radius. So it asks the mesh once and keeps the `FACES` triangles nearest to where it asked, c, and the distance L up to
which there are no others (the distance of the nearest one left out, or the reach). At a place x the answer from the
list is exact up to

    L − |x − c|

and the list holds until that is less than a radius. Where walls have moved, L is less by their longest way. Grahn §7.3
asks in every step; the lists of Verlet (1967, doi:10.1103/PhysRev.159.98) do the same for pairs of particles.
"""

from __future__ import annotations

import warp as wp

from viscera.device import Device
from viscera.water.boundary.field import nearest_in_field
from viscera.water.boundary.nearest import Nearest, nothing_near
from viscera.water.boundary.shapes import nearest_shape, shapes_away
from viscera.water.boundary.triangles import closest_on_triangle
from viscera.water.boundary.triangles_hashed import (
    ROUNDING,
    HashedTriangles,
    bucket_of,
    cell_at,
    cell_middle,
    cell_number,
)
from viscera.water.boundary.walls import FIELD, HASHED, HIERARCHY, WallsView

wp.set_module_options({"enable_backward": False})

FACES = wp.constant(8)
"""Triangles that a particle remembers. At contact 3 are within 1.25 radii in a colon of 8 040 triangles, 12 in one of
40 000; the list is then good for 0.5 and 0.17 radii of way."""

PLANE_ROOM = wp.constant(1.001)
"""Square of how much farther than the reach a triangle's plane may be before it is left out; far more than rounding."""

Faces = wp.types.vector(length=8, dtype=wp.int32)
Distances = wp.types.vector(length=8, dtype=wp.float32)


@wp.struct
class Known:
    """The walls around one particle."""

    ball: wp.vec4
    """Centre c, and L: all triangles nearer to it are listed [m]; below 0 nothing is known."""
    clear: float
    """No wall of any kind is nearer to the centre [m]."""
    shapes: float
    """No shape is nearer to the centre [m]."""
    count: int
    faces: Faces
    """Nearest first."""
    away: Distances
    """Of each from the centre [m]: none is nearer to a place x than that less |x − c|."""


@wp.func
def distance_to(point: wp.vec3, p0: wp.vec3, p1: wp.vec3, p2: wp.vec3) -> float:
    w = closest_on_triangle(point, p0, p1, p2)
    return wp.length(point - (w[0] * p0 + w[1] * p1 + w[2] * p2))


@wp.func
def keep_nearest(face: int, away: float, radius: float, i: int, known: wp.array(dtype=Known)) -> float:
    """One face more in the list of particle i, at its place; the farthest is left out if there are too many. Gives the
    distance up to which all are listed. The list is changed where it lies: as a value it would be copied for every
    triangle that is looked at."""
    result = radius
    place = known[i].count
    if place < FACES:
        known[i].count = place + 1
    else:
        place = FACES - 1
        farthest = known[i].away[place]
        result = wp.max(away, farthest)
        if away >= farthest:
            return result
    while place > 0 and known[i].away[place - 1] > away:
        known[i].faces[place] = known[i].faces[place - 1]
        known[i].away[place] = known[i].away[place - 1]
        place -= 1
    known[i].faces[place] = face
    known[i].away[place] = away
    return result


@wp.func
def gather_hashed(table: HashedTriangles, point: wp.vec3, i: int, known: wp.array(dtype=Known)) -> float:
    """Lists the triangles around `point`, from the list of its cell; gives how far it is complete [m]."""
    radius = table.reach
    cell = cell_at(table, point)
    own = cell_number(table, cell[0], cell[1], cell[2])
    bucket = bucket_of(table, cell[0], cell[1], cell[2])
    # No triangle is nearer than its distance from the cell's middle was, less ours and the drift; with rounding.
    slack = table.reach * ROUNDING + wp.length(point - cell_middle(table, cell[0], cell[1], cell[2])) + table.drift[0]
    begin = table.bucket_start[bucket]
    end = table.bucket_start[bucket + 1]
    all_of_them = table.missing[0] > 0
    if all_of_them:
        begin = 0
        end = table.corners.shape[0]
    for e in range(begin, end):
        t = e
        if not all_of_them:
            entry = table.entries[e]
            t = wp.where(entry[1] == own and table.away[e] <= radius + slack, entry[0], -1)
        if t >= 0:
            p0 = table.corners[t, 0]
            p1 = table.corners[t, 1]
            p2 = table.corners[t, 2]
            # Its plane is no farther than it is: above flat ground that says no to all of them, without a root.
            normal = wp.cross(p1 - p0, p2 - p0)
            above = wp.dot(normal, point - p0)
            if above * above <= PLANE_ROOM * radius * radius * wp.dot(normal, normal):
                away = distance_to(point, p0, p1, p2)
                if away < radius:
                    radius = keep_nearest(t, away, radius, i, known)
    return radius


@wp.func
def gather_in_hierarchy(
    tree: wp.uint64,
    corners: wp.array2d(dtype=wp.vec3),
    reach: float,
    point: wp.vec3,
    i: int,
    known: wp.array(dtype=Known),
) -> float:
    """Lists the triangles around `point`, from the boxes of the tree; gives how far it is complete [m]."""
    radius = reach
    half = wp.vec3(reach, reach, reach)
    query = wp.mesh_query_aabb(tree, point - half, point + half)
    t = wp.int32(0)
    while wp.mesh_query_aabb_next(query, t):
        away = distance_to(point, corners[t, 0], corners[t, 1], corners[t, 2])
        if away < radius:
            radius = keep_nearest(t, away, radius, i, known)
    return radius


@wp.func
def learn(walls: WallsView, point: wp.vec3, i: int, known: wp.array(dtype=Known)):
    """Particle i asks the mesh: what it knows is written."""
    # Also what is not in use: a saved state is compared by its bytes.
    known[i].count = 0
    known[i].faces = Faces()
    known[i].away = Distances()
    radius = walls.reach
    if walls.structure == HASHED:
        radius = gather_hashed(walls.table[0], point, i, known)
    else:
        radius = gather_in_hierarchy(walls.tree, walls.corners, walls.reach, point, i, known)
    known[i].ball = wp.vec4(point[0], point[1], point[2], radius)


@wp.func
def wall_velocity(walls: WallsView, t: int, w: wp.vec3) -> wp.vec3:
    if walls.structure == HASHED:
        a = walls.table[0].indices[t, 0]
        b = walls.table[0].indices[t, 1]
        c = walls.table[0].indices[t, 2]
        v = walls.table[0].velocity
        return w[0] * v[a] + w[1] * v[b] + w[2] * v[c]
    return wp.mesh_eval_velocity(walls.tree, t, w[0], w[1])


@wp.func
def good_for(known: wp.array(dtype=Known), i: int, point: wp.vec3) -> float:
    """Up to which distance from `point` the list of particle i is complete [m]."""
    ball = known[i].ball
    return ball[3] - wp.length(point - wp.vec3(ball[0], ball[1], ball[2]))


@wp.func
def nearest_known(walls: WallsView, known: wp.array(dtype=Known), i: int, point: wp.vec3) -> Nearest:
    """The nearest of the listed triangles, as far as the list is good."""
    good = good_for(known, i, point)
    shift = (known[i].ball[3] - good) * (1.0 + ROUNDING)
    nearest = float(1.0e15)
    found = nothing_near(good)
    best = float(1.0e30)
    face = wp.int32(-1)
    weights = wp.vec3(0.0, 0.0, 0.0)
    offset = wp.vec3(0.0, 0.0, 0.0)
    for k in range(known[i].count):
        if known[i].away[k] - shift > nearest:
            break
        t = known[i].faces[k]
        p0 = walls.corners[t, 0]
        p1 = walls.corners[t, 1]
        p2 = walls.corners[t, 2]
        w = closest_on_triangle(point, p0, p1, p2)
        way = point - (w[0] * p0 + w[1] * p1 + w[2] * p2)
        square = wp.dot(way, way)
        if square < best or (square == best and t < face):
            best = square
            nearest = wp.sqrt(square) * (1.0 + ROUNDING)
            offset = way
            face = t
            weights = w
    distance = wp.sqrt(best)
    # Equally near ones may have been left out: a vertex of more than eight triangles.
    if face >= 0 and distance <= good * (1.0 + ROUNDING):
        found.distance = distance
        found.free = distance
        found.solid = distance
        found.face = face
        found.weights = weights
        if distance > 0.0:
            found.normal = offset / distance
        else:
            # On the surface itself: the inner side of a closed one.
            e1 = walls.corners[face, 1] - walls.corners[face, 0]
            found.normal = -wp.normalize(wp.cross(e1, walls.corners[face, 2] - walls.corners[face, 0]))
        if walls.moved[1] > 0.0:
            found.velocity = wall_velocity(walls, face, weights)
    return found


@wp.func
def look(walls: WallsView, known: wp.array(dtype=Known), i: int, point: wp.vec3, need: float) -> Nearest:
    """The nearest wall of particle i at `point`, exact if it is nearer than `need`. Asks the mesh only if the list is
    not good for that."""
    near = Nearest()
    asked = False
    listed = walls.structure == HASHED or walls.structure == HIERARCHY
    if listed:
        asked = good_for(known, i, point) < need
        if asked:
            learn(walls, point, i, known)
        near = nearest_known(walls, known, i, point)
    elif walls.structure == FIELD:
        near = nearest_in_field(walls.grid[0], walls.field_side, walls.reach, point)
    else:
        near = nothing_near(walls.reach)
    if walls.shape_count > 0:
        if asked:
            known[i].shapes = shapes_away(walls.shapes, walls.shape_count, point)
        away = known[i].shapes + good_for(known, i, point) - known[i].ball[3]
        if listed and away >= need:
            near.free = wp.min(near.free, away)
            if near.face < 0:
                near.distance = wp.min(near.distance, away)
        else:
            near = nearest_shape(walls.shapes, walls.shape_count, point, near)
    if asked:
        known[i].clear = near.free
    return near


@wp.func
def take_known(
    known: wp.array(dtype=Known), i: int, moved: float, triangles: float, i_out: int, known_out: wp.array(dtype=Known)
):
    """Particle `i_out` knows what `i` did, as far as it is good after walls have moved by `moved` and triangles among
    them by `triangles` [m]. So a ball in a hand costs nobody the list of the triangles around."""
    ball = known[i].ball
    known_out[i_out].ball = wp.vec4(ball[0], ball[1], ball[2], ball[3] - triangles)
    known_out[i_out].clear = known[i].clear - moved
    known_out[i_out].shapes = known[i].shapes - moved
    known_out[i_out].count = known[i].count
    if known[i].count > 0:
        known_out[i_out].faces = known[i].faces
        known_out[i_out].away = known[i].away
        if triangles > 0.0:
            for k in range(FACES):
                known_out[i_out].away[k] = known[i].away[k] - triangles


@wp.func
def recentre(known_out: wp.array(dtype=Known), i: int, ball: wp.vec4):
    """Where particle i has no triangles around it, it knows as much about its newest place, with `ball` free of
    walls."""
    if known_out[i].count == 0:
        now = wp.vec3(ball[0], ball[1], ball[2])
        good = good_for(known_out, i, now)
        known_out[i].shapes = known_out[i].shapes + good - known_out[i].ball[3]
        known_out[i].ball = wp.vec4(now[0], now[1], now[2], good)
        known_out[i].clear = ball[3]


def make_known(capacity: int, device: Device) -> wp.array:
    """Nothing is known yet: radii below any distance."""
    known = wp.zeros(capacity, dtype=Known, device=device.warp)
    values = known.numpy()
    values["ball"][:, 3] = values["clear"] = -1.0
    known.assign(values)
    return known
