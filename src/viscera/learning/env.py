"""One world as a gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.learning.lane import Choice, Lane
from viscera.learning.observing import Observation, Shape
from viscera.learning.task import Task
from viscera.learning.tasks import find_task
from viscera.timing import TICK

RENDER_MODE = "rgb_array"
OWN_PICTURE = (640, 360)
"""That `render` gives [pixel]."""


def space_of(shapes: dict[str, Shape], flat: bool) -> spaces.Space[Any]:
    """One row of numbers, or a part of each name."""
    if flat:
        one = next(iter(shapes.values()))
        return spaces.Box(one.low, one.high, (sum(shape.size[0] for shape in shapes.values()),), np.float32)
    return spaces.Dict({name: spaces.Box(s.low, s.high, s.size, s.kind) for name, s in shapes.items()})


class SurgeryEnv(gymnasium.Env[Observation, NDArray[np.float32]]):
    """`gymnasium.make("viscera/Reach-v0", observe=("state", "rgb"), randomise=True, …)`: the keywords are the fields of
    `Choice`. An action is `size` numbers −1 … 1 (arm.py)."""

    metadata: dict[str, Any] = {"render_modes": [RENDER_MODE], "render_fps": round(1.0 / (16 * TICK))}  # noqa: RUF012

    def __init__(self, task: Task | str, render_mode: str | None = None, **choice: Any) -> None:
        if render_mode not in (None, RENDER_MODE):
            raise InputError(f"render_mode = {render_mode!r} is not known.", f"There is {RENDER_MODE!r}, or None.")
        self.render_mode = render_mode
        self.lane = Lane(find_task(task) if isinstance(task, str) else task, Choice(**choice))
        lane = self.lane
        self.metadata = {**type(self).metadata, "render_fps": round(1.0 / (lane.ticks * TICK))}
        self.action_space = spaces.Box(-1.0, 1.0, (lane.arm.size,), np.float32)
        self.observation_space = space_of(lane.eyes.shapes(*lane.sizes()), lane.eyes.flat)
        self._view: Any = None

    @property
    def world(self) -> Any:
        """The world itself, for those who look inside."""
        return self.lane.world

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new episode. The seed decides all of it: the world, what is randomised, the goal."""
        super().reset(seed=seed)
        return self.lane.begin(self.np_random)

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        done = self.lane.act(action)
        return done.observation, done.reward, done.terminated, done.truncated, done.info

    def render(self) -> NDArray[np.uint8] | None:
        """What the scenario's camera sees, 640 × 360; of the world as it is now."""
        if self.render_mode is None:
            return None
        from viscera import render

        world = self.lane.world
        if self._view is None or self._view[0] is not world.contents:
            eye = render.make(world.scene(), device=world.device, width=OWN_PICTURE[0], height=OWN_PICTURE[1])
            self._view = (world.contents, eye)
        eye = self._view[1]
        world.show_now()
        world.write_arrays(eye.arrays)
        return eye.render(world.frame()).colour

    def close(self) -> None:
        self.lane.close()
