"""The film's step as plainly as it can be written: all pairs, float64, NumPy. Equations: `viscera.blood.film.pairs`.

Everything is on a sheet (2D); positions have shape (n, 2) [texel]. Springs are a dictionary from a pair to its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from viscera.blood.film.params import MOST_VISCOUS, FilmParams, Sheet

Floats = NDArray[np.float64]


@dataclass
class Reference:
    params: FilmParams
    sheet: Sheet
    x: Floats
    v: Floats
    fluid: NDArray[np.int64]
    """Number of each particle's fluid."""
    springs: dict[tuple[int, int], float] = field(default_factory=dict)
    density: Floats = field(default_factory=lambda: np.zeros(0))

    def constant(self, name: str) -> Floats:
        return np.array([getattr(fluid, name) for fluid in self.params.fluids])[self.fluid]

    def offsets(self, x: Floats) -> tuple[Floats, Floats]:
        """x_j − x_i and its length, shapes (n, n, 2) and (n, n); the nearest copy where the sheet wraps."""
        offset = x[None, :, :] - x[:, None, :]
        if self.sheet.wrap:
            size = np.array([self.sheet.width, self.sheet.height], dtype=float)
            offset = offset - size * np.round(offset / size)
        length = np.linalg.norm(offset, axis=2)
        np.fill_diagonal(length, np.inf)
        return offset, length

    def viscosity(self) -> None:
        p = self.params
        offset, r = self.offsets(self.x)
        near = r < p.radius
        unit = offset / np.where(near, r, 1.0)[:, :, None]
        u = ((self.v[:, None] - self.v[None, :]) * unit).sum(axis=2)
        linear, quadratic = self.constant("viscosity"), self.constant("quadratic_viscosity")
        sigma = 0.5 * (linear[:, None] + linear[None, :])
        beta = 0.5 * (quadratic[:, None] + quadratic[None, :])
        w = np.where(near & (u > 0.0), 1.0 - np.where(near, r, 0.0) / p.radius, 0.0)
        share = 1.0 if p.one_sided else 0.5
        taken = np.minimum(share * p.dt * (sigma + beta * u), MOST_VISCOUS)
        self.v = self.v - ((w * taken * u)[:, :, None] * unit).sum(axis=1)

    def plasticity(self, x: Floats) -> None:
        p, h = self.params, self.params.radius
        _, r = self.offsets(x)
        for i, j in zip(*np.nonzero(r < h), strict=True):
            if i < j:
                self.springs.setdefault((int(i), int(j)), h)
        for (i, j), rest in list(self.springs.items()):
            bears = p.yield_ratio * rest
            if r[i, j] > rest + bears:
                rest = rest + p.dt * p.plasticity * (r[i, j] - rest - bears)
            elif r[i, j] < rest - bears:
                rest = rest - p.dt * p.plasticity * (rest - bears - r[i, j])
            if rest > h:
                del self.springs[i, j]
            else:
                self.springs[i, j] = rest

    def spring_displacements(self, x: Floats) -> Floats:
        p = self.params
        offset, r = self.offsets(x)
        moved = np.zeros_like(x)
        for (i, j), rest in self.springs.items():
            size = p.dt**2 * p.spring_stiffness * (1.0 - rest / p.radius) * (rest - r[i, j])
            moved[i] -= 0.5 * size * offset[i, j] / r[i, j]
            moved[j] += 0.5 * size * offset[i, j] / r[i, j]
        return moved

    def relaxation(self, x: Floats) -> Floats:
        """Displacement by double density, as the original exchanges it: each loop moves both ends by half of what its
        own particle's pressure gives; one-sided, only the particle itself, by all of it."""
        p = self.params
        offset, r = self.offsets(x)
        near = r < p.radius
        w = np.where(near, 1.0 - np.where(near, r, 0.0) / p.radius, 0.0)
        self.density = (w**2).sum(axis=1)
        pressure = self.constant("stiffness") * (self.density - self.constant("rest_density"))
        close = self.constant("near_stiffness") * (w**3).sum(axis=1)
        unit = offset / np.where(near, r, 1.0)[:, :, None]
        phase = self.constant("phase")
        apart = pressure[:, None] + p.separation * np.abs(phase[:, None] - phase[None, :])
        d = p.dt**2 * (apart * w + close[:, None] * w**2)[:, :, None] * unit
        if p.one_sided:
            return -d.sum(axis=1)
        return 0.5 * d.sum(axis=0) - 0.5 * d.sum(axis=1)

    def step(self) -> None:
        p = self.params
        self.v = self.v + p.dt * np.array(p.gravity[:2])
        self.viscosity()
        moved = within(p.dt * self.v, p.reach)
        if p.springs:
            self.plasticity(self.x + moved)
            moved = within(moved + self.spring_displacements(self.x + moved), p.reach)
        moved = moved + self.relaxation(self.x + moved)
        self.x = self.x + moved
        if self.sheet.wrap:
            self.x = self.x % np.array([self.sheet.width, self.sheet.height], dtype=float)
        inertia = np.exp(-p.dt * self.constant("traction"))[:, None]
        self.v = within(inertia * moved / p.dt, p.max_speed)

    @property
    def momentum(self) -> Floats:
        return self.v.sum(axis=0)


def within(vectors: Floats, most: float) -> Floats:
    """Clamped by magnitude."""
    return vectors * np.minimum(1.0, most / np.maximum(np.linalg.norm(vectors, axis=1), 1e-30))[:, None]


def scatter(count: int, width: float, height: float, seed: int, margin: float = 0.0) -> Floats:
    """Places at random, none closer to another than a fifth of what an even spread would give."""
    rng = np.random.default_rng(seed)
    least = 0.2 * math.sqrt((width - 2 * margin) * (height - 2 * margin) / count)
    found = np.zeros((0, 2))
    while len(found) < count:
        more = margin + rng.random((count, 2)) * (np.array([width, height]) - 2 * margin)
        for point in more:
            if len(found) < count and (len(found) == 0 or np.linalg.norm(found - point, axis=1).min() > least):
                found = np.vstack([found, point])
    return found
