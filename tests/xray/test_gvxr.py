"""Our pictures of meshes beside those of gVirtualXRay (Vidal et al.), where it is installed: `pip install gvxr`."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xray_scenes import measured

from viscera import anatomy, xray
from viscera.device import Device
from viscera.geometry.mesh import TriangleMesh
from viscera.xray import CArm, Scene, Solid
from viscera.xray.materials import AIR, BONE, SOFT_TISSUE, Material, attenuation

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("gvxrPython3") is None, reason="gVirtualXRay is not installed (pip install gvxr)"
)

ENERGY = 60.0
"""[keV]"""


def save_stl(mesh: TriangleMesh, path: Path) -> str:
    """Binary STL in millimetres."""
    kind = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    data = np.zeros(len(mesh.triangles), dtype=kind)
    data["corners"] = 1e3 * mesh.corners
    path.write_bytes(b"\0" * 80 + np.uint32(len(data)).tobytes() + data.tobytes())
    return str(path)


def theirs(parts: list[tuple[str, TriangleMesh, Material]], arm: CArm, folder: Path) -> np.ndarray:
    """What comes through over the open beam, row 0 at the bottom. The first part holds all others."""
    gvxr: Any = importlib.import_module("gvxrPython3").gvxr
    gvxr.createOpenGLContext(-1, 3, 2)
    gvxr.setSourcePosition(*(1e3 * arm.source).tolist(), "mm")
    gvxr.usePointSource()
    gvxr.setMonoChromatic(ENERGY, "keV", 1000)
    middle = arm.source + arm.source_detector * arm.axes[2]
    gvxr.setDetectorPosition(*(1e3 * middle).tolist(), "mm")
    gvxr.setDetectorUpVector(*arm.axes[1].tolist())
    gvxr.setDetectorNumberOfPixels(arm.pixels, arm.pixels)
    gvxr.setDetectorPixelSize(1e3 * arm.pitch, 1e3 * arm.pitch, "mm")
    for name, mesh, material in parts[::-1]:
        gvxr.loadMeshFile(name, save_stl(mesh, folder / f"{name}.stl"), "mm", False)
        gvxr.setLinearAttenuationCoefficient(name, float(attenuation(material, ENERGY)) / 100.0, "cm-1")
        if name == parts[0][0]:
            gvxr.addPolygonMeshAsOuterSurface(name)
        else:
            gvxr.addPolygonMeshAsInnerSurface(name)
    seen = np.array(gvxr.computeXRayImage(), dtype=np.float64) / gvxr.getTotalEnergyWithDetectorResponse()
    gvxr.terminate()
    # They look from the source, we as a clinic does from the detector.
    return seen[:, ::-1]


def test_meshes_are_seen_as_by_gvirtualxray(cpu: Device, tmp_path: Path) -> None:
    """Within 3 % in the mean and with a correlation of at least 0.998, inside the collimator."""
    arm = CArm(25.0, -10.0, pixels=256)
    parts = [
        ("trunk", anatomy.torso(), SOFT_TISSUE),
        ("spine", anatomy.spine(), BONE),
        ("colon", anatomy.colon(1), AIR),
    ]
    solids = [
        Solid(mesh.vertices, mesh.triangles, material, displaces=None if name == "trunk" else SOFT_TISSUE)
        for name, mesh, material in parts
    ]
    ours = xray.signal(measured(Scene(solids), arm, cpu)).astype(np.float64)
    other = theirs(parts, arm, tmp_path)
    lit = arm.opening()
    off = np.abs(ours[lit] / other[lit] - 1.0)
    print(f"mean {100 * off.mean():.3f} %, correlation {np.corrcoef(ours[lit], other[lit])[0, 1]:.7f}")
    assert off.mean() < 0.03
    assert np.corrcoef(ours[lit], other[lit])[0, 1] > 0.998
