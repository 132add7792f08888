"""Drops: 400, the document's demo, to a million, falling onto a sheet over Perlin noise, bouncing, splashing, sliding.

Every drop of a row is there in every step: they do not join a film, and begin anew before each measurement. What is
timed is a whole step of 16 ms: tools, flight against all triangles, impacts, sliding, closing ranks. With `snapshot`
the positions and velocities that a page gets are made and read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from viscera import anatomy
from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.blood.drops.drops import DropParams, Drops, make_drops, step_drops
from viscera.blood.film.params import FilmParams
from viscera.blood.film.state import allocate_state
from viscera.blood.film.surface import make_surface
from viscera.device import Device
from viscera.world.systems.drops import show_drops

NAME = "drops"

DOCUMENT = 400
"""Drops that Andersson's demo has at most (§4.2); he gives no times."""
SIZES = (DOCUMENT, 4_000, 20_000, 100_000, 1_000_000)
SMOOTH = 100.0
"""Steps per second that two cores should reach with 20 000 drops, simulation and snapshot."""
MANY = 1_000.0
"""Steps per second that one large GPU should reach with a million."""
BYTES_PER_DROP = 2 * 72
"""Least traffic of a drop in a step: all that it is, read and written."""
STEPS = 6
"""Between two beginnings."""


def headline(device: Device) -> Row:
    return pick(_rows(device, (20_000,)), "step and snapshot")


@benchmark(NAME, title="Drops over a Perlin sheet: flight, impacts, sliding", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    yield from _rows(device, SIZES[:3] if quick else SIZES)


def _rows(device: Device, sizes: tuple[int, ...]) -> Iterator[Row]:
    for count in sizes:
        rain = Rain(device, count)
        repeats, warmup = (3, 1) if count > 50_000 else (15, 3)
        for case, seen in (("step", False), ("step and snapshot", True)):
            rain.again()
            ms = median_ms(lambda rain=rain, seen=seen: rain.fall(seen), device, repeats, warmup) / STEPS
            goal = MANY if device.is_cuda and count == SIZES[-1] and not seen else None
            if not device.is_cuda and count == 20_000 and seen:
                goal = SMOOTH
            extra = {"floor_bytes": BYTES_PER_DROP * count, "ns_per_drop": 1e6 * ms / count}
            yield timed(NAME, case, count, device, ms, goal=goal, extra=extra)


class Rain:
    """Drops over a sheet that can fall again and again."""

    def __init__(self, device: Device, count: int) -> None:
        film, room = FilmParams(), count + count // 8
        surface = make_surface(anatomy.sheet().mesh, device)
        self.count = count
        self.drops = make_drops(surface, film, allocate_state(4, 4, device), DropParams(joins=False), capacity=room)
        self.start = _throw(self.drops, count)
        self.shown = wp.zeros(room, dtype=wp.vec4, device=device.warp)
        show = [film.fluid("blood"), self.drops.state.view, self.shown]
        self.program = device.record(lambda stage: step_drops(stage, self.drops), work=room)
        self.show = device.record(lambda stage: stage.launch(show_drops, room, show), work=room)

    def again(self) -> None:
        for array, first in self.start:
            wp.copy(array, first)
        self.drops.state.count.fill_(self.count)

    def fall(self, seen: bool) -> None:
        """`STEPS` steps, and as many snapshots, from the beginning."""
        self.again()
        for _ in range(STEPS):
            self.program.run()
            if seen:
                self.show.run()
                there = int(self.drops.state.count.numpy()[0])
                self.shown.numpy()[:there].copy()
                self.drops.state.velocity.numpy()[:there].copy()


def _throw(drops: Drops, count: int) -> list[tuple[Any, Any]]:
    """Drops up to 8 cm over the sheet with up to 2 m/s; what they begin with, to begin again."""
    rng = np.random.default_rng(1)
    state = drops.state
    place = np.zeros((state.capacity, 3), dtype=np.float32)
    velocity = np.zeros((state.capacity, 3), dtype=np.float32)
    place[:count] = rng.uniform((-0.05, -0.038, 0.026), (0.05, 0.038, 0.106), (count, 3))
    velocity[:count] = rng.normal(0.0, 0.7, (count, 3))
    state.position.assign(place)
    state.velocity.assign(velocity)
    state.volume.fill_(drops.film.little_volume)
    state.fluid.fill_(wp.vec4(1.0, 0.0, 0.0, 0.0))
    names = ("position", "velocity", "volume", "fluid", "fate", "late")
    return [(getattr(state, name), wp.clone(getattr(state, name))) for name in names]
