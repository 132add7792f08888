"""Many worlds at once: each is the single world, each is alone, and what comes out is not copied."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import warp as wp
from numpy.typing import NDArray

import viscera
from viscera import batch
from viscera.batch.making import check_world
from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.inputs import SetParameter, ToolInput
from viscera.scenarios.palpation import STIFFNESS
from viscera.tissue.touch_kernels import TOOL_FLOATS
from viscera.world import World

DETAIL = 0.15
"""845 masses, so that a test takes seconds."""
SEED, WORLDS = 3, 3
RADIUS = 0.008
"""Of the probe [m]."""
APPROACH = 60
"""Ticks that tools take from their homes to the surface."""


def make(device: Device, **more: Any) -> batch.Batch:
    options = {"worlds": WORLDS, "seed": SEED, "detail": DETAIL, "stiffness": (0.6, 1.3), "friction": (0.5, 2.0)}
    return batch.make("palpation", device=device, **(options | more))


@pytest.fixture(scope="module")
def worlds(cpu: Device) -> Iterator[batch.Batch]:
    made = make(cpu)
    yield made
    made.close()


def middle(worlds: batch.Batch) -> NDArray[np.float64]:
    """Of the upper side [m]."""
    rest = worlds.tissue.rest_positions()
    low, high = rest.min(axis=0), rest.max(axis=0)
    return np.array([0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), high[2]])


def hands(worlds: batch.Batch, action: int) -> NDArray[np.float64]:
    """Each world's hand presses elsewhere and by another amount, slides, and turns: poses of shape (worlds, 1, 7)."""
    number = np.arange(worlds.count)
    poses = np.zeros((worlds.count, 1, 7))
    poses[:, 0, :3] = middle(worlds)
    poses[:, 0, 0] += 0.006 * number + 0.002 * np.sin(0.7 * action)
    poses[:, 0, 1] -= 0.004 * number
    poses[:, 0, 2] += RADIUS - 0.002 * (1 + number) * min(1.0, 0.2 * action)
    angle = 0.1 * np.sin(0.4 * action + number)
    poses[:, 0, 3], poses[:, 0, 6] = np.sin(0.5 * angle), np.cos(0.5 * angle)
    return poses


def approach(worlds: batch.Batch, seed: int = SEED) -> None:
    """The first episode of this seed, the tools brought down from their homes: they all but touch."""
    worlds.reset(seed=seed)
    worlds.set_tools(hands(worlds, 0))
    worlds.step(APPROACH)


def run(worlds: batch.Batch, actions: int) -> None:
    for action in range(actions):
        worlds.set_tools(hands(worlds, action))
        worlds.step(10)


def single(worlds: batch.Batch, number: int) -> World:
    """World `number` of the batch, by itself."""
    anatomy, factor = int(worlds.anatomy.numpy()[number]), float(worlds.stiffness.numpy()[number])
    world = viscera.make("palpation", device="cpu", cores=1, seed=int(worlds.seeds[anatomy]), detail=DETAIL)
    world.set_now(SetParameter("stiffness", STIFFNESS.default * factor))
    pushes = world.contact._pushes[0]
    assert pushes is not None
    rough = pushes.friction * float(worlds.friction.numpy()[number])
    world.contact._pushes[0] = dataclasses.replace(pushes, friction=rough)
    return world


def everything(worlds: batch.Batch) -> dict[str, NDArray[Any]]:
    """What a world's further course depends on, and what it shows."""
    arrays = {"position": worlds.position.numpy(), "velocity": worlds.velocity.numpy(), "poses": worlds.poses.numpy()}
    forces = {name: getattr(worlds.forces, name).numpy() for name in ("last", "mean", "peak")}
    return {name: np.array(array) for name, array in (arrays | forces).items()}


def same(a: dict[str, NDArray[Any]], b: dict[str, NDArray[Any]], rows: list[int]) -> bool:
    return all(np.array_equal(a[name][rows], b[name][rows]) for name in a)


# --- truth ---


@pytest.mark.parametrize("number", range(WORLDS))
def test_each_world_is_the_single_world(worlds: batch.Batch, number: int) -> None:
    """Hands, tools, materials, anatomy, tissue and forces together, for 80 ms of pressing, sliding and turning, to the
    last bit. Only the mean is summed up in another order."""
    approach(worlds)
    world = single(worlds, number)
    tissue, felt = world.organs[0].tissue, []
    for action in range(8):
        pose = hands(worlds, action)[number, 0]
        world.apply(ToolInput(0, tuple(pose[:3]), tuple(pose[3:])))
        if action == 0:
            world.step(APPROACH)
        felt = []
        for _ in range(10):
            world.step()
            felt.append([*world.tools[0].force, *world.tools[0].torque])
        worlds.set_tools(hands(worlds, action))
        worlds.step(10)
        tool = world.contents.tools[0]
        assert np.array_equal(worlds._hands.tip.numpy()[number, 0], tool.tip), action
        assert np.array_equal(worlds._hands.turn.numpy()[number, 0], tool.orientation), action
        assert np.array_equal(worlds.forces.last.numpy()[number, 0], np.float32(felt[-1])), action
        assert np.array_equal(worlds.position.numpy()[number], tissue.state.position[tissue.current].numpy()), action
        assert np.array_equal(worlds.velocity.numpy()[number], tissue.state.velocity.numpy()), action
        size = max(1e-3, float(np.linalg.norm(felt[-1][:3])))
        np.testing.assert_allclose(worlds.forces.mean.numpy()[number, 0], np.mean(felt, axis=0), atol=1e-6 * size)
        peak = np.linalg.norm(np.array(felt)[:, :3], axis=1).max()
        np.testing.assert_allclose(worlds.forces.peak.numpy()[number, 0, 0], peak, rtol=1e-6)
    assert np.linalg.norm(felt[-1][:3]) > 0.02, "the probe never touched"
    world.close()


def test_tissue_and_contact_have_the_single_lattice_s_bits(worlds: batch.Batch) -> None:
    """The same bars in the same ticks: every position, velocity and integer force is equal."""
    worlds.reset(seed=SEED)
    number = 2
    world = single(worlds, number)
    tissue = world.organs[0].tissue
    for action in range(6):
        worlds.set_tools(hands(worlds, action))
        for _ in range(5 if action else APPROACH):
            worlds.step(1)
            state = worlds._worlds
            tissue.state.tools.host[:] = state.tools.numpy()[number, :TOOL_FLOATS]
            tissue.step()
            assert np.array_equal(state.force.numpy()[number], tissue.state.force.host)
            assert np.array_equal(worlds.position.numpy()[number], tissue.state.position[tissue.current].numpy())
            assert np.array_equal(worlds.velocity.numpy()[number], tissue.state.velocity.numpy())
    assert np.abs(tissue.state.force.host).max() > 0, "the probe never touched"
    world.close()


def test_the_same_seed_gives_the_same_bits_on_any_number_of_cores(worlds: batch.Batch) -> None:
    one = make(open_device("cpu", cores=1))
    for made in (one, worlds):
        approach(made)
        run(made, 4)
    assert same(everything(one), everything(worlds), list(range(WORLDS)))
    assert np.abs(everything(one)["last"]).max() > 0.0
    one.close()


# --- each for itself ---


def test_a_mask_resets_its_worlds_and_no_other(worlds: batch.Batch) -> None:
    approach(worlds)
    run(worlds, 3)
    before = everything(worlds)
    worlds.reset([False, True, False])
    after = everything(worlds)
    assert same(before, after, [0, 2])
    assert not after["position"][1].any()
    assert not after["velocity"][1].any()
    assert not after["mean"][1].any()
    assert worlds.ages().tolist() == [90, 0, 90]
    run(worlds, 3)  # the other two go on as if nothing had happened
    kept = everything(worlds)
    approach(worlds)
    run(worlds, 3)
    run(worlds, 3)
    assert same(kept, everything(worlds), [0, 2])
    assert not same(kept, everything(worlds), [1])


def test_an_episode_depends_on_the_seed_of_its_world_alone(worlds: batch.Batch) -> None:
    def drawn() -> NDArray[Any]:
        return np.stack([one.numpy() for one in (worlds.stiffness, worlds.friction, worlds.anatomy)], axis=1)

    worlds.reset(seed=SEED)
    first = drawn()
    worlds.reset()
    second = drawn()
    assert ((first[:, 0] >= 0.6) & (first[:, 0] <= 1.3) & (first[:, 1] >= 0.5) & (first[:, 1] <= 2.0)).all()
    assert len(np.unique(first[:, 0])) == WORLDS
    assert (first[:, 0] != second[:, 0]).all()
    worlds.reset(seed=SEED)
    worlds.reset([True, False, False])
    assert np.array_equal(drawn()[0], second[0])
    assert np.array_equal(drawn()[1:], first[1:])
    worlds.reset(seed=SEED + 1)  # world w of this seed is world w + 1 of the other
    assert np.array_equal(drawn()[:2, :2], first[1:, :2])


def test_a_world_that_breaks_is_named_and_disturbs_no_other(worlds: batch.Batch) -> None:
    approach(worlds)
    run(worlds, 3)
    whole = everything(worlds)
    approach(worlds)
    worlds.velocity.numpy()[1] = np.nan
    run(worlds, 3)
    assert worlds.broken.numpy()[:, 0].tolist() == [0, 1, 0]
    assert same(whole, everything(worlds), [0, 2])
    worlds.reset([False, True, False])
    worlds.step(1)
    assert not worlds.broken.numpy().any()
    assert np.isfinite(everything(worlds)["position"]).all()


def test_a_stiffer_world_pushes_back_harder(worlds: batch.Batch) -> None:
    """Force grows with the factor on Young's modulus where nothing else differs; in proportion but for friction and
    inertia."""
    worlds.reset(seed=SEED)
    worlds.set_materials(stiffness=[0.5, 1.0, 1.5], friction=[1.0] * WORLDS, anatomy=[0] * WORLDS)
    x, y, z = middle(worlds)
    poses = np.tile([x, y, z + RADIUS - 0.004, 0.0, 0.0, 0.0, 1.0], (WORLDS, 1, 1))
    worlds.set_tools(poses)
    worlds.step(300)
    worlds.step(10)
    up = worlds.forces.mean.numpy()[:, 0, 2]
    assert up[0] > 0.01
    np.testing.assert_allclose(up / up[1], [0.5, 1.0, 1.5], rtol=0.05)


# --- what goes in and out ---


def test_arrays_are_views(worlds: batch.Batch) -> None:
    worlds.reset(seed=SEED)
    arrays: list[Any] = [worlds.velocity, worlds.position]
    velocity, position = (np.from_dlpack(array) for array in arrays)
    force = worlds.forces.last.numpy()
    assert position.shape == velocity.shape == (WORLDS, 3 * worlds.tissue.layout.slots)
    approach(worlds)
    run(worlds, 3)
    assert np.abs(force).max() > 0.0
    assert np.shares_memory(velocity, worlds.velocity.numpy())
    assert np.abs(velocity).max() > 0.0
    assert worlds.bytes_per_world > 4 * 9 * worlds.tissue.layout.slots


@pytest.mark.slow
def test_torch_reads_forces_and_writes_hands_without_copies(worlds: batch.Batch) -> None:
    torch = pytest.importorskip("torch")
    worlds.reset(seed=SEED)
    force, hand = torch.from_dlpack(worlds.forces.mean), torch.from_dlpack(worlds.hands)
    assert force.data_ptr() == worlds.forces.mean.ptr
    assert hand.data_ptr() == worlds.hands.ptr
    worlds.set_tools(hands(worlds, 0))
    worlds.step(APPROACH)
    hand[:, 0, 2] -= 0.004  # a policy in torch presses
    worlds.step(40)
    assert force[:, 0, 2].min() > 0.0
    assert force[0, 0, 2] == worlds.forces.mean.numpy()[0, 0, 2]


def test_a_tool_that_is_taken_out_feels_nothing_and_comes_back_from_its_home(worlds: batch.Batch) -> None:
    approach(worlds)
    run(worlds, 4)
    felt = worlds.forces.last.numpy()[:, 0, 2].copy()
    worlds.set_tools(hands(worlds, 8), active=[[1], [0], [1]])
    worlds.step(10)
    assert felt.min() > 0.0
    assert worlds.forces.last.numpy()[1, 0].tolist() == [0.0] * 6
    assert worlds.forces.last.numpy()[0, 0, 2] > 0.0
    worlds.set_tools(hands(worlds, 8))
    worlds.step(1)
    assert worlds.poses.numpy()[1, 0, 2] > worlds.poses.numpy()[0, 0, 2] + 0.03


def test_what_cannot_be_is_refused_with_what_could(worlds: batch.Batch) -> None:
    poses = hands(worlds, 0)
    refused = [
        (lambda: worlds.set_tools(poses[:2]), "shape"),
        (lambda: worlds.set_tools(np.full_like(poses, np.nan)), "finite"),
        (lambda: worlds.set_tools(0.1 * poses), "quaternion"),
        (lambda: worlds.set_tools(poses, active=[1]), "active"),
        (lambda: worlds.step(0), "ticks"),
        (lambda: worlds.reset([True]), "mask"),
        (lambda: worlds.reset(wp.zeros(2, dtype=wp.int32, device="cpu")), "mask"),
        (lambda: worlds.set_materials(stiffness=[1.0, 9.0, 1.0]), "stiffness"),
        (lambda: worlds.set_materials(friction=[1.0, -1.0, 1.0]), "friction"),
        (lambda: worlds.set_materials(anatomy=[0, 1, 99]), "anatomy"),
        (lambda: batch.make("palpation", worlds=0), "worlds"),
        (lambda: batch.make("palpation", worlds=2, friction=(2.0, 1.0)), "friction"),
    ]
    for call, word in refused:
        with pytest.raises(InputError, match=word):
            call()


def test_what_a_batch_cannot_compute_it_refuses(worlds: batch.Batch) -> None:
    world = single(worlds, 0)
    check_world(world)
    world.contents.rubbing = 0.1
    with pytest.raises(InputError, match="cannot compute"):
        check_world(world)
    world.contents.rubbing = None
    world.contents.organs[0].tissue.constants.features |= 2
    with pytest.raises(InputError, match="creep"):
        check_world(world)
    world.close()


# --- how it is launched ---


@pytest.mark.slow
def test_phases_launched_one_by_one_give_the_same_bits(worlds: batch.Batch) -> None:
    """As on cuda, where 64 threads share the contact of a world; one core takes them one after the other."""
    phases = make(open_device("cpu", cores=1), fused=False)
    for made in (phases, worlds):
        approach(made)
        run(made, 4)
    assert same(everything(phases), everything(worlds), list(range(WORLDS)))
    phases.close()


@pytest.mark.cuda
@pytest.mark.parametrize("fused", [True, False])
def test_on_cuda_each_world_has_the_single_lattice_s_bits(fused: bool) -> None:
    device = open_device("cuda:0")
    worlds = make(device, fused=fused)
    number = 2
    anatomy, factor = int(worlds.anatomy.numpy()[number]), float(worlds.stiffness.numpy()[number])
    world = viscera.make("palpation", device=device, seed=int(worlds.seeds[anatomy]), detail=DETAIL)
    world.set_now(SetParameter("stiffness", STIFFNESS.default * factor))
    tissue = world.organs[0].tissue
    for action in range(6):
        worlds.set_tools(hands(worlds, action))
        for _ in range(5 if action else APPROACH):
            worlds.step(1)
            tissue.state.tools.host[:] = worlds._worlds.tools.numpy()[number, :TOOL_FLOATS]
            tissue.step()
            assert np.array_equal(worlds._worlds.force.numpy()[number], tissue.state.force.host)
            assert np.array_equal(worlds.position.numpy()[number], tissue.state.position[tissue.current].numpy())
    assert np.abs(tissue.state.force.host).max() > 0, "the probe never touched"


@pytest.mark.cuda
@pytest.mark.parametrize("fused", [True, False])
def test_cuda_agrees_with_cpu(worlds: batch.Batch, fused: bool) -> None:
    """Rounding differs and grows with time: after 60 ms forces agree to a hundredth."""
    other = make(open_device("cuda:0"), fused=fused)
    for made in (other, worlds):
        approach(made)
        run(made, 4)
    mine, theirs = everything(worlds), everything(other)
    size = np.abs(mine["mean"][:, :, :3]).max()
    np.testing.assert_allclose(theirs["mean"][:, :, :3], mine["mean"][:, :, :3], atol=0.01 * size)
    np.testing.assert_allclose(theirs["poses"], mine["poses"], atol=1e-5)
