"""Where all the fluid is: one ledger over vessels, film, air and what has gone, in whole picolitres.

    given + leaked + rinsed + begun + added
        = film + queue + pool + air + cloth + tools + gauze
          + lost + run off + sucked + expired + drained + left + dissolved + broken

holds exactly at the end of every frame: both sides are sums of integers. What the vessels still have is
`BLOOD_VOLUME` − given, so the total over vessels, film and drops is constant too. The sums are made on the device, from
the particles that are there, not from what the parts say they have done; the host reads one short array per frame.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import warp as wp

from viscera.blood.columns import PoolView, volume_in
from viscera.blood.drops.drops import Drops
from viscera.blood.drops.numbers import Purse
from viscera.blood.film.params import LITTLE
from viscera.blood.film.state import BROKEN, DISSOLVED, DRAINED, EXPIRED, FATES, LEFT, STAYS, SUCKED, FilmState
from viscera.blood.views import DROP_BROKEN, DROP_FATES, DROP_SUCKED, LOST, RUN_OFF, DropView, FilmView, QueueView
from viscera.blood.wounds.kernels import WoundView
from viscera.blood.wounds.wounds import Wounds
from viscera.device import Port, Stage
from viscera.errors import StateError

wp.set_module_options({"enable_backward": False})

BLOOD_VOLUME = 5.0e-3
"""In an adult's vessels [m³] (Hall, Guyton and Hall, ch. 25)."""

FILM, QUEUE, AIR, GIVEN, HELD, RINSED, LEAKED, POOL, POOL_GONE = 0, *range(FATES, FATES + 8)
CLOTH, TOOLS, GAUZE, GONE = range(POOL_GONE + 2, POOL_GONE + 6)
"""Entries of the ledger [pL]: the film by fate, then the others, what has run off a pool and what was sucked out of it,
stains, then what has gone from the air by fate."""

ENTRIES = GONE + DROP_FATES


@dataclass(frozen=True)
class Balance:
    """Volumes [m³], of all fluids together where it does not say which; `film.volumes` tells apart what is in the
    film."""

    given: float
    """By the vessels: blood lost."""
    leaked: float
    """By what bleeds no blood: bile."""
    rinsed: float
    """Out of the nozzle."""
    begun: float
    """What was there when the ledger was made."""
    added: float
    """Put in by `film.add` and `pools.pour` since."""
    film: float
    queue: float
    """About to join the film."""
    pool: float
    """Standing in hollows."""
    air: float
    cloth: float
    """Stains beside the organs."""
    tools: float
    """Stains on instruments."""
    gauze: float
    """Taken up by gauze."""
    lost: float
    """Fallen beside everything: on the floor."""
    run_off: float
    """Landed on a film that was full, or overflowed where the organ ends and there is no cloth."""
    sucked: float
    expired: float
    drained: float
    """Into an incision."""
    left: float
    """Over the rim of an open surface."""
    dissolved: float
    """In saline around the organ, where its own account begins."""
    broken: float
    held: float
    """Blood that is due but found no room; still in the vessels."""
    missing: int
    """Left side minus right side [pL]: 0."""

    @property
    def vessels(self) -> float:
        """What the body's vessels still have."""
        return BLOOD_VOLUME - self.given

    @property
    def blood_lost(self) -> float:
        return self.given


@dataclass(eq=False)
class Ledger:
    """Made by `make_ledger`."""

    state: FilmState
    wounds: Wounds
    drops: Drops
    entries: Port
    """int64, shape (ENTRIES,) [pL]."""
    begun: int = 0
    """What was there when it was made [pL]."""
    before: int = 0
    """Of `put_in`, what was there by then [pL]."""

    @property
    def put_in(self) -> int:
        """By `film.add` and `pools.pour` [pL]."""
        pools = self.drops.pools
        return self.state.added + (0 if pools is None else pools.added)

    @property
    def added(self) -> int:
        """Of that, what came since it was made [pL]."""
        return self.put_in - self.before


@wp.kernel
def count_film(
    # in
    film: FilmView,
    # out
    entries_out: wp.array(dtype=wp.int64),
):
    """Whole numbers: the sum is the same in any order. On cpu launched by one core, as atomics there are plain."""
    i = wp.tid()
    if i < film.count[0]:
        wp.atomic_add(entries_out, film.fate[i], wp.int64(film.volume[i]))


@wp.kernel
def count_queue(
    # in
    queue: QueueView,
    # out
    entries_out: wp.array(dtype=wp.int64),
):
    i = wp.tid()
    if i < queue.count[0]:
        wp.atomic_add(entries_out, QUEUE, wp.int64(queue.volume[i]))


@wp.kernel
def count_air(
    # in
    drops: DropView,
    # out
    entries_out: wp.array(dtype=wp.int64),
):
    i = wp.tid()
    if i < drops.count[0]:
        wp.atomic_add(entries_out, AIR, wp.int64(drops.volume[i]))


@wp.kernel
def count_pool(
    # in
    pool: PoolView,
    gone: wp.array(dtype=wp.int64),
    # out
    entries_out: wp.array(dtype=wp.int64),
):
    begin = wp.tid() * pool.chunk
    total = wp.int64(0)
    for i in range(begin, wp.min(begin + pool.chunk, pool.columns * pool.rows)):
        total += wp.int64(volume_in(pool, i))
    wp.atomic_add(entries_out, POOL, total)
    if begin == 0:
        entries_out[POOL_GONE] = gone[0]
        entries_out[POOL_GONE + 1] = gone[1]


@wp.kernel
def count_rest(
    # in
    wounds: WoundView,
    purse: wp.array(dtype=Purse),
    film_gone: wp.array(dtype=wp.int64),
    air_gone: wp.array(dtype=wp.int64),
    # out
    entries_out: wp.array(dtype=wp.int64),
):
    for w in range(wounds.count[0]):
        if wounds.is_blood[w] != 0:
            entries_out[GIVEN] = entries_out[GIVEN] + wounds.given[w]
            entries_out[HELD] = entries_out[HELD] + wounds.held[w]
        else:
            entries_out[LEAKED] = entries_out[LEAKED] + wounds.given[w]
    entries_out[RINSED] = purse[0].rinsed
    for k in range(1, FATES):
        entries_out[k] = entries_out[k] + film_gone[k]
    for k in range(DROP_FATES):
        entries_out[GONE + k] = air_gone[k]


@wp.kernel
def count_stains(
    # in
    cloth: wp.array(dtype=wp.int64),
    tools: wp.array(dtype=wp.int64),
    gauze: wp.array(dtype=wp.int64),
    # out
    entries_out: wp.array(dtype=wp.int64),
):
    """One thread: the sums of runs of cells."""
    for i in range(cloth.shape[0]):
        entries_out[CLOTH] = entries_out[CLOTH] + cloth[i]
    for i in range(tools.shape[0]):
        entries_out[TOOLS] = entries_out[TOOLS] + tools[i]
    for i in range(gauze.shape[0]):
        entries_out[GAUZE] = entries_out[GAUZE] + gauze[i]


def make_ledger(state: FilmState, wounds: Wounds, drops: Drops) -> Ledger:
    """What is there now counts as begun."""
    device = state.device
    ledger = Ledger(state, wounds, drops, device.port(ENTRIES, wp.int64))
    ledger.before = ledger.put_in
    device.record(lambda stage: step_ledger(stage, ledger), work=1).run()
    ledger.begun = -read_balance(ledger).missing
    return ledger


def step_ledger(stage: Stage, ledger: Ledger) -> None:
    """Ends a frame: counts everything."""
    drops, device, out = ledger.drops, stage.device.warp, ledger.entries.array
    rest = [ledger.wounds.view, drops.purse, ledger.state.gone_volume, drops.gone_volume]
    counts = (
        (count_film, drops.film_view, drops.film_view.capacity),
        (count_queue, drops.queue, drops.queue.capacity),
        (count_air, drops.state.view, drops.state.capacity),
    )
    stage.clear(ledger.entries)
    for kernel, view, size in counts:
        stage.once(lambda k=kernel, v=view, n=size: wp.launch(k, dim=n, inputs=[v, out], device=device))
    pools = drops.pools
    if pools is not None:
        size = -(-pools.count // pools.view.chunk)
        counted = [pools.view, pools.gone, out]
        stage.once(lambda: wp.launch(count_pool, dim=size, inputs=counted, device=device))
    if drops.stains is not None:
        stains = [*drops.stains.sums, out]
        stage.once(lambda: wp.launch(count_stains, dim=1, inputs=stains, device=device))
    stage.once(lambda: wp.launch(count_rest, dim=1, inputs=[*rest, out], device=device))
    stage.download(ledger.entries)


def read_balance(ledger: Ledger) -> Balance:
    """As the last `step_ledger` counted it. Waits for the device."""
    ledger.state.device.synchronize()
    entry = ledger.entries.host
    gone = {
        "film": entry[FILM + int(STAYS)],
        "queue": entry[QUEUE],
        "pool": entry[POOL],
        "air": entry[AIR],
        "cloth": entry[CLOTH],
        "tools": entry[TOOLS],
        "gauze": entry[GAUZE],
        "lost": entry[GONE + int(LOST)],
        "run_off": entry[GONE + int(RUN_OFF)] + entry[POOL_GONE],
        "sucked": entry[FILM + int(SUCKED)] + entry[GONE + int(DROP_SUCKED)] + entry[POOL_GONE + 1],
        "expired": entry[FILM + int(EXPIRED)],
        "drained": entry[FILM + int(DRAINED)],
        "left": entry[FILM + int(LEFT)],
        "dissolved": entry[FILM + int(DISSOLVED)],
        "broken": entry[FILM + int(BROKEN)] + entry[GONE + int(DROP_BROKEN)],
    }
    came = {"given": entry[GIVEN], "leaked": entry[LEAKED], "rinsed": entry[RINSED]}
    came |= {"begun": np.int64(ledger.begun), "added": np.int64(ledger.added)}
    missing = int(sum(came.values())) - int(sum(gone.values()))
    volumes = {name: LITTLE * int(value) for name, value in (came | gone | {"held": entry[HELD]}).items()}
    return Balance(**volumes, missing=missing)


def check_balance(ledger: Ledger, tick: int) -> Balance:
    """The balance, or StateError when it does not add up or a drop is no longer finite."""
    balance = read_balance(ledger)
    if balance.missing or balance.broken > 0.0:
        amount = f"{abs(balance.missing)} pL of fluid are {'missing' if balance.missing > 0 else 'too much'}"
        what = amount if balance.missing else "a drop's place is not finite"
        numbers = ", ".join(f"{f.name} {1e9 * getattr(balance, f.name):g} µL" for f in fields(Balance)[:-1])
        raise StateError(
            f"blood: {what} ({numbers}).",
            "Put fluid in with film.add, pools.pour, wounds or a nozzle, which are booked. If you did, report this: "
            "volume is kept exactly.",
            stage="blood",
            tick=tick,
        )
    return balance
