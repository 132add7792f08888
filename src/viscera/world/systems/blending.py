"""Water that splits and merges, drawn without a jump: the physics changes at once, the picture over some frames.

What is drawn are balls, and each belongs to a particle. One that does not change has one ball, where it is. When it
splits, every child gets a ball where the parent's was; when some merge, the new particle keeps all their balls. So the
moment of the change leaves the picture as it was, to rounding. New particles then push each other about for some
frames. Their balls go with the water around, not with each push, and so come to their particles:

    p ← p + ½ (u_before + u) Δt,   p ← p + share (x − p)     in every frame; u: mean velocity of a cell

Balls of a particle that have come together become one. A ball holds its share of its particle's liquid, so the
thickness of the water does not jump either. Any number of sizes and children; a ball may be on its way while its
particle changes again. Where there is no room for all balls, those of one particle that are nearest to it join first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int32]

SHARE = 0.1
"""Of the way to its particle that a ball goes in a frame: tuned for appearance, half of it in 0.1 s."""
TOGETHER = 0.01
"""Distance from its particle at which a ball has come there, over the spacing of the largest size."""
CELL = 2.0
"""Side of the cells whose mean velocity is that of the water around, over the same spacing: 8 to 16 particles."""


@dataclass(frozen=True, eq=False)
class Change:
    """Who became whom, in the order before and after: `adaptive.step` leaves these."""

    heirs: Integers
    """How many stand in the place of each: 1, its children, or 0 where it follows another."""
    ends: Integers
    """The sum of `heirs` up to each."""
    leader: Integers
    """Of the group that each merges with; −1 where it does not."""


@dataclass(eq=False)
class Balls:
    """Those that are not where their particle is; all others follow from the particles."""

    capacity: int
    near: float
    """Distance at which a ball has come to its particle [m]."""
    count: NDArray[np.int64] = field(init=False)
    """(1,)"""
    tag: Integers = field(init=False)
    """Of the particle."""
    place: Floats = field(init=False)
    """[m], (capacity, 3)"""
    flow: Floats = field(init=False)
    """Of the water around, a frame ago [m/s], (capacity, 3)"""
    part: Floats = field(init=False)
    """Of the particle's liquid."""

    def __post_init__(self) -> None:
        self.count = np.zeros(1, dtype=np.int64)
        self.tag = np.zeros(self.capacity, dtype=np.int32)
        self.place, self.flow = (np.zeros((self.capacity, 3), dtype=np.float32) for _ in range(2))
        self.part = np.zeros(self.capacity, dtype=np.float32)

    def read(self) -> tuple[Integers, Floats, Floats, Floats]:
        n = int(self.count[0])
        return self.tag[:n], self.place[:n], self.flow[:n], self.part[:n]

    def write(self, tag: Integers, place: Floats, flow: Floats, part: Floats) -> None:
        n = len(tag)
        self.count[0] = n
        self.tag[:n], self.place[:n], self.flow[:n], self.part[:n] = tag, place, flow, part


def mean_flow(x: Floats, velocity: Floats, side: float) -> Floats:
    """Mean velocity of the particles in one's cell of this side [m/s]."""
    cell = np.floor(x / np.float32(side)).astype(np.int64)
    cell -= cell.min(axis=0)
    wide = cell.max(axis=0) + 1
    number = cell[:, 0] + wide[0] * (cell[:, 1] + wide[1] * cell[:, 2])
    many = np.bincount(number)[number]
    return np.stack([np.bincount(number, velocity[:, k])[number] / many for k in range(3)], axis=1).astype(np.float32)


def place_of(wanted: Integers, tags: Integers) -> NDArray[np.int64]:
    """Where each of the wanted tags stands; −1 where it does not."""
    if not len(wanted) or not len(tags):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(tags, kind="stable")
    found = order[np.minimum(np.searchsorted(tags, wanted, sorter=order), len(tags) - 1)]
    return np.where(tags[found] == wanted, found, -1)


def approach(balls: Balls, tags: Integers, x: Floats, flow: Floats, dt: float) -> None:
    """A frame later: balls have gone with the water, and are nearer to their particles."""
    tag, place, before, part = balls.read()
    if len(tag):
        owner = place_of(tag, tags)
        here = owner >= 0
        owner, place, before, part = owner[here], place[here], before[here], part[here]
        went = place + np.float32(0.5 * dt) * (before + flow[owner])
        place = (went + np.float32(SHARE) * (x[owner] - went)).astype(np.float32)
        _keep(balls, (tags, x), owner, place, flow[owner], part)


def follow_change(
    balls: Balls,
    before: tuple[Integers, Floats, Floats],
    after: tuple[Integers, Floats],
    change: Change,
    children: int,
) -> None:
    """Particles have changed: tags and places before and after [m], and the flow before. No ball moves."""
    tags, x, flow = before
    tag, place, _, part = balls.read()
    owner = place_of(tag, tags)
    here = owner >= 0
    owner, place, part = owner[here], place[here], part[here]
    # Those that change now and had one ball, where they were.
    changes = (change.heirs > 1) | (change.leader >= 0)
    changes[owner] = False
    new = np.flatnonzero(changes)
    owner, place = np.concatenate([owner, new]), np.concatenate([place, x[new]])
    part = np.concatenate([part, np.ones(len(new), dtype=np.float32)])
    # Who merges goes to its leader, all others stay with who stands in their place.
    led = change.leader[owner]
    heir = np.where(led >= 0, led, owner)
    part = np.where(led >= 0, part / np.float32(children), part)
    copies = np.where(change.heirs[owner] > 1, children, 1)
    which = np.repeat(np.arange(len(owner)), copies)
    number = np.arange(len(which)) - np.repeat(np.cumsum(copies) - copies, copies)
    now = (change.ends[heir] - change.heirs[heir])[which] + number
    _keep(balls, after, now, place[which], flow[owner[which]], part[which])


def drawn(balls: Balls, tags: Integers, x: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Of every ball: which particle it belongs to, its place [m], and its part of that particle's liquid."""
    tag, place, _, part = balls.read()
    owner = place_of(tag, tags)
    alone = np.ones(len(tags), dtype=np.bool_)
    alone[owner] = False
    rest = np.flatnonzero(alone)
    whole = np.ones(len(rest), dtype=np.float32)
    return np.concatenate([rest, owner]), np.concatenate([x[rest], place]), np.concatenate([whole, part])


def _keep(
    balls: Balls,
    particles: tuple[Integers, Floats],
    owner: NDArray[np.int64],
    place: Floats,
    flow: Floats,
    part: Floats,
) -> None:
    """Balls of particles that have one away from them, as many as there is room for."""
    tags, x = particles
    away = place - x[owner]
    far = np.zeros(len(tags), dtype=np.float32)
    np.maximum.at(far, owner, np.sqrt((away * away).sum(axis=1)))
    near = balls.near
    while True:
        kept = far[owner] > near
        alone = len(tags) - np.count_nonzero(far > near)
        if alone + np.count_nonzero(kept) <= balls.capacity:
            break
        near *= 2.0
    balls.write(tags[owner[kept]], place[kept], flow[kept], part[kept])
