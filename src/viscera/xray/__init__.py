"""X-ray: fluoroscopy of meshes, particles and CT volumes (docs/xray.md)."""

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
    "settle",
    "signal",
    "step",
]
