"""The tube: which energies it gives, how much dose they are, and what of them a detector takes.

Bremsstrahlung of a thick target by Kramers (1923), as numbers of photons per keV,

    φ₀(E) ∝ (E₀/E − 1),     φ(E) = φ₀(E) exp(− Σ μ_f(E) t_f)

behind filters of thickness t_f; lines of tungsten are left out. Air kerma of a fluence φ [1/m²] is
K = Σ φ E (μ_en/ρ)_air. The detector is a layer of caesium iodide, which takes the share 1 − exp(−μ t) and gives light
in proportion to the energy.

A picture needs an exponential per energy and pixel, so a few energies stand for all: a quadrature whose nodes and
weights are fitted (least squares with weights ≥ 0) to what comes through all mixtures of the scene's materials. Equal
groups of bins would be 15 % off beside the K edge of barium.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.xray.materials import ALUMINIUM, CAESIUM_IODIDE, COPPER, WATER, Material, attenuation

FloatArray = NDArray[np.float64]

DARKEST = 1e-5
"""Share of the signal down to which the few energies are fitted."""
JOULE_PER_KEV = 1.602176634e-16
PEAK = (40.0, 150.0)
"""Allowed peak voltages [kV]."""
AIR_ABSORPTION = np.array(
    [
        # keV, cm²/g
        [10.0, 4.742], [15.0, 1.334], [20.0, 0.5389], [30.0, 0.1537], [40.0, 0.06833], [50.0, 0.04098],
        [60.0, 0.03041], [80.0, 0.02407], [100.0, 0.02325], [150.0, 0.02496],
    ]
)  # fmt: skip
"""Mass energy-absorption coefficients of dry air: Hubbell and Seltzer, NISTIR 5632 (1995)."""


@dataclass(frozen=True)
class Tube:
    peak: float = 90.0
    """Voltage [kV]."""
    aluminium: float = 0.003
    """Filter, the tube's own included [m]."""
    copper: float = 0.0001
    """Further filter [m]."""
    scintillator: float = 0.0006
    """Thickness of the detector's caesium iodide [m]."""
    monochromatic: float | None = None
    """One energy [keV] instead of a spectrum, for measurements."""

    def __post_init__(self) -> None:
        if not PEAK[0] <= self.peak <= PEAK[1]:
            raise InputError(f"peak = {self.peak:g} kV is not possible.", f"Allowed are {PEAK[0]:g} to {PEAK[1]:g} kV.")
        for name, most in (("aluminium", 0.05), ("copper", 0.005), ("scintillator", 0.01)):
            if not 0.0 <= getattr(self, name) <= most:
                raise InputError(f"{name} = {getattr(self, name):g} m is not possible.", f"Allowed are 0 to {most} m.")
        if self.monochromatic is not None and not 15.0 <= self.monochromatic <= 150.0:
            raise InputError(f"monochromatic = {self.monochromatic:g} keV is not possible.", "Allowed are 15 to 150.")


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Groups of energies."""

    energies: FloatArray
    """[keV], shape (groups,)."""
    signal: FloatArray
    """Share of the detector's signal in each group with nothing in the beam; adds up to 1."""
    quanta_per_kerma: float
    """Photons that the detector takes, per area and air kerma with nothing in the beam [1/(m²·Gy)]."""


def photons(tube: Tube) -> tuple[FloatArray, FloatArray]:
    """Energies [keV] of bins of 1 keV, and the number of photons in each, in no unit."""
    if tube.monochromatic is not None:
        return np.array([tube.monochromatic]), np.ones(1)
    energies = np.arange(10.5, tube.peak)
    filters = attenuation(ALUMINIUM, energies) * tube.aluminium + attenuation(COPPER, energies) * tube.copper
    return energies, (tube.peak / energies - 1.0) * np.exp(-filters)


def taken(tube: Tube, energies: FloatArray) -> FloatArray:
    """Share of the photons that the detector takes."""
    return 1.0 - np.exp(-attenuation(CAESIUM_IODIDE, energies) * tube.scintillator)


def make_spectrum(tube: Tube, materials: Sequence[Material] = (WATER,), groups: int = 8) -> Spectrum:
    """At most `groups` energies whose signal behind any mixture of `materials` is that of the whole spectrum."""
    if not 1 <= groups <= 140:
        raise InputError(f"groups = {groups} is not possible.", "Allowed are 1 to 140.")
    energies, number = photons(tube)
    light = number * energies * taken(tube, energies)
    kerma = number * energies * JOULE_PER_KEV * _air_absorption(energies)
    weights = light / light.sum()
    if groups < len(energies):
        weights = _fewer(weights, np.stack([attenuation(one, energies) for one in materials], axis=1), groups)
    used = weights > 0.0
    return Spectrum(
        energies[used], weights[used] / weights.sum(), float((number * taken(tube, energies)).sum() / kerma.sum())
    )


def _fewer(weights: FloatArray, mu: FloatArray, groups: int) -> FloatArray:
    """Weights ≥ 0 of the same energies, all but `groups` of them 0, so that Σ w exp(−μ·x) stays what it is for all
    thicknesses x of the materials; relative errors are least in the mean square."""
    rng = np.random.default_rng(0)
    # Thicknesses that let through between all and 10⁻⁵, alone and mixed.
    mean = (weights[:, None] * mu).sum(axis=0)
    alone = np.concatenate([np.outer(np.geomspace(0.01, 10.0, 24), row) for row in np.diag(1.0 / mean)])
    mixed = rng.dirichlet(np.ones(mu.shape[1]), 120) * rng.uniform(0.1, 10.0, (120, 1)) / mean
    thickness = np.concatenate([np.zeros((8, mu.shape[1])), alone, mixed])
    through = np.exp(-thickness @ mu.T)
    truth = through @ weights
    kept = truth > DARKEST
    return _non_negative(through[kept] / truth[kept, None], np.ones(int(kept.sum())), groups)


def _non_negative(matrix: FloatArray, target: FloatArray, most: int) -> FloatArray:
    """Least squares with x ≥ 0 (Lawson and Hanson 1974, ch. 23), with at most `most` numbers above 0."""
    x = np.zeros(matrix.shape[1])
    passive = np.zeros(matrix.shape[1], dtype=bool)
    for _ in range(10 * most):
        slope = np.where(passive, -np.inf, matrix.T @ (target - matrix @ x))
        if passive.sum() == most or slope.max() < 1e-9:
            break
        passive[slope.argmax()] = True
        while True:
            trial = np.zeros_like(x)
            trial[passive] = np.linalg.lstsq(matrix[:, passive], target, rcond=None)[0]
            if (trial[passive] > 0.0).all():
                x = trial
                break
            falling = passive & (trial <= 0.0)
            x = x + float(np.min(x[falling] / (x[falling] - trial[falling]))) * (trial - x)
            passive &= x > 1e-15
            x[~passive] = 0.0
    return x


def _air_absorption(energies: FloatArray) -> FloatArray:
    """(μ_en/ρ) of air [m²/kg]."""
    at, values = np.log(AIR_ABSORPTION).T
    return 0.1 * np.exp(np.interp(np.log(energies), at, values))


def group_attenuation(spectrum: Spectrum, materials: Sequence[Material]) -> FloatArray:
    """μ [1/m] of shape (groups, materials)."""
    return np.stack([attenuation(one, spectrum.energies) for one in materials], axis=1)


def half_value_layer(tube: Tube) -> float:
    """Aluminium that halves the air kerma [m], which is how the quality of a beam is stated."""
    energies, number = photons(tube)
    kerma = number * energies * _air_absorption(energies)
    mu = attenuation(ALUMINIUM, energies)
    low, high = 0.0, 0.05
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (kerma * np.exp(-mu * middle)).sum() > 0.5 * kerma.sum() else (low, middle)
    return 0.5 * (low + high)
