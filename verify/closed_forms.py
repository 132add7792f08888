"""The lattice against closed forms, longer and larger than the tests do it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.framework import Measured, figure
from viscera.device import open_device
from viscera.timing import TICK
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import DIRECTIONS, axis_stiffness
from viscera.tissue.tissue import Tissue

AREA = "foundation"
DENSITY = 1060.0
SPACING = 0.004
GRAVITY = 9.81


def _box(*counts: int) -> NDArray[np.int32]:
    axes = [np.arange(count, dtype=np.int32) for count in counts]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def _lattice(nodes: NDArray[np.int32], young: float, anchored: NDArray[np.bool_] | None = None, **more: Any) -> Tissue:
    options: dict[str, Any] = {"poisson": 0.25, "viscous_time": 0.0} | more
    params = LatticeParams(
        nodes=nodes,
        spacing=SPACING,
        origin=(0.0, 0.0, 0.0),
        anchored=np.zeros(len(nodes), dtype=bool) if anchored is None else anchored,
        material=Material("test", young, DENSITY),
        stiffest=young,
        **options,
    )
    return make_lattice(open_device(), params)


def _stiffness(tissue: Tissue, direction: tuple[int, int, int]) -> float:
    """Of the spring from the first mass in this direction, read back from what the kernel uses [N/m]."""
    table = tissue.constants.stiffness.numpy().astype(np.float64).reshape(len(DIRECTIONS), -1)
    share = table[DIRECTIONS.index(direction), tissue.layout.slot_of_node[0]]
    return float(share * axis_stiffness(tissue.young, SPACING))


@figure(area=AREA, claim="two masses on a spring oscillate with 2π√(m/2k)", bound="≤ 0.1 %")
def spring_period() -> Measured:
    tissue = _lattice(_box(2, 1, 1), young=30.0)
    apart = np.array([[-1e-5, 0.0, 0.0], [1e-5, 0.0, 0.0]])
    tissue.set_motion(apart, np.zeros_like(apart))
    x = np.empty(20_000)
    for tick in range(len(x)):
        tissue.step()
        x[tick] = tissue.displacement()[1, 0]
    up = np.nonzero((x[:-1] < 0) & (x[1:] >= 0))[0]
    crossings = (up + x[up] / (x[up] - x[up + 1])) * TICK
    period = (crossings[-1] - crossings[0]) / (len(crossings) - 1)
    exact = 2 * math.pi * math.sqrt(tissue.mass[0] / (2 * _stiffness(tissue, (1, 0, 0))))
    error = 100 * abs(period / exact - 1)
    return Measured(error, "%", error <= 0.1, f"{len(crossings) - 1} periods of {1e3 * exact:.2f} ms")


@figure(area=AREA, claim="a chain hanging under gravity is as long as statics says", bound="≤ 0.1 %")
def hanging_chain() -> Measured:
    count = 24
    nodes = _box(1, 1, count)
    tissue = _lattice(nodes, 3000.0, anchored=nodes[:, 2] == count - 1, drag=8.0)
    tissue.set_gravity((0.0, 0.0, -GRAVITY))
    for _ in range(20_000):
        tissue.step()
    z = tissue.rest_positions()[:, 2] + tissue.displacement()[:, 2]
    stretch = np.arange(1, count) * tissue.mass[0] * GRAVITY / _stiffness(tissue, (0, 0, 1))
    exact = (count - 1) * SPACING + float(stretch.sum())
    length = float(z.max() - z.min())
    error = 100 * abs(length / exact - 1)
    rest = 1e3 * (count - 1) * SPACING
    return Measured(error, "%", error <= 0.1, f"{count} masses, {rest:.0f} mm at rest, {1e3 * length:.2f} mm hanging")


@figure(area=AREA, claim="total momentum without anchors changes, of the sum of |m·v|, in 10 s", bound="≤ 1e-5")
def momentum() -> Measured:
    nodes = _box(25, 25, 9)
    tissue = _lattice(nodes, 3000.0, viscous_time=1e-4, longest_viscous_time=1e-4)
    rng = np.random.default_rng(1)
    tissue.set_motion(rng.normal(0, 1e-4, (len(nodes), 3)), rng.normal(0, 0.05, (len(nodes), 3)))
    before = tissue.mass @ tissue.velocities().astype(np.float64)
    scale = float((tissue.mass @ np.abs(tissue.velocities().astype(np.float64))).max())
    for _ in range(10_000):
        tissue.step()
    change = float(np.abs(tissue.mass @ tissue.velocities().astype(np.float64) - before).max() / scale)
    return Measured(change, "", change <= 1e-5, f"{len(nodes)} masses, {10_000 * tissue.substeps} substeps")


@figure(area=AREA, claim="dt = 0 changes no velocity, and no position beyond its last bit", bound="≤ 1e-10 m")
def no_time() -> Measured:
    nodes = _box(25, 25, 9)
    tissue = _lattice(nodes, 3000.0)
    rng = np.random.default_rng(2)
    tissue.set_motion(rng.normal(0, 1e-4, (len(nodes), 3)), rng.normal(0, 0.05, (len(nodes), 3)))
    u, v = tissue.displacement().copy(), tissue.velocities().copy()
    tissue.constants.dt = 0.0
    for _ in range(100):
        tissue.step()
    moved = float(np.abs(tissue.displacement() - u).max())
    faster = float(np.abs(tissue.velocities() - v).max())
    return Measured(moved, "m", moved <= 1e-10 and faster == 0.0, f"100 ticks; velocities differ by {faster:g} m/s")


@figure(area=AREA, claim="a lattice of 105 000 masses under a tool is the same on 1, 2 and 3 cores", bound="equal")
def cores() -> Measured:
    nodes = _box(60, 50, 35)
    results = []
    for count in (1, 2, 3):
        device = open_device("cpu", cores=count)
        params = LatticeParams(
            nodes, SPACING, (0.0, 0.0, 0.0), nodes[:, 2] == 0, Material("test", 3000.0, DENSITY), stiffest=3000.0,
            poisson=0.25, viscous_time=0.0,
        )  # fmt: skip
        tissue = make_lattice(device, params)
        tip = np.tile(np.array([[0.1201, 0.1007, 0.138]]), (2, 1))
        tissue.set_tool(0, start=tip, end=tip, radius=0.006, friction=0.2)
        for _ in range(100):
            tissue.step()
        results.append((tissue.displacement().tobytes(), tissue.tool_force(0)))
        device.close()
    equal = results[0] == results[1] == results[2]
    force = float(np.linalg.norm(results[0][1][0]))
    return Measured("equal" if equal else "different", "", equal and force > 0, f"after 100 ticks, {force:.3g} N")
