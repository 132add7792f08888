"""How well a policy does, and an episode of it as an ordinary recording: replayed with `viscera replay`, watched in the
page's list of recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError, RecordingError
from viscera.learning.env import SurgeryEnv
from viscera.learning.lane import FRICTION

RESTING = 1_000
"""Ticks after the end of an episode that is recorded."""

Policy = Callable[[Any], NDArray[Any]]
"""From an observation to an action."""


@dataclass(frozen=True)
class Scores:
    """Of some episodes."""

    success: float
    """Share of them that succeeded."""
    mean_return: float
    mean_actions: float
    features: dict[str, float]
    """Mean over episodes of each feature's sum."""
    episodes: int


def evaluate(env: gymnasium.Env[Any, Any], policy: Policy, episodes: int, seed: int = 0) -> Scores:
    """Plays so many episodes, of seeds from `seed` on."""
    returns, actions, won = [], [], []
    sums: dict[str, float] = {}
    for number in range(episodes):
        seen, _ = env.reset(seed=seed + number)
        total, count, over = 0.0, 0, False
        info: dict[str, Any] = {}
        while not over:
            seen, reward, terminated, truncated, info = env.step(policy(seen))
            total, count, over = total + float(reward), count + 1, terminated or truncated
            for name, value in info["features"].items():
                sums[name] = sums.get(name, 0.0) + value / episodes
        returns.append(total)
        actions.append(count)
        won.append(info["is_success"])
    return Scores(float(np.mean(won)), float(np.mean(returns)), float(np.mean(actions)), sums, episodes)


def random_policy(env: gymnasium.Env[Any, Any], seed: int = 0) -> Policy:
    """Any action is as likely as any other."""
    rng = np.random.default_rng(seed)
    shape = env.action_space.shape
    return lambda seen: rng.uniform(-1.0, 1.0, shape).astype(np.float32)


def record_episode(env: SurgeryEnv, policy: Policy, out: Path, seed: int = 0) -> tuple[Path, bool]:
    """Plays one episode into a recording in the folder `out`; gives its file, and whether the task was done. After its
    end the hand rests for a second: episodes can be shorter than what a person sees, and the page lists none of less
    than a second."""
    from viscera.session.archive import convert
    from viscera.session.recorder import Recorder, make_header
    from viscera.session.stills import StillWriter

    seen, _ = env.reset(seed=seed)
    lane, world = env.lane, env.lane.world
    if FRICTION in lane.drawn:
        raise InputError(
            "a recording does not keep a friction that was randomised.", "Make the environment without it."
        )
    header = make_header(
        world.source, world.seed, world.device.name, world.device.description, None, lane.drawn, world.detail
    )
    recorder = Recorder.create(out, header)
    stills = StillWriter(recorder.path)
    lane.record, lane.watch = recorder.input, stills.see
    info: dict[str, Any] = {}
    try:
        over = False
        while not over:
            seen, _, terminated, truncated, info = env.step(policy(seen))
            over = terminated or truncated
        for _ in range(RESTING):
            world.advance()
            stills.see(world)
        world.wait()
        recorder.finish(world.tick, world.state_hash())
    finally:
        lane.record = lane.watch = None
        stills.close()
    if recorder.notice:
        raise RecordingError(recorder.notice)
    return convert(recorder.path), bool(info["is_success"])
