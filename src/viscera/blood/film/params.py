"""Numbers of the blood film: fluids, the viscoelastic model, what the extensions need. Checked here, once.

Lengths are metres on a surface. On a sheet (the document's texture space) read "texel" wherever it says metre.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

from viscera.blood.constants import BLOOD_DENSITY, SURFACE_TENSION
from viscera.errors import InputError

FLUIDS = 4
"""Most fluids in one film: a particle's concentrations are one `vec4`."""

LITTLE = 1.0e-15
"""Volumes are counted in whole picolitres [m³]: sums of integers are exact in any order."""

LARGEST_VOLUME = 2**31 - 1
"""[pL]; 2.1 mL in one particle."""

SETTLING = 0.2
"""See `FilmFluid.settled_density`; measured at k_near/k = 1.5, 3 and 4."""

MOST_VISCOUS = 0.25
"""Part of the velocity with which two particles at one place approach that viscosity takes from either in a step, at
most. All neighbours act at once: with 0.5, which would stop a lone pair, a crowd of 64 gains energy; with 0.25 it does
not (measured). A film at rest has 15."""

LIGHTEST, HEAVIEST = 100.0, 20_000.0
"""Of a fluid [kg/m³]: what lies beyond is most likely in another unit."""

Search = Literal["grid", "linked", "binned"]


def _check(what: object, positive: tuple[str, ...], zero: tuple[str, ...], integers: tuple[str, ...] = ()) -> None:
    for name in (*positive, *zero):
        value = getattr(what, name)
        if not math.isfinite(value) or value < 0.0 or (name in positive and value == 0.0):
            allowed = "above 0" if name in positive else "of 0 or more"
            raise InputError(f"{name} = {value} is not possible.", f"It must be a finite number {allowed}.")
        if name in integers and value != int(value):
            raise InputError(f"{name} = {value} is not possible.", "It must be a whole number.")


@dataclass(frozen=True)
class FilmFluid:
    """What one fluid is like. The constants of a mixed particle are the mean by its concentrations, those of a pair of
    particles the mean of both (Kvick §6.2.8)."""

    name: str
    density: float
    """[kg/m³]"""
    rest_density: float = 4.0
    """ρ₀, without unit. Near-pressure keeps the film looser, see `settled_density`: 4 is about 15 neighbours."""
    stiffness: float = 10.0
    """k, acceleration per unit of density above rest [m/s²]. Tuned: k·dt² up to 0.024 radii is calm, 0.05 jitters."""
    near_stiffness: float = 40.0
    """k_near [m/s²]; below (ρ₀ − 1) k, two particles alone would fall into one."""
    viscosity: float = 20.0
    """σ, linear viscosity [1/s]; σ·dt is at most 2 `MOST_VISCOUS`, one-sided `MOST_VISCOUS`."""
    quadratic_viscosity: float = 0.0
    """β, matters where particles meet fast [1/m]."""
    traction: float = 150.0
    """Drag of the surface [1/s]: the document's inertia term is I = exp(−traction·dt). A film of thickness t and
    dynamic viscosity µ has 3µ/(ρt²); blood (3.5 mPa·s) of 0.25 mm: 158."""
    phase: float = 0.0
    """Fluids of different phase push each other away, see `FilmParams.separation`; watery 0, oily 1."""
    clots: bool = False
    """Whether it coagulates."""
    dissolves: bool = False
    """Whether it dissolves clots."""
    absorption: tuple[float, float, float] | None = None
    """Of red, green and blue light [1/m]: e^(−absorption · thickness) gets through. None is clear; blood has its own
    look, which follows its clotting."""
    body: tuple[float, float, float] | None = None
    """What a thick layer of it scatters back, linear RGB from 0 to 1; given with `absorption`."""

    @property
    def settled_density(self) -> float:
        """Σ (1 − r/h)² inside a film at rest: ρ₀/(1 + 0.2 k_near/k), fitted to resting puddles within 3 %."""
        if self.stiffness == 0.0:
            return self.rest_density
        return self.rest_density / (1.0 + SETTLING * self.near_stiffness / self.stiffness)

    def __post_init__(self) -> None:
        _check(self, positive=("density", "rest_density"), zero=_FLUID_ZERO)
        for name, colour in (("absorption", self.absorption), ("body", self.body)):
            if colour is not None and not (len(colour) == 3 and all(math.isfinite(c) and c >= 0.0 for c in colour)):
                raise InputError(f"{name} = {colour} is no colour.", "Give three numbers from 0 on: red, green, blue.")
        if not LIGHTEST <= self.density <= HEAVIEST:
            raise InputError(
                f"fluid {self.name!r}: density = {self.density:g} is not possible.",
                f"It is in kg/m³, {LIGHTEST:g} to {HEAVIEST:g}; water has 1000.",
            )
        if self.body is not None and max(self.body) > 1.0:
            raise InputError(
                f"fluid {self.name!r}: body = {self.body} is no colour.", "It is linear RGB, each from 0 to 1."
            )
        if (self.absorption is None) != (self.body is None):
            given, lacking = ("absorption", "body") if self.body is None else ("body", "absorption")
            raise InputError(
                f"fluid {self.name!r} has {given}, but no {lacking}.",
                "Give both, as absorption=(9000.0, 2500.0, 300.0), body=(0.01, 0.03, 0.12); or neither: it is clear.",
            )


_FLUID_ZERO = ("stiffness", "near_stiffness", "viscosity", "quadratic_viscosity", "traction", "phase")

BLOOD = FilmFluid("blood", 1060.0, clots=True)
"""Density: IT'IS tables; the rest tuned for appearance from there."""

BILE = FilmFluid(
    "bile", 1010.0, rest_density=3.0, viscosity=10.0, traction=100.0, phase=1.0, absorption=(900.0, 700.0, 7000.0),
    body=(0.09, 0.075, 0.006),
)  # fmt: skip
"""Its salts keep it apart from blood for a while; drawn apart more clearly than it is, for appearance.
Golden in a film, green-brown in a puddle; colours tuned for appearance."""

SALINE = FilmFluid("saline", 1005.0, viscosity=2.0, traction=60.0, dissolves=True)
"""0.9 % NaCl, about a third of blood's viscosity."""


@dataclass(frozen=True)
class FilmParams:
    """Everything but what `fixed` says can change while the film runs (`set_film`)."""

    fluids: tuple[FilmFluid, ...] = (BLOOD, BILE, SALINE)
    """One to `FLUIDS` of them; component n of a concentration belongs to fluid n."""
    radius: float = 2.5e-3
    """h, how far particles feel each other [m]; fixed."""
    dt: float = 2.0e-3
    """[s]"""
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    """[m/s²]. On a sheet without tangents, x and y act as they are."""
    max_speed: float = 0.15
    """Velocities are clamped to this by magnitude [m/s]; max_speed·dt is fixed: cells are that much wider."""
    particle_volume: float = 2.0e-10
    """Of a particle that a wound emits [m³]; 0.2 µL."""
    one_sided: bool = False
    """The document's GPU variant (§3.6.6): pressure of the particle itself and no ½. Does not keep momentum; fixed."""
    search: Search = "grid"
    """Neighbour search; fixed. All three find the same."""
    bucket_size: int = 64
    """Layers of the binned search: most particles in a bucket; fixed."""

    # Springs and plasticity (Clavet §5); off by default, as in the document.
    springs: bool = False
    """Fixed."""
    spring_capacity: int = 48
    """Most springs of one particle; more are reported, never dropped unsaid; fixed."""
    spring_stiffness: float = 0.0
    """k_spring [1/s²]."""
    plasticity: float = 0.0
    """α, how fast rest lengths follow [1/s]."""
    yield_ratio: float = 0.1
    """γ, deformation that a spring bears without flowing, as a part of its rest length."""

    # Extensions (Kvick §6.2).
    lifetime: float = 0.0
    """[s]; 0 means for ever."""
    separation: float = 40.0
    """Pressure between particles whose phases differ by one [m/s²]; as large as `near_stiffness`, for appearance."""
    dilution: float = 0.0
    """Rate at which touching particles mix [1/s]; 0 means never."""
    clot_rate: float = 0.0
    """Of blood at rest: dc/dt = clot_rate (1 − c) / (1 + (speed/clot_speed)²) [1/s]; 0 means never."""
    clot_speed: float = 2.0e-3
    """Blood that moves this fast clots half as fast [m/s]."""
    clot_hold: float = 1000.0
    """A clot has 1 + this times the traction of fluid blood; half clotted, 1 + this/8."""
    hysteresis: float = 0.0
    """cos θ_r − cos θ_a of the film's border, which holds on to a surface, see `film.kernels`; 0: it wets it."""
    dissolve_rate: float = 0.0
    """Clot that pure solvent around it dissolves [1/s]."""
    pooling: float = 1.0
    """How much films are one where surfaces face each other across a gap below the radius: 1 as on one surface, 0
    not at all. On one surface, a valley or a ball, it changes nothing; see `film.pairs.touch`."""

    def __post_init__(self) -> None:
        _check(self, positive=_FILM_POSITIVE, zero=_FILM_ZERO, integers=("bucket_size", "spring_capacity"))
        if not 1 <= len(self.fluids) <= FLUIDS:
            raise InputError(f"fluids has {len(self.fluids)} entries.", f"Allowed are 1 to {FLUIDS}.")
        names = [fluid.name for fluid in self.fluids]
        if len(set(names)) != len(names):
            raise InputError(f"fluids are called {', '.join(names)}.", "Give each its own name.")
        if len(self.gravity) != 3 or not all(math.isfinite(g) for g in self.gravity):
            raise InputError(f"gravity = {self.gravity} is not possible.", "Give three finite numbers in m/s².")
        if self.max_speed * self.dt > 0.5 * self.radius:
            raise InputError(
                f"max_speed·dt = {self.max_speed * self.dt:g} m is more than half the radius {self.radius:g} m.",
                f"Take dt ≤ {0.5 * self.radius / self.max_speed:g} s, or a lower max_speed.",
            )
        if not 0.0 <= self.pooling <= 1.0:
            raise InputError(f"pooling = {self.pooling} is not possible.", "Allowed is 0 (apart) to 1 (one film).")
        self._check_viscosity()
        if self.search not in ("grid", "linked", "binned"):
            raise InputError(f"search = {self.search!r} is not known.", "Allowed are grid, linked and binned.")
        little = self.particle_volume / LITTLE
        if not 1.0 <= little <= LARGEST_VOLUME:
            raise InputError(
                f"particle_volume = {self.particle_volume:g} m³ is not possible.",
                f"Allowed are {LITTLE:g} to {LARGEST_VOLUME * LITTLE:g} m³.",
            )

    def _check_viscosity(self) -> None:
        """`MOST_VISCOUS`: kernels hold every pair there, for σ + β u; a σ that is beyond it at any speed is refused."""
        most = MOST_VISCOUS * (1.0 if self.one_sided else 2.0)
        for fluid in self.fluids:
            if fluid.viscosity * self.dt > most * (1.0 + 1.0e-6):
                raise InputError(
                    f"viscosity = {fluid.viscosity:g} /s of {fluid.name} is too much for dt = {self.dt:g} s: particles "
                    "would bounce off each other and gain energy.",
                    f"Take a viscosity ≤ {most / self.dt:g} /s, or dt ≤ {most / fluid.viscosity:g} s.",
                )

    @property
    def reach(self) -> float:
        """Farthest that a particle moves in a step before the others push it [m]."""
        return self.max_speed * self.dt

    @property
    def line_hold(self) -> float:
        """What a contact line holds a lone particle with: (24/π³) σ D (cos θ_r − cos θ_a)/(ρV), D = (6V/π)^⅓, as a drop
        that slides (`drops.impact`) [m/s²]."""
        volume = self.particle_volume
        diameter = (6.0 * volume / math.pi) ** (1.0 / 3.0)
        return 24.0 / math.pi**3 * SURFACE_TENSION * diameter * self.hysteresis / (BLOOD_DENSITY * volume)

    @property
    def little_volume(self) -> int:
        """`particle_volume` in picolitres."""
        return round(self.particle_volume / LITTLE)

    def wall_speed(self, name: str) -> float:
        """Where gravity and traction balance on a vertical wall: v = g dt/(1 − I), I = exp(−traction·dt) [m/s]."""
        lost = -math.expm1(-self.fluids[self.fluid(name)].traction * self.dt)
        return math.inf if lost == 0.0 else math.hypot(*self.gravity) * self.dt / lost

    def fluid(self, name: str) -> int:
        """Number of the fluid called `name`."""
        for number, fluid in enumerate(self.fluids):
            if fluid.name == name:
                return number
        raise InputError(f"there is no fluid {name!r}.", f"There are {', '.join(f.name for f in self.fluids)}.")

    def pure(self, name: str) -> tuple[float, float, float, float]:
        """Concentrations of a particle of nothing but the fluid `name`."""
        number = self.fluid(name)
        a, b, c, d = (1.0 if n == number else 0.0 for n in range(FLUIDS))
        return a, b, c, d


_FILM_POSITIVE = ("radius", "max_speed", "particle_volume", "clot_speed", "bucket_size", "spring_capacity")
_FILM_ZERO = (
    "dt",
    "spring_stiffness",
    "plasticity",
    "yield_ratio",
    "lifetime",
    "separation",
    "dilution",
    "clot_rate",
    "clot_hold",
    "hysteresis",
    "dissolve_rate",
)


@dataclass(frozen=True)
class Sheet:
    """The document's texture space: a rectangle of `width` × `height` texels that particles move in, in 2D."""

    width: int
    height: int
    wrap: bool = False
    """Particles that leave on one side come back on the other; else the space is open (§3.8.1)."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name != "wrap" and not 3 <= value <= 16384:
                raise InputError(f"{f.name} = {value} is not possible.", "Allowed are 3 to 16384 texels.")


def document_fluid(rest_density: float = 4.0) -> FilmFluid:
    """A fluid in texels for the document's texture space; it prints no constants, so these are tuned to be stable."""
    return FilmFluid("blood", 1060.0, rest_density, stiffness=120.0, near_stiffness=480.0, viscosity=20.0, traction=5.0)


def document_params(rest_density: float = 4.0, **changes: Any) -> FilmParams:
    """Parameters in texels: buckets of one texel, as in the document (§3.7)."""
    numbers: dict[str, Any] = {
        "fluids": (document_fluid(rest_density),),
        "radius": 1.0,
        "dt": 0.01,
        "gravity": (0.0, -10.0, 0.0),
        "max_speed": 10.0,
        "separation": 480.0,
        "one_sided": True,
    }
    return FilmParams(**(numbers | changes))


__all__ = [
    "BILE",
    "BLOOD",
    "FLUIDS",
    "LITTLE",
    "SALINE",
    "FilmFluid",
    "FilmParams",
    "Search",
    "Sheet",
    "document_fluid",
    "document_params",
]
