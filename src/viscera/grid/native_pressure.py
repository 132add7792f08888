"""The projection's loops in C for cpu: sixteen cells at once, a block of 1024 entries for each element of a launch.

Same arithmetic as the plain kernels of `pressure.py`, up to the last bits. Rims need no mask: their inverse is 0, and
so is what is computed for them.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.shape import GridShape, Three
from viscera.native import fill, on_cpu

wp.set_module_options({"enable_backward": False})

_BLOCK = """
const Place row = shape.row, layer = shape.layer;
const bool deep = shape.nz > 1;
const Place from = layer + 1024 * (Place)block, all = layer * (1 + (Place)shape.nz);
const Place to = from + 1024 < all ? from + 1024 : all;
$before
for (Place t = from; t < to; t += 16) {
$each
}
$after
"""
"""A loop over the tiles of a block."""

_AROUND = """
const float *ax = faces.x.data, *ay = faces.y.data, *az = faces.z.data;
const auto around = [&](const float* p, Place t) {
    FUSED
    V total = LOAD(ax + t) * LOAD(p + t - 1) + LOAD(ax + t + 1) * LOAD(p + t + 1);
    total += LOAD(ay + t) * LOAD(p + t - row) + LOAD(ay + t + row) * LOAD(p + t + row);
    if (deep) total += LOAD(az + t) * LOAD(p + t - layer) + LOAD(az + t + layer) * LOAD(p + t + layer);
    return total;
};
const auto all_faces = [&](Place t) {
    FUSED
    V total = LOAD(ax + t) + LOAD(ax + t + 1) + LOAD(ay + t) + LOAD(ay + t + row);
    if (deep) total += LOAD(az + t) + LOAD(az + t + layer);
    return total;
};
const V none = FILL(0.0f);
"""
"""Of one layer nothing opens up or down: unless a side there is open, which `make` refuses."""

_COLOUR = """
const M mine = ((PLACES((int)from) & 1) == FILL_INT(colour));
"""


def _loop(each: str, before: str = "", after: str = "") -> str:
    return on_cpu(fill(_BLOCK, before=before, each=each, after=after))


_DIVERGENCE = _loop(
    """
V out = through(faces.x, velocity.x, solid.x, t + 1) - through(faces.x, velocity.x, solid.x, t);
out += through(faces.y, velocity.y, solid.y, t + row) - through(faces.y, velocity.y, solid.y, t);
if (deep) out += through(faces.z, velocity.z, solid.z, t + layer) - through(faces.z, velocity.z, solid.z, t);
STORE(needed.data + t, LOAD(inverse.data + t) > none ? spacing * LOAD(source.data + t) - out : none);
""",
    before="""
const V none = FILL(0.0f);
const auto through = [&](auto& a, auto& fluid, auto& s, Place t) {
    FUSED
    const V share = LOAD(a.data + t);
    return share * LOAD(fluid.data + t) + (1.0f - share) * LOAD(s.data + t);
};
""",
)

_SUM = _loop(
    """
const V b = LOAD(needed.data + t);
first += b;
second += b * b;
third += LOAD(inverse.data + t) > none ? FILL(1.0f) : none;
""",
    before="const V none = FILL(0.0f); V first = none, second = none, third = none;",
    after="part.data[block] = wp::vec_t<3, double>(SUM(first), SUM(second), SUM(third));",
)

_MEAN = _loop(
    """
STORE(residual.data + t, LOAD(inverse.data + t) > none ? LOAD(residual.data + t) - mean : none);
""",
    before="const V none = FILL(0.0f); const float mean = (float)numbers.data[3];",
)

_PRESSURE = _loop(
    """
const V done = all_faces(t) * LOAD(p.data + t) - around(p.data, t);
STORE(residual.data + t, LOAD(inverse.data + t) > none ? LOAD(residual.data + t) - done : none);
""",
    before=_AROUND,
)

_RELAX = _loop(
    """
const V next = LOAD(inverse.data + t) * (LOAD(needed.data + t) + around(p.data, t));
STORE(p.data + t, mine ? next : LOAD(p.data + t));
""",
    before=_AROUND + _COLOUR,
)

_RELAX_FIRST = _loop(
    """
STORE(p.data + t, mine ? LOAD(inverse.data + t) * LOAD(needed.data + t) : LOAD(p.data + t));
""",
    before=_COLOUR,
)

_RESIDUAL = _loop(
    """
const V done = all_faces(t) * LOAD(p.data + t) - around(p.data, t);
const V left = LOAD(inverse.data + t) > none ? LOAD(needed.data + t) - done : none;
STORE(residual.data + t, mine ? left : none);
""",
    before=_AROUND + _COLOUR,
)

_APPLY = _loop(
    """
const V own = all_faces(t) * LOAD(z.data + t) - around(z.data, t);
const V image_of = LOAD(inverse.data + t) > none ? own : none;
STORE(image.data + t, image_of);
first += image_of * LOAD(residual.data + t);
second += image_of * image_of;
third += image_of * LOAD(moved.data + t);
""",
    before=_AROUND + "V first = none, second = none, third = none;",
    after="part.data[block] = wp::vec_t<3, double>(SUM(first), SUM(second), SUM(third));",
)

_TAKE = _loop(
    """
const V way = LOAD(z.data + t) + beta * LOAD(direction.data + t);
const V next = LOAD(image.data + t) + beta * LOAD(moved.data + t);
const V left = LOAD(residual.data + t) - alpha * next;
STORE(direction.data + t, way);
STORE(moved.data + t, next);
STORE(p.data + t, LOAD(p.data + t) + alpha * way);
STORE(residual.data + t, left);
first += left * left;
""",
    before="const float alpha = (float)numbers.data[0], beta = (float)numbers.data[1]; V first = FILL(0.0f);",
    after="part.data[block] = wp::vec_t<3, double>(SUM(first), 0.0, 0.0);",
)

_SUBTRACT = on_cpu("""
const Place row = shape.row, layer = shape.layer;
const Place from = layer + 1024 * (Place)block, all = layer * (2 + (Place)shape.nz);
const Place to = from + 1024 < all ? from + 1024 : all;
const V none = FILL(0.0f);
for (Place t = from; t < to; t += 16) {
    const auto one = [&](auto& out, auto& a, auto& s, Place step) {
        const V next = LOAD(out.data + t) - LOAD(p.data + t) + LOAD(p.data + t - step);
        STORE(out.data + t, LOAD(a.data + t) > none ? next : LOAD(s.data + t));
    };
    one(velocity.x, faces.x, solid.x, 1);
    one(velocity.y, faces.y, solid.y, row);
    one(velocity.z, faces.z, solid.z, layer);
}
""")

_GATHER = on_cpu("""
const int k = 1 + line / shape.ny, j = 1 + line % shape.ny;
const int x = fine.nx > 1 ? 2 : 1, y = fine.ny > 1 ? 2 : 1, z = fine.nz > 1 ? 2 : 1;
float* to = needed.data + (Place)k * shape.layer + (Place)j * shape.row;
for (int i = 1; i <= shape.nx; ++i) to[i] = 0.0f;
for (int b = 0; b < z; ++b)
    for (int a = 0; a < y; ++a) {
        const Place fine_k = (k - 1) * z + 1 + b, fine_j = (j - 1) * y + 1 + a;
        const float* from = residual.data + fine_k * fine.layer + fine_j * fine.row;
        if (x == 2) for (int i = 1; i <= shape.nx; ++i) to[i] += from[2 * i - 1] + from[2 * i];
        else for (int i = 1; i <= shape.nx; ++i) to[i] += from[i];
    }
""")

_SPREAD = on_cpu("""
const int k = 1 + line / shape.ny, j = 1 + line % shape.ny;
const Place at = (Place)k * shape.layer + (Place)j * shape.row;
const Place from = (Place)(shape.nz > 1 ? (k + 1) / 2 : k) * coarse.layer
                 + (Place)(shape.ny > 1 ? (j + 1) / 2 : j) * coarse.row;
const int first = 1 + ((int)(at + 1) + colour) % 2;
const Place x = shape.nx > 1 ? 1 - 2 * (first % 2) : 0;
const Place y = shape.ny > 1 ? (1 - 2 * (j % 2)) * (Place)coarse.row : 0;
const Place z = shape.nz > 1 ? (1 - 2 * (k % 2)) * (Place)coarse.layer : 0;
const float* found = coarse_p.data;
const float per_x = 0.25f / coarse.unit[0], per_y = 0.25f / coarse.unit[1], per_z = 0.25f / coarse.unit[2];
const auto a_quarter = [&](V near, V far, V open, float per) { FUSED return near + per * open * (far - near); };
const float* open_y = coarse_faces.y.data + (y > 0 ? y : 0);
const float* open_z = coarse_faces.z.data + (z > 0 ? z : 0);
const float* open_x = coarse_faces.x.data + (x > 0 ? x : 0);
const auto along_y = [&](Place c) { return a_quarter(LOAD(found + c), LOAD(found + c + y), LOAD(open_y + c), per_y); };
const auto column = [&](Place c) {
    const V low = along_y(c);
    return z == 0 ? low : a_quarter(low, along_y(c + z), LOAD(open_z + c), per_z);
};
float* to = p.data + at;
const float* inside = inverse.data + at;
for (int i = first; i <= shape.nx; i += 32) {
    const Place c = from + (shape.nx > 1 ? (i + 1) / 2 : i);
    const V value = a_quarter(column(c), column(c + x), LOAD(open_x + c), per_x);
    EACH(n) if (i + 2 * n <= shape.nx && inside[i + 2 * n] > 0.0f) to[i + 2 * n] += OF(value, n);
}
""")
"""Sixteen coarse cells at once: each has one cell of this colour in a row."""

A = wp.array[wp.float32]


@wp.func_native(_DIVERGENCE)
def _divergence(
    block: int,
    shape: GridShape,
    spacing: float,
    faces: Three,
    solid: Three,
    inverse: A,
    velocity: Three,
    source: A,
    needed: A,
): ...


@wp.func_native(_SUM)
def _sum(block: int, shape: GridShape, inverse: A, needed: A, part: wp.array[wp.vec3d]): ...


@wp.func_native(_MEAN)
def _mean(block: int, shape: GridShape, inverse: A, numbers: wp.array[wp.float64], residual: A): ...


@wp.func_native(_PRESSURE)
def _pressure(block: int, shape: GridShape, faces: Three, inverse: A, p: A, residual: A): ...


@wp.func_native(_RELAX)
def _relax(block: int, shape: GridShape, colour: int, faces: Three, inverse: A, needed: A, p: A): ...


@wp.func_native(_RELAX_FIRST)
def _relax_first(block: int, shape: GridShape, colour: int, inverse: A, needed: A, p: A): ...


@wp.func_native(_RESIDUAL)
def _residual(block: int, shape: GridShape, colour: int, faces: Three, inverse: A, needed: A, p: A, residual: A): ...


@wp.func_native(_APPLY)
def _apply(
    block: int,
    shape: GridShape,
    faces: Three,
    inverse: A,
    z: A,
    residual: A,
    moved: A,
    image: A,
    part: wp.array[wp.vec3d],
): ...


@wp.func_native(_TAKE)
def _take(
    block: int,
    shape: GridShape,
    numbers: wp.array[wp.float64],
    z: A,
    image: A,
    direction: A,
    moved: A,
    p: A,
    residual: A,
    part: wp.array[wp.vec3d],
): ...


@wp.func_native(_SUBTRACT)
def _subtract(
    block: int,
    shape: GridShape,
    faces: Three,
    solid: Three,
    p: A,
    velocity: Three,
): ...


@wp.func_native(_GATHER)
def _gather(line: int, fine: GridShape, shape: GridShape, residual: A, needed: A): ...


@wp.func_native(_SPREAD)
def _spread(
    line: int, shape: GridShape, coarse: GridShape, colour: int, inverse: A, coarse_faces: Three, coarse_p: A, p: A
): ...


@wp.kernel
def find_divergence_blocks(
    first: int,
    shape: GridShape,
    spacing: float,
    faces: Three,
    solid: Three,
    inverse: A,
    velocity: Three,
    source: A,
    needed_out: A,
):
    _divergence(
        first + wp.tid(),
        shape,
        spacing,
        faces,
        solid,
        inverse,
        velocity,
        source,
        needed_out,
    )


@wp.kernel
def sum_needed_blocks(
    first: int, shape: GridShape, count: int, parts: int, inverse: A, needed: A, part_out: wp.array[wp.vec3d]
):
    _sum(first + wp.tid(), shape, inverse, needed, part_out)


@wp.kernel
def take_mean_blocks(first: int, shape: GridShape, inverse: A, numbers: wp.array[wp.float64], residual_out: A):
    _mean(first + wp.tid(), shape, inverse, numbers, residual_out)


@wp.kernel
def take_pressure_blocks(first: int, shape: GridShape, faces: Three, inverse: A, p: A, residual_out: A):
    _pressure(first + wp.tid(), shape, faces, inverse, p, residual_out)


@wp.kernel
def relax_blocks(first: int, shape: GridShape, colour: int, faces: Three, inverse: A, needed: A, p_out: A):
    _relax(first + wp.tid(), shape, colour, faces, inverse, needed, p_out)


@wp.kernel
def relax_first_blocks(first: int, shape: GridShape, colour: int, inverse: A, needed: A, p_out: A):
    _relax_first(first + wp.tid(), shape, colour, inverse, needed, p_out)


@wp.kernel
def find_residual_blocks(
    first: int,
    shape: GridShape,
    colour: int,
    faces: Three,
    inverse: A,
    needed: A,
    p: A,
    residual_out: A,
):
    _residual(first + wp.tid(), shape, colour, faces, inverse, needed, p, residual_out)


@wp.kernel
def apply_matrix_blocks(
    first: int,
    shape: GridShape,
    count: int,
    parts: int,
    faces: Three,
    inverse: A,
    z: A,
    residual: A,
    moved: A,
    image_out: A,
    part_out: wp.array[wp.vec3d],
):
    _apply(first + wp.tid(), shape, faces, inverse, z, residual, moved, image_out, part_out)


@wp.kernel
def take_direction_blocks(
    first: int,
    shape: GridShape,
    count: int,
    parts: int,
    numbers: wp.array[wp.float64],
    z: A,
    image: A,
    direction_out: A,
    moved_out: A,
    p_out: A,
    residual_out: A,
    part_out: wp.array[wp.vec3d],
):
    _take(first + wp.tid(), shape, numbers, z, image, direction_out, moved_out, p_out, residual_out, part_out)


@wp.kernel
def subtract_gradient_blocks(
    first: int,
    shape: GridShape,
    faces: Three,
    solid: Three,
    p: A,
    velocity_out: Three,
):
    _subtract(first + wp.tid(), shape, faces, solid, p, velocity_out)


@wp.kernel
def gather_residual_lines(first: int, fine: GridShape, shape: GridShape, residual: A, needed_out: A):
    _gather(first + wp.tid(), fine, shape, residual, needed_out)


@wp.kernel
def spread_coarse_lines(
    first: int,
    shape: GridShape,
    coarse: GridShape,
    colour: int,
    inverse: A,
    coarse_faces: Three,
    coarse_p: A,
    p_out: A,
):
    _spread(first + wp.tid(), shape, coarse, colour, inverse, coarse_faces, coarse_p, p_out)
