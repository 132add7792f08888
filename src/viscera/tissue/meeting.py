"""Tissue meets tissue: cut halves, loose pieces and organs do not pass through each other.

What meets are masses at a surface, each with a normal n_i (at rest away from the masses that it is tied to, then turned
with the tissue's deformation; the longer the flatter the surface is there), and the distance o_i from the mass to its
surface. Masses i and j of different pieces, or
both at cut faces and not tied, that face each other are a pair, with n ∝ n_i − n_j and, h being the side of a cell and
t how far they lie aside of each other,

    gap = n·(x_j − x_i) − o_i − o_j,   weight w = 1 − (t/h)²:

several partners make one smooth surface. Where one of them is a corner or the end of a shred, whose own normal says
little, the other one's decides. Edges that do not face each other meet as balls. What is folded over meets the piece
that it hangs on, wherever one of the two is at a cut and they are not tied. After each substep, where a gap is below 0,
the pair's closing speed is taken away, and Coulomb's share of its sliding,

    Δv_i = − w/(m_i D) (c n + friction),   D = W_i/m_i + W_j/m_j,   W_i = max(1, Σ w),

c being the closing speed, and it moves apart by a share of its depth. That is one Jacobi step as in touching.py: it
never overshoots, takes energy and gives none, and what one gets the other loses. Nothing falls through the table, in
the same way, once there are several pieces.

Who may meet whom is found in each tick, among candidates that hold for as long as little has moved far. Those are
found through a grid of masses, and whole tissue far from others has none. Each mass has its partners in the order of
their numbers. What a blade has cut since it was found out what pieces there are meets too (fresh_cuts.py). All
lattices take the same number of substeps, in turn, in one program.

Differs from exact contact of surfaces: it has the resolution of the lattice. Organs that fold onto themselves without
a cut pass through themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Program, Stage, put
from viscera.errors import InputError
from viscera.tissue import meeting_kernels, native_meeting, partner_kernels, stepping
from viscera.tissue.cutting import record_keep
from viscera.tissue.fresh_cuts import FreshCuts
from viscera.tissue.grasping import record_take
from viscera.tissue.meeting_kernels import (
    BUCKETS,
    CANDIDATES,
    FAR,
    FRESH,
    MATES,
    NEIGHBOURS,
    PARTNERS,
    PIECES,
    RUNAWAYS,
)
from viscera.tissue.pieces import Pieces
from viscera.tissue.substeps import set_substeps
from viscera.tissue.tissue import Tissue
from viscera.tissue.touching import record_near

ROUNDS = 4
"""Of Jacobi's method after each substep; an even number, so that what it finds is where it began."""
THREADS = 16_384
"""On cuda, of each kernel."""
NO_TABLE = -1.0e6
"""[m]"""


@dataclass(eq=False)
class Meeting:
    """Of all lattices of a world. It steps them."""

    tissues: Sequence[Tissue]
    pieces: list[Pieces]
    meet: Any
    """`Meet` of meeting_kernels.py."""
    _other: tuple[wp.array[Any], wp.array[Any]]
    """`x` and `v` of `meet` as a round ends."""
    fresh: list[FreshCuts | None] = field(default_factory=list)
    """Of each lattice, where it can be cut."""
    in_c: bool = False
    """Whether one core does what takes time in C (native_meeting.py); False for the plain kernels, as on cuda."""
    more: int = 0
    """Pieces that are not told apart from others: there are more than PIECES."""
    _programs: dict[tuple[int, ...], Program] = field(default_factory=dict)
    """By the position buffers that are current."""
    _shapes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._keys = np.arange(sum(len(tissue.params.nodes) for tissue in self.tissues), dtype=np.int32)

    def step(self) -> None:
        """One tick of all lattices."""
        tissues = self.tissues
        for tissue in tissues:
            tissue.begin_tick()
        shapes = [tissue.shape_count for tissue in tissues]
        if shapes != self._shapes:
            self._programs.clear()
            self._shapes = shapes
        key = tuple(tissue.current for tissue in tissues)
        if key not in self._programs:
            work = sum(len(tissue.params.nodes) for tissue in tissues) * tissues[0].substeps
            self._programs[key] = tissues[0].device.record(lambda stage: self._record(stage), work=work)
        self._programs[key].run()
        for tissue in tissues:
            tissue.end_tick()

    def _record(self, stage: Stage) -> None:
        for tissue in self.tissues:
            stepping.record_start(stage, tissue)
            here = tissue.state.position[tissue.current]
            record_near(stage, tissue, here)
            record_keep(stage, tissue, here)
            record_take(stage, tissue, here)
        stage.once(self.find_partners)
        for substep in range(self.tissues[0].substeps):
            for tissue in self.tissues:
                stepping.record_substep(stage, tissue, substep, tissue.current)
            stage.once(lambda substep=substep: self.push_apart((substep + 1) % 2))
        for tissue in self.tissues:
            stepping.record_after(stage, tissue, tissue.current)
            stepping.record_end(stage, tissue)

    def _launch(self, kernel: Any, *args: Any) -> None:
        device = self.tissues[0].device
        wp.launch(kernel, dim=THREADS if device.is_cuda else 1, inputs=[*args, self.meet], device=device.warp)

    def find_partners(self) -> None:
        """As a tick begins: who may meet whom in it."""
        count = THREADS if self.tissues[0].device.is_cuda else 1
        for one in self.fresh:
            if one is not None:
                one.find(count, self.meet)
        for number, tissue in enumerate(self.tissues):
            here, state = tissue.state.position[tissue.current], tissue.state
            args = [tissue.constants, number, 0, count, state.live.array, here, state.velocity]
            self._launch(meeting_kernels.place_masses, *args)
        self._launch(partner_kernels.find_runaways, count)
        self._launch(partner_kernels.clear_grid, count)
        self._launch(partner_kernels.fill_grid, count)
        if self.in_c:
            self._launch(native_meeting.list_candidates_in_c)
        else:
            self._launch(partner_kernels.list_candidates, count)
        for number, tissue in enumerate(self.tissues):
            here = tissue.state.position[tissue.current]
            if self.in_c:
                self._launch(native_meeting.find_normals_in_c, tissue.constants, number, here)
            else:
                self._launch(partner_kernels.find_normals, tissue.constants, number, count, here)
        if self.in_c:
            self._launch(native_meeting.find_partners_in_c)
        else:
            self._launch(partner_kernels.find_partners, count)
        self._launch(partner_kernels.find_shares, count)

    def push_apart(self, tissue_buffer: int) -> None:
        """After a substep, which has left positions in this buffer, counted from each lattice's current one."""
        device = self.tissues[0].device
        count = THREADS if device.is_cuda else 1
        there = [tissue.state.position[(tissue.current + tissue_buffer) % 2] for tissue in self.tissues]
        for number, (tissue, place) in enumerate(zip(self.tissues, there, strict=True)):
            args = [tissue.constants, number, 1, count, tissue.state.live.array, place, tissue.state.velocity]
            self._launch(meeting_kernels.place_masses, *args)
        here, other = (self.meet.x, self.meet.v), self._other
        for _ in range(ROUNDS):
            if self.in_c:
                self._launch(native_meeting.push_pairs_in_c, *here, *other)
            else:
                self._launch(meeting_kernels.push_pairs, count, *here, *other)
            here, other = other, here
        for number, (tissue, place) in enumerate(zip(self.tissues, there, strict=True)):
            args = [tissue.constants, number, count, tissue.state.live.array, self.meet, tissue.state.velocity, place]
            wp.launch(meeting_kernels.move_masses, dim=count, inputs=args, device=device.warp)

    # --- what is cut ---

    def land(self) -> None:
        """What `pieces` have found is in force from the next tick on; between two ticks."""
        if any(one.due for one in self.pieces):
            for one in self.pieces:
                one.land()
            self._put()

    def _put(self) -> None:
        """The arrays of all pieces' edges, one after the other."""
        landings, meet = [one.landing for one in self.pieces], self.meet
        pieces = np.cumsum([0, *(one.pieces for one in landings)])
        begin = np.cumsum([0, *(len(one.columns["place"]) for one in landings)])
        self.more = max(0, int(pieces[-1]) - PIECES)
        room = len(self._keys)
        for name in landings[0].columns:
            parts = [one.columns[name] for one in landings]
            if name == "piece":
                parts = [np.minimum(part + first, PIECES - 1) for part, first in zip(parts, pieces, strict=False)]
            whole = np.zeros((room, *parts[0].shape[1:]), dtype=parts[0].dtype)
            np.concatenate(parts, out=whole[: begin[-1]])
            put(getattr(meet, name), whole)
        owner = np.zeros(room, dtype=np.int32)
        owner[: begin[-1]] = np.repeat(np.arange(len(landings)), np.diff(begin))
        put(meet.owner, owner)
        if pieces[-1] < 2 and not any(one.parted for one in landings):
            begin = np.zeros_like(begin)  # one whole piece meets nothing
        put(meet.begin, begin.astype(np.int32))
        put(meet.count, np.array([begin[-1], 0, 0, 1, 0], dtype=np.int32))
        put(meet.key, self._keys)
        put(meet.fresh_count, np.array([begin[-1], 0, 0], dtype=np.int32))
        meet.fresh.fill_(-1)
        for fresh, landing, first, last in zip(self.fresh, landings, begin[:-1], begin[1:], strict=True):
            if fresh is not None:
                fresh.land(landing.known, landing.columns["place"][: last - first], int(first))


def make_meeting(tissues: Sequence[Tissue], *, friction: float = 0.2, table: float | None = None) -> Meeting:
    """From now on these lattices meet each other and themselves; before their first tick. `friction` is Coulomb's,
    of wet tissue on tissue. What is cut off comes to lie on the `table`, at this height [m]."""
    if not tissues:
        raise InputError("a meeting of no tissues.", "Give one lattice at least.")
    if any(tissue.slabs is not None or tissue.params.rest_skipping is not None for tissue in tissues):
        raise InputError(
            "contact: a lattice in slabs, or one that skips rest, meets nothing.",
            "Make the lattices with `slabs=1` and without `rest_skipping`.",
        )
    substeps = max(tissue.substeps for tissue in tissues)
    for tissue in tissues:
        if tissue.substeps != substeps:
            set_substeps(tissue, substeps)
            tissue.set_drag(tissue.params.drag)
            tissue.forget_programs()
    meet = _arrays(tissues, friction, table)
    other = (wp.zeros_like(meet.x), wp.zeros_like(meet.v))
    fresh: list[FreshCuts | None] = []
    key, origin = sum(len(tissue.params.nodes) for tissue in tissues), np.asarray(tissues[0].params.origin)
    for number, tissue in enumerate(tissues):
        fresh.append(None if tissue.cutting is None else FreshCuts(tissue, number, key, origin))
        key += tissue.layout.slots
    in_c = tissues[0].native and not tissues[0].device.is_cuda
    made = Meeting(tissues, [Pieces(tissue, origin) for tissue in tissues], meet, other, fresh, in_c)
    made._put()
    return made


def _arrays(tissues: Sequence[Tissue], friction: float, table: float | None) -> Any:
    device, room = tissues[0].device.warp, sum(len(tissue.params.nodes) for tissue in tissues)

    def zeros(count: int, dtype: Any = wp.int32) -> wp.array[Any]:
        return wp.zeros(count, dtype=dtype, device=device)

    meet: Any = meeting_kernels.Meet()
    meet.spacing = max(tissue.params.spacing for tissue in tissues)
    meet.friction, meet.dt = friction, float(tissues[0].constants.dt)
    meet.table = NO_TABLE if table is None else table - float(tissues[0].params.origin[2])
    meet.count, meet.begin = zeros(5), zeros(len(tissues) + 1)
    meet.place, meet.piece, meet.kind, meet.owner, meet.key = (zeros(room) for _ in range(5))
    meet.fresh_count, meet.fresh = zeros(3), zeros(room)
    most = min(room, FRESH)
    meet.mates, meet.mate = zeros(most), zeros(MATES * most)
    meet.inverse_mass, meet.offset, meet.total = (zeros(room, wp.float32) for _ in range(3))
    meet.rest, meet.x, meet.v, meet.normal = (zeros(room, wp.vec3) for _ in range(4))
    meet.pushed, meet.shifted = zeros(room, wp.vec3), zeros(room, wp.vec3)
    meet.tied, meet.leans, meet.flat = zeros(NEIGHBOURS * room), zeros(room), zeros(room, wp.float32)
    meet.lean, meet.share = zeros(room, wp.vec3), zeros(PARTNERS * room, wp.float32)
    meet.low, meet.high = zeros(BUCKETS), zeros(BUCKETS)
    meet.at, meet.candidates, meet.candidate = zeros(room, wp.vec3), zeros(room), zeros(CANDIDATES * room)
    meet.runaway, meet.runs = zeros(RUNAWAYS), zeros(room)
    meet.box = wp.array([FAR] * 3 + [-FAR] * 3, dtype=wp.float32, device=device)
    meet.head, meet.after, meet.listed, meet.partners = zeros(BUCKETS), zeros(room), zeros(room), zeros(room)
    meet.partner, meet.along = zeros(PARTNERS * room), zeros(PARTNERS * room, wp.vec3)
    meet.weight, meet.reach = zeros(PARTNERS * room, wp.float32), zeros(PARTNERS * room, wp.float32)
    return meet
