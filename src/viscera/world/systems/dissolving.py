"""Blood that lies on an organ under saline dissolves: it leaves the film and joins what the flow carries.

A particle of the film that is under the saline and has lain for `LINGERS` goes, unless it has clotted. Its blood
becomes whole units in the lowest free cell over it, the rest of it is saline already. All in whole picolitres: what the
film gives is what the saline gets, what is less than a unit of the flow waits (`waiting`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.blood.film.film import Film
from viscera.blood.film.params import LITTLE
from viscera.blood.film.state import DISSOLVED, STAYS
from viscera.blood.views import FilmView, film_view
from viscera.device import Stage
from viscera.grid import Grid
from viscera.grid.dye import COUNTERS, GIVEN
from viscera.grid.shape import GridShape

wp.set_module_options({"enable_backward": False})

LINGERS = 0.3
"""Blood stays on tissue for this long before saline has taken it [s]. Tuned for appearance."""
CLOTTED = 0.5
"""Share of a particle from which on it is a clot, which stays."""

BLOOD, WASHED, WAITING, PLACE, ACCOUNTS = 0, 1, 2, 3, 4
"""Entries of the account: blood that came, what else came with it, blood that waits to be a unit [pL]; and the last
entry of the flow that got any since it was paid out."""


@wp.kernel
def dissolve(
    # params
    shape: GridShape,
    origin: wp.vec3,
    spacing: float,
    unit: int,
    blood: int,
    # in
    inverse: wp.array[wp.float32],
    age: wp.array[wp.float32],
    # out
    film_out: FilmView,
    fresh_out: wp.array[wp.int32],
    account_out: wp.array[wp.int64],
):
    """`unit` is one of the flow's [pL]. Whole numbers add up alike in any order; on cpu one core does it, as atomics
    there are plain."""
    i = wp.tid()
    if i >= film_out.count[0]:
        return
    if film_out.fate[i] != STAYS or age[i] < LINGERS or film_out.clot[i] > CLOTTED:
        return
    at = (film_out.position[i] - origin) / spacing
    x = int(wp.floor(at[0])) + 1
    y = int(wp.floor(at[1])) + 1
    z = wp.max(int(wp.floor(at[2])) + 1, 1)
    if x < 1 or y < 1 or x > shape.nx or y > shape.ny or z > shape.nz:
        return
    c = z * shape.layer + y * shape.row + x
    while inverse[c] <= 0.0 and c < shape.nz * shape.layer:
        c += shape.layer
    if inverse[c] <= 0.0:
        return
    volume = film_out.volume[i]
    red = wp.clamp(int(float(volume) * film_out.fluid[i][blood] + 0.5), 0, volume)
    units = red // unit
    film_out.fate[i] = DISSOLVED
    wp.atomic_add(fresh_out, c, units)
    wp.atomic_add(account_out, BLOOD, wp.int64(red))
    wp.atomic_add(account_out, WASHED, wp.int64(volume - red))
    wp.atomic_add(account_out, WAITING, wp.int64(red - units * unit))
    wp.atomic_max(account_out, PLACE, wp.int64(c))


@wp.kernel
def pay_out(
    # params
    unit: int,
    # out
    fresh_out: wp.array[wp.int32],
    account_out: wp.array[wp.int64],
):
    """What has waited and is whole units by now goes where other blood has just come."""
    place = int(account_out[PLACE])
    if place > 0:
        units = account_out[WAITING] / wp.int64(unit)
        fresh_out[place] = fresh_out[place] + int(units)
        account_out[WAITING] = account_out[WAITING] - units * wp.int64(unit)
        account_out[PLACE] = wp.int64(0)


@wp.kernel
def join(
    # params
    shape: GridShape,
    counter: int,
    # out
    fresh_out: wp.array[wp.int32],
    amount_out: wp.array[wp.int32],
    counters_out: wp.array[wp.int64],
):
    """What has dissolved since the last step is carried from now on."""
    c = shape.layer + wp.tid()
    if fresh_out[c] > 0:
        amount_out[c] = amount_out[c] + fresh_out[c]
        wp.atomic_add(counters_out, counter, wp.int64(fresh_out[c]))
        fresh_out[c] = 0


class Dissolving:
    """Between one film and one flow, whose substance `blood` has units of whole picolitres."""

    def __init__(self, film: Film, flow: Grid) -> None:
        self._film, self._flow = film, flow
        device = film.device
        self._unit = round(flow.carried["blood"].substance.unit / LITTLE)
        self.fresh = wp.zeros(flow.layout.size, dtype=wp.int32, device=device.warp)
        self.account = wp.zeros(ACCOUNTS, dtype=wp.int64, device=device.warp)
        flow.brings.append(self._record_join)
        self._program = device.record(self._record, work=1)

    def run(self) -> None:
        self._program.run()
        self._film.device.synchronize()

    def _record(self, stage: Stage) -> None:
        film, p, fine = self._film, self._flow.params, self._flow.levels[0]
        args: list[Any] = [
            fine.shape,
            wp.vec3(*p.origin),
            p.spacing,
            self._unit,
            film.params.fluid("blood"),
            fine.inverse,
        ]
        args += [film.state.age, film_view(film.state), self.fresh, self.account]
        stage.once(lambda: wp.launch(dissolve, dim=film.state.capacity, inputs=args, device=film.device.warp))

    def _record_join(self, stage: Stage) -> None:
        flow = self._flow
        place = COUNTERS * list(flow.carried).index("blood") + GIVEN
        args = [flow.levels[0].shape, place, self.fresh, flow.carried["blood"].amount, flow.counters]
        paid, on = [self._unit, self.fresh, self.account], flow.device.warp
        stage.once(lambda: wp.launch(pay_out, dim=1, inputs=paid, device=on))
        stage.once(lambda: wp.launch(join, dim=flow.layout.count, inputs=args, device=on))

    def totals(self) -> tuple[int, int, int]:
        """Blood that came, what else came with it, and blood that is not in the flow yet [pL]. Waits for the
        device."""
        blood, washed, waiting, _ = self.account.numpy().tolist()
        fresh = int(self.fresh.numpy().sum(dtype=np.int64))
        return blood, washed, waiting + self._unit * fresh
