"""Benchmarks: they register, run, stop in time and are saved in a form that others can read."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import warp as wp

from viscera.bench import registry, report
from viscera.bench.registry import Benchmark, Row
from viscera.bench.sources import SourceTree
from viscera.device import Device
from viscera.errors import InputError, RecordingError
from viscera.scenarios import catalogue

COLUMNS = [
    "name",
    "case",
    "size",
    "device",
    "ms",
    "steps_per_s",
    "document",
    "goal",
    "floor_ratio",
    "extra",
    "headline",
]


@pytest.fixture(autouse=True, scope="module")
def _discovered() -> None:
    """Modules register themselves when they are imported, once: before any test puts another registry in place."""
    registry.discover()


def rows_of(*times: float) -> list[Row]:
    return [Row("toy", "a case", 10 * (i + 1), "cpu", ms, 1000.0 / ms) for i, ms in enumerate(times)]


def test_row_has_the_promised_columns_in_order() -> None:
    assert list(report.to_json(rows_of(1.0))[0]) == COLUMNS


def test_median_is_the_median_of_what_the_calls_took(cpu: Device) -> None:
    pauses = iter([0.0, 0.002, 0.002, 0.002, 0.05])  # warm-up, three calls, one outlier
    ms = registry.median_ms(lambda: time.sleep(next(pauses)), cpu, repeats=4, warmup=1)
    assert 2.0 <= ms < 20.0  # a mean would be at least 14 ms, and 2 ms is the least the sleeps allow


@pytest.mark.cuda
def test_cuda_time_waits_for_the_device() -> None:
    from viscera.device import open_device

    device = open_device("cuda:0")
    small, large = (wp.zeros(n, dtype=float, device=device.warp) for n in (1_000, 200_000_000))
    small_ms, large_ms = (registry.median_ms(lambda a=a: a.fill_(1.0), device, 20) for a in (small, large))
    assert large_ms > 5 * small_ms  # 800 MB cannot be written in the time of a launch


def test_unknown_benchmark_is_refused_with_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {"springs": toy("springs")})
    with pytest.raises(InputError) as caught:
        registry.choose(["sprngs"])
    assert "springs" in caught.value.hint


def test_two_modules_cannot_take_one_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})

    def first(device: Device, quick: bool) -> Iterator[Row]:
        return iter(())

    def second(device: Device, quick: bool) -> Iterator[Row]:
        return iter(())

    second.__module__ = "elsewhere"
    registry.benchmark("twice", title="", headline=toy("twice").headline)(first)
    with pytest.raises(ValueError, match="twice"):
        registry.benchmark("twice", title="", headline=toy("twice").headline)(second)


class Clock:
    """Time that passes only when a row is measured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(report.time, "monotonic", lambda: self.now)


def toy(name: str, clock: Clock | None = None, headline_s: float = 1.0, rows: int = 100) -> Benchmark:
    """A benchmark whose rows take a second each; its headline is the third of them."""

    def one(number: int, seconds: float) -> Row:
        if clock:
            clock.now += seconds
        return Row(name, f"case {number}", number, "cpu", 1.0, 1000.0)

    def run(device: Device, quick: bool) -> Iterator[Row]:
        for number in range(rows):
            yield one(number, 1.0)

    return Benchmark(name, "", run, lambda device: one(2, headline_s))


def quick(benchmarks: list[Benchmark], cpu: Device) -> tuple[list[Row], list[str]]:
    said: list[str] = []
    return list(report.measure(benchmarks, cpu, True, said.append)), said


def test_a_quick_run_shows_every_headline_first(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    names = [f"toy{number}" for number in range(15)]
    rows, said = quick([toy(name, clock, headline_s=3.0) for name in names], cpu)
    assert [row.name for row in rows[:15]] == names
    assert [row.headline for row in rows] == [True] * 15 + [False] * (len(rows) - 15)
    assert clock.now <= 60.0
    assert "no time for more rows of" in said[0]


def test_what_is_left_of_a_quick_run_is_shared(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    rows, said = quick([toy("endless", clock), toy("short", clock, rows=4), toy("last", clock)], cpu)
    count = {name: sum(row.name == name and not row.headline for row in rows) for name in ("endless", "short", "last")}
    assert count["short"] == 3  # its headline is not shown twice
    assert count["endless"] == pytest.approx((report.QUICK_BUDGET - 3) / 3, abs=2)
    assert count["last"] > count["endless"]  # the short one left some time
    assert clock.now <= report.QUICK_BUDGET + 1.0
    assert said == ["A quick run has no time for more rows of endless, last; name a benchmark to see more of it."]


def test_headlines_that_did_not_fit_are_named(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    rows, said = quick([toy(name, clock, headline_s=30.0) for name in ("first", "second", "third")], cpu)
    assert [row.name for row in rows] == ["first", "second"]
    assert "no headline of third" in said[0]


def test_a_full_run_has_every_row(cpu: Device) -> None:
    rows = list(report.measure([toy("toy", rows=5)], cpu, False, lambda text: None))
    assert [row.size for row in rows] == [0, 1, 2, 3, 4]


def test_the_headline_is_seen_in_the_table() -> None:
    row = Row("toy", "a case", 1, "cpu", 1.0, 1000.0, headline=True)
    assert "| toy | **a case** (headline) |" in report.to_markdown([row])


def test_picking_a_row_measures_no_further_and_lets_go() -> None:
    ended: list[bool] = []

    def rows() -> Iterator[Row]:
        try:
            yield from rows_of(1.0, 2.0)
        finally:
            ended.append(True)

    assert registry.pick(rows(), "case").ms == 1.0
    assert ended == [True]
    with pytest.raises(LookupError, match="other"):
        registry.pick(rows(), "other")


def test_every_benchmark_has_a_headline() -> None:
    found = registry.discover()
    assert len(found) >= 15
    assert all(callable(one.headline) for one in found.values())


def lazy(measured: list[str], ms: float = 1.0) -> Benchmark:
    """Rows of two worlds, seen and unseen, that say when they are measured."""

    def row(case: str) -> Row:
        measured.append(case)
        return Row("toy", case, 1, "cpu", ms, 1000.0)

    def run(device: Device, quick: bool) -> Iterator[registry.Case]:
        for case in ("one", "one, headless", "two", "two, headless"):
            yield registry.Case(case, lambda case=case: row(case))

    return Benchmark("toy", "", run, lambda device: row("one"))


def test_rows_that_nobody_wants_are_not_measured(cpu: Device) -> None:
    measured: list[str] = []
    found = list(report.measure([lazy(measured)], cpu, False, lambda text: None, only=["two", "*, headless"]))
    assert [row.case for row in found] == measured == ["one, headless", "two", "two, headless"]
    with pytest.raises(InputError, match="three"):
        list(report.measure([lazy(measured)], cpu, False, lambda text: None, only=["three"]))


def test_rows_measured_one_by_one_join_in_one_table(cpu: Device, tmp_path: Path) -> None:
    def measure(only: str, ms: float) -> None:
        mine = [lazy([], ms)]
        kept = report.kept_rows(tmp_path, mine, cpu)
        rows = list(report.measure(mine, cpu, False, lambda text: None, only=[only]))
        report.save(report.joined(kept, rows), cpu, tmp_path, lambda text: None)

    for only, ms in (("one", 1.0), ("two*", 2.0), ("two", 3.0)):
        measure(only, ms)
    table = tmp_path / "bench.json"
    saved = json.loads(table.read_text())
    assert [(row["case"], row["ms"]) for row in saved["rows"]] == [("one", 1.0), ("two", 3.0), ("two, headless", 2.0)]
    for change in ({"cpu_kind": "another"}, {"sources": {"toy": "viscera:000000000000"}}):
        table.write_text(json.dumps(saved | change))
        with pytest.raises(InputError, match="other code or on another machine"):
            measure("one", 4.0)


def test_live_has_a_case_for_each_way_a_world_runs(cpu: Device) -> None:
    cases = [one.case for one in registry.discover()["live"].run(cpu, False)]
    ways = ("", ", priority", " beside a busy process", ", priority beside a busy process", ", auto", ", headless")
    assert cases[: len(ways)] == [f"{cases[0]}{way}" for way in ways]
    assert len(set(cases)) == len(cases) == len(ways) * len(catalogue())


def test_saved_files_tell_machine_and_rows(cpu: Device, tmp_path: Path) -> None:
    written = report.save(rows_of(1.0, 2.0), cpu, tmp_path / "new", lambda text: None)
    assert [path.name for path in written] == ["bench.json", "bench.md", "bench.png"]
    saved = json.loads(written[0].read_text())
    assert saved["device"] == "cpu"
    assert saved["versions"]["warp"]
    assert "toy" in saved["sources"]
    assert [row["ms"] for row in saved["rows"]] == [1.0, 2.0]
    assert "| toy | a case | 20 | cpu | 2 | 500 |" in written[1].read_text()
    assert written[2].read_bytes().startswith(b"\x89PNG")


def test_results_that_cannot_be_written_are_an_error_with_advice(cpu: Device, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RecordingError, match="--out"):
        report.save(rows_of(1.0), cpu, tmp_path / "file", lambda text: None)


def test_json_has_no_nan() -> None:
    row = Row("toy", "", 1, "cpu", math.nan, math.inf, extra={"a": [math.nan], "b": 1.5})
    assert json.loads(json.dumps(report.to_json([row]), allow_nan=False))[0]["extra"] == {"a": [None], "b": 1.5}


@pytest.mark.slow
def test_benchmarks_need_numpy_and_warp_alone() -> None:
    """A bare GPU machine has nothing else; importing every benchmark there must work."""
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in FORBIDDEN:
            raise ModuleNotFoundError(name)
FORBIDDEN = {"typer", "rich", "matplotlib", "trimesh", "xatlas", "msgspec", "starlette", "h5py", "scipy"}
sys.meta_path.insert(0, Refuse())
from viscera.bench.__main__ import main
sys.exit(main(["no such benchmark"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2, done.stderr
    assert "no such benchmark" in done.stderr


def saved_table(folder: Path, name: str, text: str | None) -> None:
    folder.mkdir(parents=True)
    table = {"date": "2026-11-15T00:00:00", "commit": "abc", "rows": [{"name": name}]}
    (folder / "bench.json").write_text(json.dumps(table if text is None else {**table, "sources": {name: text}}))


def test_saved_tables_say_whether_their_code_has_changed(tmp_path: Path) -> None:
    package = tmp_path / "src" / "viscera"
    (package / "bench").mkdir(parents=True)
    files = {"__init__.py": "", "thing.py": "x = 1", "bench/__init__.py": "", "bench/toy.py": "import viscera.thing"}
    for name, text in files.items():
        (package / name).write_text(text)
    now = SourceTree(tmp_path, {"viscera": package}).fingerprint("viscera.bench.toy").as_text()
    results = tmp_path / "benchmarks" / "results"
    saved_table(results / "fresh", "toy", now)
    saved_table(results / "old", "toy", None)
    (package / "thing.py").write_text("x = 1  # one")
    tree = SourceTree(tmp_path, {"viscera": package})
    assert [one.state.kind for one in report.table_states(results, tree)] == ["current", "unknown"]
    (package / "thing.py").write_text("x = 2")
    lines = report.stale_lines(SourceTree(tmp_path, {"viscera": package}))
    assert lines[0] == "viscera bench toy (fresh, 2026-11-15): stale, viscera.thing changed"
    assert "before digests were kept" in lines[1]
