"""The header that every piece of C in this package begins with: one set of names, for cpu and for cuda.

`V` is what one turn of a loop computes with: 16 floats side by side on cpu, one float on cuda. So one body serves both
devices: `on_both(body)`. `on_cpu` and `on_cuda` are for what differs; on the other device they leave nothing behind,
and the header's macros end with the body.

    types       V floats, I integers, M masks (what a comparison of V or I gives), Place an index, Half 16 bits, F4
    memory      LOAD(p)  LOAD_INT(p)  LOAD_HALF(p)  STORE(p, v)  STORE_INT(p, i)  READ4(array, index)
                FOURTH(p, t, k): number k, a literal, of entries t, t + 1, … of four floats each
                FETCH(p, i)  FETCH_INT(p, i): entries i of an array, anywhere
    making      FILL(x)  FILL_INT(n)  PLACES(t): t, t + 1, …; on cuda t alone  REAL(i)
    lanes       WIDTH: 16 or 1  EACH(c) { OF(v, c) … }
    vectors     AT_LEAST(v, low)  AT_MOST(v, high)  ROOT(v)  ABS(v)  EXP(v): to 1e-7, up to v = 88  mask ? a : b
    masks       ANY(m)  ALL(m)  ANY_IN_ROW(m): among 16 neighbouring lanes, which on cuda are 16 threads
    sums        SUM(v): by halves  SUM_IN_ORDER(v): lane by lane
    scalars     LARGER(a, b)  SMALLER(a, b)  ROOT1(x)  PER_ROOT(x)  ROUND(x)  FIRST_BIT(m)  ADD_INTEGER(p, n): atomic
    compiler    UNROLL  UNROLL_4: on cuda  FUSED: first in the body of a lambda where the snippet is fused

SUM and SUM_IN_ORDER differ in their last bits. So does what is fused: Warp's cpu compiler makes no multiply-add by
itself, and a `fused` body lets it.
"""

from __future__ import annotations

import re

from viscera.native.template import TemplateError, check_filled

_CPU = r"""
typedef float V __attribute__((ext_vector_type(16)));
typedef float V_anywhere __attribute__((ext_vector_type(16), aligned(4)));
typedef int I __attribute__((ext_vector_type(16)));
typedef int I_anywhere __attribute__((ext_vector_type(16), aligned(4)));
typedef _Float16 H_anywhere __attribute__((ext_vector_type(16), aligned(2)));
typedef bool B __attribute__((ext_vector_type(16)));
typedef I M;
typedef long Place;
typedef _Float16 Half;
struct F4 { float x, y, z, w; };
#define FUSED _Pragma("clang fp contract(fast)")
#define UNROLL
#define UNROLL_4
#define WIDTH 16
#define LOAD(p) ((V)(*(const V_anywhere*)(p)))
#define LOAD_INT(p) ((I)(*(const I_anywhere*)(p)))
#define LOAD_HALF(p) __builtin_convertvector(*(const H_anywhere*)(p), V)
#define STORE(p, v) *(V_anywhere*)(p) = (v)
#define STORE_INT(p, i) *(I_anywhere*)(p) = (i)
#define READ4(a, t) (*(reinterpret_cast<const F4*>((a).data) + (t)))
#define EIGHT_(a, b, k) __builtin_shufflevector(a, b, k, k + 4, k + 8, k + 12, k + 16, k + 20, k + 24, k + 28)
#define FOURTH(p, t, k) ({ const float* p_ = (const float*)(p) + 4 * (long)(t); \
    const auto a_ = EIGHT_(LOAD(p_), LOAD(p_ + 16), k); const auto b_ = EIGHT_(LOAD(p_ + 32), LOAD(p_ + 48), k); \
    __builtin_shufflevector(a_, b_, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); })
#define FETCH(p, i) ({ V picked_; EACH(c_) picked_[c_] = (p)[(i)[c_]]; picked_; })
#define FETCH_INT(p, i) ({ I picked_; EACH(c_) picked_[c_] = (p)[(i)[c_]]; picked_; })
#define FILL(x) ((V)(x))
#define FILL_INT(n) ((I)(n))
#define PLACES(t) ((I)(t) + (I){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
#define REAL(i) __builtin_convertvector((i), V)
#define EACH(c) for (int c = 0; c < WIDTH; ++c)
#define OF(v, c) v[c]
#define AT_LEAST(v, x) ({ const V v_ = (v), x_ = (V)(x); v_ > x_ ? v_ : x_; })
#define AT_MOST(v, x) ({ const V v_ = (v), x_ = (V)(x); v_ < x_ ? v_ : x_; })
#define ROOT(v) __builtin_elementwise_sqrt(v)
#define EXP(v) ({ const V e_ = AT_LEAST(v, -87.0f), n_ = __builtin_elementwise_rint(e_ * 1.44269504f); \
    const V r_ = (e_ - n_ * 0.693145752f) - n_ * 1.42860677e-6f; \
    const V q_ = 0.166666667f + r_ * (0.0416666667f + r_ * (0.00833333333f + r_ * 0.00138888889f)); \
    (1.0f + r_ * (1.0f + r_ * (0.5f + r_ * q_))) \
        * __builtin_bit_cast(V, (__builtin_convertvector(n_, I) + 127) << 23); })
#define ABS(v) __builtin_elementwise_abs(v)
#define BITS(m) __builtin_bit_cast(unsigned short, __builtin_convertvector((m), B))
#define ANY(m) (BITS(m) != 0)
#define ALL(m) (BITS(m) == 0xffff)
#define ANY_IN_ROW(m) ANY(m)
#define SUM(v) ({ const V all_ = (v); const auto h_ = all_.lo + all_.hi; const auto q_ = h_.lo + h_.hi; \
    (q_.x + q_.z) + (q_.y + q_.w); })
#define SUM_IN_ORDER(v) ({ const V all_ = (v); float s_ = 0.0f; EACH(c_) s_ += all_[c_]; s_; })
#define LARGER(a, b) __builtin_fmaxf((a), (b))
#define SMALLER(a, b) __builtin_fminf((a), (b))
#define ROOT1(x) __builtin_sqrtf(x)
#define PER_ROOT(x) (1.0f / __builtin_sqrtf(x))
#define ROUND(x) __builtin_rint((double)(x))
#define FIRST_BIT(m) __builtin_ctz(m)
#define ADD_INTEGER(p, n) __atomic_fetch_add((p), (long long)(n), __ATOMIC_RELAXED)
"""

_CUDA = """
typedef float V;
typedef int I;
typedef bool M;
typedef int Place;
typedef wp::half Half;
typedef float4 F4;
#define FUSED
#define UNROLL _Pragma("unroll")
#define UNROLL_4 _Pragma("unroll 4")
#define WIDTH 1
#define LOAD(p) (*(p))
#define LOAD_INT(p) (*(p))
#define LOAD_HALF(p) wp::half_to_float(*(p))
#define STORE(p, v) *(p) = (v)
#define STORE_INT(p, i) *(p) = (i)
#define READ4(a, t) (*(reinterpret_cast<const float4*>((a).data) + (t)))
#define FOURTH(p, t, k) (((const float*)(p))[4 * (long long)(t) + (k)])
#define FETCH(p, i) ((p)[i])
#define FETCH_INT(p, i) ((p)[i])
#define FILL(x) (x)
#define FILL_INT(n) (n)
#define PLACES(t) (t)
#define REAL(i) ((float)(i))
#define EACH(c) for (int c = 0; c < WIDTH; ++c)
#define OF(v, c) v
#define AT_LEAST(v, x) fmaxf((v), (x))
#define AT_MOST(v, x) fminf((v), (x))
#define ROOT(v) sqrtf(v)
#define EXP(v) expf(v)
#define ABS(v) fabsf(v)
#define ANY(m) (m)
#define ALL(m) (m)
#define ANY_IN_ROW(m) (__ballot_sync(0xffffu << (threadIdx.x & 16), (m)) != 0)
#define SUM(v) (v)
#define SUM_IN_ORDER(v) (v)
#define LARGER(a, b) fmaxf((a), (b))
#define SMALLER(a, b) fminf((a), (b))
#define ROOT1(x) sqrtf(x)
#define PER_ROOT(x) rsqrtf(x)
#define ROUND(x) rint((double)(x))
#define FIRST_BIT(m) (__ffs((int)(m)) - 1)
#define ADD_INTEGER(p, n) atomicAdd((unsigned long long*)(p), (unsigned long long)(long long)(n))
"""

TEAM = """
#if defined(__CUDA_ARCH__)
const unsigned mates = team > 31 ? 0xffffffffu : ((1u << team) - 1u) << (threadIdx.x & 31 & ~(team - 1));
const auto sum_of = [=](float part) {
    for (int k = team >> 1; k > 0; k >>= 1) part += __shfl_xor_sync(mates, part, k, team);
    return part;
};
#else
const auto sum_of = [](float part) { return part; };
#endif
"""
"""`sum_of(x)` over the `team` threads that share a particle on cuda: 1, 2, 4 … 32, by shuffles, always in the same
order. On cpu a team is one thread. Wants `team`."""

_DEFINED = re.compile(r"^#define (\w+)", re.MULTILINE)


def on_cpu(body: str, *, fused: bool = True) -> str:
    """`body` with the header for cpu. `fused` lets the compiler make multiply-adds of it."""
    return _section("!defined(__CUDA_ARCH__)", _CPU, body, "#pragma clang fp contract(fast)\n" if fused else "")


def on_cuda(body: str) -> str:
    """`body` with the header for cuda, whose compiler makes multiply-adds anyway."""
    return _section("defined(__CUDA_ARCH__)", _CUDA, body, "")


def on_both(body: str, *, fused: bool = True) -> str:
    """One body for both devices."""
    return on_cpu(body, fused=fused) + on_cuda(body)


def _section(condition: str, header: str, body: str, pragma: str) -> str:
    ours, own = _DEFINED.findall(header), _DEFINED.findall(check_filled(body))
    if taken := sorted(set(ours) & set(own)):
        raise TemplateError(f"the body defines {taken}, which the header defines already")
    names = dict.fromkeys([*ours, *own])
    end = "\n".join(f"#undef {name}" for name in names)
    return f"#if {condition}\n{{\n{pragma}{header}{body}\n{end}\n}}\n#endif\n"
