"""What flows in flows out: a stream between a nozzle and a drain, and the account of its water.

A nozzle lets water into the upper end of a tilted channel, a drain takes it away at the lower end. Two things must
hold: the nozzle gives velocity times width, and what came in is what went out and what is there, to the particle. When
the stream has found its level, as much leaves as comes.

    python examples/10_river_balance.py [--seconds 2.5] [--picture river.png]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from viscera import open_device, water
from viscera.errors import VisceraError
from viscera.water.state import CREATED, DRAINED, LOST, REFUSED

LENGTH, HEIGHT, SPACING = 0.30, 0.08, 0.004
"""[m]"""
SPEED, HALF_WIDTH = 0.5, 0.012
"""Of the stream that comes in [m/s], [m]."""
TILT = math.radians(8.0)
STEP = 5e-4
"""[s]"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args()
    lower, upper = (0.0, 0.0), (LENGTH, HEIGHT)
    params = water.FluidParams(
        spacing=SPACING, lower=lower, upper=upper, dt=STEP, dimension=2, equation="incompressible",
        gravity=(9.81 * math.sin(TILT), -9.81 * math.cos(TILT), 0.0),
    )  # fmt: skip
    walls = water.box_walls(lower, upper, SPACING, params.radius, open_sides=("+y",))
    device = open_device()
    first = water.block((0.10, 0.0), (0.14, 2 * SPACING), SPACING)
    fluid = water.make(params, first, walls=walls, capacity=len(walls) + 2_500, device=device)
    emitter = water.add_emitter(fluid, (3 * SPACING, 2 * SPACING + HALF_WIDTH), (SPEED, 0.0), HALF_WIDTH)
    water.add_drain(fluid, box=((LENGTH - 0.03, -HEIGHT), (LENGTH + HEIGHT, HEIGHT)))
    program = device.record(lambda stage: water.step(stage, fluid), work=water.work(fluid))

    steps = round(chosen.seconds / STEP)
    account: list[tuple[int, int, int]] = []
    for number in range(steps):
        program.run()
        if number % 100 == 99:
            device.synchronize()
            counted = fluid.report.numpy()
            came = int(counted[CREATED]) - len(first)
            # Walls are particles too; what the drain marked in this step is counted as gone in the next.
            account.append((came, int(counted[DRAINED]), int(fluid.count.numpy()[0]) - len(walls)))
    came, went, there = account[-1]
    report = fluid.report.numpy()
    half = account[len(account) // 2]
    leaving = (went - half[1]) / (came - half[0])
    due = len(emitter.layer) * SPEED * steps * STEP / SPACING
    print(f"{came} particles came in ({due:.0f} by velocity times width), {went} went out, {there} are there")
    print(f"in the second half {100 * leaving:.0f} % of what came left")
    if chosen.picture:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
        axes.scatter(*walls.T, s=4, c="0.5")
        axes.scatter(*water.particles(fluid)["position"][:, :2].T, s=8)
        axes.set_aspect("equal")
        figure.savefig(chosen.picture)
    assert report[LOST] == 0, "a particle is no longer finite"
    assert report[REFUSED] == 0, "there was no room for a layer"
    assert abs(came - due) <= 2 * len(emitter.layer), "the nozzle gives more or less than velocity times width"
    assert all(a + len(first) == b + c for a, b, c in account), "water appeared or vanished"
    assert 0.8 < leaving < 1.2, "the stream has not found its level"
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except VisceraError as error:
        raise SystemExit(str(error)) from None
