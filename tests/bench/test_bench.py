"""Benchmarks: they register, run, stop in time and are saved in a form that others can read."""

from __future__ import annotations

import dataclasses
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
from viscera.device import Device
from viscera.errors import InputError, RecordingError

COLUMNS = ["name", "case", "size", "device", "ms", "steps_per_s", "document", "goal", "floor_ratio", "extra"]


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
    monkeypatch.setattr(registry, "_registered", {"springs": Benchmark("springs", "", lambda device, quick: iter(()))})
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
    registry.benchmark("twice", title="")(first)
    with pytest.raises(ValueError, match="twice"):
        registry.benchmark("twice", title="")(second)


def test_a_quick_run_shares_its_time_and_shows_every_benchmark(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row takes 7 s here. Three benchmarks share 45 s: three rows in 15 s, then two shares of what is left."""
    now = [0.0]
    monkeypatch.setattr(report.time, "monotonic", lambda: now[0])

    def endless(name: str) -> Benchmark:
        def rows(device: Device, quick: bool) -> Iterator[Row]:
            for _ in range(100):
                now[0] += 7.0
                yield dataclasses.replace(rows_of(1.0)[0], name=name)

        return Benchmark(name, "", rows)

    said: list[str] = []
    told: list[tuple[str, float]] = []
    three = [endless("one"), endless("two"), endless("three")]
    found = [row.name for row in report.measure(three, cpu, True, said.append, lambda *what: told.append(what))]
    assert found == 3 * ["one"] + 2 * ["two"] + 2 * ["three"]
    assert [text.split(":")[0].split()[-1] for text in said] == ["one", "two", "three"]
    assert [fraction for text, fraction in told if text.endswith(": ")] == pytest.approx([0.0, 1 / 3, 2 / 3])


def test_a_quick_run_without_time_still_shows_a_row_of_each(cpu: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10**6, 100))
    monkeypatch.setattr(report.time, "monotonic", lambda: float(next(clock)))
    endless = Benchmark("endless", "", lambda device, quick: iter(rows_of(*[1.0] * 100)))
    assert len(list(report.measure([endless, endless], cpu, True, lambda text: None))) == 2


def test_saved_files_tell_machine_and_rows(cpu: Device, tmp_path: Path) -> None:
    written = report.save(rows_of(1.0, 2.0), cpu, tmp_path / "new", lambda text: None)
    assert [path.name for path in written] == ["bench.json", "bench.md", "bench.png"]
    saved = json.loads(written[0].read_text())
    assert saved["device"] == "cpu"
    assert saved["versions"]["warp"]
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
