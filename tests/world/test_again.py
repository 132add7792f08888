"""A world that begins again in the same arrays is, bit for bit, the world that would be built."""

from __future__ import annotations

import pytest

from viscera.scenarios import make
from viscera.world import World
from viscera.world.again import Again


def play(world: World, first: int, ticks: int) -> str:
    """The scenario's own hand from a tick of its script on."""
    for tick in range(first, first + ticks):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
    return world.state_hash()


def same_again(scenario: str, first: int, ticks: int, *, detail: float) -> None:
    world = make(scenario, device="cpu", detail=detail, cores=1, seed=3)
    again = Again(world)
    begun = world.state_hash()
    left = play(world, first, ticks)
    assert left != begun
    for _ in range(2):
        again.begin(3)
        assert world.state_hash() == begun
        assert play(world, first, ticks) == left
    world.close()


def test_palpation_begins_again_with_another_seed_and_other_settings_as_if_built() -> None:
    world = make("palpation", device="cpu", detail=0.1, cores=1)
    again = Again(world)
    play(world, 0, 100)
    again.begin(5, {"stiffness": 2.0, "difficulty": 1.0})
    rewound = play(world, 0, 100)
    # What was set for one episode is gone in the next.
    again.begin(0)
    own = play(world, 0, 100)
    world.close()
    for seed, settings, found in ((5, {"stiffness": 2.0, "difficulty": 1.0}, rewound), (0, {}, own)):
        built = make("palpation", device="cpu", detail=0.1, cores=1, seed=seed, parameters=settings)
        assert play(built, 0, 100) == found
        built.close()


def test_turns_in_the_same_thread_give_the_same_world() -> None:
    found = []
    for inline in (False, True):
        world = make("palpation", device="cpu", detail=0.1, cores=1)
        if inline:
            world.take_turns_inline()
        found.append(play(world, 0, 64))
        world.close()
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "first"), [("pattern", 400), ("pattern", 850), ("cautery", 0), ("incision", 350), ("bleeding", 3950)]
)
def test_other_worlds_begin_again(scenario: str, first: int) -> None:
    """The gauze is grasped, and cut; a line is burnt; skin is cut; a vessel is sucked at and held."""
    same_again(scenario, first, 160, detail=0.5)
