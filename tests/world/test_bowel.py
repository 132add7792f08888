"""Points that go along with a tube, and a bowel made of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from viscera import water
from viscera.anatomy.along import attach, follow, lay
from viscera.anatomy.colon import centreline, centreline_of, colon, course_of
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.timing import FRAME
from viscera.world.systems.bowel import Bowel
from viscera.world.systems.bowel_lattice import BowelLattice


@pytest.fixture(scope="module")
def tube(cpu: Device) -> tuple[TriangleMesh, Bowel]:
    mesh = colon(2, 2000)
    line = centreline_of(mesh, 2)
    fluid = water.make(water.FluidParams(0.01, (-0.3, -0.3, -0.3), (0.3, 0.3, 0.3), 2e-4), capacity=64, device=cpu)
    points = {"wall": mesh.vertices, "one": mesh.vertices[:5]}
    return mesh, Bowel(course_of(mesh, 2), line, points, BowelLattice(line, fluid, FRAME))


def test_a_tube_that_does_not_change_stays_to_the_last_bit() -> None:
    mesh = colon(2, 2000)
    line = centreline_of(mesh, 2)
    assert line.points == pytest.approx(centreline(course_of(mesh, 2), 400).points, abs=1e-12)
    points = attach(mesh.vertices, line)
    assert points.begun == pytest.approx(mesh.vertices, abs=1e-9)
    assert np.array_equal(follow(points, lay(points, line, line), np.ones(len(mesh.vertices))), mesh.vertices)


def test_points_move_with_the_centreline_and_with_the_opening() -> None:
    mesh = colon(2, 2000)
    line = centreline_of(mesh, 2)
    points = attach(mesh.vertices, line)
    there = replace(line, points=line.points + np.array([0.01, 0.0, -0.02]))
    moved = follow(points, lay(points, line, there), np.ones(len(mesh.vertices)))
    assert moved - mesh.vertices == pytest.approx(np.tile([0.01, 0.0, -0.02], (len(moved), 1)), abs=1e-12)
    half = TriangleMesh(follow(points, lay(points, line, line), np.full(len(moved), 0.5)), mesh.triangles)
    # A long tube of half the width holds a quarter; its ends and bends are not that of a cylinder.
    assert half.volume / mesh.volume == pytest.approx(0.25, abs=0.02)


def test_gas_opens_the_bowel_and_goes_with_its_pressure(tube: tuple[TriangleMesh, Bowel]) -> None:
    mesh, bowel = tube
    volumes = []
    for pressure in (0.0, 10.0, 20.0, 30.0):
        bowel.state[0] = pressure
        bowel.refresh()
        volumes.append(TriangleMesh(bowel.of("wall"), mesh.triangles).volume)
    assert volumes[2] == pytest.approx(mesh.volume, rel=1e-12)
    assert 0.3 * mesh.volume < volumes[0] < volumes[1] < volumes[2] < volumes[3] < 1.1 * mesh.volume
    assert bowel.gas(1e-3, 4e-4) == pytest.approx(6e-4 * (1.0 + 30.0 / 760.0))
    bowel.state[0] = 20.0
    bowel.refresh()


def test_a_wave_runs_along_the_bowel(tube: tuple[TriangleMesh, Bowel]) -> None:
    """It narrows where the wave is, not at the ends; and after a wavelength's time it is where it was."""
    mesh, bowel = tube
    bowel.state[1] = bowel.wanted[1] = 0.5
    bowel.wanted[2] = 30.0  # mm/s: 4 s for a wavelength of 12 cm
    bowel.refresh()
    begin = bowel.of("wall").copy()
    for _ in range(125):
        assert bowel.advance()
    way = np.linalg.norm(bowel.of("wall") - begin, axis=1)
    assert way.max() > 0.005
    assert way[-2:].max() == 0.0, "both poles stay"
    for _ in range(125):
        bowel.advance()
    assert bowel.of("wall") == pytest.approx(begin, abs=1e-9)
    bowel.wanted[1] = 0.0
    for _ in range(200):
        bowel.advance()
    assert np.array_equal(bowel.of("wall"), mesh.vertices)
    assert bowel.at_rest
    assert not bowel.advance()


@pytest.mark.slow
def test_control_points_are_edited_within_bounds(tube: tuple[TriangleMesh, Bowel]) -> None:
    _, bowel = tube
    live = bowel.table()
    rows = [list(row) for row in live.table.rows]
    rows[10][2] += 30.0
    live.check(tuple(map(tuple, rows)))
    live.change(tuple(map(tuple, rows)))
    assert (bowel.wanted[3:] != bowel.state[3:]).sum() == 1
    before = bowel.of("wall").copy()
    for _ in range(70):
        bowel.advance()
    assert np.linalg.norm(bowel.of("wall") - before, axis=1).max() == pytest.approx(0.03, rel=0.25)
    for row, column, value, said in ((1, 0, 40.0, "stay"), (10, 1, 250.0, "is moved by"), (0, 3, 30.0, "stay")):
        wrong = [list(one) for one in live.table.rows]
        wrong[row][column] = value
        with pytest.raises(InputError, match=said):
            live.check(tuple(map(tuple, wrong)))
    live.change(live.table.rows)
    for _ in range(70):
        bowel.advance()
    assert bowel.at_rest
