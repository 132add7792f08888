"""What a surgeon puts onto or into a bleeding organ: a gauze that keeps blood off, an incision that stops or drains it.

Both are the film's own extensions (Kvick §6.2.5 and §6.2.6): a gauze is an obstacle per texel, an incision a path of
edges of the mesh. They change while the world runs, and are drawn on the organ in ink.
"""

# Warp's stubs know neither its own dtypes nor the fields of a struct.
# pyright: reportArgumentType=false

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.blood import film_image
from viscera.blood.film_surface import MASKED, set_edges, set_obstacles
from viscera.blood.surface_walk import BARRIER, DRAIN, OPEN
from viscera.geometry.mesh import TriangleMesh, weld
from viscera.skin import Skin
from viscera.view import Measure, Particles, Texture
from viscera.world import World
from viscera.world.bleeding import Bleeding

GAUZE_SIZE = 14.0e-3
"""Side of the gauze [m]."""
SOAKED = 1.1
"""Blood value that flows over a gauze which soaks: a little more than a film at rest."""
SOAKED_HEIGHT = 0.15e-3
"""What a soaking gauze sticks out of the blood, as drawn [m]."""
INCISION_SPAN = (0.25, 0.75)
"""Where an incision begins and ends, as parts of the organ's width."""
BORDER = 0.5e-3
"""Half the width of an inked line [m]."""

NONE, KEEPS_OUT, SOAKS = 0, 1, 2
"""Of a gauze."""


class Dressing:
    """A gauze around `place` (x, y [m]) and an incision across the middle. A system of a world: it draws the ink."""

    name = "dressing"

    def __init__(self, blood: Bleeding, skin: Skin, place: NDArray[np.float64]) -> None:
        self._blood, self._skin = blood, skin
        at, up = skin.image(skin.position), skin.image(skin.faces_up())
        off = np.abs(at[..., :2] - place).max(axis=-1)
        self._under = up & (off < 0.5 * GAUZE_SIZE)
        self._rim = up & (np.abs(off - 0.5 * GAUZE_SIZE) < BORDER)
        self.edges = incision_edges(skin.mesh)
        self._cut = up & (_distance(at, skin.mesh.vertices[self.edges]) < BORDER)
        self._gauze = self._incision = 0
        self._ink = wp.zeros((skin.height, skin.width), dtype=wp.vec4ub, device=skin.device.warp)
        self._texture = Texture(f"{blood.organ}.ink", blood.organ, "ink", skin.width, skin.height)

    def set_gauze(self, kind: int) -> None:
        """`NONE`, `KEEPS_OUT` or `SOAKS`."""
        self._gauze = kind
        over = {NONE: (0.0, 0.0), KEEPS_OUT: (MASKED, np.inf), SOAKS: (SOAKED, SOAKED_HEIGHT)}[kind]
        set_obstacles(self._blood.surface, 0, np.where(self._under, over[0], 0.0))
        film_image.set_obstacles(self._blood.image, np.where(self._under, over[1], 0.0))
        self._draw()

    def set_incision(self, kind: int) -> None:
        """0 none, 1 a barrier, 2 a drain."""
        self._incision = kind
        set_edges(self._blood.surface, 0, self.edges, (int(OPEN), int(BARRIER), int(DRAIN))[kind])
        self._draw()

    def _draw(self) -> None:
        ink = np.zeros((self._skin.height, self._skin.width, 4), dtype=np.uint8)
        ink[(self._rim & (self._gauze > 0)) | (self._cut & (self._incision > 0)), 3] = 255
        self._ink.assign(ink)

    # Nothing moves and nothing is kept: all follows from two parameters.

    def frame(self, world: World) -> None: ...

    def arrays(self) -> dict[str, Any]:
        return {}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None: ...

    def textures(self) -> list[tuple[Texture, Any]]:
        return [(self._texture, self._ink)]

    def particles(self) -> list[tuple[Particles, Any, int]]:
        return []

    def measures(self) -> list[tuple[Measure, float]]:
        return []


def incision_edges(mesh: TriangleMesh) -> NDArray[np.int64]:
    """Edges of the shortest way over the upper side, across the middle of a mesh; shape (edges, 2)."""
    low, high = mesh.bounds
    welded = weld(mesh.vertices)
    upper = mesh.triangles[mesh.face_vectors[:, 2] > 0.0]
    pairs = np.unique(np.sort(welded[upper][:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    corners = np.unique(pairs)
    middle = 0.5 * (low[0] + high[0])
    ends = [
        int(corners[np.argmin(np.linalg.norm(mesh.vertices[corners, :2] - (middle, y), axis=1))])
        for y in low[1] + np.array(INCISION_SPAN) * (high[1] - low[1])
    ]
    return np.array(_shortest(mesh.vertices, pairs, *ends))


def _shortest(points: NDArray[np.float64], pairs: NDArray[Any], start: int, end: int) -> list[tuple[int, int]]:
    """Dijkstra's way along edges."""
    around: dict[int, list[tuple[int, float]]] = {}
    lengths = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    for (a, b), length in zip(pairs.tolist(), lengths.tolist(), strict=True):
        around.setdefault(a, []).append((b, length))
        around.setdefault(b, []).append((a, length))
    came: dict[int, int] = {}
    heap: list[tuple[float, int, int]] = [(0.0, start, start)]
    while heap:
        far, here, before = heapq.heappop(heap)
        if here in came:
            continue
        came[here] = before
        if here == end:
            break
        for there, length in around[here]:
            heapq.heappush(heap, (far + length, there, here))
    way: list[tuple[int, int]] = []
    while end != start and end in came:
        way.append((came[end], end))
        end = came[end]
    return way


def _distance(at: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of texels to the nearest of some edges; infinite far from all of them."""
    distance = np.full(at.shape[:2], np.inf)
    near = (at >= edges.min(axis=(0, 1)) - BORDER).all(axis=-1) & (at <= edges.max(axis=(0, 1)) + BORDER).all(axis=-1)
    points = at[near].astype(np.float64)
    best = np.full(len(points), np.inf)
    for start, end in edges:
        way = end - start
        along = np.clip((points - start) @ way / (way @ way), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(points - start - along[:, None] * way, axis=1))
    distance[near] = best
    return distance
