"""Films the operation's own surgeon: docs/images/operation.mp4, and operation.webp, which opens the README.

    python docs/images/operation.py [SEED]

The film is taken while the surgeon operates, in simulated time, with the scope's own view; nothing in it is drawn for
the film. Ends in a check: all goals of the first level are met, and neither file is larger than 8 MB.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import av
from PIL import Image

import viscera
from viscera.inputs import StartDrill
from viscera.timing import TICKS_PER_SECOND
from viscera.video import Easel, Film

HERE = Path(__file__).parent
FILM = Film(800, 450, rate=12.5)
EACH = 2
"""Of the film's pictures, one in so many is in the small one."""
SMALL = (480, 270)
QUALITY = 50
AFTER = 1.0
"""How long the world goes on when the surgeon has ended [s]."""
LARGEST = 8e6
"""Of a file [bytes]."""


def operate(world: Any, easel: Easel) -> None:
    """Its surgeon does what it does, and a picture is taken every so many ticks."""
    each = round(TICKS_PER_SECOND / FILM.rate)
    world.apply(StartDrill())
    last = None
    while last is None or world.tick < last + AFTER * TICKS_PER_SECOND:
        if world.tick % each == 0:
            easel.show(world)
        if world.tick % (2 * TICKS_PER_SECOND) == 0:
            values = world.measure_values()
            told = {name: round(values[name], 2) for name in ("calot_cleared", "secured", "freed", "blood_lost")}
            print(f"{world.time:.0f} s  {told}", flush=True)
        given = list(world.script(world.tick))
        if not given and last is None and world.tick > 0 and world.tick % 8 == 0:
            last = world.tick
        for one in given:
            world.apply(one)
        world.advance()


def shrink(large: Path, small: Path) -> int:
    """The same as a moving picture that pages show by themselves; how many pictures the large one has."""
    count, pictures = 0, []
    with av.open(str(large)) as opened:
        for frame in opened.decode(video=0):
            if count % EACH == 0:
                pictures.append(frame.to_image().resize(SMALL, Image.Resampling.LANCZOS))
            count += 1
    each = round(1000 * EACH / FILM.rate)
    pictures[0].save(small, save_all=True, append_images=pictures[1:], duration=each, loop=0, quality=QUALITY)
    return count


def main(seed: int) -> None:
    large, small = HERE / "operation.mp4", HERE / "operation.webp"
    world = viscera.make("cholecystectomy", device="cpu", seed=seed, cores=1)
    easel = Easel(large, FILM, world)
    try:
        operate(world, easel)
        easel.close()
    finally:
        easel.abandon()
    world.wait()
    values = world.measure_values()
    count, sizes = shrink(large, small), [one.stat().st_size for one in (large, small)]
    print(f"seed {seed}: {count} pictures, {count / FILM.rate:.0f} s, {sizes} bytes", values)
    assert max(sizes) <= LARGEST
    assert all(goal.met(values[goal.measure]) for goal in world.contents.levels[0].goals)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
