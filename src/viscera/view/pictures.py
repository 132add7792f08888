"""Second pictures beside the view, and marks over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from viscera.errors import InputError
from viscera.view.arrays import ArraySpec


@dataclass(frozen=True)
class Drag:
    """What dragging across a picture changes: two parameters, one per way of the hand."""

    label: str
    """For people: what is moved."""
    across: str
    """Parameter that grows to the right."""
    up: str
    """Parameter that grows upwards."""
    span: float
    """By how much it changes along the whole side of the picture, in the parameter's unit."""


@dataclass(frozen=True)
class Picture:
    """A second picture beside the view, as an X-ray: the snapshot array of its name, uint8, shape (height, width, 4):
    sRGB and alpha, row 0 at the bottom. Sides are multiples of 32."""

    name: str
    title: str
    width: int
    height: int
    help: str = ""
    drags: tuple[Drag, ...] = ()
    """The first by the left button, the second by the right one or with Shift, the third by the middle one or with
    Alt."""
    pedal: str = ""
    """Parameter that is 1 while a pedal beside the picture is held, else 0; empty where there is none."""
    marks: str = ""
    """Table whose one row says where somebody clicked: x and y from 0 to 1 from the lower left, and a number that
    differs from the last one's; empty where clicks mean nothing."""

    def __post_init__(self) -> None:
        if self.width % 32 or self.height % 32 or min(self.width, self.height) < 32:
            raise InputError(
                f"picture {self.name!r} of {self.width} × {self.height} pixels cannot be streamed.",
                "Make both sides multiples of 32.",
            )

    def arrays(self) -> dict[str, ArraySpec]:
        return {self.name: ArraySpec((self.height, self.width, 4), "u1", "tiles")}


@dataclass(frozen=True)
class Overlay:
    """Marks over the view, in screen space: the snapshot array of its name, float32, shape (capacity, 4): x and y from
    0 to 1 with the origin at the top left, radius over the view's height, strength from 0 to 1. How many there are
    stands in `Frame.counts`."""

    name: str
    look: Literal["ring", "dot", "veil"]
    """A veil is fog on the lens: a soft disc that hides what is behind it."""
    capacity: int
    label: str = ""
    """For people; empty where it needs none."""

    def arrays(self) -> dict[str, ArraySpec]:
        return {self.name: ArraySpec((self.capacity, 4), "f4", "values")}
