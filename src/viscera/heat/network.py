"""Conductances between bodies of heat, from the skin's metric and its seams; see `viscera.heat.conduction`.

Most bodies are texels, joined with the four (with shear eight) around them; these conductances are maps. Bodies at the
border of a chart have links besides: over seams, and over the sides of slivers that were merged into them (`bodies`).

A body that would exchange more than a step can carry gets its conductances cut, by the same factor seen from both ends:

    limit of body i    f_i = min(1, (L − loss_i) / (2 Σ_j |g_ij| / C_i)),      g_ij ← g_ij min(f_i, f_j)

with L the longest spectrum that the step's stages are stable for. By Gershgorin's theorem no deformation and no change
of parameters can then make a step unstable, and heat is kept; what is lost is speed of conduction in texels that are
far smaller than the others.
"""

# Warp's stubs know neither its own dtypes nor the fields of a vector.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.heat.bodies import NEAREST, Bodies, merge_slivers
from viscera.skin import Skin

wp.set_module_options({"enable_backward": False})

TILE = wp.constant(16)
"""Texels of one row that are stepped together: the floats of a vector register."""

FULL = wp.constant(0.999)
"""Coverage from which a texel counts as whole: only there is the shear between four texels known."""

LEAST = wp.constant(NEAREST)

SLIVER = wp.constant(-2)
PLAIN = -1
"""In `Fabric.border_of`: part of another body; a body of one texel away from any border."""

TINY = wp.constant(1.0e-20)
"""Keeps divisions finite where a surface has no area or nothing is conducted."""


@wp.struct
class Rates:
    """Live numbers of the step; from an array, as scalars are frozen when a program is recorded."""

    conduction: float
    """Heat that crosses a square of the layer within a step, per kelvin between its sides [J/K]."""
    capacity: float
    """Of the layer, per area [J/(K·m²)]."""
    loss: float
    """Part of its temperature that a texel loses within a step."""
    gain: float
    """What it gains from outside within a step [K]."""
    dt: float
    """[s]"""
    limit: float
    """Largest eigenvalue (of a step's matrix) for which the step is stable."""


@wp.struct
class Conductances:
    """Maps have an entry per texel of the texture, and a row more; `border` arrays one per body of `Bodies.border`."""

    width: int
    tile_texel: wp.array(dtype=wp.int32)
    """First texel of each tile of `TILE` texels that holds skin."""
    tile_links: wp.array(dtype=wp.int32)
    """Where the tile's links begin in `lane_links`; -1 for a tile without any."""
    lane_links: wp.array(dtype=wp.int32)
    """First links of the tile's texels and the end of the last one's, `TILE` + 1 numbers per tile."""

    inverse: wp.array(dtype=wp.float32)
    """One over the capacity of a body, at its host; 0 where there is none [K/J]."""
    left: wp.array(dtype=wp.float32)
    bottom: wp.array(dtype=wp.float32)
    shear: wp.array(dtype=wp.float32)
    """To the texel on the left, to the one below, and to the one below and left; the two others of those four get the
    opposite. Heat that crosses within a step, per kelvin [J/K]."""
    link: wp.array(dtype=wp.float32)
    link_texel: wp.array(dtype=wp.int32)

    border: wp.array(dtype=wp.int32)
    member_start: wp.array(dtype=wp.int32)
    member: wp.array(dtype=wp.int32)
    share: wp.array(dtype=wp.float32)
    """Part of its body's capacity that each sliver is."""


@wp.struct
class Fabric:
    """What conductances are made from: fixed numbers of `Bodies`, and room for what lies between."""

    factor_left: wp.array(dtype=wp.float32)
    factor_bottom: wp.array(dtype=wp.float32)
    link_start: wp.array(dtype=wp.int32)
    link_border: wp.array(dtype=wp.int32)
    link_seam: wp.array(dtype=wp.int32)
    link_side: wp.array(dtype=wp.vec2i)
    link_factor: wp.array(dtype=wp.float32)
    border_area: wp.array(dtype=wp.float32)
    border_place: wp.array(dtype=wp.vec3)
    cut: wp.array(dtype=wp.float32)
    """f of each body."""
    border_of: wp.array(dtype=wp.int32)
    """Place in `border` of each texel's body, or `SLIVER` or `PLAIN`."""


@wp.func
def _square(metric: wp.vec3):
    """Root of the metric's determinant."""
    return wp.sqrt(wp.max(metric[0] * metric[2] - metric[1] * metric[1], 1.0e-30))


@wp.kernel
def side_conductances(
    first: int,
    # params
    width: int,
    # in
    fabric: Fabric,
    texels: wp.array(dtype=wp.int32),
    metric: wp.array(dtype=wp.vec3),
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    along = fabric.factor_left[t]
    if along > 0.0:
        g = 0.5 * (metric[t] + metric[t - 1])
        along *= g[2] / _square(g)
    left_out[t] = along
    up = fabric.factor_bottom[t]
    if up > 0.0:
        g = 0.5 * (metric[t] + metric[t - width])
        up *= g[0] / _square(g)
    bottom_out[t] = up


@wp.kernel
def shear_conductances(
    first: int,
    # params
    width: int,
    # in
    texels: wp.array(dtype=wp.int32),
    metric: wp.array(dtype=wp.vec3),
    coverage: wp.array(dtype=wp.float32),
    left: wp.array(dtype=wp.float32),
    bottom: wp.array(dtype=wp.float32),
    # out
    shear_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    if t % width > 0 and t >= width:
        a = t - width - 1
        b = t - width
        c = t - 1
        if wp.min(wp.min(coverage[a], coverage[b]), wp.min(coverage[c], coverage[t])) > FULL:
            g = 0.25 * (metric[a] + metric[b] + metric[c] + metric[t])
            # Beyond this the four texels' energy could become negative, and heat flow uphill.
            most = wp.min(wp.min(left[t], left[b]), wp.min(bottom[t], bottom[c]))
            shear_out[t] = 0.5 * wp.clamp(-g[1] / _square(g), -most, most)


@wp.kernel
def border_bodies(
    first: int,
    # in
    net: Conductances,
    area: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.vec3),
    # out
    area_out: wp.array(dtype=wp.float32),
    place_out: wp.array(dtype=wp.vec3),
    share_out: wp.array(dtype=wp.float32),
):
    """Area and middle of the bodies at a border."""
    b = first + wp.tid()
    t = net.border[b]
    whole = area[t]
    for k in range(net.member_start[b], net.member_start[b + 1]):
        whole += area[net.member[k]]
    place = position[t]
    for k in range(net.member_start[b], net.member_start[b + 1]):
        m = net.member[k]
        part = area[m] / whole
        share_out[k] = part
        place += part * (position[m] - position[t])
    area_out[b] = whole
    place_out[b] = place


@wp.func
def _from_edge(point: wp.vec3, origin: wp.vec3, edge: wp.vec3, length: float):
    return wp.length(wp.cross(point - origin, edge)) / length


@wp.kernel
def link_conductances(
    first: int,
    # params
    fabric: Fabric,
    # in
    area: wp.array(dtype=wp.float32),
    coverage: wp.array(dtype=wp.float32),
    metric: wp.array(dtype=wp.vec3),
    vertices: wp.array(dtype=wp.vec3),
    seam_vertex: wp.array(dtype=wp.vec2i),
    # out
    link_out: wp.array(dtype=wp.float32),
):
    b = first + wp.tid()
    for k in range(fabric.link_start[b], fabric.link_start[b + 1]):
        side = fabric.link_side[k]
        seam = fabric.link_seam[k]
        factor = fabric.link_factor[k]
        # Sums of two are the same bits seen from either side, so the link is.
        if seam < 0:
            g = 0.5 * (metric[side[0]] + metric[side[1]])
            link_out[k] = factor * wp.where(seam == -1, g[2], g[0]) / _square(g)
        else:
            ends = seam_vertex[seam]
            origin = vertices[ends[0]]
            edge = vertices[ends[1]] - origin
            length = wp.max(wp.length(edge), 1.0e-12)
            here = _from_edge(fabric.border_place[b], origin, edge, length)
            there = _from_edge(fabric.border_place[fabric.link_border[k]], origin, edge, length)
            texel = wp.sqrt(area[side[0]] / coverage[side[0]]) + wp.sqrt(area[side[1]] / coverage[side[1]])
            link_out[k] = factor * length / wp.max(here + there, 0.5 * LEAST * texel)


@wp.kernel
def limit_bodies(
    first: int,
    # params
    fabric: Fabric,
    # in
    net: Conductances,
    rates: wp.array(dtype=Rates),
    texels: wp.array(dtype=wp.int32),
    area: wp.array(dtype=wp.float32),
    # out
    inverse_out: wp.array(dtype=wp.float32),
    cut_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    w = net.width
    b = fabric.border_of[t]
    if b == SLIVER:
        return
    size = area[t]
    total = net.left[t] + net.left[t + 1] + net.bottom[t] + net.bottom[t + w]
    total += wp.abs(net.shear[t]) + wp.abs(net.shear[t + w + 1]) + wp.abs(net.shear[t + 1]) + wp.abs(net.shear[t + w])
    if b >= 0:
        size = fabric.border_area[b]
        for k in range(fabric.link_start[b], fabric.link_start[b + 1]):
            total += net.link[k]
    rate = rates[0]
    inverse = 1.0 / (rate.capacity * wp.max(size, TINY))
    inverse_out[t] = inverse
    cut_out[t] = wp.min(1.0, (rate.limit - rate.loss) / wp.max(2.0 * rate.conduction * total * inverse, TINY))


@wp.kernel
def cut_sides(
    first: int,
    # params
    width: int,
    # in
    rates: wp.array(dtype=Rates),
    texels: wp.array(dtype=wp.int32),
    cut: wp.array(dtype=wp.float32),
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
    shear_out: wp.array(dtype=wp.float32),
):
    """From lengths over distances to heat per kelvin and step."""
    t = texels[first + wp.tid()]
    k = rates[0].conduction
    own = cut[t]
    if left_out[t] > 0.0:
        left_out[t] = left_out[t] * k * wp.min(own, cut[t - 1])
    if bottom_out[t] > 0.0:
        bottom_out[t] = bottom_out[t] * k * wp.min(own, cut[t - width])
    if shear_out[t] != 0.0:
        least = wp.min(wp.min(own, cut[t - 1]), wp.min(cut[t - width], cut[t - width - 1]))
        shear_out[t] = shear_out[t] * k * least


@wp.kernel
def cut_links(
    first: int,
    # in
    border: wp.array(dtype=wp.int32),
    fabric: Fabric,
    rates: wp.array(dtype=Rates),
    # out
    link_out: wp.array(dtype=wp.float32),
):
    b = first + wp.tid()
    for k in range(fabric.link_start[b], fabric.link_start[b + 1]):
        other = border[fabric.link_border[k]]
        link_out[k] = link_out[k] * rates[0].conduction * wp.min(fabric.cut[border[b]], fabric.cut[other])


@dataclass(eq=False)
class Network:
    """Made by `make_network`."""

    bodies: Bodies
    net: Any
    """`Conductances`."""
    fabric: Any
    """`Fabric`."""
    rates: Any
    """One `Rates`."""
    tiles: int
    """Tiles that hold skin."""


def make_network(skin: Skin, rates: Any) -> Network:
    """Bodies and their joints; conductances are those of nothing until `rebuild_network` has run."""
    size, device = skin.width * skin.height, skin.device.warp
    bodies = merge_slivers(skin)
    links, slivers = len(bodies.link_seam), len(bodies.member)

    def put(values: Any, kind: Any = wp.int32) -> Any:
        # An array of nothing has no address, which kernels must not be given.
        return wp.array(values, dtype=kind, device=device) if len(values) else wp.zeros(1, dtype=kind, device=device)

    def zeros(count: int, kind: Any = wp.float32) -> Any:
        return wp.zeros(max(count, 1), dtype=kind, device=device)

    net: Any = Conductances()
    net.width = skin.width
    tiles, tile_links, lane_links = _tiles(skin, bodies)
    net.tile_texel, net.tile_links, net.lane_links = put(tiles), put(tile_links), put(lane_links)
    # A row and a tile more: what is above and right of the last texels is asked for, and closed.
    rim = size + skin.width + 2 * TILE
    net.inverse, net.left, net.bottom, net.shear = (zeros(rim) for _ in range(4))
    net.link, net.link_texel = zeros(links), put(bodies.border[bodies.link_border])
    net.border, net.member_start, net.member = put(bodies.border), put(bodies.member_start), put(bodies.member)
    net.share = zeros(slivers)
    fabric: Any = Fabric()
    fabric.factor_left, fabric.factor_bottom = put(bodies.left, wp.float32), put(bodies.bottom, wp.float32)
    fabric.link_start, fabric.link_border = put(bodies.link_start), put(bodies.link_border)
    fabric.link_seam, fabric.link_side = put(bodies.link_seam), put(bodies.link_texel, wp.vec2i)
    fabric.link_factor = put(bodies.link_factor, wp.float32)
    fabric.border_area, fabric.border_place = zeros(len(bodies.border)), zeros(len(bodies.border), wp.vec3)
    fabric.cut, fabric.border_of = zeros(size), put(_border_of(bodies))
    return Network(bodies, net, fabric, rates, len(tiles))


def rebuild_network(stage: Stage, skin: Skin, network: Network) -> None:
    """Conductances for the skin as it is now; after `rebuild_skin`."""
    net, fabric, rates = network.net, network.fabric, network.rates
    border = len(network.bodies.border)
    maps = [skin.texels, skin.metric]
    edges = [skin.area, skin.coverage, skin.metric, skin.vertices, skin.seam_vertex]
    places = [fabric.border_area, fabric.border_place, net.share]
    stage.launch(side_conductances, skin.count, [net.width, fabric, *maps, net.left, net.bottom])
    stage.launch(shear_conductances, skin.count, [net.width, *maps, skin.coverage, net.left, net.bottom, net.shear])
    stage.launch(border_bodies, border, [net, skin.area, skin.position, *places])
    stage.launch(link_conductances, border, [fabric, *edges, net.link])
    stage.launch(limit_bodies, skin.count, [fabric, net, rates, skin.texels, skin.area, net.inverse, fabric.cut])
    stage.launch(cut_sides, skin.count, [net.width, rates, skin.texels, fabric.cut, net.left, net.bottom, net.shear])
    stage.launch(cut_links, border, [net.border, fabric, rates, net.link])


def _border_of(bodies: Bodies) -> np.ndarray:
    place = np.where(bodies.host == np.arange(len(bodies.host)), PLAIN, int(SLIVER)).astype(np.int32)
    place[bodies.border] = np.arange(len(bodies.border), dtype=np.int32)
    return place


def _tiles(skin: Skin, bodies: Bodies) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First texels of the tiles, and where the links of their texels are."""
    tile = int(TILE)
    tiles = np.unique(skin.texels.numpy() // tile)
    linked, row = np.unique(bodies.border // tile, return_inverse=True)
    count = np.zeros((len(linked), tile), dtype=np.int64)
    count[row.reshape(-1), bodies.border % tile] = np.diff(bodies.link_start)
    # Links are ordered by texel, and so by tile and lane.
    ends = np.cumsum(count.ravel()).reshape(-1, tile)
    lanes = np.concatenate([(ends - count)[:, :1], ends], axis=1)
    where = np.full(len(tiles), -1, dtype=np.int32)
    where[np.searchsorted(tiles, linked)] = np.arange(len(linked), dtype=np.int32) * (tile + 1)
    return (tiles * tile).astype(np.int32), where, lanes.ravel().astype(np.int32)
