"""Tools that press into the lattice: what they should feel, from the masses they hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify.elastic import DENSITY, SPACING, box, build
from verify.lattice_reference import Array, inner_force
from viscera.device import Device
from viscera.errors import StateError
from viscera.tissue.params import SAFETY, TICK
from viscera.tissue.tissue import Tissue


@dataclass(frozen=True)
class Capsule:
    """A tool at rest: both ends of its axis [m] (equal for a sphere), radius [m], friction."""

    ends: Array
    radius: float
    friction: float = 0.0

    def shift(self, by: Any) -> Capsule:
        return Capsule(self.ends + np.asarray(by, dtype=float), self.radius, self.friction)

    def distance(self, x: Array) -> Array:
        """From each point to the surface [m], negative inside."""
        a, axis = self.ends[0], self.ends[1] - self.ends[0]
        share = np.clip((x - a) @ axis / max(float(axis @ axis), 1e-30), 0.0, 1.0)
        return np.linalg.norm(x - a - share[:, None] * axis, axis=1) - self.radius


def sphere(center: Any, radius: float, friction: float = 0.0) -> Capsule:
    return Capsule(np.tile(np.asarray(center, dtype=float), (2, 1)), radius, friction)


def press(tissue: Tissue, tools: list[Capsule], ticks: int, *, drag: float, come_from: Any = None) -> None:
    """Holds the tools still until the tissue rests. `come_from` lets them travel there first, at even speed, for as
    many ticks again, from their place shifted by it [m]."""
    tissue.set_drag(drag)
    if come_from is not None:
        way = np.asarray(come_from, dtype=float)
        for tick in range(ticks):
            before, after = way * (1.0 - tick / ticks), way * (1.0 - (tick + 1) / ticks)
            _place(tissue, [(tool.shift(before), tool.shift(after)) for tool in tools])
            tissue.step()
    _place(tissue, [(tool, tool) for tool in tools])
    for _ in range(ticks):
        tissue.step()


def _place(tissue: Tissue, tools: list[tuple[Capsule, Capsule]]) -> None:
    for number, (start, end) in enumerate(tools):
        tissue.set_tool(number, start=start.ends, end=end.ends, radius=start.radius, friction=start.friction)


@dataclass(frozen=True)
class Felt:
    """Force [N] and torque about the tool's first point [N·m]: as told by the kernel, and as the float64 springs of the
    masses that the tool touches say."""

    force: Array
    torque: Array
    force_expected: Array
    torque_expected: Array
    touched: int


def feel(tissue: Tissue, tools: list[Capsule]) -> list[Felt]:
    """At rest, what the springs pull at a touched mass is what the tool bears: F = Σ f_i, T = Σ (x_i − a) × f_i."""
    u = tissue.displacement().astype(np.float64)
    x = tissue.rest_positions() + u
    pull = inner_force(tissue, u)
    felt = []
    for number, tool in enumerate(tools):
        touched = (tool.distance(x) < 1e-3 * SPACING) & ~tissue.params.anchored
        force, torque = (np.array(part) for part in tissue.tool_force(number))
        arms = np.cross(x[touched] - tool.ends[0], pull[touched])
        felt.append(Felt(force, torque, pull[touched].sum(axis=0), arms.sum(axis=0), int(touched.sum())))
    return felt


def feel_field(tissue: Tissue, place: Array) -> Felt:
    """The same for tool 0 as a distance field at rest, about `place`: whatever bears a net pull is touched."""
    u = tissue.displacement().astype(np.float64)
    pull = inner_force(tissue, u)
    strength = np.linalg.norm(pull, axis=1)
    touched = (strength > 1e-3 * strength[~tissue.params.anchored].max()) & ~tissue.params.anchored
    x = (tissue.rest_positions() + u)[touched]
    force, torque = (np.array(part) for part in tissue.tool_force(0))
    arms = np.cross(x - place, pull[touched])
    return Felt(force, torque, pull[touched].sum(axis=0), arms.sum(axis=0), int(touched.sum()))


def press_field(tissue: Tissue, poses: list[Array], friction: float, *, drag: float, rest: int) -> None:
    """Takes tool 0 along its poses (place, quaternion), one per tick, and holds the last one for `rest` ticks."""
    tissue.set_drag(drag)
    for start, end in zip([*poses, *[poses[-1]] * rest], [*poses[1:], *[poses[-1]] * (rest + 1)], strict=True):
        tissue.set_field_tool(0, start, end, friction)
        tissue.step()


def anchor_force(tissue: Tissue) -> Array:
    """What the springs pull at all anchors [N]."""
    u = tissue.displacement().astype(np.float64)
    return inner_force(tissue, u)[tissue.params.anchored].sum(axis=0)


# --- a still tool ----------------------------------------------------------------------------------------------------


def unrest(device: Device, *, viscosity: float, depth: float, share: float) -> float:
    """Standard deviation over mean of the force on a smooth sphere that keeps still, `depth` cells in.

    Infinite where the lattice breaks. `viscosity` is τ over Δt; the tissue is as stiff as a substep of `share` of the
    largest stable one carries.
    """
    nodes, tau = box(17, 17, 9), viscosity * TICK
    held = nodes[:, 2] == 0

    def made(young: float) -> Tissue:
        return build(device, nodes, young, anchored=held, viscous_time=tau, longest_viscous_time=tau)

    low, high = 1.0, 1e5
    for _ in range(25):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if made(middle).substeps == 1 else (low, middle)
    # That is the stiffest for a substep of SAFETY; a smaller share of the largest step takes a softer tissue.
    tissue = made(low * (share / SAFETY) ** 2)
    center = (0.03, 0.03, (8.0 - depth) * SPACING + 0.007)
    forces = []
    try:
        press(tissue, [sphere(center, 0.007)], 1_000, drag=20.0, come_from=(0.0, 0.0, SPACING))
        for _ in range(200):
            tissue.step()
            forces.append(tissue.tool_force(0)[0][2])
    except StateError:
        return math.inf
    return float(np.std(forces) / max(np.mean(forces), 1e-9))


# --- Hertz -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Indentation:
    """A smooth sphere pushed into a block whose bottom is held."""

    spacing: float
    depth: Array
    """[m], one per step"""
    force: Array
    """[N]"""
    hertz: Array
    """4/3·E*·√R·δ^1.5 [N]"""
    layer: Array
    """Hertz, corrected for the block's thickness [N]."""
    section: Array
    """Deformed masses of the middle plane at the last depth, (masses, 2): x, z [m]."""
    center: Array
    radius: float


def layer_factor(chi: Array | float, poisson: float) -> Any:
    """Force on a layer bonded to a rigid floor over that on a half-space; χ = √(Rδ)/thickness.

    Dimitriadis, Horkay, Maresca, Kachar and Chadwick, Biophys. J. 82 (2002), eq. 9.
    """
    a = -(1.2876 - 1.4678 * poisson + 1.3442 * poisson**2) / (1.0 - poisson)
    b = (0.6387 - 1.0277 * poisson + 1.5164 * poisson**2) / (1.0 - poisson)
    pi = math.pi
    return (
        1.0
        - 2.0 * a / pi * chi
        + 4.0 * a**2 / pi**2 * chi**2
        - 8.0 / pi**3 * (a**3 + 4.0 * pi**2 / 15.0 * b) * chi**3
        + 16.0 * a / pi**4 * (a**3 + 3.0 * pi**2 / 5.0 * b) * chi**4
    )


def indent(
    device: Device, *, across: int, high: int, radius: float, depths: NDArray[np.float64], **more: Any
) -> Indentation:
    """Pushes a sphere of `radius` cells into a block of so many cells, depth by depth [cells], and waits each time."""
    nodes = box(across + 1, across + 1, high + 1)
    tissue = build(device, nodes, anchored=nodes[:, 2] == 0, **more)
    spacing, poisson = tissue.params.spacing, tissue.params.first_poisson
    shear_speed = math.sqrt(tissue.young / (2.0 * (1.0 + poisson)) / DENSITY)
    slowest = math.pi / 2.0 * shear_speed / (high * spacing)
    middle = across * spacing / 2.0
    forces = []
    tool = sphere((middle, middle, (high + radius) * spacing), radius * spacing)
    ticks, before = math.ceil(6.0 / slowest / 1e-3), 0.0
    for depth in depths:
        way = (0.0, 0.0, (depth - before) * spacing)
        press(tissue, [tool.shift((0.0, 0.0, -depth * spacing))], ticks, drag=2.0 * slowest, come_from=way)
        forces.append(tissue.tool_force(0)[0][2])
        before = float(depth)
    delta, r = np.asarray(depths) * spacing, radius * spacing
    hertz = 4.0 / 3.0 * tissue.young / (1.0 - poisson**2) * np.sqrt(r) * delta**1.5
    plane = nodes[:, 1] == across // 2
    x = (tissue.rest_positions() + tissue.displacement())[plane][:, [0, 2]]
    return Indentation(
        spacing,
        delta,
        np.array(forces),
        hertz,
        hertz * layer_factor(np.sqrt(r * delta) / (high * spacing), poisson),
        x,
        np.array([middle, high * spacing + r - delta[-1]]),
        r,
    )
