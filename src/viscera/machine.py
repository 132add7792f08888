"""Which machine this is: a figure without its machine says nothing."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path


def cpu_name() -> str:
    """As the maker calls it, for example `Intel(R) Xeon(R) Platinum 8481C`."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def core_count() -> int:
    """Cores this process may use, which a container can make fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package_version(name: str) -> str | None:
    """Of an installed package, or None. Reads metadata and imports nothing."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str | None]:
    return {
        "viscera": viscera_version(),
        "python": platform.python_version(),
        "numpy": package_version("numpy"),
        "warp": package_version("warp-lang"),
    }


def viscera_version() -> str:
    """On a bare machine viscera runs from its source folder and is not installed; then its own word counts."""
    import viscera

    return getattr(viscera, "__version__", None) or package_version("viscera") or "unknown"


def describe() -> dict[str, object]:
    """Machine and versions, as they go into every file of measurements."""
    return {
        "cpu": cpu_name(),
        "cores": core_count(),
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions(),
    }
