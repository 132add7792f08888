"""`python -m viscera.bench`: the benchmarks with NumPy and Warp alone, for a machine with nothing else.

python -m viscera.bench [NAME…] [--device cuda:0] [--quick] [--only CASE]… [--json] [--out DIR]
python -m viscera.bench --stale    saved tables whose code has changed since
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from viscera.errors import VisceraError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m viscera.bench", description="Measure what a step costs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run; all when none is given")
    parser.add_argument("--device", help="cpu or cuda:0; the best one when not given")
    parser.add_argument("--quick", action="store_true", help="the headline of every benchmark, within a minute")
    parser.add_argument("--stale", action="store_true", help="only name saved tables whose code has changed since")
    parser.add_argument("--only", action="append", default=[], metavar="CASE", help="rows whose case is like this")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    parser.add_argument("--out", type=Path, help="write bench.json, bench.md and bench.png here")
    chosen = parser.parse_args(arguments)
    try:
        return _run(chosen)
    except VisceraError as error:
        print(f"{error.message}\n{error.hint}", file=sys.stderr)
        return error.exit_code


def _run(chosen: argparse.Namespace) -> int:
    from viscera.bench import registry, report
    from viscera.bench.sources import our_sources
    from viscera.device import open_device

    def notice(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if chosen.stale:
        print("\n".join(report.stale_lines(our_sources())) or "All saved tables were measured with the code as it is.")
        return 0
    benchmarks = registry.choose(chosen.names)
    device = open_device(chosen.device)
    kept = report.kept_rows(chosen.out, benchmarks, device) if chosen.only and chosen.out else []
    notice(f"{device.description}: {', '.join(one.name for one in benchmarks) or 'no benchmarks'}")
    rows = []
    for row in report.measure(benchmarks, device, chosen.quick, notice, only=chosen.only):
        rows.append(row)
        notice(f"  {row.name} · {row.case} · {row.size}: {report.short(row.ms)} ms{' (headline)' * row.headline}")
    print(json.dumps(report.to_json(rows)) if chosen.json else report.to_markdown(rows))
    if chosen.out:
        for path in report.save(report.joined(kept, rows), device, chosen.out, notice):
            notice(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
