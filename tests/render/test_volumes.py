"""Smoke and saline in pictures without a browser, against Beer and Lambert."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from viscera import render
from viscera.device import Device, open_device
from viscera.render.light import LAMP
from viscera.render.rays import LAMP_LIGHT, ROOM_LIGHT
from viscera.render.renderer import BRIGHTNESS, Renderer
from viscera.render.volumes import BLOOD, MEDIA
from viscera.view import Camera, Frame, Particles, Scene, Surface, Volume

WIDTH, HEIGHT, FIELD, AWAY = 96, 54, 20.0, 0.2
CAMERA = Camera((0.0, 0.0, AWAY), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), FIELD)
FOCAL = 0.5 * HEIGHT / math.tan(math.radians(0.5 * FIELD))
DENSEST = 60.0
LOW, HIGH = (-0.2, -0.2, 0.02), (0.2, 0.2, 0.09)
"""The slab: wider than all that is seen, so that its soft sides are out of sight."""


def scene(look: Any = "smoke", plane: float = 0.0, side: float = HIGH[0]) -> Scene:
    corners = np.array([[-1, -1, plane], [1, -1, plane], [1, 1, plane], [-1, 1, plane]], dtype=np.float32)
    triangles = np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int32)
    return Scene(
        "test", "Test", "", "", 0, (LOW, HIGH), CAMERA,
        surfaces=(Surface("square", "tissue", triangles, "square", 4, rest=corners),),
        volumes=(Volume("cloud", look, 32, 8, 12, ((-side, -side, LOW[2]), (side, side, HIGH[2])), DENSEST),),
    )  # fmt: skip


def draws(shown: Scene, device: Device | None = None) -> Renderer:
    eye = render.make(shown, device=device or open_device("cpu", 1), width=WIDTH, height=HEIGHT, cloth=False)
    eye.arrays["square"][:] = np.asarray(shown.surfaces[0].rest)
    return eye


FRAME = Frame(tick=0, time=0.0, tools=[], parameters={}, counts={})


def light_of(colour: NDArray[np.uint8]) -> NDArray[np.float64]:
    """The film curve backwards."""
    y = colour / 255.0
    a, b, c = 6.2 * (1.0 - y), 0.5 - 1.7 * y, -0.06 * y
    return (-b + np.sqrt(b * b - 4.0 * a * c)) / (2.0 * a) + 0.004


def screen_of(light: NDArray[np.float64]) -> NDArray[np.float64]:
    y = np.maximum(light - 0.004, 0.0)
    return 255.0 * (y * (6.2 * y + 0.5)) / (y * (6.2 * y + 1.7) + 0.06)


def vignette() -> NDArray[np.float64]:
    x, y = np.meshgrid(np.arange(WIDTH) + 0.5 - 0.5 * WIDTH, np.arange(HEIGHT) + 0.5 - 0.5 * HEIGHT)
    r2 = (x * x + y * y) / (0.3844 * (WIDTH**2 + HEIGHT**2))
    t = np.clip((r2 - 0.62) / (1.35 - 0.62), 0.0, 1.0)
    return (1.0 - t * t * (3.0 - 2.0 * t)) / (1.0 + 0.75 * r2) ** 2


def through_slab(
    under: NDArray[np.uint8], share: float, dye: float, look: str, last: float | NDArray[Any]
) -> NDArray[np.float64]:
    """What the screen shows of a picture behind a slab of constant density, between the depths of its front and `last`:
    T = e^(−σL) in closed form, and what is scattered by a sum of a thousand parts."""
    x = (np.arange(WIDTH) + 0.5 - 0.5 * WIDTH) / FOCAL
    y = (0.5 * HEIGHT - np.arange(HEIGHT) - 0.5) / FOCAL
    ray = np.dstack([*np.meshgrid(x, y), np.ones((HEIGHT, WIDTH))])
    long = np.linalg.norm(ray, axis=2)
    first, last = AWAY - HIGH[2], np.broadcast_to(last, (HEIGHT, WIDTH))
    mix = lambda part: (1.0 - dye) * np.array(getattr(MEDIA[look], part)) + dye * np.array(getattr(BLOOD, part))  # noqa: E731
    loss, albedo = DENSEST * share * mix("extinction"), mix("albedo")
    power = BRIGHTNESS * AWAY**2
    lit = vignette()
    added = np.zeros((HEIGHT, WIDTH, 3))
    parts = 1000
    for k in range(parts):
        depth = first + (k + 0.5) / parts * (last - first)
        kept = np.exp(-loss * ((depth - first) * long)[..., None])
        point = depth[..., None] * ray
        lamp = power / ((np.array(LAMP) - point) ** 2).sum(axis=2)
        room = power / (point**2).sum(axis=2)
        light = LAMP_LIGHT * lamp[..., None] * kept + ROOM_LIGHT * room[..., None]
        added += kept * loss * albedo * light * (lit * long * (last - first) / parts)[..., None]
    return screen_of(light_of(under) * np.exp(-loss * ((last - first) * long)[..., None]) + added)


def assert_alike(seen: NDArray[np.uint8], wanted: NDArray[np.float64]) -> None:
    """To 1 of 255: both pictures are rounded."""
    assert np.abs(seen - wanted).max() <= 1.0


@pytest.mark.parametrize(
    ("look", "share", "dye", "tau"),
    [("smoke", 51, 0, 0.84), ("smoke", 204, 0, 3.36), ("saline", 102, 255, 1.68)],
)
def test_a_slab_of_known_depth_lets_through_what_beer_and_lambert_say(
    device: Device, look: Any, share: int, dye: int, tau: float
) -> None:
    """Optical depths of 0.84 to 3.4 before tissue."""
    eye = draws(scene(look), device)
    clear = eye.render(FRAME)
    eye.arrays["cloud"][..., 0], eye.arrays["cloud"][..., 1] = share, dye
    seen = eye.render(FRAME)
    assert DENSEST * share / 255.0 * (HIGH[2] - LOW[2]) == pytest.approx(tau, rel=0.01)
    wanted = through_slab(clear.colour, share / 255.0, dye / 255.0, look, AWAY - LOW[2])
    assert_alike(seen.colour, wanted)
    assert np.abs(seen.colour.astype(int) - clear.colour).max() > 20, "it is seen at all"
    assert np.array_equal(seen.depth, clear.depth)


def test_only_what_is_before_a_solid_counts() -> None:
    """Tissue in the middle of the slab: half of it is before, the other half behind, which nobody sees."""
    plane = 0.5 * (LOW[2] + HIGH[2])
    eye = draws(scene(plane=plane))
    clear = eye.render(FRAME)
    eye.arrays["cloud"][..., 0] = 153
    wanted = through_slab(clear.colour, 0.6, 0.0, "smoke", AWAY - plane)
    assert_alike(eye.render(FRAME).colour, wanted)
    behind = draws(scene(plane=HIGH[2] + 0.01))
    before = behind.render(FRAME)
    behind.arrays["cloud"][..., 0] = 255
    assert np.array_equal(behind.render(FRAME).colour, before.colour)


def test_an_empty_volume_changes_nothing_and_a_cloud_only_its_own_place() -> None:
    eye = draws(scene(side=0.03))
    clear = eye.render(FRAME)
    assert np.array_equal(draws(replace(scene(), volumes=())).render(FRAME).colour, clear.colour)
    cloud = eye.arrays["cloud"].reshape(12, 8, 32, 4)
    cloud[6, 3:5, 14:18, 0] = 255
    changed = np.argwhere((eye.render(FRAME).colour != clear.colour).any(axis=2))
    middle = changed.mean(axis=0)
    assert len(changed) > 20
    assert middle == pytest.approx((0.5 * HEIGHT - 0.5, 0.5 * WIDTH - 0.5), abs=1.5)
    assert len(changed) < 0.15 * WIDTH * HEIGHT


@pytest.mark.parametrize("height", [0.095, 0.055])
def test_what_is_thinner_than_the_rays_are_apart_has_its_own_place_in_the_smoke(height: float) -> None:
    """Balls of three pixels, between the rays: before the slab they are as without it, in its middle half of it is
    before them."""
    pixel = (AWAY - height) / FOCAL
    columns = 6.0 * np.array([4, 6, 8, 10]) + np.array([2.0, 2.5, 3.0, 3.5])
    eye = draws(replace(scene(), particles=(Particles("drops", "blood", 1.5 * pixel, len(columns)),)))
    frame = replace(FRAME, counts={"drops": len(columns)})
    eye.arrays["drops"][:, :3] = [[(column + 0.5 - 0.5 * WIDTH) * pixel, 0.0, height] for column in columns]
    clear = eye.render(frame)
    eye.arrays["cloud"][..., 0] = 153
    seen = eye.render(frame)
    there = clear.part == 1 + eye.parts.index("drops")
    assert there.sum() >= 4 * len(columns)
    wanted = clear.colour.astype(float)
    if height < HIGH[2]:
        wanted = through_slab(clear.colour, 0.6, 0.0, "smoke", np.where(there, clear.depth, AWAY - LOW[2]))
    assert_alike(seen.colour[there], wanted[there])


@pytest.mark.slow
def test_a_film_of_smoke_shows_it() -> None:
    """The scenario's own hand burns for a second and a half: the plume is grey before red tissue, in the very renderer
    that films are drawn with."""
    import viscera

    world = viscera.make("smoke", device="cpu", seed=1, cores=1, detail=0.3)
    for tick in range(1500):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
    world.wait()
    eye = render.make(world.scene(), device=world.device, width=160, height=90)
    world.show_now()
    world.write_arrays(eye.arrays)
    name = world.scene().volumes[0].name
    smoky = eye.render(world.frame()).colour.astype(float)
    assert eye.arrays[name].any()
    eye.arrays[name][:] = 0
    clear = eye.render(world.frame()).colour.astype(float)
    world.close()
    there = (np.abs(smoky - clear).max(axis=2) > 8.0) & (clear[..., 0] > 40.0)
    assert there.mean() > 0.005
    greyer = smoky[there][:, 2] / smoky[there][:, 0] - clear[there][:, 2] / clear[there][:, 0]
    assert greyer.mean() > 0.05
