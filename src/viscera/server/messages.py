"""Every message between server and browser: the only schema.

Messages are MessagePack maps with a `type` field; `web/src/protocol.ts` is generated from this file by
`python -m viscera.server.typescript` and CI fails when it is not current. Both sides refuse another `PROTOCOL`.
Lengths are metres, forces newtons, times seconds unless the name says otherwise.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PROTOCOL = 1
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


ClientMessage = Hello | Tool | SetParameter | Control | Choose | Restart | FrameAck | Ping


# --- server to browser -------------------------------------------------------------------------------------------


class ScenarioInfo(_Part):
    name: str
    title: str
    summary: str


class SurfaceInfo(_Part):
    """`triangles` is little-endian uint32, three per triangle. Vertices are the frame array called `array`. `rest` is
    little-endian float32, three per vertex: the surface at rest, on which colour and bumps are painted; may be
    empty, then the first frame is taken."""

    name: str
    material: str
    triangles: bytes
    array: str
    vertex_count: int
    rest: bytes = b""


class InstrumentInfo(_Part):
    name: str
    shape: Literal["sphere", "capsule"]
    radius: float
    length: float
    home: Vec3


class ParameterInfo(_Part):
    name: str
    label: str
    unit: str
    minimum: float
    maximum: float
    default: float
    help: str


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


class ArrayData(_Part):
    """`data` is little-endian uint16, three per point: value = box[0] + (box[1] - box[0]) * q / 65535 per axis."""

    name: str
    count: int
    box: tuple[Vec3, Vec3]
    data: bytes


class ToolInfo(_Part):
    """`force` and `torque` are what the hand feels [N], [N·m] about the tip."""

    tool: int
    active: bool
    position: Vec3
    orientation: Quat
    force: Vec3
    torque: Vec3


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
    """`data` is little-endian float32, `components` per point, not quantised."""

    name: str
    count: int
    components: int
    data: bytes


class ExactSnapshot(_Part):
    """What `/api/snapshot` answers: the newest state with every bit, for tests and measurements."""

    session: int
    tick: int
    time: float
    tools: list[ToolInfo]
    parameters: dict[str, float]
    arrays: list[ExactArray]


ServerMessage = Welcome | SceneDescription | Frame | SessionState | Problem | Pong
