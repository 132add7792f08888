"""The newest frame of a session, encoded once for all browsers: made when there is a new snapshot and somebody who is
ready for it, and not more often than the server can send."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

import msgspec

from viscera.server.client import Client
from viscera.server.encode import exact_message, frame_message
from viscera.server.tiles import TextureStore, TopologyStore
from viscera.session.snapshot import ArraySpecs, SharedSnapshot

FRAMES_PER_SECOND = 700.0
"""Frames sent to all browsers together. Up to eleven get every frame; twenty get 35 a second each. Sending costs the
server about as much per frame as per browser, and the session must not feel it on two cores."""

_encode = msgspec.msgpack.Encoder().encode


class Frames:
    """`clients` are the browsers, `read` gives the newest snapshot, if there is one."""

    def __init__(self, clients: Collection[Client], read: Callable[[], SharedSnapshot | None]) -> None:
        self.bytes = b""
        """The newest, encoded; empty before the first."""
        self.number = 0
        self.tick = 0
        self.textures = TextureStore(0)
        self.topology = TopologyStore(0)
        self._clients = clients
        self._read = read
        self._specs: ArraySpecs = {}
        self._session = 0
        self._fresh = False
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, session: int) -> None:
        """Another session: nothing of the one before is shown."""
        self.bytes = b""
        self.tick = 0
        self._session = session
        self.textures, self.topology = TextureStore(session), TopologyStore(session)
        self._fresh = False

    def set_specs(self, specs: ArraySpecs) -> None:
        self._specs = specs

    def published(self) -> None:
        """The session has a new snapshot."""
        self._fresh = True
        self.pump()

    def pump(self) -> None:
        """Makes the newest frame if there is one to make, someone to send it to, and it is time."""
        if not self._fresh or self._timer is not None or not any(client.wants_frame for client in self._clients):
            return
        wait = self._next - time.monotonic()
        if wait > 0.0:
            self._timer = asyncio.get_running_loop().call_later(wait, self._timer_rang)
            return
        self._make()

    def _timer_rang(self) -> None:
        self._timer = None
        self.pump()

    def _make(self) -> None:
        newest = self._read()
        if newest is None:
            return
        self._fresh = False
        self._next = time.monotonic() + len(self._clients) / FRAMES_PER_SECOND
        self.tick = newest.frame.tick
        self.number += 1
        self.bytes = _encode(frame_message(self.number, self._session, newest, self._specs))
        self.textures.update(self.number, newest.arrays)
        self.topology.update(self.number, newest)
        for client in self._clients:
            client.frame_changed()

    def exact(self) -> bytes | None:
        """The newest snapshot with every bit, encoded; None while there is none."""
        newest = self._read()
        return None if newest is None else _encode(exact_message(self._session, newest))

    def newest_tick(self) -> int:
        newest = self._read()
        return 0 if newest is None else newest.frame.tick

    def newest_factor(self) -> float:
        newest = self._read()
        return 0.0 if newest is None else newest.frame.real_time_factor
