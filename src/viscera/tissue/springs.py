"""Springs of the lattice: directions, the isotropic rule, boundary shares, the largest stable step.

A mass at integer position (i, j, k) is tied to its 26 neighbours at distance 1, √2 and √3 cells (Etheredge, Kunst and
Sanders 2013, §4.1). The energy density of that cubic crystal of central springs is isotropic, with Poisson's ratio ¼,
if

    k₁ = k₂ + 8/3·k₃          E = 2.5·(k₂ + 4/3·k₃)/dx

where k₁, k₂, k₃ are the stiffnesses of the three lengths [N/m]. Any split of k₂ and k₃ does; we take k₁ : k₂ : k₃ =
16 : 8 : 3, which keeps all three families busy (none is soft enough to fold). Its highest frequency gives

    dt_crit = 2/ω_max = √(5/6)·dx·√(ρ/E) ≈ 0.913·dx·√(ρ/E)

whatever the split (found by a sweep over the Brillouin zone; tests/tissue/test_lattice.py does it again).

Masses and springs are shared by the cells around them: a full inner axis spring belongs to 4 cells, a face diagonal
to 2, a body diagonal to 1, a mass to 8. At the boundary each has only the share of the cells that are there, so that
a block of n cells behaves like n·dx of continuum and not like (n+1)·dx.

Differs from the source: there all springs are equal (`equal_springs`), which gives neither isotropy nor a Young's
modulus.
"""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError

STABLE_STEP = float(np.sqrt(5.0 / 6.0))
"""dt_crit·√(E/ρ)/dx of the isotropic lattice."""

RATIO_FACE = 8.0 / 16.0
"""k₂/k₁"""
RATIO_BODY = 3.0 / 16.0
"""k₃/k₁; with k₂/k₁ it satisfies k₁ = k₂ + 8/3·k₃."""

DIRECTIONS: tuple[tuple[int, int, int], ...] = tuple(
    (x, y, z) for z, y, x in itertools.product((-1, 0, 1), repeat=3) if (z, y, x) > (0, 0, 0)
)
"""The 13 directions (x, y, z) that look 'up' in memory; a spring is stored once, at the mass it looks up from."""

ROWS: tuple[tuple[int, int], ...] = tuple((y, z) for z, y in itertools.product((-1, 0, 1), repeat=2))
"""The nine (y, z) offsets of neighbouring rows; row 4 is a mass's own."""

LARGEST_BOX = 2_000_000_000
"""Places in the box around a lattice, while it is being made; 8 GB."""

OCTANTS: tuple[tuple[int, int, int], ...] = tuple((x, y, z) for z, y, x in itertools.product((-1, 1), repeat=3))
"""The eight cells around a mass, by the side on which they lie."""


@cache
def highest_frequency2(volume: float = 0.0, torsion: float = 0.0) -> float:
    """ω²·m/k₁ of the stiffest wave in an endless lattice: largest eigenvalue of its dynamical matrix over all waves.

    `volume` is κ·dx/k₁ of the volume-preserving force, `torsion` is k_t/(k₁·dx²) of torsion springs.
    """
    waves = np.array(list(itertools.product(np.linspace(0.0, np.pi, 13), repeat=3)))
    matrix = np.zeros((len(waves), 3, 3), dtype=np.complex128)
    for direction in DIRECTIONS:
        d = np.array(direction, dtype=float)
        stiffness = 2.0 * length_ratio(direction) * (1.0 - np.cos(waves @ d))
        matrix += stiffness[:, None, None] * np.outer(d, d) / (d @ d)
    if volume > 0.0:
        # A cell's growth is the divergence by its mean edges: sin along the axis, cos across it.
        sine, cosine = np.sin(waves / 2), np.cos(waves / 2)
        growth = np.stack([sine[:, a] * cosine[:, a - 1] * cosine[:, a - 2] for a in range(3)], axis=1)
        matrix += 4.0 * volume * growth[:, :, None] * growth[:, None, :]
    if torsion > 0.0:
        for a, b, s, t in itertools.product(range(3), range(3), (-1, 1), (-1, 1)):
            if a < b:
                row = np.zeros((len(waves), 3), dtype=np.complex128)
                row[:, a] = s * (np.exp(1j * t * waves[:, b]) - 1.0)
                row[:, b] = t * (np.exp(1j * s * waves[:, a]) - 1.0)
                matrix += torsion * row.conj()[:, :, None] * row[:, None, :]
    return float(np.linalg.eigvalsh(matrix).max())


def axis_stiffness(young: float, spacing: float) -> float:
    """k₁ [N/m] of the isotropic lattice with this Young's modulus [Pa] and spacing [m]."""
    return young * spacing / (2.5 * (RATIO_FACE + 4.0 / 3.0 * RATIO_BODY))


def length_ratio(direction: tuple[int, int, int], equal_springs: bool = False) -> float:
    """Stiffness of a spring in this direction over k₁."""
    if equal_springs:
        return 1.0
    return (1.0, RATIO_FACE, RATIO_BODY)[sum(map(abs, direction)) - 1]


def cells_around(nodes: NDArray[np.int32], index: NodeIndex) -> NDArray[np.bool_]:
    """For each mass and octant whether that cell has all eight masses; shape (masses, 8)."""
    whole = index.whole_cells()
    # The cell on side s of a mass is named by its low corner, one step down on each axis where s is -1.
    return np.stack([index.look_up(whole, nodes + np.minimum(side, 0)) for side in OCTANTS], axis=1)


def spring_share(
    cells: NDArray[np.bool_], direction: tuple[int, int, int], other: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Share of a spring that goes from each mass in `direction` to `other`: cells that contain it over cells of an
    inner one.

    A spring that no whole cell contains bridges a notch of the surface, and has no share. Only where one of its ends
    has no whole cell at all, in a part thinner than a cell, it gets the share of one, so that nothing falls apart.
    """
    holds = [all(d == 0 or d == s for d, s in zip(direction, side, strict=True)) for side in OCTANTS]
    thin = np.asarray(~cells.any(axis=1))
    return np.maximum(cells[:, holds].sum(axis=1), thin | thin[other]) / sum(holds)


def mass_share(cells: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Share of a cell's mass ρ·dx³ that each mass carries; one eighth at least."""
    return np.maximum(cells.sum(axis=1), 1) / 8.0


class NodeIndex:
    """Finds masses by integer position, through a grid over their box."""

    def __init__(self, nodes: NDArray[np.int32]) -> None:
        self._low = nodes.min(axis=0).astype(np.int64) - 2
        size = nodes.max(axis=0).astype(np.int64) - self._low + 3
        if int(np.prod(size)) > LARGEST_BOX:
            raise InputError(
                f"the lattice's box has {int(np.prod(size)):,} places for {len(nodes):,} masses.",
                f"Use a coarser spacing; at most {LARGEST_BOX:,} places can be indexed.",
            )
        self._grid = np.full(size[::-1], -1, dtype=np.int32)
        self._grid[self._at(nodes)] = np.arange(len(nodes), dtype=np.int32)

    def _at(self, nodes: NDArray[np.integer]) -> tuple[NDArray[np.int64], ...]:
        x, y, z = (nodes - self._low).T
        return z, y, x

    def find(self, nodes: NDArray[np.integer]) -> NDArray[np.int32]:
        """Index of the mass at each position (within two cells of the lattice's box), -1 where there is none."""
        return self._grid[self._at(nodes)]

    def whole_cells(self) -> NDArray[np.bool_]:
        """Grid of the cells, by low corner, that have all eight masses."""
        there = self._grid >= 0
        for axis in range(3):
            there = there & np.roll(there, -1, axis=axis)
        return there

    def look_up(self, grid: NDArray[np.bool_], nodes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Values of a grid of this shape at these positions."""
        return grid[self._at(nodes)]


def partners(nodes: NDArray[np.int32]) -> NDArray[np.int64]:
    """The mass at the far end of each spring, per direction and mass, -1 where there is none: two neighbours across a
    notch, which no whole cell contains, are not joined (`spring_share`)."""
    index = NodeIndex(nodes)
    cells = cells_around(nodes, index)
    found = np.empty((len(DIRECTIONS), len(nodes)), dtype=np.int64)
    for row, direction in enumerate(DIRECTIONS):
        other = index.find(nodes + np.array(direction, dtype=np.int32))
        joined = (other >= 0) & (spring_share(cells, direction, other) > 0.0)
        found[row] = np.where(joined, other, -1)
    return found
