"""The skin: texels on the surface of tissue, where heat, burns, blood and water live.

    liver = skin.make(anatomy.liver(), device=device)
    skin.follow(stage, liver)                               # after `liver.vertices` were written

A skin has no laws of its own: no parameters to `set` and no `step`. It follows the tissue.
"""

from __future__ import annotations

from viscera.device import Device, Stage
from viscera.geometry.atlas import Atlas
from viscera.geometry.mesh import TriangleMesh
from viscera.skin.gutter import gutter
from viscera.skin.seams import Links, Seams, cross_seam
from viscera.skin.skin import Skin, make_skin, rebuild_skin
from viscera.states import Arrays, copy_in, copy_out, require_finite

__all__ = ["Links", "Seams", "Skin", "check", "cross_seam", "follow", "gutter", "load", "make", "save"]


def make(
    mesh: TriangleMesh, *, width: int = 512, height: int | None = None, atlas: Atlas | None = None, device: Device
) -> Skin:
    """The skin of `mesh` at rest. `width` and `height` of its texture are powers of two from 64 to 4096; without an
    atlas, one is found or made (`geometry.atlas.unique_atlas`)."""
    return make_skin(mesh, atlas, width, height, device)


def follow(stage: Stage, skin: Skin) -> None:
    """Brings all moving maps up to `skin.vertices`: once a frame, before what lives on the skin takes its step."""
    rebuild_skin(stage, skin)


def check(skin: Skin, tick: int = 0) -> None:
    """Raises StateError if the surface is no longer finite. Waits for the device: once per frame."""
    hint = "The tissue that moves it has broken: look at `tissue.check` first."
    require_finite("skin", {"vertices": skin.vertices}, tick, hint)


def save(skin: Skin) -> Arrays:
    """Where the surface is; all other moving maps follow from it."""
    return copy_out({"vertices": skin.vertices})


def load(skin: Skin, arrays: Arrays) -> None:
    """Puts the surface where `save` found it, and brings the maps up to it."""
    copy_in("skin", {"vertices": skin.vertices}, arrays)
    skin.device.record(lambda stage: rebuild_skin(stage, skin), work=skin.count).run()
    skin.device.synchronize()
