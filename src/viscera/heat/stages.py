"""How burnt tissue looks: a table of stages that a user can edit, and the burn's maps packed for the page.

The document interpolates between three textures: healthy, whitened, dark (Kvick §3.3.3), and reconfigures its stages
within seconds (§4.1.1). Here a stage is a row of plain numbers, and the look between two burn levels is the linear
mix of their rows.

    texture   R  temperature, (T − COLDEST)/(HOTTEST − COLDEST)      G  coagulation      B  char      A  water left

The page reads level = G + B. Texels beside a chart's border get their nearest covered neighbour's value, so that
bilinear sampling at the border mixes tissue with tissue.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.device import BLOCK, Stage
from viscera.errors import InputError
from viscera.heat.burn import Burn, BurnRates, char_of, coagulation_of
from viscera.skin import gutter

wp.set_module_options({"enable_backward": False})

COLDEST = 310.15
"""Temperature at R = 0 [K]: 37 °C."""
HOTTEST = 673.15
"""Temperature at R = 255 [K]: 400 °C; one step of R is 1.42 K."""

_COLDEST, _HOTTEST = wp.constant(COLDEST), wp.constant(HOTTEST)

GUTTER = 1
"""Rings of texels around a chart that repeat its border: the page reads this texture at its own size."""

MOST_STAGES = 8
"""What the page's shader has room for."""


@dataclass(frozen=True)
class BurnStage:
    """How tissue looks from this burn level on; colours are linear RGB, 0 to 1."""

    level: float
    """0 healthy, 1 coagulated, 2 charred."""
    name: str
    colour: tuple[float, float, float]
    cover: float
    """How much of the organ's own colour this one replaces, 0 to 1."""
    roughness: float
    """0 a mirror, 1 matt."""
    wetness: float
    """Of the clear coat, 0 to 1; the page multiplies it with the water that is left."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "name":
                continue
            most = 2.0 if field.name == "level" else 1.0
            numbers = value if isinstance(value, tuple) else (value,)
            if field.name == "colour" and len(numbers) != 3:
                raise InputError(f"stage {self.name!r}: colour has {len(numbers)} numbers.", "Give red, green, blue.")
            if not all(math.isfinite(n) and 0.0 <= n <= most for n in numbers):
                raise InputError(
                    f"stage {self.name!r}: {field.name} = {value} is not allowed.", f"Allowed are 0 to {most:g}."
                )


DEFAULT_STAGES = (
    BurnStage(0.0, "healthy", (0.13, 0.03, 0.02), cover=0.0, roughness=0.35, wetness=1.0),
    BurnStage(0.5, "pale", (0.30, 0.15, 0.11), cover=0.7, roughness=0.45, wetness=0.8),
    BurnStage(1.0, "white", (0.40, 0.32, 0.25), cover=0.95, roughness=0.60, wetness=0.5),
    BurnStage(1.25, "tan", (0.26, 0.17, 0.09), cover=1.0, roughness=0.75, wetness=0.15),
    BurnStage(1.6, "brown", (0.075, 0.038, 0.02), cover=1.0, roughness=0.90, wetness=0.0),
    BurnStage(2.0, "black", (0.012, 0.011, 0.011), cover=1.0, roughness=1.0, wetness=0.0),
)
"""Tuned for appearance: coagulated liver is pale tan, eschar black and dull. The page's lamp lights what it looks
at twice as brightly as white paper would bear, so white is no more than 0.4."""


def check_stages(stages: Sequence[BurnStage]) -> tuple[BurnStage, ...]:
    """The table, if its levels start at 0 and rise."""
    if not 1 <= len(stages) <= MOST_STAGES:
        raise InputError(f"{len(stages)} stages are not possible.", f"Give 1 to {MOST_STAGES}.")
    if stages[0].level != 0.0:
        raise InputError(
            f"The first row must start at level 0, not {stages[0].level:g}.", "It is how healthy tissue looks."
        )
    for number, (low, high) in enumerate(itertools.pairwise(stages)):
        if high.level <= low.level:
            raise InputError(
                f"Row {number + 2}, level {high.level:g}, does not rise above row {number + 1}, level {low.level:g}.",
                "Give every row a higher level than the row before.",
            )
    return tuple(stages)


def look_at(stages: Sequence[BurnStage], level: ArrayLike) -> NDArray[np.float64]:
    """Colour (3), cover, roughness and wetness at these levels, shape (…, 6)."""
    checked = check_stages(stages)
    rows = np.array([(*s.colour, s.cover, s.roughness, s.wetness) for s in checked])
    at = np.asarray(level, dtype=np.float64)
    return np.stack([np.interp(at, [s.level for s in checked], column) for column in rows.T], axis=-1)


CHUNK = 64
"""Texels per thread on cpu."""


@dataclass(frozen=True, eq=False)
class BurnTexture:
    """Made by `make_texture`."""

    burn: Burn
    targets: Any
    """Texels that are written: the covered ones, then those beside them, int32."""
    sources: Any
    """Where each takes its value from, int32."""
    pixels: Any
    """vec4ub, shape (height, width); as NumPy uint8 (height, width, 4), row 0 at v = 0."""


@wp.func
def as_byte(share: float):
    return wp.uint8(wp.clamp(share, 0.0, 1.0) * 255.0 + 0.5)


@wp.kernel
def pack_texture(
    first: int,
    # params
    chunk: int,
    # in
    targets: wp.array(dtype=wp.int32),
    sources: wp.array(dtype=wp.int32),
    rates: wp.array(dtype=BurnRates),
    temperature: wp.array(dtype=wp.float32),
    damage: wp.array(dtype=wp.float32),
    charring: wp.array(dtype=wp.float32),
    water: wp.array(dtype=wp.float32),
    # out
    pixels_out: wp.array(dtype=wp.vec4ub),
):
    """A thread takes `chunk` texels: on cpu Warp copies a kernel's arguments for every thread."""
    begin = (first + wp.tid()) * chunk
    body = rates[0].body
    model = rates[0].model
    for i in range(begin, wp.min(begin + chunk, targets.shape[0])):
        t = sources[i]
        heat = (body + temperature[t] - _COLDEST) / (_HOTTEST - _COLDEST)
        white = float(0.0)
        black = float(0.0)
        if damage[t] > 0.0 or charring[t] > 0.0:
            white = coagulation_of(model, damage[t])
            black = char_of(model, damage[t], charring[t])
        pixels_out[targets[i]] = wp.vec4ub(as_byte(heat), as_byte(white), as_byte(black), as_byte(water[t]))


def make_texture(burn: Burn) -> BurnTexture:
    """Room for the burn's picture; it is empty until it is painted."""
    skin = burn.heat.skin
    device = skin.device.warp
    outside, repeated = gutter(skin, GUTTER)
    covered = skin.texels.numpy()
    targets, sources = np.concatenate([covered, outside]), np.concatenate([covered, repeated])
    return BurnTexture(
        burn,
        wp.array(targets, dtype=wp.int32, device=device),
        wp.array(sources, dtype=wp.int32, device=device),
        wp.zeros((skin.height, skin.width), dtype=wp.vec4ub, device=device),
    )


def step_texture(stage: Stage, texture: BurnTexture) -> None:
    """Brings `texture.pixels` up to date."""
    burn = texture.burn
    heat = burn.heat
    maps = [texture.targets, texture.sources, burn.rates, heat.temperature, burn.damage, burn.charring, burn.water]
    chunk = 1 if stage.device.is_cuda else CHUNK
    threads, block = -(-texture.targets.shape[0] // chunk), max(1, BLOCK // chunk)
    stage.launch(pack_texture, threads, [chunk, *maps, texture.pixels.flatten()], block)
