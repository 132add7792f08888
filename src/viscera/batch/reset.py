"""How worlds begin again: some of them, by a mask, each with materials of its own.

What an episode of a world is like follows from the world's seed and the number of the episode alone, whichever worlds
are reset with it.
"""

from __future__ import annotations

import warp as wp

from viscera.batch.kit import Hands, Kit
from viscera.batch.worlds import Worlds
from viscera.tissue.kernels import LIVE_BULK, LIVE_FLOATS, LIVE_STIFFNESS
from viscera.tissue.touch_kernels import PART_FLOATS, ROWS

wp.set_module_options({"enable_backward": False})

_FLOATS = wp.constant(LIVE_FLOATS)
_ROWS = wp.constant(ROWS)


@wp.struct
class Begin:
    """How every world begins, and how they differ."""

    position: wp.array(dtype=wp.float32)
    velocity: wp.array(dtype=wp.float32)
    live: wp.array(dtype=wp.float32)
    """Before the factors."""
    anatomies: int
    softest: float
    stiffest: float
    """Range of the factor on Young's modulus."""
    smoothest: float
    roughest: float
    """Range of the factor on friction."""


@wp.struct
class Episodes:
    """Of each world."""

    seed: wp.array(dtype=wp.int32)
    number: wp.array(dtype=wp.int32)
    """How often it was reset."""
    born: wp.array(dtype=wp.int32)
    """Its clock as this one began."""
    stiffness: wp.array(dtype=wp.float32)
    """Times the tissue's Young's modulus."""
    friction: wp.array(dtype=wp.float32)
    """Times the tools'."""


@wp.func
def put_on(begin: Begin, episodes: Episodes, world: int, worlds: Worlds, hands: Hands):
    """The factors take effect."""
    factor = wp.float64(episodes.stiffness[world])
    for number in range(_FLOATS):
        worlds.live[world, number] = begin.live[number]
    worlds.live[world, LIVE_STIFFNESS] = float(wp.float64(begin.live[LIVE_STIFFNESS]) * factor)
    worlds.live[world, LIVE_BULK] = float(wp.float64(begin.live[LIVE_BULK]) * factor)
    hands.friction[world] = wp.float64(episodes.friction[world])
    # Burnt tissue stays as it is until it is burnt further.
    if worlds.springs[world] < begin.anatomies:
        worlds.springs[world] = worlds.anatomy[world]


@wp.kernel
def put_on_materials(first: int, begin: Begin, episodes: Episodes, worlds: Worlds, hands: Hands):
    put_on(begin, episodes, first + wp.tid(), worlds, hands)


@wp.kernel
def reset_masses(
    first: int,
    # params
    begin: Begin,
    threads: int,
    # in
    mask: wp.array(dtype=wp.int32),
    # out
    worlds: Worlds,
):
    """Masses of the worlds in the mask are where they began; `threads` share a world."""
    index = first + wp.tid()
    world = index // threads
    if mask[world] != 0:
        for place in range(index % threads, begin.velocity.shape[0], threads):
            worlds.velocity[world, place] = begin.velocity[place]
            worlds.position[world, 0, place] = begin.position[place]
            worlds.position[world, 1, place] = begin.position[place]


@wp.kernel
def reset_worlds(
    first: int,
    # params
    kit: Kit,
    begin: Begin,
    # in
    mask: wp.array(dtype=wp.int32),
    # out
    episodes: Episodes,
    worlds: Worlds,
    hands: Hands,
):
    """Another episode of the worlds in the mask: materials, tools outside, nothing felt."""
    world = first + wp.tid()
    if mask[world] == 0:
        return
    episodes.number[world] = episodes.number[world] + 1
    episodes.born[world] = worlds.clock[world, 0]
    state = wp.rand_init(episodes.seed[world], episodes.number[world])
    worlds.anatomy[world] = wp.min(int(wp.randf(state) * float(begin.anatomies)), begin.anatomies - 1)
    episodes.stiffness[world] = begin.softest + wp.randf(state) * (begin.stiffest - begin.softest)
    episodes.friction[world] = begin.smoothest + wp.randf(state) * (begin.roughest - begin.smoothest)
    put_on(begin, episodes, world, worlds, hands)
    worlds.springs[world] = worlds.anatomy[world]
    worlds.broken[world, 0] = 0
    for row in range(_ROWS):
        worlds.tools[world, row * PART_FLOATS] = 0.0
    for tool in range(kit.tools):
        tip = kit.home[tool]
        turn = kit.home_turn[tool]
        # Its bars and how it is held follow as it comes in.
        hands.inside[world, tool] = 0
        hands.grip[world, tool] = wp.float64(0.0)
        hands.jaws[world, tool] = wp.float64(0.0)
        hands.tip[world, tool] = tip
        hands.turn[world, tool] = turn
        for number in range(9):
            hands.bound[world, tool, number] = wp.float64(0.0)
        for number in range(3):
            hands.pose[world, tool, number] = float(tip[number])
        for number in range(4):
            hands.pose[world, tool, 3 + number] = float(turn[number])
        for number in range(6):
            hands.work[world, tool, number] = wp.float64(0.0)
            hands.last[world, tool, number] = 0.0
            hands.mean[world, tool, number] = 0.0
            hands.strongest[world, tool, number] = 0.0
        for number in range(2):
            hands.peak[world, tool, number] = 0.0
