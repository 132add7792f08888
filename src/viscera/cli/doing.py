"""What `run` and `serve` do once their words are read. What they need is imported when they run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from viscera.errors import InputError


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


def serve_world(
    scenario: str,
    *,
    open_page: bool = True,
    out: Path | None = None,
    haptics: list[str] | None = None,
    haptics_file: Path | None = None,
    training: bool = False,
    database: str | None = None,
    **options: Any,
) -> None:
    from viscera.haptics.process import HapticSpec
    from viscera.server.app import serve

    if haptics_file is not None and not haptics:
        raise InputError("--haptics-file without --haptics has no device to place.", "Add --haptics NAME.")
    spec = HapticSpec(tuple(haptics), haptics_file, out / "haptics.json" if out else None) if haptics else None
    if training or database:
        from viscera.training.database import default_address

        options["database"] = database or default_address()
    _check_world(scenario, **options)
    serve(scenario, recordings=out, open_browser=open_page and _has_screen(), haptics=spec, **options)


def _check_world(
    scenario: str,
    *,
    device: str | None = None,
    cores: int | None = None,
    seed: int = 0,
    mesh: Path | None = None,
    parameters: dict[str, float] | None = None,
    detail: Any = "auto",
    **_: Any,
) -> None:
    """Refuse here what the session would refuse: an exit code tells more than a page that says it crashed."""
    from viscera.device import open_device
    from viscera.scenarios import check_seed, find_scenario, make

    find_scenario(scenario)
    check_seed(seed)
    if mesh is not None or parameters:
        from viscera import console
        from viscera.detail import AUTO

        # How much detail there is in the end is found out by the session, which shows it in the page.
        given: dict[str, Any] = {} if detail == AUTO else {"detail": detail}
        with console.progress_bar() as progress:
            made = make(
                scenario, device=device, mesh=mesh, parameters=parameters, cores=cores, progress=progress, **given
            )
            made.close()
    elif device is not None or cores is not None:
        open_device(device, cores)


def _has_screen() -> bool:
    """Whether a browser could be seen. Without a screen Python would open the page in a text browser, right here."""
    if sys.platform.startswith("linux"):
        return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))
    return True


def run_world(scenario: str, seconds: float, out: Path | None, **options: Any) -> dict[str, Any]:
    import viscera
    from viscera import console
    from viscera.headless import record_headless, run_headless

    with console.progress_bar() as progress:
        world = viscera.make(scenario, progress=progress, **options)
        if options.get("mesh") is not None:
            for note in world.notes:
                console.err().print(f"note: {note}")
        try:
            if out is None:
                result = run_headless(world, seconds, world.script, progress=progress)
            else:
                result, written = record_headless(world, seconds, world.script, out, options, progress)
                console.err().print(f"recorded to {written}")
        finally:
            world.close()
    return result.as_json()


def print_result(result: dict[str, Any]) -> None:
    from viscera import console

    stages = result.pop("stages")
    pairs = [
        (key.replace("_", " "), f"{value:.4g}" if isinstance(value, float) else str(value))
        for key, value in result.items()
    ]
    console.print_pairs(pairs + [(f"stage {name}", f"{ms:.3f} ms per frame") for name, ms in stages.items()])
