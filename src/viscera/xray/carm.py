"""The C-arm: where the source and the detector are, by the angles that a clinic uses.

Axes are the patient's: x to the left, y to the head, z to the front, so that right, up and out of the picture in a
frontal view. With the primary angle α (LAO positive, RAO negative) and the secondary angle β (cranial positive, caudal
negative), which say where the detector stands as DICOM has it (PS3.3 C.8.7.5), the beam runs along

    d = (sin α cos β, sin β, cos α cos β)

from the source, through the isocentre, to the middle of the detector; up in the picture is towards the head. The table
may tilt: then gravity turns, and the C-arm's angles still count from the patient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.device import Device
from viscera.errors import InputError

wp.set_module_options({"enable_backward": False})

FloatArray = NDArray[np.float64]

PRIMARY = 180.0
"""Most [degrees] to either side."""
SECONDARY = 90.0
MOST_PIXELS = 4_096


@dataclass(frozen=True)
class CArm:
    primary: float = 0.0
    """α [degrees], LAO positive."""
    secondary: float = 0.0
    """β [degrees], cranial positive."""
    source_detector: float = 1.10
    """[m]"""
    source_isocentre: float = 0.72
    """[m]"""
    field: float = 0.38
    """Side of the square of the detector that is read out [m]; a smaller one magnifies."""
    pixels: int = 512
    """Along a side."""
    isocentre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[m]"""
    iris: float | None = None
    """Radius of the round collimator at the detector [m]; None: as wide as the field."""
    shutters: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """How far blades come in from left, right, bottom and top, as shares of the field."""

    def __post_init__(self) -> None:
        for name, most in (("primary", PRIMARY), ("secondary", SECONDARY)):
            if not abs(getattr(self, name)) <= most:
                raise InputError(f"{name} = {getattr(self, name)} degrees is not possible.", f"−{most:g} to {most:g}.")
        if not 0.0 < self.source_isocentre < self.source_detector < 10.0:
            raise InputError(
                f"source–isocentre {self.source_isocentre} m and source–detector {self.source_detector} m do not fit.",
                "The isocentre lies between source and detector; the unit is metres.",
            )
        if not 0.0 < self.field <= 1.0:
            raise InputError(f"field = {self.field} m is not possible.", "Above 0 and up to 1 m.")
        if not 32 <= self.pixels <= MOST_PIXELS:
            raise InputError(f"pixels = {self.pixels} is not possible.", f"Allowed are 32 to {MOST_PIXELS}.")
        if self.iris is not None and not 0.0 < self.iris <= 1.0:
            raise InputError(f"iris = {self.iris} m is not possible.", "Above 0 and up to 1 m.")
        left, right, bottom, top = self.shutters
        if min(self.shutters) < 0.0 or left + right >= 1.0 or bottom + top >= 1.0:
            raise InputError(
                f"shutters = {self.shutters} is not possible.", "From 0 on, and opposite ones together below 1."
            )

    @cached_property
    def axes(self) -> FloatArray:
        """Rows: right and up in the picture, and the way of the beam."""
        a, b = math.radians(self.primary), math.radians(self.secondary)
        ahead = np.array([math.sin(a) * math.cos(b), math.sin(b), math.cos(a) * math.cos(b)])
        right = np.array([math.cos(a), 0.0, -math.sin(a)])
        return np.stack([right, np.cross(ahead, right), ahead])

    @property
    def source(self) -> FloatArray:
        """[m]"""
        return np.asarray(self.isocentre) - self.source_isocentre * self.axes[2]

    @property
    def pitch(self) -> float:
        """Side of a pixel on the detector [m]."""
        return self.field / self.pixels

    @property
    def magnification(self) -> float:
        """Of what lies in the isocentre."""
        return self.source_detector / self.source_isocentre

    def project(self, points: ArrayLike) -> FloatArray:
        """Where points (n, 3) [m] are seen [pixel], (n, 2): x to the right, y up, 0 at the lower left corner."""
        local = (np.asarray(points, dtype=np.float64) - self.source) @ self.axes.T
        return 0.5 * self.pixels + self.source_detector / self.pitch * local[:, :2] / local[:, 2:]

    def rays(self) -> FloatArray:
        """Directions through the middles of the pixels with length 1 along the beam, (pixels, pixels, 3); row 0 at the
        bottom."""
        side = (np.arange(self.pixels) + 0.5 - 0.5 * self.pixels) * self.pitch / self.source_detector
        right, up, ahead = self.axes
        return side[None, :, None] * right + side[:, None, None] * up + ahead

    def opening(self) -> NDArray[np.bool_]:
        """Which pixels the collimator lets see, (pixels, pixels)."""
        side = (np.arange(self.pixels) + 0.5) / self.pixels
        left, right, bottom, top = self.shutters
        x, y = (side >= left) & (side <= 1.0 - right), (side >= bottom) & (side <= 1.0 - top)
        iris = 0.5 * self.field if self.iris is None else self.iris
        away = (side - 0.5) * self.field
        return (away[None, :] ** 2 + away[:, None] ** 2 <= iris**2) & x[None, :] & y[:, None]

    @property
    def lit_area(self) -> float:
        """Of the detector, inside the collimator [m²]."""
        return float(self.opening().sum()) * self.pitch**2


@wp.struct
class ArmView:
    """A C-arm as kernels read it; it lives in an array, so that it may turn while programs run."""

    source: wp.vec3
    right: wp.vec3
    up: wp.vec3
    ahead: wp.vec3
    focal: float
    """Source to detector [pixel]."""
    isocentre: float
    """Source to isocentre [m]."""


def make_arm_array(arm: CArm, device: Device) -> Any:
    array = wp.zeros(1, dtype=ArmView, device=device.warp)
    write_arm(arm, array)
    return array


def write_arm(arm: CArm, array: Any) -> None:
    """The C-arm turns; its picture keeps its size."""
    view: Any = ArmView()
    view.source = wp.vec3(*arm.source.tolist())
    view.right, view.up, view.ahead = (wp.vec3(*row.tolist()) for row in arm.axes)
    view.focal = arm.source_detector / arm.pitch
    view.isocentre = arm.source_isocentre
    wp.copy(array, wp.array([view], dtype=ArmView, device=array.device))
