"""Heat on an organ's skin: instruments under current warm it, and the warmth spreads.

Writes `ORGAN.temperature`. An organ that is as warm as the body, with no pedal down, costs nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from viscera import heat as heats
from viscera.device import Program, Stage
from viscera.errors import InputError
from viscera.geometry.parts import PartShape, make_tool
from viscera.heat.burn import Burn, set_burn
from viscera.heat.conduction import Heat, HeatParams, set_heat, step_heat
from viscera.heat.electrode import Electrode, ElectrodeParams, make_electrode, step_electrodes
from viscera.heat.materials import HeatMaterials
from viscera.heat.network import rebuild_network
from viscera.instruments import Heats, Tool
from viscera.timing import FRAME
from viscera.tissue.beneath import property_beneath
from viscera.units import MILLIMETRE
from viscera.view import Measure, Parameter
from viscera.world.names import closest_names
from viscera.world.organ import Organ
from viscera.world.system import Kept, LiveParameter, Moment, System, having

COLD = 0.05
"""Tissue that is nowhere warmer than the body by more than this is taken to be as warm as the body [K]."""
LOOK = 64
"""Steps between two looks whether everything is cold again."""

POWER_GIVEN = Measure(
    "power", "Power", "W", "That the generator gives into tissue now; dry tissue takes less.", digits=0
)

POWER = Parameter(
    "power", "Power", "W", 5.0, 80.0, 30.0, "Power of the generator while the pedal is down.", group="Generator"
)
BY_DISTANCE = Parameter(
    "by_distance",
    "Heats by",
    "",
    0.0,
    1.0,
    0.0,
    "Contact: tissue within reach of the metal is heated alike. Distance: the nearer the more.",
    choices=("Contact", "Distance"),
    group="Generator",
)
LAYER = Parameter(
    "layer",
    "Heated layer",
    "mm",
    0.3,
    3.0,
    1.0,
    "How deep tissue heats through at once; thicker heats more slowly.",
    group="Tissue",
)
PERFUSION = Parameter(
    "perfusion",
    "Blood flow",
    "%",
    0.0,
    300.0,
    100.0,
    "Of the tissue, against normal: it carries heat away.",
    group="Tissue",
)

THERMAL = ("conductivity", "density", "heat_capacity")
"""What heat takes of a material."""

SETTINGS = tuple(one.name for one in (POWER, BY_DISTANCE, LAYER, PERFUSION))
"""What a user may change about it."""


def make_heat_on(organ: Organ, params: HeatParams | None = None, *, dt: float = FRAME) -> Heat:
    """Heat on an organ's skin, for steps of `dt` [s]. Where its lattice has several materials, each texel conducts and
    stores heat as the material beneath it does, `params` says the rest; else it is what `params` says everywhere."""
    params, skin, tissue = params or HeatParams(), organ.need_skin(), organ.tissue
    if len(tissue.params.materials) == 1:
        return heats.make(skin, params, dt=dt)
    main = replace(params, **{name: getattr(tissue.params.materials[0], name) for name in THERMAL})
    beneath = HeatMaterials(*(property_beneath(tissue, skin, name) for name in THERMAL))
    return heats.make(skin, main, materials=beneath, dt=dt)


def heating(
    organ: Organ,
    heat: Heat,
    burn: Burn,
    tools: Sequence[Tool],
    *,
    every: int = 1,
    settings: Collection[str] = SETTINGS,
) -> System[Heat]:
    """The tools that heat, and conduction. `heat` is made with a step of `every` frames: with 2 it takes its turn in
    every second frame; tools are swept, so none is missed. How burnt tissue is decides where current goes (`burn`).
    `settings` are those that a user may change; all, where none are named."""
    if organ.need_skin() is not heat.skin:
        raise InputError(f"this heat is not that of {organ.name}.", "Make it of the organ's own skin.")
    unknown = sorted(set(settings) - set(SETTINGS))
    if unknown:
        raise InputError(f"heating has no setting {unknown[0]!r}.", closest_names(unknown[0], SETTINGS))
    return _Heating(organ, heat, burn, tools).system(every, settings)


class _Heating:
    def __init__(self, organ: Organ, heat: Heat, burn: Burn, tools: Sequence[Tool]) -> None:
        self.organ, self.heat, self.burn = organ, heat, burn
        self._device = heat.skin.device
        self._hands = having(tools, Heats)
        for tool in tools:
            tool.fixed[Heats] = tool.instrument.effect(Heats)
        self._metal = [make_tool(tool.instrument.name, _solid(tool), self._device) for tool, _ in self._hands]
        self.electrodes: list[Electrode] = [
            make_electrode(metal, burn, ElectrodeParams(power=one.power, reach=one.reach, bipolar=one.bipolar))
            for metal, (_, one) in zip(self._metal, self._hands, strict=True)
        ]
        self._inside = np.zeros(len(self._hands), dtype=np.bool_)
        self._rest = np.array([1, 0])
        """Whether all is cold, and steps since that was looked at."""
        self._programs: dict[tuple[int, ...], Program] = {}
        """For sets of electrodes that are on: those that are off cost nothing."""
        numbers = range(len(self._hands))
        for on in ((), *((number,) for number in numbers), *itertools.combinations(numbers, 2)):
            self._programs[on] = self._recorded(on)
        self._all = tuple(numbers)
        self._programs.setdefault(self._all, self._recorded(self._all))
        self._field = organ.write_field("temperature", heat.temperature)

    def system(self, every: int, settings: Collection[str]) -> System[Heat]:
        poses = {f"pose{place}": metal.end for place, metal in enumerate(self._metal)}
        given = {f"given{place}": one.delivered.host for place, one in enumerate(self.electrodes)}
        flags = {"inside": self._inside, "rest": self._rest}
        own = (lambda: heats.save(self.heat), lambda saved: heats.load(self.heat, saved))
        kept = Kept(flags | poses | given, own=own)
        return System(
            name="heat",
            organ=self.organ.name,
            frame=self.frame,
            every=every,
            writes=(f"{self.organ.name}.temperature",),
            uses=(Heats,),
            save=kept.save,
            load=kept.load,
            measures=lambda: [(POWER_GIVEN, self._given())],
            parameters=[live for live in self._parameters() if live.parameter.name in settings],
            holds=self.heat,
        )

    def frame(self, now: Moment) -> None:
        if self._rest[1] >= LOOK:
            self._look()
        on: list[int] = []
        for place, (tool, _) in enumerate(self._hands):
            hand, electrode = now.tools[tool.number], self.electrodes[place]
            self._metal[place].place(hand.tip, hand.orientation, hand.grip, jump=not self._inside[place])
            self._inside[place] = hand.active
            heats = hand.pressed and hand.instrument.effect(Heats) is not None  # a switch may have taken it away
            electrode.press(heats)
            if heats:
                on.append(place)
                self._rest[0] = 0
            elif electrode.delivered.host.any():
                electrode.delivered.host[:] = 0.0
        if not self._rest[0]:
            # Recorded when the world is made: nothing can be recorded while ticks run.
            self._programs.get(tuple(on), self._programs[self._all]).run()
            self._device.synchronize()
            self._rest[1] += 1
            self._field.changes += 1

    def _look(self) -> None:
        """Whether all is cold again."""
        self._rest[1] = 0
        if self._given() == 0.0 and float(np.abs(self.heat.temperature.numpy()).max()) < COLD:
            self.heat.temperature.zero_()
            self._rest[0] = 1

    def _given(self) -> float:
        return sum(float(electrode.delivered.host[0]) for electrode in self.electrodes)

    def _recorded(self, on: tuple[int, ...]) -> Program:
        return self._device.record(lambda stage: self._record(stage, on), work=self.heat.skin.count)

    def _record(self, stage: Stage, on: tuple[int, ...]) -> None:
        rebuild_network(stage, self.heat.skin, self.heat.network)
        if on:
            step_electrodes(stage, [self.electrodes[number] for number in on])
        else:
            stage.once(self.heat.power.zero_)
        step_heat(stage, self.heat)

    def _parameters(self) -> list[LiveParameter]:
        usual = self.heat.params

        def set_electrodes(**fields: Any) -> None:
            for electrode in self.electrodes:
                electrode.set(replace(electrode.params, **fields))

        def change(**fields: float) -> None:
            set_heat(self.heat, replace(self.heat.params, **fields))
            set_burn(self.burn, self.burn.params)  # its rates follow from the layer

        power = self._hands[0][1].power if self._hands else POWER.default
        nearness = ("contact", "distance")
        return [
            LiveParameter(replace(POWER, default=power), lambda value: set_electrodes(power=value)),
            LiveParameter(BY_DISTANCE, lambda value: set_electrodes(nearness=nearness[round(value)])),
            LiveParameter(LAYER, lambda value: change(thickness=value * MILLIMETRE)),
            LiveParameter(PERFUSION, lambda value: change(perfusion=0.01 * value * usual.perfusion)),
        ]


def _solid(tool: Tool) -> tuple[PartShape, ...]:
    if tool.instrument.solid is None:
        raise InputError(
            f"{tool.instrument.name} heats, but has no solid shape.", "Give its closed meshes (Instrument.solid)."
        )
    return tool.instrument.solid()
