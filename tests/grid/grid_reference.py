"""A slow float64 reference of flows on a grid: arrays of shape (z, y, x), one more along their axis for faces."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def along(axis: int) -> int:
    """x, y, z are the last, middle and first axis of an array."""
    return 2 - axis


def cut(array: Array, axis: int, first: int | None, last: int | None) -> Array:
    place: list[Any] = [slice(None)] * 3
    place[along(axis)] = slice(first, last)
    return array[tuple(place)]


def open_shares(distance: Array) -> list[Array]:
    """Of the faces across x, y, z, from the distances at corners: Σ max(φ, 0) / Σ |φ|, none where below 5 %."""
    shares = []
    for axis in range(3):
        parts = []
        others = [other for other in range(3) if other != axis]
        for a, b in itertools.product((0, 1), repeat=2):
            part = cut(distance, others[0], a, -1 if a == 0 else None)
            parts.append(cut(part, others[1], b, -1 if b == 0 else None))
        inside, whole = sum(np.maximum(p, 0.0) for p in parts), sum(np.abs(p) for p in parts)
        share = np.where(whole > 0.0, inside / np.maximum(whole, 1e-30), 0.0)
        shares.append(np.where(share < 0.05, 0.0, share))
    return shares


def close(shares: list[Array], open_sides: tuple[str, ...] = ()) -> tuple[list[Array], Array]:
    """Shares with walls and slivers closed, and which cells are fluid."""
    total = sum(cut(s, axis, None, -1) + cut(s, axis, 1, None) for axis, s in enumerate(shares))
    fluid = np.asarray(total > 0.3)
    closed = []
    for axis, share in enumerate(shares):
        letter = "xyz"[axis]
        rims = [f"{sign}{letter}" in open_sides for sign in "-+"]
        low = np.full_like(cut(fluid, axis, 0, 1), rims[0])
        high = np.full_like(cut(fluid, axis, 0, 1), rims[1])
        wide = np.concatenate([low, fluid, high], axis=along(axis))
        closed.append(share * cut(wide, axis, None, -1) * cut(wide, axis, 1, None))
    return closed, fluid


def divergence(shares: list[Array], velocity: list[Array], solid: list[Array]) -> Array:
    """h∇·u of fluid and solids together."""
    total = np.zeros_like(cut(velocity[0], 0, 1, None))
    for axis, (a, u, s) in enumerate(zip(shares, velocity, solid, strict=True)):
        flux = a * u + (1.0 - a) * s
        total += cut(flux, axis, 1, None) - cut(flux, axis, None, -1)
    return total


def gradient(p: Array, axis: int) -> Array:
    """p − p_below on all faces; 0 beyond the box."""
    pad = [(0, 0)] * 3
    pad[along(axis)] = (1, 1)
    return np.diff(np.pad(p, pad), axis=along(axis))


def project(
    shares: list[Array], fluid: Array, velocity: list[Array], solid: list[Array], source: Array, closed: bool
) -> list[Array]:
    """Exact to rounding, by conjugate gradients."""
    needed = np.where(fluid, source - divergence(shares, velocity, solid), 0.0)
    if closed:
        needed -= fluid * needed.sum() / fluid.sum()

    def matrix(p: Array) -> Array:
        flux = [a * gradient(p, axis) for axis, a in enumerate(shares)]
        out = sum(cut(f, axis, None, -1) - cut(f, axis, 1, None) for axis, f in enumerate(flux))
        return np.where(fluid, out, 0.0)

    p = np.zeros_like(needed)
    r = needed.copy()
    d, rr = r.copy(), float((r * r).sum())
    for _ in range(4000):
        if rr < 1e-26 * max(1.0, float((needed * needed).sum())):
            break
        image = matrix(d)
        alpha = rr / float((d * image).sum())
        p += alpha * d
        r -= alpha * image
        new = float((r * r).sum())
        d, rr = r + new / rr * d, new
    moved = zip(shares, velocity, solid, strict=True)
    return [np.where(a > 0.0, u - gradient(p, axis), s) for axis, (a, u, s) in enumerate(moved)]


def padded(array: Array) -> Array:
    return np.pad(array, 1)


def velocity_at(axis: int, velocity: list[Array]) -> list[Array]:
    """Of the three parts at the faces across an axis, or in the middles of cells (3)."""
    parts = []
    for other, u in enumerate(velocity):
        if other == axis:
            parts.append(u)
        elif axis == 3:
            parts.append(0.5 * (cut(u, other, None, -1) + cut(u, other, 1, None)))
        else:
            # The mean of four faces; beyond the box 0.
            pad = [(0, 0)] * 3
            pad[along(axis)] = (1, 1)
            wide = np.pad(u, pad)
            near = cut(wide, axis, None, -1) + cut(wide, axis, 1, None)
            parts.append(0.25 * (cut(near, other, None, -1) + cut(near, other, 1, None)))
    return parts


def sample(array: Array, places: list[Array]) -> tuple[Array, Array, Array]:
    """Trilinear at places counted in entries along x, y, z, kept within the array; with the least and most around."""
    bases, shares = [], []
    for axis, place in enumerate(places):
        count = array.shape[along(axis)]
        kept = np.clip(place, 0.0, count - 1.0)
        base = np.minimum(np.floor(kept).astype(int), max(count - 2, 0))
        bases.append(base)
        shares.append(kept - base)
    value, corners = np.zeros_like(places[0]), []
    for steps in itertools.product((0, 1), repeat=3):
        at = [
            np.minimum(b + s, array.shape[along(axis)] - 1)
            for axis, (b, s) in enumerate(zip(bases, steps, strict=True))
        ]
        corner = array[at[2], at[1], at[0]]
        weight = np.prod([np.where(s, t, 1.0 - t) for s, t in zip(steps, shares, strict=True)], axis=0)
        value += weight * corner
        corners.append(corner)
    return value, np.min(corners, axis=0), np.max(corners, axis=0)


def carried(axis: int, values: Array, velocity: list[Array], rate: float, scheme: str) -> Array:
    """By the flow, in a step of `rate` cells per speed."""
    own = velocity_at(axis, velocity)
    grids = np.meshgrid(*(np.arange(n, dtype=float) for n in values.shape), indexing="ij")[::-1]
    back = [g - rate * u for g, u in zip(grids, own, strict=True)]
    once, least, most = sample(values, back)
    if scheme == "semi_lagrangian":
        return once
    forth, _, _ = sample(once, [g + rate * u for g, u in zip(grids, own, strict=True)])
    return np.clip(once + 0.5 * (values - forth), least, most)
