"""Small scenes and their exact projections in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera import xray
from viscera.device import Device
from viscera.xray import CArm, Cloud, DetectorParams, Scene, Tube, XrayParams
from viscera.xray.materials import WATER, Material

FloatArray = NDArray[np.float64]

CLEAN = DetectorParams(scatter=0.0, noise=False, blur=0.0)
"""A detector that adds nothing."""


def measured(scene: Scene, arm: CArm, device: Device, tube: Tube | None = None) -> xray.Xray:
    """One pulse on a clean detector."""
    params = XrayParams(arm=arm, tube=tube or Tube(monochromatic=60.0), detector=CLEAN)
    machine = xray.make(scene, params, device=device)
    xray.expose(machine)
    xray.check(machine)
    return machine


def sphere_chords(arm: CArm, centre: Any, radius: float) -> FloatArray:
    """[m], (pixels, pixels)."""
    rays = arm.rays()
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    way = np.asarray(centre) - arm.source
    off = way @ way - (rays @ way) ** 2
    return 2.0 * np.sqrt(np.maximum(radius**2 - off, 0.0))


def mesh_lengths(vertices: FloatArray, triangles: Any, source: FloatArray, rays: FloatArray) -> FloatArray:
    """Of rays (n, 3) in a closed mesh [m]: exits less entries, each ray with each triangle (Möller and Trumbore)."""
    a, b, c = (np.asarray(vertices, dtype=np.float64)[np.asarray(triangles)[:, k]] for k in range(3))
    u, v = b - a, c - a
    total = np.zeros(len(rays))
    for k, ray in enumerate(rays):
        p = np.cross(ray, v)
        det = np.einsum("ij,ij->i", u, p)
        det = np.where(det == 0.0, np.inf, det)
        t = source - a
        s = np.einsum("ij,ij->i", t, p) / det
        q = np.cross(t, u)
        w = (q @ ray) / det
        hit = (s >= 0.0) & (w >= 0.0) & (s + w <= 1.0)
        far = np.einsum("ij,ij->i", v, q) / det
        total[k] = -(np.sign(det) * far)[hit].sum() * np.linalg.norm(ray)
    return total


def drops(points: Any, volume: float, radius: float, device: Device, material: Material = WATER) -> Cloud:
    """Particles at `points` [m]."""
    at = wp.array(np.asarray(points, dtype=np.float32), dtype=wp.vec3, device=device.warp)
    return Cloud(at, wp.array([len(at)], dtype=wp.int32, device=device.warp), volume, radius, material)


def ball_of_drops(radius: float, spacing: float, device: Device, material: Material = WATER) -> Cloud:
    """A ball filled with a lattice of particles that together have its volume."""
    side = np.arange(-radius, radius + spacing, spacing) + 0.31 * spacing
    points = np.stack(np.meshgrid(side, side, side, indexing="ij"), axis=-1).reshape(-1, 3)
    points = points[np.linalg.norm(points, axis=1) < radius]
    return drops(points, 4.0 / 3.0 * np.pi * radius**3 / len(points), 1.2 * spacing, device, material)
