"""Anchors that move: what a beating heart or a breathing diaphragm does to the tissue that hangs on it."""

from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import store3

wp.set_module_options({"enable_backward": False})


@wp.kernel
def drive_anchors(
    first: int,
    # params
    slots: int,
    share: float,
    places: wp.array(dtype=wp.int32),
    direction: wp.array(dtype=wp.vec3),
    # in
    drive: wp.array(dtype=wp.float32),
    # out
    position_out: wp.array(dtype=wp.float32),
    other_out: wp.array(dtype=wp.float32),
):
    """Anchor n is displaced by direction[n] times the drive, which goes from drive[0] to drive[1] over a tick; `share`
    of the tick has passed. Both buffers get it: anchors are not written by the step."""
    n = first + wp.tid()
    value = drive[0] + share * (drive[1] - drive[0])
    store3(position_out, slots, places[n], value * direction[n])
    store3(other_out, slots, places[n], value * direction[n])
