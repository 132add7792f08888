"""Trails of drops that slide: what they have wetted is painted into the film's picture (Andersson §3.2.5).

A drop of volume V that slides covers a disc of the radius of half a ball of it, R = (3V/2π)^⅓. Its way of one step,
over edges as it went, is gone again in pieces of half of R; all texels of the chart there whose node is nearer than R
get the thickness that a trail of the film begins with, where they have less, and the drop's colour where they were dry:

    w ← max(w, trail),    |x_texel − x_drop| < R

From then on it is a trail as the film's own: it fades, dries, and is wiped by gauze (`image`). Drops that lie still
paint nothing, so a scene at rest costs nothing, however many trails there are: that is the document's point. Its splats
are round in the texture; these are round on the surface. A trail is a picture: the drop keeps its volume.

Maxima come out the same in any order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import warp as wp

from viscera.blood.drops.drops import Drops
from viscera.blood.film.params import LITTLE
from viscera.blood.film.walk import WalkView, position_at, walk, weights_of
from viscera.blood.picture.image import FilmImage
from viscera.blood.picture.kernels import TILE, Look, Painting
from viscera.blood.views import LANDED, SLIDING, DropView
from viscera.device import Stage

wp.set_module_options({"enable_backward": False})

MOST_SPLATS = wp.constant(256)
"""On one drop's way in one step: 6 cm of it for 0.2 µL; a longer way is dotted."""

_HALF_BALL = wp.constant((1.5 * LITTLE / math.pi) ** (1.0 / 3.0))
"""Radius of half a ball of one picolitre [m]."""


@wp.struct
class Ground:
    """The skin that trails are painted on."""

    width: int
    height: int
    tiles_x: int
    """Tiles in a row of the picture."""
    face: wp.array(dtype=wp.int32)
    position: wp.array(dtype=wp.vec3)
    tangent_u: wp.array(dtype=wp.vec3)
    tangent_v: wp.array(dtype=wp.vec3)


@wp.func
def _wetted(ground: Ground, t: int, at: wp.vec3, radius: float) -> wp.bool:
    result = bool(False)
    if ground.face[t] >= 0:
        result = wp.length(ground.position[t] - at) < radius
    return result


@wp.func
def _texels_wide(ground: Ground, t: int, radius: float) -> int:
    """How many texels a radius is at most, by the shorter axis of the ellipse that a texel's square becomes."""
    u = ground.tangent_u[t]
    v = ground.tangent_v[t]
    half = 0.5 * (wp.dot(u, u) + wp.dot(v, v))
    det = wp.dot(u, u) * wp.dot(v, v) - wp.dot(u, v) * wp.dot(u, v)
    least = det / wp.max(half + wp.sqrt(wp.max(half * half - det, 0.0)), 1.0e-20)
    return int(wp.ceil(wp.min(radius / wp.sqrt(wp.max(least, 1.0e-20)), float(ground.width)))) + 1


@wp.func
def _splat(ground: Ground, look: Look, uv: wp.vec2, at: wp.vec3, radius: float, fluid: wp.vec4, picture: Painting):
    column = wp.clamp(int(uv[0] * float(ground.width)), 0, ground.width - 1)
    row = wp.clamp(int(uv[1] * float(ground.height)), 0, ground.height - 1)
    middle = row * ground.width + column
    if ground.face[middle] < 0:
        return
    wide = _texels_wide(ground, middle, radius)
    colour = wp.vec4(0.0, 0.0, 0.0, 0.0)
    if look.blood >= 0:
        colour[1] = fluid[look.blood]
    if look.dye >= 0:
        colour[2] = fluid[look.dye]
    for r in range(wp.max(row - wide, 0), wp.min(row + wide + 1, ground.height)):
        for c in range(wp.max(column - wide, 0), wp.min(column + wide + 1, ground.width)):
            t = r * ground.width + c
            if _wetted(ground, t, at, radius):
                wp.atomic_max(picture.trail, t, look.trail)
                # In the next picture, not when it is this tile's turn.
                picture.tile[(r // TILE) * ground.tiles_x + c // TILE] = picture.frame[0] + 1
                if picture.kept[t][0] == 0.0:
                    wp.atomic_max(picture.kept, t, colour)


@wp.kernel
def lay_trails(
    # params
    ground: Ground,
    surface: WalkView,
    looks: wp.array(dtype=Look),
    # in
    drops: DropView,
    # out
    picture_out: Painting,
):
    """On cpu launched by one core, as atomics there are plain."""
    begin = wp.tid() * drops.chunk
    look = looks[0]
    for i in range(begin, wp.min(begin + drops.chunk, drops.count[0])):
        length = wp.length(drops.slid_way[i])
        if length > 0.0 and (drops.fate[i] == SLIDING or drops.fate[i] == LANDED):
            radius = _HALF_BALL * wp.pow(float(drops.volume[i]), 1.0 / 3.0)
            splats = wp.clamp(int(wp.ceil(2.0 * length / radius)), 1, MOST_SPLATS)
            start = weights_of(drops.slid_from[i])
            for k in range(splats + 1):
                went = walk(surface, drops.slid_face[i], start, drops.slid_way[i] * (float(k) / float(splats)))
                own = went.face - look.first_face
                if own >= 0 and own < look.faces:
                    w = went.weights
                    uv = (
                        surface.corner_uv[3 * went.face] * w[0]
                        + surface.corner_uv[3 * went.face + 1] * w[1]
                        + surface.corner_uv[3 * went.face + 2] * w[2]
                    )
                    at = position_at(surface, went.face, w)
                    _splat(ground, look, uv, at, radius, drops.fluid[i], picture_out)


@dataclass(eq=False)
class Trails:
    """Made by `make_trails`."""

    drops: Drops
    image: FilmImage
    ground: Any
    """`Ground`."""

    def catch(self, stage: Stage) -> None:
        """The trails of the drops that have slid in this step."""
        air, image = self.drops.state.view, self.image
        given = [self.ground, self.drops.surface.view, image.looks, air, image.painting]
        threads = -(-air.capacity // air.chunk)
        stage.once(lambda: wp.launch(lay_trails, dim=threads, inputs=given, device=stage.device.warp))


def make_trails(drops: Drops, image: FilmImage) -> Trails:
    """Sliding `drops` leave trails in `image` from now on; before anything of `drops` is recorded."""
    skin = image.skin
    ground: Any = Ground()
    ground.width, ground.height, ground.face = skin.width, skin.height, skin.face
    ground.tiles_x = image.view.tiles_x
    ground.position, ground.tangent_u, ground.tangent_v = skin.position, skin.tangent_u, skin.tangent_v
    drops.trails = Trails(drops, image, ground)
    return drops.trails
