"""A bowel that is alive: gas opens it, waves of its wall run along it, and its course can be changed.

The wall is moved, not simulated: each of its points hangs on the centreline (anatomy/along.py) and is

    k(s, t) = 1 − e(s) [1 − o(p) (1 − φ (1 + cos 2π(s − x(t))/Λ)/2)]

times as far from it as at rest, where e is 0 at the ends, which tube and valve hold open. o(p) is how far gas at the
pressure p over the air around opens it: 1 at the 20 mmHg of the resting shape, 0.6 without gas; tuned for appearance.
φ is the amplitude of the waves, x(t) runs with their speed, Λ = 12 cm. CO₂ that an insufflator lets in to hold its
pressure follows from the lumen's volume, less the liquid in it: it is a gas at body temperature, so in millilitres at
the air's pressure it is V (1 + p/p₀).

A user chooses what the wall is: rigid, moved as above, or a lattice that gives way (bowel_lattice.py), whose muscle
closes it by φ(1 + cos …)/2 where nothing else pushes. One goes over into the other within a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.anatomy.along import Attached, Laid, attach, follow, lay
from viscera.anatomy.colon import Centreline, centreline
from viscera.errors import InputError
from viscera.timing import FRAME
from viscera.units import MMHG
from viscera.view import Column, Measure, Parameter, Table
from viscera.world.system import LiveParameter, LiveTable, Rows
from viscera.world.systems.bowel_lattice import BowelLattice

FloatArray = NDArray[np.float64]

GROUP = "Bowel"
RESTING = 20.0
"""Pressure of the resting shape [mmHg]."""
CLOSED = 0.6
"""Width without gas, over that at rest."""
GIVES = 7.0
"""How the wall gives way: 1 − exp(−p/7 mmHg)."""
AIR = 760.0
"""p₀ [mmHg]"""
WAVELENGTH = 0.12
"""Λ [m]"""
ENDS = 0.06
"""Length at each end that stays as it is [m]."""
PRESSURE_RATE, COURSE_RATE, AMPLITUDE_RATE = 10.0, 0.03, 0.3
"""How fast gas, the course and the waves come to what is wanted: mmHg/s, m/s, 1/s."""
RIGID, MOVED, LATTICE = range(3)
OTHER_RATE = 1.0
"""How fast the lattice takes over from the wall that is moved, and the other way round [1/s]."""
HELD = 3
"""Control points at the rectum that stay."""
FARTHEST = 0.06
"""A control point may be moved by so much [m]."""

PRESSURE = Parameter(
    "gas", "CO₂", "mmHg", 0.0, 30.0, RESTING, "Pressure of the insufflator: opens the lumen.", group=GROUP
)
WAVES = Parameter("waves", "Peristalsis", "%", 0.0, 60.0, 0.0, "How far the wall closes in a wave.", group=GROUP)
SPEED = Parameter(
    "wave_speed", "Waves", "mm/s", -40.0, 40.0, 20.0, "Of the waves; positive runs to the caecum.", group=GROUP
)
STRUCTURE = Parameter(
    "structure", "Wall", "", 0.0, 2.0, float(MOVED), "Rigid, moved by waves and gas, or a lattice that gives way.",
    ("rigid", "moved", "lattice"), GROUP,
)  # fmt: skip
GAS = Measure("co2", "CO₂ in the lumen", "mL", "At the air's pressure.", digits=0)


class Bowel:
    """The shape of a hollow organ along a centreline, and where everything on it is."""

    def __init__(
        self, course: FloatArray, line: Centreline, points: dict[str, FloatArray], lattice: BowelLattice
    ) -> None:
        """`course`: control points, x, y, z and radius [m]. `points`: what goes along, by name [m], each (n, 3)."""
        self._course, self._line, self.lattice = course, line, lattice
        points = points | {"lattice": lattice.rest}
        self._attached: Attached = attach(np.concatenate(list(points.values())), line)
        ends = np.cumsum([0, *(len(one) for one in points.values())])
        self._parts = {name: slice(ends[k], ends[k + 1]) for k, name in enumerate(points)}
        self._masses, self._weights = lattice.carriers(self._attached, line)
        away = np.minimum(self._attached.lengths, line.lengths[-1] - self._attached.lengths)
        self._free = np.clip(away / ENDS, 0.0, 1.0)
        self.wanted = np.concatenate([[RESTING, 0.0, 20.0], course.ravel()])
        """Pressure [mmHg], amplitude, speed [mm/s], control points [m]."""
        self.state = np.concatenate([[RESTING, 0.0, 0.0], course.ravel()])
        """The same as it is, with the place of a wave [m] instead of its speed."""
        self._resting: Laid = lay(self._attached, line, line)
        self.choice = np.array([float(MOVED), 0.0])
        """What the wall is to be, and the lattice's share in where it is, 0 to 1."""
        self.places = self._attached.rest.copy()
        """Of all points now [m]."""
        self.on_move: Callable[[], None] = lambda: None

    def of(self, name: str) -> FloatArray:
        """Places of one of `points` now [m], (n, 3); a view."""
        return self.places[self._parts[name]]

    @property
    def gives_way(self) -> bool:
        """Whether the lattice has a share in it, or is to have one."""
        return self.choice[0] == LATTICE or self.choice[1] > 0.0

    def advance(self, frames: int = 1) -> bool:
        """By so many frames; whether anything moves."""
        before, time = self.state.copy(), frames * FRAME
        rates = np.concatenate([[PRESSURE_RATE, AMPLITUDE_RATE, 0.0], np.full(self._course.size, COURSE_RATE)])
        self.state += np.clip(self._asked() - self.state, -time * rates, time * rates)
        if self.state[1] > 0.0:
            self.state[2] = (self.state[2] + 1e-3 * self.wanted[2] * time) % WAVELENGTH
        if not self.gives_way and np.array_equal(before, self.state):
            return False
        if self.gives_way:
            share = float(self.choice[0] == LATTICE)
            self.choice[1] += np.clip(share - self.choice[1], -time * OTHER_RATE, time * OTHER_RATE)
            part = self._parts["lattice"]
            closing = (self._free * self.state[1] * self._wave())[part]
            self.lattice.advance(self._moved()[part], closing, (self.state[0] - RESTING) * MMHG)
        self.refresh()
        return True

    def _asked(self) -> FloatArray:
        """What the state comes to: of a rigid wall its resting shape."""
        if self.choice[0] != RIGID:
            return self.wanted
        return np.concatenate([[RESTING, 0.0, 0.0], self._course.ravel()])

    def refresh(self) -> None:
        """Places from the state."""
        moved, share = self._moved(), float(self.choice[1])
        if share > 0.0:
            masses, with_it = self.lattice.displacement(), np.zeros_like(moved)
            for k in range(self._masses.shape[1]):
                with_it += self._weights[:, k, None] * masses[self._masses[:, k]]
            bed = moved[self._parts["lattice"]].copy()
            moved += share * (self._attached.rest + with_it - moved)
            moved[self._parts["lattice"]] = bed
        self.places[:] = moved
        self.on_move()

    def _moved(self) -> FloatArray:
        """Where all points are in a wall that is moved; and where the bed of the lattice holds it."""
        control, now = self.state[3:].reshape(-1, 4), self._resting
        if not np.array_equal(control, self._course):
            now = lay(self._attached, self._line, centreline(control, len(self._line.points)))
        return follow(self._attached, now, self._opening())

    def _wave(self) -> FloatArray:
        return 0.5 + 0.5 * np.cos(2.0 * math.pi * (self._attached.lengths - self.state[2]) / WAVELENGTH)

    def _opening(self) -> FloatArray:
        pressure, amplitude = self.state[:2]
        opened = CLOSED + (1.0 - CLOSED) * ((1.0 - math.exp(-pressure / GIVES)) / (1.0 - math.exp(-RESTING / GIVES)))
        wide = 1.0 - self._free * (1.0 - opened * (1.0 - amplitude * self._wave()))
        wide[self._parts["lattice"]] = 1.0
        return wide

    @property
    def at_rest(self) -> bool:
        """Whether it has the shape that it was made with."""
        resting = self.state[0] == RESTING and self.state[1] == 0.0 and not self.gives_way
        return bool(resting and (self.state[3:] == self._course.ravel()).all())

    def gas(self, lumen: float, liquid: float) -> float:
        """CO₂ [m³ at the air's pressure] in a lumen [m³] with so much liquid [m³]."""
        return max(0.0, lumen - liquid) * (1.0 + float(self.state[0]) / AIR)

    # --- what a user may change ------------------------------------------------------------------------------------

    def parameters(self) -> list[LiveParameter]:
        def setter(place: int, scale: float) -> Callable[[float], None]:
            return lambda value: self.wanted.__setitem__(place, scale * value)

        return [
            LiveParameter(STRUCTURE, lambda value: self.choice.__setitem__(0, value)),
            LiveParameter(PRESSURE, setter(0, 1.0)),
            LiveParameter(WAVES, setter(1, 0.01)),
            LiveParameter(SPEED, setter(2, 1.0)),
        ]

    def table(self) -> LiveTable:
        # A mesh of somebody's own may be larger, or narrower, than a colon by rule.
        room = 1e3 * np.array([FARTHEST, FARTHEST, FARTHEST, 0.0])
        least, most = 1e3 * self._course.min(axis=0) - room, 1e3 * self._course.max(axis=0) + room
        columns = tuple(
            Column(name, name, "mm", "number", min(low, math.floor(a)), max(high, math.ceil(b)), help)
            for (name, low, high, help), a, b in zip((
                ("x", -300.0, 300.0, "To the patient's left."), ("y", -300.0, 300.0, "To the head."),
                ("z", -200.0, 200.0, "To the front."), ("radius", 10.0, 45.0, "Of the lumen."),
            ), least.tolist(), most.tolist(), strict=True)
        )  # fmt: skip
        rows = tuple(tuple(round(1e3 * one, 3) for one in row) for row in self._course.tolist())
        fixed = tuple((row, column) for row in range(HELD) for column in range(4))
        table = Table(
            "course", "Course of the bowel", "Control points of its spline, from the anus to the caecum.", columns,
            rows, fixed=fixed,
        )  # fmt: skip
        return LiveTable(table, self._change, self._check)

    def _change(self, rows: Rows) -> None:
        """What was not edited stays as it is, to the last bit."""
        asked = 1e-3 * np.array(rows)
        near = np.abs(asked - self._course) < 1e-6
        self.wanted[3:] = np.where(near, self._course, asked).ravel()

    def _check(self, rows: Rows) -> None:
        course = 1e-3 * np.array(rows)
        if np.abs(course[:HELD] - self._course[:HELD]).max() > 1e-6:
            raise InputError(f"the first {HELD} control points of course stay.", "Nozzle and drain are there.")
        moved = np.linalg.norm((course - self._course)[:, :3], axis=1)
        if moved.max() > FARTHEST:
            raise InputError(
                f"control point {int(moved.argmax()) + 1} of course is moved by {1e3 * moved.max():.0f} mm.",
                f"Allowed are {1e3 * FARTHEST:.0f} mm from where it was.",
            )
        if np.linalg.norm(np.diff(course[:, :3], axis=0), axis=1).min() < 0.01:
            raise InputError("two control points of course are less than 10 mm apart.", "Move one of them away.")

    def kept(self) -> dict[str, Any]:
        own = {"bowel": self.state, "bowel_wanted": self.wanted, "bowel_choice": self.choice}
        return own | self.lattice.kept()
