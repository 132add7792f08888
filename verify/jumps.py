"""How long a jump in a long recording takes, and how long its film: through a real server, as a page has it.

    python -m verify.jumps --record FOLDER [--scenario bleeding] [--seconds 600]
    VISCERA_JUMPS=FILE python -m verify --only recordings
    python -m verify.jumps --recording FILE [--jumps 30] [--whole]

The first line records the scenario's own hand for so long, as fast as it goes, and says where; that may run beside
other work. The others take such a recording (or make one): a server shows it, and a browser without pictures jumps in
it to seconds anywhere, one after the other, as soon as it sees a picture of the second that it asked for: a stored one
where computing takes long. With `--whole` it waits until the world itself has been computed up to that very tick.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from websockets.sync.client import ClientConnection, connect

import viscera
from verify.framework import Measured, figure
from viscera.headless import record_headless
from viscera.server import messages as m
from viscera.server.app import Server
from viscera.server.encode import read_message
from viscera.server.options import ServerOptions
from viscera.session.archive import read_recording
from viscera.session.process import SessionSpec

AREA = "recordings"
SCENARIO, SECONDS, JUMPS = "bleeding", 600.0, 30
LONGEST = 2.0
"""Of a jump [s]."""
FILM_SECONDS, FILM_LONGEST = 60.0, 120.0
"""Of a film at 1280 × 720 and 30 pictures a second, and how long it may take [s]."""
NEAR = 1_016
"""A picture of that second is at most a second and a frame earlier [ticks]."""
PATIENCE = 600.0
"""For the server to begin, and for one jump [s]."""


@figure(
    area=AREA,
    claim="a jump to any second of a ten-minute bleeding, through the server: a picture of that second",
    bound="≤ 2 s",
    needs=["quiet"],
)
def jump_to_a_picture() -> Measured:
    path = _recorded(SCENARIO, SECONDS)
    seconds = read_recording(path).tick / 1000.0
    took = jump_about(path, JUMPS)
    longest = float(took.max())
    detail = f"the longest of {len(took)} jumps in {seconds:.0f} s; median {np.median(took):.2f} s"
    return Measured(longest, "s", longest <= LONGEST and seconds >= SECONDS - 0.1, detail)


@figure(
    area=AREA, claim="a film of 60 s of bleeding, 1280 × 720, 30 pictures a second", bound="≤ 120 s", needs=["quiet"]
)
def film_of_a_minute() -> Measured:
    from viscera.video import film

    path = _recorded(SCENARIO, FILM_SECONDS)
    made = film(path, path.with_suffix(".mp4"), device="cpu")
    detail = f"{made.pictures} pictures of {made.seconds:.0f} s; drawing alone {made.drawing:.0f} s"
    return Measured(made.took, "s", made.took <= FILM_LONGEST and made.seconds >= FILM_SECONDS - 0.1, detail)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="viscera-")


@cache
def _recorded(scenario: str, seconds: float) -> Path:
    """`VISCERA_JUMPS`, where it names a recording, saves making one of ten minutes."""
    given = os.environ.get("VISCERA_JUMPS", "")
    if given and seconds == SECONDS:
        return Path(given)
    return record(scenario, seconds, Path(_folder().name) / f"{scenario}-{seconds:.0f}")


def record(scenario: str, seconds: float, folder: Path) -> Path:
    world = viscera.make(scenario, device="cpu", seed=1)
    start = time.perf_counter()
    _, path = record_headless(world, seconds, world.script, folder, {}, None)
    world.close()
    print(f"recorded {seconds:.0f} s in {time.perf_counter() - start:.0f} s", flush=True)
    return path


class Page:
    """A browser without pictures: it answers frames, and knows what was shown when."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._stored = False
        self._send(m.Hello(protocol=m.PROTOCOL))

    def _send(self, message: m.ClientMessage) -> None:
        self._socket.send(msgspec.msgpack.encode(message))

    def _shown(self, end: float) -> Iterator[tuple[int, bool]]:
        """Tick of each picture, and whether it is a stored one."""
        while time.perf_counter() < end:
            data = self._socket.recv(timeout=max(0.01, end - time.perf_counter()))
            message = read_message(data if isinstance(data, bytes) else data.encode())
            if isinstance(message, m.SessionState) and message.watched is not None:
                self._stored = message.watched.stored
            elif isinstance(message, m.FrameMessage):
                self._send(m.FrameAck(number=message.number))
                yield message.state.tick, self._stored
        raise AssertionError("the recording is never shown there")

    def begin(self) -> None:
        for _ in self._shown(time.perf_counter() + PATIENCE):
            break
        self._send(m.Control(action="pause"))

    def jump(self, tick: int, whole: bool) -> float:
        """How long it took until a picture of that second was there, or the world of that very tick [s]."""
        start = time.perf_counter()
        self._send(m.Seek(at=tick / 1000.0))
        for shown, stored in self._shown(start + PATIENCE):
            if (shown == tick and not stored) if whole else -16 <= tick - shown <= NEAR:
                break
        return time.perf_counter() - start


@contextlib.contextmanager
def watching(path: Path) -> Iterator[Page]:
    """A page on a real server that shows the recording."""
    spec = SessionSpec(SCENARIO, device="cpu", watch=path, recordings=path.parent)
    server = Server(spec, [m.ScenarioInfo(name=SCENARIO, title=SCENARIO, summary="")], ServerOptions(port=0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert server.wait_until_ready(30.0)
        with connect(f"ws://127.0.0.1:{server.port}/ws", compression=None, max_size=None) as socket:
            page = Page(socket)
            page.begin()
            yield page
    finally:
        server.stop()
        thread.join(60.0)


def jump_about(path: Path, count: int, whole: bool = False) -> np.ndarray:
    """How long each of so many jumps took [s]."""
    last = read_recording(path).tick
    targets = 16 * np.random.default_rng(0).integers(1, last // 16, size=count)
    with watching(path) as page:
        return np.array([page.jump(int(target), whole) for target in targets])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.jumps", description="How long a jump in a recording takes.")
    parser.add_argument("--scenario", default=SCENARIO)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--jumps", type=int, default=JUMPS)
    parser.add_argument("--recording", type=Path, default=None)
    parser.add_argument("--record", type=Path, default=None, help="only make the recording, in this folder")
    parser.add_argument("--whole", action="store_true", help="until the world itself has been computed")
    chosen = parser.parse_args(arguments)
    if chosen.record is not None:
        print(record(chosen.scenario, chosen.seconds, chosen.record), flush=True)
        return 0
    with tempfile.TemporaryDirectory(prefix="viscera-") as folder:
        path = chosen.recording or record(chosen.scenario, chosen.seconds, Path(folder))
        took = jump_about(path, chosen.jumps, chosen.whole)
    what = "the world itself" if chosen.whole else "a picture of that second"
    print(
        f"{path.name}: {len(took)} jumps; {what} after {np.median(took):.3f} s, {took.max():.3f} s at most", flush=True
    )
    return int(took.max() > LONGEST)


if __name__ == "__main__":
    sys.exit(main())
