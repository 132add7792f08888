"""What is drawn of an organ that can be cut: arrays with room for what cuts add, and texture on the outside of it.

The outside keeps its triangles and their places in the texture: a corner that a cut moves takes the texture's own
slope along, so that nothing slides. Cut faces lie beside the texture, at `INSIDE`: the page draws them wet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_cells import Lattice
from viscera.geometry.linked_surface import LinkedSurface, Shape
from viscera.geometry.mesh import TriangleMesh
from viscera.skin import Skin
from viscera.tissue.cutting import unpack_crossings
from viscera.tissue.lattice import Tissue
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.view import Surface
from viscera.world.system import Show

INSIDE = -1.0
"""Both texture coordinates of a cut face's corners."""


class CutSurface:
    """Of one organ."""

    def __init__(self, mesh: TriangleMesh, tissue: Tissue, room: int) -> None:
        self._tissue, self._source, self._room = tissue, mesh, room
        nodes = tissue.params.nodes
        index = NodeIndex(nodes)
        self._there = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) >= 0 for step in DIRECTIONS])
        self._restart()
        shape = self.linked.shape
        self.mesh = TriangleMesh(shape.rest.astype(np.float64), shape.triangles, mesh.name)
        """The outside, uncut."""
        self.points, self.triangles = self.linked.most_points, self.linked.most_triangles
        self.version = 1
        self._first = shape
        self._uv: NDArray[np.float64] | None = None
        self._slope = np.zeros((0, 2, 3))
        self._skin: Skin | None = None
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

    def follow(self, springs: NDArray[np.bool_], links: NDArray[np.int64]) -> None:
        """Now these springs are cut, shape (13, masses), and axis springs there (`CutShadow.links`)."""
        new = (links != 0) & ~self._drawn
        self._drawn |= new
        axis, node = np.nonzero(new)
        share, normal = unpack_crossings(links[new])
        self.linked.cut(self._there & ~springs, axis, node, share, normal)
        self.version += 1
        self._draw()

    def redraw(self, springs: NDArray[np.bool_], links: NDArray[np.int64], version: int) -> None:
        """As if from the start: after a state was loaded."""
        self._restart()
        self.version = version - 1
        self.follow(springs, links)

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

    def paint(self, skin: Skin) -> None:
        """The outside has this skin, made of `mesh`."""
        self._skin = skin
        self._uv = skin.atlas.corners.astype(np.float64)
        corners = self._first.rest[self._first.triangles].astype(np.float64)
        edges = np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=2)
        along = np.stack([self._uv[:, 1] - self._uv[:, 0], self._uv[:, 2] - self._uv[:, 0]], axis=2)
        self._slope = np.einsum("tij,tjk->tik", along, np.linalg.pinv(edges, rcond=1e-6))
        self._draw()

    def _draw(self) -> None:
        shape, shown = self.linked.shape, self._shown
        shown["triangles"][: len(shape.triangles)] = shape.triangles
        shown["rest"][: len(shape.rest)] = shape.rest
        outside = len(shape.triangles) - shape.inner
        if self._uv is not None:
            shown["uv"][:outside] = self._places_in_texture(shape, outside).reshape(-1, 6)
        shown["uv"][outside : len(shape.triangles)] = INSIDE
        if self._skin is not None:
            self._skin.triangles.assign(shape.triangles[:outside])
            self._skin.forget()

    def _places_in_texture(self, shape: Shape, outside: int) -> NDArray[np.float64]:
        """A corner that was moved keeps the texture that is there."""
        assert self._uv is not None
        before = self._first.rest[self._first.triangles]
        moved = shape.rest[shape.triangles[:outside]] - before
        return self._uv + np.einsum("tik,tck->tci", self._slope, moved.astype(np.float64))

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
