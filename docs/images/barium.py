"""docs/images/barium.png: X-rays of the barium scenario's own script, 384 pixels each; and barium-film.png, the open
view of a colon after the barium has run out of it.

python docs/images/barium.py [film]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import viscera
from viscera import render, xray
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


def film() -> None:
    """Eight seconds of injection with the head down, then four of draining with the head up."""
    world = viscera.make("barium", device="cpu", seed=3, detail=0.4, cores=1)
    for settings, ticks in (
        ({"flow": 25.0, "tilt": -20.0}, 8_000),
        ({"flow": 0.0, "drain": 50.0, "tilt": 60.0}, 4_000),
    ):
        for name, value in settings.items():
            world.apply(viscera.SetParameter(name, value))
        world.step(ticks)
    world.wait()
    eye = render.make(world.scene(), device=world.device.sibling(1), width=800, height=800)
    world.show_now()
    world.write_arrays(eye.arrays)
    Image.fromarray(eye.render(world.frame()).colour).save(Path(__file__).with_name("barium-film.png"))


if __name__ == "__main__":
    film() if "film" in sys.argv else main()
