"""A world whose tissue meets tissue: a piece that is cut off falls, lies on the table, and is taken out."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import Contents, Scenario, Setting, ToolInput, World, kit, systems
from viscera.errors import InputError
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.world.organ import Body

FLESH = Material("flesh", 20_000.0, 1_000.0, poisson=0.35, viscous_time=2e-4, toughness=5.0)
SPACING, CELLS, UP = 0.003, (8, 4, 3), 0.005
"""The block's underside is so far over the table [m]."""
TOP = UP + CELLS[2] * SPACING
SCALPEL, GRASPER = 0, 1


def build(setting: Setting) -> Contents:
    body = viscera.block(CELLS, SPACING)
    mesh, origin = body.mesh.moved([0.0, 0.0, UP]), (body.origin[0], body.origin[1], body.origin[2] + UP)
    body = Body(mesh, body.nodes, origin, SPACING)
    params = LatticeParams(
        nodes=body.nodes, spacing=SPACING, origin=body.origin, material=FLESH,
        anchored=(body.nodes[:, 0] < 2) & (body.nodes[:, 2] > 1),
        stiffest=FLESH.young, drag=10.0,
    )  # fmt: skip
    tissue = make_lattice(setting.device, params)
    tissue.set_gravity((0.0, 0.0, -9.81))
    organ = viscera.cuttable("flesh", body, tissue)
    camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
    tools = kit.hand_out([kit.scalpel(), kit.grasper()], place=(0.0, 0.0, TOP + 0.02), apart=0.04)
    return Contents(
        organs=[organ], tools=tools, systems=[systems.cutting(organ)], camera=camera, bounds=bounds,
        rubbing=0.2, table=0.0,
    )  # fmt: skip


def make(cores: int = 1) -> World:
    return viscera.make(Scenario("flesh", build), device="cpu", cores=cores)


def work(world: World, begin: int, end: int) -> None:
    """A hand that cuts a third of the block off, waits until it lies, takes it by its top and carries it away."""
    for tick in range(begin, end):
        if tick < 250:
            world.apply(ToolInput(SCALPEL, (0.0045, -0.016 + 0.0002 * max(0, tick - 90), UP - 0.011), grip=1.0))
        elif tick == 250:
            world.apply(ToolInput(SCALPEL, (0.0, 0.0, TOP + 0.03), active=False))
        else:
            height = 0.05 if tick > 520 else 0.003
            world.apply(ToolInput(GRASPER, (0.011, 0.0, height), grip=1.0 if tick > 440 else 0.0, active=tick > 352))
        world.advance()
    world.wait()


def loose(world: World) -> np.ndarray:
    """Places of the masses of the piece that is cut off [m]."""
    organ = world.organs[0]
    assert organ.pieces is not None
    edge = organ.pieces.edge
    mass = edge.mass[edge.piece == 1]
    return organ.tissue.rest_positions()[mass] + organ.tissue.displacement()[mass]


@pytest.fixture(scope="module")
def worked() -> tuple[World, World]:
    """One as it was worked on to the end, and one that was put back in the middle of it."""
    world, other = make(), make(cores=2)
    work(world, 0, 352)
    low = loose(world)
    assert world.measure_values()["pieces"] == 2.0
    # It has fallen from where it was, and lies on the table.
    assert low[:, 2].min() == pytest.approx(0.0, abs=0.3 * SPACING)
    other.load_state(world.save_state())
    for one in (world, other):
        work(one, 352, 656)
    return world, other


def test_put_back_in_the_middle_it_goes_on_to_the_bit(worked: tuple[World, World]) -> None:
    """On two cores."""
    world, other = worked
    assert other.state_hash() == world.state_hash()


def test_a_loose_piece_is_taken_out(worked: tuple[World, World]) -> None:
    world, _ = worked
    assert loose(world)[:, 2].min() > 0.02
    # The hand feels its weight, while it swings.
    organ = world.organs[0]
    high = organ.tissue.rest_positions()[:, 2] + organ.tissue.displacement()[:, 2] > 0.02
    weight = 9.81 * float(organ.tissue.mass[high].sum())
    felt = []
    for tick in range(656, 1056):
        work(world, tick, tick + 1)
        felt.append(world.tools[GRASPER].force[2])
    assert -np.mean(felt) == pytest.approx(weight, rel=0.1)


def test_without_room_it_is_said_and_nothing_is_lost(worked: tuple[World, World]) -> None:
    """More cut than can be drawn, and more pieces than are told apart."""
    world, _ = worked
    organ = world.organs[0]
    assert world.warning == ""
    assert organ.meeting is not None
    assert organ.cuts is not None
    organ.meeting.more, organ.cuts.linked.full = 3, True
    assert "the 3 smallest pass through each other" in world.warning
    assert "More of the flesh is cut than can be drawn" in world.warning
    assert world.warning.endswith("Reset to begin again.")


def test_pieces_that_are_not_told_apart_still_step() -> None:
    """A mass for each: 60 of them, and the block; all of its mass stays."""
    world = make()
    organ = world.organs[0]
    assert organ.meeting is not None
    assert organ.pieces is not None
    whole = np.ones((13, len(organ.tissue.params.nodes)), dtype=np.bool_)
    whole[:, 40:] = False
    organ.pieces.hang(whole)
    organ.meeting.land()
    assert organ.meeting.more > 0
    world.step(2)
    assert np.isfinite(organ.tissue.displacement()).all()
    assert "pass through each other" in world.warning


def test_rubbing_that_cannot_be_is_refused() -> None:
    def wrong(setting: Setting) -> Contents:
        contents = build(setting)
        contents.rubbing = -1.0
        return contents

    with pytest.raises(InputError, match="rubbing"):
        viscera.make(Scenario("flesh", wrong), device="cpu")
