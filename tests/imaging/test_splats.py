"""Splats against the closed form of a ball, conservation of volume, and the laws of light."""

from __future__ import annotations

import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.imaging.lens import Lens
from viscera.imaging.raycast import see_mesh
from viscera.imaging.shading import (
    BARIUM,
    BLOOD,
    WATER,
    Light,
    fresnel,
    look_of,
    refract,
    shade,
    shade_solid,
    to_screen,
)
from viscera.imaging.splats import GBuffer, SplatParams, Splats, draw_splats, make_splats, read_splats, set_lens
from viscera.view import Camera

FRONT = Camera((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 20.0)
RADIUS = 0.05
BALL = 4.0 / 3.0 * math.pi * RADIUS**3


def lens_of(camera: Camera = FRONT, width: int = 160, height: int = 120) -> Lens:
    return Lens(camera, width, height)


def drawn(
    device: Device, points: list[list[float]] | np.ndarray, params: SplatParams, lens: Lens | None = None
) -> Splats:
    at = np.asarray(points, dtype=np.float32).reshape(-1, 3)
    splats = make_splats(params, lens or lens_of(), max(len(at), 1), device)
    position = wp.array(at if len(at) else np.zeros((1, 3)), dtype=wp.vec3, device=device.warp)
    count = wp.array([len(at)], dtype=wp.int32, device=device.warp)
    draw_splats(Stage(device, 0, 1, None), splats, position, count)
    return splats


def sharp(radius: float = RADIUS, volume: float = BALL) -> SplatParams:
    return SplatParams(radius, volume, smoothing=0.0)


def test_one_ball_is_exact(device: Device):
    """Every pixel's ray meets the ball where the quadratic equation says, in float64; a ball beside the axis too."""
    centre = np.array([0.06, -0.03, -0.1])
    picture = read_splats(drawn(device, [centre.tolist()], sharp()))
    way = lens_of().directions()
    offset = np.asarray(FRONT.position) - centre
    a, b, c = (way**2).sum(axis=-1), (way @ offset), offset @ offset - RADIUS**2
    inside = b**2 - a * c
    hit = inside > 0.0
    depth = (-b - np.sqrt(np.maximum(inside, 0.0))) / a
    assert (np.isfinite(picture.depth) != hit).sum() <= 2
    both = hit & np.isfinite(picture.depth)
    assert both.sum() > 700
    # Float32 leaves 1e-7 m; within a pixel of the rim the root turns that into 1e-4 m.
    assert np.quantile(np.abs(picture.depth - depth)[both], 0.99) < 1e-5
    assert np.abs(picture.depth - depth)[both].max() < 3e-4
    chord = 2.0 * np.sqrt(np.maximum(inside, 0.0)) / np.sqrt(a)
    assert np.abs(picture.thickness - chord)[both].max() < 3e-4 + RADIUS / 4096


def test_normals_of_a_ball(device: Device):
    """One-sided differences over a pixel p tilt a normal by about p/(2r cos²): 2 degrees here, inside 60 degrees."""
    picture = read_splats(drawn(device, [[0.0, 0.0, 0.0]], sharp(), lens_of(width=640, height=480)))
    lens = lens_of(width=640, height=480)
    seen = np.isfinite(picture.depth)
    point = np.asarray(FRONT.position) + picture.depth[seen][:, None] * lens.directions()[seen]
    truth = point / np.linalg.norm(point, axis=1, keepdims=True)
    inner = truth[:, 2] > 0.5
    cosine = (truth * picture.normal[seen]).sum(axis=1)[inner]
    assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).max() < 3.0


def test_thickness_adds_up_to_the_volume(device: Device):
    """∫ thickness over the area that a pixel has at the liquid's depth is the liquid's volume, however balls overlap.
    A pixel at depth z is (z/f)² cos; all liquid lies at 1 m ± 2 cm: within 1 %, plus the steps at the rim."""
    points = np.random.default_rng(1).uniform(-0.02, 0.02, (200, 3)) * (3, 2, 0.2)
    volume = 1.7e-8
    lens = lens_of(width=640, height=480)
    picture = read_splats(drawn(device, points, sharp(0.008, volume), lens))
    slant = np.linalg.norm(lens.directions(), axis=-1)
    total = (picture.thickness / slant**3).sum() / lens.focal**2
    assert total == pytest.approx(200 * volume, rel=0.015)


def test_smoothing_melts_balls_but_not_across_depth(device: Device):
    side = np.arange(-6, 7) * 0.012
    layer = np.stack([*(g.ravel() for g in np.meshgrid(side, side)), np.zeros(169)], axis=1)
    rough = read_splats(drawn(device, layer, SplatParams(0.012, 1e-6, smoothing=0.0)))
    calm = read_splats(drawn(device, layer, SplatParams(0.012, 1e-6)))
    middle = (slice(45, 75), slice(65, 95))
    assert calm.depth[middle].std() < 0.2 * rough.depth[middle].std()
    assert calm.normal[middle][..., 2].min() > 0.99
    near = np.concatenate([layer[:84], layer[84:] - (0.0, 0.0, 0.3)])
    both = read_splats(drawn(device, near, SplatParams(0.012, 1e-6)))
    # Nothing lies between the two layers: a filter that mixes them would leave a slope there.
    assert not ((both.depth > 1.02) & (both.depth < 1.27)).any()
    assert (both.depth < 1.02).any()
    assert (np.isfinite(both.depth) & (both.depth > 1.27)).any()


def test_same_bits_in_any_order_and_on_two_cores(device: Device):
    points = np.random.default_rng(2).uniform(-0.1, 0.1, (300, 3)).astype(np.float32)
    splats = make_splats(SplatParams(0.01, 1e-6), lens_of(), 300, device)
    position = wp.array(points, dtype=wp.vec3, device=device.warp)
    count = wp.array([300], dtype=wp.int32, device=device.warp)
    program = device.record(lambda stage: draw_splats(stage, splats, position, count))
    program.run()
    first = read_splats(splats)
    position.assign(points[::-1].copy())
    draw_splats(Stage(device, 0, 1, None), splats, position, count)
    second = read_splats(splats)
    for a, b in zip(vars(first).values(), vars(second).values(), strict=True):
        assert np.array_equal(a, b)


def test_eye_and_count_change_while_recorded(device: Device):
    splats = make_splats(sharp(), lens_of(), 2, device)
    position = wp.array(np.zeros((2, 3), dtype=np.float32), dtype=wp.vec3, device=device.warp)
    count = wp.array([1], dtype=wp.int32, device=device.warp)
    program = device.record(lambda stage: draw_splats(stage, splats, position, count), work=1)
    program.run()
    assert read_splats(splats).depth.min() == pytest.approx(0.95, abs=1e-4)
    set_lens(splats, lens_of(Camera((0.0, 0.0, 0.5), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 20.0)))
    program.run()
    assert read_splats(splats).depth.min() == pytest.approx(0.45, abs=1e-4)
    count.zero_()
    program.run()
    picture = read_splats(splats)
    assert not np.isfinite(picture.depth).any()
    assert picture.thickness.max() == 0.0


def test_unseen_particles_leave_nothing(device: Device):
    points = [[0.0, 0.0, 1.02], [0.0, 0.0, 3.0], [9.0, 0.0, 0.0], [math.nan, 0.0, 0.0], [0.0, math.inf, 0.0]]
    picture = read_splats(drawn(device, points, sharp()))
    assert not np.isfinite(picture.depth).any()


def test_ball_and_mesh_of_a_ball_give_one_picture(device: Device):
    """The splat of a ball against rays on a fine mesh of it: facets are off by their sag, 0.5 % of the radius."""
    rows, columns = 40, 80
    theta, phi = np.meshgrid(np.linspace(0, np.pi, rows + 1), np.linspace(0, 2 * np.pi, columns + 1), indexing="ij")
    vertices = RADIUS * np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1)
    index = np.arange((rows + 1) * (columns + 1)).reshape(rows + 1, columns + 1)
    a, b, c, d = index[:-1, :-1].ravel(), index[1:, :-1].ravel(), index[1:, 1:].ravel(), index[:-1, 1:].ravel()
    triangles = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    cast = see_mesh(lens_of(), vertices.reshape(-1, 3), triangles, device)
    splat = read_splats(drawn(device, [[0.0, 0.0, 0.0]], sharp()))
    both = np.isfinite(cast.depth) & np.isfinite(splat.depth)
    assert both.sum() > 0.98 * np.isfinite(splat.depth).sum()
    assert np.quantile(np.abs(cast.depth[both] - splat.depth[both]), 0.95) < 0.01 * RADIUS
    inner = both & (splat.normal[..., 2] > 0.5)
    assert (cast.normal * splat.normal).sum(axis=-1)[inner].min() > 0.99


# --- light -------------------------------------------------------------------------------------------------------


def test_fresnel_at_both_ends_and_between():
    """R₀ = 2.0 % for water face on, all at grazing; Schlick is within 0.03 of Fresnel's formula up to 75 degrees."""
    assert fresnel(1.0, 1.333) == pytest.approx(0.0204, abs=1e-4)
    assert fresnel(0.0, 1.333) == pytest.approx(1.0)
    angle = np.radians(np.linspace(0.0, 75.0, 50))
    inner = np.arcsin(np.sin(angle) / 1.333)
    s = ((np.cos(angle) - 1.333 * np.cos(inner)) / (np.cos(angle) + 1.333 * np.cos(inner))) ** 2
    p = ((np.cos(inner) - 1.333 * np.cos(angle)) / (np.cos(inner) + 1.333 * np.cos(angle))) ** 2
    assert np.abs(fresnel(np.cos(angle), 1.333) - 0.5 * (s + p)).max() < 0.03


def test_refraction_obeys_snell():
    angle = np.radians(np.linspace(0.0, 89.0, 40))
    way = np.stack([np.sin(angle), np.zeros(40), -np.cos(angle)], axis=1)
    inside = refract(way, np.tile([0.0, 0.0, 1.0], (40, 1)), 1.333)
    assert np.linalg.norm(inside, axis=1) == pytest.approx(np.ones(40))
    assert 1.333 * inside[:, 0] == pytest.approx(np.sin(angle))


def flat(thickness: float, lens: Lens) -> GBuffer:
    """A layer of liquid that faces the eye."""
    shape = (lens.height, lens.width)
    normal = np.tile(np.array([0.0, 0.0, 1.0], dtype=np.float32), (*shape, 1))
    return GBuffer(np.full(shape, 0.5, np.float32), normal, np.full(shape, thickness, np.float32))


def dark(directions: np.ndarray) -> np.ndarray:
    return np.zeros_like(directions)


def test_layers_absorb_as_beer_and_lambert_say():
    """Without lamp and surroundings, light in the middle of the picture is (1 − R) e^(−(µ + σ) d)."""
    lens = lens_of(width=33, height=25)
    light = Light((0.0, 0.0, 1.0), 0.0, dark, ambient=0.0)
    white, far = np.ones((25, 33, 3)), np.full((25, 33), 5.0)
    for look, thickness in ((WATER, 0.1), (BLOOD, 0.0001), (BARIUM, 0.0002)):
        middle = shade(lens, flat(thickness, lens), look, light, white, far)[12, 16]
        kept = np.exp(-(np.array(look.absorption) + look.scattering) * thickness)
        assert middle == pytest.approx((1.0 - fresnel(1.0, look.index)) * kept, rel=1e-3)


def test_mirror_and_window_change_roles():
    """Face on one looks through water, at a grazing angle one sees the surroundings: not the other way round."""
    lens = Lens(Camera((0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 20.0), 33, 25)

    def red(directions: np.ndarray) -> np.ndarray:
        return np.tile([1.0, 0.0, 0.0], (len(directions), 1))

    light = Light((0.0, 0.0, 1.0), 0.0, red, ambient=0.0)
    green, far = np.tile([0.0, 1.0, 0.0], (25, 33, 1)), np.full((25, 33), 5.0)
    face_on = shade(lens, flat(1e-6, lens), WATER, light, green, far)[12, 16]
    tilted = flat(1e-6, lens)
    tilted.normal[:] = (math.sin(math.radians(88.0)), 0.0, math.cos(math.radians(88.0)))
    grazing = shade(lens, tilted, WATER, light, green, far)[12, 16]
    assert face_on[1] > 0.95 > 0.05 > face_on[0]
    assert grazing[0] > 0.8 > 0.2 > grazing[1]


def test_barium_is_white_and_blood_is_red_and_what_is_nearer_hides():
    lens = lens_of(width=33, height=25)
    light = Light((0.0, 0.0, 1.0), 1.0, dark)
    black, far = np.zeros((25, 33, 3)), np.full((25, 33), 5.0)
    # Off the middle, where the lamp is mirrored.
    barium = shade(lens, flat(0.002, lens), BARIUM, light, black, far)[2, 2]
    blood = shade(lens, flat(0.002, lens), BLOOD, light, black, far)[2, 2]
    assert barium.min() > 0.8
    assert np.ptp(barium) < 0.1
    assert blood[0] > 10.0 * blood[1:].max()
    hidden = shade(lens, flat(0.002, lens), BARIUM, light, black, np.full((25, 33), 0.3))
    assert not hidden.any()


def test_film_curve_and_solid(device: Device):
    x = np.linspace(0.0, 50.0, 1000)
    assert (np.diff(to_screen(x)) >= 0.0).all()
    assert to_screen(x).min() >= 0.0
    assert to_screen(x).max() < 1.0
    floor = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
    lens = lens_of(width=33, height=25)
    solid = see_mesh(lens, floor, [[0, 1, 2], [0, 2, 3]], device)
    picture = shade_solid(lens, solid, np.array([0.5, 0.5, 0.5]), Light((0.0, 0.0, 9.0), 1.0, dark, ambient=0.2))
    assert picture[12, 16] == pytest.approx([0.6] * 3, rel=1e-3)
    assert see_mesh(lens, np.zeros((0, 3)), np.zeros((0, 3)), device).depth.min() == np.inf


@pytest.mark.parametrize(
    ("field", "value"), [("radius", 0.0), ("volume", math.nan), ("smoothing", -1.0), ("rounds", 99), ("most_taps", 0)]
)
def test_params_are_checked(field: str, value: float):
    given: dict[str, Any] = {"radius": 0.01, "volume": 1e-6, field: value}
    with pytest.raises(InputError, match=field):
        SplatParams(**given)


def test_looks_and_sizes_are_checked(cpu: Device):
    assert look_of("blood") is BLOOD
    with pytest.raises(InputError, match="wine"):
        look_of("wine")
    with pytest.raises(InputError, match="capacity"):
        make_splats(sharp(), lens_of(), 0, cpu)
    with pytest.raises(InputError, match="pixels"):
        set_lens(make_splats(sharp(), lens_of(), 1, cpu), lens_of(width=10))


def test_the_example_ends_in_its_check():
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "12_surface_of_a_drop.py"), run_name="__main__")
