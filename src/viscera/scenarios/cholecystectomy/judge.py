"""How the operation goes, told from the tissue: what is freed, clipped, cut, burnt, and taken out. All else is free.

Critical view (Strasberg, Hertl and Soper, J. Am. Coll. Surg. 180, 1995): the triangle is cleared of fat, the lower
part of the gall bladder is off its bed, and two structures, no more, are seen to enter it. Here: springs that tie duct
and arteries to the fold are gone, `CLEARED` of them at least, and so is the first third of the bed, while no tube
is clipped or cut. It counts as it was when the first clip was put on or the first tube was cut.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.geometry.linked_loops import roots_of
from viscera.scenarios.cholecystectomy import body
from viscera.scenarios.cholecystectomy.body import Field
from viscera.tissue.burning import Burning
from viscera.tissue.cutting import need_cutting
from viscera.tissue.springs import DIRECTIONS, partners
from viscera.units import SQUARE_MILLIMETRE
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System
from viscera.world.systems.tubes import Tubes

CLEARED = 60.0
"""Of the triangle, for the critical view [%]."""
LOWER_FREED = 60.0
"""Of the bed's first third [%]."""
DISSECTED = (0.25, 0.85)
"""Of the length of a tube: what is to be freed from the fold."""
FIRST_THIRD = 0.003
"""The lower third of the bed goes up to here along x [m]."""
OUT = 0.04
"""How far the gall bladder's middle must be carried from where it lay [m]."""

CALOT = Measure(
    "calot_cleared", "Triangle cleared", "%", "Of what ties duct and arteries to the fold of fat.", digits=0
)
VIEW = Measure(
    "critical_view", "Critical view", "",
    "The triangle and the lower bed are free and duct and arteries whole; stays as it was at the first clip.",
    digits=0, yes_no=True,
)  # fmt: skip
SECURED = Measure(
    "secured", "Clipped and cut", "%", "Of duct and arteries: cut through with a clip on either side.", digits=0
)
FREED = Measure("freed", "Off its bed", "%", "Of the gall bladder; 100 once nothing holds it any more.", digits=0)
TAKEN_OUT = Measure("taken_out", "Taken out", "", "The free gall bladder was carried 4 cm away.", digits=0, yes_no=True)
DUCT_BURN = Measure(
    "duct_burn", "Burn of the ducts", "%", "Of the worst place of cystic and common duct.", digits=0, grows=True
)
COMMON_HURT = Measure(
    "common_hurt",
    "Common duct hurt",
    "%",
    "Of its worst cross-section, cut or torn. It must stay whole.",
    digits=0,
    grows=True,
)
LIVER_CUT = Measure("liver_cut", "Liver cut", "mm²", "Cut or torn in the liver itself.", digits=0, grows=True)


class Judge:
    """`values` are the measures in their order."""

    def __init__(self, organ: Organ, field: Field, tubes: Tubes, burning: Burning) -> None:
        assert organ.shadow.cuts is not None
        self._organ, self._cuts, self._tubes, self._burning = organ, organ.shadow.cuts, tubes, burning
        tissue = organ.tissue
        nodes, kind = tissue.params.nodes, field.material_of
        self._other = partners(nodes)
        self._rest = np.asarray(tissue.rest_positions())
        self._bladder = np.isin(kind, (body.WALL, body.LUMEN))
        self._anchored = np.asarray(tissue.params.anchored)
        self._ducts = tissue.layout.slot_of_node[np.concatenate(field.tubes[:2])]
        ends = kind[np.maximum(self._other, 0)]
        self._liver = (self._other >= 0) & (kind[None] == body.LIVER) & (ends == body.LIVER)
        self._area = need_cutting(tissue).area_of[:, tissue.layout.slot_of_node]
        self._ties = self._tied(self._to_be_freed(field), np.isin(kind, (body.FAT, body.PERITONEUM)))
        self._columns, self._lower = self._beds(kind)
        self._seen = -1
        self.values = np.zeros(8)
        self.frozen = np.zeros(1, dtype=np.bool_)
        """Whether the critical view is decided."""

    def _to_be_freed(self, field: Field) -> NDArray[np.bool_]:
        chosen = np.zeros(len(self._rest), dtype=np.bool_)
        for number, channel in enumerate(self._tubes.channels):
            if number != 1:
                s = body.along(channel.tube.line, self._rest[channel.masses])[0]
                chosen[channel.masses[(s > DISSECTED[0]) & (s < DISSECTED[1])]] = True
        return chosen

    def _tied(self, ones: NDArray[np.bool_], others: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Springs from one of these masses to one of those."""
        far = np.maximum(self._other, 0)
        return (self._other >= 0) & ((ones[None] & others[far]) | (others[None] & ones[far]))

    def _beds(self, kind: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Columns of the bed: of each mass its own number and that of the one below; and which are the lower third."""
        up = DIRECTIONS.index((0, 0, 1))
        mass = np.flatnonzero(kind == body.BED)
        below = np.full(len(kind), -1, dtype=np.int64)
        there = self._other[up] >= 0
        below[self._other[up][there]] = np.flatnonzero(there)
        keep = (below[mass] >= 0) & (self._other[up][mass] >= 0)
        mass = mass[keep]
        return np.stack([mass, below[mass]]), self._rest[mass, 0] < FIRST_THIRD

    def frame(self, now: Moment) -> None:
        if self._cuts.changes != self._seen:
            self._seen = self._cuts.changes
            self.look()
        self._judge_view()
        self._judge_tubes()
        if self.values[3] >= 100.0:
            self._look_out()
        self.values[5] = max(self.values[5], 100.0 * float(self._burning.burn.numpy()[self._ducts].max()))

    def look(self) -> None:
        cut = self._cuts.springs()
        left = float((self._ties & ~cut).sum())
        self.values[0] = 100.0 * (1.0 - left / max(1, int(self._ties.sum())))
        up = DIRECTIONS.index((0, 0, 1))
        parted = cut[up][self._columns[0]] | cut[up][self._columns[1]]
        self._lower_freed = 100.0 * float(parted[self._lower].mean()) if self._lower.any() else 100.0
        share = 100.0 * float(parted.mean()) if len(parted) else 100.0
        self.values[3] = 100.0 if self._is_free(cut) else min(share, 99.0)
        self.values[6] = max(self.values[6], 100.0 * float(self._tubes.channels[1].open.max()))
        self.values[7] = float(self._area[cut & self._liver].sum()) / SQUARE_MILLIMETRE

    def _is_free(self, cut: NDArray[np.bool_]) -> bool:
        """Whether what most of the gall bladder hangs together with holds fast nowhere."""
        roots = roots_of((self._other >= 0) & ~cut, self._other)
        mine = np.bincount(roots[self._bladder]).argmax()
        return not bool(self._anchored[roots == mine].any())

    def _judge_view(self) -> None:
        if self.frozen[0]:
            return
        clipped = bool((self._tubes.clips[:, 2] != 0.0).any())
        cut = any(channel.is_cut for channel in self._tubes.channels)
        if not cut:
            self.values[1] = float(self.values[0] >= CLEARED and self._lower_freed >= LOWER_FREED)
        self.frozen[0] = clipped or cut

    def _judge_tubes(self) -> None:
        good = []
        for number, channel in enumerate(self._tubes.channels):
            if number != 1:
                held = self._tubes.held(number)
                good.append(bool((held < channel.cut_at).any() and (held > channel.cut_at).any()))
        self.values[2] = 100.0 * float(np.mean(good))

    def _look_out(self) -> None:
        slots = self._organ.tissue.layout.slots
        u = self._organ.shadow.displacement.numpy().reshape(3, slots)
        places = self._organ.tissue.layout.slot_of_node[self._bladder]
        if float(np.linalg.norm(np.median(u[:, places], axis=1))) >= OUT:
            self.values[4] = 1.0

    def measures(self) -> list[tuple[Measure, float]]:
        names = (CALOT, VIEW, SECURED, FREED, TAKEN_OUT, DUCT_BURN, COMMON_HURT, LIVER_CUT)
        return list(zip(names, self.values.tolist(), strict=True))

    def loaded(self) -> None:
        self._seen = self._cuts.changes
        kept = self.values.copy()
        self.look()
        self.values[:] = kept


def judging(organ: Organ, field: Field, tubes: Tubes, burning: Burning) -> System:
    """After `tubes_through` in the order of a frame."""
    judge = Judge(organ, field, tubes, burning)
    judge.look()
    kept = Kept({"values": judge.values, "frozen": judge.frozen}, judge.loaded)
    return System(name="judge", frame=judge.frame, save=kept.save, load=kept.load, measures=judge.measures, holds=judge)
