"""What the stand-in server paints on its slab: a burn, a film of fluids, drops. Made to be looked at, not to be right.

The slab's top has two charts, its left half and its right half upside down, so that a page that shows seams shows them
here. Everything else lies in a spot of the texture that stays empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from viscera.instruments import Heats, Instrument, Part, Pushes, Rinses
from viscera.view import Column, Measure, Particles, Table, Texture

SIDE = 512
TILE = 32
HALF = 0.048
"""Half the side of the slab's top [m]."""
SCALE = 0.9 / (2 * HALF)
"""Texture per metre on the top."""
LEFT, RIGHT, LOW, HIGH = 0.03, 0.52, 0.05, 0.95
EMPTY = 0.5
"""Of both u and v: between the charts."""

STAGES: list[list[float]] = [
    [0.0, 0xAD4B40, 0.0, 0.35, 1.0],
    [0.5, 0xB98A7C, 0.75, 0.45, 0.8],
    [1.0, 0xC2AE9C, 0.95, 0.60, 0.5],
    [1.25, 0x9A7C5A, 1.0, 0.75, 0.15],
    [1.6, 0x4E3424, 1.0, 0.90, 0.0],
    [2.0, 0x211D1D, 1.0, 1.0, 0.0],
]

TABLE = Table(
    "burn_stages", "Burn stages", "How tissue looks from each burn level on: 1 is white, 2 is black.",
    columns=(
        Column("level", "From level", "", "number", 0, 2),
        Column("colour", "Colour", "", "colour", 0, 0xFFFFFF),
        Column("cover", "Cover", "", "number", 0, 1),
        Column("roughness", "Roughness", "", "number", 0, 1),
        Column("wetness", "Wetness", "", "number", 0, 1),
    ),
    rows=tuple(map(tuple, STAGES)),
)  # fmt: skip

MEASURES = (
    Measure("charred", "Charred area", "mm²", "Tissue that is black.", digits=1),
    Measure("lost", "Blood lost", "mL", "What has left the vessels.", digits=2),
)

TEXTURES = (
    Texture("burn", "block", "burn", SIDE, SIDE),
    Texture("film", "block", "film", SIDE, SIDE, absorption=(900.0, 700.0, 7000.0), body=(0.09, 0.075, 0.006)),
)

PARTICLES = (Particles("drops", "blood", 0.0012, 240),)

HOME = (0.0, 0.0, 0.08)
HOOK = Instrument(
    "hook", (Pushes(0.0008, offset=0.0008), Heats()), HOME, label="Monopolar hook", icon="hook", action="coagulate",
    parts=(
        Part((0.0, 0.0, 0.012), (0.0, 0.0, 0.3), 0.0025),
        Part((0.0, 0.0, 0.012), (0.0, 0.0, 0.0), 0.0006),
        Part((0.0, 0.0, 0.0), (0.0035, 0.0, 0.0), 0.0006),
        Part((0.0035, 0.0, 0.0), (0.0035, 0.0, 0.003), 0.0006),
    ),
)  # fmt: skip
FORCEPS = Instrument(
    "forceps", (Pushes(0.001, offset=0.001), Heats(bipolar=True)), HOME, label="Bipolar forceps", icon="forceps",
    action="coagulate",
    parts=(
        Part((0.0, 0.0, 0.018), (0.0, 0.0, 0.3), 0.0025),
        Part((0.0004, 0.0, 0.018), (0.0006, 0.0, 0.0), 0.0008, swing=-0.35),
        Part((-0.0004, 0.0, 0.018), (-0.0006, 0.0, 0.0), 0.0008, swing=0.35),
    ),
)  # fmt: skip
RINSE = Instrument(
    "irrigator", (Pushes(0.0025, offset=0.0025), Rinses()), HOME, label="Irrigator", icon="water", action="rinse",
    parts=(Part((0.0, 0.0, 0.0), (0.0, 0.0, 0.3), 0.0022),),
)  # fmt: skip


def corner_places(rest: NDArray[np.float64], triangles: NDArray[np.int32], top: float) -> NDArray[np.float32]:
    """Where each triangle's corners lie in the textures, shape (triangles, 3, 2)."""
    corners = rest[triangles]
    x, y, z = corners[..., 0], corners[..., 1], corners[..., 2]
    left = (x.mean(axis=1) < 0)[:, None]
    u = np.where(left, LEFT + SCALE * (x + HALF), RIGHT + SCALE * (HALF - x))
    v = np.where(left, LOW + SCALE * (y + HALF), HIGH - SCALE * (y + HALF))
    on_top = np.all(z > top - 1e-9, axis=1)[:, None]
    return np.stack([np.where(on_top, u, EMPTY), np.where(on_top, v, EMPTY)], axis=-1).astype(np.float32)


def texel_places() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """x and y on the slab of each texel, beyond a chart those of its border [m]; and whether it is in a chart."""
    v, u = (np.mgrid[0:SIDE, 0:SIDE] + 0.5) / SIDE
    left = u < EMPTY
    x = np.where(left, (u - LEFT) / SCALE - HALF, HALF - (u - RIGHT) / SCALE)
    y = np.where(left, (v - LOW) / SCALE - HALF, (HIGH - v) / SCALE - HALF)
    low, high = np.where(left, -HALF, 0.0), np.where(left, 0.0, HALF)
    gutter = 2.5 / SIDE / SCALE
    inside = (x > low - gutter) & (x < high + gutter) & (np.abs(y) < HALF + gutter)
    return np.clip(x, low, high), np.clip(y, -HALF, HALF), inside


def _waves(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Something uneven, −1 to 1."""
    return 0.6 * np.sin(310 * x + 2 * np.sin(240 * y)) * np.cos(280 * y) + 0.4 * np.sin(190 * x + 410 * y)


@dataclass
class FakeSkin:
    """Maps of the top: temperature [°C], coagulation, char, dryness; thickness [m], blood, bile and clot in it."""

    burn: NDArray[np.float64] = field(default_factory=lambda: np.zeros((4, SIDE, SIDE)))
    film: NDArray[np.float64] = field(default_factory=lambda: np.zeros((4, SIDE, SIDE)))
    rows: list[list[float]] = field(default_factory=lambda: [list(row) for row in STAGES])
    measured: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.x, self.y, self.inside = texel_places()
        self.clean()

    def clean(self) -> None:
        self.burn[:] = self.film[:] = 0.0
        self.burn[0] = 37.0

    def heat(self, x: float, y: float, amount: float) -> None:
        """A hot tip was here for a while."""
        near = np.exp(-((self.x - x) ** 2 + (self.y - y) ** 2) / 0.0018**2) * amount
        celsius, coagulation, char, dry = self.burn
        celsius += 160 * near
        np.clip(celsius, 37, 400, out=celsius)
        coagulation += 4 * near * (1 - coagulation)
        char += np.clip(celsius - 180, 0, None) / 150 * near * (1 - char) * (coagulation > 0.9)
        dry += np.clip(celsius - 95, 0, None) / 100 * near * (1 - dry)

    def cool(self) -> None:
        self.burn[0] += 0.02 * (37 - self.burn[0])

    def show(self) -> None:
        """A fast, a slow and a still burn; a puddle with streaks; saline, bile and a clot."""
        self.clean()
        for step in range(120):
            self.heat(-0.030 + 0.0003 * step, 0.030, 0.10)
        for step in range(120):
            self.heat(-0.030 + 0.0003 * step, 0.016, 0.32)
            self.burn[0] += 0.03 * (37 - self.burn[0])
        for _ in range(60):
            self.heat(0.022, 0.028, 0.25)
        self.pour(0.004, -0.014, 0.011, 0.0011, (1.0, 0.0, 0.0))
        for k, (x, long) in enumerate(((-0.002, 0.026), (0.006, 0.030), (0.011, 0.018))):
            for step in range(60):
                self.pour(
                    x + 0.0012 * np.sin(7 * step / 60 + k), -0.016 - long * step / 60, 0.0016, 0.00022, (1.0, 0.0, 0.0)
                )
        self.pour(-0.030, -0.012, 0.009, 0.0005, (0.0, 0.0, 0.0))
        self.pour(-0.030, -0.034, 0.007, 0.0004, (0.0, 1.0, 0.0))
        self.pour(0.034, -0.006, 0.007, 0.0009, (1.0, 0.0, 1.0))
        self.pour(0.036, -0.030, 0.009, 0.00008, (1.0, 0.0, 0.0))

    def pour(self, x: float, y: float, radius: float, height: float, parts: tuple[float, float, float]) -> None:
        away = np.hypot(self.x - x, self.y - y) / radius * (1 + 0.16 * _waves(self.x, self.y))
        added = height * np.clip((1 - away) / 0.5, 0, 1)
        added *= added / height * (3 - 2 * added / height)
        thicker = added > self.film[0]
        self.film[0][thicker] = added[thicker]
        for channel, part in enumerate(parts, start=1):
            self.film[channel][thicker] = part

    def pixels(self) -> dict[str, NDArray[np.uint8]]:
        """The textures; what is measured of them comes along."""
        texel = (1000 / SIDE / SCALE) ** 2
        self.measured = {
            "charred": float((self.burn[2] > 0.5).sum() * texel),
            "lost": float(self.film[0].sum() * texel),
        }
        burn, film = self.burn.copy(), self.film.copy()
        burn[0] = (burn[0] - 37) / (400 - 37)
        burn[3] = 1 - burn[3]
        film[0] = np.sqrt(film[0] / 0.002)
        film[1:] *= film[0] > 0
        packed = {"burn": burn, "film": film}
        return {
            name: np.ascontiguousarray(
                np.moveaxis(np.round(np.clip(maps * self.inside, 0, 1) * 255).astype(np.uint8), 0, 2)
            )
            for name, maps in packed.items()
        }

    def refusal(self, rows: list[list[float]]) -> str:
        """Why a table cannot be taken; empty when it can."""
        levels = [row[0] for row in rows]
        return "" if levels == sorted(set(levels)) else "Levels must rise from row to row."


def drops(tick: int) -> np.ndarray:
    """A fountain: position [m] and shade of each particle."""
    k = np.arange(240)
    age = ((tick / 1000 + k * 0.37) % 0.5) / 0.5
    turn = 2.399963 * k
    out = 0.012 * age
    height = 0.033 + 0.05 * age * (1 - age)
    return np.stack([0.036 + out * np.cos(turn), 0.006 + out * np.sin(turn), height, age], axis=1)
