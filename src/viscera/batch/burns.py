"""Heat and burns on the tissue of every world of a batch, in one recorded program.

    hot = batch.burns(worlds, texels=64, power=30.0)
    hot.press(pedals)                  # (worlds,): whose tool is under current
    worlds.step(10)
    hot.step()                         # the same 10 ms
    hot.level.numpy()                  # (worlds, texels): 0 healthy, 1 coagulated, 2 charred

Conduction is that of the skin at rest; burnt tissue does not become stiffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike

from viscera.batch import burning, drawing
from viscera.batch.batch import ACTION_TICKS, Batch
from viscera.device import Stage
from viscera.errors import InputError
from viscera.heat.arrays import TILE
from viscera.heat.burn import Burn, BurnParams, make_burn
from viscera.heat.conduction import Heat, HeatParams, make_heat, stage_weights
from viscera.heat.electrode import ElectrodeParams
from viscera.heat.sums import FAN
from viscera.instruments.bars import MOST_BARS
from viscera.skin.skin import make_skin
from viscera.timing import TICK

MAPS = ("damage", "charring", "water", "level")


class Burns:
    """Made by `batch.burns`. Maps have a row for each world, and in it a place for each texel of `skin`."""

    def __init__(
        self, worlds: Batch, texels: int, ticks: int, heat: HeatParams, burn: BurnParams, electrode: ElectrodeParams,
        tool: int,
    ) -> None:  # fmt: skip
        self._worlds, self.ticks, self.electrode = worlds, ticks, electrode
        device, self._organ = worlds.device, worlds.template.contents.organs[0]
        self.skin = make_skin(self._organ.body.mesh, width=texels, device=device)
        self.heat: Heat = make_heat(self.skin, heat, dt=ticks * TICK)
        """Of the skin at rest, whose network of conductances all worlds share; and what a step of it is."""
        self.burn: Burn = make_burn(self.heat, burn)
        self._blocks = -(-self.skin.count // FAN)
        self._sheet, self._generator, self._hot = self._make_sheet(), self._make_generator(tool), self._make_rows()
        self._drawn = drawing.Drawn()
        vertices = (worlds.count, len(self._organ.rest))
        self._drawn.vertex = wp.zeros(vertices, dtype=wp.vec3, device=device.warp)
        self._mask = wp.zeros(worlds.count, dtype=wp.int32, device=device.warp)
        device.load([burning, drawing])
        self._step = device.record(self._record)
        size = texels * texels
        heal = [self._mask, self._hot]
        self._heal = device.record(lambda stage: stage.launch(burning.heal_worlds, worlds.count * size, heal))
        self.reset()

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

    # --- what comes out ---

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
        args = [worlds.kit, self._generator, self._sheet, self.burn.rates, self._blocks]
        ends = [worlds.hand_rows, self._drawn.vertex, hot]
        stage.launch(burning.conduct_worlds, count * self._blocks, [*args, *ends])
        stage.launch(burning.drive_worlds, count, [self._generator, self._blocks, worlds.hand_rows, hot])
        stage.launch(burning.power_worlds, count * self.skin.count, [self._sheet, hot])
        self._record_heat(stage)
        args = [self._sheet, self.burn.rates, self.burn.one_tissue, hot]
        stage.launch(burning.burn_worlds, count * self.skin.count, args)

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
) -> Burns:
    """Heat and burns of every world, on `texels` × `texels` of its organ's surface, in steps of `ticks` milliseconds.
    `tool` is the number, in `worlds.tools`, of the one that the generator feeds."""
    if not 1 <= ticks <= 1_000:
        raise InputError(f"ticks = {ticks} is not possible.", "Allowed are 1 to 1000.")
    if not 0 <= tool < len(worlds.tools):
        raise InputError(f"there is no tool {tool}.", f"The batch has {len(worlds.tools)}.")
    chosen = electrode or ElectrodeParams()
    if chosen.bipolar or chosen.nearness != "contact" or chosen.constant != "power":
        raise InputError("a batch has monopolar electrodes of constant power alone.", "Leave the other settings out.")
    return Burns(worlds, texels, ticks, heat or HeatParams(), burn or BurnParams(), chosen, tool)
