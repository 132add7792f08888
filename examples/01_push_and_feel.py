"""Push a probe into soft tissue and read the force: the shortest way from Python to a world.

A sphere meets more tissue the deeper it goes, so the force grows faster than the depth; for a half-space and small
depths Hertz gives F = 4/3·E/(1 − ν²)·√R·depth^1.5, which the first millimetres follow.
"""

from __future__ import annotations

import viscera
from viscera.inputs import ToolInput
from viscera.scenarios.palpation import PROBE_RADIUS

TOP = 0.032  # height of the block [m]
YOUNG = 3_000.0  # [Pa]
POISSON = 0.4


def press(world, depth: float) -> float:
    """Hold the probe `depth` [m] below the surface for half a second; the force along z in the end [N]."""
    for _ in range(500):
        world.apply(ToolInput(0, (0.001, 0.001, TOP + PROBE_RADIUS - depth)))
        world.step()
    return world.tools[0].force[2]


def main() -> None:
    world = viscera.make("palpation", device="cpu", seed=1, parameters={"stiffness": YOUNG / 1e3})
    forces = {}
    for depth in (0.002, 0.003, 0.004):
        forces[depth] = press(world, depth)
        hertz = 4 / 3 * YOUNG / (1 - POISSON**2) * PROBE_RADIUS**0.5 * depth**1.5
        print(f"{1e3 * depth:.0f} mm deep: {1e3 * forces[depth]:.1f} mN, Hertz {1e3 * hertz:.1f} mN")
        assert 0.7 * hertz < forces[depth] < 1.2 * hertz
    vertices = world.snapshot().arrays["tissue"]
    middle = vertices[(abs(vertices[:, :2]).max(axis=1) < 0.01) & (vertices[:, 2] > TOP / 2)]
    dent = TOP - middle[:, 2].min()
    print(f"deepest point of the dent: {1e3 * dent:.1f} mm")
    world.close()

    assert forces[0.002] < forces[0.003] < forces[0.004]
    assert 0.003 < dent < 0.005
    print("ok: the force follows Hertz, and the tissue shows the dent")


if __name__ == "__main__":
    main()
