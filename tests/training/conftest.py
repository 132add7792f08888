"""A PostgreSQL of one's own, for the tests that ask for one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from viscera.training import codes


@pytest.fixture(autouse=True)
def _quick_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes that take no time; how long they should take is not what is tested."""
    monkeypatch.setitem(codes.WORK, "n", 16)


@pytest.fixture
def postgresql(tmp_path: Path) -> Iterator[str]:
    """Address of a new, empty database; skipped where Debian's PostgreSQL is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders or shutil.which("runuser") is None or os.geteuid() != 0:
        pytest.skip("needs Debian's PostgreSQL, and root to start it as its own user")
    programs, data = folders[-1], tmp_path / "data"
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent == Path("/tmp"):
            break
        parent.chmod(parent.stat().st_mode | 0o011)
    data.mkdir()
    shutil.chown(data, "postgres", "postgres")

    def run(*command: str) -> None:
        subprocess.run(["runuser", "-u", "postgres", "--", *command], check=True, capture_output=True, timeout=120)

    run(str(programs / "initdb"), "-D", str(data), "-A", "trust", "-E", "UTF8", "--no-sync")
    options = f"-k {data} -c listen_addresses= -F"
    run(str(programs / "pg_ctl"), "-D", str(data), "-o", options, "-l", str(data / "log"), "-w", "start")
    try:
        yield f"postgresql+psycopg://postgres@/postgres?host={data}"
    finally:
        run(str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
