"""Loops in C against their plain twins: what each gains, and so whether it is worth being there.

Every twin of the registry (viscera/native/twins.py) in its first feature, at one size that a scenario has. Both run in
turns, so that what else the machine does meets both alike. `size` counts masses, particles or texels; `gain` is the
plain time over this one. A twin whose native row has a gain near 1 on every device may go.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import viscera
from viscera.bench.registry import Row, benchmark, pick, timed, times_ms
from viscera.device import Device
from viscera.native import Twin, registered
from viscera.native.twins import kind_of

NAME = "twins"

TURNS = 5
"""How often the two change places."""


def headline(device: Device) -> Row:
    """The lattice's step: what every scenario with tissue spends its ticks in."""
    return pick(_rows(registered(viscera)["tissue.step"], device, quick=False), "native")


@benchmark(NAME, title="Loops in C against their plain twins", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    for twin in registered(viscera).values():
        if _is_measured(twin, device):
            yield from _rows(twin, device, quick)


def _is_measured(twin: Twin, device: Device) -> bool:
    return twin.runs_on(device) and kind_of(device) not in twin.only_tested


def _rows(twin: Twin, device: Device, quick: bool) -> Iterator[Row]:
    feature, size = twin.features[0], twin.small if quick else twin.large
    trials = [twin.make(device, feature, native, size) for native in (False, True)]
    programs = [device.record(trial.step, work=trial.work) for trial in trials]
    samples: list[list[float]] = [[], []]
    for _ in range(1 if quick else TURNS):
        for found, program in zip(samples, programs, strict=True):
            found += times_ms(program.run, device, repeats=10, warmup=2)
    plain, native = (statistics.median(found) for found in samples)
    for name, trial, ms in (("plain", trials[0], plain), ("native", trials[1], native)):
        yield timed(NAME, f"{twin.name}, {feature}, {name}", trial.elements, device, ms, extra={"gain": plain / ms})
