"""Heat in the skin: how it spreads, and how it is lost.

    warmth = heat.make(liver)                               # `liver` is a skin
    heat.step(stage, warmth)                                # 16 ms: warmth.power [W] in, warmth.temperature [K] out

What heat does to tissue is in `viscera.heat.burns`, what puts it there in `viscera.heat.electrodes`. Equations are in
`conduction`.
"""

from __future__ import annotations

from viscera.device import Stage
from viscera.heat.conduction import (
    LIVER_PERFUSION,
    STILL_AIR,
    Heat,
    HeatParams,
    make_heat,
    set_heat,
    step_heat,
    total_heat,
)
from viscera.heat.materials import HeatMaterials
from viscera.heat.network import rebuild_network
from viscera.skin import Skin
from viscera.states import Arrays, copy_in, copy_out, require_finite
from viscera.timing import FRAME

__all__ = [
    "LIVER_PERFUSION",
    "STILL_AIR",
    "Heat",
    "HeatMaterials",
    "HeatParams",
    "check",
    "energy",
    "follow",
    "load",
    "make",
    "save",
    "set",
    "step",
]


def make(
    skin: Skin,
    params: HeatParams | None = None,
    *,
    materials: HeatMaterials | None = None,
    dt: float = FRAME,
    native: bool = True,
) -> Heat:
    """Heat at body temperature on `skin`, for steps of `dt` [s]. `materials` says what each texel is made of; without
    it, all of them are what `params` says. `native` False runs the plain kernels."""
    return make_heat(skin, params, dt, native, materials)


def set(heat: Heat, params: HeatParams, *, dt: float | None = None) -> None:
    """Changes parameters, and the step [s] if it is given, while programs run. Burns on this heat must hear of it:
    `burns.set(burn, burn.params)`."""
    set_heat(heat, params, dt)


def step(stage: Stage, heat: Heat) -> None:
    """One step of `heat.dt`: `heat.power` in, `heat.temperature` out."""
    step_heat(stage, heat)


def follow(stage: Stage, heat: Heat) -> None:
    """Brings conductances up to the skin's shape: after `skin.follow`, before `step`. Not needed while tissue rests."""
    rebuild_network(stage, heat.skin, heat.network, heat.native)


def check(heat: Heat, tick: int = 0) -> None:
    """Raises StateError if a temperature is no longer finite. Waits for the device: once per frame."""
    hint = "A step cannot break by itself: look at the numbers that were put into `power` or `temperature`."
    require_finite("heat", {"temperature": heat.temperature}, tick, hint)


def energy(heat: Heat) -> float:
    """Heat above body temperature in the whole layer [J]. Waits for the device."""
    return total_heat(heat)


def save(heat: Heat) -> Arrays:
    """Temperature and power of every texel."""
    return copy_out(_kept(heat))


def load(heat: Heat, arrays: Arrays) -> None:
    """Puts heat into a state that `save` gave. The skin comes first: conductances are those of its shape now."""
    copy_in("heat", _kept(heat), arrays)
    heat.limits.run()
    heat.skin.device.synchronize()


def _kept(heat: Heat) -> dict[str, object]:
    return {"temperature": heat.temperature, "power": heat.power}
