"""Kernels of heat in C. Stages: a tile of 16 texels at once on cpu, one texel per thread on cuda. Conductances: on cpu.

An index into a `wp.array` goes through byte strides: on cpu it never becomes a vector load, on cuda it costs several
instructions (docs/decisions/002-lattice-storage.md). One source serves both; only the macros differ. Texels without
skin have no conductances and no inverse capacity, so a tile needs no mask. Same arithmetic and order as the plain
kernel, up to the last bits.
"""

from __future__ import annotations

import warp as wp

from viscera.heat.arrays import Conductances, Fabric, Rates
from viscera.native import fill, on_cpu, on_cuda

wp.set_module_options({"enable_backward": False})

_STAGE = """
const float* x = now.data + t;
const float* left = net.left.data + t;
const float* bottom = net.bottom.data + t;
const float* shear = net.shear.data + t;
const V own = LOAD(x);
V flow = LOAD(left) * (LOAD(x - 1) - own);
flow += LOAD(left + 1) * (LOAD(x + 1) - own);
flow += LOAD(bottom) * (LOAD(x - w) - own);
flow += LOAD(bottom + w) * (LOAD(x + w) - own);
flow += LOAD(shear) * (LOAD(x - w - 1) - own);
flow += LOAD(shear + w + 1) * (LOAD(x + w + 1) - own);
flow -= LOAD(shear + 1) * (LOAD(x - w + 1) - own);
flow -= LOAD(shear + w) * (LOAD(x + w - 1) - own);
const int linked = net.tile_links.data[tile];
if (linked >= 0) {
    const int* start = net.lane_links.data + linked + lane;
    EACH(c) {
        for (int k = start[c]; k < start[c + 1]; ++k)
            OF(flow, c) += net.link.data[k] * (now.data[net.link_texel.data[k]] - OF(own, c));
    }
}
const auto rate = rates.data[0];
const V inverse = LOAD(net.inverse.data + t);
const V heated = inverse * (flow + rate.dt * LOAD(power.data + t));
const V left_over = rate.gain - rate.loss * own;
const V gone = inverse > FILL(0.0f) ? left_over : FILL(0.0f);
V next = own + weight * (heated + gone);
if (momentum != 0.0f) next += momentum * (own - LOAD(before.data + t));
STORE(before.data + t, next);
"""
"""The stage for V: 16 texels side by side on cpu, one on cuda."""

_TILE_STAGE = on_cpu(
    fill(
        """
const int tile = element, lane = 0;
const Place t = net.tile_texel.data[tile], w = net.width;
$stage
""",
        stage=_STAGE,
    )
)

_TEXEL_STAGE = on_cuda(
    fill(
        """
const int tile = element / 16, lane = element % 16;
const Place t = net.tile_texel.data[tile] + lane, w = net.width;
$stage
""",
        stage=_STAGE,
    )
)


@wp.func_native(_TILE_STAGE)
def stage_of_tile(
    element: int,
    momentum: float,
    weight: float,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    power: wp.array(dtype=wp.float32),
    now: wp.array(dtype=wp.float32),
    before: wp.array(dtype=wp.float32),
): ...


@wp.func_native(_TEXEL_STAGE)
def stage_of_texel(
    element: int,
    momentum: float,
    weight: float,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    power: wp.array(dtype=wp.float32),
    now: wp.array(dtype=wp.float32),
    before: wp.array(dtype=wp.float32),
): ...


@wp.kernel
def stage_cpu(
    first: int,
    # params
    momentum: float,
    weight: float,
    # in
    net: Conductances,
    rates: wp.array(dtype=Rates),
    power: wp.array(dtype=wp.float32),
    now: wp.array(dtype=wp.float32),
    # out
    before_out: wp.array(dtype=wp.float32),
):
    stage_of_tile(first + wp.tid(), momentum, weight, net, rates, power, now, before_out)


@wp.kernel
def stage_cuda(
    first: int,
    # params
    momentum: float,
    weight: float,
    # in
    net: Conductances,
    rates: wp.array(dtype=Rates),
    power: wp.array(dtype=wp.float32),
    now: wp.array(dtype=wp.float32),
    # out
    before_out: wp.array(dtype=wp.float32),
):
    stage_of_texel(first + wp.tid(), momentum, weight, net, rates, power, now, before_out)


_TILES = """
const Place t = net.tile_texel.data[tile], w = net.width;
// Three numbers per texel, side by side: every third of 48.
struct Metric {
    V uu, uv, vv;
    Metric(const float* m) {
        const V a = LOAD(m), b = LOAD(m + 16), c = LOAD(m + 32);
        const V p = __builtin_shufflevector(a, b, 0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0);
        const V q = __builtin_shufflevector(a, b, 1, 4, 7, 10, 13, 16, 19, 22, 25, 28, 31, 0, 0, 0, 0, 0);
        const V r = __builtin_shufflevector(a, b, 2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 0, 0, 0, 0, 0, 0);
        uu = __builtin_shufflevector(p, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29);
        uv = __builtin_shufflevector(q, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 18, 21, 24, 27, 30);
        vv = __builtin_shufflevector(r, c, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 19, 22, 25, 28, 31);
    }
};
const auto square = [](V uu, V uv, V vv) {
    FUSED
    return ROOT(AT_LEAST(uu * vv - uv * uv, 1.0e-30f));
};
$body
"""
"""For a tile of 16 texels on cpu."""

_SIDES = """
const float* m = (const float*)metric.data + 3 * t;
const float k = rates.data[0].conduction;
const Metric own(m), before(m - 3), below(m - 3 * w);
const V lu = 0.5f * (own.uu + before.uu), lc = 0.5f * (own.uv + before.uv), lv = 0.5f * (own.vv + before.vv);
const float* r = rest.data + t;
const float* a = area.data + t;
// The sum of areas is nothing only beside the surface, where the factor is nothing too.
const V thin = (LOAD(r) + LOAD(r - 1)) / AT_LEAST(LOAD(a) + LOAD(a - 1), 1.0e-20f);
STORE(left.data + t, k * LOAD(fabric.factor_left.data + t) * thin * lv / square(lu, lc, lv));
const V bu = 0.5f * (own.uu + below.uu), bc = 0.5f * (own.uv + below.uv), bv = 0.5f * (own.vv + below.vv);
const V thinner = (LOAD(r) + LOAD(r - w)) / AT_LEAST(LOAD(a) + LOAD(a - w), 1.0e-20f);
STORE(bottom.data + t, k * LOAD(fabric.factor_bottom.data + t) * thinner * bu / square(bu, bc, bv));
"""

_SHEAR = """
if (t >= w) {
    const float* m = (const float*)metric.data + 3 * t;
    const float* left = net.left.data + t;
    const float* bottom = net.bottom.data + t;
    const Metric a(m - 3 * w - 3), b(m - 3 * w), c(m - 3), d(m);
    const V uu = 0.25f * (a.uu + b.uu + c.uu + d.uu);
    const V uv = 0.25f * (a.uv + b.uv + c.uv + d.uv);
    const V vv = 0.25f * (a.vv + b.vv + c.vv + d.vv);
    const V most = AT_MOST(AT_MOST(LOAD(left), LOAD(left - w)), AT_MOST(LOAD(bottom), LOAD(bottom - 1)));
    const float* r = rest.data + t;
    const float* s = area.data + t;
    const V was = LOAD(r) + LOAD(r - 1) + LOAD(r - w) + LOAD(r - w - 1);
    const V is = LOAD(s) + LOAD(s - 1) + LOAD(s - w) + LOAD(s - w - 1);
    const V slant = -rates.data[0].conduction * was / AT_LEAST(is, 1.0e-20f) * uv / square(uu, uv, vv);
    STORE(shear.data + t, LOAD(fabric.factor_shear.data + t) * AT_LEAST(AT_MOST(slant, most), -most));
}
"""

_LIMIT = """
const auto rate = rates.data[0];
const float* left = net.left.data + t;
const float* bottom = net.bottom.data + t;
const float* shear = net.shear.data + t;
V total = LOAD(left) + LOAD(left + 1) + LOAD(bottom) + LOAD(bottom + w);
total += ABS(LOAD(shear)) + ABS(LOAD(shear + w + 1)) + ABS(LOAD(shear + 1)) + ABS(LOAD(shear + w));
V size = LOAD(rest.data + t);
const I body = LOAD_INT(fabric.border_of.data + t);
if (net.tile_links.data[tile] >= 0) {
    EACH(c) {
        const int b = body[c];
        if (b < 0) continue;
        size[c] = fabric.border_area.data[b];
        for (int k = fabric.link_start.data[b]; k < fabric.link_start.data[b + 1]; ++k) total[c] += net.link.data[k];
    }
}
const V one = 1.0f / AT_LEAST(rate.capacity * size, 1.0e-20f);
STORE(inverse.data + t, body == FILL_INT(-2) ? FILL(0.0f) : one);
const V room = (rate.limit - rate.loss) / AT_LEAST(2.0f * total * one, 1.0e-20f);
STORE(cut.data + t, AT_MOST(room, 1.0f));
"""

_CUT = """
const float* f = fabric.cut.data + t;
const V own = LOAD(f), along = AT_MOST(own, LOAD(f - 1)), up = AT_MOST(own, LOAD(f - w));
const V least = AT_MOST(AT_MOST(along, up), LOAD(f - w - 1));
if (ANY(least < FILL(1.0f))) {
    STORE(left.data + t, LOAD(left.data + t) * along);
    STORE(bottom.data + t, LOAD(bottom.data + t) * up);
    STORE(shear.data + t, LOAD(shear.data + t) * least);
}
"""


def _tile(body: str) -> str:
    return on_cpu(fill(_TILES, body=body))


@wp.func_native(_tile(_SIDES))
def _side_tile(
    tile: int,
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    metric: wp.array(dtype=wp.vec3),
    rest: wp.array(dtype=wp.float32),
    area: wp.array(dtype=wp.float32),
    left: wp.array(dtype=wp.float32),
    bottom: wp.array(dtype=wp.float32),
): ...


@wp.func_native(_tile(_SHEAR))
def _shear_tile(
    tile: int,
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    metric: wp.array(dtype=wp.vec3),
    rest: wp.array(dtype=wp.float32),
    area: wp.array(dtype=wp.float32),
    shear: wp.array(dtype=wp.float32),
): ...


@wp.func_native(_tile(_LIMIT))
def _limit_tile(
    tile: int,
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    rest: wp.array(dtype=wp.float32),
    inverse: wp.array(dtype=wp.float32),
    cut: wp.array(dtype=wp.float32),
): ...


@wp.func_native(_tile(_CUT))
def _cut_tile(
    tile: int,
    fabric: Fabric,
    net: Conductances,
    left: wp.array(dtype=wp.float32),
    bottom: wp.array(dtype=wp.float32),
    shear: wp.array(dtype=wp.float32),
): ...


@wp.kernel
def side_tiles(
    first: int,
    # in
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    metric: wp.array(dtype=wp.vec3),
    rest: wp.array(dtype=wp.float32),
    area: wp.array(dtype=wp.float32),
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
):
    _side_tile(first + wp.tid(), fabric, net, rates, metric, rest, area, left_out, bottom_out)


@wp.kernel
def shear_tiles(
    first: int,
    # in
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    metric: wp.array(dtype=wp.vec3),
    rest: wp.array(dtype=wp.float32),
    area: wp.array(dtype=wp.float32),
    # out
    shear_out: wp.array(dtype=wp.float32),
):
    _shear_tile(first + wp.tid(), fabric, net, rates, metric, rest, area, shear_out)


@wp.kernel
def limit_tiles(
    first: int,
    # in
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    rest: wp.array(dtype=wp.float32),
    # out
    inverse_out: wp.array(dtype=wp.float32),
    cut_out: wp.array(dtype=wp.float32),
):
    _limit_tile(first + wp.tid(), fabric, net, rates, rest, inverse_out, cut_out)


@wp.kernel
def cut_tiles(
    first: int,
    # in
    fabric: Fabric,
    net: Conductances,
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
    shear_out: wp.array(dtype=wp.float32),
):
    _cut_tile(first + wp.tid(), fabric, net, left_out, bottom_out, shear_out)
