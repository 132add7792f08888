"""Films of recordings, made on a browser's wish by a process of their own (`viscera.video`), one at a time."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Literal

import msgspec

from viscera.errors import RecordingError
from viscera.server.wishes import Refusal
from viscera.session.catalogue import find

SUFFIX = ".mp4"


class FilmState(msgspec.Struct):
    """As /api/film tells it."""

    state: Literal["none", "making", "ready", "failed"]
    done: float = 0.0
    """How far it is, 0 to 1."""
    message: str = ""
    """Why it failed."""


class Films:
    """Beside the recordings in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._making = ""
        self._done = 0.0
        self._failed: dict[str, str] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def path(self, recording: str) -> Path:
        """Where the film of a recording is, once it is made."""
        try:
            return find(self._folder, recording).with_suffix(SUFFIX)
        except RecordingError as error:
            raise Refusal("input", error.message, error.hint) from error

    def state(self, recording: str) -> FilmState:
        if recording == self._making:
            return FilmState("making", self._done)
        if self.path(recording).is_file():
            return FilmState("ready", 1.0)
        if recording in self._failed:
            return FilmState("failed", 0.0, self._failed[recording])
        return FilmState("none")

    def start(self, recording: str) -> None:
        """Begins one, unless it is there."""
        out = self.path(recording)
        if self._making and self._making != recording:
            raise Refusal("refused", f"the film of {self._making} is being made.", "Wait until that is done.")
        if self._making == recording or out.is_file():
            return
        self._making, self._done = recording, 0.0
        self._failed.pop(recording, None)
        self._task = asyncio.create_task(self._make(recording, out))

    async def stop(self) -> None:
        """Nobody waits for a film of a server that is gone."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        if self._task is not None:
            await self._task

    async def _make(self, recording: str, out: Path) -> None:
        sources = str(Path(__file__).parents[2])
        paths = os.pathsep.join([sources, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, "-m", "viscera.video", str(self._folder / recording), str(out)]
        why = "its process ended early"
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": paths}
            )
            assert self._process.stdout is not None
            async for line in self._process.stdout:
                word, _, rest = line.decode(errors="replace").strip().partition(" ")
                if word == "failed":
                    why = rest
                elif word.replace(".", "", 1).isdigit():
                    self._done = min(1.0, float(word))
            await self._process.wait()
        except OSError as error:
            why = str(error)
        if not out.is_file():
            self._failed[recording] = why
        self._making = ""
