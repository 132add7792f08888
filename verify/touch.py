"""Contact in a scenario's own world, against closed forms: a ball, a flat punch and a lying cylinder pressed into the
block of `palpation` without its nodule, through the world's tools.

The block is a layer of thickness h on a rigid floor. With E* = E/(1 − ν²) and Dimitriadis' or Hayes' factor κ for it:

    ball      F = κ·4/3·E*·√R·δ^1.5
    punch     F = κ·2·a·E*·δ
    cylinder  half width of the contact b = √(4·P·R/(π·E*)) under the load P per length
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from verify.contact import layer_factor
from verify.framework import Measured, figure
from viscera.device import open_device
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.parts import PartShape
from viscera.inputs import ToolInput
from viscera.instruments import Instrument, Pushes, kit
from viscera.instruments.instrument import Part
from viscera.scenarios import Scenario, Setting, make, palpation
from viscera.tissue.regions import set_relative_young
from viscera.tissue.tissue import Tissue
from viscera.world import Contents, World

AREA = "touch"
COMING, WAITING = 60, 60
"""Ticks in which a tool comes, and for which it stays."""
ABOVE = 2e-4
"""Where it starts, over the block [m]."""


@dataclass(frozen=True)
class Pressed:
    """A tool that rests in the block."""

    force: float
    """[N]"""
    world: World
    tissue: Tissue
    thick: float
    """h [m]"""
    across: float
    """Side of the block [m]."""

    @property
    def modulus(self) -> float:
        """E* [Pa]."""
        return self.tissue.young / (1.0 - self.poisson**2)

    @property
    def poisson(self) -> float:
        return self.tissue.params.first_poisson

    def cells(self, length: float) -> float:
        return length / self.tissue.params.spacing


def press(instrument: Instrument, middle: float, depth: float, detail: float) -> Pressed:
    """Presses a tool `depth` deep into the block, whose tip is `middle` above its lowest point [m]."""

    def build(setting: Setting) -> Contents:
        contents = palpation.build(setting)
        organ = contents.organs[0]
        set_relative_young(organ.tissue, np.ones(len(organ.tissue.params.nodes)))
        home = (0.0, 0.0, float(organ.body.mesh.bounds[1][2]) + middle + ABOVE)
        tools = kit.hand_out([instrument], home, friction=0.0)
        kept = [one for one in contents.parameters if one.parameter.name != palpation.DIFFICULTY.name]
        return replace(contents, tools=tools, script=None, systems=[], goals=(), levels=(), parameters=kept)

    world = make(Scenario("press", build), device=open_device("cpu"), detail=detail)
    organ = world.organs[0]
    top = float(organ.body.mesh.bounds[1][2]) + middle
    for tick in range(COMING + WAITING):
        share = min(1.0, (tick + 1) / COMING)
        world.apply(ToolInput(0, (0.0, 0.0, top + ABOVE - share * (ABOVE + depth)), direct=True))
        world.step()
    size = organ.body.mesh.size
    return Pressed(float(world.tools[0].force[2]), world, organ.tissue, float(size[2]), float(size[0]))


def ball_error(radius: float, depth: float, detail: float) -> tuple[float, float]:
    """Of the force, and the contact's radius in cells."""
    found = press(kit.probe(radius), radius, depth, detail)
    wide = math.sqrt(radius * depth)
    hertz = 4.0 / 3.0 * found.modulus * math.sqrt(radius) * depth**1.5
    error = found.force / (hertz * float(layer_factor(wide / found.thick, found.poisson))) - 1.0
    cells = found.cells(wide)
    found.world.close()
    return error, cells


def punch_error(radius: float, depth: float, detail: float) -> tuple[float, float]:
    """Of the force, and the contact's radius in cells."""
    shape = PartShape("punch", _cylinder(radius, 0.012), 0.0005, 0.004)
    punch = Instrument("punch", (Pushes(radius, solid=True),), solid=lambda: (shape,))
    found = press(punch, 0.0, depth, detail)
    expected = 2.0 * radius * found.modulus * depth * punch_factor(radius / found.thick, found.poisson)
    error, cells = found.force / expected - 1.0, found.cells(radius)
    found.world.close()
    return error, cells


def cylinder_error(radius: float, depth: float, detail: float) -> tuple[float, float]:
    """Of half the contact's width, and that in cells. The cylinder is longer than the block is wide."""
    axis = Part((-0.065, 0.0, radius), (0.065, 0.0, radius), radius)
    found = press(Instrument("roller", (Pushes(radius, offset=radius),), parts=(axis,)), 0.0, depth, detail)
    expected = math.sqrt(4.0 * found.force / found.across * radius / (math.pi * found.modulus))
    error, cells = _touched_width(found) / 2.0 / expected - 1.0, found.cells(expected)
    found.world.close()
    return error, cells


def _touched_width(found: Pressed) -> float:
    """Of the contact in the middle part of the cylinder [m]: points inside it, over how many there are per area."""
    touching = found.tissue.need_touching()
    samples, contacts = touching.samples, touching.contacts
    rest = samples.rest.numpy() + np.array(found.tissue.params.origin)
    coarse = samples.thickest.numpy() > 1.0
    upper = coarse & (rest[:, 2] > rest[:, 2].max() - 1e-4)
    inner = upper & (np.abs(rest[:, :2]) < 0.4 * found.across).all(axis=1)
    per_area = inner.sum() / (0.8 * found.across) ** 2
    met = contacts.met.numpy()[: contacts.counts.numpy()[1]]
    length = 0.4 * found.across
    return float((np.abs(rest[met, 0]) < 0.5 * length).sum() / per_area / length)


def punch_factor(chi: float, poisson: float) -> float:
    """Force on a flat punch of radius a on a layer of thickness a/χ bonded to a rigid floor, over that on a half-space.

    Hayes, Keer, Herrmann and Mockros (J. Biomech. 5, 1972): φ(t) + 2/π ∫₀¹ K(t, s) φ(s) ds = 1 and κ = ∫₀¹ φ dt with
    K = χ ∫₀^∞ (M(x) − 1) cos(xtχ) cos(xsχ) dx, where M is the layer's compliance over the half-space's under a
    sinusoidal load. Their table 1 has 1.281 and 1.683 for ν = ½ at χ = 0.2 and 0.4; this gives 1.281 and 1.684.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)
    far = 60.0
    x, dx = 0.5 * far * (nodes + 1.0), 0.5 * far * weights
    kappa = 3.0 - 4.0 * poisson
    layer = (2.0 * kappa * np.sinh(2.0 * x) - 4.0 * x) / (2.0 * kappa * np.cosh(2.0 * x) + 4.0 * x**2 + 1.0 + kappa**2)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t, dt = 0.5 * (nodes + 1.0), 0.5 * weights
    waves = np.cos(chi * np.outer(t, x))
    kernel = chi * (waves * ((layer - 1.0) * dx)) @ waves.T
    phi = np.linalg.solve(np.eye(len(t)) + 2.0 / math.pi * kernel * dt, np.ones(len(t)))
    return float(dt @ phi)


def _cylinder(radius: float, height: float, around: int = 96) -> TriangleMesh:
    """Upright, closed, from z = 0."""
    turn = np.linspace(0.0, 2.0 * math.pi, around, endpoint=False)
    ring = np.stack([radius * np.cos(turn), radius * np.sin(turn), 0.0 * turn], axis=1)
    top = (0.0, 0.0, height)
    vertices = np.concatenate([np.zeros((1, 3)), ring, ring + top, [top]])
    i = np.arange(around)
    j = (i + 1) % around
    low, high = 1, 1 + around
    bottom = np.stack([np.zeros_like(i), low + j, low + i], axis=1)
    sides = [np.stack([low + i, low + j, high + j], axis=1), np.stack([low + i, high + j, high + i], axis=1)]
    lid = np.stack([np.full_like(i, 2 * around + 1), high + i, high + j], axis=1)
    return TriangleMesh(vertices, np.concatenate([bottom, *sides, lid]).astype(np.int32), name="punch")


def _measured(fine: tuple[float, float], plain: tuple[float, float], what: str) -> Measured:
    error, cells = fine
    note = (
        f"{what}, {cells:.1f} cells: {100 * error:+.1f} %; at detail 1, {plain[1]:.1f} cells: {100 * plain[0]:+.0f} %"
    )
    return Measured(100 * abs(error), "%", abs(error) <= 0.1 and cells >= 4.0, note)


@cache
def _plain(kind: str) -> tuple[float, float]:
    """The same with the scenario's own counts and a tool of its probe's size."""
    press_it = {"ball": ball_error, "punch": punch_error, "cylinder": cylinder_error}[kind]
    return press_it(palpation.PROBE_RADIUS, 0.002, 1.0)


@figure(
    area=AREA, claim="in palpation a ball is felt as Hertz says, corrected for the block's thickness", bound="≤ 10 %"
)
def ball() -> Measured:
    return _measured(ball_error(0.032, 0.001, 23.0), _plain("ball"), "R = 32 mm, 1 mm deep, detail 23")


@figure(
    area=AREA, claim="in palpation a flat punch is felt as 2aE*δ, corrected for the block's thickness", bound="≤ 10 %"
)
def punch() -> Measured:
    return _measured(punch_error(0.0085, 0.001, 8.0), _plain("punch"), "a = 8.5 mm, 1 mm deep, detail 8")


@figure(area=AREA, claim="in palpation the contact of a lying cylinder is as wide as Hertz says", bound="≤ 10 %")
def cylinder() -> Measured:
    return _measured(cylinder_error(0.024, 0.0035, 8.0), _plain("cylinder"), "R = 24 mm, 3.5 mm deep, detail 8")
