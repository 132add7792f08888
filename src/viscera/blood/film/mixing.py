"""Mixing of touching particles (Kvick §6.2.9), and how much solvent is around each, for clots to dissolve in.

Two particles within the radius exchange concentrations c. With w = 1 − q (times `pooling` across a gap), volumes V,
rate a and clotted parts K,

    V_i c_i ← V_i c_i + Σ_j min(a dt w, MOST_MIXED) min(V_i, V_j) (1 − K_i)(1 − K_j) (c_j − c_i).

What leaves one enters the other, so the total of every fluid stays what it is; the bound on a pair's exchange keeps
concentrations within 0 … 1 at any step. Clots take no part.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.film.buckets import Search, onward, particle, start_at
from viscera.blood.film.pairs import Carried, FilmView, Rates, Sorted, image_shift, place, touch
from viscera.neighbors.cells import cell_of

wp.set_module_options({"enable_backward": False})

MOST_MIXED = wp.constant(0.01)
"""Part of the smaller volume that one neighbour may exchange in a step: 100 neighbours at once stay within bounds,
and 100/n where n steps are done at once."""


@wp.kernel
def mix(
    first: int,
    # params
    view: FilmView,
    steps: int,
    # in
    search: Search,
    rates: wp.array(dtype=Rates),
    film: Sorted,
    # out
    cargo_out: Carried,
):
    s = first + wp.tid()
    if s >= film.count[0]:
        return
    rate = rates[0]
    own = cargo_out.fluid[s]
    volume = float(cargo_out.volume[s])
    fluid_part = 1.0 - cargo_out.clot[s]
    gained = wp.vec4(0.0, 0.0, 0.0, 0.0)
    solvent = wp.dot(own, rate.dissolves)
    weight = wp.float32(1.0)
    if rate.dilution > 0.0 or rate.dissolve_rate > 0.0:
        begun = place(film, s)
        for k in range(view.images):
            shift, near = image_shift(view, k, begun, view.radius)
            if near:
                cell = cell_of(search.grid, begun + shift)
                for c in range(search.parts):
                    cursor, end = start_at(search, cell, c)
                    while cursor != end:
                        t = particle(search, cursor)
                        offset = place(film, t) - (begun + shift)
                        square = wp.dot(offset, offset)
                        if t != s and square < view.radius * view.radius:
                            w = 1.0 - wp.sqrt(square) / view.radius
                            w *= touch(view, film, s, t, offset, rate.pooling)
                            if w > 0.0:
                                there = cargo_out.fluid[t]
                                other = float(cargo_out.volume[t])
                                share = float(steps) * wp.min(rate.dilution * rate.dt * w, MOST_MIXED)
                                amount = share * fluid_part * (1.0 - cargo_out.clot[t]) * wp.min(volume, other)
                                gained += (there - own) * amount
                                solvent += w * wp.dot(there, rate.dissolves)
                                weight += w
                        cursor = onward(search, cursor)
    cargo_out.mixed[s] = own + gained / wp.max(volume, 1.0)
    cargo_out.solvent[s] = solvent / weight
