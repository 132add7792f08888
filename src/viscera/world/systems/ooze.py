"""Tissue that is cut oozes: small vessels all over the face of a cut bleed until they have clotted.

Wounds that wait for it are put onto new faces of cuts, one for each stretch of `APART`, in the order in which they
were cut. Each is a `capillary bed` (or what else its wound has), so that its rate follows from pressure and opening, it
clots as every wound does, and its blood is in the ledger. When all are used, what is cut further stays dry. Where the
organ burns (`ORGAN.burn_level`), a face that is coagulated oozes no more.
"""

from __future__ import annotations

import numpy as np

from viscera.blood.wounds.wounds import set_burnt, set_place, set_whole
from viscera.errors import InputError
from viscera.skin import Skin
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System, Watch
from viscera.world.systems.wounds import Vessels

APART = 3.5e-3
"""Between two places that ooze, on one side of a cut [m]: some ten square millimetres each."""
ONE_SIDE = 0.3
"""Faces whose normals have a larger cosine than this between them are on one side of a cut."""

OOZES = Measure("oozes", "Oozing places", "", "On the faces of cuts; they clot.", digits=0)


class Oozing:
    """`numbers` are the wounds of `vessels` that wait."""

    def __init__(self, organ: Organ, vessels: Vessels, numbers: range) -> None:
        if organ.cuts is None or not organ.cuts.has_texels_inside:
            raise InputError(
                f"{organ.name} has no cut faces that could ooze.",
                "Make it with `cuttable(..., texels=…, inside=True)`.",
            )
        if numbers.stop > vessels.wounds.count:
            raise InputError(
                f"wounds {numbers.start} to {numbers.stop - 1} are to ooze, there are {vessels.wounds.count}.",
                "Give `bleeding` so many wounds with `oozes=True`.",
            )
        self._surface, self._vessels, self._numbers = organ.cuts, vessels, numbers
        film = vessels.wounds.surface
        self._first_face = film.first_face[film.parts.index(organ.need_skin())]
        self.place, self.facing = np.zeros((len(numbers), 3)), np.zeros((len(numbers), 3))
        """Of those that ooze: where they lie in the tissue at rest [m], and the normal of the face."""
        self.used = np.zeros(1, dtype=np.int64)
        self.quad = np.full(len(numbers), -1, dtype=np.int64)
        """Of those that ooze: the quad of a cut face that each lies on."""
        self.shut = np.zeros(len(numbers), dtype=np.bool_)
        """Which of them are burnt shut."""
        self.burns = organ.fields.get("burn_level")
        """The burn level of the skin, where it burns."""
        self._burnt = Watch(self.burns)
        self._find_quads(organ.need_skin())
        self._seen = self._surface.version
        for number in numbers:
            set_whole(vessels.wounds, number)

    def _find_quads(self, skin: Skin) -> None:
        """Texels of each quad that a cut may open, one after the other."""
        texels = skin.texels.numpy()
        quad = (skin.face.numpy()[texels] - skin.outside) // 2
        texels, quad = texels[quad >= 0], quad[quad >= 0]
        order = np.argsort(quad, kind="stable")
        self._outside, self._texel = skin.outside, texels[order]
        self._start = np.searchsorted(quad[order], np.arange(skin.spare // 2 + 1))

    def frame(self, now: Moment) -> None:
        if self._surface.version != self._seen:
            self._seen = self._surface.version
            self._open()
        if self.burns is not None and self._burnt.changed():
            self._cauterise(self.burns.array.numpy())

    def _cauterise(self, level: np.ndarray) -> None:
        """What lies on a face that is coagulated, on the mean over its texels, is shut."""
        needed = self._vessels.wounds.params.seal_fraction
        for k in np.flatnonzero(~self.shut[: int(self.used[0])]).tolist():
            texels = self._texel[self._start[self.quad[k]] : self._start[self.quad[k] + 1]]
            if len(texels) and np.clip(level[texels], 0.0, 1.0).mean() >= needed:
                self.shut[k] = True
                set_burnt(self._vessels.wounds, self._numbers[k])

    def _open(self) -> None:
        """Where a face is farther than `APART` from all that ooze on its side, one begins to."""
        faces, middle, normal = self._surface.inner_faces()
        dry = self._away(middle, normal, slice(int(self.used[0]))).all(axis=1)
        while dry.any() and self.used[0] < len(self._numbers):
            k, found = int(self.used[0]), int(np.argmax(dry))
            self.place[k], self.facing[k] = middle[found], normal[found]
            self.quad[k] = (int(faces[found]) - self._outside) // 2
            self.used[0] += 1
            set_place(self._vessels.wounds, self._numbers[k], int(faces[found]) + self._first_face)
            set_whole(self._vessels.wounds, self._numbers[k], whole=False)
            dry &= self._away(middle, normal, slice(k, k + 1))[:, 0]

    def _away(self, middle: np.ndarray, normal: np.ndarray, some: slice) -> np.ndarray:
        """Whether each face is far from each of these places, or on another side, shape (faces, places)."""
        far = np.linalg.norm(middle[:, None] - self.place[some], axis=2) > APART
        return far | (normal @ self.facing[some].T <= ONE_SIDE)

    def measures(self) -> list[tuple[Measure, float]]:
        return [(OOZES, float(self.used[0]))]


def oozing(organ: Organ, vessels: Vessels, numbers: range) -> System[Oozing]:
    """After `cutting` and before `bleeding` in the order of a frame; `vessels` is what `bleeding(...)` holds."""
    state = Oozing(organ, vessels, numbers)
    kept = Kept({
        "place": state.place, "facing": state.facing, "used": state.used, "quad": state.quad, "shut": state.shut
    })  # fmt: skip
    reads = () if state.burns is None else (f"{organ.name}.burn_level",)
    return System(
        name="oozing",
        organ=organ.name,
        after=("cutting",),
        frame=state.frame,
        reads=reads,
        save=kept.save,
        load=kept.load,
        measures=state.measures,
        holds=state,
    )
