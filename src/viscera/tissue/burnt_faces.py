"""Burns on the faces of cuts reach the masses behind them.

Each quad of a cut face belongs to the mass at its end of the link that was cut. A mass is burnt as the worst of its
faces is, and as its part of the outside (burning.py), whichever is more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.skin import Skin
from viscera.tissue.burning import Burning

wp.set_module_options({"enable_backward": False})


@dataclass(frozen=True, eq=False)
class FaceSampling:
    """Made by `make_face_sampling`."""

    place: Any
    """Lattice place of the mass behind each quad, -1 where nothing is cut, int32, shape (quads,)."""
    start: Any
    """Where each quad's texels begin, int32, shape (quads + 1,)."""
    texel: Any
    """int32"""


def make_face_sampling(skin: Skin) -> FaceSampling:
    """Of a skin with room for faces of cuts (skin/spare.py)."""
    texels = skin.texels.numpy()
    quad = (skin.face.numpy()[texels] - skin.outside) // 2
    texels, quad = texels[quad >= 0], quad[quad >= 0]
    order = np.argsort(quad, kind="stable")
    start = np.searchsorted(quad[order], np.arange(skin.spare // 2 + 1))
    device = skin.device.warp
    return FaceSampling(
        wp.full(skin.spare // 2, -1, dtype=wp.int32, device=device),
        wp.array(start.astype(np.int32), dtype=wp.int32, device=device),
        wp.array(texels[order], dtype=wp.int32, device=device),
    )


def set_faces(sampling: FaceSampling, place: NDArray[np.int32]) -> None:
    """These are the masses behind the first quads; behind the others there is none."""
    whole = np.full(sampling.place.shape[0], -1, dtype=np.int32)
    whole[: len(place)] = place
    sampling.place.assign(whole)


def sample_faces(stage: Stage, burning: Burning, sampling: FaceSampling, level: Any) -> None:
    """After `sample_burn`: from a map of burn levels on the skin, where 1 and more is burnt through."""
    args = [sampling.place, sampling.start, sampling.texel, level, burning.burn]
    # On one core: Warp's atomics are plain operations on cpu.
    stage.once(lambda: wp.launch(burn_faces, dim=sampling.place.shape[0], inputs=args, device=stage.device.warp))


@wp.kernel
def burn_faces(
    # in
    place: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    texel: wp.array(dtype=wp.int32),
    level: wp.array(dtype=wp.float32),
    # out
    burn_out: wp.array(dtype=wp.float32),
):
    """Each thread a quad. The larger of two is the same in any order."""
    quad = wp.tid()
    if place[quad] < 0:
        return
    total = float(0.0)
    for k in range(start[quad], start[quad + 1]):
        total += wp.clamp(level[texel[k]], 0.0, 1.0)
    wp.atomic_max(burn_out, place[quad], total / float(wp.max(start[quad + 1] - start[quad], 1)))
