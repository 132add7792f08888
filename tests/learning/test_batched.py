"""Environments in one set of device arrays are the environments alone, begin again by themselves, and refuse what they
cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def test_what_a_batch_cannot_be_is_refused() -> None:
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("Coagulate", {}, "without batched"),
        ("Reach", {"observe": ("rgb",)}, "no pictures"),
        ("Palpate", {"randomise": {"viscosity": (0.1, 0.2)}}, "stiffness"),
        ("Reach", {"ticks": 0}, "from 1"),
    ]
    for name, choice, says in refused:
        with pytest.raises(InputError, match=says):
            BatchedWorlds(learning.find_task(name), Choice(**choice), 2)
    with pytest.raises(InputError, match="num_envs"):
        BatchedWorlds(learning.find_task("Reach"), Choice(), 0)
