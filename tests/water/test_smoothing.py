"""Smoothing kernels: they integrate to one, and slopes and Laplacians are those of the kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import warp as wp

from viscera.device import Device
from viscera.water import smoothing
from viscera.water.smoothing import (
    Smoothing,
    colour_laplacian,
    colour_slope,
    diffusion,
    make_smoothing,
    slope,
    weight,
)

RADIUS = 0.03
ALL = [smoothing.poly6, smoothing.spiky, smoothing.spline, smoothing.viscosity]
SMALL = 1e-4
"""Part of the radius in finite differences: squared 1e-8, far below the tolerance of 1e-5 that float32 allows."""


@wp.kernel
def evaluate(
    k: Smoothing,
    r: wp.array(dtype=float),
    weight_out: wp.array(dtype=float),
    slope_out: wp.array(dtype=float),
    laplacian_out: wp.array(dtype=float),
):
    i = wp.tid()
    weight_out[i] = weight(k, r[i] * r[i])
    slope_out[i] = slope(k, r[i]) * r[i]
    laplacian_out[i] = diffusion(k, r[i], slope(k, r[i]))


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("kernel", ALL, ids=lambda kernel: kernel.__name__)
def test_a_kernel_integrates_to_one_and_is_never_negative(kernel, dimension: int) -> None:
    """∫ W dV in shells, by Gauss–Legendre on each half: exact for the polynomials; the viscosity kernel's logarithm
    (2D) and 1/r (3D) leave 1e-4 with 200 points."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    total = 0.0
    for low, high in ((0.0, 0.5 * RADIUS), (0.5 * RADIUS, RADIUS)):
        r = 0.5 * (high - low) * (nodes + 1.0) + low
        shell = 2.0 * math.pi * r if dimension == 2 else 4.0 * math.pi * r**2
        assert (kernel(r, RADIUS, dimension) >= -1e-9).all()
        total += 0.5 * (high - low) * (weights * shell * kernel(r, RADIUS, dimension)).sum()
    assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("kernels", ["muller", "spline"])
def test_the_device_has_the_same_kernels(device: Device, kernels, dimension: int) -> None:
    """Weights as in NumPy; slopes and the viscosity kernel's Laplacian by finite differences of those."""
    r = np.linspace(0.01, 0.995, 200) * RADIUS
    r = r[np.abs(r - 0.5 * RADIUS) > 2 * SMALL * RADIUS]
    out = [wp.zeros(len(r), dtype=float, device=device.warp) for _ in range(3)]
    there = wp.array(r.astype(np.float32), dtype=float, device=device.warp)
    k = make_smoothing(kernels, RADIUS, dimension)
    wp.launch(evaluate, dim=len(r), inputs=[k, there, *out], device=device.warp)
    found = [array.numpy() for array in out]
    dense, steep = (smoothing.poly6, smoothing.spiky) if kernels == "muller" else (smoothing.spline,) * 2
    step = SMALL * RADIUS

    def near(values: np.ndarray, truth: np.ndarray) -> None:
        assert np.abs(values - truth).max() < 1e-5 * np.abs(truth).max()

    near(found[0], dense(r, RADIUS, dimension))
    near(found[1], (steep(r + step, RADIUS, dimension) - steep(r - step, RADIUS, dimension)) / (2 * step))
    w = [smoothing.viscosity(r + n * step, RADIUS, dimension) for n in (-1, 0, 1)]
    curve = (w[2] - 2 * w[1] + w[0]) / step**2 + (dimension - 1) / r * (w[2] - w[0]) / (2 * step)
    if kernels == "spline":
        near(found[2], -2.0 * found[1] / r)
        return
    # Near the middle the kernel is singular, and differences of it are not exact.
    far = r > 0.1 * RADIUS
    assert np.abs(found[2] - curve)[far].max() < 1e-3 * curve[far].max()


@wp.kernel
def evaluate_colour(
    k: Smoothing,
    dimension: int,
    r: wp.array(dtype=float),
    slope_out: wp.array(dtype=float),
    laplacian_out: wp.array(dtype=float),
):
    i = wp.tid()
    q2 = r[i] * r[i] / k.radius2
    slope_out[i] = colour_slope(k, q2) * r[i]
    laplacian_out[i] = colour_laplacian(k, q2, dimension)


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("kernels", ["muller", "spline"])
def test_the_colour_fields_slope_and_laplacian_are_poly6s(device: Device, kernels, dimension: int) -> None:
    """Whatever density uses. Finite differences of W: second ones with steps of 1e-4 R are good to 1e-7."""
    r = np.linspace(0.01, 0.995, 200) * RADIUS
    out = [wp.zeros(len(r), dtype=float, device=device.warp) for _ in range(2)]
    there = wp.array(r.astype(np.float32), dtype=float, device=device.warp)
    k = make_smoothing(kernels, RADIUS, dimension)
    wp.launch(evaluate_colour, dim=len(r), inputs=[k, dimension, there, *out], device=device.warp)
    step = SMALL * RADIUS
    w = [smoothing.poly6(r + n * step, RADIUS, dimension) for n in (-1, 0, 1)]
    steep = (w[2] - w[0]) / (2 * step)
    curve = (w[2] - 2 * w[1] + w[0]) / step**2 + (dimension - 1) / r * steep
    for found, truth in zip(out, (steep, curve), strict=True):
        assert np.abs(found.numpy() - truth).max() < 1e-5 * np.abs(truth).max()
    assert (curve > 0.0).any()
    assert (curve < 0.0).any()


def test_a_lattice_sums_to_its_own_density() -> None:
    """Many neighbours: Σ W ΔV → 1. Six spacings per radius leave 1 %."""
    for dimension in (2, 3):
        for kernels in ("muller", "spline"):
            total = smoothing.lattice_sum(kernels, 6.0, 1.0, dimension)
            assert total == pytest.approx(1.0, abs=0.01)
