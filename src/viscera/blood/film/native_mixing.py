"""`mixing.mix` in C: the same exchange, 16 neighbours at once on cpu, a team on cuda; see native.py for the loop."""

from __future__ import annotations

import warp as wp

from viscera.blood.film.mixing import MOST_MIXED
from viscera.blood.film.native import walk_source
from viscera.blood.film.pairs import Carried, FilmView, Rates, Sorted
from viscera.native import fill, on_cpu, on_cuda
from viscera.neighbors.cells import GridView

wp.set_module_options({"enable_backward": False})

_SETUP = fill(
    """
    const F4 own = READ4(cargo.fluid, s);
    const auto dissolves = rates.data[0].dissolves;
    const float volume = (float)cargo.volume.data[s], fluid_part = 1.0f - cargo.clot.data[s];
    const float rate = rates.data[0].dilution * dt, most = $most;
    V ga = FILL(0.0f), gb = FILL(0.0f), gc = FILL(0.0f), gd = FILL(0.0f), dissolving = FILL(0.0f), weight = FILL(0.0f);
""",
    most=MOST_MIXED,
)

_BODY = """
                const V c = in ? w : FILL(0.0f);
                const V other = REAL(LOAD_INT(cargo.volume.data + t));
                const V share = (float)steps * AT_MOST(rate * c, most);
                const V part = share * fluid_part * (1.0f - LOAD(cargo.clot.data + t)) * AT_MOST(other, volume);
                const V amount = in ? part : FILL(0.0f);
                const V ta = FOURTH(cargo.fluid.data, t, 0), tb = FOURTH(cargo.fluid.data, t, 1);
                const V tc = FOURTH(cargo.fluid.data, t, 2), td = FOURTH(cargo.fluid.data, t, 3);
                ga += (ta - own.x) * amount;
                gb += (tb - own.y) * amount;
                gc += (tc - own.z) * amount;
                gd += (td - own.w) * amount;
                dissolving += c * (dissolves[0] * ta + dissolves[1] * tb + dissolves[2] * tc + dissolves[3] * td);
                weight += c;
"""

_SUMS = """
    const float sa = sum_of(SUM(ga)), sb = sum_of(SUM(gb)), sc = sum_of(SUM(gc)), sd = sum_of(SUM(gd));
    const float sum = sum_of(SUM(dissolving)), all = 1.0f + sum_of(SUM(weight));
"""

_THEN = """
    const float per = 1.0f / LARGER(volume, 1.0f);
    auto& mixed = cargo.mixed.data[s];
    mixed[0] = own.x + sa * per;
    mixed[1] = own.y + sb * per;
    mixed[2] = own.z + sc * per;
    mixed[3] = own.w + sd * per;
    const float self = own.x * dissolves[0] + own.y * dissolves[1] + own.z * dissolves[2] + own.w * dissolves[3];
    cargo.solvent.data[s] = (self + sum) / all;
"""

_MIX = """
if (rates.data[0].dilution > 0.0f || rates.data[0].dissolve_rate > 0.0f) {
$walk
} else if (lane == 0) {
    const auto dissolves = rates.data[0].dissolves;
    for (int s = first_place; s < last_place; ++s) {
        const auto own = cargo.fluid.data[s];
        cargo.mixed.data[s] = own;
        cargo.solvent.data[s] =
            own[0] * dissolves[0] + own[1] * dissolves[1] + own[2] * dissolves[2] + own[3] * dissolves[3];
    }
}
"""
"""Where nothing mixes and nothing dissolves, nobody looks for neighbours."""


def _source(three: bool) -> str:
    cpu, cuda = walk_source("mix", "film.x", _SETUP, _BODY, _THEN, three=three, sums=_SUMS)
    return on_cpu(fill(_MIX, walk=cpu)) + on_cuda(fill(_MIX, walk=cuda))


@wp.func_native(_source(False))
def mix_range_2d(
    first_place: int,
    last_place: int,
    lane: int,
    view: FilmView,
    steps: int,
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
    cargo: Carried,
): ...


@wp.func_native(_source(True))
def mix_range_3d(
    first_place: int,
    last_place: int,
    lane: int,
    view: FilmView,
    steps: int,
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
    cargo: Carried,
): ...


@wp.kernel
def mix_2d(
    first: int,
    # params
    view: FilmView,
    steps: int,
    # in
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
    # out
    cargo_out: Carried,
):
    thread = first + wp.tid()
    begin = (thread // view.team) * view.chunk
    end = wp.min(begin + view.chunk, film.count[0])
    mix_range_2d(begin, end, thread % view.team, view, steps, grid, rates, film, cargo_out)


@wp.kernel
def mix_3d(
    first: int,
    # params
    view: FilmView,
    steps: int,
    # in
    grid: GridView,
    rates: wp.array(dtype=Rates),
    film: Sorted,
    # out
    cargo_out: Carried,
):
    thread = first + wp.tid()
    begin = (thread // view.team) * view.chunk
    end = wp.min(begin + view.chunk, film.count[0])
    mix_range_3d(begin, end, thread % view.team, view, steps, grid, rates, film, cargo_out)
