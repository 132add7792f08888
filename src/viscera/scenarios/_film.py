"""Films of scenarios with blood: as fine as the detail asks for, and as full as they get."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from viscera.blood import film as films
from viscera.blood.film.film import QUEUE
from viscera.blood.film.params import FilmParams
from viscera.geometry.mesh import TriangleMesh
from viscera.timing import FRAME
from viscera.world import Organ, System

FINEST = 16.0
"""Detail at which the film's particles are as small as a texel; more is not seen."""


def finer_film(params: FilmParams, detail: float) -> FilmParams:
    """The same film of so many times as many particles, each so much smaller.

    A film keeps its thickness, so the radius h goes with 1/√detail. What a person sees of pressure and viscosity goes
    with k·h and σ·h²: the constants grow as the radius shrinks. Pressure in a step, k·dt²/h, stays what is calm: steps
    get shorter with h, and no longer than they are at detail 1.
    """
    detail = min(detail, FINEST)
    if detail == 1.0:
        return params
    share = detail**-0.5
    """Of the radius."""
    steps = math.ceil(round(FRAME / params.dt) * max(1.0, 1.0 / share))
    fluids = tuple(
        replace(
            fluid,
            stiffness=fluid.stiffness / share,
            near_stiffness=fluid.near_stiffness / share,
            viscosity=fluid.viscosity / share**2,
        )
        for fluid in params.fluids
    )
    return replace(
        params,
        fluids=fluids,
        radius=share * params.radius,
        dt=FRAME / steps,
        particle_volume=params.particle_volume / detail,
        separation=params.separation / share,
    )


def pour(organ: Organ, systems: Sequence[System]) -> None:
    """Onto its film, over the upper side: an eighth of all the blood that there may be, until half of it is there. As
    much as a hand with suction lets come together."""
    film = next(system.holds for system in systems if system.name == "film")
    # Where the surface is now: a hand may have drawn it far from where it rests.
    skin = organ.need_skin()
    now = TriangleMesh(skin.vertices.numpy().astype(np.float64), skin.mesh.triangles, organ.name)
    centres = now.corners.mean(axis=1)[now.face_vectors[:, 2] > 0.0]
    count = min(film.state.capacity // 8, QUEUE // 2)
    if films.count(film) + count <= film.state.capacity // 2:
        chosen = np.random.default_rng(films.count(film)).integers(len(centres), size=count)
        films.add(film, centres[chosen], "blood")
