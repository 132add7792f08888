"""What blades have cut is seen and felt: the surface opens, and tools touch each side for itself.

Blades cut in the ticks (tissue/cutting.py); what is stretched too far tears here, once a frame (tissue/tearing.py).
After either, the drawn surface follows, and the points that tools touch are hung on their own side, in force when it
lands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.errors import InputError
from viscera.instruments import Cuts
from viscera.tissue.cut_touching import CutTouching
from viscera.tissue.cutting import need_cutting
from viscera.tissue.meeting_kernels import PIECES as PIECES_APART
from viscera.tissue.notches import Notches
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.tissue.tearing import make_tearing, step_tearing
from viscera.units import SQUARE_MILLIMETRE
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System

AREA = Measure("cut_area", "Cut", "mm²", "Surface that was cut open, one side of it.", digits=0, better="as it is")
PIECES = Measure("pieces", "Pieces", "", "Into which the tissue has come apart; 1 while it hangs together.", digits=0)
CRUMBS = Measure("crumbs", "Crumbs", "", "Loose bits that are smaller than a cell; they are no pieces.", digits=0)
CRUMB = 8
"""What has fewer masses than a cell has corners is a crumb."""


class Cutting:
    """Of one organ."""

    def __init__(self, organ: Organ) -> None:
        if organ.cuts is None or organ.shadow.cuts is None:
            raise InputError(f"{organ.name} cannot be cut.", "Make it with `viscera.world.cuttable`.")
        self.organ, self.surface, self.shadow = organ, organ.cuts, organ.shadow.cuts
        nodes = organ.tissue.params.nodes
        index = NodeIndex(nodes)
        self._other = np.stack([index.find(nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
        self._notches = Notches(nodes)
        self.touching = CutTouching(organ.tissue, self._other >= 0)
        self._area_of = need_cutting(organ.tissue).area_of[:, organ.tissue.layout.slot_of_node]
        self._seen = self.shadow.changes
        self._cut = np.zeros((13, len(nodes)), dtype=np.bool_)
        self._open = self._cut.copy()
        """As the surface shows it: with what has come apart across a notch, where no spring was."""
        self.landed = np.zeros((13, len(nodes)), dtype=np.bool_)
        """As tools touch it."""
        shadow = organ.shadow.tissue
        self.tearing = make_tearing(shadow, self.shadow)
        self._tear = shadow.device.record(lambda stage: step_tearing(stage, self.tearing), work=len(nodes))
        self.due = np.zeros(1, dtype=np.bool_)
        """Whether something tore that has not landed."""
        self.numbers = np.array([1.0, 0.0, 1.0, 0.0])
        """Version of the surface, area [m²], pieces, crumbs."""
        device = organ.shadow.tissue.device
        self._follow = device.record(self._record, work=len(organ.vertices))
        self._device = device

    def frame(self, now: Moment) -> None:
        tore = self._tears()
        if tore or self.shadow.changes != self._seen:
            self._seen = self.shadow.changes
            self.surface.follow(*self._look())
            self._put()
            self._count()

    def _look(self) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """What is open now, and where axis springs are."""
        self._cut = self.shadow.springs()
        parted = self._notches.follow(self._cut)
        self._open = self._cut | parted
        return self._open, self._notches.cross(self.shadow.links(), parted)

    def _tears(self) -> bool:
        before = int(self.tearing.torn.host[0])
        self._tear.run()
        self._device.synchronize()
        tore = int(self.tearing.torn.host[0]) != before
        if tore:
            self.due[0] = True
            self.shadow.changes += 1  # tubes, hollows and whoever judges look at what tears as at what is cut
        return tore

    def _record(self, stage: Stage) -> None:
        self.organ.record_vertices(stage, self.organ.shadow.displacement, self.organ.vertices)

    def land(self) -> None:
        if self.due[0]:
            self.shadow.land()
            self.due[0] = False
        if self.touching.due:
            self.touching.land()
            self.landed[:] = self._open
        if self.organ.meeting is not None:
            self.organ.meeting.land()

    def _put(self) -> None:
        """The organ's arrays are those of the surface, and its vertices where they belong."""
        organ = self.organ
        rest, places, weights = self.surface.arrays()
        for target, values in ((organ.rest, rest), (organ.places, places), (organ.weights, weights)):
            target.assign(values)
        self._follow.run()
        self._device.synchronize()
        self.surface.tell()
        self._part(self._open)

    def _part(self, opened: NDArray[np.bool_]) -> None:
        """Tools, and other tissue, are to touch each side for itself; in force when it lands."""
        whole = (self._other >= 0) & ~opened
        self.touching.hang(whole)
        if self.organ.pieces is not None:
            self.organ.pieces.hang(whole)

    def _count(self) -> None:
        sizes = np.unique(self._notches.roots, return_counts=True)[1]
        crumbs = int((sizes < CRUMB).sum())
        self.numbers[:] = self.surface.version, self._area_of[self._cut].sum(), len(sizes) - crumbs, crumbs

    def loaded(self) -> None:
        """The shadow has what the last turn saw, and tools touch what had landed."""
        self._seen = self.shadow.changes
        opened, links = self._look()
        self._part(self.landed)
        self.touching.land()
        if self.organ.meeting is not None:
            self.organ.meeting.land()
        if opened.any() or len(self.surface.linked.links):
            self.surface.redraw(opened, links, int(self.numbers[0]))
            self._put()

    def warns(self) -> str:
        """That there is no room left: what is cut then is cut, and nothing is lost."""
        found, meeting = [], self.organ.meeting
        if self.surface.linked.full:
            found.append(f"More of the {self.organ.name} is cut than can be drawn: further cuts are felt and not seen.")
        if meeting is not None and meeting.more > 0:
            found.append(
                f"There are more than {PIECES_APART} pieces: the {meeting.more} smallest pass through each other."
            )
        return " ".join(found + ["Reset to begin again."] * bool(found))

    def measures(self) -> list[tuple[Measure, float]]:
        _, area, pieces, crumbs = self.numbers.tolist()
        return [(AREA, area / SQUARE_MILLIMETRE), (PIECES, pieces), (CRUMBS, crumbs)]


def cutting(organ: Organ) -> System[Cutting]:
    """First in the order of a frame: what follows sees the surface as it is."""
    state = Cutting(organ)
    arrays: dict[str, Any] = {"cut": state.shadow.cut, "crossing": state.shadow.crossing}
    arrays |= {"landed": state.landed, "numbers": state.numbers, "due": state.due, "torn": state.tearing.torn}
    arrays |= {"order": state.surface.order}
    arrays |= {"stiffness": organ.shadow.tissue.constants.stiffness, "bulk": organ.shadow.tissue.bulk}
    kept = Kept(arrays, state.loaded)
    return System(
        name="cutting",
        organ=organ.name,
        frame=state.frame,
        lands=state.land,
        uses=(Cuts,),
        save=kept.save,
        load=kept.load,
        # A surface that was cut and made whole again is the same to the eye and not to the last bit.
        rewinds=lambda: not state.shadow.springs().any(),
        measures=state.measures,
        warns=state.warns,
        holds=state,
    )
