"""What a world shows: a `Scene` that stays (topology, instruments, parameters) and a `Frame` per frame.

Doors (server, recorder, examples) know a world through these types alone, and they are what travels to the browser:
`server/messages.py` holds them as they are, and the page's types are made from them. Arrays are NumPy: positions in
metres as float32, pictures as uint8. How an array travels is its `ArraySpec.role`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from viscera.errors import InputError
from viscera.inputs import Hold, Vector3
from viscera.instruments.instrument import Instrument, Part
from viscera.view.arrays import AnyArray, ArraySpec, FloatArray, IntArray, Role
from viscera.view.drill import DrillState, Goal, Level, Measure, Outcome, Phase
from viscera.view.pictures import Drag, Overlay, Picture
from viscera.view.settings import ADVANCED, Column, Parameter, Table

__all__ = [
    "ADVANCED",
    "AnyArray",
    "ArraySpec",
    "Camera",
    "Column",
    "Drag",
    "DrillState",
    "FloatArray",
    "Frame",
    "Goal",
    "HapticState",
    "IntArray",
    "LatticeView",
    "Level",
    "Markers",
    "Measure",
    "Outcome",
    "Overlay",
    "Parameter",
    "Particles",
    "Phase",
    "Picture",
    "Role",
    "Scene",
    "Shown",
    "Snapshot",
    "Stains",
    "Surface",
    "Table",
    "Texture",
    "Threads",
    "TickTimes",
    "ToolState",
    "Volume",
]


LOOKS = ("tissue", "liver", "fat", "vessel", "skin", "gauze", "steel", "earth")
"""How a surface can look."""


@dataclass(frozen=True)
class Surface:
    """A triangle mesh whose vertices move. Its vertices are the snapshot array called `array`."""

    name: str
    material: str
    """How it looks, one of `LOOKS`."""
    triangles: IntArray
    """Vertex indices, shape (triangles, 3), counter-clockwise seen from outside."""
    array: str
    vertex_count: int
    rest: FloatArray | None = None
    """Its vertices at rest [m], shape (vertices, 3): what colour and bumps are painted on."""
    uv: FloatArray | None = None
    """Where each triangle's corners lie in the surface's textures, 0 to 1, shape (triangles, 3, 2)."""
    triangle_capacity: int = 0
    """0 for a surface whose triangles stay. Otherwise they change while the world runs (cuts): at most so many, with at
    most `vertex_count` vertices. The present ones are the arrays `NAME/triangles`, `NAME/rest` and `NAME/uv`, which
    come anew whenever `Frame.versions[NAME]` grows."""
    backdrop: bool = False
    """Whether it is what lies around everything, as the walls of a cavity: the first view need not hold all of it, and
    there is no cloth."""

    def arrays(self) -> dict[str, ArraySpec]:
        points: dict[str, ArraySpec] = {self.array: ArraySpec((self.vertex_count, 3), "f4", "points")}
        if not self.triangle_capacity:
            return points
        return points | {
            f"{self.name}/triangles": ArraySpec((self.triangle_capacity, 3), "i4", "topology"),
            f"{self.name}/rest": ArraySpec((self.vertex_count, 3), "f4", "topology"),
            f"{self.name}/uv": ArraySpec((self.triangle_capacity, 6), "f4", "topology"),
        }


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
    absorption: Vector3 = (0.0, 0.0, 0.0)
    """Of a film's fluid besides blood, its blue channel: of red, green and blue light [1/m]."""
    body: Vector3 = (0.0, 0.0, 0.0)
    """What a thick layer of that fluid scatters back, linear RGB."""

    def arrays(self) -> dict[str, ArraySpec]:
        return {self.name: ArraySpec((self.height, self.width, 4), "u1", "tiles")}


@dataclass(frozen=True)
class Stains:
    """Blood on the cloth under everything or on the instruments: the snapshot array of its name, uint8, shape (height,
    width, 4). Red is 255 √(thickness/`thickest`), of gauze how full it is; green how much of it is blood; blue and
    alpha are free. Sides are multiples of 32.

    On cloth, rows go along y and columns along x from `corner`, `cell` apart. On instruments, `height` has as many rows
    for each, in their order, `cell` apart along its axis from the tip; columns go once around it, from its x axis."""

    name: str
    on: Literal["cloth", "tools"]
    width: int
    height: int
    cell: float
    """[m]"""
    thickest: float
    """[m]"""
    corner: Vector3 = (0.0, 0.0, 0.0)
    """Of the cloth [m]."""
    gauze: tuple[float, ...] = ()
    """Up to here along its axis each instrument is gauze [m]; −1 for one that is not."""

    def arrays(self) -> dict[str, ArraySpec]:
        return {self.name: ArraySpec((self.height, self.width, 4), "u1", "tiles")}


@dataclass(frozen=True)
class Particles:
    """Particles that are drawn as one fluid: the snapshot array of its name, float32, shape (capacity, 4): position [m]
    and a shade from 0 to 1. How many there are now stands in `Frame.counts`."""

    name: str
    fluid: Literal["water", "saline", "blood", "barium"]
    radius: float
    """Of the ball that each one is drawn as [m]."""
    capacity: int
    shade: Literal["", "share", "speed", "size", "volume"] = ""
    """What the shade means: nothing; how much of a particle is `fluid`, the rest being water; how fast it is; how small
    it is, drawn as balls from red to blue; how much liquid it holds, over `volume`."""
    fastest: float = 0.0
    """Speed of shade 1 [m/s]."""
    volume: float = 0.0
    """Liquid that one stands for, those of shade 1 where shades are volumes [m³]; 0 is that of balls drawn at 0.8 of
    their spacing."""
    stretched: bool = False
    """Whether each is drawn stretched along its velocity: the array `NAME/velocity`, shape (capacity, 3) [m/s]."""

    def arrays(self) -> dict[str, ArraySpec]:
        found = {self.name: ArraySpec((self.capacity, 4), "f4", "particles")}
        if self.stretched:
            found[f"{self.name}/velocity"] = ArraySpec((self.capacity, 3), "f4", "points")
        return found


@dataclass(frozen=True)
class Markers:
    """Small rigid things that lie on or in tissue: the snapshot array of its name, float32, shape (capacity, 8):
    position [m], orientation (x, y, z, w; its z axis stands on the tissue), and 1 where there is one, 0 where not."""

    name: str
    look: Literal["clip", "pin", "target"]
    """A target is where something was hidden: a ball that is seen through tissue."""
    size: float
    """Half its length [m]."""
    capacity: int

    def arrays(self) -> dict[str, ArraySpec]:
        return {self.name: ArraySpec((self.capacity, 8), "f4", "values")}


@dataclass(frozen=True)
class Threads:
    """Round threads: the snapshot array of its name, float32, shape (capacity, 4): points [m] one after the other, and
    1 where the thread goes on to the next point, 0 at its last. How many points there are stands in `Frame.counts`."""

    name: str
    look: Literal["suture", "wire"]
    radius: float
    """[m]"""
    capacity: int

    def arrays(self) -> dict[str, ArraySpec]:
        return {self.name: ArraySpec((self.capacity, 4), "f4", "values")}


@dataclass(frozen=True)
class LatticeView:
    """Masses as balls and springs as lines, instead of a surface or beside it: the snapshot array of its name, float32,
    shape (capacity, 4): places [m] and a shade from 0 to 1, drawn from blue to red; none while it is not shown
    (`Frame.counts`). The array `NAME/cut` has the numbers of the springs that are cut, shape (springs, 1)."""

    name: str
    surface: str
    """Of the same organ."""
    springs: IntArray
    """The two masses of each, shape (springs, 2)."""
    radius: float
    """Of the balls [m]."""
    capacity: int
    parameter: str
    """Which says what is shown: 0 the surface, 1 the lattice instead, 2 the lattice beside it."""

    def arrays(self) -> dict[str, ArraySpec]:
        return {
            self.name: ArraySpec((self.capacity, 4), "f4", "values"),
            f"{self.name}/cut": ArraySpec((len(self.springs), 1), "f4", "values"),
        }


@dataclass(frozen=True)
class Volume:
    """What fills space: smoke, blood in saline. The snapshot array of its name, uint8, shape (depth · height, width,
    4): layers along z, rows along y. Red is the density, 255 at `densest`; green how much of it is blood; blue and
    alpha are free. Width, and depth times height, are multiples of 32."""

    name: str
    look: Literal["smoke", "saline"]
    width: int
    height: int
    depth: int
    box: tuple[Vector3, Vector3]
    """Two corners of the box that it fills [m]."""
    densest: float
    """Share of light that one metre of the densest takes away, as an exponent [1/m]."""

    def __post_init__(self) -> None:
        if self.width % 32 or (self.depth * self.height) % 32 or min(self.width, self.height, self.depth) < 1:
            raise InputError(
                f"volume {self.name!r} of {self.width} × {self.height} × {self.depth} cannot be streamed.",
                "Make its width, and its depth times its height, multiples of 32.",
            )

    def arrays(self) -> dict[str, ArraySpec]:
        return {self.name: ArraySpec((self.depth * self.height, self.width, 4), "u1", "tiles")}


@dataclass(frozen=True)
class Camera:
    position: Vector3
    target: Vector3
    up: Vector3
    field_of_view: float
    """Vertical [degrees]."""
    trocar: Vector3 | None = None
    """Where the scope whose view this is goes through the body wall [m]; None for a view that is free. How its lens
    looks relative to its shaft is the setting `lens`."""


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
    force_scale: float = 0.1
    """Length of a force's arrow [m/N]; fixed, so that lengths can be compared."""
    detail: float = 1.0
    """Times the scenario's stated numbers of masses, texels and particles."""
    masses: int = 0
    """Of all organs."""
    surfaces: tuple[Surface, ...] = ()
    instruments: tuple[Instrument, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    textures: tuple[Texture, ...] = ()
    stains: tuple[Stains, ...] = ()
    particles: tuple[Particles, ...] = ()
    markers: tuple[Markers, ...] = ()
    threads: tuple[Threads, ...] = ()
    lattices: tuple[LatticeView, ...] = ()
    volumes: tuple[Volume, ...] = ()
    pictures: tuple[Picture, ...] = ()
    overlays: tuple[Overlay, ...] = ()
    measures: tuple[Measure, ...] = ()
    tables: tuple[Table, ...] = ()
    levels: tuple[Level, ...] = ()
    """Of the drill; none where there is no drill."""
    hides: bool = False
    """Whether the drill hides something that a hand can say it has found."""


@dataclass(frozen=True, slots=True)
class ToolState(Hold):
    """A tool as the world has it. `force` and `torque` are what a hand at the tip feels [N], [N·m] about the tip;
    `handle_force` and `handle_torque` what a hand at the handle does, by the lever of the trocar. Without one both are
    the same."""

    position: Vector3 = (0.0, 0.0, 0.0)
    active: bool = False
    force: Vector3 = (0.0, 0.0, 0.0)
    torque: Vector3 = (0.0, 0.0, 0.0)
    handle_force: Vector3 = (0.0, 0.0, 0.0)
    handle_torque: Vector3 = (0.0, 0.0, 0.0)


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
    mode: Literal["running", "absent", "stalled", "broken", "jumped", "catching_up", "late"]
    """Why it is what it is. `late`: the force fades because the world does not keep up. All others but `running`: there
    is none."""
    gain: float
    """Share of the world's force that is let through, 0 to 1."""


@dataclass(frozen=True, slots=True)
class TickTimes:
    """Wall time of the last ticks, one by one [ms]."""

    p50: float = 0.0
    p99: float = 0.0
    p99_9: float = 0.0
    worst: float = 0.0
    late: float = 0.0
    """Share of them that took longer than 2 ms."""


@dataclass(kw_only=True)
class Frame:
    """The world after `tick` ticks, all but its arrays. A session adds what it knows; on its own a world leaves that at
    its defaults."""

    tick: int
    time: float
    """Simulated [s]."""
    tools: list[ToolState]
    parameters: dict[str, float]
    counts: dict[str, int] = field(default_factory=dict)
    """Of arrays that are not full: how many of their rows are there."""
    versions: dict[str, int] = field(default_factory=dict)
    """Of surfaces whose triangles change: grows with each change."""
    measures: dict[str, float] = field(default_factory=dict)
    drill: DrillState | None = None
    """None where there is no drill."""
    tables: dict[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    """Mean wall time of each part of a frame [ms]. All but `tissue` runs beside the ticks."""
    ticks: TickTimes = field(default_factory=TickTimes)
    real_time_factor: float = 1.0
    """Simulated seconds per second of wall clock, over the last half second or so: of tissue and tools."""
    beside_factor: float = 1.0
    """The same of all else (heat, blood, fluids), which slows down when it cannot keep up."""
    applied: list[tuple[int, int]] = field(default_factory=list)
    """(browser, newest sequence number of its tool inputs that took effect)"""
    haptics: list[HapticState] = field(default_factory=list)


@dataclass(kw_only=True)
class Snapshot(Frame):
    """A frame with its arrays, as the scene names them; the caller owns the copies."""

    arrays: dict[str, AnyArray] = field(default_factory=dict)


Shown = Surface | Texture | Stains | Particles | Markers | Threads | LatticeView | Volume | Picture | Overlay
"""What a scene lists and arrays belong to."""

__all__ = [
    "ADVANCED", "AnyArray", "ArraySpec", "Camera", "Column", "DrillState", "FloatArray", "Frame", "Goal", "HapticState",
    "Instrument", "IntArray", "LatticeView", "Level", "Markers", "Measure", "Outcome", "Overlay", "Parameter", "Part",
    "Particles", "Phase", "Picture", "Role", "Scene", "Shown", "Snapshot",
    "Surface", "Table", "Texture", "Threads", "TickTimes", "ToolState", "Volume",
]  # fmt: skip
