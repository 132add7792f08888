"""Flat walls as mirrors: what lies behind a basin's wall is the image of what lies before it.

A particle at a wall lacks the part of its kernel that lies behind it. Where walls only count in density and push back,
they are missing along themselves: a layer at the floor pushes its neighbours with less than its pressure, water of
larger particles the more so, and water of two sizes stands at two levels: 2 to 3 mm apart where it is 0.3 m deep and
particles are 4 cm large. With x' and v' the images of x and v in a wall of normal n and speed w,

    x' = x − 2 ((x − wall)·n) n,      v' = v − 2 ((v − w)·n) n
    ρ_i = Σ_j m_j (W(x_i − x_j) + W(x_i − x_j')),      a_i likewise,
    k_i + k_j → k_i + k_j + g·(x_j' − x_i)_n/ρ₀      between particles and images, k = p/ρ²

and in edges and corners the images of images. Density, the push off the wall, pressure and viscosity along it come from
the same sums among particles of any size, so both ends of a pair are pushed along a wall equally, and a lattice half a
spacing from the walls does not notice them. The last line continues hydrostatic pressure into the wall: there an image
lies deeper than its particle; the mean of both ends' differences keeps the pair equal. Walls are smooth.

An image of j at the distance of i is j at the distance of i's own image, so the sums go over i's neighbours from its
image, and what is along n is turned round afterwards. Nobody is nearer to an image than to its particle: the blocks
that density has noted hold all of them (neighbors/blocks.py).

Ghost particles of this kind: Colagrossi and Landrini 2003, doi:10.1016/S0021-9991(03)00324-3. Differs in that images
are never stored, and in hydrostatic pressure. Pillars and balls are not mirrors: see curved_share.py.
"""

# ruff: noqa: PLR0913 (a kernel names each array)

from __future__ import annotations

import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.native import fill, on_cpu
from viscera.neighbors.blocks import BLOCKS, CELL, CLOSE_BLOCKS, open_hits
from viscera.neighbors.cells import GridView, cell_of, row_range, sorted_count
from viscera.neighbors.grid import LANES
from viscera.water import native
from viscera.water.basin import Basin
from viscera.water.native import GROUP
from viscera.water.periodic import front
from viscera.water.sizes import size_table
from viscera.water.smoothing import Smoothing, diffusion, make_smoothing, slope, weight
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

_GROUP = wp.constant(GROUP)


@wp.struct
class Planes:
    """Walls of a box, as kernels read them."""

    lower: wp.vec3
    upper: wp.vec3
    widest: float
    """Radius of the largest size's kernel [m]."""
    nearest: float
    """How near to a wall any particle comes [m]."""


@wp.struct
class Mirrored:
    """A particle's own images: where each axis has it, and along which axes a wall is near."""

    place: wp.vec3
    velocity: wp.vec3
    axes: int
    """A bit for each axis."""


@wp.func
def mirrored(planes: Planes, wall: wp.vec2, x: wp.vec3, v: wp.vec3, own: float) -> Mirrored:
    """Of a particle whose kernel has the radius 1/`own`. No pair is longer than the mean of its radius and the widest;
    `wall`: how far inside the upper end of x the moving wall stands, and its speed."""
    reach = wp.sqrt(planes.widest / own) - planes.nearest
    image = Mirrored()
    image.place = x
    image.velocity = v
    for axis in range(3):
        low = planes.lower[axis]
        high = planes.upper[axis]
        speed = float(0.0)
        if axis == 0:
            high -= wall[0]
        plane = low
        if x[axis] - low > high - x[axis]:
            plane = high
            if axis == 0:
                speed = wall[1]
        if wp.abs(x[axis] - plane) < reach:
            image.place[axis] = 2.0 * plane - x[axis]
            image.velocity[axis] = 2.0 * speed - v[axis]
            image.axes += wp.int32(1) << axis
    return image


@wp.func
def chosen(mask: int, image: wp.vec3, own: wp.vec3) -> wp.vec3:
    """The image along the axes of a mask, the particle itself along the others."""
    x = own
    for axis in range(3):
        if ((mask >> axis) & 1) == 1:
            x[axis] = image[axis]
    return x


@wp.func
def turned(mask: int, a: wp.vec3) -> wp.vec3:
    return chosen(mask, -a, a)


@wp.func
def size_at(level: wp.array(dtype=wp.int32), table: wp.array(dtype=wp.vec2), s: int) -> wp.vec2:
    """u and f of a particle (sizes.py)."""
    mine = wp.int32(0)
    if level.shape[0] > 0:
        mine = level[s]
    return table[mine]


@wp.kernel
def add_density(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    planes: Planes,
    table: wp.array(dtype=wp.vec2),
    # in
    wall: wp.array(dtype=wp.vec2),
    level: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    # out
    density_out: wp.array(dtype=float),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = position[s]
    own = size_at(level, table, s)[0]
    image = mirrored(planes, wall[0], here, wp.vec3(0.0, 0.0, 0.0), own)
    cell = cell_of(grid, here)
    total = float(0.0)
    mask = image.axes
    while mask > 0:
        there = chosen(mask, image.place, here)
        for row in range(grid.rows):
            begin, end = row_range(grid, cell, row)
            for t in range(begin, end):
                size = size_at(level, table, t)
                offset = there - position[t]
                total += size[1] * weight(unit, wp.dot(offset, offset) * (own * size[0]))
        mask = (mask - 1) & image.axes
    density_out[s] = density_out[s] + own * wp.sqrt(own) * total


@wp.kernel
def add_forces(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    planes: Planes,
    table: wp.array(dtype=wp.vec2),
    live: wp.array(dtype=Live),
    # in
    wall: wp.array(dtype=wp.vec2),
    level: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    motion: wp.array(dtype=wp.vec4),
    density: wp.array(dtype=float),
    pressure: wp.array(dtype=float),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= sorted_count(grid):
        return
    here = position[s]
    moving = motion[s]
    own = size_at(level, table, s)[0]
    own_push = pressure[s] / (density[s] * density[s])
    image = mirrored(planes, wall[0], here, front(moving), own)
    cell = cell_of(grid, here)
    total = wp.vec3(0.0, 0.0, 0.0)
    mask = image.axes
    while mask > 0:
        there = chosen(mask, image.place, here)
        v = chosen(mask, image.velocity, front(moving))
        down = chosen(mask, live[0].gravity, wp.vec3(0.0, 0.0, 0.0)) / live[0].rest_density
        pull = wp.vec3(0.0, 0.0, 0.0)
        for row in range(grid.rows):
            begin, end = row_range(grid, cell, row)
            for t in range(begin, end):
                size = size_at(level, table, t)
                offset = there - position[t]
                q2 = wp.dot(offset, offset) * (own * size[0])
                if q2 < 1.0:
                    q = wp.sqrt(q2)
                    steep = slope(unit, q)
                    push = own_push + pressure[t] / (density[t] * density[t]) + wp.dot(down, offset)
                    drag = live[0].viscosity * (moving[3] * motion[t][3]) * diffusion(unit, q, steep)
                    pull -= (size[0] * size[1]) * (push * steep * offset + drag * (v - front(motion[t])))
        total += turned(mask, pull)
        mask = (mask - 1) & image.axes
    total *= own * own * wp.sqrt(own)
    rate_out[s] = rate_out[s] + wp.vec4(total[0], total[1], total[2], 0.0)


_LOOP = """
const float nearest = 1.0e-6f;
const int last = first + $group < grid.cell_start.data[grid.lost] ? first + $group : grid.cell_start.data[grid.lost];
$cell
$blocks
for (int s = first; s < last; ++s) {
    const float hx = x.data[s], hy = y.data[s], hz = z.data[s], own = inverse_radius.data[s];
    const float reach = ROOT1(planes.widest / own) - planes.nearest;
    const float right = planes.upper[0] - wall[0];
    const float px = hx - planes.lower[0] > right - hx ? right : planes.lower[0];
    const float py = hy - planes.lower[1] > planes.upper[1] - hy ? planes.upper[1] : planes.lower[1];
    const float pz = hz - planes.lower[2] > planes.upper[2] - hz ? planes.upper[2] : planes.lower[2];
    const int axes = (__builtin_fabsf(hx - px) < reach) + 2 * (__builtin_fabsf(hy - py) < reach)
                   + 4 * (__builtin_fabsf(hz - pz) < reach);
    if (axes == 0) continue;
    const int cx = CELL((hx - grid.lower[0]) * grid.cells_per_length, grid.cells_x);
    const int cy = CELL((hy - grid.lower[1]) * grid.cells_per_length, grid.cells_y);
    const int cz = CELL((hz - grid.lower[2]) * grid.cells_per_length, grid.cells_z);
    $start
    for (int mask = axes; mask > 0; mask = (mask - 1) & axes) {
        const float qx = mask & 1 ? 2.0f * px - hx : hx, qy = mask & 2 ? 2.0f * py - hy : hy;
        const float qz = mask & 4 ? 2.0f * pz - hz : hz;
        $image
        $open
            const V dx = qx - LOAD(x.data + t), dy = qy - LOAD(y.data + t), dz = qz - LOAD(z.data + t);
            const V r2 = (dx * dx + dy * dy + dz * dz) * (own * LOAD(inverse_radius.data + t));
            const M inside = (r2 < 1.0f) & (PLACES(t) < end);
            $body
        $close
        $turn
    }
    $end
}
"""


def _loop(start: str, image: str, body: str, turn: str, end: str) -> str:
    text = fill(
        _LOOP, group=GROUP, cell=CELL, blocks=BLOCKS, open=open_hits("hits.data[s]"), close=CLOSE_BLOCKS,
        start=start, image=image, body=body, turn=turn, end=end,
    )  # fmt: skip
    return on_cpu(text, fused=False)


_DENSITY = _loop(
    "V total = 0.0f;",
    "",
    """
            if (!ANY(inside)) continue;
            V w;
            if (smoothing.spline > 0.0f) {
                const V q = ROOT(r2);
                const V a = 1.0f - q, c = AT_LEAST(0.5f - q, 0.0f);
                w = a * a * a - 4.0f * (c * c * c);
            } else {
                const V a = 1.0f - r2;
                w = a * a * a;
            }
            total += inside ? w * LOAD(load.data + t) : (V)0.0f;
""",
    "",
    """
    const float scale = smoothing.spline > 0.0f ? smoothing.spline : smoothing.poly6;
    density.data[s] += own * ROOT1(own) * scale * SUM_IN_ORDER(total);
""",
)

_FORCE = _loop(
    """
    float sx = 0.0f, sy = 0.0f, sz = 0.0f;
    const float own_push = push.data[s], own_inverse = inverse.data[s];
    const float gx = live.gravity[0] / live.rest_density, gy = live.gravity[1] / live.rest_density;
    const float gz = live.gravity[2] / live.rest_density;
    const float speed = px == right ? wall[1] : 0.0f;
""",
    """
        V fx = 0.0f, fy = 0.0f, fz = 0.0f;
        const float ux = mask & 1 ? 2.0f * speed - vx.data[s] : vx.data[s];
        const float uy = mask & 2 ? -vy.data[s] : vy.data[s], uz = mask & 4 ? -vz.data[s] : vz.data[s];
        const float bx = mask & 1 ? gx : 0.0f, by = mask & 2 ? gy : 0.0f, bz = mask & 4 ? gz : 0.0f;
""",
    """
            if (!ANY(inside)) continue;
            const V q = ROOT(r2);
            const V a = 1.0f - q, c = AT_LEAST(0.5f - q, 0.0f);
            const V steep = smoothing.gradient * (a * a - smoothing.kappa * (c * c)) / AT_LEAST(q, nearest);
            const V share = inside ? LOAD(pull.data + t) : (V)0.0f;
            const V press = (own_push + LOAD(push.data + t) + bx * dx + by * dy + bz * dz) * steep * share;
            const V drag = live.viscosity * (own_inverse * LOAD(inverse.data + t))
                         * (smoothing.laplacian * a + smoothing.morris * steep) * share;
            fx -= press * dx + drag * (ux - LOAD(vx.data + t));
            fy -= press * dy + drag * (uy - LOAD(vy.data + t));
            fz -= press * dz + drag * (uz - LOAD(vz.data + t));
""",
    """
        sx += mask & 1 ? -SUM_IN_ORDER(fx) : SUM_IN_ORDER(fx);
        sy += mask & 2 ? -SUM_IN_ORDER(fy) : SUM_IN_ORDER(fy);
        sz += mask & 4 ? -SUM_IN_ORDER(fz) : SUM_IN_ORDER(fz);
""",
    """
    const float k = own * own * ROOT1(own);
    const auto a = rate.data[s];
    rate.data[s] = wp::vec_t<4, wp::float32>(a[0] + k * sx, a[1] + k * sy, a[2] + k * sz, a[3]);
""",
)


@wp.func_native(_DENSITY)
def densities(
    grid: GridView,
    smoothing: Smoothing,
    planes: Planes,
    first: int,
    wall: wp.vec2,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    load: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    density: wp.array(dtype=float),
): ...


@wp.func_native(_FORCE)
def forces(
    grid: GridView,
    smoothing: Smoothing,
    planes: Planes,
    live: Live,
    first: int,
    wall: wp.vec2,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    pull: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    rate: wp.array(dtype=wp.vec4),
): ...


@wp.kernel
def add_density_natively(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    planes: Planes,
    # in
    wall: wp.array(dtype=wp.vec2),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    load: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    density_out: wp.array(dtype=float),
):
    s = (first + wp.tid()) * _GROUP
    densities(grid, unit, planes, s, wall[0], x, y, z, inverse_radius, load, hits, density_out)


@wp.kernel
def add_forces_natively(
    first: int,
    # params
    grid: GridView,
    unit: Smoothing,
    planes: Planes,
    live: wp.array(dtype=Live),
    # in
    wall: wp.array(dtype=wp.vec2),
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    z: wp.array(dtype=float),
    push: wp.array(dtype=float),
    vx: wp.array(dtype=float),
    vy: wp.array(dtype=float),
    vz: wp.array(dtype=float),
    inverse: wp.array(dtype=float),
    inverse_radius: wp.array(dtype=float),
    pull: wp.array(dtype=float),
    hits: wp.array(dtype=wp.uint64),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = (first + wp.tid()) * _GROUP
    around = inverse_radius
    forces(
        grid, unit, planes, live[0], s, wall[0], x, y, z, push, vx, vy, vz, inverse, around, pull, hits, rate_out
    )  # fmt: skip


class Mirrors:
    """One of a fluid's `boundaries`, beside the basin whose walls they are."""

    adds_density = True
    adds_force = True

    def __init__(self, fluid: Fluid, basin: Basin) -> None:
        p, device = fluid.params, fluid.device.warp
        if not p.compressible or p.density != "summation" or p.alpha + p.beta > 0.0:
            raise InputError(
                "mirrors are for an equation of state, summed density and viscosity without artificial pressure.",
                "Choose equation='gas' or 'tait', density='summation' and alpha=beta=0, or leave them out.",
            )
        self.wall = basin.wall
        self.planes = Planes()
        self.planes.lower, self.planes.upper = basin.lower, basin.upper
        self.planes.widest, self.planes.nearest = p.radius, float(basin.radii.numpy().min())
        self._unit = make_smoothing(p.kernels, 1.0, p.dimension)
        table = size_table(p)
        self.table = wp.array(table, dtype=wp.vec2, device=device)
        self.level = fluid.extra.get("sorted_level", wp.zeros(0, dtype=wp.int32, device=device))
        self._size_axes = fluid.extra.get("size_axes", ())
        if fluid.native and p.sizes is None:
            inverse, load = (float(one) for one in table[0])
            alike = (inverse, load, inverse * load)
            self._size_axes = tuple(wp.full(fluid.capacity + LANES, one, dtype=float, device=device) for one in alike)

    def before_step(self, stage: Stage, fluid: Fluid) -> None: ...

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        f, n = fluid, fluid.capacity
        how = [f.grid.view, self._unit, self.planes]
        if f.native:
            inverse, load, _ = self._size_axes
            known = [self.wall.array, *f.axes[:3], inverse, load, f.extra["hits"]]
            native.launch(stage, add_density_natively, n, [*how, *known, f.density])
        else:
            known = [self.table, self.wall.array, self.level, f.grid.position]
            stage.launch(add_density, n, [*how, *known, f.density])

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        f, n = fluid, fluid.capacity
        how = [f.grid.view, self._unit, self.planes]
        if f.native:
            inverse, _, pull = self._size_axes
            known = [f.live, self.wall.array, *f.axes, inverse, pull, f.extra["hits"]]
            native.launch(stage, add_forces_natively, n, [*how, *known, f.rate])
        else:
            known = [self.wall.array, self.level, f.grid.position, f.motion, f.density, f.pressure]
            stage.launch(add_forces, n, [*how, self.table, f.live, *known, f.rate])

    def contact(self, stage: Stage, fluid: Fluid) -> None: ...
