"""SPH among particles of several sizes in float64, every particle with every other."""

from __future__ import annotations

import numpy as np

from viscera.water import smoothing
from viscera.water.params import FluidParams


def masses(params: FluidParams, level: np.ndarray) -> np.ndarray:
    """[kg]"""
    children = 1 if params.sizes is None else params.sizes.children
    return params.mass / float(children) ** level


def pair_radius(params: FluidParams, level: np.ndarray) -> np.ndarray:
    """√(h_i h_j) [m], (n, n)."""
    radius = np.asarray(params.radii)[level]
    return np.sqrt(radius[:, None] * radius[None, :])


def density(params: FluidParams, x: np.ndarray, level: np.ndarray) -> np.ndarray:
    kernel = smoothing.poly6 if params.kernels == "muller" else smoothing.spline
    h, r = pair_radius(params, level), np.linalg.norm(x[:, None] - x[None, :], axis=-1)
    return (masses(params, level)[None, :] * _of_radius(kernel, r, h, params.dimension)).sum(axis=1)


def acceleration(
    params: FluidParams, x: np.ndarray, v: np.ndarray, level: np.ndarray, rho: np.ndarray, p: np.ndarray
) -> np.ndarray:
    """Slopes of the kernels are finite differences, so that a wrong constant cannot hide."""
    d = params.dimension
    kernel = smoothing.spiky if params.kernels == "muller" else smoothing.spline
    offset = x[:, None] - x[None, :]
    h, r = pair_radius(params, level), np.linalg.norm(offset, axis=-1)
    inside = (r < h) & (r > 0.0)
    safe, step = np.where(inside, r, 0.5 * h), 1e-6 * h
    rise = _of_radius(kernel, safe + step, h, d) - _of_radius(kernel, safe - step, h, d)
    slope = np.where(inside, rise / (2.0 * step * safe), 0.0)
    laplacian = {2: 40.0 / np.pi, 3: 45.0 / np.pi}[d] / h ** (d + 2) * np.maximum(1.0 - r / h, 0.0)
    if params.kernels == "spline":
        laplacian = -2.0 * slope
    push = p / rho**2
    pairs = -((push[:, None] + push[None, :]) * slope)[..., None] * offset
    pairs -= params.viscosity * (laplacian / (rho[:, None] * rho[None, :]))[..., None] * (v[:, None] - v[None, :])
    return (masses(params, level)[None, :, None] * pairs).sum(axis=1) + np.asarray(params.gravity)


def _of_radius(kernel, r: np.ndarray, h: np.ndarray, dimension: int) -> np.ndarray:
    return kernel(r / h, 1.0, dimension) / h**dimension
