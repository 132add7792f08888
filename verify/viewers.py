"""A server in a process of its own, and viewers that talk to it as the page does."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import websockets
from websockets.asyncio.client import ClientConnection

from viscera.inputs import ToolInput, Vector3
from viscera.server import messages as m

START_S = 120.0
"""Kernels may have to be compiled first [s]."""

_encode = msgspec.msgpack.Encoder().encode


class _Tag(msgspec.Struct):
    type: str


_tag = msgspec.msgpack.Decoder(_Tag).decode
_known = {
    "welcome": msgspec.msgpack.Decoder(m.Welcome).decode,
    "frame": msgspec.msgpack.Decoder(m.FrameMessage).decode,
    "problem": msgspec.msgpack.Decoder(m.Problem).decode,
}


def _decode(data: str | bytes) -> m.Welcome | m.FrameMessage | m.Problem | None:
    """What a viewer without a picture needs; None for all else, which is not even read."""
    raw = data if isinstance(data, bytes) else data.encode()
    known = _known.get(_tag(raw).type)
    return known(raw) if known else None


@dataclass
class Served:
    process: subprocess.Popen[str]
    url: str

    def health(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}api/health", timeout=5) as answer:
            return json.load(answer)

    def wait_until_running(self) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            health = self.health()
            if health["state"] == "running" and health["tick"] > 0:
                return
            if health["state"] == "crashed":
                raise RuntimeError(health["message"])
            time.sleep(0.1)
        raise RuntimeError(f"the session did not start within {START_S:.0f} s")


@contextlib.contextmanager
def serve(recordings: Path, *arguments: str, scenario: str = "palpation") -> Iterator[Served]:
    """`viscera serve` on a free port, running; ended as Ctrl-C ends it, so that recordings are closed."""
    command = [sys.executable, "-m", "viscera", "serve", scenario, "--port", "0", "--out", str(recordings), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise RuntimeError("viscera serve did not say where it is")
        served = Served(process, found.group())
        served.wait_until_running()
        yield served
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


@dataclass
class Viewer:
    """One browser's side of the wire. Frames are acknowledged, and counted while `counting`."""

    socket: ClientConnection
    client: int
    ack_delay: float = 0.0
    frames: list[tuple[float, int]] = field(default_factory=list)
    """When each frame arrived (monotonic) [s], and its tick."""
    tiles: list[float] = field(default_factory=list)
    """When tiles of pictures and volumes arrived (monotonic) [s]."""
    received: list[tuple[float, int]] = field(default_factory=list)
    """When each message arrived (monotonic) [s], and its length [bytes]."""
    waiting: dict[int, asyncio.Future[float]] = field(default_factory=dict)
    sequence: int = 0

    async def watch(self) -> None:
        async for data in self.socket:
            self.received.append((time.monotonic(), len(data)))
            if _tag(data if isinstance(data, bytes) else data.encode()).type == "tiles":
                self.tiles.append(self.received[-1][0])
            message = _decode(data)
            if isinstance(message, m.FrameMessage):
                now = time.monotonic()
                self.frames.append((now, message.state.tick))
                self._answer_waiting(message, now)
                if self.ack_delay:
                    await asyncio.sleep(self.ack_delay)
                await self.socket.send(_encode(m.FrameAck(number=message.number)))
            elif isinstance(message, m.Problem):
                raise RuntimeError(f"refused: {message.message} {message.hint}")

    async def move(self, position: Vector3, tool: int = 0) -> asyncio.Future[float]:
        """Moves the hand; the future is done, with the time, once a frame shows the state after it."""
        self.sequence += 1
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.waiting[self.sequence] = future
        await self.socket.send(_encode(m.Tool(sequence=self.sequence, input=ToolInput(tool, position))))
        return future

    def rate(self, since: float) -> float:
        """Frames per second from `since` (monotonic) until now."""
        return sum(at >= since for at, _ in self.frames) / (time.monotonic() - since)

    def tile_rate(self, since: float) -> float:
        """Messages with tiles per second from `since` (monotonic) until now."""
        return sum(at >= since for at in self.tiles) / (time.monotonic() - since)

    def bytes_per_second(self, since: float) -> float:
        return sum(size for at, size in self.received if at >= since) / (time.monotonic() - since)

    def _answer_waiting(self, frame: m.FrameMessage, now: float) -> None:
        newest = dict(frame.state.applied).get(self.client, 0)
        for sequence in [number for number in self.waiting if number <= newest]:
            future = self.waiting.pop(sequence)
            if not future.done():
                future.set_result(now)


@contextlib.asynccontextmanager
async def view(served: Served, ack_delay: float = 0.0) -> AsyncIterator[Viewer]:
    """A connected viewer that keeps watching until the block ends."""
    address = served.url.replace("http", "ws", 1) + "ws"
    async with websockets.connect(address, max_size=None, compression=None) as socket:
        await socket.send(_encode(m.Hello(protocol=m.PROTOCOL)))
        data = await socket.recv()
        welcome = _decode(data)
        assert isinstance(welcome, m.Welcome), welcome
        viewer = Viewer(socket, welcome.client, ack_delay)
        task = asyncio.create_task(viewer.watch())
        try:
            yield viewer
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def tick_rate(served: Served, seconds: float) -> float:
    """Ticks per second of wall time over the next `seconds`; 1000 is real time. Blocks: call it in a thread."""
    start, first = time.monotonic(), served.health()["tick"]
    time.sleep(seconds)
    return (served.health()["tick"] - first) / (time.monotonic() - start)
