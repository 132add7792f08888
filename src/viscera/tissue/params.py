"""What a lattice is made of, and what its substeps can carry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.explaining import explained
from viscera.timing import TICK
from viscera.tissue.materials import Material
from viscera.tissue.springs import axis_stiffness, highest_frequency2
from viscera.tissue.volume import bulk_share_of_young, spring_share_of_young

SAFETY = 0.8
"""A substep is at most this share of the largest stable one."""

MOST_SUBSTEPS = 256
"""Stiffer than this asks for is a mistake in units more often than a wish."""

MOST_MATERIALS = 16

MOST_SLABS = 256
"""More than this is a slip: each has at least a layer, and costs a launch."""

LEAST_POISSON, MOST_POISSON = 0.25, 0.49
"""Springs alone have the least; nearer to ½ the volume force asks for ever more substeps."""


@dataclass(frozen=True)
class Remedies:
    """Against spring inversion; see remedies.py."""

    surface_stiffness: float = 1.0
    """Factor of springs at the surface; 2 in the source."""
    shape: float = 0.0
    """Angular frequency of a mass on its shape-preserving spring [rad/s]."""
    torsion: float = 0.0
    """k_t over k₁·dx²; 0.1 is much."""


@dataclass(frozen=True)
class Creep:
    """Under a lasting load; see creep.py."""

    fraction: float = 0.0
    """φ: how much of a strain becomes the new rest length, below 1."""
    time: float = 1.0
    """T [s]."""


@dataclass(frozen=True)
class RestSkipping:
    """Tiles whose masses are all below both bounds, and whose neighbours did not move, are not computed."""

    force: float
    """[N]"""
    speed: float
    """[m/s]"""


@explained
@dataclass(frozen=True)
class LatticeParams:
    """What a lattice is made of."""

    nodes: NDArray[np.int32]
    """Integer positions of the masses, shape (masses, 3)."""
    spacing: float
    """[m]"""
    origin: tuple[float, float, float]
    """World position of node (0, 0, 0) [m]."""
    anchored: NDArray[np.bool_]
    """Masses that do not move by themselves, shape (masses,)."""
    material: Material
    """What most of it is: its Young's modulus is the one that can be set while it runs."""
    stiffest: float
    """Largest Young's modulus of `material` that may be set while it runs [Pa]; fixes the number of substeps."""
    viscous_time: float | None = None
    """τ of the Kelvin–Voigt solid, the same everywhere [s]; None for each material's own."""
    longest_viscous_time: float | None = None
    """Largest τ of `material` that may be set while it runs [s]; fixes the number of substeps too. None for the first
    one."""
    drag: float = 0.0
    """α against the surroundings, besides that of the materials [1/s]."""
    further: tuple[Material, ...] = ()
    """Other materials, numbered from 1."""
    material_of: NDArray[np.uint8] | None = None
    """Number of each mass's material, 0 for `material`; springs take the mean of their two ends."""
    relative_young: NDArray[np.float64] | None = None
    """A further factor on each mass's Young's modulus, shape (masses,)."""
    poisson: float | None = None
    """ν, the same everywhere: 0.25 for springs alone, up to 0.49 with the volume-preserving force of volume.py. None
    for each material's own."""
    equal_springs: bool = False
    """All springs alike, as in the source, instead of the isotropic rule."""
    remedies: Remedies = Remedies()
    """Against springs that turn inside out."""
    creep: Creep = Creep()
    """How it gives way while it is pressed, and comes back."""
    rest_skipping: RestSkipping | None = None
    """Leaves out what rests; None: all of it moves in every tick."""
    driven: NDArray[np.bool_] | None = None
    """Anchors that are moved, shape (masses,); see `Tissue.set_drive`."""
    drive_direction: NDArray[np.float64] | None = None
    """Their displacement for a drive of 1 [m], shape (masses, 3)."""
    slabs: int = 1
    """Parts along z that are computed one by one; see slabs.py."""

    @property
    def materials(self) -> tuple[Material, ...]:
        return (self.material, *self.further)

    def young_of(self) -> NDArray[np.float64]:
        """Each mass's Young's modulus over that of `material`."""
        table = np.array([m.young / self.material.young for m in self.materials])
        young = np.ones(len(self.nodes)) if self.material_of is None else table[self.material_of]
        return young if self.relative_young is None else young * self.relative_young

    def density_of(self) -> NDArray[np.float64]:
        """Each mass's density [kg/m³]."""
        return self._of_material([m.density for m in self.materials])

    def drag_of(self) -> NDArray[np.float64]:
        """Each mass's own drag [1/s]."""
        return self._of_material([m.drag for m in self.materials])

    def poisson_of(self) -> NDArray[np.float64]:
        """Each mass's ν."""
        return self._of_material(self._poissons)

    def spring_young_of(self) -> NDArray[np.float64]:
        """Each mass's modulus of the springs alone, over that of `material` (volume.py)."""
        shares = [spring_share_of_young(poisson) for poisson in self._poissons]
        return self.young_of() * self._of_material([share / shares[0] for share in shares])

    def bulk_young_of(self) -> NDArray[np.float64]:
        """Each mass's κ over `bulk_reference` times the Young's modulus of `material` (volume.py)."""
        shares = [bulk_share_of_young(poisson) for poisson in self._poissons]
        reference = self.bulk_reference or 1.0
        return self.young_of() * self._of_material([share / reference for share in shares])

    def viscous_of(self) -> NDArray[np.float64]:
        """Each mass's τ over that of `material`."""
        first = self.material.viscous_time
        if self.viscous_time is not None or first == 0.0:
            return np.ones(len(self.nodes))
        return self._of_material([m.viscous_time / first for m in self.materials])

    def _of_material(self, values: Sequence[float]) -> NDArray[np.float64]:
        table = np.array(values)
        return np.full(len(self.nodes), table[0]) if self.material_of is None else table[self.material_of]

    @property
    def _poissons(self) -> tuple[float, ...]:
        return tuple(m.poisson if self.poisson is None else self.poisson for m in self.materials)

    @property
    def first_poisson(self) -> float:
        """ν of `material`."""
        return self._poissons[0]

    @property
    def has_volume(self) -> bool:
        """Whether some material needs the volume-preserving force."""
        return max(self._poissons) > 0.25

    @property
    def bulk_reference(self) -> float:
        """Largest κ/E of the materials."""
        return max(bulk_share_of_young(poisson) for poisson in self._poissons)

    @property
    def first_viscous_time(self) -> float:
        """τ of `material` as the lattice is made [s]."""
        return self.material.viscous_time if self.viscous_time is None else self.viscous_time

    @property
    def most_viscous_time(self) -> float:
        """Largest τ of `material` that may be set [s]."""
        return self.first_viscous_time if self.longest_viscous_time is None else self.longest_viscous_time


def largest_step(
    spacing: float, young: float, density: float, viscous_time: float = 0.0, poisson: float = 0.25, torsion: float = 0.0
) -> float:
    """Largest stable Δt [s]: Δt² + 2·τ·Δt < 4/ω² with ω the highest frequency of the lattice."""
    springs = young * spring_share_of_young(poisson)
    k1 = axis_stiffness(springs, spacing)
    volume = bulk_share_of_young(poisson) * young * spacing / k1
    omega2 = highest_frequency2(round(volume, 6), torsion) * k1 / (density * spacing**3)
    return math.sqrt(viscous_time**2 + 4.0 / omega2) - viscous_time


def bulk_step(params: LatticeParams) -> float:
    """Largest stable step at the stiffest setting in an endless lattice of the most demanding material [s]."""
    young, poisson, viscous = params.young_of(), params.poisson_of(), params.viscous_of()
    kinds = np.unique(np.stack([poisson, viscous], axis=1), axis=0)
    steps = []
    for nu, relative in kinds.tolist():
        hardest = float(young[(poisson == nu) & (viscous == relative)].max())
        steps.append(_endless_step(params, hardest, nu, relative))
    return min(steps)


def cautious_step(params: LatticeParams) -> float:
    """The same where the largest value of each property meets in one place [s]: at a border between a stiff and a
    viscous material springs take the mean of both, and are more demanding than either."""
    worst = (float(values.max()) for values in (params.young_of(), params.poisson_of(), params.viscous_of()))
    return _endless_step(params, *worst)


def _endless_step(params: LatticeParams, young: float, poisson: float, viscous: float) -> float:
    """For Young's modulus and τ over those of `material`."""
    remedies = params.remedies
    hardest = young / float(params.density_of().min()) * params.material.density
    density, tau = params.material.density, viscous * params.most_viscous_time
    step = largest_step(params.spacing, params.stiffest * hardest, density, tau, poisson, remedies.torsion)
    return 1.0 / math.hypot(1.0 / step, remedies.shape / 2.0)


def checked_substeps(params: LatticeParams, step: float) -> int:
    """Substeps per tick for this largest stable step [s]; refuses what cannot be meant."""
    count = max(1, math.ceil(TICK / (SAFETY * step)))
    if count > MOST_SUBSTEPS:
        young = params.stiffest * float(params.young_of().max())
        raise InputError(
            f"Young's modulus {young:g} Pa on a lattice of {params.spacing * 1e3:g} mm needs {count} substeps per "
            f"millisecond (at most {MOST_SUBSTEPS}).",
            f"Use a spacing of {params.spacing * 1e3 * count / MOST_SUBSTEPS:.2g} mm or more, a softer material "
            "or less damping.",
        )
    return count


def check_params(params: LatticeParams) -> None:
    """Refuses what cannot be, by name."""
    if len(params.materials) > MOST_MATERIALS:
        raise InputError(f"lattice: {len(params.materials)} materials.", f"At most {MOST_MATERIALS} are possible.")
    for material in params.materials:
        material.check()
    remedies, creep, rest = params.remedies, params.creep, params.rest_skipping
    tiny = float(np.finfo(np.float32).tiny)
    _within("spacing", params.spacing, tiny, 1.0)
    _within("stiffest", params.stiffest, tiny, 1e12)
    _within("viscous_time", params.first_viscous_time, 0.0, 1.0)
    _within("longest_viscous_time", params.most_viscous_time, 0.0, 1.0)
    _within("drag", params.drag, 0.0, 1e6)
    if params.poisson is not None:
        _within("poisson", params.poisson, LEAST_POISSON, MOST_POISSON)
    _within("remedies.surface_stiffness", remedies.surface_stiffness, 1.0, 100.0)
    _within("remedies.shape", remedies.shape, 0.0, 1e5)
    _within("remedies.torsion", remedies.torsion, 0.0, 10.0)
    _within("creep.fraction", creep.fraction, 0.0, 0.95)
    _within("creep.time", creep.time, 1e-2, 1e6)
    _within("slabs", params.slabs, 1, MOST_SLABS)
    if rest is not None:
        if params.slabs > 1:
            raise InputError("lattice: slabs do not skip rest.", "Leave `rest_skipping` out, or use one slab.")
        _within("rest_skipping.force", rest.force, 0.0, 1e3)
        _within("rest_skipping.speed", rest.speed, 0.0, 1e3)
    _check_materials(params)
    if params.first_viscous_time > params.most_viscous_time or params.material.young > params.stiffest:
        raise InputError(
            "lattice: the first setting is beyond the largest allowed one.",
            "Raise `stiffest` and `longest_viscous_time` to the settings that the run may reach, or give a shorter "
            "`viscous_time`: without one, the material's own counts.",
        )
    _check_arrays(params)


def _check_materials(params: LatticeParams) -> None:
    """What materials may be, but not those of a lattice."""
    for material in params.materials:
        if params.poisson is None and not LEAST_POISSON <= material.poisson <= MOST_POISSON:
            raise InputError(
                f"lattice: material {material.name!r} has poisson = {material.poisson}.",
                f"A lattice takes {LEAST_POISSON:g} to {MOST_POISSON:g}; give the lattice a `poisson` for all of it.",
            )
        if params.viscous_time is None and material.viscous_time > 0.0 == params.material.viscous_time:
            raise InputError(
                f"lattice: {material.name!r} has a viscous time, the main material {params.material.name!r} has none.",
                "The others follow the main one when it is set, so give it one too, or the lattice a `viscous_time`.",
            )


def _check_arrays(params: LatticeParams) -> None:
    masses = len(params.nodes)
    for name, shape in (
        ("anchored", (masses,)),
        ("material_of", (masses,)),
        ("relative_young", (masses,)),
        ("driven", (masses,)),
        ("drive_direction", (masses, 3)),
    ):
        array = getattr(params, name)
        if name == "material_of" and array is not None and array.dtype == bool:
            raise InputError("lattice: material_of is a mask.", "It numbers materials: give `mask.astype(np.uint8)`.")
        if array is not None and array.shape != shape:
            raise InputError(f"lattice: {name} has shape {array.shape}.", f"It must be {shape}.")
    if params.material_of is not None and masses and int(params.material_of.max()) >= len(params.materials):
        raise InputError(
            f"lattice: material_of names material {int(params.material_of.max())}.",
            f"There are {len(params.materials)}, counted from 0.",
        )
    relative = params.relative_young
    if relative is not None and not (np.isfinite(relative).all() and (relative > 0).all()):
        raise InputError("lattice: relative_young is not finite and above 0 everywhere.", "Correct the array.")
    if params.driven is not None:
        if params.drive_direction is None or not np.isfinite(params.drive_direction[params.driven]).all():
            raise InputError("lattice: driven masses need a finite drive_direction.", "Give one vector [m] per mass.")
        if params.rest_skipping is not None:
            raise InputError("lattice: rest skipping and driven anchors exclude each other.", "Choose one of them.")
        if (params.driven & ~params.anchored).any():
            raise InputError("lattice: a driven mass is not anchored.", "Set `anchored` for every driven mass.")


def _within(name: str, value: float, least: float, most: float) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise InputError(f"lattice: {name} = {value} is not allowed.", f"Allowed are {least:g} to {most:g}.")
