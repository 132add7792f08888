"""Surfaces from particles: the mesh on the screen, marching cubes, and the pictures that splats are shaded from.

The particles are a ball of water on a lattice with a little disorder, seen so that it fills most of a 640 × 480 picture
whatever their number: more particles are smaller ones. `least_bytes` is what must be read and written once; the passes
are bound by splatting and by their number of launches, not by memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import warp as wp

from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.device import Device
from viscera.imaging.lens import Lens
from viscera.imaging.marching import MarchingParams, extract, fill_field, make_marching
from viscera.imaging.screen_mesh import ScreenMeshParams, build_screen_mesh, make_screen_mesh
from viscera.imaging.splats import SplatParams, draw_splats, make_splats
from viscera.view import Camera

NAME = "surfaces"
SIZES = (3_000, 10_000, 100_000, 1_000_000)
"""Particles; 3 000 is Grahn's river (Figure 8.3)."""
QUICK = (3_000,)
BALL = 0.05
"""Radius of the water [m]."""
WIDTH, HEIGHT = 640, 480
"""[pixel]"""
SPACINGS = (4.0, 2.0)
"""Of the screen mesh's nodes [pixel]."""
FRAMES_PER_SECOND = 60.0
"""Goal: a surface for every picture. Splats on cpu are for saved pictures: the page makes its own with WebGL."""
PARTICLE_BYTES = 12
DISORDER = 0.1
"""Of the lattice, as a share of its spacing."""


def headline(device: Device) -> Row:
    return pick(_sizes(device, QUICK[:1], quick=True), "screen mesh, 4 pixels")


@benchmark(NAME, title="Surfaces from particles: screen mesh, marching cubes, splats", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    yield from _sizes(device, QUICK if quick else SIZES, quick)


def _sizes(device: Device, sizes: tuple[int, ...], quick: bool) -> Iterator[Row]:
    lens = Lens(Camera((0.0, 0.0, 0.2), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 32.0), WIDTH, HEIGHT)
    for size in sizes:
        points, spacing = water_ball(size)
        position = wp.array(points, dtype=wp.vec3, device=device.warp)
        count = wp.array([len(points)], dtype=wp.int32, device=device.warp)
        repeats = 5 if quick or size > 100_000 else 20
        goal = FRAMES_PER_SECOND if size <= 10_000 else None
        yield from _screen_mesh(device, lens, position, count, spacing, repeats, goal)
        yield from _splats(device, lens, position, count, spacing, repeats, goal if device.is_cuda else None)
        yield from _marching(device, position, count, spacing, repeats)


def water_ball(size: int) -> tuple[np.ndarray, float]:
    """About `size` particles in a ball, and their spacing [m]."""
    spacing = BALL * (4.0 / 3.0 * math.pi / size) ** (1.0 / 3.0)
    side = np.arange(-BALL, BALL + spacing, spacing)
    points = np.stack(np.meshgrid(side, side, side, indexing="ij"), axis=-1).reshape(-1, 3)
    points = points[np.linalg.norm(points, axis=1) < BALL]
    points += np.random.default_rng(0).normal(scale=DISORDER * spacing, size=points.shape)
    return points.astype(np.float32), spacing


def _screen_mesh(
    device: Device, lens: Lens, position: wp.array, count: wp.array, spacing: float, repeats: int, goal: float | None
) -> Iterator[Row]:
    for pixels in SPACINGS:
        mesh = make_screen_mesh(ScreenMeshParams(0.75 * spacing, pixels), lens, len(position), device)
        program = device.record(lambda stage, mesh=mesh: build_screen_mesh(stage, mesh, position, count))
        ms = median_ms(program.run, device, repeats)
        device.synchronize()
        vertices, triangles = (int(value) for value in mesh.size.host)
        extra = {"vertices": vertices, "triangles": triangles, "least_bytes": len(position) * PARTICLE_BYTES}
        yield timed(NAME, f"screen mesh, {pixels:g} pixels", len(position), device, ms, goal=goal, extra=extra)


def _splats(
    device: Device, lens: Lens, position: wp.array, count: wp.array, spacing: float, repeats: int, goal: float | None
) -> Iterator[Row]:
    for case, rounds in (("splats, depth and thickness", 0), ("splats, smoothed", 3)):
        params = SplatParams(0.75 * spacing, spacing**3, rounds=rounds)
        splats = make_splats(params, lens, len(position), device)
        program = device.record(lambda stage, splats=splats: draw_splats(stage, splats, position, count))
        ms = median_ms(program.run, device, repeats)
        # Read and write depth and thickness once, and the particles.
        least = len(position) * PARTICLE_BYTES + 2 * 8 * WIDTH * HEIGHT
        yield timed(NAME, case, len(position), device, ms, goal=goal, extra={"least_bytes": least})


def _marching(device: Device, position: wp.array, count: wp.array, spacing: float, repeats: int) -> Iterator[Row]:
    params = MarchingParams(0.75 * spacing, 2.0 * spacing, spacing)
    low, high = (-1.1 * BALL,) * 3, (1.1 * BALL,) * 3
    marching = make_marching(params, low, high, len(position), device, count=count)
    program = device.record(lambda stage: fill_field(stage, marching, position))
    nodes = math.prod(marching.shape)
    ms = median_ms(program.run, device, repeats)
    least = len(position) * PARTICLE_BYTES + 4 * nodes
    yield timed(NAME, "marching cubes, field", len(position), device, ms, extra={"nodes": nodes, "least_bytes": least})
    ms = median_ms(lambda: extract(marching), device, max(3, repeats // 3))
    triangles = len(extract(marching)[2]) // 3
    yield timed(NAME, "marching cubes, mesh", len(position), device, ms, extra={"nodes": nodes, "triangles": triangles})
