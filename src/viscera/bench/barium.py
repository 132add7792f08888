"""X-ray pictures, and the barium study at its heaviest.

`picture` rows: a trunk, a colon of 40 000 triangles and 4 096 particles, 512 × 512 pixels, with scatter, noise, blur
and 8 energies: with a C-arm that stands still (what does not move is kept) and one that turns. `volume` row: 256³
voxels from a C-arm that turns, 1024 × 1024 pixels. `scenario`: frames of 16 ms with all of the suspension let
in, in a rigid wall, in one that waves run along, and in a lattice.
`processor_ms` is what the process's cores were busy, waiting for each other included.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import warp as wp

from viscera import xray
from viscera.anatomy import colon, torso
from viscera.bench.registry import Row, benchmark, timed
from viscera.device import Device, open_device
from viscera.inputs import SetParameter
from viscera.scenarios import make
from viscera.timing import TICKS_PER_FRAME
from viscera.world.systems.enema import AIMED
from viscera.xray import CArm, Cloud, Scene, Solid, Xray, XrayParams
from viscera.xray.materials import AIR, SOFT_TISSUE, barium_suspension
from viscera.xray.volume import scan

NAME = "barium"
PARTICLES = 4_096
SUSPENSION = 500e-6
"""[m³]"""
WALLS = ("rigid", "moved", "lattice")
"""Choices of the scenario's setting `structure`."""
BUDGET = 13.0
"""What all systems together may take on one core beside the ticks [ms]."""


def headline(device: Device) -> Row:
    return _picture(device, turning=False, repeats=10)


@benchmark(NAME, title="X-ray pictures and the barium study", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    repeats = 10 if quick else 40
    for turning in (False, True):
        yield _picture(device, turning=turning, repeats=repeats)
    yield _volume(device, 64 if quick else 256, 256 if quick else 1024, 3 if quick else 10)
    if not device.is_cuda:
        yield _study(open_device("cpu", cores=1), 20 if quick else 120)
    if device.is_cuda or device.cores > 1:
        for wall in WALLS:
            yield _study(device, 20 if quick else 120, wall)


def _picture(device: Device, *, turning: bool, repeats: int) -> Row:
    trunk, tube = torso(), colon(0, 40_000)
    rng = np.random.default_rng(0)
    points = 0.97 * tube.vertices[rng.integers(len(tube.vertices), size=PARTICLES)]
    place = wp.array(points.astype(np.float32), dtype=wp.vec3, device=device.warp)
    count = wp.array([PARTICLES], dtype=wp.int32, device=device.warp)
    one = SUSPENSION / PARTICLES
    scene = Scene(
        [
            Solid(trunk.vertices, trunk.triangles, SOFT_TISSUE),
            Solid(tube.vertices, tube.triangles, AIR, displaces=SOFT_TISSUE),
        ],
        [Cloud(place, count, one, 1.5 * one ** (1 / 3), barium_suspension(400.0))],
    )
    machine = xray.make(scene, XrayParams(), device=device)
    xray.settle(machine)
    case = f"picture, 512 × 512, 40 000 triangles, C-arm {'turns' if turning else 'stands still'}"
    goal = 500.0 if device.is_cuda else 10.0 if turning else 30.0
    return _exposed(machine, case, PARTICLES, repeats, turning=turning, goal=goal)


def _volume(device: Device, side: int, pixels: int, repeats: int) -> Row:
    at = (np.arange(side) - 0.5 * (side - 1)) * 0.3 / side
    x, y, z = np.meshgrid(at, at, at, indexing="ij")
    hounsfield = np.where(x**2 + y**2 + z**2 < 0.13**2, 40.0 + 30.0 * np.sin(200.0 * x), -1000.0)
    affine = np.diag([0.3 / side] * 3 + [1.0])
    affine[:3, 3] = at[0]
    scene = Scene(scans=[scan(hounsfield, affine, step=0.3 / side)])
    machine = xray.make(scene, XrayParams(arm=CArm(pixels=pixels)), device=device)
    xray.settle(machine, 1)
    case = f"volume of {side}³ voxels, {pixels} × {pixels}, C-arm turns"
    return _exposed(machine, case, side**3, repeats, turning=True, goal=200.0 if device.is_cuda else None)


def _exposed(machine: Xray, case: str, size: int, repeats: int, *, turning: bool, goal: float | None) -> Row:
    taken = np.zeros((repeats, 2))
    home = machine.arm
    for k in range(repeats):
        start, busy = time.perf_counter(), time.process_time()
        if turning:
            xray.aim(machine, CArm(primary=0.5 * (k + 1), pixels=home.pixels))
        xray.expose(machine)
        taken[k] = time.perf_counter() - start, time.process_time() - busy
    xray.check(machine)
    extra = {"processor_ms": float(1e3 * np.median(taken[:, 1])), "cores": machine.device.cores}
    return timed(NAME, case, size, machine.device, float(1e3 * np.median(taken[:, 0])), goal=goal, extra=extra)


def _study(device: Device, frames: int, wall: str = "rigid") -> Row:
    """A wall that moves has waves; it is aimed every fourth frame, so that four count as one."""
    world = make("barium", device=device, seed=0)
    world.contents.heaviest()
    moves = wall != "rigid"
    settings = {"beam": 1.0, "structure": float(WALLS.index(wall)), "waves": 30.0 if moves else 0.0}
    for name, value in settings.items():
        world.set_now(SetParameter(name, value))
    world.step(40 * TICKS_PER_FRAME)
    taken = np.zeros((frames // AIMED, 2))
    for k in range(len(taken)):
        start, busy = time.perf_counter(), time.process_time()
        world.step(AIMED * TICKS_PER_FRAME)
        taken[k] = time.perf_counter() - start, time.process_time() - busy
    taken /= AIMED
    particles = int(world.system("barium").holds.fluid.count.numpy()[0])
    world.close()
    whole, processor = (float(one) for one in 1e3 * np.median(taken, axis=0))
    cores = "" if device.is_cuda else f", {device.cores} core{'s' * (device.cores > 1)}"
    extra = {"processor_ms": processor, "p99_ms": float(np.percentile(1e3 * taken[:, 0], 99))}
    how = {"rigid": "", "moved": ", waves run", "lattice": ", waves of a lattice run"}[wall]
    case = f"scenario, a frame with all let in{how}{cores}"
    return timed(NAME, case, particles, device, whole, goal=1000.0 / BUDGET, extra=extra)
