"""Every instrument is felt wherever it presses: alike where tissue is alike, along its normal, and without a click."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import viscera
from viscera import anatomy
from viscera.device import Device
from viscera.geometry.embedding import embed
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.parts import rotated
from viscera.geometry.tools import FOOT
from viscera.instruments import Instrument, Pushes, Tool, kit
from viscera.tissue.materials import LIVER
from viscera.tissue.regions import set_relative_young
from viscera.world import Organ, fill, on_the_table
from viscera.world.organ import organ as make

INSTRUMENTS = [
    kit.probe(0.008), kit.hook(), kit.forceps(), kit.suction(), kit.irrigator(), kit.clip_applier(),
]  # fmt: skip
DEPTH = 0.001
"""[m]"""
ABOVE = 0.0002
"""Where it starts, over the surface [m]."""
COMING, WAITING = 30, 20
"""Ticks in which a tool comes from above the surface, and for which it stays."""


@pytest.fixture(scope="module")
def pad(cpu: Device) -> Organ:
    body = fill(on_the_table(anatomy.pad()), 3_000)
    low = body.positions[:, 2] < 0.0055
    return make("pad", body, cpu, material=LIVER, anchored=low, poisson=0.35, viscous_time=2e-4, drag=20.0)


def places(mesh: TriangleMesh, count: int, edge: float = 0.012) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Random ones on the upper side and off its edge [m], with the normals there; as high above the table within 1 mm,
    as tissue that is thinner is stiffer, and not steep."""
    rng = np.random.default_rng(4)
    corners = mesh.vertices[mesh.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    size = np.linalg.norm(normals, axis=1)
    normals /= size[:, None]
    middle = corners.mean(axis=1)
    low, high = mesh.bounds
    fits = ((middle[:, :2] > low[:2] + edge) & (middle[:, :2] < high[:2] - edge)).all(axis=1) & (normals[:, 2] > 0.95)
    fits &= np.abs(middle[:, 2] - np.median(middle[fits, 2])) < 0.001
    chosen = rng.choice(len(size), count, p=size * fits / (size * fits).sum())
    weights = rng.dirichlet((1.0, 1.0, 1.0), count)
    return np.einsum("pc,pcx->px", weights, corners[chosen]), normals[chosen]


def along(normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quaternion that turns z to the normal."""
    turn = np.array([-normal[1], normal[0], 0.0, 1.0 + normal[2]])
    return turn / np.linalg.norm(turn)


def over(organ: Organ, instrument: Instrument, place: NDArray[np.float64], normal: NDArray[np.float64]) -> Tool:
    """The instrument, upright above a place; tissue at rest."""
    tissue, tool = organ.tissue, Tool(0, instrument)
    still = np.zeros((len(tissue.params.nodes), 3))
    tissue.set_motion(still, still)
    pushes = instrument.effects[0]
    assert isinstance(pushes, Pushes)
    tool.orientation[:] = along(normal)
    tool.jaws = tool.grip = 1.0
    tool.tip[:] = place + (pushes.radius - pushes.offset + ABOVE) * normal
    if instrument.name == "hook":  # its foot lies flat, the middle of it over the place
        tool.tip -= rotated(tool.orientation, np.array([0.5 * FOOT, 0.0, 0.0]))
    tool.go(np.zeros(3), 1e-3)
    return tool


def go(organ: Organ, tool: Tool, way: NDArray[np.float64]) -> None:
    """One tick, in which the tool goes this way [m]."""
    tool.go(way, 1e-3)
    count = tool.bars.count
    organ.tissue.set_bars(0, tool.start[:count], tool.end[:count], tool.bars.radii, 0.0, tool.tips)
    organ.tissue.step()


def press(
    organ: Organ, instrument: Instrument, place: NDArray[np.float64], normal: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The force on an instrument whose end was pressed in by `DEPTH`, without friction [N]."""
    tool = over(organ, instrument, place, normal)
    for tick in range(COMING + WAITING):
        go(organ, tool, -(DEPTH + ABOVE) / COMING * normal * (tick < COMING))
    force = np.array(organ.tissue.tool_force(0)[0])
    organ.tissue.remove_tool(0)
    return force


def felt(
    organ: Organ, instrument: Instrument, points: NDArray[np.float64], normals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Forces at these places [N], none of them missing or askew."""
    forces = np.array([press(organ, instrument, *one) for one in zip(points, normals, strict=True)])
    size = np.linalg.norm(forces, axis=1)
    assert size.min() > 0.4 * size.mean() > 0.01
    tilt = np.degrees(np.arccos(np.clip((forces * normals).sum(axis=1) / size, -1.0, 1.0)))
    assert tilt.max() < 20.0
    return size


@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda one: one.name)
def test_an_instrument_is_felt_everywhere(pad: Organ, instrument: Instrument) -> None:
    felt(pad, instrument, *places(pad.body.mesh, 12))


@pytest.mark.slow
@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda one: one.name)
def test_it_is_felt_alike_in_two_hundred_places(pad: Organ, instrument: Instrument) -> None:
    size = felt(pad, instrument, *places(pad.body.mesh, 200))
    assert size.std() < 0.25 * size.mean()


# --- what is drawn ---

HELD = 0.003
"""How deep it is pressed before it is looked at [m]."""


def sinks(organ: Organ, tool: Tool, near: NDArray[np.float64]) -> float:
    """How deep the surface that is drawn reaches into an instrument, or hovers off it where negative [m]."""
    mesh, params = organ.body.mesh, organ.tissue.params
    held = embed(mesh.vertices, params.nodes, params.origin, params.spacing)
    moved = np.einsum("vc,vcx->vx", held.weights, organ.tissue.displacement()[held.indices])
    corners = (mesh.vertices + moved)[mesh.triangles]
    corners = corners[np.linalg.norm(corners.mean(axis=1) - near, axis=1) < 0.02]
    shares = np.array([(a, b, 8 - a - b) for a in range(9) for b in range(9 - a)]) / 8.0
    points = np.einsum("sc,tcx->tsx", shares, corners).reshape(-1, 3)
    deepest = -np.inf
    for bar, radius in zip(tool.end[: tool.bars.count], tool.bars.radii, strict=True):
        a, axis = bar[0], bar[1] - bar[0]
        along = np.clip((points - a) @ axis / max(axis @ axis, 1e-20), 0.0, 1.0)
        deepest = max(deepest, radius - np.linalg.norm(points - a - along[:, None] * axis, axis=1).min())
    return deepest


@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda one: one.name)
def test_an_instrument_lies_on_the_surface_that_is_drawn(pad: Organ, instrument: Instrument) -> None:
    """Not in it, nor above it, by more than half a millimetre, when the hand holds still."""
    points, normals = places(pad.body.mesh, 4)
    for place, normal in zip(points, normals, strict=True):
        tool = over(pad, instrument, place, normal)
        for tick in range(120):
            go(pad, tool, -(HELD + ABOVE) / 60 * normal * (tick < 60))
        assert abs(sinks(pad, tool, place)) < 0.5e-3
        pad.tissue.remove_tool(0)


# --- how smooth it is ---

SPEED = 0.02
"""Of the hand [m/s]."""
STARTING = 5.0
"""In so many ticks it takes up 1 - 1/e of a new speed: what starts at once is a blow to the tissue's mass."""
PRESSING, SETTLING, SLIDING = 60, 20, 200
"""Ticks: down at that speed, still, sideways; then up."""


def slide(
    organ: Organ, instrument: Instrument, place: NDArray[np.float64], normal: NDArray[np.float64], angle: float
) -> NDArray[np.float64]:
    """The force on an instrument that is pressed in, slides and is lifted, of each tick, without friction [N]."""
    tissue = organ.tissue
    tool = over(organ, instrument, place, normal)
    aside = rotated(tool.orientation, np.array([np.cos(angle), np.sin(angle), 0.0]))
    ways = [(PRESSING, -normal), (SETTLING, 0.0 * normal), (SLIDING, aside), (PRESSING, normal)]
    forces, now = [], np.zeros(3)
    for ticks, way in ways:
        for _ in range(ticks):
            now += (way - now) / STARTING
            go(organ, tool, SPEED * 1e-3 * now)
            forces.append(np.array(tissue.tool_force(0)[0]))
    tissue.remove_tool(0)
    return np.array(forces)


def largest_step(organ: Organ, instrument: Instrument, number: int, at: tuple[NDArray[np.float64], ...]) -> float:
    """From tick to tick while the hand moves steadily, over the strongest force: it begins and ends with nothing, and a
    loose organ swings away."""
    forces = slide(organ, instrument, at[0][number], at[1][number], 2.4 * number)
    steps, strongest = np.linalg.norm(np.diff(forces, axis=0), axis=1), np.linalg.norm(forces, axis=1).max()
    pressed, slid = PRESSING + SETTLING, PRESSING + SETTLING + SLIDING
    unsteady = round(4 * STARTING)
    steady = (steps[: PRESSING - 1], steps[pressed + unsteady : slid - 1], steps[slid + unsteady :])
    return float(max(part.max() for part in steady) / strongest)


@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda one: one.name)
def test_pressing_sliding_and_lifting_are_smooth(pad: Organ, instrument: Instrument) -> None:
    """One step in the sum of the points that a tool touches, or one that is counted all at once, is felt as a click."""
    at = places(pad.body.mesh, 200)
    assert max(largest_step(pad, instrument, number, at) for number in range(3)) < 0.10


@pytest.mark.slow
@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda one: one.name)
def test_they_are_smooth_in_sixty_places(pad: Organ, instrument: Instrument) -> None:
    at = places(pad.body.mesh, 200)
    assert max(largest_step(pad, instrument, number, at) for number in range(60)) < 0.10


# --- on organs ---


@pytest.fixture(scope="module", params=["liver", *(f"{name}.stl" for name in ("liver", "gallbladder", "colon"))])
def organ(cpu: Device, request: pytest.FixtureRequest) -> Organ:
    """Ours, as in its scenario; real ones in that of the probe."""
    if not request.param.endswith(".stl"):
        return viscera.make(request.param, device=cpu, seed=1).organs[0]
    folder = os.environ.get("VISCERA_ANATOMY")
    if folder is None:
        pytest.skip("VISCERA_ANATOMY names no folder of real organs")
    found = viscera.make("palpation", device=cpu, seed=1, mesh=Path(folder) / request.param).organs[0]
    set_relative_young(found.tissue, np.ones(len(found.tissue.params.nodes)))  # without its nodule
    return found


AROUND = 0.025
"""So far from a tumour it is not felt any more [m]."""


def alike(organ: Organ, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Random places on an organ's upper side where tissue is as thick, and as far from what holds it, within 10 % of
    the median, of one material, and where a probe of 8 mm finds room: not in a cleft, nothing above."""
    rng = np.random.default_rng(4)
    corners = organ.body.mesh.vertices[organ.body.mesh.triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    size = np.linalg.norm(normals, axis=1)
    normals /= size[:, None]
    size = size * (normals[:, 2] > 0.7)
    chosen = rng.choice(len(size), 6_000, p=size / size.sum())
    points = np.einsum("pc,pcx->px", rng.dirichlet((1.0, 1.0, 1.0), len(chosen)), corners[chosen])
    normals = normals[chosen]
    middles, held = corners.mean(axis=1), organ.body.positions[organ.tissue.params.anchored]
    room = _nearest(points + 0.008 * normals, middles) > 0.0078
    room &= np.isinf(_until(corners, points + 2e-4 * normals, normals))
    points, normals = points[room], normals[room]
    thick, hold = _until(corners, points - 1e-5 * normals, -normals), _nearest(points, held)
    fits = np.abs(thick / np.median(thick) - 1.0) < 0.1
    other = organ.tissue.params.material_of
    if other is not None:
        fits &= _nearest(points, organ.body.positions[other > 0]) > AROUND
    fits &= np.abs(hold / np.median(hold[fits]) - 1.0) < 0.1
    points, normals = points[fits], normals[fits]
    assert len(points) >= 20
    return points[:count], normals[:count]


@pytest.mark.slow
@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda one: one.name)
def test_organs_are_felt_alike_where_they_are_alike(organ: Organ, instrument: Instrument) -> None:
    size = felt(organ, instrument, *alike(organ, 200))
    assert size.std() < 0.25 * size.mean()


@pytest.mark.slow
@pytest.mark.parametrize("instrument", INSTRUMENTS, ids=lambda one: one.name)
def test_sliding_on_organs_is_smooth(organ: Organ, instrument: Instrument) -> None:
    at = alike(organ, 20)
    assert max(largest_step(organ, instrument, number, at) for number in range(20)) < 0.10


def _nearest(points: NDArray[np.float64], pool: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([np.sqrt(((pool - point) ** 2).sum(axis=1).min()) for point in points])


def _until(corners: NDArray[np.float64], points: NDArray[np.float64], ways: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far each point is from the first triangle on its way [m]: Möller and Trumbore (1997), one ray at a time."""
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    found = np.full(len(points), np.inf)
    for number, (point, way) in enumerate(zip(points, ways, strict=True)):
        across = np.cross(way, second)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = 1.0 / (first * across).sum(axis=1)
            off = point - corners[:, 0]
            turned = np.cross(off, first)
            u, v = scale * (off * across).sum(axis=1), scale * (turned @ way)
            far = scale * (second * turned).sum(axis=1)
            hit = (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (far > 0.0)
        found[number] = far[hit].min(initial=np.inf)
    return found
