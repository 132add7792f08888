"""A hot wire cuts what it has burnt through with hardly any force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import viscera
from viscera import Contents, Scenario, Setting, ToolInput, burns, heat, kit, systems
from viscera.instruments import Cuts, Pushes
from viscera.tissue.burning import with_burn_headroom
from viscera.tissue.cutting import cut_area, need_cutting
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.world.systems.stiffening import stiffening

FLESH = Material("flesh", 8_000.0, 1_000.0, poisson=0.3, viscous_time=2e-4, toughness=60.0, break_strain=20.0)
"""It hardly tears: what comes apart was cut."""
SPACING, CELLS = 0.003, (10, 6, 4)
TOP = CELLS[2] * SPACING


def build(setting: Setting) -> Contents:
    body = viscera.block(CELLS, SPACING)
    params = LatticeParams(
        nodes=body.nodes, spacing=SPACING, origin=body.origin, anchored=body.positions[:, 2] < 0.5 * SPACING,
        material=FLESH, stiffest=FLESH.young, drag=20.0,
    )  # fmt: skip
    organ = viscera.cuttable("flesh", body, make_lattice(setting.device, with_burn_headroom(params)), texels=64)
    assert organ.skin is not None
    warmth = heat.make(organ.skin)
    burn = burns.make(warmth)
    # A cold wire: the burn is given, and stays as it is.
    wire = replace(kit.scalpel(), effects=(Pushes(4e-4, offset=4e-4), Cuts(need=kit.BLUNT)))
    tools = kit.hand_out([wire, kit.cutting_hook()], place=(-0.03, 0.0, TOP + 0.02))
    parts = [systems.cutting(organ), systems.heating(organ, warmth, burn, tools), systems.burning(organ, burn)]
    parts.append(stiffening(organ, burn))
    parts.append(systems.burnt_cutting(organ, parts[-1].holds))
    camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
    return Contents(organs=[organ], tools=tools, systems=parts, camera=camera, bounds=bounds)


@pytest.mark.slow
def test_a_wire_goes_through_burnt_tissue_with_little_force_and_pushes_cold_tissue_along() -> None:
    """The left half is burnt through; a wire is drawn from left to right, 5 mm deep, at 0.2 m/s."""
    world = viscera.make(Scenario("burnt", build), device="cpu", cores=1)
    springs, tissue = world.system("stiffening").holds, world.organs[0].tissue
    burn = np.zeros(tissue.layout.slots, dtype=np.float32)
    burn[tissue.layout.slot_of_node] = tissue.rest_positions()[:, 0] < 1e-4
    springs.burn.assign(burn)
    world.step(32)
    saved, force, cut = world.save_state(), [], []
    for tick in range(200):
        world.apply(ToolInput(0, (-0.025 + 0.0002 * tick, 0.0005, TOP - 0.005), grip=1.0, direct=True))
        world.advance()
        force.append(-world.tools[0].force[0])
        cut.append(cut_area(tissue))
    world.wait()
    x = -0.025 + 0.0002 * np.arange(200)
    burnt, cold = (x > -0.010) & (x < -0.003), (x > 0.006) & (x < 0.014)
    # What is left of the toughness is 1 %; the rest is what the tissue drags along by its mass and viscosity.
    assert np.median(np.array(force)[burnt]) < 0.15 * np.median(np.array(force)[cold])
    # In burnt tissue the cut keeps up with the wire: 7 mm and 5 mm deep, within a third for so few cells.
    area = np.array(cut)
    assert area[burnt][-1] - area[burnt][0] == pytest.approx(0.007 * 0.005, rel=0.35)
    world.load_state(saved)
    assert np.array_equal(need_cutting(tissue).blades.toughness.numpy(), world.system("flesh.burnt_cuts").holds.landed)
