"""Nothing in C escapes the registry of twins, and no kernel is left that nothing launches."""

from __future__ import annotations

import dis
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import warp as wp
from warp._src.context import Function

import viscera
from viscera.native import Trial, Twin, register, registered, twins
from viscera.tissue import samples

SOURCES = Path(viscera.__file__).parent

NO_LOOPS = {
    "viscera.batch.blocks.meet_mates": "waits for the other threads of a world",
    "viscera.device._meet": "waits for the other cores",
    "viscera.device._flush": "sets how a core rounds",
    "viscera.device._wait_at_gate": "waits for the next program",
    "viscera.tissue.kernels.add_integer": "one atomic addition, which Warp has not on cpu",
    "viscera.water.periodic.read4": "one load of 16 bytes",
    "viscera.water.teams.write_fourth": "one store of 4 of 16 bytes",
}
"""Code in C without a twin: single operations that Warp cannot say."""

SUMS_OF_POINTS = {name: getattr(samples, name) for name in ("hung_at", "hung_moving", "yielding")}
"""Sums over the masses of one point, which kernels of contact and sewing call for each point: their twins stand in
kernels of their own (`tissue/hung_kernels.py`)."""


def modules() -> Iterator[Any]:
    """All that may hold kernels: benchmarks have their own comparisons, servers have none, and migrations are run by
    Alembic alone."""
    others = ("bench", "server", "haptics", "__main__", "training", "learning")
    for found in pkgutil.walk_packages(viscera.__path__, "viscera.", onerror=lambda name: None):
        if not found.name.startswith(tuple(f"viscera.{other}" for other in others)):
            yield importlib.import_module(found.name)


def objects(kind: type) -> dict[str, Any]:
    """Everything of this kind, by where it was defined."""
    found = {}
    for module in modules():
        for value in vars(module).values():
            if isinstance(value, kind) and value.func.__module__ == module.__name__:
                found[f"{module.__name__}.{value.func.__name__}"] = value
    return found


def called(kernel: Any) -> set[Any]:
    """Warp functions that a kernel calls, at any depth."""
    found: set[Any] = set()
    waiting = [kernel.func]
    while waiting:
        function = waiting.pop()
        for step in dis.get_instructions(function):
            value = function.__globals__.get(step.argval) if step.opname == "LOAD_GLOBAL" else None
            if isinstance(value, Function) and value.func is not None and value not in found:
                found.add(value)
                waiting.append(value.func)
    return found


@pytest.fixture(scope="module")
def in_c() -> dict[str, Any]:
    """Functions in C that are loops."""
    found = {name: f for name, f in objects(Function).items() if getattr(f, "native_snippet", None) is not None}
    assert NO_LOOPS.keys() <= found.keys(), "some of NO_LOOPS are gone: strike them"
    return {name: f for name, f in found.items() if name not in NO_LOOPS}


def test_every_loop_in_c_belongs_to_a_registered_kernel(in_c: dict[str, Any]) -> None:
    known = {kernel for twin in registered(viscera).values() for kernel in twin.kernels()}
    loops, reached = set(in_c.values()), set()
    assert len(loops) > 20
    of_known = loops & set().union(*map(called, known))
    for name, kernel in objects(wp.Kernel).items():
        uses = called(kernel) & loops
        # Kernels of many worlds run a registered one's loop for each of them; others ask where points hang.
        shared = uses <= (of_known if name.startswith("viscera.batch.") else of_known & set(SUMS_OF_POINTS.values()))
        assert not uses or shared or kernel in known, f"{name} calls code in C and is not registered"
        reached |= uses
    assert not [name for name, f in in_c.items() if f not in reached], "code in C that no kernel calls"


def test_native_kernels_are_in_c_and_plain_ones_are_not(in_c: dict[str, Any]) -> None:
    loops = set(in_c.values())
    for twin in registered(viscera).values():
        assert all(called(kernel) & loops for some in twin.native.values() for kernel in some), twin.name
        assert not any(called(kernel) & loops for kernel in twin.plain), twin.name


def test_no_kernel_is_left_that_nothing_launches() -> None:
    """Its name stands somewhere besides its definition and the registry."""
    text = "\n".join(path.read_text() for path in SOURCES.rglob("*.py") if path.name != "twins.py")
    names = {name.rsplit(".", 1)[1] for name in objects(wp.Kernel)}
    assert len(names) > 100
    words = re.findall(r"\w+", text)
    counts = dict.fromkeys(names, 0)
    for word in words:
        if word in counts:
            counts[word] += 1
    assert not sorted(name for name, count in counts.items() if count < 2)


def _nothing(*_: Any) -> Trial:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": ("a", "a")}, "twice"),
        ({"features": ()}, "none"),
        ({"plain_only": ("a",)}, "twice"),
        ({"native": {"tpu": ()}}, "tpu"),
        ({"name": "water.density"}, "registered by"),
    ],
)
def test_mistakes_in_a_registration_are_refused(
    monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], words: str
) -> None:
    registered(viscera)
    monkeypatch.setattr(twins, "_registered", dict(twins._registered))
    right: dict[str, Any] = {"name": "test", "plain": (), "native": {"cpu": ()}, "features": ("a",), "tolerance": 0.0,
                             "make": _nothing, "small": 1, "large": 1}  # fmt: skip
    register(Twin(**right))
    with pytest.raises(ValueError, match=words):
        register(Twin(**(right | changes)))
