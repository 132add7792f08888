"""A tool follows its hand only as far as tissue and table let it, and comes free when the hand lifts."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import viscera
from viscera.device import Device
from viscera.inputs import ToolInput
from viscera.instruments import Instrument, Tool, kit
from viscera.scenarios import Scenario, Setting
from viscera.tissue.materials import SOFT_TISSUE
from viscera.world import Contents, World, block, looking_down, organ
from viscera.world.holding import MOST_FORCE, Holding

HIGH = 0.024
SIDE = 0.024
"""Height of the block, and how far it goes to either side [m]."""
TOOLS: list[Callable[[], Instrument]] = [lambda: kit.probe(0.008), kit.hook, kit.suction]


def make(device: Device) -> World:
    def build(setting: Setting) -> Contents:
        body = block((12, 12, 6), 0.004)
        base = body.positions[:, 2] < 0.002
        tissue = organ(
            "block", body, setting.device, material=SOFT_TISSUE, anchored=base, poisson=0.3, viscous_time=2e-4,
            longest_viscous_time=2e-4, drag=15.0,
        )  # fmt: skip
        camera, bounds = looking_down([tissue], (0.1, -0.9, 0.9))
        tools = kit.hand_out([one() for one in TOOLS], (0.0, 0.0, 0.05))
        return Contents(organs=[tissue], tools=tools, camera=camera, bounds=bounds)

    return viscera.make(Scenario("hold", build), device=device)


@pytest.fixture(scope="module")
def world(cpu: Device) -> World:
    return make(cpu)


def go(world: World, tool: int, place: ArrayLike, ticks: int, turn: ArrayLike = (0.0, 0.0, 0.0, 1.0)) -> float:
    """The hand goes there at once, turned like this; the strongest force on its tool meanwhile [N]."""
    x, y, z = np.asarray(place, dtype=float).tolist()
    a, b, c, d = np.asarray(turn, dtype=float).tolist()
    world.apply(ToolInput(tool, (x, y, z), (a, b, c, d), grip=1.0))
    strongest = 0.0
    for _ in range(ticks):
        world.step()
        strongest = max(strongest, float(np.linalg.norm(world.tools[tool].force)))
    return strongest


def leave(world: World, tool: int) -> None:
    """The hand lifts, and the tissue is as it was."""
    go(world, tool, (0.0, 0.0, HIGH + 0.03), 250)
    assert world.tools[tool].force == (0.0, 0.0, 0.0)
    assert world.hands[tool].tip[2] == pytest.approx(HIGH + 0.03, abs=1e-4)
    world.apply(ToolInput(tool, (0.0, 0.0, HIGH + 0.03), active=False))
    world.step(400)
    assert np.abs(world.organs[0].tissue.displacement()).max() < 1e-4


@pytest.mark.parametrize("tool", range(len(TOOLS)))
def test_pressed_deep_and_dragged_it_is_not_buried(world: World, tool: int) -> None:
    go(world, tool, (0.0, 0.0, HIGH + 0.015), 60)
    strongest = go(world, tool, (0.0, 0.0, HIGH - 0.03), 250)
    strongest = max(strongest, go(world, tool, (0.012, 0.004, HIGH - 0.03), 250))
    force = np.array(world.tools[tool].force)
    assert 0.05 < strongest < MOST_FORCE
    assert force[2] > 0.5 * np.linalg.norm(force)  # tissue is below it, not over it
    assert world.hands[tool].tip[2] > 0.003
    leave(world, tool)


@pytest.mark.parametrize("tool", range(len(TOOLS)))
def test_pressed_below_an_edge_it_stays_over_the_table(world: World, tool: int) -> None:
    """Down beside the block and in under it: the base holds fast, and the table is there."""
    bars = world.hands[tool].bars
    go(world, tool, (0.0, -SIDE, HIGH + 0.015), 100)
    go(world, tool, (0.0, -SIDE, -0.02), 250)
    go(world, tool, (0.0, -SIDE + 0.03, -0.02), 250)
    low = world.hands[tool].end[: bars.count, :, 2].min(axis=1) - bars.radii
    assert low.min() > -5e-5
    assert world.hands[tool].tip[1] < -SIDE + 0.006
    leave(world, tool)


@pytest.mark.parametrize(("depth", "share"), [(0.0005, 1.0), (0.001, 1.0), (0.0015, 0.5), (0.0025, 0.0)])
def test_what_is_about_to_pass_tissue_does_not_slide_through_it(depth: float, share: float) -> None:
    """A shaft between two lobes feels a force that leads neither way along it."""
    tissue = SimpleNamespace(substeps=3, cutting=None, tool_gauge=lambda slot: (depth, 1.0))
    organ: Any = SimpleNamespace(tissue=tissue)
    holding = Holding(Tool(0, kit.probe(0.004)), [organ])
    holding.feel((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 0)
    aside, away = np.array([1e-4, -5e-5, 0.0]), np.array([0.0, 0.0, 2e-4])
    assert holding.allow(aside)[:2] == pytest.approx(share * aside[:2])
    assert holding.allow(away) == pytest.approx(away)
    tissue.cutting = object()
    holding.feel((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 0)
    assert holding.allow(aside)[:2] == pytest.approx(aside[:2])


def test_a_blow_is_no_harder_than_a_tool_may_press(world: World) -> None:
    """A hand that jumps from above the block to below it."""
    for tool in range(len(TOOLS)):
        assert go(world, tool, (0.003, 0.002, -0.05), 100) < MOST_FORCE
        leave(world, tool)


@pytest.mark.parametrize("tool", range(len(TOOLS)))
def test_a_hand_that_turns_takes_its_tool_along_but_not_through_the_table(world: World, tool: int) -> None:
    """A quarter of a turn in the air is followed; half a turn would put the shaft under the table, at any speed."""
    high, quarter = (0.0, 0.0, HIGH + 0.02), (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
    go(world, tool, high, 200, quarter)
    np.testing.assert_allclose(world.hands[tool].orientation, quarter, atol=1e-5)
    hand, radii = world.hands[tool], world.hands[tool].bars.radii
    for _ in range(4):
        assert go(world, tool, (0.0, 0.0, HIGH - 0.004), 100, (1.0, 0.0, 0.0, 0.0)) < MOST_FORCE
        assert (hand.end[: len(radii), :, 2].min(axis=1) - radii).min() > -1e-6
    leave(world, tool)


def fuzz(world: World, seconds: float, seed: int) -> None:
    """Presses, drags, flicks and turns from every side; once the hands have left nothing is left of it."""
    rng = np.random.default_rng(seed)
    for _ in range(round(seconds / 0.25)):
        tool = int(rng.integers(len(TOOLS)))
        place = rng.uniform((-0.04, -0.04, -0.02), (0.04, 0.04, HIGH + 0.02))
        turn = rng.normal(size=4)
        assert go(world, tool, place, int(rng.integers(20, 480)), turn / np.linalg.norm(turn)) < MOST_FORCE
        bars = world.hands[tool].bars
        low = world.hands[tool].end[: bars.count, :, 2].min(axis=1) - bars.radii
        assert low.min() > -1e-4
    for tool in range(len(TOOLS)):
        go(world, tool, (0.02 * (tool - 1), 0.0, HIGH + 0.04), 100)
    world.step(300)
    assert all(one.force == (0.0, 0.0, 0.0) for one in world.tools)
    assert np.abs(world.organs[0].tissue.displacement()).max() < 1e-4


@pytest.mark.slow
def test_whatever_hands_do_nothing_stays(cpu: Device) -> None:
    fuzz(make(cpu), 3.0, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_whatever_hands_do_for_a_minute_nothing_stays(cpu: Device, seed: int) -> None:
    fuzz(make(cpu), 60.0, seed=seed)


def test_it_goes_on_bit_for_bit_while_held_back(cpu: Device) -> None:
    world, again = make(cpu), make(cpu)
    go(world, 1, (0.0, 0.0, HIGH - 0.02), 150)
    saved = world.save_state()
    go(world, 1, (0.004, 0.0, HIGH - 0.02), 40)
    again.load_state(saved)
    go(again, 1, (0.004, 0.0, HIGH - 0.02), 40)
    assert again.state_hash() == world.state_hash()
