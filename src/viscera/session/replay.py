"""Replay: the same inputs at the same ticks give the same world, bit for bit on the same device.

`replay` makes the world of a recording and feeds it. `resume` does the same for a session that died, as quickly as its
checkpoints allow, and says where the log goes on.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viscera.errors import RecordingError, StateError
from viscera.inputs import Reset, StartDrill
from viscera.scores import Score, score
from viscera.session.archive import read_recording
from viscera.session.logfile import Recording
from viscera.session.recorder import hash_path, versions
from viscera.timing import TICK

DEFAULT_FACTORY = "viscera.scenarios:make"
"""What makes a world: `module:function`, called as `viscera.make` is."""

REPORT_TICKS = 250
"""Between two calls of the progress callback."""

ProgressCallback = Callable[[str, float], None]


@dataclass
class Replay:
    """A finished replay. `same` is None when the recording has no hash to compare with."""

    world: Any
    recording: Recording
    state_hash: str
    same: bool | None
    note: str
    """One line for people: whether it is the same, and if not, why that may be."""
    scores: list[Score] = field(default_factory=list)
    """Of the trials that ended, as the replay scores them."""


def replay(path: str | Path, device: str | None = None, **options: Any) -> Any:
    """The world at the end of the recording at `path`, on the device it was recorded on unless another is named.

    Raises `RecordingError` when it should have been the same, bit for bit, and is not.
    """
    done = replay_report(path, device, **options)
    if done.recording.damage:
        raise RecordingError(done.note, "Its beginning alone could be replayed; use another copy.")
    if done.same is False and _same_ground(done.recording, done.world):
        raise RecordingError(done.note, "The file was changed, or viscera is not deterministic: please report it.")
    return done.world


def replay_report(
    path: str | Path,
    device: str | None = None,
    *,
    cores: int | None = None,
    progress: ProgressCallback | None = None,
    factory: str = DEFAULT_FACTORY,
) -> Replay:
    """As `replay`, but a difference is told, not raised."""
    recording = read_recording(path)
    world = make_world(recording, device=device, cores=cores, factory=factory, progress=progress)
    scores: list[Score] = []
    try:
        feed(world, recording, progress=progress, scored=scores.append)
    except StateError as error:
        if recording.failure is None:
            raise
        same = (error.stage, error.tick) == (recording.failure.stage, recording.failure.tick)
        note = f"the state broke {'as' if same else 'otherwise than'} recorded: {error.message}"
        return Replay(world, recording, "", same, note, scores)
    state_hash = world.state_hash()
    if not recording.complete:
        return Replay(world, recording, state_hash, None, _why_incomplete(recording), scores)
    same = state_hash == recording.state_hash
    return Replay(world, recording, state_hash, same, _compare(recording, world, same), scores)


def make_world(
    recording: Recording,
    *,
    device: str | None = None,
    cores: int | None = None,
    factory: str = DEFAULT_FACTORY,
    progress: ProgressCallback | None = None,
) -> Any:
    """The world of a recording, at its first tick."""
    header = recording.header
    files = [(header.mesh, header.mesh_sha256, "mesh"), (header.file, header.file_sha256, "file")]
    files += [(header.options[name], digest, name) for name, digest in header.options_sha256.items()]
    for path, digest, what in files:
        if path and hash_path(Path(path)) != digest:
            raise RecordingError(
                f"the {what} {path} is not the one that was recorded (its SHA-256 differs).",
                f"Put the old {what} back.",
            )
    return build(
        factory,
        header.file or header.scenario,
        device=device or header.device,
        seed=header.seed,
        mesh=header.mesh or None,
        **({"options": header.options} if header.options else {}),
        parameters=header.parameters or None,
        detail=header.detail,
        cores=cores,
        progress=progress,
    )


def build(factory: str, scenario: str, *, progress: ProgressCallback | None = None, **arguments: Any) -> Any:
    """Calls the factory `module:function`; one that cannot tell its progress is not asked to."""
    module, _, name = factory.partition(":")
    make = getattr(importlib.import_module(module), name)
    if progress is not None and "progress" in inspect.signature(make).parameters:
        arguments["progress"] = progress
    return make(scenario, **arguments)


def feed(
    world: Any,
    recording: Recording,
    *,
    until: int | None = None,
    stop: Callable[[], bool] | None = None,
    progress: ProgressCallback | None = None,
    scored: Callable[[Score], None] | None = None,
) -> None:
    """Runs `world` from its tick to the end of the recording (or tick `until`), each input at its tick.

    `stop` is asked now and then, and ends it early. `scored` gets the score of each trial that ended on the way.
    """
    start, end = world.tick, recording.tick if until is None else until
    inputs = [entry for entry in recording.inputs if start <= entry[0] <= end]
    position = 0
    next_report = start
    while True:
        while position < len(inputs) and inputs[position][0] <= world.tick:
            given = inputs[position][1]
            if scored is not None and isinstance(given, StartDrill | Reset):
                _score(world, scored)  # it ends what there is to be scored
            world.apply(given)
            position += 1
        if world.tick >= end:
            if scored is not None:
                _score(world, scored)
            return
        if world.tick >= next_report:
            if stop is not None and stop():
                return
            if progress is not None:
                done = (world.tick - start) / (end - start)
                progress(f"replaying {world.tick * TICK:.1f} of {end * TICK:.1f} s", done)
            next_report = world.tick + REPORT_TICKS
        next_input = inputs[position][0] if position < len(inputs) else end
        world.step(min(next_input, next_report, end) - world.tick)


def _score(world: Any, scored: Callable[[Score], None]) -> None:
    trial = world.trial()
    if trial is not None:
        scored(score(trial))


@dataclass
class Resumed:
    world: Any
    recording: Recording
    keep: int
    """Bytes of the log that the world goes on from."""
    in_place: bool
    """Whether the log itself may go on; otherwise its start is copied, so that nothing recorded is lost."""
    note: str


def resume(
    path: Path, *, cores: int | None = None, factory: str = DEFAULT_FACTORY, progress: ProgressCallback | None = None
) -> Resumed:
    """The world of a session that died, as it was at the last heartbeat of its log.

    A session whose state broke would break again at the same tick, so that one goes on from its last checkpoint (or
    from the beginning), without the inputs that came after it.
    """
    recording = read_recording(path)
    if recording.complete:
        raise RecordingError(f"{path} ended as it should; there is nothing to resume.", "Replay it, or start anew.")
    world = make_world(recording, cores=cores, factory=factory, progress=progress)
    last = max(recording.checkpoints, default=None)
    if recording.failure is not None:
        return _before_failure(world, recording, last)
    if last is not None:
        world.load_state(recording.checkpoints[last]())
    try:
        feed(world, recording, progress=progress)
    except StateError:
        world.close()
        world = make_world(recording, cores=cores, factory=factory, progress=progress)
        return _before_failure(world, recording, last)
    note = f"Resumed from its log at {world.tick * TICK:.2f} s."
    if recording.damage:
        note = f"{note} {_dropped(recording)}"
    return Resumed(world, recording, recording.valid_length, not recording.damage, note)


def is_scored(resumed: Resumed) -> bool:
    """Whether the log has the score of the drill that has ended last; true where none has."""
    trial = resumed.world.trial()
    if trial is None:
        return True
    told = (trial.seed, trial.level, trial.outcome, trial.time)
    kept = [(one.seed, one.level, one.outcome, one.time) for one in resumed.recording.trials]
    return told in kept[-1:]


def _before_failure(world: Any, recording: Recording, last: int | None) -> Resumed:
    if last is not None:
        world.load_state(recording.checkpoints[last]())
        keep = recording.checkpoint_ends[last]
    else:
        keep = recording.header_end
    note = f"Resumed at {world.tick * TICK:.2f} s, the last checkpoint before the state broke."
    return Resumed(world, recording, keep, False, note)


def _same_ground(recording: Recording, world: Any) -> bool:
    """Whether device and versions are those of the recording, so that the bits have to be the same."""
    return recording.header.device == world.device.name and recording.header.versions == versions()


def _compare(recording: Recording, world: Any, same: bool) -> str:
    if same:
        return f"same as recorded, bit for bit: {recording.state_hash}"
    differences = _differences(recording, world)
    why = f"; recorded with {', '.join(differences)}" if differences else ""
    return f"not the same as recorded: {world.state_hash()} instead of {recording.state_hash}{why}"


def _differences(recording: Recording, world: Any) -> list[str]:
    """Device and versions of a recording that are others than these."""
    now = versions()
    device = [] if recording.header.device == world.device.name else [f"device {recording.header.device}"]
    return device + [f"{name} {old}" for name, old in recording.header.versions.items() if now.get(name) != old]


def other_ground(recording: Recording, world: Any) -> str:
    """A sentence for whoever watches a recording that another device or version made; empty where it is the same."""
    differences = _differences(recording, world)
    if not differences:
        return ""
    return f"Recorded with {', '.join(differences)}: what is computed here may differ from what was seen then."


def _why_incomplete(recording: Recording) -> str:
    if recording.failure is not None:
        return f"the session stopped by itself: {recording.failure.message}; nothing to compare with"
    if recording.damage:
        return f"the log is damaged, so there is no end to compare with. {_dropped(recording)}"
    if recording.torn_bytes:
        return f"the session was cut off, so there is no end to compare with. {_dropped(recording)}"
    return "the session is still running or was cut off, so there is no end to compare with"


def _dropped(recording: Recording) -> str:
    what = recording.damage or "Its last block is not whole."
    return f"{what} Its last {recording.torn_bytes} bytes, all after {recording.tick * TICK:.2f} s, are lost."
