"""What X-rays go through: attenuation of materials by their composition.

    μ(E) = ρ Σ_k w_k (μ/ρ)_k(E)

with the mass shares w_k of the elements. Coefficients of elements are Elam's (`attenuation.csv`), compositions of
tissues those of ICRU report 44 (1989), as NIST lists them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError

FloatArray = NDArray[np.float64]

CM2_PER_G = 0.1
"""[m²/kg]"""
BARIUM_SULFATE_DENSITY = 4_490.0
"""[kg/m³]"""


@dataclass(frozen=True)
class Material:
    """Something that X-rays go through."""

    name: str
    density: float
    """[kg/m³]"""
    shares: tuple[tuple[str, float], ...]
    """Elements and their share of the mass; they add up to 1."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.density) and self.density > 0.0):
            raise InputError(f"{self.name}: density = {self.density} is not possible.", "Give kg/m³, above 0.")
        total = sum(share for _, share in self.shares)
        if abs(total - 1.0) > 0.01 or min((share for _, share in self.shares), default=-1.0) < 0.0:
            raise InputError(f"{self.name}: shares add up to {total:g}.", "Give shares of the mass that add up to 1.")
        unknown = [name for name, _ in self.shares if name not in _table()[1]]
        if unknown:
            raise InputError(
                f"{self.name}: element {unknown[0]!r} is not known.", f"Known are {', '.join(_table()[1])}."
            )


def attenuation(material: Material, energies: ArrayLike) -> FloatArray:
    """μ [1/m] at energies [keV], 10 to 150; linear in the logarithm between the tabulated ones."""
    at = np.asarray(energies, dtype=np.float64)
    grid, names, table = _table()
    if not np.all((at >= 10.0) & (at <= 150.0)):
        raise InputError(f"energies from {at.min():g} to {at.max():g} keV are asked for.", "Allowed are 10 to 150 keV.")
    mass = sum(share * table[:, names.index(name)] for name, share in material.shares)
    return material.density * np.exp(np.interp(at, grid, np.log(mass)))


def barium_suspension(concentration: float) -> Material:
    """Barium sulphate in water, `concentration` kg of it per m³ of suspension (100 % w/v is 1000)."""
    if not 0.0 < concentration <= 2_500.0:
        raise InputError(
            f"concentration = {concentration:g} kg/m³ is not possible.", "Above 0 and up to 2500 (250 % w/v)."
        )
    water = 1_000.0 * (1.0 - concentration / BARIUM_SULFATE_DENSITY)
    return _mixed(f"barium {concentration / 10.0:g} % w/v", {BARIUM_SULFATE: concentration, WATER: water})


def iodine_solution(concentration: float) -> Material:
    """Iodine in water, `concentration` kg of iodine per m³ (300 mg/mL is 300)."""
    if not 0.0 < concentration <= 500.0:
        raise InputError(f"concentration = {concentration:g} kg/m³ is not possible.", "Above 0 and up to 500.")
    return _mixed(f"iodine {concentration:g} mg/mL", {Material("iodine", 4_930.0, (("I", 1.0),)): concentration,
                                                     WATER: 1_000.0 - 0.2 * concentration})  # fmt: skip


def _mixed(name: str, masses: Mapping[Material, float]) -> Material:
    """Of masses [kg] in one m³."""
    density = sum(masses.values())
    shares: dict[str, float] = {}
    for material, mass in masses.items():
        for element, share in material.shares:
            shares[element] = shares.get(element, 0.0) + share * mass / density
    return Material(name, density, tuple(shares.items()))


@cache
def _table() -> tuple[FloatArray, tuple[str, ...], FloatArray]:
    """Energies [keV], elements, and μ/ρ [m²/kg] of shape (energies, elements)."""
    lines = (Path(__file__).parent / "attenuation.csv").read_text().splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    numbers = np.array([[float(value) for value in line.split(",")] for line in lines[1:]])
    return numbers[:, 0], tuple(lines[0].split(",")[1:]), CM2_PER_G * numbers[:, 1:]


WATER = Material("water", 1_000.0, (("H", 0.111898), ("O", 0.888102)))
AIR = Material("air", 1.205, (("C", 0.000124), ("N", 0.755268), ("O", 0.231781), ("Ar", 0.012827)))
CARBON_DIOXIDE = Material("carbon dioxide", 1.842, (("C", 0.272916), ("O", 0.727084)))
SOFT_TISSUE = Material(
    "soft tissue", 1_060.0,
    (("H", 0.102), ("C", 0.143), ("N", 0.034), ("O", 0.708), ("Na", 0.002), ("P", 0.003), ("S", 0.003), ("Cl", 0.002),
     ("K", 0.003)),
)  # fmt: skip
FAT = Material(
    "fat", 950.0, (("H", 0.114), ("C", 0.598), ("N", 0.007), ("O", 0.278), ("Na", 0.001), ("S", 0.001), ("Cl", 0.001))
)
BONE = Material(
    "cortical bone", 1_920.0,
    (("H", 0.034), ("C", 0.155), ("N", 0.042), ("O", 0.435), ("Na", 0.001), ("Mg", 0.002), ("P", 0.103), ("S", 0.003),
     ("Ca", 0.225)),
)  # fmt: skip
ALUMINIUM = Material("aluminium", 2_699.0, (("Al", 1.0),))
COPPER = Material("copper", 8_960.0, (("Cu", 1.0),))
STEEL = Material("steel", 7_870.0, (("Fe", 1.0),))
CAESIUM_IODIDE = Material("caesium iodide", 4_510.0, (("Cs", 0.511549), ("I", 0.488451)))
BARIUM_SULFATE = Material(
    "barium sulphate", BARIUM_SULFATE_DENSITY, (("Ba", 0.588420), ("S", 0.137368), ("O", 0.274212))
)
