"""A training loop in plain torch: REINFORCE with a baseline, on Reach, over the memory of the worlds by DLPack.

    pip install 'viscera[rl]' torch
    python examples/25_learn_with_torch.py --updates 60 --out build/reach.npz
    python -m viscera.learning record build/reach.npz --out build/reach && viscera serve --out build/reach

Observations are not copied: a torch tensor stands on the array that the worlds write (`torch.from_dlpack`). Source:
Williams, "Simple statistical gradient-following algorithms for connectionist reinforcement learning", 1992. It ends in
a check: the last episodes have a better return than the first.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from viscera.learning import Choice, SingleWorlds, find_task, save_policy


def main() -> int:
    import torch  # pyright: ignore[reportMissingImports]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--worlds", type=int, default=4)
    parser.add_argument("--actions", type=int, default=25, help="of an episode")
    parser.add_argument("--out", type=Path, help="save the policy here")
    told = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    choice = Choice(observe=("goal",), control="cartesian", most_actions=told.actions)
    worlds = SingleWorlds(find_task("Reach"), choice, told.worlds)
    seen = torch.from_dlpack(worlds.observations)
    assert seen.data_ptr() == worlds.observations.ctypes.data, "the tensor is a copy"
    mean = torch.nn.Sequential(torch.nn.Linear(seen.shape[1], 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
    spread = torch.full((4,), 0.4)
    optimiser = torch.optim.Adam(mean.parameters(), lr=0.01)
    generators = [np.random.default_rng(number) for number in range(told.worlds)]
    everywhere = np.ones(told.worlds, dtype=np.bool_)
    returns: list[float] = []
    for update in range(told.updates):
        worlds.begin(everywhere, generators)
        running = everywhere.copy()
        steps: list[tuple[Any, Any]] = []
        while running.any():
            chosen = torch.distributions.Normal(mean(seen.clone()), spread)
            action = chosen.sample()
            worlds.act(action.clamp(-1.0, 1.0).numpy(), running)
            alive = torch.from_numpy(running.astype(np.float32))
            steps.append((chosen.log_prob(action).sum(dim=1) * alive, torch.from_numpy(worlds.rewards * running)))
            running &= ~(worlds.terminated | worlds.truncated)
        rewards = torch.stack([reward for _, reward in steps]).float()
        # What is still to come, a tenth of it forgotten per action: what an action does shows soon.
        to_come = torch.zeros_like(rewards)
        for k in reversed(range(len(rewards))):
            to_come[k] = rewards[k] + (0.9 * to_come[k + 1] if k + 1 < len(rewards) else 0.0)
        worth = (to_come - to_come.mean()) / (to_come.std() + 1e-6)
        loss = -(torch.stack([log for log, _ in steps]) * worth).sum(dim=0).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        returns.append(float(rewards.sum(dim=0).mean()))
        if update % 10 == 9:
            print(f"update {update + 1:4}: return {np.mean(returns[-10:]):6.2f}")
    worlds.close()
    if told.out is not None:
        linear = [one for one in mean if isinstance(one, torch.nn.Linear)]
        layers = [(one.weight.detach().numpy(), one.bias.detach().numpy()) for one in linear]
        print(save_policy(told.out, layers, task="Reach", control="cartesian", observe=("goal",)))
    few = max(1, len(returns) // 6)
    assert np.mean(returns[-few:]) > np.mean(returns[:few]), "nothing was learned"
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
