"""Open vessels of many worlds: each bleeds as the vessel by itself, and closes when the skin around it is burnt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera import batch
from viscera.blood.film.film import make_film, step_film
from viscera.blood.film.surface import make_surface, refresh_surface
from viscera.blood.wounds.vessels import vessel_mmhg
from viscera.blood.wounds.wounds import add_wound, make_wounds, step_wounds
from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.tissue.heartbeat import pulse
from viscera.world.systems.film import MIXINGS

pytestmark = pytest.mark.slow

WORLDS, TICKS = 3, 10
VEIN = vessel_mmhg(9.0, 7.0, 1.2, 60.0)
ARTERY = vessel_mmhg(70.0, 45.0, 0.5, 30.0)


@pytest.fixture(scope="module")
def worlds(cpu: Device) -> Iterator[batch.Batch]:
    made = batch.make("palpation", worlds=WORLDS, device=cpu, seed=3, detail=0.15)
    yield made
    made.close()


@pytest.fixture(scope="module")
def hot(worlds: batch.Batch) -> batch.Burns:
    return batch.burns(worlds, texels=256, ticks=TICKS)


@pytest.fixture(scope="module")
def blood(worlds: batch.Batch) -> batch.Films:
    return batch.film(worlds, capacity=256, ticks=TICKS)


@pytest.fixture(scope="module")
def cuts(blood: batch.Films, hot: batch.Burns) -> batch.Wounds:
    return batch.wounds(blood, burns=hot, most=2)


def on_top(worlds: batch.Batch, number: int) -> Any:
    mesh = worlds.template.contents.organs[0].body.mesh
    centres = mesh.corners.mean(axis=1)[mesh.face_vectors[:, 2] > 0.0]
    order = np.argsort(np.linalg.norm(centres[:, :2] - centres[:, :2].mean(axis=0), axis=1))
    return centres[order[7 * number]]


def begin(worlds: batch.Batch, hot: batch.Burns, blood: batch.Films, cuts: batch.Wounds) -> None:
    worlds.reset(seed=3)
    for one in (hot, blood, cuts):
        one.reset()
    for number in range(WORLDS):
        cuts.open(number, [(on_top(worlds, 0), VEIN, 0.16e-3), (on_top(worlds, number + 1), ARTERY, 0.11e-3)])


def test_each_world_bleeds_as_one_by_itself(
    worlds: batch.Batch, hot: batch.Burns, blood: batch.Films, cuts: batch.Wounds, cpu: Device
) -> None:
    """0.6 s: what leaves each vessel, how far it has clotted and every particle of its film have the bits of
    `viscera.blood` with the same pulse. The pulse itself agrees to 10⁻¹²: NumPy may fuse what a kernel does not."""
    begin(worlds, hot, blood, cuts)
    number = 2
    surface = make_surface(worlds.template.contents.organs[0].body.mesh, cpu)
    film = make_film(surface, blood.params, blood.capacity, cpu, queue=blood.queue)
    alone = make_wounds(surface, blood.params, film.state, dt=0.01)
    add_wound(alone, on_top(worlds, 0), VEIN, 0.16e-3)
    add_wound(alone, on_top(worlds, number + 1), ARTERY, 0.11e-3)
    shares = [blood.steps * (n + 1) // MIXINGS - blood.steps * n // MIXINGS for n in range(MIXINGS)]

    def record(stage: Stage) -> None:
        refresh_surface(stage, surface)
        step_wounds(stage, alone)
        for share in shares:
            for step in range(share):
                step_film(stage, film, share if step == 0 else 0)

    program, phase = cpu.record(record), 0.0
    for _ in range(60):
        worlds.step(TICKS)
        blood.step()
        phase = (phase + 1.2 * 0.01) % 1.0
        beat = float(cuts.rows.drive.numpy()[number, 0])
        assert beat == pytest.approx(pulse(phase), abs=1e-12)
        alone.drive.host[0] = beat
        wp.copy(surface.vertices, wp.array(blood.vertices.numpy()[number].copy(), dtype=wp.vec3, device="cpu"))
        program.run()
    for name in ("given", "clot", "owed", "rate", "sealed"):
        mine, theirs = getattr(cuts.rows, name).numpy()[number], getattr(alone.view, name).numpy()[:2]
        np.testing.assert_array_equal(mine, theirs, err_msg=name)
    count = int(film.state.count.numpy()[0])
    assert count == int(blood.count.numpy()[number, 0]) > 20, "it hardly bled"
    np.testing.assert_array_equal(blood.position.numpy()[number, :count], film.state.position.numpy()[:count])
    given = cuts.rows.given.numpy()[number].sum() * 1e-15
    waiting = blood.rows.queue_volume.numpy()[number, : int(blood.rows.queue_count.numpy()[number, 0])].sum() * 1e-15
    assert cuts.lost()[number] == pytest.approx(given) == pytest.approx(blood.volumes()[number] + waiting)


def test_burnt_skin_closes_a_wound_and_no_other(
    worlds: batch.Batch, hot: batch.Burns, blood: batch.Films, cuts: batch.Wounds
) -> None:
    begin(worlds, hot, blood, cuts)
    levels = hot.level.numpy().copy()
    start, texel = cuts.rows.start.numpy(), cuts.rows.texel.numpy()
    assert (np.diff(start, axis=1) > 2).all(), "too few texels around a wound"
    levels[1, texel[1, start[1, 0] : start[1, 1]]] = 1.0
    hot.level.assign(levels)
    for _ in range(10):
        worlds.step(TICKS)
        blood.step()
    assert (cuts.sealed.numpy() != 0).tolist() == [[False, False], [True, False], [False, False]]
    given = cuts.rows.given.numpy()
    assert given[1, 0] == 0
    assert given[0, 0] > 0
    assert cuts.lost()[1] < cuts.lost()[0]
    cuts.reset([False, True, False])
    assert not cuts.sealed.numpy()[1].any()
    assert cuts.lost()[1] == 0.0 < cuts.lost()[0]
    cuts.open(0, [])
    assert cuts.is_there().tolist() == [[False, False], [True, True], [True, True]]
    assert cuts.lost()[0] == 0.0


def test_worlds_opened_together_are_those_opened_one_by_one(
    worlds: batch.Batch, hot: batch.Burns, blood: batch.Films, cuts: batch.Wounds
) -> None:
    """Every array of the wounds has the same bits, and a world that was not named keeps its own."""
    begin(worlds, hot, blood, cuts)
    opened = [(on_top(worlds, 3), VEIN, 0.16e-3), (on_top(worlds, 4), ARTERY, 0.11e-3)]

    def rows() -> dict[str, Any]:
        arrays = {name: getattr(cuts.rows, name) for name in cuts.rows._cls.vars}
        return {name: one.numpy().copy() for name, one in arrays.items() if isinstance(one, wp.array) and one.ndim == 2}

    for number in (0, 2):
        cuts.open(number, opened)
    one_by_one = rows()
    begin(worlds, hot, blood, cuts)
    cuts.open([0, 2], opened)
    together = rows()
    assert len(together) > 10
    for name, expected in one_by_one.items():
        assert together[name].tobytes() == expected.tobytes(), name


def test_what_cannot_be_is_refused(worlds: batch.Batch, blood: batch.Films, cuts: batch.Wounds) -> None:
    with pytest.raises(InputError, match="too many"):
        cuts.open(0, [(on_top(worlds, 0), VEIN, 1e-4)] * 3)
    with pytest.raises(InputError, match="no world"):
        cuts.open([0, WORLDS], [])
    with pytest.raises(InputError, match="heart rates"):
        cuts.set_heart_rate([1.0])
    with pytest.raises(InputError, match="most"):
        batch.wounds(blood, most=0)
