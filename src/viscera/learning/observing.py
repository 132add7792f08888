"""What an agent perceives, in parts that it can ask for.

    state          pan, tilt, spin, depth, tip, closed: the tool as it is wanted (arm.py)
    goal           what the task tells it
    force          force and torque at the tip over the last action: mean, peak, last
    truth          what only the simulator knows
    points         a cloud of points that a depth camera sees, in the workspace's shares
    depth          of every pixel [m]
    segmentation   what every pixel shows: 0 nothing, then the parts of the scene in their order
    rgb            the picture

The first four are rows of numbers and are put into one row where nothing else is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera import render
from viscera.errors import InputError
from viscera.imaging.lens import Lens
from viscera.learning.arm import Arm, Space
from viscera.learning.task import Episode, Felt, Task
from viscera.world import World

ROWS = ("state", "goal", "force", "truth")
PICTURES = ("points", "depth", "segmentation", "rgb")
PARTS = ROWS + PICTURES
BOUND = 10.0
"""Rows of numbers are about −1 … 1 and never beyond this."""
FARTHEST = 2.0
"""Depth of what is farther, or where nothing is [m]."""
STATE_NUMBERS, FORCE_NUMBERS = 8, 18
LONGEST_SCENE = 255
"""Parts of a scene that a segmentation tells apart."""

Observation = NDArray[Any] | dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Shape:
    """Of one part of an observation."""

    size: tuple[int, ...]
    low: float
    high: float
    kind: type[Any]


class Eyes:
    """Looks at one world after another of the same scene's kind."""

    def __init__(self, task: Task, parts: Sequence[str], picture: tuple[int, int], points: int) -> None:
        """`picture` is its width and height [pixel], `points` how many a cloud has."""
        unknown = [part for part in parts if part not in PARTS]
        if unknown or not parts or len(set(parts)) != len(parts):
            what = f"{unknown[0]!r} cannot be observed." if unknown else "observe is empty or names a part twice."
            raise InputError(what, f"There are: {', '.join(PARTS)}.")
        self._task, self.parts = task, tuple(parts)
        self._width, self._height = picture
        self._points = points
        self._eye: render.Renderer | None = None
        self._rays: NDArray[np.float64] | None = None

    @property
    def flat(self) -> bool:
        """Whether an observation is one row of numbers."""
        return all(part in ROWS for part in self.parts)

    @property
    def sees(self) -> bool:
        return any(part in PICTURES for part in self.parts)

    def shapes(self, goal: int, truth: int) -> dict[str, Shape]:
        """Of each part, where the task tells so many numbers."""
        rows = {"state": STATE_NUMBERS, "goal": goal, "force": FORCE_NUMBERS, "truth": truth}
        found = {name: Shape((count,), -BOUND, BOUND, np.float32) for name, count in rows.items()}
        pixels = (self._height, self._width)
        found["points"] = Shape((self._points, 3), -BOUND, BOUND, np.float32)
        found["depth"] = Shape((*pixels, 1), 0.0, FARTHEST, np.float32)
        found["segmentation"] = Shape((*pixels, 1), 0, LONGEST_SCENE, np.uint8)
        found["rgb"] = Shape((*pixels, 3), 0, 255, np.uint8)
        return {part: found[part] for part in self.parts}

    def look(self, world: World, arm: Arm, episode: Episode, felt: Felt) -> Observation:
        span = np.tile(np.repeat([self._task.force_span, 0.01 * self._task.force_span], 3), 3)
        found: dict[str, Any] = {}
        for part in self.parts:
            if part == "state":
                found[part] = arm.state()
            elif part == "goal":
                found[part] = episode.goal()
            elif part == "force":
                found[part] = np.concatenate([felt.mean, felt.peak, felt.last]) / span
            elif part == "truth":
                found[part] = episode.truth()
        for part, row in found.items():
            found[part] = np.clip(row, -BOUND, BOUND).astype(np.float32)
        if self.sees:
            found |= self._see(world, arm.space)
        if self.flat:
            return np.concatenate([found[part] for part in self.parts])
        return {part: found[part] for part in self.parts}

    def picture(self, world: World) -> render.Rendered:
        """From the scenario's own camera."""
        if self._eye is None:
            self._eye = render.make(world.scene(), device=world.device, width=self._width, height=self._height)
        world.show_now()
        world.write_arrays(self._eye.arrays)
        return self._eye.render(world.frame())

    def forget(self) -> None:
        """Another world has been built: its scene may be another."""
        self._eye = self._rays = None

    def _see(self, world: World, space: Space) -> dict[str, NDArray[Any]]:
        seen = self.picture(world)
        depth = np.minimum(seen.depth, np.float32(FARTHEST))
        found: dict[str, NDArray[Any]] = {}
        if "points" in self.parts:
            found["points"] = self._cloud(world, depth, space)
        if "depth" in self.parts:
            found["depth"] = depth[..., None]
        if "segmentation" in self.parts:
            found["segmentation"] = np.minimum(seen.part, LONGEST_SCENE).astype(np.uint8)[..., None]
        if "rgb" in self.parts:
            found["rgb"] = seen.colour
        return found

    def _cloud(self, world: World, depth: NDArray[np.float32], space: Space) -> NDArray[np.float32]:
        """Evenly chosen among the pixels that show something; zeros where there are fewer."""
        camera = world.contents.camera
        if self._rays is None:
            # A picture's first row is the top.
            self._rays = Lens(camera, self._width, self._height).directions()[::-1].reshape(-1, 3)
        there = np.flatnonzero(depth.ravel() < FARTHEST)
        cloud = np.zeros((self._points, 3), dtype=np.float32)
        if len(there):
            count = min(self._points, len(there))
            chosen = there[np.linspace(0, len(there) - 1, count).astype(np.int64)]
            places = np.asarray(camera.position) + depth.ravel()[chosen, None] * self._rays[chosen]
            cloud[:count] = np.clip(space.share(places), -BOUND, BOUND)
        return cloud
