"""Kernels that finish the film's picture: the mean over neighbours, its bytes, its gutter, its normals."""

from __future__ import annotations

import warp as wp

from viscera.blood.picture.kernels import AROUND, Look, Painting, Texels, texel_normal, tile_of

wp.set_module_options({"enable_backward": False})


@wp.func
def _byte(x: float):
    return wp.uint32(wp.clamp(x, 0.0, 1.0) * 255.0 + 0.5)


@wp.func
def _shown(kept: wp.vec4, trail: float):
    height = wp.max(kept[0], trail)
    return height * wp.vec4(1.0, kept[1], kept[2], kept[3])


@wp.func
def soften_texel(view: Texels, look: Look, picture: Painting, i: int):
    """The mean over a texel and its neighbours, and its four bytes."""
    t = view.texels[i]
    if picture.tile[tile_of(view, t)] == picture.frame[0]:
        total = _shown(picture.kept[t], picture.trail[t])
        for k in range(AROUND):
            j = view.around[i, k]
            total += _shown(picture.kept[j], picture.trail[j])
        height = total[0] / 9.0
        picture.soft[t] = height
        pixel = wp.uint32(0)
        if total[0] > 0.0:
            pixel = _byte(wp.sqrt(height / look.thickest))
            pixel = pixel | (_byte(total[1] / total[0]) << wp.uint32(8))
            pixel = pixel | (_byte(total[2] / total[0]) << wp.uint32(16))
            pixel = pixel | (_byte(total[3] / total[0]) << wp.uint32(24))
        picture.pixel[t] = pixel


@wp.kernel
def soften(
    first: int,
    # params
    view: Texels,
    looks: wp.array(dtype=Look),
    chunk: int,
    # out
    picture_out: Painting,
):
    begin = (first + wp.tid()) * chunk
    look = looks[0]
    for i in range(begin, wp.min(begin + chunk, view.texels.shape[0])):
        soften_texel(view, look, picture_out, i)


@wp.kernel
def fill_gutter(
    first: int,
    # in
    gutter: wp.array(dtype=wp.int32),
    source: wp.array(dtype=wp.int32),
    # out
    pixel_out: wp.array(dtype=wp.uint32),
):
    """Texels beside a chart repeat its border, so that a picture read between texels does not fade there."""
    i = first + wp.tid()
    pixel_out[gutter[i]] = pixel_out[source[i]]


@wp.kernel
def film_normals(
    first: int,
    # params
    view: Texels,
    # in
    height: wp.array(dtype=wp.float32),
    # out
    normal_out: wp.array(dtype=wp.vec3),
):
    """(n − ∇h)/|…|: ∇h by least squares over the neighbours' places in space, so seams and stretch do not matter."""
    i = first + wp.tid()
    t = view.texels[i]
    n = texel_normal(view, t)
    e = wp.normalize(wp.cross(n, wp.where(wp.abs(n[0]) < 0.7, wp.vec3(1.0, 0.0, 0.0), wp.vec3(0.0, 1.0, 0.0))))
    f = wp.cross(n, e)
    here = view.position[t]
    m = wp.vec3(0.0, 0.0, 0.0)
    r = wp.vec2(0.0, 0.0)
    for k in range(AROUND):
        j = view.around[i, k]
        d = view.position[j] - here
        a = wp.dot(d, e)
        b = wp.dot(d, f)
        rise = height[j] - height[t]
        m += wp.vec3(a * a, a * b, b * b)
        r += wp.vec2(a * rise, b * rise)
    det = m[0] * m[2] - m[1] * m[1]
    slope = wp.vec3(0.0, 0.0, 0.0)
    if det > 1.0e-6 * m[0] * m[2]:
        slope = ((m[2] * r[0] - m[1] * r[1]) * e + (m[0] * r[1] - m[1] * r[0]) * f) / det
    normal_out[t] = wp.normalize(n - slope)


@wp.kernel
def next_frame(
    # out
    frame_out: wp.array(dtype=wp.int32),
):
    frame_out[0] = frame_out[0] + 1
