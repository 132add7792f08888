"""The neighbour loops of forces.py in C, over the sorted grid: 16 neighbours at once on cpu, a team on cuda.

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

import warp as wp

from viscera.blood.film.pairs import BACK_TO_BACK, FACING, VISCOUS, FilmView, Rates, Sorted
from viscera.native import TEAM, fill, on_cpu, on_cuda
from viscera.neighbors.blocks import BLOCKS, CELL, CLOSE_BLOCKS, HITS, OPEN_BLOCKS, note_hit, open_hits
from viscera.neighbors.cells import GridView

wp.set_module_options({"enable_backward": False})

_WALK = """
#define ONLY3(...) $three
const float h = view.radius, per_h = 1.0f / h, h2 = h * h;
const float least = 1.0e-5f * h, least2 = least * least;
const float margin = h + 2.0f * view.reach;
const float dt = rates.data[0].dt;
const int team = view.team;
ONLY3(const float pooling = rates.data[0].pooling;)
$team
$cell
$blocks
for (int s = first_place; s < last_place; ++s) {
    const float bx = film.x.data[s], by = film.y.data[s];
    const float hx = $here_x.data[s], hy = $here_y.data[s];
    ONLY3(const float bz = film.z.data[s]; const float hz = $here_z.data[s];)
    unsigned long long hits_ = 0;
    ONLY3(const float nx = film.nx.data[s]; const float ny = film.ny.data[s]; const float nz = film.nz.data[s];)
    $setup
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
        const int cx = CELL(ax, grid.cells_x), cy = CELL(ay, grid.cells_y);
        ONLY3(const float az = (bz - grid.lower[2]) * grid.cells_per_length;)
        int cz = 0;
        ONLY3(cz = CELL(az, grid.cells_z);)
        const float ex = hx + sx, ey = hy + sy;
        $open
                const auto at = PLACES(t);
                V ox = LOAD($here_x.data + t) - ex, oy = LOAD($here_y.data + t) - ey;
                V r2 = ox * ox + oy * oy;
                ONLY3(V oz = LOAD($here_z.data + t) - hz; r2 += oz * oz;)
                M in = (r2 < FILL(h2)) & (at < FILL_INT(end)) & (at != FILL_INT(s));
                $none
                const M same = in & (r2 < FILL(least2));
                if (ANY(same)) {
                    const V side = at > FILL_INT(s) ? FILL(least) : FILL(-least);
                    ox = same ? 0.6f * side : ox;
                    oy = same ? 0.64f * side : oy;
                    ONLY3(oz = same ? 0.48f * side : oz;)
                    r2 = same ? FILL(least2 * $least_norm) : r2;
                }
                ONLY3(
                    const V mx = LOAD(film.nx.data + t);
                    const V my = LOAD(film.ny.data + t);
                    const V mz = LOAD(film.nz.data + t);
                    const V alike = nx * mx + ny * my + nz * mz;
                    in = in & ((alike >= FILL($back_to_back))
                               | (ox * (nx - mx) + oy * (ny - my) + oz * (nz - mz) > FILL(0.0f)));
                )
                const V r = ROOT(AT_LEAST(r2, 1.0e-30f));
                V w = 1.0f - r * per_h;
                ONLY3(w = alike < FILL($facing) ? w * pooling : w;)
                $body
        $close
    }
    $sums
    $noted
    $one {
    $then
    }
}
"""
"""Visits who may be near. `ONLY3` is for surfaces in space, and drops what it encloses on a sheet. `least_norm`: on a
sheet the direction in which two at one place part loses its third axis."""

_OPEN_ROWS = """
        const int west = cx > 0 ? cx - 1 : 0, east = cx < grid.cells_x - 1 ? cx + 1 : cx;
        for (int row = 0; row < $rows; ++row) {
            const int y = cy + row % 3 - 1;
            if (y < 0 || y >= grid.cells_y) continue;
            int line = y;
            ONLY3(const int z = cz + row / 3 - 1; if (z < 0 || z >= grid.cells_z) continue; line += z * grid.cells_y;)
            const int* start = grid.cell_start.data + line * grid.cells_x;
            const int begin = start[west], end = start[east + 1];
            for (int t = begin + lane; t < end; t += team) {
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
    const float most = $viscous / (view.half * (dt > 1.0e-30f ? dt : 1.0e-30f));
    V fx = FILL(0.0f), fy = FILL(0.0f);
    ONLY3(V fz = FILL(0.0f);)
""",
        """
                const V per_r = 1.0f / r;
                V u = (vx - LOAD(film.vx.data + t)) * ox + (vy - LOAD(film.vy.data + t)) * oy;
                ONLY3(u += (vz - LOAD(film.vz.data + t)) * oz;)
                u = AT_LEAST(u * per_r, 0.0f);
                const V a = 0.5f * (linear + LOAD(film.linear.data + t));
                const V b = 0.5f * (quadratic + LOAD(film.quadratic.data + t));
                const V f = in ? w * u * AT_MOST(a + b * u, most) * per_r : FILL(0.0f);
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
                const V p = pressure + other * LOAD(film.pressure.data + t) + separation * AT_LEAST(unlike, -unlike);
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


_BRANCH = "if (!ANY(in)) continue;"
"""On cuda. On cpu a branch that guesses whether a block holds somebody near costs more than going through it."""


_SUMS = """
    const float gx = sum_of(SUM(fx)), gy = sum_of(SUM(fy));
    ONLY3(const float gz = sum_of(SUM(fz));)
"""


def _source(loop: str, three: bool) -> str:
    """The C text of a loop, on a surface in space or on a sheet."""
    cpu, cuda = walk_source(loop, *_LOOPS[loop], three=three)
    return on_cpu(cpu) + on_cuda(cuda)


def walk_source(
    loop: str, near: str, setup: str, body: str, then: str, *, three: bool, sums: str = _SUMS
) -> tuple[str, str]:
    """The C text of a loop over neighbours, for cpu and for cuda."""
    here = {f"here_{axis}": near[:-1] + axis for axis in "xyz"}
    same = here | {
        "three": "__VA_ARGS__" if three else "",
        "team": TEAM,
        "cell": CELL,
        "setup": fill(setup, viscous=VISCOUS) if loop == "viscosity" else setup,
        "body": body,
        "sums": sums,
        "then": then,
        "least_norm": "1.0f" if three else "0.7696f",
        "back_to_back": BACK_TO_BACK,
        "facing": FACING,
    }
    notes = loop == "density"
    cpu = fill(
        _WALK,
        **same,
        blocks=BLOCKS,
        open=open_hits("film.hits.data[s]") if loop == "displacement" else OPEN_BLOCKS,
        close=CLOSE_BLOCKS,
        none=note_hit("ANY(in)") if notes else "",
        noted=fill("film.hits.data[s] = view.images == 1 ? $hits : ~0ULL;", hits=HITS) if notes else "",
        one="",
    )
    rows = fill(_OPEN_ROWS, rows=9 if three else 3)
    cuda = fill(_WALK, **same, blocks="", open=rows, close=_CLOSE_ROWS, none=_BRANCH, noted="", one="if (lane == 0)")
    return cpu, cuda


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
