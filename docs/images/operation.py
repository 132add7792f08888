"""Films the operation's own surgeon: docs/images/operation.mp4, and operation.webp, which opens the README.

    viscera run cholecystectomy --headless --seconds 48 --out recordings
    python docs/images/operation.py recordings/NAME.h5

The film is of a recording, played again bit for bit; nothing in it is drawn for the film. Ends in a check: neither file
is larger than 8 MB.
"""

from __future__ import annotations

import sys
from pathlib import Path

import av
from PIL import Image

from viscera.video import Film, film

HERE = Path(__file__).parent
WIDTH, HEIGHT, RATE = 960, 540, 20.0
EACH = 2
"""Of the film's pictures, one in so many is in the small one."""
SMALL = (480, 270)
QUALITY = 55
LARGEST = 8e6
"""Of a file [bytes]."""


def shrink(large: Path, small: Path) -> None:
    """The same as a moving picture that pages show by themselves."""
    with av.open(str(large)) as opened:
        frames = (frame.to_image() for frame in opened.decode(video=0))
        pictures = [one.resize(SMALL, Image.Resampling.LANCZOS) for k, one in enumerate(frames) if k % EACH == 0]
    pictures[0].save(
        small, save_all=True, append_images=pictures[1:], duration=round(1000 * EACH / RATE), loop=0, quality=QUALITY
    )


def main(recording: str) -> None:
    large, small = HERE / "operation.mp4", HERE / "operation.webp"
    made = film(recording, large, Film(WIDTH, HEIGHT, RATE), progress=lambda words, _: print(words, flush=True))
    shrink(large, small)
    sizes = [one.stat().st_size for one in (large, small)]
    print(f"{made.pictures} pictures, {made.seconds:.0f} s, {sizes} bytes")
    assert max(sizes) <= LARGEST


if __name__ == "__main__":
    main(sys.argv[1])
