"""Smoke from a hook: it is as much as what boiled and charred, all of it is somewhere, and it rises.

A hook burns a pad of liver for half a second in a closed abdomen. Smoke must be the stated share of the water that has
boiled off and of the tissue that has charred, no less and no more; nothing of it may be lost; and a second later it is
higher than it was.

    python examples/17_smoke_from_a_hook.py [--seconds 1.5]
"""

from __future__ import annotations

import argparse

import numpy as np

import viscera
from viscera import grid
from viscera.errors import VisceraError
from viscera.world.systems.smoke import MIST, SOOT, UNIT, Smoke


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.5)
    chosen = parser.parse_args()
    world = viscera.make("smoke", device="cpu")
    smoke: Smoke = world.system("smoke").holds
    height = 0.0
    for tick in range(round(1000 * chosen.seconds)):
        for one in world.script(tick) if tick < 500 else ():
            world.apply(one)
        if tick == 500:
            world.apply(viscera.ToolInput(0, (0.0, 0.0, 0.09), active=False))
            world.wait()
            height = _height(smoke)
        world.advance()
    world.wait()
    given, taken, _ = grid.counted(smoke.flow, "smoke")
    water, char = _lost(smoke)
    due = MIST * water + SOOT * char
    print(f"water boiled off {1e6 * water:.2f} mg, tissue charred {1e6 * char:.3f} mg, view {smoke.view():.1f} %")
    print(f"smoke {1e6 * UNIT * given:.4f} mg, due are {1e6 * due:.4f} mg")
    print(f"the smoke's mean height rose from {1e3 * height:.0f} to {1e3 * _height(smoke):.0f} mm")
    # What has not become a whole unit waits in its texel; what boils within the last step comes with the next.
    assert abs(UNIT * given / due - 1.0) < 0.01, "smoke is not what boiled and charred"
    assert not grid.missing(smoke.flow, "smoke"), "smoke is missing"
    assert not taken, "smoke was drawn away"
    assert _height(smoke) > height, "it does not rise"
    return 0


def _lost(smoke: Smoke) -> tuple[float, float]:
    """Water that is no longer in the tissue, and solids that have charred [kg], from the maps of the burn."""
    burn, heat = smoke.burn, smoke.burn.heat.params
    mass = heat.density * heat.thickness * smoke.organ.need_skin().rest_area.numpy().astype(np.float64)
    wet = burn.params.water_content
    water = float((wet * mass * (1.0 - burn.water.numpy())).sum())
    return water, float(((1.0 - wet) * mass * -np.expm1(-burn.charring.numpy().astype(np.float64))).sum())


def _height(smoke: Smoke) -> float:
    """Mean, above the table [m]."""
    values = grid.values(smoke.flow, "smoke").astype(np.float64)
    return float((values * grid.middles(smoke.flow.params)[..., 2]).sum() / max(values.sum(), 1e-30))


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except VisceraError as error:
        raise SystemExit(f"{error}") from error
