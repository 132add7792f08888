"""A stage of `viscera.heat.conduction` in C: a tile of 16 texels at once on cpu, one texel per thread on cuda.

An index into a `wp.array` goes through byte strides: on cpu it never becomes a vector load, on cuda it costs several
instructions (docs/decisions/002-lattice-storage.md). One source serves both; only the macros differ. Texels without
skin have no conductances and no inverse capacity, so a tile needs no mask. Same arithmetic and order as the plain
kernel, up to the last bits.
"""

# Warp's types speak of values; inside kernels the same names are declarations.
# pyright: reportCallIssue=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
from __future__ import annotations

import warp as wp

from viscera.heat.network import Conductances, Rates

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
const V gone = ONLY(inverse, rate.gain - rate.loss * own);
V next = own + weight * (heated + gone);
if (momentum != 0.0f) next += momentum * (own - LOAD(before.data + t));
STORE(before.data + t, next);
"""
"""The stage for V: 16 texels side by side on cpu, one on cuda."""

_CPU = """
#if !defined(__CUDA_ARCH__)
{
// Warp's cpu compiler fuses no multiply and add by itself.
#pragma clang fp contract(fast)
typedef float V __attribute__((ext_vector_type(16)));
typedef float U __attribute__((ext_vector_type(16), aligned(4)));
#define LOAD(p) ((V)(*(const U*)(p)))
#define STORE(p, v) *(U*)(p) = (v)
#define ONLY(a, v) ({ const V a_ = (a), v_ = (v); a_ > (V)0.0f ? v_ : (V)0.0f; })
#define EACH(c) for (int c = 0; c < 16; ++c)
#define OF(v, c) v[c]
const int tile = element;
const int lane = 0;
const long t = net.tile_texel.data[tile];
const long w = net.width;
STAGE
#undef LOAD
#undef STORE
#undef ONLY
#undef EACH
#undef OF
}
#endif
"""

_CUDA = """
#if defined(__CUDA_ARCH__)
typedef float V;
#define LOAD(p) (*(p))
#define STORE(p, v) *(p) = (v)
#define ONLY(a, v) ((a) > 0.0f ? (v) : 0.0f)
#define EACH(c) for (int c = 0; c < 1; ++c)
#define OF(v, c) v
const int tile = element / 16;
const int lane = element % 16;
const int t = net.tile_texel.data[tile] + lane;
const int w = net.width;
STAGE
#undef LOAD
#undef STORE
#undef ONLY
#undef EACH
#undef OF
#endif
"""


@wp.func_native(_CPU.replace("STAGE", _STAGE))
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


@wp.func_native(_CUDA.replace("STAGE", _STAGE))
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
