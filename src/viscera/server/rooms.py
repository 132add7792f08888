"""Two rooms: the one where the world is, and one beside it, where a second recording is watched for comparison.

The second room opens when a browser asks for it (`/ws?room=beside&watch=NAME`), has a session of its own, and closes
when nobody has been in it for a while.
"""

from __future__ import annotations

import asyncio

from viscera.server.hub import LOOK_S, Hub
from viscera.session.process import SessionSpec

BESIDE = "beside"
EMPTY_S = 10.0
"""The second room closes after so long without anybody [s]."""


class Rooms:
    """`main` is started and stopped with them."""

    def __init__(self, main: Hub) -> None:
        self.main = main
        self._beside: Hub | None = None
        self._closing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        await self.main.start()

    async def stop(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
        if self._beside is not None:
            await self._beside.stop()
        await self.main.stop()

    async def find(self, room: str, recording: str) -> Hub:
        """The hub of a room; raises `Refusal` where there is no such recording."""
        if room != BESIDE:
            return self.main
        async with self._lock:
            if self._beside is None:
                self._beside = await self._open(self.main.choices.watch(recording, 0.0))
                self._closing = asyncio.create_task(self._close_when_empty(self._beside))
            return self._beside

    async def _open(self, spec: SessionSpec) -> Hub:
        main = self.main
        # Whoever has entered the main room is known here too; trials are kept there alone.
        hub = Hub(spec, main.choices.scenarios, classroom=main.classroom.only_entrance())
        await hub.start()
        return hub

    async def _close_when_empty(self, hub: Hub) -> None:
        empty = 0.0
        while empty < EMPTY_S:
            await asyncio.sleep(LOOK_S)
            empty = 0.0 if hub.viewers else empty + LOOK_S
        self._beside = None
        await hub.stop()
