"""Every message between server and browser: the only schema.

Messages are MessagePack maps with a `type` field. What a world shows (`viscera.view`) and what a hand does
(`viscera.inputs`) are in them as they are. `web/src/protocol.ts` is generated from this file and from those by
`python -m viscera.server.typescript`, and CI fails when it is not current. Both sides refuse another `PROTOCOL`.
Lengths are metres, forces newtons, times seconds unless the name says otherwise.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from viscera.inputs import Quaternion, ToolInput, Vector3
from viscera.instruments.effects import PRESSED
from viscera.scores import Score
from viscera.session.wire import PROTOCOL
from viscera.timing import FRAME
from viscera.view import Frame, Scene

MAX_CLIENT_MESSAGE = 4096
"""Largest message a browser may send [bytes]."""

MIN_SPEED = 0.05
"""Slowest motion that `Control` `speed` takes; 1 is real time, the fastest of a live world."""

MAX_SPEED = 16.0
"""Fastest at which a recording is shown, if the machine can."""

__all__ = ["FRAME", "PRESSED", "PROTOCOL", "Quaternion", "Vector3"]


class _Message(msgspec.Struct, tag_field="type", kw_only=True):
    pass


class _Part(msgspec.Struct, kw_only=True):
    pass


# --- browser to server -------------------------------------------------------------------------------------------


class Hello(_Message, tag="hello"):
    """First message of a browser; the server answers `Welcome` or `Problem` and closes."""

    protocol: int


class Tool(_Message, tag="tool"):
    """The hand moved. `sequence` grows with each message; `Frame.applied` echoes the newest one that took effect."""

    sequence: int
    input: ToolInput


class SetParameter(_Message, tag="set_parameter"):
    name: str
    value: float


class SetTable(_Message, tag="set_table"):
    """All rows of a table anew."""

    name: str
    rows: list[list[float]]


class Control(_Message, tag="control"):
    """`step` advances one frame while paused; `value` is the speed factor for `speed`, the seed for `reset`."""

    action: Literal["pause", "resume", "step", "reset", "speed"]
    value: float | None = None


class Drill(_Message, tag="drill"):
    """The drill is started (`seed`: another trial than the one shown), given up, or what is hidden is found."""

    action: Literal["start", "give_up", "found"]
    level: int = 0
    seed: int | None = None
    certainty: float = 1.0
    """Of `found`: how sure the hand is, 0 to 1."""


class Hand(_Message, tag="hand"):
    """Who holds the instruments: a viewer asks for them; the holder gives them to `client` or keeps them; a trainer
    takes them."""

    action: Literal["ask", "give", "keep", "take"]
    client: int = 0


class Enter(_Message, tag="enter"):
    """Somebody has entered or left by /training/enter: the ticket that was answered there, or empty for nobody."""

    ticket: str


class Watch(_Message, tag="watch"):
    """End this session and show a recording to everyone who watches, from this second on."""

    recording: str
    """Name of its file."""
    at: float = 0.0


class Seek(_Message, tag="seek"):
    """Of a recording that is watched: jump to this second; or `again`: go on from what is shown, as a new run."""

    at: float = 0.0
    again: bool = False


class Film(_Message, tag="film"):
    """Make a film of a recording; how far it is, /api/film says."""

    recording: str


class Choose(_Message, tag="choose"):
    """End this session and start the named scenario for everyone who watches."""

    scenario: str
    seed: int = 0
    detail: str = ""
    """A number or `auto`; empty for what was asked for before."""


class Restart(_Message, tag="restart"):
    """A session that crashed or is stalled resumes from its log."""


class FrameAck(_Message, tag="frame_ack"):
    """Frame `number` is drawn. The server keeps at most two frames in flight per browser; the rest are skipped."""

    number: int


class Ping(_Message, tag="ping"):
    client_time: float


ClientMessage = (
    Hello
    | Film
    | Tool
    | SetParameter
    | SetTable
    | Control
    | Drill
    | Hand
    | Enter
    | Watch
    | Seek
    | Choose
    | Restart
    | FrameAck
    | Ping
)


# --- server to browser -------------------------------------------------------------------------------------------


class ScenarioInfo(_Part):
    name: str
    title: str
    summary: str


class Welcome(_Message, tag="welcome"):
    """`client` is this browser's number in `Frame.applied`."""

    protocol: int
    version: str
    client: int
    device: str
    scenarios: list[ScenarioInfo]
    trainer: bool = False
    """Whether this browser has shown the trainer's token."""
    trainers: bool = False
    """Whether there is a trainer's token here."""
    trainee: str = ""
    """Whose trials are kept of what this browser does; empty: nobody's."""
    training: bool = False
    """Whether trials are kept here, of trainees who say who they are."""
    cohort: bool = False
    """Whether this browser may see everybody's trials."""


class SceneDescription(_Message, tag="scene"):
    """What stays; sent when a session starts or a browser joins, before any of its frames."""

    session: int
    """Grows with each session; frames of another session are ignored."""
    device: str
    """What it runs on; `Welcome.device` is empty while the first session is still starting."""
    scene: Scene
    detail: str = ""
    """What was asked for, a number or `auto`; `Scene.detail` is what it is."""


class ArrayData(_Part):
    """An array of `points` or `particles`. `data` is little-endian uint16, three per point:
    value = box[0] + (box[1] - box[0]) * q / 65535 per axis. `shades` is one byte per point, 255 for a shade of 1; empty
    for points."""

    name: str
    count: int
    box: tuple[Vector3, Vector3]
    data: bytes
    shades: bytes = b""


class ExactArray(_Part):
    """An array with every bit. `data` is little-endian float32 (`f4`), int32 (`i4`) or bytes (`u1`), `components` per
    row."""

    name: str
    count: int
    components: int
    data: bytes
    kind: Literal["f4", "i4", "u1"] = "f4"


class ArrayTiles(_Part):
    """Tiles of a picture of bytes that changed (textures, volumes, pictures). `places` is little-endian uint16, column
    and row of each tile, in tiles; `data` holds the tiles one after the other, row by row: of each texel the first
    `channels` of RGBA, the others being 0."""

    name: str
    places: bytes
    data: bytes
    channels: int


class Tiles(_Message, tag="tiles"):
    """What changed in the pictures since this browser last got tiles; belongs to the frame before it. Tiles are square,
    `side` texels wide."""

    session: int
    side: int
    arrays: list[ArrayTiles]


class Topology(_Message, tag="topology"):
    """The triangles of a surface have changed: `triangles`, `rest` and `uv` anew, as the arrays of `Surface` say. Comes
    before the frame whose `versions` has this version."""

    session: int
    surface: str
    version: int
    arrays: list[ExactArray]


class FrameMessage(_Message, tag="frame"):
    """The newest snapshot. Arrays whose role is `values` come as `values`."""

    number: int
    session: int
    state: Frame
    arrays: list[ArrayData]
    values: list[ExactArray] = []


class TrialScore(_Message, tag="score"):
    """The trial that ended last, scored. A browser that joins later gets it too."""

    session: int
    score: Score


class Place(_Part):
    """Where a trainee stands in one measure."""

    name: str
    """As `Row.name` of the score."""
    values: list[float]
    """Of their own trials, the newest last."""
    quartiles: tuple[float, float, float] | None
    """Of all trials that anybody passed; None while there are too few."""
    plateau: float | None
    """What practice leads to; None while it cannot be said."""
    limit: float | None
    """What is good enough; None where nothing says so."""
    proficient_at: int | None
    """The trial after which LC-CUSUM calls them proficient in it; None: not yet, or no limit."""


class Standing(_Message, tag="standing"):
    """Where the trainee stands after the trial that ended last, in this scenario and level."""

    session: int
    trainee: str
    trials: int
    times: list[float]
    """Of their own trials, the newest last [s]."""
    passed: list[bool]
    quartiles: tuple[float, float, float] | None
    """Of the time of all trials that anybody passed [s]; None while there are too few."""
    proficient_at: int | None
    """The trial after which LC-CUSUM calls them proficient; None: not yet."""
    places: list[Place] = []
    """The same of every measure."""


class Watched(_Part):
    """A recording that is shown."""

    recording: str
    """Name of its file."""
    seconds: float
    """How long it is."""
    marks: list[tuple[float, str]]
    """Moments worth jumping to [s], with what happened there."""
    stored: bool = False
    """Whether the picture is a stored one, while the world is computed up to there."""
    done: float = 1.0
    """How far that computation is, 0 to 1."""


class GazeSource(_Part):
    """A source of gaze outside the page, of the machine that runs the session."""

    name: str
    surface: Literal["view", "screen"]
    """What its places are shares of: the page's picture, or the whole screen."""
    counts: bool
    """False where it could not be opened: the pointer of whoever holds the instruments counts."""
    problem: str
    """Why nothing is seen; empty while all is well."""


class SessionState(_Message, tag="session_state"):
    """`message` explains `starting` (what is being compiled) and `crashed` (why, and what to do). A session that has
    said nothing for seconds is `stalled`: it may go on by itself, and may be restarted."""

    state: Literal["starting", "running", "paused", "stalled", "crashed", "ended"]
    message: str
    progress: float
    """Of starting, 0 to 1."""
    speed: float
    viewers: int
    notice: str
    """What a person should know though the session goes on (recording stopped: disk full); empty when all is well."""
    notes: list[str] = []
    """What was guessed or mended of the user's own mesh, a sentence each; nothing is wrong."""
    holder: int = 0
    """The browser that holds the instruments; all others watch."""
    asking: list[int] = []
    """Browsers that ask for them, who asked first in front."""
    watched: Watched | None = None
    """What is shown is this recording; None: it is live."""
    gaze: GazeSource | None = None
    """Whose gaze counts; None: that of the page whose viewer holds the instruments."""


class Problem(_Message, tag="problem"):
    """Something this browser sent was refused. `hint` says what to do."""

    code: Literal["protocol", "malformed", "too_large", "flood", "refused", "input"]
    message: str
    hint: str


class Pong(_Message, tag="pong"):
    client_time: float


class ExactSnapshot(_Part):
    """What `/api/snapshot` answers: the newest state with every bit, for tests and measurements."""

    session: int
    state: Frame
    arrays: list[ExactArray]


ServerMessage = (
    Welcome | SceneDescription | FrameMessage | Tiles | Topology | TrialScore | Standing | SessionState | Problem | Pong
)
