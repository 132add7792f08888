"""Boundary particles: walls that push through points spread over them, instead of by contact.

Lennard-Jones (Andersson eq. 3.7), as acceleration [m/s²] at distance r < r₀ from each point, nothing beyond:

    a = D [(r₀/r)⁴ − (r₀/r)²] r⃗/r²,    D = 5 g H for fluid of depth H

Seven-point Gauss (Müller et al. 2004; Grahn eq. 4.29–4.32): points x_j of Radon's rule with weights w_j (exact to fifth
degree) on each triangle of area A, as force on a particle,

    f = Σ A Σ_j w_j τ(|p − x_j|) (p − x_j)/|p − x_j|,
    τ(r) = k [(h − r)⁴ − (h − r₀)² (h − r)²] / [h² r₀ (2h − r₀)]   r < h, else 0

which repels below r₀ and holds on (adhesion) between r₀ and h. Above a flat wall at height z it is 2π z ∫_z^h τ dr per
area, if triangles are small against h.

Friction: the points take part in the fluid's viscosity (Grahn §4.4.4, eq. 3.15) as volumes V = A w_j s, s the depth of
the layer they stand for,

    dv/dt = (µ/ρ) Σ V (v_wall − v) ∇²W = κ (v̄ − v),   ∇²W = 45/(πh⁶) (h − r),

taken implicitly: κ/(1 + κ dt) stops a particle and never reverses it.

Differs from the sources in: 3.7 is zero beyond r₀ (it attracts there as printed); 4.30 and 4.32 lack the direction. r
is held above r₀/5, where 3.7 would throw particles off. These walls are soft: a fast particle passes them. Where
nobody may leave, add contacts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.neighbors import grid as ng
from viscera.neighbors.cells import GridView, cell_of, row_range
from viscera.water.boundary.walls import Walls
from viscera.water.state import Fluid, Live

wp.set_module_options({"enable_backward": False})

Rule = Literal["lennard-jones", "gauss"]

SOFT = wp.constant(0.2)
"""Of r₀: distances below count as this."""

_ROOT = math.sqrt(15.0)
_A, _B = (6.0 - _ROOT) / 21.0, (6.0 + _ROOT) / 21.0
RADON = np.array(
    [
        [1 / 3, 1 / 3, 1 / 3, 9 / 40],
        *[[1 - 2 * _A if k == c else _A for c in range(3)] + [(155 - _ROOT) / 1200] for k in range(3)],
        *[[1 - 2 * _B if k == c else _B for c in range(3)] + [(155 + _ROOT) / 1200] for k in range(3)],
    ]
)
"""Barycentric coordinates and weights of the seven-point rule (Radon 1948)."""

MOST_POINTS = 2**22

LAYER = 0.5
"""Depth s of the layer that points stand for in friction, over h: as much as lies behind a wall that is h/2 away."""


@dataclass(frozen=True)
class BoundaryParams:
    """How boundary particles push. `gauss` needs `stiffness`, `lennard-jones` needs `strength`."""

    rule: Rule
    rest: float
    """r₀, the distance that particles keep [m]."""
    reach: float | None = None
    """h of `gauss`: where the force ends [m]; twice r₀ unless told."""
    strength: float = 0.0
    """D of `lennard-jones`: 5 g H for a fluid of depth H [m²/s²]."""
    stiffness: float = 0.0
    """k of `gauss` [Pa]; ρ g H holds up a depth H."""
    viscosity: float = 0.0
    """µ between wall and fluid [Pa·s]; 0 is a smooth wall."""

    def __post_init__(self) -> None:
        if self.rule not in ("lennard-jones", "gauss"):
            raise InputError(f"rule = {self.rule!r} is not known.", "Allowed are lennard-jones and gauss.")
        needed = "strength" if self.rule == "lennard-jones" else "stiffness"
        for name in ("rest", needed, "viscosity"):
            value = getattr(self, name)
            if not (math.isfinite(value) and (value > 0.0 or (name == "viscosity" and value == 0.0))):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")
        if not (math.isfinite(self.radius) and self.radius >= self.rest):
            raise InputError(f"reach = {self.reach} is not possible.", f"It must be at least rest, {self.rest:g} m.")

    @property
    def radius(self) -> float:
        """Where the force ends [m]."""
        if self.rule == "lennard-jones":
            return self.rest
        return 2.0 * self.rest if self.reach is None else self.reach


@wp.struct
class Push:
    """The force's numbers."""

    gauss: int
    rest: float
    reach: float
    scale: float
    """D [m²/s²], or k/(h² r₀ (2h − r₀)) [Pa/m⁴]."""
    drag: float
    """µ s 45/(πh⁶): times area, 1/ρ and (h − r) it is a point's share of κ [Pa·s/m⁵]."""


@wp.func
def traction(push: Push, r: float) -> float:
    """τ(r) [Pa]."""
    near = push.reach - r
    gap = push.reach - push.rest
    return push.scale * near * near * (near * near - gap * gap)


@wp.func
def repulsion(push: Push, r: float) -> float:
    """Length of the Lennard-Jones acceleration [m/s²]; zero beyond r₀."""
    pushed = float(0.0)
    if r < push.rest:
        near = wp.max(r, SOFT * push.rest)
        q = push.rest / near
        pushed = push.scale * (q * q * q * q - q * q) / near
    return pushed


@wp.kernel
def place_points(
    first: int,
    # in
    vertices: wp.array(dtype=wp.vec3),
    vertex_velocity: wp.array(dtype=wp.vec3),
    indices: wp.array2d(dtype=wp.int32),
    face: wp.array(dtype=wp.int32),
    weights: wp.array(dtype=wp.vec4),
    # out
    position_out: wp.array(dtype=wp.vec3),
    state_out: wp.array(dtype=wp.vec4),
):
    """Where the points are, how fast (x, y, z) and for which area (w) each stands."""
    i = first + wp.tid()
    t = face[i]
    w = weights[i]
    a = indices[t, 0]
    b = indices[t, 1]
    c = indices[t, 2]
    position_out[i] = w[0] * vertices[a] + w[1] * vertices[b] + w[2] * vertices[c]
    v = w[0] * vertex_velocity[a] + w[1] * vertex_velocity[b] + w[2] * vertex_velocity[c]
    area = 0.5 * wp.length(wp.cross(vertices[b] - vertices[a], vertices[c] - vertices[a]))
    state_out[i] = wp.vec4(v[0], v[1], v[2], w[3] * area)


@wp.kernel
def push_particles(
    first: int,
    # params
    push: Push,
    points_grid: GridView,
    live: wp.array(dtype=Live),
    # in
    count: wp.array(dtype=wp.int32),
    points: wp.array(dtype=wp.vec3),
    points_state: wp.array(dtype=wp.vec4),
    place: wp.array(dtype=wp.vec4),
    motion: wp.array(dtype=wp.vec4),
    tag: wp.array(dtype=wp.int32),
    # out
    rate_out: wp.array(dtype=wp.vec4),
):
    s = first + wp.tid()
    if s >= count[0] or tag[s] < 0:
        return
    here = wp.vec3(place[s][0], place[s][1], place[s][2])
    own = wp.vec3(motion[s][0], motion[s][1], motion[s][2])
    numbers = live[0]
    pushed = wp.vec3(0.0, 0.0, 0.0)
    drag = float(0.0)
    carried = wp.vec3(0.0, 0.0, 0.0)
    cell = cell_of(points_grid, here)
    for row in range(points_grid.rows):
        begin, end = row_range(points_grid, cell, row)
        for t in range(begin, end):
            away = here - points[t]
            r = wp.length(away)
            if r < push.reach and r > 0.0:
                other = points_state[t]
                if push.gauss != 0:
                    pushed += (other[3] * traction(push, r) / (numbers.mass * r)) * away
                else:
                    pushed += (repulsion(push, r) / r) * away
                if push.drag > 0.0:
                    share = push.drag * motion[s][3] * other[3] * (push.reach - r)
                    drag += share
                    carried += share * wp.vec3(other[0], other[1], other[2])
    if drag > 0.0:
        # Implicit, so that friction stops and never reverses.
        pushed += (carried - drag * own) / (1.0 + drag * numbers.dt)
    rate_out[s] = rate_out[s] + wp.vec4(pushed[0], pushed[1], pushed[2], 0.0)


def sample_triangles(
    mesh: TriangleMesh, rule: Rule, spacing: float | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Triangle of each boundary particle, shape (n,), and its barycentric coordinates and share of area, shape (n, 4).

    With a `spacing` [m], triangles are cut into n² equal ones until their edges are no longer: for `gauss` each gets
    seven points, for `lennard-jones` one, in its middle. Without it `gauss` takes triangles as they are.
    """
    edges = np.linalg.norm(mesh.corners - np.roll(mesh.corners, 1, axis=1), axis=2).max(axis=1)
    if rule == "lennard-jones" and spacing is None:
        raise InputError("lennard-jones points need a spacing.", "Half of r₀ makes a smooth wall.")
    if spacing is not None and not (math.isfinite(spacing) and spacing > 0.0):
        raise InputError(f"spacing = {spacing} is not possible.", "It must be a finite length above 0, in metres.")
    parts = np.ones(len(edges), dtype=np.int64) if spacing is None else np.ceil(edges / spacing).astype(np.int64)
    per_part = len(RADON) if rule == "gauss" else 1
    if (parts**2).sum() * per_part > MOST_POINTS:
        raise InputError(
            f"{int((parts**2).sum()) * per_part} boundary particles for {mesh.name}.",
            f"Allowed are {MOST_POINTS}: choose a wider spacing.",
        )
    points = RADON if rule == "gauss" else np.array([[1 / 3, 1 / 3, 1 / 3, 1.0]])
    faces, weights = [], []
    for n in np.unique(parts):
        cut = _cut(int(n), points)
        chosen = np.flatnonzero(parts == n)
        faces.append(np.repeat(chosen, len(cut)))
        weights.append(np.tile(cut, (len(chosen), 1)))
    return np.concatenate(faces).astype(np.int32), np.concatenate(weights)


def _cut(n: int, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """`points` of a rule on each of the n² equal triangles of a triangle."""
    rows = []
    for i in range(n):
        for j in range(n - i):
            corners = [np.array([[i, j], [i + 1, j], [i, j + 1]])]
            if i + j < n - 1:
                corners.append(np.array([[i + 1, j + 1], [i, j + 1], [i + 1, j]]))
            for corner in corners:
                b = np.column_stack([n - corner.sum(axis=1), corner]) / n
                rows.append(np.column_stack([points[:, :3] @ b, points[:, 3] / n**2]))
    return np.concatenate(rows)


class BoundaryParticles:
    """Points on a mesh that push a fluid; one of its `boundaries`."""

    adds_density = False
    adds_force = True

    def __init__(
        self,
        fluid: Fluid,
        mesh: TriangleMesh,
        params: BoundaryParams,
        *,
        spacing: float | None = None,
        walls: Walls | None = None,
    ) -> None:
        """Points on triangles cut to `spacing` [m]: half of where the force ends unless told. With `walls` made from
        the same mesh, the points follow them where they move."""
        if spacing is None:
            spacing = 0.5 * params.radius
        face, weights = sample_triangles(mesh, params.rule, spacing)
        device = fluid.device
        self.params, self.walls, self.count = params, walls, len(face)
        self.push = _numbers(params)
        self.vertices, self.velocity = _sources(mesh, walls, device)
        self.indices = wp.array(mesh.triangles, dtype=wp.int32, device=device.warp)
        self.face = wp.array(face, dtype=wp.int32, device=device.warp)
        self.weights = wp.array(weights, dtype=wp.vec4, device=device.warp)
        self.points = wp.zeros(self.count, dtype=wp.vec3, device=device.warp)
        self.state, self.sorted_state = (wp.zeros(self.count, dtype=wp.vec4, device=device.warp) for _ in range(2))
        low, high = mesh.bounds
        room = params.radius if walls is None else 4 * params.radius
        self.grid_params, self.grid = ng.make_grid(
            self.count, tuple(low - room), tuple(high + room), params.radius, 3, device
        )
        self._place(Stage(device, 0, 1, None))

    def _place(self, stage: Stage) -> None:
        source = [self.vertices, self.velocity, self.indices, self.face, self.weights]
        stage.launch(place_points, self.count, [*source, self.points, self.state])
        ng.build(stage, self.grid_params, self.grid, self.points)
        ng.to_sorted(stage, self.grid_params, self.grid, self.state, self.sorted_state)

    def before_step(self, stage: Stage, fluid: Fluid) -> None:
        if self.walls is not None:
            self._place(stage)

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        points = [fluid.count, self.grid.position, self.sorted_state]
        particles = [fluid.place, fluid.motion, fluid.sorted_tag, fluid.rate]
        stage.launch(
            push_particles,
            fluid.capacity,
            [self.push, self.grid.view, fluid.live, *points, *particles],
        )

    def contact(self, stage: Stage, fluid: Fluid) -> None:
        pass


def _numbers(params: BoundaryParams) -> Push:
    push = Push()
    h, r0 = params.radius, params.rest
    push.gauss = int(params.rule == "gauss")
    push.rest, push.reach = r0, h
    push.scale = params.stiffness / (h**2 * r0 * (2 * h - r0)) if push.gauss else params.strength
    push.drag = params.viscosity * LAYER * h * 45.0 / (math.pi * h**6)
    return push


def _sources(mesh: TriangleMesh, walls: Walls | None, device: Device) -> tuple[wp.array, wp.array]:
    if walls is None:
        still = wp.zeros(len(mesh.vertices), dtype=wp.vec3, device=device.warp)
        return wp.array(mesh.vertices, dtype=wp.vec3, device=device.warp), still
    if len(walls.vertices) != len(mesh.vertices):
        raise InputError("the walls have another mesh.", "Give the mesh they were made from.")
    return walls.vertices, walls.velocity
