"""Drops in the air: what the film lets go, what spurts and what a nozzle lets out, until it lands or is lost.

A particle of the film, thickness t = 6 V/(π h²) (1 + Σ (1 − r/h)²) (the film's own density, times its kernel's
normalisation), lets go where

    t (g·n)/|g| > hanging       it hangs from the surface, heavier than the surface holds
    t > overflow                it stands higher than surface tension can hold

and of what is too much, the part 1 − exp(−dt/τ) in each step, drawn by lot from the world's seed. A wetting puddle is
at most 2 ℓ sin(θ/2) high, ℓ = √(σ/ρg) = 2.3 mm for blood, which for a contact angle of 60° is ℓ itself (de Gennes,
Brochard-Wyart and Quéré, Capillarity and Wetting Phenomena, §2.2); a pendant drop grows within τ ≈ √(ℓ/g) = 15 ms.

A drop flies, meets the moving surface (`landing`), bounces, splashes or slides there (`impact`), or leaves the scene's
box. Once it slides no faster than the film can run it joins the film, with its velocity. Suction takes the nearest
within its reach, no more than its rate; a nozzle lets out saline. Volumes are whole picolitres.

Room is bounded, and every picolitre has a place in `balance`: a film that fills up beyond `crowded` hangs on less and
drips sooner; what lands on a film that is `fullest` runs off the organ; film that finds no place in the air stays film,
and a nozzle runs slower.

Kvick's particles cannot leave the surface (§6.2.3 names it as future work); Andersson's drops (§3.2) never join a film.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.blood.drops import coupling, flight, kernels, tools
from viscera.blood.drops.around import nothing_around
from viscera.blood.drops.impact import ImpactNumbers
from viscera.blood.drops.landing import LandingTree, fit_landing, make_landing, remember_surface
from viscera.blood.drops.near import Near, check_cohesion, make_near, set_near
from viscera.blood.drops.numbers import DropNumbers, Purse, Tools
from viscera.blood.drops.params import DropParams
from viscera.blood.film.params import LITTLE, FilmParams
from viscera.blood.film.state import FilmState
from viscera.blood.film.surface import FilmSurface
from viscera.blood.views import DROP_FATES, DropArrays, film_view, make_drop_arrays, queue_view
from viscera.device import BLOCK, Device, Port, Stage
from viscera.errors import InputError
from viscera.neighbors.grid import build_order
from viscera.timing import FRAME

DROP_ARRAYS = ("count", "position", "velocity", "volume", "fluid", "fate", "face", "barycentric", "late")
"""Arrays of `DropArrays` that are kept when drops are saved; the others are scratch."""


class Reservoir(Protocol):
    """What suction takes from besides film and drops: pools (`blood/pools`)."""

    view: Any
    """`PoolView`."""
    gone: Any
    """What has run off and what was sucked, int64, shape (2,) [pL]."""
    added: int
    """What was poured in from outside [pL]."""

    @property
    def count(self) -> int:
        """Columns."""
        ...

    def measure(self, stage: Stage, hands: Any, ring: Any) -> None:
        """Adds what is in reach to the rings around the tip."""

    def suck(self, stage: Stage, hands: Any, purse: Any, taken: Any) -> None:
        """Takes what the rings allow, and adds it to `taken`."""

    def catch(self, stage: Stage) -> None:
        """Takes the drops that fell into it in this step."""


class Catcher(Protocol):
    """What keeps the drops that hit cloth and instruments: stains (`blood/stains`)."""

    @property
    def sums(self) -> tuple[Any, Any, Any]:
        """What runs of cells of cloth and of instruments, and what gauze holds, int64 [pL]."""
        ...

    def begin(self, stage: Stage) -> None:
        """Where the instruments are now."""

    def catch(self, stage: Stage) -> None:
        """Takes those of this step."""


class Painter(Protocol):
    """What paints the trails of drops that slide (`blood/picture/trails.py`)."""

    def catch(self, stage: Stage) -> None:
        """Those of this step."""


@dataclass(eq=False)
class Drops:
    """Made by `make_drops`."""

    params: DropParams
    film: FilmParams
    device: Device
    dt: float
    """One step [s]."""
    state: DropArrays
    spare: DropArrays
    """Scratch: drops that close their ranks."""
    tree: LandingTree
    numbers: Any
    """`DropNumbers`, shape (1,): numbers that `set_drops` may change."""
    tools: Port
    """`Tools`, shape (1,); written by `set_tools`."""
    purse: Any
    """`Purse`, shape (1,): what tools are owed, and the number of the step, which draws the lots."""
    gone_count: Any
    """Drops that have left so far by fate, int64, shape (DROP_FATES,)."""
    gone_volume: Any
    """Their volume by fate, int64, shape (DROP_FATES,) [pL]."""
    film_view: Any
    """`FilmView`: the film that lets go and is joined, shape (film's capacity,) each."""
    queue: Any
    """`QueueView`: what waits to join it, shape (queue,) each."""
    flag: tuple[Any, Any]
    """Scratch: whom something happens to, int32, shape of the film and of the drops."""
    place: tuple[Any, Any]
    """Scratch: how many flags come before each, int32, shapes as `flag`."""
    ring: Any
    """Scratch: volumes in reach of suction, int64, shape (RINGS,) [pL]."""
    taken: Any
    """Scratch: what suction took in this step, int64, shape (1,) [pL]."""
    near: Near | None
    """The search for drops beside each other, where they hold together or merge."""
    pieces: tuple[Any, Any]
    """Scratch: pieces that each drop's splash adds, and how many come before, int32, shape of the drops."""
    surface: FilmSurface
    around: Any
    """`Around`: what they may hit besides the surface."""
    chosen: Any
    listed: Any
    """Scratch: the list of drops that meet something, int32, shape of the drops, and how many from either end, (2,)."""
    lists: bool
    """Whether such a list is made: on cuda, where drops that do different things beside each other wait for each
    other. Elsewhere only with one core."""
    stains: Catcher | None = None
    """Who keeps what hit that; `make_stains` puts itself here."""
    pools: Reservoir | None = None
    """Where fluid stands on it, for suction; `make_pools` puts itself here."""
    trails: Painter | None = None
    """Who paints where drops have slid; `make_trails` puts itself here."""


def make_drops(
    surface: FilmSurface,
    film: FilmParams,
    state: FilmState,
    params: DropParams | None = None,
    dt: float = FRAME,
    capacity: int = 8192,
) -> Drops:
    """No drops yet; room for `capacity`, one step is `dt` [s]."""
    params = params or DropParams()
    if not (math.isfinite(dt) and dt >= 0.0):
        raise InputError(f"dt = {dt} is not possible.", "It must be a finite number of 0 or more.")
    if not 1 <= capacity <= 2**24:
        raise InputError(f"capacity = {capacity} is not possible.", f"Allowed are 1 to {2**24} drops.")
    device = surface.device

    def integers(count: int, kind: Any = wp.int32) -> Any:
        return wp.zeros(count, dtype=kind, device=device.warp)

    drops = Drops(
        params,
        film,
        device,
        dt,
        make_drop_arrays(capacity, device),
        make_drop_arrays(capacity, device),
        make_landing(surface.vertices, surface.view.triangles, device),
        wp.zeros(1, dtype=DropNumbers, device=device.warp),
        device.port(1, Tools),
        wp.zeros(1, dtype=Purse, device=device.warp),
        integers(DROP_FATES, wp.int64),
        integers(DROP_FATES, wp.int64),
        film_view(state),
        queue_view(state),
        (integers(state.capacity), integers(capacity)),
        (integers(state.capacity), integers(capacity)),
        integers(tools.RINGS, wp.int64),
        integers(1, wp.int64),
        None,
        (integers(capacity), integers(capacity)),
        surface,
        nothing_around(device),
        integers(capacity),
        integers(2),
        device.is_cuda,
    )
    if params.cohesion > 0.0 or params.merge_speed > 0.0:
        box = _box(surface, params, film.gravity)
        drops.near = make_near(params, film.particle_volume, box, drops.state.count, capacity, device)
    set_drops(drops, params)
    return drops


def set_drops(drops: Drops, params: DropParams) -> None:
    """Changes parameters while programs run, all but `substeps`; drops that were made without neighbours have none."""
    if params.substeps != drops.params.substeps:
        raise InputError(f"substeps = {params.substeps} cannot change.", "Make new drops.")
    if (params.cohesion > 0.0 or params.merge_speed > 0.0) and drops.near is None:
        raise InputError("these drops do not know each other.", "Make them with cohesion or merge_speed above 0.")
    check_cohesion(params, drops.dt, drops.film.particle_volume)
    drops.params = params
    if drops.near is not None:
        set_near(drops.near, params)
    film = drops.film
    numbers: Any = DropNumbers()
    numbers.dt = numbers.exact_dt = drops.dt
    numbers.gravity = wp.vec3(*film.gravity)
    numbers.thickness = 6.0 * LITTLE / (math.pi * film.radius**2)
    numbers.hanging, numbers.overflow = params.hanging, params.overflow
    numbers.share = -math.expm1(-drops.dt / params.detach_time)
    numbers.lower, numbers.upper = _box(drops.surface, params, film.gravity)
    numbers.crowded, numbers.fullest = params.crowded, params.fullest
    numbers.volume = round(params.jet_volume / LITTLE) or film.little_volume
    names = [fluid.name for fluid in film.fluids]
    numbers.rinse = wp.vec4(*film.pure("saline" if "saline" in names else names[0]))
    numbers.spread = params.spread
    numbers.impact = _impact(params, film)
    numbers.seed = params.seed
    wp.copy(drops.numbers, wp.array([numbers], dtype=DropNumbers, device=drops.device.warp))


def _impact(params: DropParams, film: FilmParams) -> Any:
    impact: Any = ImpactNumbers()
    for name in ("drag", "bounce_speed", "restitution", "friction", "hysteresis", "scatter"):
        setattr(impact, name, getattr(params, name))
    impact.children = int(params.children)
    impact.least_volume = max(round(params.least_volume / LITTLE), 1)
    # No slower than the film's own clamp: a drop must not jump to a lower speed where it joins.
    impact.join_speed = film.max_speed if params.joins else 0.0
    return impact


def set_tools(
    drops: Drops,
    suction: ArrayLike | None = None,
    reach: float = 4.0e-3,
    suction_rate: float = 20.0e-6,
    nozzle: ArrayLike | None = None,
    nozzle_velocity: ArrayLike = (0.0, 0.0, 0.0),
    nozzle_rate: float = 5.0e-6,
) -> None:
    """Where suction and nozzle are in the next frame, None where there is none; lengths [m], rates [m³/s]. `nozzle` is
    the outlet, where drops begin: outside tissue."""
    for name, value in (("reach", reach), ("suction_rate", suction_rate), ("nozzle_rate", nozzle_rate)):
        if not (math.isfinite(value) and value >= 0.0):
            raise InputError(f"{name} = {value} is not possible.", "It must be a finite number of 0 or more.")
    tip, out = _vector("suction", suction), _vector("nozzle", nozzle)
    jet = _vector("nozzle_velocity", nozzle_velocity)
    hands = drops.tools.host[0]
    hands["suction"], hands["suction_reach"] = tip, 0.0 if suction is None else reach
    hands["suction_rate"] = 0.0 if suction is None else suction_rate / LITTLE
    hands["nozzle"], hands["nozzle_velocity"] = out, jet
    hands["nozzle_rate"] = 0.0 if nozzle is None else nozzle_rate / LITTLE


def step_drops(stage: Stage, drops: Drops) -> None:
    """One step of `drops.dt`: tools, what lets go, flight, impacts, sliding. Between two steps of the film."""
    stage.upload(drops.tools)
    if drops.stains is not None:
        drops.stains.begin(stage)
    fit_landing(stage, drops.tree)
    _use_nozzle(stage, drops)
    _suck(stage, drops)
    _let_go(stage, drops)
    for number in range(drops.params.substeps):
        _couple(stage, drops)
        _move(stage, drops, number)
    for keeper in (drops.stains, drops.pools):
        if keeper is not None:
            keeper.catch(stage)
    _close_ranks(stage, drops)
    remember_surface(stage, drops.tree)


def _once(stage: Stage, kernel: Any, args: list[Any], dim: int = 1) -> None:
    stage.once(lambda: wp.launch(kernel, dim=dim, inputs=args, device=stage.device.warp))


def _number(stage: Stage, flag: Any, place: Any) -> None:
    """How many flags come before each."""
    stage.once(lambda: wp.utils.array_scan(flag, place, inclusive=False))


def _use_nozzle(stage: Stage, drops: Drops) -> None:
    live, view = [drops.numbers, drops.tools.array], drops.state.view
    _once(stage, tools.begin, [*live, view, drops.purse, drops.ring, drops.taken])
    stage.launch(tools.spray, tools.JET, [*live, drops.purse, view])
    _once(stage, tools.book_spray, [drops.numbers, drops.purse, drops.state.count])


def _suck(stage: Stage, drops: Drops) -> None:
    hands, film, air = drops.tools.array, drops.film_view, drops.state.view
    took = [drops.numbers, hands, drops.purse]
    _once(stage, tools.measure_film, [hands, film, drops.ring], dim=film.capacity)
    threads = -(-air.capacity // air.chunk)
    _once(stage, tools.measure_drops, [hands, air, drops.ring], dim=threads)
    if drops.pools is not None:
        drops.pools.measure(stage, hands, drops.ring)
    _once(stage, tools.aim, [drops.ring, drops.purse])
    _once(stage, tools.suck_film, [*took, film, drops.taken], dim=film.capacity)
    _once(stage, tools.suck_drops, [*took, air, drops.taken], dim=threads)
    if drops.pools is not None:
        drops.pools.suck(stage, hands, drops.purse, drops.taken)
    _once(stage, tools.book_suck, [drops.taken, drops.purse])


def _let_go(stage: Stage, drops: Drops) -> None:
    flag, place, state = drops.flag[0], drops.place[0], drops.state
    stage.launch(kernels.choose_loose, len(flag), [drops.numbers, drops.tree.view, drops.purse, drops.film_view, flag])
    _number(stage, flag, place)
    stage.launch(kernels.let_go, len(flag), [drops.numbers, flag, place, drops.film_view, state.view])
    _once(stage, kernels.add_count, [state.capacity, flag, place, state.count])


def _couple(stage: Stage, drops: Drops) -> None:
    """Drops that hold together pull, and those that touch merge."""
    near, view, n = drops.near, drops.state.view, drops.state.capacity
    if near is None:
        return
    grid, original = near.cells.view, near.cells.original
    build_order(stage, near.grid, near.cells, drops.state.position)
    pair = [grid, original, view]
    dt = drops.dt / drops.params.substeps
    stage.launch(coupling.kick, n, [dt, near.cohesion, *pair, near.velocity])
    stage.launch(coupling.take_velocity, n, [near.velocity, view])
    stage.launch(coupling.find_partner, n, [near.merging, *pair, near.partner])
    stage.launch(coupling.merge, n, [near.partner, view])


def _move(stage: Stage, drops: Drops, number: int = 0) -> None:
    flag, place, view, tree = drops.flag[1], drops.place[1], drops.state.view, drops.tree.view
    pieces, before = drops.pieces
    landed = [drops.numbers, flag, place]
    time = [drops.dt / drops.params.substeps, int(number > 0)]
    ways = [drops.numbers, tree, drops.surface.view, drops.around, *time]
    out = [view, flag, pieces]
    if drops.lists:
        free = [drops.numbers, tree, drops.around, *time, *out, drops.chosen, drops.listed]
        stage.once(drops.listed.zero_)
        stage.launch(flight.fly_free, len(flag), free)
        stage.launch(flight.move_listed, len(flag), [*ways, drops.chosen, drops.listed, *out])
    else:
        threads, block = -(-view.capacity // view.chunk), max(BLOCK // view.chunk, 1)
        stage.launch(flight.move, threads, [*ways, *out], block)
    if drops.trails is not None:
        drops.trails.catch(stage)
    _number(stage, flag, place)
    stage.launch(kernels.join_film, len(flag), [*landed, tree, drops.film_view, view, drops.queue])
    _once(stage, kernels.book_landing, [*landed, drops.film_view, drops.queue])
    _number(stage, pieces, before)
    stage.launch(flight.splash, len(flag), [drops.numbers, tree, drops.purse, pieces, before, view])
    _once(stage, flight.count_pieces, [drops.numbers, pieces, before, view])


def _close_ranks(stage: Stage, drops: Drops) -> None:
    keep, place, state = drops.flag[1], drops.place[1], drops.state
    n, block = -(-state.capacity // state.chunk), max(BLOCK // state.chunk, 1)
    _once(stage, kernels.tally, [state.view, drops.gone_count, drops.gone_volume, keep], dim=n)
    _number(stage, keep, place)
    stage.launch(kernels.close_ranks, n, [keep, place, state.view, drops.spare.view], block)
    stage.launch(kernels.copy_back, n, [keep, place, drops.spare.view, state.view], block)
    _once(stage, kernels.set_count, [keep, place, state.count])


def _box(surface: FilmSurface, params: DropParams, gravity: ArrayLike) -> tuple[Any, Any]:
    """Corners of where drops may be [m]: around the organs, and high above them."""
    g = np.asarray(gravity, dtype=np.float64)
    up = -g / max(float(np.linalg.norm(g)), 1e-12)
    reach = np.maximum(params.highest * np.abs(up), params.box)
    lower = np.asarray(surface.lower) - np.where(up < 0.0, reach, params.box)
    upper = np.asarray(surface.upper) + np.where(up > 0.0, reach, params.box)
    return wp.vec3(*lower.tolist()), wp.vec3(*upper.tolist())


def _vector(name: str, values: ArrayLike | None) -> NDArray[np.float64]:
    vector = np.asarray((0.0, 0.0, 0.0) if values is None else values, dtype=np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise InputError(f"{name} = {values} is not possible.", "Give three finite numbers.")
    return vector
