"""Clips that press a vessel's wall together, and staples across a wound: they hold up to a force, and slip beyond it.

A press of a clip applier puts one on what is below its tip, from the surface there to the wall opposite. A vessel
beneath (`wounds.Vessels`) is shut as long as the clip holds; when it slips, blood flows again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.blood.wounds.wounds import set_clip
from viscera.errors import InputError
from viscera.instruments import MOST_TOOLS, Clips, Staples, Tool
from viscera.instruments.trocar import turned
from viscera.tissue.clamping import CLAMPS, add_clamp, clamped, need_clamps
from viscera.view import Markers, Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, Show, System
from viscera.world.systems.search import has_come
from viscera.world.systems.wounds import Vessels

SIZE = 2.5e-3
"""Half the length of what is drawn [m]."""
OPPOSITE = -0.5
"""The wall opposite looks the other way: the cosine between both normals is below this."""
ASIDE = 2.0e-3
"""How far beside the line through the wall it may be [m]."""

HELD = Measure("clips_held", "Clips held", "", "Clips and staples that hold.", digits=0)
SLIPPED = Measure("clips_slipped", "Slipped", "", "That were pulled past what they hold.", digits=0, better="less")
NO_ROOM = Measure("clips_refused", "No room", "", "Presses that found nothing to hold, or no room.", digits=0)

Legs = tuple[int, int, float, float]
"""Two points of the surface, the closed length [m], the force at which it slips [N]."""


class Clamping:
    """Of one organ."""

    def __init__(self, organ: Organ, vessels: Vessels | None) -> None:
        if organ.tissue.clamps is None:
            raise InputError(f"{organ.name} can have no clips.", "Call `tissue.clamping.let_clamp` on its tissue.")
        self.organ, self._vessels = organ, vessels
        samples = organ.tissue.need_touching().samples
        self._samples, self._rest = samples, samples.rest.numpy()
        self._normal = samples.normal.numpy()
        self._due = np.zeros((MOST_TOOLS, 4))
        """What each tool has put on and has not landed (`Legs`); a hold of 0 for nothing."""
        self._down = np.zeros(MOST_TOOLS, dtype=np.bool_)
        """Whether each tool has had its clip for this press of its handle."""
        self.held = np.zeros(CLAMPS, dtype=np.bool_)
        """As of the last frame."""
        self.wound = np.full((CLAMPS, 2), -1, dtype=np.int64)
        """Wounds that each keeps shut, the first and the last of them; -1 for none."""
        self.numbers = np.zeros(2, dtype=np.int64)
        """Slipped, refused."""
        self._shown = np.zeros((CLAMPS, 8), dtype=np.float32)

    # --- between two ticks ---

    def land(self) -> None:
        for first, last, closed, hold in self._due[self._due[:, 3] > 0.0].tolist():
            before = clamped(self.organ.tissue)
            if not add_clamp(self.organ.tissue, (int(first), int(last)), closed=closed, hold=hold):
                self.numbers[1] += 1
                continue
            place = int(np.flatnonzero(clamped(self.organ.tissue) & ~before)[0])
            self.held[place] = True
            self.wound[place] = self._wounds_at(self._places()[int(first)])
        self._due[:] = 0.0
        self._look()

    def _look(self) -> None:
        self._now = clamped(self.organ.tissue).copy()
        self._at = need_clamps(self.organ.tissue).threads.at.numpy().reshape(-1, 2, 3).copy()

    def _wounds_at(self, point: NDArray[np.float64]) -> tuple[int, int]:
        if self._vessels is None:
            return -1, -1
        near = self._vessels.near(point, Clips().reach)
        return (min(near), max(near)) if near else (-1, -1)

    # --- once a frame ---

    def frame(self, now: Moment) -> None:
        pressed = [(tool, one) for kind in (Clips, Staples) for tool, one in now.using(kind)]
        self._down &= np.isin(np.arange(MOST_TOOLS), [tool.number for tool, _ in pressed])
        for tool, one in pressed:
            if self._down[tool.number] or not has_come(tool):
                continue
            self._down[tool.number] = True
            legs = self._clip(tool, one) if isinstance(one, Clips) else self._staple(tool, one)
            if legs is None:
                self.numbers[1] += 1
            else:
                self._due[tool.number] = legs
        self._slip()
        self._draw()

    def _places(self) -> NDArray[np.float64]:
        """Where the points of the surface are now [m]."""
        slots = self.organ.tissue.layout.slots
        u = self.organ.shadow.displacement.numpy().reshape(3, slots)
        hung = self._samples.places.numpy().reshape(-1, 8), self._samples.weights.numpy().reshape(-1, 8)
        moved = np.einsum("sc,asc->sa", hung[1], u[:, hung[0]])
        return self._rest + moved + np.asarray(self.organ.tissue.params.origin)

    def _clip(self, tool: Tool, one: Clips) -> Legs | None:
        """From the surface at the tip to the wall opposite."""
        places = self._places()
        far = np.linalg.norm(places - tool.tip, axis=1)
        first = int(far.argmin())
        if far[first] > one.reach:
            return None
        across = places - places[first]
        aside = np.linalg.norm(across - (across @ self._normal[first])[:, None] * self._normal[first], axis=1)
        facing = (self._normal @ self._normal[first] < OPPOSITE) & (aside < ASIDE)
        if not facing.any():
            return None
        last = int(np.flatnonzero(facing)[aside[facing].argmin()])
        return first, last, one.closes * float(np.linalg.norm(across[last])), one.hold

    def _staple(self, tool: Tool, one: Staples) -> Legs | None:
        """Across what is below the tip."""
        places = self._places()
        legs, across = [], one.width * turned(tool.orientation, (1.0, 0.0, 0.0))
        for side in (-0.5, 0.5):
            far = np.linalg.norm(places - tool.tip - side * across, axis=1)
            legs.append(int(far.argmin()))
            if far.min() > 0.5 * one.width:
                return None
        return None if legs[0] == legs[1] else (legs[0], legs[1], one.closed, one.hold)

    def _slip(self) -> None:
        """Vessels under clips that have slipped are open again."""
        for place in np.flatnonzero(self.held & ~self._now).tolist():
            self.held[place] = False
            self.numbers[0] += 1
            if self._vessels is not None and self.wound[place, 0] >= 0:
                for number in range(int(self.wound[place, 0]), int(self.wound[place, 1]) + 1):
                    set_clip(self._vessels.wounds, number, closed=False)
            self.wound[place] = -1

    def _draw(self) -> None:
        ends = self._at + np.asarray(self.organ.tissue.params.origin)
        self._shown[:, :3] = ends.mean(axis=1)
        self._shown[:, 3:7] = (0.0, 0.0, 0.0, 1.0)
        self._shown[:, 7] = self.held & self._now

    def loaded(self) -> None:
        self._look()
        self._draw()

    def measures(self) -> list[tuple[Measure, float]]:
        return [(HELD, float(self.held.sum())), (SLIPPED, float(self.numbers[0])), (NO_ROOM, float(self.numbers[1]))]

    def system(self) -> System[Clamping]:
        arrays = {"down": self._down, "due": self._due, "held": self.held, "wound": self.wound, "numbers": self.numbers}
        self._look()
        kept = Kept(arrays, self.loaded)
        look = Markers(f"{self.organ.name}.clamps", "clip", SIZE, CLAMPS)
        return System(
            name=f"{self.organ.name}.clamps",
            frame=self.frame,
            lands=self.land,
            uses=(Clips, Staples),
            save=kept.save,
            load=kept.load,
            shows=[Show(look, {look.name: self._shown})],
            measures=self.measures,
            holds=self,
        )


def clamping(organ: Organ, vessels: Vessels | None = None) -> System[Clamping]:
    """Before `bleeding` in the order of a frame; `vessels` is what `bleeding(...)` holds, `let_clamp` comes before."""
    return Clamping(organ, vessels).system()
