"""The skin: bringing all texel maps up to a deformed surface, and one frame of heat on it.

The surface is a ring of a liver's area with texture coordinates by rule, one chart cut open both ways, so that seams
are crossed everywhere and no atlas has to be made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.device import Device, Stage
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.geometry.primitives import unrolled_ring
from viscera.heat.conduction import make_heat, step_heat
from viscera.heat.network import rebuild_network
from viscera.skin import Skin, make_skin, rebuild_skin

NAME = "skin"

REBUILD_GOAL = 10_000.0
"""Rebuilds per second of a 512² skin on a large GPU (0.1 ms)."""


def headline(device: Device) -> Row:
    return pick(_sides(device, (512,)), "maps")


@benchmark(
    NAME,
    title="Skin: texel maps after deformation, conductances, heat; in C and as plain kernels",
    headline=headline,
)
def run(device: Device, quick: bool) -> Iterator[Row]:
    yield from _sides(device, (256, 512) if quick else (256, 512, 1024, 2048))


def _sides(device: Device, sides: tuple[int, ...]) -> Iterator[Row]:
    mesh = unrolled_ring()
    for side in sides:
        skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(256)), side, device=device)
        # On cuda maps and conductances are plain kernels in any case.
        for native in (True, False):
            yield from _rows(skin, native, rebuilds=native or not device.is_cuda)


def _rows(skin: Skin, native: bool, rebuilds: bool) -> Iterator[Row]:
    device, side = skin.device, skin.width
    heat = make_heat(skin, native=native)
    repeats = max(5, 40 * 256 // side)
    goal = REBUILD_GOAL if side == 512 and device.is_cuda else None
    kind = "" if native else ", plain"

    def row(case: str, build: Callable[[Stage], None], goal: float | None = None) -> Row:
        ms = median_ms(device.record(build, work=skin.count).run, device, repeats)
        extra = {"covered": skin.count, "ns_per_texel": 1e6 * ms / skin.count, "stages": heat.stages}
        return timed(NAME, case + kind, side * side, device, ms, goal=goal, extra=extra)

    if rebuilds:
        yield row("maps", lambda stage: rebuild_skin(stage, skin, native), goal)
        yield row("conductances", lambda stage: rebuild_network(stage, skin, heat.network, native))
    yield row("heat, 16 ms", lambda stage: step_heat(stage, heat))
