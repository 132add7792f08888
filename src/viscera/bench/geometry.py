"""Preparing a body: how long it takes to check a surface, fill it with masses, and ask it for distances.

The surface is a dented ring: curved both ways, without the symmetry that makes many points equally near. Voxels and
embedding are made on the host whatever the device is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import warp as wp

from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.device import Device
from viscera.geometry import (
    TriangleMesh,
    build_query,
    distance_field,
    embed,
    embed_surface,
    self_intersections,
    spacing_for_count,
    torus,
    voxelise,
)
from viscera.geometry.queries import find_closest

NAME = "geometry"


def headline(device: Device) -> Row:
    return pick(_closest(_ring(374, 93), device, (10_000,), repeats=1), "closest point")


@benchmark(NAME, title="Surfaces: checking, voxels, distances", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    repeats = 3 if quick else 7
    # 200 × 50 quads are 20 000 triangles, about a liver; 374 × 93 are 69 564, about a colon.
    fine = _ring(374, 93)
    for mesh in (_ring(200, 50), fine):

        def check(mesh: TriangleMesh = mesh) -> None:
            self_intersections(mesh, device=device)

        yield timed(NAME, "self-intersections", len(mesh.triangles), device, median_ms(check, device, repeats, 1))
    yield from _voxels(fine, device, (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000), repeats)
    yield from _closest(fine, device, (10_000,) if quick else (10_000, 100_000), repeats)
    yield from _fields(fine, device, (48,) if quick else (48, 96), 1 if quick else 3)
    yield from _embedding(fine, device, 5_600, 10 * repeats)


def _ring(segments: int, sides: int) -> TriangleMesh:
    even = torus(0.06, 0.02, segments, sides)
    dents = 1.0 + 0.04 * np.sin(even.vertices @ np.array([[90.0, 20.0], [35.0, 110.0], [140.0, 60.0]])).sum(axis=1)
    return TriangleMesh(even.vertices * dents[:, None], even.triangles, "ring")


def _voxels(mesh: TriangleMesh, device: Device, counts: tuple[int, ...], repeats: int) -> Iterator[Row]:
    for count in counts:
        spacing = spacing_for_count(mesh, count)
        made = len(voxelise(mesh, spacing))
        ms = median_ms(lambda spacing=spacing: voxelise(mesh, spacing), device, repeats, 1)
        yield timed(NAME, "voxelise (host)", made, device, ms, extra={"triangles": len(mesh.triangles)})


def _closest(mesh: TriangleMesh, device: Device, counts: tuple[int, ...], repeats: int) -> Iterator[Row]:
    query = build_query(mesh, device)
    for count in counts:
        spots = mesh.extent * np.random.default_rng(0).uniform(-0.6, 0.6, (count, 3))
        points = wp.array(spots, dtype=wp.vec3, device=device.warp)
        closest = wp.zeros(count, dtype=wp.vec3, device=device.warp)
        distance = wp.zeros(count, dtype=wp.float32, device=device.warp)
        face = wp.zeros(count, dtype=wp.int32, device=device.warp)
        arguments = [query.id, points, closest, distance, face]
        program = device.record(
            lambda stage, count=count, arguments=arguments: stage.launch(find_closest, count, arguments), work=count
        )
        ms = median_ms(program.run, device, repeats, 1)
        yield timed(NAME, "closest point", count, device, ms, extra={"ns_per_point": 1e6 * ms / count})


def _fields(mesh: TriangleMesh, device: Device, sides: tuple[int, ...], repeats: int) -> Iterator[Row]:
    for side in sides:
        spacing = mesh.extent / side
        nodes = int(np.prod(distance_field(mesh, spacing, device=device).dims))
        ms = median_ms(lambda spacing=spacing: distance_field(mesh, spacing, device=device), device, repeats, 0)
        yield timed(NAME, "distance field", nodes, device, ms, extra={"us_per_node": 1e3 * ms / nodes})


def _embedding(mesh: TriangleMesh, device: Device, count: int, repeats: int) -> Iterator[Row]:
    voxels = voxelise(mesh, spacing_for_count(mesh, count))
    made = embed(mesh.vertices, voxels.nodes, voxels.origin, voxels.spacing)
    vertices = len(mesh.vertices)
    ms = median_ms(lambda: embed(mesh.vertices, voxels.nodes, voxels.origin, voxels.spacing), device, 3, 1)
    yield timed(NAME, "embedding weights (host)", vertices, device, ms)
    rest = wp.array(mesh.vertices, dtype=wp.vec3, device=device.warp)
    indices = wp.array(made.indices, dtype=wp.int32, device=device.warp)
    weights = wp.array(made.weights, dtype=wp.float32, device=device.warp)
    displacement = [wp.zeros(len(voxels), dtype=wp.float32, device=device.warp) for _ in range(3)]
    out = wp.zeros(vertices, dtype=wp.vec3, device=device.warp)
    arguments = [rest, indices, weights, *displacement, out]
    program = device.record(lambda stage: stage.launch(embed_surface, vertices, arguments), work=vertices)
    yield timed(NAME, "surface follows lattice", vertices, device, median_ms(program.run, device, repeats))
