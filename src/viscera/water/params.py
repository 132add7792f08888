"""What a fluid is made of, and which steps of time it can take.

Every choice has a source: gas pressure p = c²(ρ − ρ₀) (Grahn eq. 3.13, k = c²), Tait's p = B((ρ/ρ₀)^γ − 1) with
B = ρ₀c²/γ (Andersson eq. 2.17, where B is left open), or no equation of state but a solver that keeps ρ = ρ₀.

The longest stable step is the least of (Monaghan 1992, doi:10.1146/annurev.aa.30.090192.002551; Morris, Fox and Zhu
1997, doi:10.1006/jcph.1997.5776; Brackbill et al. 1992, doi:10.1016/0021-9991(92)90240-Y), with s the spacing:

    sound      0.4 R/2 / (c + v)          weakly compressible; 0.4 s/v where the solver keeps the density
    viscosity  0.125 s² ρ₀/μ              and 0.4 R/2 / (c + 0.6 α c) for Monaghan's
    force      0.25 √(R/2 / g)
    tension    0.25 √(ρ₀ s³ / (2π σ))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from viscera.errors import InputError
from viscera.water.sizes import Sizes
from viscera.water.smoothing import Kernels, lattice_sum

Equation = Literal["gas", "tait", "incompressible"]
Density = Literal["summation", "continuity"]
Integrator = Literal["symplectic", "leapfrog"]
Tension = Literal["none", "colour", "curvature", "pairwise"]
Search = Literal["sorted", "hashed"]

COURANT = 0.4
"""Part of a smoothing length (half a radius) that sound may travel in a step."""
VISCOUS = 0.125
FORCE = 0.25
CAPILLARY = 0.25
ARTIFICIAL = 0.6
"""Share of Monaghan's viscosity in the speed of signals."""


@dataclass(frozen=True)
class FluidParams:
    """Water by default, slow enough to be weakly compressible at 20 m/s of sound."""

    spacing: float
    """Distance of particles at rest [m]."""
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    """Corners of the box in which the fluid starts and mostly is [m], one number per axis; periodic axes end there
    exactly."""
    dt: float
    """Step of time [s]; with `adaptive`, the longest."""
    dimension: int = 3
    """2 or 3. In 2D all z are 0, masses are per metre of depth."""
    support: float | None = None
    """Radius R of the kernels over spacing; without one 2.0 in 3D (32 neighbours) and 2.6 in 2D (20).
    The spline makes pairs of particles from about 2.9 in 2D on."""
    kernels: Kernels = "spline"
    """Only with `spline` do pressure forces come from one potential; `muller` gains energy if not viscous."""
    rest_density: float = 1000.0
    """ρ₀ [kg/m³]"""
    equation: Equation = "tait"
    sound_speed: float = 20.0
    """c [m/s], about ten times the fastest flow; not used by `incompressible`."""
    gamma: float = 7.0
    """Tait's exponent."""
    background: float = 0.0
    """Pressure added everywhere [Pa]; keeps particles of a periodic box in order. 0 with a free surface."""
    suction: bool = False
    """Whether pressure may be negative. With a free surface it makes particles clump."""
    density: Density = "summation"
    viscosity: float = 1.0e-3
    """Dynamic viscosity μ [Pa·s], Müller's form (Grahn eq. 3.15)."""
    alpha: float = 0.0
    beta: float = 0.0
    """Monaghan's artificial viscosity (Andersson eq. 3.5)."""
    tension: Tension = "none"
    tension_coefficient: float = 0.0
    """σ [N/m]"""
    gravity: tuple[float, float, float] = (0.0, -9.81, 0.0)
    """[m/s²]"""
    integrator: Integrator = "symplectic"
    periodic: tuple[bool, bool, bool] = (False, False, False)
    no_slip: bool = False
    """Whether wall particles drag the fluid; without it walls are smooth."""
    iterations: int = 20
    """Of the incompressible solver, per step. With 10, particles of a block that falls into a tank were up to 1.1 % too
    dense, with 20 0.75 %."""
    search: Search = "sorted"
    """Neighbours by cells of the box, or by a hashed grid (Grahn §4.1.2) that needs no box: the same neighbours in
    another order. A hashed grid goes with the plain loops alone."""
    adaptive: bool = False
    """Whether dt follows speed and force, up to `dt`."""
    fastest: float = 0.0
    """Speed of flow that `dt` is checked for [m/s]."""
    courant: float = COURANT
    """Part of a smoothing length that sound may travel in a step; more than 0.4 wants a viscous fluid."""
    sizes: Sizes | None = None
    """Particles of several sizes; `spacing` and `support` are those of the largest."""

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_box(self)
        _check_choices(self)
        _check_sizes(self)

    @property
    def spacings(self) -> tuple[float, ...]:
        """Of each size, the largest first [m]."""
        if self.sizes is None:
            return (self.spacing,)
        ratio = self.sizes.children ** (1.0 / self.dimension)
        return tuple(self.spacing / ratio**level for level in range(self.sizes.count))

    @property
    def radii(self) -> tuple[float, ...]:
        """R of each size [m]."""
        support = self.support if self.support is not None else {2: 2.6, 3: 2.0}[self.dimension]
        if self.sizes is None or not self.sizes.supports:
            return tuple(support * spacing for spacing in self.spacings)
        return tuple(own * spacing for own, spacing in zip(self.sizes.supports, self.spacings, strict=True))

    @property
    def radius(self) -> float:
        """R, the largest where there are several [m]."""
        return max(self.radii)

    @property
    def mass(self) -> float:
        """Of a particle [kg; kg/m in 2D], the largest where there are several: such that a lattice of them at rest sums
        to ρ₀ exactly."""
        return self.rest_density / lattice_sum(self.kernels, self.radii[0], self.spacing, self.dimension)

    @property
    def compressible(self) -> bool:
        return self.equation != "incompressible"


def step_limits(params: FluidParams) -> dict[str, float]:
    """The longest step [s] that each cause allows."""
    half, spacing = 0.5 * min(params.radii), min(params.spacings)
    viscosity = params.viscosity * (params.sizes.thickening if params.sizes is not None else 1.0)
    sound = params.sound_speed if params.compressible else 0.0
    signal = sound * (1.0 + ARTIFICIAL * params.alpha) + params.fastest
    size = half if params.compressible else spacing
    pull = math.sqrt(sum(g * g for g in params.gravity))
    force = half if params.compressible else spacing
    limits = {
        "sound" if params.compressible else "speed": params.courant * size / signal if signal > 0.0 else math.inf,
        "viscosity": VISCOUS * spacing**2 * params.rest_density / viscosity if viscosity > 0.0 else math.inf,
        "gravity": FORCE * math.sqrt(force / pull) if pull > 0.0 else math.inf,
        "surface tension": math.inf,
    }
    if params.tension != "none" and params.tension_coefficient > 0.0:
        inertia = params.rest_density * spacing**3
        limits["surface tension"] = CAPILLARY * math.sqrt(inertia / (2.0 * math.pi * params.tension_coefficient))
    return limits


def largest_step(params: FluidParams) -> float:
    """The longest stable step [s]."""
    return min(step_limits(params).values())


def check_step(params: FluidParams) -> None:
    """Raise InputError if `dt` is too long, with the longest that would do."""
    limits = step_limits(params)
    cause = min(limits, key=lambda name: limits[name])
    if params.dt > limits[cause] * (1.0 + 1e-6):
        raise InputError(
            f"dt = {params.dt:g} s is unstable: {cause} allows at most {limits[cause]:.4g} s.",
            f"Take dt = {0.99 * limits[cause]:.3g} s or less, or set adaptive=True.",
        )


# --- what is allowed ---------------------------------------------------------------------------------------------

_POSITIVE = ("spacing", "rest_density", "sound_speed", "gamma", "courant")
_NOT_NEGATIVE = ("dt", "viscosity", "alpha", "beta", "tension_coefficient", "fastest")
_CHOICES: dict[str, tuple[str, ...]] = {
    "kernels": ("muller", "spline"),
    "equation": ("gas", "tait", "incompressible"),
    "density": ("summation", "continuity"),
    "tension": ("none", "colour", "curvature", "pairwise"),
    "integrator": ("symplectic", "leapfrog"),
    "search": ("sorted", "hashed"),
}
SUPPORT = (1.2, 4.0)
"""Allowed radius over spacing: fewer neighbours than 6 do not make a fluid, more than 260 are only slow."""
MOST_ITERATIONS = 200


def _check_numbers(params: FluidParams) -> None:
    for field in fields(params):
        value = getattr(params, field.name)
        if not isinstance(value, float | int) or isinstance(value, bool):
            continue
        positive, free = field.name in _POSITIVE, field.name not in _POSITIVE + _NOT_NEGATIVE
        if not math.isfinite(value) or (not free and value < 0.0) or (positive and value == 0.0):
            allowed = "" if free else " above 0" if positive else " of 0 or more"
            raise InputError(f"{field.name} = {value} is not possible.", f"It must be a finite number{allowed}.")
    if params.support is not None and not SUPPORT[0] <= params.support <= SUPPORT[1]:
        raise InputError(
            f"support = {params.support:g} is not possible.", f"Allowed are {SUPPORT[0]} to {SUPPORT[1]} spacings."
        )
    if not 1 <= params.iterations <= MOST_ITERATIONS:
        raise InputError(f"iterations = {params.iterations} is not possible.", f"Allowed are 1 to {MOST_ITERATIONS}.")


def _check_box(params: FluidParams) -> None:
    if params.dimension not in (2, 3):
        raise InputError(f"dimension = {params.dimension} is not possible.", "Choose 2 or 3.")
    for name, corner in (("lower", params.lower), ("upper", params.upper)):
        if len(corner) != params.dimension or not _finite(corner):
            raise InputError(
                f"{name} = {corner} is not possible.", f"Give {params.dimension} finite numbers, in metres."
            )
    if not _finite(params.gravity) or len(params.gravity) != 3:
        raise InputError(f"gravity = {params.gravity} is not possible.", "Give three finite numbers, in m/s².")
    if len(params.periodic) != 3 or not all(isinstance(p, bool) for p in params.periodic):
        raise InputError(f"periodic = {params.periodic} is not possible.", "Give True or False for x, y and z.")
    for axis in range(params.dimension):
        length = params.upper[axis] - params.lower[axis]
        if length <= 0.0:
            raise InputError(
                f"the box goes from {params.lower[axis]:g} to {params.upper[axis]:g} m along {'xyz'[axis]}.",
                "Give the lower corner first.",
            )
        if params.periodic[axis] and length < 2.0 * params.radius:
            raise InputError(
                f"the box is {length:g} m long along {'xyz'[axis]}, where it is periodic.",
                f"A particle would meet itself: it must be at least {2.0 * params.radius:g} m.",
            )
    if params.dimension == 2 and (params.periodic[2] or params.gravity[2] != 0.0):
        raise InputError("2D has no z: neither gravity nor periods along it.", "Leave both 0.")


def _check_choices(params: FluidParams) -> None:
    for name, allowed in _CHOICES.items():
        if getattr(params, name) not in allowed:
            raise InputError(f"{name} = {getattr(params, name)!r} is not known.", f"Allowed are {', '.join(allowed)}.")
    if not params.compressible and (params.density == "continuity" or params.integrator == "leapfrog"):
        raise InputError(
            "the incompressible solver works with summed density and symplectic steps.",
            'Leave density="summation" and integrator="symplectic".',
        )
    if params.density == "continuity" and params.integrator != "leapfrog":
        raise InputError(
            "density by continuity needs leap-frog: with velocities of the same moment its sound waves grow.",
            'Choose integrator="leapfrog".',
        )
    if params.no_slip and params.density == "continuity":
        raise InputError(
            "no_slip needs summed density: the mirrored velocity of a wall would count as approach.",
            'Choose density="summation", or Monaghan\'s viscosity with smooth walls.',
        )


def _check_sizes(params: FluidParams) -> None:
    if params.sizes is None:
        return
    for own in params.sizes.supports:
        if not SUPPORT[0] <= own <= SUPPORT[1]:
            raise InputError(
                f"a support of {own} is not possible.", f"Allowed are {SUPPORT[0]} to {SUPPORT[1]} spacings."
            )
    plain = params.density == "summation" and params.integrator == "symplectic" and params.compressible
    if not plain or params.alpha + params.beta > 0.0 or params.tension != "none" or params.no_slip:
        raise InputError(
            "particles of several sizes go with summed density, symplectic steps and Müller's viscosity.",
            "Leave density, integrator, alpha, beta, tension and no_slip out, and choose the equation gas or tait.",
        )
    if any(params.periodic) or params.search != "sorted":
        raise InputError("several sizes are for boxes without periods, searched by sorted cells.", "Leave both out.")


def _finite(numbers: Sequence[float]) -> bool:
    return all(math.isfinite(value) for value in numbers)
