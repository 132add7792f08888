"""How far rays run in meshes, particles and volumes, against closed forms and a slow reference."""

from __future__ import annotations

import numpy as np
import pytest
from xray_scenes import ball_of_drops, drops, measured, mesh_lengths, sphere_chords

from viscera import anatomy, xray
from viscera.device import Device, open_device
from viscera.errors import InputError, StateError
from viscera.geometry.primitives import box, icosphere
from viscera.xray import CArm, Scene, Solid, Tube
from viscera.xray.materials import AIR, BONE, SOFT_TISSUE, WATER, attenuation, barium_suspension
from viscera.xray.spectrum import make_spectrum
from viscera.xray.volume import labelled, scan

SIDE = 128
"""Pixels."""


def test_angles_say_where_the_detector_stands() -> None:
    """Frontal: in front of the patient. LAO 90: at the left. Cranial 90: over the head. The head is up."""
    for arm, ahead in ((CArm(), (0, 0, 1)), (CArm(90.0), (1, 0, 0)), (CArm(0.0, 90.0), (0, 1, 0))):
        assert arm.axes[2] == pytest.approx(ahead, abs=1e-12)
    assert CArm().axes[:2] == pytest.approx(np.eye(3)[:2])
    tilted = CArm(30.0, 20.0)
    assert tilted.axes @ tilted.axes.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(tilted.axes) == pytest.approx(1.0)
    assert tilted.axes[1, 1] > 0.9


def test_a_slab_follows_beer_and_lambert(device: Device) -> None:
    """Every ray: thickness over the cosine of its angle."""
    slab = box((1.0, 1.0, 0.08))
    arm = CArm(pixels=SIDE)
    machine = measured(Scene([Solid(slab.vertices, slab.triangles, WATER)]), arm, device)
    lit = arm.opening()
    along = 0.08 * np.linalg.norm(arm.rays(), axis=-1)
    assert xray.lengths(machine)[0] == pytest.approx(along, abs=1e-6)
    through = np.exp(-attenuation(WATER, 60.0) * along)
    assert xray.signal(machine)[lit] == pytest.approx(through[lit], rel=1e-3)
    assert (xray.signal(machine)[~lit] == 0.0).all()


def test_a_spectrum_hardens_in_a_slab(device: Device) -> None:
    """Against all of its energies, one by one."""
    slab = box((1.0, 1.0, 0.15))
    arm, tube = CArm(pixels=64), Tube(peak=80.0)
    machine = measured(Scene([Solid(slab.vertices, slab.triangles, SOFT_TISSUE)]), arm, device, tube)
    whole = make_spectrum(tube, groups=140)
    along = 0.15 * np.linalg.norm(arm.rays(), axis=-1)
    exact = np.exp(-along[..., None] * attenuation(SOFT_TISSUE, whole.energies)) @ whole.signal
    assert xray.signal(machine)[arm.opening()] == pytest.approx(exact[arm.opening()], rel=0.01)


@pytest.mark.parametrize(("primary", "secondary"), [(0.0, 0.0), (37.0, -21.0), (-90.0, 45.0)])
def test_a_sphere_follows_beer_and_lambert(device: Device, primary: float, secondary: float) -> None:
    """Where it is thicker than a fifth of its radius. A mesh of 20 480 triangles lies up to 0.05 % inside of it, and at
    the rim that is a larger part of a chord."""
    ball, centre = icosphere(0.05, 5), (0.012, -0.02, 0.01)
    arm = CArm(primary, secondary, pixels=SIDE)
    machine = measured(Scene([Solid(ball.vertices + np.asarray(centre), ball.triangles, WATER)]), arm, device)
    exact = sphere_chords(arm, centre, 0.05)
    thick = exact > 0.01
    through = np.exp(-attenuation(WATER, 60.0) * exact)
    assert xray.signal(machine)[thick & arm.opening()] == pytest.approx(through[thick & arm.opening()], rel=0.01)
    assert (xray.lengths(machine)[0][exact == 0.0] == 0.0).all()


def test_a_colon_is_projected_as_ray_by_ray(device: Device) -> None:
    """Rounding of corners to 1/256 pixel, 2 µm here, moves a chord by more only where a ray grazes the wall."""
    tube = anatomy.colon(3)
    arm = CArm(25.0, -10.0, pixels=SIDE)
    machine = measured(Scene([Solid(tube.vertices, tube.triangles, WATER)]), arm, device)
    ours = xray.lengths(machine)[0]
    seen = np.flatnonzero(ours.ravel() > 0.0)
    picked = seen[:: max(1, len(seen) // 300)]
    exact = mesh_lengths(tube.vertices, tube.triangles, arm.source, arm.rays().reshape(-1, 3)[picked])
    assert np.quantile(np.abs(ours.ravel()[picked] - exact), 0.97) < 5e-5
    assert ours.mean() > 0.005


def test_no_ray_enters_without_leaving(device: Device) -> None:
    """A ray that missed one of its triangles would be off by the distance to the source, 0.7 m."""
    tube = anatomy.colon(1, 40_000)
    machine = measured(Scene([Solid(tube.vertices, tube.triangles, WATER)]), CArm(pixels=512), device)
    for turn in range(6):
        xray.aim(machine, CArm(-60.0 + 23.7 * turn, 7.0 * turn - 20.0, pixels=512))
        xray.expose(machine)
        assert xray.lengths(machine).min() > -1e-5
        assert xray.lengths(machine).max() < 0.25


def test_what_is_inside_takes_the_place_of_what_is_around_it(device: Device) -> None:
    outer, inner = icosphere(0.06, 4), icosphere(0.03, 4)
    scene = Scene(
        [Solid(outer.vertices, outer.triangles, WATER), Solid(inner.vertices, inner.triangles, AIR, displaces=WATER)]
    )
    machine = measured(scene, CArm(pixels=SIDE), device)
    water, air = (xray.lengths(machine)[machine.materials.index(one)][SIDE // 2, SIDE // 2] for one in (WATER, AIR))
    assert (water, air) == pytest.approx((0.06, 0.06), rel=5e-3)


def test_particles_add_up_to_their_volume_wherever_they_are(device: Device) -> None:
    """Pixels at the distance of the particle; the kernel's own integral is 1."""
    arm = CArm(20.0, 10.0, pixels=SIDE)
    for place in (np.zeros(3), 0.05 * arm.axes[0] + 0.03 * arm.axes[1], -0.04 * arm.axes[2]):
        for radius in (0.02, 0.008, 0.0001):
            cloud = drops([place], 1e-6, radius, device)
            machine = measured(Scene(clouds=[cloud]), arm, device)
            distance = float((place - arm.source) @ arm.axes[2])
            assert xray.contrast(machine, WATER, distance) == pytest.approx(1e-6, rel=0.02)


def test_more_particles_make_a_truer_picture(device: Device) -> None:
    """Half the spacing: at least 0.7 of an order. Kernels as wide as 1.2 spacings smear the rim, whose share falls with
    the spacing."""
    arm = CArm(pixels=256, field=0.2)
    exact = sphere_chords(arm, np.zeros(3), 0.03)
    errors = []
    for spacing in (0.008, 0.004, 0.002):
        machine = measured(Scene(clouds=[ball_of_drops(0.03, spacing, device)]), arm, device)
        errors.append(float(np.abs(xray.lengths(machine)[0] - exact).sum() / exact.sum()))
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert errors[-1] < 0.06
    assert (orders > 0.7).all(), (errors, orders)


def test_injected_mass_is_measured_in_the_picture(device: Device) -> None:
    """Of a monochromatic picture, by its logarithm alone; without scatter and noise."""
    barium = barium_suspension(200.0)
    cloud = ball_of_drops(0.012, 0.002, device, barium)
    arm = CArm(40.0, 15.0, pixels=SIDE, field=0.2)
    machine = measured(Scene(clouds=[cloud]), arm, device)
    lit = arm.opening()
    along = -np.log(xray.signal(machine)[lit]) / attenuation(barium, 60.0)
    slant = np.linalg.norm(arm.rays(), axis=-1)[lit]
    volume = float((along / slant).sum()) * (arm.pitch / arm.magnification) ** 2
    injected = 4.0 / 3.0 * np.pi * 0.012**3
    assert barium.density * volume == pytest.approx(barium.density * injected, rel=0.02)


def landmarks(device: Device, arm: CArm, points: np.ndarray) -> np.ndarray:
    """Where small beads are seen: the middle of their shadows [pixel], one picture each."""
    found = []
    for point in points:
        machine = measured(Scene(clouds=[drops([point], 1e-8, 0.002, device)]), arm, device)
        dense = xray.lengths(machine)[0]
        rows, columns = np.mgrid[0:SIDE, 0:SIDE] + 0.5
        found.append([(dense * columns).sum() / dense.sum(), (dense * rows).sum() / dense.sum()])
    return np.array(found)


def test_landmarks_are_where_the_c_arm_projects_them(device: Device) -> None:
    """Within half a pixel; a C-arm that is 5 mm or 5° off is clearly not there."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.08, 0.08, (6, 3))
    arm = CArm(30.0, -15.0, pixels=SIDE)
    seen = landmarks(device, arm, points)
    assert np.linalg.norm(seen - arm.project(points), axis=1).max() < 0.5
    for wrong in (CArm(35.0, -15.0, pixels=SIDE), CArm(30.0, -15.0, pixels=SIDE, isocentre=(0.0, 0.005, 0.0))):
        assert np.linalg.norm(seen - wrong.project(points), axis=1).mean() > 1.5


# --- volumes -------------------------------------------------------------------------------------------------------


def phantom(cells: int = 64, hounsfield: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """A ball of 40 mm radius in air, its voxels filled by share: HU and affine [m]."""
    spacing = 0.1 / cells
    at = (np.arange(cells) - 0.5 * (cells - 1)) * spacing
    x, y, z = np.meshgrid(at, at, at, indexing="ij")
    inside = np.clip((0.04 - np.sqrt(x**2 + y**2 + z**2)) / spacing + 0.5, 0.0, 1.0)
    affine = np.diag([spacing, spacing, spacing, 1.0])
    affine[:3, 3] = at[0]
    return -1000.0 + (1000.0 + hounsfield) * inside, affine


def test_a_volume_is_projected_as_what_it_holds(device: Device) -> None:
    """A ball of water in air of 1.6 mm voxels, where rays run for 5 cm or more: voxels blur the rim, where a chord
    grows ever faster, and the sum over all rays keeps its volume."""
    arm = CArm(20.0, 30.0, pixels=SIDE, field=0.2)
    machine = measured(Scene(scans=[scan(*phantom())]), arm, device)
    exact = sphere_chords(arm, np.zeros(3), 0.04)
    ours = -np.log(np.maximum(xray.signal(machine), 1e-9)) / attenuation(WATER, 60.0)
    thick = exact > 0.05
    assert ours[thick] == pytest.approx(exact[thick], rel=0.01)
    assert ours[arm.opening()].sum() == pytest.approx(exact[arm.opening()].sum(), rel=0.01)


def test_half_the_step_changes_a_volume_little(device: Device) -> None:
    arm = CArm(20.0, 30.0, pixels=64, field=0.2)
    signals = []
    for step in (0.8e-3, 0.4e-3):
        machine = measured(Scene(scans=[scan(*phantom(), step=step)]), arm, device)
        signals.append(xray.signal(machine)[arm.opening()])
    assert np.abs(signals[1] / signals[0] - 1.0).max() < 0.005


def test_bone_in_a_volume_is_bone(device: Device) -> None:
    """A mixture attenuates as its HU says at the scanner's energy, and is bone at the top of the scale."""
    arm = CArm(pixels=64, field=0.2)
    for value in (700.0, 1500.0):
        machine = measured(Scene(scans=[scan(*phantom(32, value))]), arm, device, Tube(monochromatic=70.0))
        exact = sphere_chords(arm, np.zeros(3), 0.04)
        lit = (exact > 0.05) & arm.opening()
        mu = attenuation(WATER, 70.0) * (1.0 + value / 1000.0)
        # Voxels of 3 mm that the rim cuts are mixed in another way than the rest.
        assert -np.log(xray.signal(machine)[lit]).mean() == pytest.approx(mu * exact[lit].mean(), rel=0.03)
    assert xray.lengths(machine)[machine.materials.index(BONE)].max() > 0.05


def test_fluid_runs_through_a_volume(device: Device) -> None:
    """Both add up."""
    cloud = ball_of_drops(0.01, 0.002, device, barium_suspension(400.0))
    arm = CArm(pixels=64, field=0.2)
    body = scan(*phantom(32))
    both, alone, fluid = (
        -np.log(xray.signal(measured(scene, arm, device))[32, 32])
        for scene in (Scene(clouds=[cloud], scans=[body]), Scene(scans=[body]), Scene(clouds=[cloud]))
    )
    assert both == pytest.approx(alone + fluid, rel=1e-3)


def test_labels_give_attenuation_where_grey_values_do_not() -> None:
    _, affine = phantom(8)
    labels = np.zeros((8, 8, 8), dtype=np.int16)
    labels[2:6, 2:6, 2:6] = 1
    assert labelled(labels, {0: -1000.0, 1: 40.0}, affine).voxels[4, 4, 4, 0] > 0.9
    with pytest.raises(InputError, match="label 1"):
        labelled(labels, {0: -1000.0}, affine)
    with pytest.raises(InputError, match="grey values"):
        labelled(labels.astype(float), {0: 0.0}, affine)


# --- one and two cores, bad input ------------------------------------------------------------------------------------


def test_one_core_and_two_give_the_same_bits() -> None:
    tube = anatomy.colon(2)
    pictures = []
    for cores in (1, 2):
        device = open_device("cpu", cores)
        cloud = ball_of_drops(0.02, 0.004, device)
        scene = Scene([Solid(tube.vertices, tube.triangles, WATER)], [cloud])
        machine = xray.make(scene, xray.XrayParams(arm=CArm(30.0, pixels=SIDE * 2)), device=device)
        xray.settle(machine, 3)
        pictures.append((xray.lengths(machine), xray.signal(machine).copy(), xray.picture(machine).copy()))
        device.close()
    for one, two in zip(*pictures, strict=True):
        assert np.array_equal(one, two)


def test_a_mesh_behind_the_source_stops_it(device: Device) -> None:
    ball = icosphere(0.9, 2)
    with pytest.raises(StateError, match="source"):
        measured(Scene([Solid(ball.vertices, ball.triangles, WATER)]), CArm(pixels=64), device)


def test_bad_scenes_are_refused(cpu: Device) -> None:
    ball = icosphere(0.05, 1)
    with pytest.raises(InputError, match="not closed"):
        measured(Scene([Solid(ball.vertices, ball.triangles[1:], WATER)]), CArm(pixels=64), cpu)
    with pytest.raises(InputError, match="nothing in the beam"):
        measured(Scene(), CArm(pixels=64), cpu)
    hounsfield, affine = phantom(8)
    with pytest.raises(InputError, match="no spacing"):
        scan(hounsfield, np.zeros((4, 4)))
    with pytest.raises(InputError, match="metres"):
        scan(hounsfield, np.diag([1.0, 1.0, 1.0, 1.0]))
    with pytest.raises(InputError, match="Hounsfield"):
        scan(np.full((8, 8, 8), -5000.0), affine)
    for wrong in (
        lambda: CArm(primary=200.0),
        lambda: CArm(source_isocentre=2.0),
        lambda: CArm(field=0.0),
        lambda: CArm(shutters=(0.6, 0.6, 0.0, 0.0)),
    ):
        with pytest.raises(InputError):
            wrong()
