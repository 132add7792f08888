"""What a whole world costs per tick of 1 ms, tool in and force out: 1000 ticks per second is real time."""

from __future__ import annotations

from collections.abc import Iterator

from viscera.bench.registry import Row, benchmark, median_ms, timed
from viscera.device import Device, open_device
from viscera.scenarios import FIRST, catalogue, make
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.world import World

REAL_TIME = 1.0 / TICK
"""[ticks/s]"""


def headline(device: Device) -> Row:
    return _row(device, FIRST, _case(device, FIRST), 20)


@benchmark("worlds", title="One tick of each scenario, its own hand at work", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    repeats = 20 if quick else 200
    for name in catalogue():
        yield _row(device, name, _case(device, name), repeats)
        if device.cores > 1:
            one = open_device("cpu", cores=1)
            yield _row(one, name, f"{name}, {_cores(1)}", repeats)


def _row(device: Device, name: str, case: str, repeats: int) -> Row:
    world = make(name, device=device, seed=1)

    def frame() -> None:
        for _ in range(TICKS_PER_FRAME):
            for one in world.script(world.tick):
                world.apply(one)
            world.step()

    ms = median_ms(frame, device, repeats) / TICKS_PER_FRAME
    stages = {f"{stage}_ms_per_frame": time for stage, time in world.stages.items()}
    size = _masses(world)
    world.close()
    return timed("worlds", case, size, device, ms, goal=REAL_TIME, extra=stages)


def _masses(world: World) -> int:
    return sum(len(organ.tissue.layout.slot_of_node) for organ in world.organs)


def _case(device: Device, name: str) -> str:
    return name if device.is_cuda else f"{name}, {_cores(device.cores)}"


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"
