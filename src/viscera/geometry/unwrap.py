"""A process of its own in which xatlas works: `python -P unwrap.py IN.npz OUT.npz`.

xatlas crashes on some meshes (a fine, even sphere: neighbouring triangles that are nearly in one plane become one
"plane", until that is the whole closed surface) and has no end on others. Neither may happen to whoever asked for an
atlas. The file is run as it is, without the package: NumPy and xatlas are all it needs.

In: `vertices` float32, `triangles`, `part` (of each triangle, 0 …), `cost`, `padding`, `resolution`. Out: atlas
vertices `uv` (in texels) and `vertex`, `triangles`, and the `size` of the atlas [texels].
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def unwrap(given: Any) -> dict[str, np.ndarray]:
    import xatlas

    made: Any = xatlas.Atlas()
    triangles, part = given["triangles"], given["part"]
    used = []
    for number in range(int(part.max()) + 1):
        vertices, local = np.unique(triangles[part == number], return_inverse=True)
        used.append(vertices)
        made.add_mesh(given["vertices"][vertices], local.reshape(-1, 3).astype(np.uint32))
    charts: Any = xatlas.ChartOptions()
    charts.max_cost = float(given["cost"])
    packing: Any = xatlas.PackOptions()
    packing.create_image = False
    packing.padding = int(given["padding"])
    packing.resolution = int(given["resolution"])
    made.generate(charts, packing)
    size = np.array([made.width, made.height], dtype=np.float64)
    uv, vertex = [], []
    corners = np.zeros(triangles.shape, dtype=np.int32)
    start = 0
    for number, vertices in enumerate(used):
        own, faces, where = made[number]
        corners[part == number] = faces.astype(np.int32) + start
        uv.append(where.astype(np.float64) * size)
        vertex.append(vertices[own])
        start += len(own)
    return {"uv": np.concatenate(uv), "vertex": np.concatenate(vertex), "triangles": corners, "size": size}


def main(source: str, target: str) -> None:
    with np.load(source) as given:
        made: Any = unwrap(dict(given))
    np.savez(target, **made)


if __name__ == "__main__":
    main(*sys.argv[1:])
