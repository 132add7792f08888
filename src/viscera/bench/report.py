"""Run benchmarks and keep what they say: JSON for machines, a table and a plot for people."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viscera import machine
from viscera.bench.registry import Benchmark, Row, registered
from viscera.bench.sources import Fingerprint, SourceTree, State, current_commit, our_sources, parse_parts, state_of
from viscera.errors import InputError, RecordingError

if TYPE_CHECKING:
    from viscera.device import Device

QUICK_BUDGET = 50.0
"""No new measurement starts after this in a quick run [s]; the whole is to end within a minute."""
LEAST_SHARE = 2.0
"""A benchmark with less time than this is not begun after the headlines: making what it measures takes longer [s]."""

SAVED = "benchmarks/results"
"""Where a checkout keeps its tables."""

Notice = Callable[[str], None]
Progress = Callable[[str, float], None]
"""Gets what is being done and which fraction is done."""


def measure(
    benchmarks: list[Benchmark],
    device: Device,
    quick: bool,
    notice: Notice,
    progress: Progress | None = None,
    only: Sequence[str] = (),
) -> Iterator[Row]:
    """Yield every row of the benchmarks, or those `only` whose case is like one of these patterns. A quick run of all
    begins with all headlines and says what it left out."""
    tell = progress or (lambda text, fraction: None)
    if not quick or only:
        some = False
        for number, chosen in enumerate(benchmarks):
            tell(f"{chosen.name}: {chosen.title}", number / len(benchmarks))
            for row in chosen.rows(device, quick, only):
                some = True
                yield row
                tell(f"{row.name} · {row.case} · {row.size}: {short(row.ms)} ms", number / len(benchmarks))
        if only and not some:
            raise InputError(f"No row has a case like {' or '.join(only)}.", "Saved tables have their names.")
        return
    end = time.monotonic() + QUICK_BUDGET
    shown: set[tuple[str, str, int]] = set()
    for number, chosen in enumerate(benchmarks):
        if time.monotonic() > end:
            late = ", ".join(other.name for other in benchmarks[number:])
            notice(f"Out of time: no headline of {late}. Kernels that were compiled now are ready in the next run.")
            return
        tell(f"{chosen.name}: {chosen.title}", number / len(benchmarks))
        row = replace(chosen.headline(device), headline=True)
        shown.add((row.name, row.case, row.size))
        yield row
    yield from _more(benchmarks, device, end, shown, notice)


def _more(
    benchmarks: list[Benchmark], device: Device, end: float, shown: set[tuple[str, str, int]], notice: Notice
) -> Iterator[Row]:
    """What fits into the time that the headlines left: each benchmark has an equal share of what is left then."""
    cut: list[str] = []
    for number, chosen in enumerate(benchmarks):
        now = time.monotonic()
        share = now + (end - now) / (len(benchmarks) - number)
        if share - now < LEAST_SHARE:
            cut.append(chosen.name)
            continue
        rows = chosen.rows(device, True)
        for row in rows:
            if (row.name, row.case, row.size) not in shown:
                yield row
            if time.monotonic() > share:
                cut.append(chosen.name)
                break
        if isinstance(rows, Generator):
            rows.close()
    if cut:
        notice(f"A quick run has no time for more rows of {', '.join(cut)}; name a benchmark to see more of it.")


def to_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as plain data. JSON knows no infinity and no NaN; they become null."""
    return [_finite(row.as_json()) for row in rows]


def to_markdown(rows: Iterable[Row]) -> str:
    """A table with one line per row; times and rates with three significant digits. Headlines are bold."""
    lines = [
        "| benchmark | case | size | device | ms | steps/s | document | goal | floor ratio |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        numbers = (row.ms, row.steps_per_s, row.document, row.goal, row.floor_ratio)
        case = f"**{row.case}** (headline)" if row.headline else row.case
        cells = [row.name, case, f"{row.size:,}".replace(",", " "), row.device, *map(short, numbers)]
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
    tree = our_sources()
    commit = current_commit(tree)
    head = {
        **machine.describe(),
        "device": device.name,
        "device_description": device.description,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "sources": {name: _fingerprint(tree, name).as_text() for name in dict.fromkeys(row.name for row in rows)},
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        data, table, picture = out / "bench.json", out / "bench.md", out / "bench.png"
        data.write_text(json.dumps({**head, "rows": to_json(rows)}, indent=1) + "\n")
        about = f"{device.description}, {head['date']}, commit {commit or 'unknown'}"
        table.write_text(f"{about}\n\n{to_markdown(rows)}")
    except OSError as error:
        raise RecordingError(
            f"Cannot write benchmark results to {out}: {error.strerror}.", "Choose another --out."
        ) from error
    return [data, table] + ([picture] if _plot(rows, picture, notice) else [])


def kept_rows(out: Path, benchmarks: list[Benchmark], device: Device) -> list[Row]:
    """The rows that `out` has already, for those of `benchmarks` measured next to join. They are about one machine and
    one state of the code, or else this is refused before anything is measured."""
    path = out / "bench.json"
    if not path.exists():
        return []
    saved, tree = json.loads(path.read_text()), our_sources()
    names = dict.fromkeys([row["name"] for row in saved["rows"]] + [one.name for one in benchmarks])
    old = saved["sources"]
    same = all(old[name] == _fingerprint(tree, name).as_text() for name in names if name in old)
    here = {**machine.describe(), "device": device.name}
    if not same or any(saved.get(key) != value for key, value in here.items()):
        raise InputError(
            f"The rows in {out} were measured with other code or on another machine.", "Choose another --out."
        )
    return [Row(**row) for row in saved["rows"]]


def joined(kept: list[Row], rows: list[Row]) -> list[Row]:
    """A row that was measured again stands where the one before stood."""
    now = {_key(row): row for row in rows}
    before = [now.pop(_key(row), row) for row in kept]
    return [*before, *now.values()]


def _key(row: Row) -> tuple[str, str, int, str]:
    return row.name, row.case, row.size, row.device


@dataclass(frozen=True)
class TableState:
    """One benchmark in a saved `bench.json`, and whether it is about the code as it is."""

    name: str
    folder: str
    date: str
    commit: str | None
    state: State


def table_states(results: Path, tree: SourceTree) -> list[TableState]:
    """Every table of benchmarks that was saved under a folder."""
    found: list[TableState] = []
    for path in sorted(results.rglob("bench.json")):
        saved = json.loads(path.read_text())
        for name in sorted({row["name"] for row in saved["rows"]}):
            text = saved.get("sources", {}).get(name)
            state = state_of(None if text is None else parse_parts(text), _fingerprint(tree, name))
            folder = path.parent.relative_to(results).as_posix()
            found.append(TableState(name, folder, saved["date"], saved.get("commit"), state))
    return found


def stale_lines(tree: SourceTree) -> list[str]:
    """What is to be said of the saved tables of this checkout; nothing of those that are up to date."""
    return [
        f"viscera bench {one.name} ({one.folder}, {one.date[:10]}): {one.state.kind}, {one.state.why}"
        for one in table_states(tree.root / SAVED, tree)
        if not one.state.is_current
    ]


def _fingerprint(tree: SourceTree, name: str) -> Fingerprint:
    """The sources of a benchmark. Its module has its name, or says another where it registers itself."""
    known = registered().get(name)
    return tree.fingerprint(known.run.__module__ if known else f"viscera.bench.{name}")


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
