"""Tissue as a solid, at full size: elasticity, beams, ringing, contact, energy. See docs/tissue.md for the tables."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import numpy as np

from verify import tissue_pictures as pictures
from verify.contact import (
    Capsule,
    Felt,
    Indentation,
    anchor_force,
    feel,
    feel_field,
    indent,
    press,
    press_field,
    sphere,
    unrest,
)
from verify.elastic import SPACING, YOUNG, Beam, Stretched, box, build, cantilever, ring, stretch
from verify.framework import Measured, figure
from verify.lattice_reference import Array, algorithm_1, highest_frequency, inner_force, springs_of, total_energy
from viscera.anatomy import liver
from viscera.device import Device, open_device
from viscera.geometry.distance import distance_field
from viscera.geometry.primitives import capsule as capsule_mesh
from viscera.geometry.voxels import voxelise
from viscera.timing import TICK
from viscera.tissue.tissue import Tissue

AREA = "lattice"
AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
DIAGONALS = ((1, 1, 0), (1, 1, 1))
FAR = (0.6, -0.8, 0.3)
"""A metre from the origin [m]."""


@cache
def _device() -> Device:
    return open_device()


def _off(found: Array, expected: Array) -> float:
    """Length of the difference over the expected length, in per cent."""
    return 100.0 * float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


# --- elasticity ------------------------------------------------------------------------------------------------------


@cache
def _bar(axis: tuple[int, int, int], young: float = YOUNG, poisson: float = 0.25) -> Stretched:
    return stretch(_device(), axis, length=64, width=16, young=young, poisson=poisson)


def _name(axis: tuple[int, int, int]) -> str:
    return f"({axis[0]}{axis[1]}{axis[2]})"


@figure(area=AREA, claim="a stretched bar along x, y, z has the requested Young's modulus", bound="≤ 3 %")
def young_along_axes() -> Measured:
    errors = [100 * (_bar(axis).young_outside / YOUNG - 1) for axis in AXES]
    worst = max(map(abs, errors))
    return Measured(
        worst, "%", worst <= 3, f"{', '.join(f'{e:+.2f} %' for e in errors)}; {_bar(AXES[0]).masses} masses"
    )


@figure(area=AREA, claim="bars cut out along diagonals have the requested Young's modulus", bound="≤ 3 %")
def young_along_diagonals() -> Measured:
    errors = {axis: 100 * (_bar(axis).young_outside / YOUNG - 1) for axis in DIAGONALS}
    core = {axis: 100 * (_bar(axis).young / YOUNG - 1) for axis in DIAGONALS}
    worst = max(map(abs, errors.values()))
    detail = ", ".join(f"{_name(a)} {errors[a]:+.2f} % (core {core[a]:+.2f} %)" for a in DIAGONALS)
    return Measured(worst, "%", worst <= 3, f"end force over volume/length, 16 cells wide: {detail}")


@figure(
    area=AREA, claim="Poisson's ratio of springs alone is 0.25 in three directions and along diagonals", bound="± 0.01"
)
def poisson_of_springs() -> Measured:
    ratios = {axis: _bar(axis).poisson for axis in (*AXES, *DIAGONALS)}
    worst = max(abs(ratio - 0.25) for pair in ratios.values() for ratio in pair)
    detail = ", ".join(f"{_name(a)} {r[0]:.4f} {r[1]:.4f}" for a, r in ratios.items())
    return Measured(worst, "", worst <= 0.01, detail)


def _volume_bars() -> dict[tuple[float, tuple[int, int, int]], Stretched]:
    youngs = {0.35: 3_000.0, 0.45: 1_500.0, 0.49: 400.0}  # what one substep carries
    return {(nu, axis): _bar(axis, young, nu) for nu, young in youngs.items() for axis in ((1, 0, 0), (1, 1, 0))}


@figure(area=AREA, claim="volume preservation gives the requested Poisson's ratio (0.35, 0.45, 0.49)", bound="± 0.01")
def requested_poisson() -> Measured:
    bars = _volume_bars()
    worst = max(abs(ratio - nu) for (nu, _), bar in bars.items() for ratio in bar.poisson)
    detail = ", ".join(f"{nu} {_name(a)} {b.poisson[0]:.4f} {b.poisson[1]:.4f}" for (nu, a), b in bars.items())
    return Measured(worst, "", worst <= 0.01, detail)


@figure(area=AREA, claim="… and still the requested Young's modulus", bound="≤ 3 %")
def young_with_volume() -> Measured:
    youngs = {0.35: 3_000.0, 0.45: 1_500.0, 0.49: 400.0}
    errors = {key: 100 * (bar.young_outside / youngs[key[0]] - 1) for key, bar in _volume_bars().items()}
    worst = max(map(abs, errors.values()))
    detail = ", ".join(f"{nu} {_name(axis)} {e:+.2f} %" for (nu, axis), e in errors.items())
    return Measured(worst, "%", worst <= 3, detail)


# --- beams -----------------------------------------------------------------------------------------------------------


@cache
def _beams() -> tuple[Beam, ...]:
    beams = tuple(cantilever(_device(), cells) for cells in (4, 8, 16))
    pictures.draw_beams(beams)
    return beams


@figure(area=AREA, claim="a cantilever of 16 cells' thickness sags as beam theory says", bound="≤ 5 %")
def beam_deflection() -> Measured:
    errors = {beam.cells: 100 * beam.deflection_error for beam in _beams()}
    detail = "Timoshenko, L = 10 h; at " + ", ".join(f"{n} cells {e:+.2f} %" for n, e in errors.items())
    falls = abs(errors[16]) < abs(errors[8]) < abs(errors[4])
    return Measured(abs(errors[16]), "%", abs(errors[16]) <= 5 and falls, detail)


@figure(area=AREA, claim="its first eigenfrequency is beam theory's", bound="≤ 5 %")
def beam_frequency() -> Measured:
    errors = {beam.cells: 100 * beam.frequency_error for beam in _beams()}
    detail = "Timoshenko, L = 10 h; at " + ", ".join(f"{n} cells {e:+.2f} %" for n, e in errors.items())
    falls = abs(errors[16]) < abs(errors[8]) < abs(errors[4])
    return Measured(abs(errors[16]), "%", abs(errors[16]) <= 5 and falls, detail)


@figure(area=AREA, claim="a bar rings off with ζ = ωτ/2 (viscosity) and ζ = α/2ω (drag)", bound="≤ 3 %")
def damping() -> Measured:
    errors = []
    for tau in (1e-3, 2e-3, 4e-3):
        found = ring(_device(), cells=64, width=8, viscous_time=tau, longest_viscous_time=tau)
        errors.append(
            (f"τ {1e3 * tau:g} ms, ζ {found.damping:.3f}", 100 * (found.damping / (0.5 * found.omega * tau) - 1))
        )
    for drag in (2.0, 5.0, 10.0):
        found = ring(_device(), cells=64, width=8, drag=drag)
        errors.append((f"α {drag:g}/s, ζ {found.damping:.3f}", 100 * (found.damping / (0.5 * drag / found.omega) - 1)))
    worst = max(abs(error) for _, error in errors)
    return Measured(worst, "%", worst <= 3, ", ".join(f"{name} {error:+.1f} %" for name, error in errors))


# --- against the serial algorithm ------------------------------------------------------------------------------------


def damaged(origin: tuple[float, float, float], size: tuple[int, int, int], young: float) -> Tissue:
    """A ragged lattice of five stiffnesses with a tenth of its springs cut and masses 5 % of a cell out of place."""
    rng = np.random.default_rng(4)
    nodes = box(*size)
    nodes = nodes[rng.random(len(nodes)) < 0.9]
    relative = np.array([0.5, 1.0, 2.0, 3.0, 4.0])[rng.integers(0, 5, len(nodes))]
    options: dict[str, Any] = {"anchored": nodes[:, 2] == 0, "origin": origin, "relative_young": relative}
    tissue = build(_device(), nodes, young, **options)
    table = tissue.constants.stiffness.numpy()
    table[rng.random(len(table)) < 0.1] = 0.0
    tissue.constants.stiffness.assign(table)
    start = rng.normal(0.0, 0.05 * SPACING, (len(nodes), 3))
    start[tissue.params.anchored] = 0.0
    tissue.set_motion(start, np.zeros_like(start))
    return tissue


@figure(
    area=AREA, claim="one step's acceleration against Algorithm 1 in float64, five stiffnesses, cuts", bound="≤ 1e-5"
)
def acceleration() -> Measured:
    worst = 0.0
    for origin in ((0.0, 0.0, 0.0), FAR):
        tissue = damaged(origin, (60, 40, 30), 500.0)
        expected = inner_force(tissue, tissue.displacement().astype(np.float64)) / tissue.mass[:, None]
        expected[tissue.params.anchored] = 0.0
        tissue.step()
        worst = max(worst, float(np.abs(tissue.velocities() / TICK - expected).max() / np.abs(expected).max()))
    return Measured(worst, "", worst <= 1e-5, f"{len(tissue.mass)} masses, at the origin and a metre away")


@figure(
    area=AREA,
    claim="positions after 100 steps against Algorithm 1 in float64, five stiffnesses, cuts",
    bound="≤ 1e-4 dx",
)
def positions() -> Measured:
    worst = 0.0
    for origin in ((0.0, 0.0, 0.0), FAR):
        tissue = damaged(origin, (25, 11, 9), 500.0)
        expected = algorithm_1(tissue, tissue.displacement().astype(np.float64), 100)
        for _ in range(100):
            tissue.step()
        off = np.abs(tissue.rest_positions() + tissue.displacement() - expected).max() / SPACING
        worst = max(worst, float(off))
    return Measured(worst, "dx", worst <= 1e-4, f"{len(tissue.mass)} masses, at the origin and a metre away")


@figure(
    area=AREA, claim="energy of an undamped lattice over 10 000 steps, cuts, a metre from the origin", bound="< 0.1 %"
)
def energy() -> Measured:
    tissue = damaged(FAR, (41, 21, 17), 50.0)
    springs, trace = springs_of(tissue), []
    # It starts all elastic; Verlet's energy differs by (ωΔt)² until motion and stretch share it.
    for _ in range(100):
        tissue.step()
    for tick in range(10_000):
        tissue.step()
        if tick % 20 == 0:
            trace.append(total_energy(tissue, springs))
    found = np.array(trace)
    pictures.draw_energy(found / found[:25].mean() - 1.0, 20)
    drift = 100 * abs(found[-25:].mean() / found[:25].mean() - 1)
    return Measured(drift, "%", drift < 0.1, f"{len(tissue.mass)} masses; means over the first and last 500 steps")


@figure(
    area=AREA,
    claim="Δt·ω_max where one substep is only just enough: box, plate, sponge, organ; ν 0.25, 0.45",
    bound="< 2",
)
def stable_step() -> Measured:
    rng, block = np.random.default_rng(0), box(9, 9, 9)
    organ = voxelise(liver(), 0.012).nodes.astype(np.int32)
    shapes = {"box": block, "plate": box(12, 12, 2), "sponge": block[rng.random(len(block)) < 0.8], "liver": organ}
    found = {}
    for (name, nodes), poisson in itertools.product(shapes.items(), (0.25, 0.45)):
        low, high = 1.0, 1e5
        for _ in range(30):
            middle = math.sqrt(low * high)
            enough = build(_device(), nodes, middle, poisson=poisson).substeps == 1
            low, high = (middle, high) if enough else (low, middle)
        found[f"{name} ν {poisson}"] = TICK * highest_frequency(build(_device(), nodes, low, poisson=poisson))
    worst = max(found.values())
    return Measured(worst, "", worst < 2.0, ", ".join(f"{name} {value:.2f}" for name, value in found.items()))


# --- contact ---------------------------------------------------------------------------------------------------------

HIGH = 16
"""Cells of the block's height."""


def _block(**more: Any) -> Tissue:
    nodes, tau = box(49, 33, HIGH + 1), 0.5e-3
    options: dict[str, Any] = {"anchored": nodes[:, 2] == 0, "viscous_time": tau, "longest_viscous_time": tau}
    return build(_device(), nodes, 3_000.0, **(options | more))


@cache
def _two_tools() -> tuple[Felt, Felt, Array]:
    tissue, top = _block(), HIGH * SPACING
    slanted = np.array([[0.095, 0.05, top + 0.006], [0.15, 0.085, top + 0.002]])
    tools = [sphere((0.045, 0.061, top + 0.007), 0.011, 0.2), Capsule(slanted, 0.007, 0.2)]
    press(tissue, tools, 2_500, drag=25.0, come_from=(0.0, 0.0, 0.006))
    first, second = feel(tissue, tools)
    return first, second, anchor_force(tissue)


@figure(area=AREA, claim="reaction of a sphere in a block against the sum over the anchors, at rest", bound="≤ 1 %")
def reaction() -> Measured:
    tissue, top = _block(), HIGH * SPACING
    tool = sphere((0.097, 0.063, top + 0.007), 0.011)
    press(tissue, [tool], 2_500, drag=25.0, come_from=(0.0, 0.0, 0.006))
    (felt,) = feel(tissue, [tool])
    error = _off(felt.force, -anchor_force(tissue))
    press(tissue, [tool.shift((0.0, 0.0, 0.03))], 1, drag=25.0)
    left = float(np.abs(np.array(tissue.tool_force(0))).max())
    detail = f"{felt.force[2]:.4f} N by {felt.touched} masses; {left:g} N when it has left"
    return Measured(error, "%", error <= 1 and left == 0.0, detail)


@figure(
    area=AREA,
    claim="torque on an off-centre capsule against Σ r × f in float64, a second tool beside it",
    bound="≤ 1 %",
)
def torque() -> Measured:
    ball, felt, _ = _two_tools()
    errors = _off(felt.torque, felt.torque_expected), _off(felt.force, felt.force_expected)
    detail = f"{1e3 * np.linalg.norm(felt.torque):.3f} N·mm, {felt.touched} masses; force {errors[1]:.3f} %"
    return Measured(errors[0], "%", max(errors) <= 1 and ball.touched > 0, detail)


@figure(area=AREA, claim="two tools at once: the sum of both against the sum over the anchors", bound="≤ 1 %")
def two_tools() -> Measured:
    ball, felt, anchors = _two_tools()
    error = _off(ball.force + felt.force, -anchors)
    return Measured(error, "%", error <= 1, f"{ball.force[2]:.4f} N and {felt.force[2]:.4f} N upward")


@figure(area=AREA, claim="torque on an instrument given as a distance field against Σ r × f in float64", bound="≤ 1 %")
def field_torque() -> Measured:
    tissue, top = _block(), HIGH * SPACING
    mesh = capsule_mesh(0.007, 0.05)
    tissue.set_field(0, distance_field(mesh, 0.001, 0.006))
    turn, place = np.array([0.0, math.sin(0.85), 0.0, math.cos(0.85)]), np.array([0.06, 0.06, top + 0.006])
    poses = [np.r_[place + np.array([0.0, 0.0, height]), turn] for height in np.linspace(0.008, 0.0, 1_500)]
    press_field(tissue, poses, 0.2, drag=25.0, rest=2_000)
    felt = feel_field(tissue, place)
    errors = _off(felt.torque, felt.torque_expected), _off(felt.force, felt.force_expected)
    detail = f"{1e3 * np.linalg.norm(felt.torque):.3f} N·mm, {felt.touched} masses; force {errors[1]:.3f} %"
    return Measured(errors[0], "%", max(errors) <= 1, detail)


@figure(area=AREA, claim="Coulomb's ratio of a capsule that slides along its axis, µ = 0.3", bound="± 0.03")
def sliding_friction() -> Measured:
    tissue, top = _block(), HIGH * SPACING
    tool = Capsule(np.array([[0.03, 0.065, top + 0.005], [0.11, 0.065, top + 0.005]]), 0.009, 0.3)
    press(tissue, [tool], 1_000, drag=25.0, come_from=(0.0, 0.0, 0.005))
    ratios = []
    for _ in range(4_000):
        moved = tool.shift((5e-6, 0.0, 0.0))
        tissue.set_tool(0, start=tool.ends, end=moved.ends, radius=tool.radius, friction=tool.friction)
        tissue.step()
        force = tissue.tool_force(0)[0]
        ratios.append(-force[0] / force[2])
        tool = moved
    ratio = float(np.mean(ratios[2_000:]))
    return Measured(
        ratio, "", abs(ratio - 0.3) <= 0.03, f"20 mm at 5 mm/s; over the last 10 mm, at most {max(ratios):.3f}"
    )


@cache
def _indentation() -> Indentation:
    found = indent(_device(), across=80, high=32, radius=24.0, depths=np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0]))
    pictures.draw_indentation(found)
    return found


@figure(
    area=AREA, claim="a sphere pressed into a block follows Hertz, corrected for the block's thickness", bound="≤ 10 %"
)
def hertz() -> Measured:
    found = _indentation()
    errors = 100 * (found.force / found.layer - 1)
    worst = float(np.abs(errors).max())
    depths = (
        f"{depth:g} cells {error:+.1f} %" for depth, error in zip(found.depth / found.spacing, errors, strict=True)
    )
    return Measured(worst, "%", worst <= 10, f"R = 24 cells; {', '.join(depths)}")


@figure(
    area=AREA, claim="force on a tool that keeps still a cell deep, with τ = Δt/2: deviation over mean", bound="≤ 1e-4"
)
def still_force() -> Measured:
    rows = {
        (v, d): unrest(_device(), viscosity=v, depth=d, share=0.8) for v in (0.0, 0.1, 0.5) for d in (0.75, 1.0, 1.5)
    }
    quiet = max(value for (viscosity, _), value in rows.items() if viscosity == 0.5)
    loud = max(value for (viscosity, _), value in rows.items() if viscosity == 0.0)
    return Measured(quiet, "", quiet <= 1e-4, f"to 1.5 cells; without viscosity up to {loud:.2g}")
