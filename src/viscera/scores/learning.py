"""How somebody learns from trial to trial: CUSUM, LC-CUSUM, and the plateau of a measure.

CUSUM (Bolsin and Colson 2000) watches whether failures come more often than they should. With an acceptable failure
rate p0, an unacceptable one p1 > p0, and errors α and β,

    P = ln(p1/p0),  Q = ln((1 − p0)/(1 − p1)),  s = Q/(P + Q),
    each failure adds 1 − s, each success takes s away,
    the limits are ln((1 − β)/α)/(P + Q) above (unacceptable) and ln((1 − α)/β)/(P + Q) below (acceptable).

LC-CUSUM (Biau 2010) asks the other way round: it begins with "not yet proficient" and signals when somebody is,

    S ← max(0, S + W),  W = ln((1 − p1)/(1 − p0)) for a success, ln(p1/p0) for a failure,

with p0 the failure rate that is inadequate and p1 < p0 the adequate one. Its limit h is found by simulation, so that
somebody who stays at p0 is called proficient within so many trials with a stated probability.

The plateau is that of y = a + b/n over trials n (Feldman 2009): a is what practice leads to, b how far off the first
trial was. Of a measure that is never negative, a is none either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError

SIMULATED = 20_000
"""Learners who stay inadequate, to find the limit of LC-CUSUM; the rate is then known to 0.2 %."""


@dataclass(frozen=True)
class Cusum:
    s: float
    upper: float
    """Above it, failures are unacceptably many."""
    lower: float
    """Below it (it is negative), they are acceptably few."""
    path: tuple[float, ...]
    """After each trial."""


def cusum(passed: Sequence[bool], p0: float, p1: float, alpha: float = 0.1, beta: float = 0.1) -> Cusum:
    """Of trials in their order. `p0` is the acceptable failure rate, `p1` the unacceptable one."""
    _check_rates(p0, p1)
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not 0.0 < value < 0.5:
            raise InputError(f"{name} = {value!r} is not allowed.", "It is between 0 and 0.5.")
    big_p, big_q = math.log(p1 / p0), math.log((1.0 - p0) / (1.0 - p1))
    s = big_q / (big_p + big_q)
    steps = np.where(np.asarray(passed, dtype=np.bool_), -s, 1.0 - s)
    return Cusum(
        s=s,
        upper=math.log((1.0 - beta) / alpha) / (big_p + big_q),
        lower=-math.log((1.0 - alpha) / beta) / (big_p + big_q),
        path=tuple(np.cumsum(steps).tolist()),
    )


@dataclass(frozen=True)
class LearningCusum:
    limit: float
    path: tuple[float, ...]
    """After each trial; it begins anew at 0 where it would be negative."""
    proficient_at: int | None
    """The first trial, from 1, after which the limit is reached; None while it is not."""


def lc_cusum(passed: Sequence[bool], inadequate: float, adequate: float, limit: float) -> LearningCusum:
    """Of trials in their order, with failure rates `inadequate` > `adequate` and a limit of `lc_limit`."""
    gain, loss = _weights(inadequate, adequate)
    path: list[float] = []
    now = 0.0
    for one in passed:
        now = max(0.0, now + (gain if one else loss))
        path.append(now)
    reached = next((number for number, value in enumerate(path, 1) if value >= limit), None)
    return LearningCusum(limit, tuple(path), reached)


def lc_limit(inadequate: float, adequate: float, trials: int = 50, rate: float = 0.05, seed: int = 0) -> float:
    """The smallest limit with which at most a share `rate` of learners who fail at the `inadequate` rate are called
    proficient within so many trials."""
    if not 0.0 < rate < 1.0 or trials < 1:
        raise InputError(
            f"rate = {rate!r}, trials = {trials!r} is not allowed.", "Give a share and at least one trial."
        )
    gain, loss = _weights(inadequate, adequate)
    failed = np.random.default_rng(seed).random((trials, SIMULATED)) < inadequate
    now, highest = np.zeros(SIMULATED), np.zeros(SIMULATED)
    for row in failed:
        now = np.maximum(0.0, now + np.where(row, loss, gain))
        highest = np.maximum(highest, now)
    # Values lie on a grid of steps: the limit is just above those that too many reach.
    levels = np.unique(highest)
    share = np.array([(highest >= level).mean() for level in levels])
    allowed = levels[share <= rate]
    return float(allowed[0]) if len(allowed) else math.nextafter(float(levels[-1]), math.inf)


@dataclass(frozen=True)
class Plateau:
    plateau: float
    """What the measure comes to with practice."""
    first: float
    """What the curve has at the first trial."""


def plateau(values: Sequence[float]) -> Plateau | None:
    """Of a measure over trials in their order; None for fewer than four, of which no curve can be said."""
    y: NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    if len(y) < 4 or not np.isfinite(y).all():
        return None
    inverse = 1.0 / np.arange(1, len(y) + 1)
    (a, b), *_ = np.linalg.lstsq(np.stack([np.ones_like(inverse), inverse], axis=1), y, rcond=None)
    if a < 0.0 and (y >= 0.0).all():  # nobody comes below nothing: the best curve that ends there
        a, b = 0.0, float(y @ inverse / (inverse @ inverse))
    return Plateau(float(a), float(a + b))


def quartiles(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Of a cohort; None for fewer than four."""
    if len(values) < 4:
        return None
    low, middle, high = np.percentile(np.asarray(values, dtype=np.float64), (25.0, 50.0, 75.0)).tolist()
    return low, middle, high


def _weights(inadequate: float, adequate: float) -> tuple[float, float]:
    _check_rates(adequate, inadequate)
    return math.log((1.0 - adequate) / (1.0 - inadequate)), math.log(adequate / inadequate)


def _check_rates(lower: float, higher: float) -> None:
    if not 0.0 < lower < higher < 1.0:
        raise InputError(
            f"failure rates {lower!r} and {higher!r} are not allowed.",
            "Give two between 0 and 1, the better one lower.",
        )
