"""The surface of what is cut is closed, hangs on the tissue of its own side, and is as large as the blade's way."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from cutting_reference import pieces, springs_of
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_cutting import STIFF, whole_pairs

from viscera.anatomy import gallbladder
from viscera.device import open_device
from viscera.geometry.linked_cells import Lattice
from viscera.geometry.linked_surface import LinkedSurface, Shape
from viscera.tissue import LatticeParams
from viscera.tissue.cutting import cut_springs, let_cut, need_cutting, remove_edge, set_edge, unpack_crossings
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.notches import Notches
from viscera.tissue.springs import DIRECTIONS, NodeIndex, partners
from viscera.world.organ import Body, block, fill

Floats = NDArray[np.float64]


@cache
def body_of(name: str) -> Body:
    return block((10, 8, 6), 0.002) if name == "block" else fill(gallbladder(), 700)


SPECK = 0.02
"""Of a cell's side: a triangle that is smaller has no direction to speak of."""


class Cut:
    """A body, a blade, and the surface that follows."""

    def __init__(self, body: Body, room: int = 1_000) -> None:
        self.body = body
        params = LatticeParams(
            nodes=body.nodes, spacing=body.spacing, origin=body.origin, material=STIFF, stiffest=STIFF.young,
            anchored=np.zeros(len(body.nodes), dtype=bool),
        )  # fmt: skip
        self.tissue: Tissue = make_lattice(open_device("cpu", cores=1), params)
        let_cut(self.tissue)
        index = NodeIndex(body.nodes)
        self.there = np.stack([index.find(body.nodes + np.array(d, dtype=np.int32)) >= 0 for d in DIRECTIONS])
        lattice = Lattice(body.nodes, DIRECTIONS, self.there)
        self.surface = LinkedSurface(lattice, body.mesh, np.array(body.origin), body.spacing, room=room)
        self.first = self.surface.shape
        self.uncut = volume(self.first)
        self.drawn = np.zeros((3, len(body.nodes)), dtype=bool)
        self.notches = Notches(body.nodes)

    def stroke(self, path: list[Floats]) -> None:
        """An edge goes through these poses, in cells, a tick each; the surface follows every eighth."""
        origin, h = np.array(self.body.origin), self.body.spacing
        for tick, (old, new) in enumerate(itertools.pairwise(path)):
            set_edge(self.tissue, 0, 0, origin + h * old, origin + h * new)
            self.tissue.step()
            if tick % 8 == 7:
                self.follow()
        remove_edge(self.tissue, 0)
        self.tissue.step()
        self.follow()

    def follow(self) -> None:
        values = need_cutting(self.tissue).blades.crossing.numpy().reshape(3, -1)[:, self.tissue.layout.slot_of_node]
        cut = cut_springs(self.tissue)
        parted = self.notches.follow(cut)
        values = self.notches.cross(values, parted)
        new = (values != 0) & ~self.drawn
        self.drawn |= new
        axis, node = np.nonzero(new)
        self.surface.cut(self.there & ~cut & ~parted, axis, node, *unpack_crossings(values[new]))

    @property
    def labels(self) -> NDArray[np.int64]:
        """By springs that bear: near masses across a notch of the surface have none."""
        other = partners(self.body.nodes)
        direction, low = np.nonzero((other >= 0) & ~cut_springs(self.tissue))
        return pieces(len(self.body.nodes), low, other[direction, low])


def is_closed(shape: Shape) -> bool:
    """Every edge is there as often in one direction as in the other."""
    corners = shape.key[shape.triangles]
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    count = int(corners.max()) + 1
    return np.array_equal(np.sort(edges @ [count, 1]), np.sort(edges @ [1, count]))


def normals(shape: Shape) -> Floats:
    """Of all triangles, as long as their area [m²]."""
    corners = shape.rest[shape.triangles].astype(np.float64)
    return np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2.0


def areas(shape: Shape) -> Floats:
    return np.linalg.norm(normals(shape), axis=1)


def volume(shape: Shape) -> float:
    a, b, c = np.moveaxis(shape.rest[shape.triangles].astype(np.float64), 1, 0)
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum()) / 6.0


def check(cut: Cut) -> None:
    shape, labels = cut.surface.shape, cut.labels
    assert is_closed(shape)
    assert len(shape.rest) <= cut.surface.most_points
    assert len(shape.triangles) <= cut.surface.most_triangles
    corners = shape.key[shape.triangles]
    assert (corners[:, 0] != corners[:, 1]).all()
    assert (corners[:, 1] != corners[:, 2]).all()
    assert (corners[:, 2] != corners[:, 0]).all()
    used = np.abs(shape.weights) > 1e-7
    own = labels[shape.nodes]
    first = own[np.arange(len(own)), used.argmax(axis=1)]
    assert ((own == first[:, None]) | ~used).all()
    # And all corners of a triangle are of one piece.
    piece = first[shape.triangles]
    assert (piece == piece[:, :1]).all()
    assert np.allclose(shape.weights.sum(axis=1), 1.0, atol=1e-5)
    # A cut takes nothing away.
    assert volume(shape) == pytest.approx(cut.uncut, rel=0.02)
    # The outside keeps its triangles, and none is turned over.
    before, now = normals(cut.first), normals(shape)[: len(cut.first.triangles)]
    tiny = SPECK * cut.body.spacing**2
    large = (np.linalg.norm(now, axis=1) > tiny) & (np.linalg.norm(before, axis=1) > tiny)
    turned = (now * before).sum(axis=1)[large] < 0.0
    assert not turned.any()


def straight(start: Floats, end: Floats, ticks: int = 40) -> list[Floats]:
    return [(1.0 - s) * start + s * end for s in np.linspace(0.0, 1.0, ticks + 1)]


@pytest.mark.parametrize("name", ["block", "gall bladder"])
def test_uncut_it_is_the_organs_own_surface(name: str) -> None:
    body = body_of(name)
    shape = Cut(body).surface.shape
    assert is_closed(shape)
    assert volume(shape) == pytest.approx(body.mesh.volume, rel=0.03)
    assert areas(shape).sum() == pytest.approx(body.mesh.area, rel=0.03)


level = st.sampled_from([1.0, 2.0, 2.5, 3.0, 3.0 + 1e-6, 4.3])
spot = st.floats(-1.0, 9.0).map(lambda value: round(2.0 * value) / 2.0)


# Without shrinking: each example is a world.
@settings(max_examples=12, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
@given(
    name=st.sampled_from(["block", "gall bladder"]),
    strokes=st.lists(st.tuples(st.integers(0, 2), level, spot, spot, st.floats(-1.0, 1.0)), min_size=1, max_size=3),
    back=st.booleans(),
)
def test_any_strokes_leave_a_closed_surface(
    name: str, strokes: list[tuple[int, float, float, float, float]], back: bool
) -> None:
    """Along planes of the lattice, through masses, tilted, half way, back again, across older cuts."""
    cut = Cut(body_of(name))
    for axis, at, begin, depth, tilt in strokes:
        first, last = np.zeros((2, 3)), np.zeros((2, 3))
        a, b = (axis + 1) % 3, (axis + 2) % 3
        first[:, axis], last[:, axis] = at, at + tilt
        first[:, a], last[:, a] = -1.5, begin
        first[:, b] = last[:, b] = depth, 12.0
        path = straight(first, last, 24)
        cut.stroke(path + path[::-1][1:] if back else path)
    check(cut)


@pytest.mark.parametrize(("depth", "reach"), [(-1.0, 11.0), (1.7, 11.0), (1.2, 5.4), (-1.0, 6.6)])
@pytest.mark.parametrize("tilt", [0.0, 1.5])
def test_new_faces_are_as_large_as_the_blades_way(depth: float, reach: float, tilt: float) -> None:
    """10 %, or what half a cell along the ends of the cut makes of it, if that is more."""
    cut = Cut(body_of("block"))
    first = np.array([[-1.0, 3.3, depth], [-1.0, 3.3 + tilt, 7.0]])
    last = np.array([[reach, 3.3, depth], [reach, 3.3 + tilt, 7.0]])
    cut.stroke(straight(first, last))
    check(cut)
    length, height = min(reach, 10.0), 6.0 - max(depth, 0.0)
    slope = np.hypot(1.0, tilt / (7.0 - depth))
    swept = length * height * slope * cut.body.spacing**2
    half_cell = 0.5 / height * (depth > 0.0) + 0.5 / length * (reach < 10.0)
    found = areas(cut.surface.shape)[-cut.surface.shape.inner :].sum() / 2.0
    assert found == pytest.approx(swept, rel=max(0.1, half_cell))
    through = depth < 0.0 and reach > 10.0
    assert cut.labels.max() == (1 if through else 0)


def test_without_room_the_surface_stays_closed_and_says_so() -> None:
    cut = Cut(body_of("block"), room=10)
    first, last = np.array([[-1.0, 3.3, 2.0], [-1.0, 3.3, 7.0]]), np.array([[11.0, 3.3, 2.0], [11.0, 3.3, 7.0]])
    cut.stroke(straight(first, last))
    assert cut.surface.full
    assert is_closed(cut.surface.shape)
    low, _ = whole_pairs(cut.tissue)
    assert len(low) < len(springs_of(cut.body.nodes)[1])
