"""Faces that were cut a moment ago hold each other apart, until contact knows of them.

What meets is found out beside the ticks (pieces.py), a frame or two after a blade has cut. Until then two masses whose
link along an axis is gone, at rest h apart, are a pair: as each tick ends, where the way from one to the other is
shorter than h along the axis n, as both sides have turned it, n·(x_j − x_i) < h, their closing speed c is taken away,
and they move apart by a share of what is missing,

    Δv_i = − c n w_i / (n_i w_i + n_j w_j),

with inverse masses w and the n_i pairs that each is in: one Jacobi step, as in meeting.py. What one gets the other
loses. They may slide along each other.
Without it the half that a quick stroke cuts off falls by half a cell before anything is below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.tissue.blade_kernels import EDGE_FLOATS, EDGES
from viscera.tissue.burning import displaced, opposite, spring_end
from viscera.tissue.cutting import AXES, need_cutting
from viscera.tissue.kernels import LIVE_VISCOUS_TIME, Lattice, load3, store3
from viscera.tissue.layout import TILE
from viscera.tissue.meeting_kernels import APART, FARTHEST

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

wp.set_module_options({"enable_backward": False, "max_unroll": 0})

THREADS = 4_096
"""On cuda, of each kernel."""
LINKS = 6
"""Of a mass along the axes, up and down."""

_LINKS, _TILE, _EDGES, _EDGE_FLOATS = (wp.constant(number) for number in (LINKS, TILE, EDGES, EDGE_FLOATS))


@wp.struct
class Fresh:
    """Masses of one lattice whose links were cut since contact was told."""

    count: wp.array(dtype=wp.int32)
    """How many they are; 1 if they are looked for in this tick."""
    known: wp.array(dtype=wp.uint8)
    """1 where contact knows that a spring is cut, per direction and place."""
    direction: wp.array(dtype=wp.int32)
    """Along x, y and z."""
    place: wp.array(dtype=wp.int32)
    other: wp.array(dtype=wp.int32)
    """Places at the other ends of the links of each, LINKS each, up and down along x, y and z; -1 where none is cut."""
    links: wp.array(dtype=wp.int32)
    """Of each place: how many of its links were cut."""
    row: wp.array(dtype=wp.int32)
    """Of each place: its number among them."""
    whole: wp.array(dtype=wp.int32)
    """The same as `other` of the links that are whole."""
    axis: wp.array(dtype=wp.vec3)
    """Of each: the unit vectors along x, y and z at rest, as its tissue has turned them."""
    push: wp.array(dtype=wp.vec3)
    shift: wp.array(dtype=wp.vec3)
    """What each of them gets: velocity and displacement."""


@wp.kernel
def begin_search(
    # in
    edges: wp.array(dtype=wp.float64),
    # out
    fresh: Fresh,
):
    """They are looked for while a blade is in use, and as long as there are some."""
    looks = wp.int32(0)
    if fresh.count[0] > 0:
        looks = 1
    for edge in range(_EDGES):
        if edges[edge * _EDGE_FLOATS] > wp.float64(0.0):
            looks = 1
    fresh.count[0] = 0
    fresh.count[1] = looks


@wp.kernel
def find_fresh(
    # params
    lattice: Lattice,
    places: int,
    threads: int,
    # in
    cut: wp.array(dtype=wp.uint8),
    # out
    fresh: Fresh,
):
    """On cuda they come in any order; what each gets does not depend on it."""
    for index in range(wp.tid(), wp.where(fresh.count[1] != 0, places, 0), threads):
        tile = index // _TILE
        lane = index - tile * _TILE
        i = lattice.tile_slot[tile] + lane
        count = wp.int32(0)
        for axis in range(3):
            d = fresh.direction[axis]
            own = d * lattice.slots + i
            below = d * lattice.slots + opposite(lattice, tile, lane, d)
            if cut[own] != fresh.known[own]:
                count += 1
            if cut[below] != fresh.known[below]:
                count += 1
        if count > 0:
            n = wp.atomic_add(fresh.count, 0, 1)
            fresh.place[n] = i
            fresh.links[i] = count
            fresh.row[i] = n
            for axis in range(3):
                d = fresh.direction[axis]
                up, _step = spring_end(lattice, tile, lane, d)
                down = opposite(lattice, tile, lane, d)
                own = d * lattice.slots + i
                below = d * lattice.slots + down
                at = _LINKS * n + 2 * axis
                fresh.other[at] = wp.where(cut[own] != fresh.known[own], up, -1)
                fresh.other[at + 1] = wp.where(cut[below] != fresh.known[below], down, -1)
                fresh.whole[at] = wp.where(float(lattice.stiffness[own]) > 0.0, up, -1)
                fresh.whole[at + 1] = wp.where(float(lattice.stiffness[below]) > 0.0, down, -1)


@wp.func
def along_axis(axis: int, length: float):
    return wp.vec3(wp.where(axis == 0, length, 0.0), wp.where(axis == 1, length, 0.0), wp.where(axis == 2, length, 0.0))


@wp.kernel
def turn_axes(
    # params
    lattice: Lattice,
    threads: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    fresh: Fresh,
):
    """By what is left of the links along each axis."""
    tau = live[LIVE_VISCOUS_TIME]
    for n in range(wp.tid(), fresh.count[0], threads):
        u = displaced(position, velocity, tau, lattice.slots, fresh.place[n])
        for axis in range(3):
            turned = along_axis(axis, lattice.spacing)
            up = fresh.whole[_LINKS * n + 2 * axis]
            down = fresh.whole[_LINKS * n + 2 * axis + 1]
            if up >= 0:
                turned += displaced(position, velocity, tau, lattice.slots, up) - u
            if down >= 0:
                turned += u - displaced(position, velocity, tau, lattice.slots, down)
            if up >= 0 and down >= 0:
                turned += along_axis(axis, lattice.spacing)
            fresh.axis[3 * n + axis] = wp.normalize(turned)


@wp.kernel
def push_fresh(
    # params
    lattice: Lattice,
    threads: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    fresh: Fresh,
):
    tau = live[LIVE_VISCOUS_TIME]
    slots = lattice.slots
    for n in range(wp.tid(), fresh.count[0], threads):
        i = fresh.place[n]
        v = load3(velocity, slots, i)
        u = displaced(position, velocity, tau, slots, i)
        push = wp.vec3()
        shift = wp.vec3()
        for k in range(_LINKS):
            j = fresh.other[_LINKS * n + k]
            if j >= 0:
                axis = k // 2
                side = float(1 - 2 * (k % 2))
                way = along_axis(axis, side * lattice.spacing) + displaced(position, velocity, tau, slots, j) - u
                along = side * wp.normalize(fresh.axis[3 * n + axis] + fresh.axis[3 * fresh.row[j] + axis])
                missing = lattice.spacing - wp.dot(along, way)
                if missing > 0.0:
                    w = lattice.inverse_mass[i]
                    yields = float(fresh.links[i]) * w + float(fresh.links[j]) * lattice.inverse_mass[j]
                    share = w / wp.max(yields, 1.0e-30)
                    push -= share * wp.max(wp.dot(along, v - load3(velocity, slots, j)), 0.0) * along
                    shift -= share * wp.min(APART * missing, FARTHEST * lattice.spacing) * along
        fresh.push[n] = push
        fresh.shift[n] = shift


@wp.kernel
def move_fresh(
    # params
    lattice: Lattice,
    threads: int,
    # in
    live: wp.array(dtype=wp.float32),
    fresh: Fresh,
    # out
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
):
    tau = live[LIVE_VISCOUS_TIME]
    for n in range(wp.tid(), fresh.count[0], threads):
        i = fresh.place[n]
        push = fresh.push[n]
        p = load3(position_out, lattice.slots, i)
        store3(velocity_out, lattice.slots, i, load3(velocity_out, lattice.slots, i) + push)
        store3(position_out, lattice.slots, i, p + fresh.shift[n] + tau * push)


class FreshCuts:
    """Of one lattice that can be cut."""

    def __init__(self, tissue: Tissue) -> None:
        self._tissue, device = tissue, tissue.device.warp
        slots, masses = tissue.layout.slots, len(tissue.params.nodes)
        self.fresh: Any = Fresh()
        self.fresh.count = wp.zeros(2, dtype=wp.int32, device=device)
        self.fresh.known = wp.zeros(13 * slots, dtype=wp.uint8, device=device)
        self.fresh.direction = wp.array(AXES, dtype=wp.int32, device=device)
        self.fresh.place = wp.zeros(masses, dtype=wp.int32, device=device)
        self.fresh.other = wp.zeros(LINKS * masses, dtype=wp.int32, device=device)
        self.fresh.links = wp.zeros(slots, dtype=wp.int32, device=device)
        self.fresh.row = wp.zeros(slots, dtype=wp.int32, device=device)
        self.fresh.whole = wp.zeros(LINKS * masses, dtype=wp.int32, device=device)
        self.fresh.axis = wp.zeros(3 * masses, dtype=wp.vec3, device=device)
        self.fresh.push = wp.zeros(masses, dtype=wp.vec3, device=device)
        self.fresh.shift = wp.zeros(masses, dtype=wp.vec3, device=device)

    def know(self, cut: NDArray[np.bool_]) -> None:
        """Contact knows of these, per direction and mass, shape (13, masses); between two ticks. What else there is, is
        looked for in the next one."""
        known = np.zeros((13, self._tissue.layout.slots), dtype=np.uint8)
        known[:, self._tissue.layout.slot_of_node] = cut
        self.fresh.known.assign(known.ravel())
        self.fresh.count.assign(np.array([1, 0], dtype=np.int32))

    def record(self, stage: Stage, last: wp.array[Any]) -> None:
        """As a tick ends, its positions in `last`."""
        stage.once(lambda: self.hold_apart(last))

    def hold_apart(self, last: wp.array[Any]) -> None:
        tissue, blades = self._tissue, need_cutting(self._tissue).blades
        state, lattice, device = tissue.state, tissue.constants, tissue.device
        count, places = THREADS if device.is_cuda else 1, len(tissue.layout.tile_slot) * TILE

        def launch(kernel: Any, threads: int, args: list[Any]) -> None:
            wp.launch(kernel, dim=threads, inputs=args, device=device.warp)

        launch(begin_search, 1, [blades.edges, self.fresh])
        launch(find_fresh, count, [lattice, places, count, blades.cut, self.fresh])
        now = [lattice, count, state.live.array, last, state.velocity, self.fresh]
        launch(turn_axes, count, now)
        launch(push_fresh, count, now)
        launch(move_fresh, count, [lattice, count, state.live.array, self.fresh, state.velocity, last])
