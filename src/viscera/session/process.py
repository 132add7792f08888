"""The session process: makes a world, tells the server what is in it, runs it, and closes its recording.

It is spawned by `live.LiveSession`. It ends when it is told to, when the server is gone (the command channel closes),
or when the world cannot go on; in every case the recording is kept.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from viscera.detail import Detail
from viscera.errors import InputError, RecordingError, StateError, VisceraError, users_own
from viscera.gaze.choosing import parse_gaze
from viscera.gaze.looking import Looking
from viscera.haptics.link import Link
from viscera.haptics.port import SessionPort
from viscera.session import commands as c
from viscera.session.archive import convert, read_recording
from viscera.session.catalogue import write_summary
from viscera.session.channel import ChannelClosed, Receiver, Sender
from viscera.session.logfile import Failure, Recording
from viscera.session.loop import Loop
from viscera.session.recorder import Recorder, default_folder, make_header
from viscera.session.replay import DEFAULT_FACTORY, build, feed, is_scored, make_world, other_ground, resume
from viscera.session.snapshot import Segment, SnapshotWriter
from viscera.session.stills import StillWriter
from viscera.session.watching import Watching, marks
from viscera.session.wire import pack
from viscera.timing import TICK
from viscera.view import Scene

EXIT_FAILED = 1
"""Exit code after a `Failed` report."""


@dataclass(frozen=True)
class SessionSpec:
    """What to run. The arguments of `viscera.make`, and where to record."""

    scenario: str
    seed: int = 0
    device: str | None = None
    mesh: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    """What else the scenario is built with."""
    parameters: dict[str, float] = field(default_factory=dict)
    detail: Detail = 1.0
    """`auto` measures first how much this machine carries."""
    cores: int | None = None
    record: bool = True
    recordings: Path | None = None
    """Folder; the user's data folder when there is none."""
    resume: Path | None = None
    """Log of a session that died, to go on from."""
    trainee: str = ""
    """Of such a session: key of whoever began the drill that ran in it."""
    factory: str = DEFAULT_FACTORY
    """`module:function` that makes the world."""
    haptics: Link | None = None
    """To the haptic process, where there is one."""
    gaze: str = ""
    """Whose gaze counts (`gaze.choosing`); empty: the page's pointer or webcam."""
    watch: Path | None = None
    """A recording to be watched, instead of a world to be used."""
    branch: Path | None = None
    """A recording to go on from, at `at`, in a new one: "try again from here"."""
    at: int = 0
    """Where watching or going on begins [tick]."""
    state: Path | None = None
    """A saved state (`numpy.savez` of `World.save_state`) to begin with; such a session is not recorded, since a replay
    would have to begin with it too."""


def main(spec: SessionSpec, commands: Receiver[c.Command], reports: Sender, segment: Segment) -> None:
    """Entry point of the spawned process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the server decides what it means
    faulthandler.enable()  # a native crash says where, in the terminal
    process = _Process(spec, commands, reports, segment)
    try:
        code = process.run()
    except ChannelClosed:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    # Worker threads of a world that broke may hang; everything that matters is on disk by now.
    os._exit(code)


class _Process:
    def __init__(self, spec: SessionSpec, commands: Receiver[c.Command], reports: Sender, segment: Segment) -> None:
        self.spec = spec
        self.commands = commands
        self.reports = reports
        self.segment = segment
        self.world: Any = None
        self.recorder: Recorder | None = None
        self.recording: Recording | None = None
        """That is watched."""
        self.loop: Loop | Watching | None = None
        self.stills: StillWriter | None = None
        self.notice = ""
        self.note = ""
        self.scored = True
        """Of a session that goes on: whether the drill that has ended in it was scored."""

    def run(self) -> int:
        try:
            self._make_world()
            loop = self.loop = self._begin()
            signal.signal(signal.SIGTERM, lambda number, frame: _ask_to_stop(loop, number, frame))
            try:
                loop.run()
            except ChannelClosed:
                self._finish()
                raise
        except ChannelClosed:
            raise
        except Exception as error:
            self._fail(error)
            return EXIT_FAILED
        self.reports.send(c.Ended(self._finish()))
        return 0

    def _make_world(self) -> None:
        spec = self.spec
        self._progress("starting", 0.0)
        if spec.resume is not None:
            resumed = resume(spec.resume, cores=spec.cores, factory=spec.factory, progress=self._progress)
            self.world = resumed.world
            self.note = resumed.note
            self.scored = is_scored(resumed)
            open_log = Recorder.resume if resumed.in_place else Recorder.branch
            self._record(lambda: open_log(spec.resume or Path(), resumed.keep))
            return
        if spec.watch is not None:
            self.recording = read_recording(spec.watch)
            self.world = make_world(self.recording, cores=spec.cores, factory=spec.factory, progress=self._progress)
            self.notice = other_ground(self.recording, self.world)
            return
        if spec.branch is not None:
            self._branch(spec.branch, spec.at)
            return
        self.world = build(
            spec.factory,
            spec.scenario,
            device=spec.device,
            seed=spec.seed,
            mesh=spec.mesh,
            **({"options": spec.options} if spec.options else {}),
            parameters=spec.parameters or None,
            detail=spec.detail,
            cores=spec.cores,
            progress=self._progress,
        )
        if spec.state is not None:
            with np.load(spec.state) as saved:
                self.world.load_state(dict(saved))
            self.notice = (
                f"Shown as it was at {self.world.time:.2f} s. This session is not recorded. {self.notice}".strip()
            )
        elif spec.record:
            device = self.world.device
            self._record(
                lambda: Recorder.create(
                    spec.recordings or default_folder(),
                    make_header(
                        spec.scenario,
                        spec.seed,
                        device.name,
                        device.description,
                        spec.mesh,
                        spec.parameters,
                        self.world.detail,
                        spec.options,
                    ),
                )
            )

    def _branch(self, path: Path, tick: int) -> None:
        """The world of a recording at a moment, which goes on as a new recording with the same beginning."""
        recording = read_recording(path)
        self.world = make_world(recording, cores=self.spec.cores, factory=self.spec.factory, progress=self._progress)
        tick = min(tick, recording.tick)
        before = [one for one in recording.checkpoints if one <= tick]
        if before:
            self.world.load_state(recording.checkpoints[max(before)]())
        feed(self.world, recording, until=tick, progress=self._progress)
        self.note = f"Goes on from {path.name} at {tick * TICK:.2f} s."
        self._record(lambda: Recorder.create(self.spec.recordings or default_folder(), recording.header))
        if self.recorder is not None:
            for at, given in recording.inputs:
                if at <= tick:
                    self.recorder.input(at, given)
            self.recorder.flush(tick)

    def _record(self, open_log: Any) -> None:
        """Records if that is possible; a session that cannot be recorded is still worth having."""
        try:
            self.recorder = open_log()
        except RecordingError as error:
            self.notice = f"This session is not recorded: {error} {self.notice}".strip()

    def _begin(self) -> Loop | Watching:
        """Tells the server what there is, and waits until it has made room for it."""
        specs = self.world.array_specs()
        log = str(self.recorder.path) if self.recorder is not None else ""
        scene = self.world.scene()
        self.reports.send(
            c.Ready(pack(scene), specs, self.world.device.description, log, self.world.tick, self.note, self._notes())
        )
        if self.notice:
            self.reports.send(c.Notice(self.notice))
        early: list[c.Command] = []
        while not any(isinstance(command, c.Begin) for command in early):
            self.commands.wait(1.0)
            early += self.commands.take()
        link = self.spec.haptics
        port = None if link is None else SessionPort(link, [tool.home for tool in scene.instruments])
        writer = SnapshotWriter(self.segment, specs)
        if self.recording is not None:
            self.reports.send(c.Recorded(self.recording.tick, marks(self.recording)))
            return Watching(self.world, self.recording, self.commands, self.reports, writer, self.spec.at)
        if self.recorder is not None:
            self.stills = StillWriter(self.recorder.path, self.world.tick)
            self.stills.scene(self.world.tick, pack(scene))
        loop = Loop(
            self.world, self.commands, self.reports, writer, self.recorder, port, self.stills,
            trainee=self.spec.trainee, scored=self.scored, looking=self._open_gaze(scene),
        )  # fmt: skip
        for command in early:  # whatever came on the heels of `Begin`
            loop.obey(command)
        return loop

    def _open_gaze(self, scene: Scene) -> Looking | None:
        """The source of gaze outside the page. Where it cannot be opened the pointer counts, and the page says why."""
        chosen = parse_gaze(self.spec.gaze)
        try:
            looking = Looking.at(scene, chosen, self.world.tick)
        except InputError as error:
            self.reports.send(c.Gaze(chosen.name, chosen.surface, False, f"{error.message} {error.hint}"[:1000]))
            return None
        if looking is None and chosen.kind != "pointer":
            self.reports.send(c.Notice(f"{scene.scenario} takes no gaze: {chosen.name} is not used."))
        return looking

    def _notes(self) -> tuple[str, ...]:
        """About a mesh of the user's own; of ours there is nothing to say."""
        recorded = None if self.recording is None else self.recording.header.mesh
        return tuple(self.world.notes) if self.spec.mesh or self.spec.options or recorded else ()

    def _progress(self, message: str, fraction: float) -> None:
        if any(isinstance(command, c.Stop) for command in self.commands.take()):
            raise ChannelClosed
        self.reports.offer(c.Progress(message[:500], min(1.0, max(0.0, fraction))))

    def _finish(self) -> str:
        """Closes the recording and makes the archive of it; returns where it is."""
        recorder = self.recorder
        if self.stills is not None:
            self.stills.close()
        if recorder is None:
            return ""
        state_hash = self.world.state_hash()
        scores = {}
        if isinstance(self.loop, Loop):
            self.loop.finish_scoring()
            scores = self.loop.scores
        recorder.finish(self.world.tick, state_hash, scores)
        try:
            archive = convert(recorder.path)
            write_summary(archive)
            return str(archive)
        except (RecordingError, ImportError) as error:
            print(f"viscera: {error}", file=sys.stderr)
            return str(recorder.path)

    def _fail(self, error: Exception) -> None:
        tick = self.world.tick if self.world is not None else 0
        stage = error.stage if isinstance(error, StateError) else ""
        told = error if isinstance(error, VisceraError) else users_own(error)
        if told is not error:
            traceback.print_exc()
        if told is not None:
            message, hint = told.message, told.hint
        else:
            message = f"an unexpected {type(error).__name__}: {error}."
            hint = "This is a bug in viscera; the terminal shows where. Please report it."
        if isinstance(error, StateError):
            tick = error.tick
        log = ""
        if self.recorder is not None:
            log = str(self.recorder.path)
            self.recorder.fail(Failure(tick, stage, message))
        self.reports.send(c.Failed(message, hint, stage, tick, log))


def _ask_to_stop(loop: Loop | Watching, number: int, frame: FrameType | None) -> None:
    loop.stopping = True
