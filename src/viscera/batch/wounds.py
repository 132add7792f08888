"""Open vessels on the tissue of every world of a batch: they feed its film, with the heart's beat.

    cuts = batch.wounds(blood, burns=hot)
    cuts.open(0, [(point, vessel, opening), …])   # of world 0; find out where with the anatomy's seed
    worlds.step(10); hot.step(); blood.step()     # vessels bleed in the film's steps
    cuts.lost()                                   # (worlds,) [m³]

A wound closes when the skin around it is coagulated, as in one world. Nothing spurts: all blood wells up into the film.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.batch import bleeding
from viscera.batch.burns import Burns
from viscera.batch.films import Films
from viscera.blood.film.params import LITTLE
from viscera.blood.wounds.vessels import VesselParams
from viscera.blood.wounds.wounds import WoundParams, add_wound, find_texels, make_wounds
from viscera.errors import InputError
from viscera.instruments import Pushes
from viscera.timing import TICK

HEART_RATE = 1.2
"""Unless told [beats/s]."""
KEPT = ("face", "barycentric", "opening", "vessel", "fluid", "is_blood")
"""What `open` writes."""
BEGUN = ("sealed", "clot", "rate", "owed", "given", "held", "speed", "leaving")
"""What begins as nothing."""

Wounded = tuple[ArrayLike, VesselParams, float]
"""Where [m], which vessel, and the radius of its opening [m]."""


class Wounds:
    """Made by `batch.wounds`. Arrays have a row for each world and a place for each wound."""

    def __init__(self, blood: Films, burns: Burns | None, most: int, params: WoundParams) -> None:
        self._blood, self._burns, self.most = blood, burns, most
        worlds = blood.worlds
        device, count = worlds.device, worlds.count
        film = blood.one
        self._one = make_wounds(blood.surface, blood.params, film.state, params, dt=blood.ticks * TICK)
        """Of one world, to place wounds with; its numbers are those of all."""
        made: Any = bleeding.Open()
        for name, var in made._cls.vars.items():
            if hasattr(var.type, "dtype") and var.type.ndim == 2:
                size = {"count": 1, "drive": 2, "beat": 2, "start": most + 1, "texel": 1}.get(name, most)
                setattr(made, name, wp.zeros((count, size), dtype=var.type.dtype, device=device.warp))
        made.room, made.queue, made.tools = blood.capacity, blood.queue, len(worlds.tools)
        made.no_drops = wp.zeros(1, dtype=wp.int32, device=device.warp)
        made.tip_radius = wp.array(self._radii(), dtype=wp.float64, device=device.warp)
        if burns is not None:
            made.texel = wp.zeros((count, most * self._most_texels()), dtype=wp.int32, device=device.warp)
        self._open = made
        self._none = wp.zeros((1, 1), dtype=wp.float32, device=device.warp)
        self._mask = wp.zeros(count, dtype=wp.int32, device=device.warp)
        device.load([bleeding])
        level = self._none if burns is None else burns.level
        args = [self._one.numbers, blood.surface.view.triangles, worlds.hand_rows, level, made, blood.rows]
        blood.feed_with(lambda stage: stage.launch(bleeding.bleed_worlds, count, args, block=1))
        again = [self._mask, made]
        self._reopen = device.record(lambda stage: stage.launch(bleeding.reopen_wounds, count, again), work=0)
        self.set_heart_rate(np.full(count, HEART_RATE))

    def _radii(self) -> list[float]:
        tools = {tool.instrument.name: tool.instrument for tool in self._blood.worlds.template.contents.tools}
        pushes = [tools[name].effect(Pushes) for name in self._blood.worlds.tools]
        return [one.radius for one in pushes if one is not None]

    def _most_texels(self) -> int:
        """Room for the texels within the sealing radius of a wound, wherever it is."""
        assert self._burns is not None
        skin = self._burns.skin
        area = skin.rest_area.numpy()[skin.texels.numpy()]
        least = float(np.percentile(area, 1.0))
        return int(2.0 * np.pi * self._one.params.seal_radius**2 / max(least, 1e-12)) + 16

    # --- what goes in ---

    def open(self, worlds: int | Sequence[int], wounds: Sequence[Wounded], fluid: str = "blood") -> None:
        """The wounds of a world, or of several that have the same: those that they had are gone. Points lie on the
        surface at rest, where each is looked for once, for however many worlds."""
        numbers = np.atleast_1d(np.asarray(worlds, dtype=np.int64))
        if numbers.ndim != 1 or not ((numbers >= 0) & (numbers < self._blood.worlds.count)).all():
            raise InputError(f"there is no world {worlds}.", f"Allowed are 0 to {self._blood.worlds.count - 1}.")
        if len(numbers) == 0:
            return
        if len(wounds) > self.most:
            raise InputError(f"{len(wounds)} wounds are too many.", f"There is room for {self.most} in a world.")
        one = self._one
        one.vessels.clear()
        one.view.count.fill_(0)
        for point, vessel, opening in wounds:
            add_wound(one, point, vessel, opening, fluid)
        for name in KEPT:
            self._write(name, numbers, getattr(one.view, name).numpy()[: self.most])
        for name in BEGUN:
            self._write(name, numbers, 0)
        if self._burns is not None:
            self._find_texels(numbers)
        self._write("place", numbers, self._places(int(numbers[0])))
        self._write("count", numbers, len(wounds))

    def _find_texels(self, numbers: NDArray[np.int64]) -> None:
        assert self._burns is not None
        find_texels(self._one, self._burns.skin, part=0)
        start = self._one.burn_start.numpy()[: self.most + 1]
        texel, room = self._one.burn_texel.numpy()[: start[-1]], self._open.texel.shape[1]
        if len(texel) > room:
            raise InputError(f"{len(texel)} texels around the wounds are too many.", "Take a smaller seal_radius.")
        self._write("start", numbers, start)
        self._write("texel", numbers, np.pad(texel, (0, room - len(texel))))

    def _places(self, number: int) -> NDArray[np.float32]:
        vertices = self._blood.surface.vertices.numpy()
        corners = vertices[self._blood.surface.view.triangles.numpy()[self._open.face.numpy()[number]]]
        second, third = self._open.barycentric.numpy()[number].T
        share = np.stack([1.0 - second - third, second, third], axis=1)
        return (share[..., None] * corners).sum(axis=1)

    def _write(self, name: str, numbers: NDArray[np.int64], values: Any) -> None:
        """The same into the rows of these worlds: on cuda a transfer for one row, or one for all."""
        array = getattr(self._open, name)
        if len(numbers) == 1:
            row = array[int(numbers[0])]
            row.assign(np.broadcast_to(np.asarray(values), row.numpy().shape))
            return
        rows = array.numpy()
        rows[numbers] = values
        array.assign(rows)

    def set_heart_rate(self, rates: ArrayLike) -> None:
        """[beats/s], of each world."""
        given = np.asarray(rates, dtype=np.float64)
        if given.shape != (self._blood.worlds.count,) or not (np.isfinite(given) & (given >= 0.0)).all():
            raise InputError(f"heart rates have shape {given.shape}, or are below 0.", "Give one for each world.")
        beat = self._open.beat.numpy().copy()
        beat[:, 1] = given
        self._open.beat.assign(beat)

    def reset(self, mask: Any = None) -> None:
        """Wounds of the worlds in the mask, or of all, are as they were opened: neither sealed nor clotted, and nothing
        is lost. The mask may be an array on the device, int32."""
        self._blood.worlds.write_mask(mask, self._mask)
        self._reopen.run()

    # --- what comes out ---

    @property
    def sealed(self) -> wp.array[Any]:
        """0 where a wound is open, int32, shape (worlds, most)."""
        return self._open.sealed

    @property
    def places(self) -> wp.array[Any]:
        """[m], shape (worlds, most) of three floats, as of the last step."""
        return self._open.place

    @property
    def rows(self) -> Any:
        """The struct `Open` of bleeding.py, for kernels."""
        return self._open

    def is_there(self) -> NDArray[np.bool_]:
        """Which places of the arrays are wounds, shape (worlds, most)."""
        return np.arange(self.most) < self._open.count.numpy()

    def lost(self) -> NDArray[np.float64]:
        """Blood that has left the vessels of each world [m³]; a copy."""
        blood = self.is_there() & (self._open.is_blood.numpy() != 0)
        return LITTLE * np.where(blood, self._open.given.numpy(), 0).sum(axis=1).astype(np.float64)


def wounds(blood: Films, *, burns: Burns | None = None, most: int = 4, params: WoundParams | None = None) -> Wounds:
    """No wounds yet, at most so many in a world, that feed `blood`; where `burns` coagulate the skin they close."""
    if not 1 <= most <= 64:
        raise InputError(f"most = {most} is not possible.", "Allowed are 1 to 64 wounds in a world.")
    return Wounds(blood, burns, most, params or WoundParams())
