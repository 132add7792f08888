"""What no tool can enter."""

from __future__ import annotations

import numpy as np
import pytest

from viscera.device import Device
from viscera.geometry import box_nodes
from viscera.geometry.mesh import TriangleMesh
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import LIVER
from viscera.tissue.params import LatticeParams
from viscera.world.floor import Floor


@pytest.fixture
def floor(cpu: Device) -> Floor:
    """Of a block that is held at one of its upright sides, so tools above it must be looked at."""
    box = box_nodes((0.06, 0.06, 0.03), spacing=0.004)
    held = box.nodes[:, 0] == 0
    tissue = make_lattice(
        cpu, LatticeParams(box.nodes, box.spacing, tuple(box.origin), held, LIVER, stiffest=LIVER.young)
    )
    at = tissue.rest_positions()
    return Floor(_box(at.min(axis=0), at.max(axis=0)), tissue)


def test_what_is_remembered_of_a_tool_changes_no_way(floor: Floor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that wanders near what holds fast, looked at anew in every tick and only where it must be: the same ways,
    to the bit, and most ticks cost no look."""
    rng = np.random.default_rng(3)
    radii = np.array([0.002, 0.0025])
    shape = np.array([[[0.0, 0.0, 0.0], [0.0, 0.0, 0.01]], [[0.0, 0.0, 0.01], [0.01, 0.0, 0.25]]])
    grid = floor.grid()
    assert grid is not None
    middle = grid[1] + 0.5 * grid[2] * np.array(grid[0].shape)
    looks, held = 0, 0
    look = floor._clearance

    def counted(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal looks
        looks += 1
        return look(points)

    monkeypatch.setattr(floor, "_clearance", counted)
    tip, goal, steps = middle + np.array([0.03, 0.0, 0.02]), middle, 4000
    for step in range(steps):
        if step % 500 == 0:  # into what holds fast and away from it in turn
            goal = middle + ([-0.03, 0.0, 0.0] if step % 1000 else [0.03, 0.0, 0.02]) + 0.005 * rng.normal(size=3)
        heading = 2e-4 * (goal - tip) / max(float(np.linalg.norm(goal - tip)), 1e-4) + 1e-5 * rng.normal(size=3)
        before = looks
        way = floor.keep_out(1, tip + shape, radii, heading)
        looked, looks = looks - before, before
        fresh = floor.keep_out(-1, tip + shape, radii, heading)
        floor._clear.pop(-1, None)
        looks = before + looked
        assert np.array_equal(way, fresh)
        held += not np.array_equal(way, heading)
        tip = tip + way
    assert held > 100
    assert looks - 2 * held < steps / 4


def test_only_what_is_held_from_below_lies_on_a_table(cpu: Device) -> None:
    """A sheet that a frame holds at its edge, or a bridge between its ends, has air below it."""
    box = box_nodes((0.06, 0.06, 0.008), spacing=0.004)
    x, y, z = box.nodes.T
    edge = (x == 0) | (x == x.max()) | (y == 0) | (y == y.max())
    for held, lies in ((z == 0, True), ((z == 0) & (x > 1), True), (edge, False), ((x == 0) | (x == x.max()), False)):
        tissue = make_lattice(
            cpu, LatticeParams(box.nodes, box.spacing, tuple(box.origin), held, LIVER, stiffest=LIVER.young)
        )
        at = tissue.rest_positions()
        table = Floor(_box(at.min(axis=0), at.max(axis=0)), tissue).table
        assert table == (pytest.approx(at[:, 2].min()) if lies else -np.inf)


def _box(low: np.ndarray, high: np.ndarray) -> TriangleMesh:
    corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = [tri for a, b, c, d in quads for tri in ((a, b, c), (a, c, d))]
    return TriangleMesh(corners, np.array(triangles, dtype=np.int32), "block")
