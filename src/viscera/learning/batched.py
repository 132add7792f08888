"""`Lanes` of worlds in one set of device arrays (viscera.batch): all of them act at once.

Each is the world alone of the same seed and actions, to 10⁻⁶ of what is felt where only tissue and tools matter; what
burns and bleeds agrees as docs/batch.md says. `Task.batches` says which tasks can be played here, and how.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from viscera import batch
from viscera.errors import InputError
from viscera.inputs import SetParameter, Vector3
from viscera.learning.besides import Batching
from viscera.learning.env import space_of
from viscera.learning.lane import FRICTION, Choice, arm_of, draw_episode, positive, spans_of, weights_of
from viscera.learning.observing import Eyes
from viscera.learning.task import NOTHING_FELT, Acted, Episode, Felt, Task
from viscera.timing import TICK
from viscera.units import KILOPASCAL
from viscera.view import ToolState

STIFFNESS = "stiffness"
"""Setting of a scenario that a batch can choose for each world [kPa]."""


class BatchedWorlds:
    """Made once; `begin` and `act` as often as you like."""

    def __init__(self, task: Task, choice: Choice, count: int) -> None:
        if count < 1:
            raise InputError(f"num_envs = {count} is not possible.", "It is a whole number from 1.")
        self.task, self.choice, self.count = task, choice, count
        self.weights = weights_of(task, choice.weights)
        self._spans = spans_of(task, choice.randomise)
        self.ticks = positive("ticks", choice.ticks, task.ticks)
        self.most_actions = positive("most_actions", choice.most_actions, task.most_actions)
        self._eyes = Eyes(task, choice.observe, choice.picture, choice.points)
        self._check()
        detail = task.detail if choice.detail is None else choice.detail
        how = task.batches or Batching()
        self.worlds = batch.make(
            task.scenario, worlds=count, device=choice.device, cores=choice.cores, detail=detail, anatomies=count,
            tools=how.tools, without=how.without,
        )  # fmt: skip
        self.besides = None if how.besides is None else how.besides(self.worlds, self.ticks)
        self._template = self.worlds.template
        self._check_spans()
        self._arms = [arm_of(task, self._template, choice.control) for _ in range(count)]
        self._episodes: list[Episode | None] = [None] * count
        instrument = self._template.hands[task.tool].instrument
        self._tool = self.worlds.tools.index(instrument.name)
        self._home = np.asarray(instrument.home)
        self._roughness = float(self.worlds.kit.friction.numpy()[self._tool])
        self._actions = np.zeros(count, dtype=np.int64)
        self._poses = np.zeros((count, len(self.worlds.tools), 7))
        self._poses[:, :, 6] = 1.0
        self._active = np.zeros((count, len(self.worlds.tools)), dtype=np.int32)
        self._active[:, self._tool] = 1
        self._grips = np.zeros(self._active.shape)
        self._make_rows()

    def _make_rows(self) -> None:
        if self.besides is not None:
            self.besides.begin(0, 0, {})
        attempt = self.task.begin(self._seen(0), self._arms[0].space, np.random.default_rng(0))
        shapes = self._eyes.shapes(len(attempt.goal()), len(attempt.truth()))
        self.names = tuple(self.weights)
        self.observation_space = space_of(shapes, self._eyes.flat)
        self.action_space: spaces.Box[Any] = spaces.Box(-1.0, 1.0, (self._arms[0].size,), np.float32)
        self.observations: Any = np.zeros((self.count, *(self.observation_space.shape or ())), dtype=np.float32)
        self.rewards = np.zeros(self.count)
        self.terminated, self.truncated = np.zeros(self.count, dtype=np.bool_), np.zeros(self.count, dtype=np.bool_)
        self.success = np.zeros(self.count, dtype=np.bool_)
        self.features = np.zeros((self.count, len(self.names)))

    # --- episodes ---

    def begin(self, which: NDArray[np.bool_], generators: Sequence[np.random.Generator]) -> None:
        worlds = self.worlds
        worlds.reset(which)
        if self.besides is not None:
            self.besides.reset(which)
        stiffness, friction = worlds.stiffness.numpy().copy(), worlds.friction.numpy().copy()
        for number in np.flatnonzero(which).tolist():
            seed, drawn = draw_episode(self.task, self.choice, self._spans, generators[number])
            worlds.set_anatomy(number if len(worlds.seeds) > 1 else 0, seed)
            if STIFFNESS in drawn:
                stiffness[number] = drawn[STIFFNESS] * KILOPASCAL / worlds.tissue.young
            if FRICTION in drawn:
                friction[number] = drawn[FRICTION] / self._roughness
            if self.besides is not None:
                self.besides.begin(number, seed, drawn)
            self._begin_one(number, seed, generators[number])
        own = np.arange(self.count) if len(worlds.seeds) > 1 else np.zeros(self.count)
        worlds.set_materials(stiffness=stiffness, friction=friction, anatomy=own.astype(np.int32))

    def _begin_one(self, number: int, seed: int, rng: np.random.Generator) -> None:
        arm = self._arms[number]
        arm.place(self._home)
        self._template.seed = seed  # an attempt reads it as it begins
        episode = self._episodes[number] = self.task.begin(self._seen(number), arm.space, rng)
        self.observations[number] = self._eyes.look(self._template, arm, episode, NOTHING_FELT)
        self.rewards[number] = self.features[number] = 0.0
        self.terminated[number] = self.truncated[number] = self.success[number] = False
        self._actions[number] = 0

    def _seen(self, number: int) -> Any:
        """The world as an attempt sees it."""
        return self._template if self.besides is None else self.besides.world(number)

    def act(self, actions: NDArray[np.float32], which: NDArray[np.bool_]) -> None:
        given = np.asarray(actions, dtype=np.float64)
        numbers = np.flatnonzero(which).tolist()
        if not np.isfinite(given[numbers]).all():
            raise InputError("an action is not finite.", f"Give {self._arms[0].size} finite numbers for each world.")
        for number in numbers:
            if self._episodes[number] is None:
                raise InputError(f"the episode of world {number} is over.", "Begin another.")
            arm = self._arms[number]
            arm.move(given[number], self.ticks * TICK)
            wanted = arm.input()
            self._poses[number, self._tool] = (*wanted.position, *wanted.orientation)
        worlds = self.worlds
        closed = np.array([arm.closed for arm in self._arms])
        self._grips[:, self._tool] = closed
        worlds.set_tools(self._poses, self._active, grips=self._grips)
        worlds.step(self.ticks)
        if self.besides is not None:
            self.besides.step(closed & which)
        forces, tool = worlds.forces, self._tool
        parts = (forces.mean, forces.strongest, forces.last)
        felt = np.stack([part.numpy()[:, tool] for part in parts], axis=1).astype(np.float64)
        tips = worlds.hand_rows.tip.numpy()[:, tool].tolist()
        broken = worlds.broken.numpy()[:, 0]
        for number in numbers:
            if broken[number]:
                self._end_broken(number)
            else:
                mean, peak, last = felt[number]
                effort = float(np.linalg.norm(given[number, :4])) / 2.0
                self._judge(number, tuple(tips[number]), Felt(mean, peak, last), effort)

    def _judge(self, number: int, tip: Vector3, felt: Felt, effort: float) -> None:
        episode, arm = self._episodes[number], self._arms[number]
        assert episode is not None
        fx, fy, fz, tx, ty, tz = felt.last.tolist()
        state = ToolState(self.task.tool, position=tip, active=True, force=(fx, fy, fz), torque=(tx, ty, tz))
        verdict = episode.judge(Acted(state, felt, arm.closed, effort))
        self._actions[number] += 1
        over = verdict.success or verdict.failed
        self.features[number] = [verdict.features[name] for name in self.names]
        self.rewards[number] = sum(self.weights[name] * value for name, value in verdict.features.items())
        self.terminated[number], self.success[number] = over, verdict.success
        self.truncated[number] = not over and self._actions[number] >= self.most_actions
        self.observations[number] = self._eyes.look(self._template, arm, episode, felt)
        if over or self.truncated[number]:
            self._episodes[number] = None

    def _end_broken(self, number: int) -> None:
        """Tissue that is no longer finite ends an episode for no fault of the agent's."""
        self._episodes[number] = None
        self.rewards[number] = self.features[number] = 0.0
        self.terminated[number], self.truncated[number], self.success[number] = False, True, False

    def close(self) -> None:
        self.worlds.close()

    # --- what cannot be ---

    def _check(self) -> None:
        if not self.task.batches:
            raise InputError(f"{self.task.name} cannot be played in a batch.", "Make it without batched=True.")
        if not self._eyes.flat:
            raise InputError("a batch of environments has no pictures.", "Observe state, goal, force and truth.")

    def _check_spans(self) -> None:
        own = () if self.besides is None else self.besides.settings
        beyond = sorted(set(self._spans) - {STIFFNESS, FRICTION, *own})
        if beyond:
            able = ", ".join(repr(name) for name in (STIFFNESS, FRICTION, *own))
            raise InputError(f"a batch cannot randomise {beyond[0]!r}.", f"It can: {able}.")
        for name, span in self._spans.items():
            for value in span if name != FRICTION else ():
                self._template.settings.check(SetParameter(name, value))
