"""How far each ray runs in each material: through closed meshes, particles and volumes.

A ray from the source through the middle of a pixel is t·d with d along the beam of length 1. In a closed mesh it runs
for the sum of its exits less the sum of its entries (Freud et al. 2006, doi:10.1016/j.nimb.2006.03.009), each triangle
by itself and in any order:

    L = |d| Σ ± z,      + where it leaves, − where it enters,      1/z linear on the screen.

Corners are rounded to 1/256 pixel and edges are tested in integers, with one owner for every edge: a ray meets as many
entries as exits, always. Particles add their kernel's integral along the ray. For the kernel W ∝ (1 − r²/h²)^(5/2),
at a distance b of ray and particle, with e and f the ray less the particle's own ray, right and up at distance 1:

    L = Σ V · 4/(π h²) · (1 − b²/h²)³,       b² d² = (q_z e)² + (q_z f)² + (q_x f − q_y e)²

where d² is taken at the middle of the particle.

A volume is sampled along the ray at equal steps, linear between its voxels, and gives soft tissue and bone.

All sums are integers of `UNIT` (0.12 µm): every order of adding gives the same bits, and a sum that runs over comes
back.
"""

from __future__ import annotations

import warp as wp

from viscera.xray.carm import ArmView

wp.set_module_options({"enable_backward": False})

UNIT = 2.0**-23
"""Of summed lengths [m]; 31 bits hold 256 m."""
SNAP = wp.constant(256.0)
"""Steps in a pixel to which corners are rounded."""
_HALF = wp.constant(128)
_PER_METRE = wp.constant(2.0**23)
_NEAREST = wp.constant(1.0e-3)
"""What is nearer to the source than this, along the beam, cannot be seen [m]."""
_FARTHEST = wp.constant(2.0**21)
"""Corners farther aside than this cannot be seen [pixel]."""
_SLENDEREST = wp.constant(1.75)
"""Least radius with which a particle is drawn [pixel], so that none falls between pixels."""
_NORM = wp.constant(4.0 / 3.141592653589793)


@wp.func
def seen_from(arm: ArmView, p: wp.vec3) -> wp.vec3:
    """Right, up and along the beam from the source [m]."""
    q = p - arm.source
    return wp.vec3(wp.dot(q, arm.right), wp.dot(q, arm.up), wp.dot(q, arm.ahead))


@wp.kernel
def project_vertices(
    first: int,
    # params
    pixels: int,
    # in
    arm: wp.array(dtype=ArmView),
    vertex: wp.array(dtype=wp.vec3),
    # out
    corner_out: wp.array(dtype=wp.vec3i),
    report_out: wp.array(dtype=wp.int32),
):
    """x and y in 1/256 pixel, and the bits of 1/z. A corner that cannot be seen is reported and put aside."""
    i = first + wp.tid()
    q = seen_from(arm[0], vertex[i])
    x = arm[0].focal * q[0] / q[2]
    y = arm[0].focal * q[1] / q[2]
    # A comparison with NaN is false, so this finds it too.
    if q[2] > _NEAREST and wp.abs(x) < _FARTHEST and wp.abs(y) < _FARTHEST:
        half = 0.5 * float(pixels)
        across = wp.int32(wp.rint((x + half) * SNAP))
        high = wp.int32(wp.rint((y + half) * SNAP))
        corner_out[i] = wp.vec3i(across, high, wp.cast(1.0 / q[2], wp.int32))
    else:
        report_out[0] = 1  # whoever writes it writes the same
        corner_out[i] = wp.vec3i(0, 0, 0)


@wp.func
def edge(a: wp.vec3i, b: wp.vec3i, x: int, y: int) -> wp.int64:
    """Twice the area of a, b and the point, positive where it lies to the left."""
    u = wp.int64(b[0] - a[0]) * wp.int64(y - a[1])
    return u - wp.int64(b[1] - a[1]) * wp.int64(x - a[0])


@wp.func
def owner(a: wp.vec3i, b: wp.vec3i) -> wp.int64:
    """0 for the one side of an edge that points on it belong to, −1 for the other."""
    below = b[1] < a[1] or (b[1] == a[1] and b[0] > a[0])
    bias = wp.int64(-1)
    if below:
        bias = wp.int64(0)
    return bias


@wp.kernel
def add_triangles(
    row_first: int,
    row_end: int,
    # params
    pixels: int,
    strips: int,
    material: int,
    displaced: int,
    # in
    arm: wp.array(dtype=ArmView),
    corner: wp.array(dtype=wp.vec3i),
    index: wp.array(dtype=wp.int32),
    # out
    length_out: wp.array2d(dtype=wp.int32),
):
    """Thread s of `strips` has the rows s, s + strips, … of a triangle. Where there is a `displaced` material, the mesh
    takes its place."""
    thread = wp.tid()
    triangle = thread // strips
    a = corner[index[3 * triangle]]
    b = corner[index[3 * triangle + 1]]
    c = corner[index[3 * triangle + 2]]
    area = edge(a, b, c[0], c[1])
    if area == wp.int64(0) or a[2] == 0 or b[2] == 0 or c[2] == 0:
        return
    sign = float(1.0)
    if area < wp.int64(0):
        sign = float(-1.0)
        swap = b
        b = c
        c = swap
        area = -area
    left = wp.max((wp.min(a[0], wp.min(b[0], c[0])) + _HALF - 1) >> 8, 0)
    right = wp.min((wp.max(a[0], wp.max(b[0], c[0])) - _HALF) >> 8, pixels - 1)
    low = wp.max((wp.min(a[1], wp.min(b[1], c[1])) + _HALF - 1) >> 8, row_first)
    high = wp.min((wp.max(a[1], wp.max(b[1], c[1])) - _HALF) >> 8, row_end - 1)
    if right < left:
        return
    low += (thread % strips - low % strips + strips) % strips
    za = wp.cast(a[2], wp.float32)
    zb = wp.cast(b[2], wp.float32)
    zc = wp.cast(c[2], wp.float32)
    whole = float(area)
    middle = arm[0].isocentre
    x0 = left * 256 + _HALF
    step_a = wp.int64(b[1] - c[1]) * wp.int64(256)
    step_b = wp.int64(c[1] - a[1]) * wp.int64(256)
    step_c = wp.int64(a[1] - b[1]) * wp.int64(256)
    own_a = owner(b, c)
    own_b = owner(c, a)
    own_c = owner(a, b)
    for row in range(low, high + 1, strips):
        y0 = row * 256 + _HALF
        ea = edge(b, c, x0, y0)
        eb = edge(c, a, x0, y0)
        ec = edge(a, b, x0, y0)
        for column in range(left, right + 1):
            if ea + own_a >= wp.int64(0) and eb + own_b >= wp.int64(0) and ec + own_c >= wp.int64(0):
                z = whole / (float(ea) * za + float(eb) * zb + float(ec) * zc)
                value = wp.int32(wp.rint(sign * (z - middle) * _PER_METRE))
                pixel = row * pixels + column
                wp.atomic_add(length_out, material, pixel, value)
                if displaced >= 0:
                    wp.atomic_add(length_out, displaced, pixel, -value)
            ea += step_a
            eb += step_b
            ec += step_c


@wp.kernel
def add_particles(
    row_first: int,
    row_end: int,
    # params
    pixels: int,
    strips: int,
    radius: float,
    material: int,
    displaced: int,
    # in
    arm: wp.array(dtype=ArmView),
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    volume: wp.array(dtype=float),
    # out
    length_out: wp.array2d(dtype=wp.int32),
):
    """A particle's integral along each ray that meets it, over |d|, which is multiplied in where sums are read."""
    thread = wp.tid()
    i = thread // strips
    if i >= count[0] or volume[i] <= 0.0:
        return
    q = seen_from(arm[0], position[i])
    focal = arm[0].focal
    if not (q[2] > radius + _NEAREST):
        return
    reach = wp.max(radius, _SLENDEREST * q[2] / focal)
    half = 0.5 * float(pixels)
    across = q[0] / q[2]
    high = q[1] / q[2]
    slant2 = 1.0 + across * across + high * high
    # The ball's outline: where e and f, the ray's distances from the particle's own ray, make b = h.
    most = reach * reach * slant2
    spread = wp.sqrt(most) * wp.sqrt(slant2) / wp.sqrt(q[2] * q[2] - reach * reach)
    low = wp.max(wp.int32(wp.floor((high - spread) * focal + half)), row_first)
    last = wp.min(wp.int32(wp.floor((high + spread) * focal + half)), row_end - 1)
    low += (thread % strips - low % strips + strips) % strips
    peak = wp.pow(volume[i] * _NORM / (reach * reach) / wp.sqrt(slant2) * _PER_METRE, 1.0 / 3.0)
    ee = (q[2] * q[2] + q[1] * q[1]) / most
    for row in range(low, last + 1, strips):
        f = (float(row) + 0.5 - half) / focal - high
        ef = f * q[0] * q[1] / most
        rest = 1.0 - f * f * (q[2] * q[2] + q[0] * q[0]) / most
        root = ef * ef + ee * rest
        if root > 0.0:
            middle = ef / ee
            wide = wp.sqrt(root) / ee
            left = wp.max(wp.int32(wp.ceil((across + middle - wide) * focal + half - 0.5)), 0)
            right = wp.min(wp.int32(wp.floor((across + middle + wide) * focal + half - 0.5)), pixels - 1)
            for column in range(left, right + 1):
                e = (float(column) + 0.5 - half) / focal - across
                inside = peak * wp.max(rest + e * (2.0 * ef - e * ee), 0.0)
                value = wp.int32(inside * inside * inside + 0.5)
                pixel = row * pixels + column
                wp.atomic_add(length_out, material, pixel, value)
                if displaced >= 0:
                    wp.atomic_add(length_out, displaced, pixel, -value)


@wp.struct
class VolumeView:
    """Where a volume is and how finely it is sampled."""

    from_world: wp.mat44
    """To voxels; whole numbers at their middles."""
    step: float
    """[m]"""


@wp.func
def box_range(origin: wp.vec3, way: wp.vec3, size: wp.vec3) -> wp.vec2:
    """Where a ray, in voxels, is in the box of the voxels' middles."""
    enter = float(-1.0e30)
    leave = float(1.0e30)
    for axis in range(3):
        slope = way[axis]
        if wp.abs(slope) < 1.0e-12:
            if origin[axis] < 0.0 or origin[axis] > size[axis] - 1.0:
                leave = -1.0e30
        else:
            s = -origin[axis] / slope
            t = (size[axis] - 1.0 - origin[axis]) / slope
            enter = wp.max(enter, wp.min(s, t))
            leave = wp.min(leave, wp.max(s, t))
    return wp.vec2(enter, leave)


@wp.kernel
def add_volume(
    first: int,
    # params
    pixels: int,
    soft: int,
    bone: int,
    view: VolumeView,
    # in
    arm: wp.array(dtype=ArmView),
    voxel: wp.array3d(dtype=wp.vec2h),
    # out
    length_out: wp.array2d(dtype=wp.int32),
):
    """Voxels have the share of the space that is soft tissue, and that is bone. A ray takes the middles of equal steps
    (the midpoint rule) from where it enters to where it leaves."""
    pixel = first + wp.tid()
    half = 0.5 * float(pixels)
    dx = (float(pixel % pixels) + 0.5 - half) / arm[0].focal
    dy = (float(pixel // pixels) + 0.5 - half) / arm[0].focal
    d = dx * arm[0].right + dy * arm[0].up + arm[0].ahead
    source = arm[0].source
    origin = wp.transform_point(view.from_world, source)
    way = wp.transform_vector(view.from_world, d)
    size = wp.vec3(float(voxel.shape[0]), float(voxel.shape[1]), float(voxel.shape[2]))
    inside = box_range(origin, way, size)
    enter = wp.max(inside[0], 0.0)
    reach = inside[1] - enter
    if reach <= 0.0:
        return
    steps = wp.int32(wp.ceil(reach * wp.length(d) / view.step))
    along = reach / float(steps)
    total = wp.vec2(0.0, 0.0)
    for k in range(steps):
        p = origin + (enter + (float(k) + 0.5) * along) * way
        i = wp.clamp(wp.int32(p[0]), 0, voxel.shape[0] - 2)
        j = wp.clamp(wp.int32(p[1]), 0, voxel.shape[1] - 2)
        n = wp.clamp(wp.int32(p[2]), 0, voxel.shape[2] - 2)
        u = p[0] - float(i)
        v = p[1] - float(j)
        w = p[2] - float(n)
        near = (1.0 - w) * wp.vec2(voxel[i, j, n]) + w * wp.vec2(voxel[i, j, n + 1])
        over = (1.0 - w) * wp.vec2(voxel[i, j + 1, n]) + w * wp.vec2(voxel[i, j + 1, n + 1])
        far = (1.0 - w) * wp.vec2(voxel[i + 1, j, n]) + w * wp.vec2(voxel[i + 1, j, n + 1])
        both = (1.0 - w) * wp.vec2(voxel[i + 1, j + 1, n]) + w * wp.vec2(voxel[i + 1, j + 1, n + 1])
        total += (1.0 - u) * ((1.0 - v) * near + v * over) + u * ((1.0 - v) * far + v * both)
    scale = along * _PER_METRE
    length_out[soft, pixel] = length_out[soft, pixel] + wp.int32(wp.rint(total[0] * scale))
    length_out[bone, pixel] = length_out[bone, pixel] + wp.int32(wp.rint(total[1] * scale))
