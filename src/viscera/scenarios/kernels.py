"""Which modules' kernels a scenario needs, as found out by building it: they are compiled side by side before it
starts.

    python -m viscera.scenarios.kernels [--check]     writes kernels.json for the scenarios of the package

What a scenario of a user's needs is remembered beside Warp's kernel cache, by the text of its file. A module that is
missing from the list costs nothing but time: it is compiled when it is first used.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import subprocess
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING

import warp as wp

from viscera.device import loaded_kernel_modules

if TYPE_CHECKING:
    from viscera.scenarios import Scenario

SHIPPED = Path(__file__).with_name("kernels.json")


def known_kernels(entry: Scenario) -> list[types.ModuleType]:
    """Modules to compile before this scenario is built; none where that is not known yet."""
    found = []
    for name in _read(_place(entry)).get(entry.name, []):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name))
    return found


def remember_kernels(entry: Scenario) -> None:
    """After a user's scenario was built: the next start compiles side by side. A cache that cannot be written is
    none."""
    if entry.file is not None and not _place(entry).exists():
        with contextlib.suppress(OSError):
            _place(entry).write_text(json.dumps({entry.name: loaded_kernel_modules()}))


def _place(entry: Scenario) -> Path:
    if entry.file is None:
        return SHIPPED
    with contextlib.suppress(OSError):
        digest = hashlib.sha256(entry.file.read_bytes()).hexdigest()[:16]
        return Path(wp.config.kernel_cache_dir or ".") / f"viscera-{entry.file.stem}-{digest}.json"
    return SHIPPED


def _read(path: Path) -> dict[str, list[str]]:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text())
    return {}


def find_out(scenario: str) -> list[str]:
    """What building and stepping this scenario loads, in a process of its own."""
    code = (
        "import json, viscera; from viscera.device import loaded_kernel_modules;"
        f"world = viscera.make({scenario!r}, device='cpu'); world.step(32); print(json.dumps(loaded_kernel_modules()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def main(arguments: list[str]) -> int:
    from viscera.scenarios import catalogue

    text = json.dumps({name: find_out(name) for name in catalogue()}, indent=1) + "\n"
    if "--check" not in arguments:
        SHIPPED.write_text(text)
        return 0
    if SHIPPED.read_text() == text:
        return 0
    print(f"{SHIPPED} is not current; run `python -m viscera.scenarios.kernels`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
