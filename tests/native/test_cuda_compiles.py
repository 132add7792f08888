"""Code for cuda compiles on every machine: Warp's compiler for it needs no GPU. Whether it is right, a GPU shows."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import warp as wp

import viscera
from viscera.native import registered

HOPPER = 90
"""Architecture that is compiled for."""

MODULES = sorted(
    {
        kernel.func.__module__
        for twin in registered(viscera).values()
        for kernels in twin.native.values()
        for kernel in kernels
    }
)


@pytest.mark.slow
@pytest.mark.skipif(wp.get_cuda_toolkit_version() is None, reason="this build of Warp has no compiler for cuda")
@pytest.mark.parametrize("name", MODULES)
def test_modules_with_code_in_c_compile_for_cuda(name: str, tmp_path: Path) -> None:
    """Also those whose loops are for cpu alone: their other kernels run on cuda."""
    made = wp.compile_aot_module(importlib.import_module(name), arch=HOPPER, use_ptx=True, module_dir=tmp_path)
    assert any(path.suffix == ".ptx" and path.stat().st_size > 0 for path in made)
