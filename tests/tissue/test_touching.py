"""Contact with points of a surface, against a float64 reference; and that any number of cores gives the same bits."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from viscera.device import Device, Stage, open_device
from viscera.geometry.primitives import rounded_slab
from viscera.geometry.sampling import bundle, spread_points
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.touch_kernels import STEEPEST, STEPS
from viscera.tissue.touching import SOFT, record_near, record_touch, touch_surface

Array = NDArray[np.float64]
SPACING = 0.004


def block(device: Device, cells: tuple[int, int, int], held: int = 0, **more: Any) -> Tissue:
    """Held below, up to this layer of masses, its corner at the origin; its surface is half a cell outside its
    outermost masses."""
    axes = [np.arange(count + 1, dtype=np.int32) for count in cells]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    params = LatticeParams(
        nodes=nodes, spacing=SPACING, origin=(0.0, 0.0, 0.0), anchored=nodes[:, 2] <= held,
        material=Material("jelly", 3_000.0, 1_060.0), stiffest=3_000.0, poisson=0.25, viscous_time=1e-4,
        longest_viscous_time=1e-4, drag=5.0, **more,
    )  # fmt: skip
    tissue = make_lattice(device, params)
    size = (np.array(cells) + 1.0) * SPACING
    centre = 0.5 * size - 0.5 * SPACING
    touch_surface(tissue, rounded_slab(size, centre=(float(centre[0]), float(centre[1]), float(centre[2]))))
    return tissue


# --- the reference ---


def from_axis(x: Array, ends: Array) -> Array:
    axis = ends[1] - ends[0]
    share = np.clip((x - ends[0]) @ axis / max(float(axis @ axis), 1e-20), 0.0, 1.0)
    return x - ends[0] - share * axis


def contact(
    tissue: Tissue, u: Array, v: Array, starts: Array, ends: Array, radii: Array, friction: float, dt: float
) -> tuple[Array, Array, Array, Array, int]:
    """One substep of contact that ends with u and v: both as they are after it, and force and torque about the first
    end of the first bar. The bars go from `starts` to `ends` in it."""
    samples = tissue.need_touching().samples
    corners = samples.corners
    node_of = {int(slot): node for node, slot in enumerate(tissue.layout.slot_of_node)}
    places = samples.places.numpy().reshape(-1, corners)
    weights = samples.weights.numpy().reshape(-1, corners).astype(np.float64)
    rest, normals = samples.rest.numpy().astype(np.float64), samples.normal.numpy().astype(np.float64)
    begin, thickest = samples.begin.numpy(), samples.thickest.numpy()
    owner = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    free = ~tissue.params.anchored
    inverse = np.where(free, 1.0 / tissue.mass, 0.0)
    p = u + tissue.viscous_time * v

    @cache
    def turn(number: int) -> Array:
        return turned(samples, number, p, node_of)

    reach = radii.max() + 0.004
    near = [s for s in range(len(rest)) if min(np.linalg.norm(from_axis(rest[s], bar)) for bar in ends) < reach]
    met = []
    for s in near:
        at = [node_of.get(int(slot), -1) for slot in places[s]]
        x, speed = rest[s] + weights[s] @ u[at], weights[s] @ v[at]
        best: tuple[float, Array, int] = (0.0, np.zeros(3), -1)
        for bar, radius in enumerate(radii):
            if radius >= thickest[s]:
                continue
            away = from_axis(x, ends[bar])
            depth, out = radius - np.linalg.norm(away), away / np.linalg.norm(away)
            if radius < SPACING:
                out = -turn(int(owner[s])) @ normals[s]
                depth = along_normal(x, speed, starts[bar], ends[bar], radius, out, dt)
            if depth > best[0]:
                best = depth, out, bar
        if best[2] >= 0:
            met.append((s, at, x, speed, *best))
    share = np.zeros(len(u))
    for s, at, _x, _speed, depth, *_ in met:
        np.add.at(share, at, min(depth / SOFT, 1.0) * np.abs(weights[s]))
    push, shift, force, torque = np.zeros_like(u), np.zeros_like(u), np.zeros(3), np.zeros(3)
    for s, at, x, speed, depth, out, bar in met:
        part = min(depth / SOFT, 1.0)
        a, b = starts[bar], ends[bar]
        axis = b[1] - b[0]
        along = np.clip((x - b[0]) @ axis / max(float(axis @ axis), 1e-20), 0.0, 1.0)
        relative = speed - ((1.0 - along) * (b[0] - a[0]) + along * (b[1] - a[1])) / dt
        approach = min(float(relative @ out), 0.0)
        sliding = relative - (relative @ out) * out
        grip = min(-friction * approach / max(float(np.linalg.norm(sliding)), 1e-12), 1.0)
        change = part * (-approach * out - grip * sliding)
        move = part * (depth * out - dt * grip * sliding)
        count = np.where(inverse[at] > 0.0, inverse[at], samples.stray)
        whole = share[at] + (1.0 - part) * np.abs(weights[s])
        yields = float((np.abs(weights[s]) * whole * count).sum())
        if not (free[at] & (weights[s] != 0.0)).any():
            continue
        np.add.at(push, at, weights[s][:, None] * change / yields * inverse[at][:, None])
        np.add.at(shift, at, weights[s][:, None] * move / yields * inverse[at][:, None])
        keep = 1.0 / (1.0 + 5.0 * dt)
        felt = -change / yields / (dt * keep)
        force += felt
        torque += np.cross(x + depth * out - ends[0][0], felt)
    return u + shift, v + push, force, torque, len(met)


def along_normal(x: Array, speed: Array, start: Array, end: Array, radius: float, out: Array, dt: float) -> float:
    """How far a point goes along the surface's normal, into the body, until it has left a thin bar."""
    away, before = from_axis(x, end), from_axis(x - dt * speed, start)
    inside, depth, height = float(np.linalg.norm(away)) < radius, 0.0, -float(away @ out)
    most = float(STEEPEST) * (radius - float(np.linalg.norm(away)))
    if not inside and height > 0.0 and float(before @ out) > 0.0:
        path = away - before
        t = np.clip(-(before @ path) / (path @ path), 0.0, 1.0)
        if np.linalg.norm(before + t * path) < radius:
            inside, depth, most = True, height, 2.0 * radius
    for _ in range(int(STEPS) if inside else 0):
        depth += max(radius - float(np.linalg.norm(from_axis(x + depth * out, end))), 0.0)
    return min(depth, most) if inside else 0.0


def turned(samples: Any, number: int, p: Array, node_of: dict[int, int]) -> Array:
    """The smallest rotation that takes what was beneath a bundle to where it is."""
    corners = samples.corners
    middle = int(samples.middle.numpy()[number])

    def moved(places: Any, weights: Any, row: int) -> Array:
        rows = slice(row * corners, (row + 1) * corners)
        at = [node_of.get(int(slot), -1) for slot in places.numpy()[rows]]
        return weights.numpy()[rows].astype(np.float64) @ p[at]

    rest = samples.under.numpy()[number].astype(np.float64)
    now = rest + moved(samples.under_places, samples.under_weights, number)
    now -= moved(samples.places, samples.weights, middle)
    a, b = rest / np.linalg.norm(rest), now / np.linalg.norm(now)
    cross = np.cross(a, b)
    k = np.array([[0.0, -cross[2], cross[1]], [cross[2], 0.0, -cross[0]], [-cross[1], cross[0], 0.0]])
    return np.eye(3) + k + k @ k / (1.0 + a @ b)


# --- tests ---

TOP = 4.5 * SPACING
BARS = {
    "thick": (np.array([[[0.0123, 0.0117, TOP + 0.0035]] * 2]), np.array([0.0048])),
    "thin": (np.array([[[0.0083, 0.0117, TOP + 0.0001], [0.0153, 0.0131, TOP + 0.0001]]]), np.array([0.0007])),
    "both": (np.array([[[0.0083, 0.0117, TOP + 0.0001], [0.0153, 0.0131, TOP + 0.0001]],
                       [[0.0153, 0.0131, TOP + 0.0022], [0.0153, 0.0131, TOP + 0.05]]]), np.array([0.0007, 0.0025])),
}  # fmt: skip


@pytest.mark.parametrize("shape", BARS)
def test_a_substep_of_contact_is_that_of_the_reference(device: Device, shape: str) -> None:
    """Positions in float32 are good to 1e-9 m here, and depths of 0.1 mm so to 1e-5."""
    tissue = block(device, (6, 6, 4))
    ends, radii = BARS[shape]
    rng = np.random.default_rng(3)
    free = (~tissue.params.anchored)[:, None]
    u = 1e-4 * rng.normal(size=(len(free), 3)) * free
    v = 0.02 * rng.normal(size=(len(free), 3)) * free
    # As if the tick were one substep: a tick of one step, the last of which is looked at.
    constants = tissue.constants
    substeps, constants.substeps = constants.substeps, 1
    starts = ends + np.array([1e-5, 0.0, 4e-5])
    tissue.set_motion(u, v)
    u, v = tissue.displacement().astype(np.float64), tissue.velocities().astype(np.float64)
    tissue.set_bars(0, starts, ends, radii, 0.3, np.array([starts[0, 0], ends[0, 0]]))
    here = tissue.state.position[tissue.current]

    def record(stage: Stage) -> None:
        for port in (tissue.state.live, tissue.state.tools, tissue.state.poses, tissue.state.clock):
            stage.upload(port)
        stage.clear(tissue.state.force)
        record_near(stage, tissue, here)
        record_touch(stage, tissue, 0, here)
        stage.download(tissue.state.force)

    device.record(record).run()
    device.synchronize()
    raw = tissue.state.force.host[:6].astype(np.float64)
    u2, v2, force, torque, met = contact(tissue, u, v, starts, ends, radii, 0.3, constants.dt)
    constants.substeps = substeps
    assert met > 5
    moved = np.abs(u2 - u).max()
    assert moved > 1e-5
    np.testing.assert_allclose(tissue.displacement(), u2, atol=2e-4 * moved)
    np.testing.assert_allclose(tissue.velocities(), v2, atol=2e-4 * np.abs(v2 - v).max())
    np.testing.assert_allclose(raw[:3] / 2.0**30, force, atol=1e-3 * float(np.linalg.norm(force)))
    np.testing.assert_allclose(raw[3:] / 2.0**36, torque, atol=1e-3 * float(np.linalg.norm(torque)))


def test_contact_takes_energy_and_gives_none(device: Device) -> None:
    """Tissue that flies onto a still tool: kinetic energy after a substep of contact is no more than before."""
    tissue = block(device, (6, 6, 4))
    rng = np.random.default_rng(5)
    free = ~tissue.params.anchored
    for shape, (ends, radii) in BARS.items():
        u = 2e-4 * rng.normal(size=(len(free), 3)) * free[:, None]
        v = (0.3 * rng.normal(size=(len(free), 3)) + np.array([0.0, 0.0, 0.5])) * free[:, None]
        _, v2, *_, met = contact(tissue, u, v, ends, ends, radii, 0.3, tissue.constants.dt)
        before, after = ((tissue.mass[free] * (one[free] ** 2).sum(axis=1)).sum() for one in (v, v2))
        assert met > 5
        assert after < (1.0 - 1e-4) * before, shape


def test_what_is_held_remembers_no_touch(device: Device) -> None:
    """A bar in tissue that is anchored all around moves nothing, and leaves nothing behind for the next substep."""
    tissue = block(device, (6, 6, 4), held=1)
    ends = np.array([[[0.0123, 0.0117, -0.5 * SPACING - 0.0035]] * 2])
    tissue.set_bars(0, ends, ends, np.array([0.0048]), 0.3, np.array([ends[0, 0]] * 2))
    tissue.step()
    device.synchronize()
    contacts = tissue.need_touching().contacts
    assert tissue.tool_gauge(0)[0] > 1e-4, "nothing was touched"
    assert not contacts.share.numpy().any()


def test_cores_do_not_change_a_touched_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viscera.device.SPLIT_WORK", 0)  # else one core would do so little
    results = []
    for cores in (1, 2):
        device = open_device("cpu", cores=cores)
        tissue = block(device, (18, 18, 6))
        top = 6.5 * SPACING
        ends = np.array([[[0.06, 0.0607, top], [0.066, 0.0607, top]], [[0.03, 0.03, top + 0.004]] * 2])
        for tick in range(12):
            down = np.array([2e-5 * tick, 0.0, -1e-4 * tick])
            tissue.set_bars(0, ends + down, ends + down + [2e-5, 0.0, -1e-4], np.array([0.0006, 0.005]), 0.2,
                            np.array([ends[0, 0], ends[0, 0]]))  # fmt: skip
            tissue.step()
        results.append((tissue.displacement(), tissue.state.force.host.copy()))
        device.close()
    assert np.abs(results[0][1]).max() > 0
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_points_cover_the_surface_in_levels() -> None:
    mesh = rounded_slab((0.03, 0.02, 0.01))
    sides = (0.002, 0.0007)
    found = spread_points(mesh, sides)
    assert np.linalg.norm(found.normals, axis=1) == pytest.approx(np.ones(len(found.points)))
    asked = np.concatenate([mesh.vertices, mesh.vertices[mesh.triangles].mean(axis=1)])[::7]
    for level, side in enumerate(sides):
        points = found.points[found.level <= level]
        nearest = np.linalg.norm(points[None] - asked[:, None], axis=2).min(axis=1)
        assert nearest.max() < np.sqrt(3.0) * side  # each cube that the surface passes through has one
    order, begins = bundle(found.points, 64)
    assert sorted(order) == list(range(len(found.points)))
    assert np.diff(begins).max() <= 64
    radii = [np.ptp(found.points[order[a:b]], axis=0).max() for a, b in itertools.pairwise(begins)]
    assert max(radii) < 0.012
