"""A vessel that runs through tissue bleeds where a blade, or a tear, has crossed it.

The vessel is a line through the organ at rest, with a supply at its first point. Between two points of it there is one
wound on the skin above, shut until the line is cut there: that is, until links of the lattice near it were parted
by planes that have the two points on different sides. Then the wound lies in the face of the cut, on the side of the
supply, where that has texels (`cuttable(..., inside=True)`). Of several cuts the one nearest to the supply bleeds,
unless a clip or a burn is between it and the supply: behind, there is no pressure.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.blood.wounds.wounds import WHOLE, set_place, set_whole
from viscera.errors import InputError
from viscera.tissue.cutting import unpack_crossings
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Moment, System
from viscera.world.systems.wounds import Vessels

NEAR = 1.5
"""How far from a cut link its plane is known, in cells."""
THROUGH = 4
"""Links around the vessel that must be parted: a blade that crosses it parts nine, a small tear one or two."""

CUT_THROUGH = Measure("vessel_cut", "Vessel cut", "", "The vessel is cut through somewhere.", digits=0, yes_no=True)


class CutVessel:
    """`numbers` are the wounds of `vessels` that wait: one for each piece of the line, in order."""

    def __init__(self, organ: Organ, vessels: Vessels, line: NDArray[np.float64], numbers: range) -> None:
        if organ.shadow.cuts is None:
            raise InputError(f"{organ.name} cannot be cut.", "Make it with `viscera.cuttable`.")
        there = len(range(vessels.wounds.count)[numbers.start : numbers.stop])
        if there != len(line) - 1:
            raise InputError(f"a line of {len(line) - 1} pieces has {there} wounds.", "Give one wound per piece.")
        params = organ.tissue.params
        self._organ, self._cuts, self._vessels, self._numbers = organ, organ.shadow.cuts, vessels, numbers
        self._nodes = params.nodes.astype(np.float64)
        self._line = (np.asarray(line, dtype=np.float64) - np.asarray(params.origin)) / params.spacing
        self._seen = -1
        self.cut = np.zeros(len(line) - 1, dtype=np.bool_)
        """Which pieces are cut."""
        self.put()

    def frame(self, now: Moment) -> None:
        if self._cuts.changes != self._seen:
            self._seen = self._cuts.changes
            before = self.cut
            places = crossings(self._line, self._nodes, self._cuts.links())
            self.cut = np.isfinite(places[:, 0])
            for number in np.flatnonzero(self.cut & ~before).tolist():
                self._put_inside(number, places[number])
        if self.cut.any():
            self.put()

    def _put_inside(self, number: int, place: NDArray[np.float64]) -> None:
        """A wound into the face of the cut that looks away from the supply, near this place [cells]."""
        organ, params = self._organ, self._organ.tissue.params
        if organ.cuts is None:
            return
        at = np.asarray(params.origin) + params.spacing * place
        face = organ.cuts.inner_face(at, self._line[number + 1] - self._line[number])
        if face is not None:
            surface = self._vessels.wounds.surface
            first = surface.first_face[surface.parts.index(organ.need_skin())]
            set_place(self._vessels.wounds, self._numbers[number], face + first)

    def put(self) -> None:
        """The wound nearest to the supply is open, if nothing shuts the vessel before it."""
        wounds = self._vessels.wounds
        sealed = wounds.view.sealed.numpy()[self._numbers.start : self._numbers.stop]
        shut = np.cumsum((sealed & ~WHOLE) != 0) - ((sealed & ~WHOLE) != 0) > 0
        flows = self.cut & ~shut
        first = np.cumsum(self.cut) == 1
        for number, whole in enumerate((~(flows & first)).tolist()):
            if whole != bool(sealed[number] & WHOLE):
                set_whole(wounds, self._numbers[number], whole)

    def measures(self) -> list[tuple[Measure, float]]:
        return [(CUT_THROUGH, float(self.cut.any()))]

    def loaded(self) -> None:
        self._seen = self._cuts.changes
        self.cut = np.isfinite(crossings(self._line, self._nodes, self._cuts.links())[:, 0])


def crossings(line: NDArray[np.float64], nodes: NDArray[np.float64], links: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where each piece of a line, points in cells, is crossed by what parted the links (`CutShadow.links`), shape
    (pieces, 3) in cells; NaN where it is whole."""
    axis, node = np.nonzero(links)
    found = np.full((len(line) - 1, 3), np.nan)
    if len(axis) == 0:
        return found
    share, normal = unpack_crossings(links[axis, node])
    place = nodes[node] + share[:, None] * np.eye(3)[axis]
    height = np.einsum("pka,ka->pk", line[:, None, :] - place, normal)
    low, high = height[:-1], height[1:]
    parted = (low >= 0.0) != (high >= 0.0)
    along = np.where(parted, low / np.where(parted, low - high, 1.0), 0.0)
    at = line[:-1, None, :] + along[..., None] * (line[1:] - line[:-1])[:, None, :]
    near = parted & (np.linalg.norm(at - place, axis=2) <= NEAR)
    count = near.sum(axis=1)
    through = count >= THROUGH
    found[through] = np.einsum("pk,pka->pa", near[through], at[through]) / count[through, None]
    return found


def cut_vessel(
    organ: Organ, vessels: Vessels, line: NDArray[np.float64], numbers: range | None = None
) -> System[CutVessel]:
    """After `cutting` and before `bleeding` in the order of a frame; `vessels` is what `bleeding(...)` holds, and
    `numbers` those of its wounds that wait for this line, its first ones where not given."""
    state = CutVessel(organ, vessels, line, range(len(line) - 1) if numbers is None else numbers)
    return System(
        name="cut_vessel",
        organ=organ.name,
        after=("cutting",),
        frame=state.frame,
        load=lambda saved: state.loaded(),
        measures=state.measures,
        holds=state,
    )
