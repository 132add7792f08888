"""What an instrument does, as data on it. Systems ask the world for the tools with an effect (`world.Moment.using`).

An effect beside `Pushes` works while the handle is pressed (`PRESSED`). An instrument may have several: one that sucks
and rinses has two. Each has a `kind`, so that the page knows it without reading labels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from viscera.errors import InputError

PRESSED = 0.5
"""From this grip on a handle or pedal is pressed."""


_MOST = {
    "radius": (1.0, "m"), "length": (1.0, "m"), "reach": (0.1, "m"), "outlet": (1.0, "m"), "width": (0.1, "m"),
    "closed": (0.1, "m"), "speed": (50.0, "m/s"), "rate": (1e-3, "m³/s; 2 mL/s is 2e-6"), "holds": (1e-3, "m³"),
    "power": (1000.0, "W"), "grip": (100.0, "N"), "hold": (100.0, "N"), "pierce": (100.0, "N"), "pull": (100.0, "N"),
    "friction": (10.0, ""), "closes": (1.0, ""), "need": (100.0, ""),
}  # fmt: skip
"""Of the numbers of an effect: far beyond any instrument, so that a wrong unit is noticed."""

_ABOVE_ZERO = ("radius", "reach", "rate", "holds", "width", "speed")


class _Checked:
    """An effect refuses numbers that cannot be."""

    def __post_init__(self) -> None:
        for name, (most, unit) in _MOST.items():
            value = getattr(self, name, 0.5 * most)
            above = name in _ABOVE_ZERO
            if not (math.isfinite(value) and (value > 0.0 if above else value >= 0.0) and value <= most):
                raise InputError(
                    f"{type(self).__name__}: {name} = {value} is not possible.",
                    f"Allowed is {'more than ' if above else ''}0 to {most:g} {unit}".rstrip() + ".",
                )


@dataclass(frozen=True)
class Pushes(_Checked):
    """Pushes tissue away with the instrument's own parts, shaft and all (`Instrument.parts`); with a ball, or a round
    rod along the shaft, where it has none. Water feels a ball."""

    radius: float
    """Of the end that meets tissue first [m]."""
    length: float = 0.0
    """Of a rod's axis [m]; 0 for a ball."""
    offset: float = 0.0
    """Where the ball's middle, or the rod's axis, begins above the tip [m]."""
    friction: float = 0.1
    """Coulomb's, against tissue. Steel on wet tissue: about 0.02 to 0.2."""
    solid: bool = False
    """Whether tissue feels the closed meshes of the instrument's `solid` instead of its round parts: flat jaws, edges.
    It takes longer."""
    kind: Literal["pushes"] = "pushes"


@dataclass(frozen=True)
class Heats(_Checked):
    """Current flows from the active parts of the instrument's `solid` into tissue."""

    power: float = 30.0
    """That the generator is set to [W]."""
    reach: float = 0.3e-3
    """Tissue nearer than this is heated [m]."""
    bipolar: bool = False
    """Whether current goes from part to part, and heats what is within reach of all of them."""
    kind: Literal["heats"] = "heats"


@dataclass(frozen=True)
class Sucks(_Checked):
    """Takes fluid away at the tip. Several that work at once share one pump: they take turns, frame by frame."""

    reach: float = 4.0e-3
    """[m]"""
    rate: float = 20.0e-6
    """[m³/s]"""
    kind: Literal["sucks"] = "sucks"


@dataclass(frozen=True)
class Soaks(_Checked):
    """Its end is gauze: whatever fluid that touches is taken up, with the handle pressed or not, until it is full. One
    that is taken out of the body comes back with a fresh one."""

    holds: float = 5.0e-6
    """[m³]; estimated. A swab of 10 cm × 10 cm, many layers thick, is full with some 60 mL (Bose, Regan and
    Paterson-Brown, BJOG 113, 2006); what is held on a stick is a small part of one."""
    kind: Literal["soaks"] = "soaks"


@dataclass(frozen=True)
class Rinses(_Checked):
    """A jet out of the tip, along the shaft. Several that work at once take turns, frame by frame."""

    speed: float = 0.8
    """[m/s]; tuned: a jet that reaches and does not bounce."""
    rate: float = 2.0e-6
    """[m³/s]; about a syringe's. Twice as much is a flood that a film has no room for."""
    outlet: float = 8.0e-3
    """From the tip back to the outlet [m]: such tubes have holes along their end, free while the tip is pressed into
    tissue."""
    kind: Literal["rinses"] = "rinses"


@dataclass(frozen=True)
class Clips(_Checked):
    """Closes vessels near the tip with a clip that stays. Where tissue can have clips (`systems.clamping`), it presses
    the wall together and slips when it is pulled too hard."""

    reach: float = 4.0e-3
    """[m]"""
    closes: float = 0.5
    """Share of the thickness of what it is put on that is left, once it is closed."""
    hold: float = 3.0
    """Force at which it slips [N]. Titanium clips on arteries come off at some 2 to 6; estimated."""
    kind: Literal["clips"] = "clips"


@dataclass(frozen=True)
class Marks(_Checked):
    """Sticks a pin into tissue at the tip, one for each press of the handle."""

    reach: float = 10.0e-3
    """Farther from the surface than this it sticks nowhere [m]."""
    kind: Literal["marks"] = "marks"


@dataclass(frozen=True)
class Cuts(_Checked):
    """Cuts tissue with the axes of some of the instrument's parts, its edges; these parts push only while they do not
    cut."""

    parts: tuple[int, ...] = (0,)
    """Numbers of the parts whose axes are edges."""
    need: float = 0.1
    """Share of the tissue's toughness that it takes. Pressed straight in, a blade takes all of it; drawn along its edge
    ξ times as fast as it goes in, 1/(1 + ξ²) (Atkins, Xu and Jeronimidis, J. Mater. Sci. 39, 2004). A hand draws its
    blade about three times as fast; that it does is not simulated."""
    closing: bool = False
    """Whether it cuts only while its jaws close: scissors."""
    kind: Literal["cuts"] = "cuts"


@dataclass(frozen=True)
class Grasps(_Checked):
    """Holds what is between its jaws while they are closed. Pulled along them it holds 2·friction·grip, and pulled
    across them 2·grip; beyond that tissue slips out."""

    parts: tuple[int, int] = (0, 1)
    """Numbers of the two parts that are its jaws."""
    width: float = 5.0e-3
    """Of a jaw [m]."""
    grip: float = 4.0
    """Force that each jaw closes with [N], at most."""
    friction: float = 0.5
    """Coulomb's, between its teeth and tissue. Chosen so that it holds 4 N: what surgeons pull bowel with is 2.5 N at
    the mean and 5 N at most (de Visser, Heijnsdijk, Herder and Pistecky, Surg. Endosc. 16, 2002)."""
    kind: Literal["grasps"] = "grasps"


@dataclass(frozen=True)
class Sews(_Checked):
    """Turns a curved needle with thread about the instrument's tip, in the plane of its x and z axes, while the handle
    is pressed; let go with its point out of the tissue again, the needle is drawn through."""

    radius: float = 6.0e-3
    """Of the needle's circle [m]."""
    pierce: float = 0.15
    """Force to go through the surface [N]. Tapered needles in skin take 0.1 to 1; estimated."""
    friction: float = 0.02
    """Of the needle, per hole that it is in [N]; estimated."""
    kind: Literal["sews"] = "sews"


@dataclass(frozen=True)
class Ties(_Checked):
    """Draws the thread of a stitch together while the handle is pressed, and ties it when that is let go."""

    reach: float = 8.0e-3
    """Farther from a stitch than this it ties nothing [m]."""
    pull: float = 1.0
    """How hard it draws, at most [N]."""
    kind: Literal["ties"] = "ties"


@dataclass(frozen=True)
class Staples(_Checked):
    """Puts a staple across what lies below the tip, along the instrument's x axis, one for each press of the handle."""

    width: float = 7.0e-3
    """Between its legs as it goes in [m]."""
    closed: float = 4.5e-3
    """The same once it is bent [m]."""
    hold: float = 3.0
    """Force at which it slips [N]; estimated."""
    kind: Literal["staples"] = "staples"


@dataclass(frozen=True)
class Evacuates(_Checked):
    """Draws gas and the smoke in it away at the tip; as much fresh gas flows in."""

    rate: float = 3.0e-4
    """[m³/s]; 18 L/min. Evacuators for laparoscopy are set to some 5 to 20."""
    kind: Literal["evacuates"] = "evacuates"


Effect = Pushes | Heats | Sucks | Soaks | Rinses | Clips | Marks | Cuts | Grasps | Sews | Ties | Staples | Evacuates
