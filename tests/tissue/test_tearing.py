"""Tissue tears where and when it is stretched to its break strain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cutting_reference import springs_of
from numpy.typing import NDArray

import viscera
from viscera import Contents, Scenario, Setting, World, systems
from viscera.geometry.primitives import box
from viscera.tissue.cutting import cut_springs, need_cutting, remove_edge, set_edge
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.world import Body

BREAK = 0.3
STRIP = Material("strip", 20_000.0, 1_000.0, poisson=0.25, viscous_time=5e-4, break_strain=BREAK)
SPACING, CELLS = 0.002, (20, 8, 1)
RATE = 0.4
"""Strain per second: slow beside the strip's own waves."""
LATE = 2
"""Frames from a stretch that is too much to the tear in the lattice, at most: one that sees it, one until it lands."""


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


def stretches(tissue: Tissue, cut: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What tearing.py looks at, in float64: of each spring ½ of its strain and ¼ of that of its neighbours in line,
    over what it bears; per direction and mass, -1 where there is none."""
    nodes = tissue.params.nodes
    at, index = nodes * SPACING + tissue.displacement().astype(np.float64), NodeIndex(nodes)
    found = np.full(cut.shape, -1.0)
    for d, step in enumerate(DIRECTIONS):
        other = index.find(nodes + np.array(step, dtype=np.int32))
        there = (other >= 0) & ~cut[d]
        strain = np.linalg.norm(at[other] - at, axis=1) / (SPACING * np.linalg.norm(step)) - 1.0
        total, count = np.where(there, strain, 0.0), there.astype(np.float64)
        np.add.at(total, other[there], strain[there])
        np.add.at(count, other[there], 1.0)
        mean = total / np.maximum(count, 1.0)
        found[d, there] = 0.5 * (mean[there] + mean[other[there]]) / BREAK
    return found


def pull(world: World, until: float) -> tuple[float, NDArray[np.float64], list[NDArray[np.float64]]]:
    """Draws it out until something tears: the strain then, the middles of what tore, in cells, and at the end of each
    frame how much of what it bears every spring was stretched."""
    tissue = world.organs[0].tissue
    before = cut_springs(tissue)
    strain, frames = 0.0, []
    while strain < until:
        tissue.set_drive(strain, strain + RATE * 0.001)
        strain += RATE * 0.001
        world.advance()
        if world.tick % 16 == 0:
            world.wait()
            torn = cut_springs(tissue) & ~before
            if torn.any():
                direction, mass = np.nonzero(torn)
                middles = world.organs[0].body.nodes[mass] + 0.5 * np.array(DIRECTIONS)[direction]
                return strain, middles[:, :2], frames
            frames.append(stretches(tissue, before))
    raise AssertionError(f"nothing tore up to a strain of {strain:.2f}")


def test_a_whole_strip_bears_its_break_strain_and_no_more() -> None:
    """It narrows, so at the ends, where it cannot, it is stretched more than on average."""
    strain, _, _ = pull(strip(0.0), 0.5)
    assert 0.8 * BREAK < strain < 1.1 * BREAK


@pytest.mark.parametrize("depth", [2.0, 3.0])
def test_a_notched_strip_tears_at_its_notch_when_that_has_its_break_strain(depth: float) -> None:
    """Sooner than a whole one: strain gathers at the end of the notch. All that tears first is there within a cell, in
    the frame after the first in which a float64 reference has some spring beyond what it bears: a frame sees the one
    before, and lands at its end."""
    strain, where, frames = pull(strip(depth), 0.5)
    assert strain < 0.8 * BREAK
    assert np.abs(where[:, 0] - 10.5).max() <= 1.0
    assert np.abs(where[:, 1] - depth).max() <= 1.0
    beyond = [bool((one > 1.0).any()) for one in frames]
    assert beyond[-1]
    assert not any(beyond[:-LATE])


def test_a_strand_tears_through_and_none_of_its_masses_comes_loose() -> None:
    """Two halves that hang together by a chain of single springs: its masses have two each, and it tears all the same;
    then each of them still hangs on one."""
    world = strip(0.0)
    tissue, nodes = world.organs[0].tissue, world.organs[0].body.nodes
    direction, low, high = springs_of(nodes)
    gap = np.isin(nodes[:, 0], (10, 11))
    chain = (nodes[:, 1] == CELLS[1]) & (nodes[:, 2] == CELLS[2])
    along = np.array([step == (1, 0, 0) for step in DIRECTIONS])[direction]
    strand = (gap[low] | gap[high]) & along & chain[low]
    gone = (gap[low] | gap[high]) & ~strand
    places = direction[gone] * tissue.layout.slots + tissue.layout.slot_of_node[low[gone]]
    cutting = need_cutting(tissue)
    cutting.blades.cut.numpy()[places] = 1
    tissue.constants.stiffness.numpy()[places] = 0.0
    cutting.news.host[0] = 1
    strain = 0.0
    while not (cut_springs(tissue)[direction, low] & strand).any() and strain < 0.6:
        tissue.set_drive(strain, strain + RATE * 0.001)
        strain += RATE * 0.001
        world.advance()
        if world.tick % 16 == 0:
            world.wait()
    left = ~cut_springs(tissue)[direction, low]
    assert (~left & strand).any()
    ties = np.bincount(np.concatenate([low[left], high[left]]), minlength=len(nodes))
    assert ties[gap & chain].min() >= 1


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
