"""Where points that hang on masses are, how fast, and how hard their masses are to move: the sums of `samples.py` in C
beside plain loops. Contact, needles and threads call the former inside their own kernels; here both stand alone."""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.tissue.samples import SHARE_UNITS, hung_at, hung_moving, yielding

wp.set_module_options({"enable_backward": False})


@wp.struct
class Hung:
    """Points in rows of so many corners, and masses."""

    corners: int
    slots: int
    tau: float
    part: float
    stray: float
    places: wp.array(dtype=wp.int32)
    weights: wp.array(dtype=wp.float32)
    start: wp.array(dtype=wp.vec3)
    position: wp.array(dtype=wp.float32)
    velocity: wp.array(dtype=wp.float32)
    share: wp.array(dtype=wp.int64)
    inverse_mass: wp.array(dtype=wp.float32)
    keep: wp.array(dtype=wp.float32)


@wp.kernel
def hang_in_c(
    first: int,
    # in
    hung: Hung,
    # out
    place_out: wp.array[wp.vec3],
    moving_out: wp.array2d[wp.float32],
    yields_out: wp.array[wp.vec4],
):
    s = first + wp.tid()
    start = hung.start[s]
    place_out[s] = hung_at(hung.corners, hung.weights, hung.places, s, hung.slots, hung.position, start)
    found = hung_moving(
        hung.corners, hung.weights, hung.places, s, hung.slots, hung.tau, hung.position, hung.velocity, start
    )
    for k in range(6):
        moving_out[s, k] = found[k]
    yields_out[s] = yielding(
        hung.corners, hung.weights, hung.places, s, hung.part, hung.stray, hung.share, hung.inverse_mass, hung.keep
    )


@wp.kernel
def hang_plainly(
    first: int,
    # in
    hung: Hung,
    # out
    place_out: wp.array[wp.vec3],
    moving_out: wp.array2d[wp.float32],
    yields_out: wp.array[wp.vec4],
):
    s = first + wp.tid()
    place = wp.vec3(hung.start[s])
    moved = wp.vec3(hung.start[s])
    speed = wp.vec3()
    yields = wp.vec4()
    for c in range(hung.corners):
        w = hung.weights[s * hung.corners + c]
        if w != 0.0:
            i = hung.places[s * hung.corners + c]
            p = wp.vec3(hung.position[i], hung.position[i + hung.slots], hung.position[i + 2 * hung.slots])
            v = wp.vec3(hung.velocity[i], hung.velocity[i + hung.slots], hung.velocity[i + 2 * hung.slots])
            place += w * p
            moved += w * (p - hung.tau * v)
            speed += w * v
            size = wp.abs(w)
            inverse = hung.inverse_mass[i]
            taken = float(hung.share[i]) / SHARE_UNITS + (1.0 - hung.part) * size
            free = wp.where(inverse > 0.0, size, 0.0)
            counts = wp.where(inverse > 0.0, inverse, hung.stray)
            yields += wp.vec4(size * taken * counts, free, size, size * hung.keep[i])
    place_out[s] = place
    for k in range(3):
        moving_out[s, k] = moved[k]
        moving_out[s, 3 + k] = speed[k]
    yields_out[s] = yields


def record_hanging(stage: Stage, native: bool, hung: Any, place: Any, moving: Any, yields: Any) -> None:
    stage.launch(hang_in_c if native else hang_plainly, place.size, [hung, place, moving, yields])
