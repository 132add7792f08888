"""Which patches of a film their contact line holds.

A patch is film that hangs together, seen from above in cells as wide as its particles reach. Gravity pulls it down its
slopes with P = Σ ρ V g sin θ; at its border, where n points outward over the table and d down the slope, the line has
A = Σ l max(0, n·d) to advance and R = Σ l max(0, −n·d) to recede. It stays as long as

    P ≤ (24/π³) σ (cos θ_r − cos θ_a) ½ (A + R),

which is A. ElSherbini's and A. Jacobi's retention (J. Colloid Interface Sci. 299 (2006) 841) for a round drop, where
A = R = D, and holds a strip of film of thickness t up to the length 24/π³ σ (cos θ_r − cos θ_a)/(ρ g t sin θ), 5.2 mm
on a wall. What runs off a hill on all sides advances all around.

Differs from a film with a free surface: a patch is held as a whole or not at all, lengths are those over the table, and
the border is that of cells: a round one is longer by 4/π than it is, which is taken off.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from viscera.blood.constants import BLOOD_DENSITY, SURFACE_TENSION
from viscera.blood.film.params import LITTLE

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RETENTION = 24.0 / math.pi**3
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1))
JAGGED = math.pi / 4.0
"""Length of a line over that of its stairs, mean over all directions."""


def find_held(
    position: Floats, normal: Floats, volume: NDArray[np.integer], side: float, hysteresis: float, gravity: Floats
) -> Bools:
    """Whether each particle is in a patch that is held. Places and unit normals of the surface there, shape (n, 3) [m];
    volumes, shape (n,) [pL]; side of a cell [m]; cos θ_r − cos θ_a; gravity along −z, shape (3,) [m/s²]."""
    if len(position) == 0:
        return np.zeros(0, dtype=np.bool_)
    cell = np.floor(position[:, :2] / side).astype(np.int64)
    cell -= cell.min(axis=0) - 1
    shape = tuple((cell.max(axis=0) + 2).tolist())
    at = (cell[:, 0], cell[:, 1])
    patch = find_patches(at, shape)
    pull = gravity - normal * (normal @ gravity)[:, None]
    force = (LITTLE * BLOOD_DENSITY) * volume[:, None] * pull
    down = np.zeros((*shape, 2))
    np.add.at(down, at, force[:, :2])
    down /= np.maximum(np.linalg.norm(down, axis=2, keepdims=True), 1e-30)
    count = int(patch.max()) + 1
    border = np.zeros(count)
    for dx, dy in SIDES:
        ends = (patch > 0) & (np.roll(patch, (-dx, -dy), axis=(0, 1)) == 0)
        across = np.abs(down[ends] @ np.array([dx, dy], dtype=np.float64))
        border += np.bincount(patch[ends], weights=side * across, minlength=count)
    holds = RETENTION * SURFACE_TENSION * hysteresis * 0.5 * JAGGED * border
    mine = patch[at]
    pulls = np.bincount(mine, weights=np.linalg.norm(force, axis=1), minlength=count)
    return (pulls <= holds)[mine]


def find_patches(at: tuple[NDArray[np.int64], NDArray[np.int64]], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The patch of each cell, from 1 on, 0 where there is no film; cells that share a side or a corner hang together.
    There is an empty cell all around."""
    label = np.zeros(shape, dtype=np.int64)
    label[at] = 1 + np.ravel_multi_index(at, shape)
    wet = label > 0
    while True:
        before = label
        for axis in (0, 1):
            label = np.maximum(np.maximum(label, np.roll(label, 1, axis)), np.roll(label, -1, axis))
        label = label * wet
        # Of each patch all follow the one that its highest cell follows now: a few turns, however long it is.
        label[wet] = label.ravel()[label[wet] - 1]
        if np.array_equal(label, before):
            break
    numbers = np.unique(label[wet])
    label[wet] = 1 + np.searchsorted(numbers, label[wet])
    return label
