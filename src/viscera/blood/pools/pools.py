"""Pools: fluid that stands in hollows, millimetres deep and level, as columns that run into each other.

Over the surface stand columns of side s on a grid in x and y, each with the height b of the ground (`ground`), whole
picolitres of every fluid, and so a depth d = V/s² and a level b + d. Neighbours are joined by pipes (J. O'Brien and J.
Hodgins, Dynamic Simulation of Splashing Fluids, Computer Animation '95, whom Andersson cites, §2.3), each step of dt:

    q ← (q + dt s D (g Δ(b + d)/s + g_along)) / (1 + dt (r + 3ν/D²)),     V_i ← V_i − Σ q dt,  in whole picolitres

with D the depth over the higher ground of the two on the side that q comes from: fluid does not climb over a rim that
is higher than its level, and overflows at the lowest. 3ν/D² is the drag of the ground on a thin layer, that of the film
too. A column gives no more than it has. Where the surface ends, fluid falls onto the drape. At rest all joined columns
have one level, whatever the shape of the ground; where the ground moves or gravity tilts, it finds the new one.

    film → pool     where a film is covered by the pool; where it lies in a hollow that can hold more than a film
                    (`hollows`) and hardly moves: the part 1 − exp(−dt/τ) of it in each step, drawn by lot
    pool → film     out of hollows, where neither a column nor one beside it is deeper than `thin`: particles of the
                    film's volume
    suction         the nearest columns with film and drops, no more than its rate

So a hollow fills: film runs down into it, is covered, and the level rises. The film alone cannot (its particles do not
stack). A drop that falls into a pool meets its level: it joins the column there, or splashes.

Pools need gravity that points down more than sideways; what is under an overhang stays film.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import warp as wp

from viscera.blood.columns import DRY, POOL_KINDS, PoolView
from viscera.blood.constants import BLOOD_DENSITY, BLOOD_VISCOSITY
from viscera.blood.drops.drops import Drops
from viscera.blood.film.film import Film
from viscera.blood.film.params import FLUIDS, FilmParams
from viscera.blood.film.surface import FilmSurface
from viscera.blood.pools import exchange, flow, ground, hollows
from viscera.device import BLOCK, Device, Stage
from viscera.errors import InputError

CHUNK = 64
"""Columns per thread on cpu."""

STEPS = 4
"""Of the columns in one step of the drops; even, as they take turns between two arrays."""

MOST_COLUMNS = 2**20

FASTEST = 1.5
"""Cells that a wave may cross in a step, one over it: √2 is where pipes in two directions become unstable."""

RUN_OFF, SUCKED = 0, 1
"""Entries of `Pools.gone`."""

SWEEPS = 8
"""Of the map of hollows in one step; even, as they take turns between two arrays."""

POOL_ARRAYS = tuple(POOL_KINDS)
"""Arrays of a `PoolView`: all of them are kept when pools are saved."""


@dataclass(frozen=True)
class PoolParams:
    side: float = 1.5e-3
    """s of a column [m]; fixed."""
    hollow: float = 0.4e-3
    """Film gathers where the ground can hold more than this [m]; at rest a film is 0.24 mm thick."""
    slow: float = 8.0e-3
    """And where it is slower than this [m/s]: a stream runs on down to the lowest place."""
    gather_time: float = 0.1
    """τ [s]"""
    thin: float = 0.2e-3
    """[m]"""
    damping: float = 4.0
    """r: of waves [1/s]. Tuned for appearance: blood in a wound does not slosh for long."""
    seed: int = 5

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            zero = f.name in ("damping", "seed")
            if not math.isfinite(value) or value < 0.0 or (value == 0.0 and not zero):
                allowed = "of 0 or more" if zero else "above 0"
                raise InputError(f"{f.name} = {value} is not possible.", f"It must be a finite number {allowed}.")


@dataclass(eq=False)
class Pools:
    """Made by `make_pools`. Arrays have shape (columns,) unless it says otherwise."""

    params: PoolParams
    film: FilmParams
    surface: FilmSurface
    device: Device
    drops: Drops
    dt: float
    """One step [s]."""
    view: Any
    """`PoolView`."""
    pipes: Any
    """`Pipes`."""
    other: Any
    """Scratch: the contents after a step of the columns, int32, shape (FLUIDS · columns,)."""
    other_view: Any
    """`PoolView` of these."""
    flows: Any
    """`FlowNumbers`, shape (1,)."""
    exchanges: Any
    """`ExchangeNumbers`, shape (1,)."""
    top: Any
    """Scratch: highest triangle of each column, int64."""
    seen: Any
    """Where the surface was when the ground was last found, vec3, shape (vertices,) [m]."""
    moved: Any
    """Whether it has moved since, int32, shape (1,)."""
    fill: tuple[Any, Any]
    """The map of hollows in the making, float32, two of them [m]."""
    progress: Any
    """How far it is, int32, shape (2,); see `hollows`."""
    gone: Any
    """What has run off and what was sucked, int64, shape (2,) [pL]."""
    flag: Any
    place: Any
    """Scratch: which columns give a particle to the film, and how many before each, int32."""
    added: int = 0
    """What `pools.pour` has put in since it was made [pL]; a ledger counts it."""

    @property
    def count(self) -> int:
        """Columns."""
        return self.view.columns * self.view.rows

    def measure(self, stage: Stage, hands: Any, ring: Any) -> None:
        """Adds what suction reaches of the pool to the rings around its tip."""
        _once(stage, self, exchange.measure_pool, [hands, self.view, ring])

    def catch(self, stage: Stage) -> None:
        """Takes the drops that fell into it in this step."""
        air = self.drops.state
        threads, args = -(-air.capacity // air.chunk), [air.view, self.view]
        stage.once(lambda: wp.launch(exchange.take_drops, dim=threads, inputs=args, device=stage.device.warp))

    def suck(self, stage: Stage, hands: Any, purse: Any, taken: Any) -> None:
        """Takes what the rings allow."""
        _once(stage, self, exchange.suck_pool, [hands, self.view, purse, self.view, taken, self.gone])


def make_pools(film: Film, drops: Drops, params: PoolParams | None = None) -> Pools:
    """No pool yet, over the surface of `film`; suction is that of `drops`, which must not be recorded yet."""
    params = params or PoolParams()
    surface = film.surface
    if surface is None:
        raise InputError("a film on a sheet has no pools.", "Make it on a skin or a mesh.")
    device = surface.device
    view, count = _view(surface, params, device)
    other: Any = PoolView()
    for name in other._cls.vars:
        setattr(other, name, getattr(view, name))
    other.content = wp.zeros(FLUIDS * count, dtype=wp.int32, device=device.warp)
    pipes: Any = flow.Pipes()
    pipes.right, pipes.back = (wp.zeros(count, dtype=wp.int32, device=device.warp) for _ in range(2))
    pipes.push_right, pipes.push_back = (wp.zeros(count, dtype=wp.float32, device=device.warp) for _ in range(2))
    far = np.full((len(surface.vertices), 3), 1e6, dtype=np.float32)
    pools = Pools(
        params,
        film.params,
        surface,
        device,
        drops,
        drops.dt,
        view,
        pipes,
        other.content,
        other,
        wp.zeros(1, dtype=flow.FlowNumbers, device=device.warp),
        wp.zeros(1, dtype=exchange.ExchangeNumbers, device=device.warp),
        wp.zeros(count, dtype=wp.int64, device=device.warp),
        wp.array(far, dtype=wp.vec3, device=device.warp),
        wp.zeros(1, dtype=wp.int32, device=device.warp),
        (wp.zeros(count, dtype=wp.float32, device=device.warp), wp.zeros(count, dtype=wp.float32, device=device.warp)),
        wp.array([0, -1], dtype=wp.int32, device=device.warp),
        wp.zeros(2, dtype=wp.int64, device=device.warp),
        wp.zeros(count, dtype=wp.int32, device=device.warp),
        wp.zeros(count, dtype=wp.int32, device=device.warp),
    )
    set_pools(pools, params)
    drops.pools = pools
    drops.around.pool = view

    def look(stage: Stage) -> None:
        find_ground(stage, pools)
        find_hollows(stage, pools)

    # Until the first map is whole.
    device.record(look, work=count).run(-(-_sweeps(pools) // SWEEPS))
    device.synchronize()
    return pools


def set_pools(pools: Pools, params: PoolParams) -> None:
    """Changes parameters while programs run, all but the side of a column."""
    if params.side != pools.params.side:
        raise InputError(f"side = {params.side:g} m cannot change.", "Make new pools.")
    pools.params = params
    film, dt = pools.film, pools.dt / STEPS
    flows: Any = flow.FlowNumbers()
    flows.dt, flows.gravity = dt, wp.vec3(*film.gravity)
    flows.viscosity, flows.damping = BLOOD_VISCOSITY / BLOOD_DENSITY, params.damping
    weight = max(float(np.linalg.norm(film.gravity)), 1e-6)
    flows.deepest = (params.side / (FASTEST * max(dt, 1e-9))) ** 2 / weight
    wp.copy(pools.flows, wp.array([flows], dtype=flow.FlowNumbers, device=pools.device.warp))
    numbers: Any = exchange.ExchangeNumbers()
    numbers.hollow, numbers.slow, numbers.thin = params.hollow, params.slow, params.thin
    numbers.share = -math.expm1(-pools.dt / params.gather_time)
    numbers.volume, numbers.least = film.little_volume, max(film.little_volume // 4, 1)
    numbers.seed = params.seed
    wp.copy(pools.exchanges, wp.array([numbers], dtype=exchange.ExchangeNumbers, device=pools.device.warp))


def find_ground(stage: Stage, pools: Pools) -> None:
    """Brings the ground up to the surface as it is now."""
    view, surface, moved = pools.view, pools.surface, pools.moved
    vertices, triangles = surface.vertices, surface.view.triangles
    corners = [view.chunk, moved, vertices, pools.seen]
    stage.once(moved.zero_)
    _launch(stage, pools, ground.find_moved, [view.chunk, vertices, pools.seen, moved], len(vertices))
    _launch(stage, pools, ground.clear_top, [view, moved, pools.top])
    _once(stage, pools, ground.find_top, [view, moved, vertices, triangles, pools.top], len(triangles))
    _launch(stage, pools, ground.take_ground, [view, moved, pools.top, view])
    _launch(stage, pools, ground.remember, corners, len(vertices))


def find_hollows(stage: Stage, pools: Pools) -> None:
    """Some more of the map of hollows, after `find_ground`."""
    view, progress, (one, other), sweeps = pools.view, pools.progress, pools.fill, _sweeps(pools)
    _single(stage, hollows.begin_map, [pools.moved, progress])
    _launch(stage, pools, hollows.fill_up, [view, progress, one])
    for number in range(SWEEPS):
        turn = (one, other) if number % 2 == 0 else (other, one)
        _launch(stage, pools, hollows.sweep, [pools.flows, view, progress, *turn])
    _single(stage, hollows.count_sweeps, [SWEEPS, progress])
    _launch(stage, pools, hollows.publish, [pools.flows, view, sweeps, progress, one, view.hollow])
    _single(stage, hollows.end_map, [sweeps, progress])


def _sweeps(pools: Pools) -> int:
    """As many as the longest way out of a hollow is likely to have columns: across the grid and back."""
    return pools.view.columns + pools.view.rows


def step_pools(stage: Stage, pools: Pools) -> None:
    """One step of `pools.dt`: the ground, film that joins, columns that run, film that is given back. After the drops'
    step and before those of the film."""
    view, film, queue = pools.view, pools.drops.film_view, pools.drops.queue
    find_ground(stage, pools)
    find_hollows(stage, pools)
    _once(stage, pools, exchange.gather_film, [pools.exchanges, view, pools.drops.purse, film, view], film.capacity)
    for number in range(STEPS):
        here, there = (view, pools.other_view) if number % 2 == 0 else (pools.other_view, view)
        _launch(stage, pools, flow.push, [pools.flows, here, pools.pipes])
        _launch(stage, pools, flow.pass_on, [here, pools.pipes])
        _launch(stage, pools, flow.settle, [here, pools.pipes, there.content])
    fullest = float(pools.drops.params.fullest)
    given = [pools.flag, pools.place, film]
    _launch(stage, pools, exchange.choose_thin, [pools.exchanges, view, pools.flag])
    stage.once(lambda: wp.utils.array_scan(pools.flag, pools.place, inclusive=False))
    _launch(stage, pools, exchange.give_film, [pools.exchanges, fullest, view, pools.surface.view, *given, view, queue])
    _single(stage, exchange.book_film, [fullest, *given, queue])
    show_levels(stage, pools)


def show_levels(stage: Stage, pools: Pools) -> None:
    """Levels of the columns as they are now, and what has run off."""
    stage.once(pools.view.wet.zero_)
    _once(stage, pools, flow.find_levels, [pools.view, pools.drops.around, pools.view, pools.gone])
    _launch(stage, pools, flow.find_near, [pools.view, pools.view.near])


def _launch(stage: Stage, pools: Pools, kernel: Any, args: list[Any], count: int = 0) -> None:
    """Over all columns, or `count` of something, a chunk per thread."""
    chunk = pools.view.chunk
    stage.launch(kernel, -(-(count or pools.count) // chunk), args, block=max(BLOCK // chunk, 1))


def _once(stage: Stage, pools: Pools, kernel: Any, args: list[Any], count: int = 0) -> None:
    """The same by one core."""
    size = -(-(count or pools.count) // pools.view.chunk)
    stage.once(lambda: wp.launch(kernel, dim=size, inputs=args, device=stage.device.warp))


def _single(stage: Stage, kernel: Any, args: list[Any]) -> None:
    """One thread."""
    stage.once(lambda: wp.launch(kernel, dim=1, inputs=args, device=stage.device.warp))


def _view(surface: FilmSurface, params: PoolParams, device: Device) -> tuple[Any, int]:
    """The columns over the surface, with two to spare around it."""
    low, high = np.asarray(surface.lower), np.asarray(surface.upper)
    columns, rows = (int(n) for n in np.ceil((high - low)[:2] / params.side) + 4)
    if columns * rows > MOST_COLUMNS:
        raise InputError(
            f"side = {params.side:g} m gives {columns} × {rows} columns.", f"Allowed are {MOST_COLUMNS}: widen them."
        )
    count = columns * rows
    view: Any = PoolView()
    view.columns, view.rows, view.side, view.per_metre = columns, rows, params.side, 1.0 / params.side
    view.chunk = 1 if device.is_cuda else CHUNK
    corner = 0.5 * (low + high)[:2] - 0.5 * params.side * np.array([columns, rows])
    view.left, view.front = float(corner[0]), float(corner[1])
    sizes = {"content": FLUIDS * count, "wet": 1}
    for name, kind in POOL_KINDS.items():
        setattr(view, name, wp.zeros(sizes.get(name, count), dtype=kind, device=device.warp))
    view.level.fill_(float(DRY))
    return view, count
