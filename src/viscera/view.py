"""What a world shows: a `Scene` that stays (topology, instruments, parameters) and a `Snapshot` per frame.

Doors (server, recorder, examples) know a world through these types alone. Arrays are NumPy: positions in metres as
float32, pictures on a surface as uint8.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.inputs import Quaternion, Vector3

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]
AnyArray = NDArray[Any]

ArraySpec = tuple[tuple[int, ...], str]
"""Shape and NumPy type (`f4`, `u1`) of an array that a snapshot holds."""


ADVANCED = "Advanced"
"""The `Parameter.group` that the page shows last and folded."""


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
    choices: tuple[str, ...] = ()
    """What 0, 1, 2, … are called, where the number stands for one of a few things; empty where it is a quantity."""
    group: str = ""
    """Under which heading the page shows it; headings come in the order of their first parameter, `ADVANCED` last."""

    def __post_init__(self) -> None:
        if not self.choices:
            return
        last = len(self.choices) - 1
        if last < 1 or len(set(self.choices)) <= last or (self.minimum, self.maximum) != (0.0, float(last)):
            raise InputError(
                f"parameter {self.name!r}: {self.minimum:g} to {self.maximum:g} does not fit choices {self.choices}.",
                "Give at least two different choices, minimum 0 and maximum the number of choices less 1.",
            )
        if self.default not in range(last + 1):
            raise InputError(
                f"parameter {self.name!r}: default {self.default:g} is none of its choices.",
                f"Allowed are the whole numbers 0 to {last}.",
            )


@dataclass(frozen=True)
class Surface:
    """A triangle mesh whose vertices move. Its vertices are the snapshot array called `array`."""

    name: str
    material: str
    """How it looks: `tissue`, `liver`, `fat`, `vessel`, `steel`, `earth`."""
    triangles: IntArray
    """Vertex indices, shape (triangles, 3), counter-clockwise seen from outside."""
    array: str
    vertex_count: int
    rest: FloatArray | None = None
    """Its vertices at rest [m], shape (vertices, 3): what colour and bumps are painted on."""
    uv: FloatArray | None = None
    """Where each triangle's corners lie in the surface's textures, 0 to 1, shape (triangles, 3, 2)."""


@dataclass(frozen=True)
class Texture:
    """A picture on a surface that changes: the snapshot array of its name, uint8, shape (height, width, 4), row 0 at
    v = 0. `role` says what the four numbers mean: `burn` as `heat.stages` packs it, `film` as `blood.picture` does;
    `ink` is what is drawn or laid on the skin: its colour (sRGB, times alpha) and how much it covers; black is a skin
    marker's violet."""

    name: str
    surface: str
    role: Literal["burn", "film", "ink"]
    width: int
    height: int


@dataclass(frozen=True)
class Particles:
    """Particles that are drawn as one fluid: the snapshot array of its name, float32, shape (capacity, 4): position [m]
    and a shade from 0 to 1. How many there are now stands in `Snapshot.counts`."""

    name: str
    look: Literal["water", "saline", "blood", "barium", "clip"]
    """A `clip` is no fluid but a small steel clip per two rows: where it sits, and a point straight above; there is
    none where the two are the same."""
    radius: float
    """Of the ball that each one is drawn as [m]; of a clip half its length."""
    capacity: int
    shade: str = ""
    """What the shade means, for people: `speed, 0 to 2 m/s`. Empty when it means nothing."""


@dataclass(frozen=True)
class Measure:
    """A number about how it goes, which people watch: charred area, blood lost."""

    name: str
    label: str
    unit: str
    help: str
    digits: int = 1
    """After the point."""


@dataclass(frozen=True)
class Column:
    """Of a `Table`. A colour is the number 65536 · red + 256 · green + blue, each 0 to 255 (sRGB)."""

    name: str
    label: str
    unit: str
    kind: Literal["number", "colour"]
    minimum: float
    maximum: float
    help: str = ""


@dataclass(frozen=True)
class Table:
    """Numbers in rows that a user may edit while the world runs: the stages of a burn. The number of rows stays."""

    name: str
    label: str
    help: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[float, ...], ...]
    """As the world begins; the present ones are in `Snapshot.tables`."""
    row_names: tuple[str, ...] = ()
    """What people call the rows, one each; empty where they have no names."""
    fixed: tuple[tuple[int, int], ...] = ()
    """Row and column of the cells that the page does not let a user edit, because another value is refused."""


@dataclass(frozen=True)
class Part:
    """One rigid piece of an instrument: a round bar between two points of its frame [m]. A jaw turns about the frame's
    y axis through `start` by `swing` [rad] when the handle is open (grip 0), and not at all when it is closed."""

    start: Vector3
    end: Vector3
    radius: float
    swing: float = 0.0


@dataclass(frozen=True)
class Instrument:
    """A tool in a hand, its tip at the origin, its shaft along +z."""

    name: str
    shape: Literal["sphere", "capsule"]
    """What touches tissue."""
    radius: float
    """[m]"""
    length: float
    """Of the capsule's axis [m]; 0 for a sphere."""
    home: Vector3
    """Where it waits, outside the body [m]."""
    offset: float = 0.0
    """Where the shape that touches begins, above the tip [m]."""
    label: str = ""
    """For people; the name where there is none."""
    action: str = ""
    """What pressing the handle or pedal does: `coagulate`, `rinse`. Empty when it does nothing but move."""
    parts: tuple[Part, ...] = ()
    """How its working end looks; a ball or rod of `radius` where there are none."""


@dataclass(frozen=True)
class Camera:
    position: Vector3
    target: Vector3
    up: Vector3
    field_of_view: float
    """Vertical [degrees]."""


@dataclass(frozen=True)
class Goal:
    """What a drill asks of a measure: at least, or at most, so much."""

    measure: str
    """Its name."""
    least: float | None = None
    most: float | None = None

    def met(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


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
    textures: tuple[Texture, ...] = ()
    particles: tuple[Particles, ...] = ()
    measures: tuple[Measure, ...] = ()
    tables: tuple[Table, ...] = ()
    goals: tuple[Goal, ...] = ()


@dataclass
class ToolState:
    """A tool as the world has it. `force` and `torque` are what the hand feels [N], [N·m] about the tip."""

    tool: int
    active: bool = False
    position: Vector3 = (0.0, 0.0, 0.0)
    orientation: Quaternion = (0.0, 0.0, 0.0, 1.0)
    force: Vector3 = (0.0, 0.0, 0.0)
    torque: Vector3 = (0.0, 0.0, 0.0)
    grip: float = 0.0
    """How far the handle or pedal is pressed, 0 to 1."""


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
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Of each `Particles`, how many of its array's rows are there."""
    measures: dict[str, float] = field(default_factory=dict)
    tables: dict[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
