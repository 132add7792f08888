"""What a world shows: a `Scene` that stays (topology, instruments, parameters) and a `Snapshot` per frame.

Doors (server, recorder, examples) know a world through these types alone. Arrays are NumPy, metres, float32.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Quaternion, Vector3

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class Parameter:
    """A number that a user may change while the world runs."""

    name: str
    label: str
    unit: str
    """As people say it: kPa, mm, Hz. The scenario converts to SI at the border."""
    minimum: float
    maximum: float
    default: float
    help: str


@dataclass(frozen=True)
class Surface:
    """A triangle mesh whose vertices move. Its vertices are the snapshot array called `array`."""

    name: str
    material: str
    """How it looks: `tissue`, `liver`, `fat`, `vessel`, `steel`."""
    triangles: IntArray
    """Vertex indices, shape (triangles, 3), counter-clockwise seen from outside."""
    array: str
    vertex_count: int
    rest: FloatArray | None = None
    """Its vertices at rest [m], shape (vertices, 3): what colour and bumps are painted on."""


@dataclass(frozen=True)
class Instrument:
    """A tool in a hand, its tip at the origin, its shaft along +z."""

    name: str
    shape: Literal["sphere", "capsule"]
    radius: float
    """[m]"""
    length: float
    """Of the capsule's axis [m]; 0 for a sphere."""
    home: Vector3
    """Where it waits, outside the body [m]."""


@dataclass(frozen=True)
class Camera:
    position: Vector3
    target: Vector3
    up: Vector3
    field_of_view: float
    """Vertical [degrees]."""


@dataclass(frozen=True)
class Scene:
    scenario: str
    title: str
    summary: str
    instructions: str
    """What to do, for someone who never saw it; one line per step."""
    seed: int
    bounds: tuple[Vector3, Vector3]
    """A box that holds all there is to see [m]."""
    camera: Camera
    surfaces: tuple[Surface, ...] = ()
    instruments: tuple[Instrument, ...] = ()
    parameters: tuple[Parameter, ...] = ()


@dataclass
class ToolState:
    """A tool as the world has it. `force` and `torque` are what the hand feels [N], [N·m] about the tip."""

    tool: int
    active: bool = False
    position: Vector3 = (0.0, 0.0, 0.0)
    orientation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    force: Vector3 = (0.0, 0.0, 0.0)
    torque: Vector3 = (0.0, 0.0, 0.0)


@dataclass
class HapticState:
    """A haptic device and the tool it drives, as people should see it."""

    tool: int
    device: str
    """Its name."""
    present: bool
    """False while the device is away."""
    force: Vector3
    """What the hand was last made to feel, after every limit [N]."""
    mode: str
    """Why it is what it is: `running`, `late` (fading because the world is), `stalled`, `catching_up`, …"""
    gain: float
    """Share of the world's force that is let through, 0 to 1."""


@dataclass
class Snapshot:
    """The world after `tick` ticks. `arrays` holds what `Scene` names; the caller owns the copies."""

    tick: int
    time: float
    """Simulated [s]."""
    tools: list[ToolState]
    parameters: dict[str, float]
    arrays: dict[str, FloatArray] = field(default_factory=dict)
