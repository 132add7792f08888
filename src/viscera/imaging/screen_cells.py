"""Kernels of the screen mesh, second half: triangles of a cell, smoothing of vertices, normals, packing.

The corners of a cell go round counter-clockwise, and edge k lies between corners k and k + 1. Cut edges part the
corners into arcs; an arc of m corners with the two cuts at its ends is a polygon of its own:

    no cut      the square                          2 triangles
    one         m = 4, torn open along the cut      3
    two         m = 1 and 3, or 2 and 2             4
    three       m = 1, 1, 2 and the middle          5
    four        m = 1, 1, 1, 1 and the middle       6

The middle (between three or four cuts) lies behind all of them. A polygon without all its vertices is left out: so are
the empty corners beyond the outer silhouette. These are the sixteen configurations of Grahn, Figure 6.3.
"""

from __future__ import annotations

import warp as wp

from viscera.imaging.lens import FAR, LensView, to_world
from viscera.imaging.screen_kernels import FRONT_LOW, OPEN, ScreenGrid, along_x, along_y, edge_ends

wp.set_module_options({"enable_backward": False})

CELL_TRIANGLES = wp.constant(6)
"""Most triangles in one cell."""

NONE = wp.constant(-1)


@wp.func
def own_copy(grid: ScreenGrid, nodes: int, e: int, kind: int, node: int) -> int:
    """The vertex of cut edge `e` that belongs to the surface of `node`, one of its ends."""
    ends = edge_ends(grid, e)
    front = ends[1]
    if kind == FRONT_LOW:
        front = ends[0]
    slot = nodes + 2 * e
    if node != front:
        slot = slot + 1
    return slot


@wp.func
def emit(
    cell: int, n: int, a: int, b: int, c: int, used: wp.array(dtype=wp.int32), triangle_out: wp.array(dtype=wp.int32)
) -> int:
    """Writes triangle number n of a cell if its vertices exist; how many there are now."""
    if used[a] == 0 or used[b] == 0 or used[c] == 0:
        return n
    at = 3 * (CELL_TRIANGLES * cell + n)
    triangle_out[at] = a
    triangle_out[at + 1] = b
    triangle_out[at + 2] = c
    return n + 1


@wp.kernel
def make_triangles(
    first: int,
    # params
    grid: ScreenGrid,
    nodes: int,
    # in
    depth: wp.array(dtype=wp.int32),
    kind: wp.array(dtype=wp.int32),
    used: wp.array(dtype=wp.int32),
    # out
    triangle_out: wp.array(dtype=wp.int32),
    count_out: wp.array(dtype=wp.int32),
):
    cell = first + wp.tid()
    i = cell % (grid.nx - 1)
    j = cell // (grid.nx - 1)
    n00 = j * grid.nx + i
    corner = wp.vec4i(n00, n00 + 1, n00 + 1 + grid.nx, n00 + grid.nx)
    edge = wp.vec4i(along_x(grid, i, j), along_y(grid, i + 1, j), along_x(grid, i, j + 1), along_y(grid, i, j))
    cuts = wp.int32(0)
    for k in range(4):
        if kind[edge[k]] != OPEN:
            cuts += 1
    n = wp.int32(0)
    if cuts == 0:
        n = emit(cell, n, corner[0], corner[1], corner[2], used, triangle_out)
        n = emit(cell, n, corner[0], corner[2], corner[3], used, triangle_out)
    else:
        for start in range(4):
            before = (start + 3) % 4
            if kind[edge[before]] != OPEN and depth[corner[start]] != FAR:
                m = wp.int32(1)
                while m < 4 and kind[edge[(start + m - 1) % 4]] == OPEN:
                    m += 1
                after = edge[(start + m - 1) % 4]
                c0 = corner[start]
                c1 = corner[(start + 1) % 4]
                c2 = corner[(start + 2) % 4]
                c3 = corner[(start + 3) % 4]
                head = own_copy(grid, nodes, edge[before], kind[edge[before]], c0)
                tail = own_copy(grid, nodes, after, kind[after], corner[(start + m - 1) % 4])
                if m == 1:
                    n = emit(cell, n, c0, tail, head, used, triangle_out)
                elif m == 2:
                    n = emit(cell, n, c0, c1, tail, used, triangle_out)
                    n = emit(cell, n, c0, tail, head, used, triangle_out)
                elif m == 3:
                    n = emit(cell, n, c1, c2, tail, used, triangle_out)
                    n = emit(cell, n, c1, tail, head, used, triangle_out)
                    n = emit(cell, n, c1, head, c0, used, triangle_out)
                else:
                    n = emit(cell, n, c1, c2, c3, used, triangle_out)
                    n = emit(cell, n, c1, c3, tail, used, triangle_out)
                    n = emit(cell, n, c1, head, c0, used, triangle_out)
        if cuts >= 3:
            ring = wp.vec4i(NONE, NONE, NONE, NONE)
            found = wp.int32(0)
            for k in range(4):
                if kind[edge[k]] != OPEN:
                    ring[found] = nodes + 2 * edge[k] + 1
                    found += 1
            n = emit(cell, n, ring[0], ring[1], ring[2], used, triangle_out)
            if cuts == 4:
                n = emit(cell, n, ring[0], ring[2], ring[3], used, triangle_out)
    count_out[cell] = n


@wp.func
def cells_of(grid: ScreenGrid, nodes: int, slot: int) -> wp.vec4i:
    """The range of cells around a vertex: columns from x to y, rows from z to w, the ends included."""
    i = slot % grid.nx
    j = slot // grid.nx
    left = i - 1
    right = i
    low = j - 1
    high = j
    if slot >= nodes:
        e = (slot - nodes) // 2
        ends = edge_ends(grid, e)
        i = ends[0] % grid.nx
        j = ends[0] // grid.nx
        left = i
        right = i
        low = j
        high = j
        if e < grid.horizontal:
            low = j - 1
        else:
            left = i - 1
    return wp.vec4i(wp.max(left, 0), wp.min(right, grid.nx - 2), wp.max(low, 0), wp.min(high, grid.ny - 2))


@wp.kernel
def smooth_vertices(
    first: int,
    # params
    grid: ScreenGrid,
    nodes: int,
    # in
    used: wp.array(dtype=wp.int32),
    triangle: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    screen: wp.array(dtype=wp.vec3),
    # out
    screen_out: wp.array(dtype=wp.vec3),
):
    """Each vertex to the mean of its neighbours, each counted once per shared triangle: outer silhouettes shrink."""
    slot = first + wp.tid()
    if used[slot] == 0:
        return
    around = cells_of(grid, nodes, slot)
    total = wp.vec3(0.0, 0.0, 0.0)
    weight = wp.float32(0.0)
    for j in range(around[2], around[3] + 1):
        for i in range(around[0], around[1] + 1):
            cell = j * (grid.nx - 1) + i
            for k in range(count[cell]):
                at = 3 * (CELL_TRIANGLES * cell + k)
                a = triangle[at]
                b = triangle[at + 1]
                c = triangle[at + 2]
                if a == slot or b == slot or c == slot:
                    total += screen[a] + screen[b] + screen[c] - screen[slot]
                    weight += 2.0
    moved = screen[slot]
    if weight > 0.0:
        moved = total / weight
    screen_out[slot] = moved


@wp.kernel
def place_in_world(
    first: int,
    # in
    lens: wp.array(dtype=LensView),
    used: wp.array(dtype=wp.int32),
    screen: wp.array(dtype=wp.vec3),
    # out
    world_out: wp.array(dtype=wp.vec3),
):
    slot = first + wp.tid()
    if used[slot] != 0:
        world_out[slot] = to_world(lens[0], screen[slot])


@wp.kernel
def pack_vertices(
    first: int,
    # params
    grid: ScreenGrid,
    nodes: int,
    # in
    used: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    triangle: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    world: wp.array(dtype=wp.vec3),
    # out
    position_out: wp.array(dtype=wp.vec3),
    normal_out: wp.array(dtype=wp.vec3),
):
    """Vertices without gaps, with the mean normal of their triangles, weighted by area."""
    slot = first + wp.tid()
    if used[slot] == 0:
        return
    around = cells_of(grid, nodes, slot)
    normal = wp.vec3(0.0, 0.0, 0.0)
    for j in range(around[2], around[3] + 1):
        for i in range(around[0], around[1] + 1):
            cell = j * (grid.nx - 1) + i
            for k in range(count[cell]):
                at = 3 * (CELL_TRIANGLES * cell + k)
                a = triangle[at]
                b = triangle[at + 1]
                c = triangle[at + 2]
                if a == slot or b == slot or c == slot:
                    normal += wp.cross(world[b] - world[a], world[c] - world[a])
    position_out[index[slot]] = world[slot]
    normal_out[index[slot]] = wp.normalize(normal)


@wp.kernel
def pack_triangles(
    first: int,
    # in
    index: wp.array(dtype=wp.int32),
    triangle: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    # out
    triangle_out: wp.array(dtype=wp.int32),
):
    cell = first + wp.tid()
    for k in range(3 * count[cell]):
        triangle_out[3 * start[cell] + k] = index[triangle[3 * CELL_TRIANGLES * cell + k]]


@wp.kernel
def write_sizes(
    first: int,
    # in
    used: wp.array(dtype=wp.int32),
    index: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    # out
    size_out: wp.array(dtype=wp.int32),
):
    """How many vertices and triangles there are."""
    last = used.shape[0] - 1
    size_out[0] = index[last] + used[last]
    last = count.shape[0] - 1
    size_out[1] = start[last] + count[last]
