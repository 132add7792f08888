"""Electrosurgery: instruments under current heat an organ's skin, heat spreads in it, tissue coagulates and chars.

Once a frame, in order: where the hands hold the electrodes and whether the pedal is down; the power that goes into each
texel; conduction; what the heat does to tissue; how stiff that makes it; the areas that count; the picture;
what is burnt and stretched too far tears. An organ that is as warm as the body, with no pedal down, costs nothing, and
only a look at its springs once it is burnt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Program, Stage
from viscera.geometry.parts import PartShape, make_tool
from viscera.heat.burn import BurnParams, burnt_areas, make_burn, measure_burn, step_burn
from viscera.heat.conduction import FRAME, HeatParams, make_heat, step_heat
from viscera.heat.electrode import Electrode, ElectrodeParams, make_electrode, step_electrodes
from viscera.heat.network import rebuild_network
from viscera.heat.stages import make_texture, step_texture
from viscera.heat.sums import FAN, finish_sum, make_sum
from viscera.skin import gutter
from viscera.tissue.burning import make_burning, make_sampling, sample_burn, step_burning, tear_burnt
from viscera.view import Measure, Particles, Texture
from viscera.world.world import Organ, World

PEDAL = 0.5
"""From this grip on the pedal is down."""

COLD = 0.05
"""Tissue that is nowhere warmer than the body by more than this is taken to be as warm as the body [K]."""
LOOK = 64
"""Frames between two looks whether everything is cold again."""

SQUARE_MILLIMETRES = 1e6
"""In a square metre."""

CHARRED = Measure("charred", "Charred", "mm²", "Surface that has turned black. A good burn leaves none.")
COAGULATED = Measure("coagulated", "Coagulated", "mm²", "Surface that has turned white or darker.", digits=0)
TORN = Measure("torn", "Torn", "mm²", "Cross-section of burnt tissue that was pulled apart: it bears half as much.")
POWER = Measure("power", "Power", "W", "That the generator gives into tissue now; dry tissue takes less.", digits=0)


@dataclass(frozen=True)
class Energised:
    """An instrument that can burn."""

    tool: int
    """Which of the world's tools it is."""
    shapes: Sequence[PartShape]
    electrode: ElectrodeParams


class Cautery:
    """Heat and burns on one organ's skin. A system of a world."""

    name = "heat"

    def __init__(
        self,
        organ: Organ,
        instruments: Sequence[Energised],
        heat: HeatParams | None = None,
        burn: BurnParams | None = None,
        every: int = 1,
    ) -> None:
        """With `every` 2, heat is stepped in every second frame, by two frames: tools are swept, so none is missed."""
        if organ.skin is None:
            raise ValueError(f"{organ.name} has no skin")
        self.organ = organ
        self.skin = organ.skin
        self._device = self.skin.device
        self._every = every
        self.heat = make_heat(self.skin, heat, every * FRAME)
        self.burn = make_burn(self.heat, burn)
        self._tools = [make_tool(f"tool {one.tool}", one.shapes, self._device) for one in instruments]
        self.electrodes: list[Electrode] = [
            make_electrode(tool, self.burn, one.electrode) for tool, one in zip(self._tools, instruments, strict=True)
        ]
        self._numbers = [one.tool for one in instruments]
        self._inside = np.zeros(len(instruments), dtype=np.bool_)
        self._burning = make_burning(organ.tissue)
        self._sampling = make_sampling(organ.tissue, self.skin)
        self._rest = np.array([1, 0, 0])
        """Whether all is cold, steps since that was looked at, and frames since the last step."""
        self._picture = make_texture(self.burn)
        self._texture = Texture(f"{organ.name}.burn", organ.name, "burn", self.skin.width, self.skin.height)
        self._programs: dict[tuple[int, ...], Program] = {}
        """One for each set of electrodes that are on: those that are off cost nothing."""
        for on in ((), *((number,) for number in range(len(instruments)))):
            self._program(on)
        masses = len(organ.tissue.params.nodes)
        # Which buffer holds the present alternates with the substeps, so there is a program for each.
        self._tears = [
            self._device.record(lambda stage, buffer=buffer: tear_burnt(stage, self._burning, buffer), work=masses)
            for buffer in (0, 1)
        ]
        self._stiffen = self._device.record(lambda stage: step_burning(stage, self._burning), work=masses)
        self._after = self._device.record(self._record_after, work=self.skin.count)
        self._after.run()
        self._device.synchronize()

    def set_power(self, watts: float) -> None:
        """What the generator is set to, for all instruments [W]."""
        for electrode in self.electrodes:
            electrode.set(replace(electrode.params, power=watts))

    def frame(self, world: World) -> None:
        self._rest[2] = (self._rest[2] + 1) % self._every
        if self._rest[2]:
            return
        on: list[int] = []
        pairs = zip(self._tools, self.electrodes, strict=True)
        for place, (tool, electrode) in enumerate(pairs):
            hand = world.hands[self._numbers[place]]
            tool.place(hand.tip, hand.orientation, hand.grip, jump=not self._inside[place])
            self._inside[place] = hand.active
            pedal = hand.active and hand.grip >= PEDAL
            electrode.press(pedal)
            if pedal:
                on.append(place)
                self._rest[0] = 0
            elif electrode.delivered.host.any():
                electrode.delivered.host[:] = 0.0
        if not self._rest[0]:
            self._program(tuple(on)).run()
            self._device.synchronize()
            self._rest[1] += 1
            if self._rest[1] >= LOOK:
                self._look()
        if self.burn.area.host[0][0] > 0.0:
            self._tear()

    def _tear(self) -> None:
        tissue, torn = self.organ.tissue, self._burning.torn.host
        before = int(torn[0])
        self._tears[tissue.current].run()
        self._device.synchronize()
        if torn[0] != before:
            self._stiffen.run()
            self._device.synchronize()
            tissue.wake()

    def _look(self) -> None:
        """Whether all is cold again."""
        self._rest[1] = 0
        given = sum(float(electrode.delivered.host[0]) for electrode in self.electrodes)
        if given == 0.0 and float(np.abs(self.heat.temperature.numpy()).max()) < COLD:
            self.heat.temperature.zero_()
            self._rest[0] = 1

    def _program(self, on: tuple[int, ...]) -> Program:
        if on not in self._programs:
            self._programs[on] = self._device.record(lambda stage: self._record(stage, on), work=self.skin.count)
        return self._programs[on]

    def _record(self, stage: Stage, on: tuple[int, ...]) -> None:
        rebuild_network(stage, self.skin, self.heat.network)
        if on:
            step_electrodes(stage, [self.electrodes[number] for number in on])
        else:
            stage.once(self.heat.power.zero_)
        step_heat(stage, self.heat)
        step_burn(stage, self.burn)
        measure_burn(stage, self.burn)
        self._record_after(stage)

    def _record_after(self, stage: Stage) -> None:
        """What follows from the maps."""
        sample_burn(stage, self._burning, self._sampling, self.burn.burn_level)
        step_burning(stage, self._burning)
        step_texture(stage, self._picture)

    def arrays(self) -> dict[str, Any]:
        burn = self.burn
        maps = {"temperature": self.heat.temperature, "damage": burn.damage, "charring": burn.charring}
        poses = {f"pose{place}": tool.end for place, tool in enumerate(self._tools)}
        # Written by whoever reads them next, but shown at once after loading.
        shown = {"area": burn.area.array, "torn": self._burning.torn.array}
        shown |= {f"given{n}": e.delivered.host for n, e in enumerate(self.electrodes)}
        flags = {"inside": self._inside, "rest": self._rest}
        return maps | {"water": burn.water, "level": burn.burn_level} | flags | poses | shown

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        for name, mine in self.arrays().items():
            if isinstance(mine, np.ndarray):
                mine[:] = arrays[name]
            else:
                mine.assign(arrays[name])
        if self._device.is_cuda:
            for port in (self.burn.area, self._burning.torn):
                wp.copy(port.staging, port.array)
        self._after.run()
        self._device.synchronize()

    def textures(self) -> list[tuple[Texture, Any]]:
        return [(self._texture, self._picture.pixels)]

    def particles(self) -> list[tuple[Particles, Any, int]]:
        return []

    def measures(self) -> list[tuple[Measure, float]]:
        coagulated, charred = self.burn.area.host[0].tolist()
        power = sum(float(electrode.delivered.host[0]) for electrode in self.electrodes)
        return [
            (CHARRED, SQUARE_MILLIMETRES * charred),
            (COAGULATED, SQUARE_MILLIMETRES * coagulated),
            (TORN, SQUARE_MILLIMETRES * self._burning.torn_area),
            (POWER, power),
        ]


class BurnDrill:
    """A line drawn on an organ, to be coagulated without charring and without straying. A system of a world."""

    name = "drill"

    DONE = Measure("line_done", "Line done", "%", "Share of the drawn line that is coagulated.", digits=0)
    ASTRAY = Measure("astray", "Astray", "mm²", "Coagulated further than 3 mm from the drawn line.", digits=0)

    def __init__(self, cautery: Cautery, line: NDArray[np.bool_], near: NDArray[np.bool_]) -> None:
        """`line` and `near` say of every texel of the skin whether it is on the line, and whether near enough to it."""
        self._cautery = cautery
        skin, device = cautery.skin, cautery.skin.device
        covered = skin.texels.numpy()
        self._subsets = [
            wp.array(covered[which[covered]], dtype=wp.int32, device=device.warp) for which in (line, near)
        ]
        self._sums = [make_sum(len(subset), device) for subset in self._subsets]
        self._areas = [device.port(1, wp.vec2d) for _ in self._subsets]
        self._whole = float(skin.rest_area.numpy()[covered[line[covered]]].sum())
        ink = np.zeros((skin.height, skin.width, 4), dtype=np.uint8)
        outside, repeated = gutter(skin, 1)
        drawn = line.copy()
        drawn[outside] = line[repeated]
        ink.reshape(-1, 4)[drawn, 3] = 255
        self._ink = wp.array(ink, dtype=wp.vec4ub, device=device.warp)
        self._texture = Texture(f"{cautery.organ.name}.ink", cautery.organ.name, "ink", skin.width, skin.height)
        self._program = device.record(self._record, work=sum(len(subset) for subset in self._subsets))

    def frame(self, world: World) -> None:
        self._program.run()
        self._cautery.skin.device.synchronize()

    def _record(self, stage: Stage) -> None:
        skin, burn = self._cautery.skin, self._cautery.burn
        for subset, sums, port in zip(self._subsets, self._sums, self._areas, strict=True):
            maps = [subset, skin.rest_area, burn.rates, burn.damage, burn.charring, sums.levels[0]]
            stage.launch(burnt_areas, -(-len(subset) // FAN), maps)
            finish_sum(stage, sums)
            stage.once(lambda port=port, sums=sums: wp.copy(port.array, sums.total))
            stage.download(port)

    def arrays(self) -> dict[str, Any]:
        return {}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._program.run()
        self._cautery.skin.device.synchronize()

    def textures(self) -> list[tuple[Texture, Any]]:
        return [(self._texture, self._ink)]

    def particles(self) -> list[tuple[Particles, Any, int]]:
        return []

    def measures(self) -> list[tuple[Measure, float]]:
        on_line, near = (float(port.host[0][0]) for port in self._areas)
        everywhere = float(self._cautery.burn.area.host[0][0])
        return [
            (self.DONE, 100.0 * on_line / self._whole if self._whole > 0.0 else 0.0),
            (self.ASTRAY, SQUARE_MILLIMETRES * max(0.0, everywhere - near)),
        ]
