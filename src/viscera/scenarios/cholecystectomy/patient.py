"""A patient by seed: where duct and arteries run, how long the duct is, how thick the wall, how inflamed the bed.

Axes: x from the common duct to the fundus, y away from the surgeon, z up, out of the liver; the liver's underside is at
z = 0. Lengths of a real field are about half as long again: the gall bladder is a small one, 46 mm long (7 to 10 cm are
usual), so that a lattice of 3 mm can carry all of it in real time. Duct and arteries lie in a fold of fat under
peritoneum, Calot's triangle, that hangs between the common duct and the neck.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Line = NDArray[np.float64]
"""Points [m], shape (points, 3), from where the tube is fed."""

BED_TOP = 0.012
"""Where the bed ends and the gall bladder begins [m]."""
LIVER_TOP = 0.006
"""[m]"""
NECK = (-0.0125, 0.0, 0.0180)
"""Where the cystic duct leaves the gall bladder [m]."""
COMMON_HEIGHT = 0.0105
"""Of the common duct's axis [m]."""
HALF_WIDTH = 0.0285
"""Of the field, along y [m]."""
SECOND_ARTERY = 0.35
"""Share of people with two cystic arteries; 15 to 25 % are reported, more here so that trainees meet it."""
ARTERIES_APART = 0.0095
"""Where they begin [m]: with the way they bend, so far that fat lies between them for most of their way, in a
lattice of 3 mm too. Nearer ones would be one band, which nobody can part."""
LONG_DUCT, SHORT_DUCT = 0.0225, 0.0165
"""From neck to common duct along x, on average and where it is short [m]."""


@dataclass(frozen=True, eq=False)
class Patient:
    """Made by `draw_patient`."""

    duct: Line
    """Cystic duct, from the common duct to the neck."""
    common: Line
    """Common duct, from one side of the field to the other."""
    arteries: tuple[Line, ...]
    """Cystic arteries, from the hepatic artery to the gall bladder: one or two."""
    short_duct: bool
    thick_wall: bool
    inflamed: bool
    size: float
    """Of the gall bladder, over the usual one."""

    @property
    def words(self) -> str:
        """What is unusual about this patient, for whoever teaches."""
        found = [f"{len(self.arteries)} cystic arteries"] if len(self.arteries) > 1 else []
        found += ["a short duct"] * self.short_duct + ["a thick wall"] * self.thick_wall
        return ", ".join(found + ["an inflamed bed"] * self.inflamed) or "usual anatomy"


def draw_patient(seed: int) -> Patient:
    """The same seed gives the same patient."""
    rng = np.random.default_rng([seed, 21])
    short = bool(rng.random() < 0.3)
    reach = (SHORT_DUCT if short else LONG_DUCT) * rng.uniform(0.95, 1.05)
    x, junction = NECK[0] - reach, rng.uniform(-0.0075, -0.0045)
    duct = np.array([(x, junction, COMMON_HEIGHT), (0.5 * (x + NECK[0]), 0.6 * junction, 0.0145), NECK])
    common = np.array([(x, -HALF_WIDTH, COMMON_HEIGHT), (x, junction, COMMON_HEIGHT), (x, HALF_WIDTH, COMMON_HEIGHT)])
    origin = rng.uniform(0.0105, 0.0135)
    two = bool(rng.random() < SECOND_ARTERY)
    arteries = [_artery(x, origin, out=0.002 if two else 0.004, end=(0.0020, 0.0090, 0.0205))]
    if two:
        arteries.append(_artery(x, origin + ARTERIES_APART, out=0.008, end=(0.0130, 0.0095, 0.0185)))
    return Patient(
        duct, common, tuple(arteries), short, bool(rng.random() < 0.3), bool(rng.random() < 0.3),
        float(rng.uniform(0.94, 1.06)),
    )  # fmt: skip


def _artery(x: float, y: float, *, out: float, end: tuple[float, float, float]) -> Line:
    """Out of the fat beside the common duct to the side of the gall bladder, bent by so much away from the surgeon."""
    middle = (0.5 * (x + end[0]), 0.5 * (y + end[1]) + out, 0.5 * (COMMON_HEIGHT + end[2]) + 0.001)
    return np.array([(x + 0.0015, y, COMMON_HEIGHT), middle, end])
