"""The server's side of a session: spawns the process, owns its shared memory, hears its reports, notices its end."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess

from viscera.session import commands as c
from viscera.session import process
from viscera.session.channel import ChannelClosed, Receiver, Sender, open_channel
from viscera.session.snapshot import Segment, SnapshotReader, segment_size

STOP_S = 20.0
"""A session that was told to stop has this long to write its archive [s]."""

STARTING_STOP_S = 0.5
"""One that has not begun, this long [s]."""

KILL_S = 2.0
"""And this long after being asked by the system [s]."""


class LiveSession:
    """A session process, from its start to its end. All methods belong to the thread of the event loop."""

    def __init__(
        self,
        spec: process.SessionSpec,
        on_report: Callable[[LiveSession, c.Report], None],
        on_exit: Callable[[LiveSession], None],
    ) -> None:
        self.spec = spec
        self.reader: SnapshotReader | None = None
        self.exit_code: int | None = None
        self._on_report = on_report
        self._on_exit = on_exit
        self._segment = Segment()
        self._commands: Sender
        self._reports: Receiver[c.Report]
        self._process: BaseProcess | None = None
        self._gone = asyncio.Event()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        self._commands, their_commands = open_channel(c.Command)
        their_reports, self._reports = open_channel(c.Report)
        self._process = multiprocessing.get_context("spawn").Process(
            target=process.main,
            args=(self.spec, their_commands, their_reports, self._segment),
            name=f"viscera-{self.spec.scenario}",
            daemon=True,
        )
        try:
            await asyncio.to_thread(self._process.start)
        finally:
            # Only the child may hold its ends: a closed end is how each side learns that the other is gone.
            their_commands.close()
            their_reports.close()
        asyncio.get_running_loop().add_reader(self._reports.fileno(), self._hear)

    def send(self, command: c.Command) -> bool:
        """Hands a command over without waiting; False when the queue is full or the session is gone."""
        try:
            return not self._gone.is_set() and self._commands.offer(command)
        except ChannelClosed:
            return False

    async def stop(self) -> None:
        """Ends the session, by force if it does not listen."""
        if self._process is None or self._process.pid is None or self._gone.is_set():
            return
        self.send(c.Stop())
        # A world that is still being made has nothing to save, and a compiler does not listen.
        first = STOP_S if self.reader is not None else STARTING_STOP_S
        for force, patience in ((None, first), (self._process.terminate, KILL_S), (self._process.kill, KILL_S)):
            if force is not None:
                force()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), patience)
                return

    async def kill(self) -> None:
        """Ends a session that does not listen; what it recorded so far is kept."""
        if self._process is None or self._process.pid is None or self._gone.is_set():
            return
        self._process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), KILL_S)

    def how_it_ended(self) -> str:
        """For people: `was killed (SIGKILL)`."""
        code = self.exit_code
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"was killed ({signal.Signals(-code).name})"
        return f"exited unexpectedly (code {code})"

    def _hear(self) -> None:
        try:
            reports = self._reports.take()
        except ChannelClosed:
            asyncio.get_running_loop().remove_reader(self._reports.fileno())
            self._ending = asyncio.create_task(self._bury())
            return
        for report in reports:
            if isinstance(report, c.Ready):
                report = self._make_room(report)
            self._on_report(self, report)

    def _make_room(self, ready: c.Ready) -> c.Report:
        """Shared memory for the arrays of the world; without it there is no session."""
        size = segment_size(ready.specs)
        try:
            self._segment.resize(size)
            self.reader = SnapshotReader(self._segment, ready.specs)
        except (OSError, ValueError) as error:
            if self._process is not None:
                self._process.kill()
            message = f"there is no room for {size / 2**20:.0f} MiB of shared memory: {error}."
            return c.Failed(message, "Close other programs, or make the scenario smaller.", "", 0, "")
        self.send(c.Begin())
        return ready

    async def _bury(self) -> None:
        assert self._process is not None
        await asyncio.to_thread(self._process.join, KILL_S)
        self.exit_code = self._process.exitcode
        self._commands.close()
        self._reports.close()
        self._segment.close()
        self._gone.set()
        self._on_exit(self)
