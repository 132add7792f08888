"""The loops in C for cpu that move conservative substances: sixteen cells at once, a block of 1024 entries for each
element of a launch.

Same arithmetic as the plain kernels of `dye.py`, up to the last bits of a flux before it is cut to whole units.
"""

from __future__ import annotations

import warp as wp

from viscera.grid.shape import GridShape, Three, ThreeWhole
from viscera.native import fill, on_cpu

wp.set_module_options({"enable_backward": False})

_BLOCK = """
const Place row = shape.row, layer = shape.layer;
const Place from = layer + 1024 * (Place)block, all = layer * ($layers + (Place)shape.nz);
const Place to = from + 1024 < all ? from + 1024 : all;
const V none = FILL(0.0f);
$before
for (Place t = from; t < to; t += 16) {
$each
}
"""


def _loop(layers: int, each: str, before: str = "") -> str:
    """Over layers with cells (1), or over those with faces (2)."""
    return on_cpu(fill(_BLOCK, layers=layers, before=before, each=each))


_FLUXES = _loop(
    2,
    """
one(fluxes.x, faces.x, velocity.x, solid.x, 1, t);
one(fluxes.y, faces.y, velocity.y, solid.y, row, t);
one(fluxes.z, faces.z, velocity.z, solid.z, layer, t);
""",
    before="""
const float rate = numbers.data[1], spread = numbers.data[place];
const auto units = [&](Place t) { return REAL(LOAD_INT(amount.data + t)); };
const auto one = [&](auto& out, auto& a, auto& fluid, auto& s, Place step, Place t) {
    FUSED
    const V share = LOAD(a.data + t);
    const V courant = rate * (share * LOAD(fluid.data + t) + (1.0f - share) * LOAD(s.data + t));
    const V above = units(t - step), below = units(t), beyond = units(t + step);
    V before = none;
    // Below the lowest layer there is no array.
    if (t >= 2 * step) before = units(t - 2 * step);
    else EACH(c) if (t + c >= 2 * step) before[c] = (float)amount.data[t + c - 2 * step];
    const V ahead = below - above;
    const M down = courant > none;
    const V up = down ? above : below, behind = down ? above - before : beyond - below;
    const V both = behind * ahead;
    const V slope = both > none ? 2.0f * both / (behind + ahead) : none;
    const V half = 0.5f * (1.0f - AT_MOST(ABS(courant), 1.0f)) * slope;
    const V carried = courant * (up + (down ? half : -half));
    const V through = carried + spread * share * (above - below);
    STORE(out.data + t, LOAD(box.data + t) * LOAD(box.data + t - step) * through);
};
""",
)

_SHARE = _loop(
    1,
    """
V leaves = AT_LEAST(LOAD(fluxes.x.data + t + 1), 0.0f) - AT_MOST(LOAD(fluxes.x.data + t), 0.0f);
leaves += AT_LEAST(LOAD(fluxes.y.data + t + row), 0.0f) - AT_MOST(LOAD(fluxes.y.data + t), 0.0f);
leaves += AT_LEAST(LOAD(fluxes.z.data + t + layer), 0.0f) - AT_MOST(LOAD(fluxes.z.data + t), 0.0f);
STORE(share.data + t, AT_MOST(0.999f * REAL(LOAD_INT(amount.data + t)) / AT_LEAST(leaves, 1.0f), 1.0f));
""",
)

_CUT = _loop(
    2,
    """
const V here = LOAD(share.data + t);
const auto cut = [&](auto& out, auto& f, Place step) {
    const V through = LOAD(f.data + t);
    const V upstream = through > none ? LOAD(share.data + t - step) : here;
    STORE_INT(out.data + t, __builtin_convertvector(through * upstream, I));
};
cut(wholes.x, fluxes.x, 1);
cut(wholes.y, fluxes.y, row);
cut(wholes.z, fluxes.z, layer);
""",
)

_MOVE = _loop(
    1,
    """
const V inside = LOAD(cells.data + t);
I comes = LOAD_INT(wholes.x.data + t) - LOAD_INT(wholes.x.data + t + 1);
comes += LOAD_INT(wholes.y.data + t) - LOAD_INT(wholes.y.data + t + row);
comes += LOAD_INT(wholes.z.data + t) - LOAD_INT(wholes.z.data + t + layer);
const I now = LOAD_INT(amount.data + t) + (inside > none ? comes : FILL_INT(0));
STORE_INT(amount.data + t, now);
STORE(value.data + t, per_volume * REAL(now));
""",
)

A = wp.array[wp.float32]
N = wp.array[wp.int32]


@wp.func_native(_FLUXES)
def _fluxes(
    block: int,
    shape: GridShape,
    place: int,
    numbers: A,
    faces: Three,
    solid: Three,
    velocity: Three,
    box: A,
    amount: N,
    fluxes: Three,
): ...


@wp.func_native(_SHARE)
def _share(block: int, shape: GridShape, fluxes: Three, amount: N, share: A): ...


@wp.func_native(_CUT)
def _cut(block: int, shape: GridShape, fluxes: Three, share: A, wholes: ThreeWhole): ...


@wp.func_native(_MOVE)
def _move(block: int, shape: GridShape, per_volume: float, cells: A, wholes: ThreeWhole, amount: N, value: A): ...


@wp.kernel
def find_fluxes_blocks(
    first: int,
    shape: GridShape,
    place: int,
    numbers: A,
    faces: Three,
    solid: Three,
    velocity: Three,
    box: A,
    amount: N,
    fluxes_out: Three,
):
    _fluxes(
        first + wp.tid(),
        shape,
        place,
        numbers,
        faces,
        solid,
        velocity,
        box,
        amount,
        fluxes_out,
    )


@wp.kernel
def find_share_blocks(first: int, shape: GridShape, fluxes: Three, amount: N, share_out: A):
    _share(first + wp.tid(), shape, fluxes, amount, share_out)


@wp.kernel
def cut_fluxes_blocks(
    first: int,
    shape: GridShape,
    fluxes: Three,
    share: A,
    wholes_out: ThreeWhole,
):
    _cut(first + wp.tid(), shape, fluxes, share, wholes_out)


@wp.kernel
def move_units_blocks(
    first: int,
    shape: GridShape,
    per_volume: float,
    cells: A,
    wholes: ThreeWhole,
    amount_out: N,
    value_out: A,
):
    _move(first + wp.tid(), shape, per_volume, cells, wholes, amount_out, value_out)
