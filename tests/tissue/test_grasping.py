"""Jaws hold what is between them: as strongly as they say, and they give back no more than they were given."""

from __future__ import annotations

import numpy as np
import pytest
from cutting_reference import springs_of
from numpy.typing import NDArray

from viscera.device import Device
from viscera.errors import InputError
from viscera.timing import TICK
from viscera.tissue import LatticeParams
from viscera.tissue.grasping import Mouth, let_grasp, need_grasping, open_jaws, set_jaws
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material

SPACING, CELLS = 0.002, (8, 6, 4)
TOP = SPACING * CELLS[2]
MIDDLE = np.array([0.5 * SPACING * CELLS[0], 0.5 * SPACING * CELLS[1], TOP - 0.003])
"""Of the block, where the tip of the jaws is as they take [m]."""
MOUTH = Mouth(length=0.018, width=0.005, gap=0.9e-3, opening=0.42)
GRIP, FRICTION = 0.5, 0.5
HOLDS = 2.0 * FRICTION * GRIP
"""Along the jaws [N]."""


def block(device: Device, young: float, *, held: bool = True, drag: float = 0.0) -> Tissue:
    axes = [np.arange(count + 1, dtype=np.int32) for count in CELLS]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    params = LatticeParams(
        nodes=nodes, spacing=SPACING, origin=(0.0, 0.0, 0.0), anchored=(nodes[:, 2] == 0) & held, stiffest=young,
        material=Material("test", young, 1_000.0, poisson=0.25, viscous_time=0.0), drag=drag,
    )  # fmt: skip
    tissue = make_lattice(device, params)
    let_grasp(tissue)
    return tissue


def frames(start: NDArray[np.float64], end: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([[tip, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]] for tip in (start, end)])


def hold(
    tissue: Tissue, start: NDArray[np.float64], end: NDArray[np.float64], closed: tuple[float, float], *, takes: bool
) -> NDArray[np.float64]:
    """A tick with the jaws there; the force on the hand [N]."""
    both = frames(start, end)
    set_jaws(tissue, 0, 0, MOUTH, both, closed, grip=GRIP, friction=FRICTION, takes=takes)
    tissue.step()
    return np.array(tissue.tool_force(0)[0])


def energy(tissue: Tissue) -> float:
    """Elastic and kinetic, in float64 [J]."""
    direction, low, high = springs_of(tissue.params.nodes)
    table = tissue.constants.stiffness.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node].astype(np.float64)
    rest = (tissue.params.nodes[high] - tissue.params.nodes[low]) * tissue.params.spacing
    u, v = tissue.displacement().astype(np.float64), tissue.velocities().astype(np.float64)
    stretch = np.linalg.norm(rest + u[high] - u[low], axis=1) - np.linalg.norm(rest, axis=1)
    moving = tissue.mass * ~tissue.params.anchored
    return float(0.5 * tissue.state.live.host[3] * table[direction, low] @ stretch**2 + 0.5 * moving @ (v**2).sum(1))


def test_it_takes_what_is_between_its_jaws_and_nothing_else(device: Device) -> None:
    """Against the mouth written out here; half a cell around it is included."""
    tissue = block(device, 20_000.0)
    hold(tissue, MIDDLE, MIDDLE, (0.5, 0.5), takes=True)
    grasp = need_grasping(tissue).grasp
    count = int(grasp.listed.numpy()[0])
    free = np.flatnonzero(~tissue.params.anchored)
    found = free[grasp.mass.numpy()[:count]]
    x, y, z = (tissue.rest_positions() - MIDDLE).T
    half, slack = 0.5 * SPACING, 0.5 * MOUTH.width
    gap = MOUTH.gap + np.maximum(MOUTH.length - z, 0.0) * np.tan(0.5 * MOUTH.opening)
    inside = (np.abs(x) <= gap + half) & (np.abs(y) <= slack + half) & (z >= -half) & (z <= MOUTH.length + half)
    expected = np.flatnonzero(inside & ~tissue.params.anchored)
    assert np.array_equal(found, expected)
    assert 10 < count < 0.5 * len(free)
    assert need_grasping(tissue).held(0) == count


def test_a_substep_is_what_the_equations_say(device: Device) -> None:
    """Masses without springs to speak of, thrown about: float64 against the kernel, some of them slipping."""
    tissue = block(device, 1.0, held=False)
    hold(tissue, MIDDLE, MIDDLE, (0.5, 0.5), takes=True)
    grasp, rng = need_grasping(tissue).grasp, np.random.default_rng(3)
    count = int(grasp.listed.numpy()[0])
    masses, anchor = grasp.mass.numpy()[:count].copy(), grasp.anchor.numpy()[:count].astype(np.float64)
    u0 = tissue.displacement().astype(np.float64)
    v = np.zeros_like(u0)
    v[masses] = rng.normal(size=(count, 3)) * rng.choice([0.001, 2.0], size=(count, 1))
    tissue.set_motion(u0, v)
    v = tissue.velocities().astype(np.float64)
    felt = hold(tissue, MIDDLE, MIDDLE, (0.5, 0.5), takes=False)
    dt, mass, x = TICK / tissue.substeps, tissue.mass[masses], tissue.rest_positions()[masses] + u0[masses] - MIDDLE
    x_v, total, slipped = v[masses], np.zeros(3), np.zeros(count, dtype=bool)
    each = 2.0 * GRIP / count
    for _ in range(tissue.substeps):
        x = x + dt * x_v
        force = (anchor - x) * (mass / dt**2)[:, None]
        wanted = np.linalg.norm(force[:, 1:], axis=1)
        late = (wanted > FRICTION * each) | (np.abs(force[:, 0]) > each)
        force[:, 0] = np.clip(force[:, 0], -each, each)
        force[:, 1:] *= np.minimum(1.0, FRICTION * each / np.maximum(wanted, 1e-30))[:, None]
        x_v = x_v + dt * force / mass[:, None]
        x = x + dt**2 * force / mass[:, None]
        anchor = np.where(late[:, None], x, anchor)
        slipped |= late
        total -= force.sum(axis=0) / tissue.substeps
    assert 0.2 < slipped.mean() < 0.8
    # Springs of 1 Pa are left out in the reference: they move a mass by less than a nanometre.
    assert np.allclose(tissue.velocities()[masses], x_v, atol=2e-4)
    assert np.allclose(grasp.anchor.numpy()[:count], anchor, atol=2e-7)
    assert np.allclose(felt, total, atol=2e-3 * HOLDS)


def pull(tissue: Tissue, way: NDArray[np.float64], ticks: int, speed: float = 0.05) -> NDArray[np.float64]:
    """Takes, and pulls this way; the force of each tick along it [N]."""
    hold(tissue, MIDDLE, MIDDLE, (0.5, 0.5), takes=True)
    forces = []
    for tick in range(ticks):
        start, end = (MIDDLE + way * speed * TICK * (tick + k) for k in range(2))
        forces.append(-float(hold(tissue, start, end, (0.5, 0.5), takes=False) @ way))
    return np.array(forces)


def test_it_holds_up_to_its_force_and_slips_beyond(device: Device) -> None:
    """Along its jaws, out of a block that is held below: the force grows to 2·friction·grip, stays there while tissue
    slips, and is gone when all of it has slipped out."""
    tissue = block(device, 60_000.0, drag=20.0)
    forces = pull(tissue, np.array([0.0, 0.0, 1.0]), 500)
    assert forces.max() <= HOLDS * (1.0 + 1e-6)
    # Masses do not all pull straight, so that the sum of forces of equal size falls short by some percent.
    assert forces.max() >= 0.85 * HOLDS
    assert need_grasping(tissue).held(0) == 0
    assert np.abs(forces[-5:]).max() == 0.0


def test_below_its_force_nothing_slips(device: Device) -> None:
    tissue = block(device, 5_000.0, drag=20.0)
    taken = need_grasping(tissue)
    forces = pull(tissue, np.array([0.0, 0.0, 1.0]), 20)
    before = taken.held(0)
    end = MIDDLE + np.array([0.0, 0.0, 0.001])
    for _ in range(300):
        forces = hold(tissue, end, end, (0.5, 0.5), takes=False)
    assert taken.held(0) == before > 0
    assert 0.1 * HOLDS < -forces[2] < 0.8 * HOLDS
    count = int(taken.grasp.listed.numpy()[0])
    free = np.flatnonzero(~tissue.params.anchored)[taken.grasp.mass.numpy()[:count]]
    place = tissue.rest_positions()[free] + tissue.displacement()[free]
    assert np.allclose(place - end, taken.grasp.anchor.numpy()[:count], atol=2e-6)


def test_it_gives_back_no_more_than_was_put_in(device: Device) -> None:
    """Out, aside, back and open again, without any friction in the tissue: at no time is there more energy than the
    hand has given."""
    tissue = block(device, 20_000.0)
    ways = np.concatenate([[[0.0, 0.0, 1.0]] * 60, [[1.0, 0.0, 0.0]] * 60, [[-1.0, 0.0, -1.0]] * 60]) * 5e-5
    tip, work, most = MIDDLE.copy(), 0.0, 0.0
    hold(tissue, tip, tip, (0.5, 0.5), takes=True)
    for way in ways:
        force = hold(tissue, tip, tip + way, (0.5, 0.5), takes=False)
        tip = tip + way
        work -= float(force @ way)
        most = max(most, work)
        # The sum of elastic and kinetic energy trembles by 5 % in steps this long, held or not.
        assert energy(tissue) <= work + 0.05 * most
    assert work > 0.0
    open_jaws(tissue, 0)
    for _ in range(50):
        tissue.step()
        assert energy(tissue) <= work + 0.05 * most
    assert need_grasping(tissue).held(0) == 0


def test_closed_in_nothing_it_holds_nothing(device: Device) -> None:
    tissue, above = block(device, 20_000.0), MIDDLE + np.array([0.0, 0.0, 0.03])
    for tick in range(10):
        force = hold(tissue, above, above, (0.1 * tick, 0.1 * tick + 0.1), takes=True)
        assert not force.any()
    assert need_grasping(tissue).held(0) == 0
    assert not tissue.displacement().any()


def test_what_is_no_jaw_is_refused(cpu: Device) -> None:
    tissue = block(cpu, 20_000.0)
    with pytest.raises(InputError, match="is not there"):
        set_jaws(tissue, 9, 0, MOUTH, frames(MIDDLE, MIDDLE), (0.0, 0.0), grip=1.0, friction=1.0, takes=True)
    with pytest.raises(InputError, match="not finite"):
        set_jaws(tissue, 0, 0, MOUTH, frames(MIDDLE, MIDDLE), (0.0, 0.0), grip=np.nan, friction=1.0, takes=True)
    plain = LatticeParams(
        nodes=tissue.params.nodes, spacing=SPACING, origin=(0.0, 0.0, 0.0), anchored=tissue.params.anchored,
        material=tissue.params.material, stiffest=20_000.0,
    )  # fmt: skip
    with pytest.raises(InputError, match="cannot be held"):
        open_jaws(make_lattice(cpu, plain), 0)
