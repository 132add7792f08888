"""Triangle meshes: the container that all of geometry shares, and loading it from files.

Inside, lengths are metres. Files say no unit (only GLB does), so it is guessed from the extent: an organ is between
5 mm and 60 cm long. What was guessed, merged or repaired stands in `TriangleMesh.notes`.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError, MeshError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]

UNITS = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "in": 0.0254}
"""Metres per unit."""

ORGAN_EXTENT = (0.005, 0.6)
"""Longest side of a plausible organ's bounding box, from a gland to a whole colon [m]."""

EXTENSIONS = (".stl", ".obj", ".ply", ".glb")


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """A surface of triangles, counter-clockwise seen from outside. Arrays are copies and read-only."""

    vertices: FloatArray
    """Positions, shape (vertices, 3) [m]."""
    triangles: IntArray
    """Vertex indices, shape (triangles, 3)."""
    name: str = "mesh"
    uv: NDArray[np.float32] | None = None
    """Texture coordinates per vertex, shape (vertices, 2); vertices on a seam appear once per side."""
    unit: str = "m"
    """Unit of the file it came from."""
    notes: tuple[str, ...] = ()
    """What loading and repairing changed, for people."""

    def __post_init__(self) -> None:
        vertices = np.array(self.vertices, dtype=np.float64)
        triangles = np.array(self.triangles, dtype=np.int32)
        uv = None if self.uv is None else np.array(self.uv, dtype=np.float32)
        _check_arrays(self.name, vertices, triangles, uv)
        for name, array in (("vertices", vertices), ("triangles", triangles), ("uv", uv)):
            if array is not None:
                array.setflags(write=False)
            object.__setattr__(self, name, array)

    @cached_property
    def corners(self) -> FloatArray:
        """Positions of the triangles' corners, shape (triangles, 3, 3) [m]."""
        return self.vertices[self.triangles]

    @cached_property
    def face_vectors(self) -> FloatArray:
        """Per triangle its outward normal times its area, shape (triangles, 3) [m²]."""
        a, b, c = self.corners[:, 0], self.corners[:, 1], self.corners[:, 2]
        return 0.5 * np.cross(b - a, c - a)

    @cached_property
    def area(self) -> float:
        """[m²]"""
        return float(np.linalg.norm(self.face_vectors, axis=1).sum())

    @cached_property
    def volume(self) -> float:
        """By the divergence theorem [m³]; negative when inside out, without meaning when the mesh is open."""
        return float(self.face_volumes.sum())

    @cached_property
    def face_volumes(self) -> FloatArray:
        """Signed volumes between each triangle and the box's centre, shape (triangles,) [m³]."""
        # About the centre: an organ a metre from the origin would lose six digits to cancellation.
        return np.einsum("ij,ij->i", self.corners[:, 0] - self.centre, self.face_vectors) / 3.0

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest corner of the bounding box [m]."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    @property
    def size(self) -> FloatArray:
        """Sides of the bounding box [m]."""
        return self.bounds[1] - self.bounds[0]

    @property
    def extent(self) -> float:
        """Longest side of the bounding box [m]."""
        return float(self.size.max())

    @property
    def centre(self) -> FloatArray:
        """Of the bounding box [m]."""
        return 0.5 * (self.bounds[0] + self.bounds[1])

    @cached_property
    def vertex_normals(self) -> FloatArray:
        """Outward unit normals, weighted by area, shape (vertices, 3); zero where a vertex has no area around it."""
        sums = np.zeros_like(self.vertices)
        for corner in range(3):
            np.add.at(sums, self.triangles[:, corner], self.face_vectors)
        length = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.divide(sums, length, out=np.zeros_like(sums), where=length > 0.0)

    def moved(self, offset: ArrayLike) -> TriangleMesh:
        """The same mesh, shifted by `offset` [m]."""
        return replace(self, vertices=self.vertices + np.asarray(offset, dtype=np.float64))

    def scaled(self, factor: float) -> TriangleMesh:
        """The same mesh, `factor` times as large, about the origin."""
        return replace(self, vertices=self.vertices * float(factor))

    def with_triangles(self, triangles: ArrayLike, note: str) -> TriangleMesh:
        """The same vertices under other triangles; `note` says why."""
        return replace(self, triangles=np.asarray(triangles, dtype=np.int32), notes=(*self.notes, note))


def _check_arrays(name: str, vertices: FloatArray, triangles: IntArray, uv: NDArray[np.float32] | None) -> None:
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise MeshError(f"{name}: vertices has shape {vertices.shape}.", "Give one row of x, y, z per vertex.")
    if triangles.ndim != 2 or triangles.shape[1] != 3 or len(triangles) == 0:
        raise MeshError(
            f"{name}: triangles has shape {triangles.shape}.", "Give at least one row of three vertex indices."
        )
    broken = ~np.isfinite(vertices).all(axis=1)
    if broken.any():
        number, first = int(broken.sum()), int(broken.argmax())
        raise MeshError(
            f"{name}: {number} of {len(vertices)} vertices are not finite, the first is vertex {first}.",
            "Export the mesh again without NaN or infinite coordinates.",
        )
    low, high = int(triangles.min()), int(triangles.max())
    if low < 0 or high >= len(vertices):
        raise MeshError(
            f"{name}: a triangle names vertex {low if low < 0 else high}, but there are {len(vertices)} vertices.",
            "The file is damaged; export it again.",
        )
    if uv is not None and uv.shape != (len(vertices), 2):
        raise MeshError(f"{name}: uv has shape {uv.shape}.", f"Give one row of u, v per vertex: ({len(vertices)}, 2).")


def weld(vertices: FloatArray) -> NDArray[np.int64]:
    """For each vertex the number of the first vertex at exactly its position."""
    # Adding zero turns -0.0 into 0.0; the two are one place.
    _, first, group = np.unique(vertices + 0.0, axis=0, return_index=True, return_inverse=True)
    return first[group.reshape(-1)]


STL_HEAD, STL_TRIANGLE = 84, 50
"""Of a binary STL: title and number of triangles, and each triangle [bytes]."""


LARGEST_FILE = 2**31
"""That is read [bytes]."""


def load_mesh(path: str | Path, unit: str | None = None, most: int | None = None) -> TriangleMesh:
    """Reads an STL, OBJ, PLY or GLB file. `unit` is mm, cm, m or in; without it, it is guessed from the extent. A file
    with more than `most` triangles is refused."""
    path = Path(path)
    if unit is not None and unit not in UNITS:
        raise InputError(f"unit = {unit!r} is not known.", f"Allowed are {', '.join(UNITS)}, or none to guess it.")
    raw = _read(path)
    vertices, triangles, uv = _parse(raw, path)
    if most is not None and len(triangles) > most:
        raise MeshError(
            f"{path}: it has {len(triangles)} triangles; at most {most} can be used.",
            f"Give it fewer: `viscera mesh {path.name} --simplify 50000 --out NEW.stl`, or a mesh editor.",
        )
    vertices, triangles, uv, notes = _compact(path.name, vertices, triangles, uv)
    extent = float(np.ptp(vertices, axis=0).max())
    if unit is None:
        unit, note = guess_unit(extent, path.name, prefer="m" if path.suffix.lower() == ".glb" else "mm")
        notes.append(note)
    return TriangleMesh(vertices * UNITS[unit], triangles, path.stem, uv, unit, tuple(notes))


def guess_unit(extent: float, name: str = "mesh", prefer: str = "mm") -> tuple[str, str]:
    """The unit in which `extent` (a number without one) is an organ's, and a sentence about the choice.

    Where two fit, `prefer` wins: medical STL files are in millimetres, GLB is defined in metres.
    """
    fitting = [u for u, metres in UNITS.items() if ORGAN_EXTENT[0] <= extent * metres <= ORGAN_EXTENT[1]]
    if not fitting:
        low, high = (1000 * e for e in ORGAN_EXTENT)
        raise MeshError(
            f"{name}: its longest side is {extent:.4g}, which is no organ in {', '.join(UNITS)} "
            f"({low:g} mm to {high:g} mm).",
            f"Scale it to millimetres, or say its unit: `viscera mesh {name} --unit cm --out NEW.stl`.",
        )
    chosen = prefer if prefer in fitting else fitting[0]
    note = f"unit guessed: {chosen} (longest side {1000 * extent * UNITS[chosen]:.4g} mm)"
    others = [f"{u}: {1000 * extent * UNITS[u]:.4g} mm" for u in fitting if u != chosen]
    hint = " (viscera mesh FILE --unit U --out NEW.stl says which)"
    return chosen, note + (f"; it could also be {', '.join(others)}{hint}" if others else "")


def _read(path: Path) -> bytes:
    if path.suffix.lower() not in EXTENSIONS:
        kind = f"files ending in {path.suffix!r}" if path.suffix else "files without an ending"
        raise MeshError(f"{path}: {kind} cannot be read.", f"Allowed are {', '.join(EXTENSIONS)}.")
    try:
        # A pipe or a device may have no end.
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise MeshError(f"{path}: this is no file.", "Give the path of a mesh file.")
        if path.exists() and path.stat().st_size > LARGEST_FILE:
            raise MeshError(f"{path}: it is larger than {LARGEST_FILE / 2**30:.0f} GiB.", "Give it fewer triangles.")
        raw = path.read_bytes()
    except FileNotFoundError:
        raise MeshError(f"{path}: there is no such file.", "Check the path.") from None
    except IsADirectoryError:
        raise MeshError(f"{path}: this is a folder.", "Name a mesh file inside it.") from None
    except PermissionError:
        raise MeshError(f"{path}: no permission to read it.", "Change the file's permissions or copy it.") from None
    except OSError as error:
        raise MeshError(f"{path}: it cannot be read ({error.strerror or error}).", "Check the disk.") from None
    if not raw:
        raise MeshError(f"{path}: the file is empty.", "Export the mesh again.")
    return raw


def _parse(raw: bytes, path: Path) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.float32] | None]:
    import trimesh

    kind = path.suffix.lower()[1:]
    if kind == "stl":
        _refuse_cut(raw, path)
    if kind == "obj" or (kind == "stl" and not _is_binary_stl(raw)):
        raw = _as_text(raw)
    try:
        # `process` would merge and drop things without saying so.
        parsed: Any = trimesh.load_mesh(io.BytesIO(raw), file_type=kind, process=False)
        vertices = np.asarray(parsed.vertices, dtype=np.float64)
        triangles = np.asarray(parsed.faces, dtype=np.int64)
        uv = getattr(parsed.visual, "uv", None)
    except Exception as error:
        raise MeshError(
            f"{path}: it is damaged, or no {kind.upper()} file ({type(error).__name__}: {str(error)[:120]}).",
            "Open it in a mesh editor and export it again.",
        ) from error
    if triangles.size == 0:
        raise MeshError(f"{path}: it holds no triangles.", "Export a surface, not points or lines.")
    return vertices, triangles, None if uv is None else np.asarray(uv, dtype=np.float32)


def _is_binary_stl(raw: bytes) -> bool:
    return len(raw) >= STL_HEAD and len(raw) == STL_HEAD + STL_TRIANGLE * int.from_bytes(
        raw[STL_HEAD - 4 : STL_HEAD], "little"
    )


def _as_text(raw: bytes) -> bytes:
    """A text file as UTF-8. Names in it may be in any encoding; only numbers matter to us, and these are the same in
    all."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1").encode("utf-8")
    return raw


def _refuse_cut(raw: bytes, path: Path) -> None:
    """A binary STL says how many triangles it has. What reads it may take one that is cut short for an empty text."""
    if len(raw) < STL_HEAD or raw[:5].lower() == b"solid":
        return
    promised = int.from_bytes(raw[STL_HEAD - 4 : STL_HEAD], "little")
    there = (len(raw) - STL_HEAD) // STL_TRIANGLE
    if there < promised:
        raise MeshError(
            f"{path}: it is damaged: {there} of its {promised} triangles are there.", "Copy or export it again."
        )


def _compact(
    name: str, vertices: FloatArray, triangles: NDArray[np.int64], uv: NDArray[np.float32] | None
) -> tuple[FloatArray, IntArray, NDArray[np.float32] | None, list[str]]:
    """Drops vertices that no triangle uses and, where no texture seam keeps them apart, merges equal ones."""
    notes: list[str] = []
    # Checked here already, so that a NaN is reported as what it is and not as a strange extent.
    _check_arrays(name, vertices, triangles.astype(np.int32), uv)
    if uv is None:
        merged = weld(vertices)
        doubles = int((merged != np.arange(len(merged))).sum())
        triangles = merged[triangles]
        if doubles:
            notes.append(f"{doubles} vertices that repeat a position were merged")
    used, renumbered = np.unique(triangles, return_inverse=True)
    kept = renumbered.reshape(-1, 3).astype(np.int32)
    return vertices[used], kept, None if uv is None else uv[used], notes


def save_stl(path: Path, mesh: TriangleMesh) -> None:
    """Writes a binary STL in millimetres."""
    if path.suffix.lower() != ".stl":
        raise InputError(f"{path}: only STL files can be written.", "Give it a name that ends in .stl.")
    kind = [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("extra", "<u2")]
    body = np.zeros(len(mesh.triangles), dtype=np.dtype(kind))
    body["corners"] = mesh.corners / UNITS["mm"]
    try:
        path.write_bytes(b"viscera".ljust(STL_HEAD - 4) + len(body).to_bytes(4, "little") + body.tobytes())
    except OSError as error:
        raise MeshError(f"{path}: it cannot be written ({error.strerror or error}).", "Choose another --out.") from None
