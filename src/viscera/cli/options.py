"""Words of the command line that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Scenario = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="One of `viscera list`, or a Python file of your own.")
]
DeviceName = Annotated[str | None, typer.Option("--device", help="cpu or cuda:0; the best one when not given.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same world, bit for bit.")]
Mesh = Annotated[Path | None, typer.Option("--mesh", help="Your own organ: STL, OBJ, PLY or GLB, closed.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--with", metavar="NAME=VALUE", help="What else a scenario is built with, as barium's scan=CT.nii.gz."
    ),
]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A parameter; repeat for more.")]
DetailText = Annotated[
    str | None,
    typer.Option(
        "--detail",
        metavar="X",
        help="Times as many masses, texels and particles; or auto: as many as keep real time here. "
        "1 when headless, auto with a page.",
    ),
]
Cores = Annotated[int | None, typer.Option("--cores", help="Cores to use on cpu; all of them when not given.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on one line.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where recordings and results go.")]
Host = Annotated[str, typer.Option("--host", help="Address to listen on. Any but this machine's own needs a token.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any free one.")]
Token = Annotated[str | None, typer.Option("--token", envvar="VISCERA_TOKEN", help="What browsers must show.")]
Public = Annotated[
    str, typer.Option("--public", metavar="URL", help="Where a proxy on this machine makes it public: https://name.")
]
Haptics = Annotated[
    list[str] | None,
    typer.Option("--haptics", metavar="NAME", help="A device of `viscera haptics list`; repeat for a second one."),
]
HapticsFile = Annotated[
    Path | None, typer.Option("--haptics-file", metavar="FILE", help="How devices sit in the theatre (TOML).")
]
TrainerToken = Annotated[
    str | None,
    typer.Option(
        "--trainer-token", envvar="VISCERA_TRAINER_TOKEN", help="Who enters with it may take over and see all trials."
    ),
]
KeepRunning = Annotated[
    bool, typer.Option("--keep-running", help="The world goes on while nobody watches; otherwise it rests after 20 s.")
]
Training = Annotated[bool, typer.Option("--training", help="Keep the trials of trainees who say who they are.")]
Gaze = Annotated[
    str | None,
    typer.Option(
        "--gaze",
        metavar="SOURCE",
        help="Whose gaze counts in water that is fine where you look: pointer, trace:FILE, lsl[:NAME], tobii, pupil or "
        "model:SEED.",
    ),
]
Open = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in your browser.")]
