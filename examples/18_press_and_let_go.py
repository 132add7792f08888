"""Press a probe into tissue and let go: what the hand puts in, and what it gets back.

Presses the probe of `palpation` into the block along its normal, slides aside and lifts, and counts the hand's work
against the force that it feels. Tissue gives back less than was put in, and no force stays.

    python examples/18_press_and_let_go.py [--depth 6] [--device cpu]
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from numpy.typing import NDArray

import viscera
from viscera.inputs import ToolInput

SPEED = 0.02
"""Of the hand [m/s]."""


def hand(place: NDArray[np.float64]) -> ToolInput:
    x, y, z = place.tolist()
    return ToolInput(0, (x, y, z), direct=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=float, default=6.0, help="how deep to press [mm]")
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()

    world = viscera.make("palpation", device=chosen.device, seed=1)
    radius = world.hands[0].bars.radii[0]
    top = float(world.organs[0].body.mesh.bounds[1][2]) + radius
    depth = chosen.depth * 1e-3
    corners = np.array(
        [(0.0, 0.0, top + 0.001), (0.0, 0.0, top - depth), (0.01, 0.0, top - depth), (0.01, 0.0, top + 0.001)]
    )
    world.apply(hand(corners[0]))
    world.step(200)

    work, given, strongest = 0.0, 0.0, 0.0
    for start, end in itertools.pairwise(corners):
        ticks = max(1, round(float(np.linalg.norm(end - start)) / SPEED * 1e3))
        for tick in range(1, ticks + 1):
            before = np.array(world.tools[0].position)
            world.apply(hand(start + tick / ticks * (end - start)))
            world.step()
            force = np.array(world.tools[0].force)
            done = -float(force @ (np.array(world.tools[0].position) - before))
            work, given = work + max(done, 0.0), given + max(-done, 0.0)
            strongest = max(strongest, float(np.linalg.norm(force)))
    world.step(50)

    print(f"strongest force {strongest:.3f} N, {1e6 * work:.0f} µJ put in, {1e6 * given:.0f} µJ given back")
    assert strongest > 0.02
    assert given < work, "tissue gave back more than was put in"
    assert world.tools[0].force == (0.0, 0.0, 0.0), "a force stayed after the probe had left"
    world.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
