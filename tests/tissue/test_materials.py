"""The table of materials: complete, plausible, sourced; and what a material may not be."""

from __future__ import annotations

import dataclasses
import math

import pytest

from viscera.errors import InputError
from viscera.tissue.materials import LIVER, MATERIALS, SOFT_TISSUE, Material

NUMBERS = [field.name for field in dataclasses.fields(Material) if field.name not in ("name", "sources")]


@pytest.mark.parametrize("material", MATERIALS.values(), ids=MATERIALS)
def test_every_material_passes_its_own_check_and_is_tissue(material: Material) -> None:
    """Wide bounds that only a slip of unit or digit leaves (kPa for Pa, g/cm³ for kg/m³, strain in per cent)."""
    material.check()
    assert 1e3 <= material.young <= 2e7
    assert 900.0 <= material.density <= 1_200.0
    assert 0.45 <= material.poisson < 0.5
    assert 0.2 <= material.break_strain <= 1.0
    assert 50.0 <= material.toughness <= 5_000.0
    assert 0.2 <= material.conductivity <= 0.63
    assert 2e3 <= material.heat_capacity <= 4.2e3
    # Fat insulates; everything else conducts like salt water: about 1 to 1.6·10⁻⁷ m²/s.
    assert 0.9e-7 <= material.diffusivity <= 1.7e-7


def test_the_named_tissues_are_there_in_order_of_stiffness() -> None:
    order = ["fat", "liver", "tumour", "skin", "gall bladder", "artery", "liver capsule"]
    stiffness = [MATERIALS[name].young for name in order]
    assert stiffness == sorted(stiffness)
    assert {"connective tissue", "soft tissue", "vein"} <= set(MATERIALS)
    assert len(MATERIALS) <= 16


@pytest.mark.parametrize("material", [m for m in MATERIALS.values() if m is not SOFT_TISSUE], ids=lambda m: m.name)
def test_every_figure_names_its_source_or_is_called_estimated(material: Material) -> None:
    said = " ".join(material.sources)
    for word in ("young", "density", "heat", "viscous_time", "break_strain", "toughness"):
        assert word in said, f"{material.name}: nothing is said about {word}"


def test_three_numbers_are_enough() -> None:
    material = Material("jelly", 2_000.0, 1_000.0)
    material.check()
    assert (material.young, material.density, material.drag) == (2_000.0, 1_000.0, 0.0)


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_impossible_numbers_are_refused_by_name(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"'liver': {field} ="):
        dataclasses.replace(LIVER, **{field: value}).check()


@pytest.mark.parametrize("field", ["young", "density", "break_strain", "conductivity", "heat_capacity"])
def test_what_must_be_above_zero(field: str) -> None:
    with pytest.raises(InputError, match="above 0"):
        dataclasses.replace(LIVER, **{field: 0.0}).check()


@pytest.mark.parametrize("field", ["drag", "viscous_time", "friction", "toughness"])
def test_what_may_be_zero(field: str) -> None:
    dataclasses.replace(LIVER, **{field: 0.0}).check()
