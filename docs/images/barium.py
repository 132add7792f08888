"""docs/images/barium.png: X-rays of the barium scenario's own script, 384 pixels each.

python docs/images/barium.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import viscera
from viscera import xray
from viscera.xray import CArm, files

LOOKS = ((10_000, 0.0, 0.0, 0.0), (20_000, 0.0, 0.0, 0.0), (47_000, 0.0, 0.0, 0.06), (56_000, 35.0, 15.0, 0.02))
"""Tick, LAO and cranial angle [°], and how far towards the head [m]."""


def main() -> None:
    world = viscera.make("barium", device="cpu", seed=0)
    machine = world.system("xray").holds
    pictures = []
    for tick in range(LOOKS[-1][0] + 1):
        for one in world.script(tick):
            if getattr(one, "name", "") != "beam":
                world.apply(one)
        world.step()
        for at, primary, secondary, along in LOOKS:
            if tick == at:
                world.wait()
                place = (0.0, along, 0.0)
                xray.aim(machine, CArm(primary, secondary, pixels=machine.pixels, isocentre=place, iris=0.19))
                xray.settle(machine, 12)
                pictures.append(xray.picture(machine)[::-1, :, 0].copy())
    files.write_png(Path(__file__).with_name("barium.png"), np.ascontiguousarray(np.concatenate(pictures, axis=1)))


if __name__ == "__main__":
    main()
