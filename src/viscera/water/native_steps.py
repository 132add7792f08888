"""What a step of several sizes does besides its loops over neighbours, in C for cpu: three passes over the particles.

`arrange` is `density.sort_particles`, `native.split_places` and `mixed.sort_sizes` in one, `press` is
`mixed.find_pressure` and `native.split_motions`, `advance` is `forces.integrate` and `mixed.keep_levels`: the same
operations in the same order. A Warp thread costs some 20 ns whatever it does, so a thread takes `GROUP` particles, and
passes over the same arrays are one.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from viscera.device import Stage
from viscera.native import fill, on_cpu
from viscera.neighbors import grid as ng
from viscera.neighbors.cells import GridView
from viscera.water import emitter, native
from viscera.water.density import state_pressure
from viscera.water.mixed import KEPT_OF_SIZES, evened, met, settled_pressure, thickness
from viscera.water.native import GROUP
from viscera.water.state import LOST, Fluid, Live

wp.set_module_options({"enable_backward": False})

_GROUP = wp.constant(GROUP)
_LOST = wp.constant(LOST)


@wp.struct
class Kept:
    """Of particles between steps; see `Fluid`."""

    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    tag: wp.array(dtype=wp.int32)
    level: wp.array(dtype=wp.int32)
    carried: wp.array(dtype=wp.vec4)
    fresh: wp.array(dtype=wp.vec2)


@wp.struct
class Sorted:
    """The same in sorted order, and what loops read."""

    position: wp.array(dtype=wp.vec3)
    place: wp.array(dtype=wp.vec4)
    motion: wp.array(dtype=wp.vec4)
    held: wp.array(dtype=wp.vec4)
    tag: wp.array(dtype=wp.int32)
    level: wp.array(dtype=wp.int32)
    carried: wp.array(dtype=wp.vec4)
    fresh: wp.array(dtype=wp.vec2)
    density: wp.array(dtype=float)
    pressure: wp.array(dtype=float)
    rate: wp.array(dtype=wp.vec4)


@wp.struct
class Axes:
    """`Fluid.axes` and those of sizes: one array of floats each."""

    x: wp.array(dtype=float)
    y: wp.array(dtype=float)
    z: wp.array(dtype=float)
    push: wp.array(dtype=float)
    vx: wp.array(dtype=float)
    vy: wp.array(dtype=float)
    vz: wp.array(dtype=float)
    inverse: wp.array(dtype=float)
    inverse_radius: wp.array(dtype=float)
    load: wp.array(dtype=float)
    pull: wp.array(dtype=float)


_ARRANGE = on_cpu(
    fill(
        """
typedef wp::vec_t<4, wp::float32> Four;
const int last = first + $group < count ? first + $group : count;
for (int s = first; s < last; ++s) {
    const int i = original.data[s];
    const auto p = kept.position.data[i], v = kept.velocity.data[i];
    const int level = kept.level.data[i];
    const auto size = table.data[level], young = kept.fresh.data[i];
    const float left = settling > 0.0f ? (young[0] > 1.5f ? young[0] : young[0] - dt / settling) : 0.0f;
    out.tag.data[s] = kept.tag.data[i];
    out.level.data[s] = level;
    out.carried.data[s] = kept.carried.data[i];
    out.fresh.data[s] = wp::vec_t<2, wp::float32>(left > 0.0f ? left : 0.0f, young[1]);
    out.position.data[s] = p;
    out.place.data[s] = Four(p[0], p[1], p[2], size[0]);
    out.motion.data[s] = Four(v[0], v[1], v[2], 0.0f);
    out.held.data[s] = Four(v[0], v[1], v[2], 0.0f);
    axes.x.data[s] = p[0];
    axes.y.data[s] = p[1];
    axes.z.data[s] = p[2];
    axes.vx.data[s] = v[0];
    axes.vy.data[s] = v[1];
    axes.vz.data[s] = v[2];
    axes.inverse_radius.data[s] = size[0];
    axes.load.data[s] = size[1];
    axes.pull.data[s] = size[0] * size[1];
}
""",
        group=GROUP,
    )
)


@wp.func_native(_ARRANGE)
def arrange_group(
    first: int,
    count: int,
    dt: float,
    settling: float,
    table: wp.array(dtype=wp.vec2),
    original: wp.array(dtype=wp.int32),
    kept: Kept,
    out: Sorted,
    axes: Axes,
): ...


@wp.kernel
def arrange(
    first: int,
    # params
    grid: GridView,
    table: wp.array(dtype=wp.vec2),
    settling: float,
    live: wp.array(dtype=Live),
    counts_lost: int,
    # in
    original: wp.array(dtype=wp.int32),
    kept: Kept,
    # out
    out: Sorted,
    axes_out: Axes,
    report_out: wp.array(dtype=wp.int32),
):
    s = (first + wp.tid()) * _GROUP
    count = wp.min(grid.count[0], grid.capacity)
    if s == 0 and counts_lost != 0:
        report_out[_LOST] = count - grid.cell_start[grid.lost]
    arrange_group(s, count, live[0].dt, settling, table, original, kept, out, axes_out)


@wp.kernel
def press(
    first: int,
    # params
    grid: GridView,
    thickening: float,
    evening: wp.array(dtype=wp.vec2),
    live: wp.array(dtype=Live),
    # out
    out: Sorted,
    axes_out: Axes,
):
    start = (first + wp.tid()) * _GROUP
    numbers = live[0]
    for s in range(start, wp.min(start + _GROUP, grid.cell_start[grid.lost])):
        density = evened(evening, out.level[s], out.density[s])
        out.density[s] = density
        inverse = 1.0 / density
        fresh = out.fresh[s]
        p = state_pressure(numbers, density)
        thick = inverse
        if fresh[0] > 0.0:
            fresh = met(fresh, density)
            out.fresh[s] = fresh
            p = settled_pressure(numbers, fresh, density)
            thick = inverse * thickness(fresh, thickening)
        out.pressure[s] = p
        v = out.motion[s]
        out.motion[s] = wp.vec4(v[0], v[1], v[2], thick)
        axes_out.push[s] = p * inverse * inverse
        axes_out.inverse[s] = thick


_ADVANCE = on_cpu(
    fill(
        """
const int last = first + $group < count ? first + $group : count;
for (int s = first; s < last; ++s) {
    const auto a = now.rate.data[s], v = now.held.data[s];
    const auto p = now.position.data[s];
    // Those that are not finite come last; they stay so and keep their tag.
    const float go = s < finite ? dt : 0.0f, own = s < finite ? 1.0f : 0.0f;
    const float vx = own * v[0] + go * a[0], vy = own * v[1] + go * a[1], vz = own * v[2] + go * a[2];
    if (s < finite) {
        kept.position.data[s] = wp::vec_t<3, wp::float32>(p[0] + dt * vx, p[1] + dt * vy, p[2] + dt * vz);
        kept.velocity.data[s] = wp::vec_t<3, wp::float32>(vx, vy, vz);
    } else {
        kept.position.data[s] = p;
        kept.velocity.data[s] = wp::vec_t<3, wp::float32>(0.0f, 0.0f, 0.0f);
    }
    kept.tag.data[s] = now.tag.data[s];
    kept.level.data[s] = now.level.data[s];
    kept.carried.data[s] = now.carried.data[s];
    kept.fresh.data[s] = now.fresh.data[s];
}
// Who comes in later, at the end of the arrays, is of the largest size and does not turn.
for (int s = first > count ? first : count; s < first + $group && s < capacity; ++s) {
    kept.level.data[s] = 0;
    kept.carried.data[s] = wp::vec_t<4, wp::float32>();
    kept.fresh.data[s] = wp::vec_t<2, wp::float32>();
}
""",
        group=GROUP,
    ),
    fused=False,
)


@wp.func_native(_ADVANCE)
def advance_group(first: int, count: int, finite: int, capacity: int, dt: float, now: Sorted, kept: Kept): ...


@wp.kernel
def advance(
    first: int,
    # params
    grid: GridView,
    live: wp.array(dtype=Live),
    # in
    now: Sorted,
    # out
    kept_out: Kept,
    clock_out: wp.array(dtype=wp.float64),
):
    s = (first + wp.tid()) * _GROUP
    if s == 0:
        clock_out[0] = clock_out[0] + wp.float64(live[0].dt)
    count = wp.min(grid.count[0], grid.capacity)
    advance_group(s, count, grid.cell_start[grid.lost], grid.capacity, live[0].dt, now, kept_out)


def sort(stage: Stage, fluid: Fluid) -> None:
    f, e, sizes = fluid, fluid.extra, fluid.params.sizes
    ng.build_order(stage, f.grid_params, f.grid, f.position)
    if "drained" in e:
        emitter.shorten_count(stage, f)
    how = [f.grid.view, e["size_table"], 0.0 if sizes is None else sizes.settling, f.live, int("drained" not in e)]
    out = [_kept(f), _sorted(f), _axes(f), f.report]
    native.launch(stage, arrange, f.capacity, [*how, f.grid.original, *out])


def find_pressure(stage: Stage, fluid: Fluid) -> None:
    f, sizes = fluid, fluid.params.sizes
    how = [f.grid.view, 1.0 if sizes is None else sizes.thickening, f.extra["evening"], f.live]
    native.launch(stage, press, f.capacity, [*how, _sorted(f), _axes(f)])


def move(stage: Stage, fluid: Fluid) -> None:
    f = fluid
    native.launch(stage, advance, f.capacity, [f.grid.view, f.live, _sorted(f), _kept(f), f.clock])


def _kept(fluid: Fluid) -> Any:
    f, view = fluid, Kept()
    view.position, view.velocity, view.tag = f.position, f.velocity, f.tag
    for name in KEPT_OF_SIZES:
        setattr(view, name, f.extra[name])
    return view


def _sorted(fluid: Fluid) -> Any:
    f, view = fluid, Sorted()
    view.position, view.place, view.motion, view.held, view.tag = (
        f.grid.position, f.place, f.motion, f.held, f.sorted_tag,
    )  # fmt: skip
    view.density, view.pressure, view.rate = f.density, f.pressure, f.rate
    for name in KEPT_OF_SIZES:
        setattr(view, name, f.extra[f"sorted_{name}"])
    return view


def _axes(fluid: Fluid) -> Any:
    view = Axes()
    names = ("x", "y", "z", "push", "vx", "vy", "vz", "inverse", "inverse_radius", "load", "pull")
    for name, array in zip(names, (*fluid.axes, *fluid.extra["size_axes"]), strict=True):
        setattr(view, name, array)
    return view
