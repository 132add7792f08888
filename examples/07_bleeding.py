"""Open a vein on the liver, let it bleed, clip it, rinse and suck; then ask where all the blood is.

The volume that left the vessel must be ∫Q dt to within one particle, nothing may be missing from the ledger, and after
the clip not one more drop may come.

    python examples/07_bleeding.py [--seconds 2]
"""

from __future__ import annotations

import argparse

import numpy as np

from viscera.anatomy import liver
from viscera.blood.balance import check_balance, make_ledger, step_ledger
from viscera.blood.drops.drops import make_drops, set_tools, step_drops
from viscera.blood.film.film import make_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.wounds.vessels import flow_rate, vessel_mmhg
from viscera.blood.wounds.wounds import WoundParams, add_wound, make_wounds, set_clip, step_wounds
from viscera.device import open_device
from viscera.errors import VisceraError

FRAME = 0.016
"""[s]"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of bleeding, and as much of cleaning")
    parser.add_argument("--device", default=None)
    options = parser.parse_args()

    device = open_device(options.device)
    mesh = liver()
    params = FilmParams(gravity=(0.0, -9.81, 0.0))
    film = make_film(mesh, params, capacity=8_000, device=device)
    assert film.surface is not None
    drops = make_drops(film.surface, params, film.state)
    wounds = make_wounds(film.surface, params, film.state, WoundParams(clot_time=0.0), FRAME)
    ledger = make_ledger(film.state, wounds, drops)
    front = mesh.vertices[np.argmax(mesh.vertices[:, 2])]
    vein, opening = vessel_mmhg(7.0, 7.0, 4.0), 0.2e-3
    number = add_wound(wounds, front, vein, opening)

    def frame(stage) -> None:
        step_wounds(stage, wounds)
        for _ in range(8):
            step_film(stage, film)
        step_drops(stage, drops)
        step_ledger(stage, ledger)

    program = device.record(frame, work=film.work)
    frames = max(1, round(options.seconds / FRAME))
    for _ in range(frames):
        program.run()
    bled = check_balance(ledger, frames)
    expected = flow_rate(vein, opening) * frames * FRAME
    print(f"bled {1e6 * bled.given:.3f} mL in {frames * FRAME:.2f} s, expected {1e6 * expected:.3f} mL")
    assert 0.0 <= expected - bled.given < params.particle_volume

    set_clip(wounds, number)
    above = front + np.array([0.0, 0.02, 0.02])
    set_tools(drops, suction=front, reach=6e-3, nozzle=above, nozzle_velocity=(0.0, -0.5, -0.5), nozzle_rate=1e-6)
    for _ in range(frames):
        program.run()
    after = check_balance(ledger, 2 * frames)
    for name in ("given", "rinsed", "film", "air", "sucked", "lost"):
        print(f"{name:>8} {1e6 * getattr(after, name):8.3f} mL")
    if after.given != bled.given:
        raise VisceraError("the clip leaks.", "It should not.")
    assert after.missing == 0
    assert after.sucked > 0.0
    print("nothing is missing")


if __name__ == "__main__":
    main()
