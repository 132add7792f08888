"""The operation's own surgeon, phase by phase: what it does with a patient, and what comes of it.

    python -m verify.operation --seed 1                 the textbook's order
    python -m verify.operation --seed 1 --until clips   up to this phase
    python -m verify.operation --clumsy                 the one that cuts first

prints a line for each stroke and, in the end, one of JSON with all that is measured. Its exit status is 1 where the
goals of the first level are not met; with `--clumsy`, where they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

import viscera
from viscera.scenarios.cholecystectomy import LEVELS, SPACING, body, steps
from viscera.scenarios.cholecystectomy.eyes import Eyes
from viscera.scenarios.cholecystectomy.patient import draw_patient
from viscera.scenarios.cholecystectomy.surgeon import EACH, SCISSORS, Stroke, Surgeon
from viscera.world.world import World

TOLD = (
    "calot_cleared", "critical_view", "secured", "freed", "taken_out", "duct_burn", "common_hurt", "liver_cut",
    "blood_lost", "bleeding", "bile_spilt", "holes", "clips_held", "clips_slipped", "clips_refused",
)  # fmt: skip
"""Measures that a line has, where they are not 0."""


def strokes_of(world: World, until: str | None, clumsy: bool) -> Iterator[tuple[str, Stroke]]:
    """With the name of the phase that each belongs to."""
    patient = draw_patient(world.seed)
    eyes = Eyes(world.organs[0], patient, body.make_field(patient, SPACING), world.system("tubes").holds)
    scissors = world.hands[SCISSORS].instrument
    if clumsy:
        yield from (("clumsy", stroke) for stroke in steps.clumsiness(eyes, scissors))
        return
    for name, strokes in steps.phases(eyes, scissors):
        yield from ((name, stroke) for stroke in strokes())
        if name == until:
            return


def play(world: World, until: str | None, clumsy: bool) -> None:
    """All strokes, each told when the one before is over."""
    names: list[str] = [""]

    def told() -> Iterator[Stroke]:
        for name, stroke in strokes_of(world, until, clumsy):
            names.append(name)
            yield stroke

    surgeon, count = Surgeon(told()), 0
    while not surgeon.done:
        given = surgeon.script(world, world.tick)
        if surgeon.count != count:
            count = surgeon.count
            values = world.measure_values()
            words = " ".join(f"{name} {values[name]:.3g}" for name in TOLD if values.get(name))
            print(f"{world.time:6.1f} s  {names[-1]:10s}  {words}", flush=True)
        for one in given:
            world.apply(one)
        world.step(EACH)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.operation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--until", help="name of the last phase")
    parser.add_argument("--clumsy", action="store_true")
    chosen = parser.parse_args()
    world = viscera.make("cholecystectomy", device="cpu", seed=chosen.seed, cores=chosen.cores)
    play(world, chosen.until, chosen.clumsy)
    values = world.measure_values()
    good = all(goal.met(values[goal.measure]) for goal in LEVELS[0].goals)
    print(json.dumps({"seed": chosen.seed, "patient": draw_patient(chosen.seed).words, "good": good} | values))
    return int(good == chosen.clumsy)


if __name__ == "__main__":
    sys.exit(main())
