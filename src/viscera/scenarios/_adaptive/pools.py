"""Five boxes of water after Elmasdotter (2020, §4.2), with her parameters (Tables 3.1 and 3.2).

10 000 particles of 20 g, 200 litres; "regular" is 20 000 of 10 g. Sizes of boxes and cameras are not in the source:
they are chosen here, so that the water fills the view and, in the small box, its lower half the gaze disc.

    dambreak             a column of 0.5 × 0.5 × 0.8 m in a box of 1.5 × 0.5 × 1.2 m whose wall is gone at the start
    dambreak-obstacles   the same with two pillars and a ball behind the dam
    large-box            a block of 0.6 × 0.6 × 0.56 m falls 0.3 m into a box of 2 × 2 × 1.2 m
    small-box            a box of 0.5 × 0.5 × 1.2 m, filled to 0.8 m, seen from farther away
    waves                a box of 1.5 × 0.5 × 1.2 m whose right wall goes 0.15 m to and fro, 0.5 times a second

Two fluids. `document`: hers, gas with k = 3 and Müller's kernels, in steps of 10 ms; so soft that density doubles in
0.21 m of depth; worlds that show it take steps of 8 ms, two in a frame. `stiff`: k = 64, the spline, in steps of
0.8 ms; walls are mirrors, all sizes read the same, and new particles settle in 0.05 s.

Two sizes as in the source, or more, each half as heavy as the one before: then rings about the gaze disc are graded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from viscera import water
from viscera.device import Device
from viscera.errors import InputError
from viscera.timing import FRAME
from viscera.view import Camera
from viscera.water.adaptive import AdaptiveParams
from viscera.water.basin import Basin, Obstacle
from viscera.water.curved_share import CurvedShare
from viscera.water.mirrors import Mirrors
from viscera.water.params import FluidParams, largest_step
from viscera.water.sizes import Sizes
from viscera.water.smoothing import Kernels, lattice_sum
from viscera.water.state import Fluid

Stiffness = Literal["document", "stiff"]
Vector = tuple[float, float, float]

BASE = 10_000
"""Particles of the largest size."""
DENSITY = 998.29
"""ρ₀ [kg/m³], Table 3.1."""
VISCOSITY = 3.5
"""μ [Pa·s], Table 3.1."""
GAS = {"document": 3.0, "stiff": 64.0}
"""k [m²/s²]: 3 in Table 3.1."""
DOCUMENT_STEP = 0.01
"""[s], Table 3.1. Sound goes 0.76 of a smoothing length in it; the viscosity keeps it stable."""
MASS = 0.02
"""Of the largest size [kg], Table 3.2; the smaller one has half of it."""
KERNEL_PARTICLES = {"document": (20.0, 50.0), "stiff": (40.0, 50.0)}
"""x of large and of all smaller ones: 20 and 50 in Table 3.2, radii of 45.7 and 49.3 mm. With 20 the flow of large
particles is less right than that of fewer ones with 50 at the same cost (bench/_adaptive_error.py)."""
SETTLING, THICKENING = 0.05, 3.0
"""Of new particles in the stiff fluid: tuned so that a resting tank stays at rest, and that water which runs through
the gaze disc does not dam up there: with 0.1 s and 8 times the viscosity it stood 3 mm too high before a dam."""
FASTEST = 3.0
"""Speed of flow that steps are chosen for [m/s]."""
CONTACT = {"document": 0.3, "stiff": 0.3}
"""Distance at which walls stop particles, over their own spacing. Walls that are mirrors keep most of them farther
away; stopped where they want to be, half a spacing away, they lose speed in every step, and waves die."""
FILLED = {"document": 0.3, "stiff": 0.5}
"""Distance of the first layer from walls as a pool is filled, likewise: half of it is what a mirror completes."""
WAVE_STROKE, WAVE_RATE = 0.15, 0.5
"""How far the wall goes [m], and how often a second."""
CRITERIA = AdaptiveParams()
"""Table 3.2."""
PACED = AdaptiveParams(pace=0.01)
"""The same of worlds that are watched: at most 1 % of all particles split in a frame, and merge. So a disc at which
somebody begins to look splits in about ten frames, longer than sound takes down and up again. Water that runs into the
disc brings fewer. What adapting costs is measured without it."""


@dataclass(frozen=True)
class Pool:
    """A box of water before it is made."""

    name: str
    box: Vector
    """From the origin [m]."""
    column: tuple[Vector, Vector]
    """Two corners of the water at the start [m]; it is filled from below."""
    camera: Camera
    seconds: float
    frames: int
    """Length of the source's runs: for its frame rates, and for its counts and times."""
    obstacles: tuple[Obstacle, ...] = ()
    waves: bool = False


def _from_the_front(target: Vector, distance: float) -> Camera:
    x, y, z = target
    return Camera((x, y - 0.92 * distance, z + 0.4 * distance), target, (0.0, 0.0, 1.0), 40.0)


_OBSTACLES = (
    Obstacle((0.85, 0.15, 0.0), 0.06, pillar=True),
    Obstacle((0.85, 0.35, 0.0), 0.06, pillar=True),
    Obstacle((1.15, 0.25, 0.1), 0.1),
)
_DAM = ((0.0, 0.0, 0.0), (0.5, 0.5, 0.9))

POOLS = {
    pool.name: pool
    for pool in (
        Pool("dambreak", (1.5, 0.5, 1.2), _DAM, _from_the_front((0.75, 0.25, 0.3), 1.6), 30.0, 900),
        Pool(
            "dambreak-obstacles", (1.5, 0.5, 1.2), _DAM, _from_the_front((0.75, 0.25, 0.3), 1.6), 30.0, 900, _OBSTACLES
        ),
        Pool(
            "large-box", (2.0, 2.0, 1.2), ((0.7, 0.7, 0.3), (1.3, 1.3, 1.0)), _from_the_front((1.0, 0.8, 0.1), 2.2),
            40.0, 1300,
        ),
        Pool(
            "small-box", (0.5, 0.5, 1.2), ((0.0, 0.0, 0.0), (0.5, 0.5, 1.0)), _from_the_front((0.25, 0.25, 0.4), 2.4),
            30.0, 600,
        ),
        Pool(
            "waves", (1.5, 0.5, 1.2), ((0.0, 0.0, 0.0), (1.5 - WAVE_STROKE, 0.5, 0.6)),
            _from_the_front((0.75, 0.25, 0.3), 1.6), 30.0, 850, waves=True,
        ),
    )
}  # fmt: skip


@dataclass(eq=False)
class Filled:
    """A pool with its water."""

    pool: Pool
    fluid: Fluid
    basin: Basin
    stiffness: Stiffness

    @property
    def dt(self) -> float:
        """Of a step [s]."""
        return self.fluid.params.dt

    def move_wall(self, time: float) -> None:
        """Where the wall that makes waves is at this time [s]; far in the box at the start."""
        if self.pool.waves:
            turn = 2.0 * math.pi * WAVE_RATE
            inside = 0.5 * WAVE_STROKE * (1.0 + math.cos(turn * time))
            self.basin.move_wall(inside, 0.5 * WAVE_STROKE * turn * math.sin(turn * time))


def find_pool(name: str) -> Pool:
    if name not in POOLS:
        raise InputError(f"there is no pool {name!r}.", f"There are: {', '.join(POOLS)}.")
    return POOLS[name]


def spacing_of(mass: float, neighbours: float, kernels: Kernels) -> tuple[float, float]:
    """Spacing and radius [m] of particles of this mass [kg], such that a lattice of them sums to ρ₀: the radius holds
    the volume of so many (eq. 3.8)."""
    volume = mass / DENSITY
    radius = (3.0 * volume * neighbours / (4.0 * math.pi)) ** (1.0 / 3.0)
    spacing = volume ** (1.0 / 3.0)
    for _ in range(60):
        spacing = (volume * lattice_sum(kernels, radius / spacing, 1.0, 3)) ** (1.0 / 3.0)
    return spacing, radius


def pool_params(
    pool: Pool,
    stiffness: Stiffness,
    *,
    regular: bool = False,
    base: int = BASE,
    sizes: int = 2,
    in_frames: bool = False,
) -> FluidParams:
    """Of its water, with so many sizes; `regular` is all of the smallest. With another number of base particles they
    are smaller or larger: the water is the same. Both take the same steps; `in_frames`, a whole number in a frame."""
    if stiffness not in GAS:
        raise InputError(f"stiffness {stiffness!r} is not known.", f"Allowed are {', '.join(GAS)}.")
    both = [_without_step(pool, stiffness, one, base, sizes) for one in (False, True)]
    longest = 0.98 * min(map(largest_step, both))
    if stiffness == "document":
        dt = DOCUMENT_STEP if (base, sizes) == (BASE, 2) else min(DOCUMENT_STEP, longest)
        dt = FRAME / math.ceil(FRAME / dt) if in_frames else dt
    else:
        dt = FRAME / math.ceil(FRAME / longest)
    return replace(both[regular], dt=dt)


def _without_step(pool: Pool, stiffness: Stiffness, regular: bool, base: int, count: int) -> FluidParams:
    kernels: Kernels = "muller" if stiffness == "document" else "spline"
    mass, neighbours = MASS * BASE / base, KERNEL_PARTICLES[stiffness]
    large, large_radius = spacing_of(mass, neighbours[0], kernels)
    smaller = [spacing_of(mass / 2.0**k, neighbours[1], kernels) for k in range(1, count)]
    small, small_radius = smaller[-1]
    stiff = stiffness == "stiff"
    supports = (
        large_radius / large,
        *(radius / (large / 2.0 ** (k / 3.0)) for k, (_, radius) in enumerate(smaller, start=1)),
    )
    sizes = Sizes(count, 2, supports, SETTLING, THICKENING, evened=True) if stiff else Sizes(count, 2, supports)
    spacing, support = (small, small_radius / small) if regular else (large, supports[0])
    return FluidParams(
        spacing, (0.0, 0.0, 0.0), pool.box, dt=1e-9, support=support, kernels=kernels, rest_density=DENSITY,
        equation="gas", sound_speed=math.sqrt(GAS[stiffness]), viscosity=VISCOSITY, gravity=(0.0, 0.0, -9.81),
        fastest=FASTEST if stiff else 0.0, courant=0.4 if stiff else 0.8, sizes=None if regular else sizes,
    )  # fmt: skip


def filled_level(places: np.ndarray, count: int) -> np.ndarray:
    """The lowest `count` of a lattice, layer by layer; the last layer, which is not full, evenly. Filled from one end,
    it would be a step as high as a particle, and the water would begin with a slosh that depends on its particles."""
    places = places[np.argsort(places[:, 2], kind="stable")]
    if len(places) <= count:
        return places
    top = places[count - 1, 2]
    below, layer = places[places[:, 2] < top], places[places[:, 2] == top]
    wanted = count - len(below)
    return np.concatenate([below, layer[((np.arange(wanted) + 0.5) * len(layer) / wanted).astype(int)]])


def fill_pool(
    pool: Pool,
    device: Device,
    stiffness: Stiffness = "stiff",
    *,
    regular: bool = False,
    base: int = BASE,
    sizes: int = 2,
    in_frames: bool = False,
) -> Filled:
    """The water of a pool, at rest as its run begins; the arguments are those of `pool_params`."""
    params = pool_params(pool, stiffness, regular=regular, base=base, sizes=sizes, in_frames=in_frames)
    most = base * 2 ** (sizes - 1)
    count = most if regular else base
    margin = FILLED[stiffness] * params.spacing
    low, high = (np.asarray(corner, dtype=np.float64) for corner in pool.column)
    low, high = np.maximum(low, margin), np.minimum(high, np.asarray(pool.box) - margin)
    high[2] = pool.box[2]
    places = filled_level(water.block(tuple(low), tuple(high), params.spacing), count)
    if len(places) < count:
        raise InputError(f"{count} particles do not fit into {pool.name}.", "Take fewer.")
    # What a lattice leaves free lies on both sides: on one alone, the water would begin with a slosh too.
    places[:, :2] += 0.5 * (high - places.max(axis=0))[:2]
    fluid = water.make(params, places, capacity=most, device=device)
    radii = [CONTACT[stiffness] * one for one in params.spacings]
    basin = Basin(fluid, (0.0, 0.0, 0.0), pool.box, radii, pool.obstacles)
    fluid.boundaries.append(basin)
    if stiffness == "stiff":
        fluid.boundaries.append(Mirrors(fluid, basin))
        if pool.obstacles:
            fluid.boundaries.append(CurvedShare(fluid, basin))
    return Filled(pool, fluid, basin, stiffness)
