"""The blood film: viscoelastic particles on the surface of organs (Clavet et al. 2005; Kvick §3.4–3.8 and §6.2).

    film = make_film(skin, FilmParams(), capacity=20_000)
    program = device.record(lambda stage: step_film(stage, film), work=film.work)
    spawn(film, [(0.02, 0.0, 0.05)], "blood"); program.run()

A step, in the order of the document's nine (§3.5); equations are in `film.pairs`, `film.kernels` and `film.springs`:

    take in what waits and sort · gravity · viscosity · advance · springs and their plasticity · double density
    relaxation · collisions (rims, incisions, obstacles) · velocity from displacement with traction and clamp

Particles lie on triangles and walk over edges (`surface_walk`); neighbours are found in space, and those back to back
on two sides of a thin body are left out (`film.pairs.touch`). On a `Sheet` the same step runs in the document's texture
space.

Differs from the source: symmetric pair forces by default; neighbours are searched once per step, at its beginning, in
cells that are wider than the radius by twice the farthest move before the relaxation, so none is missed (the source
misses some); a particle moves at most one radius per step; particles outside an open sheet go on as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.blood.film import buckets, forces, kernels, native, native_mixing, native_moves, order, springs
from viscera.blood.film import mixing as mixtures
from viscera.blood.film.kernels import Home, Waiting
from viscera.blood.film.obstacles import Sheeted
from viscera.blood.film.pairs import Carried, FilmView, Rates, Sorted
from viscera.blood.film.params import FLUIDS, FilmParams, Sheet
from viscera.blood.film.state import FilmState, allocate_state
from viscera.blood.film.surface import FilmSurface, make_surface
from viscera.blood.film.walk import WalkView
from viscera.device import BLOCK, Device, Stage
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.neighbors import grid as ng
from viscera.skin import Skin

QUEUE = 4096
"""Particles that can wait to be taken in, unless it is said otherwise."""

MOST_PARTICLES = 2**26

WORK_PER_PARTICLE = 8
"""A particle's step is about eight simple elements' worth of work, for the choice of how many cores take part."""

CHUNK = 64
"""Particles per thread on cpu; a part of `device.BLOCK`."""

TEAMS = ((16_384, 16), (131_072, 2), (MOST_PARTICLES, 1))
"""Up to so many particles, so many threads share one on cuda: small films are bound by latency, large ones by work."""

FIXED = ("radius", "one_sided", "search", "bucket_size", "springs", "spring_capacity")
"""Parameters that `set_film` cannot change."""


@dataclass(eq=False)
class Film:
    """Made by `make_film`. What it holds is in `state`; all else is fixed or scratch. n is the capacity."""

    params: FilmParams
    surface: FilmSurface | None
    """Where it lies; None on a sheet."""
    sheet: Sheet | None
    state: FilmState
    device: Device
    view: Any
    """`FilmView`: numbers that are frozen when a program is recorded."""
    rates: Any
    """`Rates`, shape (1,): numbers that `set_film` may change."""
    native: bool
    """Whether the neighbour loops are the C ones; False runs their plain twins."""
    fused: bool
    """Whether taking in and sorting are those of `film.order`: on cuda, without springs."""
    mixes: bool
    """Whether fluids can mix or clot."""
    grid_params: ng.GridParams
    grid: ng.GridState
    search: Any
    """`Search`: buckets or grid, as plain kernels look for neighbours; shapes are in `film.buckets`."""
    home: Any
    """`Home`: the arrays of `state`, shape (n,) each."""
    waiting: Any
    """`Waiting`: the arrays of its queue, shape (queue,) each."""
    walk: Any
    """`WalkView` of the surface; empty on a sheet."""
    maps: Any
    """`Sheeted`: obstacles per texel, float32, and a sheet's tangents, vec3."""
    sorted: Any
    """`Sorted`: particles in the order of their cells during a step, shape (n + LANES,) each."""
    cargo: Any
    """`Carried`: what a sorted particle carries along, shape (n + LANES,) each."""
    springs: Any
    """`Springs` of each particle by its place in `state`: `spring_capacity` times n entries; empty without springs."""
    springs_sorted: Any
    """The same `Springs` in sorted order during a step."""
    staged: Any
    """Particles and those taken in with them, int32, shape (1,)."""
    key: Any
    """Positions to sort by, NaN for particles that go, shape (n,): vec3 [m] on a surface, vec2 [texel] on a sheet."""
    no_key: Any
    """An empty array of the other kind, vec2 or vec3, shape (0,)."""
    flag: Any
    """1 for particles that stay, int32, shape (n,); empty with the grid."""
    upto: Any
    """How many stay up to each, int32, shape (n,); empty with the grid."""

    @property
    def sixteens(self) -> bool:
        """Whether particles move on by the loop in C: on cpu, on a surface."""
        return self.native and self.surface is not None and not self.device.is_cuda

    @property
    def work(self) -> int:
        """For `Device.record`."""
        return WORK_PER_PARTICLE * self.state.capacity * (2 if self.mixes else 1)


def make_film(
    where: FilmSurface | Skin | TriangleMesh | Sheet,
    params: FilmParams | None = None,
    capacity: int = 16_384,
    device: Device | None = None,
    *,
    queue: int = QUEUE,
    tangents: Skin | None = None,
    obstacles: bool = True,
    native: bool | None = None,
) -> Film:
    """A film without particles on an organ, several (`make_surface`), or a sheet.

    `tangents` gives a sheet the slopes of a skin of its size; `obstacles=False` leaves the sheet's obstacle map out.
    `native` chooses between the loops in C, which know the grid search alone, and their plain twins; without it the
    search decides.
    """
    params = params or FilmParams()
    capacity, queue = _room("capacity", capacity), _room("queue", queue)
    sheet = where if isinstance(where, Sheet) else None
    surface = None if isinstance(where, Sheet) else where
    if surface is not None and not isinstance(surface, FilmSurface):
        surface = make_surface(surface, device)
    device = surface.device if surface is not None else device
    if device is None:
        raise InputError("a sheet needs a device.", "Give device=open_device().")
    state = allocate_state(capacity, queue, device)
    view = _view(params, sheet, capacity, device)
    partners = params.spring_capacity if params.springs else 0
    integers, key_type = _integers(device), wp.vec2 if surface is None else wp.vec3
    staged = integers(1)
    grid_params, grid = _grid(params, surface, sheet, capacity, device, staged)
    film = Film(
        params=params,
        surface=surface,
        sheet=sheet,
        state=state,
        device=device,
        view=view,
        rates=wp.zeros(1, dtype=Rates, device=device.warp),
        native=_natively(params, native),
        fused=device.is_cuda and params.search == "grid" and not params.springs,
        mixes=len(params.fluids) > 1 or any(fluid.clots for fluid in params.fluids),
        grid_params=grid_params,
        grid=grid,
        search=buckets.make_search(params.search, capacity, grid.view, params.bucket_size, device),
        home=_fill(Home(), state),
        waiting=_fill(Waiting(), state.queue),
        walk=surface.view if surface is not None else _empty(WalkView(), device, 0),
        maps=_maps(surface, sheet, tangents, obstacles, device),
        sorted=_empty(Sorted(), device, capacity + ng.LANES),
        cargo=_empty(Carried(), device, capacity + ng.LANES),
        springs=_springs(partners, capacity, device),
        springs_sorted=_springs(partners, capacity, device),
        staged=staged,
        key=wp.zeros(capacity, dtype=key_type, device=device.warp),
        no_key=wp.zeros(0, dtype=wp.vec3 if surface is None else wp.vec2, device=device.warp),
        flag=integers(0 if params.search == "grid" else capacity),
        upto=integers(0 if params.search == "grid" else capacity),
    )
    film.sorted.count = integers(1)
    if surface is None:
        state.normal.fill_(wp.vec3(0.0, 0.0, 1.0))
    set_film(film, params)
    return film


def set_film(film: Film, params: FilmParams) -> None:
    """Changes parameters while programs run, all but those in `FIXED` and a larger max_speed·dt."""
    for name in FIXED:
        if getattr(params, name) != getattr(film.params, name):
            raise InputError(f"{name} = {getattr(params, name)} cannot change.", "Make a new film.")
    if len(params.fluids) != len(film.params.fluids):
        raise InputError(f"{len(params.fluids)} fluids instead of {len(film.params.fluids)}.", "Make a new film.")
    if params.reach > film.view.reach * (1.0 + 1e-6):
        raise InputError(
            f"max_speed·dt = {params.reach:g} m is more than the {film.view.reach:g} m the film was made for.",
            "Lower one of them, or make a new film.",
        )
    if params.hysteresis > 0.0 and film.surface is None:
        raise InputError(
            f"hysteresis = {params.hysteresis} on a sheet, which has no metres.", "Leave it at 0, or take a surface."
        )
    film.params = params
    wp.copy(film.rates, wp.array([_rates(params)], dtype=Rates, device=film.device.warp))


def step_film(stage: Stage, film: Film, mixing: int = 1) -> None:
    """One step of `params.dt`. Mixing and clotting are slow beside the flow: with `mixing` 4 this step does four steps'
    worth of them, with 0 none."""
    view, s = film.view, film.sorted
    if film.fused:
        order.take_in_order(stage, film)
    else:
        _take_in(stage, film)
    if film.params.search != "grid":
        buckets.build_buckets(stage, view, s, film.search, film.state.status)
    relax_film(stage, film)
    mixes = mixing if film.mixes else 0
    if mixes:
        mix_film(stage, film, mixes)
    move_film(stage, film, mixes)


def _take_in(stage: Stage, film: Film) -> None:
    """What waits comes in, what goes is counted, the rest is sorted and arranged; `film.order` does it on cuda."""
    view, s = film.view, film.sorted
    keys = [film.key, film.no_key] if film.surface is None else [film.no_key, film.key]
    _chunks(stage, film, kernels.take_in, [view, film.walk, film.waiting, film.home, film.staged, *keys])
    original, lives, at = _sort(stage, film)
    args = [film.rates, film.walk, film.maps, original, lives, at, film.staged, film.waiting, film.home, s, film.cargo]
    _chunks(stage, film, kernels.arrange, [view, *args])


def relax_film(stage: Stage, film: Film) -> None:
    """The neighbour loops of a step, on sorted particles."""
    view, s = film.view, film.sorted
    viscosity, density, displacement = _loops(film)
    near = film.grid.view if film.native else film.search
    loop = [view, near, film.rates, s]
    team = view.team if film.native else 1
    _chunks(stage, film, viscosity, loop, team)
    if film.params.springs:
        pull_springs(stage, film)
    _chunks(stage, film, density, loop, team)
    _chunks(stage, film, displacement, loop, team)


def mix_film(stage: Stage, film: Film, steps: int) -> None:
    """What sorted particles exchange in so many steps, into `film.cargo`."""
    view, out = film.view, [film.rates, film.sorted, film.cargo]
    if film.native:
        mix = native_mixing.mix_2d if film.surface is None else native_mixing.mix_3d
        _chunks(stage, film, mix, [view, steps, film.grid.view, *out], view.team)
    else:
        stage.launch(mixtures.mix, view.capacity, [view, steps, film.search, *out])


def move_film(stage: Stage, film: Film, mixes: int) -> None:
    """Sorted particles go where the loops sent them, and back into `film.state`; with `mixes`, as mixed."""
    move = native_moves.move_on_triangles if film.sixteens else kernels.move_on
    args = [film.rates, film.walk, film.maps, film.sorted, film.cargo, film.home]
    _chunks(stage, film, move, [film.view, mixes, *args])


def pull_springs(stage: Stage, film: Film) -> None:
    """Steps five and six: springs appear, yield and pull."""
    n, view, s, rates = film.view.capacity, film.view, film.sorted, film.rates
    home, ordered = film.springs, film.springs_sorted
    stage.launch(springs.arrange_springs, n, [view, film.grid.original, film.grid.slot, s, home, ordered])
    stage.launch(springs.link_springs, n, [view, film.search, rates, s, ordered, film.state.status])
    stage.launch(springs.pull_springs, n, [view, rates, ordered, s, home])
    stage.launch(springs.follow_springs, n, [s])


def _chunks(stage: Stage, film: Film, kernel: Any, args: list[Any], team: int = 1) -> None:
    """Launches a kernel whose threads take `FilmView.chunk` particles each, or of which `team` share one."""
    chunk = film.view.chunk
    stage.launch(kernel, team * -(-film.view.capacity // chunk), args, block=BLOCK // chunk)


def _loops(film: Film) -> tuple[Any, Any, Any]:
    if not film.native:
        return forces.viscosity, forces.density, forces.displacement
    if film.surface is None:
        return native.viscosity_2d, native.density_2d, native.displacement_2d
    return native.viscosity_3d, native.density_3d, native.displacement_3d


def _sort(stage: Stage, film: Film) -> tuple[Any, Any, int]:
    """Who stands where: sorted place → index, and where the number of particles that stay is found."""
    grid = film.grid
    if film.params.search == "grid":
        build = ng.build if film.params.springs else ng.build_order  # springs look up slots
        build(stage, film.grid_params, grid, film.key)
        return grid.original, grid.cell_start, grid.view.lost
    n = film.view.capacity
    stage.launch(buckets.mark_staying, n, [n, film.staged, film.state.fate, film.flag])
    stage.once(lambda: wp.utils.array_scan(film.flag, film.upto, inclusive=True))
    stage.launch(buckets.close_ranks, n, [n, film.staged, film.flag, film.upto, grid.original, grid.slot])
    return grid.original, film.upto, n - 1


# --- making ------------------------------------------------------------------------------------------------------


def _room(name: str, size: Any) -> int:
    """A number of particles, checked."""
    if not (isinstance(size, (int, float, np.number)) and 1 <= size <= MOST_PARTICLES and size == int(size)):
        raise InputError(
            f"{name} = {size} is not possible.", f"Give a whole number of particles, 1 to {MOST_PARTICLES}."
        )
    return int(size)


def _natively(params: FilmParams, wanted: bool | None) -> bool:
    possible = params.search == "grid"
    if wanted and not possible:
        raise InputError(f"loops in C do not know the search {params.search!r}.", 'Leave native out, or search "grid".')
    return possible if wanted is None else wanted


def _view(params: FilmParams, sheet: Sheet | None, capacity: int, device: Device) -> Any:
    view: Any = FilmView()
    view.capacity = capacity
    view.chunk = 1 if device.is_cuda else CHUNK
    view.team = next(team for most, team in TEAMS if capacity <= most) if device.is_cuda else 1
    view.radius = params.radius
    view.reach = params.reach
    view.on_surface = int(sheet is None)
    view.half, view.own, view.other = (1.0, 1.0, 0.0) if params.one_sided else (0.5, 0.5, 0.5)
    view.atomic = int(device.is_cuda)
    view.wrap, view.images, view.columns, view.rows = 0, 1, 1, 1
    if sheet is not None:
        view.columns, view.rows = sheet.width, sheet.height
        view.width, view.height = float(sheet.width), float(sheet.height)
        view.wrap, view.images = int(sheet.wrap), 9 if sheet.wrap else 1
        if sheet.wrap and min(sheet.width, sheet.height) <= 2.0 * (params.radius + 2.0 * params.reach):
            raise InputError(
                f"a sheet of {sheet.width} × {sheet.height} wraps too soon for radius {params.radius:g}.",
                "Make it larger, or the radius smaller: a particle must not meet another one twice.",
            )
    return view


def _grid(
    params: FilmParams, surface: FilmSurface | None, sheet: Sheet | None, capacity: int, device: Device, staged: Any
) -> tuple[ng.GridParams, ng.GridState]:
    wide = params.radius + 2.0 * params.reach
    if sheet is not None:
        corner = (float(sheet.width), float(sheet.height))
        return ng.make_grid(capacity, (0.0, 0.0), corner, wide, 2, device, count=staged)
    assert surface is not None
    return ng.make_grid(capacity, surface.lower, surface.upper, wide, 3, device, count=staged)


def _rates(params: FilmParams) -> Any:
    rates: Any = Rates()
    for name in (
        "dt",
        "max_speed",
        "pooling",
        "lifetime",
        "separation",
        "dilution",
        "clot_rate",
        "clot_speed",
        "clot_hold",
        "line_hold",
    ):
        setattr(rates, name, getattr(params, name))
    for name in ("dissolve_rate", "spring_stiffness", "plasticity", "yield_ratio"):
        setattr(rates, name, getattr(params, name))
    rates.gravity = wp.vec3(*params.gravity)
    names = {"rest": "rest_density", "stiffness": "stiffness", "near": "near_stiffness", "linear": "viscosity"}
    names |= {
        "quadratic": "quadratic_viscosity",
        "traction": "traction",
        "phase": "phase",
        "clots": "clots",
        "dissolves": "dissolves",
    }
    for name, of_fluid in names.items():
        values = [float(getattr(fluid, of_fluid)) for fluid in params.fluids]
        setattr(rates, name, wp.vec4(*values, *([0.0] * (FLUIDS - len(values)))))
    return rates


def _fill(view: Any, source: Any) -> Any:
    """A kernel's view of a dataclass of arrays with the same names."""
    for name in view._cls.vars:
        setattr(view, name, getattr(source, name))
    return view


def _empty(view: Any, device: Device, size: int) -> Any:
    for name, var in view._cls.vars.items():
        setattr(view, name, wp.zeros(size, dtype=var.type.dtype, device=device.warp))
    return view


def _integers(device: Device) -> Any:
    return lambda size: wp.zeros(size, dtype=wp.int32, device=device.warp)


def _springs(most: int, capacity: int, device: Device) -> Any:
    made: Any = springs.Springs()
    made.most = most
    made.count = _integers(device)(capacity if most else 0)
    made.partner = _integers(device)(most * capacity)
    made.rest = wp.zeros(most * capacity, dtype=float, device=device.warp)
    return made


def _maps(
    surface: FilmSurface | None, sheet: Sheet | None, tangents: Skin | None, obstacles: bool, device: Device
) -> Any:
    maps: Any = Sheeted()
    maps.has_tangents = int(tangents is not None)
    somewhere = sheet is not None or (surface is not None and len(surface.obstacle) > 1)
    maps.has_obstacles = int(obstacles and somewhere)
    maps.tangent_u = maps.tangent_v = wp.zeros(0, dtype=wp.vec3, device=device.warp)
    if tangents is not None:
        if sheet is None or (tangents.width, tangents.height) != (sheet.width, sheet.height):
            raise InputError(
                f"tangents come from a skin of {tangents.width} × {tangents.height} texels.",
                "Give them to a sheet of the same size.",
            )
        maps.tangent_u, maps.tangent_v = tangents.tangent_u, tangents.tangent_v
    if surface is not None:
        maps.obstacle = surface.obstacle
    else:
        texels = sheet.width * sheet.height if sheet is not None and obstacles else 0
        maps.obstacle = wp.zeros(texels, dtype=float, device=device.warp)
    return maps


__all__ = ["FIXED", "Film", "make_film", "relax_film", "set_film", "step_film"]
