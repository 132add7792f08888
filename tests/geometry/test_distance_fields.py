"""Distance fields of instruments: exact inside the grid and outside it, parts that move, tools that are ready."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.tissue.test_lattice import SPACING, lattice
from tests.tissue.test_lattice import box as box_of_nodes
from viscera.device import Device
from viscera.errors import InputError, MeshError
from viscera.geometry import TriangleMesh, box_distance, capsule, capsule_distance, distance_field, icosphere, sample
from viscera.geometry.inspect import inspect_mesh
from viscera.geometry.parts import Joint, PartShape, inverse_transformed, make_tool, rotated, tool_distance, transformed
from viscera.geometry.tools import (
    BEND,
    FOOT,
    JAW,
    JAW_GAP,
    JAW_OPENING,
    WIRE_HEIGHT,
    WIRE_RADIUS,
    bipolar_forceps,
    monopolar_hook,
    tube,
)

RADIUS, LENGTH = 0.5e-3, 10.0e-3
SEGMENTS = 64
SAG = RADIUS * (1.0 - math.cos(math.pi / SEGMENTS) ** 2)
"""How far the mesh of a capsule stays inside it."""

TURN = np.array([math.sin(math.pi / 8), 0.0, 0.0, math.cos(math.pi / 8)])
"""45° about x."""


def wire(turn: np.ndarray) -> tuple[TriangleMesh, np.ndarray]:
    """A capsule, and the half of its axis."""
    mesh = capsule(RADIUS, LENGTH, SEGMENTS)
    return TriangleMesh(rotated(turn, mesh.vertices), mesh.triangles, "wire"), rotated(
        turn, np.array([0, 0, LENGTH / 2])
    )


@pytest.mark.parametrize("spacing", [0.1e-3, 0.2e-3])
def test_a_capsule_is_exact_to_half_a_cell_everywhere_in_the_grid(device: Device, spacing: float) -> None:
    """Also on its axis, where the nearest point jumps: the axis runs through nodes, so the error there is 0.15 cells
    (bilinear √(x² + y²) in a cell beside it), and 0.26 at its ends (trilinear)."""
    mesh, half = wire(np.array([0.0, 0.0, 0.0, 1.0]))
    field = distance_field(mesh, spacing, 1e-3, device)
    span = spacing * (np.array(field.dims) - 1)
    points = field.origin + span * np.random.default_rng(1).random((50_000, 3))
    error = np.abs(sample(field, points)[0] - capsule_distance(points, -half, half, RADIUS))
    assert error.max() < 0.5 * spacing
    assert error.max() < 0.26 * spacing + SAG
    assert field.margin >= 1e-3


@pytest.mark.parametrize("turn", [np.array([0.0, 0.0, 0.0, 1.0]), TURN], ids=["straight", "across the grid"])
def test_far_fields(device: Device, turn: np.ndarray) -> None:
    """Exact: off by the mesh's sag and float32. The document's: never less than the distance, and up to √2 times it.

    Measured worst: 14 % more for a straight wire, 30 % for one across its grid."""
    mesh, half = wire(turn)
    field = distance_field(mesh, 0.25e-3, 1e-3, device)
    points = 0.012 * np.random.default_rng(0).normal(size=(40_000, 3))
    half_box = 0.5 * field.spacing * (np.array(field.dims) - 1)
    points = points[np.any(np.abs(points - field.origin - half_box) > half_box, axis=1)]
    truth = capsule_distance(points, -half, half, RADIUS)
    exact, slope = sample(field, points)
    assert np.abs(exact - truth).max() < 1.1 * SAG + 1e-7
    assert np.linalg.norm(slope, axis=1) == pytest.approx(1.0, abs=1e-5)
    projected = sample(field, points, "projected")[0]
    assert (projected - exact).min() > -1e-7
    worst = (projected / truth).max()
    assert worst < math.sqrt(2.0)
    assert worst == pytest.approx(1.14 if turn[3] == 1.0 else 1.30, abs=0.02)


def test_an_open_tool_is_refused_with_the_place(cpu: Device) -> None:
    """A wire of which the lower end is missing: the hole's place is in the message."""
    mesh = capsule(RADIUS, LENGTH, 16)
    above = mesh.vertices[mesh.triangles][:, :, 2].min(axis=1) > -0.4 * LENGTH
    cut = TriangleMesh(mesh.vertices, mesh.triangles[above], "cut wire")
    with pytest.raises(MeshError, match=r"cut wire is not a closed surface: .*hole"):
        make_tool("broken", [PartShape("wire", cut, 0.2e-3, 1e-3)], cpu)


def test_a_far_field_that_is_not_known_is_refused(cpu: Device) -> None:
    field = distance_field(capsule(RADIUS, LENGTH, 8), 0.5e-3, device=cpu)
    with pytest.raises(InputError, match="far = 'near'"):
        sample(field, [[0.0, 0.0, 0.0]], "near")  # pyright: ignore[reportArgumentType]


def test_parts_move_with_their_tool_and_by_their_joint(cpu: Device) -> None:
    """Two wires, one on a hinge; distances against capsules placed by hand in float64."""
    mesh, half = wire(np.array([0.0, 0.0, 0.0, 1.0]))
    joint = Joint((0.0, 0.0, 0.005), (0.0, 1.0, 0.0), 0.6, 0.1)
    shapes = [PartShape("fixed", mesh, 0.2e-3, 2e-3), PartShape("moving", mesh, 0.2e-3, 2e-3, joint)]
    tool = make_tool("two wires", shapes, cpu)
    place, grip = np.array([0.1, -0.2, 0.3]), 0.25
    tool.place(place, TURN, grip)
    angle = 0.6 + grip * (0.1 - 0.6)
    hinge = np.array([0.0, math.sin(angle / 2), 0.0, math.cos(angle / 2)])
    pivot = np.array(joint.pivot)
    ends = [np.stack([-half, half]), pivot + rotated(hinge, np.stack([-half, half]) - pivot)]
    ends = [place + rotated(TURN, e) for e in ends]
    points = place + 0.02 * np.random.default_rng(4).normal(size=(3_000, 3))
    truth = np.min([capsule_distance(points, a, b, RADIUS) for a, b in ends], axis=0)
    # Inside the grid a trilinear error of h²/(4R) beside a surface of radius R, plus what float32 leaves of 0.4 m.
    assert np.abs(tool_distance(tool, points) - truth).max() < 0.2e-3**2 / (4 * RADIUS) + SAG + 2e-7
    assert transformed(tool.end[1], inverse_transformed(tool.end[1], points)) == pytest.approx(points, abs=1e-15)
    # The frame starts where the tool was when it was made.
    assert (tool.start[0] == (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)).all()


def test_a_tool_of_two_parts_pushes_tissue_as_one_that_is_both(cpu: Device) -> None:
    """Two balls pressed into a block, as parts of a tool and as one mesh: the same field where it counts, so the same
    motion. Their grids differ, by h²/(4R) of 4 mm balls: force and torque about the tip agree to 2 %."""
    nodes = box_of_nodes(15, 15, 7)
    ball = icosphere(0.004, 4)
    places = [np.array([0.009, 0.014, 0.0]), np.array([0.019, 0.014, 0.001])]
    both = TriangleMesh(
        np.concatenate([ball.vertices + place for place in places]),
        np.concatenate([ball.triangles, ball.triangles + len(ball.vertices)]),
        "two balls",
    )
    top, still = 6 * SPACING, (0.0, 0.0, 0.0, 1.0)
    found = []
    for shapes, own in (([ball, ball], places), ([both], [np.zeros(3)])):
        tissue = lattice(cpu, nodes, anchored=nodes[:, 2] == 0, drag=20.0)
        tissue.set_field(0, [distance_field(one, 0.25e-3, device=cpu) for one in shapes])
        for tick in range(200):
            deep = [top + 0.004 - 2e-5 * min(t, 150) for t in (tick, tick + 1)]
            start, end = ([[*(place + np.array([0.0, 0.0, z])), *still] for place in own] for z in deep)
            tissue.set_field_tool(0, np.array(start), np.array(end), 0.0, np.array([[0.0, 0.0, z] for z in deep]))
            tissue.step()
        force, torque = tissue.tool_force(0)
        found.append((np.array(force), np.array(torque), tissue.displacement()))
        tissue.remove_tool(0)
        tissue.step()
        assert not any(tissue.tool_force(0)[0])
    (force, torque, moved), (force_one, torque_one, moved_one) = found
    assert force_one[2] > 0.01
    assert force == pytest.approx(force_one, abs=0.02 * force_one[2])
    assert torque == pytest.approx(torque_one, abs=0.02 * np.abs(torque_one).max())
    assert np.abs(moved - moved_one).max() < 0.02 * np.abs(moved_one).max()


def test_a_tool_of_too_many_parts_is_refused(cpu: Device) -> None:
    tissue = lattice(cpu, box_of_nodes(3, 3, 3))
    field = distance_field(icosphere(0.004, 1), 1e-3, device=cpu)
    with pytest.raises(InputError, match="5 parts"):
        tissue.set_field(0, [field] * 5)


@pytest.mark.parametrize("shapes", [monopolar_hook, bipolar_forceps])
def test_ready_tools_are_closed_and_end_at_their_tip(shapes) -> None:
    for shape in shapes():
        assert inspect_mesh(shape.mesh).faults == []
        assert shape.mesh.vertices[:, 2].min() > -1e-12
    assert min(shape.mesh.vertices[:, 2].min() for shape in shapes()) == pytest.approx(0.0, abs=1e-12)


def test_the_hook_is_a_bent_wire() -> None:
    """Volume: πr² along foot, bend and wire, and a sphere at the ends; 24 segments hold 1.1 % less."""
    hook = monopolar_hook()[0].mesh
    axis = (FOOT - BEND) + 0.5 * math.pi * BEND + (WIRE_HEIGHT - BEND - WIRE_RADIUS)
    volume = math.pi * WIRE_RADIUS**2 * axis + 4.0 / 3.0 * math.pi * WIRE_RADIUS**3
    assert hook.volume == pytest.approx(volume, rel=0.02)
    assert hook.vertices[:, 0].max() == pytest.approx(FOOT + WIRE_RADIUS)


def test_jaws_open_and_close(cpu: Device) -> None:
    tool = make_tool("forceps", bipolar_forceps()[:2], cpu)
    middle = [[0.0, 0.0, 0.5 * JAW[2]]]
    tool.place((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), 1.0)
    assert tool_distance(tool, middle)[0] == pytest.approx(0.5 * JAW_GAP, abs=2e-6)
    tool.place((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), 0.0)
    # Half way along the jaw its inner face has turned away about the hinge.
    away = math.cos(JAW_OPENING) * 0.5 * JAW_GAP + math.sin(JAW_OPENING) * 0.5 * JAW[2]
    flat = box_distance([[away, 0.0, 0.0]], (away + 0.5 * JAW[0], 0.0, 0.0), JAW)[0]
    assert flat == pytest.approx(0.0, abs=1e-12)
    assert tool_distance(tool, middle)[0] == pytest.approx(away, rel=0.05)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: tube([[0, 0, 0]], 1e-3), "path"),
        (lambda: tube([[0, 0, 0], [0, 0, 1]], math.nan), "radius"),
        (lambda: tube([[0, 0, 0], [0, 0, 0]], 1e-3), "stands still"),
        (lambda: Joint((0, 0, 0), (0, 2, 0), 0.1), "axis"),
        (lambda: Joint((0, 0, math.inf), (0, 1, 0), 0.1), "finite"),
    ],
)
def test_impossible_shapes_are_refused(make, named: str) -> None:
    with pytest.raises(InputError, match=named):
        make()


def test_impossible_poses_are_refused(cpu: Device) -> None:
    tool = make_tool("wire", [PartShape("wire", capsule(RADIUS, LENGTH, 8), 0.5e-3, 1e-3)], cpu)
    for position, turn, grip in (
        ((math.nan, 0, 0), (0, 0, 0, 1), 0.0),
        ((0, 0, 0), (0, 0, 0, 0), 0.0),
        ((0, 0, 0), (0, 0, 0, 1), 1.5),
    ):
        with pytest.raises(InputError):
            tool.place(position, turn, grip)
    with pytest.raises(InputError, match="no parts"):
        make_tool("nothing", [], cpu)
