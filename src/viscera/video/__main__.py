"""`python -m viscera.video RECORDING OUT`: a film in a process of its own, for the server. Standard output has one line
per step, the share that is done, and `done` at the end."""

from __future__ import annotations

import contextlib
import os
import sys

from viscera.errors import VisceraError
from viscera.video import film

NICE = 10
"""A world that somebody is in comes first."""


def main(recording: str, out: str) -> int:
    with contextlib.suppress(OSError):
        os.nice(NICE)

    def tell(message: str, share: float) -> None:
        print(f"{share:.4f}", flush=True)

    try:
        film(recording, out, progress=tell)
    except VisceraError as error:
        print(f"failed {error.message} {error.hint}", flush=True)
        return 1
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
