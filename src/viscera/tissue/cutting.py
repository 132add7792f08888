"""Blades cut the lattice: every spring that an edge has crossed is gone, and the hand feels what that takes.

An edge is a segment on an instrument, with points along it. From tick to tick the points sweep a strip of triangles; a
spring, the segment between two masses as they lie now, is cut if it crosses one of them. What the edge was a tick
before is taken along with each spring, by the affine map from where that was to where it is. So the strip has no gaps,
neither between points nor between ticks: no spring is skipped, however quick the stroke, however far the tissue was
drawn from its place; and an edge that tissue carries along cuts nothing, as it does not move in it.

Cutting takes work: the toughness Γ of the tissue [J/m²] times the new surface. So points are followed through the
tissue *at rest*: one that is at x now is at the place X with X + u(X) = x, where u is the displacement between the
masses, the mean of those two cells around by tents; it begins at the mass that is nearest to it now, and does so again
where it holds nothing. A point that stands for the length ℓ of edge pulls the tissue at the end of its cut along, the
same masses by the same weights, by a stiff spring across its edge whose force is at most

    F = Γ·κ·ℓ·f,

where κ is what share of Γ a blade needs and f the share of what lies ahead that is not cut yet. Below that force the
cut stays where it is in the tissue, which follows the blade; at it, the cut goes on. That is dry friction in the frame
of the tissue: its slip takes F·ds = Γ·κ·dA, and all else of the hand's work goes into the tissue. Momentum: what the
hand feels is what the masses get. In an old cut, or outside, f = 0, nothing is felt, and the cut is where the blade is.
On the eight corners of one cell alone a force of about its stiffness times its side, E·h per length of edge, pushes
them through their neighbours; spread over two cells around, four times as many bear it, and Γ·κ/E may be two cells.

Sources: the balance of work, Atkins, "The Science and Engineering of Cutting" (2009), ch. 2. Cut springs instead of cut
elements: Etheredge, Kunst and Sanders 2013, §6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.tissue import (
    blade_cut_kernels,
    blade_drag_kernels,
    blade_kernels,
    blade_near_kernels,
    blade_resistance_kernels,
    native_blades,
    touch_kernels,
)
from viscera.tissue.blade_kernels import EDGE_FLOATS, EDGES, HUNG, SAMPLES
from viscera.tissue.springs import DIRECTIONS, NodeIndex, cells_around, spring_share

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

AREA_SHARES = (
    float(blade_resistance_kernels.AREA_AXIS),
    float(blade_resistance_kernels.AREA_FACE),
    float(blade_resistance_kernels.AREA_BODY),
)
"""Cut surface that a cut spring of each of the three lengths stands for, over the area of a cell's side."""

AXES = tuple(DIRECTIONS.index(axis) for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1)))
"""Directions along x, y and z."""

BORDER = 2
"""Cells around the lattice in the table of places."""


@dataclass(eq=False)
class Cutting:
    """What can be cut of one lattice, and what is. Made by `let_cut`."""

    blades: Any
    """`Blades` of blade_kernels.py."""
    area_of: NDArray[np.float32]
    """Cut surface that each spring stands for, per direction and place, shape (13, slots) [m²]."""
    edges: Port
    """Where the edges are, float64, shape (EDGES · EDGE_FLOATS,)."""

    news: Port
    """1 when something was cut since somebody looked, int32, shape (1,)."""
    scan: Any
    """`Scan` of native_blades.py; None for the plain kernels, as on cuda."""

    def arrays(self) -> dict[str, Any]:
        """All that changes."""
        names = ("cut", "crossing", "known", "inside", "at", "front", "way", "places", "weights", "bound", "stiffness")
        return {f"cutting/{name}": getattr(self.blades, name) for name in names} | {"cutting/edges": self.edges.array}


def let_cut(tissue: Tissue) -> Cutting:
    """From now on edges cut this lattice; before its first tick."""
    if tissue.slabs is not None:
        raise InputError("cutting: a lattice in slabs is not cut.", "Make the lattice with `slabs=1`.")
    if tissue.params.rest_skipping is not None:
        raise InputError("cutting: a lattice that skips rest is not cut.", "Leave `rest_skipping` out.")
    if tissue.cutting is None:
        tissue.forget_programs()
        tissue.cutting = _make(tissue)
    return tissue.cutting


def _make(tissue: Tissue) -> Cutting:
    params, slots, device = tissue.params, tissue.layout.slots, tissue.device
    low = params.nodes.min(axis=0).astype(np.int64) - BORDER
    size = params.nodes.max(axis=0).astype(np.int64) + BORDER + 1 - low
    grid = np.full(size[::-1], -1, dtype=np.int32)
    x, y, z = (params.nodes - low).T
    grid[z, y, x] = tissue.layout.slot_of_node
    number = np.zeros(len(params.nodes), dtype=np.int64) if params.material_of is None else params.material_of
    toughness = np.zeros(slots, dtype=np.float32)
    toughness[tissue.layout.slot_of_node] = np.array([one.toughness for one in params.materials])[number]
    edges, samples = device.port(EDGES * EDGE_FLOATS, wp.float64), EDGES * SAMPLES
    news = device.port(1, wp.int32)

    def zeros(count: int, dtype: Any) -> wp.array[Any]:
        return wp.zeros(count, dtype=dtype, device=device.warp)

    made: Any = blade_kernels.Blades()
    made.low, made.size = wp.vec3i(*low.tolist()), wp.vec3i(*size.tolist())
    made.grid = wp.array(grid.ravel(), dtype=wp.int32, device=device.warp)
    made.stray = float(np.median(1.0 / tissue.mass))
    made.toughness = wp.array(toughness, dtype=wp.float32, device=device.warp)
    made.edges, made.known = edges.array, zeros(EDGES, wp.int32)
    made.inside = zeros(samples, wp.int32)
    made.at, made.front, made.swept_from, made.way = (zeros(samples, wp.vec3d) for _ in range(4))
    order = np.argsort(tissue.layout.slot_of_node, kind="stable")
    made.masses = wp.array(tissue.layout.slot_of_node[order], dtype=wp.int32, device=device.warp)
    made.cells = wp.array(params.nodes[order].astype(np.int32), dtype=wp.vec3i, device=device.warp)
    made.before, made.near = zeros(3 * slots, wp.float32), zeros(len(params.nodes), wp.int32)
    made.boxes, made.nearest = zeros(2 * EDGES, wp.vec3d), zeros(samples, wp.int64)
    made.places, made.weights = zeros(HUNG * samples, wp.int32), zeros(HUNG * samples, wp.float32)
    made.bound, made.stiffness = zeros(samples, wp.float32), zeros(samples, wp.float32)
    made.pull, made.share = zeros(samples, wp.vec3), zeros(slots, wp.float32)
    made.news = news.array
    made.cut, made.crossing = zeros(13 * slots, wp.uint8), zeros(3 * slots, wp.int64)
    scan = native_blades.make_scan(tissue, made) if tissue.native and not device.is_cuda else None
    return Cutting(made, _areas(tissue), edges, news, scan)


def _areas(tissue: Tissue) -> NDArray[np.float32]:
    """At the border a spring has the share of the cells that are there, as its stiffness does (springs.py)."""
    params = tissue.params
    index = NodeIndex(params.nodes)
    cells = cells_around(params.nodes, index)
    table = np.zeros((len(DIRECTIONS), tissue.layout.slots), dtype=np.float32)
    for row, direction in enumerate(DIRECTIONS):
        other = index.find(params.nodes + np.array(direction, dtype=np.int32))
        area = AREA_SHARES[sum(map(abs, direction)) - 1] * params.spacing**2
        share = np.where(other >= 0, spring_share(cells, direction, other), 0.0)
        table[row, tissue.layout.slot_of_node] = area * share
    return table


def set_edge(
    tissue: Tissue,
    edge: int,
    tool: int,
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    *,
    need: float = 1.0,
    cuts: bool = True,
) -> None:
    """Where an edge of the tool in place `tool` is in the next tick: its two ends (world frame [m], shape (2, 3)) as
    the tick starts and ends. `need` is the share of the toughness that it takes; one that does not cut only drags."""
    cutting = need_cutting(tissue)
    if not 0 <= edge < EDGES:
        raise InputError(f"edge = {edge} is not there.", f"A lattice knows {EDGES}, counted from 0.")
    if not (np.isfinite(start).all() and np.isfinite(end).all() and np.isfinite(need) and need >= 0.0):
        raise InputError("the edge of a blade is not finite.", "Give finite ends [m], and a share from 0 on.")
    row = cutting.edges.host[edge * EDGE_FLOATS : (edge + 1) * EDGE_FLOATS]
    row[:4] = 1.0, need, float(tool), float(cuts)
    origin = np.asarray(tissue.params.origin)
    row[4:10] = (start - origin).ravel()
    row[10:16] = (end - origin).ravel()


def remove_edge(tissue: Tissue, edge: int) -> None:
    """Takes an edge away: when it comes back it has swept nothing in between."""
    need_cutting(tissue).edges.host[edge * EDGE_FLOATS] = 0.0


def need_cutting(tissue: Tissue) -> Cutting:
    if tissue.cutting is None:
        raise InputError("this tissue cannot be cut.", "Call `let_cut` on it when it is made.")
    return tissue.cutting


def record_keep(stage: Stage, tissue: Tissue, here: wp.array[Any]) -> None:
    """As a tick starts: where masses are then is kept, for what edges sweep in it."""
    if tissue.cutting is None:
        return
    device, state, blades = tissue.device, tissue.state, tissue.cutting.blades
    args = [tissue.constants, state.live.array, here, state.velocity, blades]
    serial = blade_near_kernels.keep_places_serial if tissue.cutting.scan is None else native_blades.keep_places_in_c
    kernel = blade_near_kernels.keep_places if device.is_cuda else serial
    count = len(tissue.params.nodes) if device.is_cuda else 1
    stage.once(lambda: wp.launch(kernel, dim=count, inputs=args, device=device.warp))


def record_cut(stage: Stage, tissue: Tissue, there: wp.array[Any]) -> None:
    """At the end of a tick: edges go on through the tissue and cut it."""
    if tissue.cutting is not None:
        stage.once(lambda: _cut(tissue, there))


def _cut(tissue: Tissue, there: wp.array[Any]) -> None:
    cutting, state, device = need_cutting(tissue), tissue.state, tissue.device
    lattice, blades, volume = tissue.constants, cutting.blades, int(tissue.params.has_volume)
    motion = [state.live.array, there, state.velocity]
    if not device.is_cuda:
        args = [lattice, volume, *motion, blades, tissue.bulk]
        if cutting.scan is None:
            wp.launch(blade_cut_kernels.cut_serial, dim=1, inputs=args, device=device.warp)
        else:
            wp.launch(native_blades.cut_in_c, dim=1, inputs=[*args, cutting.scan], device=device.warp)
        return
    samples, masses = EDGES * SAMPLES, len(tissue.params.nodes)
    near, cuts = blade_near_kernels, blade_cut_kernels
    wp.launch(near.box_edges, dim=EDGES, inputs=[lattice, blades], device=device.warp)
    wp.launch(near.find_nearest, dim=masses, inputs=[lattice, *motion, blades], device=device.warp)
    wp.launch(cuts.follow_edges, dim=samples, inputs=[lattice, *motion, blades], device=device.warp)
    wp.launch(near.box_all_fronts, dim=EDGES, inputs=[blades], device=device.warp)
    args = [lattice, volume, *motion, blades, tissue.bulk]
    wp.launch(cuts.cut_near, dim=masses, inputs=args, device=device.warp)
    wp.launch(cuts.bound_edges, dim=samples, inputs=[lattice, blades], device=device.warp)


def record_drag(stage: Stage, tissue: Tissue, substep: int, there: wp.array[Any]) -> None:
    """After a substep: what is not cut goes with the edge."""
    if tissue.cutting is None:
        return
    cutting, state, device = tissue.cutting, tissue.state, tissue.device.warp
    kernel = blade_drag_kernels.drag_edges if cutting.scan is None else native_blades.drag_in_c
    args = [tissue.constants, substep, state.live.array, state.tools.array, touch_kernels.TIPS]
    args += [cutting.blades, state.velocity, there, state.force.array]
    stage.once(lambda: wp.launch(kernel, dim=1, inputs=args, device=device))


def cut_area(tissue: Tissue) -> float:
    """New surface so far, one side of it [m²], counted by the springs that were cut."""
    cutting = need_cutting(tissue)
    cut = cutting.blades.cut.numpy().reshape(len(DIRECTIONS), -1)
    return float(cutting.area_of[cut != 0].sum(dtype=np.float64))


def cut_springs(tissue: Tissue) -> NDArray[np.bool_]:
    """Which springs are cut: per direction (springs.DIRECTIONS) and mass, shape (13, masses)."""
    cut = need_cutting(tissue).blades.cut.numpy().reshape(len(DIRECTIONS), -1)
    return cut[:, tissue.layout.slot_of_node] != 0


def unpack_crossings(values: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where axis springs were cut, as the share of their length, and the unit normal of the blade there; of numbers as
    `Blades.crossing` has them, none of them 0."""
    parts = np.stack([(values >> shift) & 0xFFFF for shift in (32, 16, 0)], axis=-1)
    normals = (parts - 32768) / 32767.0
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-9)
    return ((values >> 48) - 1) / 32766.0, normals


def pack_crossings(shares: NDArray[np.float64], normals: NDArray[np.float64]) -> NDArray[np.int64]:
    """The other way round."""
    value = 1 + np.rint(np.clip(shares, 0.0, 1.0) * 32766.0).astype(np.int64)
    for axis in range(3):
        value = value * 65536 + np.rint(normals[..., axis] * 32767.0).astype(np.int64) + 32768
    return value
