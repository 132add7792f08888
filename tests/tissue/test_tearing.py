"""Tissue tears where and when it is stretched to its break strain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

import viscera
from viscera import Contents, Scenario, Setting, World, systems
from viscera.geometry.primitives import box
from viscera.tissue.cutting import cut_springs, remove_edge, set_edge
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.world import Body

BREAK = 0.3
STRIP = Material("strip", 20_000.0, 1_000.0, poisson=0.25, viscous_time=5e-4, break_strain=BREAK)
SPACING, CELLS = 0.002, (20, 8, 1)
RATE = 0.4
"""Strain per second: slow beside the strip's own waves."""


def thin_block() -> Body:
    axes = [np.arange(count + 1, dtype=np.int32) for count in CELLS]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    size = SPACING * np.array(CELLS)
    low = -0.5 * size
    return Body(box(size), nodes, (float(low[0]), float(low[1]), float(low[2])), SPACING)


def strip(notch: float) -> World:
    """Held at both ends, which are drawn apart; with a notch of so many cells from one side, in the middle."""

    def build(setting: Setting) -> Contents:
        body = thin_block()
        ends = np.abs(body.positions[:, 0]) > 0.5 * CELLS[0] * SPACING - 1e-9
        away = np.zeros_like(body.positions)
        away[:, 0] = body.positions[:, 0]
        params = LatticeParams(
            nodes=body.nodes, spacing=SPACING, origin=body.origin, anchored=ends, driven=ends, drive_direction=away,
            material=STRIP, stiffest=STRIP.young, drag=60.0,
        )  # fmt: skip
        tissue = make_lattice(setting.device, params)
        organ = viscera.cuttable("strip", body, tissue)
        cut_notch(tissue, notch)
        camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
        return Contents(organs=[organ], systems=[systems.cutting(organ)], camera=camera, bounds=bounds)

    return viscera.make(Scenario("strip", build), device="cpu", cores=1)


def cut_notch(tissue: Tissue, depth: float) -> None:
    """A blade goes in from the side, between two columns of masses, before anything is pulled."""
    origin = np.asarray(tissue.params.origin)
    poses = [np.array([[10.5, y, -1.0], [10.5, y, 2.0]]) for y in np.arange(-1.0, depth + 0.01, 0.25)]
    for old, new in itertools.pairwise(poses if depth > 0.0 else []):
        set_edge(tissue, 0, 0, origin + SPACING * old, origin + SPACING * new, need=0.0)
        tissue.step()
    remove_edge(tissue, 0)


def pull(world: World, until: float) -> tuple[float, NDArray[np.float64]]:
    """Draws it out until something tears: the strain then, and where, in cells along it and across."""
    tissue = world.organs[0].tissue
    before = cut_springs(tissue)
    strain = 0.0
    while strain < until:
        tissue.set_drive(strain, strain + RATE * 0.001)
        strain += RATE * 0.001
        world.advance()
        if world.tick % 16 == 0:
            world.wait()
            torn = cut_springs(tissue) & ~before
            if torn.any():
                return strain, world.organs[0].body.nodes[torn.any(axis=0)][:, :2].astype(np.float64)
    raise AssertionError(f"nothing tore up to a strain of {strain:.2f}")


def test_a_whole_strip_bears_its_break_strain_and_no_more() -> None:
    """It narrows, so at the ends, where it cannot, it is stretched more than on average."""
    strain, _ = pull(strip(0.0), 0.5)
    assert 0.8 * BREAK < strain < 1.1 * BREAK


@pytest.mark.parametrize("depth", [2.0, 3.0])
def test_a_notched_strip_tears_at_its_notch_and_sooner(depth: float) -> None:
    world = strip(depth)
    strain, where = pull(world, 0.5)
    assert strain < 0.8 * BREAK
    # Within one cell of the notch's plane, and of its end.
    assert np.abs(where[:, 0] + 0.5 - 10.5).max() <= 1.5
    assert np.abs(where[:, 1] - depth).min() <= 1.0


def test_torn_through_there_are_two_pieces_and_all_the_mass() -> None:
    world = strip(3.0)
    tissue = world.organs[0].tissue
    mass = tissue.mass.sum()
    strain = 0.0
    for _ in range(1000):
        tissue.set_drive(strain, strain + RATE * 0.001)
        strain += RATE * 0.001
        world.advance()
    world.wait()
    assert world.measure_values()["pieces"] >= 2
    inverse = tissue.constants.inverse_mass.numpy()[tissue.layout.slot_of_node]
    assert (1.0 / inverse[inverse > 0.0]).sum() + tissue.mass[inverse == 0.0].sum() == pytest.approx(mass, rel=1e-6)
    assert np.isfinite(tissue.displacement()).all()
