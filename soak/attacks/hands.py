"""Hands, settings and resets in every world there is: nothing leaves the finite, and the same again is the same."""

from __future__ import annotations

import contextlib
import functools
import math
import random
from typing import Any

import numpy as np

import viscera
from soak.attack import Attack, Broken, Case
from viscera.errors import InputError
from viscera.inputs import Reset, SetParameter, SetTable, ToolInput
from viscera.scenarios import catalogue
from viscera.timing import TICKS_PER_FRAME
from viscera.world import World

STRETCH = 3
"""Cases in one scenario; all scenarios have theirs before the first has its next."""

DETAIL = 0.2
"""Worlds are small, so that there can be many cases."""


def draw(chance: random.Random, small: bool) -> Case:
    scenario = "palpation" if small else _stretch(chance)
    steps = [_step(chance) for _ in range(chance.choice((3, 10) if small else (5, 20, 40)))]
    return {"scenario": scenario, "seed": chance.randrange(3), "steps": steps}


_drawn: list[str] = []


def _stretch(chance: random.Random) -> str:
    """The same scenario several times in a row, since making a world takes longer than a case; then the next one of
    all there are, in an order that is drawn anew for each round."""
    if not _drawn:
        names = list(catalogue())
        chance.shuffle(names)
        _drawn.extend(name for name in names for _ in range(STRETCH))
    return _drawn.pop()


def _step(chance: random.Random) -> dict[str, Any]:
    """Places and values are shares of what is allowed; some are beyond it."""
    ticks = chance.choice((1, 1, 3, 16, 30))
    way = chance.random()
    if way < 0.65:
        bad = chance.random() < 0.05
        share = [chance.choice((math.nan, math.inf, 1e9)) if bad else chance.uniform(-0.1, 1.1) for _ in range(3)]
        if chance.random() < 0.5:
            share[2] = chance.uniform(0.0, 0.5)  # where the tissue is
        turn = [chance.gauss(0.0, 1.0) for _ in range(4)]
        grip = chance.choice((0.0, 1.0, chance.random(), -1.0 if bad else 1.0))
        return {"ticks": ticks, "tool": chance.randrange(5), "share": share, "turn": turn, "grip": grip,
                "active": chance.random() < 0.9, "direct": chance.random() < 0.2}  # fmt: skip
    if way < 0.9:
        share = chance.choice((0.0, 1.0, chance.random(), 2.0, math.nan))
        return {"ticks": ticks, "setting": chance.randrange(100), "share": share}
    return {"ticks": ticks, "reset": chance.randrange(3)}


@functools.lru_cache(maxsize=2)
def _world(scenario: str) -> World:
    """One that makes room for others is forgotten; its threads and memory go with it, or memory grows: a finding."""
    return viscera.make(scenario, device="cpu", cores=1, detail=DETAIL)


def attempt(case: Case) -> None:
    world = _world(case["scenario"])
    if _run(world, case) != _run(world, case):
        raise Broken("the same inputs gave another world")


def _run(world: World, case: Case) -> dict[str, bytes]:
    """Every array at the end but those that count time, which goes on over a reset."""
    world.step(-world.tick % TICKS_PER_FRAME)
    for parameter in world.scene().parameters:
        world.apply(SetParameter(parameter.name, parameter.default))
    for given in world.scene().tables:
        world.apply(SetTable(given.name, given.rows))
    world.apply(Reset(case["seed"]))
    world.step(TICKS_PER_FRAME)
    for step in case["steps"]:
        with contextlib.suppress(InputError):
            _do(world, step)
        world.step(step["ticks"])
    world.step(-world.tick % TICKS_PER_FRAME)
    _check_finite(world)
    return {name: np.asarray(array).tobytes() for name, array in world.save_state().items() if "tick" not in name}


def _do(world: World, step: dict[str, Any]) -> None:
    if "reset" in step:
        world.apply(Reset(step["reset"]))
    elif "setting" in step:
        parameters = world.scene().parameters
        if parameters:
            one = parameters[step["setting"] % len(parameters)]
            world.apply(SetParameter(one.name, one.minimum + step["share"] * (one.maximum - one.minimum)))
    else:
        low, high = np.array(world.room.low), np.array(world.room.high)
        with np.errstate(invalid="ignore"):
            x, y, z = (low + np.array(step["share"]) * (high - low)).tolist()
        length = math.hypot(*step["turn"]) or 1.0
        a, b, c, d = (part / length for part in step["turn"])
        hand = ToolInput(step["tool"], (x, y, z), (a, b, c, d), step["grip"], step["active"], step["direct"])
        world.apply(hand if step["tool"] % 2 else world.within(hand))


def _check_finite(world: World) -> None:
    shown = world.snapshot()
    for name, array in shown.arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array[: shown.counts.get(name)]).all():
            raise Broken(f"{name} is not finite")
    for tool in shown.tools:
        if not all(map(math.isfinite, (*tool.force, *tool.position))):
            raise Broken(f"tool {tool.tool} feels {tool.force} at {tool.position}")


ATTACK = Attack("hands", "hands, settings, resets in every scenario, twice", draw, attempt, patience=240.0, turn=60.0)
