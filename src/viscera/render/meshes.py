"""The surfaces and textures of a scene as one set of triangles and one row of texels, where worlds write."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device
from viscera.render.flesh import SurfaceLook, Triangles
from viscera.render.light import FLESH_FINISH, STEEL_FINISH
from viscera.render.looks import MATERIALS, grain, linear_hex
from viscera.view import AnyArray, Frame, Scene, Surface


class Meshes:
    """Made for one scene; `follow` after a frame whose triangles are others."""

    def __init__(self, scene: Scene, device: Device, arrays: dict[str, AnyArray]) -> None:
        self._surfaces = scene.surfaces
        self._arrays = arrays
        sizes = [surface.triangle_capacity or len(surface.triangles) for surface in scene.surfaces]
        self.most_triangles = max(1, sum(sizes))
        self._vertex_first: dict[str, int] = {}
        vertices = 0
        for surface in scene.surfaces:
            if surface.array not in self._vertex_first:
                self._vertex_first[surface.array] = vertices
                vertices += surface.vertex_count
        self.most_vertices = max(1, vertices)
        self.position = device.port(self.most_vertices, wp.vec3)
        for surface in scene.surfaces:
            first = self._vertex_first[surface.array]
            arrays[surface.array] = self.position.host[first : first + surface.vertex_count]
        self.count = device.port(2, wp.int32)
        """Triangles and vertices that there are."""
        self.corner = device.port(self.most_triangles, wp.vec3i)
        self.surface = device.port(self.most_triangles, wp.int32)
        self.uv = device.port(3 * self.most_triangles, wp.vec2)
        self.begin = device.port(self.most_vertices + 1, wp.int32)
        self.beside = device.port(3 * self.most_triangles, wp.int32)
        self.grain = device.port(self.most_vertices, wp.vec4)
        self.seen, self.normal = (wp.zeros(self.most_vertices, dtype=wp.vec3, device=device.warp) for _ in range(2))
        self.shade = wp.zeros(self.most_vertices, dtype=wp.vec2, device=device.warp)
        self._versions: dict[str, int] | None = None
        self.texels, self._texture = _place_textures(scene, device, arrays)
        self.looks = device.port(max(1, len(scene.surfaces)), SurfaceLook)
        for number, surface in enumerate(scene.surfaces):
            self._look(surface, number)

    def triangles(self) -> Any:
        """As kernels have them."""
        found: Any = Triangles()
        found.corner, found.surface, found.uv = self.corner.array, self.surface.array, self.uv.array
        found.seen, found.normal, found.shade, found.grain = self.seen, self.normal, self.shade, self.grain.array
        return found

    def follow(self, frame: Frame, hidden: set[str]) -> bool:
        """The triangles of a frame; True when they are others than before."""
        versions = {surface.name: frame.versions.get(surface.name, 0) for surface in self._surfaces}
        versions |= dict.fromkeys(hidden, -1)
        if versions == self._versions:
            return False
        self._versions = versions
        corners: list[NDArray[np.int32]] = []
        first = 0
        for number, surface in enumerate(self._surfaces):
            if surface.name in hidden:
                continue
            triangles, rest, uv = self._present(surface, frame)
            start = self._vertex_first[surface.array]
            end = first + len(triangles)
            corners.append(triangles + np.int32(start))
            self.surface.host[first:end] = number
            if uv is not None:
                self.uv.host[3 * first : 3 * end] = np.asarray(uv).reshape(-1, 2)
            self.grain.host[start : start + len(rest)] = grain(rest)
            first = end
        corner = np.concatenate(corners) if corners else np.zeros((0, 3), np.int32)
        self.corner.host[:first] = corner
        self.count.host[:] = first, self.most_vertices
        flat = corner.ravel()
        order = np.argsort(flat, kind="stable")
        self.beside.host[: len(flat)] = order // 3
        self.begin.host[0] = 0
        self.begin.host[1:] = np.cumsum(np.bincount(flat, minlength=self.most_vertices))
        return True

    def _present(self, surface: Surface, frame: Frame) -> tuple[NDArray[np.int32], AnyArray, AnyArray | None]:
        arrays = self._arrays
        if not surface.triangle_capacity:
            rest = arrays[surface.array] if surface.rest is None else surface.rest
            return np.asarray(surface.triangles, dtype=np.int32), rest, surface.uv
        triangles, rest, uv = (f"{surface.name}/{part}" for part in ("triangles", "rest", "uv"))
        count = frame.counts.get(triangles, surface.triangle_capacity)
        points = frame.counts.get(rest, surface.vertex_count)
        return arrays[triangles][:count], arrays[rest][:points], arrays[uv][:count]

    def see_paint(self) -> None:
        """Textures that are empty need not be looked at."""
        for number, surface in enumerate(self._surfaces):
            for role in ("burn", "film", "ink"):
                if (surface.name, role) in self._texture:
                    (first, width, height), _ = self._texture[surface.name, role]
                    told = self.texels.host[first : first + width * height]
                    # A burn's red is how warm it is, and its alpha the water left: neither is seen by itself.
                    there = told[:, 1:3].any() if role == "burn" else told.any()
                    self.looks.host[role][number, 1] = width if there else 0

    def _look(self, surface: Surface, number: int) -> None:
        look = self.looks.host[number : number + 1]
        material = MATERIALS.get(surface.material, MATERIALS["tissue"])
        for name in ("base", "pale", "deep", "inner"):
            look[name] = linear_hex(getattr(material, name))
        look["coat"], look["dry"] = material.coat, material.dry
        look["finish"] = STEEL_FINISH if surface.material == "steel" else FLESH_FINISH
        look["part"] = 1 + number
        look["painted"] = int(surface.uv is not None or surface.triangle_capacity > 0)
        for role in ("burn", "film", "ink"):
            look[role], texture = self._texture.get((surface.name, role), ((0, 0, 0), None))
            if role == "film" and texture is not None:
                look["dye"], look["dye_body"] = texture.absorption, texture.body


def _place_textures(scene: Scene, device: Device, arrays: dict[str, AnyArray]) -> tuple[Any, dict[Any, Any]]:
    """All texels one after the other, and where each texture lies: its first texel, width and height."""
    total = sum(texture.width * texture.height for texture in scene.textures)
    texels = device.port(max(1, total), wp.vec4ub)
    found: dict[Any, Any] = {}
    first = 0
    for texture in scene.textures:
        end = first + texture.width * texture.height
        arrays[texture.name] = texels.host[first:end].reshape(texture.height, texture.width, 4)
        found[texture.surface, texture.role] = ((first, texture.width, texture.height), texture)
        first = end
    return texels, found
