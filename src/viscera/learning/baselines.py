"""Many worlds as Stable-Baselines3 wants them: `PPO("MlpPolicy", SurgeryVecEnv("Palpate", 64), …)`.

Needs `pip install stable-baselines3`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.learning.batched import BatchedWorlds
from viscera.learning.lane import Choice
from viscera.learning.tasks import find_task
from viscera.learning.vector import Lanes, SingleWorlds

try:
    from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise InputError("stable-baselines3 is not installed.", "Install it with: pip install stable-baselines3") from error


class SurgeryVecEnv(VecEnv):
    """Worlds of one task, all at once where the task allows it, else one after the other. Stable-Baselines3 begins an
    episode in the step in which the last one ended, and tells what was seen last as `terminal_observation`."""

    def __init__(self, task: str, worlds: int, seed: int = 0, **choice: Any) -> None:
        """`choice` has the fields of `Choice`. World k draws its episodes from the seed `seed + k`."""
        found = find_task(task)
        self.lanes: Lanes
        if found.batches:
            choice.setdefault("cores", None)  # all of them, for all worlds
            self.lanes = BatchedWorlds(found, Choice(**choice), worlds)
        else:
            self.lanes = SingleWorlds(found, Choice(**choice), worlds)
        self._generators = [np.random.default_rng(seed + number) for number in range(worlds)]
        self._everywhere = np.ones(worlds, dtype=np.bool_)
        self._returns, self._lengths = np.zeros(worlds), np.zeros(worlds, dtype=np.int64)
        self._given: NDArray[Any] = np.zeros((worlds, *self.lanes.action_space.shape), dtype=np.float32)
        self.render_mode = None
        super().__init__(worlds, self.lanes.observation_space, self.lanes.action_space)

    def reset(self) -> NDArray[np.float32]:
        self.lanes.begin(self._everywhere, self._generators)
        self._returns[:], self._lengths[:] = 0.0, 0
        return self._seen()

    def _seen(self) -> NDArray[np.float32]:
        seen = self.lanes.observations
        if isinstance(seen, dict):
            raise InputError("only rows of numbers can be learned from here.", "Observe no pictures.")
        return seen.copy()

    def step_async(self, actions: NDArray[Any]) -> None:
        self._given = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], list[dict[str, Any]]]:
        lanes = self.lanes
        lanes.act(self._given, self._everywhere)
        self._returns += lanes.rewards
        self._lengths += 1
        rewards, ended, late = lanes.rewards.copy(), lanes.terminated | lanes.truncated, lanes.truncated
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": bool(one)} for one in late]
        if ended.any():
            last, won = self._seen(), lanes.success
            for number in np.flatnonzero(ended).tolist():
                episode = {"r": float(self._returns[number]), "l": int(self._lengths[number])}
                infos[number] |= {
                    "terminal_observation": last[number], "is_success": bool(won[number]), "episode": episode,
                }  # fmt: skip
            self._returns[ended], self._lengths[ended] = 0.0, 0
            lanes.begin(ended, self._generators)
        return self._seen(), rewards, ended, infos

    def close(self) -> None:
        self.lanes.close()

    # --- what Stable-Baselines3 may ask of an environment ---

    def get_attr(self, attr_name: str, indices: int | Sequence[int] | None = None) -> list[Any]:
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: int | Sequence[int] | None = None) -> None:
        raise InputError(f"{attr_name!r} cannot be changed.", "Make other worlds.")

    def env_method(
        self, method_name: str, *args: Any, indices: int | Sequence[int] | None = None, **more: Any
    ) -> list[Any]:
        raise InputError(f"{method_name!r} cannot be called on one of many worlds.", "Use gymnasium.make for one.")

    def env_is_wrapped(self, wrapper_class: Any, indices: int | Sequence[int] | None = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
