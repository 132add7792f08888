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

from viscera.bench.sources import Fingerprint, SourceTree, current_commit

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
    also: tuple[str, ...] = ()
    """Sources that its code does not name: modules, or paths from the root."""

    @property
    def key(self) -> str:
        return f"{self.area}.{self.name}"

    def fingerprint(self, tree: SourceTree) -> Fingerprint:
        """The sources that the figure depends on. A figure that needs a browser depends on the page."""
        page = ("web/src",) if "browser" in self.needs else ()
        return tree.fingerprint(self.measure.__module__, self.measure.__name__, (*self.also, *page))


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
    commit: str | None = None
    """With a plus when sources were changed since; None where nobody knows."""
    digest: str | None = None
    """Of the sources that the figure depends on."""
    sources: dict[str, str] | None = None
    """Each of them with its own digest."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


_figures: dict[str, Figure] = {}


def figure(
    *, area: str, claim: str, bound: str, needs: Iterable[Needs] = (), also: Iterable[str] = ()
) -> Callable[[Callable[[], Measured]], Callable[[], Measured]]:
    """Register a figure. Its key is `area.function_name`. `also` names sources that its code does not."""

    def register(measure: Callable[[], Measured]) -> Callable[[], Measured]:
        one = Figure(area, measure.__name__, claim, bound, measure, tuple(needs), tuple(also))
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


def run(
    figures: Iterable[Figure], have: set[Needs], machine: dict[str, Any], device: str, tree: SourceTree
) -> Iterator[Result]:
    """Measure one after the other. A figure that breaks has failed; the others still run."""
    for one in figures:
        # Before it is measured: what is edited meanwhile was not what ran.
        fingerprint, commit = one.fingerprint(tree), current_commit(tree)
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
            commit=commit,
            digest=fingerprint.digest,
            sources=dict(fingerprint.parts),
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
