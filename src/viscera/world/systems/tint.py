"""What an organ is made of, seen: its outside and the faces of its cuts have the colour of the material beneath.

One picture of ink over the organ's own look. The outside takes the mean colour of the masses around; a face of a cut
that of the mass behind it, once it is there. Colours are tuned for appearance.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from viscera.skin import gutter
from viscera.tissue.beneath import nearest_masses
from viscera.tissue.springs import NodeIndex
from viscera.world.organ import Organ
from viscera.world.system import Moment, System
from viscera.world.systems.ink import ink_on

Colour = tuple[float, float, float]
"""sRGB, 0 to 1."""

BLUR = 0.55
"""Over which colours of the outside pass into each other, in cells."""


class Tint:
    def __init__(self, organ: Organ, colours: Mapping[int, tuple[Colour, Colour]]) -> None:
        """`colours` of the outside and of cut faces, by number of material; one that is not there keeps the look."""
        self._organ = organ
        self.ink_system, self._ink = ink_on(organ)
        skin, tissue = organ.need_skin(), organ.tissue
        kind = np.zeros(len(tissue.params.nodes), dtype=np.int64)
        if tissue.params.material_of is not None:
            kind[:] = tissue.params.material_of
        table = np.zeros((2, int(kind.max()) + 1, 4))
        for number, sides in colours.items():
            if number < table.shape[1]:
                for side, colour in enumerate(sides):
                    table[side, number] = (*colour, 1.0)
        self._outer, self._inner = table
        self._kind_of_place = np.zeros(tissue.layout.slots, dtype=np.int64)
        self._kind_of_place[tissue.layout.slot_of_node] = kind
        texels = skin.texels.numpy()
        face = skin.face.numpy()[texels]
        self._picture = np.zeros((skin.width * skin.height, 4))
        outside = texels[face < skin.outside]
        self._picture[outside] = self._blended(skin.position.numpy()[outside].astype(np.float64), kind)
        self._gutter = gutter(skin, 1)
        quad = (face - skin.outside) // 2
        inner = quad >= 0
        order = np.argsort(quad[inner], kind="stable")
        self._texel = texels[inner][order]
        self._start = np.searchsorted(quad[inner][order], np.arange(skin.spare // 2 + 1))
        self._drawn, self._shape = 0, (skin.height, skin.width, 4)
        self._seen = 0 if organ.cuts is None else organ.cuts.version
        self._draw()

    def _blended(self, points: NDArray[np.float64], kind: NDArray[np.int64]) -> NDArray[np.float64]:
        """Colour times cover, and cover, at points of the outside at rest [m]: the mean over the masses around."""
        params = self._organ.tissue.params
        at = (points - np.asarray(params.origin)) / params.spacing
        mass = nearest_masses(self._organ.tissue, points)
        middle, index = params.nodes[np.maximum(mass, 0)], NodeIndex(params.nodes)
        total, found = np.zeros(len(points)), np.zeros((len(points), 4))
        for step in np.ndindex(3, 3, 3):
            node = middle + np.array(step, dtype=np.int32) - 1
            other = index.find(node)
            weight = np.exp(-0.5 * ((node - at) ** 2).sum(axis=1) / BLUR**2) * (other >= 0)
            total += weight
            found += weight[:, None] * self._outer[kind[np.maximum(other, 0)]]
        found /= np.maximum(total, 1e-12)[:, None]
        return np.where(mass[:, None] >= 0, found, 0.0)

    def frame(self, now: Moment) -> None:
        cuts = self._organ.cuts
        if cuts is not None and cuts.version != self._seen:
            self._seen = cuts.version
            self.paint_faces()

    def paint_faces(self) -> None:
        """Faces that have come since the last look."""
        cuts = self._organ.cuts
        if cuts is None or not cuts.has_texels_inside:
            return
        behind = cuts.masses_behind()
        if len(behind) == self._drawn:
            return
        texels = self._texel[self._start[self._drawn] : self._start[len(behind)]]
        counts = np.diff(self._start[self._drawn : len(behind) + 1])
        self._picture[texels] = np.repeat(self._inner[self._kind_of_place[behind[self._drawn :]]], counts, axis=0)
        self._drawn = len(behind)
        outside, repeated = self._gutter
        new = np.zeros(len(self._picture), dtype=np.bool_)
        new[texels] = True
        some = new[repeated]
        self._picture[outside[some]] = self._picture[repeated[some]]
        self._ink.draw_some(self._picture, np.concatenate([texels, outside[some]]))

    def _draw(self) -> None:
        outside, repeated = self._gutter
        self._picture[outside] = self._picture[repeated]
        self._ink.draw(self._picture.reshape(self._shape))

    def loaded(self) -> None:
        """Everything follows from what is cut, and in which order."""
        self._seen = 0 if self._organ.cuts is None else self._organ.cuts.version
        self._picture[self._texel] = 0.0
        self._drawn = 0
        self.paint_faces()
        self._draw()


def tinting(organ: Organ, colours: Mapping[int, tuple[Colour, Colour]]) -> System[Tint]:
    """After `cutting` in the order of a frame."""
    tint = Tint(organ, colours)

    def load(saved: Mapping[str, NDArray]) -> None:
        tint.loaded()

    return System(
        name=f"{organ.name}.tint",
        after=("cutting",),
        frame=tint.frame,
        load=load,
        shows=tint.ink_system.shows,
        holds=tint,
    )
