"""The closed surface of a body that is being cut, at the resolution of its lattice.

It is the dual of the lattice: every link along an axis that ends outside the body, or that is cut, gives a quad
across it (two where it is cut, one for either side); a quad's corners lie in the four cells around the link, one point
per side of a cell (linked_cells.py). So the surface is closed whatever is cut: on the face between two cells the nodes
form a ring, cut links part the ring into arcs, and each arc ends twice, which gives one edge of the surface in either
direction. Where a cut ends inside the body, the two sides of a cell are one, and both quads share its point.

A point of the outside lies on the organ's own mesh, or where a cut meets it. A point of a cut minimises its distance
from the planes in which the blade crossed its cell's links (dual contouring: Ju et al., SIGGRAPH 2002; for links that
are cut: Wu, Bürger, Westermann and Dick, "Interactive high-resolution boundary surfaces for deformable bodies with
changing topology", VRIPHYS 2011). It hangs on masses of its own side alone, by an affine fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_cells import BITS, Ints, Lattice, ring_around
from viscera.geometry.linked_loops import HANGS_ON, nearest_eight
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.queries import build_query, closest_points
from viscera.geometry.untangling import normals, untangled

Floats = NDArray[np.float64]

PULL = 0.02
"""Of a point towards where it would be without planes, over that of one plane: decides where planes do not."""
FLAT = 0.05
"""Masses that spread less than this across a direction (mean square, in cells²) say nothing about it."""

NEW_CELLS, NEW_POINTS, NEW_TRIANGLES = 4, 16, 4
"""That a link may add when it is cut, at most: it has four cells, two sides there, points of the outside and of the
cut."""


@dataclass(eq=False)
class Quads:
    """Corners of quads as rows of cells and corners there, shape (quads, 4) each."""

    cell: Ints
    corner: Ints


Planes = tuple[Ints, Ints, Floats, Floats, Ints]
"""In which links were cut, as their cells see it: rows of cells, corners, places [cells], normals, and links; in the
order of the links, so that sums over them are the same however they came."""


@dataclass(frozen=True, eq=False)
class Shape:
    """The surface as it is: arrays that a follower of the lattice needs."""

    rest: NDArray[np.float32]
    """Points at rest [m], shape (points, 3). A point keeps its number when others come."""
    nodes: NDArray[np.int32]
    """Masses that each hangs on, shape (points, 8)."""
    weights: NDArray[np.float32]
    triangles: NDArray[np.int32]
    """Shape (triangles, 3): first those of the outside, as many as ever, then those of cut faces."""
    inner: int
    """Triangles of cut faces."""
    slot: Ints
    """Of each of them a number that it keeps when others come, below 4 · `room`, shape (inner,): 4 · link + 2 · side +
    half of the link's quad."""
    key: NDArray[np.int64]
    """Equal for points that are one: on the rim of a cut the outside and the cut face have one each."""


class LinkedSurface:
    """Of one body. `cut` takes what was cut since; `shape` is what it looks like now."""

    def __init__(self, lattice: Lattice, mesh: TriangleMesh, origin: Floats, spacing: float, *, room: int) -> None:
        """`room`: links that may be cut; each is about the side of a cell."""
        self.lattice = lattice
        self._origin, self._spacing, self._room = np.asarray(origin, dtype=np.float64), spacing, room
        self._row = np.full(lattice.box.count, -1, dtype=np.int32)
        self._cells = np.zeros((0, 3), dtype=np.int64)
        self._corners = np.zeros((0, 8), dtype=np.int32)
        self._sides = np.zeros((0, 8), dtype=np.int8)
        self._home = np.zeros((0, 8, 3))
        """Where a corner's point is as long as nothing is cut [cells]."""
        self._point = np.zeros((0, 8, 3))
        self._nodes = np.zeros((0, 8, HANGS_ON), dtype=np.int32)
        self._weights = np.zeros((0, 8, HANGS_ON))
        none = np.zeros(0, dtype=np.int64)
        self._planes: Planes = none, none, np.zeros((0, 3)), np.zeros((0, 3)), none
        self.links = none
        """Those that are cut and drawn, as axis · nodes + node, in the order in which they were cut."""
        self.full = False
        """Whether a cut found no room: it is in the tissue, and is not drawn."""
        self._outside = self._find_outside()
        self._cut_quads = Quads(np.zeros((0, 4), dtype=np.int64), np.zeros((0, 4), dtype=np.int64))
        self._seal(mesh)
        most = 8 * (len(self._cells) + NEW_CELLS * room)
        self._number = np.full((2, most), -1, dtype=np.int32)
        self._looked = normals(self._point.reshape(-1, 3), _halves(self._keys(self._outside)))
        """Normals of the outside's triangles, uncut."""
        self._point_of = np.zeros(0, dtype=np.int64)
        self.shape = self._shape()
        self.most_points = len(self.shape.rest) + NEW_POINTS * room
        self.most_triangles = len(self.shape.triangles) + NEW_TRIANGLES * room

    # --- making ---

    def _find_outside(self) -> Quads:
        """A quad for every link from a mass to a position without one."""
        found = []
        nodes = self.lattice.nodes
        for axis in range(3):
            for side in (1, -1):
                step = side * np.eye(3, dtype=np.int64)[axis]
                open_ = np.flatnonzero(self.lattice.find(nodes + step) < 0)
                low = nodes[open_] + (step if side < 0 else 0)
                cells, lower, upper = ring_around(low, axis)
                corner = np.broadcast_to(lower if side > 0 else upper, (len(low), 4))
                cell = self._rows(cells.reshape(-1, 3)).reshape(-1, 4)
                # The mass is inside, so a quad above it goes round the other way than one below it.
                found.append(Quads(cell, corner) if side > 0 else Quads(cell[:, ::-1], corner[:, ::-1]))
        return Quads(np.concatenate([one.cell for one in found]), np.concatenate([one.corner for one in found]))

    def _rows(self, cells: Ints) -> Ints:
        """Rows of these cells; what is new gets one."""
        number = self.lattice.box.number(cells)
        fresh = np.unique(number[self._row[number] < 0])
        if len(fresh):
            self._row[fresh] = len(self._cells) + np.arange(len(fresh))
            self._cells = np.concatenate([self._cells, self.lattice.box.position(fresh)])
            corners = self.lattice.corners(self._cells[-len(fresh) :])
            self._corners = np.concatenate([self._corners, corners])
            count = len(fresh)
            self._sides = np.concatenate([self._sides, self.lattice.sides(corners)])
            self._home = np.concatenate([self._home, np.full((count, 8, 3), np.nan)])
            self._point = np.concatenate([self._point, np.zeros((count, 8, 3))])
            self._nodes = np.concatenate([self._nodes, np.zeros((count, 8, HANGS_ON), dtype=np.int32)])
            self._weights = np.concatenate([self._weights, np.zeros((count, 8, HANGS_ON))])
        return self._row[number].astype(np.int64)

    def _seal(self, mesh: TriangleMesh) -> None:
        """Points of the outside: where the mesh is nearest to the middle of what each stands for."""
        quads = self._outside
        side = self._sides[quads.cell, quads.corner].astype(np.int64)
        key = quads.cell * 8 + side
        used, where = np.unique(key, return_inverse=True)
        # Half way along each link: in the cell the link's mass is one corner, the other end its neighbour outside.
        middle = self._cells[quads.cell] + BITS[quads.corner] + 0.5 * self._link_ways()[:, None, :]
        where = where.reshape(key.shape)
        count = np.bincount(where.ravel(), minlength=len(used))
        mean = np.stack([np.bincount(where.ravel(), middle[..., a].ravel(), len(used)) for a in range(3)], axis=1)
        points = self._origin + self._spacing * mean / count[:, None]
        nearest = closest_points(build_query(mesh), points).points
        self._home[used // 8, used % 8] = (nearest - self._origin) / self._spacing
        # All corners of a side know its place, so that they keep it when the side is cut.
        rows = np.unique(used // 8)
        for corner in range(8):
            known = self._sides[rows, corner] >= 0
            some = rows[known]
            self._home[some, corner] = self._home[some, self._sides[some, corner]]
        self._fit(np.arange(len(self._cells)))

    def _link_ways(self) -> Floats:
        """From the mass outward, of every quad of the outside, shape (quads, 3)."""
        # A quad's four cells share the link: the mean of their middles, less the mass, is half a cell along it.
        quads = self._outside
        mass = self._cells[quads.cell[:, 0]] + BITS[quads.corner[:, 0]]
        return 2.0 * ((self._cells[quads.cell] + 0.5).mean(axis=1) - mass)

    # --- cutting ---

    def cut(
        self,
        whole: NDArray[np.bool_],
        axis: Ints,
        node: Ints,
        share: Floats,
        normal: Floats,
        only: Ints | None = None,
    ) -> None:
        """`whole` is which springs are left; the links along `axis` from `node` are newly cut, at this share of their
        length, by a blade with this normal. `only` these (as in `links`) have room, where that is known."""
        lost = np.flatnonzero(self.lattice.lose(whole))
        if len(lost) == 0:
            return
        planes, quads, links = [self._planes], [self._cut_quads], [self.links]
        for a in range(3):
            here = np.flatnonzero(axis == a)
            full = sum(len(one.cell) for one in quads) + 2 * len(here) > 2 * self._room
            drawn = np.full(len(here), not full)
            if only is not None:
                drawn = np.isin(a * len(self.lattice.nodes) + node[here], only)
            if not drawn.all():
                # Drawn as if it held: the surface stays closed.
                self.full = True
                self.lattice.mend(node[here[~drawn]], a)
                here = here[drawn]
            if len(here) == 0:
                continue
            cells, lower, upper = ring_around(self.lattice.nodes[node[here]], a)
            cell = self._rows(cells.reshape(-1, 3)).reshape(-1, 4)
            low, high = np.broadcast_to(lower, cell.shape), np.broadcast_to(upper, cell.shape)
            both = np.stack([cell, cell], axis=1).reshape(-1, 4)
            quads.append(Quads(both, np.stack([low, high], axis=1).reshape(-1, 4)))
            place = self.lattice.nodes[node[here]] + share[here, None] * np.eye(3)[a]
            place, across = np.repeat(place, 4, axis=0), np.repeat(normal[here], 4, axis=0)
            links.append(a * len(self.lattice.nodes) + node[here])
            link = np.repeat(links[-1], 4)
            planes += [(cell.ravel(), corner.ravel(), place, across, link) for corner in (low, high)]
        order = np.argsort(np.concatenate([one[4] for one in planes]), kind="stable")
        rows, corners, places, normals, ids = (np.concatenate(parts)[order] for parts in zip(*planes, strict=True))
        self._planes = rows, corners, places, normals, ids
        self.links = np.concatenate(links)
        self._cut_quads = Quads(*(np.concatenate([getattr(one, part) for one in quads]) for part in ("cell", "corner")))
        self._refresh(lost)
        self.shape = self._shape()

    def arrange(self, links: Ints) -> None:
        """Cut links are to count as cut in this order: faces keep their slots when a surface is made anew."""
        place = np.full(3 * len(self.lattice.nodes), -1, dtype=np.int64)
        place[self.links] = np.arange(len(self.links))
        order = place[links]
        self.links = links.copy()
        parts = (
            part.reshape(-1, 2, 4)[order].reshape(-1, 4) for part in (self._cut_quads.cell, self._cut_quads.corner)
        )
        self._cut_quads = Quads(*parts)
        self.shape = self._shape()

    def _refresh(self, lost: Ints) -> None:
        """Sides and points of all cells around nodes that lost a spring."""
        steps = np.stack(np.meshgrid(*[np.arange(-2, 2)] * 3), axis=-1).reshape(-1, 3)
        around = self.lattice.nodes[lost][:, None, :] + steps
        near = self._row[np.unique(self.lattice.box.number(around.reshape(-1, 3)))]
        touched = near[near >= 0].astype(np.int64)
        if len(touched) == 0:
            return
        self._sides[touched] = self.lattice.sides(self._corners[touched])
        self._fit(touched)

    def _fit(self, rows: Ints) -> None:
        """Where the points of these cells are, and what they hang on."""
        roots = np.stack(np.nonzero(self._sides[rows] == np.arange(8)), axis=1)
        cell, root = rows[roots[:, 0]], roots[:, 1]
        member = self._sides[cell] == root[:, None]
        self._point[cell, root] = self._places(cell, root, member)
        nodes, weights = self._hang(cell, member, self._point[cell, root])
        self._nodes[cell, root], self._weights[cell, root] = nodes, weights

    def _places(self, cell: Ints, root: Ints, member: NDArray[np.bool_]) -> Floats:
        """Least squares over the planes of a side's cut links, from where the point would be without."""
        index = np.full((len(self._cells), 8), -1, dtype=np.int64)
        which, corner = np.nonzero(member)
        index[cell[which], corner] = which
        count = len(cell)
        matrix, right = np.zeros((count, 3, 3)), np.zeros((count, 3))
        total, middle = np.zeros(count), np.zeros((count, 3))
        rows, corners, place, normal, _ = self._planes
        side = index[rows, corners]
        here = side >= 0
        side, p, n = side[here], place[here], normal[here]
        np.add.at(matrix, side, n[:, :, None] * n[:, None, :])
        np.add.at(right, side, n * np.einsum("ij,ij->i", n, p)[:, None])
        np.add.at(total, side, 1.0)
        np.add.at(middle, side, p)
        home = self._home[cell[:, None], np.arange(8)]
        seen = member & self._open_corners(cell)
        outer = np.where(seen.any(axis=1), np.argmax(seen, axis=1), root)
        start = home[np.arange(count), outer]
        inside = np.asarray(~seen.any(axis=1) | np.isnan(start).any(axis=1))
        # Where a cut ends inside a cell, it ends in its middle, on average.
        ends = np.asarray((self._sides[cell] >= 0).sum(axis=1) == member.sum(axis=1))
        mean = np.where(ends[:, None], self._cells[cell] + 0.5, middle / np.maximum(total, 1.0)[:, None])
        start = np.where(inside[:, None], mean, start)
        pull = PULL * np.maximum(total, 1.0)
        matrix += pull[:, None, None] * np.eye(3)
        found = np.linalg.solve(matrix, (right + pull[:, None] * start)[..., None])[..., 0]
        # A point of a cut stays in its cell; one of the outside may be beyond it already.
        low = np.minimum(self._cells[cell], start)
        high = np.maximum(self._cells[cell] + 1.0, start)
        return np.clip(found, low, high).astype(np.float64)

    def _open_corners(self, cell: Ints) -> NDArray[np.bool_]:
        """Which corners of cells have a neighbour in the cell where there is no mass."""
        there = self._corners[cell] >= 0
        open_ = np.zeros_like(there)
        for corner in range(8):
            for bit in (1, 2, 4):
                open_[:, corner] |= ~there[:, corner ^ bit]
        return open_ & there

    def _hang(self, cell: Ints, member: NDArray[np.bool_], point: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Masses of a side and, where those are few, masses tied to them: the nearest; weights of an affine function
        through them."""
        own = np.where(member, self._corners[cell], -1)
        lattice = self.lattice
        near = np.where(lattice.tied[:, own] & (own >= 0), lattice.near[:, own], -1)
        every = np.concatenate([own, np.moveaxis(near, 0, 2).reshape(len(cell), -1)], axis=1)
        return fit_weights(nearest_eight(every, self.lattice.nodes, point, 8), self.lattice.nodes, point)

    # --- what is drawn ---

    def _shape(self) -> Shape:
        outer = self._keys(self._outside)
        cut = self._keys(self._cut_quads).reshape(-1, 2, 4)
        one = _halves(cut[:, 0]).reshape(-1, 2, 3)
        other = _halves(cut[:, 1]).reshape(-1, 2, 3)[..., ::-1]
        # What is parted at none of its corners is no surface: both faces would lie on each other.
        parted = (one != other[..., ::-1]).any(axis=2)
        inner = np.concatenate([one[parted], other[parted]])
        slots = np.arange(4 * len(cut)).reshape(-1, 2, 2)
        numbers = [self._numbers(0, _halves(outer)), self._numbers(1, inner)]
        key = self._point_of % INNER
        points, nodes, weights = self._untangled(_halves(outer))
        rest = self._origin + self._spacing * points[key]
        return Shape(
            rest=rest.astype(np.float32),
            nodes=nodes[key],
            weights=weights[key].astype(np.float32),
            triangles=np.concatenate(numbers).astype(np.int32),
            inner=len(inner),
            slot=np.concatenate([slots[:, 0][parted], slots[:, 1][parted]]),
            key=key,
        )

    def _untangled(self, outer: Ints) -> tuple[Floats, NDArray[np.int32], Floats]:
        """Points, masses and weights by key. Where cuts cross near the outside, its points may be drawn past each
        other: none of its triangles is to be turned over."""
        fitted, home = self._point.reshape(-1, 3), self._home.reshape(-1, 3)
        nodes, weights = self._nodes.reshape(-1, HANGS_ON), self._weights.reshape(-1, HANGS_ON)
        points, moved = untangled(fitted, home, outer, self._looked)
        if len(moved):
            cell, root = np.divmod(moved, 8)
            nodes, weights = nodes.copy(), weights.copy()
            nodes[moved], weights[moved] = self._hang(cell, self._sides[cell] == root[:, None], points[moved])
        return points, nodes, weights

    def _numbers(self, kind: int, keys: Ints) -> NDArray[np.int32]:
        """Numbers of points by their keys; what is new gets the next ones, so that points keep theirs."""
        table = self._number[kind]
        fresh = np.unique(keys[table[keys] < 0])
        table[fresh] = len(self._point_of) + np.arange(len(fresh))
        self._point_of = np.concatenate([self._point_of, fresh + kind * INNER])
        return table[keys]

    def first_of_one(self) -> NDArray[np.int32]:
        """Of each point the first one that is the same: its own number, or that of the other one on the rim of a
        cut."""
        numbers = self._number[:, self.shape.key]
        return np.where(numbers.min(axis=0) < 0, numbers.max(axis=0), numbers.min(axis=0))

    def _keys(self, quads: Quads) -> Ints:
        return quads.cell * 8 + self._sides[quads.cell, quads.corner]


INNER = 1 << 40
"""Added to the key of a point that belongs to a cut face."""


def _halves(quads: Ints) -> Ints:
    """Two triangles for each quad."""
    return np.stack([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]], axis=1).reshape(-1, 3)


def fit_weights(nodes: NDArray[np.int32], positions: Ints, point: Floats) -> tuple[NDArray[np.int32], Floats]:
    """Of nodes (-1 for none), shape (n, 8), the weights of an affine function through them at each point; 0 for none.
    Across a plane of nodes it is constant."""
    there = nodes >= 0
    share = there / there.sum(axis=1, keepdims=True)
    at = positions[nodes].astype(np.float64)
    mean = np.einsum("vn,vna->va", share, at)
    spread = np.where(there[..., None], at - mean[:, None, :], 0.0)
    size, axes = np.linalg.eigh(np.einsum("vna,vnb->vab", spread, spread))
    inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > FLAT * HANGS_ON)
    slope = np.einsum("va,vab->vb", point - mean, np.einsum("vac,vc,vbc->vab", axes, inverse, axes))
    weights = share + np.einsum("vna,va->vn", spread, slope)
    return np.where(there, nodes, 0).astype(np.int32), np.where(there, weights, 0.0)
