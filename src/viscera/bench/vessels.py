"""Fluid in a vessel of triangles: what the boundary costs, in three structures.

Rows `fluid, …`: a whole step of the fluid with contacts (gas equation, about 33 neighbours). Rows `contacts, …`: the
contact launch alone, for the same particles in the same flow. `floor_ratio` of those is over a launch that only reads
and writes the same arrays: 136 bytes per particle, 264 with a list of triangles, or the latency of a launch where that
is more.

Grahn's Figure 8.1 shows hashed grid against hierarchy (500 triangles, at most 40 neighbours) on a Core2 at 1.8 GHz; it
is a chart without a table. His text says that it is near Müller's 20 frames/s at 2 200 particles: that stands beside
ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import warp as wp

from viscera.anatomy.colon import colon
from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.device import Device, Stage
from viscera.geometry import TriangleMesh, build_query, signed_distance
from viscera.water.boundary.contacts import ContactParams, step_contacts
from viscera.water.boundary.known import Known, take_known
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.walls import Structure, aim_walls, make_walls, move_walls
from viscera.water.params import FluidParams, largest_step
from viscera.water.sph import step_fluid, step_work
from viscera.water.state import Fluid, make_fluid

wp.set_module_options({"enable_backward": False})

NAME = "vessels"

STRUCTURES: tuple[Structure, ...] = ("hashed", "hierarchy", "field")

FIGURE_SIZES = (500, 1000, 1500, 2200, 3000, 4096)
"""Particles for Grahn's Figure 8.1."""
FIGURE_TRIANGLES = 500
DOCUMENT = {2200: 20.0}
"""[steps/s]"""

GOAL = 8_000.0
"""Steps per second of 4 096 particles in 40 000 triangles on a large GPU."""

SETTLE = 3000
QUICK_SETTLE = 600
"""Steps before measuring, so that the fluid lies at the wall: 0.3 s and 0.06 s; `touching` says how much of it."""

FILLED = 0.5
"""Part of the vessel that the fluid fills."""


@wp.kernel
def pass_through(
    first: int,
    # in
    before: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    known: wp.array(dtype=Known),
    # out
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
    known_out: wp.array(dtype=Known),
    face_out: wp.array(dtype=wp.int32),
    kick_out: wp.array(dtype=wp.vec3),
):
    """What any contact launch must read and write."""
    i = first + wp.tid()
    x = position_out[i] + 0.0 * before[i]
    v = velocity_out[i]
    take_known(known, i, 0.0, 0.0, i, known_out)
    face_out[i] = tag[i]
    kick_out[i] = 0.0 * v
    position_out[i] = x
    velocity_out[i] = v


@dataclass(eq=False)
class Filled:
    fluid: Fluid
    vessel: Vessel


def filled(mesh: TriangleMesh, count: int, structure: Structure, device: Device) -> Filled:
    """A vessel whose lower half holds `count` particles, after some steps."""
    spacing = (FILLED * mesh.volume / count) ** (1 / 3)
    places = lower_half(mesh, count, spacing)
    low, high = (tuple(corner.tolist()) for corner in mesh.bounds)
    shape = FluidParams(
        spacing=spacing,
        lower=low,
        upper=high,
        dt=1e-6,
        kernels="spline",
        equation="gas",
        viscosity=0.05,
        sound_speed=20.0,
    )
    params = FluidParams(**{**shape.__dict__, "dt": 0.9 * largest_step(shape)})
    fluid = make_fluid(params, places, device)
    walls = make_walls(mesh, radius=0.5 * spacing, device=device, structure=structure)
    vessel = Vessel(fluid, walls, ContactParams(friction=0.1))
    fluid.boundaries.append(vessel)
    return Filled(fluid, vessel)


def lower_half(mesh: TriangleMesh, count: int, spacing: float) -> np.ndarray:
    """The lowest `count` places of a lattice inside the mesh, half a spacing from its wall; finer where there is no
    room."""
    low, high = mesh.bounds
    query = build_query(mesh)
    step = spacing
    while True:
        axes = [np.arange(a + 0.5 * step, b, step) for a, b in zip(low, high, strict=True)]
        places = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
        inside = places[signed_distance(query, places) < -0.5 * spacing]
        if len(inside) >= count:
            return inside[np.argsort(inside[:, 1], kind="stable")][:count]
        step *= 0.97


def headline(device: Device) -> Row:
    mesh = colon(triangles=8040)
    return pick(_rows(device, mesh, 4096, "hashed", quick=True), "hashed")


@benchmark(NAME, title="Fluid in a vessel: contacts with triangles in three structures", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    figure = colon(triangles=FIGURE_TRIANGLES)
    for count in (FIGURE_SIZES[-3],) if quick else FIGURE_SIZES:
        for structure in STRUCTURES:
            yield from _rows(device, figure, count, structure, quick, document=DOCUMENT.get(count))
    for triangles in (8040, 40_000):
        mesh = colon(triangles=triangles)
        # A field's nodes take seconds on cpu, so a quick run leaves them out there.
        for structure in STRUCTURES[:2] if quick and not device.is_cuda else STRUCTURES:
            goal = GOAL if device.is_cuda and triangles == 40_000 else None
            yield from _rows(device, mesh, 4096, structure, quick, goal=goal)
        yield _moving(device, mesh, quick)


def _rows(
    device: Device,
    mesh: TriangleMesh,
    count: int,
    structure: Structure,
    quick: bool,
    document: float | None = None,
    goal: float | None = None,
) -> Iterator[Row]:
    case = f"{len(mesh.triangles)} triangles, {structure}"
    both = filled(mesh, count, structure, device)
    fluid, contacts = both.fluid, both.vessel.contacts
    whole = device.record(lambda stage: step_fluid(stage, fluid), work=step_work(fluid))
    for _ in range(QUICK_SETTLE if quick else SETTLE):
        whole.run()
    repeats = 20 if quick else 100
    ms = median_ms(whole.run, device, repeats)
    touching = float((np.abs(contacts.kick.numpy()).max(axis=1) > 0.0).mean())
    lost = int((signed_distance(build_query(mesh), fluid.position.numpy()) >= 0.0).sum())
    extra = {"touching": round(touching, 3), "outside": lost, "launches": _launches(fluid, both.vessel)}
    yield timed(NAME, f"fluid, {case}", count, device, ms, document=document, goal=goal, extra=extra)
    # The same step's contacts again and again: positions are put back where they were without walls.
    wanted, rush = _unstopped(fluid)
    place, motion = wp.clone(wanted), wp.clone(rush)

    def alone(stage: Stage) -> None:
        stage.once(lambda: (wp.copy(place, wanted), wp.copy(motion, rush)))
        step_contacts(stage, contacts, fluid.count, both.vessel.dt, fluid.grid.position, place, motion, fluid.tag)

    def floor(stage: Stage) -> None:
        stage.once(lambda: (wp.copy(place, wanted), wp.copy(motion, rush)))
        arrays = [fluid.grid.position, fluid.tag, contacts.known, place, motion, contacts.last_known]
        stage.launch(pass_through, count, [*arrays, contacts.face, contacts.kick])

    contact_ms = median_ms(device.record(alone, work=step_work(fluid)).run, device, repeats)
    floor_ms = median_ms(device.record(floor, work=step_work(fluid)).run, device, repeats)
    extra = {"floor_ms": floor_ms, "touching": round(touching, 3)}
    yield timed(NAME, f"contacts, {case}", count, device, contact_ms, floor_ratio=contact_ms / floor_ms, extra=extra)


def _unstopped(fluid: Fluid) -> tuple[wp.array, wp.array]:
    """Where the last step would have ended without walls, and how fast."""
    count, dt = len(fluid.position), fluid.live.numpy()[0]["dt"]
    held, rate, before = fluid.held.numpy(), fluid.rate.numpy(), fluid.grid.position.numpy()
    velocity = held[:, :3] + dt * rate[:, :3]
    device = fluid.device.warp
    place = wp.array((before + dt * velocity)[:count], dtype=wp.vec3, device=device)
    return place, wp.array(velocity[:count], dtype=wp.vec3, device=device)


def _launches(fluid: Fluid, vessel: Vessel) -> int:
    """Launches of one step that are the boundary's."""
    counted = Stage(fluid.device, 0, 1, None)
    number = [0]

    def count(*_: object, **__: object) -> None:
        number[0] += 1

    counted.launch = count
    vessel.contact(counted, fluid)
    return number[0]


def _moving(device: Device, mesh: TriangleMesh, quick: bool) -> Row:
    """One frame of a wall that follows a skin: the table built once, corners moved 16 times."""
    walls = make_walls(mesh, radius=0.003, device=device, deforming=True, room=0.01)
    dt = wp.full(1, 1e-3, dtype=float, device=device.warp)
    wanted = wp.array(mesh.vertices * 1.002, dtype=wp.vec3, device=device.warp)

    def frame(stage: Stage) -> None:
        aim_walls(stage, walls, wanted)
        for _ in range(16):
            move_walls(stage, walls, dt, 16)

    ms = median_ms(device.record(frame, work=len(mesh.triangles)).run, device, 5 if quick else 20)
    return timed(NAME, f"moving wall, {len(mesh.triangles)} triangles, frame of 16", len(mesh.triangles), device, ms)
