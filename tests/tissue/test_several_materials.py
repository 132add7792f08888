"""A lattice of several materials: each shows its own Poisson's ratio and its own viscous time."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.heat.test_heat import sheet
from verify.elastic import DENSITY, SPACING, box, build, settle
from verify.lattice_reference import springs_of
from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.heat.conduction import make_heat
from viscera.heat.materials import HeatMaterials
from viscera.skin import make_skin
from viscera.timing import TICK
from viscera.tissue.beneath import property_beneath
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import FAT, LIVER, Material
from viscera.tissue.params import Creep, LatticeParams, largest_step
from viscera.tissue.springs import NodeIndex
from viscera.tissue.tissue import Tissue
from viscera.tissue.volume import bulk_share_of_young, spring_share_of_young

OWN: dict[str, Any] = {"poisson": None, "viscous_time": None}
"""Nothing for all of the lattice: what the materials say counts."""


@pytest.fixture(scope="module")
def cpu() -> Device:
    return open_device("cpu", cores=1)


@pytest.fixture(params=[True, False], ids=["native", "plain"])
def native(request: pytest.FixtureRequest) -> bool:
    return request.param


def two(young: tuple[float, float] = (500.0, 500.0), **fields: tuple[float, float]) -> dict[str, Any]:
    """Two materials; each further field is a pair of values."""
    first, second = (
        dataclasses.replace(Material(name, young[n], DENSITY), **{key: values[n] for key, values in fields.items()})
        for n, name in enumerate(("first", "second"))
    )
    return OWN | {"material": first, "further": (second,), "stiffest": young[0]}


def noise(nodes: NDArray[np.int32], size: float, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0.0, size, (len(nodes), 3))


# --- Poisson's ratio -------------------------------------------------------------------------------------------------


def test_each_half_of_a_bar_contracts_by_its_own_poissons_ratio(cpu: Device) -> None:
    """A bar of two materials in line, pulled by 0.1 %. Both bear the same force and have the same E, so both stretch
    alike; across, each shrinks by its ν. Measured a width away from the ends and from the border, where what the other
    half does has died away (Saint-Venant)."""
    nodes = box(49, 9, 9)
    kind = (nodes[:, 0] >= 25).astype(np.uint8)
    ratios = (0.27, 0.45)
    strain = 1e-3
    s = nodes - np.array([24.0, 4.0, 4.0])
    held = np.abs(s[:, 0]) == 24.0
    tissue = build(cpu, nodes, anchored=held, material_of=kind, **two((2_000.0, 2_000.0), poisson=ratios))
    nu = np.array(ratios)[kind]
    start = np.stack([s[:, 0], -nu * s[:, 1], -nu * s[:, 2]], axis=1) * strain * SPACING
    tissue.set_motion(start, np.zeros_like(start))
    slowest = math.pi * math.sqrt(2_000.0 / DENSITY) / (48 * SPACING)
    settle(tissue, ticks=math.ceil(10.0 / slowest / TICK), drag=2.0 * slowest)
    u = tissue.displacement().astype(np.float64)
    for low, high, expected in ((8, 16, ratios[0]), (33, 41, ratios[1])):
        core = (nodes[:, 0] >= low) & (nodes[:, 0] <= high)
        fit = np.linalg.lstsq(np.c_[s[core] * SPACING, np.ones(core.sum())], u[core], rcond=None)[0]
        assert fit[0, 0] == pytest.approx(strain, rel=0.01)
        np.testing.assert_allclose([-fit[1, 1] / fit[0, 0], -fit[2, 2] / fit[0, 0]], expected, atol=0.006)


def mixed_energy(tissue: Tissue, u: NDArray[np.float64]) -> float:
    """Springs of the mean modulus of their ends, cells of the mean κ of their corners, by the formulas of volume.py."""
    params, index = tissue.params, NodeIndex(tissue.params.nodes)
    young = np.array([m.young for m in params.materials])[params.material_of]
    nu = np.array([m.poisson for m in params.materials])[params.material_of]
    springs = young * np.array([spring_share_of_young(value) for value in nu])
    plain = springs_of(build(tissue.device, params.nodes, 1_000.0))
    k = plain.stiffness / 1_000.0 * 0.5 * (springs[plain.first] + springs[plain.second])
    d = plain.rest + u[plain.second] - u[plain.first]
    energy = 0.5 * (k * (np.linalg.norm(d, axis=1) - plain.length) ** 2).sum()
    corners = np.array(list(np.ndindex(2, 2, 2)), dtype=np.int32)
    cells = np.stack([index.find(params.nodes + corner) for corner in corners], axis=1)
    cells = cells[(cells >= 0).all(axis=1)]
    kappa = (young * np.array([bulk_share_of_young(value) for value in nu]))[cells].mean(axis=1)
    edges = SPACING * np.eye(3) + 0.25 * np.einsum("ca,kcx->kax", 2.0 * corners - 1.0, u[cells])
    growth = np.linalg.det(edges) / SPACING**3 - 1.0
    return float(energy + 0.5 * SPACING**3 * (kappa * growth**2).sum())


def test_forces_of_mixed_poissons_ratios_are_the_gradient_of_their_energy(cpu: Device, native: bool) -> None:
    """Float16 of the tables, whose ratios are no powers of two here, leaves 5e-4 of a modulus."""
    nodes = box(9, 5, 4)
    kind = (nodes[:, 0] >= 4).astype(np.uint8)
    tissue = build(
        cpu, nodes, native=native, material_of=kind, **two((150.0, 100.0), poisson=(0.25, 0.4), viscous_time=(0.0, 0.0))
    )
    assert tissue.substeps == 1
    u = noise(nodes, 0.03 * SPACING)
    tissue.set_motion(u, np.zeros_like(u))
    tissue.step()
    force = tissue.mass[:, None] * tissue.velocities().astype(np.float64) / TICK
    masses, step = [0, 79, 85, 99, len(nodes) - 1], 1e-8
    for mass in masses:
        for axis in range(3):
            high, low = u.copy(), u.copy()
            high[mass, axis] += step
            low[mass, axis] -= step
            expected = -(mixed_energy(tissue, high) - mixed_energy(tissue, low)) / (2.0 * step)
            assert force[mass, axis] == pytest.approx(expected, abs=2e-3 * np.abs(force).max())
    assert np.abs(force.sum(axis=0)).max() < 1e-5 * np.abs(force).sum()


def test_a_poissons_ratio_for_all_overrides_the_materials(cpu: Device) -> None:
    """And one material's own is what an explicit value of it is, bit for bit."""
    nodes = box(7, 5, 5)
    u = noise(nodes, 1e-4)
    moved = []
    for material, poisson in ((0.4, None), (0.25, 0.4), (0.49, 0.4)):
        one = Material("one", 300.0, DENSITY, poisson=material)
        tissue = build(cpu, nodes, material=one, stiffest=300.0, poisson=poisson)
        tissue.set_motion(u, np.zeros_like(u))
        for _ in range(5):
            tissue.step()
        moved.append(tissue.displacement())
    np.testing.assert_array_equal(moved[0], moved[1])
    np.testing.assert_array_equal(moved[0], moved[2])


def test_the_most_demanding_material_decides_how_many_substeps(cpu: Device) -> None:
    """ν = 0.48 in a few masses asks for as many substeps as in all, within one; and noise stays bounded with them."""
    nodes = box(9, 9, 9)
    kind = (np.abs(nodes - 4).max(axis=1) <= 2).astype(np.uint8)
    mixed = build(
        cpu, nodes, material_of=kind, **two((3_000.0, 3_000.0), poisson=(0.25, 0.48), viscous_time=(0.0, 0.0))
    )
    soft, hard = (build(cpu, nodes, 3_000.0, poisson=poisson) for poisson in (0.25, 0.48))
    assert soft.substeps < mixed.substeps
    assert abs(mixed.substeps - hard.substeps) <= 1
    u = noise(nodes, 1e-5)
    mixed.set_motion(u, np.zeros_like(u))
    for _ in range(500):
        mixed.step()
    assert np.abs(mixed.displacement()).max() < 2e-4


# --- viscous time ----------------------------------------------------------------------------------------------------


def bars(device: Device, count: int, **more: Any) -> tuple[Tissue, NDArray[np.float64]]:
    """`count` free bars of 32 × 2 × 2 cells beside each other, and the first longitudinal mode of each."""
    nodes = np.concatenate([box(33, 3, 3) + np.array([0, 5 * n, 0], dtype=np.int32) for n in range(count)])
    kind = (nodes[:, 1] // 5).astype(np.uint8)
    tissue = build(device, nodes.astype(np.int32), material_of=kind, **more)
    wave = np.cos(math.pi * nodes[:, 0] / 32)
    return tissue, np.where(kind == np.arange(count)[:, None], wave, 0.0) * tissue.mass


def damping(tissue: Tissue, modes: NDArray[np.float64], strides: int, stride: int) -> list[tuple[float, float]]:
    """ω and ζ of each bar's first mode, from the pole of what follows a cosine; as verify.elastic.ring."""
    start = np.zeros((len(tissue.mass), 3))
    start[:, 0] = 1e-3 * SPACING * 32 * (modes / tissue.mass).sum(axis=0)
    tissue.set_motion(start, np.zeros_like(start))
    trace = [modes @ tissue.displacement()[:, 0]]
    for _ in range(strides):
        for _ in range(stride):
            tissue.step()
        trace.append(modes @ tissue.displacement()[:, 0])
    found = []
    for q in np.array(trace).T:
        s, d = np.linalg.lstsq(np.stack([q[1:-1], -q[:-2]], axis=1), q[2:], rcond=None)[0]
        decay = -math.log(d) / (2.0 * stride * TICK)
        omega = math.hypot(decay, math.acos(s / (2.0 * math.sqrt(d))) / (stride * TICK))
        found.append((omega, decay / omega))
    return found


def test_each_material_rings_off_by_its_own_viscous_time(cpu: Device) -> None:
    """ζ = ωτ/2 for each of two bars in one lattice; setting the first material's τ takes the other along in
    proportion. Three periods of a bar that is not quite one mode are good to 3 %."""
    times = (1e-3, 4e-3)
    tissue, modes = bars(
        cpu, 2, longest_viscous_time=2e-3, **two((5_000.0, 4_000.0), poisson=(0.25, 0.25), viscous_time=times)
    )
    expected = math.pi / (32 * SPACING) * math.sqrt(4_500.0 / DENSITY)
    stride = round(0.4 / expected / TICK)
    for factor in (1.0, 2.0):
        tissue.set_viscous_time(factor * times[0])
        found = damping(tissue, modes, math.ceil(6.0 * math.pi / expected / (stride * TICK)), stride)
        for (omega, zeta), tau in zip(found, times, strict=True):
            assert zeta == pytest.approx(0.5 * omega * factor * tau, rel=0.03)


@pytest.mark.parametrize("poisson", [0.25, 0.4])
def test_springs_and_cells_are_taken_at_their_own_viscous_time(cpu: Device, native: bool, poisson: float) -> None:
    """One step against float64: springs at u + τ_ij·v with the mean of two, cells with the mean of eight, creep on."""
    nodes = box(18, 4, 4)
    nodes = nodes[~((nodes[:, 0] == 9) & (nodes[:, 1] == 0))]
    kind = ((nodes[:, 0] >= 6) & (nodes[:, 1] < 2)).astype(np.uint8)
    times = np.array([2e-4, 1e-3])
    tissue = build(
        cpu, nodes, native=native, material_of=kind, creep=Creep(0.5, 1.0),
        **two((100.0, 100.0), poisson=(poisson, poisson), viscous_time=(2e-4, 1e-3)),
    )  # fmt: skip
    assert tissue.substeps == 1
    u, v = noise(nodes, 0.02 * SPACING), noise(nodes, 0.05, seed=1)
    tau = times[kind]
    tissue.set_motion(u, v)
    u, v = (values.astype(np.float64) for values in (tissue.displacement(), tissue.velocities()))
    tissue.step()
    got = tissue.mass[:, None] * (tissue.velocities() - v) / TICK
    springs, expected = springs_of(tissue), np.zeros_like(u)
    pair = 0.5 * (tau[springs.first] + tau[springs.second])[:, None]
    d = springs.rest + u[springs.second] - u[springs.first] + pair * (v[springs.second] - v[springs.first])
    length = np.linalg.norm(d, axis=1)
    pull = (springs.stiffness * (length - springs.length) / length)[:, None] * d
    np.add.at(expected, springs.first, pull)
    np.subtract.at(expected, springs.second, pull)
    if poisson > 0.25:
        index, corners = NodeIndex(nodes), np.array(list(np.ndindex(2, 2, 2)), dtype=np.int32)
        cells = np.stack([index.find(nodes + corner) for corner in corners], axis=1)
        cells = cells[(cells >= 0).all(axis=1)]
        place = u[cells] + tau[cells].mean(axis=1)[:, None, None] * v[cells]
        sign = 2.0 * corners - 1.0
        edges = SPACING * np.eye(3) + 0.25 * np.einsum("ca,kcx->kax", sign, place)
        across = np.cross(edges[:, [1, 2, 0]], edges[:, [2, 0, 1]])
        growth = np.linalg.det(edges) / SPACING**3 - 1.0
        push = -0.25 * bulk_share_of_young(poisson) * 100.0 * growth[:, None, None]
        np.add.at(expected, cells, push * np.einsum("ca,kax->kcx", sign, across))
    assert np.abs(got - expected).max() < 2e-5 * np.abs(expected).max()


def test_a_body_of_two_viscous_times_flies_freely_and_keeps_its_momentum(cpu: Device, native: bool) -> None:
    """What counts is the difference of velocities: a body that moves as a whole stays exactly as it is, at a speed at
    which τ·v is half a cell; and whatever happens inside, momentum stays to float32's rounding."""
    nodes = box(9, 6, 6)
    kind = (nodes[:, 2] >= 3).astype(np.uint8)
    tissue = build(
        cpu, nodes, native=native, material_of=kind,
        **two((300.0, 300.0), poisson=(0.3, 0.4), viscous_time=(2e-4, 2e-3)),
    )  # fmt: skip
    flight = np.tile([0.75, -1.0, 0.5], (len(nodes), 1))
    tissue.set_motion(np.zeros_like(flight), flight)
    for _ in range(50):
        tissue.step()
    shape = tissue.displacement() - tissue.displacement()[0]
    assert np.abs(shape).max() < 1e-4 * SPACING
    velocity = noise(nodes, 0.05)
    tissue.set_motion(noise(nodes, 1e-4, seed=1), velocity)
    before = tissue.mass @ tissue.velocities().astype(np.float64)
    for _ in range(200):
        tissue.step()
    after = tissue.mass @ tissue.velocities().astype(np.float64)
    assert np.abs(after - before).max() < 1e-6 * (tissue.mass @ np.abs(velocity)).max()


def test_a_stiff_material_beside_a_viscous_one_is_stable(cpu: Device) -> None:
    """Springs between them take the mean of both and are more demanding than either; noise must not grow there."""
    nodes = box(9, 9, 9)
    kind = (nodes[:, 0] >= 4).astype(np.uint8)
    tissue = build(
        cpu, nodes, material_of=kind, **two((20_000.0, 2_000.0), poisson=(0.25, 0.25), viscous_time=(1e-4, 1e-2))
    )
    needs = [largest_step(SPACING, young, DENSITY, tau) for young, tau in ((20_000.0, 1e-4), (2_000.0, 1e-2))]
    assert tissue.substeps > TICK / min(needs)
    u = noise(nodes, 1e-5)
    tissue.set_motion(u, np.zeros_like(u))
    for _ in range(300):
        tissue.step()
    assert np.abs(tissue.displacement()).max() < 2e-5


def test_one_viscous_time_costs_nothing(cpu: Device) -> None:
    nodes = box(5, 5, 5)
    kind = (nodes[:, 0] >= 2).astype(np.uint8)
    pair = two(poisson=(0.25, 0.25), viscous_time=(1e-3, 2e-3))
    assert build(cpu, nodes, material_of=kind, **pair).viscosity is not None
    pair["viscous_time"] = 1e-3
    override = build(cpu, nodes, material_of=kind, **pair)
    assert override.viscosity is None
    assert override.constants.features == 0


# --- what cannot be --------------------------------------------------------------------------------------------------


def test_what_a_lattice_cannot_take_from_a_material_is_refused_by_its_name() -> None:
    nodes = box(3, 3, 3)
    still = np.zeros(len(nodes), dtype=bool)

    def made(first: Material, second: Material, **more: Any) -> Tissue:
        options = {"further": (second,), "material_of": (nodes[:, 0] > 1).astype(np.uint8)} | more
        params = LatticeParams(nodes, SPACING, (0.0, 0.0, 0.0), still, first, first.young, **options)
        return make_lattice(open_device("cpu", cores=1), params)

    sponge = dataclasses.replace(FAT, name="sponge", poisson=0.1)
    with pytest.raises(InputError, match="'sponge' has poisson") as refused:
        made(LIVER, sponge)
    assert "for all" in refused.value.hint
    made(LIVER, sponge, poisson=0.3, viscous_time=0.0)
    dry = dataclasses.replace(LIVER, name="dry", viscous_time=0.0)
    with pytest.raises(InputError, match="'fat' has a viscous time") as refused:
        made(dry, FAT)
    assert refused.value.hint
    with pytest.raises(InputError, match="first setting") as refused:
        made(LIVER, FAT, longest_viscous_time=1e-4)
    assert "material's own" in refused.value.hint


# --- under a skin ----------------------------------------------------------------------------------------------------


def test_heat_takes_what_lies_beneath_each_texel(cpu: Device) -> None:
    """A sheet on a block of two materials: its texels conduct as the masses under them."""
    mesh = sheet(9.0 * np.eye(2), side=0.1)
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(64)), 64, device=cpu)
    nodes = box(21, 21, 3)
    tissue = make_lattice(
        cpu,
        LatticeParams(
            nodes, 0.005, (-0.05, -0.05, -0.01), nodes[:, 2] == 0, LIVER, LIVER.young,
            viscous_time=0.0, poisson=0.25, further=(FAT,), material_of=(nodes[:, 0] > 10).astype(np.uint8),
        ),
    )  # fmt: skip
    names = ("conductivity", "density", "heat_capacity")
    heat = make_heat(skin, materials=HeatMaterials(*(property_beneath(tissue, skin, name) for name in names)))
    texels = skin.texels.numpy()
    x = skin.position.numpy()[texels, 0]
    found = heat.params.conductivity * heat.network.materials.conductivity.numpy()[texels]  # pyright: ignore[reportOptionalMemberAccess]
    # A texel belongs to its nearest mass: the border is half way between x = 0 and x = 5 mm.
    np.testing.assert_allclose(found, np.where(x < 0.0025, LIVER.conductivity, FAT.conductivity), rtol=1e-6)
    one = make_lattice(cpu, dataclasses.replace(tissue.params, material_of=None))
    assert (property_beneath(one, skin, "heat_capacity") == LIVER.heat_capacity).all()
