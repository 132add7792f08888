"""Waiting: never early, and as late as the machine's sleeps only until that has been learned."""

from __future__ import annotations

import os
import platform
import threading

import pytest

from viscera.waiting import LEAST_SPIN, MOST_SPIN, Waiter, wake_early


class Machine:
    """A clock that advances by a microsecond per look, and sleeps that end `late` [s]."""

    def __init__(self, late: float) -> None:
        self.now, self.late, self.looks = 0.0, late, 0

    def clock(self) -> float:
        self.now += 1e-6
        self.looks += 1
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self.late


def ends(machine: Machine, waiter: Waiter, count: int) -> list[float]:
    """How late each of so many waits of a millisecond ended [s]."""
    found = []
    for _ in range(count):
        due = machine.now + 0.001
        found.append(waiter.until(due) - due)
    return found


@pytest.mark.parametrize("late", [0.0, 40e-6, 300e-6])
def test_a_wait_is_never_early_and_learns_how_late_sleeps_end(late: float) -> None:
    machine = Machine(late)
    waiter = Waiter(machine.clock, machine.sleep, MOST_SPIN)
    found = ends(machine, waiter, 100)
    assert min(found) >= 0.0
    assert found[0] <= max(0.0, late - LEAST_SPIN) + 5e-6
    assert max(found[1:]) < 5e-6


def test_without_cores_to_spare_it_does_not_take_one() -> None:
    machine = Machine(300e-6)
    waiter = Waiter(machine.clock, machine.sleep, LEAST_SPIN)
    assert min(ends(machine, waiter, 100)) > 200e-6
    assert waiter.spin == LEAST_SPIN


def test_one_bad_sleep_is_forgotten() -> None:
    machine = Machine(400e-6)
    waiter = Waiter(machine.clock, machine.sleep, MOST_SPIN)
    ends(machine, waiter, 2)
    assert waiter.spin > 400e-6
    machine.late = 10e-6
    ends(machine, waiter, 4000)
    assert waiter.spin < 2 * LEAST_SPIN


def test_a_moment_that_is_past_is_not_waited_for() -> None:
    machine = Machine(300e-6)
    assert Waiter(machine.clock, machine.sleep, MOST_SPIN).until(machine.now - 1.0) < 5e-6


def test_a_thread_that_wakes_early_keeps_its_policy_and_its_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[object] = []

    def ask() -> None:
        me = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, me, os.getpriority(os.PRIO_PROCESS, me) + 1)
        before = (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, me))
        wake_early()
        found.extend([before, (os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, me))])

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found[0] == found[1]
    monkeypatch.setattr(platform, "machine", lambda: "something else")
    assert wake_early() is False
