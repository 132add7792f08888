"""What a fluid keeps between runs, with its emitters and vessels; and more particles between two steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from viscera.device import Stage
from viscera.errors import InputError
from viscera.states import Arrays, copy_in, copy_out, require_names
from viscera.water import state as _state
from viscera.water.boundary.start import check_start
from viscera.water.boundary.triangles_hashed import place_triangles, rebuild_hashed
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.walls import Walls
from viscera.water.emitter import Emitter
from viscera.water.state import CREATED, Fluid, check_box

MESH_ARRAYS = ("vertices", "vertices_from", "vertices_to", "velocity", "part", "fitted")
"""Of `Walls` whose mesh moves."""


def save_fluid(fluid: Fluid) -> Arrays:
    saved = _state.arrays(fluid)
    # With `adaptive` the step follows the flow: it is state, not a parameter.
    live: Any = fluid.live.numpy()
    saved["dt"] = live["dt"].copy()
    return saved | copy_out(_kept(fluid))


def load_fluid(fluid: Fluid, arrays: Arrays) -> None:
    require_names("fluid", save_fluid(fluid), arrays)
    if len(arrays["position"]) > fluid.capacity:
        raise InputError(
            f"fluid: {len(arrays['position'])} particles were saved, but there is room for {fluid.capacity}.",
            "Load it into one that was made with the same capacity.",
        )
    copy_in("fluid", _kept(fluid), arrays)
    _state.load(fluid, arrays)
    live: Any = fluid.live.numpy()
    live["dt"] = arrays["dt"]
    fluid.live.assign(live)
    for boundary in fluid.boundaries:
        if isinstance(boundary, Vessel):
            _find_triangles(boundary.walls)


def add_particles(fluid: Fluid, positions: ArrayLike, velocities: ArrayLike | None) -> None:
    p = fluid.params
    places = _state.vectors(positions, "positions", p.dimension)
    moving = np.zeros_like(places) if velocities is None else _state.vectors(velocities, "velocities", p.dimension)
    if len(moving) != len(places):
        raise InputError(f"there are {len(moving)} velocities for {len(places)} positions.", "Give one for each.")
    there = int(fluid.count.numpy()[0])
    if there + len(places) > fluid.capacity:
        raise InputError(
            f"{len(places)} particles, but there is room for {fluid.capacity - there} more.",
            "Add fewer, or make the fluid with a larger capacity.",
        )
    check_box(p, places, "particles")
    for walls in fluid.vessels:
        check_start(walls, places)
    saved = _state.arrays(fluid)
    first = int(saved["report"][CREATED])
    joined = {
        "position": places,
        "velocity": moving,
        "tag": first + np.arange(len(places)),
        "kept_density": np.full(len(places), p.rest_density),
        "rate": np.zeros((len(places), 4)),
        "warm": np.zeros(len(places)),
        "level": np.zeros(len(places)),
        "carried": np.zeros((len(places), 4)),
        "fresh": np.zeros((len(places), 2)),
    }
    for name, values in joined.items():
        if name in saved:
            saved[name] = np.concatenate([saved[name], values.astype(saved[name].dtype)])
    saved["report"][CREATED] += len(places)
    _state.load(fluid, saved)


def _kept(fluid: Fluid) -> dict[str, Any]:
    """Arrays of emitters and vessels, by their number among the boundaries."""
    found: dict[str, Any] = {}
    for number, boundary in enumerate(fluid.boundaries):
        if isinstance(boundary, Emitter):
            found[f"boundary{number}.nozzle"] = boundary.nozzle
        if isinstance(boundary, Vessel):
            mine = _walls(boundary.walls) | {"known": boundary.contacts.last_known}
            found |= {f"boundary{number}.{name}": array for name, array in mine.items()}
    return found


def _walls(walls: Walls) -> dict[str, Any]:
    found: dict[str, Any] = {"motion": walls.motion, "moved": walls.view.moved}
    if walls.shapes:
        found["shapes"] = walls.view.shapes
    if walls.deforming or walls.tree is not None:
        found |= {name: getattr(walls, name) for name in MESH_ARRAYS}
    if walls.deforming and walls.hashed is not None:
        found["drift"] = walls.hashed.table.drift
    return found


def _find_triangles(walls: Walls) -> None:
    """The search structure of a mesh that has moved: as it was built when the mesh was aimed."""
    if walls.hashed is not None and walls.deforming:
        stage = Stage(walls.device, 0, 1, None)
        rebuild_hashed(stage, walls.hashed, walls.vertices_from)
        place_triangles(stage, walls.hashed, walls.vertices)
    if walls.tree is not None and walls.mesh is not None:
        walls.view.corners.assign(walls.vertices.numpy()[walls.mesh.triangles])
        walls.tree.refit()
    wp.synchronize_device(walls.device.warp)
