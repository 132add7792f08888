"""What a sweep runs: every combination of the settings' values, with every seed."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from viscera.errors import InputError

MOST_RUNS = 1_000_000
"""So that a slip of the finger does not fill a disk."""


@dataclass(frozen=True)
class Run:
    number: int
    seed: int
    settings: dict[str, float]


@dataclass(frozen=True)
class Plan:
    scenario: str
    """A name, or the path of a file."""
    seconds: float
    """Simulated, of each run."""
    settings: dict[str, tuple[float, ...]] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    measures: tuple[str, ...] = ()
    """That go into the table; all of them when empty."""
    device: str | None = "cpu"
    detail: float = 1.0
    cores: int | None = 1

    def __post_init__(self) -> None:
        empty = [name for name, values in self.settings.items() if not values]
        if empty or not self.seeds:
            raise InputError(f"{empty[0] if empty else 'seeds'} has no values.", "Give at least one.")
        if self.count > MOST_RUNS:
            raise InputError(f"{self.count} runs are too many.", f"At most {MOST_RUNS} are possible in one sweep.")

    @property
    def count(self) -> int:
        return math.prod([len(values) for values in self.settings.values()]) * len(self.seeds)

    def runs(self) -> list[Run]:
        """In the order of their numbers: seeds change first."""
        combinations = itertools.product(*self.settings.values())
        pairs = [
            (dict(zip(self.settings, values, strict=True)), seed) for values in combinations for seed in self.seeds
        ]
        return [Run(number, seed, settings) for number, (settings, seed) in enumerate(pairs)]

    def fingerprint(self) -> str:
        """The same for the same plan only."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def check(self) -> None:
        """Refuses settings, measures and values that the scenario does not have, before anything is run."""
        from viscera.headless import tick_count
        from viscera.inputs import SetParameter
        from viscera.scenarios import check_seed, make
        from viscera.world.settings import closest_names

        tick_count(self.seconds)
        for seed in self.seeds:
            check_seed(seed)
        world = make(self.scenario, device=self.device, seed=self.seeds[0], detail=self.detail, cores=self.cores)
        try:
            for name, values in self.settings.items():
                for value in values:
                    world.settings.check(SetParameter(name, value))
            known: Mapping[str, Any] = world.measure_values()
            for name in self.measures:
                if name not in known:
                    raise InputError(f"{self.scenario} has no measure {name!r}.", closest_names(name, known))
        finally:
            world.close()


def parse_values(text: str) -> tuple[str, tuple[float, ...]]:
    """`stiffness=1:7:5` (from, to, how many), `stiffness=1,3.5` or `stiffness=3.5`."""
    name, equals, values = text.partition("=")
    example = "For example: --set stiffness=1:7:5, --set stiffness=2,4 or --set stiffness=3.5"
    if not equals or not name.strip():
        raise InputError(f"--set {text!r} is not KEY=VALUES.", example)
    try:
        if ":" in values:
            low, high, count = values.split(":")
            return name.strip(), _between(float(low), float(high), int(count))
        found = tuple(float(value) for value in values.split(","))
    except ValueError:
        raise InputError(f"--set {name.strip()}: {values!r} are no values.", example) from None
    if not all(map(math.isfinite, found)) or len(set(found)) != len(found):
        raise InputError(f"--set {name.strip()}: {values!r} are not finite, or not all different.", example)
    return name.strip(), found


def _between(low: float, high: float, count: int) -> tuple[float, ...]:
    """Evenly, both ends included."""
    if count < 2 or not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError
    return tuple(low + (high - low) * k / (count - 1) for k in range(count))


def parse_seeds(text: str) -> tuple[int, ...]:
    """`0:20` (twenty of them, from 0), `1,4,9` or `3`."""
    example = "For example: --seeds 0:20 (0 to 19), --seeds 1,4,9 or --seeds 3"
    try:
        if ":" in text:
            first, end = text.split(":")
            seeds = tuple(range(int(first), int(end)))
        else:
            seeds = tuple(int(seed) for seed in text.split(","))
    except ValueError:
        raise InputError(f"--seeds {text!r} are no whole numbers.", example) from None
    if not seeds or len(set(seeds)) != len(seeds):
        raise InputError(f"--seeds {text!r} are none, or not all different.", example)
    return seeds
