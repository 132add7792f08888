"""The shape of an instrument as tissue feels it: the round bars that are drawn, wherever the hand has taken them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.instruments.effects import Pushes
from viscera.instruments.instrument import Instrument, Part

MOST_BARS = 4
"""Round bars that an instrument may have."""

SHAFT_LENGTH = 0.28
"""Of a laparoscopic instrument, as far as it is seen [m]."""
THICKEST_SHAFT, SHAFT_SHARE = 2.5e-3, 0.55
"""A ball or rod sits on a shaft of this radius [m], or of this share of its own: as the page draws it."""


def parts_of(instrument: Instrument) -> tuple[Part, ...]:
    """Its parts; of one without any, the ball or rod that it pushes with and the shaft above."""
    if len(instrument.parts) > MOST_BARS:
        raise InputError(
            f"{instrument.name} has {len(instrument.parts)} parts.", f"At most {MOST_BARS} are felt: leave some out."
        )
    pushes = instrument.effect(Pushes)
    if instrument.parts or pushes is None:
        return instrument.parts
    low, high = pushes.offset, pushes.offset + pushes.length
    thin = min(THICKEST_SHAFT, SHAFT_SHARE * pushes.radius)
    return (
        Part((0.0, 0.0, low), (0.0, 0.0, high), pushes.radius),
        Part((0.0, 0.0, high), (0.0, 0.0, high + SHAFT_LENGTH), thin),
    )


class Bars:
    """The bars of one instrument, in its own frame."""

    def __init__(self, instrument: Instrument) -> None:
        parts = parts_of(instrument)
        self.count = len(parts)
        self.radii = np.array([part.radius for part in parts])
        """[m]"""
        self._closed = np.array([(part.start, part.end) for part in parts], dtype=np.float64).reshape(-1, 2, 3)
        self._swing = np.array([part.swing for part in parts])
        self._bent: float | None = None
        self._local = self._closed.copy()

    def place(self, tip: NDArray[np.float64], turn: NDArray[np.float64], grip: float, out: NDArray[np.float64]) -> None:
        """Both ends of each bar's axis in the world, shape (MOST_BARS, 2, 3) [m], for a tip [m], a quaternion
        (x, y, z, w) and a grip."""
        if self._bent != grip:
            self._bend(grip)
        x, y, z, w = turn.tolist()
        matrix = np.array(
            (
                (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)),
                (2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)),
                (2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)),
            )
        )
        # Not NumPy's own product, which may fuse: see `turning.dot`.
        along = self._local[..., :1] * matrix[0] + self._local[..., 1:2] * matrix[1] + self._local[..., 2:] * matrix[2]
        out[: self.count] = along + tip

    def _bend(self, grip: float) -> None:
        """Jaws stand open by their swing at grip 0, about y through their start."""
        for bar, swing in enumerate(self._swing.tolist()):
            if swing != 0.0:
                angle = swing * (1.0 - grip)
                x, y, z = (self._closed[bar, 1] - self._closed[bar, 0]).tolist()
                c, s = math.cos(angle), math.sin(angle)
                self._local[bar, 1] = self._closed[bar, 0] + (c * x + s * z, y, c * z - s * x)
        self._bent = grip
