"""Barium in a CT: a scan as the body, a lumen that lies in it, and a picture that adds up.

The scan is made up: a block of water with a lumen of air. The mesh of the lumen lies where the scan has it. A ray
through the middle is checked against what both say: the air of the simulated lumen in the place of the scan's own, and
the rest of the way in water, counted in soft tissue, which attenuates a little more.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import nibabel
import numpy as np

import viscera
from viscera import xray
from viscera.geometry.mesh import TriangleMesh, save_stl
from viscera.geometry.primitives import icosphere
from viscera.xray.materials import AIR, SOFT_TISSUE, WATER, attenuation
from viscera.xray.volume import SCANNER

VOXEL, CELLS = 6.0, 60
"""[mm]; along a side."""
LUMEN = (35.0, 35.0, 120.0)
"""Half its sides, along right, front and head [mm]."""
THICK = VOXEL * (CELLS - 10)
"""Of the water, along a ray [mm]."""


def write_scan(path: Path) -> Path:
    """Water in air, with air in the lumen: NIfTI, right, front and head along its axes."""
    at = VOXEL * (np.arange(CELLS) - 0.5 * (CELLS - 1))
    x, y, z = np.meshgrid(at, at, at, indexing="ij", sparse=True)
    values = np.full((CELLS,) * 3, -1000.0, dtype=np.float32)
    values[5:-5, 5:-5, 5:-5] = 0.0
    values[(x / LUMEN[0]) ** 2 + (y / LUMEN[1]) ** 2 + (z / LUMEN[2]) ** 2 < 1.0] = -1000.0
    affine = np.diag([VOXEL, VOXEL, VOXEL, 1.0])
    affine[:3, 3] = at[0]
    image = nibabel.Nifti1Image(values, affine)
    image.header.set_xyzt_units("mm")
    nibabel.save(image, path)
    return path


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ball = icosphere(1.0, 4)
        mesh = Path(folder) / "lumen.stl"
        save_stl(mesh, TriangleMesh(1e-3 * ball.vertices * LUMEN, ball.triangles, "lumen"))
        scan = write_scan(Path(folder) / "ct.nii.gz")
        world = viscera.make("barium", device="cpu", detail=0.4, mesh=mesh, options={"scan": scan})
    machine = world.system("xray").holds
    for name, value in (("flow", 25.0), ("beam", 1.0), ("tilt", 60.0)):
        world.apply(viscera.SetParameter(name, value))
    world.step(960)
    world.wait()
    lengths, middle = xray.lengths(machine), machine.pixels // 2
    air, soft = (1e3 * lengths[machine.materials.index(one)][middle, middle] for one in (AIR, SOFT_TISSUE))
    share = float(attenuation(WATER, SCANNER) / attenuation(SOFT_TISSUE, SCANNER))
    print(f"a ray through the middle: {air:.1f} mm of air, {soft:.1f} mm of soft tissue")
    print({name: round(value, 2) for name, value in world.measure_values().items()})
    assert abs(air - 2.0 * LUMEN[1]) < 1.0
    # A voxel at each border of water and lumen is known by share only.
    assert abs(soft - share * (THICK - 2.0 * LUMEN[1])) < 2.0 * VOXEL
    assert world.measure_values()["missing"] == 0
    assert world.measure_values()["injected"] > 10.0


if __name__ == "__main__":
    main()
