"""The screen mesh against closed forms and against a slow reference in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import warp as wp
from numpy.typing import ArrayLike

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.imaging.lens import FAR, Lens
from viscera.imaging.screen_kernels import FRONT_LOW, OPEN
from viscera.imaging.screen_mesh import (
    ScreenMesh,
    ScreenMeshParams,
    binomial,
    build_screen_mesh,
    make_screen_mesh,
    mesh_arrays,
    set_lens,
)
from viscera.view import Camera

FRONT = Camera((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 10.0)
"""Looks at the origin from one metre: 10 degrees show 17.5 cm."""


def lens_of(camera: Camera = FRONT, width: int = 320, height: int = 240) -> Lens:
    return Lens(camera, width, height, near=0.1, far=4.0)


def build(
    device: Device, points: ArrayLike, params: ScreenMeshParams, lens: Lens | None = None, capacity: int | None = None
) -> ScreenMesh:
    points = np.asarray(points, dtype=np.float32).reshape(-1, 3)
    room = max(capacity or len(points), 1)
    padded = np.zeros((room, 3), dtype=np.float32)
    padded[: len(points)] = points
    mesh = make_screen_mesh(params, lens or lens_of(), room, device)
    position = wp.array(padded, dtype=wp.vec3, device=device.warp)
    count = wp.array([len(points)], dtype=wp.int32, device=device.warp)
    build_screen_mesh(Stage(device, 0, 1, None), mesh, position, count)
    return mesh


def plain(radius: float, spacing: float = 4.0, **more: float) -> ScreenMeshParams:
    return ScreenMeshParams(radius, spacing, depth_half=0, silhouette_rounds=0, **more)


def depths(mesh: ScreenMesh) -> np.ndarray:
    """The depth map as kernels left it, inf where it is empty; [row, column]."""
    key = mesh.depth.numpy()
    z = (key ^ ((key >> 31) & 0x7FFFFFFF)).view(np.float32).astype(np.float64)
    z[key == int(FAR)] = np.inf
    return z.reshape(mesh.grid.ny, mesh.grid.nx)


def reference_depth(points: np.ndarray, radius: float, lens: Lens, nx: int, ny: int, spacing: float) -> np.ndarray:
    """(6.3) to (6.7), one particle after the other."""
    z = np.full((ny, nx), np.inf)
    x_node, y_node = spacing * np.arange(nx)[None, :], spacing * np.arange(ny)[:, None]
    matrix = lens.matrix
    for p in np.asarray(points, dtype=np.float64):
        clip = matrix @ np.append(p, 1.0)
        x = lens.width * (0.5 + 0.5 * clip[0] / clip[3])
        y = lens.height * (0.5 + 0.5 * clip[1] / clip[3])
        r = 0.5 * radius * lens.width * np.linalg.norm(matrix[0, :3]) / clip[3]
        inside = 1.0 - ((x_node - x) ** 2 + (y_node - y) ** 2) / r**2
        depth = clip[2] - radius * np.linalg.norm(matrix[2, :3]) * np.sqrt(np.maximum(inside, 0.0))
        z = np.where(inside >= 0.0, np.minimum(z, depth), z)
    return z


def test_projection_and_back_is_exact():
    """(6.8) and (6.9) undo (6.3) and (6.4), for an eye anywhere: float64 leaves 1e-12 of a metre."""
    camera = Camera((0.3, -0.2, 0.5), (0.02, 0.01, -0.03), (0.1, 0.2, 1.0), 47.0)
    lens = Lens(camera, 640, 360, near=0.01, far=3.0)
    points = np.random.default_rng(2).uniform(-0.1, 0.1, (200, 3))
    assert np.abs(lens.unproject(lens.project(points)) - points).max() < 1e-12


def test_lens_agrees_with_trigonometry():
    """A point up by tan(half the field of view) is at the top rim; depth grows by |P₃| per metre."""
    lens = lens_of()
    up = math.tan(math.radians(5.0))
    top, near, far = lens.project(np.array([[0.0, up, 0.0], [0.0, 0.0, 0.01], [0.0, 0.0, -0.01]]))
    assert top[:2] == pytest.approx([160.0, 240.0])
    assert far[2] - near[2] == pytest.approx(0.02 * lens.depth_scale)
    through = np.asarray(lens.camera.position) + 0.7 * lens.directions()[3, 5]
    assert lens.project(through[None])[0, :2] == pytest.approx([5.5, 3.5])


def test_depth_map_equals_the_reference(device: Device):
    """Only nodes within rounding of a rim may differ in whether they are covered; depth is float32: 1e-6 of 1 m."""
    points = np.random.default_rng(3).uniform(-0.05, 0.05, (60, 3))
    mesh = build(device, points, plain(0.008, 3.0), capacity=80)
    ours = depths(mesh)
    slow = reference_depth(points.astype(np.float32), 0.008, lens_of(), mesh.grid.nx, mesh.grid.ny, 3.0)
    both = np.isfinite(ours) & np.isfinite(slow)
    assert (np.isfinite(ours) != np.isfinite(slow)).sum() <= 2
    assert both.sum() > 1000
    # At a rim depth changes like the root of the distance: rounding of 1e-6 there is 1e-3 of a radius.
    difference = np.abs(ours[both] - slow[both])
    assert np.quantile(difference, 0.99) < 1e-6
    assert difference.max() < 3e-3 * 0.008


def test_cuts_equal_the_reference(device: Device):
    """Every silhouette edge is cut; where, is the farthest crossing from its front end of the circles that are nearer
    than the mean of its ends."""
    points = np.random.default_rng(4).uniform(-0.05, 0.05, (40, 3))
    radius = 0.008
    mesh = build(device, points, plain(radius, 4.0))
    lens, nx = lens_of(), mesh.grid.nx
    flat = depths(mesh).ravel()
    screen = lens.project(points.astype(np.float32)) / (4.0, 4.0, 1.0)
    clip_w = 1.0 - points[:, 2]
    reach = radius * lens.focal / clip_w / 4.0
    kind, cut = mesh.kind.numpy(), mesh.cut.numpy()
    limit = 2.0 * radius * lens.depth_scale
    checked = 0
    for edge in range((nx - 1) * mesh.grid.ny):
        j, i = divmod(edge, nx - 1)
        a, b = flat[j * nx + i], flat[j * nx + i + 1]
        step = abs(a - b) if math.isfinite(a) and math.isfinite(b) else (0.0 if a == b else math.inf)
        if abs(step - limit) < 1e-6:
            continue
        assert (kind[edge] != int(OPEN)) == (step > limit)
        if kind[edge] == int(OPEN):
            continue
        low = kind[edge] == int(FRONT_LOW)
        assert low == (a < b)
        best = -1.0
        for (x, y, z), r in zip(screen, reach, strict=True):
            if abs(j - y) <= r and z < 0.5 * (a + b):
                for at in (x - math.sqrt(r * r - (j - y) ** 2), x + math.sqrt(r * r - (j - y) ** 2)):
                    if i <= at <= i + 1:
                        best = max(best, at - i if low else i + 1 - at)
        share = np.int32(cut[edge] >> 32).view(np.float32)
        assert share == pytest.approx(best, abs=2e-3)
        checked += 1
    assert checked > 100


def test_one_ball_has_its_outline_and_its_depth(device: Device):
    """r/d = 0.02. Outline: the circle r_p, which is exact to (r/d)²/2 = 2e-4; its vertices are cuts, so no error of the
    grid. Depth: within 0.385 r²/d of the ball (see `lens`), and cuts of edges lie on the outline."""
    radius = 0.02
    mesh = build(device, [[0.0, 0.0, 0.0]], plain(radius, 4.0))
    position, normal, triangles = mesh_arrays(mesh)
    distance = np.linalg.norm(position, axis=1)
    assert distance.max() <= radius * 1.0001
    assert radius - distance.min() <= 0.385 * radius**2 + 1e-6
    rim = np.abs(position[:, 2]) < 1e-6
    assert rim.sum() >= 40
    assert np.hypot(position[rim, 0], position[rim, 1]) == pytest.approx(np.full(rim.sum(), radius), rel=1e-4)
    # The polygon inside a circle lacks some area: a chord of length s lacks s³/(12 r); chords are a spacing at most √2.
    projected = lens_of().project(position.astype(np.float64))[:, :2]
    corner = projected[triangles]
    u, v = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    area = 0.5 * (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])
    circle = math.pi * (radius * lens_of().focal) ** 2
    assert area.min() > -1e-6
    assert 0.985 < area.sum() / circle <= 1.0
    # Normals point out of the ball, to the eye's side; near the rim the slope is infinite, and a facet cannot show it.
    inner = position[:, 2] > 0.5 * radius
    assert (normal[inner] * position[inner] / radius).sum(axis=1).min() > 0.97


def test_two_drops_at_different_depths_stay_apart(device: Device):
    """Drops overlap on the screen and are 10 radii apart in depth: no triangle connects them, there are two separate
    pieces, and the far one ends where the near one's outline is."""
    radius = 0.01
    mesh = build(device, [[0.0, 0.0, 0.0], [0.011, 0.002, -0.1]], plain(radius, 3.0))
    position, _, triangles = mesh_arrays(mesh)
    z = position[triangles][:, :, 2]
    assert (np.ptp(z, axis=1) < 1.1 * radius).all()
    near, far = z.max(axis=1) > -0.05, z.max(axis=1) <= -0.05
    assert near.sum() > 50
    assert far.sum() > 50
    assert not set(triangles[near].ravel()) & set(triangles[far].ravel())
    circle = lens_of().project(np.array([[0.0, 0.0, 0.0]]))[0, :2]
    seen = lens_of().project(position[np.unique(triangles[far])].astype(np.float64))[:, :2]
    gap = np.linalg.norm(seen - circle, axis=1) - radius * lens_of().focal
    assert gap.min() > -0.01
    assert gap.min() < 0.5


def test_touching_drops_are_one_surface(device: Device):
    """The same two drops at one depth share triangles: the connection is what parts them, not the particles."""
    mesh = build(device, [[0.0, 0.0, 0.0], [0.011, 0.002, 0.0]], plain(0.01, 3.0))
    position, _, triangles = mesh_arrays(mesh)
    x = position[triangles][:, :, 0]
    assert ((x.min(axis=1) < 0.0055) & (x.max(axis=1) > 0.0055)).any()


def test_every_cell_is_covered_once(device: Device):
    """A cell without empty corners is tiled: the areas of its triangles add up to it, whatever is cut."""
    points = np.random.default_rng(5).uniform(-0.06, 0.06, (300, 3))
    mesh = build(device, points, plain(0.012, 4.0))
    finite = np.isfinite(depths(mesh))
    whole = (finite[:-1, :-1] & finite[:-1, 1:] & finite[1:, :-1] & finite[1:, 1:]).ravel()
    count, slots, screen = mesh.count.numpy(), mesh.triangle.numpy().reshape(-1, 6, 3), mesh.screen[0].numpy()
    kind, nx = mesh.kind.numpy() != int(OPEN), mesh.grid.nx
    across, up = kind[: mesh.grid.horizontal].reshape(-1, nx - 1), kind[mesh.grid.horizontal :].reshape(-1, nx)
    cuts = (across[:-1].astype(int) + across[1:] + up[:, :-1] + up[:, 1:]).ravel()
    assert set(np.unique(cuts[whole])) >= {0, 1, 2, 3}
    for cell in np.flatnonzero(whole):
        corner = screen[slots[cell, : count[cell]]][:, :, :2].astype(np.float64)
        u, v = corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
        area = 0.5 * (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])
        assert area.min() > -1e-3
        assert area.sum() == pytest.approx(16.0, abs=1e-3), (cell, cuts[cell])


def test_depth_filter_keeps_a_plane_and_calms_bumps(device: Device):
    """The binomial weights add up to one, so a flat layer of balls keeps its mean depth, and its bumps shrink. It never
    mixes across a silhouette: a layer far behind changes nothing in front."""
    weights = binomial(3)
    assert weights[0] + 2.0 * weights[1:].sum() == pytest.approx(1.0)
    side = np.arange(-8, 9) * 0.008
    layer = np.stack([*(g.ravel() for g in np.meshgrid(side, side)), np.zeros(17 * 17)], axis=1)
    rough = build(device, layer, plain(0.008, 2.0))
    params = ScreenMeshParams(0.008, 2.0, depth_half=6, silhouette_rounds=0)
    calm = build(device, layer, params)
    middle = (slice(40, 80), slice(60, 100))
    z0, z1 = (m.smooth[0].numpy().reshape(m.grid.ny, m.grid.nx)[middle] for m in (rough, calm))
    assert z1.std() < 0.25 * z0.std()
    assert z1.mean() == pytest.approx(z0.mean(), abs=0.1 * float(z0.std()))
    behind = build(device, np.concatenate([layer[:150], layer[150:] - (0.0, 0.0, 0.2)]), params)
    alone = build(device, layer[:150], params)
    z2, z3 = (m.smooth[0].numpy() for m in (behind, alone))
    front = alone.depth.numpy() != int(FAR)
    # Where the first layer is seen in both, equal bits; at its rim the near layer hides what is behind.
    assert np.array_equal(z2[front], z3[front])


def test_silhouette_smoothing_shrinks_the_outline(device: Device):
    """A convex outline moves inwards with every round of averaging, as in Figure 6.4."""
    radii = []
    for rounds in (0, 2, 6):
        params = ScreenMeshParams(0.02, 4.0, depth_half=0, silhouette_rounds=rounds)
        position, _, _ = mesh_arrays(build(device, [[0.0, 0.0, 0.0]], params))
        radii.append(np.hypot(position[:, 0], position[:, 1]).max())
    assert radii[0] > radii[1] > radii[2] > 0.7 * radii[0]


def test_same_bits_each_run_and_on_two_cores(device: Device):
    points = np.random.default_rng(6).uniform(-0.06, 0.06, (500, 3)).astype(np.float32)
    mesh = make_screen_mesh(ScreenMeshParams(0.006), lens_of(), 600, device)
    room = np.zeros((600, 3), dtype=np.float32)
    room[:500] = points
    position = wp.array(room, dtype=wp.vec3, device=device.warp)
    count = wp.array([500], dtype=wp.int32, device=device.warp)
    build_screen_mesh(Stage(device, 0, 1, None), mesh, position, count)
    first = [array.copy() for array in mesh_arrays(mesh)]
    program = device.record(lambda stage: build_screen_mesh(stage, mesh, position, count))
    shuffled = np.random.default_rng(7).permutation(500)
    room[:500] = points[shuffled]
    position.assign(room)
    program.run()
    for a, b in zip(first, mesh_arrays(mesh), strict=True):
        assert np.array_equal(a, b)


def test_recorded_mesh_follows_eye_and_count(device: Device):
    mesh = make_screen_mesh(plain(0.01), lens_of(), 4, device)
    position = wp.array(np.zeros((4, 3), dtype=np.float32), dtype=wp.vec3, device=device.warp)
    count = wp.array([1], dtype=wp.int32, device=device.warp)
    program = device.record(lambda stage: build_screen_mesh(stage, mesh, position, count), work=1)
    program.run()
    assert mesh_arrays(mesh)[0].mean(axis=0)[2] > 0.003
    set_lens(mesh, lens_of(Camera((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 10.0)))
    program.run()
    assert mesh_arrays(mesh)[0].mean(axis=0)[0] > 0.003
    count.zero_()
    program.run()
    assert [len(a) for a in mesh_arrays(mesh)] == [0, 0, 0]


def test_what_cannot_be_seen_is_left_out(device: Device):
    """Behind the eye, beside the picture, not finite: no vertex, no fault."""
    points = [[0.0, 0.0, 2.0], [5.0, 0.0, 0.0], [math.nan, 0.0, 0.0], [0.0, math.inf, 0.0]]
    assert [len(a) for a in mesh_arrays(build(device, points, plain(0.01)))] == [0, 0, 0]


@pytest.mark.parametrize(
    ("field", "value"),
    [("radius", 0.0), ("radius", math.nan), ("spacing", -1.0), ("connection", 0.015), ("depth_half", -1)],
)
def test_params_are_checked(field: str, value: float):
    given: dict[str, Any] = {"radius": 0.01, field: value}
    with pytest.raises(InputError, match=field):
        ScreenMeshParams(**given)


def test_lens_and_capacity_are_checked(cpu: Device):
    with pytest.raises(InputError, match="near"):
        Lens(FRONT, 64, 64, near=0.0)
    with pytest.raises(InputError, match="up"):
        Lens(Camera((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0), 64, 64)
    with pytest.raises(InputError, match="capacity"):
        make_screen_mesh(plain(0.01), lens_of(), 0, cpu)
    with pytest.raises(InputError, match="nodes"):
        make_screen_mesh(plain(0.01, 0.01), lens_of(), 1, cpu)
    mesh = make_screen_mesh(plain(0.01), lens_of(), 1, cpu)
    with pytest.raises(InputError, match="pixels"):
        set_lens(mesh, lens_of(width=100))
