"""The film of blood, bile and saline on an organ: it runs, mixes and clots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from viscera.blood import film as films
from viscera.blood.film.film import QUEUE, Film, make_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.film.surface import FilmSurface, make_surface, refresh_surface, set_triangles
from viscera.timing import FRAME
from viscera.units import MILLILITRE
from viscera.view import Measure
from viscera.world.cut_surface import CutSurface
from viscera.world.organ import Organ
from viscera.world.system import Moment, Saved, System
from viscera.world.systems.resting import Rest, awake

MIXINGS = 2
"""Times in a frame that fluids mix and clot, each for the steps since: that takes as long as all the rest of a step on
cpu."""


def make_film_on(
    organs: Organ | Sequence[Organ],
    params: FilmParams | None = None,
    capacity: int = 5_000,
    *,
    queue: int = QUEUE,
) -> Film:
    """A film of up to `capacity` particles whose surface follows one organ, or several; up to `queue` of them can be
    added at once."""
    several = [organs] if isinstance(organs, Organ) else list(organs)
    surface = make_surface([organ.need_skin() for organ in several])
    several[-1].followers.append(lambda stage: refresh_surface(stage, surface))
    several[-1].expects["film"] = "flowing(film)"
    for part, organ in enumerate(several):
        if organ.cuts is not None and organ.cuts.has_texels_inside:
            _follow_cuts(surface, part, organ.cuts)
    return make_film(surface, params or FilmParams(), capacity, queue=queue)


def _follow_cuts(surface: FilmSurface, part: int, cuts: CutSurface) -> None:
    """The film runs into what is cut open, and over the edge of it."""
    refresh = surface.device.record(lambda stage: refresh_surface(stage, surface), work=len(surface.vertices))

    def follow(triangles: NDArray[np.int32]) -> None:
        set_triangles(surface, part, triangles)
        refresh.run()
        surface.device.synchronize()

    cuts.follow_with(follow)


def flowing(film: Film, rest: Rest | None = None) -> System[Film]:
    """As many steps of the film as make a frame. Measures `film_blood`, …: how much of each fluid is in it."""
    device = film.device
    plain = device.record(lambda stage: step_film(stage, film, 0), work=film.work)
    steps = round(FRAME / film.params.dt)
    shares = [steps * (n + 1) // MIXINGS - steps * n // MIXINGS for n in range(MIXINGS)]
    mix = {n: device.record(lambda stage, n=n: step_film(stage, film, n), work=film.work) for n in {*shares} - {0}}

    amounts = {fluid.name: _amount(fluid.name) for fluid in film.params.fluids}

    def frame(now: Moment) -> None:
        if not awake(rest):
            return
        for share in shares:
            if share:
                mix[share].run()
            for _ in range(share - 1):
                plain.run()
        device.synchronize()
        films.check(film, now.tick)

    def load(saved: Saved) -> None:
        films.load(film, saved)

    return System(
        name="film",
        skins=() if film.surface is None else film.surface.parts,
        frame=frame,
        after=("wounds", "rest", "drops", "pools", "stains"),
        save=lambda: films.save(film),
        load=load,
        measures=lambda: [(amounts[name], volume / MILLILITRE) for name, volume in films.volumes(film).items()],
        holds=film,
    )


def _amount(fluid: str) -> Measure:
    name = f"film_{fluid.replace(' ', '_')}"
    return Measure(name, f"{fluid.capitalize()} in the film", "mL", "Of its particles.", digits=2, side=True)
