"""What fills space in a picture: smoke, blood in saline. How light goes through it is in rays.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.imaging.lens import Lens
from viscera.render.rays import APART, Filling, VolumeView, follow_rays, gather_corners, lay_over
from viscera.view import AnyArray, Scene, Volume


@dataclass(frozen=True)
class Medium:
    """Share of the densest that is lost, red, green, blue; and of that the share that is scattered, not swallowed."""

    extinction: tuple[float, float, float]
    albedo: tuple[float, float, float]


MEDIA = {
    "smoke": Medium((0.90, 0.95, 1.0), (0.66, 0.72, 0.80)),
    "saline": Medium((0.10, 0.06, 0.05), (0.05, 0.07, 0.08)),
}
BLOOD = Medium((0.16, 1.0, 1.0), (0.50, 0.020, 0.018))
"""Tuned for appearance, as the page has them (web/src/look/volumes.ts)."""


def from_screen(byte: NDArray[np.int64]) -> NDArray[np.float32]:
    """The film curve of `to_screen` backwards."""
    y = np.minimum(byte / 255.0, 0.985)
    a, b, c = 6.2 * (1.0 - y), 0.5 - 1.7 * y, -0.06 * y
    return ((-b + np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))) / (2.0 * a) + 0.004).astype(np.float32)


class Volumes:
    """Those of one scene. Worlds write their texels straight into `arrays`."""

    def __init__(self, scene: Scene, device: Device, arrays: dict[str, AnyArray], width: int, height: int) -> None:
        self._volumes = scene.volumes
        sizes = [4 * one.width * one.height * one.depth for one in scene.volumes]
        self._texels = device.port(max(1, sum(sizes)), wp.uint8)
        self._firsts = [sum(sizes[:number]) for number in range(len(sizes))]
        for one, first, size in zip(scene.volumes, self._firsts, sizes, strict=True):
            shape = (one.depth * one.height, one.width, 4)
            arrays[one.name] = self._texels.host[first : first + size].reshape(shape)
        self._views = device.port(max(1, len(scene.volumes)), VolumeView)
        self._count = device.port(1, wp.int32)
        self._most_texels = max((size // 4 for size in sizes), default=0)
        self._corners = wp.zeros(max(1, sum(sizes) // 4), dtype=wp.vec4, device=device.warp)
        self._light_of = wp.array(from_screen(np.arange(256)), dtype=wp.float32, device=device.warp)
        apart = int(APART)
        self._rays = ((width + apart - 2) // apart + 1) * ((height + apart - 2) // apart + 1)
        self._scattered = wp.zeros(self._rays if scene.volumes else 1, dtype=wp.vec4, device=device.warp)
        self._kept = wp.zeros(self._rays if scene.volumes else 1, dtype=wp.vec3, device=device.warp)

    def put(self, lens: Lens) -> None:
        """Those that are not empty, the farthest first."""
        eye = np.asarray(lens.camera.position)
        seen: list[tuple[float, int, tuple[NDArray[np.float64], NDArray[np.float64]]]] = []
        for number, one in enumerate(self._volumes):
            filled = self._filled(number)
            if filled is not None:
                middle = 0.5 * (np.asarray(one.box[0]) + np.asarray(one.box[1]))
                seen.append((-float(np.linalg.norm(middle - eye)), number, filled))
        for place, (_, number, filled) in enumerate(sorted(seen, key=lambda found: found[:2])):
            self._put_one(self._views.host[place], number, filled)
        self._count.host[0] = len(seen)

    def _put_one(self, row: Any, number: int, filled: tuple[NDArray[np.float64], NDArray[np.float64]]) -> None:
        one = self._volumes[number]
        low, high = np.minimum(*one.box), np.maximum(*one.box)
        medium = MEDIA[one.look]
        row["first"], row["cells"], row["densest"] = (
            self._firsts[number],
            (one.width, one.height, one.depth),
            one.densest,
        )
        row["low"], row["size"] = low, high - low
        row["filled_low"], row["filled_high"] = filled
        row["extinction"], row["albedo"] = medium.extinction, medium.albedo
        row["dye_extinction"], row["dye_albedo"] = BLOOD.extinction, BLOOD.albedo

    def _filled(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """What of a volume is not empty, 0 to 1 along each side; None when all is. Between two texels is something when
        one of them is not empty."""
        one: Volume = self._volumes[number]
        size = one.width * one.height * one.depth
        first = self._firsts[number]
        dense = self._texels.host[first : first + 4 * size : 4].reshape(one.depth, one.height, one.width) != 0
        low, high = np.zeros(3), np.ones(3)
        for axis, count in enumerate((one.width, one.height, one.depth)):
            found = np.flatnonzero(dense.any(axis=tuple({0, 1, 2} - {2 - axis})))
            if len(found) == 0:
                return None
            low[axis] = max((found[0] - 0.5) / count, 0.0)
            high[axis] = min((found[-1] + 1.5) / count, 1.0)
        return low, high

    def record(self, stage: Stage, eye: Any, around: Any, depth: Any, colour: Any) -> None:
        """After the solids were drawn."""
        if not self._volumes:
            return
        for port in (self._texels, self._views, self._count):
            stage.upload(port)
        filling: Any = Filling()
        filling.count, filling.volume = self._count.array, self._views.array
        filling.texels, filling.corners = self._texels.array, self._corners
        rays = [self._scattered, self._kept]
        for turn in range(len(self._volumes)):
            stage.launch(gather_corners, self._most_texels, [turn, filling, self._corners])
            seen = [turn, eye, around, filling]
            stage.launch(follow_rays, self._rays, [*seen, depth, *rays])
            stage.launch(lay_over, self._rays, [*seen, self._light_of, depth, *rays, colour])
