"""Which machine this is, and with which versions: a figure without its machine says nothing."""

from __future__ import annotations

import platform
from importlib import metadata


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


def describe() -> dict[str, object]:
    """Machine and versions, as they go into every file of measurements."""
    from viscera.device import available_cores, processor_name

    return {
        "cpu": processor_name(),
        "cores": available_cores(),
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions(),
    }
