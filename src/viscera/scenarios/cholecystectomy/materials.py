"""What the field of the operation is made of.

A wall of 2 mm and 255 kPa is a cell of 3 mm here, so stiffness is less than the tables' (tissue/materials.py): what a
laptop's substeps carry in real time, in the right order from fat to artery. Toughness is less by as much: Γ/E, how far
tissue stretches before a blade goes on, stays a millimetre or two in walls and tubes. Stretch at which each tears is as
there, but for what is meant to come apart: the bed and the fold. Burnt tissue is half as stiff again, not 3.4 times:
that too is for the substeps. What heat takes of each (conductivity, heat capacity) is the tables', unchanged: fat warms
nearly twice as fast as liver, and hands less of it on.
"""

from __future__ import annotations

from dataclasses import replace

from viscera.scenarios.cholecystectomy.patient import Patient
from viscera.tissue import materials as table
from viscera.tissue.materials import Material

BURNT_YOUNG = 1.5
POISSON, VISCOUS_TIME = 0.35, 2e-4
INFLAMED = 2.0
"""Toughness of an inflamed bed over that of a healthy one."""
THICK = 1.6
"""Stiffness and toughness of a thick wall over those of a usual one."""


WATER = (0.62, 4_180.0)
"""Conductivity [W/(m·K)] and heat capacity [J/(kg·K)] at body temperature, for bile."""


def _made(
    name: str, young: float, density: float, break_strain: float, toughness: float, heat: tuple[float, float]
) -> Material:
    return Material(
        name, young=young, density=density, poisson=POISSON, viscous_time=VISCOUS_TIME, break_strain=break_strain,
        toughness=toughness, burnt_young=BURNT_YOUNG, conductivity=heat[0], heat_capacity=heat[1],
        sources=(
            "young, toughness: estimated, in the order of tissue/materials.py; see this file's head",
            "heat: of the tissue of that name in tissue/materials.py; bile as water, ducts as the gall bladder's wall, "
            "peritoneum as the fat beneath it",
        ),
    )  # fmt: skip


def _heat_of(tissue: Material) -> tuple[float, float]:
    return tissue.conductivity, tissue.heat_capacity


LIVER = _made("liver under its capsule", 5_000.0, 1_060.0, 0.6, 300.0, _heat_of(table.LIVER))
WALL = _made("wall of the gall bladder", 15_000.0, 1_071.0, 0.6, 25.0, _heat_of(table.GALLBLADDER))
BILE = _made("bile in the gall bladder", 2_000.0, 1_010.0, 2.0, 5.0, WATER)
"""Its springs keep the lumen open; they bear nearly nothing."""
BED = _made("connective tissue of the bed", 5_000.0, 1_027.0, 0.45, 10.0, _heat_of(table.CONNECTIVE))
FAT = _made("fat", 3_000.0, 911.0, 0.5, 10.0, _heat_of(table.FAT))
PERITONEUM = _made("peritoneum over fat", 5_000.0, 1_000.0, 0.5, 15.0, _heat_of(table.FAT))
DUCT = _made("cystic duct", 20_000.0, 1_071.0, 0.6, 25.0, _heat_of(table.GALLBLADDER))
COMMON = _made("common duct", 20_000.0, 1_071.0, 0.6, 25.0, _heat_of(table.GALLBLADDER))
ARTERY = _made("cystic artery", 20_000.0, 1_102.0, 0.63, 25.0, _heat_of(table.ARTERY))


def materials_of(patient: Patient) -> tuple[Material, ...]:
    """In the order of body.py's numbers."""
    wall, bed = WALL, BED
    if patient.thick_wall:
        wall = replace(WALL, young=THICK * WALL.young, toughness=THICK * WALL.toughness)
    if patient.inflamed:
        bed = replace(BED, toughness=INFLAMED * BED.toughness)
    return (LIVER, wall, BILE, bed, FAT, PERITONEUM, DUCT, COMMON, ARTERY)
