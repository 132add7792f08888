"""The substep of kernels.py for a whole tile of 16 masses, in C with the cpu's vector unit.

An index into a `wp.array` goes through byte strides and never becomes a vector load, so the plain kernel leaves most of
a cpu unused: docs/benchmarks.md has the factor between the two. Same arithmetic, same order of springs; contact is
tested for 16 masses at once and then resolved one by one, since few are touched.
"""

# Warp's types speak of values; inside kernels the same names are declarations.
# pyright: reportCallIssue=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
from __future__ import annotations

import warp as wp

from viscera.tissue.kernels import SHORTEST2, Lattice

wp.set_module_options({"enable_backward": False})

_TILE_STEP = """
typedef float vf __attribute__((ext_vector_type(16)));
typedef float vu __attribute__((ext_vector_type(16), aligned(4)));
typedef _Float16 vh __attribute__((ext_vector_type(16), aligned(2)));
const long n = lattice.slots;
const long i = lattice.tile_slot.data[tile];
const float dt = lattice.dt;
const float* px = position.data;
const float* py = px + n;
const float* pz = py + n;
const _Float16* stiff = (const _Float16*)lattice.stiffness.data;
const vf ox = *(const vu*)(px + i), oy = *(const vu*)(py + i), oz = *(const vu*)(pz + i);
vf fx = 0.0f, fy = 0.0f, fz = 0.0f;
const float h = lattice.spacing;
#pragma unroll
for (long d = 0; d < 13; ++d) {
    const long r = (d + 14) / 3, step = (d + 14) % 3 - 1;
    const float cx = (float)step, cy = (float)(r % 3 - 1), cz = (float)(r / 3 - 1);
    const float steps2 = cx * cx + cy * cy + cz * cz;
    const float rest = h * (steps2 == 1.0f ? 1.0f : (steps2 == 2.0f ? 1.41421356f : 1.73205081f));
    const float rest2 = h * h * steps2;
    #pragma unroll
    for (long side = 1; side >= -1; side -= 2) {
        const long j = side > 0 ? lattice.rows.data[9 * tile + r] + step : lattice.rows.data[9 * tile + 8 - r] - step;
        const vf k = __builtin_convertvector(*(const vh*)(stiff + d * n + (side > 0 ? i : j)), vf);
        const float dx = side * h * cx, dy = side * h * cy, dz = side * h * cz;
        const vf ex = *(const vu*)(px + j) - ox, ey = *(const vu*)(py + j) - oy, ez = *(const vu*)(pz + j) - oz;
        const vf gain = ex * (ex + 2.0f * dx) + ey * (ey + 2.0f * dy) + ez * (ez + 2.0f * dz);
        const vf length = __builtin_elementwise_sqrt(__builtin_elementwise_max(gain + rest2, (vf)(SHORTEST2 * rest2)));
        const vf pull = k * gain / (length * (length + rest));
        fx += pull * (ex + dx);
        fy += pull * (ey + dy);
        fz += pull * (ez + dz);
    }
}
const vf weight = *(const vu*)(lattice.inverse_mass.data + i);
const float* lv = live.data;
const float tau = lv[4], keep = lv[5];
float* qx = velocity.data;
float* qy = qx + n;
float* qz = qy + n;
const vf bx = *(const vu*)(qx + i), by = *(const vu*)(qy + i), bz = *(const vu*)(qz + i);
const vf push = weight * lv[3];
// Anchors and empty places keep still: gravity counts only where there is weight.
const vf heavy = __builtin_elementwise_min(weight * 1.0e30f, (vf)1.0f);
vf vx = keep * (bx + dt * (fx * push + heavy * lv[0]));
vf vy = keep * (by + dt * (fy * push + heavy * lv[1]));
vf vz = keep * (bz + dt * (fz * push + heavy * lv[2]));
vf ux = ox - tau * bx + dt * vx;
vf uy = oy - tau * by + dt * vy;
vf uz = oz - tau * bz + dt * vz;
const vf lanes = {0.f, 1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f, 10.f, 11.f, 12.f, 13.f, 14.f, 15.f};
const auto origin = lattice.tile_origin.data[tile];
const vf restx = origin[0] + lanes * h;
for (long t = 0; t < 2; ++t) {
    const float* tool = tools.data + 16 * t;
    if (!(tool[0] > 0.0f)) continue;
    const float* s = tool + 4;
    const float* e = tool + 10;
    float now[6];
    for (long c = 0; c < 6; ++c) now[c] = s[c] + fraction * (e[c] - s[c]);
    const float ax = now[0], ay = now[1], az = now[2];
    const float gx = now[3] - ax, gy = now[4] - ay, gz = now[5] - az;
    const float axis2 = __builtin_fmaxf(gx * gx + gy * gy + gz * gz, 1.0e-20f);
    const vf rx = restx + ux - ax, ry = origin[1] + uy - ay, rz = origin[2] + uz - az;
    const vf share = (rx * gx + ry * gy + rz * gz) / axis2;
    const vf along = __builtin_elementwise_min(__builtin_elementwise_max(share, (vf)0.0f), (vf)1.0f);
    const vf wx = rx - along * gx, wy = ry - along * gy, wz = rz - along * gz;
    const vf away2 = wx * wx + wy * wy + wz * wz;
    const float radius = tool[1];
    const auto inside = (away2 < (vf)(radius * radius)) & (weight > (vf)0.0f);
    if (!__builtin_reduce_or(inside)) continue;
    for (long lane = 0; lane < 16; ++lane) {
        if (!inside[lane]) continue;
        const float distance = __builtin_sqrtf(away2[lane]);
        float nx = 0.0f, ny = 0.0f, nz = 1.0f;
        if (distance > 1.0e-9f) { nx = wx[lane] / distance; ny = wy[lane] / distance; nz = wz[lane] / distance; }
        const float l = along[lane];
        const float tx = ((1.0f - l) * (e[0] - s[0]) + l * (e[3] - s[3])) / tick;
        const float ty = ((1.0f - l) * (e[1] - s[1]) + l * (e[4] - s[4])) / tick;
        const float tz = ((1.0f - l) * (e[2] - s[2]) + l * (e[5] - s[5])) / tick;
        const float sx = vx[lane] - tx, sy = vy[lane] - ty, sz = vz[lane] - tz;
        const float into = sx * nx + sy * ny + sz * nz;
        const float approach = into < 0.0f ? into : 0.0f;
        const float slx = sx - into * nx, sly = sy - into * ny, slz = sz - into * nz;
        const float slide = __builtin_sqrtf(slx * slx + sly * sly + slz * slz);
        float grip = -tool[2] * approach / (slide > 1.0e-12f ? slide : 1.0e-12f);
        if (grip > 1.0f) grip = 1.0f;
        const float cx = -approach * nx - grip * slx;
        const float cy = -approach * ny - grip * sly;
        const float cz = -approach * nz - grip * slz;
        const float mx = l * gx + radius * nx, my = l * gy + radius * ny, mz = l * gz + radius * nz;
        ux[lane] += mx - rx[lane]; uy[lane] += my - ry[lane]; uz[lane] += mz - rz[lane];
        vx[lane] += cx; vy[lane] += cy; vz[lane] += cz;
        const float inertia = -1.0f / (weight[lane] * dt * keep);
        const float hx = inertia * cx, hy = inertia * cy, hz = inertia * cz;
        const float part[6] = {hx, hy, hz, my * hz - mz * hy, mz * hx - mx * hz, mx * hy - my * hx};
        for (long c = 0; c < 6; ++c) {
            const double scaled = __builtin_rint((double)part[c] * (c < 3 ? 1073741824.0 : 68719476736.0));
            __atomic_fetch_add(force.data + 6 * t + c, (long long)scaled, __ATOMIC_RELAXED);
        }
    }
}
const auto sane = (vx * vx + vy * vy + vz * vz) < (vf)1.0e8f;
if (!__builtin_reduce_and(sane)) __atomic_store_n(broken.data, 1, __ATOMIC_RELAXED);
*(vu*)(qx + i) = vx; *(vu*)(qy + i) = vy; *(vu*)(qz + i) = vz;
float* nxp = next.data;
*(vu*)(nxp + i) = ux + tau * vx; *(vu*)(nxp + n + i) = uy + tau * vy; *(vu*)(nxp + 2 * n + i) = uz + tau * vz;
"""


# cuda has the plain kernel; there this function is empty.
@wp.func_native("#if !defined(__CUDA_ARCH__)\n" + _TILE_STEP.replace("SHORTEST2", f"{SHORTEST2}f") + "\n#endif\n")
def step_tile(
    lattice: Lattice,
    tile: int,
    fraction: float,
    tick: float,
    live: wp.array(dtype=wp.float32),
    tools: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    next: wp.array(dtype=wp.float32),
    force: wp.array(dtype=wp.int64),
    broken: wp.array(dtype=wp.int32),
): ...


@wp.kernel
def lattice_step_native(
    first: int,
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    tools: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    # out
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
    broken_out: wp.array(dtype=wp.int32),
):
    fraction = float(substep + 1) / float(lattice.substeps)
    tick = lattice.dt * float(lattice.substeps)
    step_tile(
        lattice, first + wp.tid(), fraction, tick,
        live, tools, position, velocity_out, position_out, force_out, broken_out,
    )  # fmt: skip
