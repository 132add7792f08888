"""What worlds in one set of arrays have besides tissue and tools: heat and burns, vessels and their blood.

An attempt asks its world for measures and for its vessels (`world.measure_values()`, `world.system("wounds").holds`);
`Glimpse` is a world of a batch that answers these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from viscera import batch
from viscera.batch import Batch
from viscera.blood.film.film import Film
from viscera.errors import InputError
from viscera.heat.burn import Burn
from viscera.heat.electrode import ElectrodeParams
from viscera.instruments import Heats
from viscera.scenarios.bleeding import open_vessels
from viscera.scenarios.cautery.drill import line_points, marked
from viscera.timing import FRAME, TICK
from viscera.units import MILLILITRE, MINUTE, SQUARE_MILLIMETRE
from viscera.world import World

FRAME_TICKS = round(FRAME / TICK)
MOST_TEXELS = 256
"""Along a side of a world's skin where its burns are counted by area alone [texels]."""
LINE, NEAR = 1, 2
"""Marks of texels: on the drawn line, and near enough to it."""
QUEUE = 256
"""Particles that can wait in a world."""


class Besides(Protocol):
    """Steps beside a batch."""

    settings: tuple[str, ...]
    """Of the scenario that it can choose for each world."""

    def reset(self, which: NDArray[np.bool_]) -> None:
        """Nothing is burnt and nothing bleeds in these worlds."""
        ...

    def begin(self, number: int, seed: int, settings: Mapping[str, float]) -> None:
        """The world of this number becomes that of another seed."""
        ...

    def step(self, closed: NDArray[np.bool_]) -> None:
        """An action, after the worlds' own ticks; `closed` says whose handle or pedal is pressed."""
        ...

    def world(self, number: int) -> Any:
        """As an attempt sees it."""
        ...


@dataclass(frozen=True)
class Batching:
    """How a task is played in many worlds at once."""

    tools: tuple[str, ...] | None = None
    """That worlds have; all, unless told."""
    without: tuple[str, ...] = ()
    """Systems of the scenario that the batch leaves out."""
    besides: Callable[[Batch, int], Besides] | None = None
    """What computes those that matter, for actions of so many ticks."""


class Glimpse:
    """A world of a batch, as far as attempts look at it."""

    def __init__(self, template: World, measures: Callable[[], dict[str, float]], systems: Mapping[str, Any]) -> None:
        self._template, self._measures, self._systems = template, measures, systems
        self.seed = template.seed

    @property
    def organs(self) -> Any:
        return self._template.organs

    @property
    def hands(self) -> Any:
        return self._template.hands

    def measure_values(self) -> dict[str, float]:
        return self._measures()

    def system(self, name: str) -> Any:
        return self._systems[name]


def burns_on(worlds: Batch, ticks: int, texels: int) -> batch.Burns:
    """The burns of a scenario's own heat, of the one tool that the worlds have."""
    template = worlds.template
    burn: Burn = template.system("burns").holds
    (tool,) = (one for one in template.hands if one.instrument.name == worlds.tools[0])
    heats = tool.instrument.effect(Heats)
    assert heats is not None
    electrode = ElectrodeParams(power=heats.power, reach=heats.reach, bipolar=heats.bipolar)
    return batch.burns(
        worlds, texels=texels, ticks=ticks, heat=burn.heat.params, burn=burn.params, electrode=electrode, stiffens=True
    )


class LineToBurn:
    """Cautery: burns, and how much of the drawn line is coagulated."""

    settings: tuple[str, ...] = ()

    def __init__(self, worlds: Batch, ticks: int) -> None:
        self._template = worlds.template
        self._organ = self._template.organs[0]
        # Of the organ's own skin: a line is few texels wide.
        self.burns = burns_on(worlds, ticks, self._organ.need_skin().width)
        self.burns.let_mark()
        self._whole = np.ones(worlds.count)
        self._areas = np.zeros((worlds.count, 4))
        self._worlds = [Glimpse(self._template, lambda n=n: self._measures(n), {}) for n in range(worlds.count)]

    def reset(self, which: NDArray[np.bool_]) -> None:
        self.burns.reset(which)
        self._areas[which] = 0.0

    def begin(self, number: int, seed: int, settings: Mapping[str, float]) -> None:
        skin = self.burns.skin
        line, near = marked(skin, line_points(self._organ.body, seed))
        self.burns.mark(number, LINE * line.astype(np.uint8) + NEAR * near.astype(np.uint8))
        texels = skin.texels.numpy()
        self._whole[number] = float(skin.rest_area.numpy()[texels[line[texels]]].sum())
        self._worlds[number].seed = seed

    def step(self, closed: NDArray[np.bool_]) -> None:
        self.burns.press(closed)
        self.burns.step()
        self._areas = self.burns.areas()

    def world(self, number: int) -> Any:
        return self._worlds[number]

    def _measures(self, number: int) -> dict[str, float]:
        coagulated, charred, on_line, near = self._areas[number].tolist()
        return {
            "line_done": 100.0 * on_line / self._whole[number],
            "charred": charred / SQUARE_MILLIMETRE,
            "astray": max(0.0, coagulated - near) / SQUARE_MILLIMETRE,
        }


class VesselsToClose:
    """Bleeding: burns, two open vessels and the film of their blood. Nothing spurts, drips or stains."""

    settings: tuple[str, ...] = ("pressure", "heart_rate")

    def __init__(self, worlds: Batch, ticks: int) -> None:
        if ticks % FRAME_TICKS:
            raise InputError(f"ticks = {ticks} are no whole frames.", f"Take a multiple of {FRAME_TICKS}.")
        self._template, self._frames = worlds.template, ticks // FRAME_TICKS
        self._organ = self._template.organs[0]
        film: Film = self._template.system("film").holds
        self.burns = burns_on(worlds, ticks, min(self._organ.need_skin().width, MOST_TEXELS))
        room = film.state.capacity
        self.blood = batch.film(worlds, params=film.params, capacity=room, queue=min(room, QUEUE), ticks=FRAME_TICKS)
        self.wounds = batch.wounds(self.blood, burns=self.burns, most=2)
        self._rates = np.full(worlds.count, self._template.system("wounds").holds.heart_rate)
        self._charred, self._lost = np.zeros(worlds.count), np.zeros(worlds.count)
        self._worlds = [self._glimpse(number) for number in range(worlds.count)]

    def _glimpse(self, number: int) -> Glimpse:
        return Glimpse(self._template, lambda: self._measures(number), {"wounds": _Held(_Vessels(self, number))})

    def reset(self, which: NDArray[np.bool_]) -> None:
        for one in (self.burns, self.blood, self.wounds):
            one.reset(which)
        self._charred[which] = self._lost[which] = 0.0

    def begin(self, number: int, seed: int, settings: Mapping[str, float]) -> None:
        share = 0.01 * settings.get("pressure", 100.0)
        opened = []
        for one in open_vessels(self._organ.body, seed):
            vessel = one.vessel
            pressed = replace(vessel, systolic=share * vessel.systolic, diastolic=share * vessel.diastolic)
            opened.append((one.point, pressed, one.opening))
        self.wounds.open(number, opened)
        if "heart_rate" in settings:
            self._rates[number] = settings["heart_rate"] / MINUTE
        self.wounds.set_heart_rate(self._rates)
        self._worlds[number].seed = seed

    def step(self, closed: NDArray[np.bool_]) -> None:
        self.burns.press(closed)
        self.burns.step()
        for _ in range(self._frames):
            self.blood.step()
        self._charred, self._lost = self.burns.areas()[:, 1], self.wounds.lost()

    def world(self, number: int) -> Any:
        return self._worlds[number]

    def places(self, number: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Where the vessels of a world are [m], and which are open."""
        return self.wounds.places.numpy()[number].astype(np.float64), self.wounds.sealed.numpy()[number] == 0

    def _measures(self, number: int) -> dict[str, float]:
        _, is_open = self.places(number)
        return {
            "open_vessels": float(is_open.sum()),
            "blood_lost": float(self._lost[number]) / MILLILITRE,
            "charred": float(self._charred[number]) / SQUARE_MILLIMETRE,
        }


class _Vessels:
    """As an attempt asks `Vessels`."""

    def __init__(self, all_of_them: VesselsToClose, number: int) -> None:
        self._all, self._number = all_of_them, number

    def places(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        return self._all.places(self._number)


@dataclass(frozen=True)
class _Held:
    holds: Any
