"""A hand gets back no more work than it put in: world/passive.py, for one tool of one world."""

from __future__ import annotations

import warp as wp

from viscera.batch.kit import Hands
from viscera.batch.turns import ONE, TWO, ZERO
from viscera.world import passive

wp.set_module_options({"enable_backward": False})

_LAST, _LEAST = wp.constant(wp.float64(passive.LAST)), wp.constant(wp.float64(passive.LEAST))


@wp.func
def turned_since(hands: Hands, world: int, tool: int):
    """Axis times angle of its small turn in the last tick [rad]."""
    x = hands.work[world, tool, 2]
    y = hands.work[world, tool, 3]
    z = hands.work[world, tool, 4]
    w = hands.work[world, tool, 5]
    now = hands.turn[world, tool]
    twice = TWO
    if w * now[3] + x * now[0] + y * now[1] + z * now[2] < ZERO:
        twice = -TWO
    return wp.vec3d(
        twice * (w * now[0] - x * now[3] + y * now[2] - z * now[1]),
        twice * (w * now[1] - y * now[3] + z * now[0] - x * now[2]),
        twice * (w * now[2] - z * now[3] + x * now[1] - y * now[0]),
    )


@wp.func
def felt_share(hands: Hands, world: int, tool: int, force: wp.vec3d, torque: wp.vec3d):
    """g of this tick, for what tissue does to the tool in it: `Passive.share`."""
    turn = turned_since(hands, world, tool)
    for axis in range(4):
        hands.work[world, tool, 2 + axis] = hands.turn[world, tool][axis]
    share = wp.float64(1.0)
    if wp.length_sq(force) == ZERO and wp.length_sq(torque) == ZERO:
        hands.work[world, tool, 0] = ZERO
        hands.work[world, tool, 1] = ZERO
    else:
        work = -wp.dot(force, hands.way[world, tool]) - wp.dot(torque, turn)
        energy = hands.work[world, tool, 0]
        most = hands.work[world, tool, 1]
        if most >= _LEAST:
            share = wp.min(ONE, energy / (_LAST * most))
        if work < ZERO and energy > ZERO:
            share = wp.min(share, energy / -work)
        energy = energy + share * work
        if most >= _LEAST:
            energy = wp.max(energy, ZERO)
        hands.work[world, tool, 0] = energy
        hands.work[world, tool, 1] = wp.max(most, energy)
    return share
