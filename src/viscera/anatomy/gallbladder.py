"""A gall bladder by rule: a pear of fundus, body, infundibulum and neck, bent where it meets the cystic duct.

Axes: y from the fundus (−y) to the neck (+y), z to the liver side; the origin is in the middle of the body. Sizes: 7
to 10 cm long, about 3 to 4 cm wide, 30 to 50 mL, wall up to 3 mm thick (Gray, Anatomy of the Human Body, 1918, "The
Gall-bladder", gives 7 to 10 cm, 2.5 cm and 30 to 35 mL; today's textbooks give the larger figures for a filled one).
"""

from __future__ import annotations

import math

import numpy as np

from viscera.anatomy.implicit import Body, Ellipsoid, of_volume, polygonise
from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

VOLUME = 4.0e-5
"""Outside, filled [m³]."""
VOLUMES = (5e-6, 3e-4)
"""From an empty one to a hydrops [m³]."""

EDGE = 0.0018
"""Of the triangles [m]; gives about 4 000 vertices."""

THICKEST_WALL = 0.006
"""[m]; more than 3 mm is inflamed, and 6 mm leave no room in the neck."""

BEND = 4.5
"""Of the long axis towards the liver [1/m]; tuned for appearance."""

PARTS = (
    Ellipsoid((0.0, -0.013, 0.0), (0.0182, 0.0255, 0.0172)),  # fundus and body
    Ellipsoid((0.0, 0.0150, 0.0), (0.0105, 0.0185, 0.0100), blend=0.016),  # infundibulum
    Ellipsoid((0.002, 0.034, 0.001), (0.0052, 0.011, 0.0052), (8.0, 0.0, -20.0), 0.008),  # neck
    Ellipsoid((0.0085, 0.0425, 0.003), (0.0034, 0.009, 0.0034), (10.0, 0.0, -65.0), 0.004),  # cystic duct
)


def gallbladder(
    volume: float = VOLUME, edge: float = EDGE, seed: int | None = None, wall: float | None = None
) -> TriangleMesh:
    """A closed gall bladder that takes up `volume` [m³], with triangles of about `edge` [m].

    With a `wall` [m] it is hollow: a second surface, facing inward, bounds the bile. Without a seed it is always the
    same one; each seed gives another individual.
    """
    if not (math.isfinite(volume) and VOLUMES[0] <= volume <= VOLUMES[1]):
        raise InputError(
            f"volume = {volume:g} m³ is not a gall bladder's.", f"Allowed are {VOLUMES[0]:g} to {VOLUMES[1]:g} m³."
        )
    if wall is not None and not (math.isfinite(wall) and 0.0 < wall <= THICKEST_WALL):
        raise InputError(f"wall = {wall:g} m is not possible.", f"It must be above 0 and at most {THICKEST_WALL:g} m.")
    body = Body(PARTS)
    if seed is not None:
        body = body.varied(np.random.default_rng(seed), shift=0.0006, stretch=0.05)
    scale = (volume / VOLUME) ** (1.0 / 3.0)
    low, high = body.bounds
    high[2] += BEND * max(low[1] ** 2, high[1] ** 2)

    def outside(points: FloatArray) -> FloatArray:
        return body.value(_straightened(points))

    outer = polygonise(outside, low, high, edge / scale, "gall bladder")
    whole = of_volume(outer, volume)
    if wall is None:
        return whole
    depth = wall * (outer.volume / volume) ** (1.0 / 3.0)
    inner = polygonise(lambda points: outside(points) + depth, low, high, edge / scale, "gall bladder")
    factor = wall / depth
    vertices = np.concatenate([whole.vertices, factor * inner.vertices])
    triangles = np.concatenate([whole.triangles, len(whole.vertices) + inner.triangles[:, ::-1]])
    return TriangleMesh(vertices, triangles, "gall bladder")


def _straightened(points: FloatArray) -> FloatArray:
    """Where points of the bent pear lie on the straight one."""
    return points - np.stack([np.zeros(len(points)), np.zeros(len(points)), BEND * points[:, 1] ** 2], axis=1)
