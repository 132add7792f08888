"""What a benchmark is, and where it says that it exists.

A benchmark is a small file in this folder that registers itself and yields rows:

    def headline(device: Device) -> Row:
        return _box(device, 4_000)

    @benchmark("springs", title="One lattice substep", headline=headline)
    def run(device: Device, quick: bool) -> Iterator[Row]:
        for masses in (4_000, 40_000):
            yield _box(device, masses)

Its headline is the one row that says most, measured within a few seconds: `viscera bench --quick` shows the headline of
every benchmark before anything else.

Imports NumPy and Warp alone, so that benchmarks run on a bare GPU machine. Anything else (matplotlib) is imported
where it is used.
"""

from __future__ import annotations

import difflib
import importlib
import itertools
import pkgutil
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import warp as wp

from viscera.errors import InputError

if TYPE_CHECKING:
    from viscera.device import Device


@dataclass(frozen=True)
class Row:
    """One measurement. `steps_per_s`, `document` and `goal` are in steps per second; higher is better."""

    name: str
    """Of the benchmark."""
    case: str
    """What was measured: the variant, the shape, the method."""
    size: int
    """How many elements (masses, particles, texels)."""
    device: str
    ms: float
    """Median time of one step [ms]."""
    steps_per_s: float
    document: float | None = None
    """What the source document reports for this case [steps/s]."""
    goal: float | None = None
    """What we set out to reach [steps/s]."""
    floor_ratio: float | None = None
    """Time over the least time the hardware allows (bytes moved or instructions issued); 1 is perfect."""
    extra: dict[str, Any] = field(default_factory=dict)
    """More columns: numbers, strings, booleans or null."""
    headline: bool = False
    """Whether it is the row that its benchmark shows first in a quick run."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Case:
    """A row that is measured where somebody wants it: those before it need not be."""

    case: str
    """As its row's."""
    measure: Callable[[], Row]


Run = Callable[["Device", bool], Iterator[Row | Case]]
Headline = Callable[["Device"], Row]


@dataclass(frozen=True)
class Benchmark:
    name: str
    title: str
    run: Run
    """Called with the device and `quick`; quick benchmarks end within seconds."""
    headline: Headline
    """Measures the one row that says most, in a few seconds."""

    def rows(self, device: Device, quick: bool, only: Sequence[str] = ()) -> Iterator[Row]:
        """All of them, or those whose case is like one of the patterns in `only`, as "river" or "*, headless"."""
        found = self.run(device, quick)
        try:
            for one in found:
                if not only or any(fnmatchcase(one.case, pattern) for pattern in only):
                    yield one if isinstance(one, Row) else one.measure()
        finally:
            if isinstance(found, Generator):
                found.close()  # a benchmark may hold processes and devices


_registered: dict[str, Benchmark] = {}


def benchmark(name: str, *, title: str, headline: Headline) -> Callable[[Run], Run]:
    """Register a benchmark under `name`; two with one name are a mistake."""

    def register(run: Run) -> Run:
        known = _registered.get(name)
        if known is not None and known.run.__module__ != run.__module__:
            raise ValueError(f"benchmark {name!r} is registered by {known.run.__module__} and by {run.__module__}")
        _registered[name] = Benchmark(name, title, run, headline)
        return run

    return register


def discover() -> dict[str, Benchmark]:
    """Import every module of `viscera.bench` and return what registered itself, by name."""
    import viscera.bench as package

    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(sorted(_registered.items()))


def registered() -> dict[str, Benchmark]:
    """Those whose modules have been imported, by name."""
    return dict(_registered)


def choose(names: list[str]) -> list[Benchmark]:
    """The named benchmarks, or all of them when no name is given."""
    known = discover()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            suggestion = f"Did you mean {near[0]!r}? " if near else ""
            raise InputError(f"There is no benchmark {name!r}.", f"{suggestion}Known: {', '.join(known) or 'none'}.")
    return [known[name] for name in names] if names else list(known.values())


def pick(rows: Iterator[Row], case: str) -> Row:
    """The first of the rows whose case ends so; those after it are not measured."""
    try:
        return next(row for row in rows if row.case.endswith(case))
    except StopIteration:
        raise LookupError(f"no row of this benchmark has a case that ends with {case!r}") from None
    finally:
        if isinstance(rows, Generator):
            rows.close()  # a benchmark may hold processes and devices


def timed(name: str, case: str, size: int, device: Device, ms: float, **columns: Any) -> Row:
    """A row whose rate follows from its time. `columns` are further fields of `Row`."""
    return Row(name, case, size, device.name, ms, 1000.0 / ms if ms > 0 else 0.0, **columns)


def times_ms(fn: Callable[[], object], device: Device, repeats: int, warmup: int = 3) -> list[float]:
    """Times of `repeats` calls of `fn`, each waited for [ms]. On cuda the device's own clock is read."""
    if repeats < 1:
        raise ValueError(f"repeats is {repeats}; at least one call is needed")
    for _ in range(warmup):
        fn()
    wp.synchronize_device(device.warp)
    return _cuda_times(fn, device, repeats) if device.is_cuda else _cpu_times(fn, device, repeats)


def median_ms(fn: Callable[[], object], device: Device, repeats: int, warmup: int = 3) -> float:
    """Median time of one call of `fn` [ms]: an interruption by the operating system moves a mean, not a median."""
    return statistics.median(times_ms(fn, device, repeats, warmup))


def _cpu_times(fn: Callable[[], object], device: Device, repeats: int) -> list[float]:
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        fn()
        wp.synchronize_device(device.warp)
        times.append(1000.0 * (time.perf_counter() - start))
    return times


def _cuda_times(fn: Callable[[], object], device: Device, repeats: int) -> list[float]:
    # Events are recorded on the device's stream and read only at the end: reading each at once would put the
    # host's round trip between two calls and leave the device idle.
    events = [wp.Event(device.warp, enable_timing=True) for _ in range(repeats + 1)]
    stream = wp.get_stream(device.warp)
    stream.record_event(events[0])
    for event in events[1:]:
        fn()
        stream.record_event(event)
    wp.synchronize_device(device.warp)
    return [wp.get_event_elapsed_time(a, b, synchronize=False) for a, b in itertools.pairwise(events)]
