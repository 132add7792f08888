"""Command lines: every one ends soon, with an exit code that is documented and without a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import tempfile
from pathlib import Path

from soak.attack import Attack, Broken, Case
from viscera import cli

ALLOWED = {0, 2, 3, 5, 6}
"""Of docs/command-line.md; 4, a state that broke, is a finding here."""

NUMBERS = ("0", "-1", "1", "3", "999", "1e12", "nan", "inf", "-0", "10" * 20, "x", "", "0x10", "１", "1,5")
NAMES = ("palpation", "river", "Palpation", "palpatoin", "", "-", "..", "/dev/null", "no.py", "\N{SNOWMAN}", "x" * 500)
FILES = ("", "none.stl", "/dev/zero", "/dev/null", "/", "garbage.stl", "garbage.h5", "pipe.stl", "pipe", "garbage.toml")


def draw(chance: random.Random, small: bool) -> Case:
    command = chance.choice(("run", "run", "serve", "replay", "mesh", "bench", "haptics", "list", chance.choice(NAMES)))
    words = [command]
    if command == "run":
        words += [chance.choice(NAMES if small else ("palpation", *NAMES)), "--headless", "--device", "cpu"]
        words += ["--seconds", chance.choice(("0.002", "0.016", "0", "-1", "1e12", "nan", "inf", "x"))]
    elif command == "serve":
        # With a port that cannot be had it ends by itself, whatever else is right about it.
        words += [chance.choice(NAMES), "--port", "1", "--host", "192.0.2.1"]
    elif command in ("replay", "mesh"):
        words += [chance.choice(FILES)]
    elif command == "bench":
        words += ["no-such-benchmark"]
    elif command == "haptics":
        words += [chance.choice(("list", "none", "record"))]
    options = {
        "--seed": NUMBERS, "--cores": NUMBERS, "--detail": ("0", "-1", "0.1", "nan", "x", "1e9", ""),
        "--mesh": FILES, "--haptics-file": FILES,
        "--set": ("stiffness=1", "stiffness", "=", "x=1", "stiffness=nan", "flow=0", "stiffness=1e400"),
        "--simplify": NUMBERS, "--out": ("out", "", "garbage.stl/x", "new.stl"), "--unit": ("mm", "in", "ell"),
        "--token": ("", "short", "long enough for a token"), "--device": ("cpu", "cuda:99", "abacus", ""),
        "--haptics": ("pointer", "none", "haply:9"), "--json": None, "--headless": None, "--none": None,
    }  # fmt: skip
    for name in chance.sample(list(options), chance.choice((0, 1, 1, 2, 3))):
        values = options[name]
        words += [name] if values is None else [name, chance.choice(values)]
    # No `steps`: without one of its words a command may be another one, which serves without end.
    return {"words": words}


def attempt(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in FILES:
            if name.startswith("garbage"):
                Path(name).write_bytes(b"solid x\n\xff\x00 = [\n")
            elif name.startswith("pipe"):
                os.mkfifo(name)
        code, said = _call(case["words"])
    if code not in ALLOWED:
        raise Broken(f"exit code {code}: {said[-500:]}")
    if "Traceback" in said:
        raise Broken(said[-500:])


def _call(words: list[str]) -> tuple[int, str]:
    out, err = io.StringIO(), io.StringIO()
    kept = sys.argv
    sys.argv = ["viscera", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    finally:
        sys.argv = kept
    return code, out.getvalue() + err.getvalue()


ATTACK = Attack("commands", "command lines with wrong words, numbers and files", draw, attempt, patience=90.0)
