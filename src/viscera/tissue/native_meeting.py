"""Tissue meets tissue on one core, in C: the kernels of partner_kernels.py and meeting_kernels.py that take time, to
the bit. An index into a `wp.array` goes through byte strides; here it is one load, and candidates that are too far off
are left after one comparison. Sums keep their order.
"""

from __future__ import annotations

import warp as wp

from viscera.native import fill, on_cpu
from viscera.tissue.kernels import Lattice
from viscera.tissue.meeting_kernels import (
    APART,
    BUCKETS,
    CANDIDATES,
    FARTHEST,
    MATES,
    NEIGHBOURS,
    PARTNERS,
    RUNAWAYS,
    SOFT,
    Meet,
)
from viscera.tissue.partner_kernels import BALL, FACING, MIDDLE, NEAR_TABLE, POINT, SKIN, SLACK, SURE

wp.set_module_options({"enable_backward": False})

_COMMON = """
typedef wp::vec3 F3;
const F3* x = meet.x.data;
const int count = meet.count.data[0];
const bool stale = meet.count.data[3] != 0 || meet.count.data[4] > $runaways;
const float reach = 1.5f * meet.spacing + $slack;
const auto tied_to = [&](int c, int d) {
    const int other = meet.place.data[d];
    const int* tied = meet.tied.data + (Place)c * $neighbours;
    bool found = false;
    for (int k = 0; k < $neighbours; ++k) found |= tied[k] == other || tied[k] == -2 - other;
    return found;
};
const auto may_meet = [&](int c, int d) {
    if (meet.piece.data[c] != meet.piece.data[d]) return true;
    return ((meet.kind.data[c] | meet.kind.data[d]) & 1) != 0 && !tied_to(c, d);
};
const auto runaways_near = [&](const F3& at) {
    const float far = 1.01f * reach;
    for (int axis = 0; axis < 3; ++axis)
        if (at[axis] < meet.box.data[axis] - far || at[axis] > meet.box.data[3 + axis] + far) return 0;
    return (int)meet.count.data[4];
};
"""

_PARTNERS = """
// Farther than this, squared, is out of reach however it is rounded.
const float beyond = 1.0001f * reach * reach;
for (int c = 0; c < meet.fresh_count.data[0]; ++c) {
    const F3 own = x[c], normal = meet.normal.data[c];
    const float flat = meet.flat.data[c];
    int listed = meet.candidates.data[c], runaways = 0, mates = 0, found = 0;
    bool every = listed > $candidates;
    if (!stale && c < count) {
        every = every || meet.runs.data[c] != 0;
        runaways = every ? 0 : runaways_near(own);
    }
    if (every) listed = count;
    const int fresh = meet.fresh.data[c];
    if (fresh >= 0) mates = meet.mates.data[fresh];
    const int others = listed + runaways;
    const Place first = (Place)c * $partners;
    int* partner = meet.partner.data + first;
    F3* along_of = meet.along.data + first;
    float* weight_of = meet.weight.data + first;
    float* touch_of = meet.reach.data + first;
    for (int k = 0; k < others + mates; ++k) {
        int d = k;
        bool compared = every;
        if (k >= others) {
            d = meet.mate.data[(Place)fresh * $mates + k - others];
            compared = false;
        } else if (k >= listed) {
            d = meet.runaway.data[k - listed];
            compared = true;
        } else if (!every) {
            d = meet.candidate.data[(Place)c * $candidates + k];
        }
        const F3 way = x[d] - own;
        const float far2 = wp::dot(way, way);
        if (!(far2 <= beyond)) continue;
        const float far = ROOT1(far2);
        if (!(far <= reach && far >= 1.0e-9f)) continue;
        if (compared) {
            if (!may_meet(c, d)) continue;
        } else if (!stale && k < others && meet.runs.data[d] != 0) {
            continue;
        }
        const F3 other = meet.normal.data[d];
        const float other_flat = meet.flat.data[d], offsets = meet.offset.data[c] + meet.offset.data[d];
        const bool facing = wp::dot(normal, other) < $facing * (flat * other_flat);
        F3 surface, along;
        float height = 0.0f, weight = 0.0f, touch = offsets;
        bool above = false;
        if (facing || (flat < $point) != (other_flat < $point)) {
            surface = wp::normalize(normal - other);
            height = wp::dot(surface, way);
            above = height >= $middle * meet.spacing;
        }
        if (facing || above) {
            along = surface;
            if (above && height - touch <= $slack) {
                const float aside = wp::length(way - height * surface) / meet.spacing;
                weight = 1.0f - aside * aside;
            }
        } else {
            along = way / far;
            touch = SMALLER(LARGER($ball * meet.spacing, offsets), meet.spacing);
            weight = far <= touch + $slack ? 1.0f : 0.0f;
        }
        if (!(weight > 0.0f)) continue;
        // Where the list is full of others whose keys are lower, it is left out: the same in any order.
        const int key = meet.key.data[d];
        int at = found;
        if (found >= $partners) {
            meet.count.data[2] += 1;
            at = found - 1;
            if (key > meet.key.data[partner[at]]) continue;
        } else {
            ++found;
        }
        for (; at > 0 && meet.key.data[partner[at - 1]] > key; --at) {
            partner[at] = partner[at - 1];
            along_of[at] = along_of[at - 1];
            weight_of[at] = weight_of[at - 1];
            touch_of[at] = touch_of[at - 1];
        }
        partner[at] = d;
        along_of[at] = along;
        weight_of[at] = weight;
        touch_of[at] = touch;
    }
    meet.partners.data[c] = found;
    float total = 0.0f;
    for (int k = 0; k < found; ++k) total += weight_of[k];
    meet.total.data[c] = LARGER(total, 1.0f);
    const bool low = meet.inverse_mass.data[c] > 0.0f && own[2] - meet.offset.data[c] < meet.table + $near_table;
    if (found > 0 || low) meet.listed.data[meet.count.data[1]++] = c;
}
"""

_NORMALS = """
const Place n = lattice.slots;
const float* p = position.data;
const int begin = meet.begin.data[number];
const int known = meet.begin.data[number + 1] - begin, news = meet.fresh_count.data[0] - count;
for (int row = 0; row < known + news; ++row) {
    const int c = row >= known ? count + row - known : begin + row;
    bool near = meet.candidates.data[c] != 0 || meet.fresh.data[c] >= 0;
    if (!near && !stale) {
        const int runaways = runaways_near(x[c]);
        for (int k = 0; k < runaways && !near; ++k) near = wp::length(x[meet.runaway.data[k]] - x[c]) <= reach;
    }
    if (!near || meet.owner.data[c] != number) continue;
    const Place i = meet.place.data[c];
    const int leans = meet.leans.data[c];
    const int* tied = meet.tied.data + (Place)c * $neighbours;
    F3 out, ax, ay, az;
    for (int k = 0; k < $neighbours; ++k) {
        const Place j = tied[k];
        if (j < 0) continue;
        const int place = k < 13 ? k : k + 1;
        const float sx = (float)(place / 9 - 1), sy = (float)(place / 3 % 3 - 1), sz = (float)(place % 3 - 1);
        const F3 between(p[j] - p[i], p[n + j] - p[n + i], p[2 * n + j] - p[2 * n + i]);
        const F3 way = F3(sx, sy, sz) + between / lattice.spacing;
        ax = ax + sx * way;
        ay = ay + sy * way;
        az = az + sz * way;
        if ((leans >> k) & 1) out = out - way;
    }
    const F3 lean = meet.lean.data[c];
    const F3 turned = wp::cross(ay, az) * lean[0] + wp::cross(az, ax) * lean[1] + wp::cross(ax, ay) * lean[2];
    if (wp::dot(turned, out) > $sure * wp::length(turned) * wp::length(out)) out = turned;
    meet.normal.data[c] = wp::normalize(out) * meet.flat.data[c];
}
"""

_PUSH = """
typedef wp::vec3 F3;
const float soft_depth = $soft * meet.spacing, farthest = $farthest * meet.spacing;
for (int n = 0; n < meet.count.data[1]; ++n) {
    const int c = meet.listed.data[n];
    const F3 own_x = x.data[c], own_v = v.data[c];
    F3 push, shift;
    for (int k = 0; k < meet.partners.data[c]; ++k) {
        const Place at = (Place)c * $partners + k;
        const int d = meet.partner.data[at];
        const F3 along = meet.along.data[at];
        const float deep = meet.reach.data[at] - wp::dot(along, x.data[d] - own_x);
        if (!(deep > 0.0f)) continue;
        const float share = meet.share.data[at], soft = SMALLER(1.0f, deep / soft_depth);
        const F3 speed = v.data[d] - own_v;
        const float closing = soft * LARGER(-wp::dot(along, speed), 0.0f);
        F3 rubs;
        if (closing > 0.0f) {
            const F3 slide = speed - wp::dot(speed, along) * along;
            const float size = wp::length(slide);
            if (size > 1.0e-9f) rubs = -slide * (SMALLER(meet.friction * closing, size) / size);
        }
        push = push - share * (closing * along + rubs);
        const float apart = soft * SMALLER($apart * deep, farthest);
        shift = shift - share * (apart * along + meet.dt * rubs);
    }
    x_out.data[c] = own_x + shift;
    v_out.data[c] = own_v + push;
    meet.pushed.data[c] = meet.pushed.data[c] + push;
    meet.shifted.data[c] = meet.shifted.data[c] + shift;
}
"""

_LIST = """
const float side = (1.5f + $skin) * meet.spacing + $slack, beyond = 1.0001f * side * side;
const bool whole = meet.count.data[3] != 0;
struct Cell { int x, y, z; };
const auto cell_of = [&](const F3& at) {
    return Cell{(int)__builtin_floorf(at[0] / side), (int)__builtin_floorf(at[1] / side),
                (int)__builtin_floorf(at[2] / side)};
};
const auto put_candidate = [&](int c, int d, int found) {
    if (found > $candidates) return found;
    int* list = meet.candidate.data + (Place)c * $candidates;
    int at = found;
    while (at > 0 && list[at - 1] > d) --at;
    if (at > 0 && list[at - 1] == d) return found;
    if (found < $candidates) {
        for (int k = found; k > at; --k) list[k] = list[k - 1];
        list[at] = d;
    }
    return found + 1;
};
for (int c = 0; stale && c < count; ++c) {
    const bool parted = (meet.kind.data[c] & 1) != 0;
    const int piece = meet.piece.data[c];
    // Where all is made anew, whole tissue of the first piece is put into its lists by the others.
    if (whole ? !(parted || piece != 0) : meet.runs.data[c] == 0) continue;
    const F3 at = meet.at.data[c];
    const Cell own = cell_of(at);
    int found = 0;
    for (int n = 0; n < 27; ++n) {
        const Cell cell = {own.x + n % 3 - 1, own.y + n / 3 % 3 - 1, own.z + n / 9 - 1};
        const int bucket = (int)(((unsigned)cell.x * 73856093u) ^ ((unsigned)cell.y * 19349663u)
                                 ^ ((unsigned)cell.z * 83492791u)) & ($buckets - 1);
        if (!parted && meet.low.data[bucket] == piece && meet.high.data[bucket] == piece) continue;
        for (int d = meet.head.data[bucket]; d >= 0; d = meet.after.data[d]) {
            const bool other_parted = (meet.kind.data[d] & 1) != 0;
            if (d == c || !(parted || other_parted || meet.piece.data[d] != piece)) continue;
            const F3 there = meet.at.data[d], way = there - at;
            const float far2 = wp::dot(way, way);
            if (!(far2 <= beyond) || !(ROOT1(far2) <= side)) continue;
            // Cells far from each other may share a bucket.
            const Cell its = cell_of(there);
            if (its.x != cell.x || its.y != cell.y || its.z != cell.z || !may_meet(c, d)) continue;
            found = put_candidate(c, d, found);
            const bool tells = whole ? !other_parted && meet.piece.data[d] == 0 : meet.runs.data[d] == 0;
            if (tells) {
                const int listed = put_candidate(d, c, meet.candidates.data[d]);
                meet.candidates.data[d] = listed;
                if (!whole && listed > $candidates) meet.fresh_count.data[2] = 1;
            }
        }
    }
    meet.candidates.data[c] = found;
}
"""

_NUMBERS = {"neighbours": str(NEIGHBOURS), "runaways": str(RUNAWAYS), "slack": float(SLACK)}
_START = fill(_COMMON, **_NUMBERS)


def _floats(**constants: float) -> dict[str, float]:
    return {name: float(value) for name, value in constants.items()}


@wp.func_native(on_cpu(_START + fill(
    _PARTNERS, candidates=str(CANDIDATES), partners=str(PARTNERS), mates=str(MATES),
    **_floats(slack=SLACK, facing=FACING, point=POINT, middle=MIDDLE, ball=BALL, near_table=NEAR_TABLE),
), fused=False))  # fmt: skip
def partners_of_all(meet: Meet): ...


@wp.func_native(on_cpu(_START + fill(_NORMALS, neighbours=_NUMBERS["neighbours"], **_floats(sure=SURE)), fused=False))
def normals_of_all(lattice: Lattice, number: int, position: wp.array(dtype=wp.float32), meet: Meet): ...


@wp.func_native(
    on_cpu(fill(_PUSH, partners=str(PARTNERS), **_floats(soft=SOFT, farthest=FARTHEST, apart=APART)), fused=False)
)
def push_all(
    x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), x_out: wp.array(dtype=wp.vec3),
    v_out: wp.array(dtype=wp.vec3), meet: Meet,
): ...  # fmt: skip


@wp.func_native(on_cpu(_START + fill(
    _LIST, candidates=str(CANDIDATES), buckets=str(BUCKETS), **_floats(skin=SKIN, slack=SLACK)
), fused=False))  # fmt: skip
def candidates_of_all(meet: Meet): ...


@wp.kernel
def find_partners_in_c(
    # out
    meet: Meet,
):
    partners_of_all(meet)


@wp.kernel
def find_normals_in_c(
    # params
    lattice: Lattice,
    number: int,
    # in
    position: wp.array(dtype=wp.float32),
    # out
    meet: Meet,
):
    normals_of_all(lattice, number, position, meet)


@wp.kernel
def push_pairs_in_c(
    # in
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    # out
    x_out: wp.array(dtype=wp.vec3),
    v_out: wp.array(dtype=wp.vec3),
    meet: Meet,
):
    push_all(x, v, x_out, v_out, meet)


@wp.kernel
def list_candidates_in_c(
    # out
    meet: Meet,
):
    candidates_of_all(meet)
