"""Every loop in C has a plain twin in Warp; here they are registered, with what each of the two can do.

A package with loops in C has a module `twins` that registers them:

    register(Twin("water.density", plain=(density.sum_density,), native={"cpu": (native.sum_density,)},
                  features=("poly6", "spline"), plain_only=("periodic",), tolerance=2e-5, make=_density))

`make(device, feature, native, size)` gives a `Trial`: the same random case for both twins. tests/native/test_twins.py
runs both on every device and compares what they leave behind; `viscera bench twins` measures both. A feature that one
twin lacks must be refused: there `make` lets the InputError of the package through, and the test wants to see it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError

if TYPE_CHECKING:
    from viscera.device import Device, Stage

Results = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Trial:
    """One of two twins, ready to run once or many times."""

    step: Callable[[Stage], None]
    """The launches that are compared, and those that must go before; they may run again and again."""
    results: Callable[[], Results]
    """What they left behind, by name, for as long as the trial lives; waits for the device."""
    elements: int
    """Masses, particles or texels."""
    work: int = 0
    """For `Device.record`; 0 for one core."""


@dataclass(frozen=True)
class Twin:
    """A loop that is written twice."""

    name: str
    """Package, then what it does."""
    plain: tuple[Any, ...]
    """Warp kernels."""
    native: Mapping[str, tuple[Any, ...]]
    """Kernels around code in C, for "cpu", for "cuda" or for both."""
    features: tuple[str, ...]
    """Both can do it; the first is the usual one, which is measured."""
    tolerance: float
    """Largest difference that is allowed, over the largest value of the same array: sums run in another order."""
    make: Callable[[Device, str, bool, int], Trial]
    """(device, feature, native, size)"""
    small: int
    """Size for a test."""
    large: int
    """Size for a measurement."""
    plain_only: tuple[str, ...] = ()
    """Features that the loop in C lacks and refuses."""
    native_only: tuple[str, ...] = ()
    """Features that the plain loop lacks and refuses."""
    exact: frozenset[str] = field(default_factory=frozenset)
    """Arrays of the results that must be the same to the last bit."""
    only_tested: tuple[str, ...] = ()
    """Devices for which the loop in C is there for tests alone: no scenario takes it, so it is not measured."""

    def runs_on(self, device: Device) -> bool:
        return kind_of(device) in self.native

    def kernels(self) -> set[Any]:
        """All of them, plain and native."""
        return {*self.plain, *(kernel for some in self.native.values() for kernel in some)}


_registered: dict[str, Twin] = {}


def register(twin: Twin) -> Twin:
    """Two twins with one name, or a feature that is named twice, are mistakes."""
    known = _registered.get(twin.name)
    if known is not None and known.make.__module__ != twin.make.__module__:
        raise ValueError(f"twin {twin.name!r} is registered by {known.make.__module__} and by {twin.make.__module__}")
    named = [*twin.features, *twin.plain_only, *twin.native_only]
    if len(named) != len(set(named)) or not twin.features:
        raise ValueError(f"twin {twin.name!r} names a feature twice, or has none: {named}")
    if unknown := set(twin.native) - {"cpu", "cuda"}:
        raise ValueError(f"twin {twin.name!r} is for {sorted(unknown)}; there are cpu and cuda")
    _registered[twin.name] = twin
    return twin


def registered(package: ModuleType) -> dict[str, Twin]:
    """All twins of the package, by name; imports every module in it that is called `twins`. Packages that want more
    than is installed here (learning) have none."""
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".", onerror=lambda name: None):
        if module.name.endswith(".twins") and module.name != __name__:
            importlib.import_module(module.name)
    return dict(sorted(_registered.items()))


def kind_of(device: Device) -> str:
    return "cuda" if device.is_cuda else "cpu"


def run(device: Device, trial: Trial) -> Results:
    """What one run leaves behind."""
    device.record(trial.step, work=trial.work).run()
    device.synchronize()
    # On cpu an array as NumPy is a view that does not keep its memory: it goes with the trial.
    return {name: np.array(values, copy=True) for name, values in trial.results().items()}


def difference(plain: Results, native: Results) -> dict[str, float]:
    """Of each array: the largest difference over the largest value."""
    if plain.keys() != native.keys():
        raise InputError(f"results are {sorted(plain)} and {sorted(native)}.", "Both twins must give the same names.")
    return {name: _apart(plain[name], native[name]) for name in plain}


def _apart(one: NDArray[Any], other: NDArray[Any]) -> float:
    if one.shape != other.shape:
        return float("inf")
    a, b = one.astype(np.float64), other.astype(np.float64)
    largest = float(np.abs(a).max(initial=0.0))
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("inf")
    apart = float(np.abs(a - b).max(initial=0.0))
    return apart / largest if largest > 0.0 else apart
