"""Cautery: coagulate tissue along a drawn line, white and not black, with a monopolar hook or bipolar forceps.

A pad of liver (96 × 72 × 28 mm, or the user's own closed mesh) lies before the surgeon with a line in violet ink on it.
What is burnt is decided by how long and how hard: 30 W into a square millimetre boil it at once and char it within two
seconds, a hook that moves on in time leaves a white line.
"""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from viscera.device import Device
from viscera.geometry.tools import FOOT, bipolar_forceps, monopolar_hook
from viscera.heat.burn import set_burn
from viscera.heat.conduction import LIVER_PERFUSION, STILL_AIR, HeatParams, set_heat
from viscera.heat.electrode import ElectrodeParams
from viscera.heat.stages import DEFAULT_STAGES, BurnStage, check_stages
from viscera.inputs import Input, ToolInput
from viscera.instruments import Tool
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._instruments import forceps, hook
from viscera.scenarios._organ import (
    TISSUE,
    Body,
    fill,
    load_organ,
    looking_down,
    make_organ,
    on_the_table,
    tissue_parameters,
)
from viscera.skin import Skin, make_skin
from viscera.tissue.burning import with_burn_headroom
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import LIVER
from viscera.tissue.params import LatticeParams
from viscera.units import KILOPASCAL, MILLI, MILLIMETRE
from viscera.view import ADVANCED, Column, Goal, Parameter, Table
from viscera.world import Contents, LiveParameter, LiveTable, World
from viscera.world.cautery import BurnDrill, Cautery, Energised
from viscera.world.system import Rows

MASSES = 3_000
"""About as many; 4.1 mm apart in the pad."""
POISSON = 0.35
"""Lower than tissue's: burnt tissue is stiff, and takes its substeps."""
TEXELS = 512
"""Along a side of the skin; a texel is about 0.25 mm on the pad."""

LINE_HALF_WIDTH = 0.8e-3
"""Of the ink [m]."""
NEAR = 3.0e-3
"""Burns further than this from the line are astray [m]."""
LINE_SPAN = 0.36
"""The line goes so far to either side of the middle, as a share of the organ's length."""
HOME_HEIGHT = 0.04
"""Of waiting instruments above the surface [m]."""

LIVING_LIVER = HeatParams(perfusion=LIVER_PERFUSION, air_transfer=STILL_AIR)
"""Blood flows through it; the gas in the closed abdomen is as warm as the body."""

HOOK_ELECTRODE = ElectrodeParams(power=30.0)
FORCEPS_ELECTRODE = ElectrodeParams(power=30.0, reach=1.5e-3, bipolar=True)
"""What lies between the jaws is within 1.5 mm of both."""

STIFFNESS = Parameter(
    "stiffness",
    "Stiffness",
    "kPa",
    1.0,
    7.0,
    LIVER.young / KILOPASCAL,
    "Young's modulus of the tissue.",
    group=TISSUE,
)
VISCOSITY = Parameter(
    "viscosity",
    "Viscosity",
    "ms",
    0.1,
    0.2,
    0.2,
    "Damps fast ripples: stress that follows the rate of strain.",
    group=ADVANCED,
)
POWER = Parameter(
    "power", "Power", "W", 5.0, 80.0, 30.0, "Power of the generator while the pedal is down.", group="Generator"
)
BY_DISTANCE = Parameter(
    "by_distance",
    "Heats by",
    "",
    0.0,
    1.0,
    0.0,
    "Contact: tissue within reach of the metal is heated alike. Distance: the nearer the more.",
    choices=("Contact", "Distance"),
    group="Generator",
)
LAYER = Parameter(
    "layer",
    "Heated layer",
    "mm",
    0.3,
    3.0,
    1.0,
    "How deep tissue heats through at once; thicker heats more slowly.",
    group=TISSUE,
)
PERFUSION = Parameter(
    "perfusion",
    "Blood flow",
    "%",
    0.0,
    300.0,
    100.0,
    "Of the tissue, against normal: it carries heat away.",
    group=TISSUE,
)

INSTRUCTIONS = """\
Coagulate the violet line until it is white, without turning anything black.
Move the pointer over the tissue: the instrument follows its surface.
Hold the left button to press the pedal: current flows while you hold it. Keep moving.
Keys 1 and 2, or the buttons below, choose the hook or the forceps; the wheel goes deeper.
Watch the measures: line done, charred, astray. T shows the temperature.
Too black? Move faster or lower the generator's power. Held still, the hook chars within two seconds."""


GOALS = (Goal("line_done", least=90.0), Goal("charred", most=0.5), Goal("astray", most=10.0))
"""In %, mm², mm². A hand at 8 mm/s with 30 W reaches 92 %, none and none."""


def modules() -> list[types.ModuleType]:
    from viscera.geometry import distance
    from viscera.heat import burn, conduction, electrode, native, network, stages, sums
    from viscera.skin import maps
    from viscera.tissue import burning, surface, volume
    from viscera.tissue import native as lattice_native

    return [
        burning,
        burn,
        conduction,
        distance,
        electrode,
        lattice_native,
        maps,
        native,
        network,
        stages,
        sums,
        surface,
        volume,
    ]


def build(setting: Setting) -> Contents:
    body = liver_body(setting)
    tissue = make_tissue(setting.device, body)
    skin = make_skin(body.mesh, width=TEXELS, device=setting.device)
    organ = make_organ("pad", "liver", body, tissue, skin)
    top = float(body.positions[:, 2].max()) + HOME_HEIGHT
    homes = [(side * 0.02, 0.0, top) for side in (-1.0, 1.0)]
    tools = [
        Tool(0, hook(homes[0]), friction=LIVER.friction),
        Tool(1, forceps(homes[1]), friction=LIVER.friction),
    ]
    cautery = Cautery(
        organ,
        [Energised(0, monopolar_hook(), HOOK_ELECTRODE), Energised(1, bipolar_forceps(), FORCEPS_ELECTRODE)],
        LIVING_LIVER,
    )
    line, near = marked(skin, body, setting.seed)
    camera, bounds = looking_down(body, (0.05, -0.75, 0.95))
    return Contents(
        organs=[organ],
        tools=tools,
        parameters=[*_heat_parameters(cautery), *tissue_parameters(STIFFNESS, VISCOSITY)],
        camera=camera,
        bounds=bounds,
        systems=[cautery, BurnDrill(cautery, line, near)],
        goals=GOALS,
        # Only the page looks at it; the world keeps it, so that it is recorded and checked.
        tables=[LiveTable(STAGES, lambda world, rows: None, check_table)],
    )


def make_tissue(device: Device, body: Body) -> Tissue:
    """Liver that lies on the table and holds fast to it."""
    height = body.positions[:, 2]
    low, high = float(height.min()), float(height.max())
    params = LatticeParams(
        nodes=body.nodes,
        spacing=body.spacing,
        origin=body.origin,
        anchored=height <= low + 0.15 * (high - low),
        material=LIVER,
        stiffest=STIFFNESS.maximum * KILOPASCAL,
        longest_viscous_time=VISCOSITY.maximum * MILLI,
        poisson=POISSON,
    )
    return make_lattice(device, with_burn_headroom(params))


def _heat_parameters(cautery: Cautery) -> list[LiveParameter]:
    usual = cautery.heat.params

    def set_distance(world: World, value: float) -> None:
        for electrode in cautery.electrodes:
            electrode.set(replace(electrode.params, nearness="distance" if value >= 0.5 else "contact"))

    def change(**fields: float) -> None:
        set_heat(cautery.heat, replace(cautery.heat.params, **fields))
        set_burn(cautery.burn, cautery.burn.params)

    return [
        LiveParameter(POWER, lambda world, value: cautery.set_power(value)),
        LiveParameter(BY_DISTANCE, set_distance),
        LiveParameter(LAYER, lambda world, value: change(thickness=value * MILLIMETRE)),
        LiveParameter(PERFUSION, lambda world, value: change(perfusion=0.01 * value * usual.perfusion)),
    ]


def liver_body(setting: Setting | None) -> Body:
    """The pad, or the user's mesh."""
    if setting is None or setting.mesh is None:
        return _pad()
    return fill(on_the_table(load_organ(setting.mesh)), MASSES)


@cache
def _pad() -> Body:
    from viscera.anatomy import pad

    return fill(on_the_table(pad()), MASSES)


def line_points(body: Body, seed: int, count: int = 80) -> NDArray[np.float64]:
    """The line's way over the table, from left to right, shape (count, 2) [m]: a wave whose place the seed chooses."""
    rng = np.random.default_rng(seed)
    low, high = body.mesh.bounds
    size = high - low
    height, phase, level = rng.uniform(0.06, 0.12), rng.uniform(0.0, 2.0 * math.pi), rng.uniform(-0.12, 0.12)
    share = np.linspace(-LINE_SPAN, LINE_SPAN, count)
    x = 0.5 * (low[0] + high[0]) + share * size[0]
    y = 0.5 * (low[1] + high[1]) + (level + height * np.sin(2.0 * math.pi * share / LINE_SPAN + phase)) * size[1]
    return np.stack([x, y], axis=1)


def marked(skin: Skin, body: Body, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of every texel: whether it is on the line, and whether near it; on the upper side only."""
    points = line_points(body, seed)
    texels = skin.texels.numpy()
    position = skin.position.numpy()[texels]
    up = skin.faces_up()[texels]
    # The line goes from left to right, so what is far above or below it is no nearer than that to any of it.
    steepest = np.abs(np.diff(points[:, 1]) / np.diff(points[:, 0])).max()
    off = np.abs(position[:, 1] - np.interp(position[:, 0], points[:, 0], points[:, 1]))
    close = np.flatnonzero(up & (off < NEAR * (1.0 + steepest)))
    distance = np.full(len(texels), np.inf)
    for start, end in itertools.pairwise(points):
        way = end - start
        from_start = position[close, :2] - start
        along = np.clip(from_start @ way / (way @ way), 0.0, 1.0)
        distance[close] = np.minimum(distance[close], np.hypot(*(from_start - along[:, None] * way).T))
    found = []
    for reach in (LINE_HALF_WIDTH, NEAR):
        chosen = np.zeros(skin.width * skin.height, dtype=np.bool_)
        chosen[texels[up & (distance <= reach)]] = True
        found.append(chosen)
    return found[0], found[1]


def _colour(stage: BurnStage) -> float:
    """Linear RGB as one number, sRGB, 0 to 255 each."""
    linear = np.asarray(stage.colour)
    screen = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055)
    red, green, blue = np.rint(255.0 * screen).astype(int).tolist()
    return float(65536 * red + 256 * green + blue)


def check_table(rows: Rows) -> None:
    check_stages([
        BurnStage(level, f"row {number}", (0.0, 0.0, 0.0), cover, roughness, wetness)
        for number, (level, _, cover, roughness, wetness) in enumerate(rows)
    ])  # fmt: skip


STAGES = Table(
    "burn_stages",
    "Stages of a burn",
    "How tissue looks at each burn level: 0 is healthy, 1 coagulated, 2 charred; in between it is mixed.",
    (
        Column("level", "Level", "", "number", 0.0, 2.0, "Burn level from which on tissue looks like this row."),
        Column("colour", "Colour", "", "colour", 0.0, 16777215.0, "Of the burnt tissue."),
        Column("cover", "Cover", "", "number", 0.0, 1.0, "How much this colour hides the organ's own; 1 hides it all."),
        Column("roughness", "Matt", "", "number", 0.0, 1.0, "0 shines like a mirror, 1 is dull like soot."),
        Column("wetness", "Wet", "", "number", 0.0, 1.0, "How wet it gleams; less where water has boiled off."),
    ),
    tuple((s.level, _colour(s), s.cover, s.roughness, s.wetness) for s in check_stages(DEFAULT_STAGES)),
    row_names=tuple(s.name for s in DEFAULT_STAGES),
    fixed=((0, 0),),
)


SPEED = 0.008
"""Of the script's hand along the line [m/s]."""


def script(world: World, tick: int) -> Iterable[Input]:
    """A hand that takes the hook along the line at 8 mm/s with the pedal down, every 10 ms."""
    if tick % 10:
        return []
    body = liver_body(None)
    points = line_points(body, world.seed)
    lengths = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1)))
    way = min(SPEED * 0.001 * tick, float(lengths[-1]))
    # The foot of the hook, 4 mm along x, is taken along by its middle.
    x, y = (float(np.interp(way, lengths, column)) for column in points.T)
    x -= 0.5 * FOOT
    z = surface_height(np.asarray(world.organs[0].vertices.numpy(), dtype=np.float32), x, y)
    return [ToolInput(0, (x, y, z - 0.0006), grip=1.0 if way < lengths[-1] else 0.0)]


def surface_height(vertices: NDArray[np.float32], x: float, y: float) -> float:
    """Of the upper side over this place of the table: a plane through the nearest vertices [m]."""
    off = np.hypot(vertices[:, 0] - x, vertices[:, 1] - y) + 10.0 * (vertices[:, 2] < 0.5 * vertices[:, 2].max())
    near = vertices[np.argsort(off)[:6]].astype(np.float64)
    plane = np.stack([np.ones(len(near)), near[:, 0] - x, near[:, 1] - y], axis=1)
    return float(np.linalg.lstsq(plane, near[:, 2], rcond=None)[0][0])


SCENARIO = Scenario(
    name="cautery",
    title="Cautery",
    summary="Coagulate tissue along a drawn line with hook or forceps: white, not black.",
    instructions=INSTRUCTIONS,
    modules=modules,
    build=build,
    script=script,
)
