"""The device layer: recording, cores, ports, and its refusals."""

from __future__ import annotations

import platform
import subprocess
import sys
import time

import numpy as np
import pytest
import warp as wp

from viscera.device import BLOCK, Stage, available_cores, cuda_state, open_device
from viscera.errors import DeviceError


@wp.kernel
def smooth(first: int, source: wp.array(dtype=float), count: int, result: wp.array(dtype=float)):
    """Reads neighbours, so a missing barrier between two launches shows."""
    i = first + wp.tid()
    left = wp.max(i - 1, 0)
    right = wp.min(i + 1, count - 1)
    result[i] = (source[left] + source[i] + source[right]) / 3.0


@wp.kernel
def mark(first: int, seen: wp.array(dtype=int)):
    i = first + wp.tid()
    seen[i] = seen[i] + 1


@wp.kernel
def scale(first: int, factor: wp.array(dtype=float), values: wp.array(dtype=float), sums: wp.array(dtype=float)):
    i = first + wp.tid()
    values[i] = values[i] * factor[0]
    if i == 0:
        sums[0] = values[0]


@pytest.mark.parametrize("cores", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK, BLOCK + 1, 7 * BLOCK + 3])
def test_each_element_is_done_once_whatever_the_cores(cores: int, count: int) -> None:
    device = open_device("cpu", cores=cores)
    seen = wp.zeros(count, dtype=int, device="cpu")
    program = device.record(lambda stage: stage.launch(mark, count, [seen]))
    for _ in range(3):
        program.run()
    device.close()
    assert (seen.numpy() == 3).all()


def test_stages_wait_for_each_other() -> None:
    """Forty smoothings in a row on several cores give the bits that one core gives."""
    count = 6 * BLOCK
    start = np.random.default_rng(0).random(count).astype(np.float32)
    results = []
    for cores in (1, 2, 4):
        device = open_device("cpu", cores=cores)
        a, b = wp.array(start, device="cpu"), wp.zeros(count, dtype=float, device="cpu")

        def build(stage: Stage, a: wp.array = a, b: wp.array = b) -> None:
            for _ in range(20):
                stage.launch(smooth, count, [a, count, b])
                stage.launch(smooth, count, [b, count, a])

        program = device.record(build)
        for _ in range(10):
            program.run()
        results.append(a.numpy().copy())
        device.close()
    assert np.ptp(results[0]) < np.ptp(start)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="asked of x86 cores alone")
@pytest.mark.parametrize("cores", [1, 2])
def test_programs_make_no_denormals_and_the_host_still_does(cores: int) -> None:
    count = 4 * BLOCK
    device = open_device("cpu", cores=cores)
    factor = wp.array([1.0e-10], dtype=float, device="cpu")
    values, sums = wp.full(count, 1.0e-30, dtype=float, device="cpu"), wp.zeros(1, dtype=float, device="cpu")
    device.record(lambda stage: stage.launch(scale, count, [factor, values, sums])).run()
    device.close()
    assert (values.numpy() == 0.0).all()
    assert (np.full(4, 1.0e-30, dtype=np.float32) * np.float32(1.0e-10) > 0.0).all()


def test_an_empty_program_leaves_the_crew_in_step() -> None:
    """A program that records nothing, as a phase that is switched off does, then one that counts: each core must run
    the second once. Without a barrier in the first a late core takes the second's command for both."""
    device = open_device("cpu", cores=2)
    values = wp.zeros(2 * BLOCK, dtype=wp.int32, device=device.warp)
    nothing = device.record(lambda stage: None)
    count = device.record(lambda stage: stage.launch(mark, 2 * BLOCK, [values]))
    for done in range(1, 11):
        nothing.run()
        count.run()
        time.sleep(0.003)  # long enough for a core that is out of step, and for all to fall asleep at their gates
        assert (values.numpy() == done).all()
    device.close()


def test_ping_pong_takes_turns() -> None:
    device = open_device("cpu", cores=1)
    start = np.random.default_rng(1).random(100).astype(np.float32)
    pair = (wp.array(start, device="cpu"), wp.zeros(100, dtype=float, device="cpu"))

    def build(stage: Stage, variant: int) -> None:
        stage.launch(smooth, 100, [pair[variant], 100, pair[1 - variant]])

    program = device.record(build, variants=2)
    expected = start.astype(np.float64)
    for step in range(5):
        program.run()
        padded = np.concatenate([expected[:1], expected, expected[-1:]])
        expected = (padded[:-2] + padded[1:-1] + padded[2:]) / 3.0
        np.testing.assert_allclose(pair[1 - step % 2].numpy(), expected, rtol=1e-5)


def test_ports_bring_live_values_in_and_results_out(device) -> None:
    """Scalars are frozen in a recorded program, ports are not."""
    factor, sums = device.port(1, wp.float32), device.port(1, wp.float32)
    values = wp.array(np.ones(10, dtype=np.float32), device=device.warp)

    def build(stage: Stage) -> None:
        stage.upload(factor)
        stage.launch(scale, 10, [factor.array, values, sums.array])
        stage.download(sums)

    program = device.record(build)
    expected = 1.0
    for value in (2.0, 3.0, 0.5):
        factor.host[0] = value
        program.run()
        device.synchronize()
        expected *= value
        assert sums.host[0] == expected


def test_small_programs_stay_on_one_core() -> None:
    device = open_device("cpu", cores=2)
    seen = wp.zeros(10, dtype=int, device="cpu")
    assert device.record(lambda stage: stage.launch(mark, 10, [seen]), work=10).cores == 1
    assert device.record(lambda stage: stage.launch(mark, 10, [seen]), work=10**6).cores == 2
    device.close()


def test_a_process_that_forgets_to_close_ends_all_the_same() -> None:
    script = (
        "import warp as wp, viscera.device as d\n"
        "from tests.device.test_device import mark\n"
        "device = d.open_device('cpu', cores=3)\n"
        "seen = wp.zeros(9999, dtype=int, device='cpu')\n"
        "device.record(lambda stage: stage.launch(mark, 9999, [seen])).run()\n"
        "print(seen.numpy().sum())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "9999"), done.stderr


@pytest.mark.parametrize(("name", "word"), [("gpu", "not known"), ("cuda:99", "cuda:99")])
def test_unknown_devices_are_refused(name: str, word: str) -> None:
    with pytest.raises(DeviceError, match=word) as refused:
        open_device(name)
    assert refused.value.hint


def test_impossible_cores_are_refused() -> None:
    with pytest.raises(DeviceError, match="cores"):
        open_device("cpu", cores=0)


def test_the_choice_has_a_reason() -> None:
    chosen = open_device()
    assert chosen.reason
    assert chosen.is_cuda == cuda_state().usable
    assert open_device("cpu").cores == available_cores()


def test_a_lost_worker_is_told_instead_of_waited_for() -> None:
    device = open_device("cpu", cores=2)
    seen = wp.zeros(5 * BLOCK, dtype=int, device="cpu")
    program = device.record(lambda stage: stage.launch(mark, 5 * BLOCK, [seen]))
    program.run()
    assert program.crew is not None
    program.crew.memory[48] = 1  # what a worker that fails leaves behind
    with pytest.raises(DeviceError, match="worker"):
        program.run()
    device.close()
