"""Worlds by the thousand: how many env steps per second, with a probe in contact in every world.

The protocol is that of Newton's issue 4141: 100 actions to warm up, 500 measured, random actions, resets included. An
action is 10 ms: ten ticks with their substeps, contact, force and torque of the tool. The random policy runs on the
device, and each world is reset every 200 actions, not all at once. With burns the probe is under current all the time,
and heat and burning of 64 × 64 texels are part of an action; with burns and film burnt tissue becomes stiffer too (its
lattice has the substeps for that), and two vessels of each world bleed into a film of up to 256 particles. Where an
action of all worlds takes long, fewer are measured (`actions`); worlds that memory does not hold are left out. `ms` is
the time of an action of all worlds, `steps_per_s` env steps per second: worlds over that time. Tissue has ν = 0.4.
Pictures are a row of their own: `steps_per_s` are pictures per second.

`floor_ratio` is over the time that memory alone takes: positions and velocities of each place read and written once per
substep (48 bytes) at the rate of a large copy. What is the same in all worlds is not counted: it stays in caches.

    viscera bench batch                                                 the whole table
    python -m viscera.bench.batch --masses 1000 --worlds 4096           one row of it, or several
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import warp as wp

from viscera import batch
from viscera.bench._random_hands import Wander, act_at_random
from viscera.bench.registry import Row, benchmark, median_ms
from viscera.bench.tissue import copy_rate
from viscera.blood.wounds.vessels import vessel_mmhg
from viscera.device import Device, open_device
from viscera.scenarios import Scenario, Setting
from viscera.scenarios.palpation import CELLS, PROBE_RADIUS, build_block
from viscera.tissue.layout import TILE
from viscera.world import Contents

NAME = "batch"
WARM_UP, MEASURED = 100, 500
QUICK_WARM_UP, QUICK_MEASURED = 10, 40
EPISODE = 200
"""Actions after which a world is reset."""
TICKS = 10
"""Of an action."""
SMALL_CELLS = (15, 7, 7)
"""16 × 8 × 8 = 1 024 masses; rows of 16 fill the places that are computed together."""
PADS = {1_000: SMALL_CELLS, 5_800: CELLS}
"""Cells of the block, by about how many masses it has."""
WORLDS = {True: (1, 64, 1_024, 4_096, 16_384), False: (1, 8, 64, 256, 1_024, 4_096, 16_384)}
"""On cuda and on cpu."""
MOST_WORK = 3.3e7
"""Masses times actions that a row measures on cpu at most, about ten seconds of two cores: the protocol's 500 actions
for 64 worlds of 1 000 masses, fewer for more."""
BESIDES_WORK = 4.0
"""How many times that of tissue an action costs with burns and film, about."""
FEWEST = 5
"""Actions that a row measures at least."""
MEMORY_SHARE = 0.85
"""Of the memory that is free, what worlds may take."""
GOALS = {
    (True, 1_000, 4_096): 250_000.0, (True, 5_800, 4_096): 50_000.0, (False, 1_000, 64): 1_500.0
}  # fmt: skip
"""Env steps per second that we set out to reach: on cuda or not, about so many masses, so many worlds."""
FULL_GOAL = 25_000.0
"""The same with burns and film, on cuda."""
PICTURE, PICTURE_GOAL = 128, 20_000.0
"""Pixels along a side of a picture, and pictures per second with 1 024 worlds on cuda."""
BURN_TEXELS = 64
"""Along a side of each world's texture, where it has one."""
BLOOD_ROOM = 256
"""Particles of a world's film, where it has one."""
VESSELS = ((vessel_mmhg(9.0, 7.0, 1.2, 60.0), 0.16e-3), (vessel_mmhg(70.0, 45.0, 0.5, 30.0), 0.11e-3))
"""That bleed into it, with the radius of the opening [m]: the vein and the artery of the scenario `bleeding`."""

Besides = Literal["", "burns", "burns and film"]
"""What worlds have besides tissue and a probe."""
BYTES_PER_PLACE = 48
MOVED_PER_PLACE = 156
"""What the passes over a world move, each array once: springs and Verlet 60, pressure of the cells 48, its sum 48."""
ASIDE = 0.004
"""How far over the pad hands wander [m]."""
DEEPEST, SHALLOWEST = 0.005, 0.001
"""How far they press [m]."""


def headline(device: Device) -> Row:
    return measure(device, 1_000, 4_096 if device.is_cuda else 64, quick=True)


@benchmark(NAME, title="Many worlds at once, a probe in contact in each", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    for masses in PADS:
        each = bytes_of_a_world(device, masses)
        for worlds in WORLDS[device.is_cuda]:
            if worlds * each > MEMORY_SHARE * free_memory(device):
                break
            yield measure(device, masses, worlds, quick)
            if device.is_cuda and worlds == 4_096:
                yield measure(device, masses, worlds, quick, fused=not fused_by_default(device))
    for besides in ("burns", "burns and film"):
        yield measure(device, 1_000, 4_096 if device.is_cuda else 64, quick, besides=besides)
    yield measure_pictures(device, 1_024 if device.is_cuda else 16, 3 if quick else 30)


def fused_by_default(device: Device) -> bool:
    return not device.is_cuda


def free_memory(device: Device) -> int:
    """[B]"""
    if device.is_cuda:
        return int(device.warp.free_memory)
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        (line,) = (one for one in meminfo.read_text().splitlines() if one.startswith("MemAvailable"))
        return 1024 * int(line.split()[1])
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def bytes_of_a_world(device: Device, masses: int) -> int:
    made = batch.make(pad(masses), worlds=1, device=device)
    made.close()
    return made.bytes_per_world


def actions_of(device: Device, masses: int, worlds: int, quick: bool, besides: Besides = "") -> tuple[int, int]:
    """To warm up, and measured."""
    warm_up, measured = (QUICK_WARM_UP, QUICK_MEASURED) if quick else (WARM_UP, MEASURED)
    if not device.is_cuda:
        work = worlds * masses * (BESIDES_WORK if besides else 1.0)
        measured = min(measured, max(FEWEST, round(MOST_WORK / work)))
    return min(warm_up, measured), measured


def pad(masses: int, burns: bool = False) -> Scenario:
    """Palpation on a block of about so many masses, its cells of 4 mm."""

    def build(setting: Setting) -> Contents:
        return build_block(setting, PADS[masses], burns=burns)

    return Scenario(f"palpation_{masses}", build)


def measure(
    device: Device, masses: int, worlds: int, quick: bool, fused: bool | None = None, *, besides: Besides = ""
) -> Row:
    """So many worlds with about so many masses each, by the protocol."""
    gc.collect()
    start, full = time.perf_counter(), besides == "burns and film"
    made = batch.make(
        pad(masses, full), worlds=worlds, device=device, seed=1, stiffness=(0.7, 1.3), friction=(0.5, 2.0), fused=fused
    )
    hot = batch.burns(made, texels=BURN_TEXELS, ticks=TICKS, stiffens=full) if besides else None
    blood = batch.film(made, capacity=BLOOD_ROOM, ticks=TICKS) if full else None
    cuts = None if blood is None else wounded(blood, hot)
    wp.synchronize_device(device.warp)
    making = time.perf_counter() - start
    act = actor(made, hot, blood, cuts)
    warm_up, measured = actions_of(device, masses, worlds, quick, besides)
    for _ in range(warm_up):
        act()
    wp.synchronize_device(device.warp)
    start, touching = time.perf_counter(), 0.0
    for _ in range(measured):
        act()
    wp.synchronize_device(device.warp)
    ms = 1e3 * (time.perf_counter() - start) / measured
    touching = float((made.forces.peak.numpy()[:, 0, 0] > 0.0).mean())
    extra: dict[str, object] = {
        "worlds": worlds, "masses": len(made.tissue.params.nodes), "substeps": made.tissue.substeps,
        "launches": "one per action" if made.fused else "one per phase", "making_s": making,
        "reset_ms": reset_ms(made, device), "in_contact": touching, "broken": int(made.broken.numpy().sum()),
        "actions": measured,
    }  # fmt: skip
    if hot is not None:
        extra["coagulated"] = float((hot.level.numpy()[:, hot.skin.texels.numpy()] >= 0.5).mean())
    if blood is not None:
        extra["particles"] = float(blood.count.numpy().mean())
        extra["MB_of_film_per_world"] = blood.bytes_per_world / 1e6
    row = _row(made, device, masses, ms, extra, besides)
    made.close()
    return row


def wounded(blood: batch.Films, hot: batch.Burns | None) -> batch.Wounds:
    """Two vessels in each world, 8 mm to either side of the middle of its upper side."""
    cuts = batch.wounds(blood, burns=hot, most=len(VESSELS))
    mesh = blood.surface.mesh(0)
    centres = mesh.corners.mean(axis=1)[mesh.face_vectors[:, 2] > 0.0]
    centres = centres[centres[:, 2] > centres[:, 2].max() - 1e-6]
    opened = []
    for side, (vessel, opening) in zip((-0.008, 0.008), VESSELS, strict=True):
        place = centres[:, :2].mean(axis=0) + np.array([side, 0.0])
        away = np.linalg.norm(centres[:, :2] - place, axis=1)
        opened.append((centres[np.argmin(away)], vessel, opening))
    cuts.open(range(blood.worlds.count), opened)
    return cuts


def _row(made: batch.Batch, device: Device, masses: int, ms: float, extra: dict[str, object], besides: str) -> Row:
    places = made.count * len(made.tissue.layout.tile_slot) * TILE * made.tissue.substeps * TICKS
    floor = 1e3 * BYTES_PER_PLACE * places / copy_rate(device)
    more = {"MB_per_world": made.bytes_per_world / 1e6, "bytes_moved_over_floor": MOVED_PER_PLACE / BYTES_PER_PLACE}
    case = f"{masses} masses, {made.count} worlds{f', with {besides}' if besides else ''}" + (
        "" if made.fused == fused_by_default(device) else ", other launches"
    )
    goal = None if besides else GOALS.get((device.is_cuda, masses, made.count))
    if besides == "burns and film" and device.is_cuda:
        goal = FULL_GOAL
    return Row(
        NAME, case, made.count * len(made.tissue.params.nodes), device.name, ms, 1e3 * made.count / ms,
        goal=goal, floor_ratio=ms / floor, extra=extra | more,
    )  # fmt: skip


def actor(
    made: batch.Batch,
    hot: batch.Burns | None = None,
    blood: batch.Films | None = None,
    cuts: batch.Wounds | None = None,
) -> Callable[[], None]:
    """One action of every world: a random hand, ten ticks, heat and blood where there is some, resets where an episode
    ends."""
    rest = made.tissue.rest_positions()
    low, high = rest.min(axis=0), rest.max(axis=0)
    wander: Any = Wander()
    middle = np.array([0.5 * (low[0] + high[0]), 0.5 * (low[1] + high[1]), high[2]])
    wander.middle = wp.vec3d(*middle.tolist())
    wander.aside, wander.stride, wander.episode = ASIDE, 0.003, EPISODE
    wander.lowest, wander.highest = PROBE_RADIUS - DEEPEST, PROBE_RADIUS - SHALLOWEST
    counts = wp.zeros(made.count, dtype=wp.int32, device=made.device.warp)
    mask = wp.zeros(made.count, dtype=wp.int32, device=made.device.warp)
    made.set_tools(np.tile(np.concatenate([middle, [0.0, 0.0, 0.0, 1.0]]), (made.count, 1, 1)))
    args = [wander, 7, counts, mask, made.hands]
    policy = made.device.record(lambda stage: stage.launch(act_at_random, made.count, args), work=0)

    def act() -> None:
        policy.run()
        made.reset(mask)
        made.step(TICKS)
        if hot is not None:
            hot.reset(mask)
            hot.pedals.fill_(1)
            hot.step()
        if blood is not None and cuts is not None:
            blood.reset(mask)
            cuts.reset(mask)
            blood.step()

    return act


def measure_pictures(device: Device, worlds: int, repeats: int) -> Row:
    """Pictures of all worlds, each with a probe in contact: colour, depth and what each pixel shows."""
    made = batch.make(pad(1_000), worlds=worlds, device=device, seed=1)
    eye = batch.pictures(made, width=PICTURE, height=PICTURE)
    act = actor(made)
    for _ in range(10):
        act()
    ms = median_ms(eye.draw, device, repeats)
    made.close()
    goal = PICTURE_GOAL if device.is_cuda else None
    case = f"pictures of {PICTURE} × {PICTURE}, {worlds} worlds"
    return Row(NAME, case, worlds * PICTURE**2, device.name, ms, 1e3 * worlds / ms, goal=goal)


def reset_ms(made: batch.Batch, device: Device) -> float:
    """Time of a reset of one world, median of many [ms]."""
    mask = np.zeros(made.count, dtype=np.bool_)
    mask[made.count // 2] = True
    times = []
    for _ in range(21):
        start = time.perf_counter()
        made.reset(mask)
        wp.synchronize_device(device.warp)
        times.append(1e3 * (time.perf_counter() - start))
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description="One row of the benchmark, or several.")
    parser.add_argument("--device")
    parser.add_argument("--cores", type=int)
    parser.add_argument("--masses", type=int, nargs="+", default=list(PADS), choices=list(PADS))
    parser.add_argument("--worlds", type=int, nargs="+", default=[64])
    parser.add_argument("--launches", nargs="+", default=["default"], choices=["default", "action", "phase"])
    parser.add_argument("--pictures", action="store_true", help="pictures instead")
    parser.add_argument("--burns", action="store_true", help="with heat and burns")
    parser.add_argument("--film", action="store_true", help="with heat, burns, stiffening, vessels and their blood")
    parser.add_argument("--quick", action="store_true", help="10 actions to warm up, 40 measured")
    chosen = parser.parse_args()
    device = open_device(chosen.device, chosen.cores)
    for worlds in chosen.worlds:
        if chosen.pictures:
            print(json.dumps(measure_pictures(device, worlds, 30).as_json()), flush=True)
            continue
        for masses in chosen.masses:
            for launches in chosen.launches:
                fused = {"default": None, "action": True, "phase": False}[launches]
                besides = "burns and film" if chosen.film else "burns" if chosen.burns else ""
                row = measure(device, masses, worlds, chosen.quick, fused, besides=besides)
                print(json.dumps(row.as_json()), flush=True)


if __name__ == "__main__":
    main()
