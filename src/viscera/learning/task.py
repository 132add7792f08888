"""What a task is: one record. Each file of `tasks/` has one, so another task is another file.

A task says in which scenario an agent works, with which tool and where; what an episode is about; and which *features*
its reward is made of. An `Episode` is one attempt: it is made as the world begins, and judges every action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Vector3
from viscera.learning.arm import Limits, Space
from viscera.learning.besides import Batching
from viscera.view import ToolState
from viscera.world import World

Vector = NDArray[np.float64]

TROCAR_HEIGHT = 0.2
"""Over the workspace's middle, of a trocar for instruments that a free hand holds elsewhere [m]."""


@dataclass(frozen=True)
class Felt:
    """Force [N] and torque [N·m] at the tip over one action."""

    mean: Vector
    """Of all ticks: force, then torque; six numbers."""
    peak: Vector
    """Of the tick with the strongest force."""
    last: Vector
    """Of the last tick."""

    @property
    def strongest(self) -> float:
        """[N]"""
        return float(np.linalg.norm(self.peak[:3]))


NOTHING_FELT = Felt(np.zeros(6), np.zeros(6), np.zeros(6))


@dataclass(frozen=True)
class Acted:
    """What an episode sees after an action."""

    tool: ToolState
    """As it is now."""
    felt: Felt
    closed: bool
    """Whether the agent holds its handle closed."""
    effort: float
    """Length of the action over the longest one, 0 to 1."""


@dataclass(frozen=True)
class Verdict:
    """What an action was worth."""

    features: dict[str, float]
    """By the names of `Task.weights`."""
    success: bool = False
    """The task is done: the episode ends."""
    failed: bool = False
    """It cannot be done any more: the episode ends."""


class Episode(Protocol):
    """One attempt."""

    def goal(self) -> Vector:
        """What the agent is told besides its own state, about −1 … 1; always as many numbers."""
        ...

    def truth(self) -> Vector:
        """What only the simulator knows, about −1 … 1; always as many numbers."""
        ...

    def judge(self, acted: Acted) -> Verdict: ...


@dataclass(frozen=True)
class Task:
    name: str
    """In the environment's id: `viscera/NAME-v0`."""
    summary: str
    scenario: str
    begin: Callable[[World, Space, np.random.Generator], Episode]
    """An attempt in a world that is about to start. All that is drawn comes from the generator."""
    space: Callable[[World], Space]
    """Where the tip may be."""
    weights: Mapping[str, float]
    """Of the features of the reward."""
    features: Mapping[str, str]
    """What each of them is, with its unit."""
    tool: int = 0
    """Which of the scenario's tools the agent holds."""
    activates: bool = False
    """Whether its handle is part of the action."""
    detail: float = 1.0
    """Times the scenario's counts; small worlds are fast."""
    ticks: int = 16
    """That an action takes [ms]."""
    most_actions: int = 200
    """Then the episode is truncated."""
    new_world: bool = True
    """Whether each episode has a world of its own seed; else all have seed 0, and what changes is in `begin`."""
    batches: Batching | None = None
    """How it is played in many worlds in one set of arrays; None: it cannot be."""
    limits: Limits = field(default_factory=Limits)
    force_span: float = 1.0
    """Forces are told as shares of this [N]; torques as shares of a hundredth of it [N·m]."""
    randomise: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Settings of the scenario that `randomise=True` draws for each episode, from and to; `friction` is the tools'."""

    def trocar(self, world: World) -> Vector3:
        """About which the agent's tool turns [m]: its own, or one above the workspace."""
        own = world.hands[self.tool].instrument.trocar
        if own is not None:
            return own
        space = self.space(world)
        x, y, _ = (0.5 * (np.asarray(space.low) + np.asarray(space.high))).tolist()
        return (x, y, space.high[2] + TROCAR_HEIGHT)
