"""The pad of liver (96 × 72 × 28 mm, or the user's own closed mesh) on which cautery and bleeding are trained."""

from __future__ import annotations

from functools import cache

from viscera.heat.conduction import LIVER_PERFUSION, STILL_AIR, HeatParams
from viscera.scenarios import Setting
from viscera.scenarios._organ import lay_down
from viscera.scenarios._tissue import TISSUE
from viscera.skin import make_skin
from viscera.tissue.burning import with_burn_headroom
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import LIVER
from viscera.tissue.params import LatticeParams
from viscera.units import KILOPASCAL, MILLI
from viscera.view import ADVANCED, Parameter
from viscera.world.organ import Body, Organ, fill, make_organ, on_the_table

MASSES = 3_000
"""About as many; 4.1 mm apart in the pad."""
POISSON = 0.35
"""Lower than tissue's: burnt tissue is stiff, and takes its substeps."""
TEXELS = 512
"""Along a side of the skin; a texel is about 0.25 mm on the pad."""
HOME_HEIGHT = 0.04
"""Of waiting instruments above the surface [m]."""
ANCHORED = 0.15
"""Share of the height, from below, that holds fast to the table."""

HEATING = 2
"""Heat is stepped in every second frame, burns in the others, so that each fits into 16 ms of one core."""
LIVING_LIVER = HeatParams(perfusion=LIVER_PERFUSION, air_transfer=STILL_AIR)
"""Blood flows through it; the gas in the closed abdomen is as warm as the body."""

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


def liver_pad(setting: Setting) -> Organ:
    """Liver that lies on the table and holds fast to it, with a skin."""
    masses = setting.count(MASSES)
    body = _pad(masses) if setting.mesh is None else fill(lay_down(setting.mesh), masses)
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
    skin = make_skin(body.mesh, width=setting.texels(TEXELS), device=setting.device)
    return make_organ("pad", "liver", body, tissue, skin)


def above(body: Body) -> tuple[float, float, float]:
    """Where instruments wait: over the middle [m]."""
    return (0.0, 0.0, float(body.positions[:, 2].max()) + HOME_HEIGHT)


@cache
def _pad(masses: int) -> Body:
    from viscera.anatomy import pad

    return fill(on_the_table(pad()), masses)
