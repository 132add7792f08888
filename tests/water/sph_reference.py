"""SPH in float64, every particle with every other: slow, and short enough to be seen to be right."""

from __future__ import annotations

import numpy as np

from viscera.water import smoothing
from viscera.water.params import FluidParams


def differences(params: FluidParams, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x_i − x_j by the shortest way round periodic axes, shape (n, n, 3), and its length."""
    offset = x[:, None, :] - x[None, :, :]
    for axis in range(params.dimension):
        if params.periodic[axis]:
            length = params.upper[axis] - params.lower[axis]
            offset[..., axis] -= length * np.round(offset[..., axis] / length)
    return offset, np.sqrt((offset**2).sum(axis=-1))


def density(params: FluidParams, x: np.ndarray) -> np.ndarray:
    kernel = smoothing.poly6 if params.kernels == "muller" else smoothing.spline
    return params.mass * kernel(differences(params, x)[1], params.radius, params.dimension).sum(axis=1)


def pressure(params: FluidParams, rho: np.ndarray) -> np.ndarray:
    if params.equation == "gas":
        p = params.sound_speed**2 * (rho - params.rest_density)
    else:
        stiffness = params.rest_density * params.sound_speed**2 / params.gamma
        p = stiffness * ((rho / params.rest_density) ** params.gamma - 1.0)
    return (p if params.suction else np.maximum(p, 0.0)) + params.background


def derivative(f, r: np.ndarray, step: float) -> np.ndarray:
    return (f(r + step) - f(r - step)) / (2.0 * step)


def rates(
    params: FluidParams, x: np.ndarray, v: np.ndarray, rho: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Acceleration and dρ/dt. The slope of the kernel is a finite difference, so that a wrong constant cannot hide."""
    d, radius, m = params.dimension, params.radius, params.mass
    kernel = smoothing.spiky if params.kernels == "muller" else smoothing.spline
    offset, r = differences(params, x)
    inside = (r < radius) & (r > 0.0)
    safe = np.where(inside, r, 0.5 * radius)
    slope = np.where(inside, derivative(lambda q: kernel(q, radius, d), safe, 1e-6 * radius) / safe, 0.0)
    dv = v[:, None, :] - v[None, :, :]
    closing = (dv * offset).sum(axis=-1)
    half = 0.5 * radius
    mu = half * closing / (r**2 + 0.01 * half**2)
    mean = 0.5 * (rho[:, None] + rho[None, :])
    push = np.where(closing < 0.0, (params.beta * mu**2 - params.alpha * params.sound_speed * mu) / mean, 0.0)
    q = p / rho**2
    acceleration = -m * ((q[:, None] + q[None, :] + push) * slope)[..., None] * offset
    laplacian = {2: 40.0 / np.pi, 3: 45.0 / np.pi}[d] / radius ** (d + 2) * np.maximum(1.0 - r / radius, 0.0)
    if params.kernels == "spline":
        laplacian = -2.0 * slope
    acceleration -= m * params.viscosity * (laplacian / (rho[:, None] * rho[None, :]))[..., None] * dv
    return acceleration.sum(axis=1) + np.asarray(params.gravity), m * (slope * closing).sum(axis=1)


def step(params: FluidParams, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symplectic Euler with summed density."""
    rho = density(params, x)
    a, _ = rates(params, x, v, rho, pressure(params, rho))
    v = v + params.dt * a
    x = x + params.dt * v
    for axis in range(params.dimension):
        if params.periodic[axis]:
            length = params.upper[axis] - params.lower[axis]
            x[:, axis] -= length * np.floor((x[:, axis] - params.lower[axis]) / length)
    return x, v


def leapfrog(params: FluidParams, x: np.ndarray, v: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Andersson eq. 3.8, 3.9 with density by continuity (eq. 3.3)."""
    rho = np.full(len(x), params.rest_density)
    a, growth, dt = np.zeros_like(v), np.zeros_like(rho), params.dt
    for _ in range(steps):
        v_now, rho_now = v + 0.5 * dt * a, rho + 0.5 * dt * growth
        a, growth = rates(params, x, v_now, rho_now, pressure(params, rho_now))
        v, rho = v + dt * a, rho + dt * growth
        x = x + dt * v
    return x, v


def colour_pull(params: FluidParams, x: np.ndarray) -> np.ndarray:
    """Acceleration by the colour field, Grahn eq. 3.16–3.19: −(σ/ρ) ∇²c n/|n|, n = ∇c, where |n| R > 0.4. Slopes are
    finite differences of poly6; beyond R they are 0."""
    d, radius, step = params.dimension, params.radius, 1e-4 * params.radius

    def poly6(at: np.ndarray) -> np.ndarray:
        return smoothing.poly6(np.sqrt((at**2).sum(axis=-1)), radius, d)

    rho = density(params, x)
    offset, _ = differences(params, x)
    volume = params.mass / rho
    normal, laplacian = np.zeros_like(x), np.zeros(len(x))
    for axis in range(d):
        aside = step * np.eye(3)[axis]
        before, here, after = poly6(offset - aside), poly6(offset), poly6(offset + aside)
        normal[:, axis] = ((after - before) / (2.0 * step)) @ volume
        laplacian += ((after - 2.0 * here + before) / step**2) @ volume
    size = np.sqrt((normal**2).sum(axis=1))
    pull = -params.tension_coefficient / rho * laplacian
    return np.where(size * radius > 0.4, pull / np.maximum(size, 1e-30), 0.0)[:, None] * normal


def curvature_pull(params: FluidParams, x: np.ndarray, v: np.ndarray, factor: float) -> np.ndarray:
    """Acceleration by tension: σ/ρ₀ N κ ∇c, with κ from a fit to the normals of neighbours at the surface; and by what
    viscosity the surface lacks to 0.2 √(ρ₀ σ R/2), among those at it. With the spline."""
    d, radius = params.dimension, params.radius
    offset, r = differences(params, x)
    steep = derivative(lambda q: smoothing.poly6(q, radius, d), np.maximum(r, 1e-9), 1e-6 * radius)
    slope = np.where((r > 0.0) & (r < radius), steep / np.maximum(r, 1e-9), 0.0)
    inward = params.mass / params.rest_density * (slope[..., None] * offset).sum(axis=1)
    size = np.sqrt((inward**2).sum(axis=1))
    surface = size * radius > 0.4
    e = -inward / size[:, None]
    w = np.maximum(1.0 - (r / radius) ** 2, 0.0) ** 2 * surface[None, :]
    turned = (w * ((e[:, None] - e[None, :]) * offset).sum(axis=-1)).sum(axis=1)
    along = (w * (r**2 - (offset * e[:, None]).sum(axis=-1) ** 2)).sum(axis=1)
    bent = (d - 1) * np.clip(turned / along, -0.5 / radius, 0.5 / radius)
    pull = np.where(surface, params.tension_coefficient / params.rest_density * factor * bent, 0.0)[:, None] * inward
    lacking = 0.2 * np.sqrt(params.rest_density * params.tension_coefficient * 0.5 * radius) - params.viscosity
    rho = density(params, x)
    steep = derivative(lambda q: smoothing.spline(q, radius, d), np.maximum(r, 1e-9), 1e-6 * radius)
    curve = np.where(
        (r > 0.0) & (r < radius) & surface[None, :] & surface[:, None], -2.0 * steep / np.maximum(r, 1e-9), 0
    )
    drag = params.mass * max(lacking, 0.0) * curve / (rho[:, None] * rho[None, :])
    return pull + (drag[..., None] * (v[None, :] - v[:, None])).sum(axis=1)
