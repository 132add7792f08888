"""Makes the atlases that come with the package: `python -m viscera.anatomy.bake`. Needs xatlas.

To be run when an organ's rules change, or how atlases are made; a test fails until it has been. What no organ needs any
more is removed.
"""

from __future__ import annotations

from collections.abc import Iterator

from viscera.anatomy import gallbladder, liver, pad
from viscera.geometry.atlas import SHIPPED, SHIPPED_RESOLUTIONS, AtlasSettings, bake, shipped_key, write_atlas
from viscera.geometry.mesh import TriangleMesh


def shipped_organs() -> list[TriangleMesh]:
    """The organs as they come when nothing else is asked for."""
    return [liver(), gallbladder(), pad()]


def shipped_atlases() -> Iterator[tuple[str, TriangleMesh, AtlasSettings]]:
    """File name, organ and settings of every atlas."""
    for mesh in shipped_organs():
        for resolution in SHIPPED_RESOLUTIONS:
            settings = AtlasSettings(resolution)
            yield f"{shipped_key(mesh, settings)}.npz", mesh, settings


def main() -> None:
    made = set()
    for name, mesh, settings in shipped_atlases():
        write_atlas(SHIPPED / name, mesh, bake(mesh, settings))
        made.add(name)
        print(f"{mesh.name}, {settings.resolution}²: {(SHIPPED / name).stat().st_size // 1000} kB, {name}")
    for old in SHIPPED.glob("*.npz"):
        if old.name not in made:
            old.unlink()


if __name__ == "__main__":
    main()
