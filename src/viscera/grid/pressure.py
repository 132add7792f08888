"""Velocity without divergence: plain kernels of the projection.

With the open share a of faces, the velocity s of solids and sources q [1/s], the pressure solves

    Σ_faces a (p − p_neighbour) = −Σ_faces ±(a u + (1 − a) s) + h q,      then   u ← u − (p − p_below),

p in m/s. The system is solved by a fixed number of cycles of generalised conjugate residuals with one kept direction
(Eisenstat, Elman and Schultz 1983), preconditioned by one V-cycle of multigrid each: cells are joined by eights, coarse
faces are half the sum of fine ones (Shao et al. 2022), two colours are relaxed in turn, once before and twice after the
coarse grid. What a coarse grid finds is spread linearly between the middles of its cells, where the source gives a fine
cell its coarse cell's value: so a cycle leaves a tenth whatever the number of cells, as orders of spreading and summing
must add up to more than that of the equation (Hackbusch 1985), and 1 + 1 do not. Each cycle leaves the least L2 norm
of the divergence that it can, so that it never grows, also in a pocket that a tool has closed off, where no solution
exists. A solve begins from 0: from the last pressure it is no better while tools stir, and where the flow has become
steady, or a tool has just started, that pressure is wrong and cycles are spent on taking it away.

Differs from the source (Andersson §3.3, after Stam), which takes 20 sweeps of Gauss–Seidel on cells with velocities in
their middles: that is `solver="gauss_seidel"`, here on faces.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.numbers import ALPHA, BETA, MEAN
from viscera.grid.shape import GridShape, Three

wp.set_module_options({"enable_backward": False})


@wp.func
def flux(a: float, u: float, s: float):
    return a * u + (1.0 - a) * s


@wp.func
def around(
    shape: GridShape,
    c: int,
    inverse: float,
    faces: Three,
    p: wp.array[wp.float32],
):
    """Σ a p_neighbour. Where all faces are open, which one over their sum tells, none of them is read: on a GPU memory
    is what a pass costs."""
    if inverse == shape.whole:
        open_sum = p[c - 1] + p[c + 1]
        open_sum += p[c - shape.row] + p[c + shape.row]
        open_sum += p[c - shape.layer] + p[c + shape.layer]
        return open_sum
    total = faces.x[c] * p[c - 1] + faces.x[c + 1] * p[c + 1]
    total += faces.y[c] * p[c - shape.row] + faces.y[c + shape.row] * p[c + shape.row]
    total += faces.z[c] * p[c - shape.layer] + faces.z[c + shape.layer] * p[c + shape.layer]
    return total


@wp.func
def all_faces(
    shape: GridShape,
    c: int,
    inverse: float,
    faces: Three,
):
    if inverse == shape.whole:
        return 6.0
    return faces.x[c] + faces.x[c + 1] + faces.y[c] + faces.y[c + shape.row] + faces.z[c] + faces.z[c + shape.layer]


@wp.kernel
def find_divergence(
    first: int,
    # params
    shape: GridShape,
    spacing: float,
    # in
    faces: Three,
    solid: Three,
    inverse: wp.array[wp.float32],
    velocity: Three,
    source: wp.array[wp.float32],
    # out
    needed_out: wp.array[wp.float32],
):
    """What pressure must take away in each cell [m/s]: −h ∇·u + h q."""
    c = shape.layer + first + wp.tid()
    r = c + 1
    b = c + shape.row
    t = c + shape.layer
    out = flux(faces.x[r], velocity.x[r], solid.x[r]) - flux(faces.x[c], velocity.x[c], solid.x[c])
    out += flux(faces.y[b], velocity.y[b], solid.y[b]) - flux(faces.y[c], velocity.y[c], solid.y[c])
    out += flux(faces.z[t], velocity.z[t], solid.z[t]) - flux(faces.z[c], velocity.z[c], solid.z[c])
    needed_out[c] = wp.where(inverse[c] > 0.0, spacing * source[c] - out, 0.0)


@wp.kernel
def sum_needed(
    first: int,
    # params
    shape: GridShape,
    count: int,
    parts: int,
    # in
    inverse: wp.array[wp.float32],
    needed: wp.array[wp.float32],
    # out
    part_out: wp.array[wp.vec3d],
):
    """Σ of what is needed, of its square, and of cells, over every `parts`th entry."""
    t = first + wp.tid()
    total = wp.vec3d()
    i = t
    while i < count:
        c = shape.layer + i
        b = wp.float64(needed[c])
        total += wp.vec3d(b, b * b, wp.where(inverse[c] > 0.0, wp.float64(1.0), wp.float64(0.0)))
        i += parts
    part_out[t] = total


@wp.kernel
def take_mean(
    first: int,
    # params
    shape: GridShape,
    # in
    inverse: wp.array[wp.float32],
    numbers: wp.array[wp.float64],
    # out
    residual_out: wp.array[wp.float32],
):
    """What is needed, less its mean, which is 0 where the box is open: what is left of it while the pressure is 0."""
    c = shape.layer + first + wp.tid()
    residual_out[c] = wp.where(inverse[c] > 0.0, residual_out[c] - float(numbers[MEAN]), 0.0)


@wp.kernel
def take_pressure(
    first: int,
    # params
    shape: GridShape,
    # in
    faces: Three,
    inverse: wp.array[wp.float32],
    p: wp.array[wp.float32],
    # out
    residual_out: wp.array[wp.float32],
):
    """What is needed, less what this pressure does."""
    c = shape.layer + first + wp.tid()
    one = inverse[c]
    done = all_faces(shape, c, one, faces) * p[c] - around(shape, c, one, faces, p)
    residual_out[c] = wp.where(one > 0.0, residual_out[c] - done, 0.0)


@wp.kernel
def relax(
    first: int,
    # params
    shape: GridShape,
    colour: int,
    # in
    faces: Three,
    inverse: wp.array[wp.float32],
    needed: wp.array[wp.float32],
    # out
    p_out: wp.array[wp.float32],
):
    """Gauss–Seidel on the cells of one colour: every second entry."""
    c = shape.layer + 2 * (first + wp.tid()) + (colour + shape.layer) % 2
    one = inverse[c]
    if one > 0.0:
        p_out[c] = one * (needed[c] + around(shape, c, one, faces, p_out))


@wp.kernel
def relax_first(
    first: int,
    # params
    shape: GridShape,
    colour: int,
    # in
    inverse: wp.array[wp.float32],
    needed: wp.array[wp.float32],
    # out
    p_out: wp.array[wp.float32],
):
    """The same from 0."""
    c = shape.layer + 2 * (first + wp.tid()) + (colour + shape.layer) % 2
    p_out[c] = inverse[c] * needed[c]


@wp.kernel
def find_residual(
    first: int,
    # params
    shape: GridShape,
    colour: int,
    # in
    faces: Three,
    inverse: wp.array[wp.float32],
    needed: wp.array[wp.float32],
    p: wp.array[wp.float32],
    # out
    residual_out: wp.array[wp.float32],
):
    """Of one colour; that of the other, which was relaxed last, is 0."""
    c = shape.layer + 2 * (first + wp.tid()) + (colour + shape.layer) % 2
    one = inverse[c]
    done = all_faces(shape, c, one, faces) * p[c] - around(shape, c, one, faces, p)
    residual_out[c] = wp.where(one > 0.0, needed[c] - done, 0.0)


@wp.kernel
def gather_residual(
    first: int,
    # params
    fine: GridShape,
    shape: GridShape,
    # in
    residual: wp.array[wp.float32],
    # out
    needed_out: wp.array[wp.float32],
):
    """What the coarse grid is to take away: the sum over its fine cells."""
    c = shape.layer + first + wp.tid()
    k = c // shape.layer
    j = (c - k * shape.layer) // shape.row
    i = c - k * shape.layer - j * shape.row
    if i < 1 or j < 1 or i > shape.nx or j > shape.ny:
        return
    at = wp.where(fine.nz > 1, 2 * k - 1, k) * fine.layer + wp.where(fine.ny > 1, 2 * j - 1, j) * fine.row
    at += wp.where(fine.nx > 1, 2 * i - 1, i)
    total = float(0.0)
    # A half beyond the box is rim, where it is 0.
    for z in range(wp.where(fine.nz > 1, 2, 1)):
        for y in range(wp.where(fine.ny > 1, 2, 1)):
            for x in range(wp.where(fine.nx > 1, 2, 1)):
                total += residual[at + z * fine.layer + y * fine.row + x]
    needed_out[c] = total


@wp.func
def a_quarter(near: float, far: float, face: float, unit: float):
    """Of the way from the middle of a coarse cell to the next one's, where a fine cell lies: so far as the face between
    them is open. Beyond an open side of the box the pressure is 0."""
    return near + 0.25 * face / unit * (far - near)


@wp.func
def coarse_column(c: int, y: int, z: int, shape: GridShape, faces: Three, p: wp.array[wp.float32]):
    """Linear along y and z between a coarse cell and those so many entries further."""
    low = a_quarter(p[c], p[c + y], faces.y[c + wp.max(y, 0)], shape.unit[1])
    if z == 0:
        return low
    up = c + z
    high = a_quarter(p[up], p[up + y], faces.y[up + wp.max(y, 0)], shape.unit[1])
    return a_quarter(low, high, faces.z[c + wp.max(z, 0)], shape.unit[2])


@wp.kernel
def spread_coarse(
    first: int,
    # params
    shape: GridShape,
    coarse: GridShape,
    colour: int,
    # in
    inverse: wp.array[wp.float32],
    coarse_faces: Three,
    coarse_p: wp.array[wp.float32],
    # out
    p_out: wp.array[wp.float32],
):
    """What the coarse grid found, linear between the middles of its cells, is added to the cells of one colour; those
    of the other are relaxed next."""
    c = shape.layer + 2 * (first + wp.tid()) + (colour + shape.layer) % 2
    if inverse[c] <= 0.0:
        return
    k = c // shape.layer
    j = (c - k * shape.layer) // shape.row
    i = c - k * shape.layer - j * shape.row
    # The nearest other coarse cell along each axis: below for odd cells, above for even ones.
    x = wp.where(shape.nx > 1, 1 - 2 * (i % 2), 0)
    y = wp.where(shape.ny > 1, 1 - 2 * (j % 2), 0) * coarse.row
    z = wp.where(shape.nz > 1, 1 - 2 * (k % 2), 0) * coarse.layer
    at = wp.where(shape.nz > 1, (k + 1) // 2, k) * coarse.layer + wp.where(shape.ny > 1, (j + 1) // 2, j) * coarse.row
    at += wp.where(shape.nx > 1, (i + 1) // 2, i)
    value = coarse_column(at, y, z, coarse, coarse_faces, coarse_p)
    beside = coarse_column(at + x, y, z, coarse, coarse_faces, coarse_p)
    p_out[c] = p_out[c] + a_quarter(value, beside, coarse_faces.x[at + wp.max(x, 0)], coarse.unit[0])


@wp.kernel
def apply_matrix(
    first: int,
    # params
    shape: GridShape,
    count: int,
    parts: int,
    # in
    faces: Three,
    inverse: wp.array[wp.float32],
    z: wp.array[wp.float32],
    residual: wp.array[wp.float32],
    moved: wp.array[wp.float32],
    # out
    image_out: wp.array[wp.float32],
    part_out: wp.array[wp.vec3d],
):
    """A z, and its products with the residual, with itself and with the last A p, over every `parts`th entry."""
    t = first + wp.tid()
    total = wp.vec3d()
    i = t
    while i < count:
        c = shape.layer + i
        one = inverse[c]
        image = all_faces(shape, c, one, faces) * z[c] - around(shape, c, one, faces, z)
        image = wp.where(one > 0.0, image, 0.0)
        image_out[c] = image
        exact = wp.float64(image)
        total += exact * wp.vec3d(wp.float64(residual[c]), exact, wp.float64(moved[c]))
        i += parts
    part_out[t] = total


@wp.kernel
def take_direction(
    first: int,
    # params
    shape: GridShape,
    count: int,
    parts: int,
    # in
    numbers: wp.array[wp.float64],
    z: wp.array[wp.float32],
    image: wp.array[wp.float32],
    # out
    direction_out: wp.array[wp.float32],
    moved_out: wp.array[wp.float32],
    p_out: wp.array[wp.float32],
    residual_out: wp.array[wp.float32],
    part_out: wp.array[wp.vec3d],
):
    """The next direction, and the step along it; Σ of what is left squared."""
    t = first + wp.tid()
    alpha = float(numbers[ALPHA])
    beta = float(numbers[BETA])
    total = wp.vec3d()
    i = t
    while i < count:
        c = shape.layer + i
        way = z[c] + beta * direction_out[c]
        moved = image[c] + beta * moved_out[c]
        left = residual_out[c] - alpha * moved
        direction_out[c] = way
        moved_out[c] = moved
        p_out[c] = p_out[c] + alpha * way
        residual_out[c] = left
        total[0] = total[0] + wp.float64(left) * wp.float64(left)
        i += parts
    part_out[t] = total


@wp.kernel
def subtract_gradient(
    first: int,
    # params
    shape: GridShape,
    # in
    faces: Three,
    solid: Three,
    p: wp.array[wp.float32],
    # out
    velocity_out: Three,
):
    """Closed faces have the velocity of what closes them. Faces of the far sides, too."""
    c = shape.layer + first + wp.tid()
    here = p[c]
    velocity_out.x[c] = wp.where(faces.x[c] > 0.0, velocity_out.x[c] - here + p[c - 1], solid.x[c])
    velocity_out.y[c] = wp.where(faces.y[c] > 0.0, velocity_out.y[c] - here + p[c - shape.row], solid.y[c])
    velocity_out.z[c] = wp.where(faces.z[c] > 0.0, velocity_out.z[c] - here + p[c - shape.layer], solid.z[c])
