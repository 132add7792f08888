"""Run benchmarks and keep what they say: JSON for machines, a table and a plot for people."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viscera import machine
from viscera.bench.registry import Benchmark, Row
from viscera.errors import RecordingError

if TYPE_CHECKING:
    from viscera.device import Device

QUICK_BUDGET = 45.0
"""What the benchmarks of a quick run share [s]; the whole is to end within a minute, and last rows take a while."""

Notice = Callable[[str], None]
Progress = Callable[[str, float], None]
"""Told what is being done and which fraction is done."""


def measure(
    benchmarks: list[Benchmark], device: Device, quick: bool, notice: Notice, progress: Progress | None = None
) -> Iterator[Row]:
    """Yield every row of the benchmarks, one benchmark after the other.

    In a quick run each has an equal share of the time that is left. It shows its first row in any case, and says when
    there are more.
    """
    tell = progress or (lambda text, fraction: None)
    end = time.monotonic() + QUICK_BUDGET
    for number, chosen in enumerate(benchmarks):
        fraction = number / len(benchmarks)
        tell(f"{chosen.name}: {chosen.title}", fraction)
        now = time.monotonic()
        over = now + (end - now) / (len(benchmarks) - number)
        rows = chosen.run(device, quick)
        for row in rows:
            yield row
            tell(f"{row.name} · {row.case} · {row.size}: {short(row.ms)} ms", fraction)
            if quick and time.monotonic() > over:
                notice(f"Out of time for a quick run of {chosen.name}: its other rows are left out.")
                break
        del rows  # what was made for its rows is closed before the next benchmark starts


def to_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as plain data. JSON knows no infinity and no NaN; they become null."""
    return [_finite(row.as_json()) for row in rows]


def to_markdown(rows: Iterable[Row]) -> str:
    """A table with one line per row; times and rates with three significant digits."""
    lines = [
        "| benchmark | case | size | device | ms | steps/s | document | goal | floor ratio |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        numbers = (row.ms, row.steps_per_s, row.document, row.goal, row.floor_ratio)
        cells = [row.name, row.case, f"{row.size:,}".replace(",", " "), row.device, *map(short, numbers)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def short(value: float | None) -> str:
    """Three significant digits, thousands kept readable; nothing for nothing."""
    if value is None or not math.isfinite(value):
        return ""
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def save(rows: list[Row], device: Device, out: Path, notice: Notice) -> list[Path]:
    """Write `bench.json`, `bench.md` and `bench.png` into `out` and return what was written."""
    head = {
        **machine.describe(),
        "device": device.name,
        "device_description": device.description,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        data, table, picture = out / "bench.json", out / "bench.md", out / "bench.png"
        data.write_text(json.dumps({**head, "rows": to_json(rows)}, indent=1) + "\n")
        table.write_text(f"{device.description}, {head['date']}\n\n{to_markdown(rows)}")
    except OSError as error:
        raise RecordingError(
            f"Cannot write benchmark results to {out}: {error.strerror}.", "Choose another --out."
        ) from error
    return [data, table] + ([picture] if _plot(rows, picture, notice) else [])


def _plot(rows: list[Row], path: Path, notice: Notice) -> bool:
    """Time against size, one panel per benchmark. Without matplotlib (a bare machine) there is no picture."""
    if not rows:
        return False
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        notice("No plot: matplotlib is not installed here.")
        return False
    names = list(dict.fromkeys(row.name for row in rows))
    figure = Figure(figsize=(9.0 * min(len(names), 2), 4.5 * math.ceil(len(names) / 2)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(math.ceil(len(names) / 2), min(len(names), 2), squeeze=False).flat
    for name, panel in zip(names, panels, strict=False):
        mine = [row for row in rows if row.name == name]
        for number, case in enumerate(dict.fromkeys(row.case for row in mine)):
            points = sorted((row.size, row.ms) for row in mine if row.case == case)
            style = ("-", "--", ":", "-.")[number // 10 % 4]  # colours repeat after ten
            panel.plot(*zip(*points, strict=True), style, marker="o", label=case)
        panel.set(title=name, xlabel="size", ylabel="ms per step", xscale="log", yscale="log")
        panel.grid(True, which="both", alpha=0.3)
        panel.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))
    for panel in list(panels):
        panel.set_visible(False)
    figure.savefig(path, dpi=120)
    return True


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
