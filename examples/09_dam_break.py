"""A dam breaks: water of smoothed particles in a tank of wall particles, in steps far longer than sound allows.

A column 5.7 cm wide and twice as high falls to the side. Where its front is, and when, Martin and Moyce measured in
1952; ours is checked against one of their points, and against what must not happen: water outside, water compressed.

    python examples/09_dam_break.py [--across 16] [--picture dam.png]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from viscera import open_device, water
from viscera.errors import VisceraError

WIDTH = 0.05715
"""a, 2¼ inches [m]"""
TIME, FRONT = 2.51, 3.00
"""T = t √(2g/a) and z/a: Martin and Moyce 1952, table 2, doi:10.1098/rsta.1952.0006."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--across", type=int, default=16, help="particles across the column")
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args()
    spacing = WIDTH / chosen.across
    lower, upper = (0.0, 0.0), (5.0 * WIDTH, 2.5 * WIDTH)
    duration = TIME * math.sqrt(WIDTH / (2.0 * 9.81))
    steps = 400 * chosen.across // 16
    params = water.FluidParams(
        spacing=spacing, lower=lower, upper=upper, dt=duration / steps, dimension=2, equation="incompressible"
    )
    walls = water.box_walls(lower, upper, spacing, params.radius, open_sides=("+y",))
    device = open_device()
    column = water.block((0.0, 0.0), (WIDTH, 2.0 * WIDTH), spacing)
    fluid = water.make(params, column, walls=walls, device=device)
    program = device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))
    densest = 0.0
    for _ in range(steps):
        program.run()
        densest = max(densest, water.density_error(fluid)[0])
    x = water.particles(fluid)["position"]
    front = (np.sort(x[x[:, 1] < 2.0 * spacing, 0])[-2] + 0.5 * spacing) / WIDTH
    print(
        f"{len(x)} particles, {steps} steps of {1e3 * params.dt:.2f} ms: front at {front:.2f} a, measured {FRONT:.2f}"
    )
    print(f"mean excess of density at most {100 * densest:.2f} %")
    if chosen.picture:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
        axes.scatter(*walls.T, s=4, c="0.5")
        axes.scatter(x[:, 0], x[:, 1], s=8)
        axes.set_aspect("equal")
        figure.savefig(chosen.picture)
    assert (x[:, 0] > 0.0).all() and (x[:, 0] < upper[0]).all() and (x[:, 1] > 0.0).all(), "water left the tank"  # noqa: PT018
    assert abs(front / FRONT - 1.0) < 0.15, "the front is not where it was measured"
    assert densest < 0.01, "the water is compressed"
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except VisceraError as error:
        raise SystemExit(str(error)) from None
