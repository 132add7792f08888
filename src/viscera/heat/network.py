"""Conductances between bodies of heat, from the skin's metric and its seams; see `viscera.heat.conduction`.

Most bodies are texels, joined with the four (with shear eight) around them; these conductances are maps. Bodies at the
border of a chart have links besides: over seams, and over the sides of slivers that were merged into them (`bodies`).

A body that would exchange more than a step can carry gets its conductances cut, by the same factor seen from both ends:

    limit of body i    f_i = min(1, (L − loss_i) / (2 Σ_j |g_ij| / C_i)),      g_ij ← g_ij min(f_i, f_j)

with L the longest spectrum that the step's stages are stable for. By Gershgorin's theorem no deformation and no change
of parameters can then make a step unstable, and heat is kept; what is lost is speed of conduction in texels that are
far smaller than the others.

Tissue keeps its volume: where it is stretched, the layer is thinner by A⁰/A, conducts so much less, and holds what it
held (C is that at rest).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.heat.arrays import BLOCK, PLAIN, SLIVER, TILE, TINY, Conductances, Fabric, Rates
from viscera.heat.bodies import NEAREST, Bodies, merge_slivers
from viscera.heat.materials import TexelMaterials, scale_links, scale_sides
from viscera.heat.native import cut_tiles, limit_tiles, shear_tiles, side_tiles
from viscera.skin import Skin

wp.set_module_options({"enable_backward": False})

WHOLE = 0.999
"""Coverage from which a texel counts as whole."""

LEAST = wp.constant(NEAREST)


@wp.func
def _square(metric: wp.vec3):
    """Root of the metric's determinant."""
    return wp.sqrt(wp.max(metric[0] * metric[2] - metric[1] * metric[1], 1.0e-30))


@wp.func
def _thinner(rest: wp.array(dtype=wp.float32), area: wp.array(dtype=wp.float32), a: int, b: int):
    """Thickness of the layer between two texels, over that at rest: tissue keeps its volume."""
    return (rest[a] + rest[b]) / wp.max(area[a] + area[b], TINY)


@wp.kernel
def side_conductances(
    first: int,
    # in
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    texels: wp.array(dtype=wp.int32),
    metric: wp.array(dtype=wp.vec3),
    rest: wp.array(dtype=wp.float32),
    area: wp.array(dtype=wp.float32),
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    along = rates[0].conduction * fabric.factor_left[t]
    if along > 0.0:
        g = 0.5 * (metric[t] + metric[t - 1])
        along *= _thinner(rest, area, t, t - 1) * g[2] / _square(g)
    left_out[t] = along
    up = rates[0].conduction * fabric.factor_bottom[t]
    if up > 0.0:
        g = 0.5 * (metric[t] + metric[t - net.width])
        up *= _thinner(rest, area, t, t - net.width) * g[0] / _square(g)
    bottom_out[t] = up


@wp.kernel
def shear_conductances(
    first: int,
    # in
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    texels: wp.array(dtype=wp.int32),
    metric: wp.array(dtype=wp.vec3),
    rest: wp.array(dtype=wp.float32),
    area: wp.array(dtype=wp.float32),
    # out
    shear_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    factor = fabric.factor_shear[t]
    if factor > 0.0:
        b = t - net.width
        g = 0.25 * (metric[b - 1] + metric[b] + metric[t - 1] + metric[t])
        # Beyond this the four texels' energy could become negative, and heat flow uphill.
        most = wp.min(wp.min(net.left[t], net.left[b]), wp.min(net.bottom[t], net.bottom[t - 1]))
        thin = (rest[b - 1] + rest[b] + rest[t - 1] + rest[t]) / (area[b - 1] + area[b] + area[t - 1] + area[t])
        shear_out[t] = factor * wp.clamp(-rates[0].conduction * thin * g[1] / _square(g), -most, most)


@wp.kernel
def border_bodies(
    first: int,
    # in
    net: Conductances,
    rest: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.vec3),
    # out
    area_out: wp.array(dtype=wp.float32),
    place_out: wp.array(dtype=wp.vec3),
    share_out: wp.array(dtype=wp.float32),
):
    """Area at rest and middle of the bodies at a border."""
    b = first + wp.tid()
    t = net.border[b]
    whole = rest[t]
    for k in range(net.member_start[b], net.member_start[b + 1]):
        whole += rest[net.member[k]]
    place = position[t]
    for k in range(net.member_start[b], net.member_start[b + 1]):
        m = net.member[k]
        part = rest[m] / whole
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
    # in
    fabric: Fabric,
    rates: wp.array(dtype=Rates),
    rest: wp.array(dtype=wp.float32),
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
        factor = rates[0].conduction * fabric.link_factor[k] * _thinner(rest, area, side[0], side[1])
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
    # in
    fabric: Fabric,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    texels: wp.array(dtype=wp.int32),
    rest: wp.array(dtype=wp.float32),
    # out
    inverse_out: wp.array(dtype=wp.float32),
    cut_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    w = net.width
    b = fabric.border_of[t]
    if b == SLIVER:
        return
    size = rest[t]
    total = net.left[t] + net.left[t + 1] + net.bottom[t] + net.bottom[t + w]
    total += wp.abs(net.shear[t]) + wp.abs(net.shear[t + w + 1]) + wp.abs(net.shear[t + 1]) + wp.abs(net.shear[t + w])
    if b >= 0:
        size = fabric.border_area[b]
        for k in range(fabric.link_start[b], fabric.link_start[b + 1]):
            total += net.link[k]
    inverse = 1.0 / wp.max(rates[0].capacity * size, TINY)
    inverse_out[t] = inverse
    cut_out[t] = wp.min(1.0, (rates[0].limit - rates[0].loss) / wp.max(2.0 * total * inverse, TINY))


@wp.kernel
def cut_sides(
    first: int,
    # in
    fabric: Fabric,
    net: Conductances,
    texels: wp.array(dtype=wp.int32),
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
    shear_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    b = t - net.width
    own = fabric.cut[t]
    if left_out[t] > 0.0:
        left_out[t] = left_out[t] * wp.min(own, fabric.cut[t - 1])
    if bottom_out[t] > 0.0:
        bottom_out[t] = bottom_out[t] * wp.min(own, fabric.cut[b])
    if shear_out[t] != 0.0:
        least = wp.min(wp.min(own, fabric.cut[t - 1]), wp.min(fabric.cut[b], fabric.cut[b - 1]))
        shear_out[t] = shear_out[t] * least


@wp.kernel
def cut_links(
    first: int,
    # in
    border: wp.array(dtype=wp.int32),
    fabric: Fabric,
    # out
    link_out: wp.array(dtype=wp.float32),
):
    b = first + wp.tid()
    for k in range(fabric.link_start[b], fabric.link_start[b + 1]):
        other = border[fabric.link_border[k]]
        link_out[k] = link_out[k] * wp.min(fabric.cut[border[b]], fabric.cut[other])


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
    materials: TexelMaterials | None = None
    """None where all of the skin is one tissue."""


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
    rim = skin.width + 2 * TILE
    net.inverse, net.left, net.bottom, net.shear = (zeros(size + rim) for _ in range(4))
    net.link, net.link_texel = zeros(links), put(bodies.border[bodies.link_border])
    net.border, net.member_start, net.member = put(bodies.border), put(bodies.member_start), put(bodies.member)
    net.share = zeros(slivers)
    fabric: Any = Fabric()
    fabric.factor_left, fabric.factor_bottom = put(bodies.left, wp.float32), put(bodies.bottom, wp.float32)
    fabric.link_start, fabric.link_border = put(bodies.link_start), put(bodies.link_border)
    fabric.link_seam, fabric.link_side = put(bodies.link_seam), put(bodies.link_texel, wp.vec2i)
    fabric.link_factor = put(bodies.link_factor, wp.float32)
    fabric.border_area, fabric.border_place = zeros(len(bodies.border)), zeros(len(bodies.border), wp.vec3)
    fabric.factor_shear, fabric.border_of = put(_four_whole(skin), wp.float32), put(_border_of(bodies))
    # Vector loads reach over the rim of the texture.
    fabric.cut = zeros(size + 2 * rim)[rim : rim + size]
    return Network(bodies, net, fabric, rates, len(tiles))


def rebuild_network(stage: Stage, skin: Skin, network: Network, native: bool = True) -> None:
    """Conductances for the skin as it is now; after `rebuild_skin`."""
    net, fabric, rates, bodies = network.net, network.fabric, network.rates, network.bodies
    tiled = native and not stage.device.is_cuda
    count, where = (network.tiles, []) if tiled else (skin.count, [skin.texels])
    maps = [*where, skin.metric, skin.rest_area, skin.area]
    edges = [skin.rest_area, skin.area, skin.coverage, skin.metric, skin.vertices, skin.seam_vertex]
    sides, shear, limit, cut = (
        (side_tiles, shear_tiles, limit_tiles, cut_tiles)
        if tiled
        else (side_conductances, shear_conductances, limit_bodies, cut_sides)
    )
    places = [fabric.border_area, fabric.border_place, net.share]
    tissue = network.materials
    stores = skin.rest_area if tissue is None else tissue.area
    stage.launch(sides, count, [fabric, net, rates, *maps, net.left, net.bottom], BLOCK)
    stage.launch(shear, count, [fabric, net, rates, *maps, net.shear], BLOCK)
    stage.launch(border_bodies, len(bodies.border), [net, stores, skin.position, *places])
    stage.launch(link_conductances, len(bodies.border), [fabric, rates, *edges, net.link])
    if tissue is not None:
        joints = [skin.width, skin.texels, tissue.conductivity, net.left, net.bottom, net.shear]
        stage.launch(scale_sides, skin.count, joints)
        stage.launch(scale_links, len(bodies.border), [fabric, tissue.conductivity, net.link])
    stage.launch(limit, count, [fabric, net, rates, *where, stores, net.inverse, fabric.cut], BLOCK)
    stage.launch(cut, count, [fabric, net, *where, net.left, net.bottom, net.shear], BLOCK)
    stage.launch(cut_links, len(bodies.border), [net.border, fabric, net.link])


def _four_whole(skin: Skin) -> np.ndarray:
    """½ at each texel that is whole together with those on its left, below it, and below and left."""
    whole = skin.image(skin.coverage) > WHOLE
    four = np.zeros(whole.shape, dtype=np.float32)
    four[1:, 1:] = 0.5 * (whole[1:, 1:] & whole[:-1, 1:] & whole[1:, :-1] & whole[:-1, :-1])
    return four.ravel()


def _border_of(bodies: Bodies) -> np.ndarray:
    place = np.where(bodies.host == np.arange(len(bodies.host)), int(PLAIN), int(SLIVER)).astype(np.int32)
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
