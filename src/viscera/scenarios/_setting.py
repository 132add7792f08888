"""What a scenario is built with, and how its counts follow the detail that is asked for.

Detail multiplies the number of masses, texels and particles; 1 is what the scenario states. A world stays the same
thing in the same size at any detail, made of more and smaller parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viscera.device import Device

FEWEST_TEXELS, MOST_TEXELS = 64, 4096
"""Along a side, that a skin can have."""


@dataclass(frozen=True)
class Setting:
    """What a scenario is built with."""

    device: Device
    seed: int
    mesh: Path | None = None
    """A mesh that the user gave."""
    detail: float = 1.0
    """Times the scenario's stated counts."""
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
