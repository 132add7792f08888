"""What a hand feels: true, quiet, passive, and in time. Figures that serve a page need more than NumPy and Warp.

What it feels when something breaks is in feel_faults.py.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from verify.framework import Measured, Skip, figure
from viscera.bench.feel import Felt, feel_block
from viscera.device import open_device
from viscera.haptics import check as checking
from viscera.haptics.check import COARSE, HUM, HUM_STEPS, STIFFNESSES, Clock, Feel
from viscera.haptics.devices.hand import HandDevice, HandParams, poke
from viscera.haptics.link import Link, TimeSummary
from viscera.haptics.loop import Driven, HapticLoop
from viscera.haptics.port import SessionPort

AREA = "feel"
ROOT = Path(__file__).resolve().parent.parent
LIVE_S = 60.0
HANG_S = 20.0
LONGEST_CYCLE_MS = 10.0
"""Of the haptic loop. In this time the guard lets a force come up to the device's peak; a longer gap is a kick."""
IN_TIME = f"≥ 99.5 %, no haptic cycle above {LONGEST_CYCLE_MS:g} ms"

# --- true, quiet, passive --------------------------------------------------------------------------------------------


@cache
def feels() -> list[Feel]:
    return [checking.feel(stiffness) for stiffness in STIFFNESSES]


def _listed(of: str, unit: float = 1.0, digits: str = ".3g") -> str:
    return ", ".join(f"{one.stiffness:g} N/m: {unit * getattr(one, of):{digits}}" for one in feels())


@figure(area=AREA, claim="walls of 50 to 2 000 N/m are felt with their stiffness", bound="within 5 %")
def rendered_stiffness() -> Measured:
    worst = max(abs(one.error) for one in feels() if one.stiffness <= 2000.0)
    return Measured(100 * worst, "% at worst", worst <= 0.05, f"felt, N/m: {_listed('rendered', digits='.1f')}")


@figure(area=AREA, claim="walls beyond the coupling's limit of 2 000 N/m are felt as that", bound="within 5 %")
def stiffness_limit() -> Measured:
    hard = [one for one in feels() if one.stiffness > 2000.0]
    worst = max(abs(one.rendered / 2000.0 - 1.0) for one in hard)
    detail = ", ".join(f"{one.stiffness:g} N/m felt as {one.rendered:.0f}" for one in hard)
    return Measured(100 * worst, "% at worst", worst <= 0.05, detail)


@figure(area=AREA, claim="a poke gives back what was put in or less, each wall, slow", bound="≤ 100 %")
def passive_poke() -> Measured:
    worst = max(one.given_back / one.put_in for one in feels())
    return Measured(100 * worst, "% at worst", worst <= 1.0, f"put in, mJ: {_listed('put_in', 1e3)}")


@figure(area=AREA, claim="the same, with the hand at 0.5 m/s", bound="≤ 100 %")
def passive_quick_poke() -> Measured:
    worst = max(one.quick_ratio for one in feels())
    return Measured(100 * worst, "% at worst", worst <= 1.0, f"strongest force, N: {_listed('peak')}")


@figure(area=AREA, claim="noise of the force at rest, ideal encoders", bound="≤ 1 mN")
def noise_at_rest() -> Measured:
    worst = max(one.noise for one in feels())
    return Measured(1e3 * worst, "mN", worst <= 1e-3, f"mN: {_listed('noise', 1e3)}")


@figure(area=AREA, claim="kinetic energy of a hand that holds still", bound="≤ 1 nJ")
def oscillation() -> Measured:
    worst = max(one.oscillation for one in feels())
    return Measured(1e9 * worst, "nJ", worst <= 1e-9, "hand and device 0.15 kg; 1 nJ is 0.1 mm/s")


@figure(
    area=AREA,
    claim="noise at rest with a Touch's encoders and no friction, worst of ten depths: one encoder step to and fro",
    bound=f"≤ {HUM_STEPS:.2f} of a step's force",
)
def noise_coarse() -> Measured:
    worst = max(one.noise_coarse / (one.expected * COARSE) for one in feels())
    detail = f"mN: {_listed('noise_coarse', 1e3)}; a step is 110 mN on 2 000 N/m"
    return Measured(worst, "of a step's force", worst <= HUM_STEPS, detail)


@figure(area=AREA, claim="kinetic energy of the hand meanwhile", bound="≤ 100 nJ")
def oscillation_coarse() -> Measured:
    worst = max(one.oscillation_coarse for one in feels())
    return Measured(1e9 * worst, "nJ", worst <= HUM, f"nJ: {_listed('oscillation_coarse', 1e9)}")


@figure(
    area=AREA,
    claim=f"the same encoders with dry friction of {HUM_STEPS:.2f} of a step's force, each wall, hands of 80 to 300 g",
    bound="≤ 1 mN",
)
def noise_held() -> Measured:
    def noise(stiffness: float, share: float, mass: float = 0.15) -> float:
        friction = share * min(stiffness, 2000.0) * COARSE
        return checking.rests(stiffness, HandParams(mass=mass, resolution=COARSE, friction=friction))[0]

    walls = [stiffness for stiffness in STIFFNESSES if stiffness <= 2000.0]
    held = max(noise(stiffness, HUM_STEPS, mass) for stiffness in walls for mass in (0.08, 0.15, 0.3))
    less = ", ".join(f"{share:g}: {1e3 * noise(2000.0, share):.1f} mN" for share in (0.5, 0.4, 0.25, 0.1))
    detail = f"on 2 000 N/m that is {1e3 * HUM_STEPS * 2000.0 * COARSE:.0f} mN of friction; with other shares {less}"
    return Measured(1e3 * held, "mN", held <= 1e-3, detail)


@figure(area=AREA, claim="noise at rest on the tissue of palpation, 12 mm deep", bound="≤ 1 mN")
def noise_on_tissue() -> Measured:
    forces, given, put = _poke_tissue()
    noise = float(np.std(forces))
    detail = f"force {np.mean(forces):.2f} N; over the poke {1e3 * put:.2f} mJ in, {1e3 * given:.2f} mJ back"
    return Measured(1e3 * noise, "mN", noise <= 1e-3 and given <= put, detail)


def _poke_tissue() -> tuple[list[float], float, float]:
    """Forces while the hand holds still in the tissue [N], energy given back and put in [J]; simulated time."""
    import viscera

    world = viscera.make("palpation", device="cpu", seed=1)
    home = world.scene().instruments[0].home
    way = poke(0.045, home, repeat=False)
    device = HandDevice(lambda moment: way(max(0.0, moment - 0.8)), HandParams(), period=1e-3)
    device.open()
    clock, link = Clock(), Link()
    port, driven = SessionPort(link, [home], clock), Driven(device, 0)
    loop = HapticLoop([driven], link, clock)
    forces: list[float] = []
    lowest = 0.0
    for cycle in range(4100):
        loop.cycle()
        lowest = min(lowest, device.work)
        if 2300 <= cycle < 2800:
            forces.append(math.hypot(*driven.guard.force))
        clock.now += 0.4e-3
        for given in port.take():
            world.apply(given)
        world.step()
        port.publish(world.tick, world.tools)
        clock.now += 0.6e-3
    world.close()
    return forces, device.work - lowest, -lowest


# --- in time ---------------------------------------------------------------------------------------------------------


@dataclass
class Served:
    within_2ms: float
    """Share of ticks."""
    report: dict[str, Any]
    drawn: str
    watched: str


def _figures(times: dict[str, Any]) -> str:
    names = {"tick": "tick to tick", "latency": "pose to force", "period": "haptic cycle"}
    return "; ".join(
        f"{title} p50 {times[name]['p50_ms']:.2f} p99 {times[name]['p99_ms']:.2f} p99.9 {times[name]['p999_ms']:.2f} "
        f"longest {times[name]['longest_ms']:.1f} ms"
        for name, title in names.items()
    )


@contextlib.contextmanager
def _viewer(command: list[str], says: str) -> Iterator[subprocess.Popen[str]]:
    """A viewer at the lowest priority, once it watches."""
    viewer = subprocess.Popen(
        ["nice", "-n", "19", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        start_new_session=True, env={**os.environ, **_browser_variable()},
    )  # fmt: skip
    try:
        assert viewer.stdout is not None
        for line in viewer.stdout:
            if says in line:
                break
        else:
            raise RuntimeError(f"{command[0]} ended before it was {says}")
        yield viewer
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(viewer.pid, signal.SIGKILL)
        viewer.wait()


def _browser_variable() -> dict[str, str]:
    from viscera.doctor import BROWSER_VARIABLE, find_browser

    return {BROWSER_VARIABLE: find_browser() or ""}


def _ended(viewer: subprocess.Popen[str]) -> str:
    """The last word of a viewer that is told to end."""
    assert viewer.stdin is not None
    assert viewer.stdout is not None
    viewer.stdin.close()
    return viewer.stdout.readline().strip()


def _need_server() -> None:
    try:
        import verify.viewers  # noqa: F401
    except ModuleNotFoundError as error:
        raise Skip(f"needs {error.name}") from None


@cache
def served(seconds: float, hang: bool) -> Served:
    """`viscera serve palpation --haptics hand`, one page that draws and one viewer that does not."""
    _need_server()
    from hatch_build import npm_command
    from verify.viewers import serve

    node = str(npm_command()[1] / "node")
    with tempfile.TemporaryDirectory() as folder:
        with (
            serve(Path(folder), "--device", "cpu", "--haptics", "hand") as server,
            _viewer([node, "verify/watch_page.mjs", server.url], "drawing") as page,
            _viewer([sys.executable, "-m", "verify.watch", server.url], "watching") as watcher,
        ):
            if hang:
                for viewer in (page, watcher):
                    os.killpg(viewer.pid, signal.SIGSTOP)
                time.sleep(seconds)
                drawn = watched = "hung"
            else:
                time.sleep(seconds)
                drawn, watched = _ended(page), _ended(watcher)
        report = json.loads((Path(folder) / "haptics.json").read_text())
    return Served(report["times"]["tick"]["within_2ms"], report, drawn, watched)


@figure(
    area=AREA,
    claim="palpation (5 625 masses) under a hand on cpu, 60 s, a page and a viewer at nice 19: ticks within 2 ms",
    bound=IN_TIME,
    needs=["browser", "quiet"],
)
def ticks_in_time() -> Measured:
    done = served(LIVE_S, hang=False)
    detail = f"{_figures(done.report['times'])}; {done.report['counters']}; page {done.drawn}, viewer {done.watched}"
    return _in_time(done, detail)


@figure(area=AREA, claim="the same while both viewers hang", bound=IN_TIME, needs=["browser", "quiet"])
def ticks_beside_hung_viewers() -> Measured:
    done = served(HANG_S, hang=True)
    return _in_time(done, _figures(done.report["times"]))


def _in_time(done: Served, detail: str) -> Measured:
    """A share of ticks says nothing of one long gap, which the hand feels: the device gets no force meanwhile."""
    longest = done.report["times"]["period"]["longest_ms"]
    return Measured(
        100 * done.within_2ms, f"%, longest cycle {longest:.1f} ms",
        done.within_2ms >= 0.995 and longest <= LONGEST_CYCLE_MS, detail,
    )  # fmt: skip


@figure(area=AREA, claim="a live session under a hand, replayed without a window, gives the same hash", bound="equal")
def live_replay() -> Measured:
    _need_server()
    from verify.viewers import serve
    from viscera.session.replay import replay_report

    with tempfile.TemporaryDirectory() as folder:
        with serve(Path(folder), "--device", "cpu", "--seed", "5", "--haptics", "hand"):
            time.sleep(8.0)
        done = replay_report(next(Path(folder).glob("*.h5")))
        done.world.close()
    same = done.state_hash == done.recording.state_hash
    detail = f"{len(done.recording.inputs)} poses in {done.recording.tick} ticks, peak {done.world.peak_force:.2f} N"
    return Measured("equal" if same else "different", "", same and done.world.peak_force > 0.05, detail)


@cache
def felt_on(device: str, masses: int, seconds: float) -> Felt:
    opened = open_device(device)
    found = feel_block(opened, masses, seconds)
    opened.close()
    return found


def _felt(found: Felt, bound_ms: float) -> Measured:
    times: dict[str, TimeSummary] = found.times
    p999 = times["tick"].p999_ms
    detail = (
        f"{found.masses} masses, tick takes {found.work_ms:.3f} ms; "
        + _figures({name: asdict(one) for name, one in times.items()})
        + f"; within 2 ms {100 * times['tick'].within_2ms:.3f} %; peak {found.peak_force:.2f} N"
        + ("" if found.first else "; without real-time priority")
    )
    return Measured(p999, "ms", p999 <= bound_ms, detail)


@figure(area=AREA, claim="1 million masses under a hand on cuda: tick to tick, p99.9", bound="≤ 1.1 ms", needs=["cuda"])
def million_masses() -> Measured:
    return _felt(felt_on("cuda:0", 1_000_000, LIVE_S), 1.1)
