"""Liver: rest a probe on a living liver and feel the heart beat through it.

The organ (ours, or the user's closed mesh) lies as in a patient on the table: x to the patient's left, y towards the
head, z to the front, which is up. It hangs on its back: the bare area of the right lobe grows onto the diaphragm, the
left tip onto its ligament. Where aorta and vena cava pass behind it, it is lifted with every beat. A living liver
moves by 3.5 ± 0.8 mm with the heart (Chung et al., Magn. Reson. Med. 65, 2011, doi 10.1002/mrm.22785). Somewhere under
the front, where the seed puts it, lies a tumour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.inputs import Input, ToolInput
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._tissue import TISSUE, tissue_parameters
from viscera.tissue.heartbeat import Heartbeat
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import LIVER, TUMOUR
from viscera.tissue.params import LatticeParams
from viscera.units import KILOPASCAL, MILLI, MILLIMETRE
from viscera.view import ADVANCED, Goal, Level, Parameter
from viscera.world import (
    Body,
    Contents,
    LiveParameter,
    World,
    fill,
    load_organ,
    looking_down,
    make_organ,
    on_the_table,
)
from viscera.world.systems.search import Search

MASSES = 7_200
"""About as many; 6.4 mm apart in a liver of 1.5 L. Pressed in by 1 mm at 200 alike places, a rod of 5 mm feels forces
whose spread is 21 % of their mean; with 6 000 masses it was 27 %."""
POISSON = 0.4
"""Of tissue that hardly changes its volume; more would need more than two substeps per tick."""

TUMOUR_RADIUS = 0.015
"""[m]"""
TUMOUR_DEPTHS = (0.016, 0.020)
"""Of its middle below the front [m]."""

PROBE_RADIUS = 0.012
"""About two cells of the lattice, and as broad as two fingertips [m]."""
HOME_HEIGHT = 0.04
"""Of the waiting probe above the surface [m]."""

BARE_AREA = (0.52, 0.30)
"""Of the back, what lies to the right of this share of the width and behind this share of the depth."""
LEFT_LIGAMENT = 0.93
"""Share of the width beyond which the left tip is held."""
GREAT_VESSELS = 0.60
"""Share of the width at which aorta and vena cava pass."""
VESSELS_REACH = 0.025
"""Over which their push falls off to 1/e to either side [m]."""
VESSELS_PART = (0.40, 0.65)
"""They touch the back above this share of the height and behind this share of the depth."""

STIFFNESS = Parameter(
    "stiffness",
    "Stiffness",
    "kPa",
    1.0,
    7.0,
    LIVER.young / KILOPASCAL,
    "Young's modulus of the liver; healthy ones have 2 to 7. The tumour is four times as stiff.",
    group=TISSUE,
)
VISCOSITY = Parameter(
    "viscosity",
    "Viscosity",
    "ms",
    0.1,
    0.2,
    0.2,
    "Stress that follows the rate of strain, over stiffness: damps fast ripples.",
    group=ADVANCED,
)
HEART_RATE = Parameter("heart_rate", "Heart rate", "1/min", 40.0, 160.0, 70.0, "Beats per minute.", group="Patient")
PULSE = Parameter(
    "pulse",
    "Pulse",
    "mm",
    0.0,
    4.0,
    2.5,
    "How far the great vessels lift the liver's back with each beat; 0 stops the heart.",
    group="Patient",
)

INSTRUCTIONS = """\
Move the pointer over the liver: the probe follows its surface.
Hold the left button (or the space bar) to press; the wheel, turned away from you, goes deeper.
Rest the probe lightly and hold still: the force rises and falls with the heart.
Change the heart rate and watch the force follow.
Towards the left edge of the picture (the patient's right) the beat fades.
One spot is harder: find the tumour. Key 2 takes the marking pin: click over it, then say “Here it is”. Every trial
hides it elsewhere."""

GOALS = (Goal("found", least=1.0), Goal("pins", most=3.0))
LEVELS = (
    Level("Standard", GOALS, {"pulse": PULSE.default, "heart_rate": HEART_RATE.default}),
    Level("Racing heart", GOALS, {"pulse": PULSE.maximum, "heart_rate": 120.0}),
    Level(
        "Expert",
        (GOALS[0], Goal("pins", most=1.0), Goal("time", most=180.0)),
        {"pulse": PULSE.maximum, "heart_rate": 120.0},
    ),
)
"""A stronger and faster beat hides what is a little harder. The limit of time is our own choice."""


def build(setting: Setting) -> Contents:
    masses = setting.count(MASSES)
    body = _standard(masses) if setting.mesh is None else _from_mesh(setting.mesh, masses)
    positions = body.positions
    held, push = _attachments(body)
    driven = push > 0.0
    tumour = _tumour_middle(setting.seed, body)
    tissue = make_lattice(
        setting.device,
        LatticeParams(
            nodes=body.nodes,
            spacing=body.spacing,
            origin=body.origin,
            anchored=held | driven,
            material=LIVER,
            further=(TUMOUR,),
            material_of=_tumour(tumour, body),
            stiffest=STIFFNESS.maximum * KILOPASCAL,
            viscous_time=VISCOSITY.default * MILLI,
            longest_viscous_time=VISCOSITY.maximum * MILLI,
            poisson=POISSON,
            driven=driven,
            drive_direction=push[:, None] * np.array([0.0, 0.0, 1.0]),
        ),
    )
    heart = Heartbeat(tissue)
    organ = make_organ("liver", "liver", body, tissue)
    x, y, z = _over_the_vessels(body.mesh, positions[driven])
    camera, bounds = looking_down([organ], (0.05, -0.65, 0.92))

    def set_rate(value: float) -> None:
        heart.rate = value / 60.0

    def set_pulse(value: float) -> None:
        heart.amplitude = value * MILLIMETRE

    def script(world: World, tick: int) -> Iterable[Input]:
        """A hand that rests the probe 6 mm deep over the vessels for two beats, then pushes 12 mm deep, every 10 ms."""
        if tick % 10:
            return []
        push = 0.006 * math.sin(math.pi * ((tick % 3000) - 2000) / 1000.0) if tick % 3000 > 2000 else 0.0
        return [ToolInput(0, (x, y, (z + HOME_HEIGHT) - HOME_HEIGHT + PROBE_RADIUS - 0.006 - push))]

    hidden = tumour is not None
    instruments = [kit.probe(PROBE_RADIUS), *([kit.pin()] if hidden else [])]
    return Contents(
        organs=[organ],
        tools=kit.hand_out(instruments, (x, y, z + HOME_HEIGHT), LIVER.friction),
        systems=[Search(organ, tumour, TUMOUR_RADIUS).system()] if hidden else [],
        levels=LEVELS if hidden else (),
        force_scale=0.05,
        parameters=[
            LiveParameter(HEART_RATE, tissue=set_rate),
            LiveParameter(PULSE, tissue=set_pulse),
            *tissue_parameters(tissue, STIFFNESS, VISCOSITY),
        ],
        camera=camera,
        bounds=bounds,
        motions=[heart],
        script=script,
    )


@cache
def _standard(masses: int) -> Body:
    from viscera.anatomy import liver

    return fill(on_the_table(liver()), masses)


def _from_mesh(path: Path, masses: int) -> Body:
    """A mesh in patient coordinates (DICOM: x to the left, y to the back, z to the head), laid on its back."""
    mesh = load_organ(path)
    x, y, z = mesh.vertices.T
    return fill(on_the_table(replace(mesh, vertices=np.stack([x, z, -y], axis=1))), masses)


def _attachments(body: Body) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which masses are held fast, and how far each is lifted by the vessels (1 for all the way); disjoint."""
    positions, back = body.positions, _ends_of_columns(body.nodes, last=False)
    low, high = body.mesh.bounds
    share = (positions - low) / (high - low)
    bare = (share[:, 0] < BARE_AREA[0]) & (share[:, 2] < BARE_AREA[1])
    held = back & (bare | (share[:, 0] > LEFT_LIGAMENT))
    off = (positions[:, 0] - low[0] - GREAT_VESSELS * (high[0] - low[0])) / VESSELS_REACH
    push = np.exp(-(off**2))
    touched = (share[:, 1] > VESSELS_PART[0]) & (share[:, 2] < VESSELS_PART[1])
    lifted = back & ~held & touched & (push > 0.2)
    if not (held.any() and lifted.any()):
        raise InputError(
            f"{body.mesh.name} has no back to hold it by.",
            "Give a liver in patient coordinates: x to the left, y to the back, z to the head.",
        )
    return held, np.where(lifted, push, 0.0)


def _ends_of_columns(nodes: NDArray[np.int32], *, last: bool) -> NDArray[np.bool_]:
    """Masses that are the lowest of their column along z, or the highest."""
    order = np.lexsort((nodes[:, 2], nodes[:, 1], nodes[:, 0]))
    new = np.any(np.diff(nodes[order, :2], axis=0) != 0, axis=1)
    ends = np.append(new, True) if last else np.append(True, new)
    found = np.zeros(len(nodes), dtype=np.bool_)
    found[order[ends]] = True
    return found


def _tumour_middle(seed: int, body: Body) -> NDArray[np.float64] | None:
    """Where the seed puts a tumour: under the front, off the rim [m]; None in an organ that has no such place."""
    rng = np.random.default_rng(seed)
    positions = body.positions
    low, high = body.mesh.bounds
    inner = np.all((positions > low + 0.035)[:, :2] & (positions < high - 0.035)[:, :2], axis=1)
    thick = positions[:, 2] > low[2] + 0.6 * (high[2] - low[2])
    front = np.flatnonzero(_ends_of_columns(body.nodes, last=True) & inner & thick)
    if len(front) == 0:
        return None
    return positions[rng.choice(front)] - (0.0, 0.0, rng.uniform(*TUMOUR_DEPTHS))


def _tumour(middle: NDArray[np.float64] | None, body: Body) -> NDArray[np.uint8]:
    """Number of each mass's material: 1 in the tumour."""
    if middle is None:
        return np.zeros(len(body.positions), dtype=np.uint8)
    return (np.linalg.norm(body.positions - middle, axis=1) < TUMOUR_RADIUS).astype(np.uint8)


def _over_the_vessels(mesh: TriangleMesh, lifted: NDArray[np.float64]) -> tuple[float, float, float]:
    """The highest point of the surface near the line from the lifted masses to the front [m]."""
    off = np.linalg.norm(mesh.vertices[:, :2] - lifted.mean(axis=0)[:2], axis=1)
    near = mesh.vertices[off <= max(0.02, float(off.min()))]
    x, y, z = near[np.argmax(near[:, 2])].tolist()
    return x, y, z


SCENARIO = Scenario(
    name="liver",
    title="Liver",
    summary="Rest a probe on a living liver, feel the heart beat through it, and find the tumour.",
    instructions=INSTRUCTIONS,
    build=build,
)
