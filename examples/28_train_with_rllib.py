"""An agent learns a task by PPO of RLlib, in processes of a Ray cluster, and is compared with one that acts at random.

    pip install 'viscera[rl]' 'ray[rllib]' torch
    python examples/28_train_with_rllib.py --task Reach --iterations 40

RLlib makes the environments by itself, in each of its workers; `viscera.learning` must be imported there, which is what
registering a function that makes one does. It ends in a check: what was learned does better than chance.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium
import numpy as np

import viscera.learning as learning


def make(config: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    """One environment, in a worker of Ray's."""
    return learning.SurgeryEnv(config["task"], **config["choice"])


def train(told: argparse.Namespace) -> Any:
    import ray  # pyright: ignore[reportMissingImports]
    from ray.rllib.algorithms.ppo import PPOConfig  # pyright: ignore[reportMissingImports]
    from ray.tune.registry import register_env  # pyright: ignore[reportMissingImports]

    ray.init(num_cpus=told.workers + 1, include_dashboard=False, log_to_driver=False)
    register_env("viscera", make)
    config = (
        PPOConfig()
        .environment("viscera", env_config={"task": told.task, "choice": {"control": told.control}})
        .env_runners(num_env_runners=told.workers, rollout_fragment_length="auto")
        .training(train_batch_size=told.batch, minibatch_size=128, num_epochs=10, gamma=0.95, lr=1e-3)
        .debugging(seed=told.seed)
    )
    algorithm = config.build_algo()
    for iteration in range(told.iterations):
        result = algorithm.train()["env_runners"]
        print(f"{iteration + 1:3}: return {result.get('episode_return_mean', float('nan')):7.2f}", flush=True)
    return algorithm


def policy_of(algorithm: Any) -> Any:
    """From an observation to the mean of the actions that it would choose."""
    import torch  # pyright: ignore[reportMissingImports]

    module = algorithm.get_module()

    def policy(seen: Any) -> Any:
        with torch.no_grad():
            told = module.forward_inference({"obs": torch.from_numpy(np.asarray(seen)[None])})
        numbers = told["action_dist_inputs"][0].numpy()
        return np.clip(numbers[: len(numbers) // 2], -1.0, 1.0)  # means, then logarithms of spreads

    return policy


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Reach")
    parser.add_argument("--control", default="cartesian")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--batch", type=int, default=1024, help="actions of an iteration")
    parser.add_argument("--episodes", type=int, default=20, help="that policies are compared on")
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    algorithm = train(told)
    env = learning.SurgeryEnv(told.task, control=told.control)
    found = learning.evaluate(env, policy_of(algorithm), told.episodes, seed=1_000_000)
    chance = learning.evaluate(env, learning.random_policy(env), told.episodes, seed=1_000_000)
    algorithm.stop()
    env.close()
    print(f"return {found.mean_return:.2f} after learning, {chance.mean_return:.2f} at random")
    print(f"success {found.success:.0%} after learning, {chance.success:.0%} at random")
    assert found.mean_return > chance.mean_return, "nothing was learned"
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
