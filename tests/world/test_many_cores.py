"""Worlds on more cores than this machine may have, and with programs that are all split: who runs what."""

from __future__ import annotations

import inspect
import re
import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import warp as wp

import viscera
from viscera import device as devices
from viscera.device import Device, DeviceError, Program, Stage, open_device
from viscera.scenarios import catalogue

CORES = 4
"""Two for the ticks and two for what runs beside them."""
ON_CUDA_ALONE = {"arrange"}
"""Kernels with atomics that they use on cuda only."""
QUICK = ("artery", "cautery")


@cache
def has_atomics(kernel: Any) -> bool:
    """Of Warp's own, in a kernel or in what it calls."""
    seen: set[Any] = set()
    ahead = [kernel.func]
    while ahead:
        function = ahead.pop()
        if function in seen or not inspect.isfunction(function):
            continue
        seen.add(function)
        if re.search(r"wp\.atomic_", inspect.getsource(function)):
            return True
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        ahead += [getattr(one, "func", None) for one in called]
    return False


@pytest.mark.parametrize(
    "scenario", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in catalogue()]
)
def test_threads_share_no_crew_and_cores_no_atomics(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ticks and what runs beside them have cores of their own: a crew that both gave work to would wait for ever. And
    Warp's atomics are plain operations on cpu, so a kernel that uses them runs on one core."""
    monkeypatch.setattr(devices, "SPLIT_WORK", 0)
    threads: dict[int, set[str]] = defaultdict(set)
    split: set[str] = set()
    run, launch = Program.run, Stage.launch

    def seen_run(program: Program, count: int = 1) -> None:
        if program.crew is not None:
            threads[id(program.crew)].add(threading.current_thread().name)
        run(program, count)

    def seen_launch(stage: Stage, kernel: Any, count: int, args: Sequence[Any], block: int = devices.BLOCK) -> None:
        if stage.cores > 1 and count > block and has_atomics(kernel):
            split.add(kernel.func.__name__)
        launch(stage, kernel, count, args, block)

    monkeypatch.setattr(Program, "run", seen_run)
    monkeypatch.setattr(Stage, "launch", seen_launch)
    world = viscera.make(scenario, device="cpu", cores=CORES, detail=0.4, seed=1)
    world.step()
    threads.clear()  # making a world is one thread's work
    world.step(40)
    world.close()
    assert all(len(names) == 1 for names in threads.values()), dict(threads)
    assert threads or not world.organs
    assert not split - ON_CUDA_ALONE


def test_two_threads_that_run_programs_of_one_device_are_told_so() -> None:
    device = open_device("cpu", cores=2)
    numbers = wp.zeros(1 << 22, dtype=wp.float32, device=device.warp)
    program = device.record(lambda stage: stage.launch(_slowly, numbers.shape[0], [numbers]))
    told: list[str] = []

    def run(device: Device) -> None:
        try:
            for _ in range(50):
                program.run()
        except DeviceError as error:
            told.append(str(error))

    both = [threading.Thread(target=run, args=(device,)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert len(told) == 1
    assert "two threads run programs of one device" in told[0]
    program.run()
    assert numbers.numpy()[0] >= 51.0


@wp.kernel
def _slowly(first: int, numbers: wp.array(dtype=wp.float32)):
    i = first + wp.tid()
    numbers[i] = numbers[i] + wp.sqrt(wp.sin(numbers[i]) * wp.sin(numbers[i]) + 1.0) * 1.0e-9 + 1.0
