"""Blood, bile and saline as a film on organs.

    blood = film.make(liver, capacity=20_000)               # `liver` is a skin; or several, a mesh, or a `Sheet`
    film.add(blood, points, "blood")                        # points on the surface [m]
    film.step(stage, blood)                                 # 2 ms
    film.volume(blood)                                      # [m³]

Equations and the order of a step are in `film`, the particles' arrays in `state`.
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from viscera.blood.film import border, surface
from viscera.blood.film.film import Film, make_film, set_film, step_film
from viscera.blood.film.params import (
    BILE,
    BLOOD,
    SALINE,
    FilmFluid,
    FilmParams,
    Sheet,
    document_fluid,
    document_params,
)
from viscera.blood.film.state import WAITING, FilmState
from viscera.blood.film.surface import MASKED, FilmSurface, refresh_surface
from viscera.blood.film.walk import BARRIER, DRAIN, OPEN
from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.skin import Skin
from viscera.states import Arrays

__all__ = [
    "BARRIER",
    "BILE",
    "BLOOD",
    "DRAIN",
    "MASKED",
    "OPEN",
    "SALINE",
    "Film",
    "FilmFluid",
    "FilmParams",
    "FilmState",
    "FilmSurface",
    "Sheet",
    "add",
    "check",
    "count",
    "document_fluid",
    "document_params",
    "follow",
    "grow",
    "load",
    "make",
    "save",
    "set",
    "set_edges",
    "set_obstacles",
    "step",
    "volume",
    "volumes",
    "waiting",
]


def make(
    where: Skin | TriangleMesh | FilmSurface | Sheet | Sequence[Skin | TriangleMesh],
    params: FilmParams | None = None,
    *,
    capacity: int = 16_384,
    queue: int | None = None,
    tangents: Skin | None = None,
    obstacles: bool = True,
    native: bool | None = None,
    device: Device | None = None,
) -> Film:
    """A film without particles, with room for `capacity`, on a skin, on several, or on the surface of another film.

    Up to `queue` particles can wait for the next step. Bare meshes and a `Sheet` need a `device`; skins have one.
    `tangents` gives a sheet the slopes of a skin of its size; `obstacles` False leaves its obstacle map out; `native`
    False runs the plain kernels.
    """
    place = where if isinstance(where, (Sheet, FilmSurface)) else surface.make_surface(where, device)
    room = {} if queue is None else {"queue": queue}
    return make_film(place, params, capacity, device, tangents=tangents, obstacles=obstacles, native=native, **room)


def set(film: Film, params: FilmParams) -> None:
    """Changes parameters while programs run, all but those that say `fixed`, and a larger max_speed·dt."""
    set_film(film, params)


def step(stage: Stage, film: Film, *, mixing: int = 1) -> None:
    """One step of `params.dt`, 2 ms unless it was set. Where the tissue moves, `follow` comes first, once a frame.

    Mixing and clotting are slow beside the flow and cost as much: with `mixing` 4 this step does four steps' worth of
    them, with 0 none.
    """
    step_film(stage, film, mixing)


def follow(stage: Stage, film: Film) -> None:
    """Brings the film's surface up to the vertices of its skins: after the tissue has moved, before `step`."""
    if film.surface is not None:
        refresh_surface(stage, film.surface)


def add(
    film: Film,
    points: ArrayLike,
    fluid: str | ArrayLike = 0,
    *,
    velocity: ArrayLike = (0.0, 0.0, 0.0),
    volume: float | None = None,
) -> None:
    """Particles of `volume` [m³] for the next step, at `points` [m] on the surface (on a sheet: columns and rows).

    `fluid` is a name, a number or four concentrations; `velocity` [m/s] counts along the surface. More than can wait
    are refused, none is taken then. A ledger books it as `added`. Between two steps of a world, in `build` or in a
    system's frame; not in a script, which runs beside them. Waits for the device.
    """
    border.spawn(film, points, fluid, velocity=velocity, volume=volume)


def count(film: Film) -> int:
    """Particles now, without those that wait. Waits for the device."""
    return border.film_count(film)


def volume(film: Film) -> float:
    """Of all particles, without those that wait [m³]. Waits for the device."""
    return border.film_volume(film)


def volumes(film: Film) -> dict[str, float]:
    """Of each fluid in the film, by its name, without what waits [m³]. Waits for the device."""
    return border.film_volumes(film)


def waiting(film: Film) -> int:
    """Particles that found no room in the last step and wait. Waits for the device."""
    return int(film.state.status.numpy()[WAITING])


def check(film: Film, tick: int = 0) -> None:
    """Raises StateError if a particle is no longer finite, or there was no room for its springs or its bucket. Waits
    for the device: once per frame."""
    border.check_film(film, tick=tick)


def save(film: Film) -> Arrays:
    """Particles, what waits, what has left, and springs."""
    return border.arrays(film)


def load(film: Film, arrays: Arrays) -> None:
    """Puts a film into a state that `save` gave; it must have the same capacity, queue and springs."""
    border.load(film, arrays)


def grow(film: Film, capacity: int) -> Film:
    """The same film with more room. Programs recorded with the old one must be recorded again."""
    return border.grow_film(film, capacity)


def set_edges(film: Film, edges: ArrayLike, kind: int = int(BARRIER), *, part: int = 0) -> None:
    """Makes edges of an organ, rows of two vertices of its mesh, `OPEN`, a `BARRIER` or a `DRAIN`, from both sides.
    `part` is the organ's number among those the film was made on."""
    surface.set_edges(_surface(film), part, edges, int(kind))


def set_obstacles(film: Film, values: ArrayLike, *, part: int = 0) -> None:
    """What stands in the film's way, per texel, shape (height, width): 0 is free, a positive number the density over
    settled density that flows over it, `MASKED` nothing does, a negative number is a drain."""
    if film.sheet is not None:
        border.set_sheet_obstacles(film, values)
    else:
        surface.set_obstacles(_surface(film), part, values)


def _surface(film: Film) -> FilmSurface:
    if film.surface is None:
        raise InputError("a film on a sheet has no edges.", "Make it on a skin or a mesh.")
    return film.surface
