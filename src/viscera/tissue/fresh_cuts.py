"""Faces that a blade has cut a moment ago meet from the next tick on, before it is known what pieces there are.

Who is at a surface, and of which piece, is found out beside the ticks (pieces.py) and lands a frame or two after a cut.
A half that a quick stroke cuts off would fall by half a cell until then. But what a new face needs is near: as a tick
begins, each mass that has lost a spring since the last landing becomes a row of `Meet`, with ties, normal and offset as
pieces.Edge has them, and meets those masses that also have lost one, are not tied to it, and lie within REACH cells of
it in the tissue at rest: the other side of its cut. All other pairs are those of what has landed. So what meets depends
on what is cut and on what has landed alone, and not on when it was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import put
from viscera.tissue.blade_kernels import EDGE_FLOATS, EDGES, Blades, slot_at
from viscera.tissue.cutting import need_cutting
from viscera.tissue.kernels import Lattice
from viscera.tissue.meeting_kernels import FRESH, MATES, NEIGHBOURS, REACH, Meet
from viscera.tissue.partner_kernels import may_meet
from viscera.tissue.pieces import CUT_TIES, FLAT_TIES, STEEP

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

# Loops stay loops: unrolled they take long to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

CUT_OFFSET = wp.constant(0.5)
"""From a mass to its surface at a cut, in cells."""
LOOK, SPRINGS, BEFORE = 0, 1, 2
"""Places in `Fresh.state`: 1 where cuts are to be looked for in this tick, whether or not an edge is in use; how many
springs were cut since the last landing; how many there were when rows were made."""

_EDGES, _EDGE_FLOATS, _FRESH, _MATES = (wp.constant(number) for number in (EDGES, EDGE_FLOATS, FRESH, MATES))
_NEIGHBOURS, _REACH, _WIDE = wp.constant(NEIGHBOURS), wp.constant(REACH), wp.constant(2 * REACH + 1)
_LOOK, _SPRINGS, _BEFORE = wp.constant(LOOK), wp.constant(SPRINGS), wp.constant(BEFORE)
_FLAT_TIES, _CUT_TIES, _STEEP = wp.constant(float(FLAT_TIES)), wp.constant(float(CUT_TIES)), wp.constant(float(STEEP))
_STEPS = wp.constant((2 * REACH + 1) ** 3)


@wp.struct
class Fresh:
    """Of one lattice: what was cut since its pieces landed."""

    number: int
    """Of the lattice."""
    room: int
    """Masses of all lattices that meet, and places of the lattices before this one: keys of new rows begin there."""
    cut: wp.array(dtype=wp.int64)
    """`Blades.cut`, eight springs each."""
    known: wp.array(dtype=wp.int64)
    """The same as of the last landing."""
    mark: wp.array(dtype=wp.int32)
    """Of each place: whether its mass has lost a spring since."""
    row: wp.array(dtype=wp.int32)
    """Of each place: its row in `Meet`; −1 where it has none."""
    rest: wp.array(dtype=wp.vec3)
    """From the common origin [m], in the order of `Blades.masses`."""
    state: wp.array(dtype=wp.int32)


@wp.func
def looks(blades_edges: wp.array(dtype=wp.float64), state: wp.array(dtype=wp.int32)):
    found = state[_LOOK] != 0
    for edge in range(_EDGES):
        found = found or blades_edges[edge * _EDGE_FLOATS] > wp.float64(0.0)
    return found


@wp.kernel
def mark_fresh(
    # params
    lattice: Lattice,
    words: int,
    threads: int,
    # in
    edges: wp.array(dtype=wp.float64),
    # out
    fresh: Fresh,
):
    """Both ends of each spring that was cut since the last landing. Marks stay until the next one."""
    count = wp.where(looks(edges, fresh.state), words, 0)
    for n in range(wp.tid(), count, threads):
        news = fresh.cut[n] & ~fresh.known[n]
        if news != wp.int64(0):
            for byte in range(8):
                if ((news >> wp.int64(8 * byte)) & wp.int64(1)) != wp.int64(0):
                    wp.atomic_add(fresh.state, _SPRINGS, 1)
                    spring = 8 * n + byte
                    fresh.mark[spring % lattice.slots] = 1


@wp.func
def step_of(k: int):
    """To neighbour k, as linked_cells.STEPS has it."""
    place = wp.where(k < 13, k, k + 1)
    return wp.vec3i(place // 9 - 1, place // 3 % 3 - 1, place % 3 - 1)


@wp.func
def spring_of(slots: int, i: int, j: int, step: wp.vec3i):
    """The spring between the masses in places i and j, which lies this step from i: each has those that lead on along
    z, y or x (springs.DIRECTIONS)."""
    d = 9 * step[2] + 3 * step[1] + step[0]
    found = (d - 1) * slots + i
    if d < 0:
        found = (-d - 1) * slots + j
    return found


@wp.func
def masses_to_look_at(blades: Blades, fresh: Fresh):
    """How many: none where nothing was cut since rows were made."""
    some = looks(blades.edges, fresh.state) and fresh.state[_SPRINGS] != fresh.state[_BEFORE]
    return wp.where(some, blades.masses.shape[0], 0)


@wp.kernel
def mark_far_ends(
    # params
    lattice: Lattice,
    threads: int,
    # in
    blades: Blades,
    # out
    fresh: Fresh,
):
    """A mark of 1 is that of a spring's own mass; its far end gets 2."""
    for m in range(wp.tid(), masses_to_look_at(blades, fresh), threads):
        i = blades.masses[m]
        if fresh.mark[i] != 0:
            cell = blades.cells[m]
            for k in range(_NEIGHBOURS):
                step = step_of(k)
                j = slot_at(blades, cell[0] + step[0], cell[1] + step[1], cell[2] + step[2])
                if j >= 0 and 9 * step[2] + 3 * step[1] + step[0] > 0:
                    spring = spring_of(lattice.slots, i, j, step)
                    shift = wp.int64(8 * (spring % 8))
                    news = fresh.cut[spring // 8] & ~fresh.known[spring // 8]
                    if ((news >> shift) & wp.int64(1)) != wp.int64(0) and fresh.mark[j] == 0:
                        fresh.mark[j] = 2


@wp.func
def row_of(lattice: Lattice, fresh: Fresh, meet: Meet, m: int, i: int):
    """The row of mass m, in place i; one that has none gets the next."""
    c = fresh.row[i]
    if c < 0:
        c = wp.atomic_add(meet.fresh_count, 0, 1)
        fresh.row[i] = c
        meet.place[c] = i
        meet.rest[c] = fresh.rest[m]
        meet.inverse_mass[c] = lattice.inverse_mass[i]
        meet.owner[c] = fresh.number
        meet.key[c] = fresh.room + i
        meet.candidates[c] = 0
        meet.runs[c] = 0
    if meet.fresh[c] < 0:
        f = wp.atomic_add(meet.fresh_count, 1, 1)
        if f < _FRESH:
            meet.fresh[c] = f
    return c


@wp.func
def tie_row(lattice: Lattice, blades: Blades, meet: Meet, c: int, i: int, cell: wp.vec3i):
    """What the mass of row c is tied to; says, bit by bit, to which neighbours it is, and opposite to which it has lost
    a spring."""
    tied = wp.int32(0)
    lost = wp.int32(0)
    for k in range(_NEIGHBOURS):
        step = step_of(k)
        j = slot_at(blades, cell[0] + step[0], cell[1] + step[1], cell[2] + step[2])
        at = _NEIGHBOURS * c + k
        if j < 0:
            meet.tied[at] = -1
        elif blades.cut[spring_of(lattice.slots, i, j, step)] == wp.uint8(0):
            meet.tied[at] = j
            tied = tied | (1 << k)
        else:
            # Cut, and as far as landed what is cut goes still tied to it; see `may_meet`.
            was = meet.tied[at]
            if c >= meet.count[0] or was >= 0 or was < -1:
                meet.tied[at] = -2 - j
            lost = lost | (1 << (25 - k))
    return tied, lost


@wp.func
def lean_row(meet: Meet, c: int, tied: int, lost: int):
    """The normal of row c, and how flat it is there, as pieces.Edge has them."""
    leans = tied & lost
    ties = _CUT_TIES
    if leans == 0:
        leans = tied
        ties = _FLAT_TIES
    normal = wp.vec3()
    spread = wp.mat33()
    leant = float(0.0)
    for k in range(_NEIGHBOURS):
        step = step_of(k)
        way = wp.vec3(float(step[0]), float(step[1]), float(step[2]))
        if ((tied >> k) & 1) != 0:
            spread += wp.outer(way, way)
        if ((leans >> k) & 1) != 0:
            normal -= way
            leant += 1.0
    meet.leans[c] = leans
    meet.lean[c] = spread * normal
    meet.flat[c] = wp.pow(wp.min(1.0, leant / ties), _STEEP)


@wp.kernel
def make_rows(
    # params
    lattice: Lattice,
    threads: int,
    # in
    blades: Blades,
    # out
    fresh: Fresh,
    meet: Meet,
):
    """Ties, normal and offset of every mass that has lost a spring."""
    for m in range(wp.tid(), masses_to_look_at(blades, fresh), threads):
        i = blades.masses[m]
        if fresh.mark[i] != 0:
            c = row_of(lattice, fresh, meet, m, i)
            tied, lost = tie_row(lattice, blades, meet, c, i, blades.cells[m])
            lean_row(meet, c, tied, lost)
            meet.offset[c] = CUT_OFFSET * lattice.spacing


@wp.kernel
def find_mates(
    # params
    lattice: Lattice,
    threads: int,
    # in
    blades: Blades,
    fresh: Fresh,
    # out
    meet: Meet,
):
    """The masses that each new row meets besides what has landed; both name each other."""
    for m in range(wp.tid(), masses_to_look_at(blades, fresh), threads):
        i = blades.masses[m]
        c = wp.int32(-1)
        if fresh.mark[i] != 0:
            c = fresh.row[i]
        f = wp.int32(-1)
        if c >= 0:
            f = meet.fresh[c]
        found = wp.int32(0)
        cell = blades.cells[m]
        for n in range(wp.where(f >= 0, _STEPS, 0)):
            step = wp.vec3i(n % _WIDE - _REACH, n // _WIDE % _WIDE - _REACH, n // (_WIDE * _WIDE) - _REACH)
            j = slot_at(blades, cell[0] + step[0], cell[1] + step[1], cell[2] + step[2])
            meets = j >= 0 and j != i
            if meets:
                meets = fresh.mark[j] != 0
            if meets and wp.abs(step[0]) <= 1 and wp.abs(step[1]) <= 1 and wp.abs(step[2]) <= 1:
                meets = blades.cut[spring_of(lattice.slots, i, j, step)] != wp.uint8(0)
            if meets:
                d = fresh.row[j]
                meets = meet.fresh[d] >= 0
                if meets and c < meet.count[0] and d < meet.count[0]:
                    # They meet already.
                    meets = not may_meet(c, d, meet.piece, meet.kind, meet.place, meet.tied)
                if meets:
                    meet.mate[_MATES * f + found] = d
                    found += 1
        if f >= 0:
            meet.mates[f] = found


@wp.kernel
def end_search(
    # in
    edges: wp.array(dtype=wp.float64),
    # out
    fresh: Fresh,
):
    """What an edge cuts as this tick ends is looked for in the next one."""
    if looks(edges, fresh.state):
        fresh.state[_BEFORE] = fresh.state[_SPRINGS]
    on = wp.int32(0)
    for edge in range(_EDGES):
        if edges[edge * _EDGE_FLOATS] > wp.float64(0.0):
            on = 1
    fresh.state[_LOOK] = on
    fresh.state[_SPRINGS] = 0


class FreshCuts:
    """Of one lattice that can be cut."""

    def __init__(self, tissue: Tissue, number: int, room: int, origin: NDArray[np.float64]) -> None:
        self._tissue, device, slots = tissue, tissue.device.warp, tissue.layout.slots
        blades = need_cutting(tissue).blades
        self._known = wp.zeros(13 * slots, dtype=wp.uint8, device=device)
        order = np.argsort(tissue.layout.slot_of_node, kind="stable")
        self.fresh: Any = Fresh()
        self.fresh.number, self.fresh.room = number, room
        self.fresh.cut, self.fresh.known = _words(blades.cut), _words(self._known)
        self.fresh.mark = wp.zeros(slots, dtype=wp.int32, device=device)
        self.fresh.row = wp.full(slots, -1, dtype=wp.int32, device=device)
        rest = (tissue.rest_positions()[order] - origin).astype(np.float32)
        self.fresh.rest = wp.array(rest, dtype=wp.vec3, device=device)
        self.fresh.state = wp.zeros(3, dtype=wp.int32, device=device)

    def land(self, known: NDArray[np.uint8], places: NDArray[np.int32], first: int) -> None:
        """These springs are known to be cut, shape (13, slots), and the masses in these places have the rows of `Meet`
        from `first` on; between two ticks."""
        put(self._known, known.ravel())
        row = np.full(len(self.fresh.row), -1, dtype=np.int32)
        row[places] = np.arange(first, first + len(places))
        put(self.fresh.row, row)
        self.fresh.mark.zero_()
        put(self.fresh.state, np.array([1, 0, -1], dtype=np.int32))

    def find(self, threads: int, meet: Any) -> None:
        """As a tick begins."""
        tissue, blades = self._tissue, need_cutting(self._tissue).blades
        lattice, words, edges = tissue.constants, self.fresh.cut.size, blades.edges
        calls: list[tuple[Any, int, list[Any]]] = [
            (mark_fresh, threads, [lattice, words, threads, edges, self.fresh]),
            (mark_far_ends, threads, [lattice, threads, blades, self.fresh]),
            (make_rows, threads, [lattice, threads, blades, self.fresh, meet]),
            (find_mates, threads, [lattice, threads, blades, self.fresh, meet]),
            (end_search, 1, [edges, self.fresh]),
        ]
        for kernel, count, args in calls:
            wp.launch(kernel, dim=count, inputs=args, device=tissue.device.warp)


def _words(springs: wp.array[Any]) -> wp.array[Any]:
    """The same memory, eight bytes at a time: there are whole tiles of springs."""
    return wp.array(
        ptr=springs.ptr, dtype=wp.int64, shape=(springs.size // 8,), device=springs.device, capacity=springs.size
    )
