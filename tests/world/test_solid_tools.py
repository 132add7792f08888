"""Tools that push with their own shape: an instrument's distance fields are felt in a world, saved and brought back."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import viscera
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.parts import PartShape
from viscera.geometry.primitives import icosphere
from viscera.inputs import ToolInput
from viscera.instruments import Instrument, Pushes, kit
from viscera.scenarios import Scenario, Setting
from viscera.tissue.materials import SOFT_TISSUE
from viscera.tissue.params import Creep, Remedies, RestSkipping
from viscera.world import Contents, World, block, looking_down, organ

RADIUS = 0.008
TOP = 0.024


def ball() -> tuple[PartShape, ...]:
    return (PartShape("ball", icosphere(RADIUS, 3), 0.0008, 0.004),)


def world_with(pushes: Pushes, device: Device, **lattice: Any) -> World:
    def build(setting: Setting) -> Contents:
        body = block((12, 12, 6), 0.004)
        base = body.positions[:, 2] < 0.002
        given: dict[str, Any] = {"poisson": 0.3, "viscous_time": 2e-4, "longest_viscous_time": 2e-4} | lattice
        tissue = organ("block", body, setting.device, material=SOFT_TISSUE, anchored=base, **given)
        camera, bounds = looking_down([tissue], (0.1, -0.9, 0.9))
        tool = Instrument("ball", (pushes,), solid=ball)
        tools = kit.hand_out([tool, kit.probe(0.004)], (0.0, 0.0, 0.06), friction=0.0)
        return Contents(organs=[tissue], tools=tools, camera=camera, bounds=bounds)

    return viscera.make(Scenario("press", build), device=device)


def press(world: World, ticks: int, depth: float = 0.004) -> np.ndarray:
    for _ in range(ticks):
        world.apply(ToolInput(0, (0.0, 0.0, TOP + RADIUS - depth), direct=True))
        world.step()
    return np.array(world.tools[0].force)


def test_a_ball_by_its_field_feels_as_the_ball_itself(device: Device) -> None:
    """Two ways to the same contact: masses inside go to the nearest point of the surface. The field is linear between
    its nodes, 0.8 mm apart, and the mesh lies up to 0.1 mm inside the ball: a few percent of 4 mm of depth."""
    round_ball = press(world_with(Pushes(RADIUS), device), 300)
    by_field = press(world_with(Pushes(RADIUS, solid=True), device), 300)
    assert round_ball[2] > 0.05
    assert by_field[2] == pytest.approx(round_ball[2], rel=0.1)
    assert np.abs(by_field[:2]).max() < 0.1 * by_field[2]


def test_a_solid_tool_comes_back_bit_for_bit_and_leaves_nothing(cpu: Device) -> None:
    world = world_with(Pushes(RADIUS, solid=True), cpu)
    press(world, 100)
    saved = world.save_state()
    press(world, 50, 0.005)
    there = world.state_hash()
    again = world_with(Pushes(RADIUS, solid=True), cpu)
    again.load_state(saved)
    press(again, 50, 0.005)
    assert again.state_hash() == there
    world.apply(ToolInput(0, (0.0, 0.0, 0.06), active=False))
    world.step(2)
    assert world.tools[0].force == (0.0, 0.0, 0.0)
    # The next tool takes the free place, and not the shape that was there.
    world.apply(ToolInput(1, (0.0, 0.0, TOP + 0.004 - 0.002), direct=True))
    world.step(400)
    probe = world.tools[1].force[2]
    fresh = world_with(Pushes(RADIUS, solid=True), cpu)
    fresh.apply(ToolInput(1, (0.0, 0.0, TOP + 0.004 - 0.002), direct=True))
    fresh.step(552)
    assert probe == pytest.approx(fresh.tools[1].force[2], rel=0.05)


def test_a_shape_that_is_not_there_is_refused(cpu: Device) -> None:
    tool = dataclasses.replace(kit.probe(0.005), effects=(Pushes(0.005, solid=True),))

    def build(setting: Setting) -> Contents:
        body = block((6, 6, 4), 0.004)
        base = body.positions[:, 2] < 0.002
        tissue = organ("block", body, setting.device, material=SOFT_TISSUE, anchored=base)
        camera, bounds = looking_down([tissue], (0.1, -0.9, 0.9))
        return Contents(organs=[tissue], tools=kit.hand_out([tool], (0.0, 0.0, 0.06)), camera=camera, bounds=bounds)

    with pytest.raises(InputError, match="probe pushes with its own shape, but has none"):
        viscera.make(Scenario("bare", build), device=cpu)


def test_features_of_the_lattice_can_be_asked_for_in_a_scenario(cpu: Device) -> None:
    creeping = world_with(Pushes(RADIUS), cpu, creep=Creep(0.5, 0.1))
    cut = world_with(Pushes(RADIUS), cpu, slabs=2)
    plain = press(world_with(Pushes(RADIUS), cpu), 400)[2]
    assert press(creeping, 400)[2] < 0.9 * plain  # it gives way
    assert press(cut, 400)[2] == plain
    held = world_with(Pushes(RADIUS), cpu, remedies=Remedies(shape=100.0))
    assert press(held, 400)[2] > 1.1 * plain  # springs to where masses were hold against the ball too


def test_tissue_that_rests_can_be_left_out_of_the_ticks_of_a_scenario(cpu: Device) -> None:
    """It sleeps until a tool touches it, and feels as it does awake: within 1 %, as forces below the bound are lost."""
    resting = world_with(Pushes(RADIUS), cpu, drag=40.0, rest_skipping=RestSkipping(force=1e-7, speed=1e-5))

    def awake() -> int:
        tissue = resting.organs[0].tissue
        now = tissue.ticks * tissue.substeps
        return int((tissue.constants.awake.numpy().reshape(2, -1)[now % 2] == now).sum())

    resting.step(2)
    assert awake() == 0
    felt = press(resting, 200)[2]
    assert awake() > 0
    full = world_with(Pushes(RADIUS), cpu, drag=40.0)
    full.step(2)
    assert felt == pytest.approx(press(full, 200)[2], rel=0.01)
