"""Imports point down only, as the table in docs/architecture.md has it; what is below `session` needs NumPy and Warp
alone, for a machine with a GPU may have no more."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src"
PHENOMENA = {"tissue", "heat", "blood", "water", "grid"}

UPWARD = {
    ("viscera.world.world", "scenarios", "types"): "a world keeps the entry that it was made of",
    ("viscera.world.doors", "scenarios", "types"): "the scene has the entry's title and instructions",
}
"""All imports that point up, none of them at run time, and why."""

FRONT = "viscera"
"""`viscera/__init__.py` is the front door: it loads what is asked for, when it is asked for (`__getattr__`)."""


def layers() -> list[set[str]]:
    """Rows of the table, the highest first; folders of a package as `haptics/cli`."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.split("## Layers")[1].split("| --- | --- |\n")[1].split("\n\n")[0]
    return [set(re.findall(r"`([\w/]+[\w])/?`", row.split("|")[1])) - {"verify"} for row in table.splitlines()]


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    when: Literal["now", "called", "types"]
    """At import, when a function is called, or for type checkers alone."""

    def __str__(self) -> str:
        return f"{self.importer} imports {self.imported} ({self.when})"


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted((SOURCES / "viscera").rglob("*.py"))}


def imports_of(module: str) -> Iterator[Import]:
    """Every import of ours in a module, wherever it stands."""

    def visit(node: ast.AST, when: Literal["now", "called", "types"]) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(module, one.name, when) for one in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{module} has an import relative to itself"
                for one in child.names:
                    longer = f"{child.module}.{one.name}"
                    yield Import(module, longer if longer in FILES else str(child.module), when)
            elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                yield from visit(child, "types")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield from visit(child, "called" if when == "now" else when)
            else:
                yield from visit(child, when)

    for found in visit(ast.parse(FILES[module].read_text()), "now"):
        if found.imported.split(".")[0] == "viscera":
            yield found


def part_of(module: str, known: set[str]) -> str:
    """The part of the package that a module belongs to, by the longest name that the table has."""
    inside = module.split(".")[1:]
    if inside == ["__main__"]:
        return "cli"  # `python -m viscera`
    names = ["/".join(inside[:length]) for length in range(len(inside), 0, -1)]
    return next((name for name in names if name in known), names[-1] if names else FRONT)


def test_the_table_has_every_part_of_the_package_once() -> None:
    named = [name for row in layers() for name in row]
    assert len(named) == len(set(named))
    parts = {part_of(module, set(named)) for module in FILES}
    assert parts == {*named, FRONT}, "the table in docs/architecture.md is not what is in src/viscera"


def test_imports_point_down_only() -> None:
    rows = layers()
    height = {name: -place for place, row in enumerate(rows) for name in row}
    wrong, used = [], set()
    for module in FILES:
        for one in imports_of(module):
            here, there = part_of(module, set(height)), part_of(one.imported, set(height))
            if FRONT in (here, there) or here == there or height[there] < height[here]:
                continue
            if (module, there, one.when) in UPWARD:
                used.add((module, there, one.when))
            else:
                wrong.append(str(one))
    assert not wrong, "\n".join(wrong)
    assert used == set(UPWARD), "an import that was allowed is no longer there: take it off the list"
    assert all(when != "now" for _, _, when in UPWARD)


def test_the_front_door_loads_nothing_by_itself() -> None:
    """So whoever imports `viscera` from below, for its version, imports nothing from above."""
    assert not [one for one in imports_of(FRONT) if one.when != "types"]


def test_phenomena_do_not_import_each_other() -> None:
    known = {name for row in layers() for name in row}
    assert next(row for row in layers() if row & PHENOMENA) == PHENOMENA
    for module in FILES:
        mine = {part_of(module, known)} & PHENOMENA
        for one in imports_of(module) if mine else ():
            assert part_of(one.imported, known) not in PHENOMENA - mine, str(one)


def run_with(blocked: str, code: str) -> str:
    """Runs code in a process where importing what `blocked` is true of (an expression of `top`) fails."""
    guard = f"""
import sys
class Guard:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if {blocked}:
            raise ImportError(f"{{name}} is not on this machine")
sys.meta_path.insert(0, Guard())
"""
    done = subprocess.run([sys.executable, "-c", guard + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_below_session_runs_on_numpy_and_warp_alone() -> None:
    rows = layers()
    first = next(place for place, row in enumerate(rows) if "session" in row)
    known, below = {name for row in rows for name in row}, set().union(*rows[first + 1 :])
    modules = [module for module in FILES if part_of(module, known) in below]
    assert {"viscera.scenarios.palpation", "viscera.world.world", "viscera.geometry.atlas"} <= set(modules)
    other = "top not in {'numpy', 'warp', 'viscera'} and top not in sys.stdlib_module_names and top[0] != '_'"
    code = f"import importlib\nfor name in {modules!r}: importlib.import_module(name)\n"
    code += "import viscera; world = viscera.make('palpation', device='cpu'); world.step(16); print(world.tick)"
    assert run_with(other, code).strip() == "16"


@pytest.mark.parametrize(
    "module", ["viscera.view", "viscera.instruments", "viscera.server.app", "viscera.session.live"]
)
def test_what_only_looks_at_a_world_does_not_load_warp(module: str) -> None:
    """Warp takes a second to start, and much memory: the server's process has none of it."""
    run_with("top == 'warp'", f"import {module}")


def test_a_tick_and_a_frame_are_read_in_one_sitting() -> None:
    """What happens in them, and in which order, is all that world.py is about: less than 250 lines."""
    lines = FILES["viscera.world.world"].read_text().splitlines()
    assert len(lines) < 250
    assert any("def _tick" in line for line in lines)
    assert any("def _begin_turn" in line for line in lines)
