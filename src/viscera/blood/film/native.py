"""The neighbour loops of film_forces.py in C, over the sorted grid: 16 neighbours at once on cpu, a team on cuda.

An index into a `wp.array` goes through byte strides: on cpu it never becomes a vector load, on cuda it costs several
instructions. One source serves both; only the macros differ, and that on cpu the ranges around a cell are listed once
for its particles (`neighbors.blocks`). Neighbours in three cells side by side are one range of the sorted arrays, so
loads are contiguous; lanes beyond the range, the particle itself and what is too far are masked.
Same arithmetic as the plain kernels; on cpu sums run over 16 lanes, so they agree up to the last bits.

On cuda `FilmView.team` threads share a particle: each takes every team-th neighbour, and they add up by shuffles,
always in the same order. A film of a few thousand particles is bound by the latency of its loops, not by their work.

A thread takes `FilmView.chunk` particles: on cpu Warp copies a kernel's arguments for every thread, and these structs
are one to four kilobytes, which costs more than a simple kernel itself.
"""

from __future__ import annotations

from collections.abc import Iterable

import warp as wp

from viscera.blood.film.pairs import BACK_TO_BACK, FACING, VISCOUS, FilmView, Rates, Sorted
from viscera.neighbors.blocks import BLOCKS, CLOSE_BLOCKS, HITS, OPEN_BLOCKS, note_hit, open_hits
from viscera.neighbors.cells import GridView

wp.set_module_options({"enable_backward": False})

_CPU = """
#pragma clang fp contract(fast)
typedef float V __attribute__((ext_vector_type(16)));
typedef float U __attribute__((ext_vector_type(16), aligned(4)));
typedef int M __attribute__((ext_vector_type(16)));
typedef bool B __attribute__((ext_vector_type(16)));
#define STRIDE 16
#define OWN 0
#define LOAD(p) ((V)(*(const U*)(p)))
#define FILL(x) ((V)(x))
#define PLACES(t) ((M)(t) + (M){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
#define WHOLE(n) ((M)(n))
#define ANY(m) (__builtin_bit_cast(unsigned short, __builtin_convertvector((m), B)) != 0)
#define LARGER(a, b) __builtin_elementwise_max((V)(a), (V)(b))
#define SMALLER(a, b) __builtin_elementwise_min((V)(a), (V)(b))
#define ROOT(a) __builtin_elementwise_sqrt(a)
#define ROOT1(a) __builtin_sqrtf(a)
#define SUM(v) ({ const V all_ = (v); const auto h_ = all_.lo + all_.hi; const auto q_ = h_.lo + h_.hi; \\
    (q_.x + q_.z) + (q_.y + q_.w); })
"""

_CUDA = """
typedef float V;
typedef bool M;
#define STRIDE team
#define OWN lane
#define LOAD(p) (*(p))
#define FILL(x) (x)
#define PLACES(t) (t)
#define WHOLE(n) (n)
#define ANY(m) (m)
#define LARGER(a, b) fmaxf((a), (b))
#define SMALLER(a, b) fminf((a), (b))
#define ROOT(a) sqrtf(a)
#define ROOT1(a) sqrtf(a)
#define SUM(v) sum_of(v)
const int team = view.team;
const unsigned mates = team > 31 ? 0xffffffffu : ((1u << team) - 1u) << (threadIdx.x & 31 & ~(team - 1));
const auto sum_of = [=](float part) {
    for (int k = team >> 1; k > 0; k >>= 1) part += __shfl_xor_sync(mates, part, k, team);
    return part;
};
"""

_CLEAN = "\n".join(
    f"#undef {name}"
    for name in (
        "STRIDE",
        "OWN",
        "LOAD",
        "FILL",
        "PLACES",
        "WHOLE",
        "ANY",
        "LARGER",
        "SMALLER",
        "ROOT",
        "ROOT1",
        "SUM",
        "FLOOR_CELL",
    )
)

_WALK = """
const float h = view.radius, per_h = 1.0f / h, h2 = h * h;
const float least = 1.0e-5f * h, least2 = least * least;
const float margin = h + 2.0f * view.reach;
const float dt = rates.data[0].dt;
ONLY3(const float pooling = rates.data[0].pooling;)
BLOCKS
#define FLOOR_CELL(x, n) ((x) > 0.0f ? (int)((x) < (float)((n) - 1) ? (x) : (float)((n) - 1)) : 0)
for (int s = first_place; s < last_place; ++s) {
    const float bx = film.x.data[s], by = film.y.data[s];
    const float hx = HERE_X.data[s], hy = HERE_Y.data[s];
    ONLY3(const float bz = film.z.data[s]; const float hz = HERE_Z.data[s];)
    unsigned long long hits_ = 0;
    ONLY3(const float nx = film.nx.data[s]; const float ny = film.ny.data[s]; const float nz = film.nz.data[s];)
    SETUP
    for (int k = 0; k < view.images; ++k) {
        float sx = 0.0f, sy = 0.0f;
        if (k > 0) {
            sx = view.width * (float)((k + 1) % 3 - 1);
            sy = view.height * (float)(((k + 4) / 3) % 3 - 1);
            const float x = bx + sx, y = by + sy;
            if (!(x > -margin && x < view.width + margin && y > -margin && y < view.height + margin)) continue;
        }
        const float ax = (bx + sx - grid.lower[0]) * grid.cells_per_length;
        const float ay = (by + sy - grid.lower[1]) * grid.cells_per_length;
        const int cx = FLOOR_CELL(ax, grid.cells_x), cy = FLOOR_CELL(ay, grid.cells_y);
        ONLY3(const float az = (bz - grid.lower[2]) * grid.cells_per_length;)
        int cz = 0;
        ONLY3(cz = FLOOR_CELL(az, grid.cells_z);)
        const float ex = hx + sx, ey = hy + sy;
        OPEN
                const auto at = PLACES(t);
                V ox = LOAD(HERE_X.data + t) - ex, oy = LOAD(HERE_Y.data + t) - ey;
                V r2 = ox * ox + oy * oy;
                ONLY3(V oz = LOAD(HERE_Z.data + t) - hz; r2 += oz * oz;)
                M in = (r2 < FILL(h2)) & (at < WHOLE(end)) & (at != WHOLE(s));
                NONE
                const M same = in & (r2 < FILL(least2));
                if (ANY(same)) {
                    const V side = at > WHOLE(s) ? FILL(least) : FILL(-least);
                    ox = same ? 0.6f * side : ox;
                    oy = same ? 0.64f * side : oy;
                    ONLY3(oz = same ? 0.48f * side : oz;)
                    r2 = same ? FILL(least2 * LEAST_NORM) : r2;
                }
                ONLY3(
                    const V mx = LOAD(film.nx.data + t);
                    const V my = LOAD(film.ny.data + t);
                    const V mz = LOAD(film.nz.data + t);
                    const V alike = nx * mx + ny * my + nz * mz;
                    in = in & ((alike >= FILL(BACK_TO_BACK))
                               | (ox * (nx - mx) + oy * (ny - my) + oz * (nz - mz) > FILL(0.0f)));
                )
                const V r = ROOT(LARGER(r2, 1.0e-30f));
                V w = 1.0f - r * per_h;
                ONLY3(w = alike < FILL(FACING) ? w * pooling : w;)
                BODY
        CLOSE
    }
    const float gx = SUM(fx), gy = SUM(fy);
    ONLY3(const float gz = SUM(fz);)
    NOTED
    if (OWN == 0) {
    THEN
    }
}
"""
"""Visits who may be near. LEAST_NORM: on a sheet the direction in which two at one place part loses its third axis."""

_OPEN_ROWS = """
        const int west = cx > 0 ? cx - 1 : 0, east = cx < grid.cells_x - 1 ? cx + 1 : cx;
        for (int row = 0; row < ROWS; ++row) {
            const int y = cy + row % 3 - 1;
            if (y < 0 || y >= grid.cells_y) continue;
            int line = y;
            ONLY3(const int z = cz + row / 3 - 1; if (z < 0 || z >= grid.cells_z) continue; line += z * grid.cells_y;)
            const int* start = grid.cell_start.data + line * grid.cells_x;
            const int begin = start[west], end = start[east + 1];
            for (int t = begin + OWN; t < end; t += STRIDE) {
"""

_CLOSE_ROWS = """
            }
        }
"""

_LOOPS = {
    "viscosity": (
        "film.x",
        """
    const float vx = film.vx.data[s], vy = film.vy.data[s];
    ONLY3(const float vz = film.vz.data[s];)
    const float linear = film.linear.data[s], quadratic = film.quadratic.data[s];
    const float most = VISCOUS / (view.half * (dt > 1.0e-30f ? dt : 1.0e-30f));
    V fx = FILL(0.0f), fy = FILL(0.0f);
    ONLY3(V fz = FILL(0.0f);)
""",
        """
                const V per_r = 1.0f / r;
                V u = (vx - LOAD(film.vx.data + t)) * ox + (vy - LOAD(film.vy.data + t)) * oy;
                ONLY3(u += (vz - LOAD(film.vz.data + t)) * oz;)
                u = LARGER(u * per_r, 0.0f);
                const V a = 0.5f * (linear + LOAD(film.linear.data + t));
                const V b = 0.5f * (quadratic + LOAD(film.quadratic.data + t));
                const V f = in ? w * u * SMALLER(a + b * u, most) * per_r : FILL(0.0f);
                fx -= f * ox;
                fy -= f * oy;
                ONLY3(fz -= f * oz;)
""",
        """
    const float kick = dt * view.half;
    float ux = vx + kick * gx, uy = vy + kick * gy, uz = 0.0f;
    ONLY3(
        uz = vz + kick * gz;
        const float off = nx * ux + ny * uy + nz * uz;
        ux -= nx * off; uy -= ny * off; uz -= nz * off;
    )
    float dx = ux * dt, dy = uy * dt, dz = uz * dt;
    const float far2 = dx * dx + dy * dy + dz * dz;
    if (far2 > view.reach * view.reach) {
        const float less = view.reach / ROOT1(far2);
        dx *= less; dy *= less; dz *= less;
    }
    film.dx.data[s] = dx;
    film.dy.data[s] = dy;
    film.px.data[s] = bx + dx;
    film.py.data[s] = by + dy;
    ONLY3(film.dz.data[s] = dz; film.pz.data[s] = bz + dz;)
""",
    ),
    "density": (
        "film.px",
        "V fx = FILL(0.0f), fy = FILL(0.0f); ONLY3(V fz = FILL(0.0f);)",
        """
                const V c = in ? w : FILL(0.0f);
                fx += c * c;
                fy += c * c * c;
""",
        """
    const auto stiff = film.stiff.data[s];
    film.density.data[s] = gx;
    film.pressure.data[s] = stiff[0] * (gx - stiff[2]);
    film.near_pressure.data[s] = stiff[1] * gy;
""",
    ),
    "displacement": (
        "film.px",
        """
    const float pressure = view.own * film.pressure.data[s], nearer = view.own * film.near_pressure.data[s];
    const float other = view.other, separation = rates.data[0].separation, phase = film.phase.data[s];
    V fx = FILL(0.0f), fy = FILL(0.0f);
    ONLY3(V fz = FILL(0.0f);)
""",
        """
                const V unlike = LOAD(film.phase.data + t) - phase;
                const V p = pressure + other * LOAD(film.pressure.data + t) + separation * LARGER(unlike, -unlike);
                const V q = nearer + other * LOAD(film.near_pressure.data + t);
                const V f = in ? w * (p + q * w) / r : FILL(0.0f);
                fx -= f * ox;
                fy -= f * oy;
                ONLY3(fz -= f * oz;)
""",
        """
    film.dx.data[s] += dt * dt * gx;
    film.dy.data[s] += dt * dt * gy;
    ONLY3(film.dz.data[s] += dt * dt * gz;)
""",
    ),
}
"""Of each loop: the positions it looks at, what it begins with, what a neighbour adds, what becomes of the sum."""


def _only(source: str, three: bool) -> str:
    """Keeps or drops what ONLY3(…) encloses."""
    result = ""
    while (found := source.find("ONLY3(")) >= 0:
        result += source[:found]
        depth, end = 1, found + 6
        while depth:
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        result += source[found + 6 : end - 1] if three else ""
        source = source[end:]
    return result + source


def _source(loop: str, three: bool) -> str:
    near, setup, body, then = _LOOPS[loop]
    walk = _WALK.replace("SETUP", setup).replace("BODY", body).replace("THEN", then)
    for axis in "xyz":
        walk = walk.replace(f"HERE_{axis.upper()}", near[:-1] + axis)
    walk = walk.replace("LEAST_NORM", "1.0f" if three else "0.7696f")
    for name, value in (("BACK_TO_BACK", BACK_TO_BACK), ("FACING", FACING), ("VISCOUS", VISCOUS)):
        walk = walk.replace(name, f"{value}f")
    # On cpu a branch that guesses whether a block holds somebody near costs more than going through it.
    opening = open_hits("film.hits.data[s]") if loop == "displacement" else OPEN_BLOCKS
    none = note_hit("ANY(in)") if loop == "density" else ""
    noted = f"film.hits.data[s] = view.images == 1 ? {HITS} : ~0ULL;" if loop == "density" else ""
    lists = (("BLOCKS", BLOCKS), ("OPEN", opening), ("CLOSE", CLOSE_BLOCKS), ("NONE", none), ("NOTED", noted))
    opening, none = _OPEN_ROWS.replace("ROWS", "9" if three else "3"), "if (!ANY(in)) continue;"
    rows = (("BLOCKS", ""), ("OPEN", opening), ("CLOSE", _CLOSE_ROWS), ("NONE", none), ("NOTED", ""))
    cpu, cuda = (_only(_replaced(walk, parts), three) for parts in (lists, rows))
    return (
        f"#if !defined(__CUDA_ARCH__)\n{_CPU}{cpu}{_CLEAN}\n#endif\n"
        f"#if defined(__CUDA_ARCH__)\n{_CUDA}{cuda}{_CLEAN}\n#endif\n"
    )


def _replaced(text: str, parts: Iterable[tuple[str, str]]) -> str:
    for name, part in parts:
        text = text.replace(name, part)
    return text


@wp.func_native(_source("viscosity", False))
def viscosity_range_2d(
    first_place: int,
    last_place: int,
    lane: int,
    view: FilmView,
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
): ...


@wp.func_native(_source("viscosity", True))
def viscosity_range_3d(
    first_place: int,
    last_place: int,
    lane: int,
    view: FilmView,
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
): ...


@wp.func_native(_source("density", False))
def density_range_2d(
    first_place: int,
    last_place: int,
    lane: int,
    view: FilmView,
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
): ...


@wp.func_native(_source("density", True))
def density_range_3d(
    first_place: int,
    last_place: int,
    lane: int,
    view: FilmView,
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
): ...


@wp.func_native(_source("displacement", False))
def displacement_range_2d(
    first_place: int,
    last_place: int,
    lane: int,
    view: FilmView,
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
): ...


@wp.func_native(_source("displacement", True))
def displacement_range_3d(
    first_place: int,
    last_place: int,
    lane: int,
    view: FilmView,
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
): ...


@wp.kernel
def viscosity_2d(first: int, view: FilmView, grid: GridView, rates: wp.array(dtype=Rates), film_out: Sorted):
    thread = first + wp.tid()
    begin = (thread // view.team) * view.chunk
    end = wp.min(begin + view.chunk, film_out.count[0])
    viscosity_range_2d(begin, end, thread % view.team, view, grid, rates, film_out)


@wp.kernel
def viscosity_3d(first: int, view: FilmView, grid: GridView, rates: wp.array(dtype=Rates), film_out: Sorted):
    thread = first + wp.tid()
    begin = (thread // view.team) * view.chunk
    end = wp.min(begin + view.chunk, film_out.count[0])
    viscosity_range_3d(begin, end, thread % view.team, view, grid, rates, film_out)


@wp.kernel
def density_2d(first: int, view: FilmView, grid: GridView, rates: wp.array(dtype=Rates), film_out: Sorted):
    thread = first + wp.tid()
    begin = (thread // view.team) * view.chunk
    end = wp.min(begin + view.chunk, film_out.count[0])
    density_range_2d(begin, end, thread % view.team, view, grid, rates, film_out)


@wp.kernel
def density_3d(first: int, view: FilmView, grid: GridView, rates: wp.array(dtype=Rates), film_out: Sorted):
    thread = first + wp.tid()
    begin = (thread // view.team) * view.chunk
    end = wp.min(begin + view.chunk, film_out.count[0])
    density_range_3d(begin, end, thread % view.team, view, grid, rates, film_out)


@wp.kernel
def displacement_2d(first: int, view: FilmView, grid: GridView, rates: wp.array(dtype=Rates), film_out: Sorted):
    thread = first + wp.tid()
    begin = (thread // view.team) * view.chunk
    end = wp.min(begin + view.chunk, film_out.count[0])
    displacement_range_2d(begin, end, thread % view.team, view, grid, rates, film_out)


@wp.kernel
def displacement_3d(first: int, view: FilmView, grid: GridView, rates: wp.array(dtype=Rates), film_out: Sorted):
    thread = first + wp.tid()
    begin = (thread // view.team) * view.chunk
    end = wp.min(begin + view.chunk, film_out.count[0])
    displacement_range_3d(begin, end, thread % view.team, view, grid, rates, film_out)
