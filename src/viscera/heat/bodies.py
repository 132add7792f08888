"""Which texels are one body of heat, and how bodies are joined where the texel grid alone does not say it.

A chart's border cuts texels. A sliver of one holds next to no heat, so it follows its neighbours within a hundredth of
a step, and steps would have to be as short. Slivers are therefore merged into a neighbour until every body covers at
least `LEAST_BODY` texels: its heat is the sum of its parts', its node their common middle. Nothing is left out and
nothing is counted twice, so total heat and symmetry are kept. Everything here is fixed when a skin is made; lengths and
areas that follow the tissue are in `viscera.heat.network`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.skin import Skin

LEAST_BODY = 0.5
"""Texels that a body covers at least, unless its whole chart is smaller. Then no body is more than about twice as stiff
as a whole texel."""

NEAREST = 0.25
"""Least distance of two nodes, in texels; that of two bodies of half a texel, each a strip along a seam."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bodies:
    """Made by `merge_slivers`. A body is named by its host, the texel that the others were merged into."""

    host: NDArray[np.int32]
    """Of each texel of the texture, shape (texels,); -1 where nothing is."""
    left: NDArray[np.float32]
    bottom: NDArray[np.float32]
    """Open part of the side over the distance of the nodes, for sides between two hosts; 0 elsewhere."""

    border: NDArray[np.int32]
    """Hosts that have slivers or links, in rising order."""
    member_start: NDArray[np.int32]
    member: NDArray[np.int32]
    """The slivers of each of them, shape (border + 1,) and (slivers,)."""
    link_start: NDArray[np.int32]
    link_border: NDArray[np.int32]
    """Bodies that each of them is linked with, as places in `border`. A link stands here twice, once for either."""
    link_seam: NDArray[np.int32]
    """Over which seam; -1: side of a sliver along columns, -2: along rows."""
    link_texel: NDArray[np.int32]
    """Texels on both sides of that side, shape (links, 2)."""
    link_factor: NDArray[np.float32]
    """Part of the seam's edge, or open part of the side over the distance of the nodes."""


def merge_slivers(skin: Skin) -> Bodies:
    size, width = skin.width * skin.height, skin.width
    texels = skin.texels.numpy().astype(np.int64)
    coverage = skin.coverage.numpy().astype(np.float64)
    sides = [_open_sides(skin, texels, coverage, axis) for axis in (0, 1)]
    host = np.full(size, -1, dtype=np.int64)
    host[texels] = _hosts(texels, coverage, *(np.concatenate(both) for both in zip(*sides, strict=True)))
    node = np.stack([texels % width, texels // width], axis=1) + skin.node.numpy()[texels].astype(np.float64)
    weight = np.bincount(host[texels], weights=coverage[texels], minlength=size)
    middle = np.zeros((size, 2))
    for axis in (0, 1):
        moment = np.bincount(host[texels], weights=coverage[texels] * node[:, axis], minlength=size)
        middle[texels, axis] = (moment / np.maximum(weight, 1e-30))[host[texels]]
    factors: list[NDArray[np.float32]] = []
    parts: list[tuple[Any, ...]] = []
    for axis, (here, there, opening) in enumerate(sides):
        factor = opening / np.maximum(middle[here, axis] - middle[there, axis], NEAREST)
        regular = (host[here] == here) & (host[there] == there)
        full = np.zeros(size, dtype=np.float32)
        full[here[regular]] = factor[regular]
        factors.append(full)
        odd = ~regular & (host[here] != host[there])
        pair = np.stack([here[odd], there[odd]], axis=1)
        parts.append((host[pair], np.full(len(pair), -1 - axis), pair, factor[odd]))
    across = skin.links.texel.astype(np.int64)
    kept = host[across[:, 0]] != host[across[:, 1]]
    parts.append((host[across[kept]], skin.links.seam[kept], across[kept], skin.links.part[kept]))
    return Bodies(host.astype(np.int32), factors[0], factors[1], **_border(host, texels, parts))


def _open_sides(skin: Skin, texels: Ints, coverage: Floats, axis: int) -> tuple[Ints, Ints, Floats]:
    """Texels, their left (or lower) neighbours, and the open part of the side between them, where it is open."""
    away = 1 if axis == 0 else skin.width
    inner = texels[(texels % skin.width > 0) if axis == 0 else (texels >= skin.width)]
    opening = skin.open_side.numpy()[inner, axis].astype(np.float64)
    kept = (opening > 0.0) & (coverage[inner - away] > 0.0)
    return inner[kept], inner[kept] - away, opening[kept]


def _hosts(texels: Ints, coverage: Floats, here: Ints, there: Ints, opening: Floats) -> Ints:
    """The host of each of `texels`: small bodies join the neighbour behind their widest open side, large ones first."""
    host = np.arange(len(coverage))
    weight = coverage.copy()
    slivers = texels[coverage[texels] < LEAST_BODY]
    beside = np.minimum(coverage[here], coverage[there]) < LEAST_BODY
    here, there, opening = here[beside], there[beside], opening[beside]
    ends = np.concatenate([np.stack([here, there], axis=1), np.stack([there, here], axis=1)])
    wide = np.concatenate([opening, opening])
    while True:
        body = host[ends]
        able = (weight[body[:, 0]] < LEAST_BODY) & (body[:, 0] != body[:, 1])
        large = able & (weight[body[:, 1]] >= LEAST_BODY)
        if large.any():
            chosen = _widest(body[large], wide[large])
        elif able.any():
            # Nothing but small ones: a chart thinner than a texel. One of each two that meet joins the other.
            chosen = _widest(body[able], wide[able])
            chosen = chosen[chosen[:, 1] < chosen[:, 0]] if (chosen[:, 1] < chosen[:, 0]).any() else chosen[:1]
            chosen = chosen[~np.isin(chosen[:, 1], chosen[:, 0])]
        else:
            return host[texels]
        np.add.at(weight, chosen[:, 1], weight[chosen[:, 0]])
        weight[chosen[:, 0]] = 0.0
        host[chosen[:, 0]] = chosen[:, 1]
        host[slivers] = host[host[slivers]]


def _widest(pairs: Ints, opening: Floats) -> Ints:
    """For each first body the second one with which it shares the widest opening (of equal ones, the lowest number)."""
    order = np.lexsort((pairs[:, 1], -opening, pairs[:, 0]))
    ordered = pairs[order]
    return ordered[np.append(True, ordered[1:, 0] != ordered[:-1, 0])]


def _border(host: Ints, texels: Ints, parts: list[tuple[Any, ...]]) -> dict[str, Any]:
    """Slivers and links as rows by body."""
    ends, seam, pair, factor = (np.concatenate(column) for column in zip(*parts, strict=True))
    slivers = texels[host[texels] != texels]
    border = np.unique(np.concatenate([host[slivers], ends.ravel()]))
    slivers = slivers[np.argsort(host[slivers], kind="stable")]
    own, other = ends.T.ravel(), ends[:, ::-1].T.ravel()
    order = np.argsort(own, kind="stable")
    link = np.tile(np.arange(len(seam)), 2)[order]

    def rows(owner: Ints) -> NDArray[np.int32]:
        return np.append(np.searchsorted(owner, border), len(owner)).astype(np.int32)

    return {
        "border": border.astype(np.int32),
        "member_start": rows(host[slivers]),
        "member": slivers.astype(np.int32),
        "link_start": rows(own[order]),
        "link_border": np.searchsorted(border, other[order]).astype(np.int32),
        "link_seam": seam[link].astype(np.int32),
        "link_texel": pair[link].astype(np.int32),
        "link_factor": factor[link].astype(np.float32),
    }
