"""The one place where browsers and the session meet.

The hub owns the session (starts, switches, restarts it, notices its death) and the newest state, scene and frame, each
encoded once for all browsers. A frame is made only when there is a new snapshot and a browser that is ready for it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec

from viscera import __version__
from viscera.errors import RecordingError
from viscera.scores import Score
from viscera.server import messages as m
from viscera.server.classroom import Classroom
from viscera.server.client import Client
from viscera.server.encode import exact_message, frame_message, scene_message
from viscera.server.hands import Hands
from viscera.server.status import State, Status, advice, at_time
from viscera.server.tiles import TextureStore, TopologyStore
from viscera.server.wishes import (
    Refusal,
    control,
    detail_of,
    drill,
    in_words,
    kept_where,
    name_of,
    seed_of,
    tick_of,
    trainee_of,
)
from viscera.session import commands as c
from viscera.session.catalogue import find
from viscera.session.channel import TooLarge
from viscera.session.live import LiveSession
from viscera.session.process import SessionSpec
from viscera.session.recorder import default_folder
from viscera.session.snapshot import ArraySpecs, SharedSnapshot

FRAMES_PER_SECOND = 700.0
"""Frames sent to all browsers together. Up to eleven get every frame; twenty get 35 a second each. Sending costs the
server about as much per frame as per browser, and the session must not feel it on two cores."""

MAX_CLIENTS = 64

SILENCE_S = 3.0
"""A session that runs says something twice a second; one that was silent for this long is stalled [s]."""

UNWATCHED_S = 20.0
"""After so long without a viewer the world rests [s]."""

LOOK_S = 0.5
"""Between two looks at it [s]."""

_encode = msgspec.msgpack.Encoder().encode


class Hub:
    """All browsers and their session."""

    def __init__(
        self,
        spec: SessionSpec,
        scenarios: list[m.ScenarioInfo],
        own: str | None = None,
        *,
        trainer_token: str = "",
        keep_running: bool = False,
        classroom: Classroom | None = None,
    ) -> None:
        """`own` is what people call `spec.scenario`, where that is a file of theirs; with `keep_running` the world does
        not rest while nobody watches."""
        self.trainer_token = trainer_token
        self.classroom = classroom or Classroom(None)
        self._keep_running = keep_running
        self._hands = Hands()
        self._watched = time.monotonic()
        """When somebody last watched [s]."""
        self._resting = False
        """Whether the world was paused because nobody watches."""
        self.scenarios = scenarios
        self._own = own or spec.scenario
        self.status = Status()
        self.state_bytes = b""
        self.scene_bytes = b""
        self.frame_bytes = b""
        self.frame_number = 0
        self.textures = TextureStore(0)
        self.topology = TopologyStore(0)
        self._specs: ArraySpecs = {}
        self.tick = 0
        self.session_number = 0
        self._first = spec
        self._spec = spec
        self._session: LiveSession | None = None
        self._device = ""
        self._log = ""
        self._kept: int | None = None
        self._score: m.TrialScore | None = None
        self._watched_recording: m.Watched | None = None
        """The recording that is shown, where it is one."""
        """Of the trial that ended last."""
        """The tick at which the recording stopped, where it has."""
        self._heard = time.monotonic()
        """When the session last said anything [s]."""
        self._before_stall: State = "running"
        self._to_forget: set[int] = set()
        """Browsers that are gone, of which the session does not know yet."""
        self._clients: set[Client] = set()
        self._client_count = 0
        self._fresh = False
        self._next_frame = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    # --- life ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())
        await self._begin(self._spec)

    async def stop(self) -> None:
        """Ends the session, its recording closed, and waits for sessions that are still closing theirs."""
        self._closing = True
        self._watching.cancel()
        self._tell("ended", "The server has stopped. Start it again, then reload this page.")
        if self._session is not None:
            await (self._session.kill() if self.status.state == "stalled" else self._session.stop())
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _begin(self, spec: SessionSpec) -> None:
        self._spec = spec
        self.session_number += 1
        self.scene_bytes = self.frame_bytes = b""
        self.textures = TextureStore(self.session_number)
        self.topology = TopologyStore(self.session_number)
        self._fresh = self._resting = False
        self._watched_recording = None
        self._watched = time.monotonic()
        self._score = None
        self._log = str(spec.resume or "")
        self._kept = None
        self._to_forget.clear()
        self.tick = 0
        self.status = Status(message="starting")
        self._tell("starting", "starting")
        try:
            self._session = LiveSession(spec, self._on_report, self._on_exit)
            await self._session.start()
        except (OSError, RuntimeError) as error:
            self._session = None
            self._tell("crashed", f"The session process cannot be started: {error}. Close other programs, and restart.")

    def _replace(self, spec: SessionSpec) -> None:
        """Ends the session in the background while the next one starts; its archive may take a while."""
        old, self._session = self._session, None
        if old is not None and self.status.state == "stalled":
            self._in_background(self._begin_after(old, spec))
        elif old is not None and spec.watch is not None:
            self._in_background(self._watch_after(old, spec))
        else:
            if old is not None:
                self._in_background(old.stop())
            self._in_background(self._begin(spec))
        self.status = Status(message="starting")

    async def _begin_after(self, old: LiveSession, spec: SessionSpec) -> None:
        """One that does not listen has to be gone before another one can go on with its recording."""
        self._tell("starting", "starting")
        await old.kill()
        await self._begin(spec)

    async def _watch_after(self, old: LiveSession, spec: SessionSpec) -> None:
        """What is to be watched may be the very recording that this session closes now."""
        self._tell("starting", "closing the recording")
        await old.stop()
        archive = None if spec.watch is None else spec.watch.with_suffix(".h5")
        there = spec.watch is not None and spec.watch.exists()
        await self._begin(spec if there else dataclasses.replace(spec, watch=archive))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- browsers ------------------------------------------------------------------------------------------------

    @property
    def viewers(self) -> int:
        return len(self._clients)

    def admit(self) -> int | None:
        """The number of a new browser, or None when there are too many."""
        if len(self._clients) >= MAX_CLIENTS:
            return None
        self._client_count += 1
        return self._client_count

    def welcome(self, client: Client) -> m.Welcome:
        return m.Welcome(
            protocol=m.PROTOCOL,
            version=__version__,
            client=client.number,
            device=self._device,
            scenarios=self.scenarios,
            trainer=client.trainer,
            training=self.classroom.there,
        )

    def join(self, client: Client) -> None:
        self._clients.add(client)
        self._hands.join(client.number)
        if self._resting:
            self._resting = not self._send(c.Resume())
        self._tell()
        if self._score is not None:
            client.answer(self._score)
        client.frame_changed()

    def leave(self, client: Client) -> None:
        self._clients.discard(client)
        self._hands.leave(client.number)
        self._watched = time.monotonic()
        self._to_forget.add(client.number)
        self._forget()
        self._tell()

    def _forget(self) -> None:
        """Tells the session who is gone. A full queue does not excuse it from that: their tools are still pressed."""
        if self._session is not None and self._session.reader is not None:
            self._to_forget = {number for number in self._to_forget if not self._send(c.Forget(number))}

    def handle(self, client: Client, message: m.ClientMessage) -> None:
        """What a browser wants, done or refused."""
        try:
            self._act(client, message)
        except Refusal as refusal:
            client.answer(refusal.problem)

    def _act(self, client: Client, message: m.ClientMessage) -> None:
        if isinstance(message, m.Hand):
            self._hand_over(client, message)
        elif isinstance(message, m.Trainee):
            client.trainee = trainee_of(message.name)
        elif isinstance(message, m.Tool):
            if not self._hands.may_act(client.number):
                return  # a pointer that hovers over the page of one who watches
            # Only a haptic device is where its hand is without lag.
            self._send(c.MoveTool(client.number, message.sequence, dataclasses.replace(message.input, direct=False)))
        elif isinstance(message, m.Hello):
            raise Refusal("refused", "hello was said already.", "Once is enough.")
        else:
            self._hands.check(client.number)
            self._change(client, message)

    def _hand_over(self, client: Client, message: m.Hand) -> None:
        before = self._hands.act(client.number, message.action, message.client, client.trainer)
        if before != self._hands.holder:
            self._send(c.Forget(before))  # what they held leaves the body
        self._tell()

    def _change(self, client: Client, message: m.ClientMessage) -> None:
        """What changes the world or the session for all; the holder's alone."""
        if isinstance(message, m.SetParameter):
            self._command(c.SetValue(client.number, name_of(message.name, "parameter"), message.value))
        elif isinstance(message, m.SetTable):
            rows = tuple(map(tuple, message.rows))
            self._command(c.SetRows(client.number, name_of(message.name, "table"), rows))
        elif isinstance(message, m.Control):
            self._command(control(client.number, message, 1.0 if self._watched_recording is None else m.MAX_SPEED))
        elif isinstance(message, m.Drill):
            self._command(drill(client.number, message))
        elif isinstance(message, m.Choose):
            self._choose(message)
        elif isinstance(message, m.Watch):
            self._watch_recording(message)
        elif isinstance(message, m.Seek):
            self._seek(message)
        elif isinstance(message, m.Restart):
            self._restart()

    def _choose(self, message: m.Choose) -> None:
        if self.status.state == "starting":
            raise Refusal("refused", "a session is starting already.", "Wait until it runs, then choose again.")
        known = [scenario.name for scenario in self.scenarios]
        if message.scenario not in known:
            raise Refusal("input", f"scenario {message.scenario!r} is not known.", f"There are: {', '.join(known)}.")
        seed = seed_of(message.seed)
        detail = detail_of(message.detail) if message.detail else self._spec.detail
        # The mesh and the parameters from the command line were meant for the scenario named beside them.
        if message.scenario == self._own:
            self._replace(dataclasses.replace(self._first, seed=seed, detail=detail, resume=None, state=None))
        else:
            plain = dataclasses.replace(self._first, mesh=None, parameters={}, resume=None, state=None)
            self._replace(dataclasses.replace(plain, scenario=message.scenario, seed=seed, detail=detail))

    @property
    def recordings(self) -> Path:
        """Where recordings are."""
        return self._first.recordings or default_folder()

    def _watch_recording(self, message: m.Watch) -> None:
        if self.status.state == "starting":
            raise Refusal("refused", "a session is starting already.", "Wait until it runs, then choose again.")
        try:
            path = find(self.recordings, message.recording)
        except RecordingError as error:
            raise Refusal("input", error.message, error.hint) from error
        plain = dataclasses.replace(self._first, mesh=None, parameters={}, resume=None, state=None, haptics=None)
        self._replace(dataclasses.replace(plain, watch=path, at=tick_of(message.at), record=False))

    def _seek(self, message: m.Seek) -> None:
        if self._spec.watch is None:
            raise Refusal("refused", "what is shown is no recording.", "Choose one of the list first.")
        if not message.again:
            self._command(c.Seek(tick_of(message.at)))
            return
        spec = dataclasses.replace(self._spec, watch=None, branch=self._spec.watch, at=self.newest_tick(), record=True)
        self._replace(spec)

    def _restart(self) -> None:
        if self.status.state not in ("crashed", "ended", "stalled"):
            raise Refusal("refused", "the session is not stopped.", "Use reset to begin again.")
        resume = Path(self._log) if self._log else None
        self._replace(dataclasses.replace(self._spec, resume=resume))

    def _command(self, command: c.Command) -> None:
        if self.status.state not in ("running", "paused"):
            raise Refusal("refused", "no session is running.", "Wait for it, or press Restart.")
        try:
            taken = self._send(command)
        except TooLarge:
            raise Refusal("input", "this is more than a session takes at once.", "Send fewer numbers.") from None
        if not taken:
            raise Refusal("refused", "the session does not keep up with commands.", "Try again in a moment.")

    def _send(self, command: c.Command) -> bool:
        return self._session is not None and self._session.send(command)

    # --- the session ---------------------------------------------------------------------------------------------

    def _on_report(self, session: LiveSession, report: c.Report) -> None:
        if session is not self._session:
            return  # an old one that is still closing its recording
        self._heard = time.monotonic()
        if self.status.state == "stalled":
            self._tell(self._before_stall)
        if isinstance(report, c.Published):
            self._fresh = True
            self.pump()
        elif isinstance(report, c.Progress):
            self.status.progress = report.fraction
            self._tell("starting", report.message)
        elif isinstance(report, c.Ready):
            self._device, self._log, self._specs = report.device, report.log, report.specs
            self._new_scene(report.scene)
            self._watched = time.monotonic()
            self._tell("running", report.note)
        elif isinstance(report, c.Recorded):
            name = "" if self._spec.watch is None else self._spec.watch.name
            moments = [(tick / 1000.0, what) for tick, what in report.marks]
            self._watched_recording = m.Watched(recording=name, seconds=report.tick / 1000.0, marks=moments)
            self._tell()
        elif isinstance(report, c.Source):
            if self._watched_recording is not None:
                shown = self._watched_recording
                self._watched_recording = msgspec.structs.replace(shown, stored=report.stored, done=report.done)
                self._tell()
        elif isinstance(report, c.SceneChanged):
            self._new_scene(report.scene)
        elif isinstance(report, c.Pace):
            self.status.speed = report.speed
            self._tell("paused" if report.paused else "running")
        elif isinstance(report, c.Notice):
            self.status.notice = report.text
            self._kept = report.kept
            self._tell()
        elif isinstance(report, c.Scored):
            self._score = m.TrialScore(session=self.session_number, score=report.score)
            for client in self._clients:
                client.answer(self._score)
            self._in_background(self._keep_trial(report.score))
        elif isinstance(report, c.Alive):
            pass
        elif isinstance(report, c.Refused):
            for client in self._clients:
                if client.number == report.client:
                    client.problem("input", report.message, report.hint)
        elif isinstance(report, c.Failed):
            self._log = report.log
            where = f" in stage {report.stage}" if report.stage else ""
            when = f" at tick {report.tick}" if report.tick else ""
            stopped = f"The session stopped{where}{when}: {report.message} {report.hint}"
            self._tell("crashed", f"{stopped} {advice(self._log, self._kept)}")
        else:
            self._log = ""
            self._tell("ended", f"The session has ended. {kept_where(report.recording)}")

    async def _keep_trial(self, score: Score) -> None:
        """Of whoever holds the instruments, who hears where they stand."""
        holder = next((client for client in self._clients if client.number == self._hands.holder), None)
        if holder is None:
            return
        try:
            told = await self.classroom.keep(holder.trainee, score, self._log, self.tick, self.session_number)
        except Exception as error:  # whatever a database says: the world goes on
            holder.problem(
                "refused", f"the trial could not be kept: {error}.", "Its recording has it; tell the trainer."
            )
            return
        if told is not None:
            holder.answer(told)

    def _on_exit(self, session: LiveSession) -> None:
        if session is not self._session or self._closing:
            return
        if self.status.state in ("starting", "running", "paused", "stalled"):
            ended = f"The session process {session.how_it_ended()}{at_time(self.tick)}."
            self._tell("crashed", f"{ended} {advice(self._log, self._kept)}")

    async def _watch(self) -> None:
        """Notices that the session says nothing any more, though its process is there."""
        looked = time.monotonic()
        while True:
            await asyncio.sleep(LOOK_S)
            self._forget()
            now = time.monotonic()
            if now - looked > 2.0 * LOOK_S:
                self._heard = now  # it is we who slept, and have not listened
            looked = now
            self._rest_unwatched(now)
            silent = now - self._heard
            if self.status.state in ("running", "paused") and silent > SILENCE_S:
                self._before_stall = self.status.state
                text = f"The session has not answered for {silent:.0f} s; it stands{at_time(self.tick)}."
                self._tell("stalled", f"{text} Wait, or end it: {advice(self._log, self._kept)}")

    def _rest_unwatched(self, now: float) -> None:
        """A world that nobody watches rests; a hand at a haptic device watches too."""
        if self._clients or self._keep_running or self._spec.haptics is not None:
            self._watched = now
        elif self.status.state == "running" and not self._resting and now - self._watched > UNWATCHED_S:
            self._resting = self._send(c.Pause())

    def _new_scene(self, scene: bytes) -> None:
        self.scene_bytes = _encode(scene_message(scene, self.session_number, self._device, in_words(self._spec.detail)))
        for client in self._clients:
            client.scene_changed()

    def _tell(self, state: State | None = None, message: str | None = None) -> None:
        self.status.change(state, message)
        self.state_bytes = self.status.encoded(
            viewers=len(self._clients),
            holder=self._hands.holder,
            asking=self._hands.asking,
            watched=self._watched_recording,
        )
        for client in self._clients:
            client.state_changed()

    # --- frames --------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Makes the newest frame if there is one to make, someone to send it to, and it is time."""
        if not self._fresh or self._timer is not None or not any(client.wants_frame for client in self._clients):
            return
        wait = self._next_frame - time.monotonic()
        if wait > 0.0:
            self._timer = asyncio.get_running_loop().call_later(wait, self._timer_rang)
            return
        self._make_frame()

    def _timer_rang(self) -> None:
        self._timer = None
        self.pump()

    def _make_frame(self) -> None:
        newest = self._newest()
        if newest is None:
            return
        self._fresh = False
        self._next_frame = time.monotonic() + len(self._clients) / FRAMES_PER_SECOND
        self.tick = newest.frame.tick
        self.frame_number += 1
        frame = frame_message(self.frame_number, self.session_number, newest, self._specs)
        self.frame_bytes = _encode(frame)
        self.textures.update(self.frame_number, newest.arrays)
        self.topology.update(self.frame_number, newest)
        for client in self._clients:
            client.frame_changed()

    def exact_snapshot(self) -> bytes | None:
        """The newest snapshot with every bit, encoded; None while there is none."""
        self._watched = time.monotonic()
        newest = self._newest()
        return None if newest is None else _encode(exact_message(self.session_number, newest))

    def newest_tick(self) -> int:
        newest = self._newest()
        return newest.frame.tick if newest is not None else 0

    def newest_factor(self) -> float:
        newest = self._newest()
        return newest.frame.real_time_factor if newest is not None and self.status.state == "running" else 0.0

    def _newest(self) -> SharedSnapshot | None:
        if self._session is None or self._session.reader is None:
            return None
        return self._session.reader.read()

    @property
    def session_pid(self) -> int | None:
        return self._session.pid if self._session is not None else None
