"""Splats: per pixel, the depth, the smoothed normal and the thickness of a liquid, to be shaded later (deferred).

Every particle is drawn as the ball it is. With the ray t·d through the middle of a pixel, d·axis = 1, and the ball's
centre c seen from the eye,

    q = c − (c·d/d·d) d,      chord = 2 √(r² − |q|²),      depth = c·d/d·d − ½ chord/|d|,

the visibility pass keeps the least depth. Thickness is the sum of the chords times the share of the ball that is liquid
(the particle's volume over the ball's): balls overlap, and so their thickness adds up to the liquid's volume.

Depth is then smoothed so that the balls melt into one surface: a Gaussian along x and along y in turns, as wide in the
world at every distance, that takes only depths within a narrow range of the pixel's own (N. Truong, C. Yuksel, PACMCGIT
1(1), 2018, doi:10.1145/3203201). Samples farther off than `range`, to either side, belong to another surface and are
left out together with their opposite (there, farther ones are clamped, which bends rims away). Normals are the cross
product of the differences of neighbouring points, on each axis on the side where depth changes less.

Follows Grahn §6.2.2 (visibility, attribute and shading pass; Botsch et al. there). Differs from the source: attributes
come from the smoothed depth, not from a blend of overlapping discs, so particles need neither normals nor a refinement
of surfels. Depth is kept as ordered integers and thickness as a sum of integers: the same bits in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.imaging.lens import FAR, Lens, LensView, depth_key, key_depth, launch_on_rows, make_lens_array, write_lens

wp.set_module_options({"enable_backward": False})

CHORD_STEPS = wp.constant(4096)
"""A radius in units of the integer thickness: 2¹⁸ whole balls before one another fit into 31 bits."""

EMPTY = wp.constant(-1.0)
"""Depth of a pixel without liquid, after smoothing."""

MOST_TAPS = 64
MOST_ROUNDS = 20


@dataclass(frozen=True)
class SplatParams:
    radius: float
    """Of a particle as drawn [m]; about 0.6 to 1 spacings of the particles, so that no holes show."""
    volume: float
    """Of the liquid that a particle stands for [m³]."""
    smoothing: float | None = None
    """Standard deviation of the depth filter [m]; None: one radius. 0 shows the balls."""
    rounds: int = 3
    """Of the filter, along x and along y each."""
    range: float | None = None
    """A larger step in depth is another surface [m]; None: three radii."""
    most_taps: int = 24
    """Half width of the filter at most [pixel]: near the eye it is cut short."""

    def __post_init__(self) -> None:
        for name in ("radius", "volume", "smoothing", "range"):
            value = getattr(self, name)
            if value is not None and not (
                math.isfinite(value) and (value > 0.0 or (name == "smoothing" and value == 0.0))
            ):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")
        if not 0 <= self.rounds <= MOST_ROUNDS:
            raise InputError(f"rounds = {self.rounds} is not possible.", f"It must be 0 to {MOST_ROUNDS}.")
        if not 1 <= self.most_taps <= MOST_TAPS:
            raise InputError(f"most_taps = {self.most_taps} is not possible.", f"It must be 1 to {MOST_TAPS}.")


@dataclass(eq=False)
class Splats:
    """Made by `make_splats`. Pixels are numbered along x first, the first row at the bottom."""

    params: SplatParams
    lens: Lens
    device: Device
    capacity: int
    eye: Any
    """One `LensView`."""
    key: Any
    """Least depth per pixel, as an ordered integer."""
    chords: Any
    """Sum of chords per pixel [radius / CHORD_STEPS], int32."""
    depth: tuple[Any, Any]
    """Smoothed distance along the camera's axis [m], float32, `EMPTY` where there is nothing; the first one is the
    result."""
    normal: Any
    """Outward, in the world, vec3."""

    @property
    def thickness_unit(self) -> float:
        """Metres of liquid per unit of `chords`."""
        ball = 4.0 / 3.0 * math.pi * self.params.radius**3
        return self.params.radius / int(CHORD_STEPS) * self.params.volume / ball


@wp.kernel
def clear_pixels(
    first: int,
    # out
    key_out: wp.array(dtype=wp.int32),
    chords_out: wp.array(dtype=wp.int32),
):
    i = first + wp.tid()
    key_out[i] = FAR
    chords_out[i] = 0


@wp.func
def extent(side: float, z: float, r: float) -> wp.vec2:
    """Slopes of the tangents through the eye to a ball whose centre is at `side` across and z ahead."""
    reach = r * wp.sqrt(wp.max(side * side + z * z - r * r, 0.0))
    below = z * z - r * r
    return wp.vec2((side * z - reach) / below, (side * z + reach) / below)


@wp.kernel
def splat_balls(
    row_first: int,
    row_end: int,
    # params
    radius: float,
    # in
    lens: wp.array(dtype=LensView),
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    # out
    key_out: wp.array(dtype=wp.int32),
    chords_out: wp.array(dtype=wp.int32),
):
    n = wp.tid()
    if n >= count[0]:
        return
    eye = lens[0]
    way = position[n] - eye.eye
    if not (wp.isfinite(way[0]) and wp.isfinite(way[1]) and wp.isfinite(way[2])):
        return
    c = wp.vec3(wp.dot(way, eye.right), wp.dot(way, eye.up), -wp.dot(way, eye.back))
    if c[2] < eye.near + radius:
        return
    width = wp.int32(eye.width)
    u = extent(c[0], c[2], radius) * eye.focal + wp.vec2(0.5 * eye.width - 0.5, 0.5 * eye.width - 0.5)
    v = extent(c[1], c[2], radius) * eye.focal + wp.vec2(0.5 * eye.height - 0.5, 0.5 * eye.height - 0.5)
    left = wp.int32(wp.ceil(wp.clamp(u[0], 0.0, eye.width)))
    right = wp.int32(wp.floor(wp.clamp(u[1], -1.0, eye.width - 1.0)))
    low = wp.max(wp.int32(wp.ceil(wp.clamp(v[0], 0.0, eye.height))), row_first)
    high = wp.min(wp.int32(wp.floor(wp.clamp(v[1], -1.0, eye.height - 1.0))), row_end - 1)
    for j in range(low, high + 1):
        for i in range(left, right + 1):
            x = (float(i) + 0.5 - 0.5 * eye.width) / eye.focal
            y = (float(j) + 0.5 - 0.5 * eye.height) / eye.focal
            d = wp.vec3(x, y, 1.0)
            along = wp.dot(c, d) / wp.dot(d, d)
            q = c - along * d
            rest = radius * radius - wp.dot(q, q)
            if rest > 0.0:
                half = wp.sqrt(rest)
                wp.atomic_min(key_out, j * width + i, depth_key(along - half / wp.length(d)))
                steps = wp.int32(2.0 * half / radius * float(CHORD_STEPS) + 0.5)
                wp.atomic_add(chords_out, j * width + i, steps)


@wp.kernel
def open_depth(
    first: int,
    # in
    key: wp.array(dtype=wp.int32),
    # out
    depth_out: wp.array(dtype=wp.float32),
):
    i = first + wp.tid()
    z = wp.float32(EMPTY)
    if key[i] != FAR:
        z = key_depth(key[i])
    depth_out[i] = z


@wp.func
def narrowed(z: float, own: float, limit: float) -> float:
    """A sample as the filter counts it; `EMPTY` if it belongs to another surface, or to none."""
    result = wp.float32(EMPTY)
    if z > 0.0 and wp.abs(z - own) <= limit:
        result = z
    return result


@wp.kernel
def smooth_depth(
    first: int,
    # params
    upright: int,
    smoothing: float,
    limit: float,
    most: int,
    # in
    lens: wp.array(dtype=LensView),
    depth: wp.array(dtype=wp.float32),
    # out
    depth_out: wp.array(dtype=wp.float32),
):
    n = first + wp.tid()
    own = depth[n]
    if own <= 0.0:
        depth_out[n] = EMPTY
        return
    width = wp.int32(lens[0].width)
    height = wp.int32(lens[0].height)
    i = n % width
    j = n // width
    at = i
    size = width
    stride = wp.int32(1)
    if upright == 1:
        at = j
        size = height
        stride = width
    sigma = lens[0].focal * smoothing / own
    half = wp.min(wp.int32(wp.ceil(2.0 * sigma)), most)
    # A filter that is cut short is a narrower one, not one with steep ends.
    sigma = wp.min(sigma, 0.5 * float(most))
    total = own
    weight = wp.float32(1.0)
    # e^(−k²/2σ²) by products: each is the one before times a ratio that itself falls by a constant factor.
    share = wp.float32(1.0)
    ratio = wp.exp(-0.5 / (sigma * sigma))
    factor = ratio * ratio
    for k in range(1, half + 1):
        share *= ratio
        ratio *= factor
        before = wp.float32(EMPTY)
        after = wp.float32(EMPTY)
        if at - k >= 0:
            before = narrowed(depth[n - k * stride], own, limit)
        if at + k < size:
            after = narrowed(depth[n + k * stride], own, limit)
        # Both or none: a filter that sees one side only would tilt the surface at every rim.
        if before > 0.0 and after > 0.0:
            total += share * (before + after)
            weight += 2.0 * share
    depth_out[n] = total / weight


@wp.func
def view_point(lens: LensView, i: int, j: int, z: float) -> wp.vec3:
    """The point at distance z along the axis, seen in pixel (i, j): right, up, back."""
    x = (float(i) + 0.5 - 0.5 * lens.width) / lens.focal
    y = (float(j) + 0.5 - 0.5 * lens.height) / lens.focal
    return wp.vec3(x * z, y * z, -z)


@wp.func
def difference(
    lens: LensView, depth: wp.array(dtype=wp.float32), i: int, j: int, di: int, dj: int, limit: float
) -> wp.vec3:
    """Between the points of neighbouring pixels, towards (di, dj), on the side where depth changes less."""
    width = wp.int32(lens.width)
    own = depth[j * width + i]
    here = view_point(lens, i, j, own)
    best = wp.float32(limit)
    result = view_point(lens, i + di, j + dj, own) - here
    for side in range(2):
        sign = 1 - 2 * side
        a = i + sign * di
        b = j + sign * dj
        if a >= 0 and a < width and b >= 0 and b < wp.int32(lens.height):
            z = depth[b * width + a]
            if z > 0.0 and wp.abs(z - own) < best:
                best = wp.abs(z - own)
                result = float(sign) * (view_point(lens, a, b, z) - here)
    return result


@wp.kernel
def find_normals(
    first: int,
    # params
    limit: float,
    # in
    lens: wp.array(dtype=LensView),
    depth: wp.array(dtype=wp.float32),
    # out
    normal_out: wp.array(dtype=wp.vec3),
):
    n = first + wp.tid()
    eye = lens[0]
    width = wp.int32(eye.width)
    normal = wp.vec3(0.0, 0.0, 0.0)
    if depth[n] > 0.0:
        i = n % width
        j = n // width
        across = difference(eye, depth, i, j, 1, 0, limit)
        up = difference(eye, depth, i, j, 0, 1, limit)
        seen = wp.normalize(wp.cross(across, up))
        normal = seen[0] * eye.right + seen[1] * eye.up + seen[2] * eye.back
    normal_out[n] = normal


def make_splats(params: SplatParams, lens: Lens, capacity: int, device: Device) -> Splats:
    """Room for up to `capacity` particles seen through `lens`."""
    if capacity < 1:
        raise InputError(f"capacity = {capacity} is not possible.", "There must be room for a particle.")
    pixels = lens.width * lens.height

    def zeros(dtype: Any) -> Any:
        return wp.zeros(pixels, dtype=dtype, device=device.warp)

    return Splats(
        params,
        lens,
        device,
        capacity,
        make_lens_array(lens, device),
        zeros(wp.int32),
        zeros(wp.int32),
        (zeros(wp.float32), zeros(wp.float32)),
        zeros(wp.vec3),
    )


def set_lens(splats: Splats, lens: Lens) -> None:
    """The eye moves while programs run; its picture keeps its size."""
    if (lens.width, lens.height) != (splats.lens.width, splats.lens.height):
        raise InputError(
            f"the lens is {lens.width} × {lens.height} pixels.",
            f"These splats were made for {splats.lens.width} × {splats.lens.height}; make others.",
        )
    splats.lens = lens
    write_lens(lens, splats.eye)


def draw_splats(stage: Stage, splats: Splats, position: Any, count: Any) -> None:
    """Depth, normals and thickness of the first `count[0]` particles at `position` (vec3 [m])."""
    s, p = splats, splats.params
    pixels = s.lens.width * s.lens.height
    limit = 3.0 * p.radius if p.range is None else p.range
    smoothing = p.radius if p.smoothing is None else p.smoothing
    stage.launch(clear_pixels, pixels, [s.key, s.chords])
    launch_on_rows(stage, splat_balls, s.capacity, s.lens.height, [p.radius, s.eye, count, position, s.key, s.chords])
    source, target = s.depth
    stage.launch(open_depth, pixels, [s.key, source])
    for _ in range(p.rounds if smoothing > 0.0 else 0):
        for upright in (0, 1):
            stage.launch(smooth_depth, pixels, [upright, smoothing, limit, p.most_taps, s.eye, source, target])
            source, target = target, source
    stage.launch(find_normals, pixels, [limit, s.eye, source, s.normal])


@dataclass(frozen=True)
class GBuffer:
    """What shading needs, as pictures; the first row at the bottom."""

    depth: NDArray[np.float32]
    """Distance along the camera's axis [m], (height, width); inf where there is nothing."""
    normal: NDArray[np.float32]
    """(height, width, 3)"""
    thickness: NDArray[np.float32]
    """Of the liquid along the ray [m]."""


def read_splats(splats: Splats) -> GBuffer:
    """The last drawing as NumPy. Waits for the device."""
    shape = (splats.lens.height, splats.lens.width)
    depth = splats.depth[0].numpy().reshape(shape)
    thickness = (splats.thickness_unit * splats.chords.numpy().astype(np.float64)).astype(np.float32)
    normal = splats.normal.numpy().reshape(*shape, 3)
    return GBuffer(np.where(depth > 0.0, depth, np.float32(np.inf)), normal, thickness.reshape(shape))
