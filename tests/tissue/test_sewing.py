"""Needle and thread: what one pass of a thread does against float64, a knot that holds 1 N, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import warp as wp
from numpy.typing import NDArray
from sewing_strip import APART, PIERCE, RADIUS, SKIN, SPACING, TOP, Strip, make_strip

import viscera
from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.tissue import thread_kernels, touch_kernels
from viscera.tissue.lattice import make_lattice
from viscera.tissue.params import LatticeParams
from viscera.tissue.sewing import let_sew, need_sewing, tensions


@pytest.fixture(scope="module")
def one_core() -> Iterator[Device]:
    device = open_device("cpu", 1)
    yield device
    device.close()


@pytest.fixture(scope="module")
def tied(one_core: Device) -> Strip:
    """The ends of the strip are drawn 4 mm apart, which opens it; then the knot is drawn until it is closed again."""
    strip = make_strip(one_core)
    strip.take(600, pressed=True)
    assert strip.count(thread_kernels.WITHIN) == 1
    strip.take(550, pressed=True)
    assert (strip.count(thread_kernels.WITHIN), strip.count(thread_kernels.OUT)) == (0, 1)
    count = strip.count(thread_kernels.COUNT)
    strip.holes = need_sewing(strip.tissue).threads.rest.numpy()[:count] + np.asarray(strip.tissue.params.origin)
    strip.take(500, pressed=False)
    for tick in range(100):
        strip.tissue.set_drive(APART * tick / 100, APART * (tick + 1) / 100)
        strip.take(1, pressed=False)
    strip.tissue.set_drive(APART, APART)
    assert strip.gap() > 0.003
    for _ in range(50):
        strip.tie(20, 3.0, pressed=True)
        if strip.gap() < 0.0002:
            break
    strip.tie(200, 3.0, pressed=False)
    return strip


def test_a_needle_goes_in_and_comes_out_on_the_other_side(tied: Strip) -> None:
    rest = tied.holes
    # In and out where the circle meets the surface, within what the lips give way: 6² = 2.5² + 5.5².
    assert rest[0, 0] == pytest.approx(-0.0055, abs=0.001)
    assert rest[-1, 0] == pytest.approx(0.0055, abs=0.001)
    assert np.allclose(rest[[0, -1], 2], TOP, atol=2e-4)
    assert len(rest) >= 4
    # Holes between lie on the circle, below the surface.
    below = np.linalg.norm(rest[1:-1] - (0.0, 0.0, TOP + 0.0025), axis=1)
    assert np.allclose(below, RADIUS, atol=8e-4)


@pytest.mark.slow
def test_let_go_before_its_point_is_out_nothing_has_happened(one_core: Device) -> None:
    strip = make_strip(one_core)
    strip.take(450, pressed=True)
    assert strip.count(thread_kernels.COUNT) > 0
    strip.take(400, pressed=False)
    assert strip.count(thread_kernels.COUNT) == 0
    assert strip.count(thread_kernels.PHASE) == 0
    assert np.abs(strip.tissue.displacement()).max() < 2e-5


def test_piercing_takes_the_stated_force(one_core: Device) -> None:
    """The surface is pushed along until the force is there; then the hole is made."""
    strip = make_strip(one_core)
    felt = []
    for _ in range(500):
        strip.take(1, pressed=True)
        force, _torque = strip.tissue.tool_force(0)
        felt.append(float(np.linalg.norm(force)))
        if strip.count(thread_kernels.WITHIN):
            break
    # What the hand feels in the tick of the break-through is smoothed over ten substeps, of twelve in a tick.
    assert max(felt) == pytest.approx(PIERCE, rel=0.25)


def test_a_knot_holds_two_edges_under_a_newton_with_a_gap_below_a_millimetre(tied: Strip) -> None:
    assert tied.count(thread_kernels.KNOTS) == 1
    before = tied.gap()
    assert before < 0.001
    assert tied.across() > 1.0
    tied.tie(300, 3.0, pressed=False)
    assert tied.gap() < 0.001
    assert tied.gap() == pytest.approx(before, abs=5e-5)
    assert tied.across() > 1.0
    assert np.abs(tied.tissue.velocities()).max() < 1e-3


def test_tension_falls_at_a_hole_by_no_more_than_friction_holds(tied: Strip) -> None:
    """T⁺ ≤ e^(μθ) T⁻ + T₀ with θ ≤ π; 0.05 N for what trembles and slides on."""
    tension = tensions(tied.tissue)
    most = np.exp(float(thread_kernels.HOLE_FRICTION) * np.pi)
    low, high = np.minimum(tension[1:], tension[:-1]), np.maximum(tension[1:], tension[:-1])
    assert (high <= most * low + float(thread_kernels.HOLE_GRIP) + 0.05).all()


@pytest.mark.slow
def test_a_pulled_thread_is_felt_in_the_hand(one_core: Device) -> None:
    strip = make_strip(one_core, length=0.06)
    strip.take(1300, pressed=True)
    strip.take(700, pressed=False)
    for step in range(600):
        strip.take(1, pressed=False, height=0.0025 + 0.0001 * step)
    strip.take(400, pressed=False, height=0.0625)
    force, _torque = strip.tissue.tool_force(0)
    tension = float(tensions(strip.tissue)[-1])
    assert tension > 0.05
    assert np.linalg.norm(force) == pytest.approx(tension, rel=0.02)
    assert force[2] < 0.0


def test_thread_keeps_its_length(tied: Strip) -> None:
    """What is in the stitch, on the needle and cut off with the knot is what there was."""
    threads = need_sewing(tied.tissue).threads
    count = tied.count(thread_kernels.COUNT)
    left = float(threads.numbers.numpy()[int(thread_kernels.LEFT)])
    stitch = float(threads.length.numpy()[:count].sum())
    assert stitch + left + 0.012 == pytest.approx(0.15, abs=1e-5)


@pytest.mark.slow
def test_a_needle_without_enough_thread_says_so_and_leaves_all_as_it_was(one_core: Device) -> None:
    strip = make_strip(one_core, length=0.03)
    strip.take(1300, pressed=True)
    strip.take(600, pressed=False)
    assert strip.count(thread_kernels.REFUSED) == 1
    assert strip.count(thread_kernels.COUNT) == 0
    assert float(need_sewing(strip.tissue).threads.numbers.numpy()[int(thread_kernels.LEFT)]) == pytest.approx(0.03)


@pytest.mark.slow
def test_more_holes_than_there_is_room_for_are_refused(one_core: Device) -> None:
    strip = make_strip(one_core)
    threads = need_sewing(strip.tissue).threads
    counts = threads.counts.numpy()
    counts[[int(thread_kernels.COUNT), int(thread_kernels.FIRST)]] = thread_kernels.HOLES - 1
    threads.counts.assign(counts)
    strip.take(1300, pressed=True)
    strip.take(900, pressed=False)
    assert strip.count(thread_kernels.REFUSED) > 0
    assert strip.count(thread_kernels.COUNT) == thread_kernels.HOLES - 1
    assert np.isfinite(strip.tissue.displacement()).all()


@pytest.mark.parametrize("length", [0.01, 2.0, float("nan")])
def test_thread_of_no_use_is_refused(one_core: Device, length: float) -> None:
    body = viscera.block((4, 4, 4), SPACING)
    params = LatticeParams(
        body.nodes, SPACING, body.origin, body.positions[:, 2] < 1e-9, SKIN, stiffest=SKIN.young
    )  # fmt: skip
    with pytest.raises(InputError, match=r"a thread of .* m is not possible"):
        let_sew(make_lattice(one_core, params), length)


# --- one pass against float64 ---


def reference(
    x: NDArray[np.float64], v: NDArray[np.float64], holes: list[tuple[NDArray[np.int64], NDArray[np.float64]]],
    rest: NDArray[np.float64], inverse: NDArray[np.float64], length: float, dt: float, tau: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """A taut thread between two holes, three times over; x is p = u + τ·v."""
    for _ in range(3):
        u = x - tau * v
        ends = [rest[k] + holes[k][1] @ u[holes[k][0]] for k in (0, 1)]
        way = ends[1] - ends[0]
        far = np.linalg.norm(way)
        excess = far - length
        if excess <= 0.0:
            break
        slopes = [-way / far, way / far]
        yields = length / (float(thread_kernels.STRETCH) * dt**2)
        yields += sum(float((w**2 * inverse[i]).sum()) for i, w in holes)
        for k in (0, 1):
            i, w = holes[k]
            move = -(excess / yields) * (w * inverse[i])[:, None] * slopes[k]
            np.add.at(v, i, move / dt)
            np.add.at(x, i, move + tau * move / dt)
    return x, v


def test_one_substep_of_a_taut_thread_is_that_of_float64(one_core: Device) -> None:
    strip = make_strip(one_core)
    tissue, rng = strip.tissue, np.random.default_rng(5)
    threads, slots = need_sewing(tissue).threads, tissue.layout.slots
    nodes = [rng.choice(len(tissue.params.nodes), 8, replace=False) for _ in range(2)]
    weights = rng.dirichlet(np.ones(8), 2)
    rest = rng.uniform(0.002, 0.012, (2, 3))
    length = 0.9 * float(np.linalg.norm(rest[1] - rest[0]))
    places = tissue.layout.slot_of_node[np.array(nodes)]
    for name, values in (("places", places.ravel()), ("weights", weights.ravel()), ("rest", rest)):
        array = getattr(threads, name)
        whole = array.numpy()
        whole.reshape(-1)[: values.size] = values.ravel()
        array.assign(whole)
    kind, given, counts = threads.kind.numpy(), threads.length.numpy(), threads.counts.numpy()
    kind[0], given[0], counts[int(thread_kernels.COUNT)] = int(thread_kernels.OUTSIDE), length, 2
    counts[int(thread_kernels.FIRST)] = 2
    threads.kind.assign(kind)
    threads.length.assign(given)
    threads.counts.assign(counts)
    state, here = tissue.state, tissue.state.position[tissue.current]
    x, v = rng.normal(0.0, 1e-4, (slots, 3)), rng.normal(0.0, 1e-2, (slots, 3))
    here.assign(x.T.ravel().astype(np.float32))
    state.velocity.assign(v.T.ravel().astype(np.float32))
    args = [tissue.constants, tissue.need_touching().samples, 0, state.live.array, state.tools.array]
    args += [touch_kernels.TIPS, threads, state.velocity, here, state.force.array]
    wp.launch(thread_kernels.pull_threads, dim=1, inputs=args, device=tissue.device.warp)
    inverse = tissue.constants.inverse_mass.numpy().astype(np.float64)
    holes = [(places[k].astype(np.int64), weights[k]) for k in (0, 1)]
    wanted_x, wanted_v = reference(
        x.copy(), v.copy(), holes, rest, inverse, length, tissue.constants.dt, tissue.viscous_time
    )
    moved = float(np.abs(wanted_v - v).max())
    assert moved > 1e-3
    got_v = state.velocity.numpy().reshape(3, slots).T
    got_x = here.numpy().reshape(3, slots).T
    # Float32 places of some millimetres: 1e-9 m, over Δt 1e-5 m/s.
    assert np.abs(got_v - wanted_v).max() < 2e-4 * moved + 3e-5
    assert np.abs(got_x - wanted_x).max() < 2e-8
