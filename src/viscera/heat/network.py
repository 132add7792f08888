"""Conductances between the texels of a skin, from its metric and its seams; see `viscera.heat.conduction`."""

# Warp's stubs know neither its own dtypes nor the fields of a vector.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.skin import Skin

wp.set_module_options({"enable_backward": False})

NEAREST = wp.constant(0.1)
"""Least distance of two nodes, in texels. Nearer ones are slivers of two cut texels: tied more tightly than to anything
else, they would be one body that the iteration cannot move, and gain nothing in accuracy."""

FULL = wp.constant(0.999)
"""Coverage from which a texel counts as whole: only there is the shear between four texels known."""


@wp.struct
class Network:
    """Texels and the conductances between them, all without a unit: lengths over distances."""

    width: int
    texels: wp.array(dtype=wp.int32)
    area: wp.array(dtype=wp.float32)
    left: wp.array(dtype=wp.float32)
    bottom: wp.array(dtype=wp.float32)
    shear: wp.array(dtype=wp.float32)
    """Between a texel and the one below and left of it; the two others of these four get the opposite."""
    link_start: wp.array(dtype=wp.int32)
    link_texel: wp.array(dtype=wp.int32)
    link: wp.array(dtype=wp.float32)


@wp.kernel
def side_conductances(
    first: int,
    # params
    width: int,
    # in
    texels: wp.array(dtype=wp.int32),
    metric: wp.array(dtype=wp.vec3),
    coverage: wp.array(dtype=wp.float32),
    node: wp.array(dtype=wp.vec2),
    open_side: wp.array(dtype=wp.vec2),
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    if t % width > 0:
        left = float(0.0)
        if coverage[t - 1] > 0.0 and open_side[t][0] > 0.0:
            g = 0.5 * (metric[t] + metric[t - 1])
            root = wp.sqrt(wp.max(g[0] * g[2] - g[1] * g[1], 1.0e-30))
            apart = wp.max(node[t][0] + 1.0 - node[t - 1][0], NEAREST)
            left = open_side[t][0] * g[2] / (root * apart)
        left_out[t] = left
    if t >= width:
        bottom = float(0.0)
        if coverage[t - width] > 0.0 and open_side[t][1] > 0.0:
            g = 0.5 * (metric[t] + metric[t - width])
            root = wp.sqrt(wp.max(g[0] * g[2] - g[1] * g[1], 1.0e-30))
            apart = wp.max(node[t][1] + 1.0 - node[t - width][1], NEAREST)
            bottom = open_side[t][1] * g[0] / (root * apart)
        bottom_out[t] = bottom


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
            root = wp.sqrt(wp.max(g[0] * g[2] - g[1] * g[1], 1.0e-30))
            # Beyond this the four texels' energy could become negative, and heat flow uphill.
            most = wp.min(wp.min(left[t], left[b]), wp.min(bottom[t], bottom[c]))
            shear_out[t] = 0.5 * wp.clamp(-g[1] / root, -most, most)


@wp.kernel
def link_conductances(
    first: int,
    # in
    texels: wp.array(dtype=wp.int32),
    area: wp.array(dtype=wp.float32),
    coverage: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.vec3),
    vertices: wp.array(dtype=wp.vec3),
    seam_vertex: wp.array(dtype=wp.vec2i),
    link_start: wp.array(dtype=wp.int32),
    link_texel: wp.array(dtype=wp.int32),
    link_seam: wp.array(dtype=wp.int32),
    link_stretch: wp.array(dtype=wp.vec2),
    # out
    link_out: wp.array(dtype=wp.float32),
):
    i = first + wp.tid()
    t = texels[i]
    for k in range(link_start[i], link_start[i + 1]):
        j = link_texel[k]
        ends = seam_vertex[link_seam[k]]
        origin = vertices[ends[0]]
        edge = vertices[ends[1]] - origin
        length = wp.length(edge)
        here = wp.length(wp.cross(position[t] - origin, edge)) / length
        there = wp.length(wp.cross(position[j] - origin, edge)) / length
        least = 0.5 * NEAREST * (wp.sqrt(area[t] / coverage[t]) + wp.sqrt(area[j] / coverage[j]))
        # Sums of two are the same bits seen from either side, so the link is.
        link_out[k] = link_stretch[k][0] * length / wp.max(here + there, least)


def make_network(skin: Skin) -> Any:
    """The `Network` of a skin as it is now."""
    size, device = skin.width * skin.height, skin.device
    net: Any = Network()
    net.width = skin.width
    net.texels, net.area = skin.texels, skin.area
    # One row and one texel more: the texel above and right of the last one is asked for, and closed.
    rim = size + skin.width + 1
    net.left, net.bottom, net.shear = (wp.zeros(rim, dtype=wp.float32, device=device.warp) for _ in range(3))
    net.link_start, net.link_texel = skin.link_start, skin.link_texel
    net.link = wp.zeros(max(1, skin.link_texel.shape[0]), dtype=wp.float32, device=device.warp)
    device.record(lambda stage: rebuild_network(stage, skin, net), work=skin.count).run()
    device.synchronize()
    return net


def rebuild_network(stage: Stage, skin: Skin, net: Any) -> None:
    """Conductances for the skin as it is now; after `rebuild_skin`."""
    maps = [skin.width, skin.texels, skin.metric, skin.coverage]
    ends = [skin.texels, skin.area, skin.coverage, skin.position, skin.vertices, skin.seam_vertex]
    links = [skin.link_start, skin.link_texel, skin.link_seam, skin.link_stretch]
    stage.launch(side_conductances, skin.count, [*maps, skin.node, skin.open_side, net.left, net.bottom])
    stage.launch(shear_conductances, skin.count, [*maps, net.left, net.bottom, net.shear])
    stage.launch(link_conductances, skin.count, [*ends, *links, net.link])
