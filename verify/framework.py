"""What a figure is, and how figures are run and kept.

A figure is a function in a file of this folder that measures one claim:

    @figure(area="foundation", claim="two masses on a spring oscillate with 2π√(m/2k)", bound="≤ 0.1 %")
    def spring_period() -> Measured:
        error = ...
        return Measured(100 * error, "%", passed=error <= 1e-3)

Tests hold the same truths at a small size; here they are measured at full size, with the machine beside the number.
"""

from __future__ import annotations

import fnmatch
import importlib
import json
import math
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

Value = float | int | str
Needs = Literal["cuda", "browser", "quiet"]
"""`quiet`: a time or a rate, which means something only while nothing else uses the machine."""

QUIET_IDLE = 0.9
"""Share of the cores that must be idle before a figure that needs quiet."""
QUIET_SAMPLE_S = 2.0
QUIET_PATIENCE_S = 60.0
"""How long to wait for it [s]."""


@dataclass(frozen=True)
class Measured:
    """What came out. `detail` says how it was measured, or what else was seen."""

    value: Value
    unit: str
    passed: bool
    detail: str = ""


class Skip(Exception):
    """This machine cannot measure the figure (no GPU, no browser); the message says why."""


@dataclass(frozen=True)
class Figure:
    area: str
    name: str
    claim: str
    bound: str
    measure: Callable[[], Measured]
    needs: tuple[Needs, ...] = ()

    @property
    def key(self) -> str:
        return f"{self.area}.{self.name}"


@dataclass(frozen=True)
class Result:
    """One figure on one machine, as it is kept in docs/verify.json."""

    key: str
    area: str
    claim: str
    bound: str
    status: Literal["passed", "failed", "skipped"]
    value: Value | None
    unit: str
    detail: str
    seconds: float
    """How long measuring took [s]."""
    machine: str
    device: str
    date: str
    versions: dict[str, str | None]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


_figures: dict[str, Figure] = {}


def figure(
    *, area: str, claim: str, bound: str, needs: Iterable[Needs] = ()
) -> Callable[[Callable[[], Measured]], Callable[[], Measured]]:
    """Register a figure. Its key is `area.function_name`."""

    def register(measure: Callable[[], Measured]) -> Callable[[], Measured]:
        one = Figure(area, measure.__name__, claim, bound, measure, tuple(needs))
        if one.key in _figures:
            raise ValueError(f"figure {one.key} is registered twice")
        _figures[one.key] = one
        return measure

    return register


def discover() -> list[Figure]:
    """Import every file of this folder and return the figures in the order in which they are written.

    A bare GPU machine has NumPy and Warp alone; files that need more are left out there, and named.
    """
    import verify as package

    for module in pkgutil.iter_modules(package.__path__):
        if module.name in {"framework", "__main__"}:
            continue
        try:
            importlib.import_module(f"{package.__name__}.{module.name}")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in {"viscera", "verify"}:
                raise
            print(f"verify/{module.name}.py is left out: {error.name} is not installed", file=sys.stderr)
    return list(_figures.values())


def select(figures: Iterable[Figure], patterns: list[str]) -> list[Figure]:
    """Those whose key or claim matches one of the patterns; all of them without a pattern."""
    return [one for one in figures if not patterns or any(_matches(one, pattern) for pattern in patterns)]


def run(figures: Iterable[Figure], have: set[Needs], machine: dict[str, Any], device: str) -> Iterator[Result]:
    """Measure one after the other. A figure that breaks has failed; the others still run."""
    for one in figures:
        start = time.perf_counter()
        status, measured = _measure(one, have)
        yield Result(
            key=one.key,
            area=one.area,
            claim=one.claim,
            bound=one.bound,
            status=status,
            value=_plain(measured.value) if status != "skipped" else None,
            unit=measured.unit,
            detail=measured.detail,
            seconds=round(time.perf_counter() - start, 2),
            machine=f"{machine['cpu']}, {machine['cores']} cores",
            device=device,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=machine["versions"],
        )


def _measure(one: Figure, have: set[Needs]) -> tuple[Literal["passed", "failed", "skipped"], Measured]:
    missing = [need for need in one.needs if need not in have | {"quiet"}]
    if missing:
        return "skipped", Measured("", "", False, f"needs {' and '.join(missing)}")
    if "quiet" in one.needs and (idle := wait_for_quiet()) < QUIET_IDLE:
        return "skipped", Measured("", "", False, f"other programs use the machine: {100 * idle:.0f} % idle")
    try:
        measured = one.measure()
    except Skip as reason:
        return "skipped", Measured("", "", False, str(reason))
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        return "failed", Measured("", "", False, text)
    return ("passed" if measured.passed else "failed"), measured


def wait_for_quiet() -> float:
    """Share of the cores that is idle, as soon as it is high enough or patience is over. 1 where it cannot be known."""
    end = time.monotonic() + QUIET_PATIENCE_S
    while True:
        before = _processor_times()
        time.sleep(QUIET_SAMPLE_S)
        after = _processor_times()
        if before is None or after is None:
            return 1.0
        idle = (after[0] - before[0]) / max(after[1] - before[1], 1)
        if idle >= QUIET_IDLE or time.monotonic() > end:
            return idle


def _processor_times() -> tuple[int, int] | None:
    """Ticks that all cores were idle, and all ticks (man 5 proc)."""
    try:
        numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError):
        return None  # not Linux
    return numbers[3] + numbers[4], sum(numbers)


def merge(old: list[dict[str, Any]], new: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """New results replace old ones of the same figure, machine and device. A skip replaces nothing but a skip."""
    kept = {(row["key"], row["machine"], row["device"]): row for row in old}
    for row in new:
        place = (row["key"], row["machine"], row["device"])
        if row["status"] != "skipped" or kept.get(place, {}).get("status", "skipped") == "skipped":
            kept[place] = row
    return sorted(kept.values(), key=lambda row: (row["area"], row["key"], row["device"], row["machine"]))


def load(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["results"] if path.is_file() else []


def save(path: Path, results: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps({"results": results}, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def table(results: list[dict[str, Any]]) -> str:
    """The results for people: one table per area."""
    text = ""
    for area in dict.fromkeys(row["area"] for row in results):
        text += f"### {area}\n\n| figure | bound | measured | on | |\n| --- | --- | ---: | --- | --- |\n"
        for row in results:
            if row["area"] == area:
                marks = {"passed": "✓", "failed": "✗ failed", "skipped": "not measured"}
                detail = f"<br><small>{_cell(row['detail'])}</small>" if row["detail"] else ""
                measured = f"{number(row['value'])} {row['unit']}".strip()
                text += (
                    f"| {_cell(row['claim'])}{detail} | {_cell(row['bound'])} | {_cell(measured)} | "
                    f"{row['device']}, {_cell(row['machine'])}, {row['date'][:10]} | {marks[row['status']]} |\n"
                )
        text += "\n"
    return text


def number(value: Value | None) -> str:
    """Three significant digits for a measured number; text as it is."""
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


def _plain(value: Value) -> Value:
    if isinstance(value, float):  # a NumPy float becomes a Python one; JSON has no infinity
        return float(value) if math.isfinite(value) else str(value)
    return value


def _matches(one: Figure, pattern: str) -> bool:
    return fnmatch.fnmatch(one.key, f"*{pattern}*") or pattern.lower() in one.claim.lower()


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
