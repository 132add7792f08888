"""A grasper takes a block of tissue, pulls at it until it slips, and the hand feels no more than the jaws can hold.

Checked against Coulomb's law: along its jaws a grasper holds twice its friction times its grip.

    python examples/20_grasp_and_pull.py [--grip 0.5] [--friction 0.5]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import viscera
from viscera import Contents, Scenario, Setting, tissue
from viscera.instruments import Grasps, kit
from viscera.tissue.materials import Material

CELLS, SPACING = (10, 8, 5), 0.002
FLESH = Material("flesh", 40_000.0, 1_000.0, poisson=0.25, viscous_time=2e-4, break_strain=5.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grip", type=float, default=0.5, help="force of each jaw [N]")
    parser.add_argument("--friction", type=float, default=0.5, help="between jaws and tissue")
    chosen = parser.parse_args()

    def build(setting: Setting) -> Contents:
        body = viscera.block(CELLS, SPACING)
        below = body.positions[:, 2] < 0.5 * SPACING
        params = tissue.LatticeParams(body.nodes, SPACING, body.origin, below, FLESH, stiffest=FLESH.young, drag=20.0)
        organ = viscera.cuttable("block", body, tissue.make(params, device=setting.device))
        grasper = kit.grasper()
        grasps = Grasps(grip=chosen.grip, friction=chosen.friction)
        camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
        tools = kit.hand_out([replace(grasper, effects=(grasper.effects[0], grasps))], place=(0.0, 0.0, 0.03))
        return Contents(organs=[organ], tools=tools, camera=camera, bounds=bounds)

    world = viscera.make(Scenario("grasp", build), device="cpu")
    top, strongest = CELLS[2] * SPACING, 0.0
    for tick in range(700):
        height = top - 0.003 + (5e-5 * (tick - 260) if tick > 260 else 0.0)
        world.apply(viscera.ToolInput(0, (0.0, 0.0, height), grip=1.0 if tick > 120 else 0.0))
        world.advance()
        if tick > 260:
            strongest = max(strongest, -world.tools[0].force[2])
    world.wait()
    holds = 2.0 * chosen.friction * chosen.grip
    print(f"strongest pull {strongest:.3f} N; two jaws, friction × grip: {holds:.3f} N")
    print(f"slipped out: {world.tools[0].force == (0.0, 0.0, 0.0)}")
    assert 0.85 * holds < strongest < 1.02 * holds
    assert world.tools[0].force == (0.0, 0.0, 0.0)


if __name__ == "__main__":
    main()
