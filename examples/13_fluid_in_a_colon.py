"""A fluid in an organ that is no two times alike, while the table tilts.

Makes a colon from a seed, fills a part of it, turns gravity, and looks where everybody is. Checked against what must
be: not one particle outside, none nearer to the wall than it may be, and the fluid lies where gravity points.

    python examples/13_fluid_in_a_colon.py [--seed 7] [--particles 800] [--steps 600]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from viscera import anatomy, open_device, water
from viscera.bench.vessels import lower_half
from viscera.errors import InputError
from viscera.geometry import build_query, signed_distance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--particles", type=int, default=800)
    parser.add_argument("--steps", type=int, default=600, help="for each of two directions of gravity")
    chosen = parser.parse_args()

    device = open_device("cpu")
    mesh = anatomy.colon(chosen.seed)
    spacing = (0.4 * mesh.volume / chosen.particles) ** (1 / 3)
    low, high = (tuple(corner.tolist()) for corner in mesh.bounds)
    params = water.FluidParams(
        spacing=spacing, lower=low, upper=high, dt=3e-4, kernels="spline", viscosity=0.5, sound_speed=8.0
    )
    start = lower_half(mesh, chosen.particles, spacing)
    fluid = water.make(params, start, capacity=len(start) + 1, device=device)
    walls = water.make_walls(mesh, radius=0.5 * spacing, device=device)
    water.add_vessel(fluid, walls, water.ContactParams(friction=0.05))
    program = device.record(lambda stage: water.step(stage, fluid), work=chosen.particles)

    query, means = build_query(mesh), []
    for name, gravity in (("upright", (0.0, -9.81, 0.0)), ("head down", (0.0, 9.81, 0.0))):
        water.set(fluid, replace(params, gravity=gravity))
        program.run(chosen.steps)
        found = water.particles(fluid)["position"]
        depth = -signed_distance(query, found)
        means.append(found[:, 1].mean())
        print(f"{name}: {(depth <= 0).sum()} outside, nearest to the wall {depth.min() / walls.radius:.3f} radii")
        assert (depth > 0.24 * walls.radius).all()
    print(f"mean height {1000 * means[0]:.0f} mm upright, {1000 * means[1]:.0f} mm head down")
    assert means[1] > means[0] + 0.02

    # A particle that would start outside is refused, with its place.
    try:
        water.add(fluid, [0.5 * (np.asarray(low) + np.asarray(high))])
    except InputError as refusal:
        print(f"refused: {refusal.message}")
    else:
        raise AssertionError("a particle outside must be refused")
    print("ok")


if __name__ == "__main__":
    main()
