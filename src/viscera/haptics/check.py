"""How well the loop feels, measured: a simulated hand against walls of known stiffness.

The loop, the link, the coupling and the guard are the real ones; the hand is `devices.hand`, the world a wall. In
`poke` time is simulated: every run gives the same numbers on any machine. `live` runs the haptic process as a session
does and times it.

| figure | what it is |
| --- | --- |
| rendered stiffness | slope of the force at the hand over its depth, while it goes in |
| noise at rest | standard deviation of the force while the hand holds still |
| oscillation | kinetic energy of the hand while it should hold still, mean |
| coarse | the same two with a Touch's encoders, the worst of ten depths spread over an encoder step |
| passivity | energy given back to the hand over energy it put in, from free air to free air |
| latency | from reading a pose to writing the force that answers it |

With encoders that step by q, no reading may be right: a wall of stiffness K and a grip of stiffness k balance at the
edge between two readings for K/(K + k) of all depths. The force then switches by K·q whenever the hand crosses that
edge, which a loop with any delay turns into a hum. Dry friction of K·q/2 holds a hand against that (Diolaiti et al.,
IEEE Trans. Robotics 22(2), 2006, doi:10.1109/TRO.2005.862487), `HUM_STEPS`·K·q against our damper as well; the
simulated hand has none unless it is told to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera import machine
from viscera.errors import RecordingError
from viscera.haptics.coupling import PERIOD, CouplingParams
from viscera.haptics.devices.hand import HandDevice, HandParams, Way, smooth
from viscera.haptics.devices.hand import poke as poking
from viscera.haptics.link import BIN_S, Link, TimeSummary
from viscera.haptics.loop import SPEED_CYCLES, Beat, Driven, HapticLoop
from viscera.haptics.port import WARM_UP_TICKS, SessionPort
from viscera.haptics.priority import SESSION_LEVEL, come_first, step_back
from viscera.inputs import ToolInput, Vector3
from viscera.instruments import Tool, kit
from viscera.view import ToolState

STIFFNESSES = (50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 1e6)
"""Of the walls [N/m]."""

TOLERANCE = 0.05
"""Of the rendered stiffness, up to the limit of the coupling."""
QUIET = 1e-3
"""Noise at rest with ideal encoders that passes [N]; fingers notice some tens of mN."""
STILL = 1e-9
"""Oscillation that passes [J]: 0.1 mm/s of the hand."""

PRESS = 3.0
"""How hard the hand means to press [N]; what a Touch can give."""
HOME: Vector3 = (0.0, 0.0, 0.02)
FREE_S, GO_S, HOLD_S = 0.8, 1.0, 0.8
"""Of a poke: waiting in the air until the force has come in, going, holding [s]."""
QUICK = 0.5
"""Largest speed of a quick poke [m/s]; as fast as hands move in laparoscopy."""
COARSE = 5.5e-5
"""Encoder step of a Touch [m]."""
HUM_STEPS = 0.5 + SPEED_CYCLES**-1
"""Noise with coarse encoders that passes, in forces of one step, K·q: a reading that goes to and fro by one step moves
the spring by K·q and the damper by K·q/SPEED_CYCLES (t_lead = T) either way, and no signal deviates by more than half
its range. Two steps to and fro do not pass."""
HUM = 1e-7
"""Oscillation with coarse encoders that passes [J]: 1.2 mm/s of the hand."""
REST_DEPTHS = 10
REST_MOVE_S, REST_SETTLE_S, REST_S = 0.1, 0.1, 0.15
"""At each of those depths: going there, coming to rest, being watched [s]."""
LATE_CYCLES = 2
"""A tick is felt so many cycles after its pose was read: one is usual, two happen."""


class Clock:
    """Simulated time [s]."""

    def __init__(self) -> None:
        self.now = 1.0

    def __call__(self) -> float:
        return self.now


class Wall:
    """A world with one tool and a springy floor at z = 0."""

    def __init__(self, stiffness: float) -> None:
        self.stiffness = stiffness
        self.tick = 0
        self.tools = [ToolState(0, position=HOME)]
        self._tool = Tool(0, kit.probe(0.005).at(HOME))

    def step(self, given: list[ToolInput]) -> None:
        tool = self._tool
        for one in given:
            tool.take(one)
        if tool.active:
            tool.follow(PERIOD)
        x, y, z = tool.tip.tolist()
        push = self.stiffness * max(0.0, -z) if tool.active else 0.0
        self.tools = [ToolState(0, (x, y, z), active=tool.active, force=(0.0, 0.0, push))]
        self.tick += 1


@dataclass
class Poke:
    """One run, cycle by cycle."""

    time: NDArray[np.float64]
    depth: NDArray[np.float64]
    """Of the hand below the floor [m]."""
    force: NDArray[np.float64]
    """At the hand, upwards [N]."""
    speed: NDArray[np.float64]
    """[m/s]"""
    work: NDArray[np.float64]
    """Done on the hand so far [J]."""

    def during(self, start: float, end: float) -> NDArray[np.bool_]:
        return (self.time >= start) & (self.time < end)

    @property
    def put_in(self) -> float:
        """Largest energy that the hand had put in at any time [J]."""
        return float(max(0.0, -self.work.min()))

    @property
    def given_back(self) -> float:
        """Of that, what it had back at the end [J]."""
        return float(self.work[-1] - self.work.min())


def poke(
    stiffness: float,
    *,
    hand: HandParams | None = None,
    params: CouplingParams | None = None,
    quick: bool = False,
) -> Poke:
    """A simulated hand goes into a wall, holds, and leaves, in simulated time."""
    hand = hand or HandParams()
    params = params or CouplingParams()
    felt = min(stiffness, params.stiffest)
    depth = PRESS / felt + (PRESS / hand.stiffness if hand.stiffness > 0.0 else 0.0)
    # The fastest moment of a way with least jerk is 1.875 times its mean speed.
    go, hold = (1.875 * (HOME[2] + depth) / QUICK, 0.2) if quick else (GO_S, HOLD_S)
    way = poking(HOME[2] + depth, HOME, seconds=go, hold=hold, repeat=False)
    return _felt(stiffness, way, 2 * go + hold + 0.3, hand, params)


def rests(stiffness: float, hand: HandParams, params: CouplingParams | None = None) -> tuple[float, float]:
    """Noise [N] and oscillation [J] of a hand that holds still in a wall, the worst of `REST_DEPTHS` depths that are
    spread over an encoder step: where in a step a hand comes to rest decides whether it hums."""
    params = params or CouplingParams()
    felt = min(stiffness, params.stiffest)
    first = PRESS / felt + PRESS / hand.stiffness
    # The wall gives as well, so the hand has to mean more than the way that the device shall go.
    apart = (1.0 + 1.0 / REST_DEPTHS) * hand.resolution * (1.0 + felt / hand.stiffness)
    each = REST_MOVE_S + REST_SETTLE_S + REST_S
    begin = 0.5 * GO_S + HOLD_S

    def way(moment: float) -> Vector3:
        reach = (HOME[2] + first) * smooth(min(1.0, moment / (0.5 * GO_S)))
        count, since = divmod(max(0.0, moment - begin), each)
        reach -= apart * (count + smooth(min(1.0, since / REST_MOVE_S)))
        return (HOME[0], HOME[1], HOME[2] - reach)

    done = _felt(stiffness, way, begin + REST_DEPTHS * each, hand, params)
    noise, oscillation = 0.0, 0.0
    for depth in range(REST_DEPTHS):
        end = FREE_S + begin + (depth + 1) * each
        rest = done.during(end - REST_S, end)
        noise = max(noise, float(done.force[rest].std()))
        oscillation = max(oscillation, float(0.5 * hand.mass * np.square(done.speed[rest]).mean()))
    return noise, oscillation


def _felt(stiffness: float, way: Way, seconds: float, hand: HandParams, params: CouplingParams) -> Poke:
    """A hand waits in the air for `FREE_S`, then goes its way for so long, against a wall, in simulated time."""
    device = HandDevice(lambda moment: way(max(0.0, moment - FREE_S)), hand, period=PERIOD)
    device.open()
    clock, link, wall = Clock(), Link(), Wall(stiffness)
    port = SessionPort(link, [HOME], clock)
    driven = Driven(device, 0, params)
    loop = HapticLoop([driven], link, clock)
    cycles = round((FREE_S + seconds) / PERIOD)
    rows = np.zeros((cycles, 5))
    start = clock.now
    for cycle in range(cycles):
        clock.now = start + cycle * PERIOD
        loop.cycle()
        rows[cycle] = (
            cycle * PERIOD, -device.position[2], driven.guard.force[2], device.velocity[2], device.work,
        )  # fmt: skip
        clock.now += 0.3 * PERIOD
        if cycle:  # the tick that began a cycle ago is done now, and is felt in the next cycle: LATE_CYCLES
            port.publish(wall.tick, wall.tools)
        wall.step(port.take())
    link.close()
    return Poke(*rows.T)


@dataclass(frozen=True)
class Feel:
    """What a hand feels of one wall."""

    stiffness: float
    """Of the wall [N/m]."""
    expected: float
    """The wall's, or the coupling's limit where that is less [N/m]."""
    rendered: float
    """[N/m]"""
    error: float
    """(rendered − expected)/expected"""
    noise: float
    """At rest, ideal encoders [N]."""
    noise_coarse: float
    """At rest, the encoders of a Touch, no friction, worst of ten depths [N]."""
    oscillation: float
    """[J]"""
    oscillation_coarse: float
    """The same with those encoders, worst of ten depths [J]."""
    put_in: float
    """Slow poke [J]."""
    given_back: float
    """[J]"""
    quick_ratio: float
    """Energy given back over put in of a quick poke."""
    peak: float
    """Strongest force of the quick poke [N]."""

    @property
    def passed(self) -> bool:
        true = abs(self.error) <= TOLERANCE
        passive = self.given_back <= self.put_in and self.quick_ratio <= 1.0
        quiet = self.noise <= QUIET and self.oscillation <= STILL
        return true and passive and quiet and self.noise_coarse <= self.hum and self.oscillation_coarse <= HUM

    @property
    def hum(self) -> float:
        """`noise_coarse` that passes [N]."""
        return HUM_STEPS * self.expected * COARSE


def feel(stiffness: float, params: CouplingParams | None = None) -> Feel:
    """Pokes a wall slowly and quickly, and rests in it with coarse encoders."""
    params = params or CouplingParams()
    slow = poke(stiffness, params=params)
    quick = poke(stiffness, params=params, quick=True)
    noise_coarse, oscillation_coarse = rests(stiffness, HandParams(resolution=COARSE), params)
    rest = slow.during(FREE_S + GO_S + 0.5 * HOLD_S, FREE_S + GO_S + HOLD_S)
    going = slow.during(FREE_S, FREE_S + GO_S) & (slow.force > 0.25 * PRESS)
    rendered = float(np.polyfit(slow.depth[going], slow.force[going], 1)[0])
    expected = min(stiffness, params.stiffest)
    return Feel(
        stiffness=stiffness,
        expected=expected,
        rendered=rendered,
        error=rendered / expected - 1.0,
        noise=float(slow.force[rest].std()),
        noise_coarse=noise_coarse,
        oscillation=float(0.5 * HandParams().mass * np.square(slow.speed[rest]).mean()),
        oscillation_coarse=oscillation_coarse,
        put_in=slow.put_in,
        given_back=slow.given_back,
        quick_ratio=quick.given_back / quick.put_in if quick.put_in > 0.0 else 0.0,
        peak=float(quick.force.max()),
    )


def live(seconds: float, device: str = "hand") -> tuple[dict[str, TimeSummary], dict[str, int], list[int]]:
    """Times and counters of the haptic process against a wall that this process ticks in real time; and the bins of
    the latency."""
    from viscera.haptics.process import HapticProcess, HapticSpec

    with HapticProcess(HapticSpec((device,))) as haptic:
        come_first(SESSION_LEVEL)
        try:
            _press(Wall(500.0), haptic.link, seconds)
        finally:
            step_back()
        return haptic.link.times(), haptic.link.counters(), haptic.link.latency.counts()


def _press(wall: Wall, link: Link, seconds: float) -> None:
    port, beat = SessionPort(link, [HOME]), Beat()
    for _ in range(WARM_UP_TICKS):
        _tick(wall, port, beat)
    link.forget_times()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        _tick(wall, port, beat)


def _tick(wall: Wall, port: SessionPort, beat: Beat) -> None:
    wall.step(port.take())
    port.publish(wall.tick, wall.tools)
    beat.wait()


@dataclass
class CheckResult:
    limit: float
    """Stiffest that the coupling renders [N/m]."""
    damping_needed: float
    """Of hand and device for that limit [N·s/m]."""
    feels: list[Feel]
    times: dict[str, TimeSummary] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    latency_bins: list[int] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.feels)

    def as_json(self) -> dict[str, Any]:
        plain = asdict(self)
        del plain["latency_bins"]
        plain["feels"] = [{**asdict(one), "passed": one.passed} for one in self.feels]
        return {"passed": self.passed, **plain}


def check(seconds: float = 5.0, progress: Callable[[str, float], None] | None = None) -> CheckResult:
    """All walls, then `seconds` of the live loop."""
    params = CouplingParams()
    feels = []
    for index, stiffness in enumerate(STIFFNESSES):
        if progress is not None:
            progress(f"poking {stiffness:g} N/m", index / (len(STIFFNESSES) + 1))
        feels.append(feel(stiffness, params))
    if progress is not None:
        progress(f"timing the loop for {seconds:g} s", 1.0 - 1.0 / (len(STIFFNESSES) + 1))
    times, counters, bins = live(seconds)
    return CheckResult(params.stiffest, params.damping_needed, feels, times, counters, bins, machine.describe())


# --- for people ----------------------------------------------------------------------------------------------------


def to_markdown(result: CheckResult) -> str:
    lines = [
        f"Rendered stiffness is limited to {result.limit:.0f} N/m, which stays passive in hands that damp with "
        f"{result.damping_needed:.0f} N·s/m or more. Stiffer walls are felt as that. Noise is at rest, hum what "
        "the hand then moves with; back is energy given back over energy put in, of a slow and of a quick poke. Coarse "
        "is with the encoders of a Touch and no friction, the worst of ten depths.",
        "",
        "| wall N/m | felt N/m | error | noise mN | coarse mN | hum nJ | coarse nJ | put in mJ | back | quick | |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]  # fmt: skip
    for one in result.feels:
        lines.append(
            f"| {one.stiffness:.0f} | {one.rendered:.1f} | {100 * one.error:+.1f} % | {1e3 * one.noise:.3f} | "
            f"{1e3 * one.noise_coarse:.1f} | {1e9 * one.oscillation:.3f} | "
            f"{1e9 * one.oscillation_coarse:.1f} | {1e3 * one.put_in:.2f} | "
            f"{100 * one.given_back / max(one.put_in, 1e-12):.1f} % | {100 * one.quick_ratio:.1f} % | "
            f"{'✓' if one.passed else '✗'} |"
        )
    if result.times:
        lines += ["", "| live | count | p50 ms | p99 ms | p99.9 ms | longest ms | within 2 ms |"]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    titles = {
        "period": "cycle to cycle", "work": "inside a cycle", "latency": "pose to force", "tick": "tick to tick",
    }  # fmt: skip
    for name, times in result.times.items():
        lines.append(
            f"| {titles[name]} | {times.count} | {times.p50_ms:.3f} | {times.p99_ms:.3f} | {times.p999_ms:.3f} | "
            f"{times.longest_ms:.3f} | {100 * times.within_2ms:.2f} % |"
        )
    return "\n".join(lines) + "\n"


def save(result: CheckResult, out: Path, notice: Callable[[str], None]) -> list[Path]:
    """Writes `check.json`, `check.md` and `check.png` into `out` and returns what was written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        data, table, picture = out / "check.json", out / "check.md", out / "check.png"
        data.write_text(json.dumps(result.as_json(), indent=1) + "\n")
        table.write_text(to_markdown(result))
    except OSError as error:
        raise RecordingError(f"cannot write the check to {out}: {error.strerror}.", "Choose another --out.") from error
    return [data, table] + ([picture] if plot(result, picture, notice) else [])


def plot(result: CheckResult, path: Path, notice: Callable[[str], None]) -> bool:
    """Stiffness, pokes and latency. Without matplotlib (a bare machine) there is no picture."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        notice("No plot: matplotlib is not installed here.")
        return False
    figure = Figure(figsize=(14.0, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    stiff, pokes, late = figure.subplots(1, 3)
    walls = [one.stiffness for one in result.feels]
    stiff.loglog(walls, [one.rendered for one in result.feels], "o-", label="rendered")
    stiff.loglog(walls, [one.expected for one in result.feels], "k--", label="expected")
    stiff.axhline(result.limit, color="0.7", lw=0.8)
    stiff.set(title="stiffness", xlabel="wall [N/m]", ylabel="felt [N/m]")
    for stiffness in (200.0, 800.0, 1e6):
        one = poke(stiffness)
        pokes.plot(one.time, one.force, label=f"{stiffness:,.0f} N/m".replace(",", " "))
    pokes.set(title="a slow poke", xlabel="s", ylabel="force at the hand [N]")
    if sum(result.latency_bins):
        share = np.cumsum(result.latency_bins) / sum(result.latency_bins)
        late.step(1e3 * BIN_S * np.arange(1, len(share) + 1), 1.0 - share, where="post")
        late.set(xlim=(0.0, 6.0), ylim=(1e-5, 1.0), yscale="log")
    late.set(title="latency, pose to force", xlabel="ms", ylabel="share that is later")
    for panel in (stiff, pokes, late):
        panel.grid(True, alpha=0.3)
    stiff.legend()
    pokes.legend()
    figure.savefig(path, dpi=120)
    return True


__all__ = [
    "CheckResult",
    "Feel",
    "Poke",
    "Wall",
    "check",
    "feel",
    "live",
    "plot",
    "poke",
    "rests",
    "save",
    "to_markdown",
]
