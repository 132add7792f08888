"""The skin: texels on the surface of tissue, where heat, burns, blood and water live."""

from viscera.skin.gutter import gutter
from viscera.skin.seams import Links, Seams, cross_seam
from viscera.skin.skin import Skin, make_skin, rebuild_skin

__all__ = ["Links", "Seams", "Skin", "cross_seam", "gutter", "make_skin", "rebuild_skin"]
