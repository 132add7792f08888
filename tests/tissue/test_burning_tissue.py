"""Burnt tissue: stiffer and weaker by its material's factors, symmetric, stable, and burnt where the skin is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import warp as wp

from tests.tissue.test_lattice import DENSITY, SPACING, box, lattice, springs_of
from viscera.device import Device, Port
from viscera.errors import InputError
from viscera.geometry.primitives import box as box_mesh
from viscera.heat.burn import make_burn
from viscera.heat.conduction import make_heat
from viscera.instruments import kit
from viscera.scenarios import Scenario
from viscera.skin import make_skin
from viscera.timing import TICK
from viscera.tissue.beneath import nearest_masses
from viscera.tissue.burning import (
    Burning,
    make_burning,
    make_sampling,
    sample_burn,
    step_burning,
    tear_burnt,
    with_burn_headroom,
)
from viscera.tissue.kernels import LIVE_STIFFNESS
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.stepping import record_probe
from viscera.tissue.surface import GRAIN
from viscera.view import Camera
from viscera.world import Body, Contents, World, make_organ
from viscera.world.systems.burns import burning
from viscera.world.systems.heat import heating
from viscera.world.systems.stiffening import stiffening

YOUNG, STIFFENING, WEAKENING = 2_000.0, 3.0, 0.5
TISSUE = Material("test", YOUNG, DENSITY, break_strain=0.4, burnt_young=STIFFENING, burnt_break_strain=WEAKENING)


def burning_of(device: Device, nodes: np.ndarray, **more) -> Burning:
    tissue = lattice(device, nodes, YOUNG, material=TISSUE, stiffest=STIFFENING * YOUNG, **more)
    return make_burning(tissue)


def burn(burning: Burning, values: np.ndarray | float) -> None:
    """Each mass by as much."""
    table = np.zeros(burning.tissue.layout.slots, dtype=np.float32)
    table[burning.tissue.layout.slot_of_node] = values
    burning.burn.assign(table)
    program = burning.tissue.device.record(lambda stage: step_burning(stage, burning))
    program.run()
    burning.tissue.device.synchronize()


def pull(tissue: Tissue, strain: np.ndarray) -> np.ndarray:
    """Forces [N] on all masses when the block is stretched by these strains, from the momentum of one tick's start."""
    u = tissue.params.nodes * SPACING * strain
    tissue.set_motion(u, np.zeros_like(u))
    probe = tissue.device.record(lambda stage: record_probe(stage, tissue))
    probe.run()
    return tissue.mass[:, None] * tissue.velocities() / (TICK / tissue.substeps)


@pytest.mark.parametrize("poisson", [0.25, 0.45])
@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
def test_burnt_tissue_is_stiffer_by_the_stated_factor(device: Device, poisson: float, native: bool) -> None:
    """All forces of a stretched block: 1 + (β − 1) b times the fresh ones. Stiffness has 11 bits: 5e-4."""
    burning = burning_of(device, box(5, 5, 9), poisson=poisson, native=native)
    tissue = burning.tissue
    strain = np.array([0.01, -0.02, 0.05])
    fresh = pull(tissue, strain)
    for share in (1.0, 0.5, 0.0):
        burn(burning, share)
        factor = 1.0 + (STIFFENING - 1.0) * share
        assert np.abs(pull(tissue, strain) - factor * fresh).max() < 1e-3 * np.abs(factor * fresh).max()


def test_tissue_burnt_before_its_first_tick_is_stiffer_too(cpu: Device) -> None:
    """Where host and device have copies of their own, the device's first is that of the probe: the stiffest setting,
    which would leave a burn no room. Burning brings its own copy up to date."""
    burning = burning_of(cpu, box(5, 5, 5))
    live = burning.tissue.state.live
    probed = wp.array(live.host, dtype=wp.float32, device="cpu")
    probed.numpy()[int(LIVE_STIFFNESS)] *= STIFFENING
    burning.tissue.state.live = Port(probed, live.staging, live.host)
    fresh = springs_of(burning.tissue)[3]
    burn(burning, 1.0)
    assert springs_of(burning.tissue)[3] == pytest.approx(STIFFENING * fresh, rel=1e-3)


def test_a_burnt_column_stretches_less_under_its_weight(cpu: Device) -> None:
    """Hung from its top: ε ∝ ρ g L/E, so burnt through it stretches by 1/β as much; half of it burnt, in between."""
    nodes = box(4, 4, 12)
    top = nodes[:, 2] == 11
    found = []
    for share in (0.0, 1.0):
        burning = burning_of(cpu, nodes, anchored=top, drag=60.0)
        tissue = burning.tissue
        burn(burning, share)
        tissue.set_gravity((0.0, 0.0, -1.0))
        for _ in range(700):
            tissue.step()
        found.append(-float(tissue.displacement()[nodes[:, 2] == 0, 2].mean()))
        assert np.abs(tissue.velocities()).max() < 1e-4
    assert found[0] > 1e-4
    assert found[0] / found[1] == pytest.approx(STIFFENING, rel=0.01)


def test_springs_take_the_mean_of_their_ends(cpu: Device) -> None:
    """k_ij = k⁰_ij (f_i + f_j)/2 for every spring of two materials burnt at random; float16 rounds by 5e-4."""
    nodes = box(6, 5, 5)
    kinds = np.random.default_rng(1).integers(0, 2, len(nodes)).astype(np.uint8)
    other = dataclasses.replace(TISSUE, name="other", young=1_500.0, burnt_young=1.5)
    burning = burning_of(cpu, nodes, further=(other,), material_of=kinds)
    a, b, _, fresh = springs_of(burning.tissue)
    shares = np.random.default_rng(2).random(len(nodes))
    burn(burning, shares)
    factor = 1.0 + (np.array([STIFFENING, 1.5])[kinds] - 1.0) * shares
    found = springs_of(burning.tissue)[3]
    assert found == pytest.approx(fresh * 0.5 * (factor[a] + factor[b]), rel=1e-3)


@pytest.mark.parametrize("poisson", [0.25, 0.45])
def test_momentum_and_energy_hold_while_it_burns(device: Device, poisson: float) -> None:
    """A free block with random velocities, burnt at random, more each frame. Forces are equal and opposite, so momentum
    stays (float32: 1e-5 of the sum of |m v|). At the full burn the step must be stable: the fastest mass does not
    speed up over 400 ticks."""
    nodes = box(6, 6, 6)
    burning = burning_of(device, nodes, poisson=poisson)
    tissue = burning.tissue
    rng = np.random.default_rng(3)
    velocity = rng.normal(0.0, 0.02, (len(nodes), 3))
    tissue.set_motion(np.zeros_like(velocity), velocity)
    final = rng.random(len(nodes)) > 0.4
    scale = float((tissue.mass[:, None] * np.abs(velocity)).sum())
    before = (tissue.mass[:, None] * velocity).sum(axis=0)
    for frame in range(25):
        burn(burning, final * min(1.0, frame / 10.0))
        for _ in range(16):
            tissue.step()
    after = (tissue.mass[:, None] * tissue.velocities().astype(np.float64)).sum(axis=0)
    assert np.abs(after - before).max() < 1e-5 * scale
    assert np.abs(tissue.velocities()).max() < 1.5 * np.abs(velocity).max()


def test_burning_never_leaves_the_stable_range(cpu: Device) -> None:
    """A lattice set to its stiffest has no room: there a burn changes nothing; back at its first setting it does."""
    burning = burning_of(cpu, box(5, 5, 5))
    tissue = burning.tissue
    fresh = springs_of(tissue)[3]
    tissue.set_young(STIFFENING * YOUNG)
    burn(burning, 1.0)
    assert springs_of(tissue)[3] == pytest.approx(STIFFENING * fresh, rel=1e-3)
    tissue.set_young(YOUNG)
    burn(burning, 1.0)
    assert springs_of(tissue)[3] == pytest.approx(STIFFENING * fresh, rel=1e-3)


def test_without_headroom_it_is_refused(cpu: Device) -> None:
    tissue = lattice(cpu, box(4, 4, 4), YOUNG, material=TISSUE)
    with pytest.raises(InputError, match="with_burn_headroom"):
        make_burning(tissue)
    roomy = make_lattice(cpu, with_burn_headroom(tissue.params))
    assert roomy.params.stiffest == STIFFENING * YOUNG
    make_burning(roomy)


def test_burnt_springs_tear_sooner(device: Device) -> None:
    """A bar stretched by 0.25 along z bears it fresh (0.4) and not burnt (0.2): the springs along z that tear are those
    whose ends bear less on the mean, and what is torn stays torn when it is brought up to date."""
    nodes = box(4, 4, 10)
    burning = burning_of(device, nodes, poisson=0.45)
    tissue = burning.tissue
    a, b, rest, _ = springs_of(tissue)
    shares = ((nodes[:, 2] >= 4) & (nodes[:, 2] <= 6)).astype(np.float64)
    burn(burning, shares)
    u = nodes * SPACING * np.array([0.0, 0.0, 0.25])
    tissue.set_motion(u, np.zeros_like(u))
    device.record(lambda stage: tear_burnt(stage, burning, tissue.current)).run()
    device.synchronize()
    bears = 0.4 * (1.0 - (1.0 - WEAKENING) * shares)
    strain = np.linalg.norm(rest * (1.0, 1.0, 1.25), axis=1) / np.linalg.norm(rest, axis=1) - 1.0
    holds = strain <= 0.5 * (bears[a] + bears[b])
    assert ((springs_of(tissue)[3] > 0.0) == holds).all()
    assert holds.any()
    assert burning.torn.host[0] == (~holds).sum() == 32
    burn(burning, shares)
    assert ((springs_of(tissue)[3] > 0.0) == holds).all()
    # Cells that lost an edge resist no more; the others do.
    bulk = tissue.bulk.numpy()[tissue.layout.slot_of_node].astype(np.float64)
    low = (nodes < (3, 3, 9)).all(axis=1)
    cut = low & (nodes[:, 2] >= 4) & (nodes[:, 2] < 6)
    assert (bulk[cut] == 0.0).all()
    assert (bulk[low & ~cut] > 0.0).all()


@pytest.mark.parametrize(("way", "torn"), [("along the row", 0), ("tension", 2)])
def test_a_shoved_mass_tears_nothing_and_tension_does(device: Device, way: str, torn: int) -> None:
    """Of a burnt row (ε = 0.2), one mass is pushed along it by 0.5 cells: its springs +0.5 and −0.5, whose means with
    their neighbours, ½ and ¼ each, are ±0.125. Pulled apart by as much between two masses, the spring there counts
    (0.5·½ = 0.25); beside it 0.125."""
    nodes = box(12, 3, 3)
    burning = burning_of(device, nodes)
    tissue = burning.tissue
    middle = (nodes[:, 1] == 1) & (nodes[:, 2] == 1)
    burn(burning, middle)
    x = nodes[:, 0]
    moved = (x == 6) if way == "along the row" else (x >= 6)
    u = np.zeros((len(nodes), 3))
    u[middle & moved, 0] = 0.5 * SPACING
    tissue.set_motion(u, np.zeros_like(u))
    device.record(lambda stage: tear_burnt(stage, burning, tissue.current)).run()
    device.synchronize()
    assert burning.torn.host[0] == (torn > 0)


def test_no_mass_loses_all_that_holds_it(device: Device) -> None:
    """A burnt block blown up to twice its size in every direction would leave nothing but dust: it holds."""
    nodes = box(4, 4, 4)
    burning = burning_of(device, nodes)
    burn(burning, 1.0)
    u = nodes * SPACING * 1.0
    burning.tissue.set_motion(u, np.zeros_like(u))
    device.record(lambda stage: tear_burnt(stage, burning, burning.tissue.current)).run()
    device.synchronize()
    assert burning.torn.host[0] == 0


class Pull:
    """Moves a strip's upper end by `length` [m] in a tenth of a second, and holds it. A motion of a world."""

    def __init__(self, tissue: Tissue, length: float) -> None:
        self.tissue, self.length, self.state = tissue, length, np.zeros(1)

    def advance(self, dt: float) -> None:
        before = float(self.state[0])
        self.state[0] = min(before + 10.0 * dt, 1.0)
        self.tissue.set_drive(self.length * before, self.length * float(self.state[0]))


def strip_world(device: Device, strain: float) -> World:
    """A strip of tissue between two clamps, of which one moves away, with heat and burns and no instrument that
    heats."""
    nodes = box(3, 3, 9)
    low, high = nodes[:, 2] == 0, nodes[:, 2] == 8
    size = SPACING * np.array([2.0, 2.0, 8.0])
    mesh = box_mesh(size, (2, 2, 8), 0.5 * size)

    def build(seed: int) -> Contents:
        tissue = lattice(
            device, nodes, YOUNG, material=TISSUE, stiffest=5.0 * STIFFENING * YOUNG, poisson=0.35, drag=30.0,
            anchored=low | high, driven=high, drive_direction=np.tile([0.0, 0.0, 1.0], (len(nodes), 1)),
        )  # fmt: skip
        skin = make_skin(mesh, width=64, device=device)
        organ = make_organ("strip", "liver", Body(mesh, nodes, (0.0, 0.0, 0.0), SPACING), tissue, skin)
        heat = make_heat(skin)
        burnt = make_burn(heat)
        tools = kit.hand_out([kit.probe(0.002)], (0.1, 0.0, 0.0), friction=0.0)
        return Contents(
            organs=[organ],
            tools=tools,
            camera=Camera((0.1, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0),
            bounds=((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)),
            motions=[Pull(tissue, 8.0 * SPACING * strain)],
            systems=[heating(organ, heat, burnt, tools), burning(organ, burnt), stiffening(organ, burnt)],
        )

    return World(Scenario("strip", lambda setting: build(0)), device, 0, build)


def coagulate(world: World, share: float) -> None:
    """All of its surface, by as much."""
    state = world.save_state()
    state["burns/damage"][:] = -np.log(max(1.0 - share, 1e-20))
    state["burns/burn_level"][:] = share
    state["burns/area"][:] = share * 1e-4
    world.load_state(state)


@pytest.mark.parametrize(("share", "strain", "tears"), [(1.0, 0.24, True), (1.0, 0.12, False), (0.0, 0.24, False)])
def test_a_burnt_strip_tears_in_a_world_and_a_healthy_one_does_not(
    cpu: Device, share: float, strain: float, tears: bool
) -> None:
    """Burnt tissue bears 0.2, fresh 0.4. The drawn surface stays between the clamps, and nothing is faster afterwards
    than it was when it tore; every mass is still held."""
    world = strip_world(cpu, strain)
    coagulate(world, share)
    world.step(16 * 25)
    tissue = world.organs[0].tissue
    gone = int((springs_of(tissue)[3] == 0.0).sum())
    assert (gone > 0) == tears
    torn = world.measure_values()["torn"]
    assert torn == pytest.approx(1e6 * gone * SPACING**2 / 9.0)
    shown = world.snapshot().arrays["strip"]
    assert np.isfinite(shown).all()
    assert shown[:, 2].min() >= -GRAIN
    assert shown[:, 2].max() <= SPACING * 8.0 * (1.0 + strain) + GRAIN
    assert np.abs(shown[:, :2] - SPACING).max() < 2.0 * SPACING
    assert np.abs(tissue.velocities()).max() < 0.05
    world.close()


def test_tears_come_back_bit_for_bit(cpu: Device) -> None:
    """Saved in the middle of a frame, before it tears and after. With an odd number of substeps, positions are then in
    the other buffer when a frame ends."""
    world = strip_world(cpu, 0.24)
    assert world.organs[0].tissue.substeps % 2 == 1
    coagulate(world, 1.0)
    kept = []
    for ticks in (5, 16 * 12, 16 * 6):
        world.step(ticks)
        kept.append((world.save_state(), world.measure_values(), world.state_hash()))
    assert kept[0][1]["torn"] == 0.0
    assert kept[-1][1]["torn"] > 0.0
    for (state, _, _), ticks, (_, measures, digest) in zip(kept, (16 * 12, 16 * 6), kept[1:], strict=False):
        world.load_state(state)
        world.step(ticks)
        assert world.measure_values() == measures
        assert world.state_hash() == digest
    world.close()


def test_masses_are_burnt_as_the_skin_beside_them(device: Device) -> None:
    """A block whose upper face is burnt on one side: the masses there are, the others and those below are not."""
    nodes = box(9, 9, 5)
    burning = burning_of(device, nodes)
    tissue = burning.tissue
    size = SPACING * np.array([8.0, 8.0, 4.0])
    skin = make_skin(box_mesh(size, (4, 4, 2), 0.5 * size), width=128, device=device)
    sampling = make_sampling(tissue, skin)
    start, weight = sampling.start.numpy(), sampling.weight.numpy()
    assert np.add.reduceat(weight.astype(np.float64), start[:-1]) == pytest.approx(1.0, abs=1e-6)
    position = skin.position.numpy()
    level = np.where((position[:, 2] > size[2] - 1e-6) & (position[:, 0] > 0.5 * size[0]), 1.6, 0.0).astype(np.float32)
    from warp import array

    there = array(level, dtype=float, device=device.warp)
    device.record(lambda stage: sample_burn(stage, burning, sampling, there)).run()
    found = burning.burn.numpy()[tissue.layout.slot_of_node]
    x, _, z = nodes.T
    edge = (nodes == 0).any(axis=1) | (nodes == (8, 8, 4)).any(axis=1)
    inner_top = (z == 4) & ~((nodes[:, :2] == 0) | (nodes[:, :2] == 8)).any(axis=1)
    assert (found[inner_top & (x > 4)] > 0.999).all()
    assert not found[(x < 4) | (z < 4) | ~edge].any()
    # The line between burnt and fresh runs through the masses at x = 4: half of what they own.
    assert found[inner_top & (x == 4)] == pytest.approx(0.5, abs=0.15)


def test_the_nearest_mass_is_found(cpu: Device) -> None:
    nodes = box(6, 5, 4)
    tissue = lattice(cpu, nodes, origin=(0.1, -0.2, 0.3))
    points = tissue.rest_positions().mean(axis=0) + 2.5 * SPACING * np.random.default_rng(0).normal(size=(500, 3))
    far = np.linalg.norm(points[:, None] - tissue.rest_positions(), axis=2)
    found = nearest_masses(tissue, points)
    near = far.min(axis=1) < SPACING
    assert (far[np.arange(500), found][near] <= far.min(axis=1)[near] + 1e-12).all()
    assert (nearest_masses(tissue, points + 1.0) == -1).all()
