"""The command `viscera`. Results go to standard output, everything else to standard error.

Exit codes: 0 done; 2 bad input; 3 no such device; 4 the state broke; 5 a recording cannot be read or written; 6 a
session could not start or died; 70 a mistake of ours. Commands import what they need when they run, so that `--help`
is instant.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from viscera.cli.doing import parse_options, parse_settings, print_result, run_world, serve_world
from viscera.cli.options import (
    Cores,
    DetailText,
    DeviceName,
    Gaze,
    Haptics,
    HapticsFile,
    Host,
    Json,
    KeepRunning,
    Mesh,
    Open,
    Options,
    Out,
    Port,
    Public,
    Scenario,
    Seed,
    Settings,
    Token,
    TrainerToken,
    Training,
)
from viscera.cli.sweep import sweep_scenario
from viscera.errors import InputError, RecordingError
from viscera.haptics.cli import app as haptics_app
from viscera.training.cli import Database, report
from viscera.training.cli import app as trainees_app

DEFAULT_SCENARIO = "palpation"
HEADLESS_SECONDS = 2.0
"""Of a headless run, where nobody says how long."""

app = typer.Typer(
    help="A virtual operating theatre: soft tissue you can touch in the browser.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # rich would read units in brackets, as [s], as its own marks and drop them
    add_completion=False,
)

app.add_typer(haptics_app, name="haptics")
app.add_typer(trainees_app, name="trainees")
app.command("report")(report)
app.command("sweep")(sweep_scenario)


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """A virtual operating theatre: soft tissue you can touch in the browser.

    Without a command, palpation is served and the page opened.
    """
    if version:
        from viscera.machine import viscera_version

        print(f"viscera {viscera_version()}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        serve_world(DEFAULT_SCENARIO)


@app.command("list")
def list_scenarios(as_json: Json = False) -> None:
    """The scenarios there are."""
    from viscera import console
    from viscera.scenarios import catalogue

    entries = list(catalogue().values())
    if as_json:
        console.print_json([{"name": entry.name, "title": entry.title, "summary": entry.summary} for entry in entries])
    else:
        console.print_pairs([(entry.name, f"{entry.title}\n{entry.summary}") for entry in entries])


@app.command()
def run(
    scenario: Scenario,
    headless: Annotated[bool, typer.Option("--headless", help="Without a page, as fast as it goes.")] = False,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="Simulated seconds of a headless run.", show_default="2")
    ] = None,
    device: DeviceName = None,
    seed: Seed = 0,
    mesh: Mesh = None,
    options: Options = None,
    settings: Settings = None,
    detail: DetailText = None,
    cores: Cores = None,
    out: Out = None,
    as_json: Json = False,
    host: Host = "127.0.0.1",
    port: Port = 8420,
    token: Token = None,
    public: Public = "",
    open_page: Open = True,
    haptics: Haptics = None,
    haptics_file: HapticsFile = None,
    trainer_token: TrainerToken = None,
    keep_running: KeepRunning = False,
    training: Training = False,
    database: Database = None,
    gaze: Gaze = None,
) -> None:
    """Run a scenario: with its page, or headless."""
    from viscera.detail import AUTO, parse_detail

    parameters, chosen = parse_settings(settings or []), parse_options(options or [])
    amount = parse_detail(detail or ("1" if headless else AUTO))
    if not headless:
        if as_json:
            raise InputError("--json without --headless has nothing to print.", "Add --headless.")
        if seconds is not None:
            raise InputError(
                "--seconds without --headless has no meaning: a page runs until you close it.", "Add --headless."
            )
        serve_world(
            scenario,
            device=device, seed=seed, mesh=mesh, options=chosen, parameters=parameters, detail=amount, cores=cores,
            out=out,
            host=host, port=port, token=token, public=public, open_page=open_page,
            haptics=haptics, haptics_file=haptics_file, trainer_token=trainer_token, keep_running=keep_running,
            training=training, database=database, gaze=gaze or "",
        )  # fmt: skip
        return
    if haptics or haptics_file is not None:
        raise InputError("--haptics has no hand to hold in a headless run.", "Leave --headless out.")
    from viscera import console
    from viscera.headless import tick_count

    length = HEADLESS_SECONDS if seconds is None else seconds
    tick_count(length)  # refuse before kernels are compiled
    result = run_world(
        scenario, length, out, gaze,
        device=device, seed=seed, mesh=mesh, options=chosen, parameters=parameters, detail=amount, cores=cores,
    )  # fmt: skip
    if as_json:
        console.print_json(result)
    else:
        print_result(result)


@app.command("serve")
def serve_page(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="What to begin with.")] = DEFAULT_SCENARIO,
    host: Host = "127.0.0.1",
    port: Port = 8420,
    token: Token = None,
    public: Public = "",
    device: DeviceName = None,
    seed: Seed = 0,
    detail: DetailText = None,
    cores: Cores = None,
    out: Out = None,
    haptics: Haptics = None,
    haptics_file: HapticsFile = None,
    trainer_token: TrainerToken = None,
    keep_running: KeepRunning = False,
    training: Training = False,
    database: Database = None,
    gaze: Gaze = None,
) -> None:
    """Serve the page without opening it, for other browsers and other machines."""
    from viscera.detail import AUTO, parse_detail

    serve_world(
        scenario,
        device=device, seed=seed, detail=parse_detail(detail or AUTO), cores=cores, out=out,
        host=host, port=port, token=token, public=public, open_page=False,
        haptics=haptics, haptics_file=haptics_file, trainer_token=trainer_token, keep_running=keep_running,
        training=training, database=database, gaze=gaze or "",
    )  # fmt: skip


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording: .h5, or the log of a session that died.")],
    device: DeviceName = None,
    as_json: Json = False,
) -> None:
    """Play a recording again and check that it gives the same world."""
    from viscera import console
    from viscera.session.replay import replay_report

    with console.progress_bar() as progress:
        done = replay_report(file, device, progress=progress)
    result = {
        "file": str(file),
        "scenario": done.recording.header.scenario,
        "device": done.world.device.name,
        "recorded_on": done.recording.header.device,
        "seed": done.recording.header.seed,
        "steps": done.recording.tick,
        "state_hash": done.state_hash,
        "same": done.same,
        "note": done.note,
        "trials": [one.as_json() for one in done.scores],
        "scores_same": [one.values() for one in done.scores] == [one.values for one in done.recording.trials],
    }
    done.world.close()
    if as_json:
        console.print_json(result)
    else:
        trials = result.pop("trials")
        console.print_pairs([(key.replace("_", " "), str(value)) for key, value in result.items()])
        for trial in trials:
            console.print_pairs(
                [("", "")]
                + [(key, f"{value:.4g}" if isinstance(value, float) else str(value)) for key, value in trial.items()]
            )
    if done.recording.damage:
        raise RecordingError(f"{file} is damaged: {done.recording.torn_bytes} bytes of it are lost.", done.note)
    if done.same is False and result["device"] == result["recorded_on"]:
        raise RecordingError(f"{file} does not replay to what was recorded.", f"It was {done.note}.")


@app.command("video")
def film_recording(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording: .h5, or the log of a session that died.")],
    out: Annotated[Path, typer.Option("--out", metavar="NAME.mp4", help="Where the film goes: .mp4 or .webm.")],
    size: Annotated[str, typer.Option("--size", metavar="WxH", help="Of the pictures [pixel].")] = "1280x720",
    rate: Annotated[float, typer.Option("--rate", help="Pictures per second.")] = 30.0,
    begin: Annotated[float, typer.Option("--from", help="Where it begins [s].")] = 0.0,
    end: Annotated[
        float | None, typer.Option("--to", help="Where it ends [s]; with the recording if not given.")
    ] = None,
    device: DeviceName = None,
    as_json: Json = False,
) -> None:
    """Film a recording, with the measures on it; needs no browser."""
    from viscera import console
    from viscera.video import Film, film

    width, _, height = size.partition("x")
    if not (width.isdigit() and height.isdigit()):
        raise InputError(f"--size {size!r} is not WIDTHxHEIGHT.", "For example: --size 1280x720")
    what = Film(int(width), int(height), rate, begin, end)
    with console.progress_bar() as progress:
        result = film(file, out, what, device=device, progress=progress).as_json()
    if as_json:
        console.print_json(result)
    else:
        console.print_pairs(
            [(key, f"{value:.4g}" if isinstance(value, float) else str(value)) for key, value in result.items()]
        )


@app.command("xray")
def write_xray(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A recording: .h5, or the log of a session that died.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="NAME", help="Ends in .png, .apng, .webm, .mp4, .dcm (DICOM XA) or .h5 (in space)."
        ),
    ],
    begin: Annotated[float, typer.Option("--from", help="Where it begins [s].")] = 0.0,
    end: Annotated[
        float | None, typer.Option("--to", help="Where it ends [s]; with the recording if not given.")
    ] = None,
    device: DeviceName = None,
    as_json: Json = False,
) -> None:
    """X-ray pictures of a recording as PNG, video or DICOM; or wall, film and particles as HDF5."""
    from viscera import console
    from viscera.video.xrays import write_xrays

    with console.progress_bar() as progress:
        result = write_xrays(file, out, begin=begin, end=end, device=device, progress=progress).as_json()
    if as_json:
        console.print_json(result)
    else:
        console.print_pairs(
            [(key, ", ".join(one) if isinstance(one, list) else str(one)) for key, one in result.items()]
        )


@app.command("mesh")
def look_at_mesh(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="STL, OBJ, PLY or GLB.")],
    unit: Annotated[str | None, typer.Option("--unit", help="mm, cm, m or in; guessed when not given.")] = None,
    most: Annotated[
        int | None, typer.Option("--simplify", metavar="N", help="Give it at most so many triangles.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="NEW.stl", help="Write it here, in mm.")] = None,
) -> None:
    """What a mesh is, what is wrong with it, and, if you like, one with fewer triangles or in another unit."""
    from viscera.geometry.inspect import inspect_mesh
    from viscera.geometry.mesh import load_mesh, save_stl
    from viscera.geometry.simplify import simplify

    if out is None and most is not None:
        raise InputError("--simplify without --out has nowhere to go.", "Add --out NEW.stl.")
    mesh = load_mesh(file, unit)
    if most is not None:
        mesh = simplify(mesh, most)
    print(inspect_mesh(mesh))
    if out is not None:
        save_stl(out, mesh)


@app.command()
def doctor(as_json: Json = False) -> None:
    """What is here, what is missing, and what to do about it."""
    from viscera import console
    from viscera.doctor import examine, print_facts

    facts = examine()
    if as_json:
        console.print_json(facts.as_json())
    else:
        print_facts(facts, console.out())
    if not facts.can_run:
        raise typer.Exit(3)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="All of them when none is given.")
    ] = None,
    device: DeviceName = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The headline row of every benchmark, within a minute.")
    ] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only name saved tables whose code has changed since.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="CASE", help='Rows whose case is like this, as "river" or "*, headless".'),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array of rows.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write JSON, a table and a plot here; --only joins what is there."),
    ] = None,
) -> None:
    """Measure what a step costs, beside what the documents report and what we aim for."""
    from viscera import console
    from viscera.bench import registry, report
    from viscera.bench.sources import our_sources
    from viscera.device import open_device

    if stale:
        print("\n".join(report.stale_lines(our_sources())) or "All saved tables were measured with the code as it is.")
        return
    stderr = console.err()
    benchmarks = registry.choose(names or [])
    chosen = open_device(device)
    kept = report.kept_rows(out, benchmarks, chosen) if only and out else []
    with console.progress_bar() as progress:
        rows = list(report.measure(benchmarks, chosen, quick, stderr.print, progress, only or []))
    if as_json:
        console.print_json(report.to_json(rows))
    else:
        print(report.to_markdown(rows))
    written = report.save(report.joined(kept, rows), chosen, out, stderr.print) if out else []
    for path in written:
        stderr.print(f"wrote {path}")


def main() -> None:
    """The entry point. A person never sees a traceback unless VISCERA_DEBUG asks for it."""
    try:
        app()
    except BrokenPipeError:
        # The reader (`| head`) has what it wanted; Python would complain again when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        from viscera import console

        if os.environ.get(console.DEBUG_VARIABLE):
            raise
        sys.exit(console.complain(error))
