"""Light through what fills space: smoke, blood in saline. The same sums as the page's (web/src/look/volume_shaders.ts).

Along a ray light is lost by Beer and Lambert, and what is scattered towards the eye is added:

    T(s) = exp(−∫₀ˢ σ ds'),     L = T(S) L_behind + ∫₀ˢ T σ a (k_lamp E_lamp T + k_room E_room) ds,

with σ the density in the box [1/m] and a the share that is scattered. The lamp sits beside the lens, so its light comes
through the same smoke as it goes back through. A ray is cut into steps of about one cell, in each of which σ is
constant and the integral exact; it ends at the nearest solid. Rays go through every second pixel of every second row; a
pixel between them takes the mean of those around that ended at its own depth, so that borders stay sharp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.imaging.lens import Lens, LensView
from viscera.render.light import LAMP, Surroundings, step, to_byte, vignette
from viscera.render.raster import ray_of
from viscera.view import AnyArray, Scene, Volume

wp.set_module_options({"enable_backward": False})

LAMP_LIGHT = wp.constant(0.30)
ROOM_LIGHT = wp.constant(0.075)
"""Shares of the lamp and of the room that a white cloud gives back; tuned for appearance, as the page has them."""
DARKEST = wp.constant(0.01)
"""Less light than this is none."""
SOFT = wp.constant(0.12)
"""Share of the box along which it fades towards its sides, which nobody should see."""
FARTHEST = wp.constant(60.0)
"""[m]"""
LEAST_STEPS, MOST_STEPS = wp.constant(4), wp.constant(96)
BORDER = wp.constant(1000.0)
"""How little a ray counts that ended at another depth, per share of that depth."""


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


@wp.struct
class VolumeView:
    """A volume as kernels read it."""

    first: int
    """Of its texels."""
    cells: wp.vec3i
    low: wp.vec3
    """Lowest corner of the box [m]."""
    size: wp.vec3
    """Its sides [m]."""
    filled_low: wp.vec3
    """What of it is not empty, 0 to 1 along each side."""
    filled_high: wp.vec3
    densest: float
    """[1/m]"""
    extinction: wp.vec3
    albedo: wp.vec3
    dye_extinction: wp.vec3
    dye_albedo: wp.vec3


@wp.func
def density_at(volume: VolumeView, texels: wp.array(dtype=wp.uint8), place: wp.vec3) -> float:
    """0 to 1, between the middles of the texels around linearly, beyond the outermost as theirs."""
    nx = volume.cells[0]
    ny = volume.cells[1]
    nz = volume.cells[2]
    x = wp.clamp(place[0] * float(nx) - 0.5, 0.0, float(nx - 1))
    y = wp.clamp(place[1] * float(ny) - 0.5, 0.0, float(ny - 1))
    z = wp.clamp(place[2] * float(nz) - 0.5, 0.0, float(nz - 1))
    i = wp.min(int(x), wp.max(nx - 2, 0))
    j = wp.min(int(y), wp.max(ny - 2, 0))
    k = wp.min(int(z), wp.max(nz - 2, 0))
    right = 4 * wp.min(1, nx - 1)
    above = 4 * nx * wp.min(1, ny - 1)
    beyond = 4 * nx * ny * wp.min(1, nz - 1)
    fx = x - float(i)
    fy = y - float(j)
    c = volume.first + 4 * ((k * ny + j) * nx + i)
    near = wp.lerp(
        wp.lerp(float(texels[c]), float(texels[c + right]), fx),
        wp.lerp(float(texels[c + above]), float(texels[c + above + right]), fx),
        fy,
    )
    c = c + beyond
    far = wp.lerp(
        wp.lerp(float(texels[c]), float(texels[c + right]), fx),
        wp.lerp(float(texels[c + above]), float(texels[c + above + right]), fx),
        fy,
    )
    return wp.lerp(near, far, z - float(k)) / 255.0


@wp.func
def dye_at(volume: VolumeView, texels: wp.array(dtype=wp.uint8), place: wp.vec3) -> float:
    """How much of it is blood, 0 to 1, as the nearest texel has it."""
    i = wp.clamp(int(place[0] * float(volume.cells[0])), 0, volume.cells[0] - 1)
    j = wp.clamp(int(place[1] * float(volume.cells[1])), 0, volume.cells[1] - 1)
    k = wp.clamp(int(place[2] * float(volume.cells[2])), 0, volume.cells[2] - 1)
    at = volume.first + 4 * ((k * volume.cells[1] + j) * volume.cells[0] + i) + 1
    return float(texels[at]) / 255.0


@wp.func
def soft_at(place: wp.vec3) -> float:
    x = step(0.0, SOFT, wp.min(place[0], 1.0 - place[0]))
    return x * step(0.0, SOFT, wp.min(place[1], 1.0 - place[1]))


@wp.func
def solid_depth(room: Surroundings, ray: wp.vec3, depth: float) -> float:
    """Of what is seen, the cloth included."""
    found = wp.min(depth, FARTHEST)
    falls = wp.dot(room.up, ray)
    if room.cloth == 1 and falls < 0.0:
        cloth = wp.dot(room.up, room.floor) / falls
        if cloth > 0.0:
            found = wp.min(found, cloth)
    return found


@wp.func
def over_sides(low: float, high: float, eye: float, way: float) -> wp.vec2:
    """Where a ray is between two planes across one axis, as depths."""
    found = wp.vec2(-1.0e9, 1.0e9)
    if wp.abs(way) > 1.0e-9:
        one = (low - eye) / way
        other = (high - eye) / way
        found = wp.vec2(wp.min(one, other), wp.max(one, other))
    elif eye < low or eye > high:
        found = wp.vec2(1.0e9, -1.0e9)
    return found


@wp.kernel
def follow_rays(
    first: int,
    # params
    turn: int,
    # in
    eye: wp.array(dtype=LensView),
    around: wp.array(dtype=Surroundings),
    count: wp.array(dtype=wp.int32),
    volumes: wp.array(dtype=VolumeView),
    texels: wp.array(dtype=wp.uint8),
    depth: wp.array(dtype=wp.float32),
    # out
    scattered_out: wp.array(dtype=wp.vec4),
    kept_out: wp.array(dtype=wp.vec3),
):
    """Through volume number `turn`: light that is scattered, with the depth where the ray ends, and the share of light
    that comes through."""
    if turn >= count[0]:
        return
    e = first + wp.tid()
    lens = eye[0]
    width = wp.int32(lens.width)
    half = (width + 1) // 2
    row = 2 * (e // half)
    column = 2 * (e % half)
    room = around[0]
    volume = volumes[turn]
    ray = ray_of(lens, column, row)
    solid = solid_depth(room, ray, depth[row * width + column])
    start = wp.cw_div(lens.eye - volume.low, volume.size)
    way = wp.cw_div(ray[0] * lens.right + ray[1] * lens.up - lens.back, volume.size)
    x = over_sides(volume.filled_low[0], volume.filled_high[0], start[0], way[0])
    y = over_sides(volume.filled_low[1], volume.filled_high[1], start[1], way[1])
    z = over_sides(volume.filled_low[2], volume.filled_high[2], start[2], way[2])
    begin = wp.max(wp.max(wp.max(x[0], y[0]), z[0]), 0.0)
    end = wp.min(wp.min(wp.min(x[1], y[1]), z[1]), solid)
    scattered = wp.vec3(0.0, 0.0, 0.0)
    kept = wp.vec3(1.0, 1.0, 1.0)
    if end > begin:
        cell = wp.min(volume.size[0] / float(volume.cells[0]), volume.size[1] / float(volume.cells[1]))
        cell = wp.min(cell, volume.size[2] / float(volume.cells[2]))
        long = (end - begin) * wp.length(ray)
        steps = wp.clamp(int(long / cell) + 1, LEAST_STEPS, MOST_STEPS)
        metres = long / float(steps)
        lit = vignette(lens, column, row)
        for k in range(steps):
            at = begin + (float(k) + 0.5) / float(steps) * (end - begin)
            place = start + at * way
            dense = density_at(volume, texels, place) * soft_at(place)
            if dense > 0.0:
                dye = dye_at(volume, texels, place)
                loss = (1.0 - dye) * volume.extinction + dye * volume.dye_extinction
                albedo = (1.0 - dye) * volume.albedo + dye * volume.dye_albedo
                thick = -volume.densest * dense * metres
                through = wp.vec3(wp.exp(thick * loss[0]), wp.exp(thick * loss[1]), wp.exp(thick * loss[2]))
                point = at * ray
                to_lamp = LAMP - point
                lamp = LAMP_LIGHT * room.power / wp.dot(to_lamp, to_lamp)
                dim = ROOM_LIGHT * room.power / wp.dot(point, point)
                # ∫ T² σ ds over a step is its ∫ T σ ds times the mean of T at both ends.
                light = 0.5 * lamp * wp.cw_mul(kept, wp.vec3(1.0, 1.0, 1.0) + through) + wp.vec3(dim, dim, dim)
                lost = wp.cw_mul(kept, wp.vec3(1.0, 1.0, 1.0) - through)
                scattered += lit * wp.cw_mul(wp.cw_mul(lost, albedo), light)
                kept = wp.cw_mul(kept, through)
                if wp.max(kept[0], wp.max(kept[1], kept[2])) < DARKEST:
                    break
    scattered_out[e] = wp.vec4(scattered[0], scattered[1], scattered[2], solid)
    kept_out[e] = kept


@wp.func
def from_screen(byte: wp.uint8) -> float:
    """The film curve of `to_screen` backwards."""
    y = wp.min(float(byte) / 255.0, 0.985)
    a = 6.2 * (1.0 - y)
    b = 0.5 - 1.7 * y
    c = -0.06 * y
    return (-b + wp.sqrt(wp.max(b * b - 4.0 * a * c, 0.0))) / (2.0 * a) + 0.004


@wp.kernel
def lay_over(
    first: int,
    # params
    turn: int,
    # in
    eye: wp.array(dtype=LensView),
    around: wp.array(dtype=Surroundings),
    count: wp.array(dtype=wp.int32),
    depth: wp.array(dtype=wp.float32),
    scattered: wp.array(dtype=wp.vec4),
    kept: wp.array(dtype=wp.vec3),
    # out
    colour_out: wp.array(dtype=wp.vec3ub),
):
    """Over the picture: the rays around a pixel, of which those that ended at its own depth count."""
    if turn >= count[0]:
        return
    i = first + wp.tid()
    lens = eye[0]
    width = wp.int32(lens.width)
    row = i // width
    column = i - row * width
    half = (width + 1) // 2
    rows = (wp.int32(lens.height) + 1) // 2
    own = solid_depth(around[0], ray_of(lens, column, row), depth[i])
    added = wp.vec3(0.0, 0.0, 0.0)
    through = wp.vec3(0.0, 0.0, 0.0)
    total = float(0.0)
    for n in range(4):
        r = wp.min(row // 2 + (row % 2) * (n // 2), rows - 1)
        c = wp.min(column // 2 + (column % 2) * (n % 2), half - 1)
        light = scattered[r * half + c]
        weight = 1.0 / (1.0 + BORDER * wp.abs(light[3] - own) / own)
        added += weight * wp.vec3(light[0], light[1], light[2])
        through += weight * kept[r * half + c]
        total += weight
    added = added / total
    through = through / total
    if added[0] + added[1] + added[2] < 1.0e-5 and wp.min(through[0], wp.min(through[1], through[2])) > 0.9995:
        return
    under = colour_out[i]
    colour_out[i] = wp.vec3ub(
        to_byte(from_screen(under[0]) * through[0] + added[0]),
        to_byte(from_screen(under[1]) * through[1] + added[1]),
        to_byte(from_screen(under[2]) * through[2] + added[2]),
    )


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
        self._rays = -(-width // 2) * -(-height // 2)
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
        for turn in range(len(self._volumes)):
            seen = [turn, eye, around, self._count.array]
            through = [self._views.array, self._texels.array, depth, self._scattered, self._kept]
            stage.launch(follow_rays, self._rays, [*seen, *through])
            stage.launch(lay_over, depth.shape[0], [*seen, depth, self._scattered, self._kept, colour])
