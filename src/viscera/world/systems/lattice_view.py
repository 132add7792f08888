"""The lattice itself as a picture: masses as balls, springs as lines (Etheredge, Kunst and Sanders 2013, figure 3).

It is shown instead of the skin, or beside it, coloured by material, by strain or by damage. Springs along the axes are
drawn; those across would hide the rest. While nobody wants to see it, it costs nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.view import LatticeView, Parameter
from viscera.world.organ import Organ
from viscera.world.system import LiveParameter, Moment, Show, System

BALL = 0.4
"""Radius of a ball [cells]."""
GAP = 1.15
"""How far beside the skin the lattice stands, over its width."""
MOST_STRAIN = 0.3
"""That is drawn red."""
DRAWN = [number for number, step in enumerate(DIRECTIONS) if sum(map(abs, step)) == 1]
"""Directions whose springs are drawn."""

PICTURE = "Picture"
"""Heading of these settings."""
SHOWN = ("skin", "masses and springs", "both")
COLOURS = ("material", "strain", "damage")


class LatticePicture:
    """Of one organ."""

    def __init__(self, organ: Organ) -> None:
        tissue = organ.tissue
        self._organ, self._cuts = organ, organ.shadow.cuts
        params = tissue.params
        index = NodeIndex(params.nodes)
        other = np.stack([index.find(params.nodes + np.array(step, dtype=np.int32)) for step in DIRECTIONS])
        self._there, self._other = other >= 0, other.astype(np.int64)
        self._slot = tissue.layout.slot_of_node
        self._rest = tissue.rest_positions()
        drawn = self._there[DRAWN]
        self._axis, low = np.nonzero(drawn)
        self._low = low
        self.springs = np.stack([low, self._other[DRAWN][self._axis, low]], axis=1).astype(np.int32)
        kind = np.zeros(len(self._rest)) if params.material_of is None else params.material_of.astype(np.float64)
        self._material = kind / max(1.0, float(len(params.materials) - 1))
        self.shown = np.zeros((len(self._rest), 4), dtype=np.float32)
        self.cut = np.zeros((len(self.springs), 1), dtype=np.float32)
        self.counts = np.zeros(2, dtype=np.int64)
        self.view, self.colour = 0, 0
        size = self._rest.max(axis=0) - self._rest.min(axis=0)
        self._aside = np.array([GAP * float(size[0]), 0.0, 0.0])

    def set_view(self, value: float) -> None:
        self.view = round(value)
        if self.view == 0:
            self.counts[:] = 0

    def set_colour(self, value: float) -> None:
        self.colour = round(value)

    def frame(self, now: Moment) -> None:
        if self.view:
            self.draw()

    def draw(self) -> None:
        u = self._organ.shadow.displacement.numpy().reshape(3, -1)[:, self._slot].T
        place = self._rest + u
        self.shown[:, :3] = place + (self._aside if self.view == 2 else 0.0)
        self.shown[:, 3] = (self._by_material, self._by_strain, self._by_damage)[self.colour](place)
        gone = np.zeros(0, dtype=np.int64)
        if self._cuts is not None:
            gone = np.flatnonzero(self._cuts.springs()[DRAWN][self._axis, self._low])
        self.cut[: len(gone), 0] = gone
        self.counts[:] = len(self.shown), len(gone)

    def _by_material(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._material

    def _by_strain(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """The largest of a mass's springs along the axes."""
        strain = np.zeros(len(place))
        rest = self._organ.tissue.params.spacing
        length = np.linalg.norm(place[self.springs[:, 1]] - place[self.springs[:, 0]], axis=1)
        kept = np.ones(len(self.springs), dtype=np.bool_)
        kept[self.cut[: self.counts[1], 0].astype(np.int64)] = False
        for end in (0, 1):
            np.maximum.at(strain, self.springs[kept, end], np.abs(length[kept] / rest - 1.0))
        return np.minimum(strain / MOST_STRAIN, 1.0)

    def _by_damage(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of a mass's springs that are cut, torn or burnt away."""
        stiffness = self._organ.shadow.tissue.constants.stiffness.numpy().reshape(13, -1)[:, self._slot]
        lost = self._there & (stiffness == 0.0)
        direction, low = np.nonzero(self._there)
        high = self._other[direction, low]
        count = len(place)
        whole = np.bincount(low, minlength=count) + np.bincount(high, minlength=count)
        gone = lost[direction, low]
        broken = np.bincount(low[gone], minlength=count) + np.bincount(high[gone], minlength=count)
        return np.minimum(2.0 * broken / np.maximum(whole, 1), 1.0)

    def system(self) -> System[LatticePicture]:
        name = f"{self._organ.name}.lattice"
        view = Parameter(
            f"{self._organ.name}_view", "Show", "", 0.0, 2.0, 0.0,
            "The skin, or the masses and springs that it hangs on, or both side by side.", SHOWN, PICTURE,
        )  # fmt: skip
        colour = Parameter(
            f"{self._organ.name}_colour", "Colour by", "", 0.0, 2.0, 0.0,
            "Of masses and springs. Strain: red from 30 % on. Damage: springs that are cut, torn or burnt away.",
            COLOURS, PICTURE,
        )  # fmt: skip
        radius = BALL * self._organ.tissue.params.spacing
        look = LatticeView(name, self._organ.name, self.springs, radius, len(self.shown), view.name)

        def counts() -> dict[str, int]:
            return {name: int(self.counts[0]), f"{name}/cut": int(self.counts[1])}

        return System(
            name=name,
            frame=self.frame,
            shows=[Show(look, {name: self.shown, f"{name}/cut": self.cut}, counts)],
            parameters=[LiveParameter(view, self.set_view), LiveParameter(colour, self.set_colour)],
            holds=self,
        )


def lattice_picture(organ: Organ) -> System[LatticePicture]:
    """Last in the order of a frame. Adds two settings: what is shown, and the colours."""
    return LatticePicture(organ).system()
