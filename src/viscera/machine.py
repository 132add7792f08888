"""Which machine this is, and with which versions: a figure without its machine says nothing."""

from __future__ import annotations

import contextlib
import platform
from importlib import metadata
from pathlib import Path


def package_version(name: str) -> str | None:
    """Of an installed package, or None. Reads metadata and imports nothing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def viscera_version() -> str:
    """On a bare machine viscera runs from its source folder and is not installed; then its own word counts."""
    import viscera

    return getattr(viscera, "__version__", None) or package_version("viscera") or "unknown"


def versions() -> dict[str, str | None]:
    return {
        "viscera": viscera_version(),
        "python": platform.python_version(),
        "numpy": package_version("numpy"),
        "warp": package_version("warp-lang"),
    }


def processor_kind() -> str:
    """What a name may leave out: machines that are rented call processors of three generations the same."""
    found = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines():
            word, _, value = line.partition(":")
            found[word.strip()] = value.strip()
    if "cpu family" not in found:
        return platform.machine()
    widest = next((one for one in ("avx512f", "avx2") if one in found.get("flags", "").split()), "")
    return " ".join(filter(None, (f"family {found['cpu family']}", f"model {found.get('model', '?')}", widest)))


def describe() -> dict[str, object]:
    """Machine and versions, as they go into every file of measurements."""
    from viscera.device import available_cores, processor_name

    return {
        "cpu": processor_name(),
        "cpu_kind": processor_kind(),
        "cores": available_cores(),
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions(),
    }
