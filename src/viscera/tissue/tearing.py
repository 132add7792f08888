"""Tissue that is stretched beyond what it bears tears, burnt or not.

What counts is the stretch of a spring and that of its two neighbours in line, ½, ¼ and ¼, as in burning.py: tension
tears, an instrument that shoves one mass does not. Of springs in line with each other only the most stretched tears
within a frame: the load leaves the others, and the tear stays narrow. A mass keeps the least stretched of its springs,
so none flies off by itself, and strands tear through: whatever hangs together by a few long springs has shorter ones
behind them. A torn spring is cut, in its middle, across itself: what is drawn and touched follows as with a
blade.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.tissue.burning import mean_strains, opposite, spring_end
from viscera.tissue.cut_shadow import CutShadow
from viscera.tissue.cutting import pack_crossings
from viscera.tissue.kernels import Lattice, add_integer
from viscera.tissue.layout import TILE
from viscera.tissue.tissue import Tissue

wp.set_module_options({"enable_backward": False, "max_unroll": 0})

_TILE = wp.constant(TILE)

NONE = wp.constant(-1)
"""In `Tearing.kept`: a mass without springs."""


@dataclass(eq=False)
class Tearing:
    """Of the shadow of one lattice. Arrays have one entry per place unless said otherwise."""

    shadow: Tissue
    cuts: CutShadow
    there: Any
    """Springs that there were, per direction and place, uint8."""
    break_strain: Any
    one: Any
    """1 everywhere: `mean_strains` looks at burnt masses alone."""
    strain: Any
    """At each mass, per direction and place, float32."""
    stretch: Any
    """Of each spring with its neighbours, twice, over what it bears twice; -1 where there is none."""
    kept: Any
    """Of each mass, its least stretched spring, by direction and place, int32; it does not tear."""
    middle: Any
    """What `crossing` is for an axis spring that tore, int64, per axis."""
    torn: Any
    """Springs torn so far, burnt ones too, a port of int64."""


def make_tearing(shadow: Tissue, cuts: CutShadow) -> Tearing:
    params, layout, device = shadow.params, shadow.layout, shadow.device.warp
    number = np.zeros(len(params.nodes), dtype=np.int64) if params.material_of is None else params.material_of
    bears = np.ones(layout.slots, dtype=np.float32)
    bears[layout.slot_of_node] = np.array([one.break_strain for one in params.materials])[number]
    there = (shadow.constants.stiffness.numpy() > 0.0).astype(np.uint8)
    middle = pack_crossings(np.full(3, 0.5), np.eye(3))
    return Tearing(
        shadow,
        cuts,
        there=wp.array(there, dtype=wp.uint8, device=device),
        break_strain=wp.array(bears, dtype=wp.float32, device=device),
        one=wp.ones(layout.slots, dtype=wp.float32, device=device),
        strain=wp.zeros(13 * layout.slots, dtype=wp.float32, device=device),
        stretch=wp.full(13 * layout.slots, -1.0, dtype=wp.float32, device=device),
        kept=wp.full(layout.slots, int(NONE), dtype=wp.int32, device=device),
        middle=wp.array(middle, dtype=wp.int64, device=device),
        torn=shadow.device.port(1, wp.int64),
    )


def step_tearing(stage: Stage, tearing: Tearing) -> None:
    """What is stretched too far in the shadow is torn there, and cut."""
    tissue, state = tearing.shadow, tearing.shadow.state
    places = len(tissue.layout.tile_slot) * TILE
    lattice, one = tissue.constants, tearing.one
    stage.upload(state.live)
    motion = [state.live.array, state.position[0], state.velocity]
    stage.launch(mean_strains, places, [lattice, one, *motion, tearing.strain])
    args = [lattice, tearing.break_strain, tearing.strain]
    stage.launch(stretch_springs, places, [*args, tearing.stretch])
    stage.launch(keep_least, places, [lattice, tearing.stretch, tearing.kept])
    stage.launch(tear_most, places, [lattice, tearing.stretch, tearing.kept, lattice.stiffness])
    args = [lattice, tearing.there, tearing.middle, tearing.cuts.cut, tearing.cuts.crossing, tearing.torn.array]
    stage.launch(cut_torn, places, args)
    stage.download(tearing.torn)


@wp.kernel
def stretch_springs(
    first: int,
    # params
    lattice: Lattice,
    break_strain: wp.array(dtype=wp.float32),
    # in
    strain: wp.array(dtype=wp.float32),
    # out
    stretch_out: wp.array(dtype=wp.float32),
):
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    for d in range(13):
        row = d * lattice.slots
        stretch = float(-1.0)
        if float(lattice.stiffness[row + i]) > 0.0:
            j, _step = spring_end(lattice, tile, lane, d)
            stretch = (strain[row + i] + strain[row + j]) / (break_strain[i] + break_strain[j])
        stretch_out[row + i] = stretch


@wp.kernel
def keep_least(
    first: int,
    # params
    lattice: Lattice,
    # in
    stretch: wp.array(dtype=wp.float32),
    # out
    kept_out: wp.array(dtype=wp.int32),
):
    """Of a mass's springs the least stretched one; of several the first."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    kept = wp.int32(NONE)
    least = float(0.0)
    for d in range(13):
        row = d * lattice.slots
        below = opposite(lattice, tile, lane, d)
        if float(lattice.stiffness[row + i]) > 0.0 and (kept == NONE or stretch[row + i] < least):
            kept = row + i
            least = stretch[row + i]
        if float(lattice.stiffness[row + below]) > 0.0 and (kept == NONE or stretch[row + below] < least):
            kept = row + below
            least = stretch[row + below]
    kept_out[i] = kept


@wp.kernel
def tear_most(
    first: int,
    # params
    lattice: Lattice,
    # in
    stretch: wp.array(dtype=wp.float32),
    kept: wp.array(dtype=wp.int32),
    # out
    stiffness_out: wp.array(dtype=wp.float16),
):
    """A spring that bears no more, is stretched more than those before and behind it, and is nobody's last."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    for d in range(13):
        row = d * lattice.slots
        own = stretch[row + i]
        if own > 1.0 and kept[i] != row + i:
            j, _step = spring_end(lattice, tile, lane, d)
            most = own >= stretch[row + opposite(lattice, tile, lane, d)] and own > stretch[row + j]
            if most and kept[j] != row + i:
                stiffness_out[row + i] = wp.float16(0.0)


@wp.kernel
def cut_torn(
    first: int,
    # params
    lattice: Lattice,
    there: wp.array(dtype=wp.uint8),
    middle: wp.array(dtype=wp.int64),
    # out
    cut_out: wp.array(dtype=wp.uint8),
    crossing_out: wp.array(dtype=wp.int64),
    torn_out: wp.array(dtype=wp.int64),
):
    """Springs that were there, have no stiffness left and are not known as cut: torn here, or burnt (burning.py)."""
    index = first + wp.tid()
    tile = index // _TILE
    i = lattice.tile_slot[tile] + index - tile * _TILE
    for d in range(13):
        place = d * lattice.slots + i
        gone = there[place] != wp.uint8(0) and float(lattice.stiffness[place]) == 0.0
        if gone and cut_out[place] == wp.uint8(0):
            cut_out[place] = wp.uint8(1)
            add_integer(torn_out, 0, wp.int64(1))
            if d == 0:
                crossing_out[i] = middle[0]
            if d == 2:
                crossing_out[lattice.slots + i] = middle[1]
            if d == 8:
                crossing_out[2 * lattice.slots + i] = middle[2]
