"""`typings/warp` says nothing of Warp that is not so: names, members, parameters; and pyright sees mistakes with it."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera.device import Device

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "typings" / "warp"
FILES = sorted(STUB.glob("*.pyi"))


KERNEL_FUNCTIONS = importlib.import_module("warp._src.context").builtin_functions
"""By name; some of them are no attributes of `warp`, because nothing but a kernel can call them."""


def module_of(file: Path) -> Any:
    """What `file` describes. Files with an underscore are parts of `warp` itself."""
    return wp if file.stem.startswith("_") else importlib.import_module(f"warp.{file.stem}")


def statements() -> Iterator[tuple[Any, ast.stmt]]:
    for file in FILES:
        module = module_of(file)
        for statement in ast.parse(file.read_text()).body:
            yield module, statement


def name_of(statement: ast.stmt) -> str:
    """What a definition or a declaration names; nothing for other statements."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return statement.name
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    return ""


def functions() -> list[tuple[Any, ast.FunctionDef]]:
    found = [(module, one) for module, one in statements() if isinstance(one, ast.FunctionDef)]
    assert len(found) > 100
    return found


CLASSES = {one.name: (module, one) for module, one in statements() if isinstance(one, ast.ClassDef)}


def test_every_name_is_in_warp() -> None:
    names = [(module, name_of(one)) for module, one in statements()]
    public = [(module, name) for module, name in names if name and not name.startswith("_")]
    assert len(public) > 150
    assert [name for module, name in public if not hasattr(module, name) and name not in KERNEL_FUNCTIONS] == []


def test_a_missing_name_is_an_error() -> None:
    """No module answers for names that it does not list."""
    assert [one for _, one in statements() if name_of(one) == "__getattr__"] == []


def examples(device: Device) -> dict[str, Any]:
    """One of each class that has its members only when it is made."""

    @wp.kernel(module="unique")
    def kernel(values: wp.array[float]):
        values[wp.tid()] = 1.0

    place = device.warp
    corners = wp.array(np.eye(3), dtype=wp.vec3, device=place)
    values = wp.zeros(2, dtype=float, device=place)
    with wp.ScopedCapture(device=place) as capture:
        values.zero_()
    made = [
        kernel, kernel.module, values, capture, capture.graph, place,
        wp.Mesh(corners, wp.array([0, 1, 2], dtype=wp.int32, device=place)),
        wp.HashGrid(2, 2, 2, device=place),
        wp.transform(wp.vec3(), wp.quat()),
    ]  # fmt: skip
    return {type(one).__name__: one for one in made}


def members_of(name: str) -> set[str]:
    """Public members of a class of the stub, with those of its bases there."""
    _, found = CLASSES[name]
    own = {name_of(one) for one in found.body}
    for base in found.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(base, ast.Name) and base.id in CLASSES:
            own |= members_of(base.id)
    return {one for one in own if one and not one.startswith("_")}


def has(thing: Any, member: str) -> bool:
    # A query is a struct of kernels: its members are listed, not set.
    return hasattr(thing, member) or member in getattr(thing, "vars", {})


def test_every_member_is_there(cpu: Device) -> None:
    made = examples(cpu)
    checked = 0
    for name, (module, _) in CLASSES.items():
        if name.startswith("_"):
            continue
        thing = made.get(name, getattr(module, name))
        if name.startswith(("vec", "quat", "int", "uint", "float")):
            thing = thing()
        members = members_of(name)
        assert [member for member in members if not has(thing, member)] == [], name
        checked += len(members)
    assert checked > 60


def test_every_named_parameter_is_there() -> None:
    """Of functions that are Python; what kernels call is checked below."""
    checked = 0
    for module, stub in functions():
        there = getattr(module, stub.name, None)
        if not inspect.isfunction(there):
            continue
        known = inspect.signature(there).parameters
        named = [argument.arg for argument in (*stub.args.args, *stub.args.kwonlyargs)]
        assert [name for name in named if name not in known] == [], stub.name
        checked += len(named)
    assert checked > 60


def test_kernel_functions_take_as_many_arguments() -> None:
    """Whatever number of them the stub allows, Warp has a form for it."""
    checked = 0
    for _, stub in functions():
        # What the host calls has named arguments in the stub; kernels know places only.
        if stub.name not in KERNEL_FUNCTIONS or stub.args.args:
            continue
        there = KERNEL_FUNCTIONS[stub.name]
        forms = there.overloads or [there]
        if any(form.variadic for form in forms):
            continue
        counts = {
            count
            for form in forms
            for count in range(len(form.input_types) - len(form.defaults or {}), len(form.input_types) + 1)
        }
        most = len(stub.args.posonlyargs)
        least = most - len(stub.args.defaults)
        assert {least, most} <= counts, stub.name
        checked += 1
    assert checked > 60


MISTAKES = """
import warp as wp

@wp.struct
class Grid:
    spacing: float
    lower: wp.vec3

@wp.func
def cell(grid: Grid, point: wp.vec3) -> wp.vec3i:
    scaled = (point - grid.lower) / grid.spacing
    return wp.vec3i(int(scaled[0]), int(scaled[1]), int(scaled[2]))

@wp.kernel
def count(first: int, grid: Grid, position: wp.array[wp.vec3], mass: wp.array[wp.float64], count_out: wp.array[int]):
    i = first + wp.tid()
    here = cell(grid, position[i])
    wp.atomic_add(count_out, here[0], 1)
    wp.atomic_adds(count_out, here[0], 1)  # wrong
    cell(grid, 2.0)  # wrong
    _ = position[i] + 1.0  # wrong
    _ = grid.space  # wrong
    _ = mass[i] * 2.0  # wrong
    _ = wp.dot(position[i], here)  # wrong
    _ = mass[i] * wp.float64(2.0) + wp.sqrt(mass[i])
    _ = 0.5 * wp.normalize(wp.cross(position[i], position[0])) - grid.lower

wp.launch(count, dim=4, inputs=[], device="cpu")
wp.launch(cell, dim=4, inputs=[], device="cpu")  # wrong
wp.zeros(3, dtype=wp.vec3, size=1)  # wrong
wp.zeros(3, dtype=wp.vec3).numpy()
"""


def test_pyright_sees_mistakes_in_kernels(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    file = tmp_path / "mistakes.py"
    file.write_text(MISTAKES)
    command = [sys.executable, "-m", "pyright", "--outputjson", str(file)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = {one["range"]["start"]["line"] for one in json.loads(said.stdout)["generalDiagnostics"]}
    wrong = {number for number, line in enumerate(MISTAKES.split("\n")) if line.endswith("# wrong")}
    assert len(wrong) == 8
    assert found == wrong
