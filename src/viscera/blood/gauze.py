"""How a gauze on an organ reddens: the blood that has come under it, per square millimetre, and the cloth's colour.

Seen from above, the gauze's square is cut into cells of side c. In each, with V_j the volume and b_j the part of blood
of the film's particles in it, the cloth is as red as it has ever been wet with blood:

    t = Σ_j V_j b_j / c²,      s ← max(s, 1 − exp(−t/t₀)),      colour = white (1 − s) + red s  between cells' middles

t₀ is what colours cloth through. Volumes are summed as whole picolitres, so the order does not matter. The document
only leaves blood out of the picture where an obstacle is (Kvick §6.2.6); its cloth has no colour.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.film.state import STAYS
from viscera.blood.views import FilmView

wp.set_module_options({"enable_backward": False})

CELLS = 14
"""On a side."""

COLOURING = wp.constant(0.06e-3)
"""t₀ [m]; tuned: a film at rest, 0.24 mm, is red, a trail pink."""

SOAKED_RED = wp.constant(wp.vec3(0.52, 0.035, 0.04))
"""Of cloth full of blood, sRGB; tuned for appearance."""

_LITTLE = wp.constant(1.0e-15)
"""A picolitre [m³]."""


@wp.struct
class Square:
    """Where the gauze lies, seen from above [m]."""

    low: wp.vec2
    side: float
    blood: int
    """Which of the film's fluids is blood."""


@wp.kernel
def collect(
    # params
    square: Square,
    # in
    film: FilmView,
    # out
    volume_out: wp.array2d(dtype=wp.int64),
):
    """Whole numbers: the sum is the same in any order. On cpu launched by one core, as atomics there are plain."""
    i = wp.tid()
    if i < film.count[0] and film.fate[i] == STAYS and film.normal[i][2] > 0.0:
        x = (film.position[i][0] - square.low[0]) * float(CELLS) / square.side
        y = (film.position[i][1] - square.low[1]) * float(CELLS) / square.side
        if x >= 0.0 and y >= 0.0 and x < float(CELLS) and y < float(CELLS):
            red = wp.int64(float(film.volume[i]) * film.fluid[i][square.blood])
            wp.atomic_add(volume_out, int(y), int(x), red)


@wp.kernel
def soak(
    first: int,
    # params
    square: Square,
    # out
    volume_out: wp.array2d(dtype=wp.int64),
    stain_out: wp.array2d(dtype=wp.float32),
):
    """Also gets `volume_out` ready for the next time."""
    i = first + wp.tid()
    row = i // CELLS
    column = i % CELLS
    cell = square.side / float(CELLS)
    thickness = _LITTLE * float(volume_out[row, column]) / (cell * cell)
    stain_out[row, column] = wp.max(stain_out[row, column], 1.0 - wp.exp(-thickness / COLOURING))
    volume_out[row, column] = wp.int64(0)


@wp.kernel
def tint(
    first: int,
    # params
    texel: wp.array(dtype=wp.int32),
    place: wp.array(dtype=wp.vec2),
    white: wp.array(dtype=wp.vec3),
    # in
    stain: wp.array2d(dtype=wp.float32),
    # out
    ink_out: wp.array(dtype=wp.vec4ub),
):
    """Colour of each texel of the cloth; `place` in cells, `white` as it is when dry."""
    i = first + wp.tid()
    x = wp.clamp(place[i][0] - 0.5, 0.0, float(CELLS) - 1.001)
    y = wp.clamp(place[i][1] - 0.5, 0.0, float(CELLS) - 1.001)
    c = int(x)
    r = int(y)
    low = wp.lerp(stain[r, c], stain[r, c + 1], x - float(c))
    high = wp.lerp(stain[r + 1, c], stain[r + 1, c + 1], x - float(c))
    share = wp.lerp(low, high, y - float(r))
    dry = white[i]
    # The weave still shows when it is wet.
    colour = 255.0 * wp.lerp(dry, wp.cw_mul(SOAKED_RED, 0.5 * (dry + wp.vec3(1.0, 1.0, 1.0))), share)
    ink_out[texel[i]] = wp.vec4ub(
        wp.uint8(colour[0] + 0.5), wp.uint8(colour[1] + 0.5), wp.uint8(colour[2] + 0.5), wp.uint8(255)
    )
