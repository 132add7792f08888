"""Smoke and saline in the scenarios that have them: how true the pressure is, with a tool that stirs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import viscera
from verify.framework import Measured, figure
from viscera import grid
from viscera.bench.smoke import SYSTEMS
from viscera.inputs import ToolInput
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.world.systems.boxed_flow import BoxedFlow

AREA = "smoke"
STARTS = {"bleeding": 4500}
"""Ticks of the scenario's own hand before its tissue smokes; of the others 0."""
SECONDS = 3.0
STROKE, PERIOD = 0.02, 1.1
"""The tool that stirs: how far it goes to either side [m], and the time of a turn [s]; 0.11 m/s where it is fastest."""
OVER = 0.015
"""How high over the tissue its tip is [m]."""
PRESSED = 2
"""The part of a step that comes next when pressure has just been found (`boxed_flow`)."""


@dataclass(frozen=True)
class Left:
    """Divergence after projection over before, L2 over all cells."""

    worst: float
    mean: float
    steps: int


def left_in(name: str, seconds: float = SECONDS) -> Left:
    """Of every step of the flow while the scenario's script runs and its last tool, whose pedal is not pressed, goes to
    and fro in the box over the tissue."""
    world = viscera.make(name, device="cpu", seed=1)
    system = world.system(SYSTEMS[name]).holds
    box: BoxedFlow = system.box
    organ, tool = world.organs[0], len(world.hands) - 1
    first = STARTS.get(name, 0)
    ratios = []
    for tick in range(first + round(seconds / TICK)):
        for one in world.script(tick):
            world.apply(one)
        if tick >= first and tick % 10 == 0:
            x = STROKE * math.sin(2.0 * math.pi * TICK * (tick - first) / PERIOD)
            world.apply(ToolInput(tool, (x, 0.005, organ.height(x, 0.005) + OVER)))
        world.advance()
        if tick % TICKS_PER_FRAME == TICKS_PER_FRAME - 1:
            world.wait()
            before, after = grid.divergence(box.flow)
            if tick >= first and box.next_part == PRESSED and before > 0.0:
                ratios.append(after / before)
    world.close()
    return Left(max(ratios), sum(ratios) / len(ratios), len(ratios))


@figure(
    area=AREA,
    claim="divergence after projection over before in smoke, hysteroscopy, cautery, bleeding, with a tool that stirs",
    bound="≤ 1e-4 in every step",
    also=("viscera.scenarios.smoke", "viscera.scenarios.hysteroscopy", "viscera.scenarios.cautery",
          "viscera.scenarios.bleeding"),
)  # fmt: skip
def pressure_is_true() -> Measured:
    found = {name: left_in(name) for name in SYSTEMS}
    worst = max(one.worst for one in found.values())
    each = ", ".join(f"{name} {one.worst:.2g} (mean {one.mean:.2g}, {one.steps} steps)" for name, one in found.items())
    return Measured(worst, "", worst <= 1e-4, f"worst of all steps; {each}")
