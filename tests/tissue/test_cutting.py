"""Blades cut exactly the springs that they cross, whatever their way; nothing slips through, and no mass is lost."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from cutting_reference import crosses, pieces, springs_of, strip
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.geometry.topology import components
from viscera.tissue import LatticeParams, RestSkipping
from viscera.tissue.blade_kernels import EDGES, SAMPLES
from viscera.tissue.cutting import (
    cut_area,
    cut_springs,
    let_cut,
    need_cutting,
    pack_crossings,
    remove_edge,
    set_edge,
    unpack_crossings,
)
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material

SPACING = 0.004
CELLS = (5, 4, 3)
STIFF = Material("still", 3_000.0, 1_000.0, viscous_time=0.0, poisson=0.25, toughness=0.0)
"""Without toughness a blade drags nothing along, so the block stays at rest and places are what they seem."""


def block(device: Device, cells: tuple[int, int, int] = CELLS, **more: Any) -> Tissue:
    axes = [np.arange(count + 1, dtype=np.int32) for count in cells]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    options: dict[str, Any] = {
        "material": STIFF,
        "stiffest": 3_000.0,
        "anchored": np.zeros(len(nodes), dtype=bool),
    } | more
    tissue = make_lattice(device, LatticeParams(nodes=nodes, spacing=SPACING, origin=(0.1, -0.2, 0.3), **options))
    let_cut(tissue)
    return tissue


def draw(tissue: Tissue, ends: list[NDArray[np.float64]], edge: int = 0) -> None:
    """An edge goes from pose to pose, one tick each; poses in cells, shape (2, 3)."""
    origin = np.asarray(tissue.params.origin)
    for before, after in itertools.pairwise(ends):
        set_edge(tissue, edge, 0, origin + SPACING * before, origin + SPACING * after)
        tissue.step()
    remove_edge(tissue, edge)


def samples(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    along = np.linspace(0.0, 1.0, SAMPLES)[:, None]
    return (1.0 - along) * ends[0] + along * ends[1]


def whole_pairs(tissue: Tissue) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    direction, low, high = springs_of(tissue.params.nodes)
    left = ~cut_springs(tissue)[direction, low]
    return low[left], high[left]


coordinate = st.floats(-1.0, 6.0).map(lambda value: round(value, 3) + 0.0003)
pose = st.tuples(*([coordinate] * 6)).map(lambda numbers: np.array(numbers).reshape(2, 3))


@settings(max_examples=8, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
@given(poses=st.lists(pose, min_size=2, max_size=4))
def test_exactly_the_springs_that_the_blade_crosses_are_cut(poses: list[NDArray[np.float64]]) -> None:
    tissue = block(open_device("cpu", cores=1))
    # Eight ticks between poses: no quad spans more than a blade can in a tick.
    way = [(1.0 - s) * a + s * b for a, b in itertools.pairwise(poses) for s in np.linspace(0.0, 1.0, 9)]
    draw(tissue, way)
    direction, low, high = springs_of(tissue.params.nodes)
    nodes = tissue.params.nodes.astype(np.float64)
    expected, unsure = np.zeros(len(low), dtype=bool), np.zeros(len(low), dtype=bool)
    for triangle in strip([samples(ends) for ends in way]):
        hit, room = crosses(nodes[low], nodes[high], triangle)
        # Masses stand 10⁻⁶ cells aside for a blade.
        expected |= hit & (room > 1e-4)
        unsure |= room <= 1e-4
    found = cut_springs(tissue)[direction, low]
    assert (found | ~expected).all()
    assert (expected | unsure | ~found).all()
    stiffness = tissue.constants.stiffness.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node]
    assert ((stiffness[direction, low] == 0.0) == found).all()


def drawn_apart(nodes: NDArray[np.int32], how: str) -> NDArray[np.float64]:
    """Displacements that take tissue from its place [cells], shape (masses, 3)."""
    at = nodes.astype(np.float64)
    if how == "shifted":
        return np.tile([3.0, -2.0, 1.0], (len(at), 1))
    if how == "stretched":
        # Out of the hull at rest: twice as long, thinner, bent up.
        return np.stack([at[:, 0], -0.3 * at[:, 1], 0.2 * at[:, 0] ** 2], axis=1)
    # Two halves drawn apart, one over the other's place: what is between hangs on long springs.
    return np.where(at[:, :1] <= 2.0, 0.0, [1.7, 0.0, -1.2]) + np.where(at[:, :1] <= 2.0, [2.0, 0.3, 0.0], 0.0)


@pytest.mark.parametrize("how", ["shifted", "stretched", "apart"])
def test_tissue_that_was_drawn_from_its_place_is_cut_where_it_is(device: Device, how: str) -> None:
    """All masses hold fast where they were put, so that the reference knows where each spring is: those whose segment
    as it lies now crosses the strip that the edge sweeps are cut, and no others."""
    tissue = block(device, anchored=np.ones(6 * 5 * 4, dtype=bool))
    nodes = tissue.params.nodes
    moved = drawn_apart(nodes, how)
    tissue.set_motion(SPACING * moved, np.zeros_like(moved))
    at = nodes + tissue.displacement().astype(np.float64) / SPACING
    middle, size = at.mean(axis=0), np.ptp(at, axis=0).max()
    rng = np.random.default_rng(5)
    direction, low, high = springs_of(nodes)
    expected, unsure = np.zeros(len(low), dtype=bool), np.zeros(len(low), dtype=bool)
    for _stroke in range(3):
        poses = middle + rng.uniform(-0.6, 0.6, (2, 2, 3)) * size
        way = [(1.0 - s) * poses[0] + s * poses[1] for s in np.linspace(0.0, 1.0, 17)]
        draw(tissue, way)
        tissue.step()  # with no edge in it
        for triangle in strip([samples(ends) for ends in way]):
            hit, room = crosses(at[low], at[high], triangle)
            expected |= hit & (room > 1e-4)
            unsure |= room <= 1e-4
    assert expected.sum() > 50
    found = cut_springs(tissue)[direction, low]
    assert (found | ~expected).all()
    assert (expected | unsure | ~found).all()


def test_tissue_that_moves_through_a_blade_is_cut_as_by_a_blade_that_moves_through_it(cpu: Device) -> None:
    """A free block that flies past an edge which stands still, and the other way round. One that goes along with the
    block cuts nothing."""
    steps = 40
    along = np.array([-8.0 / steps, 0.0, 0.0])
    pose = np.array([[6.5, -1.0, -0.7], [6.5, 5.0, 3.9]])
    flying, still, carried = block(cpu), block(cpu), block(cpu)
    for tissue in (flying, carried):
        tissue.set_motion(np.zeros((120, 3)), np.tile(-along * SPACING / 0.001, (120, 1)))
    inside = pose - np.array([4.0, 0.0, 0.0])
    for tissue, begin, step in ((flying, pose, 0.0), (still, pose, 1.0), (carried, inside, -1.0)):
        draw(tissue, [begin + step * k * along for k in range(steps)])
    assert cut_springs(still).any(axis=0).mean() > 0.3
    assert np.array_equal(cut_springs(flying), cut_springs(still))
    assert not cut_springs(carried).any()


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("level", [1.0, 1.5, 2.0 - 1e-6, 2.0])
@pytest.mark.parametrize("tilt", [0.0, 1.0])
def test_a_blade_along_a_plane_of_the_lattice_leaves_two_pieces(
    cpu: Device, axis: int, level: float, tilt: float
) -> None:
    """Also exactly through masses, edges and corners: no spring is left, and no mass is cut out."""
    tissue = block(cpu)
    a, b = (axis + 1) % 3, (axis + 2) % 3
    way = []
    for step in np.linspace(-1.0, 7.0, 60):
        ends = np.zeros((2, 3))
        ends[:, axis] = level + tilt * (step - 3.0) / 3.0
        ends[:, a], ends[:, b] = step, (-1.0, 7.0)
        way.append(ends)
    draw(tissue, way)
    label = pieces(len(tissue.params.nodes), *whole_pairs(tissue))
    assert label.max() == 1
    if tilt == 0.0:
        upper = tissue.params.nodes[:, axis] > level - 1e-9
        assert len(np.unique(label[upper])) == len(np.unique(label[~upper])) == 1
        # Along a plane of the lattice the springs count 4 % too little; see AREA_SHARES.
        assert cut_area(tissue) == pytest.approx(CELLS[a] * CELLS[b] * SPACING**2, rel=0.08)


def test_pieces_are_what_a_flood_fill_finds(cpu: Device) -> None:
    tissue = block(cpu)
    rng = np.random.default_rng(3)
    for _round in range(4):
        poses = rng.uniform(-1.0, 6.0, (2, 2, 3))
        draw(tissue, [(1.0 - s) * poses[0] + s * poses[1] for s in np.linspace(0.0, 1.0, 21)])
        low, high = whole_pairs(tissue)
        expected = pieces(len(tissue.params.nodes), low, high)
        assert len(np.unique(components(len(tissue.params.nodes), low, high))) == expected.max() + 1


def test_turning_back_and_crossing_an_old_cut_cuts_no_spring_twice_and_none_again(cpu: Device) -> None:
    tissue = block(cpu)
    half = [np.array([[x, -1.0, 1.5], [x, 5.0, 1.5]]) for x in np.linspace(-1.0, 2.5, 30)]
    draw(tissue, half)
    once = cut_springs(tissue)
    draw(tissue, half[::-1])
    assert np.array_equal(cut_springs(tissue), once)
    assert pieces(len(tissue.params.nodes), *whole_pairs(tissue)).max() == 0
    draw(tissue, [np.array([[1.5, y, -1.0], [1.5, y, 4.0]]) for y in np.linspace(-1.0, 5.0, 40)])
    # The half cut and a whole one across it: the corner under and the corner over the half cut come off.
    assert pieces(len(tissue.params.nodes), *whole_pairs(tissue)).max() == 2


def test_mass_and_momentum_stay_and_nothing_kicks(cpu: Device) -> None:
    """A free block at rest in which a blade without resistance moves: it has no reason to move."""
    tissue = block(cpu)
    before = tissue.constants.inverse_mass.numpy().copy()
    draw(tissue, [np.array([[x, -1.0, 1.2], [x, 5.0, 1.9]]) for x in np.linspace(-1.0, 6.0, 30)])
    assert np.array_equal(tissue.constants.inverse_mass.numpy(), before)
    assert np.abs(tissue.velocities()).max() == 0.0


def test_where_a_spring_is_cut_is_known_to_a_ten_thousandth(cpu: Device) -> None:
    tissue = block(cpu)
    draw(tissue, [np.array([[x, -1.0, 1.3], [x, 5.0, 1.3]]) for x in np.linspace(-1.0, 6.0, 30)])
    values = need_cutting(tissue).blades.crossing.numpy().reshape(3, -1)[:, tissue.layout.slot_of_node]
    assert (values[:2] == 0).all()
    where, normals = unpack_crossings(values[2][values[2] != 0])
    assert np.allclose(where, 0.3, atol=1e-4)
    assert np.allclose(np.abs(normals), [0.0, 0.0, 1.0], atol=1e-4)
    again = pack_crossings(where, normals)
    assert np.abs(unpack_crossings(again)[0] - where).max() < 1e-4


def test_a_cut_is_kept_with_the_state(cpu: Device) -> None:
    one, other = block(cpu), block(cpu)
    way = [np.array([[x, -1.0, 1.3], [x, 5.0, 1.7]]) for x in np.linspace(-1.0, 6.0, 31)]
    draw(one, way[:16])
    other.load({name: array.numpy().copy() for name, array in one.arrays().items()}, one.ticks)
    for tissue in (one, other):
        draw(tissue, way[15:])
    assert np.array_equal(cut_springs(one), cut_springs(other))
    assert pieces(len(one.params.nodes), *whole_pairs(one)).max() == 1


def test_what_cannot_be_cut_says_so(cpu: Device) -> None:
    nodes = np.argwhere(np.ones((4, 4, 4))).astype(np.int32)
    params: dict[str, Any] = {
        "nodes": nodes, "spacing": SPACING, "origin": (0.0, 0.0, 0.0), "material": STIFF, "stiffest": 3_000.0,
        "anchored": np.zeros(len(nodes), dtype=bool),
    }  # fmt: skip
    with pytest.raises(InputError, match="skips rest"):
        let_cut(make_lattice(cpu, LatticeParams(**params, rest_skipping=RestSkipping(1e-6, 1e-6))))
    plain = make_lattice(cpu, LatticeParams(**params))
    ends = np.zeros((2, 3))
    with pytest.raises(InputError, match="cannot be cut"):
        set_edge(plain, 0, 0, ends, ends)
    let_cut(plain)
    with pytest.raises(InputError, match="edge = 8"):
        set_edge(plain, EDGES, 0, ends, ends)
    with pytest.raises(InputError, match="not finite"):
        set_edge(plain, 0, 0, ends * np.nan, ends)
