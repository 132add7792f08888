"""Points that go along with a tube: attached to its centreline, they follow when it bends, opens or narrows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viscera.anatomy.colon import Centreline
from viscera.geometry.mesh import FloatArray


@dataclass(frozen=True, eq=False)
class Attached:
    """Points of a tube in the frames of its centreline."""

    rest: FloatArray
    """Where they are in the tube as it was attached [m], (n, 3)."""
    at: FloatArray
    """Sample of the centreline that each hangs on, with its fraction, (n,)."""
    local: FloatArray
    """From there: across, the other way across, and along it [m], (n, 3)."""
    begun: FloatArray
    """Where the centreline and `local` say they are, (n, 3): off `rest` by the rounding of the frames."""
    lengths: FloatArray
    """From the tube's first end, along it [m], (n,)."""


def attach(points: FloatArray, line: Centreline) -> Attached:
    """Each to the nearest sample of the centreline."""
    at = np.empty(len(points))
    for begin in range(0, len(points), 2048):
        part = points[begin : begin + 2048]
        away = ((part[:, None] - line.points[None]) ** 2).sum(axis=2)
        at[begin : begin + 2048] = away.argmin(axis=1)
    k = at.astype(int)
    across, other = line.across[k], np.cross(line.tangents[k], line.across[k])
    way = points - line.points[k]
    local = np.stack([(way * axis).sum(axis=1) for axis in (across, other, line.tangents[k])], axis=1)
    found = Attached(points.copy(), at, local, points, line.lengths[k])
    return Attached(found.rest, at, local, _placed(found, line, line, np.ones(len(points))), found.lengths)


def follow(attached: Attached, line: Centreline, now: Centreline, opening: FloatArray) -> FloatArray:
    """Where the points are when the tube's centreline is `now` instead of `line`, which they were attached to, and it
    is `opening` times as wide at each of them, (n,). Without a change it is where they were, to the last bit."""
    return attached.rest + (_placed(attached, line, now, opening) - attached.begun)


def _placed(attached: Attached, line: Centreline, now: Centreline, opening: FloatArray) -> FloatArray:
    k = attached.at.astype(int)
    wide = (opening * now.radii[k] / line.radii[k])[:, None]
    across, other = now.across[k], np.cross(now.tangents[k], now.across[k])
    a, b, c = (attached.local[:, axis, None] for axis in range(3))
    return now.points[k] + wide * (a * across + b * other) + c * now.tangents[k]
