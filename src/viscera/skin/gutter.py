"""The gutter of a texture: texels just outside the charts, which repeat what the nearest covered one shows.

A picture is read between texels. At a chart's border that would mix tissue with nothing, and show a line; with a gutter
it mixes tissue with tissue.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.skin.skin import Skin

SIDES_FIRST = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
"""Steps to the eight neighbours in rows and columns: along a side before over a corner."""


def gutter(skin: Skin, rings: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Texels within so many rings outside the charts, and the covered texel that each repeats."""
    covered = skin.texels.numpy()
    source = np.full(skin.width * skin.height, -1, dtype=np.int32)
    source[covered] = covered
    source = source.reshape(skin.height, skin.width)
    for _ in range(rings):
        before = np.pad(source, 1, constant_values=-1)
        for down, right in SIDES_FIRST:
            beside = before[1 + down : 1 + down + skin.height, 1 + right : 1 + right + skin.width]
            source = np.where(source < 0, beside, source)
    flat = source.ravel()
    flat[covered] = -1
    outside = np.flatnonzero(flat >= 0)
    return outside.astype(np.int32), flat[outside]
