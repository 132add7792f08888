"""Texture atlases: a place of its own in the unit square for every point of a surface.

A mesh that brings unique texture coordinates keeps them. Without any, or where they overlap, an atlas is made by xatlas
(charts by cost, least squares conformal maps, packed with a gap), once: the result is kept in the user's cache folder,
under a name that depends on the mesh and the settings. The mesh itself is never changed: an atlas has its own vertices,
one per side of a seam.

Atlases of the procedural organs come with the package (`SHIPPED`; made by `python -m viscera.anatomy.bake`), so that
they need neither time nor xatlas. They are found by the mesh's triangles and by the lengths of its edges, which moving,
turning and scaling leave alone, as does another processor's rounding.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError, MeshError
from viscera.geometry.coverage import cut_by_texels
from viscera.geometry.mesh import FloatArray, IntArray, TriangleMesh

RESOLUTIONS = (64, 4096)
"""Least and largest side of a texture, in texels."""

FORMAT = 2
"""Part of a cached atlas' name; raise it when what is stored changes."""

SHIPPED = Path(__file__).parent / "atlases"
"""Atlases that come with the package."""

SHIPPED_RESOLUTIONS = (256, 512)
"""For textures of 256² texels, and for those of 512² and finer."""

UNWRAP_S = 90.0
"""xatlas has this long for a mesh [s]; 80 000 triangles take half a minute on one core."""

MOST_HALVINGS = 12
"""Of charts that xatlas lays over themselves."""

SAME_SHAPE = 1.0e-6
"""Relative difference of `shape_print` up to which two meshes have one shape: above rounding, below any change of an
organ's rules."""


@dataclass(frozen=True)
class AtlasSettings:
    resolution: int = 512
    """Texels along a side of the coarsest texture in which no two charts share a texel."""
    padding: int = 2
    """Texels between charts at that resolution. A texel is √2 across, so 2 keep charts apart."""
    distortion: float = 2.0
    """xatlas' cost at which a chart stops growing: more means fewer seams and more stretch."""
    reserve: float = 0.0
    """Part of the texture, its topmost rows, that stays free for surfaces that cuts open."""

    def __post_init__(self) -> None:
        low, high = RESOLUTIONS
        if not low <= self.resolution <= high:
            raise InputError(f"resolution = {self.resolution} is not possible.", f"Allowed are {low} to {high} texels.")
        if not 2 <= self.padding <= 64:
            raise InputError(f"padding = {self.padding} is not possible.", "Allowed are 2 to 64 texels.")
        if not 0.1 <= self.distortion <= 100.0:
            raise InputError(f"distortion = {self.distortion} is not possible.", "Allowed are 0.1 to 100.")
        if not 0.0 <= self.reserve <= 0.75:
            raise InputError(f"reserve = {self.reserve} is not possible.", "Allowed are 0 to 0.75 of the texture.")


@dataclass(frozen=True, eq=False)
class Atlas:
    """Texture coordinates for every corner of every triangle of a mesh."""

    uv: FloatArray
    """Shape (atlas vertices, 2), in [0, 1]; v grows with the rows of a texture."""
    triangles: IntArray
    """Atlas vertices of each triangle of the mesh, in its order, shape (triangles, 3)."""
    vertex: IntArray
    """Which vertex of the mesh each atlas vertex is, shape (atlas vertices,)."""
    chart: IntArray
    """Chart of each triangle, counted from 0, shape (triangles,)."""
    resolution: int
    """Sides of a texture below this may have texels that two charts share."""
    notes: tuple[str, ...] = ()
    """For people: where it came from and what was wrong with the mesh's own coordinates."""

    @property
    def corners(self) -> FloatArray:
        """Shape (triangles, 3, 2)."""
        return self.uv[self.triangles]

    @property
    def charts(self) -> int:
        return int(self.chart.max()) + 1


def unique_atlas(mesh: TriangleMesh, settings: AtlasSettings | None = None, cache: Path | None = None) -> Atlas:
    """The mesh's own coordinates where they are unique, else an atlas of the package or the cache, else a new one."""
    settings = settings or AtlasSettings()
    if mesh.uv is None:
        return baked_atlas(mesh, settings, cache, ("the mesh has no texture coordinates: an atlas was made",))
    own = _own_atlas(mesh, settings)
    faults = faults_of(own)
    if not faults:
        return own
    return baked_atlas(mesh, settings, cache, (f"the mesh's texture coordinates {faults}: a second set was made",))


def faults_of(atlas: Atlas) -> str:
    """Why these coordinates cannot serve as an atlas, in words; empty when they can."""
    if not np.isfinite(atlas.uv).all():
        return "are not finite"
    if atlas.uv.min() < 0.0 or atlas.uv.max() > 1.0:
        return f"leave the unit square ({atlas.uv.min():.3g} to {atlas.uv.max():.3g})"
    area = signed_areas(atlas.corners)
    if (area == 0.0).any():
        return f"give {int((area == 0.0).sum())} triangles no area"
    turned = np.bincount(atlas.chart, weights=area > 0.0)
    if ((turned > 0) & (turned < np.bincount(atlas.chart))).any():
        return "overlap (a chart is folded over itself)"
    pieces = cut_by_texels(atlas.corners * atlas.resolution, atlas.resolution, atlas.resolution)
    fill = np.bincount(pieces.texel, weights=pieces.weight)
    if (fill > 1.0 + 1e-6).any():
        return f"overlap in {int((fill > 1.0 + 1e-6).sum())} of {int((fill > 0).sum())} texels"
    shared = shared_texels(pieces.texel, atlas.chart[pieces.face])
    if shared:
        return f"bring charts closer than a texel at {shared} places (at {atlas.resolution}² texels)"
    return ""


def shared_texels(texel: NDArray[np.int32], chart: NDArray[np.int32]) -> int:
    """Texels that hold pieces of more than one chart; `texel` is sorted."""
    return int(np.unique(texel[1:][(texel[1:] == texel[:-1]) & (chart[1:] != chart[:-1])]).size)


def signed_areas(corners: FloatArray) -> FloatArray:
    """Of triangles in the plane, shape (n, 3, 2); negative where they run clockwise."""
    e, f = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return 0.5 * (e[:, 0] * f[:, 1] - e[:, 1] * f[:, 0])


def _own_atlas(mesh: TriangleMesh, settings: AtlasSettings) -> Atlas:
    assert mesh.uv is not None
    uv = np.asarray(mesh.uv, dtype=np.float64)
    # Vertices at one place in space and in the texture are one: files often give each triangle its own.
    _, first, group = np.unique(
        np.concatenate([mesh.vertices + 0.0, uv + 0.0], axis=1), axis=0, return_index=True, return_inverse=True
    )
    triangles = group.reshape(-1)[mesh.triangles].astype(np.int32)
    chart = connected_charts(triangles, len(first))
    return Atlas(
        uv[first], triangles, first.astype(np.int32), chart, settings.resolution, ("texture coordinates of the mesh",)
    )


def connected_charts(triangles: IntArray, vertices: int) -> IntArray:
    """Number of the chart of each triangle; triangles that share an atlas vertex are in one chart."""
    label = np.arange(vertices)
    while True:
        # Every vertex takes the lowest label of its triangles, then labels are followed to their end.
        lowest = label[triangles].min(axis=1)
        following = label.copy()
        for corner in range(3):
            np.minimum.at(following, triangles[:, corner], lowest)
            np.minimum.at(following, label[triangles[:, corner]], lowest)
        following = following[following]
        if (following == label).all():
            break
        label = following
    return np.unique(label[triangles[:, 0]], return_inverse=True)[1].astype(np.int32)


def cache_folder() -> Path:
    """Where baked atlases are kept: `$XDG_CACHE_HOME/viscera/atlases`, or under `~/.cache`."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "viscera" / "atlases"


def atlas_key(mesh: TriangleMesh, settings: AtlasSettings) -> str:
    """A name that no other mesh and no other settings have."""
    digest = hashlib.sha256(repr((FORMAT, settings)).encode())
    digest.update(np.ascontiguousarray(mesh.vertices).tobytes())
    digest.update(np.ascontiguousarray(mesh.triangles).tobytes())
    return digest.hexdigest()[:32]


def baked_atlas(mesh: TriangleMesh, settings: AtlasSettings, cache: Path | None, notes: tuple[str, ...]) -> Atlas:
    """From the package or from `cache` (the user's folder when None), or made and put there."""
    shipped = _read(SHIPPED / f"{shipped_key(mesh, settings)}.npz", mesh)
    if shipped is not None and same_shape(shipped.pop("shape"), mesh):
        return Atlas(**shipped, resolution=settings.resolution, notes=notes)
    path = (cache or cache_folder()) / f"{atlas_key(mesh, settings)}.npz"
    arrays = _read(path, mesh)
    if arrays is not None:
        del arrays["shape"]
        return Atlas(**arrays, resolution=settings.resolution, notes=notes)
    arrays = bake(mesh, settings)
    # A folder that cannot be written costs time at the next start, nothing else.
    with contextlib.suppress(OSError):
        write_atlas(path, mesh, arrays)
    return Atlas(**arrays, resolution=settings.resolution, notes=notes)


def shipped_key(mesh: TriangleMesh, settings: AtlasSettings) -> str:
    """A name for all meshes with these triangles, wherever their vertices are."""
    digest = hashlib.sha256(repr((FORMAT, settings)).encode())
    digest.update(np.ascontiguousarray(mesh.triangles, dtype=np.int32).tobytes())
    return digest.hexdigest()[:32]


def shape_print(mesh: TriangleMesh) -> FloatArray:
    """A few sums over all edges' lengths, in units of the mesh's size: alike for meshes of one shape alone."""
    corners = mesh.corners
    lengths = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).ravel()
    number = np.arange(len(lengths))
    # Every edge counts with another weight in each sum.
    return np.array([(1.0 + np.cos(turn * number)) @ lengths for turn in (1.0, 2.0, 3.0, 5.0)]) / lengths.sum()


def same_shape(kept: FloatArray, mesh: TriangleMesh) -> bool:
    return bool(np.abs(kept - shape_print(mesh)).max() <= SAME_SHAPE)


def _read(path: Path, mesh: TriangleMesh) -> dict[str, Any] | None:
    # A damaged file is as good as none: it is made again.
    with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile), np.load(path) as kept:
        uv, vertex = kept["uv"].astype(np.float64), kept["vertex"].astype(np.int32)
        corner = np.cumsum(kept["corner"], dtype=np.int32).reshape(-1, 3)
        if corner.shape == mesh.triangles.shape and (vertex[corner] == mesh.triangles).all():
            chart = connected_charts(corner, len(vertex))
            return {"uv": uv, "triangles": corner, "vertex": vertex, "chart": chart, "shape": kept["shape"]}
    return None


def write_atlas(path: Path, mesh: TriangleMesh, made: dict[str, Any]) -> None:
    """All at once: another process may be reading or writing the same atlas."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Differences of neighbouring numbers pack to a fraction; charts follow from triangles.
    arrays = {
        "uv": made["uv"].astype(np.float32),
        "vertex": made["vertex"].astype(np.int32),
        "corner": np.diff(made["triangles"].ravel(), prepend=0).astype(np.int32),
        "shape": shape_print(mesh),
    }
    handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".npz")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)
        os.chmod(draft, 0o644)  # drafts are private, a cache or a package is not
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def bake(mesh: TriangleMesh, settings: AtlasSettings) -> dict[str, Any]:
    """A new atlas by xatlas; fields of `Atlas`. Where xatlas fails, the surface is cut into six sides first, by the
    axis along which each triangle looks: that gives it open pieces to work on. Where it lays a chart over itself, as
    around spikes, the pieces are its charts, those halved, until none does."""
    if importlib.util.find_spec("xatlas") is None:
        raise MeshError(
            f"{mesh.name}: this mesh has no atlas yet, and xatlas, which makes one, is not installed.",
            "Install xatlas, or use a mesh with unique texture coordinates or a procedural organ as it comes.",
        )
    made = None
    for part in (np.zeros(len(mesh.triangles), dtype=np.int64), _sides(mesh)):
        made = made or _unwrap(mesh, part, settings)
    for _ in range(MOST_HALVINGS):
        if made is None:
            break
        arrays = _squared(made, settings)
        part = _halved(mesh, arrays, settings.resolution)
        if part is None:
            return arrays
        made = _unwrap(mesh, part, settings)
    raise MeshError(
        f"{mesh.name}: no atlas could be made of its {len(mesh.triangles)} triangles.",
        "Give it fewer and more even ones: `viscera mesh FILE --simplify 20000 --out NEW.stl`.",
    )


def _halved(mesh: TriangleMesh, arrays: dict[str, Any], resolution: int) -> NDArray[np.int64] | None:
    """The chart of each triangle, numbered without gaps; one that lies over itself is two, cut across its length. None
    when no chart does."""
    chart: IntArray = arrays["chart"]
    corners: FloatArray = arrays["uv"][arrays["triangles"]]
    part = chart.astype(np.int64)
    halved = False
    for number in _over_themselves(corners, chart, resolution):
        faces = np.flatnonzero(chart == number)
        middles = mesh.corners[faces].mean(axis=1)
        longest = int(np.ptp(middles, axis=0).argmax())
        order = np.argsort(middles[:, longest], kind="stable")
        part[faces[order[: len(order) // 2]]] = len(mesh.triangles) + number
        halved = True
    return np.unique(part, return_inverse=True)[1].reshape(-1) if halved else None


def _over_themselves(corners: FloatArray, chart: IntArray, resolution: int) -> list[int]:
    """Charts of more than one triangle that fill some texel more than once, or are folded."""
    pieces = cut_by_texels(corners * resolution, resolution, resolution)
    places, place = np.unique(
        np.stack([chart[pieces.face], pieces.texel], axis=1).astype(np.int64), axis=0, return_inverse=True
    )
    full = np.bincount(place.reshape(-1), weights=pieces.weight) > 1.0 + 1e-6
    sizes, turned = np.bincount(chart), np.bincount(chart, weights=signed_areas(corners) > 0.0)
    over = (turned > 0) & (turned < sizes)
    over[places[full, 0]] = True
    return np.flatnonzero(over & (sizes > 1)).tolist()


def _sides(mesh: TriangleMesh) -> NDArray[np.int64]:
    """For each triangle which of ±x, ±y, ±z it looks along, numbered without gaps."""
    axis = np.abs(mesh.face_vectors).argmax(axis=1)
    backwards = np.take_along_axis(mesh.face_vectors, axis[:, None], axis=1)[:, 0] < 0.0
    return np.unique(2 * axis + backwards, return_inverse=True)[1].reshape(-1)


def _unwrap(mesh: TriangleMesh, part: NDArray[np.int64], settings: AtlasSettings) -> dict[str, Any] | None:
    """What xatlas makes of these parts of the surface; None where it crashes, has no end or makes something else."""
    # xatlas' thresholds are absolute and its floats short: it gets the mesh about the origin, one unit large.
    scaled = (mesh.vertices - mesh.centre) / max(mesh.extent, 1e-12)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(
            source,
            vertices=scaled.astype(np.float32),
            triangles=mesh.triangles,
            part=part,
            cost=settings.distortion,
            padding=settings.padding,
            # The packer overshoots what it is asked for by up to a third; asked for less, charts keep their distance.
            resolution=int(0.8 * settings.resolution * (1.0 - settings.reserve) ** 0.5),
        )
        command = [sys.executable, "-P", str(Path(__file__).parent / "unwrap.py"), str(source), str(target)]
        try:
            subprocess.run(command, capture_output=True, timeout=UNWRAP_S, check=True)
            with np.load(target) as found:
                made = dict(found)
        except (subprocess.SubprocessError, OSError, ValueError, zipfile.BadZipFile):
            return None
    if not (made["vertex"][made["triangles"]] == mesh.triangles).all():
        return None
    return made


def _squared(made: dict[str, Any], settings: AtlasSettings) -> dict[str, Any]:
    """In a unit square; both axes keep one scale."""
    size, triangles, vertex = made["size"], made["triangles"].astype(np.int32), made["vertex"].astype(np.int32)
    square = made["uv"] / size.max()
    if settings.reserve > 0.0:
        if size[1] > size[0]:
            square = np.stack([1.0 - square[:, 1], square[:, 0]], axis=1)  # a quarter turn: the free rows are on top
        square *= min(1.0, (1.0 - settings.reserve) / square[:, 1].max())
    return {
        # Short floats, so that texel coordinates (a power of two times these) are exact on every device.
        "uv": np.clip(square, 0.0, 1.0).astype(np.float32).astype(np.float64),
        "triangles": triangles,
        "vertex": vertex,
        "chart": connected_charts(triangles, len(vertex)),
    }
