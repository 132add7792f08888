"""The hand that works on where a scenario's script ends."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera.bench._working_hand import DOWN, DRAWN, STROKE, WorkingHand
from viscera.bench.live import hand_of
from viscera.device import Device
from viscera.instruments import Marks


def test_it_takes_every_instrument_in_turn_and_presses_each_on_the_organ(cpu: Device) -> None:
    world = viscera.make("cautery", device=cpu, detail=0.25)
    hand = WorkingHand(world, 1000, 4 * STROKE)
    low, high = world.organs[0].body.mesh.bounds
    used = []
    for stroke in range(4):
        middle = 1000 + stroke * STROKE + DOWN + DRAWN // 2
        (one,) = hand.inputs(middle)
        used.append(one.tool)
        assert one.active
        assert one.grip == 1.0
        assert (np.abs(np.array(one.position[:2]) - 0.5 * (low + high)[:2]) < 0.5 * (high - low)[:2] + 0.01).all()
        assert hand.inputs(middle + 1) == []
    assert used == [0, 1, 0, 1]
    assert hand.inputs(0) == []
    world.close()


def test_it_is_felt_where_the_script_would_rest(cpu: Device) -> None:
    """For the length of one stroke, from when the scenario's own hand is done."""
    world = viscera.make("cautery", device=cpu, detail=0.25)
    given = hand_of(world, 20.0)
    world.tick = 10_000  # the script is done by then
    for _ in range(DOWN + 400):
        for one in given(world.tick):
            world.apply(one)
        world.step()
    assert world.peak_force > 0.01
    world.close()


@pytest.mark.parametrize("name", ["palpation", "river"])
def test_pins_are_not_drawn_over_tissue_and_worlds_without_tissue_keep_their_script(name: str, cpu: Device) -> None:
    world = viscera.make(name, device=cpu, detail=0.25)
    hand = WorkingHand(world, 0, 8 * STROKE)
    assert hand.works == bool(world.organs)
    pins = {tool.number for tool in world.hands if tool.instrument.effect(Marks) is not None}
    taken = {one.tool for tick in range(0, 8 * STROKE, 800) for one in hand.inputs(tick)}
    assert not taken & pins
    world.close()
