"""A scripted surgeon takes out a gall bladder, or a clumsy one cuts its artery before there is a clip.

Checked: no picolitre of blood, bile or saline is missing at the end, and the clumsy one loses blood.

    python examples/26_an_operation.py [--clumsy] [--seed 0] [--seconds 4]
"""

from __future__ import annotations

import argparse

import viscera
from viscera.scenarios.cholecystectomy.body import make_field
from viscera.scenarios.cholecystectomy.eyes import Eyes
from viscera.scenarios.cholecystectomy.patient import draw_patient
from viscera.scenarios.cholecystectomy.steps import clumsiness, operation
from viscera.scenarios.cholecystectomy.surgeon import SCISSORS, Surgeon


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clumsy", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="simulated; without, until all is done")
    chosen = parser.parse_args()
    patient = draw_patient(chosen.seed)
    print(f"patient {chosen.seed}: {patient.words}")
    world = viscera.make("cholecystectomy", seed=chosen.seed)
    field = make_field(patient, world.organs[0].body.spacing)
    eyes = Eyes(world.organs[0], patient, field, world.system("tubes").holds)
    plan = clumsiness if chosen.clumsy else operation
    surgeon = Surgeon(plan(eyes, world.hands[SCISSORS].instrument))
    while not surgeon.done and (chosen.seconds is None or world.time < chosen.seconds):
        for one in surgeon.script(world, world.tick):
            world.apply(one)
        world.advance()
    world.step(1000)
    values, balance = world.measure_values(), world.system("ledger").holds.balance
    for name in (
        "calot_cleared",
        "critical_view",
        "secured",
        "freed",
        "taken_out",
        "blood_lost",
        "bile_spilt",
        "duct_burn",
    ):
        print(f"{name:14s} {values[name]:.2f}")
    assert balance.missing == 0, "fluid is missing"
    assert not (chosen.clumsy and chosen.seconds is None) or values["blood_lost"] > 0.0, "nothing bled"


if __name__ == "__main__":
    main()
