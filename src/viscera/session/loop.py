"""The real-time loop of a session: take commands, make a tick, publish a frame every sixteenth, record.

Between two ticks the loop takes whatever commands have arrived. Of several poses of one tool only the newest is
applied; what is applied is recorded with its tick, and nothing else ever reaches the world, so a replay of the record
is the same world. Nothing here waits for the server, for the disk, for the systems of the world (heat, blood, fluids;
that they were too slow is recorded like an input) or for the picture, which are made in threads beside the ticks.
Haptic devices come in through a port of their own (`haptics/port.py`), before each tick; what their tools felt goes out
after it. A source of gaze outside the page (`gaze/looking.py`) is asked once a frame, and recorded like any input.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from viscera.collecting import Collecting
from viscera.errors import InputError
from viscera.gaze.looking import Looking
from viscera.haptics.port import SessionPort
from viscera.haptics.priority import SessionPriority
from viscera.inputs import Behind, EndDrill, Input, Reset, SetParameter, SetTable, StartDrill
from viscera.scores import Score, score
from viscera.session import commands as c
from viscera.session.channel import Receiver, Sender
from viscera.session.clock import Pacer, RealTimeFactor
from viscera.session.logfile import TrialRecord, trial_record
from viscera.session.recorder import (
    CHECKPOINT_S,
    FLUSH_S,
    IDLE_CHECKPOINTS,
    Recorder,
    checkpoint_interval,
    state_size,
)
from viscera.session.snapshot import SnapshotWriter
from viscera.session.stills import StillWriter
from viscera.session.wire import pack
from viscera.timing import FRAME, TICKS_PER_FRAME
from viscera.view import AnyArray, DrillState, Frame

PAUSED_WAIT_S = 0.1
"""A paused loop looks after its recording this often [s]."""

REFUSAL_S = 0.1
"""Refusals are told to a browser at most this often; a hand that is out of range would be told a thousand a second
[s]."""

ALIVE_S = 0.5
"""The server hears at least this often that the loop goes round [s]."""

FLUSH_EARLY_S = 0.1
"""A block is on its way to the disk this much before the promised second is over [s]."""

MAX_STEPS = 30
"""Frames that may wait to be stepped, when someone keeps the key down."""

NOBODY = 0
"""No browser has this number; what a haptic device did is told to none."""

MAX_APPLIED = 128
"""Browsers whose newest input is echoed."""


class Loop:
    """A world that runs in real time until it is told to stop."""

    def __init__(
        self,
        world: Any,
        commands: Receiver[c.Command],
        reports: Sender,
        writer: SnapshotWriter,
        recorder: Recorder | None,
        port: SessionPort | None = None,
        stills: StillWriter | None = None,
        *,
        trainee: str = "",
        scored: bool = True,
        looking: Looking | None = None,
    ) -> None:
        """`trainee` is the key of whoever began the drill that runs. A drill that has ended already is scored only
        where it is said not to be `scored`."""
        self.world = world
        self._trainee = trainee
        self._stills = stills
        self._looking = looking
        self._gaze: c.Gaze | None = None
        """What the server was told of it."""
        self.live = world.go_live()
        self.recorder = recorder
        self.stopping = False
        self._commands = commands
        self._reports = reports
        self._writer = writer
        self._port = port
        self._priority = None if port is None else SessionPriority(time.perf_counter())
        self._pacer = Pacer()
        self._factor, self._beside = RealTimeFactor(), RealTimeFactor()
        self._paused = False
        self._ticks_to_step = 0
        self._poses: dict[int, c.MoveTool] = {}
        self._held: dict[int, c.MoveTool] = {}
        """The newest pose of each tool that is in the body, by tool."""
        self._values_to_come: dict[str, float] = {}
        self._rows_to_come: dict[str, tuple[tuple[float, ...], ...]] = {}
        self._applied: dict[int, int] = {}
        self._seed = world.seed
        self._new_seed: int | None = None
        self._notice = ""
        now = time.perf_counter()
        self._published = self._flushed = self._alive = now
        self._collecting = Collecting()
        self._refused: dict[int, float] = {}
        """When each browser was last told of a refusal [s]."""
        self._show_settings = False
        drill = world.frame().drill
        self._ended = scored and drill is not None and drill.phase == "ended"
        """Whether the drill has ended, and was scored."""
        self._scoring: threading.Thread | None = None
        self._scored: list[Score] = []
        self.scores: dict[str, float] = {}
        """Of the last trial that ended."""
        self._next_checkpoint = now + CHECKPOINT_S
        self._idle_checkpoint = now + IDLE_CHECKPOINTS * CHECKPOINT_S

    def run(self) -> None:
        """Until a `Stop` command; raises `ChannelClosed` when the server is gone, and what the world raises."""
        with self._collecting:
            self._publish(time.perf_counter(), must=True)
            self._tell_pace()
            self._pacer.restart()
            while not self.stopping:
                self._take_commands()
                if self._paused and self._ticks_to_step == 0:
                    self._rest()
                else:
                    self._tick()

    # --- one tick ------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        port = self._port
        if port is not None:
            for given in port.take():
                self._apply(NOBODY, self.world.within(given))
        if self._poses:
            self._apply_poses()
        if self._looking is not None:
            self._look(self._looking)
        self.world.advance()
        tick = self.world.tick
        if port is not None:
            port.publish(tick, self.world.tools)
        if self.world.behind and self.recorder is not None:
            self.recorder.input(tick - 1, Behind())
        self._values_to_come.clear()
        self._rows_to_come.clear()
        now = self._pacer.wait()
        pausing = self._ticks_to_step == 1
        if pausing:
            self.world.wait()  # a world that rests is seen with all that the systems did
        # In slow motion a frame takes longer than the eye likes, so what lies between frames is shown as well.
        if tick % TICKS_PER_FRAME == 0 or (self._pacer.speed < 1.0 and now - self._published >= FRAME):
            self._publish(now, must=pausing)
        if self._ticks_to_step:
            self._ticks_to_step -= 1
            if self._ticks_to_step == 0:
                self.live.settle()  # whoever is told that the world rests finds it as it rests
                self._tell_pace()
        if self._new_seed is not None:
            self._tell_scene()
        self._look_after_recording(now, between_ticks=True)
        self._tell_notice()
        self._say_alive(now)
        self._collecting.look(now)

    def _look(self, looking: Looking) -> None:
        for given in looking.inputs(self.world.tick):
            self._apply(NOBODY, given)
        told = c.Gaze(looking.chosen.name, looking.chosen.surface, True, looking.problem[:1000])
        if told != self._gaze and self._reports.offer(told):
            self._gaze = told

    def _rest(self) -> None:
        self._commands.wait(PAUSED_WAIT_S)
        self._pacer.restart()
        self._factor.pause()
        self._beside.pause()
        if self._port is not None:
            self._port.rest()
        now = time.perf_counter()
        self._look_after_recording(now, between_ticks=False)
        self._tell_notice()
        self._say_alive(now)

    def _say_alive(self, now: float) -> None:
        if now - self._alive >= ALIVE_S:
            self._alive = now
            self._reports.offer(c.Alive())

    def _publish(self, now: float, *, must: bool = False) -> None:
        """Shows the world as it is; beside the ticks. A picture that is not done yet is not waited for, unless it
        must."""
        world = self.world
        self._factor.add(now, world.tick)
        self._beside.add(now, TICKS_PER_FRAME * self.live.begun)
        if self._priority is not None:
            self._priority.watch(now)
        frame = world.frame()
        frame.real_time_factor = self._factor.value()
        frame.beside_factor = self._beside.value()
        frame.applied = list(self._applied.items())
        frame.haptics = [] if self._port is None else self._port.states()
        frame.parameters |= self._values_to_come
        frame.tables |= self._rows_to_come
        self._look_at_drill(frame.drill)

        def publish(write_arrays: Callable[[dict[str, AnyArray]], None]) -> None:
            self.live.label(frame)
            self._writer.publish(frame, lambda out: self._keep_still(frame, write_arrays, out))
            self._reports.offer(c.Published())

        if self.live.draw(publish, must=must):
            self._published = now

    def _keep_still(
        self, frame: Frame, write_arrays: Callable[[dict[str, AnyArray]], None], out: dict[str, AnyArray]
    ) -> None:
        write_arrays(out)
        if self._stills is not None and self._stills.due(frame.tick):
            self._stills.take(frame, out)

    # --- commands ------------------------------------------------------------------------------------------------

    def _take_commands(self) -> None:
        for command in self._commands.take():
            self.obey(command)
        if self._show_settings:
            self._show_settings = False
            self._publish(time.perf_counter(), must=True)

    def obey(self, command: c.Command) -> None:
        if isinstance(command, c.MoveTool):
            self._poses[command.input.tool] = command
        elif isinstance(command, c.SetValue):
            self._set_value(command)
        elif isinstance(command, c.SetRows):
            self._set_rows(command)
        elif isinstance(command, c.ResetWorld):
            self._reset(command)
        elif isinstance(command, c.BeginDrill):
            self._begin_drill(command)
        elif isinstance(command, c.Disown):
            if not self._ended:
                self._trainee = ""
        elif isinstance(command, c.FinishDrill):
            self._apply(command.client, EndDrill(command.how, command.certainty))
        elif isinstance(command, c.Forget):
            self._applied.pop(command.client, None)
            self._refused.pop(command.client, None)
            self._let_go(command.client)
        elif isinstance(command, c.Stop):
            self.stopping = True
        elif not isinstance(command, c.Begin):
            self._change_pace(command)

    def _change_pace(self, command: c.Command) -> None:
        if isinstance(command, c.StepFrame):
            if self._paused:
                self._ticks_to_step = min(self._ticks_to_step + TICKS_PER_FRAME, MAX_STEPS * TICKS_PER_FRAME)
            return
        if isinstance(command, c.Pause):
            # The frame that has begun is finished first, so that a paused world is always between two frames.
            if not self._paused:
                self._ticks_to_step = -self.world.tick % TICKS_PER_FRAME
            self._paused = True
            if self._ticks_to_step == 0:
                self.world.wait()
                self._publish(time.perf_counter(), must=True)
                self.live.settle()
        elif isinstance(command, c.Resume):
            self._paused = False
            self._ticks_to_step = 0
        elif isinstance(command, c.SetSpeed):
            self._pacer.speed = command.speed
        self._pacer.restart()
        self._factor.pause()
        self._beside.pause()
        if self._ticks_to_step == 0:
            self._tell_pace()

    def _apply_poses(self) -> None:
        for pose in self._poses.values():
            if self._port is not None and self._port.holds(pose.input.tool):
                continue  # a device holds this tool; a pointer over the page must not tear it away
            if self._apply(pose.client, self.world.within(pose.input)):
                self._applied[pose.client] = pose.sequence
                self._held[pose.input.tool] = pose
        self._poses.clear()
        while len(self._applied) > MAX_APPLIED:
            del self._applied[next(iter(self._applied))]

    def _let_go(self, client: int) -> None:
        """A browser that died while it pressed must not press for ever: its tools are taken out."""
        for tool, pose in list(self._held.items()):
            if pose.client == client:
                del self._held[tool]
                self._poses.pop(tool, None)
                if pose.input.active:
                    self._apply(client, replace(pose.input, grip=0.0, active=False))

    def _apply(self, client: int, given: Input) -> bool:
        """Gives an input to the world and to the record, or tells the browser why not."""
        try:
            self.world.apply(given)
        except InputError as error:
            now = time.perf_counter()
            if now - self._refused.get(client, -math.inf) >= REFUSAL_S:
                self._refused[client] = now
                self._reports.offer(c.Refused(client, error.message[:1000], error.hint[:1000]))
            return False
        if self.recorder is not None:
            self.recorder.input(self.world.tick, given)
        return True

    def _reset(self, command: c.ResetWorld) -> None:
        seed = self._seed if command.seed is None else command.seed
        if not self._apply(command.client, Reset(seed)):
            return
        self._begin_again()
        if seed != self._seed:
            self._new_seed = self._seed = seed
        if self._paused and self._ticks_to_step == 0:
            # It takes effect with the next tick, and whoever resets wants to see that it did.
            self._ticks_to_step = TICKS_PER_FRAME

    def _begin_drill(self, command: c.BeginDrill) -> None:
        """In a world made anew, at once: whoever starts a drill does not want to rest."""
        seed = self._seed if command.seed is None else command.seed
        if not self._apply(command.client, StartDrill(command.level, seed)):
            return
        self._trainee = command.trainee
        self._begin_again()
        if seed != self._seed:
            self._new_seed = self._seed = seed
        if self._paused:
            self._change_pace(c.Resume())

    def _set_value(self, command: c.SetValue) -> None:
        if self._apply(command.client, SetParameter(command.name, command.value)) and self._paused:
            # It takes effect with the next tick, which may be far away; the panel should show it now.
            self._values_to_come[command.name] = command.value
            self._show_settings = True

    def _begin_again(self) -> None:
        self._poses.clear()
        if self._looking is not None:
            self._looking.restart(self.world.tick)

    def _set_rows(self, command: c.SetRows) -> None:
        if self._looking is not None and command.name == self._looking.table:
            try:
                self._looking.see(command.rows)
            except InputError as error:
                self._reports.offer(c.Refused(command.client, error.message, error.hint))
            return
        if self._apply(command.client, SetTable(command.name, command.rows)) and self._paused:
            self._rows_to_come[command.name] = command.rows
            self._show_settings = True

    # --- reports and recording -----------------------------------------------------------------------------------

    def _tell_pace(self) -> None:
        self._reports.offer(c.Pace(self._paused, self._pacer.speed))

    def _look_at_drill(self, drill: DrillState | None) -> None:
        """One that has just ended is scored, beside the ticks."""
        ended = drill is not None and drill.phase == "ended"
        if ended and not self._ended:
            trial = self.world.trial()
            self._scoring = threading.Thread(target=lambda: self._scored.append(score(trial)), daemon=True)
            self._scoring.start()
        self._ended = ended
        if self._scored:
            found = self._scored.pop()
            record = self._record_trial(found)
            self.live.settle()  # it takes several writes, and what is published must not come between them
            self._reports.send(c.Scored(found, record))

    def finish_scoring(self) -> None:
        """A drill that has just ended is scored before all ends."""
        if self._scoring is not None:
            self._scoring.join()
        for found in self._scored:
            self._record_trial(found)

    def _record_trial(self, found: Score) -> TrialRecord:
        self.scores = found.values()
        record = trial_record(self.world.tick, found, self._trainee)
        if self.recorder is not None:
            self.recorder.trial(record)
        return record

    def _tell_scene(self) -> None:
        self._new_seed = None
        scene = self.world.scene()
        if self._port is not None:
            self._port.homes = [tool.home for tool in scene.instruments]
        self.live.settle()  # a scene takes several writes, and what is published must not come between them
        packed = pack(scene)
        if self._stills is not None:
            self._stills.scene(self.world.tick, packed)
        self._reports.send(c.SceneChanged(packed))

    def _tell_notice(self) -> None:
        """What people should know though the session goes on: of the recording, and of the world."""
        recorder = self.recorder
        recording = "" if recorder is None else recorder.notice
        notice = f"{recording} {self.world.warning}".strip()
        if notice != self._notice:
            self._notice = notice
            self._reports.offer(c.Notice(notice, recorder.kept_tick if recorder is not None and recording else None))

    def _look_after_recording(self, now: float, *, between_ticks: bool) -> None:
        recorder = self.recorder
        if recorder is None:
            return
        if between_ticks and now >= self._next_checkpoint and (recorder.touched or now >= self._idle_checkpoint):
            self._next_checkpoint = self._idle_checkpoint = math.inf
            self.live.save()
        if self.live.saved is not None:
            tick, state = self.live.saved
            self.live.saved = None
            recorder.checkpoint(tick, state)
            interval = checkpoint_interval(state_size(state))
            self._next_checkpoint = now + interval
            self._idle_checkpoint = now + IDLE_CHECKPOINTS * interval
        # What came after a checkpoint's tick is written after it: who goes on from there drops it.
        elif not self.live.saving and now - self._flushed >= FLUSH_S - FLUSH_EARLY_S:
            self._flushed = now
            recorder.flush(self.world.tick)
