"""The hashed grid: cells without a box, found through a table of buckets (Grahn §4.1.2).

    (i, j, k) = ⌊x / l⌋,      bucket = (i·p₀ + j·p₁ + k·p₂) mod N,      p = 73856093, 19349663, 83492791

The primes are those of Teschner et al. 2003. It is a choice of `grid.make_grid` (`search="hashed"`): particles are
sorted by (bucket, id) instead of (cell, id), and every loop over neighbours is the same, with rows of one cell: 27 (9
in 2D) where the sorted grid reads 9 ranges of three cells (3). It needs no box: memory follows from the number of
particles, however far they fly apart. Fluids take it with `FluidParams(search="hashed")`.

A bucket may hold several cells. Particles of a cell far away fail the test of distance that every loop makes. But if
two of the 27 cells around a particle shared a bucket, their particles would come twice. With N a power of two they
never do: the hash is then linear modulo N, so two cells Δ apart share a bucket if and only if Δ·p ≡ 0 (mod N), wherever
they are; and for no Δ of up to two cells along each axis is that so, from N = 32 on (tests/water/test_sph_hashed.py
tries them all).

Differs from the source in: floor, so that cells beside 0 are not twice as wide; a modulo that is never negative; and N
as above, else a bucket that two of the 27 cells share would count its particles twice.
"""

from __future__ import annotations

import warp as wp

from viscera.errors import InputError

wp.set_module_options({"enable_backward": False})

PRIMES = (73856093, 19349663, 83492791)
_P0, _P1, _P2 = (wp.constant(wp.uint32(p)) for p in PRIMES)

BUCKETS_PER_PARTICLE = 2
"""Fewer collisions with more; Grahn: "it is often wise to start with a large hash table"."""

FEWEST_BUCKETS = 32
"""Below, cells next to each other share buckets."""
MOST_BUCKETS = 2**26
"""256 MiB for an array of one integer each."""

FARTHEST = wp.constant(1.0e9)
"""Cells from the origin at which indices are cut off, so that they fit into 32 bits."""


@wp.func
def hashed_cell(scaled: wp.vec3) -> wp.vec3i:
    """⌊x / l⌋"""
    return wp.vec3i(
        int(wp.clamp(wp.floor(scaled[0]), -FARTHEST, FARTHEST)),
        int(wp.clamp(wp.floor(scaled[1]), -FARTHEST, FARTHEST)),
        int(wp.clamp(wp.floor(scaled[2]), -FARTHEST, FARTHEST)),
    )


@wp.func
def bucket_of(buckets: int, cell: wp.vec3i) -> int:
    """Unsigned, so products wrap and the modulo is never negative."""
    hashed = wp.uint32(cell[0]) * _P0 + wp.uint32(cell[1]) * _P1 + wp.uint32(cell[2]) * _P2
    return int(hashed % wp.uint32(buckets))


def bucket_count(capacity: int, wanted: int | None = None) -> int:
    """N for so many particles, or `wanted` if it can be."""
    if wanted is None:
        return min(MOST_BUCKETS, 1 << max(BUCKETS_PER_PARTICLE * capacity - 1, FEWEST_BUCKETS - 1).bit_length())
    if not FEWEST_BUCKETS <= wanted <= MOST_BUCKETS or wanted & (wanted - 1):
        raise InputError(
            f"buckets is {wanted}.", f"Allowed are powers of two, {FEWEST_BUCKETS} to {MOST_BUCKETS}; or leave it out."
        )
    return wanted
