"""Faces of cuts have texels of their own: blood wells up on them, runs over them, heat lives there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import warp as wp

import viscera
from viscera import Contents, Scenario, Setting, ToolInput, World, film, heat, kit, systems, wounds
from viscera.blood.film.surface import set_triangles
from viscera.blood.wounds.vessels import VESSELS
from viscera.blood.wounds.wounds import set_place
from viscera.errors import InputError
from viscera.skin import rebuild_skin
from viscera.skin.spare import GUTTER, squares_for
from viscera.tissue.burning import make_burning, with_burn_headroom
from viscera.tissue.burnt_faces import make_face_sampling, sample_faces, set_faces
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.world.cut_surface import CutSurface
from viscera.world.organ import Body
from viscera.world.system import Saved
from viscera.world.systems.tint import tinting
from viscera.world.systems.wounds import Wound

FLESH = Material("flesh", 8_000.0, 1_000.0, poisson=0.35, viscous_time=2e-4, toughness=300.0)
SPACING, CELLS = 0.003, (8, 6, 4)
TOP = CELLS[2] * SPACING
TEXELS, ROOM, OOZING = 128, 150, 12
PALE, DARK = (0.8, 0.6, 0.5), (0.5, 0.1, 0.1)


def build(setting: Setting, room: int = ROOM) -> Contents:
    body = viscera.block(CELLS, SPACING)
    params = LatticeParams(
        nodes=body.nodes, spacing=SPACING, origin=body.origin, anchored=body.positions[:, 2] < 0.5 * SPACING,
        material=FLESH, stiffest=FLESH.young, drag=10.0,
    )  # fmt: skip
    lattice = make_lattice(setting.device, with_burn_headroom(params))
    organ = viscera.cuttable("flesh", body, lattice, texels=TEXELS, room=room, inside=True)
    blood = systems.make_film_on(organ, film.FilmParams(), 1_000)
    opened = wounds.make(blood)
    waiting = Wound((0.0, 0.0, TOP), VESSELS["capillary bed"], 5e-5, oozes=True)
    bleeders = systems.bleeding(organ, opened, [waiting] * OOZING)
    parts = [systems.cutting(organ), systems.oozing(organ, bleeders.holds, range(OOZING)), bleeders]
    parts += [systems.flowing(blood), systems.painting(organ, blood), tinting(organ, {0: (PALE, DARK)})]
    camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
    tools = kit.hand_out([kit.scalpel()], place=(-0.02, 0.0, TOP + 0.01))
    return Contents(organs=[organ], tools=tools, systems=parts, camera=camera, bounds=bounds)


def cuts_of(world: World) -> CutSurface:
    found = world.organs[0].cuts
    assert found is not None
    return found


def saw(world: World, begin: int, end: int) -> None:
    """A blade through the block at 0.2 m/s, 7 mm deep."""
    for tick in range(begin, end):
        world.apply(ToolInput(0, (-0.02 + 0.0002 * tick, 0.001, TOP - 0.007), grip=1.0, direct=True))
        world.advance()
    world.wait()


@dataclass
class Half:
    """In the middle of the cut."""

    state: Saved
    slots: dict[int, np.ndarray]


@pytest.fixture(scope="module")
def both() -> tuple[World, Half]:
    """A world that was cut along its length, a second later, and what it was in the middle."""
    world = viscera.make(Scenario("flesh", build), device="cpu", cores=1)
    saw(world, 0, 96)
    half = Half(world.save_state(), slots(world))
    saw(world, 96, 208)
    world.apply(ToolInput(0, (0.05, 0.0, TOP + 0.05), active=False))
    world.step(800)
    return world, half


@pytest.fixture(scope="module")
def cut(both: tuple[World, Half]) -> World:
    return both[0]


def slots(world: World) -> dict[int, np.ndarray]:
    """Middle of every triangle of a cut face, by its number in the skin [m]."""
    faces, middle, _ = cuts_of(world).inner_faces()
    return dict(zip(faces.tolist(), middle, strict=True))


def test_faces_of_cuts_keep_their_texels_when_more_is_cut(both: tuple[World, Half]) -> None:
    before, now = both[1].slots, slots(both[0])
    assert len(now) > len(before) > 20
    # Their corners may move to where the cut went on, within the cell.
    assert all(np.linalg.norm(now[face] - place) < SPACING for face, place in before.items())


def test_their_texels_have_the_area_of_the_faces(cut: World) -> None:
    skin, shape = cut.organs[0].need_skin(), cuts_of(cut).linked.shape
    outside = len(shape.triangles) - shape.inner
    corners = cut.organs[0].vertices.numpy()[shape.triangles[outside:]].astype(np.float64)
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()
    inner = skin.face.numpy() >= outside
    # Each square is covered by whole texels: only rounding is left.
    assert skin.area.numpy()[inner].sum() == pytest.approx(area, rel=1e-3)
    assert area > 1.5e-4


def test_what_is_drawn_of_them_is_in_the_upper_part_of_the_texture(cut: World) -> None:
    shown = cut.snapshot()
    count, shape = shown.counts["flesh/uv"], cuts_of(cut).linked.shape
    uv = shown.arrays["flesh/uv"][:count].reshape(-1, 2)
    inner = uv[3 * (count - shape.inner) :] + 2.0
    skin = cut.organs[0].need_skin()
    assert inner[:, 1].min() >= skin.width / skin.height
    assert inner.min() >= 0.0
    assert inner.max() <= 1.0
    assert uv[: 3 * (count - shape.inner)].min() > -0.1


def test_off_the_cut_the_texture_stays_as_it_was(cut: World) -> None:
    """Corners whose points were not moved keep their places in it exactly; points that were are at the cut."""
    surface = cuts_of(cut)
    first, now = surface._first, surface.linked.shape
    count = len(first.triangles)
    before = cut.organs[0].need_skin().atlas.corners[:count].astype(np.float32)
    shown = cut.snapshot().arrays["flesh/uv"][:count].reshape(-1, 3, 2)
    places = now.rest[now.triangles[:count]]
    stayed = (places == first.rest[first.triangles]).all(axis=2)
    assert np.allclose(shown[stayed], before[stayed], atol=1e-6)
    moved = places[~stayed]
    assert 20 < len(moved) < 0.3 * places[..., 0].size
    middle = surface.inner_faces()[1]
    assert np.linalg.norm(moved[:, None] - middle, axis=2).min(axis=1).max() < 1.5 * SPACING


def test_a_film_goes_from_the_outside_over_the_edge_into_the_cut(cut: World) -> None:
    """Whoever is behind my edge has me behind the same edge; and the surface has no rim but where several cuts
    meet."""
    surface = cut.system("film").holds.surface
    triangles, across = surface.view.triangles.numpy(), surface.across.numpy()
    sound = (triangles != np.roll(triangles, 1, axis=1)).all(axis=1)
    face, edge = np.nonzero(across >= 0)
    assert all(face[k] in across[across[face[k], edge[k]]] for k in range(len(face)))
    assert not (across[~sound] >= 0).any()
    assert (across[sound] >= 0).mean() > 0.98
    outside = len(cuts_of(cut).linked.shape.triangles) - cuts_of(cut).linked.shape.inner
    over = (face < outside) & (across[face, edge] >= outside)
    assert over.sum() > 10


def test_edges_that_were_turned_as_it_was_cut_are_those_of_all_triangles(cut: World) -> None:
    surface = cut.system("film").holds.surface
    triangles, across = surface.view.triangles.numpy(), surface.across.numpy()
    behind: dict[frozenset[int], list[tuple[int, int]]] = {}
    around: dict[int, list[int]] = {}
    for face, corners in enumerate(triangles.tolist()):
        if len(set(corners)) == 3:
            for k in range(3):
                behind.setdefault(frozenset((corners[k], corners[(k + 1) % 3])), []).append((face, k))
                around.setdefault(corners[k], []).append(face)
    expected = np.full_like(across, -1)
    for pair in behind.values():
        if len(pair) == 2:
            expected[pair[0]], expected[pair[1]] = pair[1][0], pair[0][0]
    assert np.array_equal(across, expected)
    start, fan = surface.fan_start.numpy(), surface.fan.numpy()
    assert all(
        fan[start[v] : start[v + 1]].tolist() == around.get(v, []) for v in range(len(surface.vertices))
    )  # fmt: skip


def test_maps_of_texels_are_those_of_all_triangles_made_anew(cut: World) -> None:
    skin = cut.organs[0].need_skin()
    cut.turns.show_now()
    names = ("position", "tangent_u", "tangent_v", "metric", "area")
    before = {name: getattr(skin, name).numpy().copy() for name in names}
    skin.forget()
    skin.device.record(lambda stage: rebuild_skin(stage, skin), work=skin.count).run()
    for name in names:
        assert np.array_equal(before[name], getattr(skin, name).numpy(), equal_nan=True)


def test_faces_have_the_colour_of_what_lies_behind_as_they_come(cut: World) -> None:
    tint = cut.system("flesh.tint").holds
    pixels = tint.ink_system.holds.pixels.numpy().copy()
    dark = np.rint(255.0 * np.array(DARK)).astype(np.uint8)
    assert (pixels[..., :3] == dark).all(axis=-1).sum() > 500
    tint.loaded()
    assert np.array_equal(pixels, tint.ink_system.holds.pixels.numpy())


def test_cut_faces_ooze_and_all_blood_is_there(cut: World) -> None:
    check_blood(cut)


@pytest.mark.cuda
def test_on_a_gpu_they_ooze_too() -> None:
    world = viscera.make(Scenario("flesh", build), device="cuda")
    saw(world, 0, 208)
    world.apply(ToolInput(0, (0.05, 0.0, TOP + 0.05), active=False))
    world.step(800)
    check_blood(world)


def check_blood(cut: World) -> None:
    values = cut.measure_values()
    assert values["oozes"] == OOZING
    assert values["open_vessels"] == 0.0
    assert values["bleeding"] > 0.2
    blood, bleeders = cut.system("film").holds, cut.system("wounds").holds.wounds
    count = int(blood.state.count.numpy()[0])
    outside = len(cuts_of(cut).linked.shape.triangles) - cuts_of(cut).linked.shape.inner
    assert (blood.state.face.numpy()[:count] >= outside).sum() > 5
    given = float(bleeders.view.given.numpy().sum())
    waits = int(bleeders.queue.count.numpy()[0])
    held = blood.state.volume.numpy()[:count].astype(np.int64).sum() + bleeders.queue.volume.numpy()[:waits].sum()
    assert held == given > 0
    # And it is seen there.
    picture, skin = cut.system("film_picture").holds.picture(), cut.organs[0].need_skin()
    assert (picture[skin.width :, :, 0] > 20).sum() > 30


def test_saved_in_the_middle_of_the_cut_it_goes_on_to_the_bit(both: tuple[World, Half]) -> None:
    end = both[0].state_hash()
    again = viscera.make(Scenario("flesh", build), device="cpu", cores=2)
    again.load_state(both[1].state)
    saw(again, 96, 208)
    again.apply(ToolInput(0, (0.05, 0.0, TOP + 0.05), active=False))
    again.step(800)
    assert again.state_hash() == end


def test_so_it_does_when_more_is_cut_than_there_is_room_for() -> None:
    """Which of the links are drawn is kept too; blood runs over what is."""
    scenario = Scenario("flesh", lambda setting: build(setting, room=20))
    world, again = (viscera.make(scenario, device="cpu", cores=1) for _ in range(2))
    saw(world, 0, 192)
    assert "more of the flesh is cut than can be drawn" in world.warning.lower()
    assert len(cuts_of(world).linked.links) <= 20
    again.load_state(world.save_state())
    for one in (world, again):
        saw(one, 192, 272)
    assert world.measure_values()["bleeding"] > 0.1
    assert again.state_hash() == world.state_hash()


def test_heat_stays_and_spreads_on_a_cut_face(cut: World) -> None:
    skin = cut.organs[0].need_skin()
    warmth = heat.make(skin, heat.HeatParams())
    face = int(cuts_of(cut).inner_faces()[0][20])
    own = np.flatnonzero(skin.face.numpy() == face)
    hot = warmth.temperature.numpy()
    hot[own[0]] = 40.0
    warmth.temperature.assign(hot)
    before = heat.energy(warmth)
    program = skin.device.record(lambda stage: (heat.follow(stage, warmth), heat.step(stage, warmth)))
    for _ in range(20):
        program.run()
    heat.check(warmth)
    now = warmth.temperature.numpy()
    # To its neighbours in the square, and to those of the quad's other half; not beyond.
    square = (skin.face.numpy() - skin.outside) // 2 == (face - skin.outside) // 2
    assert now[own[0]] < 35.0
    assert now[own[1]] > 0.1
    assert np.abs(now[~square]).max() == 0.0
    assert heat.energy(warmth) == pytest.approx(before, rel=1e-4)


def test_a_burn_on_a_cut_face_reaches_the_masses_behind_it(cut: World) -> None:
    organ, surface = cut.organs[0], cuts_of(cut)
    skin, tissue = organ.need_skin(), organ.tissue
    springs, sampling = make_burning(tissue), make_face_sampling(skin)
    behind = surface.masses_behind()
    set_faces(sampling, behind)
    faces, middle, normal = surface.inner_faces()
    # The masses of a face lie behind it, within a cell.
    node_at = np.full(tissue.layout.slots, -1)
    node_at[tissue.layout.slot_of_node] = np.arange(len(tissue.params.nodes))
    place = tissue.rest_positions()[node_at[behind[(faces - skin.outside) // 2]]]
    depth = ((middle - place) * normal).sum(axis=1)
    assert np.quantile(depth, 0.1) > 0.0
    assert np.linalg.norm(middle - place, axis=1).max() < 1.5 * SPACING
    # One face is burnt through: so is its mass, and no other.
    burnt = np.zeros(skin.width * skin.height, dtype=np.float32)
    quad = int(faces[10] - skin.outside) // 2
    burnt[(skin.face.numpy() - skin.outside) // 2 == quad] = 2.0
    level = wp.array(burnt, dtype=wp.float32, device="cpu")
    tissue.device.record(lambda stage: sample_faces(stage, springs, sampling, level)).run()
    found = springs.burn.numpy()
    assert np.flatnonzero(found).tolist() == [behind[quad]]
    assert found[behind[quad]] == pytest.approx(1.0)


def test_squares_lie_apart_and_too_many_are_refused() -> None:
    squares = squares_for(300, 128)
    corners = squares.corners().reshape(300, 6, 2) * [squares.width, squares.height]
    low, high = corners.min(axis=1), corners.max(axis=1)
    assert (high - low == squares.side).all()
    assert low[:, 1].min() >= squares.width + GUTTER
    assert high.max(axis=0)[0] <= squares.width - GUTTER
    assert high.max(axis=0)[1] <= squares.height - GUTTER
    apart = np.maximum(low[:, None] - high[None], low[None] - high[:, None]).max(axis=2)
    assert apart[~np.eye(300, dtype=bool)].min() >= 2 * GUTTER
    with pytest.raises(InputError, match="no room in a texture 64"):
        squares_for(2_000, 64)
    with pytest.raises(InputError, match="need a skin"):
        viscera.cuttable("block", *_block(), inside=True)


def test_what_cannot_ooze_or_be_joined_is_refused(cut: World) -> None:
    vessels, surface = cut.system("wounds").holds, cut.system("film").holds.surface
    with pytest.raises(InputError, match="no cut faces"):
        systems.oozing(viscera.cuttable("block", *_block()), vessels, range(1))
    with pytest.raises(InputError, match="wounds 5 to 98 are to ooze, there are 12"):
        systems.oozing(cut.organs[0], vessels, range(5, 99))
    with pytest.raises(InputError, match="2 triangles for a part"):
        set_triangles(surface, 0, np.zeros((2, 3), dtype=np.int32))
    with pytest.raises(InputError, match="no triangle -1"):
        set_place(vessels.wounds, 0, -1)


def _block() -> tuple[Body, Tissue]:
    body = viscera.block((4, 4, 4), SPACING)
    params = LatticeParams(
        nodes=body.nodes, spacing=SPACING, origin=body.origin, anchored=body.positions[:, 2] < 0.5 * SPACING,
        material=FLESH, stiffest=FLESH.young,
    )  # fmt: skip
    return body, make_lattice(viscera.open_device("cpu", cores=1), params)
