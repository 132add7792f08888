"""Walls as a sampled signed distance: one look-up, whatever the number of triangles.

Nodes hold exact distances φ (Grahn §4.1.3, and his chapter 9: the way to a 40 000-triangle colon); between them φ is trilinear
and the contact normal is its gradient. A distance changes by at most the way walked, so the interpolation at x is wrong by at
most Σ wᵢ |x − xᵢ| ≤ (√3/2) h for nodes xᵢ of spacing h: what is free for certain is φ − (√3/2) h. The walls are the level sets
of the interpolation, which cuts corners; hence contacts differ from the triangles' by up to that, and by h²/(8R) on smooth walls.
"""

# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportIndexIssue=false, reportCallIssue=false, reportAttributeAccessIssue=false

from __future__ import annotations

import warp as wp

from viscera.geometry.distance import FieldGrid, sample_field
from viscera.water.boundary.nearest import Nearest, nothing_near

wp.set_module_options({"enable_backward": False})

HALF_DIAGONAL = wp.constant(0.8660254)
"""Of a cell, over its side."""


@wp.func
def nearest_in_field(grid: FieldGrid, side: float, reach: float, point: wp.vec3) -> Nearest:
    """`side` is -1 for a vessel (the fluid is inside) and 1 for an obstacle (it is outside)."""
    found = nothing_near(reach)
    sampled = sample_field(grid, point)
    distance = side * sampled[3]
    slope = side * wp.vec3(sampled[0], sampled[1], sampled[2])
    steep = wp.length(slope)
    if distance < reach and steep > 1.0e-6:
        found.distance = distance
        found.normal = slope / steep
    found.free = wp.min(distance, reach) - HALF_DIAGONAL * grid.spacing
    return found
