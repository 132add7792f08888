"""Smoothing kernels: poly6, spiky, viscosity and the cubic spline, in two and three dimensions.

With R the radius at which a kernel ends, q = r/R, and (x)₊ = max(x, 0):

    poly6      W  = a (1 − q²)³                          density                       Grahn eq. 3.21
    spiky      W  = b (1 − q)³                           pressure                      eq. 3.22, 3.23
    viscosity  ∇²W = c (1 − q)                           viscosity                     eq. 3.24, 3.25
    spline     W  = d [(1 − q)³ − 4 (½ − q)₊³]           all three                     Andersson eq. 3.1, 3.2, R = 2h

           2D            3D
    a      4/(πR²)       315/(64πR³)
    b      10/(πR²)      15/(πR³)
    c      40/(πR⁴)      45/(πR⁵)
    d      80/(7πR²)     16/(πR³)

The spline's second derivative changes its sign, so viscosity takes −2W'/r in place of ∇²W, which is of the same order
and positive (Morris, Fox and Zhu 1997, doi:10.1006/jcph.1997.5776). On a lattice it diffuses within 2 % at any support;
the viscosity kernel is off by up to 15 % at two to three spacings.

The spiky kernel is the spline's first term, so one formula with κ = 0 or 4 is both: W = b [(1 − q)³ − κ (½ − q)₊³].

Differs from the sources in that 3.23 has the wrong sign and power (the gradient is −45/(πR⁶)(R − r)² r̂ in 3D), and
that 3.2 must read 1 − 3s²/2 + 3s³/4; as printed it integrates to 1.357. The constants for 2D are not in Grahn.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import warp as wp

wp.set_module_options({"enable_backward": False})

Kernels = Literal["muller", "spline"]
"""`muller`: poly6 for density, spiky for pressure (Grahn). `spline`: the cubic spline for both (Andersson)."""

NEAREST = wp.constant(1.0e-6)
"""Distances below this part of the radius count as this: two particles at one place push each other nowhere."""


@wp.struct
class Smoothing:
    """The kernels' constants, in SI units of the dimension at hand."""

    radius: float
    """Where the kernels end [m]."""
    per_radius: float
    """[1/m]"""
    radius2: float
    """[m²]"""
    poly6: float
    """a of poly6, or 0 where density uses the spline."""
    spline: float
    """Density's d, or 0 where it uses poly6."""
    gradient: float
    """−3b/R: W'(r) = gradient · [(1 − q)² − κ (½ − q)₊²]."""
    kappa: float
    """0 for spiky, 4 for the spline."""
    laplacian: float
    """c of the viscosity kernel; 0 where viscosity uses the spline."""
    morris: float
    """−2 where viscosity uses the spline, else 0."""
    curve: float
    """a of poly6, whatever density uses: the colour field needs a smooth second derivative."""


@wp.func
def weight(k: Smoothing, r2: float) -> float:
    """W for density at distance √r2 [1/m³ or 1/m²]."""
    w = float(0.0)
    if r2 < k.radius2:
        if k.spline > 0.0:
            q = wp.sqrt(r2) * k.per_radius
            a = 1.0 - q
            b = wp.max(0.5 - q, 0.0)
            w = k.spline * (a * a * a - 4.0 * b * b * b)
        else:
            inside = 1.0 - r2 * k.per_radius * k.per_radius
            w = k.poly6 * inside * inside * inside
    return w


@wp.func
def slope(k: Smoothing, r: float) -> float:
    """W'(r)/r for pressure, r < R: the gradient with respect to x_i is slope · (x_i − x_j)."""
    near = wp.max(r, NEAREST * k.radius)
    a = 1.0 - r * k.per_radius
    b = wp.max(0.5 - r * k.per_radius, 0.0)
    return k.gradient * (a * a - k.kappa * b * b) / near


@wp.func
def diffusion(k: Smoothing, r: float, steep: float) -> float:
    """∇²W for viscosity, r < R; `steep` is the slope there."""
    return k.laplacian * (1.0 - r * k.per_radius) + k.morris * steep


@wp.func
def colour_slope(k: Smoothing, q2: float) -> float:
    """W'(r)/r of poly6 at q² < 1: its gradient with respect to x_i is this times (x_i − x_j)."""
    inside = 1.0 - q2
    return -6.0 * k.curve * k.per_radius * k.per_radius * inside * inside


@wp.func
def colour_laplacian(k: Smoothing, q2: float, dimension: int) -> float:
    """∇²W of poly6 at q² < 1."""
    inside = 1.0 - q2
    return -6.0 * k.curve * k.per_radius * k.per_radius * inside * (float(dimension) * inside - 4.0 * q2)


def make_smoothing(kernels: Kernels, radius: float, dimension: int) -> Smoothing:
    """The constants for kernels that end at `radius` [m]."""
    area = radius**dimension
    poly6 = {2: 4.0 / math.pi, 3: 315.0 / (64.0 * math.pi)}[dimension] / area
    spiky = {2: 10.0 / math.pi, 3: 15.0 / math.pi}[dimension] / area
    spline = {2: 80.0 / (7.0 * math.pi), 3: 16.0 / math.pi}[dimension] / area
    smooth = kernels == "muller"
    k = Smoothing()
    k.radius, k.per_radius, k.radius2 = radius, 1.0 / radius, radius**2
    k.poly6, k.spline = (poly6, 0.0) if smooth else (0.0, spline)
    k.gradient = -3.0 * (spiky if smooth else spline) / radius
    k.kappa = 0.0 if smooth else 4.0
    k.laplacian = {2: 40.0 / math.pi, 3: 45.0 / math.pi}[dimension] / area / radius**2 if smooth else 0.0
    k.morris = 0.0 if smooth else -2.0
    k.curve = poly6
    return k


# --- the same in NumPy, for making things and for tests ------------------------------------------------------------


def poly6(r: np.ndarray, radius: float, dimension: int) -> np.ndarray:
    inside = np.maximum(1.0 - (r / radius) ** 2, 0.0)
    return {2: 4.0 / math.pi, 3: 315.0 / (64.0 * math.pi)}[dimension] / radius**dimension * inside**3


def spiky(r: np.ndarray, radius: float, dimension: int) -> np.ndarray:
    inside = np.maximum(1.0 - r / radius, 0.0)
    return {2: 10.0 / math.pi, 3: 15.0 / math.pi}[dimension] / radius**dimension * inside**3


def spline(r: np.ndarray, radius: float, dimension: int) -> np.ndarray:
    q = r / radius
    shape = np.maximum(1.0 - q, 0.0) ** 3 - 4.0 * np.maximum(0.5 - q, 0.0) ** 3
    return {2: 80.0 / (7.0 * math.pi), 3: 16.0 / math.pi}[dimension] / radius**dimension * shape


def viscosity(r: np.ndarray, radius: float, dimension: int) -> np.ndarray:
    """The kernel whose Laplacian falls linearly to 0 at R. In 2D it is (40/πR²) [q²/4 − q³/9 − ln(q)/6 − 5/36]."""
    q = np.clip(r / radius, 1e-300, 1.0)
    if dimension == 2:
        return 40.0 / (math.pi * radius**2) * (q**2 / 4.0 - q**3 / 9.0 - np.log(q) / 6.0 - 5.0 / 36.0)
    return 15.0 / (2.0 * math.pi * radius**3) * (-(q**3) / 2.0 + q**2 + 0.5 / q - 1.0)


def lattice_sum(kernels: Kernels, radius: float, spacing: float, dimension: int) -> float:
    """Σ W over a square or cubic lattice about one of its points [1/m² or 1/m³]."""
    reach = math.ceil(radius / spacing)
    axis = spacing * np.arange(-reach, reach + 1)
    grids = np.meshgrid(*[axis] * dimension, indexing="ij")
    r = np.sqrt(sum(g**2 for g in grids))
    return float((poly6 if kernels == "muller" else spline)(r, radius, dimension).sum())
