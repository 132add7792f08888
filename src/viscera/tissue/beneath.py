"""What lies beneath a skin: the nearest mass of each texel, and the material of that mass."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from viscera.skin import Skin
from viscera.tissue.springs import NodeIndex
from viscera.tissue.tissue import Tissue

HALF_CELL = 0.5 * math.sqrt(3.0)
"""Farthest that a point is from the node it was rounded to [cells]."""

SEARCH = 2
"""How many cells around a texel its nearest mass is looked for; one farther away is no part of this organ's lattice."""


def nearest_masses(tissue: Tissue, points: NDArray[np.float64]) -> NDArray[np.int32]:
    """The mass nearest to each point, shape (n, 3) [m], at rest; -1 where none is within `SEARCH` cells."""
    params = tissue.params
    cell = (points - np.asarray(params.origin)) / params.spacing
    low, high = params.nodes.min(axis=0), params.nodes.max(axis=0)
    middle = np.clip(np.rint(cell), low, high).astype(np.int64)
    index = NodeIndex(params.nodes)
    best = np.full(len(points), -1, dtype=np.int32)
    least = np.full(len(points), np.inf)
    steps = sorted(itertools.product(range(-SEARCH, SEARCH + 1), repeat=3), key=lambda step: np.dot(step, step))
    left = np.arange(len(points))
    for step in steps:
        # Who has found one that no further step can beat, looks no more.
        left = left[np.sqrt(least[left]) > max(0.0, math.sqrt(np.dot(step, step)) - HALF_CELL)]
        node = middle[left] + np.array(step)
        found = index.find(node)
        far = np.where(found >= 0, ((node - cell[left]) ** 2).sum(axis=1), np.inf)
        nearer = far < least[left]
        best[left[nearer]] = found[nearer]
        least[left[nearer]] = far[nearer]
    return np.where(least <= 3.0 * (SEARCH + 1) ** 2, best, -1)


def material_beneath(tissue: Tissue, skin: Skin) -> NDArray[np.uint8]:
    """Number of the material under each texel of the texture, shape (width · height,); 0, the main one, where there is
    no skin or no mass near. By rest positions: of the skin as it is now, which should be at rest."""
    found = np.zeros(skin.width * skin.height, dtype=np.uint8)
    kind = tissue.params.material_of
    if kind is not None:
        texels = skin.texels.numpy()
        mass = nearest_masses(tissue, skin.position.numpy()[texels].astype(np.float64))
        found[texels] = np.where(mass >= 0, kind[mass], 0)
    return found


def property_beneath(tissue: Tissue, skin: Skin, name: str) -> NDArray[np.float64]:
    """A field of `Material`, such as "conductivity", under each texel of the texture, shape (width · height,)."""
    table = np.array([getattr(material, name) for material in tissue.params.materials], dtype=np.float64)
    return table[material_beneath(tissue, skin)]
