"""The drill of the artery: whether it was pulled, and whether a clip lay before the cut when it was cut."""

from __future__ import annotations

import numpy as np

from viscera.blood.wounds.wounds import CLIPPED
from viscera.instruments import Grasps
from viscera.view import Measure
from viscera.world.system import Kept, Moment, System
from viscera.world.systems.cut_vessels import CutVessel
from viscera.world.systems.wounds import Vessels

PULLED = Measure("pulled", "Pulled", "N", "The strongest pull upwards of the grasper so far.", digits=2, grows=True)
BEHIND_CLIP = Measure(
    "behind_clip", "Cut behind a clip", "",
    "The vessel is cut through, and a clip lay nearer to its supply when it was.", digits=0, yes_no=True,
)  # fmt: skip


class ArteryDrill:
    def __init__(self, vessel: CutVessel, vessels: Vessels) -> None:
        self._vessel, self._vessels = vessel, vessels
        self.state = np.zeros(3)
        """Strongest pull [N]; whether it is cut; whether a clip lay before the cut then."""

    def frame(self, now: Moment) -> None:
        for tool, _ in now.using(Grasps):
            self.state[0] = max(self.state[0], -now.felt[tool.number].force[2])
        cut = self._vessel.cut
        if cut.any() and self.state[1] == 0.0:
            sealed = self._vessels.wounds.view.sealed.numpy()[: len(cut)]
            self.state[1:] = 1.0, float(((sealed[: int(np.argmax(cut))] & CLIPPED) != 0).any())

    def measures(self) -> list[tuple[Measure, float]]:
        return [(PULLED, float(self.state[0])), (BEHIND_CLIP, float(self.state[2]))]


def artery_drill(vessel: CutVessel, vessels: Vessels) -> System:
    """After `cut_vessel` and before `bleeding` in the order of a frame: a clip that comes after the cut is too late."""
    drill = ArteryDrill(vessel, vessels)
    kept = Kept({"state": drill.state})
    return System(
        name="drill", frame=drill.frame, uses=(Grasps,), save=kept.save, load=kept.load, measures=drill.measures,
        holds=drill,
    )  # fmt: skip
