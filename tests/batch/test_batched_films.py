"""Films of blood of many worlds: each is the film by itself, bit for bit, on the same moving surface."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import warp as wp
from numpy.typing import NDArray

from viscera import batch
from viscera.blood.film.border import spawn
from viscera.blood.film.film import Film, make_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.film.surface import make_surface, refresh_surface
from viscera.device import Device, Program, Stage, open_device
from viscera.errors import InputError
from viscera.world.systems.film import MIXINGS

pytestmark = pytest.mark.slow

WORLDS, CAPACITY, TICKS = 3, 300, 10
PARAMS = FilmParams(dilution=2.0, clot_rate=0.5, dissolve_rate=0.4)
MAPS = ("position", "velocity", "face", "barycentric", "normal", "volume", "fluid", "clot", "age", "fate", "density")


@pytest.fixture(scope="module")
def worlds(cpu: Device) -> Iterator[batch.Batch]:
    made = batch.make("palpation", worlds=WORLDS, device=cpu, seed=3, detail=0.15)
    yield made
    made.close()


@pytest.fixture(scope="module")
def blood(worlds: batch.Batch) -> batch.Films:
    return batch.film(worlds, params=PARAMS, capacity=CAPACITY, ticks=TICKS)


def places(worlds: batch.Batch, number: int, seed: int) -> NDArray[np.float64]:
    """On the upper side of the organ, near its middle."""
    mesh = worlds.template.contents.organs[0].body.mesh
    centres = mesh.corners.mean(axis=1)[mesh.face_vectors[:, 2] > 0.0]
    near = centres[np.argsort(np.linalg.norm(centres[:, :2] - centres[:, :2].mean(axis=0), axis=1))[:12]]
    return near[np.random.default_rng(seed).integers(len(near), size=number)]


def press(worlds: batch.Batch, deep: float) -> None:
    rest = worlds.tissue.rest_positions()
    low, high = rest.min(axis=0), rest.max(axis=0)
    poses = np.zeros((WORLDS, 1, 3))
    poses[:, 0] = 0.5 * (low + high)
    poses[:, 0, 2] = high[2] + 0.008 - deep * np.arange(WORLDS)
    worlds.set_tools(poses)


def make_alone(worlds: batch.Batch, blood: batch.Films, device: Device) -> tuple[Film, Program]:
    """One film by itself, and an action of it."""
    surface = make_surface(worlds.template.contents.organs[0].body.mesh, device)
    alone = make_film(surface, PARAMS, blood.capacity, device, queue=blood.queue)
    shares = [blood.steps * (n + 1) // MIXINGS - blood.steps * n // MIXINGS for n in range(MIXINGS)]

    def record(stage: Stage) -> None:
        refresh_surface(stage, surface)
        for share in shares:
            for number in range(share):
                step_film(stage, alone, share if number == 0 else 0)

    return alone, device.record(record)


def test_each_film_is_the_film_by_itself(worlds: batch.Batch, blood: batch.Films, cpu: Device) -> None:
    """0.6 s of blood and saline that run, mix and clot on tissue that a probe presses in: every place, velocity,
    concentration and clot has the bits of `viscera.blood.film`, and so has what was too much for its room."""
    worlds.reset(seed=3)
    blood.reset()
    alone, program = make_alone(worlds, blood, cpu)
    assert alone.surface is not None
    number, most = 2, 0
    for action in range(60):
        press(worlds, 0.001 * min(action, 4))
        if action % 6 == 0:
            fluid = "saline" if action % 12 == 6 else "blood"
            points = np.stack([places(worlds, 40, 10 * action + world) for world in range(WORLDS)])
            blood.add(points, fluid)
            wp.copy(alone.surface.vertices, blood.surface.vertices)  # points are given on the surface at rest
            spawn(alone, points[number], fluid)
        worlds.step(TICKS)
        blood.step()
        wp.copy(alone.surface.vertices, wp.array(blood.vertices.numpy()[number].copy(), dtype=wp.vec3, device="cpu"))
        program.run()
        most = max(most, int(blood.rows.queue_count.numpy()[number, 0]))
    count = int(alone.state.count.numpy()[0])
    assert count == int(blood.count.numpy()[number, 0]) == blood.capacity, "the film did not fill"
    assert most > 0, "nobody had to wait"
    for name in MAPS:
        mine, theirs = getattr(blood.rows, name).numpy()[number], getattr(alone.state, name).numpy()
        np.testing.assert_array_equal(mine[:count], theirs[:count], err_msg=name)
    assert int(alone.state.queue.count.numpy()[0]) == int(blood.rows.queue_count.numpy()[number, 0])
    moved = np.linalg.norm(blood.rows.velocity.numpy()[number, :count], axis=1)
    assert moved.max() > 1e-4
    assert blood.clot.numpy()[number, :count].max() > 0.01
    assert not blood.broken().any()


def test_worlds_do_not_feel_each_other_and_resets_dry_only_their_own(worlds: batch.Batch, blood: batch.Films) -> None:
    worlds.reset(seed=3)
    blood.reset()
    press(worlds, 0.0)
    points = places(worlds, 60, 1)
    blood.add(points, mask=[True, False, True])
    for _ in range(5):
        worlds.step(TICKS)
        blood.step()
    assert blood.count.numpy()[:, 0].tolist() == [60, 0, 60]
    volume = 60 * PARAMS.particle_volume
    np.testing.assert_allclose(blood.volumes(), [volume, 0.0, volume], rtol=1e-6)
    kept = blood.position.numpy()[2].copy()
    blood.reset([True, False, False])
    assert blood.count.numpy()[:, 0].tolist() == [0, 0, 60]
    np.testing.assert_array_equal(blood.position.numpy()[2], kept)
    # The same blood again in the world that was dried gives the same film as there.
    blood.reset([False, False, True])
    worlds.reset(seed=3)
    press(worlds, 0.0)
    blood.add(points, mask=[False, True, True])
    for _ in range(5):
        worlds.step(TICKS)
        blood.step()
    np.testing.assert_array_equal(blood.position.numpy()[2, :60], kept[:60])


def test_phases_as_launches_of_their_own_give_the_same_bits() -> None:
    """What cuda runs: a thread for each particle, tickets in any order."""
    alone = open_device("cpu", 1)
    worlds = batch.make("palpation", worlds=WORLDS, device=alone, seed=3, detail=0.15)
    both = [batch.film(worlds, params=PARAMS, capacity=96, ticks=TICKS, fused=fused) for fused in (True, False)]
    points = places(worlds, 70, 5)
    for one in both:
        one.add(points, mask=[True, False, True])
        one.add(points[:40], "saline")
    for _ in range(4):
        worlds.step(TICKS)
        for one in both:
            one.step()
    fused, phases = both
    assert phases.count.numpy()[:, 0].tolist() == [96, 40, 96]
    for name in (*MAPS, "queue_count", "status", "gone_count"):
        np.testing.assert_array_equal(getattr(phases.rows, name).numpy(), getattr(fused.rows, name).numpy(), name)
    worlds.close()


def test_what_cannot_be_is_refused(worlds: batch.Batch, blood: batch.Films) -> None:
    with pytest.raises(InputError, match="off the surface"):
        blood.add([[0.0, 0.0, 1.0]])
    with pytest.raises(InputError, match="points"):
        blood.add([0.0, 0.0])
    with pytest.raises(InputError, match="steps"):
        batch.film(worlds, ticks=3)
    with pytest.raises(InputError, match="ticks"):
        batch.film(worlds, ticks=0)
    with pytest.raises(InputError, match="room"):
        batch.film(worlds, capacity=0)
    if worlds.device.cores > 1:
        with pytest.raises(InputError, match="one core"):
            batch.film(worlds, fused=False)
    with pytest.raises(InputError, match="springs"):
        batch.film(worlds, params=FilmParams(springs=True))
