"""Water that is fine where somebody looks: a seeded gaze wanders over a wave tank, and nothing is lost on the way.

Particles split where the gaze is and merge where it has left. Checked: their mass is kept exactly, the small ones are
where the gaze is, and there are far fewer particles than if all were small.

    python examples/16_fine_where_you_look.py [--seconds 1.0] [--seed 3]
"""

from __future__ import annotations

import argparse

import numpy as np

import viscera
from viscera.errors import VisceraError
from viscera.water import adaptive


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--detail", type=float, default=0.1, help="times 10 000 particles")
    chosen = parser.parse_args()
    world = viscera.make("waves", seed=chosen.seed, detail=chosen.detail)
    refined = world.system("water").holds
    fluid = refined.fluid
    before, counts = adaptive.quanta(fluid), []
    for tick in range(round(1000 * chosen.seconds)):
        for one in world.script(tick):
            world.apply(one)
        world.step()
        if tick % 16 == 15:
            counts.append(int(fluid.count.numpy()[0]))
    world.wait()
    count = int(fluid.count.numpy()[0])
    small = fluid.extra["level"].numpy()[:count] > 0
    spread = fluid.position.numpy()[:count][:, 0]
    print(f"{count} particles, {small.sum()} small; {np.mean(counts):.0f} on average, {before} if all were small")
    print(
        f"small ones lie at x = {spread[small].mean():.2f} ± {spread[small].std():.2f} m of {fluid.params.upper[0]} m"
    )
    assert adaptive.quanta(fluid) == before, "mass was lost"
    assert spread[small].std() < 0.8 * spread.std(), "small particles are all over the tank"
    assert np.mean(counts) < 0.85 * before, "nothing is saved"
    return 0


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except VisceraError as error:
        raise SystemExit(str(error)) from None
