"""The grid's sort in C, for one core, beside the plain one for many threads. Both give the same order."""

from __future__ import annotations

import numpy as np
import warp as wp

from viscera.device import Device
from viscera.native import Trial, Twin, register
from viscera.native.twins import Results
from viscera.neighbors import ordering
from viscera.neighbors.grid import build, make_grid


def _sort(device: Device, feature: str, native: bool, size: int) -> Trial:
    dimension = 2 if feature == "2D" else 3
    rng = np.random.default_rng(9)
    x = rng.random((size, dimension)).astype(np.float32)
    if feature == "a crowd":
        x[: size // 2] = 0.5
    if feature == "not finite":
        x[::7] = np.nan
    radius = 2.0 / size ** (1.0 / dimension)
    corners = (0.0,) * dimension, (1.0,) * dimension
    params, state = make_grid(
        size, *corners, radius, dimension, device, order="serial" if native else "parallel"
    )  # fmt: skip
    at = wp.array(x, dtype=wp.vec2 if dimension == 2 else wp.vec3, device=device.warp)

    def results() -> Results:
        return {name: getattr(state, name).numpy() for name in ("cell_start", "original", "slot")}

    return Trial(lambda stage: build(stage, params, state, at), results, size)


register(Twin(
    "neighbors.order", (ordering.draw_tickets, ordering.take_places, ordering.order_cells),
    {"cpu": (ordering.sort_in_order,)}, ("3D", "2D", "a crowd", "not finite"),
    0.0,  # whole numbers
    _sort, small=3_000, large=100_000,
))  # fmt: skip
