"""Between a hand and the world's tool: a virtual coupling that stays passive, whatever the world does.

A world answers a tick or two late, and the force that is written is held for T = 1 ms. Both turn a spring into a spring
that gives back more than it took. Three parts keep that away from the hand:

**The contact plane.** Near the tool's tip x₀ the newest tick's contact is a plane with a spring behind it: normal n,
force F₀, stiffness k. In between ticks the hand at x feels the spring at its own depth, not the force of some time ago:

    d = F₀/k − n·(x − x₀),   f = k_r (d − t_lead n·v) n   where d > 0,   k_r = min(k, K)

For k ≤ K that is F₀ − k n·(x − x₀), the world's own force carried on to where the hand is now.

**The coupling.** A contact stiffer than K is felt through a spring in series that is just soft enough for K, and the
world's tool is where that spring ends: x_tool = x + (1 − k_r/k) d n. So soft contacts are felt as they are, and a hard
wall is felt as K and is not entered by the tool. The damper k_r·t_lead makes up for the delay T/2 of holding a force,
twice over.

K is what a sampled spring can render: passive while b > K·T/2 + B for a device and hand that damp with b [N·s/m] and
a virtual damper B (Colgate and Schenkel, J. Robotic Systems 14(1), 1997). With B = K·T that is K < b/(1.5 T): 2 000 N/m
for b = 3 N·s/m, which is little for a hand that holds on, and more than a bare device has.

**The tank.** What is given back must have been taken before. The force is held between two cycles, so the work it does
on the hand, Σ f·Δx, is known exactly (Hannaford and Ryu, IEEE Trans. Robotics and Automation 18(1), 2002). A spring at
depth d will give back ½ k_r d² on the way out; when the tank holds less, the force on that way is that much smaller. A
hand that holds still or goes in feels all of it. A world that moves by itself, a heart, may give `power` on top, and
push with all its force as long as the hand gives way slowly. The source adds damping when the tank is empty; a smaller
force cannot push anyone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from viscera.errors import InputError
from viscera.haptics.link import ZERO, Touch
from viscera.haptics.safety import JUMP_LEAST
from viscera.inputs import Vector3

PERIOD = 1.0e-3
"""T of the haptic loop [s]."""


@dataclass(frozen=True)
class CouplingParams:
    stiffest: float = 2000.0
    """K [N/m]"""
    lead: float = PERIOD
    """t_lead [s]"""
    budget: float = 5e-5
    """In the tank at first, so that a light touch never empties it [J]."""
    leaving: float = 0.01
    """A hand that leaves faster than this gets what is in the tank and no more [m/s]."""
    most: float = 0.1
    """More than this is forgotten: rubbing must not save up for a blow [J]. A 3 N press on 50 N/m stores 0.09 J."""
    power: float = 2e-3
    """What a world that moves by itself may give [W]. A heart beat felt as 0.1 N over 1 mm is 0.1 mW; a buzz that one
    can feel is tens of mW."""

    def __post_init__(self) -> None:
        for name in ("stiffest", "leaving"):
            _check(name, getattr(self, name), "above 0", getattr(self, name) > 0.0)
        for name in ("lead", "budget", "power"):
            _check(name, getattr(self, name), "0 or more", getattr(self, name) >= 0.0)
        _check("most", self.most, f"the budget of {self.budget:g} J or more", self.budget <= self.most)

    @property
    def damping_needed(self) -> float:
        """b of hand and device for which `stiffest` is passive by itself [N·s/m]."""
        return self.stiffest * (0.5 * PERIOD + self.lead)


def _check(name: str, value: float, allowed: str, fits: bool) -> None:
    if not (math.isfinite(value) and fits):
        raise InputError(f"{name} = {value!r} is not allowed.", f"It is finite and {allowed}.")


NEAR = 0.1
"""A contact is a plane no farther than this from the tool's tip [m]: a hand is not pushed by a wall elsewhere, whatever
a tool that jumped says. A hand that overpowers its device may be centimetres behind a hard wall, and is still held."""


@dataclass(slots=True)
class Coupled:
    """What the coupling makes of a hand and a touch."""

    force: Vector3 = ZERO
    """For the hand, before any limit [N]."""
    leaving: float = 0.0
    """How fast the hand moves out along the normal [m/s]."""
    tool: Vector3 = ZERO
    """Where the world's tool should be [m]."""
    stored: float = 0.0
    """In the spring that is felt [J]: what the hand gets back when it leaves."""


def couple(params: CouplingParams, touch: Touch, x: Vector3, v: Vector3, out: Coupled) -> None:
    """The force for a hand at x [m] that moves with v [m/s], and the place for its tool."""
    out.force, out.tool, out.stored, out.leaving = ZERO, x, 0.0, 0.0
    if not touch.active:
        return
    nx, ny, nz = touch.normal
    k = touch.stiffness
    if not k > 0.0:
        out.force = touch.force  # nothing is known but the force itself
        return
    ox, oy, oz = touch.position
    ahead = nx * (x[0] - ox) + ny * (x[1] - oy) + nz * (x[2] - oz)
    fx, fy, fz = touch.force
    depth = (nx * fx + ny * fy + nz * fz) / k - ahead
    if not depth > 0.0:
        if depth != depth:  # not a number: the guard has to see it
            out.force = touch.force
        return
    if math.dist(x, touch.position) > NEAR:
        return
    rendered = min(k, params.stiffest)
    out.leaving = nx * v[0] + ny * v[1] + nz * v[2]
    push = rendered * max(0.0, depth - params.lead * out.leaving)
    give = (1.0 - rendered / k) * depth
    out.stored = 0.5 * rendered * depth * depth
    out.force = (push * nx, push * ny, push * nz)
    out.tool = (x[0] + give * nx, x[1] + give * ny, x[2] + give * nz)


@dataclass
class EnergyTank:
    """What the hand has put in and may have back [J]."""

    params: CouplingParams
    level: float = 0.0

    def __post_init__(self) -> None:
        self.level = self.params.budget

    def book(self, force: Vector3, moved: Vector3, dt: float, stored: float) -> None:
        """`force` [N] was held while the hand moved by `moved` [m] in dt [s]; `stored` is in the contact [J]."""
        work = force[0] * moved[0] + force[1] * moved[1] + force[2] * moved[2]
        if work == work:
            # The allowance is for use, not for saving.
            allowance = self.params.power * dt if self.level < max(stored, self.params.budget) else 0.0
            self.level = min(self.params.most, self.level - work + allowance)

    def share(self, stored: float, leaving: float) -> float:
        """How much of a contact's force there is energy for, 0 to 1, when its spring holds `stored` [J] and the hand
        leaves with this speed [m/s]. A hand that stays or goes in takes nothing, so it may feel all of it."""
        level = max(0.0, self.level)
        if not (stored > level and leaving > 0.0):
            return 1.0
        return 1.0 - (1.0 - level / stored) * min(1.0, leaving / self.params.leaving)

    def settle(self) -> None:
        """After an interruption nothing is owed."""
        self.level = min(self.level, self.params.budget)


LEAST_FORCE = 1e-4
"""A tool that feels less touches nothing [N]."""

HOLD_TICKS = 5
"""A contact that is lost for so many ticks is still where it was: the tool of a hard wall comes and goes."""

LAG_TICKS = 3
"""Stiffness is taken over so many ticks, fewer where a contact is younger: one tick is mostly the inertia of the
tissue that is touched."""

FORGET = 0.95
"""Share of what was seen that still counts a tick later: a memory of some 20 ms."""

SMALLEST_MOVE = 1e-6
"""A tool that moves less from tick to tick says nothing about stiffness [m]."""


class ContactEstimator:
    """Normal and stiffness of what a tool touches, from its tip and its force tick by tick.

    The normal is the direction of the force; the stiffness is the least-squares slope of the force along it over the
    tip's way along it, with old ticks forgotten. In the first tick of a contact the way includes some air, so the first
    value is low, and the second one right. A tip that jumps says nothing about stiffness: what was known stands.
    """

    def __init__(self) -> None:
        self._past: list[tuple[Vector3, Vector3]] = [(ZERO, ZERO)] * (LAG_TICKS + 1)
        self._seen = 0
        self._age = 0
        """Ticks of this contact so far."""
        self._lost = HOLD_TICKS
        self._xx = 0.0
        self._xf = 0.0
        self._normal = ZERO
        self._stiffness = 0.0

    def forget(self) -> None:
        """The tool is elsewhere: in another world, or put aside."""
        self._seen = 0
        self._lose()

    def update(self, position: Vector3, force: Vector3, touch: Touch) -> None:
        """After a tick that ended with the tip at `position` [m] feeling `force` [N]; fills in the touch."""
        fx, fy, fz = force
        size = math.sqrt(fx * fx + fy * fy + fz * fz)
        touch.position, touch.force = position, force
        if self._seen and math.dist(position, self._past[(self._seen - 1) % len(self._past)][0]) > JUMP_LEAST:
            self._seen = 0
        if not math.isfinite(size):
            self.forget()
        elif size > LEAST_FORCE:
            self._lost = 0
            self._normal = (fx / size, fy / size, fz / size)
            if self._seen:
                self._learn(position, force)
            self._age += 1
        else:
            self._age = 0
            if self._lost < HOLD_TICKS:
                self._lost += 1
                if self._lost == HOLD_TICKS:
                    self._lose()
        self._past[self._seen % len(self._past)] = (position, force)
        self._seen += 1
        touch.normal, touch.stiffness = self._normal, self._stiffness

    def _learn(self, position: Vector3, force: Vector3) -> None:
        lag = min(max(self._age, 1), LAG_TICKS, self._seen)
        then, felt = self._past[(self._seen - lag) % len(self._past)]
        nx, ny, nz = self._normal
        way = nx * (position[0] - then[0]) + ny * (position[1] - then[1]) + nz * (position[2] - then[2])
        gain = nx * (force[0] - felt[0]) + ny * (force[1] - felt[1]) + nz * (force[2] - felt[2])
        if self._age == 0:
            if self._stiffness == 0.0 and way < 0.0:
                self._stiffness = -gain / way  # at least that, until there is a tick without air
            return
        # While nothing moves, the old estimate stands.
        still = SMALLEST_MOVE * SMALLEST_MOVE
        self._xx = FORGET * self._xx + way * way
        self._xf = FORGET * self._xf - way * gain
        self._stiffness = max(0.0, (self._xf + still * self._stiffness) / (self._xx + still))

    def _lose(self) -> None:
        self._age = 0
        self._lost = HOLD_TICKS
        self._xx = self._xf = self._stiffness = 0.0
        self._normal = ZERO
