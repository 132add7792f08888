"""Pictures without a browser: one of 1280 × 720, a film of a recording, and a jump in one.

A film is the world, drawn and compressed beside it; 15 pictures a second make 60 s of film in two minutes. A jump shows
the stored picture of its second: reading, unpacking and handing it over, whatever the recording's length.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from viscera import render
from viscera.bench.registry import Row, benchmark, timed, times_ms
from viscera.device import Device
from viscera.scenarios import make

NAME = "pictures"
FILM_GOAL = 15.0
"""[pictures/s]"""
JUMP_GOAL = 0.5
"""[jumps/s]"""
BEGIN = 2_000
"""Ticks of the scenario's own hand before a picture is taken."""
SECONDS = 20.0
"""Of the recording that is filmed and jumped in."""


def headline(device: Device) -> Row:
    return _picture(device, "bleeding", half=True, repeats=10)


@benchmark(NAME, title="Pictures without a browser: 1280 × 720, films, jumps", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    for name in ("palpation", "bleeding", "incision"):
        for half in (True, False):
            yield _picture(device, name, half, repeats=10 if quick else 60)
    yield from _recording(device, 3.0 if quick else SECONDS)


def _picture(device: Device, name: str, half: bool, repeats: int) -> Row:
    world = make(name, device=device, seed=1)
    for tick in range(BEGIN):
        for one in world.script(tick):
            world.apply(one)
        world.advance()
    world.wait()
    eye = render.make(world.scene(), device=world.device.sibling(device.cores), half=half)
    world.show_now()
    world.write_arrays(eye.arrays)
    frame = world.frame()
    ms = float(np.median(times_ms(lambda: eye.render(frame, copy=False), device, repeats)))
    case = f"{name}, {'every second pixel' if half else 'every pixel'}"
    world.close()
    eye.device.close()
    return timed(NAME, case, eye.width * eye.height, device, ms, goal=FILM_GOAL)


def _recording(device: Device, seconds: float) -> Iterator[Row]:
    from viscera.session.archive import convert
    from viscera.session.recorder import Recorder, make_header
    from viscera.session.stills import Stills, StillWriter
    from viscera.video import film

    with tempfile.TemporaryDirectory(prefix="viscera-") as folder:
        world = make("bleeding", device=device, seed=1)
        recorder = Recorder.create(Path(folder), make_header("bleeding", 1, device.name))
        kept = StillWriter(recorder.path)
        for tick in range(round(1000.0 * seconds)):
            for one in world.script(tick):
                world.apply(one)
                recorder.input(tick, one)
            world.advance()
            kept.see(world)
        kept.close()
        recorder.finish(world.tick, world.state_hash())
        path = convert(recorder.path)
        rooms = {name: np.zeros(spec.shape, spec.kind) for name, spec in world.array_specs().items()}
        world.close()
        stills = Stills(path)
        random = np.random.default_rng(0)

        def jump() -> None:
            number = stills.find(int(random.uniform(0.0, 1000.0 * seconds)))
            still = None if number is None else stills.load(number)
            assert still is not None
            still.write_arrays(rooms)

        times = np.array(times_ms(jump, device, 30))
        extra = {"worst_ms": float(times.max()), "stills": len(stills)}
        yield timed(NAME, "jump to a second, bleeding", 1, device, float(np.median(times)), goal=JUMP_GOAL, extra=extra)
        made = film(path, Path(folder) / "film.mp4", device=device.name)
        ms = 1000.0 * made.took / made.pictures
        extra = {"seconds": made.seconds, "took_s": made.took, "drawing_s": made.drawing}
        yield timed(NAME, "film of bleeding, 1280 × 720", made.pictures, device, ms, goal=FILM_GOAL, extra=extra)
