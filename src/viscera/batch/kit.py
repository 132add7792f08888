"""What tools and hands of many worlds are: the arrays that hands.py and keeping.py compute with."""

from __future__ import annotations

import warp as wp

from viscera.instruments.bars import MOST_BARS

Ends = wp.types.matrix(shape=(2 * MOST_BARS, 3), dtype=wp.float64)
"""Both ends of each bar's axis [m]."""


@wp.struct
class Kit:
    """What the tools are; the same in every world."""

    tools: int
    substeps: int
    """Of the lattice, per tick."""
    home: wp.array(dtype=wp.vec3d)
    home_turn: wp.array(dtype=wp.vec4d)
    """Where a tool waits [m], and how it is turned there."""
    local: wp.array2d(dtype=wp.vec3d)
    """Both ends of each bar's axis, in the tool's own frame [m]."""
    swing: wp.array2d(dtype=wp.float64)
    """By which each bar stands open at grip 0, about y through its start [rad]: jaws."""
    bars: wp.array(dtype=wp.int32)
    radius: wp.array2d(dtype=wp.float64)
    """Of each bar [m]."""
    thinnest: wp.array(dtype=wp.float64)
    """[m]"""
    friction: wp.array(dtype=wp.float64)
    length: wp.array(dtype=wp.float64)
    """From the tip to the handle [m]."""
    trocar: wp.array(dtype=wp.vec3d)
    """[m]"""
    through: wp.array(dtype=wp.int32)
    """Whether it has one."""
    follow: wp.array(dtype=wp.float64)
    """Of the way to its hand, what a tool goes in a tick."""
    low: wp.vec3d
    high: wp.vec3d
    """The room that no tip leaves [m]."""
    origin: wp.vec3d
    """Of the lattice [m]."""
    held: wp.array3d(dtype=wp.float64)
    """Distance from what holds fast, on a grid (world/floor.py) [m]; one element where nothing does."""
    held_origin: wp.vec3d
    held_spacing: wp.float64
    """[m]"""
    held_top: wp.float64
    """No tool above this is held back [m]."""
    table: wp.float64
    """Height under which no tool goes [m]."""


@wp.struct
class Hands:
    """Of each world and tool: what the hand asks for, where the tool is, what it feels."""

    asked: wp.array3d(dtype=wp.float64)
    """Position [m] and quaternion x, y, z, w that the hand asks for."""
    active: wp.array2d(dtype=wp.int32)
    """Whether it is in the body."""
    grip: wp.array2d(dtype=wp.float64)
    """How far the hand closes the handle, 0 to 1."""
    jaws: wp.array2d(dtype=wp.float64)
    """How far the jaws are closed: they follow."""
    direct: wp.array(dtype=wp.int32)
    """One number: whether tools follow without lag."""
    friction: wp.array(dtype=wp.float64)
    """Times that of the tools, in each world."""
    inside: wp.array2d(dtype=wp.int32)
    """Whether it was in the body in the last tick."""
    tip: wp.array2d(dtype=wp.vec3d)
    turn: wp.array2d(dtype=wp.vec4d)
    """How it is turned: as it is held, or with that spin through its trocar."""
    held: wp.array2d(dtype=wp.vec4d)
    """How far it has followed how its hand is turned."""
    ends: wp.array2d(dtype=Ends)
    """Its bars as the last tick ended [m]."""
    bound: wp.array3d(dtype=wp.float64)
    """`Holding.state`: direction of the force, 1 − q, q by force alone if tissue is near, direction of the torque, what
    of a slide is not free."""
    way: wp.array2d(dtype=wp.vec3d)
    """That its tip went in the last tick [m]."""
    work: wp.array3d(dtype=wp.float64)
    """`Passive.state`: E and E_most [J], and how it was turned a tick ago."""
    pose: wp.array3d(dtype=wp.float32)
    """Where the tool is: position [m] and quaternion."""
    last: wp.array3d(dtype=wp.float32)
    """Force [N] and torque about the tip [N·m] in the last tick."""
    mean: wp.array3d(dtype=wp.float32)
    """Over the ticks of the last action."""
    peak: wp.array3d(dtype=wp.float32)
    """Largest force [N] and largest torque [N·m] of a tick in it."""
    strongest: wp.array3d(dtype=wp.float32)
    """Force [N] and torque [N·m] of the tick in it with the largest force."""
