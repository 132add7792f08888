"""What a scenario puts into a world."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.explaining import explained
from viscera.inputs import Input, Vector3
from viscera.instruments import MOST_TOOLS, Grasps, Pushes, Room, Tool
from viscera.instruments.tool import FARTHEST
from viscera.instruments.trocar import SHALLOWEST, deepest
from viscera.view import Camera, Goal, Level, Surface
from viscera.world.names import closest_names
from viscera.world.organ import Organ
from viscera.world.system import LiveParameter, LiveTable, System
from viscera.world.systems.drill import lasting

if TYPE_CHECKING:
    from viscera.world.world import World


class Motion(Protocol):
    """What moves by itself as time passes: a heart. `state` is all of it that changes."""

    state: NDArray[np.float64]

    def advance(self, dt: float) -> None:
        """Gets ready for the next tick of dt [s]."""


Script = Callable[["World", int], Iterable[Input]]
"""A scenario's own hand for runs without a window: what it does before the given tick."""


def no_hand(world: World, tick: int) -> Iterable[Input]:
    return ()


def nothing_more() -> None:
    """The world is never heavier than as it begins."""


@explained
@dataclass(kw_only=True)
class Contents:
    """A world before it runs. Settings of the systems come after the scenario's own."""

    organs: Sequence[Organ] = ()
    """Tissue with a surface, of `viscera.organ`."""
    tools: Sequence[Tool] = ()
    """Instruments in hands, of `kit.hand_out`."""
    camera: Camera
    """From where it is seen first; `viscera.looking_down` gives one, and `bounds`."""
    bounds: tuple[Vector3, Vector3]
    """A box that holds all there is to see [m]."""
    motions: Sequence[Motion] = ()
    """What moves by itself in each tick, as a heart."""
    systems: Sequence[System] = ()
    """What advances once a frame, in this order."""
    parameters: Sequence[LiveParameter] = ()
    """What a user may change while it runs, besides what systems let change."""
    tables: Sequence[LiveTable] = ()
    """The same, in rows."""
    scenery: Sequence[Surface] = ()
    """Surfaces that are seen and never move, with their `rest` given."""
    force_scale: float = 0.1
    """Length of the arrow that shows a force [m/N]."""
    goals: Sequence[Goal] = ()
    """What a drill asks of measures; with it comes a clock that starts when somebody starts the drill."""
    levels: Sequence[Level] = ()
    """Of a drill that can be easier or harder, the easiest first; `goals` are then those of the first."""
    begins: Callable[[], None] = nothing_more
    """Puts into the world what somebody who starts the drill finds there, as blood that was shed before."""
    rubbing: float | None = None
    """Coulomb's friction of tissue on tissue, where organs, and what is cut off, do not pass through each other; None
    where they do, which costs nothing (tissue/meeting.py)."""
    table: float | None = None
    """Height of the table on which what is cut off comes to lie [m]; counts where tissue meets tissue."""
    script: Script = field(default=no_hand)
    """The scenario's own hand for headless runs: `script(world, tick)` gives a list of inputs before each tick."""
    relative_young: Callable[[int], NDArray[np.float64]] | None = None
    """Of the first organ, what another seed would make of its `LatticeParams.relative_young` with the settings as they
    are; None where a seed changes nothing about it. Many worlds in one batch differ by it (batch/)."""
    reseed: Callable[[int], None] | None = None
    """Where all that the seed decides follows from a setting: takes another seed, for when settings are set again. A
    world then begins again without being built (again.py). None: only building it takes another seed."""
    heaviest: Callable[[], None] = nothing_more
    """Puts more of what makes it slow into the world, up to as much as it may have to carry (blood on an organ). Called
    once a frame while it is found out how fast the world is on a machine, never else."""

    def __post_init__(self) -> None:
        if self.levels and not self.goals:
            self.goals = self.levels[0].goals

    def check(self, build: Callable[..., Contents] | None = None) -> None:
        """Refuses what cannot work together, with what to do, and warns of what has no use; of a scenario, in the name
        of the function that built it."""
        self.name_systems()
        self._check_names()
        self._check_order()
        written: set[str] = set()
        for system in self.systems:
            missing = [name for name in system.reads if name not in written]
            if missing:
                raise InputError(
                    f"system {system.name!r} reads {missing[0]!r}, which nothing before it writes.",
                    f"List a system that writes it first. Written so far: {', '.join(sorted(written)) or 'nothing'}.",
                )
            written.update(system.writes)
        used = {effect for system in self.systems for effect in system.uses} | {Pushes, Grasps}
        for tool in self.tools:
            idle = [type(effect).__name__ for effect in tool.instrument.effects if type(effect) not in used]
            if idle:
                _warn(
                    f"{tool.instrument.name}: no system of this world acts on {', '.join(idle)}, so it does nothing "
                    "when pressed. List one that does (docs/scenarios.md)"
                    f"{'; to rinse, a film needs saline among its fluids' if 'Rinses' in idle else ''}.",
                    build,
                )
        for organ in self.organs:
            listed = {
                system.kind for system in self.systems if organ.name in self.about(system) or not self.about(system)
            }
            still = [how for kind, how in organ.expects.items() if kind not in listed]
            if still:
                _warn(f"{organ.name}: what was put onto it stands still. List {still[0]} (docs/scenarios.md).", build)
        self._check_tools()
        if self.rubbing is not None and not (math.isfinite(self.rubbing) and self.rubbing >= 0.0 and self.organs):
            raise InputError(f"rubbing = {self.rubbing!r} is not possible.", "Give 0 or more, and an organ; or None.")
        if not (math.isfinite(self.force_scale) and self.force_scale > 0.0):
            raise InputError(f"force_scale = {self.force_scale!r} is not allowed.", "Give metres per newton, above 0.")
        self._check_levels()

    def about(self, system: System) -> list[str]:
        """Names of the organs that a system is about; none where it is about none, or about the world."""
        if system.organ:
            return [system.organ]
        return [organ.name for organ in self.organs if any(organ.skin is skin for skin in system.skins)]

    def name_systems(self) -> None:
        """Of several systems of one kind, each about an organ of its own, the names say which: `heat of liver`."""
        kinds = [system.kind for system in self.systems]
        for system in self.systems:
            organs = self.about(system)
            if kinds.count(system.kind) > 1 and organs:
                system.name_after(" and ".join(organs))

    def _check_names(self) -> None:
        """Names are places: in a saved state, among timings, measures, settings and what is seen."""
        systems = self.systems
        for what, names in (
            ("parts of the world are called", [one.name for one in (*self.organs, *systems)]),
            ("systems measure", [measure.name for system in systems for measure, _ in system.measures()]),
            ("settings are called", [live.parameter.name for live in self.all_parameters()]),
            ("tables are called", [live.table.name for live in self.all_tables()]),
            ("things to see are called", [name for system in systems for show in system.shows for name in show.arrays]),
        ):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise InputError(f"two {what} {twice[0]!r}.", "Give each its own name.")

    def all_parameters(self) -> list[LiveParameter]:
        """The scenario's own first, then its systems'."""
        return [*self.parameters, *(live for system in self.systems for live in system.parameters)]

    def all_tables(self) -> list[LiveTable]:
        return [*self.tables, *(live for system in self.systems for live in system.tables)]

    def _check_order(self) -> None:
        organs = [organ.name for organ in self.organs]
        for place, system in enumerate(self.systems):
            if system.organ and system.organ not in organs:
                raise InputError(
                    f"system {system.name!r} is about the organ {system.organ!r}, which the world does not have.",
                    closest_names(system.organ, organs),
                )
            mine = set(self.about(system))
            later = [other for other in self.systems[place + 1 :] if other.kind in system.after]
            late = [other.name for other in later if not mine or not self.about(other) or mine & set(self.about(other))]
            if late:
                raise InputError(
                    f"system {late[0]!r} is listed after {system.name!r}, which needs what it does in the same frame.",
                    f"List {late[0]!r} before {system.name!r}; docs/scenarios.md has the order, under Systems.",
                )

    def all_levels(self) -> tuple[Level, ...]:
        """Of the drill; none where there is none."""
        return tuple(self.levels) or ((Level("Standard", tuple(self.goals)),) if self.goals else ())

    def _check_levels(self) -> None:
        if self.levels and tuple(self.goals) != self.levels[0].goals:
            raise InputError("a drill's goals are not those of its first level.", "Give them in the levels alone.")
        measured = {measure.name for system in self.systems for measure, _ in system.measures()}
        measured |= {"time"} | {one.name for one in lasting(measured)}
        known = {live.parameter.name for live in self.all_parameters()}
        for level in self.all_levels():
            for goal in level.goals:
                if goal.measure not in measured:
                    raise InputError(
                        f"a goal asks for the measure {goal.measure!r}, which no system has.",
                        f"There are: {', '.join(sorted(measured)) or 'none'}.",
                    )
            unknown = sorted(set(level.settings) - known)
            if unknown:
                raise InputError(
                    f"level {level.name!r} sets the parameter {unknown[0]!r}, which nothing has.",
                    f"There are: {', '.join(sorted(known)) or 'none'}.",
                )

    def _check_tools(self) -> None:
        if len(self.tools) > MOST_TOOLS:
            raise InputError(f"{len(self.tools)} tools are too many.", f"Allowed are up to {MOST_TOOLS}.")
        if [tool.number for tool in self.tools] != list(range(len(self.tools))):
            raise InputError(
                f"tools have the numbers {[tool.number for tool in self.tools]}.",
                "Number them 0, 1, … in their order, as `kit.hand_out` does.",
            )
        seen = Room(*self.bounds)
        for tool in self.tools:
            one = tool.instrument
            far = seen.distance(one.home)
            if not far <= FARTHEST:
                raise InputError(
                    f"{one.name}: its home {one.home} is {far:.3g} m from all there is to see.",
                    f"Allowed are {FARTHEST:g} m; the unit is metres.",
                )
            if one.trocar is None:
                continue
            depth, most = math.dist(one.home, one.trocar), deepest(one.length)
            if not SHALLOWEST <= depth <= most:
                raise InputError(
                    f"{one.name}: from its trocar {one.trocar} to its home {one.home} it is {depth:.3f} m.",
                    f"Put one of them elsewhere: allowed are {SHALLOWEST:g} to {most:g} m; the unit is metres.",
                )


_WARNED: dict[Any, Any] = {}
"""What was said already; Python's own way to say it once."""


def _warn(message: str, build: Callable[..., Contents] | None) -> None:
    code = getattr(build, "__code__", None)
    if code is None:
        warnings.warn(message, stacklevel=3)
    else:
        warnings.warn_explicit(message, UserWarning, code.co_filename, code.co_firstlineno, registry=_WARNED)


FARTHEST_TROCAR = 0.25
"""[m]; 1.15 times this above the middle of an organ, an instrument of 36 cm reaches some 10 cm to each side of it."""


def trocar_beside(camera: Camera, right: float = 0.4, near: float = 0.0) -> Vector3:
    """A place for a trocar [m]: above what the camera looks at, and aside, so that the shaft does not hide what its tip
    does: towards the camera's `right` hand, and so much `near` to it, as shares of its distance, or of
    `FARTHEST_TROCAR` where that is less: instruments have to reach a large organ too."""
    from viscera.world.organ import point

    target, up = np.asarray(camera.target), np.asarray(camera.up) / np.linalg.norm(camera.up)
    towards = np.asarray(camera.position) - target
    distance = min(float(np.linalg.norm(towards)), FARTHEST_TROCAR)
    level = towards - (towards @ up) * up
    level /= np.linalg.norm(level)
    return point(target + distance * (1.15 * up + right * np.cross(up, level) + near * level))


def looking_down(organs: Sequence[Organ], direction: Vector3) -> tuple[Camera, tuple[Vector3, Vector3]]:
    """A camera that sees all organs from this direction (its length is the distance over their diagonal), and the box
    around all there is to see."""
    from viscera.world.organ import point

    positions = np.concatenate([organ.body.positions for organ in organs])
    low, high = positions.min(axis=0), positions.max(axis=0)
    middle, size = 0.5 * (low + high), float(np.linalg.norm(high - low))
    camera = Camera(point(middle + size * np.asarray(direction)), point(middle), (0.0, 0.0, 1.0), 40.0)
    return camera, (point(low - 0.5 * size), point(high + 0.5 * size))
