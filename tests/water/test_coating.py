"""Coating: every unit is somewhere, films run down as thin layers do."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import warp as wp

from viscera import water
from viscera.device import Device, Port, open_device
from viscera.errors import InputError
from viscera.geometry.primitives import box, icosphere
from viscera.water import FluidParams
from viscera.water.coating import (
    FULL,
    CoatingParams,
    account,
    covered,
    load_coating,
    make_coating,
    run_down,
    save_coating,
    step_coating,
    step_drain,
    write_study,
)

FRAME = 0.016


def study(device: Device, most: Port | None = None, **changes):
    """A ball into which suspension runs from above, with a drain of up to `most` units a frame at its bottom."""
    mesh = icosphere(0.05, 3)
    params = FluidParams(0.008, (-0.05,) * 3, (0.05,) * 3, dt=2e-3, equation="incompressible", iterations=8,
                         gravity=(0.0, 0.0, -9.81), viscosity=0.2, rest_density=1311.0)  # fmt: skip
    pond = water.make(params, capacity=400, device=device)
    emitter = water.add_emitter(pond, (0.0, 0.0, 0.02), (0.0, 0.0, -0.3), 0.02)
    drain = water.add_drain(pond, ball=((0.0, 0.0, -0.05), 0.009))
    pond.boundaries.remove(drain)
    vessel = water.add_vessel(pond, water.make_walls(mesh, radius=0.004, device=device))
    coat = make_coating(pond, mesh, CoatingParams(**changes))

    def frame(stage):
        for number in range(8):
            water.step(stage, pond)
            if number == 0:
                step_drain(stage, coat, pond, drain, most)
        step_coating(stage, coat, pond, vessel.contacts.face, FRAME)

    return pond, emitter, coat, device.record(frame, work=water.work(pond))


def test_every_unit_is_somewhere_at_every_moment(device: Device) -> None:
    """To the last unit, while it is injected, coats, and drains."""
    pond, emitter, coat, program = study(device)
    for frame in range(60):
        if frame == 30:
            water.set_emitter(emitter, on=False)
        program.run()
        device.synchronize()
        assert account(coat, pond).missing == 0
    books = account(coat, pond)
    assert books.injected > 100 * FULL
    assert min(books.lumen, books.wall, books.drained) > FULL
    assert 0.05 < covered(coat) < 0.9
    water.check(pond)


def test_a_limited_drain_takes_its_limit_and_less_than_a_particle_more(device: Device) -> None:
    """A frame at a time, while more lies at the drain than it may take."""
    most = device.port(1, wp.int32)
    pond, _, coat, program = study(device, most)
    rates = []
    for limit in (0, FULL // 2, 2 * FULL):
        most.host[0] = limit
        program.run(10)
        device.synchronize()
        before = account(coat, pond)
        for _ in range(20):
            program.run()
            device.synchronize()
            books = account(coat, pond)
            assert books.missing == 0
            rates.append((limit, books.drained - before.drained))
            before = books
    for limit, taken in rates:
        assert taken == 0 if limit == 0 else taken < limit + FULL
    assert max(taken for limit, taken in rates if limit == 2 * FULL) >= 2 * FULL


def test_one_core_and_two_coat_the_same() -> None:
    ends = []
    for cores in (1, 2):
        device = open_device("cpu", cores)
        _, _, coat, program = study(device)
        program.run(25)
        ends.append(coat.film.numpy().copy())
        device.close()
    assert ends[0].sum() > 0
    assert np.array_equal(*ends)


def test_a_saved_coating_goes_on(device: Device) -> None:
    pond, _, coat, program = study(device)
    program.run(20)
    device.synchronize()
    kept, fluid = save_coating(coat), water.save(pond)
    program.run(5)
    device.synchronize()
    after = coat.film.numpy().copy()
    load_coating(coat, kept)
    water.load(pond, fluid)
    program.run(5)
    device.synchronize()
    assert np.array_equal(coat.film.numpy(), after)


def test_a_film_runs_down_a_wall_as_a_thin_layer_does(device: Device) -> None:
    """An upright plate with a film of 0.2 mm: below its upper rim what is left follows Nusselt's layer,
    h(z, t) = √(μ z/(ρ g t)) (Jeffreys 1930). First order upwind on triangles of 5 mm smears it: 20 %."""
    mesh = box((0.1, 0.005, 0.2), (20, 1, 40))
    params = FluidParams(0.008, (-0.05,) * 3, (0.05,) * 3, dt=1e-4, gravity=(0.0, 0.0, -9.81), rest_density=1311.0)
    pond = water.make(params, capacity=4, device=device)
    coat = make_coating(pond, mesh, CoatingParams(viscosity=0.2))
    plate = np.abs(np.asarray(coat.middle.numpy())[:, 1] - 0.0025) < 1e-5
    coat.film.assign(np.where(plate, 2e-4 * coat.area.numpy() / coat.unit, 0.0).astype(np.int32))
    before = int(coat.film.numpy().sum(dtype=np.int64))
    scale = params.rest_density / (3.0 * 0.2) * FRAME / coat.unit

    def frame(stage):
        stage.launch(run_down, len(coat.film), [scale, pond.live, coat.across, coat.behind, coat.per_area,
                                                coat.film, coat.spare])  # fmt: skip
        stage.launch(run_down, len(coat.film), [scale, pond.live, coat.across, coat.behind, coat.per_area,
                                                coat.spare, coat.film])  # fmt: skip

    steps = 3000
    device.record(frame).run(steps)
    device.synchronize()
    assert int(coat.film.numpy().sum(dtype=np.int64)) == before
    thick = coat.film.numpy() * coat.unit / coat.area.numpy()
    below = 0.1 - coat.middle.numpy()[:, 2]
    time = 2 * steps * FRAME
    row = plate & (below > 0.03) & (below < 0.06) & (np.abs(coat.middle.numpy()[:, 0]) < 0.03)
    expected = np.sqrt(0.2 * below[row] / (1311.0 * 9.81 * time))
    assert expected.max() < 1.9e-4, "the thinned part has come that far"
    assert thick[row].mean() == pytest.approx(expected.mean(), rel=0.2)


def test_the_state_is_written_for_other_programs(cpu: Device, tmp_path: Path) -> None:
    """Volumes of particles and films add up to the account that stands beside them."""
    pond, _, coat, program = study(cpu)
    program.run(30)
    write_study(tmp_path / "study.h5", coat, pond, icosphere(0.05, 3).vertices)
    with h5py.File(tmp_path / "study.h5") as file:
        particles, wall = file["particles"], file["wall"]
        assert isinstance(particles, h5py.Group)
        assert isinstance(wall, h5py.Group)
        assert np.asarray(particles["volume"]).sum() == pytest.approx(file.attrs["lumen"], rel=1e-9)
        assert (np.asarray(wall["thickness"]) * coat.area.numpy()).sum() == pytest.approx(file.attrs["wall"], rel=1e-9)
        assert np.asarray(particles["position"]).shape == (water.count(pond), 3)
        assert file.attrs["time"] == pytest.approx(30 * FRAME, rel=1e-5)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="thickness"):
        CoatingParams(thickness=0.0)
