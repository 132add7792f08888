"""A world that is cut: seen, felt, kept and replayed to the bit."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import viscera
from viscera import Contents, Scenario, Setting, ToolInput, World, kit, systems
from viscera.errors import InputError
from viscera.instruments import Cuts, Instrument, Pushes
from viscera.tissue.cutting import cut_springs
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.world.live import WriteArrays

FLESH = Material("flesh", 8_000.0, 1_000.0, poisson=0.35, viscous_time=2e-4, toughness=300.0)
SPACING, CELLS = 0.003, (8, 6, 4)
TOP = CELLS[2] * SPACING


def build(setting: Setting) -> Contents:
    body = viscera.block(CELLS, SPACING)
    anchored = body.positions[:, 2] < 0.5 * SPACING
    params = LatticeParams(
        nodes=body.nodes, spacing=SPACING, origin=body.origin, anchored=anchored, material=FLESH, stiffest=FLESH.young,
        drag=10.0,
    )  # fmt: skip
    organ = viscera.cuttable("flesh", body, make_lattice(setting.device, params), texels=64)
    camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
    tools = kit.hand_out([kit.scalpel(), kit.scissors()], place=(-0.02, 0.0, TOP + 0.01))
    return Contents(organs=[organ], tools=tools, systems=[systems.cutting(organ)], camera=camera, bounds=bounds)


SCENARIO = Scenario("flesh", build)


def make(cores: int = 1) -> World:
    return viscera.make(SCENARIO, device="cpu", cores=cores)


def saw(world: World, begin: int, end: int, *, tool: int = 0, grip: float = 1.0) -> None:
    """A hand that goes down beside the block and draws the blade through it at 0.2 m/s, in 200 ticks."""
    for tick in range(begin, end):
        x = -0.02 + 0.0002 * tick
        world.apply(ToolInput(tool, (x, 0.001, TOP - 0.007), grip=grip, direct=True))
        world.advance()
    world.wait()


def is_closed(world: World) -> bool:
    cuts = world.organs[0].cuts
    assert cuts is not None
    shape = cuts.linked.shape
    corners = shape.key[shape.triangles]
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    count = int(corners.max()) + 1
    return np.array_equal(np.sort(edges @ [count, 1]), np.sort(edges @ [1, count]))


def test_what_is_cut_is_seen_and_measured() -> None:
    world = make()
    before = world.snapshot()
    saw(world, 0, 208)
    after = world.snapshot()
    assert after.measures["cut_area"] > 100.0
    assert after.versions["flesh"] > before.versions["flesh"]
    count, points = after.counts["flesh/triangles"], after.counts["flesh"]
    assert count > before.counts["flesh/triangles"]
    triangles = after.arrays["flesh/triangles"][:count]
    assert triangles.min() == 0
    assert triangles.max() < points
    assert is_closed(world)
    # Every point is somewhere near the block, and cut faces lie beside the texture.
    assert np.abs(after.arrays["flesh"][:points]).max() < 0.05
    uv = after.arrays["flesh/uv"][:count]
    outside = before.counts["flesh/triangles"]
    assert (uv[outside:] == -3.0).all()
    assert (uv[:outside] > -0.2).all()
    # Far from the cut the texture is where it was.
    far = np.abs(after.arrays["flesh/rest"][triangles[:outside], 1]).min(axis=1) > 2.5 * SPACING
    assert far.any()
    assert np.allclose(uv[:outside][far], before.arrays["flesh/uv"][:outside][far], atol=1e-5)


def test_an_open_handle_cuts_nothing() -> None:
    world = make()
    saw(world, 0, 120, grip=0.0)
    assert world.measure_values()["cut_area"] == 0.0


def test_scissors_cut_as_they_close() -> None:
    world = make()
    place, before = (-0.008, 0.001, TOP - 0.006), 0.0
    for tick in range(200):
        world.apply(ToolInput(1, place, grip=0.0 if tick < 100 else 1.0, direct=True))
        world.advance()
        if tick == 99:
            world.wait()
            # Pressed in, open jaws tear a little.
            before = world.measure_values()["cut_area"]
    world.wait()
    assert world.measure_values()["cut_area"] > before + 10.0


def test_a_state_in_the_middle_of_a_cut_goes_on_to_the_bit() -> None:
    one, other = make(), make()
    saw(one, 0, 105)
    other.load_state(one.save_state())
    assert other.state_hash() == one.state_hash()
    for world in (one, other):
        saw(world, 105, 208)
    assert np.array_equal(cut_springs(one.organs[0].tissue), cut_springs(other.organs[0].tissue))
    assert other.state_hash() == one.state_hash()
    assert is_closed(other)
    assert one.snapshot().counts == other.snapshot().counts


def test_one_core_and_two_cut_alike() -> None:
    hashes = []
    for cores in (1, 2):
        world = make(cores)
        saw(world, 0, 176)
        hashes.append(world.state_hash())
        world.close()
    assert hashes[0] == hashes[1]


def test_a_live_world_shows_whole_triangles() -> None:
    """Vertices, triangles and their numbers are of one cut, whenever a picture is taken."""
    world = make(2)
    live = world.go_live()
    specs = world.array_specs()
    shown = []

    def publish(write: WriteArrays) -> None:
        arrays = {name: np.zeros(spec.shape, dtype=spec.kind) for name, spec in specs.items()}
        write(arrays)
        counts, version = live.counts, live.versions["flesh"]
        triangles = arrays["flesh/triangles"][: counts["flesh/triangles"]]
        used = np.unique(triangles)
        shown.append(
            (version, len(triangles), int(used.max()) < counts["flesh"], float(np.abs(arrays["flesh"][used]).max()))
        )

    for tick in range(208):
        world.apply(ToolInput(0, (-0.02 + 0.0002 * tick, 0.001, TOP - 0.007), grip=1.0, direct=True))
        world.advance()
        if tick % 32 == 31:
            world.wait()
        if tick % 16 == 15:
            live.draw(publish, must=True)
    live.settle()
    world.wait()
    assert len({version for version, *_ in shown}) > 2
    assert all(whole for _, _, whole, _ in shown)
    assert max(far for *_, far in shown) < 0.05
    world.close()


def test_edges_that_are_no_parts_are_refused() -> None:
    knife = Instrument("knife", (Pushes(0.001), Cuts(parts=(5,))))

    def wrong(setting: Setting) -> Contents:
        contents = build(setting)
        contents.tools = kit.hand_out([knife], place=(0.0, 0.0, 0.05))
        return contents

    with pytest.raises(InputError, match=r"cuts with parts \(5,\)"):
        viscera.make(Scenario("wrong", wrong), device="cpu")


@pytest.mark.slow
def test_the_example_pays_for_its_cut(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["14_cut.py"])
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "14_cut.py"), run_name="__main__")
    assert "closed" in capsys.readouterr().out


def test_a_bit_smaller_than_a_cell_is_a_crumb_and_no_piece() -> None:
    world = make()
    cutting = world.system("cutting").holds
    nodes = world.organs[0].tissue.params.nodes
    index = NodeIndex(nodes)
    other = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
    for loose, pieces, crumbs in ((nodes[:, 0] < 1, 2.0, 0.0), ((nodes == 0).sum(axis=1) == 3, 1.0, 1.0)):
        cutting._cut = (other >= 0) & (loose != loose[other])
        cutting._notches.follow(cutting._cut)
        cutting._count()
        values = world.measure_values()
        assert (values["pieces"], values["crumbs"]) == (pieces, crumbs)
