"""What every kind of wall answers: where it is nearest, how far that is, and how fast it moves there."""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.struct
class Nearest:
    """The wall as a point sees it."""

    distance: float
    """From the point to the wall [m]; negative on the wrong side of walls that know theirs. At most the reach asked
    for."""
    free: float
    """No wall is nearer than this, for certain [m]: the distance, less what a sampled wall may be wrong by."""
    solid: float
    """No triangle is nearer than this [m]. Triangles do not know on which side a particle belongs; others do."""
    solid_normal: wp.vec3
    solid_velocity: wp.vec3
    """Of the nearest triangle, where a shape is nearer or the particle is inside one."""
    normal: wp.vec3
    """From the wall to the point, unit length; zero where nothing is within reach."""
    face: int
    """Triangle; -1 where nothing is within reach or the wall has no triangles."""
    weights: wp.vec3
    """Barycentric coordinates of the nearest point in the triangle."""
    velocity: wp.vec3
    """Of the wall there [m/s]."""


@wp.func
def nothing_near(reach: float) -> Nearest:
    found = Nearest()
    found.distance = reach
    found.free = reach
    found.solid = reach
    found.solid_normal = wp.vec3(0.0, 0.0, 0.0)
    found.solid_velocity = wp.vec3(0.0, 0.0, 0.0)
    found.normal = wp.vec3(0.0, 0.0, 0.0)
    found.face = -1
    found.weights = wp.vec3(0.0, 0.0, 0.0)
    found.velocity = wp.vec3(0.0, 0.0, 0.0)
    return found
