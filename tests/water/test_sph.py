"""The fluid against the slow reference, and what it must keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sph_reference as reference

from viscera.device import Device
from viscera.errors import InputError, StateError
from viscera.water import curvature, sph, tension
from viscera.water.emitter import add_drain, add_emitter, set_emitter
from viscera.water.params import FluidParams, largest_step
from viscera.water.pressure_solver import density_error
from viscera.water.sph import step_fluid
from viscera.water.state import (
    DRAINED,
    LOST,
    REFUSED,
    Fluid,
    arrays,
    check_fluid,
    load,
    make_fluid,
    particles,
    set_params,
    use_team,
)
from viscera.water.walls import block, box_walls

SPACING = 0.01


def box_params(**more: Any) -> FluidParams:
    options: dict[str, Any] = {
        "spacing": SPACING,
        "lower": (0.0, 0.0, 0.0),
        "upper": (0.1, 0.1, 0.1),
        "dt": 1.5e-4,
    } | more
    return FluidParams(**options)


def stirred(dimension: int, seed: int = 1, side: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """A block of fluid with disorder, and velocities of some dm/s."""
    random = np.random.default_rng(seed)
    x = block((0.02,) * dimension, (0.02 + side * SPACING,) * dimension, SPACING)
    return x + 0.1 * SPACING * random.normal(size=x.shape), 0.3 * random.normal(size=x.shape)


def run(fluid: Fluid, steps: int) -> None:
    program = fluid.device.record(lambda stage: step_fluid(stage, fluid), work=100_000)
    for _ in range(steps):
        program.run()
    fluid.device.synchronize()


CASES = {
    "gas": {"equation": "gas"},
    "tait": {"equation": "tait", "kernels": "spline", "viscosity": 2.0},
    "monaghan": {"equation": "tait", "kernels": "spline", "alpha": 0.3, "beta": 0.5, "suction": True},
}


def padded(values: np.ndarray) -> np.ndarray:
    return np.pad(values, ((0, 0), (0, 3 - values.shape[1])))


def make_with(loops: str, params: FluidParams, x: np.ndarray, device: Device, **more: Any) -> Fluid:
    """A fluid with the loops named: `plain`, `native` (cpu's vectors, cuda's teams), or teams of either kind. On cpu
    teams are of one thread, so that the source for cuda is checked everywhere."""
    fluid = make_fluid(params, x, device, native=loops == "native", **more)
    if loops in ("wide", "long"):
        use_team(fluid, {"wide": 16, "long": 2}[loops] if device.is_cuda else 1, wide=loops == "wide")
    return fluid


LOOPS = ("plain", "native", "wide", "long")


@pytest.mark.parametrize("loops", LOOPS)
@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_a_few_steps_follow_the_reference(device: Device, case: str, dimension: int, loops: str) -> None:
    """Five steps in float64 by brute force. Float32 has 6e-8 of each density, so 20 m/s of sound makes 6e-8·20²/dx·dt
    of velocity per neighbour and step, some 1e-5 m/s; bounds are far above it and far below any wrong constant."""
    params = box_params(dimension=dimension, lower=(0.0,) * dimension, upper=(0.1,) * dimension, **CASES[case])
    x, v = stirred(dimension)
    fluid = make_with(loops, params, x, device, velocities=v)
    run(fluid, 5)
    assert fluid.clock.numpy()[0] == pytest.approx(5 * params.dt)
    x, v = padded(x), padded(v)
    for _ in range(5):
        x, v = reference.step(params, x, v)
    found = particles(fluid)
    assert np.abs(found["position"] - x).max() < 1e-3 * SPACING
    assert np.abs(found["velocity"] - v).max() < 2e-3
    assert np.abs(v).max() > 0.5


@pytest.mark.parametrize("loops", LOOPS)
def test_continuity_and_leap_frog_follow_the_reference(device: Device, loops: str) -> None:
    params = box_params(density="continuity", integrator="leapfrog", alpha=0.1, suction=True)
    x, v = stirred(3)
    fluid = make_with(loops, params, x, device, velocities=v)
    run(fluid, 8)
    x, v = reference.leapfrog(params, padded(x), padded(v), 8)
    assert np.abs(particles(fluid)["position"] - x).max() < 1e-3 * SPACING
    assert np.abs(particles(fluid)["velocity"] - v).max() < 2e-3


def test_periodic_boxes_follow_the_reference(device: Device) -> None:
    """Particles at the faces see those beyond the opposite ones, along two axes at once."""
    params = box_params(
        dimension=2, lower=(0.0, 0.0), upper=(0.08, 0.08), periodic=(True, True, False), gravity=(1.0, 0.0, 0.0)
    )
    random = np.random.default_rng(4)
    x = block((0.0, 0.0), (0.08, 0.08), SPACING) + 0.1 * SPACING * random.normal(size=(64, 2))
    v = random.normal(size=x.shape)
    fluid = make_fluid(params, x, device, velocities=v)
    run(fluid, 6)
    x, v = padded(x), padded(v)
    for _ in range(6):
        x, v = reference.step(params, x, v)
    found = particles(fluid)
    apart = found["position"] - x
    apart[:, :2] -= 0.08 * np.round(apart[:, :2] / 0.08)
    assert np.abs(apart).max() < 1e-3 * SPACING
    assert np.abs(found["velocity"] - v).max() < 2e-3


@pytest.mark.parametrize("loops", LOOPS)
def test_pressure_and_viscosity_keep_momentum(device: Device, loops: str) -> None:
    """Pairs give each other the same force: what is left after 20 steps is rounding of the sums, 1e-7 of |v|."""
    params = box_params(gravity=(0.0, 0.0, 0.0), viscosity=1.0, alpha=0.2, tension="pairwise", tension_coefficient=0.1)
    x, v = stirred(3)
    fluid = make_with(loops, params, x, device, velocities=v)
    before = v.mean(axis=0)
    run(fluid, 20)
    after = particles(fluid)["velocity"].astype(np.float64)
    assert np.abs(after - v).max() > 0.1
    assert np.abs(after.mean(axis=0) - before).max() < 3e-6 * np.abs(after).max()


class Spring:
    """A boundary that adds a force and tells nobody that it adds no density: it stands between all stages."""

    def before_step(self, stage: Any, fluid: Fluid) -> None: ...
    def add_density(self, stage: Any, fluid: Fluid) -> None: ...
    def add_force(self, stage: Any, fluid: Fluid) -> None: ...
    def contact(self, stage: Any, fluid: Fluid) -> None: ...


@pytest.mark.parametrize("loops", ["wide", "long"])
def test_steps_are_the_same_fused_or_not(device: Device, loops: str) -> None:
    """Pressure inside density's launch and the move inside the forces': the same bits as in launches of their own, with
    walls, which have no force, and a number of particles that is no multiple of anything."""
    x, v = stirred(3, side=5)
    walls = block((0.0, 0.0, 0.0), (0.1, 0.02, 0.1), SPACING)
    ends = []
    for boundaries in ([], [Spring()]):
        fluid = make_with(loops, box_params(alpha=0.1), x[:111], device, velocities=v[:111], walls=walls, capacity=400)
        fluid.boundaries.extend(boundaries)
        assert sph.pressure_is_fused(fluid) == sph.move_is_fused(fluid) == (not boundaries)
        run(fluid, 4)
        ends.append((particles(fluid), fluid.clock.numpy()[0], fluid.position.numpy()))
    for name, values in ends[0][0].items():
        assert (values == ends[1][0][name]).all()
    assert ends[0][1] == ends[1][1]
    assert (ends[0][2] == ends[1][2]).all()


def test_all_teams_agree_with_the_plain_loops(device: Device) -> None:
    """However many threads share a particle: sums in another order, so the last bits differ; twice the same team gives
    the same bits. 2 197 particles, so that teams, warps and blocks end at different places."""
    x, v = stirred(3, side=13)
    params = box_params(upper=(0.2,) * 3, viscosity=0.5)

    def after(steps: int, **how: Any) -> dict[str, np.ndarray]:
        fluid = make_fluid(params, x, device, velocities=v, **how)
        run(fluid, steps)
        return particles(fluid)

    plain = after(3, native=False)
    for team in (1, 2, 4, 8, 16, 32) if device.is_cuda else (1,):
        found, again = after(3, team=team), after(3, team=team)
        assert np.abs(found["velocity"] - plain["velocity"]).max() < 1e-3
        assert np.abs(found["density"] / plain["density"] - 1.0).max() < 1e-5
        assert all((found[name] == again[name]).all() for name in found)
    with pytest.raises(InputError, match="team = 3"):
        after(1, team=3)


def test_the_colour_field_does_not_keep_momentum(cpu: Device) -> None:
    """The document's tension acts on single particles; the pairwise form does not have this residual."""
    left = {}
    for form in ("colour", "pairwise"):
        params = box_params(gravity=(0.0, 0.0, 0.0), viscosity=0.0, tension=form, tension_coefficient=0.1)
        x = stirred(3)[0]
        x = x[x.sum(axis=1) < 0.16]  # no symmetry
        fluid = make_fluid(params, x, cpu)
        run(fluid, 5)
        velocity = particles(fluid)["velocity"].astype(np.float64)
        left[form] = np.abs(velocity.mean(axis=0)).max() / np.sqrt((velocity**2).sum(axis=1).mean())
    assert left["pairwise"] < 1e-6
    assert left["colour"] > 1e-5


def test_pairs_pull_as_the_formula_says(cpu: Device) -> None:
    """Two particles 0.8 R apart: A q(1 − q)²(q − q₀) toward each other, with σ from A by the integral."""
    params = box_params(gravity=(0.0, 0.0, 0.0), viscosity=0.0, tension="pairwise", tension_coefficient=0.07)
    radius = params.radius
    fluid = make_fluid(params, np.array([[0.04, 0.05, 0.05], [0.04 + 0.8 * radius, 0.05, 0.05]]), cpu)
    run(fluid, 1)
    q, q0 = np.linspace(0.0, 1.0, 20001), tension.NO_PRESSURE[3]
    shape = q * (1 - q) ** 2 * (q - q0)
    number = params.rest_density / params.mass
    per_a = np.pi / 8 * number**2 * radius**5 * np.trapezoid(shape * q**4, q)
    amplitude = 0.07 / per_a
    assert abs(np.trapezoid(shape * q**3, q)) < 1e-7
    force = amplitude * 0.8 * 0.2**2 * (0.8 - q0)
    velocity = particles(fluid)["velocity"]
    assert velocity[0, 0] == pytest.approx(force / params.mass * params.dt, rel=1e-3)
    assert velocity[1, 0] == pytest.approx(-velocity[0, 0])


def pulled(device: Device, form: str, dimension: int, speed: float) -> tuple[FluidParams, Any, Any, Any]:
    """A ball cut out of a lattice, with disorder: what tension adds to its velocity in one step, over dt."""
    params = box_params(
        dimension=dimension, lower=(0.0,) * dimension, upper=(0.1,) * dimension, gravity=(0.0, 0.0, 0.0), tension=form,
        tension_coefficient=0.07,
    )  # fmt: skip
    x, v = stirred(dimension)
    inside = ((x - 0.05) ** 2).sum(axis=1) < 0.035**2
    x, v = x[inside], speed * v[inside]
    velocities = []
    for sigma in (0.0, 0.07):
        fluid = make_fluid(replace(params, tension_coefficient=sigma), x, device, velocities=v)
        run(fluid, 1)
        velocities.append(particles(fluid)["velocity"].astype(np.float64))
    return params, padded(x), padded(v), (velocities[1] - velocities[0]) / params.dt


@pytest.mark.parametrize("speed", [0.0, 0.03], ids=["still", "moving"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_tension_by_curvature_follows_the_reference(device: Device, dimension: int, speed: float) -> None:
    """In 3D some are flat, some bent more tightly than allowed. Pressure makes some dm/s in that step, which float32
    holds to 3e-8 m/s, 2e-4 m/s² over dt. Where particles move, some cm/s, the surface's own viscosity shows."""
    params, x, v, found = pulled(device, "curvature", dimension, speed)
    truth = reference.curvature_pull(params, x, v, curvature.layer_factor(params))
    most = np.abs(truth).max()
    assert most > 0.1
    assert np.abs(found - truth).max() < 1e-3 + 1e-3 * most
    if speed > 0.0:
        still = reference.curvature_pull(params, x, 0.0 * v, curvature.layer_factor(params))
        assert np.abs(truth - still).max() > 0.1 * most


@pytest.mark.parametrize("dimension", [2, 3])
def test_the_colour_field_pulls_as_the_document_says(device: Device, dimension: int) -> None:
    """−(σ/ρ) ∇²c n/|n| in float64, with slopes by finite differences: every particle, and inward on the whole. 1e-3
    covers their steps of 1e-4 R, and those few whose |n| R is 0.4 to the last bit, of which there are none here."""
    params, x, _, found = pulled(device, "colour", dimension, 0.0)
    truth = reference.colour_pull(params, x)
    most = np.abs(truth).max()
    assert most > 0.1
    assert np.abs(found - truth).max() < 1e-3 + 1e-3 * most
    middle = x - x.mean(axis=0)
    assert (found * middle).sum() < 0.0


def test_the_layer_of_a_fine_lattice_is_half_the_colour() -> None:
    """∫|∇c| from the inside, where c = 1, to the surface, where it is a half, but for the end where |∇c| R < 0.4."""
    coarse, fine = (curvature.layer_factor(box_params(support=support)) for support in (2.0, 4.0))
    assert curvature.SHARE / coarse == pytest.approx(0.532, abs=0.001)
    assert curvature.SHARE / fine == pytest.approx(0.5, abs=0.04)


def test_a_step_of_no_time_changes_nothing(device: Device) -> None:
    for equation in ("tait", "incompressible"):
        x, v = stirred(3)
        fluid = make_fluid(box_params(dt=0.0, equation=equation), x, device, velocities=v)
        before = particles(fluid)
        run(fluid, 2)
        after = particles(fluid)
        assert (after["position"] == before["position"]).all()
        assert (after["velocity"] == before["velocity"]).all()


def test_turning_everything_changes_nothing(cpu: Device) -> None:
    """A quarter turn about z of positions, velocities and gravity: the same motion, turned. Rounding differs with the
    order of neighbours."""
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    x, v = stirred(3)
    middle = np.full(3, 0.05)
    ends = []
    for matrix in (np.eye(3), turn):
        params = box_params(gravity=tuple(matrix @ np.array([0.0, -9.81, 2.0])), viscosity=0.5)
        fluid = make_fluid(params, (x - middle) @ matrix.T + middle, cpu, velocities=v @ matrix.T)
        run(fluid, 10)
        ends.append((particles(fluid)["position"] - middle) @ matrix)
    assert np.abs(ends[0] - ends[1]).max() < 1e-4 * SPACING


def test_the_same_bits_every_time_and_after_a_restart(device: Device) -> None:
    x, v = stirred(3)
    params = box_params(equation="incompressible", dt=1e-3)
    ends = []
    for restart in (False, True):
        fluid = make_fluid(params, x, device, velocities=v)
        run(fluid, 4)
        if restart:
            saved = arrays(fluid)
            fluid = make_fluid(params, x, device)
            load(fluid, saved)
        run(fluid, 4)
        ends.append(particles(fluid))
        assert fluid.clock.numpy()[0] == pytest.approx(8e-3, rel=1e-5)
    for name in ("position", "velocity", "tag"):
        assert (ends[0][name] == ends[1][name]).all()


def test_incompressible_water_stays_within_one_percent(device: Device) -> None:
    """A block falls 5 cm into a tank in steps five times those of sound at 20 m/s: nothing leaves through a wall, no
    energy appears, and no particle is ever 1 % too dense, with as many iterations as there are by default; 0.7 % was
    measured."""
    spacing = 0.01
    lower, upper = (0.0, 0.0), (0.2, 0.3)
    params = FluidParams(spacing=spacing, lower=lower, upper=upper, dt=1e-3, dimension=2, equation="incompressible")
    walls = box_walls(lower, upper, spacing, params.radius, open_sides=("+y",))
    fluid = make_fluid(params, block((0.05, 0.05), (0.15, 0.15), spacing), device, walls=walls)
    program = device.record(lambda stage: step_fluid(stage, fluid), work=100)
    worst, energies = 0.0, [9.81 * 0.1]
    for _ in range(250):
        program.run()
        worst = max(worst, density_error(fluid)[1])
        now = particles(fluid)
        energies.append(float((9.81 * now["position"][:, 1] + 0.5 * (now["velocity"] ** 2).sum(axis=1)).mean()))
    found = particles(fluid)["position"]
    assert found[:, 1].min() > 0.0
    assert found[:, 0].min() > 0.0
    assert found[:, 0].max() < 0.2
    assert max(energies) < 1.01 * energies[0]
    assert worst < 0.01


def test_the_incompressible_solver_is_the_same_natively(cpu: Device) -> None:
    """Ten steps of a falling block onto a floor: sums in another order, so the last bits differ."""
    params = box_params(equation="incompressible", dt=1e-3, gravity=(0.0, -9.81, 3.0))
    walls = block((0.0, 0.0, 0.0), (0.1, 0.02, 0.1), SPACING)
    ends = []
    for native in (False, True):
        fluid = make_fluid(params, stirred(3)[0], cpu, walls=walls, native=native)
        run(fluid, 10)
        ends.append(particles(fluid))
    assert np.abs(ends[0]["position"] - ends[1]["position"]).max() < 1e-3 * SPACING
    most = ends[0]["pressure"].max()
    assert most > 10.0
    assert np.abs(ends[0]["pressure"] - ends[1]["pressure"]).max() < 0.01 * most


def test_gravity_turns_while_a_program_runs(cpu: Device) -> None:
    x, _ = stirred(3)
    params = box_params(viscosity=0.0)
    fluid = make_fluid(params, x, cpu)
    program = cpu.record(lambda stage: step_fluid(stage, fluid), work=100)
    program.run()
    before = particles(fluid)["velocity"].mean(axis=0)
    set_params(fluid, replace(params, gravity=(9.81, 0.0, 0.0)))
    program.run()
    gained = particles(fluid)["velocity"].mean(axis=0) - before
    assert gained == pytest.approx((9.81 * params.dt, 0.0, 0.0), abs=1e-6)


def test_adaptive_steps_follow_the_fastest(device: Device) -> None:
    """0.4 (R/2)/(c + v): at rest c alone, with one particle at 20 m/s half of that."""
    params = box_params(adaptive=True, dt=1.0, viscosity=0.0, gravity=(0.0, 0.0, 0.0))
    x = np.array([[0.02, 0.02, 0.02], [0.08, 0.08, 0.08]])
    for speed, expected in ((0.0, 0.4 * 0.01 / 20.0), (20.0, 0.4 * 0.01 / 40.0)):
        fluid = make_fluid(replace(params, dt=1e-3), x, device, velocities=np.array([[0.0] * 3, [speed, 0.0, 0.0]]))
        run(fluid, 1)
        numbers: Any = fluid.live.numpy()
        assert numbers["dt"][0] == pytest.approx(expected, rel=1e-5)


def test_an_emitter_fills_at_rest_density_and_stops_when_full(device: Device) -> None:
    """Spacing between layers is what the stream moves: 1 m/s for 0.1 s is ten layers of 9 (3 × 3)."""
    params = box_params(dt=1e-4, gravity=(0.0, 0.0, 0.0), viscosity=0.0, sound_speed=5.0)
    fluid = make_fluid(params, np.zeros((0, 3)), device, capacity=60)
    emitter = add_emitter(fluid, (0.02, 0.05, 0.05), (1.0, 0.0, 0.0), 0.02)
    size = len(emitter.layer)
    program = device.record(lambda stage: step_fluid(stage, fluid), work=100)
    for _ in range(450):
        program.run()
    layers = 1 + int(0.045 / 0.01)
    assert int(fluid.count.numpy()[0]) == layers * size
    x = np.sort(np.unique(np.round(particles(fluid)["position"][:, 0], 5)))
    assert np.diff(x) == pytest.approx(0.01, abs=2e-4)
    assert len(set(particles(fluid)["tag"].tolist())) == layers * size
    for _ in range(1000):
        program.run()
    full = 60 // size * size
    assert int(fluid.count.numpy()[0]) == full
    assert fluid.report.numpy()[REFUSED] == (1 + int(0.145 / 0.01)) * size - full
    set_emitter(emitter, on=False)
    refused = fluid.report.numpy()[REFUSED]
    for _ in range(200):
        program.run()
    assert fluid.report.numpy()[REFUSED] == refused


def test_a_drain_takes_particles_out_and_counts_them(device: Device) -> None:
    params = box_params(gravity=(0.0, 0.0, 0.0), viscosity=0.0)
    x, _ = stirred(3)
    fluid = make_fluid(params, x, device)
    add_drain(fluid, box=((0.0, 0.0, 0.0), (0.1, 0.05, 0.1)))
    run(fluid, 2)
    kept = particles(fluid)
    gone = int((x[:, 1] <= 0.05).sum())
    assert abs(len(kept["tag"]) - (len(x) - gone)) <= 6  # some move over the rim in the first step
    assert fluid.report.numpy()[DRAINED] == len(x) - len(kept["tag"])
    assert kept["position"][:, 1].min() > 0.049
    assert set(kept["tag"].tolist()) <= set(np.nonzero(x[:, 1] > 0.045)[0].tolist())


@pytest.mark.parametrize("drained", [False, True], ids=["closed", "drained"])
@pytest.mark.parametrize("loops", LOOPS)
def test_broken_particles_are_counted_and_nobody_appears_twice(device: Device, loops: str, drained: bool) -> None:
    """A velocity that is not a number breaks a position in one step and the neighbours in the next. Each step counts
    them, all tags stay, each once, and `check_fluid` names them."""
    x, v = stirred(3, side=4)
    fluid = make_with(loops, box_params(gravity=(0.0, 0.0, 0.0)), x, device)
    if drained:
        add_drain(fluid, ball=((0.0, 0.0, 0.0), 0.001))
    v[:] = 0.0
    v[10] = np.nan
    load(fluid, arrays(fluid) | {"velocity": v})
    check_fluid(fluid)
    lost = []
    for tick in range(4):
        run(fluid, 1)
        lost.append(int(fluid.report.numpy()[LOST]))
        found = particles(fluid)
        assert (found["tag"] == np.arange(64)).all()
        if tick > 0:
            assert (~np.isfinite(found["position"]).all(axis=1)).sum() >= lost[-1] > 0
    assert lost[0] == 0
    assert lost[1] >= 1
    assert lost[3] >= lost[2] > lost[1] or lost[1] > 1
    with pytest.raises(StateError, match="not finite") as raised:
        check_fluid(fluid, tick=7)
    assert (raised.value.stage, raised.value.tick) == ("fluid", 7)
    assert raised.value.hint


@pytest.mark.parametrize("loops", LOOPS)
def test_density_by_continuity_stays_above_zero(device: Device, loops: str) -> None:
    """27 particles that fly apart so fast that dρ/dt takes the middle one below 0 in the first step."""
    params = box_params(density="continuity", integrator="leapfrog", suction=True, dt=2e-5, gravity=(0.0, 0.0, 0.0))
    x = 0.05 + 0.004 * (np.stack(np.meshgrid(*[np.arange(3.0)] * 3), axis=-1).reshape(-1, 3) - 1.0)
    v = 2e4 * (x - 0.05)
    rest = np.full(27, params.rest_density)
    growth = reference.rates(params, x, v, rest, np.zeros(27))[1]
    assert (rest + params.dt * growth).min() < 0.0
    fluid = make_with(loops, params, x, device, velocities=v)
    lowest = []
    for _ in range(4):
        run(fluid, 1)
        lowest += [particles(fluid)["density"].min(), fluid.kept_density.numpy().min()]
        assert np.isfinite(particles(fluid)["velocity"]).all()
    assert min(lowest) == pytest.approx(0.1 * params.rest_density, rel=1e-5)


# --- bad input -------------------------------------------------------------------------------------------------------


def test_an_unstable_step_is_refused_with_one_that_would_do() -> None:
    params = box_params()
    most = largest_step(params)
    with pytest.raises(InputError, match=f"{most:.4g}"):
        make_fluid(replace(params, dt=1.1 * most), np.zeros((1, 3)), None)  # pyright: ignore[reportArgumentType]
    thick = replace(params, viscosity=1e3)
    with pytest.raises(InputError, match="viscosity allows"):
        make_fluid(thick, np.zeros((1, 3)), None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("name", "value"),
    [("spacing", 0.0), ("rest_density", -1.0), ("viscosity", np.nan), ("support", 9.0), ("iterations", 0),
     ("equation", "ideal"), ("gravity", (0.0, np.inf, 0.0)), ("dimension", 4), ("upper", (0.1, 0.1)),
     ("periodic", (True,)), ("periodic", (1.0, 0.0, 0.0))],
)  # fmt: skip
def test_impossible_parameters_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        box_params(**{name: value})


def test_a_start_outside_the_box_is_refused(cpu: Device) -> None:
    """Particles and an emitter's layer; wall particles lie outside by nature, and on the rim anyone may start."""
    x = np.array([[0.05, 0.05, 0.05], [0.0, 0.1, 0.1], [5.05, 0.05, 0.05]])
    with pytest.raises(
        InputError, match=r"1 of 3 particles start outside the box, the first at \(5.05, 0.05, 0.05\) m"
    ):
        make_fluid(box_params(), x, cpu)
    fluid = make_fluid(box_params(), x[:2], cpu, walls=x[2:] - 4.93, capacity=100)
    with pytest.raises(InputError, match="of the emitter's layer start outside the box"):
        add_emitter(fluid, (0.05, 0.005, 0.05), (1.0, 0.0, 0.0), 0.02)
    assert not fluid.boundaries
    flat = box_params(dimension=2, lower=(0.0, 0.0), upper=(0.1, 0.1))
    with pytest.raises(InputError, match=r"the first at \(0.05, -0.02\) m"):
        make_fluid(flat, np.array([[0.05, -0.02]]), cpu)


def test_wrong_arrays_and_emitters_are_refused(cpu: Device) -> None:
    with pytest.raises(InputError, match="row 1"):
        make_fluid(box_params(), np.array([[0.0] * 3, [np.nan] * 3]), cpu)
    with pytest.raises(InputError, match="capacity is 3"):
        make_fluid(box_params(), 0.1 * np.random.default_rng(0).random((5, 3)), cpu, capacity=3)
    with pytest.raises(InputError, match="leap-frog"):
        box_params(density="continuity")
    fluid = make_fluid(box_params(), np.zeros((1, 3)), cpu, capacity=100)
    with pytest.raises(InputError, match="no room for a single particle"):
        add_emitter(fluid, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 1e-4)
    with pytest.raises(InputError, match="lets nothing in"):
        add_emitter(fluid, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.02)
    with pytest.raises(InputError, match="not both"):
        add_drain(fluid)
    emitter = add_emitter(fluid, (0.0, 0.05, 0.05), (1.0, 0.0, 0.0), 0.02)
    before: Any = emitter.nozzle.numpy()
    for velocity in ((np.nan, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0)):
        with pytest.raises(InputError, match="velocity"):
            set_emitter(emitter, on=False, velocity=velocity)
    assert (emitter.nozzle.numpy() == before).all()
    boundaries = len(fluid.boundaries)
    for radius in (np.nan, -1.0, 0.0):
        with pytest.raises(InputError, match="radius"):
            add_drain(fluid, ball=((0.0, 0.0, 0.0), radius))
    with pytest.raises(InputError, match="lower corner first"):
        add_drain(fluid, box=((0.1, 0.0, 0.0), (0.0, 0.1, 0.1)))
    assert len(fluid.boundaries) == boundaries
