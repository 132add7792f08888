"""A world with a grasper: what it takes follows the hand, stays clamped, and is replayed to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import viscera
from viscera import Contents, Scenario, Setting, ToolInput, World, kit
from viscera.errors import InputError
from viscera.instruments import Grasps
from viscera.tissue.grasping import FLATTEST, need_grasping
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams

FLESH = Material("flesh", 8_000.0, 1_000.0, poisson=0.35, viscous_time=2e-4)
SPACING, CELLS = 0.003, (8, 6, 4)
TOP = CELLS[2] * SPACING
LOW, HIGH = (0.0, 0.0, TOP - 0.004), (0.0, 0.0, TOP + 0.001)
GRASPER, PROBE = 0, 1


def build(setting: Setting) -> Contents:
    body = viscera.block(CELLS, SPACING)
    params = LatticeParams(
        nodes=body.nodes, spacing=SPACING, origin=body.origin, anchored=body.positions[:, 2] < 0.5 * SPACING,
        material=FLESH, stiffest=FLESH.young, drag=10.0,
    )  # fmt: skip
    organ = viscera.cuttable("flesh", body, make_lattice(setting.device, params))
    camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
    tools = kit.hand_out([kit.grasper(), kit.probe(0.004)], place=(0.0, 0.0, TOP + 0.02), apart=0.04)
    return Contents(organs=[organ], tools=tools, camera=camera, bounds=bounds)


def make(cores: int = 1) -> World:
    return viscera.make(Scenario("flesh", build), device="cpu", cores=cores)


def grasp(world: World, begin: int, end: int) -> None:
    """A hand that goes down with open jaws, closes them, lifts, and stays."""
    for tick in range(begin, end):
        height = LOW if tick < 160 else HIGH
        world.apply(ToolInput(GRASPER, height, grip=1.0 if tick >= 80 else 0.0))
        world.advance()
    world.wait()


@pytest.fixture(scope="module")
def lifted() -> World:
    world = make()
    grasp(world, 0, 260)
    return world


def top(world: World) -> float:
    """Height of the flesh in the middle of its upper side [m]."""
    tissue = world.organs[0].tissue
    rest = tissue.rest_positions()
    middle = (np.hypot(rest[:, 0], rest[:, 1]) < SPACING) & (rest[:, 2] > TOP - 0.5 * SPACING)
    return float((rest[middle, 2] + tissue.displacement()[middle, 2]).mean())


def test_what_is_grasped_comes_along_and_is_felt(lifted: World) -> None:
    assert top(lifted) > TOP + 0.002
    assert lifted.tools[GRASPER].force[2] < -0.1
    assert need_grasping(lifted.organs[0].tissue).held(0) > 5


def test_jaws_stop_at_what_they_hold(lifted: World) -> None:
    """And the page is shown how far they closed."""
    tool = lifted.hands[GRASPER]
    assert tool.jaws < 1.0
    assert need_grasping(lifted.organs[0].tissue).squeeze(0) >= FLATTEST - 0.05
    assert lifted.tools[GRASPER].grip == pytest.approx(max(0.5, tool.jaws))


def test_it_stays_clamped_while_the_other_tool_works(lifted: World) -> None:
    saved = lifted.save_state()
    before = top(lifted)
    for tick in range(100):
        lifted.apply(ToolInput(PROBE, (0.008, 0.006, TOP + 0.008 - 0.0001 * tick), grip=0.0))
        lifted.advance()
    lifted.wait()
    assert lifted.tools[PROBE].force[2] > 0.05
    assert top(lifted) == pytest.approx(before, abs=5e-4)
    lifted.load_state(saved)


def test_open_jaws_let_go(lifted: World) -> None:
    saved = lifted.save_state()
    for _ in range(200):
        lifted.apply(ToolInput(GRASPER, (0.0, 0.0, TOP + 0.02), grip=0.0))
        lifted.advance()
    lifted.wait()
    assert top(lifted) == pytest.approx(TOP, abs=3e-4)
    assert need_grasping(lifted.organs[0].tissue).held(0) == 0
    assert lifted.tools[GRASPER].force == (0.0, 0.0, 0.0)
    lifted.load_state(saved)


def test_saved_in_the_middle_of_a_pull_it_goes_on_to_the_bit() -> None:
    """And on two cores it is the same."""
    one, other, two = make(), make(), make(cores=2)
    grasp(one, 0, 130)
    other.load_state(one.save_state())
    grasp(two, 0, 130)
    for world in (one, other, two):
        grasp(world, 130, 200)
    assert other.state_hash() == one.state_hash() == two.state_hash()
    assert need_grasping(one.organs[0].tissue).held(0) > 0


def test_parts_that_are_no_jaws_are_refused() -> None:
    def wrong(setting: Setting) -> Contents:
        contents = build(setting)
        grasper = contents.tools[0].instrument
        effects = (grasper.effects[0], Grasps(parts=(0, 2)))
        contents.tools = [replace(contents.tools[0], instrument=replace(grasper, effects=effects))]
        return contents

    with pytest.raises(InputError, match="no jaws"):
        viscera.make(Scenario("flesh", wrong), device="cpu")
