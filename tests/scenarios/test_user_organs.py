"""A user's organ on the table: it lies flat, and lines, wounds and hands find room on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import viscera
from viscera.anatomy import gallbladder
from viscera.device import Device
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.primitives import icosphere
from viscera.inputs import ToolInput
from viscera.instruments import Pushes
from viscera.scenarios._organ import MARGIN, Top, lay_down, seen_from_above
from viscera.scenarios.bleeding import beside, bile_duct, open_vessels
from viscera.scenarios.bleeding.dressing import incision_edges
from viscera.scenarios.cautery.drill import line_points
from viscera.scenarios.palpation import PROBE_RADIUS
from viscera.world import World, fill

RING, TUBE = 0.06, 0.018
"""Radii of a ring whose middle is empty, as a colon's is [m]."""


def ring(around: int = 48, across: int = 20) -> TriangleMesh:
    turn, roll = np.meshgrid(
        np.linspace(0.0, 2.0 * np.pi, around, endpoint=False),
        np.linspace(0.0, 2.0 * np.pi, across, endpoint=False),
        indexing="ij",
    )
    reach = RING + TUBE * np.cos(roll)
    points = np.stack([reach * np.cos(turn), reach * np.sin(turn), TUBE * np.sin(roll)], axis=-1).reshape(-1, 3)
    i, j = (axis.ravel() for axis in np.meshgrid(np.arange(around), np.arange(across), indexing="ij"))
    a, b = i * across + j, (i + 1) % around * across + j
    c, d = (i + 1) % around * across + (j + 1) % across, i * across + (j + 1) % across
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return TriangleMesh(points, triangles.astype(np.int32), name="ring")


def saved(mesh: TriangleMesh, path: Path) -> Path:
    import trimesh

    trimesh.Trimesh(1e3 * mesh.vertices, mesh.triangles, process=False).export(path)
    return path


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Top:
    return seen_from_above(lay_down(saved(ring(), tmp_path_factory.mktemp("organs") / "ring.stl")))


def from_tube(places: Iterable[object]) -> np.ndarray:
    """Distance of places of the table from the ring's middle line [m]."""
    points = np.atleast_2d(np.asarray(places))[:, :2]
    return np.abs(np.hypot(*points.T) - RING)


# --- how it lies ---


@pytest.mark.parametrize("thin", [0, 1, 2])
def test_an_organ_lies_on_its_broad_side(thin: int, tmp_path: Path) -> None:
    flat = icosphere(0.05, 3)
    size = np.ones(3)
    size[thin] = 0.4
    laid = lay_down(saved(replace(flat, vertices=flat.vertices * size), tmp_path / "flat.stl"))
    assert laid.size == pytest.approx([0.1, 0.1, 0.04], rel=0.05)
    assert laid.volume == pytest.approx(flat.volume * 0.4, rel=0.01)  # turned, not mirrored
    assert laid.bounds[0][2] == pytest.approx(0.0, abs=1e-9)


def test_what_stands_by_itself_stays_upright(tmp_path: Path) -> None:
    egg = icosphere(0.05, 3)
    egg = replace(egg, vertices=egg.vertices * (1.1, 0.95, 1.0))
    assert lay_down(saved(egg, tmp_path / "egg.stl")).size == pytest.approx(egg.size, rel=1e-4)


# --- what is seen from above ---


def test_height_and_thickness_of_a_ring(top: Top) -> None:
    """z = r ± √(r² − d²) over the middle line of a tube of radius r, to within two columns."""
    i, j = np.nonzero(~np.isnan(top.height))
    off = from_tube(top.origin + top.step * np.stack([i, j], axis=1))
    inner = off < 0.8 * TUBE
    half = np.sqrt(TUBE**2 - off[inner] ** 2)
    assert top.height[i, j][inner] == pytest.approx(TUBE + half, abs=2.0 * top.step)
    assert top.thickness[i, j][inner] == pytest.approx(2.0 * half, abs=2.5 * top.step)


def test_places_to_work_are_on_the_ring_and_level(top: Top) -> None:
    assert len(top.places) > 100
    # sin 35° of the radius, and a margin for the columns.
    assert from_tube(top.places).max() < 0.75 * TUBE
    assert from_tube([top.thickest()])[0] < 0.4 * TUBE
    assert top.thickness_at(top.thickest()) > 1.7 * TUBE


def test_only_the_upper_side_is_seen(top: Top) -> None:
    assert top.mesh.vertices[top.vertices, 2].min() > 0.5 * TUBE
    x, y = top.thickest().tolist()
    assert top.on_surface(np.array([x, y]))[2] == pytest.approx(2.0 * TUBE, abs=0.1 * TUBE)
    vertices = top.mesh.vertices.astype(np.float32)
    assert top.height_at(vertices, x, y) == pytest.approx(2.0 * TUBE, abs=0.1 * TUBE)
    lifted = (vertices + np.array([0.0, 0.0, 0.01])).astype(np.float32)
    assert top.height_at(lifted, x, y) == pytest.approx(top.height_at(vertices, x, y) + 0.01, abs=1e-5)


def test_what_stands_in_the_way_hides(top: Top) -> None:
    """A wall of the grid's full height before the ring: nothing close behind it is seen from the front."""
    height = top.height.copy()
    height[:, 0] = 0.3
    hidden = Top(top.mesh, top.origin, top.step, height, top.thickness)
    assert top.visible[:, 1:20].any()
    assert not hidden.visible[:, 1:20].any()


# --- the drills on it ---


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_drills_are_on_the_organ(top: Top, seed: int) -> None:
    body = fill(top.mesh, 400)
    line = line_points(body, seed, top)
    assert from_tube(line).max() < TUBE + 0.5 * MARGIN
    assert np.linalg.norm(np.diff(line, axis=0), axis=1).sum() > 0.03
    vessels = open_vessels(body, seed, top)
    duct = bile_duct(body, vessels, top)
    assert from_tube([wound.point for wound in (*vessels, duct)]).max() < 0.8 * TUBE
    assert all(wound.point[2] > TUBE for wound in (*vessels, duct))
    assert np.linalg.norm(np.subtract(vessels[0].point, vessels[1].point)) > 0.03
    assert from_tube([beside(body, vessels[0], top)])[0] < 0.8 * TUBE
    edges = incision_edges(top.mesh, top.longest_line)
    assert len(edges) >= 2
    assert from_tube(top.mesh.vertices[edges.ravel()]).max() < TUBE
    assert (edges[1:, 1] == edges[:-1, 0]).all()  # one way, from its end back to its start


def press(mesh: Path, cpu: Device) -> World:
    world = viscera.make("palpation", device=cpu, mesh=mesh, detail=0.25)
    for _ in range(500):
        for one in world.script(world.tick):
            world.apply(one)
        world.step()
    return world


def test_the_hand_reaches_an_organ_with_an_empty_middle(tmp_path: Path, cpu: Device) -> None:
    world = press(saved(ring(), tmp_path / "ring.stl"), cpu)
    assert world.peak_force > 0.01
    [aim] = world.script(0)
    assert isinstance(aim, ToolInput)
    assert np.hypot(*np.subtract(aim.position[:2], world.hands[0].instrument.home[:2])) < 0.03
    x, y, _ = aim.position
    assert from_tube([(x, y, TUBE)])[0] < 0.5 * TUBE


def test_the_probe_fits_a_small_organ(tmp_path: Path, cpu: Device) -> None:
    bag = gallbladder(edge=0.003)
    world = press(saved(replace(bag, vertices=0.6 * bag.vertices), tmp_path / "bag.stl"), cpu)
    pushes = world.hands[0].instrument.effect(Pushes)
    assert pushes is not None
    thickness = float(world.organs[0].body.mesh.size.min())
    assert pushes.radius < PROBE_RADIUS
    assert pushes.radius <= max(0.25 * thickness, world.organs[0].body.spacing)
    assert world.peak_force > 0.01
