"""What is seen and done on the bleeding organ besides blood: openings of vessels, an incision, a gauze.

An incision stops blood or drains it: a path of edges of the mesh (Kvick §6.2.5). All is drawn on the organ: dark holes
with a pale rim, a dark line, cloth.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.blood.film.placing import points_of
from viscera.blood.film.surface import set_edges
from viscera.blood.film.walk import BARRIER, DRAIN, OPEN
from viscera.blood.wounds.wounds import Wounds
from viscera.geometry.mesh import TriangleMesh, weld
from viscera.world.organ import Organ
from viscera.world.system import Moment, System
from viscera.world.systems.gauze import Gauze
from viscera.world.systems.ink import Ink

INCISION_SPAN = (0.25, 0.75)
"""Where an incision begins and ends, as parts of the organ's width."""
BORDER = 0.5e-3
"""Half the width of an inked line [m]."""
HOLE_RADIUS, RIM_RADIUS, SOFT = 0.55e-3, 1.0e-3, 0.3e-3
"""Of a vessel's opening, of the pale wall around it, and how soft their borders are [m]. Larger than the openings
themselves, which are nicks of a tenth of a millimetre that nobody would see."""
HOLE_COLOUR, RIM_COLOUR = (0.10, 0.01, 0.015), (0.73, 0.55, 0.49)
INCISION_COLOUR = (0.16, 0.02, 0.02)
"""sRGB; tuned for appearance."""


class Dressing:
    """Draws the openings, which blood hides and a burn whitens, an incision across the middle, and the gauze over
    both."""

    def __init__(
        self, organ: Organ, wounds: Wounds, gauze: Gauze, ink: Ink, across: tuple[Any, Any] | None = None
    ) -> None:
        """`across` are two places of the table between which there is room for the incision [m]; without them it goes
        across the middle."""
        skin = organ.need_skin()
        self._wounds, self._gauze, self._ink, self._shape = wounds, gauze, ink, (skin.height, skin.width, 4)
        at, up = skin.image(skin.position), skin.image(skin.faces_up())
        self.edges = incision_edges(skin.mesh, across)
        self._cut = up & (_distance(at, skin.mesh.vertices[self.edges]) < BORDER)
        self._away = [_from(at, skin.mesh, wounds, number) for number in range(wounds.count)]
        self._incision = 0
        self._open: list[bool] = []
        gauze.redraw = self.draw

    def set_incision(self, kind: int) -> None:
        """0 none, 1 a barrier, 2 a drain."""
        self._incision = kind
        set_edges(self._wounds.surface, 0, self.edges, (int(OPEN), int(BARRIER), int(DRAIN))[kind])
        self.draw()

    def draw(self) -> None:
        """Everything anew."""
        picture = np.zeros(self._shape)
        self._open = self._opened()
        for away, is_open in zip(self._away, self._open, strict=True):
            if is_open:
                _cover(picture, away, RIM_RADIUS, RIM_COLOUR)
                _cover(picture, away, HOLE_RADIUS, HOLE_COLOUR)
        if self._incision:
            picture[self._cut] = (*INCISION_COLOUR, 1.0)
        self._gauze.cover(picture)
        self._ink.draw(picture)
        self._gauze.tint()

    def _opened(self) -> list[bool]:
        """Which vessels have an opening to be seen: a duct that is tight has none."""
        return [vessel.systolic > 0.0 for vessel in self._wounds.vessels[: len(self._away)]]

    def system(self) -> System:
        """Draws again when an opening appears; all else follows from the parameters."""

        def frame(now: Moment) -> None:
            if self._opened() != self._open:
                self.draw()

        return System(name="dressing", frame=frame, load=lambda saved: self.draw(), holds=self)


def _from(at: NDArray[Any], mesh: TriangleMesh, wounds: Wounds, number: int) -> NDArray[np.float64]:
    """Of texels to a wound, at rest [m]."""
    view = wounds.view
    corner = mesh.triangles[view.face.numpy()[number]][None]
    place = points_of(mesh.vertices, corner, view.barycentric.numpy()[number][None])
    return np.linalg.norm(at - place[0], axis=-1)


def _cover(ink: NDArray[np.float64], away: NDArray[np.float64], radius: float, colour: tuple[float, ...]) -> None:
    """A disc with a border one texel soft, over what is there."""
    share = np.clip((radius - away) / SOFT + 0.5, 0.0, 1.0)[..., None]
    ink *= 1.0 - share
    ink += share * np.array((*colour, 1.0))


def incision_edges(mesh: TriangleMesh, across: tuple[Any, Any] | None = None) -> NDArray[np.int64]:
    """Edges of the shortest way over the upper side, across the middle of a mesh or between two places [m]; shape
    (edges, 2)."""
    low, high = mesh.bounds
    welded = weld(mesh.vertices)
    upper = mesh.triangles[mesh.face_vectors[:, 2] > 0.0]
    pairs = np.unique(np.sort(welded[upper][:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    corners = np.unique(pairs)
    middle = 0.5 * (low[0] + high[0])
    first, last = across if across is not None else (np.array([middle, low[1]]), np.array([middle, high[1]]))
    ends = [
        int(corners[np.argmin(np.linalg.norm(mesh.vertices[corners, :2] - place, axis=1))])
        for place in (first + share * (last - first) for share in INCISION_SPAN)
    ]
    return np.array(_shortest(mesh.vertices, pairs, *ends), dtype=np.int64).reshape(-1, 2)


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
    if len(edges) == 0:
        return distance
    near = (at >= edges.min(axis=(0, 1)) - BORDER).all(axis=-1) & (at <= edges.max(axis=(0, 1)) + BORDER).all(axis=-1)
    points = at[near].astype(np.float64)
    best = np.full(len(points), np.inf)
    for start, end in edges:
        way = end - start
        along = np.clip((points - start) @ way / (way @ way), 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(points - start - along[:, None] * way, axis=1))
    distance[near] = best
    return distance
