"""Smoke: it starts where tissue burns, rises, bends around organs and tools, and stays until it is drawn away.

Reads `ORGAN.burn_level`. In every texel the mass of water that boils off and of tissue that chars gives smoke,

    smoke = MIST · water boiled off + SOOT · tissue charred,

in whole units, into the cell above; with it comes warmth, which lifts. The gas above an organ is a closed box of cells
(viscera.grid), the abdomen. A step is 48 ms long and takes three frames: the flow, its pressure, what it carries. Air
without smoke costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera import grid
from viscera.device import Stage
from viscera.errors import StateError
from viscera.geometry.distance import distance_field, sample
from viscera.grid import Grid, GridParams, Substance
from viscera.grid.dye import COUNTERS, GIVEN
from viscera.grid.shape import GridShape
from viscera.grid.solids import MOST_BARS
from viscera.heat.burn import Burn, done
from viscera.instruments import Evacuates, Tool
from viscera.timing import FRAME
from viscera.units import LITRE, MINUTE
from viscera.view import Measure, Parameter, Volume
from viscera.world.organ import Organ
from viscera.world.system import Kept, LiveParameter, Moment, Show, System, Watch

wp.set_module_options({"enable_backward": False})

CELLS = (64, 40, 44)
"""Along x, y, z: as many as 48³, with a width that travels to the page."""
ROOM = 1.5
"""The box is so much longer and wider than the organ."""
PARTS = 3
"""Frames in which a step is done."""
UNIT = 1.0e-13
"""Of smoke, and of water that boils [kg]."""
MIST, SOOT = 0.02, 0.3
"""Share of boiled water that stays in the air as fine drops, and of charred solids that become soot. Tuned for
appearance: a hook that chars fills a litre of gas within some ten seconds so far that one sees it."""
EXTINCTION = 4.0e3
"""[m²/kg]: smoke of burning organic matter, about 4 m²/g (Mulholland and Croarkin 2000: 8.7 for flaming soot)."""
DENSEST = 120.0
"""Of the picture: so much light is lost per metre at full [1/m]."""
GAS_HEAT = 1.8 * 850.0
"""Of a volume of carbon dioxide at 37 °C [J/(m³·K)]."""
WARMS = 0.006
"""Share of the heat of boiling that the gas keeps; the rest condenses on tissue and steel. Tuned: plumes rise with a
few tenths of a metre per second."""
LATENT = 2.257e6
"""[J/kg]"""
STEAM = 1.7 * 0.02
"""Volume that boiled water has as gas, less what condenses at once [m³/kg]."""
BODY = 310.15
"""[K]"""
GRAVITY = 9.81
"""[m/s²]"""
COOLING = 0.4
"""Of warm gas at walls and organs [1/s]; tuned."""
FASTEST_BAR = 0.6
"""A bar that moves faster has jumped [m/s]."""
LOOK = 16
"""Steps between two looks whether all is finite, and whether the smoke has gone."""
CLEAR = 99.9
"""View from which on the air counts as clear [%]."""

VIEW = Measure("view", "View", "%", "Light that reaches the organ through the smoke, mean over the box.", digits=0)
HAZY = Measure("hazy", "In haze", "s", "Time with less than 80 % of the view so far.", digits=1)
HAZE = 80.0
"""[%]"""
VENT = Parameter("vent", "Vent", "L/min", 0.0, 10.0, 0.0, "Gas let out at a trocar; as much flows in.", group="Smoke")


@wp.struct
class BurningSkin:
    """What burns: texels that have skin, where they are [m], their area [m²]; water left and charring."""

    texels: wp.array(dtype=wp.int32)
    position: wp.array(dtype=wp.vec3)
    area: wp.array(dtype=wp.float32)
    water: wp.array(dtype=wp.float32)
    charring: wp.array(dtype=wp.float32)


@wp.kernel
def release(
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    wet: float,
    dry: float,
    # in
    skin: BurningSkin,
    inverse: wp.array[wp.float32],
    # out
    texel_out: wp.array[wp.vec4],
    smoke_out: wp.array[wp.int32],
    steam_out: wp.array[wp.int32],
    total_out: wp.array[wp.int64],
):
    """What each texel has lost since it was last asked goes into the lowest free cell above it, in whole units; the
    rest waits (`texel_out`: water and char as seen, smoke and steam owed). Whole numbers add up alike in any order; on
    cpu one core does it, as atomics there are plain. `wet` and `dry` are units of water and solids per m² of skin."""
    t = skin.texels[wp.tid()]
    seen = texel_out[t]
    if skin.water[t] == seen[0] and skin.charring[t] == seen[1]:
        return
    boiled = wet * skin.area[t] * wp.max(seen[0] - skin.water[t], 0.0)
    charred = dry * skin.area[t] * wp.max(done(skin.charring[t]) - done(seen[1]), 0.0)
    smoke = seen[2] + MIST * boiled + SOOT * charred
    steam = seen[3] + boiled
    at = (skin.position[t] - origin) / spacing
    i = int(at[0]) + 1
    j = int(at[1]) + 1
    k = int(at[2]) + 1
    if i >= 1 and j >= 1 and k >= 1 and i <= shape.nx and j <= shape.ny:
        c = wp.min(k, shape.nz) * shape.layer + j * shape.row + i
        while inverse[c] <= 0.0 and c < shape.nz * shape.layer:
            c += shape.layer
        wp.atomic_add(smoke_out, c, int(smoke))
        wp.atomic_add(steam_out, c, int(steam))
        wp.atomic_add(total_out, 0, wp.int64(int(smoke)))
    texel_out[t] = wp.vec4(skin.water[t], skin.charring[t], smoke - float(int(smoke)), steam - float(int(steam)))


@wp.kernel
def mix_in(
    # params
    shape: GridShape,
    warmth: float,
    volume: float,
    counter: int,
    # out
    smoke_out: wp.array[wp.int32],
    steam_out: wp.array[wp.int32],
    amount_out: wp.array[wp.int32],
    warm_out: wp.array[wp.float32],
    rate_out: wp.array[wp.float32],
    counters_out: wp.array[wp.int64],
):
    """What was released joins the flow. `warmth` [K] and `volume` [1/s] are those of one unit of steam in a cell."""
    c = shape.layer + wp.tid()
    if smoke_out[c] > 0:
        amount_out[c] = amount_out[c] + smoke_out[c]
        wp.atomic_add(counters_out, counter, wp.int64(smoke_out[c]))
        smoke_out[c] = 0
    if steam_out[c] > 0:
        warm_out[c] = warm_out[c] + warmth * float(steam_out[c])
        rate_out[c] = rate_out[c] + volume * float(steam_out[c])
        steam_out[c] = 0


@wp.kernel
def show_smoke(
    first: int,
    # params
    shape: GridShape,
    per_unit: float,
    # in
    amount: wp.array[wp.int32],
    # out
    picture_out: wp.array3d[wp.uint8],
    row_out: wp.array[wp.int64],
):
    """The box as the page has it, row by row, and the units in each row. `per_unit` is the share of the densest."""
    line = first + wp.tid()
    c = (1 + line // shape.ny) * shape.layer + (1 + line % shape.ny) * shape.row + 1
    total = wp.int64(0)
    for i in range(shape.nx):
        units = amount[c + i]
        total += wp.int64(units)
        picture_out[line, i, 0] = wp.uint8(wp.min(255.0 * per_unit * float(units) + 0.5, 255.0))
    row_out[line] = total


@dataclass(frozen=True)
class SmokeBox:
    """Where the gas is: the lowest corner and the side of a cell [m]."""

    origin: tuple[float, float, float]
    spacing: float


def box_over(organ: Organ) -> SmokeBox:
    """A box of `CELLS` that stands where the organ stands, with it in the middle."""
    low, high = organ.body.mesh.bounds
    size = high - low
    spacing = ROOM * float(max(size[0] / CELLS[0], size[1] / CELLS[1], 1.5 * size[2] / CELLS[2]))
    middle = 0.5 * (low + high)
    x, y = (float(middle[axis] - 0.5 * spacing * CELLS[axis]) for axis in range(2))
    return SmokeBox((x, y, float(low[2])), spacing)


def organ_distance(organ: Organ, params: GridParams) -> NDArray[np.float64]:
    """Of the corners of cells from an organ at rest [m]: tissue moves by less than a cell."""
    places = grid.corners(params)
    field = distance_field(organ.body.mesh, params.spacing, device=None)
    return sample(field, places.reshape(-1, 3), "projected")[0].reshape(places.shape[:3])


def smoking(organ: Organ, burn: Burn, tools: Sequence[Tool]) -> System:
    """Smoke over an organ; after `burning` in the order of a frame."""
    return Smoke(organ, burn, tools).system()


class Smoke:
    """`flow` is the gas."""

    def __init__(self, organ: Organ, burn: Burn, tools: Sequence[Tool]) -> None:
        self.organ, self.burn = organ, burn
        self._device = device = organ.need_skin().device
        box = box_over(organ)
        self.flow: Grid = grid.make(_params(box), organ_distance(organ, _params(box)), device=device)
        self._burnt = Watch(organ.read_field("burn_level"))
        skin, layout = organ.need_skin(), self.flow.layout
        self._texel = wp.array(
            np.tile(np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float32), (skin.width * skin.height, 1)),
            dtype=wp.vec4,
            device=device.warp,
        )
        self._smoke = wp.zeros(layout.size, dtype=wp.int32, device=device.warp)
        self._steam = wp.zeros(layout.size, dtype=wp.int32, device=device.warp)
        self._released = device.port(1, wp.int64)
        rows = CELLS[1] * CELLS[2]
        self._rows = device.port(rows, wp.int64)
        self.picture = wp.zeros((rows, CELLS[0], 4), dtype=wp.uint8, device=device.warp)
        self._ends = np.zeros((len(tools), *tools[0].end.shape)) if tools else np.zeros((0, 4, 2, 3))
        self._inside = np.zeros(len(tools), dtype=np.bool_)
        self._clock = np.zeros(3, dtype=np.int64)
        """Part of a step that comes next, steps so far, whether the air moves."""
        self._hazy = np.zeros(1)
        self._vent = 0.0
        self.flow.brings.append(self._record_mixing)
        self._programs = self._recorded()
        self._follow()
        self._redraw()

    # --- what is recorded ---

    def _recorded(self) -> dict[str, Any]:
        work = grid.work(self.flow)
        record = self._device.record
        programs = {
            "release": record(self._record_release, work=1),
            "follow": record(lambda stage: grid.follow(stage, self.flow), work=work),
            "show": record(self._record_show, work=work),
        }
        for part in range(PARTS):
            programs[f"part {part}"] = record(lambda stage, part=part: self._record_part(stage, part), work=work)
        return programs

    def _record_part(self, stage: Stage, part: int) -> None:
        grid.step_part(stage, self.flow, part)
        if part == PARTS - 1:
            self._record_show(stage)

    def _record_release(self, stage: Stage) -> None:
        skin, heat, fine = self.organ.need_skin(), self.burn.heat.params, self.flow.levels[0]
        per_area = heat.density * heat.thickness / UNIT
        wet, p = self.burn.params.water_content, self.flow.params
        burning: Any = BurningSkin()
        burning.texels, burning.position, burning.area = skin.texels, skin.position, skin.rest_area
        burning.water, burning.charring = self.burn.water, self.burn.charring
        args = [fine.shape, wp.vec3(*p.origin), p.spacing, per_area * wet, per_area * (1.0 - wet), burning]
        args += [fine.inverse, self._texel, self._smoke, self._steam, self._released.array]
        stage.clear(self._released)
        stage.once(lambda: wp.launch(release, dim=skin.count, inputs=args, device=self._device.warp))
        stage.download(self._released)

    def _record_mixing(self, stage: Stage) -> None:
        flow, warm = self.flow, self.flow.carried["warmth"]
        volume = flow.params.cell_volume
        warmth, gas = WARMS * LATENT * UNIT / (GAS_HEAT * volume), STEAM * UNIT / (volume * flow.params.dt)
        place = COUNTERS * list(flow.carried).index("smoke") + GIVEN
        args = [flow.levels[0].shape, warmth, gas, place, self._smoke, self._steam]
        args += [flow.carried["smoke"].amount, warm.value, flow.rate, flow.counters]
        count = flow.layout.count
        stage.once(lambda: wp.launch(mix_in, dim=count, inputs=args, device=self._device.warp))

    def _record_show(self, stage: Stage) -> None:
        flow = self.flow
        per_unit = EXTINCTION * UNIT / (flow.params.cell_volume * DENSEST)
        args = [flow.levels[0].shape, per_unit, flow.carried["smoke"].amount, self.picture, self._rows.array]
        stage.launch(show_smoke, CELLS[1] * CELLS[2], args, block=16)
        stage.download(self._rows)

    def _run(self, name: str) -> None:
        self._programs[name].run()
        self._device.synchronize()

    def _follow(self) -> None:
        self._run("follow")

    def _redraw(self) -> None:
        self._run("show")

    # --- a frame ---

    def frame(self, now: Moment) -> None:
        if self._burnt.changed():
            self._run("release")
            if self._released.host[0] > 0:
                self._clock[2] = 1
        self._hazy[0] += FRAME if self.view() < HAZE else 0.0
        if not self._clock[2]:
            return
        part = int(self._clock[0])
        if part == 0:
            self._place_tools(now)
        self._run(f"part {part}")
        self._clock[0] = (part + 1) % PARTS
        if part == PARTS - 1:
            self._clock[1] += 1
            if self._clock[1] % LOOK == 0:
                self._look(now.tick)

    def _place_tools(self, now: Moment) -> None:
        """Bars and their velocities since the last step; evacuators, and what comes in for what they take."""
        ends, radii, speeds = [], [], []
        for number, tool in enumerate(now.tools):
            count = tool.bars.count
            if tool.active and count:
                speed = (tool.end[:count] - self._ends[number, :count]) / self.flow.params.dt
                slow = self._inside[number] and float(np.abs(speed).max()) < FASTEST_BAR
                ends.append(tool.end[:count])
                radii.append(tool.bars.radii)
                speeds.append(speed if slow else np.zeros_like(speed))
            self._ends[number], self._inside[number] = tool.end, tool.active
        some = bool(ends)
        none = np.zeros((0, 2, 3))
        grid.set_bars(
            self.flow,
            np.concatenate(ends)[:MOST_BARS] if some else none,
            np.concatenate(radii)[:MOST_BARS] if some else np.zeros(0),
            np.concatenate(speeds)[:MOST_BARS] if some else none,
        )
        self._follow()
        self._put_flows(now)

    def _put_flows(self, now: Moment) -> None:
        """Sinks, and one source at the far upper corner, where the insufflator's trocar is."""
        p = self.flow.params
        corner = np.asarray(p.origin) + p.spacing * np.asarray(p.cells)
        grid.clear(self.flow)
        taken = 0.0
        number = 1
        for tool, evacuates in now.using(Evacuates):
            grid.put(self.flow, number, tool.tip.tolist(), rate=-evacuates.rate)
            taken, number = taken + evacuates.rate, number + 1
        if self._vent > 0.0:
            away = (
                p.origin[0] + 3.0 * p.spacing,
                float(corner[1] - 3.0 * p.spacing),
                float(corner[2] - 2.0 * p.spacing),
            )
            grid.put(self.flow, number, away, rate=-self._vent)
            taken += self._vent
        grid.put(self.flow, 0, (corner - 3.0 * p.spacing).tolist(), rate=taken)

    def _look(self, tick: int) -> None:
        grid.check(self.flow, tick)
        if grid.missing(self.flow, "smoke"):
            raise StateError(
                "smoke: some of it is nowhere.", "Report this: it is kept exactly.", stage="smoke", tick=tick
            )
        if self.view() > CLEAR and not self._smoke.numpy().any() and not int(self._rows.host.sum()):
            for part in self.flow.velocity:
                part.zero_()
            self.flow.carried["warmth"].value.zero_()
            self._clock[2] = 0

    # --- what is seen and kept ---

    def view(self) -> float:
        """Light that comes through the box from above [%], mean over its floor as if smoke were even."""
        p = self.flow.params
        floor = p.spacing**2 * p.cells[0] * p.cells[1]
        return 100.0 * float(np.exp(-EXTINCTION * UNIT * float(self._rows.host.sum()) / floor))

    def system(self) -> System:
        p = self.flow.params
        x, y, z = (float(p.origin[axis] + p.spacing * p.cells[axis]) for axis in range(3))
        name = f"{self.organ.name}.smoke"
        volume = Volume(name, "smoke", *p.cells, box=(p.origin, (x, y, z)), densest=DENSEST)
        kept = Kept(
            {"texel": self._texel, "fresh": self._smoke, "steam": self._steam, "ends": self._ends,
             "inside": self._inside, "clock": self._clock, "hazy": self._hazy},
            self._loaded,
            (lambda: grid.save(self.flow), lambda saved: grid.load(self.flow, saved)),
        )  # fmt: skip
        return System(
            name="smoke",
            frame=self.frame,
            reads=(f"{self.organ.name}.burn_level",),
            uses=(Evacuates,),
            save=kept.save,
            load=kept.load,
            shows=[Show(volume, {name: self.picture})],
            measures=lambda: [(VIEW, self.view()), (HAZY, float(self._hazy[0]))],
            parameters=[LiveParameter(VENT, self._set_vent)],
            holds=self,
        )

    def _set_vent(self, value: float) -> None:
        self._vent = value * LITRE / MINUTE
        if value > 0.0:
            self._clock[2] = 1

    def _loaded(self) -> None:
        self._follow()
        self._redraw()


def _params(box: SmokeBox) -> GridParams:
    return GridParams(
        CELLS,
        box.spacing,
        dt=PARTS * FRAME,
        origin=box.origin,
        substances=(
            Substance("smoke", unit=UNIT, diffusivity=1.0e-5),
            Substance("warmth", "semi_lagrangian", lift=GRAVITY / BODY, fading=COOLING),
        ),
        transport="semi_lagrangian",
        cycles=4,
        dye_steps=3,
    )
