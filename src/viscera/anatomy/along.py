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
    begun = _placed(lay(found, line, line), np.ones(len(points)))
    return Attached(found.rest, at, local, begun, found.lengths)


@dataclass(frozen=True, eq=False)
class Laid:
    """A centreline as attached points need it; a tube that only opens and narrows keeps it."""

    middle: FloatArray
    """Where each hangs [m], (n, 3)."""
    radial: FloatArray
    """From there across the line [m], (n, 3)."""
    axial: FloatArray
    """And along it."""
    wide: FloatArray
    """Radius here over that of the line they were attached to, (n,)."""


def lay(attached: Attached, line: Centreline, now: Centreline) -> Laid:
    """The centreline `now` instead of `line`, which the points were attached to."""
    k = attached.at.astype(int)
    across, other = now.across[k], np.cross(now.tangents[k], now.across[k])
    a, b, c = (attached.local[:, axis, None] for axis in range(3))
    return Laid(now.points[k], a * across + b * other, c * now.tangents[k], now.radii[k] / line.radii[k])


def follow(attached: Attached, now: Laid, opening: FloatArray) -> FloatArray:
    """Where the points are on this centreline, `opening` times as wide at each of them, (n,). Without a change it is
    where they were, to the last bit."""
    return attached.rest + (_placed(now, opening) - attached.begun)


def _placed(now: Laid, opening: FloatArray) -> FloatArray:
    return now.middle + (opening * now.wide)[:, None] * now.radial + now.axial
