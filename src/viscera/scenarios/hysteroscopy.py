"""Hysteroscopy: bleeding under saline. Rinse until you see, find the vessels, seal them, and the view clears.

A piece of the womb's wall (53 × 40 × 15 mm, or the user's own closed mesh) in a cavity full of saline that a pump keeps
flowing. Two vessels bleed into it; their blood clouds the fluid, sinks, and is stirred by whatever moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from viscera import heat
from viscera.blood.wounds import vessel_mmhg
from viscera.geometry.atlas import Atlas, unique_atlas
from viscera.heat import burns
from viscera.inputs import Input, ToolInput
from viscera.instruments import Rinses, Sucks, kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._organ import Top, lay_down, seen_from_above
from viscera.scenarios._pad import ANCHORED, POISSON, STIFFNESS, VISCOSITY, above
from viscera.scenarios._tissue import tissue_parameters
from viscera.skin import make_skin
from viscera.tissue.burning import with_burn_headroom
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import LIVER
from viscera.tissue.params import LatticeParams
from viscera.units import KILOPASCAL, MILLI
from viscera.view import Goal, Level, Surface
from viscera.world import Body, Contents, Organ, World, looking_down, trocar_beside
from viscera.world.organ import fill, make_organ, on_the_table
from viscera.world.systems.burns import burning
from viscera.world.systems.heat import heating
from viscera.world.systems.saline import PRESSURE, PUMP, bathing
from viscera.world.systems.stiffening import stiffening
from viscera.world.systems.wounds import Wound

SCALE = 0.55
"""Of the pad on which others are trained: a cavity of five centimetres."""
MASSES = 2_000
TEXELS = 256
"""Along a side of the skin; a texel is about 0.3 mm."""
POWER = 25.0
"""Of the forceps [W]."""
SALINE_COOLS = 400.0
"""Heat that slowly moving water takes from a surface [W/(m²·K)]; forced convection, some 100 to 1000."""
RINSE, SUCTION = 4.0e-6, 6.0e-6
"""[m³/s]; 240 and 360 mL/min."""

BOWL = (0.085, 0.075)
"""Radius and height of the cavity around, as it is drawn [m]."""

ARTERY, VEIN = vessel_mmhg(75.0, 50.0, 0.4, 20.0), vessel_mmhg(45.0, 42.0, 1.0, 40.0)
"""Of the endometrium: a spiral artery, and a vein that the pressure of the saline nearly closes."""
ARTERY_OPENING, VEIN_OPENING = 0.13e-3, 0.18e-3
"""Radii [m]."""

FORCEPS, IRRIGATOR, SUCKER = range(3)
"""What keys 1 to 3 choose."""

INSTRUCTIONS = """\
Under the saline two vessels bleed. Clear the view, find them, and seal them.
Move the pointer over the wall: the instrument follows its surface. Hold the left button to use it.
Key 1: bipolar forceps coagulate: hold them on a vessel until the tissue around it turns white.
Key 2: the irrigator's jet blows blood aside. Key 3: suction draws it away where its tip is.
Settings: more flow from the pump clears the cavity, more pressure holds the bleeding back.
Watch the measures: view, open vessels, blood lost, inflow and outflow."""

GOALS = (Goal("open_vessels", most=0.0), Goal("view", least=85.0), Goal("blood_lost", most=3.0))
"""In %, mL."""
LEVELS = (
    Level("Standard", GOALS, {"pump": PUMP.default, "saline_pressure": PRESSURE.default}),
    Level("Timed", (*GOALS, Goal("time", most=120.0)), {"pump": PUMP.default, "saline_pressure": PRESSURE.default}),
    Level(
        "Expert",
        (*GOALS, Goal("bleeding_time", most=60.0), Goal("time", most=120.0)),
        {"pump": 0.5 * PUMP.default, "saline_pressure": 0.6 * PRESSURE.default},
    ),
)
"""With less flow and less pressure it bleeds more and clears more slowly. Limits of time are our own choice."""


def build(setting: Setting) -> Contents:
    organ = _wall(setting)
    camera, bounds = looking_down([organ], (0.03, -0.52, 0.78))
    camera = replace(camera, field_of_view=55.0)
    instruments = [
        kit.forceps(POWER),
        _with(kit.irrigator(), Rinses(speed=0.25, rate=RINSE, outlet=0.0)),
        _with(kit.suction(), Sucks(rate=SUCTION)),
    ]
    tools = kit.hand_out(instruments, above(organ.body), LIVER.friction, trocar=trocar_beside(camera, right=0.6))
    warmth = heat.make(organ.need_skin(), heat.HeatParams(air_transfer=SALINE_COOLS))
    burn = burns.make(warmth)
    top = None if setting.mesh is None else seen_from_above(organ.body.mesh)
    vessels = open_vessels(organ.body, setting.seed, top)
    systems = [
        # Of the generator's settings only its power: the rest belongs to the drill of cautery.
        heating(organ, warmth, burn, tools, settings=("power",)),
        burning(organ, burn),
        stiffening(organ, burn),
        bathing(organ, vessels, tools, setting.detail),
    ]

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that lets it bleed for a second, then holds the forceps on each vessel."""
        if tick % 10 or tick < 1000:
            return []
        number = min((tick - 1000) // 2500, len(vessels) - 1)
        x, y, _ = vessels[number].point
        z = organ.height(x, y, None if top is None else top.vertices)
        lifted = (tick - 1000) % 2500 < 300 or tick > 1000 + 2500 * len(vessels)
        return [ToolInput(FORCEPS, (x, y, z + (0.01 if lifted else -0.0005)), grip=0.0 if lifted else 1.0)]

    return Contents(
        organs=[organ],
        tools=tools,
        systems=systems,
        parameters=tissue_parameters(organ.tissue, STIFFNESS, VISCOSITY),
        camera=camera,
        bounds=bounds,
        force_scale=0.1,
        levels=LEVELS,
        scenery=[] if setting.mesh is not None else [_cavity()],
        script=script,
    )


def _cavity() -> Surface:
    """What is seen of the rest of the cavity: a bowl that the wall lies in."""
    rings, around = 24, 72
    radius = np.linspace(0.0, BOWL[0], rings + 1)[1:]
    angle = 2.0 * np.pi * np.arange(around) / around
    r, a = (grid.ravel() for grid in np.meshgrid(radius, angle, indexing="ij"))
    z = BOWL[1] * (r / BOWL[0]) ** 2 + 0.0015 * np.sin(5.0 * a) * r / BOWL[0] - 0.001
    points = np.concatenate([[(0.0, 0.0, -0.001)], np.stack([r * np.cos(a), 0.85 * r * np.sin(a), z], axis=1)])
    inner = 1 + np.arange((rings - 1) * around)
    beside = 1 + (inner - 1) // around * around + inner % around
    triangles = np.concatenate([
        np.stack([np.zeros(around), 1 + np.arange(around), 1 + (np.arange(around) + 1) % around], axis=1),
        np.stack([inner, inner + around, beside + around], axis=1),
        np.stack([inner, beside + around, beside], axis=1),
    ]).astype(np.int32)  # fmt: skip
    return Surface("cavity", "tissue", triangles, "cavity", len(points), points.astype(np.float32), backdrop=True)


def _with(instrument: kit.Instrument, effect: Rinses | Sucks) -> kit.Instrument:
    """The same instrument with this effect instead of its own of the kind."""
    return replace(instrument, effects=tuple(effect if type(e) is type(effect) else e for e in instrument.effects))


def open_vessels(body: Body, seed: int, top: Top | None = None) -> list[Wound]:
    """An artery and a vein, where the seed puts them on the upper side, apart."""
    rng = np.random.default_rng(seed)
    low, high = body.mesh.bounds
    if top is None:
        first = low[:2] + rng.uniform((0.25, 0.3), (0.42, 0.7)) * (high - low)[:2]
        second = low[:2] + rng.uniform((0.58, 0.3), (0.75, 0.7)) * (high - low)[:2]
    else:
        first = top.places[rng.integers(len(top.places))]
        second = top.nearest(first, 0.25 * float(top.mesh.size[:2].max()))
    kinds = ((first, ARTERY, ARTERY_OPENING), (second, VEIN, VEIN_OPENING))
    return [Wound(_on_top(body, place, top), vessel, opening) for place, vessel, opening in kinds]


def _on_top(body: Body, place: np.ndarray, top: Top | None) -> tuple[float, float, float]:
    """The middle of the upper triangle nearest to this place of the table [m]."""
    if top is not None:
        return top.on_surface(place)
    centres = body.mesh.corners.mean(axis=1)
    upper = np.flatnonzero(body.mesh.face_vectors[:, 2] > 0.0)
    x, y, z = centres[upper[np.argmin(np.linalg.norm(centres[upper, :2] - place, axis=1))]].tolist()
    return x, y, z


def _wall(setting: Setting) -> Organ:
    """Tissue that holds fast below, with a skin."""
    masses = setting.count(MASSES)
    atlas = None
    if setting.mesh is None:
        body, atlas = _small_pad(masses)
    else:
        body = fill(lay_down(setting.mesh), masses)
    height = body.positions[:, 2]
    low, high = float(height.min()), float(height.max())
    params = LatticeParams(
        nodes=body.nodes,
        spacing=body.spacing,
        origin=body.origin,
        anchored=height <= low + ANCHORED * (high - low),
        material=LIVER,
        stiffest=STIFFNESS.maximum * KILOPASCAL,
        viscous_time=VISCOSITY.default * MILLI,
        longest_viscous_time=VISCOSITY.maximum * MILLI,
        poisson=POISSON,
    )
    tissue = make_lattice(setting.device, with_burn_headroom(params))
    skin = make_skin(body.mesh, atlas, width=max(setting.texels(TEXELS), TEXELS), device=setting.device)
    return make_organ("wall", "tissue", body, tissue, skin)


@cache
def _small_pad(masses: int) -> tuple[Body, Atlas]:
    """The pad made smaller; the atlas of the large one fits."""
    from viscera.anatomy import pad

    large = pad()
    small = replace(large, vertices=SCALE * large.vertices)
    return fill(on_the_table(small), masses), unique_atlas(large)


SCENARIO = Scenario(
    name="hysteroscopy",
    title="Hysteroscopy",
    summary="Bleeding under saline: rinse, find the vessels, seal them; the view clears.",
    instructions=INSTRUCTIONS,
    build=build,
)
