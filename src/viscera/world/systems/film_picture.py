"""The film as a picture on an organ's skin: how thick it is, what it is, how far it has clotted."""

from __future__ import annotations

from viscera.blood import picture
from viscera.blood.film.film import Film
from viscera.blood.picture.image import FilmImage, FilmImageParams, dye_of, make_film_image, step_film_image
from viscera.blood.pools.pools import Pools
from viscera.blood.stains.stains import wipe_picture
from viscera.timing import FRAME
from viscera.view import Texture
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, Show, System
from viscera.world.systems.resting import Rest, awake
from viscera.world.systems.stains import Aim

PAINTING = 2
"""Frames from one picture to the next: 31 pictures a second, for a quarter of a frame's work less."""


def painting(
    organ: Organ, film: Film, pools: Pools | None = None, rest: Rest | None = None, aim: Aim | None = None
) -> System[FilmImage]:
    """The film, and the pools that stand on it; gauze wipes it where `aim` says. After `flowing` in the order of a
    frame."""
    skin = organ.need_skin()
    # A particle's picture is as wide as its reach, so that a sheet of them is smooth.
    look = FilmImageParams(radius=film.params.radius)
    image = make_film_image(
        skin, film.params, film.state, look, PAINTING * FRAME, pool=None if pools is None else pools.view
    )
    paint = skin.device.record(lambda stage: step_film_image(stage, image), work=skin.count)
    wipe = paint
    if aim is not None:
        stains = aim.stains
        wipe = skin.device.record(
            lambda stage: step_film_image(stage, image, lambda at: wipe_picture(at, stains, image)), work=skin.count
        )
    dye = dye_of(film.params)
    colours = () if dye is None or dye.absorption is None or dye.body is None else (dye.absorption, dye.body)
    texture = Texture(f"{organ.name}.film", organ.name, "film", skin.width, skin.height, *colours)

    def frame(now: Moment) -> None:
        if not awake(rest):
            return
        (wipe if aim is not None and aim.swab else paint).run()
        skin.device.synchronize()

    kept = Kept({}, own=(lambda: picture.save(image), lambda saved: picture.load(image, saved)))
    return System(
        name="film_picture",
        organ=organ.name,
        frame=frame,
        every=PAINTING,
        after=("film",),
        save=kept.save,
        load=kept.load,
        shows=[Show(texture, {texture.name: image.pixels})],
        holds=image,
    )
