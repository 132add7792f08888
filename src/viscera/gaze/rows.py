"""A row of gaze, as a world takes it: where somebody looks, and through which camera.

A world that asks for gaze has a table of one row whose source is `gaze` (`view.Table`). So gaze is an input like any
other: recorded, and replayed bit for bit, whoever has filled it: the page, or a source outside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from viscera.errors import InputError
from viscera.inputs import SetTable
from viscera.view import Camera, Column, Table

EYE = (
    "x",
    "y",
    "valid",
    "px",
    "py",
    "pz",
    "tx",
    "ty",
    "tz",
    "ux",
    "uy",
    "uz",
    "angle",
    "aspect",
    "window_x",
    "window_y",
)
"""Of a row of gaze: place in the camera's view, whether it is seen, the camera, and where a mark is drawn at it."""

NAME = "gaze"
Row = tuple[float, ...]
ASPECT = 16.0 / 9.0
"""Width over height of a view that nobody has told."""


def gaze_table(camera: Camera) -> Table:
    """A row as the world begins: nobody looks."""
    columns = tuple(Column(name, name, "", "number", -1e4, 1e4) for name in EYE)
    row = (0.5, 0.5, 0.0, *camera.position, *camera.target, *camera.up, camera.field_of_view, ASPECT, 0.5, 0.5)
    return Table(NAME, "Gaze", "Where the viewer looks.", columns, (row,), source="gaze")


def gaze_input(camera: Camera, aspect: float, x: float, y: float, *, valid: bool = True) -> SetTable:
    """Somebody looks at (x, y), 0 to 1 from the top left, through a camera that fills the window."""
    row = (x, y, float(valid), *camera.position, *camera.target, *camera.up, camera.field_of_view, aspect, x, y)
    return SetTable(NAME, (row,))


def camera_of(row: Row) -> Camera:
    px, py, pz, tx, ty, tz, ux, uy, uz, angle = row[3:13]
    return Camera((px, py, pz), (tx, ty, tz), (ux, uy, uz), angle)


@dataclass(frozen=True)
class Sight:
    """What lies behind the surface that an eye tracker measures on: rows for its top left and its bottom right corner.

    Places between them follow by straight lines, since a camera that is drawn off the window's middle is only moved and
    scaled on the screen.
    """

    first: Row
    last: Row

    @classmethod
    def through(cls, camera: Camera, aspect: float = ASPECT) -> Sight:
        """A camera that fills the surface."""
        return cls(*(gaze_input(camera, aspect, corner, corner).rows[0] for corner in (0.0, 1.0)))

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> Sight:
        """As the page tells it: both corners, as rows of gaze."""
        if len(rows) != 2 or any(len(row) != len(EYE) for row in rows) or rows[0][3:14] != rows[1][3:14]:
            raise InputError("that is no sight.", "Give a row of gaze for each of two corners, of one camera.")
        return cls(tuple(rows[0]), tuple(rows[1]))

    def row(self, x: float, y: float, *, valid: bool) -> Row:
        """Somebody looks at this place of the surface, 0 to 1 from its top left."""
        u, v, window_x, window_y = (
            self.first[k] + share * (self.last[k] - self.first[k]) for k, share in ((0, x), (1, y), (14, x), (15, y))
        )
        return (u, v, float(valid), *self.first[3:14], window_x, window_y)
