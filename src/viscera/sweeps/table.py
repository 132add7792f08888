"""The results of a sweep as a file, as a table of means, and as plots."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from viscera.errors import InputError, RecordingError
from viscera.sweeps.one import Row
from viscera.sweeps.plan import Plan

KINDS = (".parquet", ".csv", ".json")


def check_kind(out: Path) -> None:
    """Refuses a file that cannot be written, before hours of runs."""
    if out.suffix not in KINDS:
        raise InputError(f"--out {out} ends in {out.suffix or 'nothing'}.", f"Let it end in {', '.join(KINDS)}.")
    if out.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise InputError(
                "Parquet files need pyarrow.", "Install it with: pip install 'viscera[cluster]', or use .csv."
            ) from error


def columns(plan: Plan, rows: Sequence[Row]) -> dict[str, list[Any]]:
    """One list per column, in the order of the runs: number, seed, settings, measures, and how it went."""
    good = sorted((row for row in rows if not row.failed), key=lambda row: row.run)
    names = list(plan.measures) or sorted({name for row in good for name in row.measures})
    found: dict[str, list[Any]] = {"run": [row.run for row in good], "seed": [row.seed for row in good]}
    found |= {name: [row.settings[name] for row in good] for name in plan.settings}
    # A measure may be called as a setting is.
    found |= {
        name if name not in found else f"measured_{name}": [row.measures.get(name, math.nan) for row in good]
        for name in names
    }
    found["peak_force"] = [row.peak_force for row in good]
    found["wall"] = [row.wall for row in good]
    found["worker"] = [row.worker for row in good]
    found["state_hash"] = [row.state_hash for row in good]
    return found


def write(out: Path, table: dict[str, list[Any]]) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.suffix == ".parquet":
            import pyarrow
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.table(table), out)
        elif out.suffix == ".csv":
            with out.open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(table)
                writer.writerows(zip(*table.values(), strict=True))
        else:
            rows = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
            out.write_text(json.dumps(rows, indent=1) + "\n")
    except OSError as error:
        raise RecordingError(f"Cannot write {out}: {error.strerror}.", "Choose another --out.") from error


def measured_names(plan: Plan, table: dict[str, list[Any]]) -> list[str]:
    """Columns that were measured and differ from run to run, or were asked for."""
    kept = {"run", "seed", "wall", "worker", "state_hash", *plan.settings}
    names = [name for name in table if name not in kept]
    return [name for name in names if name in plan.measures or len(set(table[name])) > 1]


def summary(plan: Plan, table: dict[str, list[Any]]) -> list[list[str]]:
    """Of each combination of settings: how many runs, and mean ± standard deviation of each measure over the seeds. The
    first row has the names."""
    names = measured_names(plan, table)
    rows = [[*plan.settings, "runs", *names]]
    keys = (
        list(zip(*(table[name] for name in plan.settings), strict=True)) if plan.settings else [()] * len(table["run"])
    )
    for key in dict.fromkeys(keys):
        here = np.array([one == key for one in keys])
        cells = [f"{value:g}" for value in key] + [str(int(here.sum()))]
        for name in names:
            values = np.asarray(table[name], dtype=np.float64)[here]
            cells.append(f"{values.mean():.4g} ± {values.std():.2g}")
        rows.append(cells)
    return rows


def plot(out: Path, plan: Plan, table: dict[str, list[Any]]) -> Path | None:
    """Each measure over each setting that has several values: every run a dot, the mean of the seeds a line. None where
    there is nothing to draw."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    swept = [name for name, values in plan.settings.items() if len(values) > 1]
    names = measured_names(plan, table)
    if not swept or not names or not table["run"]:
        return None
    figure, axes = pyplot.subplots(
        len(names), len(swept), figsize=(4.2 * len(swept), 2.6 * len(names)), squeeze=False, sharex="col"
    )
    for row, measure in zip(axes, names, strict=True):
        for axis, setting in zip(row, swept, strict=True):
            x, y = (np.asarray(table[name], dtype=np.float64) for name in (setting, measure))
            places = np.unique(x)
            axis.plot(x, y, ".", color="0.6", markersize=4)
            axis.plot(places, [y[x == place].mean() for place in places], "o-", color="C3", markersize=4)
            axis.set_ylabel(measure)
    for axis, setting in zip(axes[-1], swept, strict=True):
        axis.set_xlabel(setting)
    figure.suptitle(f"{plan.scenario}, {len(table['run'])} runs")
    figure.tight_layout()
    path = out.with_suffix(".png")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path
