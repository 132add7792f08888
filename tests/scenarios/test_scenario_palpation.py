"""Palpation as a drill: whoever goes by the forces alone finds the nodule, and pins say whether it is there."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import viscera
from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import EndDrill, SetParameter, StartDrill, ToolInput
from viscera.instruments import FASTEST_TOOL
from viscera.scenarios.palpation import CELLS, FOUND_WITHIN, NODULES, PROBE_RADIUS, SPACING, middle
from viscera.timing import TICK
from viscera.tissue.regions import set_relative_young
from viscera.view import DrillState
from viscera.world import World

TOP = CELLS[2] * SPACING
DEPTH = 0.008
"""Of a press [m]."""
RIM = 0.5 * CELLS[0] * SPACING - 0.012
"""How far from the middle presses go [m]."""
EASY, MEDIUM, HARD = 0.0, 1.0, 2.0


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    world = viscera.make("palpation", device="cpu")
    yield world
    world.close()


def begin(made: World, seed: int, difficulty: float) -> World:
    made.apply(StartDrill(round(difficulty), seed))
    made.step(16 - made.tick % 16)
    return made


def press(world: World, x: float, y: float) -> float:
    """The force of a press there [N]: over it, straight in, and wait until it has settled to a few per cent."""
    over = (x, y, TOP + PROBE_RADIUS + 0.002)
    world.apply(ToolInput(0, over, direct=True))
    world.step(5 + math.ceil(math.dist(over, world.tools[0].position) / (FASTEST_TOOL * TICK)))
    world.apply(ToolInput(0, (x, y, TOP + PROBE_RADIUS - DEPTH), direct=True))
    world.step(40)
    return world.tools[0].force[2]


def grid(x: float, y: float, step: float, across: int) -> list[tuple[float, float]]:
    offsets = step * (np.arange(across) - 0.5 * (across - 1))
    return [(float(x + dx), float(y + dy)) for dx in offsets for dy in offsets]


def search(world: World) -> NDArray[np.float64]:
    """Where the tissue is hardest, by presses alone: a coarse grid, then a finer one around the hardest place, then the
    middle of what takes more force than the softest place of the finer one."""
    coarse = grid(0.0, 0.0, 2.0 * RIM / 5.0, 6)
    hardest = coarse[int(np.argmax([press(world, *at) for at in coarse]))]
    fine = grid(*hardest, 0.006, 3)
    forces = np.array([press(world, *at) for at in fine])
    more = forces - forces.min()
    return np.average(fine, axis=0, weights=more)


def declare(world: World, certainty: float = 1.0) -> DrillState:
    """The hand says "here it is"."""
    world.apply(EndDrill("found", certainty))
    world.step(32)
    state = world.drill_state()
    assert state is not None
    return state


def mark(world: World, x: float, y: float) -> dict[str, float]:
    """A pin goes in there, once the tool has come; what the measures say then."""
    world.apply(ToolInput(0, (x, y, TOP + 0.03), active=False))
    for grip, ticks in ((1.0, 256), (0.0, 16)):
        world.apply(ToolInput(1, (x, y, TOP), grip=grip))
        world.step(ticks)
    return world.measure_values()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "difficulty"), [(3, EASY), (8, MEDIUM)])
def test_a_searcher_who_only_feels_finds_the_nodule(made: World, seed: int, difficulty: float) -> None:
    world = begin(made, seed, difficulty)
    assert mark(world, *search(world))["found"] == 0.0, "a pin alone says nothing"
    told = declare(world, 0.75)
    assert (told.outcome, told.certainty) == ("found", 0.75)
    assert told.off is not None
    assert told.off < FOUND_WITHIN
    world.step(320)
    assert world.drill_state() == told, "nothing changes after the end"


def test_each_difficulty_is_felt_less_than_the_one_before(made: World) -> None:
    """Over the middle against as near to the rim on the other side. Half as much again is plain to whoever watches
    numbers of three digits."""
    contrasts = []
    for difficulty in (EASY, MEDIUM, HARD):
        world = begin(made, 3, difficulty)
        x, y, _ = middle(3, world.organs[0].body.positions, list(NODULES.values())[round(difficulty)])
        away = press(world, -float(x), -float(y))
        contrasts.append(press(world, float(x), float(y)) / away)
    assert contrasts[0] > 2.0
    assert contrasts[1] > 1.5
    assert contrasts[0] > contrasts[1] > contrasts[2] > 1.1


def test_a_pin_elsewhere_misses_and_what_is_hidden_is_shown(made: World) -> None:
    world = begin(made, 3, EASY)
    x, y, z = middle(3, world.organs[0].body.positions, NODULES["Easy"])
    world.apply(EndDrill("found"))
    world.step(32)
    assert world.measure_values()["time"] > 0.0
    assert world.frame().drill is not None
    assert world.snapshot().arrays["tissue.hidden"][0, 7] == 0.0, "without a pin there is nothing to judge"
    mark(world, float(x) - float(np.sign(x)) * 0.02, float(y))
    told = declare(world)
    assert (told.outcome, told.result["found"]) == ("missed", 0.0)
    assert told.off == pytest.approx(0.02, abs=0.004), "as near as the surface has vertices"
    shown = world.snapshot().arrays["tissue.hidden"][0]
    assert shown[7] == 1.0
    assert np.abs(shown[:3] - (x, y, z)).max() < 0.001


def test_a_fourth_pin_fails_at_once(made: World) -> None:
    world = begin(made, 3, EASY)
    for place in (-0.02, -0.01, 0.0, 0.01):
        mark(world, place, 0.0)
    world.step(160)
    state = world.drill_state()
    assert state is not None
    assert (state.outcome, state.failed) == ("failed", ("pins",))


def test_pins_come_one_per_press_and_the_record_brings_them_back(made: World) -> None:
    world = begin(made, 3, EASY)
    x, y, _ = middle(3, world.organs[0].body.positions, NODULES["Easy"])
    assert mark(world, float(x) - float(np.sign(x)) * 0.02, float(y))["pins"] == 1.0
    assert mark(world, 0.08, 0.0)["pins"] == 1.0, "off the tissue"
    saved = world.save_state()
    assert mark(world, float(x) + 0.006, float(y))["pins"] == 2.0
    there = world.state_hash()
    pins = world.snapshot().arrays["tissue.pins"]
    assert pins[:, 7].sum() == 2.0
    assert np.abs(pins[:2, 2] - TOP).max() < 0.002
    world.load_state(saved)
    mark(world, float(x) + 0.006, float(y))
    assert world.state_hash() == there
    world.apply(SetParameter("difficulty", HARD))
    world.step(16)
    assert world.measure_values()["pins"] == 0.0
    assert world.snapshot().arrays["tissue.pins"][:, 7].sum() == 0.0


def test_a_lattice_takes_no_region_stiffer_than_it_was_made_for(made: World, cpu: Device) -> None:
    tissue = made.organs[0].tissue
    masses = len(tissue.params.nodes)
    with pytest.raises(InputError, match=r"relative_young = 9 cannot be carried by 3 substeps.*at or below 3.5"):
        set_relative_young(tissue, np.full(masses, 9.0))
    with pytest.raises(InputError, match="above 0 for every mass"):
        set_relative_young(tissue, np.zeros(masses))
