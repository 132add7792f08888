"""A scripted surgeon takes out a gall bladder, or a clumsy one cuts its artery before there is a clip.

Checked: no picolitre of blood, bile or saline is missing at the end, and the clumsy one loses blood.

    python examples/23_an_operation.py [--clumsy] [--seed 0] [--seconds 4]
"""

from __future__ import annotations

import argparse

import viscera
from viscera.scenarios.cholecystectomy.patient import draw_patient
from viscera.scenarios.cholecystectomy.surgeon import Surgeon, clumsiness, operation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clumsy", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="simulated; without, until all is done")
    chosen = parser.parse_args()
    patient = draw_patient(chosen.seed)
    print(f"patient {chosen.seed}: {patient.words}")
    world = viscera.make("cholecystectomy", seed=chosen.seed)
    surgeon = Surgeon(world.organs[0], (clumsiness if chosen.clumsy else operation)(patient))
    ticks = surgeon.ticks + 1000 if chosen.seconds is None else round(1000 * chosen.seconds)
    for tick in range(ticks):
        for one in surgeon.script(world, tick):
            world.apply(one)
        world.advance()
    world.wait()
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
