"""A gauze on an organ: cloth that keeps blood off, at once or after soaking, and reddens (Kvick §6.2.6).

It is an obstacle per texel for the film. How it looks is drawn into the organ's ink.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.blood import gauze as cloth
from viscera.blood.film.film import Film
from viscera.blood.film.surface import MASKED, set_obstacles
from viscera.blood.picture import image as film_image
from viscera.blood.picture.image import FilmImage
from viscera.blood.views import film_view
from viscera.device import Stage
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System
from viscera.world.systems.ink import Ink

SIZE = 14.0e-3
"""Side of the gauze [m]."""
SOAKED = 1.1
"""Blood value that flows over a gauze which soaks: a little more than a film at rest."""
SOAKED_HEIGHT = 0.15e-3
"""What a soaking gauze sticks out of the blood, as drawn [m]."""
HEM = 0.5e-3
"""Half the width of its hem [m]."""
THREAD = 1.3e-3
"""From one thread of the gauze to the next [m]; coarser than cloth, so that four texels show it."""
HEM_COLOUR = (0.62, 0.58, 0.53)
"""sRGB; tuned for appearance."""

NONE, KEEPS_OUT, SOAKS = 0, 1, 2
"""Kinds of gauze."""


class Gauze:
    """A square of cloth around `place` (x, y [m]), seen from above. `redraw` is called when it is laid or taken
    away."""

    def __init__(self, organ: Organ, film: Film, image: FilmImage, ink: Ink, place: NDArray[np.float64]) -> None:
        skin, self.organ = organ.need_skin(), organ.name
        self._film, self._image, self._ink, self._skin = film, image, ink, skin
        at, up = skin.image(skin.position), skin.image(skin.faces_up())
        off = np.abs(at[..., :2] - place).max(axis=-1)
        self._under = up & (off < 0.5 * SIZE)
        self._rim = up & (np.abs(off - 0.5 * SIZE) < HEM)
        self.kind = NONE
        self.redraw: Callable[[], None] = lambda: None
        device = skin.device.warp
        self._square = cloth.Square()
        self._square.low = wp.vec2(*(place - 0.5 * SIZE).tolist())
        self._square.side = SIZE
        self._square.blood = film.params.fluid("blood")
        self._volume = wp.zeros((cloth.CELLS, cloth.CELLS), dtype=wp.int64, device=device)
        self.stain = wp.zeros((cloth.CELLS, cloth.CELLS), dtype=wp.float32, device=device)
        in_cells = (at[self._under][:, :2] - place + 0.5 * SIZE) * (cloth.CELLS / SIZE)
        self._texel = wp.array(np.flatnonzero(self._under), dtype=wp.int32, device=device)
        self._place = wp.array(in_cells, dtype=wp.vec2, device=device)
        self._white = wp.array(_weave(at[self._under][:, :2] - place), dtype=wp.vec3, device=device)
        self._soaks = skin.device.record(self._record_soak, work=len(self._texel))
        self._tints = skin.device.record(self._record_tint, work=len(self._texel))

    def lay(self, kind: int) -> None:
        """`NONE`, `KEEPS_OUT` or `SOAKS`; another one is a fresh one."""
        if kind != self.kind:
            self.stain.zero_()
        self.kind = kind
        over = {NONE: (0.0, 0.0), KEEPS_OUT: (MASKED, np.inf), SOAKS: (SOAKED, SOAKED_HEIGHT)}[kind]
        assert self._film.surface is not None
        set_obstacles(self._film.surface, 0, np.where(self._under, over[0], 0.0))
        film_image.set_obstacles(self._image, np.where(self._under, over[1], 0.0))
        self.redraw()

    def cover(self, picture: NDArray[np.float64]) -> None:
        """Draws dry cloth over what is in the picture, where it lies."""
        if self.kind:
            picture[self._rim] = (*HEM_COLOUR, 1.0)
            picture[self._under] = (1.0, 1.0, 1.0, 1.0)

    def tint(self) -> None:
        """As red as it has become."""
        if self.kind:
            self._tints.run()

    def frame(self, now: Moment) -> None:
        if self.kind:
            self._soaks.run()
            self._tints.run()

    def _record_soak(self, stage: Stage) -> None:
        film = film_view(self._film.state)
        args = [self._square, film, self._volume]
        stage.once(lambda: wp.launch(cloth.collect, dim=film.capacity, inputs=args, device=stage.device.warp))
        stage.launch(cloth.soak, cloth.CELLS**2, [self._square, self._volume, self.stain])

    def _record_tint(self, stage: Stage) -> None:
        flat = self._ink.pixels.reshape((self._skin.height * self._skin.width,))
        stage.launch(cloth.tint, len(self._texel), [self._texel, self._place, self._white, self.stain, flat])


def covering(gauze: Gauze) -> System[Gauze]:
    """After the film in the order of a frame."""
    kept = Kept({"stain": gauze.stain}, lambda: gauze.redraw())
    return System(name="gauze", organ=gauze.organ, frame=gauze.frame, save=kept.save, load=kept.load, holds=gauze)


def _weave(place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Dry gauze, sRGB from 0 to 1: threads one way and the other, and gaps between them."""
    x, y = (2.0 * np.pi / THREAD * place).T
    over = np.maximum(np.cos(x) * np.where(np.cos(0.5 * y) > 0.0, 1.0, 0.55), np.cos(y))
    return np.clip(0.80 + 0.17 * over, 0.0, 1.0)[:, None] * np.array([1.0, 0.99, 0.96])
