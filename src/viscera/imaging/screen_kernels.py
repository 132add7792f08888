"""Kernels of the screen mesh, first half: depth, silhouettes, smoothing, vertices. `screen_mesh` has the equations.

Nodes (i, j) of the grid are numbered along x first. Edges: the horizontal ones from (i, j) to (i+1, j), then the
vertical ones from (i, j) to (i, j+1). Places for vertices: one per node, then two per edge, the front one first.
"""

from __future__ import annotations

import warp as wp

from viscera.imaging.lens import FAR, LensView, depth_key, key_depth

wp.set_module_options({"enable_backward": False})

NO_CUT = wp.constant(wp.int64(-1))

OPEN = wp.constant(0)
"""Edge whose ends are connected (or both empty)."""
FRONT_LOW = wp.constant(1)
"""Silhouette edge; the end with the lower number is in front."""
FRONT_HIGH = wp.constant(2)


@wp.struct
class ScreenGrid:
    nx: int
    ny: int
    """Nodes along the sides."""
    spacing: float
    """Between nodes [pixel]."""
    horizontal: int
    """How many edges are horizontal."""
    connection: float
    """z_max: largest difference of depth along an edge that is still one surface [m]."""


@wp.func
def edge_ends(grid: ScreenGrid, e: int) -> wp.vec2i:
    """The two nodes of an edge, the lower number first."""
    a = e - grid.horizontal
    step = grid.nx
    if e < grid.horizontal:
        a = (e // (grid.nx - 1)) * grid.nx + e % (grid.nx - 1)
        step = 1
    return wp.vec2i(a, a + step)


@wp.func
def along_x(grid: ScreenGrid, i: int, j: int) -> int:
    """The edge from (i, j) to (i+1, j)."""
    return j * (grid.nx - 1) + i


@wp.func
def along_y(grid: ScreenGrid, i: int, j: int) -> int:
    """The edge from (i, j) to (i, j+1)."""
    return grid.horizontal + j * grid.nx + i


@wp.kernel
def clear_nodes(
    first: int,
    # out
    depth_out: wp.array(dtype=wp.int32),
):
    depth_out[first + wp.tid()] = FAR


@wp.kernel
def splat_depth(
    row_first: int,
    row_end: int,
    # params
    grid: ScreenGrid,
    radius: float,
    # in
    lens: wp.array(dtype=LensView),
    projected: wp.array(dtype=wp.vec4),
    # out
    depth_out: wp.array(dtype=wp.int32),
):
    """(6.6) and (6.7): the least depth at each node. Integers, so the order of the particles does not matter."""
    p = projected[wp.tid()]
    if p[3] > 0.0:
        h = grid.spacing
        thick = radius * lens[0].depth_scale
        left = wp.max(wp.int32(wp.ceil((p[0] - p[3]) / h)), 0)
        right = wp.min(wp.int32(wp.floor((p[0] + p[3]) / h)), grid.nx - 1)
        low = wp.max(wp.int32(wp.ceil((p[1] - p[3]) / h)), row_first)
        high = wp.min(wp.int32(wp.floor((p[1] + p[3]) / h)), row_end - 1)
        for j in range(low, high + 1):
            dy = (float(j) * h - p[1]) / p[3]
            for i in range(left, right + 1):
                dx = (float(i) * h - p[0]) / p[3]
                rest = 1.0 - (dx * dx + dy * dy)
                if rest >= 0.0:
                    z = p[2] - thick * wp.sqrt(rest)
                    wp.atomic_min(depth_out, j * grid.nx + i, depth_key(z))


@wp.kernel
def find_silhouettes(
    first: int,
    # params
    grid: ScreenGrid,
    # in
    lens: wp.array(dtype=LensView),
    depth: wp.array(dtype=wp.int32),
    # out
    kind_out: wp.array(dtype=wp.int32),
    cut_out: wp.array(dtype=wp.int64),
):
    """Which edges connect depths that are farther apart than z_max, and which end is in front."""
    e = first + wp.tid()
    ends = edge_ends(grid, e)
    a = depth[ends[0]]
    b = depth[ends[1]]
    kind = wp.int32(OPEN)
    if a != b:
        if b == FAR:
            kind = FRONT_LOW
        elif a == FAR:
            kind = FRONT_HIGH
        else:
            difference = key_depth(b) - key_depth(a)
            if difference > grid.connection * lens[0].depth_scale:
                kind = FRONT_LOW
            elif -difference > grid.connection * lens[0].depth_scale:
                kind = FRONT_HIGH
    kind_out[e] = kind
    cut_out[e] = NO_CUT


@wp.func
def offer_cut(
    e: int,
    at: float,
    z: float,
    grid: ScreenGrid,
    depth: wp.array(dtype=wp.int32),
    kind: wp.array(dtype=wp.int32),
    cut_out: wp.array(dtype=wp.int64),
):
    """A particle whose circle crosses edge `e` at the share `at` of its length. It counts if it is nearer than the mean
    of the two ends; the cut farthest from the front end wins, of equal ones the nearest to the eye. Both are in one
    number: the share above, the depth below."""
    k = kind[e]
    if k != OPEN:
        ends = edge_ends(grid, e)
        front = ends[0]
        back = ends[1]
        share = at
        if k == FRONT_HIGH:
            front = ends[1]
            back = ends[0]
            share = 1.0 - at
        counts = depth[back] == FAR
        if not counts:
            counts = z < 0.5 * (key_depth(depth[front]) + key_depth(depth[back]))
        if counts:
            upper = wp.int64(wp.cast(wp.clamp(share, 0.0, 1.0), wp.int32)) << wp.int64(32)
            lower = wp.int64(2147483647) - wp.int64(depth_key(z))
            wp.atomic_max(cut_out, e, upper | lower)


@wp.func
def cut_share(cut: wp.int64) -> float:
    """How far a cut is from the front end, in lengths of the edge."""
    return wp.cast(wp.int32(cut >> wp.int64(32)), wp.float32)


@wp.func
def cut_depth(cut: wp.int64) -> float:
    return key_depth(wp.int32(wp.int64(2147483647) - (cut & wp.int64(4294967295))))


@wp.kernel
def splat_cuts(
    row_first: int,
    row_end: int,
    # params
    grid: ScreenGrid,
    # in
    projected: wp.array(dtype=wp.vec4),
    depth: wp.array(dtype=wp.int32),
    kind: wp.array(dtype=wp.int32),
    # out
    cut_out: wp.array(dtype=wp.int64),
):
    """Where the circle of each particle cuts silhouette edges."""
    p = projected[wp.tid()]
    if p[3] > 0.0:
        x = p[0] / grid.spacing
        y = p[1] / grid.spacing
        r = p[3] / grid.spacing
        low = wp.max(wp.int32(wp.ceil(y - r)), row_first)
        high = wp.min(wp.int32(wp.floor(y + r)), row_end - 1)
        for j in range(low, high + 1):
            dy = float(j) - y
            half = wp.sqrt(wp.max(r * r - dy * dy, 0.0))
            for side in range(2):
                at = x + (2.0 * float(side) - 1.0) * half
                i = wp.int32(wp.floor(at))
                if i >= 0 and i < grid.nx - 1:
                    offer_cut(along_x(grid, i, j), at - float(i), p[2], grid, depth, kind, cut_out)
        left = wp.max(wp.int32(wp.ceil(x - r)), 0)
        right = wp.min(wp.int32(wp.floor(x + r)), grid.nx - 1)
        for i in range(left, right + 1):
            dx = float(i) - x
            half = wp.sqrt(wp.max(r * r - dx * dx, 0.0))
            for side in range(2):
                at = y + (2.0 * float(side) - 1.0) * half
                j = wp.int32(wp.floor(at))
                if j >= row_first and j < wp.min(row_end, grid.ny - 1):
                    offer_cut(along_y(grid, i, j), at - float(j), p[2], grid, depth, kind, cut_out)


@wp.kernel
def open_depth(
    first: int,
    # in
    depth: wp.array(dtype=wp.int32),
    # out
    smooth_out: wp.array(dtype=wp.float32),
):
    n = first + wp.tid()
    z = wp.float32(0.0)
    if depth[n] != FAR:
        z = key_depth(depth[n])
    smooth_out[n] = z


@wp.kernel
def smooth_depth(
    first: int,
    # params
    grid: ScreenGrid,
    upright: int,
    half: int,
    # in
    weight: wp.array(dtype=wp.float32),
    depth: wp.array(dtype=wp.int32),
    kind: wp.array(dtype=wp.int32),
    smooth: wp.array(dtype=wp.float32),
    # out
    smooth_out: wp.array(dtype=wp.float32),
):
    """One pass of the binomial filter. It goes outwards from a node and stops at a silhouette or at the rim; what is
    missing there counts as the node's own depth, so nothing is mixed across a silhouette."""
    n = first + wp.tid()
    if depth[n] == FAR:
        smooth_out[n] = 0.0
        return
    i = n % grid.nx
    j = n // grid.nx
    own = smooth[n]
    total = weight[0] * own
    for way in range(2):
        sign = 2 * way - 1
        here = wp.int32(n)
        a = wp.int32(i)
        b = wp.int32(j)
        alive = wp.bool(True)
        for k in range(1, half + 1):
            if alive:
                e = wp.int32(0)
                if upright == 1:
                    e = along_y(grid, a, wp.min(b, b + sign))
                    b = b + sign
                    alive = b >= 0 and b < grid.ny
                else:
                    e = along_x(grid, wp.min(a, a + sign), b)
                    a = a + sign
                    alive = a >= 0 and a < grid.nx
                if alive:
                    alive = kind[e] == OPEN
            if alive:
                here = b * grid.nx + a
                total += weight[k] * smooth[here]
            else:
                total += weight[k] * own
    smooth_out[n] = total


@wp.kernel
def place_nodes(
    first: int,
    # params
    grid: ScreenGrid,
    # in
    depth: wp.array(dtype=wp.int32),
    smooth: wp.array(dtype=wp.float32),
    # out
    screen_out: wp.array(dtype=wp.vec3),
    used_out: wp.array(dtype=wp.int32),
):
    n = first + wp.tid()
    used = wp.int32(0)
    if depth[n] != FAR:
        used = 1
        screen_out[n] = wp.vec3(float(n % grid.nx) * grid.spacing, float(n // grid.nx) * grid.spacing, smooth[n])
    used_out[n] = used


@wp.kernel
def place_cuts(
    first: int,
    # params
    grid: ScreenGrid,
    nodes: int,
    # in
    lens: wp.array(dtype=LensView),
    depth: wp.array(dtype=wp.int32),
    smooth: wp.array(dtype=wp.float32),
    kind: wp.array(dtype=wp.int32),
    cut: wp.array(dtype=wp.int64),
    # out
    screen_out: wp.array(dtype=wp.vec3),
    used_out: wp.array(dtype=wp.int32),
):
    """One vertex on the outer silhouette, two on an inner one: the front one has the depth of the cut, the back one
    lies on the line through the back node and the node behind it (Figure 6.2)."""
    e = first + wp.tid()
    slot = nodes + 2 * e
    used_out[slot] = 0
    used_out[slot + 1] = 0
    k = kind[e]
    if k == OPEN:
        return
    ends = edge_ends(grid, e)
    front = ends[0]
    back = ends[1]
    if k == FRONT_HIGH:
        front = ends[1]
        back = ends[0]
    # Rounding may put the circle's cut on the edge next to it: then the surface ends at the node.
    share = wp.float32(0.0)
    z = smooth[front]
    if cut[e] != NO_CUT:
        share = cut_share(cut[e])
        z = cut_depth(cut[e])
    x = (1.0 - share) * float(front % grid.nx) + share * float(back % grid.nx)
    y = (1.0 - share) * float(front // grid.nx) + share * float(back // grid.nx)
    screen_out[slot] = wp.vec3(x * grid.spacing, y * grid.spacing, z)
    used_out[slot] = 1
    if depth[back] != FAR:
        limit = grid.connection * lens[0].depth_scale
        slope = wp.float32(0.0)
        step = back - front
        inside = back + step >= 0 and back + step < nodes
        if e < grid.horizontal:
            inside = back % grid.nx + step >= 0 and back % grid.nx + step < grid.nx
        if inside:
            beyond = depth[back + step]
            if beyond != FAR and wp.abs(key_depth(beyond) - key_depth(depth[back])) <= limit:
                slope = smooth[back] - smooth[back + step]
        behind = smooth[back] + wp.clamp((1.0 - share) * slope, -limit, limit)
        screen_out[slot + 1] = wp.vec3(x * grid.spacing, y * grid.spacing, wp.max(behind, z))
        used_out[slot + 1] = 1
