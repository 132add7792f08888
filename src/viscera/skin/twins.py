"""The skin's loop in C beside its plain twin."""

from __future__ import annotations

import numpy as np
import warp as wp

from viscera.device import Device
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.geometry.primitives import unrolled_ring
from viscera.native import Trial, Twin, register
from viscera.native.twins import Results
from viscera.skin.maps import texel_maps, texel_maps_cpu
from viscera.skin.skin import Skin, make_skin, rebuild_skin


def ring_skin(device: Device, side: int, stretch: float = 0.0) -> Skin:
    """A ring with texture coordinates by rule, so that no atlas has to be made; `stretch` deforms it [share]."""
    mesh = unrolled_ring(*(24, 10) if side < 256 else (200, 50))
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(64)), side, device=device)
    if stretch:
        x = skin.vertices.numpy()
        bent = x * (1.0 + stretch * np.sin(60.0 * x[:, [1, 2, 0]]))
        skin.vertices.assign(bent.astype(np.float32))
    return skin


def _maps(device: Device, feature: str, native: bool, size: int) -> Trial:
    skin = ring_skin(device, size, 0.4 if feature == "stretched" else 0.0)
    maps = ("tangent_u", "tangent_v", "metric", "area", "position")
    for name in maps:
        getattr(skin, name).fill_(wp.vec3(0.0) if getattr(skin, name).dtype is wp.vec3 else 0.0)

    skin.forget()

    def results() -> Results:
        return {name: getattr(skin, name).numpy() for name in maps}

    return Trial(lambda stage: rebuild_skin(stage, skin, native), results, skin.count, skin.count)


register(Twin(
    "skin.maps", (texel_maps,), {"cpu": (texel_maps_cpu,)}, ("at rest", "stretched"),
    1e-6,  # two or three pieces per texel, and multiply-adds
    _maps, small=64, large=512,
))  # fmt: skip
