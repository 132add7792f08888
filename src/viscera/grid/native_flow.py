"""The loops in C for cpu that carry velocity and substances: a row of cells for each element, sixteen cells at once.

Same arithmetic as `carry`, `correct`, `lift` and `diffuse` of `flow.py`, up to the last bits.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.shape import GridShape, Three
from viscera.native import fill, on_cpu

wp.set_module_options({"enable_backward": False})

_ROW = """
const Place row = shape.row, layer = shape.layer;
const int rows = shape.ny + 1, k = 1 + line / rows, j = 1 + line % rows;
const int last_x = shape.nx + (axis == 0), last_y = shape.ny + (axis == 1), last_z = shape.nz + (axis == 2);
const Place up_y = last_y > 1 ? row : 0, up_z = last_z > 1 ? layer : 0;
const float* pu = velocity.x.data;
const float* pv = velocity.y.data;
const float* pw = velocity.z.data;
// Of three numbers along x, y, z: the base entry of a place and the shares of its upper neighbours.
struct Spot { I entry; V x, y, z; };
const auto spot = [&](V x, V y, V z) {
    Spot at;
    const auto along = [&](V g, int last, V& share) {
        const V kept = AT_MOST(AT_LEAST(g, 1.0f), (float)last);
        const I most = FILL_INT(last > 2 ? last - 1 : 1);
        const I whole = __builtin_convertvector(kept, I);
        const I base = whole < most ? whole : most;
        share = kept - REAL(base);
        return base;
    };
    const I bx = along(x, last_x, at.x), by = along(y, last_y, at.y), bz = along(z, last_z, at.z);
    at.entry = bz * FILL_INT((int)layer) + by * FILL_INT((int)row) + bx;
    return at;
};
const auto mix = [](V a, V b, V t) { FUSED return a + t * (b - a); };
// The mean of four faces around.
const auto mean = [&](const float* f, Place a, Place b) {
    return 0.25f * (LOAD(f) + LOAD(f - a) + LOAD(f + b) + LOAD(f + b - a));
};
if (j <= last_y && k <= last_z) {
    const Place start = (Place)k * layer + (Place)j * row;
    for (int i = 1; i <= last_x; i += 16) {
        const Place t = start + i;
        V x, y, z;
        if (axis == 0) { x = LOAD(pu + t); y = mean(pv + t, 1, row); z = mean(pw + t, 1, layer); }
        else if (axis == 1) { x = mean(pu + t, row, 1); y = LOAD(pv + t); z = mean(pw + t, row, layer); }
        else if (axis == 2) { x = mean(pu + t, layer, 1); y = mean(pv + t, layer, row); z = LOAD(pw + t); }
        else {
            x = 0.5f * (LOAD(pu + t) + LOAD(pu + t + 1));
            y = 0.5f * (LOAD(pv + t) + LOAD(pv + t + row));
            z = 0.5f * (LOAD(pw + t) + LOAD(pw + t + layer));
        }
        x *= cells_per_speed; y *= cells_per_speed; z *= cells_per_speed;
        const V gx = REAL(PLACES(i)), gy = FILL((float)j), gz = FILL((float)k);
        V result;
        $each
        if (i + 15 <= last_x) STORE(out.data + t, result);
        else for (int c = 0; i + c <= last_x; ++c) out.data[t + c] = result[c];
    }
}
"""

_EIGHT = """
const V a = FETCH($from, at.entry), b = FETCH($from + 1, at.entry);
const V d = FETCH($from + up_y, at.entry), e = FETCH($from + up_y + 1, at.entry);
"""

_UPPER = """
const V f = FETCH($from + up_z, at.entry), g = FETCH($from + up_z + 1, at.entry);
const V h = FETCH($from + up_z + up_y, at.entry), m = FETCH($from + up_z + up_y + 1, at.entry);
"""

_SAMPLE = """
{
    const Spot at = $spot;
    $eight
    V low = mix(mix(a, b, at.x), mix(d, e, at.x), at.y);
    $limits
    if (up_z) {
        $upper
        low = mix(low, mix(mix(f, g, at.x), mix(h, m, at.x), at.y), at.z);
        $more
    }
    $to = low;
}
"""


def _sample(spot: str, source: str, to: str, limits: str = "", more: str = "") -> str:
    eight, upper = fill(_EIGHT, **{"from": source}), fill(_UPPER, **{"from": source})
    return fill(_SAMPLE, spot=spot, eight=eight, upper=upper, limits=limits, more=more, to=to)


_CARRY = on_cpu(fill(_ROW, each=_sample("spot(gx - x, gy - y, gz - z)", "values.data", "result")))

_CORRECT = on_cpu(
    fill(
        _ROW,
        each="V back, least, most, there;"
        + _sample("spot(gx + x, gy + y, gz + z)", "carried.data", "back")
        + _sample(
            "spot(gx - x, gy - y, gz - z)",
            "values.data",
            "there",
            "least = AT_MOST(AT_MOST(a, b), AT_MOST(d, e)); most = AT_LEAST(AT_LEAST(a, b), AT_LEAST(d, e));",
            """least = AT_MOST(least, AT_MOST(AT_MOST(f, g), AT_MOST(h, m)));
           most = AT_LEAST(most, AT_LEAST(AT_LEAST(f, g), AT_LEAST(h, m)));""",
        )
        + "result = LOAD(carried.data + t) + 0.5f * (LOAD(values.data + t) - back);"
        + "result = AT_MOST(AT_LEAST(result, least), most);",
    )
)

_LIFT = on_cpu("""
const Place layer = shape.layer;
const Place from = layer + 1024 * (Place)block, all = layer * (2 + (Place)shape.nz);
const Place to = from + 1024 < all ? from + 1024 : all;
const float half = 0.5f * numbers.data[place];
for (Place t = from; t < to; t += 16)
    STORE(w.data + t, LOAD(w.data + t) + half * (LOAD(value.data + t) + LOAD(value.data + t - layer)));
""")

_DIFFUSE = on_cpu("""
const Place row = shape.row, layer = shape.layer;
const Place from = layer + 1024 * (Place)block, all = layer * ((axis == 2 ? 2 : 1) + (Place)shape.nz);
const Place to = from + 1024 < all ? from + 1024 : all;
const Place back = axis == 0 ? 1 : axis == 1 ? row : axis == 2 ? layer : 0;
const float a = numbers.data[place];
const V none = FILL(0.0f), one = FILL(1.0f);
const M mine = ((PLACES((int)from) & 1) == FILL_INT(colour));
for (Place t = from; t < to; t += 16) {
    const M open = mine & (LOAD(face_open.data + t) > none);
    if (!ANY(open)) continue;
    V count = none, total = none;
    const auto add = [&](Place n) {
        M counts = LOAD(face_open.data + n) > none;
        if (no_slip) counts |= FILL_INT(-1);
        counts &= (LOAD(cells.data + n) + LOAD(cells.data + n - back)) > none;
        count += counts ? one : none;
        total += counts ? LOAD(values.data + n) : none;
    };
    add(t - 1); add(t + 1); add(t - row); add(t + row); add(t - layer); add(t + layer);
    const V next = (LOAD(before.data + t) + a * total) / (1.0f + a * count);
    STORE(values.data + t, open ? next : LOAD(values.data + t));
}
""")

A = wp.array[wp.float32]


@wp.func_native(_CARRY)
def _carry(line: int, shape: GridShape, axis: int, cells_per_speed: float, velocity: Three, values: A, out: A): ...


@wp.func_native(_CORRECT)
def _correct(
    line: int, shape: GridShape, axis: int, cells_per_speed: float, velocity: Three, values: A, carried: A, out: A
): ...


@wp.func_native(_LIFT)
def _lift(block: int, shape: GridShape, place: int, numbers: A, value: A, w: A): ...


@wp.kernel
def lift_blocks(first: int, shape: GridShape, place: int, numbers: A, value: A, w_out: A):
    _lift(first + wp.tid(), shape, place, numbers, value, w_out)


@wp.func_native(_DIFFUSE)
def _diffuse(
    block: int,
    shape: GridShape,
    axis: int,
    colour: int,
    place: int,
    no_slip: int,
    numbers: A,
    cells: A,
    face_open: A,
    before: A,
    values: A,
): ...


@wp.kernel
def diffuse_blocks(
    first: int,
    shape: GridShape,
    axis: int,
    colour: int,
    place: int,
    no_slip: int,
    numbers: A,
    cells: A,
    face_open: A,
    before: A,
    values_out: A,
):
    _diffuse(first + wp.tid(), shape, axis, colour, place, no_slip, numbers, cells, face_open, before, values_out)


@wp.kernel
def carry_rows(
    first: int, shape: GridShape, axis: int, cells_per_speed: float, velocity: Three, values: A, carried_out: A
):
    _carry(first + wp.tid(), shape, axis, cells_per_speed, velocity, values, carried_out)


@wp.kernel
def correct_rows(
    first: int,
    shape: GridShape,
    axis: int,
    cells_per_speed: float,
    velocity: Three,
    values: A,
    carried: A,
    corrected_out: A,
):
    _correct(first + wp.tid(), shape, axis, cells_per_speed, velocity, values, carried, corrected_out)
