"""A C-arm over the patient: pulses while the pedal is down, the last picture held while it is not.

A pulse is made in three parts, one a frame, so that no frame is late: lengths in what moves, what comes through, the
picture; at 30 a second in two frames. The C-arm turns, goes nearer, magnifies and is collimated between pulses. What
the beam costs is counted: seconds and dose area product. Where something is hidden, clicks in the picture mark it
(reading.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera import xray
from viscera.errors import InputError
from viscera.timing import FRAME
from viscera.view import Drag, Measure, Parameter, Picture
from viscera.world.system import Kept, LiveParameter, LiveTable, Moment, Rows, Show, System
from viscera.world.systems.reading import TABLE, Hidden, Reading
from viscera.xray import CArm, Xray
from viscera.xray.xray import PARTS, expose_part

GROUP = "C-arm"
RATES = (3.0, 7.5, 15.0, 30.0)
"""Pulses per second that the page offers."""
FIELDS = (1.0, 0.8, 0.6, 0.42)
"""Of the detector's side that is read: whole, and three that magnify."""
FARTHEST = (0.9, 1.2)
"""From source to detector [m]."""
SQUARE_CENTIMETRE = 1e-4

BEAM = Parameter("beam", "Pedal", "", 0.0, 1.0, 0.0, "X-rays while it is down.", ("up", "down"), GROUP)
PRIMARY = Parameter("primary", "LAO (+) / RAO (−)", "°", -90.0, 90.0, 0.0, "Where the detector stands.", group=GROUP)
SECONDARY = Parameter(
    "secondary", "Cranial (+) / caudal (−)", "°", -45.0, 45.0, 0.0, "Where the detector stands.", group=GROUP
)
ALONG = Parameter("along", "Along the table", "mm", -200.0, 200.0, 0.0, "The C-arm, towards the head.", group=GROUP)
ACROSS = Parameter("across", "Across the table", "mm", -150.0, 150.0, 0.0, "The C-arm, to the left.", group=GROUP)
IRIS = Parameter(
    "iris", "Collimator", "mm", 30.0, 190.0, 190.0, "Radius at the detector; smaller is less dose.", group=GROUP
)
RATE = Parameter(
    "pulses", "Pulses", "", 0.0, 3.0, 1.0, "Fewer are less dose.", tuple(f"{rate:g}/s" for rate in RATES), GROUP
)
SHUTTERS = tuple(
    Parameter(
        f"shutter_{side}", f"Shutter, {side}", "%", 0.0, 45.0, 0.0, "How far the blade comes in: less dose.",
        group=GROUP,
    )
    for side in ("left", "right", "bottom", "top")
)  # fmt: skip
TIME = Measure("fluoroscopy", "Fluoroscopy", "s", "How long the pedal was down.", digits=1)
DOSE = Measure("dose", "Dose area product", "Gy·cm²", "So far.", digits=3, grows=True)

_BEAM, _PRIMARY, _SECONDARY, _ALONG, _ACROSS, _IRIS, _FIELD, _DISTANCE, _LEFT = range(9)
_RATE, _DUE, _PART = range(_LEFT + 4, _LEFT + 7)
"""Places in the state: what is wanted, in the order of the parameters, pulses that are due, and the part that comes
next (0: none)."""


TURN = Drag("the C-arm", PRIMARY.name, SECONDARY.name, 90.0)


def fluoroscopy(
    machine: Xray,
    *,
    name: str = "xray",
    title: str = "X-ray",
    drags: Sequence[Drag] = (),
    hidden: Hidden | None = None,
) -> System[Xray]:
    """The system of an X-ray machine (`xray.make`) whose scene others move. Dragging in its picture turns the
    C-arm, or slides the patient; `drags`: what else dragging moves. `hidden`: what is to be found in its pictures."""
    return _Fluoroscopy(machine, name, title, drags, hidden).system()


def _parts_a_frame(rate: float) -> int:
    """Of a pulse, so that it is done when the next is due."""
    return math.ceil(len(PARTS) / max(1, math.floor(1.0 / (rate * FRAME))))


class _Fluoroscopy:
    def __init__(self, machine: Xray, name: str, title: str, drags: Sequence[Drag], hidden: Hidden | None) -> None:
        if machine.pixels % 32:
            raise InputError(f"a picture of {machine.pixels} pixels cannot be streamed.", "Take a multiple of 32.")
        self._machine, self._home = machine, machine.arm
        self._state = np.zeros(_PART + 1)
        self._state[_IRIS] = 1e3 * (0.5 * machine.arm.field if machine.arm.iris is None else machine.arm.iris)
        self._state[_DISTANCE] = 100.0 * machine.arm.source_detector
        self._state[_LEFT : _LEFT + 4] = 100.0 * np.asarray(machine.arm.shutters)
        self._state[_RATE] = self._state[_DUE] = 1.0
        self._aimed = self._state[_PRIMARY:_RATE].copy()
        """C-arm of the pulse under way."""
        self._pace = np.array([machine.pulse_rate])
        """Pulses a second when it began: what it counts as."""
        self._seen = self._aimed.copy()
        """C-arm of the picture that is shown."""
        self._any = np.zeros(1, dtype=np.bool_)
        """Whether there is a picture yet."""
        self._reading = None if hidden is None else Reading(hidden)
        # What lies in the isocentre follows the hand.
        slide = Drag("the patient", ACROSS.name, ALONG.name, -1e3 * machine.arm.field / machine.arm.magnification)
        self._picture = Picture(
            name, title, machine.pixels, machine.pixels, "What is dense is bright.", (TURN, *drags, slide), BEAM.name,
            "" if hidden is None else TABLE.name,
        )  # fmt: skip
        self._pixels = np.zeros((machine.pixels, machine.pixels, 4), dtype=np.uint8)
        self._pixels[..., 3] = 255
        self._plain = self._pixels.copy()
        """The picture without marks."""

    def system(self) -> System[Xray]:
        kept = Kept(
            {"state": self._state, "aimed": self._aimed, "pace": self._pace, "seen": self._seen, "any": self._any}
            | {"pixels": self._plain}
            | ({} if self._reading is None else self._reading.kept()),
            self._loaded,
            (lambda: xray.save(self._machine), lambda saved: xray.load(self._machine, saved)),
        )
        offered = (BEAM, PRIMARY, SECONDARY, ALONG, ACROSS, IRIS, *self._geometry(), *SHUTTERS, RATE)
        return System(
            name=self._picture.name,
            frame=self.frame,
            save=kept.save,
            load=kept.load,
            shows=[Show(self._picture, {self._picture.name: self._pixels})],
            measures=self.measures,
            parameters=[LiveParameter(one, self._setter(place)) for place, one in enumerate(offered)],
            tables=() if self._reading is None else [LiveTable(TABLE, self._clicked)],
            holds=self._machine,
        )

    def _geometry(self) -> tuple[Parameter, Parameter]:
        """Field and distance, of this machine."""
        arm = self._home
        sides = tuple(f"{100.0 * share * arm.field:.0f} cm" for share in FIELDS)
        last = float(len(FIELDS) - 1)
        near, far = min(FARTHEST[0], arm.source_detector), max(FARTHEST[1], arm.source_detector)
        return (
            Parameter("field", "Field", "", 0.0, last, 0.0, "Of the detector; smaller magnifies.", sides, GROUP),
            Parameter(
                "distance", "Source to detector", "cm", 100.0 * near, 100.0 * far, 100.0 * arm.source_detector,
                "Farther magnifies.", group=GROUP,
            ),
        )  # fmt: skip

    def _clicked(self, rows: Rows) -> None:
        arm = self._arm(self._seen) if self._any[0] else None
        if self._reading is not None and self._reading.clicked(rows, arm):
            self._show()

    def _setter(self, place: int) -> Any:
        def change(value: float) -> None:
            self._state[place] = value

        return change

    def frame(self, now: Moment) -> None:
        state, rate = self._state, RATES[round(self._state[_RATE])]
        # With the pedal up one pulse waits, so that the first comes at once.
        state[_DUE] = min(state[_DUE] + FRAME * rate, 2.0 if state[_BEAM] > 0.5 else 1.0)
        if state[_PART] == 0.0:
            if state[_BEAM] < 0.5 or state[_DUE] < 1.0:
                return
            state[_DUE] -= 1.0
            self._aimed[:] = state[_PRIMARY:_RATE]
            self._turn()
            self._pace[0] = self._machine.pulse_rate = rate
        for _ in range(_parts_a_frame(rate)):
            part = int(state[_PART])
            expose_part(self._machine, part)
            state[_PART] = float((part + 1) % len(PARTS))
            if state[_PART] == 0.0:
                break
        if state[_PART] == 0.0:
            xray.check(self._machine, now.tick)
            self._seen[:], self._any[:] = self._aimed, True
            np.copyto(self._plain, xray.picture(self._machine))
            self._show()

    def _loaded(self) -> None:
        self._machine.pulse_rate = float(self._pace[0])
        self._turn()
        self._show()

    def _show(self) -> None:
        """The last picture, with the marks that were made."""
        np.copyto(self._pixels, self._plain)
        if self._reading is not None:
            self._reading.draw(self._pixels, self._arm(self._seen))

    def _turn(self) -> None:
        """The C-arm goes where the pulse wants it."""
        xray.aim(self._machine, self._arm(self._aimed))

    def _arm(self, aimed: NDArray[np.float64]) -> CArm:
        primary, secondary, along, across, iris, field, distance, *shutters = aimed.tolist()
        x, y, z = self._home.isocentre
        left, right, bottom, top = (0.01 * one for one in shutters)
        return replace(
            self._home, primary=primary, secondary=secondary, isocentre=(x + 1e-3 * across, y + 1e-3 * along, z),
            iris=1e-3 * iris, field=FIELDS[round(field)] * self._home.field, source_detector=0.01 * distance,
            shutters=(left, right, bottom, top),
        )  # fmt: skip

    def measures(self) -> list[tuple[Measure, float]]:
        machine = self._machine
        counted = [(TIME, xray.seconds(machine)), (DOSE, xray.dose_area_product(machine) / SQUARE_CENTIMETRE)]
        return [*counted, *([] if self._reading is None else self._reading.measures())]
