"""A blade's tick in C, on one core: the kernels of blade_near_kernels.py, blade_cut_kernels.py and
blade_drag_kernels.py, to the bit.

What takes time there is to look at all masses for the few around an edge, and to sum over the 64 masses around each of
its points, through byte strides. Here all masses are looked at 16 at a time, roughly and in float32; those that may be
near are then looked at exactly, as are the few springs of which not both ends are beyond one side of what was swept.
Sums keep their order, so their bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from viscera.native import fill, on_cpu
from viscera.tissue.blade_cut_kernels import AROUND, cut_spring
from viscera.tissue.blade_drag_kernels import HOLD
from viscera.tissue.blade_kernels import (
    CATCHES_UP,
    CLOSE,
    EDGE_END,
    EDGE_FLOATS,
    EDGE_START,
    EDGES,
    FAR,
    HUNG,
    JUMP,
    NOTHING,
    ROUNDS,
    SAMPLES,
    SPREAD,
    STAY,
    TINY,
    Blades,
)
from viscera.tissue.blade_near_kernels import REACH, box_edge, box_fronts, edge_is_on
from viscera.tissue.blade_resistance_kernels import bound_sample
from viscera.tissue.kernels import FORCE_PARTS, FORCE_UNITS, LIVE_KEEP, LIVE_VISCOUS_TIME, TORQUE_UNITS, Lattice
from viscera.tissue.springs import DIRECTIONS

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

_EDGES, _SAMPLES, _EDGE_FLOATS = wp.constant(EDGES), wp.constant(SAMPLES), wp.constant(EDGE_FLOATS)
_DIRECTIONS = wp.constant(len(DIRECTIONS))

NOWHERE = 1.0e9
"""Where a place without a mass is at rest [cells]: far from every blade."""


@wp.struct
class Scan:
    """How all masses are looked at, 16 at a time."""

    rest: wp.array(dtype=wp.float32)
    """Of each place, where its mass is at rest [cells], three components; `NOWHERE` where there is none."""
    number: wp.array(dtype=wp.int32)
    """Of each place, which mass that is, in the order of memory."""
    beside: wp.array(dtype=wp.int32)
    """From a mass to its neighbour in each of the 13 directions, in `Blades.grid`."""
    sides: wp.array(dtype=wp.int32)
    """Of each place: a bit for each side of a box beyond which its mass is; scratch."""
    slots: wp.array(dtype=wp.int32)
    """Places of the masses in `Blades.near`; scratch."""
    places: wp.array(dtype=wp.vec3d)
    """Where these are [cells]; scratch."""
    springs: wp.array(dtype=wp.int32)
    """Springs that may have been crossed: mass · 13 + direction; scratch."""


def make_scan(tissue: Tissue, blades: Any) -> Any:
    """For cpu; `blades` is complete."""
    slots, warp, made = tissue.layout.slots, tissue.device.warp, Scan()
    places, cells = blades.masses.numpy(), blades.cells.numpy()
    rest = np.full((3, slots), NOWHERE, dtype=np.float32)
    rest[:, places] = cells.T
    number = np.zeros(slots, dtype=np.int32)
    number[places] = np.arange(len(places))
    size = np.array([1, blades.size[0], blades.size[0] * blades.size[1]])
    made.rest = wp.array(rest.ravel(), dtype=wp.float32, device=warp)
    made.number = wp.array(number, dtype=wp.int32, device=warp)
    made.beside = wp.array((np.array(DIRECTIONS) @ size).astype(np.int32), dtype=wp.int32, device=warp)
    made.sides = wp.zeros(slots, dtype=wp.int32, device=warp)
    made.slots = wp.zeros(len(places), dtype=wp.int32, device=warp)
    made.places = wp.zeros(len(places), dtype=wp.vec3d, device=warp)
    made.springs = wp.zeros(len(DIRECTIONS) * len(places), dtype=wp.int32, device=warp)
    return made


_NUMBERS = {
    "samples": str(SAMPLES), "edge_floats": str(EDGE_FLOATS), "start": str(int(EDGE_START)), "end": str(int(EDGE_END)),
}  # fmt: skip

_WHERE = """
typedef wp::vec_t<3, double> D3;
const Place n = lattice.slots;
const double per_cell = 1.0 / (double)lattice.spacing;
const float* px = position.data;
const float* qx = velocity.data;
const auto displaced = [&](Place i) {
    return D3((double)(px[i] - tau * qx[i]) * per_cell, (double)(px[n + i] - tau * qx[n + i]) * per_cell,
              (double)(px[2 * n + i] - tau * qx[2 * n + i]) * per_cell);
};
"""

_KEEP = """
const float* p = position.data;
const float* q = velocity.data;
float* b = blades.before.data;
for (Place t = 0; t < 3 * (Place)lattice.slots; t += 16) STORE(b + t, LOAD(p + t) - tau * LOAD(q + t));
"""

_ROUGHLY = """
const float per = (float)per_cell;
const float* rx = scan.rest.data;
const auto place_of = [&](int axis, Place t) {
    const Place a = axis * n + t;
    return LOAD(rx + a) + (LOAD(px + a) - tau * LOAD(qx + a)) * per;
};
// What float32 may be off [cells].
const double slack = 0.02;
const D3 low = blades.boxes.data[2 * edge], high = blades.boxes.data[2 * edge + 1];
"""

_LIST = """
const D3 from = low - D3($reach, $reach, $reach), to = high + D3($reach, $reach, $reach);
int count = 0;
for (Place t = 0; t < n; t += 16) {
    M in = FILL(0.0f) == FILL(0.0f);
    for (int axis = 0; axis < 3; ++axis) {
        const V x = place_of(axis, t);
        in &= (x >= FILL((float)(from[axis] - slack))) & (x <= FILL((float)(to[axis] + slack)));
    }
    unsigned some = BITS(in);
    while (some) {
        const Place i = t + FIRST_BIT(some);
        some &= some - 1;
        const int m = scan.number.data[i];
        const auto cell = blades.cells.data[m];
        const D3 x = D3((double)cell[0], (double)cell[1], (double)cell[2]) + displaced(i);
        bool near = true;
        for (int axis = 0; axis < 3; ++axis) near = near && x[axis] >= from[axis] && x[axis] <= to[axis];
        if (near) {
            blades.near.data[count] = m;
            scan.slots.data[count] = (int)i;
            scan.places.data[count] = x;
            ++count;
        }
    }
}
const int before = edge * $samples;
for (int k = 0; k < $samples && count > 0; ++k) {
    const int s = before + k;
    if (blades.known.data[edge] != 0 && blades.inside.data[s] > 0 && blades.bound.data[s] > 0.0f) continue;
    const double along = (double)k / (double)($samples - 1);
    const double* ends = blades.edges.data + edge * $edge_floats + $end;
    D3 here;
    for (int axis = 0; axis < 3; ++axis)
        here[axis] = (ends[axis] * (1.0 - along) + ends[3 + axis] * along) / (double)lattice.spacing;
    long long nearest = blades.nearest.data[s];
    for (int c = 0; c < count; ++c) {
        const D3 way = scan.places.data[c] - here;
        const double away = __builtin_sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2]);
        const long long one = (long long)__builtin_rint(away * 1048576.0) * 0x100000000ll + scan.slots.data[c];
        nearest = one < nearest ? one : nearest;
    }
    blades.nearest.data[s] = nearest;
}
return count;
"""
"""Masses around an edge, in the order of memory, and the nearest one for each sample that seeks: `list_near`."""

_SPRINGS = """
for (Place t = 0; t < n; t += 16) {
    I beyond = FILL_INT(0);
    for (int axis = 0; axis < 3; ++axis) {
        const V x = place_of(axis, t);
        beyond |= (x > FILL((float)(high[axis] + $around + slack))) & FILL_INT(1 << 2 * axis);
        beyond |= (x < FILL((float)(low[axis] - $around - slack))) & FILL_INT(2 << 2 * axis);
    }
    STORE_INT(scan.sides.data + t, beyond);
}
int found = 0;
for (int c = 0; c < count; ++c) {
    const int m = blades.near.data[c];
    const Place i = scan.slots.data[c];
    const auto cell = blades.cells.data[m];
    const int own = scan.sides.data[i];
    const int x = cell[0] - blades.low[0], y = cell[1] - blades.low[1], z = cell[2] - blades.low[2];
    const int* row = blades.grid.data + ((Place)z * blades.size[1] + y) * blades.size[0] + x;
    for (int d = 0; d < 13; ++d) {
        const int j = row[scan.beside.data[d]];
        if (j >= 0 && (own & scan.sides.data[j]) == 0 && blades.cut.data[d * n + i] == 0)
            scan.springs.data[found++] = m * 13 + d;
    }
}
return found;
"""
"""Whole springs of the masses near by, in their order, but for those that lie beyond one side of what was swept: both
ends do. The border of the box keeps neighbours inside."""

_TENTS = """
const int wide = 2 * $spread;
// By axis: the first of the masses around a place, their weights, and the slopes of these.
int first[3];
double tent[3][wide], slope[3][wide];
const auto look_around = [&](const D3& x) {
    const double reach = (double)$spread, down = -1.0 / (double)($spread * $spread);
    for (int axis = 0; axis < 3; ++axis) {
        first[axis] = (int)__builtin_floor(x[axis]) - $spread + 1;
        for (int k = 0; k < wide; ++k) {
            const double away = x[axis] - (double)(first[axis] + k);
            tent[axis][k] = (1.0 - __builtin_fabs(away) / reach) / reach;
            slope[axis][k] = away >= 0.0 ? down : -down;
        }
    }
};
const auto slot_at = [&](int x, int y, int z) {
    const int i = x - blades.low[0], j = y - blades.low[1], k = z - blades.low[2];
    const bool out = i < 0 || j < 0 || k < 0 || i >= blades.size[0] || j >= blades.size[1] || k >= blades.size[2];
    return out ? -1 : blades.grid.data[(k * blades.size[1] + j) * blades.size[0] + i];
};
"""

_FOLLOW = """
struct Found { D3 u, gx, gy, gz; int count; };
const auto displacement_at = [&](const D3& x) {
    look_around(x);
    Found f;
    f.count = 0;
    for (int c = 0; c < 8; ++c) {
        const int half = $spread - 1;
        f.count += slot_at(first[0] + half + c % 2, first[1] + half + c / 2 % 2, first[2] + half + c / 4) >= 0;
    }
    if (f.count == 0) return f;
    double total = 0.0;
    D3 gradient;
    for (int kz = 0; kz < wide; ++kz) {
        const double wz = tent[2][kz];
        for (int ky = 0; ky < wide; ++ky) {
            const double wy = tent[1][ky];
            for (int kx = 0; kx < wide; ++kx) {
                const int s = slot_at(first[0] + kx, first[1] + ky, first[2] + kz);
                if (s < 0) continue;
                const double wx = tent[0][kx];
                const D3 own = displaced(s);
                const double sx = slope[0][kx] * wy * wz, sy = wx * slope[1][ky] * wz, sz = wx * wy * slope[2][kz];
                const double w = wx * wy * wz;
                total += w;
                gradient = gradient + D3(sx, sy, sz);
                f.u = f.u + w * own;
                f.gx = f.gx + sx * own;
                f.gy = f.gy + sy * own;
                f.gz = f.gz + sz * own;
            }
        }
    }
    if (total > $tiny) {
        const double share = 1.0 / total;
        f.u = share * f.u;
        f.gx = share * (f.gx - gradient[0] * f.u);
        f.gy = share * (f.gy - gradient[1] * f.u);
        f.gz = share * (f.gz - gradient[2] * f.u);
    }
    return f;
};
const auto at_rest = [&](const D3& here, D3 found, const D3& beyond, int& count) {
    double residual = 1.0;
    count = 0;
    for (int round = 0; round < $rounds; ++round) {
        const Found f = displacement_at(found);
        count = f.count;
        const D3 miss = found + (count == 0 ? beyond : f.u) - here;
        residual = wp::length(miss);
        if (residual < $close) break;
        D3 step = miss;
        if (count > 0) {
            const auto jacobian = wp::add(wp::identity<3, double>(), wp::matrix_from_cols(f.gx, f.gy, f.gz));
            if (wp::determinant(jacobian) > 0.05) step = wp::mul(wp::inverse(jacobian), miss);
        }
        const double length = wp::length(step);
        if (length > 0.5) step = step * (0.5 / length);
        found = found - step;
    }
    if (residual > $far) count = -1;
    return found;
};
const double cell = (double)lattice.spacing;
const double* ends = blades.edges.data + edge * $edge_floats;
const auto point = [&](int at) { return D3(ends[at], ends[at + 1], ends[at + 2]); };
const auto across_edge = [&](const D3& way) {
    const D3 direction = wp::normalize(point($end + 3) - point($end));
    return way - wp::dot(way, direction) * direction;
};
for (int k = 0; k < $samples; ++k) {
    const int s = edge * $samples + k;
    const double along = (double)k / (double)($samples - 1);
    const D3 begin = (point($start) * (1.0 - along) + point($start + 3) * along) / cell;
    const D3 blade = (point($end) * (1.0 - along) + point($end + 3) * along) / cell;
    const D3 was = blades.at.data[s];
    const float bound = blades.bound.data[s];
    const bool known = blades.known.data[edge] != 0;
    const bool tracked = known && blades.inside.data[s] > 0 && bound > 0.0f;
    D3 target = blade, u;
    if (tracked) {
        u = displacement_at(was).u;
        const D3 ahead = across_edge(target - was - u);
        const double size = wp::length(ahead);
        if (size > $tiny) blades.way.data[s] = ahead / size;
        const float stiffness = blades.stiffness.data[s];
        if (stiffness > 0.0f) {
            const double share = (double)(bound / stiffness) / cell / wp::max(size, $tiny);
            target = target - ahead * wp::min(share, 1.0);
        }
    } else {
        if (wp::length(blade - begin) > $tiny) blades.way.data[s] = wp::normalize(blade - begin);
        const long long nearest = blades.nearest.data[s];
        if (nearest != 0x7fffffffffffffffll) u = displaced((Place)(nearest % 0x100000000ll));
    }
    int count;
    D3 found = at_rest(target, target - u, u, count);
    D3 front = target;
    const bool holds = tracked && blades.inside.data[s] == 8 && wp::length(blade - was - u) <= $stay;
    if (count < 0 && holds) {
        found = was;
        front = was + u;
        count = blades.inside.data[s];
    } else if (count <= 0) {
        found = blade - u;
        front = blade;
        count = 0;
    }
    const D3 behind = begin - blades.front.data[s];
    blades.swept_from.data[s] = begin;
    if (known && wp::length(behind) < $jump) {
        blades.swept_from.data[s] = blades.front.data[s];
        if (count == 0 && wp::length(behind) < $stay) front = blade - $catches_up * behind;
    }
    blades.front.data[s] = front;
    blades.at.data[s] = found;
    blades.inside.data[s] = count;

    // Hung on the masses there.
    look_around(found);
    float total = 0.0f;
    int* place = blades.places.data + (Place)s * $hung;
    float* weight = blades.weights.data + (Place)s * $hung;
    for (int c = 0; c < $hung; ++c) {
        const int kx = c % wide, ky = c / wide % wide, kz = c / (wide * wide);
        const int i = slot_at(first[0] + kx, first[1] + ky, first[2] + kz);
        weight[c] = i >= 0 ? (float)(tent[0][kx] * tent[1][ky] * tent[2][kz]) : 0.0f;
        place[c] = i >= 0 ? i : 0;
        total += weight[c];
    }
    const float whole = total > $nothing ? total : $nothing;
    for (int c = 0; c < $hung; ++c) weight[c] = weight[c] / whole;
}
"""
"""`follow_sample` of every sample of an edge."""

_DRAG = """
typedef wp::vec_t<3, double> D3;
const Place n = lattice.slots;
float* px = position.data;
float* qx = velocity.data;
const auto on = [&](int edge) {
    return blades.edges.data[edge * $edge_floats] != 0.0 && blades.known.data[edge] != 0;
};
const auto each = [&](auto what) {
    for (int edge = 0; edge < $edges; ++edge)
        for (int k = 0; on(edge) && k < $samples; ++k)
            if (blades.bound.data[edge * $samples + k] > 0.0f) what(edge, k, edge * $samples + k);
};
const auto each_mass = [&](int s, auto what) {
    const int* place = blades.places.data + (Place)s * $hung;
    const float* weight = blades.weights.data + (Place)s * $hung;
    for (int c = 0; c < $hung; ++c)
        if (weight[c] > 0.0f) what((Place)place[c], weight[c]);
};
each([&](int, int, int s) {
    each_mass(s, [&](Place i, float w) { blades.share.data[i] = blades.share.data[i] + w; });
});
const double part = (double)(substep + 1) / (double)lattice.substeps;
each([&](int edge, int k, int s) {
    const double* ends = blades.edges.data + edge * $edge_floats;
    const auto point = [&](int at) { return D3(ends[at], ends[at + 1], ends[at + 2]); };
    const double along = (double)k / (double)($samples - 1);
    const D3 first = point($start) * (1.0 - along) + point($start + 3) * along;
    const D3 last = point($end) * (1.0 - along) + point($end + 3) * along;
    const D3 place = first + part * (last - first);
    float yields = 0.0f, mx = 0.0f, my = 0.0f, mz = 0.0f;
    each_mass(s, [&](Place i, float w) {
        const float inverse = lattice.inverse_mass.data[i];
        yields += w * blades.share.data[i] * (inverse > 0.0f ? inverse : blades.stray);
        mx += w * (px[i] - tau * qx[i]);
        my += w * (px[n + i] - tau * qx[n + i]);
        mz += w * (px[2 * n + i] - tau * qx[2 * n + i]);
    });
    const float stiffness = $hold / (yields * lattice.dt * lattice.dt);
    blades.stiffness.data[s] = stiffness;
    const D3 front = blades.at.data[s] * (double)lattice.spacing + D3((double)mx, (double)my, (double)mz);
    const D3 direction = wp::normalize(point($end + 3) - point($end));
    const D3 way = place - front, across = way - wp::dot(way, direction) * direction;
    wp::vec3 pull = stiffness * wp::vec3((float)across[0], (float)across[1], (float)across[2]);
    const float size = wp::length(pull), bound = blades.bound.data[s];
    if (size > bound) pull = pull * (bound / size);
    blades.pull.data[s] = pull;

    const int tool = (int)ends[2];
    const float* tip = tips.data + tips_at + 6 * tool + 3;
    const wp::vec3 arm = wp::vec3((float)place[0], (float)place[1], (float)place[2]) - wp::vec3(tip[0], tip[1], tip[2]);
    const wp::vec3 torque = wp::cross(arm, -pull);
    long long* felt = force.data + $force_parts * tool;
    for (int axis = 0; axis < 3; ++axis) {
        felt[axis] = felt[axis] - (long long)__builtin_rintf(pull[axis] * $force_units);
        felt[axis + 3] = felt[axis + 3] + (long long)__builtin_rintf(torque[axis] * $torque_units);
    }
});
each([&](int, int, int s) {
    const wp::vec3 pull = blades.pull.data[s];
    each_mass(s, [&](Place i, float w) {
        blades.share.data[i] = 0.0f;
        const float gain = w * lattice.inverse_mass.data[i] * lattice.dt * keep * lattice.keep.data[i];
        for (int axis = 0; axis < 3; ++axis) {
            const Place a = axis * n + i;
            const float change = gain * pull[axis];
            qx[a] = qx[a] + change;
            px[a] = px[a] + tau * change;
        }
    });
});
"""
"""`drag_edges`."""


def _near(body: str, **numbers: str | float) -> str:
    return on_cpu(_WHERE + _ROUGHLY + fill(body, **numbers), fused=False) + _ELSEWHERE


_ELSEWHERE = "\n#if defined(__CUDA_ARCH__)\nreturn 0;\n#endif\n"
"""These kernels are for cpu alone, and are compiled for cuda with the rest."""

_FOLLOW_SOURCE = on_cpu(_WHERE + fill(_TENTS, spread=str(SPREAD)) + fill(
    _FOLLOW, **_NUMBERS, spread=str(SPREAD), hung=str(HUNG), rounds=str(int(ROUNDS)), nothing=float(NOTHING),
    **{name: repr(float(value)) for name, value in {
        "tiny": TINY, "close": CLOSE, "far": FAR, "stay": STAY, "jump": JUMP, "catches_up": CATCHES_UP,
    }.items()},
), fused=False)  # fmt: skip

_DRAG_SOURCE = on_cpu(fill(
    _DRAG, **_NUMBERS, edges=str(EDGES), hung=str(HUNG), hold=float(HOLD), force_parts=str(FORCE_PARTS),
    force_units=float(FORCE_UNITS), torque_units=float(TORQUE_UNITS),
), fused=False)  # fmt: skip


@wp.func_native(on_cpu(_KEEP, fused=False))
def keep_all(
    lattice: Lattice, blades: Blades, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
): ...  # fmt: skip


@wp.func_native(_near(
    _LIST, reach=repr(float(REACH)), samples=str(SAMPLES), edge_floats=str(EDGE_FLOATS), end=str(int(EDGE_END))
))  # fmt: skip
def list_around(
    lattice: Lattice, blades: Blades, scan: Scan, edge: int, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
) -> int: ...  # fmt: skip


@wp.func_native(_near(_SPRINGS, around=repr(float(AROUND))))
def list_springs(
    lattice: Lattice, blades: Blades, scan: Scan, edge: int, count: int, tau: float,
    position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32),
) -> int: ...  # fmt: skip


@wp.func_native(_FOLLOW_SOURCE)
def follow_edge(
    lattice: Lattice, blades: Blades, edge: int, tau: float, position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
): ...  # fmt: skip


@wp.func_native(_DRAG_SOURCE)
def drag_all(
    lattice: Lattice, blades: Blades, substep: int, tau: float, keep: float, tips: wp.array(dtype=wp.float32),
    tips_at: int, velocity: wp.array(dtype=wp.float32), position: wp.array(dtype=wp.float32),
    force: wp.array(dtype=wp.int64),
): ...  # fmt: skip


@wp.kernel
def keep_places_in_c(
    # params
    lattice: Lattice,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    blades: Blades,
):
    some = wp.bool(False)
    for edge in range(_EDGES):
        some = some or edge_is_on(blades, edge)
    if some:
        keep_all(lattice, blades, live[LIVE_VISCOUS_TIME], position, velocity)


@wp.kernel
def cut_in_c(
    # params
    lattice: Lattice,
    has_volume: int,
    # in
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    blades: Blades,
    bulk_out: wp.array(dtype=wp.float16),
    scan: Scan,
):
    tau = live[LIVE_VISCOUS_TIME]
    for edge in range(_EDGES):
        if not edge_is_on(blades, edge):
            blades.known[edge] = 0
        else:
            box_edge(lattice, blades, edge)
            count = list_around(lattice, blades, scan, edge, tau, position, velocity)
            follow_edge(lattice, blades, edge, tau, position, velocity)
            if blades.edges[edge * _EDGE_FLOATS + 3] != wp.float64(0.0):
                box_fronts(blades, edge)
                found = list_springs(lattice, blades, scan, edge, count, tau, position, velocity)
                for s in range(found):
                    m = scan.springs[s] // _DIRECTIONS
                    d = scan.springs[s] % _DIRECTIONS
                    cut_spring(lattice, blades, bulk_out, has_volume, tau, position, velocity, edge, m, d)
            for k in range(_SAMPLES):
                bound_sample(lattice, blades, edge, k)
            blades.known[edge] = 1


@wp.kernel
def drag_in_c(
    # params
    lattice: Lattice,
    substep: int,
    # in
    live: wp.array(dtype=wp.float32),
    tips: wp.array(dtype=wp.float32),
    tips_at: int,
    # out
    blades: Blades,
    velocity_out: wp.array(dtype=wp.float32),
    position_out: wp.array(dtype=wp.float32),
    force_out: wp.array(dtype=wp.int64),
):
    drag_all(
        lattice, blades, substep, live[LIVE_VISCOUS_TIME], live[LIVE_KEEP], tips, tips_at, velocity_out, position_out,
        force_out,
    )  # fmt: skip
