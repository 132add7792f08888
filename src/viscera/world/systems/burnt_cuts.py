"""A hot wire cuts what it has burnt through: burnt tissue has hardly any toughness left.

A hook's wire is blunt: through cold tissue it needs several times the work of a blade that is pressed straight in
(`kit.BLUNT`), so it pushes tissue along, and parts it only when that is stretched far. Where
the tissue is burnt, its toughness falls,

    Γ = Γ₀ (1 − b/b_through), and no further than `LEFT` of it,

with the burn b of each mass (stiffening.py), and the wire goes through. Both numbers are estimated; that dry, charred
tissue parts by itself is what surgeons use a hook for.
"""

from __future__ import annotations

import numpy as np

from viscera.errors import InputError
from viscera.tissue.burning import Burning
from viscera.tissue.cutting import need_cutting
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System

THROUGH = 0.8
"""Burn from which on tissue is burnt through, 0 to 1."""
LEFT = 0.01
"""Share of its toughness that is left then."""


class BurntCuts:
    """Of one organ."""

    def __init__(self, organ: Organ, springs: Burning) -> None:
        if organ.tissue.cutting is None:
            raise InputError(f"{organ.name} cannot be cut.", "Make it with `viscera.cuttable`.")
        self._springs, self._blades = springs, need_cutting(organ.tissue).blades
        self.fresh = self._blades.toughness.numpy().copy()
        """Of each place [J/m²]."""
        self.now, self.landed = self.fresh.copy(), self.fresh.copy()
        """As of the last turn, and as ticks have it."""
        self.due = np.zeros(1, dtype=np.bool_)
        """Whether there is something to land."""

    def frame(self, now: Moment) -> None:
        share = np.maximum(1.0 - self._springs.burn.numpy() / THROUGH, LEFT)
        toughness = (self.fresh * np.minimum(share, 1.0)).astype(np.float32)
        if not np.array_equal(toughness, self.now):
            self.now[:] = toughness
            self.due[0] = True

    def land(self) -> None:
        if self.due[0]:
            self.landed[:] = self.now
            self._blades.toughness.assign(self.landed)
            self.due[0] = False

    def loaded(self) -> None:
        """Ticks have what had landed."""
        self._blades.toughness.assign(self.landed)


def burnt_cutting(organ: Organ, springs: Burning) -> System[BurntCuts]:
    """After `stiffening` in the order of a frame; `springs` is what that holds."""
    state = BurntCuts(organ, springs)
    kept = Kept({"now": state.now, "due": state.due, "landed": state.landed}, state.loaded)
    return System(
        name=f"{organ.name}.burnt_cuts",
        frame=state.frame,
        lands=state.land,
        save=kept.save,
        load=kept.load,
        holds=state,
    )
