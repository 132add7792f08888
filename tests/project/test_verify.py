"""The frame that keeps our figures: what fails is told, what was not measured is never called passed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from verify import __main__ as command
from verify import framework
from verify.framework import Figure, Measured, Skip

MACHINE = {"cpu": "Abacus 3", "cores": 2, "versions": {"viscera": "0.1.0"}}


def good() -> Measured:
    return Measured(0.05, "%", passed=True, detail="ten periods")


def bad() -> Measured:
    return Measured(0.2, "%", passed=False)


def broken() -> Measured:
    raise ZeroDivisionError("of course")


def elsewhere() -> Measured:
    raise Skip("needs a dark room")


def figures(*measures, needs: tuple[framework.Needs, ...] = ()) -> list[Figure]:
    return [Figure("toy", one.__name__, f"{one.__name__} | thing", "≤ 0.1 %", one, needs) for one in measures]


def run(chosen: list[Figure], device: str = "cpu") -> list[framework.Result]:
    return list(framework.run(chosen, set(), MACHINE, device))


def rows(chosen: list[Figure], device: str = "cpu") -> list[dict[str, Any]]:
    return [result.as_json() for result in run(chosen, device)]


def test_each_outcome_has_its_name() -> None:
    results = run(figures(good, bad, broken, elsewhere))
    assert [result.status for result in results] == ["passed", "failed", "failed", "skipped"]
    assert "ZeroDivisionError: of course" in results[2].detail
    assert results[3].value is None
    assert "dark room" in results[3].detail


def test_what_a_machine_lacks_is_not_measured() -> None:
    (result,) = run(figures(good, needs=("cuda",)))
    assert result.status == "skipped"
    assert "cuda" in result.detail


@pytest.mark.parametrize(("idle", "status"), [(0.5, "skipped"), (0.95, "passed")])
def test_a_rate_is_not_measured_on_a_busy_machine(idle: float, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework, "wait_for_quiet", lambda: idle)
    (result,) = run(figures(good, needs=("quiet",)))
    assert result.status == status


def test_a_busy_core_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework, "QUIET_PATIENCE_S", 0.0)
    times = iter([(1000, 2000), (1100, 2400)])
    monkeypatch.setattr(framework, "_processor_times", lambda: next(times))
    monkeypatch.setattr(framework.time, "sleep", lambda seconds: None)
    assert framework.wait_for_quiet() == 0.25


def test_results_are_kept_per_machine_and_device() -> None:
    kept = framework.merge([], rows(figures(good), "cpu"))
    kept = framework.merge(kept, rows(figures(good), "a big GPU"))
    assert len(kept) == 2
    assert len(framework.merge(kept, rows(figures(good), "cpu"))) == 2


def test_a_skip_does_not_erase_a_measurement() -> None:
    kept = framework.merge([], rows(figures(good)))
    skipped = rows(figures(good, needs=("browser",)))
    assert framework.merge(kept, skipped)[0]["status"] == "passed"
    assert framework.merge([], skipped)[0]["status"] == "skipped"


def test_a_failure_replaces_an_old_success() -> None:
    def moody() -> Measured:
        return Measured(1.0, "", passed=next(moods))

    moods = iter([True, False])
    kept = framework.merge([], rows(figures(moody)))
    assert framework.merge(kept, rows(figures(moody)))[0]["status"] == "failed"


def test_command_writes_both_files_and_fails_with_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "verify.md").write_text(f"written by hand\n\n{command.TABLE_BEGIN}\nold table\n")
    monkeypatch.setattr(framework, "discover", lambda: figures(good, bad))
    assert command.main(["--docs", str(tmp_path)]) == 1
    saved = json.loads((tmp_path / "verify.json").read_text())["results"]
    assert {row["key"]: row["status"] for row in saved} == {"toy.good": "passed", "toy.bad": "failed"}
    text = (tmp_path / "verify.md").read_text()
    assert text.startswith("written by hand")
    assert "old table" not in text
    assert "good \\| thing" in text
    assert command.main(["--docs", str(tmp_path), "--only", "toy.good"]) == 0
    assert command.main(["--docs", str(tmp_path), "--only", "no such"]) == 2


def test_results_of_another_machine_are_taken_over(tmp_path: Path) -> None:
    framework.save(tmp_path / "verify.json", rows(figures(good), "cpu"))
    framework.save(tmp_path / "other.json", rows(figures(bad), "a big GPU"))
    assert command.main(["--docs", str(tmp_path), "--add", str(tmp_path / "other.json")]) == 0
    assert {row["device"] for row in framework.load(tmp_path / "verify.json")} == {"cpu", "a big GPU"}
    assert "a big GPU" in (tmp_path / "verify.md").read_text()


def test_every_real_figure_says_what_it_claims() -> None:
    found = framework.discover()
    assert all(one.claim and one.bound for one in found)
    assert len({one.key for one in found}) == len(found)
