"""Room in a texture for faces that cuts open.

The texture is as wide as ever and twice or four times as high. Below, the outside has the texels that it has without;
above, there is a square of texels for every quad that a cut may open, with a gutter around it. A quad's two triangles
are there from the start, without area, until a cut gives them corners (`Skin.triangles`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.atlas import Atlas, AtlasSettings, unique_atlas
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.skin.skin import Skin, make_skin

GUTTER = 2
"""Texels on each side of a square that repeat its border: a picture is read a texel beyond it, between texels."""
FEWEST = 4
"""Texels along a square, if four times the height can give them."""


@dataclass(frozen=True)
class Squares:
    """Where the quads of cut faces lie in the texture."""

    count: int
    side: int
    """Texels along one."""
    across: int
    """Squares in a row of the texture."""
    width: int
    height: int
    """Of the whole texture, in texels."""

    def corners(self) -> FloatArray:
        """Texture coordinates of the quads' triangles, shape (2 · quads, 3, 2). Quads come in pairs, the two faces of
        one link; the second one runs the other way round (geometry/linked_surface.py)."""
        row, column = np.divmod(np.arange(self.count), self.across)
        low = (self.side + 2 * GUTTER) * np.stack([column, row], axis=1) + GUTTER + np.array([0, self.width])
        around = low[:, None, :] + self.side * np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
        ahead = around[:, [[0, 1, 2], [0, 2, 3]]]
        back = ahead[:, :, ::-1]
        second = np.arange(self.count) % 2 == 1
        found = np.where(second[:, None, None, None], back, ahead)
        return found.reshape(-1, 3, 2) / np.array([self.width, self.height], dtype=np.float64)


def squares_for(quads: int, width: int) -> Squares:
    """The lowest texture that has room for so many: `FEWEST` texels along a side each where it is not taller than four
    times its width, else what there is."""
    found = None
    for times in (2, 4, 8, 16):
        height = times * width
        pitch = next(
            (p for p in range(width, 2 * GUTTER + 1, -1) if (width // p) * ((height - width) // p) >= quads), 0
        )
        found = Squares(quads, pitch - 2 * GUTTER, width // max(pitch, 1), width, height)
        if found.side >= (FEWEST if times < 4 else 1):
            break
    if found is None or found.side < 1:
        raise InputError(
            f"{quads // 2} links that may be cut have no room in a texture {width} texels wide.",
            "Make the organ with more `texels`, or with less `room`.",
        )
    return found


def make_spare_skin(mesh: TriangleMesh, quads: int, points: int, cell: float, width: int, device: Device) -> Skin:
    """A skin of the mesh with room for so many quads about as large as a `cell` [m], and for `points` vertices in
    all. Triangle f of quad q is number `len(mesh.triangles) + 2 q + f`."""
    atlas = unique_atlas(mesh, AtlasSettings(resolution=min(width, AtlasSettings.resolution)))
    squares = squares_for(quads, width)
    vertices = np.tile(mesh.vertices[:1], (points, 1))
    vertices[: len(mesh.vertices)] = mesh.vertices
    triangles = np.concatenate([mesh.triangles, np.zeros((2 * quads, 3), dtype=np.int32)])
    whole = TriangleMesh(vertices, triangles, mesh.name)
    skin = make_skin(whole, _joined(atlas, squares), width, squares.height, device)
    skin.spare = 2 * quads
    _give_area(skin, (cell / squares.side) ** 2)
    return skin


def _joined(atlas: Atlas, squares: Squares) -> Atlas:
    """The outside below, the squares above."""
    below = atlas.uv * np.array([1.0, squares.width / squares.height])
    above = squares.corners()
    count = len(above)
    number = len(below) + np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
    chart = atlas.charts + np.arange(count, dtype=np.int32) // 2
    return Atlas(
        uv=np.concatenate([below, above.reshape(-1, 2)]),
        triangles=np.concatenate([atlas.triangles, number]).astype(np.int32),
        vertex=np.concatenate([atlas.vertex, np.zeros(3 * count, dtype=np.int32)]).astype(np.int32),
        chart=np.concatenate([atlas.chart, chart]).astype(np.int32),
        resolution=atlas.resolution,
        notes=atlas.notes,
    )


def _give_area(skin: Skin, area: float) -> None:
    """Texels of faces that are not there yet have the area at rest [m²] that they will have: heat divides by it."""
    rest: NDArray[np.float32] = skin.rest_area.numpy()
    rest[skin.face.numpy() >= skin.outside] = area
    skin.rest_area.assign(rest)
