"""The film as the host sees it: putting particles in, looking at it, checking, saving, growing."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.blood.film.film import Film, make_film
from viscera.blood.film.params import LARGEST_VOLUME, LITTLE, Sheet
from viscera.blood.film.state import BROKEN_NOW, BUCKET_OVERFLOW, SPRING_OVERFLOW, WAITING, SpawnQueue
from viscera.blood.film.surface import FilmSurface, check_obstacles
from viscera.errors import InputError, StateError
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.queries import build_query, closest_points

NEAR = 1.0
"""How far from the surface a place may be that is meant to lie on it, as a part of the film's radius."""


def spawn(
    film: Film,
    places: ArrayLike,
    fluid: str | ArrayLike = 0,
    *,
    velocity: ArrayLike = (0.0, 0.0, 0.0),
    volume: float | None = None,
) -> None:
    """Particles of `volume` [m³] for the next step, at `places` [m] on the surface (on a sheet: columns and rows).

    `fluid` is a name or concentrations. More than can wait are refused, none is taken then.
    """
    points = np.atleast_2d(np.asarray(places, dtype=np.float64))
    concentrations, little = _concentrations(film, fluid), _little(film, volume)
    queue, waiting = film.state.queue, int(film.state.queue.count.numpy()[0])
    if len(points) > queue.capacity - waiting:
        raise InputError(
            f"{len(points)} particles, but only {queue.capacity - waiting} more can wait for the next step.",
            f"Give fewer at once, or make the film with a larger queue, as queue={2 * queue.capacity}.",
        )
    entries = _entries(film, points)
    entries["velocity"] = np.broadcast_to(_finite("velocity", velocity), (len(points), 3))
    entries["volume"] = np.full(len(points), little)
    entries["fluid"] = np.broadcast_to(concentrations, (len(points), 4))
    for name, values in entries.items():
        array = getattr(queue, name)
        kept = array.numpy()
        kept[waiting : waiting + len(points)] = values
        array.assign(kept)
    queue.count.fill_(waiting + len(points))
    film.state.added += little * len(points)


def locate(
    surface: FilmSurface, points: ArrayLike
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float64]]:
    """Nearest triangle of the surface as it is now, its weights for the second and third corner, and how far it is."""
    asked = np.atleast_2d(np.asarray(points, dtype=np.float64))
    vertices = surface.vertices.numpy().astype(np.float64)
    best = np.full(len(asked), np.inf)
    face = np.zeros(len(asked), dtype=np.int32)
    weights = np.zeros((len(asked), 2), dtype=np.float32)
    for part in range(len(surface.parts)):
        mesh = surface.mesh(part)
        begin, end = surface.first_vertex[part : part + 2]
        now = TriangleMesh(vertices[begin:end], mesh.triangles, mesh.name)
        found = closest_points(build_query(now, surface.device), asked)
        distance = np.abs(found.distances)
        nearer = (distance < best) & (found.faces >= 0)
        best[nearer] = distance[nearer]
        face[nearer] = found.faces[nearer] + surface.first_face[part]
        weights[nearer] = _weights(now.corners[found.faces[nearer]], found.points[nearer])
    return face, weights, best


def check_film(film: Film, *, tick: int = 0) -> int:
    """Raises StateError where a step broke or had no room for springs or buckets; returns how many particles wait for
    room. Waits for the device: once per frame, not per step."""
    status = film.state.status.numpy()
    if status[BROKEN_NOW]:
        raise StateError(
            "film: a particle's position or velocity is no longer finite.",
            "Take a smaller dt, or lower stiffness and viscosity.",
            stage="film",
            tick=tick,
        )
    if status[SPRING_OVERFLOW]:
        raise StateError(
            f"film: a particle needs more than {film.params.spring_capacity} springs.",
            "Make the film with a larger spring_capacity, or a smaller radius.",
            stage="film",
            tick=tick,
        )
    if status[BUCKET_OVERFLOW]:
        raise StateError(
            f"film: a bucket holds more than {film.params.bucket_size} particles.",
            "Make the film with a larger bucket_size, or use the sorted grid.",
            stage="film",
            tick=tick,
        )
    return int(status[WAITING])


def film_count(film: Film) -> int:
    return int(film.state.count.numpy()[0])


def film_volume(film: Film) -> float:
    """Of all particles, without what waits [m³]."""
    return LITTLE * float(film.state.volume.numpy()[: film_count(film)].sum(dtype=np.int64))


def film_volumes(film: Film) -> dict[str, float]:
    """Of each fluid, by its name, without what waits [m³]."""
    count = film_count(film)
    if not count:  # Warp makes no slices of nothing
        return {fluid.name: 0.0 for fluid in film.params.fluids}
    volume, parts = film.state.volume[:count].numpy(), film.state.fluid[:count].numpy()
    sums = LITTLE * (volume[:, None] * parts.astype(np.float64)).sum(axis=0)
    return {fluid.name: float(one) for fluid, one in zip(film.params.fluids, sums, strict=False)}


def set_sheet_obstacles(film: Film, values: ArrayLike) -> None:
    """As `set_obstacles`, for a film on a sheet."""
    if film.sheet is None or not film.maps.has_obstacles:
        raise InputError("this film has no obstacle map of its own.", "Use set_obstacles with the surface's part.")
    film.maps.obstacle.assign(check_obstacles(values, film.sheet.height, film.sheet.width))


def arrays(film: Film) -> dict[str, NDArray[Any]]:
    """All that a film holds, to be saved; `load` brings it back."""
    found = {name: array.numpy().copy() for name, array in _saved(film).items()}
    count = film_count(film)
    if film.params.springs:
        # Beyond its count a list holds what was there before; only what counts is kept.
        lengths = found["springs.count"]
        lengths[count:] = 0
        unused = np.arange(film.springs.most)[:, None] >= lengths[None, :]
        for name in ("springs.partner", "springs.rest"):
            found[name].reshape(film.springs.most, -1)[unused] = 0
    return found


def load(film: Film, saved: dict[str, NDArray[Any]]) -> None:
    """Puts a film into the state that `arrays` gave."""
    for name, array in _saved(film).items():
        values = saved.get(name)
        if values is None or values.shape != array.numpy().shape:
            shape = "nothing" if values is None else f"shape {values.shape}"
            raise InputError(
                f"{name}: {shape} was saved, {array.numpy().shape} is needed.",
                "Load it into a film of the same capacity and parameters.",
            )
        array.assign(values)


def grow_film(film: Film, capacity: int) -> Film:
    """The same film with more room. Programs recorded with the old one must be recorded again."""
    if capacity < film.state.capacity:
        raise InputError(f"capacity = {capacity} is less than {film.state.capacity}.", "A film can only grow.")
    where = film.surface if film.surface is not None else film.sheet
    assert where is not None
    grown = make_film(where, film.params, capacity, film.device, queue=film.state.queue.capacity, native=film.native)
    grown.maps = film.maps
    grown.state.added = film.state.added
    for name, array in _saved(film).items():
        target = _saved(grown)[name]
        if name.startswith("springs.") and film.params.springs and name != "springs.count":
            old = array.numpy().reshape(film.springs.most, -1)
            new = target.numpy().reshape(film.springs.most, -1)
            new[:, : old.shape[1]] = old
            target.assign(new.ravel())
        elif len(array):
            wp.copy(target, array, count=len(array))
    return grown


def _saved(film: Film) -> dict[str, Any]:
    names = [f.name for f in fields(film.state) if f.name not in ("capacity", "device", "queue", "added")]
    found = {name: getattr(film.state, name) for name in names}
    found |= {f"queue.{f.name}": getattr(film.state.queue, f.name) for f in fields(SpawnQueue)[1:]}
    if film.params.springs:
        found |= {f"springs.{name}": getattr(film.springs, name) for name in ("count", "partner", "rest")}
    return found


def _entries(film: Film, points: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    _finite("places", points)
    if film.surface is None:
        if points.shape[1] not in (2, 3):
            raise InputError(f"places has shape {points.shape}.", "Give columns and rows.")
        _on_sheet(film.sheet, points)
        flat = np.concatenate([points[:, :2], np.zeros((len(points), 1))], axis=1)
        return {"position": flat}
    if points.shape[1] != 3:
        raise InputError(f"places has shape {points.shape}.", "Give x, y, z in metres.")
    face, weights, distance = locate(film.surface, points)
    far = distance > NEAR * film.params.radius
    if far.any():
        number = int(far.argmax())
        raise InputError(
            f"{int(far.sum())} places are off the surface; place {number} by {distance[number]:g} m.",
            f"Give places within {NEAR * film.params.radius:g} m of it.",
        )
    return {"face": face, "barycentric": weights}


def _on_sheet(sheet: Sheet | None, points: NDArray[np.float64]) -> None:
    """On a sheet that wraps every place is on it: it comes back on the other side."""
    if sheet is None or sheet.wrap:
        return
    off = ((points[:, :2] < 0.0) | (points[:, :2] > (sheet.width, sheet.height))).any(axis=1)
    if off.any():
        number = int(off.argmax())
        column, row = points[number, :2]
        raise InputError(
            f"{int(off.sum())} places are off the sheet; place {number} is ({column:g}, {row:g}).",
            f"Give columns of 0 to {sheet.width} and rows of 0 to {sheet.height}, or make the sheet with wrap=True.",
        )


def _finite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    found = np.asarray(values, dtype=np.float64)
    if not np.isfinite(found).all():
        raise InputError(f"{name} has numbers that are not finite.", "Give finite numbers.")
    return found


def _little(film: Film, volume: float | None) -> int:
    little = film.params.little_volume if volume is None else volume / LITTLE
    if not 1 <= little <= LARGEST_VOLUME:
        raise InputError(
            f"volume = {volume} m³ is not possible.", f"Allowed are {LITTLE:g} to {LARGEST_VOLUME * LITTLE:g} m³."
        )
    return round(little)


def _concentrations(film: Film, fluid: str | ArrayLike) -> NDArray[np.float64]:
    if isinstance(fluid, str):
        return np.array(film.params.pure(fluid))
    if np.ndim(fluid) == 0:
        return np.eye(4)[int(np.asarray(fluid))]
    parts = _finite("fluid", fluid)
    if parts.shape[-1] != 4 or (parts < 0.0).any() or (np.abs(parts.sum(axis=-1) - 1.0) > 1e-5).any():
        raise InputError(f"fluid = {fluid} is not possible.", "Give four concentrations of 0 or more whose sum is 1.")
    return parts


def _weights(corners: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float32]:
    e, f, d = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0], points - corners[:, 0]
    n = np.cross(e, f)
    size = np.maximum((n * n).sum(axis=1), 1e-300)
    second = (np.cross(d, f) * n).sum(axis=1) / size
    third = (np.cross(e, d) * n).sum(axis=1) / size
    w = np.clip(np.stack([1.0 - second - third, second, third], axis=1), 0.0, None)
    return (w / w.sum(axis=1, keepdims=True))[:, 1:].astype(np.float32)


__all__ = [
    "arrays",
    "check_film",
    "film_count",
    "film_volume",
    "film_volumes",
    "grow_film",
    "load",
    "locate",
    "set_sheet_obstacles",
    "spawn",
]
