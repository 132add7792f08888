"""Which modules' kernels a scenario needs, as found out by building it: they are compiled side by side before it
starts.

    python -m viscera.scenarios.kernels [--check]     writes kernels.json for the scenarios of the package

There is one list for each kind of device, since on cuda other kernels do the work; a machine writes and checks those of
the devices that it has. What a scenario of a user's needs is remembered beside Warp's kernel cache, by the text of its
file. A module that is missing from the list costs nothing but time: it is compiled when it is first used.
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

from viscera.device import Device, cuda_state, loaded_kernel_modules

if TYPE_CHECKING:
    from viscera.scenarios import Scenario

SHIPPED = Path(__file__).with_name("kernels.json")

Lists = dict[str, dict[str, list[str]]]
"""Names of modules, by kind of device and by scenario."""


def known_kernels(entry: Scenario, device: Device) -> list[types.ModuleType]:
    """Modules to compile before this scenario is built; none where that is not known yet."""
    lists, found = _read(_place(entry)), []
    # Most modules serve both kinds, so the list of cpu is better than none.
    for name in lists.get(_kind(device), lists.get("cpu", {})).get(entry.name, []):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name))
    return found


def remember_kernels(entry: Scenario, device: Device) -> None:
    """After a user's scenario was built: the next start compiles side by side. A cache that cannot be written is
    none."""
    if entry.file is None:
        return
    place, kind = _place(entry), _kind(device)
    lists = _read(place)
    if kind not in lists:
        with contextlib.suppress(OSError):
            place.write_text(json.dumps(lists | {kind: {entry.name: loaded_kernel_modules()}}))


def _kind(device: Device) -> str:
    return "cuda" if device.is_cuda else "cpu"


def _place(entry: Scenario) -> Path:
    if entry.file is None:
        return SHIPPED
    with contextlib.suppress(OSError):
        digest = hashlib.sha256(entry.file.read_bytes()).hexdigest()[:16]
        return Path(wp.config.kernel_cache_dir or ".") / f"viscera-{entry.file.stem}-{digest}.json"
    return SHIPPED


def _read(path: Path) -> Lists:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text())
    return {}


def find_out(scenario: str, kind: str = "cpu") -> list[str]:
    """What building and stepping this scenario loads, in a process of its own that knows of no list. On cpu it has two
    cores, as with one alone nothing waits at a barrier."""
    code = (
        "import json, viscera; from viscera.scenarios import kernels; kernels.known_kernels = lambda *_: [];"
        f"world = viscera.make({scenario!r}, device={kind!r}, cores=2); world.step(32);"
        "print(json.dumps(kernels.loaded_kernel_modules()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main(arguments: list[str]) -> int:
    from viscera.scenarios import catalogue

    kinds = ("cpu", "cuda") if cuda_state().usable else ("cpu",)
    found: Lists = {kind: {name: find_out(name, kind) for name in catalogue()} for kind in kinds}
    shipped = _read(SHIPPED)
    if "--check" not in arguments:
        SHIPPED.write_text(json.dumps(shipped | found, indent=1) + "\n")
        return 0
    if all(shipped.get(kind) == found[kind] for kind in kinds):
        return 0
    print(f"{SHIPPED} is not current; run `python -m viscera.scenarios.kernels`.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
