"""A cap on a stem over a slab: beside the stem are masses a step apart that no spring joins. What tears off there is
drawn, and meets other tissue, as what it is: two pieces."""

from __future__ import annotations

import numpy as np
import pytest
from cutting_reference import pieces
from numpy.typing import NDArray

import viscera
from viscera import Contents, Scenario, Setting, World, systems
from viscera.anatomy.implicit import polygonise
from viscera.device import open_device
from viscera.tissue.cutting import need_cutting, unpack_crossings
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.notches import Notches
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.world import Body

H = 0.002
FLESH = Material("flesh", 20_000.0, 1_000.0, poisson=0.25, viscous_time=5e-4, break_strain=0.3)
Boxes = tuple[tuple[tuple[int, int, int], tuple[int, int, int]], ...]
CAPPED: Boxes = (((0, 0, 0), (7, 6, 2)), ((2, 2, 2), (5, 4, 4)), ((0, 0, 4), (7, 6, 6)))
"""Slab, stem and cap, in cells: beside either end of the stem there are pairs along diagonals."""
FOOTED: Boxes = (((0, 0, 0), (4, 4, 2)), ((0, 0, 2), (2, 2, 5)), ((0, 0, 5), (6, 6, 7)), ((4, 4, 3), (6, 6, 5)))
"""A plate on an arm, with a foot whose corner is a cell above that of the slab: a pair along an axis."""
RATE = 0.3
"""At which the cap is lifted [m/s]."""
APART = 6 * H
"""How far the cap is lifted [m]: more than what any triangle may span."""


def body_of(boxes: Boxes) -> Body:
    def inside(points: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.full(len(points), np.inf)
        for low, high in boxes:
            middle, half = 0.5 * H * (np.array(low) + high), 0.5 * H * (np.array(high) - np.array(low))
            out = np.abs(points - middle) - half
            found = np.minimum(found, np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0))
        return found

    nodes = np.concatenate([np.array(list(np.ndindex(*np.add(np.subtract(b, a), 1)))) + a for a, b in boxes])
    nodes = np.unique(nodes, axis=0).astype(np.int32)
    mesh = polygonise(inside, np.full(3, -H), H * np.array([8.0, 7.0, 8.0]), 0.5 * H, "cap")
    return Body(mesh, nodes, (0.0, 0.0, 0.0), H)


def lattice_of(body: Body, device: viscera.device.Device) -> Tissue:
    top = body.nodes[:, 2] == body.nodes[:, 2].max()
    ends = (body.nodes[:, 2] == 0) | top
    away = np.zeros((len(body.nodes), 3))
    away[top, 2] = 1.0
    params = LatticeParams(
        nodes=body.nodes, spacing=H, origin=body.origin, anchored=ends, driven=ends, drive_direction=away,
        material=FLESH, stiffest=FLESH.young, drag=60.0,
    )  # fmt: skip
    return make_lattice(device, params)


def world_of(boxes: Boxes = CAPPED) -> World:
    def build(setting: Setting) -> Contents:
        body = body_of(boxes)
        organ = viscera.cuttable("cap", body, lattice_of(body, setting.device))
        camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
        return Contents(
            organs=[organ], systems=[systems.cutting(organ)], camera=camera, bounds=bounds, rubbing=0.2, table=-0.01
        )

    return viscera.make(Scenario("cap", build), device="cpu", cores=1)


def springs_left(tissue: Tissue) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ends of all that bear."""
    nodes = tissue.params.nodes
    stiffness = tissue.constants.stiffness.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node]
    direction, low = np.nonzero(stiffness > 0.0)
    return low, NodeIndex(nodes).find(nodes[low] + np.array(DIRECTIONS, dtype=np.int32)[direction]).astype(np.int64)


def check_drawn(world: World) -> NDArray[np.int64]:
    """The surface is closed, and every triangle hangs on masses of one piece; number of the piece of each mass."""
    organ = world.organs[0]
    assert organ.cuts is not None
    shape = organ.cuts.linked.shape
    corners = shape.key[shape.triangles]
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    count = int(corners.max()) + 1
    assert np.array_equal(np.sort(edges @ [count, 1]), np.sort(edges @ [1, count]))
    label = pieces(len(organ.body.nodes), *springs_left(organ.tissue))
    used = np.abs(shape.weights) > 1e-7
    own = label[shape.nodes]
    first = own[np.arange(len(own)), used.argmax(axis=1)]
    assert ((own == first[:, None]) | ~used).all()
    assert (first[shape.triangles] == first[shape.triangles][:, :1]).all()
    return label


def lifted(world: World) -> None:
    lift = 0.0
    for tick in range(150):
        world.organs[0].tissue.set_drive(lift, lift := min(lift + 0.001 * RATE, APART))
        world.advance()
        if tick % 16 == 15:
            world.wait()
    world.wait()


def test_torn_off_its_stem_nothing_is_drawn_between_cap_and_slab() -> None:
    world = world_of()
    first = world.organs[0].cuts
    assert first is not None
    uncut = first.linked.shape
    lifted(world)
    assert world.measure_values()["pieces"] >= 2
    label = check_drawn(world)
    nodes = world.organs[0].body.nodes
    slab, cap = label[nodes[:, 2] == 0], label[nodes[:, 2] == 6]
    assert len(set(slab.tolist())) == len(set(cap.tolist())) == 1
    assert slab[0] != cap[0]
    # No triangle is longer than what tissue that bears is stretched to.
    count = len(first.linked.shape.rest)
    corners = world.organs[0].vertices.numpy()[:count][first.linked.shape.triangles]
    longest = max(np.linalg.norm(corners[:, k] - corners[:, k - 1], axis=1).max() for k in range(3))
    rest = max(
        np.linalg.norm(uncut.rest[uncut.triangles][:, k] - uncut.rest[uncut.triangles][:, k - 1], axis=1).max()
        for k in range(3)
    )
    assert longest < 2.0 * (1.0 + FLESH.break_strain) * rest
    # What meets is what hangs together, too.
    found = world.organs[0].pieces
    assert found is not None
    sides = [set(found.edge.piece[label[found.edge.mass] == one].tolist()) for one in (slab[0], cap[0])]
    assert not sides[0] & sides[1]


def test_a_state_of_what_is_torn_goes_on_to_the_bit() -> None:
    one, other = world_of(), world_of()
    lifted(one)
    other.load_state(one.save_state())
    check_drawn(other)
    assert other.state_hash() == one.state_hash()
    for world in (one, other):
        for _ in range(48):
            world.organs[0].tissue.set_drive(APART, APART)
            world.advance()
        world.wait()
    assert other.state_hash() == one.state_hash()


@pytest.fixture(scope="module")
def tissue() -> Tissue:
    return lattice_of(body_of(CAPPED), open_device("cpu", cores=1))


def across(tissue: Tissue, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Springs between what is chosen and what is not."""
    nodes = tissue.params.nodes
    index = NodeIndex(nodes)
    other = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
    stiff = tissue.constants.stiffness.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node] > 0.0
    return stiff & (chosen[None] != chosen[np.maximum(other, 0)])


def tear(world: World, gone: NDArray[np.bool_]) -> NDArray[np.int64]:
    """These springs are gone in the shadow, as burning.py leaves them; their places."""
    shadow = world.organs[0].shadow.tissue
    direction, mass = np.nonzero(gone)
    places = direction * shadow.layout.slots + shadow.layout.slot_of_node[mass]
    shadow.constants.stiffness.numpy()[places] = 0.0
    for _ in range(32):
        world.advance()
    world.wait()
    return places


def test_uncut_pairs_beside_a_stem_are_one_and_part_where_its_springs_are_gone(tissue: Tissue) -> None:
    nodes = tissue.params.nodes
    notches = Notches(nodes)
    index = NodeIndex(nodes)
    other = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
    stiff = tissue.constants.stiffness.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node] > 0.0
    pairs = (other >= 0) & ~stiff
    assert pairs.any()
    assert not notches.follow(np.zeros(pairs.shape, dtype=np.bool_)).any()
    # All but its end at x = 5: at the other end pairs part, though it is one piece; at this they stay.
    upper, far = nodes[:, 2] >= 3, nodes[:, 0] >= 4
    whole = across(tissue, upper)
    left = whole & far[None] & far[np.maximum(other, 0)]
    parted = notches.follow(whole & ~left)
    assert len(np.unique(notches.roots)) == 1
    between = pairs & (upper[None] != upper[np.maximum(other, 0)])
    x = np.minimum(nodes[:, 0][None], nodes[np.maximum(other, 0), 0])
    assert (parted & between & (x == 1)).any()
    assert not (parted & between & (x == 5)).any()
    assert (between & (x == 5)).any()
    assert not (parted & ~between).any()
    # All of it: every pair beside it, whichever way it came to this.
    every = notches.follow(whole)
    assert np.array_equal(every, between)
    assert np.array_equal(every, Notches(nodes).follow(whole))
    assert not notches.follow(np.zeros_like(whole)).any()


def test_an_axis_pair_of_two_pieces_is_open_in_its_middle() -> None:
    world = world_of(FOOTED)
    organ = world.organs[0]
    nodes = organ.body.nodes
    upper = (nodes[:, 2] >= 4) | ((nodes[:, 2] == 3) & (nodes[:, 0] >= 4))
    low, high = (int(np.flatnonzero((nodes == (4, 4, z)).all(axis=1))[0]) for z in (2, 3))
    up = DIRECTIONS.index((0, 0, 1))
    notches = Notches(nodes)
    assert not notches.follow(np.zeros((13, len(nodes)), dtype=np.bool_)).any()
    parted = notches.follow(across(organ.tissue, upper))
    assert parted[up, low]
    links = np.zeros((3, len(nodes)), dtype=np.int64)
    found = notches.cross(links, parted)
    assert np.flatnonzero(found[2]).tolist() == [low]
    share, normal = unpack_crossings(found[2][[low]])
    assert share == pytest.approx(0.5, abs=1e-4)
    assert normal == pytest.approx(np.array([[0.0, 0.0, 1.0]]), abs=1e-4)
    # Where a blade has been, its own place stays.
    links[2, low] = 7
    assert notches.cross(links, parted)[2, low] == 7
    # And in a world that is torn there, slab and foot have a face each.
    tear(world, across(organ.tissue, upper))
    label = check_drawn(world)
    assert label[low] != label[high]
    assert organ.cuts is not None
    assert 2 * len(nodes) + low in organ.cuts.linked.links


def test_a_pair_that_has_come_apart_is_tied_no_more_and_is_at_no_cut() -> None:
    """Its masses keep their surface and its normal: a cut is where springs were."""
    organ = world_of().organs[0]
    found, nodes = organ.pieces, organ.body.nodes
    assert found is not None
    index = NodeIndex(nodes)
    other = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
    cut = across(organ.tissue, nodes[:, 2] >= 3)
    parted = Notches(nodes).follow(cut)
    direction, low = np.nonzero(parted)
    found.hang((other >= 0) & ~parted)
    found.land()
    assert not found.edge.kind.any()
    row = np.full(len(nodes), -1)
    row[found.edge.mass] = np.arange(len(found.edge.mass))
    place = organ.tissue.layout.slot_of_node
    for one, far in ((low, other[direction, low]), (other[direction, low], low)):
        assert (row[one] >= 0).all()
        assert not (found.edge.tied[row[one]] == place[far][:, None]).any()
    found.hang((other >= 0) & ~parted & ~cut)
    found.land()
    at_cut = np.zeros(len(nodes), dtype=np.bool_)
    at_cut[np.nonzero(cut)[1]] = at_cut[other[cut]] = True
    assert np.array_equal(found.edge.kind != 0, at_cut[found.edge.mass])
    sides = [set(found.edge.piece[nodes[found.edge.mass, 2] == level].tolist()) for level in (0, 6)]
    assert [len(side) for side in sides] == [1, 1]
    assert sides[0] != sides[1]


def test_what_burning_has_torn_opens_in_the_next_frame() -> None:
    """The surface follows, and the springs are cut in the lattice that ticks."""
    world = world_of()
    organ = world.organs[0]
    assert organ.cuts is not None
    before = organ.cuts.version
    places = tear(world, across(organ.tissue, organ.body.nodes[:, 2] >= 3))
    assert organ.cuts.version > before
    assert world.measure_values()["pieces"] == 2
    assert (need_cutting(organ.tissue).blades.cut.numpy()[places] == 1).all()
    check_drawn(world)
