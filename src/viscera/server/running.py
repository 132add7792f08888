"""The session that runs, and those before it that are still closing their recordings."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

from viscera.session import commands as c
from viscera.session.live import LiveSession
from viscera.session.process import SessionSpec
from viscera.session.snapshot import SharedSnapshot

Tell = Callable[[Any, str], None]
"""Says in which state the session is, and why."""


class Running:
    """`begins` is called before a session starts, `hears` with its reports, `ends` when its process is gone; neither of
    the last two for a session that was replaced."""

    def __init__(
        self,
        spec: SessionSpec,
        begins: Callable[[], None],
        hears: Callable[[c.Report], None],
        ends: Callable[[str], None],
        tell: Tell,
    ) -> None:
        self.spec = spec
        self._begins, self._hears, self._ends, self._tell = begins, hears, ends, tell
        self._session: LiveSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, spec: SessionSpec) -> None:
        self.spec = spec
        self._begins()
        self._tell("starting", "starting")
        try:
            self._session = LiveSession(spec, self._on_report, self._on_exit)
            await self._session.start()
        except (OSError, RuntimeError) as error:
            self._session = None
            self._tell("crashed", f"The session process cannot be started: {error}. Close other programs, and restart.")

    def replace(self, spec: SessionSpec, stalled: bool) -> None:
        """Ends the session in the background while the next one starts; its archive may take a while."""
        old, self._session = self._session, None
        if old is not None and stalled:
            self.in_background(self._begin_after(old, spec))
        elif old is not None and spec.watch is not None:
            self.in_background(self._watch_after(old, spec))
        else:
            if old is not None:
                self.in_background(old.stop())
            self.in_background(self.begin(spec))

    async def stop(self, stalled: bool) -> None:
        """Ends it, its recording closed, and waits for all that are still closing theirs."""
        if self._session is not None:
            await (self._session.kill() if stalled else self._session.stop())
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _begin_after(self, old: LiveSession, spec: SessionSpec) -> None:
        """One that does not listen has to be gone before another one can go on with its recording."""
        self._tell("starting", "starting")
        await old.kill()
        await self.begin(spec)

    async def _watch_after(self, old: LiveSession, spec: SessionSpec) -> None:
        """What is to be watched may be the very recording that this session closes now."""
        self._tell("starting", "closing the recording")
        await old.stop()
        archive = None if spec.watch is None else spec.watch.with_suffix(".h5")
        there = spec.watch is not None and spec.watch.exists()
        await self.begin(spec if there else dataclasses.replace(spec, watch=archive))

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_report(self, session: LiveSession, report: c.Report) -> None:
        if session is self._session:
            self._hears(report)

    def _on_exit(self, session: LiveSession) -> None:
        if session is self._session:
            self._ends(session.how_it_ended())

    # --- the one that runs ---

    @property
    def listens(self) -> bool:
        return self._session is not None and self._session.reader is not None

    @property
    def pid(self) -> int | None:
        return self._session.pid if self._session is not None else None

    def send(self, command: c.Command) -> bool:
        """False where nobody takes it."""
        return self._session is not None and self._session.send(command)

    def newest(self) -> SharedSnapshot | None:
        """What was published last."""
        if self._session is None or self._session.reader is None:
            return None
        return self._session.reader.read()
