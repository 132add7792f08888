"""X-ray: fluoroscopy of meshes, particles and CT volumes (docs/xray.md).

machine = xray.make(Scene([Solid(...)]), device=device)
xray.set(machine, replace(machine.params, arm=CArm(...)))
xray.expose(machine)                                    # one pulse; `xray.step(stage, machine)` records one
xray.picture(machine)
"""

from __future__ import annotations

from dataclasses import fields

from viscera.errors import InputError
from viscera.xray.carm import CArm
from viscera.xray.detector import DetectorParams
from viscera.xray.scene import Cloud, Scene, Solid
from viscera.xray.spectrum import Tube
from viscera.xray.xray import (
    Xray,
    XrayParams,
    aim,
    check,
    contrast,
    dose_area_product,
    expose,
    lengths,
    load,
    make,
    picture,
    save,
    seconds,
    settle,
    signal,
    step,
)

__all__ = [
    "CArm",
    "Cloud",
    "DetectorParams",
    "Scene",
    "Solid",
    "Tube",
    "Xray",
    "XrayParams",
    "aim",
    "check",
    "contrast",
    "dose_area_product",
    "expose",
    "lengths",
    "load",
    "make",
    "picture",
    "save",
    "seconds",
    "set",
    "settle",
    "signal",
    "step",
]


def set(xray: Xray, params: XrayParams) -> None:
    """Turns and collimates the C-arm and sets the rate of pulses; refuses what recorded programs have frozen."""
    for field in fields(params):
        if field.name not in ("arm", "pulse_rate") and getattr(params, field.name) != getattr(xray.params, field.name):
            raise InputError(f"{field.name} cannot change while it runs.", "Make a new one with `xray.make`.")
    aim(xray, params.arm)
    xray.pulse_rate, xray.params = params.pulse_rate, params
