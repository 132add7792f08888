"""Films of blood on the tissue of every world of a batch, in one recorded program.

    blood = batch.film(worlds, capacity=512)
    blood.add(points)                  # (places, 3) [m], in every world; or only in those of a mask
    worlds.step(10)
    blood.step()                       # the same 10 ms
    blood.volumes()                    # (worlds,) [m³]

Each film has the bits of `viscera.blood.film` by itself on the same surface. There are no obstacles and no drains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.batch import drawing, film_alone, film_blocks, flowing
from viscera.batch.batch import ACTION_TICKS, MOST_TICKS, Batch
from viscera.batch.film_rows import Moving, Resting
from viscera.blood.film.border import NEAR, locate
from viscera.blood.film.film import Film, make_film
from viscera.blood.film.params import LITTLE, FilmParams
from viscera.blood.film.state import BROKEN_NOW, FATES, STATUS
from viscera.blood.film.surface import make_surface
from viscera.device import Stage
from viscera.errors import InputError
from viscera.neighbors.grid import LANES
from viscera.timing import TICK
from viscera.world.systems.film import MIXINGS

SINGLE = {"count": 1, "queue_count": 1, "gone_count": FATES, "gone_volume": FATES, "status": STATUS}
"""Length of the rows that have no place for each particle."""
WHOLE_STEPS = 1e-6
"""How far ticks may be from a whole number of film steps, of a step."""


class Films:
    """Made by `batch.film`. Arrays have a row for each world, and in it a place for each particle; the first `count` of
    them are there."""

    def __init__(self, worlds: Batch, params: FilmParams, capacity: int, queue: int, ticks: int, fused: bool) -> None:
        self.worlds, self.params, self.ticks, self.fused = worlds, params, ticks, fused
        self.capacity, self.queue = _sixteens(capacity), _sixteens(queue)
        self.steps = _steps(params, ticks)
        device, self._organ = worlds.device, worlds.template.contents.organs[0]
        self.surface = make_surface(self._organ.body.mesh, device)
        """At rest; where each world's is are the rows of `vertices`."""
        self.one: Film = make_film(self.surface, params, self.capacity, device, queue=self.queue)
        """One film, empty, whose numbers all worlds share."""
        self._course = self._make_course()
        self._rest, self._moving = self._make_rest(), self._make_moving()
        self._drawn = drawing.Drawn()
        self._drawn.vertex = self._rest.vertex
        self._mask = wp.zeros(worlds.count, dtype=wp.int32, device=device.warp)
        device.load([flowing, drawing, film_alone if fused else film_blocks])
        self._feeders: list[Callable[[Stage], None]] = []
        self._step = device.record(self._record)
        dry = [self._mask, self._rest]
        self._dry = device.record(lambda stage: stage.launch(flowing.dry_worlds, worlds.count, dry), work=0)

    def _make_course(self) -> Any:
        made: Any = flowing.Course()
        made.view, made.grid = self.one.view, self.one.grid.view
        made.view.team = 1  # there are worlds enough: a thread for each particle
        made.walk, made.sheet = self.one.walk, self.one.maps
        made.fan_start, made.fan = self.surface.fan_start, self.surface.fan
        return made

    def _make_rest(self) -> Any:
        vertices, sizes = len(self.surface.vertices), dict(SINGLE)
        sizes |= {"vertex": vertices, "vertex_normal": vertices}
        return self._rows(Resting(), lambda name: sizes.get(name, self.queue if "queue" in name else self.capacity))

    def _make_moving(self) -> Any:
        cells = self.one.grid.view.lost + 2
        sizes = {"cell_start": cells, "count": 1, "listed": 1 if self.fused else self.capacity}
        return self._rows(Moving(), lambda name: sizes.get(name, self.capacity + LANES))

    def _rows(self, made: Any, size: Any) -> Any:
        for name, var in made._cls.vars.items():
            shape = (self.worlds.count, size(name))
            setattr(made, name, wp.zeros(shape, dtype=var.type.dtype, device=self.worlds.device.warp))
        return made

    # --- what goes in ---

    def add(self, points: ArrayLike, fluid: str = "blood", *, mask: Any = None, volume: float | None = None) -> None:
        """Particles for the next step at these points on the surface at rest [m], shape (places, 3) for all worlds or
        (worlds, places, 3), in the worlds of the mask. What cannot wait, of the last ones, is left out."""
        count, given = self.worlds.count, np.asarray(points, dtype=np.float64)
        if given.ndim == 2:
            given = np.broadcast_to(given, (count, *given.shape))
        if given.ndim != 3 or given.shape[0] != count or given.shape[2] != 3 or not np.isfinite(given).all():
            raise InputError(
                f"points have shape {np.shape(points)}, or are not finite.", f"Give (n, 3) or ({count}, n, 3)."
            )
        places = given.shape[1]
        face, weights, far = locate(self.surface, given.reshape(-1, 3))
        if far.max(initial=0.0) > NEAR * self.params.radius:
            raise InputError(
                f"a point is {far.max():g} m off the surface.", f"Give points within {NEAR * self.params.radius:g} m."
            )
        little = self.params.little_volume if volume is None else round(volume / LITTLE)
        device = self.worlds.device.warp
        self.worlds.write_mask(mask, self._mask)
        faces = wp.array(face.reshape(count, places), dtype=wp.int32, device=device)
        inside = wp.array(weights.reshape(count, places, 2), dtype=wp.vec2, device=device)
        poured = [self._course, self.queue, places, faces, inside, self._mask, little]
        args = [0, *poured, wp.vec4(*self.params.pure(fluid)), self._rest]
        wp.launch(flowing.pour_worlds, dim=count, inputs=args, device=device)

    def feed_with(self, record: Callable[[Stage], None]) -> None:
        """What is recorded in a step before films flow, with the surface where tissue is: it adds to their queues."""
        self._feeders.append(record)
        self._step = self.worlds.device.record(self._record)

    def step(self) -> None:
        """`ticks` milliseconds of all films, after as many of the worlds: the surface is where tissue is now."""
        self._step.run()

    def reset(self, mask: Any = None) -> None:
        """The worlds of the mask, or all, are without blood. The mask may be an array on the device, int32."""
        self.worlds.write_mask(mask, self._mask)
        self._dry.run()

    # --- what comes out ---

    @property
    def count(self) -> wp.array[Any]:
        """Particles of each world, int32, shape (worlds, 1)."""
        return self._rest.count

    @property
    def position(self) -> wp.array[Any]:
        """[m], shape (worlds, capacity) of three floats."""
        return self._rest.position

    @property
    def clot(self) -> wp.array[Any]:
        """Clotted part of each particle, float32, shape (worlds, capacity)."""
        return self._rest.clot

    @property
    def vertices(self) -> wp.array[Any]:
        """Of each world's surface as of the last step [m], shape (worlds, vertices) of three floats."""
        return self._rest.vertex

    @property
    def rows(self) -> Any:
        """The struct `Resting` of film_rows.py, for kernels."""
        return self._rest

    def volumes(self) -> NDArray[np.float64]:
        """Of all particles of each world [m³]; a copy."""
        there = np.arange(self.capacity) < self._rest.count.numpy()
        return LITTLE * np.where(there, self._rest.volume.numpy(), 0).sum(axis=1, dtype=np.int64).astype(np.float64)

    def broken(self) -> NDArray[np.bool_]:
        """Worlds in which a particle was no longer finite; a copy. They disturb no other; reset them."""
        return self._rest.status.numpy()[:, BROKEN_NOW] != 0

    @property
    def bytes_per_world(self) -> int:
        """Memory that each world's film adds [B]."""
        rows = [(Resting, self._rest), (Moving, self._moving)]
        return sum(getattr(made, name).capacity for kind, made in rows for name in kind.vars) // self.worlds.count

    # --- recording ---

    def _record(self, stage: Stage) -> None:
        worlds, organ = self.worlds, self._organ
        tissue, count, vertices = worlds.tissue, worlds.count, len(organ.rest)
        surface = [tissue.layout.slots, tissue.substeps, organ.rest, organ.places, organ.weights]
        stage.launch(drawing.follow_worlds, count * vertices, [*surface, worlds.rows, self._drawn])
        stage.launch(flowing.turn_normals, count * vertices, [self._course, vertices, self._rest])
        for feed in self._feeders:
            feed(stage)
        for part in range(MIXINGS):
            steps = self.steps * (part + 1) // MIXINGS - self.steps * part // MIXINGS
            mixes = steps if self.one.mixes else 0
            if steps and not self.fused:
                self._record_phases(stage, steps, mixes)
            elif steps:
                args = [self._course, steps, mixes, self.one.rates, self._rest, self._moving]
                stage.launch(film_alone.flow_worlds, count, args, block=1)

    def _record_phases(self, stage: Stage, steps: int, mixes: int) -> None:
        """Each phase a launch with a thread for each particle. On cpu with one core alone, for tests: atomics are plain
        there."""
        count, threads = self.worlds.count, self.capacity
        course, rates, rest, moving = self._course, self.one.rates, self._rest, self._moving
        shared, each = [course, threads], count * threads
        for number in range(steps):
            mixing = mixes if number == 0 else 0
            stage.launch(film_blocks.clear_cells, each, [*shared, moving])
            stage.launch(film_blocks.take_in_all, each, [*shared, rest, moving])
            stage.launch(film_blocks.add_up_cells, count, [course, moving])
            stage.launch(film_blocks.list_all, each, [*shared, rest, moving])
            stage.launch(film_blocks.arrange_all, each, [*shared, rates, rest, moving])
            stage.launch(film_blocks.settle_all, count, [course, rest, moving])
            for loop in (film_blocks.slow_all, film_blocks.crowd_all, film_blocks.part_all):
                stage.launch(loop, each, [*shared, rates, moving])
            if mixing:
                stage.launch(film_blocks.mix_all, each, [*shared, mixing, rates, moving])
            stage.launch(film_blocks.move_all, each, [*shared, mixing, rates, rest, moving])


def _sixteens(size: int) -> int:
    """Rows begin where vector loads like it."""
    return -(-size // LANES) * LANES


def _steps(params: FilmParams, ticks: int) -> int:
    if not 1 <= ticks <= MOST_TICKS:
        raise InputError(f"ticks = {ticks} is not possible.", f"Allowed are 1 to {MOST_TICKS}.")
    if params.dt <= 0.0 or params.springs or params.search != "grid":
        raise InputError(
            "a batch has films that move, without springs, in the sorted grid.", "Leave these settings as they are."
        )
    steps = ticks * TICK / params.dt
    if round(steps) < 1 or abs(steps - round(steps)) > WHOLE_STEPS * steps:
        raise InputError(
            f"{ticks} ms are {steps:g} steps of {params.dt:g} s.", "Take ticks that are a whole number of film steps."
        )
    return round(steps)


def film(
    worlds: Batch,
    *,
    params: FilmParams | None = None,
    capacity: int = 512,
    queue: int = 256,
    ticks: int = ACTION_TICKS,
    fused: bool | None = None,
) -> Films:
    """A film without blood on the tissue of every world, of at most `capacity` particles, `queue` of which can wait, in
    steps of `ticks` milliseconds. `fused` chooses one launch, a thread for each world, or one for each phase of a step;
    by default what is faster on the device."""
    if capacity < 1 or queue < 1:
        raise InputError(f"room for {min(capacity, queue)} particles is not possible.", "Give at least 1.")
    one_launch = not worlds.device.is_cuda if fused is None else fused
    if not one_launch and not worlds.device.is_cuda and worlds.device.cores > 1:
        raise InputError("phases of a film on cpu work on one core only.", "Leave `fused` out, or take cores=1.")
    return Films(worlds, params or FilmParams(), capacity, queue, ticks, one_launch)
