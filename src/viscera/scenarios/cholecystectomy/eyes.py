"""What a scripted surgeon sees: where masses are now, and which springs are still there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.embedding import embed
from viscera.geometry.linked_loops import roots_of
from viscera.geometry.tools import FOOT
from viscera.scenarios.cholecystectomy import body
from viscera.scenarios.cholecystectomy.body import Field
from viscera.scenarios.cholecystectomy.patient import NECK, Line, Patient
from viscera.tissue.cutting import cut_springs
from viscera.tissue.springs import partners
from viscera.world import Organ
from viscera.world.systems.tubes import NEAR_END, Tubes

Springs = NDArray[np.bool_]
"""Some springs of the lattice, per direction and mass."""

DISSECTED = (0.2, 0.9)
"""Of the length of a tube: what is freed from the fold."""
BED_FROM = -0.0120
"""Where along x the bed begins [m]."""
ROW = 0.0030
"""Width of a row of the bed [m]: less than a hook's foot."""
PARTS, BEYOND = 6, 0.002
"""Places of a way through springs, and how far it goes on beyond them [m]."""
OFF_THE_NECK = 0.001
"""Where a way beside a tube, on the gall bladder's side, ends before it [m]."""
OFF_COMMON = 0.0060
"""How far a way beside a tube stays from the middle of the common duct, along x [m]: two cells."""
UNDER = 0.001
"""How far below the lowest spring a hook's foot ends [m]."""
OVER = 0.0005
"""How far over a tube's cells the middle of the wire stays that comes across it to the foot beyond [m]: its radius."""


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a tube, and what ties it to the fold there."""

    tube: int
    towards: int
    """1 away from the surgeon, -1 towards."""
    springs: Springs


class Eyes:
    """Of the lattice as ticks have it: for hands, not for systems."""

    def __init__(self, organ: Organ, patient: Patient, field: Field, tubes: Tubes | None = None) -> None:
        """`tubes` has the clips; without, none is seen."""
        self.organ, self.patient, self._field, self._tubes = organ, patient, field, tubes
        nodes = organ.tissue.params.nodes
        self._other = partners(nodes)
        self._there = self._other >= 0
        self._rest = np.asarray(organ.tissue.rest_positions())
        self._anchored = np.asarray(organ.tissue.params.anchored)
        self._middle = 0.5 * (self._rest[None] + self._rest[np.maximum(self._other, 0)])
        """Of every spring at rest [m]."""
        kind = field.material_of
        self._bladder = np.isin(kind, (body.WALL, body.LUMEN))
        self._fold = np.isin(kind, (body.FAT, body.PERITONEUM))
        self._kind = kind

    # --- springs ---

    def left(self) -> Springs:
        """That are there still."""
        return self._there & ~cut_springs(self.organ.tissue)

    def ties(self) -> list[Side]:
        """Between duct or arteries and the fold around them: either side of each tube."""
        found = []
        for number, line in self.tubes():
            masses, tube = self._field.tubes[number], np.zeros(len(self._rest), dtype=np.bool_)
            share = body.along(line, self._rest[masses])[0]
            tube[masses[(share > DISSECTED[0]) & (share < DISSECTED[1])]] = True
            springs = self._between(tube, self._fold)
            beyond = self._middle[..., 1] > np.interp(self._middle[..., 0], line[:, 0], line[:, 1])
            found += [Side(number, -1, springs & ~beyond), Side(number, 1, springs & beyond)]
        return found

    def bed(self, up_to: float = 1.0) -> list[Springs]:
        """Between the liver and all that lies on it under the gall bladder, up to so far along x [m]: rows along x."""
        springs = self.on_liver(BED_FROM, up_to)
        row = np.rint(self._middle[..., 1] / ROW)
        return [springs & (row == one) for one in np.unique(row[springs])]

    def on_liver(self, begin: float, end: float = 1.0) -> Springs:
        """Between the liver and all that lies on it, from here to there along x [m]."""
        over = (self._kind != body.LIVER) & (self._rest[:, 0] > begin) & (self._rest[:, 0] < end)
        return self._between(over, self._kind == body.LIVER)

    def across_fold(self, x: float) -> Springs:
        """Of fold and tubes, what crosses the plane at so far along x at rest [m]."""
        return self._across(np.isin(self._kind, (body.FAT, body.PERITONEUM, body.DUCT, body.ARTERY)), x)

    def across_tube(self, number: int, x: float) -> Springs:
        """The same of one tube."""
        mine = np.zeros(len(self._rest), dtype=np.bool_)
        mine[self._field.tubes[number]] = True
        return self._across(mine, x)

    def _across(self, masses: NDArray[np.bool_], x: float) -> Springs:
        low, high = self._rest[:, 0], self._rest[np.maximum(self._other, 0), 0]
        return self._between(masses, masses) & ((low[None] < x) != (high < x))

    def _between(self, ones: NDArray[np.bool_], others: NDArray[np.bool_]) -> Springs:
        far = np.maximum(self._other, 0)
        return self._there & ((ones[None] & others[far]) | (others[None] & ones[far]))

    def middles(self, springs: Springs) -> NDArray[np.float64]:
        """Of these springs as they lie now [m], shape (springs, 3)."""
        at = self._rest + np.asarray(self.organ.tissue.displacement())
        direction, low = np.nonzero(springs)
        return 0.5 * (at[low] + at[self._other[direction, low]])

    def path(self, springs: Springs) -> NDArray[np.float64]:
        """A way through the middles of these springs as they lie now, along x [m], shape (points, 3)."""
        middle = self.middles(springs)
        middle = middle[np.argsort(middle[:, 0], kind="stable")]
        parts = np.array_split(middle, min(PARTS, len(middle)))
        return _longer(np.array([part.mean(axis=0) for part in parts]))

    def way_beside(self, side: Side, left: Springs, deeper: float = 0.0) -> NDArray[np.float64]:
        """A way along x for a foot that points down, half a cell beside a tube, wherever some of these springs of its
        side are left [m], shape (points, 3). The foot ends below the lowest of them, but beyond a tube the wire, which
        comes across it from the surgeon's side, stays over it, or goes so much deeper [m]. The way keeps off the gall
        bladder and the common duct, and may have no points for that."""
        cell = self.organ.tissue.params.spacing
        at = self._rest + np.asarray(self.organ.tissue.displacement())
        masses = self._field.tubes[side.tube]
        masses = masses[self._piece()[masses]]  # one that came loose lies anywhere
        layer, line = np.rint(self._rest[masses, 0] / cell), dict(self.tubes())[side.tube]
        direction, low = np.nonzero(left)
        now = self.middles(left)
        nearest = np.rint(self._middle[direction, low, 0] / cell)
        points = []
        ends = np.inf if side.tube != 0 and side.towards > 0 else (NECK[0] - OFF_THE_NECK) / cell
        begins = float(self.patient.common[0, 0]) + OFF_COMMON
        for one in np.unique(nearest[np.isin(nearest, layer) & (nearest > begins / cell) & (nearest < ends)]):
            mine, here = masses[layer == one], now[nearest == one]
            # One mass that is drawn out of its tube does not say where the tube is.
            moved = np.median(at[mine] - self._rest[mine], axis=0)
            y = side.towards * ((side.towards * self._rest[mine, 1]).max() + 0.5 * cell) + moved[1]
            x, z = self._rest[mine, 0].mean(), here[:, 2].min() + 0.5 * FOOT - UNDER
            if side.towards > 0:
                z = max(z, np.interp(x, line[:, 0], line[:, 2]) + moved[2] + 0.5 * cell + OVER - deeper - 0.5 * FOOT)
            points.append((x + moved[0], y, z))
        if not points:
            return np.zeros((0, 3))
        way = _longer(np.array(points))
        way[0, 0] = max(way[0, 0], begins)
        return way

    def seen(self, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where places of the tissue at rest are now [m], shape (places, 3)."""
        shape = self.organ.body
        held = embed(places, shape.nodes, shape.origin, shape.spacing)
        moved = np.asarray(self.organ.tissue.displacement())
        return places + np.einsum("pc,pca->pa", held.weights.astype(np.float64), moved[held.indices])

    # --- tubes and pieces ---

    def tubes(self) -> list[tuple[int, Line]]:
        """Those that are to be cut: their numbers in `Field.tubes`, and their lines at rest."""
        return [(0, self.patient.duct), *((2 + k, line) for k, line in enumerate(self.patient.arteries))]

    def is_clipped(self, number: int, x: float, towards: int) -> bool:
        """Whether a clip holds on a tube, on this side of so far along x at rest [m]: -1 before it, 1 beyond."""
        if self._tubes is None:
            return False
        channel = self._tubes.channels[number]
        at = np.interp(self._tubes.held(number), channel.shares, channel.rest[:, 0])
        return bool((towards * at > towards * x).any())

    def is_cut(self, number: int) -> bool:
        """Whether a tube is cut through."""
        masses = self._field.tubes[number]
        mine = np.zeros(len(self._rest), dtype=np.bool_)
        mine[masses] = True
        roots = self._roots(self.left() & self._between(mine, mine))
        return len(np.unique(roots[masses])) > 1 and self._far_apart(roots, masses)

    def _far_apart(self, roots: NDArray[np.int64], masses: NDArray[np.int64]) -> bool:
        """Whether most of its two ends are in different pieces; a mass that came loose is no cut."""
        order = masses[np.argsort(self._rest[masses, 0], kind="stable")]
        few = max(1, round(NEAR_END * len(order)))
        return bool(np.bincount(roots[order[:few]]).argmax() != np.bincount(roots[order[-few:]]).argmax())

    def is_free(self) -> bool:
        """Whether the gall bladder hangs on nothing that holds fast."""
        return not bool(self._anchored[self._piece()].any())

    def in_its_piece(self, springs: Springs) -> Springs:
        """Of these, what hangs together with the gall bladder: no scraps."""
        return springs & self._piece()[None]

    def _piece(self) -> NDArray[np.bool_]:
        """Masses that hang together with most of the gall bladder."""
        roots = self._roots(self.left())
        return roots == np.bincount(roots[self._bladder]).argmax()

    def _roots(self, springs: Springs) -> NDArray[np.int64]:
        return roots_of(springs, self._other)


def _longer(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """A way that begins before its first point and ends beyond its last one."""
    ends = np.array([[-BEYOND, 0.0, 0.0], [BEYOND, 0.0, 0.0]])
    return np.concatenate([points[:1] + ends[:1], points, points[-1:] + ends[1:]])
