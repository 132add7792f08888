"""Burnt tissue of many worlds is stiffer: tissue/burning.py, over rows.

A world whose tissue is burnt has springs and cells of its own, after those of the anatomies; the others share theirs.
Burnt springs do not tear here.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.batch.batch import Batch
from viscera.batch.worlds import Worlds
from viscera.device import Stage
from viscera.skin import Skin
from viscera.tissue.burning import burn_of_mass, burnt_cell, burnt_spring, make_burning, make_sampling
from viscera.tissue.kernels import LIVE_STIFFNESS, Lattice
from viscera.tissue.layout import TILE

wp.set_module_options({"enable_backward": False})

_TILE = wp.constant(TILE)


@wp.struct
class Burnt:
    """What all worlds share, and how burnt each mass is."""

    first: int
    """Row of the springs of world 0's own."""
    cells: int
    """Whether cells have a bulk modulus."""
    gain: wp.array(dtype=wp.float32)
    """β − 1 of each place."""
    most: wp.array(dtype=wp.float32)
    """Reference stiffness at the stiffest setting [N/m], one number."""
    place: wp.array(dtype=wp.int32)
    start: wp.array(dtype=wp.int32)
    texel: wp.array(dtype=wp.int32)
    weight: wp.array(dtype=wp.float32)
    """`BurnSampling` of tissue/burning.py."""
    burn: wp.array2d(dtype=wp.float32)
    """b of each world's places."""
    some: wp.array(dtype=wp.int32)
    """Whether anything of a world is burnt."""


@wp.kernel
def sample_worlds(first: int, level: wp.array2d(dtype=wp.float32), burnt: Burnt):
    index = first + wp.tid()
    masses = burnt.place.shape[0]
    world = index // masses
    i = index % masses
    burn = burn_of_mass(burnt.start, burnt.texel, burnt.weight, level[world], i)
    burnt.burn[world, burnt.place[i]] = burn
    if burn > 0.0:
        burnt.some[world] = 1


@wp.kernel
def stiffen_worlds(first: int, lattice: Lattice, places: int, burnt: Burnt, worlds: Worlds):
    """Springs and cells of the worlds that are burnt, from those of their anatomy."""
    index = first + wp.tid()
    world = index // places
    if burnt.some[world] == 0:
        return
    tile = (index % places) // _TILE
    lane = (index % places) % _TILE
    i = lattice.tile_slot[tile] + lane
    fresh = worlds.anatomy[world]
    own = burnt.first + world
    burn = burnt.burn[world]
    bound = burnt.most[0] / worlds.live[world, LIVE_STIFFNESS]
    for d in range(13):
        at = d * lattice.slots + i
        factor = burnt_spring(lattice, burnt.gain, burn, bound, tile, lane, d)
        worlds.stiffness[own, at] = wp.float16(float(worlds.stiffness[fresh, at]) * factor)
    if burnt.cells != 0:
        factor = wp.min(burnt_cell(lattice, burnt.gain, burn, tile, lane), bound)
        worlds.bulk[own, i] = wp.float16(float(worlds.bulk[fresh, i]) * factor)
    if index % places == 0:
        worlds.springs[world] = own


@wp.kernel
def soften_worlds(first: int, mask: wp.array(dtype=wp.int32), burnt: Burnt, worlds: Worlds):
    """Tissue of the worlds in the mask is fresh."""
    size = burnt.burn.shape[1]
    index = first + wp.tid()
    world = index // size
    if mask[world] != 0:
        burnt.burn[world, index % size] = 0.0
        if index % size == 0:
            burnt.some[world] = 0
            worlds.springs[world] = worlds.anatomy[world]


class Stiffening:
    """Of the tissue under each world's burns."""

    def __init__(self, worlds: Batch, skin: Skin) -> None:
        tissue = worlds.tissue
        shared, sampling = make_burning(tissue), make_sampling(tissue, skin)
        made: Any = Burnt()
        made.first, made.cells = worlds.give_own_springs(), int(tissue.params.has_volume)
        made.gain, made.most = shared.gain, shared.most
        made.place, made.start = sampling.place, sampling.start
        made.texel, made.weight = sampling.texel, sampling.weight
        count, device = worlds.count, worlds.device.warp
        made.burn = wp.zeros((count, tissue.layout.slots), dtype=wp.float32, device=device)
        made.some = wp.zeros(count, dtype=wp.int32, device=device)
        self._worlds, self._burnt = worlds, made

    @property
    def burn(self) -> wp.array[Any]:
        """b of each place of each world's lattice, float32, shape (worlds, slots)."""
        return self._burnt.burn

    def record(self, stage: Stage, level: wp.array[Any]) -> None:
        """Springs follow the burn level of the skin, shape (worlds, texels)."""
        worlds, burnt = self._worlds, self._burnt
        places = len(worlds.tissue.layout.tile_slot) * TILE
        stage.launch(sample_worlds, worlds.count * len(burnt.place), [level, burnt])
        args = [worlds.tissue.constants, places, burnt, worlds.rows]
        stage.launch(stiffen_worlds, worlds.count * places, args)

    def record_reset(self, stage: Stage, mask: wp.array[Any]) -> None:
        burnt = self._burnt
        size = burnt.burn.shape[1]
        stage.launch(soften_worlds, self._worlds.count * size, [mask, burnt, self._worlds.rows])
