"""How long a jump in a long recording takes, and how long its film: through a real server, as a page has it.

    python -m verify --only recordings
    python -m verify.jumps [--scenario bleeding] [--seconds 600] [--jumps 30] [--recording FILE]

Records the scenario's own hand for so long (as fast as it goes), or takes a recording that is there; a server shows it,
and a browser without pictures jumps in it to seconds anywhere, one after the other. Two times count: until a picture of
that second is there (a stored one will do), and until the world itself has been computed up to that very tick.
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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Jumps:
    first: np.ndarray
    """From the wish to a picture of that second [s]."""
    whole: np.ndarray
    """From the wish to the world at that very tick [s]."""
    seconds: float
    """Of the recording."""


@figure(
    area=AREA,
    claim="a jump to any second of a ten-minute bleeding, through the server: a picture of that second",
    bound="≤ 2 s",
    needs=["quiet"],
)
def jump_to_a_picture() -> Measured:
    found = _long_jumps()
    longest = float(found.first.max())
    detail = f"the longest of {len(found.first)} jumps in {found.seconds:.0f} s; median {np.median(found.first):.2f} s"
    return Measured(longest, "s", longest <= LONGEST, detail)


@figure(
    area=AREA,
    claim="a jump to any second of a ten-minute bleeding, through the server: the world at that very tick",
    bound="≤ 2 s",
    needs=["quiet"],
)
def jump_to_the_world() -> Measured:
    found = _long_jumps()
    longest = float(found.whole.max())
    detail = f"the longest of {len(found.whole)} jumps in {found.seconds:.0f} s; median {np.median(found.whole):.2f} s"
    return Measured(longest, "s", longest <= LONGEST, detail)


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
def _long_jumps() -> Jumps:
    return jump_about(_recorded(SCENARIO, SECONDS), JUMPS)


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

    def jump(self, tick: int) -> tuple[float, float]:
        """How long it took until a picture of that second, and until the world of that tick, were there [s]."""
        start = time.perf_counter()
        self._send(m.Seek(at=tick / 1000.0))
        first = None
        for shown, stored in self._shown(start + PATIENCE):
            now = time.perf_counter() - start
            if first is None and -16 <= tick - shown <= NEAR:
                first = now
            if shown == tick and not stored:
                return (now if first is None else first), now
        raise AssertionError("unreachable")


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


def jump_about(path: Path, count: int) -> Jumps:
    from viscera.session.archive import read_recording

    last = read_recording(path).tick
    targets = 16 * np.random.default_rng(0).integers(1, last // 16, size=count)
    with watching(path) as page:
        times = np.array([page.jump(int(target)) for target in targets])
    return Jumps(times[:, 0], times[:, 1], last / 1000.0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.jumps", description="How long a jump in a recording takes.")
    parser.add_argument("--scenario", default=SCENARIO)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--jumps", type=int, default=JUMPS)
    parser.add_argument("--recording", type=Path, default=None)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="viscera-") as folder:
        path = chosen.recording or record(chosen.scenario, chosen.seconds, Path(folder))
        found = jump_about(path, chosen.jumps)
    print(
        f"{path.name}: {len(found.first)} jumps in {found.seconds:.0f} s; a picture of that second after "
        f"{np.median(found.first):.3f} s (median), {found.first.max():.3f} s (longest); the world itself after "
        f"{np.median(found.whole):.2f} s, {found.whole.max():.2f} s",
        flush=True,
    )
    return int(found.first.max() > LONGEST)


if __name__ == "__main__":
    sys.exit(main())
