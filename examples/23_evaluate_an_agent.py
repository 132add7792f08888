"""How well a saved policy does beside one that acts at random, and an episode of it to watch.

    python examples/23_evaluate_an_agent.py --task Reach --policy build/reach/policy.zip --out build/reach
    viscera serve --out build/reach             # its list of recordings has the episode

Without --policy a hand-written one for Reach is measured, which needs no other library: the target is told, so it goes
there. It ends in a check: the policy does better than chance.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import viscera.learning as learning
from viscera.learning.evaluating import Policy

AT, WAY = slice(0, 8), slice(11, 14)
"""Of an observation of Reach: the tool's state, and the way to the target."""


def by_hand(seen: Any) -> Any:
    """Along the axes, as fast as is far."""
    return np.append(np.clip(4.0 * seen[WAY], -1.0, 1.0), 0.0)


def saved(path: Path) -> Policy:
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]

    model = PPO.load(path, device="cpu")
    return lambda seen: model.predict(seen, deterministic=True)[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Reach")
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--control", choices=("trocar", "cartesian"), help="with which it was trained")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, help="record an episode into this folder")
    told = parser.parse_args()
    control = told.control or ("cartesian" if told.policy is None else "trocar")
    env = gymnasium.make(f"viscera/{told.task}-v0", control=control)
    policy = by_hand if told.policy is None else saved(told.policy)
    chance = learning.evaluate(env, learning.random_policy(env), told.episodes, told.seed)
    found = learning.evaluate(env, policy, told.episodes, told.seed)
    for name, scores in (("policy", found), ("at random", chance)):
        print(f"{name:10} success {scores.success:4.0%}  return {scores.mean_return:7.2f}  {scores.features}")
    if told.out is not None:
        surgery = env.unwrapped
        assert isinstance(surgery, learning.SurgeryEnv)
        file, done = learning.record_episode(surgery, policy, told.out, told.seed)
        print(f"recorded {file}, {'done' if done else 'not done'}")
    env.close()
    assert found.mean_return > chance.mean_return, "the policy does no better than chance"
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
