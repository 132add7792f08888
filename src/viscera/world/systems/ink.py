"""What is drawn or laid on an organ's skin: lines, cloth, openings. One picture per organ, which scenarios and systems
draw into: sRGB times alpha, then how much it covers; black is a skin marker's violet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.view import Texture
from viscera.world.organ import Organ
from viscera.world.system import Show, System


@dataclass(eq=False)
class Ink:
    """Made by `ink_on`."""

    pixels: wp.array[Any]
    """RGBA bytes, shape (height, width)."""
    texture: Texture

    def draw(self, picture: NDArray[np.float64]) -> None:
        """Everything anew: colour times alpha, and alpha, from 0 to 1, shape (height, width, 4)."""
        self.pixels.assign(_bytes(picture))

    def draw_some(self, picture: NDArray[np.float64], texels: NDArray[np.integer]) -> None:
        """These alone are other than before; `picture` as above, shape (height · width, 4)."""
        if self.pixels.device.is_cuda:
            self.draw(picture.reshape(*self.pixels.shape, 4))
        else:
            self.pixels.numpy().reshape(-1, 4)[texels] = _bytes(picture[texels])


def ink_on(organ: Organ) -> tuple[System[Ink], Ink]:
    """A picture on the organ's skin, empty at first. It is not part of a saved state: whoever draws draws it again."""
    skin = organ.need_skin()
    pixels = wp.zeros((skin.height, skin.width), dtype=wp.vec4ub, device=skin.device.warp)
    texture = Texture(f"{organ.name}.ink", organ.name, "ink", skin.width, skin.height)
    ink = Ink(pixels, texture)
    return System(name=f"{organ.name}.ink", shows=[Show(texture, {texture.name: pixels})], holds=ink), ink


def _bytes(picture: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.rint(255.0 * picture).astype(np.uint8)
