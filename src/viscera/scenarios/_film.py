"""Blood of scenarios: a film with drops and wounds, as fine as the detail asks for and as full as it gets, and what is
composed of them where blood also splashes, stands in pools and stains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from viscera.blood import drops as sprays
from viscera.blood import film as films
from viscera.blood import pools as standing
from viscera.blood import wounds as openings
from viscera.blood.drops import DropParams, Drops
from viscera.blood.film import Film, FilmParams
from viscera.blood.film.film import QUEUE
from viscera.blood.picture.image import FilmImage
from viscera.blood.picture.trails import make_trails
from viscera.blood.wounds import Wounds
from viscera.geometry.mesh import TriangleMesh
from viscera.instruments import Tool
from viscera.timing import FRAME
from viscera.view import Goal
from viscera.world import Organ, System
from viscera.world.systems.drops import flying
from viscera.world.systems.film import flowing, make_film_on
from viscera.world.systems.film_picture import painting
from viscera.world.systems.ledger import accounting
from viscera.world.systems.pools import pooling
from viscera.world.systems.resting import Rest
from viscera.world.systems.stains import Aim, make_stains_around, staining
from viscera.world.systems.wounds import Vessels, Wound, bleeding

FINEST = 16.0
"""Detail at which the film's particles are as small as a texel; more is not seen."""
WATCHED = Goal("dry", least=5.0)
"""A vessel is stopped when it has not bled again for some heartbeats [s]; our own choice."""
SPILT = 0.4e-6
"""Blood that lies there when somebody starts a drill [m³]: what vessels that lose 8 mL in a minute have lost in 3 s."""
PUDDLE = 16.0e-3
"""Radius of where it lies, around each vessel [m]; 0.4 mL over two of them is a film of a quarter of a millimetre."""
SPILL = 1
"""Sets the seed of a spill apart from those of all else."""


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


@dataclass(frozen=True, eq=False)
class Blood:
    """On one organ."""

    organ: Organ
    film: Film
    drops: Drops
    wounds: Wounds

    def systems(self, bleeders: System[Vessels]) -> list[System]:
        """In the order of a frame, for scenarios in which blood runs, drips and is seen."""
        return [
            bleeders,
            flying(self.organ.name, self.drops),
            flowing(self.film),
            accounting(self.film, self.wounds, self.drops),
            painting(self.organ, self.film),
        ]


def make_blood(
    organ: Organ, params: FilmParams, detail: float, particles: int, drops: int, spray: DropParams | None = None
) -> Blood:
    """A film of so many particles, so many drops in the air at once, both at detail 1, and wounds that feed them: none
    yet. On the organ at rest."""
    finer = min(detail, FINEST)
    film = make_film_on(organ, finer_film(params, detail), round(finer * particles))
    flight = sprays.make(film, spray, capacity=round(finer * drops))
    return Blood(organ, film, flight, openings.make(film, drops=flight))


@dataclass(frozen=True, eq=False)
class Bleeding:
    """Blood that splashes, stands in pools, stains and comes to rest."""

    systems: list[System]
    """In the order of a frame."""
    vessels: Vessels
    image: FilmImage


def bleed(blood: Blood, wounds: Sequence[Wound], tools: Sequence[Tool]) -> Bleeding:
    """All that has to do with blood, from these wounds, around these tools."""
    organ, film, drops = blood.organ, blood.film, blood.drops
    stains = make_stains_around(drops, tools)
    pools = standing.make(film, drops)
    wounding = bleeding(organ, blood.wounds, wounds)
    rest, aim = Rest(film, drops, wounding.holds, pools), Aim(stains, tools)
    picture = painting(organ, film, pools, rest, aim)
    make_trails(drops, picture.holds)
    systems = [
        wounding,
        rest.system(),
        flying(organ.name, drops, rest, aim),
        pooling(pools, rest),
        staining(stains, aim, rest),
        flowing(film, rest),
        accounting(film, blood.wounds, drops),
        picture,
    ]
    return Bleeding(systems, wounding.holds, picture.holds)


def spill(organ: Organ, film: Film, vessels: Sequence[Wound], seed: int) -> None:
    """What vessels have lost before somebody comes, in a puddle over each of them, a little to one side so that its
    middle does not give the vessel away. Nothing where there is that much already."""
    count = min(round(SPILT / film.params.particle_volume), film.state.capacity // 2, QUEUE // 2)
    if films.count(film) > film.state.capacity // 2:
        return
    rng = np.random.default_rng((seed, SPILL))
    corners = _upper_side(organ)
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    centres = corners.mean(axis=1)
    chance = np.zeros(len(corners))
    for vessel in vessels:
        turn, far = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(0.3, 0.6) * PUDDLE
        middle = np.asarray(vessel.point[:2]) + far * np.array([np.cos(turn), np.sin(turn)])
        chance[np.linalg.norm(centres[:, :2] - middle, axis=1) < PUDDLE] = 1.0
    chance *= area
    if chance.sum() == 0.0:
        return
    chosen = corners[rng.choice(len(corners), size=count, p=chance / chance.sum())]
    # Uniform in a triangle.
    films.add(film, np.einsum("ij,ijk->ik", rng.dirichlet((1.0, 1.0, 1.0), size=count), chosen), "blood")


def _upper_side(organ: Organ) -> NDArray[np.float64]:
    """Corners of the triangles that look up, shape (triangles, 3, 3) [m], where the surface is now: a hand may have
    drawn it far from where it rests."""
    skin = organ.need_skin()
    now = TriangleMesh(skin.vertices.numpy().astype(np.float64), skin.mesh.triangles, organ.name)
    return now.corners[now.face_vectors[:, 2] > 0.0]


def pour(organ: Organ, film: Film) -> None:
    """Onto its film, over the upper side: an eighth of all the blood that there may be, until half of it is there. As
    much as a hand with suction lets come together."""
    centres = _upper_side(organ).mean(axis=1)
    count = min(film.state.capacity // 8, QUEUE // 2)
    if films.count(film) + count <= film.state.capacity // 2:
        chosen = np.random.default_rng(films.count(film)).integers(len(centres), size=count)
        films.add(film, centres[chosen], "blood")
