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

from viscera import anatomy, heat, open_device, skin
from viscera.errors import VisceraError

SPOT = 0.004
"""Radius of what is heated [m]."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--texels", type=int, default=512, help="along a side of the texture, a power of two")
    options = parser.parse_args()
    liver = skin.make(anatomy.liver(), width=options.texels, device=open_device())
    params = heat.HeatParams(perfusion=heat.LIVER_PERFUSION)
    warmth = heat.make(liver, params)
    texels, position = liver.texels.numpy(), liver.position.numpy()
    chart = liver.atlas.chart[liver.face.numpy()[texels]]

    seam = len(liver.seams) // 2
    middle = liver.mesh.vertices[liver.seams.vertex[seam]].mean(axis=0)
    here = liver.atlas.chart[liver.seams.face[seam, 0]]
    near = np.linalg.norm(position[texels] - middle, axis=1) < SPOT
    temperature = np.zeros(options.texels**2, dtype=np.float32)
    temperature[texels] = 40.0 * (near & (chart == here))
    warmth.temperature.assign(temperature)
    before = heat.energy(warmth)

    program = liver.device.record(lambda stage: heat.step(stage, warmth), work=liver.count * warmth.stages)
    steps = round(options.seconds / warmth.dt)
    tau = params.density * params.heat_capacity / params.perfusion
    for step in range(1, steps + 1):
        program.run()
        if step % max(1, steps // 5) == 0:
            liver.device.synchronize()
            found = warmth.temperature.numpy()[texels]
            held = liver.area.numpy()[texels] * found
            share = held[chart != here].sum() / held.sum()
            print(
                f"{step * warmth.dt:5.1f} s: {heat.energy(warmth):.3f} J, exp(−t/τ) says "
                f"{before * math.exp(-step * warmth.dt / tau):.3f}; warmest {found.max():.1f} K; "
                f"{100 * share:.0f} % of it beyond the seam"
            )
    liver.device.synchronize()
    found = warmth.temperature.numpy()[texels]
    assert abs(heat.energy(warmth) / (before * math.exp(-steps * warmth.dt / tau)) - 1.0) < 1e-3
    # At a wall it would jump. Slivers have a neighbour's temperature, so across seams it may look up to twice as steep.
    inner = texels[near & (liver.coverage.numpy()[texels] == 1.0)]
    inner = inner[liver.coverage.numpy()[inner - 1] == 1.0]
    inside = steepest(warmth, np.stack([inner, inner - 1], axis=1))
    across = steepest(warmth, liver.links.texel[np.isin(liver.links.texel, texels[near]).all(axis=1)])
    print(f"steepest inside a chart {0.001 * inside:.1f} K/mm, across seams {0.001 * across:.1f} K/mm")
    assert across < 2.0 * inside
    print("ok")


def steepest(warmth: heat.Heat, pairs: np.ndarray) -> float:
    """Between neighbours [K/m]; a texel's side counts as the least distance."""
    liver, found = warmth.skin, warmth.temperature.numpy()[pairs]
    side = math.sqrt(liver.mesh.area / liver.coverage.numpy().sum())
    apart = np.linalg.norm(np.diff(liver.position.numpy()[pairs], axis=1)[:, 0], axis=1)
    return float((np.abs(found[:, 0] - found[:, 1]) / np.maximum(apart, side)).max())


if __name__ == "__main__":
    try:
        main()
    except VisceraError as error:
        raise SystemExit(str(error)) from None
