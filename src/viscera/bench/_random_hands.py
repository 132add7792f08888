"""A policy that acts at random, on the device: for measuring how many worlds a machine steps."""

from __future__ import annotations

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.struct
class Wander:
    """Where hands may go: over the middle of an organ's upper side, pressed in."""

    middle: wp.vec3d
    """Of the upper side [m]."""
    aside: wp.float64
    """How far from it, along x and y [m]."""
    lowest: wp.float64
    highest: wp.float64
    """Of the tip, over the upper side [m]."""
    stride: wp.float64
    """Of an action, at most, along each axis [m]."""
    episode: int
    """Actions after which a world begins anew."""


@wp.kernel
def act_at_random(
    first: int,
    # params
    wander: Wander,
    seed: int,
    # out
    action_out: wp.array(dtype=wp.int32),
    mask_out: wp.array(dtype=wp.int32),
    hands_out: wp.array3d(dtype=wp.float64),
):
    """Another random action of each world; every so many actions it is to be reset, not all of them at once."""
    world = first + wp.tid()
    state = wp.rand_init(seed, action_out[world] * 65537 + world)
    for axis in range(3):
        step = wp.float64(2.0 * wp.randf(state) - 1.0) * wander.stride
        low = wander.middle[axis] - wander.aside
        high = wander.middle[axis] + wander.aside
        if axis == 2:
            low = wander.middle[2] + wander.lowest
            high = wander.middle[2] + wander.highest
        hands_out[world, 0, axis] = wp.min(wp.max(hands_out[world, 0, axis] + step, low), high)
    hands_out[world, 0, 6] = wp.float64(1.0)
    action_out[world] = action_out[world] + 1
    mask_out[world] = 0
    if (action_out[world] + world) % wander.episode == 0:
        mask_out[world] = 1
