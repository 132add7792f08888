"""What a surgeon puts onto or into a bleeding organ: a gauze that keeps blood off, an incision that stops or drains it.

Both are the film's own extensions (Kvick §6.2.5 and §6.2.6): a gauze is an obstacle per texel, an incision a path of
edges of the mesh. They change while the world runs, and are drawn on the organ: cloth that reddens, a dark line.
"""

# Warp's stubs know neither its own dtypes nor the fields of a struct.
# pyright: reportArgumentType=false

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.blood import gauze
from viscera.blood.film.placing import points_of
from viscera.blood.film.surface import MASKED, set_edges, set_obstacles
from viscera.blood.film.walk import BARRIER, DRAIN, OPEN
from viscera.blood.picture import image
from viscera.device import Stage
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
THREAD = 1.3e-3
"""From one thread of the gauze to the next [m]; coarser than cloth, so that four texels show it."""
HOLE_RADIUS, RIM_RADIUS, SOFT = 0.55e-3, 1.0e-3, 0.3e-3
"""Of a vessel's opening, of the pale wall around it, and how soft their borders are [m]. Larger than the openings
themselves, which are nicks of a tenth of a millimetre that nobody would see."""
HOLE_COLOUR, RIM_COLOUR = (0.10, 0.01, 0.015), (0.73, 0.55, 0.49)
INCISION_COLOUR, HEM_COLOUR = (0.16, 0.02, 0.02), (0.62, 0.58, 0.53)
"""sRGB; tuned for appearance."""

NONE, KEEPS_OUT, SOAKS = 0, 1, 2
"""Of a gauze."""


class Dressing:
    """A gauze around `place` (x, y [m]) and an incision across the middle. A system of a world: it draws both on the
    skin, and the openings of the vessels, which blood hides and a burn whitens."""

    name = "dressing"

    def __init__(self, blood: Bleeding, skin: Skin, place: NDArray[np.float64]) -> None:
        self._blood, self._skin = blood, skin
        at, up = skin.image(skin.position), skin.image(skin.faces_up())
        off = np.abs(at[..., :2] - place).max(axis=-1)
        self._under = up & (off < 0.5 * GAUZE_SIZE)
        self._rim = up & (np.abs(off - 0.5 * GAUZE_SIZE) < BORDER)
        self.edges = incision_edges(skin.mesh)
        self._cut = up & (_distance(at, skin.mesh.vertices[self.edges]) < BORDER)
        self._away = [_from(at, skin.mesh, blood, number) for number in range(blood.wounds.count)]
        self._gauze = self._incision = 0
        self._open: list[bool] = []
        device = skin.device.warp
        self._ink = wp.zeros((skin.height, skin.width), dtype=wp.vec4ub, device=device)
        self._texture = Texture(f"{blood.organ}.ink", blood.organ, "ink", skin.width, skin.height)
        self._square = gauze.Square()
        self._square.low = wp.vec2(*(place - 0.5 * GAUZE_SIZE).tolist())
        self._square.side = GAUZE_SIZE
        self._square.blood = blood.film.params.fluid("blood")
        self._volume = wp.zeros((gauze.CELLS, gauze.CELLS), dtype=wp.int64, device=device)
        self._stain = wp.zeros((gauze.CELLS, gauze.CELLS), dtype=wp.float32, device=device)
        in_cells = (at[self._under][:, :2] - place + 0.5 * GAUZE_SIZE) * (gauze.CELLS / GAUZE_SIZE)
        self._texel = wp.array(np.flatnonzero(self._under), dtype=wp.int32, device=device)
        self._place = wp.array(in_cells, dtype=wp.vec2, device=device)
        self._white = wp.array(_weave(at[self._under][:, :2] - place), dtype=wp.vec3, device=device)
        self._soaks = skin.device.record(self._record_soak, work=len(self._texel))
        self._tints = skin.device.record(self._record_tint, work=len(self._texel))

    def set_gauze(self, kind: int) -> None:
        """`NONE`, `KEEPS_OUT` or `SOAKS`; another one is a fresh one."""
        if kind != self._gauze:
            self._stain.zero_()
        self._gauze = kind
        over = {NONE: (0.0, 0.0), KEEPS_OUT: (MASKED, np.inf), SOAKS: (SOAKED, SOAKED_HEIGHT)}[kind]
        set_obstacles(self._blood.surface, 0, np.where(self._under, over[0], 0.0))
        image.set_obstacles(self._blood.image, np.where(self._under, over[1], 0.0))
        self._draw()

    def set_incision(self, kind: int) -> None:
        """0 none, 1 a barrier, 2 a drain."""
        self._incision = kind
        set_edges(self._blood.surface, 0, self.edges, (int(OPEN), int(BARRIER), int(DRAIN))[kind])
        self._draw()

    def _draw(self) -> None:
        """Colours times alpha, then alpha; the gauze lies over the rest."""
        ink = np.zeros((self._skin.height, self._skin.width, 4))
        self._open = self._opened()
        for away, is_open in zip(self._away, self._open, strict=True):
            if is_open:
                _cover(ink, away, RIM_RADIUS, RIM_COLOUR)
                _cover(ink, away, HOLE_RADIUS, HOLE_COLOUR)
        if self._incision:
            ink[self._cut] = (*INCISION_COLOUR, 1.0)
        if self._gauze:
            ink[self._rim] = (*HEM_COLOUR, 1.0)
            ink[self._under] = (1.0, 1.0, 1.0, 1.0)
        self._ink.assign(np.rint(255.0 * ink).astype(np.uint8))
        if self._gauze:
            self._tints.run()

    def _opened(self) -> list[bool]:
        """Which vessels have an opening to be seen: a duct that is tight has none."""
        return [vessel.systolic > 0.0 for vessel in self._blood.wounds.vessels[: len(self._away)]]

    def _record_soak(self, stage: Stage) -> None:
        film, args = self._blood.drops.film_view, [self._square, self._blood.drops.film_view, self._volume]
        stage.once(lambda: wp.launch(gauze.collect, dim=film.capacity, inputs=args, device=stage.device.warp))
        stage.launch(gauze.soak, gauze.CELLS**2, [self._square, self._volume, self._stain])

    def _record_tint(self, stage: Stage) -> None:
        flat = self._ink.reshape((self._skin.height * self._skin.width,))
        stage.launch(gauze.tint, len(self._texel), [self._texel, self._place, self._white, self._stain, flat])

    def frame(self, world: World) -> None:
        if self._opened() != self._open:
            self._draw()
        if self._gauze:
            self._soaks.run()
            self._tints.run()

    # All else follows from the parameters.

    def arrays(self) -> dict[str, Any]:
        return {"stain": self._stain}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._stain.assign(arrays["stain"])
        self._draw()

    def textures(self) -> list[tuple[Texture, Any]]:
        return [(self._texture, self._ink)]

    def particles(self) -> list[tuple[Particles, Any, int]]:
        return []

    def measures(self) -> list[tuple[Measure, float]]:
        return []


def _from(at: NDArray[Any], mesh: TriangleMesh, blood: Bleeding, number: int) -> NDArray[np.float64]:
    """Of texels to a wound, at rest [m]."""
    view = blood.wounds.view
    corner = mesh.triangles[view.face.numpy()[number]][None]
    place = points_of(mesh.vertices, corner, view.barycentric.numpy()[number][None])
    return np.linalg.norm(at - place[0], axis=-1)


def _cover(ink: NDArray[np.float64], away: NDArray[np.float64], radius: float, colour: tuple[float, ...]) -> None:
    """A disc with a border one texel soft, over what is there."""
    share = np.clip((radius - away) / SOFT + 0.5, 0.0, 1.0)[..., None]
    ink *= 1.0 - share
    ink += share * np.array((*colour, 1.0))


def _weave(place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Dry gauze, sRGB from 0 to 1: threads one way and the other, and gaps between them."""
    x, y = (2.0 * np.pi / THREAD * place).T
    over = np.maximum(np.cos(x) * np.where(np.cos(0.5 * y) > 0.0, 1.0, 0.55), np.cos(y))
    return np.clip(0.80 + 0.17 * over, 0.0, 1.0)[:, None] * np.array([1.0, 0.99, 0.96])


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
