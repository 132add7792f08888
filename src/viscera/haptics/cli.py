"""`viscera haptics`: which devices are there, how well the loop feels, and traces of a hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from viscera.errors import InputError

app = typer.Typer(help="Haptic devices: find them, check them, record them.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on one line.")]
File = Annotated[Path | None, typer.Option("--haptics-file", metavar="FILE", help="How devices sit in the theatre.")]


@app.command("list")
def list_devices(as_json: Json = False, haptics_file: File = None) -> None:
    """The devices there are, and what is missing for those that are not."""
    from dataclasses import asdict

    from viscera import console
    from viscera.haptics.devices.catalogue import find_devices
    from viscera.haptics.mapping import load_mappings

    found = find_devices(load_mappings(haptics_file))
    if as_json:
        console.print_json([asdict(one) for one in found])
    else:
        console.print_pairs([(one.name, _line(one.present, one.title, one.sentence)) for one in found])


def _line(present: bool, title: str, sentence: str) -> str:
    return f"{title}\n{sentence}" if present else f"{title}\nnot there: {sentence}"


@app.command()
def check(
    seconds: Annotated[float, typer.Option("--seconds", help="How long the loop is timed, live.")] = 5.0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write check.json, check.md and check.png here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """How true, quiet, passive and quick the loop is, with a simulated hand against known stiffness."""
    from viscera import console
    from viscera.haptics import check as checking

    if not 0.5 <= seconds <= 3600.0:
        raise InputError(f"seconds = {seconds:g} is not possible.", "Allowed is 0.5 to 3600.")
    with console.progress_bar() as progress:
        result = checking.check(seconds, progress)
    if as_json:
        console.print_json(result.as_json())
    else:
        print(checking.to_markdown(result))
    for path in checking.save(result, out, console.err().print) if out else []:
        console.err().print(f"wrote {path}")
    if not result.passed:
        raise typer.Exit(1)


@app.command()
def trace(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A device of `viscera haptics list`.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to: .csv, .npz or .h5.")],
    seconds: Annotated[float, typer.Option("--seconds", help="How long.")] = 10.0,
    scenario: Annotated[str, typer.Option("--scenario", help="Whose tool the device holds.")] = "palpation",
    haptics_file: File = None,
) -> None:
    """Record where a hand goes, without force; `--haptics trace:FILE` plays it."""
    from viscera import console
    from viscera.haptics.devices.catalogue import make_devices
    from viscera.haptics.devices.trace import TraceRecorder, save_trace
    from viscera.haptics.loop import Beat
    from viscera.haptics.mapping import load_mappings
    from viscera.scenarios import make

    (device,) = make_devices([name], load_mappings(haptics_file))
    recorder = TraceRecorder(device, seconds)
    with console.progress_bar() as progress:
        world = make(scenario, device="cpu", progress=progress)
        homes = [instrument.home for instrument in world.scene().instruments]
        world.close()
    if device.tool >= len(homes):
        raise InputError(f"{name} drives tool {device.tool}; {scenario} has {len(homes)}.", "Count from 0.")
    device.place(homes[device.tool])
    recorder.open()
    try:
        beat = Beat()
        with console.err().status(f"recording {name} for {seconds:g} s"):
            while not recorder.full:
                recorder.read()
                recorder.write((0.0, 0.0, 0.0))
                beat.wait()
        save_trace(recorder.trace(), file)
    finally:
        recorder.close()
    console.err().print(f"wrote {file}")
