"""Which part of which triangle lies in which texel: exact areas, centroids and open sides, computed once per skin.

Each triangle of the atlas is cut by the texel grid. With the edges p → q of the triangle in a texel's own unit square,
Green's theorem gives, with c(y) = min(max(y, 0), 1) and x running inside [0, 1] only,

    area = |Σ ∫ c(y) dx|,    first moments = Σ ∫ x c(y) dx,  Σ ∫ ½ c(y)² dx,

each a sum of at most three trapezia per edge, so there is no polygon clipping. A side of the square is open over the
length that triangles cover on it: the signed sum of c where edges cross its line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import open_device

wp.set_module_options({"enable_backward": False})

LEAST_PIECE = 1.0e-12
"""Fraction of a texel below which a piece is rounding, not surface."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Triangles cut by the texel grid, ordered by texel and within it by face."""

    texel: NDArray[np.int32]
    """row · width + column."""
    face: NDArray[np.int32]
    weight: NDArray[np.float64]
    """Fraction of the texel's square."""
    centroid: NDArray[np.float64]
    """Of the piece, in the texel's unit square, shape (pieces, 2)."""
    left: NDArray[np.float64]
    bottom: NDArray[np.float64]
    """Length of the texel's left and bottom side that the piece covers, as a fraction of the side."""


@wp.func
def _unit(x: wp.float64):
    return wp.clamp(x, wp.float64(0.0), wp.float64(1.0))


@wp.func
def _trapezium(xa: wp.float64, ya: wp.float64, xb: wp.float64, yb: wp.float64):
    """Area, and first moments in x and y, under a straight line from a to b."""
    width = xb - xa
    two = wp.float64(2.0)
    six = wp.float64(6.0)
    return wp.vec3d(
        width * (ya + yb) / two,
        width * (xa * (two * ya + yb) + xb * (ya + two * yb)) / six,
        width * (ya * ya + ya * yb + yb * yb) / six,
    )


@wp.func
def _under(p: wp.vec2d, q: wp.vec2d):
    """Area and first moments of the unit square under the edge p → q; negative where the edge runs to the left."""
    nothing = wp.vec3d(wp.float64(0.0), wp.float64(0.0), wp.float64(0.0))
    xa = _unit(p[0])
    xb = _unit(q[0])
    if xa == xb:
        return nothing
    slope = (q[1] - p[1]) / (q[0] - p[0])
    low = wp.min(xa, xb)
    high = wp.max(xa, xb)
    # Where the edge enters and leaves 0 ≤ y ≤ 1, in the order in which it is run along.
    xm = xa
    xn = xa
    if slope != wp.float64(0.0):
        c0 = wp.clamp(p[0] - p[1] / slope, low, high)
        c1 = wp.clamp(p[0] + (wp.float64(1.0) - p[1]) / slope, low, high)
        forward = xb > xa
        xm = wp.where(forward, wp.min(c0, c1), wp.max(c0, c1))
        xn = wp.where(forward, wp.max(c0, c1), wp.min(c0, c1))
    ya = _unit(p[1] + slope * (xa - p[0]))
    ym = _unit(p[1] + slope * (xm - p[0]))
    yn = _unit(p[1] + slope * (xn - p[0]))
    yb = _unit(p[1] + slope * (xb - p[0]))
    return _trapezium(xa, ya, xm, ym) + _trapezium(xm, ym, xn, yn) + _trapezium(xn, yn, xb, yb)


@wp.func
def _crossing(px: wp.float64, py: wp.float64, qx: wp.float64, qy: wp.float64):
    """Signed height, kept in [0, 1], at which p → q crosses x = 0. Points on the line count as left of it: an edge
    along the line is then counted once, by the triangle on its right, which has a piece in this texel."""
    zero = wp.float64(0.0)
    if (px <= zero) == (qx <= zero):
        return zero
    height = _unit(py - px * (qy - py) / (qx - px))
    return wp.where(px <= zero, height, -height)


@wp.kernel
def cut_faces(
    # params
    columns: int,
    rows: int,
    # in
    corners: wp.array(dtype=wp.vec2d, ndim=2),
    start: wp.array(dtype=wp.int64),
    # out
    texel_out: wp.array(dtype=wp.int32),
    area_out: wp.array(dtype=wp.vec3d),
    side_out: wp.array(dtype=wp.vec2d),
):
    """All texels in the box around a face; those it misses get area 0."""
    face = wp.tid()
    a = corners[face, 0]
    b = corners[face, 1]
    c = corners[face, 2]
    low = wp.min(wp.min(a, b), c)
    high = wp.max(wp.max(a, b), c)
    place = start[face]
    for row in range(int(wp.floor(low[1])), int(wp.floor(high[1])) + 1):
        for column in range(int(wp.floor(low[0])), int(wp.floor(high[0])) + 1):
            corner = wp.vec2d(wp.float64(column), wp.float64(row))
            p = a - corner
            q = b - corner
            r = c - corner
            area = _under(p, q) + _under(q, r) + _under(r, p)
            left = _crossing(p[0], p[1], q[0], q[1]) + _crossing(q[0], q[1], r[0], r[1])
            left += _crossing(r[0], r[1], p[0], p[1])
            bottom = _crossing(p[1], p[0], q[1], q[0]) + _crossing(q[1], q[0], r[1], r[0])
            bottom += _crossing(r[1], r[0], p[1], p[0])
            if column < columns and row < rows:
                texel_out[place] = row * columns + column
                if area[0] < wp.float64(0.0):
                    area = -area
                area_out[place] = area
                side_out[place] = wp.vec2d(wp.abs(left), wp.abs(bottom))
            place += wp.int64(1)


def cut_by_texels(corners: NDArray[np.float64], width: int, height: int) -> Pieces:
    """`corners` are the faces' corners in texels, shape (faces, 3, 2), all within [0, width] × [0, height]."""
    open_device("cpu")
    low, high = np.floor(corners.min(axis=1)), np.floor(corners.max(axis=1))
    boxes = (high - low + 1).astype(np.int64).prod(axis=1)
    start = np.concatenate([[0], np.cumsum(boxes)])
    total = int(start[-1])
    texel = wp.zeros(total, dtype=wp.int32, device="cpu")
    area = wp.zeros(total, dtype=wp.vec3d, device="cpu")
    side = wp.zeros(total, dtype=wp.vec2d, device="cpu")
    # On the host whatever the device is: it happens once, in float64, and is the same everywhere.
    inputs = [
        width,
        height,
        wp.array(corners, dtype=wp.vec2d, ndim=2, device="cpu"),
        wp.array(start[:-1], dtype=wp.int64, device="cpu"),
        texel,
        area,
        side,
    ]
    wp.launch(cut_faces, dim=len(corners), inputs=inputs, device="cpu")
    moments = area.numpy()
    kept = np.flatnonzero(moments[:, 0] > LEAST_PIECE)
    kept = kept[np.argsort(texel.numpy()[kept], kind="stable")]
    face = (np.searchsorted(start, kept, side="right") - 1).astype(np.int32)
    weight = moments[kept, 0]
    sides = side.numpy()[kept]
    centroid = np.clip(moments[kept, 1:] / weight[:, None], 0.0, 1.0)
    return Pieces(texel.numpy()[kept], face, weight, centroid, sides[:, 0].copy(), sides[:, 1].copy())
