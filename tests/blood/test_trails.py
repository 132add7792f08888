"""Trails of drops that slide: the texels that lie nearer to the way than half a ball of the drop is wide, and no other;
what lies still paints nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import warp as wp

from viscera.blood.drops.drops import DropParams, Drops, make_drops, step_drops
from viscera.blood.film.film import make_film
from viscera.blood.film.params import BLOOD, FilmParams
from viscera.blood.picture.image import FilmImage, make_film_image, step_film_image
from viscera.blood.picture.trails import make_trails
from viscera.blood.views import SLIDING
from viscera.device import Device
from viscera.geometry import TriangleMesh, icosphere
from viscera.skin import Skin, make_skin

PARAMS = FilmParams(fluids=(BLOOD,))
VOLUME = PARAMS.little_volume
RADIUS = (1.5 * PARAMS.particle_volume / math.pi) ** (1.0 / 3.0)
"""Of half a ball of a drop [m]."""
BALL = 0.03


def plane(stretch: float) -> TriangleMesh:
    """A level square of 40 mm; its texture is `stretch` times as dense along x as along y."""
    line = np.linspace(-0.02, 0.02, 9)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    low = (np.arange(8)[:, None] * 9 + np.arange(8)).ravel()
    quads = np.stack([low, low + 1, low + 10, low + 9], axis=1)
    uv = np.stack([0.5 + x / 0.05, 0.5 + y / (0.05 * stretch)], axis=1)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return TriangleMesh(np.stack([x, y, 0.0 * x], axis=1), triangles, "plane", uv.astype(np.float32))


class Scene:
    """Drops that never join the film, on one skin, and its picture."""

    def __init__(self, skin: Skin) -> None:
        self.device: Device = skin.device
        film = make_film(skin, PARAMS, 16)
        assert film.surface is not None
        params = DropParams(joins=False)
        self.drops: Drops = make_drops(film.surface, PARAMS, film.state, params, capacity=8)
        self.image: FilmImage = make_film_image(skin, PARAMS, film.state)
        make_trails(self.drops, self.image)
        self.step = self.device.record(lambda stage: step_drops(stage, self.drops))
        self.paint = self.device.record(lambda stage: step_film_image(stage, self.image))

    def slide(self, face: int, velocity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One step of one drop that begins in the middle of a triangle; its places before and after."""
        state = self.drops.state
        surface = self.drops.surface
        corners = surface.vertices.numpy()[surface.view.triangles.numpy()[face]]
        for array, value in (
            (state.position, corners.mean(axis=0)), (state.velocity, velocity), (state.volume, VOLUME),
            (state.fluid, (1.0, 0.0, 0.0, 0.0)), (state.fate, int(SLIDING)), (state.face, face),
            (state.barycentric, (1.0 / 3.0, 1.0 / 3.0)), (state.late, 0.0),
        ):  # fmt: skip
            filled = array.numpy()
            filled[0] = value
            array.assign(filled)
        state.count.fill_(1)
        self.image.wet.zero_()
        self.step.run()
        self.device.synchronize()
        return corners.mean(axis=0).astype(np.float64), state.position.numpy()[0].astype(np.float64)

    def wetted(self) -> np.ndarray:
        """Whether each covered texel has a trail."""
        texels = self.image.skin.texels.numpy()
        return self.image.wet.numpy()[texels] == np.float32(self.image.params.trail)

    def places(self) -> np.ndarray:
        skin = self.image.skin
        return skin.position.numpy()[skin.texels.numpy()].astype(np.float64)


@pytest.mark.parametrize("stretch", [1.0, 3.0])
def test_a_trail_covers_the_texels_beside_the_way(device: Device, stretch: float) -> None:
    """A straight way over several triangles. Discs half a radius apart leave out 3.2 % of the radius between them."""
    scene = Scene(make_skin(plane(stretch), width=256, device=device))
    start, end = scene.slide(36, np.array([0.7, 0.45, 0.0]))
    way = end[:2] - start[:2]
    assert np.linalg.norm(way) > 6.0 * RADIUS
    offset = scene.places()[:, :2] - start[:2]
    along = np.clip(offset @ way / (way @ way), 0.0, 1.0)
    away = np.linalg.norm(offset - along[:, None] * way, axis=1) / RADIUS
    wet = scene.wetted()
    assert (away < 0.96).sum() > 50
    assert wet[away < 0.96].all()
    assert not wet[away > 1.001].any()


def test_a_trail_bends_with_the_surface(device: Device) -> None:
    """Over a ball, on a great circle. A chart ends a trail's disc, so a few texels across seams are left out."""
    scene = Scene(make_skin(icosphere(BALL, 4), width=256, device=device))
    face = 700
    normal = scene.image.skin.mesh.corners[face].mean(axis=0)
    along = np.cross(normal, (0.3, 1.0, 0.2))
    start, end = scene.slide(face, 0.8 * along / np.linalg.norm(along))
    turn = math.acos(float(start @ end / (np.linalg.norm(start) * np.linalg.norm(end))))
    assert turn * BALL > 5.0 * RADIUS
    axis = np.cross(start, end) / np.linalg.norm(np.cross(start, end))
    up = start / np.linalg.norm(start)
    places = scene.places()
    angle = np.clip(np.arctan2(places @ np.cross(axis, up), places @ up), 0.0, turn)
    on_way = BALL * (np.cos(angle)[:, None] * up + np.sin(angle)[:, None] * np.cross(axis, up))
    away = np.linalg.norm(places - on_way, axis=1) / RADIUS
    wet = scene.wetted()
    # Triangles lie up to 0.1 mm below the ball, and the way is straight on each.
    assert not wet[away > 1.3].any()
    assert wet[away < 0.8].mean() > 0.9


def test_a_trail_is_seen_in_the_drops_colour_and_what_lies_still_paints_nothing(device: Device) -> None:
    scene = Scene(make_skin(plane(1.0), width=128, device=device))
    scene.slide(36, np.array([0.5, 0.2, 0.0]))
    scene.paint.run()
    texels = scene.image.skin.texels.numpy()
    picture = scene.image.picture().reshape(-1, 4)[texels]
    wet = scene.wetted()
    assert (picture[wet, 0] > 0).all()
    assert (picture[wet, 1] == 255).all()
    # It lies still now, and is still a drop; its trail fades and is not laid again.
    for _ in range(40):
        scene.step.run()
    scene.device.synchronize()
    assert np.linalg.norm(scene.drops.state.velocity.numpy()[0]) == 0.0
    assert int(scene.drops.state.count.numpy()[0]) == 1
    scene.image.wet.zero_()
    scene.step.run()
    scene.device.synchronize()
    assert not scene.image.wet.numpy().any()


def test_drops_that_land_in_parts_of_a_step_join_once(device: Device) -> None:
    """With four parts of a step and drops that join the film, each is in the queue once."""
    film = make_film(make_skin(plane(1.0), width=64, device=device), PARAMS, 64)
    assert film.surface is not None
    drops = make_drops(film.surface, PARAMS, film.state, DropParams(cohesion=1e-4, substeps=4), capacity=8)
    state, rng = drops.state, np.random.default_rng(1)
    at = np.zeros((8, 3))
    at[:, :2], at[:, 2] = rng.uniform(-0.01, 0.01, (8, 2)), 1.0e-4
    state.position.assign(at.astype(np.float32))
    state.velocity.fill_(wp.vec3(0.0, 0.0, -0.1))
    state.volume.fill_(VOLUME)
    state.fluid.fill_(wp.vec4(1.0, 0.0, 0.0, 0.0))
    state.count.fill_(8)
    device.record(lambda stage: step_drops(stage, drops)).run()
    device.synchronize()
    assert int(film.state.queue.count.numpy()[0]) == 8
    assert int(state.count.numpy()[0]) == 0
