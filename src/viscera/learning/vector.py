"""Many worlds as one gymnasium vector environment.

What runs the worlds is behind `Lanes`: whole rows of worlds go in and out as arrays. `SingleWorlds` steps worlds one
after the other; `BatchedWorlds` (batched.py) all of them at once, in one set of device arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, create_empty_array
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.learning.env import space_of
from viscera.learning.lane import Choice, Lane
from viscera.learning.task import Task
from viscera.learning.tasks import find_task
from viscera.timing import TICK

Rows = NDArray[Any] | dict[str, NDArray[Any]]
"""Observations of all worlds: the first axis counts them."""


class Lanes(Protocol):
    """Worlds side by side. Arrays belong to the lanes and are overwritten by the next call."""

    count: int
    names: tuple[str, ...]
    """Of the features of the reward."""
    observation_space: spaces.Space[Any]
    """Of one world."""
    action_space: spaces.Box[Any]
    observations: Rows
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    success: NDArray[np.bool_]
    features: NDArray[np.float64]
    """Shape (worlds, names)."""

    def begin(self, which: NDArray[np.bool_], generators: Sequence[np.random.Generator]) -> None:
        """New episodes in these worlds, each drawn from its own generator."""
        ...

    def act(self, actions: NDArray[np.float32], which: NDArray[np.bool_]) -> None:
        """One action in each of these worlds. The others may go on too: each must begin again before it acts."""
        ...

    def close(self) -> None: ...


class SingleWorlds:
    """`Lanes` of worlds of their own, stepped one after the other."""

    def __init__(self, task: Task, choice: Choice, count: int) -> None:
        if count < 1:
            raise InputError(f"num_envs = {count} is not possible.", "It is a whole number from 1.")
        self.lanes = [Lane(task, choice) for _ in range(count)]
        first = self.lanes[0]
        self.count = count
        self.names = tuple(first.weights)
        self.observation_space = space_of(first.eyes.shapes(*first.sizes()), first.eyes.flat)
        self.action_space: spaces.Box[Any] = spaces.Box(-1.0, 1.0, (first.arm.size,), np.float32)
        self.observations: Any = create_empty_array(self.observation_space, count)
        self.rewards = np.zeros(count)
        self.terminated, self.truncated = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
        self.success = np.zeros(count, dtype=np.bool_)
        self.features = np.zeros((count, len(self.names)))

    def begin(self, which: NDArray[np.bool_], generators: Sequence[np.random.Generator]) -> None:
        for number in np.flatnonzero(which).tolist():
            seen, _ = self.lanes[number].begin(generators[number])
            self._put(number, seen)
            self.rewards[number] = self.features[number] = 0.0
            self.terminated[number] = self.truncated[number] = self.success[number] = False

    def act(self, actions: NDArray[np.float32], which: NDArray[np.bool_]) -> None:
        for number in np.flatnonzero(which).tolist():
            done = self.lanes[number].act(actions[number])
            self._put(number, done.observation)
            self.rewards[number] = done.reward
            self.terminated[number], self.truncated[number] = done.terminated, done.truncated
            self.success[number] = done.info["is_success"]
            self.features[number] = [done.info["features"][name] for name in self.names]

    def _put(self, number: int, seen: Any) -> None:
        if isinstance(seen, dict):
            for name, part in seen.items():
                self.observations[name][number] = part
        else:
            self.observations[number] = seen

    def close(self) -> None:
        for lane in self.lanes:
            lane.close()


class SurgeryVectorEnv(VectorEnv[Any, Any, Any]):
    """Worlds that begin again by themselves: in the step after the one in which an episode ended, the action of that
    world is ignored, its reward is 0, and its observation is the first of a new episode."""

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": [],
        "render_fps": round(1.0 / (16 * TICK)),
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.num_envs = lanes.count
        self.single_observation_space, self.single_action_space = lanes.observation_space, lanes.action_space
        self.observation_space = batch_space(lanes.observation_space, lanes.count)
        self.action_space = batch_space(lanes.action_space, lanes.count)
        self._generators: list[np.random.Generator] = []
        self._over = np.zeros(lanes.count, dtype=np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """All worlds begin; world k of a single seed s as one alone of seed s + k."""
        seeds: Sequence[int | None]
        if seed is None or isinstance(seed, int | np.integer):
            seeds = [None if seed is None else int(seed) + number for number in range(self.num_envs)]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise InputError(f"{len(seeds)} seeds for {self.num_envs} worlds.", "Give one for each, or one for all.")
        for number, one in enumerate(seeds):
            fresh = len(self._generators) <= number
            if fresh or one is not None:
                # As `gymnasium.Env.reset` makes it, so that a world alone and one of many are the same.
                made = np.random.Generator(np.random.PCG64(np.random.SeedSequence(one)))
                self._generators[number : number + 1] = [made]
        everywhere = np.ones(self.num_envs, dtype=np.bool_)
        self.lanes.begin(everywhere, self._generators)
        self._over[:] = False
        return _copied(self.lanes.observations), {}

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        if not self._generators:
            raise InputError("the worlds have not begun.", "Call reset first.")
        actions = np.asarray(actions)
        shape = (self.num_envs, *self.lanes.action_space.shape)
        if actions.shape != shape:
            raise InputError(f"actions of shape {actions.shape} are not possible.", f"Give {shape}.")
        begins = self._over.copy()
        if not begins.all():
            self.lanes.act(actions, ~begins)
        if begins.any():
            self.lanes.begin(begins, self._generators)
        lanes = self.lanes
        np.logical_or(lanes.terminated, lanes.truncated, out=self._over)
        features = {name: lanes.features[:, k].copy() for k, name in enumerate(lanes.names)}
        info: dict[str, Any] = {"features": features, "is_success": lanes.success.copy(), "acted": ~begins}
        results = (lanes.rewards.copy(), lanes.terminated.copy(), lanes.truncated.copy())
        return (_copied(lanes.observations), *results, info)

    def close_extras(self, **kwargs: Any) -> None:
        self.lanes.close()


def _copied(rows: Rows) -> Rows:
    return {name: part.copy() for name, part in rows.items()} if isinstance(rows, dict) else rows.copy()


def make_worlds(task: Task | str, num_envs: int = 1, batched: bool = False, **choice: Any) -> SurgeryVectorEnv:
    """What `gymnasium.make_vec(id, num_envs=…)` makes: worlds one after the other, or `batched`, all at once."""
    found = find_task(task) if isinstance(task, str) else task
    if not batched:
        return SurgeryVectorEnv(SingleWorlds(found, Choice(**choice), num_envs))
    from viscera.learning.batched import BatchedWorlds

    choice.setdefault("cores", None)  # all of them, for all worlds
    return SurgeryVectorEnv(BatchedWorlds(found, Choice(**choice), num_envs))
