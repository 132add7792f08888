"""A skin: a mesh, its atlas, and what every texel of a texture knows about the surface.

Texels are numbered row · width + column; column = ⌊u · width⌋, row = ⌊v · height⌋. Maps have one entry per texel of the
whole texture. Only texels that the surface covers (`Skin.texels`) are written; elsewhere coverage and area are 0.

    skin = make_skin(liver(), device=device)
    program = device.record(lambda stage: rebuild_skin(stage, skin))
    wp.copy(skin.vertices, deformed); program.run()

A texel at a chart's border is covered in part. Its *node*, the place whose position and values it holds, is the middle
of the covered part; in all other texels it is the texel's middle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import BLOCK, Device, Stage, open_device, put
from viscera.errors import InputError, MeshError
from viscera.geometry.atlas import RESOLUTIONS, Atlas, AtlasSettings, shared_texels, signed_areas, unique_atlas
from viscera.geometry.coverage import Pieces, cut_by_texels
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.skin.maps import CHUNK, ROW, Texels, face_rows, mark_moved, texel_maps, texel_maps_cpu
from viscera.skin.seams import Links, Seams, find_seams, link_texels

LOST_AREA = 0.005
"""Fraction of the surface that may have no place in the texture (triangles whose chart is a line)."""

Array = Any
"""A `wp.array`; what its stubs say about `numpy()` fits no index."""


@dataclass(eq=False)
class Skin:
    """Made by `make_skin`. Maps have shape (width · height,); `count` = covered texels."""

    mesh: TriangleMesh
    atlas: Atlas
    seams: Seams
    links: Links
    device: Device
    width: int
    height: int
    """Of the texture, in texels."""
    lost_area: float
    """Surface that lies in no texel, as a fraction of all of it."""

    # What never changes.
    texels: Array
    """Covered texels in rising order, int32, shape (count,)."""
    face: Array
    """Triangle at the node, int32; -1 where nothing is."""
    barycentric: Array
    """Weights of that triangle's second and third corner at the node, vec2."""
    coverage: Array
    """Fraction of the texel that its chart covers, float32."""
    node: Array
    """Place of the node in the texel, 0 to 1, vec2."""
    open_side: Array
    """Part of the texel's left and bottom side over which the surface goes on into the next texel, vec2."""
    pieces: Array
    """Where each covered texel's pieces begin, int32, shape (count + 1,)."""
    piece_face: Array
    """Triangles in each texel, one after the other, int32, shape (pieces,)."""
    piece_weight: Array
    """Fraction of the texel's square that each covers, float32, shape (pieces,)."""
    chunks: Array
    """Where the triangles of each `CHUNK` covered texels begin, int32, shape (chunks + 1,)."""
    chunk_face: Array
    """These triangles, int32."""
    share: Array
    """One over the sum of a covered texel's weights, float32, shape (count,)."""
    triangles: Array
    """vec3i, shape (triangles,)."""
    to_edges: Array
    """Inverse of the triangles' edges in texels, row by row, vec4, shape (triangles,)."""
    link_start: Array
    """Where each covered texel's neighbours across seams begin, int32, shape (count + 1,)."""
    link_texel: Array
    """The neighbours; each link stands here twice, once for either texel, int32, shape (2 · links,)."""
    link_seam: Array
    """Over which seam, int32, shape (2 · links,)."""
    link_stretch: Array
    """Part of the seam's edge that the two share, and where along it the middle of that part is, vec2, shape
    (2 · links,)."""
    seam_vertex: Array
    """The seams' ends as vertices of the mesh, vec2i, shape (seams,)."""

    rest_area: Array
    """Surface in the texel as the skin was made, float32 [m²]."""

    # What follows the tissue.
    vertices: Array
    """Write deformed positions here, vec3, shape (vertices,) [m]."""
    known: Array
    """Where they were when the maps were last made, vec3, shape (vertices,) [m]; NaN makes all of them anew."""
    moved: Array
    """1 for each that was elsewhere before, float32, shape (vertices,)."""
    rows: Array
    """What each triangle gives to its texels, float32, shape (triangles · ROW,); see `viscera.skin.maps`."""
    position: Array
    """Of the node, vec3 [m]."""
    tangent_u: Array
    tangent_v: Array
    """∂x/∂column and ∂x/∂row, vec3 [m]."""
    metric: Array
    """u·u, u·v and v·v, mean over the texel, vec3 [m²]."""
    area: Array
    """Surface in the texel, float32 [m²]."""
    spare: int = 0
    """Triangles, the last ones, that are room for faces of cuts (spare.py)."""

    @property
    def outside(self) -> int:
        """Triangles of the surface as it was made."""
        return len(self.mesh.triangles) - self.spare

    @property
    def count(self) -> int:
        return int(self.texels.shape[0])

    def stand_on(self, vertices: Array) -> None:
        """It follows these from now on, vec3 [m]; there may be more than its triangles use."""
        self.vertices = vertices
        self.known = wp.zeros(len(vertices), dtype=wp.vec3, device=vertices.device)
        self.moved = wp.zeros(len(vertices), dtype=wp.float32, device=vertices.device)
        self.forget()

    def set_triangles(self, triangles: NDArray[np.int32]) -> None:
        """Other corners for its triangles, shape (triangles, 3), as when a cut has opened it; maps of those that have
        others now are made anew the next time."""
        before = self.triangles.numpy().reshape(-1, 3)
        changed = np.flatnonzero((triangles != before).any(axis=1))
        put(self.triangles, triangles, changed)
        known = self.known.numpy()
        known[np.unique(triangles[changed])] = np.nan
        if self.device.is_cuda:
            self.known.assign(known)

    def forget(self) -> None:
        """All of its maps are made anew the next time, as when its triangles have changed."""
        self.known.fill_(wp.vec3(np.nan))

    def image(self, values: Array) -> NDArray[Any]:
        """A map as a picture, shape (height, width, …), row 0 at v = 0."""
        flat = values if isinstance(values, np.ndarray) else values.numpy()
        return flat.reshape(self.height, self.width, *flat.shape[1:])

    def faces_up(self) -> NDArray[np.bool_]:
        """Of every texel, whether its triangle at rest looks up. (Not what u × v says: charts may be mirrored.)"""
        face = self.face.numpy()
        return (face >= 0) & (self.mesh.face_vectors[face, 2] > 0.0)


def make_skin(
    mesh: TriangleMesh,
    atlas: Atlas | None = None,
    width: int = 512,
    height: int | None = None,
    device: Device | None = None,
) -> Skin:
    """`width` and `height` are powers of two from 64 to 4096; without an atlas, `unique_atlas` is asked for one."""
    height = width if height is None else height
    _check_size(width=width, height=height)
    device = device or open_device("cpu")
    # An atlas serves every finer texture, and those for 512² come with the package.
    atlas = atlas or unique_atlas(mesh, AtlasSettings(resolution=min(width, height, AtlasSettings.resolution)))
    if atlas.triangles.shape != mesh.triangles.shape:
        raise MeshError(
            f"{mesh.name}: the atlas has {len(atlas.triangles)} triangles, the mesh {len(mesh.triangles)}.",
            "Make the atlas from this mesh (unique_atlas).",
        )
    corners = atlas.corners * (width, height)
    pieces = cut_by_texels(corners, width, height)
    shared = shared_texels(pieces.texel, atlas.chart[pieces.face])
    if shared:
        raise InputError(
            f"width × height = {width} × {height} is too coarse for this atlas: {shared} texels lie in two charts.",
            f"Use {atlas.resolution}² or more, or make the atlas with AtlasSettings(resolution={min(width, height)}).",
        )
    lost = _lost_area(mesh, corners)
    if lost > LOST_AREA:
        raise MeshError(
            f"{mesh.name}: {100 * lost:.2g} % of the surface has no area in the atlas.",
            "Repair the mesh (thin triangles), or make the atlas with another distortion.",
        )
    seams = find_seams(mesh, atlas)
    links = _covered_links(link_texels(atlas, seams, width, height), pieces)
    arrays = _fixed_maps(mesh, corners, pieces, width, width * height) | _moving_maps(mesh, width * height)
    arrays |= _link_lookup(links, seams, arrays["texels"])
    uploaded = {name: _upload(values, device) for name, values in arrays.items()}
    for name in ("metric", "area", "rest_area"):
        uploaded[name] = _with_rim(uploaded[name], width)
    skin = Skin(mesh, atlas, seams, links, device, width, height, lost, **uploaded)
    # Made by the same program that keeps it up to date, so a skin at rest is no special case.
    device.record(lambda stage: rebuild_skin(stage, skin), work=skin.count).run()
    wp.copy(skin.rest_area, skin.area)
    device.synchronize()
    return skin


def rebuild_skin(stage: Stage, skin: Skin, native: bool = True) -> None:
    """Brings all moving maps up to `skin.vertices`: what belongs to triangles that moved."""
    maps = [skin.tangent_u, skin.tangent_v, skin.metric, skin.area, skin.position]
    stage.launch(mark_moved, len(skin.vertices), [skin.vertices, skin.known, skin.moved])
    faces = [skin.vertices, skin.triangles, skin.to_edges, skin.moved, skin.rows]
    stage.launch(face_rows, len(skin.mesh.triangles), faces)
    args = [_texels(skin), skin.rows, skin.vertices, *maps]
    if native and not stage.device.is_cuda:
        stage.launch(texel_maps_cpu, -(-skin.count // CHUNK), args, block=BLOCK // CHUNK)
    else:
        stage.launch(texel_maps, skin.count, args)


def _texels(skin: Skin) -> Any:
    one: Any = Texels()
    for name in ("texels", "pieces", "piece_face", "piece_weight", "share", "face", "barycentric", "triangles",
                 "chunks", "chunk_face"):  # fmt: skip
        setattr(one, name, getattr(skin, name))
    return one


def _check_size(**sides: int) -> None:
    low, high = RESOLUTIONS
    for name, side in sides.items():
        if not low <= side <= high or side & (side - 1):
            raise InputError(f"{name} = {side} is not possible.", f"Allowed are powers of two from {low} to {high}.")


def _lost_area(mesh: TriangleMesh, corners: FloatArray) -> float:
    areas = np.linalg.norm(mesh.face_vectors, axis=1)
    return float(areas[signed_areas(corners) == 0.0].sum() / areas.sum())


def _covered_links(links: Links, pieces: Pieces) -> Links:
    """Without stretches so short that their texel is covered by nothing but rounding."""
    kept = np.isin(links.texel, pieces.texel).all(axis=1)
    return Links(links.texel[kept], links.seam[kept], links.part[kept], links.middle[kept])


def _link_lookup(links: Links, seams: Seams, texels: NDArray[np.int32]) -> dict[str, Any]:
    """Links as rows by texel: both texels of a link list it, with the same numbers."""
    own, other = links.texel.T.ravel(), links.texel[:, ::-1].T.ravel()
    order = np.argsort(own, kind="stable")
    link = np.tile(np.arange(len(links.seam)), 2)[order]
    return {
        "link_start": np.append(np.searchsorted(own[order], texels), len(own)).astype(np.int32),
        "link_texel": other[order].astype(np.int32),
        "link_seam": links.seam[link],
        "link_stretch": np.stack([links.part, links.middle], axis=1)[link].astype(np.float32),
        "seam_vertex": seams.vertex,
    }


def _fixed_maps(mesh: TriangleMesh, corners: FloatArray, pieces: Pieces, width: int, size: int) -> dict[str, Any]:
    texels, begin = np.unique(pieces.texel, return_index=True)
    count = np.diff(np.append(begin, len(pieces.texel)))
    cell = np.repeat(np.arange(len(texels)), count)
    covered = np.bincount(cell, weights=pieces.weight)
    node = np.stack([np.bincount(cell, weights=pieces.weight * c) / covered for c in pieces.centroid.T], axis=1)
    node[covered > 1.0 - 1e-9] = 0.5
    to_edges = _edge_inverses(corners)
    rows, columns = np.divmod(texels, width)
    place = np.stack([columns, rows], axis=1) + node
    chosen, weights = _node_faces(pieces.face, corners, to_edges, cell, place)
    open_side = np.stack([np.bincount(cell, weights=side) for side in (pieces.left, pieces.bottom)], axis=1)

    def spread(values: NDArray[Any], fill: float = 0.0) -> NDArray[Any]:
        full = np.full((size, *values.shape[1:]), fill, dtype=values.dtype)
        full[texels] = values
        return full

    return {
        "texels": texels.astype(np.int32),
        "face": spread(pieces.face[chosen], -1),
        "barycentric": spread(weights.astype(np.float32)),
        "coverage": spread(np.minimum(covered, 1.0).astype(np.float32)),
        "node": spread(node.astype(np.float32), 0.5),
        "open_side": spread(np.minimum(open_side, 1.0).astype(np.float32)),
        "pieces": np.append(begin, len(pieces.texel)).astype(np.int32),
        "piece_face": pieces.face,
        **_chunk_faces(cell, pieces.face),
        "piece_weight": pieces.weight.astype(np.float32),
        "share": (1.0 / covered).astype(np.float32),
        "triangles": mesh.triangles,
        "to_edges": to_edges.reshape(-1, 4).astype(np.float32),
    }


def _chunk_faces(cell: NDArray[np.int64], face: NDArray[np.int32]) -> dict[str, NDArray[np.int32]]:
    """The triangles in each chunk of covered texels, for the covered texel and the triangle of each piece."""
    pairs = np.unique(np.stack([cell // CHUNK, face], axis=1), axis=0)
    counts = np.bincount(pairs[:, 0])
    return {"chunks": np.append(0, np.cumsum(counts)).astype(np.int32), "chunk_face": pairs[:, 1].astype(np.int32)}


def _edge_inverses(corners: FloatArray) -> FloatArray:
    """From texels to shares of a triangle's two edges, shape (triangles, 2, 2); zero where it has no area."""
    e, f = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    doubled = 2.0 * signed_areas(corners)
    scale = np.divide(1.0, doubled, out=np.zeros_like(doubled), where=doubled != 0.0)
    rows = [np.stack([f[:, 1], -f[:, 0]], axis=1), np.stack([-e[:, 1], e[:, 0]], axis=1)]
    return np.stack(rows, axis=1) * scale[:, None, None]


def _node_faces(
    piece_face: NDArray[np.int32], corners: FloatArray, to_edges: FloatArray, cell: NDArray[np.int64], place: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """For each covered texel the piece whose triangle holds its node, or comes nearest to it, and its weights there."""
    offset = place[cell] - corners[piece_face, 0]
    second = np.einsum("nij,nj->ni", to_edges[piece_face], offset)
    weights = np.concatenate([1.0 - second.sum(axis=1, keepdims=True), second], axis=1)
    # The last of each texel in this order is the one in which the node lies deepest.
    order = np.lexsort((weights.min(axis=1), cell))
    chosen = order[np.append(np.flatnonzero(np.diff(cell)), len(cell) - 1)]
    inside = np.clip(weights[chosen], 0.0, None)
    return chosen, (inside / inside.sum(axis=1, keepdims=True))[:, 1:]


def _moving_maps(mesh: TriangleMesh, size: int) -> dict[str, Any]:
    def zeros(count: int, *parts: int) -> NDArray[np.float32]:
        return np.zeros((count, *parts), dtype=np.float32)

    names = ("position", "tangent_u", "tangent_v", "metric")
    return {
        "vertices": mesh.vertices.astype(np.float32),
        "known": np.full(mesh.vertices.shape, np.nan, dtype=np.float32),
        "moved": zeros(len(mesh.vertices)),
        "rows": zeros(len(mesh.triangles) * ROW),
        "area": zeros(size),
        "rest_area": zeros(size),
    } | {name: zeros(size, 3) for name in names}


def _with_rim(values: Array, width: int) -> Array:
    """The same map inside a larger one of zeros: loads of a whole tile may reach a row and a tile over its rim."""
    rim, size = width + 32, values.shape[0]
    return wp.zeros(size + 2 * rim, dtype=values.dtype, device=values.device)[rim : rim + size]


def _upload(values: NDArray[Any], device: Device) -> Array:
    if values.ndim == 1:
        kind: Any = wp.int32 if values.dtype == np.int32 else wp.float32
    elif values.dtype == np.int32:
        kind = {2: wp.vec2i, 3: wp.vec3i}[values.shape[1]]
    else:
        kind = {2: wp.vec2, 3: wp.vec3, 4: wp.vec4}[values.shape[1]]
    return wp.array(values, dtype=kind, device=device.warp)
