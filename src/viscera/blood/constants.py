"""What blood is like, and the air around it: numbers that several parts share."""

from __future__ import annotations

BLOOD_DENSITY = 1060.0
"""[kg/m³], whole blood at 37 °C (Cutnell and Johnson, Physics, table 11.1)."""

BLOOD_VISCOSITY = 3.5e-3
"""[Pa·s], whole blood at 37 °C and shear above 100/s, haematocrit 45 % (Merrill 1969, Physiol. Rev. 49, 863). Blood is
shear-thinning; in a bleeding vessel the shear is far above 100/s, where this value is the plateau."""

SURFACE_TENSION = 0.056
"""Of blood against air [N/m] (Rosina et al. 2007, Physiol. Res. 56 Suppl. 1, S93)."""

AIR_DENSITY = 1.15
"""[kg/m³], at 30 °C."""
