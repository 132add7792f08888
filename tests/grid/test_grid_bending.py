"""Organs that bend in a flow: where their surface is, and what it pushes."""

from __future__ import annotations

from collections.abc import Callable

import grid_reference as reference
import numpy as np
import pytest

from viscera import grid
from viscera.device import Device, Stage, open_device
from viscera.geometry import box, icosphere
from viscera.geometry.mesh import TriangleMesh
from viscera.grid import Grid, GridParams
from viscera.grid.bending import FASTEST, REACH, Bending, bend, make_bending

H, DT = 0.004, 0.02
CELLS = (14, 12, 16)

Distance = Callable[[np.ndarray], np.ndarray]


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda:0", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> Device:
    return open_device(request.param)


def slab() -> TriangleMesh:
    """Wider than the box of cells; its upper side at z = 22 mm."""
    return box((0.2, 0.2, 0.1), (50, 50, 1), centre=(0.028, 0.024, -0.028))


def over_slab(points: np.ndarray) -> np.ndarray:
    return points[..., 2] - 0.022


def made(device: Device, mesh: TriangleMesh, distance: Distance) -> tuple[Grid, Bending, Callable[[], None]]:
    """A flow around a surface that bends, open above, and a function that lets its solids follow."""
    params = GridParams(CELLS, H, dt=DT, open_sides=("+z",), cycles=8)
    flow = grid.make(params, distance(grid.corners(params)), device=device)
    bending = make_bending(flow, mesh)

    def record(stage: Stage) -> None:
        bend(stage, flow, bending)
        grid.follow(stage, flow)

    return flow, bending, device.record(record, work=grid.work(flow)).run


def put(bending: Bending, mesh: TriangleMesh, moved: np.ndarray, before: np.ndarray | float = 0.0) -> None:
    """Its vertices are displaced so, and were so a step ago [m]."""
    bending.now.assign((mesh.vertices + moved).astype(np.float32))
    bending.before.assign((mesh.vertices + before).astype(np.float32))


def distances(flow: Grid) -> np.ndarray:
    return flow.layout.box(flow.still.numpy(), (1, 1, 1))


def test_at_rest_distances_are_those_it_was_made_with(device: Device) -> None:
    flow, _, follow = made(device, slab(), over_slab)
    before = distances(flow).copy()
    follow()
    device.synchronize()
    assert np.array_equal(distances(flow), before)
    assert not any(part.numpy().any() for part in flow.solid)


def test_a_ball_that_is_moved_has_the_distances_of_one_made_there(device: Device) -> None:
    """Exact where distances are straight; between corners a distance from a ball of radius R is off by h²/(8R) along
    each of two directions, and the ball is one of flat triangles. Farther away it has the right sign."""
    centre, radius = np.array([0.028, 0.024, 0.03]), 0.012
    move = np.array([0.003, -0.0024, 0.0035])
    mesh = icosphere(radius, 4, centre)
    flow, bending, follow = made(device, mesh, lambda x: np.linalg.norm(x - centre, axis=-1) - radius)
    put(bending, mesh, move)
    follow()
    device.synchronize()
    places = grid.corners(flow.params)
    rest = np.linalg.norm(places - centre, axis=-1) - radius
    true = np.linalg.norm(places - centre - move, axis=-1) - radius
    # Where they come from lies in the box.
    come = (places - move - H) / (H * np.array(CELLS) - 2.0 * H)
    come_from_box = ((come > 0.0) & (come < 1.0)).all(axis=-1)
    near = (np.abs(rest) < np.linalg.norm(move) + 2.0 * H) & (true > -0.5 * radius) & come_from_box
    assert near.sum() > 300
    assert np.abs(distances(flow) - true)[near].max() < H * H / (4.0 * 0.5 * radius) + 1e-4
    clear = (np.abs(true) > 0.5 * H) & (np.abs(rest) < REACH) & come_from_box
    assert (np.sign(distances(flow)) == np.sign(true))[clear].all()


def test_a_dent_is_there_and_nowhere_else(device: Device) -> None:
    """Against the same rule in float64: each corner over the slab hangs on the point of it below."""
    mesh = slab()
    flow, bending, follow = made(device, mesh, over_slab)

    def dent(points: np.ndarray) -> np.ndarray:
        return -0.007 * np.exp(-((points[..., 0] - 0.03) ** 2 + (points[..., 1] - 0.02) ** 2) / 0.012**2)

    deep = np.zeros_like(mesh.vertices)
    deep[:, 2] = np.where(mesh.vertices[:, 2] > 0.0, dent(mesh.vertices), 0.0)
    put(bending, mesh, deep, deep)
    follow()
    device.synchronize()
    places = grid.corners(flow.params)
    near = np.abs(over_slab(places)) < 0.007 + 2.0 * H
    # Triangles of a length l cut the dent's curvature, 2 · 7 mm / (12 mm)²: by l²/8 of it along each of two directions.
    cut = 2.0 * 0.004**2 / 8.0 * 2.0 * 0.007 / 0.012**2
    assert np.abs(distances(flow) - (over_slab(places) - dent(places)))[near].max() < 1.1 * cut
    rim = near & (np.hypot(places[..., 0] - 0.03, places[..., 1] - 0.02) > 0.032)
    assert np.abs(distances(flow) - over_slab(places))[rim].max() < 5e-5
    assert not any(part.numpy().any() for part in flow.solid)


def test_tissue_that_rises_pushes_its_own_volume_out(device: Device) -> None:
    """All of the floor rises by 0.7 mm in a step: as much goes out above, and nothing is left of divergence."""
    mesh = slab()
    flow, bending, follow = made(device, mesh, over_slab)
    put(bending, mesh, np.array([0.0, 0.0, 0.0007]))
    follow()
    device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow)).run()
    device.synchronize()
    top = grid.velocity(flow)[2][-1]
    assert top.sum() == pytest.approx(0.0007 / DT * CELLS[0] * CELLS[1], rel=1e-3)
    before, after = grid.divergence(flow)
    assert after < 1e-4 * before
    shares, _ = reference.close(reference.open_shares(distances(flow).astype(np.float64)), ("+z",))
    drift = [np.zeros_like(shares[0]), np.zeros_like(shares[1]), np.full_like(shares[2], 0.0007 / DT)]
    speeds = [part.astype(np.float64) for part in grid.velocity(flow)]
    left = reference.divergence(shares, speeds, drift)[distances(flow)[1:, 1:, 1:] > 0.0]
    assert np.abs(left).max() < 1e-4


def test_tissue_that_jumps_has_no_velocity(device: Device) -> None:
    mesh = slab()
    flow, bending, follow = made(device, mesh, over_slab)
    put(bending, mesh, np.array([0.0, 0.0, 1.1 * FASTEST * DT]))
    follow()
    device.synchronize()
    assert not any(part.numpy().any() for part in flow.solid)
