"""The lattice against closed forms, conservation laws, and a slow float64 reference."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from viscera.device import Device, open_device
from viscera.errors import InputError, StateError
from viscera.timing import TICK
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.layout import TILE, make_layout
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams, largest_step
from viscera.tissue.springs import (
    DIRECTIONS,
    RATIO_BODY,
    RATIO_FACE,
    STABLE_STEP,
    NodeIndex,
    axis_stiffness,
    cells_around,
    length_ratio,
    spring_share,
)

DENSITY = 1_060.0
SPACING = 0.004


def box(*counts: int) -> NDArray[np.int32]:
    axes = [np.arange(count, dtype=np.int32) for count in counts]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def lattice(
    device: Device, nodes: NDArray[np.int32], young: float = 3_000.0, native: bool = True, **more: Any
) -> Tissue:
    options: dict[str, Any] = {
        "spacing": SPACING,
        "origin": (0.0, 0.0, 0.0),
        "anchored": np.zeros(len(nodes), dtype=bool),
        "material": Material("test", young, DENSITY),
        "stiffest": young,
        "poisson": 0.25,
        "viscous_time": 0.0,
    }
    return make_lattice(device, LatticeParams(nodes=nodes, **(options | more)), native=native)


@pytest.fixture(params=[True, False], ids=["native", "plain"])
def native(request: pytest.FixtureRequest) -> bool:
    return request.param


def springs_of(tissue: Tissue) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Every spring once: its two masses, rest vector [m] and stiffness [N/m], read back from what the kernel uses."""
    nodes = tissue.params.nodes
    index = NodeIndex(nodes)
    table = tissue.constants.stiffness.numpy().astype(np.float64).reshape(len(DIRECTIONS), -1)
    first, second, rest, stiffness = [], [], [], []
    for row, direction in enumerate(DIRECTIONS):
        other = index.find(nodes + np.array(direction, dtype=np.int32))
        here = np.nonzero(other >= 0)[0]
        first.append(here)
        second.append(other[here])
        rest.append(np.tile(np.array(direction) * tissue.params.spacing, (len(here), 1)))
        stiffness.append(table[row, tissue.layout.slot_of_node[here]])
    scale = axis_stiffness(tissue.young, tissue.params.spacing)
    return np.concatenate(first), np.concatenate(second), np.concatenate(rest), np.concatenate(stiffness) * scale


def reference_force(tissue: Tissue, u: NDArray[np.float64], scale: float = 1.0) -> NDArray[np.float64]:
    """Etheredge Algorithm 1, lines 1 to 8, in float64: spring by spring, action and reaction [N]. `scale` is the
    springs' share of the stiffness."""
    i, j, rest, stiffness = springs_of(tissue)
    d = rest + u[j] - u[i]
    length = np.linalg.norm(d, axis=1)
    pull = (stiffness * (length - np.linalg.norm(rest, axis=1)) / length)[:, None] * d
    total = np.zeros_like(u)
    np.add.at(total, i, pull)
    np.add.at(total, j, -pull)
    return scale * total


def energy(tissue: Tissue) -> float:
    """Kinetic and elastic [J]. Verlet's velocity is half a step late, so it is brought to the step first."""
    i, j, rest, stiffness = springs_of(tissue)
    u, v = tissue.displacement().astype(np.float64), tissue.velocities().astype(np.float64)
    v = v + 0.5 * tissue.constants.dt * reference_force(tissue, u) / tissue.mass[:, None]
    stretch = np.linalg.norm(rest + u[j] - u[i], axis=1) - np.linalg.norm(rest, axis=1)
    return float(0.5 * (tissue.mass[:, None] * v * v).sum() + 0.5 * (stiffness * stretch**2).sum())


# --- the rule the stiffnesses follow ---


def test_isotropic_rule_holds() -> None:
    assert pytest.approx(1.0) == RATIO_FACE + 8.0 / 3.0 * RATIO_BODY
    k1 = axis_stiffness(3_000.0, SPACING)
    assert 2.5 * (RATIO_FACE + 4.0 / 3.0 * RATIO_BODY) * k1 / SPACING == pytest.approx(3_000.0)


def test_largest_step_matches_a_sweep_over_the_brillouin_zone() -> None:
    """ω² is the largest eigenvalue of the dynamical matrix over all wave vectors, with m = ρ·dx³ and E from k₁."""
    waves = np.array(list(itertools.product(np.linspace(0.0, np.pi, 13), repeat=3)))
    matrix = np.zeros((len(waves), 3, 3))
    for direction in DIRECTIONS:
        d = np.array(direction, dtype=float)
        shape = np.outer(d, d) / (d @ d)
        matrix += (2.0 * length_ratio(direction) * (1.0 - np.cos(waves @ d)))[:, None, None] * shape
    highest = np.linalg.eigvalsh(matrix).max()  # ω²·m/k₁
    young = 1.0 / axis_stiffness(1.0, 1.0)  # E·dx/k₁
    assert 2.0 / np.sqrt(highest) * np.sqrt(young) == pytest.approx(STABLE_STEP, rel=1e-9)


def test_shares_add_up_to_the_volume(cpu: Device) -> None:
    """A block of 4 × 3 × 2 cells weighs ρ·24·dx³, and holds 4·3·2 cells' worth of each spring family."""
    nodes = box(5, 4, 3)
    assert lattice(cpu, nodes).mass.sum() == pytest.approx(DENSITY * 24 * SPACING**3)
    cells = cells_around(nodes, NodeIndex(nodes))
    index = NodeIndex(nodes)
    for direction in DIRECTIONS:
        other = index.find(nodes + np.array(direction, dtype=np.int32))
        assert (spring_share(cells, direction, other) * (other >= 0)).sum() == pytest.approx(24.0)


# --- closed forms ---


def test_two_masses_on_a_spring_oscillate_with_the_right_period(device: Device, native: bool) -> None:
    """T = 2π√(m/2k). Verlet's own error is (ωΔt)²/24, here 0.02 %; crossings are interpolated."""
    tissue = lattice(device, box(2, 1, 1), young=30.0, native=native)
    stiffness = springs_of(tissue)[3][0]
    u = np.array([[-1e-5, 0, 0], [1e-5, 0, 0]])
    tissue.set_motion(u, np.zeros_like(u))
    trace = []
    for _ in range(2_000):
        tissue.step()
        trace.append(tissue.displacement()[1, 0])
    x = np.array(trace)
    up = np.nonzero((x[:-1] < 0) & (x[1:] >= 0))[0]
    crossings = (up + x[up] / (x[up] - x[up + 1])) * TICK
    period = (crossings[-1] - crossings[0]) / (len(crossings) - 1)
    assert period == pytest.approx(2 * np.pi * np.sqrt(tissue.mass[0] / (2 * stiffness)), rel=1e-3)


def test_a_hanging_chain_is_as_long_as_statics_says(device: Device, native: bool) -> None:
    """Spring i below the anchor carries the N − i masses under it: L = Σ (L₀ + (N − i)·m·g/k)."""
    count = 8
    nodes = box(1, 1, count)
    tissue = lattice(device, nodes, young=400.0, native=native, anchored=nodes[:, 2] == count - 1, drag=20.0)
    tissue.set_gravity((0.0, 0.0, -9.81))
    for _ in range(4_000):
        tissue.step()
    z = tissue.rest_positions()[:, 2] + tissue.displacement()[:, 2]
    mass, stiffness = tissue.mass[0], springs_of(tissue)[3][0]
    below = np.arange(1, count)
    expected = (count - 1) * SPACING + (below * mass * 9.81 / stiffness).sum()
    assert expected > 1.3 * (count - 1) * SPACING  # stretched well beyond rounding
    assert z.max() - z.min() == pytest.approx(expected, rel=1e-4)


def test_momentum_is_kept_without_anchors(device: Device, native: bool) -> None:
    """Springs act in pairs, so momentum changes by rounding alone: 1e-6 of the masses' momenta after 500 steps."""
    nodes = box(7, 6, 5)
    tissue = lattice(device, nodes, native=native, viscous_time=1e-4, longest_viscous_time=1e-4)
    rng = np.random.default_rng(1)
    tissue.set_motion(rng.normal(0, 1e-4, (len(nodes), 3)), rng.normal(0, 0.05, (len(nodes), 3)))
    before = tissue.mass @ tissue.velocities()
    for _ in range(500):
        tissue.step()
    after = tissue.mass @ tissue.velocities()
    scale = tissue.mass @ np.abs(rng.normal(0, 0.05, (len(nodes), 3)))
    assert np.abs(after - before).max() < 1e-6 * scale.max()


def test_no_time_no_change(device: Device, native: bool) -> None:
    nodes = box(5, 4, 3)
    tissue = lattice(device, nodes, native=native, viscous_time=1e-4, longest_viscous_time=1e-4)
    rng = np.random.default_rng(2)
    tissue.set_motion(rng.normal(0, 1e-4, (len(nodes), 3)), rng.normal(0, 0.05, (len(nodes), 3)))
    tissue.constants.dt = 0.0
    before = [array.numpy().copy() for array in (*tissue.state.position, tissue.state.velocity)]
    tissue.step()
    after = [array.numpy() for array in (*tissue.state.position, tissue.state.velocity)]
    # p⁺ = (p − τ·v) + τ·v: equal up to the last bit of that sum.
    np.testing.assert_array_equal(before[2], after[2])
    np.testing.assert_allclose(before[0], after[1], rtol=0, atol=2e-11)


def test_undamped_energy_does_not_drift(device: Device) -> None:
    """Verlet's energy swings with (ωΔt)² but does not drift: means over two windows agree to 0.1 %."""
    nodes = box(6, 6, 6)
    tissue = lattice(device, nodes, young=100.0)
    rng = np.random.default_rng(3)
    tissue.set_motion(rng.normal(0, 2e-5, (len(nodes), 3)), np.zeros((len(nodes), 3)))
    means = []
    for _ in range(2):
        window = []
        for _ in range(100):
            tissue.step()
            window.append(energy(tissue))
        means.append(np.mean(window))
        for _ in range(4_000):
            tissue.step()
    assert means[1] == pytest.approx(means[0], rel=1e-3)


# --- against the reference ---


@pytest.mark.parametrize("origin", [(0.0, 0.0, 0.0), (0.6, -0.8, 0.3)], ids=["at the origin", "a metre away"])
def test_acceleration_equals_the_serial_algorithm(
    device: Device, native: bool, origin: tuple[float, float, float]
) -> None:
    """Random displacements of up to 10 % strain on a ragged lattice with stiffness from place to place; float32 gives
    some 1e-6 of the largest acceleration."""
    rng = np.random.default_rng(4)
    nodes = box(37, 6, 5)
    nodes = nodes[rng.random(len(nodes)) < 0.9]
    anchored = nodes[:, 2] == 0
    relative = rng.uniform(0.5, 4.0, len(nodes))
    tissue = lattice(
        device, nodes, young=500.0, native=native, anchored=anchored, relative_young=relative, origin=origin
    )
    assert tissue.substeps == 1
    u = rng.normal(0, 2e-4, (len(nodes), 3))
    tissue.set_motion(u, np.zeros_like(u))
    expected = reference_force(tissue, tissue.displacement().astype(np.float64)) / tissue.mass[:, None]
    expected[anchored] = 0.0
    tissue.step()
    got = tissue.velocities() / TICK
    assert np.abs(got - expected).max() < 1e-5 * np.abs(expected).max()


def test_native_and_plain_kernel_agree_under_tools(device: Device) -> None:
    nodes = box(21, 9, 6)
    made = [
        lattice(
            device, nodes, native=n, anchored=nodes[:, 2] == 0, drag=5.0, viscous_time=1e-4, longest_viscous_time=1e-4
        )
        for n in (True, False)
    ]
    start = np.array([[0.033, 0.0151, 0.0247], [0.04, 0.03, 0.05]])
    for tick in range(15):
        for tissue in made:
            down = np.array([0.0, 0.0, -5e-5 * tick])
            tissue.set_tool(0, start=start + down, end=start + down - [0, 0, 5e-5], radius=0.005, friction=0.3)
            tissue.set_tool(
                1,
                start=start[::-1] + np.array([0.02, -0.02, -0.03]),
                end=start[::-1] + np.array([0.02, -0.02, -0.03]),
                radius=0.004,
                friction=0.1,
            )
            tissue.step()
    for tool in (0, 1):
        a, b = (np.concatenate(tissue.tool_force(tool)) for tissue in made)
        assert np.linalg.norm(a[:3]) > 1e-3
        np.testing.assert_allclose(a[:3], b[:3], atol=1e-3 * float(np.linalg.norm(a[:3])))
    u, w = (tissue.displacement() for tissue in made)
    assert np.linalg.norm(u - w) < 1e-4 * np.linalg.norm(u)


def test_cores_do_not_change_the_result() -> None:
    """Forced onto two graphs by its size; integers make the force's sum exact in any order."""
    nodes = box(33, 30, 25)
    results = []
    for cores in (1, 2, 3):
        device = open_device("cpu", cores=cores)
        tissue = lattice(device, nodes, anchored=nodes[:, 2] == 0)
        tip = np.tile(np.array([[0.0601, 0.0607, 0.098]]), (2, 1))
        tissue.set_tool(0, start=tip, end=tip, radius=0.006, friction=0.2)
        for _ in range(25):
            tissue.step()
        results.append((tissue.displacement(), tissue.state.force.host.copy()))
        device.close()
    assert np.abs(results[0][1]).max() > 0
    for other in results[1:]:
        np.testing.assert_array_equal(results[0][0], other[0])
        np.testing.assert_array_equal(results[0][1], other[1])


# --- touch ---


def test_reaction_equals_what_the_anchors_carry(device: Device, native: bool) -> None:
    """At rest the force on the tool and the force on the anchors sum to zero (no gravity)."""
    nodes = box(13, 13, 7)
    anchored = nodes[:, 2] == 0
    tissue = lattice(device, nodes, native=native, anchored=anchored, drag=30.0)
    tip = np.tile(np.array([[0.0241, 0.0239, 0.0275]]), (2, 1))
    for _ in range(1_500):
        tissue.set_tool(0, start=tip, end=tip, radius=0.006, friction=0.3)
        tissue.step()
    felt = np.array(tissue.tool_force(0)[0])
    anchors = reference_force(tissue, tissue.displacement().astype(np.float64))[anchored].sum(axis=0)
    assert felt[2] > 0.02
    np.testing.assert_allclose(felt, -anchors, atol=0.01 * float(np.linalg.norm(felt)))
    tissue.remove_tool(0)
    tissue.step()
    assert tissue.tool_force(0) == ([0.0] * 3, [0.0] * 3)


def test_no_mass_is_left_inside_the_tool(device: Device) -> None:
    nodes = box(13, 13, 7)
    tissue = lattice(device, nodes, anchored=nodes[:, 2] == 0, drag=30.0)
    tip = np.array([0.0241, 0.0239, 0.0265])
    for _ in range(200):
        tissue.set_tool(0, start=np.tile(tip, (2, 1)), end=np.tile(tip, (2, 1)), radius=0.006, friction=0.3)
        tissue.step()
    x = tissue.rest_positions() + tissue.displacement()
    assert np.linalg.norm(x - tip, axis=1).min() > 0.006 - 1e-6


# --- the memory layout ---


@pytest.mark.parametrize("bricks", [False, True])
def test_layout_gives_every_mass_a_place_and_finds_its_neighbours(bricks: bool) -> None:
    rng = np.random.default_rng(5)
    nodes = box(70, 5, 4) - 3
    nodes = nodes[rng.random(len(nodes)) < 0.3]
    layout = make_layout(nodes, bricks)
    index = NodeIndex(nodes)
    tile_of_slot = {int(slot): tile for tile, slot in enumerate(layout.tile_slot)}
    for node, slot in zip(nodes, layout.slot_of_node, strict=True):
        tile = tile_of_slot[int(slot) - int(slot) % TILE]
        lane = int(slot) % TILE
        assert (layout.tile_cell[tile] + [lane, 0, 0] == node).all()
        for d in range(-13, 14):
            step = np.array([(d + 13) % 3 - 1, (d + 13) // 3 % 3 - 1, (d + 13) // 9 - 1], dtype=np.int32)
            neighbour = int(index.find((node + step)[None])[0])
            place = int(layout.rows[tile, (d + 13) // 3]) + lane + int(step[0])
            if neighbour >= 0:
                assert place == layout.slot_of_node[neighbour]
            else:
                assert place not in set(layout.slot_of_node.tolist())


# --- bad input ---


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"spacing": float("nan")}, "spacing"),
        ({"spacing": -1.0}, "spacing"),
        ({"stiffest": 1.0}, "largest"),
        ({"stiffest": 1e12}, "substeps"),
        ({"drag": float("inf")}, "drag"),
        ({"material": Material("lead", -1.0, DENSITY)}, "young"),
        ({"material": Material("air", 3e3, 0.0)}, "density"),
        ({"anchored": np.zeros(3, dtype=bool)}, "anchored"),
    ],
)
def test_impossible_lattices_are_refused(cpu: Device, change: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word) as refused:
        lattice(cpu, box(4, 4, 4), **change)
    assert refused.value.hint


def test_what_the_substeps_cannot_carry_is_refused(cpu: Device) -> None:
    tissue = lattice(cpu, box(4, 4, 4))
    with pytest.raises(InputError, match="substeps"):
        tissue.set_young(4_000.0)
    assert largest_step(SPACING, 3_000.0, DENSITY, 0.0) > TICK / tissue.substeps


def test_a_broken_state_stops_with_its_stage_and_tick(device: Device, native: bool) -> None:
    tissue = lattice(device, box(4, 4, 4), native=native)
    u = np.zeros((64, 3))
    tissue.step()
    u[5, 1] = np.nan
    tissue.set_motion(u, np.zeros_like(u))
    with pytest.raises(StateError) as stopped:
        tissue.step()
    assert (stopped.value.stage, stopped.value.tick) == ("tissue", 2)
