"""Particles of several sizes in one fluid: how heavy each size is, and how far its kernel reaches.

Size 0 is the largest. One of size l holds as much as n of size l + 1, so mass is counted in whole numbers, the mass of
the smallest: a size l of L has n^(L − 1 − l) of these quanta, and splitting and merging keep their sum exactly.

    m_l = m_0 / n^l,   s_l = s_0 / n^(l/d)             mass and spacing                 Elmasdotter eq. 3.37, 3.38
    h_l = (3 V_l x_l / 4π)^(1/3)                       radius from x kernel particles   eq. 3.8

Two particles meet in one kernel, whose radius is the geometric mean of theirs:

    W_ij = W(r, √(h_i h_j)),   neighbours where r < √(h_i h_j)

It is the same from both ends, so momentum is kept; and since the radii are fixed, the pressure force is the slope of
one potential. What depends on j is a factor of its own, so a pair costs two loads and three products more than among
equals.

New particles lie anyhow, up to a fifth too dense or too thin, and in a stiff fluid they would burst. So one that was
split or merged remembers what its first density lacks of that it came from, and forgets it little by little, with b
falling from 1 to 0 in the time of settling; meanwhile it is k times as viscous:

    p_i = p(ρ_i + b (ρ_before − ρ_first)),   μ_ij = μ √(k_i k_j),   k_i = 1 + b (k − 1)

So its pressure begins where it was, and follows the flow. Forces stay those of pairs, so momentum is kept.

A sum over few neighbours is no true density: half of it is the particle itself where 20 lie in the kernel, so that it
reads 1 % too much at rest and grows 9 % too little when it is compressed. Water of such particles stands at another
level than that of others, and what splits swells. With `evened` sums are corrected to what the smallest size would read
at the same true density, by a line through two lattices, at rest and `COMPRESSED`:

    ρ_i ← gain_l Σ_j m_j W_ij + shift_l

Differs from the source, which takes the mean of both kernels, ½ W(r, h_i) + ½ W(r, h_j) (eq. 3.35), and cuts it at the
mean of the radii (eq. 3.34), where the larger one has not ended yet: forces jump there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from viscera.errors import InputError
from viscera.neighbors.grid import LANES
from viscera.water.smoothing import lattice_sum, make_smoothing

if TYPE_CHECKING:
    from viscera.water.params import FluidParams

MOST_SIZES = 6
MOST_CHILDREN = 8
COMPRESSED = 0.05
"""Of the second lattice by which densities are evened: half of what water 0.7 m deep has at 8 m/s of sound."""


@dataclass(frozen=True)
class Sizes:
    """Which sizes there are, from the largest to the smallest."""

    count: int = 2
    children: int = 2
    """Particles that one splits into, and that merge into one."""
    supports: tuple[float, ...] = ()
    """Radius of each size's kernel over its own spacing; without, that of the fluid for all."""
    settling: float = 0.0
    """Time that a new particle takes to get the pressure of its own density [s]; 0 is at once."""
    thickening: float = 1.0
    """How much more viscous new particles are meanwhile."""
    evened: bool = False
    """Whether density is corrected, so that all sizes have the pressure of the smallest at the same true density."""

    def __post_init__(self) -> None:
        if not (isinstance(self.count, int) and 2 <= self.count <= MOST_SIZES):
            raise InputError(f"{self.count} sizes are not possible.", f"Allowed are 2 to {MOST_SIZES}.")
        if not (isinstance(self.children, int) and 2 <= self.children <= MOST_CHILDREN):
            raise InputError(f"{self.children} children are not possible.", f"Allowed are 2 to {MOST_CHILDREN}.")
        if not (0.0 <= self.settling < math.inf and 1.0 <= self.thickening < math.inf):
            raise InputError(
                f"settling = {self.settling} and thickening = {self.thickening} are not possible.",
                "Give finite numbers, of at least 0 s and at least 1.",
            )
        if self.supports and len(self.supports) != self.count:
            raise InputError(f"supports has {len(self.supports)} numbers.", f"Give one for each of {self.count} sizes.")

    def quanta(self, level: int) -> int:
        """Mass of a size, in masses of the smallest."""
        return self.children ** (self.count - 1 - level)


def support_of(neighbours: float, dimension: int = 3) -> float:
    """Radius over spacing within which so many particles lie, itself among them (Elmasdotter eq. 3.8)."""
    if not (math.isfinite(neighbours) and neighbours >= 1.0):
        raise InputError(f"{neighbours} kernel particles are not possible.", "Give a finite number, 1 or more.")
    return math.sqrt(neighbours / math.pi) if dimension == 2 else (3.0 * neighbours / (4.0 * math.pi)) ** (1.0 / 3.0)


def size_table(params: FluidParams) -> np.ndarray:
    """u = 1/h [1/m] and f = m u^(d/2) of each size, float32 (sizes, 2)."""
    children = 1 if params.sizes is None else params.sizes.children
    inverse = 1.0 / np.asarray(params.radii)
    mass = params.mass / float(children) ** np.arange(len(inverse))
    return np.stack([inverse, mass * inverse ** (0.5 * params.dimension)], axis=1).astype(np.float32)


def evening_table(params: FluidParams) -> np.ndarray:
    """Gain and shift [kg/m³] of each size's density, float32 (sizes, 2); those of the smallest are 1 and 0."""
    count = len(params.radii)
    table = np.tile(np.array([1.0, 0.0], dtype=np.float32), (count, 1))
    if params.sizes is None or not params.sizes.evened:
        return table
    d, smallest = params.dimension, count - 1

    def reads(level: int, spacing: float) -> float:
        """The sum over a lattice of the smallest size with this spacing, or one as dense of another size."""
        wider = float(params.sizes.children) ** ((smallest - level) / d) if params.sizes else 1.0
        mass = params.mass / float(params.sizes.children) ** level if params.sizes else params.mass
        return mass * lattice_sum(params.kernels, params.radii[level], wider * spacing, d)

    rest = params.spacings[smallest]
    for _ in range(60):
        rest *= (reads(smallest, rest) / params.rest_density) ** (1.0 / d)
    dense = rest * (1.0 + COMPRESSED) ** (-1.0 / d)
    wanted = reads(smallest, rest), reads(smallest, dense)
    for level in range(smallest):
        found = reads(level, rest), reads(level, dense)
        gain = (wanted[1] - wanted[0]) / (found[1] - found[0])
        table[level] = gain, wanted[0] - gain * found[0]
    return table


def make_sizes(params: FluidParams, device: Any, n: int, native: bool) -> dict[str, Any]:
    """What a fluid of several sizes has besides: goes into `Fluid.extra`."""
    lanes = ("inverse", "load", "pull") if native else ()
    axes = tuple(wp.zeros(n + LANES, dtype=float, device=device) for _ in lanes)
    return {
        "level": wp.zeros(n, dtype=wp.int32, device=device),
        "sorted_level": wp.zeros(n, dtype=wp.int32, device=device),
        "carried": wp.zeros(n, dtype=wp.vec4, device=device),
        "sorted_carried": wp.zeros(n, dtype=wp.vec4, device=device),
        "fresh": wp.zeros(n, dtype=wp.vec2, device=device),
        "sorted_fresh": wp.zeros(n, dtype=wp.vec2, device=device),
        "load": wp.zeros(n, dtype=wp.vec2, device=device),
        "size_axes": axes,
        "size_table": wp.array(size_table(params), dtype=wp.vec2, device=device),
        "evening": wp.array(evening_table(params), dtype=wp.vec2, device=device),
        "unit": make_smoothing(params.kernels, 1.0, params.dimension),
    }
