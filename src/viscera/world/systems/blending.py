"""Water that splits and merges, drawn without a jump: the physics changes at once, the picture over some frames.

What is drawn are balls, and each belongs to a particle. One that does not change has one ball, where it is. When it
splits, every child gets a ball where the parent's was; when some merge, the new particle keeps all their balls. So the
moment of the change leaves the picture as it was, to rounding. After that every ball goes to the place of its particle,
and the balls of a particle that have come together become one:

    drawn place = x + d,   d ← (1 − share) d in every frame

A ball holds its share of its particle's liquid, so the thickness of the water does not jump either. Any number of sizes
and children; a ball may be on its way while its particle changes again. Where there is no room for all balls, those of
one particle that are nearest to it join first.
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
    away: Floats = field(init=False)
    """From the particle [m], (capacity, 3)"""
    part: Floats = field(init=False)
    """Of the particle's liquid."""

    def __post_init__(self) -> None:
        self.count = np.zeros(1, dtype=np.int64)
        self.tag = np.zeros(self.capacity, dtype=np.int32)
        self.away = np.zeros((self.capacity, 3), dtype=np.float32)
        self.part = np.zeros(self.capacity, dtype=np.float32)

    def read(self) -> tuple[Integers, Floats, Floats]:
        n = int(self.count[0])
        return self.tag[:n], self.away[:n], self.part[:n]

    def write(self, tag: Integers, away: Floats, part: Floats) -> None:
        n = len(tag)
        self.count[0] = n
        self.tag[:n], self.away[:n], self.part[:n] = tag, away, part


def place_of(wanted: Integers, tags: Integers) -> NDArray[np.int64]:
    """Where each of the wanted tags stands; −1 where it does not."""
    order = np.argsort(tags, kind="stable")
    at = np.minimum(np.searchsorted(tags, wanted, sorter=order), max(len(tags) - 1, 0))
    found = order[at] if len(tags) else np.full(len(wanted), -1)
    return np.where(tags[found] == wanted, found, -1) if len(tags) else found


def follow_change(
    balls: Balls, before: tuple[Integers, Floats], after: tuple[Integers, Floats], change: Change, children: int
) -> None:
    """Particles have changed: tags and places before and after [m]. No ball moves."""
    (tags, x), (new_tags, new_x) = before, after
    owner, away, part = _all_that_change(balls, tags, (change.heirs > 1) | (change.leader >= 0))
    point = x[owner] + away
    # Who merges goes to its leader, all others stay with who stands in their place.
    led = change.leader[owner]
    heir = np.where(led >= 0, led, owner)
    at = change.ends[heir] - change.heirs[heir]
    splits, merges = change.heirs[owner] > 1, led >= 0
    part = np.where(merges, part / children, part)
    copies = np.where(splits, children, 1)
    which = np.repeat(np.arange(len(owner)), copies)
    number = np.arange(len(which)) - np.repeat(np.cumsum(copies) - copies, copies)
    now = at[which] + number
    _keep(balls, new_tags, now, (point[which] - new_x[now]).astype(np.float32), part[which].astype(np.float32))


def approach(balls: Balls, tags: Integers) -> None:
    """A frame later: every ball is nearer to its particle. `tags` are those of the particles now."""
    tag, away, part = balls.read()
    if len(tag):
        owner = place_of(tag, tags)
        here = owner >= 0
        _keep(balls, tags, owner[here], (1.0 - np.float32(SHARE)) * away[here], part[here])


def drawn(balls: Balls, tags: Integers, x: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Of every ball: which particle it belongs to, its place [m], and its part of that particle's liquid."""
    tag, away, part = balls.read()
    if not len(tag):
        return np.arange(len(tags)), x, np.ones(len(tags), dtype=np.float32)
    owner = place_of(tag, tags)
    alone = np.ones(len(tags), dtype=np.bool_)
    alone[owner] = False
    rest = np.flatnonzero(alone)
    whose = np.concatenate([rest, owner])
    return whose, np.concatenate([x[rest], x[owner] + away]), np.concatenate([np.ones(len(rest), np.float32), part])


def _all_that_change(balls: Balls, tags: Integers, changes: NDArray[np.bool_]):
    """Balls on their way, and those of particles that change now: owner, way and part."""
    tag, away, part = balls.read()
    owner = place_of(tag, tags)
    here = owner >= 0
    owner, away, part = owner[here], away[here], part[here]
    changes = changes.copy()
    changes[owner] = False
    new = np.flatnonzero(changes)
    still = np.zeros((len(new), 3), dtype=np.float32)
    return (
        np.concatenate([owner, new]),
        np.concatenate([away, still]),
        np.concatenate([part, np.ones(len(new), dtype=np.float32)]),
    )


def _keep(balls: Balls, tags: Integers, owner: NDArray[np.int64], away: Floats, part: Floats) -> None:
    """Those of particles that have a ball away from them, as many as there is room for."""
    far = np.zeros(len(tags), dtype=np.float32)
    np.maximum.at(far, owner, np.sqrt((away * away).sum(axis=1)))
    near = balls.near
    while True:
        kept = far[owner] > near
        alone = len(tags) - np.count_nonzero(far > near)
        if alone + np.count_nonzero(kept) <= balls.capacity:
            break
        near *= 2.0
    balls.write(tags[owner[kept]], away[kept], part[kept])
