"""The river: water stays on the ground, none is lost or made up, the ball parts it, and everything can be repeated."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera.anatomy.landscape import Landscape, landscape
from viscera.errors import StateError
from viscera.inputs import Reset, SetParameter, ToolInput
from viscera.scenarios.river import BALL_RADIUS, EDGE, FLOW, SIZE, SPRING
from viscera.timing import TICKS_PER_FRAME
from viscera.world import World

SEED = 3
SPACING = SPRING.spacing
LAYER = 21
"""Particles that the spring gives at once: a lattice within its radius of 73 mm, 2.3 spacings from the middle."""


def water(world: World) -> np.ndarray:
    snapshot = world.snapshot()
    return snapshot.arrays["water"][: snapshot.counts["water"]]


@pytest.fixture(scope="module")
def place() -> Landscape:
    return landscape(SIZE, EDGE, SEED)


@pytest.fixture(scope="module")
def world() -> World:
    """One world for all tests; each begins it anew."""
    return viscera.make("river", device="cpu", seed=SEED)


@pytest.fixture
def river(world: World) -> World:
    world.apply(Reset(SEED))
    world.apply(SetParameter("flow", FLOW.default))  # a reset keeps parameters
    world.step(TICKS_PER_FRAME)
    return world


def test_water_runs_down_the_bed_and_stays_on_the_ground(river: World, place: Landscape):
    river.step(TICKS_PER_FRAME * 25)
    found = water(river)
    assert len(found) > 200
    assert np.isfinite(found).all()
    above = found[:, 2] - place.height(found[:, 0], found[:, 1])
    # Contacts keep the centres half a spacing from the facets; facets cut hollows short by up to a tenth of that.
    assert above.min() > 0.4 * SPACING
    assert np.abs(found[:, 1]).max() < 0.5 * place.width
    astray = np.abs(found[:, 1] - place.middle(found[:, 0]))
    assert np.quantile(astray, 0.95) < 1.2 * place.bed_half_width
    assert found[:, 0].max() > 0.25 * place.length


def test_what_came_is_there_or_has_left(river: World):
    """The spring gives what its flow says, to a layer; a shut one gives nothing; particles leave one by one."""
    river.step(5 * TICKS_PER_FRAME)
    given = 0.001 * FLOW.default * 6 * 0.016 / SPACING**3
    assert abs(len(water(river)) - given) <= LAYER
    river.apply(SetParameter("flow", 0.0))
    river.step(2 * TICKS_PER_FRAME)
    count = len(water(river))
    state = river.save_state()
    assert state["water/report"][3] - state["water/report"][0] == count
    assert len(np.unique(state["water/tag"])) == count
    # Put some of them where the river ends: they are gone after a frame, the others stay.
    position = state["water/position"].copy()
    position[5:12] = [(SIZE[0] - 0.01, 0.1 * k, 1.0) for k in range(-3, 4)]
    left = np.sort(np.delete(state["water/tag"], np.arange(5, 12)))
    river.load_state(state | {"water/position": position})
    river.step(TICKS_PER_FRAME)
    after = river.save_state()
    assert np.array_equal(np.sort(after["water/tag"]), left)
    assert after["water/report"][0] - state["water/report"][0] == 7


def test_a_particle_that_is_not_finite_stops_the_world(river: World):
    river.step(3 * TICKS_PER_FRAME)
    state = river.save_state()
    position = state["water/position"].copy()
    position[3] = np.nan
    river.load_state(state | {"water/position": position})
    with pytest.raises(StateError, match="not finite"):
        river.step(TICKS_PER_FRAME)


def test_water_flows_around_the_ball(river: World, place: Landscape):
    x = 0.2 * place.length
    y = float(place.middle(np.array(x)))
    z = float(place.height(np.array(x), np.array(y))) + 0.8 * BALL_RADIUS
    river.apply(ToolInput(0, (x, y, z)))
    river.step(TICKS_PER_FRAME * 50)
    found = water(river)
    away = np.linalg.norm(found[:, :3] - (x, y, z), axis=1)
    assert away.min() > BALL_RADIUS + 0.4 * SPACING
    # There is water on all sides of it: the ball is in the stream, not above it.
    near = found[away < BALL_RADIUS + 3.0 * SPACING]
    assert (near[:, 0] < x).any()
    assert (near[:, 0] > x).any()


def test_a_saved_river_goes_on_bit_for_bit(river: World):
    river.step(TICKS_PER_FRAME * 6)
    state = river.save_state()
    river.apply(ToolInput(0, (0.5, 0.0, 0.4)))
    river.step(TICKS_PER_FRAME * 3)
    first = river.state_hash()
    river.load_state(state)
    assert river.state_hash() != first
    river.apply(ToolInput(0, (0.5, 0.0, 0.4)))
    river.step(TICKS_PER_FRAME * 3)
    assert river.state_hash() == first


def test_what_the_page_is_told(river: World):
    scene = river.scene()
    assert [p.fluid for p in scene.particles] == ["water"]
    assert scene.particles[0].capacity == SPRING.capacity
    assert [s.name for s in scene.surfaces] == ["landscape"]
    measures = river.measure_values()
    assert measures["water"] == pytest.approx(len(water(river)) * SPACING**3 * 1000.0)
    assert measures["outflow"] == 0.0


def test_the_ball_can_be_held_over_every_place_of_the_landscape(world: World) -> None:
    """Whatever way the seed winds."""
    for seed in (SEED, 0, 11):
        world.apply(Reset(seed))
        world.step(1)
        (ground,) = world.contents.scenery
        assert ground.rest is not None
        above = ground.rest[::7] + np.array([0.0, 0.0, BALL_RADIUS])
        for x, y, z in above.tolist():
            assert world.within(ToolInput(0, (x, y, z))).position == (x, y, z)
