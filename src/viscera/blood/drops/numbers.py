"""What the kernels of the drops share: live numbers, what the hands do, what is owed."""

from __future__ import annotations

import warp as wp

from viscera.blood.drops.impact import ImpactNumbers

wp.set_module_options({"enable_backward": False})


@wp.struct
class DropNumbers:
    """Live numbers; from an array, as scalars are frozen when a program is recorded."""

    dt: float
    exact_dt: wp.float64
    """The same number, for sums over many steps."""
    gravity: wp.vec3
    thickness: float
    """6 / (π h²) · 1 pL: thickness per density and picolitre [m]."""
    hanging: float
    overflow: float
    """Thicknesses above which film lets go [m]."""
    share: float
    """1 − exp(−dt/τ): part of what is too much that lets go in one step."""
    crowded: float
    """Part of the film's room above which it hangs on less."""
    fullest: float
    """Part of the film's room that landing drops fill."""
    lower: wp.vec3
    upper: wp.vec3
    """Corners of the scene's box [m]."""
    volume: int
    """Of a drop that a nozzle lets out [pL]."""
    rinse: wp.vec4
    """What a nozzle lets out: concentrations."""
    impact: ImpactNumbers
    spread: float
    """Of a nozzle's jet: sideways speed over forward speed."""
    seed: int


@wp.struct
class Tools:
    """What the hands do in this step."""

    suction: wp.vec3
    """Where the tip is [m]."""
    suction_reach: float
    """[m]; 0: off."""
    suction_rate: wp.float64
    """[pL/s]"""
    nozzle: wp.vec3
    """Its outlet [m], outside tissue."""
    nozzle_velocity: wp.vec3
    """Of the jet [m/s]."""
    nozzle_rate: wp.float64
    """[pL/s]"""


@wp.struct
class Purse:
    """What is owed and what has been moved, one entry each."""

    suck: wp.float64
    """What suction may still take [pL]; below 0 where a step took a little more than its due."""
    rinse: wp.float64
    """What the nozzle still owes [pL]."""
    rinsed: wp.int64
    """What came out of the nozzle so far [pL]."""
    jets: int
    """Drops that it lets out in this step."""
    ring: int
    """Suction takes all that is nearer than this ring around its tip, see `drop_tools`."""
    part: float
    """And of this ring so much, drawn by lot."""
    step: int
