"""Scenarios: small Python files that say what is in a world, what to do there, and how to try it without hands.

Each file or folder here holds one `SCENARIO`; a file of your own does too (docs/scenarios.md). `catalogue()` finds
ours, `find_scenario` also takes the path of a file; `viscera.make` builds a world from one.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from viscera.detail import AUTO, Detail, check_detail
from viscera.device import Device, ProgressCallback, open_device
from viscera.errors import InputError, VisceraError, need_number
from viscera.inputs import SetParameter
from viscera.scenarios._setting import Option, Setting, check_options

__all__ = ["Option", "Scenario", "Setting", "catalogue", "check_seed", "find_scenario", "load_file", "make", "place_in"]

if TYPE_CHECKING:
    from viscera.world import Contents, World


@dataclass(frozen=True)
class Scenario:
    name: str
    build: Callable[[Setting], Contents]
    """What is in the world."""
    title: str = ""
    """The name, where there is none."""
    summary: str = ""
    """One sentence for the list."""
    instructions: str = ""
    """What to do, for someone who never saw it; one line per step."""
    file: Path | None = None
    """Where it was loaded from, for one of the user's own."""
    takes_mesh: bool = True
    """Whether it is built on the mesh that a user gives (`Setting.mesh`); one that has no use for it refuses it."""
    options: tuple[Option, ...] = ()
    """What else a user may give (`Setting.options`)."""
    no_tissue: bool = False
    """Whether there are no organs in it. Its ticks launch nothing then, so its systems have all cores."""

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.name.replace("_", " ").capitalize())


LARGEST_SEED = 2**63 - 1
FIRST = "palpation"
NO_SCENARIOS = ("fit", "kernels")
"""Modules beside the scenarios that are none."""

loading = False
"""Whether a scenario file is being loaded now."""


@cache
def catalogue() -> dict[str, Scenario]:
    """All scenarios by name. A file that does not load is left out with a warning, so that the others can be used."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("_") or module.name in NO_SCENARIOS:
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
        raise _does_not_load(f"{name}.py", error) from error
    return _checked(scenario, f"{name}.py")


def load_file(path: Path) -> Scenario:
    """The scenario of a Python file outside the package."""
    if not path.is_file():
        raise InputError(f"scenario file {path} is not there.", "Check the path; it ends in .py.")
    # Its name is in the kernels' cache too, so two files of one name in different folders must not meet.
    name = f"viscera_scenario_{path.stem}_{hashlib.sha256(bytes(path.resolve())).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    global loading
    loading = True
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what it prints is no result of a command
            spec.loader.exec_module(module)
    except Exception as error:
        raise _does_not_load(path.name, error) from error
    finally:
        sys.path.pop(0)
        loading = False
    if not hasattr(module, "SCENARIO"):
        raise InputError(
            f"scenario file {path.name} has no SCENARIO.",
            'End it with `SCENARIO = Scenario("name", build)`; docs/scenarios.md has an example.',
        )
    return replace(_checked(module.SCENARIO, path.name), file=path.resolve())


def _does_not_load(file: str, error: Exception) -> InputError:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == file]
    where = f" (line {lines[-1]})" if lines else ""
    what = str(error).rstrip(".")
    return InputError(
        f"scenario file {file} does not load{where}: {type(error).__name__}: {what}.", "Mend it, or move it away."
    )


def _checked(scenario: object, file: str) -> Scenario:
    if not isinstance(scenario, Scenario):
        raise InputError(f"scenario file {file} does not load: SCENARIO is {scenario!r}.", "Make it a Scenario.")
    return scenario


def find_scenario(name: str) -> Scenario:
    """By its name in the catalogue, or by the path of its file."""
    from viscera.world.names import closest_names

    if name.endswith(".py"):
        return load_file(Path(name))
    entries = catalogue()
    if name in entries:
        return entries[name]
    if name.isidentifier() and name[0] != "_" and importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return _load(name)  # raises, and says why
    raise InputError(f"scenario {name!r} is not known.", closest_names(name, entries))


def _built(entry: Scenario, setting: Setting) -> Contents:
    """What a scenario builds; a slip in a user's own file is told with its line."""
    from viscera.world import Contents

    try:
        contents = entry.build(setting)
    except VisceraError:
        raise
    except Exception as error:
        place = place_in(entry, error)
        if place is None:
            raise
        what = str(error).rstrip(".")
        raise InputError(f"{place}: {type(error).__name__}: {what}.", "Mend that line.") from error
    if not isinstance(contents, Contents):
        raise InputError(
            f"build of {entry.name!r} gave {contents!r}.", "End it with `return Contents(...)` (docs/scenarios.md)."
        )
    if setting.mesh_is_unread:
        raise InputError(f"{entry.name} does not use the mesh.", "Read `setting.mesh` in build, or leave --mesh out.")
    if entry.no_tissue and contents.organs:
        raise InputError(f"{entry.name} has organs, but says no_tissue.", "Leave no_tissue out.")
    return contents


def place_in(entry: Scenario, error: Exception) -> str | None:
    """Where in a user's own file an error came from, as `FILE, line N`; None when it did not."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(entry.file)]
    return f"{entry.file}, line {lines[-1]}" if lines and entry.file is not None else None


def check_seed(seed: object) -> None:
    if not (isinstance(seed, int) and 0 <= seed <= LARGEST_SEED):
        raise InputError(f"seed = {seed!r} is not allowed.", f"It is a whole number from 0 to {LARGEST_SEED}.")


def make(
    scenario: str | Scenario,
    *,
    device: str | Device | None = None,
    seed: int = 0,
    mesh: str | Path | None = None,
    detail: Detail = 1.0,
    options: Mapping[str, str | int | Path] | None = None,
    parameters: Mapping[str, float] | None = None,
    cores: int | None = None,
    progress: ProgressCallback | None = None,
) -> World:
    """Makes the world of a scenario, ready to step.

    `scenario` is a name, the path of a Python file, or a `Scenario`; `device` is `cpu`, `cuda:0` or None for the best
    one; `detail` multiplies the scenario's numbers of masses, texels and particles, or is `auto` for as many as this
    machine carries in real time (docs/detail.md); `options` are files and numbers that the scenario says it takes,
    such as barium's `scan`; `parameters` are in the units the scenario states; `progress` is
    called with what is being compiled. The same seed, detail, device kind and inputs give the same world, bit for bit.
    """
    from viscera.scenarios.kernels import known_kernels, remember_kernels
    from viscera.world import World

    entry = scenario if isinstance(scenario, Scenario) else find_scenario(scenario)
    check_seed(seed)
    if mesh is not None and not entry.takes_mesh:
        raise InputError(f"{entry.name} has no organ that a mesh could take the place of.", "Leave --mesh out.")
    wanted = check_options(entry.options, options or {}, entry.name)
    whole = device if isinstance(device, Device) else open_device(device, cores)
    whole.load(known_kernels(entry, whole), progress)
    path = None if mesh is None else Path(mesh)
    if path is not None and progress is not None:
        progress(f"getting {path.name} ready; the first time takes up to two minutes", 0.95)
    tick_cores = None
    if detail == AUTO:
        from viscera.scenarios.fit import fit

        found = fit(entry, whole, mesh=path, options=wanted, progress=progress)
        detail, tick_cores = found.detail, None if whole.is_cuda else found.tick_cores
    amount = check_detail(detail)
    place = whole.split(tick_cores, idle=entry.no_tissue)
    world = World(entry, place, seed, lambda s: _built(entry, Setting(place, s, path, amount, wanted)), amount)
    remember_kernels(entry, place)
    for key, value in (parameters or {}).items():
        world.set_now(SetParameter(key, need_number(key, value)))
    return world
