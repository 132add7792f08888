"""The middle line of a hollow organ that came as a mesh: where waves run along it, and what its wall hangs on.

Nodes of a grid inside the mesh know how far the wall is, d. From one end the farthest node along the lumen is the other
end (Dijkstra 1959); between both the way of least

    ∫ ds / d²

keeps to the middle (after Bitter, Kaufman and Sato 2001, doi:10.1109/2945.942690: a penalty for being near the wall).
It is smoothed over a radius, and its spline through some control points is the centreline.
"""

from __future__ import annotations

import heapq
import math
from itertools import product

import numpy as np
from numpy.typing import NDArray

from viscera.anatomy.along import Attached, attach
from viscera.anatomy.colon import Centreline, centreline
from viscera.device import Device
from viscera.geometry.distance import distance_field
from viscera.geometry.mesh import FloatArray, TriangleMesh

NODES = 10_000
"""About so many lie inside."""
REACHED = 0.9
"""Share of them that one lumen must reach from its end; else some neck is finer than the grid."""
APART = 2.0
"""Control points are so many radii apart."""
FEWEST = 6
SAMPLES = 400
JUMP = 0.03
"""Two ends of an edge that hang on places of the line farther apart than this, besides their own distance, are torn
apart by a wave [m]."""
TORN = 0.01
"""Share of the edges that may be: at the ends, and in a fold or two."""


def find_midline(mesh: TriangleMesh, start: FloatArray, device: Device) -> tuple[FloatArray, Centreline] | None:
    """Control points (x, y, z and radius [m] per row) and centreline of the lumen, from near `start` to its other end;
    None where its wall hangs on no single line: a lumen that branches, or a neck that is finer than the grid."""
    spacing = (mesh.volume / NODES) ** (1.0 / 3.0)
    field = distance_field(mesh, spacing, device=device)
    distance = -field.values.numpy().astype(np.float64)
    inside = np.argwhere(distance > 0.0)
    number = np.full(distance.shape, -1, dtype=np.int64)
    number[tuple(inside.T)] = np.arange(len(inside))
    places = np.asarray(field.origin) + spacing * inside
    room = distance[tuple(inside.T)]
    links = _links(inside, number)
    first = int((np.linalg.norm(places - start, axis=1) - room).argmin())
    away, _ = _walk(links, places, np.ones(len(room)), first)
    if np.isfinite(away).mean() < REACHED:
        return None
    last = int(np.where(np.isfinite(away), away, -1.0).argmax())
    _, before = _walk(links, places, 1.0 / np.maximum(room, 0.5 * spacing) ** 2, first)
    way = [last]
    while way[-1] != first:
        way.append(int(before[way[-1]]))
    control = _control(places[way[::-1]], room[way[::-1]])
    if control is None:
        return None
    line = centreline(control, SAMPLES)
    return (control, line) if torn(mesh, attach(mesh.vertices, line)) <= TORN else None


def torn(mesh: TriangleMesh, attached: Attached) -> float:
    """Share of the mesh's edges whose ends hang on places far apart."""
    a, b = np.concatenate([mesh.triangles[:, [0, 1]], mesh.triangles[:, [1, 2]], mesh.triangles[:, [2, 0]]]).T
    long = np.linalg.norm(mesh.vertices[a] - mesh.vertices[b], axis=1)
    return float((np.abs(attached.lengths[a] - attached.lengths[b]) > long + JUMP).mean())


def _links(inside: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.int64]:
    """The 26 neighbours of each node, −1 where there is none, (n, 26)."""
    padded = np.pad(number, 1, constant_values=-1)
    ways = [way for way in product((-1, 0, 1), repeat=3) if way != (0, 0, 0)]
    return np.stack([padded[tuple((inside + 1 + np.array(way)).T)] for way in ways], axis=1)


def _walk(
    links: NDArray[np.int64], places: FloatArray, weight: FloatArray, first: int
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Least sum of length times weight from `first` to each node, infinite where there is no way, and the node
    before it."""
    cost, before = np.full(len(places), math.inf), np.full(len(places), -1)
    cost[first] = 0.0
    queue, done = [(0.0, first)], np.zeros(len(places), dtype=np.bool_)
    while queue:
        so_far, node = heapq.heappop(queue)
        if done[node]:
            continue
        done[node] = True
        near = links[node]
        near = near[(near >= 0) & ~done[near]]
        steps = np.linalg.norm(places[near] - places[node], axis=1) * 0.5 * (weight[near] + weight[node])
        better = so_far + steps < cost[near]
        cost[near[better]], before[near[better]] = (so_far + steps)[better], node
        for total, one in zip(cost[near[better]].tolist(), near[better].tolist(), strict=True):
            heapq.heappush(queue, (total, one))
    return cost, before


def _control(way: FloatArray, room: FloatArray) -> FloatArray | None:
    """Control points along a way: smoothed over a radius, `APART` radii apart; None for one that is too short."""
    run = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1))])
    radius = float(room.mean())
    count = max(FEWEST, round(run[-1] / (APART * radius)))
    if run[-1] < 2.0 * radius:
        return None
    at = np.linspace(0.0, run[-1], count)
    weight = np.exp(-0.5 * ((at[:, None] - run[None]) / radius) ** 2)
    smooth = weight @ np.column_stack([way, room]) / weight.sum(axis=1)[:, None]
    smooth[0, :3], smooth[-1, :3] = way[0], way[-1]
    return smooth
