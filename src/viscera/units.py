"""Conversions between what people say and SI. Used at the border only; everything inside is SI."""

from __future__ import annotations

MILLI = 1e-3
KILO = 1e3

MILLIMETRE = 1e-3
"""[m]"""
SQUARE_MILLIMETRE = 1e-6
"""[m²]"""
KILOPASCAL = 1e3
"""[Pa]"""
MMHG = 133.322387415
"""Conventional millimetre of mercury [Pa] (BIPM SI brochure, 8th ed., table 8)."""
MILLILITRE = 1e-6
"""[m³]"""
LITRE = 1e-3
"""[m³]"""
MINUTE = 60.0
"""[s]"""
ZERO_CELSIUS = 273.15
"""[K]"""
STANDARD_GRAVITY = 9.80665
"""[m/s²], CGPM 1901."""
