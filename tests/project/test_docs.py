"""Every block of code in README.md, CONTRIBUTING.md and docs/ does what it says, as printed.

The Python blocks of a page run in their order, in one namespace, in a process of their own. A block that cannot run
has `<!-- not run: why -->` in the line above it, and is in `NOT_RUN` below. Commands are read with the options that
the program really has.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKING = [*PAGES, ROOT / "CHANGELOG.md", *sorted((ROOT / "benchmarks").rglob("README.md"))]
"""Pages whose links are checked."""
SHELL = ("", "console", "sh", "shell", "bash")
"""Languages of blocks that may show commands; a block without a language may show anything."""

NOT_RUN: dict[str, int] = {}
"""How many Python blocks of a page do not run. It should stay empty."""

PATIENCE_S = 240.0
"""What a page may take; kernels may have to be compiled first [s]."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page. `line` is that of its fence, `why_not` the reason it gives for not being run."""

    page: Path
    line: int
    language: str
    text: str
    why_not: str


def blocks_of(page: Path) -> list[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    fences = [number for number, line in enumerate(lines) if line.lstrip().startswith("```")]
    assert len(fences) % 2 == 0, f"{page}: a block is not closed"
    found: list[Block] = []
    for begin, end in zip(fences[::2], fences[1::2], strict=True):
        above = lines[begin - 1] if begin else ""
        mark = re.fullmatch(r"<!-- not run: (.+) -->", above.strip())
        language = lines[begin].strip().removeprefix("```").split(" ")[0]
        text = "\n".join(lines[begin + 1 : end]) + "\n"
        found.append(Block(page, begin + 1, language, text, mark[1] if mark else ""))
    return found


def as_script(page: Path) -> str:
    """The Python blocks of a page, each on the lines where it stands, so that a traceback names the page's line."""
    lines = [""] * len(page.read_text(encoding="utf-8").splitlines())
    for block in blocks_of(page):
        if block.language == "python" and not block.why_not:
            text = block.text.splitlines()
            lines[block.line : block.line + len(text)] = text
    return "\n".join(lines) + "\n"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def pages_with_python() -> list[Path]:
    return [page for page in PAGES if any(block.language == "python" for block in blocks_of(page))]


QUICK = {"README.md", "docs/scenarios.md", "docs/conventions.md"}
"""Pages whose blocks run in `make test`, what a user reads first; the others' run in `make verify`, all as printed."""


def pages_by_speed() -> list[Any]:
    return [
        pytest.param(page, marks=() if name_of(page) in QUICK else pytest.mark.slow) for page in pages_with_python()
    ]


@pytest.mark.parametrize("page", pages_by_speed(), ids=name_of)
def test_the_blocks_of_a_page_run_as_printed(page: Path, tmp_path: Path) -> None:
    script = tmp_path / f"page_{page.stem}.py"
    script.write_text(as_script(page), encoding="utf-8")
    python_path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])  # for `verify`
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": python_path},
        capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{name_of(page)}, with the page's own line numbers:\n{done.stderr[-3000:]}"


def test_blocks_that_do_not_run_are_known() -> None:
    """One more is a decision: it changes `NOT_RUN`, in sight of whoever reads the change."""
    left_out = [block for page in PAGES for block in blocks_of(page) if block.why_not]
    for block in left_out:
        print(f"{name_of(block.page)}:{block.line}: {block.why_not}")
    counts: dict[str, int] = {}
    for block in left_out:
        counts[name_of(block.page)] = counts.get(name_of(block.page), 0) + 1
    assert counts == NOT_RUN


def test_python_is_marked_as_python() -> None:
    """A block of Python without its language would not run, and nobody would notice."""
    for page in PAGES:
        for block in blocks_of(page):
            looks_like_python = re.search(r"^(from|import) \w+", block.text, re.MULTILINE)
            assert block.language == "python" or not looks_like_python, f"{name_of(page)}:{block.line}"


def prose_of(page: Path) -> list[str]:
    """The lines of a page, those of its blocks empty."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in blocks_of(page):
        length = block.text.count("\n")
        lines[block.line : block.line + length] = [""] * length
    return lines


def shown_commands(page: Path) -> list[tuple[int, str]]:
    """What a page shows as commands, with the line: whole lines of blocks, and `viscera …`, `make …` in running text.

    In a block, what stands more than one space after a command explains it.
    """
    found = []
    for block in blocks_of(page):
        if block.language in SHELL:
            for number, line in enumerate(block.text.splitlines(), block.line + 1):
                found.append((number, re.split(r" {2,}| #", line.removeprefix("$ "))[0]))
    for number, line in enumerate(prose_of(page), 1):
        found += [(number, text) for text in re.findall(r"`([^`]+)`", line)]
    return [(number, text) for number, text in found if re.match(r"(\S*/)?(viscera|make|python) ", text)]


def check_viscera(words: list[str]) -> None:
    """Raises where a command or an option does not exist, or an argument is missing. Runs nothing."""
    from viscera.cli import app

    command: Any = typer.main.get_command(app)
    context = None
    while hasattr(command, "resolve_command") and words and not words[0].startswith("-"):
        context = command.make_context("viscera", words, parent=context)
        _, command, words = command.resolve_command(context, words)
    if "|" not in words and "--help" not in words:  # `viscera haptics list | check` names two commands
        command.make_context(command.name, words, parent=context)


def check_make(words: list[str]) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for word in words:
        assert "=" in word or word in targets, f"there is no `make {word}`"


def check_python(words: list[str]) -> None:
    """`python -m module` and `python folder/file.py`: that they exist. A file without a folder is the reader's own."""
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1]) is not None, f"there is no module {words[1]}"
    elif words[0].endswith(".py") and "/" in words[0]:
        assert (ROOT / words[0]).is_file(), f"there is no file {words[0]}"


CHECKS = {"viscera": check_viscera, "make": check_make, "python": check_python}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_a_page_exist_with_their_options(page: Path) -> None:
    for number, text in shown_commands(page):
        program, *words = shlex.split(re.sub(r"[…\[\]]", "", text).replace("COMMAND", "doctor"))
        try:
            CHECKS[program.rsplit("/", 1)[-1]](words)
        except Exception as error:
            pytest.fail(f"{name_of(page)}:{number}: `{text}`: {error}")


@pytest.mark.parametrize(
    "text", ["run palpation --headles", "run", "rnu", "bench --quick=3", "haptics chek", "run palpation --seconds two"]
)
def test_a_wrong_command_is_found(text: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|missing|does not take|valid number"):
        check_viscera(text.split())


def links_of(page: Path) -> list[str]:
    text = "\n".join(re.sub(r"`[^`]*`", "", line) for line in prose_of(page))
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchor_of(title: str) -> str:
    """The anchor of a heading, as hosts of repositories and the site make it."""
    plain = re.sub(r"[^\w\- ]", "", title.strip().lower())
    return plain.replace(" ", "-")


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    """Between pages, to headings, to pictures and to source files. `make docs` checks the same for the site."""
    for link in links_of(page):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), f"{name_of(page)} links to {link}, which does not exist"
        if anchor:
            titles = [line.lstrip("#") for line in prose_of(target) if line.startswith("#")]
            assert anchor in map(anchor_of, titles), f"{name_of(page)} links to {link}: there is no such heading"


def test_the_table_beside_other_solvers_is_that_of_the_last_run() -> None:
    """`numpy_fluids.py --table` writes it."""
    folder = ROOT / "benchmarks" / "peers"
    spec = importlib.util.spec_from_file_location("numpy_fluids", folder / "numpy_fluids.py")
    assert spec is not None
    assert spec.loader is not None
    peers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peers)
    rows = json.loads((folder / "numpy_fluids.json").read_text())["rows"]
    assert f"{peers.BEGIN}\n{peers.table(rows)}{peers.END}" in (ROOT / "docs" / "grid.md").read_text()
