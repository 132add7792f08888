"""Heat and burns on the tissue of every world of a batch, in one recorded program.

    hot = batch.burns(worlds, texels=64, power=30.0)
    hot.press(pedals)                  # (worlds,): whose tool is under current
    worlds.step(10)
    hot.step()                         # the same 10 ms
    hot.level.numpy()                  # (worlds, texels): 0 healthy, 1 coagulated, 2 charred

With `stiffens=True` burnt tissue becomes stiffer. Conduction is that of the skin at rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.batch import burning, drawing, metal, stiffening
from viscera.batch.batch import ACTION_TICKS, Batch
from viscera.batch.stiffening import Stiffening
from viscera.device import Stage
from viscera.errors import InputError
from viscera.geometry.parts import JointedTool, make_tool
from viscera.heat.arrays import TILE
from viscera.heat.burn import Burn, BurnParams, make_burn
from viscera.heat.conduction import Heat, HeatParams, make_heat, stage_weights
from viscera.heat.electrode import ElectrodeParams
from viscera.heat.sums import FAN
from viscera.instruments.bars import MOST_BARS
from viscera.skin.skin import Skin, make_skin
from viscera.timing import TICK

MAPS = ("damage", "charring", "water", "level")


class Burns:
    """Made by `batch.burns`. Maps have a row for each world, and in it a place for each texel of `skin`."""

    def __init__(
        self, worlds: Batch, texels: int, ticks: int, heat: HeatParams, burn: BurnParams, electrode: ElectrodeParams,
        tool: int, stiffens: bool,
    ) -> None:  # fmt: skip
        self._worlds, self.ticks, self.electrode = worlds, ticks, electrode
        device, self._organ = worlds.device, worlds.template.contents.organs[0]
        own = self._organ.skin
        if own is None or (own.width, own.height) != (texels, texels):
            own = make_skin(self._organ.body.mesh, width=texels, device=device)
        self.skin: Skin = own
        """The organ's own where that has as many texels, else another of the same mesh."""
        self.heat: Heat = make_heat(self.skin, heat, dt=ticks * TICK)
        """Of the skin at rest, whose network of conductances all worlds share; and what a step of it is."""
        self.burn: Burn = make_burn(self.heat, burn)
        self._blocks = -(-self.skin.count // FAN)
        self._sheet, self._generator, self._hot = self._make_sheet(), self._make_generator(tool), self._make_rows()
        self._metal = metal.make_metal(self._solid(tool), tool, electrode.bipolar, device)
        self._placed = metal.make_placed(self._metal, electrode, worlds.count, device)
        self.stiffening = Stiffening(worlds, self.skin) if stiffens else None
        self._drawn = drawing.Drawn()
        vertices = (worlds.count, len(self._organ.rest))
        self._drawn.vertex = wp.zeros(vertices, dtype=wp.vec3, device=device.warp)
        self._mask = wp.zeros(worlds.count, dtype=wp.int32, device=device.warp)
        device.load([burning, drawing, metal, *([stiffening] if stiffens else [])])
        self._record_all()
        self.reset()

    def _record_all(self) -> None:
        device, each = self._worlds.device, self._worlds.count * self._blocks
        self._step, self._heal = device.record(self._record), device.record(self._record_heal)
        areas = [self._sheet, self.burn.rates, self._blocks, self._hot]
        self._measure = device.record(lambda stage: stage.launch(burning.measure_worlds, each, areas))

    def _solid(self, tool: int) -> JointedTool | None:
        """The metal of a tool that has a solid shape; others are their bars."""
        name, tools = self._worlds.tools[tool], self._worlds.template.contents.tools
        (instrument,) = (one.instrument for one in tools if one.instrument.name == name)
        return None if instrument.solid is None else make_tool(name, instrument.solid(), self._worlds.device)

    def _make_sheet(self) -> Any:
        made, skin = burning.Sheet(), self.skin
        made.texels, made.face, made.barycentric = skin.texels, skin.face, skin.barycentric
        made.corner, made.area = skin.triangles, skin.rest_area
        return made

    def _make_generator(self, tool: int) -> Any:
        made: Any = burning.Generator()
        made.tool, made.power, made.reach = tool, self.electrode.power, self.electrode.reach
        made.most_flux, made.dry = self.electrode.most_flux, self.electrode.dry_conductance
        return made

    def _make_rows(self) -> Any:
        count, device, skin = self._worlds.count, self._worlds.device.warp, self.skin
        size = skin.width * skin.height

        def rows(width: int, dtype: Any) -> wp.array[Any]:
            return wp.zeros((count, width), dtype=dtype, device=device)

        made = burning.Hot()
        made.temperature, made.spare, made.power = (_with_rim(count, size, skin.width, device) for _ in range(3))
        for name in MAPS:
            setattr(made, name, rows(size, wp.float32))
        made.sums, made.delivered = rows(self._blocks, wp.vec2d), rows(2, wp.float32)
        made.start = rows(2 * MOST_BARS, wp.vec3)
        made.scale = wp.zeros(count, dtype=wp.float32, device=device)
        made.areas = rows(self._blocks, wp.vec4d)
        made.marks = rows(1, wp.uint8)
        made.pedal, made.was = (wp.zeros(count, dtype=wp.int32, device=device) for _ in range(2))
        return made

    # --- what goes in ---

    def press(self, pedals: ArrayLike) -> None:
        """Whose tool is under current from now on, shape (worlds,)."""
        given = np.asarray(pedals, dtype=np.bool_)
        if given.shape != (self._worlds.count,):
            raise InputError(f"pedals have shape {given.shape}.", f"Give ({self._worlds.count},).")
        self._hot.pedal.assign(given.astype(np.int32))

    @property
    def active_parts(self) -> int:
        """Parts of metal that carry current; 0 where the tool is its bars."""
        return len(self._metal.numbers) if self._metal.parts else 0

    @property
    def pedals(self) -> wp.array[Any]:
        """The same on the device, int32: a policy there may write it."""
        return self._hot.pedal

    def step(self) -> None:
        """`ticks` milliseconds of heat and burning, after as many of the worlds: tools went from where they were at the
        last step to where they are."""
        self._step.run()

    def reset(self, mask: Any = None) -> None:
        """Worlds in the mask, or all, are as warm as the body, wet and whole, and their pedals up. The mask may be an
        array on the device, int32."""
        self._worlds.write_mask(mask, self._mask)
        self._heal.run()

    def mark(self, number: int, bits: NDArray[np.uint8]) -> None:
        """Marks texels of a world, shape (texels,): `areas` counts those with bit 1 and those with bit 2."""
        self._hot.marks[number].assign(np.asarray(bits, dtype=np.uint8))

    def let_mark(self) -> None:
        """Room for marks."""
        size = self.skin.width * self.skin.height
        if self._hot.marks.shape[1] == 1:
            self._hot.marks = wp.zeros((self._worlds.count, size), dtype=wp.uint8, device=self._worlds.device.warp)
            self._record_all()

    # --- what comes out ---

    def areas(self) -> NDArray[np.float64]:
        """Of each world [m²], shape (worlds, 4): coagulated, charred, coagulated with bit 1 and with bit 2; a copy."""
        self._measure.run()
        return self._hot.areas.numpy().sum(axis=1)

    @property
    def vertices(self) -> wp.array[Any]:
        """Of each world's surface as of the last step [m], shape (worlds, vertices) of three floats."""
        return self._drawn.vertex

    @property
    def temperature(self) -> wp.array[Any]:
        """Above the body's [K], float32, shape (worlds, texels)."""
        return self._hot.temperature

    @property
    def power(self) -> wp.array[Any]:
        """Into each texel in the last step [W], float32, shape (worlds, texels)."""
        return self._hot.power

    @property
    def damage(self) -> wp.array[Any]:
        """Ω of coagulation (heat/burn.py), float32, shape (worlds, texels)."""
        return self._hot.damage

    @property
    def water(self) -> wp.array[Any]:
        """Share of its water that is left, float32, shape (worlds, texels)."""
        return self._hot.water

    @property
    def level(self) -> wp.array[Any]:
        """0 healthy, 1 coagulated, 2 charred, float32, shape (worlds, texels)."""
        return self._hot.level

    @property
    def delivered(self) -> wp.array[Any]:
        """Power into tissue [W] and touched area [m²] in the last step, float32, shape (worlds, 2)."""
        return self._hot.delivered

    # --- recording ---

    def _record(self, stage: Stage) -> None:
        worlds, hot = self._worlds, self._hot
        tissue, count, organ = worlds.tissue, worlds.count, self._organ
        surface = [tissue.layout.slots, tissue.substeps, organ.rest, organ.places, organ.weights]
        stage.launch(drawing.follow_worlds, count * len(organ.rest), [*surface, worlds.rows, self._drawn])
        if self._metal.parts:
            moving = [worlds.hand_rows, hot.pedal, hot.was, self._placed]
            stage.launch(metal.place_worlds, count, [self._metal, *moving])
        args = [worlds.kit, self._generator, self._metal, self._sheet, self.burn.rates, self._blocks]
        ends = [worlds.hand_rows, self._drawn.vertex, self._placed, hot]
        stage.launch(burning.conduct_worlds, count * self._blocks, [*args, *ends])
        stage.launch(burning.drive_worlds, count, [self._generator, self._blocks, worlds.hand_rows, hot])
        stage.launch(burning.power_worlds, count * self.skin.count, [self._sheet, hot])
        self._record_heat(stage)
        args = [self._sheet, self.burn.rates, self.burn.one_tissue, hot]
        stage.launch(burning.burn_worlds, count * self.skin.count, args)
        if self.stiffening is not None:
            self.stiffening.record(stage, hot.level)

    def _record_heal(self, stage: Stage) -> None:
        size = self.skin.width * self.skin.height
        stage.launch(burning.heal_worlds, self._worlds.count * size, [self._mask, self._hot])
        if self.stiffening is not None:
            self.stiffening.record_reset(stage, self._mask)

    def _record_heat(self, stage: Stage) -> None:
        """`step_heat`, over all worlds."""
        heat, hot, count = self.heat, self._hot, self._worlds.count
        network, bodies = heat.network, len(heat.network.bodies.border)
        elements = network.tiles * (int(TILE) if stage.device.is_cuda else 1)
        stage.launch(burning.gather_worlds, count * bodies, [network.net, heat.rates, bodies, hot])
        now, before = hot.temperature, hot.spare
        for number in range(1, heat.stages + 1):
            shared = [*stage_weights(number, heat.stages), elements, network.net, heat.rates]
            stage.launch(burning.stage_worlds, count * elements, [*shared, hot.power, now, before])
            now, before = before, now
        stage.launch(burning.spread_worlds, count * bodies, [network.net, bodies, hot])


def _with_rim(count: int, size: int, width: int, device: Any) -> wp.array[Any]:
    """Rows of texels with room around each: vector loads reach a row and a tile over a texture's rim."""
    margin = width + 2 * int(TILE)
    whole: Any = wp.zeros((count, size + 2 * margin), dtype=wp.float32, device=device)
    return whole[:, margin : margin + size]


def burns(
    worlds: Batch,
    *,
    texels: int = 64,
    ticks: int = ACTION_TICKS,
    heat: HeatParams | None = None,
    burn: BurnParams | None = None,
    electrode: ElectrodeParams | None = None,
    tool: int = 0,
    stiffens: bool = False,
) -> Burns:
    """Heat and burns of every world, on `texels` × `texels` of its organ's surface, in steps of `ticks` milliseconds.
    `tool` is the number, in `worlds.tools`, of the one that the generator feeds: its metal (`Instrument.solid`), or its
    bars where it has none. With `stiffens` burnt tissue becomes stiffer: only where the lattice was made for it, as in
    cautery and bleeding."""
    if not 1 <= ticks <= 1_000:
        raise InputError(f"ticks = {ticks} is not possible.", "Allowed are 1 to 1000.")
    if not 0 <= tool < len(worlds.tools):
        raise InputError(f"there is no tool {tool}.", f"The batch has {len(worlds.tools)}.")
    chosen = electrode or ElectrodeParams()
    if chosen.nearness != "contact" or chosen.constant != "power":
        raise InputError("a batch has electrodes of constant power by contact.", "Leave the other settings out.")
    made = Burns(worlds, texels, ticks, heat or HeatParams(), burn or BurnParams(), chosen, tool, stiffens)
    if chosen.bipolar and made.active_parts < 2:
        raise InputError(
            f"{worlds.tools[tool]} has {made.active_parts} active parts, too few to be bipolar.", "Take another tool."
        )
    return made
