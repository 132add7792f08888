"""The frame that keeps our figures: what fails is told, what was not measured is never called passed."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from verify import __main__ as command
from verify import framework, ledger, marks
from verify.framework import Figure, Measured, Skip
from viscera.bench import sources
from viscera.bench.report import TableState
from viscera.bench.sources import SourceTree, State, current_commit, our_sources

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


NOWHERE = SourceTree(Path("nowhere"), {})


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands measure two toys, and do not read the sources of the whole project."""
    monkeypatch.setattr(command, "our_sources", lambda: NOWHERE)
    monkeypatch.setattr(framework, "discover", lambda: figures(good, bad))


def run(chosen: list[Figure], device: str = "cpu") -> list[framework.Result]:
    return list(framework.run(chosen, set(), MACHINE, device, NOWHERE))


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
    kept = ledger.merge([], rows(figures(good), "cpu"))
    kept = ledger.merge(kept, rows(figures(good), "a big GPU"))
    assert len(kept) == 2
    assert len(ledger.merge(kept, rows(figures(good), "cpu"))) == 2


def test_a_skip_does_not_erase_a_measurement() -> None:
    kept = ledger.merge([], rows(figures(good)))
    skipped = rows(figures(good, needs=("browser",)))
    assert ledger.merge(kept, skipped)[0]["status"] == "passed"
    assert ledger.merge([], skipped)[0]["status"] == "skipped"


def test_a_failure_replaces_an_old_success() -> None:
    def moody() -> Measured:
        return Measured(1.0, "", passed=next(moods))

    moods = iter([True, False])
    kept = ledger.merge([], rows(figures(moody)))
    assert ledger.merge(kept, rows(figures(moody)))[0]["status"] == "failed"


@pytest.mark.usefixtures("toys")
def test_command_writes_both_files_and_fails_with_a_figure(tmp_path: Path) -> None:
    (tmp_path / "verify.md").write_text(f"written by hand\n\n{command.TABLE_BEGIN}\nold table\n")
    assert command.main(["--docs", str(tmp_path)]) == 1
    saved = json.loads((tmp_path / "verify.json").read_text())["results"]
    assert {row["key"]: row["status"] for row in saved} == {"toy.good": "passed", "toy.bad": "failed"}
    text = (tmp_path / "verify.md").read_text()
    assert text.startswith("written by hand")
    assert "old table" not in text
    assert "good \\| thing" in text
    assert command.main(["--docs", str(tmp_path), "--only", "toy.good"]) == 0
    assert command.main(["--docs", str(tmp_path), "--only", "no such"]) == 2


@pytest.mark.usefixtures("toys")
def test_results_of_another_machine_are_taken_over(tmp_path: Path) -> None:
    ledger.save(tmp_path / "verify.json", rows(figures(good), "cpu"))
    ledger.save(tmp_path / "other.json", rows(figures(bad), "a big GPU"))
    assert command.main(["--docs", str(tmp_path), "--add", str(tmp_path / "other.json")]) == 0
    assert {row["device"] for row in ledger.load(tmp_path / "verify.json")} == {"cpu", "a big GPU"}
    assert "a big GPU" in (tmp_path / "verify.md").read_text()


def test_every_real_figure_says_what_it_claims() -> None:
    found = framework.discover()
    assert all(one.claim and one.bound for one in found)
    assert len({one.key for one in found}) == len(found)


# --- sources ----------------------------------------------------------------------------------------------------------

FILES = {
    "checks/__init__.py": "",
    "checks/heat.py": """
        from body.heat import conduct
        from body import units
        LIMIT = 3
        def warm():
            return conduct(units.ONE) < LIMIT
        def unrelated():
            from body import blood
            return blood.flow
        if __name__ == "__main__":
            print(warm())
    """,
    "body/__init__.py": """
        __version__ = "1"
        def make():
            from body import blood
    """,
    "body/heat/__init__.py": "from body.heat.solver import conduct",
    "body/heat/solver.py": """
        from ..cells import grid
        def conduct(x):
            '''Heat.'''
            return grid(x)
    """,
    "body/cells.py": "def grid(x):\n    return x",
    "body/units.py": "ONE = 1",
    "body/blood.py": "flow = 2",
    "body/plays/__init__.py": "import pkgutil\ndef all():\n    return list(pkgutil.iter_modules(__path__))",
    "body/plays/first.py": "from body import blood",
    "body/table.py": "from pathlib import Path\nDATA = Path(__file__).parent / 'table.bin'",
    "body/table.bin": "1 2 3",
    "checks/whole.py": """
        import subprocess, sys
        def world():
            from body import plays
        def told():
            subprocess.run([sys.executable, "-m", "body.units"])
        def read():
            from body.table import DATA
    """,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path


def tree(folder: Path) -> SourceTree:
    return SourceTree(folder, {"checks": folder / "checks", "body": folder / "body"})


def parts(folder: Path, module: str, function: str | None = None) -> set[str]:
    return set(tree(folder).fingerprint(module, function).parts)


def changed(folder: Path, name: str, text: str) -> dict[str, list[str]]:
    """Which of the toy's measurements a change touches, and what is said of it."""
    measured = {"warm": "checks.heat", "unrelated": "checks.heat", "world": "checks.whole", "read": "checks.whole"}
    before = {one: tree(folder).fingerprint(module, one) for one, module in measured.items()}
    if text:
        (folder / name).write_text(textwrap.dedent(text))
    else:
        (folder / name).unlink()
    after = {one: tree(folder).fingerprint(module, one) for one, module in measured.items()}
    for one in measured:
        assert (before[one].digest == after[one].digest) == (before[one].parts == after[one].parts)
    found = {one: sources.differences(before[one].parts, after[one].parts) for one in measured}
    return {one: words for one, words in found.items() if words}


def test_a_measurement_depends_on_what_it_imports_and_on_nothing_else(folder: Path) -> None:
    assert parts(folder, "checks.heat", "warm") == {
        "checks.heat.warm", "checks", "body", "body.heat", "body.heat.solver", "body.cells", "body.units",
    }  # fmt: skip
    assert "body.blood" in parts(folder, "checks.heat", "unrelated")
    assert "body.heat.solver" not in parts(folder, "checks.heat", "unrelated")
    assert {"body.blood", "body.heat.solver"} <= parts(folder, "checks.heat")


def test_what_is_found_at_run_time_counts(folder: Path) -> None:
    assert {"body.plays.first", "body.blood"} <= parts(folder, "checks.whole", "world")
    assert "body.units" in parts(folder, "checks.whole", "told")
    assert "body/table.bin" in parts(folder, "checks.whole", "read")


def test_touching_a_source_marks_exactly_its_dependents(folder: Path) -> None:
    assert changed(folder, "body/cells.py", "def grid(x):\n    return 2 * x") == {"warm": ["body.cells changed"]}
    said = changed(folder, "body/blood.py", "flow = 3")
    assert said == {"unrelated": ["body.blood changed"], "world": ["body.blood changed"]}
    assert changed(folder, "body/table.bin", "1 2 4") == {"read": ["body/table.bin changed"]}


def test_words_for_people_mark_nothing(folder: Path) -> None:
    solver = """
        from ..cells import grid  # neighbours


        def conduct(x):
            '''Heat flows from warm to cold.'''
            return grid(
                x
            )
    """
    assert changed(folder, "body/heat/solver.py", solver) == {}
    package = textwrap.dedent(FILES["body/__init__.py"]).replace('"1"', '"2"')
    assert changed(folder, "body/__init__.py", package) == {}


def test_a_further_figure_in_the_file_leaves_the_others(folder: Path) -> None:
    text = textwrap.dedent(FILES["checks/heat.py"])
    assert changed(folder, "checks/heat.py", text + "\ndef another():\n    return LIMIT") == {}
    assert changed(folder, "checks/heat.py", text.replace("LIMIT = 3", "LIMIT = 4")) == {
        "warm": ["checks.heat.warm changed"]
    }


def test_a_module_that_was_removed_is_reported(folder: Path) -> None:
    assert changed(folder, "body/cells.py", "") == {"warm": ["body.cells is gone"]}
    said = changed(folder, "body/plays/first.py", "")["world"]
    assert "body.plays.first is no longer used" in said
    assert changed(folder, "checks/whole.py", "")["world"][-1] == "checks.whole.world is no longer used"


def test_the_digest_is_the_same_in_every_version_of_python() -> None:
    """Python 3.12 gave functions a field, 3.13 leaves empty ones out of `ast.dump`: neither may show."""
    text = "def f(x: int = 1, *, y=f'{2!r:>{3}} a') -> None:\n    return [x for x in (1, 2.5, b'c', None)]"
    assert sources._hash(sources._canonical(ast.parse(text).body).encode()) == "931b06faa7c4"


def test_our_own_figures_and_their_sources() -> None:
    ours = our_sources()
    found = {one.key: one.fingerprint(ours).parts for one in framework.discover()}
    assert "viscera.tissue.kernels" in found["lattice.hertz"]
    assert not any(name.startswith("viscera.blood") for name in found["lattice.hertz"])
    assert "viscera.scenarios.palpation" in found["foundation.same_seed"]
    assert any(name.startswith("web/src/") for name in found["feel.ticks_in_time"])
    assert all(sources.GONE not in parts.values() for parts in found.values())


def test_the_commit_says_when_sources_were_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sources.COMMIT_VARIABLE, raising=False)
    assert current_commit(tree(folder)) is None or os.environ.get("GIT_DIR")
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    clean = current_commit(tree(folder))
    assert clean is not None
    (folder / "body" / "units.py").write_text("ONE = 2")
    assert current_commit(tree(folder)) == f"{clean}+"
    monkeypatch.setenv(sources.COMMIT_VARIABLE, "0123456789abcdef")
    assert current_commit(tree(folder)) == "0123456789ab"
    monkeypatch.setenv(sources.COMMIT_VARIABLE, "ref: refs/heads/main")  # what .git/HEAD says is no commit
    assert current_commit(tree(folder)) == f"{clean}+"


# --- stale ------------------------------------------------------------------------------------------------------------


def toy_row(key: str, **more: Any) -> ledger.Row:
    row = rows(figures(good))[0]
    return {**row, "key": key, "area": key.partition(".")[0], **more}


def test_a_ledger_keeps_the_sources_of_each_row(tmp_path: Path) -> None:
    kept = [toy_row("a.x", sources={"p": "1", "q": "2", "r": "3"}), toy_row("a.y", sources={"p": "1", "q": "9"})]
    old = toy_row("a.z")
    del old["sources"]
    ledger.save(tmp_path / "verify.json", [*kept, old])
    assert ledger.load(tmp_path / "verify.json") == [*kept, old]
    assert json.loads((tmp_path / "verify.json").read_text())["results"][0]["sources"] == "0-1 3"


def test_states_of_rows(folder: Path) -> None:
    def warm() -> Measured:
        return good()

    warm.__module__, warm.__name__ = "checks.heat", "warm"
    one = Figure("toy", "warm", "it is warm", "yes", warm)
    now = dict(one.fingerprint(tree(folder)).parts)
    then = {**now, "body.cells": "other"}
    kept = [
        toy_row("toy.warm", sources=now),
        toy_row("toy.warm", sources=then),
        toy_row("toy.warm", sources=None),
        toy_row("toy.cold", sources=now),
        toy_row("toy.warm", sources=None, status="skipped"),
    ]
    found = ledger.states(kept, [one], tree(folder))
    assert [state.kind for state in found] == ["current", "stale", "unknown", "gone", "current"]
    assert found[1].why == "body.cells changed"
    marked = [ledger.mark(row, state) for row, state in zip(kept, found, strict=True)]
    assert marked == ["✓", "✓, **stale**", "✓, **code unknown**", "✓, **gone**", "not measured"]


@pytest.mark.parametrize(
    ("here", "elsewhere_", "again"),
    [("current", "stale", False), ("stale", "current", True), (None, "stale", True), (None, "current", False),
     (None, None, True), ("unknown", None, True)],
)  # fmt: skip
def test_what_is_measured_again(here: Any, elsewhere_: Any, again: bool) -> None:
    """Stale somewhere, or never measured, and not up to date on this machine."""
    kept = [
        (toy_row("toy.good", machine=name), State(kind)) for name, kind in (("me", here), ("you", elsewhere_)) if kind
    ]
    found = ledger.to_measure(figures(good), [row for row, _ in kept], [state for _, state in kept], "me", "cpu")
    assert bool(found) == again


def test_documents_say_which_of_their_figures_are_stale(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("before\n<!-- figures: toy bench:sph -->\nold\n<!-- /figures -->\nafter\n")
    (tmp_path / "other.md").write_text("no figures\n")
    known = marks.Ledger(
        [toy_row("toy.good"), toy_row("toy.bad"), toy_row("odd.bad")],
        [State("current"), State("stale", "x changed"), State("stale")],
        [
            TableState("sph", "abacus", "2026", None, State("unknown")),
            TableState("film", "abacus", "", None, State("stale")),
        ],
    )
    texts = marks.written(tmp_path, known)
    assert set(texts) == {tmp_path / "page.md", tmp_path / "verify.md"}
    text = texts[tmp_path / "page.md"]
    assert text.startswith("before\n")
    assert text.endswith("<!-- /figures -->\nafter\n")
    assert "1 of 3 figures" in text
    assert "old\n" not in text
    assert "**older than the code they measure**: `toy.bad`;" in text
    assert "**measured before digests were kept**: table `sph` (abacus) (" in text


@pytest.mark.usefixtures("toys")
def test_marks_that_are_missing_fail_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger.save(tmp_path / "verify.json", [toy_row("toy.gone")])
    (tmp_path / "verify.md").write_text(f"by hand\n\n{command.TABLE_BEGIN}\n")
    assert command.main(["--docs", str(tmp_path), "--mark", "--check"]) == 1
    assert "verify.md" in capsys.readouterr().err
    assert command.main(["--docs", str(tmp_path), "--mark"]) == 0
    assert command.main(["--docs", str(tmp_path), "--mark", "--check"]) == 0
    assert "**gone**" in (tmp_path / "verify.md").read_text()
    assert command.main(["--docs", str(tmp_path), "--drop-gone"]) == 0
    assert ledger.load(tmp_path / "verify.json") == []
    assert "**gone**" not in (tmp_path / "verify.md").read_text()


@pytest.mark.usefixtures("toys")
def test_stale_figures_are_listed_and_only_they_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command.report, "stale_lines", lambda tree: ["viscera bench sph: stale"])
    assert command.main(["--docs", str(tmp_path), "--only", "toy.good"]) == 0
    capsys.readouterr()
    assert command.main(["--docs", str(tmp_path), "--stale", "--list"]) == 0
    said = capsys.readouterr().out
    assert "toy.bad: never measured" in said
    assert "toy.good" not in said
    assert "viscera bench sph: stale" in said
    assert len(ledger.load(tmp_path / "verify.json")) == 1
    assert command.main(["--docs", str(tmp_path), "--stale"]) == 1
    assert {row["key"] for row in ledger.load(tmp_path / "verify.json")} == {"toy.good", "toy.bad"}
