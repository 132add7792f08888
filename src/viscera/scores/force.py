"""How hard a hand pressed, beside what the literature reports.

Horeman 2010 (force in box-trainer suturing): experts' mean 0.9 N and peak 2.6 N, novices' 2.1 N and 4.7 N.
Grasped bowel is safe up to about 0.7 to 1.2 N at the tissue (limits that the literature on grasping reports): above the
lower one some tissue is harmed, above the upper one much is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

TOUCH = 0.01
"""Less than this is no contact [N]."""


@dataclass(frozen=True)
class Limit:
    newtons: float
    """[N]"""
    words: str


CAREFUL = Limit(0.7, "lower limit reported for grasping bowel")
GENTLE = Limit(1.2, "upper limit reported for grasping bowel")
EXPERT_PEAK = Limit(2.6, "experts' peak in suturing, Horeman 2010")
LIMITS = (CAREFUL, GENTLE, EXPERT_PEAK)
EXPERT_MEAN = 0.9
"""Of experts' suturing, Horeman 2010 [N]."""


@dataclass(frozen=True)
class Force:
    mean: float
    """While it touches [N]."""
    peak: float
    """[N]"""
    impulse: float
    """Force over time [N·s]."""
    contact: float
    """How long it touched [s]."""
    above: tuple[float, ...]
    """How long it was above each of `LIMITS` [s]."""


def force(mean: FloatArray, peak: FloatArray, dt: float) -> Force:
    """Of rows of dt [s], each with its mean and its strongest force [N]."""
    touches = mean > TOUCH
    return Force(
        mean=float(mean[touches].mean()) if touches.any() else 0.0,
        peak=float(peak.max(initial=0.0)),
        impulse=float(dt * mean.sum()),
        contact=float(dt * touches.sum()),
        above=tuple(float(dt * (mean > limit.newtons).sum()) for limit in LIMITS),
    )
