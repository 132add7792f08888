"""Marching cubes of particles: fields against float64 sums, closed meshes, the volume of a ball."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.imaging.marching import (
    FieldKind,
    Marching,
    MarchingParams,
    fill_field,
    make_marching,
    marching_arrays,
    poly6,
)

BALL = 0.01
"""[m]"""


def ball(spacing: float) -> np.ndarray:
    """Particles on a cubic lattice inside a ball, off the symmetric place."""
    side = np.arange(-BALL - spacing, BALL + spacing, spacing) + 0.3 * spacing
    points = np.stack(np.meshgrid(side, side, side, indexing="ij"), axis=-1).reshape(-1, 3)
    return points[np.linalg.norm(points, axis=1) < BALL].astype(np.float32)


def filled(device: Device, points: np.ndarray, params: MarchingParams) -> Marching:
    points = points.astype(np.float32)
    marching = make_marching(params, points.min(axis=0), points.max(axis=0) + 1e-6, len(points), device)
    fill_field(Stage(device, 0, 1, None), marching, wp.array(points, dtype=wp.vec3, device=device.warp))
    return marching


def nodes(marching: Marching) -> np.ndarray:
    index = np.stack(np.meshgrid(*(np.arange(n) for n in marching.shape), indexing="ij"), axis=-1)
    return np.asarray(marching.lower) + marching.params.spacing * index


def volume(vertices: np.ndarray, triangles: np.ndarray) -> float:
    a, b, c = (vertices[triangles[:, k]].astype(np.float64) for k in range(3))
    return float((np.cross(a, b) * c).sum()) / 6.0


def edges_used(triangles: np.ndarray) -> np.ndarray:
    """How often each directed edge and its reverse occur; all ones in a closed, oriented mesh."""
    directed = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    forward, counts = np.unique(directed, axis=0, return_counts=True)
    backward = np.unique(directed[:, ::-1], axis=0)
    assert np.array_equal(forward, backward)
    return counts


def test_fields_equal_float64_sums(device: Device):
    points = np.random.default_rng(1).uniform(-0.004, 0.004, (80, 3)).astype(np.float32)
    for kind in ("colour", "distance"):
        params = MarchingParams(0.0011, 0.003, 0.0015, kind)
        marching = filled(device, points, params)
        offset = points.astype(np.float64) - nodes(marching)[..., None, :]
        share = np.maximum(1.0 - (offset**2).sum(axis=-1) / params.support**2, 0.0) ** 3
        if kind == "colour":
            slow = 0.5 - params.volume * poly6(params.support) * share.sum(axis=-1)
            empty = 0.5
        else:
            weight = np.maximum(share.sum(axis=-1), 1e-300)
            mean = (share[..., None] * offset).sum(axis=-2) / weight[..., None]
            slow = np.where(weight > 1e-30, np.linalg.norm(mean, axis=-1), params.support) - params.drop_radius
            empty = params.support - params.drop_radius
        ours = marching.field.numpy()
        inner = (slice(1, -1),) * 3
        # Float32 sums of some ten terms near one (colour) or of some millimetres (distance). Where shares are tiny,
        # their rounding moves the mean.
        reached = share.sum(axis=-1)[inner] > 1e-6
        tolerance = 2e-6 if kind == "colour" else 1e-5 * params.support
        assert np.abs(ours - slow)[inner][reached].max() < tolerance
        rim = np.ones(marching.shape, dtype=bool)
        rim[inner] = False
        assert np.allclose(ours[rim], empty, atol=1e-7)


def test_poly6_integrates_to_one():
    r = np.linspace(0.0, 1.0, 200_001)
    inside = 4.0 * math.pi * r**2 * (1.0 - r**2) ** 3
    assert poly6(1.0) * np.trapezoid(inside, r) == pytest.approx(1.0, abs=1e-9)


# Measured: colour −1.2 % and distance +3.8 % at 20 particles across, −5.2 % and +5.3 % at 10. The colour field cuts a
# curved surface short (its smoothing shrinks a ball by about h²/R), the distance field bulges out by r minus half a
# spacing; both fall with the particles' spacing.
@pytest.mark.parametrize(("kind", "coarse", "fine"), [("colour", 0.065, 0.02), ("distance", 0.065, 0.05)])
def test_volume_of_a_ball(device: Device, kind: FieldKind, coarse: float, fine: float):
    errors = []
    for spacing in (BALL / 5, BALL / 10):
        points = ball(spacing)
        vertices, normals, triangles = marching_arrays(
            filled(device, points, MarchingParams(0.5 * spacing, 2.0 * spacing, spacing, kind))
        )
        assert (edges_used(triangles) == 1).all()
        euler = len(vertices) - len(triangles) // 2
        assert euler == 2
        errors.append(abs(volume(vertices, triangles) / (len(points) * spacing**3) - 1.0))
        outwards = (normals * vertices).sum(axis=1) / np.linalg.norm(vertices, axis=1)
        assert outwards.min() > 0.8
    assert errors[0] < coarse
    assert errors[1] < fine
    assert errors[1] < errors[0]


def test_one_drop_in_the_distance_field_is_a_ball(device: Device):
    """|x − x̄| − r is the exact distance to one ball; edges are cut linearly, so vertices are off by at most
    s²/(8r) = 0.8 % of r for a spacing s of a quarter radius."""
    params = MarchingParams(0.00025, 0.003, 0.001, "distance", radius=0.001)
    marching = filled(device, np.array([[0.001, 0.002, 0.003]]), params)
    vertices, _, triangles = marching_arrays(marching)
    reach = np.linalg.norm(vertices - np.array([0.001, 0.002, 0.003]), axis=1)
    assert np.abs(reach / 0.001 - 1.0).max() < 0.008
    # Facets lie inside the ball: a diagonal of √2 s sags by 2 s²/(8 r), and the volume lacks up to three such shares.
    lack = 1.0 - volume(vertices - vertices.mean(axis=0), triangles) / (4 / 3 * math.pi * 1e-9)
    assert 0.0 < lack < 3.0 * 0.25 * 0.25**2


def test_closed_also_where_particles_leave_the_box(device: Device):
    points = ball(BALL / 6)
    params = MarchingParams(BALL / 12, BALL / 3, BALL / 6)
    marching = make_marching(params, (-0.004,) * 3, (0.004,) * 3, len(points), device)
    fill_field(Stage(device, 0, 1, None), marching, wp.array(points, dtype=wp.vec3, device=device.warp))
    vertices, _, triangles = marching_arrays(marching)
    assert np.abs(vertices).max() < 0.004 + params.support + 4 * params.spacing
    assert (edges_used(triangles) == 1).all()


def test_no_particles_no_surface(device: Device):
    params = MarchingParams(0.001, 0.003, 0.002)
    count = wp.zeros(1, dtype=wp.int32, device=device.warp)
    marching = make_marching(params, (0, 0, 0), (0.01, 0.01, 0.01), 4, device, count=count)
    position = wp.zeros(4, dtype=wp.vec3, device=device.warp)
    program = device.record(lambda stage: fill_field(stage, marching, position))
    program.run()
    assert [len(a) for a in marching_arrays(marching)] == [0, 0, 0]
    count.fill_(1)
    position.fill_(wp.vec3(0.005, 0.005, 0.005))
    program.run()
    assert marching.field.numpy().min() < 0.49


def test_same_bits_on_two_cores(cpu: Device):
    points = wp.array(ball(BALL / 8), dtype=wp.vec3, device="cpu")
    marching = make_marching(MarchingParams(0.0006, 0.0025, 0.00125), (-BALL,) * 3, (BALL,) * 3, len(points), cpu)
    fill_field(Stage(cpu, 0, 1, None), marching, points)
    alone = marching.field.numpy().copy()
    marching.field.zero_()
    cpu.record(lambda stage: fill_field(stage, marching, points)).run()
    assert np.array_equal(alone, marching.field.numpy())


@pytest.mark.parametrize(("field", "value"), [("spacing", 0.0), ("support", math.nan), ("radius", -1.0)])
def test_params_are_checked(field: str, value: float):
    given: dict[str, Any] = {"spacing": 0.1, "support": 0.2, "particle_spacing": 0.1, field: value}
    with pytest.raises(InputError, match=field):
        MarchingParams(**given)


def test_box_and_kind_are_checked(cpu: Device):
    with pytest.raises(InputError, match="field"):
        MarchingParams(0.1, 0.2, 0.1, "colors")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="box"):
        make_marching(MarchingParams(0.1, 0.2, 0.1), (0, 0, 0), (1, 0, 1), 1, cpu)
    with pytest.raises(InputError, match="nodes"):
        make_marching(MarchingParams(1e-5, 0.2, 0.1), (0, 0, 0), (1, 1, 1), 1, cpu)
