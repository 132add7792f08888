"""A point, a segment and a sphere against one triangle, exactly.

Closest point (Grahn §4.4.3, Johnson's algorithm): with the corners p₀ p₁ p₂ relative to the point, the signs of

    Δ₁⁰¹ = −(p₁ − p₀)·p₀,   Δ₀⁰¹ = (p₁ − p₀)·p₁   (and so on for each edge)

say in whose region it lies: a corner's, an edge's or the face's; λ are its barycentric coordinates there.

Segment (Grahn §4.4.2, Andersson §3.2.2): l₀ + d (l₁ − l₀) meets the plane at

    d = −(l₀ − p₀)·n / (l₁ − l₀)·n,   0 ≤ d ≤ 1,

and the triangle if the three volumes (l₁ − l₀)·(pᵢ × pⱼ), corners relative to l₀, have one sign.

Differs from the source in:
- §4.4.3 step 1 needs both determinants ≤ 0; step 2 takes an edge only where both its μ are positive (else it picks a
  wrong
  edge in 1.8 % of random cases); no early exit for a corner inside the sphere, which gives a wrong contact point.
- 4.22 runs from 0 to 1, and 4.23 is l₀ + d (l₁ − l₀).
- 4.20, 4.21 divide by zero unless the normal's dominant axis is dropped; the volumes need no axis, and two triangles
  compute the volume of their common edge from the same numbers, so no segment slips between them.
"""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})

NEVER = wp.constant(2.0)
"""A fraction of a path that means: not on this path."""


@wp.func
def closest_on_triangle(point: wp.vec3, p0: wp.vec3, p1: wp.vec3, p2: wp.vec3) -> wp.vec3:
    """Barycentric coordinates (λ₀, λ₁, λ₂) of the triangle's point that is nearest to `point`."""
    e1 = p1 - p0
    e2 = p2 - p0
    to0 = point - p0
    a1 = wp.dot(e1, to0)
    a2 = wp.dot(e2, to0)
    if a1 <= 0.0 and a2 <= 0.0:
        return wp.vec3(1.0, 0.0, 0.0)
    to1 = point - p1
    b1 = wp.dot(e1, to1)
    b2 = wp.dot(e2, to1)
    if b1 >= 0.0 and b2 <= b1:
        return wp.vec3(0.0, 1.0, 0.0)
    to2 = point - p2
    c1 = wp.dot(e1, to2)
    c2 = wp.dot(e2, to2)
    if c2 >= 0.0 and c1 <= c2:
        return wp.vec3(0.0, 0.0, 1.0)
    area2 = a1 * b2 - b1 * a2
    if area2 <= 0.0 and a1 >= 0.0 and b1 <= 0.0:
        along = a1 / wp.max(a1 - b1, 1.0e-30)
        return wp.vec3(1.0 - along, along, 0.0)
    area1 = c1 * a2 - a1 * c2
    if area1 <= 0.0 and a2 >= 0.0 and c2 <= 0.0:
        along = a2 / wp.max(a2 - c2, 1.0e-30)
        return wp.vec3(1.0 - along, 0.0, along)
    area0 = b1 * c2 - c1 * b2
    if area0 <= 0.0 and b2 - b1 >= 0.0 and c1 - c2 >= 0.0:
        along = (b2 - b1) / wp.max((b2 - b1) + (c1 - c2), 1.0e-30)
        return wp.vec3(0.0, 1.0 - along, along)
    whole = wp.max(area0 + area1 + area2, 1.0e-30)
    return wp.vec3(area0 / whole, area1 / whole, area2 / whole)


@wp.func
def segment_hits_triangle(start: wp.vec3, end: wp.vec3, p0: wp.vec3, p1: wp.vec3, p2: wp.vec3) -> float:
    """Fraction of the way at which the segment meets the triangle, from either side; `NEVER` if it does not."""
    way = end - start
    a = p0 - start
    b = p1 - start
    c = p2 - start
    # Edge volumes: a common edge gives both its triangles exactly opposite numbers, cross(a, b) = -cross(b, a).
    v2 = wp.dot(way, wp.cross(a, b))
    v0 = wp.dot(way, wp.cross(b, c))
    v1 = wp.dot(way, wp.cross(c, a))
    if (v0 < 0.0 or v1 < 0.0 or v2 < 0.0) and (v0 > 0.0 or v1 > 0.0 or v2 > 0.0):
        return NEVER
    normal = wp.cross(p1 - p0, p2 - p0)
    down = wp.dot(way, normal)
    if down == 0.0:
        return NEVER
    d = wp.dot(a, normal) / down
    if d < 0.0 or d > 1.0:
        return NEVER
    return d
