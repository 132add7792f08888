"""Builds the stand-in libraries with the machine's C compiler and puts the vendors' Python packages on top of them."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent


def need(package: str, install: str) -> Path:
    """The folder of a vendor's package, without importing it; skips the test where that or a compiler is missing."""
    if sys.platform != "linux":
        pytest.skip("the stand-in libraries are built for Linux")
    if compiler() is None:
        pytest.skip("no C compiler here (cc, gcc or clang) to build the stand-in library")
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{install} is not installed here")
    return Path(found.submodule_search_locations[0])


def compiler() -> str | None:
    return next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def build_library(source: str, target: Path, *flags: str) -> ctypes.CDLL:
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [str(compiler()), "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-pthread", *flags]
    subprocess.run([*command, str(HERE / source), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


def build_libhd(folder: Path) -> Any:
    """Once loaded under this soname, `CDLL("libHD.so")` of pyOpenHaptics finds it without any search path."""
    need("pyOpenHaptics", "pyOpenHaptics")
    library = build_library("libhd.c", folder / "libHD.so", "-Wl,-soname,libHD.so")
    library.fake_unplug.argtypes = library.fake_warn.argtypes = [ctypes.c_int, ctypes.c_uint]
    return library


def build_libdrd(sdk: Path) -> Any:
    """An SDK folder as the variable FDSDK names it."""
    package = need("forcedimension_core", "forcedimension-core")
    names: set[str] = set()
    for file in package.rglob("*.py"):
        names.update(re.findall(r"\b_libd[hr]d\.(d[hr]d\w+)", file.read_text(encoding="utf-8")))
    written = set(re.findall(r"^[a-z][\w ]*[ *](d[hr]d\w+)\(", (HERE / "libdrd.c").read_text(), re.MULTILINE))
    folder = sdk / "lib" / "release" / f"lin-{platform.machine()}-gcc"
    folder.mkdir(parents=True, exist_ok=True)
    stubs = "".join(f"int {name}(void) {{ return -1; }}\n" for name in sorted(names - written))
    (folder / "stubs.h").write_text(stubs)
    library = build_library("libdrd.c", folder / "libdrd.so.3.17.1", f"-I{folder}")
    library.fake_limit.restype = ctypes.c_double
    numbers = ctypes.POINTER(ctypes.c_double)
    library.fake_move.argtypes = [ctypes.c_int, numbers, numbers, ctypes.c_double, ctypes.c_uint]
    return library


@contextmanager
def fresh_import(package: str) -> Iterator[None]:
    """The package is imported anew inside, and forgotten afterwards, so that no other test meets the stand-in."""
    _forget(package)
    try:
        yield
    finally:
        _forget(package)


def _forget(package: str) -> None:
    for name in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
        del sys.modules[name]


def doubles(values: Any) -> Any:
    flat = [float(value) for value in values]
    return (ctypes.c_double * len(flat))(*flat)
