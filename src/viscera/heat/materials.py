"""Skin of several materials: each texel conducts, stores and loses heat as the tissue under it does.

With k, ρ and c of each texel the equations of `conduction` stay, with these in place of one value for all:

    C_i = ρ_i c_i s A_i                     of a body of several texels: their sum
    k_ij = 2 k_i k_j/(k_i + k_j)            between nodes that are as far from the border between them

the mean for conductors in a row: with it the flow into the border is the flow out of it, and a steady temperature has
its kink there, however different the two are. Over a corner where four texels meet, the shear takes the least of its
four sides' means, so that heat never flows uphill.

Blood and air take heat by volume and by area, whatever the tissue stores, so a texel cools at its own rate,
(perfusion·s + air)/(ρ c s). The stages know one rate for all; here they conduct only, and the loss follows as what it
is alone, an exponential: exact where it is alone, of first order in dt beside conduction, as the stages are.

All values are kept relative to those of `HeatParams`: where these are changed, all materials change in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.heat.arrays import TINY, Fabric
from viscera.skin import Skin

wp.set_module_options({"enable_backward": False})


@dataclass(frozen=True, eq=False)
class HeatMaterials:
    """What each texel of a skin is made of: one number per texel of the texture; texels without skin do not count."""

    conductivity: NDArray[np.floating[Any]]
    """[W/(m·K)]"""
    density: NDArray[np.floating[Any]]
    """[kg/m³]"""
    heat_capacity: NDArray[np.floating[Any]]
    """[J/(kg·K)]"""


@dataclass(frozen=True, eq=False)
class TexelMaterials:
    """The same as kernels need it. Made by `make_materials`; arrays are float32, one entry per texel."""

    conductivity: Any
    """k over that of the parameters."""
    area: Any
    """Area at rest times ρ c over that of the parameters [m²]: what `Rates.capacity` is to be multiplied with."""
    ease: Any
    """Inverse of ρ c over that of the parameters, the mean of a texel's body."""
    boiling: Any
    """Inverse of c over that of the parameters."""
    density: NDArray[np.float64]
    """ρ over that of the parameters."""
    losses: Any
    """What a texel of the parameters' own ρ c loses in a step: r dt, and the θ that it nears [K]; two float32."""


@wp.func
def in_a_row(a: float, b: float):
    """Mean of two conductors, one behind the other."""
    return 2.0 * a * b / wp.max(a + b, TINY)


@wp.kernel
def scale_sides(
    first: int,
    # params
    width: int,
    # in
    texels: wp.array(dtype=wp.int32),
    conductivity: wp.array(dtype=wp.float32),
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
    shear_out: wp.array(dtype=wp.float32),
):
    """Conductances of one tissue become those of the tissues there."""
    t = texels[first + wp.tid()]
    own = conductivity[t]
    if left_out[t] != 0.0:
        left_out[t] = left_out[t] * in_a_row(own, conductivity[t - 1])
    if bottom_out[t] != 0.0:
        bottom_out[t] = bottom_out[t] * in_a_row(own, conductivity[t - width])
    if shear_out[t] != 0.0:
        left = conductivity[t - 1]
        below = conductivity[t - width]
        across = conductivity[t - width - 1]
        least = wp.min(wp.min(in_a_row(own, left), in_a_row(own, below)), in_a_row(left, across))
        shear_out[t] = shear_out[t] * wp.min(least, in_a_row(below, across))


@wp.kernel
def scale_links(
    first: int,
    # in
    fabric: Fabric,
    conductivity: wp.array(dtype=wp.float32),
    # out
    link_out: wp.array(dtype=wp.float32),
):
    b = first + wp.tid()
    for k in range(fabric.link_start[b], fabric.link_start[b + 1]):
        side = fabric.link_side[k]
        link_out[k] = link_out[k] * in_a_row(conductivity[side[0]], conductivity[side[1]])


@wp.kernel
def lose_heat(
    first: int,
    # in
    texels: wp.array(dtype=wp.int32),
    ease: wp.array(dtype=wp.float32),
    losses: wp.array(dtype=wp.float32),
    # out
    temperature_out: wp.array(dtype=wp.float32),
):
    """θ nears what surrounds it by e^(−r dt)."""
    t = texels[first + wp.tid()]
    off = temperature_out[t] - losses[1]
    temperature_out[t] = losses[1] + off * wp.exp(-losses[0] * ease[t])


def make_materials(
    skin: Skin, host: NDArray[np.int32], given: HeatMaterials, usual: tuple[float, ...]
) -> TexelMaterials:
    """`usual` is conductivity, density and heat capacity of the parameters, `host` the body of each texel."""
    size, texels, device = skin.width * skin.height, skin.texels.numpy(), skin.device.warp
    if usual[0] == 0.0:
        raise InputError(
            "conductivity = 0 leaves nothing to compare the materials' conductivity with.",
            "Give `HeatParams` that of the main tissue.",
        )
    relative = {}
    for field, value in zip(fields(given), usual, strict=True):
        relative[field.name] = np.ones(size)
        relative[field.name][texels] = _checked(field.name, getattr(given, field.name), size)[texels] / value
    stored = relative["density"] * relative["heat_capacity"]
    rest = skin.rest_area.numpy().astype(np.float64)
    bodies = np.where(host >= 0, host, 0)
    whole, heavy = (np.bincount(bodies[texels], weights=area[texels], minlength=size) for area in (rest, rest * stored))
    ease = np.ones(size)
    ease[texels] = (whole / np.maximum(heavy, 1e-30))[bodies[texels]]

    def put(values: NDArray[np.float64]) -> Any:
        # Vector loads reach a tile over the texture's end.
        padded = np.concatenate([values, np.zeros(skin.width + 32)]).astype(np.float32)
        return wp.array(padded, dtype=wp.float32, device=device)[:size]

    return TexelMaterials(
        conductivity=put(relative["conductivity"]),
        area=put(rest * stored),
        ease=put(ease),
        boiling=put(1.0 / relative["heat_capacity"]),
        density=relative["density"],
        losses=wp.zeros(2, dtype=wp.float32, device=device),
    )


def _checked(name: str, values: NDArray[np.floating[Any]], size: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise InputError(f"materials: {name} has shape {array.shape}.", f"Give one number per texel: shape ({size},).")
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise InputError(
            f"materials: {name} is not finite and above 0 everywhere.", "Also texels without skin need one."
        )
    return array
