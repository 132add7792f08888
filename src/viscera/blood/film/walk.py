"""Walking over triangles: a particle keeps its triangle and its place in it, and crosses edges by unfolding.

In the plane of its triangle a particle goes straight. Where it meets an edge with a triangle beyond, that triangle is
unfolded into the same plane: along the edge ê the way stays, across it the outward direction ô of one becomes the
inward direction of the other,

    d ← (d·ê) ê + (d·ô_here) ô_there,

and everything that is carried (the displacement from which the velocity follows) turns the same way. So texture seams
do not exist, and neither stretch nor the choice of an atlas matters. At a rim, or an edge that is a barrier, the way
goes on along the edge; a drain takes the particle.

The document moves particles in texture coordinates instead (§3.8); seams and stretch are then the artist's concern.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

import warp as wp

from viscera.blood.film.state import DRAINED, STAYS

wp.set_module_options({"enable_backward": False})

OPEN = wp.constant(0)
BARRIER = wp.constant(1)
DRAIN = wp.constant(2)
"""What an edge does to the film."""

MOST_CROSSINGS = wp.constant(64)
"""Edges in one step. A step is a fraction of the radius; only specks of triangles come near this, and a particle there
waits for the next step."""


CREASE = wp.constant(0.9)
"""Cosine between a triangle and its corners' normals below which the surface has an edge there, not a curve."""


@wp.struct
class WalkView:
    """A surface as kernels read it. Edge k of a triangle goes from corner k to the next one."""

    triangles: wp.array(dtype=wp.vec3i)
    """Corners; vertices at one place have one number, so seams vanish."""
    vertices: wp.array(dtype=wp.vec3)
    """[m]"""
    vertex_normal: wp.array(dtype=wp.vec3)
    across: wp.array(dtype=wp.vec3i)
    """Triangle behind each edge, −1 where there is none."""
    edge: wp.array(dtype=wp.vec3i)
    """`OPEN`, `BARRIER` or `DRAIN`."""
    corner_uv: wp.array(dtype=wp.vec2)
    """Texture coordinates of the corners, shape (3 · triangles,)."""
    map: wp.array(dtype=wp.vec3i)
    """Per triangle: where the obstacle map of its part begins, its width and height; width 0 where there is none."""
    free: wp.array(dtype=wp.int32)
    """Per triangle: 1 where no obstacle and no drain is on its texels."""


@wp.struct
class Walked:
    face: int
    weights: wp.vec3
    moved: wp.vec3
    """The whole displacement as it lies at the end, without what a barrier has stopped [m]."""
    fate: int


@wp.func
def position_at(surface: WalkView, face: int, weights: wp.vec3) -> wp.vec3:
    t = surface.triangles[face]
    return (
        surface.vertices[t[0]] * weights[0] + surface.vertices[t[1]] * weights[1] + surface.vertices[t[2]] * weights[2]
    )


@wp.func
def normal_at(surface: WalkView, face: int, weights: wp.vec3) -> wp.vec3:
    """Interpolated between the vertices: a polyhedron's faces would pull a stream off a sphere's great circle."""
    t = surface.triangles[face]
    return wp.normalize(
        surface.vertex_normal[t[0]] * weights[0]
        + surface.vertex_normal[t[1]] * weights[1]
        + surface.vertex_normal[t[2]] * weights[2]
    )


@wp.func
def face_normal(surface: WalkView, face: int) -> wp.vec3:
    """Unit normal of the triangle; zero where it has no area."""
    t = surface.triangles[face]
    a = surface.vertices[t[0]]
    return wp.normalize(wp.cross(surface.vertices[t[1]] - a, surface.vertices[t[2]] - a))


@wp.func
def slope_normal(surface: WalkView, face: int, own: wp.vec3, smooth: wp.vec3) -> wp.vec3:
    """The normal that gravity is projected with: the interpolated one, but at a crease, where the corners' normals say
    nothing about the triangle, its own."""
    t = surface.triangles[face]
    least = wp.min(
        wp.dot(own, surface.vertex_normal[t[0]]),
        wp.min(wp.dot(own, surface.vertex_normal[t[1]]), wp.dot(own, surface.vertex_normal[t[2]])),
    )
    result = smooth
    if least < CREASE:
        result = own
    return result


@wp.func
def into_plane(n: wp.vec3, v: wp.vec3) -> wp.vec3:
    """The part of `v` in the plane with unit normal `n`."""
    return v - n * wp.dot(v, n)


@wp.func
def weights_of(barycentric: wp.vec2) -> wp.vec3:
    return wp.vec3(1.0 - barycentric[0] - barycentric[1], barycentric[0], barycentric[1])


@wp.func
def tidy(w: wp.vec3) -> wp.vec3:
    """Weights without what rounding left below zero, sum 1."""
    a = wp.max(w[0], 0.0)
    b = wp.max(w[1], 0.0)
    c = wp.max(w[2], 0.0)
    return wp.vec3(a, b, c) / (a + b + c)


@wp.func
def rise(surface: WalkView, t: wp.vec3i, d: wp.vec3) -> wp.vec3:
    """How the weights change along `d`; zero on a triangle without area."""
    a = surface.vertices[t[0]]
    e = surface.vertices[t[1]] - a
    f = surface.vertices[t[2]] - a
    n = wp.cross(e, f)
    size = wp.dot(n, n)
    result = wp.vec3(0.0, 0.0, 0.0)
    if size > 0.0:
        second = wp.dot(wp.cross(d, f), n) / size
        third = wp.dot(wp.cross(e, d), n) / size
        result = wp.vec3(-second - third, second, third)
    return result


@wp.func
def edge_out(surface: WalkView, a: int, b: int, apex: int):
    """Unit vector along a–b and the one across it, away from `apex`."""
    start = surface.vertices[a]
    along = wp.normalize(surface.vertices[b] - start)
    to_apex = surface.vertices[apex] - start
    out = wp.normalize(along * wp.dot(to_apex, along) - to_apex)
    return along, out


@wp.func
def corner_index(t: wp.vec3i, vertex: int) -> int:
    k = int(2)
    if t[0] == vertex:
        k = 0
    elif t[1] == vertex:
        k = 1
    return k


@wp.func
def edge_weights(ka: int, kb: int, a: float, b: float) -> wp.vec3:
    """Weights of a place on the edge between corners ka and kb."""
    w = wp.vec3(0.0, 0.0, 0.0)
    w[ka] = a
    w[kb] = b
    return w


@wp.func
def walk(surface: WalkView, face: int, weights: wp.vec3, d: wp.vec3) -> Walked:
    """Go the way `d` [m], which lies in the plane of triangle `face`, from the place with these weights."""
    end = Walked()
    end.face = face
    end.weights = weights
    end.moved = d
    end.fate = STAYS
    left = d
    wall = int(-1)  # corner whose opposite edge has just stopped the particle
    go = bool(True)
    crossings = int(0)
    while go and crossings < MOST_CROSSINGS:
        crossings += 1
        t = surface.triangles[end.face]
        change = rise(surface, t, left)
        part = float(1.0)
        out = int(-1)
        for c in range(3):
            if c != wall and change[c] < 0.0:
                until = -end.weights[c] / change[c]
                if until < part:
                    part = until
                    out = c
        part = wp.max(part, 0.0)
        w = tidy(end.weights + change * part)
        left = left * (1.0 - part)
        if out < 0:
            end.weights = w
            go = bool(False)
        else:
            w[out] = 0.0
            w = tidy(w)
            k = (out + 1) % 3
            a = t[k]
            b = t[(k + 1) % 3]
            beyond = surface.across[end.face][k]
            kind = surface.edge[end.face][k]
            along, across = edge_out(surface, a, b, t[out])
            if kind == DRAIN:
                end.weights = w
                end.fate = DRAINED
                go = bool(False)
            elif beyond < 0 or kind == BARRIER:
                end.weights = w
                end.moved = end.moved - across * wp.max(wp.dot(end.moved, across), 0.0)
                left = along * wp.dot(left, along)
                if wall >= 0:
                    # Two walls meet here.
                    left = wp.vec3(0.0, 0.0, 0.0)
                    go = bool(False)
                wall = out
            else:
                g = surface.triangles[beyond]
                ka = corner_index(g, a)
                kb = corner_index(g, b)
                apex = g[3 - ka - kb]
                _along, away = edge_out(surface, a, b, apex)
                left = along * wp.dot(left, along) - away * wp.dot(left, across)
                end.moved = along * wp.dot(end.moved, along) - away * wp.dot(end.moved, across)
                end.weights = edge_weights(ka, kb, w[k], w[(k + 1) % 3])
                end.face = beyond
                wall = -1
    return end
