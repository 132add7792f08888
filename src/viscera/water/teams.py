"""The two loops over neighbours for cuda, in C: several threads share a particle, and a step ends where its sums do.

The same sums as `density.sum_density` and `forces.sum_forces`, up to the last bits, and the same ends as
`density.find_pressure` and `forces.integrate`. `Fluid.team` threads share a particle: each takes every team-th
neighbour, and they add up by shuffles, always in the same order, so results are the same on every run.

Few particles are bound by latency. There (`wide`) a thread has one neighbour of each of the nine rows in flight at
once; with 16 or 32 threads per particle a row of three cells is read in one or two goes. Many particles are bound by
arithmetic, and only one candidate in seven is near enough: a warp in which any thread has a hit makes all wait. There
(`long`) a thread first marks up to 32 candidates in a word, and then goes through the marks, so that threads wait for
the longest list of hits and not for every candidate.

Pressure follows in the density kernel and the move in the force kernel where nothing stands between, so that a plain
step is a sort and two launches. Of `place` the density kernel writes the fourth number alone, which no density reads.
No images: periodic boxes take the plain kernels. On cpu the same source runs with a team of one, for tests.
"""

# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false, reportReturnType=false
# pyright: reportIndexIssue=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.neighbors.cells import GridView, particle_count, sorted_count
from viscera.water.density import THINNEST, state_pressure
from viscera.water.periodic import front, read4
from viscera.water.smoothing import Smoothing
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

_BEGIN = """
#if defined(__CUDA_ARCH__)
#define READ4(a, t) __ldg(reinterpret_cast<const float4*>((a).data) + (t))
#define FIRST_BIT(m) (__ffs((int)(m)) - 1)
#define PER_ROOT(a) rsqrtf(a)
#define LARGER(a, b) fmaxf((a), (b))
const unsigned mates = team > 31 ? 0xffffffffu : ((1u << team) - 1u) << (threadIdx.x & 31 & ~(team - 1));
const auto sum_of = [=](float part) {
    for (int k = team >> 1; k > 0; k >>= 1) part += __shfl_xor_sync(mates, part, k, team);
    return part;
};
typedef float4 F4;
#else
struct F4 { float x, y, z, w; };
#define READ4(a, t) (*(reinterpret_cast<const F4*>((a).data) + (t)))
#define FIRST_BIT(m) __builtin_ctz(m)
#define PER_ROOT(a) (1.0f / __builtin_sqrtf(a))
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
const auto sum_of = [=](float part) { return part; };
#endif
const F4 here = READ4(place, s);
const float radius2 = smoothing.radius2, nearest2 = 1.0e-12f * radius2, per = smoothing.per_radius;
const float k_ = grid.cells_per_length;
#define CELL(a, n) ((a) > 0.0f ? (int)((a) < (float)((n) - 1) ? (a) : (float)((n) - 1)) : 0)
const float ay = (here.y - grid.lower[1]) * k_, az = (here.z - grid.lower[2]) * k_;
const int cx = CELL((here.x - grid.lower[0]) * k_, grid.cells_x);
const int cy = CELL(ay, grid.cells_y), cz = CELL(az, grid.cells_z);
const int left = cx > 0 ? cx - 1 : 0, right = cx + 1 < grid.cells_x ? cx + 1 : grid.cells_x - 1;
// How far this particle is in its cell; outside the box the distance of rows is not known (see periodic.near_row).
const float fy = ay - (float)cy, fz = az - (float)cz;
const bool known = fy >= 0.0f && fy <= 1.0f && fz >= 0.0f && fz <= 1.0f;
const float far2 = 1.001f * radius2 * k_ * k_;
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

_WIDE = """
int begins[9], ends[9], longest = 0;
#if defined(__CUDA_ARCH__)
if (team >= 16) {
    int b = 0, e = 0;
    if (lane < 9) range(lane, b, e);
    #pragma unroll
    for (int row = 0; row < 9; ++row) {
        begins[row] = __shfl_sync(mates, b, row, team);
        ends[row] = __shfl_sync(mates, e, row, team);
    }
} else
#endif
{
    #pragma unroll
    for (int row = 0; row < 9; ++row) range(row, begins[row], ends[row]);
}
#pragma unroll
for (int row = 0; row < 9; ++row) {
    const int size = ends[row] - begins[row];
    longest = size > longest ? size : longest;
}
for (int k = lane; k < longest; k += team) {
    F4 others[9];
    #pragma unroll
    for (int row = 0; row < 9; ++row)
        if (begins[row] + k < ends[row]) others[row] = READ4(place, begins[row] + k);
    #pragma unroll
    for (int row = 0; row < 9; ++row) {
        const int t = begins[row] + k;
        if (t < ends[row]) {
            const F4 other = others[row];
            const float dx = here.x - other.x, dy = here.y - other.y, dz = here.z - other.z;
            const float r2 = dx * dx + dy * dy + dz * dz;
            if (r2 < radius2) {
                BODY
            }
        }
    }
}
"""

_LONG = """
for (int row = 0; row < grid.rows; ++row) {
    int begin, end;
    range(row, begin, end);
    for (int t0 = begin + lane; t0 < end; t0 += 32 * team) {
        unsigned hits = 0u;
        const int left_over = (end - t0 + team - 1) / team;
        const int most = left_over < 32 ? left_over : 32;
        #pragma unroll 4
        for (int k = 0; k < most; ++k) {
            const F4 other = READ4(place, t0 + k * team);
            const float dx = here.x - other.x, dy = here.y - other.y, dz = here.z - other.z;
            hits |= (unsigned)(dx * dx + dy * dy + dz * dz < radius2) << k;
        }
        while (hits) {
            const int t = t0 + FIRST_BIT(hits) * team;
            hits &= hits - 1u;
            const F4 other = READ4(place, t);
            const float dx = here.x - other.x, dy = here.y - other.y, dz = here.z - other.z;
            const float r2 = dx * dx + dy * dy + dz * dz;
            BODY
        }
    }
}
"""

_END = "\n".join(f"#undef {name}" for name in ("READ4", "FIRST_BIT", "PER_ROOT", "LARGER", "CELL"))

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
const float found = mass * (smoothing.spline > 0.0f ? smoothing.spline : smoothing.poly6) * sum;
"""

_FORCE_BEGIN = """
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
"""


def _density(walk: str) -> str:
    return f"{_BEGIN} float total = 0.0f; {walk.replace('BODY', _DENSITY)} {_DENSITY_END} {_END} \n return found;"


def _force(walk: str) -> str:
    force = "wp::vec_t<4, wp::float32>(m * sx + g[0], m * sy + g[1], m * sz + g[2], m * sg)"
    return f"{_BEGIN} {_FORCE_BEGIN} {walk.replace('BODY', _FORCE)} {_FORCE_END} {_END} \n return {force};"


@wp.func_native(_density(_WIDE))
def wide_density(
    grid: GridView, smoothing: Smoothing, mass: float, s: int, lane: int, team: int, place: wp.array(dtype=wp.vec4)
) -> float: ...


@wp.func_native(_density(_LONG))
def long_density(
    grid: GridView, smoothing: Smoothing, mass: float, s: int, lane: int, team: int, place: wp.array(dtype=wp.vec4)
) -> float: ...


@wp.func_native(_force(_WIDE))
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


@wp.func_native(_force(_LONG))
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


@wp.struct
class Sorted:
    """A fluid's arrays in sorted order; see `Fluid`."""

    tag: wp.array(dtype=wp.int32)
    before: wp.array(dtype=wp.vec3)
    held: wp.array(dtype=wp.vec4)
    place: wp.array(dtype=wp.vec4)
    motion: wp.array(dtype=wp.vec4)
    density: wp.array(dtype=float)
    pressure: wp.array(dtype=float)
    rate: wp.array(dtype=wp.vec4)


@wp.struct
class Kept:
    """What a step starts from and ends with."""

    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    tag: wp.array(dtype=wp.int32)
    kept_density: wp.array(dtype=float)
    clock: wp.array(dtype=wp.float64)


# Only the fourth number is written: other threads read the first three meanwhile.
@wp.func_native("reinterpret_cast<float*>(values.data + index)[3] = value;")
def write_fourth(values: wp.array(dtype=wp.vec4), index: int, value: float): ...


@wp.func
def end_density(live: Live, s: int, then_pressure: int, density: float, fluid_out: Sorted):
    fluid_out.density[s] = density
    if then_pressure != 0:
        p = state_pressure(live, density)
        inverse = 1.0 / density
        fluid_out.pressure[s] = p
        write_fourth(fluid_out.place, s, p * inverse * inverse)
        write_fourth(fluid_out.motion, s, inverse)


@wp.func
def end_forces(live: Live, s: int, then_move: int, rate: wp.vec4, fluid_out: Sorted, kept_out: Kept):
    who = fluid_out.tag[s]
    change = rate
    if who < 0:
        change = wp.vec4(0.0, 0.0, 0.0, rate[3])
    fluid_out.rate[s] = change
    if then_move != 0:
        start = read4(fluid_out.held, s)
        v = front(start) + live.dt * front(change)
        kept_out.position[s] = fluid_out.before[s] + live.dt * v
        kept_out.velocity[s] = v
        kept_out.tag[s] = who
        if live.continuity > 0.0:
            kept_out.kept_density[s] = wp.max(start[3] + live.dt * change[3], THINNEST * live.rest_density)


@wp.func
def keep_lost(grid: GridView, s: int, fluid: Sorted, kept_out: Kept):
    """As in `forces.integrate`."""
    if s < particle_count(grid):
        kept_out.position[s] = fluid.before[s]
        kept_out.velocity[s] = wp.vec3(0.0, 0.0, 0.0)
        kept_out.tag[s] = fluid.tag[s]


@wp.kernel
def sum_density_wide(
    first: int,
    # params
    team: int,
    then_pressure: int,
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # out
    fluid_out: Sorted,
):
    thread = first + wp.tid()
    s = thread // team
    if s >= sorted_count(grid):
        return
    density = wide_density(grid, smoothing, live[0].mass, s, thread % team, team, fluid_out.place)
    if thread % team == 0:
        end_density(live[0], s, then_pressure, density, fluid_out)


@wp.kernel
def sum_density_long(
    first: int,
    # params
    team: int,
    then_pressure: int,
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # out
    fluid_out: Sorted,
):
    thread = first + wp.tid()
    s = thread // team
    if s >= sorted_count(grid):
        return
    density = long_density(grid, smoothing, live[0].mass, s, thread % team, team, fluid_out.place)
    if thread % team == 0:
        end_density(live[0], s, then_pressure, density, fluid_out)


@wp.kernel
def sum_forces_wide(
    first: int,
    # params
    team: int,
    then_move: int,
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # out
    fluid_out: Sorted,
    kept_out: Kept,
):
    thread = first + wp.tid()
    s = thread // team
    if thread == 0 and then_move != 0:
        kept_out.clock[0] = kept_out.clock[0] + wp.float64(live[0].dt)
    if s >= sorted_count(grid):
        if then_move != 0 and thread % team == 0:
            keep_lost(grid, s, fluid_out, kept_out)
        return
    rate = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if fluid_out.tag[s] >= 0 or live[0].continuity > 0.0:
        rate = wide_force(grid, smoothing, live[0], s, thread % team, team, fluid_out.place, fluid_out.motion)
    if thread % team == 0:
        end_forces(live[0], s, then_move, rate, fluid_out, kept_out)


@wp.kernel
def sum_forces_long(
    first: int,
    # params
    team: int,
    then_move: int,
    grid: GridView,
    smoothing: Smoothing,
    live: wp.array(dtype=Live),
    # out
    fluid_out: Sorted,
    kept_out: Kept,
):
    thread = first + wp.tid()
    s = thread // team
    if thread == 0 and then_move != 0:
        kept_out.clock[0] = kept_out.clock[0] + wp.float64(live[0].dt)
    if s >= sorted_count(grid):
        if then_move != 0 and thread % team == 0:
            keep_lost(grid, s, fluid_out, kept_out)
        return
    rate = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if fluid_out.tag[s] >= 0 or live[0].continuity > 0.0:
        rate = long_force(grid, smoothing, live[0], s, thread % team, team, fluid_out.place, fluid_out.motion)
    if thread % team == 0:
        end_forces(live[0], s, then_move, rate, fluid_out, kept_out)


def find_density(stage: Stage, fluid: Fluid, *, then_pressure: bool) -> None:
    """Density by summation, and pressure with it where nothing else adds to density."""
    f, team = fluid, fluid.team
    kernel = sum_density_wide if f.wide else sum_density_long
    around = [team, int(then_pressure), f.grid.view, f.smoothing, f.live]
    stage.launch(kernel, team * f.capacity, [*around, _sorted(f)])


def find_forces(stage: Stage, fluid: Fluid, *, then_move: bool) -> None:
    """Forces, and the move with them where nothing else adds to forces."""
    f, team = fluid, fluid.team
    kernel = sum_forces_wide if f.wide else sum_forces_long
    around = [team, int(then_move), f.grid.view, f.smoothing, f.live]
    stage.launch(kernel, team * f.capacity, [*around, _sorted(f), _kept(f)])


def _sorted(fluid: Fluid) -> Any:
    f, view = fluid, Sorted()
    view.tag, view.before, view.held, view.place, view.motion = f.sorted_tag, f.grid.position, f.held, f.place, f.motion
    view.density, view.pressure, view.rate = f.density, f.pressure, f.rate
    return view


def _kept(fluid: Fluid) -> Any:
    f, view = fluid, Kept()
    view.position, view.velocity, view.tag = f.position, f.velocity, f.tag
    view.kept_density, view.clock = f.kept_density, f.clock
    return view
