"""What a lattice can do besides springs: volume, creep, remedies, rest skipping, driven anchors, field tools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.tissue.test_lattice import DENSITY, SPACING, box, lattice, reference_force, springs_of
from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.geometry.distance import distance_field
from viscera.geometry.primitives import icosphere
from viscera.timing import TICK
from viscera.tissue.materials import Material
from viscera.tissue.params import Creep, Remedies, RestSkipping
from viscera.tissue.springs import NodeIndex
from viscera.tissue.volume import bulk_share_of_young


@pytest.fixture(params=[True, False], ids=["native", "plain"])
def native(request: pytest.FixtureRequest) -> bool:
    return request.param


def acceleration(tissue: Any, u: NDArray[np.float64]) -> NDArray[np.float64]:
    """What one substep from rest gives [m/s²]."""
    assert tissue.substeps == 1
    tissue.set_motion(u, np.zeros_like(u))
    tissue.step()
    return tissue.velocities().astype(np.float64) / TICK


def random_motion(count: int, seed: int = 0, size: float = 2e-4) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0.0, size, (count, 3))


# --- forces are the gradients of their energies ---


def volume_energy(nodes: NDArray[np.int32], u: NDArray[np.float64], kappa: float) -> float:
    index = NodeIndex(nodes)
    corners = np.array([[c % 2, c // 2 % 2, c // 4] for c in range(8)])
    found = np.stack([index.find(nodes + corner.astype(np.int32)) for corner in corners], axis=1)
    found = found[(found >= 0).all(axis=1)]
    signs = 2.0 * corners - 1.0
    x = u[found] + (nodes[found] * SPACING)
    edges = 0.25 * np.einsum("ca,kcx->kax", signs, x)
    growth = np.linalg.det(edges) / SPACING**3 - 1.0
    return float(0.5 * kappa * SPACING**3 * (growth**2).sum())


def torsion_energy(nodes: NDArray[np.int32], u: NDArray[np.float64], stiffness: float) -> float:
    index = NodeIndex(nodes)
    x = nodes * SPACING + u
    total = 0.0
    for a in range(3):
        for b in range(a + 1, 3):
            for s in (-1, 1):
                for t in (-1, 1):
                    steps = np.zeros((2, 3), dtype=np.int32)
                    steps[0, a], steps[1, b] = s, t
                    i, j = (index.find(nodes + step) for step in steps)
                    both = (i >= 0) & (j >= 0)
                    p, q = x[i[both]] - x[both], x[j[both]] - x[both]
                    cosine = (p * q).sum(axis=1) / (np.linalg.norm(p, axis=1) * np.linalg.norm(q, axis=1))
                    total += 0.5 * stiffness * (cosine**2).sum()
    return total


def gradient(energy: Any, u: NDArray[np.float64], masses: list[int]) -> NDArray[np.float64]:
    """Central differences at some masses."""
    step = 1e-8
    result = np.zeros((len(masses), 3))
    for row, mass in enumerate(masses):
        for axis in range(3):
            moved = u.copy()
            moved[mass, axis] += step
            high = energy(moved)
            moved[mass, axis] -= 2 * step
            result[row, axis] = (high - energy(moved)) / (2 * step)
    return result


def test_volume_force_is_the_gradient_of_its_energy(device: Device, native: bool) -> None:
    nodes = box(19, 4, 4)
    nodes = nodes[~((nodes[:, 0] == 9) & (nodes[:, 1] == 0))]  # a notch, so that some cells are not whole
    poisson, young = 0.4, 200.0
    tissue = lattice(device, nodes, young=young, native=native, poisson=poisson)
    u = random_motion(len(nodes))
    got = acceleration(tissue, u) * tissue.mass[:, None] - reference_force(
        tissue, tissue_motion(u), scale=1.25 / (1 + poisson)
    )
    masses = [0, 7, 40, 100, len(nodes) - 1]
    kappa = bulk_share_of_young(poisson) * young
    expected = -gradient(lambda moved: volume_energy(nodes, moved, kappa), u, masses)
    np.testing.assert_allclose(got[masses], expected, atol=2e-4 * np.abs(expected).max())


def tissue_motion(u: NDArray[np.float64]) -> NDArray[np.float64]:
    return u.astype(np.float32).astype(np.float64)


def test_torsion_force_is_the_gradient_of_its_energy(device: Device, native: bool) -> None:
    nodes = box(19, 4, 4)
    nodes = nodes[~((nodes[:, 0] == 9) & (nodes[:, 1] == 0))]
    tissue = lattice(device, nodes, young=200.0, native=native, remedies=Remedies(torsion=0.1))
    u = random_motion(len(nodes))
    got = acceleration(tissue, u) * tissue.mass[:, None] - reference_force(tissue, tissue_motion(u))
    stiffness = float(tissue.state.live.host[10])
    masses = [0, 7, 40, 100, len(nodes) - 1]
    expected = -gradient(lambda moved: torsion_energy(nodes, moved, stiffness), u, masses)
    np.testing.assert_allclose(got[masses], expected, atol=2e-4 * np.abs(expected).max())


def test_extra_forces_keep_momentum(device: Device, native: bool) -> None:
    nodes = box(7, 6, 5)
    tissue = lattice(device, nodes, young=500.0, native=native, poisson=0.45, remedies=Remedies(torsion=0.05))
    rng = np.random.default_rng(1)
    velocity = rng.normal(0, 0.05, (len(nodes), 3))
    tissue.set_motion(random_motion(len(nodes), 2, 1e-4), velocity)
    before = tissue.mass @ tissue.velocities().astype(np.float64)
    for _ in range(300):
        tissue.step()
    after = tissue.mass @ tissue.velocities().astype(np.float64)
    assert np.abs(after - before).max() < 1e-6 * (tissue.mass @ np.abs(velocity)).max()


def test_stability_bound_covers_volume_and_torsion(device: Device) -> None:
    """A free block full of noise stays bounded for 2 000 steps at the step that was chosen."""
    nodes = box(9, 9, 9)
    tissue = lattice(device, nodes, poisson=0.45, remedies=Remedies(2.0, 50.0, 0.1))
    tissue.set_motion(random_motion(len(nodes), 3, 1e-5), np.zeros((len(nodes), 3)))
    for _ in range(2_000):
        tissue.step()
    assert np.abs(tissue.displacement()).max() < 2e-4


# --- creep ---


def test_creep_follows_the_standard_linear_solid(device: Device, native: bool) -> None:
    """A bar pulled by its own weight: ε(t)/ε(0) = 1 + φ/(1−φ)·(1 − e^(−(1−φ)t/T)), here 1.63 of an end value of 2."""
    nodes = box(2, 2, 9)
    fraction, time = 0.5, 0.5
    tissue = lattice(device, nodes, native=native, anchored=nodes[:, 2] == 8, drag=60.0, creep=Creep(fraction, time))
    still = lattice(device, nodes, native=native, anchored=nodes[:, 2] == 8, drag=60.0)
    for one in (tissue, still):
        one.set_gravity((0.0, 0.0, -0.5))
    for _ in range(1_000):
        tissue.step()
        still.step()
    tip = nodes[:, 2] == 0
    ratio = tissue.displacement()[tip, 2].mean() / still.displacement()[tip, 2].mean()
    expected = 1 + fraction / (1 - fraction) * (1 - np.exp(-(1 - fraction) * 1.0 / time))
    assert ratio == pytest.approx(expected, rel=0.05)  # the load comes on over the first tenths of a second


# --- remedies ---


def test_shape_springs_bring_masses_home(device: Device, native: bool) -> None:
    """A free mass on its shape-preserving spring alone swings with its angular frequency."""
    tissue = lattice(device, box(1, 1, 1), young=1e-3, native=native, remedies=Remedies(shape=40.0))
    tissue.set_motion(np.array([[1e-3, 0.0, 0.0]]), np.zeros((1, 3)))
    for _ in range(round(1e3 * np.pi / 40.0)):
        tissue.step()
    assert tissue.displacement()[0, 0] == pytest.approx(-1e-3, rel=1e-2)


def test_surface_springs_are_stiffer(cpu: Device) -> None:
    nodes = box(7, 7, 7)
    plain, stiff = lattice(cpu, nodes), lattice(cpu, nodes, remedies=Remedies(surface_stiffness=2.0))
    i, j, _, k = springs_of(plain)
    surface = ((nodes == 0) | (nodes == 6)).any(axis=1)
    at_surface = surface[i] | surface[j]
    ratio = springs_of(stiff)[3] / k
    np.testing.assert_allclose(ratio[at_surface], 2.0)
    np.testing.assert_allclose(ratio[~at_surface], 1.0)


# --- rest skipping ---


REST = RestSkipping(force=1e-7, speed=1e-5)


def poke(tissue: Any, ticks: int, depth: float = 0.004) -> None:
    top = tissue.rest_positions()[:, 2].max()
    tip = np.tile(np.array([[0.0163, 0.0157, top + 0.006 - depth]]), (2, 1))
    for _ in range(ticks):
        tissue.set_tool(0, start=tip, end=tip, radius=0.006, friction=0.2)
        tissue.step()


def test_rest_skipping_sleeps_wakes_and_stays_close(device: Device) -> None:
    nodes = box(41, 9, 6)
    anchored = nodes[:, 2] == 0
    skipping = lattice(device, nodes, anchored=anchored, drag=40.0, rest_skipping=REST)
    full = lattice(device, nodes, anchored=anchored, drag=40.0)
    skipping.step()
    skipping.step()

    def awake() -> int:
        now = skipping.ticks * skipping.substeps
        return int((skipping.constants.awake.numpy().reshape(2, -1)[now % 2] == now).sum())

    assert awake() == 0  # nothing touched it
    for one in (skipping, full):
        poke(one, 400)
    assert awake() > 0
    error = np.abs(skipping.displacement() - full.displacement()).max() / np.abs(full.displacement()).max()
    assert error < 0.01
    for one in (skipping, full):
        one.remove_tool(0)
        for _ in range(1_500):
            one.step()
    assert awake() == 0
    assert np.abs(skipping.displacement()).max() < 1e-4


def test_a_moving_mass_without_net_force_is_not_frozen(device: Device) -> None:
    nodes = box(5, 5, 5)
    tissue = lattice(device, nodes, rest_skipping=REST)
    velocity = np.tile([0.01, 0.0, 0.0], (len(nodes), 1))
    tissue.set_motion(np.zeros((len(nodes), 3)), velocity)
    for _ in range(100):
        tissue.step()
    np.testing.assert_allclose(tissue.displacement(), velocity * 0.1, rtol=1e-3, atol=1e-7)


def test_new_gravity_wakes_everything(device: Device) -> None:
    nodes = box(9, 5, 5)
    tissue = lattice(device, nodes, anchored=nodes[:, 2] == 0, rest_skipping=REST)
    for _ in range(20):
        tissue.step()
    tissue.set_gravity((0.0, 0.0, -9.81))
    for _ in range(50):
        tissue.step()
    assert tissue.displacement()[:, 2].min() < -1e-5


def test_cores_do_not_change_a_lattice_that_sleeps_in_part() -> None:
    nodes = box(48, 30, 20)
    results = []
    for cores in (1, 2):
        device = open_device("cpu", cores=cores)
        tissue = lattice(device, nodes, anchored=nodes[:, 2] == 0, drag=40.0, rest_skipping=REST, poisson=0.4)
        poke(tissue, 60)
        results.append(tissue.displacement())
        device.close()
    assert np.abs(results[0]).max() > 1e-3
    np.testing.assert_array_equal(results[0], results[1])


# --- driven anchors ---


def test_driven_anchors_go_where_they_are_told_and_pull_the_rest_along(device: Device, native: bool) -> None:
    nodes = box(5, 5, 5)
    anchored = nodes[:, 2] == 0
    direction = np.tile([0.0, 0.0, 0.001], (len(nodes), 1))
    tissue = lattice(
        device, nodes, native=native, anchored=anchored, driven=anchored, drive_direction=direction, drag=40.0
    )
    before = 0.0
    for tick in range(600):
        value = min(1.0, tick / 200)
        tissue.set_drive(before, value)
        before = value
        tissue.step()
    # Nothing holds the block elsewhere, so it follows as a whole.
    np.testing.assert_allclose(tissue.displacement(), direction, atol=1e-5)


# --- instruments as distance fields ---


def test_a_sphere_as_a_field_feels_like_a_sphere(device: Device, native: bool) -> None:
    nodes = box(13, 13, 7)
    radius = 0.006
    made = [lattice(device, nodes, native=native, anchored=nodes[:, 2] == 0, drag=30.0) for _ in range(2)]
    made[1].set_field(0, distance_field(icosphere(radius, 4), 0.0003, device=device))
    tip = np.array([0.0241, 0.0239, 0.0275])
    pose = np.array([*tip, 0.0, 0.0, 0.0, 1.0])
    for _ in range(400):
        made[0].set_tool(0, start=np.tile(tip, (2, 1)), end=np.tile(tip, (2, 1)), radius=radius, friction=0.2)
        made[1].set_field_tool(0, pose, pose, friction=0.2)
        for one in made:
            one.step()
    sphere, shape = (np.array(one.tool_force(0)[0]) for one in made)
    assert sphere[2] > 0.02
    np.testing.assert_allclose(shape, sphere, atol=0.02 * float(np.linalg.norm(sphere)))
    made[1].remove_tool(0)
    made[1].step()
    assert made[1].tool_force(0)[0] == [0.0, 0.0, 0.0]


def test_a_field_turns_with_its_tool(device: Device) -> None:
    """A long capsule given as a field, turned by a quarter, gives the force and torque of the capsule tool."""
    from viscera.geometry.primitives import capsule

    nodes = box(17, 13, 7)
    radius, length = 0.004, 0.03
    made = [lattice(device, nodes, anchored=nodes[:, 2] == 0, drag=30.0) for _ in range(2)]
    made[1].set_field(
        0, distance_field(capsule(radius, length, 48, centre=(0.0, 0.0, length / 2)), 0.0003, device=device)
    )
    tip = np.array([0.0181, 0.0239, 0.0258])
    ends = np.stack([tip, tip + np.array([length, 0.0, 0.0])])
    turn = np.array([0.0, np.sqrt(0.5), 0.0, np.sqrt(0.5)])  # z to x
    pose = np.concatenate([tip, turn])
    for _ in range(400):
        made[0].set_tool(0, start=ends, end=ends, radius=radius, friction=0.2)
        made[1].set_field_tool(0, pose, pose, friction=0.2)
        for one in made:
            one.step()
    (force, torque), (other_force, other_torque) = (tuple(map(np.array, one.tool_force(0))) for one in made)
    assert abs(torque[1]) > 1e-4
    # The field's normals are constant within its cells, which can turn them by h/2R = 4 %, and contacts with them.
    assert other_force[2] == pytest.approx(force[2], rel=0.02)
    assert other_torque[1] == pytest.approx(torque[1], rel=0.02)
    np.testing.assert_allclose(other_force, force, atol=0.1 * float(np.linalg.norm(force)))


# --- materials ---


def test_springs_take_the_mean_of_their_materials(cpu: Device) -> None:
    nodes = box(4, 4, 4)
    kind = (nodes[:, 0] >= 2).astype(np.uint8)
    hard = Material("hard", 48_000.0, 2 * DENSITY)
    tissue = lattice(cpu, nodes, further=(hard,), material_of=kind)
    plain = lattice(cpu, nodes)
    i, j, _, k = springs_of(tissue)
    ratio = k / springs_of(plain)[3]
    expected = np.array([1.0, 8.5, 16.0])[kind[i].astype(int) + kind[j]]
    np.testing.assert_allclose(ratio, expected, rtol=1e-3)
    np.testing.assert_allclose(tissue.mass / plain.mass, 1.0 + kind)
    assert tissue.substeps > plain.substeps


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"poisson": 0.5}, "poisson"),
        ({"poisson": 0.1}, "poisson"),
        ({"remedies": Remedies(torsion=float("nan"))}, "torsion"),
        ({"creep": Creep(1.0, 1.0)}, "creep"),
        ({"rest_skipping": RestSkipping(-1.0, 0.0)}, "rest_skipping"),
        ({"material_of": np.full(64, 3, dtype=np.uint8)}, "material 3"),
        ({"driven": np.ones(64, dtype=bool)}, "drive_direction"),
        ({"driven": np.ones(64, dtype=bool), "drive_direction": np.ones((64, 3))}, "anchored"),
        ({"further": tuple(Material(str(n), 3e3, 1e3) for n in range(16))}, "17 materials"),
    ],
)
def test_impossible_features_are_refused(cpu: Device, change: dict[str, Any], word: str) -> None:
    with pytest.raises(InputError, match=word) as refused:
        lattice(cpu, box(4, 4, 4), **change)
    assert refused.value.hint
