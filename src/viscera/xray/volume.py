"""A CT volume as the body: Hounsfield units to shares of soft tissue and bone.

    HU = 1000 (μ/μ_water − 1)   at the energy of the scanner

Up to `SOFT_END` a voxel is soft tissue, thinned to its density; from `BONE_FULL` on it is bone, in between a mixture
whose attenuation is linear in HU. Both are stored as shares of the space, so that a volume takes 4 bytes per voxel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError
from viscera.xray.materials import BONE, SOFT_TISSUE, WATER, attenuation
from viscera.xray.projection import VolumeView

SCANNER = 70.0
"""Mean energy of a CT scanner at 120 kV [keV]."""
SOFT_END = 100.0
"""[HU]"""
BONE_FULL = 1_500.0
"""[HU]; more is denser bone."""
HOUNSFIELD = (-1_100.0, 40_000.0)
"""Values outside are no Hounsfield units."""


@dataclass(frozen=True, eq=False)
class Scan:
    voxels: NDArray[np.float16]
    """Shares of soft tissue and bone, shape (x, y, z, 2)."""
    to_world: NDArray[np.float64]
    """Affine, 4 × 4: from voxels (whole numbers at their middles) to the patient's axes [m]."""
    step: float
    """Along a ray [m]."""

    def view(self) -> Any:
        view: Any = VolumeView()
        view.from_world = wp.mat44(*np.linalg.inv(self.to_world).ravel().tolist())
        view.step = self.step
        return view


def scan(hounsfield: ArrayLike, to_world: ArrayLike, *, step: float | None = None) -> Scan:
    """A volume of Hounsfield units, shape (x, y, z), in the patient's axes of `CArm` by an affine [m]. Without a `step`
    rays are sampled at half the smallest voxel."""
    values = np.asarray(hounsfield, dtype=np.float32)
    affine = np.asarray(to_world, dtype=np.float64)
    if values.ndim != 3 or min(values.shape) < 2:
        raise InputError(f"a volume of shape {values.shape} is not possible.", "Give three axes of 2 voxels or more.")
    if affine.shape != (4, 4) or not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-18:
        raise InputError("the volume's affine has no spacing.", "Give a 4 × 4 matrix from voxels to metres.")
    sides = np.linalg.norm(affine[:3, :3], axis=0)
    if sides.max() > 0.05:
        raise InputError(
            f"a voxel is {sides.max():g} m wide.", "The affine is in metres: divide one in millimetres by 1000."
        )
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if not (np.isfinite(values).all() and HOUNSFIELD[0] <= low and high <= HOUNSFIELD[1]):
        raise InputError(
            f"values from {low:g} to {high:g} are no Hounsfield units.",
            "Air is −1000, water 0. Apply the file's rescale slope and intercept; for MRI give a label map.",
        )
    step = 0.5 * float(sides.min()) if step is None else step
    if not (math.isfinite(step) and step > 0.0):
        raise InputError(f"step = {step} is not possible.", "It must be a finite number above 0 [m].")
    return Scan(np.stack(shares(values), axis=-1).astype(np.float16), affine, step)


def labelled(
    labels: ArrayLike, hounsfield: Mapping[int, float], to_world: ArrayLike, *, step: float | None = None
) -> Scan:
    """A volume of labels, as a segmented MRI, with what each stands for [HU]."""
    values = np.asarray(labels)
    if not np.issubdtype(values.dtype, np.integer):
        raise InputError(f"labels are {values.dtype}.", "An MRI's grey values give no attenuation: give whole numbers.")
    missing = sorted(set(np.unique(values).tolist()) - set(hounsfield))
    if missing:
        raise InputError(f"label {missing[0]} has no Hounsfield unit.", f"Give one for each of {missing}.")
    table = np.zeros(int(values.max()) + 1, dtype=np.float32)
    for label, value in hounsfield.items():
        if 0 <= label < len(table):
            table[label] = value
    return scan(table[values], to_world, step=step)


def filled(volume: Scan, inside: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Scan:
    """The same with soft tissue where something is to be simulated: `inside` gives, for places (n, 3) [m], how much of
    a voxel there belongs to it, 0 to 1, (n,). What the scan has there, its own air or stool, is gone; a mesh of that
    place then takes away soft tissue and no more (`Solid.displaces`)."""
    voxels = volume.voxels.copy()
    for k in range(voxels.shape[0]):
        j, n = (one.ravel() for one in np.meshgrid(*(np.arange(side) for side in voxels.shape[1:3]), indexing="ij"))
        at = np.stack([np.full(len(j), k), j, n, np.ones(len(j))], axis=1)
        share = inside((at @ volume.to_world.T)[:, :3]).reshape((*voxels.shape[1:3], 1))
        plain = np.array([1.0, 0.0])
        voxels[k] = ((1.0 - share) * voxels[k].astype(np.float64) + share * plain).astype(np.float16)
    return Scan(voxels, volume.to_world, volume.step)


def shares(hounsfield: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Of soft tissue and of bone; together they attenuate at `SCANNER` as HU says."""
    water, soft, bone = (float(attenuation(one, SCANNER)) for one in (WATER, SOFT_TISSUE, BONE))
    mu = np.maximum(water * (1.0 + hounsfield / 1_000.0), 0.0)
    hard = np.clip((hounsfield - SOFT_END) / (BONE_FULL - SOFT_END), 0.0, 1.0)
    # The part of the attenuation that is bone's grows from 0 to all of it.
    return (mu * (1.0 - hard) / soft).astype(np.float32), (mu * hard / bone).astype(np.float32)
