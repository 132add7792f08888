"""A scan of a patient as the body around the lumen: `--with scan=PATH`, and `--with labels=TABLE` for a label map.

A colon by rule is put into the middle of the scan. A mesh of the user's own is taken to lie where the scan has it, as
one that was segmented from it does, in the axes of its file (right, front, head of a NIfTI file; left, back, head of
DICOM). Where the lumen is, the scan gets soft tissue: the simulated lumen takes its place, and nothing is seen twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh
from viscera.geometry.queries import build_query, signed_distance
from viscera.scenarios import Option, Setting
from viscera.xray.scans import Read, read_scan
from viscera.xray.volume import Scan, filled

OPTIONS = (
    Option("scan", "file", "A CT as the body: a NIfTI file, or a folder of DICOM slices."),
    Option("labels", "file", "What the scan's whole numbers stand for, where it is a label map: label, HU per line."),
    Option("triangles", "number", "Of the colon.", 2_000, 200_000),
)
OPENS = 0.004
"""The wall opens by no more than that over its resting shape [m]: CO₂ at 30 mmHg makes it 2 % wider."""


@dataclass(eq=False)
class Body:
    """A scan, and where the mesh in it was moved from."""

    read: Read
    moved: FloatArray
    """Of everything, so that the lumen's middle is in the isocentre [m]."""

    def place(self, mesh: TriangleMesh) -> TriangleMesh:
        """A mesh in the axes of the scan's file, turned into ours; the scan moves with it from now on."""
        turned = TriangleMesh(mesh.vertices @ self.read.turn.T - self.read.middle, mesh.triangles, mesh.name)
        self._require_inside(turned)
        self.moved = turned.centre
        return turned

    def around(self, mesh: TriangleMesh, device: Device) -> Scan:
        """The scan with soft tissue where the lumen is, and a little around it, where its wall may go."""
        volume = self._moved()
        self._require_inside(mesh.moved(self.moved))
        half = 0.5 * float(np.linalg.norm(volume.to_world[:3, :3], axis=0).mean())
        query = build_query(mesh, device)

        def inside(places: FloatArray) -> FloatArray:
            near = ((places > mesh.bounds[0] - 0.01) & (places < mesh.bounds[1] + 0.01)).all(axis=1)
            share = np.zeros(len(places))
            if near.any():
                away = signed_distance(query, places[near].astype(np.float32)).astype(np.float64)
                share[near] = np.clip(0.5 - (away - OPENS) / (2.0 * half), 0.0, 1.0)
            return share

        return filled(volume, inside)

    def _moved(self) -> Scan:
        affine = self.read.scan.to_world.copy()
        affine[:3, 3] -= self.moved
        return Scan(self.read.scan.voxels, affine, self.read.scan.step)

    def _require_inside(self, mesh: TriangleMesh) -> None:
        """A lumen that leaves the scan has no body around it there."""
        scan = self.read.scan
        at = np.linalg.inv(scan.to_world) @ np.concatenate([mesh.vertices.T, np.ones((1, len(mesh.vertices)))])
        out = ((at[:3] < -0.5) | (at[:3] > np.asarray(scan.voxels.shape[:3])[:, None] - 0.5)).any(axis=0)
        if out.any():
            sides = 1e3 * np.linalg.norm(scan.to_world[:3, :3], axis=0) * scan.voxels.shape[:3]
            raise InputError(
                f"{100 * out.mean():.0f} % of {mesh.name} lies outside the scan, which is "
                f"{' × '.join(f'{one:.0f}' for one in sides)} mm.",
                "A colon by rule needs a scan of the whole abdomen. A mesh must lie where the scan has it: in its axes "
                "and from its origin, as segmenting it gives.",
            )


def find_body(setting: Setting) -> Body | None:
    """The user's scan; None for trunk and spine by rule."""
    path, labels = setting.file("scan"), setting.file("labels")
    if path is None:
        if labels is not None:
            raise InputError("labels are given without a scan.", "Add --with scan=PATH, the label map.")
        return None
    return Body(read_scan(path, labels=labels), np.zeros(3))
