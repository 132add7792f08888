"""The operation's own surgeon, phase by phase: what it does with a patient, and what comes of it.

    python -m verify.operation --seed 1                 the textbook's order
    python -m verify.operation --seed 1 --until clips   up to this phase
    python -m verify.operation --clumsy                 the one that cuts first
    python -m verify.operation --keep states            the state before each stroke goes into this folder
    python -m verify.operation --begin states/021-clips.npz     on from there

prints a line for each stroke and, in the end, one of JSON with all that is measured. Its exit status is 1 where the
goals of the first level are not met; with `--clumsy`, where they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import viscera
from viscera.scenarios.cholecystectomy import LEVELS, SPACING, body, steps
from viscera.scenarios.cholecystectomy.eyes import Eyes
from viscera.scenarios.cholecystectomy.patient import draw_patient
from viscera.scenarios.cholecystectomy.surgeon import EACH, SCISSORS, Stroke, Surgeon, Vector3
from viscera.world.world import World

TOLD = (
    "calot_cleared", "critical_view", "secured", "freed", "taken_out", "duct_burn", "common_hurt", "liver_cut",
    "blood_lost", "bleeding", "bile_spilt", "holes", "clips_held", "clips_slipped", "clips_refused",
)  # fmt: skip
"""Measures that a line has, where they are not 0."""


def strokes_of(world: World, clumsy: bool, first: str | None, last: str | None) -> Iterator[tuple[str, Stroke]]:
    """With the name of the phase that each belongs to, from this phase on to that one."""
    patient = draw_patient(world.seed)
    eyes = Eyes(world.organs[0], patient, body.make_field(patient, SPACING), world.system("tubes").holds)
    scissors = world.hands[SCISSORS].instrument
    if clumsy:
        yield from (("clumsy", stroke) for stroke in steps.clumsiness(eyes, scissors))
        return
    phases = steps.phases(eyes, scissors)
    names = [name for name, _ in phases]
    begin, end = names.index(first) if first else 0, names.index(last) if last else len(names) - 1
    for name, strokes in phases[begin : end + 1]:
        yield from ((name, stroke) for stroke in strokes())


def play(world: World, strokes: Iterator[tuple[str, Stroke]], pull: Vector3 | None, keep: Path | None) -> None:
    """All strokes, each told when the one before is over. `pull` is how far a grasper that holds has pulled [m]."""
    names: list[str] = []

    def told() -> Iterator[Stroke]:
        for name, stroke in strokes:
            names.append(name)
            yield stroke

    surgeon, count = Surgeon(told(), pull), 0
    while not surgeon.done:
        before = surgeon.now
        given = surgeon.script(world, world.tick)
        if surgeon.count != count:
            count = surgeon.count
            print(line_of(world, names[-1] if not surgeon.done else "end"), flush=True)
            if keep is not None and before is not None:
                found = {"phase": np.array(names[-1]), "pull": np.array(before.pull)}
                held: dict[str, Any] = found | world.save_state()
                name = f"{round(world.time):03d}-{names[-1].replace(' ', '-')}.npz"
                np.savez(keep / name, **held)
        for one in given:
            world.apply(one)
        for _ in range(EACH):
            world.advance()


def line_of(world: World, phase: str) -> str:
    values = world.measure_values()
    words = " ".join(f"{name} {values[name]:.3g}" for name in TOLD if values.get(name))
    return f"{world.time:6.1f} s  {phase:10s}  {words}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.operation", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--until", help="name of the last phase")
    parser.add_argument("--clumsy", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder for the state before each stroke")
    parser.add_argument("--begin", type=Path, help="such a state")
    chosen = parser.parse_args()
    world = viscera.make("cholecystectomy", device="cpu", seed=chosen.seed, cores=chosen.cores)
    first, pull = None, None
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    if chosen.begin is not None:
        with np.load(chosen.begin) as held:
            first, pull = str(held["phase"]), held["pull"].tolist()
            world.load_state({name: held[name] for name in held.files if name not in ("phase", "pull")})
    play(world, strokes_of(world, chosen.clumsy, first, chosen.until), pull, chosen.keep)
    world.wait()
    values = world.measure_values()
    good = all(goal.met(values[goal.measure]) for goal in LEVELS[0].goals)
    print(json.dumps({"seed": chosen.seed, "patient": draw_patient(chosen.seed).words, "good": good} | values))
    return int(good == chosen.clumsy)


if __name__ == "__main__":
    sys.exit(main())
