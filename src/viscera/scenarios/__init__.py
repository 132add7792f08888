"""Scenarios: small Python files that say what is in a world, what to do there, and how to try it without hands.

Each file in this folder holds one `SCENARIO`. `catalogue()` finds them all; `viscera.make` builds a world from one.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import types
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from viscera.device import Device, ProgressCallback, open_device
from viscera.errors import InputError
from viscera.inputs import Input, SetParameter

if TYPE_CHECKING:
    from viscera.world import Contents, World


@dataclass(frozen=True)
class Setting:
    """What a scenario is built with."""

    device: Device
    seed: int
    mesh: Path | None


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    summary: str
    """One sentence for the list."""
    instructions: str
    """What to do, for someone who never saw it; one line per step."""
    modules: Callable[[], list[types.ModuleType]]
    """Modules whose kernels it needs, to be compiled before it starts."""
    build: Callable[[Setting], Contents]
    script: Callable[[World, int], Iterable[Input]]
    """The scenario's own hand for runs without a window: what it does before the given tick."""


FIRST = "palpation"


@cache
def catalogue() -> dict[str, Scenario]:
    """All scenarios by name. A file that does not load is left out with a warning, so that the others can be used."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_"):
            continue
        try:
            scenario = _load(module.name)
        except InputError as error:
            warnings.warn(str(error), stacklevel=2)
            continue
        found[scenario.name] = scenario
    # Palpation is where to begin; the rest by name.
    return dict(sorted(found.items(), key=lambda entry: (entry[0] != FIRST, entry[0])))


def _load(name: str) -> Scenario:
    try:
        scenario = importlib.import_module(f"{__name__}.{name}").SCENARIO
    # Whatever a file of the user's raises, from a slip of the pen to a library that is not there.
    except Exception as error:
        trouble = f"{type(error).__name__}: {error}"
        raise InputError(f"scenario file {name}.py does not load: {trouble}.", "Mend it, or move it away.") from error
    if not isinstance(scenario, Scenario):
        raise InputError(f"scenario file {name}.py does not load: SCENARIO is {scenario!r}.", "Make it a Scenario.")
    return scenario


def find_scenario(name: str) -> Scenario:
    entries = catalogue()
    if name in entries:
        return entries[name]
    if name.isidentifier() and name[0] != "_" and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return _load(name)  # raises, and says why
    raise InputError(f"scenario {name!r} is not known.", closest_names(name, entries))


def closest_names(name: str, known: Mapping[str, object]) -> str:
    """A hint for a name that is not there."""
    close = difflib.get_close_matches(name, known, n=1)
    maybe = f"Did you mean {close[0]!r}? " if close else ""
    return f"{maybe}There are: {', '.join(sorted(known))}."


def make(
    name: str,
    *,
    device: str | Device | None = None,
    seed: int = 0,
    mesh: str | Path | None = None,
    parameters: Mapping[str, float] | None = None,
    cores: int | None = None,
    progress: ProgressCallback | None = None,
) -> World:
    """Makes the world of a scenario, ready to step.

    `device` is `cpu`, `cuda:0` or None for the best one; `parameters` are in the units the scenario states;
    `progress` is told what is being compiled. The same seed, device kind and inputs give the same world, bit for bit.
    """
    from viscera.world import World

    scenario = find_scenario(name)
    if not (isinstance(seed, int) and 0 <= seed < 2**63):
        raise InputError(f"seed = {seed!r} is not allowed.", "It is a whole number from 0 on.")
    place = device if isinstance(device, Device) else open_device(device, cores)
    place.load(scenario.modules(), progress)
    path = None if mesh is None else Path(mesh)
    world = World(scenario, place, seed, lambda s: scenario.build(Setting(place, s, path)))
    for key, value in (parameters or {}).items():
        world.set_now(SetParameter(key, float(value)))
    return world
