"""An agent learns a task by PPO, is compared with one that acts at random, and is kept: curve, policy, recording.

    pip install 'viscera[rl]' stable-baselines3
    python examples/22_train_an_agent.py --task Reach --steps 60000 --out build/reach
    python examples/22_train_an_agent.py --task Palpate --steps 400000 --worlds 64 --control cartesian --out build/palp

The worlds that it learns from are in one set of arrays where the task allows it (viscera.batch). Source: Schulman and
others, "Proximal Policy Optimization Algorithms", 2017, as Stable-Baselines3 has it. It ends in a check: what was
learned does better than chance.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import viscera.learning as learning

SETTINGS: dict[str, Any] = {
    "n_steps": 256, "batch_size": 128, "n_epochs": 10, "gamma": 0.95, "learning_rate": 1e-3,
    "policy_kwargs": {"log_std_init": -0.5},
}  # fmt: skip
"""Of PPO: short episodes, small networks."""
OTHER: dict[str, dict[str, Any]] = {
    "Palpate": {"n_steps": 64, "batch_size": 512, "n_epochs": 8, "gamma": 0.99, "learning_rate": 5e-4},
}  # fmt: skip
"""Where the way to a reward is longer, and more worlds tell of it."""


class Curve:
    """What is learned over time: success and return of the last episodes, each so many steps."""

    def __init__(self, every: int) -> None:
        self.every, self.rows = every, []
        self._begun = time.monotonic()
        self._recent: list[tuple[float, bool]] = []

    def enough(self, until: float, minutes: float) -> bool:
        """Whether the last two rows succeeded as often as wanted, or the time is over."""
        if time.monotonic() - self._begun > 60.0 * minutes:
            return True
        return len(self.rows) >= 2 and all(row["success"] >= until for row in self.rows[-2:])

    def see(self, steps: int, infos: list[dict[str, Any]]) -> bool:
        """After a step; whether there is a new row."""
        for info in infos:
            if "episode" in info:
                self._recent.append((info["episode"]["r"], info["is_success"]))
        if steps < self.every * (len(self.rows) + 1) or not self._recent:
            return False
        returns, won = zip(*self._recent, strict=True)
        row = {
            "steps": steps,
            "seconds": round(time.monotonic() - self._begun, 1),
            "episodes": len(won),
            "mean_return": round(float(np.mean(returns)), 3),
            "success": round(float(np.mean(won)), 3),
        }
        self.rows.append(row)
        self._recent.clear()
        print(row, flush=True)
        return True


def settings_of(task: str) -> dict[str, Any]:
    return {**SETTINGS, **OTHER.get(task, {})}


def train(told: argparse.Namespace) -> tuple[Any, list[dict[str, Any]]]:
    """PPO until it is enough, with the curve of what it learned."""
    import torch  # pyright: ignore[reportMissingImports]
    from stable_baselines3 import PPO  # pyright: ignore[reportMissingImports]
    from stable_baselines3.common.callbacks import BaseCallback  # pyright: ignore[reportMissingImports]

    from viscera.learning.baselines import SurgeryVecEnv

    class Watch(BaseCallback):
        curve = Curve(max(1, told.steps // 40))

        def _on_step(self) -> bool:
            if self.curve.see(self.num_timesteps, self.locals["infos"]):
                self.model.save(told.out / "policy.zip")
            return not self.curve.enough(told.until, told.minutes)

    torch.set_num_threads(1)  # the networks are small
    env = SurgeryVecEnv(told.task, told.worlds, seed=told.seed, control=told.control)
    model = PPO("MlpPolicy", env, seed=told.seed, device="cpu", **settings_of(told.task))
    watch = Watch()
    model.learn(told.steps, callback=watch)
    model.save(told.out / "policy.zip")
    env.close()
    return model, watch.curve.rows


def draw(title: str, rows: list[dict[str, Any]], chance: learning.Scores, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.2))
    for axis, key, level in zip(axes, ("success", "mean_return"), (chance.success, chance.mean_return), strict=True):
        axis.plot([row["steps"] for row in rows], [row[key] for row in rows], color="C0", label="PPO while it learns")
        axis.axhline(level, color="0.5", linestyle="--", label="at random")
        axis.set_xlabel("actions")
        axis.set_ylabel(key.replace("_", " "))
        axis.legend()
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="Reach")
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--until", type=float, default=1.1, help="end when such a share of episodes succeeds")
    parser.add_argument("--minutes", type=float, default=60.0, help="end after so long")
    parser.add_argument("--worlds", type=int, default=4, help="learned from side by side")
    parser.add_argument("--control", default="trocar", help="trocar or cartesian")
    parser.add_argument("--episodes", type=int, default=100, help="that policies are compared on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/agent"))
    told = parser.parse_args()
    told.out.mkdir(parents=True, exist_ok=True)
    name = f"viscera/{told.task}-v0"
    model, rows = train(told)

    env = gymnasium.make(name, control=told.control)
    surgery = env.unwrapped
    assert isinstance(surgery, learning.SurgeryEnv)

    def policy(seen: Any) -> Any:
        return model.predict(seen, deterministic=True)[0]

    # Seeds that it has not learned from.
    learned = learning.evaluate(env, policy, told.episodes, seed=1_000_000)
    chance = learning.evaluate(env, learning.random_policy(env), told.episodes, seed=1_000_000)
    recording, _ = learning.record_episode(surgery, policy, told.out, seed=1_000_000)
    result = {
        "id": name, "control": told.control, "worlds": told.worlds, "learned": asdict(learned),
        "random": asdict(chance), "settings": settings_of(told.task), "curve": rows,
    }  # fmt: skip
    (told.out / "curve.json").write_text(json.dumps(result, indent=1) + "\n")
    draw(f"{name}, {rows[-1]['steps']} actions", rows, chance, told.out / "curve.png")
    print(f"success {learned.success:.0%} after learning, {chance.success:.0%} at random; recorded in {recording}")
    assert learned.mean_return > chance.mean_return, "nothing was learned"
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
