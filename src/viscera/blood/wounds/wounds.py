"""Wounds: openings of vessels on the surface, that bleed into the film or spurt into the air until they are sealed.

Each wound has a vessel (`vessels`), a place (triangle and weights) and an opening of radius a. Per step of dt:

    a_open = a (1 − c)                             c: how far its own clot has closed it
    Q = Q(p(pulse) − p_outside − p_pressed, a_open), 0 if sealed
    dc/dt = (1 − c) / (clot_time (1 + γ/γ₀)),      γ = 4 Q / (π a_open³): shear rate at the hole's wall

and Q dt is added to what the wound still owes. Whole particles leave, the rest is owed in the next step, so the volume
that has left follows ∫Q dt to within one particle, for ever. What the vessels have given is a whole number of
picolitres per wound (`given`): sums are exact. When the film (or the drops) have no room, blood stays in the vessel and
`held` counts it; nothing is dropped. A vessel that is sealed owes nothing.

Blood leaves as a jet, and becomes drops, where inertia beats surface tension: We = ρ u² 2a/σ above `JETTING`, with
u = Q/(π a_open²) (C. Clanet and J. C. Lasheras, J. Fluid Mech. 383 (1999) 307: a hole drips below We ≈ 4). So an artery
spurts with the pulse, and a vein wells up.

Sealing: a clip (`set_clip`), or cautery: once the coagulated part of the texels within `seal_radius` is at least
`seal_fraction` on average, the vessel is shut for good.

The document spawns particles by hand. The clot model is ours: first order with the bleeding time of a small cut as its
time, slowed by shear because platelets are torn off; at rest c grows by at most
1/clot_time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.blood.constants import SURFACE_TENSION
from viscera.blood.film.params import FilmParams
from viscera.blood.film.placing import closest_place, points_of
from viscera.blood.film.state import FilmState
from viscera.blood.film.surface import FilmSurface
from viscera.blood.views import DropArrays, film_view, make_drop_arrays, queue_view
from viscera.blood.wounds.kernels import BURST, WoundNumbers, WoundView, bleed, book, cauterise, emit
from viscera.blood.wounds.vessels import DISCHARGE, VesselParams
from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.skin import Skin
from viscera.timing import FRAME

CAPACITY = 64
"""Most wounds."""

JETTING = 4.0
"""Weber number above which a hole jets instead of dripping."""

TORN_OFF = 2000.0
"""γ₀: shear rate at which a wound's clot grows half as fast [1/s]. Our choice: above a healthy artery's wall."""

OPEN, CLIPPED, BURNT, WHOLE = 0, 1, 2, 4
"""`Wounds.sealed` holds sums of the others; 0 is open. WHOLE: its vessel is not cut, or has no supply."""

ON_SURFACE = 1.0e-3
"""A wound may be given this far from the surface [m]; it is put onto it."""


@dataclass(frozen=True)
class WoundParams:
    clot_time: float = 240.0
    """Of an opening without flow [s]; 0: never clots. Bleeding time of a small cut is 2 to 7 minutes (Ivy's test)."""
    seal_radius: float = 2.0e-3
    """[m]"""
    seal_fraction: float = 0.6
    """Coagulated part, mean over the texels around the wound. Our choice."""
    spread: float = 0.7e-3
    """Blood wells up over a disc of at least this radius [m], more when much comes at once: particles need room."""
    cone: float = 0.04
    """Of a spurt: sideways speed over forward speed, drawn for each drop. Tuned: jets from a torn vessel are ragged."""
    seed: int = 1

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            zero = f.name in ("clot_time", "cone", "seed")
            if not math.isfinite(value) or value < 0.0 or (value == 0.0 and not zero):
                allowed = "of 0 or more" if zero else "above 0"
                raise InputError(f"{f.name} = {value} is not possible.", f"It must be a finite number {allowed}.")
        if self.seal_fraction > 1.0:
            raise InputError(f"seal_fraction = {self.seal_fraction} is not possible.", "Allowed is 0 to 1.")


@dataclass(eq=False)
class Wounds:
    """Made by `make_wounds`."""

    surface: FilmSurface
    params: WoundParams
    film: FilmParams
    dt: float
    """One step [s]."""
    numbers: Any
    """`WoundNumbers`, shape (1,): numbers that `set_wounds` may change."""
    view: Any
    """`WoundView`: opening, rate, given, held, sealed, clot … per wound, shape (CAPACITY,) each."""
    drive: Port
    """Height of the pulse, 0 to 1, and pressure in the cavity [Pa], float64, shape (2,); write `drive.host` before a
    frame."""
    press: Port
    """What is pressed onto each wound from outside [Pa], float64, shape (CAPACITY,); write `press.host` before a
    frame."""
    film_view: Any
    """`FilmView`: the film that is fed, shape (film's capacity,) each."""
    queue: Any
    """`QueueView`: what waits to join it, shape (queue,) each."""
    drops: DropArrays
    """Where blood spurts to; without room where nothing spurts."""
    burn_start: Any
    """Where each wound's texels begin in `burn_texel`, int32, shape (CAPACITY + 1,); see `find_texels`."""
    burn_texel: Any
    """Texels around the wounds, int32, shape (texels + 1,)."""
    vessels: list[VesselParams] = field(default_factory=list)
    """Behind each wound."""

    @property
    def count(self) -> int:
        return len(self.vessels)


def make_wounds(
    surface: FilmSurface,
    film: FilmParams,
    state: FilmState,
    params: WoundParams | None = None,
    dt: float = FRAME,
    drops: DropArrays | None = None,
) -> Wounds:
    """No wounds yet, on `surface`, feeding `state`; one step is `dt` [s]. Without `drops` nothing spurts: all blood
    wells up."""
    params = params or WoundParams()
    if not (math.isfinite(dt) and dt >= 0.0):
        raise InputError(f"dt = {dt} is not possible.", "It must be a finite number of 0 or more.")
    device = surface.device
    view: Any = WoundView()
    for name, kind in _KINDS.items():
        setattr(view, name, wp.zeros(1 if name == "count" else CAPACITY, dtype=kind, device=device.warp))
    wounds = Wounds(
        surface,
        params,
        film,
        dt,
        wp.zeros(1, dtype=WoundNumbers, device=device.warp),
        view,
        device.port(2, wp.float64),
        device.port(CAPACITY, wp.float64),
        film_view(state),
        queue_view(state),
        drops or make_drop_arrays(0, device),
        wp.zeros(CAPACITY + 1, dtype=wp.int32, device=device.warp),
        wp.zeros(0, dtype=wp.int32, device=device.warp),
    )
    set_wounds(wounds, params, spurts=drops is not None)
    return wounds


_KINDS: dict[str, Any] = {
    "count": wp.int32,
    "face": wp.int32,
    "barycentric": wp.vec2,
    "opening": wp.float64,
    "vessel": wp.vec4d,
    "fluid": wp.vec4,
    "is_blood": wp.int32,
    "sealed": wp.int32,
    "clot": wp.float64,
    "rate": wp.float64,
    "owed": wp.float64,
    "given": wp.int64,
    "held": wp.int64,
    "speed": wp.float32,
    "leaving": wp.int32,
}

WOUND_ARRAYS = tuple(_KINDS)
"""Arrays of a `WoundView`: all of them are kept when wounds are saved."""


def set_wounds(wounds: Wounds, params: WoundParams, spurts: bool = True) -> None:
    """Changes parameters while programs run."""
    wounds.params = params
    numbers: Any = WoundNumbers()
    numbers.dt = wounds.dt
    numbers.volume = wounds.film.little_volume
    numbers.clot_time = params.clot_time
    numbers.torn_off = TORN_OFF
    numbers.discharge = DISCHARGE
    numbers.weber = JETTING * SURFACE_TENSION if spurts and wounds.drops.capacity else math.inf
    numbers.spread, numbers.cone = params.spread, params.cone
    # Σ (1 − r/h)² = rest_density over particles of one per `room` is π h²/6 / room.
    numbers.room = math.pi * wounds.film.radius**2 / (6.0 * wounds.film.fluids[0].rest_density)
    numbers.seal_fraction = params.seal_fraction
    numbers.seed = params.seed
    wp.copy(wounds.numbers, wp.array([numbers], dtype=WoundNumbers, device=wounds.surface.device.warp))


def step_wounds(stage: Stage, wounds: Wounds) -> None:
    """One step of `wounds.dt`: what leaves is appended to the film's queue and to the drops."""
    device, view, drops = stage.device.warp, wounds.view, wounds.drops
    args = [wounds.numbers, wounds.drive.array, wounds.press.array, view, wounds.film_view, wounds.queue, drops.view]
    counts = [wounds.queue.count, drops.count]
    places = [wounds.surface.vertices, wounds.surface.view.triangles]
    stage.upload(wounds.drive)
    stage.upload(wounds.press)
    stage.once(lambda: wp.launch(bleed, dim=1, inputs=args, device=device))
    stage.launch(emit, BURST, [wounds.numbers, *places, view, wounds.queue, drops.view])
    stage.once(lambda: wp.launch(book, dim=1, inputs=[wounds.numbers, view, *counts], device=device))


def step_cautery(stage: Stage, wounds: Wounds, coagulated: Any) -> None:
    """Seals wounds whose surroundings are coagulated: `coagulated` is 0 to 1 (more counts as 1) per texel of the skin
    given to `find_texels`; a burn level does."""
    start = [wounds.burn_start, wounds.burn_texel, coagulated, wounds.view.sealed]
    stage.launch(cauterise, CAPACITY, [wounds.numbers, wounds.view.count, *start])


def add_wound(wounds: Wounds, point: ArrayLike, vessel: VesselParams, opening: float, fluid: str = "blood") -> int:
    """Opens `vessel` at `point` on the surface (as it is now) with an opening of radius `opening` [m]; its number. What
    is not blood does not clot, and is no blood lost."""
    at = np.asarray(point, dtype=np.float64)
    if at.shape != (3,) or not np.isfinite(at).all():
        raise InputError(f"point = {point} is not possible.", "Give three finite coordinates in metres.")
    if not (math.isfinite(opening) and opening > 0.0):
        raise InputError(f"opening = {opening} is not possible.", "It must be a finite number above 0.")
    _check_opening(opening, vessel)
    if wounds.count == CAPACITY:
        raise InputError(
            f"there are {CAPACITY} wounds already.",
            "Wounds stay once they are open, also sealed ones: open fewer, or begin anew with make_wounds.",
        )
    face, weights, distance = closest_place(wounds.surface, at)
    if distance > ON_SURFACE:
        raise InputError(
            f"the wound at ({', '.join(f'{1e3 * x:.1f}' for x in at)}) mm is {1e3 * distance:.3g} mm from the surface.",
            f"Put it onto the surface; {1e3 * ON_SURFACE:g} mm are allowed.",
        )
    number = wounds.count
    values = {"face": face, "barycentric": weights, "opening": opening, "vessel": _row(vessel)}
    values |= {"fluid": wounds.film.pure(fluid), "is_blood": int(fluid == "blood")}
    for name, value in values.items():
        _write(getattr(wounds.view, name), number, value)
    for name in ("sealed", "clot", "rate", "owed", "given", "held", "speed", "leaving"):
        _write(getattr(wounds.view, name), number, 0)
    wounds.vessels.append(vessel)
    wounds.view.count.fill_(wounds.count)
    return number


def set_place(wounds: Wounds, number: int, face: int, weights: tuple[float, float] = (1.0 / 3.0, 1.0 / 3.0)) -> None:
    """Puts a wound onto a triangle of the surface, at these weights of its second and third corner: where a blade has
    opened its vessel. Texels that may be burnt to close it stay those of its first place."""
    _check_number(wounds, number)
    if not 0 <= face < wounds.surface.face_count:
        raise InputError(f"there is no triangle {face}.", f"The surface has {wounds.surface.face_count}, from 0.")
    _write(wounds.view.face, number, face)
    _write(wounds.view.barycentric, number, weights)


def set_vessel(wounds: Wounds, number: int, vessel: VesselParams) -> None:
    """Another pressure or length of the vessel behind a wound, while programs run."""
    _check_number(wounds, number)
    _check_opening(float(wounds.view.opening.numpy()[number]), vessel)
    wounds.vessels[number] = vessel
    _write(wounds.view.vessel, number, _row(vessel))


def set_opening(wounds: Wounds, number: int, opening: float) -> None:
    """A cut that goes deeper, or a vessel that contracts: radius [m]."""
    _check_number(wounds, number)
    if not (math.isfinite(opening) and opening >= 0.0):
        raise InputError(f"opening = {opening} is not possible.", "It must be a finite number of 0 or more.")
    _check_opening(opening, wounds.vessels[number])
    _write(wounds.view.opening, number, opening)


def set_whole(wounds: Wounds, number: int, whole: bool = True) -> None:
    """Says whether a wound's vessel is whole, or has no supply, so that nothing leaves it. A clip or a burn stays."""
    _check_number(wounds, number)
    sealed = int(wounds.view.sealed.numpy()[number])
    _write(wounds.view.sealed, number, sealed | WHOLE if whole else sealed & ~WHOLE)


def set_clip(wounds: Wounds, number: int, closed: bool = True) -> None:
    """Puts a clip on a wound's vessel, or takes it off; a burnt vessel stays shut."""
    _check_number(wounds, number)
    sealed = int(wounds.view.sealed.numpy()[number])
    _write(wounds.view.sealed, number, sealed | CLIPPED if closed else sealed & ~CLIPPED)


def set_burnt(wounds: Wounds, number: int) -> None:
    """Burns a wound's vessel shut, for good."""
    _check_number(wounds, number)
    _write(wounds.view.sealed, number, int(wounds.view.sealed.numpy()[number]) | BURNT)


def find_texels(wounds: Wounds, skin: Skin, part: int | None = None) -> None:
    """Looks up the texels around each wound, after wounds were added and before a program with `step_cautery` is
    recorded. They are found on the organ at rest. The skin is a part of the surface; or `part` says whose mesh it
    has."""
    number = wounds.surface.parts.index(skin) if part is None else part
    texels = skin.texels.numpy()
    weights, face = skin.barycentric.numpy()[texels], skin.face.numpy()[texels]
    at = points_of(skin.mesh.vertices, skin.mesh.triangles[face], weights)
    near: list[NDArray[np.int32]] = []
    for w in range(wounds.count):
        begin = int(wounds.surface.first_face[number])
        own = int(wounds.view.face.numpy()[w]) - begin
        found = np.zeros(0, dtype=np.int32)
        if 0 <= own < len(skin.mesh.triangles):
            corner = skin.mesh.triangles[own][None]
            place = points_of(skin.mesh.vertices, corner, wounds.view.barycentric.numpy()[w][None])
            found = texels[np.linalg.norm(at - place, axis=1) <= wounds.params.seal_radius]
        near.append(found)
    start = np.zeros(CAPACITY + 1, dtype=np.int32)
    start[1 : wounds.count + 1] = np.cumsum([len(n) for n in near])
    start[wounds.count + 1 :] = start[wounds.count]
    wounds.burn_start.assign(start)
    wounds.burn_texel = wp.array(
        np.concatenate([*near, np.zeros(1, np.int32)]), dtype=wp.int32, device=skin.device.warp
    )


def _check_number(wounds: Wounds, number: int) -> None:
    if not 0 <= number < wounds.count:
        raise InputError(f"there is no wound {number}.", f"There are {wounds.count}, counted from 0.")


def _check_opening(opening: float, vessel: VesselParams) -> None:
    """A vessel that is cut through is open by its own radius; a hair more is rounding."""
    if opening > vessel.radius * (1.0 + 1e-9):
        raise InputError(
            f"opening = {1e3 * opening:g} mm is wider than the vessel, whose radius is {1e3 * vessel.radius:g} mm.",
            "Give at most the vessel's radius, or a wider vessel.",
        )


def _row(vessel: VesselParams) -> list[float]:
    return [vessel.systolic, vessel.diastolic, vessel.resistance, vessel.density]


def _write(array: Any, number: int, value: Any) -> None:
    values = array.numpy()
    values[number] = value
    array.assign(values)
