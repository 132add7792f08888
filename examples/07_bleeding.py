"""Open a vein on the liver, let it bleed, clip it, rinse and suck; then ask where all the blood is.

The volume that left the vessel must be ∫Q dt to within one particle, nothing may be missing from the ledger, and after
the clip not one more drop may come.

    python examples/07_bleeding.py [--seconds 2]
"""

from __future__ import annotations

import argparse

import numpy as np

from viscera import anatomy, drops, film, ledger, open_device, wounds
from viscera.errors import VisceraError

FRAME = 0.016
"""[s]"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="of bleeding, and as much of cleaning")
    parser.add_argument("--device", default=None)
    options = parser.parse_args()

    device = open_device(options.device)
    mesh = anatomy.liver()
    params = film.FilmParams(gravity=(0.0, -9.81, 0.0))
    blood = film.make(mesh, params, capacity=8_000, device=device)
    spray = drops.make(blood)
    cut = wounds.make(blood, wounds.WoundParams(clot_time=0.0), dt=FRAME)
    book = ledger.make(blood, cut, spray)
    front = mesh.vertices[np.argmax(mesh.vertices[:, 2])]
    vein, opening = wounds.vessel_mmhg(7.0, 7.0, 4.0), 0.2e-3
    number = wounds.add(cut, front, vein, opening)

    def frame(stage) -> None:
        wounds.step(stage, cut)
        for _ in range(8):
            film.step(stage, blood)
        drops.step(stage, spray)
        ledger.step(stage, book)

    program = device.record(frame, work=blood.work)
    frames = max(1, round(options.seconds / FRAME))
    program.run(frames)
    ledger.check(book, frames)
    bled = ledger.read(book)
    expected = wounds.flow_rate(vein, opening) * frames * FRAME
    print(f"bled {1e6 * bled.given:.3f} mL in {frames * FRAME:.2f} s, expected {1e6 * expected:.3f} mL")
    assert 0.0 <= expected - bled.given < params.particle_volume

    wounds.clip(cut, number)
    above = front + np.array([0.0, 0.02, 0.02])
    drops.set_tools(spray, suction=front, reach=6e-3, nozzle=above, nozzle_velocity=(0.0, -0.5, -0.5), nozzle_rate=1e-6)
    program.run(frames)
    ledger.check(book, 2 * frames)
    after = ledger.read(book)
    for name in ("given", "rinsed", "film", "air", "sucked", "lost"):
        print(f"{name:>8} {1e6 * getattr(after, name):8.3f} mL")
    if after.given != bled.given:
        raise VisceraError("the clip leaks.", "It should not.")
    assert after.missing == 0
    assert after.sucked > 0.0
    print("nothing is missing")


if __name__ == "__main__":
    main()
