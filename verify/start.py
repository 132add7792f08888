"""How long a person waits: from `make run` in a fresh clone to the first frame in the browser."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import IO

from hatch_build import npm_command
from verify.framework import Measured, figure
from viscera.doctor import BROWSER_VARIABLE, find_browser

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ["make", "--no-print-directory", "run", "ARGS=run palpation --no-open --port 0 --device cpu"]


@figure(
    area="foundation",
    claim="a clean clone with an empty HOME: `make run` to the first drawn frame, cold",
    bound="≤ 180 s",
    needs=["browser", "quiet"],
)
def first_frame_cold() -> Measured:
    cold, _ = _first_frames()
    return Measured(cold, "s", cold <= 180, "environment, packages, page and kernels are all made first")


@figure(area="foundation", claim="the same again, warm", bound="≤ 10 s", needs=["browser", "quiet"])
def first_frame_warm() -> Measured:
    _, warm = _first_frames()
    return Measured(warm, "s", warm <= 10)


@cache
def _first_frames() -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="viscera-start-") as folder:
        home, clone = Path(folder) / "home", Path(folder) / "clone"
        home.mkdir()
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        return _first_frame(clone, home), _first_frame(clone, home)


def _first_frame(clone: Path, home: Path) -> float:
    """Seconds from `make run` until the page has drawn a frame. The browser waits with an empty page."""
    browser = _browser()
    assert browser.stdin is not None
    _wait_for(browser.stdout, r"ready")
    kept = {name: value for name, value in os.environ.items() if name not in {"WARP_CACHE_PATH", "XDG_CACHE_HOME"}}
    start = time.monotonic()
    run = subprocess.Popen(
        COMMAND, cwd=clone, env={**kept, "HOME": str(home)}, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        address = _wait_for(run.stdout, r"http://\S+")
        browser.stdin.write(address + "\n")
        browser.stdin.flush()
        _wait_for(browser.stdout, r"drawn")
        return time.monotonic() - start
    finally:
        os.killpg(run.pid, signal.SIGTERM)
        run.wait(30)
        browser.kill()
        browser.wait()


def _browser() -> subprocess.Popen[str]:
    node = npm_command()[1] / "node"
    environment = {**os.environ, BROWSER_VARIABLE: find_browser() or ""}
    script = ROOT / "verify" / "first_frame.mjs"
    return subprocess.Popen(
        [str(node), str(script)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _wait_for(stream: IO[str] | None, pattern: str) -> str:
    assert stream is not None
    for line in stream:
        found = re.search(pattern, line)
        if found:
            return found.group()
    raise RuntimeError(f"the process ended before it said {pattern!r}")
