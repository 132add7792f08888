"""The substep of kernels.py in C: a tile of 16 masses at once on cpu, one mass per thread on cuda.

An index into a `wp.array` goes through byte strides: on cpu it never becomes a vector load, on cuda it costs several
instructions; and exact division and square root are slow on cuda. docs/decisions/002-lattice-storage.md has the
factors. One source serves both; only the macros differ. Same arithmetic and order of springs as the plain kernel, up to
the last bits.
"""

from __future__ import annotations

import warp as wp

from viscera.native import fill, on_cpu, on_cuda
from viscera.tissue.kernels import SHORTEST2, Lattice

wp.set_module_options({"enable_backward": False})

_PULLS = """
// A component along which a spring does not run stays as it is: the compiler may not leave out + 0.
#define PLUS(e, r, c) ((c) != 0.0f ? (e) + (r) : (e))
const Place n = lattice.slots;
const float dt = lattice.dt;
const float h = lattice.spacing;
const float* px = position.data;
const float* py = px + n;
const float* pz = py + n;
const V ox = LOAD(px + i), oy = LOAD(py + i), oz = LOAD(pz + i);
const auto origin = lattice.tile_origin.data[tile];
const V restx = origin[0] + REAL(PLACES(lane)) * h;
$nap
V fx = FILL(0.0f), fy = FILL(0.0f), fz = FILL(0.0f);
#pragma unroll
for (int d = 0; d < 13; ++d) {
    const int r = (d + 14) / 3, step = (d + 14) % 3 - 1;
    const float cx = (float)step, cy = (float)(r % 3 - 1), cz = (float)(r / 3 - 1);
    const float steps2 = cx * cx + cy * cy + cz * cz;
    const float rest = h * (steps2 == 1.0f ? 1.0f : (steps2 == 2.0f ? 1.41421356f : 1.73205081f));
    const float rest2 = h * h * steps2;
    #pragma unroll
    for (int side = 1; side >= -1; side -= 2) {
        const Place j = (side > 0 ? rows[r] + step : rows[8 - r] - step) + lane;
        const V k = LOAD_HALF(stiff + d * n + (side > 0 ? i : j));
        const float dx = side * h * cx, dy = side * h * cy, dz = side * h * cz;
        const V ex = LOAD(px + j) - ox, ey = LOAD(py + j) - oy, ez = LOAD(pz + j) - oz;
        const V gain = ex * PLUS(ex, 2.0f * dx, cx) + ey * PLUS(ey, 2.0f * dy, cy) + ez * PLUS(ez, 2.0f * dz, cz);
        $stretch
        fx += pull * PLUS(ex, dx, cx);
        fy += pull * PLUS(ey, dy, cy);
        fz += pull * PLUS(ez, dz, cz);
    }
}
"""

_MOVE = """
const V weight = LOAD(lattice.inverse_mass.data + i);
const float* lv = live.data;
const float tau = lv[4], shape = lv[7];
const V keep = lv[5] * LOAD(lattice.keep.data + i);
float* qx = velocity.data;
float* qy = qx + n;
float* qz = qy + n;
const V bx = LOAD(qx + i), by = LOAD(qy + i), bz = LOAD(qz + i);
fx *= lv[3]; fy *= lv[3]; fz *= lv[3];
$more
// Anchors and empty places keep still: gravity counts only where there is weight.
const V heavy = AT_MOST(weight * 1.0e30f, 1.0f);
V vx = keep * (bx + dt * (fx * weight + heavy * (lv[0] - shape * ox)));
V vy = keep * (by + dt * (fy * weight + heavy * (lv[1] - shape * oy)));
V vz = keep * (bz + dt * (fz * weight + heavy * (lv[2] - shape * oz)));
V ux = ox - tau * bx + dt * vx;
V uy = oy - tau * by + dt * vy;
V uz = oz - tau * bz + dt * vz;
$doze
const auto sane = (vx * vx + vy * vy + vz * vz) < FILL(1.0e8f);
if (!ALL(sane)) broken.data[0] = 1;
STORE(qx + i, vx); STORE(qy + i, vy); STORE(qz + i, vz);
float* next_x = next.data;
STORE(next_x + i, ux + tau * vx); STORE(next_x + n + i, uy + tau * vy); STORE(next_x + 2 * n + i, uz + tau * vz);
"""
"""One substep for V: 16 masses side by side on cpu, one mass on cuda; first the springs' pulls, then the move. The
header says what V is; `nap`, `stretch`, `more` and `doze` are where features come in."""

_PLAIN_STRETCH = "const V pull = pull_over_length(k * gain, AT_LEAST(gain + rest2, $shortest2 * rest2), rest);"

_CREEP_STRETCH = """
        V grown = FILL(0.0f);
        if (lattice.features & 2) grown = LOAD(lattice.creep.data + d * n + (side > 0 ? i : j));
        const V room = gain - rest2 * grown * (2.0f + grown);
        const V length2 = AT_LEAST(gain + rest2, $shortest2 * rest2);
        const V pull = pull_over_length(k * room, length2, rest + rest * grown);
"""

_EXTRA_FORCE = """
if (lattice.features & 1) {
    const float* more = lattice.extra.data;
    fx += LOAD(more + i); fy += LOAD(more + n + i); fz += LOAD(more + 2 * n + i);
}
"""

_SLEEP = """
// A tile sleeps unless it, or a tile around it, moved or was touched in the substep before.
const int now = lattice.clock.data[0] * lattice.substeps + substep;
const Place tiles = n / 16;
if ((lattice.features & 4) && lattice.awake.data[(now & 1) * tiles + i / 16] != now) return;
"""

_WAKE = """
if (lattice.features & 4) {
    const V ax = (vx / keep - bx) / dt, ay = (vy / keep - by) / dt, az = (vz / keep - bz) / dt;
    const V pull2 = ax * ax + ay * ay + az * az;
    const V speed2 = vx * vx + vy * vy + vz * vz;
    const V least = lv[8] * weight;
    const auto moves = (pull2 > least * least) | (speed2 > FILL(lv[9] * lv[9]));
    if (ANY_IN_ROW(moves)) {
        for (int q = (int)lane; q < 27; q += 16 / WIDTH)
            lattice.awake.data[((now + 1) & 1) * tiles + rows[q / 3] / 16 + q % 3 - 1] = now + 1;
    } else {
        vx = FILL(0.0f); vy = FILL(0.0f); vz = FILL(0.0f);
        ux = ox; uy = oy; uz = oz;
    }
}
"""
"""The force that counts is the net one, before contact: a mass held by a tool is not at rest. A tile whose masses are
all at rest keeps its place exactly, so that both buffers agree when it falls asleep."""

_PLACE = """
const Place i = lattice.tile_slot.data[tile] + lane;
const int* rows = lattice.rows.data + 9 * tile;
const Half* stiff = (const Half*)lattice.stiffness.data;
"""

_CPU = """
const auto pull_over_length = [](V stiff_gain, V length2, auto rest) {
    FUSED
    const V length = ROOT(length2);
    return stiff_gain / (length2 + length * rest);
};
const Place lane = 0;
$place
$step
"""

_CUDA = """
const auto pull_over_length = [](float stiff_gain, float length2, float rest) {
    // One instruction each, within two units in the last place; denormal numbers do not occur here.
    float inverse, share;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(length2));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(length2 * inverse + rest));
    return stiff_gain * inverse * share;
};
const int tile = element / $threads;
const int lane = element % $threads * $masses;
$place
$step
"""

_PAIR_PULLS = """
#define PLUS(e, r, c) ((c) != 0.0f ? (e) + (r) : (e))
const int n = lattice.slots;
const float dt = lattice.dt;
const float h = lattice.spacing;
const float* p = position.data;
const auto origin = lattice.tile_origin.data[tile];
float own[3][2], f[3][2] = {};
#pragma unroll
for (int axis = 0; axis < 3; ++axis) {
    const float2 both = *(const float2*)(p + axis * n + i);
    own[axis][0] = both.x; own[axis][1] = both.y;
}
#pragma unroll
for (int r = 0; r < 9; ++r) {
    const int row = rows[r] + lane;
    // Four places of this row serve two masses: one before the pair, the pair, one behind it.
    float near[3][4];
    #pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
        const float* q = p + axis * n + row;
        const float2 both = *(const float2*)q;
        near[axis][0] = q[-1]; near[axis][1] = both.x; near[axis][2] = both.y; near[axis][3] = q[2];
    }
    #pragma unroll
    for (int step = -1; step <= 1; ++step) {
        if (r == 4 && step == 0) continue;
        const bool up = r > 4 || (r == 4 && step > 0);
        const int d = up ? 3 * r + step - 13 : 11 - 3 * r - step;
        const wp::half* k = stiff + d * n + (up ? i : row + step);
        float stiffness[2];
        if (up || step == 0) {
            const unsigned both = *(const unsigned*)k;
            wp::half low, high;
            low.u = (unsigned short)(both & 0xffffu); high.u = (unsigned short)(both >> 16);
            stiffness[0] = wp::half_to_float(low); stiffness[1] = wp::half_to_float(high);
        } else {
            stiffness[0] = wp::half_to_float(k[0]); stiffness[1] = wp::half_to_float(k[1]);
        }
        const float cx = (float)step, cy = (float)(r % 3 - 1), cz = (float)(r / 3 - 1);
        const float steps2 = cx * cx + cy * cy + cz * cz;
        const float rest = h * (steps2 == 1.0f ? 1.0f : (steps2 == 2.0f ? 1.41421356f : 1.73205081f));
        const float rest2 = h * h * steps2;
        const float dx = h * cx, dy = h * cy, dz = h * cz;
        #pragma unroll
        for (int m = 0; m < 2; ++m) {
            const float ex = near[0][m + step + 1] - own[0][m];
            const float ey = near[1][m + step + 1] - own[1][m];
            const float ez = near[2][m + step + 1] - own[2][m];
            const float tx = PLUS(ex, 2.0f * dx, cx), ty = PLUS(ey, 2.0f * dy, cy), tz = PLUS(ez, 2.0f * dz, cz);
            const float gain = ex * tx + ey * ty + ez * tz;
            const float length2 = fmaxf(gain + rest2, $shortest2 * rest2);
            const float pull = pull_over_length(stiffness[m] * gain, length2, rest);
            f[0][m] += pull * PLUS(ex, dx, cx); f[1][m] += pull * PLUS(ey, dy, cy); f[2][m] += pull * PLUS(ez, dz, cz);
        }
    }
}
const int first_of_pair = i;
#pragma unroll
for (int m = 0; m < 2; ++m) {
    const int i = first_of_pair + m;
    const float ox = own[0][m], oy = own[1][m], oz = own[2][m];
    float fx = f[0][m], fy = f[1][m], fz = f[2][m];
    const float restx = origin[0] + (REAL(PLACES(lane)) + (float)m) * h;
"""
"""cuda, two masses per thread: they share most of what they read, and half the addresses. `_MOVE` and a brace
follow."""


def _step(features: bool) -> str:
    """Springs, then the move, with or without the features that cost time even when they are off: forces of other
    kernels are none of them."""
    stretch = fill(_CREEP_STRETCH if features else _PLAIN_STRETCH, shortest2=SHORTEST2)
    pulls = fill(_PULLS, nap=_SLEEP if features else "", stretch=stretch)
    return pulls + _move(features)


def _move(features: bool) -> str:
    return fill(_MOVE, more=_EXTRA_FORCE, doze=_WAKE if features else "")


def _tile_source(features: bool) -> str:
    return on_cpu(fill(_CPU, place=_PLACE, step=_step(features)))


def _mass_source() -> str:
    """With features: the two masses of a pair would not share the sleep of a row."""
    return on_cuda(fill(_CUDA, threads=16, masses=1, place=_PLACE, step=_step(features=True)))


def _pair_source() -> str:
    """Without features."""
    step = fill(_PAIR_PULLS, shortest2=SHORTEST2) + _move(features=False) + "}"
    return on_cuda(fill(_CUDA, threads=8, masses=2, place=_PLACE, step=step))


@wp.func_native(_tile_source(features=False))
def step_tile(
    lattice: Lattice,
    tile: int,
    substep: int,
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    next: wp.array(dtype=wp.float32),
    broken: wp.array(dtype=wp.int32),
): ...


@wp.func_native(_tile_source(features=True))
def step_tile_features(
    lattice: Lattice,
    tile: int,
    substep: int,
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    next: wp.array(dtype=wp.float32),
    broken: wp.array(dtype=wp.int32),
): ...


@wp.func_native(_pair_source())
def step_pair(
    lattice: Lattice,
    element: int,
    substep: int,
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    next: wp.array(dtype=wp.float32),
    broken: wp.array(dtype=wp.int32),
): ...


@wp.func_native(_mass_source())
def step_mass_features(
    lattice: Lattice,
    element: int,
    substep: int,
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    next: wp.array(dtype=wp.float32),
    broken: wp.array(dtype=wp.int32),
): ...


@wp.kernel
def lattice_step_cpu(
    first: int,
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    broken_out: wp.array(dtype=wp.int32),
):
    step_tile(lattice, first + wp.tid(), substep, live, position, velocity_out, position_out, broken_out)


@wp.kernel
def lattice_features_cpu(
    first: int,
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    broken_out: wp.array(dtype=wp.int32),
):
    step_tile_features(lattice, first + wp.tid(), substep, live, position, velocity_out, position_out, broken_out)


@wp.kernel
def lattice_pair_cuda(
    first: int,
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    broken_out: wp.array(dtype=wp.int32),
):
    step_pair(lattice, first + wp.tid(), substep, live, position, velocity_out, position_out, broken_out)


@wp.kernel
def lattice_features_cuda(
    first: int,
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    broken_out: wp.array(dtype=wp.int32),
):
    step_mass_features(lattice, first + wp.tid(), substep, live, position, velocity_out, position_out, broken_out)
