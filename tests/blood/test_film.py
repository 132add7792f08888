"""The film's step against the float64 reference, its conservation laws, and its neighbour searches against each other.

Tolerances: positions of a few texels have a float32 step of 5e-7; velocities are displacements over dt, so their
rounding is that of numbers of their own size. Sums run over at most some forty neighbours.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from film_reference import Reference, scatter

from viscera.blood.film.border import arrays, check_film, film_count, film_volume, grow_film, load, spawn
from viscera.blood.film.film import Film, make_film, set_film, step_film
from viscera.blood.film.params import FilmFluid, FilmParams, Sheet, document_params
from viscera.blood.film.state import FATES
from viscera.device import Device, open_device
from viscera.errors import InputError, StateError
from viscera.neighbors import grid as ng

COUNT = 220
SIDE = 7
"""Of the sheet [texel]; 220 particles there have about 14 neighbours each."""

THICK = FilmFluid("thick", 1060.0, 3.0, 30.0, 50.0, viscosity=25.0, quadratic_viscosity=3.0, traction=4.0)
THIN = FilmFluid("thin", 1000.0, 2.0, 20.0, 40.0, viscosity=5.0, quadratic_viscosity=0.5, traction=1.0, phase=0.5)
STILL = FilmFluid("still", 1000.0, 3.0, 0.0, 0.0, viscosity=0.0, traction=0.0)
"""No forces at all: what a step adds to it can be seen alone."""


def case(**changes: Any) -> FilmParams:
    numbers: dict[str, Any] = {"fluids": (THICK, THIN), "one_sided": False, "gravity": (0.0, 0.0, 0.0)}
    return document_params(**(numbers | changes))


def alone(**constants: float) -> tuple[FilmFluid, ...]:
    """Two fluids that differ in nothing but one of the steps."""
    return tuple(
        dataclasses.replace(STILL, name=f"{k}", **{name: value * (1.0 + 0.5 * k) for name, value in constants.items()})
        for k in range(2)
    )


CASES = {
    "separation": case(fluids=(STILL, dataclasses.replace(STILL, name="oil", phase=1.0)), separation=60.0),
    "nothing": case(fluids=alone()),
    "viscosity": case(fluids=alone(viscosity=30.0, quadratic_viscosity=5.0)),
    "density": case(fluids=alone(stiffness=40.0, near_stiffness=60.0)),
    "springs": case(fluids=alone(), springs=True, spring_stiffness=60.0, plasticity=0.0),
    "plasticity": case(fluids=alone(), springs=True, spring_stiffness=60.0, plasticity=15.0),
    "traction": case(fluids=alone(traction=20.0), gravity=(3.0, -8.0, 0.0)),
    "one-sided": case(one_sided=True),
    "together": case(springs=True, spring_stiffness=60.0, plasticity=15.0, gravity=(1.0, -9.0, 0.0)),
}


def start(params: FilmParams, sheet: Sheet, device: Device, native: bool | None = None) -> tuple[Film, Reference]:
    rng = np.random.default_rng(11)
    x = scatter(COUNT, sheet.width, sheet.height, 5, margin=0.0 if sheet.wrap else 1.0)
    v = rng.normal(0.0, 1.0, (COUNT, 2))
    fluid = rng.integers(0, len(params.fluids), COUNT)
    film = make_film(sheet, params, COUNT + 37, device, queue=COUNT, native=native)
    spawn(film, x, np.eye(4)[fluid], velocity=np.pad(v, ((0, 0), (0, 1))))
    return film, Reference(params, sheet, x, v, fluid)


def preset_springs(film: Film, reference: Reference) -> None:
    """Springs are made without tension, and without plasticity they stay so: gives each another length, 0.55 to 0.95 of
    the radius, in both lists and in the reference."""

    def length(pair: tuple[int, int]) -> float:
        return film.params.radius * (0.55 + 0.4 * ((7 * pair[0] + 13 * pair[1]) % 17) / 16.0)

    who = np.argsort(matched(film, reference))
    lists = film.springs.count.numpy()
    partner = film.springs.partner.numpy().reshape(film.springs.most, -1)
    rest = film.springs.rest.numpy().reshape(film.springs.most, -1)
    found = set()
    for i in range(COUNT):
        for k in range(lists[i]):
            a, b = int(who[i]), int(who[partner[k, i]])
            pair = (min(a, b), max(a, b))
            rest[k, i] = length(pair)
            found.add(pair)
    assert found == set(reference.springs)
    assert len(found) > COUNT
    film.springs.rest.assign(rest.ravel())
    reference.springs = {pair: length(pair) for pair in reference.springs}


def run(film: Film, steps: int) -> None:
    program = film.device.record(lambda stage: step_film(stage, film), work=film.work)
    for _ in range(steps):
        program.run()
    film.device.synchronize()


def matched(film: Film, reference: Reference) -> np.ndarray:
    """Which of the film's particles each of the reference's is: the nearest one."""
    count = film_count(film)
    found = film.state.position.numpy()[:count, :2].astype(float)
    offset = found[None] - reference.x[:, None]
    if reference.sheet.wrap:
        size = np.array([reference.sheet.width, reference.sheet.height], dtype=float)
        offset = offset - size * np.round(offset / size)
    distance = np.linalg.norm(offset, axis=2)
    which = distance.argmin(axis=1)
    assert len(set(which.tolist())) == count == len(reference.x)
    assert distance.min(axis=1).max() < 2e-4
    return which


@pytest.mark.parametrize("wrap", [False, True], ids=["open", "wrapping"])
@pytest.mark.parametrize("name", list(CASES))
def test_the_step_is_the_reference(device: Device, name: str, wrap: bool) -> None:
    """Twelve steps, each effect alone and all together."""
    film, reference = start(CASES[name], Sheet(SIDE, SIDE, wrap), device)
    program = device.record(lambda stage: step_film(stage, film), work=film.work)
    begun = reference.v
    for number in range(12):
        program.run()
        reference.step()
        if name == "springs" and number == 0:
            preset_springs(film, reference)
    device.synchronize()
    check_film(film)
    which = matched(film, reference)
    v = film.state.velocity.numpy()[which, :2]
    acted = np.abs(reference.v - begun).max()
    assert acted < 1e-9 if name == "nothing" else acted > 0.05
    # Twelve steps of a chaotic system: rounding grows by about an order of magnitude.
    assert np.abs(v - reference.v).max() < 2e-4 * max(1.0, np.abs(reference.v).max())
    assert np.abs(film.state.density.numpy()[which] - reference.density).max() < 1e-4


@pytest.mark.parametrize("name", ["together", "one-sided"])
def test_plain_and_native_loops_agree(device: Device, name: str) -> None:
    results = []
    for native in (True, False):
        film, _ = start(CASES[name], Sheet(SIDE, SIDE, wrap=True), device, native)
        assert film.native is native
        run(film, 1)
        results.append((film.state.position.numpy(), film.state.velocity.numpy(), film.state.density.numpy()))
    for a, b in zip(*results, strict=True):
        assert np.abs(a - b).max() < 2e-5


@pytest.mark.parametrize("name", ["viscosity", "density", "springs"])
def test_momentum_stays(device: Device, name: str) -> None:
    """Σv over 100 steps without gravity and traction: 220 velocities of about 1, each rounded to 1e-7 per step."""
    # Fast enough that no velocity is clamped: the clamp takes momentum, as it should.
    params = dataclasses.replace(CASES[name], max_speed=40.0)
    film, reference = start(params, Sheet(SIDE, SIDE, wrap=True), device)
    run(film, 1)
    before = film.state.velocity.numpy()[:COUNT].sum(axis=0, dtype=float)
    size = np.abs(film.state.velocity.numpy()[:COUNT]).sum(dtype=float)
    assert np.abs(before[:2] - reference.momentum).max() < 1e-5 * size
    if name == "springs":
        reference.step()
        preset_springs(film, reference)
    begun = np.sort(film.state.velocity.numpy()[:COUNT, 0])
    run(film, 100)
    after = film.state.velocity.numpy()[:COUNT].sum(axis=0, dtype=float)
    assert np.abs(after - before).max() < 1e-5 * size
    assert np.abs(np.sort(film.state.velocity.numpy()[:COUNT, 0]) - begun).max() > 0.05


def test_the_one_sided_variant_loses_momentum(cpu: Device) -> None:
    """Why the symmetric form is the default: the same 100 steps change Σv by per cents of Σ|v|."""
    params = dataclasses.replace(CASES["density"], one_sided=True, max_speed=40.0)
    film, reference = start(params, Sheet(SIDE, SIDE, wrap=True), cpu)
    run(film, 100)
    after = film.state.velocity.numpy()[:COUNT].sum(axis=0, dtype=float)[:2]
    size = np.abs(film.state.velocity.numpy()[:COUNT]).sum(dtype=float)
    assert np.abs(after - reference.momentum).max() > 1e-3 * size


@pytest.mark.parametrize("wrap", [False, True], ids=["open", "wrapping"])
def test_three_searches_find_the_same(device: Device, wrap: bool) -> None:
    """Densities after one step: the same pairs in another order, so only float32 sums differ."""
    densities, velocities = [], []
    for search in ("grid", "linked", "binned"):
        film, reference = start(dataclasses.replace(CASES["together"], search=search), Sheet(SIDE, SIDE, wrap), device)
        run(film, 1)
        reference.step()
        check_film(film)
        which = matched(film, reference)
        densities.append(film.state.density.numpy()[which])
        velocities.append(film.state.velocity.numpy()[which])
    for k in (1, 2):
        assert np.abs(densities[k] - densities[0]).max() <= 1e-6 * max(1.0, densities[0].max())
        assert np.abs(velocities[k] - velocities[0]).max() < 2e-5


@pytest.mark.parametrize("crowd", [False, True], ids=["spread", "crowded"])
def test_the_fused_order_of_cuda_is_the_plain_one(crowd: bool) -> None:
    """The same bits, while particles come and go in every step; also with more in a cell than `CROWD` counts one by
    one. On cpu with one core, where atomics are plain."""
    cpu = open_device("cpu", cores=1)
    params = dataclasses.replace(CASES["density"], lifetime=0.035)
    ends = []
    for fused in (False, True):
        film = make_film(Sheet(SIDE, SIDE), params, 700, cpu, queue=300, native=True)
        if fused:
            box = ((0.0, 0.0), (float(SIDE), float(SIDE)), params.radius + 2.0 * params.reach)
            film.grid_params, film.grid = ng.make_grid(700, *box, 2, cpu, count=film.staged, order="parallel")
            film.fused = True
        program = cpu.record(lambda stage, f=film: step_film(stage, f), work=1)
        for number in range(9):
            x = scatter(150, SIDE, SIDE, number)
            spawn(film, 3.0 + 0.05 * x if crowd else x, volume=1e-10 + 1e-12 * number)
            program.run()
        check_film(film)
        count = film_count(film)
        found = {name: values for name, values in arrays(film).items() if not name.startswith("queue.")}
        per_particle = film.state.capacity
        ends.append({name: v[:count] if len(v) == per_particle else v for name, v in found.items()})
        assert film.state.gone_count.numpy()[1] > 300
    for name, values in ends[0].items():
        assert np.array_equal(values, ends[1][name]), name


def test_full_bins_say_so(cpu: Device) -> None:
    params = dataclasses.replace(CASES["density"], search="binned", bucket_size=3)
    film, _ = start(params, Sheet(SIDE, SIDE), cpu)
    run(film, 1)
    with pytest.raises(StateError, match="bucket holds more than 3"):
        check_film(film)


def test_full_spring_lists_say_so(cpu: Device) -> None:
    film, _ = start(dataclasses.replace(CASES["springs"], spring_capacity=4), Sheet(SIDE, SIDE), cpu)
    run(film, 1)
    with pytest.raises(StateError, match="more than 4 springs"):
        check_film(film)


def test_number_and_volume_are_exact_and_runs_repeat(device: Device) -> None:
    """Integers: equality, not closeness. The same run twice gives the same bits, on one core and on two."""
    ends = []
    for attempt in range(2):
        where = device if device.is_cuda or attempt else open_device("cpu", cores=1)
        film, _ = start(CASES["together"], Sheet(SIDE, SIDE, wrap=True), where)
        run(film, 1)
        volume = film_volume(film)
        run(film, 300)
        assert film_count(film) == COUNT
        assert film_volume(film) == volume
        ends.append(arrays(film))
    for name, values in ends[0].items():
        assert np.array_equal(values, ends[1][name]), name


def test_particles_at_one_place_part(device: Device) -> None:
    film = make_film(Sheet(SIDE, SIDE), case(fluids=document_params().fluids), 8, device)
    spawn(film, np.full((5, 2), 3.0))
    run(film, 100)
    found = film.state.position.numpy()[:5, :2]
    distance = np.linalg.norm(found[:, None] - found[None], axis=2)[~np.eye(5, dtype=bool)]
    assert distance.min() > 0.05
    assert np.abs(found.mean(axis=0) - 3.0).max() < 1e-5


def test_a_step_of_no_time_changes_nothing(device: Device) -> None:
    film, _ = start(case(dt=0.01), Sheet(SIDE, SIDE), device)
    run(film, 3)
    set_film(film, dataclasses.replace(film.params, dt=0.0))
    run(film, 1)
    before = arrays(film)
    run(film, 3)
    after = arrays(film)
    for name in ("position", "velocity", "age", "fate", "volume"):
        assert np.array_equal(before[name][:COUNT], after[name][:COUNT]), name


def test_more_than_there_is_room_for_waits(device: Device) -> None:
    """Nobody is dropped: what does not fit stays in the queue until there is room."""
    film = make_film(Sheet(32, 32), case(), 10, device, queue=20)
    spawn(film, np.stack([np.arange(16) * 2.0 + 0.5, np.full(16, 4.0)], axis=1))
    run(film, 2)
    assert film_count(film) == 10
    assert check_film(film) == 6
    with pytest.raises(InputError, match="14 more can wait"):
        spawn(film, np.full((15, 2), 3.0))
    grown = grow_film(film, 30)
    run(grown, 1)
    assert check_film(grown) == 0
    columns = np.sort(grown.state.position.numpy()[:16, 0])
    assert np.abs(columns - (np.arange(16) * 2.0 + 0.5)).max() < 1e-3


def test_particles_expire_and_their_volume_is_counted(device: Device) -> None:
    params = case(lifetime=0.05)
    film = make_film(Sheet(SIDE, SIDE), params, 300, device, queue=300)
    program = device.record(lambda stage: step_film(stage, film), work=film.work)
    for step in range(12):
        spawn(film, scatter(20, SIDE, SIDE, step), volume=3e-10 + step * 1e-12)
        program.run()
    device.synchronize()
    gone = film.state.gone_volume.numpy()
    assert film.state.gone_count.numpy().tolist() == [0, film.state.gone_count.numpy()[1], *([0] * (FATES - 2))]
    assert film_count(film) + gone_number(film) == 240
    total = sum(20 * round((3e-10 + step * 1e-12) / 1e-15) for step in range(12))
    assert gone.sum() + round(film_volume(film) / 1e-15) == total
    ages = film.state.age.numpy()[: film_count(film)]
    assert ages.max() < 0.05 + 0.011


def gone_number(film: Film) -> int:
    return int(film.state.gone_count.numpy().sum())


def test_saved_and_loaded_it_goes_on_with_the_same_bits(cpu: Device) -> None:
    film, _ = start(CASES["together"], Sheet(SIDE, SIDE, wrap=True), cpu)
    run(film, 5)
    saved = arrays(film)
    run(film, 5)
    other, _ = start(CASES["together"], Sheet(SIDE, SIDE, wrap=True), cpu)
    load(other, saved)
    run(other, 5)
    for name, values in arrays(film).items():
        assert np.array_equal(values, arrays(other)[name]), name


@pytest.mark.parametrize(
    ("name", "value"),
    [("radius", 0.0), ("dt", -1.0), ("max_speed", float("nan")), ("dilution", -0.1), ("particle_volume", 1e-20)],
)
def test_impossible_parameters_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        dataclasses.replace(FilmParams(), **{name: value})


@pytest.mark.parametrize(("value", "allowed"), [(0.0, True), (-1.0, False), (float("nan"), False)])
def test_viscosity_may_be_zero_but_not_less(value: float, allowed: bool) -> None:
    if allowed:
        assert FilmFluid("water", 1000.0, viscosity=value).viscosity == 0.0
    else:
        with pytest.raises(InputError, match="viscosity"):
            FilmFluid("odd", 1000.0, viscosity=value)


def test_viscosity_that_would_add_energy_is_refused() -> None:
    with pytest.raises(InputError, match=r"viscosity = 400 .* too much for dt = 0\.01") as refused:
        case(fluids=alone(viscosity=400.0))
    assert "viscosity ≤ 50 /s" in str(refused.value)
    with pytest.raises(InputError, match="viscosity ≤ 25 /s"):
        case(fluids=alone(viscosity=40.0), one_sided=True)


@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
@pytest.mark.parametrize(("linear", "quadratic"), [(50.0, 0.0), (0.0, 1e5)])
@pytest.mark.parametrize("count", [220, 1000])
def test_viscosity_never_adds_energy(device: Device, linear: float, quadratic: float, count: int, native: bool) -> None:
    """The largest linear viscosity, and a quadratic one beyond any bound, with 14 and with 64 neighbours each: kinetic
    energy falls in thirty steps."""
    thick = dataclasses.replace(STILL, viscosity=linear, quadratic_viscosity=quadratic)
    params = case(fluids=(thick,), max_speed=40.0)
    film = make_film(Sheet(SIDE, SIDE, wrap=True), params, count, device, queue=count, native=native)
    rng = np.random.default_rng(11)
    spawn(film, rng.random((count, 2)) * SIDE, velocity=np.pad(rng.normal(0.0, 1.0, (count, 2)), ((0, 0), (0, 1))))
    energies = []
    for steps in (1, 5, 24):
        run(film, steps)
        energies.append(float((film.state.velocity.numpy().astype(float) ** 2).sum()))
    assert energies[0] < 2.0 * count
    assert energies[2] < energies[1] < energies[0]


def test_bad_input_is_refused_at_the_border(cpu: Device) -> None:
    film = make_film(Sheet(SIDE, SIDE), case(), 8, cpu)
    with pytest.raises(InputError, match="not finite"):
        spawn(film, [(np.nan, 1.0)])
    with pytest.raises(InputError, match="fluid"):
        spawn(film, [(1.0, 1.0)], "wine")
    with pytest.raises(InputError, match="volume"):
        spawn(film, [(1.0, 1.0)], volume=-1e-10)
    with pytest.raises(InputError, match="capacity"):
        make_film(Sheet(SIDE, SIDE), case(), 0, cpu)
    with pytest.raises(InputError, match="whole number"):
        make_film(Sheet(SIDE, SIDE), case(), 2.5, cpu)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="queue"):
        make_film(Sheet(SIDE, SIDE), case(), 8, cpu, queue=float("nan"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"2 places are off the sheet; place 1 is \(99, 1\)"):
        spawn(film, [(1.0, 1.0), (99.0, 1.0), (-0.1, 2.0)])
    assert film.state.queue.count.numpy()[0] == 0
    spawn(make_film(Sheet(SIDE, SIDE, wrap=True), case(), 8, cpu), [(99.0, 1.0)])
    with pytest.raises(InputError, match="pooling"):
        case(pooling=1.5)
    with pytest.raises(InputError, match="radius"):
        set_film(film, dataclasses.replace(film.params, radius=2.0))


def test_a_broken_particle_stops_the_film(device: Device) -> None:
    film, _ = start(case(), Sheet(SIDE, SIDE), device)
    run(film, 1)
    v = film.state.velocity.numpy()
    v[7] = np.nan
    film.state.velocity.assign(v)
    run(film, 2)
    assert film_count(film) == COUNT - 1
    assert np.isfinite(film.state.position.numpy()[: COUNT - 1]).all()
    with pytest.raises(StateError, match="no longer finite"):
        check_film(film)
