"""What the server tells a session and what the session answers: plain structs on two `channel`s.

Inputs carry the number of the browser they come from, so that a refusal finds its way back.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from viscera.inputs import ToolInput
from viscera.scores import Score
from viscera.session.logfile import TrialRecord
from viscera.view import ArraySpec


class _Struct(msgspec.Struct, tag_field="t", array_like=True):
    pass


# --- server to session -------------------------------------------------------------------------------------------


class Begin(_Struct, tag="begin"):
    """The shared memory has its size; frames may be published."""


class MoveTool(_Struct, tag="tool"):
    """Within one tick the newest pose of a tool wins."""

    client: int
    sequence: int
    input: ToolInput


class SetValue(_Struct, tag="set"):
    client: int
    name: str
    value: float


class SetRows(_Struct, tag="rows"):
    client: int
    name: str
    rows: tuple[tuple[float, ...], ...]


class ResetWorld(_Struct, tag="reset"):
    """Without a seed, the one in use stays."""

    client: int
    seed: int | None


class BeginDrill(_Struct, tag="drill"):
    """Without a seed, the one in use stays; the world is made anew in any case."""

    client: int
    level: int
    seed: int | None
    trainee: str = ""
    """Key of whoever begins it, which the recording keeps; empty: nobody's."""


class Disown(_Struct, tag="disown"):
    """Another hand goes on with the drill that runs: it is nobody's trial now."""


class FinishDrill(_Struct, tag="finish"):
    client: int
    how: Literal["given_up", "found"]
    certainty: float


class Seek(_Struct, tag="seek"):
    """Of a recording that is watched: jump to this tick."""

    tick: int


class Pause(_Struct, tag="pause"):
    pass


class Resume(_Struct, tag="resume"):
    pass


class StepFrame(_Struct, tag="step"):
    """One frame onward while paused."""


class SetSpeed(_Struct, tag="speed"):
    """Simulated seconds per second; 1 is real time."""

    speed: float


class Forget(_Struct, tag="forget"):
    """This browser is gone; its number leaves the list of applied inputs, and the tools it held leave the body."""

    client: int


class Stop(_Struct, tag="stop"):
    """Close the recording and exit."""


Command = (
    Begin
    | MoveTool
    | SetValue
    | SetRows
    | ResetWorld
    | BeginDrill
    | Disown
    | FinishDrill
    | Seek
    | Pause
    | Resume
    | StepFrame
    | SetSpeed
    | Forget
    | Stop
)


# --- session to server -------------------------------------------------------------------------------------------


class Progress(_Struct, tag="progress"):
    """Starting: what is being done, and how far it is, 0 to 1."""

    message: str
    fraction: float


class Ready(_Struct, tag="ready"):
    """The world is made. `scene` is a `view.Scene` as browsers get it."""

    scene: bytes
    specs: dict[str, ArraySpec]
    device: str
    log: str
    """Where the inputs are written; empty when nothing is recorded."""
    tick: int
    """Where a resumed session goes on; 0 otherwise."""
    note: str
    """How it was resumed; empty for a new session."""
    notes: tuple[str, ...] = ()
    """What was guessed or mended of the user's own mesh."""


class Recorded(_Struct, tag="recorded"):
    """What is watched is a recording: how far it goes, and moments worth jumping to."""

    tick: int
    marks: list[tuple[int, str]]


class Source(_Struct, tag="source"):
    """Where the picture of a watched recording comes from: computed from its inputs, or stored, while the computation
    is so far, 0 to 1."""

    stored: bool
    done: float


class Arrived(_Struct, tag="arrived"):
    """A jump is over: the moment that was asked for is shown, computed."""

    tick: int


class SceneChanged(_Struct, tag="scene"):
    """After a reset with another seed."""

    scene: bytes


class Published(_Struct, tag="published"):
    """A new snapshot is in the shared memory."""


class Scored(_Struct, tag="scored"):
    """A trial has ended."""

    score: Score
    record: TrialRecord
    """As the recording has it."""


class Pace(_Struct, tag="pace"):
    paused: bool
    speed: float


class Refused(_Struct, tag="refused"):
    """The world did not take an input of this browser."""

    client: int
    message: str
    hint: str


class Notice(_Struct, tag="notice"):
    """What people should know though the session goes on."""

    text: str
    kept: int | None = None
    """Where the recording has stopped, the tick up to which it goes."""


class Gaze(_Struct, tag="gaze"):
    """Whose gaze counts, where it is not the page's pointer or webcam."""

    name: str
    """For people."""
    surface: str
    """What its places are shares of: `view` or `screen`."""
    counts: bool
    """False where it could not be opened: the pointer counts."""
    problem: str
    """Why nothing is seen; empty while all is well."""


class Alive(_Struct, tag="alive"):
    """Sent now and then, also while the world is paused: who says nothing for long is stuck."""


class Failed(_Struct, tag="failed"):
    """The session cannot start or cannot go on; it exits after this."""

    message: str
    hint: str
    stage: str
    tick: int
    log: str


class Ended(_Struct, tag="ended"):
    """Stopped as asked; `recording` is the finished file, empty when there is none."""

    recording: str


Report = (
    Progress
    | Ready
    | Recorded
    | Source
    | Arrived
    | SceneChanged
    | Published
    | Scored
    | Pace
    | Refused
    | Notice
    | Gaze
    | Alive
    | Failed
    | Ended
)
