"""Smoke: it starts where tissue burns, rises, bends around organs and tools, and stays until it is drawn away.

Reads `ORGAN.burn_level`. In every texel the mass of water that boils off and of tissue that chars gives smoke,

    smoke = MIST · water boiled off + SOOT · tissue charred,

in whole units, into the cell above; with it comes warmth, which lifts. The gas above an organ is a closed box of cells
(viscera.grid, `boxed_flow`), the abdomen. Air without smoke costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp

from viscera import grid
from viscera.device import Stage
from viscera.grid import GridParams, Substance
from viscera.grid.dye import COUNTERS, GIVEN
from viscera.grid.shape import GridShape
from viscera.heat.burn import Burn, done
from viscera.instruments import Evacuates, Tool
from viscera.timing import FRAME
from viscera.units import LITRE, MINUTE
from viscera.view import Measure, Parameter
from viscera.world.organ import Organ
from viscera.world.system import Kept, LiveParameter, Moment, Saved, System, Watch
from viscera.world.systems.boxed_flow import STEP, BoxedFlow, box_over, cells_at
from viscera.world.systems.puffs import MOST_AT_ONCE, Puffs, burning_places

wp.set_module_options({"enable_backward": False})

CELLS = (64, 40, 44)
"""Along x, y, z, at detail 1: as many as 48³."""
ROOM, ABOVE = 1.5, 0.75
"""The box is so much longer and wider than the organ, and so much of it is over it."""
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
DIFFUSIVITY = 1.0e-5
"""Of smoke in gas, with what is too small for the cells [m²/s]; tuned."""

VIEW = Measure("view", "View", "%", "Light that reaches the organ through the smoke, mean over the box.", digits=0)
HAZY = Measure("hazy", "In haze", "s", "Time with less than 80 % of the view so far.", digits=1, grows=True)
HAZE = 80.0
"""[%]"""
MODEL = Parameter(
    "smoke_model",
    "Smoke",
    "",
    0.0,
    1.0,
    0.0,
    "Flow: gas carries it around organs and tools, and it can be drawn away. Puffs: they rise, grow and fade.",
    choices=("Flow", "Puffs"),
    group="Smoke",
)
SWIRL = Parameter(
    "swirl",
    "Swirl",
    "1/s",
    0.0,
    4.0,
    0.0,
    "Gives back small whirls that coarse cells lose (Fedkiw, Stam and Jensen 2001); 0 is off.",
    group="Smoke",
)
VENT = Parameter("vent", "Vent", "L/min", 0.0, 10.0, 0.0, "Gas let out at a trocar; as much flows in.", group="Smoke")

CHUNK = 64
"""Texels per thread on cpu, where arguments are copied for every thread: that takes longer than a cold texel does."""


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
    chunk: int,
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
    cpu one core does it, as atomics there are plain, `chunk` texels a thread. `wet` and `dry` are units of water and
    solids per m² of skin."""
    begin = wp.tid() * chunk
    for n in range(begin, wp.min(begin + chunk, skin.texels.shape[0])):
        t = skin.texels[n]
        seen = texel_out[t]
        if skin.water[t] != seen[0] or skin.charring[t] != seen[1]:
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
            left = wp.vec2(smoke - float(int(smoke)), steam - float(int(steam)))
            texel_out[t] = wp.vec4(skin.water[t], skin.charring[t], left[0], left[1])


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


def smoking(
    organ: Organ, burn: Burn, tools: Sequence[Tool], detail: float = 1.0, stated: tuple[int, int, int] = CELLS
) -> System[Smoke]:
    """Smoke over an organ; after `burning` in the order of a frame. `detail` times as many cells as `stated`."""
    return Smoke(organ, burn, tools, detail, stated).system()


class Smoke:
    """`box` has the gas."""

    def __init__(
        self,
        organ: Organ,
        burn: Burn,
        tools: Sequence[Tool],
        detail: float = 1.0,
        stated: tuple[int, int, int] = CELLS,
    ) -> None:
        self.organ, self.burn = organ, burn
        self._device = device = organ.need_skin().device
        cells = cells_at(detail, stated)
        params = _params(cells, *box_over(organ, cells, ROOM, ABOVE))
        per_unit = EXTINCTION * UNIT / (params.cell_volume * DENSEST)
        self.box = BoxedFlow(organ, params, tools, "smoke", per_unit=per_unit, blood=False)
        self.flow = self.box.flow
        self._burnt = Watch(organ.read_field("burn_level"))
        skin, layout = organ.need_skin(), self.flow.layout
        unburnt = np.tile(np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float32), (skin.width * skin.height, 1))
        self._texel = wp.array(unburnt, dtype=wp.vec4, device=device.warp)
        self._smoke = wp.zeros(layout.size, dtype=wp.int32, device=device.warp)
        self._steam = wp.zeros(layout.size, dtype=wp.int32, device=device.warp)
        self._released = device.port(1, wp.int64)
        self._awake = np.zeros(1, dtype=np.bool_)
        """Whether the air moves."""
        self._hazy = np.zeros(1)
        self._vent = 0.0
        self._loaded = False
        """Whether a state was loaded, in which something may have burnt that was not looked at yet."""
        self._as_puffs = np.zeros(1, dtype=np.bool_)
        self.puffs = Puffs(self.flow)
        self.flow.brings.append(self._record_mixing)
        self._release = device.record(self._record_release, work=1)
        self._puffing = device.record(self.puffs.record, work=grid.work(self.flow))
        self.box.record()

    # --- what is recorded ---

    def _record_release(self, stage: Stage) -> None:
        skin, heat, fine = self.organ.need_skin(), self.burn.heat.params, self.flow.levels[0]
        per_area = heat.density * heat.thickness / UNIT
        wet, p = self.burn.params.water_content, self.flow.params
        burning: Any = BurningSkin()
        burning.texels, burning.position, burning.area = skin.texels, skin.position, skin.rest_area
        burning.water, burning.charring = self.burn.water, self.burn.charring
        chunk = 1 if stage.device.is_cuda else CHUNK
        args = [fine.shape, wp.vec3(*p.origin), p.spacing, per_area * wet, per_area * (1.0 - wet), chunk, burning]
        args += [fine.inverse, self._texel, self._smoke, self._steam, self._released.array]
        stage.clear(self._released)
        threads = -(-skin.count // chunk)
        stage.once(lambda: wp.launch(release, dim=threads, inputs=args, device=self._device.warp))
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

    # --- a frame ---

    def frame(self, now: Moment) -> None:
        # Once a step is often enough, and all that burns is looked at.
        if self.box.begins and (self._burnt.changed() or self._loaded):
            self._loaded = False
            self._release.run()
            self._device.synchronize()
            if self._released.host[0] > 0:
                self._awake[0] = True
        self._hazy[0] += FRAME if self.view() < HAZE else 0.0
        if self._awake[0] and self._as_puffs[0]:
            self.box.frame_without_flow(self._puff)
        elif self._awake[0] and self.box.frame(now, lambda: self._put_flows(now)):
            self._rest()

    def _put_flows(self, now: Moment) -> None:
        """Sinks, and one source in a far upper corner, where the insufflator's trocar is."""
        grid.clear(self.flow)
        taken, number = 0.0, 1
        for tool, evacuates in now.using(Evacuates):
            grid.put(self.flow, number, tool.tip.tolist(), rate=-evacuates.rate)
            taken, number = taken + evacuates.rate, number + 1
        if self._vent > 0.0:
            grid.put(self.flow, number, self.box.corner(0.05, 0.93, 0.95), rate=-self._vent)
            taken += self._vent
        grid.put(self.flow, 0, self.box.corner(0.95, 0.93, 0.93), rate=taken)

    def _puff(self) -> None:
        """A step of the document's smoke: what was released since the last one becomes puffs."""
        self.puffs.age(STEP)
        fresh = self._smoke.numpy()
        waiting = self.flow.layout.box(fresh)
        for place, units in burning_places(waiting, self.flow.params) if self.puffs.room >= MOST_AT_ONCE else ():
            self.puffs.let_puffs_go(place, units)
        self._smoke.assign(fresh)
        self._steam.zero_()
        self._puffing.run()
        self._device.synchronize()
        if not waiting.any() and not self.puffs.count.host[0]:
            self._awake[0] = False

    def _set_model(self, value: float) -> None:
        """Begins anew with clear air."""
        if bool(value) != bool(self._as_puffs[0]):
            self._as_puffs[0] = bool(value)
            self.puffs.count.host[0] = 0
            self.flow.carried["smoke"].amount.zero_()
            given, taken, left = grid.counted(self.flow, "smoke")
            self.flow.begun["smoke"] = taken + left - given
            self.box.redraw()

    def _rest(self) -> None:
        """Air without smoke stands still."""
        if self.box.units == 0:
            for part in self.flow.velocity:
                part.zero_()
            self.flow.carried["warmth"].value.zero_()
            self._awake[0] = False

    def wake(self) -> None:
        """Lets the air move in the next frame, smoke or none: for finding out what it costs."""
        self._awake[0] = True

    def view(self) -> float:
        """Light that comes through the box from above [%], mean over its floor as if smoke were even."""
        return 100.0 * math.exp(-self.box.optical_depth(EXTINCTION * UNIT))

    def _set_swirl(self, value: float) -> None:
        self.box.confines = value > 0.0
        if value > 0.0:
            grid.set(self.flow, replace(self.flow.params, confinement=value))

    def _set_vent(self, value: float) -> None:
        self._vent = value * LITRE / MINUTE

    def _load(self, kept: Kept, saved: Saved) -> None:
        kept.load(saved)
        self._loaded = True

    def system(self) -> System[Smoke]:
        kept = self.box.kept(
            {"texel": self._texel, "fresh": self._smoke, "steam": self._steam, "awake": self._awake, "hazy": self._hazy}
            | {"as_puffs": self._as_puffs, "puffs": self.puffs.rows.host, "puff_count": self.puffs.count.host}
            | {"let_go": self.puffs.let_go}
        )
        return System(
            name="smoke",
            frame=self.frame,
            reads=(f"{self.organ.name}.burn_level",),
            uses=(Evacuates,),
            save=kept.save,
            load=lambda saved: self._load(kept, saved),
            shows=[self.box.show(f"{self.organ.name}.smoke", "smoke", DENSEST)],
            measures=lambda: [(VIEW, self.view()), (HAZY, float(self._hazy[0]))],
            parameters=[
                LiveParameter(MODEL, self._set_model),
                LiveParameter(VENT, self._set_vent),
                LiveParameter(SWIRL, self._set_swirl),
            ],
            holds=self,
        )


def _params(cells: tuple[int, int, int], origin: tuple[float, float, float], spacing: float) -> GridParams:
    return GridParams(
        cells,
        spacing,
        dt=STEP,
        origin=origin,
        substances=(
            Substance("smoke", unit=UNIT, diffusivity=DIFFUSIVITY),
            Substance("warmth", "semi_lagrangian", lift=GRAVITY / BODY, fading=COOLING),
        ),
        transport="semi_lagrangian",
        confinement=SWIRL.maximum,  # as long as the setting is 0 the programs leave it out
        # In fine cells it spreads over more of them.
        dye_steps=max(3, math.ceil(6.0 * DIFFUSIVITY * STEP / spacing**2)),
    )
