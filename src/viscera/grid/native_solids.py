"""The loops in C for cpu that find where fluid can be: sixteen corners, faces or cells at once.

Same arithmetic as the plain kernels of `solids.py`, up to the last bits. Corners farther than two cells from a bar are
not measured: their distance is large enough, and only its sign matters.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.shape import GridShape, Three
from viscera.native import fill, on_cpu

wp.set_module_options({"enable_backward": False})

_CORNERS = on_cpu("""
const Place row = shape.row, layer = shape.layer;
const int rows = shape.ny + 1, k = 1 + line / rows, j = 1 + line % rows;
const float y = origin[1] + spacing * (j - 1), z = origin[2] + spacing * (k - 1), reach = 2.0f * spacing;
const Place start = (Place)k * layer + (Place)j * row;
for (int i = 1; i <= shape.nx + 1; i += 16) {
    const Place t = start + i;
    V least = LOAD(still.data + t);
    const V x = origin[0] + spacing * REAL(PLACES(i - 1));
    for (int b = 0; b < bar_count.data[0]; ++b) {
        const float* bar = bars.data + 16 * b;
        const float wide = bar[6] + reach;
        if (y < SMALLER(bar[1], bar[4]) - wide || y > LARGER(bar[1], bar[4]) + wide) continue;
        if (z < SMALLER(bar[2], bar[5]) - wide || z > LARGER(bar[2], bar[5]) + wide) continue;
        const float ax = bar[3] - bar[0], ay = bar[4] - bar[1], az = bar[5] - bar[2];
        const float length = LARGER(ax * ax + ay * ay + az * az, 1.0e-12f);
        const V px = x - bar[0];
        const float py = y - bar[1], pz = z - bar[2];
        const V share = AT_MOST(AT_LEAST((px * ax + (py * ay + pz * az)) / length, 0.0f), 1.0f);
        const V dx = px - share * ax, dy = py - share * ay, dz = pz - share * az;
        least = AT_MOST(least, ROOT(dx * dx + dy * dy + dz * dz) - bar[6]);
    }
    if (i + 15 <= shape.nx + 1) STORE(distance.data + t, least);
    else for (int c = 0; i + c <= shape.nx + 1; ++c) distance.data[t + c] = least[c];
}
""")

_BLOCK = """
const Place row = shape.row, layer = shape.layer;
const Place from = layer + 1024 * (Place)block, all = layer * ($layers + (Place)shape.nz);
const Place to = from + 1024 < all ? from + 1024 : all;
const V none = FILL(0.0f);
$before
for (Place t = from; t < to; t += 16) {
$each
}
"""


def _loop(layers: int, each: str, before: str = "") -> str:
    """Over layers with cells (1), or over those with faces (2)."""
    return on_cpu(fill(_BLOCK, layers=layers, before=before, each=each))


_FACES = _loop(
    2,
    """
const float* d = distance.data + t;
const V here = LOAD(d), x = LOAD(d + 1), y = LOAD(d + row), z = LOAD(d + layer);
const V a = share(here, y, z, LOAD(d + row + layer));
const V b = share(here, x, z, LOAD(d + 1 + layer));
const V c = share(here, x, y, LOAD(d + 1 + row));
STORE(faces.x.data + t, a);
STORE(faces.y.data + t, b);
STORE(faces.z.data + t, c);
V sx = LOAD(drift.x.data + t), sy = LOAD(drift.y.data + t), sz = LOAD(drift.z.data + t);
if (bar_count.data[0] > 0 && ANY(AT_MOST(a, AT_MOST(b, c)) < FILL(1.0f))) {
    EACH(lane) {
        if (a[lane] >= 1.0f && b[lane] >= 1.0f && c[lane] >= 1.0f) continue;
        const Place e = t + lane;
        const int k = (int)(e / layer), j = (int)((e - k * layer) / row), i = (int)(e - k * layer - j * row);
        const float px = origin[0] + spacing * (i - 0.5f), py = origin[1] + spacing * (j - 0.5f);
        const float pz = origin[2] + spacing * (k - 0.5f);
        float least = spacing;
        for (int n = 0; n < bar_count.data[0]; ++n) {
            const float* bar = bars.data + 16 * n;
            const float ax = bar[3] - bar[0], ay = bar[4] - bar[1], az = bar[5] - bar[2];
            const float qx = px - bar[0], qy = py - bar[1], qz = pz - bar[2];
            float s = (qx * ax + qy * ay + qz * az) / LARGER(ax * ax + ay * ay + az * az, 1.0e-12f);
            s = SMALLER(LARGER(s, 0.0f), 1.0f);
            const float dx = qx - s * ax, dy = qy - s * ay, dz = qz - s * az;
            const float away = ROOT1(dx * dx + dy * dy + dz * dz) - bar[6];
            if (away < least) {
                least = away;
                sx[lane] = (1.0f - s) * bar[7] + s * bar[10];
                sy[lane] = (1.0f - s) * bar[8] + s * bar[11];
                sz[lane] = (1.0f - s) * bar[9] + s * bar[12];
            }
        }
    }
}
if (inflow != 0.0f) EACH(lane) if ((t + lane) % row == 1) sx[lane] = inflow;
STORE(solid.x.data + t, sx);
STORE(solid.y.data + t, sy);
STORE(solid.z.data + t, sz);
""",
    before="""
const auto share = [&](V a, V b, V c, V d) {
    FUSED
    const V inside = AT_LEAST(a, 0.0f) + AT_LEAST(b, 0.0f) + AT_LEAST(c, 0.0f) + AT_LEAST(d, 0.0f);
    const V whole = ABS(a) + ABS(b) + ABS(c) + ABS(d);
    const V part = inside / AT_LEAST(whole, 1.0e-20f);
    return part < FILL(0.05f) ? none : part;
};
""",
)

_AROUND = """
const V total = LOAD(faces.x.data + t) + LOAD(faces.x.data + t + 1) + LOAD(faces.y.data + t)
    + LOAD(faces.y.data + t + row) + LOAD(faces.z.data + t) + LOAD(faces.z.data + t + layer);
"""

_CELLS = _loop(1, _AROUND + "STORE(fluid.data + t, total > FILL(0.3f) ? LOAD(box.data + t) : none);")

_CLOSE = _loop(
    2,
    """
const V here = LOAD(fluid.data + t);
STORE(faces.x.data + t, LOAD(faces.x.data + t) * here * LOAD(fluid.data + t - 1));
STORE(faces.y.data + t, LOAD(faces.y.data + t) * here * LOAD(fluid.data + t - row));
STORE(faces.z.data + t, LOAD(faces.z.data + t) * here * LOAD(fluid.data + t - layer));
""",
)

_INVERT = _loop(
    1,
    _AROUND
    + """
const M open = total > FILL(1.0e-6f);
V one = open ? 1.0f / AT_LEAST(total, 1.0e-6f) : none;
const Place in_layer = t % layer;
EACH(lane) {
    const Place e = in_layer + lane < layer ? in_layer + lane : in_layer + lane - layer;
    const Place j = e / row, i = e - j * row;
    if (i < 1 || i > shape.nx || j < 1 || j > shape.ny) one[lane] = 0.0f;
}
STORE(inverse.data + t, one);
""",
)

_COARSEN = on_cpu("""
const int rows = shape.ny + 1, k = 1 + line / rows, j = 1 + line % rows;
const int sx = fine.nx > 1 ? 2 : 1, sy = fine.ny > 1 ? 2 : 1, sz = fine.nz > 1 ? 2 : 1;
// The first fine cell of a coarse one, how many it has, and the fine face in its lower face.
const auto first = [](int coarse, int step) { return step * (coarse - 1) + 1; };
const auto many = [](int coarse, int step, int cells) { return step == 2 && 2 * coarse <= cells ? 2 : 1; };
const auto face = [](int coarse, int step, int cells) {
    const int at = step * (coarse - 1) + 1;
    return step == 2 && at > cells + 1 ? cells + 1 : at;
};
const auto shortened = [](int coarse, int step, int cells, float rim) {
    const float half = step == 2 ? 0.5f : 1.0f;
    return coarse == 1 || coarse == cells + 1 ? half * rim : half;
};
const auto entry = [&](int k, int j, int i) { return (Place)k * fine.layer + (Place)j * fine.row + i; };
const int fj = first(j, sy), fk = first(k, sz), mj = many(j, sy, fine.ny), mk = many(k, sz, fine.nz);
const int row_j = face(j, sy, fine.ny), row_k = face(k, sz, fine.nz);
const Place to = (Place)k * shape.layer + (Place)j * shape.row;
for (int i = 1; i <= shape.nx + 1; ++i) {
    const int fi = first(i, sx), mi = many(i, sx, fine.nx), at = face(i, sx, fine.nx);
    float x = 0.0f, y = 0.0f, z = 0.0f;
    if (j <= shape.ny && k <= shape.nz)
        for (int b = 0; b < mk; ++b)
            for (int a = 0; a < mj; ++a) x += finer.x.data[entry(fk + b, fj + a, at)];
    if (i <= shape.nx && k <= shape.nz)
        for (int b = 0; b < mk; ++b)
            for (int a = 0; a < mi; ++a) y += finer.y.data[entry(fk + b, row_j, fi + a)];
    if (i <= shape.nx && j <= shape.ny)
        for (int b = 0; b < mj; ++b)
            for (int a = 0; a < mi; ++a) z += finer.z.data[entry(row_k, fj + b, fi + a)];
    faces.x.data[to + i] = x * shortened(i, sx, shape.nx, shape.rim[0]);
    faces.y.data[to + i] = y * shortened(j, sy, shape.ny, shape.rim[1]);
    faces.z.data[to + i] = z * shortened(k, sz, shape.nz, shape.rim[2]);
}
""")

A = wp.array[wp.float32]
N = wp.array[wp.int32]


@wp.func_native(_CORNERS)
def _corners(
    line: int, shape: GridShape, origin: wp.vec3, spacing: float, still: A, bar_count: N, bars: A, distance: A
): ...


@wp.func_native(_FACES)
def _faces(
    block: int,
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    inflow: float,
    distance: A,
    drift: Three,
    bar_count: N,
    bars: A,
    faces: Three,
    solid: Three,
): ...


@wp.func_native(_CELLS)
def _cells(block: int, shape: GridShape, box: A, faces: Three, fluid: A): ...


@wp.func_native(_CLOSE)
def _close(block: int, shape: GridShape, fluid: A, faces: Three): ...


@wp.func_native(_INVERT)
def _invert(block: int, shape: GridShape, faces: Three, inverse: A): ...


@wp.func_native(_COARSEN)
def _coarsen(line: int, fine: GridShape, shape: GridShape, finer: Three, faces: Three): ...


@wp.kernel
def coarsen_faces_rows(first: int, fine: GridShape, shape: GridShape, finer: Three, faces_out: Three):
    _coarsen(first + wp.tid(), fine, shape, finer, faces_out)


@wp.kernel
def fill_corners_rows(
    first: int, shape: GridShape, origin: wp.vec3, spacing: float, still: A, bar_count: N, bars: A, distance_out: A
):
    _corners(first + wp.tid(), shape, origin, spacing, still, bar_count, bars, distance_out)


@wp.kernel
def fill_faces_blocks(
    first: int,
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    inflow: float,
    distance: A,
    drift: Three,
    bar_count: N,
    bars: A,
    faces_out: Three,
    solid_out: Three,
):
    _faces(first + wp.tid(), shape, origin, spacing, inflow, distance, drift, bar_count, bars, faces_out, solid_out)


@wp.kernel
def find_cells_blocks(first: int, shape: GridShape, box: A, faces: Three, fluid_out: A):
    _cells(first + wp.tid(), shape, box, faces, fluid_out)


@wp.kernel
def close_faces_blocks(first: int, shape: GridShape, fluid: A, faces_out: Three):
    _close(first + wp.tid(), shape, fluid, faces_out)


@wp.kernel
def invert_diagonal_blocks(first: int, shape: GridShape, faces: Three, inverse_out: A):
    _invert(first + wp.tid(), shape, faces, inverse_out)
