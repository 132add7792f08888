"""How a hand moved: path, depth, rests, smoothness.

Path length and time are the oldest measures of surgical dexterity (Datta 2001, ICSAD; Van Sickle 2005), depth along the
instrument is that of Chmarra 2010 (TrEndo), rests those of D'Angelo 2015. Smoothness is the spectral arc length of the
speed (Balasubramanian 2015, SPARC, eq. 3 with the adaptive cut-off): the length of the curve of the speed's Fourier
magnitude, normalised to 1 at 0 Hz, over frequency normalised to the cut-off. It depends neither on how far nor on how
long a movement is; one smooth movement has about −1.5, and every correction makes it more negative.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

REST_SPEED = 5.0e-3
"""Slower than this a hand rests [m/s]; our choice, above the tremor that a pointer shows."""
SHORTEST_REST = 0.3
"""A rest is at least this long [s]: a turning point of a movement is none."""
LEAST_STRAIGHT = 0.01
"""Share of a path that its straight lines have at least, where the two are compared; our choice."""
HIGHEST_FREQUENCY = 10.0
"""Hands have no voluntary movement above it [Hz]; Balasubramanian 2015 has 20 for arms, 10 for slower tasks."""
SMALLEST_MAGNITUDE = 0.05
"""The spectrum is cut off where it stays below this share of its start (Balasubramanian 2015)."""
PADDING = 4
"""The speed is filled up with zeros to 2^(⌈log₂ n⌉ + 4) samples, as there."""


def steps(positions: FloatArray, active: NDArray[np.bool_]) -> FloatArray:
    """How far the tip went in each row [m], shape (rows − 1,); 0 where it was out of the body."""
    way = np.linalg.norm(np.diff(positions, axis=0), axis=1)
    return np.where(active[1:] & active[:-1], way, 0.0)


def path_length(positions: FloatArray, active: NDArray[np.bool_]) -> float:
    """[m]"""
    return float(steps(positions, active).sum())


def depth_path(positions: FloatArray, active: NDArray[np.bool_], trocar: tuple[float, float, float] | None) -> float:
    """How far it went in and out: along its shaft where it goes through a trocar, else up and down [m]."""
    depth = positions[:, 2] if trocar is None else np.linalg.norm(positions - np.asarray(trocar), axis=1)
    way = np.abs(np.diff(depth))
    return float(np.where(active[1:] & active[:-1], way, 0.0).sum())


def resting(positions: FloatArray, active: NDArray[np.bool_], dt: float) -> NDArray[np.bool_]:
    """Whether the hand rests between each two rows, shape (rows − 1,)."""
    slow = steps(positions, active) < REST_SPEED * dt
    least = max(1, math.ceil(SHORTEST_REST / dt - 1e-9))
    rests = np.zeros_like(slow)
    for begin, end in _runs(slow):
        rests[begin:end] = end - begin >= least
    return rests


def idle_time(positions: FloatArray, active: NDArray[np.bool_], dt: float) -> float:
    """In the body and at rest [s]."""
    inside = active[1:] & active[:-1]
    return float(dt * (resting(positions, active, dt) & inside).sum())


def path_ratio(positions: FloatArray, active: NDArray[np.bool_], dt: float) -> float:
    """Path over the straight lines from rest to rest: 1 is as straight as can be. NaN where nothing moved, or where the
    hand came back to where it had set out: such a way has no straight one."""
    moving = ~resting(positions, active, dt) & active[1:] & active[:-1]
    straight = way = 0.0
    gone = steps(positions, active)
    for begin, end in _runs(moving):
        straight += float(np.linalg.norm(positions[end] - positions[begin]))
        way += float(gone[begin:end].sum())
    return way / straight if straight > LEAST_STRAIGHT * way else math.nan


def spectral_arc_length(speed: FloatArray, dt: float) -> float:
    """Of a speed [m/s], one sample every dt [s]; NaN where nothing moved."""
    if len(speed) < 2 or not float(np.max(speed)) > 0.0:
        return math.nan
    samples = 2 ** (math.ceil(math.log2(len(speed))) + PADDING)
    magnitude = np.abs(np.fft.rfft(speed, samples))
    frequency = np.fft.rfftfreq(samples, dt)
    magnitude /= magnitude[0]
    below = frequency <= HIGHEST_FREQUENCY
    magnitude, frequency = magnitude[below], frequency[below]
    last = int(np.nonzero(magnitude >= SMALLEST_MAGNITUDE)[0][-1])
    if last == 0:
        return -1.0
    along = np.diff(frequency[: last + 1]) / frequency[last]
    return -float(np.hypot(along, np.diff(magnitude[: last + 1])).sum())


def smoothness(positions: FloatArray, active: NDArray[np.bool_], dt: float) -> float:
    """Spectral arc length of all the hand did in the body, rests left out and movements one by one: their mean, weighed
    by how long each took. NaN where nothing moved."""
    moving = ~resting(positions, active, dt) & active[1:] & active[:-1]
    speed = steps(positions, active) / dt
    lengths = [(end - begin, spectral_arc_length(speed[begin:end], dt)) for begin, end in _runs(moving)]
    told = [(rows, length) for rows, length in lengths if math.isfinite(length)]
    rows = sum(one for one, _ in told)
    return sum(one * length for one, length in told) / rows if rows else math.nan


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Begin and end of each run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
