"""A blade goes through a block of tissue, and the hand pays for the surface that it opens.

Draws a scalpel through a block that is held below and at its sides, and adds up the hand's work. Checked against
toughness times the new surface, and against what must be: a surface that is closed. The block is dragged along by
about a cell before it is cut; far beyond that the hand pays less (docs/cutting.md).

    python examples/14_cut.py [--toughness 40] [--speed 0.1]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import viscera
from viscera import Contents, Scenario, Setting, systems, tissue
from viscera.instruments import Cuts, kit
from viscera.timing import TICK
from viscera.tissue.materials import Material

CELLS, SPACING = (12, 8, 5), 0.002


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toughness", type=float, default=40.0, help="of the tissue [J/m²]")
    parser.add_argument("--speed", type=float, default=0.1, help="of the hand [m/s]")
    chosen = parser.parse_args()

    flesh = Material("flesh", 20_000.0, 1_000.0, poisson=0.25, viscous_time=0.0, toughness=chosen.toughness)

    def build(setting: Setting) -> Contents:
        body = viscera.block(CELLS, SPACING)
        held = (np.abs(body.positions[:, 1]) > 0.5 * CELLS[1] * SPACING - 1e-9) | (body.positions[:, 2] < 1e-9)
        params = tissue.LatticeParams(
            body.nodes, SPACING, body.origin, held, flesh, stiffest=flesh.young, drag=20.0
        )  # fmt: skip
        organ = viscera.cuttable("block", body, tissue.make(params, device=setting.device))
        # All of the toughness, so that the sum is easy to read.
        blade = kit.scalpel()
        effects = tuple(replace(one, need=1.0) if isinstance(one, Cuts) else one for one in blade.effects)
        camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
        tools = kit.hand_out([replace(blade, effects=effects)], place=(-0.03, 0.0, 0.03))
        return Contents(organs=[organ], tools=tools, systems=[systems.cutting(organ)], camera=camera, bounds=bounds)

    world = viscera.make(Scenario("cut", build), device="cpu")
    work = draw(world, chosen.speed)
    values = world.measure_values()
    spent = chosen.toughness * values["cut_area"] * 1e-6
    print(f"the hand did {1e3 * work:.2f} mJ; toughness × {values['cut_area']:.0f} mm² is {1e3 * spent:.2f} mJ")
    cuts = world.organs[0].cuts
    assert cuts is not None
    corners = cuts.linked.shape.key[cuts.linked.shape.triangles]
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    ahead, back = (np.sort(edges @ [int(corners.max()) + 1, 1][::turn]) for turn in (1, -1))
    print(f"{len(corners)} triangles, {'closed' if np.array_equal(ahead, back) else 'open'}")
    assert np.array_equal(ahead, back)
    # The rest went into the tissue that the blade took along: swinging, and the drag that ends it.
    assert 0.85 * spent < work < 1.3 * spent


def draw(world: viscera.World, speed: float) -> float:
    """Along x, all the way through, 2 mm over what it lies on; the hand's work [J]."""
    work, x = 0.0, -0.03
    while x < 0.02:
        x += speed * TICK
        world.apply(viscera.ToolInput(0, (x, 0.0005, 0.002), grip=1.0, direct=True))
        world.advance()
        if x > -0.5 * CELLS[0] * SPACING - SPACING:
            work -= world.tools[0].force[0] * speed * TICK
    world.wait()
    return work


if __name__ == "__main__":
    main()
