"""A colon by rule: a tube along a cubic spline with a radius at each control point (Grahn ch. 9), haustra between
folds.

Centreline c(t) and radius R(t) are natural cubic splines through the control points: the second derivative is
continuous, and zero at the ends. Frames along it minimise rotation (double reflection, Wang et al. 2008,
doi:10.1145/1330511.1330513), so the tube does not twist where the curve has no curvature, as Frenet's frames do. The
wall at length s and angle θ from the frame is

    ρ(s, θ) = R(s) [1 − D (F(s − σ_b) + B_b(θ))],

with three bands (taeniae) b at 120°, a shallow groove B along each, and folds F (plicae semilunares) one haustrum
apart, shifted by σ_b from band to band so that they are crescents and not rings. The radius is held below 0.85 of the
centreline's radius of curvature: a tube that bends more would pass through itself.

Axes: x to the patient's left, y to the head, z to the front; the origin is in the middle of its box. Lengths: 1.2 to
1.6 m; diameter from about 7 cm (caecum) to 3 cm (sigmoid) (Gray, Anatomy of the Human Body, 1918, "The Large
Intestine"; for air-filled ones Sadahiro et al. 1992, doi:10.1007/BF01647660).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

TRIANGLES = 8040
"""As many as the document's model has (Grahn Figure 8.4); its original had 40 000."""

COURSE = np.array(
    [
        # x, y, z, radius [m], from the anus to the caecum
        [0.000, -0.200, -0.045, 0.014],
        [0.000, -0.165, -0.040, 0.021],
        [0.004, -0.125, -0.048, 0.023],
        [0.008, -0.082, -0.035, 0.018],
        [-0.034, -0.055, 0.012, 0.017],
        [-0.002, -0.012, 0.046, 0.017],
        [0.056, -0.032, 0.040, 0.017],
        [0.108, -0.072, 0.006, 0.018],
        [0.142, -0.018, -0.014, 0.019],
        [0.152, 0.060, -0.024, 0.020],
        [0.150, 0.135, -0.030, 0.021],
        [0.118, 0.186, -0.012, 0.022],
        [0.066, 0.132, 0.034, 0.023],
        [0.006, 0.092, 0.050, 0.025],
        [-0.058, 0.094, 0.046, 0.026],
        [-0.104, 0.132, 0.018, 0.026],
        [-0.150, 0.110, -0.020, 0.027],
        [-0.152, 0.040, -0.030, 0.029],
        [-0.148, -0.030, -0.026, 0.033],
        [-0.140, -0.090, -0.014, 0.036],
        [-0.132, -0.125, -0.006, 0.030],
    ]
)
"""Control points of a middle-sized colon; drawn by eye after anatomical plates."""

SHIFT = 0.007
"""Standard deviation by which a seed moves a control point [m]."""
STRETCH = 0.10
"""… and changes its radius, as a part of it."""

TIGHTEST = 0.85
"""Most radius over radius of curvature."""

HAUSTRUM = 0.034
"""Distance of folds [m]."""
FOLD_DEPTH = 0.20
"""Of a fold, over the radius; tuned for appearance."""
FOLD_WIDTH = 0.22
"""Of a fold, over the distance of folds."""
BAND_DEPTH = 0.07
"""Of the groove along a band, over the radius; tuned for appearance."""

SIDES = (8, 512)
RINGS = (8, 8192)


@dataclass(frozen=True, eq=False)
class Centreline:
    """Samples along a tube."""

    points: FloatArray
    """Shape (n, 3) [m]."""
    tangents: FloatArray
    """Unit vectors, shape (n, 3)."""
    across: FloatArray
    """Unit vectors at right angles to the tangents that turn as little as they can, shape (n, 3)."""
    radii: FloatArray
    """Shape (n,) [m]."""
    lengths: FloatArray
    """From the first point, along the curve, shape (n,) [m]."""


def colon(
    seed: int | None = None,
    triangles: int = TRIANGLES,
    *,
    closed: bool = True,
    control: ArrayLike | None = None,
    haustra: bool = True,
) -> TriangleMesh:
    """A colon of exactly `triangles` triangles, with closed (rounded) or open ends; facing outward.

    Without a seed it is always the same one; each seed gives another individual. `control` replaces its course: one
    row of x, y, z, radius [m] per control point, at least 4.
    """
    course = COURSE if control is None else _checked_control(control)
    if seed is not None:
        course = _varied(course, seed)
    rings, sides = _divide(course, triangles)
    # Closed, the first and the last place are the poles; there is one ring less than an open tube of as many triangles
    # has.
    line = centreline(course, rings + 1 if closed else rings)
    rng = np.random.default_rng([0 if seed is None else seed + 1, 7])
    shrink = _folds(line, sides, rng) if haustra else np.ones((len(line.radii), sides))
    return _tube(line, sides, shrink, closed)


def centreline_of(mesh: TriangleMesh, seed: int | None = None, samples: int = 400) -> Centreline:
    """The centreline of a closed colon that `colon(seed)` made, from the anus to the caecum, where the mesh lies."""
    course = COURSE if seed is None else _varied(COURSE, seed)
    line = centreline(course, samples)
    # Its last two vertices are the poles.
    return replace(line, points=line.points + (mesh.vertices[-2] - line.points[0]))


def course_of(mesh: TriangleMesh, seed: int | None = None) -> FloatArray:
    """Control points of a closed colon that `colon(seed)` made, where the mesh lies: x, y, z and radius [m] per row."""
    course = (COURSE if seed is None else _varied(COURSE, seed)).copy()
    course[:, :3] += mesh.vertices[-2] - course[0, :3]
    return course


def centreline(control: ArrayLike, samples: int) -> Centreline:
    """`samples` points at equal distances along the natural cubic spline through rows of x, y, z, radius [m]."""
    course = np.asarray(control, dtype=np.float64)
    chord = np.linalg.norm(np.diff(course[:, :3], axis=0), axis=1)
    knots = np.concatenate([[0.0], np.cumsum(chord)])
    fine = np.linspace(0.0, knots[-1], max(40 * len(course), 4 * samples))
    curve = natural_spline(knots, course, fine)
    run = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve[:, :3], axis=0), axis=1))])
    at = np.interp(np.linspace(0.0, run[-1], samples), run, fine)
    sampled = natural_spline(knots, course, at)
    tangents = natural_spline(knots, course[:, :3], at, 1)
    speed = np.linalg.norm(tangents, axis=1)
    bend = natural_spline(knots, course[:, :3], at, 2)
    curvature = np.linalg.norm(np.cross(tangents, bend), axis=1) / speed**3
    tangents = tangents / speed[:, None]
    points = sampled[:, :3]
    lengths = np.linspace(0.0, run[-1], samples)
    radii = _held(sampled[:, 3], curvature, lengths)
    return Centreline(points, tangents, _frames(points, tangents), radii, lengths)


def natural_spline(knots: FloatArray, values: FloatArray, at: FloatArray, derivative: int = 0) -> FloatArray:
    """The natural cubic spline through `values`, shape (knots, columns), or one of its first two derivatives."""
    step = np.diff(knots)
    slope = np.diff(values, axis=0) / step[:, None]
    inner = len(knots) - 2
    second = np.zeros_like(values)
    matrix = np.zeros((inner, inner))
    rows = np.arange(inner)
    matrix[rows, rows] = 2.0 * (step[:-1] + step[1:])
    matrix[rows[1:], rows[:-1]] = matrix[rows[:-1], rows[1:]] = step[1:-1]
    second[1:-1] = np.linalg.solve(matrix, 6.0 * np.diff(slope, axis=0))
    i = np.clip(np.searchsorted(knots, at, side="right") - 1, 0, len(step) - 1)
    h, x = step[i][:, None], (at - knots[i])[:, None]
    a, b = second[i], second[i + 1]
    linear = slope[i] - h * (2.0 * a + b) / 6.0
    if derivative == 0:
        return values[i] + x * (linear + x * (a / 2.0 + x * (b - a) / (6.0 * h)))
    if derivative == 1:
        return linear + x * (a + x * (b - a) / (2.0 * h))
    return a + x * (b - a) / h


def _frames(points: FloatArray, tangents: FloatArray) -> FloatArray:
    """Rotation-minimising normals by double reflection."""
    across = np.zeros_like(points)
    start = np.eye(3)[np.abs(tangents[0]).argmin()]
    across[0] = start - (start @ tangents[0]) * tangents[0]
    across[0] /= np.linalg.norm(across[0])
    for k in range(len(points) - 1):
        v = points[k + 1] - points[k]
        mirrored = across[k] - 2.0 * (v @ across[k]) / (v @ v) * v
        turned = tangents[k] - 2.0 * (v @ tangents[k]) / (v @ v) * v
        w = tangents[k + 1] - turned
        square = w @ w
        after = mirrored - (2.0 * (w @ mirrored) / square * w if square > 0.0 else 0.0)
        after -= (after @ tangents[k + 1]) * tangents[k + 1]
        across[k + 1] = after / np.linalg.norm(after)
    return across


def _held(radii: FloatArray, curvature: FloatArray, lengths: FloatArray) -> FloatArray:
    """Radii that no bend is too tight for: the least of what is allowed nearby, then smoothed over a few centimetres.
    Radii that no bend is too tight for: the least of what is allowed nearby, then smoothed over a few centimetres."""
    allowed = TIGHTEST / np.maximum(curvature, 1e-9)
    wanted = np.minimum(radii, allowed)
    if (wanted == radii).all():
        return radii
    apart = np.abs(lengths[:, None] - lengths[None, :])
    nearby = np.where(apart < 0.02, wanted[None, :], np.inf).min(axis=1)
    weight = np.exp(-0.5 * (apart / 0.008) ** 2)
    return np.minimum((weight @ nearby) / weight.sum(axis=1), allowed)


def _folds(line: Centreline, sides: int, rng: np.random.Generator) -> FloatArray:
    """What is left of the radius at each ring and angle."""
    angle = 2.0 * math.pi * np.arange(sides) / sides
    bands = 2.0 * math.pi * (np.arange(3) + rng.uniform()) / 3.0
    # Folds at uneven distances: a seed decides each, so no two colons have theirs in the same places.
    length = line.lengths[-1]
    number = max(1, round(length / HAUSTRUM))
    shrink = np.ones((len(line.lengths), sides))
    ends = np.clip(np.minimum(line.lengths, length - line.lengths) / 0.05, 0.0, 1.0)
    for band in range(3):
        places = length * (np.arange(number) + 0.5 + band / 3.0 + 0.18 * rng.standard_normal(number)) / number
        depth = FOLD_DEPTH * rng.uniform(0.6, 1.0, number)
        # A crescent is deepest in the middle between two bands and ends at them.
        middle = bands[band] + math.pi / 3.0
        away = np.abs((angle - middle + math.pi) % (2.0 * math.pi) - math.pi)
        crescent = np.cos(np.clip(away / (2.0 * math.pi / 3.0), 0.0, 1.0) * math.pi / 2.0) ** 2
        ridge = np.exp(-0.5 * ((line.lengths[:, None] - places) / (FOLD_WIDTH * HAUSTRUM)) ** 2) @ depth
        shrink -= np.minimum(ridge, FOLD_DEPTH)[:, None] * crescent * ends[:, None]
        groove = np.exp(-0.5 * (((angle - bands[band] + math.pi) % (2.0 * math.pi) - math.pi) / 0.25) ** 2)
        shrink -= BAND_DEPTH * groove * ends[:, None]
    return shrink


def _tube(line: Centreline, sides: int, shrink: FloatArray, closed: bool) -> TriangleMesh:
    """Rings of vertices, and a pole at each end where it is closed; there the radius rounds off like a ball's."""
    angle = 2.0 * math.pi * np.arange(sides) / sides
    other = np.cross(line.tangents, line.across)
    out = np.cos(angle)[None, :, None] * line.across[:, None] + np.sin(angle)[None, :, None] * other[:, None]
    radii = line.radii[:, None] * shrink
    if closed:
        to_end = np.minimum(line.lengths, line.lengths[-1] - line.lengths)
        # A ball's radius at height s from the pole is √(R² − (R − s)²).
        s = np.minimum(to_end, line.radii)
        radii = radii * np.sqrt(np.maximum(1.0 - (1.0 - s / line.radii) ** 2, 0.0))[:, None]
    rings = line.points[:, None] + radii[..., None] * out
    if closed:
        rings = rings[1:-1]
    vertices = rings.reshape(-1, 3)
    count = len(rings)
    k, j = (g.ravel() for g in np.meshgrid(np.arange(count - 1), np.arange(sides), indexing="ij"))
    a, b = k * sides + j, k * sides + (j + 1) % sides
    c, d = a + sides, b + sides
    # Diagonals alternate, so that the tube is not sheared one way.
    even = (k + j) % 2 == 0
    one = np.where(even[:, None], np.stack([a, b, d], axis=1), np.stack([a, b, c], axis=1))
    two = np.where(even[:, None], np.stack([a, d, c], axis=1), np.stack([b, d, c], axis=1))
    triangles = np.concatenate([one, two])
    if closed:
        poles = line.points[[0, -1]]
        first, last, ring = len(vertices), len(vertices) + 1, np.arange(sides)
        after = (ring + 1) % sides
        base = (count - 1) * sides
        low = np.stack([np.full(sides, first), after, ring], axis=1)
        high = np.stack([np.full(sides, last), base + ring, base + after], axis=1)
        vertices = np.concatenate([vertices, poles])
        triangles = np.concatenate([triangles, low, high])
    mesh = TriangleMesh(vertices, triangles.astype(np.int32), "colon")
    return mesh.moved(-mesh.centre)


def _divide(course: FloatArray, triangles: int) -> tuple[int, int]:
    """Rings and sides whose product makes exactly `triangles`, with triangles as near to regular as that allows.

    Closed: rings − 1 rings of vertices between two poles, 2·sides·(rings − 1) triangles; open: as many for rings.
    """
    length = float(np.linalg.norm(np.diff(course[:, :3], axis=0), axis=1).sum())
    around = 2.0 * math.pi * float(course[:, 3].mean())
    half = triangles // 2
    best = math.sqrt(max(half, 1) * around / length)
    fitting = [n for n in range(SIDES[0], min(SIDES[1], half) + 1) if half % n == 0 and half // n >= RINGS[0]]
    if triangles % 2 or not fitting:
        raise InputError(
            f"triangles = {triangles} cannot be a tube.",
            f"It must be 2 × sides × rings, with at least {SIDES[0]} sides and {RINGS[0]} rings: 8040 and 40000 are.",
        )
    sides = min(fitting, key=lambda n: abs(math.log(n / best)))
    rings = half // sides + 1
    if rings > RINGS[1]:
        raise InputError(
            f"triangles = {triangles} would need {rings} rings of {sides} sides.",
            "Take a number with more divisors, such as 8040 or 40000.",
        )
    return rings, sides


def _varied(course: FloatArray, seed: int) -> FloatArray:
    """Another individual: points moved and radii changed, neighbours alike, so that no kinks arise."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((len(course) + 2, 4))
    smooth = (noise[:-2] + 2.0 * noise[1:-1] + noise[2:]) / math.sqrt(6.0)
    size = 1.0 + 0.06 * float(np.clip(rng.standard_normal(), -2.0, 2.0))
    out = course * size
    out[:, :3] += SHIFT * np.clip(smooth[:, :3], -2.0, 2.0)
    out[:, 3] *= np.exp(STRETCH * np.clip(smooth[:, 3], -2.0, 2.0))
    return out


def _checked_control(control: ArrayLike) -> FloatArray:
    course = np.asarray(control, dtype=np.float64)
    if course.ndim != 2 or course.shape[1] != 4 or len(course) < 4:
        raise InputError(f"control has shape {course.shape}.", "Give at least 4 rows of x, y, z and radius, in metres.")
    if not np.isfinite(course).all() or (course[:, 3] <= 0.0).any():
        raise InputError("control has values that are not possible.", "All must be finite, and every radius above 0.")
    if (np.linalg.norm(np.diff(course[:, :3], axis=0), axis=1) == 0.0).any():
        raise InputError("two control points in a row are at one place.", "Drop one of them.")
    return course
