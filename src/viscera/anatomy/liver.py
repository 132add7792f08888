"""An adult liver by rule: four lobes joined, the impressions of its neighbours carved out.

Axes are those of a patient on the table: x to the patient's left, y towards the head, z to the front (up). The origin
is at the porta hepatis. Sizes: 20 to 22.5 cm wide, 15 to 17.5 cm high, 10 to 12.5 cm deep, 1.4 to 1.6 kg in men (Gray,
Anatomy of the Human Body, 1918, "The Liver"). The places of the parts are ours, set by eye until the shape was
that of an anatomy atlas: a thick domed right lobe, a left lobe that tapers, a sharp lower rim, and underneath the
beds of stomach, right kidney, vena cava and gall bladder.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from viscera.anatomy.implicit import Body, Ellipsoid, of_volume, polygonise, rotation, waves
from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh

VOLUME = 1.5e-3
"""Of an adult's liver [m³]; 1.2 to 1.8 are common."""
VOLUMES = (0.1e-3, 4e-3)
"""From a newborn's to a very large one [m³]."""

EDGE = 0.004
"""Of the triangles [m]; gives about 7 500 vertices."""

UNDULATION = 0.0006
"""Root mean square height of the surface's waves [m]; tuned for appearance."""
WAVE_LENGTHS = (0.03, 0.07)
"""[m]"""

CREASE_DEPTH = 0.001
"""Of the line along which the falciform ligament leaves the front [m]; tuned for appearance."""
CREASE_WIDTH = 0.006
"""[m]"""

FOSSA_CENTRE = (-0.030, -0.038, 0.008)
"""Middle of the gall bladder's bed [m]."""
FOSSA_TURN = (-48.0, 0.0, -15.0)
"""Of its long axis y [degrees]: from the rim in front, where the fundus looks out, up and back to the porta."""

_STANDARD = 0
"""Seed of the waves when no individual is asked for."""


def _cm(
    centre: tuple[float, float, float],
    radii: tuple[float, float, float],
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0),
    blend: float = 1.0,
) -> Ellipsoid:
    """An ellipsoid in centimetres, as the table below is easier to read in them."""
    x, y, z = (0.01 * one for one in centre)
    a, b, c = (0.01 * one for one in radii)
    return Ellipsoid((x, y, z), (a, b, c), turn, 0.01 * blend)


def _bed(along: float, radii: tuple[float, float, float], tilt: float) -> Ellipsoid:
    """The impression of a part of the gall bladder, `along` its axis [m], `tilt` [degrees] from its bend."""
    x, y, z = (rotation(FOSSA_TURN) @ (0.0, along, 0.001) + np.asarray(FOSSA_CENTRE)).tolist()
    a, b, c = radii
    return Ellipsoid((x, y, z), (a, b, c), (FOSSA_TURN[0] + tilt, *FOSSA_TURN[1:]), 0.008)


LOBES = (
    _cm((-4.6, 0.6, -0.6), (5.9, 7.2, 6.4)),  # right lobe, under the dome of the diaphragm
    _cm((-5.8, -4.4, 0.4), (4.3, 5.6, 4.6), (0.0, 0.0, -8.0), 3.0),  # its lower tip
    _cm((0.8, 1.2, 2.0), (6.4, 5.4, 4.2), (0.0, 0.0, 14.0), 3.0),  # middle, with the quadrate lobe
    _cm((6.0, 3.1, 1.9), (6.4, 3.5, 2.4), (0.0, 14.0, 13.0), 3.0),  # left lobe
    _cm((-0.2, 1.2, -2.2), (1.7, 3.0, 2.0), (0.0, 0.0, 10.0), 1.0),  # caudate lobe
)
IMPRESSIONS = (
    _cm((6.5, -13.5, -9.0), (17.3, 17.3, 17.3), blend=1.2),  # the whole underside
    _cm((8.8, 0.6, -4.0), (6.4, 5.2, 5.0), (0.0, 0.0, 20.0), 1.5),  # stomach
    _cm((3.6, 2.0, -8.4), (4.6, 14.0, 4.6), blend=1.5),  # spine
    _cm((-0.6, 4.0, -4.9), (1.3, 14.0, 1.3), blend=0.8),  # vena cava
    _cm((-4.9, -6.0, -6.0), (3.6, 5.5, 3.6), (20.0, 0.0, 0.0), 1.5),  # right kidney
    _bed(-0.013, (0.019, 0.026, 0.018), -7.0),  # gall bladder: body
    _bed(0.015, (0.011, 0.019, 0.011), 8.0),  # and infundibulum
    _cm((2.3, -3.6, 1.6), (0.8, 3.0, 4.0), (-20.0, 0.0, -8.0), 1.4),  # notch of the round ligament
    _cm((0.5, -1.0, -0.2), (2.6, 0.7, 0.8), (0.0, 0.0, 10.0), 1.0),  # porta hepatis
)


def liver(volume: float = VOLUME, edge: float = EDGE, seed: int | None = None) -> TriangleMesh:
    """A closed liver of `volume` [m³] with triangles of about `edge` [m].

    Without a seed it is always the same one; each seed gives another individual.
    """
    if not (math.isfinite(volume) and VOLUMES[0] <= volume <= VOLUMES[1]):
        raise InputError(
            f"volume = {volume:g} m³ is not a liver's.", f"Allowed are {VOLUMES[0]:g} to {VOLUMES[1]:g} m³."
        )
    rng = np.random.default_rng(_STANDARD if seed is None else seed)
    body = Body(LOBES, IMPRESSIONS)
    if seed is not None:
        body = body.varied(rng, shift=0.002, stretch=0.03)
    state = rng.bit_generator.state

    def field(points: FloatArray) -> FloatArray:
        rng.bit_generator.state = state  # the same waves at every call
        return body.value(points) + waves(points, rng, UNDULATION, WAVE_LENGTHS) + _crease(points)

    # The parts are placed for a liver of about the standard volume, so edges are scaled like it.
    return of_volume(polygonise(field, *body.bounds, edge * (VOLUME / volume) ** (1.0 / 3.0), "liver"), volume)


def _crease(points: FloatArray) -> FloatArray:
    """How far the line of the falciform ligament lies below the surface around it; on the front only."""
    off = points[:, 0] - 0.021 + 0.12 * points[:, 1] + 1.6 * points[:, 1] ** 2
    front = np.clip(points[:, 2] / 0.02, 0.0, 1.0)
    return CREASE_DEPTH * front * np.exp(-((off / CREASE_WIDTH) ** 2))


def in_fossa(gallbladder: TriangleMesh) -> TriangleMesh:
    """A gall bladder, made by `gallbladder()`, brought into its bed under a liver of standard size."""
    turned = gallbladder.vertices @ rotation(FOSSA_TURN).T
    return replace(gallbladder, vertices=turned + np.asarray(FOSSA_CENTRE))
