"""Arrays that a snapshot holds, and how each travels to a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]
AnyArray = NDArray[Any]

Role = Literal["points", "particles", "tiles", "values", "topology"]


@dataclass(frozen=True)
class ArraySpec:
    """An array that a snapshot holds, and how it travels to a browser.

    `points`: positions, shape (n, 3), in 16 bits. `particles`: positions and a shade, shape (capacity, 4). `tiles`: a
    picture of bytes, shape (height, width, 4), of which only the tiles that changed are sent. `values`: a few rows of
    float32, sent as they are. `topology`: sent whole when its version changes. Of arrays with a name in
    `Frame.counts` only that many rows are there."""

    shape: tuple[int, ...]
    kind: Literal["f4", "i4", "u1"]
    role: Role
