"""Tubes through tissue: what is cut leaks, as far as it is cut; clips and burns shut it; nothing is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

import viscera
from viscera import Contents, Scenario, Setting, kit
from viscera.blood.drops.drops import make_drops
from viscera.blood.film.params import BILE, BLOOD, SALINE, FilmParams
from viscera.blood.wounds.vessels import VesselParams, vessel_mmhg
from viscera.blood.wounds.wounds import WHOLE, make_wounds
from viscera.instruments import Clips
from viscera.timing import FRAME, TICK
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import DIRECTIONS
from viscera.world.system import Moment
from viscera.world.systems.cuts import cutting
from viscera.world.systems.film import flowing, make_film_on
from viscera.world.systems.lumen import lumen_of
from viscera.world.systems.tubes import CLIP_SIZE, PLACES, Channel, Tube, Tubes, tubes_through
from viscera.world.systems.wounds import Wound, bleeding
from viscera.world.world import World

H, CELLS = 0.003, (12, 4, 4)
FLESH = Material("flesh", 8_000.0, 1_000.0, poisson=0.3, viscous_time=2e-4, break_strain=20.0)
ARTERY = vessel_mmhg(90.0, 60.0, 1.0, 30.0)
BILE_IN = VesselParams(400.0, 400.0, radius=1.5e-3, density=1_010.0)
FULL = 1.0e-6
"""What the lumen holds [m³]."""
ALONG_X = DIRECTIONS.index((1, 0, 0))


def build(setting: Setting) -> Contents:
    """A block with an artery along x through a chain of its cells, and three masses of lumen at one end."""
    body = viscera.block(CELLS, H)
    at = body.positions
    params = LatticeParams(
        nodes=body.nodes,
        spacing=H,
        origin=body.origin,
        anchored=at[:, 2] < 0.5 * H,
        material=FLESH,
        stiffest=FLESH.young,
    )
    organ = viscera.cuttable("block", body, make_lattice(setting.device, params), texels=64, room=300, inside=True)
    line = np.array([[-0.018, 0.0015, 0.0075], [0.018, 0.0015, 0.0075]])
    inside = (at[:, 1] > -1e-6) & (at[:, 1] < 0.0031) & (at[:, 2] > 0.0059) & (at[:, 2] < 0.0091)
    fluids = FilmParams(fluids=(BLOOD, BILE, SALINE))
    film = make_film_on(organ, fluids, 500)
    assert film.surface is not None
    drops = make_drops(film.surface, fluids, film.state, None, FRAME, 100)
    wounds = make_wounds(film.surface, fluids, film.state, dt=FRAME, drops=drops.state)
    x, y, z = organ.body.mesh.corners.mean(axis=1)[0].tolist()
    waiting = [Wound((x, y, z), ARTERY, 0.15e-3)] * 2 + [Wound((x, y, z), BILE_IN, 0.1e-3, "bile")] * 2
    bleeders = bleeding(organ, wounds, waiting, clips=False)
    tube = Tube("artery", line, np.flatnonzero(inside), 0.15e-3, start=ARTERY)
    hollow = np.flatnonzero((at[:, 0] > 0.014) & (np.abs(at[:, 1]) < 1e-6) & (at[:, 2] > 0.0059) & (at[:, 2] < 0.0091))
    camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
    return Contents(
        organs=[organ],
        tools=kit.hand_out([kit.clip_applier()], place=(0.0, 0.0, 0.05)),
        systems=[
            cutting(organ),
            tubes_through(organ, bleeders.holds, [tube]),
            lumen_of(organ, bleeders.holds, hollow, range(2, 4), volume=FULL, full=BILE_IN),
            bleeders,
            flowing(film),
        ],
        camera=camera,
        bounds=bounds,
    )


@pytest.fixture(scope="module")
def world() -> World:
    return viscera.make(Scenario("tubes", build), device="cpu", cores=1)


def cut_at(world: World, x: float, *, all_of_it: bool) -> np.ndarray:
    """Springs that a plane x = const parts, or only those on one side (y below the tube's middle) of it."""
    tissue = world.organs[0].tissue
    rest = np.asarray(tissue.rest_positions())
    cut = np.zeros((13, len(rest)), dtype=np.bool_)
    for row, step in enumerate(DIRECTIONS):
        other = rest + H * np.array(step)
        cut[row] = (rest[:, 0] < x) != (other[:, 0] < x)
        if not all_of_it:
            cut[row] &= 0.5 * (rest[:, 1] + other[:, 1]) < 0.0014
    return cut


def test_a_tube_is_as_open_as_springs_across_it_are_gone(world: World) -> None:
    channel: Channel = world.system("tubes").holds.channels[0]
    none = np.zeros_like(cut_at(world, 0.001, all_of_it=True))
    channel.look(none)
    assert not channel.is_cut
    assert channel.open.max() == 0.0
    # Sections between two layers of a 2 × 2 chain: 4 axis springs, 8 + 8 of faces' diagonals less those that leave the
    # chain. Counted by hand: each of 4 masses has those of the other 4 as its partners, 16 in all.
    place = int(np.abs(channel.rest[:, 0] - 0.001).argmin())
    channel.look(cut_at(world, float(channel.rest[place, 0]), all_of_it=False))
    assert channel.open[place] == pytest.approx(4.0 / 16.0)
    assert not channel.is_cut
    channel.look(cut_at(world, float(channel.rest[place, 0]), all_of_it=True))
    assert channel.open[place] == 1.0
    assert channel.is_cut
    assert channel.cut_at == pytest.approx(channel.shares[place], abs=1.0 / PLACES)
    # A single mass that came loose at an end is no cut.
    loose = none.copy()
    end = channel.masses[int(np.argmax(world.organs[0].tissue.rest_positions()[channel.masses][:, 0]))]
    loose[:, end] = True
    for row, step in enumerate(DIRECTIONS):
        rest = np.asarray(world.organs[0].tissue.rest_positions())
        loose[row] |= np.linalg.norm(rest + H * np.array(step) - rest[end], axis=1) < 1e-9
    channel.look(loose)
    assert not channel.is_cut
    channel.look(none)


def test_what_is_fed_leaks_until_a_clip_lies_between_and_again_when_it_slips(world: World) -> None:
    tubes: Tubes = world.system("tubes").holds
    sealed = world.system("wounds").holds.wounds.view.sealed
    channel = tubes.channels[0]
    channel.look(cut_at(world, 0.001, all_of_it=True))
    tubes._flow()
    assert tubes.leaks[0, 0] >= 0
    assert not sealed.numpy()[0] & WHOLE
    # Nothing feeds its other end.
    assert tubes.leaks[0, 1] == -1
    assert sealed.numpy()[1] & WHOLE
    # A clip behind the cut shuts nothing; one before it does.
    tubes.clips[0] = 0.0, 0.9, 1.0, 3.0
    tubes._flow()
    assert tubes.leaks[0, 0] >= 0
    tubes.clips[1] = 0.0, 0.2, 1.0, 3.0
    tubes._flow()
    assert tubes.leaks[0, 0] == -1
    assert sealed.numpy()[0] & WHOLE
    tubes.clips[1, 2] = -1.0
    tubes._flow()
    assert tubes.leaks[0, 0] >= 0
    tubes.clips[:] = 0.0
    channel.look(np.zeros((13, len(channel.masses) * 0 + world.organs[0].tissue.params.nodes.shape[0]), dtype=np.bool_))
    tubes._flow()
    assert tubes.leaks[0, 0] == -1


def test_a_clip_holds_until_its_tube_pulls_with_more_than_it_holds(world: World) -> None:
    """What lies beyond x = 0 is drawn away by a tenth of a cell: the force through the tube is that of its sixteen
    springs there, summed one by one. A stump that hangs free pulls at nothing."""
    tubes: Tubes = world.system("tubes").holds
    channel, tissue = tubes.channels[0], world.organs[0].tissue
    shadow, slots = world.organs[0].shadow, tissue.layout.slot_of_node
    rest, drawn = np.asarray(tissue.rest_positions(), dtype=np.float64), 0.1 * H
    place = int(np.abs(channel.rest[:, 0] - 0.001).argmin())
    split = float(channel.rest[place, 0])
    moved = np.zeros((3, tissue.layout.slots), dtype=np.float32)
    moved[0, slots] = np.where(rest[:, 0] > split, drawn, 0.0)
    before, table = shadow.displacement.numpy().copy(), shadow.tissue.constants.stiffness.numpy().reshape(13, -1)
    most, expected, count = float(shadow.tissue.state.live.host[3]), 0.0, 0
    nodes = tissue.params.nodes[channel.masses].tolist()
    mine = {tuple(node): mass for mass, node in zip(channel.masses, nodes, strict=True)}
    for node, mass in mine.items():
        for row, step in enumerate(DIRECTIONS):
            other = mine.get(tuple(np.add(node, step)))
            if other is not None and (rest[mass, 0] > split) != (rest[other, 0] > split):
                way = rest[other] - rest[mass] + np.array([drawn * np.sign(step[0]), 0.0, 0.0])
                longer = np.linalg.norm(way) - H * np.linalg.norm(step)
                expected += most * float(table[row, slots[mass]]) * longer * abs(way[0]) / np.linalg.norm(way)
                count += 1
    assert count == 16
    shadow.displacement.assign(moved.ravel())
    try:
        force = tubes.pull(0, float(channel.shares[place]))
        assert force == pytest.approx(expected, rel=1e-4)
        for hold, holds in ((1.01 * force, 1.0), (0.99 * force, -1.0)):
            tubes.clips[0] = 0.0, channel.shares[place], 1.0, hold
            tubes._slip()
            assert tubes.clips[0, 2] == holds
        assert tubes.numbers[0] == 1
        # Elsewhere nothing is stretched.
        assert tubes.pull(0, float(channel.shares[place - 3])) == pytest.approx(0.0, abs=1e-9)
        whole = table.copy()
        table[:] = 0.0
        assert tubes.pull(0, float(channel.shares[place])) == 0.0
        table[:] = whole
    finally:
        shadow.displacement.assign(before)
    tubes.clips[:] = 0.0
    tubes.numbers[:] = 0


def test_an_applier_clips_the_nearest_tube_and_nothing_far_away(world: World) -> None:
    tubes: Tubes = world.system("tubes").holds
    tool = world.hands[0]
    tubes._follow()
    before = tool.tip.copy()
    tool.tip[:] = channel_place(tubes, 4) + np.array([0.0, 0.0, 0.003])
    tubes._clip(tool, Clips())
    assert tubes.held(0).tolist() == [pytest.approx(tubes.channels[0].shares[4])]
    tool.tip[:] = channel_place(tubes, 4) + np.array([0.0, 0.0, 0.02])
    tubes._clip(tool, Clips())
    assert tubes.numbers[1] == 1
    assert len(tubes.held(0)) == 1
    # A hand is told why, until its next clip holds.
    assert "the artery, is 20 mm from the tips" in world.warning
    tool.tip[:] = channel_place(tubes, 6)
    tubes._clip(tool, Clips())
    assert world.warning == ""
    tool.tip[:] = before
    tubes.clips[:], tubes.numbers[:] = 0.0, 0


def test_an_applier_that_tissue_holds_back_clips_where_it_stands_and_none_on_its_way(world: World) -> None:
    """5 mm before its hand: at 20 mm/s it is on its way, standing still it comes no nearer."""
    tubes: Tubes = world.system("tubes").holds
    tool = world.hands[0].copy()
    tool.tip[:] = channel_place(tubes, 4)
    tool.hand[:] = tool.tip + np.array([0.005, 0.0, 0.0])
    tubes._follow()

    def clips_at(speed: float) -> int:
        tool.tips[1] = tool.tip
        tool.tips[0] = tool.tip - np.array([speed * TICK, 0.0, 0.0])
        tubes._put_on(cast("Moment", SimpleNamespace(using=lambda _: [(tool, Clips())])))
        return len(tubes.held(0))

    try:
        assert clips_at(0.02) == 0
        assert clips_at(0.0) == 1
        assert clips_at(0.0) == 1  # one for each press
    finally:
        tubes.clips[:], tubes._down[:] = 0.0, False


def test_a_clip_is_drawn_on_the_sheath_of_its_tube_where_it_is_seen(world: World) -> None:
    tubes = world.system("tubes").holds
    cell = world.organs[0].tissue.params.spacing
    tubes.clips[0] = 0.0, 0.5, 1.0, 3.0
    tubes._draw()
    place = int(np.abs(tubes.channels[0].shares - 0.5).argmin())
    assert tubes._shown[0, 7] == 1.0
    assert tubes._shown[0, 2] >= channel_place(tubes, place)[2] + 0.5 * cell
    assert cell < 2.0 * CLIP_SIZE
    tubes.clips[:] = 0.0
    tubes._draw()
    assert tubes._shown[0, 7] == 0.0


def channel_place(tubes: Tubes, place: int) -> np.ndarray:
    return tubes.channels[0].rest[place]


def test_a_nicked_lumen_has_a_hole_and_empties_by_what_has_left(world: World) -> None:
    lumen, wounds = world.system("lumen").holds, world.system("wounds").holds.wounds
    cut = cut_at(world, 0.0165, all_of_it=True)
    lumen._cuts.springs = lambda: cut
    try:
        lumen._look()
    finally:
        del lumen._cuts.springs
    assert lumen.state[0] == 1.0
    assert not wounds.view.sealed.numpy()[2] & WHOLE
    # Half of it has left: half of the pressure is left.
    given = wounds.view.given.numpy()
    given[2] = round(0.5 * FULL / 1e-15)
    wounds.view.given.assign(given)
    lumen._empty()
    assert lumen.state[1] == pytest.approx(0.5)
    assert wounds.vessels[2].systolic == pytest.approx(0.5 * BILE_IN.systolic)
    assert lumen.spilt() == pytest.approx(0.5 * FULL)


def test_who_watches_for_cuts_looks_at_what_tears_too(world: World) -> None:
    """All beyond the middle is drawn away, farther than flesh stretches: no blade has cut anything."""
    saved, tubes, organ = world.save_state(), world.system("tubes").holds, world.organs[0]
    tissue, cuts = organ.tissue, organ.shadow.cuts
    assert cuts is not None
    before = cuts.changes
    rest = np.asarray(tissue.rest_positions())
    moved = np.zeros((3, tissue.layout.slots), dtype=np.float32)
    moved[0, tissue.layout.slot_of_node] = np.where(rest[:, 0] > 0.001, 40.0 * H, 0.0)
    organ.shadow.displacement.assign(moved.ravel())
    now = cast("Moment", SimpleNamespace(using=lambda _: []))
    try:
        world.system("cutting").frame(now)
        assert cuts.springs().any()
        assert cuts.changes > before
        tubes.frame(now)
        assert tubes._seen == cuts.changes
    finally:
        world.load_state(saved)
