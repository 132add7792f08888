"""Ready instruments: how they look, what they do. A new one is one function here, or in a scenario of your own.

Every function gives an `Instrument` that waits at the origin; `instrument.at(home)` puts it elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from viscera.geometry.tools import (
    FOOT,
    JAW,
    JAW_GAP,
    JAW_OPENING,
    SHAFT_RADIUS,
    WIRE_HEIGHT,
    WIRE_RADIUS,
    bipolar_forceps,
    monopolar_hook,
)
from viscera.inputs import Vector3
from viscera.instruments.bars import SHAFT_LENGTH
from viscera.instruments.effects import (
    Clips,
    Cuts,
    Evacuates,
    Grasps,
    Heats,
    Marks,
    Pushes,
    Rinses,
    Sews,
    Soaks,
    Staples,
    Sucks,
    Ties,
)
from viscera.instruments.instrument import Instrument, Part
from viscera.instruments.tool import Tool


def hand_out(
    instruments: list[Instrument],
    place: Vector3,
    friction: float | None = None,
    apart: float = 0.02,
    trocar: Vector3 | None = None,
) -> list[Tool]:
    """The tools of a world: waiting in a row along x through `place`, `apart` from each other [m], with the friction of
    the tissue that they meet, or each with its own. With a `trocar` all of them go through it, one after the other [m];
    without, each keeps its own, if it has one."""
    x, y, z = place
    tools = []
    for number, one in enumerate(instruments):
        effects = one.effects
        if friction is not None:
            effects = tuple(replace(e, friction=friction) if isinstance(e, Pushes) else e for e in effects)
        home = (x + apart * (number - 0.5 * (len(instruments) - 1)), y, z)
        tools.append(Tool(number, replace(one, effects=effects, home=home, trocar=trocar or one.trocar)))
    return tools


def probe(radius: float) -> Instrument:
    """A ball on a shaft; the tip is the ball's middle."""
    return Instrument("probe", (Pushes(radius),), icon="probe")


def swab(radius: float = 4.0e-3, holds: float = 5.0e-6) -> Instrument:
    """Gauze on a holder: it presses, soaks up what it touches and wipes; the tip is the ball's middle."""
    return Instrument("swab", (Pushes(radius), Soaks(holds)), label="Swab", icon="probe")


def ball(radius: float) -> Instrument:
    """A ball in the hand."""
    return Instrument("ball", (Pushes(radius),), icon="probe")


def _end(radius: float) -> Pushes:
    """The round end of a bar whose lowest point is the tip."""
    return Pushes(radius, offset=radius)


def _shaft(height: float) -> Part:
    return Part((0.0, 0.0, height), (0.0, 0.0, height + SHAFT_LENGTH), SHAFT_RADIUS)


def hook(power: float = 30.0) -> Instrument:
    """A monopolar L-hook; its foot lies along +x."""
    foot = Part((FOOT, 0.0, WIRE_RADIUS), (0.0, 0.0, WIRE_RADIUS), WIRE_RADIUS)
    wire = Part((0.0, 0.0, WIRE_RADIUS), (0.0, 0.0, WIRE_HEIGHT), WIRE_RADIUS)
    return Instrument(
        "hook",
        (_end(WIRE_RADIUS), Heats(power)),
        label="Monopolar hook",
        icon="hook",
        action="coagulate",
        parts=(foot, wire, _shaft(WIRE_HEIGHT)),
        acts_at=(0.5 * FOOT, 0.0, 0.0),
        solid=monopolar_hook,
    )


BLUNT = 5.0
"""Of a wire, over a blade that is pressed straight in: the work to part cold tissue; estimated."""


def cutting_hook(power: float = 30.0) -> Instrument:
    """A hook that cuts what it has burnt through (`systems.burnt_cutting`), and pushes along what it has not."""
    one = hook(power)
    return replace(one, effects=(*one.effects, Cuts(parts=(0, 1), need=BLUNT)), action="coagulate and cut")


def forceps(power: float = 30.0) -> Instrument:
    """Bipolar forceps. What lies between the jaws is within 1.5 mm of both."""
    thick, _, long = JAW
    jaws = [
        Part((0.5 * side * (thick + JAW_GAP), 0.0, long), (0.5 * side * (thick + JAW_GAP), 0.0, 0.5 * thick),
             0.5 * thick, swing=-side * JAW_OPENING)
        for side in (-1.0, 1.0)
    ]  # fmt: skip
    return Instrument(
        "forceps",
        (_end(0.5 * thick), Heats(power, reach=1.5e-3, bipolar=True)),
        label="Bipolar forceps",
        icon="forceps",
        action="coagulate",
        parts=(*jaws, _shaft(long)),
        solid=bipolar_forceps,
    )


TUBE = (2.0e-3, 2.5e-3)
"""Radius of a tube's end and of its shaft [m]."""
TUBE_END = 0.012
"""Length of the narrower end [m]."""

TUBE_PARTS = (
    Part((0.0, 0.0, TUBE[0]), (0.0, 0.0, TUBE_END), TUBE[0]),
    Part((0.0, 0.0, TUBE_END), (0.0, 0.0, TUBE_END + SHAFT_LENGTH), TUBE[1]),
)


def suction() -> Instrument:
    return Instrument(
        "suction", (_end(TUBE[0]), Sucks()), label="Suction", icon="suction", action="suck", parts=TUBE_PARTS
    )


def irrigator() -> Instrument:
    return Instrument(
        "irrigator", (_end(TUBE[0]), Rinses()), label="Irrigator", icon="water", action="rinse", parts=TUBE_PARTS
    )


def evacuator() -> Instrument:
    """A tube that draws smoke away."""
    return Instrument(
        "evacuator",
        (_end(TUBE[0]), Evacuates()),
        label="Smoke evacuator",
        icon="suction",
        action="evacuate",
        parts=TUBE_PARTS,
    )


CLIP_JAW = (0.75e-3, 0.7e-3, 0.011, 0.42)
"""Of a clip applier's jaws: how far from the middle, radius and length [m], and how far each stands open [rad]: 4 mm at
the tip, so that closing is seen."""


def clip_applier() -> Instrument:
    """Two short jaws that close over a vessel."""
    apart, radius, long, opening = CLIP_JAW
    jaws = [
        Part((side * apart, 0.0, long), (side * apart, 0.0, radius), radius, swing=-side * opening)
        for side in (-1.0, 1.0)
    ]
    return Instrument(
        "clips",
        (_end(radius), Clips()),
        label="Clip applier",
        icon="clip",
        action="clip",
        parts=(*jaws, _shaft(long)),
    )


PIN_NEEDLE = (0.5e-3, 0.014)
"""Radius and length of the needle that marks [m]."""


def pin() -> Instrument:
    """A needle in a holder, to mark a place with. It pushes nothing: it goes in."""
    radius, long = PIN_NEEDLE
    needle = Part((0.0, 0.0, radius), (0.0, 0.0, long), radius)
    return Instrument("pin", (Marks(),), label="Marking pin", icon="pin", action="mark", parts=(needle, _shaft(long)))


BLADE = (0.4e-3, 0.022)
"""Half the thickness of a scalpel's blade, as it is drawn, and its length [m]: a No. 15 has about 0.4 mm and 30 mm."""


def scalpel() -> Instrument:
    """A blade on a handle. Its edge goes from the tip up along the shaft, and cuts whichever way it is drawn: a hand
    turns its blade into the way it goes."""
    radius, long = BLADE
    blade = Part((0.0, 0.0, 0.0), (0.0, 0.0, long), radius)
    return Instrument(
        "scalpel",
        (_end(radius), Cuts()),
        label="Scalpel",
        icon="scalpel",
        action="cut",
        parts=(blade, _shaft(long)),
    )


SCISSOR_JAW = (0.6e-3, 0.018, 0.3)
"""Radius and length of a scissors' jaws [m], and how far each stands open [rad]: 10 mm at the tips."""


def scissors() -> Instrument:
    """Two jaws that cut what is between them as they close."""
    radius, long, opening = SCISSOR_JAW
    jaws = [Part((0.0, 0.0, long), (0.0, 0.0, 0.0), radius, swing=-side * opening) for side in (-1.0, 1.0)]
    return Instrument(
        "scissors",
        (_end(radius), Cuts(parts=(0, 1), closing=True)),
        label="Scissors",
        icon="scissors",
        action="cut",
        parts=(*jaws, _shaft(long)),
    )


GRASPER_JAW = (0.9e-3, 0.9e-3, 0.018, 0.42)
"""Of a grasper's jaws: how far from the middle, radius and length [m], and how far each stands open [rad]: 16 mm
between the tips."""


def grasper() -> Instrument:
    """Two jaws that hold what is between them while they are closed."""
    apart, radius, long, opening = GRASPER_JAW
    jaws = [
        Part((side * apart, 0.0, long), (side * apart, 0.0, radius), radius, swing=-side * opening)
        for side in (-1.0, 1.0)
    ]
    return Instrument(
        "grasper",
        (_end(radius), Grasps()),
        label="Grasper",
        icon="forceps",
        action="grasp",
        parts=(*jaws, _shaft(long)),
    )


NEEDLE_HEIGHT = 2.5e-3
"""Of the middle of a needle's circle above the surface that it is put on [m]: a bite is as deep as the circle below."""
HOLDER_JAW = (0.7e-3, 0.9e-3, 0.014)
"""Of a needle holder's jaws: how far from the middle, radius and length [m]."""


HOLDER_LEAN = 0.8
"""How far it leans away from its needle's plane, over its height: it must not hide the needle."""


def needle_holder(sews: Sews | None = None) -> Instrument:
    """A curved needle with thread; its tip is the middle of the needle's circle, which lies along its x axis."""
    sews = sews or Sews()
    apart, radius, long = HOLDER_JAW
    lean, high = HOLDER_LEAN * long, sews.radius + long
    jaws = [Part((side * apart, lean, high), (side * 0.5 * apart, 0.0, sews.radius), radius) for side in (-1.0, 1.0)]
    shaft = Part((0.0, lean, high), (0.0, lean + HOLDER_LEAN * SHAFT_LENGTH, high + SHAFT_LENGTH), SHAFT_RADIUS)
    return Instrument(
        "needle",
        (Pushes(radius, offset=sews.radius), sews),
        label="Needle holder",
        icon="needle",
        action="turn the needle",
        parts=(*jaws, shaft),
        acts_at=(0.0, 0.0, -NEEDLE_HEIGHT),
    )


def knot_tyer(pull: float = 1.0) -> Instrument:
    """Draws a stitch together, with at most this force [N], and ties it."""
    apart, radius, long, opening = CLIP_JAW
    jaws = [
        Part((side * apart, 0.0, long), (side * apart, 0.0, radius), radius, swing=-side * opening)
        for side in (-1.0, 1.0)
    ]
    return Instrument(
        "knot",
        (_end(radius), Ties(pull=pull)),
        label="Knot tyer",
        icon="knot",
        action="draw the knot",
        parts=(*jaws, _shaft(long)),
    )


STAPLER = (3.0e-3, 0.02)
"""Half the width of a stapler's head and its length [m]."""


def stapler(staples: Staples | None = None) -> Instrument:
    """Puts staples across a wound, along its x axis."""
    half, long = STAPLER
    radius = 1.2e-3
    head = Part((-half, 0.0, radius), (half, 0.0, radius), radius)
    neck = Part((0.0, 0.0, radius), (0.0, 0.0, long), radius)
    return Instrument(
        "stapler",
        (_end(radius), staples or Staples()),
        label="Stapler",
        icon="clip",
        action="staple",
        parts=(head, neck, _shaft(long)),
    )
