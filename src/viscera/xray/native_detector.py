"""Beer and Lambert in C for cpu, 16 pixels of a row at once: `detector.find_primary`, in the same order of operations.

It is most of a picture's time: an exponential for each pixel and energy.
"""

from __future__ import annotations

import warp as wp

from viscera.native import fill, on_cpu
from viscera.xray.carm import ArmView
from viscera.xray.detector import MOST_MATERIALS, Lengths
from viscera.xray.projection import UNIT

wp.set_module_options({"enable_backward": False})

LANES = 16
"""Rows must be a whole number of so many pixels long."""

_ROW = fill(
    """
const int all = pixels * pixels;
const float half = 0.5f * (float)pixels, y = ((float)row + 0.5f - half) / focal;
for (int column = 0; column < pixels; column += 16) {
    const int pixel = row * pixels + column;
    const V light = LOAD(opening.data + pixel);
    if (!ANY(light != 0.0f)) {
        STORE(primary.data + pixel, FILL(0.0f));
        continue;
    }
    const V x = (REAL(PLACES(column)) + 0.5f - half) / focal;
    const V slant = $unit * ROOT(1.0f + x * x + y * y);
    V length[$most], total = 0.0f;
    for (int m = 0; m < materials; ++m) {
        const int at = m * all + pixel;
        length[m] = REAL(LOAD_INT(still.data + at) + LOAD_INT(moving.data + at)) * slant;
    }
    for (int k = 0; k < groups; ++k) {
        V depth = attenuation.data[k][0] * length[0];
        for (int m = 1; m < materials; ++m) depth += attenuation.data[k][m] * length[m];
        // detector.fading
        const V t = AT_MOST(AT_LEAST(depth, 0.0f), 80.0f) * 1.4426950408889634f;
        const V whole = __builtin_elementwise_floor(t + 0.5f), f = whole - t;
        const V small = 0.0096181291f + f * (0.0013333558f + f * 0.000154035f);
        const V power = 1.0f + f * (0.6931471805f + f * (0.2402265070f + f * (0.0555041087f + f * small)));
        const I bits = (127 - __builtin_convertvector(whole, I)) << 23;
        total += weight.data[k] * (power * __builtin_bit_cast(V, bits));
    }
    STORE(primary.data + pixel, light * total);
}
""",
    unit=UNIT,
    most=MOST_MATERIALS,
)


@wp.func_native(on_cpu(_ROW, fused=False))
def row_of_primary(
    row: int,
    pixels: int,
    focal: float,
    groups: int,
    materials: int,
    weight: wp.array(dtype=float),
    attenuation: wp.array(dtype=Lengths),
    still: wp.array2d(dtype=wp.int32),
    moving: wp.array2d(dtype=wp.int32),
    opening: wp.array(dtype=float),
    primary: wp.array(dtype=float),
): ...


@wp.kernel
def find_primary(
    first: int,
    # params
    pixels: int,
    groups: int,
    materials: int,
    # in
    arm: wp.array(dtype=ArmView),
    weight: wp.array(dtype=float),
    attenuation: wp.array(dtype=Lengths),
    still: wp.array2d(dtype=wp.int32),
    moving: wp.array2d(dtype=wp.int32),
    opening: wp.array(dtype=float),
    # out
    primary_out: wp.array(dtype=float),
):
    """A thread takes a row."""
    row = first + wp.tid()
    row_of_primary(
        row, pixels, arm[0].focal, groups, materials, weight, attenuation, still, moving, opening, primary_out
    )  # fmt: skip
