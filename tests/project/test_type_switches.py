"""Types are checked everywhere: no file turns a rule off, and lines that do name it."""

from __future__ import annotations

import re
import tokenize
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "examples", "verify", "soak", "benchmarks", "docs", "typings")
SWITCH = re.compile(r"#\s*(pyright|mypy):(?!\s*ignore\[report\w+\])|#\s*type:\s*ignore")
"""Anything but `pyright: ignore[reportX]`."""
IGNORED = re.compile(r"#\s*pyright:\s*ignore\[")


def comments(file: Path) -> list[str]:
    with tokenize.open(file) as text:
        if not re.search(r"pyright:|mypy:|type:", text.read()):
            return []
        text.seek(0)
        return [one.string for one in tokenize.generate_tokens(text.readline) if one.type == tokenize.COMMENT]


@cache
def all_comments() -> dict[str, list[str]]:
    files = [ROOT / "hatch_build.py"]
    for folder in FOLDERS:
        files += sorted((ROOT / folder).rglob("*.py*"))
    sources = [file for file in files if file.suffix in (".py", ".pyi")]
    assert len(sources) > 300
    return {str(file.relative_to(ROOT)): comments(file) for file in sources}


def test_no_file_switches_a_rule_off() -> None:
    found = [(file, text) for file, texts in all_comments().items() for text in texts if SWITCH.search(text)]
    assert found == [], "Give the right type or a cast; docs/conventions.md says what may be ignored, and how."


def test_only_the_form_of_types_is_unchecked() -> None:
    """`wp.array(dtype=float)` in a kernel's signature is a call; every other rule of pyright's standard set holds."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pyright"]
    assert settings["typeCheckingMode"] == "standard"
    assert settings["enableTypeIgnoreComments"] is False
    assert "ignore" not in settings
    weak = {name for name, value in settings.items() if name.startswith("report") and value not in ("error", True)}
    assert weak == {"reportInvalidTypeForm"}


def test_no_more_lines_are_ignored_than_stated() -> None:
    there = {file: sum(bool(IGNORED.search(text)) for text in texts) for file, texts in all_comments().items()}
    inside = sum(number for file, number in there.items() if file.startswith("src"))
    stated = re.search(r"(\d+) lines are ignored, (\d+) of them in `src`", (ROOT / "docs/conventions.md").read_text())
    assert stated is not None
    assert sum(there.values()) <= int(stated[1])
    assert inside <= int(stated[2])


@pytest.mark.parametrize(
    "line",
    ["# pyright: reportCallIssue=false", "#pyright: basic", "x = 1  # pyright: ignore", "x = 1  # type: ignore[misc]"],
)
def test_switches_are_recognised(line: str) -> None:
    assert SWITCH.search(line)
    assert not SWITCH.search("x = 1  # pyright: ignore[reportCallIssue]")
