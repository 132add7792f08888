"""Filling slots: every mistake is loud."""

from __future__ import annotations

from typing import Any

import pytest

from viscera.native import TemplateError, fill, on_both, on_cpu, on_cuda


def test_slots_are_filled_each_time_they_stand_there() -> None:
    assert fill("$type x = $type($value);", type="float", value="y") == "float x = float(y);"


@pytest.mark.parametrize(
    ("number", "text"), [(0.5, "0.5f"), (1e-30, "1e-30f"), (16, "16"), (-2, "-2"), (1073741824.0, "1073741824.0f")]
)
def test_numbers_become_c_literals(number: float, text: str) -> None:
    assert fill("$x", x=number) == text


@pytest.mark.parametrize(
    ("template", "parts", "words"),
    [
        ("$a + $b", {"a": "1"}, "'b'"),
        ("$a", {"a": "1", "c": "2"}, "'c'"),
        ("no slots", {"a": "1"}, "'a'"),
        ("$a", {"a": "$b"}, "fill it first"),
        ("$a", {"a": True}, "text or a number"),
        ("$a", {"a": None}, "text or a number"),
        ("$a", {"a": float("inf")}, "no literal"),
        ("$a and $", {"a": "1"}, "''"),
    ],
)
def test_mistakes_are_loud(template: str, parts: dict[str, Any], words: str) -> None:
    with pytest.raises(TemplateError, match=words):
        fill(template, **parts)


@pytest.mark.parametrize("section", [on_cpu, on_cuda, on_both])
def test_a_body_is_filled_and_leaves_the_header_alone(section: Any) -> None:
    with pytest.raises(TemplateError, match="never filled"):
        section("$left")
    with pytest.raises(TemplateError, match="LOAD"):
        section("#define LOAD(p) 0")


def test_macros_end_with_their_section() -> None:
    text = on_both("#define OWN(x) (x)\nOWN(1);")
    for name in ("LOAD", "SUM", "OWN"):
        assert text.count(f"#define {name}(") == text.count(f"#undef {name}\n") == 2


def test_both_headers_define_the_same_names() -> None:
    """What one device has the other has too, or a body for both would compile on one alone."""
    cpu, cuda = (
        {line.split()[1].split("(")[0] for line in section(";").splitlines() if line.startswith("#define")}
        for section in (on_cpu, on_cuda)
    )
    assert cpu - cuda == {"BITS", "EIGHT_"}  # what ANY and ALL, and picking every fourth, are made of on cpu
    assert not cuda - cpu
