"""`viscera sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from viscera.errors import StateError

Values = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUES", help="A parameter: FROM:TO:COUNT, or A,B,C, or one value."),
]


def sweep_scenario(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="One of `viscera list`, or a Python file.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The table: .parquet, .csv or .json; a plot goes beside it.")
    ],
    settings: Values = None,
    seeds: Annotated[str, typer.Option("--seeds", help="FROM:END (END not included), or A,B,C.")] = "0",
    measures: Annotated[
        str, typer.Option("--measures", metavar="A,B", help="What goes into the table; all when not given.")
    ] = "",
    seconds: Annotated[float, typer.Option("--seconds", help="Simulated, of each run.")] = 2.0,
    detail: Annotated[float, typer.Option("--detail", help="Times as many masses, texels and particles.")] = 1.0,
    device: Annotated[str, typer.Option("--device", help="cpu or cuda:0, of each run.")] = "cpu",
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes on this machine; one core each.")] = 2,
    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="ADDRESS", help="Run on this Ray cluster (auto, HOST:PORT); local starts one."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on one line.")] = False,
) -> None:
    """Run a scenario with many settings and seeds; what is done already is not done again."""
    from viscera import console
    from viscera.sweeps import Plan, parse_seeds, parse_values, sweep

    plan = Plan(
        scenario,
        seconds,
        dict(parse_values(text) for text in settings or []),
        parse_seeds(seeds),
        tuple(name.strip() for name in measures.split(",") if name.strip()),
        device,
        detail,
    )
    with console.progress_bar() as progress:
        done = sweep(plan, out, workers=workers, address=ray, progress=progress)
    told = {"out": str(done.out), "runs": len(done.rows), "resumed": done.resumed, "failed": len(done.failed)}
    if as_json:
        console.print_json({**told, "plot": str(done.plot or "")})
    else:
        console.print_rows(done.summary)
        console.print_pairs([(name, str(value)) for name, value in told.items()])
    if done.failed:
        first = done.failed[0]
        raise StateError(
            f"{len(done.failed)} of {plan.count} runs failed; run {first.run}: {first.failure}",
            f"Their recordings are in {done.out.with_name(done.out.stem + '.failures')}; run the sweep again to retry.",
            stage="sweep",
            tick=0,
        )
