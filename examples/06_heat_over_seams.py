"""Warm a spot of the liver on one side of a seam of its texture, and watch the heat spread, cross the seam and fade.

Blood carries heat off in proportion to temperature, so whatever conduction does meanwhile, and wherever seams lie, the
total must fall as exp(−t/τ) with τ = ρ c / perfusion (Pennes). That is checked, and that the seam, hot on one side and
cold on the other at first, is no wall.

    python examples/06_heat_over_seams.py [--seconds 30] [--texels 512]
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from viscera.anatomy import liver
from viscera.device import open_device
from viscera.errors import VisceraError
from viscera.heat.conduction import LIVER_PERFUSION, Heat, HeatParams, make_heat, step_heat, total_heat
from viscera.skin import make_skin

SPOT = 0.004
"""Radius of what is heated [m]."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--texels", type=int, default=512, help="along a side of the texture, a power of two")
    options = parser.parse_args()
    skin = make_skin(liver(), width=options.texels, device=open_device())
    params = HeatParams(perfusion=LIVER_PERFUSION)
    heat = make_heat(skin, params)
    texels, position = skin.texels.numpy(), skin.position.numpy()
    chart = skin.atlas.chart[skin.face.numpy()[texels]]

    seam = len(skin.seams) // 2
    middle = skin.mesh.vertices[skin.seams.vertex[seam]].mean(axis=0)
    here = skin.atlas.chart[skin.seams.face[seam, 0]]
    near = np.linalg.norm(position[texels] - middle, axis=1) < SPOT
    temperature = np.zeros(options.texels**2, dtype=np.float32)
    temperature[texels] = 40.0 * (near & (chart == here))
    heat.temperature.assign(temperature)
    before = total_heat(heat)

    program = skin.device.record(lambda stage: step_heat(stage, heat), work=skin.count * heat.stages)
    steps = round(options.seconds / heat.dt)
    tau = params.density * params.heat_capacity / params.perfusion
    for step in range(1, steps + 1):
        program.run()
        if step % max(1, steps // 5) == 0:
            skin.device.synchronize()
            found = heat.temperature.numpy()[texels]
            share = (skin.area.numpy()[texels] * found)[chart != here].sum() / (skin.area.numpy()[texels] * found).sum()
            print(
                f"{step * heat.dt:5.1f} s: {total_heat(heat):.3f} J, exp(−t/τ) says "
                f"{before * math.exp(-step * heat.dt / tau):.3f}; warmest {found.max():.1f} K; "
                f"{100 * share:.0f} % of it beyond the seam"
            )
    skin.device.synchronize()
    found = heat.temperature.numpy()[texels]
    assert abs(total_heat(heat) / (before * math.exp(-steps * heat.dt / tau)) - 1.0) < 1e-3
    # At a wall it would jump. Slivers have a neighbour's temperature, so across seams it may look up to twice as steep.
    inner = texels[near & (skin.coverage.numpy()[texels] == 1.0)]
    inner = inner[skin.coverage.numpy()[inner - 1] == 1.0]
    inside = steepest(heat, np.stack([inner, inner - 1], axis=1))
    across = steepest(heat, skin.links.texel[np.isin(skin.links.texel, texels[near]).all(axis=1)])
    print(f"steepest inside a chart {0.001 * inside:.1f} K/mm, across seams {0.001 * across:.1f} K/mm")
    assert across < 2.0 * inside
    print("ok")


def steepest(heat: Heat, pairs: np.ndarray) -> float:
    """Between neighbours [K/m]; a texel's side counts as the least distance."""
    skin, found = heat.skin, heat.temperature.numpy()[pairs]
    side = math.sqrt(skin.mesh.area / skin.coverage.numpy().sum())
    apart = np.linalg.norm(np.diff(skin.position.numpy()[pairs], axis=1)[:, 0], axis=1)
    return float((np.abs(found[:, 0] - found[:, 1]) / np.maximum(apart, side)).max())


if __name__ == "__main__":
    try:
        main()
    except VisceraError as error:
        raise SystemExit(str(error)) from None
