"""Arrays that the kernels of `viscera.heat` share, and what they mean."""

from __future__ import annotations

import warp as wp

TILE = wp.constant(16)
"""Texels of one row that are stepped together: the floats of a vector register."""

BLOCK = 128
"""Elements that stay on one core: of tiles, so that a small skin is shared evenly; of texels it could be more."""

SLIVER = wp.constant(-2)
PLAIN = wp.constant(-1)
"""In `Fabric.border_of`: part of another body; a body of one texel away from any border."""

TINY = wp.constant(1.0e-20)
"""Keeps divisions finite where a surface has no area or nothing is conducted."""


@wp.struct
class Rates:
    """Live numbers of the step; from an array, as scalars are frozen when a program is recorded."""

    conduction: float
    """Heat that crosses a square of the layer within a step, per kelvin between its sides [J/K]."""
    capacity: float
    """Of the layer, per area [J/(K·m²)]."""
    loss: float
    """λ: part of its temperature that a texel loses within a step, as the stages need it."""
    gain: float
    """What it gains from outside within a step [K]; as λ to the true loss."""
    dt: float
    """How long power comes in within a step [s]; as λ to the true loss."""
    limit: float
    """Largest eigenvalue (of a step's matrix) for which the step is stable."""


@wp.struct
class Conductances:
    """Maps have an entry per texel of the texture, and a row more; `border` arrays one per body of `Bodies.border`."""

    width: int
    tile_texel: wp.array(dtype=wp.int32)
    """First texel of each tile of `TILE` texels that holds skin."""
    tile_links: wp.array(dtype=wp.int32)
    """Where the tile's links begin in `lane_links`; -1 for a tile without any."""
    lane_links: wp.array(dtype=wp.int32)
    """First links of the tile's texels and the end of the last one's, `TILE` + 1 numbers per tile."""

    inverse: wp.array(dtype=wp.float32)
    """One over the capacity of a body, at its host; 0 where there is none [K/J]."""
    left: wp.array(dtype=wp.float32)
    bottom: wp.array(dtype=wp.float32)
    shear: wp.array(dtype=wp.float32)
    """To the texel on the left, to the one below, and to the one below and left; the two others of those four get the
    opposite. Heat that crosses within a step, per kelvin [J/K]."""
    link: wp.array(dtype=wp.float32)
    link_texel: wp.array(dtype=wp.int32)

    border: wp.array(dtype=wp.int32)
    member_start: wp.array(dtype=wp.int32)
    member: wp.array(dtype=wp.int32)
    share: wp.array(dtype=wp.float32)
    """Part of its body's capacity that each sliver is."""


@wp.struct
class Fabric:
    """What conductances are made from: fixed numbers of `Bodies`, and room for what lies between."""

    factor_left: wp.array(dtype=wp.float32)
    factor_bottom: wp.array(dtype=wp.float32)
    factor_shear: wp.array(dtype=wp.float32)
    """½ where four whole texels meet: only there is the shear between them known."""
    link_start: wp.array(dtype=wp.int32)
    link_border: wp.array(dtype=wp.int32)
    link_seam: wp.array(dtype=wp.int32)
    link_side: wp.array(dtype=wp.vec2i)
    link_factor: wp.array(dtype=wp.float32)
    border_area: wp.array(dtype=wp.float32)
    border_place: wp.array(dtype=wp.vec3)
    cut: wp.array(dtype=wp.float32)
    """f of each body."""
    border_of: wp.array(dtype=wp.int32)
    """Place in `border` of each texel's body, or `SLIVER` or `PLAIN`."""
