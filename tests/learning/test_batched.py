"""Environments in one set of device arrays are the environments alone, begin again by themselves, and refuse what they
cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import gymnasium
import numpy as np
import pytest

from viscera import learning
from viscera.errors import InputError
from viscera.learning.batched import BatchedWorlds
from viscera.learning.lane import Choice

CHOICE: dict[str, Any] = {
    "randomise": True, "observe": ("state", "goal", "force", "truth"), "detail": 0.1, "most_actions": 24,
}  # fmt: skip
WORLDS, SEED = 3, 5


@pytest.fixture(scope="module")
def worlds() -> Iterator[learning.SurgeryVectorEnv]:
    made = gymnasium.make_vec("viscera/Palpate-v0", num_envs=WORLDS, batched=True, **CHOICE)
    assert isinstance(made, learning.SurgeryVectorEnv)
    yield made
    made.close()


def presses(rng: np.random.Generator, worlds: int) -> Any:
    """Down into the tissue and about, the handle open."""
    actions = rng.uniform(-1.0, 1.0, (worlds, 5))
    actions[:, 3], actions[:, 4] = np.clip(actions[:, 3] + 0.6, -1.0, 1.0), -1.0
    return actions.astype(np.float32)


def test_each_of_a_batch_is_the_environment_alone(worlds: learning.SurgeryVectorEnv) -> None:
    """Over two episodes, of anatomies, stiffnesses and frictions of their own. Tools move in float64 and forces come as
    float32: 10⁻⁴ of a share stands for that, which a wrong tick, seed or material would miss by far."""
    alone = gymnasium.make("viscera/Palpate-v0", **CHOICE)
    seen, _ = worlds.reset(seed=SEED)
    one, _ = alone.reset(seed=SEED + 1)
    np.testing.assert_array_equal(seen[1], one)
    rng = np.random.default_rng(0)
    strongest, began = 0.0, 0
    for _ in range(40):
        actions = presses(rng, WORLDS)
        seen, rewards, ended, late, info = worlds.step(actions)
        if info["acted"][1]:
            one, reward, terminated, truncated, single = alone.step(actions[1])
            assert (terminated, truncated) == (ended[1], late[1])
            for name, value in single["features"].items():
                assert info["features"][name][1] == pytest.approx(value, abs=1e-4), name
        else:
            (one, _), reward, began = alone.reset(), 0.0, began + 1
        np.testing.assert_allclose(seen[1], one, atol=1e-4)
        assert rewards[1] == pytest.approx(float(reward), abs=1e-3)
        strongest = max(strongest, float(np.abs(one[8 + 31 : 8 + 31 + 18]).max()))
    assert began == 1
    assert strongest > 0.2, "the probe never touched"
    alone.close()


def test_a_world_that_waits_for_its_beginning_disturbs_nothing(worlds: learning.SurgeryVectorEnv) -> None:
    """The same seed and actions give the same bits, also beside worlds that end at other times."""
    found, ends = [], [0, 0]
    for says in (False, True):
        worlds.reset(seed=SEED)
        rng = np.random.default_rng(1)
        rows = []
        for action in range(20):
            actions = presses(rng, WORLDS)
            actions[2, 4] = 1.0 if says and action > 10 else -1.0  # “here”, which ends its episode
            seen, _, ended, _, _ = worlds.step(actions)
            rows.append(seen[:2])
            ends[says] += int(ended[2])
        found.append(np.array(rows))
    assert ends[0] == 0
    assert ends[1] >= 1, "no episode ended"
    np.testing.assert_array_equal(found[0], found[1])


def steered(lanes: BatchedWorlds, number: int, done: float) -> Any:
    """Along the line, or to the open vessel, and pressed where the tip is near."""
    arm, attempt = lanes._arms[number], cast(Any, lanes._episodes[number])
    if lanes.task.name == "Coagulate":
        line = attempt._line
        goal = [np.interp(done * (len(line) - 1), np.arange(len(line)), column) for column in line.T]
    else:
        goal = attempt._open()[0]
    way = goal - arm.tip - [0.0, 0.0, 0.0006]
    rates = np.clip(way / (arm.limits.speed * 1e-3 * lanes.ticks), -1.0, 1.0)
    return np.array([*rates, 0.0, 1.0 if np.linalg.norm(way) < 0.002 else -1.0], dtype=np.float32)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "actions"), [("Coagulate", 80), ("StopBleeding", 80)])
def test_what_burns_and_bleeds_in_a_batch_does_so_alone(task: str, actions: int) -> None:
    """The same actions in a batch and alone. Heat is stepped once an action here and every second frame there, over
    areas at rest, and blood that spurts there wells up here: so this is no equality of bits. What is coagulated agrees
    to two hundredths of the line, what is lost to a tenth, and vessels close within two actions of each other."""
    choice: dict[str, Any] = {"control": "cartesian", "detail": 0.2, "observe": ("state", "truth")}
    worlds = gymnasium.make_vec(f"viscera/{task}-v0", num_envs=2, batched=True, **choice)
    assert isinstance(worlds, learning.SurgeryVectorEnv)
    alone = gymnasium.make(f"viscera/{task}-v0", **choice)
    worlds.reset(seed=SEED)
    alone.reset(seed=SEED + 1)
    lanes = worlds.lanes
    assert isinstance(lanes, BatchedWorlds)
    sums: list[dict[str, float]] = [{}, {}]
    ends = [actions, actions]
    for action in range(actions):
        rows = np.zeros((2, 5), dtype=np.float32)
        rows[1] = steered(lanes, 1, action / actions)
        _, _, ended, _, info = worlds.step(rows)
        _, _, terminated, _, single = alone.step(rows[1])
        for name, value in single["features"].items():
            sums[0][name] = sums[0].get(name, 0.0) + value
            sums[1][name] = sums[1].get(name, 0.0) + float(info["features"][name][1])
        for number, over in enumerate((terminated, bool(ended[1]))):
            ends[number] = min(ends[number], action) if over else ends[number]
        if terminated or ended[1]:
            break
    mine, theirs = sums[1], sums[0]
    if task == "Coagulate":
        assert theirs["line"] > 10.0
        assert mine["line"] == pytest.approx(theirs["line"], abs=2.0)
        assert mine["astray"] == pytest.approx(theirs["astray"], abs=2.0)
    else:
        assert theirs["closed"] >= 1.0
        assert mine["blood"] == pytest.approx(theirs["blood"], rel=0.1)
        assert abs(mine["closed"] - theirs["closed"]) <= 1.0
    assert mine["closer"] == pytest.approx(theirs["closer"], abs=0.1)
    alone.close()
    worlds.close()


@pytest.mark.slow
@pytest.mark.parametrize(("task", "actions", "at"), [("Coagulate", 40, 26), ("StopBleeding", 24, 8)])
def test_another_episode_of_one_world_leaves_the_burns_and_blood_of_the_others(
    task: str, actions: int, at: int
) -> None:
    """Bit for bit: what a world tells and is given, beside one that goes on and beside one that begins anew."""
    lanes = BatchedWorlds(learning.find_task(task), Choice(control="cartesian", detail=0.1, observe=("truth",)), 2)
    found = []
    for again in (False, True):
        generators = [np.random.default_rng(seed) for seed in (1, 2)]
        lanes.begin(np.ones(2, dtype=np.bool_), generators)
        rows = []
        for action in range(actions):
            if again and action == at:
                lanes.begin(np.array([True, False]), generators)
            lanes.act(
                np.stack([steered(lanes, number, action / 200) for number in range(2)]), np.ones(2, dtype=np.bool_)
            )
            rows.append(np.concatenate([lanes.observations[1], lanes.features[1], lanes.rewards[1:]]))
            if lanes.terminated[1] or lanes.terminated[0]:
                break
        found.append(np.array(rows))
    assert len(found[0]) > at + 2, "an episode ended too soon"
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0][at:, :3].std(axis=0) > 0.0).any(), "nothing burnt or bled"
    lanes.close()


def test_what_a_batch_cannot_be_is_refused() -> None:
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("PatternCut", {}, "without batched"),
        ("StopBleeding", {"ticks": 10}, "whole frames"),
        ("Coagulate", {"randomise": {"power": (20.0, 40.0)}}, "stiffness"),
        ("Reach", {"observe": ("rgb",)}, "no pictures"),
        ("Palpate", {"randomise": {"viscosity": (0.1, 0.2)}}, "stiffness"),
        ("Reach", {"ticks": 0}, "from 1"),
    ]
    for name, choice, says in refused:
        with pytest.raises(InputError, match=says):
            BatchedWorlds(learning.find_task(name), Choice(**choice), 2)
    with pytest.raises(InputError, match="num_envs"):
        BatchedWorlds(learning.find_task("Reach"), Choice(), 0)
