"""A clip on a vessel: it presses the wall together and keeps it dry; pulled off, it bleeds again."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera import Contents, Scenario, Setting, ToolInput, World, systems
from viscera.scenarios import artery
from viscera.scenarios.artery import CLIPS, HEIGHT, RADIUS, SCALPEL
from viscera.tissue.clamping import let_clamp, need_clamps


def build(setting: Setting) -> Contents:
    contents = artery.build(setting)
    organ = contents.organs[0]
    let_clamp(organ.tissue)
    vessels = next(system.holds for system in contents.systems if system.name == "wounds")
    first, *others = contents.systems
    contents.systems = [first, systems.clamping(organ, vessels), *others]
    return contents


def clip(world: World, x: float) -> None:
    for tick in range(160):
        world.apply(ToolInput(CLIPS, (x, 0.0, HEIGHT + RADIUS), grip=1.0 if tick > 110 else 0.0, direct=True))
        world.advance()
    world.apply(ToolInput(CLIPS, (x, 0.0, HEIGHT + 0.05), active=False))


def cut(world: World, x: float) -> None:
    for tick in range(200):
        place = (x, -0.02 + 0.0002 * tick, HEIGHT - RADIUS)
        world.apply(ToolInput(SCALPEL, place, grip=1.0, direct=True))
        world.advance()
    world.apply(ToolInput(SCALPEL, (x, 0.03, HEIGHT + 0.05), active=False))
    world.step(64)


@pytest.fixture(scope="module")
def world() -> World:
    world = viscera.make(Scenario("clamped_artery", build), device="cpu", cores=1)
    clip(world, -0.010)
    world.step(300)
    cut(world, 0.004)
    return world


def test_a_clip_presses_the_wall_together_and_no_blood_flows_beyond_it(world: World) -> None:
    values = world.measure_values()
    assert values["clips_held"] == 1.0
    threads = need_clamps(world.organs[0].tissue).threads
    one, other = threads.at.numpy()[:2]
    # The vessel is 12 mm thick; the clip leaves half of that.
    assert np.linalg.norm(one - other) == pytest.approx(0.5 * 2.0 * RADIUS, rel=0.15)
    assert threads.tension.numpy()[0] > 0.02
    assert values["vessel_cut"] == 1.0
    assert values["bleeding"] == 0.0


def test_a_clip_that_slips_lets_blood_flow_again(world: World) -> None:
    """What it holds is lowered below what the wall presses with: the same as pulling harder."""
    threads = need_clamps(world.organs[0].tissue).threads
    hold = threads.hold.numpy().copy()
    hold[0] = 0.5 * float(threads.tension.numpy()[0])
    threads.hold.assign(hold)
    world.step(64)
    values = world.measure_values()
    assert (values["clips_held"], values["clips_slipped"]) == (0.0, 1.0)
    assert values["bleeding"] > 1.0


@pytest.mark.slow
def test_a_saved_clip_holds_on_to_the_bit() -> None:
    one, other = (viscera.make(Scenario("clamped_artery", build), device="cpu", cores=1) for _ in range(2))
    # A clip in nothing is counted, and nothing happens.
    one.apply(ToolInput(CLIPS, (0.0, 0.05, HEIGHT + 0.05), grip=1.0))
    one.step(120)
    values = one.measure_values()
    assert (values["clips_held"], values["clips_refused"]) == (0.0, 1.0)
    clip(one, 0.004)
    one.step(5)
    other.load_state(one.save_state())
    for world in (one, other):
        world.step(40)
    assert other.state_hash() == one.state_hash()
    assert other.measure_values()["clips_held"] == 1.0
