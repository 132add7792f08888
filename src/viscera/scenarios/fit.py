"""How much detail this machine carries in real time: `--detail auto`.

A small world of the scenario is built and run for a moment with its own hand at work. From how long a tick and a frame
take, the largest detail that keeps real time is guessed, built and run too, and so on until the next one would be too
slow: a few worlds, some tenths of a second each beside what building them takes. What was found is kept in the user's
cache folder, for this machine, device, scenario, mesh and version.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from viscera import machine
from viscera.device import Device, ProgressCallback, available_cores, open_device
from viscera.errors import InputError
from viscera.timing import TICKS_PER_FRAME

if TYPE_CHECKING:
    from viscera.scenarios import Scenario
    from viscera.world import World

TICK_BUDGET = 0.6
"""Of a tick of 1 ms: what is left is for publishing, for inputs and for what else the machine does [ms]."""
FRAME_BUDGET = 12.0
"""Of all systems in a frame of 16 ms [ms]."""
TOGETHER_BUDGET = 12.0
"""Of 16 ticks and the systems of a frame, where they have to take turns on one core [ms]."""

LADDER = (
    0.1, 0.14, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0, 22.0, 32.0, 45.0, 64.0, 90.0,
    128.0, 180.0, 256.0, 360.0, 512.0, 720.0, 1000.0,
)  # fmt: skip
"""Details to choose from."""
FIRST_TRIAL = 0.25
"""Quick to build and to run on any machine."""
MOST_TRIALS = 7
"""Worlds that are built; more would keep people waiting."""

COST_EXPONENT = 4.0 / 3.0
"""Cost goes with detail to this power, as long as two trials have not shown another: tissue takes more substeps the
closer its masses are."""
EXPONENTS = (0.5, 2.5)
"""Powers that are believed."""

WARM_FRAMES, MOST_WARM_FRAMES, MEASURED_PAIRS = 8, 150, 6
"""Frames that a trial runs for before it is measured, at least and until the hand touches something; and pairs of
frames while it is."""
LONGEST_TRIAL = 1.0
"""A world that is this slow has shown enough [s]."""
DOUBTFUL = 2.5
"""Up to this load a trial is repeated before it counts as too slow."""

BUSY = 1.25
"""Mean number of programs that want to run over the last minute, per core, from which on a machine is busy; the trials
themselves come near to 1."""

SMALL_SHARE = 0.1
"""Frame work that is less than this share of all work gets no core of its own."""


@dataclass(frozen=True)
class Pace:
    """How fast a world of some detail runs here."""

    detail: float
    masses: int
    tick_ms: float
    """Time of a tick [ms]."""
    frame_ms: float
    """Time of the systems' turn in a frame, beside its ticks [ms]."""
    one_core: bool = False
    """Whether both have to take turns."""

    @property
    def load(self) -> float:
        """Over what real time allows; up to 1 keeps it."""
        together = TICKS_PER_FRAME * self.tick_ms + self.frame_ms
        turns = together / TOGETHER_BUDGET if self.one_core else 0.0
        return max(self.tick_ms / TICK_BUDGET, self.frame_ms / FRAME_BUDGET, turns)


@dataclass(frozen=True)
class Fit:
    """What was chosen for a machine, and what it is expected to cost there."""

    detail: float
    masses: int
    tick_ms: float
    frame_ms: float
    real_time: bool
    """Whether it was seen to keep real time; False where not even the least detail does."""
    tick_cores: int
    frame_cores: int
    """How many cores ticks and systems should get, see `choose_cores`."""


def choose_cores(cores: int, tick_ms: float, frame_ms: float) -> tuple[int, int]:
    """How many of so many cores the ticks and the work of frames get when both run side by side, by how much there is
    of each. Where there is next to no work in frames, or one core, both have all."""
    ticks = TICKS_PER_FRAME * tick_ms
    if cores < 2 or frame_ms <= SMALL_SHARE * (ticks + frame_ms):
        return cores, cores
    beside = min(max(round(cores * frame_ms / (ticks + frame_ms)), 1), cores - 1)
    return cores - beside, beside


def fit(
    entry: Scenario,
    device: Device,
    *,
    mesh: Path | None = None,
    options: Mapping[str, str] | None = None,
    fresh: bool = False,
    progress: ProgressCallback | None = None,
) -> Fit:
    """The detail with which this scenario keeps real time on this device. `fresh` measures anew what is known."""
    key = _key(entry, device, mesh, options or {})
    known = None if fresh else _recall(key)
    if known is not None:
        return known
    place = open_device(device.name, device.cores)

    def trial(detail: float) -> Pace:
        if progress is not None:
            progress(f"trying how much detail this machine carries ({detail:g})", 0.0)
        return measure(_build(entry, place, mesh, detail, options or {}))

    try:
        pace = search(trial)
    finally:
        place.close()
    tick_cores, frame_cores = choose_cores(device.cores, pace.tick_ms, pace.frame_ms)
    found = Fit(pace.detail, pace.masses, pace.tick_ms, pace.frame_ms, pace.load <= 1.0, tick_cores, frame_cores)
    # What was found beside other work is right for now, and not for ever.
    if device.is_cuda or os.getloadavg()[0] < BUSY * available_cores():
        _remember(key, found)
    return found


def search(trial: Callable[[float], Pace]) -> Pace:
    """The pace at the largest detail of the ladder that keeps real time, or at the least that can be built."""
    tried: dict[int, Pace] = {}
    rung, below, above, halve = LADDER.index(FIRST_TRIAL), -1, len(LADDER), False
    for _ in range(MOST_TRIALS):
        try:
            pace = trial(LADDER[rung])
        except InputError:
            # Too few masses for an organ, or more than a lattice can have.
            if LADDER[rung] >= 1.0 and not tried:
                raise
            if tried and rung > min(tried):
                above, halve = rung, True  # where it begins to be refused, paces do not tell
            else:
                below = rung
        else:
            tried[rung] = pace
            if pace.load <= 1.0:
                below = rung
            else:
                above = rung
        if above - below <= 1:
            break
        guess = (below + above) // 2 if halve else _guess(tried, rung)
        rung = min(max(guess, below + 1), above - 1)
    kept = [number for number, pace in tried.items() if pace.load <= 1.0]
    return tried[max(kept) if kept else min(tried)]


def _guess(tried: dict[int, Pace], rung: int) -> int:
    """The highest rung that should keep real time, from the trials next to it."""
    if not tried:
        return rung + 1
    paces = sorted(tried.values(), key=lambda pace: abs(math.log(pace.load)))
    exponent = COST_EXPONENT
    if len(paces) > 1:
        near, far = paces[:2]
        steep = math.log(near.load / far.load) / math.log(near.detail / far.detail)
        exponent = min(max(steep, EXPONENTS[0]), EXPONENTS[1])
    detail = paces[0].detail * paces[0].load ** (-1.0 / exponent)
    return max((number for number, one in enumerate(LADDER) if one <= detail), default=0)


def measure(world: World) -> Pace:
    """Runs a world as a session does, systems beside the ticks, with its own hand and as much in it as it may have to
    carry. One that seems a little too slow has a second chance: something else may have wanted the machine."""
    if _one_core(world):
        world.take_turns_inline()
    started = time.perf_counter()
    for frame in range(MOST_WARM_FRAMES):
        # Some hands take their time before they touch anything.
        if frame >= WARM_FRAMES and (world.peak_force > 0.0 or not world.organs):
            break
        world.wait()
        world.contents.heaviest()
        _run_frame(world)
        if time.perf_counter() - started > LONGEST_TRIAL:
            break
    pace = _measure_once(world)
    return min(pace, _measure_once(world), key=lambda one: one.load) if 1.0 < pace.load <= DOUBTFUL else pace


def _measure_once(world: World) -> Pace:
    world.wait()
    started = time.perf_counter()
    ticks: list[float] = []
    turns: list[float] = []
    while len(turns) < MEASURED_PAIRS and (len(turns) < 1 or time.perf_counter() - started < LONGEST_TRIAL):
        before = _turns_ms(world)
        # Some systems sleep every other frame, so two frames are one measurement.
        ticks += _run_frame(world) + _run_frame(world)
        world.wait()
        turns.append(0.5 * (_turns_ms(world) - before))
    masses = sum(len(organ.body.nodes) for organ in world.organs)
    return Pace(world.detail, masses, statistics.median(ticks), statistics.median(turns), _one_core(world))


def _one_core(world: World) -> bool:
    """Whether ticks and systems have to take turns."""
    return not world.device.is_cuda and available_cores() < 2


def _run_frame(world: World) -> list[float]:
    """Times of the ticks of one frame, its systems' turn of the frame before beside them [ms]."""
    times = []
    for _ in range(TICKS_PER_FRAME):
        for one in world.script(world.tick):
            world.apply(one)
        start = time.perf_counter()
        world.advance()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def _turns_ms(world: World) -> float:
    """What the systems have taken so far, all turns together [ms]."""
    frames = world.tick / TICKS_PER_FRAME
    return frames * sum(ms for part, ms in world.stages.items() if part != "tissue")


def _build(entry: Scenario, device: Device, mesh: Path | None, detail: float, options: Mapping[str, str]) -> World:
    from viscera.scenarios import make

    return make(entry, device=device, mesh=mesh, detail=detail, options=options)


# --- what was found before ---------------------------------------------------------------------------------------


def cache_file() -> Path:
    """`$XDG_CACHE_HOME/viscera/fit.json`, or under `~/.cache`."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "viscera" / "fit.json"


def _key(entry: Scenario, device: Device, mesh: Path | None, options: Mapping[str, str]) -> str:
    """Of all that the answer depends on."""
    digest = hashlib.sha256()
    facts = [machine.describe(), device.name, device.description, device.cores, entry.name]
    budgets = [TICK_BUDGET, FRAME_BUDGET, TOGETHER_BUDGET]
    # A scan costs what it costs by its size; which one it is, its path says well enough.
    given = [dict(options)] if options else []
    digest.update(json.dumps([facts, budgets, *given], sort_keys=True).encode())
    for file in (mesh, entry.file):
        if file is not None:
            try:
                digest.update(Path(file).read_bytes())
            except OSError as error:
                raise InputError(f"cannot read {file}: {error.strerror}.", "Check the path.") from error
    return digest.hexdigest()


def _recall(key: str) -> Fit | None:
    # A cache that is damaged is none.
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        return Fit(**json.loads(cache_file().read_text())[key])
    return None


def _remember(key: str, found: Fit) -> None:
    """A cache that cannot be written is none."""
    file = cache_file()
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        kept = {}
        with contextlib.suppress(OSError, ValueError):
            kept = json.loads(file.read_text())
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(kept | {key: asdict(found)}, indent=1))
        beside.replace(file)
