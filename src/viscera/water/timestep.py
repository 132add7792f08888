"""A step of time that follows the flow: as long as speed and force allow, never longer than `params.dt`.

    dt = min(dt_max, 0.4 l/(c + v), 0.25 √(R/2 / a))          v, a: the fastest particle and the strongest push

with c and l as in params.py; viscosity and surface tension do not change with the flow, so they are in dt_max. The
maxima are taken after each step and give the next one. Maxima are exact in any order, so results do not depend on
threads.
"""

from __future__ import annotations

from dataclasses import replace

import warp as wp

from viscera.device import BLOCK, Stage
from viscera.neighbors.cells import GridView, sorted_count
from viscera.water.params import ARTIFICIAL, FORCE, largest_step
from viscera.water.periodic import front
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

BLOCK_SIZE = wp.constant(BLOCK)


@wp.kernel
def find_maxima(
    first: int,
    # params
    grid: GridView,
    # in
    velocity: wp.array(dtype=wp.vec3),
    rate: wp.array(dtype=wp.vec4),
    # out
    maxima_out: wp.array(dtype=wp.vec2),
):
    """Largest speed and acceleration of each block of particles."""
    b = first + wp.tid()
    fastest = float(0.0)
    strongest = float(0.0)
    for s in range(b * BLOCK_SIZE, wp.min((b + 1) * BLOCK_SIZE, sorted_count(grid))):
        fastest = wp.max(fastest, wp.length(velocity[s]))
        strongest = wp.max(strongest, wp.length(front(rate[s])))
    maxima_out[b] = wp.vec2(fastest, strongest)


@wp.kernel
def choose_step(
    # params
    longest: float,
    courant_length: float,
    sound: float,
    force_length: float,
    # in
    blocks: int,
    maxima: wp.array(dtype=wp.vec2),
    # out
    live_out: wp.array(dtype=Live),
):
    fastest = float(0.0)
    strongest = float(0.0)
    for b in range(blocks):
        fastest = wp.max(fastest, maxima[b][0])
        strongest = wp.max(strongest, maxima[b][1])
    dt = longest
    if sound + fastest > 0.0:
        dt = wp.min(dt, courant_length / (sound + fastest))
    if strongest > 0.0:
        dt = wp.min(dt, wp.sqrt(force_length / strongest))
    live_out[0].dt = dt


def adapt_step(stage: Stage, fluid: Fluid) -> None:
    """Sets dt of the next step."""
    p, maxima = fluid.params, fluid.extra["maxima"]
    still = replace(p, fastest=0.0)
    longest = min(p.dt, largest_step(still))
    sound = p.sound_speed * (1.0 + ARTIFICIAL * p.alpha) if p.compressible else 0.0
    half = 0.5 * p.radius
    size = half if p.compressible else p.spacing
    blocks = len(maxima)
    stage.launch(find_maxima, blocks, [fluid.grid.view, fluid.velocity, fluid.rate, maxima], block=1)
    choose = [longest, p.courant * size, sound, FORCE**2 * size, blocks, maxima, fluid.live]
    stage.once(lambda: wp.launch(choose_step, dim=1, inputs=choose, device=fluid.device.warp))
