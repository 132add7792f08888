"""When blood rests: film, drops, pools and their picture sleep while nothing happens to them.

Blood is disturbed while a vessel bleeds, a drop is in the air, suction or irrigation work, gauze is in the body,
something waits to join the film, the tissue moves, or a parameter of the film has changed. Else, once no more than
`CREEPING` of the film's particles, or `FEW`, have run for `CALM` frames, they take their turn in every `DROWSY`th frame
only; once none runs, in the pools neither, in no frame at all. A particle runs that is faster than `SLOW`, unless the
contact line of its patch holds it (`blood/patches.py`) and it is slower than `STEEP` of what runs down a wall. So what
still runs then runs slower, and what a contact line holds stays where it is; a wet trail does not dry. Volumes stay
exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.blood.columns import PoolView, depth_of, volume_in
from viscera.blood.drops.drops import Drops
from viscera.blood.film.film import Film
from viscera.blood.film.params import LITTLE
from viscera.blood.film.state import STAYS
from viscera.blood.patches import find_held
from viscera.blood.pools.flow import Pipes
from viscera.blood.pools.pools import STEPS, Pools
from viscera.blood.views import FilmView
from viscera.device import BLOCK, Stage
from viscera.instruments import Rinses, Soaks, Sucks
from viscera.world.system import Moment, Saved, System, having
from viscera.world.systems.wounds import Vessels

wp.set_module_options({"enable_backward": False})

SLOW = wp.constant(4.0e-3)
"""[m/s]; film that runs down a wall has 76 mm/s. A contact line holds a film of length L and thickness t where
σ (cos θ_r − cos θ_a) > ρ g t L sin θ: 12 cm of it on the slope where ours has this speed (docs/drops.md)."""
CREEPING, FEW = 0.2, 8
"""Part of the film's particles, or so many of them, that may be faster."""
STEEP = 1.0 / 3.0
"""Of the speed on a wall: on a slope of sin θ = ⅓ a line holds 16 to 20 mm of film."""
CALM = 12
"""Frames: 0.2 s."""
LOOK = 8
"""Frames from one look at the patches to the next."""
DROWSY = 8
"""Frames from one turn of blood that only creeps to the next; chosen."""
STILL = wp.constant(2.0e-5)
"""What tissue may move and still be at rest [m]."""
_LITTLE = wp.constant(LITTLE)
CHUNK = 64
"""Particles, vertices or columns per thread on cpu."""

FASTER, MOVED, RUNS, COUNT, QUEUE, AIR = range(6)
"""Entries of `Rest.found`: particles faster than `SLOW`; whether tissue has moved, and a pool runs; how many particles,
waiting ones and drops there are."""


@wp.kernel
def look_at_film(
    # params
    chunk: int,
    # in
    film: FilmView,
    queue_count: wp.array(dtype=wp.int32),
    drop_count: wp.array(dtype=wp.int32),
    # out
    found_out: wp.array(dtype=wp.int32),
):
    """Whole numbers: the sum is the same in any order. On cpu launched by one core, as atomics there are plain."""
    begin = wp.tid() * chunk
    faster = wp.int32(0)
    for i in range(begin, wp.min(begin + chunk, film.count[0])):
        if film.fate[i] == STAYS and wp.length(film.velocity[i]) > SLOW:
            faster += 1
    if faster > 0:
        wp.atomic_add(found_out, FASTER, faster)
    if begin == 0:
        found_out[COUNT] = film.count[0]
        found_out[QUEUE] = queue_count[0]
        found_out[AIR] = drop_count[0]


@wp.kernel
def look_at_tissue(
    first: int,
    # params
    chunk: int,
    # in
    vertices: wp.array(dtype=wp.vec3),
    # out
    seen_out: wp.array(dtype=wp.vec3),
    found_out: wp.array(dtype=wp.int32),
):
    """Several threads may write that it has moved. What has not moved far keeps the place where it was seen, so that a
    slow drift is noticed too."""
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, vertices.shape[0])):
        if not (wp.length(vertices[i] - seen_out[i]) < STILL):
            seen_out[i] = vertices[i]
            found_out[MOVED] = 1


@wp.func
def _runs(pool: PoolView, dt: float, passed: int, here: int, there: int) -> wp.bool:
    """Whether what passed between two columns in a step of dt was faster than `SLOW`, in the depth it came from."""
    result = bool(False)
    if passed != 0:
        depth = depth_of(pool, volume_in(pool, wp.where(passed > 0, here, there)))
        result = _LITTLE * wp.abs(float(passed)) > SLOW * dt * pool.side * depth
    return result


@wp.kernel
def look_at_pool(
    first: int,
    # params
    pool: PoolView,
    dt: float,
    # in
    pipes: Pipes,
    # out
    found_out: wp.array(dtype=wp.int32),
):
    begin = (first + wp.tid()) * pool.chunk
    if pool.wet[0] > 0:
        for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
            if _runs(pool, dt, pipes.right[i], i, i + 1) or _runs(pool, dt, pipes.back[i], i, i + pool.columns):
                found_out[RUNS] = 1


class Rest:
    """`awake` says whether blood takes its turn in this frame; those that ask are made with it."""

    def __init__(self, film: Film, drops: Drops, vessels: Vessels, pools: Pools | None = None) -> None:
        assert film.surface is not None
        self._film, self._drops, self._vessels, self._pools = film, drops, vessels, pools
        self._device = device = film.device
        self._chunk = 1 if device.is_cuda else CHUNK
        self._vertices, self._skins = film.surface.vertices, film.surface.parts
        self._seen = wp.clone(self._vertices)
        self.found = device.port(6, wp.int32)
        self._state = np.array([0, 1, 0, 0], dtype=np.int64)
        """Calm frames so far; whether it is awake; particles that ran at the last look; frames until the next one."""
        self._params: Any = film.params
        self._program = device.record(self._record, work=film.state.capacity)

    @property
    def awake(self) -> bool:
        return bool(self._state[1])

    def _record(self, stage: Stage) -> None:
        chunk, out = self._chunk, self.found.array
        film, drops = self._drops.film_view, self._drops.state
        counted = [chunk, film, self._drops.queue.count, drops.count, out]
        stage.clear(self.found)
        size = -(-film.capacity // chunk)
        stage.once(lambda: wp.launch(look_at_film, dim=size, inputs=counted, device=stage.device.warp))
        block, vertices = max(BLOCK // chunk, 1), len(self._vertices)
        stage.launch(look_at_tissue, -(-vertices // chunk), [chunk, self._vertices, self._seen, out], block)
        if self._pools is not None:
            pools = self._pools
            columns = -(-pools.count // pools.view.chunk)
            looked = [pools.view, pools.dt / STEPS, pools.pipes, out]
            stage.launch(look_at_pool, columns, looked, max(BLOCK // pools.view.chunk, 1))
        stage.download(self.found)

    def frame(self, now: Moment) -> None:
        self._program.run()
        self._device.synchronize()
        found = self.found.host
        disturbed = found[MOVED] or found[QUEUE] or found[AIR] or self._vessels.bleeds()
        wiped = any(tool.active for tool, _ in having(now.tools, Soaks))
        disturbed = disturbed or wiped or now.using(Sucks) or now.using(Rinses)
        disturbed = disturbed or self._params is not self._film.params
        self._params = self._film.params
        if disturbed:
            self._state[:] = 0, 1, found[FASTER], 0
            return
        running = self._running(int(found[FASTER]))
        self._state[0] = self._state[0] + 1 if running <= max(CREEPING * found[COUNT], FEW) else 0
        drowsy = self._state[0] > CALM
        creeps = running > 0 or found[RUNS] > 0
        self._state[1] = not drowsy or (creeps and now.frame % DROWSY == 0)

    def _running(self, faster: int) -> int:
        """Particles that run, of so many that are faster than `SLOW`; patches are looked at now and then."""
        if faster == 0:
            self._state[2:] = 0, 0
        elif self._state[3] > 0:
            self._state[3] -= 1
        else:
            self._state[2:] = self._look(), LOOK
        return min(int(self._state[2]), faster)

    def _look(self) -> int:
        state, params = self._film.state, self._film.params
        count = int(self.found.host[COUNT])
        velocity, place, normal = (
            array.numpy()[:count].astype(np.float64) for array in (state.velocity, state.position, state.normal)
        )
        speed = np.linalg.norm(velocity, axis=1)
        hysteresis, gravity = self._drops.params.hysteresis, np.array(params.gravity)
        held = find_held(place, normal, state.volume.numpy()[:count], params.radius, hysteresis, gravity)
        held &= speed < STEEP * params.wall_speed("blood")
        runs = (speed > float(SLOW)) & ~held & (state.fate.numpy()[:count] == int(STAYS))
        return int(runs.sum())

    def system(self) -> System[Rest]:
        """After `bleeding`, before all that asks."""

        def save() -> Saved:
            return {"state": self._state.copy(), "seen": self._seen.numpy().copy()}

        def load(saved: Saved) -> None:
            self._state[:] = saved["state"]
            self._seen.assign(saved["seen"])

        return System(
            name="rest",
            skins=self._skins,
            frame=self.frame,
            after=("wounds",),
            save=save,
            load=load,
            holds=self,
        )


def awake(rest: Rest | None) -> bool:
    """Whether to take a turn; always, where nobody watches over it."""
    return rest is None or rest.awake
