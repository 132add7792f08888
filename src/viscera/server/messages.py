"""Every message between server and browser: the only schema.

Messages are MessagePack maps with a `type` field; `web/src/protocol.ts` is generated from this file by
`python -m viscera.server.typescript` and CI fails when it is not current. Both sides refuse another `PROTOCOL`.
Lengths are metres, forces newtons, times seconds unless the name says otherwise.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PROTOCOL = 2
"""Raised whenever a message changes its meaning."""

MAX_CLIENT_MESSAGE = 4096
"""Largest message a browser may send [bytes]."""

MIN_SPEED = 0.05
"""Slowest motion that `Control` `speed` takes; 1 is real time, the fastest."""

Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]


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

    tool: int
    position: Vec3
    orientation: Quat
    grip: float
    active: bool
    sequence: int


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


class Choose(_Message, tag="choose"):
    """End this session and start the named scenario for everyone who watches."""

    scenario: str
    seed: int = 0


class Restart(_Message, tag="restart"):
    """A crashed session resumes from its log."""


class FrameAck(_Message, tag="frame_ack"):
    """Frame `number` is drawn. The server keeps at most two frames in flight per browser; the rest are skipped."""

    number: int


class Ping(_Message, tag="ping"):
    client_time: float


ClientMessage = Hello | Tool | SetParameter | SetTable | Control | Choose | Restart | FrameAck | Ping


# --- server to browser -------------------------------------------------------------------------------------------


class ScenarioInfo(_Part):
    name: str
    title: str
    summary: str


class SurfaceInfo(_Part):
    """`triangles` is little-endian uint32, three per triangle. Vertices are the frame array called `array`. `rest` is
    little-endian float32, three per vertex: the surface at rest, on which colour and bumps are painted; may be
    empty, then the first frame is taken. `uv` is little-endian float32, two per corner, three corners per triangle:
    where it lies in the surface's textures; empty when it has none."""

    name: str
    material: str
    triangles: bytes
    array: str
    vertex_count: int
    rest: bytes = b""
    uv: bytes = b""


class TextureInfo(_Part):
    """A picture of RGBA bytes on a surface, row 0 at v = 0; it begins all zero and changes by `Tiles`. `burn`: red is
    the temperature, green how far it is coagulated, blue how far charred, alpha the water left. `film`: red is the
    thickness, green the fraction of blood, blue that of bile, alpha how far it has clotted. `ink`: colour times
    alpha, and how much of the skin it covers; black is a marker's violet. docs/page.md has the scales."""

    name: str
    surface: str
    role: Literal["burn", "film", "ink"]
    width: int
    height: int


class ParticlesInfo(_Part):
    """Particles drawn as one fluid: the frame array of its name. `shade` says what the arrays' shades mean. A `clip` is
    drawn per two points: where it sits, and straight above; none where the two are the same."""

    name: str
    look: Literal["water", "saline", "blood", "barium", "clip"]
    radius: float
    shade: str


class MeasureInfo(_Part):
    """A number that people watch; `digits` after the point."""

    name: str
    label: str
    unit: str
    help: str
    digits: int


class GoalInfo(_Part):
    """What a drill asks of a measure: at least, or at most, so much. Reached when all goals are met at once."""

    measure: str
    least: float | None
    most: float | None


class ColumnInfo(_Part):
    """A colour is the number 65536 · red + 256 · green + blue, each 0 to 255 (sRGB)."""

    name: str
    label: str
    unit: str
    kind: Literal["number", "colour"]
    minimum: float
    maximum: float
    help: str = ""


class TableInfo(_Part):
    """Numbers that a user may edit; `rows` as the world began. `row_names` are one per row or none at all; `fixed`
    names the cells, row and column, that nobody may edit."""

    name: str
    label: str
    help: str
    columns: list[ColumnInfo]
    rows: list[list[float]]
    row_names: list[str] = []
    fixed: list[tuple[int, int]] = []


class PartInfo(_Part):
    """A round bar between two points of the instrument's frame [m]. A jaw turns about the frame's y axis through
    `start` by `swing` · (1 − grip) [rad]."""

    start: Vec3
    end: Vec3
    radius: float
    swing: float


class InstrumentInfo(_Part):
    """`label` is for people, `action` says what pressing does (empty: nothing); `parts` are how its end looks."""

    name: str
    shape: Literal["sphere", "capsule"]
    radius: float
    length: float
    home: Vec3
    label: str = ""
    action: str = ""
    parts: list[PartInfo] = []


class ParameterInfo(_Part):
    """`choices` are what 0, 1, 2, … are called where the number stands for one of a few things. `group` is the heading
    that it is shown under: headings come in the order of their first parameter, `Advanced` last and folded."""

    name: str
    label: str
    unit: str
    minimum: float
    maximum: float
    default: float
    help: str
    choices: list[str] = []
    group: str = ""


class CameraInfo(_Part):
    position: Vec3
    target: Vec3
    up: Vec3
    field_of_view: float


class Welcome(_Message, tag="welcome"):
    """`client` is this browser's number in `Frame.applied`."""

    protocol: int
    version: str
    client: int
    device: str
    scenarios: list[ScenarioInfo]


class SceneDescription(_Message, tag="scene"):
    """What stays; sent when a session starts or a browser joins, before any of its frames."""

    scenario: str
    title: str
    summary: str
    instructions: str
    seed: int
    session: int
    """Grows with each session; frames of another session are ignored."""
    device: str
    """What it runs on; `Welcome.device` is empty while the first session is still starting."""
    bounds: tuple[Vec3, Vec3]
    camera: CameraInfo
    surfaces: list[SurfaceInfo]
    instruments: list[InstrumentInfo]
    parameters: list[ParameterInfo]
    textures: list[TextureInfo] = []
    particles: list[ParticlesInfo] = []
    measures: list[MeasureInfo] = []
    tables: list[TableInfo] = []
    goals: list[GoalInfo] = []


class ArrayData(_Part):
    """`data` is little-endian uint16, three per point: value = box[0] + (box[1] - box[0]) * q / 65535 per axis.
    `shades` is one byte per point, 255 for a shade of 1; empty for surfaces."""

    name: str
    count: int
    box: tuple[Vec3, Vec3]
    data: bytes
    shades: bytes = b""


class TextureTiles(_Part):
    """Tiles of a texture that changed. `places` is little-endian uint16, column and row of each tile, in tiles;
    `data` holds the tiles one after the other, row by row, RGBA."""

    name: str
    places: bytes
    data: bytes


class Tiles(_Message, tag="tiles"):
    """What changed in the textures since this browser was last told; belongs to the frame before it. Tiles are square,
    `side` texels wide."""

    session: int
    side: int
    textures: list[TextureTiles]


class ToolInfo(_Part):
    """`force` and `torque` are what the hand feels [N], [N·m] about the tip."""

    tool: int
    active: bool
    position: Vec3
    orientation: Quat
    force: Vec3
    torque: Vec3
    grip: float = 0.0


class HapticInfo(_Part):
    """A haptic device that drives a tool, so that no pointer does. `force` is what the hand was made to feel, after
    every limit [N]."""

    tool: int
    device: str
    present: bool
    """False while the device is away."""
    force: Vec3
    mode: Literal["running", "absent", "stalled", "broken", "jumped", "catching_up", "late"]
    """`late`: the force fades because the world does not keep up. All others but `running`: there is none."""
    gain: float
    """Share of the world's force that is let through, 0 to 1."""


class StageInfo(_Part):
    """Mean time of one stage per frame [ms]."""

    name: str
    ms: float


class Frame(_Message, tag="frame"):
    """The newest snapshot. `applied` pairs a browser's number with its newest `Tool.sequence` in this state."""

    number: int
    session: int
    tick: int
    time: float
    real_time_factor: float
    arrays: list[ArrayData]
    tools: list[ToolInfo]
    parameters: dict[str, float]
    stages: list[StageInfo]
    applied: list[tuple[int, int]]
    haptics: list[HapticInfo] = []
    measures: dict[str, float] = {}
    tables: dict[str, list[list[float]]] = {}


class SessionState(_Message, tag="session_state"):
    """`message` explains `starting` (what is being compiled) and `crashed` (why, and what to do)."""

    state: Literal["starting", "running", "paused", "crashed", "ended"]
    message: str
    progress: float
    """Of starting, 0 to 1."""
    speed: float
    viewers: int
    notice: str
    """What a person should know though the session goes on (recording stopped: disk full); empty when all is well."""


class Problem(_Message, tag="problem"):
    """Something this browser sent was refused. `hint` says what to do."""

    code: Literal["protocol", "malformed", "too_large", "flood", "refused", "input"]
    message: str
    hint: str


class Pong(_Message, tag="pong"):
    client_time: float


class ExactArray(_Part):
    """`data` is little-endian float32 (`f4`) or bytes (`u1`), `components` per point or texel, not quantised."""

    name: str
    count: int
    components: int
    data: bytes
    kind: str = "f4"


class ExactSnapshot(_Part):
    """What `/api/snapshot` answers: the newest state with every bit, for tests and measurements."""

    session: int
    tick: int
    time: float
    tools: list[ToolInfo]
    parameters: dict[str, float]
    arrays: list[ExactArray]
    measures: dict[str, float] = {}


ServerMessage = Welcome | SceneDescription | Frame | Tiles | SessionState | Problem | Pong
