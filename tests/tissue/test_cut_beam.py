"""A beam that is cut half through bends as theory says.

A beam of height W with a crack of depth a in a moment M turns there by θ = 4σ/E · S(a/W), σ = 6M/(bW²) (Tada, Paris and
Irwin, "The Stress Analysis of Cracks Handbook", 1973, single edge crack in bending), besides the ML/(EI) of the whole
one. Over that, it is 2 S W/L.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cutting_reference import springs_of

from viscera.device import Device
from viscera.tissue import LatticeParams
from viscera.tissue.cutting import cut_area, let_cut, remove_edge, set_edge
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material

H = 0.002
"""[m]"""


def beam(device: Device, length: int, height: int) -> Tissue:
    """One cell wide, held at x = 0."""
    axes = [np.arange(count + 1, dtype=np.int32) for count in (length, 1, height)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    material = Material("test", 20_000.0, 1_000.0, poisson=0.25, viscous_time=0.0, toughness=1.0)
    params = LatticeParams(
        nodes=nodes, spacing=H, origin=(0.0, 0.0, 0.0), anchored=nodes[:, 0] == 0, stiffest=20_000.0, material=material
    )
    tissue = make_lattice(device, params)
    let_cut(tissue)
    return tissue


def cut_half(tissue: Tissue, length: int, height: int) -> None:
    """From above, a little less than half through: the masses in the middle layer stay whole."""
    x, top, deep = (0.5 * length + 0.5) * H, (height + 2) * H, (0.5 * height - 0.1) * H
    levels = np.linspace(top, height * H - deep, 7)
    for high, low in itertools.pairwise(levels):
        ends = [np.array([[x, -0.01, z], [x, 0.02, z]]) for z in (high, low)]
        set_edge(tissue, 0, 0, ends[0], ends[1], need=0.0)
        tissue.step()
    remove_edge(tissue, 0)


def turn(tissue: Tissue, length: int, height: int) -> float:
    """Of the free end in a small moment there, any unit: the springs' linear equations, solved in float64."""
    nodes = tissue.params.nodes
    direction, low, high = springs_of(nodes)
    table = tissue.constants.stiffness.numpy().reshape(13, -1)[:, tissue.layout.slot_of_node].astype(np.float64)
    along = (nodes[high] - nodes[low]).astype(np.float64)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    block = table[direction, low][:, None, None] * along[:, :, None] * along[:, None, :]
    count, axis = len(nodes), np.arange(3)
    matrix = np.zeros((count, 3, count, 3))
    for one, other, sign in ((low, low, 1.0), (high, high, 1.0), (low, high, -1.0), (high, low, -1.0)):
        where = (one[:, None, None], axis[None, :, None], other[:, None, None], axis[None, None, :])
        np.add.at(matrix, where, sign * block)
    z, end = nodes[:, 2] - 0.5 * height, nodes[:, 0] == length
    share = np.where(np.abs(z) == 0.5 * height, 0.5, 1.0) * end
    force = np.zeros((count, 3))
    force[:, 0] = z * share
    free = np.repeat(~tissue.params.anchored, 3)
    moved = np.zeros(3 * count)
    moved[free] = np.linalg.solve(matrix.reshape(3 * count, -1)[np.ix_(free, free)], force.ravel()[free])
    return float((moved.reshape(-1, 3)[:, 0] * z * share).sum() / (z * z * share).sum())


@pytest.mark.parametrize(("length", "height"), [(24, 6), pytest.param(32, 8, marks=pytest.mark.slow)])
def test_a_beam_cut_half_through_bends_as_theory_says(cpu: Device, length: int, height: int) -> None:
    """10 %: the end of the crack is where the first whole mass is, as far as a lattice knows it."""
    tissue = beam(cpu, length, height)
    whole = turn(tissue, length, height)
    cut_half(tissue, length, height)
    assert cut_area(tissue) == pytest.approx((0.5 * height - 0.5) * H * H, rel=0.05)
    x = 0.5
    shape = (x / (1.0 - x)) ** 2 * (5.93 - 19.69 * x + 37.14 * x**2 - 35.84 * x**3 + 13.12 * x**4)
    assert turn(tissue, length, height) / whole - 1.0 == pytest.approx(2.0 * shape * height / length, rel=0.1)
