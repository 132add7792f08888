"""Dose, noise, scatter, brightness and what is kept."""

from __future__ import annotations

import numpy as np
import pytest

from viscera import xray
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.primitives import box
from viscera.xray import CArm, DetectorParams, Scene, Solid, XrayParams
from viscera.xray.materials import SOFT_TISSUE
from viscera.xray.xray import KERMA

ARM = CArm(pixels=128)


def patient(device: Device, thickness: float = 0.2, params: XrayParams | None = None, **changes) -> xray.Xray:
    slab = box((1.0, 1.0, thickness))
    params = params or XrayParams(arm=ARM, detector=DetectorParams(**changes))
    return xray.make(Scene([Solid(slab.vertices, slab.triangles, SOFT_TISSUE)]), params, device=device)


def middle(machine: xray.Xray) -> np.ndarray:
    return xray.signal(machine)[48:80, 48:80]


def test_noise_is_that_of_the_quanta(device: Device) -> None:
    """Variance over mean squared is one over the number of quanta; 1 024 pixels give it within 4.4 % (one standard
    deviation), so 20 % is never reached by chance."""
    machine = patient(device, blur=0.0, scatter=0.0)
    xray.settle(machine)
    for dose in (1.0, 10.0):
        machine.counted[KERMA] = dose * 1e-6
        xray.expose(machine)
        seen = middle(machine)
        quanta = machine.spectrum.quanta_per_kerma * dose * 1e-6 * ARM.pitch**2 * float(seen.mean())
        assert float(seen.var() / seen.mean() ** 2) == pytest.approx(1.0 / quanta, rel=0.2)


def test_the_same_seed_gives_the_same_noise_and_every_pulse_another(device: Device) -> None:
    def pulses(seed: int) -> list[np.ndarray]:
        params = XrayParams(arm=ARM, seed=seed)
        machine = patient(device, params=params)
        found = []
        for _ in range(2):
            xray.expose(machine)
            found.append(xray.signal(machine).copy())
        return found

    first, second = pulses(1)
    again, _ = pulses(1)
    other, _ = pulses(2)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_brightness_holds_the_dose_behind_the_patient(device: Device) -> None:
    """Thin or thick: as many quanta reach the detector, unless the tube can give no more."""
    doses = []
    for thickness in (0.1, 0.2, 0.6):
        machine = patient(device, thickness)
        xray.settle(machine, 20)
        doses.append(float(machine.counted[KERMA]))
        behind = doses[-1] * float(xray.signal(machine)[32:96, 32:96].mean())
        if thickness < 0.5:
            assert behind == pytest.approx(machine.params.detector.wanted, rel=0.05)
    assert doses[0] < doses[1] < doses[2] == machine.params.detector.strongest


def test_dose_area_product_is_kerma_times_the_open_area(device: Device) -> None:
    """Half the field gives half of it; nothing is counted without a pulse."""
    products = []
    for shutters in ((0.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0)):
        machine = patient(device, params=XrayParams(arm=CArm(pixels=128, shutters=shutters, iris=1.0)))
        xray.settle(machine)
        assert (xray.dose_area_product(machine), xray.seconds(machine)) == (0.0, 0.0)
        machine.counted[KERMA] = 1e-6
        xray.expose(machine)
        products.append(xray.dose_area_product(machine))
        assert xray.seconds(machine) == pytest.approx(1.0 / 15.0)
    assert products == pytest.approx([1e-6 * 0.38**2, 0.5e-6 * 0.38**2], rel=1e-6)


def test_scatter_lifts_the_shadow_and_falls_with_the_field(device: Device) -> None:
    """A collimator takes scatter away, which is why it is closed."""
    means = []
    for scatter, iris in ((0.0, None), (0.3, None), (0.3, 0.05)):
        params = XrayParams(
            arm=CArm(pixels=128, iris=iris), detector=DetectorParams(scatter=scatter, noise=False, blur=0.0)
        )
        machine = patient(device, params=params)
        xray.expose(machine)
        means.append(float(middle(machine)[12:20, 12:20].mean()))
    assert 1.2 < means[1] / means[0] < 1.3
    assert 1.02 < means[2] / means[0] < 1.15


def test_blur_keeps_the_light_and_spreads_an_edge(device: Device) -> None:
    slab = box((0.1, 0.1, 0.1), centre=(0.05, 0.0, 0.0))
    scene = Scene([Solid(slab.vertices, slab.triangles, SOFT_TISSUE)])
    rows = []
    for blur in (0.0, 0.006):
        detector = DetectorParams(scatter=0.0, noise=False, blur=blur)
        machine = xray.make(scene, XrayParams(arm=ARM, detector=detector), device=device)
        xray.expose(machine)
        rows.append(xray.signal(machine)[64, 40:80].astype(float))
    sharp, soft = rows
    assert soft.sum() == pytest.approx(sharp.sum(), rel=0.02)
    assert np.abs(np.diff(soft)).max() < 0.5 * np.abs(np.diff(sharp)).max()


def test_a_saved_fluoroscope_goes_on_to_the_bit(device: Device) -> None:
    machine = patient(device)
    for _ in range(3):
        xray.expose(machine)
    kept, held = xray.save(machine), xray.picture(machine).copy()
    xray.expose(machine)
    after = xray.picture(machine).copy()
    other = patient(device)
    xray.load(other, kept)
    assert np.array_equal(xray.picture(other), held), "the last picture is held"
    xray.expose(other)
    assert np.array_equal(xray.picture(other), after)
    assert xray.dose_area_product(other) == xray.dose_area_product(machine)


def test_what_is_shown_is_dark_or_bright(device: Device) -> None:
    slab = box((0.06, 0.06, 0.1))
    scene = Scene([Solid(slab.vertices, slab.triangles, SOFT_TISSUE)])
    for positive in (True, False):
        machine = xray.make(scene, XrayParams(arm=ARM, detector=DetectorParams(positive=positive)), device=device)
        xray.settle(machine)
        grey = xray.picture(machine)[..., 0].astype(int)
        assert (grey[60:68, 60:68].mean() > grey[60:68, 10:18].mean()) == positive
        assert (xray.picture(machine)[..., 3] == 255).all()


def test_what_is_not_possible_is_refused(cpu: Device) -> None:
    with pytest.raises(InputError, match="pulse_rate"):
        XrayParams(pulse_rate=60.0)
    with pytest.raises(InputError, match="scatter"):
        DetectorParams(scatter=-1.0)
    machine = patient(cpu)
    with pytest.raises(InputError, match="pixels"):
        xray.aim(machine, CArm(pixels=64))


def test_a_c_arm_that_magnifies_or_goes_farther_is_as_one_made_so(device: Device) -> None:
    """Field, distance and shutters change while it runs: the same lengths and light to the bit, blur and scatter in
    their new pixels included."""
    changed = CArm(20.0, pixels=128, field=0.2, source_detector=1.2, shutters=(0.1, 0.0, 0.0, 0.2))
    ours = patient(device)
    xray.expose(ours)
    xray.aim(ours, changed)
    xray.expose(ours)
    other = patient(device, params=XrayParams(arm=changed))
    xray.load(other, xray.save(ours))
    for machine in (ours, other):
        xray.expose(machine)
    assert np.array_equal(xray.lengths(ours), xray.lengths(other))
    assert np.array_equal(xray.signal(ours), xray.signal(other))
    assert ours.lit_area == other.lit_area
