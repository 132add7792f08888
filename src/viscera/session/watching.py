"""A recording that is watched: the world is made again from its inputs, bit for bit, at any speed, from any moment.

A jump shows the stored picture of that second, where the recording has one (`stills.py`), then loads the last state
before the moment and computes the rest. So a picture is there at once, and the world itself as soon as the machine has
made it; which of the two is seen is told.
"""

from __future__ import annotations

import time
from typing import Any

from viscera.inputs import EndDrill, StartDrill
from viscera.session import commands as c
from viscera.session.channel import Receiver, Sender
from viscera.session.clock import RealTimeFactor
from viscera.session.logfile import Recording
from viscera.session.playing import Player
from viscera.session.snapshot import SnapshotWriter
from viscera.session.stills import Stills
from viscera.session.wire import pack
from viscera.timing import FRAME

SHOW_S = 0.1
"""Between two pictures while a jump is computed [s]."""
NEAR = 1_500
"""So many ticks are computed without a stored picture in between."""
SETTLE_S = 0.15
"""After a stored picture, a jump to another moment is waited for so long before the world is computed [s]."""
ALIVE_S = 0.5
"""The server hears at least this often that it goes round [s]."""
REST_S = 0.1
"""A watched recording that stands looks for commands this often [s]."""


def marks(recording: Recording) -> list[tuple[int, str]]:
    """Moments worth jumping to: where drills began and how they ended, with their ticks."""
    begun = [(tick, "start") for tick, one in recording.inputs if isinstance(one, StartDrill)]
    given_up = [(tick, one.how) for tick, one in recording.inputs if isinstance(one, EndDrill)]
    ended = [(trial.tick, trial.outcome) for trial in recording.trials]
    return sorted([*begun, *(ended or given_up)])


class Watching:
    """Plays a recording until it is told to stop."""

    def __init__(
        self,
        world: Any,
        recording: Recording,
        commands: Receiver[c.Command],
        reports: Sender,
        writer: SnapshotWriter,
        at: int = 0,
    ) -> None:
        self.world = world
        self.stopping = False
        self._recording = recording
        self._player = Player(world, recording)
        self._stills = Stills(recording.path)
        self._stored = False
        """Whether a stored picture is shown."""
        self._scene: int | None = None
        """Which scene of the stills the browsers have; None: the world's own."""
        self._commands, self._reports, self._writer = commands, reports, writer
        self._target: int | None = at or None
        self._asked = at
        """What the target was called: beyond the end it is the end."""
        self._speed = 1.0
        self._paused = False
        self._seed = world.seed
        self._shown = self._alive = 0.0
        self._factor = RealTimeFactor()

    def run(self) -> None:
        self._publish()
        self._tell_pace()
        due = time.perf_counter()
        while not self.stopping:
            for command in self._commands.take():
                self.obey(command)
            now = time.perf_counter()
            if self._target is not None:
                self._jump()
                due = now
            elif self._paused or self.world.tick >= self._recording.tick:
                self._stand()
                due = now
            else:
                self._player.advance(self._player.next_frame())
                self._publish()
                due = max(due + FRAME / self._speed, now - FRAME)
                self._commands.wait(max(0.0, due - time.perf_counter()))
            self._say_alive()

    def obey(self, command: c.Command) -> None:
        if isinstance(command, c.Seek):
            self._target, self._asked = min(max(0, command.tick), self._recording.tick), command.tick
        elif isinstance(command, c.Pause):
            self._paused = True
            self._tell_pace()
        elif isinstance(command, c.Resume):
            self._paused = False
            if self.world.tick >= self._recording.tick:
                self._target = self._asked = 0
            self._tell_pace()
        elif isinstance(command, c.StepFrame) and self._paused:
            self._player.advance(self._player.next_frame())
            self._publish()
        elif isinstance(command, c.SetSpeed):
            self._speed = command.speed
            self._tell_pace()
        elif isinstance(command, c.Stop):
            self.stopping = True

    # --- time ---

    def _jump(self) -> None:
        """To the target, as far as until the next command: a picture now and then on the way."""
        target = self._target
        assert target is not None
        if self._show_still(target):
            self._commands.wait(SETTLE_S)  # whoever drags a slider jumps again at once
            if self._interrupted(target):
                return
        begin = self._player.start_before(target)
        if self._player.load_before(target):
            self._factor.pause()
            if not self._stored:
                self._publish()
        while self.world.tick < target:
            self._player.advance(min(self._player.next_frame(), target))
            if time.perf_counter() - self._shown >= SHOW_S:
                if self._stored:
                    self._tell_source((self.world.tick - begin) / max(1, target - begin))
                else:
                    self._publish()
                if self._interrupted(target):
                    return
        self._target = None
        self._publish()
        self._reports.send(c.Arrived(self._asked))

    def _interrupted(self, target: int) -> bool:
        """Whether a command that came meanwhile wants something else."""
        self._say_alive()
        for command in self._commands.take():
            self.obey(command)
        return self._target != target or self.stopping

    def _show_still(self, target: int) -> bool:
        """The stored picture of a moment that the world is far from; False where there is none or none is needed."""
        if target - self._player.start_before(target) <= NEAR:
            return False
        number = self._stills.find(target)
        still = None if number is None else self._stills.load(number)
        if number is None or still is None:
            return False
        scene = self._stills.scene_of(number)
        if scene != self._scene:
            self._scene = scene
            self._reports.send(c.SceneChanged(self._stills.scene(scene)))
        self._writer.publish(still.frame, still.write_arrays)
        self._reports.offer(c.Published())
        self._stored = True
        self._tell_source(0.0)
        return True

    def _tell_source(self, done: float) -> None:
        self._shown = time.perf_counter()
        self._reports.offer(c.Source(self._stored, done))

    def _stand(self) -> None:
        self._commands.wait(REST_S)
        self._factor.pause()

    # --- reports ---

    def _publish(self) -> None:
        world = self.world
        if self._stored:
            self._stored = False
            self._tell_source(1.0)
        if world.seed != self._seed or self._scene is not None:
            self._seed, self._scene = world.seed, None
            self._reports.send(c.SceneChanged(pack(world.scene())))
        world.show_now()
        frame = world.frame()
        self._factor.add(time.perf_counter(), world.tick)
        frame.real_time_factor = frame.beside_factor = self._factor.value()
        self._writer.publish(frame, world.write_arrays)
        self._reports.offer(c.Published())
        self._shown = time.perf_counter()

    def _tell_pace(self) -> None:
        self._reports.offer(c.Pace(self._paused, self._speed))

    def _say_alive(self) -> None:
        now = time.perf_counter()
        if now - self._alive >= ALIVE_S:
            self._alive = now
            self._reports.offer(c.Alive())
