"""Water's loops in C beside their plain twins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Device, Stage
from viscera.geometry import icosphere
from viscera.native import Trial, Twin, register
from viscera.native.twins import Results
from viscera.water import (
    density,
    forces,
    mirrors,
    mixed,
    native,
    native_mixed,
    native_solver,
    native_steps,
    pressure_solver,
    sph,
    team_mixed,
    teams,
)
from viscera.water.adaptive import character
from viscera.water.basin import Basin
from viscera.water.boundary import meeting, native_contacts, wall_weight
from viscera.water.boundary.contacts import ContactParams, live, make_contacts, step_contacts
from viscera.water.boundary.walls import aim_walls, make_walls, move_walls
from viscera.water.params import FluidParams
from viscera.water.sizes import Sizes
from viscera.water.state import Fluid, arrays, load, make_fluid, use_team
from viscera.water.walls import block, box_walls

SPACING = 0.01
"""[m]"""

_CASES: dict[str, dict[str, Any]] = {
    "spline": {},
    "Müller's kernels": {"kernels": "muller"},
    "2D": {"dimension": 2},
    "walls": {},
    "a crowd": {},
    "viscosity": {"viscosity": 1.0},
    "Monaghan": {"alpha": 0.1, "beta": 0.1, "viscosity": 0.0},
    "continuity": {"density": "continuity", "integrator": "leapfrog"},
    "periodic": {"periodic": (True, False, False)},
    "three sizes": {"sizes": Sizes(3, 2), "viscosity": 1.0},
    "sizes with Müller's kernels": {"sizes": Sizes(2, 2), "kernels": "muller", "viscosity": 1.0},
    "sizes before mirrors": {"sizes": Sizes(3, 2), "viscosity": 1.0},
    "a crowd before mirrors": {"viscosity": 1.0},
    "sizes in 2D": {"sizes": Sizes(2, 3), "dimension": 2, "viscosity": 1.0},
}
"""Parameters of each feature; `_fluid` does what is more than parameters."""


def _fluid(device: Device, feature: str, native_loops: bool, size: int, **more: Any) -> Fluid:
    """A block of about `size` particles, stirred: out of order, with some speed."""
    wanted = _CASES[feature] | more
    d = wanted.get("dimension", 3)
    rng = np.random.default_rng(7)
    side = max(4, round(size ** (1.0 / d)))
    length = side * SPACING
    x = block((0.0,) * d, (length,) * d, SPACING)
    x = np.clip(x + rng.uniform(-0.2, 0.2, x.shape) * SPACING, 0.0, length * (1.0 - 1e-6))
    if feature.startswith("a crowd"):
        # More around one cell than a list of blocks holds (neighbors/blocks.py).
        x = np.concatenate([x, 0.3 * length + 0.9 * SPACING * rng.random((1_400, d))])
    walls = box_walls((0.0,) * d, (length,) * d, SPACING, 2.0 * SPACING) if feature == "walls" else None
    room = 0.0 if feature == "periodic" else 4.0 * SPACING
    chosen: dict[str, Any] = {"dt": 1e-5, "sound_speed": 5.0} | wanted
    params = FluidParams(spacing=SPACING, lower=(-room,) * d, upper=(length + room,) * d, **chosen)
    fluid = make_fluid(params, x, device, velocities=rng.normal(0.0, 0.1, x.shape), walls=walls, native=native_loops)
    if params.sizes is not None:
        load(fluid, arrays(fluid) | {"level": rng.integers(0, params.sizes.count, len(x))})
    if feature.endswith("before mirrors"):
        basin = Basin(fluid, (0.0, 0.0, 0.0), (length, length, length), [0.0] * len(params.spacings))
        fluid.boundaries += [basin, mirrors.Mirrors(fluid, basin)]
    return fluid


def _contacts(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    """Balls in a round vessel, near its wall; each has a list of triangles from the step before. One that moves comes
    0.4 mm nearer, and turns."""
    rng, radius, dt = np.random.default_rng(5), 0.004, 2.0e-3
    structure, moves = "field" if feature == "a field" else "hashed", feature == "a list that moves"
    walls = make_walls(icosphere(0.1, 3), radius=radius, device=device, structure=structure, deforming=moves)
    out = rng.normal(size=(size, 3))
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    start = (0.0948 - 2.0 * radius * rng.random((size, 1)) ** 2) * out
    speed = rng.normal(0.0, 0.8, (size, 3))
    contacts = make_contacts(walls, size, ContactParams(0.2, 0.3), native=native_loops)
    begin, wanted, sent = (wp.array(x, dtype=wp.vec3, device=device.warp) for x in (start, start + dt * speed, speed))
    position, velocity, count, time = wp.clone(wanted), wp.clone(sent), live(size, contacts), live(dt, contacts)

    def step(stage: Stage) -> None:
        stage.once(lambda: wp.copy(position, wanted))
        stage.once(lambda: wp.copy(velocity, sent))
        step_contacts(stage, contacts, count, time, begin, position, velocity)

    device.record(step).run()
    if moves:
        closer = 0.996 * walls.vertices.numpy() + 0.006 * walls.vertices.numpy()[:, [1, 0, 2]] * (-1.0, 1.0, 0.0)
        ahead = wp.array(closer, dtype=wp.vec3, device=device.warp)
        device.record(lambda stage: (aim_walls(stage, walls, ahead), move_walls(stage, walls, time))).run()

    def results() -> Results:
        return {"position": position.numpy(), "velocity": velocity.numpy(), "kick": contacts.kick.numpy()}

    return Trial(step, results, size, 20 * size)


def _trial(fluid: Fluid, before: Sequence[Callable[[Stage, Fluid], None]], step: Callable[[Stage, Fluid], None],
           results: Callable[[int], Results]) -> Trial:  # fmt: skip
    """`before` runs once, now."""
    for part in before:
        fluid.device.record(lambda stage, part=part: part(stage, fluid)).run()
    count = int(fluid.count.numpy()[0])
    return Trial(lambda stage: step(stage, fluid), lambda: results(count), count, sph.step_work(fluid))


def _density(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    return _density_of(_fluid(device, feature, native_loops, size))


def _density_of(fluid: Fluid) -> Trial:
    return _trial(fluid, [sph.sort], sph.find_density, lambda n: {"density": fluid.density.numpy()[:n]})


def _forces(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    return _forces_of(_fluid(device, feature, native_loops, size))


def _forces_of(fluid: Fluid) -> Trial:
    def rates(n: int) -> Results:
        rate = fluid.rate.numpy()[:n]
        growth = {"growth": rate[:, 3]} if fluid.params.sizes is None else {}
        return {"acceleration": rate[:, :3]} | growth

    return _trial(fluid, [sph.sort, sph.find_density, sph.find_pressure], sph.find_forces, rates)


def _pressure(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    fluid = _fluid(device, feature, native_loops, size, equation="incompressible", sound_speed=20.0, dt=1e-4)

    def solved(n: int) -> Results:
        return {"k": fluid.place.numpy()[:n, 3], "push": fluid.extra["push"].numpy()[:n, :3]}

    before = [sph.sort, sph.find_density, sph.find_pressure, sph.find_forces, pressure_solver.begin_solving]
    step = pressure_solver.iterate_natively if fluid.native else pressure_solver.iterate
    return _trial(fluid, before, step, solved)


def _equations(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    fluid = _fluid(device, feature, native_loops, size, equation="incompressible", sound_speed=20.0, dt=1e-4)

    def begun(n: int) -> Results:
        # 1/(dt² D) of lonely particles is far from all others', and 0 where D is: compared as D.
        advected, per = fluid.extra["system"].numpy()[:n].T
        diagonal = np.divide(1.0, per, out=np.zeros_like(per), where=per > 0.0)
        return {"advected": advected, "diagonal": diagonal, "own": fluid.extra["own"].numpy()[:n]}

    before = [sph.sort, sph.find_density, sph.find_pressure, sph.find_forces]
    return _trial(fluid, before, pressure_solver.begin_solving, begun)


def _weights(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    """Walls that stand any way beside every second particle."""
    fluid = _fluid(device, feature, native_loops, size)
    share = np.random.default_rng(3).normal(size=(fluid.capacity, 4))
    share[:, 3] = np.arange(fluid.capacity) % 2
    walls = wp.array(share, dtype=wp.vec4, device=device.warp)
    weight = wp.zeros(fluid.capacity, dtype=wp.vec4, device=device.warp)

    def step(stage: Stage, fluid: Fluid) -> None:
        wall_weight.find_weight(stage, fluid, wp.vec3(1.0, 1.0, 1.0), walls, weight, from_neighbours=True)

    return _trial(fluid, [sph.sort, sph.find_density], step, lambda n: {"weight": weight.numpy()[:n]})


def _by_team(make: Callable[[Fluid], Trial], wide: bool) -> Callable[[Device, str, bool, int], Trial]:
    """With the loops of teams.py for the native twin: on cpu a team of one."""

    def trial(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
        fluid = _fluid(device, feature, False, size)
        if native_loops:
            use_team(fluid, (16 if wide else 2) if device.is_cuda else 1, wide=wide)
        return make(fluid)

    return trial


_DENSITIES = ("spline", "Müller's kernels", "2D", "walls", "a crowd")
_FORCES = ("viscosity", "Müller's kernels", "Monaghan", "continuity", "2D", "walls", "a crowd")
_SUMS = 2e-5
"""Sums of some thirty terms in float32, in another order."""
_SOLVED = 2e-4
"""Six such sums, one after the other."""

register(Twin(
    "water.density", (density.sum_density,), {"cpu": (native.sum_density,)}, _DENSITIES, _SUMS, _density,
    small=700, large=100_000, plain_only=("periodic",),
))  # fmt: skip
register(Twin(
    "water.forces", (forces.sum_forces,), {"cpu": (native.sum_forces,)}, _FORCES, _SUMS, _forces,
    small=700, large=100_000, plain_only=("periodic",),
))  # fmt: skip
register(Twin(
    "water.pressure", (pressure_solver.push, pressure_solver.relax), {"cpu": (native_solver.push, native_solver.relax)},
    ("spline", "2D", "walls"), _SOLVED, _pressure, small=700, large=100_000, plain_only=("periodic",),
))  # fmt: skip


def _normals(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    fluid = _fluid(device, feature, native_loops, size)
    found = character.make_character(fluid)

    def surface(n: int) -> Results:
        return {"at_surface": found.at_surface.numpy()[:n], "neighbours": found.neighbours.numpy()[:n]}

    def step(stage: Stage, fluid: Fluid) -> None:
        character.find_surface(stage, fluid, found, 1.0)

    return _trial(fluid, [sph.sort, sph.find_density, sph.find_pressure], step, surface)


def _steps(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    """Whole steps: what surrounds the loops over neighbours."""
    fluid = _fluid(device, feature, native_loops, size)

    def moved(n: int) -> Results:
        names = ("position", "velocity", "density")
        found = {name: getattr(fluid, name).numpy()[:n] for name in names}
        return found | {"level": fluid.extra["level"].numpy()[:n]}

    return _trial(fluid, [], sph.step_fluid, moved)


_SIZES = ("three sizes", "sizes with Müller's kernels", "sizes in 2D")
register(Twin(
    "water.density of sizes", (mixed.sum_density,),
    {"cpu": (native_mixed.sum_density,), "cuda": (team_mixed.sum_density_wide, team_mixed.sum_density_long)},
    _SIZES, _SUMS, _density,
    small=700, large=100_000,
))  # fmt: skip
register(Twin(
    "water.forces of sizes", (mixed.sum_forces,),
    {"cpu": (native_mixed.sum_forces,), "cuda": (team_mixed.sum_forces_wide, team_mixed.sum_forces_long)},
    _SIZES, _SUMS, _forces,
    small=700, large=100_000,
))  # fmt: skip
_MIRRORED = ("sizes before mirrors", "a crowd before mirrors")
register(Twin(
    "water.density before mirrors", (mirrors.add_density,), {"cpu": (mirrors.add_density_natively,)}, _MIRRORED, _SUMS,
    _density, small=700, large=100_000,
))  # fmt: skip
register(Twin(
    "water.forces before mirrors", (mirrors.add_forces,), {"cpu": (mirrors.add_forces_natively,)}, _MIRRORED, _SUMS,
    _forces, small=700, large=100_000,
))  # fmt: skip
register(Twin(
    "water.equations", (pressure_solver.begin,), {"cpu": (native_solver.begin,)}, ("spline", "2D", "walls"), _SUMS,
    _equations, small=700, large=100_000, plain_only=("periodic",),
))  # fmt: skip
register(Twin(
    "water.weight at walls", (wall_weight.weigh,), {"cpu": (wall_weight.weigh_natively,)},
    ("spline", "walls", "a crowd"), _SUMS, _weights, small=700, large=100_000, plain_only=("periodic",),
))  # fmt: skip
register(Twin(
    "water.surface of sizes", (character.find_normals,), {"cpu": (character.find_normals_natively,)}, _SIZES,
    0.0,  # whole numbers
    _normals, small=700, large=100_000,
))  # fmt: skip
register(Twin(
    "water.step of sizes", (mixed.sort_sizes, mixed.keep_levels),
    {"cpu": (native_steps.arrange, native_steps.advance)}, _SIZES, _SOLVED, _steps,
    small=700, large=100_000,
))  # fmt: skip
for _wide in (True, False):
    _loops = "wide teams" if _wide else "long teams"
    _density_kernel = teams.sum_density_wide if _wide else teams.sum_density_long
    _force_kernel = teams.sum_forces_wide if _wide else teams.sum_forces_long
    # On cpu a team of one, for tests.
    register(Twin(
        f"water.density by {_loops}", (density.sum_density,), {"cpu": (_density_kernel,), "cuda": (_density_kernel,)},
        _DENSITIES, _SUMS, _by_team(_density_of, _wide),
        small=700, large=4_000 if _wide else 1_000_000, plain_only=("periodic",), only_tested=("cpu",),
    ))  # fmt: skip
    register(Twin(
        f"water.forces by {_loops}", (forces.sum_forces,), {"cpu": (_force_kernel,), "cuda": (_force_kernel,)},
        _FORCES, _SUMS, _by_team(_forces_of, _wide),
        small=700, large=4_000 if _wide else 1_000_000, plain_only=("periodic",), only_tested=("cpu",),
    ))  # fmt: skip
register(Twin(
    "water.contacts", (meeting.meet_walls,), {"cpu": (native_contacts.meet_walls_simply,)},
    ("a list", "a list that moves"),
    1e-6,  # the same operations in the same order
    _contacts, small=600, large=20_000, plain_only=("a field",),
))  # fmt: skip
