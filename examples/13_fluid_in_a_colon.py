"""A fluid in an organ that is no two times alike, while the table tilts.

Makes a colon from a seed, fills a part of it, turns gravity, and looks where everybody is. Checked against what must
be: not one particle outside, none nearer to the wall than it may be, and the fluid lies where gravity points.

    python examples/13_fluid_in_a_colon.py [--seed 7] [--particles 800] [--steps 600]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from viscera.anatomy.colon import colon
from viscera.bench.vessels import lower_half
from viscera.device import open_device
from viscera.errors import InputError
from viscera.geometry import build_query, signed_distance
from viscera.water.boundary.contacts import ContactParams
from viscera.water.boundary.start import check_start
from viscera.water.boundary.vessel import Vessel
from viscera.water.boundary.walls import make_walls
from viscera.water.params import FluidParams
from viscera.water.sph import step_fluid
from viscera.water.state import make_fluid, particles, set_params


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--particles", type=int, default=800)
    parser.add_argument("--steps", type=int, default=600, help="for each of two directions of gravity")
    chosen = parser.parse_args()

    device = open_device("cpu")
    mesh = colon(chosen.seed)
    spacing = (0.4 * mesh.volume / chosen.particles) ** (1 / 3)
    low, high = (tuple(corner.tolist()) for corner in mesh.bounds)
    params = FluidParams(
        spacing=spacing, lower=low, upper=high, dt=3e-4, kernels="spline", viscosity=0.5, sound_speed=8.0
    )
    fluid = make_fluid(params, lower_half(mesh, chosen.particles, spacing), device)
    walls = make_walls(mesh, radius=0.5 * spacing, device=device)
    fluid.boundaries.append(Vessel(fluid, walls, ContactParams(friction=0.05)))
    program = device.record(lambda stage: step_fluid(stage, fluid), work=chosen.particles)

    query, means = build_query(mesh), []
    for name, gravity in (("upright", (0.0, -9.81, 0.0)), ("head down", (0.0, 9.81, 0.0))):
        set_params(fluid, replace(params, gravity=gravity))
        for _ in range(chosen.steps):
            program.run()
        found = particles(fluid)["position"]
        depth = -signed_distance(query, found)
        means.append(found[:, 1].mean())
        print(f"{name}: {(depth <= 0).sum()} outside, nearest to the wall {depth.min() / walls.radius:.3f} radii")
        assert (depth > 0.24 * walls.radius).all()
    print(f"mean height {1000 * means[0]:.0f} mm upright, {1000 * means[1]:.0f} mm head down")
    assert means[1] > means[0] + 0.02

    # A particle that would start outside is refused, with its place.
    try:
        check_start(walls, np.array([[0.0, 0.0, 0.5]]))
    except InputError as refusal:
        print(f"refused: {refusal.message}")
    else:
        raise AssertionError("a particle outside must be refused")
    print("ok")


if __name__ == "__main__":
    main()
