"""What `run` and `serve` do once their words are read. What they need is imported when they run."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from viscera.errors import InputError

if TYPE_CHECKING:
    from viscera.session.process import SessionSpec


def parse_settings(settings: list[str]) -> dict[str, float]:
    """`stiffness=3.5` as a parameter. Whether it exists and is in range, the world says."""
    parameters: dict[str, float] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set {setting!r} is not KEY=VALUE.", "For example: --set stiffness=3.5")
        try:
            parameters[name.strip()] = float(text)
        except ValueError:
            raise InputError(
                f"--set {name.strip()}: {text!r} is not a number.", f"For example: --set {name.strip()}=3.5"
            ) from None
    return parameters


def parse_options(options: list[str]) -> dict[str, str]:
    """`scan=ct.nii.gz` as an option. Whether the scenario has it, `viscera.make` says."""
    found: dict[str, str] = {}
    for one in options:
        name, equals, text = one.partition("=")
        if not equals or not name.strip() or not text:
            raise InputError(f"--with {one!r} is not NAME=VALUE.", "For example: --with scan=ct.nii.gz")
        found[name.strip()] = text
    return found


def serve_world(
    scenario: str,
    *,
    open_page: bool = True,
    out: Path | None = None,
    haptics: list[str] | None = None,
    haptics_file: Path | None = None,
    training: bool = False,
    database: str | None = None,
    **words: Any,
) -> None:
    """`words` are fields of `SessionSpec` and of `ServerOptions`."""
    from viscera.detail import AUTO
    from viscera.haptics.process import HapticSpec
    from viscera.server.app import serve
    from viscera.server.options import ServerOptions
    from viscera.session.process import SessionSpec

    if haptics_file is not None and not haptics:
        raise InputError("--haptics-file without --haptics has no device to place.", "Add --haptics NAME.")
    spec = HapticSpec(tuple(haptics), haptics_file, out / "haptics.json" if out else None) if haptics else None
    if training or database:
        from viscera.training.database import default_address

        words["database"] = database or default_address()
    named = {one.name: words.pop(one.name) for one in fields(ServerOptions) if one.name in words}
    mesh = words.pop("mesh", None)
    words.setdefault("detail", AUTO)
    world = SessionSpec(scenario, mesh=None if mesh is None else str(mesh), recordings=out, **words)
    _check_world(world)
    open_browser = open_page and _has_screen()
    serve(world, ServerOptions(**named), open_browser=open_browser, haptics=spec)


def _check_world(spec: SessionSpec) -> None:
    """Refuse here what the session would refuse: an exit code tells more than a page that says it crashed."""
    from viscera.device import open_device
    from viscera.gaze.choosing import check_gaze
    from viscera.scenarios import check_seed, find_scenario, make

    find_scenario(spec.scenario)
    check_gaze(spec.gaze)
    check_seed(spec.seed)
    if spec.mesh is not None or spec.parameters or spec.options:
        from viscera import console
        from viscera.detail import AUTO

        # How much detail there is in the end is found out by the session, which shows it in the page.
        given: dict[str, Any] = {} if spec.detail == AUTO else {"detail": spec.detail}
        given |= {
            "device": spec.device,
            "mesh": spec.mesh,
            "options": spec.options,
            "parameters": spec.parameters,
            "cores": spec.cores,
        }
        with console.progress_bar() as progress:
            make(spec.scenario, progress=progress, **given).close()
    elif spec.device is not None or spec.cores is not None:
        open_device(spec.device, spec.cores)


def _has_screen() -> bool:
    """Whether a browser could be seen. Without a screen Python would open the page in a text browser, right here."""
    if sys.platform.startswith("linux"):
        return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))
    return True


def run_world(scenario: str, seconds: float, out: Path | None, gaze: str | None, **options: Any) -> dict[str, Any]:
    """`gaze` looks instead of the scenario's own model (`gaze.choosing`)."""
    import viscera
    from viscera import console
    from viscera.gaze.choosing import parse_gaze
    from viscera.headless import gaze_hand, record_headless, run_headless

    if gaze is not None:
        from viscera.gaze.choosing import check_gaze

        check_gaze(gaze)  # refuse before kernels are compiled
    # What a user's own scenario prints while it runs is no result.
    with contextlib.redirect_stdout(sys.stderr), console.progress_bar() as progress:
        world = viscera.make(scenario, progress=progress, **options)
        if options.get("mesh") is not None or options.get("options"):
            for note in world.notes:
                console.err().print(f"note: {note}")
        try:
            hand, looking = world.script, None
            if gaze is not None:
                looking, hand = gaze_hand(world, parse_gaze(gaze))
            if out is None:
                result = run_headless(world, seconds, hand, progress=progress)
            else:
                result, written = record_headless(world, seconds, hand, out, options, progress)
                console.err().print(f"recorded to {written}")
            if looking is not None:
                if looking.problem:
                    console.err().print(f"gaze: {looking.problem}")
                looking.close()
        finally:
            world.close()
    return result.as_json()


def print_result(result: dict[str, Any]) -> None:
    """A number a line, with its unit."""
    from viscera import console

    units, goals = result.pop("units"), result.pop("goals")
    pairs: list[tuple[str, str]] = []
    for key, value in result.items():
        if not isinstance(value, dict):
            pairs.append((key.replace("_", " "), _in_words(value, units.get(key, ""))))
            continue
        for name, one in value.items():
            if name in ("result", "failed"):  # of a drill: what its score and its goals say
                continue
            words = _in_words(one, units.get(key, {}).get(name, ""))
            if key == "measures" and name in goals:
                words += "  (goal met)" if goals[name] else "  (goal not met)"
            pairs.append((f"{_ONE_OF.get(key, key)} {name}", words))
    console.print_pairs(pairs)


_ONE_OF = {"stages": "stage", "ticks": "tick", "measures": "measure"}


def _in_words(value: object, unit: str) -> str:
    if value is None or value == "":
        return "–"
    return f"{value:.4g} {unit}".rstrip() if isinstance(value, float) else str(value)
