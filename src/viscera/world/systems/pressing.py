"""How hard a tool presses, as people watch it and as goals ask for it."""

from __future__ import annotations

import numpy as np

from viscera.errors import InputError
from viscera.instruments import Pushes, Tool
from viscera.view import Measure
from viscera.world.system import Kept, Moment, System


def pressing(tool: Tool) -> System:
    """Measures `<name>_force` and `<name>_peak` of a tool that `kit.hand_out` gave: what its hand feels at the tip, as
    of the last tick of each frame, and the most of that so far [N]. `peak_force` of a headless run sees every tick."""
    one = tool.instrument
    if one.effect(Pushes) is None:
        raise InputError(f"{one.name} pushes nothing, so it feels no force.", "Give it the effect Pushes(radius).")
    force = Measure(f"{one.name}_force", "Force", "N", "What the hand feels at the tip.", digits=2)
    peak = Measure(f"{one.name}_peak", "Peak force", "N", "The most so far.", digits=2, grows=True)
    numbers = np.zeros(2)

    def frame(now: Moment) -> None:
        felt = next(felt for felt in now.felt if felt.tool == tool.number)
        numbers[0] = np.linalg.norm(felt.force)
        numbers[1] = max(numbers[0], numbers[1])

    kept = Kept({"numbers": numbers})
    return System(
        name=f"{one.name}.pressing",
        frame=frame,
        save=kept.save,
        load=kept.load,
        measures=lambda: [(force, float(numbers[0])), (peak, float(numbers[1]))],
    )
