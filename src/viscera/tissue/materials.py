"""Materials of soft tissue."""

from __future__ import annotations

import math
from dataclasses import dataclass

from viscera.errors import InputError


@dataclass(frozen=True)
class Material:
    name: str
    young: float
    """Young's modulus [Pa]."""
    density: float
    """[kg/m³]"""
    drag: float = 0.0
    """Against its surroundings [1/s]."""

    def check(self) -> None:
        for field, value in (("young", self.young), ("density", self.density)):
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(
                    f"material {self.name!r}: {field} = {value} is not allowed.", "It must be finite and above 0."
                )


SOFT_TISSUE = Material("soft tissue", young=3_000.0, density=1_060.0)
"""Healthy liver-like parenchyma. Stiffness: 2 to 6 kPa in transient elastography of healthy livers (Castera, Forns and
Alberti, J. Hepatol. 48, 2008); density: ICRP 110 gives 1 050 kg/m³ for liver."""
