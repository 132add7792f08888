"""The two loops over neighbours that cost most, in C for cpu: 16 neighbours at once.

The same sums as `density.sum_density` and `forces.sum_forces`, up to the last bits. An index into a `wp.array` goes
through byte strides and never becomes a vector load; here each number lies in an array of its own (`Fluid.axes`). A row
of three cells is one range; loads may pass its end, which `LANES` allows, and what is beyond the end or the radius gets
weight 0. Rows that lie beyond the radius as a whole are left out. No images: periodic boxes take the plain kernels.
"""

# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportIndexIssue=false, reportCallIssue=false
# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.neighbors.cells import GridView, cell_of, sorted_count
from viscera.water.smoothing import Smoothing
from viscera.water.state import Live

wp.set_module_options({"enable_backward": False})

VECTORS = """
typedef float V __attribute__((ext_vector_type(16)));
typedef float U __attribute__((ext_vector_type(16), aligned(4)));
typedef int I __attribute__((ext_vector_type(16)));
#define LOAD(p) (V)(*(const U*)(p))
#define ROOT(v) __builtin_elementwise_sqrt(v)
#define AT_LEAST(v, low) __builtin_elementwise_max((v), (V)(low))
const I lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
const float hx = x.data[s], hy = y.data[s], hz = z.data[s];
const float radius2 = smoothing.radius2, per = smoothing.per_radius;
// Distance of this particle from the rows of cells beside its own, along y and z, in cell sides.
const float fy = (hy - grid.lower[1]) * grid.cells_per_length - (float)cell[1];
const float fz = (hz - grid.lower[2]) * grid.cells_per_length - (float)cell[2];
const float side = 1.0f / grid.cells_per_length;
const int left = cell[0] > 0 ? cell[0] - 1 : 0;
const int right = cell[0] + 1 < grid.cells_x ? cell[0] + 1 : grid.cells_x - 1;
"""

ROWS = """
for (int row = 0; row < grid.rows; ++row) {
    const int across = row % 3 - 1, up = row / 3 - grid.layer;
    const int cy = cell[1] + across, cz = cell[2] + up;
    if (cy < 0 || cy >= grid.cells_y || cz < 0 || cz >= grid.cells_z) continue;
    // Only a corner row can lie beyond the radius; see periodic.near_row.
    if (across && up && fy >= 0.0f && fy <= 1.0f && fz >= 0.0f && fz <= 1.0f) {
        const float ay = across < 0 ? fy : 1.0f - fy, az = up < 0 ? fz : 1.0f - fz;
        if ((ay * ay + az * az) * side * side > 1.001f * radius2) continue;
    }
    const int base = (cz * grid.cells_y + cy) * grid.cells_x;
    const int begin = grid.cell_start.data[base + left], end = grid.cell_start.data[base + right + 1];
    for (int t = begin; t < end; t += 16) {
        const V dx = hx - LOAD(x.data + t), dy = hy - LOAD(y.data + t), dz = hz - LOAD(z.data + t);
        const V r2 = dx * dx + dy * dy + dz * dz;
        BODY
    }
}
"""

_DENSITY_BODY = """
        if (smoothing.spline > 0.0f) {
            const V q = ROOT(r2) * per;
            const V a = AT_LEAST(1.0f - q, 0.0f), b = AT_LEAST(0.5f - q, 0.0f);
            const V w = a * a * a - 4.0f * (b * b * b);
            total += (lane + t < end) ? w : (V)0.0f;
        } else {
            const V a = AT_LEAST(1.0f - r2 * (per * per), 0.0f);
            total += (lane + t < end) ? a * a * a : (V)0.0f;
        }
"""

_DENSITY = (
    VECTORS
    + "V total = 0.0f;"
    + ROWS.replace("BODY", _DENSITY_BODY)
    + """
float sum = 0.0f;
for (int k = 0; k < 16; ++k) sum += total[k];
return mass * (smoothing.spline > 0.0f ? smoothing.spline : smoothing.poly6) * sum;
"""
)

_FORCE_BODY = """
        const I inside = (r2 < radius2) & (lane + t < end);
        if (!__builtin_reduce_or(inside)) continue;
        const V r = ROOT(r2);
        const V a = 1.0f - r * per, b = AT_LEAST(0.5f - r * per, 0.0f);
        V steep = smoothing.gradient * (a * a - smoothing.kappa * (b * b)) / AT_LEAST(r, nearest);
        const V ex = ux - LOAD(vx.data + t), ey = uy - LOAD(vy.data + t), ez = uz - LOAD(vz.data + t);
        const V other = LOAD(inverse.data + t);
        const V closing = ex * dx + ey * dy + ez * dz;
        V press = own_push + LOAD(push.data + t);
        MONAGHAN
        V drag = live.viscosity * (own_inverse * other) * (smoothing.laplacian * a + smoothing.morris * steep);
        steep = inside ? steep : (V)0.0f;
        drag = inside ? drag : (V)0.0f;
        press *= steep;
        gx -= press * dx + drag * ex;
        gy -= press * dy + drag * ey;
        gz -= press * dz + drag * ez;
        growth += steep * closing;
"""

_MONAGHAN = """
        const V mu = live.length * closing / (r2 + 0.01f * live.length * live.length);
        const V per_density = 2.0f * own_inverse * other / (own_inverse + other);
        const V brake = (live.beta * mu - live.alpha * live.sound_speed) * mu * per_density;
        press += (closing < 0.0f) ? brake : (V)0.0f;
"""

_FORCE = """
V gx = 0.0f, gy = 0.0f, gz = 0.0f, growth = 0.0f;
const float ux = vx.data[s], uy = vy.data[s], uz = vz.data[s];
const float own_push = push.data[s], own_inverse = inverse.data[s];
const float nearest = 1.0e-6f * smoothing.radius;
"""

_FORCE_END = """
float ax = 0.0f, ay = 0.0f, az = 0.0f, grow = 0.0f;
for (int k = 0; k < 16; ++k) { ax += gx[k]; ay += gy[k]; az += gz[k]; grow += growth[k]; }
const float m = live.mass;
const auto g = live.gravity;
return wp::vec_t<4, wp::float32>(m * ax + g[0], m * ay + g[1], m * az + g[2], m * grow);
"""

_CUDA = """
#if defined(__CUDA_ARCH__)
return {nothing};
#else
{body}
#endif
"""

NO_VECTOR = "wp::vec_t<4, wp::float32>()"


def on_cpu(body: str, nothing: str) -> str:
    return _CUDA.replace("{nothing}", nothing).replace("{body}", body)


@wp.func_native(on_cpu(_DENSITY, "0.0f"))
def density_at(
    grid: GridView,
    smoothing: Smoothing,
    s: int,
    cell: wp.vec3i,
    mass: float,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
) -> float: ...


@wp.func_native(
    on_cpu(VECTORS + _FORCE + ROWS.replace("BODY", _FORCE_BODY.replace("MONAGHAN", "")) + _FORCE_END, NO_VECTOR)
)
def force_at(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    s: int,
    cell: wp.vec3i,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
) -> wp.vec4: ...


@wp.func_native(
    on_cpu(VECTORS + _FORCE + ROWS.replace("BODY", _FORCE_BODY.replace("MONAGHAN", _MONAGHAN)) + _FORCE_END, NO_VECTOR)
)
def braked_force_at(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    s: int,
    cell: wp.vec3i,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
) -> wp.vec4: ...


@wp.kernel
def split_places(
    first: int,
    # params
    grid: GridView,
    # in
    place: wp.array(dtype=wp.vec4),
    # out
    x_out: wp.array(dtype=float),
    y_out: wp.array(dtype=float),
    z_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s < sorted_count(grid):
        here = place[s]
        x_out[s] = here[0]
        y_out[s] = here[1]
        z_out[s] = here[2]


@wp.kernel
def split_motions(
    first: int,
    # params
    grid: GridView,
    # in
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    # out
    push_out: wp.array(dtype=float),
    vx_out: wp.array(dtype=float),
    vy_out: wp.array(dtype=float),
    vz_out: wp.array(dtype=float),
    inverse_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s < sorted_count(grid):
        v = motion[s]
        push_out[s] = place[s][3]
        vx_out[s] = v[0]
        vy_out[s] = v[1]
        vz_out[s] = v[2]
        inverse_out[s] = v[3]


@wp.kernel
def sum_density(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # in
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    # out
    density_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    cell = cell_of(grid, wp.vec3(x[s], y[s], z[s]))
    density_out[s] = density_at(grid, smoothing, s, cell, live[0].mass, x, y, z)


@wp.kernel
def sum_forces(
    first: int,
    # params
    grid: GridView,
    smoothing: Smoothing,
    monaghan: int,
    live: wp.array(dtype=Live),
    # in
    tag: wp.array(dtype=wp.int32),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    if tag[s] < 0 and live[0].continuity == 0.0:
        rate_out[s] = wp.vec4(0.0, 0.0, 0.0, 0.0)
        return
    cell = cell_of(grid, wp.vec3(x[s], y[s], z[s]))
    if monaghan != 0:
        rate = braked_force_at(grid, smoothing, live[0], s, cell, x, y, z, push, vx, vy, vz, inverse)
    else:
        rate = force_at(grid, smoothing, live[0], s, cell, x, y, z, push, vx, vy, vz, inverse)
    if tag[s] < 0:
        rate = wp.vec4(0.0, 0.0, 0.0, rate[3])
    rate_out[s] = rate
