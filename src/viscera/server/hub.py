"""The one place where browsers and the session meet.

The hub owns the session (starts, switches, restarts it, notices its death) and the newest state, scene and frame, each
encoded once for all browsers. A frame is made only when there is a new snapshot and a browser that is ready for it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
import traceback
from pathlib import Path

import msgspec

from viscera import __version__
from viscera.scores import Score
from viscera.server import messages as m
from viscera.server.choosing import Choices, again
from viscera.server.classroom import Classroom
from viscera.server.client import Client
from viscera.server.encode import scene_message
from viscera.server.entrance import NOBODY, Entrance
from viscera.server.films import Films
from viscera.server.frames import Frames
from viscera.server.hands import Hands
from viscera.server.running import Running
from viscera.server.status import State, Status, advice, at_time
from viscera.server.wishes import (
    Refusal,
    control,
    drill,
    in_words,
    kept_where,
    name_of,
    tick_of,
)
from viscera.session import commands as c
from viscera.session.channel import TooLarge
from viscera.session.logfile import TrialRecord
from viscera.session.process import SessionSpec
from viscera.timing import TICK

MAX_CLIENTS = 64

SILENCE_S = 3.0
"""A session that runs says something twice a second; one that was silent for this long is stalled [s]."""

FAR_S = 20.0
"""The same of a recording that is watched: after a jump it may load a state for seconds."""

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
        keep_running: bool = False,
        classroom: Classroom | None = None,
    ) -> None:
        """`own` is what people call `spec.scenario`, where that is a file of theirs; with `keep_running` the world does
        not rest while nobody watches."""
        self.classroom = classroom or Classroom(None)
        self._keep_running = keep_running
        self._hands = Hands()
        self._watched = time.monotonic()
        """When somebody last watched [s]."""
        self._resting = False
        """Whether the world was paused because nobody watches."""
        self.choices = Choices(spec, scenarios, own or spec.scenario)
        self.films = Films(self.choices.recordings)
        self.status = Status()
        self.state_bytes = b""
        self.scene_bytes = b""
        self.session_number = 0
        self._running = Running(spec, self._begins, self._on_report, self._on_exit, self._tell)
        self._device = ""
        self._log = ""
        self._begun_by = ""
        """Key of the trainee who began the drill that runs, or ran last."""
        self._kept: int | None = None
        """The tick at which the recording stopped, where it has."""
        self._score: m.TrialScore | None = None
        """Of the trial that ended last."""
        self._watched_recording: m.Watched | None = None
        """The recording that is shown, where it is one."""
        self._heard = time.monotonic()
        """When the session last said anything [s]."""
        self._before_stall: State = "running"
        self._sought: int | None = None
        """Tick of a recording that was asked for and is not computed yet."""
        self._to_forget: set[int] = set()
        """Browsers that are gone, of which the session does not know yet."""
        self._clients: set[Client] = set()
        self._client_count = 0
        self.frames = Frames(self._clients, self._running.newest)
        self._closing = False

    # --- life ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._watching = asyncio.create_task(self._watch())
        self._running.in_background(self._catch_up())
        await self._running.begin(self._running.spec)

    async def _catch_up(self) -> None:
        """What a server that died had not kept yet."""
        await self.classroom.catch_up(self.choices.recordings)

    async def stop(self) -> None:
        """Ends the session, its recording closed, and waits for sessions that are still closing theirs."""
        self._closing = True
        self._watching.cancel()
        stalled = self.status.state == "stalled"
        self._tell("ended", "The server has stopped. Start it again, then reload this page.")
        await self.films.stop()
        await self._running.stop(stalled)

    def _begins(self) -> None:
        """Another session is about to start: nothing of the one before counts."""
        self.session_number += 1
        self.scene_bytes = b""
        self.frames.begin(self.session_number)
        self._resting = False
        self._watched_recording = None
        self._watched = time.monotonic()
        self._score = None
        self._log = str(self._running.spec.resume or "")
        self._kept = None
        self._to_forget.clear()
        self.status = Status(message="starting")

    def _replace(self, spec: SessionSpec) -> None:
        self._running.replace(spec, self.status.state == "stalled")
        self._sought = spec.at if spec.watch is not None and spec.at else None
        self.status = Status(message="starting")

    # --- browsers ------------------------------------------------------------------------------------------------

    @property
    def entrance(self) -> Entrance:
        return self.classroom.entrance

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
            scenarios=self.choices.scenarios,
            trainer=client.visitor.trainer,
            trainers=self.classroom.has_trainers,
            trainee=client.visitor.trainee,
            training=self.classroom.there,
            cohort=self.classroom.there and self.classroom.may_see(None, client.visitor),
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
        if self._running.listens:
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
        elif isinstance(message, m.Enter):
            self._enter(client, message.ticket)
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

    def _enter(self, client: Client, ticket: str) -> None:
        visitor = self.entrance.redeem(ticket) if ticket else NOBODY
        if visitor is None:
            raise Refusal("refused", "this ticket is not known here.", "Enter again.")
        client.visitor = visitor

    def _hand_over(self, client: Client, message: m.Hand) -> None:
        before = self._hands.act(client.number, message.action, message.client, client.visitor.trainer)
        if before != self._hands.holder:
            self._send(c.Forget(before))  # what they held leaves the body
            self._disown()
        self._tell()

    def _disown(self) -> None:
        """A drill that another hand goes on with is nobody's trial."""
        holders = [client.visitor.key for client in self._clients if client.number == self._hands.holder]
        if self._begun_by and self._begun_by not in holders:
            self._begun_by = ""
            self._send(c.Disown())

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
            self._command(drill(client.number, message, client.visitor.key))
            if message.action == "start":
                self._begun_by = client.visitor.key
        elif isinstance(message, m.Choose):
            self._begin_other(self.choices.scenario(message, self._running.spec))
        elif isinstance(message, m.Watch):
            self._begin_other(self.choices.watch(message.recording, message.at))
        elif isinstance(message, m.Seek):
            self._seek(message)
        elif isinstance(message, m.Film):
            self.films.start(name_of(message.recording, "recording"))
        elif isinstance(message, m.Restart):
            self._restart()

    def _begin_other(self, spec: SessionSpec) -> None:
        if self.status.state == "starting":
            raise Refusal("refused", "a session is starting already.", "Wait until it runs, then choose again.")
        self._replace(spec)

    def _seek(self, message: m.Seek) -> None:
        if self._running.spec.watch is None:
            raise Refusal("refused", "what is shown is no recording.", "Choose one of the list first.")
        if message.again:
            shown = self.frames.newest_tick() if self._sought is None else self._sought
            self._replace(again(self._running.spec, shown))
        else:
            self._command(c.Seek(tick_of(message.at)))
            self._sought = tick_of(message.at)

    def _restart(self) -> None:
        if self.status.state not in ("crashed", "ended", "stalled"):
            raise Refusal("refused", "the session is not stopped.", "Use reset to begin again.")
        resume = Path(self._log) if self._log else None
        self._replace(dataclasses.replace(self._running.spec, resume=resume, trainee=self._begun_by))

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
        return self._running.send(command)

    # --- the session ---------------------------------------------------------------------------------------------

    def _on_report(self, report: c.Report) -> None:
        self._heard = time.monotonic()
        if self.status.state == "stalled":
            self._tell(self._before_stall)
        if isinstance(report, c.Published):
            self.frames.published()
        elif isinstance(report, c.Progress):
            self.status.progress = report.fraction
            self._tell("starting", report.message)
        elif isinstance(report, c.Ready):
            self._device, self._log = report.device, report.log
            self.status.notes = report.notes
            self.frames.set_specs(report.specs)
            self._new_scene(report.scene)
            self._watched = time.monotonic()
            self._tell("running", report.note)
        elif isinstance(report, c.Recorded):
            name = "" if self._running.spec.watch is None else self._running.spec.watch.name
            moments = [(tick * TICK, what) for tick, what in report.marks]
            self._watched_recording = m.Watched(recording=name, seconds=report.tick * TICK, marks=moments)
            self._tell()
        elif isinstance(report, c.Source):
            if self._watched_recording is not None:
                shown = self._watched_recording
                self._watched_recording = msgspec.structs.replace(shown, stored=report.stored, done=report.done)
                self._tell()
        elif isinstance(report, c.Arrived):
            if report.tick == self._sought:
                self._sought = None
        elif isinstance(report, c.SceneChanged):
            self._new_scene(report.scene)
        elif isinstance(report, c.Pace):
            self.status.speed = report.speed
            self._tell("paused" if report.paused else "running")
        elif isinstance(report, c.Notice):
            self.status.notice = report.text
            self._kept = report.kept
            self._tell()
        elif isinstance(report, c.Gaze):
            surface = "screen" if report.surface == "screen" else "view"
            self.status.gaze = m.GazeSource(
                name=report.name, surface=surface, counts=report.counts, problem=report.problem
            )
            self._tell()
        elif isinstance(report, c.Scored):
            self._score = m.TrialScore(session=self.session_number, score=report.score)
            for client in self._clients:
                client.answer(self._score)
            self._running.in_background(self._keep_trial(report.score, report.record))
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

    async def _keep_trial(self, score: Score, record: TrialRecord) -> None:
        """Of whoever began it, who hears where they stand."""
        mine = [client for client in self._clients if record.trainee and client.visitor.key == record.trainee]
        try:
            told = await self.classroom.keep(score, record, self._log, self.session_number)
        except Exception:  # whatever a database says, which is not for everybody's eyes: the world goes on
            traceback.print_exc()
            for client in mine:
                client.problem(
                    "refused",
                    "the trial could not be kept: the database does not take it.",
                    "Its recording has it, and it is kept when the server starts again; tell the trainer.",
                )
            return
        if told is not None:
            for client in mine:
                client.answer(told)

    def _on_exit(self, how: str) -> None:
        self._running.in_background(self._catch_up())
        if not self._closing and self.status.state in ("starting", "running", "paused", "stalled"):
            ended = f"The session process {how}{at_time(self.frames.tick)}."
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
            patience = SILENCE_S if self._running.spec.watch is None else FAR_S
            if self.status.state in ("running", "paused") and silent > patience:
                self._before_stall = self.status.state
                text = f"The session has not answered for {silent:.0f} s; it stands{at_time(self.frames.tick)}."
                self._tell("stalled", f"{text} Wait, or end it: {advice(self._log, self._kept)}")

    def _rest_unwatched(self, now: float) -> None:
        """A world that nobody watches rests; a hand at a haptic device watches too."""
        if self._clients or self._keep_running or self._running.spec.haptics is not None:
            self._watched = now
        elif self.status.state == "running" and not self._resting and now - self._watched > UNWATCHED_S:
            self._resting = self._send(c.Pause())

    def _new_scene(self, scene: bytes) -> None:
        self.scene_bytes = _encode(
            scene_message(scene, self.session_number, self._device, in_words(self._running.spec.detail))
        )
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

    def exact_snapshot(self) -> bytes | None:
        """The newest snapshot with every bit, encoded; None while there is none."""
        self._watched = time.monotonic()
        return self.frames.exact()

    def newest_factor(self) -> float:
        return self.frames.newest_factor() if self.status.state == "running" else 0.0

    @property
    def session_pid(self) -> int | None:
        return self._running.pid
