"""Flows on a grid against a float64 reference, closed forms and conservation laws."""

from __future__ import annotations

from typing import Any

import grid_reference as reference
import numpy as np
import pytest

from viscera import grid
from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.grid import Grid, GridParams, Substance

UP = np.array([0.0, 0.0, 1.0])


def runner(flow: Grid, *, follows: bool = False) -> Any:
    """A function that steps it; solids follow before each step, or once."""
    device = flow.device
    follow = device.record(lambda stage: grid.follow(stage, flow), work=grid.work(flow))
    step = device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow))
    follow.run()

    def run(count: int = 1) -> None:
        for _ in range(count):
            if follows:
                follow.run()
            step.run()
        device.synchronize()

    return run


def taylor_green(device: Device, n: int, **numbers: Any) -> Grid:
    """One vortex in a box of side π with walls that let it slip: u = sin x cos y, v = −cos x sin y."""
    h = np.pi / n
    flow = grid.make(GridParams((n, n, 1), h, dt=numbers.pop("dt", 0.5 * h), **numbers), device=device)
    x, c = np.arange(n + 1) * h, (np.arange(n) + 0.5) * h
    u, v = np.sin(x) * np.cos(c)[:, None], -np.cos(c) * np.sin(x)[:, None]
    grid.set_velocity(flow, u[None], v[None])
    return flow


def energy(flow: Grid) -> float:
    return float(sum((part.astype(np.float64) ** 2).sum() for part in grid.velocity(flow)))


def noise(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("scheme", ["semi_lagrangian", "maccormack"])
@pytest.mark.parametrize("cells", [(20, 17, 1), (16, 13, 11), (18, 14, 3)])
def test_a_step_is_that_of_the_reference(device: Device, cells: tuple[int, int, int], scheme: Any) -> None:
    """An organ below, a bar that moves, a source and a sink. What is left is what float32 rounds in shares
    of faces and in pressure."""
    x, y, z = cells
    h, dt = 0.01, 0.02
    params = GridParams(cells, h, dt=dt, transport=scheme, cycles=16, open_sides=("+y",))
    places = grid.corners(params)
    organ = places[..., 1] - 0.035 - 0.006 * np.sin(40.0 * places[..., 0])
    flow = grid.make(params, organ, device=device)
    middle, away = np.array([0.5 * x * h, 0.6 * y * h, 0.5 * z * h]), np.array([0.0, 0.0, 1.0])
    ends, moving = np.stack([middle - away, middle + away]), np.tile([0.3, 0.1, 0.0], (2, 1))
    grid.set_bars(flow, ends, [0.017], moving[None])
    speeds = [0.2 * noise(shape, seed) for seed, shape in enumerate([(z, y, x + 1), (z, y + 1, x), (z + 1, y, x)])]
    if z == 1:
        speeds[2][:] = 0.0
    grid.set_velocity(flow, *speeds)
    grid.put(flow, 0, (0.05, 0.11, 0.5 * z * h), rate=2e-5)
    runner(flow)()

    bar = np.linalg.norm((places - middle)[..., :2], axis=-1) - 0.017
    shares, fluid = reference.close(reference.open_shares(np.minimum(organ, bar)), ("+y",))
    # What covers a face moves with the bar, if the middle of the cell above it is nearer to the bar than a cell's side.
    above = places + 0.5 * h
    near = np.linalg.norm((above - middle)[..., :2], axis=-1) - 0.017 < h
    solid = [np.where(near[tuple(map(slice, a.shape))], (0.3, 0.1, 0.0)[axis], 0.0) for axis, a in enumerate(shares)]
    fresh = [reference.carried(axis, u, speeds, dt / h, scheme) for axis, u in enumerate(speeds)]
    if z == 1:
        fresh[2] = np.zeros_like(speeds[2])
    after = reference.project(shares, fluid, fresh, solid, h * _source(params, (0.05, 0.11), 2e-5, fluid), False)
    for axis, (got, wanted) in enumerate(zip(grid.velocity(flow), after, strict=True)):
        away = np.where(shares[axis] > 0.0, np.abs(got - wanted), 0.0)
        assert away.max() <= 1e-4 * np.abs(wanted).max()


def _source(params: GridParams, place: tuple[float, float], rate: float, fluid: np.ndarray) -> np.ndarray:
    """Volume per volume and second in each cell: a quadratic B-spline over the fluid around."""
    at = grid.middles(params)
    middle = [*place, 0.5 * params.cells[2] * params.spacing]
    weight = np.ones(at.shape[:3])
    for axis in range(3):
        if params.cells[2] == 1 and axis == 2:
            continue
        off = np.abs(at[..., axis] - middle[axis]) / params.spacing
        weight *= np.where(off < 0.5, 0.75 - off**2, np.where(off < 1.5, 0.5 * (1.5 - off) ** 2, 0.0))
    weight *= fluid
    return rate * weight / weight.sum() / params.spacing**3


def test_a_vortex_dies_at_its_rate(device: Device) -> None:
    """Taylor and Green: energy falls as e^(−4νt). 2 % at 128²: what the grid adds of its own."""
    flow = taylor_green(device, 128, viscosity=0.05)
    run = runner(flow)
    before = energy(flow)
    run(20)
    rate = -np.log(energy(flow) / before) / (20 * flow.params.dt)
    assert rate == pytest.approx(4.0 * 0.05, rel=0.02)


@pytest.mark.parametrize("spread", [0.02, 0.3, 3.0])
def test_sweeps_are_as_many_as_viscosity_needs(device: Device, spread: float) -> None:
    """νΔt/h² from little to much at 32²: the default number leaves at most 1 % of the change undone, against the sums
    with a thousand sweeps. Four sweeps, enough for the first, would leave most of the last undone."""
    lost = {}
    for sweeps in (None, 1000, 4):
        h = np.pi / 32
        flow = taylor_green(device, 32, dt=0.1 * h, viscosity=spread * h / 0.1, diffusion_sweeps=sweeps)
        run = runner(flow)
        before = energy(flow)
        run(2)
        lost[sweeps] = before - energy(flow)
    assert lost[None] == pytest.approx(lost[1000], rel=0.01)
    if spread == 3.0:
        assert lost[4] < 0.8 * lost[1000]


@pytest.mark.parametrize("cells", [(64, 64, 1), (32, 32, 32), (64, 64, 4)])
def test_a_moving_bar_leaves_no_divergence(device: Device, cells: tuple[int, int, int]) -> None:
    """L2 after projection over before, at most 1e-4 in every step, with the default number of cycles."""
    flow = grid.make(GridParams(cells, 1.0 / cells[0], dt=0.02), device=device)
    run = runner(flow, follows=True)
    top = cells[2] / cells[0]
    for number in range(12):
        angle = 0.3 * number
        place = np.array([0.5 + 0.25 * np.cos(angle), 0.5 + 0.25 * np.sin(angle), 0.3 * top])
        velocity = np.tile([-3.75 * np.sin(angle), 3.75 * np.cos(angle), 0.0], (2, 1))
        grid.set_bars(flow, [place, place + np.array([0.0, 0.0, 2.0])], [0.07], velocity[None])
        run()
        before, after = grid.divergence(flow)
        assert before > 0.0
        assert after <= 1e-4 * before


def test_what_sweeps_leave_is_in_the_cells_of_one_colour(device: Device) -> None:
    """Why the document's sweeps can leave a larger L2 norm than there was: the colour that was relaxed last has none
    left, the other has it twice, and the norm of something smooth grows by √2 that way. Its means over both colours
    shrink all the same."""
    flow = taylor_green(device, 64, solver="gauss_seidel")
    x = (np.arange(65) / 64)[None, None, :]
    grid.set_velocity(flow, np.broadcast_to(np.sin(np.pi * x) / np.pi, (1, 64, 65)), np.zeros((1, 65, 64)))
    runner(flow)()
    before, after = grid.divergence(flow)
    left = flow.layout.box(flow.levels[0].needed.numpy())[0].astype(np.float64)
    row, column = np.indices(left.shape)
    red, black = (np.sqrt((left[(row + column) % 2 == colour] ** 2).sum()) for colour in (0, 1))
    assert min(red, black) < 1e-4 * max(red, black)
    assert after > before
    means = left.reshape(32, 2, 32, 2).mean(axis=(1, 3))
    assert 2.0 * np.sqrt((means**2).sum()) < before


def test_sweeps_of_the_document_leave_more(device: Device) -> None:
    """Stam's 20 sweeps of Gauss–Seidel; what they leave is reported, and is far more than multigrid leaves."""
    left = {}
    for solver in ("multigrid", "gauss_seidel"):
        flow = grid.make(GridParams((64, 64, 1), 1.0 / 64, dt=0.02, solver=solver), device=device)
        grid.set_bars(flow, [[[0.5, 0.5, -1.0], [0.5, 0.5, 1.0]]], [0.1], [[[1.0, 0.0, 0.0]] * 2])
        runner(flow)()
        before, after = grid.divergence(flow)
        left[solver] = after / before
    assert left["multigrid"] < 1e-4
    assert 0.02 < left["gauss_seidel"] < 0.5


def test_a_piston_lets_nothing_through(device: Device) -> None:
    """A bar across a channel with open ends pushes what is before it and draws what is behind: both flows are its
    velocity times the channel's width. A leak would be missing there."""
    cells = (96, 16, 1)
    flow = grid.make(GridParams(cells, 0.01, dt=0.01, open_sides=("-x", "+x"), cycles=8), device=device)
    grid.set_bars(flow, [[[0.4, -1.0, 0.005], [0.4, 1.0, 0.005]]], [0.03], [[[0.2, 0.0, 0.0]] * 2])
    runner(flow)()
    u = grid.velocity(flow)[0][0]
    assert u[:, -1].sum() == pytest.approx(0.2 * 16, rel=1e-3)
    assert u[:, 0].sum() == pytest.approx(0.2 * 16, rel=1e-3)


def test_a_step_a_hundred_times_too_long_stays_bounded(device: Device) -> None:
    """Unconditionally stable: energy of the vortex does not grow."""
    flow = taylor_green(device, 32, dt=100 * 0.5 * np.pi / 32)
    run = runner(flow)
    before = energy(flow)
    for _ in range(20):
        run()
        assert energy(flow) <= 1.001 * before
    grid.check(flow)


def test_maccormack_blurs_less(device: Device) -> None:
    """Without viscosity the vortex should stay: what is lost is the grid's own."""
    lost = {}
    for scheme in ("semi_lagrangian", "maccormack"):
        flow = taylor_green(device, 64, transport=scheme)
        run = runner(flow)
        before = energy(flow)
        run(60)
        lost[scheme] = 1.0 - energy(flow) / before
    assert lost["maccormack"] < 0.4 * lost["semi_lagrangian"]


def blob(n: int) -> np.ndarray:
    """A soft blob beside the middle of a vortex, shape (1, n, n), 0 to 1."""
    c = (np.arange(n) + 0.5) / n
    return np.exp(-(((c - 0.35) / 0.1) ** 2) - ((c[:, None] - 0.5) / 0.1) ** 2)[None]


def test_no_dye_is_lost(device: Device) -> None:
    """Whole units in a flow with a bar that stirs, with diffusion: to the last one, and never fewer than none. By
    the other schemes to 1e-3 while the vortex turns it once."""
    dyes = (
        Substance("ink", diffusivity=1e-3),
        Substance("plain", "semi_lagrangian", keeps_total=True),
        Substance("sharp", "maccormack", keeps_total=True),
    )
    flow = taylor_green(device, 64, substances=dyes)
    units = np.rint(1e6 * blob(64)).astype(np.int64)
    for name in ("plain", "sharp"):
        grid.fill(flow, name, blob(64))
    grid.fill(flow, "ink", units)
    before = grid.values(flow, "plain").sum(dtype=np.float64)
    run = runner(flow, follows=True)
    run(40)
    for name in ("plain", "sharp"):
        assert grid.values(flow, name).sum(dtype=np.float64) == pytest.approx(before, rel=1e-3)
    for number in range(20):
        place = np.array([1.5 + 0.05 * number, 1.5, 0.0])
        grid.set_bars(flow, [place - UP, place + UP], [0.3], [[[2.0, 0.0, 0.0]] * 2])
        run()
    for name in ("plain", "sharp"):  # with the bar, too
        assert grid.values(flow, name).sum(dtype=np.float64) == pytest.approx(before, rel=1e-3)
    assert grid.amount(flow, "ink") == units.sum()
    assert grid.missing(flow, "ink") == 0
    assert grid.values(flow, "ink").min() >= 0.0


def test_an_even_mixture_stays_even(device: Device) -> None:
    """Fluxes of fluid and solids together have no divergence, so a bar that moves changes nothing; to what the
    projection leaves and what cutting to whole units takes."""
    flow = grid.make(GridParams((48, 48, 1), 0.01, dt=0.004, cycles=8, substances=(Substance("ink"),)), device=device)
    grid.fill(flow, "ink", np.full((1, 48, 48), 10_000_000))
    run = runner(flow, follows=True)
    for number in range(10):
        place = np.array([0.2 + 0.0032 * number, 0.24, 0.0])
        grid.set_bars(flow, [place - UP, place + UP], [0.05], [[[0.8, 0.0, 0.0]] * 2])
        run()
    even = 10_000_000 / flow.params.cell_volume
    assert np.abs(grid.values(flow, "ink") / even - 1.0).max() < 2e-3


def test_sources_and_sinks_are_counted(device: Device) -> None:
    """What sources give and sinks take is in the counters, and what flows in flows out."""
    flow = grid.make(
        GridParams((24, 24, 24), 0.005, dt=0.02, open_sides=("+z",), substances=(Substance("ink"),)), device=device
    )
    run = runner(flow)
    grid.put(flow, 0, (0.04, 0.06, 0.05), rate=3e-6, units={"ink": 123_457})
    grid.put(flow, 1, (0.05, 0.06, 0.05), rate=-1e-6)
    run(25)
    given, taken, _ = grid.counted(flow, "ink")
    assert given == 25 * 123_457
    assert taken > 0
    assert grid.missing(flow, "ink") == 0
    out = grid.velocity(flow)[2][-1].sum(dtype=np.float64) * 0.005**2
    assert out == pytest.approx(2e-6, rel=1e-3)


def test_warmth_rises_and_what_is_heavy_sinks(device: Device) -> None:
    """A ball of either begins to move with about half of its lift: a sphere drags along half its own volume, so at
    equal density the first acceleration is lift · V / (V + V/2)."""
    rises = {}
    for name, lift in (("warm", 0.5), ("heavy", -0.5)):
        one = Substance(name, "semi_lagrangian", lift=lift)
        flow = grid.make(GridParams((40, 40, 40), 0.005, dt=0.002, substances=(one,)), device=device)
        away = np.linalg.norm(grid.middles(flow.params) - 0.1, axis=-1)
        grid.fill(flow, name, (away < 0.025).astype(float))
        run = runner(flow)
        run(2)  # the first step has nothing to lift yet: forces follow what was carried
        rises[name] = float(grid.velocity(flow)[2][20, 18:22, 18:22].mean()) / (2 * 0.002 * abs(lift))
    assert rises["warm"] == pytest.approx(2.0 / 3.0, rel=0.1)
    assert rises["heavy"] == pytest.approx(-rises["warm"], rel=0.02)


def test_confinement_keeps_whirls(device: Device) -> None:
    kept = {}
    for strength in (0.0, 4.5):
        flow = taylor_green(device, 48, transport="semi_lagrangian", confinement=strength)
        run = runner(flow)
        run(40)
        kept[strength] = energy(flow)
    assert kept[4.5] > 1.02 * kept[0.0]


def test_confinement_vanishes_with_the_cells(device: Device) -> None:
    """u += Δt ε h (N × ω): the same vortex in cells of half the side gets about half as much of it in the same short
    time (1.7 times less at 64² and 128², 2 in the end). Without the factor h it would be more in finer cells."""
    gained = []
    for n in (64, 128):
        kept = []
        for strength in (0.0, 2.0):
            flow = taylor_green(device, n, dt=1e-3, confinement=strength)
            run = runner(flow)
            before = energy(flow)
            run(4)
            kept.append(energy(flow) / before)
        gained.append(kept[1] - kept[0])
    assert gained[1] > 0.0
    assert 1.6 < gained[0] / gained[1] < 2.05


def test_confinement_keeps_whirls_in_three_dimensions(device: Device) -> None:
    """Whirls about all three axes (Arnold, Beltrami and Childress), in a box of 24³: more energy is left with it, the
    more the stronger it is. It is a force, which knows nothing of what was lost: a strong one may give back more."""
    n = 24
    face, middle = np.pi * np.arange(n + 1) / n, np.pi * (np.arange(n) + 0.5) / n
    x, y, z = (np.ix_(middle, middle, face), np.ix_(middle, face, middle), np.ix_(face, middle, middle))
    u = np.sin(x[2]) * (np.cos(x[1]) - np.cos(x[0]))
    v = np.sin(y[1]) * (np.cos(y[0]) - np.cos(y[2]))
    w = np.sin(z[0]) * (np.cos(z[2]) - np.cos(z[1]))
    kept = []
    for strength in (0.0, 1.0, 2.0):
        params = GridParams((n, n, n), np.pi / n, dt=0.05, transport="semi_lagrangian", confinement=strength)
        flow = grid.make(params, device=device)
        grid.set_velocity(flow, u, v, w)
        run = runner(flow)
        before = energy(flow)
        run(20)
        kept.append(energy(flow) / before)
    assert kept[0] < 0.98
    assert kept[0] + 0.002 < kept[1]
    assert kept[1] + 0.002 < kept[2]


def test_saved_and_loaded_it_goes_on_bit_for_bit(device: Device) -> None:
    flows = [taylor_green(device, 32, substances=(Substance("ink"),)) for _ in range(2)]
    grid.fill(flows[0], "ink", np.full((1, 32, 32), 1000))
    first, second = (runner(flow) for flow in flows)
    first(3)
    grid.load(flows[1], grid.save(flows[0]))
    first(3)
    second(3)
    saved = [grid.save(flow) for flow in flows]
    for name, values in saved[0].items():
        assert np.array_equal(values, saved[1][name]), name
    assert grid.missing(flows[1], "ink") == 0


def test_one_core_and_two_give_the_same_bits() -> None:
    results = []
    for cores in (1, 2):
        device = open_device("cpu", cores)
        flow = taylor_green(device, 48, substances=(Substance("ink"), Substance("warm", "maccormack")))
        grid.fill(flow, "ink", np.rint(1e6 * blob(48)))
        grid.fill(flow, "warm", blob(48))
        grid.set_bars(flow, [[[1.0, 1.2, -1.0], [1.0, 1.2, 1.0]]], [0.3], [[[1.0, 0.0, 0.0]] * 2])
        follow = device.record(lambda stage, flow=flow: grid.follow(stage, flow))
        step = device.record(lambda stage, flow=flow: grid.step(stage, flow))
        follow.run()
        step.run(4)
        results.append(grid.save(flow))
        device.close()
    for name, values in results[0].items():
        assert np.array_equal(values, results[1][name]), name


def test_live_numbers_change_and_frozen_ones_are_refused(device: Device) -> None:
    from dataclasses import replace

    flow = taylor_green(device, 16, viscosity=0.1, diffusion_sweeps=8)
    grid.set(flow, replace(flow.params, viscosity=0.2))
    assert flow.params.viscosity == 0.2
    thin = taylor_green(device, 16, viscosity=0.1)
    grid.set(thin, replace(thin.params, viscosity=0.05))
    with pytest.raises(InputError, match="sweeps"):
        grid.set(thin, replace(thin.params, viscosity=10.0))
    with pytest.raises(InputError, match="frozen"):
        grid.set(flow, replace(flow.params, viscosity=0.0))
    with pytest.raises(InputError, match="frozen"):
        grid.set(flow, replace(flow.params, cycles=2))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"spacing": 0.0}, "spacing"),
        ({"dt": float("nan")}, "dt"),
        ({"cells": (2, 2, 1)}, "cells"),
        ({"open_sides": ("up",)}, "side"),
        ({"open_sides": ("+z",)}, "one layer"),
        ({"inflow": 1.0}, "inflow"),
        ({"transport": "fast"}, "transport"),
        ({"cycles": 0}, "cycles"),
        ({"viscosity": -1.0}, "viscosity"),
        ({"substances": (Substance("a"), Substance("a"))}, "one name"),
        ({"substances": (Substance("a", diffusivity=1.0),)}, "diffusivity"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        GridParams(**({"cells": (16, 16, 1), "spacing": 0.01, "dt": 0.01} | change))


def test_sources_bars_and_distances_that_cannot_be_are_refused(cpu: Device) -> None:
    flow = grid.make(GridParams((8, 8, 8), 0.01, dt=0.01), device=cpu)
    with pytest.raises(InputError, match="source 99"):
        grid.put(flow, 99, (0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="not finite"):
        grid.put(flow, 0, (0.0, 0.0, float("inf")))
    with pytest.raises(InputError, match="bars are too many"):
        grid.set_bars(flow, np.zeros((99, 2, 3)), np.ones(99))
    with pytest.raises(InputError, match="distances"):
        grid.set_distance(flow, np.zeros((3, 3, 3)))
