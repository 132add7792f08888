"""Cautery: heat and burns on a skin, per step of one frame, and what follows a deformed organ.

`document` is Kvick §4.2: "around 400 FPS" for the whole program, drawn in immediate mode, on a GTX 460; the size of the
texture is not given (its buffers were 256² to 1024², best at 512²). It stands beside the whole frame: maps and
conductances of the moved organ, a hook and forceps under current, heat, burns, their areas and the picture, all but
the drawing itself.

Steps are measured with everything hot: each texel of the skin is warm and burning. With one hot spot, as under an
electrode, conduction costs the same and burning next to nothing. The organ is the procedural liver, whose charts cover
45 % of the texture; the ring's cover 81 %, with texels up to four times longer than wide, so it needs the most stages.

`floor_ratio` is over the time that the step's bytes take: per stage, what a texel of a tile reads and writes once
(temperature, three conductances, capacity, power, the stage before, the result) and, where it burns, its four maps;
at the rate that a large copy reaches here. A skin that fits a cache can beat it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from viscera.anatomy import liver
from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.bench.skin import unrolled_ring
from viscera.bench.tissue import copy_rate
from viscera.device import Device, Stage
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.geometry.parts import make_tool
from viscera.geometry.tools import bipolar_forceps, monopolar_hook
from viscera.heat.arrays import TILE
from viscera.heat.burn import Burn, make_burn, measure_burn, reset_burn, step_burn
from viscera.heat.conduction import Heat, make_heat, step_heat
from viscera.heat.electrode import Electrode, ElectrodeParams, make_electrode, step_electrodes
from viscera.heat.network import rebuild_network
from viscera.heat.stages import make_texture, step_texture
from viscera.skin import Skin, make_skin, rebuild_skin

NAME = "cautery"

DOCUMENT = 400.0
"""[frames/s]"""

GOALS = {(512, False): 200.0, (2048, True): 8_000.0}
"""Steps per second by texels along a side, on two cores and on a large GPU."""

FIRST_STAGE_BYTES = 4 * 7
STAGE_BYTES = 4 * 8
"""Per texel of a tile: temperature, left, bottom, shear, capacity, power, result; later stages read the one before."""
BURN_BYTES = 4 * (1 + 2 + 4 + 4)
"""Per burning texel: its number, its temperature read and written, four maps read and written."""

FORCEPS_REACH = 1.5e-3
"""As in the scenario [m]."""
UPRIGHT = (0.0, 0.0, 0.0, 1.0)

WARM = 30.0
HOT = 62.0
"""Above the body's, between which texels are set before a step is measured: burning, not boiling [K]."""


def headline(device: Device) -> Row:
    organ = liver()
    skin = make_skin(organ, unique_atlas(organ), 512, device=device)
    return pick(surface_rows("liver", skin, copy_rate(device)), "heat and burn, all hot")


@benchmark(NAME, title="Cautery: heat and burns, maps that follow", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    bandwidth = copy_rate(device)
    ring, organ = unrolled_ring(), liver()
    surfaces = {"liver": (organ, unique_atlas(organ)), "ring": (ring, unique_atlas(ring, AtlasSettings(256)))}
    for side in (256, 512) if quick else (256, 512, 1024, 2048, 4096):
        for name, (mesh, atlas) in surfaces.items():
            if side < atlas.resolution:
                atlas = unique_atlas(mesh, AtlasSettings(side))
            yield from surface_rows(name, make_skin(mesh, atlas, side, device=device), bandwidth)


def surface_rows(name: str, skin: Skin, bandwidth: float) -> Iterator[Row]:
    device, side = skin.device, skin.width
    heat = make_heat(skin)
    burn = make_burn(heat)
    goal = GOALS.get((side, device.is_cuda))
    repeats = max(7, 40 * 256 // side)

    def row(case: str, build: Callable[[Stage], None], heated: Callable[[], None], moved: float, **columns: Any) -> Row:
        heated()
        program = device.record(build, work=skin.count * heat.stages)
        ms = median_ms(program.run, device, repeats)
        extra = {"covered": skin.count, "stages": heat.stages, "dt_s": heat.dt, "floor_MB": moved / 1e6}
        ratio = 1e-3 * ms * bandwidth / moved if moved else None
        return timed(NAME, f"{name}, {case}", side * side, device, ms, floor_ratio=ratio, extra=extra, **columns)

    def step(stage: Stage) -> None:
        step_heat(stage, heat)
        step_burn(stage, burn)

    def follow(stage: Stage) -> None:
        rebuild_skin(stage, skin)
        rebuild_network(stage, skin, heat.network)

    conducted = float(heat.network.tiles * TILE * (FIRST_STAGE_BYTES + (heat.stages - 1) * STAGE_BYTES))
    burnt = conducted + BURN_BYTES * skin.count
    everywhere, at_a_spot = (lambda: warm(heat, burn, 1.0)), (lambda: warm(heat, burn, 1e-3))
    yield row("heat", lambda stage: step_heat(stage, heat), everywhere, conducted)
    yield row("heat and burn, all hot", step, everywhere, burnt, goal=goal)
    yield row("heat and burn, one spot", step, at_a_spot, conducted + 8 * skin.count)
    yield row("maps and conductances", follow, everywhere, 0.0)
    electrodes = under_current(burn)
    picture = make_texture(burn)
    yield row("electrodes", lambda stage: step_electrodes(stage, electrodes), everywhere, 0.0)

    def frame(stage: Stage) -> None:
        follow(stage)
        step_electrodes(stage, electrodes)
        step(stage)
        measure_burn(stage, burn)
        step_texture(stage, picture)

    yield row("whole frame, all hot", frame, everywhere, 0.0, document=DOCUMENT)
    yield row("whole frame, one spot", frame, at_a_spot, 0.0, document=DOCUMENT)


def under_current(burn: Burn) -> list[Electrode]:
    """A hook and closed forceps that touch the organ at its top, pedals down."""
    skin = burn.heat.skin
    vertices = skin.vertices.numpy()
    top = vertices[int(vertices[:, 2].argmax())]
    made: list[Electrode] = []
    for name, shapes, params in (
        ("hook", monopolar_hook(), ElectrodeParams()),
        ("forceps", bipolar_forceps(), ElectrodeParams(reach=FORCEPS_REACH, bipolar=True)),
    ):
        tool = make_tool(name, shapes, skin.device)
        tool.place(top, UPRIGHT, grip=1.0, jump=True)
        made.append(make_electrode(tool, burn, params))
        made[-1].press(True)
    return made


def warm(heat: Heat, burn: Burn, part: float) -> None:
    """Heals the skin and warms the first `part` of its texels; the rest is at body temperature."""
    reset_burn(burn)
    texels = heat.skin.texels.numpy()
    chosen = texels[: max(1, int(part * len(texels)))]
    values = np.zeros(heat.skin.width * heat.skin.height, dtype=np.float32)
    values[chosen] = np.random.default_rng(0).uniform(WARM, HOT, len(chosen))
    heat.temperature.assign(values)
