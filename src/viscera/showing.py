"""`viscera.show(world)`: a world of one's own in the page."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viscera.errors import InputError

if TYPE_CHECKING:
    from viscera.world import World


def show(world: World, *, port: int = 8420, open_browser: bool = True, **options: Any) -> None:
    """Serves the page with this world, as it is now, until Ctrl-C; `options` are those of `viscera.server.options`.

    The session runs in a process of its own and makes the world anew, so its scenario must be one of the package, or
    be called `SCENARIO` in a Python file (docs/scenarios.md). While such a file is loaded by the session, this does
    nothing: a script may end in `viscera.show(world)`.
    """
    from viscera import scenarios

    if scenarios.loading or multiprocessing.parent_process() is not None:
        return
    source = _source(world)
    # A process that is spawned runs the main script again, unless it does not know where that is.
    main = vars(sys.modules["__main__"])
    script = main.pop("__file__", None)
    try:
        _serve(world, source, port, open_browser, options)
    finally:
        if script is not None:
            main["__file__"] = script


def _serve(world: World, source: str, port: int, open_browser: bool, options: dict[str, Any]) -> None:
    from viscera.server.app import serve
    from viscera.server.options import ServerOptions
    from viscera.session.process import SessionSpec

    with tempfile.TemporaryDirectory(prefix="viscera-") as folder:
        state = Path(folder) / "state.npz"
        saved: dict[str, Any] = world.save_state()
        np.savez(state, **saved)
        spec = SessionSpec(source, seed=world.seed, detail=world.detail, device=world.device.name, state=state)
        serve(spec, ServerOptions(port=port, **options), open_browser=open_browser)


def _source(world: World) -> str:
    """What the session loads: a name of the catalogue, or a file."""
    from viscera.scenarios import catalogue

    if world.entry.file is not None or world.entry is catalogue().get(world.scenario):
        return world.source
    module = sys.modules.get(world.entry.build.__module__)
    file = getattr(module, "__file__", None)
    if file is None or getattr(module, "SCENARIO", None) is not world.entry:
        raise InputError(
            f"the scenario {world.scenario!r} cannot be found again by the session's process.",
            "Put it into a Python file as SCENARIO = Scenario(...), and make the world of that.",
        )
    return str(Path(file).resolve())
