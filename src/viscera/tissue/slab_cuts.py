"""How a lattice is cut into slabs: which places, tiles and masses each one takes; see slabs.py."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device
from viscera.tissue import kernels
from viscera.tissue.layout import TILE, Layout
from viscera.tissue.params import LatticeParams
from viscera.tissue.tissue import LatticeState, Tissue
from viscera.tissue.touching import touch_masses
from viscera.tissue.viscosity import Viscosity

GUARD = 2 * TILE
"""Empty places before and behind everything, as in layout.py."""
NO_ROW = TILE
"""Where rows begin that do not exist, as in layout.py."""

PER_PLACE = ("stiffness", "inverse_mass", "keep", "extra", "creep")
PER_TILE = ("tile_slot", "rows", "tile_origin")
SAME = ("spacing", "dt", "substeps", "features")
OWN = ("slots", "awake", "clock")
"""Fields of kernels.Lattice by how they are cut; those in OWN are set for each slab."""


@dataclass(frozen=True)
class Cut:
    """What one slab takes from the whole lattice."""

    masses: NDArray[np.int64]
    """Its own ones, as numbers in the whole lattice."""
    places: slice
    """Of the whole lattice that it stores: its own and its halos'."""
    own: slice
    """Of these, those of its own layers."""
    tiles: slice
    """Tiles of the whole lattice that it computes: its own and the layer below, whose cells and creep reach up."""
    below: int
    """How many of these tiles are the layer below."""

    def local(self, place: Any) -> Any:
        """From a place of the whole lattice to this slab's."""
        return place - self.places.start + GUARD

    @property
    def slots(self) -> int:
        return self.places.stop - self.places.start + 2 * GUARD


@dataclass(frozen=True)
class Halo:
    """A layer that one slab owns and its neighbour reads."""

    source: int
    target: int
    source_place: int
    target_place: int
    count: int
    """Places, empty ones included."""


def layers_of(layout: Layout) -> NDArray[np.int32]:
    return np.unique(layout.tile_cell[:, 2])


def share_out(layout: Layout, layers: NDArray[np.int32], slabs: int) -> list[int]:
    """First layer of each slab, so that all have about as many tiles and at least one layer."""
    below = np.searchsorted(layout.tile_cell[:, 2], layers)
    cuts = [0]
    for slab in range(1, slabs):
        even = int(np.argmin(np.abs(below - slab * len(layout.tile_slot) / slabs)))
        cuts.append(min(max(even, cuts[-1] + 1), len(layers) - slabs + slab))
    return [int(layers[at]) for at in cuts]


def _layer_places(layout: Layout, layer: int) -> slice:
    """Places of one layer, with the empty tile at either end; an empty range where there is no such layer."""
    first, last = np.searchsorted(layout.tile_cell[:, 2], [layer, layer + 1])
    if first == last:
        return slice(0, 0)
    return slice(int(layout.tile_slot[first]) - TILE, int(layout.tile_slot[last - 1]) + 2 * TILE)


def cut_out(whole: Tissue, first: int, end: int) -> Cut:
    """The slab of layers first … end − 1."""
    layout = whole.layout
    below, above = _layer_places(layout, first - 1), _layer_places(layout, end)
    tiles = np.searchsorted(layout.tile_cell[:, 2], [first - 1, first, end]).tolist()
    own = slice(int(layout.tile_slot[tiles[1]]) - TILE, int(layout.tile_slot[tiles[2] - 1]) + 2 * TILE)
    z = whole.params.nodes[:, 2]
    return Cut(
        masses=np.nonzero((z >= first) & (z < end))[0],
        places=slice(below.start if below.stop else own.start, above.stop if above.stop else own.stop),
        own=own,
        tiles=slice(tiles[0], tiles[2]),
        below=tiles[1] - tiles[0],
    )


def halos_at(layout: Layout, cuts: list[Cut], upper: int, first: int) -> list[Halo]:
    """The two layers at the cut below slab `upper`, whose first layer is `first`."""
    found = []
    for source, target, layer in ((upper - 1, upper, first - 1), (upper, upper - 1, first)):
        places = _layer_places(layout, layer)
        count = places.stop - places.start
        if count:
            at = places.start
            found.append(Halo(source, target, int(cuts[source].local(at)), int(cuts[target].local(at)), count))
    return found


def make_slab(device: Device, whole: Tissue, cut: Cut) -> Tissue:
    """One slab as a lattice of its own."""
    layout = _cut_layout(whole.layout, cut)
    state = _cut_state(device, whole, cut)
    driven = cut.local(whole.driven_places.numpy())
    here = (driven >= GUARD) & (driven < cut.slots - GUARD)
    made = replace(
        whole,
        device=device,
        params=_cut_params(whole.params, cut),
        layout=layout,
        constants=_cut_constants(device, whole, cut, layout, state),
        state=state,
        mass=whole.mass[cut.masses],
        bulk=_cut_places(device, whole.bulk, whole.layout.slots, cut),
        # Halo anchors are driven here too: a substep reads where they are going, before any exchange.
        driven_places=wp.array(driven[here], dtype=wp.int32, device=device.warp),
        driven_direction=wp.array(whole.driven_direction.numpy()[here], dtype=wp.vec3, device=device.warp),
        viscosity=_cut_viscosity(device, whole, cut),
        fields={},
        touching=None,
        _programs={},
    )
    touch_masses(made)
    return made


def _cut_layout(layout: Layout, cut: Cut) -> Layout:
    rows = layout.rows[cut.tiles].astype(np.int64)
    rows = np.where(rows == NO_ROW, NO_ROW, cut.local(rows))
    # What lies below the layer below is not stored.
    rows[: cut.below, :3] = NO_ROW
    return Layout(
        slots=cut.slots,
        slot_of_node=cut.local(layout.slot_of_node[cut.masses].astype(np.int64)).astype(np.int32),
        tile_slot=cut.local(layout.tile_slot[cut.tiles].astype(np.int64)).astype(np.int32),
        tile_cell=layout.tile_cell[cut.tiles],
        rows=rows.astype(np.int32),
    )


def _cut_params(params: LatticeParams, cut: Cut) -> LatticeParams:
    def of(array: NDArray[Any] | None) -> Any:
        return None if array is None else array[cut.masses]

    return replace(
        params,
        nodes=of(params.nodes),
        anchored=of(params.anchored),
        material_of=of(params.material_of),
        relative_young=of(params.relative_young),
        driven=of(params.driven),
        drive_direction=of(params.drive_direction),
    )


def _cut_places(device: Device, array: Any, slots: int, cut: Cut) -> Any:
    """Of an array with any number of components per place; one of a feature that is off is taken as it is."""
    values = array.numpy()
    if values.size >= slots:
        table = values.reshape(-1, slots)
        values = np.zeros((len(table), cut.slots), dtype=table.dtype)
        values[:, GUARD:-GUARD] = table[:, cut.places]
    return wp.array(values.ravel(), dtype=array.dtype, device=device.warp)


def mask_weights(constants: Any, cut: Cut) -> None:
    """Takes the weight off what is not the slab's own."""
    weight = constants.inverse_mass.numpy().copy()
    own = slice(cut.local(cut.own.start), cut.local(cut.own.stop))
    weight[: own.start] = weight[own.stop :] = 0.0
    constants.inverse_mass.assign(weight)


def _cut_viscosity(device: Device, whole: Tissue, cut: Cut) -> Viscosity | None:
    if whole.viscosity is None:
        return None

    def elements(array: Any) -> Any:
        values = array.numpy() - TILE * cut.tiles.start
        here = values[(values >= 0) & (values < TILE * (cut.tiles.stop - cut.tiles.start))]
        return wp.array(here, dtype=wp.int32, device=device.warp)

    viscosity = whole.viscosity
    relative = _cut_places(device, viscosity.relative, whole.layout.slots, cut)
    return Viscosity(relative, elements(viscosity.springs), elements(viscosity.cells))


def _cut_constants(device: Device, whole: Tissue, cut: Cut, layout: Layout, state: LatticeState) -> Any:
    made = kernels.Lattice()
    for name in SAME:
        setattr(made, name, getattr(whole.constants, name))
    for name in PER_PLACE:
        setattr(made, name, _cut_places(device, getattr(whole.constants, name), whole.layout.slots, cut))
    mask_weights(made, cut)
    made.slots = cut.slots
    made.tile_slot = wp.array(layout.tile_slot, dtype=wp.int32, device=device.warp)
    made.rows = wp.array(layout.rows.ravel(), dtype=wp.int32, device=device.warp)
    made.tile_origin = wp.array(whole.constants.tile_origin.numpy()[cut.tiles], dtype=wp.vec3, device=device.warp)
    made.awake = wp.zeros(1, dtype=wp.int32, device=device.warp)
    made.clock = state.clock.array
    return made


def _cut_state(device: Device, whole: Tissue, cut: Cut) -> LatticeState:
    state, slots = whole.state, whole.layout.slots

    def port(of: Any) -> Any:
        made = device.port(of.array.size, of.array.dtype)
        made.host[...] = of.host
        return made

    first, second = (_cut_places(device, buffer, slots, cut) for buffer in state.position)
    return LatticeState(
        position=(first, second),
        velocity=_cut_places(device, state.velocity, slots, cut),
        live=port(state.live),
        tools=port(state.tools),
        force=port(state.force),
        broken=port(state.broken),
        clock=port(state.clock),
        drive=port(state.drive),
        poses=port(state.poses),
        push=_cut_places(device, state.push, slots, cut),
    )
