"""Experiments with smoothed particles, of any size: the tests run them small, sph.py at full size.

Each returns what a laboratory would measure, beside the truth.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from viscera.device import Device
from viscera.geometry import TriangleMesh
from viscera.geometry.primitives import box
from viscera.water.boundary.boundary_particles import BoundaryParams, BoundaryParticles
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.walls import make_walls
from viscera.water.params import FluidParams, largest_step
from viscera.water.shifting import Shifting
from viscera.water.smoothing import make_smoothing, spline
from viscera.water.sph import step_fluid, step_work
from viscera.water.state import Fluid, make_fluid, particles, set_params
from viscera.water.tension import NO_PRESSURE, pair_strength
from viscera.water.walls import block, box_walls

GRAVITY = 9.81
"""[m/s²]"""
WATER = 1000.0
"""[kg/m³]"""


def at_largest_step(params: FluidParams) -> FluidParams:
    """With the longest stable step, a little less."""
    return replace(params, dt=0.95 * largest_step(params))


def run(fluid: Fluid, steps: int) -> None:
    program = fluid.device.record(lambda stage: step_fluid(stage, fluid), work=step_work(fluid))
    for _ in range(steps):
        program.run()
    fluid.device.synchronize()


# --- water at rest ---------------------------------------------------------------------------------------------------


def tank(device: Device, layers: int, dimension: int, height: float = 0.2, **more: Any) -> tuple[Fluid, float]:
    """Water `layers` particles deep, half as wide, in a tank of wall particles, starting with a lattice."""
    spacing = height / layers
    wide = spacing * (layers // 2)
    upper = (wide, 1.5 * height) if dimension == 2 else (wide, 1.5 * height, wide)
    lower = (0.0,) * dimension
    options: dict[str, Any] = {
        "kernels": "spline",
        "equation": "tait",
        "sound_speed": 10.0 * math.sqrt(2 * GRAVITY * height),
    }
    params = FluidParams(spacing=spacing, lower=lower, upper=upper, dt=0.0, dimension=dimension, **(options | more))
    params = at_largest_step(params)
    sides = ("+y",)
    walls = box_walls(lower, upper, spacing, params.radius, open_sides=sides)
    filled = (wide, height) if dimension == 2 else (wide, height, wide)
    return make_fluid(params, block(lower, filled, spacing), device, walls=walls), height


def hydrostatic(fluid: Fluid, height: float, seconds: float) -> dict[str, float]:
    """Lets the water settle under strong viscosity and compares pressure with ρ g (H − y), H the height of filling.

    Pressure is a field smoothed by the kernel, so it is read as one: at points in the middle of the tank, the mean over
    particles weighted by W, from one R above the floor to one R below the surface."""
    params = fluid.params
    thick = VISCOUS_SHARE * params.rest_density * params.spacing**2 / params.dt
    set_params(fluid, replace(params, viscosity=max(thick, params.viscosity)))
    run(fluid, math.ceil(seconds / params.dt))
    found = particles(fluid)
    x, most = found["position"].astype(np.float64), WATER * GRAVITY * height
    probes = np.linspace(params.radius, height - params.radius, 25)
    middle = 0.5 * (np.asarray(params.lower) + np.asarray(params.upper))
    errors = []
    for y in probes:
        point = np.pad(middle, (0, 3 - len(middle)))
        point[1] = y
        w = spline(np.sqrt(((x - point) ** 2).sum(axis=1)), params.radius, params.dimension)
        depth = height - (w * x[:, 1]).sum() / w.sum()  # of the particles that were read
        errors.append((w * found["pressure"]).sum() / w.sum() - WATER * GRAVITY * depth)
    return {
        "rms": float(np.sqrt(np.mean(np.square(errors))) / most),
        "worst": float(np.abs(errors).max() / most),
        "speed": float(np.abs(found["velocity"]).max()),
    }


def still_in_triangles(device: Device, layers: int, seconds: float, height: float = 0.2) -> dict[str, float]:
    """The same water in a closed box of triangles, which are contacts and add nothing to density.

    It draws together at the walls, so the truth at a height is the weight of the particles above it, over the area."""
    spacing = height / layers
    wide = spacing * (layers // 2)
    params = at_largest_step(FluidParams(
        spacing=spacing, lower=(0.0,) * 3, upper=(wide, 1.5 * height, wide), dt=0.0,
        sound_speed=10.0 * math.sqrt(2 * GRAVITY * height),
    ))  # fmt: skip
    fluid = make_fluid(params, block((0.0,) * 3, (wide, height, wide), spacing), device)
    mesh = box((wide, 1.5 * height, wide)).moved((0.5 * wide, 0.75 * height, 0.5 * wide))
    fluid.boundaries.append(Vessel(fluid, make_walls(mesh, radius=0.5 * spacing, device=device)))
    set_params(fluid, replace(params, viscosity=VISCOUS_SHARE * params.rest_density * spacing**2 / params.dt))
    run(fluid, math.ceil(seconds / params.dt))
    found = particles(fluid)
    x, most = found["position"].astype(np.float64), WATER * GRAVITY * height
    heights = np.sort(x[:, 1])

    def weight_above(y: np.ndarray) -> np.ndarray:
        return (len(x) - np.searchsorted(heights, y, side="right")) * params.mass * GRAVITY / wide**2

    level = float(heights[-layers * 2 :].mean()) + 0.5 * spacing
    errors = []
    for y in np.linspace(params.radius, level - params.radius, 25):
        w = spline(np.sqrt(((x - [0.5 * wide, y, 0.5 * wide]) ** 2).sum(axis=1)), params.radius, 3)
        errors.append((w * (found["pressure"] - weight_above(x[:, 1]))).sum() / w.sum() / most)
    deep = np.minimum.reduce([x[:, 0], wide - x[:, 0], x[:, 2], wide - x[:, 2], x[:, 1]]) / spacing
    off = (found["pressure"] - weight_above(x[:, 1])) / most
    wall, following = deep < 0.75, (deep >= 0.75) & (deep < 1.5)
    return {
        "worst": float(np.abs(errors).max()),
        "rms": float(np.sqrt(np.mean(np.square(errors)))),
        "wall_density": float(found["density"][wall].mean()) / params.rest_density,
        "wall_pressure": float(off[wall].mean()),
        "next_pressure": float(off[following].mean()),
        "level": level / height,
        "middle": float(x[:, 1].mean()) / (0.5 * height),
        "speed": float(np.abs(found["velocity"]).max()),
    }


VISCOUS_SHARE = 0.1
"""μ dt/(ρ s²) while settling: just under the limit of stability, 0.125."""


# --- channel ---------------------------------------------------------------------------------------------------------


def poiseuille(device: Device, across: int, **more: Any) -> dict[str, Any]:
    """Flow between plates 1 mm apart, driven by a body force, Reynolds number 0.0125 (Morris et al. 1997) at the peak
    speed; from rest to ten times L²/ν·0.1."""
    gap, viscosity = 1e-3, 1e-3
    spacing = gap / across
    peak = 1.25e-5
    drive = 8.0 * viscosity * peak / (WATER * gap**2)
    length = spacing * max(8, across // 2)
    params = FluidParams(
        spacing=spacing, lower=(0.0, 0.0), upper=(length, gap), dt=0.0, dimension=2, kernels="spline",
        equation="tait", sound_speed=40.0 * peak, gamma=7.0, viscosity=viscosity, gravity=(drive, 0.0, 0.0),
        periodic=(True, False, False), no_slip=True, suction=True, **more,
    )  # fmt: skip
    params = at_largest_step(params)
    walls = box_walls((0.0, 0.0), (length, gap), spacing, params.radius, open_sides=("-x", "+x"))
    fluid = make_fluid(params, block((0.0, 0.0), (length, gap), spacing), device, walls=walls)
    run(fluid, math.ceil(1.0 / params.dt))  # 1 s is L²/ν: the slowest mode has decayed by exp(−π²)
    found = particles(fluid)
    y = found["position"][:, 1]
    truth = 4.0 * peak * y * (gap - y) / gap**2
    error = np.abs(found["velocity"][:, 0] - truth)
    return {"error": float(error.max() / peak), "y": y, "u": found["velocity"][:, 0], "truth": truth,
            "steps": math.ceil(1.0 / params.dt)}  # fmt: skip


# --- vortices --------------------------------------------------------------------------------------------------------


def taylor_green(
    device: Device, across: int, reynolds: float = 100.0, *, shifted: bool = False, **more: Any
) -> dict[str, Any]:
    """u = U sin kx cos ky exp(−2νk²t), v = −U cos kx sin ky exp(−2νk²t) in a periodic square of side 1 m, k = 2π."""
    speed, side = 1.0, 1.0
    spacing = side / across
    viscosity = WATER * speed * side / reynolds
    options: dict[str, Any] = {"kernels": "spline", "equation": "tait", "sound_speed": 10.0 * speed}
    params = FluidParams(
        spacing=spacing, lower=(0.0, 0.0), upper=(side, side), dt=0.0, dimension=2, viscosity=viscosity,
        gravity=(0.0, 0.0, 0.0), periodic=(True, True, False), suction=True, fastest=speed,
        **(options | more),
    )  # fmt: skip
    params = at_largest_step(params)
    x = block((0.0, 0.0), (side, side), spacing)
    k = 2.0 * math.pi / side
    v = speed * np.stack(
        [np.sin(k * x[:, 0]) * np.cos(k * x[:, 1]), -np.cos(k * x[:, 0]) * np.sin(k * x[:, 1])], axis=1
    )
    fluid = make_fluid(params, x, device, velocities=v)
    if shifted:
        fluid.boundaries.append(Shifting(fluid))
    nu = viscosity / WATER
    duration = 1.0 / (4.0 * nu * k**2)  # energy falls to 1/e
    energies, times = [float((v**2).sum())], [0.0]
    program = fluid.device.record(lambda stage: step_fluid(stage, fluid), work=step_work(fluid))
    steps = math.ceil(2.0 * duration / params.dt)
    for step in range(1, steps + 1):
        program.run()
        if step % max(1, steps // 20) == 0:
            energies.append(float((particles(fluid)["velocity"].astype(np.float64) ** 2).sum()))
            times.append(step * params.dt)
    rate = -np.polyfit(times, np.log(energies), 1)[0]
    return {"rate": float(rate * duration), "times": np.array(times), "energy": np.array(energies) / energies[0],
            "steps": steps, "momentum": float(np.abs(particles(fluid)["velocity"].mean(axis=0)).max())}  # fmt: skip


# --- the breaking dam ------------------------------------------------------------------------------------------------

MARTIN_MOYCE = np.array([
    (0.41, 1.11), (0.84, 1.22), (1.19, 1.44), (1.43, 1.67), (1.63, 1.89), (1.83, 2.11), (1.98, 2.33), (2.20, 2.56),
    (2.32, 2.78), (2.51, 3.00), (2.65, 3.22), (2.83, 3.44), (2.98, 3.67), (3.11, 3.89), (3.33, 4.11),
])  # fmt: skip
"""Time T = t √(2g/a) and front Z = z/a of a column a = 2¼ in wide and 2a high (n² = 2): Martin and Moyce 1952, table 2,
doi:10.1098/rsta.1952.0006, as kept in the post-processing of the solver Ocellaris. The points that PySPH's authors read
off their Figure 3 for the same column lie within 0.05 of it."""
COLUMN = 0.05715
"""a [m]"""


def dam_break(device: Device, across: int, until: float = 3.33, **more: Any) -> dict[str, Any]:
    """A column `across` particles wide and twice as high, in 2D, whose dam vanishes at T = 0.

    The front is the farthest particle, and half a spacing, on the floor: within two spacings of it and not splashed
    off, that is with another particle within 1.5 spacings behind it."""
    spacing = COLUMN / across
    height = 2.0 * COLUMN
    lower, upper = (0.0, 0.0), (5.0 * COLUMN, 1.25 * height)
    fastest = 2.0 * math.sqrt(GRAVITY * height)
    options: dict[str, Any] = {"equation": "tait", "sound_speed": 10.0 * fastest}
    params = FluidParams(
        spacing=spacing, lower=lower, upper=upper, dt=0.0, dimension=2, fastest=fastest, **(options | more)
    )
    params = at_largest_step(params)
    walls = box_walls(lower, upper, spacing, params.radius, open_sides=("+y",))
    fluid = make_fluid(params, block((0.0, 0.0), (COLUMN, height), spacing), device, walls=walls)
    unit = math.sqrt(COLUMN / (2.0 * GRAVITY))
    program = device.record(lambda stage: step_fluid(stage, fluid), work=step_work(fluid))
    steps = math.ceil(until * unit / params.dt)
    times, fronts, denser = [0.0], [1.0], 0.0
    for step in range(1, steps + 1):
        program.run()
        if step % max(1, steps // 60) == 0 or step == steps:
            found = particles(fluid)
            times.append(step * params.dt / unit)
            fronts.append(_front(found["position"], spacing) / COLUMN)
            denser = max(denser, float(found["density"].max() / params.rest_density - 1.0))
    ours = np.interp(MARTIN_MOYCE[:, 0], times, fronts)
    reached = MARTIN_MOYCE[:, 0] <= until
    error = (ours - MARTIN_MOYCE[:, 1])[reached]
    late = np.interp(MARTIN_MOYCE[reached, 1], fronts, times) - MARTIN_MOYCE[reached, 0]
    return {"error": float(np.abs(error / MARTIN_MOYCE[reached, 1]).mean()), "worst": float(np.abs(error).max()),
            "lag": float(late[4:].mean()), "times": np.array(times), "fronts": np.array(fronts), "steps": steps,
            "dt": params.dt, "denser": denser, "fluid": fluid}  # fmt: skip


def _front(x: np.ndarray, spacing: float) -> float:
    low = np.sort(x[x[:, 1] < 2.0 * spacing, 0])[::-1]
    joined = low[:-1] - low[1:] < 1.5 * spacing
    return float(low[:-1][joined][0] + 0.5 * spacing)


# --- a drop ----------------------------------------------------------------------------------------------------------


def drop(
    device: Device, across: int, dimension: int, form: Any, seconds: float, sigma: float = 0.05, **more: Any
) -> dict[str, Any]:
    """A cube (square in 2D) of 5 mm without gravity under a tension of `sigma` [N/m] that becomes a drop.

    Two pressures inside, over what Laplace's law says, (d − 1) σ/r with r from the volume: the equation of state's
    (`pressure`), and that of all forces and what motion is left (`mechanical`: virial and ρ v²/d). Both are means over
    the last half of the time and over particles in the inner half of the radius."""
    side = 5e-3
    spacing = side / across
    centre = np.full(dimension, side)
    laplace = 2.0 * (dimension - 1) * sigma / side
    options: dict[str, Any] = {"sound_speed": 30.0 * math.sqrt(laplace / WATER), "viscosity": 0.01, "equation": "tait"}
    params = FluidParams(
        spacing=spacing, lower=(0.0,) * dimension, upper=(2.0 * side,) * dimension, dt=0.0, dimension=dimension,
        gravity=(0.0, 0.0, 0.0), tension=form, tension_coefficient=sigma, **(options | more),
    )  # fmt: skip
    params = at_largest_step(params)
    x = block(tuple(centre - 0.5 * side), tuple(centre + 0.5 * side), spacing)
    fluid = make_fluid(params, x, device)
    volume = len(x) * params.mass / WATER
    radius = math.sqrt(volume / math.pi) if dimension == 2 else (3.0 * volume / (4.0 * math.pi)) ** (1.0 / 3.0)
    steps = math.ceil(seconds / params.dt)
    run(fluid, steps // 2)
    states, forces, found, away = [], [], particles(fluid), x
    for _ in range(20):
        run(fluid, steps // 40)
        found = particles(fluid)
        away = found["position"] - np.median(found["position"], axis=0)
        inner = np.sqrt((away**2).sum(axis=1)) < 0.5 * radius
        heat = WATER * float((found["velocity"][inner] ** 2).sum(axis=1).mean()) / dimension
        states.append(float(found["pressure"][inner].mean()))
        forces.append(mechanical_pressure(params, found, inner) + heat)
    r = np.sqrt((away**2).sum(axis=1))
    together = r < 1.5 * radius
    longer, squarer = out_of_round(away[together, :dimension])
    truth = (dimension - 1) * sigma / radius
    return {"pressure": float(np.mean(states)) / truth, "mechanical": float(np.mean(forces)) / truth,
            "spread": float(np.std(forces)) / truth,
            "longer": longer, "squarer": squarer, "roundness": max(longer, squarer), "reach": float(r.max() / radius),
            "gone": int((~together).sum()), "speed": float(np.abs(found["velocity"]).max()),
            "drift": float(np.abs(found["velocity"].mean(axis=0)).max()),
            "steps": steps, "x": away, "radius": radius}  # fmt: skip


def out_of_round(away: np.ndarray) -> tuple[float, float]:
    """Two ways not to be a ball (a disc in 2D), each 0 for one, from places about the middle, shape (n, d).

    Longer one way than another: the spread of the roots of second moments. Those of a cube are equal too, so, squarer:
    Σ_k ⟨x_k⁴⟩/⟨r⁴⟩ over its 3/(d + 2). That is 0.6 for a ball, 0.474 for a cube along the axes (0.21 out of round),
    0.75 for a disc, 0.643 for a square (0.14)."""
    x, d = away.astype(np.float64), away.shape[1]
    moments = np.sqrt(np.linalg.eigvalsh(np.cov(x.T)))
    fourth = (x**4).sum() / ((x**2).sum(axis=1) ** 2).sum()
    return float(moments.max() / moments.min() - 1.0), float(abs(fourth * (d + 2) / 3.0 - 1.0))


def mechanical_pressure(params: FluidParams, found: dict[str, np.ndarray], inner: np.ndarray) -> float:
    """What the forces of pressure and tension push with, from the virial (n/2d) Σ_j (−F r) per particle [Pa].

    The mean of the equation of state is not it: tension's own pressure inside is not quite 0, the equation of state
    balances it, and two large numbers must be taken from each other with the same discrete sums."""
    x, q = found["position"].astype(np.float64), found["pressure"] / found["density"].astype(np.float64) ** 2
    d, m, radius = params.dimension, params.mass, params.radius
    k = make_smoothing(params.kernels, radius, d)
    amplitude = q0 = 0.0
    if params.tension == "pairwise":
        amplitude = pair_strength(params) * m * params.tension_coefficient
        q0 = NO_PRESSURE[d]
    total = []
    for i in np.nonzero(inner)[0][:300]:
        r = np.sqrt(((x - x[i]) ** 2).sum(axis=1))
        near = (r > 0) & (r < radius)
        s = r[near] / radius
        slope_r = k.gradient * ((1 - s) ** 2 - k.kappa * np.maximum(0.5 - s, 0.0) ** 2) * r[near]
        push = -m * m * (q[i] + q[near]) * slope_r
        pull = amplitude * s * (1 - s) ** 2 * (s - q0) * r[near]
        total.append(found["density"][i] / m / (2 * d) * (push - pull).sum())
    return float(np.mean(total))


# --- Andersson's dam -------------------------------------------------------------------------------------------------


def andersson_dam(device: Device, seconds: float, *, obstacle: bool, width: float = 0.2) -> dict[str, Any]:
    """The breaking dam of Andersson §3.1 with his list: r₀ = 0.01 m, g = 9.81, H = 0.2 m, h = 1.55 r₀, c = √(200 g H),
    Tait with γ = 7, density by continuity, leap-frog in steps of 0.2 ms, Lennard-Jones walls with D = 5 g H; with or
    without the small obstacle downstream of Figure 4.1.

    He gives neither α and β (0.01 and 0, as in Monaghan 1994), nor the width of the block, nor the tank's length and
    the obstacle's size: here 0.2 m, 0.8 m and a step 4 cm high and wide."""
    rest, height, tank_length = 0.01, 0.2, 0.8
    params = FluidParams(
        spacing=rest, lower=(-0.05, -0.05), upper=(tank_length + 0.05, 1.0), dt=2e-4, dimension=2, support=3.1,
        equation="tait", gamma=7.0, sound_speed=math.sqrt(200.0 * GRAVITY * height), density="continuity",
        integrator="leapfrog", alpha=0.01, viscosity=0.0,
    )  # fmt: skip
    fluid = make_fluid(params, block((0.0, 0.0), (width, height), rest), device)
    corners = [(0.0, 1.0), (0.0, 0.0), (tank_length, 0.0), (tank_length, 1.0)]
    if obstacle:
        corners[2:2] = [(0.5, 0.0), (0.5, 0.04), (0.54, 0.04), (0.54, 0.0)]
    # The wall is as far behind the fluid's face as a particle keeps from it.
    points = _along(corners, 0.5 * rest) + np.array([0.0, -0.5 * rest])
    points[:, 0] += np.where(points[:, 0] <= 0.0, -0.5 * rest, 0.0)
    push = BoundaryParams("lennard-jones", rest, strength=5.0 * GRAVITY * height)
    fluid.boundaries.append(BoundaryParticles(fluid, _dots(points), push, spacing=rest))
    program = device.record(lambda stage: step_fluid(stage, fluid), work=step_work(fluid))
    snapshots, steps = [particles(fluid)], math.ceil(seconds / params.dt)
    for step in range(1, steps + 1):
        program.run()
        if step % max(1, steps // 8) == 0:
            snapshots.append(particles(fluid))
    last = snapshots[-1]
    x = last["position"]
    inside = (x[:, 0] > -rest) & (x[:, 0] < tank_length + rest) & (x[:, 1] > -rest)
    energy = [(GRAVITY * s["position"][:, 1] + 0.5 * (s["velocity"] ** 2).sum(axis=1)).mean() for s in snapshots]
    return {"snapshots": snapshots, "walls": points, "lost": int((~inside).sum()), "count": len(x),
            "energy": float(max(energy) / energy[0]), "front": float(x[inside, 0].max()),
            "fastest": float(np.sqrt((last["velocity"] ** 2).sum(axis=1)).max())}  # fmt: skip


def _along(corners: list[tuple[float, float]], spacing: float) -> np.ndarray:
    """Points along a polyline."""
    lines = []
    for a, b in itertools.pairwise(np.asarray(corners)):
        count = max(1, round(float(np.linalg.norm(b - a)) / spacing))
        lines.append(a + (b - a) * np.arange(count)[:, None] / count)
    return np.concatenate([*lines, np.asarray(corners)[-1:]])


def _dots(points: np.ndarray) -> TriangleMesh:
    """A tiny triangle in the plane about each point: boundary particles are made from meshes."""
    tiny = 1e-5 * np.array([[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8]])
    corners = np.pad((points[:, None] + tiny).reshape(-1, 2), ((0, 0), (0, 1)))
    return TriangleMesh(corners, np.arange(len(corners), dtype=np.int32).reshape(-1, 3), "dots")
