"""A needle takes a bite across a slit in stretched skin, a knot draws its lips together, and they stay together.

Checked: the slit gapes before, and afterwards by less than 1 mm, and the thread pulls no harder than the hand did.

    python examples/21_sew.py [--pull 0.25]
"""

from __future__ import annotations

import argparse

import numpy as np

import viscera
from viscera import Contents, Scenario, Setting, ToolInput, World, kit, systems, tissue
from viscera.tissue.materials import Material
from viscera.tissue.sewing import let_sew
from viscera.tissue.slits import open_slit
from viscera.tissue.springs import NodeIndex

CELLS, SPACING = (14, 10, 4), 0.0025
TOP = CELLS[2] * SPACING
SLIT, DEPTH = 0.0007, 0.006
"""Where it runs across the block, and how deep it is [m]."""
STRETCH, THREAD = 0.08, 0.1
"""Across the slit, and the length of the thread [m]."""
SKIN = Material("skin", 60_000.0, 1_000.0, poisson=0.35, viscous_time=1e-4, break_strain=1.5, toughness=1_700.0)
NEEDLE, KNOT = range(2)


def build(setting: Setting, pull: float) -> Contents:
    body = viscera.block(CELLS, SPACING)
    low, high = body.positions.min(axis=0), body.positions.max(axis=0)
    held = (body.positions[:, [0, 2]] < low[[0, 2]] + 1e-9).any(axis=1) | (body.positions[:, 0] > high[0] - 1e-9)
    stretched = STRETCH * body.positions * [1.0, 0.0, 0.0]
    params = tissue.LatticeParams(
        body.nodes, SPACING, body.origin, held, SKIN, stiffest=SKIN.young, drag=20.0, driven=held,
        drive_direction=stretched,
    )  # fmt: skip
    lattice = tissue.make(params, device=setting.device)
    organ = viscera.cuttable("skin", body, lattice, look="skin")
    first, last = (np.array([[SLIT, y, TOP - DEPTH], [SLIT, y, TOP + 0.002]]) for y in (-0.008, 0.008))
    open_slit(lattice, first, last)
    let_sew(lattice, THREAD)
    lattice.set_motion(stretched, np.zeros_like(stretched))
    lattice.set_drive(1.0, 1.0)
    camera, bounds = viscera.looking_down([organ], (0.04, -0.6, 0.8))
    tools = kit.hand_out([kit.needle_holder(), kit.knot_tyer(pull)], place=(0.0, 0.0, TOP + 0.03))
    parts = [systems.cutting(organ), systems.sewing(organ)]
    return Contents(organs=[organ], tools=tools, systems=parts, camera=camera, bounds=bounds, rubbing=0.2)


def gap(world: World) -> float:
    """Between the lips in the middle of the slit, beyond what it was uncut [m]."""
    lattice = world.organs[0].tissue
    nodes, rest = lattice.params.nodes, lattice.rest_positions()
    near = (np.abs(rest[:, 1]) < 0.5 * SPACING) & (rest[:, 2] > TOP - 0.5 * SPACING)
    left = np.flatnonzero(near & (rest[:, 0] < SLIT) & (rest[:, 0] > SLIT - SPACING))
    right = NodeIndex(nodes).find(nodes[left] + np.array([1, 0, 0], dtype=np.int32))
    moved = lattice.displacement()[:, 0]
    return float((moved[right] - moved[left]).max())


def hold(world: World, ticks: int, tool: int, height: float, grip: float) -> None:
    for _ in range(ticks):
        world.apply(ToolInput(tool, (SLIT, 0.0, TOP + height), grip=grip))
        world.advance()
    world.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pull", type=float, default=0.25, help="how hard the knot is drawn [N]")
    chosen = parser.parse_args()
    world = viscera.make(Scenario("sew", lambda setting: build(setting, chosen.pull)), device="cpu")
    hold(world, 250, NEEDLE, kit.NEEDLE_HEIGHT, 0.0)
    before = gap(world)
    hold(world, 1_250, NEEDLE, kit.NEEDLE_HEIGHT, 1.0)
    hold(world, 400, NEEDLE, kit.NEEDLE_HEIGHT, 0.0)
    world.apply(ToolInput(NEEDLE, (SLIT, 0.0, TOP + 0.03), active=False))
    hold(world, 250, KNOT, 0.004, 0.0)
    hold(world, 900, KNOT, 0.004, 1.0)
    hold(world, 250, KNOT, 0.004, 0.0)
    values, after = world.measure_values(), gap(world)
    print(f"gap {1e3 * before:.2f} mm before, {1e3 * after:.2f} mm with {values['stitches']:.0f} knot")
    print(f"tension {values['tension']:.2f} N, thread left {values['thread_left']:.0f} of {1e3 * THREAD:.0f} mm")
    assert values["stitches"] == 1.0
    assert before > 1.2e-3
    assert after < 1.0e-3
    assert values["tension"] < 1.2 * chosen.pull
    assert 0.0 < values["thread_left"] < 1e3 * THREAD
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
