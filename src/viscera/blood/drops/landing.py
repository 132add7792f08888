"""Where a flying drop meets a moving surface: a tree of boxes over the triangles, refitted by recorded launches.

The tree is a complete binary one, stored level by level: node i has children 2i + 1 and 2i + 2, each leaf holds
`LEAF` triangles. It is split at medians of the triangles' middles when it is made; later only boxes follow the tissue,
leaves first, then one launch per level. Warp's own trees cannot: their refit is not part of a recorded program and a
replay would quietly use the old boxes. Without a stack: after a subtree comes the next sibling of the
nearest ancestor that has one, which the node's number alone tells.

A drop flies from x₀ to x₁ while a triangle's points P go from P₀ to P₁, both straight. They meet at P after the part
τ of the frame if x₀ + τ (x₁ − x₀) = P₀ + τ (P₁ − P₀), that is, if the segment from x₀ + (P₁ − P₀) to x₁ meets the
triangle as it is now, at P₁, after the part τ of its length. P₁ − P₀ is found by repetition, `ROUNDS` times;
neighbours share it along their edge, so nothing slips through there, and tissue that rises does not pass over a drop.
Triangles are taken larger by `RIM`, which covers what the repetition leaves while a triangle strains or turns by less
than a tenth per frame.
"""

# `int(0)` declares a variable in a kernel.
# ruff: noqa: RUF046

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import BLOCK, Device, Stage

wp.set_module_options({"enable_backward": False})

LEAF = wp.constant(4)
"""Triangles per leaf."""

RIM = wp.constant(1.0e-3)
"""By how much of its size a triangle is larger for a drop than it is: more than the maps of neighbours differ."""

ROUNDS = wp.constant(3)
"""Repetitions; each leaves about the triangle's strain and turn in the frame of what the one before left."""

NO_STEP = wp.constant(1.0e-20)
"""A step along an axis that counts as none [m]."""

SLACK = wp.constant(1.0e-4)
"""Part of a box's size by which it is larger than its triangles: more than `RIM` needs and rounding loses."""


@wp.struct
class LandingView:
    """The tree as kernels read it."""

    leaves: int
    """A power of two; leaf k is node leaves - 1 + k."""
    face: wp.array(dtype=wp.int32)
    """Triangles of the leaves, `LEAF` each; shape (LEAF · leaves,)."""
    triangles: wp.array(dtype=wp.vec3i)
    vertices: wp.array(dtype=wp.vec3)
    """Where the surface is now [m]."""
    before: wp.array(dtype=wp.vec3)
    """Where it was one frame ago [m]."""
    low: wp.array(dtype=wp.vec3)
    high: wp.array(dtype=wp.vec3)
    """Corners of each node's box, over both places [m]; shape (2 · leaves - 1,)."""


CHUNK = 16
"""Leaves per thread on cpu."""


@wp.struct
class Landing:
    face: int
    """-1: nothing was met."""
    along: float
    """Part of the segment that was flown, 0 to 1."""
    second: float
    third: float
    """Weights of the triangle's second and third corner."""


@dataclass(eq=False)
class LandingTree:
    """Made by `make_landing`."""

    view: Any
    vertices: Any
    """The array that the tissue writes, vec3 [m]."""
    before: Any
    levels: int
    device: Device


@wp.kernel
def remember_vertices(
    first: int,
    # in
    vertices: wp.array(dtype=wp.vec3),
    # out
    before_out: wp.array(dtype=wp.vec3),
):
    i = first + wp.tid()
    before_out[i] = vertices[i]


@wp.kernel
def fit_leaves(
    first: int,
    # params
    chunk: int,
    # in
    view: LandingView,
    # out
    low_out: wp.array(dtype=wp.vec3),
    high_out: wp.array(dtype=wp.vec3),
):
    """A thread takes `chunk` leaves."""
    begin = (first + wp.tid()) * chunk
    for leaf in range(begin, wp.min(begin + chunk, view.leaves)):
        start = view.vertices[view.triangles[view.face[LEAF * leaf]][0]]
        low = start
        high = start
        for k in range(LEAF):
            corner = view.triangles[view.face[LEAF * leaf + k]]
            for c in range(3):
                now = view.vertices[corner[c]]
                old = view.before[corner[c]]
                low = wp.min(low, wp.min(now, old))
                high = wp.max(high, wp.max(now, old))
        size = wp.length(high - low)
        room = wp.vec3(1.0, 1.0, 1.0) * ((RIM + SLACK) * size)
        low_out[view.leaves - 1 + leaf] = low - room
        high_out[view.leaves - 1 + leaf] = high + room


@wp.kernel
def fit_level(
    first: int,
    # params
    begin: int,
    # out
    low_out: wp.array(dtype=wp.vec3),
    high_out: wp.array(dtype=wp.vec3),
):
    node = begin + first + wp.tid()
    low_out[node] = wp.min(low_out[2 * node + 1], low_out[2 * node + 2])
    high_out[node] = wp.max(high_out[2 * node + 1], high_out[2 * node + 2])


@wp.func
def _per_step(step: float) -> float:
    """One over a step along an axis; a step of nothing never leaves a box's sides, wherever they are."""
    return 1.0 / wp.where(wp.abs(step) < NO_STEP, NO_STEP, step)


@wp.func
def _segment_meets_box(start: wp.vec3, per_step: wp.vec3, until: float, low: wp.vec3, high: wp.vec3):
    """Slabs, up to the part `until` of the segment. Where drop and triangle meet, the drop is inside the box, as that
    covers the triangle's motion."""
    a = wp.cw_mul(low - start, per_step)
    b = wp.cw_mul(high - start, per_step)
    near = wp.max(wp.min(a, b))
    far = wp.min(wp.max(a, b))
    return wp.max(near, 0.0) <= wp.min(far, until)


@wp.func
def _meet_triangle(view: LandingView, face: int, start: wp.vec3, end: wp.vec3, moving: float, best: Landing):
    """Möller and Trumbore (1997), from outside only: a drop that leaves the surface does not land on it."""
    corner = view.triangles[face]
    a = view.vertices[corner[0]]
    e = view.vertices[corner[1]] - a
    f = view.vertices[corner[2]] - a
    shift = moving * (a - view.before[corner[0]])
    shift_e = moving * (view.vertices[corner[1]] - view.before[corner[1]]) - shift
    shift_f = moving * (view.vertices[corner[2]] - view.before[corner[2]]) - shift
    # First guess: what lies under the flight's end. A slow drop lands there; to a fast one it does not matter.
    n = wp.cross(e, f)
    square = wp.max(wp.dot(n, n), 1.0e-30)
    s = wp.clamp(wp.dot(wp.cross(end - a, f), n) / square, -1.0, 2.0)
    t = wp.clamp(wp.dot(wp.cross(e, end - a), n) / square, -1.0, 2.0)
    along = float(-1.0)
    # Where the triangle stands still, or goes without a turn, the first round is the answer.
    rounds = int(1)
    if wp.length_sq(shift_e) + wp.length_sq(shift_f) > 0.0:
        rounds = ROUNDS
    for _ in range(rounds):
        origin = start + shift + s * shift_e + t * shift_f
        step = end - origin
        p = wp.cross(step, f)
        # det = -step·(e×f): positive when the step goes against the outward normal.
        det = wp.dot(e, p)
        along = -1.0
        if det > 0.0:
            d = origin - a
            q = wp.cross(d, e)
            s = wp.clamp(wp.dot(d, p) / det, -1.0, 2.0)
            t = wp.clamp(wp.dot(step, q) / det, -1.0, 2.0)
            along = wp.dot(f, q) / det
    found = best
    inside = s >= -RIM and t >= -RIM and s + t <= 1.0 + RIM
    earlier = along < best.along or (along == best.along and face < best.face)
    if inside and along >= 0.0 and along <= 1.0 and earlier:
        second = wp.clamp(s, 0.0, 1.0)
        found.face = face
        found.along = along
        found.second = second
        found.third = wp.clamp(t, 0.0, 1.0 - second)
    return found


@wp.func
def meet_surface(view: LandingView, start: wp.vec3, end: wp.vec3) -> Landing:
    """First triangle that the flight from `start` (one frame ago) to `end` (now) meets from outside."""
    return meet_moving(view, start, end, 1.0)


@wp.func
def meet_moving(view: LandingView, start: wp.vec3, end: wp.vec3, moving: float) -> Landing:
    """The same; with `moving` 0 the surface stands where it is now: for a flight that began within this frame, at a
    place of the surface as it is now."""
    best = Landing()
    best.face = -1
    best.along = 2.0
    node = int(0)
    inner = view.leaves - 1
    going = bool(True)
    way = end - start
    per_step = wp.vec3(_per_step(way[0]), _per_step(way[1]), _per_step(way[2]))
    while going:
        # What begins behind the nearest hit so far cannot be nearer.
        if _segment_meets_box(start, per_step, wp.min(best.along, 1.0), view.low[node], view.high[node]):
            if node < inner:
                node = 2 * node + 1
                continue
            for k in range(LEAF):
                best = _meet_triangle(view, view.face[LEAF * (node - inner) + k], start, end, moving, best)
        # Right children have even numbers; their parent's subtree is done with them.
        while node > 0 and node % 2 == 0:
            node = (node - 1) // 2
        going = node > 0
        node += 1
    return best


@wp.func
def meets_any(view: LandingView, start: wp.vec3, end: wp.vec3, moving: float) -> wp.bool:
    """Whether `meet_moving` would find a triangle; done with the first."""
    best = Landing()
    best.face = -1
    best.along = 2.0
    node = int(0)
    inner = view.leaves - 1
    going = bool(True)
    way = end - start
    per_step = wp.vec3(_per_step(way[0]), _per_step(way[1]), _per_step(way[2]))
    while going:
        if _segment_meets_box(start, per_step, 1.0, view.low[node], view.high[node]):
            if node < inner:
                node = 2 * node + 1
                continue
            for k in range(LEAF):
                best = _meet_triangle(view, view.face[LEAF * (node - inner) + k], start, end, moving, best)
            if best.face >= 0:
                break
        while node > 0 and node % 2 == 0:
            node = (node - 1) // 2
        going = node > 0
        node += 1
    return best.face >= 0


@wp.func
def point_on(view: LandingView, face: int, second: float, third: float) -> wp.vec3:
    corner = view.triangles[face]
    first = 1.0 - second - third
    return first * view.vertices[corner[0]] + second * view.vertices[corner[1]] + third * view.vertices[corner[2]]


@wp.func
def motion_on(view: LandingView, face: int, second: float, third: float) -> wp.vec3:
    """How far that place of the surface has come in the last frame [m]."""
    corner = view.triangles[face]
    a = view.vertices[corner[0]] - view.before[corner[0]]
    b = view.vertices[corner[1]] - view.before[corner[1]]
    c = view.vertices[corner[2]] - view.before[corner[2]]
    return (1.0 - second - third) * a + second * b + third * c


@wp.func
def outward(view: LandingView, face: int) -> wp.vec3:
    """Unit normal of a triangle."""
    corner = view.triangles[face]
    a = view.vertices[corner[0]]
    return wp.normalize(wp.cross(view.vertices[corner[1]] - a, view.vertices[corner[2]] - a))


def make_landing(vertices: Any, triangles: Any, device: Device) -> LandingTree:
    """A tree over `triangles` (vec3i) that follows `vertices` (vec3 [m]), both on the device: a film surface's."""
    at = vertices.numpy().astype(np.float64)
    order = _split(at[triangles.numpy()].mean(axis=1))
    leaves = len(order) // int(LEAF)
    nodes = 2 * leaves - 1
    before = wp.clone(vertices)
    view: Any = LandingView()
    view.leaves = leaves
    view.face = wp.array(order, dtype=wp.int32, device=device.warp)
    view.triangles, view.vertices, view.before = triangles, vertices, before
    view.low = wp.zeros(nodes, dtype=wp.vec3, device=device.warp)
    view.high = wp.zeros(nodes, dtype=wp.vec3, device=device.warp)
    tree = LandingTree(view, vertices, before, leaves.bit_length() - 1, device)
    device.record(lambda stage: fit_landing(stage, tree), work=leaves).run()
    device.synchronize()
    return tree


def fit_landing(stage: Stage, tree: LandingTree) -> None:
    """Boxes around where the surface is now and where it was when `remember_surface` was called."""
    view, boxes = tree.view, [tree.view.low, tree.view.high]
    chunk = 1 if stage.device.is_cuda else CHUNK
    stage.launch(fit_leaves, -(-view.leaves // chunk), [chunk, view, *boxes], max(BLOCK // chunk, 1))
    for level in reversed(range(tree.levels)):
        stage.launch(fit_level, 2**level, [2**level - 1, *boxes])


def remember_surface(stage: Stage, tree: LandingTree) -> None:
    """Ends a frame: where the surface is now is where it was."""
    stage.launch(remember_vertices, len(tree.before), [tree.vertices, tree.before])


def _split(middles: NDArray[np.float64]) -> NDArray[np.int32]:
    """Triangles in leaf order: each group is halved at the median along the longest side of its box."""
    leaf = int(LEAF)
    leaves = 1
    while leaves * leaf < len(middles):
        leaves *= 2
    # Filled up by repeating triangles: to meet one twice is to meet it once.
    order = np.arange(leaves * leaf) % len(middles)
    groups = order[None, :]
    while groups.shape[1] > leaf:
        at = middles[groups]
        axis = np.argmax(at.max(axis=1) - at.min(axis=1), axis=1)
        key = np.take_along_axis(at, axis[:, None, None], axis=2)[:, :, 0]
        groups = np.take_along_axis(groups, np.argsort(key, axis=1, kind="stable"), axis=1)
        groups = groups.reshape(2 * len(groups), -1)
    return groups.ravel().astype(np.int32)
