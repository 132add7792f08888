"""What is seen in each pixel: the nearest of triangles, bars and balls, kept as one integer per pixel.

All is in the eye's own frame: x to the right, y up, z ahead, in metres; the ray of a pixel is d = (x, y, 1). With the
corners a, b, c of a triangle the edge functions (Olano and Greer 1997, doi:10.1145/258694.258723)

    e_a = d·(b × c),   e_b = d·(c × a),   e_c = d·(a × b),   det = a·(b × c)

have one sign inside it, the shares of the corners are e/Σe, and its depth is z = det/Σe; nothing has to be cut at the
eye's plane. A bar is a cylinder with round ends, a ball one without length.

A pixel's key is its depth's bits in the upper half and the number of what is seen in the lower one, so the least key is
the nearest, and of two at the same depth the one with the lower number: the same bits in any order.
"""

from __future__ import annotations

import warp as wp

from viscera.imaging.lens import LensView

wp.set_module_options({"enable_backward": False})

NOTHING = wp.constant(wp.int64(9223372036854775807))
"""Key of a pixel that shows nothing."""

_HALF = wp.constant(wp.int64(4294967296))

LEAST_BALL = wp.constant(0.9)
"""A ball is drawn at least this large, so that a drop is not lost between pixels: its radius [pixel]."""


@wp.struct
class BallGroup:
    """Particles of one array."""

    first: int
    radius: float
    """[m]"""
    part: int
    """What is seen there, as a segmentation numbers it."""
    fluid: wp.vec3
    """Light that a deep body of it gives back."""
    clear: wp.vec3
    """The same of what its particles are beside it, where their shade says how much that is."""
    shaded: int
    """1 where the shade is a share of `fluid`."""


@wp.func
def seen_from(lens: LensView, point: wp.vec3) -> wp.vec3:
    """A point of the world in the eye's frame."""
    way = point - lens.eye
    return wp.vec3(wp.dot(lens.right, way), wp.dot(lens.up, way), -wp.dot(lens.back, way))


@wp.func
def turned(lens: LensView, way: wp.vec3) -> wp.vec3:
    """A direction of the world in the eye's frame."""
    return wp.vec3(wp.dot(lens.right, way), wp.dot(lens.up, way), -wp.dot(lens.back, way))


@wp.func
def ray_of(lens: LensView, column: int, row: int) -> wp.vec3:
    """Through the middle of a pixel; rows are counted from the top."""
    x = (float(column) + 0.5 - 0.5 * lens.width) / lens.focal
    y = (0.5 * lens.height - float(row) - 0.5) / lens.focal
    return wp.vec3(x, y, 1.0)


@wp.func
def key_of(depth: float, number: int) -> wp.int64:
    return wp.int64(wp.cast(depth, wp.int32)) * _HALF + wp.int64(number)


@wp.func
def number_of(key: wp.int64) -> int:
    return wp.int32(key % _HALF)


@wp.func
def depth_of(key: wp.int64) -> float:
    return wp.cast(wp.int32(key // _HALF), wp.float32)


@wp.func
def bar_depth(start: wp.vec3, end: wp.vec3, radius: float, ray: wp.vec3) -> float:
    """Where the ray enters a bar, as a depth; −1 where it misses. Reckoned from the place on the ray that is nearest to
    the bar's middle, so that thin bars far away keep their digits."""
    square = wp.dot(ray, ray)
    shift = wp.dot(0.5 * (start + end), ray) / square
    origin = shift * ray
    axis = end - start
    a0 = origin - start
    length2 = wp.dot(axis, axis)
    found = float(-1.0)
    if length2 > 1.0e-12:
        along = wp.dot(axis, ray)
        side = wp.dot(axis, a0)
        a = length2 * square - along * along
        b = length2 * wp.dot(ray, a0) - side * along
        c = length2 * (wp.dot(a0, a0) - radius * radius) - side * side
        h = b * b - a * c
        if h < 0.0:
            return found
        if a > 1.0e-12 * length2:
            t = (-b - wp.sqrt(h)) / a
            y = side + t * along
            if y > 0.0 and y < length2:
                found = shift + t
    if found < 0.0:
        for k in range(2):
            centre = a0
            if k == 1:
                centre = origin - end
            b = wp.dot(ray, centre)
            rest = centre - (b / square) * ray
            h = radius * radius - wp.dot(rest, rest)
            if h > 0.0:
                t = shift + (-b / square) - wp.sqrt(h / square)
                if found < 0.0 or t < found:
                    found = t
    return found


@wp.func
def ball_depth(centre: wp.vec3, radius: float, ray: wp.vec3) -> float:
    """Where the ray enters a ball, as a depth; −1 where it misses."""
    square = wp.dot(ray, ray)
    along = wp.dot(centre, ray) / square
    rest = centre - along * ray
    h = radius * radius - wp.dot(rest, rest)
    found = float(-1.0)
    if h > 0.0:
        found = along - wp.sqrt(h / square)
    return found


@wp.func
def ball_radius(lens: LensView, radius: float, depth: float) -> float:
    """As it is drawn."""
    return wp.max(radius, LEAST_BALL * depth / lens.focal)


@wp.func
def widened(box: wp.vec4, lens: LensView, point: wp.vec3) -> wp.vec4:
    """The least box on the screen, first and last column and row, that holds a point too."""
    x = 0.5 * lens.width + lens.focal * point[0] / point[2]
    y = 0.5 * lens.height - lens.focal * point[1] / point[2]
    return wp.vec4(wp.min(box[0], x), wp.max(box[1], x), wp.min(box[2], y), wp.max(box[3], y))


@wp.func
def widened_by_edge(box: wp.vec4, lens: LensView, p: wp.vec3, q: wp.vec3) -> wp.vec4:
    """The same for p, where it is ahead of the eye, and for where the edge from p to q leaves what is ahead."""
    found = box
    if p[2] >= lens.near:
        found = widened(found, lens, p)
    if (p[2] >= lens.near) != (q[2] >= lens.near):
        share = (lens.near - p[2]) / (q[2] - p[2])
        found = widened(found, lens, p + share * (q - p))
    return found


@wp.func
def ball_box(box: wp.vec4, lens: LensView, centre: wp.vec3, radius: float) -> wp.vec4:
    """The same for a ball: all of the screen where the eye is in it or beside it."""
    z = centre[2] - radius
    found = wp.vec4(0.0, lens.width, 0.0, lens.height)
    if z > lens.near:
        # A ball's outline is wider than its radius seen at the depth of its middle, and narrower than this.
        reach = radius * (1.0 + (wp.abs(centre[0]) + wp.abs(centre[1])) / centre[2])
        found = widened(box, lens, wp.vec3(centre[0] - reach, centre[1] - reach, z))
        found = widened(found, lens, wp.vec3(centre[0] + reach, centre[1] + reach, z))
        found = widened(found, lens, wp.vec3(centre[0] - reach, centre[1] - reach, centre[2] + radius))
        found = widened(found, lens, wp.vec3(centre[0] + reach, centre[1] + reach, centre[2] + radius))
    return found


@wp.func
def no_box() -> wp.vec4:
    return wp.vec4(1.0e9, -1.0e9, 1.0e9, -1.0e9)


@wp.func
def pixels_of(box: wp.vec4, lens: LensView, row_first: int, row_end: int) -> wp.vec4i:
    """First column, end of columns, first row, end of rows whose middles may be in the box."""
    left = wp.clamp(box[0] - 0.5, 0.0, lens.width)
    right = wp.clamp(box[1] + 0.5, 0.0, lens.width)
    top = wp.clamp(box[2] - 0.5, 0.0, lens.height)
    bottom = wp.clamp(box[3] + 0.5, 0.0, lens.height)
    return wp.vec4i(
        wp.int32(left),
        wp.min(wp.int32(right) + 1, wp.int32(lens.width)),
        wp.max(wp.int32(top), row_first),
        wp.min(wp.int32(bottom) + 1, row_end),
    )


@wp.kernel
def clear_keys(
    first: int,
    # out
    key_out: wp.array(dtype=wp.int64),
):
    key_out[first + wp.tid()] = NOTHING


@wp.func
def draw_triangle(
    number: int, lens: LensView, row_first: int, row_end: int, corner: wp.vec3i, seen: wp.array(dtype=wp.vec3),
    key_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """The rows from `row_first` to before `row_end` of a triangle; `seen` are the vertices."""
    a = seen[corner[0]]
    b = seen[corner[1]]
    c = seen[corner[2]]
    if wp.max(a[2], wp.max(b[2], c[2])) < lens.near:
        return
    over_a = wp.cross(b, c)
    over_b = wp.cross(c, a)
    over_c = wp.cross(a, b)
    det = wp.dot(a, over_a)
    if det == 0.0 or not wp.isfinite(det):
        return
    over_a = over_a * wp.sign(det)
    over_b = over_b * wp.sign(det)
    over_c = over_c * wp.sign(det)
    box = widened_by_edge(no_box(), lens, a, b)
    box = widened_by_edge(box, lens, b, c)
    box = widened_by_edge(box, lens, c, a)
    range_ = pixels_of(box, lens, row_first, row_end)
    width = wp.int32(lens.width)
    for row in range(range_[2], range_[3]):
        y = ray_of(lens, 0, row)[1]
        rest = wp.vec3(over_a[1] * y + over_a[2], over_b[1] * y + over_b[2], over_c[1] * y + over_c[2])
        for column in range(range_[0], range_[1]):
            x = ray_of(lens, column, row)[0]
            ea = over_a[0] * x + rest[0]
            eb = over_b[0] * x + rest[1]
            ec = over_c[0] * x + rest[2]
            if ea >= 0.0 and eb >= 0.0 and ec >= 0.0:
                depth = wp.abs(det) / (ea + eb + ec)
                if depth >= lens.near and wp.isfinite(depth):
                    wp.atomic_min(key_out, row * width + column, key_of(depth, number))


@wp.kernel
def draw_triangles(
    row_first: int,
    row_end: int,
    # in
    eye: wp.array(dtype=LensView),
    count: wp.array(dtype=wp.int32),
    corner: wp.array(dtype=wp.vec3i),
    seen: wp.array(dtype=wp.vec3),
    # out
    key_out: wp.array(dtype=wp.int64),
):
    number = wp.tid()
    if number < count[0]:
        draw_triangle(number, eye[0], row_first, row_end, corner[number], seen, key_out)


@wp.func
def draw_bar(
    number: int, lens: LensView, row_first: int, row_end: int, p: wp.vec3, q: wp.vec3, radius: float,
    key_out: wp.array(dtype=wp.int64),
):  # fmt: skip
    """The same of a bar between p and q, in the eye's frame."""
    if wp.max(p[2], q[2]) + radius < lens.near:
        return
    box = ball_box(no_box(), lens, p, radius)
    box = ball_box(box, lens, q, radius)
    range_ = pixels_of(box, lens, row_first, row_end)
    width = wp.int32(lens.width)
    for row in range(range_[2], range_[3]):
        for column in range(range_[0], range_[1]):
            depth = bar_depth(p, q, radius, ray_of(lens, column, row))
            if depth >= lens.near:
                wp.atomic_min(key_out, row * width + column, key_of(depth, number))


@wp.kernel
def draw_bars(
    row_first: int,
    row_end: int,
    # params
    first_number: int,
    # in
    eye: wp.array(dtype=LensView),
    count: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.vec3),
    end: wp.array(dtype=wp.vec3),
    radius: wp.array(dtype=wp.float32),
    # out
    key_out: wp.array(dtype=wp.int64),
):
    number = wp.tid()
    if number < count[0]:
        lens = eye[0]
        p = seen_from(lens, start[number])
        q = seen_from(lens, end[number])
        draw_bar(first_number + number, lens, row_first, row_end, p, q, radius[number], key_out)


@wp.kernel
def draw_balls(
    row_first: int,
    row_end: int,
    # params
    first_number: int,
    # in
    eye: wp.array(dtype=LensView),
    count: wp.array(dtype=wp.int32),
    group_of: wp.array(dtype=wp.int32),
    group: wp.array(dtype=BallGroup),
    ball: wp.array(dtype=wp.vec4),
    # out
    key_out: wp.array(dtype=wp.int64),
):
    """`count` has as many numbers as there are groups; x, y, z of a ball are in the world."""
    number = wp.tid()
    g = group_of[number]
    if number - group[g].first >= count[g]:
        return
    lens = eye[0]
    place = ball[number]
    centre = seen_from(lens, wp.vec3(place[0], place[1], place[2]))
    r = ball_radius(lens, group[g].radius, centre[2])
    if not (centre[2] - r > lens.near) or not wp.isfinite(centre[0] + centre[1] + centre[2]):
        return
    range_ = pixels_of(ball_box(no_box(), lens, centre, r), lens, row_first, row_end)
    width = wp.int32(lens.width)
    for row in range(range_[2], range_[3]):
        for column in range(range_[0], range_[1]):
            depth = ball_depth(centre, r, ray_of(lens, column, row))
            if depth >= lens.near:
                wp.atomic_min(key_out, row * width + column, key_of(depth, first_number + number))
