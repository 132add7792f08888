"""From lengths in materials to a picture: Beer and Lambert for a few energies, scatter, quanta, light, and a window.

    P  = Σ_k w_k exp(−Σ_m μ_km L_m)                    primary, 1 with nothing in the beam
    S  = P + s · (P ∗ G)                               scatter: a wide blur of the primary times the ratio s
    N  = S N₀ + √(S N₀) ξ                              quanta of a pixel, ξ normal and seeded
    I  = N/N₀ ∗ g                                      the scintillator's light spreads
    grey from L = −ln(I/I₀): black at −`window`, white at +`window`, I₀ the mean in the measuring field

N₀ is what the dose of a pulse gives a pixel. Automatic brightness changes the dose so that the measuring field, the
middle of the picture, gets the wanted number of quanta; it is one pulse behind, as in a real one.

Scatter is an approximation: it follows the primary, and the ratio is one number. Real scatter depends on the angle
and on what lies where. Poisson's numbers are replaced by normal ones of the same mean and variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.errors import InputError
from viscera.xray.carm import ArmView
from viscera.xray.projection import UNIT

wp.set_module_options({"enable_backward": False})

TILE = 16
"""Side of the blocks on which scatter is computed [pixel]."""
_TILE = wp.constant(TILE)
_UNIT = wp.constant(UNIT)
MEASURED = 2.0**18
"""The measuring field's sum is counted in integers of 1/MEASURED of the open beam."""
_MEASURED = wp.constant(MEASURED)
MOST_TAPS = 24
MOST_MATERIALS = 6
"""In one scene."""
Lengths: Any = wp.types.vector(length=MOST_MATERIALS, dtype=wp.float32)
_DARK = wp.constant(1.0e-7)


@dataclass(frozen=True)
class DetectorParams:
    scatter: float = 0.25
    """Ratio s of scatter to primary behind the grid."""
    scatter_spread: float = 0.06
    """Standard deviation of its blur on the detector [m]."""
    noise: bool = True
    blur: float = 0.00025
    """Standard deviation of the spread of light [m]."""
    wanted: float = 60e-9
    """Air kerma per pulse behind the patient that automatic brightness holds [Gy]."""
    strongest: float = 40e-6
    """Most air kerma per pulse at the detector with nothing in the beam [Gy]: what the tube can give."""
    window: float = 1.6
    """Half width of what is shown, in −ln of the signal."""
    positive: bool = True
    """What takes much out of the beam, as barium, is bright; False: dark, as on an image intensifier."""

    def __post_init__(self) -> None:
        for name in ("scatter", "scatter_spread", "blur"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0.0):
                raise InputError(f"{name} = {getattr(self, name)} is not possible.", "It must be finite and 0 or more.")
        for name in ("wanted", "strongest", "window"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise InputError(f"{name} = {getattr(self, name)} is not possible.", "It must be finite and above 0.")


@wp.struct
class Exposure:
    """Numbers of a pulse; they live in an array, so that they may change while programs run."""

    seed: wp.uint32
    quanta: float
    """N₀ of a pixel."""
    reference: float
    """I₀."""


@wp.func
def fading(x: float) -> float:
    """exp(−x) for x from 0 on, as 2ⁿ times a polynomial in the rest: within 2·10⁻⁷ of it, and five times as fast as the
    library's on cpu, which is most of a picture's time."""
    t = wp.min(x, 80.0) * 1.4426950408889634
    whole = wp.floor(t + 0.5)
    f = whole - t  # −½ to ½
    small = 0.0096181291 + f * (0.0013333558 + f * 0.000154035)
    power = 1.0 + f * (0.6931471805 + f * (0.2402265070 + f * (0.0555041087 + f * small)))
    return power * wp.cast((127 - wp.int32(whole)) << 23, wp.float32)


@wp.kernel
def find_primary(
    first: int,
    # params
    pixels: int,
    groups: int,
    materials: int,
    # in
    arm: wp.array(dtype=ArmView),
    weight: wp.array(dtype=float),
    attenuation: wp.array(dtype=Lengths),
    still: wp.array2d(dtype=wp.int32),
    moving: wp.array2d(dtype=wp.int32),
    opening: wp.array(dtype=float),
    # out
    primary_out: wp.array(dtype=float),
):
    pixel = first + wp.tid()
    light = opening[pixel]
    if light == 0.0:
        primary_out[pixel] = 0.0
        return
    half = 0.5 * float(pixels)
    focal = arm[0].focal
    x = (float(pixel % pixels) + 0.5 - half) / focal
    y = (float(pixel // pixels) + 0.5 - half) / focal
    length = Lengths()
    for m in range(materials):
        length[m] = float(still[m, pixel] + moving[m, pixel])
    length *= _UNIT * wp.sqrt(1.0 + x * x + y * y)
    total = float(0.0)
    for k in range(groups):
        total += weight[k] * fading(wp.max(wp.dot(attenuation[k], length), 0.0))
    primary_out[pixel] = light * total


@wp.kernel
def mean_tiles(
    first: int,
    # params
    pixels: int,
    # in
    primary: wp.array(dtype=float),
    # out
    tile_out: wp.array(dtype=float),
):
    tile = first + wp.tid()
    across = (pixels + _TILE - 1) // _TILE
    x = (tile % across) * _TILE
    y = (tile // across) * _TILE
    total = float(0.0)
    for row in range(y, wp.min(y + _TILE, pixels)):
        for column in range(x, wp.min(x + _TILE, pixels)):
            total += primary[row * pixels + column]
    tile_out[tile] = total / float(_TILE * _TILE)


@wp.kernel
def spread_tiles(
    first: int,
    # params
    across: int,
    along: int,
    # in
    tap: wp.array(dtype=float),
    tile: wp.array(dtype=float),
    # out
    tile_out: wp.array(dtype=float),
):
    """A Gaussian along x (along = 0) or y; nothing comes from outside the field."""
    i = first + wp.tid()
    here = i % across
    stride = wp.int32(1)
    if along == 1:
        here = i // across
        stride = across
    total = float(0.0)
    for other in range(across):
        total += tap[wp.abs(other - here)] * tile[i + (other - here) * stride]
    tile_out[i] = total


@wp.func
def between_tiles(tile: wp.array(dtype=float), pixels: int, row: int, column: int) -> float:
    across = (pixels + _TILE - 1) // _TILE
    x = wp.clamp((float(column) + 0.5) / float(_TILE) - 0.5, 0.0, float(across - 1))
    y = wp.clamp((float(row) + 0.5) / float(_TILE) - 0.5, 0.0, float(across - 1))
    i = wp.min(wp.int32(x), across - 2)
    j = wp.min(wp.int32(y), across - 2)
    u = x - float(i)
    v = y - float(j)
    at = j * across + i
    low = (1.0 - u) * tile[at] + u * tile[at + 1]
    high = (1.0 - u) * tile[at + across] + u * tile[at + across + 1]
    return (1.0 - v) * low + v * high


@wp.kernel
def count_quanta(
    first: int,
    # params
    pixels: int,
    scatter: float,
    noisy: int,
    # in
    exposure: wp.array(dtype=Exposure),
    primary: wp.array(dtype=float),
    tile: wp.array(dtype=float),
    opening: wp.array(dtype=float),
    # out
    light_out: wp.array(dtype=float),
):
    pixel = first + wp.tid()
    if opening[pixel] == 0.0:
        light_out[pixel] = 0.0
        return
    light = primary[pixel]
    if scatter > 0.0:
        light += scatter * opening[pixel] * between_tiles(tile, pixels, pixel // pixels, pixel % pixels)
    if noisy != 0:
        quanta = light * exposure[0].quanta
        state = wp.rand_init(wp.int32(exposure[0].seed), pixel)
        light = wp.max(quanta + wp.sqrt(quanta) * wp.randn(state), 0.0) / exposure[0].quanta
    light_out[pixel] = light


@wp.kernel
def blur(
    first: int,
    # params
    pixels: int,
    along: int,
    # in
    taps: wp.array(dtype=wp.int32),
    tap: wp.array(dtype=float),
    light: wp.array(dtype=float),
    # out
    light_out: wp.array(dtype=float),
):
    """A Gaussian along x (along = 0) or y; at the rim the last pixel goes on."""
    pixel = first + wp.tid()
    row = pixel // pixels
    column = pixel % pixels
    total = tap[0] * light[pixel]
    for k in range(1, taps[0]):
        if along == 0:
            before = light[row * pixels + wp.max(column - k, 0)]
            total += tap[k] * (before + light[row * pixels + wp.min(column + k, pixels - 1)])
        else:
            before = light[wp.max(row - k, 0) * pixels + column]
            total += tap[k] * (before + light[wp.min(row + k, pixels - 1) * pixels + column])
    light_out[pixel] = total


@wp.kernel
def measure_field(
    first: int,
    # params
    pixels: int,
    # in
    light: wp.array(dtype=float),
    opening: wp.array(dtype=float),
    # out
    measured_out: wp.array(dtype=wp.int32),
):
    """Of each row of the measuring field, the middle half of the picture: its sum, and how many pixels are lit."""
    row = first + wp.tid()
    total = wp.int32(0)
    lit = wp.int32(0)
    if row >= pixels // 4 and row < pixels - pixels // 4:
        for column in range(pixels // 4, pixels - pixels // 4):
            pixel = row * pixels + column
            if opening[pixel] > 0.0:
                total += wp.int32(wp.rint(wp.min(light[pixel], 1.5) * _MEASURED))
                lit += 1
    measured_out[2 * row] = total
    measured_out[2 * row + 1] = lit


@wp.kernel
def show(
    first: int,
    # params
    half_window: float,
    sign: float,
    # in
    exposure: wp.array(dtype=Exposure),
    light: wp.array(dtype=float),
    opening: wp.array(dtype=float),
    # out
    picture_out: wp.array(dtype=wp.uint32),
):
    """RGBA as one number, the first byte red."""
    pixel = first + wp.tid()
    grey = wp.uint32(0)
    if opening[pixel] > 0.0:
        dense = -wp.log(wp.max(light[pixel], _DARK) / exposure[0].reference)
        grey = wp.uint32(wp.clamp(127.5 + sign * 127.5 * dense / half_window, 0.0, 255.0))
    picture_out[pixel] = grey | (grey << wp.uint32(8)) | (grey << wp.uint32(16)) | (wp.uint32(255) << wp.uint32(24))


def gaussian_taps(sigma: float, most: int = MOST_TAPS) -> np.ndarray:
    """Weights of a Gaussian of `sigma` [steps] from its middle outwards, such that both sides together make 1."""
    reach = max(1, min(most, math.ceil(3.0 * sigma) + 1))
    taps = np.exp(-0.5 * (np.arange(reach) / max(sigma, 1e-6)) ** 2)
    return (taps / (2.0 * taps.sum() - taps[0])).astype(np.float32)
