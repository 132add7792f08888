"""Substances of which none is lost: amounts in whole units, moved by fluxes through faces. Plain kernels.

The flux through a face is that of the cell upstream, sharpened by van Leer's limiter (1974),

    f = ν [q_up + ½ ψ(r) (1 − |ν|)(q_down − q_up)] + D Δt/h² a (q_below − q_above),   ν = Δt/h (a u + (1 − a) s),

no more than the cell upstream has, and cut to whole units: what leaves one cell is what enters the next. Fluxes are
those of fluid and solids together, which have no divergence: an even mixture stays even, and a tool takes along what
it displaces. At more than one cell per step a cell gives all it has, and what is carried lags behind.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.pressure import flux
from viscera.grid.shape import GridShape, Three, ThreeWhole

wp.set_module_options({"enable_backward": False})

GIVEN, TAKEN, LEFT, COUNTERS = 0, 1, 2, 3
"""Of each substance, units so far: by sources, by sinks, through open sides."""


@wp.func
def upstream_flux(before: float, above: float, below: float, beyond: float, courant: float):
    """From `above` to `below` where courant > 0, the other way where not; one more cell on either side."""
    ahead = below - above
    up = wp.where(courant > 0.0, above, below)
    behind = wp.where(courant > 0.0, above - before, beyond - below)
    # van Leer: ψ(r)·ahead = 2 behind·ahead/(behind + ahead) where both have one sign, else 0.
    both = behind * ahead
    slope = wp.where(both > 0.0, 2.0 * both / (behind + ahead), 0.0)
    half = 0.5 * (1.0 - wp.min(wp.abs(courant), 1.0)) * slope
    return courant * (up + wp.where(courant > 0.0, half, -half))


@wp.func
def units_before(shape: GridShape, c: int, step: int, amount: wp.array[wp.int32]):
    """Two cells below; below the lowest layer there is no array."""
    if c < 2 * step:
        return 0.0
    return float(amount[c - 2 * step])


@wp.func
def one_flux(
    shape: GridShape,
    c: int,
    step: int,
    spread: float,
    courant: float,
    box: wp.array[wp.float32],
    amount: wp.array[wp.int32],
):
    """Rims have no units; through walls of the box nothing goes, whatever moves in them."""
    above = float(amount[c - step])
    below = float(amount[c])
    before = units_before(shape, c, step, amount)
    carried = upstream_flux(before, above, below, float(amount[c + step]), courant)
    return box[c] * box[c - step] * (carried + spread * (above - below))


@wp.kernel
def find_fluxes(
    first: int,
    # params
    shape: GridShape,
    place: int,
    # in
    numbers: wp.array[wp.float32],
    faces: Three,
    solid: Three,
    velocity: Three,
    box: wp.array[wp.float32],
    amount: wp.array[wp.int32],
    # out
    fluxes_out: Three,
):
    """Units through the lower faces of each entry. `numbers[place]` is DΔt/h², `numbers[1]` is Δt/h [s/m]."""
    c = shape.layer + first + wp.tid()
    rate = numbers[1]
    spread = numbers[place]
    x = rate * flux(faces.x[c], velocity.x[c], solid.x[c])
    y = rate * flux(faces.y[c], velocity.y[c], solid.y[c])
    z = rate * flux(faces.z[c], velocity.z[c], solid.z[c])
    fluxes_out.x[c] = one_flux(shape, c, 1, spread * faces.x[c], x, box, amount)
    fluxes_out.y[c] = one_flux(shape, c, shape.row, spread * faces.y[c], y, box, amount)
    fluxes_out.z[c] = one_flux(shape, c, shape.layer, spread * faces.z[c], z, box, amount)


@wp.kernel
def find_share(
    first: int,
    # params
    shape: GridShape,
    # in
    fluxes: Three,
    amount: wp.array[wp.int32],
    # out
    share_out: wp.array[wp.float32],
):
    """Of what would leave a cell, the share that it has."""
    c = shape.layer + first + wp.tid()
    leaves = wp.max(fluxes.x[c + 1], 0.0) - wp.min(fluxes.x[c], 0.0)
    leaves += wp.max(fluxes.y[c + shape.row], 0.0) - wp.min(fluxes.y[c], 0.0)
    leaves += wp.max(fluxes.z[c + shape.layer], 0.0) - wp.min(fluxes.z[c], 0.0)
    # A thousandth stays, so that rounding never takes more than there is.
    share_out[c] = wp.min(1.0, 0.999 * float(amount[c]) / wp.max(leaves, 1.0))


@wp.func
def whole(flux: float, above: float, below: float):
    """Cut to whole units, with the share that the cell upstream has."""
    return int(flux * wp.where(flux > 0.0, above, below))


@wp.kernel
def cut_fluxes(
    first: int,
    # params
    shape: GridShape,
    # in
    fluxes: Three,
    share: wp.array[wp.float32],
    # out
    wholes_out: ThreeWhole,
):
    c = shape.layer + first + wp.tid()
    here = share[c]
    wholes_out.x[c] = whole(fluxes.x[c], share[c - 1], here)
    wholes_out.y[c] = whole(fluxes.y[c], share[c - shape.row], here)
    wholes_out.z[c] = whole(fluxes.z[c], share[c - shape.layer], here)


@wp.kernel
def move_units(
    first: int,
    # params
    shape: GridShape,
    per_volume: float,
    # in
    cells: wp.array[wp.float32],
    wholes: ThreeWhole,
    # out
    amount_out: wp.array[wp.int32],
    value_out: wp.array[wp.float32],
):
    """`per_volume` is one unit in a cell's volume [amount/m³]. `cells` is 1 in the box. Rims stay empty: what
    goes there has left."""
    c = shape.layer + first + wp.tid()
    if cells[c] > 0.0:
        comes = wholes.x[c] - wholes.x[c + 1] + wholes.y[c] - wholes.y[c + shape.row]
        comes += wholes.z[c] - wholes.z[c + shape.layer]
        amount_out[c] = amount_out[c] + comes
        value_out[c] = per_volume * float(amount_out[c])


@wp.kernel
def count_left(
    # params
    shape: GridShape,
    counter: int,
    # in
    wholes: ThreeWhole,
    # out
    counters_out: wp.array[wp.int64],
):
    """Units that left through the sides of the box. One thread: the faces are few."""
    total = wp.int64(0)
    for k in range(1, shape.nz + 1):
        for j in range(1, shape.ny + 1):
            c = k * shape.layer + j * shape.row
            total += wp.int64(wholes.x[c + shape.nx + 1]) - wp.int64(wholes.x[c + 1])
        for i in range(1, shape.nx + 1):
            c = k * shape.layer + i
            total += wp.int64(wholes.y[c + (shape.ny + 1) * shape.row]) - wp.int64(wholes.y[c + shape.row])
    for j in range(1, shape.ny + 1):
        for i in range(1, shape.nx + 1):
            c = j * shape.row + i
            total += wp.int64(wholes.z[c + (shape.nz + 1) * shape.layer]) - wp.int64(wholes.z[c + shape.layer])
    counters_out[counter] = counters_out[counter] + total
