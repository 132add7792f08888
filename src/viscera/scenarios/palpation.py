"""Palpation: find the hard nodule under a soft surface by pushing with a ball-tipped probe.

A block of liver-like tissue (96 × 96 × 32 mm, or the user's own closed mesh) rests on its underside. Somewhere below
the surface, where the seed puts it, lies a nodule several times as stiff. Pushing over it takes more force for the
same depth: 8 mm deep 0.48 N when it is easy, 0.36 N when it is medium and 0.29 N when it is hard, against 0.22 N
elsewhere. A pin marks the place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._organ import Top, lay_down, seen_from_above
from viscera.scenarios._tissue import TISSUE, tissue_parameters
from viscera.tissue.burning import with_burn_headroom
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import SOFT_TISSUE
from viscera.tissue.params import LatticeParams
from viscera.tissue.regions import set_relative_young
from viscera.units import KILOPASCAL, MILLI
from viscera.view import ADVANCED, Goal, Level, Parameter
from viscera.world import (
    Contents,
    LiveParameter,
    World,
    block,
    fill,
    looking_down,
    make_organ,
)
from viscera.world.systems.search import Search

SPACING = 0.004
"""[m]"""
CELLS = (24, 24, 8)
"""Of the block: 25 × 25 × 9 = 5 625 masses."""
MESH_MASSES = 5_000
"""About as many for a user's mesh."""

POISSON = 0.4
"""Soft tissue is all but incompressible; 0.4 takes three substeps per tick, 0.45 four."""


@dataclass(frozen=True)
class Nodule:
    stiffness: float
    """Times the tissue's: palpable tumours are several times stiffer than liver."""
    radius: float
    """[m]"""
    depth: float
    """Of its middle below the surface [m]."""


NODULES = {"Easy": Nodule(3.5, 0.012, 0.009), "Medium": Nodule(3.5, 0.010, 0.010), "Hard": Nodule(2.5, 0.010, 0.012)}
"""As stiff as three substeps per tick carry."""
FOUND_WITHIN = 0.010
"""Of a pin beside the middle of the nodule: then it stands in it [m]."""

PROBE_RADIUS = 0.008
"""Two cells of the lattice: a smaller ball slips between the masses and turns springs inside out [m]."""
PROBE_SHARE = 0.25
"""Its radius is at most this share of a user's organ's thickness, and at least the distance between masses."""
HOME_HEIGHT = 0.04
"""Of the waiting probe above the surface [m]."""
WET_FRICTION = 0.1
"""Steel on wet tissue, about 0.02 to 0.2."""

STIFFNESS = Parameter(
    "stiffness",
    "Stiffness",
    "kPa",
    1.0,
    6.0,
    SOFT_TISSUE.young / KILOPASCAL,
    "Young's modulus of the tissue; the nodule is 2.5 to 3.5 times as stiff.",
    group=TISSUE,
)
VISCOSITY = Parameter(
    "viscosity",
    "Viscosity",
    "ms",
    0.1,
    0.3,
    0.2,
    "Stress that follows the rate of strain, over stiffness: damps fast ripples.",
    group=ADVANCED,
)
DIFFICULTY = Parameter(
    "difficulty",
    "Nodule",
    "",
    0.0,
    2.0,
    0.0,
    "How hard it is to find: a smaller, softer and deeper nodule is felt less. Another choice takes the pins out.",
    choices=tuple(NODULES),
    group="Drill",
)
INSTRUCTIONS = """\
A hard nodule is hidden under the surface: find it, and mark it with a pin.
Move the pointer over the tissue; hold the left button (or the space bar) to press straight in, the wheel goes deeper.
Press in many places, equally deep: over the nodule the stiffness is higher. Take smaller steps around the hardest one.
Key 2 takes the marking pin: click over the middle of the nodule. Key 1 takes the probe again.
Then say “Here it is”: the last pin counts, and three are allowed. Each trial hides it elsewhere."""

GOALS = (Goal("found", least=1.0), Goal("pins", most=3.0))
LEVELS = tuple(Level(name, GOALS, {"difficulty": float(number)}) for number, name in enumerate(NODULES))


def build(setting: Setting) -> Contents:
    return build_block(setting, CELLS)


def build_block(setting: Setting, cells: tuple[int, int, int], *, burns: bool = False) -> Contents:
    """With a block of so many cells, or the user's own mesh; with `burns`, of tissue with substeps enough to burn."""
    if setting.mesh is None:
        body = block(*setting.cells(cells, SPACING))
    else:
        body = fill(lay_down(setting.mesh), setting.count(MESH_MASSES))
    positions = body.positions
    low, high = positions.min(axis=0), positions.max(axis=0)
    top = None if setting.mesh is None else seen_from_above(body.mesh)
    nodules = list(NODULES.values())
    stiffest = max(nodules, key=lambda one: (one.stiffness, one.radius))
    middles = [middle(setting.seed, positions, one, top) for one in nodules]
    params = LatticeParams(
        nodes=body.nodes,
        spacing=body.spacing,
        origin=body.origin,
        anchored=positions[:, 2] <= low[2] + 0.6 * body.spacing
        if setting.mesh is None
        else positions[:, 2] <= low[2] + 0.2 * (high[2] - low[2]),
        material=SOFT_TISSUE,
        stiffest=STIFFNESS.maximum * KILOPASCAL,
        viscous_time=VISCOSITY.default * MILLI,
        longest_viscous_time=VISCOSITY.maximum * MILLI,
        poisson=POISSON,
        relative_young=stiffness_around(middles[nodules.index(stiffest)], positions, stiffest),
    )
    tissue = make_lattice(setting.device, with_burn_headroom(params) if burns else params)
    organ = make_organ("tissue", "tissue", body, tissue)
    x, y, z = float(0.5 * (low[0] + high[0])), float(0.5 * (low[1] + high[1])), float(high[2])
    radius = PROBE_RADIUS
    if top is not None:
        x, y = top.thickest().tolist()
        radius = min(PROBE_RADIUS, PROBE_SHARE * top.thickness_at(np.array([x, y])))
    home = (x, y, z + HOME_HEIGHT)
    rest = body.mesh.vertices.astype(np.float32)
    camera, bounds = looking_down([organ], (0.15, -0.95, 0.85))
    search = Search(organ, middles[0], FOUND_WITHIN)
    seed = [setting.seed]

    def hide(value: float) -> None:
        search.hide(middle(seed[0], positions, nodules[round(value)], top))

    hard = nodules[0]

    def harden(value: float) -> None:
        nonlocal hard
        hard = nodules[round(value)]
        set_relative_young(tissue, relative_young(seed[0]))

    def relative_young(one: int) -> NDArray[np.float64]:
        return stiffness_around(middle(one, positions, hard, top), positions, hard)

    def reseed(value: int) -> None:
        seed[0] = value

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that pushes the ball in by its radius (8 mm), slides a little, and lets go, once every two seconds,
        every 10 ms."""
        if tick % 10:
            return []
        phase = 2.0 * math.pi * (tick % 2000) / 2000.0
        beside = 1.25 * radius * math.cos(phase)
        depth = radius * max(0.0, math.sin(phase))
        surface = home[2] - HOME_HEIGHT
        if top is not None:
            surface = top.height_at(rest, x + beside, y)
        return [ToolInput(0, (x + beside, y, surface + radius - depth))]

    return Contents(
        organs=[organ],
        tools=kit.hand_out([kit.probe(radius), kit.pin()], home, WET_FRICTION),
        systems=[search.system()],
        parameters=[LiveParameter(DIFFICULTY, hide, harden), *tissue_parameters(tissue, STIFFNESS, VISCOSITY)],
        levels=LEVELS,
        relative_young=relative_young,
        camera=camera,
        bounds=bounds,
        script=script,
        reseed=reseed,
    )


def middle(seed: int, positions: NDArray[np.float64], nodule: Nodule, top: Top | None = None) -> NDArray[np.float64]:
    """Of the nodule, where the seed puts it: off the rim, under the mass that is uppermost there [m]; in a user's organ
    (`top`) where that is seen, level, and thick enough for any of them."""
    rng = np.random.default_rng(seed)
    low, high = positions.min(axis=0), positions.max(axis=0)
    if top is None:
        place = (low + rng.uniform(0.2, 0.8, 3) * (high - low))[:2]
    else:
        deepest = max(one.depth + one.radius for one in NODULES.values())
        room = top.places[top.thickness[top.level] >= deepest]
        place = room[rng.integers(len(room))] if len(room) else top.thickest()
    aside = np.linalg.norm(positions[:, :2] - place, axis=1)
    column = positions[aside <= aside.min() + 1e-9]
    return column[np.argmax(column[:, 2])] - (0.0, 0.0, nodule.depth)


def stiffness_around(
    centre: NDArray[np.float64], positions: NDArray[np.float64], nodule: Nodule
) -> NDArray[np.float64]:
    """Relative stiffness of each mass, with a nodule there; its rim is soft."""
    distance = np.linalg.norm(positions - centre, axis=1)
    rim = np.clip((nodule.radius - distance) / (0.3 * nodule.radius), 0.0, 1.0)
    return 1.0 + (nodule.stiffness - 1.0) * rim


SCENARIO = Scenario(
    name="palpation",
    title="Palpation",
    summary="Push a probe into soft tissue, feel the force, and find the hidden hard nodule.",
    instructions=INSTRUCTIONS,
    build=build,
)
