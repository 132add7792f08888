"""The particles of a fluid, and the numbers that may change while it runs.

Particles are kept in the order of the last sort, so that neighbours lie near each other in memory: a step reads arrays
in order A, sorts into order B, and writes A again in that order. `tag` tells who is who, whatever the order.

What a step leaves, all in one order, s = 0 … count − 1:

    fluid.grid.position[s]    where the particle was before the step
    fluid.position[s]         where it is
    fluid.velocity[s], fluid.density[s], fluid.pressure[s], fluid.rate[s], fluid.tag[s]

Boundaries of any kind take part through four moments of the step (`Boundary`). Wall particles (tag < 0) are particles
of the fluid that move with their own velocity whatever pushes them; see walls.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from viscera.device import BLOCK, Device, Stage
from viscera.errors import InputError, StateError
from viscera.neighbors import grid as ng
from viscera.water.params import FluidParams, check_step
from viscera.water.sizes import make_sizes
from viscera.water.smoothing import Smoothing, make_smoothing

wp.set_module_options({"enable_backward": False})

GAS, TAIT, INCOMPRESSIBLE = 0, 1, 2
EQUATIONS = {"gas": GAS, "tait": TAIT, "incompressible": INCOMPRESSIBLE}

NO_SUCTION = 0.0
ANY_SUCTION = -1.0e30
"""Lowest pressures [Pa] without and with suction."""

TEAMS = ((16_384, 16), (65_536, 8), (2**31, 1))
"""Up to so many particles, so many threads share one on cuda: few are bound by latency, many by arithmetic."""
WIDE_TEAM = 8
"""From so many threads per particle on, loops are the wide ones."""

ON_THE_RIM = 1e-3
"""Of a spacing: whoever starts so far outside the box is on its rim, but for rounding."""

DRAINED, REFUSED, LOST, CREATED = 0, 1, 2, 3
"""Places in `Fluid.report`: particles drained, particles an emitter had no room for, positions not finite, and
particles ever made, which is the next tag."""


SLOTS = 12
"""Blocks of 16 neighbours whose slopes native_solver.py keeps per particle. In barium in a colon 99 of 100 particles
have at most 10."""
MOST_KEPT = 40_000
"""Particles up to which it keeps them: 31 MB, about what a processor's cache holds."""
KEPT = ("warm", "level", "carried", "fresh")
"""Arrays in `Fluid.extra` that belong to particles and are kept between steps, where they are there."""

MARKED = -(2**31)
"""Tag of a particle that is being drained: the next sort takes it out."""


@wp.struct
class Live:
    """Numbers that may change while a recorded program runs: an array of one."""

    dt: float
    """[s]"""
    gravity: wp.vec3
    """[m/s²]"""
    mass: float
    """Of each particle [kg; kg/m in 2D]."""
    rest_density: float
    """[kg/m³]"""
    equation: int
    stiffness: float
    """c² for gas [m²/s²], B for Tait [Pa]."""
    gamma: float
    background: float
    lowest: float
    """Lowest pressure [Pa]."""
    viscosity: float
    """[Pa·s]"""
    alpha: float
    beta: float
    sound_speed: float
    """[m/s]"""
    length: float
    """Smoothing length of Monaghan's viscosity, R/2 [m]."""
    tension: float
    """Surface tension [N/m]."""
    continuity: float
    """1 where density follows from continuity, 0 where it is summed."""
    leapfrog: float
    """1 for leap-frog: velocities are those of half a step ago, and forces take predicted ones."""


@wp.struct
class Images:
    """Periodic axes: a particle near a face also looks for neighbours from beyond the opposite one."""

    lower: wp.vec3
    length: wp.vec3
    """[m]; 0 along axes that are not periodic."""
    first_x: int
    first_y: int
    first_z: int
    """-1 along periodic axes, else 0; images run from this to its negative."""


class Boundary(Protocol):
    """What a boundary may do in a step. Arrays are in sorted order; see `Fluid`.

    A class whose `add_density` or `add_force` does nothing says so with `adds_density = False` or `adds_force = False`:
    then nothing stands between density and pressure, or forces and the move, and on cuda each pair is one launch."""

    def before_step(self, stage: Stage, fluid: Fluid) -> None:
        """Before sorting: moving walls bring themselves up to date."""

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        """May add to `fluid.density`, reading `fluid.place`; pressure follows from the sum."""

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        """May add acceleration [m/s²] to the first three numbers of `fluid.rate`."""

    def contact(self, stage: Stage, fluid: Fluid) -> None:
        """After integration: may change `fluid.position` and `fluid.velocity`, with `fluid.grid.position` before."""


@dataclass(eq=False)
class Fluid:
    """Made by `make_fluid`. Vectors have three components in 2D too; z is 0 there. n is the capacity."""

    params: FluidParams
    device: Device
    capacity: int
    """Most particles there can be, walls included."""
    smoothing: Smoothing
    """The kernels W and their gradients."""
    images: Images
    """Periodic axes."""
    live: wp.array
    """`Live`, (1,): numbers that `set_params` may change."""
    count: wp.array
    """Particles now, fluid and walls, int32 (1,)."""
    position: wp.array
    """[m] vec3 (n,)"""
    velocity: wp.array
    """[m/s] vec3 (n,). Leap-frog: half a step before the time of `position`."""
    tag: wp.array
    """int32 (n,): 0, 1, … for fluid in the order of creation; -1, -2, … for wall particles."""
    kept_density: wp.array
    """[kg/m³] float (n,): density that continuity integrates."""
    grid_params: ng.GridParams
    grid: ng.GridState
    """Sorted neighbour grid; `grid.position` are the sorted positions [m]."""
    place: wp.array
    """Sorted, vec4 (n,): position [m], and p/ρ² once pressures are known [Pa·m⁶/kg²]."""
    motion: wp.array
    """Sorted, vec4 (n,): velocity that forces depend on [m/s], and 1/ρ once densities are known [m³/kg]."""
    held: wp.array
    """Sorted, vec4 (n,): velocity and density that integration starts from [m/s, kg/m³]."""
    sorted_tag: wp.array
    """Sorted, int32 (n,)."""
    density: wp.array
    """Sorted, float (n,) [kg/m³]."""
    pressure: wp.array
    """Sorted, float (n,) [Pa]."""
    rate: wp.array
    """Sorted, vec4 (n,): acceleration [m/s²] and dρ/dt [kg/(m³·s)]."""
    axes: tuple[wp.array, ...]
    """Sorted, one float array (n + 16,) each: x, y, z, p/ρ², vx, vy, vz, 1/ρ; empty where kernels are plain."""
    report: wp.array
    """int32 (4,): see DRAINED, REFUSED, LOST, CREATED."""
    clock: wp.array
    """float64 (1,): time since the start [s]."""
    walls: int
    """Wall particles."""
    native: bool
    """Whether the inner loops are the native ones for cpu, native.py."""
    team: int
    """Threads that share a particle in the loops for cuda, teams.py; 0 where those are not used."""
    wide: bool
    """Whether those loops are the ones for few particles."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Arrays of the parts that are switched on: tension, incompressible solver, adaptive step."""
    boundaries: list[Boundary] = field(default_factory=list)
    vessels: list[Any] = field(default_factory=list)
    """`Walls` of every vessel made for it: nozzles made later are checked against them."""
    nozzles: list[np.ndarray] = field(default_factory=list)
    """Places of every emitter's layer [m], (k, 3): vessels made later are checked against them."""


def make_fluid(
    params: FluidParams,
    positions: np.ndarray,
    device: Device,
    *,
    velocities: np.ndarray | None = None,
    walls: np.ndarray | None = None,
    capacity: int | None = None,
    native: bool | None = None,
    team: int | None = None,
) -> Fluid:
    """A fluid of particles at `positions` [m], shape (n, dimension), at rest or with `velocities` [m/s].

    They start in the box of `params`; later they may leave it, and only cost more time out there.
    `walls` are positions of wall particles [m]. `capacity` is the most particles there can ever be, walls included;
    without it there is room for no more than these. `native` chooses between the loops in C and their plain twins,
    and `team` how many threads share a particle in those for cuda (1, 2, 4 … 32); both follow from the device and
    the capacity, and tests and benchmarks choose them.
    """
    if not params.adaptive:
        check_step(params)
    fluid_at = vectors(positions, "positions", params.dimension)
    wall_at = vectors(np.zeros((0, params.dimension)) if walls is None else walls, "walls", params.dimension)
    if len(wall_at) and params.sizes is not None:
        raise InputError("wall particles go with one size only.", "Leave walls out, and add a vessel.")
    moving = np.zeros_like(fluid_at) if velocities is None else vectors(velocities, "velocities", params.dimension)
    check_box(params, fluid_at, "particles")
    if len(moving) != len(fluid_at):
        raise InputError(f"there are {len(moving)} velocities for {len(fluid_at)} positions.", "Give one for each.")
    count = len(fluid_at) + len(wall_at)
    n = count if capacity is None else capacity
    if n < count or n < 1:
        raise InputError(
            f"capacity is {n}, but there are {len(fluid_at)} fluid and {len(wall_at)} wall particles.",
            "Give a capacity of at least as many, and one or more.",
        )
    natively = _natively(params, native)
    fluid = _allocate(params, device, n, natively and not device.is_cuda)
    if team is not None or (natively and device.is_cuda):
        use_team(fluid, next(size for most, size in TEAMS if n <= most) if team is None else team)
    write_live(fluid)
    tags = np.concatenate([np.arange(len(fluid_at)), -1 - np.arange(len(wall_at))])
    load(fluid, {
        "position": np.concatenate([fluid_at, wall_at]),
        "velocity": np.concatenate([moving, np.zeros_like(wall_at)]),
        "tag": tags,
    })  # fmt: skip
    return fluid


def check_box(params: FluidParams, points: np.ndarray, what: str) -> None:
    """Raise InputError if some of the points [m], (n, 3), are outside the box. The grid ends there: whoever is beyond
    counts to its outermost cells, which is right but slow, and never meant at the start. A hashed grid has no end."""
    if params.search == "hashed" and not any(params.periodic):
        return
    d, room = params.dimension, ON_THE_RIM * params.spacing
    lower, upper = np.asarray(params.lower), np.asarray(params.upper)
    outside = ((points[:, :d] < lower - room) | (points[:, :d] > upper + room)).any(axis=1)
    if outside.any():
        first = ", ".join(f"{value:g}" for value in points[outside][0, :d])
        raise InputError(
            f"{int(outside.sum())} of {len(points)} {what} start outside the box, the first at ({first}) m.",
            f"The box goes from {tuple(params.lower)} to {tuple(params.upper)} m: make it larger, or move them.",
        )


def use_team(fluid: Fluid, team: int, *, wide: bool | None = None) -> None:
    """Take the loops of teams.py with `team` threads per particle; on cpu, for tests, with one."""
    if any(fluid.params.periodic) or fluid.params.search != "sorted":
        raise InputError(
            "teams are for boxes that are not periodic, searched by sorted cells.",
            'Leave team out, or choose search="sorted" and no period.',
        )
    if team not in (1, 2, 4, 8, 16, 32) or (team > 1 and not fluid.device.is_cuda):
        raise InputError(f"team = {team} is not possible.", "Choose 1, 2, 4, 8, 16 or 32 on cuda, 1 on cpu.")
    fluid.team, fluid.wide = team, team >= WIDE_TEAM if wide is None else wide


def set_params(fluid: Fluid, params: FluidParams) -> None:
    """Change numbers while programs run. What decides which kernels are recorded must stay as it is."""
    fixed = ("spacing", "lower", "upper", "dimension", "support", "kernels", "density", "integrator", "periodic",
             "no_slip", "iterations", "adaptive", "tension", "search", "sizes")  # fmt: skip
    for name in fixed:
        if getattr(params, name) != getattr(fluid.params, name):
            raise InputError(f"{name} cannot change while a fluid runs.", "Make a new fluid.")
    if params.compressible != fluid.params.compressible:
        raise InputError("equation cannot change to or from incompressible.", "Make a new fluid.")
    if (params.alpha + params.beta > 0.0) != (fluid.params.alpha + fluid.params.beta > 0.0) and fluid.native:
        raise InputError("Monaghan's viscosity cannot be switched while a fluid runs.", "Make a new fluid.")
    if not params.adaptive:
        check_step(params)
    fluid.params = params
    write_live(fluid)


def arrays(fluid: Fluid) -> dict[str, np.ndarray]:
    """All that must be kept to go on later: give it to `load`. In the order of the last sort."""
    count = int(fluid.count.numpy()[0])
    names = ("position", "velocity", "tag", "kept_density", "rate")
    saved = {name: getattr(fluid, name).numpy()[:count].copy() for name in names}
    saved |= {name: fluid.extra[name].numpy()[:count].copy() for name in KEPT if name in fluid.extra}
    return saved | {"clock": fluid.clock.numpy().copy(), "report": fluid.report.numpy().copy()}


def load(fluid: Fluid, saved: dict[str, np.ndarray]) -> None:
    """Put particles in; what is not given starts at rest, at rest density and at time 0."""
    count = len(saved["position"])
    if count > fluid.capacity:
        raise InputError(f"there are {count} particles, but room for {fluid.capacity}.", "Make a larger fluid.")
    defaults: dict[str, tuple[Any, float]] = {
        "position": (fluid.position, 0.0),
        "velocity": (fluid.velocity, 0.0),
        "tag": (fluid.tag, 0),
        "kept_density": (fluid.kept_density, fluid.params.rest_density),
        "rate": (fluid.rate, 0.0),
    }
    defaults |= {name: (fluid.extra[name], 0) for name in KEPT if name in fluid.extra}
    for name, (array, empty) in defaults.items():
        full = np.full(array.numpy().shape, empty, dtype=array.numpy().dtype)
        if name in saved:
            full[:count] = saved[name]
        array.assign(full)
    fluid.count.fill_(count)
    fluid.clock.assign(np.asarray(saved.get("clock", np.zeros(1))))
    made = int(saved["tag"].max(initial=-1)) + 1
    fluid.report.assign(np.asarray(saved.get("report", [0, 0, 0, made]), dtype=np.int32))
    fluid.walls = int(((saved["tag"] < 0) & (saved["tag"] != MARKED)).sum())


def particles(fluid: Fluid) -> dict[str, np.ndarray]:
    """Position, velocity, density and pressure of the fluid's own particles, in the order of their tags."""
    count = int(fluid.count.numpy()[0])
    tag = fluid.tag.numpy()[:count]
    order = np.argsort(tag, kind="stable")[(tag < 0).sum() :]
    names = ("position", "velocity", "density", "pressure", "tag")
    found = {name: getattr(fluid, name).numpy()[:count][order] for name in names}
    return found | {name: fluid.extra[name].numpy()[:count][order] for name in ("level",) if name in fluid.extra}


def check_fluid(fluid: Fluid, *, tick: int = 0) -> int:
    """Raises StateError where the last sort met positions that are not finite; returns how many particles emitters had
    no room for. Waits for the device: call it once per frame, not per step. What broke in the very last step is met by
    the next sort."""
    report, count = fluid.report.numpy(), int(fluid.count.numpy()[0])
    if report[LOST]:
        broken = ~np.isfinite(fluid.position.numpy()[:count]).all(axis=1)
        tags = np.sort(fluid.tag.numpy()[:count][broken])
        first = f", the first is the one with tag {tags[0]}" if len(tags) else ""
        raise StateError(
            f"fluid: {report[LOST]} of {count} particle positions are not finite{first}.",
            "Take a smaller dt, and set `fastest` to the speed of the flow; check velocities that were put in.",
            stage="fluid",
            tick=tick,
        )
    return int(report[REFUSED])


def write_live(fluid: Fluid) -> None:
    p = fluid.params
    live: Any = Live()
    live.dt, live.gravity, live.mass, live.rest_density = p.dt, wp.vec3(*p.gravity), p.mass, p.rest_density
    live.equation, live.gamma, live.background = EQUATIONS[p.equation], p.gamma, p.background
    live.stiffness = p.sound_speed**2 * (p.rest_density / p.gamma if p.equation == "tait" else 1.0)
    live.lowest = ANY_SUCTION if p.suction else NO_SUCTION
    live.viscosity, live.alpha, live.beta = p.viscosity, p.alpha, p.beta
    live.sound_speed, live.length = p.sound_speed, 0.5 * p.radius
    live.tension = p.tension_coefficient if p.tension != "none" else 0.0
    live.continuity = float(p.density == "continuity")
    live.leapfrog = float(p.integrator == "leapfrog")
    wp.copy(fluid.live, wp.array([live], dtype=Live, device=fluid.device.warp))


def _natively(params: FluidParams, wanted: bool | None) -> bool:
    """Loops in C know neither images nor buckets."""
    possible = not any(params.periodic) and params.search == "sorted"
    if wanted and not possible:
        raise InputError(
            "native loops are for boxes that are not periodic, searched by sorted cells.",
            'Leave native out, or choose search="sorted" and no period.',
        )
    return possible if wanted is None else wanted


def _allocate(params: FluidParams, device: Device, n: int, native: bool) -> Fluid:
    def make(dtype: Any, size: int = n) -> wp.array:
        return wp.zeros(size, dtype=dtype, device=device.warp)

    count = make(wp.int32, 1)
    flat = (0.0,) * (3 - params.dimension)
    grid_params, grid = ng.make_grid(
        n, (*params.lower, *flat), (*params.upper, *flat), params.radius, 3, device, count=count, search=params.search
    )
    if params.dimension == 2:
        # One layer of cells: the rows above and below are not even looked at.
        grid.view.rows, grid.view.layer = grid.view.rows // 3, 0
    # Blocks of neighbours that native loops go through: all, until density has noted which.
    hits = {"hits": wp.full(n, 2**64 - 1, dtype=wp.uint64, device=device.warp)} if native else {}
    if native and not params.compressible:
        hits["slopes"] = make(float, 16 * SLOTS * n if n <= MOST_KEPT else 0)
    sizes = make_sizes(params, device.warp, n, native) if params.sizes is not None else {}
    return Fluid(
        params=params,
        device=device,
        capacity=n,
        smoothing=make_smoothing(params.kernels, params.radius, params.dimension),
        images=_images(params),
        live=make(Live, 1),
        count=count,
        position=make(wp.vec3),
        velocity=make(wp.vec3),
        tag=make(wp.int32),
        kept_density=make(float),
        grid_params=grid_params,
        grid=grid,
        place=make(wp.vec4),
        motion=make(wp.vec4),
        held=make(wp.vec4),
        sorted_tag=make(wp.int32),
        density=make(float),
        pressure=make(float),
        rate=make(wp.vec4),
        axes=tuple(make(float, n + ng.LANES) for _ in range(8 if native else 0)),
        report=make(wp.int32, 4),
        clock=make(wp.float64, 1),
        walls=0,
        native=native,
        team=0,
        wide=False,
        extra=_parts(params, make, n) | hits | sizes,
    )


def _parts(params: FluidParams, make: Callable[..., wp.array], n: int) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if not params.compressible:
        parts |= {"warm": make(float), "system": make(wp.vec2), "push": make(wp.vec4), "own": make(wp.vec4)}
    if params.tension == "curvature":
        parts["normal"] = make(wp.vec4)
    if params.adaptive:
        parts["maxima"] = make(wp.vec2, -(-n // BLOCK))
    return parts


def _images(params: FluidParams) -> Images:
    images = Images()
    flat = (0.0,) * (3 - params.dimension)
    lower, upper = (*params.lower, *flat), (*params.upper, *flat)
    images.lower = wp.vec3(*lower)
    images.length = wp.vec3(*[(b - a) * p for a, b, p in zip(lower, upper, params.periodic, strict=True)])
    images.first_x, images.first_y, images.first_z = (-int(p) for p in params.periodic)
    return images


def vectors(values: ArrayLike, name: str, dimension: int) -> np.ndarray:
    """As (n, 3), checked."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise InputError(f"{name} has shape {array.shape}.", f"Give one row of {dimension} numbers per particle.")
    if not np.isfinite(array).all():
        bad = int(np.nonzero(~np.isfinite(array).all(axis=1))[0][0])
        raise InputError(f"{name}: row {bad} is {array[bad]}.", "All must be finite.")
    return np.concatenate([array, np.zeros((len(array), 3 - dimension))], axis=1)
