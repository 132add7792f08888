"""What a suspension leaves on the wall it touched: a film per triangle of the wall, which thins by gravity.

Triangles and not texels: what feeds the film are particles, and a triangle is about as large as one of them (decision
014). On a wall that moves its triangles are measured anew (`fit_coating`), so that a film is thinner where the wall is
stretched, and gravity pulls it where the wall faces now.

Every particle carries the suspension it came with, counted in whole units (`FULL` in a new particle), and gives of it
to the triangle it touches until the film there is as thick as the wall holds, H:

    gift = (H A − film) dt/τ,   at most a 64th of what the particle has

A film of thickness h flows down the wall as a thin layer does (Nusselt 1916): through an edge of length L, across which
the unit vector t points,

    Q = ρ (g·t) h³/(3μ) L,      at most a quarter of the film in a frame

to the triangle behind the edge. Units are integers and every unit that leaves one account enters another, so

    injected = in the lumen + on the wall + drained

holds exactly, at every moment. The documents have no coating; H and τ are tuned for appearance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.states import Arrays, copy_in, copy_out
from viscera.water import state
from viscera.water.emitter import Drain
from viscera.water.state import CREATED, Fluid, Live

wp.set_module_options({"enable_backward": False})

FULL = 2**20
"""Units in a new particle."""
MOST_MADE = 2**20
"""Particles that may ever be made: accounts are kept by tag."""
LARGEST_GIFT = wp.constant(64)
"""A particle gives no more than this part of what it has, in a frame."""
LARGEST_FLOW = wp.constant(4)
"""A film gives no more than this part of itself through an edge, in a frame."""
SMALLEST = wp.constant(1.0e-12)
"""Twice the area of a triangle is at least this [m²]: one that a wall has folded up carries no infinite film."""


@dataclass(frozen=True)
class CoatingParams:
    thickness: float = 1.5e-4
    """H [m]."""
    time: float = 0.2
    """τ: how fast it grows while it is touched [s]."""
    viscosity: float = 0.2
    """μ [Pa·s]."""
    covered: float = 5.0e-5
    """A wall with a film of at least this counts as coated [m]."""

    def __post_init__(self) -> None:
        for name in ("thickness", "time", "viscosity", "covered"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")


@dataclass(eq=False)
class Coating:
    """Made by `make_coating`."""

    params: CoatingParams
    unit: float
    """Volume of one unit [m³]."""
    content: wp.array
    """Units of the particle with each tag, int32 (MOST_MADE,)."""
    film: wp.array
    """Units on each triangle, int32 (triangles,)."""
    spare: wp.array
    gift: wp.array
    """Units that each particle gives in this frame, int32 (capacity,)."""
    drained: wp.array
    """Units that drains took, int64 (1,)."""
    wanted: wp.array
    """Units of a film of thickness H, int32 (triangles,)."""
    area: wp.array
    """Of each triangle [m²], float."""
    middle: wp.array
    """Of each triangle [m], vec3."""
    across: wp.array
    """Of each edge: its length times the way across it, outwards [m], vec3 (3 · triangles,)."""
    behind: wp.array
    """Of each edge: the same edge of the triangle behind it, −1 where there is none; int32 (3 · triangles,)."""
    per_area: wp.array
    """Thickness of one unit on each triangle [m], float."""
    index: wp.array
    """Corners of the triangles, int32 (3 · triangles,)."""


@wp.kernel
def find_gifts(
    first: int,
    # params
    share: float,
    # in
    count: wp.array(dtype=wp.int32),
    tag: wp.array(dtype=wp.int32),
    face: wp.array(dtype=wp.int32),
    wanted: wp.array(dtype=wp.int32),
    film: wp.array(dtype=wp.int32),
    # out
    content_out: wp.array(dtype=wp.int32),
    gift_out: wp.array(dtype=wp.int32),
):
    s = first + wp.tid()
    gift = wp.int32(0)
    if s < count[0]:
        who = tag[s]
        t = face[s]
        if who >= 0 and t >= 0:
            lacking = wp.max(wanted[t] - film[t], 0)
            gift = wp.min(wp.int32(wp.ceil(share * float(lacking))), content_out[who] / LARGEST_GIFT)
            content_out[who] = content_out[who] - gift
    gift_out[s] = gift


@wp.kernel
def take_gifts(
    # in
    count: wp.array(dtype=wp.int32),
    face: wp.array(dtype=wp.int32),
    gift: wp.array(dtype=wp.int32),
    # out
    film_out: wp.array(dtype=wp.int32),
):
    """On one core: sums of integers, in any order."""
    s = wp.tid()
    if s < count[0] and gift[s] > 0:
        wp.atomic_add(film_out, face[s], gift[s])


@wp.kernel
def book_drained(
    # in
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    region: wp.array(dtype=float),
    # out
    content_out: wp.array(dtype=wp.int32),
    drained_out: wp.array(dtype=wp.int64),
):
    """What a drain with a ball for its region is about to take."""
    s = wp.tid()
    if s >= count[0] or region[10] == 0.0:
        return
    who = tag[s]
    if who >= 0 and wp.length(position[s] - wp.vec3(region[6], region[7], region[8])) <= region[9]:
        wp.atomic_add(drained_out, 0, wp.int64(content_out[who]))
        content_out[who] = 0


@wp.kernel
def hold_back(
    # params
    reach: float,
    # in
    most: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    content: wp.array(dtype=wp.int32),
    # out
    region_out: wp.array(dtype=float),
):
    """One thread: the drain's ball becomes as small as `most` units need, the nearest particles first."""
    middle = wp.vec3(region_out[6], region_out[7], region_out[8])
    radius = float(-1.0)
    units = wp.int32(0)
    who = wp.int32(0)
    while who >= 0 and units < most[0]:
        who = wp.int32(-1)
        nearest = float(reach)
        for s in range(count[0]):
            away = wp.length(position[s] - middle)
            if tag[s] >= 0 and away > radius and away <= nearest:
                nearest = away
                who = tag[s]
        if who >= 0:
            units += content[who]
            radius = nearest
    region_out[9] = radius


@wp.func
def flow_out(
    scale: float,
    gravity: wp.vec3,
    across: wp.array(dtype=wp.vec3),
    per_area: wp.array(dtype=float),
    film: wp.array(dtype=wp.int32),
    edge: int,
) -> wp.int32:
    """Units that leave a triangle through one of its edges in a frame."""
    units = film[edge / 3]
    thick = per_area[edge / 3] * float(units)
    down = wp.dot(gravity, across[edge])
    flow = wp.int32(0)
    if down > 0.0:
        # Through h³ over the volume of a unit, which is the thickness of one times the area.
        flow = wp.int32(wp.min(scale * down * thick * thick * thick, float(units / LARGEST_FLOW)))
    return flow


@wp.kernel
def run_down(
    first: int,
    # params
    scale: float,
    live: wp.array(dtype=Live),
    # in
    across: wp.array(dtype=wp.vec3),
    behind: wp.array(dtype=wp.int32),
    per_area: wp.array(dtype=float),
    film: wp.array(dtype=wp.int32),
    # out
    film_out: wp.array(dtype=wp.int32),
):
    """Each triangle gathers: what comes through its edges less what goes. Both sides of an edge compute the same."""
    t = first + wp.tid()
    g = live[0].gravity
    total = film[t]
    for k in range(3):
        edge = 3 * t + k
        other = behind[edge]
        if other >= 0:
            total -= flow_out(scale, g, across, per_area, film, edge)
            total += flow_out(scale, g, across, per_area, film, other)
    film_out[t] = total


@wp.kernel
def fit_triangles(
    first: int,
    # params
    unit: float,
    thickness: float,
    # in
    vertex: wp.array(dtype=wp.vec3),
    index: wp.array(dtype=wp.int32),
    # out
    area_out: wp.array(dtype=float),
    per_area_out: wp.array(dtype=float),
    wanted_out: wp.array(dtype=wp.int32),
    middle_out: wp.array(dtype=wp.vec3),
    across_out: wp.array(dtype=wp.vec3),
):
    """Area, middle and edges of each triangle of a wall as it is now."""
    t = first + wp.tid()
    a = vertex[index[3 * t]]
    b = vertex[index[3 * t + 1]]
    c = vertex[index[3 * t + 2]]
    normal = wp.cross(b - a, c - a)
    double = wp.max(wp.length(normal), SMALLEST)
    area = 0.5 * double
    area_out[t] = area
    per_area_out[t] = unit / area
    wanted_out[t] = wp.int32(thickness * area / unit)
    middle_out[t] = (a + b + c) / 3.0
    # Edge k runs from corner k to the next; across it, outwards in the plane of the triangle.
    across_out[3 * t] = wp.cross(b - a, normal) / double
    across_out[3 * t + 1] = wp.cross(c - b, normal) / double
    across_out[3 * t + 2] = wp.cross(a - c, normal) / double


def fit_coating(stage: Stage, coating: Coating, vertices: wp.array) -> None:
    """Records that the film lies on a wall whose vertices are now here, vec3 [m]: a stretched one carries a thinner
    film and holds more of it."""
    c = coating
    shape = [c.area, c.per_area, c.wanted, c.middle, c.across]
    stage.launch(fit_triangles, len(c.film), [c.unit, c.params.thickness, vertices, c.index, *shape])


def make_coating(fluid: Fluid, mesh: TriangleMesh, params: CoatingParams | None = None) -> Coating:
    """For a fluid whose vessel is of this mesh. It is empty, and must have been when particles were first made."""
    p = params or CoatingParams()
    device = fluid.device.warp
    triangles, count = len(mesh.triangles), fluid.capacity

    def given(values: NDArray[Any], dtype: Any) -> wp.array:
        return wp.array(np.ascontiguousarray(values), dtype=dtype, device=device)

    def zeros(length: int, dtype: Any) -> wp.array:
        return wp.zeros(length, dtype=dtype, device=device)

    coating = Coating(
        params=p,
        unit=fluid.params.spacing**3 / FULL,
        content=wp.full(MOST_MADE, FULL, dtype=wp.int32, device=device),
        film=wp.zeros(triangles, dtype=wp.int32, device=device),
        spare=wp.zeros(triangles, dtype=wp.int32, device=device),
        gift=wp.zeros(count, dtype=wp.int32, device=device),
        drained=wp.zeros(1, dtype=wp.int64, device=device),
        wanted=zeros(triangles, wp.int32),
        area=zeros(triangles, wp.float32),
        middle=zeros(triangles, wp.vec3),
        across=zeros(3 * triangles, wp.vec3),
        behind=given(_behind(mesh), wp.int32),
        per_area=zeros(triangles, wp.float32),
        index=given(mesh.triangles.astype(np.int32).ravel(), wp.int32),
    )
    vertices = given(mesh.vertices.astype(np.float32), wp.vec3)
    fluid.device.record(lambda stage: fit_coating(stage, coating, vertices), work=triangles).run()
    fluid.device.synchronize()
    return coating


def _behind(mesh: TriangleMesh) -> NDArray[np.int32]:
    """Of edge 3t + k the number of the same edge in the triangle behind it, or −1."""
    a = mesh.triangles.astype(np.int64)
    size = len(mesh.vertices)
    there = (a * size + np.roll(a, -1, axis=1)).ravel()
    back = (np.roll(a, -1, axis=1) * size + a).ravel()
    order = np.argsort(there, kind="stable")
    place = np.clip(np.searchsorted(there[order], back), 0, len(there) - 1)
    found = order[place]
    return np.where(there[found] == back, found, -1).astype(np.int32)


def step_coating(stage: Stage, coating: Coating, fluid: Fluid, face: wp.array, dt: float) -> None:
    """A frame of dt [s]: particles that touch triangle `face` of each (−1: none) give, and the film runs down."""
    c, f, device = coating, fluid, fluid.device.warp
    touched = [f.count, f.tag, face, c.wanted, c.film]
    stage.launch(find_gifts, f.capacity, [dt / c.params.time, *touched, c.content, c.gift])
    inputs = [f.count, face, c.gift, c.film]
    stage.once(lambda: wp.launch(take_gifts, dim=f.capacity, inputs=inputs, device=device))
    scale = f.params.rest_density / (3.0 * c.params.viscosity) * dt / c.unit
    layout = [c.across, c.behind, c.per_area]
    stage.launch(run_down, len(c.film), [scale, f.live, *layout, c.film, c.spare])
    stage.once(lambda: wp.copy(c.film, c.spare))


def step_drain(stage: Stage, coating: Coating, fluid: Fluid, drain: Drain, most: Port | None = None) -> None:
    """Books what a drain with a ball takes, and takes it; with `most` (int32, one number) only what is nearest to its
    middle, until that are so many units: less than a particle more."""
    c, f = coating, fluid
    if most is not None:
        stage.upload(most)
        held = [drain.reach, most.array, f.count, f.position, f.tag, c.content, drain.region]
        stage.once(lambda: wp.launch(hold_back, dim=1, inputs=held, device=f.device.warp))
    inputs = [f.count, f.position, f.tag, drain.region, c.content, c.drained]
    stage.once(lambda: wp.launch(book_drained, dim=f.capacity, inputs=inputs, device=f.device.warp))
    drain.contact(stage, f)


@dataclass(frozen=True)
class Account:
    """Where all units are. Whole numbers: nothing is rounded."""

    injected: int
    lumen: int
    wall: int
    drained: int

    @property
    def missing(self) -> int:
        """0, always."""
        return self.injected - self.lumen - self.wall - self.drained


def account(coating: Coating, fluid: Fluid) -> Account:
    """Each number is counted by itself. Waits for the device."""
    count = int(fluid.count.numpy()[0])
    tags = fluid.tag.numpy()[:count]
    lumen = int(coating.content.numpy()[tags[tags >= 0]].sum(dtype=np.int64))
    wall = int(coating.film.numpy().sum(dtype=np.int64))
    injected = FULL * int(fluid.report.numpy()[CREATED])
    return Account(injected, lumen, wall, int(coating.drained.numpy()[0]))


def covered(coating: Coating) -> float:
    """Share of the wall's area that is coated."""
    area = coating.area.numpy().astype(np.float64)
    thick = coating.film.numpy() * coating.unit >= coating.params.covered * area
    return float(area[thick].sum() / area.sum())


def thickness(coating: Coating) -> NDArray[np.float64]:
    """Of the film on each triangle [m]."""
    return coating.film.numpy() * coating.unit / coating.area.numpy().astype(np.float64)


def write_study(path: str | Path, coating: Coating, fluid: Fluid, vertices: Any) -> None:
    """The state in space as an HDF5 file, for other programs: the wall as it is now (`wall/vertices` [m], which are
    given, `wall/triangles`, and the film's `wall/thickness` [m] per triangle), particles (`particles/position` [m],
    `velocity` [m/s], `volume` of suspension that each has [m³]) and the account [m³] as attributes. Waits for the
    device."""
    import h5py

    found = state.particles(fluid)
    books = account(coating, fluid)
    places = np.asarray(vertices.numpy() if isinstance(vertices, wp.array) else vertices, dtype=np.float64)
    with h5py.File(path, "w") as file:
        file["wall/vertices"], file["wall/triangles"] = places, coating.index.numpy().reshape(-1, 3)
        file["wall/thickness"] = thickness(coating)
        file["particles/position"], file["particles/velocity"] = found["position"], found["velocity"]
        file["particles/volume"] = coating.content.numpy()[found["tag"]] * coating.unit
        for name in ("injected", "lumen", "wall", "drained"):
            file.attrs[name] = getattr(books, name) * coating.unit
        file.attrs["time"] = float(fluid.clock.numpy()[0])


def save_coating(coating: Coating) -> Arrays:
    return copy_out(_kept(coating))


def load_coating(coating: Coating, arrays: Arrays) -> None:
    copy_in("coating", _kept(coating), arrays)


def _kept(coating: Coating) -> dict[str, Any]:
    return {"content": coating.content, "film": coating.film, "booked": coating.drained}
