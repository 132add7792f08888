"""Bleeding: the film's picture at several resolutions, drops in the air with their landing, wounds and the ledger.

The surface is the ring of the benchmark `skin`. Blood covers a part of it, as in a scenario: a frame costs what the
texels near blood cost, and asking all others whether they are near it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.bench.skin import unrolled_ring
from viscera.blood.balance import make_ledger, read_balance, step_ledger
from viscera.blood.drops.drops import DropParams, Drops, make_drops, step_drops
from viscera.blood.film.film import Film, make_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.picture.image import make_film_image, shown_volume, step_film_image
from viscera.blood.wounds.vessels import VESSELS
from viscera.blood.wounds.wounds import Wounds, add_wound, make_wounds, step_wounds
from viscera.device import Device
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.skin import make_skin

NAME = "bleeding"

PARTICLES = 5_000
DROPS = 4_096

BYTES_PER_TEXEL = 24
"""Least traffic of a texel that is not near blood: its number, place, kept value and trail."""


def headline(device: Device) -> Row:
    return pick(_pictures(device, (256,)), "picture")


@benchmark(NAME, title="Bleeding: picture of the film, drops, wounds, ledger", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    yield from _pictures(device, (256, 512) if quick else (256, 512, 1024, 2048))
    film, wounds, drops = _scene(device)
    ledger = make_ledger(film.state, wounds, drops)
    _bleed(device, film, wounds)
    _throw(drops)
    program = device.record(lambda stage: step_drops(stage, drops), work=DROPS)
    yield timed(NAME, "drops", DROPS, device, median_ms(program.run, device, 20, 0), extra=_left(drops))
    program = device.record(lambda stage: step_wounds(stage, wounds), work=1)
    yield timed(NAME, "wounds", wounds.count, device, median_ms(program.run, device, 20))
    program = device.record(lambda stage: step_ledger(stage, ledger), work=1)
    ms = median_ms(program.run, device, 20)
    # Drops were thrown by hand: what the ledger misses is exactly their volume.
    thrown = DROPS * film.params.little_volume
    extra = {"unexplained_pl": read_balance(ledger).missing + thrown}
    yield timed(NAME, "ledger", film.state.capacity, device, ms, extra=extra)


def _pictures(device: Device, sides: tuple[int, ...]) -> Iterator[Row]:
    mesh = unrolled_ring()
    atlas = unique_atlas(mesh, AtlasSettings(256))
    for side in sides:
        skin = make_skin(mesh, atlas, side, device=device)
        film, wounds, _ = _scene(device)
        _bleed(device, film, wounds)
        image = make_film_image(skin, film.params, film.state)
        program = device.record(lambda stage, image=image: step_film_image(stage, image), work=skin.count)
        ms = median_ms(program.run, device, max(5, 20 * 512 // side))
        volume = float(film.state.volume.numpy()[: int(film.state.count.numpy()[0])].sum(dtype=np.int64)) * 1e-15
        extra = {
            "covered": skin.count,
            "wet": int((image.height.numpy() > 0).sum()),
            "particles": int(film.state.count.numpy()[0]),
            "drawn_over_there": shown_volume(image) / volume,
            "floor_bytes": BYTES_PER_TEXEL * skin.count,
        }
        yield timed(NAME, "picture", side * side, device, ms, extra=extra)


def _scene(device: Device) -> tuple[Film, Wounds, Drops]:
    film = make_film(unrolled_ring(), FilmParams(), 2 * PARTICLES, device)
    assert film.surface is not None
    drops = make_drops(film.surface, film.params, film.state, DropParams(box=0.5), capacity=DROPS)
    wounds = make_wounds(film.surface, film.params, film.state)
    for angle in np.linspace(0.0, 2.0, 8):
        add_wound(wounds, (0.06 * np.cos(angle), 0.06 * np.sin(angle), 0.02), VESSELS["vein"], 0.3e-3)
    return film, wounds, drops


def _bleed(device: Device, film: Film, wounds: Wounds) -> None:
    """Until there are `PARTICLES`."""

    def frame(stage) -> None:
        step_wounds(stage, wounds)
        for _ in range(8):
            step_film(stage, film)

    program = device.record(frame, work=film.work)
    for _ in range(1_000):
        if int(film.state.count.numpy()[0]) >= PARTICLES:
            return
        program.run()
        device.synchronize()


def _throw(drops: Drops) -> None:
    """A cloud of drops above the ring, slow enough to stay in the air while they are timed."""
    rng = np.random.default_rng(0)
    place = rng.uniform((-0.08, -0.08, 0.05), (0.08, 0.08, 0.3), (DROPS, 3))
    drops.state.position.assign(place.astype(np.float32))
    drops.state.volume.fill_(drops.film.little_volume)
    drops.state.count.fill_(DROPS)


def _left(drops: Drops) -> dict[str, int]:
    return {"in_the_air_after": int(drops.state.count.numpy()[0])}
