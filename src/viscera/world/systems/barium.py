"""A suspension in a hollow organ: it is let in, runs where the table tilts it, coats the wall, and is drained.

Once a frame: as many steps of the fluid as make 16 ms; what touches the wall leaves some there; an open drain takes
what is at it, up to the mL/s it is set to. What was let in is in the lumen, on the wall or drained, counted in whole
units (`water.coating`); gas that was let in is in the lumen or was let out, in whole microlitres.

A wall with a bowel (bowel.py) may move. While it has its resting shape a map gives its share in the density; else the
nearest wall does, which costs more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from viscera import water
from viscera.device import Stage
from viscera.errors import StateError
from viscera.timing import FRAME
from viscera.units import MILLILITRE
from viscera.view import Measure, Parameter, Particles
from viscera.water.coating import (
    FULL,
    MOST_MADE,
    account,
    covered,
    fit_coating,
    load_coating,
    save_coating,
    step_coating,
    step_drain,
)
from viscera.water.sph import PARTICLE_WORK, step_fluid, step_work
from viscera.water.state import CREATED, LOST
from viscera.world.system import Kept, LiveParameter, Moment, Show, System
from viscera.world.systems.bowel import GAS, Bowel
from viscera.world.systems.enema import Enema, aimed_frames, gravity

wp.set_module_options({"enable_backward": False})

DRAWN = 0.7
"""Radius of the drawn balls over the spacing of the particles."""
TABLE, ENEMA = "Table", "Enema"

FLOW = Parameter("flow", "Inject", "mL/s", 0.0, 25.0, 0.0, "Into the rectum.", group=ENEMA)
DRAIN = Parameter(
    "drain", "Drain", "mL/s", 0.0, 50.0, 0.0, "Out of the rectum: what is there, up to that.", group=ENEMA
)
TILT = Parameter("tilt", "Tilt, head up (+)", "°", -45.0, 90.0, 0.0, "Of the table.", group=TABLE)
ROLL = Parameter("roll", "Roll, left side down (+)", "°", -180.0, 180.0, 0.0, "Of the patient.", group=TABLE)
INJECTED = Measure("injected", "Injected", "mL", "So far.", digits=0)
LUMEN = Measure("lumen", "In the lumen", "mL", "Now.", digits=0)
WALL = Measure("wall", "On the wall", "mL", "Left as a film.", digits=1)
DRAINED = Measure("drained", "Drained", "mL", "So far.", digits=0)
MISSING = Measure("missing", "Missing", "units", "Injected less all of these, counted in whole units: 0.", digits=0)
DRAINS = Measure("draining", "Drains", "mL/s", "Now.", digits=1)
GAS_IN = Measure("co2_in", "CO₂ let in", "mL", "So far, at the air's pressure.", digits=0)
GAS_OUT = Measure("co2_out", "CO₂ let out", "mL", "So far, at the air's pressure.", digits=0)
COATED = Measure("coated", "Wall coated", "%", "Share of the wall with a film.", digits=0)

_FLOW, _DRAIN, _TILT, _ROLL = range(4)
_BUDGET, _RATE = range(2)
_UNKNOWN, _STAYS, _GOES = range(3)
GAS_UNIT = 1.0e-9
"""CO₂ is counted in whole microlitres [m³]."""
WAITS = 0.1
"""What an open drain does not find it may take later, up to so long [s]."""
SHOWN = 0.5
"""Time over which the flow of the drain is shown [s]."""


@wp.kernel
def show(
    first: int,
    # params
    unit: float,
    full: float,
    # in
    count: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    tag: wp.array(dtype=wp.int32),
    content: wp.array(dtype=wp.int32),
    # out
    drawn_out: wp.array(dtype=wp.vec4),
    volume_out: wp.array(dtype=float),
    status_out: wp.array(dtype=wp.int32),
):
    """Where particles are, how much suspension each still has, and whether one is no longer finite."""
    i = first + wp.tid()
    if i == 0:
        status_out[0] = count[0]
    volume = float(0.0)
    if i < count[0]:
        p = position[i]
        if tag[i] >= 0:
            if not wp.isfinite(p[0] + p[1] + p[2]):
                status_out[1] = 1  # whoever writes it writes the same
            volume = unit * float(content[tag[i]])
            drawn_out[i] = wp.vec4(p[0], p[1], p[2], volume / full)
    volume_out[i] = volume


@wp.kernel
def show_film(
    first: int,
    # params
    unit: float,
    # in
    film: wp.array(dtype=wp.int32),
    # out
    volume_out: wp.array(dtype=float),
):
    i = first + wp.tid()
    volume_out[i] = unit * float(film[i])


def filling(enema: Enema, warning: str = "") -> System[Enema]:
    """`warning`: what people should know about the wall."""
    return replace(_Filling(enema).system(), warns=lambda: warning)


class _Filling:
    def __init__(self, enema: Enema) -> None:
        self._enema, self._fluid = enema, enema.fluid
        device = self._fluid.device
        self._device = device
        self._set = np.zeros(4)
        """Flow [mL/s], drain, tilt and roll [°], as they are in force."""
        self._drawn = wp.zeros(self._fluid.capacity, dtype=wp.vec4, device=device.warp)
        self._status = device.port(2, wp.int32)
        self._most = device.port(1, wp.int32)
        """Units that the drain may take in this frame."""
        # While the wall stands one core is enough for 3 000 particles; the others are free for a page that is drawn.
        self._program = device.record(self._record, work=PARTICLE_WORK * self._fluid.capacity)
        self._begin_living()
        self._show = device.record(self._record_show, work=self._fluid.capacity)
        self._books = account(enema.coating, self._fluid)
        self._draining = np.zeros(2)
        """What the drain may take [mL], and its flow [mL/s]."""
        self._co2 = np.zeros(3, dtype=np.int64)
        """In the lumen, let in and let out so far [`GAS_UNIT`]."""
        self._count_gas()
        self._coated = 0.0
        self._apply()
        self._redraw()

    def system(self) -> System[Enema]:
        look = Particles("barium", "barium", DRAWN * self._fluid.params.spacing, self._fluid.capacity)
        bowel = None if self._living is None else self._living.bowel
        kept = Kept(
            {"set": self._set, "draining": self._draining, "co2": self._co2}
            | ({} if bowel is None else {"wall_moves": self._wall} | bowel.kept()),
            self._loaded,
            (self._save, self._load),
        )
        places = ((FLOW, _FLOW), (DRAIN, _DRAIN), (TILT, _TILT), (ROLL, _ROLL))
        return System(
            name="barium",
            frame=self.frame,
            save=kept.save,
            load=kept.load,
            shows=[Show(look, {look.name: self._drawn}, lambda: {look.name: int(self._status.host[0])}), *self._shown],
            measures=self.measures,
            parameters=[
                *(LiveParameter(one, self._setter(place)) for one, place in places),
                *([] if bowel is None else bowel.parameters()),
            ],
            tables=[] if bowel is None else [bowel.table()],
            holds=self._enema,
        )

    def _save(self) -> Any:
        return water.save(self._fluid) | save_coating(self._enema.coating)

    def _load(self, saved: Any) -> None:
        water.load(self._fluid, saved)
        load_coating(self._enema.coating, saved)

    def _begin_living(self) -> None:
        """The same program for a wall that moves."""
        e, f = self._enema, self._fluid
        self._living = e.living
        self._wall = np.zeros(4, dtype=np.int64)
        """Frames since the wall was aimed, whether it moves, whether it has another shape than at rest, and what is
        known of its next way: nothing, that it stays, or where it goes."""
        self._shown: list[Show] = []
        if e.living is None:
            return
        one = e.living
        self._measure_lumen()
        self._seen = one.bowel.of("shown").astype(np.float32)
        self._shown = [Show(one.surface, {one.surface.array: self._seen})]
        self._wanted = self._device.port(len(one.bowel.of("wall")), wp.vec3)
        still = f.boundaries
        f.boundaries = [one.share if boundary is one.still else boundary for boundary in still]
        e.vessel.moving = True
        self._moving_program = self._device.record(self._record, work=step_work(f))
        f.boundaries, e.vessel.moving = still, False
        self._aimed = aimed_frames(e.vessel.walls)
        if e.vessel.walls.hashed is not None:
            self._aim_program = self._device.record(self._record_aim)

    def _record_aim(self, stage: Stage) -> None:
        stage.upload(self._wanted)
        water.aim_walls(stage, self._enema.vessel.walls, self._wanted.array)

    def _move(self) -> None:
        """All that hangs on the wall goes where it is."""
        if self._living is None:
            return
        bowel = self._living.bowel
        self._wanted.host[:] = bowel.of("wall")
        self._seen[:] = bowel.of("shown")
        self._measure_lumen()

    def _measure_lumen(self) -> None:
        """Volume within the wall [m³]."""
        assert self._living is not None
        a, b, c = (self._living.bowel.of("wall")[self._living.triangles[:, corner]] for corner in range(3))
        self._lumen = float(np.einsum("ij,ij->", a, np.cross(b, c))) / 6.0

    def _loaded(self) -> None:
        if self._living is not None:
            self._living.bowel.refresh()
            self._move()
        self._apply()
        self._redraw()
        self._count()

    def _setter(self, place: int) -> Any:
        def change(value: float) -> None:
            self._set[place] = value
            self._apply()

        return change

    def _apply(self) -> None:
        """Nozzle, drain and table as they are set."""
        flow, _, tilt, roll = self._set.tolist()
        e, spacing = self._enema, self._fluid.params.spacing
        speed = flow * MILLILITRE / (len(e.emitter.layer) * spacing**2)
        moving = {"velocity": [speed * one for one in e.along]} if flow > 0.0 else {}
        water.set_emitter(e.emitter, on=flow > 0.0 and self._room(), **moving)
        water.set(self._fluid, replace(self._fluid.params, gravity=gravity(tilt, roll)))

    def _room(self) -> bool:
        """Whether accounts can be kept of the next frame's particles."""
        return int(self._fluid.report.numpy()[CREATED]) + self._fluid.capacity < MOST_MADE

    def _run(self) -> None:
        if self._living is None:
            self._program.run()
            return
        bowel, frames = self._living.bowel, self._aimed if self._wall[2] else 1
        if self._wall[0] == 0:
            self._aim(bowel)
            frames = self._aimed if self._wall[2] else 1
        (self._moving_program if self._wall[2] else self._program).run()
        if bowel.gives_way:
            bowel.lattice.feel()
        self._wall[0] = (self._wall[0] + 1) % frames
        if self._wall[0] == 0 and frames > 1:
            # A frame before it is aimed at, so that no frame has all the work.
            self._wall[3] = _GOES if bowel.advance(self._aimed) else _STAYS

    def _aim(self, bowel: Bowel) -> None:
        """Where the wall is to be in some frames, or, as a hierarchy, is now. After its last way it is aimed once more,
        at where it stands: its velocity is 0 from then on."""
        walls = self._enema.vessel.walls
        moves = bowel.advance(self._aimed) if self._wall[3] == _UNKNOWN else bool(self._wall[3] == _GOES)
        if moves:
            self._move()
        aims = moves or bool(self._wall[1])
        if aims and walls.hashed is not None:
            self._aim_program.run()
        elif aims:
            water.refit_walls(walls, bowel.of("wall"), FRAME)
        self._wall[1:] = moves, aims or not bowel.at_rest, _UNKNOWN

    def _open_drain(self) -> None:
        """It may take what its mL/s allow."""
        rate = float(self._set[_DRAIN])
        self._draining[_BUDGET] = min(self._draining[_BUDGET] + FRAME * rate, WAITS * rate)
        units = self._draining[_BUDGET] * MILLILITRE / self._enema.coating.unit
        self._most.host[0] = max(0, int(units)) if rate > 0.0 else 0

    def frame(self, now: Moment) -> None:
        self._open_drain()
        before = self._books.drained
        self._run()
        self._redraw()
        self._check(now.tick)
        self._count()
        taken = (self._books.drained - before) * self._enema.coating.unit / MILLILITRE
        self._draining[_BUDGET] -= taken
        self._draining[_RATE] += (taken / FRAME - self._draining[_RATE]) * FRAME / SHOWN

    def _check(self, tick: int) -> None:
        if self._wall[0] == 1:  # the frame in which it was aimed
            self._enema.vessel.check(tick)
        if self._status.host[1] or int(self._fluid.report.numpy()[LOST]):
            raise StateError(
                "barium: a particle's position is not finite.",
                "The fluid became unstable: inject more slowly.",
                stage="barium",
                tick=tick,
            )

    def _count(self) -> None:
        """What is where after a frame."""
        self._books = account(self._enema.coating, self._fluid)
        self._coated = covered(self._enema.coating)
        self._count_gas()
        if not self._room():
            water.set_emitter(self._enema.emitter, on=False)

    def _record(self, stage: Stage) -> None:
        e, f = self._enema, self._fluid
        for number in range(e.steps):
            step_fluid(stage, f)
            if number == 0:
                # The next step's sort takes out what is marked here: between frames all particles are whole.
                step_drain(stage, e.coating, f, e.drain, self._most)
        if e.living is not None:
            fit_coating(stage, e.coating, e.vessel.walls.vertices)
        step_coating(stage, e.coating, f, e.vessel.contacts.face, FRAME)

    def _record_show(self, stage: Stage) -> None:
        e, f, c = self._enema, self._fluid, self._enema.coating
        stage.clear(self._status)
        seen = [f.count, f.position, f.tag, c.content, self._drawn, e.volume, self._status.array]
        stage.launch(show, f.capacity, [c.unit, FULL * c.unit, *seen])
        stage.launch(show_film, len(c.film), [c.unit, c.film, e.film_volume])
        stage.download(self._status)

    def _redraw(self) -> None:
        self._show.run()
        self._device.synchronize()

    def measures(self) -> list[tuple[Measure, float]]:
        books, one = self._books, self._enema.coating.unit / MILLILITRE
        return [
            *self._gas(),
            (INJECTED, books.injected * one),
            (LUMEN, books.lumen * one),
            (WALL, books.wall * one),
            (DRAINED, books.drained * one),
            (MISSING, float(books.missing)),
            (DRAINS, float(self._draining[_RATE])),
            (COATED, 100.0 * self._coated),
        ]

    def _gas(self) -> list[tuple[Measure, float]]:
        if self._living is None:
            return []
        one = GAS_UNIT / MILLILITRE
        return [(what, one * float(count)) for what, count in zip((GAS, GAS_IN, GAS_OUT), self._co2, strict=True)]

    def _count_gas(self) -> None:
        """What the insufflator lets in or out, so that its pressure is in what the liquid leaves of the lumen."""
        if self._living is None:
            return
        liquid = (self._books.lumen + self._books.wall) * self._enema.coating.unit
        now = round(self._living.bowel.gas(self._lumen, liquid) / GAS_UNIT)
        change = now - int(self._co2[0])
        self._co2 += (change, max(change, 0), max(-change, 0))
