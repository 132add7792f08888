"""Makes xray.png: one study through four C-arms, and a made-up CT of the same patient around it.

python docs/images/xray.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import nibabel
import numpy as np
from PIL import Image

import viscera
from viscera import xray
from viscera.world import World
from viscera.xray import CArm

SETTINGS = {"flow": 25.0, "tilt": -25.0, "roll": 30.0}
SECONDS = 9
ARMS = (
    CArm(pixels=384),
    CArm(primary=35.0, secondary=15.0, pixels=384),
    CArm(field=0.16, isocentre=(0.03, 0.0, 0.0), shutters=(0.1, 0.1, 0.2, 0.05), pixels=384),
)


def filled(scan: Path | None = None) -> World:
    options = {} if scan is None else {"scan": scan}
    world = viscera.make("barium", device="cpu", seed=3, detail=0.6, options=options)
    for name, value in SETTINGS.items():
        world.apply(viscera.SetParameter(name, value))
    world.step(1000 * SECONDS)
    world.wait()
    return world


def seen(world: World, arm: CArm) -> np.ndarray:
    machine = world.system("xray").holds
    xray.aim(machine, arm)
    xray.settle(machine)
    return xray.picture(machine)[::-1, :, 0].copy()


def made_up_ct(path: Path) -> Path:
    """A trunk of muscle in fat, with a spine, a pelvis and gas of its own, 3 mm voxels, in a NIfTI file's axes."""
    side = np.array([140, 100, 170])
    x, y, z = np.meshgrid(*(3.0 * (np.arange(n) - 0.5 * (n - 1)) for n in side), indexing="ij", sparse=True)
    values = np.full(tuple(side), -1000.0, dtype=np.float32)
    values[(np.abs(x / 195.0) ** 2.5 + np.abs(y / 135.0) ** 2.5 < 1.0) & (z == z)] = -90.0
    values[(np.abs(x / 175.0) ** 2.5 + np.abs(y / 112.0) ** 2.5 < 1.0) & (z == z)] = 45.0
    discs = (np.abs((z + 3.0) % 38.0 - 19.0) < 15.0) * 350.0 + 150.0
    values = np.where(((x / 22.0) ** 2 + ((y + 70.0) / 18.0) ** 2 < 1.0) & (z == z), discs, values)
    wing = ((np.abs(x) - 95.0) / 45.0) ** 2 + ((y + 40.0) / 50.0) ** 2 + ((z + 190.0) / 70.0) ** 2
    values = np.where((wing < 1.0) & (wing > 0.72), 700.0, values).astype(np.float32)
    image = nibabel.Nifti1Image(values, np.diag([3.0, 3.0, 3.0, 1.0]))
    image.header.set_xyzt_units("mm")
    nibabel.save(image, path)
    return path


def main() -> None:
    world = filled()
    panels = [seen(world, arm) for arm in ARMS]
    world.close()
    with tempfile.TemporaryDirectory() as folder:
        world = filled(made_up_ct(Path(folder) / "ct.nii.gz"))
        panels.append(seen(world, ARMS[0]))
        world.close()
    gap = np.full((panels[0].shape[0], 8), 255, dtype=np.uint8)
    row = np.concatenate([one for panel in panels for one in (panel, gap)][:-1], axis=1)
    Image.fromarray(row).save(Path(__file__).with_name("xray.png"))


if __name__ == "__main__":
    main()
