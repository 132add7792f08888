"""What of a world is seen: its scene, frames and snapshots, the arrays of a snapshot, and how they are filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from viscera.view import (
    AnyArray,
    ArraySpec,
    Frame,
    LatticeView,
    Markers,
    Overlay,
    Particles,
    Picture,
    Scene,
    Snapshot,
    Stains,
    Surface,
    Texture,
    Threads,
    Volume,
)
from viscera.world.contents import Contents
from viscera.world.system import Show

if TYPE_CHECKING:
    from viscera.world.doors import Doors
    from viscera.world.live import Live

_LISTS: dict[str, type] = {
    "surfaces": Surface,
    "textures": Texture,
    "stains": Stains,
    "particles": Particles,
    "markers": Markers,
    "threads": Threads,
    "lattices": LatticeView,
    "volumes": Volume,
    "pictures": Picture,
    "overlays": Overlay,
}
"""Which list of a scene holds which kind of thing."""


def all_shows(contents: Contents) -> list[Show]:
    """Everything that is seen, in the order of the scene."""
    still = [Show(surface, {surface.array: surface.rest}) for surface in contents.scenery]
    systems = [show for system in contents.systems for show in system.shows]
    return [*(organ.show() for organ in contents.organs), *still, *systems]


def make_scene(world: Doors) -> Scene:
    contents, entry = world.contents, world.entry
    lists: dict[str, Any] = {
        name: tuple(show.what for show in world.shows if isinstance(show.what, kind)) for name, kind in _LISTS.items()
    }
    asked = {goal.measure for level in contents.all_levels() for goal in level.goals}
    measures = [measure for system in contents.systems for measure, _ in system.measures()]
    return Scene(
        scenario=entry.name,
        title=entry.title,
        summary=entry.summary,
        instructions=entry.instructions,
        seed=world.seed,
        detail=world.detail,
        masses=sum(len(organ.body.nodes) for organ in contents.organs),
        bounds=contents.bounds,
        camera=contents.camera,
        force_scale=contents.force_scale,
        instruments=tuple(tool.instrument for tool in contents.tools),
        measures=tuple(one for one in measures if not one.side or one.name in asked),
        levels=contents.all_levels(),
        hides=any(system.hides is not None for system in contents.systems),
        parameters=world.settings.parameters,
        tables=world.settings.tables,
        **lists,
    )


def make_frame(world: Doors, kept: Live | None) -> Frame:
    """All that a snapshot says besides its arrays. Live, what systems show is of the last turn they finished, which is
    `kept`."""
    if kept is None:
        world.turns.wait()
    return Frame(
        tick=world.tick,
        time=world.time,
        tools=world.tools,
        parameters=dict(world.settings.values),
        counts=counts(world.shows) if kept is None else kept.counts,
        versions=versions(world.shows) if kept is None else kept.versions,
        measures=world.measure_values() if kept is None else kept.measures,
        drill=world.drill_state() if kept is None else kept.drill,
        tables=dict(world.settings.rows),
        stages=world.stages,
        ticks=world.tick_times,
    )


def make_snapshot(world: Doors) -> Snapshot:
    """The world as it is now, its surfaces brought up to date; the caller owns the copies."""
    world.show_now()
    arrays = {name: np.zeros(spec.shape, dtype=spec.kind) for name, spec in array_specs(world.shows).items()}
    write_arrays(world.shows, arrays)
    return Snapshot(**vars(world.frame()), arrays=arrays)


def array_specs(shows: Sequence[Show]) -> dict[str, ArraySpec]:
    """Every array that a snapshot holds."""
    return {name: spec for show in shows for name, spec in show.what.arrays().items()}


def counts(shows: Sequence[Show]) -> dict[str, int]:
    return {name: count for show in shows for name, count in show.counts().items()}


def versions(shows: Sequence[Show]) -> dict[str, int]:
    return {show.what.name: show.version() for show in shows if show.version is not None}


def write_arrays(shows: Sequence[Show], out: dict[str, AnyArray]) -> None:
    """Fills the caller's arrays with what the last frame shows; of arrays that are not full only as many rows as there
    are."""
    for show in shows:
        there = show.counts()
        for name, array in show.arrays.items():
            target = out[name]
            if name in there:
                if there[name]:  # Warp makes no slices of nothing
                    source = array[: there[name]]
                    values = source if isinstance(source, np.ndarray) else source.numpy()
                    np.copyto(target[: there[name]], values.reshape(-1, *target.shape[1:]))
            else:
                values = array if isinstance(array, np.ndarray) else array.numpy()
                np.copyto(target, values.reshape(target.shape))
