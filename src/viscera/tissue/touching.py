"""Tools touch points that hang on the lattice: those of an organ's surface, however far apart its masses are.

A point s of the surface hangs on up to eight masses: x_s = Σ w_is x_i, v_s = Σ w_is v_i (geometry/embedding.py). After
each substep, a point inside a tool wants its velocity to change by Δv_s (it loses what points into the tool, and
sliding by Coulomb's law) and wants to move by Δx_s, to the tool's surface. What it asks of its masses is

    Δv_i = 1/m_i Σ_s w_is a_s Δv_s / D_s,     D_s = Σ_i |w_is| (c_i + (1 − a_s)|w_is|) / m_i,     c_i = Σ_s a_s |w_is|,

over all points inside, and the same for x. a_s grows from 0 at the tool's surface to 1 at the depth `SOFT`: a point
that comes or goes counts for nothing, neither by itself nor in the others' D. That is one Jacobi step on the contact
problem A = W M⁻¹ Wᵀ, weighted by a. D_s is no less than Σ_t a_t |A_st|, so √a A √a ≤ D (Gershgorin with weights √a):
the step never overshoots, and with inelastic Δv_s it takes energy and gives none. Where all points ask for the same,
D_s is that sum exactly and one step is the answer; else the following substeps go on. A single point of full depth, or
a mass that stands for itself, is answered exactly. Moving out of the tool gives no velocity. The tool feels
−Σ a_s Δv_s/(D_s Δt).

A lattice without a surface is touched by its masses: each is a point with weight 1. Points lie in bundles; once a tick
those near a tool are listed, and only their points are looked at. Thick parts feel fewer points than thin ones
(`LEVELS`).

Anchors take nothing, but count in D_s as if they could: else the only free mass of a point among anchors would fly off.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Port, Stage
from viscera.geometry.embedding import embed
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.sampling import bundle, spread_points
from viscera.tissue import touch_kernels
from viscera.tissue.layout import TILE

if TYPE_CHECKING:
    from viscera.tissue.params import LatticeParams
    from viscera.tissue.tissue import Tissue

LEVELS = ((1.0e-3, np.inf), (0.5e-3, 1.6e-3))
"""How far apart points are [m], and the radius from which on a part does without them [m]. A part of radius R between
points s apart sinks in by s²/8R before it meets one: 0.08 mm at most, for a wire of 0.4 mm."""

SOFT = 2.0e-4
"""How deep a point of a surface is before it is touched in full [m]; a mass is at once. Tools that slide over the pad
at 20 mm/s feel steps of at most 7 % from tick to tick; with half of it 19 %, and where a point that comes counts in
full in the others' D 30 %."""
NOT_SOFT = 1.0e-12

MOST_POINTS = 300_000
"""On a larger organ points are farther apart."""

BUNDLE = 256
"""Points in a bundle, at most; coarse ones come first."""
THREADS, MET_THREADS = 64, 8192
"""On cuda: that look at a bundle together, and at all points that are inside a tool."""

NOTHING_NEAR = 2.0
"""A stretch beyond this stands for no tissue near a tool."""

BENEATH = 1.0
"""How far under a bundle tissue is gauged, in spacings of the lattice."""


@dataclass(eq=False)
class Touching:
    """The points of one lattice that tools touch."""

    samples: Any
    """`Samples` of touch_kernels.py."""
    contacts: Any
    """`Contacts` of touch_kernels.py."""
    gauge: Port
    """Of each tool: greatest depth of a point in it over the last tick [nm]; least stretch of what is beneath the
    points near it, as that tick began, in 10⁻⁹; int32, shape (2·TOOLS,)."""
    clean: NDArray[np.int32]
    """What the gauge is before a tick."""

    @property
    def bundles(self) -> int:
        return len(self.samples.middle)


def touch_surface(tissue: Tissue, mesh: TriangleMesh) -> None:
    """From now on tools touch this surface of the tissue, at rest where the mesh is."""
    params, slot = tissue.params, tissue.layout.slot_of_node
    digest = hashlib.sha256()
    for array in (mesh.vertices, mesh.triangles, params.nodes, np.array([params.spacing, *params.origin])):
        digest.update(np.ascontiguousarray(array).tobytes())
    key = digest.digest()
    if key not in _hung:
        while len(_hung) >= MOST_HUNG:
            del _hung[next(iter(_hung))]
        _hung[key] = _hang(mesh, params)
    points, indices, weights, thickest, begins, middle, under, normals = _hung[key]
    inward, under_indices, under_weights = under
    tissue.touching = _make(
        tissue, points, slot[indices], weights, thickest, begins, middle,
        (inward, slot[under_indices], under_weights), normals,
    )  # fmt: skip
    if tissue.slabs is not None:
        tissue.slabs.surface = True


MOST_HUNG = 6
"""Surfaces whose points are remembered: a world that is reset has the same ones again."""
_hung: dict[bytes, Any] = {}
"""By a digest of mesh and masses."""


def _hang(mesh: TriangleMesh, params: LatticeParams) -> Any:
    """Points of a surface, in bundles, and the masses that they hang on."""
    area = float(np.linalg.norm(np.cross(*_edges(mesh)), axis=1).sum()) / 2.0
    coarser = max(1.0, np.sqrt(area / LEVELS[-1][0] ** 2 / MOST_POINTS))
    found = spread_points(mesh, [coarser * side for side, _ in LEVELS])
    thickest = np.array([radius for _, radius in LEVELS])[found.level]
    order, begins = bundle(found.points, BUNDLE)
    order = _coarse_first(order, begins, found.level)
    points, normals = found.points[order], found.normals[order]
    held = embed(points, params.nodes, params.origin, params.spacing)
    middle = _middles(points, begins)
    inward = -BENEATH * params.spacing * normals[middle]
    under = embed(points[middle] + inward, params.nodes, params.origin, params.spacing)
    from_origin = points - np.asarray(params.origin)
    beneath = (inward, under.indices, under.weights)
    return from_origin, held.indices, held.weights, thickest[order], begins, middle, beneath, normals


def touch_masses(tissue: Tissue) -> None:
    """Tools touch the masses themselves."""
    params = tissue.params
    points = params.nodes.astype(np.float64) * params.spacing
    order, begins = bundle(points, BUNDLE)
    slots = tissue.layout.slot_of_node[order][:, None]
    weights = np.ones((len(points), 1), dtype=np.float32)
    points = points[order]
    every = np.full(len(points), np.inf)
    tissue.touching = _make(
        tissue, points, slots, weights, every, begins, _middles(points, begins), None, None
    )  # fmt: skip


def _coarse_first(order: NDArray[np.int64], begins: NDArray[np.int64], level: NDArray[np.int32]) -> NDArray[np.int64]:
    """Within each bundle."""
    owner = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    return order[np.lexsort((level[order], owner))]


def _edges(mesh: TriangleMesh) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b, c = (mesh.vertices[mesh.triangles[:, corner]] for corner in range(3))
    return b - a, c - a


def _middles(points: NDArray[np.float64], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    """The point of each bundle nearest to its mean."""
    sums = np.add.reduceat(points, begins[:-1], axis=0)
    owner = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    off = np.linalg.norm(points - (sums / np.diff(begins)[:, None])[owner], axis=1)
    return np.lexsort((off, owner))[begins[:-1]]


def _make(
    tissue: Tissue,
    points: NDArray[np.float64],
    places: NDArray[np.int32],
    weights: NDArray[np.float32],
    thickest: NDArray[np.float64],
    begins: NDArray[np.int64],
    middle: NDArray[np.int64],
    under: tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float32]] | None,
    normals: NDArray[np.float64] | None,
) -> Touching:
    device, slots = tissue.device, tissue.layout.slots
    count, bundles = len(points), len(middle)
    owner = np.repeat(np.arange(bundles), np.diff(begins))
    radius = np.maximum.reduceat(np.linalg.norm(points - points[middle][owner], axis=1), begins[:-1])
    first = np.arange(0, bundles, touch_kernels.GROUP)
    heart = points[middle[(first + np.minimum(first + touch_kernels.GROUP, bundles)) // 2]]
    from_heart = np.linalg.norm(points - heart[owner // touch_kernels.GROUP], axis=1)

    def floats(values: NDArray[Any]) -> wp.array[Any]:
        return wp.array(np.ascontiguousarray(values, dtype=np.float32), dtype=wp.float32, device=device.warp)

    def integers(values: NDArray[Any]) -> wp.array[Any]:
        return wp.array(np.ascontiguousarray(values, dtype=np.int32), dtype=wp.int32, device=device.warp)

    def vectors(values: NDArray[Any]) -> wp.array[Any]:
        return wp.array(np.ascontiguousarray(values, dtype=np.float32), dtype=wp.vec3, device=device.warp)

    made = touch_kernels.Samples()
    made.corners = weights.shape[1]
    made.gauged = int(under is not None)
    made.soft = SOFT if under is not None else NOT_SOFT
    made.stray = float(np.median(1.0 / tissue.mass))
    made.rest = vectors(points)
    made.normal = vectors(np.zeros((1, 3)) if normals is None else normals)
    made.thickest = floats(np.minimum(thickest, 1.0e9))
    made.places, made.weights = integers(places.ravel()), floats(weights.ravel())
    made.begin, made.middle, made.radius = integers(begins), integers(middle), floats(radius)
    if under is None:
        under = np.zeros((1, 3)), np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.float32)
    made.group_radius = floats(np.maximum.reduceat(from_heart, begins[first]))
    made.under = vectors(under[0])
    made.under_places, made.under_weights = integers(under[1].ravel()), floats(under[2].ravel())
    made.parted = integers(np.zeros(bundles))
    gauge = device.port(2 * touch_kernels.TOOLS, wp.int32)
    clean = np.tile(np.array([0, 2**31 - 1], dtype=np.int32), touch_kernels.TOOLS)
    gauge.host[:] = clean  # stays so where slabs are computed instead
    return Touching(made, _scratch(device, count, bundles, slots, gauge), gauge, clean)


def _scratch(device: Device, count: int, bundles: int, slots: int, gauge: Port) -> Any:
    def zeros(size: int, dtype: Any) -> wp.array[Any]:
        return wp.zeros(size, dtype=dtype, device=device.warp)

    made = touch_kernels.Contacts()
    made.near, made.counts, made.met = zeros(bundles, wp.int32), zeros(3, wp.int32), zeros(count, wp.int32)
    made.listed, made.owner = zeros(count, wp.int32), zeros(count, wp.int32)
    made.bars, made.fields = zeros(bundles, wp.int32), zeros(bundles, wp.int32)
    made.turn = zeros(bundles, wp.quat)
    made.row, made.depth, made.part = zeros(count, wp.int32), zeros(count, wp.float32), zeros(count, wp.float32)
    made.change, made.move, made.arm = (zeros(count, wp.vec3) for _ in range(3))
    made.share = zeros(slots, wp.int64)
    made.push, made.shift = zeros(3 * slots, wp.int64), zeros(3 * slots, wp.int64)
    made.touched = zeros(slots // TILE, wp.int32)
    made.gauge = gauge.array
    return made


def record_near(stage: Stage, tissue: Tissue, here: wp.array[Any]) -> None:
    """Once a tick: lists the bundles that tools may reach in it."""
    touching, state, device = tissue.need_touching(), tissue.state, stage.device.warp
    threads = touching.bundles if stage.device.is_cuda else 1
    args = [tissue.constants, touching.samples, touching.bundles, threads, state.tools.array, state.poses.array, here]

    def work() -> None:
        touching.contacts.counts.zero_()
        wp.launch(touch_kernels.find_near, dim=threads, inputs=[*args, touching.contacts], device=device)

    stage.once(work)


def record_touch(stage: Stage, tissue: Tissue, substep: int, there: wp.array[Any]) -> None:
    """After a substep: points inside tools move out, and tools feel it."""
    stage.once(lambda: _touch(tissue, substep, there))


def _touch(tissue: Tissue, substep: int, there: wp.array[Any]) -> None:
    touching, state, device = tissue.need_touching(), tissue.state, tissue.device.warp
    lattice, samples, contacts = tissue.constants, touching.samples, touching.contacts
    live, tools, velocity = state.live.array, state.tools.array, state.velocity
    tiles = len(tissue.layout.tile_slot)
    if not tissue.device.is_cuda and not tissue.fields:
        args = [lattice, samples, tiles, substep, live, tools, contacts, velocity, there, state.force.array]
        wp.launch(touch_kernels.touch_serial, dim=1, inputs=args, device=device)
        return
    threads, met_threads = (THREADS, MET_THREADS) if tissue.device.is_cuda else (1, 1)
    count = touching.bundles * threads
    args = [lattice, samples, threads, substep, live, tools, there, velocity, contacts]
    wp.launch(touch_kernels.touch_bars, dim=count, inputs=args, device=device)
    for tool, grids in tissue.fields.items():
        for part, grid in enumerate(grids):
            row = touch_kernels.PARTS * tool + part
            args = [lattice, samples, grid, row, threads, substep, live, state.poses.array, there, velocity, contacts]
            wp.launch(touch_kernels.touch_field, dim=count, inputs=args, device=device)
    wp.launch(touch_kernels.touch_shares, dim=met_threads, inputs=[samples, met_threads, contacts], device=device)
    args = [lattice, samples, met_threads, substep, live, contacts, state.force.array]
    wp.launch(touch_kernels.touch_push, dim=met_threads, inputs=args, device=device)
    args = [lattice, substep, live, contacts, velocity, there]
    wp.launch(touch_kernels.touch_move, dim=tiles * TILE, inputs=args, device=device)
