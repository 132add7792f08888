"""What drives a wound: the pressure in a vessel, and how much blood it pushes through an opening.

Between the vessel's inside and the cavity the pressure falls by Δp. It is spent on friction along the vessel up to the
wound (Hagen–Poiseuille) and on the speed with which blood leaves through the hole (Bernoulli, with the discharge
coefficient of a sharp-edged hole):

    Δp = R Q + K Q²,    R = 8 μ L / (π r⁴),    K = ρ / (2 C² A²),    A = π a²,

    Q = 2 Δp / (R + √(R² + 4 K Δp)),    Q = 0 where Δp ≤ 0,

with r the vessel's radius, L the length that resists, a the opening's radius. L = 0 leaves the orifice law Q = C A
√(2 Δp/ρ); a wide opening leaves Poiseuille's Q = Δp/R. The form with the sum below the line loses no digits when
either part vanishes. Source: F. M. White, Fluid Mechanics, ch. 6 (laminar pipe flow; thin-plate orifice, C ≈ 0.61 at
high Reynolds number); both are steady laws, taken at each instant: a pulse of 1 s is long beside a/u, a millisecond.

Δp = p − p_outside. p beats between diastolic and systolic pressure with the pulse's height w in 0 … 1 (the heart's own
curve: `viscera.tissue.heartbeat.pulse`); p_outside is what the cavity is blown up to, so 12 mmHg of gas stop a vein of
8 mmHg.

The document has particles spawned by hand; none of this is in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import warp as wp

from viscera.blood.constants import BLOOD_DENSITY, BLOOD_VISCOSITY
from viscera.errors import InputError
from viscera.units import MILLIMETRE, MMHG

wp.set_module_options({"enable_backward": False})

DISCHARGE = 0.61
"""C of a sharp-edged hole (White, ch. 6): the jet is narrower than the hole, and loses a little speed."""

WIDEST = 0.02
"""Largest radius of a vessel [m]. Both venae cavae together have a cross-section of 8 cm² (Hall, Guyton and Hall,
ch. 14), so one is about 11 mm in radius; nearly twice that is our bound."""

_ANY = ("systolic", "diastolic", "feed_length")
"""Fields that may be 0."""


@dataclass(frozen=True)
class VesselParams:
    """A vessel, SI inside. `vessel_mmhg` takes people's units."""

    systolic: float
    diastolic: float
    """Pressure above the atmosphere's, at the height and at the foot of the pulse [Pa]."""
    radius: float
    """Of the lumen [m]."""
    feed_length: float = 0.0
    """Length of such a lumen between the wound and where the pressure is given [m]."""
    density: float = BLOOD_DENSITY
    """[kg/m³]"""
    viscosity: float = BLOOD_VISCOSITY
    """[Pa·s]"""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = "of 0 or more" if field.name in _ANY else "above 0"
            if not math.isfinite(value) or value < 0.0 or (value == 0.0 and field.name not in _ANY):
                raise InputError(f"{field.name} = {value} is not possible.", f"It must be a finite number {least}.")
        if self.radius > WIDEST:
            raise InputError(
                f"radius = {1e3 * self.radius:g} mm is wider than any vessel.", f"Give at most {1e3 * WIDEST:g} mm."
            )
        if self.systolic < self.diastolic:
            raise InputError(
                f"systolic = {self.systolic:g} Pa is below diastolic = {self.diastolic:g} Pa.",
                "The systolic pressure is the higher one.",
            )

    @property
    def resistance(self) -> float:
        """R of the feeding length [Pa·s/m³]."""
        return 8.0 * self.viscosity * self.feed_length / (math.pi * self.radius**4)


def vessel_mmhg(systolic: float, diastolic: float, diameter_mm: float, feed_length_mm: float = 0.0) -> VesselParams:
    """A vessel from pressures in mmHg and lengths in mm."""
    radius = 0.5 * diameter_mm * MILLIMETRE
    return VesselParams(systolic * MMHG, diastolic * MMHG, radius, feed_length_mm * MILLIMETRE)


VESSELS: dict[str, VesselParams] = {
    "artery": vessel_mmhg(120.0, 80.0, 2.0, 60.0),
    "arteriole": vessel_mmhg(60.0, 45.0, 0.2, 5.0),
    "portal vein": vessel_mmhg(9.0, 7.0, 10.0, 80.0),
    "vein": vessel_mmhg(8.0, 6.0, 4.0, 80.0),
    "capillary bed": vessel_mmhg(25.0, 15.0, 0.1, 2.0),
}
"""Pressures: arteries 120/80, arterioles falling from about 85 to 30, capillaries 35 to 10, veins below 10 mmHg (Hall,
Guyton and Hall Textbook of Medical Physiology, 13th ed., ch. 14); portal vein normally 5 to 10. Diameters and lengths
are of the size that a surgeon of the abdomen meets; the artery is like a cystic artery."""


@wp.func
def outflow(
    drop: wp.float64, resistance: wp.float64, density: wp.float64, discharge: wp.float64, opening: wp.float64
) -> wp.float64:
    """Q [m³/s] through a hole of radius `opening` [m] under the pressure difference `drop` [Pa]."""
    rate = wp.float64(0.0)
    if drop > wp.float64(0.0) and opening > wp.float64(0.0):
        area = wp.float64(3.141592653589793) * opening * opening
        k = density / (wp.float64(2.0) * discharge * discharge * area * area)
        root = wp.sqrt(resistance * resistance + wp.float64(4.0) * k * drop)
        rate = wp.float64(2.0) * drop / (resistance + root)
    return rate


def flow_rate(vessel: VesselParams, opening: float, pulse: float = 0.0, outside: float = 0.0) -> float:
    """The same in Python: Q [m³/s] through an opening of radius `opening` [m], at `pulse` 0 to 1, against `outside`
    [Pa]."""
    for name, value in (("opening", opening), ("outside", outside), ("pulse", pulse)):
        if not math.isfinite(value) or value < 0.0:
            raise InputError(f"{name} = {value} is not possible.", "It must be a finite number of 0 or more.")
    drop = vessel.diastolic + pulse * (vessel.systolic - vessel.diastolic) - outside
    if drop <= 0.0 or opening == 0.0:
        return 0.0
    k = vessel.density / (2.0 * (DISCHARGE * math.pi * opening**2) ** 2)
    return 2.0 * drop / (vessel.resistance + math.sqrt(vessel.resistance**2 + 4.0 * k * drop))
