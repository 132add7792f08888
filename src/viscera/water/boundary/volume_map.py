"""How much of a kernel lies behind a closed mesh, and its gradient, on a grid: made once, for `wall_density`.

The share of water in each cell of the grid follows from the signed distance of its middle; its convolution with the
kernel, and with the kernel's gradient, are products of Fourier transforms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.distance import MAX_GRID
from viscera.geometry.mesh import TriangleMesh
from viscera.water.boundary.field import make_field
from viscera.water.params import FluidParams
from viscera.water.smoothing import lattice_sum, spline

FloatArray = NDArray[np.float64]

AXES = (0, 1, 2)
NODES = 6
"""Of the map in a kernel's radius."""
BEHIND = 0.2
"""How far behind the mesh the water at rest begins, over the spacing: particles keep a distance from each other that a
full space does not. With it value and slope at half a spacing from a flat wall, an edge and a corner are those of a
lattice within 7 % (without, slopes are 24 % too low)."""


def calibration(params: FluidParams) -> float:
    """κ: what a lattice half a spacing from a flat wall lacks to ρ₀, over the wall's share of its kernels there."""
    return calibration_of(params.spacing, params.radius)


def calibration_of(s: float, radius: float) -> float:
    """The same for a lattice of this spacing and kernels of this radius [m]."""
    reach = int(np.ceil(radius / s))
    axis = s * np.arange(-reach, reach + 1)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    behind = spline(np.sqrt(x**2 + y**2 + z**2), radius, 3)[z < -0.25 * s].sum()
    return float(behind) / lattice_sum("spline", radius, s, 3) / flat_share((0.5 + BEHIND) * s, radius)


def flat_share(distance: float, radius: float) -> float:
    """λ at a distance d from a flat wall: ∫ 2πr (r − d) W dr from d to R, a spherical cap of the kernel at a time."""
    if distance >= radius:
        return 0.0
    r = np.linspace(distance, radius, 2001)
    return float(np.trapezoid(2.0 * np.pi * r * (r - distance) * spline(r, radius, 3), r))


def flat_slope(distance: float, radius: float) -> float:
    """λ' [1/m] there: −∫ 2πr W dr from d to R."""
    if distance >= radius:
        return 0.0
    r = np.linspace(distance, radius, 2001)
    return -float(np.trapezoid(2.0 * np.pi * r * spline(r, radius, 3), r))


def spline_slope(r: FloatArray, radius: float) -> FloatArray:
    """W'(r) [1/m⁴]."""
    q = r / radius
    steep = np.maximum(1.0 - q, 0.0) ** 2 - 4.0 * np.maximum(0.5 - q, 0.0) ** 2
    return -48.0 / np.pi / radius**4 * steep


def volume_map(
    mesh: TriangleMesh, params: FluidParams, device: Device, *, fluid_inside: bool = True
) -> tuple[FloatArray, float, NDArray[np.float32]]:
    """Origin [m], spacing [m] and R ∇λ, λ at the nodes of a grid over the mesh, shape (x, y, z, 4)."""
    radius = params.radius
    spacing = radius / NODES
    nodes = float(np.prod(np.ceil(mesh.size / spacing) + 2 * NODES))
    if nodes > MAX_GRID:
        raise InputError(
            f"a map of {nodes:.3g} nodes is too large for {mesh.name}.", f"Allowed are {MAX_GRID}: larger particles."
        )
    field = make_field(mesh, spacing, radius if not fluid_inside else 2.0 * spacing, device)
    distance = field.grid.values.numpy().astype(np.float64)
    behind = BEHIND * params.spacing * (1.0 if fluid_inside else -1.0)
    filled = np.clip(0.5 - (distance - behind) / spacing, 0.0, 1.0)  # share of each cell before what counts as wall
    axis = spacing * np.arange(-NODES, NODES + 1)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    r = np.sqrt(x**2 + y**2 + z**2)
    weight = spline(r, radius, 3)
    weight /= weight.sum()
    steep = spline_slope(r, radius) / np.maximum(r, 1e-9 * radius) * spacing**3
    slopes = [steep * along for along in (x, y, z)]
    share, *gradient = _convolved(filled, [weight, *(radius * one for one in slopes)])
    if fluid_inside:
        share, gradient = 1.0 - share, [-one for one in gradient]
    values = np.stack([*gradient, share], axis=-1).astype(np.float32)
    return np.asarray(field.grid.origin, dtype=np.float64), spacing, values


def _convolved(values: FloatArray, kernels: Sequence[FloatArray]) -> list[FloatArray]:
    """With each of the kernels, in the shape of `values`; there is nothing beyond their rim."""
    reach = kernels[0].shape[0] // 2
    shape = [_quick(length + 2 * reach) for length in values.shape]
    transformed = np.fft.rfftn(values.astype(np.float32), shape, AXES)
    inner = tuple(slice(reach, reach + length) for length in values.shape)
    return [
        np.fft.irfftn(transformed * np.fft.rfftn(one.astype(np.float32), shape, AXES), shape, AXES)[inner]
        for one in kernels
    ]


def _quick(length: int) -> int:
    """The next length with no factors but 2, 3 and 5, whose transform is quick."""
    while True:
        rest = length
        for factor in (2, 3, 5):
            while rest % factor == 0:
                rest //= factor
        if rest == 1:
            return length
        length += 1
