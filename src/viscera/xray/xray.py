"""A fluoroscope: a scene in the beam of a C-arm, pulse by pulse.

    machine = xray.make(scene, xray.XrayParams(), device=device)
    xray.aim(machine, CArm(primary=30.0))
    xray.expose(machine)                           # one pulse
    grey = xray.picture(machine)

What stays in its place is projected when the C-arm turns, what moves with every pulse. Time of fluoroscopy and dose
area product are counted; the last picture stays when the beam is off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Program, Stage
from viscera.errors import InputError, StateError
from viscera.imaging.lens import launch_on_rows
from viscera.states import Arrays, copy_in, copy_out
from viscera.xray import detector as det
from viscera.xray import native_detector, projection
from viscera.xray.carm import CArm, make_arm_array, write_arm
from viscera.xray.detector import DetectorParams
from viscera.xray.materials import Material
from viscera.xray.scene import Cloud, Placed, Scene, Solid, place
from viscera.xray.spectrum import Spectrum, Tube, group_attenuation, make_spectrum

PULSES, SECONDS, DOSE_AREA, KERMA, REFERENCE = range(5)
"""Places in `Xray.counted`."""
STRIPS = 8
"""Threads that share a triangle or a particle on cuda."""
RATES = (3.0, 30.0)
"""Pulses per second that are allowed."""
FASTEST_CHANGE = 4.0
"""Automatic brightness changes the dose by no more than this factor from pulse to pulse."""


@dataclass(frozen=True)
class XrayParams:
    arm: CArm = field(default_factory=CArm)
    tube: Tube = field(default_factory=Tube)
    detector: DetectorParams = field(default_factory=DetectorParams)
    pulse_rate: float = 15.0
    """[1/s]"""
    energies: int = 8
    """That stand for the spectrum."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not RATES[0] <= self.pulse_rate <= RATES[1]:
            raise InputError(
                f"pulse_rate = {self.pulse_rate:g}/s is not possible.", f"Allowed are {RATES[0]:g} to {RATES[1]:g}."
            )


@dataclass(eq=False)
class Xray:
    """Made by `make`. Pixels are numbered along x first, the first row at the bottom."""

    params: XrayParams
    device: Device
    arm: CArm
    materials: list[Material]
    spectrum: Spectrum
    parts: list[Placed]
    arrays: dict[str, Any]
    measured: Any
    """Port of int32 (2 · pixels,): sums and lit pixels of the measuring field."""
    report: Any
    """Port of int32 (1,): 1 where something stood behind the source."""
    exposure: Any
    """`Exposure` of the next pulse, shape (1,)."""
    counted: NDArray[np.float64]
    """Pulses; time of fluoroscopy [s]; dose area product [Gy·m²]; air kerma per pulse at the detector with nothing in
    the beam [Gy]; I₀ of the next picture."""
    pulse_rate: float = 15.0
    """Of the pulses that come [1/s]: how much time each counts for."""
    lit_area: float = 0.0
    """Of the detector, inside the collimator [m²]."""
    aimed: bool = False
    """Whether what stays has been projected from where the C-arm is."""
    still_program: Program | None = None
    pulse_programs: tuple[Program, ...] = ()
    """One for each of `PARTS`."""

    @property
    def pixels(self) -> int:
        return self.arm.pixels


def make(scene: Scene, params: XrayParams | None = None, *, device: Device) -> Xray:
    p = params or XrayParams()
    materials = scene.materials()
    if len(materials) > det.MOST_MATERIALS:
        raise InputError(
            f"there are {len(materials)} materials in the beam.", f"Allowed are {det.MOST_MATERIALS}: join some."
        )
    spectrum = make_spectrum(p.tube, materials, p.energies)
    n, side = p.arm.pixels**2, p.arm.pixels
    tiles = -(-side // det.TILE)
    pad = ((0, 0), (0, det.MOST_MATERIALS - len(materials)))

    def zeros(shape: Any, dtype: Any = wp.float32) -> Any:
        return wp.zeros(shape, dtype=dtype, device=device.warp)

    def given(values: NDArray[Any], dtype: Any = wp.float32) -> Any:
        return wp.array(np.ascontiguousarray(values, dtype=np.float32), dtype=dtype, device=device.warp)

    arrays = {
        "arm": make_arm_array(p.arm, device),
        "still": zeros((len(materials), n), wp.int32),
        "moving": zeros((len(materials), n), wp.int32),
        "weight": given(spectrum.signal),
        "attenuation": given(np.pad(group_attenuation(spectrum, materials), pad), det.Lengths),
        "opening": zeros(n),
        "primary": zeros(n),
        "light": zeros(n),
        "spare": zeros(n),
        "tile": zeros(tiles**2),
        "tile_spare": zeros(tiles**2),
        "scatter_tap": zeros(tiles),
        "blur_tap": zeros(det.MOST_TAPS),
        "blur_taps": zeros(1, wp.int32),
        "picture": zeros(n, wp.uint32),
    }
    counted = np.array([0.0, 0.0, 0.0, p.detector.wanted, 1.0])
    ports = device.port(2 * side, wp.int32), device.port(1, wp.int32), zeros(1, det.Exposure)
    parts = place(scene, materials, device)
    xray = Xray(p, device, p.arm, materials, spectrum, parts, arrays, *ports, counted, p.pulse_rate)
    _open_collimator(xray)
    _fit_blur(xray)
    xray.still_program = device.record(lambda stage: project_still(stage, xray), work=n)
    xray.pulse_programs = tuple(device.record(part, work=n, arguments=[xray]) for part in PARTS)
    return xray


def aim(xray: Xray, arm: CArm) -> None:
    """The C-arm turns, goes nearer, magnifies or is collimated; the number of pixels must stay."""
    if arm.pixels != xray.arm.pixels:
        raise InputError("pixels cannot change while it runs.", "Make a new one with `xray.make`.")
    before = xray.arm
    if arm == before:
        return
    xray.arm, xray.aimed = arm, False
    write_arm(arm, xray.arrays["arm"])
    if (arm.iris, arm.shutters, arm.field) != (before.iris, before.shutters, before.field):
        _open_collimator(xray)
    if arm.field != before.field:
        _fit_blur(xray)


def project_still(stage: Stage, xray: Xray) -> None:
    """Records the lengths in all that stays."""
    stage.once(xray.arrays["still"].zero_)
    stage.clear(xray.report)
    for placed in xray.parts:
        if not getattr(placed.part, "moving", False):
            _add(stage, xray, placed, xray.arrays["still"])
    stage.download(xray.report)


def step(stage: Stage, xray: Xray) -> None:
    """Records a pulse: the lengths in all that moves, what comes through, and the picture."""
    for part in PARTS:
        part(stage, xray)


def project_moving(stage: Stage, xray: Xray) -> None:
    """Records the lengths in all that moves."""
    stage.once(xray.arrays["moving"].zero_)
    for placed in xray.parts:
        if getattr(placed.part, "moving", False):
            _add(stage, xray, placed, xray.arrays["moving"])
    stage.download(xray.report)


def shine(stage: Stage, xray: Xray) -> None:
    """Records what comes through, by Beer and Lambert."""
    a, side = xray.arrays, xray.pixels
    lengths = [a["arm"], a["weight"], a["attenuation"], a["still"], a["moving"], a["opening"]]
    sizes = [side, len(xray.spectrum.energies), len(xray.materials)]
    if stage.device.is_cuda or side % native_detector.LANES:
        stage.launch(det.find_primary, side**2, [*sizes, *lengths, a["primary"]])
    else:
        stage.launch(native_detector.find_primary, side, [*sizes, *lengths, a["primary"]], block=1)


def develop(stage: Stage, xray: Xray) -> None:
    """Records scatter, quanta, blur and the window."""
    a, d, side = xray.arrays, xray.params.detector, xray.pixels
    n = side**2
    if d.scatter > 0.0:
        tiles = -(-side // det.TILE)
        stage.launch(det.mean_tiles, tiles**2, [side, a["primary"], a["tile"]], block=tiles)
        stage.launch(det.spread_tiles, tiles**2, [tiles, 0, a["scatter_tap"], a["tile"], a["tile_spare"]], block=tiles)
        stage.launch(det.spread_tiles, tiles**2, [tiles, 1, a["scatter_tap"], a["tile_spare"], a["tile"]], block=tiles)
    seen = [xray.exposure, a["primary"], a["tile"], a["opening"]]
    stage.launch(det.count_quanta, n, [side, d.scatter, int(d.noise), *seen, a["light"]])
    if d.blur > 0.0:
        taps = [a["blur_taps"], a["blur_tap"]]
        stage.launch(det.blur, n, [side, 0, *taps, a["light"], a["spare"]])
        stage.launch(det.blur, n, [side, 1, *taps, a["spare"], a["light"]])
    stage.launch(det.measure_field, side, [side, a["light"], a["opening"], xray.measured.array], block=16)
    stage.download(xray.measured)
    sign = 1.0 if d.positive else -1.0
    stage.launch(det.show, n, [d.window, sign, xray.exposure, a["light"], a["opening"], a["picture"]])


PARTS = (project_moving, shine, develop)
"""Of a pulse; a world that must not be late takes one a frame."""


def _add(stage: Stage, xray: Xray, placed: Placed, lengths: Any) -> None:
    side, part, a, arm = xray.pixels, placed.part, placed.arrays, xray.arrays["arm"]
    strips = STRIPS if xray.device.is_cuda else 1
    into = [placed.material, placed.displaced]
    if isinstance(part, Solid):
        count = len(a["vertex"])
        out = [a["corner"], xray.report.array]
        stage.launch(projection.project_vertices, count, [side, arm, a["vertex"], *out])
        args = [side, strips, *into, arm, a["corner"], a["index"], lengths]
        launch_on_rows(stage, projection.add_triangles, strips * a["triangles"], side, args)
    elif isinstance(part, Cloud):
        args = [side, strips, part.radius, *into, arm, a["count"], a["position"], a["volume"], lengths]
        launch_on_rows(stage, projection.add_particles, strips * len(part.position), side, args)
    else:
        stage.launch(projection.add_volume, side**2, [side, *into, a["view"], arm, a["voxel"], lengths])


def expose(xray: Xray) -> None:
    """One pulse. Automatic brightness has seen the pulse before."""
    for part in range(len(PARTS)):
        expose_part(xray, part)


def expose_part(xray: Xray, part: int) -> None:
    """One of the `PARTS` of a pulse; the last one counts it."""
    assert xray.still_program is not None
    if not xray.aimed:
        xray.still_program.run()
        xray.aimed = True
    if part == len(PARTS) - 1:
        _write_exposure(xray)
    xray.pulse_programs[part].run()
    if part == len(PARTS) - 1:
        xray.device.synchronize()
        _count(xray)


def _count(xray: Xray) -> None:
    """Dose and time of the pulse that was, and the dose of the next one."""
    c, p = xray.counted, xray.params
    c[PULSES] += 1.0
    c[SECONDS] += 1.0 / xray.pulse_rate
    c[DOSE_AREA] += c[KERMA] * xray.lit_area
    total, lit = xray.measured.host.reshape(-1, 2).sum(axis=0, dtype=np.int64)
    mean = max(float(total) / det.MEASURED / max(int(lit), 1), 1e-6)
    wanted = min(p.detector.wanted / mean, p.detector.strongest)
    c[KERMA] *= min(max(wanted / c[KERMA], 1.0 / FASTEST_CHANGE), FASTEST_CHANGE)
    c[REFERENCE] = mean


def settle(xray: Xray, pulses: int = 8) -> None:
    """As many pulses as automatic brightness needs, which count nothing."""
    kept = xray.counted[:KERMA].copy()
    for _ in range(pulses):
        expose(xray)
    xray.counted[:KERMA] = kept


def picture(xray: Xray) -> NDArray[np.uint8]:
    """Of the last pulse, RGBA, shape (pixels, pixels, 4), row 0 at the bottom."""
    return xray.arrays["picture"].numpy().view(np.uint8).reshape(xray.pixels, xray.pixels, 4)


def signal(xray: Xray) -> NDArray[np.float32]:
    """What the detector took in the last pulse over the open beam, shape (pixels, pixels)."""
    return xray.arrays["light"].numpy().reshape(xray.pixels, xray.pixels)


def lengths(xray: Xray) -> NDArray[np.float64]:
    """In each of `materials` along each ray [m], shape (materials, pixels, pixels)."""
    sums = xray.arrays["still"].numpy() + xray.arrays["moving"].numpy()
    slant = np.linalg.norm(xray.arm.rays(), axis=-1)
    return projection.UNIT * sums.reshape(-1, xray.pixels, xray.pixels) * slant


def check(xray: Xray, tick: int = 0) -> None:
    """Raises StateError where a mesh stood behind the source or beside all that can be seen, or is not finite."""
    if xray.report.host[0]:
        raise StateError(
            "X-ray: a part of the scene is at or behind the source, or not finite.",
            "Move the C-arm's isocentre into the body, or make the distance from source to isocentre longer.",
            stage="xray",
            tick=tick,
        )


def save(xray: Xray) -> Arrays:
    """What a continued run needs: counts, brightness, the picture that is held, and a pulse that is under way. Where
    the C-arm is belongs to whoever turns it."""
    return copy_out(_kept(xray))


def load(xray: Xray, arrays: Arrays) -> None:
    """Puts it into a state that `save` gave."""
    copy_in("X-ray", _kept(xray), arrays)
    xray.aimed = False


def _kept(xray: Xray) -> dict[str, Any]:
    names = ("picture", "light", "moving", "primary")
    return {"counted": xray.counted} | {name: xray.arrays[name] for name in names}


def _write_exposure(xray: Xray) -> None:
    c, area = xray.counted, xray.arm.pitch**2
    exposure: Any = det.Exposure()
    # Two odd numbers (Knuth's and Weyl's) keep the streams of pulses and seeds apart.
    exposure.seed = (xray.params.seed * 2_654_435_761 + int(c[PULSES]) * 2_246_822_519 + 1) % 2**31
    exposure.quanta = xray.spectrum.quanta_per_kerma * c[KERMA] * area
    exposure.reference = c[REFERENCE]
    wp.copy(xray.exposure, wp.array([exposure], dtype=det.Exposure, device=xray.device.warp))


def _open_collimator(xray: Xray) -> None:
    xray.arrays["opening"].assign(xray.arm.opening().astype(np.float32).ravel())
    xray.lit_area = xray.arm.lit_area


def _fit_blur(xray: Xray) -> None:
    """Scatter and blur in pixels, which are smaller in a smaller field."""
    a, d, pitch = xray.arrays, xray.params.detector, xray.arm.pitch
    tiles = len(a["scatter_tap"])
    spread = det.gaussian_taps(d.scatter_spread / (pitch * det.TILE), most=tiles)
    blur = det.gaussian_taps(d.blur / pitch)
    a["scatter_tap"].assign(np.pad(spread, (0, tiles - len(spread))))
    a["blur_tap"].assign(np.pad(blur, (0, det.MOST_TAPS - len(blur))))
    a["blur_taps"].assign(np.array([len(blur)], dtype=np.int32))


def dose_area_product(xray: Xray) -> float:
    """Since the start [Gy·m²]; 1 Gy·cm² is 10⁻⁴ of it."""
    return float(xray.counted[DOSE_AREA])


def seconds(xray: Xray) -> float:
    """Of fluoroscopy [s]."""
    return float(xray.counted[SECONDS])


def contrast(xray: Xray, material: Material, distance: float | None = None) -> float:
    """Volume of a material in the picture [m³], by its lengths and the area of a pixel at a `distance` along the beam
    from the source [m]; without one, the isocentre's."""
    z = xray.arm.source_isocentre if distance is None else distance
    if not (math.isfinite(z) and z > 0.0):
        raise InputError(f"distance = {z} m is not possible.", "It must be a finite number above 0.")
    along = lengths(xray)[xray.materials.index(material)]
    slant = np.linalg.norm(xray.arm.rays(), axis=-1)
    return float((along / slant).sum()) * (xray.arm.pitch * z / xray.arm.source_detector) ** 2
