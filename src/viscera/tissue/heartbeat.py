"""A heart that moves the tissue next to it: the drive of a lattice's driven anchors over time.

Over one beat, φ from 0 to 1, the drive follows the pulse in a large artery: a quick percussion wave, a tidal wave on
its shoulder, the dicrotic wave after the valve has shut,

    w(φ) = (s(φ) − min s)/(max s − min s),   s(φ) = Σ aᵢ·exp(κᵢ·(cos 2π(φ − φᵢ) − 1)),

which is smooth and periodic; heights, places and widths are set by eye after textbook tracings. A change of rate keeps
the phase, and a change of amplitude is followed within a few tenths of a second, so that nothing jumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from viscera.tissue.tissue import Tissue

WAVES = ((1.0, 0.17, 9.0), (0.7, 0.33, 6.0), (0.4, 0.58, 5.0))
"""Percussion, tidal and dicrotic wave: height, place in the beat, sharpness κ."""

FOLLOW_TIME = 0.1
"""Within which the amplitude follows its setting [s]."""


def _sum(phase: float) -> float:
    total = 0.0
    for height, place, sharpness in WAVES:
        total += height * math.exp(sharpness * (math.cos(2.0 * math.pi * (phase - place)) - 1.0))
    return total


_SAMPLES = [_sum(n / 4096) for n in range(4096)]
LOWEST, HIGHEST = min(_SAMPLES), max(_SAMPLES)
"""Of s over a beat."""


def pulse(phase: float) -> float:
    """w at this phase of the beat: 0 at rest, 1 at the height of the percussion wave."""
    return (_sum(phase) - LOWEST) / (HIGHEST - LOWEST)


@dataclass
class Heartbeat:
    """Moves the driven anchors of a tissue. `rate` and `amplitude` may be set at any time."""

    tissue: Tissue
    rate: float = 1.0
    """[beats/s]"""
    amplitude: float = 0.0
    """Of anchors whose drive direction has length 1, from rest to the height of the pulse [m]."""
    state: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """Phase of the beat (0 to 1), amplitude as followed [m], drive as the last tick ended [m]."""

    def advance(self, dt: float) -> None:
        """Sets the drive of the next tick."""
        phase, amplitude, before = self.state.tolist()
        phase = (phase + self.rate * dt) % 1.0
        amplitude += (1.0 - math.exp(-dt / FOLLOW_TIME)) * (self.amplitude - amplitude)
        drive = amplitude * pulse(phase)
        self.tissue.set_drive(before, drive)
        self.state[:] = phase, amplitude, drive
