"""What a grasper, and tissue that meets tissue, cost the ticks; part of `viscera bench cutting`.

A block, held below, and the same block with another one that lies on it. Ticks of the block alone, with a grasper that
pulls at it, and of both together with and without contact take turns, so that a busy machine treats all alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

import numpy as np

from viscera.bench.registry import Row, timed
from viscera.device import Device
from viscera.tissue.grasping import Mouth, let_grasp, need_grasping, set_jaws
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.meeting import make_meeting
from viscera.tissue.params import LatticeParams
from viscera.units import STANDARD_GRAVITY
from viscera.world.organ import block

FLESH = Material("flesh", 10_000.0, 1_000.0, poisson=0.35, viscous_time=2e-4)
MOUTH = Mouth(length=0.018, width=0.005, gap=0.9e-3, opening=0.42)
TICKS = 300


def contact_rows(name: str, device: Device, cells: tuple[int, int, int], spacing: float) -> Iterator[Row]:
    def make(up: float = 0.0, held: bool = True) -> Tissue:
        body = block(cells, spacing)
        origin = (body.origin[0], body.origin[1], up)
        below = (body.positions[:, 2] < 0.5 * spacing) & held
        params = LatticeParams(body.nodes, spacing, origin, below, FLESH, stiffest=FLESH.young, drag=10.0)
        return make_lattice(device, params)

    top = cells[2] * spacing
    plain, pulled = make(), make()
    let_grasp(pulled)
    apart, together = [make(), make(2.0 * top, held=False)], [make(), make(top, held=False)]
    together[1].set_gravity((0.0, 0.0, -STANDARD_GRAVITY))
    meetings = [make_meeting(apart), make_meeting(together)]

    def pull(tick: int) -> None:
        tips = [np.array([0.0, 0.0, top - 0.004 + 1e-5 * min(at, 200)]) for at in (tick, tick + 1)]
        frames = np.array([[tip, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]] for tip in tips])
        set_jaws(pulled, 0, 0, MOUTH, frames, (0.0, 0.0), grip=4.0, friction=0.5, takes=tick == 0)
        pulled.step()

    work: dict[str, Callable[[int], None]] = {
        "tick without a grasper": lambda tick: plain.step(),
        "tick with a grasper that pulls": pull,
        "tick of two blocks apart": lambda tick: meetings[0].step(),
        "tick of two blocks that lie on each other": lambda tick: meetings[1].step(),
    }
    times: dict[str, list[float]] = {one: [] for one in work}
    for tick in range(TICKS):
        for one, do in work.items():
            start = time.perf_counter()
            do(tick)
            times[one].append(1e3 * (time.perf_counter() - start))
    listed = int(meetings[1].meet.count.numpy()[1])
    extras = [{}, {"held": need_grasping(pulled).held(0)}, {}, {"masses_that_meet": listed}]
    masses = len(plain.params.nodes)
    for (one, found), extra in zip(times.items(), extras, strict=True):
        count = masses if "grasper" in one else 2 * masses
        more = {"p99_9_ms": float(np.quantile(found[5:], 0.999)), **extra}
        yield timed(name, one, count, device, statistics.median(found[5:]), extra=more)
