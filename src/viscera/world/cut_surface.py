"""What is drawn of an organ that can be cut: arrays with room for what cuts add, and texture on the outside of it.

The outside keeps its triangles and their places in the texture: a corner that a cut moves takes the texture's own
slope along, so that nothing slides. Cut faces are drawn wet. Where the texture has room for them (skin/spare.py), each
keeps a square of texels of its own, in which film, heat and burns live as they do outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.geometry.linked_cells import Lattice
from viscera.geometry.linked_surface import LinkedSurface, Shape
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.vectors import cross
from viscera.skin import Skin
from viscera.tissue.cutting import unpack_crossings
from viscera.tissue.lattice import Tissue
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.view import Surface
from viscera.world.system import Show

INSIDE = -3.0
"""Both texture coordinates of a cut face's corners, where it has no texels."""
SHIFT = -2.0
"""Added to the texture coordinates of a cut face's corners where it has: so the page knows that it is one."""

OUTSIDE_TRIANGLES = 3
"""Room for triangles of the uncut surface, over that for its points, where it is asked for."""

Follow = Callable[[NDArray[np.int32]], None]


class CutSurface:
    """Of one organ."""

    def __init__(self, mesh: TriangleMesh, tissue: Tissue, room: int, outside: int = 0) -> None:
        """`room`: links that may be cut. `outside`: points of the uncut surface that there is room for, where bodies
        that differ are to have arrays of one size."""
        self._tissue, self._source, self._room = tissue, mesh, room
        nodes = tissue.params.nodes
        self._index = NodeIndex(nodes)
        self._there = np.stack([self._index.find(nodes + np.array(step, dtype=np.int32)) >= 0 for step in DIRECTIONS])
        self._restart()
        shape = self.linked.shape
        self.mesh = TriangleMesh(shape.rest.astype(np.float64), shape.triangles, mesh.name)
        """The outside, uncut."""
        spare = max(outside - len(shape.rest), 0)
        # A closed surface has about twice as many triangles as points.
        self.points, self.triangles = self.linked.most_points + spare, self.linked.most_triangles
        if outside:
            if spare == 0:
                raise InputError(
                    f"{mesh.name} has {len(shape.rest)} points, room is for {outside}.", "Give `outside` more room."
                )
            self.triangles += max(OUTSIDE_TRIANGLES * outside - len(shape.triangles), 0)
        self.order = np.full(room, -1, dtype=np.int64)
        """Links in the order in which they were cut, -1 behind the last: whose face is in which texels."""
        self.version = 1
        self._first = shape
        self._uv: NDArray[np.float64] | None = None
        self._slope = np.zeros((0, 2, 3))
        self._skin: Skin | None = None
        self._inner_uv: NDArray[np.float64] | None = None
        self.followers: list[Follow] = []
        """What is told the corners of all triangles of the skin, whenever they change; points at one place have one
        number there."""
        self._shown = {
            "triangles": np.zeros((self.triangles, 3), dtype=np.int32),
            "rest": np.zeros((self.points, 3), dtype=np.float32),
            "uv": np.full((self.triangles, 6), INSIDE, dtype=np.float32),
        }
        self._draw()

    def _restart(self) -> None:
        params = self._tissue.params
        lattice = Lattice(params.nodes, DIRECTIONS, self._there)
        self.linked = LinkedSurface(lattice, self._source, np.array(params.origin), params.spacing, room=self._room)
        self._drawn = np.zeros((3, len(params.nodes)), dtype=np.bool_)

    # --- following a cut ---

    def follow(
        self, springs: NDArray[np.bool_], links: NDArray[np.int64], only: NDArray[np.int64] | None = None
    ) -> None:
        """Now these springs are cut, shape (13, masses), and axis springs there (`CutShadow.links`)."""
        new = (links != 0) & ~self._drawn
        self._drawn |= new
        axis, node = np.nonzero(new)
        share, normal = unpack_crossings(links[new])
        self.linked.cut(self._there & ~springs, axis, node, share, normal, only)
        self.order[: len(self.linked.links)] = self.linked.links
        self.version += 1
        self._draw()

    def redraw(self, springs: NDArray[np.bool_], links: NDArray[np.int64], version: int) -> None:
        """As if from the start: after a state was loaded, `order` included."""
        order = self.order[self.order >= 0].copy()
        self._restart()
        self.version = version - 1
        self.follow(springs, links, order)
        self.linked.arrange(order)
        self.order[: len(order)] = order
        self._draw()

    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32]]:
        """Rest places [m], lattice places and weights of every point, those included that are not there yet."""
        shape = self.linked.shape
        rest = np.zeros((self.points, 3), dtype=np.float32)
        places = np.zeros((self.points, 8), dtype=np.int32)
        weights = np.zeros((self.points, 8), dtype=np.float32)
        count = len(shape.rest)
        rest[:count], weights[:count] = shape.rest, shape.weights
        places[:count] = self._tissue.layout.slot_of_node[shape.nodes]
        return rest, places, weights

    # --- texture ---

    @property
    def quads(self) -> int:
        """Of cut faces, at most."""
        return 2 * self._room

    @property
    def has_texels_inside(self) -> bool:
        return self._inner_uv is not None

    def paint(self, skin: Skin) -> None:
        """The outside has this skin, made of `mesh`, with or without room for cut faces."""
        outside, corners = len(self._first.triangles), skin.atlas.corners.astype(np.float64)
        self._skin, self._uv = skin, corners[:outside]
        self._inner_uv = corners[outside:] if len(corners) > outside else None
        places = self._first.rest[self._first.triangles].astype(np.float64)
        edges = np.stack([places[:, 1] - places[:, 0], places[:, 2] - places[:, 0]], axis=2)
        along = np.stack([self._uv[:, 1] - self._uv[:, 0], self._uv[:, 2] - self._uv[:, 0]], axis=2)
        self._slope = np.einsum("tij,tjk->tik", along, np.linalg.pinv(edges, rcond=1e-6))
        self._draw()

    def follow_with(self, follow: Follow) -> None:
        """From now on this is told too, and now."""
        self.followers.append(follow)
        follow(self._skin_triangles(welded=True))

    def _draw(self) -> None:
        shape, shown = self.linked.shape, self._shown
        shown["triangles"][: len(shape.triangles)] = shape.triangles
        shown["rest"][: len(shape.rest)] = shape.rest
        outside = len(shape.triangles) - shape.inner
        if self._uv is not None:
            shown["uv"][:outside] = self._places_in_texture(shape, outside).reshape(-1, 6)
        inner = INSIDE if self._inner_uv is None else self._inner_uv[shape.slot].reshape(-1, 6) + SHIFT
        shown["uv"][outside : len(shape.triangles)] = inner
        if self._skin is not None:
            self._skin.set_triangles(self._skin_triangles(welded=False))

    def tell(self) -> None:
        """All that follows, once the vertices are where they belong."""
        triangles = self._skin_triangles(welded=True)
        for follow in self.followers:
            follow(triangles)

    def _skin_triangles(self, *, welded: bool) -> NDArray[np.int32]:
        """Of the outside, then of cut faces in their slots, where the skin has room for them: all of one corner where
        nothing is cut yet."""
        shape = self.linked.shape
        triangles = shape.triangles
        if welded:
            triangles = self.linked.first_of_one()[triangles]
        outside = len(triangles) - shape.inner
        if self._inner_uv is None:
            return triangles[:outside]
        found = np.zeros((outside + len(self._inner_uv), 3), dtype=np.int32)
        found[:outside] = triangles[:outside]
        found[outside + shape.slot] = triangles[outside:]
        return found

    def masses_behind(self) -> NDArray[np.int32]:
        """Lattice places of the masses behind the quads of cut faces, two for each link in the order of `order`."""
        nodes = self._tissue.params.nodes
        axis, low = np.divmod(self.linked.links, len(nodes))
        high = self._index.find(nodes[low] + np.eye(3, dtype=np.int32)[axis])
        return self._tissue.layout.slot_of_node[np.stack([low, high], axis=1).ravel()].astype(np.int32)

    def inner_faces(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Of the triangles of cut faces in the order in which they were cut: their numbers in the skin, middles in the
        tissue at rest [m], and unit normals, zero where one has no area."""
        shape = self.linked.shape
        outside = len(shape.triangles) - shape.inner
        order = np.argsort(shape.slot)
        corners = shape.rest[shape.triangles[outside:][order]].astype(np.float64)
        normal = cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normal, axis=1, keepdims=True)
        return outside + shape.slot[order], corners.mean(axis=1), normal / np.maximum(length, 1e-30)

    def inner_face(self, point: NDArray[np.float64], facing: NDArray[np.float64]) -> int | None:
        """The skin's triangle of a cut face nearest to a point of the tissue at rest [m], of those that look the way of
        `facing`; None where there is none."""
        faces, middle, normal = self.inner_faces()
        good = np.flatnonzero(normal @ facing > 0.0)
        if self._inner_uv is None or len(good) == 0:
            return None
        return int(faces[good[np.argmin(np.linalg.norm(middle[good] - point, axis=1))]])

    def _places_in_texture(self, shape: Shape, outside: int) -> NDArray[np.float64]:
        """A corner that was moved keeps the texture that is there."""
        assert self._uv is not None
        moved = shape.rest[shape.triangles[:outside]] - self._first.rest[self._first.triangles]
        some = moved.any(axis=(1, 2))
        found = self._uv.copy()
        found[some] += np.einsum("tik,tck->tci", self._slope[some], moved[some].astype(np.float64))
        return found

    # --- what is seen ---

    def show(self, name: str, look: str, vertices: Any) -> Show:
        uv = None if self._uv is None else self._uv.astype(np.float32)
        surface = Surface(
            name, look, np.asarray(self.mesh.triangles, dtype=np.int32), name, self.points,
            rest=self._first.rest, uv=uv, triangle_capacity=self.triangles,
        )  # fmt: skip
        arrays = {name: vertices} | {f"{name}/{part}": array for part, array in self._shown.items()}

        def counts() -> dict[str, int]:
            points, triangles = len(self.linked.shape.rest), len(self.linked.shape.triangles)
            return {name: points, f"{name}/rest": points, f"{name}/triangles": triangles, f"{name}/uv": triangles}

        return Show(surface, arrays, counts, lambda: self.version)
