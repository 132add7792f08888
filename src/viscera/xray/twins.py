"""X-ray's loop in C beside its plain twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.device import Device, Stage
from viscera.native import Trial, Twin, register
from viscera.native.twins import Results
from viscera.xray import detector, native_detector
from viscera.xray.carm import CArm, make_arm_array
from viscera.xray.projection import UNIT

_ENERGIES, _MATERIALS = 8, 4
_ATTENUATION = 200.0
"""Largest [1/m]: barium's is less."""


def _primary(device: Device, feature: str, native: bool, size: int) -> Trial:
    """Lengths up to 0.2 m in each material; sums of exits and entries may be a little below 0."""
    rng, side = np.random.default_rng(3), native_detector.LANES * round(size**0.5 / native_detector.LANES)
    n = side**2

    def given(values: np.ndarray, dtype: Any = wp.float32) -> wp.array:
        return wp.array(values, dtype=dtype, device=device.warp)

    lengths = (rng.uniform(-1e-4, 0.2, (2, _MATERIALS, n)) / UNIT).astype(np.int32)
    attenuation = np.zeros((_ENERGIES, detector.MOST_MATERIALS), dtype=np.float32)
    attenuation[:, :_MATERIALS] = rng.uniform(0.0, _ATTENUATION, (_ENERGIES, _MATERIALS)) ** 2 / _ATTENUATION
    away = np.hypot(*np.meshgrid(*[np.linspace(-1.0, 1.0, side)] * 2))
    opening = (away < (0.6 if feature == "collimated" else 2.0)).astype(np.float32).ravel()
    arrays = [
        given(rng.dirichlet(np.ones(_ENERGIES)).astype(np.float32)),
        given(attenuation, detector.Lengths),
        *(given(one, wp.int32) for one in lengths),
        given(opening),
    ]
    primary = wp.zeros(n, dtype=float, device=device.warp)
    # A field a third as wide as it is far away.
    arm = make_arm_array(CArm(source_detector=1.2, field=0.4, pixels=side), device)
    args = [side, _ENERGIES, _MATERIALS, arm, *arrays, primary]

    def step(stage: Stage) -> None:
        if native:
            stage.launch(native_detector.find_primary, side, args, block=1)
        else:
            stage.launch(detector.find_primary, n, args)

    return Trial(step, lambda: _results(primary), n, n)


def _results(primary: wp.array) -> Results:
    return {"primary": primary.numpy()}


register(Twin(
    "xray.primary", (detector.find_primary,), {"cpu": (native_detector.find_primary,)}, ("open", "collimated"),
    1e-6,  # the same operations in the same order
    _primary, small=4_096, large=262_144,
))  # fmt: skip
