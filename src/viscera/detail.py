"""How much detail a world may have, and how people say it.

A number multiplies the scenario's own counts of masses, texels and particles; `auto` is as much as this machine carries
in real time.
"""

from __future__ import annotations

from typing import Literal

from viscera.errors import InputError

LEAST_DETAIL, MOST_DETAIL = 0.1, 1000.0
"""With less, organs have too few masses to feel like one; with more, there is no memory for them."""
AUTO: Literal["auto"] = "auto"
"""As much detail as this machine carries in real time."""

Detail = float | Literal["auto"]


def check_detail(detail: float) -> float:
    """Refuses what no world can have."""
    # A comparison with NaN is false, so this refuses it too.
    if isinstance(detail, bool) or not (isinstance(detail, int | float) and LEAST_DETAIL <= detail <= MOST_DETAIL):
        raise InputError(
            f"detail = {detail!r} is not possible.",
            f"Allowed are {LEAST_DETAIL:g} to {MOST_DETAIL:g} times the scenario's own counts, or auto for as much as "
            "this machine carries.",
        )
    return float(detail)


def parse_detail(text: str) -> Detail:
    """`auto`, or a number as a person writes it."""
    if text.strip().lower() == AUTO:
        return AUTO
    try:
        return check_detail(float(text))
    except ValueError:
        raise InputError(f"detail = {text!r} is not a number.", "For example 0.5, 1, 4 or auto.") from None
