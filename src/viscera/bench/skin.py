"""The skin: bringing all texel maps up to a deformed surface, and one frame of heat on it.

The surface is a ring of a liver's area with texture coordinates by rule, one chart cut open both ways, so that seams
are crossed everywhere and no atlas has to be made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from viscera.bench.registry import Row, benchmark, median_ms, timed
from viscera.device import Device
from viscera.geometry import TriangleMesh
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.heat.conduction import make_heat, step_heat
from viscera.heat.network import rebuild_network
from viscera.skin import make_skin, rebuild_skin

NAME = "skin"

FRAME = 0.016
"""[s]"""

REBUILD_GOAL = 10_000.0
"""Rebuilds per second of a 512² skin on a large GPU (0.1 ms)."""


@benchmark(NAME, title="Skin: texel maps after deformation, heat")
def run(device: Device, quick: bool) -> Iterator[Row]:
    mesh = unrolled_ring()
    for side in (256, 512) if quick else (256, 512, 1024, 2048, 4096):
        skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(256)), side, device=device)
        repeats = max(5, 40 * 256 // side)
        goal = REBUILD_GOAL if side == 512 and device.is_cuda else None
        program = device.record(lambda stage, skin=skin: rebuild_skin(stage, skin), work=skin.count)
        ms = median_ms(program.run, device, repeats)
        extra = {"covered": skin.count, "ns_per_texel": 1e6 * ms / skin.count}
        yield timed(NAME, "maps", side * side, device, ms, goal=goal, extra=extra)
        heat = make_heat(skin, dt=FRAME)
        net = heat.network
        program = device.record(lambda stage, skin=skin, net=net: rebuild_network(stage, skin, net), work=skin.count)
        yield timed(NAME, "conductances", side * side, device, median_ms(program.run, device, repeats), extra=extra)
        work = skin.count * heat.stages
        program = device.record(lambda stage, heat=heat: step_heat(stage, heat), work=work)
        extra = {"stages": heat.stages, "links": len(skin.links.part)}
        yield timed(NAME, "heat, 16 ms", side * side, device, median_ms(program.run, device, repeats), extra=extra)


def unrolled_ring(segments: int = 200, sides: int = 50) -> TriangleMesh:
    """A ring of 0.06 m and 0.02 m radius whose texture is one rectangle, 90 % of the unit square."""
    i, j = (g.ravel() for g in np.meshgrid(np.arange(segments + 1), np.arange(sides + 1), indexing="ij"))
    # Whole turns are taken off, so that both sides of a seam are at exactly one place.
    around, across = 2.0 * math.pi * (i % segments) / segments, 2.0 * math.pi * (j % sides) / sides
    reach = 0.06 + 0.02 * np.cos(across)
    vertices = np.stack([reach * np.cos(around), reach * np.sin(around), 0.02 * np.sin(across)], axis=1)
    uv = 0.05 + 0.9 * np.stack([i / segments, j / sides], axis=1)
    low = (np.arange(segments)[:, None] * (sides + 1) + np.arange(sides)).ravel()
    a, b, c, d = low, low + sides + 1, low + sides + 2, low + 1
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return TriangleMesh(vertices, triangles, "ring", uv.astype(np.float32))
