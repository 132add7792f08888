"""The wall of a hollow organ as a thin lattice: rings of masses along a tube, springs between them, muscle around it.

Each mass has eight springs: along, around and both ways across. In a cell of a × b (along, around), L² = a² + b², with
Young's modulus E and thickness h,

    k_across = 3/16 Eh L²/(ab),   k_along = 9/8 Eh b/a − 3/8 Eh a/b,   k_around = 9/8 Eh a/b − 3/8 Eh b/a

make it isotropic with Poisson's ratio 1/3 (strain energy of the springs of a cell, compared with a sheet's; at a = b
they are 3/8, 3/4 and 3/4 Eh). Shorter than at rest they are slack, as a bowel's wall lies in folds then. The springs
around are muscle, too: they pull with T a for a tension T [N/m] of the wall.
Liquid and gas push with p A n, A n the area around a mass. All lies in a bed of other organs: −b A (x − x₀) holds it,
−η A dx/dt slows it down, so much that inertia does not count:

    η A dx/dt = Σ k max(1 − L/|d|, 0) d + T a Σ d/|d| + p A n − b A (x − x₀)

A long tube of radius r, held along, then opens by p/(b + 9/8 Eh/r²), narrows by p/b, and muscle of T = b f r²
closes it by f r (`closing_tension`). The tube of p = 0 is its resting shape, as gas holds it open: p is what is more
than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError, StateError
from viscera.states import Arrays, copy_in, copy_out

wp.set_module_options({"enable_backward": False})

FloatArray = NDArray[np.float64]

SHARE = 0.8
"""Of the longest stable substep that is taken."""
STRONGEST = 250.0
"""Tension of the muscle that substeps are made for [N/m]."""
FEWEST = 6
"""Masses around."""
SHARED = 64
"""Masses that a core takes at a time: a lattice is small, and has many substeps."""
SHORTEST = 0.5
"""Cells are counted no shorter than this share of the mean: those on the inner side of a bend would want substeps of
their own."""


@dataclass(frozen=True)
class HollowParams:
    """A colon: 50 kPa and 2 mm; the bed and its time are tuned for appearance."""

    young: float = 50.0e3
    """E [Pa]"""
    thickness: float = 2.0e-3
    """h [m]"""
    bed: float = 3.0e5
    """b [Pa/m]: what lies around pushes back by so much."""
    time: float = 0.2
    """η/b [s]: in which the bed lets go."""

    def __post_init__(self) -> None:
        for name in ("young", "thickness", "bed", "time"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")


@wp.struct
class Rings:
    """The lattice as kernels read it: mass number = ring · sides + side."""

    rings: int
    sides: int
    closed: int
    """Whether the last ring is followed by the first, a period farther on; else both ends are held."""
    period: wp.vec3
    """[m]"""
    young: float
    """E h [N/m]"""
    bed: float
    """[Pa/m]"""
    slow: float
    """η [Pa·s/m]"""
    size: wp.array(dtype=wp.vec2)
    """a and b of each mass, along and around [m]."""
    place: wp.array(dtype=wp.vec3)
    """At rest [m]."""
    full: wp.array(dtype=float)
    """a b over the area that the neighbours span at rest: a polygon's is smaller than a circle's."""


@wp.func
def neighbour(r: Rings, places: wp.array(dtype=wp.vec3), ring: int, side: int) -> wp.vec3:
    """Place of a mass; rings beyond the ends are a period on."""
    shift = wp.vec3(0.0, 0.0, 0.0)
    i = ring
    if ring < 0:
        i = ring + r.rings
        shift = -r.period
    elif ring >= r.rings:
        i = ring - r.rings
        shift = r.period
    j = (side + r.sides) % r.sides
    return places[i * r.sides + j] + shift


@wp.func
def spring(
    r: Rings, now: wp.array(dtype=wp.vec3), tension: wp.array(dtype=float), i: int, j: int, di: int, dj: int
) -> wp.vec3:
    """On mass (i, j) by the one at (i + di, j + dj) [N]; the same on the other, the other way."""
    if r.closed == 0 and (i + di < 0 or i + di >= r.rings):
        return wp.vec3(0.0, 0.0, 0.0)
    own = i * r.sides + j
    other = ((i + di + r.rings) % r.rings) * r.sides + (j + dj + r.sides) % r.sides
    size = 0.5 * (r.size[own] + r.size[other])
    a = size[0]
    b = size[1]
    stiff = 0.1875 * r.young * (a * a + b * b) / (a * b)
    pull = float(0.0)
    if dj == 0:
        stiff = wp.max(r.young * (1.125 * b / a - 0.375 * a / b), 0.0)
    elif di == 0:
        stiff = wp.max(r.young * (1.125 * a / b - 0.375 * b / a), 0.0)
        pull = 0.5 * (tension[own] + tension[other]) * a
    d = neighbour(r, now, i + di, j + dj) - now[own]
    at_rest = wp.length(neighbour(r, r.place, i + di, j + dj) - r.place[own])
    length = wp.max(wp.length(d), 1.0e-6)
    return (stiff * wp.max(length - at_rest, 0.0) + pull) / length * d


@wp.kernel
def give_way(
    first: int,
    # params
    r: Rings,
    dt: float,
    # in
    bed_place: wp.array(dtype=wp.vec3),
    pressure: wp.array(dtype=float),
    tension: wp.array(dtype=float),
    now: wp.array(dtype=wp.vec3),
    # out
    next_out: wp.array(dtype=wp.vec3),
):
    """One substep of each mass."""
    n = first + wp.tid()
    i = n // r.sides
    j = n % r.sides
    if r.closed == 0 and (i == 0 or i == r.rings - 1):
        next_out[n] = bed_place[n]
        return
    force = wp.vec3(0.0, 0.0, 0.0)
    for s in range(2):
        way = 2 * s - 1
        force += spring(r, now, tension, i, j, way, 0)
        force += spring(r, now, tension, i, j, 0, way)
        force += spring(r, now, tension, i, j, way, way)
        force += spring(r, now, tension, i, j, way, -way)
    lengthwise = neighbour(r, now, i + 1, j) - neighbour(r, now, i - 1, j)
    sideways = neighbour(r, now, i, j + 1) - neighbour(r, now, i, j - 1)
    force += pressure[n] * 0.25 * r.full[n] * wp.cross(sideways, lengthwise)
    area = r.size[n][0] * r.size[n][1]
    force -= r.bed * area * (now[n] - bed_place[n])
    next_out[n] = now[n] + dt / (r.slow * area) * force


@wp.kernel
def join_pressures(
    first: int,
    # params
    most: float,
    # in
    gas: wp.array(dtype=float),
    liquid: wp.array(dtype=float),
    # out
    pressure_out: wp.array(dtype=float),
):
    n = first + wp.tid()
    pressure_out[n] = gas[0] + wp.min(liquid[n], most)


@dataclass(eq=False)
class Hollow:
    """Made by `make_hollow`."""

    params: HollowParams
    device: Device
    view: Any
    """`Rings`"""
    place: Any
    """Of each mass now [m], vec3."""
    bed: Any
    """x₀: where the bed holds it [m], vec3; write it to lay the organ elsewhere."""
    pressure: Any
    """More than at rest [Pa], float per mass; negative where there is less."""
    tension: Any
    """Of the muscle [N/m], float per mass."""
    longest: float
    """Substep that is stable [s]."""
    spare: Any


def make_hollow(
    rest: ArrayLike, params: HollowParams | None = None, *, period: ArrayLike | None = None, device: Device
) -> Hollow:
    """From places at rest [m], (rings, sides, 3), sides counted so that around × along points outward. With a `period`
    [m] the first ring follows the last; else both are held."""
    p = params or HollowParams()
    places = np.asarray(rest, dtype=np.float64)
    if places.ndim != 3 or places.shape[0] < 3 or places.shape[1] < FEWEST or places.shape[2] != 3:
        raise InputError(
            f"a lattice of shape {places.shape} is no tube.", f"Give (rings ≥ 3, sides ≥ {FEWEST}, 3) places in metres."
        )
    if not np.isfinite(places).all():
        raise InputError("places of the lattice are not finite.", "Give numbers, in metres.")
    shift = np.zeros(3) if period is None else np.asarray(period, dtype=np.float64)
    along, around = _ways(places, shift, period is not None)
    a, b = _lengths(places, shift, period is not None)
    a = np.maximum(a, SHORTEST * a.mean())
    spanned = 0.25 * np.linalg.norm(np.cross(around, along), axis=-1)
    view: Any = Rings()
    view.rings, view.sides, view.closed = places.shape[0], places.shape[1], int(period is not None)
    view.period = wp.vec3(*shift.tolist())
    view.young, view.bed, view.slow = p.young * p.thickness, p.bed, p.bed * p.time

    def given(values: FloatArray, dtype: Any) -> Any:
        return wp.array(np.ascontiguousarray(values, dtype=np.float32), dtype=dtype, device=device.warp)

    flat = places.reshape(-1, 3)
    view.size = given(np.stack([a, b], axis=-1).reshape(-1, 2), wp.vec2)
    view.place = given(flat, wp.vec3)
    view.full = given((a * b / np.maximum(spanned, 1e-12)).ravel(), wp.float32)
    stiff = p.young * p.thickness * (1.125 * (a / b + b / a) + 0.75 * (a**2 + b**2) / (a * b)) + STRONGEST * a / b
    longest = float((2.0 * view.slow * a * b / (2.0 * stiff + p.bed * a * b)).min())
    zeros = np.zeros(len(flat))
    return Hollow(
        p, device, view, given(flat, wp.vec3), given(flat, wp.vec3), given(zeros, wp.float32),
        given(zeros, wp.float32), longest, given(flat, wp.vec3),
    )  # fmt: skip


def _ways(places: FloatArray, shift: FloatArray, closed: bool) -> tuple[FloatArray, FloatArray]:
    """From the ring before to the one after, and from the side before to the one after, of each mass [m]."""
    after, before = np.roll(places, -1, axis=0), np.roll(places, 1, axis=0)
    if closed:
        after[-1] += shift
        before[0] -= shift
    else:
        after[-1], before[0] = 2.0 * places[-1] - places[-2], 2.0 * places[0] - places[1]
    return after - before, np.roll(places, -1, axis=1) - np.roll(places, 1, axis=1)


def _lengths(places: FloatArray, shift: FloatArray, closed: bool) -> tuple[FloatArray, FloatArray]:
    """a and b of each mass [m]. Around it is an arc, not its chord."""
    along, _ = _ways(places, shift, closed)
    chord = np.linalg.norm(np.roll(places, -1, axis=1) - places, axis=-1)
    sides = places.shape[1]
    arc = 0.5 * (chord + np.roll(chord, 1, axis=1)) * (math.pi / sides) / math.sin(math.pi / sides)
    return 0.5 * np.linalg.norm(along, axis=-1), arc


def closing_tension(params: HollowParams, radius: FloatArray, share: FloatArray) -> FloatArray:
    """Muscle [N/m] that closes a tube of a radius [m] by a share of it, 0 to less than 1."""
    return params.bed * share * radius**2


def substeps(hollow: Hollow, time: float) -> int:
    """How many a time [s] takes; even, since two arrays take turns."""
    return 2 * math.ceil(0.5 * time / (SHARE * hollow.longest))


def press_hollow(stage: Stage, hollow: Hollow, gas: Any, liquid: Any, most: float) -> None:
    """Records its pressure [Pa]: one of gas (float, shape (1,)), and a liquid's at each mass, of which no more than
    `most` counts."""
    stage.launch(join_pressures, len(hollow.pressure), [most, gas, liquid, hollow.pressure])


def step_hollow(stage: Stage, hollow: Hollow, time: float) -> None:
    """Records a time [s]: the wall gives way to pressure and muscle as they are written."""
    h, count = hollow, substeps(hollow, time)
    n = len(h.place)
    for number in range(count):
        now, then = (h.place, h.spare) if number % 2 == 0 else (h.spare, h.place)
        stage.launch(give_way, n, [h.view, time / count, h.bed, h.pressure, h.tension, now, then], block=SHARED)


def check_hollow(hollow: Hollow, tick: int = 0) -> None:
    """Raises StateError where a mass is no longer at a finite place. Waits for the device."""
    if not np.isfinite(hollow.place.numpy()).all():
        raise StateError("the wall's lattice is not finite.", "Take less pressure or muscle.", stage="bowel", tick=tick)


def save_hollow(hollow: Hollow) -> Arrays:
    return copy_out(_kept(hollow))


def load_hollow(hollow: Hollow, arrays: Arrays) -> None:
    copy_in("hollow", _kept(hollow), arrays)


def _kept(hollow: Hollow) -> dict[str, Any]:
    return {"place": hollow.place, "bed": hollow.bed, "pressure": hollow.pressure, "tension": hollow.tension}
