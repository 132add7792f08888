"""Materials of soft tissue, with where each number comes from.

Tissue is neither linear nor elastic, so one Young's modulus is a choice: here it is that of small, slow strains of the
living or fresh organ, as a palpating hand feels it. Where a source gives the shear modulus µ, E = 3µ, as tissue hardly
changes its volume. τ = viscosity over µ. `sources` names what each figure rests on, and says "estimated" where
nothing does.

Heat: conductivity, heat capacity and, where no other source is named, density are the rounded means of the IT'IS
Foundation's tissue database (Hasgall et al., "IT'IS database for thermal and electromagnetic parameters of biological
tissues", version 4, doi 10.13099/VIP21000-04-0).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from viscera.errors import InputError, need_number

WET_STEEL_FRICTION = 0.1
"""Steel on wet serous tissue; 0.02 to 0.2. Estimated: what is published depends on load, speed and jaw more than on the
organ."""

_ITIS = "heat, density: IT'IS database"


@dataclass(frozen=True)
class Material:
    """One tissue. Only name, stiffness and density are needed; the rest is that of watery soft tissue."""

    name: str
    young: float
    """Young's modulus E [Pa]."""
    density: float
    """ρ [kg/m³]"""
    drag: float = 0.0
    """Against its surroundings [1/s]; no property of the tissue itself."""
    poisson: float = 0.49
    """ν; a lattice takes 0.25 to 0.49. The nearer to ½, the more substeps."""
    viscous_time: float = 1e-3
    """τ of the Kelvin–Voigt solid [s]."""
    break_strain: float = 0.4
    """Stretch at which it tears, as a share of its length."""
    toughness: float = 200.0
    """Γ: work that a new surface takes, in a cut [J/m²]; one side of it counts."""
    burnt_young: float = 3.4
    """Young's modulus of coagulated tissue over that of fresh; see burning.py."""
    burnt_break_strain: float = 0.5
    """Stretch at which coagulated tissue tears over that of fresh; see burning.py."""
    conductivity: float = 0.5
    """Of heat [W/(m·K)]."""
    heat_capacity: float = 3_600.0
    """[J/(kg·K)]"""
    friction: float = WET_STEEL_FRICTION
    """With wet steel."""
    sources: tuple[str, ...] = ()

    @property
    def diffusivity(self) -> float:
        """Of heat [m²/s]."""
        return self.conductivity / (self.density * self.heat_capacity)

    def check(self) -> None:
        """Refuses what no material can have, by field."""
        for field in dataclasses.fields(self):
            if field.name in ("name", "sources"):
                continue
            value = need_number(f"material {self.name!r}: {field.name}", getattr(self, field.name))
            least, most, above = _LIMITS[field.name]
            if not (math.isfinite(value) and (value > least if above else value >= least) and value <= most):
                raise InputError(
                    f"material {self.name!r}: {field.name} = {value:g} is not allowed.",
                    f"It must be finite, {'above' if above else 'at least'} {least:g}"
                    + (f" and at most {most:g}." if math.isfinite(most) else "."),
                )

    def check_units(self) -> None:
        """Refuses what no organ has, because it was meant in another unit. A lattice for itself takes it: a test may
        want springs that hardly pull."""
        self.check()
        for name, (least, most, told) in _UNITS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(f"material {self.name!r}: {name} = {value:g} is not allowed.", f"The unit is {told}.")


_LIMITS: dict[str, tuple[float, float, bool]] = {
    "young": (0.0, math.inf, True),
    "density": (0.0, math.inf, True),
    "drag": (0.0, math.inf, False),
    "poisson": (0.0, 0.4999, False),
    "viscous_time": (0.0, 1.0, False),
    "break_strain": (0.0, 100.0, True),
    "toughness": (0.0, 1.0e5, False),
    "burnt_young": (0.0, 20.0, True),
    "burnt_break_strain": (0.0, 1.0, True),
    "conductivity": (0.0, math.inf, True),
    "heat_capacity": (0.0, math.inf, True),
    "friction": (0.0, 2.0, False),
}
"""Least and most, and whether the least itself is refused."""
_UNITS = {
    "young": (10.0, 1.0e9, "Pa, 10 to 1e9 for an organ: 5 kPa are 5000"),
    "density": (10.0, 2.0e4, "kg/m³, 10 to 20000 for an organ: water has 1000"),
}
"""The softest gels have tens of pascals, tendon some 1e9, lung full of air some 200 kg/m³: what is beyond was meant in
another unit."""


SOFT_TISSUE = Material("soft tissue", young=3_000.0, density=1_060.0)
"""Healthy liver-like parenchyma, at the soft end. Stiffness: 2 to 6 kPa in transient elastography of healthy livers
(Castera, Forns and Alberti, J. Hepatol. 48, 2008); density: ICRP 110 gives 1 050 kg/m³ for liver."""

LIVER = Material(
    "liver",
    young=5_000.0,
    density=1_060.0,
    viscous_time=0.9e-3,
    break_strain=0.38,
    toughness=164.0,
    conductivity=0.52,
    heat_capacity=3_540.0,
    sources=(
        "young: 2 to 7 kPa by transient elastography of healthy people (Castera, Forns and Alberti, J. Hepatol. 48, "
        "2008); µ = 1.8 ± 0.4 kPa (Palmeri et al., Ultrasound Med. Biol. 34, 2008)",
        "density: 1 050 (ICRP 110) to 1 079 kg/m³ (IT'IS database)",
        "viscous_time: about 2 Pa·s over 2.2 kPa in living pigs (Chen et al., IEEE EMBC 2009); rheometry at lower "
        "frequencies gives more",
        "break_strain: ultimate true strain (table 1 of Mancia et al., Phys. Med. Biol. 64, 225001, 2019)",
        "heat: IT'IS database; 0.520 W/(m·K) and 3.57 MJ/(m³·K) at 35 °C in pig liver (Guntur et al., Ultrasound Med. "
        "Biol. 39, 2013)",
        "toughness: 164 ± 6 J/m² of bovine liver (Gokgol, Basdogan and Canadinc, Med. Eng. Phys. 34, 2012); 187 to 225 "
        "J/m² in pigs with a blade (table 2 of doi 10.1186/s10033-022-00767-4)",
    ),
)

TUMOUR = Material(
    "tumour",
    young=20_000.0,
    density=1_060.0,
    viscous_time=0.9e-3,
    break_strain=0.3,
    toughness=300.0,
    conductivity=0.57,
    heat_capacity=3_700.0,
    sources=(
        "young: 20.2 kPa, median of malignant lesions of the liver by shear-wave ultrasound (Egypt. J. Radiol. Nucl. "
        "Med. 51, 2020, doi 10.1186/s43055-020-00186-2); µ = 10.1 kPa by MR elastography (Venkatesh et al., AJR 190, "
        "2008) is 30 kPa, and means of 50 kPa are published too",
        "heat: as grey matter in hyperthermia planning with the IT'IS database; density as liver",
        "viscous_time, break_strain: estimated",
        "toughness: estimated, tougher than liver",
    ),
)

CAPSULE = Material(
    "liver capsule",
    young=8_200_000.0,
    density=1_100.0,
    break_strain=0.47,
    toughness=1_700.0,
    conductivity=0.39,
    heat_capacity=2_370.0,
    sources=(
        "young: 8.22 ± 3.42 MPa at small strain in Glisson's capsule of pigs (Umale et al., J. Biomech. 44, 2011); the "
        "capsule is some 0.1 mm thick, so a lattice carries it as a stiffer outer layer",
        "break_strain: 0.47 ± 0.29 (Brunon, Bruyère-Garnier and Coret, J. Biomech. 43, 2010)",
        "heat: connective tissue in the IT'IS database; density, viscous_time: estimated",
        "toughness: estimated, as skin",
    ),
)

GALLBLADDER = Material(
    "gall bladder",
    young=255_000.0,
    density=1_071.0,
    break_strain=0.43,
    toughness=300.0,
    conductivity=0.52,
    heat_capacity=3_716.0,
    sources=(
        "young, break_strain: µ = 85 ± 8.2 kPa and ultimate strain 0.43 of the human wall (Karimi, Shojaei and "
        "Tehrani, J. Med. Eng. Technol. 41, 2017, as tabulated by Mancia et al., Phys. Med. Biol. 64, 225001, 2019); "
        "fast stretching gives up to 9 MPa",
        _ITIS,
        "viscous_time: estimated",
        "toughness: estimated, as artery",
    ),
)

FAT = Material(
    "fat",
    young=3_000.0,
    density=911.0,
    break_strain=0.5,
    toughness=100.0,
    conductivity=0.21,
    heat_capacity=2_348.0,
    sources=(
        "young: 3.25 kPa ex vivo (Samani, Zubovits and Plewes, Phys. Med. Biol. 52, 2007); µ = 0.75 kPa by MR "
        "elastography at 50 Hz in vivo would be 2.3 kPa",
        _ITIS,
        "viscous_time, break_strain: estimated",
        "toughness: estimated, below liver",
    ),
)

ARTERY = Material(
    "artery",
    young=630_000.0,
    density=1_102.0,
    break_strain=0.63,
    toughness=290.0,
    conductivity=0.46,
    heat_capacity=3_306.0,
    sources=(
        "young, break_strain: µ = 210 ± 47 kPa and ultimate true strain 0.63 of the hepatic artery (table 1 of Mancia "
        "et al., Phys. Med. Biol. 64, 225001, 2019, after Deng et al. 1994 and Holzapfel et al. 2005)",
        _ITIS,
        "viscous_time: estimated",
        "toughness: 290 ± 110 J/m² of pig aorta with a blade (table 2 of doi 10.1186/s10033-022-00767-4)",
    ),
)

VEIN = Material(
    "vein",
    young=620_000.0,
    density=1_102.0,
    break_strain=0.6,
    toughness=250.0,
    conductivity=0.46,
    heat_capacity=3_306.0,
    sources=(
        "young: 0.62 ± 0.41 MPa at small strain in hepatic veins of pigs (Umale et al., J. Biomech. 44, 2011)",
        _ITIS,
        "viscous_time, break_strain: estimated",
        "toughness: estimated, as artery",
    ),
)

SKIN = Material(
    "skin",
    young=56_000.0,
    density=1_109.0,
    break_strain=0.54,
    toughness=1_700.0,
    conductivity=0.37,
    heat_capacity=3_391.0,
    friction=0.5,
    sources=(
        "young: 56 ± 16 kPa by suction in vivo (Briot et al., Clin. Biomech. 99, 2022); along the skin 1.2 ± 0.9 MPa "
        "at first and 83 ± 35 MPa when taut",
        "break_strain: 0.54 ± 0.17 (Ní Annaidh et al., J. Mech. Behav. Biomed. Mater. 5, 2012)",
        _ITIS,
        "friction: dry skin, 0.2 to 0.9, estimated; viscous_time: estimated",
        "toughness: 1 700 J/m² of rat skin by scissors (table 2 of doi 10.1186/s10033-022-00767-4)",
    ),
)

CONNECTIVE = Material(
    "connective tissue",
    young=500_000.0,
    density=1_027.0,
    break_strain=0.4,
    toughness=1_000.0,
    conductivity=0.39,
    heat_capacity=2_372.0,
    sources=(
        "young: estimated for peritoneal folds and ligaments of the liver, between fat and vein",
        _ITIS,
        "viscous_time, break_strain: estimated",
        "toughness: estimated",
    ),
)

MATERIALS: dict[str, Material] = {
    one.name: one for one in (SOFT_TISSUE, LIVER, TUMOUR, CAPSULE, GALLBLADDER, FAT, ARTERY, VEIN, SKIN, CONNECTIVE)
}
"""The table, by name."""
