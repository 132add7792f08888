"""How long a jump in a long recording takes: from the wish to a picture of that second, and to the world itself.

    python -m verify.jumps [--scenario bleeding] [--seconds 600] [--jumps 30] [--recording FILE]

Records the scenario's own hand for so long (as fast as it goes), or takes a recording that is there, and jumps in it
as a page does: to seconds anywhere, one after the other. It ends with 1 if a first picture took longer than two
seconds, or was of another second than the one that was asked for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import viscera
from viscera.headless import record_headless
from viscera.session import commands as c
from viscera.session.archive import read_recording
from viscera.session.replay import make_world
from viscera.session.watching import Watching

LONGEST = 2.0
"""Until the first picture [s]."""
NEAR = 1_016
"""A picture of that second is at most a second and a frame earlier [ticks]."""


class Page:
    """What a page would see: when each picture came, and of which tick. It wishes nothing by itself."""

    def __init__(self, world: Any) -> None:
        self.rooms = {name: np.zeros(spec.shape, spec.kind) for name, spec in world.array_specs().items()}
        self.seen: list[tuple[float, int]] = []

    def take(self) -> list[c.Command]:
        return []

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def offer(self, message: object) -> None:
        pass

    send = offer

    def publish(self, frame: Any, write_arrays: Any) -> None:
        write_arrays(self.rooms)
        self.seen.append((time.perf_counter(), frame.tick))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.jumps", description="How long a jump in a recording takes.")
    parser.add_argument("--scenario", default="bleeding")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--jumps", type=int, default=30)
    parser.add_argument("--recording", type=Path, default=None)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="viscera-") as folder:
        path = chosen.recording or record(chosen.scenario, chosen.seconds, Path(folder))
        found = jump_about(path, chosen.jumps)
    first, whole = np.array(found["first"]), np.array(found["whole"])
    print(
        f"{path.name}: {len(first)} jumps in {found['seconds']:.0f} s; first picture after {np.median(first):.3f} s "
        f"(median), {first.max():.3f} s (longest); the world itself after {np.median(whole):.2f} s, {whole.max():.2f} s"
        f"; {found['wrong']} showed another second",
        flush=True,
    )
    return int(first.max() > LONGEST or found["wrong"] > 0)


def record(scenario: str, seconds: float, folder: Path) -> Path:
    world = viscera.make(scenario, device="cpu", seed=1)
    start = time.perf_counter()
    _, path = record_headless(world, seconds, world.script, folder, {}, None)
    world.close()
    print(f"recorded {seconds:.0f} s in {time.perf_counter() - start:.0f} s", flush=True)
    return path


def jump_about(path: Path, count: int) -> dict[str, Any]:
    """Times from the wish to the first picture, and to the world at that very moment [s]."""
    recording = read_recording(path)
    world = make_world(recording)
    page: Any = Page(world)
    watching = Watching(world, recording, page, page, page)
    first, whole, wrong = [], [], 0
    for target in np.random.default_rng(0).integers(0, recording.tick, size=count).tolist():
        page.seen.clear()
        start = time.perf_counter()
        watching.obey(c.Seek(target))
        watching._jump()
        first.append(page.seen[0][0] - start)
        whole.append(page.seen[-1][0] - start)
        wrong += abs(target - page.seen[0][1]) > NEAR or page.seen[-1][1] != target
    world.close()
    return {"first": first, "whole": whole, "wrong": wrong, "seconds": recording.tick / 1000.0}


if __name__ == "__main__":
    sys.exit(main())
