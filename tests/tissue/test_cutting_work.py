"""What a hand does with a blade: work, force and momentum are those of the toughness, and no more."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from cutting_reference import springs_of
from numpy.typing import NDArray

from viscera.device import Device
from viscera.timing import TICK
from viscera.tissue import LatticeParams
from viscera.tissue.cutting import cut_area, let_cut, remove_edge, set_edge
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material

SIZE = (0.024, 0.016, 0.012)
"""[m]"""
DEPTH = 0.008
DRAG = 20.0
"""[1/s]"""


def block(device: Device, young: float, toughness: float, spacing: float, held: bool = True) -> Tissue:
    """Held below and at two sides, so that the blade does not push it along; or free."""
    cells = [round(side / spacing) for side in SIZE]
    axes = [np.arange(count + 1, dtype=np.int32) for count in cells]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    anchored = (nodes[:, 2] == 0) | (nodes[:, 1] == 0) | (nodes[:, 1] == cells[1])
    params = LatticeParams(
        nodes=nodes, spacing=spacing, origin=(0.0, 0.0, 0.0), anchored=anchored & held, stiffest=young,
        material=Material("test", young, 1_000.0, poisson=0.25, viscous_time=0.0, toughness=toughness),
        drag=DRAG if held else 0.0,
    )  # fmt: skip
    tissue = make_lattice(device, params)
    let_cut(tissue)
    return tissue


@dataclass
class Energy:
    """Of the springs, in float64."""

    tissue: Tissue
    springs: tuple[NDArray[np.int64], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.springs = springs_of(self.tissue.params.nodes)

    def elastic(self) -> float:
        direction, low, high = self.springs
        tissue = self.tissue
        table = tissue.constants.stiffness.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node].astype(np.float64)
        rest = (tissue.params.nodes[high] - tissue.params.nodes[low]) * tissue.params.spacing
        u = tissue.displacement().astype(np.float64)
        stretch = np.linalg.norm(rest + u[high] - u[low], axis=1) - np.linalg.norm(rest, axis=1)
        return float(0.5 * tissue.state.live.host[3] * table[direction, low] @ stretch**2)

    def kinetic(self) -> float:
        return float(0.5 * self.tissue.mass @ (self.tissue.velocities().astype(np.float64) ** 2).sum(axis=1))


def saw(tissue: Tissue, speed: float, until: float, aside: float = 0.3) -> tuple[float, float, NDArray[np.float64]]:
    """Draws a blade through it, so many cells aside of a plane of masses; the hand's work [J], what drag took [J], and
    the force of each tick [N]."""
    y, top = 0.5 * SIZE[1] + aside * tissue.params.spacing, SIZE[2]
    energy = Energy(tissue)
    work = lost = 0.0
    forces = []
    x = -0.002
    while x < until:
        ends = [np.array([[at, y, top - DEPTH], [at, y, top + 0.004]]) for at in (x, x + speed * TICK)]
        set_edge(tissue, 0, 0, ends[0], ends[1])
        tissue.step()
        force = np.array(tissue.tool_force(0)[0])
        work -= float(force[0]) * speed * TICK
        lost += 2.0 * DRAG * energy.kinetic() * TICK
        forces.append(force)
        x += speed * TICK
    return work, lost, np.array(forces)


@pytest.mark.parametrize(("young", "toughness"), [(8_000.0, 8.0), (20_000.0, 25.0), (60_000.0, 80.0)])
@pytest.mark.parametrize("spacing", [0.002, 0.004])
@pytest.mark.parametrize("speed", [0.1, 0.3])
def test_the_hands_work_is_toughness_times_new_area(
    cpu: Device, young: float, toughness: float, spacing: float, speed: float
) -> None:
    """All the way through. 15 %: as far as the springs that stand for the area see it, whose cells are as large as the
    blade is deep twice or four times over."""
    tissue = block(cpu, young, toughness, spacing)
    work, lost, forces = saw(tissue, speed, SIZE[0] + 0.004)
    energy = Energy(tissue)
    spent = work - energy.elastic() - energy.kinetic() - lost
    assert spent == pytest.approx(toughness * cut_area(tissue), rel=0.15)
    # The surface itself is that of the blade's way, short of the last cell in depth.
    assert cut_area(tissue) == pytest.approx(SIZE[0] * DEPTH, rel=0.2)
    middle = forces[len(forces) // 3 : 2 * len(forces) // 3]
    assert -middle[:, 0].mean() == pytest.approx(toughness * DEPTH, rel=0.25)
    # Through: nothing is felt any more.
    assert np.abs(forces[-3:]).max() == 0.0


@pytest.mark.parametrize("cells", [1.0, 2.0])
@pytest.mark.parametrize("spacing", [0.002, 0.004])
@pytest.mark.parametrize("speed", [0.1, 0.3])
@pytest.mark.parametrize("aside", [0.3, 0.5])
def test_so_it_is_where_the_blade_drags_tissue_along(
    cpu: Device, cells: float, spacing: float, speed: float, aside: float
) -> None:
    """By Γ/E, one and two cells, before it is cut: springs that were drawn to the blade are charged for too. No bound
    is wider than above. Nearer than 0.3 of a cell to a plane of masses it does not hold (docs/cutting.md)."""
    toughness = 20_000.0 * cells * spacing
    tissue = block(cpu, 20_000.0, toughness, spacing)
    work, lost, forces = saw(tissue, speed, SIZE[0] + 0.004, aside)
    energy = Energy(tissue)
    spent = work - energy.elastic() - energy.kinetic() - lost
    assert spent == pytest.approx(toughness * cut_area(tissue), rel=0.15)
    # One cut, no shreds; and no kick: never much more than it takes to go on.
    assert cut_area(tissue) == pytest.approx(SIZE[0] * DEPTH, rel=0.2)
    middle = forces[len(forces) // 3 : 2 * len(forces) // 3]
    assert -middle[:, 0].mean() == pytest.approx(toughness * DEPTH, rel=0.25)
    # 1.35: over one cell of two that the blade is deep, what lies ahead differs by up to 0.3.
    assert np.abs(forces[:, 0]).max() < 1.35 * toughness * DEPTH
    assert np.abs(forces[-3:]).max() == 0.0


def test_an_old_cut_is_not_felt(cpu: Device) -> None:
    tissue = block(cpu, 20_000.0, 25.0, 0.002)
    first, _, _ = saw(tissue, 0.3, SIZE[0] + 0.004)
    remove_edge(tissue, 0)
    for _ in range(100):
        tissue.step()
    area = cut_area(tissue)
    again, _, _ = saw(tissue, 0.3, SIZE[0] + 0.004)
    # The first time the blade dragged the tissue along, so the same way meets a few springs that it had missed.
    assert cut_area(tissue) < 1.05 * area
    assert abs(again) < 0.1 * first


def test_tissue_gets_what_the_hand_gives(cpu: Device) -> None:
    """A free block without drag: its momentum is the sum of the forces on the hand, the other way round."""
    tissue = block(cpu, 20_000.0, 25.0, 0.004, held=False)
    _, _, forces = saw(tissue, 0.3, 0.5 * SIZE[0])
    momentum = tissue.mass @ tissue.velocities().astype(np.float64)
    assert np.allclose(momentum, -forces.sum(axis=0) * TICK, atol=2e-4 * np.abs(momentum).max())
    assert momentum[0] > 0.0


def test_a_tough_block_follows_the_blade_uncut(cpu: Device) -> None:
    tissue = block(cpu, 2_000.0, 50_000.0, 0.004, held=False)
    saw(tissue, 0.1, 0.012)
    # What was cut is where the blade touched it first: no more than its first layer.
    assert cut_area(tissue) < 0.25 * DEPTH * 0.012
    assert tissue.displacement()[:, 0].mean() > 0.005


def test_a_stretched_block_opens_without_a_kick(cpu: Device) -> None:
    """Held at both ends, stretched by 10 %, cut through at once: what moves then is no more than the springs had
    stored, and the gap is that of a float64 reference of the same springs at rest."""
    tissue, whole = stretched(cpu), stretched(cpu)
    energy, other = Energy(tissue), Energy(whole)
    stored = energy.elastic()
    cut_across(tissue)
    assert 0.0 < energy.elastic() < stored
    # Steps this long let the sum tremble by 5 %, uncut too: what the whole block shows is the measure.
    most = allowed = 0.0
    for _ in range(200):
        tissue.step()
        whole.step()
        most = max(most, energy.elastic() + energy.kinetic())
        allowed = max(allowed, other.elastic() + other.kinetic())
    assert most <= allowed
    for _ in range(1500):
        tissue.set_motion(tissue.displacement(), 0.9 * tissue.velocities())
        tissue.step()
    expected = at_rest(tissue)
    u = tissue.displacement().astype(np.float64)
    assert np.abs(u - expected).max() < 0.02 * 0.1 * SIZE[0]


def stretched(device: Device) -> Tissue:
    tissue = block(device, 8_000.0, 0.0, 0.004, held=False)
    nodes, h = tissue.params.nodes, tissue.params.spacing
    ends = (nodes[:, 0] == 0) | (nodes[:, 0] == nodes[:, 0].max())
    params = replace(tissue.params, anchored=ends)
    tissue = make_lattice(device, params)
    let_cut(tissue)
    u = np.zeros(nodes.shape)
    u[:, 0] = 0.1 * nodes[:, 0] * h
    tissue.set_motion(u, np.zeros_like(u))
    return tissue


def cut_across(tissue: Tissue) -> None:
    """In a tick, without a blade's force: the middle is at x = 0.55 of the stretched length."""
    x = 0.55 * SIZE[0]
    for y in np.arange(-0.004, SIZE[1] + 0.004, 0.002):
        ends = [np.array([[x, at, -0.004], [x, at, SIZE[2] + 0.004]]) for at in (y, y + 0.002)]
        set_edge(tissue, 0, 0, ends[0], ends[1], need=0.0)
        tissue.step()
    remove_edge(tissue, 0)


def at_rest(tissue: Tissue) -> NDArray[np.float64]:
    """Where the masses of the cut lattice come to rest: damped descent in float64 on the same springs."""
    direction, low, high = springs_of(tissue.params.nodes)
    table = tissue.constants.stiffness.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node].astype(np.float64)
    stiffness = tissue.state.live.host[3] * table[direction, low]
    rest = (tissue.params.nodes[high] - tissue.params.nodes[low]) * tissue.params.spacing
    length = np.linalg.norm(rest, axis=1)
    free = ~tissue.params.anchored
    u, v = tissue.displacement().astype(np.float64), np.zeros((len(free), 3))
    step = 0.5 / np.sqrt(stiffness.max() * 26.0)
    for _ in range(3000):
        d = rest + u[high] - u[low]
        now = np.linalg.norm(d, axis=1)
        pull = (stiffness * (now - length) / now)[:, None] * d
        force = np.zeros_like(u)
        np.add.at(force, low, pull)
        np.add.at(force, high, -pull)
        v = 0.98 * (v + step * force) * free[:, None]
        u += step * v
    return u
