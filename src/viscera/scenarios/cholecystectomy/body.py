"""The field of the operation as one body: which cells there are, and what each mass is.

Everything is one lattice of several materials, so that whatever joins two organs is made of springs like any other:
cut, torn and burnt in the same way. Tubes are chains of cells, the fold around them is a cell thick, the gall bladder
has a wall of a cell around its lumen.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.anatomy.implicit import Body as Blend
from viscera.anatomy.implicit import Ellipsoid, join, polygonise
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.topology import components
from viscera.geometry.voxels import Voxels, cell_corners
from viscera.scenarios.cholecystectomy.patient import BED_TOP, COMMON_HEIGHT, HALF_WIDTH, LIVER_TOP, Line, Patient
from viscera.tissue.springs import NodeIndex
from viscera.world.organ import Body, point

LIVER, WALL, LUMEN, BED, FAT, PERITONEUM, DUCT, COMMON, ARTERY = range(9)
"""Numbers of the materials (materials.py)."""

LOW, HIGH = (-0.0450, -HALF_WIDTH, 0.0), (0.0450, HALF_WIDTH, 0.0420)
"""Box of the lattice [m]."""
TUBE = 0.0021
"""Radius of ducts and arteries, as they are drawn, with the loose tissue around them [m]."""
FOLD = 0.0018
"""Half the thickness of the fold of fat [m]."""
BESIDE = 0.0060
"""How far the fold goes beyond duct and arteries [m]."""
BEHIND = 0.0040
"""The same beyond where the last artery enters the gall bladder, along x [m]."""
WALL_DEPTH, THICK_WALL_DEPTH = 0.0032, 0.0045
"""Of the gall bladder's wall: what lies deeper is lumen [m]; a lattice of 3 mm has it a cell thick."""
EDGE = 0.0024
"""Of the triangles from which the surface is drawn [m]."""
SEAM = 0.001
"""Over which seams are rounded [m]."""


@dataclass(frozen=True, eq=False)
class Field:
    """The body, and the number of each mass's material."""

    body: Body
    material_of: NDArray[np.uint8]
    tubes: tuple[NDArray[np.int64], ...]
    """Masses of the cystic duct, of the common duct, of each artery."""


def make_field(patient: Patient, spacing: float) -> Field:
    """The lattice of a patient, masses `spacing` apart [m], with its surface."""
    low, high = np.asarray(LOW) - 0.004, np.asarray(HIGH) + 0.004
    mesh = polygonise(lambda points: _inside(patient, points, FOLD), low, high, EDGE, "field")
    return make_lattice_of(patient, spacing, mesh)


def make_lattice_of(patient: Patient, spacing: float, mesh: TriangleMesh) -> Field:
    """The same with this surface."""
    low = np.asarray(LOW)
    count = np.maximum(np.rint((np.asarray(HIGH) - low) / spacing).astype(np.int64), 1)
    axes = [low[a] + spacing * (np.arange(count[a]) + 0.5) for a in range(3)]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    there = (_inside(patient, centres, 0.5 * spacing) < 0.0).reshape(tuple(count))
    chains = [_chain(line, low, spacing, count) for line in _lines(patient)]
    for chain in chains:
        there[tuple(chain.T)] = True
    cells = _hanging_together(np.argwhere(there))
    made = cell_corners(Voxels(cells.astype(np.int32), low + 0.5 * spacing, spacing))
    body = Body(mesh, made.nodes, point(np.asarray(made.origin)), spacing)
    tubes = tuple(_corners(chain, body, low, spacing) for chain in chains)
    return Field(body, _materials(patient, body, tubes), tubes)


def _lines(patient: Patient) -> list[Line]:
    return [patient.duct, patient.common, *patient.arteries]


# --- shapes ---


def gallbladder(patient: Patient) -> Blend:
    """A pear that lies on its bed, fundus towards +x."""
    s, base = patient.size, BED_TOP
    return Blend((
        Ellipsoid((0.0150, 0.0, base + 0.0102 * s), (0.0215 * s, 0.0112 * s, 0.0108 * s)),
        Ellipsoid((-0.0035, 0.0, base + 0.0070), (0.0115, 0.0075, 0.0072), blend=0.006),
    ))  # fmt: skip


def _inside(patient: Patient, points: NDArray[np.float64], fold: float) -> NDArray[np.float64]:
    """Negative inside the field [m]; the fold is `fold` to either side of its middle."""
    found = _box(points, (LOW[0], LOW[1], 0.0), (HIGH[0], HIGH[1], LIVER_TOP))
    found = np.minimum(found, gallbladder(patient).value(points))
    found = np.minimum(found, _box(points, (-0.0075, -0.0075, 0.003), (0.0300, 0.0075, BED_TOP + 0.002)))
    for line in _lines(patient):
        found = join(found, _distance(line, points) - TUBE, SEAM)
    found = join(found, _fold(patient, points, fold), SEAM)
    x = float(patient.common[0, 0])
    return np.minimum(found, _box(points, (x - 0.0045, -HALF_WIDTH, 0.003), (x + 0.0045, HALF_WIDTH, COMMON_HEIGHT)))


def _box(points: NDArray[np.float64], low: tuple[float, ...], high: tuple[float, ...]) -> NDArray[np.float64]:
    middle, half = 0.5 * (np.array(low) + np.array(high)), 0.5 * (np.array(high) - np.array(low))
    out = np.abs(points - middle) - half
    return np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0)


def _distance(line: Line, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """From a line of segments [m]."""
    return along(line, points)[1]


def along(line: Line, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of points: how far along the line their nearest place is, 0 to 1 of its length, and how far away it is [m]."""
    lengths = np.linalg.norm(np.diff(line, axis=0), axis=1)
    begins = np.concatenate([[0.0], np.cumsum(lengths)])
    best, share = np.full(len(points), np.inf), np.zeros(len(points))
    for k, (start, end) in enumerate(itertools.pairwise(line)):
        way = end - start
        t = np.clip((points - start) @ way / (way @ way), 0.0, 1.0)
        far = np.linalg.norm(points - start - t[:, None] * way, axis=1)
        nearer = far < best
        best[nearer], share[nearer] = far[nearer], ((begins[k] + t * lengths[k]) / begins[-1])[nearer]
    return share, best


def _fold(patient: Patient, points: NDArray[np.float64], half: float) -> NDArray[np.float64]:
    """The sheet that holds duct and arteries: between them at their heights, and a little beyond."""
    lines = [patient.duct, *patient.arteries]
    x, y = points[:, 0], points[:, 1]
    places = [np.interp(x, line[:, 0], line[:, 1]) for line in lines]
    heights = [np.interp(x, line[:, 0], line[:, 2]) for line in lines]
    order = np.argsort(np.stack(places), axis=0)
    sides, levels = (np.take_along_axis(np.stack(one), order, axis=0) for one in (places, heights))
    height = levels[0]
    for k in range(1, len(lines)):
        share = np.clip((y - sides[k - 1]) / np.maximum(sides[k] - sides[k - 1], 1e-6), 0.0, 1.0)
        height = np.where(y > sides[k - 1], (1.0 - share) * levels[k - 1] + share * levels[k], height)
    beyond = np.maximum(sides[0] - BESIDE - y, y - sides[-1] - BESIDE)
    last = max(float(line[-1, 0]) for line in lines) + BEHIND
    ends = np.maximum(float(patient.common[0, 0]) - 0.001 - x, x - last)
    return np.maximum(np.maximum(np.abs(points[:, 2] - height) - half, beyond), ends)


# --- cells and masses ---


def _chain(line: Line, low: NDArray[np.float64], spacing: float, count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cells along a line, each beside the one before across a side."""
    cells: list[tuple[int, int, int]] = []
    for start, end in itertools.pairwise(line):
        steps = max(2, int(np.ceil(8.0 * np.linalg.norm(end - start) / spacing)))
        for t in np.linspace(0.0, 1.0, steps):
            cell = np.floor(((1.0 - t) * start + t * end - low) / spacing).astype(np.int64)
            cell = np.clip(cell, 0, count - 1)
            while cells and np.abs(cell - cells[-1]).sum() > 1:
                way = cell - np.array(cells[-1])
                axis = int(np.argmax(np.abs(way)))
                between = np.array(cells[-1])
                between[axis] += np.sign(way[axis])
                cells.append(tuple(between.tolist()))
            if not cells or tuple(cell.tolist()) != cells[-1]:
                cells.append(tuple(cell.tolist()))
    return np.unique(np.array(cells), axis=0)


def _hanging_together(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest part of the cells that hangs together across sides."""
    index = NodeIndex(cells.astype(np.int32))
    first, second = [], []
    for step in np.eye(3, dtype=np.int32):
        other = index.find(cells.astype(np.int32) + step)
        first.append(np.flatnonzero(other >= 0))
        second.append(other[other >= 0])
    roots = components(len(cells), np.concatenate(first), np.concatenate(second).astype(np.int64))
    return cells[roots == np.bincount(roots).argmax()]


def _corners(chain: NDArray[np.int64], body: Body, low: NDArray[np.float64], spacing: float) -> NDArray[np.int64]:
    """Masses at the corners of these cells."""
    shift = np.rint((low - np.asarray(body.origin)) / spacing).astype(np.int64)
    corners = (chain[:, None, :] + np.array(list(np.ndindex(2, 2, 2)))).reshape(-1, 3) + shift
    found = NodeIndex(body.nodes).find(np.unique(corners, axis=0).astype(np.int32))
    return np.sort(found[found >= 0]).astype(np.int64)


def _materials(patient: Patient, body: Body, tubes: tuple[NDArray[np.int64], ...]) -> NDArray[np.uint8]:
    """What each mass is; a tube wins over what it runs through, but for the gall bladder's lumen."""
    at, h = body.positions, body.spacing
    kind = np.full(len(at), LIVER, dtype=np.uint8)
    above = at[:, 2] > LIVER_TOP + 0.1 * h
    kind[above] = FAT
    fold = above & (_fold(patient, at, 0.6 * h) < 0.4 * h)
    top = np.ones(len(at), dtype=np.bool_)
    top[NodeIndex(body.nodes).find(body.nodes + np.array([0, 0, 1], dtype=np.int32)) >= 0] = False
    kind[fold & top] = PERITONEUM
    under = (np.abs(at[:, 1]) < 0.0075 + 0.5 * h) & (at[:, 0] > -0.0075 - 0.5 * h) & (at[:, 0] < 0.0300 + 0.5 * h)
    kind[above & under & (at[:, 2] < BED_TOP - 0.1 * h)] = BED
    depth = -gallbladder(patient).value(at)
    bladder = above & (depth > -0.75 * h) & (at[:, 2] > BED_TOP - 0.1 * h) & (at[:, 0] > -0.0140)
    kind[bladder] = WALL
    for number, masses in zip((DUCT, COMMON, *[ARTERY] * len(patient.arteries)), tubes, strict=True):
        kind[masses[~np.isin(kind[masses], (WALL,)) | (depth[masses] < 0.0)]] = number
    kind[bladder & (depth > (THICK_WALL_DEPTH if patient.thick_wall else WALL_DEPTH))] = LUMEN
    return kind
