"""One world and one agent in it: episodes that begin, are acted in, and end. Knows nothing of gymnasium, so that other
libraries, and many worlds at once, can stand on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError, StateError
from viscera.inputs import Input, SetParameter
from viscera.learning.arm import Arm, Control
from viscera.learning.observing import Eyes, Observation
from viscera.learning.task import NOTHING_FELT, Acted, Episode, Felt, Task
from viscera.scenarios import make
from viscera.timing import TICK
from viscera.view import ToolState
from viscera.world import World
from viscera.world.again import Again

FRICTION = "friction"
"""Of all tools on tissue: randomised beside the scenario's own settings."""
LARGEST_SEED = 2**31 - 1

Record = Callable[[int, Input], None]


@dataclass(frozen=True)
class Choice:
    """What of a task one may choose otherwise."""

    control: Control = "trocar"
    observe: tuple[str, ...] = ("state", "goal", "force")
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of features, in the place of the task's own."""
    randomise: bool | Mapping[str, tuple[float, float]] = False
    """Settings drawn anew for each episode: the task's own, or these."""
    device: str | None = "cpu"
    cores: int | None = 1
    """Many worlds run side by side, so each has one."""
    detail: float | None = None
    ticks: int | None = None
    most_actions: int | None = None
    world_seed: int | None = None
    """All episodes in the world of this seed."""
    picture: tuple[int, int] = (128, 128)
    points: int = 512


@dataclass(frozen=True)
class Outcome:
    """After an action."""

    observation: Observation
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Lane:
    """Made once; `begin` and `act` as often as you like."""

    def __init__(self, task: Task, choice: Choice) -> None:
        self.task, self.choice = task, choice
        self.weights = weights_of(task, choice.weights)
        self._spans = spans_of(task, choice.randomise)
        self.ticks = positive("ticks", choice.ticks, task.ticks)
        self.most_actions = positive("most_actions", choice.most_actions, task.most_actions)
        self.eyes = Eyes(task, choice.observe, choice.picture, choice.points)
        self.world = self._make(0 if choice.world_seed is None else choice.world_seed)
        self._check_spans()
        self._again = Again(self.world)
        self.arm = self._new_arm()
        self.record: Record | None = None
        """Told every input and the tick that it comes before."""
        self.watch: Callable[[World], None] | None = None
        """Sees the world after every tick."""
        self._episode: Episode | None = None
        self._actions = 0
        self._felt = NOTHING_FELT
        self.drawn: dict[str, float] = {}
        """What was randomised for this episode."""

    def _make(self, seed: int) -> World:
        choice = self.choice
        detail = self.task.detail if choice.detail is None else choice.detail
        world = make(self.task.scenario, device=choice.device, seed=seed, detail=detail, cores=choice.cores)
        if choice.cores == 1:
            world.take_turns_inline()
        return world

    def _new_arm(self) -> Arm:
        return arm_of(self.task, self.world, self.choice.control)

    # --- an episode ---

    def begin(self, rng: np.random.Generator) -> tuple[Observation, dict[str, Any]]:
        """A new episode; all that is drawn comes from `rng`."""
        seed, self.drawn = draw_episode(self.task, self.choice, self._spans, rng)
        settings = {name: value for name, value in self.drawn.items() if name != FRICTION}
        world = self.world
        contents = world.contents
        self._again.begin(seed, settings)
        if world.contents is not contents:
            self.eyes.forget()
            self.arm = self._new_arm()
        world.contact.set_friction(self.drawn.get(FRICTION))
        self.arm.place(np.asarray(world.hands[self.task.tool].instrument.home))
        self._episode = self.task.begin(world, self.arm.space, rng)
        self._actions, self._felt = 0, NOTHING_FELT
        info = {"world_seed": seed, "settings": dict(self.drawn)}
        return self._look(), info

    def act(self, action: NDArray[Any]) -> Outcome:
        """One action of the agent's, held for `ticks`."""
        if self._episode is None:
            raise InputError("the episode has not begun, or is over.", "Call reset first.")
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (self.arm.size,) or not np.isfinite(action).all():
            raise InputError(f"the action {action!r} is not possible.", f"Give {self.arm.size} finite numbers.")
        self.arm.move(action, self.ticks * TICK)
        self._give(self.arm.input())
        try:
            felt = self._run()
        except StateError as error:
            return self._broken(error)
        self._felt = felt
        effort = float(np.linalg.norm(action[:4])) / 2.0
        acted = Acted(self.world.tools[self.task.tool], felt, self.arm.closed, effort)
        verdict = self._episode.judge(acted)
        assert verdict.features.keys() == self.weights.keys(), "a task's features are not those of its weights"
        reward = sum(self.weights[name] * value for name, value in verdict.features.items())
        self._actions += 1
        over = verdict.success or verdict.failed
        late = not over and self._actions >= self.most_actions
        info = {"features": verdict.features, "is_success": verdict.success, "actions": self._actions}
        outcome = Outcome(self._look(), float(reward), over, late, info)
        if over or late:
            self._episode = None
        return outcome

    def _broken(self, error: StateError) -> Outcome:
        """Tissue that is no longer finite ends an episode for no fault of the agent's, and makes the world anew."""
        look = self._look()
        self._episode = None
        self.world = self._make(self.world.seed)
        self._again = Again(self.world)
        self.eyes.forget()
        self.arm = self._new_arm()
        features = dict.fromkeys(self.weights, 0.0)
        info = {"features": features, "is_success": False, "actions": self._actions + 1, "broken": str(error)}
        return Outcome(look, 0.0, False, True, info)

    def _give(self, one: Input) -> None:
        if self.record is not None:
            self.record(self.world.tick, one)
        self.world.apply(one)

    def _run(self) -> Felt:
        world, tool = self.world, self.task.tool
        rows = np.empty((self.ticks, 6))
        for row in rows:
            world.advance()
            if self.watch is not None:
                self.watch(world)
            row[:] = _felt(world.tools[tool])
        world.wait()
        world.settings.settle()
        strongest = int(np.argmax((rows[:, :3] ** 2).sum(axis=1)))
        return Felt(rows.mean(axis=0), rows[strongest], rows[-1])

    def _look(self) -> Observation:
        assert self._episode is not None
        return self.eyes.look(self.world, self.arm, self._episode, self._felt)

    def sizes(self) -> tuple[int, int]:
        """Numbers that the task tells the agent, and of its truth."""
        episode = self._episode or self.task.begin(self.world, self.arm.space, np.random.default_rng(0))
        return len(episode.goal()), len(episode.truth())

    def close(self) -> None:
        self.world.close()

    # --- what may be chosen ---

    def _check_spans(self) -> None:
        """Refuses what the scenario does not allow, now and not in some later episode."""
        for name, (low, high) in self._spans.items():
            if name != FRICTION:
                for value in (low, high):
                    self.world.settings.check(SetParameter(name, value))


def _felt(tool: ToolState) -> tuple[float, ...]:
    return (*tool.force, *tool.torque)


def arm_of(task: Task, world: World, control: Control) -> Arm:
    """The agent's hand in such a world."""
    length = world.hands[task.tool].instrument.length
    return Arm(task.tool, control, task.limits, task.space(world), task.trocar(world), length, task.activates)


def draw_episode(
    task: Task, choice: Choice, spans: Mapping[str, tuple[float, float]], rng: np.random.Generator
) -> tuple[int, dict[str, float]]:
    """The seed of an episode's world, and what is randomised."""
    seed = choice.world_seed
    if seed is None:
        seed = int(rng.integers(LARGEST_SEED)) if task.new_world else 0
    return seed, {name: float(rng.uniform(*span)) for name, span in spans.items()}


def weights_of(task: Task, other: Mapping[str, float]) -> dict[str, float]:
    unknown = sorted(set(other) - set(task.weights))
    if unknown:
        raise InputError(
            f"{task.name} has no feature {unknown[0]!r}.", f"Its rewards are made of: {', '.join(task.weights)}."
        )
    if not all(np.isfinite(value) for value in other.values()):
        raise InputError("a weight is not finite.", "Give finite numbers.")
    return {**task.weights, **other}


def spans_of(task: Task, wanted: bool | Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    spans = task.randomise if wanted is True else (wanted or {})
    found: dict[str, tuple[float, float]] = {}
    for name, span in spans.items():
        low, high = (float(value) for value in span)
        if not (np.isfinite(low) and np.isfinite(high) and low <= high) or (name == FRICTION and low < 0.0):
            raise InputError(f"randomise: {name} from {low:g} to {high:g} is not possible.", "Give (least, most).")
        found[name] = (low, high)
    return found


def positive(name: str, wanted: int | None, own: int) -> int:
    value = own if wanted is None else wanted
    if not (isinstance(value, int) and value >= 1):
        raise InputError(f"{name} = {value!r} is not possible.", "It is a whole number from 1.")
    return value
