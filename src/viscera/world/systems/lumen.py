"""A hollow organ is full of bile: nicked, it leaks, and is the emptier for it.

The lumen is made of masses of its own, whose springs keep it open. Where springs that end in it are cut or torn, the
wall is open: a hole with the area of what was parted there. Bile leaves through it with the pressure that is left,

    p = p₀ · (what is left / what it held),

as it does through the organ's own duct, if that is cut (`fed`: wounds of others that this bile feeds). All of it are
wounds of `wounds.Vessels`, so that the ledger has every picolitre of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from viscera.blood.film.params import LITTLE
from viscera.blood.wounds.vessels import VesselParams
from viscera.blood.wounds.wounds import set_opening, set_place, set_vessel, set_whole
from viscera.errors import InputError
from viscera.tissue.cutting import need_cutting
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.units import MILLILITRE
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System
from viscera.world.systems.wounds import Vessels

APART = 6.0e-3
"""Holes farther from each other than this are two [m]."""
WIDEST = 0.5e-3
"""Radius of a hole, at most [m]: the wall falls together."""
SMALLEST = 2
"""Springs that must be parted at a place: one at the rim is a scratch."""
LOOK = 16
"""Turns between two looks at how full it is."""

SPILT = Measure(
    "bile_spilt", "Bile spilt", "mL", "What the gall bladder and the ducts have lost so far.", digits=2, grows=True
)
HOLES = Measure("holes", "Holes", "", "In the wall of the gall bladder.", digits=0)


class Lumen:
    """`numbers` are the wounds of `vessels` that wait for holes."""

    def __init__(
        self, organ: Organ, vessels: Vessels, masses: NDArray[np.int64], numbers: range, volume: float,
        full: VesselParams, fed: Sequence[int] = (),
    ) -> None:  # fmt: skip
        if organ.shadow.cuts is None or organ.cuts is None:
            raise InputError(f"{organ.name} cannot be cut.", "Make it with `viscera.cuttable`.")
        self._organ, self._cuts, self._vessels = organ, organ.shadow.cuts, vessels
        self._numbers, self._fed, self._full, self._volume = numbers, tuple(fed), full, volume
        nodes = organ.tissue.params.nodes
        inside = np.zeros(len(nodes), dtype=np.bool_)
        inside[masses] = True
        index, rest = NodeIndex(nodes), np.asarray(organ.tissue.rest_positions())
        other = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
        self._ends = (other >= 0) & (inside[None] | inside[np.maximum(other, 0)])
        self._middle = 0.5 * (rest[None] + rest[np.maximum(other, 0)])
        self._area = need_cutting(organ.tissue).area_of[:, organ.tissue.layout.slot_of_node]
        self.place = np.zeros((len(numbers), 3))
        """Of the holes, in the tissue at rest [m]."""
        self.state = np.zeros(2)
        """Holes, and what is left of the bile, as a share."""
        self.state[1] = 1.0
        self._seen = -1
        for number in numbers:
            set_whole(vessels.wounds, number)

    def frame(self, now: Moment) -> None:
        if self._cuts.changes != self._seen:
            self._seen = self._cuts.changes
            self._look()
        if now.frame % LOOK == 0:
            self._empty()

    def _look(self) -> None:
        """New holes where much was parted far from all others; each as wide as what was parted around it."""
        cut = self._cuts.springs() & self._ends
        if not cut.any():
            return
        at, area = self._middle[cut], self._area[cut]
        count = int(self.state[0])
        far = np.ones(len(at), dtype=np.bool_)
        for k in range(count):
            far &= np.linalg.norm(at - self.place[k], axis=1) > APART
        while far.any() and count < len(self._numbers):
            near = np.linalg.norm(at - at[np.argmax(far)], axis=1) <= APART
            if (near & far).sum() >= SMALLEST:
                self._open(count, at[near & far].mean(axis=0))
                count += 1
            far &= ~near
        self.state[0] = count
        for k in range(count):
            around = np.linalg.norm(at - self.place[k], axis=1) <= APART
            radius = min(float(np.sqrt(area[around].sum() / np.pi)), WIDEST)
            set_opening(self._vessels.wounds, self._numbers[k], radius)

    def _open(self, k: int, place: NDArray[np.float64]) -> None:
        assert self._organ.cuts is not None
        self.place[k] = place
        faces, middle, _ = self._organ.cuts.inner_faces()
        wounds, skin = self._vessels.wounds, self._organ.need_skin()
        if len(faces):
            face = int(faces[np.linalg.norm(middle - place, axis=1).argmin()])
            set_place(wounds, self._numbers[k], face + wounds.surface.first_face[wounds.surface.parts.index(skin)])
        set_whole(wounds, self._numbers[k], whole=False)

    def _empty(self) -> None:
        """The pressure follows what is left."""
        mine = [*self._numbers, *self._fed]
        gone = float(self._vessels.wounds.view.given.numpy()[mine].sum()) * LITTLE
        left = max(1.0 - gone / self._volume, 0.0)
        if left != self.state[1]:
            self.state[1] = left
            p = self._full
            for number in mine:
                set_vessel(
                    self._vessels.wounds, number, replace(p, systolic=left * p.systolic, diastolic=left * p.diastolic)
                )

    def loaded(self) -> None:
        """Holes and their widths are saved; what is cut has been looked at."""
        self._seen = self._cuts.changes

    def spilt(self) -> float:
        """All that is no blood and has left a tube or a hole [m³]."""
        wounds = self._vessels.wounds
        other = wounds.view.is_blood.numpy()[: wounds.count] == 0
        return float(wounds.view.given.numpy()[: wounds.count][other].sum()) * LITTLE

    def measures(self) -> list[tuple[Measure, float]]:
        return [(SPILT, self.spilt() / MILLILITRE), (HOLES, float(self.state[0]))]


def lumen_of(
    organ: Organ, vessels: Vessels, masses: NDArray[np.int64], numbers: range, *, volume: float, full: VesselParams,
    fed: Sequence[int] = (),
) -> System[Lumen]:  # fmt: skip
    """A lumen of these masses that holds `volume` [m³] under the pressure of `full`. After `cutting` and
    `tubes_through`, before `bleeding` in the order of a frame."""
    state = Lumen(organ, vessels, masses, numbers, volume, full, fed)
    kept = Kept({"place": state.place, "state": state.state}, state.loaded)
    return System(
        name="lumen",
        organ=organ.name,
        after=("cutting",),
        frame=state.frame,
        save=kept.save,
        load=kept.load,
        measures=state.measures,
        holds=state,
    )
