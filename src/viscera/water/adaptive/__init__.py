"""Water that is fine where it matters: particles split and merge while it runs.

    pond = water.make(FluidParams(..., sizes=Sizes(2, 2)), ..., capacity=adaptive.most(params, n), device=device)
    fine = adaptive.make(pond, AdaptiveParams())
    adaptive.look(fine, camera, aspect, gaze=(0.4, 0.6))
    adaptive.step(stage, fine, "gaze")                      # after water.step, or after several

After Elmasdotter (2020): sizes.py has how particles of several sizes meet, wishes.py who wishes to change, matching.py
who merges with whom, changing.py what becomes of them. All of it runs on the device, and gives the same on every run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

import numpy as np
import warp as wp

from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.water.adaptive.changing import child_figure, launch_changes, room_for
from viscera.water.adaptive.character import Character, find_field, make_character
from viscera.water.adaptive.matching import Merging, find_groups, in_groups
from viscera.water.adaptive.wishes import CRITERIA, Eye, Rules, clear_asked, count_wishes, find_wishes, thin_wishes
from viscera.water.params import FluidParams
from viscera.water.state import Fluid

Criterion = Literal["gaze", "surface", "gaze and surface"]

VIEW_SHARE = 0.05
"""Of the view's area that the gaze disc covers (Elmasdotter §3.6.4, after Guenter et al. 2012)."""


MERGE_CUBE = 3.0
"""Side of the cubes whose particles merge in one go, where many wish it, over the largest spacing."""


class Seen(Protocol):
    """A camera, as `view.Camera`."""

    @property
    def position(self) -> tuple[float, float, float]: ...
    @property
    def target(self) -> tuple[float, float, float]: ...
    @property
    def up(self) -> tuple[float, float, float]: ...
    @property
    def field_of_view(self) -> float: ...


@dataclass(frozen=True)
class AdaptiveParams:
    """Table 3.2 of the source, and what it leaves open."""

    alpha: float = 0.8
    beta: float = 0.01
    gamma: float = 0.1
    """Weights of distance, pressure and neighbours in the character field."""
    threshold: float = 0.225
    """T"""
    steep: float = 1.0
    """ν: |n| h from which a particle is at a surface."""
    reach: int = 4
    """Cells up to which the distance to a surface is found."""
    hysteresis: float = 1.15
    """How much farther from the gaze than it splits a particle must be to merge."""
    ring: float = 0.5
    """Width of the rings about the gaze disc in which sizes are graded, in radii of it."""
    depth: float = 0.08
    """Deepest that gaze and surface together refine [m]."""
    spread: float = 0.4
    """Distance of children from their middle, over their own spacing."""
    merge_reach: float = 1.2
    """Farthest that particles which merge are apart, over their own spacing."""
    pace: float = 1.0
    """Share of all particles that may split in one step, and as many that may merge; 1 is all."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not math.isfinite(value) or value < 0.0:
                raise InputError(f"{one.name} = {value} is not possible.", "Give a finite number of 0 or more.")
        if self.hysteresis < 1.0 or self.ring <= 0.0 or self.alpha + self.beta + self.gamma <= 0.0 or self.reach < 1:
            raise InputError(
                "hysteresis below 1, no ring, no weights or no reach are not possible.",
                "Give a hysteresis and a reach of at least 1, and a ring and a weight above 0.",
            )


@dataclass(eq=False)
class Adaptive:
    """Made by `make`."""

    fluid: Fluid
    params: AdaptiveParams
    eye: Port
    """One `Eye`."""
    merging: Merging
    character: Character
    room: Any
    tables: list[wp.array]
    radii: wp.array
    counts: list[wp.array]
    asked: wp.array
    """How many wished to split, and to merge."""


def most(params: FluidParams, particles: int) -> int:
    """Room for so many of the largest size, all split."""
    if params.sizes is None:
        raise InputError("a fluid of one size cannot split.", "Make it with FluidParams(..., sizes=Sizes(2, 2)).")
    return particles * params.sizes.quanta(0)


def make(fluid: Fluid, params: AdaptiveParams | None = None) -> Adaptive:
    """For a fluid of several sizes."""
    p, sizes, own = fluid.params, fluid.params.sizes, params or AdaptiveParams()
    if sizes is None:
        raise InputError("a fluid of one size cannot split.", "Make it with FluidParams(..., sizes=Sizes(2, 2)).")
    apart = own.merge_reach * np.asarray(p.spacings)
    side = fluid.grid_params.side
    if apart[1] > side:
        raise InputError(
            f"merge_reach = {own.merge_reach:g} looks {apart[1]:g} m far, but cells are {side:g} m wide.",
            f"Give at most {side / p.spacings[1]:.3g}.",
        )
    device, n = fluid.device, fluid.capacity

    def numbers(values: Any) -> wp.array:
        return wp.array(np.asarray(values, dtype=np.float32), dtype=float, device=device.warp)

    def integers() -> wp.array:
        return wp.zeros(n, dtype=wp.int32, device=device.warp)

    merging = Merging()
    merging.children, merging.reach2 = sizes.children, numbers(apart**2)
    merging.position, merging.level = fluid.grid.position, fluid.extra["level"]
    merging.wish, merging.leader, merging.follower = (integers() for _ in range(3))
    merging.waiting, merging.ordinal = integers(), integers()
    figure = wp.array(child_figure(sizes.children, p.dimension), dtype=wp.vec3, device=device.warp)
    masses = p.mass / float(sizes.children) ** np.arange(sizes.count)
    tables = [figure, numbers(own.spread * np.asarray(p.spacings)), numbers(masses)]
    eye = device.port(1, Eye)
    made = Adaptive(
        fluid, own, eye, merging, make_character(fluid), room_for(fluid), tables, numbers(particle_radii(p)),
        [*(integers() for _ in range(3)), wp.zeros(3, dtype=wp.int32, device=device.warp)],
        wp.zeros(2, dtype=wp.int32, device=device.warp),
    )  # fmt: skip
    look(made, _Ahead(), 1.0, gaze=(0.5, 0.5))
    return made


def particle_radii(params: FluidParams) -> np.ndarray:
    """Of a ball with the volume of each size [m]."""
    volume = np.asarray(params.spacings) ** params.dimension
    return np.sqrt(volume / math.pi) if params.dimension == 2 else np.cbrt(3.0 * volume / (4.0 * math.pi))


def look(
    fine: Adaptive, camera: Seen, aspect: float, gaze: tuple[float, float], *, radius: float | None = None
) -> None:
    """Somebody looks through `camera` at `gaze`, 0 to 1 from the top left of a view `aspect` times as wide as high.
    `radius` of the disc is in heights of the view; without, it covers 5 % of its area. Takes effect with the next
    `step`."""
    if not (math.isfinite(aspect) and aspect > 0.0) or not all(map(math.isfinite, gaze)):
        raise InputError(f"aspect {aspect} and gaze {gaze} are not possible.", "Give finite numbers, aspect above 0.")
    right, up, ahead = axes_of(camera)
    host: Any = fine.eye.host
    one = host[0]
    one["position"], one["right"], one["up"], one["ahead"] = camera.position, right, up, ahead
    one["tangent"], one["aspect"] = math.tan(math.radians(0.5 * camera.field_of_view)), aspect
    one["gaze"], one["radius"] = gaze, disc_radius(aspect) if radius is None else radius


def disc_radius(aspect: float, share: float = VIEW_SHARE) -> float:
    """Of a disc that covers so much of a view, in heights of it."""
    return math.sqrt(share * aspect / math.pi)


def axes_of(camera: Seen) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Right, up and ahead, unit vectors."""
    ahead = np.asarray(camera.target, dtype=np.float64) - np.asarray(camera.position)
    length = np.linalg.norm(ahead)
    right = np.cross(ahead, np.asarray(camera.up, dtype=np.float64))
    if length < 1e-12 or np.linalg.norm(right) < 1e-9 * length:
        raise InputError("this camera looks nowhere.", "Give a target away from its position, and not along `up`.")
    ahead, right = ahead / length, right / np.linalg.norm(right)
    return right, np.cross(right, ahead), ahead


def step(stage: Stage, fine: Adaptive, criterion: Criterion) -> None:
    """Splits and merges once, after a step of the fluid (or several). Record one program per criterion."""
    if criterion not in CRITERIA:
        raise InputError(f"criterion {criterion!r} is not known.", f"Allowed are {', '.join(CRITERIA)}.")
    f, p, sizes = fine.fluid, fine.params, fine.fluid.params.sizes
    assert sizes is not None
    stage.upload(fine.eye)
    if criterion != "gaze":
        find_field(stage, f, fine.character, p.steep, p.reach, (p.alpha, p.beta, p.gamma))
    rules = Rules()
    rules.sizes, rules.ring, rules.hysteresis = sizes.count, p.ring, p.hysteresis
    rules.threshold, rules.depth = p.threshold, p.depth
    seen = [f.count, f.position, f.extra["level"], fine.character.field, fine.character.depth]
    how = [CRITERIA[criterion], rules, fine.eye.array, fine.radii]
    in_groups(stage, find_wishes, f.capacity, [*how, *seen, fine.merging])
    if p.pace < 1.0:
        keep_pace(stage, fine)
    find_groups(stage, f, fine.merging)
    launch_changes(stage, f, fine.merging, fine.room, fine.tables, fine.counts)


def keep_pace(stage: Stage, fine: Adaptive) -> None:
    """Of many wishes at once some come true now, the others later."""
    f, asked, merging = fine.fluid, fine.asked, fine.merging
    # On one core: Warp's atomics are plain additions on cpu.
    group = 1 if f.device.is_cuda else f.capacity
    counted = [0, group, f.count, merging, asked]
    stage.once(lambda: wp.launch(clear_asked, dim=2, inputs=[asked], device=f.device.warp))
    stage.once(lambda: wp.launch(count_wishes, dim=-(-f.capacity // group), inputs=counted, device=f.device.warp))
    how = [fine.params.pace, 1.0 / (MERGE_CUBE * f.params.spacing)]
    in_groups(stage, thin_wishes, f.capacity, [*how, f.count, f.clock, f.tag, f.position, asked, merging])


def last_change(fine: Adaptive, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """What the last `step` did with the `count` particles that there were: how many stand in the place of each (1, its
    children, or 0 where it follows another), the sums of these, and the first of the group that each merged with, or
    −1. None where nobody changed. Waits for the device."""
    _, heirs, ends, totals = fine.counts
    if not int(totals.numpy()[2]):
        return None
    found = heirs.numpy()[:count], ends.numpy()[:count], fine.merging.leader.numpy()[:count]
    return found if (found[0] != 1).any() else None


def quanta(fluid: Fluid) -> int:
    """Mass of all particles, in masses of the smallest: exact. Waits for the device."""
    sizes = fluid.params.sizes
    assert sizes is not None
    level = fluid.extra["level"].numpy()[: int(fluid.count.numpy()[0])]
    return int(sum(sizes.quanta(k) * int((level == k).sum()) for k in range(sizes.count)))


@dataclass(frozen=True)
class _Ahead:
    """A camera that sees nothing yet."""

    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    target: tuple[float, float, float] = (0.0, 0.0, -1.0)
    up: tuple[float, float, float] = (0.0, 1.0, 0.0)
    field_of_view: float = 1.0
