"""Recorded gaze: a CSV file with the columns time [s], x, y (0 to 1 from the top left) and valid (1 or 0)."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from viscera.errors import InputError
from viscera.gaze.attention import Sample

COLUMNS = ("time", "x", "y", "valid")


class Trace:
    """Gives the last sample at or before a time; None before the first, lost after the last."""

    def __init__(self, times: Iterable[float], samples: Iterable[Sample]) -> None:
        self._times = np.asarray(list(times), dtype=np.float64)
        self._samples = list(samples)
        if len(self._times) != len(self._samples) or not len(self._times):
            raise InputError("a trace needs as many times as samples, and one at least.", "Check the file.")
        if not np.isfinite(self._times).all() or (np.diff(self._times) < 0.0).any():
            raise InputError("the times of a trace go back, or are not finite.", "Sort its rows by time.")

    def sample(self, time: float) -> Sample | None:
        k = int(np.searchsorted(self._times, time, side="right")) - 1
        if k < 0:
            return None
        last = self._samples[k]
        over = k == len(self._times) - 1 and time > self._times[-1]
        return Sample(last.x, last.y, valid=False) if over else last

    def close(self) -> None:
        """Nothing to let go of."""


def read_trace(path: str | Path) -> Trace:
    """From a CSV file; `valid` may be missing."""
    place = Path(path)
    try:
        with place.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"gaze trace {place} cannot be read: {error}.", "Give a CSV file.") from error
    times, samples = [], []
    for number, row in enumerate(rows, start=2):
        try:
            times.append(float(row["time"]))
            samples.append(Sample(float(row["x"]), float(row["y"]), float(row.get("valid") or 1) > 0.0))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"line {number} of {place.name} is no sample of gaze.", f"Give the columns {', '.join(COLUMNS)}."
            ) from error
    return Trace(times, samples)


def write_trace(path: str | Path, times: Iterable[float], samples: Iterable[Sample]) -> None:
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        for time, one in zip(times, samples, strict=True):
            out.writerow((repr(float(time)), repr(float(one.x)), repr(float(one.y)), int(one.valid)))
