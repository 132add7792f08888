"""Pictures of worlds without a browser: for videos, for tests, and for worlds that learn from pixels.

    eye = render.make(world.scene(), device=device, width=640, height=360)
    world.show_now()
    world.write_arrays(eye.arrays)
    picture = eye.render(world.frame())          # or eye.render(frame, camera)
    picture.colour, picture.depth, picture.part

or, for a picture now and then, `render.picture(world)`.
"""

from __future__ import annotations

from typing import Any

from viscera.device import Device, open_device
from viscera.render.renderer import Rendered, Renderer
from viscera.view import Camera, Scene

__all__ = ["Rendered", "Renderer", "make", "picture"]


def make(
    scene: Scene,
    *,
    device: Device | None = None,
    width: int = 1280,
    height: int = 720,
    cloth: bool = True,
    half: bool = False,
) -> Renderer:
    """What draws this scene. With `cloth`, organs lie on one, as in the page; it is no part of the scene. With `half`,
    light is computed in every second pixel and is the mean of the neighbours in those between, where they show the same
    surface: nearly twice as fast. Depth and parts are of every pixel."""
    return Renderer(scene, device or open_device(), width, height, cloth, half)


def picture(world: Any, camera: Camera | None = None, *, width: int = 1280, height: int = 720) -> Rendered:
    """A world as it is now, from the scene's own camera unless another is given."""
    eye = make(world.scene(), device=world.device, width=width, height=height)
    world.show_now()
    world.write_arrays(eye.arrays)
    return eye.render(world.frame(), camera)
