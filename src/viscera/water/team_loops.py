"""The loops of teams.py in C: what a thread does with the neighbours of its particle.

`WIDE` is for few particles: the ranges of all nine rows are found first, then a thread loads one neighbour of each row
before it looks at any. `LONG` is for many: a thread marks up to 32 candidates in a word and then goes through the
marks. Both visit each row from its beginning, team-th by team-th, so sums have one order. Roots are rsqrt on cuda, good
to two bits; the distance of two particles is the same from both ends, so pairs still push each other equally.
"""

from __future__ import annotations

import warp as wp

from viscera.native import TEAM, fill, on_both
from viscera.neighbors.blocks import CELL
from viscera.neighbors.cells import GridView
from viscera.water.smoothing import Smoothing
from viscera.water.state import Live

wp.set_module_options({"enable_backward": False})

_BEGIN = """
const F4 here = READ4(place, s);
const float radius2 = smoothing.radius2, nearest2 = 1.0e-12f * radius2, per = smoothing.per_radius;
const float k_ = grid.cells_per_length;
const float ay = (here.y - grid.lower[1]) * k_, az = (here.z - grid.lower[2]) * k_;
const int cx = CELL((here.x - grid.lower[0]) * k_, grid.cells_x);
const int cy = CELL(ay, grid.cells_y), cz = CELL(az, grid.cells_z);
const int left = cx > 0 ? cx - 1 : 0, right = cx + 1 < grid.cells_x ? cx + 1 : grid.cells_x - 1;
// How far this particle is in its cell; outside the box the distance of rows is not known (see periodic.near_row).
const float fy = ay - (float)cy, fz = az - (float)cz;
const bool known = fy >= 0.0f && fy <= 1.0f && fz >= 0.0f && fz <= 1.0f;
const float far2 = 1.001f * $reach2 * k_ * k_;
const auto range = [&](int row, int& begin, int& end) {
    const int across = row % 3 - 1, up = row / 3 - grid.layer;
    const int y = cy + across, z = cz + up;
    const float gy = across < 0 ? fy : 1.0f - fy, gz = up < 0 ? fz : 1.0f - fz;
    begin = end = 0;
    if (row >= grid.rows || y < 0 || y >= grid.cells_y || z < 0 || z >= grid.cells_z) return;
    if (across && up && known && gy * gy + gz * gz > far2) return;
    const int base = (z * grid.cells_y + y) * grid.cells_x;
    begin = grid.cell_start.data[base + left];
    end = grid.cell_start.data[base + right + 1];
};
"""

WIDE = """
int begins[9], ends[9], longest = 0;
#if defined(__CUDA_ARCH__)
if (team >= 16) {
    int b = 0, e = 0;
    if (lane < 9) range(lane, b, e);
    UNROLL
    for (int row = 0; row < 9; ++row) {
        begins[row] = __shfl_sync(mates, b, row, team);
        ends[row] = __shfl_sync(mates, e, row, team);
    }
} else
#endif
{
    UNROLL
    for (int row = 0; row < 9; ++row) range(row, begins[row], ends[row]);
}
UNROLL
for (int row = 0; row < 9; ++row) {
    const int size = ends[row] - begins[row];
    longest = size > longest ? size : longest;
}
for (int k = lane; k < longest; k += team) {
    F4 others[9];
    UNROLL
    for (int row = 0; row < 9; ++row)
        if (begins[row] + k < ends[row]) others[row] = READ4(place, begins[row] + k);
    UNROLL
    for (int row = 0; row < 9; ++row) {
        const int t = begins[row] + k;
        if (t < ends[row]) {
            const F4 other = others[row];
            const float dx = here.x - other.x, dy = here.y - other.y, dz = here.z - other.z;
            const float r2 = $square;
            if (r2 < radius2) {
                $body
            }
        }
    }
}
"""

LONG = """
for (int row = 0; row < grid.rows; ++row) {
    int begin, end;
    range(row, begin, end);
    for (int t0 = begin + lane; t0 < end; t0 += 32 * team) {
        unsigned hits = 0u;
        const int left_over = (end - t0 + team - 1) / team;
        const int most = left_over < 32 ? left_over : 32;
        UNROLL_4
        for (int k = 0; k < most; ++k) {
            const int t = t0 + k * team;
            const F4 other = READ4(place, t);
            const float dx = here.x - other.x, dy = here.y - other.y, dz = here.z - other.z;
            hits |= (unsigned)($square < radius2) << k;
        }
        while (hits) {
            const int t = t0 + FIRST_BIT(hits) * team;
            hits &= hits - 1u;
            const F4 other = READ4(place, t);
            const float dx = here.x - other.x, dy = here.y - other.y, dz = here.z - other.z;
            const float r2 = $square;
            $body
        }
    }
}
"""

_DENSITY = """
            if (smoothing.spline > 0.0f) {
                const float q = r2 * PER_ROOT(LARGER(r2, nearest2)) * per;
                const float a = 1.0f - q, b = LARGER(0.5f - q, 0.0f);
                total += a * a * a - 4.0f * (b * b * b);
            } else {
                const float a = 1.0f - r2 * (per * per);
                total += a * a * a;
            }
"""

_DENSITY_END = """
const float sum = sum_of(total);
return mass * (smoothing.spline > 0.0f ? smoothing.spline : smoothing.poly6) * sum;
"""

_FORCE_START = """
const F4 own = READ4(motion, s);
const wp::float32 viscosity = live.viscosity;
const bool monaghan = live.alpha + live.beta > 0.0f;
float gx = 0.0f, gy = 0.0f, gz = 0.0f, growth = 0.0f;
"""

_FORCE = """
                const F4 moving = READ4(motion, t);
                const float per_r = PER_ROOT(LARGER(r2, nearest2)), q = r2 * per_r * per;
                const float a = 1.0f - q, b = LARGER(0.5f - q, 0.0f);
                const float steep = smoothing.gradient * (a * a - smoothing.kappa * (b * b)) * per_r;
                const float ex = own.x - moving.x, ey = own.y - moving.y, ez = own.z - moving.z;
                const float closing = ex * dx + ey * dy + ez * dz;
                float press = here.w + other.w;
                if (monaghan && closing < 0.0f) {
                    const float mu = live.length * closing / (r2 + 0.01f * live.length * live.length);
                    const float per_density = 2.0f * own.w * moving.w / (own.w + moving.w);
                    press += (live.beta * mu - live.alpha * live.sound_speed) * mu * per_density;
                }
                const float drag = viscosity * (own.w * moving.w)
                                 * (smoothing.laplacian * a + smoothing.morris * steep);
                press *= steep;
                gx -= press * dx + drag * ex;
                gy -= press * dy + drag * ey;
                gz -= press * dz + drag * ez;
                growth += steep * closing;
"""

_FORCE_END = """
const float m = live.mass, sx = sum_of(gx), sy = sum_of(gy), sz = sum_of(gz), sg = sum_of(growth);
const auto g = live.gravity;
return wp::vec_t<4, wp::float32>(m * sx + g[0], m * sy + g[1], m * sz + g[2], m * sg);
"""


_SOURCE = """
$team
$cell
$begin
$start
$walk
$end
"""


def source(
    walk: str, start: str, body: str, end: str, *, square: str = "dx * dx + dy * dy + dz * dz", reach2: str = "radius2"
) -> str:
    """`square` of the distance over what `radius2` is; no neighbour is farther than √`reach2`."""
    begin, around = fill(_BEGIN, reach2=reach2), fill(walk, body=body, square=square)
    text = fill(_SOURCE, team=TEAM, cell=CELL, begin=begin, start=start, walk=around, end=end)
    return on_both(text, fused=False)


def _density(walk: str) -> str:
    return source(walk, "float total = 0.0f;", _DENSITY, _DENSITY_END)


def _force(walk: str) -> str:
    return source(walk, _FORCE_START, _FORCE, _FORCE_END)


@wp.func_native(_density(WIDE))
def wide_density(
    grid: GridView, smoothing: Smoothing, mass: float, s: int, lane: int, team: int, place: wp.array(dtype=wp.vec4)
) -> float: ...


@wp.func_native(_density(LONG))
def long_density(
    grid: GridView, smoothing: Smoothing, mass: float, s: int, lane: int, team: int, place: wp.array(dtype=wp.vec4)
) -> float: ...


@wp.func_native(_force(WIDE))
def wide_force(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    s: int,
    lane: int,
    team: int,
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
) -> wp.vec4: ...


@wp.func_native(_force(LONG))
def long_force(
    grid: GridView,
    smoothing: Smoothing,
    live: Live,
    s: int,
    lane: int,
    team: int,
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
) -> wp.vec4: ...
