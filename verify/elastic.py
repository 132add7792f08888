"""Elastic experiments on the lattice, of any size: the tests run them small, lattice.py at full size.

Each pulls, bends, pokes or rings a body made by `make_lattice` and returns what a laboratory would measure. Statics is
reached by letting the body come to rest under drag.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.lattice_reference import Array, bulk_modulus_added, inner_force, pulls, springs_of
from viscera.device import Device
from viscera.timing import TICK
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import NodeIndex
from viscera.tissue.tissue import Tissue

DENSITY = 1_060.0
"""[kg/m³]"""
SPACING = 0.004
"""[m]"""
YOUNG = 5_000.0
"""[Pa]; one substep per tick carries it at this spacing."""


def box(*counts: int) -> NDArray[np.int32]:
    """Nodes of a block with so many masses along x, y, z."""
    axes = [np.arange(count, dtype=np.int32) for count in counts]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def build(
    device: Device, nodes: NDArray[np.int32], young: float = YOUNG, *, native: bool = True, **more: Any
) -> Tissue:
    """A lattice of one material; `more` goes to LatticeParams."""
    options: dict[str, Any] = {
        "spacing": SPACING,
        "origin": (0.0, 0.0, 0.0),
        "anchored": np.zeros(len(nodes), dtype=bool),
        "material": Material("test", young, DENSITY),
        "stiffest": young,
        "poisson": 0.25,
        "viscous_time": 0.0,
    }
    return make_lattice(device, LatticeParams(nodes=nodes, **(options | more)), native=native)


def settle(tissue: Tissue, ticks: int, drag: float) -> None:
    """Lets the body come to rest: `ticks` under a drag [1/s] near the critical one of its slowest mode."""
    tissue.set_drag(drag)
    for _ in range(ticks):
        tissue.step()


# --- stretch ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stretched:
    """A bar pulled along its axis by a small strain."""

    masses: int
    young: float
    """Stress over strain in the core [Pa]; the stress is the springs' virial there."""
    young_outside: float
    """End force over (volume/length) over strain [Pa]: what a testing machine shows."""
    poisson: tuple[float, float]
    """Across, in two directions."""
    shear: float
    """Largest shear strain in the core over the strain along the bar; an isotropic bar has none."""


def bar_nodes(axis: tuple[int, int, int], length: float, width: float) -> tuple[NDArray[np.int32], Array]:
    """A square bar of whole cells along any lattice direction, and its frame (rows: along, across, across).

    Lengths in cells. The masses are the corners of the cells whose centres are inside, so the volume is the number of
    cells, and sides that no lattice plane follows are staircases.
    """
    along = np.array(axis, dtype=float) / np.linalg.norm(axis)
    candidates = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, -1.0, 0.0]])
    across = next(one for one in candidates if one @ along == 0.0)
    across = across / np.linalg.norm(across)
    frame = np.stack([along, across, np.cross(along, across)])
    reach = math.ceil(length + width)
    cells = np.stack(np.meshgrid(*[np.arange(-reach, reach)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    # A hair off centre, so that no cell's centre lies on the border.
    place = (cells + 0.5) @ frame.T + 1e-6
    inside = (np.abs(place[:, 0]) < length / 2) & (np.abs(place[:, 1:]) < width / 2).all(axis=1)
    corners = (cells[inside][:, None, :] + box(2, 2, 2)[None]).reshape(-1, 3)
    return np.unique(corners, axis=0).astype(np.int32), frame


def stretch(
    device: Device, axis: tuple[int, int, int], *, length: float, width: float, strain: float = 1e-3, **more: Any
) -> Stretched:
    """Pulls a bar by its two ends, which are held across too, and measures in its core, away from ends and sides."""
    nodes, frame = bar_nodes(axis, length, width)
    s = nodes @ frame.T  # along, across, across, in cells from the centre
    held = np.abs(s[:, 0]) > length / 2 - 1.0
    tissue = build(device, nodes, anchored=held, **more)
    poisson = tissue.params.first_poisson
    start = s * np.array([1.0, -poisson, -poisson]) * strain * SPACING
    tissue.set_motion(start @ frame, np.zeros_like(start))
    speed = math.sqrt(tissue.young / DENSITY)
    slowest = math.pi * speed / (length * SPACING)
    settle(tissue, ticks=math.ceil(10.0 / slowest / TICK), drag=2.0 * slowest)
    u = tissue.displacement().astype(np.float64)
    core = (np.abs(s[:, 0]) < length / 2 - 1.2 * width) & (np.abs(s[:, 1:]) < width / 2 - 2.0).all(axis=1)
    gradient = np.linalg.lstsq(np.c_[s[core] * SPACING, np.ones(core.sum())], u[core] @ frame.T, rcond=None)[0][:3]
    strains = 0.5 * (gradient + gradient.T)
    growth = float(np.linalg.det(np.eye(3) + gradient)) - 1.0
    stress = _core_stress(tissue, u, core, frame) + bulk_modulus_added(tissue) * growth
    force = inner_force(tissue, u) @ frame.T
    pull = force[held & (s[:, 0] < 0), 0].sum()
    area = whole_cells(nodes) / length * SPACING**2
    shear = np.abs(strains - np.diag(np.diag(strains))).max()
    return Stretched(
        len(nodes),
        float(stress / strains[0, 0]),
        float(pull / area / strains[0, 0]),
        (float(-strains[1, 1] / strains[0, 0]), float(-strains[2, 2] / strains[0, 0])),
        float(shear / strains[0, 0]),
    )


def whole_cells(nodes: NDArray[np.int32]) -> int:
    """Cells with a mass at all eight corners: the body's volume in dx³."""
    index = NodeIndex(nodes)
    return int(index.look_up(index.whole_cells(), nodes).sum())


def _core_stress(tissue: Tissue, u: Array, core: NDArray[np.bool_], frame: Array) -> float:
    """The springs' stress along the bar [Pa]: ½ Σ r·F over the springs of the core's masses, over their volume."""
    springs = springs_of(tissue)
    d = (springs.rest + u[springs.second] - u[springs.first]) @ frame[0]
    work = d * (pulls(springs, u) @ frame[0])
    count = core[springs.first].astype(float) + core[springs.second]
    return float(0.5 * (count * work).sum() / (core.sum() * tissue.params.spacing**3))


# --- a beam ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beam:
    """A square cantilever: what was measured beside what Timoshenko's beam does."""

    cells: int
    """Of thickness."""
    masses: int
    deflection: float
    """Of the tip under gravity [m]."""
    deflection_theory: float
    frequency: float
    """Of the first mode [Hz]."""
    frequency_theory: float
    axis: Array
    """Deflection along the axis [m], one row per cross-section: x, measured, theory."""

    @property
    def deflection_error(self) -> float:
        return self.deflection / self.deflection_theory - 1.0

    @property
    def frequency_error(self) -> float:
        return self.frequency / self.frequency_theory - 1.0


@dataclass(frozen=True)
class BeamTheory:
    """Timoshenko's beam of square section, clamped at x = 0, free at x = L.

    Shear counts (1 % of the deflection and 2 % of the first frequency's square at L = 10 h); κ = 10(1+ν)/(12+11ν) for
    a rectangle (Cowper, J. Appl. Mech. 33, 1966).
    """

    length: float
    thickness: float
    young: float
    poisson: float = 0.25

    @property
    def bending(self) -> float:
        """EI [N·m²]"""
        return self.young * self.thickness**4 / 12.0

    @property
    def shearing(self) -> float:
        """κGA [N]"""
        kappa = 10.0 * (1.0 + self.poisson) / (12.0 + 11.0 * self.poisson)
        return kappa * self.young / (2.0 * (1.0 + self.poisson)) * self.thickness**2

    def sag(self, x: Array, gravity: float) -> tuple[Array, Array]:
        """Deflection [m] and rotation of the cross-section under the beam's weight."""
        q, length = DENSITY * self.thickness**2 * gravity, self.length
        bent = q / (24.0 * self.bending) * (6.0 * length**2 * x**2 - 4.0 * length * x**3 + x**4)
        turned = q / (6.0 * self.bending) * (3.0 * length**2 * x - 3.0 * length * x**2 + x**3)
        return bent + q / self.shearing * (length * x - x**2 / 2.0), turned

    def frequency(self) -> float:
        """First frequency [Hz]: the root of the 2 × 2 determinant of M and Q at the free end."""

        def free_end(omega: float) -> float:
            mass, turn = DENSITY * self.thickness**2 * omega**2, DENSITY * self.thickness**4 / 12.0 * omega**2
            # d/dx of (deflection, rotation, M, Q)
            ahead = np.array(
                [[0, 1, 0, 1 / self.shearing], [0, 0, 1 / self.bending, 0], [0, -turn, 0, -1], [-mass, 0, 0, 0]]
            )
            values, vectors = np.linalg.eig(ahead)
            whole = (vectors * np.exp(values * self.length)) @ np.linalg.inv(vectors)
            return float(np.linalg.det(whole[2:, 2:]).real)

        euler = 3.516015 / self.length**2 * math.sqrt(self.bending / (DENSITY * self.thickness**2))
        low, high = 0.5 * euler, 1.1 * euler
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if free_end(low) * free_end(middle) > 0 else (low, middle)
        return low / (2.0 * math.pi)


def cantilever(device: Device, cells: int, *, slenderness: int = 10, sag: float = 0.01, **more: Any) -> Beam:
    """Lets a cantilever sag by `sag` of its length, then switches gravity off and times its swing."""
    length, thickness = slenderness * cells * SPACING, cells * SPACING
    nodes = box(slenderness * cells + 1, cells + 1, cells + 1)
    tissue = build(device, nodes, anchored=nodes[:, 0] == 0, **more)
    theory = BeamTheory(length, thickness, tissue.young)
    tip, _ = theory.sag(np.array([length]), 1.0)
    gravity = sag * length / float(tip[0])
    x = nodes[:, 0] * SPACING
    down, turned = theory.sag(x, gravity)
    height = nodes[:, 2] * SPACING - thickness / 2.0
    tissue.set_motion(np.stack([turned * height, np.zeros_like(x), -down], axis=1), np.zeros((len(nodes), 3)))
    tissue.set_gravity((0.0, 0.0, -gravity))
    slowest = 2.0 * math.pi * theory.frequency()
    settle(tissue, ticks=math.ceil(7.0 / slowest / TICK), drag=1.8 * slowest)
    sections = -tissue.displacement()[:, 2].astype(np.float64).reshape(slenderness * cells + 1, -1).mean(axis=1)
    along = np.arange(len(sections)) * SPACING
    tissue.set_gravity((0.0, 0.0, 0.0))
    tissue.set_drag(0.0)
    shape = tissue.mass * theory.sag(x, 1.0)[0]
    period = swing_period(tissue, shape, 1.0 / theory.frequency())
    return Beam(
        cells,
        len(nodes),
        float(sections[-1]),
        sag * length,
        1.0 / period,
        theory.frequency(),
        np.stack([along, sections, theory.sag(along, gravity)[0]], axis=1),
    )


def swing_period(tissue: Tissue, shape: Array, guess: float) -> float:
    """Period [s] of the swing along z, weighted with `shape`, from its first two zero crossings: half a period apart.

    The weight is near the first mode, which keeps the others out."""
    stride = max(1, round(guess / 400.0 / TICK))
    crossings: list[float] = []
    ticks, before = 0, float(shape @ tissue.displacement()[:, 2])
    while len(crossings) < 2:
        for _ in range(stride):
            tissue.step()
        ticks += stride
        now = float(shape @ tissue.displacement()[:, 2])
        if before * now <= 0.0:
            crossings.append((ticks - stride * now / (now - before)) * TICK)
        if ticks * TICK > 3.0 * guess:
            raise RuntimeError(f"the beam crossed its rest position {len(crossings)} times in three expected periods")
        before = now
    return 2.0 * (crossings[1] - crossings[0])


# --- ringing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ringing:
    omega: float
    """Of the undamped mode [rad/s]."""
    damping: float
    """ζ: share of the critical damping."""


def ring(device: Device, *, cells: int = 32, width: int = 4, periods: float = 3.0, **more: Any) -> Ringing:
    """First longitudinal mode of a free bar: starts as a cosine, and is read as the pole of what follows."""
    nodes = box(cells + 1, width + 1, width + 1)
    tissue = build(device, nodes, **more)
    wave = np.cos(math.pi * nodes[:, 0] / cells)
    start = np.zeros((len(nodes), 3))
    start[:, 0] = 1e-3 * SPACING * cells * wave
    tissue.set_motion(start, np.zeros_like(start))
    expected = math.pi / (cells * SPACING) * math.sqrt(tissue.young / DENSITY)
    stride = max(1, round(0.4 / expected / TICK))
    weight = tissue.mass * wave
    trace = [float(weight @ tissue.displacement()[:, 0])]
    for _ in range(math.ceil(periods * 2.0 * math.pi / expected / (stride * TICK))):
        for _ in range(stride):
            tissue.step()
        trace.append(float(weight @ tissue.displacement()[:, 0]))
    q = np.array(trace)
    # q⁺ = s·q − d·q⁻ for one damped mode: d = e^(−2ζωΔt), s = 2√d·cos(ω√(1−ζ²)Δt).
    s, d = np.linalg.lstsq(np.stack([q[1:-1], -q[:-2]], axis=1), q[2:], rcond=None)[0]
    step = stride * TICK
    decay, turn = -math.log(d) / (2.0 * step), math.acos(s / (2.0 * math.sqrt(d))) / step
    omega = math.hypot(decay, turn)
    return Ringing(omega, decay / omega)
