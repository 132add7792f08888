"""Procedural organs: closed meshes of well-shaped triangles, in metres, the same for the same seed."""

from __future__ import annotations

from viscera.anatomy.colon import colon
from viscera.anatomy.gallbladder import gallbladder
from viscera.anatomy.landscape import Landscape, landscape
from viscera.anatomy.liver import in_fossa, liver
from viscera.anatomy.pad import pad
from viscera.anatomy.polyps import Polyps, with_polyps
from viscera.anatomy.sheet import Sheet, sheet
from viscera.anatomy.torso import spine, torso

__all__ = [
    "Landscape",
    "Polyps",
    "Sheet",
    "colon",
    "gallbladder",
    "in_fossa",
    "landscape",
    "liver",
    "pad",
    "sheet",
    "spine",
    "torso",
    "with_polyps",
]
