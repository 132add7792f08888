"""One substep of the lattice: springs, gravity, Verlet, tool contact, in one gather kernel.

For mass i at rest position X_i, with displacement u_i, velocity v_i and the viscous time τ, let p_i = u_i + τ·v_i. Then

    F_ij = k_ij (|d| − L) d/|d|,   d = X_j − X_i + p_j − p_i,   L = |X_j − X_i|             (Etheredge eq. 2, 3)
    v⁺ = (v + Δt (Σ F_ij / m + g)) / (1 + α Δt),   u⁺ = u + Δt v⁺                           (Verlet, Etheredge eq. 5, 6)

Taking the springs' length at p rather than u adds τ·k_ij times the rate of stretch: a dashpot beside every spring (a
Kelvin–Voigt solid of viscosity E·τ) for no further memory traffic. Only p and v are stored; u = p − τ·v. The drag α stands
for the surroundings that a lattice does not model.
|d| − L is computed as (2 R·e + e·e)/(|d| + L) with R = X_j − X_i, e = p_j − p_i, which keeps small strains in float32.

Differs from the source: the factor ½ before a·Δt² is dropped (it makes periods √2 too long); displacements from rest instead of
2x − x_prev in world coordinates; springs are damped; contact changes velocity, so that it adds no energy.

`lattice_step` is the plain kernel (cuda, and the readable form); `lattice_step_native` does the same for a whole tile of 16
masses with the cpu's vector unit. tests/test_lattice.py holds them together.
"""

from __future__ import annotations

import warp as wp

from viscera.tissue.layout import TILE

wp.set_module_options({"enable_backward": False})

TOOLS = 2
"""Instruments that may touch a lattice at once."""
TOOL_FLOATS = 16
TOOL_ACTIVE, TOOL_RADIUS, TOOL_FRICTION = wp.constant(0), wp.constant(1), wp.constant(2)
TOOL_START, TOOL_END = wp.constant(4), wp.constant(10)
"""Both ends of the capsule's axis at the start and at the end of the tick, six floats each [m], organ frame."""

LIVE_FLOATS = 8
LIVE_GRAVITY, LIVE_STIFFNESS, LIVE_VISCOUS_TIME, LIVE_KEEP = (
    wp.constant(0),
    wp.constant(3),
    wp.constant(4),
    wp.constant(5),
)
"""Gravity [m/s²] (three), stiffness that a table entry of 1 stands for [N/m], viscous time τ [s], and the share of its
velocity that a mass keeps per substep, 1/(1 + α·Δt) for a drag α [1/s] against its surroundings."""

FORCE_PARTS = 6
"""Force and torque on a tool, as integers, so that their sum is exact in any order."""
FORCE_UNITS = wp.constant(float(2**30))
"""Integer steps per newton."""
TORQUE_UNITS = wp.constant(float(2**36))
"""Integer steps per newton metre."""

FASTEST = wp.constant(1.0e4)
"""No tissue moves this fast [m/s]: beyond it, or not finite, the state is broken."""

SHORTEST2 = wp.constant(0.0025)
"""A spring below 5 % of its rest length (this squared) pushes less and less: its direction is about to be lost."""

_TILE = wp.constant(TILE)


@wp.struct
class Lattice:
    """What stays while a lattice runs."""

    slots: int
    spacing: float
    """[m]"""
    dt: float
    """Of a substep [s]"""
    substeps: int
    tile_slot: wp.array(dtype=wp.int32)
    rows: wp.array(dtype=wp.int32)
    tile_origin: wp.array(dtype=wp.vec3)
    """Rest position of each tile's first place [m]."""
    stiffness: wp.array(dtype=wp.float16)
    """Per direction and place, relative to LIVE_STIFFNESS; 0 where there is no spring."""
    inverse_mass: wp.array(dtype=wp.float32)
    """[1/kg]; 0 for anchors and empty places."""


ADD_INTEGER = """
#if defined(__CUDA_ARCH__)
atomicAdd((unsigned long long*)(target.data + index), (unsigned long long)value);
#else
__atomic_fetch_add(target.data + index, value, __ATOMIC_RELAXED);
#endif
"""


@wp.func_native(ADD_INTEGER)
def add_integer(target: wp.array(dtype=wp.int64), index: int, value: wp.int64): ...


@wp.func
def load3(field: wp.array(dtype=wp.float32), slots: int, i: int):
    return wp.vec3(field[i], field[slots + i], field[2 * slots + i])


@wp.func
def store3(field: wp.array(dtype=wp.float32), slots: int, i: int, value: wp.vec3):
    field[i] = value[0]
    field[slots + i] = value[1]
    field[2 * slots + i] = value[2]


@wp.func
def spring(offset: wp.vec3, stretch: wp.vec3, stiffness: float):
    """Force of one spring with rest vector `offset` whose ends moved apart by `stretch`."""
    rest2 = wp.dot(offset, offset)
    rest = wp.sqrt(rest2)
    gain = 2.0 * wp.dot(offset, stretch) + wp.dot(stretch, stretch)
    length = wp.sqrt(wp.max(rest2 + gain, SHORTEST2 * rest2))
    return (stiffness * gain / (length * (length + rest))) * (offset + stretch)


@wp.func
def spring_sum(
    slots: int, spacing: float, rows: wp.array(dtype=wp.int32), stiffness: wp.array(dtype=wp.float16),
    position: wp.array(dtype=wp.float32), tile: int, lane: int, i: int,
):  # fmt: skip
    """Σ F_ij over the 26 springs of mass i, in units of the reference stiffness."""
    own = load3(position, slots, i)
    total = wp.vec3()
    for d in range(13):
        # Of the 27 places around a mass, 14 … 26 look up in memory; the spring there is stored at the lower mass.
        r = (d + 14) // 3
        step = (d + 14) % 3 - 1
        offset = wp.vec3(float(step), float(r % 3 - 1), float(r // 3 - 1)) * spacing
        above = rows[9 * tile + r] + lane + step
        below = rows[9 * tile + 8 - r] + lane - step
        total += spring(offset, load3(position, slots, above) - own, float(stiffness[d * slots + i]))
        total += spring(-offset, load3(position, slots, below) - own, float(stiffness[d * slots + below]))
    return total


@wp.func
def touch(
    tools: wp.array(dtype=wp.float32), tool: int, fraction: float, tick: float, inertia: float,
    force_out: wp.array(dtype=wp.int64), x: wp.vec3, v: wp.vec3,
):  # fmt: skip
    """Contact of one mass with one capsule: how far it must move, how much its velocity changes; books the reaction.

    A mass inside goes to the nearest point of the tool's surface; its velocity loses what points into the tool, and of the
    sliding at most friction times that (Coulomb). The reaction is the momentum taken away over Δt.
    """
    base = TOOL_FLOATS * tool
    at = base + TOOL_START
    to = base + TOOL_END
    a0 = wp.vec3(tools[at], tools[at + 1], tools[at + 2])
    b0 = wp.vec3(tools[at + 3], tools[at + 4], tools[at + 5])
    a1 = wp.vec3(tools[to], tools[to + 1], tools[to + 2])
    b1 = wp.vec3(tools[to + 3], tools[to + 4], tools[to + 5])
    a = a0 + fraction * (a1 - a0)
    axis = b0 + fraction * (b1 - b0) - a
    along = wp.clamp(wp.dot(x - a, axis) / wp.max(wp.dot(axis, axis), 1.0e-20), 0.0, 1.0)
    nearest = a + along * axis
    away = x - nearest
    distance = wp.length(away)
    radius = tools[base + TOOL_RADIUS]
    move = wp.vec3()
    change = wp.vec3()
    if distance < radius * tools[base + TOOL_ACTIVE]:
        normal = wp.vec3(0.0, 0.0, 1.0)
        if distance > 1.0e-9:
            normal = away / distance
        tool_velocity = ((1.0 - along) * (a1 - a0) + along * (b1 - b0)) / tick
        relative = v - tool_velocity
        approach = wp.min(wp.dot(relative, normal), 0.0)
        sliding = relative - wp.dot(relative, normal) * normal
        grip = wp.min(-tools[base + TOOL_FRICTION] * approach / wp.max(wp.length(sliding), 1.0e-12), 1.0)
        move = nearest + radius * normal - x
        change = -approach * normal - grip * sliding
        felt = -inertia * change
        torque = wp.cross(x + move - a, felt)
        for c in range(3):
            add_integer(force_out, FORCE_PARTS * tool + c, wp.int64(wp.rint(felt[c] * FORCE_UNITS)))
            add_integer(force_out, FORCE_PARTS * tool + 3 + c, wp.int64(wp.rint(torque[c] * TORQUE_UNITS)))
    return move, change


@wp.kernel
def lattice_step(
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
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    weight = lattice.inverse_mass[i]
    if weight == 0.0:
        return
    slots = lattice.slots
    pull = spring_sum(slots, lattice.spacing, lattice.rows, lattice.stiffness, position, tile, lane, i)
    gravity = wp.vec3(live[LIVE_GRAVITY], live[LIVE_GRAVITY + 1], live[LIVE_GRAVITY + 2])
    tau = live[LIVE_VISCOUS_TIME]
    before = load3(velocity_out, slots, i)
    v = live[LIVE_KEEP] * (before + lattice.dt * (pull * (live[LIVE_STIFFNESS] * weight) + gravity))
    u = load3(position, slots, i) - tau * before + lattice.dt * v
    rest = lattice.tile_origin[tile] + wp.vec3(float(lane) * lattice.spacing, 0.0, 0.0)
    fraction = float(substep + 1) / float(lattice.substeps)
    tick = lattice.dt * float(lattice.substeps)
    # A force f changes v by keep·Δt·f/m, so a change of v took m/(keep·Δt) times it.
    inertia = 1.0 / (weight * lattice.dt * live[LIVE_KEEP])
    for tool in range(TOOLS):
        move, change = touch(tools, tool, fraction, tick, inertia, force_out, rest + u, v)
        u = u + move
        v = v + change
    if not (wp.length_sq(v) < FASTEST * FASTEST):
        broken_out[0] = 1
    store3(velocity_out, slots, i, v)
    store3(position_out, slots, i, u + tau * v)


_NATIVE = """
typedef float vf __attribute__((ext_vector_type(16)));
typedef float vu __attribute__((ext_vector_type(16), aligned(4)));
typedef _Float16 vh __attribute__((ext_vector_type(16), aligned(2)));
const long n = slots;
const long i = tile_slot;
const float* px = position.data;
const float* py = px + n;
const float* pz = py + n;
const _Float16* stiff = (const _Float16*)stiffness.data;
const vf ox = *(const vu*)(px + i), oy = *(const vu*)(py + i), oz = *(const vu*)(pz + i);
vf fx = 0.0f, fy = 0.0f, fz = 0.0f;
const float h = spacing;
#pragma unroll
for (long d = 0; d < 13; ++d) {
    const long r = (d + 14) / 3, step = (d + 14) % 3 - 1;
    const float cx = (float)step, cy = (float)(r % 3 - 1), cz = (float)(r / 3 - 1);
    const float steps2 = cx * cx + cy * cy + cz * cz;
    const float rest = h * (steps2 == 1.0f ? 1.0f : (steps2 == 2.0f ? 1.41421356f : 1.73205081f));
    const float rest2 = h * h * steps2;
    #pragma unroll
    for (long side = 1; side >= -1; side -= 2) {
        const long j = side > 0 ? rows.data[9 * tile + r] + step : rows.data[9 * tile + 8 - r] - step;
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
const vf weight = *(const vu*)(inverse_mass.data + i);
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
const vf restx = tile_x + lanes * h;
for (long t = 0; t < tool_count; ++t) {
    const float* tool = tools.data + 16 * t;
    if (!(tool[0] > 0.0f)) continue;
    const float* s = tool + 4;
    const float* e = tool + 10;
    const float ax = s[0] + fraction * (e[0] - s[0]), ay = s[1] + fraction * (e[1] - s[1]), az = s[2] + fraction * (e[2] - s[2]);
    const float gx = s[3] + fraction * (e[3] - s[3]) - ax, gy = s[4] + fraction * (e[4] - s[4]) - ay, gz = s[5] + fraction * (e[5] - s[5]) - az;
    const float g2 = gx * gx + gy * gy + gz * gz;
    const vf rx = restx + ux - ax, ry = tile_y + uy - ay, rz = tile_z + uz - az;
    const vf along = __builtin_elementwise_min(__builtin_elementwise_max((rx * gx + ry * gy + rz * gz) / (g2 > 1.0e-20f ? g2 : 1.0e-20f), (vf)0.0f), (vf)1.0f);
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
        const float cx = -approach * nx - grip * slx, cy = -approach * ny - grip * sly, cz = -approach * nz - grip * slz;
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


@wp.func_native("#if !defined(__CUDA_ARCH__)\n" + _NATIVE.replace("SHORTEST2", "0.0025f") + "\n#endif\n")
def _tile_step(
    slots: int, spacing: float, dt: float, tick: float, fraction: float, tool_count: int,
    tile: int, tile_slot: int, tile_x: float, tile_y: float, tile_z: float,
    rows: wp.array(dtype=wp.int32), stiffness: wp.array(dtype=wp.float16), inverse_mass: wp.array(dtype=wp.float32),
    live: wp.array(dtype=wp.float32), tools: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32), next: wp.array(dtype=wp.float32),
    force: wp.array(dtype=wp.int64), broken: wp.array(dtype=wp.int32),
): ...  # fmt: skip


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
    tile = first + wp.tid()
    origin = lattice.tile_origin[tile]
    fraction = float(substep + 1) / float(lattice.substeps)
    tick = lattice.dt * float(lattice.substeps)
    _tile_step(
        lattice.slots, lattice.spacing, lattice.dt, tick, fraction, TOOLS,
        tile, lattice.tile_slot[tile], origin[0], origin[1], origin[2],
        lattice.rows, lattice.stiffness, lattice.inverse_mass,
        live, tools, position, velocity_out, position_out, force_out, broken_out,
    )  # fmt: skip


@wp.kernel
def retune(
    first: int,
    # params
    slots: int,
    change: wp.array(dtype=wp.float32),
    # in
    velocity: wp.array(dtype=wp.float32),
    # out
    position_out: wp.array(dtype=wp.float32),
):
    """The viscous time changed by change[0]: keep u, move p = u + τ·v."""
    i = first + wp.tid()
    position_out[i] = position_out[i] + change[0] * velocity[i]
