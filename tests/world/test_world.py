"""The world: same seed same bits, inputs, parameters, snapshots, checkpoints, and what it refuses."""

from __future__ import annotations

import gc
import threading
import time
import tracemalloc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
import warp as wp

import viscera
from viscera.errors import InputError, StateError
from viscera.inputs import Input, Reset, SetParameter, ToolInput
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.view import Parameter
from viscera.world import World


def palpation(**options) -> World:
    return viscera.make("palpation", device="cpu", **options)


@pytest.fixture
def world() -> Iterator[World]:
    made = palpation(seed=1)
    yield made
    made.close()


def run(world: World, ticks: int, extra: dict[int, Input] | None = None) -> str:
    for tick in range(world.tick, world.tick + ticks):
        for one in world.script(tick):
            world.apply(one)
        if extra and tick in extra:
            world.apply(extra[tick])
        world.step()
    return world.state_hash()


def test_same_seed_same_bits_other_seed_other_bits() -> None:
    first = run(palpation(seed=7), 300)
    assert run(palpation(seed=7), 300) == first
    assert run(palpation(seed=8), 300) != first


def test_another_input_gives_another_world() -> None:
    plain = run(palpation(seed=7), 300)
    moved = run(palpation(seed=7), 300, {250: ToolInput(0, (0.01, 0.0, 0.03))})
    stiffer = run(palpation(seed=7), 300, {10: SetParameter("stiffness", 5.0)})
    assert len({plain, moved, stiffer}) == 3


def test_one_core_gives_what_two_give() -> None:
    assert run(palpation(seed=3, cores=1), 200) == run(palpation(seed=3, cores=2), 200)


def test_hash_covers_every_array(world: World) -> None:
    before = world.state_hash()
    for name, array in world.organs[0].tissue.arrays().items():
        kept = array.numpy().copy()
        changed = kept.copy()
        changed.ravel()[len(changed) // 2] += 1
        array.assign(changed)
        assert world.state_hash() != before, name
        array.assign(kept)
    assert world.state_hash() == before


def test_checkpoint_continues_bit_for_bit(world: World) -> None:
    run(world, 333)
    kept = world.save_state()
    expected = run(world, 200)
    other = palpation(seed=99)
    other.load_state(kept)
    assert other.tick == 333
    assert run(other, 200) == expected


def test_reset_gives_the_first_state_again(world: World) -> None:
    fresh = world.save_state()
    run(world, 100)
    world.apply(Reset(1))
    for one in (ToolInput(0, (0.0, 0.0, 0.07), active=False),):
        world.apply(one)
    world.step()
    assert world.tick == 101
    np.testing.assert_array_equal(world.save_state()["tissue/position"], fresh["tissue/position"])


def test_pushing_dents_the_surface_under_the_probe_and_is_felt(world: World) -> None:
    rest = world.snapshot().arrays["tissue"]
    # The highest vertex near the middle, so that the probe meets the surface and not an edge.
    for tick in range(400):
        if tick % 10 == 0:
            world.apply(ToolInput(0, (0.0, 0.0, 0.032)))
        world.step()
    shown = world.snapshot()
    sunk = rest[:, 2] - shown.arrays["tissue"][:, 2]
    deepest = rest[np.argmax(sunk)]
    assert sunk.max() > 0.004
    assert np.hypot(deepest[0], deepest[1]) < 0.005
    assert shown.tools[0].force[2] > 0.03
    assert abs(shown.tools[0].force[0]) < 0.3 * shown.tools[0].force[2]


def test_without_a_probe_nothing_moves(world: World) -> None:
    rest = world.snapshot().arrays["tissue"]
    world.step(200)
    np.testing.assert_array_equal(world.snapshot().arrays["tissue"], rest)
    assert world.peak_force == 0.0


def test_the_nodule_is_felt() -> None:
    """Pushing right over the nodule takes clearly more force than far from it, at the same depth."""
    world = palpation(seed=5)
    tissue = world.organs[0].tissue
    relative = tissue.params.relative_young
    assert relative is not None
    nodule = tissue.rest_positions()[relative > 2.5].mean(axis=0)
    far = np.array([-np.sign(nodule[0]) * 0.03, -np.sign(nodule[1]) * 0.03])
    forces = []
    for x, y in (nodule[:2], far):
        for _ in range(600):
            world.apply(ToolInput(0, (float(x), float(y), 0.034)))
            world.step()
        forces.append(world.tools[0].force[2])
        world.apply(Reset(5))
        world.step()
    assert forces[0] > 1.2 * forces[1] > 0.0


def test_time_counts_ticks(world: World) -> None:
    world.step(TICKS_PER_FRAME)
    assert (world.tick, world.time) == (16, pytest.approx(16 * TICK))
    assert set(world.stages) == {"tissue", "skin", "search", "goals"}
    assert all(ms > 0 for ms in world.stages.values())


def test_write_arrays_fills_the_callers_memory(world: World) -> None:
    out = {name: np.full(spec.shape, np.nan, dtype=spec.kind) for name, spec in world.array_specs().items()}
    run(world, 160)
    world.write_arrays(out)
    np.testing.assert_array_equal(out["tissue"], world.snapshot().arrays["tissue"])


def test_scene_describes_what_snapshots_hold(world: World) -> None:
    scene, shown = world.scene(), world.snapshot()
    surface = scene.surfaces[0]
    assert shown.arrays[surface.array].shape == (surface.vertex_count, 3)
    assert surface.triangles.max() == surface.vertex_count - 1
    low, high = (np.array(corner) for corner in scene.bounds)
    assert ((shown.arrays["tissue"] > low) & (shown.arrays["tissue"] < high)).all()
    assert {p.name: p.default for p in scene.parameters} == shown.parameters


def test_parameters_change_what_they_name() -> None:
    """Twice the stiffness, twice the force for the same depth (no gravity, at rest)."""
    forces = []
    for kilopascal in (2.0, 4.0):
        world = palpation(seed=1, parameters={"stiffness": kilopascal, "drag": 60.0})
        for _ in range(800):
            world.apply(ToolInput(0, (0.0, 0.0, 0.033)))
            world.step()
        forces.append(world.tools[0].force[2])
    assert forces[1] == pytest.approx(2 * forces[0], rel=0.05)


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (SetParameter("stifness", 3.0), "stiffness"),
        (SetParameter("stiffness", float("nan")), "1 to 6"),
        (SetParameter("stiffness", 100.0), "1 to 6"),
        (ToolInput(5, (0.0, 0.0, 0.0)), "tool = 5"),
        (ToolInput(0, (float("inf"), 0.0, 0.0)), "finite"),
        (ToolInput(0, (0.0, 50.0, 0.0)), "metres"),
        (ToolInput(0, (0.0, 0.0, 0.0), grip=2.0), "grip"),
        (ToolInput(0, (0.0, 0.0, 0.0), orientation=(0.0, 0.0, 0.0, 0.0)), "quaternion"),
        ("push", "not an input"),
    ],
)
def test_impossible_inputs_are_refused_and_change_nothing(world: World, one: Input, word: str) -> None:
    before = world.state_hash()
    with pytest.raises(InputError, match=word):
        world.apply(one)
    assert world.state_hash() == before


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"seed": -1}, "seed"),
        ({"parameters": {"gravty": 1.0}}, "gravity"),
        ({"parameters": {"gravity": float("nan")}}, "0 to 2"),
    ],
)
def test_impossible_worlds_are_refused(options: dict, word: str) -> None:
    with pytest.raises(InputError, match=word):
        palpation(**options)


@pytest.mark.parametrize(
    ("minimum", "maximum", "default", "choices", "word"),
    [
        (0.0, 2.0, 0.0, ("none", "dry"), "does not fit"),
        (1.0, 2.0, 1.0, ("none", "dry"), "does not fit"),
        (0.0, 1.0, 0.0, ("dry", "dry"), "does not fit"),
        (0.0, 0.0, 0.0, ("none",), "does not fit"),
        (0.0, 1.0, 0.5, ("none", "dry"), "none of its choices"),
    ],
)
def test_choices_that_do_not_fit_their_numbers_are_refused(
    minimum: float, maximum: float, default: float, choices: tuple[str, ...], word: str
) -> None:
    with pytest.raises(InputError, match=word):
        Parameter("gauze", "Gauze", "", minimum, maximum, default, "", choices)


def test_unknown_scenarios_are_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="palpation"):
        viscera.make("palpatoin")


def test_a_world_that_breaks_says_where_and_when(world: World) -> None:
    world.step(5)
    velocity = world.organs[0].tissue.state.velocity
    broken = velocity.numpy().copy()
    broken[world.organs[0].tissue.layout.slot_of_node[-1]] = np.nan
    velocity.assign(broken)
    with pytest.raises(StateError) as stopped:
        world.step(20)
    assert (stopped.value.stage, stopped.value.tick) == ("tissue", 6)


def test_stepping_allocates_nothing(world: World) -> None:
    """Warp's allocator is not asked at all, Python's memory does not grow, over 1 500 steps."""
    run(world, 64)
    for _ in range(2):
        world.step(TICKS_PER_FRAME)
    tracemalloc.start()
    world.step(500)  # whatever is replaced now and then was made before, and is counted only once it is replaced
    grew = []
    with CountAllocations() as counted:
        for _ in range(3):
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            world.step(500)
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
            grew.append(after - before)
    tracemalloc.stop()
    assert counted.count == 0
    assert min(grew) < 1_500  # the newest few floats and tuples replace older ones; a leak would be 4 kB each time


class CountAllocations:
    """Counts what Warp's cpu allocator is asked for."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> CountAllocations:
        self._device = wp.get_device("cpu")
        self._kept = self._device.default_allocator.allocate
        self._device.default_allocator.allocate = self._allocate
        return self

    def _allocate(self, *args, **kwargs):
        self.count += 1
        return self._kept(*args, **kwargs)

    def __exit__(self, *_) -> None:
        self._device.default_allocator.allocate = self._kept


def test_of_resets_and_values_before_one_tick_the_newest_counts(world: World) -> None:
    """Twenty resets at once cost one; what they end in is what one after the other ends in."""
    built: list[int] = []
    build = world._build
    world._build = lambda seed: built.append(seed) or build(seed)
    for seed in range(20):
        world.apply(Reset(seed))
        world.apply(SetParameter("stiffness", 2.0 + 0.1 * seed))
    world.step(16)
    assert built == [19]
    other = palpation(seed=1)
    other.apply(SetParameter("stiffness", 2.0 + 0.1 * 19))
    other.apply(Reset(19))
    other.step(16)
    assert world.state_hash() == other.state_hash()
    other.close()


def test_a_world_that_is_forgotten_leaves_nothing_though_its_device_is_kept() -> None:
    """As shapes of instruments keep it: each world left its arrays and a thread."""
    world = palpation(seed=1)
    world.step(32)
    device, there = world.device, weakref.ref(world)
    world.close()
    threads = threading.active_count()
    del world
    gc.collect()
    assert there() is None
    assert device.alone is not None
    device.alone()  # and does nothing
    end = time.monotonic() + 5.0
    while threading.active_count() >= threads and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() < threads
