"""What moves the fluid before pressure does: it carries itself, forces, viscosity. Plain kernels.

    carried by itself     u(x) ← u(x − Δt u)                                          (Stam 1999; Andersson 2.8)
    corrected             û + (u − ũ)/2, û carried forwards, ũ carried back again, within the values around the source
                          of û                                                        (MacCormack; Selle et al. 2008)
    lift                  w += Δt Σ lift · substance
    confinement           u += Δt ε h (N × ω), N = ∇|ω| / |∇|ω||                      (Fedkiw, Stam and Jensen 2001)
    viscosity             (I − νΔt∇²) u' = u by sweeps over two colours               (Andersson 2.10; 3.10 corrected:
                                                                                      (A⁰ + aΣ)/(1 + 6a))

Places are counted in cells of the array that is sampled, and are kept within the box: beyond it nothing is known.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.numbers import SCALE
from viscera.grid.shape import GridShape, Three

wp.set_module_options({"enable_backward": False})


@wp.func
def entry_place(shape: GridShape, c: int):
    """(i, j, k) of an entry."""
    k = c // shape.layer
    j = (c - k * shape.layer) // shape.row
    return wp.vec3i(c - k * shape.layer - j * shape.row, j, k)


@wp.func
def in_cells(shape: GridShape, c: int):
    at = entry_place(shape, c)
    inside = at[0] >= 1 and at[0] <= shape.nx and at[1] >= 1 and at[1] <= shape.ny
    return inside and at[2] >= 1 and at[2] <= shape.nz


@wp.func
def base_and_share(g: float, last: int):
    """The entry below a place along one axis, which may be 1 to `last`, and the share of the one above."""
    kept = wp.clamp(g, 1.0, float(last))
    base = wp.min(int(kept), wp.max(last - 1, 1))
    return wp.vec2(float(base), kept - float(base))


@wp.func
def sample_range(values: wp.array[wp.float32], c: int, up: wp.vec3i, share: wp.vec3):
    """Value between eight entries, c and those one `up` along each axis, and the least and most of them."""
    a = values[c]
    b = values[c + up[0]]
    d = values[c + up[1]]
    e = values[c + up[1] + up[0]]
    f = values[c + up[2]]
    g = values[c + up[2] + up[0]]
    h = values[c + up[2] + up[1]]
    m = values[c + up[2] + up[1] + up[0]]
    low = wp.lerp(wp.lerp(a, b, share[0]), wp.lerp(d, e, share[0]), share[1])
    high = wp.lerp(wp.lerp(f, g, share[0]), wp.lerp(h, m, share[0]), share[1])
    least = wp.min(wp.min(wp.min(a, b), wp.min(d, e)), wp.min(wp.min(f, g), wp.min(h, m)))
    most = wp.max(wp.max(wp.max(a, b), wp.max(d, e)), wp.max(wp.max(f, g), wp.max(h, m)))
    return wp.vec3(wp.lerp(low, high, share[2]), least, most)


@wp.func
def velocity_at(axis: int, shape: GridShape, c: int, velocity: Three):
    """At a face across x, y or z (0, 1, 2), or in the middle of a cell (3) [m/s]: the mean of the faces around."""
    r = shape.row
    t = shape.layer
    if axis == 0:
        up = 0.25 * (velocity.y[c] + velocity.y[c - 1] + velocity.y[c + r] + velocity.y[c + r - 1])
        return wp.vec3(
            velocity.x[c], up, 0.25 * (velocity.z[c] + velocity.z[c - 1] + velocity.z[c + t] + velocity.z[c + t - 1])
        )
    if axis == 1:
        along = 0.25 * (velocity.x[c] + velocity.x[c - r] + velocity.x[c + 1] + velocity.x[c + 1 - r])
        return wp.vec3(
            along, velocity.y[c], 0.25 * (velocity.z[c] + velocity.z[c - r] + velocity.z[c + t] + velocity.z[c + t - r])
        )
    if axis == 2:
        along = 0.25 * (velocity.x[c] + velocity.x[c - t] + velocity.x[c + 1] + velocity.x[c + 1 - t])
        return wp.vec3(
            along, 0.25 * (velocity.y[c] + velocity.y[c - t] + velocity.y[c + r] + velocity.y[c + r - t]), velocity.z[c]
        )
    return 0.5 * wp.vec3(
        velocity.x[c] + velocity.x[c + 1], velocity.y[c] + velocity.y[c + r], velocity.z[c] + velocity.z[c + t]
    )


@wp.func
def last_along(shape: GridShape, axis: int):
    """The last entries of an array of faces, or of cells, along x, y, z."""
    return wp.vec3i(
        shape.nx + wp.where(axis == 0, 1, 0), shape.ny + wp.where(axis == 1, 1, 0), shape.nz + wp.where(axis == 2, 1, 0)
    )


@wp.func
def sampled_from(
    axis: int,
    shape: GridShape,
    c: int,
    way: wp.vec3,
    values: wp.array[wp.float32],
):
    """What `values` has so far from entry c, in cells; with the least and most around."""
    at = entry_place(shape, c)
    last = last_along(shape, axis)
    x = base_and_share(float(at[0]) + way[0], last[0])
    y = base_and_share(float(at[1]) + way[1], last[1])
    z = base_and_share(float(at[2]) + way[2], last[2])
    base = int(z[0]) * shape.layer + int(y[0]) * shape.row + int(x[0])
    # Where there is one entry only, nothing lies above it.
    up = wp.vec3i(1, wp.where(last[1] > 1, shape.row, 0), wp.where(last[2] > 1, shape.layer, 0))
    return sample_range(values, base, up, wp.vec3(x[1], y[1], z[1]))


@wp.func
def is_entry(shape: GridShape, axis: int, c: int):
    """Whether it is a face of the box across that axis, or a cell."""
    at = entry_place(shape, c)
    last = last_along(shape, axis)
    if at[0] < 1 or at[1] < 1 or at[2] < 1:
        return False
    return at[0] <= last[0] and at[1] <= last[1] and at[2] <= last[2]


@wp.kernel
def carry(
    first: int,
    # params
    shape: GridShape,
    axis: int,
    cells_per_speed: float,
    # in
    velocity: Three,
    values: wp.array[wp.float32],
    # out
    carried_out: wp.array[wp.float32],
):
    """Semi-Lagrangian. `cells_per_speed` is Δt/h [s/m]."""
    c = shape.layer + first + wp.tid()
    if is_entry(shape, axis, c):
        way = -cells_per_speed * velocity_at(axis, shape, c, velocity)
        carried_out[c] = sampled_from(axis, shape, c, way, values)[0]


@wp.kernel
def correct(
    first: int,
    # params
    shape: GridShape,
    axis: int,
    cells_per_speed: float,
    # in
    velocity: Three,
    values: wp.array[wp.float32],
    carried: wp.array[wp.float32],
    # out
    corrected_out: wp.array[wp.float32],
):
    """MacCormack's correction of what `carry` gave."""
    c = shape.layer + first + wp.tid()
    if is_entry(shape, axis, c):
        way = cells_per_speed * velocity_at(axis, shape, c, velocity)
        back = sampled_from(axis, shape, c, way, carried)[0]
        there = sampled_from(axis, shape, c, -way, values)
        better = carried[c] + 0.5 * (values[c] - back)
        corrected_out[c] = wp.clamp(better, there[1], there[2])


@wp.kernel
def lift(
    first: int,
    # params
    shape: GridShape,
    place: int,
    # in
    numbers: wp.array[wp.float32],
    value: wp.array[wp.float32],
    # out
    w_out: wp.array[wp.float32],
):
    """`numbers[place]` is the speed that a step gives per value [m/s]. Rims have no value; walls decide for
    themselves."""
    c = shape.layer + first + wp.tid()
    w_out[c] = w_out[c] + 0.5 * numbers[place] * (value[c] + value[c - shape.layer])


@wp.func
def middle_velocity(shape: GridShape, c: int, velocity: Three):
    return velocity_at(3, shape, c, velocity)


@wp.kernel
def find_curl(
    first: int,
    # params
    shape: GridShape,
    # in
    velocity: Three,
    # out
    curl_out: wp.array[wp.vec4],
):
    """ω h in the middle of cells [m/s], and its length."""
    c = shape.layer + first + wp.tid()
    curl = wp.vec3()
    if in_cells(shape, c):
        px = middle_velocity(shape, c + 1, velocity)
        mx = middle_velocity(shape, c - 1, velocity)
        py = middle_velocity(shape, c + shape.row, velocity)
        my = middle_velocity(shape, c - shape.row, velocity)
        curl[2] = 0.5 * (px[1] - mx[1] - py[0] + my[0])
        if shape.nz > 1 and c // shape.layer > 1 and c // shape.layer < shape.nz:
            pz = middle_velocity(shape, c + shape.layer, velocity)
            mz = middle_velocity(shape, c - shape.layer, velocity)
            curl[0] = 0.5 * (py[2] - my[2] - pz[1] + mz[1])
            curl[1] = 0.5 * (pz[0] - mz[0] - px[2] + mx[2])
    curl_out[c] = wp.vec4(curl[0], curl[1], curl[2], wp.length(curl))


@wp.func
def confining(shape: GridShape, c: int, curl: wp.array[wp.vec4]):
    """N × ωh in a cell [m/s]."""
    if not in_cells(shape, c):
        return wp.vec3()
    slope = wp.vec3(curl[c + 1][3] - curl[c - 1][3], curl[c + shape.row][3] - curl[c - shape.row][3], 0.0)
    if shape.nz > 1:
        slope[2] = curl[c + shape.layer][3] - curl[c - shape.layer][3]
    whirl = wp.vec3(curl[c][0], curl[c][1], curl[c][2])
    return wp.cross(slope / wp.max(wp.length(slope), 1.0e-9), whirl)


@wp.kernel
def confine(
    first: int,
    # params
    shape: GridShape,
    # in
    numbers: wp.array[wp.float32],
    curl: wp.array[wp.vec4],
    # out
    velocity_out: Three,
):
    """`numbers[0]` is ε Δt; the curl has its h already."""
    c = shape.layer + first + wp.tid()
    if in_cells(shape, c):
        here = confining(shape, c, curl)
        velocity_out.x[c] = velocity_out.x[c] + 0.5 * numbers[0] * (here[0] + confining(shape, c - 1, curl)[0])
        velocity_out.y[c] = velocity_out.y[c] + 0.5 * numbers[0] * (here[1] + confining(shape, c - shape.row, curl)[1])
        if shape.nz > 1:
            velocity_out.z[c] = velocity_out.z[c] + 0.5 * numbers[0] * (
                here[2] + confining(shape, c - shape.layer, curl)[2]
            )


@wp.kernel
def diffuse(
    first: int,
    # params
    shape: GridShape,
    axis: int,
    colour: int,
    place: int,
    no_slip: int,
    # in
    numbers: wp.array[wp.float32],
    cells: wp.array[wp.float32],
    face_open: wp.array[wp.float32],
    before: wp.array[wp.float32],
    # out
    values_out: wp.array[wp.float32],
):
    """One sweep over one colour. `numbers[place]` is a = νΔt/h². Neighbours that count are faces of the box across this
    axis that are open, with no slip closed ones too. Of substances (axis 3) `face_open` says where there is fluid;
    nothing goes through walls."""
    c = shape.layer + 2 * (first + wp.tid()) + (colour + shape.layer) % 2
    if face_open[c] <= 0.0:
        return
    back = wp.where(axis == 0, 1, wp.where(axis == 1, shape.row, wp.where(axis == 2, shape.layer, 0)))
    count = float(0.0)
    total = float(0.0)
    for n in range(6):
        step = wp.where(n < 2, 1, wp.where(n < 4, shape.row, shape.layer))
        beside = c + wp.where(n % 2 == 0, -step, step)
        inside = cells[beside] > 0.0 or (axis < 3 and cells[beside - back] > 0.0)
        if inside and (face_open[beside] > 0.0 or no_slip != 0):
            count += 1.0
            total += values_out[beside]
    a = numbers[place]
    values_out[c] = (before[c] + a * total) / (1.0 + a * count)


@wp.kernel
def fade(
    first: int,
    # params
    shape: GridShape,
    place: int,
    # in
    numbers: wp.array[wp.float32],
    # out
    values_out: wp.array[wp.float32],
):
    """`numbers[place]` is the share that stays."""
    c = shape.layer + first + wp.tid()
    values_out[c] = values_out[c] * numbers[place]


@wp.kernel
def scale(
    first: int,
    # params
    shape: GridShape,
    # in
    numbers: wp.array[wp.float64],
    # out
    values_out: wp.array[wp.float32],
):
    c = shape.layer + first + wp.tid()
    values_out[c] = values_out[c] * float(numbers[SCALE])
