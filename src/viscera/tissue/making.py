"""From `LatticeParams` to arrays: masses, stiffness of every spring, bulk modulus of every cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device
from viscera.timing import TICK
from viscera.tissue import kernels, touch_kernels
from viscera.tissue.layout import TILE, Layout, make_layout
from viscera.tissue.params import LatticeParams, bulk_step, checked_substeps
from viscera.tissue.springs import NodeIndex, mass_share
from viscera.tissue.substeps import settle_substeps
from viscera.tissue.tables import Tables
from viscera.tissue.tissue import LatticeState, Tissue
from viscera.tissue.touching import touch_masses
from viscera.tissue.viscosity import make_viscosity


def make_whole(device: Device, params: LatticeParams, *, native: bool, bricks: bool) -> Tissue:
    """The lattice at rest, in one piece; `bricks` as in layout.py."""
    layout = make_layout(params.nodes, bricks=bricks)
    index = NodeIndex(params.nodes)
    tables = Tables(params, layout, index)
    mass = mass_share(tables.cells) * params.density_of() * params.spacing**3
    constants = _constants(device, params, layout, tables, mass)
    slots, warp = layout.slots, device.warp
    moved = np.zeros(0, dtype=np.int64) if params.driven is None else np.nonzero(params.driven)[0]
    direction = np.zeros((len(params.nodes), 3)) if params.drive_direction is None else params.drive_direction
    bulk = tables.bulk(params.bulk_young_of()) if params.has_volume else np.zeros(1, dtype=np.float16)

    def zeros(count: int) -> wp.array[Any]:
        return wp.zeros(count, dtype=wp.float32, device=warp)

    tissue = Tissue(
        device=device,
        params=params,
        layout=layout,
        constants=constants,
        state=LatticeState(
            position=(zeros(3 * slots), zeros(3 * slots)),
            velocity=zeros(3 * slots),
            live=device.port(kernels.LIVE_FLOATS, wp.float32),
            tools=device.port(touch_kernels.TOOL_FLOATS, wp.float32),
            force=device.port(touch_kernels.TOOLS * kernels.FORCE_PARTS, wp.int64),
            broken=device.port(1, wp.int32),
            clock=device.port(1, wp.int32),
            drive=device.port(2, wp.float32),
            poses=device.port(touch_kernels.ROWS * touch_kernels.POSE_FLOATS, wp.float32),
            push=zeros(9 * slots if params.has_volume else 1),
        ),
        substeps=constants.substeps,
        mass=mass,
        young=params.material.young,
        viscous_time=params.first_viscous_time,
        bulk=wp.array(bulk, dtype=wp.float16, device=warp),
        driven_places=wp.array(layout.slot_of_node[moved], dtype=wp.int32, device=warp),
        driven_direction=wp.array(direction[moved].astype(np.float32), dtype=wp.vec3, device=warp),
        viscosity=make_viscosity(device, params, layout, index),
        native=native,
    )
    constants.clock = tissue.state.clock.array
    settle_substeps(tissue)
    tissue.set_young(params.material.young)
    tissue.set_drag(params.drag)
    live = tissue.state.live.host
    live[4] = params.first_viscous_time
    live[7] = params.remedies.shape**2
    if params.rest_skipping is not None:
        live[8:10] = params.rest_skipping.force, params.rest_skipping.speed
    touch_masses(tissue)
    return tissue


def _constants(
    device: Device,
    params: LatticeParams,
    layout: Layout,
    tables: Tables,
    mass: NDArray[np.float64],
) -> Any:
    """The struct that the kernels read."""
    warp, slots = device.warp, layout.slots
    checked_substeps(params, bulk_step(params))  # refuses what cannot be meant before anything is built
    features = 0
    viscous = bool((params.viscous_of() != 1.0).any())
    if params.has_volume or params.remedies.torsion > 0.0 or viscous:
        features |= kernels.EXTRA
    if params.creep.fraction > 0.0:
        features |= kernels.CREEP
    if params.rest_skipping is not None:
        features |= kernels.SKIP_REST
    inverse_mass = np.zeros(slots, dtype=np.float32)
    inverse_mass[layout.slot_of_node] = np.where(params.anchored, 0.0, 1.0 / mass)
    made = kernels.Lattice()
    made.slots = slots
    made.spacing = params.spacing
    made.dt = TICK
    made.substeps = 1
    made.tile_slot = wp.array(layout.tile_slot, dtype=wp.int32, device=warp)
    made.rows = wp.array(layout.rows.ravel(), dtype=wp.int32, device=warp)
    made.tile_origin = wp.array((layout.tile_cell * params.spacing).astype(np.float32), dtype=wp.vec3, device=warp)
    made.stiffness = wp.array(tables.stiffness(params.spring_young_of()), dtype=wp.float16, device=warp)
    made.inverse_mass = wp.array(inverse_mass, dtype=wp.float32, device=warp)
    made.keep = wp.ones(slots, dtype=wp.float32, device=warp)
    made.features = features
    made.extra = wp.zeros(3 * slots if features & kernels.EXTRA else 1, dtype=wp.float32, device=warp)
    made.creep = wp.zeros(13 * slots if features & kernels.CREEP else 1, dtype=wp.float32, device=warp)
    made.awake = wp.zeros(2 * slots // TILE if features & kernels.SKIP_REST else 1, dtype=wp.int32, device=warp)
    return made
