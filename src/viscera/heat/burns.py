"""Burns: what heat does to tissue, texel by texel. Water boils off, tissue whitens, then blackens.

    burn = burns.make(warmth)                               # `warmth` is a heat
    burns.step(stage, burn)                                 # after `heat.step`: burn.burn_level, 0 to 2

Equations are in `burn`; how burnt tissue looks is in `stages`.
"""

from __future__ import annotations

from viscera.device import Stage
from viscera.heat.burn import (
    CHARRING,
    LIVER_COAGULATION,
    Burn,
    BurnParams,
    RateProcess,
    boiled_heat,
    make_burn,
    measure_burn,
    reset_burn,
    set_burn,
    step_burn,
)
from viscera.heat.conduction import Heat
from viscera.heat.stages import BurnTexture, make_texture, step_texture
from viscera.states import Arrays, copy_in, copy_out, require_finite

__all__ = [
    "CHARRING",
    "LIVER_COAGULATION",
    "Burn",
    "BurnParams",
    "BurnTexture",
    "RateProcess",
    "areas",
    "check",
    "load",
    "make",
    "make_texture",
    "measure",
    "paint",
    "reset",
    "save",
    "set",
    "steam",
    "step",
]


def make(heat: Heat, params: BurnParams | None = None) -> Burn:
    """Healthy tissue on the skin of `heat`."""
    return make_burn(heat, params)


def set(burn: Burn, params: BurnParams) -> None:
    """Changes parameters while programs run; also to be called after `heat.set`."""
    set_burn(burn, params)


def step(stage: Stage, burn: Burn) -> None:
    """One step of `heat.dt` with the temperature as it is now: after `heat.step`."""
    step_burn(stage, burn)


def reset(burn: Burn) -> None:
    """Heals everything; what is hot stays hot."""
    reset_burn(burn)


def measure(stage: Stage, burn: Burn) -> None:
    """Counts coagulated and charred area; `areas` reads them."""
    measure_burn(stage, burn)


def areas(burn: Burn) -> tuple[float, float]:
    """Coagulated and charred area [m²] of the skin at rest, as of the last `measure`. Waits for the device."""
    burn.heat.skin.device.synchronize()
    coagulated, charred = burn.area.host[0].tolist()
    return coagulated, charred


def steam(burn: Burn) -> float:
    """Heat that has left as steam so far [J]. Waits for the device."""
    return boiled_heat(burn)


def paint(stage: Stage, texture: BurnTexture) -> None:
    """The picture of the burn as it is now: `texture.pixels`, RGBA8."""
    step_texture(stage, texture)


def check(burn: Burn, tick: int = 0) -> None:
    """Raises StateError if a map is no longer finite. Waits for the device: once per frame."""
    maps = {name: getattr(burn, name) for name in ("damage", "charring", "water", "burn_level")}
    require_finite("burn", maps, tick, "Look at the temperature first: `heat.check`.")


def save(burn: Burn) -> Arrays:
    """What heat has done to every texel, and the areas as last measured."""
    return copy_out(_kept(burn))


def load(burn: Burn, arrays: Arrays) -> None:
    """Puts a burn into a state that `save` gave."""
    copy_in("burn", _kept(burn), arrays)


def _kept(burn: Burn) -> dict[str, object]:
    return {name: getattr(burn, name) for name in ("damage", "charring", "water", "burn_level", "area")}
