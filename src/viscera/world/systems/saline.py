"""Blood in saline: a cavity full of clear fluid, vessels that bleed into it, instruments that stir, rinse and suck.

Reads `ORGAN.burn_level` where something burns: a vessel whose surroundings are coagulated is sealed. The cavity is a
closed box of cells (viscera.grid, `boxed_flow`) over the organ. What comes in goes out,

    pump + irrigators + bleeding = outlet + suction,

in m³/s, at every step: the outlet of the scope's sheath gives or takes the rest. Blood is counted in whole picolitres,
as film and drops count theirs: what vessels have given is in the cavity, or has gone out with the fluid. The saline's
pressure holds vessels back, as in life: veins stop bleeding long before arteries do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from viscera import grid
from viscera.blood.film.film import Film
from viscera.blood.film.params import LITTLE
from viscera.blood.wounds.vessels import flow_rate
from viscera.device import Program, Stage
from viscera.errors import InputError
from viscera.grid import GridParams, Substance
from viscera.instruments import Rinses, Sucks, Tool
from viscera.tissue.heartbeat import pulse
from viscera.units import MILLILITRE, MINUTE, MMHG
from viscera.view import Measure, Parameter
from viscera.world.organ import Organ
from viscera.world.system import LiveParameter, Moment, System
from viscera.world.systems.boxed_flow import STEP, BoxedFlow, box_over, cells_at
from viscera.world.systems.dissolving import Dissolving
from viscera.world.systems.wounds import BLEEDING, OPEN_VESSELS, Wound

wp.set_module_options({"enable_backward": False})

CELLS = (96, 72, 20)
"""Along x, y, z, at detail 1: more than 48³, in a cavity that is a slit."""
ROOM, ABOVE = 1.1, 0.65
"""The cavity is so much longer and wider than the piece of its wall that is tissue, and so much of it is over that."""
SINKS_BY = -9.81 * (1060.0 - 1005.0) / 1005.0
"""Acceleration of blood in saline, by the difference of their densities [m/s²]."""
ABSORPTION = 23_000.0
"""Of green light by whole blood [1/m] (Prahl: 230 per cm near 550 nm)."""
DENSEST = 400.0
"""Of the picture: so much green light is lost per metre at full [1/m]; that is 1.7 % of blood."""
HEART_RATE = 1.2
"""[beats/s]"""
MOST_UNITS = 1.5e9
"""In a cell of pure blood."""
MOST_VESSELS = 8
AROUND, MOST_TEXELS = 2.0e-3, 24
"""A vessel is sealed with the tissue this near [m], of which so many texels are looked at; …"""
SEALED = 0.6
"""… from this mean burn level on."""
INLET, INLET_AREA = 0.55, 20.0e-6
"""Height of the scope's inlet and outlet over the box's, and the area of a hole [m²]."""
JET_PULL = 0.7
"""How firmly a jet takes the fluid along."""
FASTEST_JET = 0.25
"""[m/s]; a jet under water is broken within a few of its widths."""

BLOOD_LOST = Measure("blood_lost", "Blood lost", "mL", "All that has left the vessels so far.", digits=2, grows=True)
VIEW = Measure("view", "View", "%", "Green light that reaches the wall through the fluid, mean.", digits=0)
IN_CAVITY = Measure("in_cavity", "Blood in the cavity", "mL", "Not yet rinsed away.", digits=2)
FLOW_IN = Measure("flow_in", "Inflow", "mL/min", "Saline from pump and irrigators.", digits=0)
FLOW_OUT = Measure("flow_out", "Outflow", "mL/min", "Through the outlet and the suction.", digits=0)
PUMP = Parameter(
    "pump", "Pump", "mL/min", 0.0, 400.0, 120.0, "Saline through the scope; it leaves by the outlet.", group="Saline"
)
PRESSURE = Parameter(
    "saline_pressure", "Pressure", "mmHg", 0.0, 120.0, 40.0, "Of the saline: it holds bleeding back.", group="Saline"
)


@wp.kernel
def look_at_vessels(
    # in
    start: wp.array[wp.int32],
    texel: wp.array[wp.int32],
    level: wp.array[wp.float32],
    # out
    mean_out: wp.array[wp.float32],
):
    """Mean burn level around each vessel; more than coagulated counts as coagulated."""
    w = wp.tid()
    total = float(0.0)
    for i in range(start[w], start[w + 1]):
        total += wp.min(level[texel[i]], 1.0)
    mean_out[w] = total / float(wp.max(start[w + 1] - start[w], 1))


@dataclass(frozen=True)
class SalineBalance:
    """Volumes [m³]. Of blood: `given` + `dissolved` = `cavity` + `rinsed_out`, to the picolitre. Of all fluid: `pumped`
    + `irrigated` + `given` + what came from the film (`dissolved` and `washed`) = `sucked` + `let_out`, as the cavity
    is full."""

    given: float
    """By the vessels that bleed into the saline."""
    dissolved: float
    """Blood that lay on the organ."""
    cavity: float
    """Blood in the saline, or about to be."""
    rinsed_out: float
    pumped: float
    irrigated: float
    washed: float
    """Of the film, what was no blood."""
    sucked: float
    let_out: float
    """Through the outlet; below 0 where that had to give."""
    missing: int
    """Picolitres of blood: 0."""


def bathing(
    organ: Organ, vessels: Sequence[Wound], tools: Sequence[Tool], detail: float = 1.0, film: Film | None = None
) -> System[Saline]:
    """Saline over an organ whose `vessels` bleed into it; after `burning`, where there is one. `detail` times as many
    cells as `CELLS`. A `film` that lies on the organ dissolves in it."""
    return Saline(organ, vessels, tools, detail, film).system()


class Saline:
    """`box` has the fluid."""

    def __init__(
        self,
        organ: Organ,
        vessels: Sequence[Wound],
        tools: Sequence[Tool],
        detail: float = 1.0,
        film: Film | None = None,
    ) -> None:
        if len(vessels) > MOST_VESSELS:
            raise InputError(f"{len(vessels)} vessels are too many.", f"Allowed are {MOST_VESSELS}.")
        self.organ, self.vessels = organ, list(vessels)
        self._device = device = organ.need_skin().device
        cells = cells_at(detail, CELLS)
        params = _params(cells, *box_over(organ, cells, ROOM, ABOVE))
        self.unit = params.substances[0].unit
        """[m³]"""
        per_unit = ABSORPTION * self.unit / (params.cell_volume * DENSEST)
        self.box = BoxedFlow(organ, params, tools, "blood", per_unit=per_unit, blood=True)
        self.flow = self.box.flow
        self._burns = organ.fields.get("burn_level")
        self._levels = device.port(MOST_VESSELS, wp.float32)
        self._sealed = np.zeros(MOST_VESSELS, dtype=np.bool_)
        self._given = np.zeros(MOST_VESSELS, dtype=np.int64)
        """By each vessel so far, units."""
        self._owed = np.zeros(MOST_VESSELS)
        """Less than a unit."""
        self._beat = np.zeros(1)
        self._now = np.zeros(3)
        """Flow in, flow out, bleeding, as of the last step [m³/s]."""
        self._pump, self._pressure = PUMP.default * MILLILITRE / MINUTE, PRESSURE.default * MMHG
        self._volumes = np.zeros(3, dtype=np.int64)
        """Pumped, irrigated, sucked so far [units]."""
        self._rest = np.zeros(3)
        """Of each less than a unit."""
        self._dissolving = None if film is None else Dissolving(film, self.flow)
        self._look = self._recorded_look()
        self.box.record()

    def _recorded_look(self) -> Program:
        skin, device = self.organ.need_skin(), self._device
        at, covered = skin.position.numpy(), skin.texels.numpy()
        start, near = [0], []
        for number in range(MOST_VESSELS):
            if number < len(self.vessels):
                away = np.linalg.norm(at[covered] - np.asarray(self.vessels[number].point), axis=1)
                order = np.argsort(away, kind="stable")[:MOST_TEXELS]
                near += covered[order[away[order] < AROUND]].tolist()
            start.append(len(near))
        starts = wp.array(start, dtype=wp.int32, device=device.warp)
        texels = wp.array(near or [0], dtype=wp.int32, device=device.warp)

        def record(stage: Stage) -> None:
            if self._burns is not None:
                args = [starts, texels, self._burns.array, self._levels.array]
                stage.once(lambda: wp.launch(look_at_vessels, dim=MOST_VESSELS, inputs=args, device=device.warp))
            stage.download(self._levels)

        return device.record(record, work=1)

    # --- a frame ---

    def frame(self, now: Moment) -> None:
        self.box.frame(now, lambda: self._put_flows(now))

    def _put_flows(self, now: Moment) -> None:
        """All sources and sinks of a step; the outlet closes the balance."""
        self._seal()
        if self._dissolving is not None:
            self._dissolving.run()
        grid.clear(self.flow)
        number = 2
        bled = self._bleed(number)
        number += len(self.vessels)
        came, sucked = self._pump, 0.0
        for tool, rinses in now.using(Rinses):
            shaft = np.array(tool.shaft)
            jet = -min(rinses.speed, FASTEST_JET) * shaft
            grid.put(self.flow, number, tool.tip.tolist(), rate=rinses.rate, jet=jet.tolist(), pull=JET_PULL)
            came, number = came + rinses.rate, number + 1
        for tool, sucks in now.using(Sucks):
            grid.put(self.flow, number, tool.tip.tolist(), rate=-sucks.rate)
            sucked, number = sucked + sucks.rate, number + 1
        inlet, outlet = self.box.corner(0.5, 0.04, INLET), self.box.corner(0.5, 0.96, INLET)
        # A stream that enters through a hole of some square millimetres goes on across the cavity.
        jet = (0.0, min(self._pump / INLET_AREA, FASTEST_JET), 0.0)
        grid.put(self.flow, 0, inlet, rate=self._pump, jet=jet, pull=JET_PULL if self._pump > 0.0 else 0.0)
        grid.put(self.flow, 1, outlet, rate=-(came + bled - sucked))
        self._now[:] = came, came + bled, bled
        due = self._rest + np.array([self._pump, came - self._pump, sucked]) * STEP / self.unit
        self._volumes += due.astype(np.int64)
        self._rest[:] = due - due.astype(np.int64)

    def _seal(self) -> None:
        self._look.run()
        self._device.synchronize()
        self._sealed |= self._levels.host >= SEALED

    def _bleed(self, first: int) -> float:
        """Puts what each open vessel gives in a step; all of it [m³/s]."""
        self._beat[0] = (self._beat[0] + HEART_RATE * STEP) % 1.0
        height, total = pulse(float(self._beat[0])), 0.0
        for place, vessel in enumerate(self.vessels):
            rate = 0.0
            if not self._sealed[place]:
                rate = flow_rate(vessel.vessel, vessel.opening, height, self._pressure)
            due = self._owed[place] + rate * STEP / self.unit
            units = int(due)
            self._owed[place] = due - units
            self._given[place] += units
            grid.put(self.flow, first + place, vessel.point, rate=rate, units={"blood": units})
            total += rate
        return total

    # --- what is seen and kept ---

    def balance(self) -> SalineBalance:
        """Where all fluid is. Waits for the device."""
        unit = round(self.unit / LITTLE)
        _, taken, _ = grid.counted(self.flow, "blood")
        blood, washed, waiting = (0, 0, 0) if self._dissolving is None else self._dissolving.totals()
        given, out = unit * int(self._given.sum()), unit * taken
        cavity = unit * grid.amount(self.flow, "blood") + waiting
        pumped, irrigated, sucked = (unit * int(volume) for volume in self._volumes)
        picolitres = {"given": given, "dissolved": blood, "cavity": cavity, "rinsed_out": out, "pumped": pumped}
        picolitres |= {"irrigated": irrigated, "washed": washed, "sucked": sucked}
        picolitres["let_out"] = pumped + irrigated + given + blood + washed - sucked
        volumes = {name: LITTLE * count for name, count in picolitres.items()}
        return SalineBalance(**volumes, missing=given + blood - cavity - out)

    def view(self) -> float:
        """Green light that comes through from above [%], as if blood were even."""
        return 100.0 * math.exp(-self.box.optical_depth(ABSORPTION * self.unit))

    def measures(self) -> list[tuple[Measure, float]]:
        per_minute = MINUTE / MILLILITRE
        is_open = float((~self._sealed[: len(self.vessels)]).sum())
        return [
            (VIEW, self.view()),
            (BLOOD_LOST, self.unit * int(self._given.sum()) / MILLILITRE),
            (IN_CAVITY, self.unit * self.box.units / MILLILITRE),
            (BLEEDING, float(self._now[2]) * per_minute),
            (OPEN_VESSELS, is_open),
            (FLOW_IN, float(self._now[0]) * per_minute),
            (FLOW_OUT, float(self._now[1]) * per_minute),
        ]

    def system(self) -> System[Saline]:
        arrays = {"sealed": self._sealed, "given": self._given, "owed": self._owed, "beat": self._beat}
        arrays |= {"flows": self._now, "volumes": self._volumes, "rest": self._rest}
        if self._dissolving is not None:
            arrays |= {"fresh": self._dissolving.fresh, "account": self._dissolving.account}
        kept = self.box.kept(arrays)
        return System(
            name="saline",
            frame=self.frame,
            reads=(f"{self.organ.name}.burn_level",) if self._burns is not None else (),
            uses=(Rinses, Sucks),
            save=kept.save,
            load=kept.load,
            shows=[self.box.show(f"{self.organ.name}.saline", "saline", DENSEST)],
            measures=self.measures,
            parameters=[LiveParameter(PUMP, self._set_pump), LiveParameter(PRESSURE, self._set_pressure)],
            holds=self,
        )

    def _set_pump(self, value: float) -> None:
        self._pump = value * MILLILITRE / MINUTE

    def _set_pressure(self, value: float) -> None:
        self._pressure = value * MMHG


def _params(cells: tuple[int, int, int], origin: tuple[float, float, float], spacing: float) -> GridParams:
    # A cell of pure blood must fit into 31 bits: in a large box a unit is a few picolitres.
    unit = LITTLE * math.ceil(spacing**3 / (LITTLE * MOST_UNITS))
    return GridParams(
        cells,
        spacing,
        dt=STEP,
        origin=origin,
        substances=(Substance("blood", unit=unit, lift=SINKS_BY),),
        transport="maccormack",
        dye_steps=3,
    )
