"""Wounds: openings of vessels that bleed into a film, or spurt into the air, until they are sealed.

    bleeding = wounds.make(blood, drops=spray)              # `blood` is a film, `spray` its drops
    number = wounds.add(bleeding, point, VESSELS["artery"], opening=0.2e-3)
    wounds.drive(bleeding, pulse=0.5)
    wounds.step(stage, bleeding)                            # 16 ms, before the steps of the film
    wounds.clip(bleeding, number)

Equations are in `wounds`, vessels in `vessels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from viscera.blood.drops.drops import Drops
from viscera.blood.film.film import Film
from viscera.blood.film.params import LITTLE
from viscera.blood.wounds import wounds as _wounds
from viscera.blood.wounds.vessels import VESSELS, VesselParams, flow_rate, vessel_mmhg
from viscera.blood.wounds.wounds import BURNT, CAPACITY, CLIPPED, WoundParams, Wounds
from viscera.device import Stage
from viscera.errors import InputError
from viscera.skin import Skin
from viscera.states import Arrays, copy_in, copy_out, require_finite, require_names
from viscera.timing import FRAME

__all__ = [
    "BURNT",
    "CAPACITY",
    "CLIPPED",
    "VESSELS",
    "VesselParams",
    "WoundParams",
    "Wounds",
    "add",
    "check",
    "clip",
    "drive",
    "find_texels",
    "flow_rate",
    "load",
    "make",
    "save",
    "set",
    "set_opening",
    "set_vessel",
    "step",
    "vessel_mmhg",
    "volume",
]


def make(film: Film, params: WoundParams | None = None, *, drops: Drops | None = None, dt: float = FRAME) -> Wounds:
    """No wounds yet, on the surface of `film`, which they feed; one step is `dt` [s]. Without `drops` nothing spurts:
    all blood wells up."""
    if film.surface is None:
        raise InputError("a film on a sheet has no wounds.", "Make it on a skin or a mesh.")
    flying = None if drops is None else drops.state
    return _wounds.make_wounds(film.surface, film.params, film.state, params, dt, flying)


def set(wounds: Wounds, params: WoundParams) -> None:
    """Changes parameters while programs run."""
    _wounds.set_wounds(wounds, params)


def step(stage: Stage, wounds: Wounds, *, coagulated: Any = None) -> None:
    """One step of `wounds.dt`: what leaves is appended to the film's queue and to the drops.

    `coagulated` is a map of the skin given to `find_texels`, 0 to 1 or more per texel (a burn level does): wounds whose
    surroundings are coagulated are sealed first.
    """
    if coagulated is not None:
        _wounds.step_cautery(stage, wounds, coagulated)
    _wounds.step_wounds(stage, wounds)


def add(wounds: Wounds, point: ArrayLike, vessel: VesselParams, opening: float, fluid: str = "blood") -> int:
    """Opens `vessel` at `point` [m] on the surface as it is now, with an opening of radius `opening` [m]; its number.
    What is not blood does not clot, and is no blood lost. Waits for the device."""
    return _wounds.add_wound(wounds, point, vessel, opening, fluid)


def drive(wounds: Wounds, pulse: float, outside: float = 0.0) -> None:
    """Height of the pulse, 0 to 1, and pressure in the cavity [Pa], from the next step on."""
    if not (np.isfinite(pulse) and np.isfinite(outside) and 0.0 <= pulse <= 1.0):
        raise InputError(f"pulse = {pulse}, outside = {outside} is not possible.", "Give 0 to 1, and a pressure [Pa].")
    wounds.drive.host[:] = pulse, outside


def clip(wounds: Wounds, number: int, closed: bool = True) -> None:
    """Puts a clip on a wound's vessel, or takes it off; a burnt vessel stays shut. Waits for the device."""
    _wounds.set_clip(wounds, number, closed)


def set_vessel(wounds: Wounds, number: int, vessel: VesselParams) -> None:
    """Another pressure or length of the vessel behind a wound, while programs run. Waits for the device."""
    _wounds.set_vessel(wounds, number, vessel)


def set_opening(wounds: Wounds, number: int, opening: float) -> None:
    """A cut that goes deeper, or a vessel that contracts: radius [m]. Waits for the device."""
    _wounds.set_opening(wounds, number, opening)


def find_texels(wounds: Wounds, skin: Skin) -> None:
    """Looks up the texels around each wound: after wounds were added, and before a program with `step(…, coagulated)`
    is recorded."""
    _wounds.find_texels(wounds, skin)


def volume(wounds: Wounds) -> float:
    """What all of them have let out so far [m³]. Waits for the device."""
    return LITTLE * float(wounds.view.given.numpy()[: wounds.count].sum(dtype=np.int64))


def check(wounds: Wounds, tick: int = 0) -> None:
    """Raises StateError if a wound's flow is no longer finite. Waits for the device: once per frame."""
    flows = {name: getattr(wounds.view, name) for name in ("rate", "clot", "owed", "speed")}
    require_finite("wounds", flows, tick, "Look at the pressures in `drive` and of the vessels.")


def save(wounds: Wounds) -> Arrays:
    """Every wound with its vessel, how far it has clotted, what it owes and has given."""
    return copy_out(_kept(wounds)) | {"vessels": _vessel_rows(wounds)}


def load(wounds: Wounds, arrays: Arrays) -> None:
    """Puts wounds into a state that `save` gave, also those that were opened since. Where cautery seals them, call
    `find_texels` for the same wounds before."""
    require_names("wounds", ["vessels"], arrays)
    copy_in("wounds", _kept(wounds), arrays)
    wounds.vessels[:] = [VesselParams(*row) for row in arrays["vessels"].tolist()]


_VESSEL = ("systolic", "diastolic", "radius", "feed_length", "density", "viscosity")


def _vessel_rows(wounds: Wounds) -> np.ndarray:
    rows = [[getattr(vessel, name) for name in _VESSEL] for vessel in wounds.vessels]
    return np.array(rows, dtype=np.float64).reshape(-1, len(_VESSEL))


def _kept(wounds: Wounds) -> dict[str, object]:
    found: dict[str, object] = {name: getattr(wounds.view, name) for name in _wounds.WOUND_ARRAYS}
    return found | {"drive": wounds.drive, "burn_start": wounds.burn_start, "burn_texel": wounds.burn_texel}
