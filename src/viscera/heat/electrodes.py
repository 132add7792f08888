"""Electrodes: instruments that put power into tissue while the pedal is down.

    hook = electrodes.make(burn, tool, ElectrodeParams(power=30.0))     # `tool` is a `geometry.parts.JointedTool`
    electrodes.place(hook, tip, (0, 0, 0, 1)); electrodes.press(hook, True)
    electrodes.step(stage, [hook])                                      # before `heat.step`

Equations are in `electrode`.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from viscera.device import Stage
from viscera.geometry.parts import JointedTool
from viscera.heat.burn import Burn
from viscera.heat.electrode import Electrode, ElectrodeParams, make_electrode, step_electrodes
from viscera.states import Arrays, copy_in, copy_out, require_finite

__all__ = [
    "Electrode",
    "ElectrodeParams",
    "check",
    "load",
    "make",
    "place",
    "power",
    "press",
    "save",
    "set",
    "step",
]


def make(burn: Burn, tool: JointedTool, params: ElectrodeParams | None = None) -> Electrode:
    """An electrode of the tool's active parts, with the pedal up; skin and tool share one frame of reference."""
    return make_electrode(tool, burn, params)


def set(electrode: Electrode, params: ElectrodeParams) -> None:
    """Changes the generator while programs run; what the pedal says stays."""
    electrode.set(params)


def step(stage: Stage, electrodes: Sequence[Electrode]) -> None:
    """Writes `heat.power` of the skin that all of them share: before `heat.step`. All in one call, as the first one
    writes and the others add."""
    step_electrodes(stage, electrodes)


def press(electrode: Electrode, pedal: bool) -> None:
    """The foot switch: whether it heats from the next step on."""
    electrode.press(pedal)


def place(
    electrode: Electrode, position: ArrayLike, orientation: ArrayLike, grip: float = 0.0, *, jump: bool = False
) -> None:
    """Where its tool is as the next step ends: position of the tip [m], quaternion (x, y, z, w), grip 0 to 1. It comes
    from where it was, or, if it jumps, was there before."""
    electrode.tool.place(position, orientation, grip, jump=jump)


def power(electrode: Electrode) -> float:
    """Into tissue in the last step [W]. Waits for the device."""
    electrode.tool.device.synchronize()
    return float(electrode.delivered.host[0])


def check(electrode: Electrode, tick: int = 0) -> None:
    """Raises StateError if its power is no longer finite. Waits for the device: once per frame."""
    require_finite("electrode", {"delivered": electrode.delivered}, tick, "Look at the burn first: `burns.check`.")


def save(electrode: Electrode) -> Arrays:
    """Generator, pedal, where the tool is, and what it delivered last."""
    return copy_out(_kept(electrode))


def load(electrode: Electrode, arrays: Arrays) -> None:
    """Puts an electrode into a state that `save` gave; `params` stay those it was made with or `set` to."""
    copy_in("electrode", _kept(electrode), arrays)


def _kept(electrode: Electrode) -> dict[str, object]:
    tool = electrode.tool
    shown: dict[str, object] = {"live": electrode.live, "delivered": electrode.delivered}
    return shown | {"poses": tool.poses, "start": tool.start, "end": tool.end}
