"""The film's picture: how thick which fluid lies on each texel of a skin.

    image = picture.make(blood)                             # `blood` is a film on a skin
    picture.step(stage, image)                              # after the steps of the film
    picture.read(image)                                     # uint8, (height, width, 4)

Equations and the meaning of the four bytes are in `image`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.blood.drops.drops import Drops
from viscera.blood.film.film import Film
from viscera.blood.picture import image as _image
from viscera.blood.picture.image import FilmImage, FilmImageParams, thickness_of
from viscera.blood.picture.trails import Trails, make_trails
from viscera.blood.pools.pools import Pools
from viscera.device import Stage
from viscera.errors import InputError
from viscera.skin import Skin
from viscera.states import Arrays, copy_in, copy_out, require_finite
from viscera.timing import FRAME

__all__ = [
    "FilmImage",
    "FilmImageParams",
    "check",
    "load",
    "make",
    "normals",
    "read",
    "save",
    "set",
    "set_obstacles",
    "step",
    "thickness_of",
    "trails",
    "volume",
]


def make(
    film: Film,
    params: FilmImageParams | None = None,
    *,
    pools: Pools | None = None,
    part: int = 0,
    dt: float = FRAME,
    native: bool | None = None,
) -> FilmImage:
    """A picture of `film`, and of its `pools`, on one of its skins, the one with number `part`, taken every `dt` [s].
    `native` False runs the plain kernels."""
    surface = film.surface
    skin = surface.parts[part] if surface is not None and 0 <= part < len(surface.parts) else None
    if surface is None or not isinstance(skin, Skin):
        raise InputError(
            f"part {part} of this film has no texture to draw on.", "Make the film on a skin (`skin.make`)."
        )
    first_face = surface.first_face[part]
    return _image.make_film_image(
        skin, film.params, film.state, params, dt, first_face, native, None if pools is None else pools.view
    )


def set(image: FilmImage, params: FilmImageParams) -> None:
    """Changes the look while programs run; the radius cannot grow beyond what the picture was made with."""
    _image.set_film_image(image, params, image.film_params)


def trails(image: FilmImage, drops: Drops) -> Trails:
    """From now on `drops` that slide leave trails in the picture. Before anything of them is recorded."""
    return make_trails(drops, image)


def step(stage: Stage, image: FilmImage) -> None:
    """The picture of the film as it is now, `image.dt` after the one before. Where the tissue moves, after
    `skin.follow`."""
    _image.step_film_image(stage, image)


def read(image: FilmImage) -> NDArray[np.uint8]:
    """The picture, shape (height, width, 4), row 0 at v = 0. Waits for the device."""
    return image.picture()


def volume(image: FilmImage) -> float:
    """Of the fluid that is drawn [m³]; a trail counts, although nothing flows there any more. Waits for the device."""
    return _image.shown_volume(image)


def normals(stage: Stage, image: FilmImage) -> None:
    """Writes `image.normal` from `image.height`: for pictures made here; a page makes its own from the texture."""
    _image.film_normals(stage, image)


def set_obstacles(image: FilmImage, heights: NDArray[np.floating]) -> None:
    """Details that stick out of the fluid by `heights` per texel, shape (height, width) [m]; infinity: never covered.
    Waits for the device."""
    _image.set_obstacles(image, heights)


def check(image: FilmImage, tick: int = 0) -> None:
    """Raises StateError if a thickness is no longer finite. Waits for the device: once per frame."""
    require_finite("picture", {"height": image.height}, tick, "Look at the film first: `film.check`.")


def save(image: FilmImage) -> Arrays:
    """The picture, what fades in it, and the number of its frame."""
    return copy_out(_kept(image))


def load(image: FilmImage, arrays: Arrays) -> None:
    """Puts a picture into a state that `save` gave."""
    copy_in("picture", _kept(image), arrays)


def _kept(image: FilmImage) -> dict[str, object]:
    return {name: getattr(image, name) for name in _image.IMAGE_ARRAYS}
