"""What a blade needs to go on: toughness times the surface that it will open (cutting.py)."""

from __future__ import annotations

import warp as wp

from viscera.tissue.blade_kernels import EDGE_FLOATS, SAMPLES, Blades, slot_at, whole_floor
from viscera.tissue.kernels import Lattice

# Loops stay loops: unrolled they take a minute to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

TORN_APART = wp.constant(wp.float64(3.0))
"""Neighbours that are farther apart say nothing about how a cell lies [cells]."""
AREA_AXIS = wp.constant(0.187)
AREA_FACE = wp.constant(0.107)
AREA_BODY = wp.constant(0.077)
"""Cut surface that a cut spring of each length stands for, over the area of a cell's side: a plane of any direction
then has its area within -8 and +2 %, on average 1.6 % off (least squares over all directions)."""

_SAMPLES, _EDGE_FLOATS = wp.constant(SAMPLES), wp.constant(EDGE_FLOATS)


@wp.func
def to_neighbour(blades: Blades, n: int, other: int):
    """From a sample to the one beside it, in the tissue at rest [cells]; or as it is now, where these are in tissue
    that has come apart."""
    way = blades.at[other] - blades.at[n]
    now = blades.front[other] - blades.front[n]
    if wp.length(way) > TORN_APART * wp.length(now):
        way = now
    return way


@wp.func
def fresh_share(lattice: Lattice, blades: Blades, n: int, place: wp.vec3d, edge: wp.vec3d):
    """Of the cell that lies ahead of a place beside a sample, how much of what its blade will cross there is not cut
    yet; 0 outside the tissue. And the toughness there [J/m²]. `edge` is the direction of the blade."""
    first = n - n % _SAMPLES
    way = blades.way[n]
    normal = wp.cross(edge, way)
    ahead = place + wp.float64(0.5) * way
    bx = whole_floor(ahead[0])
    by = whole_floor(ahead[1])
    bz = whole_floor(ahead[2])
    tough = float(0.0)
    for c in range(8):
        s = slot_at(blades, bx + c % 2, by + c // 2 % 2, bz + c // 4)
        if s < 0:
            return 0.0, 0.0
        tough += 0.125 * blades.toughness[s]
    whole = float(0.0)
    total = float(0.0)
    for c in range(8):
        cx = c % 2
        cy = c // 2 % 2
        cz = c // 4
        i = slot_at(blades, bx + cx, by + cy, bz + cz)
        own = wp.dot(normal, wp.vec3d(wp.float64(bx + cx), wp.float64(by + cy), wp.float64(bz + cz)) - ahead)
        for d in range(13):
            r = (d + 14) // 3
            dx = (d + 14) % 3 - 1
            dy = r % 3 - 1
            dz = r // 3 - 1
            if wp.max(wp.max(cx + dx, cy + dy), cz + dz) <= 1 and wp.min(wp.min(cx + dx, cy + dy), cz + dz) >= 0:
                step = wp.vec3d(wp.float64(dx), wp.float64(dy), wp.float64(dz))
                other = own + wp.dot(normal, step)
                corner = wp.vec3d(wp.float64(bx + cx), wp.float64(by + cy), wp.float64(bz + cz))
                crosses = (own >= wp.float64(0.0)) != (other >= wp.float64(0.0))
                point = corner + step * (own / (own - other))
                # What lies behind the end of the cut is cut by now; what lies beyond the edge's ends will not be.
                meets = wp.dot(point - blades.at[first], edge) >= wp.float64(0.0)
                meets = meets and wp.dot(point - blades.at[first + _SAMPLES - 1], edge) <= wp.float64(0.0)
                if crosses and wp.dot(point - place, way) > wp.float64(0.0):
                    # A cell has a quarter of its axis springs, half of its sides' diagonals, its own all.
                    steps = wp.abs(dx) + wp.abs(dy) + wp.abs(dz)
                    weight = wp.where(steps == 1, 0.25 * AREA_AXIS, wp.where(steps == 2, 0.5 * AREA_FACE, AREA_BODY))
                    total += weight
                    if meets and blades.cut[d * lattice.slots + i] == wp.uint8(0):
                        whole += weight
    return whole / wp.max(total, 1.0e-9), tough


@wp.func
def bound_sample(lattice: Lattice, blades: Blades, edge: int, k: int):
    """Force at which the tissue ahead of a sample is cut: toughness times the length of edge that it stands for, which
    is half of the way to either neighbour, each looked at in its own middle."""
    n = edge * _SAMPLES + k
    bound = float(0.0)
    if blades.inside[n] > 0:
        for side in range(2):
            other = n + 2 * side - 1
            if k + 2 * side - 1 >= 0 and k + 2 * side - 1 < _SAMPLES:
                way = to_neighbour(blades, n, other)
                along = wp.float64(2 * side - 1) * wp.normalize(way)
                fresh, tough = fresh_share(lattice, blades, n, blades.at[n] + wp.float64(0.25) * way, along)
                bound += tough * fresh * 0.5 * float(wp.length(way)) * lattice.spacing
        bound = bound * float(blades.edges[edge * _EDGE_FLOATS + 1])
    blades.bound[n] = bound
