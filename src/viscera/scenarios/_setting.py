"""What a scenario is built with, and how its counts follow the detail that is asked for.

Detail multiplies the number of masses, texels and particles; 1 is what the scenario states. A world stays the same
thing in the same size at any detail, made of more and smaller parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from viscera.device import Device
from viscera.errors import InputError

FEWEST_TEXELS, MOST_TEXELS = 64, 4096
"""Along a side, that a skin can have."""


@dataclass(frozen=True)
class Option:
    """Something that a scenario is built with if a user wants it, besides a mesh: `--with NAME=VALUE`."""

    name: str
    kind: Literal["file", "number", "word"]
    """A file or folder, a whole number, or one of some words."""
    help: str
    least: int = 0
    most: int = 2**31
    """Of a number."""
    words: tuple[str, ...] = ()


def check_options(options: Sequence[Option], given: Mapping[str, str | int | Path], name: str) -> dict[str, str]:
    """What a user gave, checked: whole paths of files that are there, and numbers in their range. `name` is the
    scenario's."""
    known = {one.name: one for one in options}
    found = {}
    for key, value in given.items():
        if key not in known:
            there = ", ".join(known) or "none"
            raise InputError(f"{name} has no option {key!r}.", f"Options of {name}: {there}.")
        found[key] = _checked(known[key], str(value))
    return found


def _checked(option: Option, text: str) -> str:
    if option.kind == "file":
        if not Path(text).exists():
            raise InputError(f"{option.name}: {text} is not there.", f"{option.help} Check the path.")
        return str(Path(text).resolve())
    if option.kind == "word":
        if text not in option.words:
            raise InputError(f"{option.name} = {text} is not known.", f"Allowed are {', '.join(option.words)}.")
        return text
    if not text.isdecimal() or not option.least <= int(text) <= option.most:
        raise InputError(
            f"{option.name} = {text} is not allowed.", f"A whole number from {option.least} to {option.most}."
        )
    return str(int(text))


@dataclass(frozen=True)
class Setting:
    """What a scenario is built with."""

    device: Device
    seed: int
    mesh: Path | None = None
    """A mesh that the user gave."""
    detail: float = 1.0
    """Times the scenario's stated counts."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What else the user gave, by the names of the scenario's `options`; checked (`check_options`)."""
    _read: set[str] = field(default_factory=set, compare=False, repr=False)
    """Which of these somebody asked for."""

    def __getattribute__(self, name: str) -> Any:
        if name == "mesh":
            object.__getattribute__(self, "_read").add(name)
        return object.__getattribute__(self, name)

    @property
    def mesh_is_unread(self) -> bool:
        """Whether the user gave a mesh that nobody has asked for."""
        return "mesh" not in self._read and self.mesh is not None

    def file(self, name: str) -> Path | None:
        """An option that is a file or a folder; None where it was not given."""
        return Path(self.options[name]) if name in self.options else None

    def word(self, name: str, otherwise: str) -> str:
        """An option that is one of some words."""
        return self.options.get(name, otherwise)

    def number(self, name: str, otherwise: int) -> int:
        """An option that is a whole number."""
        return int(self.options.get(name, otherwise))

    def count(self, stated: int) -> int:
        """Of masses or particles."""
        return max(1, round(stated * self.detail))

    def length(self, stated: float) -> float:
        """Between masses or particles that fill a body [m]: n of them take n·length³."""
        return stated * self.detail ** (-1.0 / 3.0)

    def texels(self, stated: int) -> int:
        """Along a side of a skin: the power of two nearest to what gives `detail` times as many in all, and what a skin
        can have."""
        side = 2 ** math.ceil(math.log2(stated) + 0.5 * math.log2(self.detail) - 0.5)
        return min(max(side, FEWEST_TEXELS), MOST_TEXELS)

    def cells(self, stated: tuple[int, int, int], spacing: float) -> tuple[tuple[int, int, int], float]:
        """Cells of a block and their spacing [m], so that the block keeps its size: exactly along its shortest side, to
        the nearest cell along the others."""
        shortest = min(stated)
        fewer = max(2, round(shortest * self.detail ** (1.0 / 3.0)))
        if fewer == shortest:
            return stated, spacing
        x, y, z = (round(count * fewer / shortest) for count in stated)
        return (x, y, z), spacing * shortest / fewer
