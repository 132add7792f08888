"""Water in tubes of triangles: a parabola (Poiseuille), and a wave of the wall that carries it along (peristalsis)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from verify.water_cases import WATER, at_largest_step
from viscera import water
from viscera.device import Device, Stage
from viscera.geometry.mesh import TriangleMesh
from viscera.tissue.hollow import closing_tension, make_hollow, step_hollow
from viscera.water import ContactParams, FluidParams

FloatArray = NDArray[np.float64]

PARTS = 4
"""Steps of the fluid in which a wall comes to where it was aimed."""


def tube(radius: Callable[[FloatArray], FloatArray], low: float, high: float, edge: float) -> TriangleMesh:
    """A closed tube along z from `low` to `high` [m] with `radius(z)`, triangles about `edge` long; as wide as a prism
    of its sides must be to hold as much as the round tube."""
    z = np.linspace(low, high, max(2, math.ceil((high - low) / edge)) + 1)
    sides = max(24, math.ceil(2.0 * math.pi * float(radius(z).max()) / edge))
    angle = 2.0 * math.pi * np.arange(sides) / sides
    wide = radius(z) / math.sqrt(math.sin(2.0 * math.pi / sides) / (2.0 * math.pi / sides))
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = np.concatenate([wide[:, None, None] * ring, np.broadcast_to(z[:, None, None], (len(z), sides, 1))], axis=2)
    vertices = np.concatenate([rings.reshape(-1, 3), [[0.0, 0.0, low], [0.0, 0.0, high]]])
    k, j = (one.ravel() for one in np.meshgrid(np.arange(len(z) - 1), np.arange(sides), indexing="ij"))
    a, b = k * sides + j, k * sides + (j + 1) % sides
    c, d = a + sides, b + sides
    first, last, after = len(vertices) - 2, len(vertices) - 1, (np.arange(sides) + 1) % sides
    base = (len(z) - 1) * sides
    caps = [
        np.stack([np.full(sides, first), after, np.arange(sides)], axis=1),
        np.stack([np.full(sides, last), base + np.arange(sides), base + after], axis=1),
    ]
    triangles = np.concatenate([np.stack([a, b, d], axis=1), np.stack([a, d, c], axis=1), *caps])
    return TriangleMesh(vertices, triangles.astype(np.int32), "tube")


def filled_tube(
    device: Device, radius: Callable[[FloatArray], FloatArray], params: FluidParams, belt: float
) -> tuple[water.Fluid, float]:
    """Water in a tube that repeats along z, whose surface runs along with `belt` [m/s]; and its volume [m³] in a
    period."""
    s, low, high = params.spacing, params.lower[2], params.upper[2]
    z = np.linspace(low, high, 2001)
    volume = float(np.trapezoid(math.pi * radius(z) ** 2, z))
    beyond = 1.5 * params.radius
    mesh = tube(radius, low - beyond, high + beyond, 0.7 * s)
    start = _rings(radius, params)
    fluid = water.make(params, start, device=device, velocities=np.tile([0.0, 0.0, belt], (len(start), 1)))
    walls = water.make_walls(mesh, radius=0.3 * s, device=device, structure="field")
    water.add_wall_density(fluid, walls)
    water.add_wall_drag(fluid, walls, (0.0, 0.0, belt))
    water.add_vessel(fluid, walls, ContactParams(friction=0.0))
    return fluid, volume


def _rings(radius: Callable[[FloatArray], FloatArray], params: FluidParams) -> FloatArray:
    """Places a spacing apart in layers of rings, the outermost half a spacing from the wall."""
    s, rng = params.spacing, np.random.default_rng(3)
    layers = round((params.upper[2] - params.lower[2]) / s)
    places = []
    for z in params.lower[2] + (np.arange(layers) + 0.5) * (params.upper[2] - params.lower[2]) / layers:
        wide = float(radius(np.array([z]))[0])
        rings = max(1, round(wide / s))
        for k in range(rings):
            # Ring k holds what lies between k and k + 1 parts of the radius.
            inner, outer = wide * k / rings, wide * (k + 1) / rings
            number = max(1, round(math.pi * (outer**2 - inner**2) / s**2))
            angle = 2.0 * math.pi * (np.arange(number) + rng.uniform()) / number
            away = 0.0 if number == 1 else 0.5 * (inner + outer)
            places.append(np.stack([away * np.cos(angle), away * np.sin(angle), np.full(number, z)], axis=1))
    return np.concatenate(places)


def poiseuille_tube(device: Device, across: int, **more: Any) -> dict[str, Any]:
    """Flow through a tube of 20 mm, `across` particles wide, driven by a body force at Re 1: u = U (1 − r²/a²)."""
    a, peak, viscosity = 0.01, 0.05, 0.5
    s = 2.0 * a / across
    length = s * max(6, across // 2)
    drive = 4.0 * viscosity * peak / (WATER * a**2)
    params = FluidParams(
        spacing=s, lower=(-a - s, -a - s, 0.0), upper=(a + s, a + s, length), dt=0.0, viscosity=viscosity,
        gravity=(0.0, 0.0, drive), periodic=(False, False, True), suction=True, sound_speed=20.0 * peak,
        background=0.02 * WATER * (20.0 * peak) ** 2, **more,
    )  # fmt: skip
    params = at_largest_step(params)
    fluid, volume = filled_tube(device, lambda z: np.full_like(z, a), params, 0.0)
    steps = math.ceil(1.2 * a**2 * WATER / viscosity / params.dt)  # the slowest mode has decayed by exp(−5.78 · 1.2)
    device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid)).run(steps)
    water.check(fluid)
    found = water.particles(fluid)
    r, u = np.hypot(*found["position"][:, :2].T), found["velocity"][:, 2]
    truth = peak * (1.0 - (r / a) ** 2)
    flow = float(u.mean()) * volume / length
    return {
        "error": float(np.abs(u - truth).max() / peak), "rms": float(np.sqrt(np.mean((u - truth) ** 2)) / peak),
        "flow": flow / (0.5 * math.pi * a**2 * peak), "r": r, "u": u, "steps": steps, "count": len(r),
        "density": found["density"], "outside": int((r > a).sum()),
    }  # fmt: skip


def shapiro(phi: float) -> float:
    """Mean flow over πa²c that a long wave of amplitude φa carries through a tube at low Reynolds number and no rise of
    pressure (Shapiro, Jaffrin and Weinberg 1969, doi:10.1017/S0022112069000899): all there is at φ = 1."""
    return phi**2 * (16.0 - phi**2) / (2.0 * (2.0 + 3.0 * phi**2))


def pressure_range(r: FloatArray, length: float, viscous: float) -> float:
    """Highest less lowest pressure [Pa] along a long wave that rises none in all, with `viscous` = μc:
    dp/dz = −8μ(q + πr²c)/πr⁴ in the frame of the wave."""
    step = length / (len(r) - 1)
    q = -math.pi * float((1.0 / r[1:] ** 2).sum() / (1.0 / r[1:] ** 4).sum())  # over c
    pressure = np.cumsum(-8.0 * viscous * (q + math.pi * r**2) / (math.pi * r**4)) * step
    return float(np.ptp(pressure))


def uphill_flow(phi: float, head: float) -> float:
    """The same, over πa²c, where each wave lifts against a body force: `head` is ρgλ over 8μcλ/a². The long wave's
    dp/dz = −8μ(q + πr²c)/πr⁴, summed over a wave, gives as much."""
    r = 1.0 + phi * np.cos(np.linspace(0.0, 2.0 * math.pi, 4001)[1:])
    q = -(head + float((1.0 / r**2).mean())) / float((1.0 / r**4).mean())
    return q + float((r**2).mean())


class PrescribedWave:
    """a (1 + φ cos 2π(z − ct)/λ), whatever the water does."""

    def __init__(self, a: float, c: float, phi: float, length: float) -> None:
        self._a, self._c, self._phi, self._length = a, c, phi, length
        self._time = 0.0

    def advance(self, time: float) -> None:
        self._time += time

    def radius(self, z: FloatArray) -> FloatArray:
        return self._a * (1.0 + self._phi * np.cos(2.0 * math.pi * (z - self._c * self._time) / self._length))


class LatticeWave:
    """The wall is a lattice (tissue/hollow.py) whose muscle is to close it to the same wave; it lags and is stiff."""

    def __init__(self, a: float, c: float, phi: float, length: float, step: float, device: Device) -> None:
        """`step` [s] is how far one `advance` goes."""
        self._c, self._length, self._wide, self._time = c, length, a * (1.0 + phi), 0.0
        self._share = phi / (1.0 + phi)
        sides = 16
        self._count = round(length * sides / (2.0 * math.pi * self._wide)), sides
        self._z = length * np.arange(self._count[0]) / self._count[0]
        angle = 2.0 * math.pi * np.arange(sides) / sides
        ring = self._wide * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
        rest = ring[None] + self._z[:, None, None] * np.array([0.0, 0.0, 1.0])
        self._hollow = make_hollow(rest, period=(0.0, 0.0, length), device=device)
        self._program = device.record(lambda stage: step_hollow(stage, self._hollow, step))
        settling = math.ceil(8.0 * self._hollow.params.time / step)
        for _ in range(settling):  # the wave stands until the wall has come to it
            self._squeeze()
        self._read()

    def _squeeze(self) -> None:
        h = self._hollow
        share = self._share * (1.0 - np.cos(2.0 * math.pi * (self._z - self._c * self._time) / self._length))
        tension = closing_tension(h.params, np.full_like(self._z, self._wide), share)
        h.tension.assign(np.repeat(tension, self._count[1]).astype(np.float32))
        self._program.run()
        h.device.synchronize()

    def _read(self) -> None:
        place = self._hollow.place.numpy().astype(np.float64).reshape(*self._count, 3)
        self._radii = np.linalg.norm(place[..., :2], axis=-1).mean(axis=1)

    def advance(self, time: float) -> None:
        self._time += time
        self._squeeze()
        self._read()

    def radius(self, z: FloatArray) -> FloatArray:
        return np.interp(z, self._z, self._radii, period=self._length)


def peristalsis(
    device: Device, phi: float, across: int, *, waves: float = 10.0, turns: float = 2.0, head: float = 0.0,
    lattice: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """A wave runs along a tube of radius a, `across` particles wide, with λ = `waves` a, for `turns` a/c from rest. The
    wall moves to and from the axis; Re = (c a/ν)(a/λ) = 0.1. `head`: a body force against it (`uphill_flow`). The wall
    is prescribed, or a `lattice`; the truth is that of the radii it has."""
    a, c = 0.01, 0.01
    s, length = 2.0 * a / across, waves * a
    viscosity = WATER * c * a
    # Water gives way by 1 % of the range of pressure.
    shape = PrescribedWave(a, c, phi, length)
    pressures = pressure_range(shape.radius(np.linspace(0.0, length, 2001)), length, viscosity * c)
    sound = math.sqrt(pressures / WATER / 0.01)
    params = FluidParams(
        spacing=s, lower=(-2.0 * a, -2.0 * a, 0.0), upper=(2.0 * a, 2.0 * a, length), dt=0.0, viscosity=viscosity,
        gravity=(0.0, 0.0, -head * 8.0 * viscosity * c / (WATER * a**2)), periodic=(False, False, True), suction=True,
        sound_speed=sound, fastest=2.0 * c, background=0.02 * WATER * sound**2,
    )  # fmt: skip
    params = at_largest_step(params)
    step = PARTS * params.dt
    wave = LatticeWave(a, c, phi, length, step, device) if lattice else shape
    beyond = 1.5 * params.radius
    mesh = tube(lambda z: np.full_like(z, a), -beyond, length + beyond, 0.7 * s)
    z = mesh.vertices[:, 2]

    def wall() -> FloatArray:
        wide = wave.radius(z) / a
        return mesh.vertices * np.stack([wide, wide, np.ones_like(z)], axis=1)

    fluid = water.make(params, _rings(wave.radius, params), device=device)
    walls = water.make_walls(
        TriangleMesh(wall(), mesh.triangles, "tube"), radius=0.3 * s, device=device, reach=params.radius,
        deforming=True, room=2.0 * phi * a,
    )  # fmt: skip
    fluid.boundaries.append(water.MovingWallVolume(fluid, walls, drags=True, curvature=1.0 / a))
    water.add_vessel(fluid, walls, ContactParams(friction=0.0), moving=True, parts=PARTS)
    wanted = wp.array(wall(), dtype=wp.vec3, device=device.warp)

    def frame(stage: Stage) -> None:
        water.aim_walls(stage, walls, wanted)
        for _ in range(PARTS):
            water.step(stage, fluid)

    program = device.record(frame, work=water.work(fluid))
    fine = wave.radius(np.linspace(0.0, length, 2001)[1:])
    mean = float(fine.mean())
    reached = 0.5 * float(np.ptp(fine)) / mean
    frames = math.ceil(turns * a / c / step)
    room = math.pi * float((fine**2).mean())  # of the tube, per length
    flows = []
    for k in range(frames):
        wave.advance(step)
        wanted.assign(wall().astype(np.float32))
        program.run()
        flows.append(float(water.particles(fluid)["velocity"][:, 2].mean()) * room / (math.pi * mean**2 * c))
        if k % 10 == 0:
            water.check(fluid)
    found = water.particles(fluid)
    away = np.hypot(*found["position"][:, :2].T)
    return {
        "flow": float(np.mean(flows[-frames // 3 :])), "truth": uphill_flow(reached, head * (mean / a) ** 2),
        "phi": reached, "flows": np.array(flows), "steps": frames * PARTS, "count": len(away),
        "outside": int((away > wave.radius(found["position"][:, 2])).sum()),
        "denser": float(np.abs(found["density"] / WATER - 1.0).max()),
    }  # fmt: skip
